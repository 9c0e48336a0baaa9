// What is drawn, as SVG: the same colors and places, with text that stays text.
import { labelPlace } from './labels.js';

const escaped = (text) => String(text).replace(/[&<>"]/g, (sign) => `&#${sign.charCodeAt(0)};`);

const element = (name, attributes, content = '') =>
  `<${name} ${Object.entries(attributes).map(([key, value]) => `${key}="${escaped(value)}"`).join(' ')}>${content}</${name}>`;

const text = (label, x, y, style, size, anchor = 'middle') =>
  label
    ? element(
        'text',
        { x, y, 'text-anchor': anchor, 'font-size': size, fill: style('color') },
        label.split('\n').map((line, place) => element('tspan', { x, dy: place ? size * 1.2 : 0 }, escaped(line))).join(''),
      )
    : '';

const drawnNode = (node) => {
  const style = (name) => node.style(name);
  const { x, y } = node.position();
  const [width, height] = [node.width(), node.height()];
  const isBox = style('shape') !== 'ellipse';
  const paint = { fill: style('background-color'), stroke: style('border-color'), 'stroke-width': parseFloat(style('border-width')) };
  const label = node.data('label') || '';
  const shape = isBox
    ? element('rect', { x: x - width / 2, y: y - height / 2, width, height, rx: 4, ...paint })
    : element('circle', { cx: x, cy: y, r: width / 2, ...paint });
  const place = labelPlace(node);
  const rows = label.split('\n').length - 1;
  const baseline = { '-1': -2 - 11 * 1.2 * rows, 0: 4, 1: 10 }[place.down];
  return shape + text(label, place.x, place.y + baseline, style, 11, place.anchor);
};

const drawnEdge = (edge) => {
  const style = (name) => edge.style(name);
  const [from, to, middle] = [edge.sourceEndpoint(), edge.targetEndpoint(), edge.midpoint()];
  // A curve through the middle of the drawn one.
  const bend = { x: 2 * middle.x - (from.x + to.x) / 2, y: 2 * middle.y - (from.y + to.y) / 2 };
  const line = element('path', {
    d: `M${from.x} ${from.y}Q${bend.x} ${bend.y} ${to.x} ${to.y}`,
    fill: 'none',
    stroke: style('line-color'),
    'stroke-width': parseFloat(style('width')),
    'marker-end': 'url(#arrow)',
  });
  return line + text(edge.data('label'), middle.x, middle.y, style, 10);
};

/** The drawing as a document. */
export const svg = (graph) => {
  const { x1, y1, w, h } = graph.elements().boundingBox();
  const arrow = element(
    'marker',
    { id: 'arrow', viewBox: '0 0 8 8', refX: 7, refY: 4, markerWidth: 7, markerHeight: 7, orient: 'auto' },
    element('path', { d: 'M0 0 8 4 0 8Z', fill: graph.edges().nonempty() ? graph.edges()[0].style('line-color') : 'none' }),
  );
  const drawn = [...graph.edges().map(drawnEdge), ...graph.nodes().map(drawnNode)].join('\n');
  return element(
    'svg',
    { xmlns: 'http://www.w3.org/2000/svg', viewBox: `${x1 - 20} ${y1 - 20} ${w + 40} ${h + 40}`, 'font-family': 'system-ui, sans-serif' },
    `<defs>${arrow}</defs>\n${drawn}`,
  );
};
