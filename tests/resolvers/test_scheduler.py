"""When a batch of keys leaves: full at once, else when nothing that is under way can add to it."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from keygraph.dynamo.items import Item
from keygraph.dynamo.limits import BATCH_GET_KEYS
from keygraph.dynamo.store import Answer, Batch, BatchGet, Cost, Page, Query, Request
from keygraph.dynamo.table import Key, Table
from keygraph.lists.listing import bind
from keygraph.lists.reading import Extent
from keygraph.turns import TURN_SECONDS
from keygraph_examples.commerce import graph as commerce
from keygraph_resolvers.read import scheduler
from keygraph_resolvers.read.loaders import NeighbourLoader, NodeLoader, PageOf
from keygraph_resolvers.read.meter import MeteredStore, Read
from keygraph_resolvers.read.scheduler import Scheduler, rounds


class Held:
    """A store whose Queries answer when a test says so; it remembers which batches were sent, and when."""

    def __init__(self) -> None:
        self.batches: list[str] = []
        self.queries: dict[str, list[asyncio.Future[Page]]] = {}
        self.late = asyncio.Event()
        """What a batch waits for that has the key `late`."""

    @property
    def table(self) -> Table:
        return commerce.table

    async def send(self, request: Request[Answer], /) -> Answer:
        answer: Any
        if isinstance(request, BatchGet):
            self.batches.append(" ".join(str(key[0]) for key in request.keys))
            if ("late", "late") in request.keys:
                await self.late.wait()
            answer = Batch([{"PK": key[0], "SK": key[1]} for key in request.keys], Cost(1))
        else:
            assert isinstance(request, Query)
            future: asyncio.Future[Page] = asyncio.get_running_loop().create_future()
            self.queries.setdefault(str(request.partition), []).append(future)
            answer = await future
        return answer  # type: ignore[no-any-return]  # as the request says

    async def close(self) -> None:
        """Nothing is open."""

    def answer(self, user: str, *, more: bool = False) -> None:
        """Answers the oldest Query of a user's orders; `more` says that the range goes on."""
        last = ("USER#" + user, "ORDER#1", "ORDER#1", "ORDER#1") if more else None
        self.queries[f"USER#{user}"].pop(0).set_result(Page([], 0, last, Cost(1)))


class Trial:
    """A scheduler over a held store, with what came of its lookups."""

    def __init__(self) -> None:
        self.store = Held()
        meter = MeteredStore(self.store)
        self.nodes = NodeLoader(meter)
        self.scheduler = Scheduler(self.nodes, NeighbourLoader(meter, 64), self._turn)
        self.came: list[tuple[str, int]] = []
        self.turns = 0
        self.clock = 0.0
        self.work = 0.0
        """How much processor time the answer of a list takes, by this clock."""

    async def _turn(self) -> None:
        self.turns += 1

    def _loaded(self, found: Any, round_trip: int) -> None:
        self.clock += self.work

    def key(self, name: str) -> Key:
        return (name, name)

    def look_up(self, round_trip: int, *names: str, later: tuple[int, ...] = ()) -> None:
        def then(came: list[tuple[Any, Item | Exception | None]], round_trip: int) -> None:
            self.came += [(str(name), round_trip) for name, _ in came]

        wanted = [(name, self.key(name)) for name in names]
        self.scheduler.look_up(wanted, "place", round_trip, frozenset(later), then)

    def load(
        self, user: str, round_trip: int, *later: int, goes_on: bool = False, extent: Extent | None = None
    ) -> None:
        orders = bind(commerce, commerce.path(commerce.types["User"], "orders"), (user,))
        read = Read(("place",), round_trip, frozenset(later), goes_on)
        self.scheduler.load(PageOf(orders, extent or Extent(5)), read, self._loaded)


Script = Callable[[Trial], Awaitable[None]]


async def run(start: Callable[[Trial], None], then: Script) -> Trial:
    """Runs a scheduler that starts so, and a script beside it."""
    trial = Trial()
    running = asyncio.ensure_future(trial.scheduler.run(lambda: start(trial)))
    await settled()
    await then(trial)
    await asyncio.wait_for(running, 5)
    return trial


async def settled() -> None:
    """Lets everything run that can."""
    for _ in range(12):
        await asyncio.sleep(0)


async def test_what_nothing_can_add_to_leaves() -> None:
    """A node would be waited for although nothing is on its way."""

    async def then(trial: Trial) -> None:
        assert trial.store.batches == ["a b"]

    trial = await run(lambda trial: trial.look_up(1, "a", "b"), then)
    assert trial.came == [("a", 2), ("b", 2)]


async def test_a_batch_waits_for_what_can_add_to_it() -> None:
    """The nodes of two lists would be two batches, because one list is slower than the other."""

    def start(trial: Trial) -> None:
        trial.load("x", 1, 0)
        trial.load("y", 1, 0)
        trial.look_up(2, "a")

    async def then(trial: Trial) -> None:
        trial.store.answer("x")
        await settled()
        assert trial.store.batches == []
        trial.store.answer("y")

    assert (await run(start, then)).store.batches == ["a"]


