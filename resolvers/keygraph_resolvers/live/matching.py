"""Finds the operations that a change of an item touches, among many.

A change has a position in the table and in each index, before and after. It touches an operation that has read one of
these positions: by the item's key, or as a part of a range. Where neither the item's presence nor its position changes,
only operations that have read one of the changed attributes are touched.

A change costs a lookup for the table and for each index, and the search for its place among the ranges of that partition,
however many operations have read other items. All of it takes microseconds, so that the event loop is never held up.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right, insort
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping
from operator import itemgetter
from typing import Any, Generic, TypeAlias, TypeVar

from keygraph.dynamo.items import Item
from keygraph.dynamo.table import Key, KeyAttribute, KeyValue, Table
from keygraph.model.records import RecordType
from keygraph_resolvers.read.changes import RecordChange, WantedChanges
from keygraph_resolvers.read.recording import KeyRange, Names

OwnerT = TypeVar("OwnerT")


class ChangeIndex(Generic[OwnerT]):
    """The operations that want changes of records, by the type and the texts in their keys."""

    def __init__(self) -> None:
        self._by_type: dict[RecordType, dict[tuple[str, ...], dict[tuple[str, ...], dict[OwnerT, None]]]] = {}

    def __bool__(self) -> bool:
        return bool(self._by_type)

    def add(self, wanted: WantedChanges, owner: OwnerT) -> None:
        """Adds an operation that wants these changes."""
        by_names = self._by_type.setdefault(wanted.record, {})
        by_names.setdefault(wanted.names, {}).setdefault(wanted.texts, {})[owner] = None

    def drop(self, wanted: WantedChanges, owner: OwnerT) -> None:
        """Drops an operation that wanted these changes."""
        by_names = self._by_type[wanted.record]
        by_texts = by_names[wanted.names]
        del by_texts[wanted.texts][owner]
        if not by_texts[wanted.texts]:
            del by_texts[wanted.texts]
        if not by_texts:
            del by_names[wanted.names]
        if not by_names:
            del self._by_type[wanted.record]

    def wanting(self, change: RecordChange) -> dict[OwnerT, None]:
        """Returns the operations that want a change: by the record's keys before or after it."""
        found: dict[OwnerT, None] = {}
        for names, by_texts in self._by_type.get(change.record, {}).items():
            for texts in change.texts:
                found |= by_texts.get(tuple([texts.get(name) or "" for name in names]), {})
        return found


class ReadIndex(Generic[OwnerT]):
    """The reads of many operations."""

    def __init__(self, table: Table) -> None:
        self.table = table
        self._by_key: dict[Key, dict[OwnerT, Names]] = {}
        self._by_partition: dict[tuple[str | None, KeyValue], _Intervals[OwnerT]] = {}
        self._indexes = [(index.name, index.partition, index.sort) for index in table.indexes]
        self.changes = ChangeIndex[OwnerT]()
        self.size = 0
        """How many keys and ranges of operations are held."""

    def of(self, owner: OwnerT, counted: Callable[[int], None] = lambda _: None) -> OwnReads[OwnerT]:
        """Returns what takes the reads of an operation. `counted` is called with how many more or fewer are held."""
        return OwnReads(self, owner, counted)

    def add_key(self, key: Key, owner: OwnerT, names: Names) -> None:
        """Adds a key that an operation reads."""
        self._add(self._by_key.setdefault(key, {}), owner, names)

    def add_range(self, read: KeyRange, owner: OwnerT, names: Names) -> None:
        """Adds a range that an operation reads."""
        place = read.index_name, read.partition
        intervals = self._by_partition.get(place)
        if intervals is None:
            intervals = self._by_partition[place] = _Intervals()
        self._add(intervals.owners_of(read.low, read.high), owner, names)

    def drop_key(self, key: Key, owner: OwnerT) -> None:
        """Drops a key that an operation has read."""
        owners = self._by_key[key]
        del owners[owner]
        self.size -= 1
        if not owners:
            del self._by_key[key]

    def drop_range(self, read: KeyRange, owner: OwnerT) -> None:
        """Drops a range that an operation has read."""
        place = read.index_name, read.partition
        intervals = self._by_partition[place]
        intervals.drop(read.low, read.high, owner)
        self.size -= 1
        if not intervals:
            del self._by_partition[place]

    def _add(self, owners: dict[OwnerT, Names], owner: OwnerT, names: Names) -> None:
        if owner in owners:
            before = owners[owner]
            names = None if names is None or before is None else before | names
        else:
            self.size += 1
        owners[owner] = names

    def touched(self, old: Item | None, new: Item | None) -> set[OwnerT]:
        """Returns the operations that a change of an item touches; None where it did not exist."""
        touched: set[OwnerT] = set()
        if old is None and new is None:
            return touched
        item: Any = new if old is None else old
        both = None
        if old is not None and new is not None:
            both = frozenset(name for name in old.keys() | new.keys() if old.get(name) != new.get(name))
        key = self.table.key_of(item)
        owners = self._by_key.get(key)
        if owners:
            _collect(touched, owners, both)
        # Of the table, the position is the key, which does not change.
        intervals = self._by_partition.get((None, key[0]))
        if intervals:
            for owners in intervals.at(key[1] if len(key) > 1 else None):
                _collect(touched, owners, both)
        for name, partition, sort in self._indexes:
            before, after = _position(old, partition, sort), _position(new, partition, sort)
            is_same = before == after
            for place in (after,) if is_same else (before, after):
                intervals = None if place is None else self._by_partition.get((name, place[0]))
                if intervals and place is not None:
                    for owners in intervals.at(place[1]):
                        _collect(touched, owners, both if is_same else None)
        return touched


