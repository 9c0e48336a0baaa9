"""A sample of a table: some pages of several segments, or one whole segment after another."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import AsyncGenerator
from dataclasses import replace

from keygraph.dynamo.items import Item, Value
from keygraph.dynamo.store import Scan, Store
from keygraph.writing.sending.idempotency import is_own

_SEGMENTS = 16
"""Many segments, because one page of a segment often comes from a single partition."""

_MOST_SEGMENTS = 4**8
"""DynamoDB allows 1,000,000."""
_STRIDE = 0x9E3779B1
"""Odd, so that its multiples visit all segments (their number is a power of 4); two in a row are never adjacent."""


async def sample(store: Store, count: int, segments: int = _SEGMENTS) -> list[Item]:
    """Returns at most `count` items of the store's table; fewer only if the table has fewer.

    Each segment is asked for its share, and the others make up for what it lacks. Raises StoreError.
    """
    waiting: dict[int, Scan] = {
        segment: Scan(segment=segment, segments=segments) for segment in range(min(segments, count))
    }
    if count < segments:
        waiting = {0: Scan()}
    found: dict[int, list[Item]] = {segment: [] for segment in waiting}
    missing = count
    while waiting and missing > 0:
        share = -(-missing // len(waiting))
        scans = [replace(scan, limit=share) for scan in waiting.values()]
        pages = await asyncio.gather(*(store.send(scan) for scan in scans))
        for segment, page in zip(tuple(waiting), pages, strict=True):
            items = [item for item in page.items if not is_own(item)]
            found[segment] += items
            missing -= len(items)
            if page.last is None:
                del waiting[segment]
            else:
                waiting[segment] = replace(waiting[segment], start=page.last)
    return [item for items in found.values() for item in items][:count]


async def parts(store: Store, size: int) -> AsyncGenerator[tuple[list[Item], bool], None]:
    """Yields parts from all over the store's table, of at most `size` items each, until everything was read.

    A part is a segment, so it has whole partitions; `size` decides how many segments there are. Each part comes with
    whether it is whole. Items that have been in a part before are left out. Raises StoreError.
    """
    known: set[tuple[Value, ...]] = set()
    segments, waiting, is_first = 1, deque([Scan()]), True
    while waiting:
        items, rest = await _read(store, waiting.popleft(), size)
        fresh = [item for item in items if not is_own(item) and store.table.key_of(item) not in known]
        known.update(map(store.table.key_of, fresh))
        yield fresh, rest is None
        if is_first and rest is not None and segments < _MOST_SEGMENTS:
            segments *= 4
            waiting = deque(
                Scan(segment=number * _STRIDE % segments, segments=segments) for number in range(segments)
            )
            # Number 0 starts where the previous part did, so it comes last.
            waiting.rotate(-1)
            continue
        is_first = False
        if rest is not None:
            waiting.append(rest)


async def _read(store: Store, scan: Scan, size: int) -> tuple[list[Item], Scan | None]:
    """Returns at most `size` items of a segment, and the scan that continues after them; None if these are all."""
    found: list[Item] = []
    while True:
        page = await store.send(replace(scan, limit=size - len(found)))
        found += page.items
        if page.last is None:
            return found, None
        scan = replace(scan, start=page.last)
        if len(found) >= size:
            return found, scan
