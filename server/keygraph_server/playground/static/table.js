// The model in the table, as `keygraph describe` prints it, and the raw items behind a node.
import { ask, change, h, settings, state, useChanges, useDescription } from './page.js';

const table = (caption, heads, rows) =>
  h(
    'div',
    { className: 'scrolls', tabIndex: 0, role: 'group', 'aria-label': caption },
    h(
      'table',
      { className: 'plain-table' },
      h('caption', null, caption),
      h('thead', null, h('tr', null, heads.map((head) => h('th', { key: head, scope: 'col' }, head)))),
      h('tbody', null, rows),
    ),
  );

export const pathTable = (paths) =>
  table(
    'Access paths',
    ['list', 'finds', 'request'],
    paths.map((path) =>
      h(
        'tr',
        { key: path.name },
        h('th', { scope: 'row' }, path.name),
        h('td', null, path.found),
        h(
          'td',
          null,
          h('code', null, path.request),
          path.filter && h('small', null, 'filter: ', h('code', null, path.filter)),
          path.needs.length > 0 && h('small', null, `needs: ${path.needs.join(', ')}`),
          path.narrowedBy.length > 0 && h('small', null, `narrowed by: ${path.narrowedBy.join(', ')}`),
        ),
      ),
    ),
  );

const keysTable = (keys) =>
  table(
    'Keys',
    ['in', 'partition key', 'sort key'],
    keys.map(({ index, partition, sort, shards }) =>
      h(
        'tr',
        { key: index || 'table' },
        h('th', { scope: 'row' }, index || 'table'),
        h('td', null, h('code', null, partition), shards > 0 && h('small', null, `${shards} shards`)),
        h('td', null, h('code', null, sort)),
      ),
    ),
  );

export const TypeDescription = ({ type }) =>
  h(
    'section',
    { className: 'described' },
    h('h2', null, type.name, ' ', h('small', null, type.kind)),
    type.description && h('p', null, type.description),
    keysTable(type.keys),
    type.byKey && h('p', { className: 'by-key' }, 'By its key: ', h('code', null, type.byKey)),
    type.lists.length > 0 && pathTable(type.lists),
  );

// --- Raw items ------------------------------------------------------------------------------------------

const shownTyped = (typed) => {
  const [[type, value]] = Object.entries(typed);
  const text = typeof value === 'object' || typeof value === 'boolean' ? JSON.stringify(value) : String(value);
  return [h('span', { key: 'v', className: 'typed' }, text), h('small', { key: 't', className: 'typed-type' }, type)];
};

const itemRow = (keys, { type, id, item }, place) => {
  const others = Object.keys(item).filter((name) => !keys.includes(name));
  return h(
    'tr',
    { key: place },
    keys.map((name) => h('td', { key: name }, h('code', null, item[name] ? Object.values(item[name])[0] : ''))),
    h('td', null, type || 'unknown', id && h('small', null, `id: ${id}`)),
    h(
      'td',
      null,
      h('dl', { className: 'attributes' }, others.map((name) => [h('dt', { key: name }, name), h('dd', { key: `${name}:` }, shownTyped(item[name]))])),
    ),
  );
};

const RawItems = () => {
  const [found, setFound] = React.useState(null);
  const wanted = state.itemsOf;
  React.useEffect(() => {
    let isGone = false;
    if (wanted) {
      ask('items', { id: wanted })
        .catch((error) => ({ error: error.message }))
        .then((content) => isGone || setFound(content));
    }
    return () => {
      isGone = true;
    };
  }, [wanted]);
  const look = (event) => {
    event.preventDefault();
    change({ itemsOf: new FormData(event.target).get('id').trim() });
  };
  return h(
    'section',
    { className: 'described' },
    h('h2', null, 'Raw items behind a node'),
    h(
      'form',
      { className: 'look', onSubmit: look, key: wanted },
      h('label', null, 'The id of a node ', h('input', { name: 'id', defaultValue: wanted || '', required: true, spellCheck: false })),
      h('button', { type: 'submit' }, 'Look'),
    ),
    !wanted && h('p', { className: 'hint' }, 'Pick a node in the Graph view, or write an id.'),
    found?.error && h('p', { className: 'note', role: 'alert' }, found.error),
    found?.items && table(`${found.type}: the partition ${found.partition}`, [...found.keys, 'type', 'attributes'], found.items.map((each, place) => itemRow(found.keys, each, place))),
    found?.items?.length === 0 && h('p', { className: 'hint' }, 'No item stands there.'),
    found?.hasMore && h('p', { className: 'hint' }, `The first ${found.items.length} items; there are more.`),
  );
};

export const TableView = () => {
  useChanges();
  const description = useDescription();
  return h(
    'div',
    { className: 'document', tabIndex: 0, role: 'region', 'aria-label': 'The table' },
    settings.showsItems && h(RawItems),
    !description && h('p', { role: 'status' }, 'Reading the model …'),
    description?.error && h('p', { className: 'note', role: 'alert' }, description.error),
    description?.types?.map((type) => h(TypeDescription, { key: type.name, type })),
    description?.root?.length > 0 && h('section', { className: 'described' }, h('h2', null, 'At the root'), pathTable(description.root)),
  );
};
