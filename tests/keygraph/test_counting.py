"""Values that the stream keeps: each change counts once, whatever happens on the way."""

from __future__ import annotations

import asyncio
import random
from collections import Counter
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from itertools import count
from pathlib import Path
from typing import Any

import pytest

from keygraph.changes.counting import NodeValues, StreamCounter
from keygraph.changes.kept_walks import StreamWalks
from keygraph.changes.ledger import Ledger, replace_ledger
from keygraph.changes.stream import StreamReader, readable
from keygraph.changes.totals import StreamTotals
from keygraph.dynamo.actions import SetTo, UpdateItem
from keygraph.dynamo.items import Item
from keygraph.dynamo.store import BatchWrite, Scan, Write
from keygraph.dynamo.streams import DescribeStream, EnableStream, ReadRecords, ShardPosition
from keygraph.keys.types import encode
from tests.conftest import MakeStore
from tests.keygraph.streamed import (
    NODES,
    TEAMS,
    Changes,
    Resharded,
    graph,
    ledgers,
    lists,
    of_member,
    of_note,
    of_player,
    of_team,
    player,
    stored,
    wrong_walks,
)
from tests.keygraph.summarized import Stopped, contents, killed_after, summarize
from tests.tracing import TracingStore
from tests.verified import verified

TEAM_0, TEAM_1 = NODES[:2]


class Following:
    """Reads a stream by hand, also twice, and with writes that fail anywhere."""

    def __init__(self, store: Resharded, seed: int) -> None:
        self.store, self.random = store, random.Random(seed)
        self.reached: dict[str, ShardPosition | None] = {}
        self.counters = [(StreamCounter(graph, store), StreamWalks(graph, store)) for _ in range(2)]
        self.killed = 0

    @property
    def finished(self) -> set[str]:
        return {name for name, each in self.reached.items() if each is None}

    async def advance(self, *, kills: bool) -> bool:
        """Applies the next changes of a shard. Returns whether there were any, or a shard ended."""
        stream = await self.store.send(DescribeStream())
        ready = [*readable(stream.shards, self.finished)]
        self.random.shuffle(ready)
        for shard in ready:
            page = await self.store.send(
                ReadRecords("split", shard.name, self.reached.get(shard.name) or ShardPosition())
            )
            if not page.records and page.position is not None:
                continue
            # Another worker, which has lost its lease and does not know it yet, may do the same at the same time.
            several = [self.applied(shard.name, page.records, kills=kills)]
            if kills and self.random.random() < 0.5:
                several.append(
                    self.applied(shard.name, page.records[: self.random.randrange(4)], kills=kills)
                )
            if (await asyncio.gather(*several))[0]:
                self.reached[shard.name] = page.position
            return True
        return False

    async def replay(self) -> None:
        """Applies changes again, from any point before that which was reached."""
        name = self.random.choice([*self.reached] or ["s0"])
        reached, records = self.reached.get(name, ShardPosition()), self.store.shards[name].records
        before = [each for each in records if reached is None or each.position <= reached.after]
        if before:
            start = self.random.randrange(len(before))
            await self.applied(name, records[start : start + self.random.randrange(1, 9)], kills=True)

    async def applied(self, shard: str, records: Sequence[Any], *, kills: bool) -> bool:
        counter, walks = self.random.choice(self.counters)
        if kills and self.random.random() < 0.4:
            killed = killed_after(self.store, self.random.randrange(8))
            counter, walks = StreamCounter(graph, killed), StreamWalks(graph, killed)
        try:
            await counter.apply(shard, records)
            await walks.apply(records)
        except Stopped:
            self.killed += 1
            return False
        return True


async def streaming(make_store: MakeStore) -> Resharded:
    store = await make_store(graph.table)
    await store.send(EnableStream())
    return Resharded(store)


async def history(store: Resharded, seed: int, steps: int) -> None:
    """Random changes, workers that are killed, replays, splits and corrections; then the numbers are right."""
    changes, following, choose = Changes(store, seed), Following(store, seed), random.Random(seed)
    for _ in range(steps):
        match choose.randrange(14):
            case 0 | 1 | 2 | 3 | 4:
                await changes.write()
            case 5 | 6 | 7 | 8:
                await following.advance(kills=True)
            case 9 | 10 | 11:
                await following.replay()
            case 12:
                open_ = [name for name, each in store.shards.items() if not each.is_closed]
                if len(open_) < 6:
                    await store.split(choose.choice(open_), choose.choice([1, 2, 2]))
            case _:
                totals = StreamTotals(graph, store)
                await totals.wrong(choose.choice(NODES), fixes=True)
    while await following.advance(kills=False):
        pass
    expected = await lists(store)
    assert await ledgers(store) == expected
    there = await stored(store)
    assert there == {node: expected[node] for node in there}
    assert await wrong_walks(store) == []
    before = await contents(store)
    for node in NODES:
        assert await StreamTotals(graph, store).wrong(node, fixes=False) == {}
    assert await contents(store) == before


