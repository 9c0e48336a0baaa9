"""Paging where it is hard: shards that grow, rare matches, large partitions, large items, cursors that are crossed."""

from __future__ import annotations

import itertools
import sqlite3
import tracemalloc
from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from keygraph.dynamo.items import Item
from keygraph.dynamo.store import Answer, BatchWrite, Cost, CreateTable, Request, Store
from keygraph.dynamo.table import Table
from keygraph.engines.sqlite.engine import open_sqlite
from keygraph.errors import BadUserInput
from tests.resolvers.paging import BOOK_LOANS, BRANCH_LOANS, page
from tests.resolvers.worlds import World, book_item, library, loan_item, member_item, world

on_sqlite = pytest.mark.parametrize("engine", ["sqlite"])


@dataclass
class CostedStore:
    """A store that adds up what its answers cost, and how many items were looked at."""

    store: Store
    cost: Cost = field(default_factory=Cost)
    scanned: int = 0

    @property
    def table(self) -> Table:
        return self.store.table

    async def send(self, request: Request[Answer], /) -> Answer:
        answer: Any = await self.store.send(request)
        self.cost += getattr(answer, "cost", Cost())
        self.scanned += getattr(answer, "scanned", 0)
        return answer  # type: ignore[no-any-return]  # what the store has answered

    async def close(self) -> None:
        await self.store.close()


# --- Shards that grow -----------------------------------------------------------------------------------

DAYS = [f"2024-01-0{day}" for day in range(1, 7)]
FIRST_LOANS = [("a1", 1, 0), ("b2", 2, 1), ("c3", 3, 1), ("d4", 4, 2), ("e5", 5, 0), ("f6", 6, 1)]


@pytest.mark.parametrize("shard", [0, 1, 2])
@pytest.mark.parametrize("backward", [False, True])
@pytest.mark.parametrize("direction", ["ASC", "DESC"])
async def test_a_shard_grows_while_the_list_is_read(
    books: World, shard: int, backward: bool, direction: str
) -> None:
    """What is written while somebody scrolls would make them see an entry twice, or miss one that was there."""
    await books.put(*(loan_item(name, "b", DAYS[day - 1], at) for name, day, at in FIRST_LOANS))
    window = {"last": 3} if backward else {"first": 3}
    found = await page(books, BRANCH_LOANS, owner="main", direction=direction, **window)
    is_forward = backward == (direction == "DESC")
    assert (
        found["ids"]
        == {
            (True, False): ["a1", "b2", "c3"],
            (False, True): ["d4", "e5", "f6"],
            (False, False): ["f6", "e5", "d4"],
            (True, True): ["c3", "b2", "a1"],
        }[is_forward, backward]
    )
    cursor = found["startCursor" if backward else "endCursor"]
    await books.put(*(loan_item(f"new{day}", "b", DAYS[day - 1], shard) for day in (1, 2, 5, 6)))
    at = 3 if is_forward else 4
    await books.put(loan_item(f"new{at}", "b", DAYS[at - 1], shard))
    window = {"last": 9, "before": cursor} if backward else {"first": 9, "after": cursor}
    rest = (await page(books, BRANCH_LOANS, owner="main", direction=direction, **window))["ids"]
    behind = {"d4", "e5", "new5", "f6", "new6"} if is_forward else {"c3", "b2", "new2", "a1", "new1"}
    # Of equal days the shards stand in the order of their numbers; inside one shard only the store knows.
    cursors_shard = 1 if is_forward else 2
    if shard != cursors_shard:
        behind |= {f"new{at}"} if (shard > cursors_shard) == is_forward else set()
        assert set(rest) == behind
    assert set(rest) - {f"new{at}"} == behind - {f"new{at}"}
    days = [int(name[-1]) for name in rest]
    assert days == sorted(days, reverse=direction == "DESC")
    assert len(rest) == len(set(rest))


# --- Rare matches -----------------------------------------------------------------------------------------


