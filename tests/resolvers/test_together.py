"""A node that is read together with its lists, where its model says that its partition is small."""

from __future__ import annotations

import asyncio
from datetime import date
from decimal import Decimal
from typing import Any

import pytest

from keygraph import ID, Graph, Index, Many, One, Table, edge, many, node, one, record, stored
from keygraph.dynamo.items import Item
from keygraph.dynamo.store import Answer, Query, Request
from keygraph.engines.dynamodb.requests import render
from keygraph_resolvers import OperationRequest
from keygraph_resolvers.plan.explained import steps_text
from tests.conftest import MakeStore, in_one_world
from tests.documents.served import written_down
from tests.keygraph.checked import mistakes
from tests.resolvers.worlds import World, filled, within_bound, world
from tests.tracing import TracingStore


@node("TRIP#{trip_id}", "M", gather=True)
class Trip:
    """Stands between its lists."""

    trip_id: ID
    title: str

    days: Many[Day] = many()
    guests: Many[Guest] = many()
    letters: Many[Letter] = many()
    notes: Many[Note] = many()


@node("PERSON#{person_id}")
class Person:
    person_id: ID
    name: str


@record("{trip}", "DAY#{day}")
class Day:
    trip: Trip
    day: date
    what: str


@record("{trip}", "LETTER#{number}")
class Letter:
    trip: Trip
    number: int
    text: str


@edge("{trip}", "{person}")
class Guest:
    trip: Trip
    person: Person


@record("{trip}", "Z#{number}")
class Note:
    trip: Trip
    number: int
    text: str


trips = Graph(
    Table("Trips", partition_key="pk", sort_key="sk"),
    Trip,
    Person,
    Day,
    Guest,
    Letter,
    Note,
    type_attribute="t",
)


def trip_items(trip: str, *, days: int = 2, guests: int = 2, letters: int = 0, notes: int = 0) -> list[Item]:
    pk = f"TRIP#{trip}"

    def beside(sk: str, kind: str, **fields: Any) -> Item:
        return {"pk": pk, "sk": sk, "t": kind, "trip_id": trip, **fields}

    return [
        beside("M", "Trip", title=f"Trip {trip}"),
        *(beside(f"DAY#2024-01-{n + 1:02d}", "Day", what=f"day {n}") for n in range(days)),
        *(beside(f"LETTER#{n}", "Letter", text=f"letter {n}") for n in range(letters)),
        *(beside(f"PERSON#p{n}", "Guest", person_id=f"p{n}") for n in range(guests)),
        *(beside(f"Z#{n}", "Note", text=f"note {n}") for n in range(notes)),
        *(
            {"pk": f"PERSON#p{n}", "sk": f"PERSON#p{n}", "t": "Person", "name": f"Person {n}"}
            for n in range(guests)
        ),
    ]


travel = filled(trips)


def sent(asked: World) -> list[str]:
    wires = [wire for request in asked.tracer.requests for wire in render(request, asked.graph.table)]
    return [
        f"{written_down(wire)}, {wire.body['Limit']}" if "Limit" in wire.body else written_down(wire)
        for wire in wires
    ]


async def test_what_else_may_stand_between_splits_it(travel: World) -> None:
    await travel.put(*trip_items("a", letters=50))
    document = '{ trip(tripId: "a") { title days(first: 3) { nodes { what } } } }'
    found = (await travel.ask(document))["trip"]
    assert found == {"title": "Trip a", "days": {"nodes": [{"what": "day 0"}, {"what": "day 1"}]}}
    assert sorted(sent(travel)) == ["GetItem TRIP#a / M", "Query: pk = TRIP#a AND begins_with(sk, DAY#), 3"]
    travel.forget()
    document = '{ trip(tripId: "a") { title days { nodes { what } } letters { nodes { text } } } }'
    assert len((await travel.ask(document))["trip"]["letters"]["nodes"]) == 20
    [first, second] = sent(travel)
    assert first == "Query: pk = TRIP#a AND sk BETWEEN DAY# AND M, 41"
    # The node stands behind what the first came to.
    assert second == "GetItem TRIP#a / M"


