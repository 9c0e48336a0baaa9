"""Siblings: what is asked of the store for a list that shares its range with items of other types."""

from __future__ import annotations

from datetime import date
from typing import Any

import pytest

from keygraph import ID, Graph, Many, Table, many, node, record
from keygraph.dynamo.store import BatchWrite, Count, Query
from keygraph.lists.describe import path_request
from keygraph.lists.extent import Extent
from keygraph.lists.query import ListForm
from keygraph.lists.ranges import KeyArguments, Narrowing
from keygraph.lists.reading import count, read, send_reads
from tests.conftest import MakeStore
from tests.tracing import TracingStore


@node("PERSON#{person_id}", "PROFILE")
class Person:
    person_id: ID
    entries: Many[Entry] = many()
    purchases: Many[Purchase] = many()


@record("{person}", "{day}")
class Entry:
    person: Person
    day: date


@record("{person}", "ORDER#{number}")
class Purchase:
    person: Person
    number: str


@node("AUTHOR#{author_id}", "PROFILE")
class Author:
    author_id: ID
    remarks: Many[Remark] = many()
    sales: Many[Sale] = many()


@record("{author}", "{text}")
class Remark:
    author: Author
    text: str


@record("{author}", "ORDER#{number}")
class Sale:
    author: Author
    number: str


TABLE = Table("Diary", partition_key="PK", sort_key="SK")
DIARY, TYPED_DIARY = (
    Graph(TABLE, Person, Entry, Purchase, type_attribute=kind).check() for kind in (None, "kind")
)
REMARKS, TYPED_REMARKS = (
    Graph(TABLE, Author, Remark, Sale, type_attribute=kind).check() for kind in (None, "kind")
)
DAYS = ["2024-01-01", "2024-01-02", "2024-01-03"]
TEXTS = ["Nice", "Odd", "Quick", "Zzz"]
SAID = [Narrowing(low=DAYS[1]), Narrowing(low=DAYS[0], high=DAYS[1])]


@pytest.fixture
async def diary(make_store: MakeStore) -> TracingStore:
    """A person with entries of three days and an author with four remarks, each with 40 orders between them."""
    store = TracingStore(await make_store(TABLE))
    orders = [f"ORDER#{number:02d}" for number in range(40)]
    sorts = [
        ("PERSON#1", "Person", ["PROFILE"]),
        ("PERSON#1", "Entry", DAYS),
        ("PERSON#1", "Purchase", orders),
        ("AUTHOR#1", "Author", ["PROFILE"]),
        ("AUTHOR#1", "Remark", TEXTS),
        ("AUTHOR#1", "Sale", orders),
    ]
    puts = [{"PK": key, "SK": sort, "kind": kind} for key, kind, each in sorts for sort in each]
    await store.store.send(BatchWrite(tuple(puts)))
    return store


async def asked(
    store: TracingStore, graph: Graph, name: str, size: int | None, **said: Narrowing
) -> tuple[Any, list[str]]:
    """What a page of 1's list holds (None: its count), and the requests for it."""
    path = next(path for path in graph.paths if path.name == name)
    neighbours = ListForm(graph, path, KeyArguments({}, said)).of(("1",))
    store.requests.clear()
    reads: Any = count(neighbours, 20) if size is None else read(neighbours.part(Extent(size)))
    found: Any = await send_reads(store, neighbours, reads)
    found = found if size is None else [each.item["SK"] for each in found.items]
    lines = []
    for request in store.requests:
        assert isinstance(request, Query | Count)
        words = [type(request).__name__, str(request.range)]
        words += ["filtered"] if request.filter else []
        words += [f"limit {request.limit}"] if request.limit else []
        words += ["keys"] if isinstance(request, Query) and request.projection else []
        lines.append(" ".join(words))
    return found, lines


