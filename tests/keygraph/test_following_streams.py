"""Workers that follow a table: they share its shards, replace each other, and lose nothing."""

from __future__ import annotations

import asyncio
from collections import defaultdict
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager, suppress
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from keygraph.changes.counting import StreamCounter
from keygraph.changes.following import FollowOptions, Handle, Progress, StreamWorker
from keygraph.changes.leases import read_leases
from keygraph.changes.ledger import ledger_name
from keygraph.changes.totals import StreamTotals
from keygraph.dynamo.items import Item
from keygraph.dynamo.store import BatchWrite, Store, Write
from keygraph.dynamo.streams import DescribeStream, StreamRecord
from keygraph.errors import Unavailable
from keygraph.names import NOTE
from keygraph.writing.sending.idempotency import note_key
from tests.conftest import LOCAL, MakeStore
from tests.keygraph.histories.following import Killable
from tests.keygraph.histories.running import Faults, while_followed
from tests.keygraph.streamed import Resharded, graph, ledgers, lists, of_member, of_team, stored
from tests.keygraph.test_counting import TEAM_0, TEAM_1, streaming
from tests.tracing import HeldStore

QUICK = FollowOptions(lease_seconds=0.2, poll_seconds=0.005)


class Handled:
    """What workers have handled, in its order."""

    def __init__(self) -> None:
        self.by_worker: dict[str, list[tuple[str, str]]] = defaultdict(list)
        self.changed = asyncio.Event()

    def by(self, name: str) -> Handle:
        async def handle(shard: str, records: Sequence[StreamRecord]) -> None:
            self.by_worker[name] += [(shard, each.position) for each in records]
            self.changed.set()

        return handle

    @property
    def positions(self) -> set[tuple[str, str]]:
        return {each for several in self.by_worker.values() for each in several}

    async def until(self, count: int) -> None:
        async with asyncio.timeout(20):
            while len(self.positions) < count:
                self.changed.clear()
                await self.changed.wait()


@asynccontextmanager
async def running(*workers: StreamWorker) -> AsyncIterator[None]:
    tasks = [asyncio.create_task(each.run()) for each in workers]
    try:
        yield
    finally:
        for each in workers:
            each.stop()
        await asyncio.gather(*tasks)


async def put(store: Store, *names: str) -> None:
    for each in names:
        await store.send(BatchWrite((of_team(each),)))


async def caught_up(store: Resharded) -> None:
    """Waits until leases say that all is handled."""
    async with asyncio.timeout(60):
        while True:
            stream = await store.send(DescribeStream())
            leases = await read_leases(graph, store, stream)
            left = [
                each
                for name, shard in store.shards.items()
                for each in shard.records
                if not leases[name].is_finished and each.position > leases[name].after
            ]
            # Their own notes are changes too.
            if all(str(each.key[0]).startswith("_keygraph") for each in left):
                return
            await asyncio.sleep(0.01)


READABLE: Item = {
    "owner": "x",
    "counter": Decimal(1),
    "after": "",
    "finished": False,
    "version": Decimal(1),
    "values": {},
    "read": {},
    "microseconds": Decimal(1),
}
"""The note of a node, and the one of a shard."""


@pytest.mark.parametrize("engine", ["sqlite"])
@pytest.mark.parametrize(
    "content",
    [
        None,
        {},
        Decimal(1),
        {"owner": "x", "counter": "y", "version": Decimal(1)},
        READABLE | {"counter": Decimal("1.5"), "version": Decimal("1.5")},
        READABLE | {"counter": Decimal("9" * 38), "microseconds": Decimal("1e100")},
        READABLE | {"after": "zzz", "read": {"s0": "zzz"}},
        READABLE | {"counter": Decimal(-1), "values": {"size": [], "points": "NaN"}},
        READABLE | {"counter": Decimal(-1), "values": {"points": "1e99999999999"}},
        READABLE | {"finished": True, "version": Decimal(-1)},
    ],
)
async def test_what_another_program_puts_in_the_place_of_a_note_stops_no_worker(
    make_store: MakeStore, caplog: pytest.LogCaptureFixture, content: Any
) -> None:
    """A lease is taken all the same. The values of the one node are wrong until they are computed again."""
    store = await streaming(make_store)
    stream = await store.send(DescribeStream())
    assert stream is not None
    [shard] = [each.name for each in stream.shards]
    odd = {} if content is None else {NOTE: content}
    keys = note_key(graph, ledger_name(TEAM_0)), note_key(graph, (0, "lease", stream.name, shard))
    await store.send(BatchWrite(tuple({**dict(zip(("pk", "sk"), key, strict=True)), **odd} for key in keys)))
    await store.send(
        BatchWrite((of_team("t0"), of_team("t1"), of_member("t0", "p0", 5), of_member("t1", "p1", 7)))
    )
    async with running(StreamWorker(graph, store, StreamCounter(graph, store).apply, "w", QUICK)):
        await caught_up(store)
    assert "replaced by another program" in caplog.text
    right = await lists(store)
    assert (await ledgers(store))[TEAM_1] == right[TEAM_1]
    await StreamTotals(graph, store).wrong(TEAM_0, fixes=True)
    assert await ledgers(store) == right


