"""Verifying a whole table: every item is read, held against the model, and what it leads to is looked for.

Nothing is written. The table is read in segments, each a window of items at a time, so that memory holds one window
for each segment and what its items lead to, however large the table is. All reads are consistent. What is missing or
differs is only told where the item that leads to it is still as it was read: a table may be written to meanwhile.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from keygraph.dynamo.items import Item
from keygraph.dynamo.store import BatchGet, Scan, Store, pages
from keygraph.dynamo.table import Key, Position
from keygraph.errors import BadUserInput, CorruptItem
from keygraph.graph import Graph
from keygraph.model.counterparts import Counterpart
from keygraph.model.members import End
from keygraph.model.records import RecordType
from keygraph.tables.findings import Example, Finding, FindingKind, Problem, Report, kept_key, key_of_kept
from keygraph.tables.item_keys import ItemKeys

_WINDOW_ITEMS = 1000
"""How many items a window has at most; DynamoDB ends a page at 1 MB anyway."""
_WHOLE_ITEMS = 100
"""How many whole items are read at once: of 400 KB each, as DynamoDB allows, they are 40 MB."""


class Verification:
    """The verification of one table, which can be interrupted after any window and taken up again."""

    def __init__(self, graph: Graph, store: Store, *, segments: int = 4, examples: int = 5) -> None:
        """`examples` is how many items are kept of each kind of finding."""
        self.report = Report(examples)
        self._store = store
        self._checks = ItemChecks(graph)
        self._reached: dict[int, Position | None] = dict.fromkeys(range(segments))
        self._ended: set[int] = set()

    async def run(self, advance: Callable[[int], None]) -> None:
        """Reads what was not read yet. `advance` is called after each window with how many items were read.

        Raises a StoreError; the report then holds every window that was verified.
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
            window = Window(self._checks, page.items)
            findings = await window.findings(self._store)
            # What was found and how far was read change together: an interruption comes before both or after.
            self.report.add(window.types, findings)
            self._reached[segment] = page.last
            if page.last is None:
                self._ended.add(segment)
            advance(self.report.total)

    # --- Kept between two runs ------------------------------------------------------------------------

    def kept(self) -> dict[str, Any]:
        """How far it has come, as JSON can say it; bytes in keys apart, which are to be written as base64."""
        reached = [position and kept_key(position) for position in self._reached.values()]
        return {"reached": reached, "ended": sorted(self._ended), "report": self.report.kept()}

    def take_up(self, kept: Mapping[str, Any]) -> None:
        """Goes on where another one was interrupted that had as many segments and examples.

        Raises KeyError, TypeError or ValueError, with nothing changed, for what is none.
        """
        reached = [position and key_of_kept(position) for position in kept["reached"]]
        if len(reached) != len(self._reached):
            raise ValueError("another number of segments")
        report = Report.of_kept(kept["report"], self.report.most_examples)
        self._ended = set(kept["ended"])
        self._reached = dict(enumerate(reached))
        self.report = report


# --- One item -----------------------------------------------------------------------------------------


class ItemChecks:
    """What can be said of an item without reading others."""

    def __init__(self, graph: Graph) -> None:
        self.graph = graph
        self._keys = {
            record.name: ItemKeys(record) for record in graph.types.values() if not record.is_virtual
        }
        self._methods_in_keys = {record.name: _methods_in_keys(record) for record in graph.types.values()}

    def unfit(self, record: RecordType, item: Item) -> Iterator[str]:
        """In what the item's fields do not fit its declaration."""
        for declared in record.fields.values():
            try:
                record.value(item, declared)
            except CorruptItem as error:
                yield str(error)
        for name in self._methods_in_keys[record.name]:
            method = record.methods[name]
            try:
                method.function(record.instance(item, method.needs))
            except CorruptItem:
                continue
            except Exception as error:
                # The model's own code, of which nothing is known but that a key is rendered by it.
                yield f"{record.name}.{name} of an item fails with {type(error).__name__}"

    def key_problems(self, record: RecordType, item: Item) -> Iterator[str]:
        """In what the item's keys are not those that its attributes make."""
        return self._keys[record.name].problems(item)

    def node(self, record: RecordType, end: End, item: Item) -> tuple[str, ...] | None:
        """The identity of the node at an end; None for none. Raises CorruptItem where there must be one, or is no key."""
        identity = record.end_identity(item, end)
        if identity is None and not end.optional:
            raise CorruptItem(f"{record.name}.{end.name} is missing in an item")
        return identity

    def is_key(self, record: RecordType, identity: tuple[str, ...]) -> bool:
        """Whether these texts can be a key of the node."""
        try:
            self.graph.check_identity(record, identity)
        except BadUserInput:
            return False
        return True

    def counterpart(self, record: RecordType, item: Item) -> Counterpart | None:
        """The mirror or counterpart that the item shall have; None where it has none, or is corrupt itself.

        Raises BadUserInput where it would have no key of its type.
        """
        try:
            made = self.graph.counterpart(record, item)
        except CorruptItem:
            return None
        except Exception:
            # A method of the model's own, or a value that has no text.
            raise BadUserInput(f"the other item of this {record.name} cannot be rendered") from None
        if made is not None:
            self.graph.check_identity(made.record, made.identity)
        return made


