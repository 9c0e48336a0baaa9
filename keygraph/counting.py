"""Counting lists: by the store where its answer is the list's, else by keys that are recognised here.

A count reads what it counts, whoever counts: DynamoDB charges for the items' sizes either way. So it has a bound, in
pages of at most 1 MB (128 read units), beyond which there is no count.

What is counted is what paging through the list finds: the items of its type, by type attribute and key, that meet its
conditions. With one exception: where items say their type, the store is believed, and counts an item that says it of
itself under a key that is none of the type's.
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, replace

from keygraph.listing import NeighbourList
from keygraph.projecting import list_projection
from keygraph.ranges import Span
from keygraph.store import Count, Query, Store
from keygraph.table import KeyValue


@dataclass(slots=True)
class _Pages:
    """How many more pages may be read."""

    left: int

    def take(self) -> bool:
        """Whether one more may be; it counts as read."""
        self.left -= 1
        return self.left >= 0


async def count(store: Store, neighbours: NeighbourList, most_pages: int) -> int | None:
    """How many items the list has; None where it takes more pages to know it. Raises a StoreError.

    One page of each shard, and of each piece of the range, is read at least, all of them at once.
    """
    by_store = neighbours.counted
    spans = neighbours.reading.pieces if by_store is None else by_store
    parts = [(partition, span) for partition in neighbours.partitions for span in spans if not span.is_empty]
    pages = _Pages(max(most_pages, len(parts)))
    counts = await asyncio.gather(
        *(
            _recognised(store, neighbours, partition, span, pages)
            if by_store is None
            else _counted(store, neighbours, partition, span, pages)
            for partition, span in parts
        )
    )
    known = [number for number in counts if number is not None]
    return sum(known) if len(known) == len(counts) else None


async def _counted(
    store: Store, neighbours: NeighbourList, partition: KeyValue, span: Span, pages: _Pages
) -> int | None:
    request = Count(partition, neighbours.index_name, span.range, neighbours.count_filter)
    total = 0
    while pages.take():
        page = await store.send(request)
        total += page.count
        if page.last is None:
            return total
        request = replace(request, start=page.last)
    return None


async def _recognised(
    store: Store, neighbours: NeighbourList, partition: KeyValue, span: Span, pages: _Pages
) -> int | None:
    request = Query(
        partition,
        neighbours.index_name,
        span.range,
        neighbours.count_filter,
        projection=list_projection(neighbours, frozenset()),
    )
    total = 0
    while pages.take():
        page = await store.send(request)
        total += sum(neighbours.includes(item) for item in page.items)
        if page.last is None:
            return total
        request = replace(request, start=page.last)
    return None
