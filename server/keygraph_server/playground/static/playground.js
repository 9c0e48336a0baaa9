// The page: its head, its views, and GraphiQL on the GraphQL address beside it.
import { AccessView } from './access.js';
import { CostPanel, withCost } from './cost.js';
import { toggleTheme } from './editor.js';
import { examplesPlugin, explorerPlugin, loadExamples } from './examples.js';
import { GraphView } from './graph.js';
import { decorated, withIds } from './ids.js';
import { change, followTheme, h, settings, state, useChanges } from './page.js';
import { withSubscriptions } from './live.js';
import { SchemaView } from './model.js';
import { Note, ShareButton, openLink } from './share.js';
import { TableView } from './table.js';
import { TokenField, withToken } from './token.js';

const VIEWS = [
  ['query', 'Query'],
  ['graph', 'Graph'],
  ['schema', 'Schema'],
  ['table', 'Table'],
  ['access', 'Access paths'],
];
// GraphiQL's name for the width of the list on the left, as a share of the rest.
const PLUGIN_SHARE = 'graphiql:docExplorerFlex';
// Where GraphiQL's columns stand below each other; the same width as in the stylesheet.
const NARROW = '(max-width: 900px)';

// A namespace of its own, because every server on this host and port shares one localStorage, and the tabs of
// another graph would open here. Without storage (it may be blocked) GraphiQL forgets its tabs, and works.
const openStorage = () => {
  try {
    window.localStorage.getItem('');
    const storage = createLocalStorage({ namespace: `keygraph:${settings.table}` });
    if (!storage.getItem(PLUGIN_SHARE)) {
      storage.setItem(PLUGIN_SHARE, '0.22');
    }
    return storage;
  } catch {
    return null;
  }
};

const show = (view) => {
  change({ view });
  document.getElementById(`tab-${view}`)?.focus();
};

const turn = (event) => {
  const step = { ArrowRight: 1, ArrowLeft: -1 }[event.key];
  if (step) {
    event.preventDefault();
    const place = VIEWS.findIndex(([view]) => view === state.view);
    show(VIEWS[(place + step + VIEWS.length) % VIEWS.length][0]);
  }
};

const tab = ([view, name]) =>
  h(
    'button',
    {
      key: view,
      id: `tab-${view}`,
      type: 'button',
      role: 'tab',
      'aria-selected': state.view === view,
      'aria-controls': `view-${view}`,
      tabIndex: state.view === view ? 0 : -1,
      onClick: () => show(view),
    },
    name,
  );

const head = () =>
  h(
    'header',
    { className: 'head' },
    h('h1', null, h('img', { src: 'playground/page/icon.svg', alt: '', width: 20, height: 20 }), 'Keygraph'),
    h('p', { className: 'head-names' }, h('strong', null, settings.table), ' ', h('span', null, settings.model)),
    h('div', { role: 'tablist', 'aria-label': 'Views', className: 'views', onKeyDown: turn }, VIEWS.map(tab)),
    settings.asksForToken && h(TokenField),
    h(ShareButton),
    h(
      'button',
      { type: 'button', className: 'head-button', onClick: toggleTheme, 'aria-label': 'Light or dark', title: 'Light or dark' },
      '◐',
    ),
  );

const Page = ({ fetcher, examples }) => {
  useChanges();
  // GraphiQL is made once: it stays as it is while other views are shown.
  const editor = React.useMemo(
    () => {
      const list = examplesPlugin(examples);
      const [first] = examples;
      const storage = openStorage();
      return h(
        GraphiQL,
        {
          fetcher,
          defaultQuery: first?.document || '',
          defaultTabs: [{ query: first?.document || '', variables: first?.variables || null }],
          // GraphiQL takes the query of the first tab, and not its variables.
          initialVariables: storage?.getItem('graphiql:tabState') ? undefined : first?.variables,
          plugins: [list, explorerPlugin(), HISTORY_PLUGIN],
          visiblePlugin: window.matchMedia(NARROW).matches ? undefined : list,
          storage,
        },
        h(GraphiQL.Logo, null, ' '),
        h(GraphiQL.Footer, null, h(CostPanel)),
      );
    },
    [],
  );
  const contents = { query: editor, graph: h(GraphView, { fetcher }), schema: h(SchemaView), table: h(TableView, { fetcher }), access: h(AccessView) };
  return h(
    'div',
    { className: 'keygraph' },
    head(),
    h(Note),
    h(
      'main',
      null,
      VIEWS.map(([view]) =>
        h(
          'div',
          { key: view, id: `view-${view}`, role: 'tabpanel', 'aria-labelledby': `tab-${view}`, className: 'view', hidden: state.view !== view },
          view === 'query' || state.view === view ? contents[view] : null,
        ),
      ),
    ),
  );
};

// For tests, and for whoever looks at the page with the browser's tools.
window.keygraph = { state, decorated };

const start = async () => {
  const root = document.getElementById('playground');
  if (!window.GraphiQL) {
    root.firstElementChild.textContent = 'GraphiQL is not installed here, or could not be loaded. “make install” installs it, with npm.';
    return;
  }
  followTheme();
  const url = new URL('graphql', document.baseURI).href;
  const plain = withSubscriptions(createGraphiQLFetcher({ url, enableIncrementalDelivery: false }), url);
  const fetcher = withIds(withCost(settings.asksForToken ? withToken(plain) : plain));
  const examples = await loadExamples(1);
  createRoot(root).render(h(Page, { fetcher, examples }));
  const follow = () => openLink(VIEWS.map(([view]) => view));
  window.addEventListener('hashchange', follow);
  follow();
};

start();
