"""The estimate of an operation: by DynamoDB's rules, never too few requests, and in proportion to the document."""

from __future__ import annotations

import sys
import time
from enum import Enum
from typing import Any

import pytest

from keygraph import ID, Graph, Index, Many, Table, many, node, record
from keygraph_resolvers.plan.statistics import Mean
from keygraph_resolvers.read.meter import ListKind
from keygraph_resolvers.schema.global_ids import global_id
from tests.conftest import MakeStore, on_exact_engines
from tests.resolvers.estimated import (
    GRAPHS,
    OPERATIONS,
    as_table,
    measured,
    median_error,
    served,
)
from tests.resolvers.worlds import World, library, world

pytestmark = on_exact_engines


async def cost(asked: World, document: str, **variables: Any) -> dict[str, Any]:
    """What `extensions.cost` says of an operation, where nothing is known of the table yet."""
    answer = await asked.served().service.execute(document, variables, with_cost=True)
    assert "errors" not in answer, answer["errors"]
    found: dict[str, Any] = answer["extensions"]["cost"]
    return found


async def estimate(asked: World, document: str, **variables: Any) -> tuple[float, ...]:
    """At most so many requests and round trips; likely so many requests, round trips, items and read units."""
    told = (await cost(asked, document, **variables))["estimate"]
    names = ("requests", "roundTrips", "likelyRequests", "likelyRoundTrips", "items", "readUnits")
    return tuple(told[name] for name in names)


# --- DynamoDB's rules, before anything is known of the table --------------------------------------------
#
# An item is taken to have 1 KB and a list to fill its page; half a unit is 4 KB.

MEMBER = '{ member(memberId: "ann") { %s } }'
LOANS = MEMBER % "loans(%s) { nodes { title } }"


@pytest.mark.parametrize(
    ("document", "expected"),
    [
        # One GetItem, whatever is selected; a node is looked for even if its key tells everything.
        ('{ member(memberId: "ann") { memberId } }', (1, 1, 1, 1, 1, 0.5)),
        # The same node's list goes with it: 20 edges are 20 KB, which are 5 steps of 4 KB.
        (MEMBER % "name loans { edges { note } }", (2, 1, 2, 1, 21, 3)),
        # Only as many as are asked for; and one more to know whether there is one.
        (MEMBER % "loans(first: 4) { edges { note } }", (2, 1, 2, 1, 5, 1)),
        (
            MEMBER % "loans(first: 4) { edges { note } pageInfo { hasNextPage } }",
            (2, 1, 2, 1, 6, 1.5),
        ),
        # The nodes behind the edges: each one rounded up, a hundred a BatchGet.
        (LOANS % "first: 100", (3, 2, 3, 2, 201, 0.5 + 12.5 + 50)),
        (LOANS % "first: 1", (3, 2, 3, 2, 3, 1.5)),
        # Nothing is read where the edge's key tells it, or where nothing is wanted.
        (MEMBER % "loans(first: 4) { nodes { bookId } }", (2, 1, 2, 1, 5, 1)),
        (MEMBER % "loans(first: 0) { nodes { title } }", (1, 1, 1, 1, 1, 0.5)),
        # A count reads what it counts: a hundred items, so long as nobody knows.
        (MEMBER % "loans(first: 0) { totalCount }", (2, 1, 2, 1, 101, 13)),
        # Each of three shards is asked for the whole page.
        ('{ loans(branch: "main", first: 8) { edges { node { day } } } }', (3, 1, 3, 1, 24, 3)),
        # Under a client's condition a page looks at three times what is wanted at first, and doubles that until 10,000
        # were looked at; twice 1 KB is what items may have, so a page has 512.
        (MEMBER % 'loans(where: {note: {eq: "x"}}) { edges { note } }', (23, 22, 2, 1, 61, 8)),
        # Siblings in the range are left out by a filter.
        (
            '{ book(bookId: "b") { loans(first: 2) { edges { note } } } }',
            (24, 23, 2, 1, 33, 4.5),
        ),
        # Two nodes of a hundred that are named twice are two keys.
        ('{ a: member(memberId: "ann") { name } b: member(memberId: "bob") { name } }', (1, 1, 1, 1, 2, 1)),
        # What cannot be asked for reads nothing.
        (MEMBER % "__typename", (1, 1, 1, 1, 1, 0.5)),
        ("{ __typename }", (0, 0, 0, 0, 0, 0)),
    ],
)
async def test_the_rules(books: World, document: str, expected: tuple[float, ...]) -> None:
    """Somebody would be told another price than DynamoDB's rules give for the pages that they ask for."""
    assert await estimate(books, document) == expected


