"""The gate before DynamoDB: in an outage nothing but a probe is sent, and a part of failures is no outage."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest

from keygraph.dynamo.store import DescribeTable, Query
from keygraph.dynamo.table import Table
from keygraph.dynamo.traffic import Traffic, traffic_of
from keygraph.engines.dynamodb import gate as gate_module
from keygraph.engines.dynamodb.client import ClientTransport
from keygraph.engines.dynamodb.engine import DynamoDBStore, open_dynamodb
from keygraph.engines.dynamodb.gate import AwakeClock, Gate
from keygraph.engines.dynamodb.retrying import Backoff, Quota
from keygraph.errors import Throttled, TimedOut, Unavailable
from keygraph.turns import BUDGET, WorkBudget
from tests.clocks import until
from tests.keygraph.faulty import FaultyDynamoDB

table = Table("Shop", partition_key="PK", sort_key="SK")
QUICK = Backoff(first=0.001, longest=0.01)


@pytest.fixture(autouse=True)
def in_a_hurry(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(gate_module, "_BEAT", 0.025)
    monkeypatch.setattr(gate_module, "_OUTAGE_SECONDS", 0.2)
    monkeypatch.setattr(gate_module, "_FIRST_PAUSE", 0.1)
    monkeypatch.setattr(gate_module, "_LONGEST_PAUSE", 0.5)


class Clock(AwakeClock):
    """A clock that a test sets, so that it does not matter how busy the machine is."""

    def __init__(self) -> None:
        super().__init__(60.0)
        self.now = 0.0

    def time(self) -> float:
        return self.now


@asynccontextmanager
async def clients(store: DynamoDBStore, count: int = 32) -> AsyncIterator[list[Exception | None]]:
    """Clients that ask for something again and again; what came of it: None for an answer."""
    outcomes: list[Exception | None] = []

    async def ask() -> None:
        while True:
            try:
                await store.send(Query("USER#1"))
                outcomes.append(None)
            except Exception as error:
                outcomes.append(error)
            await asyncio.sleep(0.005)

    asking = [asyncio.create_task(ask()) for _ in range(count)]
    try:
        yield outcomes
    finally:
        for each in asking:
            each.cancel()
        await asyncio.gather(*asking, return_exceptions=True)


@pytest.mark.parametrize(
    ("fault", "expected", "message"),
    [
        ("throttled", Throttled, "DynamoDB throttles requests to the table Shop"),
        ("failed", Unavailable, "failed with status 500"),
        ("cut before", Unavailable, "is it running?"),
    ],
)
@pytest.mark.long
async def test_in_an_outage_a_trickle_is_sent(
    fault: str, expected: type[Exception], message: str, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO, "keygraph")
    server = FaultyDynamoDB(failing=1.0, faults=(fault,))
    async with server.running() as url, open_dynamodb(table, url, deadline=5.0) as store:
        async with clients(store) as outcomes:
            await until(lambda: store.traffic.outage is not None and store.traffic.under_way <= 1)
            assert message in (store.traffic.outage or "")
            server.happened.clear()
            outcomes.clear()
            began = asyncio.get_running_loop().time()
            await asyncio.sleep(1.0)
            await until(lambda: len(outcomes) > 50 and server.happened[fault] > 0)
            # One probe after each pause, of 0.1 to 0.5 seconds.
            assert server.happened[fault] <= (asyncio.get_running_loop().time() - began) / 0.1
            assert {type(each) for each in outcomes} == {expected}
            server.failing = 0.0
            server.happened.clear()
            # The next probe ends it.
            await until(lambda: store.traffic.outage is None)
            assert server.happened.keys() == {"none"}
            outcomes.clear()
            await asyncio.sleep(0.2)
            assert outcomes
            assert set(outcomes) == {None}
        assert store.traffic.outage is None
        assert store.traffic.outages == 1
        assert store.traffic.refused > 50
        assert (store.traffic.under_way, store.traffic.waiting) == (0, 0)
    told = [record.getMessage() for record in caplog.records if "dynamodb" in record.name]
    # On a busy machine an answer may be late before all that.
    told = [each for each in told if "did not answer in time" not in each]
    assert len(told) == 3
    assert message in told[0]
    assert "requests failed" in told[1]
    assert "answers again" in told[2]
    assert "requests were refused meanwhile" in told[2]


async def test_a_dynamodb_that_hangs() -> None:
    server = FaultyDynamoDB(failing=1.0, faults=("hung",))
    async with server.running() as url, open_dynamodb(table, url, deadline=0.6, concurrency=30) as store:
        sent = await asyncio.gather(*(store.send(Query("A")) for _ in range(300)), return_exceptions=True)
        assert {type(each) for each in sent} == {TimedOut}
        asked = server.connections
        assert asked <= 60
        sent = await asyncio.gather(*(store.send(Query("A")) for _ in range(300)), return_exceptions=True)
        assert {type(each) for each in sent} == {TimedOut}
        assert server.connections <= asked + 1


async def test_failures_among_answers_are_no_outage() -> None:
    server = FaultyDynamoDB(3, failing=0.3, faults=("throttled", "failed", "cut before"))
    async with server.running() as url, open_dynamodb(table, url) as store:
        store._sender.backoff = QUICK
        async with clients(store) as outcomes:
            await asyncio.sleep(1.0)
            await until(lambda: len(outcomes) > 30 and store.traffic.retried > 5)
        assert store.traffic.outages == 0
        assert set(outcomes) == {None}


async def test_many_that_are_cut_at_once_are_no_outage() -> None:
    """A node of DynamoDB that goes away takes a hundred connections with it; a retry finds another node."""
    gate = Gate(256, "AWS", Traffic())
    for each in [await gate.enter("Query") for _ in range(200)]:
        each.leave(Unavailable("cut"))
    assert gate.traffic.outage is None
    assert gate.traffic.failed == 200
    (await gate.enter("Query")).leave()


async def outage(clock: Clock) -> Gate:
    """A gate in an outage, the pause of which is over."""
    gate = Gate(256, "AWS", Traffic(), clock)
    begun = [await gate.enter("Query") for _ in range(20)]
    clock.now += 0.25
    for each in begun:
        each.leave(TimedOut("late"))
    assert gate.traffic.outage == "late"
    with pytest.raises(TimedOut, match="late"):
        await gate.enter("Query")
    clock.now += 0.12
    return gate


def stand_still(seconds: float) -> None:
    time.sleep(seconds)


async def test_a_process_that_stood_still_is_no_outage() -> None:
    gate = Gate(256, "AWS", Traffic())
    begun = [await gate.enter("Query") for _ in range(200)]
    await asyncio.sleep(0.05)
    stand_still(0.5)
    for each in begun:
        each.give_up(TimedOut("late"))
    begun = [await gate.enter("Query") for _ in range(200)]
    stand_still(0.5)
    for each in begun:
        each.leave(TimedOut("late"))
    assert gate.traffic.outages == 0


class Waiting(WorkBudget):
    """The budget of an operation whose turn never comes."""

    is_round_over = True

    async def wait_for_request(self) -> None:
        await asyncio.Event().wait()


async def test_answers_that_wait_for_a_busy_server_are_no_outage() -> None:
    class Answering:
        async def query(self, **body: Any) -> Any:
            return {"Items": [], "Count": 0, "ScannedCount": 0}

    async def send() -> None:
        BUDGET.set(Waiting())
        await store.send(Query("A"))

    store, clock = DynamoDBStore(ClientTransport(Answering()), table, deadline=0.05), Clock()
    store._sender.gate = gate = Gate(256, "AWS", store.traffic, clock)
    sending = [asyncio.create_task(send()) for _ in range(30)]
    await asyncio.sleep(0)
    clock.now += 0.25
    assert {type(each) for each in await asyncio.gather(*sending, return_exceptions=True)} == {TimedOut}
    # Some that wait unread are late at once, after those before them.
    begun = [await gate.enter("Query") for _ in range(30)]
    clock.now += 0.25
    begun.pop().leave()
    for each in begun:
        each.give_up(TimedOut("late"))
    assert (gate.traffic.outages, gate.traffic.under_way) == (0, 0)
    assert gate.traffic.failed == 29


async def test_a_clock_of_the_time_awake() -> None:
    clock = AwakeClock(0.02)
    began = clock.wait()
    await asyncio.sleep(0.3)
    # Of a machine that stands still meanwhile nothing may count either.
    assert clock.time() - began >= 0.04
    before = clock.time()
    stand_still(0.3)
    assert clock.time() - before <= 0.05
    before = clock.time()
    clock.waits -= 1
    await asyncio.sleep(0.1)
    stand_still(0.3)
    # Nobody waited: nothing can seem late.
    assert clock.time() - before >= 0.3


async def test_one_probe_at_a_time() -> None:
    clock = Clock()
    gate = await outage(clock)
    probe = await gate.enter("Query")
    with pytest.raises(TimedOut):
        await gate.enter("Query")
    probe.leave(Unavailable("gone"))
    with pytest.raises(Unavailable, match="gone"):
        await gate.enter("Query")
    clock.now += 0.22
    (await gate.enter("Query")).leave()
    assert gate.traffic.outage is None
    (await gate.enter("Query")).leave()


async def test_a_probe_whose_client_goes_away() -> None:
    gate = await outage(Clock())
    (await gate.enter("Query")).give_up(TimedOut("late"))
    (await gate.enter("Query")).leave()
    assert gate.traffic.outage is None


async def test_those_who_wait_for_a_place_are_told_of_the_outage() -> None:
    clock = Clock()
    gate = Gate(20, "AWS", Traffic(), clock)
    begun = [await gate.enter("Query") for _ in range(20)]
    waiting = [asyncio.create_task(gate.enter("Query")) for _ in range(50)]
    clock.now += 0.25
    await asyncio.sleep(0)
    assert (gate.traffic.under_way, gate.traffic.waiting) == (20, 50)
    for each in begun:
        each.give_up(TimedOut("late"))
    assert {type(each) for each in await asyncio.gather(*waiting, return_exceptions=True)} == {TimedOut}
    assert (gate.traffic.under_way, gate.traffic.waiting) == (0, 0)


async def test_a_place_goes_to_the_first_that_still_waits() -> None:
    gate = Gate(1, "AWS", Traffic())
    passage = await gate.enter("Query")
    gone, late, next_ = [asyncio.create_task(gate.enter("Query")) for _ in range(3)]
    await asyncio.sleep(0)
    gone.cancel()
    passage.leave()
    # It has the place, and gives it up before it knows.
    late.cancel()
    (await next_).leave()
    (await gate.enter("Query")).leave()
    assert (gate.traffic.under_way, gate.traffic.waiting) == (0, 0)


async def test_clients_get_a_place_in_turn() -> None:
    """However many requests of one client wait, one of another client is sent next."""
    gate = Gate(1, "AWS", Traffic())
    sent: list[str] = []

    async def send(client: str) -> None:
        BUDGET.set(budget := WorkBudget())
        budget.client = client
        passage = await gate.enter("Query")
        sent.append(client)
        await asyncio.sleep(0)
        passage.leave()

    await asyncio.gather(*map(send, ["many"] * 100 + ["another"] * 2))
    assert [number for number, client in enumerate(sent) if client == "another"] == [2, 4]


async def test_a_refusal_is_an_answer() -> None:
    clock = Clock()
    gate = Gate(256, "AWS", Traffic(), clock)
    begun = [await gate.enter("Query") for _ in range(100)]
    clock.now += 0.25
    for number, each in enumerate(begun):
        each.leave(TimedOut("late") if number % 19 else None)
    assert gate.traffic.outages == 0


async def test_a_table_can_be_looked_at_in_an_outage() -> None:
    class Throttling:
        async def query(self, **body: Any) -> Any:
            raise AssertionError

        async def describe_table(self, **body: Any) -> Any:
            key = {"AttributeName": "PK", "KeyType": "HASH"}
            attribute = {"AttributeName": "PK", "AttributeType": "S"}
            described = {"TableName": "Shop", "KeySchema": [key], "AttributeDefinitions": [attribute]}
            return {"Table": {**described, "TableStatus": "ACTIVE"}}

    store = DynamoDBStore(ClientTransport(Throttling()), table, quota=Quota(0))
    store._sender.gate = gate = await outage(Clock())
    assert (await store.send(DescribeTable())) is not None
    assert gate.traffic.outage == "late"


async def test_what_is_counted() -> None:
    async with FaultyDynamoDB().running() as url, open_dynamodb(table, url) as store:
        await store.send(Query("A"))
        await store.send(Query("A"))
        assert traffic_of(store) == Traffic(sent=store.traffic.sent)
        assert store.traffic.sent == {"Query": 2}
