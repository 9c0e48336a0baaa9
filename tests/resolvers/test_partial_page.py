"""Lists from an index that lacks what is selected: the items come while what their keys determine is read."""

from __future__ import annotations

from dataclasses import dataclass, field
from decimal import Decimal
from typing import Any

from keygraph import ID, Graph, Index, Many, One, Table, edge, many, node, one, read, viewer
from keygraph.dynamo.items import Item
from keygraph.dynamo.store import Answer, Batch, BatchGet, PassingStore, Request
from keygraph.dynamo.table import Key
from keygraph_resolvers import Observation, OperationRequest
from tests.conftest import MakeStore
from tests.resolvers.worlds import World, filled, world

keys = Index("keys", "GPK", "GSK", projection="KEYS_ONLY")


@node("TEAM#{team_id}", keys("TEAM", "{team_id}"))
class Team:
    team_id: ID
    name: str

    members: Many[Membership] = many()


@node("PLAYER#{player_id}")
class Player:
    player_id: ID
    name: str

    teams: Many[Membership] = many()
    team: One[Captaincy] = one()


@edge("{team}", "{player}", keys("{player}", "{team}"))
class Membership:
    team: Team
    player: Player
    shirt: int


@edge("{team}", "CAPTAIN#{player.player_id}", keys("{player}", "CAPTAIN#{team.team_id}"))
class Captaincy:
    team: Team
    player: Player
    since: int
    coach: Player
    """Its key is in the item alone."""


league = Graph(
    Table("League", partition_key="PK", sort_key="SK", indexes=[keys]), Team, Player, Membership, Captaincy
)


def keyed(pk: str, sk: str, gpk: str | None = None, gsk: str | None = None, **values: Any) -> Item:
    of_index = {} if gpk is None or gsk is None else {"GPK": gpk, "GSK": gsk}
    return {"PK": pk, "SK": sk, **of_index, **values}


def league_items() -> list[Item]:
    teams = [
        keyed(f"TEAM#{each}", f"TEAM#{each}", "TEAM", each, team_id=each, name=f"Team {each}")
        for each in "ab"
    ]
    players = [
        keyed(f"PLAYER#{each}", f"PLAYER#{each}", player_id=each, name=f"Player {each}") for each in "123"
    ]
    members = [
        keyed(f"TEAM#{team}", f"PLAYER#{player}", f"PLAYER#{player}", f"TEAM#{team}", shirt=Decimal(shirt))
        for team, player, shirt in (("a", "1", 7), ("a", "2", 9), ("b", "1", 10))
    ]
    captain = keyed("TEAM#a", "CAPTAIN#1", "PLAYER#1", "CAPTAIN#a", since=Decimal(2020), coach_id="3")
    return [*teams, *players, *members, captain]


async def cost_of(asked: World, document: str) -> tuple[Any, int, int]:
    """The data of an answer, and the requests and round trips that it took, which its bound and `explain` say too."""
    asked.forget()
    answer = await asked.service.execute(OperationRequest(document, {}, with_cost=True))
    assert "errors" not in answer, answer["errors"]
    cost = answer["extensions"]["cost"]
    assert cost["actual"]["requests"] == sum(asked.operations.values())
    assert cost["bound"] == {
        **cost["bound"],
        **{name: cost["actual"][name] for name in ("requests", "roundTrips")},
    }
    return answer["data"], cost["actual"]["requests"], cost["actual"]["roundTrips"]


teams = filled(league, league_items())


async def test_nodes_at_the_far_ends_come_with_the_edges(teams: World) -> None:
    document = '{ player(playerId: "1") { teams(first: 2) { edges { shirt node { name } } } } }'
    data, requests, round_trips = await cost_of(teams, document)
    assert data["player"]["teams"]["edges"] == [
        {"shirt": 7, "node": {"name": "Team a"}},
        {"shirt": 10, "node": {"name": "Team b"}},
    ]
    # The player, the list, and one BatchGetItem of the edges and the teams.
    assert (requests, round_trips) == (3, 2)
    document = '{ player(playerId: "1") { teams(first: 2) { edges { shirt } nodes { name } } } }'
    data, *taken = await cost_of(teams, document)
    assert data["player"]["teams"]["nodes"] == [{"name": "Team a"}, {"name": "Team b"}]
    assert taken == [3, 2]


async def test_lists_of_nodes_come_with_the_nodes(teams: World) -> None:
    for shown in (
        "nodes { name members(first: 2) { edges { shirt } } }",
        "edges { node { name members(first: 2) { edges { shirt } } } }",
    ):
        data, requests, round_trips = await cost_of(teams, f"{{ teams(first: 2) {{ {shown} }} }}")
        found = data["teams"]
        nodes = found["nodes"] if "nodes" in found else [each["node"] for each in found["edges"]]
        assert nodes == [
            {"name": "Team a", "members": {"edges": [{"shirt": 7}, {"shirt": 9}]}},
            {"name": "Team b", "members": {"edges": [{"shirt": 10}]}},
        ]
        assert (requests, round_trips) == (4, 2)


