// The answer as a picture: pick a node, see what is known of it, follow its lists.
import { Canvas } from './canvas.js';
import { kindOf, open, run, written } from './editor.js';
import { followQuery, waysFrom } from './follow.js';
import { addAnswer, emptyPicture } from './picture.js';
import { change, h, pickList, settings, state, typeDot, useChanges, useDescription } from './page.js';

const MOST_NODES = 300;

// What is drawn, and of which answers. A followed list adds to it, another query replaces it.
const shown = { picture: emptyPicture(), answers: [], types: [], elements: [], hidden: new Set() };
let adds = false;

const takeAnswer = () => {
  if (state.answer === shown.answers.at(-1)) {
    return;
  }
  if (!adds) {
    Object.assign(shown, { picture: emptyPicture(), answers: [], hidden: new Set() });
  }
  shown.answers.push(state.answer);
  addAnswer(shown.picture, state.answer);
  drawAnew();
};

/** Takes what is not hidden (a node, or all of a type) as what is drawn. */
const drawAnew = () => {
  shown.types = [...new Set([...shown.types, ...[...shown.picture.nodes.values()].map(({ type }) => type)])];
  const isHidden = ({ key, type }) => shown.hidden.has(key) || shown.hidden.has(`type ${type}`);
  const nodes = [...shown.picture.nodes.values()].filter((node) => !isHidden(node)).slice(0, MOST_NODES);
  const drawn = new Set(nodes.map(({ key }) => key));
  shown.elements = [
    ...nodes.map((node) => ({ data: { id: node.key, label: node.label, type: node.type, isRecord: !node.id } })),
    ...[...shown.picture.edges.values()]
      .filter((edge) => drawn.has(edge.from) && drawn.has(edge.to))
      .map((edge) => ({ data: { id: edge.key, source: edge.from, target: edge.to, label: edge.name } })),
  ];
};

const toggle = (name) => {
  shown.hidden.has(name) ? shown.hidden.delete(name) : shown.hidden.add(name);
  drawAnew();
  change({});
};

/** Runs a query whose answer is added to the picture. */
export const addToPicture = async (fetcher, document, selected) => {
  takeAnswer();
  adds = true;
  try {
    await fetcher({ query: document }, {});
    takeAnswer();
    change({ selected });
  } catch (error) {
    change({ problem: error.message });
  } finally {
    adds = false;
  }
};

const shownValue = (value) => (typeof value === 'string' ? value : JSON.stringify(value));

const valueList = (values) =>
  h(
    'dl',
    { className: 'values' },
    Object.entries(values).map(([name, value]) => [h('dt', { key: name }, name), h('dd', { key: `${name}:` }, shownValue(value))]),
  );

/** How many edges of a list are drawn. */
const drawnCount = (node, name) => [...shown.picture.edges.values()].filter((edge) => edge.from === node.key && edge.name === name).length;

/** Follows everything that leads from a node and needs no argument, in one query. */
const expand = (fetcher, key) => {
  const node = shown.picture.nodes.get(key);
  const followed = node?.id ? waysFrom(state.schema, node.type).filter(({ needs }) => !needs.length) : [];
  if (followed.length) {
    addToPicture(fetcher, followQuery(state.schema, node, followed.map(({ name }) => name)), key);
  }
};

const way = (fetcher, node, { name, description, needs, isList }) =>
  h(
    'li',
    { key: name },
    h(
      'button',
      {
        type: 'button',
        disabled: needs.length > 0,
        onClick: () => addToPicture(fetcher, followQuery(state.schema, node, [name]), node.key),
      },
      h('strong', null, name),
      drawnCount(node, name) > 0 && h('small', null, ` ${drawnCount(node, name)} in the picture`),
      h('span', null, needs.length ? `needs ${needs.join(', ')}: ask it in the editor` : description || (isList ? 'a list' : 'a node')),
    ),
  );

const edgeList = (entries) =>
  h(
    'ul',
    { key: 'l', className: 'edge-list' },
    entries.map(([key, text]) => h('li', { key }, h('button', { type: 'button', onClick: () => change({ selected: key }) }, text))),
  );

const edgesOf = (node) => {
  const { nodes, edges } = shown.picture;
  const own = [...edges.values()].filter(({ from, to }) => from === node.key || to === node.key);
  return (
    own.length > 0 && [
      h('h3', { key: 'h' }, 'Edges in the picture'),
      edgeList(
        own.map(({ key, name, from, to }) => [key, from === node.key ? `${name} → ${nodes.get(to).label}` : `${name} ← ${nodes.get(from).label}`]),
      ),
    ]
  );
};

