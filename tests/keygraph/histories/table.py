"""What a store holds of the graph of the histories, as the plain model has it, and what is wrong with it."""

from __future__ import annotations

from keygraph.dynamo.conditions import at_path
from keygraph.dynamo.items import Item
from keygraph.dynamo.store import BatchGet, Scan, Store, pages
from keygraph.resolve.derived import COUNTED
from keygraph.tables.verify import Verification
from keygraph.writing.marks import COPYING
from keygraph.writing.requests import Change
from keygraph.writing.sending.idempotency import is_note
from keygraph.writing.sending.writer import write
from tests.keygraph.histories.declared import graph
from tests.keygraph.histories.plain import Name, State, Values
from tests.keygraph.verified_net import told


async def contents(store: Store) -> State:
    found: State = {}
    async for page in pages(store, Scan(0, 1, consistent=True)):
        for item in page.items:
            if is_note(item):
                continue
            name, values = _record(item)
            assert name not in found, f"two items are {name}"
            found[name] = values
    return found


async def one(store: Store, name: Name) -> Values | None:
    """One record; None where it is not there."""
    record = graph.types[name[0]]
    batch = await store.send(BatchGet(tuple(graph.table_keys(record, name[1])), consistent=True))
    items = [item for item in batch.items if item is not None and graph.recognise(item) is record]
    assert len(items) < 2, f"two items are {name}"
    return _record(items[0])[1] if items else None


def _record(item: Item) -> tuple[Name, Values]:
    record = graph.recognise(item)
    assert record is not None, f"an item that is nothing: {item}"
    identity = record.read_identity(item)
    assert identity is not None
    fields = {field.name: field for field in record.fields.values()}
    kept = [name for name, field in fields.items() if field.kept in COUNTED]
    assert all(at_path(item, fields[name].kept_attribute) is not None for name in kept)
    # They are of other records, and verified by reading those, and so are copies.
    kept += [name for name, field in fields.items() if field.kept == "copy"]
    values = {name: record.reader(field)(item) for name, field in fields.items() if name not in kept}
    values |= {end.name: record.end_identity(item, end) for end in record.ends.values()}
    return (record.name, identity), {name: value for name, value in values.items() if value is not None}


async def mistakes(store: Store) -> list[str]:
    """What `keygraph verify` finds, once somebody has gone on with the copies that a killed process has left."""
    async for page in pages(store, Scan(0, 1, consistent=True)):
        for item in page.items:
            if COPYING in item:
                name, values = _record(item)
                change = Change(graph.types[name[0]], name[1], {"town": values.get("town")})
                await write(graph, store, [change])
    verification = Verification(graph, store, segments=1)
    await verification.run(lambda _: None)
    return told(verification.report)
