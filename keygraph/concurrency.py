"""A limit on concurrency: how many may do something at the same time, first come, first served.

An `asyncio.Semaphore` goes through everybody who waits on each release. Here a release wakes whoever has waited longest.
"""

from __future__ import annotations

import asyncio
from collections import deque


class ConcurrencyLimit:
    """So many places. Whoever has acquired one, at once or after waiting, releases it."""

    def __init__(self, count: int) -> None:
        self._left = count
        self._waiting: deque[asyncio.Future[None]] = deque()

    def acquire_now(self) -> bool:
        """Acquires a place if one is left. Returns whether it did."""
        if self._left:
            self._left -= 1
            return True
        return False

    async def acquire_next(self) -> None:
        """Waits in line for the next place that is released, and acquires it."""
        place = asyncio.get_running_loop().create_future()
        self._waiting.append(place)
        try:
            await place
        except asyncio.CancelledError:
            if not place.cancelled():
                # It was given at the last moment, and goes to the next one.
                self.release()
            raise

    def release(self) -> None:
        """Gives the place to whoever has waited longest."""
        while self._waiting:
            place = self._waiting.popleft()
            if not place.done():
                place.set_result(None)
                return
        self._left += 1
