// What an operation costs: the header that asks for it, and the panel under the answer that shows it.
(() => {
  'use strict';

  const HEADER = 'x-keygraph-cost';
  const KEY = 'keygraph:cost';
  const element = (...words) => React.createElement(...words);

  // The switch is kept where the browser lets it; without storage it is on.
  const readSwitch = () => {
    try {
      return window.localStorage.getItem(KEY) !== 'off';
    } catch {
      return true;
    }
  };
  const keepSwitch = (isOn) => {
    try {
      window.localStorage.setItem(KEY, isOn ? 'on' : 'off');
    } catch {
      // It holds as long as the page is open.
    }
  };

  const state = { isOn: readSwitch(), cost: null, listeners: new Set() };
  const change = (changes) => {
    Object.assign(state, changes);
    state.listeners.forEach((listener) => listener());
  };

  // Takes the cost out of an answer, so that the answer is what any client sees.
  const taken = (answer) => {
    if (!answer || !answer.extensions || !answer.extensions.cost) {
      return answer;
    }
    const { cost, ...others } = answer.extensions;
    change({ cost });
    const { extensions, ...rest } = answer;
    return Object.keys(others).length ? { ...rest, extensions: others } : rest;
  };

  async function* eachTaken(answers) {
    for await (const answer of answers) {
      yield taken(answer);
    }
  }

  // A fetcher that asks for the cost while the switch is on.
  const withCost = (fetcher) => async (params, options) => {
    if (!state.isOn || params.operationName === 'IntrospectionQuery') {
      return fetcher(params, options);
    }
    change({ cost: null });
    const headers = { ...(options && options.headers), [HEADER]: 'true' };
    const answer = await fetcher(params, { ...options, headers });
    return answer && answer[Symbol.asyncIterator] ? eachTaken(answer) : taken(answer);
  };

  const number = (value) => value.toLocaleString('en', { maximumFractionDigits: 1 });
  const counted = (value, noun) => `${number(value)} ${noun}${value === 1 ? '' : 's'}`;

  const row = (name, actual, bound, key) =>
    element(
      'tr',
      { key: key || name },
      element('th', { scope: 'row' }, name),
      element('td', null, actual ? number(actual.requests) : '–'),
      element('td', null, bound ? number(bound.requests) : '–'),
      element('td', null, actual ? number(actual.roundTrips) : '–'),
      element('td', null, bound ? number(bound.roundTrips) : '–'),
      element('td', null, actual ? number(actual.items) : '–'),
      element('td', null, bound ? number(bound.items) : '–'),
      element('td', null, actual ? number(actual.readUnits) : '–'),
      element('td', null, bound ? number(bound.readUnits) : '–'),
      element('td', null, actual ? `${number(actual.waitedMs)} ms` : '–'),
    );

  const HEADS = ['requests', 'round trips', 'items', 'read units'];

  const table = (cost) =>
    element(
      'table',
      { className: 'cost-table' },
      element(
        'thead',
        null,
        element(
          'tr',
          null,
          element('td', { rowSpan: 2 }),
          HEADS.map((head) => element('th', { key: head, colSpan: 2, scope: 'colgroup' }, head)),
          element('th', { rowSpan: 2, scope: 'col' }, 'waited'),
        ),
        element(
          'tr',
          null,
          HEADS.map((head) => [
            element('th', { key: `${head} actual`, scope: 'col' }, 'actual'),
            element('th', { key: `${head} bound`, scope: 'col' }, 'at most'),
          ]),
        ),
      ),
      element('tbody', null, row('in all', cost.actual, cost.bound)),
      element(
        'tbody',
        null,
        Object.entries(cost.byPath).map(([path, told]) => row(path, told.actual, told.bound, `at ${path}`)),
      ),
    );

  const requestName = (request) =>
    [request.operation, request.index, request.counts ? 'COUNT' : null].filter(Boolean).join(' ');

  const bars = (requests) => {
    const end = Math.max(...requests.map((request) => request.endedMs)) || 1;
    return element(
      'ol',
      { className: 'cost-bars' },
      requests.map((request, place) => {
        const took = number(request.endedMs - request.beganMs);
        const said = `${requestName(request)}, ${counted(request.items, 'item')}, ${counted(request.readUnits, 'read unit')}`;
        return element(
          'li',
          { key: place, title: `${said}, from ${number(request.beganMs)} to ${number(request.endedMs)} ms` },
          element('span', { className: 'cost-trip', title: 'round trip' }, request.roundTrip),
          element('span', { className: 'cost-path' }, request.paths.join(', ')),
          element('span', { className: 'cost-name' }, requestName(request)),
          element(
            'span',
            { className: 'cost-axis' },
            element('span', {
              className: `cost-bar cost-bar-${request.roundTrip % 2}`,
              style: {
                left: `${(request.beganMs / end) * 100}%`,
                width: `${((request.endedMs - request.beganMs) / end) * 100}%`,
              },
            }),
          ),
          element('span', { className: 'cost-took' }, `${took} ms`),
        );
      }),
    );
  };

  const Panel = () => {
    const [, redraw] = React.useReducer((count) => count + 1, 0);
    React.useEffect(() => {
      state.listeners.add(redraw);
      return () => state.listeners.delete(redraw);
    }, []);
    const { isOn, cost } = state;
    const toggle = (event) => {
      keepSwitch(event.target.checked);
      change({ isOn: event.target.checked, cost: null });
    };
    const summary = cost && cost.actual
      ? `${counted(cost.actual.requests, 'request')} in ${counted(cost.actual.roundTrips, 'round trip')}, ` +
        counted(cost.actual.readUnits, 'read unit')
      : isOn ? 'Run a query to see its requests.' : '';
    return element(
      'section',
      { className: 'cost', 'aria-label': 'Cost' },
      element(
        'header',
        null,
        element(
          'label',
          null,
          element('input', { type: 'checkbox', checked: isOn, onChange: toggle }),
          ' Show what it costs',
        ),
        element('span', { className: 'cost-summary', role: 'status' }, summary),
      ),
      cost && cost.requests.length ? bars(cost.requests) : null,
      cost ? table(cost) : null,
      cost && cost.open.length
        ? element('p', { className: 'cost-open' }, `Limited by the server, not by a page size: ${cost.open.join(', ')}`)
        : null,
    );
  };

  window.KeygraphCost = { Panel, withCost };
})();
