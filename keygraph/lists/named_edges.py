"""The edges of a list to certain nodes: read by key if the two ends form the key."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Collection, Iterable, Mapping
from dataclasses import replace
from typing import Any

from keygraph.dynamo.items import Item
from keygraph.dynamo.store import Query, Store, pages
from keygraph.dynamo.table import Key, KeyValue
from keygraph.errors import CorruptItem
from keygraph.keys.template import Template
from keygraph.lists.extent import Located, Place
from keygraph.lists.query import ListQuery
from keygraph.lists.ranges import Span, beginning_with, span_of_key
from keygraph.lists.reading import Found
from keygraph.model.paths import AccessPath


async def read_to(store: Store, query: ListQuery, node: tuple[str, ...]) -> list[Item]:
    """Returns the items that can be edges of the list from its owner to a node (its identity): `in_list` filters them.

    One Query for each shard, because the two ends do not make the whole table key.
    """
    requests = _requests_between(query.path, query.path.edge_texts(query.owner or (), node))
    found = await asyncio.gather(*(_all(store, request) for request in requests))
    return [item for items in found for item in items]


def edge_keys(query: ListQuery, nodes: Iterable[tuple[str, ...]]) -> list[Key]:
    """Returns the keys of the edges from the owner to these nodes, if the two ends make the whole table key."""
    record = query.path.record
    texts = [query.path.edge_texts(query.owner or (), node) for node in nodes]
    identities = [tuple(each[slot.name] or "" for slot in record.identity) for each in texts]
    table_keys = query.form.graph.table_keys
    return list(dict.fromkeys(key for each in identities for key in table_keys(record, each)))


def in_list(
    query: ListQuery, items: Iterable[Item], nodes: Collection[tuple[str, ...]] | None = None
) -> list[Located]:
    """Returns the items that are in the list, in the order of the sort key and the table's.

    If `nodes` (identities of the far end) are given, only those that lead to one of them.
    """
    record = query.path.record
    read_identity = record.read_identity
    found = [
        Located(item, identity, record)
        for item in items
        if query.covers(item)
        and (identity := read_identity(item)) is not None
        and (nodes is None or _leads_to(query.path, item, nodes))
    ]
    return sorted(found, key=lambda located: query.order_by_key(query.place_of(located.item)))


def _leads_to(path: AccessPath, item: Item, nodes: Collection[tuple[str, ...]]) -> bool:
    """Returns whether an edge leads to one of the nodes: the key that found it may hold only a part of theirs."""
    if path.far_end is None:
        return True
    try:
        return path.record.end_identity(item, path.record.ends[path.far_end]) in nodes
    except CorruptItem:
        return True  # the step that reads the node decides


def _requests_between(path: AccessPath, texts: Mapping[str, str | None]) -> list[Query]:
    """Returns the Query, one for each shard, that finds the edges between two nodes."""
    keys = path.keys_of_both_ends
    if keys is None:
        raise LookupError(f"no key of {path.record.name} contains both its ends")
    head, rest = (keys.sort or Template(())).head(texts)
    prefix = head.render(texts) or ""
    span = Span(prefix, prefix) if prefix and not rest.tokens else beginning_with(prefix)
    range_ = span_of_key(keys.attributes[-1], span).range
    requests = []
    for shard in keys.shard_texts:
        partition = keys.partition.render({**texts, **shard})
        if partition:
            requests.append(Query(keys.attributes[0].value(partition), keys.index_name, range_))
    return requests


async def _all(store: Store, request: Query) -> list[Item]:
    return [item async for page in pages(store, request) for item in page.items]


class Ranks:
    """The order of all items of a list, if some of them were read by key.

    Only an index knows the order of its items with equal sort keys. If a page depends on it, the items with that sort
    key are read from the index: those between the page's cursors, in its direction.
    """

    def __init__(self, query: ListQuery, found: Iterable[Located], *, is_ordered: bool) -> None:
        """`found` are all items of the list, by their sort keys; `is_ordered`: in the list's order."""
        self._query = query
        self._items = [query.place_of(each.item) for each in found]
        cursors = (query.extent.after, query.extent.until)
        self._places = {*self._items, *(each for each in cursors if each is not None)}
        self._ranks = {place: rank for rank, place in enumerate(self._items)} if is_ordered else {}

    def order(self, place: Place) -> tuple[Any, ...]:
        """Returns the order of places along the sort key."""
        return *self._query.order_of(place), self._ranks.get(place, 0)

    def unknown(self, size: int, budget: int) -> dict[Any, ListQuery]:
        """Returns the parts to read before the order of a page of that size is known, and the order that their items
        share. `budget` is how many items the store may examine."""
        order_of, after, forward = self._query.order_of, self._query.extent.after, self._query.extent.forward
        times = Counter(map(order_of, self._places))
        unknown = {order_of(place) for place in self._places if place not in self._ranks}
        ahead = [order_of(place) for place in self._items]
        if not forward:
            ahead.reverse()
        if after is not None:
            here = order_of(after)
            ahead = [each for each in ahead if (each >= here if forward else each <= here)]
            size += times[here]
        doubtful = [each for each in dict.fromkeys(ahead[: size + 1]) if each in unknown and times[each] > 1]
        return {each: self._part(each, max(1, budget // len(doubtful))) for each in doubtful}

    def _part(self, order: tuple[KeyValue, int], budget: int) -> ListQuery:
        extent, place_at = self._query.extent, self._query.place_at
        after = extent.after if self._is_at(extent.after, order) else None
        until = extent.until if self._is_at(extent.until, order) else None
        part = replace(
            extent,
            count=budget,
            after=after or place_at(order[0], forward=extent.forward, is_included=True),
            until=until or place_at(order[0], forward=extent.forward, is_included=False),
            look_ahead=True,
            budget=budget,
            attributes=frozenset(),
        )
        return self._query.part(part)

    def _is_at(self, cursor: Place | None, order: tuple[KeyValue, int]) -> bool:
        return cursor is not None and self._query.order_of(cursor) == order

    def decide(self, parts: Iterable[tuple[tuple[KeyValue, int], Found]]) -> bool:
        """Takes the unknown parts, each with the order of its items. Returns whether they decide the order of the page."""
        extent = self._query.extent
        step = 1 if extent.forward else -1
        for order, part in parts:
            is_behind, is_ahead = self._is_at(extent.after, order), self._is_at(extent.until, order)
            if part.more or (is_behind and is_ahead):
                return False
            # Those that are not between the cursors are before the first one, or after the second.
            rest = 0 if is_behind else step * (len(part.items) + 1)
            self._ranks |= {place: rest for place in self._places if self._is_at(place, order)}
            places = [self._query.place_of(each.item) for each in part.items]
            self._ranks |= {place: step * rank for rank, place in enumerate(places, 1)}
        return True