class OwnReads(Generic[OwnerT]):
    """The reads of one run of an operation, in the index of all.

    A run that was given up may still be reading when they are forgotten. What it adds then is in no index that is used.
    """

    __slots__ = ("_counted", "_index", "_keys", "_owner", "_pending", "_ranges", "wanted")

    def __init__(self, index: ReadIndex[OwnerT], owner: OwnerT, counted: Callable[[int], None]) -> None:
        self._index = index
        self._counted = counted
        self._owner = owner
        self._keys: set[Key] = set()
        self._ranges: set[KeyRange] = set()
        self._pending = Counter[KeyRange]()
        """The ranges that are being read, or could not be."""
        self.wanted: WantedChanges | None = None

    def add_changes(self, wanted: WantedChanges) -> None:
        self.wanted = wanted
        self._index.changes.add(wanted, self._owner)

    def add_key(self, key: Key, names: Names) -> None:
        """An item is read by its key."""
        before = self._index.size
        self._keys.add(key)
        self._index.add_key(key, self._owner, names)
        self._counted(self._index.size - before)

    def begin(self, read: KeyRange, names: Names) -> None:
        """A range is read."""
        before = self._index.size
        self._pending[read] += 1
        self._index.add_range(read, self._owner, names)
        self._counted(self._index.size - before)

    def end(self, read: KeyRange, reached: KeyRange, names: Names) -> None:
        """The read has reached this part of its range."""
        before = self._index.size
        self._ranges.add(reached)
        self._index.add_range(reached, self._owner, names)
        self._pending[read] -= 1
        if not self._pending[read]:
            del self._pending[read]
            if read not in self._ranges:
                self._index.drop_range(read, self._owner)
        self._counted(self._index.size - before)

    def forget(self) -> None:
        """Drops all of them, for good."""
        before = self._index.size
        for key in self._keys:
            self._index.drop_key(key, self._owner)
        for read in self._ranges | self._pending.keys():
            self._index.drop_range(read, self._owner)
        if self.wanted is not None:
            self._index.changes.drop(self.wanted, self._owner)
        self._keys, self._ranges, self._pending, self.wanted = set(), set(), Counter(), None
        self._counted(self._index.size - before)
        self._index, self._counted = ReadIndex(self._index.table), lambda _: None

    def uses(self, indexes: Collection[str]) -> bool:
        """Returns whether a range of one of these indexes was read."""
        return any(read.index_name in indexes for read in self._ranges)


# --- The ranges of one partition ----------------------------------------------------------------------

_Bound: TypeAlias = tuple[int, Any]
"""A bound in the order of bounds: nothing below, a key, nothing above."""
_Bounds: TypeAlias = tuple[_Bound, _Bound]
_FIRST, _LAST = (0, ""), (2, "")
_MOST_OF_BLOCK = 256
"""A block of more ranges is split."""


