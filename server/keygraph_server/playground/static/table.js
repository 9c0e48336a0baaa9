// The table and its indexes: partitions with their items in the order of the sort key, read page by page.
import { costText, counted } from './cost.js';
import { csv, jsonLines, save } from './export.js';
import { nodeQuery } from './follow.js';
import { addToPicture } from './graph.js';
import { ItemPanel, WriteForm, typedText } from './item.js';
import { ask, change, h, settings, state, typeDot, useChanges, useDescription } from './page.js';
import { mutationOf } from './writes.js';

const MOST_SHOWN = 6;
const CONDITIONS = { '': 'any sort key', equal: '=', begins: 'begins with', from: '≥', to: '≤', between: 'from … to' };
const START = { index: '', type: '', partition: '', sort: { is: '', value: '', to: '' }, descending: false };

// --- What to read ---------------------------------------------------------------------------------------

const bodyOf = ({ index, id, partition, sort, descending }, start) =>
  id ? { id } : { index: index || null, partition, sort: sort.is ? sort : null, descending, start };

/** The template of a type's partition in the table or an index; the key itself if all of its items are in one. */
const partitionOf = (description, { type, index }) => {
  const keys = description.types.find(({ name }) => name === type)?.keys.find((each) => (each.index || '') === index);
  return keys?.partition.split(' = ').slice(1).join(' = ') || '';
};

const select = (label, value, options, onChange) =>
  h(
    'label',
    null,
    label,
    ' ',
    h('select', { value, onChange: (event) => onChange(event.target.value) }, options.map(([key, name]) => h('option', { key, value: key }, name))),
  );

const input = (label, value, onChange, more = {}) =>
  h('label', null, label, ' ', h('input', { value, spellCheck: false, onChange: (event) => onChange(event.target.value), ...more }));

const Choice = ({ description, place, partitions, onChange, onRead }) => {
  const template = partitionOf(description, place);
  // A type whose partition has no placeholder is all in there. Another place than the one that is seen is read at once.
  const turn = (changes) => {
    const next = { ...place, id: null, ...changes };
    const whole = partitionOf(description, next);
    const isLeft = next.index !== place.index || place.partition === template;
    const partition = whole && !whole.includes('{') ? whole : isLeft ? '' : place.partition;
    const isElsewhere = next.index !== place.index || partition !== place.partition;
    (isElsewhere ? onRead : onChange)({ ...next, partition });
  };
  const keyed = description.indexes.find(({ name }) => (name || '') === place.index);
  return h(
    'form',
    {
      className: 'look',
      onSubmit: (event) => {
        event.preventDefault();
        onRead(place);
      },
    },
    select('Type', place.type, [['', 'all'], ...description.types.map(({ name }) => [name, name])], (type) => turn({ type })),
    select('In', place.index, description.indexes.map(({ name }) => [name || '', name || 'the table']), (index) => turn({ index })),
    input('Partition', place.partition, (partition) => onChange({ ...place, id: null, partition }), {
      list: 'partitions',
      placeholder: template || 'any',
      name: 'partition',
    }),
    h('datalist', { id: 'partitions' }, partitions.map((each) => h('option', { key: each, value: each }))),
    place.partition && keyed.keys.length > 1 && [
      h(React.Fragment, { key: 'c' }, select(keyed.keys[1], place.sort.is, Object.entries(CONDITIONS), (is) => onChange({ ...place, sort: { ...place.sort, is } }))),
      place.sort.is && h(React.Fragment, { key: 'v' }, input('', place.sort.value, (value) => onChange({ ...place, sort: { ...place.sort, value } }), { 'aria-label': 'Sort key', required: true })),
      place.sort.is === 'between' && h(React.Fragment, { key: 't' }, input('to', place.sort.to, (to) => onChange({ ...place, sort: { ...place.sort, to } }), { required: true })),
      h('label', { key: 'd' }, h('input', { type: 'checkbox', checked: place.descending, onChange: (event) => onChange({ ...place, descending: event.target.checked }) }), ' descending'),
    ],
    h('button', { type: 'submit' }, place.partition ? 'Query' : 'Scan a page'),
  );
};

// --- What was read --------------------------------------------------------------------------------------

const attributesOf = (keys, { item }) => {
  const names = Object.keys(item).filter((name) => !keys.includes(name));
  return h(
    'span',
    { className: 'attribute-line' },
    names.slice(0, MOST_SHOWN).map((name) => h('span', { key: name }, h('small', null, name), ' ', typedText(item[name]))),
    names.length > MOST_SHOWN && h('small', null, `and ${names.length - MOST_SHOWN} more`),
  );
};

const partitionTable = (page, name, rows, picked, onPick, onOpen) =>
  h(
    'section',
    { key: name, className: 'partition' },
    h('h2', null, h('small', null, page.keys[0]), ' ', onOpen ? h('button', { type: 'button', className: 'link', onClick: () => onOpen(name) }, name) : name),
    h(
      'ol',
      null,
      rows.map((row) =>
        h(
          'li',
          { key: JSON.stringify(row.item[page.keys[1]] || '') + row.place },
          h(
            'button',
            { type: 'button', 'aria-pressed': picked === row, onClick: () => onPick(row) },
            h('code', null, page.keys[1] ? typedText(row.item[page.keys[1]]) : name),
            h('span', { className: 'row-type' }, typeDot(row.type), row.type || 'no type'),
            attributesOf(page.keys, row),
          ),
        ),
      ),
    ),
  );

