"""The embedded engine: it answers as DynamoDB would, from its own threads, and loses nothing."""

from __future__ import annotations

import asyncio
import signal
import sqlite3
import subprocess
import sys
import textwrap
import threading
import time
from collections.abc import AsyncIterator, Callable
from contextlib import closing
from decimal import Decimal
from pathlib import Path

import pytest

from keygraph.conditions import And, BeginsWith, Between, Eq, Exists, Gt, Not
from keygraph.errors import BadUserInput, TableMissing, Unavailable
from keygraph.items import Item, item_size
from keygraph.sqlite import SQLiteStore, open_sqlite
from keygraph.store import (
    Above,
    AtLeast,
    AtMost,
    BatchGet,
    BatchWrite,
    Below,
    Cost,
    Count,
    CreateTable,
    DeleteTable,
    DescribeTable,
    Equals,
    Page,
    Prefix,
    Query,
    Range,
    Request,
    Scan,
    Within,
    Written,
    pages,
)
from keygraph.table import Index, KeyValue, Table

SHOP = Table(
    "Shop",
    partition_key="PK",
    sort_key="SK",
    indexes=[
        Index("by-price", "Kind", ("Price", "N")),
        Index("keys-only", "SK", "PK", projection="KEYS_ONLY"),
        Index("named", "Kind", projection=["Name"]),
        Index("local", "PK", "Name", projection="KEYS_ONLY", local=True),
    ],
)


@pytest.fixture
async def shop(tmp_path: Path) -> AsyncIterator[SQLiteStore]:
    async with open_sqlite(tmp_path / "shop.db", SHOP) as store:
        await store.send(CreateTable())
        yield store


async def put(store: SQLiteStore, *items: Item) -> Written:
    return await store.send(BatchWrite(puts=items))


def _names(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


def sort_keys(page: Page) -> list[object]:
    return [item["SK"] for item in page.items]


# --- Tables -------------------------------------------------------------------------------------------


async def test_a_table_is_described_as_it_was_created(tmp_path: Path) -> None:
    """`keygraph table describe` would show another table than the one that is there."""
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


async def test_a_table_that_is_not_there_says_how_to_make_it(tmp_path: Path) -> None:
    """Whoever starts the server on a new file would not know what to do."""
    async with open_sqlite(tmp_path / "shop.db", SHOP) as store:
        for request in (Query("p"), Count("p"), Scan(), BatchGet((("p", "s"),)), BatchWrite()):
            with pytest.raises(TableMissing, match="no table Shop: create it with `keygraph table create`"):
                await store.send(request)
        await store.send(DeleteTable())


async def test_a_deleted_table_takes_its_items_with_it(shop: SQLiteStore) -> None:
    """A table made anew would still hold the old items."""
    await put(shop, {"PK": "p", "SK": "s"})
    await shop.send(DeleteTable())
    with pytest.raises(TableMissing):
        await shop.send(Query("p"))
    await shop.send(CreateTable())
    assert (await shop.send(Scan())).items == []


async def test_tables_of_one_file_do_not_mix(tmp_path: Path) -> None:
    """Two models in one file would read each other's items; SQLite takes `shop` and `Shop` for one name."""
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
        (Table("Shop", partition_key="PK"), r"it has the key PK \(S\), SK \(S\), not PK \(S\)"),
        (
            Table("Shop", partition_key="PK", sort_key="SK", indexes=[Index("new", "A")]),
            "it has no index new",
        ),
        (
            Table("Shop", partition_key="PK", sort_key="SK", indexes=[Index("by-price", "Kind", "Price")]),
            "its index by-price has other keys",
        ),
    ],
)
async def test_a_table_other_than_the_declared_one_is_found_out(
    shop: SQLiteStore, tmp_path: Path, declared: Table, problem: str
) -> None:
    """A model with new keys on an old file would quietly find nothing."""
    async with open_sqlite(tmp_path / "shop.db", declared) as store:
        with pytest.raises(Unavailable, match=problem):
            await store.send(Query("p"))


# --- Order and ranges ---------------------------------------------------------------------------------

LADDER = ["A", "Z", "a", "aa", "ab", "b", "ä", "\uffff", "😀"]


