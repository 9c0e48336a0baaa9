"""Walks of somebody who may not see everything: what is hidden is as if it were not there, and so is what lies behind it alone."""

from __future__ import annotations

from decimal import Decimal
from itertools import permutations
from random import Random
from typing import Any

import networkx
import pytest

from keygraph import (
    ID,
    Graph,
    Index,
    Many,
    Ranked,
    Reach,
    Table,
    edge,
    fields,
    many,
    node,
    ranked,
    reach,
    read,
    stored,
    viewer,
)
from keygraph.dynamo.items import Item
from keygraph.dynamo.store import BatchGet
from keygraph_resolvers import OperationRequest
from keygraph_resolvers.naming.global_ids import global_id
from tests.conftest import MakeStore
from tests.resolvers.test_access import Shop
from tests.resolvers.worlds import world

ME = viewer("sub")
STAFF = read(role="staff")


SIGNED_IN = read(where={"signed_in": viewer("auth_time")})


@node(
    "ROOM#{room_id}",
    access=[read(where={"open": True}), read(where={"guests": {"guest": ME}}), SIGNED_IN, STAFF],
)
class Room:
    room_id: ID
    open: bool = False
    signed_in: int | None = None
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
    rooms = [room(name) for name in "acdeg"] + [
        room("b", open=False, signed_in=Decimal(7)),
        room("f", doors_open=False),
    ]
    doors = [door(*pair) for pair in ("ab", "ac", "bd", "cf", "fg")] + [door("c", "e", secret=True)]
    guest = {"PK": "ROOM#b", "SK": "GUEST#eva", "type": "Guest"}
    made = world(house, await make_store(house.table, *rooms, *doors, guest))
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
    found = (await shop.ask(ROOMS, claims))["room"]
    assert [each["roomId"] for each in found["rooms"]["nodes"]] == rooms
    assert found["rooms"]["totalCount"] == len(rooms)
    assert [each["roomId"] for each in found["near"]["nodes"]] == near


async def test_a_walk_does_not_continue_where_somebody_with_other_rights_was(shop: Shop) -> None:
    """The cursor of staff has found d, which lies behind the hidden b, and h is behind d."""
    await shop.world.put(room("h"), door("d", "h"))
    asked = '{ room(roomId: "a") { rooms(%s) { nodes { roomId } pageInfo { endCursor } } } }'
    staff = {"sub": "max", "roles": ["staff"]}

    async def page(arguments: str, claims: Any) -> tuple[list[str], str]:
        found = (await shop.ask(asked % arguments, claims))["room"]["rooms"]
        return [each["roomId"] for each in found["nodes"]], found["pageInfo"]["endCursor"]

    first, cursor = await page("first: 3", {**staff, "exp": 1})
    assert first == ["b", "c", "d"]
    assert (await page(f'after: "{cursor}"', {**staff, "exp": 2}))[0] == ["e", "f", "h", "g"]
    for claims in ({"sub": "max"}, {"sub": "max", "roles": []}):
        assert (await page(f'after: "{cursor}"', claims))[0] == ["c", "f"]
    signed_in, later = ({"sub": "max", "auth_time": at} for at in (7, 8))
    first, cursor = await page("first: 3", signed_in)
    assert first == ["b", "c", "d"]
    assert (await page(f'after: "{cursor}"', signed_in))[0] == ["f", "h"]
    assert (await page(f'after: "{cursor}"', later))[0] == ["c", "f"]
    cursor = (await page("first: 1", {"sub": "max", "of": "other"}))[1]
    assert (await page(f'after: "{cursor}"', {"sub": "max", "of": "other"}))[0] == ["f"]
    assert (await page(f'after: "{cursor}"', {"sub": "max"}))[0] == ["c", "f"]


async def test_a_list_that_the_viewer_may_not_read(shop: Shop) -> None:
    errors = await shop.errors('{ room(roomId: "f") { rooms { nodes { roomId } } } }', {"sub": "max"})
    assert errors == [(["room", "rooms", "nodes"], "FORBIDDEN")]