const nodePanel = (fetcher, node) => {
  const ways = node.id ? waysFrom(state.schema, node.type) : [];
  return h(
    'section',
    { className: 'picked', 'aria-label': 'Picked node' },
    h('h2', null, node.label),
    h(
      'p',
      { className: 'picked-type' },
      typeDot(node.type),
      node.type,
    ),
    valueList(node.values),
    h('button', { type: 'button', className: 'plain hide', onClick: () => toggle(node.key) }, shown.hidden.has(node.key) ? 'Show it' : 'Hide it'),
    edgesOf(node),
    ways.length > 0 && [h('h3', { key: 'h' }, 'Follow'), h('ul', { key: 'l', className: 'ways' }, ways.map((each) => way(fetcher, node, each)))],
    node.id &&
      settings.showsItems &&
      h('button', { type: 'button', className: 'plain', onClick: () => change({ view: 'table', itemsOf: node.id }) }, 'Raw items behind it'),
  );
};

const edgePanel = (edge) =>
  h(
    'section',
    { className: 'picked', 'aria-label': 'Picked edge' },
    h('h2', null, edge.name),
    edgeList(['from', 'to'].map((end) => [edge[end], `${end} ${shown.picture.nodes.get(edge[end]).label}`])),
    valueList(edge.values),
  );

const legend = () =>
  h(
    'ul',
    { className: 'legend', 'aria-label': 'Types' },
    shown.types.map((type) =>
      h(
        'li',
        { key: type },
        h('label', null, h('input', { type: 'checkbox', checked: !shown.hidden.has(`type ${type}`), onChange: () => toggle(`type ${type}`) }), ' ', typeDot(type), type),
      ),
    ),
  );

const AllNodes = () => {
  const [sought, setSought] = React.useState('');
  const nodes = [...shown.picture.nodes.values()];
  const matching = nodes.filter(({ label, type }) => `${label} ${type}`.toLowerCase().includes(sought.toLowerCase()));
  return h(
    'details',
    { open: true },
    h('summary', null, `${nodes.length} ${nodes.length === 1 ? 'node' : 'nodes'}`),
    legend(),
    h('input', { type: 'search', className: 'seek', 'aria-label': 'Search the nodes', placeholder: 'Search', value: sought, onChange: (event) => setSought(event.target.value) }),
    pickList(matching.map((node) => ({ ...node, note: node.type })), state.selected, (selected) => change({ selected })),
  );
};

const queryPanel = (asked) =>
  h(
    'section',
    { className: 'asked', 'aria-label': 'The query' },
    h('h2', null, 'The query'),
    h('pre', { tabIndex: 0 }, asked.document.trim()),
    h(
      'button',
      {
        type: 'button',
        className: 'plain',
        onClick: () => {
          change({ view: 'query' });
          open(asked.document, asked.variables ? JSON.stringify(asked.variables, null, 2) : '');
        },
      },
      'Open in the editor',
    ),
  );

export const GraphView = ({ fetcher }) => {
  useChanges();
  const description = useDescription();
  takeAnswer();
  const { nodes, edges } = shown.picture;
  const node = nodes.get(state.selected);
  const edge = edges.get(state.selected);
  if (!nodes.size) {
    return h(
      'div',
      { className: 'empty' },
      h('p', null, state.answer ? 'The answer has no nodes.' : 'The nodes and edges of an answer are drawn here.'),
      h('button', { type: 'button', className: 'primary', onClick: run }, `Run the ${kindOf(written())} in the editor`),
      state.problem && h('p', { role: 'alert' }, state.problem),
    );
  }
  return h(
    'div',
    { className: 'split' },
    // The model tells the colors.
    description && h(Canvas, {
      elements: shown.elements,
      selected: state.selected,
      onPick: (selected) => change({ selected }),
      onExpand: (key) => expand(fetcher, key),
      label: `${nodes.size} nodes and ${edges.size} edges. The list beside has all of them.`,
    }),
    h(
      'aside',
      { className: 'side', 'aria-label': 'What is picked' },
      state.problem && h('p', { className: 'note', role: 'alert' }, state.problem),
      node && nodePanel(fetcher, node),
      edge && edgePanel(edge),
      nodes.size > MOST_NODES && h('p', { className: 'note' }, `The first ${MOST_NODES} of ${nodes.size} nodes are drawn.`),
      !node && !edge && h('p', { className: 'hint' }, 'Pick a node to see its fields and to follow its lists. Click it twice to follow all of them.'),
      h(AllNodes),
      state.asked && queryPanel(state.asked),
    ),
  );
};
