// Every query also asks for the id and type of its nodes, which costs no read, so that its answer can be drawn.
// The editor shows the answer without them.
import { eachAnswer } from './live.js';
import { change, state } from './page.js';

export const ID = 'keygraph_id';
export const TYPE = 'keygraph_type';

/** The document with ids and types, and where they were put in; null if it cannot be decorated. */
export const decorated = (document, schema) => {
  const { parse, TypeInfo, validate, visit, visitWithTypeInfo, isInterfaceType, isObjectType, isUnionType } =
    GraphQL;
  let ast;
  try {
    ast = parse(document);
  } catch {
    return null;
  }
  if (!schema || document.includes(ID) || document.includes(TYPE) || validate(schema, ast).length) {
    return null;
  }
  const types = new TypeInfo(schema);
  const roots = [schema.getQueryType(), schema.getMutationType(), schema.getSubscriptionType()];
  const inserted = [];
  const note = (node) => {
    const type = types.getParentType();
    if (isUnionType(type)) {
      inserted.push([node.loc.end - 1, ` ${TYPE}: __typename `]);
    } else if ((isObjectType(type) || isInterfaceType(type)) && !roots.includes(type)) {
      const id = type.getFields().id;
      const isNode = id && !id.args.length && String(id.type) === 'ID!';
      inserted.push([node.loc.end - 1, ` ${isNode ? `${ID}: id ` : ''}${TYPE}: __typename `]);
    }
  };
  visit(ast, visitWithTypeInfo(types, { SelectionSet: { enter: note } }));
  inserted.sort(([one], [other]) => one - other);
  let text = '';
  let from = 0;
  for (const [at, words] of inserted) {
    text += document.slice(from, at) + words;
    from = at;
  }
  return { text: text + document.slice(from), inserted };
};

// The column of an error in the text that was sent, as a column in the text of the editor.
const moved = (location, document, inserted) => {
  const lineStart = document.split('\n').slice(0, location.line - 1).join('\n').length + (location.line > 1 ? 1 : 0);
  let column = location.column;
  let before = 0;
  for (const [at, words] of inserted) {
    const insertedColumn = at - lineStart + 1 + before;
    if (at >= lineStart && insertedColumn < location.column && !document.slice(lineStart, at).includes('\n')) {
      column -= words.length;
      before += words.length;
    }
  }
  return { ...location, column };
};

/** The answer without what was added. */
export const plain = (value) => {
  if (Array.isArray(value)) {
    return value.map(plain);
  }
  if (value === null || typeof value !== 'object') {
    return value;
  }
  const entries = Object.entries(value).filter(([name]) => name !== ID && name !== TYPE);
  return Object.fromEntries(entries.map(([name, each]) => [name, plain(each)]));
};

/** A fetcher whose answers can be drawn. */
export const withIds = (fetcher) => async (params, options) => {
  if (params.operationName === 'IntrospectionQuery') {
    return fetcher(params, options);
  }
  const found = decorated(params.query, state.schema);
  const answers = await fetcher(found ? { ...params, query: found.text } : params, options);
  return eachAnswer(answers, (answer) => {
    change({
      asked: { document: params.query, variables: params.variables, operation: params.operationName },
      answer: answer.data || null,
      problem: answer.errors ? answer.errors[0].message : '',
      selected: null,
    });
    if (!found) {
      return answer;
    }
    const shown = { ...answer };
    if (answer.data) {
      shown.data = plain(answer.data);
    }
    if (answer.errors) {
      shown.errors = answer.errors.map((error) =>
        error.locations
          ? { ...error, locations: error.locations.map((each) => moved(each, params.query, found.inserted)) }
          : error,
      );
    }
    return shown;
  });
};
