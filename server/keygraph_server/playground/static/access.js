// The model in the table as text, as `keygraph describe` prints it: keys, and the request of each list.
import { h, useDescription } from './page.js';

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

export const AccessView = () => {
  const description = useDescription();
  return h(
    'div',
    { className: 'document', tabIndex: 0, role: 'region', 'aria-label': 'Access paths' },
    !description && h('p', { role: 'status' }, 'Reading the model …'),
    description?.error && h('p', { className: 'note', role: 'alert' }, description.error),
    description?.types?.map((type) => h(TypeDescription, { key: type.name, type })),
    description?.root?.length > 0 && h('section', { className: 'described' }, h('h2', null, 'At the root'), pathTable(description.root)),
  );
};
