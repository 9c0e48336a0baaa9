"""Retries with full jitter, inside a deadline.

"Exponential Backoff And Jitter" in the AWS Architecture Blog: the pause before the n-th retry is drawn evenly
between nothing and a bound that doubles with n, so that clients that failed together do not return together.
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass

from keygraph.errors import KeygraphError


@dataclass(frozen=True, slots=True)
class Backoff:
    """The bounds of a pause, in seconds: of the first one, and of any."""

    first: float = 0.05
    longest: float = 1.0

    def pause(self, attempt: int) -> float:
        """The pause in seconds before retry number `attempt`, which counts from 0."""
        # The exponent is bounded so that a long wait does not overflow.
        return random.uniform(0, min(self.longest, self.first * 2.0 ** min(attempt, 30)))


class Attempts:
    """The attempts at one answer: how long they may go on, and why they have not succeeded yet."""

    def __init__(self, backoff: Backoff, until: float) -> None:
        self._backoff = backoff
        self._until = until
        self.failure: KeygraphError | None = None

    async def wait(self, attempt: int, failure: KeygraphError) -> None:
        """Pauses before retry number `attempt`. Raises the failure where the deadline would pass meanwhile."""
        self.failure = failure
        pause = self._backoff.pause(attempt)
        if asyncio.get_running_loop().time() + pause >= self._until:
            raise failure
        await asyncio.sleep(pause)


@asynccontextmanager
async def attempts(seconds: float, backoff: Backoff, late: KeygraphError) -> AsyncIterator[Attempts]:
    """What runs inside is cancelled after so many seconds, and the last failure raised, or `late` without one."""
    until = asyncio.get_running_loop().time() + seconds
    running = Attempts(backoff, until)
    limit = asyncio.timeout_at(until)
    try:
        async with limit:
            yield running
    except TimeoutError:
        if not limit.expired():
            raise
        raise running.failure or late from None