@pytest.mark.parametrize(
    ("range_", "expected"),
    [
        (None, LADDER),
        (Equals("aa"), ["aa"]),
        (Equals("none"), []),
        (Prefix("a"), ["a", "aa", "ab"]),
        (Prefix("\uffff"), ["\uffff"]),
        (Within("a", "b"), ["a", "aa", "ab", "b"]),
        (Within("ab", "ab"), ["ab"]),
        (AtLeast("b"), ["b", "ä", "\uffff", "😀"]),
        (AtMost("a"), ["A", "Z", "a"]),
        (Above("b"), ["ä", "\uffff", "😀"]),
        (Below("a"), ["A", "Z"]),
    ],
)
async def test_ranges_are_in_the_order_of_utf8(
    shop: SQLiteStore, range_: Range | None, expected: list[str]
) -> None:
    """A list would have another order or other items than on DynamoDB."""
    await put(shop, *({"PK": "p", "SK": key} for key in reversed(LADDER)), {"PK": "q", "SK": "a"})
    assert sort_keys(await shop.send(Query("p", range=range_))) == expected
    assert sort_keys(await shop.send(Query("p", range=range_, forward=False))) == expected[::-1]
    counted = await shop.send(Count("p", range=range_))
    assert (counted.count, counted.scanned, counted.last) == (len(expected), len(expected), None)


async def test_numbers_are_ordered_as_numbers(tmp_path: Path) -> None:
    """The best ten of a score list would be those whose scores begin with a 9."""
    table = Table("Scores", partition_key="game", sort_key=("score", "N"))
    scores = [Decimal(text) for text in ("-100", "-9.5", "0", "0.001", "9", "10", "199.99", "1E+20")]
    async with open_sqlite(tmp_path / "scores.db", table) as store:
        await store.send(CreateTable())
        await put(store, *({"game": "g", "score": score} for score in reversed(scores)))
        page = await store.send(Query("g"))
        assert [item["score"] for item in page.items] == scores
        page = await store.send(Query("g", range=Within(Decimal("-9.5"), Decimal(9)), limit=3))
        assert [item["score"] for item in page.items] == scores[1:4]
        assert page.last == ("g", Decimal("0.001"))
        with pytest.raises(BadUserInput, match="no prefix"):
            await store.send(Query("g", range=Prefix("1")))


async def test_binary_is_ordered_by_bytes(tmp_path: Path) -> None:
    """A prefix of FF bytes, above which nothing stands, would find nothing or everything."""
    table = Table("Blobs", partition_key=("id", "B"), sort_key=("at", "B"))
    keys = [b"\x00", b"\x7f\xff", b"\x80", b"\xff", b"\xff\xff", b"\xff\xff\x01"]
    async with open_sqlite(tmp_path / "blobs.db", table) as store:
        await store.send(CreateTable())
        await put(store, *({"id": b"\x01", "at": key} for key in reversed(keys)))
        assert [i["at"] for i in (await store.send(Query(b"\x01"))).items] == keys
        assert [i["at"] for i in (await store.send(Query(b"\x01", range=Prefix(b"\xff")))).items] == keys[3:]


async def test_equal_index_keys_stand_in_the_order_of_the_table_key(shop: SQLiteStore) -> None:
    """Reading an index page by page would skip or repeat items of one price."""
    items: list[Item] = [
        {"PK": pk, "SK": sk, "Kind": "k", "Price": Decimal(price)}
        for pk, sk, price in [("b", "2", 5), ("a", "1", 5), ("b", "1", 5), ("a", "9", 7), ("z", "0", 1)]
    ]
    await put(shop, *items)
    expected = [("z", "0"), ("a", "1"), ("b", "1"), ("b", "2"), ("a", "9")]
    for forward in (True, False):
        found: list[object] = []
        start = None
        while True:
            page = await shop.send(Query("k", index="by-price", forward=forward, limit=1, start=start))
            found += [(item["PK"], item["SK"]) for item in page.items]
            start = page.last
            if start is None:
                break
        assert found == (expected if forward else expected[::-1])


async def test_a_table_without_a_sort_key(tmp_path: Path) -> None:
    """Tables and indexes with a partition key alone could not be served."""
    table = Table("Plain", partition_key="id", indexes=[Index("by-colour", "colour")])
    async with open_sqlite(tmp_path / "plain.db", table) as store:
        await store.send(CreateTable())
        await put(store, *({"id": id_, "colour": "red"} for id_ in ("c", "a", "b")))
        assert (await store.send(Query("a"))).items == [{"id": "a", "colour": "red"}]
        assert (await store.send(Query("a", start=("a",)))).items == []
        page = await store.send(Query("red", index="by-colour", limit=2))
        assert [item["id"] for item in page.items] == ["a", "b"]
        assert page.last == ("red", "b")
        page = await store.send(Query("red", index="by-colour", start=page.last))
        assert [item["id"] for item in page.items] == ["c"]
        with pytest.raises(BadUserInput, match="no sort key"):
            await store.send(Query("a", range=Equals("x")))