async def test_what_is_read_apart_for_a_reason(travel: World) -> None:
    await travel.put(*trip_items("a", days=4))
    days = '{ trip(tripId: "a") { title guests { nodes { personId } } days(%s) { edges { cursor node { what } } } } }'
    for said, wanted in [
        ("last: 1", ["day 3"]),
        ('where: {what: {eq: "day 2"}}', ["day 2"]),
        ('first: 1, day: {from: "2024-01-02"}', ["day 1"]),
        ("first: 0", []),
    ]:
        found = (await travel.ask(days % said))["trip"]
        assert [edge["node"]["what"] for edge in found["days"]["edges"]] == wanted
        assert len(found["guests"]["nodes"]) == 2
    [edge] = (await travel.ask(days % "first: 1"))["trip"]["days"]["edges"]
    found = (await travel.ask(days % f'first: 1, after: "{edge["cursor"]}"'))["trip"]
    assert [edge["node"]["what"] for edge in found["days"]["edges"]] == ["day 1"]


gsi = Index("gsi", "gpk", "gsk")


@pytest.mark.parametrize(
    ("declared", "why"),
    [
        (("TRIP#{trip_id}",), "none of its lists reads its own partition of the table"),
        (("TRIP#{trip_id}#{shard}", "M"), "it is spread over shards"),
    ],
)
def test_a_node_with_nothing_to_gather(declared: tuple[str, ...], why: str) -> None:
    @node(*declared, gather=True, shards=3 if len(declared) > 1 else None)
    class Trip:
        trip_id: ID
        letters: Many[Letter] = many()

    @record("LETTER#{number}", gsi("{trip}", "LETTER#{number}"))
    class Letter:
        number: int
        trip: Trip = stored("tripId")

    table = Table("Trips", partition_key="pk", sort_key="sk", indexes=[gsi])
    assert any(f"gather=True, and {why}" in mistake for mistake in mistakes(Trip, Letter, table=table))


def test_a_virtual_node_gathers_nothing() -> None:
    @node("TAG#{name}", item=False, gather=True)
    class Tag:
        name: ID
        uses: Many[Use] = many()

    @record("{tag}", "USE#{number}")
    class Use:
        tag: Tag
        number: int

    assert any(
        "gather=True, and it has no item that could be read with its lists" in mistake
        for mistake in mistakes(Tag, Use)
    )


async def test_a_node_in_two_places_is_read_once(travel: World) -> None:
    await travel.put(*trip_items("a"))
    document = """{ a: trip(tripId: "a") { title guests { nodes { personId } } }
      b: trip(tripId: "a") { title guests { edges { node { personId } } } } }"""
    found = await travel.ask(document)
    assert len(found["a"]["guests"]["nodes"]) == len(found["b"]["guests"]["edges"]) == 2
    assert len(sent(travel)) == 1


# --- What it costs at most ------------------------------------------------------------------------------


@pytest.mark.parametrize("letters", [0, 3, 30])
@pytest.mark.parametrize("days", [0, 30])
@in_one_world(
    ("selected", "at_most"),
    [
        # The node and what stands behind it: nothing can be missed.
        ("title guests(first: 5) { nodes { personId } }", (1, 1)),
        # A list before the node: where it is longer than its page, the node is read apart.
        ("title letters { nodes { text } }", (2, 2)),
        ("title letters { nodes { text } } days { nodes { what } }", (3, 2)),
        # The people of the guests may be known a round trip later, if the guests are read apart.
        ("title letters { nodes { text } } guests { nodes { name } }", (4, 3)),
        # What else may stand between them is not read: letters.
        ("title days(first: 2) { nodes { what } }", (2, 1)),
        # The end of a list is known when all of it was read.
        ("title guests(last: 5) { nodes { personId } }", (2, 2)),
    ],
)
async def test_the_bound_of_what_is_read_together(
    travel: World, selected: str, at_most: tuple[int, int], days: int, letters: int
) -> None:
    await travel.put(*trip_items("a", days=days, letters=letters))
    answer = await travel.service.execute(
        OperationRequest(f'{{ trip(tripId: "a") {{ {selected} }} }}', with_cost=True)
    )
    cost = answer["extensions"]["cost"]
    assert (cost["bound"]["requests"], cost["bound"]["roundTrips"]) == at_most
    for told in (cost, *cost["byPath"].values()):
        for name in ("requests", "roundTrips"):
            assert told["actual"] is None or told["actual"][name] <= told["bound"][name], told


