"""Computes the counts and sums that nodes should have, by reading their lists item by item, and sets them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from decimal import Decimal

from keygraph.dynamo.actions import SetTo, UpdateItem, changed
from keygraph.dynamo.conditions import And, Exists, at_path
from keygraph.dynamo.items import Item, exact_sum
from keygraph.dynamo.store import BatchGet, Store, Write, pages
from keygraph.dynamo.table import Key
from keygraph.errors import ConditionFailed, TransactionCanceled
from keygraph.graph import Graph
from keygraph.lists.listing import bind
from keygraph.lists.reading import requests_of_all
from keygraph.model.fields import Field
from keygraph.model.record_keys import Texts
from keygraph.model.records import RecordType
from keygraph.resolve.derived import Tally
from keygraph.writing.presence import is_unchanged

_TRIES = 10


def tallies_of(graph: Graph, owner: RecordType) -> dict[Field, list[Tally]]:
    """Returns the counts and sums of a node, each with the tallies of the types that contribute to it."""
    found: dict[Field, list[Tally]] = {}
    for tally in (each for several in graph.tallies.values() for each in several if each.owner is owner):
        found.setdefault(tally.field, []).append(tally)
    return found


async def total(graph: Graph, store: Store, tally: Tally, identity: Texts) -> Decimal:
    """Returns how much the items of one type add to the node with this identity. Raises StoreError."""
    bound, found = bind(graph, tally.path, identity), list[Decimal]()
    for query in requests_of_all(bound):
        async for page in pages(store, query):
            items: tuple[Item | None, ...] = tuple(page.items)
            if bound.index_name is not None and items:
                wanted = tuple(graph.table.key_of(item) for item in page.items)
                items = tuple((await store.send(BatchGet(wanted, consistent=True))).items)
            for item in items:
                if item is not None and graph.recognise(item) is tally.record:
                    told = tally.of(item)
                    found += [told[1]] if told is not None and told[0] == identity else []
    return exact_sum(found)


async def recount(graph: Graph, store: Store, key: Key) -> bool:
    """Sets the counts and sums of the node under a key to the values of its lists. Returns whether that succeeded.

    If a mutation changes a number meanwhile, the lists are read again. A missing number is first set to 0, so that
    mutations add to it from then on. Raises StoreError.
    """
    for _ in range(_TRIES):
        [item] = (await store.send(BatchGet((key,), consistent=True))).items
        record = None if item is None else graph.recognise(item)
        identity = None if item is None or record is None else record.read_identity(item)
        if item is None or record is None or identity is None:
            return False
        tallies = tallies_of(graph, record)
        missing = [
            SetTo(each.attribute, Decimal(0)) for each in tallies if at_path(item, each.attribute) is None
        ]
        if missing and not await _set(graph, store, key, item, tallies, missing):
            continue
        item = changed(item, missing)
        wrong = []
        for field, several in tallies.items():
            amount = exact_sum([await total(graph, store, each, identity) for each in several])
            if amount != at_path(item, field.attribute):
                wrong.append(SetTo(field.attribute, amount))
        if not wrong or await _set(graph, store, key, item, tallies, wrong):
            return True
    return False


async def _set(
    graph: Graph, store: Store, key: Key, item: Item, fields: Iterable[Field], changes: Sequence[SetTo]
) -> bool:
    """Changes numbers of a node. Returns False if one of them has changed since it was read."""
    same = (is_unchanged(field.attribute, item) for field in fields)
    condition = And((Exists((graph.table.partition.name,)), *same))
    try:
        await store.send(Write(UpdateItem(key, tuple(changes), condition)))
    except (ConditionFailed, TransactionCanceled):
        return False
    return True
