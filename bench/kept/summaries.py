"""The time, memory and disk of a backfill and of the job that computes summaries: `python -m bench.kept.summaries [ITEMS] [--spark]`.

A league of teams, players and memberships is in a SQLite file; one team has half of all memberships. The memberships lack
the keys of an index and a default: `keygraph backfill` writes them, then `keygraph summarize` computes counts, sums and copies, each
in a process of its own. A second run of each is killed after a third of the time and resumed. Every value must be right. With `--spark`,
Spark computes the summaries of the same table too (PySpark must be installed), and must write the same to each item.
"""

from __future__ import annotations

import asyncio
import shutil
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Coroutine, Iterator
from concurrent.futures import ProcessPoolExecutor
from decimal import Decimal
from itertools import islice
from multiprocessing import get_context
from pathlib import Path
from typing import Any

from bench.kept.commands import RunningCommand, run
from keygraph import ID, Graph, Index, Many, Table, copy, counts, edge, node, sums
from keygraph.dynamo.items import Item
from keygraph.dynamo.store import CreateTable
from keygraph.engines.open import open_store
from keygraph.tables.bulk import whole_table, write_batches

MODEL = "bench.kept.summaries:graph"

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
    role: str = "player"
    team_name: str | None = copy("team.name", kept="job")


graph = Graph(
    Table("League", partition_key="pk", sort_key="sk", indexes=[by_player]),
    Team,
    Player,
    Member,
    writes=True,
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
                "score": Decimal(number % 10),
            }


async def _load(store_address: str, size: int) -> None:
    async with open_store(store_address, graph.table) as store:
        await store.send(CreateTable())

        every = items(size)
        batches = ((batch, None) for batch in iter(lambda: [*islice(every, 5_000)], []))
        await write_batches(store, batches, lambda mark: None, in_flight=1)


async def _check(store_address: str, is_summarized: bool) -> int:
    """Compares every value with its list, which is counted here. Returns the number of items."""
    counted, points, teams, total = Counter[str](), Counter[str](), Counter[str](), 0
    nodes: list[Item] = []
    async with open_store(store_address, graph.table, deadline=60) as store:
        async for item in whole_table(store):
            total += 1
            if "score" not in item:
                nodes.append(item)
                continue
            team, number = str(item["pk"]), str(item["sk"]).partition("#")[2]
            assert (item["gp"], item["gs"], item["role"]) == (f"PLAYER#{number}", team, "player"), item
            counted[team] += 1
            points[team] += int(item["score"])  # type: ignore[arg-type]  # a number
            teams[str(item["gp"])] += 1
            if is_summarized:
                assert item["team_name"] == f"Team {team.partition('#')[2]}", item
    if not is_summarized:
        return total
    for each in nodes:
        key = str(each["pk"])
        if key.startswith("TEAM"):
            assert (each["member_count"], each["points"]) == (counted[key], points[key]), each
        else:
            assert each["team_count"] == teams[key], each
    return total


def _apart(function: Callable[..., Coroutine[Any, Any, int]], *values: Any) -> int:
    """Returns what a function returns in a process of its own: the most memory of a process that this one starts is at
    least what this one has had."""
    with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as pool:
        return pool.submit(_ran, function, *values).result()


def _ran(function: Callable[..., Coroutine[Any, Any, int]], *values: Any) -> int:
    return asyncio.run(function(*values))


def _measure(name: str, file: Path, work: Path, *options: str) -> None:
    """Prints what a command takes, and what it takes if it is killed after a third of that and resumed."""
    before = file.with_suffix(".before")
    shutil.copy(file, before)
    words = (name, "--store", f"sqlite:{file}", *options)
    used = run(MODEL, *words)
    total = _apart(_check, f"sqlite:{file}", name == "summarize")
    sys.stdout.write(f"{name}: {total:,} items, {used}\n")
    sys.stdout.flush()
    shutil.move(before, file)
    _killed(words, file, work, used.seconds / 3)


def _killed(words: tuple[str, ...], file: Path, work: Path, seconds: float) -> None:
    RunningCommand(MODEL, *words).kill_after(seconds)
    size = work.stat().st_size >> 20 if work.exists() else 0
    more = run(MODEL, *words, "--resume")
    _apart(_check, f"sqlite:{file}", words[0] == "summarize")
    sys.stdout.write(
        f"killed after {seconds:.0f} s, with {size} MB of work, and resumed: {more}. {more.said}\n"
    )
    sys.stdout.flush()


async def _compare(one: Path, other: Path) -> int:
    """Compares the items of two tables, except the ages of values. Returns their number."""
    total = 0
    async with (
        open_store(f"sqlite:{one}", graph.table, deadline=60) as first,
        open_store(f"sqlite:{other}", graph.table, deadline=60) as second,
    ):
        others = whole_table(second)
        async for item in whole_table(first):
            assert _without_ages(item) == _without_ages(await anext(others)), item
            total += 1
        assert await anext(others, None) is None
    return total


def _without_ages(item: Item) -> Item:
    return {name: value for name, value in item.items() if not name.endswith("_as_of")}


def main(size: int, *, with_spark: bool) -> None:
    with tempfile.TemporaryDirectory() as folder:
        file, work = Path(folder) / "league.db", Path(folder) / "work"
        started = time.monotonic()
        asyncio.run(_load(f"sqlite:{file}", size))
        sys.stdout.write(f"loaded in {time.monotonic() - started:.0f} s\n")
        _measure("backfill", file, work, "--state", str(work))
        for_spark = file.with_suffix(".spark")
        if with_spark:
            shutil.copy(file, for_spark)
        _measure("summarize", file, work, "--work", str(work))
        if with_spark:
            used = run(MODEL, "summarize", "--store", f"sqlite:{for_spark}", "--engine", "spark")
            total = _apart(_compare, file, for_spark)
            sys.stdout.write(f"on Spark: {used.seconds:.0f} s, {total:,} equal items\n")


if __name__ == "__main__":
    sizes = [int(word) for word in sys.argv[1:] if word != "--spark"]
    main(sizes[0] if sizes else 1_000_000, with_spark="--spark" in sys.argv)