@on_sqlite
@pytest.mark.parametrize("backward", [False, True])
async def test_one_match_in_ten_thousand(books: World, backward: bool) -> None:
    """A filter that matches next to nothing would read a partition for one page, or never come to its end."""
    torn = {3_333: {"note": "torn"}, 13_333: {"note": "torn"}, 19_999: {"note": "torn"}}
    items = [member_item("m"), *(edge_item(number, **torn.get(number, {})) for number in range(20_000))]
    await books.put(*items)
    costed = CostedStore(books.tracer)
    small = world(library, costed, read_budget=4_000)
    document = """query ($first: Int, $after: String, $last: Int, $before: String) { member(memberId: "m") {
      loans(first: $first, after: $after, last: $last, before: $before, where: {note: {eq: "torn"}}) {
        edges { node { bookId } } pageInfo { hasNextPage hasPreviousPage startCursor endCursor } } } }"""
    found, cursor, lengths = [], None, []
    while True:
        costed.scanned = 0
        window = {"last": 2, "before": cursor} if backward else {"first": 2, "after": cursor}
        loans = (await small.ask(document, **window))["member"]["loans"]
        # Whether anything is behind a page is a question of its own, with a budget of its own.
        assert costed.scanned <= 8_000
        found += [edge["node"]["bookId"] for edge in loans["edges"]]
        lengths.append(len(loans["edges"]))
        info = loans["pageInfo"]
        if not info["hasPreviousPage" if backward else "hasNextPage"]:
            break
        assert info["startCursor" if backward else "endCursor"] not in (None, cursor)
        cursor = info["startCursor" if backward else "endCursor"]
    assert sorted(found) == ["b003333", "b013333", "b019999"]
    assert len(lengths) in (5, 6)
    assert lengths.count(0) >= 2


# --- A large partition ------------------------------------------------------------------------------------


def edge_item(number: int, **fields: Any) -> Item:
    """An edge of member m, in no index."""
    name = f"b{number:06d}"
    return {"PK": "MEMBER#m", "SK": f"BOOK#{name}", "kind": "Loan", "memberId": "m", "bookId": name, **fields}


@pytest.fixture
async def member_of(tmp_path: Path) -> AsyncIterator[Any]:
    """Makes a world on SQLite in which member m has so many edges, written by SQL: a hundred thousand in a second."""
    numbers = itertools.count()
    stores = []

    async def make(edges: int) -> tuple[World, CostedStore]:
        path = tmp_path / f"{next(numbers)}.sqlite"
        opened = open_sqlite(path, library.table)
        store = await opened.__aenter__()
        stores.append(opened)
        await store.send(CreateTable())
        await store.send(BatchWrite((member_item("m"), edge_item(0))))
        with sqlite3.connect(path) as connection:
            named = connection.execute("SELECT name FROM sqlite_master WHERE name GLOB 'table_[0-9]*'")
            [table] = [name for (name,) in named if "index" not in name]
            [(size, content)] = connection.execute(
                f"SELECT size, item FROM {table} WHERE k1 = ?", (b"BOOK#b000000",)
            ).fetchall()
            rows = (
                (b"MEMBER#m", b"BOOK#" + name, size, content.replace(b"b000000", name))
                for name in (f"b{number:06d}".encode() for number in range(1, edges))
            )
            connection.executemany(f"INSERT INTO {table} VALUES (?, ?, ?, ?)", rows)
        connection.close()
        costed = CostedStore(store)
        return world(library, costed), costed

    yield make
    for opened in stores:
        await opened.__aexit__(None, None, None)


EDGES = """query ($first: Int, $after: String, $last: Int, $before: String) { member(memberId: "m") {
  loans(first: $first, after: $after, last: $last, before: $before) {
    edges { cursor node { bookId } } pageInfo { hasNextPage hasPreviousPage } } } }"""


async def test_a_page_costs_a_page(member_of: Any) -> None:
    """The larger a partition grows, the more a page of it would cost in capacity and memory."""
    costs = []
    for edges in (1_000, 100_000):
        served, costed = await member_of(edges)
        start = (await served.ask(EDGES, first=100))["member"]["loans"]["edges"]
        middle = start[49]["cursor"]
        measured: list[Any] = []
        for window in (
            {"first": 20},
            {"first": 20, "after": middle},
            {"last": 20},
            {"last": 20, "before": middle},
        ):
            costed.cost, costed.scanned = Cost(), 0
            served.forget()
            tracemalloc.start()
            loans = (await served.ask(EDGES, **window))["member"]["loans"]
            _, peak = tracemalloc.get_traced_memory()
            tracemalloc.stop()
            ids = [edge["node"]["bookId"] for edge in loans["edges"]]
            first = {"first": 0, "last": edges - 20}["last" if "last" in window else "first"]
            first = {True: 50, False: 29}["after" in window] if len(window) == 2 else first
            assert ids == [f"b{number:06d}" for number in range(first, first + 20)]
            measured.append((costed.cost, costed.scanned, served.operations))
            assert peak < 1_000_000
        costs.append(measured)
    assert costs[0] == costs[1]
    assert [cost.read_units for cost, _, _ in costs[0]] == [
        0.5 + 0.5,
        0.5 + 0.5 + 0.5,
        0.5 + 0.5,
        0.5 + 0.5 + 0.5,
    ]


