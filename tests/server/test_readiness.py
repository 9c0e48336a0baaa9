"""Readiness: told at once from what is known, however many ask and whatever the store does."""

from __future__ import annotations

import asyncio
import logging
import time
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


@pytest.fixture(autouse=True)
def in_a_hurry(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_LOOKED_SECONDS", 0.3)
    monkeypatch.setattr(module, "_WAITED_SECONDS", 0.05)
    monkeypatch.setattr(module, "_HUNG_SECONDS", 1.0)


async def test_many_who_ask_are_one_look() -> None:
    """Anybody could make the server ask AWS for its table, which AWS allows ten times a second for a whole account."""
    store = LookedAt()
    readiness = Readiness(store)
    assert await asyncio.gather(*(readiness.hindrance() for _ in range(500))) == [None] * 500
    for _ in range(500):
        assert await readiness.hindrance() is None
    assert store.looks == 1
    await asyncio.sleep(0.35)
    assert await readiness.hindrance() is None
    assert store.looks == 2


async def test_a_store_that_hangs() -> None:
    """A load balancer would wait ten seconds for each answer, and go on sending clients."""
    store = LookedAt()
    readiness = Readiness(store)
    assert await readiness.hindrance() is None
    store.hangs.set()
    await asyncio.sleep(0.35)
    began = time.monotonic()
    assert await readiness.hindrance() is None  # it may only be slow
    assert time.monotonic() - began < 0.9
    await asyncio.sleep(1.0)
    for _ in range(20):
        assert "the store has not answered for" in (await readiness.hindrance() or "")
    assert time.monotonic() - began < 5
    assert store.looks == 2
    await readiness.close()
    assert len(asyncio.all_tasks()) == 1


async def test_a_store_that_has_never_answered_is_not_ready() -> None:
    """Clients would be sent to a server that has not reached its table."""
    store = LookedAt()
    store.hangs.set()
    readiness = Readiness(store)
    assert await readiness.hindrance() == "the store has not answered yet"
    await readiness.close()


async def test_an_outage_is_known_without_a_look() -> None:
    """A server whose requests are all refused would call itself ready because its table can be described."""
    store = LookedAt()
    store.traffic.outage = "no connection to DynamoDB at AWS: is it running?"
    assert await Readiness(store).hindrance() == store.traffic.outage
    assert store.looks == 0


async def test_a_change_is_logged_once(caplog: pytest.LogCaptureFixture) -> None:
    """An outage would leave no trace, or a line for each question of a load balancer."""
    caplog.set_level(logging.INFO, "keygraph_server")
    store = LookedAt()
    readiness = Readiness(store)
    await readiness.hindrance()
    store.error = Unavailable("no connection")
    await asyncio.sleep(0.35)
    for _ in range(5):
        assert await readiness.hindrance() == "no connection"
    store.error = None
    await asyncio.sleep(0.35)
    assert await readiness.hindrance() is None
    assert [record.getMessage() for record in caplog.records] == [
        "The server is not ready: no connection",
        "The server is ready again",
    ]


async def test_an_unexpected_error_does_not_stay(caplog: pytest.LogCaptureFixture) -> None:
    """One fault would make the server unready for ever."""
    store = LookedAt()
    readiness = Readiness(store)
    store.error = LookupError("ours")
    with pytest.raises(LookupError):
        await readiness.hindrance()
    store.error = None
    await asyncio.sleep(0.35)
    assert await readiness.hindrance() is None