class _Intervals(Generic[OwnerT]):
    """The ranges of a partition, each with the operations that have read it.

    They are in blocks, which are in the order of their low bounds. A block has its ranges by their low and by their high
    bounds. Of the blocks that begin below a key, all but the last one have no range that begins above it: what ends above it
    is found in the second list. So ranges come and go without looking at all others.
    """

    __slots__ = ("_blocks", "_by_bounds")

    def __init__(self) -> None:
        self._by_bounds: dict[_Bounds, dict[OwnerT, Names]] = {}
        self._blocks: list[_Block] = []

    def __bool__(self) -> bool:
        return bool(self._by_bounds)

    def owners_of(self, low: KeyValue | None, high: KeyValue | None) -> dict[OwnerT, Names]:
        """Returns the operations of a range, to add to."""
        bounds = _bounds(low, high)
        owners = self._by_bounds.get(bounds)
        if owners is None:
            owners = self._by_bounds[bounds] = {}
            place = self._place(bounds)
            block = self._blocks[place] if self._blocks else _Block([])
            if not self._blocks:
                self._blocks.append(block)
            block.add(bounds)
            if len(block.by_low) > _MOST_OF_BLOCK:
                half = len(block.by_low) // 2
                self._blocks[place : place + 1] = [_Block(block.by_low[:half]), _Block(block.by_low[half:])]
        return owners

    def drop(self, low: KeyValue | None, high: KeyValue | None, owner: OwnerT) -> None:
        """Drops an operation from a range."""
        bounds = _bounds(low, high)
        owners = self._by_bounds[bounds]
        del owners[owner]
        if not owners:
            del self._by_bounds[bounds]
            place = self._place(bounds)
            self._blocks[place].drop(bounds)
            if not self._blocks[place].by_low:
                del self._blocks[place]

    def _place(self, bounds: _Bounds) -> int:
        """Returns the number of the block in which a range is, or would be."""
        return max(0, bisect_right(self._blocks, bounds, key=_first_of) - 1)

    def at(self, sort: KeyValue | None) -> Iterator[dict[OwnerT, Names]]:
        """Yields the operations of each range that contains a sort key; None is that of a table without one."""
        if sort is None:
            yield from self._by_bounds.values()
            return
        key = (1, sort)
        last = bisect_right(self._blocks, (key, _LAST), key=_first_of) - 1
        for block in self._blocks[: max(0, last)]:
            for high, low in block.by_high[bisect_left(block.by_high, key, key=_bound_of) :]:
                yield self._by_bounds[low, high]
        if last >= 0:
            for bounds in self._blocks[last].by_low:
                if bounds[0] <= key <= bounds[1]:
                    yield self._by_bounds[bounds]


class _Block:
    """Some ranges that follow each other by their low bounds."""

    __slots__ = ("by_high", "by_low")

    def __init__(self, by_low: list[_Bounds]) -> None:
        self.by_low = by_low
        self.by_high = sorted((high, low) for low, high in by_low)

    def add(self, bounds: _Bounds) -> None:
        insort(self.by_low, bounds)
        insort(self.by_high, bounds[::-1])

    def drop(self, bounds: _Bounds) -> None:
        del self.by_low[bisect_left(self.by_low, bounds)]
        del self.by_high[bisect_left(self.by_high, bounds[::-1])]


def _first_of(block: _Block) -> _Bounds:
    return block.by_low[0]


_bound_of: Callable[[_Bounds], _Bound] = itemgetter(0)


def _bounds(low: KeyValue | None, high: KeyValue | None) -> _Bounds:
    return _FIRST if low is None else (1, low), _LAST if high is None else (1, high)


def _collect(touched: set[OwnerT], owners: Mapping[OwnerT, Names], changed: frozenset[str] | None) -> None:
    """Adds the operations that have read one of the changed attributes; None for all."""
    if changed is None:
        touched.update(owners)
        return
    for owner, names in owners.items():
        if names is None or not names.isdisjoint(changed):
            touched.add(owner)


def _position(
    item: Item | None, partition: KeyAttribute, sort: KeyAttribute | None
) -> tuple[KeyValue, KeyValue | None] | None:
    """Returns the position of an item in an index; None if it is not there."""
    if item is None:
        return None
    value: Any = item.get(partition.name)
    if not partition.holds(value):
        return None
    if sort is None:
        return value, None
    other: Any = item.get(sort.name)
    return (value, other) if sort.holds(other) else None
