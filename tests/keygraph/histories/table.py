"""What a store holds of the graph of the histories, as the plain model has it, and what is wrong with it."""

from __future__ import annotations

from keygraph.dynamo.items import Item
from keygraph.dynamo.store import BatchGet, Scan, Store, pages
from keygraph.model.fields import Field
from keygraph.resolve.derived import COUNTED
from keygraph.writing.marks import COPYING
from keygraph.writing.requests import Change
from keygraph.writing.sending.idempotency import is_own
from keygraph.writing.sending.writer import write
from tests.keygraph.histories.declared import graph
from tests.keygraph.histories.plain import Name, State, Values
from tests.keygraph.verified_net import told
from tests.verified import verified


async def contents(store: Store) -> State:
    found: State = {}
    async for page in pages(store, Scan(0, 1, consistent=True)):
        for item in page.items:
            if is_own(item):
                continue
            name = name_of_item(item)
            assert name not in found, f"two items are {name}"
            found[name] = _values(item)
    return found


async def one(store: Store, name: Name) -> Values | None:
    """One record; None where it is not there."""
    record = graph.types[name[0]]
    batch = await store.send(BatchGet(tuple(graph.table_keys(record, name[1])), consistent=True))
    items = [item for item in batch.items if item is not None and graph.recognise(item) is record]
    assert len(items) < 2, f"two items are {name}"
    return _values(items[0]) if items else None


def name_of_item(item: Item) -> Name:
    record = graph.recognise(item)
    assert record is not None, f"an item that is nothing: {item}"
    identity = record.read_identity(item)
    assert identity is not None
    return record.name, identity


def _values(item: Item) -> Values:
    record = graph.types[name_of_item(item)[0]]
    own = [field for field in record.fields.values() if not is_of_others(field)]
    values = {field.name: record.reader(field)(item) for field in own}
    values |= {end.name: record.end_identity(item, end) for end in record.ends.values()}
    return {name: value for name, value in values.items() if value is not None}


def is_of_others(field: Field) -> bool:
    """Whether the graph keeps it of other records."""
    return field.kept in COUNTED or field.kept == "copy" or field.is_kept_later


async def mistakes(store: Store) -> list[str]:
    """What `keygraph verify` finds, once somebody has gone on with the copies that a killed process has left."""
    async for page in pages(store, Scan(0, 1, consistent=True)):
        for item in page.items:
            if COPYING in item:
                type_, identity = name_of_item(item)
                change = Change(graph.types[type_], identity, {"town": _values(item).get("town")})
                await write(graph, store, [change])
    return told(await verified(graph, store, segments=1))
