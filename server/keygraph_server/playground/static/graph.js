// The answer as a picture: pick a node, see what is known of it, follow its lists.
import { Canvas, hueOf } from './canvas.js';
import { open, written } from './editor.js';
import { followQuery, waysFrom } from './follow.js';
import { addAnswer, emptyPicture } from './picture.js';
import { change, h, settings, state, useChanges } from './page.js';

const MOST_NODES = 300;

// What is drawn, and of which answers. A followed list adds to it, another query replaces it.
const shown = { picture: emptyPicture(), answers: [], types: [], elements: [] };
let adds = false;

const takeAnswer = () => {
  if (state.answer === shown.answers.at(-1)) {
    return;
  }
  if (!adds) {
    Object.assign(shown, { picture: emptyPicture(), answers: [] });
  }
  shown.answers.push(state.answer);
  addAnswer(shown.picture, state.answer);
  shown.types = [...new Set([...shown.types, ...[...shown.picture.nodes.values()].map(({ type }) => type)])];
  const nodes = [...shown.picture.nodes.values()].slice(0, MOST_NODES);
  const drawn = new Set(nodes.map(({ key }) => key));
  shown.elements = [
    ...nodes.map((node) => ({
      data: { id: node.key, label: node.label, hue: hueOf(shown.types, node.type), isRecord: !node.id },
    })),
    ...[...shown.picture.edges.values()]
      .filter((edge) => drawn.has(edge.from) && drawn.has(edge.to))
      .map((edge) => ({ data: { id: edge.key, source: edge.from, target: edge.to, label: edge.name } })),
  ];
};

/** Runs a query whose answer is added to the picture. */
export const addToPicture = async (fetcher, document, selected) => {
  takeAnswer();
  adds = true;
  try {
    const answer = await fetcher({ query: document }, {});
    takeAnswer();
    change({ selected, problem: answer.errors ? answer.errors[0].message : '' });
  } catch (error) {
    change({ problem: error.message });
  } finally {
    adds = false;
  }
};

const runWritten = async (fetcher) => {
  const answer = await fetcher({ query: written() }, {}).catch((error) => ({ errors: [error] }));
  change({ problem: answer.errors ? answer.errors[0].message : '' });
};

const shownValue = (value) => (typeof value === 'string' ? value : JSON.stringify(value));

const valueList = (values) =>
  h(
    'dl',
    { className: 'values' },
    Object.entries(values).map(([name, value]) => [h('dt', { key: name }, name), h('dd', { key: `${name}:` }, shownValue(value))]),
  );

const way = (fetcher, node, { name, description, needs, isList }) =>
  h(
    'li',
    { key: name },
    h(
      'button',
      {
        type: 'button',
        disabled: needs.length > 0,
        onClick: () => addToPicture(fetcher, followQuery(state.schema, node, name), node.key),
      },
      h('strong', null, name),
      h('span', null, needs.length ? `needs ${needs.join(', ')}: ask it in the editor` : description || (isList ? 'a list' : 'a node')),
    ),
  );

const edgesOf = (node) => {
  const { nodes, edges } = shown.picture;
  const own = [...edges.values()].filter(({ from, to }) => from === node.key || to === node.key);
  return (
    own.length > 0 && [
      h('h3', { key: 'h' }, 'Edges in the picture'),
      h(
        'ul',
        { key: 'l', className: 'edge-list' },
        own.map((edge) =>
          h(
            'li',
            { key: edge.key },
            h(
              'button',
              { type: 'button', onClick: () => change({ selected: edge.key }) },
              edge.from === node.key ? `${edge.name} → ${nodes.get(edge.to).label}` : `${edge.name} ← ${nodes.get(edge.from).label}`,
            ),
          ),
        ),
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
      h('span', { className: 'dot', style: { background: `var(--type-${hueOf(shown.types, node.type)})` } }),
      node.type,
    ),
    valueList(node.values),
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
    h(
      'ul',
      { className: 'edge-list' },
      [edge.from, edge.to].map((key, place) =>
        h(
          'li',
          { key: place },
          h('button', { type: 'button', onClick: () => change({ selected: key }) }, `${['from', 'to'][place]} ${shown.picture.nodes.get(key).label}`),
        ),
      ),
    ),
    valueList(edge.values),
  );

const allNodes = () =>
  h(
    'details',
    { open: true },
    h('summary', null, `${shown.picture.nodes.size} nodes`),
    h(
      'ul',
      { className: 'all-nodes' },
      [...shown.picture.nodes.values()].map((node) =>
        h(
          'li',
          { key: node.key },
          h(
            'button',
            { type: 'button', 'aria-pressed': state.selected === node.key, onClick: () => change({ selected: node.key }) },
            h('span', { className: 'dot', style: { background: `var(--type-${hueOf(shown.types, node.type)})` } }),
            node.label,
            ' ',
            h('small', null, node.type),
          ),
        ),
      ),
    ),
  );

const queryPanel = (asked) =>
  h(
    'section',
    { className: 'asked', 'aria-label': 'The query of it' },
    h('h2', null, 'The query that did it'),
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
  takeAnswer();
  const { nodes, edges } = shown.picture;
  const node = nodes.get(state.selected);
  const edge = edges.get(state.selected);
  if (!nodes.size) {
    return h(
      'div',
      { className: 'empty' },
      h('p', null, state.answer ? 'The answer has no nodes.' : 'The nodes and edges of an answer are drawn here.'),
      h('button', { type: 'button', className: 'primary', onClick: () => runWritten(fetcher) }, 'Run the query in the editor'),
      state.problem && h('p', { role: 'alert' }, state.problem),
    );
  }
  return h(
    'div',
    { className: 'split' },
    h(Canvas, {
      elements: shown.elements,
      selected: state.selected,
      onPick: (selected) => change({ selected }),
      kind: 'graph',
      label: `${nodes.size} nodes and ${edges.size} edges. The list beside has all of them.`,
    }),
    h(
      'aside',
      { className: 'side', 'aria-label': 'What is picked' },
      state.problem && h('p', { className: 'note', role: 'alert' }, state.problem),
      node && nodePanel(fetcher, node),
      edge && edgePanel(edge),
      nodes.size > MOST_NODES && h('p', { className: 'note' }, `The first ${MOST_NODES} of ${nodes.size} nodes are drawn.`),
      !node && !edge && h('p', { className: 'hint' }, 'Pick a node to see what is known of it and to follow its lists.'),
      allNodes(),
      state.asked && queryPanel(state.asked),
    ),
  );
};
