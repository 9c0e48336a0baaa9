"""The time in which the process was awake.

A process stands still when its machine is suspended or has too much to do, or when its event loop is blocked. Answers
that came meanwhile were not read, so that its requests seem to have taken long. Such a time says nothing about DynamoDB.
"""

from __future__ import annotations

import asyncio


class AwakeClock:
    """Seconds in which the event loop went round, for as long as something is waited for."""

    def __init__(self, beat: float) -> None:
        """While something is waited for, the loop is looked at every `beat` seconds."""
        self._beat = beat
        self._seconds = 0.0
        """Those until the last look."""
        self._looked: float | None = None
        """When that was, by the loop's time."""
        self._waits = 0
        self._timer: asyncio.TimerHandle | None = None

    def time(self) -> float:
        """How many seconds it was awake. Of a time without a look only two beats count, if something was waited for."""
        now = asyncio.get_running_loop().time()
        if self._looked is not None:
            passed = now - self._looked
            self._seconds += passed if self._timer is None else min(passed, 2 * self._beat)
        self._looked = now
        return self._seconds

    def wait(self) -> float:
        """Something is waited for until `waited` is called. Returns the time."""
        now = self.time()
        self._waits += 1
        if self._timer is None:
            self._timer = asyncio.get_running_loop().call_later(self._beat, self._look)
        return now

    def waited(self) -> None:
        """It came, or nobody waits any more."""
        self._waits -= 1

    def _look(self) -> None:
        self.time()
        self._timer = asyncio.get_running_loop().call_later(self._beat, self._look) if self._waits else None
