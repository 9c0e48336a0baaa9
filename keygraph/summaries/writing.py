"""Writes the results of the job, each on the condition that nobody has written a newer one.

What only the job keeps is set with its age: the time for which the job knows the table. If a value that another job
wrote meanwhile is as new, it stays. What transactions keep may have changed since the table was read, so a value that
differs is computed again from its list, and repaired as `keygraph verify --repair` does.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Literal, TypeAlias

from keygraph.changes.counting import read_node
from keygraph.changes.kept_walks import StreamWalks, is_same_walk
from keygraph.changes.totals import StreamTotals
from keygraph.dynamo.actions import AttributeChange, Remove, SetTo, UpdateItem
from keygraph.dynamo.conditions import And, Condition, at_path
from keygraph.dynamo.items import Item, Value
from keygraph.dynamo.store import Store, Write
from keygraph.dynamo.table import Key
from keygraph.errors import BadUserInput, ConditionFailed, CorruptItem
from keygraph.graph import Graph
from keygraph.keys.types import encode
from keygraph.model.expiry import now
from keygraph.model.records import RecordType
from keygraph.resolve.derived import age_of, as_stored, is_unfit, stored_age, stored_value
from keygraph.summaries.work import CLOCKS_DIFFER, OfWalk, Result
from keygraph.tables.bulk import RatedStore, WriteRate, unwritten
from keygraph.tables.findings import FindingKind
from keygraph.tables.repair import ItemChange, Repairs
from keygraph.tables.verify import Verification
from keygraph.walks.walk import Vertex
from keygraph.writing.presence import Presence, is_unchanged, within_maps

Counted: TypeAlias = Literal["written", "confirmed", "newer", "gone", "refused"]
"""What became of an item's values: some changed; none did, but perhaps their age; they are newer, or as new and others; the
item or what they depend on is not as it was read; they do not fit their type."""

REPAIRED = "repaired"
"""Counts items with a count or sum that transactions keep and that was wrong."""


@dataclass(frozen=True)
class WriteOptions:
    """How the results of a job are written."""

    rate: float | None = None
    """The most write units a second."""
    is_dry_run: bool = False
    only_changed: bool = False
    """Whether an item is not written if only the ages of its values change."""
    late_seconds: float = 0
    """How far a global index may be behind the table."""


class SummaryWriter:
    """Writes the results of one job."""

    def __init__(
        self,
        graph: Graph,
        store: Store,
        as_of: datetime,
        options: WriteOptions,
        listen: Callable[[FindingKind, list[ItemChange]], None],
    ) -> None:
        """`as_of` is the time at which the table was as the job knows it. `listen` is called with each item whose values change, before and after."""
        rate = WriteRate(options.rate)
        store = unwritten(store) if options.is_dry_run else store
        self.counted: Counter[str] = Counter()
        """What became of how many items."""
        self._graph = graph
        self._store = RatedStore(store, rate)
        self._as_of = as_of
        self._options = options
        self._listen = listen
        self._presence = Presence(graph)
        self._late_totals = StreamTotals(graph, self._store, options.late_seconds)
        self._stream_walks = StreamWalks(graph, self._store)
        repairs = Repairs(graph, store, ["counts"], self._repaired, rate=rate, is_dry_run=options.is_dry_run)
        self._verification = Verification(graph, store, repairs=repairs, late_seconds=options.late_seconds)

    def _repaired(self, kind: FindingKind, items: list[ItemChange]) -> None:
        self.counted[REPAIRED] += 1
        self._listen(kind, items)

    async def write(self, results: Sequence[Result]) -> None:
        """Writes all results of one item. Raises StoreError."""
        before: Item = {}
        for result in results:
            before |= result.before
        if not results:
            return
        key, record = self._graph.table.key_of(before), results[0].summary.record
        streamed = [each for each in results if each.summary.field.is_kept_by_stream]
        by_job = [each for each in results if each.summary.age is not None]
        if streamed:
            walked = [each for each in streamed if isinstance(each.summary, OfWalk)]
            tallied = [each for each in streamed if each not in walked]
            if await self._correct(key, record, tallied, before):
                self.counted[REPAIRED] += 1
            # The change may be under way, so this is no mistake.
            if await self._walk_again(key, record, walked, before) and not by_job:
                self.counted["written"] += 1
        others = [each for each in results if each.summary.age is None and each not in streamed]
        if any(stored_value(each.summary.field, before) != each.value for each in others):
            await self._verification.repair_item(key)
        if by_job:
            self.counted[await self._write(key, record, by_job, before)] += 1

    async def _walk_again(
        self, key: Key, record: RecordType, results: Sequence[Result], before: Item
    ) -> bool:
        """Lets a node walk whose values the stream keeps, if they are not what its walks find. Returns whether it did."""
        identity = record.read_identity(before)
        wrong = [each for each in results if not _is_same(each, stored_value(each.summary.field, before))]
        if not wrong or identity is None:
            return False
        await self._stream_walks.keep(Vertex(record, identity), is_new=True)
        self._tell(key, record, wrong, before)
        return True

    async def _correct(self, key: Key, record: RecordType, results: Sequence[Result], before: Item) -> bool:
        """Corrects what the stream keeps of a node, if it differs from its lists. Returns whether it did."""
        known = record, record.read_identity(before) or ()
        item = await read_node(self._graph, self._store, known) if results else None
        if item is None:
            return False
        node = record, record.read_identity(item) or ()
        if await self._late_totals.has(node, {each.summary.field: each.value for each in results}):
            return False
        wrong = await self._late_totals.wrong(node, fixes=True)
        corrected = [
            each._replace(value=wrong[each.summary.field]) for each in results if each.summary.field in wrong
        ]
        if wrong:
            self._tell(key, record, corrected, item)
        return bool(wrong)

    async def _write(self, key: Key, record: RecordType, results: list[Result], before: Item) -> Counted:
        if any(is_unfit(each.summary.field, each.value) for each in results):
            results = [each for each in results if not is_unfit(each.summary.field, each.value)]
            self.counted["refused"] += 1
        item: Item | None = before
        while True:
            results = [each for each in results if not self._is_newer(record, each, item or {})]
            if not results:
                return "newer"
            changed = [each for each in results if stored_value(each.summary.field, item or {}) != each.value]
            is_done = all(
                stored_age(record, each.summary.field, item or {}) == self._as_of for each in results
            )
            if not changed and (self._options.only_changed or is_done):
                return "confirmed"
            changes, conditions = self._changes(record, results, before, item or {})
            try:
                action = UpdateItem(key, tuple(changes), And(tuple(conditions)))
                await self._store.send(Write(action))
            except BadUserInput:
                return "refused"
            except ConditionFailed as failed:
                item = failed.item
                if item is None or self._graph.is_expired(item, now()):
                    return "gone"
                is_same = self._graph.recognise(item) is record
                results = [each for each in results if is_same and _is_of_same(each, before, item)]
                if not results:
                    return "gone"
                continue
            if changed:
                self._tell(key, record, changed, item or {})
            return "written" if changed else "confirmed"

    def _is_newer(self, record: RecordType, result: Result, item: Item) -> bool:
        """Returns whether a stored value is newer than the result, or as new and another one. An equal one, this job has
        written before it was interrupted. One of the future is of a clock that was wrong."""
        stored = stored_age(record, result.summary.field, item)
        if stored == self._as_of:
            return stored_value(result.summary.field, item) != result.value
        return stored is not None and self._as_of < stored <= datetime.now(UTC) + CLOCKS_DIFFER

    def _changes(
        self, record: RecordType, results: Iterable[Result], before: Item, item: Item
    ) -> tuple[Sequence[AttributeChange], list[Condition]]:
        changes: list[AttributeChange] = []
        conditions: list[Condition] = [self._presence.is_there(record)]
        for result in results:
            declared, age = result.summary.field, age_of(record, result.summary.field)
            path, value = declared.kept_attribute, as_stored(declared, result.value, item)
            changes.append(Remove(path) if value is None else SetTo(path, value))
            conditions += [is_unchanged(own, before) for own in result.summary.own]
            changes.append(SetTo(age.attribute, encode(age.type, self._as_of)))
            conditions.append(is_unchanged(age.attribute, item))
        fitting, of_maps = within_maps(changes, item)
        return fitting, [*dict.fromkeys((*conditions, *of_maps))]

    def _tell(self, key: Key, record: RecordType, changed: Sequence[Result], item: Item) -> None:
        old, new = Item(), Item()
        for result in changed:
            name = ".".join(result.summary.field.kept_attribute)
            stored = stored_value(result.summary.field, item)
            old |= {} if stored is None else {name: stored}
            new |= {} if result.value is None else {name: result.value}
        names = ", ".join(result.summary.field.name for result in changed)
        self._listen(FindingKind("outdated", record.name, f"{names} computed"), [ItemChange(key, old, new)])


def _is_same(result: Result, stored: Value) -> bool:
    """Returns whether a stored value has the nodes that a walk has found."""
    try:
        return isinstance(result.summary, OfWalk) and is_same_walk(result.summary.walk, result.value, stored)
    except CorruptItem:
        return False


def _is_of_same(result: Result, before: Item, item: Item) -> bool:
    """Returns whether an item still is in the group by which its value was computed."""
    return all(at_path(item, own) == at_path(before, own) for own in result.summary.own)
