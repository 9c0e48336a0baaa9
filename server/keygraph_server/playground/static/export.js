// Files of what is seen: items as JSON lines, which `keygraph load` reads, or as CSV.
import { typedText } from './item.js';

export const jsonLines = (items) => items.map((item) => `${JSON.stringify({ Item: item })}\n`).join('');

const quoted = (text) => (/[",;\t\r\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text);

/** The text; a spreadsheet would compute what begins so, unless it is a number, and run what clients have stored. */
const inert = (text) => (/^\s*[=+\-@＝＋－＠]|^[\t\r\n]/.test(text) && Number.isNaN(Number(text)) ? `'${text}` : text);

/** A line for each item, a column for each attribute. RFC 4180. */
export const csv = (items, keys) => {
  const names = [...new Set([...keys, ...items.flatMap(Object.keys)])];
  const lines = items.map((item) => names.map((name) => (item[name] ? typedText(item[name]) : '')));
  return [names, ...lines].map((line) => `${line.map(inert).map(quoted).join(',')}\r\n`).join('');
};

/** Lets the browser save a text as a file. */
export const save = (name, type, text) => {
  const address = URL.createObjectURL(new Blob([text], { type }));
  const link = Object.assign(document.createElement('a'), { href: address, download: name });
  link.click();
  URL.revokeObjectURL(address);
};