@pytest.mark.parametrize(("guests", "requests"), [(3, 1), (20, 1), (21, 2), (25, 2)])
async def test_the_last_ones_are_read_with_the_node(
    travel: World, guests: int, requests: int, engine: str
) -> None:
    if engine == "moto" and guests == 21:
        pytest.skip("moto gives no LastEvaluatedKey where Limit equals the number of matches")
    await travel.put(*trip_items("a", guests=guests))
    document = (
        '{ trip(tripId: "a") { title guests(last: 2) { nodes { personId } pageInfo { hasPreviousPage } } } }'
    )
    found = (await travel.ask(document))["trip"]
    wanted = sorted(f"p{number}" for number in range(guests))[-2:]
    assert [node["personId"] for node in found["guests"]["nodes"]] == wanted
    assert found["guests"]["pageInfo"] == {"hasPreviousPage": True}
    assert len(sent(travel)) == requests


@node("CRATE#{crate_id}", "#", gather=True, item_bytes=100)
class Crate:
    crate_id: ID
    label: str
    loads: Many[Load]


@record("{crate}", "LOAD#{number:02d}", item_bytes=60_000)
class Load:
    crate: Crate
    number: int
    text: str
    keeper: Keeper | None


@node("KEEPER#{keeper_id}")
class Keeper:
    keeper_id: ID
    name: str
    above: Keeper | None


@pytest.mark.parametrize("arguments", ["first: 20", "last: 3", "first: 3"])
async def test_a_list_of_large_items_beside_a_small_node(make_store: MakeStore, arguments: str) -> None:
    graph = Graph(Table("Crates", partition_key="PK", sort_key="SK"), Crate, Load, Keeper)
    made = world(graph, await make_store(graph.table))
    await made.put({"PK": "CRATE#1", "SK": "#", "Type": "Crate", "crate_id": "1", "label": "a"})
    for number in range(30):
        text = {"number": Decimal(number), "text": "x" * 58_000}
        await made.put({"PK": "CRATE#1", "SK": f"LOAD#{number:02d}", "Type": "Load", "crate_id": "1", **text})
    document = f'{{ crate(crateId: "1") {{ label loads({arguments}) {{ nodes {{ number }} }} }} }}'
    answer = await made.service.execute(OperationRequest(document, with_cost=True))
    assert "errors" not in answer, answer
    cost = answer["extensions"]["cost"]
    for told in (cost, *cost["byPath"].values()):
        for name in ("requests", "roundTrips", "items", "readUnits"):
            assert told["actual"] is None or told["actual"][name] <= told["bound"][name], told


class FirstSlowest(TracingStore):
    """A store whose Queries each answer some milliseconds after the one before."""

    queries = 0

    async def send(self, request: Request[Answer], /) -> Answer:
        if isinstance(request, Query):
            self.queries += 1
            await asyncio.sleep(0.01 * self.queries)
        return await super().send(request)


async def test_all_that_queries_miss_is_one_batch(make_store: MakeStore) -> None:
    made = world(trips, FirstSlowest(await make_store(trips.table)))
    for trip in "abc":
        await made.put(*trip_items(trip, letters=30))
    named = [f'{trip}: trip(tripId: "{trip}") {{ title letters {{ nodes {{ text }} }} }}' for trip in "abc"]
    document = f"{{ {' '.join(named)} }}"
    made.forget()
    answer = await made.service.execute(OperationRequest(document, with_cost=True))
    assert [answer["data"][trip]["title"] for trip in "abc"] == ["Trip a", "Trip b", "Trip c"]
    cost = answer["extensions"]["cost"]
    assert [(each["roundTrip"], each["operation"]) for each in cost["requests"]] == [
        *[(1, "Query")] * 3,
        (2, "BatchGetItem"),
    ]
    assert (cost["bound"]["requests"], cost["bound"]["roundTrips"]) == (4, 2)


