// The model as a diagram: its types with their keys, and the access path of each list.
import { Canvas, hueOf } from './canvas.js';
import { change, h, state, useChanges, useDescription } from './page.js';
import { TypeDescription, pathTable } from './access.js';

const ROOT = 'Query';
let drawn = null;

const keyLines = (type) => {
  const [own, ...indexes] = type.keys;
  const lines = own ? [own.partition, ...(own.sort ? [own.sort] : [])] : [];
  return [type.name, ...lines, ...indexes.map(({ index, partition }) => `${index}: ${partition}`)];
};

// Of a font of 11 pixels, so that nothing has to be drawn before it is arranged.
const box = (id, lines, names) => ({
  data: {
    id,
    label: lines.join('\n'),
    hue: hueOf(names, id),
    isBox: true,
    width: Math.max(...lines.map((line) => line.length)) * 6.8 + 16,
    height: lines.length * 13 + 14,
  },
});

/** Nodes are the types that something leads to, edges the lists, from the type whose list it is to what it finds. */
const elementsOf = (description) => {
  if (drawn?.description === description) {
    return drawn.elements;
  }
  const names = description.types.map(({ name }) => name);
  const ways = [
    ...description.types.flatMap((type) => type.lists.map((path) => ({ from: type.name, path }))),
    ...description.root.map((path) => ({ from: ROOT, path })),
  ];
  const isShown = (type) => type.kind.includes('node') || ways.some(({ path }) => path.nodes.includes(type.name));
  const boxes = description.types.filter(isShown).map((type) => box(type.name, keyLines(type), names));
  if (description.root.length) {
    boxes.push(box(ROOT, [ROOT, 'the root'], names));
  }
  const arrows = ways.flatMap(({ from, path }) =>
    path.nodes.map((to) => ({ data: { id: `${from}.${path.name} ${to}`, source: from, target: to, label: path.name } })),
  );
  drawn = { description, elements: [...boxes, ...arrows] };
  return drawn.elements;
};

const pathOf = (description, picked) => {
  const [place] = picked.split(' ');
  const [owner, name] = place.split('.');
  const lists = owner === ROOT ? description.root : description.types.find((type) => type.name === owner)?.lists;
  return lists?.find((path) => path.name === name);
};

const pickedPanel = (description, picked) => {
  const type = description.types.find(({ name }) => name === picked);
  if (type) {
    return h(TypeDescription, { type });
  }
  if (picked === ROOT) {
    return h('section', { className: 'described' }, h('h2', null, 'At the root'), pathTable(description.root));
  }
  const path = picked && pathOf(description, picked);
  return path
    ? h('section', { className: 'described' }, h('h2', null, picked.split(' ')[0]), pathTable([path]))
    : h('p', { className: 'hint' }, 'Pick a type or a list to see its keys and its request.');
};

export const SchemaView = () => {
  useChanges();
  const description = useDescription();
  if (!description || description.error) {
    return h('div', { className: 'empty' }, h('p', { role: 'status' }, description?.error || 'Reading the model …'));
  }
  const picked = state.pickedType;
  return h(
    'div',
    { className: 'split' },
    h(Canvas, {
      elements: elementsOf(description),
      selected: picked,
      onPick: (pickedType) => change({ pickedType }),
      kind: 'model',
      label: `${description.types.length} types. The list beside has all of them.`,
    }),
    h(
      'aside',
      { className: 'side', 'aria-label': 'What is picked' },
      pickedPanel(description, picked),
      h(
        'details',
        { open: true },
        h('summary', null, `${description.types.length} types`),
        h(
          'ul',
          { className: 'all-nodes' },
          description.types.map(({ name, kind }) =>
            h(
              'li',
              { key: name },
              h(
                'button',
                { type: 'button', 'aria-pressed': picked === name, onClick: () => change({ pickedType: name }) },
                name,
                ' ',
                h('small', null, kind),
              ),
            ),
          ),
        ),
      ),
    ),
  );
};
