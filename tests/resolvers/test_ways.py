"""`path` and `paths`: what the search for how one node is connected to another reads, and what it refuses."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

import networkx
import pytest

from keygraph import ID, Graph, Index, Many, Table, edge, many, node, read, viewer
from keygraph.dynamo.items import Item
from keygraph.dynamo.store import BatchWrite
from keygraph.limits import Limits
from keygraph_resolvers import Service, build_schema
from keygraph_resolvers.naming.global_ids import global_id
from tests.conftest import MakeStore
from tests.resolvers.worlds import SECRET, World, world
from tests.schemas import schema_of
from tests.tracing import TracingStore

inverted = Index("inverted", "SK", "PK")


@node("PERSON#{name}")
class Person:
    name: ID
    age: int | None = None
    friends: Many[Friendship]
    member_of: Many[Membership]
    follows: Many[Follow]


@node("CLUB#{club_id}")
class Club:
    club_id: ID
    members: Many[Membership]


@edge("{person}", "FRIEND#{friend.name}", mirror=True)
class Friendship:
    person: Person
    friend: Person
    trust: int


@edge("{person}", "{club}")
class Membership:
    person: Person
    club: Club
    role: str


@edge("{follower}", "FOLLOWS#{followed.name}#{number}")
class Follow:
    """Nothing finds who follows somebody: the sort key has more than the person in it."""

    follower: Person
    followed: Person
    number: int


graph = Graph(
    Table("Ways", partition_key="PK", sort_key="SK", indexes=[inverted]),
    Person,
    Club,
    Friendship,
    Membership,
    Follow,
    store_key_fields=False,
    paths=True,
)
PERSON, CLUB = graph.types["Person"], graph.types["Club"]

DOCUMENT = """
query ($from: ID!, $to: ID!, $via: [ListName!]!, $most: Int = 6) {
  path(from: $from, to: $to, via: $via, maxLength: $most) {
    length
    nodes { id ... on Person { age } }
    edges {
      via
      node { id }
      edge {
        ... on PersonFriendsEdge { trust cursor node { id } }
        ... on PersonMemberOfEdge { role cursor node { id } }
        ... on ClubMembersEdge { role cursor node { id } }
        ... on PersonFollowsEdge { number cursor node { id } }
      }
    }
  }
  paths(from: $from, to: $to, via: $via, maxLength: $most, first: 100) { nodes { id } }
}
"""


def person_id(name: str) -> str:
    return global_id(PERSON, (name,))


def friendship(one: str, other: str) -> list[Item]:
    trust = trust_between(one, other)
    return [
        {"PK": f"PERSON#{here}", "SK": f"FRIEND#{there}", "trust": Decimal(trust)}
        for here, there in ((one, other), (other, one))
    ]


def trust_between(one: str, other: str) -> int:
    return sum(map(ord, one + other))


def membership(name: str, club: str) -> Item:
    return {"PK": f"PERSON#{name}", "SK": f"CLUB#{club}", "role": f"{name} in {club}"}


async def served(make_store: MakeStore, items: Any) -> World:
    tracer = TracingStore(await make_store(graph.table))
    await tracer.store.send(BatchWrite(puts=tuple(items)))
    return World(graph, tracer, Service(schema_of(graph), tracer, secret=SECRET))


async def test_both_ends_are_searched_and_each_partition_is_read_once(make_store: MakeStore) -> None:
    tree = networkx.balanced_tree(6, 3)
    items = [item for one, other in tree.edges for item in friendship(f"p{one}", f"p{other}")]
    world = await served(make_store, items)
    leaves = [one for one in tree if tree.degree(one) == 1]
    ends = {"from": person_id(f"p{leaves[0]}"), "to": person_id(f"p{leaves[-1]}")}
    asked = "query ($from: ID!, $to: ID!) { path(from: $from, to: $to, via: [PERSON_FRIENDS]) { length } }"
    world.forget()
    assert (await world.ask(asked, **ends))["path"] == {"length": 6}
    partitions = [each.partition for each in world.tracer.requests]  # type: ignore[attr-defined]
    assert len(partitions) == len({*partitions}) <= 2 * (1 + 1 + 6)
    assert "BatchGetItem" not in world.operations


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"via": ["PERSON_FRIENDS"], "most": 21}, "maxLength must be between 0 and 20"),
        ({"via": ["PERSON_FRIENDS", "CLUB_MEMBERS"], "from": "x"}, "from: 'x' is not a global id"),
    ],
)
async def test_what_cannot_be_asked(make_store: MakeStore, changed: dict[str, Any], message: str) -> None:
    world = await served(make_store, ())
    [(code, told), *_] = await world.errors(
        DOCUMENT, **{"from": person_id("a"), "to": person_id("b"), **changed}
    )
    assert code == "BAD_USER_INPUT"
    assert told.startswith(message)


async def test_the_edges_that_are_read_are_explained(make_store: MakeStore) -> None:
    world = await served(make_store, ())
    asked = """{ path(from: "a", to: "b", via: [PERSON_FRIENDS]) {
      edges { SHOWN } } }"""
    for shown, wanted in (("via", []), ("edge { ... on PersonFriendsEdge { trust } }", [("Friendship",)])):
        [step] = world.service.explain(asked.replace("SHOWN", shown)).steps
        assert [each.types for each in step.steps if each.kind == "get node"] == wanted


async def test_a_key_is_as_good_as_an_id_where_the_lists_tell_the_type(make_store: MakeStore) -> None:
    world = await served(make_store, [*friendship("ann", "ben"), membership("ben", "c1")])
    asked = "query ($from: ID!, $to: ID!, $via: [ListName!]!) { path(from: $from, to: $to, via: $via) { length } }"
    for start, end, via, length in (
        ("ann", "ben", ["PERSON_FRIENDS"], 1),
        ("ann", person_id("ben"), ["PERSON_FRIENDS"], 1),
        ("ann", global_id(CLUB, ("c1",)), ["PERSON_FRIENDS", "PERSON_MEMBER_OF"], 2),
    ):
        found = await world.ask(asked, **{"from": start, "to": end, "via": via})
        assert found["path"] == {"length": length}


async def test_no_answer_within_the_budget_is_an_error(make_store: MakeStore) -> None:
    items = [item for number in range(40) for item in friendship(f"p{number}", f"p{number + 1}")]
    world = await served(make_store, items)
    small = Service(schema_of(graph), world.tracer, secret=SECRET, limits=Limits(read_budget=20))
    asked = """query ($from: ID!, $to: ID!) {
      path(from: $from, to: $to, via: [PERSON_FRIENDS], maxLength: 20) { length }
    }"""
    answer = await small.execute(asked, {"from": person_id("p0"), "to": person_id("p18")})
    assert answer["data"]["path"] is None
    assert "within 20 items" in answer["errors"][0]["message"]
    assert (await world.ask(asked, **{"from": person_id("p0"), "to": person_id("p18")}))["path"][
        "length"
    ] == 18


@node("USER#{name}", access=[read(where={"is_hidden": False})])
class User:
    name: ID
    is_hidden: bool
    knows: Many[Knows]


@edge("{user}", "KNOWS#{other.name}", mirror=True, access=[read(), read(where={"user": viewer("sub")})])
class Knows:
    user: User
    other: User


guarded = Graph(Table("Guarded", partition_key="PK", sort_key="SK"), User, Knows, paths=True)


async def test_what_the_viewer_does_not_see_is_on_no_way(make_store: MakeStore) -> None:
    pairs = [("a", "h"), ("h", "d"), ("a", "b"), ("b", "c"), ("c", "d")]
    items: list[Item] = [
        {"PK": f"USER#{one}", "SK": f"KNOWS#{other}", "user_name": one, "other_name": other}
        for pair in pairs
        for one, other in (pair, pair[::-1])
    ]
    items += [
        {"PK": f"USER#{name}", "SK": f"USER#{name}", "name": name, "is_hidden": name == "h"}
        for name in "abcdh"
    ]
    store = await make_store(guarded.table, *items)
    service = Service(build_schema(guarded), store, secret=SECRET)
    asked = """query ($from: ID!, $to: ID!) {
      path(from: $from, to: $to, via: [USER_KNOWS]) { nodes { ... on User { name } } }
    }"""
    ids = {name: global_id(guarded.types["User"], (name,)) for name in "adh"}
    answer = await service.execute(asked, {"from": ids["a"], "to": ids["d"]})
    assert [each["name"] for each in answer["data"]["path"]["nodes"]] == ["a", "b", "c", "d"]
    for start, end in (("a", "h"), ("h", "a"), ("h", "h")):
        answer = await service.execute(asked, {"from": ids[start], "to": ids[end]})
        assert answer == {"data": {"path": None}}


bare = Index("GSI1", "GSI1PK", "GSI1SK", projection="KEYS_ONLY")


@node("STOP#{name}")
class Stop:
    name: ID
    trains: Many[Train] = many(at="one")
    buses: Many[Bus] = many(at="one")


@edge("{one}", "TO#{other.name}", bare("{other}", "FROM#{one.name}"))
class Train:
    one: Stop
    other: Stop


@edge("{one}", "TO#{other.name}", bare("{other}", "FROM#{one.name}"))
class Bus:
    one: Stop
    other: Stop


stops = Graph(
    Table("Stops", partition_key="PK", sort_key="SK", indexes=[bare]),
    *(Stop, Train, Bus),
    type_attribute="type",
    paths=True,
)


async def test_an_index_that_does_not_tell_the_edges_types_is_not_followed_back(
    make_store: MakeStore,
) -> None:
    """From `a` there are two trains, so that the search would go on from `d`, where a bus looks like a train."""
    made = world(stops, await make_store(stops.table))
    edges = [("ab", "Train"), ("ax", "Train"), ("bc", "Bus"), ("cd", "Train")]
    await made.put(
        *(
            {"PK": f"STOP#{one}", "SK": f"TO#{other}", "one_name": one, "other_name": other, "type": kind}
            | {"GSI1PK": f"STOP#{other}", "GSI1SK": f"FROM#{one}"}
            for (one, other), kind in edges
        )
    )
    for via, path in (("STOP_TRAINS", None), ("STOP_TRAINS, STOP_BUSES", {"length": 3})):
        asked = f'{{ path(from: "a", to: "d", via: [{via}]) {{ length }} }}'
        assert await made.ask(asked) == {"path": path}
