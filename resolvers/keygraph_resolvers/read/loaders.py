"""The dataloaders of one request: items by their keys, and lists of neighbors.

They follow aiodataloader's rules: a key that is requested twice is read once, and a failed key does not affect others.
`keygraph_resolvers.engine.engine` decides when a batch of keys is sent, and `keygraph_resolvers.read.links` does so
for the other items that rules need; both call `NodeLoader.load_batch`. Nothing waits in the library's queue: a batch, or
a list, is read as soon as it is requested.
"""

from __future__ import annotations

import asyncio
import sys
from collections import deque
from collections.abc import Callable, Hashable, Sequence
from contextvars import Context, copy_context
from dataclasses import replace
from typing import Any, Generic, NamedTuple, TypeAlias, TypeVar, cast

from aiodataloader import DataLoader

from keygraph.dynamo.conditions import Path
from keygraph.dynamo.items import Item
from keygraph.dynamo.store import BatchGet, Store
from keygraph.dynamo.table import Key
from keygraph.errors import BadUserInput, TimedOut
from keygraph.lists.extent import Located
from keygraph.lists.named_edges import read_to
from keygraph.lists.query import ListQuery
from keygraph.lists.reading import Found, count, read, send_reads
from keygraph_resolvers.errors import as_value
from keygraph_resolvers.read.meter import READ

KeyT = TypeVar("KeyT", bound=Hashable)
ValueT = TypeVar("ValueT")


class SharedLoader(DataLoader[KeyT, ValueT], Generic[KeyT, ValueT]):
    """A dataloader whose waiters cannot harm each other, and which reads at once what is loaded. The loaders below
    define how several keys are read."""

    def __init__(self, most: int = sys.maxsize) -> None:
        """A read begins while fewer requests than `most` are under way."""
        # Not by the library's initializer, which inspects the class each time: that takes four times as long.
        self.loop = asyncio.get_running_loop()
        self.futures: dict[KeyT, asyncio.Future[ValueT]] = {}
        """The requested answers, by key."""
        self._cache = self.futures  # type: ignore[assignment]  # each key is its own cache key
        self.tasks: dict[asyncio.Future[ValueT], asyncio.Task[None]] = {}
        """The reads under way, by their first answer."""
        self._waiting: deque[tuple[list[KeyT], list[asyncio.Future[ValueT]], Context]] = deque()
        """The reads that wait for others to end."""
        self._most = most
        self._in_flight = 0
        """How many requests the reads under way send at the same time."""

    @staticmethod
    def get_cache_key(key: KeyT) -> KeyT:
        """Returns the key itself."""
        return key

    def end(self) -> None:
        """Gives up all reads: nobody waits for them any more."""
        self._waiting.clear()
        for task in [*self.tasks.values()]:
            task.cancel()

    async def batch_load_fn(self, keys: list[KeyT]) -> Sequence[ValueT | Exception]:  # type: ignore[override]  # errors too
        """Returns the value of each key, or the exception that it fails with."""
        raise NotImplementedError

    def requests_at_once(self, _: list[KeyT]) -> int:
        """Returns how many requests a read of these keys sends at the same time."""
        return 1

    def load(self, key: KeyT) -> asyncio.Future[ValueT]:
        future = self.loop.create_future()
        known = self.futures.setdefault(key, future)
        if known is future:
            self._start([key], [future])
        return known

    def _start(
        self, keys: list[KeyT], futures: list[asyncio.Future[ValueT]], context: Context | None = None
    ) -> None:
        if self._in_flight < self._most:
            self._in_flight += self.requests_at_once(keys)
            self.tasks[futures[0]] = self.loop.create_task(self._settle(keys, futures), context=context)
        else:
            self._waiting.append((keys, futures, context or copy_context()))

    def _start_waiting(self) -> None:
        while self._waiting and self._in_flight < self._most:
            self._start(*self._waiting.popleft())

    async def _settle(self, keys: list[KeyT], futures: list[asyncio.Future[ValueT]]) -> None:
        """Reads these keys. The library would leave the waiters of a canceled read waiting forever."""
        values: Sequence[ValueT | Exception]
        try:
            values = await self.batch_load_fn(keys)
        except asyncio.CancelledError:
            for key, future in zip(keys, futures, strict=True):
                self.futures.pop(key, None)
                _fail(future, TimedOut("the request to the store was given up"))
            raise
        except Exception as error:
            values = [error] * len(keys)
        finally:
            # A canceled task references its frames, and would keep all that was read.
            self.tasks.pop(futures[0], None)
            self._in_flight -= self.requests_at_once(keys)
            self._start_waiting()
        for future, value in zip(futures, values, strict=True):
            if isinstance(value, Exception):
                _fail(future, value)
            elif not future.done():
                future.set_result(value)


