"""Counts lists: the store counts if its answer is right for the list; otherwise the keys are read and recognized here.

A count reads all items that it counts: DynamoDB charges for their sizes in any case. So it has a limit, in pages of at
most 1 MB (128 read units). Above the limit, there is no count.

A count equals the number of items that paging through the list finds: the items of its type, by type attribute and key,
that meet its conditions. There are two exceptions, because recognizing every item here would make the store's own count
useless. If items have a type attribute, the store counts items with the right one, under keys that begin as the type's
and contain its templates' literals, even if other parts are not valid values (`RIDE#tomorrow` for a time);
`may_count_unread` is for such lists, and their schema says so. An index without the type attribute counts by keys
alone.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Sequence
from dataclasses import replace

from keygraph.dynamo.conditions import Condition, conjunction, disjunction
from keygraph.dynamo.store import Count, Query, Store
from keygraph.graph import Graph
from keygraph.lists.listing import NeighbourList
from keygraph.lists.ranges import Span
from keygraph.lists.reading import send_page
from keygraph.lists.siblings import filled
from keygraph.model.paths import AccessPath
from keygraph.turns import in_turns


def count_requests(neighbours: NeighbourList) -> Sequence[Count | Query]:
    """Returns the first requests to count the list: one for each shard and piece of the range, all at once.

    Counts, if the store's own is the list's; else Queries for keys that are recognized here.
    """
    index, by_store = neighbours.index_name, _counted_by_store(neighbours)
    spans = neighbours.reading.pieces if by_store is None else by_store
    parts = [(partition, span.range) for partition in neighbours.partitions for span in spans]
    if by_store is not None:
        filter_ = _filter_of_store(neighbours)
        return [Count(partition, index, range_, filter_) for partition, range_ in parts]
    filter_, projection = neighbours.filter_with_type, neighbours.form.projection(frozenset())
    return [Query(partition, index, range_, filter_, projection=projection) for partition, range_ in parts]


def _counted_by_store(neighbours: NeighbourList) -> tuple[Span, ...] | None:
    """Returns the parts of the range for which the store's own count is the list's; None if items are recognized here.

    The store can count if items have a type attribute and siblings have another value in it, or if every key that is
    possible there is one of the list's. In an index with other keys than the table's, any item may have such a key.
    """
    if neighbours.condition is not None or neighbours.is_checked:
        return None
    graph, path, reading, form = neighbours.graph, neighbours.path, neighbours.reading, neighbours.form
    own, siblings = [*neighbours.parts] or [path.record], (*reading.singles, *reading.others)
    if not form.tells_types:
        if not path.reads_table_keys or reading.apart is None or neighbours.parts:
            return None
        return filled(path, reading.apart, dict((*neighbours.values, *form.said)))
    excludes = graph.type_values.condition_excludes
    if all(excludes(each, sibling) for each in own for sibling in siblings):
        return reading.pieces
    return reading.apart


def _filter_of_store(neighbours: NeighbourList) -> Condition | None:
    """Returns the filter for the store's count, whose items and keys are not seen here."""
    if neighbours.parts:
        return disjunction(*(_filter_of_store(part) for part in neighbours.parts.values()))
    return conjunction(neighbours.filter_with_type, neighbours.form.begins)


def may_count_unread(graph: Graph, path: AccessPath) -> bool:
    """Returns whether items can be counted that are not in the list, because a part of their key is not valid."""
    if path.members:
        return any(may_count_unread(graph, member) for member in path.members)
    if graph.type_condition(path) is None:
        return False
    partition, *sort = (key.name for key in path.keys.attributes)
    return not all(
        (path.rest if key.name in sort else template).is_told_by_beginning
        for key, template in path.record.table_keys.parts
        if key.name != partition
    )


async def count(store: Store, neighbours: NeighbourList, most_pages: int) -> int | None:
    """Returns how many items the list has; None if more pages are needed to know it. Raises a StoreError.

    At least one page of each shard, and of each piece of the range, is read, all of them at once.
    """
    requests = count_requests(neighbours)
    pages = iter(range(max(most_pages, len(requests))))
    counts = await asyncio.gather(*(_counted(store, neighbours, request, pages) for request in requests))
    known = [number for number in counts if number is not None]
    return sum(known) if len(known) == len(counts) else None


async def _counted(
    store: Store, neighbours: NeighbourList, request: Count | Query, pages: Iterator[int]
) -> int | None:
    """Returns what a request and its continuations find. `pages` has one for each that may still be read."""
    total = 0
    for _ in pages:
        if isinstance(request, Count):
            counted = await store.send(request)
            total, last = total + counted.count, counted.last
        else:
            page = await send_page(store, neighbours, request)
            found = await in_turns(neighbours.included, page.items)
            total, last = total + len(found), page.last
        if last is None:
            return total
        request = replace(request, start=last)
    return None
