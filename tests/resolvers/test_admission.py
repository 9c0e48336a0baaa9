"""Admission: a bounded number of operations runs and waits, and no other is kept."""

from __future__ import annotations

import asyncio
import itertools
import logging
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import pytest

from keygraph.admission import Admission, Overloaded
from keygraph.dynamo.store import Answer, PassingStore, Query, Request
from keygraph.turns import BUDGET, WorkBudget
from keygraph_examples.social import graph as social
from keygraph_resolvers import OperationRequest
from keygraph_resolvers.engine import engine
from keygraph_resolvers.engine.engine import rounds
from keygraph_resolvers.plan.documents import SHORT_TEXT, Documents
from tests.resolvers.worlds import World, world

READ = 'query @consistent { user(userId: "12345") { name } }'  # not one that operations share
LONG = " " * SHORT_TEXT
"""Behind a document, so that a thread reads it."""
BUSY = {
    "errors": [
        {
            "message": "the server has too much to do: try again in a second",
            "extensions": {"code": "UNAVAILABLE"},
        }
    ]
}


@dataclass(eq=False)
class Hung(PassingStore):
    """A store that answers when it is told to."""

    answers: asyncio.Event = field(default_factory=asyncio.Event)
    asked: int = 0

    async def send(self, request: Request[Answer], /) -> Answer:
        self.asked += 1
        await self.answers.wait()
        return await self.store.send(request)


async def begun(shop: World, document: str, count: int) -> list[asyncio.Task[dict[str, Any]]]:
    """Operations that have gone as far as they can."""
    tasks = [asyncio.create_task(shop.service.execute(document)) for _ in range(count)]
    for _ in range(20):  # turns of the event loop: on a busy machine a time says nothing
        await asyncio.sleep(0.001)
    return tasks


async def test_what_neither_runs_nor_waits_is_refused_at_once(shop: World) -> None:
    hung = Hung(shop.tracer.store)
    busy = world(shop.graph, hung, max_running=2, max_waiting=3)
    running = await begun(busy, READ, 5)
    assert hung.asked == 2
    admission = busy.service.admission
    assert (admission.running, admission.waiting, admission.refusals.count) == (2, 3, 0)
    for task in await begun(busy, READ, 4):
        assert task.done()
        assert task.result() == BUSY
    assert admission.refusals.count == 4
    # What reads nothing need not wait for those that do.
    assert await busy.service.execute("{ __typename }") == {"data": {"__typename": "Query"}}
    hung.answers.set()
    answers = await asyncio.gather(*running)
    assert answers == [{"data": {"user": {"name": "John Doe"}}}] * 5
    assert (admission.running, admission.waiting) == (0, 0)
    assert await busy.service.execute(READ) == answers[0]


async def test_a_mutation_that_is_refused_writes_nothing(shop: World) -> None:
    hung = Hung(shop.tracer.store)
    busy = world(shop.graph, hung, max_running=1, max_waiting=0)
    [running] = await begun(busy, READ, 1)
    mutation = 'mutation { deleteUser(input: {userId: "12345"}) { deletedId } }'
    assert await busy.service.execute(mutation) == BUSY
    assert hung.asked == 1
    hung.answers.set()
    await running


async def test_who_goes_away_makes_room(shop: World) -> None:
    hung = Hung(shop.tracer.store)
    busy = world(shop.graph, hung, max_running=1, max_waiting=1)
    tasks = await begun(busy, READ, 2)
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)
    admission = busy.service.admission
    assert (admission.running, admission.waiting) == (0, 0)
    hung.answers.set()
    assert await busy.service.execute(READ) == {"data": {"user": {"name": "John Doe"}}}


async def test_refusals_are_logged_once(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO, "keygraph_resolvers")
    admission = Admission(1, 0)
    async with admission.place():
        for _ in range(1_000):
            with pytest.raises(Overloaded):
                await admission.place().__aenter__()
    assert [record.getMessage() for record in caplog.records] == [
        "Operations are refused, because 1 run and 0 wait already"
    ]
    assert admission.refusals.count == 1_000


