"""`alsoOf` where edges have equal sort keys: every page is a part of the list, in the list's order."""

from __future__ import annotations

from decimal import Decimal
from random import Random

import pytest

from keygraph import ID, Graph, Index, Many, Table, edge, many, node
from keygraph.dynamo.items import Item
from keygraph.dynamo.store import BatchWrite
from keygraph.walks import common
from keygraph_resolvers import OperationRequest
from tests.conftest import MakeStore
from tests.resolvers.worlds import World, world

by_day = Index("by-day", "GSI1PK", "GSI1SK")


@node("TEAM#{team_id}", item=False)
class Team:
    team_id: ID
    members: Many[Membership] = many(index=by_day)


@node("PLAYER#{player_id}", item=False)
class Player:
    player_id: ID


@edge("{team}", "{player}", by_day("{team}", "{day}"))
class Membership:
    team: Team
    player: Player
    day: str
    shirt: int


graph = Graph(Table("League", partition_key="PK", sort_key="SK", indexes=[by_day]), Team, Player, Membership)

DOCUMENT = """
query ($first: Int, $last: Int, $after: String, $before: String, $direction: SortDirection, $where: MembershipWhere) {
  team(teamId: "T1") {
    members(alsoOf: ["T2"], first: $first, last: $last, after: $after, before: $before, direction: $direction,
            where: $where) {
      %s edges { cursor node { playerId } } pageInfo { hasNextPage hasPreviousPage }
    }
  }
}
"""
WHOLE = """
query ($direction: SortDirection) {
  team(teamId: "T1") { members(first: 100, direction: $direction) { edges { cursor node { playerId } } } }
}
"""
COUNTS = ("", "totalCount", "aggregate { count }", "aggregate { count } totalCount")


def membership(team: str, player: str, day: str) -> Item:
    key = {"PK": f"TEAM#{team}", "SK": f"PLAYER#{player}", "GSI1PK": f"TEAM#{team}", "GSI1SK": day}
    return {**key, "day": day, "shirt": Decimal(int(player) % 3)}


async def check(league: World, random: Random) -> None:
    """Reads the common members in random pages, in both directions, with and without counts, and between two cursors,
    whose edges may be gone."""
    players = [f"{number:02}" for number in range(random.randint(4, 24))]
    theirs = random.sample(players, random.randint(2, len(players)))
    days = [f"day {number}" for number in range(random.randint(1, 4))]
    for team, some in (("T1", players), ("T2", theirs)):
        await league.put(*(membership(team, player, random.choice(days)) for player in some))
    direction = random.choice(("ASC", "DESC"))
    edges = (await league.ask(WHOLE, direction=direction))["team"]["members"]["edges"]
    ids, cursors = [each["node"]["playerId"] for each in edges], [each["cursor"] for each in edges]
    where = random.choice((None, {"shirt": {"gt": 0}}))
    expected = [each for each in ids if each in theirs and (where is None or int(each) % 3)]

    async def page(**arguments: object) -> tuple[list[str], bool, bool]:
        asked = {**arguments, "direction": direction, "where": where}
        answer = await league.service.execute(
            OperationRequest(DOCUMENT % random.choice(COUNTS), asked, with_cost=True)
        )
        cost, members = answer["extensions"]["cost"], answer["data"]["team"]["members"]
        assert [name for name, most in cost["bound"].items() if cost["actual"].get(name, 0) > most] == []
        counted = members.get("aggregate", {}).get("count", members.get("totalCount", len(expected)))
        assert counted == len(expected)
        info = members["pageInfo"]
        found = [each["node"]["playerId"] for each in members["edges"]]
        assert [each["cursor"] for each in members["edges"]] == [cursors[ids.index(each)] for each in found]
        return found, info["hasPreviousPage"], info["hasNextPage"]

    found: list[str] = []
    more, size = True, random.randint(1, 4)
    while more:
        after = cursors[ids.index(found[-1])] if found else None
        some, behind, more = await page(first=size, after=after)
        assert behind is bool(found)
        found += some
    assert found == expected
    for _ in range(6):
        low, high = sorted(random.sample(range(len(ids)), 2))
        if random.random() < 0.3:
            gone = ids[random.choice((low, high))]
            expected = [player for player in expected if player != gone]
            await league.tracer.store.send(BatchWrite(deletes=(("TEAM#T1", f"PLAYER#{gone}"),)))
        inside = [player for player in ids[low + 1 : high] if player in expected]
        window = {"after": cursors[low], "before": cursors[high]}
        some, _, more = await page(first=3, **window)
        assert (some, more) == (inside[:3], len(inside) > 3)
        some, more, _ = await page(last=3, **window)
        assert (some, more) == (inside[-3:], len(inside) > 3)


@pytest.mark.parametrize("seed", range(8))
@pytest.mark.parametrize("is_small", [False, True])
async def test_pages_are_parts_of_the_list(
    make_store: MakeStore, seed: int, is_small: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    small = {"FIRST": 2, "FIRST_OF_ALL": 3, "MOST_KEYS": 8, "ITEMS_OF_A_KEY": 4}
    for constant, value in small.items() if is_small else ():
        monkeypatch.setattr(common, constant, value)
    league = world(graph, await make_store(graph.table))
    await check(league, Random(seed))