@pytest.mark.parametrize("selected", ["totalCount", "nodes { roomId }", "__typename"])
async def test_what_is_in_common_with_a_list_that_the_viewer_may_not_read(shop: Shop, selected: str) -> None:
    other = global_id(house.types["Room"], ("f",))
    asked = f'{{ room(roomId: "c") {{ doors(alsoOf: ["{other}"]) {{ {selected} }} }} }}'
    assert await shop.errors(asked, {"sub": "max"}) == [(["room", "doors"], "FORBIDDEN")]


async def test_the_bound_holds(shop: Shop) -> None:
    for claims in ({"sub": "max"}, {"sub": "eva"}, {"roles": ["staff"]}):
        answer = await shop.world.service.execute(OperationRequest(ROOMS, {}, with_cost=True, viewer=claims))
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
    own = {"PK": "TEAM#a", "SK": "TEAM#a", "type": "Team", "team_id": "a", "name": "a"}
    below = [
        {"PK": f"TEAM#{one}", "SK": f"BELOW#{other}", "type": "Below"}
        for one, other in ("ac", "ad", "bc", "be", "xc")
    ]
    members = [{"PK": f"TEAM#{each}", "SK": "MEMBER#max", "type": "Member"} for each in "abcde"]
    made = world(club, await make_store(club.table, own, *below, *members))
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


backward, bare = Index("GSI1", "GSI1PK", "GSI1SK"), Index("GSI2", "GSI2PK", "GSI2SK", projection="KEYS_ONLY")
OPEN = [read(where={"open": True})]
NOT_SECRET = [read(where={"secret": False})]


@node("HALL#{name}", access=NOT_SECRET)
class Hall:
    name: ID
    secret: bool = False
    open: bool = True
    gates: Many[Gate] = many(at="one", access=OPEN)
    stairs: Many[Stair] = many(at="one", access=OPEN)
    slides: Many[Slide] = many(at="one", access=OPEN)
    lifts: Many[Lift] = many(at="one", index=backward)


@fields
class Way:
    one: Hall
    other: Hall
    secret: bool = False


@edge("{one}", "GATE#{other.name}", mirror=True, access=NOT_SECRET)
class Gate(Way):
    """Found from both its ends."""


@edge("{one}", "STAIR#{other.name}", backward("{other}", "STAIR#{one.name}"), access=NOT_SECRET)
class Stair(Way):
    """Found from its other end by an index that has all of it."""


@edge("{one}", "SLIDE#{other.name}", bare("{other}", "SLIDE#{one.name}"), access=NOT_SECRET)
class Slide(Way):
    """Found from its other end by an index that does not say whether it is secret."""


@edge(
    "{one}",
    "LIFT#{other.name}",
    backward("{one}", "LIFT#{number?}"),
    bare("{other}", "LIFT#{one.name}"),
    access=[read()],
)
class Lift(Way):
    """The list has those with a number that the viewer may read, the other index all."""

    number: str | None = stored(default=None, access=NOT_SECRET)


halls = Graph(
    Table("Halls", partition_key="PK", sort_key="SK", indexes=[backward, bare]),
    Hall,
    Gate,
    Stair,
    Slide,
    Lift,
    paths=True,
)


def hall(name: str, **values: Any) -> Item:
    return {"PK": f"HALL#{name}", "SK": f"HALL#{name}", "name": name, **values}


def way(kind: str, one: str, other: str, **values: Any) -> Item:
    made = {"PK": f"HALL#{one}", "SK": f"{kind}#{other}", "one_name": one, "other_name": other, **values}
    index = {"STAIR": "GSI1", "SLIDE": "GSI2", "LIFT": "GSI2"}.get(kind)
    if index is not None:
        made |= {f"{index}PK": f"HALL#{other}", f"{index}SK": f"{kind}#{one}"}
    if "number" in values:
        made |= {"GSI1PK": f"HALL#{one}", "GSI1SK": f"LIFT#{values['number']}"}
    return made


