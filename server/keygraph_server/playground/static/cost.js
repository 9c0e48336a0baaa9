// What an operation costs: the header that asks for it, and the panel under the answer that shows it.
import { markPlace, useEditor } from './editor.js';
import { eachAnswer } from './live.js';
import { change, h, kept, settings, state, useChanges } from './page.js';

const HEADER = 'x-keygraph-cost';
const MOST_HEIGHT = 0.7;
const MOST_PATH = 26;
const isOn = kept('cost', 'on');
const isOpen = kept('cost-open', 'yes');
const height = kept('cost-height', '260');

// Takes the cost out of an answer, so that the answer is what any client sees.
const taken = (answer) => {
  if (!answer || !answer.extensions || !answer.extensions.cost) {
    return answer;
  }
  const { cost, ...others } = answer.extensions;
  change({ cost, highlight: null });
  const { extensions, ...rest } = answer;
  return Object.keys(others).length ? { ...rest, extensions: others } : rest;
};

/** A fetcher that asks for the cost while the switch is on. */
export const withCost = (fetcher) => async (params, options) => {
  if (isOn.get() !== 'on' || params.operationName === 'IntrospectionQuery') {
    return fetcher(params, options);
  }
  markPlace(null);
  change({ cost: null, highlight: null });
  const headers = { ...(options && options.headers), [HEADER]: 'true' };
  return eachAnswer(await fetcher(params, { ...options, headers }), taken);
};

const number = (value) => value.toLocaleString('en', { maximumFractionDigits: 1 });
export const counted = (value, noun) => `${number(value)} ${noun}${value === 1 ? '' : 's'}`;
const milliseconds = (value) => `${number(value)} ms`;

// --- Money ----------------------------------------------------------------------------------------------

const PER = 1000;
const { prices, source } = settings.prices;

/** The price of so many operations with this cost, as text. */
const money = ({ readUnits, writeUnits = 0 }) =>
  `$${((PER * (readUnits * prices.read + writeUnits * prices.write)) / 1e6).toLocaleString('en', { maximumSignificantDigits: 3 })}`;

/** What something cost, in words. */
export const costText = (actual, bound) => {
  const units = (name, noun) => {
    const most = bound?.[name] ? ` (at most ${number(bound[name])})` : '';
    return actual[name] || bound?.[name] ? `${counted(actual[name] || 0, noun)}${most}` : '';
  };
  return [
    counted(actual.requests, 'request') + (actual.roundTrips ? ` in ${counted(actual.roundTrips, 'round trip')}` : ''),
    units('readUnits', 'read unit'),
    units('writeUnits', 'write unit'),
    prices && `${money(actual)} per ${number(PER)}`,
  ]
    .filter(Boolean)
    .join(', ');
};

const priceLine = ({ actual, bound }) =>
  h(
    'p',
    { className: 'cost-money' },
    prices
      ? [
          h('strong', { key: 'a' }, `${money(actual)} per ${number(PER)} of this operation`),
          // What a deletion finds has no bound.
          bound && (!actual.writeUnits || bound.writeUnits) && `, at most ${money(bound)}`,
          ` (${source}: $${prices.read} per million read units, $${prices.write} per million write units)`,
        ]
      : source,
  );

// --- Places ---------------------------------------------------------------------------------------------

const COLUMNS = [
  ['requests', 'requests', 'Calls to DynamoDB, each try of one that was throttled too.'],
  ['roundTrips', 'round trips', 'How many times the operation waits for answers: requests that are sent at the same time are one round trip.'],
  ['items', 'items', 'The items that DynamoDB reads, those that a filter leaves out too.'],
  ['readUnits', 'read units', 'What DynamoDB charges for reads: half a unit for every 4 KB, one if the read is consistent.'],
  ['writeUnits', 'write units', 'What DynamoDB charges for writes: two units for every KB of an item in a transaction, and one for every KB that changes in an index.'],
];
const ACTUAL = 'What this run took.';
const BOUND =
  'The most that it can take, whatever the table holds: if all pages are full, all nodes exist, no two are the same, and items are as large as their types declare (1 KB if they do not).';

/** The figures that a report has: only mutations have write units. */
const columnsOf = (cost) => COLUMNS.filter(([name]) => name !== 'writeUnits' || [cost.actual, cost.bound].some((each) => each?.[name]));

