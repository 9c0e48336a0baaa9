"""Common neighbors: the items of the first list that are also in all other lists.

There are two walks. Lists sorted by the compared values are merged: each is read from the latest position of any of
them, which skips parts where another list has nothing. The items of a short list are looked up by key in a much longer
one. For lists in another order, the first one is read, and its items are looked up in the others. If one of the others
is short, its items are looked up in the first.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Generator, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple, TypeAlias

FIRST = 128
"""How many items of each list are read at first."""
FIRST_OF_ALL = 512
"""The same if all common items are wanted."""
GROWTH = 4
"""The factor by which each round of pages grows: a round trip costs more than a page's items."""
MOST_KEYS = 100
"""The most keys that are looked up in a list at once."""
ITEMS_OF_A_KEY = 32
"""The cost of looking up a key, in items of a page: half a read unit, which is 4 KB of a page's items."""
WEIGHT_OF_A_KEY = 8
"""The share of the budget, in items, that a key takes: its item's size is not known to be small."""
WEIGHT_OF_A_QUERY = 100
"""The same if a key takes a Query of its own."""


class Entry(NamedTuple):
    """An item of a list and the key to compare; in a merge, the lists are sorted by that key."""

    key: Any
    item: Any = None


class Begin(NamedTuple):
    """Where to start reading."""

    key: Any
    is_included: bool


@dataclass(frozen=True, slots=True)
class PageWanted:
    """A part of a list: `count` items, or fewer if the store has examined `budget` items."""

    side: int
    begin: Begin | None
    """None: from the start of the walk."""
    count: int
    budget: int


@dataclass(frozen=True, slots=True)
class KeysWanted:
    """The items of a list that have these keys."""

    side: int
    entries: Sequence[Entry]
    """One for each key, with an item of another list if there is one."""


Wanted: TypeAlias = PageWanted | KeysWanted


class WalkAnswer(NamedTuple):
    """What was found, in the list's order."""

    entries: Sequence[Entry]
    looked_at: int = 0
    is_ended: bool = True
    """Whether the list has nothing after it."""
    resume: Entry | None = None
    """The end of a page that examined as many items as allowed, if that is after its last item."""


@dataclass(slots=True, eq=False)
class _Side:
    """One list, and how much of it was read."""

    number: int
    waiting: deque[Entry] = field(default_factory=deque)
    reached: Any = None
    """The last key up to which it is known, inclusive; None if none of it is."""
    is_ended: bool = False
    looked_at: int = 0
    read: int = 0
    """How many of its items have come in pages."""
    tested: int = 0
    """How many keys of others were looked up in it."""