# --- Pages --------------------------------------------------------------------------------------------


async def test_a_limit_counts_before_the_filter(shop: SQLiteStore) -> None:
    """A page with a filter would cost other reads than on DynamoDB, and its cursor would stand elsewhere."""
    await put(shop, *({"PK": "p", "SK": f"{n}", "even": n % 2 == 0} for n in range(6)))
    page = await shop.send(Query("p", limit=3, filter=Eq(("even",), True)))
    assert (sort_keys(page), page.scanned, page.last) == (["0", "2"], 3, ("p", "2"))
    counted = await shop.send(Count("p", limit=3, start=page.last, filter=Eq(("even",), True)))
    assert (counted.count, counted.scanned, counted.last) == (1, 3, ("p", "5"))


async def test_a_page_that_ends_by_its_limit_names_a_last_position(shop: SQLiteStore) -> None:
    """DynamoDB names one even where nothing follows; code that relies on its absence would break there."""
    await put(shop, {"PK": "p", "SK": "1"}, {"PK": "p", "SK": "2"})
    assert (await shop.send(Query("p", limit=2))).last == ("p", "2")
    assert (await shop.send(Query("p", limit=3))).last is None
    assert await shop.send(Query("p", limit=2, start=("p", "2"))) == Page([], 0, None, Cost(1, 0.5))


async def test_a_start_need_not_be_an_item(shop: SQLiteStore) -> None:
    """A cursor on an item that was deleted meanwhile would lead nowhere."""
    await put(shop, *({"PK": "p", "SK": key} for key in "bdf"))
    assert sort_keys(await shop.send(Query("p", start=("p", "c")))) == ["d", "f"]
    assert sort_keys(await shop.send(Query("p", start=("p", "c"), forward=False))) == ["b"]
    within = Query("p", range=Within("b", "e"), start=("p", "c"))
    assert sort_keys(await shop.send(within)) == ["d"]
    assert (await shop.send(Scan(start=("o", "z")))).scanned == 3


@pytest.mark.parametrize("forward", [True, False])
async def test_a_page_ends_with_the_item_that_reaches_a_megabyte(shop: SQLiteStore, forward: bool) -> None:
    """Pages would be cut elsewhere than DynamoDB cuts them, and memory would grow with the partition."""
    items: list[Item] = [{"PK": "p", "SK": f"{n}", "text": "x" * 299_990} for n in range(9)]
    assert item_size(items[0]) == 300_000 - 10 + 4 + 1 + 1 + 4
    for item in items:
        await put(shop, item)
    found = [page async for page in pages(shop, Query("p", forward=forward))]
    expected = [f"{n}" for n in range(9)]
    if not forward:
        expected.reverse()
    assert [key for page in found for key in sort_keys(page)] == expected
    assert [page.scanned for page in found] == [4, 4, 1]
    assert [page.last for page in found] == [("p", expected[3]), ("p", expected[7]), None]
    assert [page.cost.read_units for page in found] == [146.5, 146.5, 37.0]
    # The size of a page is that of what is read, whatever of it is asked for.
    narrow = await shop.send(Query("p", projection=(("SK",),), forward=forward))
    assert (narrow.scanned, narrow.cost.read_units) == (4, 146.5)
    assert (await shop.send(Count("p"))).count == 4
    assert [page.scanned async for page in pages(shop, Scan())] == [4, 4, 1]
    # An index that projects little has small items.
    in_index = await shop.send(Query("3", index="keys-only"))
    assert (in_index.items, in_index.cost.read_units) == ([{"PK": "p", "SK": "3"}], 0.5)


async def test_segments_hold_every_item_once(shop: SQLiteStore) -> None:
    """A parallel export would lose items or write them twice."""
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
    with pytest.raises(BadUserInput, match="segment"):
        await shop.send(Scan(segment=4, segments=4))


# --- Filters and projections --------------------------------------------------------------------------

DOCUMENT: Item = {
    "PK": "p",
    "SK": "1",
    "Name": "Ann",
    "data": {"version": Decimal(3), "deep": {"x": [Decimal(1)], "y": None}, "other": "o"},
}


