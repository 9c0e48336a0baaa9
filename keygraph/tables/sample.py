"""A sample of a table: some pages of several segments, read in parallel."""

from __future__ import annotations

import asyncio
from dataclasses import replace

from keygraph.dynamo.items import Item
from keygraph.dynamo.store import Scan, Store
from keygraph.writing.sending.idempotency import is_note

_SEGMENTS = 16
"""Many segments, because one page of a segment often comes from a single partition."""


async def sample(store: Store, count: int, segments: int = _SEGMENTS) -> list[Item]:
    """At most `count` items of the store's table; fewer only if the table has fewer.

    Each segment is asked for its share; what one segment lacks is asked of the others. Raises StoreError.
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
        asked = [replace(scan, limit=share) for scan in waiting.values()]
        pages = await asyncio.gather(*(store.send(scan) for scan in asked))
        for segment, page in zip(tuple(waiting), pages, strict=True):
            items = [item for item in page.items if not is_note(item)]
            found[segment] += items
            missing -= len(items)
            if page.last is None:
                del waiting[segment]
            else:
                waiting[segment] = replace(waiting[segment], start=page.last)
    return [item for items in found.values() for item in items][:count]