class Common:
    """A walk through lists for their common items."""

    def __init__(self, wanted: int | None, budget: int) -> None:
        """`wanted` is the number of items of the first list to find; None for all. `budget` is the most items to
        examine."""
        self.found: list[Entry] = []
        """The items of the first list, in its order unless `is_unordered`."""
        self.is_open = False
        """Whether the budget has ended the walk."""
        self.is_unordered = False
        """Whether all of them were found, in no order."""
        self.last: Entry | None = None
        """The last item of the first list that is decided."""
        self._wanted = wanted
        self.left = budget
        """How many more items may be examined; none if it is below 1."""
        self._limit = FIRST_OF_ALL if wanted is None else FIRST

    def walk(self) -> Generator[Sequence[Wanted], Sequence[WalkAnswer], None]:
        """Yields what to read next, all at the same time, and receives the answers in the same order."""
        while wanted := self._next():
            for each, answer in zip(wanted, (yield wanted), strict=True):
                self._take(each, answer)

    def _next(self) -> Sequence[Wanted]:
        raise NotImplementedError

    def _take(self, wanted: Wanted, answer: WalkAnswer) -> None:
        raise NotImplementedError

    @property
    def _is_enough(self) -> bool:
        return self._wanted is not None and len(self.found) >= self._wanted

    def _count(self, lists: int, weight: int = 1) -> tuple[int, int]:
        """Returns how many items to read of each list, and how many the store may examine for them. `weight` is an
        item's share of the budget."""
        share = max(FIRST, self.left // lists)
        limit, self._limit = self._limit, self._limit * GROWTH
        return max(1, min(limit, share // weight)), share


class Merge(Common):
    """Lists sorted by the key to compare, each key at most once."""

    def __init__(
        self, sides: int, wanted: int | None, budget: int, *, forward: bool = True, begin: Any = None
    ) -> None:
        """`begin` is the key after which the lists are read."""
        super().__init__(wanted, budget)
        self._sides = [_Side(number) for number in range(sides)]
        self._forward = forward
        self._low = None if begin is None else Begin(begin, False)
        """Nothing before this position is needed any more."""

    def _next(self) -> Sequence[Wanted]:
        while behind := self._merged():
            if self.left <= 0 and self.last is not None:
                self.is_open = True
                break
            others = [side for side in self._sides if side not in behind]
            if not others:
                return self._pages(behind)
            candidates, reach = self._candidates(others), self._reach(others)
            if candidates:
                return self._pages_or_keys(behind, others, candidates, reach)
            if reach is None:
                break
            self._raise(Begin(reach, False))
        return ()

    def _take(self, wanted: Wanted, answer: WalkAnswer) -> None:
        side = self._sides[wanted.side]
        side.waiting.extend(answer.entries)
        if isinstance(wanted, KeysWanted):
            self.left -= WEIGHT_OF_A_KEY * len(wanted.entries)
            return
        looked_at = max(answer.looked_at, len(answer.entries))
        self.left -= looked_at
        side.looked_at += looked_at
        side.read += len(answer.entries)
        side.is_ended = answer.is_ended
        if answer.entries:
            side.reached = answer.entries[-1].key
        if answer.resume is not None:
            side.reached = answer.resume.key
            if side is self._sides[0]:
                side.waiting.append(answer.resume)

    # --- What is known --------------------------------------------------------------------------------

    def _merged(self) -> list[_Side]:
        """Collects the common items read so far. Returns the lists that must be read further; none when the walk is
        done."""
        while not self._is_enough:
            for side in self._sides:
                self._skip(side)
            empty = [side for side in self._sides if not side.waiting]
            if any(side.is_ended for side in empty):
                break
            reached = [side.reached for side in empty if side.reached is not None]
            if any(self._raise(Begin(key, False)) for key in reached):
                continue
            if empty:
                return empty
            keys = [side.waiting[0].key for side in self._sides]
            latest = max(keys) if self._forward else min(keys)
            is_in_all = all(key == latest for key in keys)
            if is_in_all:
                self.last = self._sides[0].waiting[0]
                self.found += [self.last] if self.last.item is not None else []
            self._raise(Begin(latest, not is_in_all))
        return []

    def _skip(self, side: _Side) -> None:
        """Drops items that are not needed any more."""
        waiting, low = side.waiting, self._low
        while waiting and low is not None and self._is_before(waiting[0].key, low):
            first = waiting.popleft()
            if side is self._sides[0]:
                self.last = first

    def _is_before(self, key: Any, low: Begin) -> bool:
        return not low.is_included if key == low.key else bool(key < low.key) is self._forward

    def _raise(self, low: Begin) -> bool:
        """Moves the lower bound up to a position. Returns whether that changes it."""
        if self._low == low or (self._low is not None and not self._is_before(self._low.key, low)):
            return False
        self._low = low
        return True

    def _reach(self, sides: Sequence[_Side]) -> Any:
        """Returns the key up to which all of them are known; None for any."""
        reached = [side.reached for side in sides if not side.is_ended]
        return (min if self._forward else max)(reached) if reached else None

    def _candidates(self, sides: Sequence[_Side]) -> list[Entry]:
        """Returns the items still needed that these lists are known to have in common."""
        first, *more = sides
        keys = [{entry.key for entry in side.waiting} for side in more]
        return [
            entry
            for entry in first.waiting
            if entry.item is not None and all(entry.key in each for each in keys)
        ]

    # --- What is read next ----------------------------------------------------------------------------

    def _pages(self, sides: Sequence[_Side]) -> list[Wanted]:
        count, share = self._count(len(sides))
        begins = [Begin(side.reached, False) if side.waiting else self._low for side in sides]
        return [
            PageWanted(side.number, begin, count, share) for side, begin in zip(sides, begins, strict=True)
        ]

    def _pages_or_keys(
        self, behind: Sequence[_Side], others: Sequence[_Side], candidates: Sequence[Entry], reach: Any
    ) -> list[Wanted]:
        """For each list that is behind, wants the next page or the candidates by key, whichever is cheaper."""
        passed = min(side.read - len(side.waiting) for side in others)
        is_few = reach is None and len(candidates) * ITEMS_OF_A_KEY <= self._limit
        by_key = [
            side
            for side in behind
            if is_few or side.looked_at >= ITEMS_OF_A_KEY * max(1, passed - side.tested)
        ]
        chunk = candidates[:MOST_KEYS]
        for side in by_key:
            side.reached = chunk[-1].key if len(chunk) < len(candidates) else reach
            side.is_ended = side.reached is None
            side.tested += len(chunk)
        by_page = [side for side in behind if side not in by_key]
        if by_page:
            # Lists that will soon be behind are read along with them.
            by_page += [side for side in others if not side.is_ended and len(side.waiting) * 4 < self._limit]
        keys = [KeysWanted(side.number, chunk) for side in by_key]
        return [*keys, *(self._pages(by_page) if by_page else ())]


class LookUp(Common):
    """Lists in any order: the items of the first one are looked up in the others."""

    def __init__(
        self,
        sides: int,
        wanted: int | None,
        budget: int,
        *,
        weight: int = WEIGHT_OF_A_KEY,
        known: Sequence[Entry] | None = None,
        is_ordered: bool = False,
    ) -> None:
        """`weight` is the budget for looking up a key. `known` is the whole first list, if it was read before.

        `is_ordered`: the common items are wanted in the order of the first list, so it is read even if another one is
        short.
        """
        super().__init__(wanted, budget)
        self.is_unordered = known is not None
        self._others = range(1, sides)
        self._weight = weight
        self._whole: dict[int, set[Any]] = {}
        """The keys of those other lists that are completely known."""
        self._waiting = list(known or ())
        self._tests: dict[int, set[Any]] = {}
        """Which keys of the waiting items the others have."""
        self._is_begun = self._is_ended = known is not None
        self._is_tried = is_ordered or known is not None
        self._low: Begin | None = None

    def _next(self) -> Sequence[Wanted]:
        if not self._is_begun:
            # One of the others may be short.
            self._is_begun = True
            count, share = self._count(1 + len(self._others), self._weight)
            others = [PageWanted(side, None, MOST_KEYS, share) for side in self._others]
            return [PageWanted(0, None, count, share), *others]
        if not self._is_tried:
            self._is_tried = True
            if self._whole and not self._is_ended:
                return self._short()
        return self._tested()

    def _short(self) -> Sequence[Wanted]:
        """Looks up the items that all short lists have in the first list."""
        self.is_unordered = self._is_ended = True
        self._waiting = []
        keys = set.intersection(*self._whole.values())
        return [KeysWanted(0, [Entry(key) for key in sorted(keys)])] if keys else ()

    def _tested(self) -> Sequence[Wanted]:
        while self._waiting or not self._is_ended:
            known = (*self._whole.values(), *self._tests.values())
            self._waiting = [each for each in self._waiting if all(each.key in keys for keys in known)]
            untested = [side for side in self._others if side not in self._whole and side not in self._tests]
            if self._waiting and untested:
                entries = [Entry(key) for key in dict.fromkeys(each.key for each in self._waiting)]
                return [KeysWanted(side, entries) for side in untested]
            self.found += self._waiting
            self._waiting, self._tests = [], {}
            if self._is_ended or self._is_enough:
                break
            if self.left <= 0:
                self.is_open = True
                break
            tests = len(self._others) - len(self._whole)
            count, share = self._count(1, 1 + self._weight * tests)
            return [PageWanted(0, self._low, count, share)]
        return ()

    def _take(self, wanted: Wanted, answer: WalkAnswer) -> None:
        keys = {entry.key for entry in answer.entries}
        if isinstance(wanted, KeysWanted):
            self.left -= self._weight * len(wanted.entries)
            if wanted.side:
                self._tests[wanted.side] = keys
            else:
                self._waiting = [*answer.entries]
            return
        self.left -= max(answer.looked_at, len(answer.entries))
        if wanted.side == 0:
            self._waiting, self._is_ended = [*answer.entries], answer.is_ended
            self.last = answer.resume or (answer.entries[-1] if answer.entries else self.last)
            self._low = None if self.last is None else Begin(self.last, False)
        elif answer.is_ended:
            self._whole[wanted.side] = keys
