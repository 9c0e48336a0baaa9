// Subscriptions: their answers come as server-sent events, and each replaces the one before.
import { settings } from './page.js';

const EVENT = /^event: ?(\w+)\ndata: ?(.*)$/m;

const isSubscription = (params, options) => {
  const operations = (options?.documentAST?.definitions || []).filter((each) => each.kind === 'OperationDefinition');
  const named = operations.find((each) => each.name?.value === params.operationName);
  return (named || operations[0])?.operation === 'subscription';
};

// The answers in a stream of events. Comments in it are pings.
async function* answersIn(body) {
  const reader = body.pipeThrough(new TextDecoderStream()).getReader();
  let text = '';
  for (;;) {
    const { done, value } = await reader.read();
    if (done) {
      return;
    }
    text += value;
    const events = text.split('\n\n');
    text = events.pop();
    for (const event of events) {
      const [, name, data] = EVENT.exec(event) || [];
      if (name === 'complete') {
        return;
      }
      if (name === 'next') {
        yield JSON.parse(data);
      }
    }
  }
}

const subscribe = (url, params, options) => {
  const stopped = new AbortController();
  async function* answers() {
    const headers = { accept: 'text/event-stream', 'content-type': 'application/json', ...options?.headers };
    try {
      const response = await fetch(url, { method: 'POST', headers, body: JSON.stringify(params), signal: stopped.signal });
      if (response.ok) {
        yield* answersIn(response.body);
      } else {
        yield await response.json();
      }
    } catch (error) {
      if (!stopped.signal.aborted) {
        throw error;
      }
    }
  }
  const made = answers();
  return {
    [Symbol.asyncIterator]() {
      return this;
    },
    next: () => made.next(),
    // What waits for an event would wait for the next one.
    return: async () => {
      stopped.abort();
      return { done: true, value: undefined };
    },
  };
};

const OFF =
  'This server has no subscriptions: KEYGRAPH_LIVE is off. Start it with KEYGRAPH_LIVE=true, once the table has its stream: keygraph table update --stream.';

/** A fetcher that also subscribes. Where the server has no subscriptions, it says what is missing. */
export const withSubscriptions = (fetcher, url) => (params, options) => {
  if (!isSubscription(params, options)) {
    return fetcher(params, options);
  }
  return settings.isLive ? subscribe(url, params, options) : { errors: [{ message: OFF }] };
};

/** What a fetcher returns, with each of its answers changed. */
export const eachAnswer = (found, changed) => {
  if (!found || !found[Symbol.asyncIterator]) {
    return changed(found);
  }
  return {
    [Symbol.asyncIterator]() {
      return this;
    },
    next: async () => {
      const { done, value } = await found.next();
      return done ? { done, value } : { done, value: changed(value) };
    },
    return: () => found.return(),
  };
};
