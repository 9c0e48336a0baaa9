"""Turns: how many may do something at the same time, first come, first served.

An `asyncio.Semaphore` looks through all that wait whenever somebody is done. Here a turn is handed to who waits longest.
"""

from __future__ import annotations

import asyncio
from collections import deque


class Turns:
    """So many turns. Whoever has taken one, at once or after waiting, gives it back."""

    def __init__(self, count: int) -> None:
        self._left = count
        self._waiting: deque[asyncio.Future[None]] = deque()

    def take(self) -> bool:
        """Takes a turn if one is left; else it has to be waited for."""
        if self._left:
            self._left -= 1
            return True
        return False

    async def wait(self) -> None:
        """Takes the turn that somebody gives back."""
        turn = asyncio.get_running_loop().create_future()
        self._waiting.append(turn)
        try:
            await turn
        except asyncio.CancelledError:
            if not turn.cancelled():
                # It came at the last moment, and is somebody else's.
                self.give_back()
            raise

    def give_back(self) -> None:
        """Hands the turn to who waits longest."""
        while self._waiting:
            turn = self._waiting.popleft()
            if not turn.done():
                turn.set_result(None)
                return
        self._left += 1
