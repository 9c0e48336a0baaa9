// The model as an entity-relationship diagram: a box for each type, with its fields and keys, and an arrow for each list.
import { save } from './export.js';
import { layOut } from './layers.js';
import { color, h, kept, typeColor } from './page.js';

const LINE = 16;
const HEAD = 24;
const PAD = 8;
/** Of a monospaced font of 12 pixels. */
const LETTER = 7.25;
const MOST_LETTERS = 44;
const MOST_FIELDS = 14;
const ROOT_LINE = 20;
const ZOOMS = [0.25, 0.35, 0.5, 0.7, 0.85, 1, 1.25, 1.5, 2];
const FONT = { fontFamily: 'ui-monospace, Menlo, Consolas, "DejaVu Sans Mono", monospace', fontSize: 12 };

export const ROOT = 'Query';
const zoom = kept('schema-zoom', 1);

const cut = (text) => (text.length > MOST_LETTERS ? `${text.slice(0, MOST_LETTERS - 1)}…` : text);

/** The lines of text in a box, each with how it is drawn. */
const rowsOf = ({ fields, keys }) => [
  ...fields.slice(0, MOST_FIELDS).map(({ name, type, isOptional, isKey }) => ({ text: `${name}: ${type}${isOptional ? '?' : ''}`, isKey })),
  ...(fields.length > MOST_FIELDS ? [{ text: `and ${fields.length - MOST_FIELDS} more`, isMuted: true }] : []),
  ...keys.flatMap(({ index, partition, sort, shards }) => [
    { text: `${index || 'table'}${shards ? `, ${shards} shards` : ''}`, isRule: true, isMuted: true },
    { text: partition },
    ...(sort ? [{ text: sort }] : []),
  ]),
];

const boxOf = (type, roots) => {
  const rows = rowsOf(type);
  const letters = Math.max(...rows.map(({ text }) => cut(text).length), (type.name.length + type.kind.length) * 1.15 + 3);
  return {
    type,
    rows,
    roots,
    width: Math.round(letters * LETTER) + 2 * PAD,
    height: HEAD + rows.length * LINE + PAD,
    above: roots.length ? roots.length * ROOT_LINE + 14 : 0,
  };
};

const requestLine = ({ request, filter }) => (filter ? `${request}, filter: ${filter}` : request);

/** Boxes and lines. A list is drawn over the type of its edge; an edge that no list shows is joined to its ends by lines. */
const drawingOf = ({ types, root }) => {
  const boxes = types.map((type) => boxOf(type, root.filter(({ nodes }) => nodes.includes(type.name))));
  const box = new Map(boxes.map((each) => [each.type.name, each]));
  const lines = [];
  const join = (key, from, to, list, text) =>
    lines.push({ key, list, text, from: box.get(from), to: box.get(to), room: Math.round(text.length * 6.8) });
  for (const type of types) {
    for (const path of type.lists) {
      const key = `${type.name}.${path.name}`;
      if (path.edge) {
        join(key, type.name, path.edge, path, path.name);
      }
      path.nodes.filter((name) => box.has(name)).forEach((name, at) => join(key, path.edge || type.name, name, path, path.edge || at ? '' : path.name));
    }
  }
  const isJoined = (one, other) => lines.some(({ from, to }) => (from === one && to === other) || (from === other && to === one));
  for (const type of types.filter(({ kind }) => kind.includes('edge'))) {
    for (const end of new Set(type.ends)) {
      if (box.has(end) && !isJoined(box.get(type.name), box.get(end))) {
        join(null, type.name, end, null, '');
      }
    }
  }
  return { boxes, lines, ...layOut(boxes, lines) };
};

let drawn = null;

/** The boxes and lines of a model with their places, and the size of it all. */
export const drawing = (description) => {
  if (drawn?.description !== description) {
    drawn = { description, ...drawingOf(description) };
  }
  return drawn;
};

/** Something to pick; what it is called is the text in it. */
const pressable = (id, selected, onPick, more, ...content) =>
  h(
    'g',
    {
      role: 'button',
      tabIndex: 0,
      'aria-pressed': selected === id,
      'data-id': id,
      onClick: () => onPick(id),
      onKeyDown: (event) => {
        if (event.key === 'Enter' || event.key === ' ') {
          event.preventDefault();
          onPick(id);
        }
      },
      ...more,
    },
    ...content,
  );

