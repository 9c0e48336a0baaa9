"""Verifies a whole table: reads every item, compares it with the model, and looks up the items that it points to.

Nothing is written, except counts and sums on request. The table is read in segments, one window of items at a time, so
memory holds one window per segment and the items that it points to, however large the table is. All reads are
consistent. The table may be written to meanwhile: a missing or differing item is reported only if the item that points
to it has not changed since it was read.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

from keygraph.dynamo.conditions import Path, at_path
from keygraph.dynamo.items import Item, exact_sum
from keygraph.dynamo.store import BatchGet, Scan, Store, pages
from keygraph.dynamo.table import Key, Position
from keygraph.errors import BadUserInput, CorruptItem
from keygraph.graph import Graph
from keygraph.model.counterparts import Counterpart
from keygraph.model.instances import instance
from keygraph.model.records import RecordType
from keygraph.tables.attributes import AttributeCounter
from keygraph.tables.findings import (
    Example,
    Finding,
    FindingKind,
    Problem,
    Report,
    key_from_json,
    key_to_json,
)
from keygraph.tables.item_fields import ItemFields
from keygraph.tables.item_keys import ItemKeys
from keygraph.tables.totals import recount, tallies_of, total
from keygraph.writing.sending.idempotency import is_note

_WINDOW_ITEMS = 1000
"""The most items in a window; DynamoDB ends a page at 1 MB anyway."""
_WHOLE_ITEMS = 100
"""The most whole items read at once: at DynamoDB's 400 KB each, they are 40 MB."""


class Verification:
    """The verification of one table. It can be interrupted after any window, and resumed."""

    def __init__(
        self, graph: Graph, store: Store, *, segments: int = 4, examples: int = 5, is_counting: bool = False
    ) -> None:
        """`examples` is the number of items kept for each kind of finding. `is_counting` sets counts and sums that are
        missing or wrong."""
        self.counted = 0
        """The number of nodes whose counts or sums were set."""
        self._is_counting = is_counting
        self.report = Report(examples)
        self._store = store
        self._graph = graph
        self._keys = {
            record.name: ItemKeys(record) for record in graph.types.values() if not record.is_virtual
        }
        self._fields = {name: ItemFields(graph, graph.types[name], keys) for name, keys in self._keys.items()}
        self._reached: dict[int, Position | None] = dict.fromkeys(range(segments))
        self._ended: set[int] = set()

    async def run(self, advance: Callable[[int], None]) -> None:
        """Reads what was not read yet. `advance` is called after each window with the number of items read so far.

        Raises StoreError; the report then holds every window that was verified.
        """
        tasks = [
            asyncio.create_task(self._read(segment, advance))
            for segment in self._reached
            if segment not in self._ended
        ]
        try:
            await asyncio.gather(*tasks)
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)

    async def _read(self, segment: int, advance: Callable[[int], None]) -> None:
        scan = Scan(segment, len(self._reached), _WINDOW_ITEMS, self._reached[segment], consistent=True)
        async for page in pages(self._store, scan):
            items = [item for item in page.items if not is_note(item)]
            window = Window(self._graph, self._keys, self._fields, items)
            if self._is_counting:
                counted = await window.count(self._store)
                # Other segments add to it while this one waits.
                self.counted += counted
            findings = await window.findings(self._store)
            # No await between these: an interruption leaves the findings and the position in step.
            self.report.add(window.types, window.attributes.counts, findings)
            self._reached[segment] = page.last
            if page.last is None:
                self._ended.add(segment)
            advance(self.report.total)

    # --- Saved between two runs -----------------------------------------------------------------------

    def to_json(self) -> dict[str, Any]:
        """Returns the progress as JSON, except that keys may hold bytes, which are to be written in base64."""
        reached = [position and key_to_json(position) for position in self._reached.values()]
        return {"reached": reached, "ended": sorted(self._ended), "report": self.report.to_json()}

    def resume(self, kept: Mapping[str, Any]) -> None:
        """Continues another verification that was interrupted, with the same number of segments and examples.

        Raises KeyError, TypeError or ValueError, and changes nothing, if `kept` is malformed.
        """
        reached = [position and key_from_json(position) for position in kept["reached"]]
        if len(reached) != len(self._reached):
            raise ValueError("another number of segments")
        report = Report.from_json(kept["report"], self.report.most_examples)
        self._ended = set(kept["ended"])
        self._reached = dict(enumerate(reached))
        self.report = report


# --- One window ---------------------------------------------------------------------------------------