async def test_what_others_have_sent_meanwhile_keeps_no_new_document_waiting(
    shop: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each new one takes the time of a round, also of a client that sends as many as others. What is known passes them."""
    parsed, work = list[str](), Documents._parsed
    monkeypatch.setattr(engine, "perf_counter", lambda: float(len(parsed)))
    monkeypatch.setattr(Documents, "_parsed", lambda self, text: (parsed.append(text), work(self, text))[1])

    async def send(client: str, names: str) -> None:
        for name in names:
            await rounds().enter(client)
            await shop.service.execute(OperationRequest(f"{{ {name}: __typename }}", viewer={"sub": client}))

    await send("known", "k")
    others = [asyncio.create_task(send(f"client {number}", "abcdef")) for number in range(40)]
    known, new = asyncio.create_task(send("known", "k")), asyncio.create_task(send("new", "uvwxyz"))
    turns = 0
    while not new.done():
        turns += 1
        await asyncio.sleep(0)
        assert known.done() or len(parsed) < 5
    assert turns < 100
    await asyncio.gather(*others)
    assert len(parsed) == 13


async def test_a_new_document_that_finds_time_counts_as_one_that_waits(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(engine, "perf_counter", lambda: 0.0)
    let_through = list[str]()

    def enter(client: str) -> asyncio.Future[bool]:
        turn = rounds().enter(client)
        turn.add_done_callback(lambda _: let_through.append(client))
        return turn

    first = enter("other")
    await rounds().wait_for_time("new")
    await asyncio.gather(first, enter("new"), enter("known"))
    assert let_through == ["other", "known", "new"]


async def test_new_documents_have_their_time_and_their_number(shop: World) -> None:
    service = world(shop.graph, shop.tracer.store, max_running=2, max_waiting=3).service
    answers = await asyncio.gather(*(service.execute(f"{{ a{number} }}{LONG}") for number in range(8)))
    codes = [answer["errors"][0]["extensions"]["code"] for answer in answers]
    assert codes.count("UNAVAILABLE") == 2
    late = world(shop.graph, shop.tracer.store, operation_timeout=0.000001).service
    [error] = (await late.execute("{ __typename }" + LONG))["errors"]
    assert error["extensions"]["code"] == "TIMEOUT"


class Crowd:
    """Operations of several clients, which run until they are told to end."""

    def __init__(self, admission: Admission) -> None:
        self.admission = admission
        self.running: list[str] = []
        self._tasks: dict[str, list[asyncio.Task[None]]] = {}

    async def come(self, client: str, count: int, bound: int = 0) -> None:
        begun = [asyncio.create_task(self._run(client, bound)) for _ in range(count)]
        self._tasks.setdefault(client, []).extend(begun)
        await asyncio.sleep(0)

    async def go(self, client: str, count: int = 1) -> None:
        for _ in range(count):
            task = self._tasks[client].pop(0)
            task.cancel()
            await asyncio.wait([task])
        await asyncio.sleep(0)

    async def turn(self) -> str:
        """The one that runs once what runs has ended."""
        await self.go(self.running[0])
        await asyncio.sleep(0)
        return self.running[0]

    async def _run(self, client: str, bound: int) -> None:
        async with self.admission.place(bound, [client]):
            self.running.append(client)
            try:
                await asyncio.Event().wait()
            finally:
                self.running.remove(client)

    def of(self, client: str) -> int:
        return self.running.count(client)


LARGE = 1_000_000


async def test_one_client_never_has_all_places() -> None:
    crowd = Crowd(Admission(8, 100))
    await crowd.come("first", 20)
    assert crowd.of("first") == 4
    await crowd.come("second", 3)
    await crowd.come("third", 20)
    assert (crowd.of("first"), crowd.of("second"), crowd.of("third")) == (4, 3, 1)
    # Free places go to the clients in turn, not to whoever has come first.
    await crowd.go("first", 4)
    assert (crowd.of("first"), crowd.of("second"), crowd.of("third")) == (2, 3, 3)


async def test_one_that_comes_seldom_goes_before_those_that_come_again_and_again(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("keygraph.admission.perf_counter", itertools.count().__next__)
    crowd = Crowd(Admission(1, 400))
    busy = [f"busy {number}" for number in range(20)]
    for client in busy:
        await crowd.come(client, 6)
    for _ in range(45):
        await crowd.go(crowd.running[0])
    await crowd.come("seldom", 2)
    turns = [await crowd.turn() for _ in range(4)]
    assert turns.count("seldom") == 2
    # New ones do not keep those back that wait.
    for number in range(40):
        await crowd.come(f"new {number}", 1)
        turns.append(await crowd.turn())
    assert sum(client in busy for client in turns) == 22


async def test_large_operations_leave_places_to_small_ones() -> None:
    crowd = Crowd(Admission(16, 100))
    await crowd.come("first", 5, LARGE)
    assert crowd.of("first") == 1
    await crowd.come("first", 20)
    assert crowd.of("first") == 5
    for client in ("second", "third"):
        await crowd.come(client, 5, LARGE)
    assert (crowd.of("second"), crowd.of("third")) == (1, 0)
    await crowd.come("fourth", 5)
    assert crowd.of("fourth") == 4
    # The large ones of several clients go on in turn.
    await crowd.go("second", 2)
    assert (crowd.of("second"), crowd.of("third")) == (0, 1)
    # One of less than a quarter of all places has as many as its bound is large.
    smaller = Crowd(Admission(16, 100))
    await smaller.come("first", 5, 1_500)
    assert smaller.of("first") == 2


@dataclass(eq=False)
class Slow(Hung):
    """One whose lists are read one after the other."""

    line: Admission = field(default_factory=lambda: Admission(1, 100))

    async def send(self, request: Request[Answer], /) -> Answer:
        if not isinstance(request, Query):
            return await self.store.send(request)
        async with self.line.place():
            return await super(Slow, self).send(request)


async def test_slow_reads_of_many_addresses_leave_places_to_small_operations(shop: World) -> None:
    slow = Slow(shop.tracer.store)
    service = world(shop.graph, slow, max_running=16, max_waiting=100).service
    admission = service.admission

    def request(document: str, address: str) -> OperationRequest:
        return OperationRequest(document, holding=service.memory.holding(address))

    def sent(address: int) -> asyncio.Task[dict[str, Any]]:
        document = f'{{ user(userId: "12345") {{ orders(first: {address + 1}) {{ nodes {{ status }} }} }} }}'
        return asyncio.create_task(service.execute(request(document, f"{address}")))

    tasks = [sent(address) for address in range(24)]
    async with asyncio.timeout(10):
        while slow.line.waiting < 23:  # noqa: ASYNC110  # operations go on in each turn
            await asyncio.sleep(0)
        assert (slow.asked, admission.running, admission.waiting, admission.taken[""]) == (1, 24, 0, 8)
        answer = await service.execute(request(READ, "other"))
        assert answer == {"data": {"user": {"name": "John Doe"}}}
        # One that was given up while it waited has no place any more, and nobody else has lost one.
        for task in (tasks.pop(), tasks.pop(0)):
            task.cancel()
            await asyncio.wait([task])
        slow.answers.set()
        answers = await asyncio.gather(*tasks)
    assert all("errors" not in answer for answer in answers)
    assert (admission.running, admission.waiting, admission.taken) == (0, 0, {})
    assert not admission._queue


async def test_operations_of_many_requests_that_wait_leave_places_to_small_ones() -> None:
    admission, hung = Admission(16, 100), asyncio.Event()

    async def operation(address: str) -> None:
        budget = WorkBudget()
        async with admission.place(clients=[address]) as place:
            budget.leave_place = partial(admission.leave_to_others, place)
            for _ in range(20):
                await budget.wait_for_request()
            await hung.wait()

    tasks = [asyncio.create_task(operation(f"{address}")) for address in range(30)]
    async with asyncio.timeout(10):
        while admission.running < 30:  # noqa: ASYNC110  # operations go on in each turn
            await asyncio.sleep(0)
        async with admission.place(clients=["other"]):
            hung.set()
        await asyncio.gather(*tasks)
    assert (admission.running, admission.waiting, admission.taken) == (0, 0, {})


async def test_no_operation_waits_for_others_that_wait_for_what_it_holds() -> None:
    """Such as for a place, while it holds the bytes of a large answer."""
    admission, thread, answers = Admission(16, 100), Admission(1, 100), asyncio.Semaphore(8)

    async def operation(address: str) -> None:
        budget = WorkBudget()
        BUDGET.set(budget)
        async with admission.place(clients=[address]) as place:
            budget.leave_place = partial(admission.leave_to_others, place)
            for _ in range(3):
                async with answers, thread.place():
                    await asyncio.sleep(0)

    async with asyncio.timeout(10):
        await asyncio.gather(*(asyncio.create_task(operation(f"{address}")) for address in range(60)))
    assert (admission.running, admission.waiting, admission.taken) == (0, 0, {})


@pytest.mark.parametrize(
    "mutation",
    [
        'deleteUser(input: {userId: "12345", onEdges: DETACH}) { deletedId }',
        'updateUser(input: {userId: "12345", name: "x"}) { user { orders(first: 100) { nodes { items(first: 50) { nodes { name } } } } } }',
    ],
)
async def test_large_mutations_leave_places_to_small_operations(shop: World, mutation: str) -> None:
    """Those that delete a node with its edges, and those that select much of what they have written."""
    hung = Hung(shop.tracer.store)
    busy = world(shop.graph, hung, max_running=8)
    tasks = await begun(busy, f"mutation {{ {mutation} }}", 9)
    assert (busy.service.admission.running, busy.service.admission.waiting) == (2, 7)
    tasks += await begun(busy, READ, 1)
    assert busy.service.admission.running == 3
    hung.answers.set()
    await asyncio.gather(*tasks)
    assert busy.service.admission.taken == {}


async def test_a_mutation_of_many_values_waits_for_its_place_without_what_it_writes(shop: World) -> None:
    busy = world(social, Hung(shop.tracer.store), max_running=4)
    tasks = await begun(busy, READ, 4)
    many = "mutation ($inputs: [PutFriendshipInput!]!) { putFriendships(input: {inputs: $inputs}) { clientMutationId } }"
    friends = [
        {"userId": "a", "friendId": f"{number}", "friendshipSince": "2024-01-01"} for number in range(90)
    ]
    request = OperationRequest(many, {"inputs": friends})
    tasks.append(asyncio.create_task(busy.service.execute(request)))
    await begun(busy, "{ __typename }", 1)
    assert (busy.service.admission.waiting, request.observation.bound) == (1, None)
    for task in tasks:
        task.cancel()


async def test_items_that_the_store_only_counts_take_no_places(shop: World) -> None:
    hung = Hung(shop.tracer.store)
    busy = world(shop.graph, hung, max_running=8, max_waiting=0)
    counting = await begun(busy, "{ users { totalCount } }", 8)
    assert busy.service.admission.running == 8
    hung.answers.set()
    assert await asyncio.gather(*counting) == [{"data": {"users": {"totalCount": 5}}}] * 8


async def test_one_client_does_not_fill_the_queue_and_leaves_nothing_in_it() -> None:
    admission = Admission(2, 6)
    crowd = Crowd(admission)
    await crowd.come("first", 10)
    assert (admission.running, admission.waiting, admission.refusals.count) == (1, 3, 6)
    await crowd.come("second", 2)
    assert (crowd.of("second"), admission.waiting) == (1, 4)
    # The operations that wait go first, then the one that runs: nobody is given a place that is gone.
    crowd._tasks["first"].reverse()
    await crowd.go("first", 10)
    await crowd.go("second", 2)
    assert (admission.running, admission.waiting, bool(admission._queue)) == (0, 0, False)
    assert not admission.taken
    assert not admission._waiting_of
