"""When a batch of keys leaves: full at once, else when nothing that is under way can add to it."""

from __future__ import annotations

import asyncio
import time
from collections import Counter, deque
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import count
from random import Random
from typing import Any, cast

import pytest

from keygraph.dynamo.items import Item
from keygraph.dynamo.limits import BATCH_GET_KEYS
from keygraph.dynamo.store import Answer, Batch, BatchGet, Cost, Page, Query, Request
from keygraph.dynamo.table import Key, Table
from keygraph.lists.extent import Extent
from keygraph.lists.query import ListForm
from keygraph.turns import BUDGET, TURN_SECONDS, WorkBudget
from keygraph_examples.commerce import graph as commerce
from keygraph_resolvers import Service
from keygraph_resolvers.engine import engine
from keygraph_resolvers.engine.engine import Engine, rounds
from keygraph_resolvers.engine.requests import All, GetItems, Load, Reads, Start
from keygraph_resolvers.engine.worst import AHEAD, KeyLookups, StepStart, Wait, key_trips
from keygraph_resolvers.read.loaders import NeighbourLoader, NodeLoader
from keygraph_resolvers.read.meter import MeteredStore, Read, is_round_over
from tests.clocks import until
from tests.conftest import MakeStore
from tests.schemas import schema_of


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
    """An engine over a held store, with what came of its lookups."""

    key_trips: Mapping[object, Any] = {}

    def __init__(self) -> None:
        self.store = Held()
        meter = MeteredStore(self.store)
        self.nodes, self.neighbours = NodeLoader(meter), NeighbourLoader(meter, 64)
        self.engine = Engine(cast(Any, self))
        self.came, self.turns = list[tuple[str, int]](), 0
        self.clock = self.work = 0.0
        """How much processor time the answer of a list takes, by this clock."""

    async def next_turn(self) -> None:
        self.turns += 1

    def _loaded(self, found: Any, round_trip: int) -> None:
        self.clock += self.work

    def key(self, name: str) -> Key:
        return (name, name)

    def look_up(self, round_trip: int, *names: str, later: tuple[int, ...] = ()) -> None:
        def then(came: list[tuple[Any, Item | Exception | None]], round_trip: int) -> None:
            self.came += [(str(name), round_trip) for name, _ in came]

        wanted = [(name, self.key(name)) for name in names]
        self.engine.look_up(wanted, "place", round_trip, frozenset(later), then)

    def load(
        self, user: str, round_trip: int, *later: int, goes_on: bool = False, extent: Extent | None = None
    ) -> None:
        orders = commerce.node_lists["User", "orders"]
        query = ListForm(commerce, orders, extent=extent or Extent(5)).of((user,))
        read = Read(("place",), round_trip, frozenset(later), goes_on)
        self.engine.load(query, read, self._loaded)


Script = Callable[[Trial], Awaitable[None]]


async def run(start: Callable[[Trial], None], then: Script) -> Trial:
    """Runs an engine that starts so, and a script beside it."""
    trial = Trial()
    running = asyncio.ensure_future(trial.engine.run(lambda: start(trial)))
    await settled()
    await then(trial)
    await asyncio.wait_for(running, 5)
    return trial


async def settled() -> None:
    """Lets everything run that can."""
    for _ in range(12):
        await asyncio.sleep(0)