const row = ({ text, isKey, isRule, isMuted }, at, { x, y, width }) => {
  const top = y + HEAD + at * LINE;
  return h(
    React.Fragment,
    { key: at },
    isRule && h('path', { d: `M${x} ${top + 2.5}H${x + width}`, stroke: 'var(--line)' }),
    h(
      'text',
      { ...FONT, x: x + PAD, y: top + 14, fill: isMuted ? 'var(--muted)' : 'var(--text)', fontWeight: isKey ? 700 : 400 },
      cut(text),
      cut(text) !== text && h('title', null, text),
    ),
  );
};

const drawnBox = (box, selected, onPick) => {
  const { type, rows, x, y, width, height } = box;
  const isNode = type.kind.includes('node');
  const tint = `var(--${typeColor(type.name)})`;
  return pressable(
    type.name,
    selected,
    onPick,
    { key: type.name, className: 'er-box' },
    h('rect', { x, y, width, height, rx: isNode ? 3 : 12, fill: 'var(--raised)', stroke: tint, strokeWidth: selected === type.name ? 4 : isNode ? 2 : 1.5, strokeDasharray: isNode ? undefined : '5 3' }),
    h(
      'text',
      { x: x + PAD, y: y + 16, fontSize: 13, fill: 'var(--text)' },
      h('tspan', { fontWeight: 700, fill: tint }, type.name),
      h('tspan', { fill: 'var(--muted)', fontSize: 12, dx: 8 }, type.kind),
    ),
    rows.map((each, at) => row(each, at, box)),
  );
};

const arrow = (d, isPicked, isList) =>
  h('path', {
    key: d,
    d,
    fill: 'none',
    stroke: isPicked ? 'var(--accent)' : 'var(--line-strong)',
    strokeWidth: isPicked ? 2.5 : 1.5,
    markerEnd: isList ? `url(#er-arrow${isPicked ? '-picked' : ''})` : undefined,
  });

const listLabel = (key, path) => `${key}: ${path.found}. ${requestLine(path)}`;

/** Says what a list reads while a pointer or the focus is on it. */
const hovering = (key, path, onHover) => {
  const [begin, end] = [() => onHover(`${key}: ${requestLine(path)}`), () => onHover('')];
  return { onMouseEnter: begin, onMouseLeave: end, onFocus: begin, onBlur: end };
};

/** The lists of one name and type: all of their lines, and their name where they begin. */
const drawnList = (key, own, selected, onPick, onHover) => {
  const [{ list: path, text, start, from }] = own;
  const isPicked = [key, from.type.name].includes(selected);
  const isLeft = start.side === 'left';
  return pressable(
    key,
    selected,
    onPick,
    { key, className: 'er-list', ...hovering(key, path, onHover) },
    h('title', null, listLabel(key, path)),
    // Wider than it is drawn, so that a pointer finds it.
    own.map((line) => h('path', { key: `${line.path} `, d: line.path, fill: 'none', stroke: 'transparent', strokeWidth: 12 })),
    own.map((line) => arrow(line.path, isPicked, true)),
    h('text', { x: start.x + (isLeft ? -6 : 6), y: start.y - 4, textAnchor: isLeft ? 'end' : 'start', fontSize: 12, fill: isPicked ? 'var(--accent)' : 'var(--text)' }, text),
  );
};

const drawnRoots = ({ type, roots, x, y }, selected, onPick, onHover) =>
  roots.map((path, at) => {
    const key = `${ROOT}.${path.name}`;
    const isPicked = selected === key;
    const top = y - 14 - at * ROOT_LINE;
    return pressable(
      key,
      selected,
      onPick,
      { key: `${type.name} ${key}`, className: 'er-list', ...hovering(key, path, onHover) },
      h('title', null, listLabel(key, path)),
      arrow(`M${x + 14 + at * 8} ${top}V${y}`, isPicked, true),
      h('text', { x: x + 20 + roots.length * 8, y: top + 2, fontSize: 12, fill: isPicked ? 'var(--accent)' : 'var(--text)' }, key),
    );
  });

const marker = (id, fill) =>
  h(
    'marker',
    { id, viewBox: '0 0 10 10', refX: 9, refY: 5, markerWidth: 9, markerHeight: 9, markerUnits: 'userSpaceOnUse', orient: 'auto' },
    h('path', { d: 'M0 1 10 5 0 9Z', fill }),
  );

// --- Files ----------------------------------------------------------------------------------------------

/** What is drawn as a document of its own, with the colors of the theme in it. */
const svgText = (element) => {
  const copy = element.cloneNode(true);
  const { width, height } = element.viewBox.baseVal;
  Object.entries({ xmlns: 'http://www.w3.org/2000/svg', width, height, 'font-family': 'system-ui, sans-serif' }).forEach(([name, value]) => copy.setAttribute(name, value));
  return new XMLSerializer().serializeToString(copy).replaceAll(/var\(--([\w-]+)\)/g, (_, name) => color(name));
};