async def test_items_that_another_list_brought_whole_are_not_read_again(teams: World) -> None:
    document = """{ team(teamId: "a") { members(first: 2) { edges { shirt node { teams(first: 2) { edges { shirt } } } } } } }"""
    teams.forget()
    data = await teams.ask(document)
    shirts = [
        [each["shirt"] for each in edge["node"]["teams"]["edges"]]
        for edge in data["team"]["members"]["edges"]
    ]
    assert shirts == [[7, 10], [9]]
    read = [key for each in teams.tracer.requests if isinstance(each, BatchGet) for key in each.keys]
    # Of the edges of both players, only that to the other team has not come with the members.
    key_of = teams.graph.table.key_of
    assert [each for each in read if each != key_of(keyed("TEAM#a", "TEAM#a"))] == [
        key_of(keyed("TEAM#b", "PLAYER#1"))
    ]


async def test_an_only_neighbor(teams: World) -> None:
    """What the item names waits for the item, and what the key names does not."""
    document = '{ player(playerId: "1") { team { since node { name } coach { name } } } }'
    data, requests, round_trips = await cost_of(teams, document)
    assert data["player"]["team"] == {
        "since": 2020,
        "node": {"name": "Team a"},
        "coach": {"name": "Player 3"},
    }
    assert (requests, round_trips) == (4, 3)


@dataclass
class Behind(PassingStore):
    """A store whose indexes still have what the table has no longer, as DynamoDB's may for a moment."""

    gone: set[Key] = field(default_factory=set)

    async def send(self, request: Request[Answer], /) -> Answer:
        answer = await self.store.send(request)
        if isinstance(request, BatchGet) and isinstance(answer, Batch):
            for number, key in enumerate(request.keys):
                if key in self.gone:
                    answer.items[number] = None
        return answer


async def test_what_the_table_no_longer_has_is_left_out(make_store: MakeStore) -> None:
    store = await make_store(league.table)
    await world(league, store).put(*league_items())
    behind = Behind(store)
    made = world(league, behind)
    behind.gone.add(made.graph.table.key_of(keyed("TEAM#a", "PLAYER#1")))
    document = '{ player(playerId: "1") { teams { edges { shirt node { name } } nodes { name } } } }'
    assert (await made.ask(document))["player"]["teams"] == {
        "edges": [{"shirt": 10, "node": {"name": "Team b"}}],
        "nodes": [{"name": "Team b"}],
    }
    behind.gone.add(made.graph.table.key_of(keyed("TEAM#b", "TEAM#b")))
    document = "{ teams { nodes { name members { totalCount } } } }"
    assert (await made.ask(document))["teams"]["nodes"] == [{"name": "Team a", "members": {"totalCount": 2}}]


owners = Index("owners", "GPK", "GSK", projection=["owner"])


@node("CLUB#{club_id}", owners("CLUB", "{club_id}"), access=[read(where={"owner": viewer("sub")})])
class Club:
    club_id: ID
    owner: str
    name: str

    visits: Many[Visit] = many()


@edge("{club}", "VISIT#{town.town_id}", access=[read()])
class Visit:
    club: Club
    town: Town
    day: int


@node("TOWN#{town_id}", item=False)
class Town:
    town_id: ID


clubs = Graph(Table("Clubs", partition_key="PK", sort_key="SK", indexes=[owners]), Club, Visit, Town)


async def test_nothing_is_read_below_what_the_viewer_may_not_see(make_store: MakeStore) -> None:
    made = world(clubs, await make_store(clubs.table))
    await made.put(
        *(
            keyed(f"CLUB#{each}", f"CLUB#{each}", "CLUB", each, club_id=each, owner="o", name=each)
            for each in "ab"
        ),
        *(keyed(f"CLUB#{each}", "VISIT#t", day=Decimal(1)) for each in "ab"),
    )
    document = "{ clubs(first: 2) { nodes { name visits(first: 1) { edges { day } } } } }"
    observed = Observation()
    answer = await made.service.execute(
        OperationRequest(document, {}, viewer={"sub": "o"}, observation=observed)
    )
    visits = {"edges": [{"day": 1}]}
    assert answer["data"] == {
        "clubs": {"nodes": [{"name": "a", "visits": visits}, {"name": "b", "visits": visits}]}
    }
    cost = observed.cost(clubs.table)
    assert cost is not None
    assert cost["actual"]["roundTrips"] == 3