async def test_what_leads_to_other_round_trips_is_not_waited_for() -> None:
    """A batch would wait for a slow read that adds nothing to it, and everything below it too."""

    def start(trial: Trial) -> None:
        trial.load("nothing", 1)
        trial.load("x", 1, 1, 3)
        for round_trip, name in ((2, "a"), (3, "b"), (4, "c")):
            trial.look_up(round_trip, name)

    async def then(trial: Trial) -> None:
        assert trial.store.batches == ["a", "c"]
        trial.store.answer("x")
        await settled()
        assert trial.store.batches == ["a", "c", "b"]
        trial.store.answer("nothing")

    await run(start, then)


async def test_a_list_that_goes_on_adds_nothing_to_earlier_batches() -> None:
    """Everything beside a filtered list would wait until it has found what it looks for."""

    def start(trial: Trial) -> None:
        trial.load("x", 1, 0, goes_on=True)
        trial.look_up(2, "a")
        trial.look_up(4, "b")

    async def then(trial: Trial) -> None:
        assert trial.store.batches == []
        trial.store.answer("x", more=True)  # the second round trip
        await settled()
        assert trial.store.batches == ["a"]
        trial.store.answer("x", more=True)  # the third, which the fourth's batch may come from
        await settled()
        assert trial.store.batches == ["a"]
        trial.store.answer("x")
        await settled()
        assert trial.store.batches == ["a", "b"]

    await run(start, then)


async def test_full_batches_leave_early() -> None:
    """Hundreds of nodes would wait for the slowest list, although their batches cannot grow."""
    names = [f"n{number}" for number in range(2 * BATCH_GET_KEYS + 30)]

    def start(trial: Trial) -> None:
        trial.load("x", 1, 0)
        trial.look_up(2, *names)

    async def then(trial: Trial) -> None:
        assert [len(batch.split()) for batch in trial.store.batches] == [BATCH_GET_KEYS] * 2
        trial.store.answer("x")

    assert " ".join((await run(start, then)).store.batches).split() == names


