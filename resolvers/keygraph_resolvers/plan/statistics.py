"""What is known of a table from the operations so far: how large items are, and how long lists.

A running statistic, kept in memory for the types, indexes and paths of the model and so bounded by it. Sizes are taken
from read units, which say them in steps of 8 KB (half a unit is 4 KB): what a request cost corrects an estimate only
where it contradicts it. Every value is a mean in which what was seen last weighs most.

Before anything was seen, an item is taken to have 1 KB, or 256 bytes in an index that projects less, a list is taken to
fill the page that is asked for, and a list that is counted to have 100 items, and every node
to be another one.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from keygraph.dynamo.limits import READ_UNIT_BYTES
from keygraph.dynamo.store import BatchGet, Count, Query
from keygraph.dynamo.table import KeyValue
from keygraph.model.records import RecordType
from keygraph_resolvers.read.meter import ListKind, Sent

ITEM_BYTES = 1024
PROJECTED_BYTES = 256
COUNTED_ITEMS = 100
_LEAST_WEIGHT = 1 / 16
"""What the latest observation weighs in a mean of many."""
_MANY = 8
"""How many nodes an operation has to look for to say how many of them are the same."""
_ENOUGH = 20
"""How many lists of one kind an operation is asked for what such lists are like: more would say the same."""
_EVERY_RUN, _SELDOM = 50, 8
"""Of the first runs of a plan everything is learned, then of every eighth: tables change slowly."""
_STEP = READ_UNIT_BYTES
"""Half a read unit, which is what eventually consistent reads are counted in."""


def is_learned_from(run: int) -> bool:
    """Whether something is learned from a run of a plan; its first is 1."""
    return run <= _EVERY_RUN or run % _SELDOM == 0


@dataclass(slots=True)
class Mean:
    """A running mean."""

    value: float
    seen: int = 0

    def learn(self, value: float) -> None:
        self.seen += 1
        self.value += (value - self.value) * max(1 / self.seen, _LEAST_WEIGHT)


@dataclass(slots=True)
class _Partition:
    """What one list has read of one partition."""

    scanned: int = 0
    passed: int = 0
    is_ended: bool = False


class Statistics:
    """What the operations of one service have seen."""

    def __init__(self) -> None:
        self._bytes: dict[tuple[RecordType, str | None], Mean] = {}
        self._got: dict[RecordType, Mean] = {}
        self._found: dict[ListKind, Mean] = {}
        self._looked: dict[ListKind, Mean] = {}
        self._ranges: dict[ListKind, Mean] = {}
        self._distinct: dict[RecordType, Mean] = {}

    # --- What is known --------------------------------------------------------------------------------

    def item_bytes(self, record: RecordType, index: str | None) -> float:
        """The size of an item of the type where it is listed."""
        known = self._bytes.get((record, index))
        return known.value if known else _bytes_before(record, index)

    def units_of_get(self, record: RecordType) -> float:
        """What getting one item by key costs."""
        known = self._got.get(record)
        if known:
            return known.value
        return max(1, -(-self.item_bytes(record, None) // _STEP)) / 2

    def distinct(self, record: RecordType) -> float:
        """Which part of the nodes that an operation looks for in many places is got: each of them once."""
        known = self._distinct.get(record)
        return known.value if known else 1.0

    def length(self, kind: ListKind) -> float | None:
        """How many items a list has in a partition; None where none was read to its end."""
        known = self._found.get(kind)
        return known.value if known else None

    def looked_at(self, kind: ListKind) -> float | None:
        """How many items a page under a filter looks at in a partition."""
        known = self._looked.get(kind)
        return known.value if known else None

    def counted(self, kind: ListKind) -> float:
        """How many items counting a list looks at in a partition."""
        known = self._ranges.get(kind) or self._found.get(kind)
        return known.value if known else COUNTED_ITEMS

    # --- Learning -------------------------------------------------------------------------------------

    def learn(self, sent: Sequence[Sent], wanted: Mapping[RecordType, int]) -> None:
        """Takes note of what an operation has asked, and how many nodes of each type it looked for."""
        got: Counter[RecordType] = Counter()
        partitions: dict[tuple[int, bool, KeyValue], tuple[ListKind, _Partition]] = {}
        for each in sent:
            if each.origin is None:
                continue
            kind, request = each.origin.kind, each.request
            for listed, (found, is_ended) in each.origin.lists.items():
                # The items of one Query are taken to be alike.
                self._learn_bytes(each, listed.path.record, None)
                self._learn_list(listed, _Partition(found, found, is_ended), counts=False)
            if isinstance(request, BatchGet):
                self._learn_gets(each, kind)
                for (_, record), keys in each.origin.keys.items():
                    got[record] += keys
            elif kind is not None and isinstance(request, Query | Count):
                self._learn_bytes(each, kind.path.record, request.index)
                counts = isinstance(request, Count)
                key = (id(each.origin), counts, request.partition)
                if request.start is None:
                    partitions.setdefault(key, (kind, _Partition()))
                if key in partitions:
                    seen = partitions[key][1]
                    seen.scanned += each.items
                    seen.passed += each.passed
                    seen.is_ended = each.is_last
        for record, looked_for in wanted.items():
            if looked_for >= _MANY:
                ratio = got[record] / (record.table_keys.shards or 1) / looked_for
                self._distinct.setdefault(record, Mean(1.0)).learn(min(1.0, ratio))
        learned: Counter[ListKind] = Counter()
        for (_, counts, _), (kind, seen) in partitions.items():
            learned[kind] += 1
            if learned[kind] <= _ENOUGH:
                self._learn_list(kind, seen, counts=counts)

    def _learn_bytes(self, sent: Sent, record: RecordType, index: str | None) -> None:
        if not sent.items or not sent.cost.requests:
            return
        steps = round(sent.cost.read_units * 2)
        low, high = (steps - 1) * _STEP, steps * _STEP
        key = (record, index)
        known = self._bytes.get(key) or Mean(_bytes_before(record, index))
        if not low < known.value * sent.items <= high:
            known.learn((low + high) / 2 / sent.items)
            self._bytes[key] = known

    def _learn_gets(self, sent: Sent, kind: ListKind | None) -> None:
        """What was got, and so what of the cost is not that of keys without an item, is shared out by the types."""
        if not sent.items or not isinstance(sent.request, BatchGet):
            return
        missing = len(sent.request.keys) - sent.items
        units = max(sent.cost.read_units - missing / 2, sent.items / 2)
        counted = sent.origin.keys if sent.origin else {}
        records: dict[RecordType, int] = {}
        for (_, record), keys in counted.items():
            records[record] = records.get(record, 0) + keys
        if kind is not None:
            records = {kind.path.record: len(sent.request.keys)}
        expected = sum(self.units_of_get(record) * keys for record, keys in records.items())
        if not expected:
            return
        ratio = units / expected * sum(records.values()) / sent.items
        for record in records:
            known = self._got.setdefault(record, Mean(self.units_of_get(record)))
            known.learn(max(0.5, known.value * ratio))

    def _learn_list(self, kind: ListKind, seen: _Partition, *, counts: bool) -> None:
        if seen.is_ended:
            _learn(self._ranges, kind, seen.scanned)
            _learn(self._found, kind, seen.passed)
        elif kind in self._found and seen.passed > self._found[kind].value:
            # There is more of it than was read; nobody knows how much.
            _learn(self._found, kind, 2 * seen.passed)
        if not counts:
            _learn(self._looked, kind, seen.scanned)


def _learn(means: dict[ListKind, Mean], kind: ListKind, value: float) -> None:
    means.setdefault(kind, Mean(0.0)).learn(value)


def _bytes_before(record: RecordType, index: str | None) -> int:
    is_whole = index is None or any(
        each.name == index and each.projection == "ALL" for each in record.table.indexes
    )
    return ITEM_BYTES if is_whole else PROJECTED_BYTES
