// One item of the table: raw, as GraphQL, and what may be done to it.
import { costText } from './cost.js';
import { nodeFields, nodeQuery } from './follow.js';
import { h, state } from './page.js';
import { changedValues, formField, inputsOf, isOfKey, mutationOf, send, write } from './writes.js';

/** The text of a value in DynamoDB's typed form. */
export const typedText = (typed) => {
  const [value] = Object.values(typed || { S: '' });
  return typeof value === 'object' || typeof value === 'boolean' ? JSON.stringify(value) : String(value);
};

const attributes = (item) =>
  h(
    'dl',
    { className: 'attributes' },
    Object.entries(item).map(([name, typed]) => [
      h('dt', { key: name }, name),
      h('dd', { key: `${name}:` }, h('span', { className: 'typed' }, typedText(typed)), h('small', { className: 'typed-type' }, Object.keys(typed)[0])),
    ]),
  );

/** What the API answers for it: the query, its answer, and their cost. */
const useAnswer = ({ type, id }) => {
  const [answer, setAnswer] = React.useState(null);
  React.useEffect(() => {
    let isGone = false;
    setAnswer(null);
    if (id) {
      const query = nodeQuery(state.schema, { type, id, values: {} }, nodeFields(state.schema, type));
      send(query)
        .catch((error) => ({ error: error.message }))
        .then((found) => isGone || setAnswer({ query, ...found }));
    }
    return () => {
      isGone = true;
    };
  }, [id, state.schema]);
  return answer;
};

/** A form for a new record (`id` is null) or for the changes of one. */
export const WriteForm = ({ mutation, id, values, onDone, onCancel }) => {
  const [problem, setProblem] = React.useState('');
  const fields = inputsOf(mutation).filter(({ name }) => !id || !isOfKey(mutation, name));
  const submit = async (event) => {
    event.preventDefault();
    try {
      const changed = changedValues(event.target, fields, values);
      const answer = await write(mutation, id ? { id, ...changed } : changed);
      onDone(`${mutation.name}: ${costText(answer.extensions.cost.actual)}`);
    } catch (error) {
      setProblem(error.message);
    }
  };
  return h(
    'form',
    { className: 'write', onSubmit: submit, 'aria-label': mutation.name },
    h('h3', null, mutation.name),
    fields.map((field) => formField(field, values[field.name], id && 'unchanged')),
    problem && h('p', { className: 'note', role: 'alert' }, problem),
    h('p', null, h('button', { type: 'submit', className: 'plain' }, 'Save'), ' ', h('button', { type: 'button', className: 'plain', onClick: onCancel }, 'Cancel')),
  );
};

const action = (name, onClick) => h('button', { type: 'button', className: 'plain', onClick }, name);

export const ItemPanel = ({ row, onGraph, onWritten }) => {
  const [doing, setDoing] = React.useState('');
  const [problem, setProblem] = React.useState('');
  const answer = useAnswer(row);
  const values = answer?.data?.node || null;
  const may = (what) => row.id && mutationOf(row.type, what);
  const remove = () =>
    write(may('delete'), { id: row.id }).then(
      (found) => onWritten(`${may('delete').name}: ${costText(found.extensions.cost.actual)}`),
      (error) => setProblem(error.message),
    );
  return h(
    'section',
    { className: 'picked', 'aria-label': 'Picked item' },
    h('h2', null, row.type || 'An item of no type of the model'),
    row.id && h(
      'p',
      { className: 'actions' },
      action('Show in Graph', () => onGraph(row)),
      values && may('update') && action('Edit', () => setDoing('edit')),
      may('delete') && action(doing === 'delete' ? 'Really delete' : 'Delete', () => (doing === 'delete' ? remove() : setDoing('delete'))),
    ),
    problem && h('p', { className: 'note', role: 'alert' }, problem),
    row.id && !may('update') && !may('delete') && h('p', { className: 'hint' }, 'You may not change this item: no mutation of its type is open to you.'),
    doing === 'edit' && h(WriteForm, { mutation: may('update'), id: row.id, values, onDone: onWritten, onCancel: () => setDoing('') }),
    h('h3', null, 'Raw'),
    attributes(row.item),
    answer && [
      h('h3', { key: 'h' }, 'As GraphQL'),
      answer.error
        ? h('p', { key: 'e', className: 'note', role: 'alert' }, answer.error)
        : h('p', { key: 'c', className: 'hint' }, costText(answer.extensions.cost.actual)),
      h('pre', { key: 'q', tabIndex: 0 }, `${answer.query.trim()}\n\n${JSON.stringify(answer.data, null, 2) || ''}`),
    ],
  );
};
