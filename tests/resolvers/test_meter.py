"""The budget of an operation: what is reserved for requests under way."""

from __future__ import annotations

import asyncio
from typing import cast

import pytest

from keygraph.dynamo.limits import ITEM_BYTES
from keygraph.dynamo.store import (
    Answer,
    BatchGet,
    Cost,
    Count,
    Counted,
    DescribeTable,
    Query,
    Request,
    UnreadStore,
)
from keygraph_resolvers.read.meter import MeteredStore, most_units
from tests.resolvers.worlds import library


@pytest.mark.parametrize(
    ("request_", "units"),
    [
        (Count("p"), 178.0),
        (Query("p"), 178.0),
        (Query("p", limit=2), 2 * ITEM_BYTES / 8192),
        (Query("p", limit=2, consistent=True), 2 * ITEM_BYTES / 4096),
        (Query("p", limit=100), 178.0),
        (BatchGet((("p", "s"),) * 3), 150.0),
        (DescribeTable(), 0.0),
    ],
)
def test_the_most_that_a_request_can_cost(request_: Request[object], units: float) -> None:
    assert most_units(request_) == units


async def test_a_request_that_nobody_waits_for_leaves_its_place() -> None:
    held: list[asyncio.Future[None]] = []

    class Slow(UnreadStore):
        async def send(self, request: Request[Answer], /) -> Answer:
            held.append(asyncio.get_running_loop().create_future())
            await held[-1]
            return cast(Answer, Counted(0, 0, None, Cost(1, 0.5)))

    meter = MeteredStore(Slow(library.table), 200.0)
    tasks = [asyncio.create_task(meter.send(Count("p"))) for _ in range(4)]
    await asyncio.sleep(0)
    assert (len(held), meter.reserved) == (1, 178.0)
    tasks[1].cancel()
    await asyncio.sleep(0)
    for number in range(3):
        held[number].set_result(None)
        await asyncio.sleep(0.01)
    assert [task.done() for task in tasks] == [True] * 4
    assert (meter.reserved, meter.read_units) == (0.0, 1.5)
