"""Readiness: told at once from what is known, however many ask and whatever the store does."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from typing import Any

import pytest

from keygraph.dynamo.store import DescribeTable
from keygraph.dynamo.table import Table
from keygraph.dynamo.traffic import Traffic
from keygraph.errors import Unavailable
from keygraph_server.http import readiness as module
from keygraph_server.http.readiness import Readiness

TABLE = Table("Shop", partition_key="PK", sort_key="SK")


class LookedAt:
    """A store that counts how often its table is looked at, and may hang or fail."""

    def __init__(self) -> None:
        self.table = TABLE
        self.looks = 0
        self.traffic = Traffic()
        self.hangs = asyncio.Event()
        self.error: Exception | None = None

    async def send(self, request: Any) -> Any:
        assert isinstance(request, DescribeTable)
        self.looks += 1
        if self.hangs.is_set():
            await asyncio.sleep(3600)
        if self.error is not None:
            raise self.error
        return TABLE

    async def close(self) -> None:
        pass


@pytest.fixture
async def passes(monkeypatch: pytest.MonkeyPatch) -> Callable[[float], None]:
    """Lets seconds pass on the event loop's clock, at once."""
    monkeypatch.setattr(module, "_WAITED_SECONDS", 0.05)
    loop = asyncio.get_running_loop()
    clock, passed = loop.time, 0.0
    monkeypatch.setattr(loop, "time", lambda: clock() + passed)

    def passes(seconds: float) -> None:
        nonlocal passed
        passed += seconds

    return passes


async def test_many_who_ask_are_one_look(passes: Callable[[float], None]) -> None:
    store = LookedAt()
    readiness = Readiness(store)
    assert await asyncio.gather(*(readiness.problem() for _ in range(500))) == [None] * 500
    for _ in range(500):
        assert await readiness.problem() is None
    assert store.looks == 1
    passes(5)
    assert await readiness.problem() is None
    assert store.looks == 2


async def test_a_store_that_hangs(passes: Callable[[float], None]) -> None:
    store = LookedAt()
    readiness = Readiness(store)
    assert await readiness.problem() is None
    store.hangs.set()
    passes(5)
    assert await asyncio.wait_for(readiness.problem(), 10) is None  # it may only be slow
    passes(2)
    for _ in range(20):
        assert "the store has not answered for" in (await asyncio.wait_for(readiness.problem(), 10) or "")
        assert store.looks == 2
    await readiness.close()
    assert len(asyncio.all_tasks()) == 1


async def test_a_store_that_has_never_answered_is_not_ready(passes: Callable[[float], None]) -> None:
    store = LookedAt()
    store.hangs.set()
    readiness = Readiness(store)
    assert await readiness.problem() == "the store has not answered yet"
    await readiness.close()


async def test_an_outage_is_known_without_a_look() -> None:
    store = LookedAt()
    store.traffic.outage = "no connection to DynamoDB at AWS: is it running?"
    assert await Readiness(store).problem() == store.traffic.outage
    assert store.looks == 0


async def test_a_change_is_logged_once(
    caplog: pytest.LogCaptureFixture, passes: Callable[[float], None]
) -> None:
    caplog.set_level(logging.INFO, "keygraph_server")
    store = LookedAt()
    readiness = Readiness(store)
    await readiness.problem()
    store.error = Unavailable("no connection")
    passes(5)
    for _ in range(5):
        assert await readiness.problem() == "no connection"
    store.error = None
    passes(5)
    assert await readiness.problem() is None
    assert [record.getMessage() for record in caplog.records] == [
        "The server is not ready: no connection",
        "The server is ready again",
    ]


async def test_an_unexpected_error_does_not_stay(passes: Callable[[float], None]) -> None:
    store = LookedAt()
    readiness = Readiness(store)
    store.error = LookupError("ours")
    with pytest.raises(LookupError):
        await readiness.problem()
    store.error = None
    passes(5)
    assert await readiness.problem() is None