COUNTED = """{ member(memberId: "m") { loans { totalCount } } }"""


async def test_a_count_has_a_bound(member_of: Any) -> None:
    """Whoever asks how many there are would have a whole partition read, whatever its size; or be told a wrong number."""
    served, costed = await member_of(100_000)
    whole = await served.service.execute(COUNTED)
    assert whole == {"data": {"member": {"loans": {"totalCount": 100_000}}}}
    pages = served.operations["Count"]
    assert 5 < pages <= 20
    small = world(library, costed, count_pages=pages - 1)
    answer = await small.service.execute(COUNTED)
    assert answer == {
        "data": {"member": {"loans": {"totalCount": None}}},
        "extensions": {
            "warnings": [
                {
                    "code": "COUNT_LIMIT",
                    "message": f"totalCount is null: counting the list takes more than {pages - 1} pages of 1 MB. "
                    "Count a narrower range, or page through the list.",
                    "path": ["member", "loans", "totalCount"],
                }
            ]
        },
    }
    assert small.operations == {"GetItem": 1, "Count": pages - 1}


# --- Large items ------------------------------------------------------------------------------------------


@pytest.fixture
async def heavy(books: World) -> World:
    """A member with 25 edges of almost 400 KB each."""
    await books.put(member_item("m"))
    for number in range(25):
        await books.put(edge_item(number, note="x" * 400_000))
    return books


async def test_items_of_400_kb(heavy: World, engine: str) -> None:
    """A page that DynamoDB cuts at 1 MB would be taken for the whole, or a count for that of its first megabyte."""
    heavy.forget()
    loans = (await heavy.ask(EDGES, first=20))["member"]["loans"]
    assert [edge["node"]["bookId"] for edge in loans["edges"]] == [f"b{number:06d}" for number in range(20)]
    assert loans["pageInfo"] == {"hasNextPage": True, "hasPreviousPage": False}
    # Three items reach 1 MB: 21 of them are seven pages. moto ends a page before the item that reaches it.
    assert heavy.operations == {"GetItem": 1, "Query": 11 if engine == "moto" else 7}
    loans = (await heavy.ask(EDGES, first=20, after=loans["edges"][-1]["cursor"]))["member"]["loans"]
    assert [edge["node"]["bookId"] for edge in loans["edges"]] == [
        f"b{number:06d}" for number in range(20, 25)
    ]
    heavy.forget()
    assert await heavy.ask(COUNTED) == {"member": {"loans": {"totalCount": 25}}}
    assert heavy.operations == {"GetItem": 1, "Count": 13 if engine == "moto" else 9}
    assert await heavy.served(count_pages=8).ask(COUNTED) == {"member": {"loans": {"totalCount": None}}}


# --- Cursors that are crossed -----------------------------------------------------------------------------


async def test_crossed_cursors_among_equal_keys(books: World) -> None:
    """Between two cursors of one day, the later one given first, a page would show what is behind both."""
    await books.put(book_item("b"), *(loan_item(f"m{number}", "b", "2024-01-01") for number in range(4)))
    await books.put(loan_item("z", "b", "2024-01-02"))
    whole = await page(books, BOOK_LOANS, owner="b", first=9)
    ids, cursors = whole["ids"], whole["cursors"]
    assert ids[-1] == "z"
    for low, high in itertools.product(range(5), repeat=2):
        for size in ("first", "last"):
            window = {size: 9, "after": cursors[low], "before": cursors[high]}
            found = await page(books, BOOK_LOANS, owner="b", **window)
            assert found["ids"] == ids[low + 1 : high]
            assert found["hasNextPage" if size == "first" else "hasPreviousPage"] is False


async def test_crossed_cursors_read_nothing(books: World) -> None:
    """A page that can hold nothing would be paid for."""
    await books.put(book_item("b"), *(loan_item(f"m{day}", "b", day) for day in DAYS))
    cursors = (await page(books, BOOK_LOANS, owner="b", first=9))["cursors"]
    books.forget()
    document = """query ($after: String, $before: String) { book(bookId: "b") {
      loans(after: $after, before: $before) { nodes { memberId } } } }"""
    empty = {"book": {"loans": {"nodes": []}}}
    assert await books.ask(document, after=cursors[3], before=cursors[1]) == empty
    assert await books.ask(document, after=cursors[3], before=cursors[3]) == empty
    assert "Query" not in books.operations


