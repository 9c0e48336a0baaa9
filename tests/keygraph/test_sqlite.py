"""What the embedded engine answers: tables, order, pages, filters and projections as DynamoDB has them."""

from __future__ import annotations

from decimal import Decimal
from pathlib import Path

import pytest

from keygraph.dynamo.conditions import Eq, Exists
from keygraph.dynamo.items import Item
from keygraph.dynamo.store import (
    BatchGet,
    BatchWrite,
    Cost,
    Count,
    CreateTable,
    DeleteTable,
    DescribeTable,
    Equals,
    Prefix,
    Query,
    Scan,
    Within,
    pages,
)
from keygraph.dynamo.table import Index, Table
from keygraph.engines.sqlite.engine import SQLiteStore, open_sqlite
from keygraph.errors import BadUserInput, TableMissing, Unavailable
from tests.keygraph.shop import SHOP, opened, put, sort_keys


async def test_a_table_is_described_as_it_was_created(tmp_path: Path) -> None:
    async with open_sqlite(tmp_path / "shop.db", SHOP) as store:
        assert await store.send(DescribeTable()) is None
        await store.send(CreateTable())
        await store.send(CreateTable())
    other = Table("Shop", partition_key="PK", sort_key="SK")
    async with open_sqlite(tmp_path / "shop.db", other) as store:
        described = await store.send(DescribeTable())
    assert described is not None
    assert described.keys == SHOP.keys
    assert described.indexes == tuple(sorted(SHOP.indexes, key=lambda index: index.name))


# --- Tables -----------------------------------------------------------------------------------------


async def test_a_table_that_is_not_there_says_how_to_make_it(tmp_path: Path) -> None:
    async with open_sqlite(tmp_path / "shop.db", SHOP) as store:
        for request in (Query("p"), Count("p"), Scan(), BatchGet((("p", "s"),)), BatchWrite()):
            with pytest.raises(TableMissing, match="no table Shop: create it with `keygraph table create`"):
                await store.send(request)
        await store.send(DeleteTable())


async def test_a_deleted_table_takes_its_items_with_it(shop: SQLiteStore) -> None:
    await put(shop, {"PK": "p", "SK": "s"})
    await shop.send(DeleteTable())
    with pytest.raises(TableMissing):
        await shop.send(Query("p"))
    await shop.send(CreateTable())
    assert (await shop.send(Scan())).items == []


async def test_tables_of_one_file_do_not_mix(tmp_path: Path) -> None:
    one, other = Table("shop", partition_key="id"), Table("Shop", partition_key="id")
    async with open_sqlite(tmp_path / "f.db", one) as first, open_sqlite(tmp_path / "f.db", other) as second:
        await first.send(CreateTable())
        await second.send(CreateTable())
        await put(first, {"id": "1"})
        await put(second, {"id": "2"})
        await second.send(DeleteTable())
        assert (await first.send(Scan())).items == [{"id": "1"}]


@pytest.mark.parametrize(
    ("declared", "problem"),
    [
        (
            Table("Shop", partition_key="PK"),
            r"its keys are PK \(S\) and SK \(S\), but the model declares PK \(S\)",
        ),
        (
            Table("Shop", partition_key="PK", sort_key="SK", indexes=[Index("new", "A")]),
            "it lacks the index new",
        ),
        (
            Table("Shop", partition_key="PK", sort_key="SK", indexes=[Index("by-price", "Kind", "Price")]),
            r"the keys of its index by-price are .*, but the model declares Kind \(S\) and Price \(S\)",
        ),
    ],
)
async def test_a_table_other_than_the_declared_one_is_found_out(
    shop: SQLiteStore, tmp_path: Path, declared: Table, problem: str
) -> None:
    async with open_sqlite(tmp_path / "shop.db", declared) as store:
        with pytest.raises(Unavailable, match=problem):
            await store.send(Query("p"))


async def test_a_table_that_stores_more_is_read(tmp_path: Path) -> None:
    by_kind = Index("by-kind", "Kind", projection="KEYS_ONLY")
    whole = Index("by-kind", "Kind")
    named = Index("by-kind", "Kind", projection=["name"])
    item: Item = {"PK": "p", "SK": "s", "Kind": "k", "name": "n", "other": "o"}
    stored, *declared = (
        Table("Shop", partition_key="PK", sort_key="SK", indexes=[index]) for index in (whole, by_kind, named)
    )
    async with open_sqlite(tmp_path / "shop.db", stored) as store:
        await store.send(CreateTable())
        await store.send(BatchWrite((item,)))
    for table in declared:
        async with open_sqlite(tmp_path / "shop.db", table) as store:
            await store.send(BatchWrite((item, {**item, "SK": "t"})))
            assert (await store.send(Query("k", index="by-kind"))).items == [item, {**item, "SK": "t"}]


# --- Order and ranges -------------------------------------------------------------------------------


async def test_numbers_are_ordered_as_numbers(tmp_path: Path) -> None:
    table = Table("Scores", partition_key="game", sort_key=("score", "N"))
    scores = [Decimal(text) for text in ("-100", "-9.5", "0", "0.001", "9", "10", "199.99", "1E+20")]
    async with opened(
        tmp_path / "scores.db", *({"game": "g", "score": score} for score in reversed(scores)), table=table
    ) as store:
        page = await store.send(Query("g"))
        assert [item["score"] for item in page.items] == scores
        page = await store.send(Query("g", range=Within(Decimal("-9.5"), Decimal(9)), limit=3))
        assert [item["score"] for item in page.items] == scores[1:4]
        assert page.last == ("g", Decimal("0.001"))
        with pytest.raises(BadUserInput, match="no prefix"):
            await store.send(Query("g", range=Prefix("1")))


