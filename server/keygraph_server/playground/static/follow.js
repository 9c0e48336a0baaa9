// Where one can go on from a node, and the query that does it.

const PLAIN = 6;
const PAGE = 10;

const required = (field) => field.args.filter((argument) => GraphQL.isRequiredArgument(argument)).map(({ name }) => name);
const fieldsOf = (type) => Object.values(type?.getFields?.() || {});
const isPage = (type) => GraphQL.isObjectType(type) && ['edges', 'nodes', 'pageInfo'].every((name) => name in type.getFields());
const isOneEdge = (type) => GraphQL.isObjectType(type) && 'node' in type.getFields();
const isNode = (type) =>
  GraphQL.isUnionType(type) || (GraphQL.isObjectType(type) && type.getInterfaces().some(({ name }) => name === 'Node'));

/** The fields of a type that lead to other nodes, with what they need. */
export const waysFrom = (schema, typeName) =>
  fieldsOf(schema?.getType(typeName))
    .map((field) => ({ field, type: GraphQL.getNamedType(field.type) }))
    .filter(({ type }) => isPage(type) || isOneEdge(type) || isNode(type))
    .map(({ field, type }) => ({
      name: field.name,
      description: field.description || '',
      needs: required(field),
      isList: isPage(type),
    }));

/** The fields of a type that have a value, those that are part of keys first. */
const plainFields = (type) =>
  fieldsOf(type)
    .filter((field) => GraphQL.isLeafType(GraphQL.getNamedType(field.type)) && !required(field).length && !field.deprecationReason)
    .filter(({ name }) => name !== 'id' && name !== 'cursor')
    .sort((one, other) => isKey(other) - isKey(one));
const isKey = (field) => GraphQL.getNamedType(field.type).name === 'ID';

const names = (fields) => fields.slice(0, PLAIN).map(({ name }) => name);

const selection = (schema, type) => {
  if (isPage(type)) {
    const fields = type.getFields();
    const edge = GraphQL.getNamedType(fields.edges.type);
    return `{ edges { ${names(plainFields(edge)).join(' ')} node ${selection(schema, GraphQL.getNamedType(fields.nodes.type))} } }`;
  }
  if (isOneEdge(type)) {
    const node = GraphQL.getNamedType(type.getFields().node.type);
    return `{ ${names(plainFields(type)).join(' ')} node ${selection(schema, node)} }`;
  }
  if (GraphQL.isAbstractType(type)) {
    const types = new Map();
    const same = ({ name, type: each }) => {
      const known = types.get(name) || String(each);
      types.set(name, known);
      return known === String(each);
    };
    const parts = schema.getPossibleTypes(type).map((member) => {
      const found = names(plainFields(member).filter(same));
      return `... on ${member.name} { ${found.join(' ') || '__typename'} }`;
    });
    return `{ __typename ${parts.join(' ')} }`;
  }
  return `{ ${names(plainFields(type)).join(' ') || '__typename'} }`;
};

/** The field at the root that finds a node by what is known of it; by its id if its key is not known. */
const rootOf = (schema, node) => {
  const root = fieldsOf(schema.getQueryType()).find(
    (field) =>
      field.type.name === node.type && field.args.length > 0 && field.args.every(({ name }) => node.values[name] != null),
  );
  if (!root) {
    return { head: `node(id: ${JSON.stringify(node.id)})`, inside: (text) => `{ ... on ${node.type} { ${text} } }` };
  }
  const given = root.args.map((argument) => {
    const value = node.values[argument.name];
    return `${argument.name}: ${GraphQL.isEnumType(GraphQL.getNamedType(argument.type)) ? value : JSON.stringify(value)}`;
  });
  return { head: `${root.name}(${given.join(', ')})`, inside: (text) => `{ ${text} }` };
};

const pascal = (name) => name[0].toUpperCase() + name.slice(1);

const printed = (text) => `${GraphQL.print(GraphQL.parse(text))}\n`;

/** The query that follows fields of a node. */
export const followQuery = (schema, node, followed) => {
  const type = schema.getType(node.type);
  const { head, inside } = rootOf(schema, node);
  const known = names(plainFields(type)).slice(0, 2).join(' ');
  const parts = followed.map((name) => {
    const field = type.getFields()[name];
    const page = field.args.some((argument) => argument.name === 'first') ? `(first: ${PAGE})` : '';
    return `${name}${page} ${selection(schema, GraphQL.getNamedType(field.type))}`;
  });
  const named = followed.length === 1 ? pascal(followed[0]) : '';
  return printed(`query ${node.type}${named} { ${head} ${inside(`${known} ${parts.join(' ')}`)} }`);
};

/** The names of all fields of a type that have a value. */
export const nodeFields = (schema, type) => plainFields(schema.getType(type)).map(({ name }) => name);

/** The query for a node alone, with the fields of these names. */
export const nodeQuery = (schema, node, fields = nodeFields(schema, node.type).slice(0, PLAIN)) => {
  const { head, inside } = rootOf(schema, node);
  return printed(`query ${node.type} { ${head} ${inside(fields.join(' ') || '__typename')} }`);
};