class Window:
    """Some items, and the nodes and counterparts that they point to, each read once."""

    def __init__(
        self,
        graph: Graph,
        keys: Mapping[str, ItemKeys],
        fields: Mapping[str, ItemFields],
        items: list[Item],
    ) -> None:
        """`keys` and `fields` are the ones that items must have, by type."""
        self._graph = graph
        self._keys = keys
        self._fields = fields
        self._items = items
        self.types: Counter[str | None] = Counter()
        self.attributes = AttributeCounter(graph)
        self._found: list[Finding] = []
        self._doubtful: list[tuple[Item, Finding]] = []
        """Findings that are reported only if the item has not changed since it was read."""
        self._nodes: dict[tuple[str, tuple[str, ...]], list[tuple[Item, RecordType, str]]] = {}
        self._counterparts: list[tuple[Item, RecordType, Counterpart]] = []
        self._sharded: list[tuple[Item, RecordType, list[Key]]] = []
        """Items, each with the keys at which no other item may have its identity."""
        self._counting: list[tuple[Item, RecordType]] = []
        """Nodes with counts and sums."""

    async def findings(self, store: Store) -> list[Finding]:
        """Returns everything that is wrong with these items. Raises StoreError."""
        for item in self._items:
            self._look_at(item)
        here = {self._key(item): item for item in self._items}
        await self._look_for_nodes(store, here)
        await self._look_for_counterparts(store, here)
        await self._look_in_other_shards(store, here)
        await self._look_at_totals(store)
        return [*self._found, *await self._certain(store)]

    def _key(self, item: Item) -> Key:
        return self._graph.table.key_of(item)

    def _add(self, problem: Problem, record: RecordType | None, what: str, item: Item) -> None:
        kind = FindingKind(problem, record.name if record else None, what)
        self._found.append(Finding(kind, Example(self._key(item), None)))

    def _doubt(self, problem: Problem, record: RecordType, what: str, item: Item, other: Key) -> None:
        kind = FindingKind(problem, record.name, what)
        self._doubtful.append((item, Finding(kind, Example(self._key(item), other))))

    # --- One item -------------------------------------------------------------------------------------

    def _look_at(self, item: Item) -> None:
        record = self._graph.recognise(item)
        self.types[record.name if record else None] += 1
        if record is None:
            self._add("unknown", None, self._graph.why_refused(item), item)
            return
        self.attributes.add(record, item)
        try:
            self._look_at_one_of(record, item)
        except Exception as error:
            # Formats, nested dataclasses and methods are the model's own code. If they fail on an item, the
            # verification of the others must continue.
            self._add("unfit", record, f"it cannot be checked: {type(error).__name__}", item)

    def _look_at_one_of(self, record: RecordType, item: Item) -> None:
        for _, what in self._fields[record.name].problems(item):
            self._add("unfit", record, what, item)
        for what in self._failing(record, item):
            self._add("unfit", record, what, item)
        for what in self._keys[record.name].problems(item):
            self._add("key", record, what, item)
        identity = record.read_identity(item) if record.table_keys.shards else None
        if identity is not None:
            # Of two items, the first one looks for the other.
            later = [key for key in self._graph.table_keys(record, identity) if key > self._key(item)]
            self._sharded.append((item, record, later))
        if tallies_of(self._graph, record):
            self._counting.append((item, record))
        for end in record.ends.values():
            try:
                identity = record.end_identity(item, end)
            except CorruptItem:
                continue
            if identity is not None:
                # If the keys of several types are alike, a node of any of them will do.
                (node, *_), own = end.nodes(identity)
                self._nodes.setdefault((node.name, own), []).append((item, record, end.name))
        try:
            counterpart = self._counterpart(record, item)
        except BadUserInput:
            self._add("one-sided", record, f"its {self._noun(record)} cannot have a key", item)
            return
        if counterpart is not None:
            self._counterparts.append((item, record, counterpart))

    def _failing(self, record: RecordType, item: Item) -> Iterator[str]:
        """Yields the methods in keys that fail."""
        for name in self._keys[record.name].methods:
            method = record.methods[name]
            try:
                method.function(instance(record, item, method.needs))
            except CorruptItem:
                continue
            except Exception as error:
                # The model's own code may raise anything.
                yield f"{record.name}.{name} of an item fails with {type(error).__name__}"

    def _counterpart(self, record: RecordType, item: Item) -> Counterpart | None:
        """Returns the mirror or counterpart that the item must have; None if it needs none, or is corrupt itself.

        Raises BadUserInput if the other item cannot have a key of its type.
        """
        try:
            made = self._graph.counterpart(record, item)
        except CorruptItem:
            return None
        except Exception:
            # A method of the model, or a value without a text.
            raise BadUserInput(f"the other item of this {record.name} cannot be rendered") from None
        if made is not None:
            self._graph.check_identity(made.record, made.identity)
        return made

    def _noun(self, record: RecordType) -> str:
        other = self._graph.correspondences[record.name].other
        return "mirror" if other is record else f"counterpart {other.name}"

    # --- What items point to --------------------------------------------------------------------------

    async def _look_for_nodes(self, store: Store, here: Mapping[Key, Item]) -> None:
        graph = self._graph
        possible: dict[tuple[str, tuple[str, ...]], list[Key]] = {}
        for (name, identity), leading in self._nodes.items():
            node = graph.types[name]
            try:
                graph.check_identity(node, identity)
            except BadUserInput:
                for item, record, end in leading:
                    self._add("unfit", record, f"{record.name}.{end} of an item is not a key of {name}", item)
                continue
            keys = [] if node.is_virtual else graph.table_keys(node, identity)
            if keys and here.keys().isdisjoint(keys):
                possible[name, identity] = keys
        projection = tuple((key.name,) for key in graph.table.keys)
        there = await _read(store, (key for keys in possible.values() for key in keys), projection)
        for (name, identity), keys in possible.items():
            if there.keys().isdisjoint(keys):
                for item, record, end in self._nodes[name, identity]:
                    self._doubt("dangling", record, f"{end} points to a missing {name}", item, keys[0])

    async def _look_for_counterparts(self, store: Store, here: Mapping[Key, Item]) -> None:
        for start in range(0, len(self._counterparts), _WHOLE_ITEMS):
            some = self._counterparts[start : start + _WHOLE_ITEMS]
            possible = [self._graph.table_keys(wanted.record, wanted.identity) for _, _, wanted in some]
            read = await _read(store, (key for keys in possible for key in keys if key not in here))
            for (item, record, wanted), keys in zip(some, possible, strict=True):
                found = [here.get(key) or read.get(key) for key in keys]
                self._compare(item, record, wanted, keys, [each for each in found if each is not None])

    async def _look_in_other_shards(self, store: Store, here: Mapping[Key, Item]) -> None:
        for start in range(0, len(self._sharded), _WHOLE_ITEMS):
            some = self._sharded[start : start + _WHOLE_ITEMS]
            read = await _read(store, (key for *_, keys in some for key in keys if key not in here))
            for item, record, keys in some:
                for key in keys:
                    other = here.get(key) or read.get(key)
                    if other is not None and self._graph.recognise(other) is record:
                        self._doubt("unfit", record, "an item in another shard has its key", item, key)

    async def count(self, store: Store) -> int:
        """Sets counts and sums that are missing or wrong. Returns the number of nodes changed. Raises StoreError."""
        count = 0
        for number, item in enumerate(self._items):
            record = self._graph.recognise(item)
            if record is None or not tallies_of(self._graph, record):
                continue
            key = self._key(item)
            if await recount(self._graph, store, key):
                [now] = (await store.send(BatchGet((key,), consistent=True))).items
                if now is not None:
                    paths = [field.attribute for field in tallies_of(self._graph, record)]
                    count += any(at_path(now, path) != at_path(item, path) for path in paths)
                    self._items[number] = now
        return count

    async def _look_at_totals(self, store: Store) -> None:
        for item, record in self._counting:
            identity = record.read_identity(item)
            for field, tallies in tallies_of(self._graph, record).items():
                kept = at_path(item, field.attribute)
                if kept is not None and identity is not None:
                    amounts = [await total(self._graph, store, each, identity) for each in tallies]
                    if kept != exact_sum(amounts):
                        what = f"{field.name} does not match its list"
                        self._doubt("miscounted", record, what, item, self._key(item))

    def _compare(
        self, item: Item, record: RecordType, wanted: Counterpart, keys: list[Key], found: list[Item]
    ) -> None:
        noun = self._noun(record)
        there = next((each for each in found if self._graph.recognise(each) is wanted.record), None)
        if there is None:
            what = f"its {noun} is {'of another type' if found else 'missing'}"
            self._doubt("one-sided", record, what, item, keys[0])
        elif self._key(item) < self._key(there):
            # Both items are read, so a difference is reported for one of them.
            for name in self._differences(record, item, there):
                what = f"{name or 'an undeclared attribute'} differs in its {noun}"
                self._doubt("differing", record, what, item, self._key(there))

    def _differences(self, record: RecordType, item: Item, there: Item) -> list[str]:
        try:
            return list(self._graph.correspondences[record.name].differences(item, there))
        except (CorruptItem, ValueError):
            # Reported for the item itself.
            return []

    async def _certain(self, store: Store) -> list[Finding]:
        """Returns the doubtful findings whose items have not changed since they were read."""
        certain: list[Finding] = []
        for start in range(0, len(self._doubtful), _WHOLE_ITEMS):
            some = self._doubtful[start : start + _WHOLE_ITEMS]
            now = await _read(store, (self._key(item) for item, _ in some))
            certain += [finding for item, finding in some if now.get(self._key(item)) == item]
        return certain


async def _read(
    store: Store, keys: Iterable[Key], projection: tuple[Path, ...] | None = None
) -> dict[Key, Item]:
    """Returns the items with these keys, by key."""
    wanted = tuple(dict.fromkeys(keys))
    if not wanted:
        return {}
    batch = await store.send(BatchGet(wanted, projection, consistent=True))
    return {key: item for key, item in zip(wanted, batch.items, strict=True) if item is not None}
