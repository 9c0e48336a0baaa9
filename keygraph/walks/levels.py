"""Reading the lists of one level side by side, page by page, within a budget.

Each round asks for the next parts of the first lists that have not ended, with an equal share of the budget for each; so what
is asked for is never more than what is left. The first rounds of a walk ask for few lists, since a page may be full soon, and
each asks for twice as many as the one before it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from math import ceil, log2
from typing import Any

from keygraph.model.paths import AccessPath
from keygraph.walks.walk import Budget, Hop, Part, Vertex, Walk, Wanted

LARGEST_PART = 1_000
"""How many items one request asks for at most."""
FIRST_LISTS = 16
"""How many lists the first round of a walk asks for at most, where a part of the answer may do."""
FIRST_PART = 128
"""How many items of each list the first round has to have budget for, where what is found is needed in order."""


@dataclass(slots=True)
class OpenList:
    """A list of a level, as far as it was read."""

    path: AccessPath
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
        """None: all of them at once. `least` is how many items of each the first round may read, and the next ones half of that: what
        is read of a list behind one that has not ended may be of no use."""
        self._now = first
        self._least = least

    def widen(self) -> None:
        """Asks for all of them at once from now on."""
        self._now = None

    def expect(self, lists: int) -> None:
        """Asks for so many at least from now on: fewer will not do."""
        if self._now is not None:
            self._now = max(self._now, lists)

    def of(self, lists: Sequence[OpenList], budget: Budget) -> Sequence[OpenList]:
        """The next ones, as far as the budget has something for each."""
        if self._now is None:
            return lists[: budget.left]
        self._least = max(1, min(self._least, budget.left))
        most = min(self._now, budget.left // self._least)
        self._now, self._least = self._now * 2, self._least // 2
        return lists[:most]


def read_level(
    lists: Sequence[OpenList], budget: Budget, width: Width, take: Callable[[], bool] = lambda: False
) -> Walk[None]:
    """Reads lists until all have ended, the budget is used up, or `take`, called after each round, says that it is enough."""
    unread = [each for each in lists if not each.is_ended]
    while unread and budget.left > 0:
        now = width.of(unread, budget)
        share = max(1, min(LARGEST_PART, budget.left // len(now)))
        wanted = [Wanted(each.path, each.owner, share, each.after) for each in now]
        for each, part in zip(
            now, (yield wanted), strict=True
        ):  # no name: nothing keeps them while others are read
            budget.take(part)
            each.take(part)
        if take():
            return
        unread = [each for each in unread if not each.is_ended]


def most_rounds(levels: int, budget: int) -> int:
    """How many rounds the levels of a walk take at most.

    Each level has a first round. In a round that asks for all lists of a level, either half of them end, or a quarter of the
    budget, or a largest part of it, is used up. The others ask for twice as many lists as the one before, or use the
    budget up.
    """
    halves = ceil(log2(budget)) + 1
    quarters = ceil(log2(budget) / log2(4 / 3))
    return min(budget, levels * (1 + halves) + quarters + budget // LARGEST_PART + halves + 1)
