"""Retries with full jitter, inside a deadline, and no more of them than a quota allows.

"Exponential Backoff And Jitter" in the AWS Architecture Blog: the pause before the n-th retry is drawn evenly
between zero and a bound that doubles with n, so that clients that failed together do not retry together.
"Retry behavior" in the AWS SDKs reference guide: retries are paid from a quota that successes fill again, so that clients do
not keep a server down by retrying. The deadline, and AWS's own `max_attempts` where it is set, limit how often one request
is tried.
"""

from __future__ import annotations

import asyncio
import random
from collections import deque
from dataclasses import dataclass
from types import TracebackType
from typing import Any, Self

from keygraph.errors import KeygraphError, TimedOut

_RETRY, _RETRY_AFTER_TIMEOUT, _FIRST_SUCCESS = 5, 10, 1
_LEAST_CAPACITY, _ITS_CONNECTIONS = 500, 50


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
    """What retries are paid from, shared by all requests of a store.

    The prices, and the capacity for 50 connections, are those of AWS's SDKs. With more connections more requests may fail
    at the same time, so the capacity grows with them.
    """

    @classmethod
    def of_connections(cls, connections: int) -> Quota:
        """The quota of a store with this many connections."""
        return cls(max(_LEAST_CAPACITY, connections * _LEAST_CAPACITY // _ITS_CONNECTIONS))

    def __init__(self, capacity: int = _LEAST_CAPACITY) -> None:
        self._capacity = capacity
        self._left = capacity

    def pay(self, failure: KeygraphError) -> int:
        """The price of a retry after the failure. Raises the failure where too little is left to pay it."""
        price = _RETRY_AFTER_TIMEOUT if isinstance(failure, TimedOut) else _RETRY
        if price > self._left:
            raise failure
        self._left -= price
        return price

    def give_back(self, price: int | None) -> None:
        """To be called when a request succeeded: after a retry of that price, or at once (None)."""
        if self._left < self._capacity:
            self._left = min(self._capacity, self._left + (_FIRST_SUCCESS if price is None else price))


class Deadlines:
    """Ends attempts that take longer than so many seconds.

    All attempts have the same time, so those that began first are due first, and one timer serves them all.
    """

    def __init__(self, seconds: float) -> None:
        self._seconds = seconds
        self._watched: deque[Attempts] = deque()
        self._timer: asyncio.TimerHandle | None = None

    def watch(self, attempts: Attempts, loop: asyncio.AbstractEventLoop) -> float:
        """Starts to watch the attempts. Returns the loop's time at which they are ended, unless they are `done` before."""
        until = loop.time() + self._seconds
        self._watched.append(attempts)
        if self._timer is None:
            self._timer = loop.call_at(until, self._end_late)
        return until

    def done(self) -> None:
        """To be called when attempts have ended: forgets the oldest ones that have."""
        watched = self._watched
        while watched and watched[0].task is None:
            watched.popleft()

    def _end_late(self) -> None:
        self._timer = None
        loop = asyncio.get_running_loop()
        # A timer may be early by the clock's resolution.
        now = loop.time() + 0.001
        while self._watched and (self._watched[0].task is None or self._watched[0].until <= now):
            self._watched.popleft().end()
        if self._watched:
            self._timer = loop.call_at(self._watched[0].until, self._end_late)


class Attempts:
    """The attempts at one answer: how long they may take, and how the last one failed.

    A context manager. When the deadline passes, the task inside is cancelled, and the last failure is raised; TimedOut
    where there was none.
    """

    __slots__ = ("_backoff", "_cancelling", "_deadlines", "_is_late", "_late", "failure", "task", "until")

    def __init__(self, deadlines: Deadlines, backoff: Backoff, late: str) -> None:
        """`late` is the message of TimedOut."""
        self._deadlines = deadlines
        self._backoff = backoff
        self._late = late
        self._cancelling = 0
        self._is_late = False
        self.task: asyncio.Task[Any] | None = None
        """The task that runs inside; None before and after."""
        self.until = 0.0
        self.failure: KeygraphError | None = None

    def end(self) -> None:
        """Cancels the task that runs inside."""
        if self.task is not None:
            self._is_late = True
            self.task.cancel()

    async def wait(self, attempt: int, failure: KeygraphError) -> None:
        """Pauses before retry number `attempt`. Raises the failure where the deadline is earlier than that."""
        self.failure = failure
        pause = self._backoff.pause(attempt)
        if asyncio.get_running_loop().time() + pause >= self.until:
            raise failure
        await asyncio.sleep(pause)

    def __enter__(self) -> Self:
        loop = asyncio.get_running_loop()
        task = self.task = asyncio.current_task(loop)
        if task is None:
            raise RuntimeError("attempts with a deadline must run in an asyncio task")
        self._cancelling = task.cancelling()
        self.until = self._deadlines.watch(self, loop)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        task, self.task = self.task, None
        self._deadlines.done()
        if kind is None and not self._is_late:
            return
        # As in `asyncio.timeout`: where somebody else cancels the task too, it ends cancelled.
        is_ours = self._is_late and task is not None and task.uncancel() <= self._cancelling
        if is_ours and kind is asyncio.CancelledError:
            raise self.failure or TimedOut(self._late) from None
