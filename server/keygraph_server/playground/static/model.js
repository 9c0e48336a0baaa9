// The model as a diagram, and beside it what is picked: the keys of a type, or the access path of a list.
import { TypeDescription, pathTable } from './access.js';
import { Diagram, ROOT } from './diagram.js';
import { change, h, pickList, state, useChanges, useDescription } from './page.js';

const pathOf = (description, picked) => {
  const [owner, name] = picked.split('.');
  const lists = owner === ROOT ? description.root : description.types.find((type) => type.name === owner)?.lists;
  return lists?.find((path) => path.name === name);
};

const pickedPanel = (description, picked) => {
  const type = description.types.find(({ name }) => name === picked);
  if (type) {
    return h(TypeDescription, { type });
  }
  const path = picked && pathOf(description, picked);
  return path
    ? h('section', { className: 'described' }, h('h2', null, picked), pathTable([path]))
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
    h(Diagram, { description, selected: picked, onPick: (pickedType) => change({ pickedType }) }),
    h(
      'aside',
      { className: 'side', 'aria-label': 'What is picked' },
      pickedPanel(description, picked),
      h(
        'details',
        { open: true },
        h('summary', null, `${description.types.length} types`),
        pickList(
          description.types.map(({ name, kind }) => ({ key: name, type: name, label: name, note: kind })),
          picked,
          (pickedType) => change({ pickedType }),
        ),
      ),
    ),
  );
};