async def test_siblings_behind_a_bound(diary: TracingStore) -> None:
    for graph in (DIARY, TYPED_DIARY):
        assert await asked(diary, graph, "entries", 5) == (DAYS, ["Query Below(value='ORDER#') limit 5"])
        assert await asked(diary, graph, "entries", 5, day=SAID[1]) == (
            DAYS[:2],
            ["Query Within(low='2024-01-01', high='2024-01-02') limit 5"],
        )
        found, [request] = await asked(diary, graph, "entries", 5, day=SAID[0])
        assert found == DAYS[1:]
        assert request == "Query Within(low='2024-01-02', high='ORDER\"\\U0010ffff') limit 5"
    request = path_request(TYPED_DIARY, TYPED_DIARY.node_lists["Person", "entries"])
    assert (request.keys, request.filter) == ("PK = PERSON#{person_id} AND SK < ORDER#", None)


async def test_a_range_is_split_around_siblings(diary: TracingStore) -> None:
    # The profile, one item at a known key, is read with them: that is less than another request.
    first, second = "Query Below(value='ORDER#\\x00') limit 5", "Query AtLeast(value='ORDER$') limit 5"
    assert await asked(diary, REMARKS, "remarks", 4) == (TEXTS, [first, second])
    # A page that the first piece fills costs one request.
    assert await asked(diary, REMARKS, "remarks", 1) == (TEXTS[:1], [first.replace("5", "2")])
    request = path_request(REMARKS, REMARKS.node_lists["Author", "remarks"])
    assert (
        request.keys
        == "PK = AUTHOR#{author_id} AND SK < ORDER#\\u{0}, then PK = AUTHOR#{author_id} AND SK >= ORDER$"
    )


async def test_siblings_that_a_filter_leaves_out(diary: TracingStore) -> None:
    await diary.store.send(BatchWrite(({"PK": "AUTHOR#1", "SK": "ORDER#0x", "kind": "Remark"},)))
    found, requests = await asked(diary, TYPED_REMARKS, "remarks", 9)
    assert found == sorted([*TEXTS, "ORDER#0x"])
    assert requests == ["Query None filtered limit 32", "Query None filtered limit 64"]
    assert "ORDER#0x" not in (await asked(diary, REMARKS, "remarks", 9))[0]


async def test_counts_by_the_store_or_by_keys(diary: TracingStore) -> None:
    strangers = [{"PK": "PERSON#1", "SK": sort} for sort in ("2024-01-xx", "0", "ORDER#")]
    await diary.store.send(BatchWrite(tuple(strangers)))
    # Items that say their type are counted by the store.
    assert await asked(diary, TYPED_DIARY, "entries", None) == (3, ["Count Below(value='ORDER#') filtered"])
    assert (await asked(diary, TYPED_DIARY, "purchases", None))[0] == 40
    # A key below the orders need not be a day: keys are read and recognised.
    assert await asked(diary, DIARY, "entries", None) == (3, ["Query Below(value='ORDER#') keys"])
    # Every key that has text behind `ORDER#` is an order.
    counted = ["Count Within(low='ORDER#\\x00', high='ORDER#\\U0010ffff')"]
    assert await asked(diary, DIARY, "purchases", None) == (40, counted)
    # Split around the profile too: what is left can be remarks alone.
    assert await asked(diary, REMARKS, "remarks", None) == (
        4,
        [
            "Count Below(value='ORDER#\\x00')",
            "Count Within(low='ORDER$', high='PROFILD\\U0010ffff')",
            "Count Above(value='PROFILE')",
        ],
    )
    assert await asked(diary, TYPED_REMARKS, "remarks", None) == (4, ["Count None filtered"])


async def test_a_short_page_goes_on_behind_a_piece(diary: TracingStore) -> None:
    path = REMARKS.node_lists["Author", "remarks"]
    neighbours = ListForm(REMARKS, path).of(("1",))
    found, after = [], None
    for _ in range(20):
        part = neighbours.part(Extent(1, after=after, look_ahead=True, budget=1))
        page = await send_reads(diary, part, read(part))
        found += [each.item["SK"] for each in page.items]
        after = page.resume or neighbours.place_of(page.items[-1].item)
        if not page.more:
            break
    assert found == TEXTS
