"""What the embedded engine charges, refuses and keeps: DynamoDB's prices, limits and values."""

from __future__ import annotations

from decimal import Decimal

import pytest

from keygraph.dynamo.conditions import Exists, Not
from keygraph.dynamo.items import Item, item_size
from keygraph.dynamo.rules import WriteRules
from keygraph.dynamo.store import (
    Above,
    BatchGet,
    BatchWrite,
    Cost,
    Count,
    Query,
    Request,
    Scan,
)
from keygraph.dynamo.table import Index, KeyValue, Table
from keygraph.engines.sqlite.engine import SQLiteStore
from keygraph.errors import BadUserInput
from tests.conftest import in_one_world
from tests.keygraph.shop import put

# --- Costs ------------------------------------------------------------------------------------------


async def test_reads_cost_what_dynamodb_charges(shop: SQLiteStore) -> None:
    # 11 bytes are the names and keys: PK, p, SK, 1, text.
    three: list[Item] = [{"PK": "p", "SK": f"{n}", "text": "x" * (3000 - 10)} for n in range(3)]
    await put(shop, *three)
    assert item_size(three[0]) == 3000
    assert (await shop.send(Query("p"))).cost == Cost(1, 1.5)
    assert (await shop.send(Query("p", consistent=True))).cost == Cost(1, 3)
    assert (await shop.send(Query("p", limit=1))).cost == Cost(1, 0.5)
    assert (await shop.send(Query("none"))).cost == Cost(1, 0.5)
    assert (await shop.send(Count("p", consistent=True))).cost == Cost(1, 3)
    assert (await shop.send(Scan(consistent=True))).cost == Cost(1, 3)
    batch = BatchGet((("p", "0"), ("p", "1"), ("p", "none"), ("p", "0")))
    assert (await shop.send(batch)).cost == Cost(1, 1.5)
    assert (await shop.send(BatchGet((("p", "0"),), consistent=True))).cost == Cost(1, 1)
    assert (await shop.send(BatchGet(()))).cost == Cost()
    many = BatchGet(tuple(("p", f"{n}") for n in range(201)))
    assert (await shop.send(many)).cost == Cost(3, 100.5)


@pytest.mark.parametrize(("size", "units"), [(4096, 1), (4097, 2)])
async def test_a_unit_is_four_kilobytes(shop: SQLiteStore, size: int, units: int) -> None:
    item: Item = {"PK": "p", "SK": "1", "text": "x" * (size - 10)}
    assert item_size(item) == size
    await put(shop, item)
    assert (await shop.send(Query("p", consistent=True))).cost.read_units == units
    assert (await shop.send(BatchGet((("p", "1"),), consistent=True))).cost.read_units == units


async def test_writes_cost_a_unit_a_kilobyte_and_index(shop: SQLiteStore) -> None:
    async def cost(*puts: Item, deletes: tuple[tuple[KeyValue, ...], ...] = ()) -> tuple[int, float]:
        written = await shop.send(BatchWrite(puts=puts, deletes=deletes))
        return written.cost.requests, written.cost.write_units

    plain: Item = {"PK": "p", "SK": "s"}
    assert await cost(plain) == (1, 2)  # the table and keys-only
    assert await cost(plain) == (1, 1)  # nothing changes in an index
    assert await cost({**plain, "text": "x" * 2000}) == (1, 2)
    assert await cost(plain) == (1, 2)  # the larger of the old and the new item
    priced: Item = {**plain, "Kind": "k", "Price": Decimal(1)}
    assert await cost(priced) == (1, 3)  # table, by-price, named
    assert await cost({**priced, "note": "n"}) == (1, 2)  # table, by-price, which projects all
    assert await cost({**priced, "Price": Decimal(2)}) == (1, 3)  # table; out of by-price and in again
    assert await cost(deletes=(("p", "s"),)) == (1, 4)  # table, keys-only, by-price, named
    assert await cost(deletes=(("p", "s"),)) == (1, 1)
    assert await cost(*({"PK": "p", "SK": f"{n}"} for n in range(26))) == (2, 52)
    assert await cost() == (0, 0)


async def test_the_last_of_two_writes_to_a_key_wins(shop: SQLiteStore) -> None:
    written = await put(
        shop, {"PK": "p", "SK": "s", "n": Decimal(1)}, {"PK": "p", "SK": "s", "n": Decimal(2)}
    )
    assert written.cost == Cost(1, write_units=2)
    assert (await shop.send(Query("p"))).items == [{"PK": "p", "SK": "s", "n": Decimal(2)}]
    await shop.send(BatchWrite(puts=({"PK": "p", "SK": "s"},), deletes=(("p", "s"),)))
    assert (await shop.send(Query("p"))).items == []


