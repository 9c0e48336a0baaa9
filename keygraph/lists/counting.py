"""Counting lists: by the store where its answer is the list's, else by keys that are recognised here.

A count reads what it counts, whoever counts: DynamoDB charges for the items' sizes either way. So it has a bound, in
pages of at most 1 MB (128 read units), beyond which there is no count.

What is counted is what paging through the list finds: the items of its type, by type attribute and key, that meet its
conditions. With two exceptions, since to recognise every item here would make the store's own count useless. Where
items say their type, the store counts what says it under keys that begin as the type's and contain what its templates do,
though other parts are no values (`RIDE#tomorrow` for a time); `may_count_unread` tells which lists that can be, and their
schema says so. And an index that does not have the type attribute counts by keys alone.
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
    """What is sent at first to count the list: one for each shard and piece of the range, all at once.

    Counts, where the store's own is the list's; else Queries for keys that are recognised here.
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
    """The parts of the range of which the store's own count is the list's; None where items are recognised here.

    The store is asked where items say their type and siblings say another one, or where every key that can stand
    there is one of the list's. In an index of other keys than the table's any item may have one that is.
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
    """What the store decides where it counts: nobody sees the keys of what is counted."""
    if neighbours.parts:
        return disjunction(*(_filter_of_store(part) for part in neighbours.parts.values()))
    return conjunction(neighbours.filter_with_type, neighbours.form.begins)


def may_count_unread(graph: Graph, path: AccessPath) -> bool:
    """Whether items of the list's type can be counted that are not in the list, since a part of their key is no value."""
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
    """How many items the list has; None where it takes more pages to know it. Raises a StoreError.

    One page of each shard, and of each piece of the range, is read at least, all of them at once.
    """
    requests = count_requests(neighbours)
    pages = iter(range(max(most_pages, len(requests))))
    counts = await asyncio.gather(*(_counted(store, neighbours, request, pages) for request in requests))
    known = [number for number in counts if number is not None]
    return sum(known) if len(known) == len(counts) else None


async def _counted(
    store: Store, neighbours: NeighbourList, request: Count | Query, pages: Iterator[int]
) -> int | None:
    """What a request finds, and those that go on after it. `pages` has one for each that may still be read."""
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
