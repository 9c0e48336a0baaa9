"""Records whose table key has the text of a method: they are named by that text, and a move changes it."""

from __future__ import annotations

from decimal import Decimal

import pytest

from keygraph import ID, Graph, Many, Table, field, node, record
from keygraph.dynamo.items import Item
from keygraph.dynamo.store import Prefix, Query
from tests.conftest import MakeStore
from tests.resolvers.worlds import World, world


@node("TEAM#{team_id}")
class Team:
    team_id: ID
    players: Many[Player]


@record("{team}", "PLAYER#{initial}#{number:03d}")
class Player:
    team: Team
    number: int
    name: str
    city: str | None

    @field(needs=("name",))
    def initial(self) -> str:
        return self.name[:1].upper()


graph = Graph(Table("Teams", partition_key="PK", sort_key="SK"), Team, Player)


ANN = {"PK": "TEAM#1", "SK": "PLAYER#A#007", "team_id": "1", "number": Decimal(7), "name": "Ann"}
KEY = 'teamId: "1", initial: "A", number: 7'


@pytest.fixture
async def teams(make_store: MakeStore) -> World:
    served = world(graph, await make_store(graph.table))
    await served.put({"PK": "TEAM#1", "SK": "TEAM#1", "team_id": "1"}, ANN)
    return served


async def stored(teams: World) -> list[Item]:
    page = await teams.tracer.store.send(Query("TEAM#1", range=Prefix("PLAYER#"), consistent=True))
    return page.items


@pytest.mark.parametrize(
    ("mutation", "items"),
    [
        (f'updatePlayer(input: {{{KEY}, city: "Rome"}})', [{**ANN, "city": "Rome"}]),
        (f'movePlayer(input: {{{KEY}, to: {{name: "Bo"}}}})', [{**ANN, "SK": "PLAYER#B#007", "name": "Bo"}]),
        (f"movePlayer(input: {{{KEY}, to: {{number: 8}}}})", [{**ANN, "SK": "PLAYER#A#008", "number": 8}]),
        (f"deletePlayer(input: {{{KEY}}})", []),
    ],
)
async def test_a_record_is_named_by_the_text(teams: World, mutation: str, items: list[Item]) -> None:
    await teams.ask(f"mutation {{ {mutation} {{ __typename }} }}")
    assert await stored(teams) == items


async def test_a_key_without_the_text_is_not_whole(teams: World) -> None:
    document = 'mutation { deletePlayer(input: {teamId: "1", number: 7}) { __typename } }'
    wanted = "initial of Player is missing: give the whole key, or id."
    assert await teams.errors(document) == [("BAD_USER_INPUT", wanted)]
    assert await stored(teams) == [ANN]