@pytest.mark.parametrize("engine", ["sqlite"])
async def test_several_workers_share_shards_and_go_on_in_their_children(make_store: MakeStore) -> None:
    store, handled = await streaming(make_store), Handled()
    await store.split("s0", 2)
    names = [f"t{number}" for number in range(20)]
    one, two = (StreamWorker(graph, store, handled.by(name), name, QUICK) for name in ("one", "two"))
    async with running(one):
        await put(store, *names[:10])
        await handled.until(10)
        assert one.held == 2
        async with running(two):
            async with asyncio.timeout(20):
                while (one.held, two.held) != (1, 1):  # noqa: ASYNC110  # leases tell nobody
                    await asyncio.sleep(0.01)
            open_ = [name for name, each in store.shards.items() if not each.is_closed]
            for each in open_:
                await store.split(each, 2)
            await put(store, *names[10:])
            await caught_up(store)
            assert {shard for shard, _ in handled.positions} >= {"s1", "s2"}
    assert one.held == two.held == 0
    wanted = {
        (name, each.position)
        for name, shard in store.shards.items()
        for each in shard.records
        if str(each.key[0]).startswith("TEAM")
    }
    assert wanted <= handled.positions
    for several in handled.by_worker.values():
        for shard in {name for name, _ in several}:
            positions = [position for name, position in several if name == shard]
            assert positions == sorted(positions)


@pytest.mark.parametrize("engine", ["sqlite"])
async def test_a_worker_reads_what_it_has_taken_when_it_can_take_no_more(make_store: MakeStore) -> None:
    store, handled, refused = await streaming(make_store), Handled(), list[object]()
    await store.split("s0", 2)

    async def before(request: Any) -> None:
        if isinstance(request, Write) and "'s2'" in str(request.action) and not refused:
            refused.append(request)
            raise Unavailable("throttled")

    async with running(StreamWorker(graph, HeldStore(store, before), handled.by("one"), "one", QUICK)):
        await put(store, *(f"t{number}" for number in range(10)))
        await handled.until(10)
    assert refused
    assert {shard for shard, _ in handled.positions} == {"s1", "s2"}


@pytest.mark.long
@pytest.mark.parametrize("engine", ["sqlite"])
async def test_nobody_takes_a_shard_whose_changes_take_longer_than_a_lease(make_store: MakeStore) -> None:
    store, handled, written, is_late = await streaming(make_store), Handled(), list[object](), asyncio.Event()

    async def before(request: object) -> None:
        written.extend([request] * isinstance(request, Write))
        if len(written) >= 7:
            is_late.set()

    def worker(name: str) -> StreamWorker:
        async def handle(shard: str, records: Sequence[StreamRecord]) -> None:
            await is_late.wait()
            await handled.by(name)(shard, records)

        return StreamWorker(graph, HeldStore(store, before), handle, name, FollowOptions(1.0, 0.005))

    await put(store, "t0")
    async with running(worker("one"), worker("two")):
        await handled.until(1)
    assert len(handled.by_worker) == 1