async def test_a_batch_keeps_the_order_asked_for(shop: SQLiteStore) -> None:
    await put(shop, *({"PK": "p", "SK": key} for key in "abc"))
    batch = await shop.send(BatchGet((("p", "c"), ("p", "none"), ("p", "a"), ("p", "c"))))
    assert batch.items == [{"PK": "p", "SK": "c"}, None, {"PK": "p", "SK": "a"}, {"PK": "p", "SK": "c"}]


# --- What is refused --------------------------------------------------------------------------------


@in_one_world(
    ("request_", "message"),
    [
        (Query("\ud800"), "PK is not valid Unicode"),
        (Query("p", start=("p", "a"), range=Above("a")), "outside the range"),
        (Query("k", index="named", filter=Not(Exists(("Kind",)))), "cannot use Kind, which is a key of"),
        (BatchWrite(deletes=(("p", ""),)), "SK is empty"),
        (BatchWrite(puts=({"PK": "x" * 2049, "SK": "s"},)), "more than 1,024 bytes"),
        (BatchWrite(puts=({"PK": "p", "SK": "s", "a": "\ud800"},)), "not valid Unicode"),
        (BatchWrite(puts=({"PK": "p", "SK": "s", "a": frozenset()},)), "a set that is empty"),
        (BatchWrite(puts=({"PK": "p", "SK": "s", "a": Decimal("1" * 39)},)), "more than 38 digits"),
        (BatchWrite(puts=({"PK": "p", "SK": "s", "a": "x" * (400 * 1024)},)), "larger than 400 KB"),
    ],
)
async def test_what_is_refused_says_why(shop: SQLiteStore, request_: Request[object], message: str) -> None:
    """`test_limits_agree` has all that is refused."""
    with pytest.raises(BadUserInput, match=message):
        await shop.send(request_)
    assert (await shop.send(Scan())).items == []


async def test_a_refused_item_leaves_nothing_written(shop: SQLiteStore) -> None:
    with pytest.raises(BadUserInput):
        await put(shop, {"PK": "p", "SK": "good"}, {"PK": "p", "SK": ""})
    assert (await shop.send(Scan())).items == []


# --- The rules themselves -----------------------------------------------------------------------------

KINDS = Index("Kinds", "Kind", ("Price", "N"))
BARE = Table("Things", partition_key="PK", sort_key="SK")
THINGS = Table("Things", partition_key="PK", sort_key="SK", indexes=[KINDS])
ITEM: Item = {"PK": "p", "SK": "s", "Kind": "Ü", "Price": Decimal("-12.5"), "tags": ["a", True, None]}


def test_the_keys_and_the_size_are_found() -> None:
    size = WriteRules(THINGS).check(ITEM)
    assert WriteRules(THINGS).keys_of(ITEM) == {
        "PK": b"p",
        "SK": b"s",
        "Kind": "Ü".encode(),
        "Price": bytes([0x40, 124, 100 - 12, 100 - 50, 0xFF]),
    }
    # PK p, SK s, Kind Ü, Price (three digits are two pairs, one more, and the sign), tags: 3 + (1 + 1) + (1 + 1) + (1 + 1)
    assert size == 3 + 3 + 6 + (5 + 4) + (4 + 9)


def test_the_keys_of_an_index_are_checked_without_each_other() -> None:
    item: Item = {"PK": "p", "SK": "s", "Kind": Decimal(1)}
    assert WriteRules(BARE).check(item) == 3 + 3 + 4 + 2
    assert WriteRules(BARE).keys_of(item) == {"PK": b"p", "SK": b"s"}
    with pytest.raises(BadUserInput, match=r"The key Kind is of type S\."):
        WriteRules(THINGS).check(item)


def test_an_attribute_that_is_two_keys_has_the_smaller_limit() -> None:
    table = Table("Things", partition_key="PK", indexes=[Index("Reverse", "Kind", "PK")])
    WriteRules(table).check({"PK": "x" * 1024})
    with pytest.raises(BadUserInput, match=r"The key PK has more than 1,024 bytes\."):
        WriteRules(table).check({"PK": "x" * 1025})