@pytest.mark.parametrize("count", [1, BATCH_GET_KEYS, BATCH_GET_KEYS + 1, 3 * BATCH_GET_KEYS])
async def test_no_batch_is_too_large_and_none_empty(count: int) -> None:
    """DynamoDB would refuse a batch of more than a hundred keys, or one of none."""
    trial = await run(lambda trial: trial.look_up(1, *(f"n{number}" for number in range(count))), nothing)
    sizes = [len(batch.split()) for batch in trial.store.batches]
    assert (sum(sizes), len(sizes)) == (count, -(-count // BATCH_GET_KEYS))
    assert all(0 < size <= BATCH_GET_KEYS for size in sizes)


async def test_a_key_is_read_once_and_as_early_as_anybody_asks() -> None:
    """A node that two places ask for would be read twice, or as late as the later one asks."""

    def start(trial: Trial) -> None:
        trial.load("x", 1, 0, 1)
        trial.look_up(3, "a", "b")
        trial.look_up(2, "a")
        trial.look_up(2, "a")

    async def then(trial: Trial) -> None:
        trial.store.answer("x")

    trial = await run(start, then)
    assert trial.store.batches == ["a", "b"]
    assert sorted(trial.came) == [("a", 3), ("a", 3), ("a", 3), ("b", 4)]


async def test_a_batch_with_a_key_that_somebody_else_has_asked_for() -> None:
    """An operation would fail, since an item that a rule looks for comes later than the rest of the batch."""

    def start(trial: Trial) -> None:
        trial.nodes.load_batch([trial.key("late")])
        trial.look_up(1, "soon", "late")

    async def then(trial: Trial) -> None:
        assert trial.store.batches == ["late", "soon"]
        assert not trial.came
        trial.store.late.set()

    trial = await run(start, then)
    assert trial.came == [("soon", 2), ("late", 2)]


async def test_what_waits_for_a_batch_feeds_later_ones() -> None:
    """The nodes behind a batch would be two batches: those that are known already would not wait for the others."""

    def start(trial: Trial) -> None:
        trial.load("x", 1, 0)
        trial.look_up(2, "a", later=(0,))
        trial.look_up(3, "b")

    async def then(trial: Trial) -> None:
        assert trial.store.batches == []
        trial.store.answer("x")

    assert (await run(start, then)).store.batches == ["a", "b"]


async def test_an_item_that_is_read_with_other_things() -> None:
    """A node that is read with its lists would be read once more, or whoever waits for it would wait for ever."""

    def start(trial: Trial) -> None:
        for name in ("held", "missed", "unwanted"):
            trial.scheduler.hold(trial.key(name), 1, may_be_missed=True)
        trial.look_up(1, "held", "missed")
        trial.load("x", 1)

    async def then(trial: Trial) -> None:
        assert trial.store.batches == []
        trial.scheduler.release(trial.key("held"), {"PK": "held", "SK": "held"}, 2)
        trial.scheduler.look_up_held(trial.key("missed"), 2)
        trial.scheduler.look_up_held(trial.key("unwanted"), 2)
        trial.store.answer("x")

    trial = await run(start, then)
    assert trial.store.batches == ["missed"]
    assert trial.came == [("held", 2), ("missed", 3)]


async def test_what_may_be_missed_is_waited_for() -> None:
    """Nodes that their Queries did not reach would be a request each, and what is behind them another batch."""

    def start(trial: Trial) -> None:
        for name in ("one", "two"):
            trial.scheduler.hold(trial.key(name), 1, may_be_missed=True)
            trial.look_up(1, name, later=(0,))
        trial.look_up(2, "known")
        trial.look_up(3, "behind")
        for user in "xy":
            trial.load(user, 1)

    async def then(trial: Trial) -> None:
        trial.scheduler.look_up_held(trial.key("one"), 2)
        trial.store.answer("x")
        await settled()
        assert trial.store.batches == []
        trial.scheduler.look_up_held(trial.key("two"), 2)
        trial.store.answer("y")
        await settled()

    trial = await run(start, then)
    assert trial.store.batches == ["known one two", "behind"]
    assert trial.came == [("known", 3), ("one", 3), ("two", 3), ("behind", 4)]


async def test_what_is_surely_reached_holds_back_no_batch_after_the_next() -> None:
    """A slow Query would delay batches that nothing behind its node can add to."""

    def start(trial: Trial) -> None:
        trial.scheduler.hold(trial.key("sure"), 1, may_be_missed=False)
        trial.look_up(1, "sure", later=(0,))
        trial.look_up(2, "next")
        trial.look_up(3, "later")
        trial.load("x", 1)

    async def then(trial: Trial) -> None:
        assert trial.store.batches == ["later"]
        trial.scheduler.release(trial.key("sure"), {"PK": "sure", "SK": "sure"}, 2)
        trial.store.answer("x")

    assert (await run(start, then)).store.batches == ["later", "next"]


@pytest.mark.parametrize(("together", "turns"), [(False, 0), (True, 2)])
async def test_what_was_worked_in_earlier_turns_is_not_counted(
    monkeypatch: pytest.MonkeyPatch, *, together: bool, turns: int
) -> None:
    """Any operation that waits a few times would be taken for a large one, and large ones go on one at a time."""

    def start(trial: Trial) -> None:
        for clock in ("thread_time", "perf_counter"):
            monkeypatch.setattr(scheduler, clock, lambda: trial.clock)
        trial.work = 0.6 * TURN_SECONDS
        for user in "uvwxyz":
            trial.load(user, 1)

    async def then(trial: Trial) -> None:
        for user in "uvwxyz":
            trial.store.answer(user)
            if not together:
                await settled()

    assert (await run(start, then)).turns == turns


async def test_the_clock_of_the_processor_is_asked_for_turns_and_not_for_answers(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """It is a call of the system, which would be made for each node of an operation."""
    asked = Counter[str]()

    def thread_time() -> float:
        asked["in all"] += 1
        return 0.0

    def start(trial: Trial) -> None:
        monkeypatch.setattr(scheduler, "thread_time", thread_time)
        monkeypatch.setattr(scheduler, "perf_counter", lambda: 0.0)
        for number in range(50):
            trial.look_up(1, str(number))

    assert len((await run(start, nothing)).came) == 50
    assert asked.total() <= 4


async def test_operations_that_work_for_long_do_so_one_after_the_other(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Sixty of them would have sixty turns in each round of the event loop, and others would wait for all."""
    clock, steps = 0.0, Counter[int]()

    def works(*_: Any) -> None:
        nonlocal clock
        clock += 0.6 * TURN_SECONDS
        steps[rounds().number] += 1

    for each in ("thread_time", "perf_counter"):
        monkeypatch.setattr(scheduler, each, lambda: clock)
    monkeypatch.setattr(Trial, "_loaded", works)
    trials = [Trial() for _ in range(10)]
    running = []
    for trial in trials:

        def start(trial: Trial = trial) -> None:
            for user in "uvwxyz":
                trial.load(user, 1)

        running.append(asyncio.ensure_future(trial.scheduler.run(start)))
    await settled()
    for trial in trials:
        for user in "uvwxyz":
            trial.store.answer(user)
    await asyncio.wait_for(asyncio.gather(*running), 5)
    assert steps.total() == 60
    first, *others = steps.values()
    # Each has begun.
    assert first <= 11
    assert max(others) <= 2


async def test_what_a_step_raises_ends_the_run() -> None:
    """A fault would leave the operation waiting for ever, or tasks behind it."""

    def start(trial: Trial) -> None:
        def fails(came: Any, round_trip: int) -> None:
            raise KeyError("a fault")

        trial.scheduler.look_up([("a", trial.key("a"))], "place", 1, frozenset(), fails)

    with pytest.raises(KeyError, match="a fault"):
        await run(start, nothing)


async def nothing(trial: Trial) -> None:
    """No script."""