class SlowBackward(TracingStore):
    """A store that takes its time to read a list from its end."""

    async def send(self, request: Request[Answer], /) -> Answer:
        if isinstance(request, Query) and not request.forward:
            await asyncio.sleep(0.1)
        return await super().send(request)


async def test_what_is_read_apart_holds_back_no_other_batch(make_store: MakeStore) -> None:
    graph = Graph(Table("Crates", partition_key="PK", sort_key="SK"), Crate, Load, Keeper)
    made = world(graph, SlowBackward(await make_store(graph.table)))
    await made.put({"PK": "CRATE#1", "SK": "#", "Type": "Crate", "crate_id": "1", "label": "a"})
    for number in range(30):
        told = {"number": Decimal(number), "text": "x", "keeper_id": str(number % 3)}
        await made.put({"PK": "CRATE#1", "SK": f"LOAD#{number:02d}", "Type": "Load", "crate_id": "1", **told})
    for number in range(8):
        key = f"KEEPER#{number}"
        await made.put({"PK": key, "SK": key, "Type": "Keeper", "name": key, "above_id": str(number + 1)})
    document = """{
      crate(crateId: "1") { label loads(last: 3) { nodes { keeper { name } } } }
      keeper(keeperId: "5") { above { above { name } } }
    }"""
    made.forget()
    answer = await made.service.execute(OperationRequest(document, with_cost=True))
    assert "errors" not in answer, answer
    # The crate with its loads, and a keeper; the last loads, and who is above; then all other keepers in one batch.
    requests = answer["extensions"]["cost"]["requests"]
    assert [(each["roundTrip"], each["operation"]) for each in requests] == [
        (1, "Query"),
        (1, "GetItem"),
        (2, "Query"),
        (2, "GetItem"),
        (3, "BatchGetItem"),
    ]
    [again] = [each for each in requests if each["roundTrip"] == 2 and each["operation"] == "Query"]
    [above] = [each for each in requests if each["roundTrip"] == 2 and each["operation"] == "GetItem"]
    assert above["endedMs"] < again["endedMs"] - 50


# --- An only neighbour --------------------------------------------------------------------------------


@node("PLAYER#{player_id}", "#", gather=True)
class Player:
    player_id: ID
    name: str
    friends: One[Friends] = one()
    items: Many[Piece] = many()
    tasks: Many[Task] = many()


@node("MATE#{mate_id}")
class Mate:
    mate_id: ID
    name: str


@record("{player}", "FRIENDS")
class Friends:
    player: Player
    names: str
    best: Mate | None = stored("best")


@record("{player}", "ITEM#{number}")
class Piece:
    player: Player
    number: int


@record("{player}", "A#{number}")
class Task:
    player: Player
    number: int


@pytest.mark.parametrize("has_friends", [True, False])
async def test_an_only_neighbour_is_read_with_the_rest(make_store: MakeStore, has_friends: bool) -> None:
    graph = Graph(Table("Players", partition_key="PK", sort_key="SK"), Player, Friends, Piece, Task, Mate)
    made = world(graph, await make_store(graph.table))
    await made.put({"PK": "PLAYER#1", "SK": "#", "name": "Ann"})
    if has_friends:
        await made.put({"PK": "PLAYER#1", "SK": "FRIENDS", "names": "Bob"})
    await made.put({"PK": "PLAYER#1", "SK": "A#1"}, {"PK": "PLAYER#1", "SK": "ITEM#7"})
    document = """{ player(playerId: "1") {
      name friends { names } items { nodes { number } } tasks { nodes { number } } } }"""
    made.forget()
    answer = await made.service.execute(OperationRequest(document, with_cost=True))
    friends = {"names": "Bob"} if has_friends else None
    lists = {"items": {"nodes": [{"number": 7}]}, "tasks": {"nodes": [{"number": 1}]}}
    assert answer["data"] == {"player": {"name": "Ann", "friends": friends, **lists}}
    assert made.operations == {"Query": 1}
    cost = within_bound(answer)
    assert cost["bound"]["roundTrips"] == 2
    shown = steps_text(made.service.explain(document).steps)
    assert shown.count("Query") == 1
    assert "GetItem" not in shown


