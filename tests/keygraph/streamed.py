"""A league whose numbers the stream keeps, and a stream that is split into shards at will."""

from __future__ import annotations

import asyncio
import zlib
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Any

from keygraph import ID, Graph, Index, Many, Table, average, counts, edge, node, record, sums
from keygraph.dynamo.store import Request, Store
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
