"""The dataloaders of one request: items by their keys, and lists of neighbors.

They follow aiodataloader's rules: a key that is requested twice is read once, and a failed key does not affect others.
`keygraph_resolvers.read.scheduler` decides when a batch of keys is sent, and `keygraph_resolvers.read.links` does so
for the other items that rules need; both call `NodeLoader.load_batch`, which dispatches the queue with the library's
own `dispatch_queue`, a public function. A list is read as soon as it is requested.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass, replace
from typing import Any, Generic, NamedTuple, TypeAlias, TypeVar, cast

from aiodataloader import DataLoader, dispatch_queue

from keygraph.dynamo.conditions import Path
from keygraph.dynamo.items import Item
from keygraph.dynamo.store import BatchGet, Store
from keygraph.dynamo.table import Key
from keygraph.errors import BadUserInput, KeygraphError, TimedOut
from keygraph.lists.counting import count
from keygraph.lists.listing import Located, NeighbourList
from keygraph.lists.named_edges import read_to
from keygraph.lists.reading import Extent, Found, read
from keygraph_resolvers.read.meter import READ

KeyT = TypeVar("KeyT", bound=Hashable)
ValueT = TypeVar("ValueT")


class SharedLoader(DataLoader[KeyT, ValueT], Generic[KeyT, ValueT]):
    """A dataloader whose waiters cannot harm each other. The loaders below define how several keys are read."""

    def __init__(self, *, batch: bool) -> None:
        self.futures: dict[KeyT, asyncio.Future[ValueT]] = {}
        """The requested answers, by key."""
        self.tasks: set[asyncio.Task[Any]] = set()
        """The reads under way, which end when they are canceled."""
        super().__init__(batch=batch, cache_map=self.futures, loop=asyncio.get_running_loop())

    async def read(self, keys: list[KeyT]) -> Sequence[ValueT | Exception]:
        """Returns the value of each key, or the exception that it fails with."""
        raise NotImplementedError

    async def batch_load_fn(self, keys: list[KeyT]) -> list[ValueT]:
        """Returns the values for the library. An exception in place of a value belongs to the key."""
        task = cast("asyncio.Task[Any]", asyncio.current_task())
        self.tasks.add(task)
        try:
            values = await self.read(keys) if keys else []
        except asyncio.CancelledError:
            # The library would leave the waiters waiting forever, and the keys in its cache.
            values = [TimedOut("the request to the store was given up") for _ in keys]
            for key, value in zip(keys, values, strict=True):
                future = self.futures.pop(key, None)
                if future is not None:
                    _fail(future, cast(Exception, value))
            if task.cancelling():
                raise
        finally:
            self.tasks.discard(task)
            # A canceled task references its frames: a frame that references the task keeps all that was read.
            del task
        for key, value in zip(keys, values, strict=True):
            if isinstance(value, Exception) and key in self.futures:
                _fail(self.futures[key], value)
        return cast("list[ValueT]", values)


def _bare(error: Exception) -> Exception:
    """Returns the error without its frames, which hold all that was read, unless it is a fault of the server."""
    return error.with_traceback(None) if isinstance(error, KeygraphError) else error


def _fail(future: asyncio.Future[Any], error: Exception) -> None:
    """Fails a future. The event loop would report a future that nobody waits for anymore."""
    if not future.done():
        future.set_exception(error)
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
        super().__init__(batch=True)
        self._store = store
        self._projection = projection
        self._is_expired = is_expired

    def load_batch(self, keys: Sequence[Key]) -> list[asyncio.Future[Item | None]]:
        """Returns the answers for these keys; those that were not requested before are sent as one batch, now."""
        futures = [self.load(key) for key in keys]
        dispatch_queue(self)
        return futures

    async def read(self, keys: list[Key]) -> Sequence[Item | Exception | None]:
        try:
            items = (await self._store.send(BatchGet(tuple(keys), self._projection))).items
            is_expired = self._is_expired
            if is_expired is None:
                return items
            return [None if item is None or is_expired(item) else item for item in items]
        except BadUserInput as error:
            if len(keys) == 1:
                return [error]
            # One key that the store refuses must not fail the others, nor make each of them a separate request.
            half = len(keys) // 2
            first, second = await asyncio.gather(self.read(keys[:half]), self.read(keys[half:]))
            return [*first, *second]
        except Exception as error:
            return [_bare(error) for _ in keys]


# --- Lists --------------------------------------------------------------------------------------------


class PageOf:
    """A part of a list."""

    __slots__ = ("extent", "hash", "neighbours")

    def __init__(self, neighbours: NeighbourList, extent: Extent) -> None:
        self.neighbours = neighbours
        self.extent = extent
        # Where it begins: most lists of an operation are requested for one part from there.
        self.hash = hash((neighbours.hash, extent.forward, extent.after, extent.until))

    def __eq__(self, other: object) -> bool:
        if self is other:
            return True
        return (
            isinstance(other, PageOf) and self.extent == other.extent and self.neighbours == other.neighbours
        )

    def __hash__(self) -> int:
        return self.hash

    def begins_with(self, other: PageOf) -> bool:
        """Returns whether it begins where another part of the same list does, in the same direction."""
        mine, theirs = self.extent, other.extent
        return (
            mine.forward == theirs.forward
            and (mine.after, mine.until) == (theirs.after, theirs.until)
            and self.neighbours == other.neighbours
        )

    def has(self, other: Extent) -> bool:
        """Returns whether a part that begins at the same place, in the same direction, is in this one."""
        mine = self.extent
        if other.count > mine.count or not _has_attributes(mine, other):
            return False
        return not other.look_ahead or other.count < mine.count or mine.look_ahead


@dataclass(frozen=True)
class CountOf:
    """A request for a list's count, within a number of pages."""

    neighbours: NeighbourList
    most_pages: int


