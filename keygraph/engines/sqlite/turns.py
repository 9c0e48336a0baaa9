"""Long reads take turns with the event loop, and end when their time is over or nobody waits for them anymore. Writes
of different clients take turns with each other.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator
from concurrent.futures import Future
from typing import Any, TypeAlias, TypeVar

from keygraph.turns import ClientsInTurn

RowT = TypeVar("RowT")
WaitingWrite: TypeAlias = tuple[object, Any, Future[object]]
"""A request for a write, its plan if that was made beside other writes, and what gets its answer."""

INSTRUCTIONS = 20_000
"""The instructions after which SQLite asks whether to continue: about a millisecond."""
_TURN = 0.002
"""How many seconds a read works before it pauses. Python itself switches threads every 5 ms."""
_REST = 0.0005
"""How many seconds it pauses, so that the event loop can continue."""
_TRANSACTION_WRITES = 64
_TRANSACTION_SECONDS = 0.01
"""The time after which a transaction takes no more writes: others may come, and wait for its end."""


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

    def refuse_late(self) -> None:
        """Raises TimeoutError when the read is over."""
        if self.is_over():
            raise TimeoutError

    def take(self, rows: Iterable[RowT]) -> Iterator[RowT]:
        """Yields the rows, with pauses. Raises TimeoutError when the read is over."""
        rest_at = time.monotonic() + _TURN
        for row in rows:
            if time.monotonic() >= rest_at:
                self.refuse_late()
                time.sleep(_REST)
                rest_at = time.monotonic() + _TURN
            yield row


def transaction_writes(
    waiting: ClientsInTurn[str, WaitingWrite], commit_seconds: float
) -> Iterator[WaitingWrite]:
    """Yields the writes of one transaction, which ends after some milliseconds, however many clients wait.

    On a slow disk, which takes some seconds to commit it, as long is written: others wait for that anyway.
    """
    now = time.monotonic()
    ends = now + max(_TRANSACTION_SECONDS, commit_seconds)
    for _ in range(_TRANSACTION_WRITES):
        taken = waiting.take()
        if taken is None:
            return
        client, write = taken
        if write[-1].set_running_or_notify_cancel():
            yield write
            began, now = now, time.monotonic()
            waiting.count(client, now - began)
            if now >= ends:
                return