async def test_a_projection_answers_what_it_names(shop: SQLiteStore) -> None:
    """Nested attributes would come back whole, or not at all."""
    await put(shop, DOCUMENT)
    projection = (("Name",), ("data", "version"), ("data", "deep", "y"), ("none",), ("Name", "inner"))
    expected = {"Name": "Ann", "data": {"version": Decimal(3), "deep": {"y": None}}}
    assert (await shop.send(Query("p", projection=projection))).items == [expected]
    assert (await shop.send(BatchGet((("p", "1"),), projection=projection))).items == [expected]
    whole = (("data", "version"), ("data",))
    assert (await shop.send(Query("p", projection=whole))).items == [{"data": DOCUMENT["data"]}]
    assert (await shop.send(Query("p", projection=(("data", "none"),)))).items == [{}]


async def test_a_filter_sees_nested_attributes(shop: SQLiteStore) -> None:
    """`where` on an attribute inside a map would find nothing."""
    await put(shop, DOCUMENT, {"PK": "p", "SK": "2"})
    for condition, expected in [
        (Gt(("data", "version"), Decimal(2)), ["1"]),
        (And((Exists(("data", "deep", "y")), BeginsWith(("Name",), "A"))), ["1"]),
        (Not(Exists(("data",))), ["2"]),
        (And(()), ["1", "2"]),
    ]:
        request = Query("p", filter=condition, projection=(("SK",),))
        assert sort_keys(await shop.send(request)) == expected


async def test_an_index_holds_what_it_projects(shop: SQLiteStore) -> None:
    """A model would rely on attributes that the index does not have on DynamoDB."""
    item: Item = {"PK": "p", "SK": "s", "Kind": "k", "Price": Decimal(1), "Name": "N", "big": "x" * 5000}
    await put(shop, item)
    assert (await shop.send(Query("k", index="by-price"))).items == [item]
    named = await shop.send(Query("k", index="named"))
    assert named.items == [{"PK": "p", "SK": "s", "Kind": "k", "Name": "N"}]
    assert named.cost == Cost(1, 0.5)
    with pytest.raises(BadUserInput, match="index named does not project big"):
        await shop.send(Query("k", index="named", projection=(("big",),)))
    # What a filter looks at and the global index lacks is missing.
    assert (await shop.send(Count("k", index="named", filter=Exists(("big",))))).count == 0


async def test_a_local_index_fetches_what_it_lacks(shop: SQLiteStore) -> None:
    """A list on a local index would lack attributes that DynamoDB fetches, or cost less than there."""
    big: Item = {"PK": "p", "SK": "1", "Name": "b", "text": "x" * 5000}
    small: Item = {"PK": "p", "SK": "2", "Name": "a", "text": "y"}
    await put(shop, big, small)
    keys = await shop.send(Query("p", index="local"))
    assert keys.items == [{"PK": "p", "SK": "2", "Name": "a"}, {"PK": "p", "SK": "1", "Name": "b"}]
    assert keys.cost.read_units == 0.5
    fetched = await shop.send(Query("p", index="local", projection=(("text",),), consistent=True))
    assert fetched.items == [{"text": "y"}, {"text": "x" * 5000}]
    assert fetched.cost.read_units == 1 + 1 + 2
    filtered = await shop.send(Query("p", index="local", filter=Eq(("text",), "y"), projection=(("SK",),)))
    assert (sort_keys(filtered), filtered.cost.read_units) == (["2"], 0.5 + 0.5 + 1)


async def test_an_item_without_an_index_key_is_not_in_the_index(shop: SQLiteStore) -> None:
    """Sparse indexes would list items that are not theirs, or keep those that have left."""
    await put(
        shop, {"PK": "p", "SK": "1", "Kind": "k"}, {"PK": "p", "SK": "2", "Kind": "k", "Price": Decimal(1)}
    )
    assert sort_keys(await shop.send(Query("k", index="by-price"))) == ["2"]
    await put(shop, {"PK": "p", "SK": "2", "Kind": "other", "Price": Decimal(1)})
    assert sort_keys(await shop.send(Query("k", index="by-price"))) == []
    assert sort_keys(await shop.send(Query("other", index="by-price"))) == ["2"]
    await shop.send(BatchWrite(deletes=(("p", "2"),)))
    assert sort_keys(await shop.send(Query("other", index="by-price"))) == []