def _fail(future: asyncio.Future[Any], error: Exception) -> None:
    """Fails a future. The event loop would report a future that nobody waits for anymore."""
    if not future.done():
        future.set_exception(as_value(error))
        future.exception()


class NodeLoader(SharedLoader[Key, "Item | None"]):
    """Items by their table keys: one BatchGet for the keys that are loaded together."""

    def __init__(
        self,
        store: Store,
        projection: tuple[Path, ...] | None = None,
        is_expired: Callable[[Item], bool] | None = None,
    ) -> None:
        """`projection` is for all items; None for whole ones. `is_expired` returns whether an item counts as absent."""
        super().__init__()
        self._store = store
        self._projection = projection
        self._is_expired = is_expired

    def load_batch(self, keys: Sequence[Key]) -> list[asyncio.Future[Item | None]]:
        """Returns the answers for these keys; those that were not requested before are sent as one batch, now."""
        futures = self.futures
        new = {key: self.loop.create_future() for key in keys if key not in futures}
        futures |= new
        if new:
            self._start([*new], [*new.values()])
        return [futures[key] for key in keys]

    async def batch_load_fn(self, keys: list[Key]) -> Sequence[Item | Exception | None]:  # type: ignore[override]  # errors too
        try:
            items = (await self._store.send(BatchGet(tuple(keys), self._projection))).items
            is_expired = self._is_expired
            if is_expired is None:
                return items
            return [None if item is None or is_expired(item) else item for item in items]
        except BadUserInput as error:
            if len(keys) == 1:
                return [as_value(error)]
            # One key that the store refuses must not fail the others, nor make each of them a separate request.
            half = len(keys) // 2
            first, second = await asyncio.gather(
                self.batch_load_fn(keys[:half]), self.batch_load_fn(keys[half:])
            )
            return [*first, *second]
        except Exception as error:
            return [as_value(error)] * len(keys)


# --- Lists --------------------------------------------------------------------------------------------


class CountOf(NamedTuple):
    """A request for a list's count, within a number of pages."""

    query: ListQuery
    most_pages: int


class EdgesTo(NamedTuple):
    """A request for the edges of a list from its owner to a node."""

    query: ListQuery
    node: tuple[str, ...]


NeighbourRequest: TypeAlias = ListQuery | CountOf | EdgesTo


class Arrived(NamedTuple):
    """The answer of a read, and the first round trip in which something from it can be requested."""

    answer: Any
    round_trip: int