const grouped = (rows) => {
  const partitions = new Map();
  for (const row of rows) {
    partitions.set(row.partition, [...(partitions.get(row.partition) || []), row]);
  }
  return [...partitions];
};

/** Reads pages; `starts` are the beginnings of the page that is seen and of those before it. */
const usePages = () => {
  const [found, setFound] = React.useState({ page: null, starts: [null], error: '' });
  const last = React.useRef(0);
  const read = async (place, starts = [null]) => {
    last.current += 1;
    const turn = last.current;
    const page = await ask('items', bodyOf(place, starts.at(-1))).catch((error) => ({ error: error.message }));
    if (turn === last.current) {
      setFound(page.error ? { page: null, starts, place, error: page.error } : { page, starts, place, error: '' });
    }
  };
  return [found, read];
};

const Rows = ({ fetcher, description }) => {
  const [place, setPlace] = React.useState(START);
  const [{ page, starts, place: readPlace, error }, read] = usePages();
  const [picked, setPicked] = React.useState(null);
  const [known, setKnown] = React.useState([]);
  const [done, setDone] = React.useState('');
  const [isNew, setIsNew] = React.useState(false);
  const turn = (next, at) => {
    setPicked(null);
    setDone('');
    setPlace(next);
    return read(next, at);
  };
  React.useEffect(() => {
    turn(state.itemsOf ? { ...START, id: state.itemsOf } : place);
  }, [state.itemsOf]);
  React.useEffect(() => {
    setKnown((before) => [...new Set([...before, ...(page?.items || []).map(({ partition }) => partition)])].slice(-500));
  }, [page]);

  const rows = (page?.items || []).map((row, at) => ({ ...row, place: at })).filter(({ type }) => !place.type || type === place.type);
  const shown = rows.map(({ item }) => item);
  // The pages beside the one that is seen are those of its own place, whatever the form has by now.
  const seen = { ...readPlace, type: place.type };
  const onWritten = (text) => {
    setIsNew(false);
    turn(seen, starts).then(() => setDone(text));
  };
  const onGraph = async (row) => {
    await addToPicture(fetcher, nodeQuery(state.schema, { ...row, values: {} }), row.id);
    change({ view: 'graph' });
  };
  const create = place.type && mutationOf(place.type, 'create');
  return h(
    'div',
    { className: 'split' },
    h(
      'div',
      { className: 'document', tabIndex: 0, role: 'region', 'aria-label': 'Items' },
      h(Choice, { description, place, partitions: known, onChange: setPlace, onRead: turn }),
      h(
        'p',
        { className: 'table-cost', role: 'status' },
        done && `${done}. `,
        page ? `${page.request}: ${costText(page.cost)}, ${counted(page.read, 'item')} read` : !error && 'Reading …',
        page && rows.length < page.items.length && `, ${rows.length} of type ${place.type}`,
        page?.hasMore && !page.next && '; there are more items: query the partition of a shard',
      ),
      error && h('p', { className: 'note', role: 'alert' }, error),
      grouped(rows).map(([name, own]) =>
        partitionTable(page, name, own, picked, setPicked, !readPlace.partition && !readPlace.id ? (partition) => turn({ ...place, partition }) : null),
      ),
      page && rows.length === 0 && h('p', { className: 'hint' }, page.next ? 'None on this page.' : 'No item is there.'),
      page && h(
        'p',
        { className: 'actions' },
        h('button', { type: 'button', className: 'plain', disabled: starts.length < 2, onClick: () => turn(seen, starts.slice(0, -1)) }, 'Previous page'),
        h('button', { type: 'button', className: 'plain', disabled: !page.next, onClick: () => turn(seen, [...starts, page.next]) }, 'Next page'),
        create && h('button', { type: 'button', className: 'plain', onClick: () => setIsNew(true) }, `New ${place.type}`),
        rows.length > 0 && [
          h('button', { key: 'j', type: 'button', className: 'plain', onClick: () => save(`${settings.table}.jsonl`, 'application/jsonl', jsonLines(shown)) }, 'JSON lines'),
          h('button', { key: 'c', type: 'button', className: 'plain', onClick: () => save(`${settings.table}.csv`, 'text/csv', csv(shown, page.keys)) }, 'CSV'),
        ],
      ),
    ),
    h(
      'aside',
      { className: 'side', 'aria-label': 'What is picked' },
      isNew && create && h(WriteForm, { key: place.type, mutation: create, id: null, values: {}, onDone: onWritten, onCancel: () => setIsNew(false) }),
      picked
        ? h(ItemPanel, { key: `${picked.id} ${picked.place}`, row: picked, onGraph, onWritten })
        : h('p', { className: 'hint' }, 'Pick an item to see it raw and as GraphQL. Pick a partition to query it.'),
      h(
        'section',
        { className: 'asked' },
        h('h2', null, 'Types'),
        h('ul', { className: 'legend' }, state.types.map((type) => h('li', { key: type }, typeDot(type), type))),
      ),
    ),
  );
};

export const TableView = ({ fetcher }) => {
  useChanges();
  const description = useDescription();
  if (!settings.showsItems || !description || description.error) {
    const text = settings.showsItems ? description?.error || 'Reading the model …' : 'This server shows no raw items (KEYGRAPH_PLAYGROUND_ITEMS).';
    return h('div', { className: 'empty' }, h('p', { role: 'status' }, text));
  }
  return h(Rows, { fetcher, description });
};