def _methods_in_keys(record: RecordType) -> list[str]:
    """The methods from which keys of the type are rendered."""
    computed = (slot.path[0] for keys in record.keys.values() for slot in keys.slots if slot.computed)
    return [name for name in dict.fromkeys(computed) if name in record.methods]


# --- One window ---------------------------------------------------------------------------------------


@dataclass(slots=True)
class Window:
    """Some items, and what is looked for because of them: each node once, whoever leads to it."""

    checks: ItemChecks
    items: Sequence[Item]
    types: Counter[str | None] = field(default_factory=Counter)
    _found: list[Finding] = field(default_factory=list)
    _doubtful: list[tuple[Item, Finding]] = field(default_factory=list)
    """What is only told if the item is still as it was read."""
    _nodes: dict[tuple[str, tuple[str, ...]], list[tuple[Item, RecordType, str]]] = field(
        default_factory=dict
    )
    _counterparts: list[tuple[Item, RecordType, Counterpart]] = field(default_factory=list)

    async def findings(self, store: Store) -> list[Finding]:
        """Everything that is wrong with these items. Raises a StoreError."""
        for item in self.items:
            self._look_at(item)
        here = {self._key(item): item for item in self.items}
        await self._look_for_nodes(store, here)
        await self._look_for_counterparts(store, here)
        return [*self._found, *await self._certain(store)]

    def _key(self, item: Item) -> Key:
        return self.checks.graph.table.key_of(item)

    def _finding(
        self, problem: Problem, record: RecordType | None, what: str, item: Item, other: Key | None = None
    ) -> Finding:
        return Finding(
            FindingKind(problem, record.name if record else None, what), Example(self._key(item), other)
        )

    def _look_at(self, item: Item) -> None:
        checks = self.checks
        record = checks.graph.recognise(item)
        self.types[record.name if record else None] += 1
        if record is None:
            self._found.append(self._finding("unknown", None, checks.graph.why_refused(item), item))
            return
        try:
            self._look_at_one_of(record, item)
        except Exception as error:
            # Formats, nested dataclasses and methods are the model's own code: one item that they cannot take must
            # not end the verification of all others.
            what = f"it cannot be checked: {type(error).__name__}"
            self._found.append(self._finding("unfit", record, what, item))

    def _look_at_one_of(self, record: RecordType, item: Item) -> None:
        checks = self.checks
        for what in checks.unfit(record, item):
            self._found.append(self._finding("unfit", record, what, item))
        for what in checks.key_problems(record, item):
            self._found.append(self._finding("key", record, what, item))
        for end in record.ends.values():
            try:
                identity = checks.node(record, end, item)
            except CorruptItem as error:
                self._found.append(self._finding("unfit", record, str(error), item))
                continue
            if identity is not None:
                # Where the keys of several types are alike, a node of any of them is the one that is meant.
                (node, *_), own = end.nodes(identity)
                self._nodes.setdefault((node.name, own), []).append((item, record, end.name))
        try:
            counterpart = checks.counterpart(record, item)
        except BadUserInput:
            what = f"its {_noun(record, checks.graph)} cannot have a key"
            self._found.append(self._finding("one-sided", record, what, item))
            return
        if counterpart is not None:
            self._counterparts.append((item, record, counterpart))

    async def _look_for_nodes(self, store: Store, here: Mapping[Key, Item]) -> None:
        graph = self.checks.graph
        possible: dict[tuple[str, tuple[str, ...]], list[Key]] = {}
        for (name, identity), leading in self._nodes.items():
            node = graph.types[name]
            if not self.checks.is_key(node, identity):
                for item, record, end in leading:
                    what = f"{record.name}.{end} of an item is no key of {name}"
                    self._found.append(self._finding("unfit", record, what, item))
            elif not node.is_virtual:
                keys = graph.table_keys(node, identity)
                if not any(key in here for key in keys):
                    possible[name, identity] = keys
        wanted = tuple(dict.fromkeys(key for keys in possible.values() for key in keys))
        there: set[Key] = set()
        if wanted:
            projection = tuple((key.name,) for key in graph.table.keys)
            batch = await store.send(BatchGet(wanted, projection, consistent=True))
            there = {key for key, found in zip(wanted, batch.items, strict=True) if found is not None}
        for (name, identity), keys in possible.items():
            if there.isdisjoint(keys):
                for item, record, end in self._nodes[name, identity]:
                    what = f"{end} points to a missing {name}"
                    self._doubtful.append((item, self._finding("dangling", record, what, item, keys[0])))

    async def _look_for_counterparts(self, store: Store, here: Mapping[Key, Item]) -> None:
        graph = self.checks.graph
        for start in range(0, len(self._counterparts), _WHOLE_ITEMS):
            some = self._counterparts[start : start + _WHOLE_ITEMS]
            possible = [graph.table_keys(wanted.record, wanted.identity) for _, _, wanted in some]
            missing = tuple(dict.fromkeys(key for keys in possible for key in keys if key not in here))
            read = await _whole(store, missing)
            for (item, record, wanted), keys in zip(some, possible, strict=True):
                found = [here.get(key) or read.get(key) for key in keys]
                self._compare(item, record, wanted, keys, [each for each in found if each is not None])

    def _compare(
        self, item: Item, record: RecordType, wanted: Counterpart, keys: list[Key], found: list[Item]
    ) -> None:
        graph = self.checks.graph
        noun = _noun(record, graph)
        own = self._key(item)
        there = next((each for each in found if graph.recognise(each) is wanted.record), None)
        if there is None:
            what = f"its {noun} is {'of another type' if found else 'missing'}"
            finding = self._finding("one-sided", record, what, item, keys[0])
            self._doubtful.append((item, finding))
        elif own < self._key(there):
            # Of two that differ one is told, since both are read.
            for name in self._differences(record, item, there):
                what = f"{name or 'an undeclared attribute'} differs in its {noun}"
                finding = self._finding("differing", record, what, item, self._key(there))
                self._doubtful.append((item, finding))

    def _differences(self, record: RecordType, item: Item, there: Item) -> list[str]:
        try:
            return list(self.checks.graph.correspondences[record.name].differences(item, there))
        except (CorruptItem, ValueError):
            # It is told of the item itself.
            return []

    async def _certain(self, store: Store) -> list[Finding]:
        """The doubtful findings whose items are still as they were read."""
        certain: list[Finding] = []
        for start in range(0, len(self._doubtful), _WHOLE_ITEMS):
            some = self._doubtful[start : start + _WHOLE_ITEMS]
            now = await _whole(store, tuple(dict.fromkeys(self._key(item) for item, _ in some)))
            certain += [finding for item, finding in some if now.get(self._key(item)) == item]
        return certain


def _noun(record: RecordType, graph: Graph) -> str:
    other = graph.correspondences[record.name].other
    return "mirror" if other is record else f"counterpart {other.name}"


async def _whole(store: Store, keys: tuple[Key, ...]) -> dict[Key, Item]:
    """The items with these keys."""
    if not keys:
        return {}
    batch = await store.send(BatchGet(keys, consistent=True))
    return {key: item for key, item in zip(keys, batch.items, strict=True) if item is not None}
