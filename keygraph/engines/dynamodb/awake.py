"""The time in which the process was awake.

A process stands still when its machine is suspended or overloaded, or when its event loop is blocked. It does not read
answers that arrive meanwhile, so its requests seem slow. Such a time says nothing about DynamoDB.
"""

from __future__ import annotations

import asyncio


class AwakeClock:
    """Counts the seconds in which the event loop ran, as long as something is waited for."""

    def __init__(self, beat: float) -> None:
        """While something is waited for, the loop is checked every `beat` seconds."""
        self._beat = beat
        self._seconds = 0.0
        """The seconds until the last check."""
        self._looked: float | None = None
        """When that was, by the loop's time."""
        self._waits = 0
        self._timer: asyncio.TimerHandle | None = None

    def time(self) -> float:
        """Returns the seconds awake. Of a time without a check, at most two beats count during a wait."""
        now = asyncio.get_running_loop().time()
        if self._looked is not None:
            passed = now - self._looked
            self._seconds += passed if self._timer is None else min(passed, 2 * self._beat)
        self._looked = now
        return self._seconds

    def wait(self) -> float:
        """Starts a wait, until `waited` is called. Returns the time."""
        now = self.time()
        self._waits += 1
        if self._timer is None:
            self._timer = asyncio.get_running_loop().call_later(self._beat, self._look)
        return now

    def waited(self) -> None:
        """Ends a wait: the answer came, or nobody waits any more."""
        self._waits -= 1

    def _look(self) -> None:
        self.time()
        self._timer = asyncio.get_running_loop().call_later(self._beat, self._look) if self._waits else None
