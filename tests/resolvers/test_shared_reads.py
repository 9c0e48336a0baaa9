"""Equal reads of several operations that are in flight at the same time are one request."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from keygraph.dynamo.store import Batch, BatchGet, BatchWrite, Cost, Request, Written
from keygraph.errors import Throttled
from keygraph.turns import TooMuchWork
from keygraph_resolvers import OperationRequest
from keygraph_resolvers.read import meter
from keygraph_resolvers.read.meter import SharedReads
from tests.resolvers.test_loaders import HandledStore
from tests.resolvers.worlds import World

READ, EQUAL, OTHER = (BatchGet(((f"USER#{name}", f"USER#{name}"),)) for name in ("ada", "ada", "bob"))
WRITE = BatchWrite(puts=({"PK": "USER#ada", "SK": "USER#ada"},))
BEFORE, AFTER = Batch([{"name": "Ada"}], Cost()), Batch([{"name": "Ada L."}], Cost())


class Held(SharedReads):
    """Shared reads of a store that answers when the test does."""

    def __init__(self) -> None:
        async def answer(_: Request[Any]) -> Any:
            self.answers.append(asyncio.get_running_loop().create_future())
            return await self.answers[-1]

        self.answers: list[asyncio.Future[Any]] = []
        self.sent = (store := HandledStore(answer)).requests
        super().__init__(store)


async def begun(*coroutines: Any) -> list[asyncio.Task[Any]]:
    """Operations and requests, as far as they come without an answer."""
    tasks = []
    for each in coroutines:
        tasks.append(asyncio.ensure_future(each))
        await asyncio.sleep(0)
    return tasks


async def test_equal_reads_are_one_request_and_nothing_is_kept() -> None:
    held = Held()
    waiting = await begun(held.send(READ), held.send(EQUAL), held.send(OTHER))
    held.answers[0].set_result(BEFORE)
    held.answers[1].set_result(AFTER)
    assert await asyncio.gather(*waiting) == [BEFORE, BEFORE, AFTER]
    await begun(held.send(READ))
    assert held.sent == [READ, OTHER, READ]


@pytest.mark.parametrize("error", [asyncio.CancelledError(), TooMuchWork("more than this one may")])
async def test_an_operation_that_is_given_up_takes_no_other_with_it(error: BaseException) -> None:
    held = Held()
    first, *others = await begun(held.send(READ), held.send(EQUAL), held.send(EQUAL), held.send(EQUAL))
    others.pop().cancel()
    first.cancel() if isinstance(error, asyncio.CancelledError) else held.answers[0].set_exception(error)
    await asyncio.wait([first])
    await asyncio.sleep(0)
    held.answers[1].set_result(BEFORE)
    assert await asyncio.gather(*others) == [BEFORE, BEFORE]
    assert held.sent == [READ, READ]


async def test_each_gets_an_error_of_its_own() -> None:
    held = Held()
    waiting = await begun(held.send(READ), held.send(EQUAL), held.send(EQUAL))
    held.answers[0].set_exception(Throttled("DynamoDB throttles"))
    errors = await asyncio.gather(*waiting, return_exceptions=True)
    assert [(type(each), str(each)) for each in errors] == [(Throttled, "DynamoDB throttles")] * 3
    assert len({id(each) for each in errors}) == 3


async def test_a_read_that_begins_after_a_write_was_answered_joins_none_that_was_sent_before() -> None:
    held = Held()
    [early, write, during] = await begun(held.send(READ), held.send(WRITE), held.send(READ))
    held.answers[1].set_result(Written(Cost()))
    await write
    late = await begun(held.send(READ), held.send(EQUAL))
    held.answers[0].set_result(BEFORE)
    assert await asyncio.gather(early, during) == [BEFORE, BEFORE]
    late += await begun(held.send(READ))
    held.answers[2].set_result(AFTER)
    assert await asyncio.gather(*late) == [AFTER, AFTER, AFTER]
    # A write without an answer may have been made.
    [_, write] = await begun(held.send(READ), held.send(WRITE))
    write.cancel()
    await asyncio.wait([write])
    await begun(held.send(READ))
    assert held.sent == [READ, WRITE, READ, READ, WRITE, READ]


async def test_no_consistent_read_is_joined_nor_one_sent_long_ago(monkeypatch: pytest.MonkeyPatch) -> None:
    held, consistent = Held(), BatchGet(READ.keys, consistent=True)
    monkeypatch.setattr(meter, "_JOINED_SECONDS", 0.0)
    await begun(*map(held.send, (consistent, READ, consistent, READ)))
    assert held.sent == [consistent, READ, consistent, READ]


def _by_keys(request: object) -> object:
    """The request; for a batch, whose keys stand in the order in which they became known, its keys and attributes."""
    return (frozenset(request.keys), request.projection) if isinstance(request, BatchGet) else request


async def test_equal_operations_send_each_request_once_and_each_counts_all_of_them(
    shop: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(meter, "_JOINED_SECONDS", 60.0)
    document = '{ user(userId: "12345") { name orders { nodes { total items { nodes { name } } } } } }'
    requests = [OperationRequest(document, with_cost=True) for _ in range(4)]
    alone = await shop.service.execute(requests.pop())
    sent = [*shop.tracer.requests]
    shop.forget()
    answers = await asyncio.gather(*map(shop.service.execute, requests))
    assert {*map(_by_keys, shop.tracer.requests)} == {*map(_by_keys, sent)}
    assert len(shop.tracer.requests) == len(sent) == 6
    assert [each["data"] for each in answers] == [alone["data"]] * 3
    costs = [each["extensions"]["cost"]["actual"] for each in (alone, *answers)]
    assert [(each["requests"], each["items"], each["readUnits"]) for each in costs] == [(6, 13.0, 4.5)] * 4
