"""Long reads take turns with the event loop, and end when their time is over or nobody waits for them anymore. Writes
of different clients take turns with each other.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator
from concurrent.futures import Future
from threading import Lock
from typing import TypeVar

from keygraph.dynamo.store import Request
from keygraph.turns import ClientsInTurn, operation_client

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
"""The time after which a transaction takes no second write of a client: another one's may come, and wait for its end."""


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
    """The writes that wait for the writer's thread. May be used in any thread."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._waiting = ClientsInTurn[tuple[Request[object], Future[object]]]()

    def __bool__(self) -> bool:
        return bool(self._waiting)

    def put(self, request: Request[object], done: Future[object]) -> None:
        """Adds a write of the running operation. `done` gets its answer."""
        with self._lock:
            self._waiting.add(operation_client(), (request, done))

    def take(self) -> Iterator[tuple[Request[object], Future[object]]]:
        """Yields the writes of one transaction: first one of each client, then theirs in turn."""
        ends, had = time.monotonic() + _SECONDS_TOGETHER, set[str]()
        for _ in range(_WRITES_TOGETHER):
            with self._lock:
                client = self._waiting.next_client(had)
                # Jobs have no client.
                if client is None or (client and client in had and time.monotonic() >= ends):
                    return
                request, done = self._waiting.take(client)
            had.add(client)
            if done.set_running_or_notify_cancel():
                yield request, done
