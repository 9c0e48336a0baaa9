"""Sums by key in bounded memory, which keeps the largest.

The summary of Misra and Gries ("Finding repeated elements", 1982) with weights: when there are too many keys, the
largest sum that does not stay is subtracted from all sums, and keys with nothing left are forgotten. So a sum is too
small by at most what was subtracted, which is at most the total divided by the number of keys that stay.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable
from heapq import nlargest
from typing import Generic, TypeVar

KeyT = TypeVar("KeyT", bound=Hashable)


class Sketch(Generic[KeyT]):
    """Keeps the largest sums."""

    def __init__(self, kept: int) -> None:
        """Between `kept` and twice as many keys are stored."""
        self._most = kept
        self._sums: dict[KeyT, float] = {}
        self.lost = 0.0
        """The most by which a sum may be too small."""

    def __len__(self) -> int:
        return len(self._sums)

    def add(self, key: KeyT, amount: float) -> None:
        """Adds to the sum of a key."""
        self._sums[key] = self._sums.get(key, 0.0) + amount
        if len(self._sums) > 2 * self._most:
            least = nlargest(self._most + 1, self._sums.values())[-1]
            self._sums = {key: value - least for key, value in self._sums.items() if value > least}
            self.lost += least

    def scale(self, factor: float) -> None:
        """Multiplies every sum."""
        self._sums = {key: value * factor for key, value in self._sums.items()}
        self.lost *= factor

    def largest(self, count: int) -> Iterable[tuple[KeyT, float]]:
        """The largest sums, the largest first."""
        return nlargest(count, self._sums.items(), key=lambda each: each[1])
