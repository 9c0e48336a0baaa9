"""Long reads take turns with the event loop, and end when their time is over or nobody waits for them anymore."""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator
from typing import TypeVar

RowT = TypeVar("RowT")

INSTRUCTIONS = 20_000
"""The instructions after which SQLite asks whether to continue: about a millisecond."""
_TURN = 0.002
"""How many seconds a read works before it pauses. Python itself switches threads every 5 ms."""
_REST = 0.0005
"""How many seconds it pauses, so that the event loop can continue."""


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
