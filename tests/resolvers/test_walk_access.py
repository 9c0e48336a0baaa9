"""Walks of somebody who may not see everything: what is hidden is as if it were not there, and so is what lies behind it alone."""

from __future__ import annotations

from typing import Any

import pytest

from keygraph import ID, Graph, Many, Ranked, Reach, Table, edge, many, node, ranked, reach, read, viewer
from keygraph.dynamo.items import Item
from keygraph.dynamo.store import BatchGet
from keygraph_resolvers.naming.global_ids import global_id
from tests.conftest import MakeStore
from tests.resolvers.test_access import Shop
from tests.resolvers.worlds import world

ME = viewer("sub")
STAFF = read(role="staff")


@node("ROOM#{room_id}", access=[read(where={"open": True}), read(where={"guests": {"guest": ME}}), STAFF])
class Room:
    room_id: ID
    open: bool = False
    doors_open: bool = True

    doors: Many[Door] = many(at="room", access=[read(where={"doors_open": True}), STAFF])
    guests: Many[Guest] = many()
    rooms: Reach[Room] = reach("doors", depth=5)
    near: Ranked[Room] = ranked("doors", "doors", weight="width")


@edge("{room}", "DOOR#{other.room_id}", access=[read(where={"secret": False}), STAFF])
class Door:
    room: Room
    other: Room
    secret: bool = False
    width: int = 1


@node("PERSON#{person_id}", access=[read()])
class Person:
    person_id: ID


@edge("{room}", "GUEST#{guest.person_id}", access=[read()])
class Guest:
    room: Room
    guest: Person


house = Graph(
    Table("House", partition_key="PK", sort_key="SK"), Room, Door, Person, Guest, type_attribute="type"
)


def room(name: str, **values: Any) -> Item:
    return {
        "PK": f"ROOM#{name}",
        "SK": f"ROOM#{name}",
        "type": "Room",
        "room_id": name,
        "open": True,
        **values,
    }


def door(one: str, other: str, **values: Any) -> Item:
    return {"PK": f"ROOM#{one}", "SK": f"DOOR#{other}", "type": "Door", **values}


@pytest.fixture
async def shop(make_store: MakeStore) -> Shop:
    """a leads to b and c; behind the closed b lies d, behind c by a secret door e, and behind f, which nobody leaves, g."""
    made = world(house, await make_store(house.table))
    rooms = [room(name) for name in "acdeg"] + [room("b", open=False), room("f", doors_open=False)]
    doors = [door(*pair) for pair in ("ab", "ac", "bd", "cf", "fg")] + [door("c", "e", secret=True)]
    guest = {"PK": "ROOM#b", "SK": "GUEST#eva", "type": "Guest"}
    await made.put(*rooms, *doors, guest)
    return Shop(made)


ROOMS = '{ room(roomId: "a") { rooms { totalCount nodes { roomId } edges { distance } } near { edges { score } nodes { roomId } } } }'


@pytest.mark.parametrize(
    ("claims", "rooms", "near"),
    [
        ({"sub": "max"}, ["c", "f"], ["f"]),
        # She is a guest of b, and so goes on from there.
        ({"sub": "eva"}, ["b", "c", "d", "f"], ["d", "f"]),
        ({"sub": "ann", "roles": ["staff"]}, ["b", "c", "d", "e", "f", "g"], ["d", "e", "f"]),
    ],
)
async def test_hidden_rooms(shop: Shop, claims: Any, rooms: list[str], near: list[str]) -> None:
    """Somebody would come through a room, a door or a list that they may not see."""
    found = (await shop.ask(ROOMS, claims))["room"]
    assert [each["roomId"] for each in found["rooms"]["nodes"]] == rooms
    assert found["rooms"]["totalCount"] == len(rooms)
    assert [each["roomId"] for each in found["near"]["nodes"]] == near


async def test_a_list_that_the_viewer_may_not_read(shop: Shop) -> None:
    """Where the walk begins at a list that the viewer may not read, they would be told that there is nothing."""
    errors = await shop.errors('{ room(roomId: "f") { rooms { nodes { roomId } } } }', {"sub": "max"})
    assert errors == [(["room", "rooms", "nodes"], "FORBIDDEN")]


@pytest.mark.parametrize("selected", ["totalCount", "nodes { roomId }", "__typename"])
async def test_what_is_in_common_with_a_list_that_the_viewer_may_not_read(shop: Shop, selected: str) -> None:
    """It would be a list without a count, instead of one that is refused; or nothing would be said."""
    other = global_id(house.types["Room"], ("f",))
    asked = f'{{ room(roomId: "c") {{ doors(alsoOf: ["{other}"]) {{ {selected} }} }} }}'
    assert await shop.errors(asked, {"sub": "max"}) == [(["room", "doors"], "FORBIDDEN")]


async def test_the_bound_holds(shop: Shop) -> None:
    """What decides what somebody sees would cost more than the operation may."""
    for claims in ({"sub": "max"}, {"sub": "eva"}, {"roles": ["staff"]}):
        answer = await shop.world.service.execute(ROOMS, {}, with_cost=True, viewer=claims)
        bound, sent = answer["extensions"]["cost"]["bound"], shop.world.tracer.requests
        assert len(sent) <= bound["requests"]
        shop.world.forget()


