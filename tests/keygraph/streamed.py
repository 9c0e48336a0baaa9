"""A league whose numbers the stream keeps, and a stream that is split into shards at will."""

from __future__ import annotations

import asyncio
import zlib
from contextlib import suppress
from dataclasses import dataclass, field
from decimal import Decimal
from random import Random
from typing import Any, cast
from uuid import uuid4

from keygraph import (
    ID,
    Graph,
    Index,
    Many,
    Ranked,
    Reach,
    Table,
    average,
    counts,
    edge,
    node,
    ranked,
    reach,
    record,
    sums,
)
from keygraph.changes.counting import NodeValues, StreamTallies
from keygraph.changes.ledger import Ledger, Node
from keygraph.dynamo.actions import DeleteItem, PutItem, Remove, SetTo, UpdateItem
from keygraph.dynamo.conditions import Exists
from keygraph.dynamo.items import Item
from keygraph.dynamo.store import BatchWrite, Request, Store, Transaction, Write
from keygraph.dynamo.streams import (
    DescribeStream,
    LatestPosition,
    ReadRecords,
    RecordPage,
    ShardPosition,
    Stream,
    StreamRecord,
    StreamShard,
)
from keygraph.dynamo.table import Table as StoredTable
from keygraph.errors import ConditionFailed
from keygraph.resolve.derived import combined, stored_value
from keygraph.tables.totals import computed
from tests.keygraph.summarized import contents

by_player = Index("by-player", "gp", "gs")


@node("TEAM#{team_id}")
class Team:
    team_id: ID
    name: str = "?"

    members: Many[Member]
    notes: Many[Note]
    size: int | None = counts("members", kept="stream")
    points: Decimal | None = sums("members.score", "stats", "points", kept="stream")
    mean: float | None = average("members.score", kept="stream")
    best: int | None = counts("members", where={"score": {"gte": 5}}, kept="stream")
    note_count: int | None = counts("notes", kept="stream")
    best_players: Ranked[Player] = ranked("members", weight="score", kept="stream", keep=2)
    members_kept: Reach[Player] = reach("members", depth=1, kept="stream", keep=3)


@node("PLAYER#{player_id}")
class Player:
    player_id: ID

    teams: Many[Member]
    team_count: int | None = counts("teams", kept="stream")
    total: int | None = sums("teams.score", kept="stream")


@edge("{team}", "MEMBER#{player.player_id}", by_player("{player}", "{team}"))
class Member:
    team: Team
    player: Player
    score: int | None = None


@record("{team}", "NOTE#{number}")
class Note:
    team: Team
    number: int


graph = Graph(
    Table("League", partition_key="pk", sort_key="sk", indexes=[by_player]), Team, Player, Member, Note
).check()
team, player, member, note = graph.types.values()
TEAMS, PLAYERS = [f"t{number}" for number in range(3)], [f"p{number}" for number in range(4)]
NODES: list[Node] = [*((team, (each,)) for each in TEAMS), *((player, (each,)) for each in PLAYERS)]
tallies = graph.made(StreamTallies)


@dataclass
class _Shard:
    parent: str | None
    places: range
    """The hashes of the partition keys of its items."""
    records: list[StreamRecord] = field(default_factory=list)
    is_closed: bool = False


class Resharded:
    """A store whose stream, which has one shard, has many."""

    def __init__(self, store: Store, page: int = 4) -> None:
        self.store, self.page = store, page
        self.shards: dict[str, _Shard] = {"s0": _Shard(None, range(64))}
        self._position: ShardPosition | None = ShardPosition()
        self._spreading = asyncio.Lock()

    @property
    def table(self) -> StoredTable:
        return self.store.table

    async def close(self) -> None:
        await self.store.close()

    async def split(self, name: str, parts: int) -> None:
        """Closes a shard, whose items go on in one child or two."""
        await self._spread()
        shard = self.shards[name]
        shard.is_closed = True
        middle = shard.places.start + len(shard.places) // 2
        places = (
            [shard.places]
            if parts == 1
            else [shard.places[: middle - shard.places.start], shard.places[middle - shard.places.start :]]
        )
        for each in places:
            self.shards[f"s{len(self.shards)}"] = _Shard(name, each)

    async def _spread(self) -> None:
        async with self._spreading:
            await self._spread_alone()

    async def _spread_alone(self) -> None:
        stream = await self.store.send(DescribeStream())
        assert stream is not None
        while True:
            page = await self.store.send(
                ReadRecords(stream.name, stream.shards[0].name, self._position or ShardPosition())
            )
            self._position = page.position
            for each in page.records:
                place = zlib.crc32(str(each.key[0]).encode()) % 64
                [shard] = [one for one in self.shards.values() if not one.is_closed and place in one.places]
                shard.records.append(each)
            if not page.records:
                return

    async def send(self, request: Request[Any], /) -> Any:
        match request:
            case DescribeStream():
                await self._spread()
                return Stream(
                    "split",
                    tuple(
                        StreamShard(name, each.parent, each.is_closed) for name, each in self.shards.items()
                    ),
                )
            case LatestPosition(_, name):
                await self._spread()
                records = self.shards[name].records
                return ShardPosition(records[-1].position if records else "")
            case ReadRecords(_, name, position):
                await self._spread()
                shard = self.shards[name]
                left = [each for each in shard.records if each.position > position.after]
                some = tuple(left[: self.page])
                if shard.is_closed and len(some) == len(left):
                    return RecordPage(some, None)
                return RecordPage(some, ShardPosition(some[-1].position) if some else position)
        return await self.store.send(request)