@pytest.mark.parametrize(("closed", "path"), [("", 3), ("b", None), ("c", None), ("d", 3)])
async def test_a_path_follows_no_list_backwards_that_the_viewer_may_not_read(
    make_store: MakeStore, closed: str, path: int | None
) -> None:
    """From `a` there are two ways, so that the search goes on from `d`: its list is not followed, those of `b` and `c` are."""
    asked = world(halls, await make_store(halls.table))
    pairs = [pair for both in ("ab", "ax", "bc", "cd") for pair in (both, both[::-1])]
    await asked.put(*(hall(name, open=name != closed) for name in "abcdx"))
    await asked.put(*(way("GATE", *pair) for pair in pairs))
    found = await asked.ask('{ path(from: "a", to: "d", via: [HALL_GATES]) { length } }')
    assert found == {"path": path and {"length": path}}


@pytest.mark.parametrize("seed", range(24))
async def test_paths_are_those_along_the_lists_that_the_viewer_reads(
    seed: int, make_store: MakeStore
) -> None:
    """The oracle searches what the lists themselves show, in their direction."""
    random, asked, names = Random(seed), world(halls, await make_store(halls.table)), "abcdefgh"
    kinds = random.sample(["GATE", "STAIR", "SLIDE", "LIFT"], 1 + seed % 2)
    items = [hall(name, open=random.random() < 0.7, secret=random.random() < 0.1) for name in names]
    for _ in range(16):
        kind, pair, secret = random.choice(kinds), random.sample(names, 2), random.random() < 0.2
        number = {"number": pair[1]} if kind == "LIFT" and random.random() < 0.7 else {}
        items.append(way(kind, *pair, secret=secret, **number))
        items += [way(kind, *pair[::-1], secret=secret)] if kind == "GATE" else []
    await asked.put(*{(item["PK"], item["SK"]): item for item in items}.values())
    shown = " ".join(f"{kind.lower()}s(first: 100) {{ nodes {{ name }} }}" for kind in kinds)
    of_each = " ".join(f'{name}: hall(name: "{name}") {{ {shown} }}' for name in names)
    halls_shown = (await asked.service.execute(f"{{ {of_each} }}"))["data"]
    drawn = networkx.DiGraph()
    for name in filter(halls_shown.get, names):
        drawn.add_node(name)
        followed = [each["nodes"] for each in halls_shown[name].values() if each]
        drawn.add_edges_from((name, each["name"]) for nodes in followed for each in nodes if each)
    document = """query ($from: ID!, $to: ID!, $via: [ListName!]!) {
      path(from: $from, to: $to, via: $via, maxLength: 10) { length }
      paths(from: $from, to: $to, via: $via, maxLength: 10, first: 100) { nodes { ... on Hall { name } } } }"""
    for start, end in random.sample([*permutations(names, 2)], 28):
        variables = {"from": start, "to": end, "via": [f"HALL_{kind}S" for kind in kinds]}
        asked.forget()
        found = await asked.service.execute(OperationRequest(document, variables, with_cost=True))
        assert len(asked.tracer.requests) <= found["extensions"]["cost"]["bound"]["requests"]
        if start in drawn and not any(halls_shown[start].values()):
            assert [each["extensions"]["code"] for each in found["errors"]] == ["FORBIDDEN"] * 2
            continue
        expected: list[list[str]] = []
        if {start, end} <= {*drawn} and networkx.has_path(drawn, start, end):
            expected = sorted(networkx.all_shortest_paths(drawn, start, end))
        assert sorted([each["name"] for each in path["nodes"]] for path in found["data"]["paths"]) == expected
        assert found["data"]["path"] == ({"length": len(expected[0]) - 1} if expected else None)
