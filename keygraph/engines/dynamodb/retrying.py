"""Retries with full jitter, within a deadline and a quota.

"Exponential Backoff And Jitter" in the AWS Architecture Blog: the pause before the n-th retry is drawn evenly between
zero and a bound that doubles with n, so that clients that failed together do not retry together. "Retry behavior" in
the AWS SDKs reference guide: retries are paid from a quota that successes refill, so that clients do not keep a server
down by retrying. The deadline, and AWS's own `max_attempts` if it is set, limit how often one request is tried.
"""

from __future__ import annotations

import asyncio
import random
from dataclasses import dataclass

from keygraph.deadlines import Deadlines, Wait
from keygraph.errors import KeygraphError, TimedOut, again, without_frames

_RETRY, _RETRY_AFTER_TIMEOUT, _FIRST_SUCCESS = 5, 10, 1
_LEAST_CAPACITY, _ITS_CONNECTIONS = 500, 50


@dataclass(frozen=True, slots=True)
class Backoff:
    """The bounds of a pause, in seconds: of the first one, and of any."""

    first: float = 0.05
    longest: float = 1.0

    def pause(self, attempt: int) -> float:
        """Returns the pause in seconds before retry number `attempt`, which counts from 0."""
        # The exponent is bounded so that a long wait does not overflow.
        return random.uniform(0, min(self.longest, self.first * 2.0 ** min(attempt, 30)))


class Quota:
    """The quota that retries are paid from, shared by all requests of a store.

    The prices, and the capacity for 50 connections, are those of AWS's SDKs. With more connections more requests may
    fail at the same time, so the capacity grows with them.
    """

    @classmethod
    def of_connections(cls, connections: int) -> Quota:
        """Returns the quota of a store with this many connections."""
        return cls(max(_LEAST_CAPACITY, connections * _LEAST_CAPACITY // _ITS_CONNECTIONS))

    def __init__(self, capacity: int = _LEAST_CAPACITY) -> None:
        self._capacity = capacity
        self._left = capacity

    def pay(self, failure: KeygraphError) -> int:
        """Pays for a retry after the failure and returns its price. Raises the failure if too little is left."""
        price = _RETRY_AFTER_TIMEOUT if isinstance(failure, TimedOut) else _RETRY
        if price > self._left:
            raise again(failure)
        self._left -= price
        return price

    def give_back(self, price: int | None) -> None:
        """Called when a request succeeded: after a retry of that price, or at once (None)."""
        if self._left < self._capacity:
            self._left = min(self._capacity, self._left + (_FIRST_SUCCESS if price is None else price))


class Deadline(Deadlines):
    """The deadline of waits that may all take equally long."""

    def __init__(self, seconds: float, late: str) -> None:
        """`late` is the message of TimedOut."""
        super().__init__()
        self.seconds = seconds
        self.late = late


class Attempts(Wait):
    """The attempts at one answer: their deadline, the last failure, and the cost of them all.

    When the deadline passes, the last failure is raised; TimedOut if there was none.
    """

    requests = 0
    read_units = 0.0
    write_units = 0.0
    _failure: KeygraphError | None = None

    def __init__(self, deadline: Deadline, backoff: Backoff) -> None:
        super().__init__(deadline, deadline.loop.time() + deadline.seconds)
        self._backoff = backoff
        self._late = deadline.late

    async def wait(self, attempt: int, failure: KeygraphError) -> None:
        """Pauses before retry number `attempt`. Raises the failure if the deadline comes first."""
        self._failure = without_frames(failure)
        pause = self._backoff.pause(attempt)
        if self.deadlines.loop.time() + pause >= self.until:
            raise again(failure)
        await asyncio.sleep(pause)

    def error(self) -> KeygraphError:
        return again(self._failure) if self._failure else TimedOut(self._late)