@pytest.mark.parametrize("engine", ["sqlite"])
@pytest.mark.parametrize(
    ("seed", "changes"),
    [*((n, 60) for n in range(6)), *(pytest.param(n, 200, marks=pytest.mark.long) for n in range(100, 160))],
)
async def test_each_change_counts_once(make_store: MakeStore, seed: int, changes: int) -> None:
    await history(await streaming(make_store), seed, changes)


# --- One at a time --------------------------------------------------------------------------------------


async def follow(store: Resharded) -> None:
    """Applies every change, from the beginning."""
    following = Following(store, 0)
    while await following.advance(kills=False):
        pass


@pytest.mark.parametrize("engine", ["sqlite"])
async def test_notes_that_are_copied_with_a_table_are_of_another_stream(make_store: MakeStore) -> None:
    """Otherwise, its changes would count as those that the notes contain."""
    there: Sequence[Item] = ()
    for name, new in ("p0", [of_team("t0")]), ("p1", []):
        store = await make_store(graph.table, *there)
        await store.send(EnableStream())
        await store.send(BatchWrite((*new, of_member("t0", name, 5))))
        for shard, record in await StreamReader(store).read():
            await StreamCounter(graph, store).apply(shard, [record])
        there = (await store.send(Scan())).items
    assert (await stored(store))[TEAM_0]["size"] == 2


async def test_a_node_that_was_there_before_has_no_numbers_until_the_job_has_run(
    make_store: MakeStore, tmp_path: Path
) -> None:
    early, late = of_member("t0", "p0", 5), of_member("t0", "p1", 7)
    store = await make_store(graph.table, of_team("t0"), early)
    await store.send(EnableStream())
    split = Resharded(store)
    await store.send(BatchWrite((late, of_team("t1"))))
    await follow(split)
    found = await stored(store)
    assert found[TEAM_0] == dict.fromkeys(found[TEAM_0])
    assert found[TEAM_1] == {
        "size": 0,
        "points": 0,
        "mean": {"count": 0, "sum": 0},
        "best": 0,
        "note_count": 0,
    }
    counted = await summarize(graph, split, tmp_path)
    assert counted["repaired"] == 1
    assert (await stored(store))[TEAM_0] == {
        "size": 2,
        "points": 12,
        "mean": {"count": 2, "sum": 12},
        "best": 2,
        "note_count": 0,
    }
    assert await wrong_walks(split) == []
    assert await summarize(graph, split, tmp_path) == Counter()
    await store.send(BatchWrite(deletes=(graph.table.key_of(early),)))
    await follow(split)
    assert (await stored(store))[TEAM_0]["size"] == 1


@pytest.mark.parametrize("engine", ["sqlite"])
async def test_shards_that_are_gone_are_looked_for_once(make_store: MakeStore) -> None:
    """The notes of nodes that were not changed for a day have only such shards."""
    store = await streaming(make_store)
    nodes = [(NODES[0][0], (f"x{number}",)) for number in range(20)]
    for number, node in enumerate(nodes):
        gone = {f"gone{number}": "1"}
        assert await replace_ledger(graph, store, node, Ledger(), Ledger(1, {}, gone, 1)) is None
    await store.send(BatchWrite(tuple(of_member(name, "p0", 5) for _, (name,) in nodes)))
    await store.send(DescribeStream())
    tracing = TracingStore(store)
    await StreamCounter(graph, tracing).apply("s0", store.shards["s0"].records)
    assert sum(isinstance(each, DescribeStream) for each in tracing.requests) == 1
    there = await NodeValues(graph, store).read(nodes)
    assert {*Ledger.of(there[nodes[0]][0]).read} == {"s0"}


async def test_a_node_gets_its_numbers_when_it_is_created_after_its_items(make_store: MakeStore) -> None:
    store = await streaming(make_store)
    await store.send(BatchWrite((of_member("t0", "p0", 5), of_note("t0", 1))))
    await follow(store)
    assert await stored(store) == {}
    await store.send(BatchWrite((of_team("t0"), of_player("p0"))))
    await follow(store)
    assert await stored(store) == {
        TEAM_0: {"size": 1, "points": 5, "mean": {"count": 1, "sum": 5}, "best": 1, "note_count": 1},
        (player, ("p0",)): {"team_count": 1, "total": 5},
    }