const pngOf = async (element) => {
  const image = new Image();
  image.src = `data:image/svg+xml,${encodeURIComponent(svgText(element))}`;
  await image.decode();
  const canvas = Object.assign(document.createElement('canvas'), { width: 2 * image.width, height: 2 * image.height });
  const context = canvas.getContext('2d');
  context.fillStyle = color('ground');
  context.fillRect(0, 0, canvas.width, canvas.height);
  context.drawImage(image, 0, 0, canvas.width, canvas.height);
  return new Promise((resolve) => {
    canvas.toBlob(resolve, 'image/png');
  });
};

const FILES = {
  PNG: async (element) => save('keygraph-schema.png', 'image/png', await pngOf(element)),
  SVG: async (element) => save('keygraph-schema.svg', 'image/svg+xml', svgText(element)),
};

// --- The diagram ----------------------------------------------------------------------------------------

/** Lets a mouse drag what scrolls. */
const drag = (event) => {
  if (event.pointerType !== 'mouse' || event.target.closest('[role=button]')) {
    return;
  }
  const frame = event.currentTarget;
  frame.setPointerCapture(event.pointerId);
  const move = ({ movementX, movementY }) => frame.scrollBy(-movementX, -movementY);
  const end = () => {
    frame.removeEventListener('pointermove', move);
    frame.removeEventListener('pointerup', end);
  };
  frame.addEventListener('pointermove', move);
  frame.addEventListener('pointerup', end);
};

export const Diagram = ({ description, selected, onPick }) => {
  const frame = React.useRef(null);
  const [hovered, setHovered] = React.useState('');
  const [scale, setScale] = React.useState(Number(zoom.get()) || 1);
  const { boxes, lines, width, height } = drawing(description);
  const turn = (wanted) => {
    zoom.set(wanted);
    setScale(wanted);
  };
  const step = (by) => turn((by > 0 ? ZOOMS.find((each) => each > scale) : ZOOMS.findLast((each) => each < scale)) || scale);
  const fit = () => turn(Math.min(1, (frame.current.clientWidth - 2) / width, (frame.current.clientHeight - 2) / height));
  React.useEffect(() => {
    const id = selected || boxes.find(({ column }) => column === 0).type.name;
    frame.current.querySelector(`[data-id="${CSS.escape(id)}"]`)?.scrollIntoView({ block: 'nearest', inline: 'nearest' });
  }, [selected, scale]);
  const lists = lines.reduce((found, line) => found.set(line.key, [...(found.get(line.key) || []), line]), new Map());
  const element = () => frame.current.querySelector('svg');
  return h(
    'div',
    { className: 'canvas-frame' },
    h(
      'div',
      {
        className: 'er',
        ref: frame,
        tabIndex: 0,
        role: 'group',
        'aria-label': `Diagram of ${boxes.length} types. The list beside has all of them.`,
        onPointerDown: drag,
        onKeyDown: (event) => ['+', '-'].includes(event.key) && step(event.key === '+' ? 1 : -1),
      },
      h(
        'svg',
        { viewBox: `0 0 ${width} ${height}`, width: width * scale, height: height * scale },
        h('defs', null, marker('er-arrow', 'var(--line-strong)'), marker('er-arrow-picked', 'var(--accent)')),
        (lists.get(null) || []).map(({ path }) => arrow(path, false, false)),
        [...lists].filter(([key]) => key).map(([key, own]) => drawnList(key, own, selected, onPick, setHovered)),
        boxes.map((box) => drawnRoots(box, selected, onPick, setHovered)),
        boxes.map((box) => drawnBox(box, selected, onPick)),
      ),
    ),
    hovered && h('p', { className: 'er-hovered', 'aria-hidden': true }, hovered),
    h(
      'div',
      { className: 'canvas-tools' },
      h('button', { type: 'button', 'aria-label': 'Smaller', onClick: () => step(-1) }, '−'),
      h('button', { type: 'button', title: 'Full size', onClick: () => turn(1) }, `${Math.round(scale * 100)} %`),
      h('button', { type: 'button', 'aria-label': 'Larger', onClick: () => step(1) }, '+'),
      h('button', { type: 'button', onClick: fit }, 'Fit'),
      Object.entries(FILES).map(([name, write]) => h('button', { key: name, type: 'button', onClick: () => write(element()) }, name)),
    ),
  );
};