async def test_an_only_neighbour_that_is_not_come_to_leads_on(make_store: MakeStore) -> None:
    graph = Graph(Table("Players", partition_key="PK", sort_key="SK"), Player, Friends, Piece, Task, Mate)
    made = world(graph, await make_store(graph.table))
    await made.put({"PK": "PLAYER#1", "SK": "#", "name": "Ann"})
    await made.put({"PK": "PLAYER#1", "SK": "FRIENDS", "names": "Bob", "best": "b"})
    await made.put({"PK": "MATE#b", "SK": "MATE#b", "name": "Bob"})
    await made.put(*({"PK": "PLAYER#1", "SK": f"A#{number}"} for number in range(30)))
    document = """{ player(playerId: "1") {
      friends { best { name } } tasks(first: 20) { nodes { number } pageInfo { hasNextPage } } } }"""
    found = (await made.ask(document))["player"]
    assert found["friends"] == {"best": {"name": "Bob"}}
    assert (len(found["tasks"]["nodes"]), found["tasks"]["pageInfo"]["hasNextPage"]) == (20, True)


async def test_a_node_and_the_list_beside_it_are_one_query(travel: World) -> None:
    await travel.put(*trip_items("a", notes=1))
    document = '{ trip(tripId: "a") { title guests { nodes { personId } pageInfo { hasNextPage } } } }'
    assert (await travel.ask(document))["trip"] == {
        "title": "Trip a",
        "guests": {"nodes": [{"personId": "p0"}, {"personId": "p1"}], "pageInfo": {"hasNextPage": False}},
    }
    assert sent(travel) == ["Query: pk = TRIP#a AND sk BETWEEN M AND PERSON#\U0010ffff, 22"]


async def test_behind_a_page_that_is_not_full_nothing_is_read_with_it(travel: World) -> None:
    await travel.put(*trip_items("a", letters=50))
    document = (
        '{ trip(tripId: "a") { title letters(first: 1) { nodes { text } } guests { nodes { personId } } } }'
    )
    found = (await travel.ask(document))["trip"]
    assert (len(found["letters"]["nodes"]), len(found["guests"]["nodes"])) == (1, 2)
    assert sorted(sent(travel)) == [
        "Query: pk = TRIP#a AND begins_with(sk, LETTER#), 1",
        "Query: pk = TRIP#a AND sk BETWEEN M AND PERSON#\U0010ffff, 21",
    ]


async def test_a_trip_that_does_not_exist(travel: World) -> None:
    await travel.put(*(item for item in trip_items("a") if item["t"] != "Trip"))
    document = '{ trip(tripId: "a") { title guests { nodes { name } } } }'
    assert await travel.ask(document) == {"trip": None}
    assert sent(travel)[0].startswith("Query")


async def test_a_count_beside_it(travel: World) -> None:
    await travel.put(*trip_items("a", guests=4))
    document = '{ trip(tripId: "a") { title guests(first: 1) { totalCount nodes { name } } } }'
    assert (await travel.ask(document))["trip"]["guests"] == {
        "totalCount": 4,
        "nodes": [{"name": "Person 0"}],
    }


