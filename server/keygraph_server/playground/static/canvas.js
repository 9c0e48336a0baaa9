// A picture of nodes and edges, drawn by Cytoscape.
import { save } from './export.js';
import { labelStyle, placeLabels, sizeLabels } from './labels.js';
import { color, h, state, typeColor } from './page.js';
import { places, remember } from './stable.js';
import { svg } from './svg.js';

const PADDING = 20;

const style = () => [
  {
    selector: 'node',
    style: {
      color: color('text'),
      'font-family': 'system-ui, sans-serif',
      ...labelStyle,
      'text-background-color': color('ground'),
      'text-background-opacity': 0.8,
      width: 26,
      height: 26,
      'background-color': (element) => color(typeColor(element.data('type'))),
      'border-width': 0,
    },
  },
  { selector: 'node[?isRecord]', style: { shape: 'round-rectangle', width: 18, height: 18 } },
  {
    selector: 'edge',
    style: {
      label: 'data(label)',
      color: color('muted'),
      'font-size': 10,
      'font-family': 'system-ui, sans-serif',
      'text-background-color': color('ground'),
      'text-background-opacity': 0.85,
      'text-background-padding': 2,
      'text-rotation': 'autorotate',
      'min-zoomed-font-size': 7,
      width: 1.5,
      'line-color': color('line-strong'),
      'target-arrow-color': color('line-strong'),
      'target-arrow-shape': 'triangle',
      'arrow-scale': 1.1,
      'curve-style': 'bezier',
      'control-point-step-size': 60,
      'loop-direction': '0deg',
      'loop-sweep': '-70deg',
    },
  },
  { selector: 'node:selected, node.pointed', style: { label: 'data(label)', 'text-background-opacity': 1, 'z-index': 9999 } },
  { selector: 'node:selected', style: { 'border-width': 4, 'border-color': color('text') } },
  { selector: 'edge:selected', style: { width: 3, 'line-color': color('accent'), 'target-arrow-color': color('accent') } },
];

// Twice: the size and the places of labels depend on the zoom, and Cytoscape measures labels when it draws them. It keeps
// the bounds that it had before, unless their style is set again.
const fit = (graph) => {
  const again = () => {
    if (!graph.destroyed()) {
      graph.style(style());
      graph.fit(undefined, PADDING);
    }
  };
  graph.fit(undefined, PADDING);
  placeLabels(graph);
  graph.one('render', () => setTimeout(again));
};

// From a circle, not from random places: the same elements make the same picture each time.
const arrange = (graph) => {
  graph.layout({ name: 'circle', animate: false }).run();
  // Where labels have the size of their nodes.
  graph.zoom(1);
  const layout = {
    name: 'cose',
    randomize: false,
    animate: false,
    nodeDimensionsIncludeLabels: true,
    numIter: 2000,
    padding: PADDING,
    // A long label has its place between the names of the ends.
    idealEdgeLength: (edge) => Math.max(80, 9 * edge.data('label').length),
    nodeRepulsion: () => 12000,
  };
  graph.layout(layout).run();
  const { w, h } = graph.elements().boundingBox();
  if (w > h !== graph.width() > graph.height()) {
    // It lies as its place does, and so has the largest size.
    graph.nodes().positions((node) => ({ x: node.position('y'), y: node.position('x') }));
  }
  fit(graph);
};

/** What is drawn, as a file: its name, its type and its content. */
const pictureOf = {
  PNG: (graph) => ['image/png', graph.png({ full: true, scale: 2, bg: color('ground'), output: 'blob' })],
  SVG: (graph) => ['image/svg+xml', svg(graph)],
};

/** Draws `elements` (in Cytoscape's form); `onPick` gets the id of what is picked, or null, `onExpand` of what is clicked twice. */
export const Canvas = ({ elements, selected, onPick, onExpand, label }) => {
  const place = React.useRef(null);
  const drawn = React.useRef(null);
  const pick = React.useRef(onPick);
  pick.current = onPick;
  const expand = React.useRef(onExpand);
  expand.current = onExpand;
  const [problem, setProblem] = React.useState('');
  const [isReady, setIsReady] = React.useState(false);

  React.useEffect(() => {
    let isGone = false;
    let resized = null;
    import('../libraries/cytoscape.js').then(
      ({ default: cytoscape }) => {
        if (isGone) {
          return;
        }
        const graph = cytoscape({ container: place.current, style: style(), minZoom: 0.1, maxZoom: 1.8 });
        graph.on('tap', (event) => pick.current(event.target === graph ? null : event.target.id()));
        graph.on('zoom', () => sizeLabels(graph));
        graph.on('dragfree', () => placeLabels(graph));
        graph.on('mouseover mouseout', 'node', ({ type, target }) => target.toggleClass('pointed', type === 'mouseover'));
        graph.on('dbltap', 'node', (event) => expand.current?.(event.target.id()));
        drawn.current = graph;
        // The panels around it may take their places after it was arranged.
        resized = new ResizeObserver(() => {
          graph.resize();
          fit(graph);
        });
        resized.observe(place.current);
        setIsReady(true);
      },
      (error) => setProblem(error.message),
    );
    return () => {
      isGone = true;
      resized?.disconnect();
      if (drawn.current) {
        remember(drawn.current);
      }
      drawn.current?.destroy();
      drawn.current = null;
    };
  }, []);

  React.useEffect(() => {
    const graph = drawn.current;
    if (!graph) {
      return;
    }
    remember(graph);
    const wanted = new Set(elements.map(({ data }) => data.id));
    const known = places(elements);
    graph.batch(() => {
      graph.elements().filter((each) => !wanted.has(each.id())).remove();
      for (const element of elements) {
        const drawnBefore = graph.getElementById(element.data.id);
        if (drawnBefore.empty()) {
          graph.add({ ...element, position: known?.get(element.data.id) && { ...known.get(element.data.id) } });
        } else {
          drawnBefore.data(element.data);
        }
      }
    });
    if (!known && elements.length) {
      arrange(graph);
    } else {
      fit(graph);
    }
  }, [elements, isReady]);

  React.useEffect(() => {
    drawn.current?.style(style());
  }, [state.theme, isReady]);

  React.useEffect(() => {
    const graph = drawn.current;
    graph?.elements().unselect();
    if (selected) {
      graph?.getElementById(selected).select();
    }
  }, [selected, elements, isReady]);

  return h(
    'div',
    { className: 'canvas-frame' },
    problem && h('p', { className: 'note', role: 'alert' }, problem),
    h('div', { className: 'canvas', ref: place, role: 'img', 'aria-label': label }),
    h(
      'div',
      { className: 'canvas-tools' },
      h('button', { type: 'button', onClick: () => drawn.current && fit(drawn.current) }, 'Fit'),
      h('button', { type: 'button', onClick: () => drawn.current && arrange(drawn.current) }, 'Arrange'),
      Object.entries(pictureOf).map(([name, content]) =>
        h('button', { key: name, type: 'button', onClick: () => drawn.current && save(`keygraph-graph.${name.toLowerCase()}`, ...content(drawn.current)) }, name),
      ),
    ),
  );
};
