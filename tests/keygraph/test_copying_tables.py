"""Copying a table into another one, byte for byte."""

from __future__ import annotations

import itertools
import random
from decimal import Decimal
from pathlib import Path

import orjson
import pytest

from keygraph.dynamo.items import Item, base64_text
from keygraph.dynamo.store import BatchWrite, CreateTable, DeleteTable, Scan, Store, pages
from keygraph.dynamo.table import Index, Key, Table
from keygraph.engines.open import open_store
from keygraph.errors import Unavailable
from keygraph.tables.bulk import WriteRate
from keygraph.tables.copying import RefusedItem, TableCopy
from keygraph.writing.sending.idempotency import NOTE
from tests.conftest import ENGINES, MakeStore
from tests.tracing import HeldStore, TracingStore

SOURCE = Table("Source", partition_key="PK", sort_key=("SK", "N"))
TARGET = Table("Target", partition_key="PK", sort_key=("SK", "N"), indexes=[Index("ByKind", "kind", "PK")])
ITEMS: list[Item] = [
    {
        "PK": f"P{number % 7}",
        "SK": Decimal(number),
        "kind": "k",
        "number": Decimal("0.10000000000000000000000000000000000001"),
        "bytes": b"\x00\xff",
        "sets": {"s": frozenset({"a", "b"}), "n": frozenset({Decimal(1)}), "b": frozenset({b"1"})},
        "list": [None, True, "", {"empty": {}}],
    }
    for number in range(40)
]
NOTED: Item = {"PK": "note", "SK": Decimal(1), NOTE: Decimal(1)}


async def all_of(store: Store) -> dict[Key, Item]:
    read = [item async for page in pages(store, Scan(consistent=True)) for item in page.items]
    return {store.table.key_of(item): item for item in read}


@pytest.mark.parametrize("other", ENGINES)
async def test_every_item_is_copied_as_it_is(
    make_store: MakeStore, other: str, request: pytest.FixtureRequest, tmp_path: Path
) -> None:
    """From each engine into each: also items of no type, and notes of idempotency keys."""
    source = await make_store(SOURCE, *ITEMS, NOTED)
    file = f"sqlite:{tmp_path / 'other.db'}"
    url = file if other == "sqlite" else str(request.getfixturevalue(f"{other}_endpoint"))
    async with open_store(url, TARGET) as target:
        await target.send(DeleteTable())
        await target.send(CreateTable())
        copy = TableCopy(source, target, WriteRate())
        await copy.run(lambda _: None)
        assert (copy.items, await all_of(target)) == (41, await all_of(source))


async def test_an_interrupted_copy_goes_on(make_store: MakeStore, monkeypatch: pytest.MonkeyPatch) -> None:
    """It fails at random batches, and goes on from what it has saved; no page is read twice after it was written."""
    dice = random.Random(1)
    source, target = await make_store(SOURCE), await make_store(TARGET)
    await source.send(BatchWrite(tuple(ITEMS)))
    monkeypatch.setattr("keygraph.tables.copying.Scan", lambda *own, **more: Scan(*own, limit=3, **more))
    saved, runs = b"", itertools.count()
    while True:
        left = dice.randrange(1, 6)

        async def before(sent: object) -> None:
            nonlocal left
            if isinstance(sent, BatchWrite):
                left -= 1
                if left < 0:
                    raise Unavailable("gone")

        copy = TableCopy(source, HeldStore(target, before), WriteRate(), segments=2)
        if saved:
            copy.resume(orjson.loads(saved))
        try:
            await copy.run(lambda _: None)
        except Unavailable:
            saved = orjson.dumps(copy.to_json(), default=base64_text)
            next(runs)
        else:
            break
    assert next(runs) > 3
    assert (copy.items, await all_of(target)) == (40, await all_of(source))
    with pytest.raises(ValueError, match="another number of segments"):
        TableCopy(source, target, WriteRate(), segments=3).resume(orjson.loads(saved))


async def test_a_rate_makes_small_batches(make_store: MakeStore) -> None:
    source, target = await make_store(SOURCE), TracingStore(await make_store(TARGET))
    await source.send(BatchWrite(tuple(ITEMS)))
    await TableCopy(source, target, WriteRate(1e6), segments=1).run(lambda _: None)
    assert [len(each.puts) for each in target.requests if isinstance(each, BatchWrite)] == [25, 15]


async def test_an_item_that_the_other_table_cannot_hold_is_named(make_store: MakeStore) -> None:
    source, target = await make_store(SOURCE), await make_store(TARGET)
    await source.send(BatchWrite((*ITEMS[:3], {"PK": "odd", "SK": Decimal(0), "kind": Decimal(5)})))
    with pytest.raises(RefusedItem, match="kind") as caught:
        await TableCopy(source, target, WriteRate(), segments=1).run(lambda _: None)
    assert caught.value.key == ("odd", 0)
