// Where the label of a node is: at the side where it covers the fewest arrowheads, lines and other nodes.

const GAP = 4;
const LINE = 14;
const WIDEST = 150;
// The average width of a letter at the size of labels, and how far an arrowhead reaches from a node.
const LETTER = 6;
const ARROW = 9;

// In the order in which they are preferred: where the label begins, seen from its node.
const SIDES = { bottom: [0, 1], top: [0, -1], right: [1, 0], left: [-1, 0] };
const sideOf = (node) => node.data('side') || 'bottom';
const pull = (node, axis) => SIDES[sideOf(node)][axis];

/** The part of a node's style that places its label. */
export const labelStyle = {
  'text-wrap': 'wrap',
  'text-max-width': WIDEST,
  'text-valign': (node) => ({ '-1': 'top', 0: 'center', 1: 'bottom' })[pull(node, 1)],
  'text-halign': (node) => ({ '-1': 'left', 0: 'center', 1: 'right' })[pull(node, 0)],
  'text-margin-x': (node) => GAP * pull(node, 0),
  'text-margin-y': (node) => GAP * pull(node, 1),
};

/** The middle of a label's edge toward its node, and which part of the text is there (SVG's `text-anchor`). */
export const labelPlace = (node) => {
  const { x, y } = node.position();
  const [right, down] = SIDES[sideOf(node)];
  return {
    x: x + right * (node.width() / 2 + GAP),
    y: y + down * (node.height() / 2 + GAP),
    down,
    anchor: { '-1': 'end', 0: 'middle', 1: 'start' }[right],
  };
};

/** How much a label at a side would cover. */
const covered = (node, [right, down], others) => {
  const { x, y } = node.position();
  const radius = node.width() / 2;
  const width = (node.data('label') || '').length * LETTER;
  const half = { x: Math.min(width, WIDEST) / 2, y: (Math.ceil(width / WIDEST) * LINE) / 2 };
  const center = { x: x + right * (radius + GAP + half.x), y: y + down * (radius + GAP + half.y) };
  const holds = (point, margin) => Math.abs(point.x - center.x) < half.x + margin && Math.abs(point.y - center.y) < half.y + margin;
  const neighbors = node.connectedEdges().filter((edge) => !edge.isLoop()).map((edge) => {
    const isArrow = edge.target().same(node);
    const to = (isArrow ? edge.source() : edge.target()).position();
    const share = (radius + ARROW) / (Math.hypot(to.x - x, to.y - y) || 1);
    return holds({ x: x + share * (to.x - x), y: y + share * (to.y - y) }, 2) ? 1 + isArrow : 0;
  });
  const hidden = others.filter((other) => !other.same(node) && holds(other.position(), radius)).length;
  return neighbors.reduce((sum, each) => sum + each, 2 * hidden);
};

/** Puts each label at the best side of its node. */
export const placeLabels = (graph) =>
  graph.batch(() => {
    const nodes = graph.nodes();
    nodes.forEach((node) => {
      const sides = Object.entries(SIDES).map(([name, side]) => [name, covered(node, side, nodes)]);
      const [best] = sides.reduce((found, next) => (next[1] < found[1] ? next : found));
      node.data('side', best);
    });
  });