# --- Costs --------------------------------------------------------------------------------------------


async def test_reads_cost_what_dynamodb_charges(shop: SQLiteStore) -> None:
    """The cost that the server reports would not be that of the bill."""
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
    """Costs would be one off at every multiple of 4 KB."""
    item: Item = {"PK": "p", "SK": "1", "text": "x" * (size - 10)}
    assert item_size(item) == size
    await put(shop, item)
    assert (await shop.send(Query("p", consistent=True))).cost.read_units == units
    assert (await shop.send(BatchGet((("p", "1"),), consistent=True))).cost.read_units == units


async def test_writes_cost_a_unit_a_kilobyte_and_index(shop: SQLiteStore) -> None:
    """The cost of a load would be reported wrongly."""

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
    """Loading a file that names an item twice would fail, as DynamoDB's own request does, or keep the first."""
    written = await put(
        shop, {"PK": "p", "SK": "s", "n": Decimal(1)}, {"PK": "p", "SK": "s", "n": Decimal(2)}
    )
    assert written.cost == Cost(1, write_units=2)
    assert (await shop.send(Query("p"))).items == [{"PK": "p", "SK": "s", "n": Decimal(2)}]
    await shop.send(BatchWrite(puts=({"PK": "p", "SK": "s"},), deletes=(("p", "s"),)))
    assert (await shop.send(Query("p"))).items == []


async def test_a_batch_keeps_the_order_asked_for(shop: SQLiteStore) -> None:
    """The nodes of a list would be swapped."""
    await put(shop, *({"PK": "p", "SK": key} for key in "abc"))
    batch = await shop.send(BatchGet((("p", "c"), ("p", "none"), ("p", "a"), ("p", "c"))))
    assert batch.items == [{"PK": "p", "SK": "c"}, None, {"PK": "p", "SK": "a"}, {"PK": "p", "SK": "c"}]


# --- What is refused ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("request_", "message"),
    [
        (Query(""), "PK is empty"),
        (Query(Decimal(1)), "PK is of type S"),
        (Query("x" * 2049), "PK has more than 2,048 bytes"),
        (Query("\ud800"), "PK is no valid Unicode"),
        (Query("p", range=Equals("x" * 1025)), "SK has more than 1,024 bytes"),
        (Query("p", range=AtLeast(Decimal(1))), "SK is of type S"),
        (Query("p", range=Prefix("")), "SK is empty"),
        (Query("p", range=Within("b", "a")), "upper bound"),
        (Query("p", start=("q", "s")), "another partition"),
        (Query("p", start=("p",)), "a value for each of PK, SK"),
        (Query("p", start=("p", "b"), range=AtMost("a")), "outside the range"),
        (Query("p", start=("p", "a"), range=Above("a")), "outside the range"),
        (Query("p", limit=0), "limit"),
        (Query("p", index="none"), "no index none"),
        (Query("k", index="by-price", consistent=True), "cannot be read consistently"),
        (Query("p", filter=Exists(("SK",))), "a key of what is read: SK"),
        (Query("k", index="named", filter=Not(Exists(("Kind",)))), "a key of what is read: Kind"),
        (Query("p", filter=Between(("n",), Decimal(2), Decimal(1))), "upper bound"),
        (BatchGet((("p",),)), "a value for each of PK, SK"),
        (BatchGet((("p", ""),)), "SK is empty"),
        (Scan(start=("p",)), "a value for each of PK, SK"),
        (BatchWrite(deletes=(("p", ""),)), "SK is empty"),
        (BatchWrite(puts=({"PK": "p"},)), "lacks the key SK"),
        (BatchWrite(puts=({"PK": "", "SK": "s"},)), "PK is empty"),
        (BatchWrite(puts=({"PK": "x" * 2049, "SK": "s"},)), "more than 2,048 bytes"),
        (BatchWrite(puts=({"PK": "p", "SK": "x" * 1025},)), "more than 1,024 bytes"),
        (
            BatchWrite(puts=({"PK": "p", "SK": "s", "Kind": Decimal(1), "Price": Decimal(1)},)),
            "Kind is of type S",
        ),
        (BatchWrite(puts=({"PK": "p", "SK": "s", "Kind": None},)), "Kind is of type S"),
        (BatchWrite(puts=({"PK": "p", "SK": "s", "Kind": ""},)), "Kind is empty"),
        (BatchWrite(puts=({"PK": "p", "SK": "s", "Kind": "k", "Price": "1"},)), "Price is of type N"),
        (BatchWrite(puts=({"PK": "p", "SK": "s", "a": "\ud800"},)), "no valid Unicode"),
        (BatchWrite(puts=({"PK": "p", "SK": "s", "a": frozenset()},)), "a set that is empty"),
        (BatchWrite(puts=({"PK": "p", "SK": "s", "a": Decimal("1" * 39)},)), "more than 38 digits"),
        (BatchWrite(puts=({"PK": "p", "SK": "s", "a": "x" * (400 * 1024)},)), "larger than 400 KB"),
    ],
)
async def test_what_dynamodb_refuses_is_refused(
    shop: SQLiteStore, request_: Request[object], message: str
) -> None:
    """What works on the embedded engine would fail in production."""
    with pytest.raises(BadUserInput, match=message):
        await shop.send(request_)
    assert (await shop.send(Scan())).items == []


