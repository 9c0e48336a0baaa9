"""Nodes whose partition is spread over shards: which of them holds the item, and what if it is not one."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

import pytest
from graphql import parse

from keygraph import ID, Graph, Index, Many, Table, edge, many, node, read, record, viewer, write
from keygraph.dynamo.items import Item
from keygraph.dynamo.store import Query, Scan
from keygraph_resolvers import OperationRequest, build_schema
from keygraph_resolvers.naming.global_ids import global_id
from tests.conftest import MakeStore
from tests.resolvers.differential import difference, errors_of
from tests.resolvers.naive import Naive
from tests.resolvers.worlds import SECRET, World, filled, world


@node("ROOM#{room_id}#{shard}", "ROOM", shards=3)
class Room:
    room_id: ID
    name: str


@node("HOUSE#{house_id}", "HOUSE")
class House:
    house_id: ID
    rooms: Many[Has]
    visits: Many[Visit]


@edge("{house}", "ROOM#{room.room_id}")
class Has:
    house: House
    room: Room


@record("HOUSE#{house.house_id}#{shard}", "VISIT#{day}", shards=3)
class Visit:
    house: House
    day: str
    who: str


houses = Graph(
    Table("Houses", partition_key="PK", sort_key="SK"), Room, House, Has, Visit, type_attribute="kind"
)


def room_item(room: str, shard: int, name: str, kind: str = "Room") -> Item:
    return {"PK": f"ROOM#{room}#{shard}", "SK": "ROOM", "kind": kind, "name": name}


built = filled(
    houses,
    [
        room_item("a", 2, "Attic"),
        room_item("b", 0, "Ghost", kind="Ghost"),
        room_item("b", 1, "Bath"),
        room_item("c", 0, "Cellar"),
        room_item("c", 2, "Cellar, too"),
        *({"PK": "HOUSE#h", "SK": f"ROOM#{room}", "kind": "Has"} for room in "abcd"),
    ],
)
"""A house with three rooms: one in the last shard, one behind an item of another type, one in two shards."""


TWICE = "Room: two items, in different shards, have the key of this one"


async def test_two_items_of_one_identity(built: World) -> None:
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


async def test_records_of_one_identity_are_told_by_their_list_and_by_no_id(built: World) -> None:
    await built.put(
        {"PK": "HOUSE#h", "SK": "HOUSE", "kind": "House"},
        *(
            {"PK": f"HOUSE#h#{shard}", "SK": f"VISIT#{day}", "kind": "Visit", "who": f"{day}{shard}"}
            for day, shard in (("mon", 0), ("mon", 2), ("tue", 1))
        ),
    )
    visit = houses.types["Visit"]
    ids = [global_id(visit, ("h", day)) for day in ("mon", "tue")]
    document = """query ($ids: [ID!]!, $id: ID!) { nodes(ids: $ids) { ... on Visit { who } } node(id: $id) { id }
      house(houseId: "h") { visits { nodes { day who } totalCount } } }"""
    given = {"ids": ids, "id": ids[0]}
    answer: dict[str, Any] = await built.service.execute(document, given)
    visits = [{"day": day, "who": who} for day, who in (("mon", "mon0"), ("mon", "mon2"), ("tue", "tue1"))]
    assert answer["data"] == {
        "nodes": [None, {"who": "tue1"}],
        "node": None,
        "house": {"visits": {"nodes": visits, "totalCount": 3}},
    }
    assert errors_of(answer) == {(("nodes", 0), "CORRUPT_ITEM"), (("node",), "CORRUPT_ITEM")}
    items = (await built.tracer.store.send(Scan(consistent=True))).items
    naive = Naive(build_schema(houses), items, SECRET)
    assert difference(answer, await naive.execute(parse(document), given)) is None
    both = await built.service.execute(
        OperationRequest("query ($id: ID!) { node(id: $id) { id } }", given, with_cost=True)
    )
    cost = both["extensions"]["cost"]
    assert cost["actual"]["items"] == 2 <= cost["bound"]["items"]


by_points = Index("ByPoints", "GamePK", ("Points", "N"))
by_player = Index("ByPlayer", "PlayerPK", "PlayerSK")


@node("PLAYER#{player_id}", "PLAYER")
class Player:
    player_id: ID
    name: str
    results: Many[Result] = many(index=by_player)


@node("GAME#{game_id}", "GAME")
class Game:
    game_id: ID
    results: Many[Result] = many(index=by_points)


@node(
    "RESULT#{result_id}",
    "RESULT",
    by_points("{game}#{shard}", "{points}", shards=2),
    by_player("{player}", "{rival}"),
)
class Result:
    result_id: ID
    game: Game
    player: Player
    rival: Player
    points: int


games = Graph(
    Table("Games", partition_key="PK", sort_key="SK", indexes=[by_points, by_player]),
    *(Game, Player, Result),
    type_attribute="kind",
)


def result_item(result: str, game: str, shard: int, points: int, player: str, rival: str) -> Item:
    return {
        "PK": f"RESULT#{result}",
        "SK": "RESULT",
        "kind": "Result",
        "GamePK": f"GAME#{game}#{shard}",
        "Points": Decimal(points),
        "PlayerPK": f"PLAYER#{player}",
        "PlayerSK": f"PLAYER#{rival}",
    }


async def test_a_batch_waits_for_a_shard_that_skips_what_stands_at_the_cursor(make_store: MakeStore) -> None:
    made = world(games, await make_store(games.table))
    await made.put(
        result_item("r0", "g", 0, 5, "p", "u"),
        result_item("r1", "g", 1, 5, "p", "v"),
        result_item("r2", "g", 0, 6, "p", "w"),
        result_item("r3", "h", 0, 1, "q", "x"),
        *(
            {"PK": f"PLAYER#{player}", "SK": "PLAYER", "kind": "Player", "name": player}
            for player in "pquvwx"
        ),
        *({"PK": f"GAME#{game}", "SK": "GAME", "kind": "Game"} for game in "gh"),
    )
    two = '{ game(gameId: "g") { results(first: 2) { nodes { resultId } pageInfo { endCursor } } } }'
    results = (await made.ask(two))["game"]["results"]
    assert results["nodes"] == [{"resultId": "r0"}, {"resultId": "r1"}]
    found = await made.ask(
        """query($after: String) {
          long: game(gameId: "h") { results(first: 1) { nodes { player { results(first: 1) { nodes { rival { name } } } } } } }
          skips: game(gameId: "g") { results(first: 1, after: $after) { nodes { rival { name } } } }
        }""",
        after=results["pageInfo"]["endCursor"],
    )
    assert found["skips"]["results"]["nodes"] == [{"rival": {"name": "w"}}]
    assert found["long"]["results"]["nodes"][0]["player"]["results"]["nodes"] == [{"rival": {"name": "x"}}]
    # The games, and the rivals of both.
    assert made.operations["BatchGetItem"] == 2


by_owner = Index("ByOwner", "ByOwnerPK", "ByOwnerSK")


@node(
    "LOCKER#{locker_id}#{shard}", "LOCKER", by_owner("OWNER#{owner}", "{locker_id}"), shards=3, writes=True,
    access=[read(where={"owner": viewer("sub")}), write()],
)  # fmt: skip
class Locker:
    locker_id: ID
    owner: str


@record("KEYS#{locker.locker_id}", "{number}", access=[read(), write()])
class LockerKey:
    locker: Locker
    number: int


lockers = filled(
    Graph(Table("Lockers", partition_key="PK", sort_key="SK", indexes=[by_owner]), Locker, LockerKey)
)


@pytest.mark.parametrize("shard", range(3))
async def test_an_item_of_any_shard_is_written_where_it_is_whatever_is_hidden_beside_it(
    lockers: World, shard: int
) -> None:
    def item(shard: int, owner: str) -> Item:
        keys = {"PK": f"LOCKER#a#{shard}", "SK": "LOCKER", "ByOwnerPK": f"OWNER#{owner}", "ByOwnerSK": "a"}
        return {**keys, "locker_id": "a", "owner": owner}

    hidden = [item(each, "bob") for each in range(3) if each != shard]
    await lockers.put(item(shard, "ann"), *hidden)
    for document in (
        'mutation { putLockerKey(input: {lockerId: "a", number: 1}) { lockerKey { locker { owner } } } }',
        'mutation { updateLocker(input: {lockerId: "a", owner: "ann"}) { locker { owner } } }',
        'mutation { upsertLocker(input: {lockerId: "a", owner: "ann"}) { created } }',
    ):
        answer = await lockers.service.execute(OperationRequest(document, viewer={"sub": "ann"}))
        assert "errors" not in answer, answer["errors"]
    scanned = (await lockers.tracer.store.send(Scan())).items
    written = [each for each in scanned if each["SK"] == "LOCKER" and each["owner"] == "ann"]
    assert written == [item(shard, "ann")]


by_day = Index("ByDay", "ByDayPK", "ByDaySK")


@record("{house}", "PARTY#{party_id}", by_day("PARTY#{shard}", "{day}", shards=2, lists="parties"))
class Party:
    house: House
    party_id: ID
    day: str


async def test_a_key_that_is_no_text_is_no_place_in_a_list(make_store: MakeStore) -> None:
    parties = Graph(
        Table("Parties", partition_key="PK", sort_key="SK", indexes=[by_day]), House, Has, Room, Visit, Party
    )
    made = world(parties, await make_store(parties.table))
    await made.put(
        *(
            {"PK": "HOUSE#h", "SK": f"PARTY#{day}", "day": day, "ByDayPK": f"PARTY#{shard}", "ByDaySK": day}
            for shard, day in ((0, "mon"), (1, "tue"))
        )
    )
    store: Any = made.tracer.store
    send = store.send

    async def answers(request: Any) -> Any:
        answer = await send(request)
        for item in answer.items if isinstance(request, Query) else ():
            if item["ByDaySK"] == "tue":
                item["ByDaySK"] = True
        return answer

    store.send = answers
    answer = await made.service.execute("{ parties { nodes { partyId } } }")
    assert [error["extensions"]["code"] for error in answer["errors"]] == ["CORRUPT_ITEM"]
