"""Long reads take turns with the event loop, and end when their time is over or nobody waits for them anymore. Writes
of different clients take turns with each other.
"""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Iterable, Iterator
from concurrent.futures import Future
from threading import Lock
from typing import TypeVar

from keygraph.dynamo.store import Request

RowT = TypeVar("RowT")

INSTRUCTIONS = 20_000
"""The instructions after which SQLite asks whether to continue: about a millisecond."""
_TURN = 0.002
"""How many seconds a read works before it pauses. Python itself switches threads every 5 ms."""
_REST = 0.0005
"""How many seconds it pauses, so that the event loop can continue."""
_WRITES_TOGETHER = 64
"""The most writes in one transaction."""
_SECONDS_TOGETHER = 0.01
"""The time after which a transaction takes no second write of a client, if there are others."""


class Turns:
    """The turns of one read, which runs in a thread."""

    def __init__(self, seconds: float) -> None:
        """`seconds` is how long the read may take."""
        self._ends = time.monotonic() + seconds

    def give_up(self) -> None:
        """Ends the read, because nobody waits for it anymore."""
        self._ends = 0.0

    def is_over(self) -> bool:
        return time.monotonic() >= self._ends

    def take(self, rows: Iterable[RowT]) -> Iterator[RowT]:
        """Yields the rows, with pauses. Raises TimeoutError when the read is over."""
        rest_at = time.monotonic() + _TURN
        for row in rows:
            if time.monotonic() >= rest_at:
                if self.is_over():
                    raise TimeoutError
                time.sleep(_REST)
                rest_at = time.monotonic() + _TURN
            yield row


class WaitingWrites:
    """The writes that wait for the writer's thread, by client. May be used in any thread."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._queues: dict[str, deque[tuple[Request[object], Future[object]]]] = {}

    def __bool__(self) -> bool:
        return bool(self._queues)

    def put(self, client: str, request: Request[object], done: Future[object]) -> None:
        """Adds a write. `done` gets its answer."""
        with self._lock:
            self._queues.setdefault(client, deque()).append((request, done))

    def take(self) -> Iterator[tuple[Request[object], Future[object]]]:
        """Yields the writes of one transaction: first one of each client, then theirs in turn."""
        ends, clients = time.monotonic() + _SECONDS_TOGETHER, set[str]()
        for _ in range(_WRITES_TOGETHER):
            with self._lock:
                is_over = clients != {""} and time.monotonic() >= ends
                again = None if is_over else next(iter(self._queues), None)
                client = next((each for each in self._queues if each not in clients), again)
                if client is None:
                    return
                queue = self._queues.pop(client)
                request, done = queue.popleft()
                if queue:
                    self._queues[client] = queue  # after all others
            clients.add(client)
            if done.set_running_or_notify_cancel():
                yield request, done