async def test_pages_of_one_list_from_both_ends(travel: World) -> None:
    await travel.put(*trip_items("a", guests=4), *trip_items("b", guests=30))
    document = """query ($trip: ID!) { trip(tripId: $trip) { title few: guests(first: 2) { nodes { personId } }
      last: guests(last: 3) { nodes { personId } } first: guests(first: 20) { nodes { personId } } } }"""

    async def ids(trip: str) -> dict[str, list[int]]:
        travel.forget()
        found = (await travel.ask(document, trip=trip))["trip"]
        assert found["title"] == f"Trip {trip}"
        return {
            name: [int(node["personId"][1:]) for node in found[name]["nodes"]]
            for name in ("few", "first", "last")
        }

    assert await ids("a") == {"few": [0, 1], "first": [0, 1, 2, 3], "last": [1, 2, 3]}
    assert sent(travel) == ["Query: pk = TRIP#a AND sk BETWEEN M AND PERSON#\U0010ffff, 22"]
    order = sorted(range(30), key=str)
    assert await ids("b") == {"few": order[:2], "first": order[:20], "last": order[-3:]}
    # The end is not come to.
    assert len(sent(travel)) == 2
    answer = await travel.service.execute(OperationRequest(document, {"trip": "b"}, with_cost=True))
    paths = [each["paths"] for each in answer["extensions"]["cost"]["requests"]]
    assert [sorted(each) for each in paths] == [
        ["trip", "trip.few", "trip.first", "trip.last"],
        ["trip.last"],
    ]


@pytest.mark.xfail(strict=True, reason="Only pages of one selection are read with the node")
@pytest.mark.parametrize(
    ("document", "requests"),
    [
        ('{ trip(tripId: "a") { title notes { aggregate { min(field: NUMBER) } } } }', 1),
        (
            """{ a: trip(tripId: "a") { title letters(first: 2) { nodes { text } } }
            b: trip(tripId: "a") { letters(last: 2) { nodes { text } } } }""",
            2,
        ),
    ],
)
@pytest.mark.parametrize("engine", ["sqlite"])
async def test_what_else_one_query_could_read(travel: World, document: str, requests: int) -> None:
    await travel.put(*trip_items("a", letters=5, notes=3))
    travel.forget()
    await travel.ask(document)
    assert len(sent(travel)) == requests


async def test_a_page_that_another_field_reads_with_the_node(travel: World) -> None:
    await travel.put(*trip_items("a", guests=4))
    document = """{ a: trip(tripId: "a") { title guests { nodes { personId } } }
      b: trip(tripId: "a") { tripId guests(first: 1) { nodes { personId } } } }"""
    found = await travel.ask(document)
    assert len(found["a"]["guests"]["nodes"]) == 4
    assert found["b"]["guests"]["nodes"] == [{"personId": "p0"}]
    assert sent(travel) == ["Query: pk = TRIP#a AND sk BETWEEN M AND PERSON#\U0010ffff, 21"]


async def test_a_bound_is_of_the_range_that_is_asked_for(travel: World) -> None:
    await travel.put(*trip_items("a", days=2, letters=3, guests=3))
    document = """
      query ($guests: IDRange) {
        trip(tripId: "a") { title guests(personId: $guests) { nodes { personId } } }
      }
    """
    runs: list[dict[str, Any]] = [
        {},
        {"guests": {"from": "p1"}},
        {"guests": {"to": "p1"}},
        {},
    ]
    bounds = []
    for variables in runs:
        alone = await travel.served().service.execute(OperationRequest(document, variables, with_cost=True))
        assert "errors" not in alone, alone
        answer = await travel.service.execute(OperationRequest(document, variables, with_cost=True))
        cost = answer["extensions"]["cost"]
        assert cost["bound"] == alone["extensions"]["cost"]["bound"]
        for name in ("requests", "roundTrips", "items", "readUnits"):
            assert cost["actual"][name] <= cost["bound"][name], (variables, cost)
        bounds.append(cost["bound"])
    assert bounds[0] == bounds[-1] != bounds[1]