async def test_the_edges_to_named_nodes(books: World) -> None:
    """A list of a hundred names would be priced as a page, or as one request where it is a hundred."""
    to = [global_id(library.types["Book"], (f"b{number}",)) for number in range(3)]
    document = 'query ($to: [ID!]) { member(memberId: "ann") { loans(to: $to) { edges { day } } } }'
    # Both ends make the table's key: one BatchGetItem.
    assert await estimate(books, document, to=to) == (2, 1, 2, 1, 4, 2)


async def test_page_sizes_are_those_of_the_variables(books: World) -> None:
    """The price of one client's page would be told to all."""
    document = 'query ($first: Int) { member(memberId: "ann") { loans(first: $first) { edges { note } } } }'
    assert (await estimate(books, document, first=100))[4:] == (101, 13)
    assert (await estimate(books, document, first=8))[4:] == (9, 1.5)


by_owner = Index("by-owner", "GPK", "GSK", projection="KEYS_ONLY")


@node("SHELF#{shelf_id}")
class Shelf:
    shelf_id: ID
    things: Many[Thing] = many()


@node("THING#{thing_id}", by_owner("{shelf}", "THING#{thing_id}"))
class Thing:
    thing_id: ID
    shelf: Shelf
    label: str


shelves = Graph(Table("Shelves", partition_key="PK", sort_key="SK", indexes=[by_owner]), Shelf, Thing)


@record("{shelf}", "A#{number}", type="A")
class Early:
    shelf: Shelf2
    number: int


class Wing(Enum):
    """Where a thing stands: in its key before or behind the early ones."""

    FIRST = "0"
    LAST = "Z"


@node("SHELF#{shelf_id}", "META")
class Shelf2:
    shelf_id: ID
    spots: Many[Spot] = many()


@record("{shelf}", "{wing}#{number}", type="S")
class Spot:
    shelf: Shelf2
    wing: Wing
    number: int


split = Graph(Table("Split", partition_key="PK", sort_key="SK"), Shelf2, Early, Spot, type_attribute="T")


async def test_a_range_that_is_split_around_others(make_store: MakeStore) -> None:
    """Each piece of a list's range is a request if the page comes to it: it would not be in the bound, or all in it."""
    made = world(split, await make_store(split.table))
    page = '{ shelf2(shelfId: "s") { spots(first: 4) { nodes { number } } } }'
    count = '{ shelf2(shelfId: "s") { spots(first: 0) { totalCount } } }'
    # The shelf; the page in at most two pieces one after the other; a count in two at once.
    assert (await estimate(made, page))[:4] == (3, 2, 2, 1)
    assert (await estimate(made, count))[:4] == (3, 1, 3, 1)
    told = await cost(made, page)
    assert (told["actual"]["requests"], told["actual"]["roundTrips"]) == (3, 2)
    assert (await cost(made, count))["actual"]["requests"] == 3


async def test_a_count_reads_no_more_pages_than_it_may(make_store: MakeStore) -> None:
    """A list that is taken to be huge would be refused for a count that stops long before."""
    made = world(split, await make_store(split.table)).served(count_pages=3)
    statistics = made.service.statistics
    [path] = [path for path in split.paths if path.record.name == "Spot"]
    statistics._ranges[ListKind(path, is_ranged=False, is_filtered=False)] = Mean(1_000_000.0)
    answer = await made.service.execute(
        '{ shelf2(shelfId: "s") { spots(first: 0) { totalCount } } }', with_cost=True
    )
    told = answer["extensions"]["cost"]["estimate"]
    # The shelf, and three pages of two pieces: two of them one after the other.
    assert (told["requests"], told["roundTrips"]) == (4, 2)


async def test_what_an_index_lacks(make_store: MakeStore) -> None:
    """The whole items behind an index that has their keys alone would cost nothing."""
    made = world(shelves, await make_store(shelves.table))
    shelf = '{ shelf(shelfId: "s") { things(first: 16) { nodes { %s } } } }'
    # 16 items of 256 bytes in the index are 4 KB; the whole ones are got one by one, in a second round trip.
    assert await estimate(made, shelf % "thingId") == (2, 1, 2, 1, 17, 1)
    assert await estimate(made, shelf % "label") == (3, 2, 3, 2, 33, 9)


