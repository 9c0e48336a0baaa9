// The nodes and edges of an answer.
import { ID, TYPE, plain } from './ids.js';

const isObject = (value) => value !== null && typeof value === 'object' && !Array.isArray(value);
const PAGE = new Set(['edges', 'nodes', 'node']);
const NAMES_OF_TYPES = new Set([ID, TYPE, '__typename']);
const NAMES = /(^|[a-z])(name|title|label|subject|description)$/i;

/** The key that an id is made of; empty where there is none. */
const keyOf = (id) => {
  try {
    const bytes = Uint8Array.from(atob(id.replaceAll('-', '+').replaceAll('_', '/')), (each) => each.charCodeAt(0));
    return JSON.parse(new TextDecoder().decode(bytes)).slice(1).join(' ');
  } catch {
    return '';
  }
};

/** What a person would call a node: its name or title, or else its type and its key. Without a key, its first value. */
const labelOf = (type, values, id) => {
  const texts = Object.entries(values).filter(
    ([name, value]) => name !== 'id' && ['string', 'number'].includes(typeof value) && value !== '',
  );
  const named = texts.find(([name]) => NAMES.test(name)) || (id ? null : texts[0]);
  return named ? String(named[1]) : [type, keyOf(id)].filter(Boolean).join(' ');
};

const isPageOf = (value) =>
  !('node' in value) && ('edges' in value || 'nodes' in value || /(Connection|PageInfo)$/.test(value[TYPE] || ''));

const isWay = (value) => value[TYPE] === 'Path' && (Array.isArray(value.nodes) || Array.isArray(value.edges));

/** Whether a value belongs to the object around it: it is, or has in it, no node and no page. */
const isOwn = (value) => {
  if (Array.isArray(value)) {
    return value.every(isOwn);
  }
  return !isObject(value) || (!value[ID] && !isPageOf(value) && !('node' in value) && Object.values(value).every(isOwn));
};

/** Adds what an answer says to a picture: `nodes` and `edges` by their keys. */
export const addAnswer = ({ nodes, edges }, data) => {
  const addNode = (object, key) => {
    const own = Object.entries(object).filter(([name, value]) => !NAMES_OF_TYPES.has(name) && isOwn(value));
    const values = { ...nodes.get(key)?.values, ...plain(Object.fromEntries(own)) };
    nodes.set(key, { key, id: object[ID] || null, type: object[TYPE], values, label: labelOf(object[TYPE], values, object[ID]) });
  };

  // The nodes of a way, each joined to the next.
  const addWay = (way, path, name) => {
    const found = way.nodes?.some((each) => each?.[ID]) ? way.nodes : (way.edges || []).map(({ node }) => node);
    const skipped = found === way.nodes ? 0 : 1;
    let before = null;
    found.forEach((node, place) => {
      walk(node, `${path}.${place}`, before, way.edges?.[place - 1 + skipped]?.via || name, null, false);
      before = node?.[ID] || null;
    });
  };

  // `from` is the node around, `name` the field that leads from it, `attributes` are those of the edge.
  const walk = (value, path, from, name, attributes, isListed) => {
    if (Array.isArray(value)) {
      value.forEach((each, place) => walk(each, `${path}.${place}`, from, name, attributes, isListed));
      return;
    }
    if (!isObject(value)) {
      return;
    }
    const isEdge = 'node' in value;
    let here = from;
    if (value[ID] || (isListed && !isEdge && !isPageOf(value))) {
      here = value[ID] || path;
      addNode(value, here);
      if (from && from !== here) {
        const key = `${from} ${name} ${here}`;
        edges.set(key, { key, from, to: here, name, values: attributes || {} });
      }
    }
    if (isWay(value)) {
      addWay(value, path, name);
      return;
    }
    const { node, cursor, ...others } = isEdge ? value : {};
    const own = isEdge ? plain(Object.fromEntries(Object.entries(others).filter(([, each]) => isOwn(each)))) : null;
    for (const [field, each] of Object.entries(value)) {
      walk(each, `${path}.${field}`, here, PAGE.has(field) ? name : field, field === 'node' ? own : null, PAGE.has(field));
    }
  };

  for (const [field, value] of Object.entries(data || {})) {
    walk(value, field, null, field, null, false);
  }
};

export const emptyPicture = () => ({ nodes: new Map(), edges: new Map() });
