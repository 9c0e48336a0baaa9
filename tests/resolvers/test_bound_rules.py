"""The bound of an operation: by DynamoDB's rules, from the page sizes alone, and in proportion to the document."""

from __future__ import annotations

import sys
from enum import Enum
from typing import Any

from keygraph import ID, Graph, Index, Many, Table, edge, many, node, record
from keygraph.dynamo.store import BatchWrite
from keygraph_resolvers import NO_LIMITS, OperationRequest
from keygraph_resolvers.naming.global_ids import global_id
from tests.conftest import MakeStore, on_exact_engines
from tests.resolvers.bombs import bomb
from tests.resolvers.operations import GRAPHS, OPERATIONS, served
from tests.resolvers.worlds import World, library, loan_item, world

pytestmark = on_exact_engines


async def cost(asked: World, document: str, **variables: Any) -> dict[str, Any]:
    """What `extensions.cost` says of an operation."""
    answer = await asked.served().service.execute(OperationRequest(document, variables, with_cost=True))
    assert "errors" not in answer, answer["errors"]
    found: dict[str, Any] = answer["extensions"]["cost"]
    return found


async def bound(asked: World, document: str, **variables: Any) -> tuple[float, ...]:
    told = (await cost(asked, document, **variables))["bound"]
    return tuple(told[name] for name in ("requests", "roundTrips", "items", "readUnits"))


# --- DynamoDB's rules -----------------------------------------------------------------------------------
#
# An item is taken to have 1 KB and a list to fill its page; half a unit is 4 KB.

MEMBER = '{ member(memberId: "ann") { %s } }'
LOANS = MEMBER % "loans(%s) { nodes { title } }"


async def test_the_edges_to_named_nodes(books: World) -> None:
    to = [global_id(library.types["Book"], (f"b{number}",)) for number in range(3)]
    document = 'query ($to: [ID!]) { member(memberId: "ann") { loans(to: $to) { edges { day } } } }'
    # Both ends make the table's key: the edges are in one BatchGetItem with the member.
    assert await bound(books, document, to=to) == (1, 1, 4, 2)


async def test_a_page_that_ends_among_equal_keys(books: World) -> None:
    loans = [loan_item(f"m{number}", "b", "2024-01-01", number % 3) for number in range(9)]
    await books.put(*loans)
    found = await books.ask('{ loans(branch: "main") { edges { cursor node { member { memberId } } } } }')
    *_, last = found["loans"]["edges"]
    gone = (f"MEMBER#{last['node']['member']['memberId']}", "BOOK#b")
    await books.tracer.store.send(BatchWrite(deletes=(gone,)))
    document = """query ($before: String) {
      loans(branch: "main", first: 16, before: $before) { edges { node { day } } } }"""
    told = await cost(books, document, before=last["cursor"])
    # A page of each of three shards, and the one edge that follows the cursor.
    assert told["bound"] == {**told["bound"], "requests": 4, "roundTrips": 2, "items": 49, "readUnits": 6.5}
    assert told["actual"]["requests"] == 4
    assert told["actual"]["roundTrips"] == 2
    assert "open" not in told or told["open"] == []


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
    made = world(split, await make_store(split.table))
    page = '{ shelf2(shelfId: "s") { spots(first: 4) { nodes { number } } } }'
    count = '{ shelf2(shelfId: "s") { spots(first: 0) { totalCount } } }'
    # The shelf; the page in at most two pieces one after the other; a count in two at once.
    assert (await bound(made, page))[:2] == (3, 2)
    answer = await made.served(count_pages=1).service.execute(OperationRequest(count, with_cost=True))
    told = answer["extensions"]["cost"]["bound"]
    assert (told["requests"], told["roundTrips"]) == (3, 1)
    told = await cost(made, page)
    assert (told["actual"]["requests"], told["actual"]["roundTrips"]) == (3, 2)
    assert (await cost(made, count))["actual"]["requests"] == 3


async def test_a_count_reads_no_more_pages_than_it_may(make_store: MakeStore) -> None:
    made = world(split, await make_store(split.table)).served(count_pages=3)
    answer = await made.service.execute(
        OperationRequest('{ shelf2(shelfId: "s") { spots(first: 0) { totalCount } } }', with_cost=True)
    )
    told = answer["extensions"]["cost"]["bound"]
    # The shelf, and three pages of two pieces: two of them one after the other.
    assert (told["requests"], told["roundTrips"]) == (4, 2)


async def test_what_an_index_lacks(make_store: MakeStore) -> None:
    made = world(shelves, await make_store(shelves.table))
    shelf = '{ shelf(shelfId: "s") { things(first: 16) { nodes { %s } } } }'
    # 16 items of 1 KB are 16 KB, in an index too; the whole ones are read one by one, in a second round trip.
    assert await bound(made, shelf % "thingId") == (2, 1, 17, 2.5)
    assert await bound(made, shelf % "label") == (3, 2, 33, 10.5)


# --- Never too little -----------------------------------------------------------------------------------


@node("RENTER#{renter_id}", "NODE")
class Renter:
    renter_id: ID
    rents: Many[Rent]


@node("TOOL#{tool_id}")
class Tool:
    tool_id: ID


@edge("{renter}", "{tool}#{day}")
class Rent:
    renter: Renter
    tool: Tool
    day: str


rents = Graph(Table("Rents", partition_key="PK", sort_key="SK"), Renter, Tool, Rent)