async def test_what_leads_to_other_round_trips_is_not_waited_for() -> None:
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
    trial = await run(lambda trial: trial.look_up(1, *(f"n{number}" for number in range(count))), nothing)
    sizes = [len(batch.split()) for batch in trial.store.batches]
    assert (sum(sizes), len(sizes)) == (count, -(-count // BATCH_GET_KEYS))
    assert all(0 < size <= BATCH_GET_KEYS for size in sizes)


async def test_a_batch_with_a_key_that_somebody_else_has_asked_for() -> None:
    def start(trial: Trial) -> None:
        trial.nodes.load_batch([trial.key("late")])
        trial.look_up(1, "soon", "late")

    async def then(trial: Trial) -> None:
        assert trial.store.batches == ["late", "soon"]
        assert not trial.came
        trial.store.late.set()

    trial = await run(start, then)
    assert trial.came == [("soon", 2), ("late", 2)]


async def test_an_item_that_is_read_with_other_things() -> None:
    def start(trial: Trial) -> None:
        for name in ("held", "missed", "unwanted"):
            trial.engine.hold(trial.key(name), 1, may_be_missed=True)
        trial.look_up(1, "held", "missed")
        trial.load("x", 1)

    async def then(trial: Trial) -> None:
        assert trial.store.batches == []
        trial.engine.release(trial.key("held"), {"PK": "held", "SK": "held"}, 2)
        trial.engine.look_up_held(trial.key("missed"), 2)
        trial.engine.look_up_held(trial.key("unwanted"), 2)
        trial.store.answer("x")

    trial = await run(start, then)
    assert trial.store.batches == ["missed"]
    assert trial.came == [("held", 2), ("missed", 3)]


async def test_what_may_be_missed_is_waited_for() -> None:
    def start(trial: Trial) -> None:
        for name in ("one", "two"):
            trial.engine.hold(trial.key(name), 1, may_be_missed=True)
            trial.look_up(1, name, later=(0,))
        trial.look_up(2, "known")
        trial.look_up(3, "behind")
        for user in "xy":
            trial.load(user, 1)

    async def then(trial: Trial) -> None:
        trial.engine.look_up_held(trial.key("one"), 2)
        trial.store.answer("x")
        await settled()
        assert trial.store.batches == []
        trial.engine.look_up_held(trial.key("two"), 2)
        trial.store.answer("y")
        await settled()

    trial = await run(start, then)
    assert trial.store.batches == ["known one two", "behind"]
    assert trial.came == [("known", 3), ("one", 3), ("two", 3), ("behind", 4)]


async def test_what_is_surely_reached_holds_back_no_batch_after_the_next() -> None:
    def start(trial: Trial) -> None:
        trial.engine.hold(trial.key("sure"), 1, may_be_missed=False)
        trial.look_up(1, "sure", later=(0,))
        trial.look_up(2, "next")
        trial.look_up(3, "later")
        trial.load("x", 1)

    async def then(trial: Trial) -> None:
        assert trial.store.batches == ["later"]
        trial.engine.release(trial.key("sure"), {"PK": "sure", "SK": "sure"}, 2)
        trial.store.answer("x")

    assert (await run(start, then)).store.batches == ["later", "next"]


@pytest.mark.parametrize(("together", "own", "turns"), [(False, 1, 0), (True, 1, 2), (True, 0, 0)])
async def test_what_others_or_earlier_turns_have_worked_is_not_counted(
    monkeypatch: pytest.MonkeyPatch, *, together: bool, own: int, turns: int
) -> None:
    others = 0.0

    def start(trial: Trial) -> None:
        monkeypatch.setattr(engine, "thread_time", lambda: others + own * trial.clock)
        monkeypatch.setattr(engine, "perf_counter", lambda: 1e9 + others + trial.clock)
        trial.work = 0.6 * TURN_SECONDS
        for user in "uvwxyz":
            trial.load(user, 1)

    async def then(trial: Trial) -> None:
        nonlocal others
        rounds().count(0.0)
        await asyncio.sleep(0)
        others = 9 * TURN_SECONDS
        for user in "uvwxyz":
            trial.store.answer(user)
            if not together:
                await settled()

    assert (await run(start, then)).turns == turns


async def test_the_clock_of_the_processor_is_asked_for_turns_and_not_for_answers(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    asked = count()

    def start(trial: Trial) -> None:
        monkeypatch.setattr(engine, "thread_time", lambda: 0.0 * next(asked))
        monkeypatch.setattr(engine, "perf_counter", lambda: 0.0)
        for number in range(50):
            trial.look_up(1, str(number))

    assert len((await run(start, nothing)).came) == 50
    assert next(asked) <= 4


async def test_operations_that_work_for_long_do_so_one_after_the_other(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    clock, steps = 0.0, Counter[int]()

    def works(*_: Any) -> None:
        nonlocal clock
        clock += 0.6 * TURN_SECONDS
        steps[rounds().number] += 1

    for each in ("thread_time", "perf_counter"):
        monkeypatch.setattr(engine, each, lambda: clock)
    monkeypatch.setattr(Trial, "_loaded", works)

    def start(trial: Trial) -> None:
        for user in "uvwxyz":
            trial.load(user, 1)

    async def then(trial: Trial) -> None:
        for user in "uvwxyz":
            trial.store.answer(user)

    await asyncio.gather(*(run(start, then) for _ in range(10)))
    assert steps.total() == 60
    first, *others = steps.values()
    assert first <= 11  # each has begun
    assert max(others) <= 2


async def test_a_round_that_is_over_lets_nothing_begin_and_the_next_one_those_who_have_waited_least(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    now, came = 0.0, list[tuple[int, str]]()
    monkeypatch.setattr(engine, "perf_counter", lambda: now)
    shared = rounds()

    async def come(name: str, waiting: Awaitable[None]) -> None:
        nonlocal now
        await waiting
        now += 1.2 * TURN_SECONDS
        came.append((shared.number, name))

    async def reads(name: str, count: int) -> None:
        budget = WorkBudget()
        budget.rounds, budget.client = shared, name
        await asyncio.gather(*(come(name, budget.wait_for_request()) for _ in range(count)))

    large = asyncio.create_task(reads("large", 40))
    many = [asyncio.create_task(reads("many", 1)) for _ in range(40)]
    crowd = [asyncio.create_task(come("crowd", shared.enter("crowd"))) for _ in range(40)]
    await asyncio.sleep(0)
    await asyncio.gather(large, *crowd, *many, reads("small", 2), come("other", shared.enter("other")))
    assert len(came) == 123
    order = [name for _, name in came]
    assert max(order.index("other"), len(order) - 1 - order[::-1].index("small")) < 16
    assert max(Counter(number for number, _ in came).values()) <= 5


async def test_a_large_operation_is_not_passed_by_all_that_another_client_sends() -> None:
    shared = rounds()
    crowd = [shared.enter("crowd") for _ in range(500)]
    large = shared.queue(1_000, "other", is_turn=True)
    await large
    assert sum(each.done() for each in crowd) < 50
    assert await asyncio.gather(*crowd) == [True] * 500


async def test_a_large_operation_is_not_passed_by_few_requests_for_ever() -> None:
    shared = rounds()
    large = shared.queue(1_000, "other", is_turn=True)
    waiting = deque(shared.enter("crowd") for _ in range(8))
    passed = 0
    while not large.done():
        await waiting.popleft()
        waiting.append(shared.enter("crowd"))
        passed += 1
        assert passed < 10_000
    assert await asyncio.gather(*waiting)


async def test_clients_that_ask_again_and_again_do_not_pass_one_that_waits(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A hundred of them, each with one request at a time, and one with three requests at once."""
    now, begun, is_busy = 0.0, 0, asyncio.Event()
    monkeypatch.setattr(engine, "perf_counter", lambda: now)
    shared = rounds()

    async def asks(client: str) -> None:
        nonlocal now, begun
        while begun < 10_000:
            await shared.begin(client)
            now, begun = now + TURN_SECONDS / 10, begun + 1
            if begun > 1_000:
                is_busy.set()
            await asyncio.sleep(0)

    crowd = [asyncio.create_task(asks(f"crowd {number}")) for number in range(100)]
    await is_busy.wait()
    before = begun
    await asyncio.gather(*(shared.enter("seldom") for _ in range(3)))
    assert begun - before < 300
    await asyncio.gather(*crowd)


async def test_one_that_comes_seldom_passes_hundreds_that_come_all_the_time() -> None:
    """Nor do ever new ones pass all those that wait."""
    shared, begun, is_busy = rounds(), Counter[str](), asyncio.Event()

    async def asks(client: str) -> None:
        while not is_busy.is_set() or begun[client] < 4:
            await shared.queue(0, client, is_turn=True)
            begun[client] += 1
            if begun[client] == 3:
                is_busy.set()

    async def comes(client: str) -> None:
        await shared.queue(0, client, is_turn=True)
        begun["seldom"] += 1

    crowd = [asyncio.create_task(asks(f"crowd {number}")) for number in range(300)]
    await is_busy.wait()
    before = begun.total()
    await comes("seldom")
    assert begun.total() - before < 5
    before = begun.total()
    await asyncio.gather(*(comes(f"new {number}") for number in range(100)))
    assert 180 < begun.total() - before < 220
    await asyncio.gather(*crowd)


async def test_who_works_little_passes_those_who_work_much(monkeypatch: pytest.MonkeyPatch) -> None:
    trial = Trial()
    trial.engine._budget.client, trial.work = "much", 9 * TURN_SECONDS
    for each in ("thread_time", "perf_counter"):
        monkeypatch.setattr(engine, each, lambda: trial.clock)
    _ = [rounds().enter(str(client)) for client in range(100)]
    await trial.engine.run(lambda: trial.engine.due.append((trial._loaded, (None, 0))))
    *_, last = map(rounds().enter, [*["little"] * 10, "much"])
    assert max(rounds()._seldom)[-1] is last


async def test_what_was_given_up_does_not_stay_behind_what_waits() -> None:
    shared = rounds()
    waiting = [shared.enter("other") for _ in range(3)]
    for _ in range(10_000):
        shared.enter("crowd").cancel()
        assert len(shared.waiting) <= engine._KEPT_WAITING + 1
    assert await asyncio.gather(*waiting) == [True] * 3
    for _ in range(engine._KEPT_WAITING):
        await asyncio.sleep(0)
    assert [*shared._places, *shared._had, *shared._seldom] == []


async def test_new_connections_of_a_proxy_do_not_come_before_one_that_comes_again() -> None:
    let_through = list[str]()
    clients = [f"proxy\n{number}" for number in range(200)]
    for client in (*clients[:100], *["other"] * 5, *clients[100:]):
        rounds().enter(client).add_done_callback(lambda _, client=client: let_through.append(client))
    await until(lambda: len(let_through) == 205)
    assert [number for number, client in enumerate(let_through) if client == "other"][-1] < 30


async def test_what_was_let_through_does_not_stay_behind_those_who_come_seldom() -> None:
    shared = rounds()
    many, few = deque[asyncio.Future[bool]](), deque[asyncio.Future[bool]]()
    for number in range(3_000):
        many.append(shared.queue(0, "many", is_turn=True))
        few.append(shared.queue(0, f"few {number % 500}", is_turn=True))
        if number > 20:
            await many.popleft()
            await few.popleft()
        assert len(shared._seldom) <= engine._KEPT_WAITING + 1
    assert await asyncio.gather(*many, *few) == [True] * 42


async def test_requests_alone_fill_a_round_and_waiting_halves_it(monkeypatch: pytest.MonkeyPatch) -> None:
    clock, shared, budget = count(0, TURN_SECONDS / 4), rounds(), WorkBudget()
    monkeypatch.setattr(time, "perf_counter", lambda: next(clock))
    monkeypatch.setattr(engine, "perf_counter", time.perf_counter)
    budget.rounds = shared

    def requests_of_a_round() -> int:
        return next(number for number in range(100) if is_round_over(budget, next(clock)))

    assert 9 < requests_of_a_round() < 30
    waiting = asyncio.gather(*(shared.queue(0, "", is_turn=True) for _ in range(3)))
    await asyncio.sleep(0)
    await asyncio.sleep(0)
    assert shared.turn == TURN_SECONDS / 2
    assert 1 < requests_of_a_round() < 6
    await waiting
    assert shared.turn == TURN_SECONDS


@pytest.mark.parametrize("engine", ["sqlite"])
async def test_an_operation_that_was_let_through_waits_once_for_its_request_and_its_answer(
    make_store: MakeStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The time of each round is used up as it begins, and others wait all the time."""
    asked = Service(schema_of(commerce), await make_store(commerce.table), secret=b"s" * 32)
    shared = rounds()
    start = shared.count

    def count(*work: Any) -> None:
        start(*work)
        shared.ends = 1e-9

    async def others() -> None:
        while True:
            await shared.enter("crowd")

    crowd = [asyncio.create_task(others()) for _ in range(3)]
    monkeypatch.setattr(shared, "count", count)
    await shared.enter("")
    answer = await asked.execute('{ user(userId: "nobody") { name } }')
    for each in crowd:
        each.cancel()
    assert answer == {"data": {"user": None}}
    assert cast(WorkBudget, BUDGET.get()).waited == 1


@dataclass(eq=False)
class EachList:
    """A step that reads a list of each owner, and a node for each."""

    suffix = ""
    breadth = 1

    def run(self, op: Trial, owners: Sequence[str]) -> Reads[None]:
        yield All([self.read(owner) for owner in owners])

    def read(self, owner: str) -> Reads[None]:
        orders = commerce.node_lists["User", "orders"]
        yield Load(ListForm(commerce, orders, extent=Extent(5)).of((owner,)))
        yield GetItems([(owner, (owner, owner))])


@pytest.mark.parametrize("owners", [1_000, pytest.param(40_000, marks=pytest.mark.long)])
async def test_many_owners_are_begun_in_turns_and_read_in_full_batches(
    monkeypatch: pytest.MonkeyPatch, owners: int
) -> None:
    step, begun, clock = EachList(), Counter[int](), count(0, TURN_SECONDS / 16)
    for each in ("thread_time", "perf_counter"):
        monkeypatch.setattr(engine, each, lambda: next(clock))

    def start(trial: Trial) -> None:
        trial.neighbours.ask = partial(_begun, trial.neighbours.ask, begun)  # type: ignore[method-assign]
        trial.engine._key_trips = {step: {"page": frozenset({0})}}
        trial.engine.begin(Start(step, [f"n{number}" for number in range(owners)]), 1, "place")

    async def then(trial: Trial) -> None:
        answered = 0
        while answered < owners:
            for user in [name.removeprefix("USER#") for name in trial.store.queries]:
                if trial.store.queries[f"USER#{user}"]:
                    trial.store.answer(user)
                    answered += 1
            await settled()

    trial = await run(start, then)
    assert [len(batch.split()) for batch in trial.store.batches] == [BATCH_GET_KEYS] * (
        owners // BATCH_GET_KEYS
    )
    assert begun.total() == owners
    assert max(begun.values()) <= 8 * 16


def _begun(ask: Callable[[Any], Any], begun: Counter[int], request: Any) -> Any:
    begun[rounds().number] += 1
    return ask(request)


async def test_what_a_step_raises_ends_the_run() -> None:
    def start(trial: Trial) -> None:
        def fails(came: Any, round_trip: int) -> None:
            raise KeyError("a fault")

        trial.engine.look_up([("a", trial.key("a"))], "place", 1, frozenset(), fails)

    with pytest.raises(KeyError, match="a fault"):
        await run(start, nothing)


async def nothing(trial: Trial) -> None:
    """No script."""


# --- The round trips in which keys are requested ----------------------------------------------------------

STEPS = EachList(), EachList()


def made_worst(random: Random) -> list[Any]:
    """Some lookups, waits and starts of other steps."""
    found = list[Any]()
    for _ in range(random.randrange(7)):
        least, more = random.randrange(3), random.randrange(3)
        within = least, least + more
        found.append(
            random.choice(
                [
                    KeyLookups((), unbatched=random.randrange(2), within=within),
                    StepStart(random.choice(STEPS), within=within),
                    Wait(random.choice(("page", "items")), least + more, least, random.random() < 0.1),
                ]
            )
        )
    return found


def requested_from(worst: Sequence[Any], keys_of: Mapping[Any, set[int]]) -> set[int]:
    """The round trips in which a step requests keys that goes on with these requests: it takes them one by one."""
    now, found = {0}, set[int]()
    for each in worst:
        match each:
            case Wait():
                now = {one + passed for one in now for passed in range(each.least, each.most + 1)}
                if each.repeats:
                    return found | {one + passed for one in now for passed in range(AHEAD)}
            case KeyLookups(unbatched=0) | StepStart():
                keys = keys_of[each.step] if isinstance(each, StepStart) else {0}
                least, most = each.within
                found |= {
                    one + key + passed for one in now for key in keys for passed in range(least, most + 1)
                }
    return found


def test_a_step_says_in_which_round_trips_after_a_wait_it_requests_keys() -> None:
    random, ahead = Random(0), {*range(AHEAD)}
    for _ in range(300):
        worst = made_worst(random)
        keys_of = {step: {random.randrange(AHEAD) for _ in range(random.randrange(3))} for step in STEPS}
        bits_of = {step: sum(1 << each for each in keys) for step, keys in keys_of.items()}
        expected: dict[str, set[int]] = {}
        for number, each in enumerate(worst):
            if isinstance(each, Wait):
                rest = ahead if each.repeats else requested_from(worst[number + 1 :], keys_of) & ahead
                expected[each.name] = expected.get(each.name, set()) | rest
        bits, waits = key_trips(worst, bits_of.__getitem__)
        assert bits == sum(1 << each for each in requested_from(worst, keys_of) & ahead)
        assert waits == expected
