// Where the label of a node is: at the side where it covers the fewest arrowheads, lines and other nodes. It has the same size at each
// zoom, and is left out where it would cover the label of a node with more edges.

const GAP = 4;
const SIZE = 11;
const WIDEST = 150;
// The height of a line and the average width of a letter, for each pixel of the size; how far an arrowhead reaches from a node, and
// where its line is beside the middle of a label.
const LINE = 1.3;
const LETTER = 0.6;
const ARROW = 9;
const BEHIND = 25;

// In the order in which they are preferred: where the label begins, seen from its node.
const SIDES = { bottom: [0, 1], top: [0, -1], right: [1, 0], left: [-1, 0] };
const sideOf = (node) => node.data('side') || 'bottom';
const pull = (node, axis) => SIDES[sideOf(node)][axis];

// In steps, because each of them sets the style of all nodes.
const sizeOf = (graph) => SIZE * 2 ** Math.max(0, Math.round(-4 * Math.log2(graph.zoom())) / 4);
const widest = (size) => (WIDEST * size) / SIZE;

/** The part of a node's style that places its label. */
export const labelStyle = {
  label: (node) => (node.data('isLeftOut') ? '' : node.data('label')),
  'font-size': (node) => sizeOf(node.cy()),
  'z-index': (node) => node.degree(),
  'text-wrap': 'wrap',
  'text-max-width': (node) => widest(sizeOf(node.cy())),
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

/** The middle of a label at a side, and half of its width and height. */
const boxOf = (node, [right, down], size) => {
  const { x, y } = node.position();
  const reach = node.width() / 2 + GAP;
  const width = (node.data('label') || '').length * LETTER * size;
  const half = { x: Math.min(width, widest(size)) / 2, y: (Math.ceil(width / widest(size)) * LINE * size) / 2 };
  return { center: { x: x + right * (reach + half.x), y: y + down * (reach + half.y) }, half };
};

/** How much a label at a side would cover. */
const covered = (node, side, others, size) => {
  const { x, y } = node.position();
  const radius = node.width() / 2;
  const { center, half } = boxOf(node, side, size);
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

/** Leaves out the labels that would cover another, or its node. */
const leaveOut = (graph) => {
  const shown = [];
  const meets = (one) => (other) =>
    ['x', 'y'].every((axis) => Math.abs(one.center[axis] - other.center[axis]) < one.half[axis] + other.half[axis]);
  graph.batch(() =>
    graph.nodes().sort((one, other) => other.degree() - one.degree()).forEach((node) => {
      const box = boxOf(node, SIDES[sideOf(node)], sizeOf(graph));
      const isLeftOut = shown.some(meets(box));
      node.data('isLeftOut', isLeftOut);
      if (!isLeftOut) {
        shown.push(box, { center: { ...node.position() }, half: { x: node.width() / 2, y: node.height() / 2 } });
      }
    }),
  );
};

/** Puts each label at the best side of its node. */
export const placeLabels = (graph) => {
  graph.batch(() => {
    const [nodes, size] = [graph.nodes(), sizeOf(graph)];
    nodes.forEach((node) => {
      const sides = Object.entries(SIDES).map(([name, side]) => [name, covered(node, side, nodes, size)]);
      const [best] = sides.reduce((found, next) => (next[1] < found[1] ? next : found));
      node.data('side', best);
    });
  });
  leaveOut(graph);
};

/** Gives labels the size that the zoom of a graph needs. */
export const sizeLabels = (graph) => {
  const size = sizeOf(graph);
  if (graph.scratch('_labels') !== size) {
    graph.scratch('_labels', size);
    leaveOut(graph);
    graph.style().update();
  }
};
