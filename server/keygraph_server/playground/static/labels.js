// Where the label of a node is: at the side where it covers the fewest arrowheads, lines and other nodes.

const GAP = 4;
const SIZE = 11;
const WIDEST = 150;
// The height of a line and the average width of a letter, for each pixel of the size; how far an arrowhead reaches from a node, and
// where its line is beside the middle of a label.
const LINE = 1.3;
const LETTER = 0.55;
const ARROW = 9;
const BEHIND = 25;
// Labels of so few nodes keep their size on the screen down to this zoom. More would cover each other.
const FEW = 40;
const SMALLEST_ZOOM = 0.4;

// In the order in which they are preferred: where the label begins, seen from its node.
const SIDES = { bottom: [0, 1], top: [0, -1], right: [1, 0], left: [-1, 0] };
const sideOf = (node) => node.data('side') || 'bottom';
const pull = (node, axis) => SIDES[sideOf(node)][axis];

const sizeOf = (graph) => (graph.nodes().length > FEW ? SIZE : Math.round(SIZE / Math.min(1, Math.max(SMALLEST_ZOOM, graph.zoom()))));

/** The part of a node's style that places its label. */
export const labelStyle = {
  'font-size': (node) => sizeOf(node.cy()),
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
const covered = (node, [right, down], others, size) => {
  const { x, y } = node.position();
  const radius = node.width() / 2;
  const width = (node.data('label') || '').length * LETTER * size;
  const half = { x: Math.min(width, WIDEST) / 2, y: (Math.ceil(width / WIDEST) * LINE * size) / 2 };
  const center = { x: x + right * (radius + GAP + half.x), y: y + down * (radius + GAP + half.y) };
  const holds = (point, margin) => Math.abs(point.x - center.x) < half.x + margin && Math.abs(point.y - center.y) < half.y + margin;
  const neighbors = node.connectedEdges().filter((edge) => !edge.isLoop()).map((edge) => {
    const isArrow = edge.target().same(node);
    const to = (isArrow ? edge.source() : edge.target()).position();
    const isOn = (reach) => {
      const share = (radius + reach) / (Math.hypot(to.x - x, to.y - y) || 1);
      return holds({ x: x + share * (to.x - x), y: y + share * (to.y - y) }, 2);
    };
    return (isOn(ARROW) ? 1 + isArrow : 0) + isOn(BEHIND);
  });
  const hidden = others.filter((other) => !other.same(node) && holds(other.position(), radius)).length;
  return neighbors.reduce((sum, each) => sum + each, 2 * hidden);
};

/** Puts each label at the best side of its node. */
export const placeLabels = (graph) =>
  graph.batch(() => {
    const [nodes, size] = [graph.nodes(), sizeOf(graph)];
    nodes.forEach((node) => {
      const sides = Object.entries(SIDES).map(([name, side]) => [name, covered(node, side, nodes, size)]);
      const [best] = sides.reduce((found, next) => (next[1] < found[1] ? next : found));
      node.data('side', best);
    });
  });

/** Gives labels the size that the zoom of a graph needs. */
export const sizeLabels = (graph) => {
  const size = sizeOf(graph);
  if (graph.scratch('_labels') !== size) {
    graph.scratch('_labels', size);
    graph.style().update();
  }
};
