"""Items that are looked up by their keys, and filtered: one batch for all of them."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

import pytest

from keygraph import ID, Format, Graph, Index, Many, Table, edge, many, node, record, stored
from keygraph.dynamo.items import Item
from keygraph_resolvers.naming.global_ids import global_id
from tests.conftest import MakeStore
from tests.resolvers.worlds import World, world

by_team = Index("by-team", "TeamKey", "Since")
by_child = Index("by-child", "ChildKey", "PK")


@node("TEAM#{team_id}", item=False)
class Team:
    team_id: ID
    members: Many[Membership]
    games: Many[Game]


@node("PLAYER#{player_id}", item=False)
class Player:
    player_id: ID
    teams: Many[Membership]
    friends: Many[Friendship]


@edge("{player}", "{team}", by_team("{team}", "{since}"))
class Membership:
    player: Player
    team: Team
    since: str
    shirt: int
    note: str | None


@edge("{one}", "FRIEND#{other.player_id}", mirror=True)
class Friendship:
    one: Player
    other: Player
    years: int


@record("{team}", "GAME#{title:lower}")
class Game:
    team: Team
    title: str
    goals: int


@node("{owner}", "PERSON#{person_id}", item=False)
class Person:
    owner: ID
    person_id: ID
    children: Many[Parenthood] = many(at="parent")
    parents: Many[Parenthood] = many(at="child")


@edge(
    "{parent.owner}",
    "PERSON#{parent.person_id}#CHILD#{child.person_id}",
    by_child("PERSON#{child.person_id}"),
)
class Parenthood:
    parent: Person = stored(owner="UserId", person_id="ParentId")
    child: Person = stored(owner="UserId", person_id="ChildId")


graph = Graph(
    Table("League", partition_key="PK", sort_key="SK", indexes=[by_team, by_child]),
    Team,
    Player,
    Membership,
    Friendship,
    Game,
    Person,
    Parenthood,
    store_key_fields=False,
    formats={"lower": Format(str.lower)},
)


def membership(player: str, team: str, shirt: int) -> Item:
    key = {"PK": f"PLAYER#{player}", "SK": f"TEAM#{team}", "TeamKey": f"TEAM#{team}"}
    return {**key, "Since": f"200{shirt % 3}", "shirt": Decimal(shirt), "note": "x"}


def friendship(one: str, other: str, years: int) -> list[Item]:
    both = ((one, other), (other, one))
    return [
        {"PK": f"PLAYER#{a}", "SK": f"FRIEND#{b}", "years": Decimal(years), "one": a, "other": b}
        for a, b in both
    ]


def game(team: str, title: str, goals: int) -> Item:
    return {
        "PK": f"TEAM#{team}",
        "SK": f"GAME#{title.lower()}",
        "title": title,
        "goals": Decimal(goals),
    }


CHILD: Item = {
    "PK": "u1",
    "SK": "PERSON#1#CHILD#2",
    "ChildKey": "PERSON#2",
    "UserId": "u1",
    "ParentId": "1",
    "ChildId": "2",
}


@pytest.fixture
async def league(make_store: MakeStore) -> World:
    """Thirty players of two teams, each a friend of the next ones; the second team has a few of them."""
    found = world(graph, await make_store(graph.table))
    players = [f"{number:02}" for number in range(30)]
    items = [membership(player, "red", number) for number, player in enumerate(players)]
    items += [membership(player, "blue", number) for number, player in enumerate(players[:6])]
    for number, player in enumerate(players[1:], 1):
        items += friendship("00", player, number)
    items += [game(team, "Final", number) for number, team in enumerate(("red", "blue", "green"))]
    await found.put(*items, CHILD)
    return found


@pytest.mark.parametrize(
    ("document", "answer", "operations"),
    [
        (
            'team(teamId: "red") { members(to: ["01", "02", "05", "29"], where: { shirt: { gte: 3 } })'
            " { totalCount nodes { playerId } } }",
            {"members": {"totalCount": 2, "nodes": [{"playerId": "05"}, {"playerId": "29"}]}},
            {"BatchGetItem": 1},
        ),
        (
            'team(teamId: "red") { members(to: ["01", "02", "05"], where: { since: { eq: "2002" } })'
            " { aggregate { max(field: SHIRT) } } }",
            {"members": {"aggregate": {"max": 5}}},
            {"BatchGetItem": 1},
        ),
        (
            'player(playerId: "00") { friends(to: ["03", "04", "05"], where: { years: { ne: 4 } })'
            " { nodes { playerId } } }",
            {"friends": {"nodes": [{"playerId": "03"}, {"playerId": "05"}]}},
            {"BatchGetItem": 1},
        ),
        (
            'team(teamId: "red") { games(title: { eq: "Final" }, where: { goals: { lt: 1 } }) { nodes { title } }'
            ' no: games(title: { eq: "Final" }, where: { goals: { gt: 0 } }) { nodes { title } } }',
            {"games": {"nodes": [{"title": "Final"}]}, "no": {"nodes": []}},
            {"GetItem": 1},
        ),
        (
            'team(teamId: "red") { members(alsoOf: ["blue"], where: { shirt: { gt: 2, lt: 5 } })'
            " { totalCount nodes { playerId } } }",
            {"members": {"totalCount": 2, "nodes": [{"playerId": "03"}, {"playerId": "04"}]}},
            {"Query": 2},
        ),
    ],
)
@pytest.mark.parametrize("engine", ["sqlite"])
async def test_a_filter_costs_no_request(
    league: World, document: str, answer: Any, operations: dict[str, int]
) -> None:
    league.forget()
    [found] = (await league.ask(f"{{ {document} }}")).values()
    assert (found, league.operations) == (answer, operations)


async def test_a_whole_key_with_a_filter_is_one_batch_for_all_owners(league: World) -> None:
    league.forget()
    found = await league.ask(
        """query ($final: String) { player(playerId: "01") { teams(first: 9) { nodes {
        games(title: { eq: $final }, where: { goals: { gte: 1 } }) { nodes { goals } } } } } }""",
        final="FINAL",
    )
    games = [each["games"]["nodes"] for each in found["player"]["teams"]["nodes"]]
    assert games == [[{"goals": 1}], []]
    assert league.operations == {"Query": 1, "BatchGetItem": 1}


@pytest.mark.parametrize("where", ["", "where: { childId: { exists: true } }"])
async def test_nodes_with_the_same_key_have_an_edge_once(league: World, where: str) -> None:
    to = [global_id(graph.types["Person"], (owner, "2")) for owner in ("u1", "u2", "u3")]
    asked = f"children(to: $to {where}) {{ totalCount nodes {{ owner personId }} }}"
    found = await league.ask(
        f'query ($to: [ID!]) {{ person(owner: "u1", personId: "1") {{ {asked} }} }}', to=to
    )
    assert found["person"]["children"] == {"totalCount": 1, "nodes": [{"owner": "u1", "personId": "2"}]}