class NeighbourLoader(SharedLoader[NeighbourRequest, Arrived]):
    """Lists of neighbors: each is read at once and separately, with a limit on how many requests at one time.

    A part of a list of which more is read from the same place, or which was read whole, is not read again.
    """

    def __init__(self, store: Store, concurrency: int) -> None:
        super().__init__(concurrency)
        self._store = store
        self._longest: dict[int, list[ListQuery]] = {}
        """The longest part requested from each place, by its hash."""
        self._whole: dict[Hashable, list[tuple[ListQuery, list[Located]]]] = {}

    def ask(self, request: NeighbourRequest) -> asyncio.Future[Arrived] | Arrived:
        """Returns the answer if it is known already; else its future.

        The answer for a page may be a longer one that begins at the same place.
        """
        if isinstance(request, ListQuery):
            if request.hash in self._longest:
                request = self._longer(request) or self._keep_longest(request)
            else:
                self._longest[request.hash] = [request]
        if self._whole and request not in self.futures:
            known = self._known(request)
            if known is not None:
                return known
        return self.load(request)

    async def batch_load_fn(self, keys: list[NeighbourRequest]) -> Sequence[Arrived]:  # type: ignore[override]  # no list
        [request] = keys
        longer = self._longer(request) if isinstance(request, ListQuery) else None
        if longer is not None and longer is not request and longer in self.futures:
            # It was requested since, by another field of the root. It may wait for others to end: this reads nothing.
            size = self.requests_at_once(keys)
            self._in_flight -= size
            self._start_waiting()
            try:
                return [await asyncio.shield(self.futures[longer])]
            finally:
                self._in_flight += size
        answer: Any
        if isinstance(request, ListQuery):
            answer = await send_reads(self._store, request, read(request))
            self._keep_whole(request, answer)
        elif isinstance(request, CountOf):
            answer = await send_reads(self._store, request.query, count(*request))
        else:
            answer = await read_to(self._store, request.query, request.node)
        current = READ.get()
        return [Arrived(answer, current.round_trip if current else 0)]

    def requests_at_once(self, keys: list[NeighbourRequest]) -> int:
        [request] = keys
        return len((request if isinstance(request, ListQuery) else request.query).partitions)

    def _longer(self, page: ListQuery) -> ListQuery | None:
        """Returns a requested page that contains all of this one, if there is one."""
        for each in self._longest.get(page.hash, ()):
            if each is page:
                return each
            if each.begins_with(page):
                return each if each.has(page.extent) else None
        return None

    def _keep_longest(self, page: ListQuery) -> ListQuery:
        others = [each for each in self._longest.get(page.hash, ()) if not each.begins_with(page)]
        self._longest[page.hash] = [*others, page]
        return page

    def forget(self, request: ListQuery) -> None:
        """Forgets a page that is not requested anymore, and its list."""
        self.futures.pop(request, None)
        self._longest.pop(request.hash, None)
        self._whole.pop(_kind(request), None)

    # --- Pages that something else reads --------------------------------------------------------------

    def is_known(self, request: ListQuery) -> bool:
        """Returns whether a page was read, or is about to be."""
        return request in self.futures or self._longer(request) in self.futures

    def promise(self, request: ListQuery) -> asyncio.Future[Arrived]:
        """Promises that the page is read with other things: requests for it wait for that."""
        if self._longer(request) is None:
            self._keep_longest(request)
        promised = self.futures[request] = self.loop.create_future()
        return promised

    def keep_promise(self, request: ListQuery, arrived: Arrived | Exception | None) -> None:
        """Provides a promised page. None: it was not reached, and is read like any other."""
        promised = self.futures[request]
        if arrived is None:
            del self.futures[request]
            self.load(request).add_done_callback(lambda done: _copy(done, promised))
        elif isinstance(arrived, Exception):
            _fail(promised, arrived)
        else:
            self._keep_whole(request, arrived.answer)
            promised.set_result(arrived)

    # --- Lists that were read whole -------------------------------------------------------------------

    def _keep_whole(self, query: ListQuery, found: Found) -> None:
        """Records a page if it is all of its list."""
        extent = query.extent
        is_open = extent.after is not None or extent.until is not None or found.resume is not None
        is_ended = len(found.items) < extent.count or (extent.look_ahead and not found.more)
        if is_open or not is_ended or query.form.narrowed:
            return
        items = found.items if extent.forward else found.items[::-1]
        self._whole.setdefault(_kind(query), []).append((query, items))

    def _known(self, request: NeighbourRequest) -> Arrived | None:
        """Returns the answer from lists that were read whole."""
        if isinstance(request, EdgesTo):
            return None
        query = request.query if isinstance(request, CountOf) else request
        extent = query.extent
        if extent.after is not None or extent.until is not None:
            return None
        items = self._items(query)
        if items is None:
            return None
        if isinstance(request, CountOf):
            return Arrived(len(items), 0)
        if not extent.forward:
            items.reverse()
        more = extent.look_ahead and len(items) > extent.count
        return Arrived(Found(items[: extent.count], more, None), 0)

    def _items(self, query: ListQuery) -> list[Located] | None:
        wanted, span = query.extent, query.reading.span
        if query.form.checked and wanted.attributes is not None:
            wanted = replace(wanted, attributes=wanted.attributes | query.form.checked)
        for whole, items in self._whole.get(_kind(query), ()):
            is_part = span.within(whole.reading.span) == span
            # Of several types, the whole list may have been requested for some.
            if is_part and query.parts.keys() <= whole.parts.keys() and whole.extent.has_attributes(wanted):
                # Its filter need not use the attributes that were read: all of these items have passed it.
                return query.included(each.item for each in items if query.reads(query.sort_of(each.item)))
        return None


def _kind(query: ListQuery) -> Hashable:
    """Returns what lists must share so that one can be a part of the other."""
    return query.path, query.partitions, query.decided.filter, query.decided.condition


def _copy(done: asyncio.Future[Arrived], to: asyncio.Future[Arrived]) -> None:
    if to.done() or done.cancelled():
        return
    error = done.exception()
    if error is not None:
        _fail(to, cast(Exception, error))
    else:
        to.set_result(done.result())
