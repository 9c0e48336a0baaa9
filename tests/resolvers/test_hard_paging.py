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
from keygraph.dynamo.store import Answer, BatchWrite, Cost, CreateTable, PassingStore, Request
from keygraph.engines.sqlite.engine import open_sqlite
from tests.resolvers.paging import BOOK_LOANS, page
from tests.resolvers.worlds import World, book_item, library, loan_item, member_item, world

on_sqlite = pytest.mark.parametrize("engine", ["sqlite"])


@dataclass
class CostedStore(PassingStore):
    """A store that adds up what its answers cost, and how many items were looked at."""

    cost: Cost = field(default_factory=Cost)
    scanned: int = 0

    async def send(self, request: Request[Answer], /) -> Answer:
        answer: Any = await self.store.send(request)
        self.cost += getattr(answer, "cost", Cost())
        self.scanned += getattr(answer, "scanned", 0)
        return answer  # type: ignore[no-any-return]  # what the store has answered


DAYS = [f"2024-01-0{day}" for day in range(1, 7)]


@on_sqlite
@pytest.mark.parametrize("backward", [False, True])
async def test_one_match_in_ten_thousand(books: World, backward: bool) -> None:
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
    await books.put(member_item("m"))
    for number in range(25):
        await books.put(edge_item(number, note="x" * 400_000))
    return books


async def test_items_of_400_kb(heavy: World, engine: str) -> None:
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
    await books.put(book_item("b"), *(loan_item(f"m{day}", "b", day) for day in DAYS))
    cursors = (await page(books, BOOK_LOANS, owner="b", first=9))["cursors"]
    books.forget()
    document = """query ($after: String, $before: String) { book(bookId: "b") {
      loans(after: $after, before: $before) { nodes { memberId } } } }"""
    empty = {"book": {"loans": {"nodes": []}}}
    assert await books.ask(document, after=cursors[3], before=cursors[1]) == empty
    assert await books.ask(document, after=cursors[3], before=cursors[3]) == empty
    assert "Query" not in books.operations


ENDED = """query ($before: String, $after: String, $last: Int, $where: LoanWhere) { book(bookId: "b") {
  loans(before: $before, after: $after, last: $last, where: $where) { nodes { memberId } } } }"""


async def test_what_an_end_among_equal_keys_costs(books: World) -> None:
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
