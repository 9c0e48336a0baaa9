"""Reads the lists of one level side by side, page by page, within a budget.

Each round asks for the next parts of the first unfinished lists, with an equal share of the budget for each, so it
never asks for more than is left. The first rounds of a walk ask for few lists, since a page may be full soon, and each
asks for twice as many as the one before it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from math import ceil, log2
from typing import Any

from keygraph.model.paths import WalkedPath
from keygraph.walks.walk import Budget, Hop, Part, Vertex, Walk, Wanted

LARGEST_PART = 1_000
"""The most items that one request asks for."""
FIRST_LISTS = 16
"""The most lists that the first round of a walk asks for, if a part of the answer may be enough."""
FIRST_PART = 128
"""The budget, in items of each list, that the first round must have if results are needed in order."""


@dataclass(slots=True)
class OpenList:
    """A list of a level, and how much of it was read."""

    path: WalkedPath
    owner: Vertex
    after: Any = None
    hops: list[Hop] = field(default_factory=list)
    is_ended: bool = False

    def take(self, part: Part) -> None:
        self.hops += part.hops
        self.after = part.after
        self.is_ended = part.after is None


class Width:
    """How many lists a round asks for: twice as many each time."""

    def __init__(self, first: int | None, least: int = 1) -> None:
        """`first` None asks for all at once. `least` is how many items of each list the first round may read, halved in
        each later round: items of a list after an unfinished one may be of no use."""
        self._now = first
        self._least = least

    def widen(self) -> None:
        """Asks for all of them at once from now on."""
        self._now = None

    def expect(self, lists: int) -> None:
        """Asks for at least this many from now on: fewer will not be enough."""
        if self._now is not None:
            self._now = max(self._now, lists)

    def of(self, lists: Sequence[OpenList], budget: Budget) -> Sequence[OpenList]:
        """Returns the next lists, as many as the budget allows."""
        if self._now is None:
            return lists[: budget.left]
        self._least = max(1, min(self._least, budget.left))
        most = min(self._now, budget.left // self._least)
        self._now, self._least = self._now * 2, self._least // 2
        return lists[:most]


def read_level(
    lists: Sequence[OpenList], budget: Budget, width: Width, take: Callable[[], Walk[bool]]
) -> Walk[None]:
    """Reads lists until all have ended, the budget is used up, or `take`, done after each round, returns True."""
    unread = [each for each in lists if not each.is_ended]
    while unread and budget.left > 0:
        now = width.of(unread, budget)
        share = max(1, min(LARGEST_PART, budget.left // len(now)))
        wanted = [Wanted(each.path, each.owner, share, each.after) for each in now]
        # Not assigned: a name would keep them in memory while others are read.
        for each, part in zip(now, (yield wanted), strict=True):
            budget.take(part)
            each.take(part)
        if (yield from take()):
            return
        unread = [each for each in unread if not each.is_ended]


def most_rounds(levels: int, budget: int) -> int:
    """Returns the most rounds that the levels of a walk take.

    Each level has a first round. In a round that asks for all lists of a level, either half of them end, or a quarter
    of the budget, or a largest part of it, is used up. The others ask for twice as many lists as the one before, or use
    up the budget.
    """
    halves = ceil(log2(budget)) + 1
    quarters = ceil(log2(budget) / log2(4 / 3))
    return min(budget, levels * (1 + halves) + quarters + budget // LARGEST_PART + halves + 1)