# --- What is in the table ---------------------------------------------------------------------------------


def of_team(name: str) -> Item:
    return {"pk": f"TEAM#{name}", "sk": f"TEAM#{name}", "name": name}


def of_player(name: str) -> Item:
    return {"pk": f"PLAYER#{name}", "sk": f"PLAYER#{name}"}


def of_member(in_team: str, name: str, score: int | None) -> Item:
    item: Item = {
        "pk": f"TEAM#{in_team}",
        "sk": f"MEMBER#{name}",
        "gp": f"PLAYER#{name}",
        "gs": f"TEAM#{in_team}",
    }
    return item if score is None else {**item, "score": Decimal(score)}


def of_note(in_team: str, number: int) -> Item:
    return {"pk": f"TEAM#{in_team}", "sk": f"NOTE#{number}"}


class Changes:
    """Changes a table at random, as any program would."""

    def __init__(self, store: Store, seed: int) -> None:
        self.store, self.random = store, Random(seed)

    def item(self) -> Item:
        choose = self.random.choice
        match self.random.randrange(6):
            case 0:
                return of_team(choose(TEAMS))
            case 1:
                return of_player(choose(PLAYERS))
            case 2:
                return of_note(choose(TEAMS), self.random.randrange(3))
        return of_member(choose(TEAMS), choose(PLAYERS), choose([None, 1, 5, 9]))

    async def write(self) -> None:
        items = {
            graph.table.key_of(each): each
            for each in (self.item() for _ in range(self.random.randrange(1, 5)))
        }
        match self.random.randrange(5):
            case 0:
                await self.store.send(BatchWrite(deletes=tuple(items)))
            case 1:
                actions = [
                    DeleteItem(key) if self.random.random() < 0.3 else PutItem(item)
                    for key, item in items.items()
                ]
                await self.store.send(Transaction(tuple(actions), uuid4().hex))
            case 2:
                # Whoever keeps the rest of a owner keeps its values.
                for key, item in items.items():
                    change = Remove(("x",)) if self.random.random() < 0.5 else SetTo(("x",), Decimal(1))
                    changes = (change, *(SetTo(("score",), item["score"]) for _ in range("score" in item)))
                    with suppress(ConditionFailed):
                        await self.store.send(Write(UpdateItem(key, changes, Exists(("pk",)))))
            case _:
                await self.store.send(BatchWrite(tuple(items.values())))


async def ledgers(store: Store) -> dict[Node, dict[str, Any]]:
    found = {}
    for owner, (note, _) in (await NodeValues(graph, store).read(NODES)).items():
        values = Ledger.of(note).values
        found[owner] = {each.name: values.get(each.name, combined(each, ())) for each in tallies.of[owner[0]]}
    return found


async def lists(store: Store) -> dict[Node, dict[str, Any]]:
    """What the lists of each owner say."""
    found = {}
    for owner in NODES:
        totals = await computed(graph, store, owner[1], tallies.of[owner[0]])
        found[owner] = {each.name: value for each, value in totals.items()}
    return found


async def stored(store: Store) -> dict[Node, dict[str, Any]]:
    """What the nodes have that are there."""
    found = {}
    for owner, (_, item) in (await NodeValues(graph, store).read(NODES)).items():
        if item is not None:
            found[owner] = {each.name: stored_value(each, item) for each in tallies.of[owner[0]]}
    return found


async def wrong_walks(store: Store) -> list[str]:
    """The teams that keep others of their walks than their members."""
    items, wrong = await contents(store), list[str]()
    for item in items:
        if graph.recognise(item) is not team:
            continue
        own = [each for each in items if each["pk"] == item["pk"] and str(each["sk"]).startswith("MEMBER#")]
        players = {str(each["sk"]).partition("#")[2]: each.get("score", Decimal(0)) for each in own}
        ranked = sorted(players, key=lambda each: (-cast(Decimal, players[each]), each))
        best = [["Player", [each], players[each], 1] for each in ranked[:2]]
        near = [["Player", [each], 1] for each in sorted(players)[:3]]
        for name, nodes in (("best_players", best), ("members_kept", near)):
            kept: Any = item.get(name) or {}
            if (kept.get("total"), kept.get("nodes")) != (len(players), nodes):
                wrong.append(f"{item['pk']} keeps {kept}, not {nodes}")
    return wrong
