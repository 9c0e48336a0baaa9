"""The time, memory and disk of the job that computes summaries: `python -m bench.summaries [ITEMS]`.

A league of teams, players and memberships is in a SQLite file; one team has half of all memberships. `keygraph summarize`
computes it in a process of its own. A second run is killed in the middle and resumed: what both took is compared with
the first. Every value must be right.
"""

from __future__ import annotations

import asyncio
import resource
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from decimal import Decimal
from pathlib import Path

from keygraph import ID, Graph, Index, Many, Table, copy, counts, edge, node, sums
from keygraph.dynamo.items import Item
from keygraph.dynamo.store import CreateTable
from keygraph.engines.open import open_store
from keygraph.tables.bulk import BATCH_ITEMS, whole_table, write_batches

by_player = Index("by-player", "gp", "gs")


@node("TEAM#{team_id}")
class Team:
    team_id: ID
    name: str

    members: Many[Member]
    member_count: int | None = counts("members", kept="job")
    points: Decimal | None = sums("members.score", kept="job")


@node("PLAYER#{player_id}")
class Player:
    player_id: ID

    teams: Many[Member]
    team_count: int | None = counts("teams", kept="job")


@edge("{team}", "MEMBER#{player.player_id}", by_player("{player}", "{team}"))
class Member:
    team: Team
    player: Player
    score: int
    team_name: str | None = copy("team.name", kept="job")


graph = Graph(
    Table("League", partition_key="pk", sort_key="sk", indexes=[by_player]), Team, Player, Member
).check()

MEMBERS = 2
"""For each player."""
PLAYERS_OF_A_TEAM = 20


def items(size: int) -> Iterator[Item]:
    """Yields about so many items. Every other membership is one in team 0."""
    players = size // (1 + MEMBERS)
    teams = 2 + players // PLAYERS_OF_A_TEAM
    for number in range(teams):
        key = f"TEAM#{number}"
        yield {"pk": key, "sk": key, "team_id": str(number), "name": f"Team {number}"}
    for number in range(players):
        key = f"PLAYER#{number}"
        yield {"pk": key, "sk": key, "player_id": str(number)}
        for each in range(MEMBERS):
            team = 0 if each == 0 else 1 + number % (teams - 1)
            yield {
                "pk": f"TEAM#{team}",
                "sk": f"MEMBER#{number}",
                "gp": key,
                "gs": f"TEAM#{team}",
                "score": Decimal(number % 10),
            }


async def _load(store_address: str, size: int) -> None:
    async with open_store(store_address, graph.table) as store:
        await store.send(CreateTable())

        def batches() -> Iterator[tuple[list[Item], None]]:
            batch: list[Item] = []
            for item in items(size):
                batch.append(item)
                if len(batch) == BATCH_ITEMS * 10:
                    yield batch, None
                    batch = []
            yield batch, None

        await write_batches(store, batches(), lambda mark: None, in_flight=1)


async def _check(store_address: str) -> int:
    """Compares every value with its list, which is counted here. Returns the number of items."""
    counted, points, teams, total = Counter[str](), Counter[str](), Counter[str](), 0
    nodes: list[Item] = []
    async with open_store(store_address, graph.table) as store:
        async for item in whole_table(store):
            total += 1
            if "score" in item:
                counted[str(item["pk"])] += 1
                points[str(item["pk"])] += int(item["score"])  # type: ignore[arg-type]  # a number
                teams[str(item["gp"])] += 1
                assert item["team_name"] == f"Team {str(item['pk']).partition('#')[2]}", item
            else:
                nodes.append(item)
    for each in nodes:
        key = str(each["pk"])
        if key.startswith("TEAM"):
            assert (each["member_count"], each["points"]) == (counted[key], points[key]), each
        else:
            assert each["team_count"] == teams[key], each
    return total


def _summarize(store: str, work: Path, *options: str) -> subprocess.Popen[bytes]:
    command = ["summarize", "--model", "bench.summaries:graph", "--store", store, "--work", str(work)]
    return subprocess.Popen([sys.executable, "-m", "keygraph", *command, *options])


def main(size: int) -> None:
    with tempfile.TemporaryDirectory() as folder:
        store, work = f"sqlite:{folder}/league.db", Path(folder) / "work.db"
        started = time.monotonic()
        asyncio.run(_load(store, size))
        print(f"loaded in {time.monotonic() - started:.0f} s")
        started, largest = time.monotonic(), 0
        job = _summarize(store, work)
        while job.poll() is None:
            largest = max(largest, work.stat().st_size if work.exists() else 0)
            time.sleep(0.2)
        whole = time.monotonic() - started
        memory = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss // 1024
        assert job.returncode == 0
        total = asyncio.run(_check(store))
        print(f"{total:,} items: {whole:.0f} s, {memory} MB of memory, a work file of {largest >> 20} MB")
        started = time.monotonic()
        job = _summarize(store, work)
        time.sleep(whole / 2)
        job.kill()
        job.wait()
        assert _summarize(store, work, "--resume").wait() == 0
        asyncio.run(_check(store))
        print(f"killed after {whole / 2:.0f} s and resumed: {time.monotonic() - started:.0f} s in all")


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 1_000_000)
