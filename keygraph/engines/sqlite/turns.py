"""Long reads take turns with the event loop, and end when their time is over or nobody waits for them any more."""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator
from typing import TypeVar

RowT = TypeVar("RowT")

INSTRUCTIONS = 20_000
"""After so many instructions SQLite asks whether it is to go on: about a millisecond."""
_TURN = 0.002
"""For how many seconds a read works before it rests. Python changes threads every 5 ms by itself."""
_REST = 0.0005
"""For how many seconds it rests, so that the event loop goes on first."""


class Turns:
    """The turns of one read, which runs in a thread."""

    def __init__(self, seconds: float) -> None:
        """The read may take that many seconds."""
        self._ends = time.monotonic() + seconds

    def give_up(self) -> None:
        """Nobody waits for the read any more."""
        self._ends = 0.0

    def is_over(self) -> bool:
        return time.monotonic() >= self._ends

    def take(self, rows: Iterable[RowT]) -> Iterator[RowT]:
        """The rows, with rests. Raises TimeoutError when the read is over."""
        rest_at = time.monotonic() + _TURN
        for row in rows:
            if time.monotonic() >= rest_at:
                if self.is_over():
                    raise TimeoutError
                time.sleep(_REST)
                rest_at = time.monotonic() + _TURN
            yield row
