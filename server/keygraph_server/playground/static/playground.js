// Opens GraphiQL on the GraphQL address beside this page, with the queries that the page carries.
(() => {
  'use strict';

  const root = document.getElementById('playground');
  const settings = JSON.parse(document.getElementById('settings').textContent);

  if (!['React', 'ReactDOM', 'GraphiQL', 'GraphiQLPluginExplorer'].every((name) => name in window)) {
    root.firstElementChild.textContent =
      'GraphiQL could not be loaded. Where the browser cannot reach the CDN, run “make install” with npm present; ' +
      'the server then serves GraphiQL itself.';
    return;
  }

  // A namespace of its own, because every server on this host and port shares one localStorage, and the tabs of
  // another graph would open here. Without storage (it may be blocked) GraphiQL forgets its tabs, and works.
  const openStorage = () => {
    try {
      window.localStorage.getItem('');
      return GraphiQL.createLocalStorage({ namespace: `keygraph:${settings.title}` });
    } catch {
      return null;
    }
  };

  const fetcher = GraphiQL.createFetcher({ url: new URL('graphql', document.baseURI).href });
  const page = React.createElement(
    GraphiQL,
    {
      fetcher: KeygraphCost.withCost(settings.asksForToken ? KeygraphToken.withToken(fetcher) : fetcher),
      defaultQuery: settings.queries,
      plugins: [GraphiQLPluginExplorer.explorerPlugin()],
      storage: openStorage(),
    },
    React.createElement(GraphiQL.Logo, null, settings.title, settings.asksForToken && React.createElement(KeygraphToken.Field)),
    React.createElement(GraphiQL.Footer, null, React.createElement(KeygraphCost.Panel)),
  );
  ReactDOM.createRoot(root).render(page);
})();
