"""Consistent reads: of a query with `@consistent`, and of what a mutation answers."""

from __future__ import annotations

import pytest

from keygraph import ID, Graph, Index, Many, Table, many, node, record
from keygraph.dynamo.store import BatchGet, Count, Query
from keygraph_resolvers import OperationRequest
from tests.conftest import MakeStore, on_exact_engines
from tests.resolvers.worlds import World, world

by_shelf = Index("by-shelf", "on", "sk")
by_size = Index("by-size", "pk", "size", local=True)


@node("ROOM#{room_id}", gather=True)
class Room:
    room_id: ID
    name: str

    things: Many[Thing] = many(index=None)
    by_size: Many[Thing] = many(index=by_size)


@node("SHELF#{shelf_id}")
class Shelf:
    shelf_id: ID
    name: str

    things: Many[Thing] = many(index=by_shelf)


@record("{room}", "THING#{number}", by_shelf("{on}"), by_size())
class Thing:
    room: Room
    number: int
    on: Shelf
    size: str


graph = Graph(
    Table("Rooms", partition_key="pk", sort_key="sk", indexes=[by_shelf, by_size]), Room, Shelf, Thing
)


@pytest.fixture
async def rooms(make_store: MakeStore) -> World:
    """A room with two things, of which one lies on a shelf of its own."""
    made = world(graph, await make_store(graph.table))
    await made.ask(
        """mutation {
          a: createShelf(input: {shelfId: "1", name: "Top"}) { clientMutationId }
          b: createShelf(input: {shelfId: "2", name: "Low"}) { clientMutationId }
          createRoom(input: {roomId: "r", name: "Hall", things: [
            {number: 1, onId: "1", size: "M"}, {number: 2, onId: "2", size: "L"}]}) { clientMutationId } }"""
    )
    made.forget()
    return made


def are_consistent(asked: World) -> list[bool]:
    """Of each read, whether it was consistent."""
    return [each.consistent for each in asked.tracer.requests if isinstance(each, BatchGet | Query | Count)]


FROM_THE_TABLE = """{ room(roomId: "r") { name
    things { totalCount nodes { number on { name } } } bySize(first: 1) { nodes { size } } } }"""


async def test_everything_is_read_consistently(rooms: World) -> None:
    plain = await rooms.ask(FROM_THE_TABLE)
    assert are_consistent(rooms)
    assert not any(are_consistent(rooms))
    rooms.forget()
    assert await rooms.ask("query @consistent " + FROM_THE_TABLE) == plain
    assert plain["room"]["bySize"]["nodes"] == [{"size": "L"}]
    assert len(are_consistent(rooms)) > 2
    assert all(are_consistent(rooms))


async def test_a_global_index_is_refused_with_its_list(rooms: World) -> None:
    document = 'query @consistent { shelf(shelfId: "1") { name things { nodes { number } } } }'
    answer = await rooms.service.execute(document)
    assert answer["data"] == {"shelf": {"name": "Top", "things": None}}
    [error] = answer["errors"]
    assert (error["path"], error["extensions"]) == (["shelf", "things"], {"code": "BAD_USER_INPUT"})
    assert error["message"] == (
        "things of Shelf is read from the global index by-shelf, which cannot be read consistently. "
        "Ask for it in another query, without @consistent."
    )
    assert are_consistent(rooms) == [True]
    explained = rooms.service.explain(document)
    assert [each.problem for each in explained.steps[0].steps] == [error["message"]]


@on_exact_engines
async def test_the_bound_and_the_cost_are_twice_as_high(rooms: World) -> None:
    documents = (FROM_THE_TABLE, "query @consistent " + FROM_THE_TABLE)
    once, twice = [
        (await rooms.service.execute(OperationRequest(each, with_cost=True)))["extensions"]["cost"]
        for each in documents
    ]
    for name in ("bound", "actual"):
        assert twice[name]["readUnits"] == 2 * once[name]["readUnits"]
        assert twice[name]["requests"] == once[name]["requests"]
    assert {place: each["bound"]["readUnits"] for place, each in twice["byPath"].items()} == {
        place: 2 * each["bound"]["readUnits"] for place, each in once["byPath"].items()
    }
    assert twice["actual"]["readUnits"] <= twice["bound"]["readUnits"]


async def test_what_a_mutation_answers_is_consistent(rooms: World) -> None:
    room = await rooms.ask(
        """mutation { updateRoom(input: {roomId: "r", name: "Attic"}) { room { name things { nodes { number } } } } }"""
    )
    assert room["updateRoom"]["room"] == {
        "name": "Attic",
        "things": {"nodes": [{"number": 1}, {"number": 2}]},
    }
    assert are_consistent(rooms)
    assert all(are_consistent(rooms))


@pytest.mark.parametrize(
    "document", ["mutation @consistent { __typename }", '{ room(roomId: "r") @consistent { name } }']
)
async def test_where_the_directive_has_no_meaning(rooms: World, document: str) -> None:
    assert await rooms.codes(document) == ["GRAPHQL_VALIDATION_FAILED"]
