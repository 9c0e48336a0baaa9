"""Deadlines: many waits, and one timer for all of them."""

from __future__ import annotations

import asyncio
from contextvars import Context
from dataclasses import dataclass, field
from itertools import islice
from types import TracebackType
from typing import Self

_AT_ONCE = 16
"""So many waits end in one turn of the event loop: hundreds of requests may have come at the same time."""


class Deadlines:
    """The deadlines of one kind in an event loop. One timer serves them: a request has several, and a timer for each takes
    as long as sending it."""

    def __init__(self) -> None:
        # Python 3.11 makes a system call each time that somebody asks for the loop.
        self.loop = asyncio.get_running_loop()
        self.waits: dict[Wait, None] = {}
        """Those under way."""
        self.timer: asyncio.TimerHandle | None = None
        self._looks_at = 0.0

    def add(self, wait: Wait) -> None:
        self.waits[wait] = None
        if self.timer is None or wait.until < self._looks_at:
            self._look_at(wait.until)

    def _look_at(self, until: float) -> None:
        if self.timer is not None:
            self.timer.cancel()
        # With its context, a timer would keep the operation that happened to start it.
        self.timer = self.loop.call_at(until, self._look, context=Context())
        self._looks_at = until

    def _look(self) -> None:
        """Ends waits that are due, the first ones first."""
        self.timer, now = None, self.loop.time()
        for wait in islice([wait for wait in self.waits if wait.until <= now], _AT_ONCE):
            del self.waits[wait]
            wait.end()
        if self.waits:
            self._look_at(min([wait.until for wait in self.waits]))


@dataclass(eq=False)
class Wait:
    """What a task does until a deadline. A context manager: when the deadline passes, the task inside is cancelled, and
    TimeoutError is raised."""

    deadlines: Deadlines
    until: float
    """By the loop's time."""
    is_late: bool = field(default=False, init=False)

    def end(self) -> None:
        """Called when the deadline has passed."""
        self.is_late = True
        self._task.cancel()

    def error(self) -> Exception:
        """Returns what is raised then."""
        return TimeoutError()

    def __enter__(self) -> Self:
        self._task: asyncio.Task[object] = asyncio.current_task(self.deadlines.loop)  # type: ignore[assignment]  # only tasks wait
        self._cancelled_before = self._task.cancelling()
        self.deadlines.add(self)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> bool | None:
        task = self._task
        del self._task  # it references the frames of its error
        if not self.is_late:
            del self.deadlines.waits[self]
        elif task.uncancel() <= self._cancelled_before and kind is asyncio.CancelledError:
            raise self.error() from None
        return None