# --- What other items alone decide ----------------------------------------------------------------------


@node("TEAM#{team_id}", access=[read(where={"members": {"member": ME}}), read(role="staff", fields=["name"])])
class Team:
    team_id: ID
    name: str

    teams: Many[Below] = many(at="team")
    members: Many[Member] = many()
    below: Reach[Team] = reach("teams", depth=5)


@edge("{team}", "BELOW#{other.team_id}", access=[read()])
class Below:
    team: Team
    other: Team


@edge("{team}", "MEMBER#{member.person_id}", access=[read()])
class Member:
    team: Team
    member: Person


club = Graph(
    Table("Club", partition_key="PK", sort_key="SK"),
    Team,
    Below,
    Person,
    Member,
    type_attribute="type",
    paths=True,
)


async def test_no_item_is_read_where_other_items_decide(make_store: MakeStore) -> None:
    """A node that only edges name would be there as the far end of a list, and not on a walk; its item was read for that."""
    made = world(club, await make_store(club.table))
    shop = Shop(made)
    teams = [
        {"PK": f"TEAM#{each}", "SK": f"TEAM#{each}", "type": "Team", "team_id": each, "name": each}
        for each in "acd"
    ]
    below = [
        {"PK": f"TEAM#{one}", "SK": f"BELOW#{other}", "type": "Below"} for one, other in ("ab", "bc", "ad")
    ]
    members = [{"PK": f"TEAM#{each}", "SK": "MEMBER#max", "type": "Member"} for each in "abc"]
    await made.put(*teams, *below, *members)
    asked = '{ team(teamId: "a") { teams { nodes { teamId } } below { nodes { teamId } totalCount } } }'
    found = (await shop.ask(asked, {"sub": "max"}))["team"]
    assert found["teams"] == {"nodes": [{"teamId": "b"}]}
    assert found["below"] == {"nodes": [{"teamId": "b"}, {"teamId": "c"}], "totalCount": 2}
    read_keys = [
        key for request in made.tracer.requests if isinstance(request, BatchGet) for key in request.keys
    ]
    assert ("TEAM#a", "TEAM#a") in read_keys
    assert not {("TEAM#b", "TEAM#b"), ("TEAM#c", "TEAM#c")} & {*read_keys}

    b = global_id(club.types["Team"], ("b",))
    asked = f'{{ path(from: "{b}", to: "{b}", via: [TEAM_TEAMS]) {{ length }} }}'
    assert await shop.ask(asked, {"sub": "max"}) == {"path": {"length": 0}}


async def test_what_is_in_common_with_a_node_that_only_edges_name(make_store: MakeStore) -> None:
    """Its item was read where other items alone decide, and without one it had nothing in common with any other."""
    made = world(club, await make_store(club.table))
    own = {"PK": "TEAM#a", "SK": "TEAM#a", "type": "Team", "team_id": "a", "name": "a"}
    below = [
        {"PK": f"TEAM#{one}", "SK": f"BELOW#{other}", "type": "Below"}
        for one, other in ("ac", "ad", "bc", "be", "xc")
    ]
    members = [{"PK": f"TEAM#{each}", "SK": "MEMBER#max", "type": "Member"} for each in "abcde"]
    await made.put(own, *below, *members)
    for other, found in (("b", ["c"]), ("x", [])):
        named = global_id(club.types["Team"], (other,))
        asked = (
            f'{{ team(teamId: "a") {{ teams(alsoOf: ["{named}"]) {{ nodes {{ teamId }} totalCount }} }} }}'
        )
        shown = (await Shop(made).ask(asked, {"sub": "max"}))["team"]["teams"]
        assert shown == {"nodes": [{"teamId": each} for each in found], "totalCount": len(found)}


# --- Mirrored edges -------------------------------------------------------------------------------------


@node("SOMEBODY#{name}", access=[read()])
class Somebody:
    name: ID

    friends: Many[Friends] = many(at="one")


@edge("{one}", "FRIEND#{other.name}", mirror=True, access=[read(where={"one": viewer("of")})])
class Friends:
    one: Somebody
    other: Somebody


friends = Graph(
    Table("Friends", partition_key="PK", sort_key="SK"), Somebody, Friends, type_attribute="type", paths=True
)


@pytest.mark.parametrize(("claim", "length"), [(["a", "c"], None), (["a", "b"], {"length": 2})])
async def test_a_path_along_mirrored_edges_of_which_one_item_is_hidden(
    make_store: MakeStore, claim: list[str], length: Any
) -> None:
    """The search from the far end read the other item of an edge, and so found a path along one that the viewer does not see."""
    made = world(friends, await make_store(friends.table))
    await made.put(
        *({"PK": f"SOMEBODY#{each}", "SK": f"SOMEBODY#{each}", "type": "Somebody"} for each in "abc"),
        *(
            {"PK": f"SOMEBODY#{one}", "SK": f"FRIEND#{other}", "type": "Friends"}
            for one, other in ("ab", "ba", "bc", "cb", "ax", "ay", "az")
        ),
    )
    start, end = (global_id(friends.types["Somebody"], (each,)) for each in "ac")
    asked = f'{{ path(from: "{start}", to: "{end}", via: [SOMEBODY_FRIENDS]) {{ length }} }}'
    assert await Shop(made).ask(asked, {"of": claim}) == {"path": length}
