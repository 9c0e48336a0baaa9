"""The dataloaders of one request: nodes by key, and lists of neighbours.

What is asked for twice is read once. When a batch of nodes leaves is not decided here but by the plan
(`keygraph_resolvers.read.gathering`): keys that are loaded together are one batch. A list is read as soon as it is asked for. A key
that fails fails alone, and a waiter that is cancelled leaves the shared answer to the others.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Generic, TypeAlias, TypeVar, cast

from aiodataloader import DataLoader, Loader, dispatch_queue_batch

from keygraph.dynamo.conditions import Path
from keygraph.dynamo.items import Item
from keygraph.dynamo.store import BatchGet, Store
from keygraph.dynamo.table import Key
from keygraph.engines.dynamodb.concurrency import ConcurrencyLimit
from keygraph.errors import StoreError, TimedOut
from keygraph.lists.counting import count
from keygraph.lists.listing import Located, NeighbourList
from keygraph.lists.named_edges import read_to
from keygraph.lists.reading import Extent, Found, read
from keygraph_resolvers.read.meter import pass_round_trip, round_trip_now
from keygraph_resolvers.read.whole_lists import WholeLists

KeyT = TypeVar("KeyT")
ValueT = TypeVar("ValueT")


class SharedLoader(DataLoader[KeyT, ValueT], Generic[KeyT, ValueT]):
    """A dataloader whose waiters cannot harm each other."""

    def __init__(self) -> None:
        # As aiodataloader's own, without looking at what is the same for every loader here.
        self.loop = asyncio.get_running_loop()
        self._cache = {}
        self._queue = []
        self._tasks: list[asyncio.Task[None]] = []

    def get_cache_key(self, key: KeyT) -> KeyT:
        """The key itself."""
        return key

    def load(self, key: KeyT) -> asyncio.Future[ValueT]:
        """The future of a value, one for each key."""
        # As aiodataloader's own, with as little.
        future = self._cache.get(key)
        if future is None:
            future = self._cache[key] = self.loop.create_future()
            self.do_resolve_reject(key, future)
        return future

    async def load_all(self, keys: Sequence[KeyT]) -> Sequence[ValueT | Exception]:
        """The value of each key, or the exception that it fails with."""
        raise NotImplementedError

    async def batch_load_fn(self, keys: list[KeyT]) -> list[ValueT]:
        try:
            values = await self.load_all(keys)
        except asyncio.CancelledError:
            # aiodataloader would leave the waiters hanging and the keys' futures in the cache.
            values = [self._gave_up(key) for key in keys]
            task = asyncio.current_task()
            if task is not None and task.cancelling():
                raise
        for key, value in zip(keys, values, strict=True):
            future = self._cache.get(key) if isinstance(value, Exception) else None
            if future is not None and not future.done():
                _fail(future, cast(Exception, value))
        return cast("list[ValueT]", values)

    def _gave_up(self, key: KeyT) -> Exception:
        """Fails whoever waits for a key, and forgets it."""
        error = TimedOut("the request to the store was given up")
        future = self._cache.pop(key, None)
        if future is not None and not future.done():
            _fail(future, error)
        return error

    def dispatch(self, batch: list[Loader]) -> None:
        """Loads a batch in a task of its own, so that whoever waits for it can be cancelled alone."""
        self._tasks.append(self.loop.create_task(dispatch_queue_batch(self, batch)))

    def give_up(self) -> None:
        """Ends what is under way: nobody waits for it any more."""
        for task in self._tasks:
            task.cancel()


def _fail(future: asyncio.Future[Any], error: Exception) -> None:
    """Fails a future that maybe nobody waits for any more, which the event loop would complain of."""
    future.set_exception(error)
    future.exception()


class NodeLoader(SharedLoader[Key, Item | None]):
    """Items by their table key: one BatchGet for the keys that are loaded together, without duplicates."""

    def __init__(self, store: Store, projection: tuple[Path, ...] | None = None) -> None:
        """`projection` is that of every item; None for whole ones."""
        super().__init__()
        self._store = store
        self._projection = projection

    def do_resolve_reject(self, key: Key, future: asyncio.Future[Item | None]) -> None:
        """Takes the key into the next batch, which leaves when `load_together` says so."""
        self._queue.append(Loader(key=key, future=future))

    def load_together(self, keys: Sequence[Key]) -> list[asyncio.Future[Item | None]]:
        """The answers for these keys; those that were not asked for before are one batch."""
        futures = [self.load(key) for key in keys]
        if self._queue:
            batch, self._queue = self._queue, []
            self.dispatch(batch)
        return futures

    def is_read(self, key: Key) -> bool:
        """Whether the answer for a key is there."""
        future = self._cache.get(key)
        return future is not None and future.done()

    def answer(self, key: Key) -> Item | Exception | None:
        """The answer for a key that was read: the item, None, or what reading it gave instead."""
        future = self._cache.get(key)
        if future is None:
            return TimedOut("the request to the store was given up")
        error = future.exception()
        return cast(Exception, error) if error is not None else future.result()

    async def load_all(self, keys: Sequence[Key]) -> list[Item | Exception | None]:
        try:
            batch = await self._store.send(BatchGet(tuple(keys), self._projection))
        except StoreError as error:
            return [error for _ in keys]
        except Exception as error:
            if len(keys) == 1:
                return [error]
            # One key that the store refuses must not fail the others.
            alone = await asyncio.gather(*(self.load_all([key]) for key in keys))
            return [value for [value] in alone]
        return [*batch.items]


@dataclass(frozen=True, slots=True)
class PageOf:
    """A part of a list."""

    neighbours: NeighbourList
    extent: Extent

    def __hash__(self) -> int:
        # Most lists of an operation are asked for one part each.
        return hash(self.neighbours)


@dataclass(frozen=True)
class CountOf:
    """How many items a list has, if no more pages tell it."""

    neighbours: NeighbourList
    most_pages: int


@dataclass(frozen=True)
class EdgesTo:
    """The edges of a list from its owner to these nodes, in the order of the list."""

    neighbours: NeighbourList
    owner: tuple[str, ...]
    nodes: tuple[tuple[str, ...], ...]


NeighbourRequest: TypeAlias = PageOf | CountOf | EdgesTo


class NeighbourLoader(SharedLoader[NeighbourRequest, Any]):
    """Lists of neighbours: equal requests run once, parts of what was read whole not at all, the others at the same
    time under a limit."""

    def __init__(self, store: Store, concurrency: int) -> None:
        super().__init__()
        self._store = store
        self._places = ConcurrencyLimit(concurrency)
        self._whole = WholeLists()
        self._came: dict[PageOf, int] = {}

    def do_resolve_reject(self, key: NeighbourRequest, future: asyncio.Future[Any]) -> None:
        """Each list is read at once, and on its own, unless what was read before tells it."""
        known = self._known(key)
        if known is not None:
            future.set_result(known)
            return
        self._tasks.append(self.loop.create_task(self._read(key, future)))

    async def _read(self, request: NeighbourRequest, future: asyncio.Future[Any]) -> None:
        try:
            if not self._places.acquire_now():
                await self._places.acquire_next()
            try:
                found = await self._answer(request)
            finally:
                self._places.release()
        except asyncio.CancelledError:
            self._gave_up(request)
            task = asyncio.current_task()
            if task is not None and task.cancelling():
                raise
        except Exception as error:
            if not future.done():
                _fail(future, error)
        else:
            if not future.done():
                future.set_result(found)

    async def page(self, request: PageOf) -> Found:
        """A page. Whoever waits for it may be cancelled alone."""
        sooner = round_trip_now()
        found = await self._get(request)
        if found is None:
            # It was promised, and not come to.
            pass_round_trip()
            found = await self._get(request)
        self.came_in(request, max(round_trip_now(), sooner + 1))
        return cast(Found, found)

    def came(self, request: PageOf) -> int | None:
        """The first round trip in which the page was there, if it is."""
        return self._came.get(request)

    def came_in(self, request: PageOf, round_trip: int) -> None:
        """Takes note of the round trip in which a page was there."""
        self._came.setdefault(request, round_trip)

    # --- Pages that somebody else reads ---------------------------------------------------------------

    def is_asked(self, request: PageOf) -> bool:
        """Whether a page was read, or is about to be."""
        return request in self._cache

    def promise(self, request: PageOf) -> None:
        """Somebody reads the page with others: whoever asks for it waits for that."""
        self._cache[request] = self.loop.create_future()

    def keep(self, request: PageOf, found: Found | Exception | None) -> None:
        """Keeps the promise of a page. None: it was not come to, and is read like any other."""
        future = self._cache.pop(request) if found is None else self._cache[request]
        if isinstance(found, Exception):
            _fail(future, found)
            return
        if found is not None:
            self._whole.add(request.neighbours, request.extent, found)
        future.set_result(found)

    # --------------------------------------------------------------------------------------------------

    async def count(self, neighbours: NeighbourList, most_pages: int) -> int | None:
        return cast("int | None", await self._get(CountOf(neighbours, most_pages)))

    async def edges_to(self, edges: EdgesTo) -> list[Located]:
        return cast("list[Located]", await self._get(edges))

    async def _get(self, request: NeighbourRequest) -> Any:
        return await asyncio.shield(self.load(request))

    def _known(self, request: NeighbourRequest) -> Any:
        """What lists that were read whole tell."""
        if isinstance(request, PageOf):
            return self._whole.page(request.neighbours, request.extent)
        if isinstance(request, CountOf):
            return self._whole.count(request.neighbours)
        return None

    async def _answer(self, request: NeighbourRequest) -> Any:
        if isinstance(request, PageOf):
            page = await read(self._store, request.neighbours, request.extent)
            self._whole.add(request.neighbours, request.extent, page)
            return page
        if isinstance(request, CountOf):
            return await count(self._store, request.neighbours, request.most_pages)
        return await read_to(self._store, request.neighbours, request.owner, request.nodes)