const figures = (columns, actual, bound) =>
  columns.flatMap(([name]) => [
    h('td', { key: `${name} actual` }, actual ? number(actual[name] || 0) : '–'),
    h('td', { key: `${name} bound`, className: 'cost-bound' }, bound && name in bound ? number(bound[name]) : '–'),
  ]);

const row = (columns, name, { actual, bound }, key) =>
  h('tr', { key }, h('th', { scope: 'row', title: name }, name), figures(columns, actual, bound));

const meanings = (columns) =>
  h(
    'details',
    { className: 'cost-meanings' },
    h('summary', null, 'What the figures mean'),
    h(
      'dl',
      { className: 'cost-request' },
      [...columns.map(([, head, meaning]) => [head, meaning]), ['actual', ACTUAL], ['at most', BOUND]].map(([name, meaning]) => [
        h('dt', { key: name }, name),
        h('dd', { key: `${name}:` }, meaning),
      ]),
    ),
  );

const placesTable = (cost, columns) =>
  h(
    'table',
    { className: 'cost-table' },
    h('caption', null, 'Places in the query'),
    h(
      'thead',
      null,
      h(
        'tr',
        null,
        h('td', { rowSpan: 2 }),
        columns.map(([name, head, meaning]) => h('th', { key: name, colSpan: 2, scope: 'colgroup', title: meaning }, head)),
      ),
      h(
        'tr',
        null,
        columns.map(([name]) => [
          h('th', { key: `${name} actual`, scope: 'col', title: ACTUAL }, 'actual'),
          h('th', { key: `${name} bound`, scope: 'col', title: BOUND }, 'at most'),
        ]),
      ),
    ),
    h('tbody', null, row(columns, 'in all', cost)),
    h(
      'tbody',
      null,
      Object.entries(cost.byPath).map(([path, told]) => row(columns, path, told, path)),
    ),
  );

// --- Requests -------------------------------------------------------------------------------------------

const requestName = (request) =>
  [request.operation, request.index, request.counts ? 'COUNT' : null].filter(Boolean).join(' ');

/** A path on one line: its end tells more than its beginning. */
const shortened = (path) => {
  const names = path.split('.');
  while (names.length > 1 && names.join('.').length > MOST_PATH) {
    names.shift();
  }
  const text = names.join('.');
  return text === path ? path : `…${text}`;
};

const pick = (place, request) => {
  const isPicked = state.highlight === place;
  markPlace(isPicked ? null : request.paths[0]);
  change({ highlight: isPicked ? null : place });
};

/** A round number of milliseconds, and how many of them the axis has. */
const scaleOf = (end) => {
  const magnitude = 10 ** Math.floor(Math.log10(end / 4));
  const step = [1, 2, 5, 10].map((each) => each * magnitude).find((each) => end / each <= 4);
  return { step, count: Math.ceil(end / step) };
};

const scale = ({ step, count }) =>
  h(
    'div',
    { className: 'cost-scale', 'aria-hidden': true },
    h('span', null),
    h(
      'span',
      { className: 'cost-ticks' },
      Array.from({ length: count + 1 }, (_, place) =>
        h('span', { key: place, style: { left: `${(place / count) * 100}%` } }, number(Number((place * step).toPrecision(3)))),
      ),
    ),
    h('span', { className: 'cost-took' }, 'ms'),
  );

const details = (request) =>
  h(
    'dl',
    { className: 'cost-request' },
    [
      ['DynamoDB', requestName(request)],
      ['keys', request.keys],
      ['filter', request.filter],
      ['for', request.paths.join(', ')],
      ['read', request.readUnits > 0 && `${counted(request.items, 'item')}, ${counted(request.readUnits, 'read unit')}`],
      ['wrote', request.writeUnits > 0 && counted(request.writeUnits, 'write unit')],
      ['when', `${milliseconds(request.beganMs)} to ${milliseconds(request.endedMs)}`],
    ]
      .filter(([, said]) => said)
      .map(([name, said]) => [h('dt', { key: name }, name), h('dd', { key: `${name}:` }, said)]),
  );

const bar = (request, place, whole) => {
  const isPicked = state.highlight === place;
  return h(
    'li',
    { key: place },
    h(
      'button',
      { type: 'button', className: 'cost-line', 'aria-expanded': isPicked, onClick: () => pick(place, request) },
      h('span', { className: 'cost-path', title: request.paths.join(', ') }, request.paths.map(shortened).join(', ')),
      h('span', { className: 'cost-name' }, requestName(request)),
      h(
        'span',
        { className: 'cost-axis' },
        h('span', {
          className: 'cost-bar',
          style: {
            left: `${(request.beganMs / whole) * 100}%`,
            width: `${((request.endedMs - request.beganMs) / whole) * 100}%`,
          },
        }),
      ),
      h('span', { className: 'cost-took' }, milliseconds(request.endedMs - request.beganMs)),
    ),
    isPicked && details(request),
  );
};

