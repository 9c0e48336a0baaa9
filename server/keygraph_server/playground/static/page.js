// What all views share: the page's settings, what was asked last, and requests to the server.

export const h = (...words) => React.createElement(...words);
export const settings = JSON.parse(document.getElementById('settings').textContent);

/** What was asked last, and what came of it. Views redraw when it changes. */
export const state = {
  view: 'query',
  schema: null, // GraphQL's, once it is loaded
  asked: null, // { document, variables }
  answer: null, // with the ids and types of its nodes
  problem: '', // the message of its first error
  note: '', // what the page says above its views
  selected: null, // the key of a node in the picture
  cost: null,
  highlight: null, // the index of a request
  description: null, // of the model, once it is asked for
  types: [], // the names of the model's types in its order, nodes first
  closed: [], // the mutations that no rule allows who looks at the page
};

const listeners = new Set();

export const change = (changes) => {
  Object.assign(state, changes);
  listeners.forEach((listener) => listener());
};

/** Redraws a component when the state changes. */
export const useChanges = () => {
  const [, redraw] = React.useReducer((count) => count + 1, 0);
  React.useEffect(() => {
    listeners.add(redraw);
    return () => listeners.delete(redraw);
  }, []);
};

export const prefersDark = window.matchMedia('(prefers-color-scheme: dark)');

/** The theme that GraphiQL has chosen, else the system's; styles and pictures go by it. */
const takeTheme = () => {
  const chosen = ['dark', 'light'].find((theme) => document.body.classList.contains(`graphiql-${theme}`));
  const theme = chosen || (prefersDark.matches ? 'dark' : 'light');
  if (document.body.dataset.theme !== theme) {
    document.body.dataset.theme = theme;
    change({ theme });
  }
};

export const followTheme = () => {
  takeTheme();
  new MutationObserver(takeTheme).observe(document.body, { attributes: true, attributeFilter: ['class'] });
  prefersDark.addEventListener('change', takeTheme);
};

/** Something that is kept in the browser, where it lets us; without storage it holds as long as the page is open. */
export const kept = (name, usual) => {
  const key = `keygraph:${name}`;
  let value = usual;
  try {
    value = window.localStorage.getItem(key) ?? usual;
  } catch {
    // Storage is blocked.
  }
  return {
    get: () => value,
    set: (changed) => {
      value = String(changed);
      try {
        window.localStorage.setItem(key, value);
      } catch {
        // Storage is blocked.
      }
    },
  };
};

/** Asks the playground's own data, which is no part of the API. */
export const ask = async (name, body = {}) => {
  const response = await fetch(new URL(`playground/${name}`, document.baseURI), {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify(body),
  });
  const content = await response.json();
  if (!response.ok) {
    throw new Error(content.errors?.[0].message || `The server answered ${response.status}.`);
  }
  return content;
};

let description = null;

/** What the model is in the table; asked for once. */
export const useDescription = () => {
  const [found, setFound] = React.useState(state.description);
  React.useEffect(() => {
    description ??= ask('description').then((found) => {
      const nodesFirst = [...found.types].sort((one, other) => other.kind.includes('node') - one.kind.includes('node'));
      Object.assign(state, { description: found, closed: found.closed, types: nodesFirst.map(({ name }) => name) });
      return found;
    });
    description.then(setFound, (error) => setFound({ error: error.message }));
  }, []);
  return found;
};

/** A color of the page's theme, for what is drawn on a canvas. */
export const color = (name) =>
  getComputedStyle(document.querySelector('.keygraph')).getPropertyValue(`--${name}`).trim();

const HUES = 8;

/** The name of a type's color: the same in all views, by the place in the model. What is none of its types has a neutral one. */
export const typeColor = (type) => {
  const place = state.types.indexOf(type);
  return place < 0 ? 'line-strong' : `type-${place % HUES}`;
};

/** A list to pick from, each entry with the color of its type. */
export const pickList = (entries, picked, onPick) =>
  h(
    'ul',
    { className: 'all-nodes' },
    entries.map(({ key, type, label, note }) =>
      h(
        'li',
        { key },
        h('button', { type: 'button', 'aria-pressed': picked === key, onClick: () => onPick(key) }, typeDot(type), label, ' ', h('small', null, note)),
      ),
    ),
  );

export const typeDot = (type) => h('span', { className: 'dot', style: { background: `var(--${typeColor(type)})` } });

