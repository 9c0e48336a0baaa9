// What is asked of the server while the page still loads its libraries.
import { ask, settings } from './page.js';

/** The examples with values of the table; the page's own if the server gives none. */
export const examples = ask('examples').then(
  (found) => (found.length ? found : settings.examples),
  () => settings.examples,
);