@dataclass(frozen=True)
class EdgesTo:
    """A request for the edges of a list from its owner to a node."""

    neighbours: NeighbourList
    owner: tuple[str, ...]
    node: tuple[str, ...]


NeighbourRequest: TypeAlias = PageOf | CountOf | EdgesTo


class Arrived(NamedTuple):
    """The answer of a read, and the first round trip in which something from it can be requested."""

    answer: Any
    round_trip: int


class NeighbourLoader(SharedLoader[NeighbourRequest, Arrived]):
    """Lists of neighbors: each is read at once and separately, with a limit on how many at one time.

    A part of a list of which more is read from the same place, or which was read whole, is not read again.
    """

    def __init__(self, store: Store, concurrency: int) -> None:
        super().__init__(batch=False)
        self._store = store
        self._limit = asyncio.Semaphore(concurrency)
        self._longest: dict[int, list[PageOf]] = {}
        """The longest part requested from each place, by its hash."""
        self._whole: dict[Hashable, list[tuple[NeighbourList, Extent, list[Located]]]] = {}

    def ask(self, request: NeighbourRequest) -> asyncio.Future[Arrived] | Arrived:
        """Returns the answer if it is known already; else its future.

        The answer for a page may be a longer one that begins at the same place.
        """
        if isinstance(request, PageOf):
            request = self._longer(request) or self._keep_longest(request)
        if self._whole and request not in self.futures:
            known = self._known(request)
            if known is not None:
                return known
        return self.load(request)

    async def read(self, keys: list[NeighbourRequest]) -> Sequence[Arrived | Exception]:
        [request] = keys
        longer = self._longer(request) if isinstance(request, PageOf) else None
        if longer is not None and longer is not request and longer in self.futures:
            # It was requested since, by another field of the root.
            try:
                return [await asyncio.shield(self.futures[longer])]
            except Exception as error:
                return [error]
        await self._limit.acquire()
        try:
            answer = await self._answer(request)
        except Exception as error:
            return [_bare(error)]
        finally:
            self._limit.release()
        under_way = READ.get()
        return [Arrived(answer, under_way.round_trip if under_way else 0)]

    async def _answer(self, request: NeighbourRequest) -> Any:
        match request:
            case PageOf():
                found = await read(self._store, request.neighbours, request.extent)
                self._keep_whole(request, found)
                return found
            case CountOf(neighbours, most_pages):
                return await count(self._store, neighbours, most_pages)
            case EdgesTo(neighbours, owner, node):
                return await read_to(self._store, neighbours, owner, node)

    def _longer(self, page: PageOf) -> PageOf | None:
        """Returns a requested page that contains all of this one, if there is one."""
        for each in self._longest.get(page.hash, ()):
            if each is page or each.begins_with(page):
                return each if each.has(page.extent) else None
        return None

    def _keep_longest(self, page: PageOf) -> PageOf:
        others = [each for each in self._longest.get(page.hash, ()) if not each.begins_with(page)]
        self._longest[page.hash] = [*others, page]
        return page

    def forget(self, request: PageOf) -> None:
        """Forgets a page that is not requested anymore, and its list."""
        self.futures.pop(request, None)
        self._longest.pop(request.hash, None)
        self._whole.pop(_kind(request.neighbours), None)

    # --- Pages that something else reads --------------------------------------------------------------

    def is_known(self, request: PageOf) -> bool:
        """Returns whether a page was read, or is about to be."""
        return request in self.futures or self._longer(request) in self.futures

    def promise(self, request: PageOf) -> asyncio.Future[Arrived]:
        """Promises that the page is read with other things: requests for it wait for that."""
        if self._longer(request) is None:
            self._keep_longest(request)
        promised = self.futures[request] = self.loop.create_future()
        return promised

    def keep_promise(self, request: PageOf, arrived: Arrived | Exception | None) -> None:
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

    def _keep_whole(self, request: PageOf, found: Found) -> None:
        """Records a page if it is all of its list."""
        neighbours, extent = request.neighbours, request.extent
        is_open = extent.after is not None or extent.until is not None or found.resume is not None
        is_ended = len(found.items) < extent.count or (extent.look_ahead and not found.more)
        if is_open or not is_ended or neighbours.narrowed:
            return
        items = found.items if extent.forward else found.items[::-1]
        self._whole.setdefault(_kind(neighbours), []).append((neighbours, extent, items))

    def _known(self, request: NeighbourRequest) -> Arrived | None:
        """Returns the answer from lists that were read whole."""
        if isinstance(request, CountOf):
            items = self._items(request.neighbours, Extent(0, attributes=frozenset()))
            return None if items is None else Arrived(len(items), 0)
        if not isinstance(request, PageOf):
            return None
        extent = request.extent
        if extent.after is not None or extent.until is not None:
            return None
        items = self._items(request.neighbours, extent)
        if items is None:
            return None
        if not extent.forward:
            items.reverse()
        more = extent.look_ahead and len(items) > extent.count
        return Arrived(Found(items[: extent.count], more, None), 0)

    def _items(self, neighbours: NeighbourList, wanted: Extent) -> list[Located] | None:
        if neighbours.form.checked and wanted.attributes is not None:
            wanted = replace(wanted, attributes=wanted.attributes | neighbours.form.checked)
        for whole, extent, items in self._whole.get(_kind(neighbours), ()):
            is_part = neighbours.span.within(whole.span) == neighbours.span
            # Of several types, the whole list may have been asked for some.
            if is_part and neighbours.parts.keys() <= whole.parts.keys() and _has_attributes(extent, wanted):
                # Its filter need not use the attributes that were read: all of these items have passed it.
                return [
                    each
                    for each in items
                    if neighbours.reads(neighbours.sort_of(each.item))
                    and neighbours.identified(each.item) is not None
                ]
        return None


def _has_attributes(one: Extent, wanted: Extent) -> bool:
    """Returns whether what was read has the wanted attributes."""
    if one.attributes is None or one.attributes is wanted.attributes:
        return True
    return wanted.attributes is not None and wanted.attributes <= one.attributes


def _kind(neighbours: NeighbourList) -> Hashable:
    """Returns what lists must share so that one can be a part of the other."""
    return neighbours.path, neighbours.partitions, neighbours.filter, neighbours.condition


def _copy(done: asyncio.Future[Arrived], to: asyncio.Future[Arrived]) -> None:
    if to.done() or done.cancelled():
        return
    error = done.exception()
    if error is not None:
        _fail(to, cast(Exception, error))
    else:
        to.set_result(done.result())
