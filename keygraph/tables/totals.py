"""What the counts and sums that nodes keep should be: their lists are read, item by item."""

from __future__ import annotations

from decimal import Decimal

from keygraph.dynamo.items import Item
from keygraph.dynamo.store import BatchGet, Query, Store, pages
from keygraph.graph import Graph
from keygraph.lists.listing import bind
from keygraph.model.fields import Field
from keygraph.model.record_keys import Texts
from keygraph.model.records import RecordType
from keygraph.resolve.derived import Tally


def tallies_of(graph: Graph, owner: RecordType) -> dict[Field, list[Tally]]:
    """The counts and sums of a node, each with the types of which it is one."""
    found: dict[Field, list[Tally]] = {}
    for tally in (each for several in graph.tallies.values() for each in several if each.owner is owner):
        found.setdefault(tally.field, []).append(tally)
    return found


async def total(graph: Graph, store: Store, tally: Tally, identity: Texts) -> Decimal:
    """What the items of one type add to the node with this identity. Raises StoreError."""
    bound, found = bind(graph, tally.path, identity), Decimal(0)
    index = tally.path.keys.index
    keys = None if index is None else tuple((key.name,) for key in graph.table.keys)
    is_consistent = index is None or index.local
    for partition in bound.partitions:
        for piece in bound.reading.pieces:
            query = Query(
                partition,
                bound.index_name,
                piece.range,
                bound.store_filter,
                keys,
                consistent=is_consistent,
            )
            async for page in pages(store, query):
                items: tuple[Item | None, ...] = tuple(page.items)
                if keys is not None and items:
                    wanted = tuple(graph.table.key_of(item) for item in page.items)
                    items = tuple((await store.send(BatchGet(wanted, consistent=True))).items)
                for item in items:
                    if item is not None and graph.recognise(item) is tally.record:
                        told = tally.of(item)
                        found += told[1] if told is not None and told[0] == identity else 0
    return found
