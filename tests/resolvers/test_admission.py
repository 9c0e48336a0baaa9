"""Admission: a bounded number of operations runs and waits, and no other is kept."""

from __future__ import annotations

import asyncio
import logging
from typing import Any

import pytest

from keygraph.dynamo.store import Answer, Request, Store
from keygraph.dynamo.table import Table
from keygraph_resolvers.admission import Admission, Overloaded
from tests.resolvers.worlds import World, world

READ = '{ user(userId: "12345") { name } }'
BUSY = {
    "errors": [
        {
            "message": "the server has too much to do: try again in a second",
            "extensions": {"code": "UNAVAILABLE"},
        }
    ]
}


class Hung:
    """A store that answers when it is told to."""

    def __init__(self, store: Store) -> None:
        self.store = store
        self.answers = asyncio.Event()
        self.asked = 0

    @property
    def table(self) -> Table:
        return self.store.table

    async def send(self, request: Request[Answer], /) -> Answer:
        self.asked += 1
        await self.answers.wait()
        return await self.store.send(request)

    async def close(self) -> None:
        await self.store.close()


async def begun(shop: World, document: str, count: int) -> list[asyncio.Task[dict[str, Any]]]:
    """Operations that have gone as far as they can."""
    tasks = [asyncio.create_task(shop.service.execute(document)) for _ in range(count)]
    for _ in range(20):  # turns of the event loop: on a busy machine a time says nothing
        await asyncio.sleep(0.001)
    return tasks


async def test_what_neither_runs_nor_waits_is_refused_at_once(shop: World) -> None:
    """Thousands of operations would pile up behind a DynamoDB that hangs, each until its deadline."""
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
    """Its client would send it again, and have it twice."""
    hung = Hung(shop.tracer.store)
    busy = world(shop.graph, hung, max_running=1, max_waiting=0)
    [running] = await begun(busy, READ, 1)
    mutation = 'mutation { deleteUser(input: {userId: "12345"}) { deletedId } }'
    assert await busy.service.execute(mutation) == BUSY
    assert hung.asked == 1
    hung.answers.set()
    await running


async def test_who_goes_away_makes_room(shop: World) -> None:
    """Clients that gave up would keep others waiting."""
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
    """An overload would be invisible, or be a line for each of its thousands of operations."""
    caplog.set_level(logging.INFO, "keygraph_resolvers")
    admission = Admission(1, 0)
    async with admission:
        for _ in range(1_000):
            with pytest.raises(Overloaded):
                await admission.__aenter__()
    assert [record.getMessage() for record in caplog.records] == [
        "Operations are refused, because 1 run and 0 wait already"
    ]
    assert admission.refusals.count == 1_000


async def test_new_documents_leave_turns_to_others(shop: World) -> None:
    """A burst of texts that nobody has sent before would stop everybody until all of them are validated and planned."""
    known = '{ user(userId: "1") { name } }'
    service = shop.service
    await service.execute(known)
    ended: list[str] = []

    async def ask(name: str, document: str) -> None:
        await service.execute(document)
        ended.append(name)

    fields = " ".join(f"a{number}: name" for number in range(10))
    new = [f'{{ user(userId: "{number}") {{ {fields} }} }}' for number in range(30)]
    burst = [asyncio.create_task(ask("new", document)) for document in new]
    await asyncio.sleep(0)
    burst.append(asyncio.create_task(ask("known", known)))
    await asyncio.gather(*burst)
    assert ended.index("known") < 5


async def test_new_documents_have_their_time_and_their_number(shop: World) -> None:
    """Those that wait for their turn would wait without end, and without a limit."""
    service = world(shop.graph, shop.tracer.store, max_running=2, max_waiting=3).service
    answers = await asyncio.gather(*(service.execute(f"{{ a{number}: __typename }}") for number in range(8)))
    codes = [answer["errors"][0]["extensions"]["code"] for answer in answers if "errors" in answer]
    assert codes == ["UNAVAILABLE"] * 2
    late = world(shop.graph, shop.tracer.store, timeout=0.000001).service
    [error] = (await late.execute("{ __typename }"))["errors"]
    assert error["extensions"]["code"] == "TIMEOUT"