async def test_a_refused_item_leaves_nothing_written(shop: SQLiteStore) -> None:
    """Half a batch would be there after an error."""
    with pytest.raises(BadUserInput):
        await put(shop, {"PK": "p", "SK": "good"}, {"PK": "p", "SK": ""})
    assert (await shop.send(Scan())).items == []


async def test_nesting_ends_at_32_levels(shop: SQLiteStore) -> None:
    """An item would be stored that DynamoDB refuses."""

    def nested(levels: int) -> Item:
        value: Item = {"PK": "p", "SK": "s"}
        inner: Item = value
        for _ in range(levels):
            inner["m"] = inner = {}
        return value

    await put(shop, nested(32))
    with pytest.raises(BadUserInput, match="32 levels"):
        await put(shop, nested(33))


# --- Values -------------------------------------------------------------------------------------------

VALUES: Item = {
    "PK": "p",
    "SK": "s",
    "price": Decimal("199.99"),
    "digits": Decimal("-1.2345678901234567890123456789012345678E-100"),
    "large": Decimal(12345678901234567890123456789012345678),
    "text": 'ä😀\x00"\\',
    "empty": "",
    "binary": b"\x00\xff",
    "no_bytes": b"",
    "true": True,
    "null": None,
    "strings": frozenset({"a", "ä"}),
    "numbers": frozenset({Decimal("0.1"), Decimal(10)}),
    "binaries": frozenset({b"\x00", b"\xff"}),
    "list": [Decimal(1), "two", None, [b"3"], {"four": Decimal("4.5")}],
    "map": {"": "no name", "list": [], "map": {}, "set": frozenset({"x"})},
}


async def test_values_survive(tmp_path: Path) -> None:
    """199.99 would become 199.99000000000001, a set a list, null would vanish."""
    async with open_sqlite(tmp_path / "shop.db", SHOP) as store:
        await store.send(CreateTable())
        await put(store, VALUES)
    async with open_sqlite(tmp_path / "shop.db", SHOP) as store:
        [item] = (await store.send(Query("p"))).items
    assert item == VALUES
    assert {name: type(value) for name, value in item.items()} == {n: type(v) for n, v in VALUES.items()}


async def test_an_item_may_have_400_kilobytes(shop: SQLiteStore) -> None:
    """The largest item that DynamoDB takes could not be stored here."""
    item: Item = {"PK": "p", "SK": "s", "a": "x" * (400 * 1024 - 7)}
    assert item_size(item) == 400 * 1024
    written = await put(shop, item)
    assert written.cost.write_units == 401
    page = await shop.send(Query("p"))
    assert (page.items, page.cost.read_units) == ([item], 50.0)


# --- Threads, processes, files ------------------------------------------------------------------------


async def test_the_event_loop_is_not_blocked(shop: SQLiteStore) -> None:
    """One large read would hold up every other request of the server."""
    await put(shop, *({"PK": "p", "SK": f"{n:05}", "text": "x" * 60} for n in range(10_000)))
    threads: set[str] = set()
    longest = 0.0

    async def ticks() -> None:
        nonlocal longest
        while True:
            before = time.perf_counter()
            await asyncio.sleep(0)
            longest = max(longest, time.perf_counter() - before)
            threads.update(thread.name for thread in threading.enumerate())
            await asyncio.sleep(0.001)

    ticking = asyncio.create_task(ticks())
    began = time.perf_counter()
    found = await asyncio.gather(*(shop.send(Query("p")) for _ in range(4)))
    took = time.perf_counter() - began
    ticking.cancel()
    assert [page.scanned for page in found] == [10_000] * 4
    # The interpreter's lock passes between threads every 5 ms, so a wait is a small part of the whole.
    assert longest < took / 2
    assert len([name for name in threads if name.startswith("sqlite-reader")]) == 4