async def test_equal_index_keys_are_in_an_order_of_their_own(shop: SQLiteStore) -> None:
    await put(shop, *({"PK": "p", "SK": f"{n:02}", "Kind": "k", "Price": Decimal(1)} for n in range(20)))
    in_table = sort_keys(await shop.send(Query("p")))
    whole = await shop.send(Query("k", index="by-price"))
    assert sort_keys(whole) != in_table
    assert sorted(map(str, sort_keys(whole))) == in_table
    for forward in (True, False):
        request = Query("k", index="by-price", limit=3, forward=forward)
        found = [item async for page in pages(shop, request) for item in page.items]
        assert found == whole.items[:: 1 if forward else -1]
    # A start need not be an item's position: what is after it stays after it.
    start = SHOP.position_of(whole.items[7], "by-price")
    await shop.send(BatchWrite(deletes=(SHOP.key_of(whole.items[7]),)))
    rest = await shop.send(Query("k", index="by-price", start=start))
    assert rest.items == whole.items[8:]


async def test_a_table_without_a_sort_key(tmp_path: Path) -> None:
    table = Table("Plain", partition_key="id", indexes=[Index("by-colour", "colour")])
    async with opened(
        tmp_path / "plain.db", *({"id": id_, "colour": "red"} for id_ in ("c", "a", "b")), table=table
    ) as store:
        assert (await store.send(Query("a"))).items == [{"id": "a", "colour": "red"}]
        assert (await store.send(Query("a", start=("a",)))).items == []
        page = await store.send(Query("red", index="by-colour", limit=2))
        assert page.last == ("red", page.items[-1]["id"])
        rest = await store.send(Query("red", index="by-colour", start=page.last))
        assert sorted(str(item["id"]) for item in (*page.items, *rest.items)) == ["a", "b", "c"]
        with pytest.raises(BadUserInput, match="no sort key"):
            await store.send(Query("a", range=Equals("x")))


# --- Pages ------------------------------------------------------------------------------------------


async def test_segments_hold_every_item_once(shop: SQLiteStore) -> None:
    await put(shop, *({"PK": f"p{n % 40}", "SK": f"{n}"} for n in range(120)))
    found: list[list[Item]] = []
    for segment in range(4):
        request = Scan(segment=segment, segments=4, limit=7)
        found.append([item async for page in pages(shop, request) for item in page.items])
    assert sorted(str(item["SK"]) for items in found for item in items) == sorted(str(n) for n in range(120))
    assert sum(len({item["PK"] for item in items}) for items in found) == 40
    assert all(found)
    whole = [item async for page in pages(shop, Scan(limit=50)) for item in page.items]
    assert len(whole) == 120
    with pytest.raises(BadUserInput, match="Segments"):
        await shop.send(Scan(segment=4, segments=4))


# --- Filters and projections ------------------------------------------------------------------------


async def test_an_index_holds_what_it_projects(shop: SQLiteStore) -> None:
    item: Item = {"PK": "p", "SK": "s", "Kind": "k", "Price": Decimal(1), "Name": "N", "big": "x" * 5000}
    await put(shop, item)
    assert (await shop.send(Query("k", index="by-price"))).items == [item]
    named = await shop.send(Query("k", index="named"))
    assert named.items == [{"PK": "p", "SK": "s", "Kind": "k", "Name": "N"}]
    assert named.cost == Cost(1, 0.5)
    with pytest.raises(BadUserInput, match="index named does not project big"):
        await shop.send(Query("k", index="named", projection=(("big",),)))
    with pytest.raises(BadUserInput, match="cannot use big, which the index named does not project"):
        await shop.send(Count("k", index="named", filter=Exists(("big",))))


async def test_a_local_index_fetches_what_it_lacks(shop: SQLiteStore) -> None:
    big: Item = {"PK": "p", "SK": "1", "Name": "b", "text": "x" * 5000}
    small: Item = {"PK": "p", "SK": "2", "Name": "a", "text": "y"}
    await put(shop, big, small)
    keys = await shop.send(Query("p", index="local"))
    assert keys.items == [{"PK": "p", "SK": "2", "Name": "a"}, {"PK": "p", "SK": "1", "Name": "b"}]
    assert keys.cost.read_units == 0.5
    fetched = await shop.send(Query("p", index="local", projection=(("text",),), consistent=True))
    assert fetched.items == [{"text": "y"}, {"text": "x" * 5000}]
    assert fetched.cost.read_units == 1 + 1 + 2
    filtered = await shop.send(Query("p", index="local", filter=Eq(("SK",), "2"), projection=(("text",),)))
    assert (filtered.items, filtered.cost.read_units) == ([{"text": "y"}], 0.5 + 0.5 + 1)
    with pytest.raises(BadUserInput, match="cannot use text, which the index local does not project"):
        await shop.send(Query("p", index="local", filter=Eq(("text",), "y"), projection=(("text",),)))