async def test_numbers_that_somebody_else_has_changed_or_removed_come_back(make_store: MakeStore) -> None:
    store = await streaming(make_store)
    await store.send(BatchWrite((of_team("t0"), of_member("t0", "p0", 5))))
    await follow(store)
    before = await stored(store)
    for change in (of_team("t0"), {**of_team("t0"), "size": Decimal(7)}):
        await store.send(BatchWrite((change,)))
        await follow(store)
        assert await stored(store) == before
    key = graph.table.key_of(of_team("t0"))
    await store.send(Write(UpdateItem(key, (SetTo(("size",), Decimal(9)),))))
    await follow(store)
    assert await stored(store) == before


async def test_a_sum_that_is_too_large_for_a_while_is_right_again_after_it(make_store: MakeStore) -> None:
    store, of_p0 = await streaming(make_store), (player, ("p0",))
    members = [of_member(each, "p0", 2_000_000_000) for each in ("t0", "t1")]
    await store.send(BatchWrite((of_player("p0"), *members)))
    await follow(store)
    assert (await stored(store))[of_p0]["total"] is None  # it is an Int
    await store.send(BatchWrite(deletes=(graph.table.key_of(members[0]),)))
    await follow(store)
    assert (await stored(store))[of_p0]["total"] == 2_000_000_000
    # The same of what no number of DynamoDB can be.
    large = {"points": Decimal("9E+126"), "mean": {"count": Decimal(1), "sum": Decimal("9E+126")}}
    assert await replace_ledger(graph, store, NODES[2], Ledger(), Ledger(1, large, {}, 1)) is None
    [(note, _)] = (await NodeValues(graph, store).read([NODES[2]])).values()
    assert Ledger.of(note).values == large


def test_a_value_that_a_field_does_not_have_is_as_none() -> None:
    """The field may have been an average before, or another program has stored it."""
    size, mean = (TEAM_0[0].fields[name] for name in ("size", "mean"))
    ledger = Ledger(1, {"size": {"count": Decimal(1)}, "mean": Decimal(1)})
    assert ledger.value_of(size) == 0
    assert ledger.value_of(mean) == {"count": 0, "sum": 0}


async def test_an_item_that_fits_no_type_and_one_on_which_the_model_fails_are_named_and_skipped(
    make_store: MakeStore, caplog: pytest.LogCaptureFixture
) -> None:
    store = await streaming(make_store)
    poison: Item = {"pk": "WHAT#1", "sk": "?", "x": Decimal(1)}
    corrupt: Item = {**of_member("t0", "p1", None), "score": "many"}
    await store.send(BatchWrite((of_team("t0"), poison, corrupt, of_member("t0", "p0", 5))))
    await follow(store)
    assert 'The item [{"S":"WHAT#1"},{"S":"?"}] is skipped: ' in caplog.text
    found = (await stored(store))[TEAM_0]
    assert (found["size"], found["points"]) == (2, 5)
    await store.send(BatchWrite((of_member("t0", "p1", 6),)))
    await follow(store)
    assert (await stored(store))[TEAM_0]["points"] == 11


async def test_verify_finds_a_wrong_number_and_the_job_corrects_it_while_changes_are_under_way(
    make_store: MakeStore, tmp_path: Path
) -> None:
    store = await streaming(make_store)
    await store.send(BatchWrite((of_team("t0"), of_team("t1"), of_member("t0", "p0", 5))))
    await follow(store)

    async def found() -> list[str]:
        report = await verified(graph, store, late_totals=StreamTotals(graph, store))
        return sorted(f"{kind.type}: {kind.what}" for kind in report.found)

    # Not yet applied, and so no mistake.
    await store.send(BatchWrite((of_member("t0", "p1", 6), of_member("t1", "p1", 6))))
    assert await found() == ["Member: player points to a missing Player"]
    note, _ = (await NodeValues(graph, store).read([TEAM_0]))[TEAM_0]
    ledger = Ledger.of(note)
    wrong = ledger.next({**ledger.values, "size": Decimal(40)}, ledger.read, 0, 1)
    assert await replace_ledger(graph, store, TEAM_0, ledger, wrong) is None
    assert await found() == [
        "Member: player points to a missing Player",
        "Team: size does not match its list",
    ]
    counted = await summarize(graph, store, tmp_path)
    assert counted["repaired"] == 1
    assert await found() == ["Member: player points to a missing Player"]
    await follow(store)
    assert await ledgers(store) == await lists(store)
    assert (await stored(store))[TEAM_0]["size"] == 2


