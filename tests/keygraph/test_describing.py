"""The requests that access paths become, as text."""

from __future__ import annotations

import re
from datetime import datetime
from typing import Any

import pytest

from keygraph import ID, Graph, Index, Many, Table, many, node, record, stored
from keygraph.dynamo.store import Page, Query
from keygraph.engines.dynamodb.requests import render
from keygraph.lists.describe import DescribedRequest, key_request, path_request
from keygraph.lists.listing import bind
from keygraph.lists.reading import Extent, read
from keygraph.model.paths import AccessPath
from keygraph_examples.commerce import graph as commerce

by_map = Index("ByMap", "Map", "Opened", projection="KEYS_ONLY")


@node("ROOM#{room_id}", "META")
class Room:
    room_id: ID
    notes: Many[Note] = many()
    games: Many[Game] = many()


@record("ROOM#{room.room_id}", "{written_at}")
class Note:
    room: Room
    written_at: datetime


@node("GAME#{game_id}", by_map("{map}#{room}", "{opened}", lists="games", finds="game_on"))
class Game:
    game_id: ID
    room: Room
    map: str = stored("MapName")
    opened: datetime = stored("OpenedAt")


rooms = Graph(
    Table("Rooms", partition_key="PK", sort_key="SK", indexes=[by_map]),
    Room,
    Note,
    Game,
    type_attribute="Type",
)


def requests(graph: Graph, owner: str | None) -> dict[str, DescribedRequest]:
    return {
        path.name: path_request(graph, path)
        for path in graph.check().paths
        if (path.owner.name if path.owner else None) == owner
    }


def test_the_requests_of_a_user() -> None:
    """Whoever compares the model with the article's access patterns would read another request."""
    assert requests(commerce, "User") == {
        "orders": DescribedRequest(
            "Query", "GSI1", "GSI1PK = USER#{user_id} AND begins_with(GSI1SK, ORDER#)"
        ),
        "customer_orders": DescribedRequest("Query", None, "PK = USER#{user_id} AND begins_with(SK, ORDER#)"),
        "reviews": DescribedRequest("Query", None, "PK = USER#{user_id} AND begins_with(SK, REVIEW#)"),
        "activities": DescribedRequest(
            "Query", None, "PK = USER#{user_id}#SHARD{shard} AND begins_with(SK, ACTIVITY#)", times=5
        ),
    }
    assert requests(commerce, None) == {
        "users": DescribedRequest("Query", "GSI1", "GSI1PK = USER"),
        "products": DescribedRequest("Query", "GSI1", "GSI1PK = PRODUCT"),
    }


def test_filters_required_arguments_and_finders() -> None:
    """A list that leaves siblings out, or that needs an argument, would look as if it did not."""
    assert requests(rooms, "Room")["notes"] == DescribedRequest(
        "Query", None, "PK = ROOM#{room_id} AND SK < META"
    )
    games = rooms.path(rooms.types["Room"], "games")
    assert path_request(rooms, games) == DescribedRequest("Query", "ByMap", "Map = {map}#ROOM#{room_id}")
    assert [argument.name for argument in games.required] == ["map"]
    assert [argument.name for argument in games.ranged] == ["opened"]
    assert requests(rooms, None)["game_on"].keys == "Map = {map}#ROOM#{room_id}"


def test_the_filter_of_types_without_a_value() -> None:
    """A list whose items have no type value would look as if it wanted the value `True`."""

    @node("PERSON#{person_id}")
    class Person:
        person_id: ID
        links: Many[Link] = many()

    @record("{person}", "{text}", type=None)
    class Link:
        person: Person
        text: str

    @record("{person}", "{other}", type="Other")
    class Other:
        person: Person
        other: str

    graph = Graph(
        Table("Links", partition_key="PK", sort_key="SK"), Person, Link, Other, type_attribute="Kind"
    )
    assert requests(graph, "Person")["links"].filter == "(NOT attribute_exists(Kind)) OR Kind = null"


def test_items_by_their_keys() -> None:
    """What an entity by its key costs would be missing from the description."""
    assert key_request(rooms, rooms.types["Room"]) == DescribedRequest(
        "GetItem", None, "PK = ROOM#{room_id} AND SK = META"
    )
    assert key_request(commerce, commerce.types["OrderItem"]) == DescribedRequest(
        "GetItem", None, "PK = ORDER#{order_id} AND SK = PRODUCT#{product_id}"
    )
    activity = key_request(commerce, commerce.types["UserActivity"])
    assert activity.operation == "BatchGetItem"
    assert activity.keys.endswith("#SHARD{shard} AND SK = ACTIVITY#{timestamp}, shard 0 to 4")


class Sent:
    """Remembers the first query that a list sends."""

    def __init__(self, graph: Graph) -> None:
        self.table = graph.table
        self.queries: list[Query] = []

    async def send(self, request: Any, /) -> Any:
        self.queries.append(request)
        return Page([], 0, None, None)  # type: ignore[arg-type]  # nobody asks for the cost

    async def close(self) -> None:
        pass


def all_paths() -> list[Any]:
    return [pytest.param(graph, path, id=repr(path)) for graph in (commerce, rooms) for path in graph.paths]


@pytest.mark.parametrize(("graph", "path"), all_paths())
async def test_the_description_is_what_is_sent(graph: Graph, path: AccessPath) -> None:
    """The description would tell another story than the server's own requests."""
    store = Sent(graph)
    owner = tuple("7" for _ in path.owner.identity) if path.owner else None
    required = {argument.name: "7" for argument in path.required}
    await read(store, bind(graph, path, owner, required), Extent(1))
    [wire] = render(store.queries[0], graph.table)
    described = path_request(graph, path)

    def filled(text: str | None) -> str | None:
        return None if text is None else re.sub(r"{\w+}", "7", text.replace("{shard}", "0"))

    def written(name: str) -> str | None:
        text = wire.body.get(name)
        for short, attribute in wire.body["ExpressionAttributeNames"].items():
            text = text and re.sub(rf"{short}\b", attribute, text)
        for short, typed in wire.body["ExpressionAttributeValues"].items():
            text = text and re.sub(rf"{short}\b", typed["S"], text)
        return text

    assert described.operation == wire.operation
    assert described.index == wire.body.get("IndexName")
    assert filled(described.keys) == written("KeyConditionExpression")
    assert filled(described.filter) == written("FilterExpression")
    assert described.times == len(store.queries)
