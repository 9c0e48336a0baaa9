// The field for a token, where the server verifies them: each request goes with the token that stands there.
import { h } from './page.js';

const KEY = 'keygraph:token';

// Only for this tab, and only until it is closed. Without storage (it may be blocked) a reload forgets the token.
const stored = (work) => {
  try {
    return work(window.sessionStorage);
  } catch {
    return null;
  }
};
let token = stored((storage) => storage.getItem(KEY)) || '';

const take = (event) => {
  token = event.target.value.trim().replace(/^bearer\s+/i, '');
  stored((storage) => storage.setItem(KEY, token));
};

export const TokenField = () =>
  h(
    'label',
    { className: 'token' },
    'Token ',
    h('input', {
      type: 'password',
      autoComplete: 'off',
      spellCheck: false,
      placeholder: 'none: anonymous',
      defaultValue: token,
      onChange: take,
    }),
  );

export const withToken = (fetcher) => (params, options) => {
  if (!token) {
    return fetcher(params, options);
  }
  const headers = { Authorization: `Bearer ${token}`, ...(options && options.headers) };
  return fetcher(params, { ...options, headers });
};
