"""Sums by key of which the largest are known, in bounded memory.

The summary of Misra and Gries ("Finding repeated elements", 1982) with weights: when there are too many keys, all sums lose what
the smallest of those that stay has, and who has nothing left is forgotten. So a sum is too small by at most what was lost, and
what was lost is at most the total divided by the number of keys that stay.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable
from heapq import nlargest
from typing import Generic, TypeVar

KeyT = TypeVar("KeyT", bound=Hashable)


class Sketch(Generic[KeyT]):
    """The largest sums."""

    def __init__(self, kept: int) -> None:
        """Between `kept` and twice as many keys are known."""
        self._most = kept
        self._sums: dict[KeyT, float] = {}
        self.lost = 0.0
        """By how much a sum may be too small."""

    def __len__(self) -> int:
        return len(self._sums)

    def add(self, key: KeyT, amount: float) -> None:
        """Add to the sum of a key."""
        self._sums[key] = self._sums.get(key, 0.0) + amount
        if len(self._sums) > 2 * self._most:
            self._forget()

    def scale(self, factor: float) -> None:
        """Multiply every sum."""
        self._sums = {key: value * factor for key, value in self._sums.items()}
        self.lost *= factor

    def largest(self, count: int) -> Iterable[tuple[KeyT, float]]:
        """The largest sums, the largest first."""
        return nlargest(count, self._sums.items(), key=lambda each: each[1])

    def _forget(self) -> None:
        least = nlargest(self._most + 1, self._sums.values())[-1]
        self._sums = {key: value - least for key, value in self._sums.items() if value > least}
        self.lost += least
