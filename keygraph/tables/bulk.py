"""Writes many items, and reads all items of a table, in bounded memory."""

from __future__ import annotations

import asyncio
import time
from collections import deque
from collections.abc import AsyncGenerator, Callable, Collection, Coroutine, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, TypeAlias, TypeVar

from keygraph.dynamo.actions import PutItem, SetTo, UpdateItem
from keygraph.dynamo.conditions import And, Condition, Exists, Not
from keygraph.dynamo.items import Item
from keygraph.dynamo.store import (
    BatchWrite,
    Changed,
    Cost,
    PassingStore,
    Request,
    Scan,
    Store,
    Transaction,
    Write,
    Written,
)
from keygraph.dynamo.table import Key, Position
from keygraph.errors import ConditionFailed
from keygraph.graph import Graph
from keygraph.model.node_shards import is_shard, node_of_shard
from keygraph.tables.findings import key_from_json, key_to_json
from keygraph.writing.sending.idempotency import is_note

Mark = TypeVar("Mark")
Result = TypeVar("Result")

WriteItems: TypeAlias = "Callable[[Store, Sequence[Item]], Coroutine[Any, Any, None]]"

Answer = TypeVar("Answer", Changed, Written)

BATCH_ITEMS = 250
"""The number of items in one batch of a load."""
IN_FLIGHT = 8
AT_ONCE = 64
"""The most writes, parts of a table or files that a job has under way: the embedded engine puts so many writes into one
transaction."""
SEGMENTS = 4


async def write_batches(
    store: Store,
    batches: Iterable[tuple[Sequence[Item], Mark]],
    written: Callable[[Mark], None],
    in_flight: int = IN_FLIGHT,
    write: WriteItems | None = None,
) -> None:
    """Writes the items, up to `in_flight` batches at once. Of items with equal keys, the last one wins.

    `write` writes a batch; without it, items replace the stored ones.

    With `in_flight=1`, a batch is written before the next one is read. That suits the embedded engine, whose thread
    would compete with the reading one for the interpreter at every row, and large batches touch each page of its file
    less often: `keygraph load --sample commerce --users 2000` takes 1.2 times the time without (median of three turns).
    `written` is called with the mark of a batch once that batch and all before it are in the table. An exception from
    `batches` is raised again after everything before it is in the table. After a StoreError, any part of the batches
    after the last mark may be in the table.
    """
    running: deque[tuple[asyncio.Task[None], set[Key], Mark]] = deque()

    async def end_first() -> None:
        await running[0][0]
        written(running.popleft()[2])

    try:
        try:
            for items, mark in batches:
                keys = {store.table.key_of(item) for item in items}
                # Batches may overtake each other, so two with the same key are never under way together.
                while any(not keys.isdisjoint(other) for _, other, _ in running):
                    await end_first()
                running.append((asyncio.create_task((write or _replace)(store, items)), keys, mark))
                await asyncio.sleep(0)
                while len(running) >= in_flight:
                    await end_first()
        finally:
            while running:
                await end_first()
    except BaseException:
        for task, _, _ in running:
            task.cancel()
        await asyncio.gather(*(task for task, _, _ in running), return_exceptions=True)
        raise


class WriteRate:
    """The most write units a second of all who send writes by it."""

    def __init__(self, units: float | None = None) -> None:
        """`units` None is no limit."""
        self._units = units
        self._turn = asyncio.Lock()
        self._free_at = 0.0

    @property
    def is_limited(self) -> bool:
        return self._units is not None

    async def send(self, store: Store, request: Request[Answer]) -> Answer:
        """Sends a write as soon as the rate allows it. Raises what the store raises."""
        if self._units is None:
            return await store.send(request)
        async with self._turn:
            await asyncio.sleep(max(0.0, self._free_at - time.monotonic()))
            answer = await store.send(request)
            self._free_at = time.monotonic() + answer.cost.write_units / self._units
            return answer


@dataclass(slots=True)
class RatedStore(PassingStore):
    """A store to which writes are sent by a rate."""

    rate: WriteRate

    async def send(self, request: Request[Result], /) -> Result:
        """Sends a request. Raises what the store raises."""
        write: Any = request
        is_write = isinstance(request, Write | Transaction)
        answer: Result = await (self.rate.send(self.store, write) if is_write else self.store.send(request))
        return answer


@dataclass(slots=True)
class UnwrittenStore(PassingStore):
    """A store that reads, and answers writes as if they were made."""

    listen: Callable[[Request[Any]], None] = lambda _: None
    """Called with each request."""

    async def send(self, request: Request[Result], /) -> Result:
        """Sends a request that reads. Raises what the store raises."""
        self.listen(request)
        made: Any = None
        if isinstance(request, Write):
            made = Changed(None, Cost())
        elif isinstance(request, Transaction | BatchWrite):
            made = Written(Cost())
        answer: Result = made or await self.store.send(request)
        return answer