async def test_readers_see_whole_writes_while_one_writes(shop: SQLiteStore) -> None:
    """Readers would fail beside a writer, or see half of a batch."""
    is_done = False

    async def write() -> None:
        nonlocal is_done
        for round_ in range(30):
            await put(shop, *({"PK": "p", "SK": f"{n}", "round": Decimal(round_)} for n in range(20)))
        is_done = True

    async def read() -> int:
        times = 0
        while not is_done:
            page = await shop.send(Query("p"))
            assert len(page.items) in {0, 20}
            assert len({item["round"] for item in page.items}) <= 1
            times += 1
        return times

    results = await asyncio.gather(write(), *(read() for _ in range(16)))
    assert all(times for times in results[1:] if times is not None)
    page = await shop.send(Query("p"))
    assert {item["round"] for item in page.items} == {Decimal(29)}


async def test_a_cancelled_request_harms_no_other(shop: SQLiteStore) -> None:
    """A client that hangs up would break the connection for the next one."""
    await put(shop, *({"PK": "p", "SK": f"{n:04}", "text": "x" * 500} for n in range(2000)))
    for delay in (0.0, 0.0005, 0.002, 0.005):
        reads = [asyncio.create_task(shop.send(Query("p"))) for _ in range(12)]
        writes = [asyncio.create_task(put(shop, {"PK": "q", "SK": f"{n}"})) for n in range(4)]
        await asyncio.sleep(delay)
        for task in (*reads, *writes):
            task.cancel()
        await asyncio.gather(*reads, *writes, return_exceptions=True)
        answers = await asyncio.gather(*(shop.send(Query("p")) for _ in range(8)))
        assert [page.scanned for page in answers] == [answers[0].scanned] * 8
    await put(shop, {"PK": "q", "SK": "after"})
    assert (await shop.send(BatchGet((("q", "after"),)))).items == [{"PK": "q", "SK": "after"}]


async def test_a_closed_store_lets_everything_go(tmp_path: Path) -> None:
    """Files and threads would pile up with every reload of the server."""
    async with open_sqlite(tmp_path / "shop.db", SHOP) as store:
        await store.send(CreateTable())
        await asyncio.gather(*(store.send(Scan()) for _ in range(8)))
    assert _names(tmp_path) == ["shop.db"]
    assert not [thread for thread in threading.enumerate() if thread.name.startswith("sqlite-")]
    with pytest.raises(Unavailable, match="closed"):
        await store.send(Scan())
    await store.close()


async def test_what_was_asked_before_closing_is_answered(tmp_path: Path) -> None:
    """A write that is under way when the server stops would be lost without an error."""
    async with open_sqlite(tmp_path / "shop.db", SHOP) as store:
        await store.send(CreateTable())
        writing = asyncio.create_task(put(store, {"PK": "p", "SK": "s"}))
        await asyncio.sleep(0)
    assert (await writing).cost.write_units == 2
    async with open_sqlite(tmp_path / "shop.db", SHOP) as store:
        assert (await store.send(Scan())).items == [{"PK": "p", "SK": "s"}]


def _make_folder(path: Path) -> None:
    path.mkdir()


def _make_text(path: Path) -> None:
    path.write_text("This is a text, and by no means a database of any kind. " * 20)


def _make_foreign(path: Path) -> None:
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("CREATE TABLE theirs (id)")


def _make_newer(path: Path) -> None:
    with closing(sqlite3.connect(path)) as connection:
        connection.execute(f"PRAGMA application_id = {0x4B657967}")
        connection.execute("PRAGMA user_version = 99")


@pytest.mark.parametrize(
    ("make", "problem"),
    [
        (_make_folder, "unable to open database file"),
        (_make_text, "it is no SQLite file"),
        (_make_foreign, "it is a SQLite file of another program"),
        (_make_newer, "it was written by a newer version of Keygraph"),
    ],
)
async def test_a_file_that_cannot_be_used_is_one_clear_line(
    tmp_path: Path, make: Callable[[Path], None], problem: str
) -> None:
    """A wrong path would end in a traceback, or somebody else's file would be changed."""
    path = tmp_path / "wrong"
    make(path)
    before = path.read_bytes() if path.is_file() else b""
    with pytest.raises(Unavailable) as caught:
        async with open_sqlite(path, SHOP):
            pass
    assert str(caught.value) == f"the file {path} cannot be used: {problem}"
    assert (path.read_bytes() if path.is_file() else b"") == before


