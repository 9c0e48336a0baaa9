"""Records whose table key has the text of a method: they are named by that text, and a move changes it."""

from __future__ import annotations

from decimal import Decimal

import pytest

from keygraph import ID, Graph, Many, Table, field, node, record
from keygraph.dynamo.actions import SetTo, UpdateItem
from keygraph.dynamo.items import Item
from keygraph.dynamo.store import Prefix, Query, Transaction, Write
from tests.conftest import MakeStore
from tests.resolvers.races import Raced
from tests.resolvers.worlds import World, filled, world


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


graph = Graph(Table("Teams", partition_key="PK", sort_key="SK"), Team, Player, writes=True)


ANN = {"PK": "TEAM#1", "SK": "PLAYER#A#007", "team_id": "1", "number": Decimal(7), "name": "Ann"}
KEY = 'teamId: "1", initial: "A", number: 7'

teams = filled(graph, [{"PK": "TEAM#1", "SK": "TEAM#1", "team_id": "1"}, ANN])


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


CHANGES = [
    f'updatePlayer(input: {{{KEY}, name: "%s"}})',
    f'updatePlayers(input: {{inputs: [{{{KEY}, name: "%s"}}], atomic: false}})',
    f'write(input: {{actions: [{{updatePlayer: {{{KEY}, name: "%s"}}}}]}})',
]


@pytest.mark.parametrize("mutation", [*CHANGES, 'upsertPlayer(input: {teamId: "1", number: 7, name: "%s"})'])
async def test_what_the_text_needs_changes_where_the_key_stays(teams: World, mutation: str) -> None:
    await teams.ask(f"mutation {{ {mutation % 'Anton'} {{ __typename }} }}")
    assert await stored(teams) == [{**ANN, "name": "Anton"}]


@pytest.mark.parametrize("mutation", CHANGES[::2])
async def test_a_change_to_another_key_is_a_move(teams: World, mutation: str) -> None:
    wanted = "name is part of the key of Player and cannot be changed. Use movePlayer."
    errors = await teams.errors(f"mutation {{ {mutation % 'Bo'} {{ __typename }} }}")
    assert errors == [("BAD_USER_INPUT", wanted)]
    assert await stored(teams) == [ANN]


async def test_a_name_that_another_client_changes_meanwhile(make_store: MakeStore) -> None:
    other = Write(UpdateItem(("TEAM#1", "PLAYER#A#007"), (SetTo(("name",), "Alf"),)))
    teams = world(graph, Raced(await make_store(graph.table), happens=other))
    await teams.put({"PK": "TEAM#1", "SK": "TEAM#1", "team_id": "1"}, ANN)
    await teams.ask(f"mutation {{ {CHANGES[0] % 'Anton'} {{ __typename }} }}")
    assert await stored(teams) == [{**ANN, "name": "Anton"}]
    sent = [request for request in teams.tracer.requests if isinstance(request, Transaction)]
    assert len(sent) == 2


async def test_a_key_without_the_text_is_not_whole(teams: World) -> None:
    document = 'mutation { deletePlayer(input: {teamId: "1", number: 7}) { __typename } }'
    wanted = "initial of Player is missing: give the whole key, or id."
    assert await teams.errors(document) == [("BAD_USER_INPUT", wanted)]
    assert await stored(teams) == [ANN]


@node("SHOP#{shop_id}")
class Shop:
    shop_id: ID
    name: str | None


@record("DEAL#{shop.shop_id}#{era}#{number:04d}", "DEAL")
class Deal:
    shop: Shop
    number: int
    year: str

    @field(needs=("year",))
    def era(self) -> str:
        return f"Y{self.year}"


def test_the_attribute_says_what_the_key_leaves_open() -> None:
    deals = Graph(Table("Deals", partition_key="PK", sort_key="SK"), Shop, Deal).check()
    item: Item = {"PK": "DEAL#a#b#Y2024#0004", "SK": "DEAL", "number": Decimal(4), "year": "2024"}
    read = deals.types["Deal"].read_identity
    assert read({**item, "shop_id": "a#b"}) == ("a#b", "Y2024", "0004")
    assert read({**item, "shop_id": "a"}) == ("a", "b#Y2024", "0004")
    assert read({**item, "shop_id": "c"}) == ("a", "b#Y2024", "0004")