const requestList = (requests) => {
  const found = scaleOf(Math.max(...requests.map((request) => request.endedMs)) || 1);
  const whole = found.step * found.count;
  const numbered = requests.map((request, place) => [request, place]);
  const trips = [...new Set(requests.map((request) => request.roundTrip))];
  return h(
    'div',
    { className: 'cost-requests' },
    scale(found),
    trips.map((trip) =>
      h(
        'section',
        { key: trip, className: 'cost-trip', 'aria-label': `Round trip ${trip}` },
        h('h3', null, `Round trip ${trip}`),
        h(
          'ol',
          null,
          numbered.filter(([request]) => request.roundTrip === trip).map(([request, place]) => bar(request, place, whole)),
        ),
      ),
    ),
  );
};

// --- The panel ------------------------------------------------------------------------------------------

const resize = (wanted) => {
  const most = Math.round(window.innerHeight * MOST_HEIGHT);
  height.set(Math.min(most, Math.max(80, Math.round(wanted))));
  change({});
};

const drag = (event) => {
  event.preventDefault();
  const [from, before] = [event.clientY, Number(height.get())];
  const handle = event.currentTarget;
  handle.setPointerCapture(event.pointerId);
  const move = (moved) => resize(before + from - moved.clientY);
  const end = () => {
    handle.removeEventListener('pointermove', move);
    handle.removeEventListener('pointerup', end);
  };
  handle.addEventListener('pointermove', move);
  handle.addEventListener('pointerup', end);
};

const handle = () =>
  h('div', {
    className: 'cost-handle',
    role: 'separator',
    tabIndex: 0,
    'aria-orientation': 'horizontal',
    'aria-label': 'Height of the cost panel',
    'aria-valuenow': Number(height.get()),
    'aria-valuemin': 80,
    'aria-valuemax': Math.round(window.innerHeight * MOST_HEIGHT),
    onPointerDown: drag,
    onKeyDown: (event) => {
      const step = { ArrowUp: 20, ArrowDown: -20 }[event.key];
      if (step) {
        event.preventDefault();
        resize(Number(height.get()) + step);
      }
    },
  });

const summaryOf = (cost) => {
  if (!cost || !cost.actual) {
    return isOn.get() === 'on' ? 'Run a query to see its requests.' : '';
  }
  return costText(cost.actual, cost.bound);
};

/** The panel. It stands inside GraphiQL. */
export const CostPanel = () => {
  useEditor();
  useChanges();
  const { cost } = state;
  const isUnfolded = isOpen.get() === 'yes';
  const toggle = (event) => {
    isOn.set(event.target.checked ? 'on' : 'off');
    change({ cost: null });
  };
  const fold = () => {
    isOpen.set(isUnfolded ? 'no' : 'yes');
    change({});
  };
  const hasContent = isUnfolded && cost;
  return h(
    'section',
    { className: 'cost', 'aria-label': 'Cost' },
    hasContent && handle(),
    h(
      'header',
      null,
      h(
        'h2',
        null,
        h(
          'button',
          { type: 'button', className: 'cost-fold', 'aria-expanded': isUnfolded, onClick: fold },
          h('span', { 'aria-hidden': true }, isUnfolded ? '▾' : '▸'),
          ' Cost',
        ),
      ),
      h('span', { className: 'cost-summary', role: 'status' }, summaryOf(cost)),
      h('label', null, h('input', { type: 'checkbox', checked: isOn.get() === 'on', onChange: toggle }), ' Measure'),
    ),
    hasContent &&
      h(
        'div',
        { className: 'cost-content', tabIndex: 0, role: 'region', 'aria-label': 'Requests', style: { height: `${height.get()}px` } },
        cost.requests.length > 0 && requestList(cost.requests),
        placesTable(cost, columnsOf(cost)),
        cost.actual && priceLine(cost),
        meanings(columnsOf(cost)),
        cost.open.length > 0 &&
          h('p', { className: 'cost-open' }, `Limited by the server, not by a page size: ${cost.open.join(', ')}`),
      ),
  );
};
