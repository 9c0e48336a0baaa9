// A link to what is seen: its fragment holds the operation, its variables and the view. Browsers send no fragment to a server.
import { kindOf, open, variables, written } from './editor.js';
import { change, h, state, useChanges } from './page.js';

const MOST_CHARACTERS = 100_000;

const link = () => {
  const parts = Object.entries({ view: state.view, query: written(), variables: variables() }).filter(([, text]) => text.trim());
  return Object.assign(new URL(document.baseURI), { hash: String(new URLSearchParams(parts)) }).href;
};

/** Opens what the fragment holds, in a tab of its own. It runs nothing: whoever follows a link reads it first. */
export const openLink = async (views) => {
  const given = new URLSearchParams(window.location.hash.slice(1, MOST_CHARACTERS));
  const [view, query] = [given.get('view'), given.get('query')];
  if (query) {
    await open(query, given.get('variables') || '');
    change({ note: kindOf(query) === 'mutation' ? 'This mutation is from a link. Read it before you run it.' : '' });
  }
  if (views.includes(view)) {
    change({ view });
  }
};

const copy = async () => {
  const made = link();
  window.history.replaceState(null, '', made);
  const isCopied = await navigator.clipboard?.writeText(made).then(() => true, () => false);
  change({ note: isCopied ? 'The link is copied. It holds the operation, its variables and the view.' : 'The link is in the address bar.' });
};

export const ShareButton = () =>
  h('button', { type: 'button', className: 'head-button', onClick: copy, title: 'Copy a link to this operation, its variables and this view' }, 'Copy link');

export const Note = () => {
  useChanges();
  return h(
    'div',
    { role: 'status', className: 'page-note' },
    state.note && h('p', { className: 'note' }, state.note, ' ', h('button', { type: 'button', className: 'plain', onClick: () => change({ note: '' }) }, 'Close')),
  );
};