async def test_folders_are_made(tmp_path: Path) -> None:
    """The first start, whose folder is not there yet, would fail; one below a file cannot be helped."""
    async with open_sqlite(tmp_path / "a" / "b" / "shop.db", SHOP) as store:
        assert await store.send(DescribeTable()) is None
    with pytest.raises(Unavailable, match=r"cannot be used: (not a directory|file exists)"):
        async with open_sqlite(tmp_path / "a" / "b" / "shop.db" / "c.db", SHOP):
            pass


async def test_a_file_locked_by_another_process_is_waited_for(tmp_path: Path) -> None:
    """A lock of another process would hang the server, or surface as an internal error."""
    path = tmp_path / "shop.db"
    async with open_sqlite(path, SHOP, locked_seconds=0.2) as store:
        await store.send(CreateTable())
        with closing(sqlite3.connect(path, isolation_level=None)) as other:
            other.execute("BEGIN IMMEDIATE")
            with pytest.raises(Unavailable, match="another process has locked it"):
                await put(store, {"PK": "p", "SK": "s"})
            # Reading goes on beside a writer.
            assert (await store.send(Scan())).items == []
            other.execute("ROLLBACK")
        await put(store, {"PK": "p", "SK": "s"})
        assert (await store.send(Scan())).scanned == 1


async def test_two_processes_share_a_file(tmp_path: Path) -> None:
    """With several workers one would not see what the other wrote."""
    path = tmp_path / "shop.db"
    async with open_sqlite(path, SHOP) as one, open_sqlite(path, SHOP) as other:
        await one.send(CreateTable())
        await asyncio.gather(
            *(put(s, {"PK": "p", "SK": f"{s is one}{n}"}) for n in range(20) for s in (one, other))
        )
        assert (await one.send(Count("p"))).count == (await other.send(Count("p"))).count == 40
        await other.send(DeleteTable())
        await other.send(CreateTable())
        assert (await one.send(Scan())).items == []


WRITER = textwrap.dedent(
    """
    import asyncio, sys
    from keygraph.sqlite import open_sqlite
    from keygraph.store import BatchWrite, CreateTable
    from keygraph.table import Index, Table

    async def main():
        table = Table("Log", partition_key="PK", sort_key="SK", indexes=[Index("by-sk", "SK", "PK")])
        async with open_sqlite(sys.argv[1], table) as store:
            await store.send(CreateTable())
            for n in range(1_000_000):
                await store.send(BatchWrite(puts=({"PK": "p", "SK": f"{n:07}", "text": "x" * 500},)))
                print(f"{n:07}", flush=True)

    asyncio.run(main())
    """
)


def _written_until_killed(path: Path) -> list[str]:
    """The sort keys that a process had acknowledged when it was killed, in the middle of its writing."""
    command = [sys.executable, "-c", WRITER, str(path)]
    root = Path(__file__).parents[2]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, cwd=root) as process:
        if process.stdout is None:
            raise AssertionError("the output is piped")
        acknowledged = [process.stdout.readline().strip() for _ in range(200)]
        process.send_signal(signal.SIGKILL)
        acknowledged += [line.strip() for line in process.stdout if line.endswith("\n")]
    assert process.returncode == -signal.SIGKILL
    return acknowledged


async def test_a_killed_process_has_lost_no_acknowledged_write(tmp_path: Path) -> None:
    """A crash would lose writes that a client was told are done, or leave an index out of step."""
    path = tmp_path / "log.db"
    acknowledged = _written_until_killed(path)
    assert _names(tmp_path) == ["log.db", "log.db-shm", "log.db-wal"]

    table = Table("Log", partition_key="PK", sort_key="SK", indexes=[Index("by-sk", "SK", "PK")])
    async with open_sqlite(path, table) as store:
        kept = [str(item["SK"]) async for page in pages(store, Query("p")) for item in page.items]
        # One more may have been written before it could be acknowledged.
        assert kept[: len(acknowledged)] == acknowledged
        assert len(kept) <= len(acknowledged) + 1
        for key in kept:
            assert (await store.send(Count(key, index="by-sk"))).count == 1