async def test_several_edges_to_one_node(make_store: MakeStore) -> None:
    made = world(rents, await make_store(rents.table))
    for day in range(7):
        key = {"PK": "RENTER#a", "SK": f"TOOL#saw#{day}", "Type": "Rent"}
        await made.put({**key, "renter_id": "a", "tool_id": "saw", "day": str(day)})
    to = global_id(rents.types["Tool"], ("saw",))
    document = 'query ($to: [ID!]) { renter(renterId: "a") { rents(to: $to) { edges { day } } } }'
    told = await cost(made, document, to=[to])
    # They are a page of 1 MB at most: 1,024 items of 1 KB.
    assert told["bound"]["items"] == 1 + 1024
    assert told["open"] == ["renter.rents"]
    for name in ("requests", "roundTrips", "items", "readUnits"):
        assert told["actual"][name] <= told["bound"][name], told


async def test_what_is_looked_at_with_a_page(make_store: MakeStore) -> None:
    made = world(beside, await make_store(beside.table))
    # The meter itself stands in the range of its values.
    assert (await bound(made, '{ meter(meterId: "a") { values(first: 40) { nodes { value } } } }'))[
        2
    ] == 1 + 41


@node("METER#{meter_id}", "5")
class Meter:
    meter_id: ID
    values: Many[Measure]


@record("{meter}", "{number:04d}")
class Measure:
    meter: Meter
    number: int
    value: int


beside = Graph(Table("Meters", partition_key="PK", sort_key="SK"), Meter, Measure)


@node("BOX#{box_id}", item_bytes=10_000)
class Box:
    box_id: ID


async def test_the_size_that_a_type_declares(make_store: MakeStore) -> None:
    graph = Graph(Table("Boxes", partition_key="PK", sort_key="SK"), Box)
    made = world(graph, await make_store(graph.table))
    # 10,000 bytes are 3 steps of 4 KB.
    assert await bound(made, '{ box(boxId: "b") { boxId } }') == (1, 1, 1, 1.5)


async def test_items_of_a_filtered_list_may_come_in_any_round_trip(books: World) -> None:
    """A list that goes on looking ends in another round trip than the others, and its nodes go in other batches."""
    document = """{ member(memberId: "ann") { loans(where: {note: {eq: "x"}}, first: 2) { nodes { title } }
      reservations(first: 2) { nodes { title } } } }"""
    # GetItem, 14 Queries (32, 64, 128, 256, 512, and 9 pages), one; and each of four nodes in a batch of its own.
    assert (await bound(books, document))[:2] == (1 + 14 + 1 + 4, 15)


# --- In proportion to the document ----------------------------------------------------------------------


def calls_of(run: Any) -> int:
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
    def calls(levels: int) -> int:
        explanation = books.served(**dict(NO_LIMITS)).service.explain(bomb(levels))
        return calls_of(lambda: explanation.bound.total)

    few, many_ = calls(15), calls(30)
    assert many_ < 2.2 * few
    assert few < 100_000


async def test_a_fragment_bomb_is_refused_at_once(books: World) -> None:
    limited = books.served(**{**dict(NO_LIMITS), "cost_limit": 10_000})
    answer = await limited.service.execute(bomb(30))
    [error] = answer["errors"]
    assert error["extensions"]["code"] == "COST_LIMIT"
    told = error["extensions"]["bound"]
    assert told["readUnits"] == told["requests"] == 2**53 - 1
    assert "may cost more than 9,007,199,254,740,991 read units" in error["message"]
    assert limited.operations == {}


async def test_the_places_of_a_bomb_are_told_in_part(books: World) -> None:
    explained = books.served(**dict(NO_LIMITS)).service.explain(bomb(30))
    assert 100 < len(explained.bound.by_place) <= 1000


async def test_page_sizes_are_those_of_the_variables(books: World) -> None:
    document = 'query ($first: Int) { member(memberId: "ann") { loans(first: $first) { edges { note } } } }'
    assert (await bound(books, document, first=100))[2:] == (101, 13)
    assert (await bound(books, document, first=8))[2:] == (9, 1.5)


async def test_it_is_a_bound(make_store: MakeStore) -> None:
    asked = 0
    for model, operations in OPERATIONS.items():
        service = await served(model, await make_store(GRAPHS[model].table))
        for operation in operations:
            for variables in operation.variables:
                answer = await service.execute(
                    OperationRequest(operation.document, variables, with_cost=True)
                )
                assert "errors" not in answer, (operation.name, answer["errors"])
                told = answer["extensions"]["cost"]
                for name in ("requests", "roundTrips", "items", "readUnits"):
                    assert told["actual"][name] <= told["bound"][name], (operation.name, name, told)
                asked += 1
    assert asked >= 100


async def test_it_is_the_same_every_day(books: World) -> None:
    document = MEMBER % "name loans { edges { note node { title } } }"
    first = await bound(books, document)
    await books.put(*(loan_item("ann", f"{number:03d}", "2024-01-01") for number in range(30)))
    for _ in range(3):
        await books.service.execute(document)
    assert await bound(books, document) == first


async def test_what_is_bounded_by_a_limit_of_the_server_is_named(books: World) -> None:
    document = """{ member(memberId: "ann") { counted: loans(first: 0) { totalCount }
      found: loans(where: {note: {eq: "x"}}) { edges { note } } plain: loans { edges { note } } } }"""
    assert (await cost(books, document))["open"] == ["member.counted", "member.found"]