async def test_the_bound_of_a_list_that_is_aggregated(make_store: MakeStore) -> None:
    graph = Graph(Table("Crates", partition_key="PK", sort_key="SK"), Crate, Load, Keeper)
    made = world(graph, await make_store(graph.table))
    await made.put({"PK": "CRATE#1", "SK": "#", "Type": "Crate", "crate_id": "1", "label": "a"})
    for number in range(30):
        told = {"number": Decimal(number), "text": "x"}
        await made.put({"PK": "CRATE#1", "SK": f"LOAD#{number:02d}", "Type": "Load", "crate_id": "1", **told})
    document = """{ crate(crateId: "1") { label
      loads(first: 1) { aggregate { sum(field: NUMBER) } nodes { number } } } }"""
    made.forget()
    answer = await made.service.execute(OperationRequest(document, with_cost=True))
    assert answer["data"]["crate"]["loads"] == {"aggregate": {"sum": "435"}, "nodes": [{"number": 0}]}
    # The page is a part of what is aggregated, and the crate is not read with it once more.
    assert made.operations == {"GetItem": 1, "Query": 1}
    cost = answer["extensions"]["cost"]
    assert cost["open"] == ["crate.loads"]
    assert cost["bound"]["items"] >= 10_000
    for told in (cost, *cost["byPath"].values()):
        for name in ("requests", "roundTrips", "items", "readUnits"):
            assert told["actual"][name] <= told["bound"][name], told


async def test_items_at_known_keys_share_a_batch(make_store: MakeStore) -> None:
    graph = Graph(Table("Players", partition_key="PK", sort_key="SK"), Player, Friends, Piece, Task, Mate)
    made = world(graph, await make_store(graph.table))
    for player in "12":
        await made.put({"PK": f"PLAYER#{player}", "SK": "#", "name": f"Ann {player}"})
        await made.put({"PK": f"PLAYER#{player}", "SK": "FRIENDS", "names": f"Bob {player}"})
        await made.put(*({"PK": f"PLAYER#{player}", "SK": f"ITEM#{number}"} for number in range(5)))
    document = """{
      one: player(playerId: "1") { name friends { names } items(number: {eq: 4}) { nodes { number } } }
      two: player(playerId: "2") { name friends { names } items(number: {eq: 7}) { nodes { number } } }
    }"""
    made.forget()
    answer = await made.service.execute(OperationRequest(document, with_cost=True))
    assert answer["data"] == {
        "one": {"name": "Ann 1", "friends": {"names": "Bob 1"}, "items": {"nodes": [{"number": 4}]}},
        "two": {"name": "Ann 2", "friends": {"names": "Bob 2"}, "items": {"nodes": []}},
    }
    assert made.operations == {"BatchGetItem": 1}
    bound = answer["extensions"]["cost"]["bound"]
    assert bound == {"requests": 1, "roundTrips": 1, "items": 6, "readUnits": 3.0}


async def test_other_items_between_two_known_keys(make_store: MakeStore) -> None:
    graph = Graph(Table("Players", partition_key="PK", sort_key="SK"), Player, Friends, Piece, Task, Mate)
    made = world(graph, await make_store(graph.table))
    await made.put({"PK": "PLAYER#1", "SK": "#", "name": "Ann"})
    await made.put({"PK": "PLAYER#1", "SK": "FRIENDS", "names": "Bob"})
    await made.put(*({"PK": "PLAYER#1", "SK": f"ITEM#{number}"} for number in range(30)))
    await made.put(*({"PK": "PLAYER#1", "SK": f"A#{number}"} for number in range(20)))
    document = """{ player(playerId: "1") { name tasks(first: 20) { nodes { number } } friends { names }
      items(number: {eq: 7}) { nodes { number } } } }"""
    made.forget()
    answer = await made.service.execute(OperationRequest(document, with_cost=True))
    player = answer["data"]["player"]
    assert (player["friends"], player["items"]["nodes"]) == ({"names": "Bob"}, [{"number": 7}])
    assert sorted(sent(made)) == [
        "GetItem PLAYER#1 / ITEM#7",
        "Query: PK = PLAYER#1 AND SK BETWEEN # AND FRIENDS, 22",
    ]
    cost = answer["extensions"]["cost"]
    assert cost["actual"]["items"] == 23
    # The friends may be missed, and are then read by their key, as one item.
    assert cost["bound"] == {"requests": 3, "roundTrips": 2, "items": 24, "readUnits": 4.0}
