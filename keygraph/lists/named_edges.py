"""The edges of a list to nodes that a client names: read by key if the two ends form the key."""

from __future__ import annotations

import asyncio
from collections.abc import Collection, Iterable, Mapping, Sequence

from keygraph.dynamo.items import Item
from keygraph.dynamo.store import BatchGet, Query, Store, pages
from keygraph.dynamo.table import Key
from keygraph.errors import CorruptItem
from keygraph.keys.template import Template
from keygraph.lists.listing import Located, NeighbourList
from keygraph.lists.ranges import Span, beginning_with
from keygraph.model.paths import AccessPath


async def read_to(
    store: Store, neighbours: NeighbourList, owner: tuple[str, ...], node: tuple[str, ...]
) -> list[Item]:
    """Returns the items that can be edges of the list from its owner to a node (identities): `in_list` filters them.

    One BatchGet if the two ends make the whole table key, else one Query for each shard.
    """
    if neighbours.path.finds_by_node:
        keys = tuple(edge_keys(neighbours, owner, [node]))
        return [item for item in (await store.send(BatchGet(keys))).items if item]
    requests = _requests_between(neighbours.path, neighbours.path.edge_texts(owner, node))
    found = await asyncio.gather(*(_all(store, request) for request in requests))
    return [item for items in found for item in items]


def edge_keys(
    neighbours: NeighbourList, owner: tuple[str, ...], nodes: Sequence[tuple[str, ...]]
) -> list[Key]:
    """Returns the keys of the edges from the owner to these nodes, if the two ends make the whole table key."""
    record = neighbours.path.record
    texts = [neighbours.path.edge_texts(owner, node) for node in nodes]
    identities = [tuple(each[slot.name] or "" for slot in record.identity) for each in texts]
    return list(
        dict.fromkeys(key for each in identities for key in neighbours.graph.table_keys(record, each))
    )


def in_list(
    neighbours: NeighbourList, items: Iterable[Item], nodes: Collection[tuple[str, ...]] | None = None
) -> list[Located]:
    """Returns the items that are in the list, in the order of the sort key and the table's.

    If `nodes` (identities of the far end) are given, only those that lead to one of them.
    """
    record = neighbours.path.record
    read_identity = record.read_identity
    found = [
        Located(item, identity, record)
        for item in items
        if neighbours.covers(item)
        and (identity := read_identity(item)) is not None
        and (nodes is None or _leads_to(neighbours.path, item, nodes))
    ]
    return sorted(found, key=lambda located: neighbours.order_by_key(neighbours.place_of(located.item)))


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
    span = beginning_with(prefix)
    if prefix and not rest.tokens:
        value = keys.attributes[1].value(prefix)
        span = Span(value, value)
    requests = []
    for shard in keys.shard_texts:
        partition = keys.partition.render({**texts, **shard})
        if partition:
            requests.append(Query(keys.attributes[0].value(partition), keys.index_name, span.range))
    return requests


async def _all(store: Store, request: Query) -> list[Item]:
    return [item async for page in pages(store, request) for item in page.items]
