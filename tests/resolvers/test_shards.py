"""Nodes whose partition is spread over shards: which of them holds the item, and what if it is not one."""

from __future__ import annotations

from typing import Any

import pytest

from keygraph import ID, Graph, Many, Table, edge, node
from keygraph.dynamo.items import Item
from keygraph_resolvers.naming.global_ids import global_id
from tests.conftest import MakeStore
from tests.resolvers.worlds import World, world


@node("ROOM#{room_id}#{shard}", "ROOM", shards=3)
class Room:
    room_id: ID
    name: str


@node("HOUSE#{house_id}", "HOUSE")
class House:
    house_id: ID
    rooms: Many[Has]


@edge("{house}", "ROOM#{room.room_id}")
class Has:
    house: House
    room: Room


houses = Graph(Table("Houses", partition_key="PK", sort_key="SK"), Room, House, Has, type_attribute="kind")


def room_item(room: str, shard: int, name: str, kind: str = "Room") -> Item:
    return {"PK": f"ROOM#{room}#{shard}", "SK": "ROOM", "kind": kind, "name": name}


@pytest.fixture
async def built(make_store: MakeStore) -> World:
    """A house with three rooms: one in the last shard, one behind an item of another type, one in two shards."""
    made = world(houses, await make_store(houses.table))
    await made.put(
        room_item("a", 2, "Attic"),
        room_item("b", 0, "Ghost", kind="Ghost"),
        room_item("b", 1, "Bath"),
        room_item("c", 0, "Cellar"),
        room_item("c", 2, "Cellar, too"),
        *({"PK": "HOUSE#h", "SK": f"ROOM#{room}", "kind": "Has"} for room in "abcd"),
    )
    return made


TWICE = "Room: two items, in different shards, have the key of this one"


async def test_the_item_of_a_node_is_looked_for_in_all_shards(built: World) -> None:
    """A node would be missing because something else has its key in another shard."""
    found = await built.ask(
        '{ a: room(roomId: "a") { name } b: room(roomId: "b") { name } d: room(roomId: "d") { name } }'
    )
    assert found == {"a": {"name": "Attic"}, "b": {"name": "Bath"}, "d": None}


async def test_two_items_of_one_identity(built: World) -> None:
    """One of the two would be answered without a word, now the one, now the other."""
    document = """query ($ids: [ID!]!) { room(roomId: "c") { name } nodes(ids: $ids) { ... on Room { name } }
      house(houseId: "h") { rooms { edges { node { roomId name } } } } }"""
    ids = [global_id(houses.types["Room"], (room,)) for room in "ac"]
    await built.put({"PK": "HOUSE#h", "SK": "HOUSE", "kind": "House"})
    answer: dict[str, Any] = await built.service.execute(document, {"ids": ids})
    assert answer["data"] == {
        "room": None,
        "nodes": [{"name": "Attic"}, None],
        "house": {
            "rooms": {
                "edges": [
                    {"node": {"roomId": "a", "name": "Attic"}},
                    {"node": {"roomId": "b", "name": "Bath"}},
                    {"node": None},
                    {"node": None},
                ]
            }
        },
    }
    assert {(error["extensions"]["code"], error["message"]) for error in answer["errors"]} == {
        ("CORRUPT_ITEM", TWICE)
    }
    assert len(answer["errors"]) == 3
