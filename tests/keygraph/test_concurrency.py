"""Places: never more at once than allowed, and none is lost."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest

from keygraph.concurrency import ConcurrencyLimit


@asynccontextmanager
async def place_of(places: ConcurrencyLimit) -> AsyncIterator[None]:
    if not places.acquire_now():
        await places.acquire_next()
    try:
        yield
    finally:
        places.release()


async def test_no_more_at_once_than_allowed_and_in_order() -> None:
    """A server would open more connections than it was told, or let who came first wait for ever."""
    places, running, most, order = ConcurrencyLimit(3), 0, 0, []

    async def work(number: int) -> None:
        nonlocal running, most
        async with place_of(places):
            order.append(number)
            running += 1
            most = max(most, running)
            await asyncio.sleep(0.001)
            running -= 1

    await asyncio.gather(*(work(number) for number in range(20)))
    assert most == 3
    assert order == [*range(20)]


@pytest.mark.parametrize("rounds", range(4))
async def test_a_place_of_who_is_cancelled_is_not_lost(rounds: int) -> None:
    """With every client that goes away the server could do one thing less at a time, until it stood still."""
    places = ConcurrencyLimit(1)
    done: list[str] = []

    async def work(name: str) -> None:
        async with place_of(places):
            await asyncio.sleep(0)
            done.append(name)

    first, second, third = (asyncio.ensure_future(work(name)) for name in "abc")
    for _ in range(rounds):
        await asyncio.sleep(0)
    second.cancel()
    await asyncio.wait_for(asyncio.gather(first, second, third, return_exceptions=True), 5)
    await asyncio.wait_for(work("d"), 5)
    assert [name for name in done if name != "b"] == ["a", "c", "d"]
