"""Retries with full jitter, inside a deadline, and no more of them than a quota allows.

"Exponential Backoff And Jitter" in the AWS Architecture Blog: the pause before the n-th retry is drawn evenly
between nothing and a bound that doubles with n, so that clients that failed together do not return together.
"Retry behavior" in the AWS SDKs reference guide: retries are paid from a quota that successes fill again, so that what
is down is not asked several times by everybody. How often one request is tried is decided by the deadline alone.
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass

from keygraph.errors import KeygraphError, TimedOut

_RETRY, _RETRY_AFTER_TIMEOUT, _FIRST_SUCCESS = 5, 10, 1


@dataclass(frozen=True, slots=True)
class Backoff:
    """The bounds of a pause, in seconds: of the first one, and of any."""

    first: float = 0.05
    longest: float = 1.0

    def pause(self, attempt: int) -> float:
        """The pause in seconds before retry number `attempt`, which counts from 0."""
        # The exponent is bounded so that a long wait does not overflow.
        return random.uniform(0, min(self.longest, self.first * 2.0 ** min(attempt, 30)))


class Quota:
    """What retries are paid from, shared by all requests of a store; the numbers are those of the SDKs."""

    def __init__(self, capacity: int = 500) -> None:
        self._capacity = capacity
        self._left = capacity

    def pay(self, failure: KeygraphError) -> int:
        """The price of a retry after that failure. Raises the failure where nothing is left to pay it from."""
        price = _RETRY_AFTER_TIMEOUT if isinstance(failure, TimedOut) else _RETRY
        if price > self._left:
            raise failure
        self._left -= price
        return price

    def give_back(self, price: int | None) -> None:
        """A request succeeded: after a retry of that price, or at once."""
        self._left = min(self._capacity, self._left + (_FIRST_SUCCESS if price is None else price))


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
