// The list of examples, as a plugin of GraphiQL: each opens in a tab of its own.
import { examples } from './begin.js';
import { open } from './editor.js';
import { h, settings, useChanges } from './page.js';

/** The examples, or the page's own if they do not come soon. */
export const loadExamples = (seconds) => {
  const late = new Promise((resolve) => setTimeout(resolve, seconds * 1000, settings.examples));
  return Promise.race([examples, late]);
};

/** A name that may break before its capital letters. */
const breakable = (name) => name.split(/(?=[A-Z])/).map((word, place) => [place > 0 && h('wbr', { key: place }), word]);

const list = (shown) =>
  h(
    'ul',
    { className: 'examples' },
    shown.map((example) =>
      h(
        'li',
        { key: example.name },
        h(
          'button',
          { type: 'button', onClick: () => open(example.document, example.variables) },
          h('strong', null, breakable(example.name)),
          example.kind !== 'query' && h('span', { className: 'examples-kind' }, example.kind),
          example.description && h('span', { className: 'examples-text' }, example.description),
        ),
      ),
    ),
  );

export const examplesPlugin = (offered) => {
  const Icon = () =>
    h(
      'svg',
      { viewBox: '0 0 24 24', fill: 'none', stroke: 'currentColor', strokeWidth: 1.5, 'aria-hidden': true },
      h('path', { d: 'M4 6h2M4 12h2M4 18h2M9 6h11M9 12h11M9 18h11', strokeLinecap: 'round' }),
    );
  const Content = () => {
    useChanges();
    const written = offered.filter((example) => !example.is_made);
    const made = offered.filter((example) => example.is_made);
    return h(
      'div',
      { className: 'examples-panel' },
      written.length > 0 && [h('h2', { key: 'h' }, 'Examples'), h(React.Fragment, { key: 'l' }, list(written))],
      made.length > 0 && [h('h2', { key: 'm' }, 'From your schema'), h(React.Fragment, { key: 'n' }, list(made))],
    );
  };
  return { title: 'Examples', icon: Icon, content: Content };
};

/** Names the explorer's fields for screen readers. */
const nameFields = (root) => {
  for (const field of root.querySelectorAll('input:not([aria-label]), select:not([aria-label])')) {
    field.setAttribute('aria-label', field.closest('[data-arg-name]')?.dataset.argName || 'Operation');
  }
};

/** GraphiQL's explorer, which opens where the first chosen field is. */
export const explorerPlugin = () => {
  const plugin = window.explorerPlugin();
  const Explorer = plugin.content;
  const Content = () => {
    const root = React.useRef(null);
    React.useEffect(() => {
      const seek = setTimeout(() => {
        // An open field stands with its own fields in an element of its name.
        const open = root.current?.querySelector('.graphiql-explorer-root [class^="graphiql-explorer-"]:not(.graphiql-explorer-node) > .graphiql-explorer-node');
        open?.scrollIntoView({ block: 'start', inline: 'nearest' });
      }, 300);
      const named = new MutationObserver(() => nameFields(root.current));
      named.observe(root.current, { childList: true, subtree: true });
      nameFields(root.current);
      return () => {
        clearTimeout(seek);
        named.disconnect();
      };
    }, []);
    return h('div', { ref: root, className: 'explorer-panel' }, h(Explorer));
  };
  return { ...plugin, content: Content };
};
