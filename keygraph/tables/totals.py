"""Computes the counts and sums that nodes should have, by reading their lists item by item."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping, Sequence
from typing import cast

from keygraph.dynamo.items import Item, Value
from keygraph.dynamo.store import BatchGet, Store, pages
from keygraph.dynamo.table import Key, KeyValue
from keygraph.graph import Graph
from keygraph.lists.query import ListForm
from keygraph.lists.reading import requests_of_all
from keygraph.model.fields import Field
from keygraph.model.paths import AccessPath
from keygraph.model.record_keys import Texts
from keygraph.model.records import RecordType
from keygraph.resolve.derived import Tally, combined


def tallies_of(graph: Graph, owner: RecordType) -> dict[Field, list[Tally]]:
    """Returns the counts and sums of a node, each with the tallies of the types that contribute to it."""
    found: dict[Field, list[Tally]] = {}
    for tally in (each for several in graph.tallies.values() for each in several if each.owner is owner):
        found.setdefault(tally.field, []).append(tally)
    return found


def _list_forms(_: Graph) -> dict[Tally, ListForm]:
    return {}


def list_form(graph: Graph, tally: Tally) -> ListForm:
    """Returns the form of the list of a tally, which is made only once."""
    forms = graph.made(_list_forms)
    if tally not in forms:
        forms[tally] = ListForm(graph, tally.path)
    return forms[tally]


def is_listed(graph: Graph, tally: Tally, item: Item) -> bool:
    """Returns whether the list of the node at an item's end has the item: its keys may not match its attributes."""
    node, (partition, *sort) = tally.node(item), tally.path.keys.attributes
    if node is None:
        return False
    of_list = list_form(graph, tally).of(node)
    values = [cast(KeyValue, item[key.name]) for key in sort]
    is_read = all(key.holds(value) and of_list.reads(value) for key, value in zip(sort, values, strict=True))
    return item[partition.name] in of_list.partitions and is_read


def is_late(tally: Tally) -> bool:
    """Returns whether the list may lack what was written last, because a global index is written after the table."""
    index = tally.path.keys.index
    return index is not None and not index.local


async def computed(
    graph: Graph, store: Store, identity: Texts, fields: Mapping[Field, Sequence[Tally]]
) -> dict[Field, Value]:
    """Returns what a node should store in these fields, given their tallies. Each list is read once, page by page.
    Raises StoreError."""
    found = {field: combined(field, ()) for field in fields}
    async for added in listed(graph, store, identity, fields):
        for _, field, value in added:
            found[field] = combined(field, [found[field], value])
    return found


async def listed(
    graph: Graph, store: Store, identity: Texts, fields: Mapping[Field, Sequence[Tally]]
) -> AsyncIterator[list[tuple[Key, Field, Value]]]:
    """Yields for each page of a node's lists what its items add to these fields, with their keys. Raises StoreError."""
    of_lists: dict[AccessPath, list[Tally]] = {}
    for tally in (each for tallies in fields.values() for each in tallies):
        of_lists.setdefault(tally.path, []).append(tally)
    for path, tallies in of_lists.items():
        for query in requests_of_all(list_form(graph, tallies[0]).of(identity)):
            async for page in pages(store, query):
                items: tuple[Item | None, ...] = tuple(page.items)
                if path.keys.index is not None and items:
                    wanted = tuple(graph.table.key_of(item) for item in page.items)
                    items = tuple((await store.send(BatchGet(wanted, consistent=True))).items)
                own = [item for item in items if item is not None and graph.recognise(item) is path.record]
                yield [
                    (graph.table.key_of(item), tally.field, each[1])
                    for item in own
                    for tally in tallies
                    if (each := tally.of(item)) is not None and each[0] == identity
                ]
