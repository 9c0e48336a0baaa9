"""Writes many items, and reads all items of a table, in bounded memory."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import AsyncGenerator, Callable, Coroutine, Iterable, Sequence
from typing import Any, TypeAlias, TypeVar

from keygraph.dynamo.actions import PutItem, SetTo, UpdateItem
from keygraph.dynamo.conditions import And, Condition, Exists, Not
from keygraph.dynamo.items import Item
from keygraph.dynamo.store import BatchWrite, Page, Scan, Store, Write, pages
from keygraph.dynamo.table import Key
from keygraph.errors import ConditionFailed
from keygraph.writing.sending.idempotency import is_note

Mark = TypeVar("Mark")

WriteItems: TypeAlias = "Callable[[Store, Sequence[Item]], Coroutine[Any, Any, None]]"

BATCH_ITEMS = 250
"""The number of items in one batch of a load."""
IN_FLIGHT = 8
_SEGMENTS = 4


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


async def whole_table(store: Store, segments: int = _SEGMENTS) -> AsyncGenerator[Item, None]:
    """Yields every item of the table except notes of idempotency keys, read consistently, from all segments at once.

    Segments take turns, one item each, so an unchanged table always gives its items in the same order. Raises
    StoreError.
    """
    streams = [
        _Segment(store, Scan(segment=segment, segments=segments, consistent=True))
        for segment in range(segments)
    ]
    try:
        while streams:
            for stream in tuple(streams):
                if not stream.waiting:
                    await stream.fill()
                if stream.waiting:
                    yield stream.waiting.popleft()
                else:
                    streams.remove(stream)
    finally:
        for stream in streams:
            await stream.close()


class _Segment:
    """One segment: the items of a page, while the next page is being read."""

    def __init__(self, store: Store, scan: Scan) -> None:
        self.waiting: deque[Item] = deque()
        self._pages = pages(store, scan)
        self._next: asyncio.Task[Page | None] | None = asyncio.create_task(self._page())

    async def _page(self) -> Page | None:
        return await anext(self._pages, None)

    async def fill(self) -> None:
        """Waits for pages until there are items, or no more pages."""
        while not self.waiting and self._next is not None:
            page = await self._next
            self._next = None if page is None else asyncio.create_task(self._page())
            if page is not None:
                self.waiting.extend(item for item in page.items if not is_note(item))

    async def close(self) -> None:
        if self._next is not None:
            self._next.cancel()
            await asyncio.gather(self._next, return_exceptions=True)
