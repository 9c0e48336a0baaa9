"""The dataloaders of one request: nodes by key, and lists of neighbours.

A batch is one level of the operation: everything that was asked for by the time nothing more is asked. Waiters are
shielded from each other: one that is cancelled, as graphql-core cancels the siblings of a failed non-null field,
leaves the shared answer to the others, and a key that fails fails alone.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Generic, TypeAlias, TypeVar, cast

from aiodataloader import DataLoader, Loader, dispatch_queue

from keygraph.counting import count
from keygraph.errors import StoreError, TimedOut
from keygraph.items import Item
from keygraph.listing import NeighbourList, Place
from keygraph.reading import Extent, Found, read, read_to
from keygraph.store import BatchGet, Store
from keygraph.table import Key

KeyT = TypeVar("KeyT")
ValueT = TypeVar("ValueT")

_QUIET_ROUNDS = 3
"""A batch leaves when in so many rounds of the event loop nothing was added to it: siblings at one level arrive a
few rounds apart, since a list of lists takes more steps to complete than a single field."""


class LevelLoader(DataLoader[KeyT, ValueT], Generic[KeyT, ValueT]):
    """A dataloader whose batches are levels, and whose waiters cannot harm each other."""

    def __init__(self) -> None:
        super().__init__()
        self._departures: set[asyncio.Task[None]] = set()

    async def get(self, key: KeyT) -> ValueT:
        """The value of a key. A cancelled waiter cancels nothing but itself."""
        return await asyncio.shield(self.load(key))

    async def load_all(self, keys: Sequence[KeyT]) -> list[ValueT | Exception]:
        """The value of each key, or the exception that it fails with."""
        raise NotImplementedError

    async def batch_load_fn(self, keys: list[KeyT]) -> list[ValueT]:
        try:
            values = await self.load_all(keys)
        except asyncio.CancelledError:
            # aiodataloader would leave the waiters hanging and the keys' futures in the cache.
            gave_up = TimedOut("the request to the store was given up")
            for key in keys:
                future = self._cache.pop(key, None)
                if future is not None and not future.done():
                    future.set_exception(gave_up)
            task = asyncio.current_task()
            if task is not None and task.cancelling():
                raise
            values = [gave_up for _ in keys]
        return cast("list[ValueT]", values)

    def do_resolve_reject(self, key: KeyT, future: asyncio.Future[ValueT]) -> None:
        """Takes the key into the next batch, which leaves when nothing more is added to it."""
        self._queue.append(Loader(key=key, future=future))
        if len(self._queue) == 1:
            departure = asyncio.ensure_future(self._leave_when_quiet())
            self._departures.add(departure)
            departure.add_done_callback(self._departures.discard)

    async def _leave_when_quiet(self) -> None:
        quiet = 0
        while quiet < _QUIET_ROUNDS:
            size = len(self._queue)
            await asyncio.sleep(0)
            quiet = quiet + 1 if len(self._queue) == size else 0
        dispatch_queue(self)


class NodeLoader(LevelLoader[Key, Item | None]):
    """Items by their table key: one BatchGet for a level, without duplicates."""

    def __init__(self, store: Store) -> None:
        super().__init__()
        self._store = store

    async def load_all(self, keys: Sequence[Key]) -> list[Item | Exception | None]:
        try:
            batch = await self._store.send(BatchGet(tuple(keys)))
        except StoreError as error:
            return [error for _ in keys]
        except Exception as error:
            if len(keys) == 1:
                return [error]
            # One key that the store refuses must not fail the others.
            alone = await asyncio.gather(*(self.load_all([key]) for key in keys))
            return [value for [value] in alone]
        return [*batch.items]


@dataclass(frozen=True)
class PageOf:
    """A part of a list."""

    neighbours: NeighbourList
    extent: Extent


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


class NeighbourLoader(LevelLoader[NeighbourRequest, Any]):
    """Lists of neighbours: equal requests run once, the others at the same time under a limit."""

    def __init__(self, store: Store, concurrency: int) -> None:
        super().__init__()
        self._store = store
        self._turns = asyncio.Semaphore(concurrency)

    async def page(self, neighbours: NeighbourList, extent: Extent) -> Found:
        return cast(Found, await self.get(PageOf(neighbours, extent)))

    async def count(self, neighbours: NeighbourList, most_pages: int) -> int | None:
        return cast("int | None", await self.get(CountOf(neighbours, most_pages)))

    async def edges_to(self, edges: EdgesTo) -> list[tuple[Place, Item]]:
        return cast("list[tuple[Place, Item]]", await self.get(edges))

    async def load_all(self, keys: Sequence[NeighbourRequest]) -> list[Any]:
        answers = await asyncio.gather(*map(self._answer, keys), return_exceptions=True)
        gave_up = TimedOut("the request to the store was given up")
        return [gave_up if isinstance(answer, asyncio.CancelledError) else answer for answer in answers]

    async def _answer(self, request: NeighbourRequest) -> Any:
        async with self._turns:
            match request:
                case PageOf(neighbours, extent):
                    return await read(self._store, neighbours, extent)
                case CountOf(neighbours, most_pages):
                    return await count(self._store, neighbours, most_pages)
                case EdgesTo(neighbours, owner, nodes):
                    return await read_to(self._store, neighbours, owner, nodes)