# --- Never too few requests ---------------------------------------------------------------------------


async def test_it_is_a_bound_and_near(make_store: MakeStore) -> None:
    """Operations would take more requests or round trips than their owner was told, or cost something else."""
    rows = []
    for model, operations in OPERATIONS.items():
        service = await served(model, await make_store(GRAPHS[model].table))
        # At first nothing is known of the table.
        unknown = await measured(service, operations, warm=False)
        assert [row.name for row in unknown if not row.is_bounded] == [], as_table(unknown)
        rows += await measured(service, operations)
    assert len(rows) == 20
    assert [row.name for row in rows if not row.is_bounded] == [], as_table(rows)
    assert median_error(rows) <= 1.5, as_table(rows)
    assert max(row.error for row in rows) <= 3, as_table(rows)


async def test_items_of_a_filtered_list_are_not_gathered_with_others(books: World) -> None:
    """A list that goes on looking ends in another round trip than the others, and its nodes go in other batches."""
    document = """{ member(memberId: "ann") { loans(where: {note: {eq: "x"}}, first: 2) { nodes { title } }
      reservations(first: 2) { nodes { title } } } }"""
    most_requests, most_round_trips, *likely = await estimate(books, document)
    # GetItem, 23 Queries, one; the nodes of each list in a BatchGet of their own.
    assert (most_requests, most_round_trips) == (1 + 23 + 1 + 2, 24)
    assert likely[:2] == [4, 2]


# --- In proportion to the document ----------------------------------------------------------------------


def bomb(levels: int) -> str:
    """A document of so many fragments which asks for two to the power of them."""
    hop = "loans { nodes { loans { nodes { ...F%d } } } }"
    fragments = [
        f"fragment F{level} on Member {{ a: {hop % (level + 1)} b: {hop % (level + 1)} }}"
        for level in range(levels)
    ]
    fragments.append(f"fragment F{levels} on Member {{ name }}")
    return "{ members { nodes { ...F0 } } }\n" + "\n".join(fragments)


def steps_of(run: Any) -> int:
    """How many functions were called."""
    called = 0

    def count(*_: Any) -> None:
        nonlocal called
        called += 1

    sys.setprofile(count)
    try:
        run()
    finally:
        sys.setprofile(None)
    return called


async def test_a_fragment_bomb_is_counted_once_for_each_fragment(books: World) -> None:
    """A few lines of fragments would keep the server counting for longer than it lives."""
    service = books.service

    def steps(levels: int) -> int:
        read = service._documents.read(bomb(levels))
        [operation] = read.operations
        plan = service._documents.plan(read, operation, {})
        values: Any = type("Values", (), {"coerced": {}, "sources": {}})()
        return steps_of(lambda: service.estimate(plan, values).total)

    few, many_ = steps(30), steps(60)
    assert many_ < 2.2 * few
    assert few < 200_000


async def test_a_fragment_bomb_is_refused_at_once(books: World) -> None:
    """Somebody would stop the server with one request."""
    limited = books.served(cost_limit=10_000)
    began = time.perf_counter()
    answer = await limited.service.execute(bomb(30))
    # It takes a few hundredths of a second; this is what it must not take on the slowest machine.
    assert time.perf_counter() - began < 5
    [error] = answer["errors"]
    assert error["extensions"]["code"] == "COST_LIMIT"
    assert (
        error["extensions"]["estimate"]["readUnits"]
        == error["extensions"]["estimate"]["requests"]
        == 2**53 - 1
    )
    assert "estimated to cost more than 9,007,199,254,740,991 read units" in error["message"]
    assert limited.operations == {}


async def test_the_places_of_a_bomb_are_told_in_part(books: World) -> None:
    """An answer that was asked for its cost would have a billion places."""
    service = books.service
    read = service._documents.read(bomb(30))
    plan = service._documents.plan(read, read.operations[0], {})
    values: Any = type("Values", (), {"coerced": {}, "sources": {}})()
    assert 100 < len(service.estimate(plan, values).by_place()) <= 1000