async def test_a_cursor_whose_item_has_gone_stands_where_it_stood(books: World) -> None:
    """A page would be empty, or go on behind its end, because the item before which it ends was deleted."""
    await books.put(book_item("b"), *(loan_item(f"m{number}", "b", "2024-01-01") for number in range(4)))
    whole = await page(books, BOOK_LOANS, owner="b", first=9)
    ids, cursors = whole["ids"], whole["cursors"]
    await books.tracer.store.send(BatchWrite(deletes=((f"MEMBER#{ids[2]}", "BOOK#b"),)))
    found = await page(books, BOOK_LOANS, owner="b", first=9, after=cursors[0], before=cursors[2])
    assert found["ids"] == [ids[1]]
    found = await page(books, BOOK_LOANS, owner="b", last=9, after=cursors[2])
    assert found["ids"] == [ids[3]]


ENDED = """query ($before: String, $after: String, $last: Int, $where: LoanWhere) { book(bookId: "b") {
  loans(before: $before, after: $after, last: $last, where: $where) { nodes { memberId } } } }"""


async def test_what_an_end_among_equal_keys_costs(books: World) -> None:
    """Each page before a cursor would cost another request, or a page would show what stands behind the cursor."""
    loans = [loan_item(f"m{n}", "b", "2024-01-01", pages=Decimal(n)) for n in range(5)]
    await books.put(book_item("b"), *loans, loan_item("z", "b", "2024-01-02", pages=Decimal(7)))
    whole = await page(books, BOOK_LOANS, owner="b", first=9)
    ids, cursors = whole["ids"], whole["cursors"]

    async def members(**arguments: Any) -> tuple[list[str], int]:
        books.forget()
        found = (await books.ask(ENDED, **arguments))["book"]["loans"]["nodes"]
        return [each["memberId"] for each in found], books.operations["Query"]

    # The edge itself comes by, or no other has its sort key: nothing is asked besides the page.
    assert await members(before=cursors[2]) == (ids[:2], 1)
    other = {"pages": {"lt": 5}}
    assert await members(before=cursors[5], where=other) == (ids[:5], 1)
    # It is filtered out: what follows it says which of its equals stand before it.
    for number, member in enumerate(ids[:5]):
        where = {"memberId": {"ne": member}}
        assert await members(before=cursors[number], where=where) == (ids[:number], 2)
        assert await members(after=cursors[number], last=9, where=where) == (ids[number + 1 :], 2)


async def test_an_end_among_too_many_equal_keys(books: World) -> None:
    """A page would show what stands behind its end, because to find the end was too much."""
    loans = [loan_item(f"m{n:02d}", "b", "2024-01-01", pages=Decimal(n)) for n in range(40)]
    await books.put(book_item("b"), *loans)
    whole = await page(books, BOOK_LOANS, owner="b", first=40)
    first = whole["ids"][0]
    arguments = {"before": whole["cursors"][1], "where": {"memberId": {"eq": first}}}
    few = books.served(read_budget=10)
    told = await few.errors(ENDED, **arguments)
    assert told == [
        (
            "BAD_USER_INPUT",
            "more than 10 edges have the sort key of the cursor at which the list is to end; leave this cursor out",
        )
    ]
    assert (await books.ask(ENDED, **arguments))["book"]["loans"]["nodes"] == [{"memberId": first}]


# --- Items that do not fit an index -----------------------------------------------------------------------


async def test_an_item_with_half_of_an_index_key(books: World) -> None:
    """A list on an index would fail or count items that are not in it, or a sound item would be lost beside them."""
    halves = [loan_item("only-partition", "b", "2024-01-01"), loan_item("only-sort", "b", "2024-01-01")]
    for item, name in zip(halves, ["GSI1SK", "GSI1PK"], strict=True):
        del item[name]
    await books.put(book_item("b"), loan_item("whole", "b", "2024-01-01"), *halves)
    found = await page(books, BOOK_LOANS, owner="b", first=9)
    assert found["ids"] == ["whole"]
    assert await books.ask('{ book(bookId: "b") { loans { totalCount } } }') == {
        "book": {"loans": {"totalCount": 1}}
    }


async def test_an_index_key_of_another_type_is_refused(books: World) -> None:
    """An engine would keep what DynamoDB refuses, so that it could not be moved there."""
    with pytest.raises(BadUserInput):
        await books.put(loan_item("m", "b", "2024-01-01") | {"GSI1SK": b"2024-01-01"})