@pytest.mark.parametrize("engine", ["sqlite"])
async def test_a_worker_that_dies_is_replaced_and_one_that_stops_at_once(make_store: MakeStore) -> None:
    """A process that is killed gives nothing back."""
    store, handled = await streaming(make_store), Handled()
    killable = Killable(store)
    dying = asyncio.create_task(StreamWorker(graph, killable.held, handled.by("dying"), "dying", QUICK).run())
    await put(store, "t0")
    await handled.until(1)
    await caught_up(store)
    killable.is_dead = True
    dying.cancel()
    with suppress(asyncio.CancelledError):
        await dying
    before = {*handled.positions}
    async with running(StreamWorker(graph, store, handled.by("next"), "next", QUICK)):
        await put(store, "t1")
        await handled.until(len(before) + 1)
    stream = await store.send(DescribeStream())
    assert [each.owner for each in (await read_leases(graph, store, stream)).values()] == [""]


@pytest.mark.long
@pytest.mark.timeout(300)
async def test_nothing_is_lost_or_counted_twice_when_everything_is_disturbed(tmp_path: Path) -> None:
    happened, found = await while_followed(None, tmp_path, "2", 30)
    assert found == []
    assert {"killed", "split", "replayed", "clock set", "poisoned", "corrected"} <= happened.keys()


@pytest.mark.long
@pytest.mark.timeout(300)
@pytest.mark.parametrize("engine", [LOCAL])
async def test_the_same_on_dynamodb_local_that_throttles(
    engine: str, local_endpoint: str, tmp_path: Path
) -> None:
    _, found = await while_followed(local_endpoint, tmp_path, "1", 4, Faults.THROTTLED)
    assert found == []


async def test_a_worker_follows_a_table_on_every_engine(make_store: MakeStore) -> None:
    store = await make_store(graph.table)
    with pytest.raises(Unavailable, match="is off"):
        await StreamWorker(graph, store, StreamCounter(graph, store).apply, "w", QUICK).run()
    split = await streaming(make_store)
    store = split.store
    worker = StreamWorker(graph, store, StreamCounter(graph, store).apply, "w", QUICK)
    async with running(worker):
        await store.send(BatchWrite((of_team("t0"), of_member("t0", "p0", 5))))
        async with asyncio.timeout(30):
            while (await stored(store)).get(TEAM_0, {}).get("size") != 1:  # noqa: ASYNC110  # the table tells nobody
                await asyncio.sleep(0.02)
    assert worker.progress.changes >= 2
    assert worker.progress.lag == 0.0


def test_the_lag_is_that_of_the_shard_that_is_most_behind(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("keygraph.changes.following.time.time", lambda: 100.0)
    progress = Progress()

    def at(seconds: float) -> list[StreamRecord]:
        return [StreamRecord(("p",), None, {}, "1", seconds)]

    progress.read("a", at(90.0))
    progress.read("b", at(70.0))
    assert (progress.lag, progress.shards, progress.changes) == (30.0, 2, 2)
    progress.read("b", [])
    assert progress.lag == 10.0
    # A clock that is behind.
    progress.read("a", at(200.0))
    assert progress.lag == 0.0
    progress.left("a")
    assert progress.lag == 0.0


@pytest.mark.parametrize("engine", ["sqlite"])
async def test_a_worker_without_changes_writes_little(make_store: MakeStore) -> None:
    """What it notes of itself is in the stream too."""
    store = (await streaming(make_store)).store
    written = 0

    async def before(request: object) -> None:
        nonlocal written
        written += isinstance(request, Write)

    held = HeldStore(store, before)
    handled = Handled()
    async with running(StreamWorker(graph, held, handled.by("one"), "one", QUICK)):
        await put(store, "t0")
        await handled.until(1)
        began = asyncio.get_running_loop().time()
        await asyncio.sleep(0.5)
        took = asyncio.get_running_loop().time() - began
    assert written <= 4 + took / (QUICK.lease_seconds / 4)


async def test_one_that_is_canceled_as_it_is_woken_ends(make_store: MakeStore) -> None:
    store = await streaming(make_store)
    worker = StreamWorker(graph, store, StreamCounter(graph, store).apply, "w", QUICK)
    woken = asyncio.Event()
    waiting = asyncio.create_task(worker._wait(woken, 60))
    for _ in range(3):
        await asyncio.sleep(0)
    woken.set()
    waiting.cancel()
    with pytest.raises(asyncio.CancelledError):
        await waiting