async def test_verify_ends_though_there_are_always_changes(
    make_store: MakeStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = await streaming(make_store)
    await store.split("s0", 2)
    await store.send(BatchWrite((of_team("t0"), of_member("t0", "p0", 5))))
    await follow(store)
    await store.send(BatchWrite((of_member("t0", "p1", 6),)))
    send, numbers = store.send, count()

    async def written(request: Any) -> Any:
        if isinstance(request, ReadRecords):
            await store.store.send(BatchWrite(tuple(of_note(each, next(numbers)) for each in TEAMS)))
        return await send(request)

    monkeypatch.setattr(store, "send", written)
    async with asyncio.timeout(60):
        assert await StreamTotals(graph, store).wrong(TEAM_0, fixes=False) == {}  # not yet applied


async def test_verify_finds_a_kept_walk_that_is_not_what_it_would_find(make_store: MakeStore) -> None:
    store = await streaming(make_store)
    await store.send(BatchWrite((of_team("t0"), of_member("t0", "p0", 5))))
    await follow(store)
    totals = StreamTotals(graph, store)
    await store.send(BatchWrite((of_member("t0", "p1", 6),)))
    assert await totals.wrong(TEAM_0, fixes=False) == {}  # not yet applied
    await follow(store)
    field, age = (TEAM_0[0].fields[name] for name in ("best_players", "best_players_as_of"))
    later = encode(age.type, datetime.now(UTC).replace(microsecond=0) + timedelta(minutes=3))
    changes = (SetTo(field.attribute, {"total": Decimal(0), "nodes": []}), SetTo(age.attribute, later))
    await store.send(Write(UpdateItem(graph.table.key_of(of_team("t0")), changes)))
    wrong = await StreamTotals(graph, store).wrong(TEAM_0, fixes=False)
    assert {each.name: value["total"] for each, value in wrong.items() if isinstance(value, dict)} == {
        "best_players": 2
    }
    report = await verified(graph, store, late_totals=StreamTotals(graph, store))
    assert "best_players does not match its list" in {kind.what for kind in report.found}
    await follow(store)
    assert await StreamTotals(graph, store).wrong(TEAM_0, fixes=False) == {}


def test_versions_of_numbers_have_growing_times_whatever_clocks_say() -> None:
    """A clock that is an hour behind, and times that are stored in whole seconds."""
    first = Ledger().next({}, {}, 5000.25, 1)
    assert (first.version, first.microseconds) == (1, 5_000_250_000)
    second = first.next({}, {}, 5000.25 - 3600, 1)
    assert (second.version, second.microseconds) == (2, 5_000_250_001)
    coarse = second.next({}, {}, 0, 1_000_000)
    assert coarse.microseconds == 5_001_000_000
    assert coarse.at > second.at > first.at


async def test_who_changes_a_ledger_and_who_gives_its_new_node_values_learn_of_each_other(
    make_store: MakeStore,
) -> None:
    """Two workers, of which one has read the node when it had no values, and the other one the ledger before it changed."""
    store = await streaming(make_store)
    await store.send(BatchWrite((of_member("t0", "p0", 5),)))
    await follow(store)
    values = NodeValues(graph, store)
    [(note, _)] = (await values.read([TEAM_0])).values()
    first = Ledger.of(note)
    await store.send(BatchWrite((of_team("t0"),)))
    [(_, item)] = (await values.read([TEAM_0])).values()
    second = first.next({**first.values, "size": Decimal(7)}, first.read, 0, 1)
    assert await replace_ledger(graph, store, TEAM_0, first, second) is None
    await values.copy(TEAM_0, second, item, is_new=False)
    await values.copy(TEAM_0, first, item, is_new=True)
    assert (await stored(store))[TEAM_0]["size"] == 7
    # The other way around.
    await store.send(BatchWrite((of_team("t0"),)))
    third = second.next({**first.values, "size": Decimal(8)}, first.read, 0, 1)
    await values.copy(TEAM_0, second, item, is_new=True)
    assert await replace_ledger(graph, store, TEAM_0, second, third) is None
    for seen in (item, None):
        await values.copy(TEAM_0, third, seen, is_new=False)
        assert (await stored(store))[TEAM_0]["size"] == 8