@dataclass(slots=True)
class TypedStore(PassingStore):
    """A store of which a Scan returns only the items of some types. All are read."""

    graph: Graph
    types: Collection[str]

    async def send(self, request: Request[Result], /) -> Result:
        """Sends a request. Raises what the store raises."""
        answer: Any = await self.store.send(request)
        if isinstance(request, Scan):
            answer = replace(answer, items=[*filter(self._is_wanted, answer.items)])
        found: Result = answer
        return found

    def _is_wanted(self, item: Item) -> bool:
        if is_shard(item):  # which has a part of the numbers of its node
            found = node_of_shard(self.graph.types, self.graph.table, item)
            return found is not None and found[0].name in self.types
        record = self.graph.recognise(item)
        return record is not None and record.name in self.types


def unwritten(store: Store) -> UnwrittenStore:
    """Returns the store if it writes nothing, or one that does not."""
    return store if isinstance(store, UnwrittenStore) else UnwrittenStore(store)


class SegmentPositions:
    """How far each segment of a table was read."""

    def __init__(self, segments: int) -> None:
        self.at: dict[int, Position | None] = dict.fromkeys(range(segments))
        """The position after which each segment goes on."""
        self._ended: set[int] = set()

    @property
    def segments(self) -> int:
        return len(self.at)

    @property
    def left(self) -> list[int]:
        """The segments that were not read to their end."""
        return [segment for segment in self.at if segment not in self._ended]

    def advance(self, segment: int, last: Position | None) -> None:
        """Notes the position after a page; None at the end of a segment."""
        self.at[segment] = last
        if last is None:
            self._ended.add(segment)

    def to_json(self) -> dict[str, Any]:
        """Returns the progress as JSON, except that keys may hold bytes, which are to be written in base64."""
        reached = [position and key_to_json(position) for position in self.at.values()]
        return {"reached": reached, "ended": sorted(self._ended)}

    def resume(self, kept: Mapping[str, Any]) -> None:
        """Takes the progress of another run with the same number of segments.

        Raises KeyError, TypeError or ValueError, and changes nothing, if `kept` is malformed.
        """
        reached = [position and key_from_json(position) for position in kept["reached"]]
        if len(reached) != len(self.at):
            raise ValueError("another number of segments")
        self._ended = set(kept["ended"])
        self.at = dict(enumerate(reached))


async def gathered(work: Iterable[Coroutine[Any, Any, Result]], at_once: int = AT_ONCE) -> list[Result]:
    """Returns what each gives, with no more than `at_once` under way. If one fails, the others end before its error is
    raised, and no more are begun."""
    results: dict[int, Result] = {}
    numbered = enumerate(work)

    async def do_next() -> None:
        for number, each in numbered:
            results[number] = await each

    tasks = [asyncio.create_task(do_next()) for _ in range(at_once)]
    try:
        await asyncio.gather(*tasks)
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
    return [results[number] for number in range(len(results))]


async def _replace(store: Store, items: Sequence[Item]) -> None:
    await store.send(BatchWrite(tuple(items)))


async def put_absent(store: Store, items: Sequence[Item]) -> int:
    """Puts the items whose keys are free, one at a time, each on that condition. Returns how many keys are taken."""
    taken = 0
    for item in items:
        try:
            await store.send(Write(PutItem(item, Not(Exists((store.table.partition.name,))))))
        except ConditionFailed:
            taken += 1
    return taken


async def set_attributes(store: Store, item: Item, conditions: Sequence[Condition] = ()) -> None:
    """Sets the item's attributes and keeps other stored ones. Raises ConditionFailed with the stored item."""
    names = {key.name for key in store.table.keys}
    changes = tuple(SetTo((name,), value) for name, value in item.items() if name not in names)
    condition = And(tuple(conditions)) if conditions else None
    await store.send(Write(UpdateItem(store.table.key_of(item), changes, condition)))


async def whole_table(store: Store, segments: int = SEGMENTS) -> AsyncGenerator[Item, None]:
    """Yields every item of the table except notes of idempotency keys, read consistently, from all segments at once.

    Segments take turns, one page each, so an unchanged table always gives its items in the same order. The next page of
    each is being read meanwhile. Raises StoreError.
    """
    scans = [Scan(segment, segments, consistent=True) for segment in range(segments)]
    reading = deque((scan, asyncio.create_task(store.send(scan))) for scan in scans)
    try:
        while reading:
            scan, page = reading[0][0], await reading[0][1]
            reading.popleft()
            if page.last is not None:
                scan = replace(scan, start=page.last)
                reading.append((scan, asyncio.create_task(store.send(scan))))
            for item in page.items:
                if not is_note(item):
                    yield item
    finally:
        for _, task in reading:
            task.cancel()
        await asyncio.gather(*(task for _, task in reading), return_exceptions=True)
