"""Time in tests, so that their outcome does not depend on what else the machine does."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from time import thread_time

import pytest

_IDLE_SECONDS = 0.00095
"""What the work takes where the limits were measured."""


def slowness() -> float:
    """Returns how many times as long as on an idle machine some usual work takes now; at least 1.

    Limits of processor time are those of an idle machine.
    """
    return max(1.0, min(_seconds() for _ in range(3)) / _IDLE_SECONDS)


def _seconds() -> float:
    began = thread_time()
    sorted({f"{number:06d}": number for number in range(2_000)}.items(), key=str)
    return thread_time() - began


async def until(holds: Callable[[], bool], seconds: float = 30.0) -> None:
    """Waits until something holds that nobody tells: when that is also depends on what else the machine does."""
    async with asyncio.timeout(seconds):
        while not holds():  # noqa: ASYNC110  # nothing says when
            await asyncio.sleep(0.01)


class MovedClock:
    """The time of the event loop, which a test moves on: what else the machine does is short beside that."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self._moved, loop = 0.0, asyncio.get_running_loop()
        measured = loop.time
        monkeypatch.setattr(loop, "time", lambda: measured() + self._moved)

    async def move(self, seconds: float) -> None:
        """Moves on by so much, with what is on its way before, and what is due afterwards."""
        await asyncio.sleep(0.01)
        self._moved += seconds
        await asyncio.sleep(0.01)
