// The mutations of a type: whether the schema has them, their fields as a form, and sending them.
import { h, state } from './page.js';

const OWN = new Set(['id', 'clientMutationId', 'idempotencyKey']);

/** Sends an operation beside the editor; its answer is not drawn. Throws with the message of its first error. */
export const send = async (query, variables) => {
  const response = await fetch(new URL('graphql', document.baseURI), {
    method: 'POST',
    headers: { 'content-type': 'application/json', 'x-keygraph-cost': 'true' },
    body: JSON.stringify({ query, variables }),
  });
  const answer = await response.json();
  if (answer.errors) {
    throw new Error(answer.errors[0].message);
  }
  return answer;
};

/** The mutation that does this to a type (`update`, `delete`, or what makes one); undefined if there is none, or no rule allows it. */
export const mutationOf = (type, doing) => {
  const fields = state.schema?.getMutationType()?.getFields() || {};
  const names = doing === 'create' ? [`create${type}`, `put${type}`] : [`${doing}${type}`];
  return names.filter((name) => !state.closed.includes(name)).map((name) => fields[name]).find(Boolean);
};

const inputOf = (mutation) => GraphQL.getNamedType(mutation.args.find(({ name }) => name === 'input').type);

/** The fields of a mutation that a form can have: scalars, enums, and lists of them. */
export const inputsOf = (mutation) =>
  Object.values(inputOf(mutation).getFields()).filter((field) => !OWN.has(field.name) && GraphQL.isLeafType(GraphQL.getNamedType(field.type)));

/** Whether a field of an update is part of the key, which an update does not change: a deletion takes it too. */
export const isOfKey = (update, name) => {
  const deletion = state.schema.getMutationType().getFields()[update.name.replace(/^update/, 'delete')];
  return Boolean(deletion) && inputsOf(deletion).some((field) => field.name === name);
};

/** Runs a mutation, and returns its answer. */
export const write = (mutation, input) =>
  send(`mutation ($input: ${inputOf(mutation).name}!) { ${mutation.name}(input: $input) { __typename } }`, { input });

const isParsed = (type) =>
  GraphQL.isListType(GraphQL.getNullableType(type)) || ['Int', 'Float', 'Boolean', 'JSON'].includes(GraphQL.getNamedType(type).name);

/** The text of a value in a form, and the value of a text. */
export const textOf = (value) => (value == null ? '' : typeof value === 'string' ? value : JSON.stringify(value));
const valueOf = (type, text) => (isParsed(type) ? JSON.parse(text) : text);

/** The values of a form that differ from `before`. An emptied field is null. Throws for what is no value of its type. */
export const changedValues = (form, fields, before) => {
  const given = new FormData(form);
  const changed = {};
  for (const { name, type } of fields) {
    const isEmptied = given.has(`no ${name}`);
    const text = isEmptied ? '' : String(given.get(name) ?? '');
    if (isEmptied || text !== textOf(before[name])) {
      try {
        changed[name] = text === '' ? null : valueOf(type, text);
      } catch {
        throw new Error(`${name}: ${text} is no ${type}.`);
      }
    }
  }
  return changed;
};

const choices = (type) => {
  const named = GraphQL.getNamedType(type);
  if (GraphQL.isListType(GraphQL.getNullableType(type))) {
    return null;
  }
  return GraphQL.isEnumType(named) ? named.getValues().map(({ name }) => name) : named.name === 'Boolean' ? ['true', 'false'] : null;
};

/** A field of a form, with its name and its type. `absent` stands in it if the value is unknown, such as that of an end's id: a
 * box empties it. */
export const formField = ({ name, type, description }, value, absent) => {
  const given = { name, defaultValue: textOf(value), required: GraphQL.isNonNullType(type), title: description || undefined };
  const offered = choices(type);
  const isUnknown = value === undefined && absent;
  return [
    h(
      'label',
      { key: name },
      h('span', null, name, ' ', h('small', null, String(type))),
      offered
        ? h('select', given, [...(given.required ? [] : ['']), ...offered].map((each) => h('option', { key: each }, each)))
        : h('input', { ...given, spellCheck: false, placeholder: isUnknown ? absent : undefined }),
    ),
    isUnknown && !given.required && h('label', { key: `no ${name}` }, h('small', null, h('input', { type: 'checkbox', name: `no ${name}` }), ` no ${name}`)),
  ];
};
