"""Whole tables: writing items by the thousand and reading all of them, in bounded memory."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import AsyncGenerator, Callable, Iterable, Sequence
from itertools import chain, islice
from typing import TypeVar

from keygraph.dynamo.items import Item
from keygraph.dynamo.store import BatchWrite, Page, Scan, Store, Written, pages
from keygraph.dynamo.table import Key

Mark = TypeVar("Mark")

BATCH_ITEMS = 250
"""How many items one batch of a load has."""
_IN_FLIGHT = 8
_TOGETHER = 40
_SEGMENTS = 4


async def write_batches(
    store: Store,
    batches: Iterable[tuple[Sequence[Item], Mark]],
    written: Callable[[Mark], None],
    in_flight: int = _IN_FLIGHT,
) -> None:
    """Puts the items, several batches at once, and of equal keys the last one last.

    `written` is called with the mark of a batch when it and all before it are in the table. What `batches` raises
    is raised when everything before it is in the table. Raises a StoreError, after which an unknown part of the
    batches behind the last mark is in the table.
    """
    running: deque[tuple[asyncio.Task[Written], set[Key], Mark]] = deque()

    async def end_first() -> None:
        await running[0][0]
        written(running.popleft()[2])

    try:
        try:
            for items, mark in batches:
                keys = {store.table.key_of(item) for item in items}
                # Batches may overtake each other, so two with the same key are never under way together.
                while len(running) >= in_flight or any(not keys.isdisjoint(other) for _, other, _ in running):
                    await end_first()
                running.append((asyncio.create_task(store.send(BatchWrite(tuple(items)))), keys, mark))
                await asyncio.sleep(0)
        finally:
            while running:
                await end_first()
    except BaseException:
        for task, _, _ in running:
            task.cancel()
        await asyncio.gather(*(task for task, _, _ in running), return_exceptions=True)
        raise


async def write_in_turns(
    store: Store,
    batches: Iterable[tuple[Sequence[Item], Mark]],
    written: Callable[[Mark], None],
    together: int = _TOGETHER,
) -> None:
    """The same for an engine that works in this process: so many batches are read, then written as one.

    Both at once would have two threads take the interpreter from each other at every row, which costs a quarter
    more; and few large writes touch each page of the file fewer times.
    """
    reading = iter(batches)
    while True:
        read: list[tuple[Sequence[Item], Mark]] = []
        failure: Exception | None = None
        try:
            for batch in islice(reading, together):
                read.append(batch)  # noqa: PERF402  # what was read before a failure is written
        except Exception as error:
            failure = error
        if read:
            await store.send(BatchWrite(tuple(chain.from_iterable(items for items, _ in read))))
            for _, mark in read:
                written(mark)
        if failure is not None:
            raise failure
        if not read:
            return


async def whole_table(store: Store, segments: int = _SEGMENTS) -> AsyncGenerator[Item, None]:
    """Every item, read consistently in so many segments at once.

    One item of each segment in turn, so that an unchanged table always gives its items in the same order.
    Raises a StoreError.
    """
    streams = [
        _Segment(store, Scan(segment=segment, segments=segments, consistent=True))
        for segment in range(segments)
    ]
    try:
        while streams:
            for stream in tuple(streams):
                if not stream.waiting:
                    await stream.turn()
                if stream.waiting:
                    yield stream.waiting.popleft()
                else:
                    streams.remove(stream)
    finally:
        for stream in streams:
            await stream.close()


class _Segment:
    """One segment: the items of a page, while the next page is under way."""

    def __init__(self, store: Store, scan: Scan) -> None:
        self.waiting: deque[Item] = deque()
        self._pages = pages(store, scan)
        self._next: asyncio.Task[Page | None] | None = asyncio.create_task(self._page())

    async def _page(self) -> Page | None:
        return await anext(self._pages, None)

    async def turn(self) -> None:
        """Takes pages until there are items, or no further page."""
        while not self.waiting and self._next is not None:
            page = await self._next
            self._next = None if page is None else asyncio.create_task(self._page())
            if page is not None:
                self.waiting.extend(page.items)

    async def close(self) -> None:
        if self._next is not None:
            self._next.cancel()
            await asyncio.gather(self._next, return_exceptions=True)
