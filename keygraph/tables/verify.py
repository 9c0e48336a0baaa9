"""Verifies a whole table: reads every item, compares it with the model, and looks up the items that it points to.

Nothing is written, except repairs on request (`keygraph.tables.repair`). The table is read in segments, one window of items at a time, so
memory holds one window per segment and the items that it points to, however large the table is. All reads are
consistent, except for the lists of global indexes, which are read again after some seconds if a number does not match
them. The table may be written to meanwhile: a missing or differing item is reported only if the item that points to it
has not changed since it was read.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import AsyncIterator, Callable, Collection, Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple, Protocol

from keygraph.dynamo.conditions import Path
from keygraph.dynamo.items import Item, Value
from keygraph.dynamo.store import BatchGet, Scan, Store
from keygraph.dynamo.table import Key, Position
from keygraph.errors import BadUserInput, CorruptItem
from keygraph.graph import Graph
from keygraph.keys.types import encode
from keygraph.model.counterparts import Counterpart
from keygraph.model.expiry import now
from keygraph.model.fields import Field
from keygraph.model.instances import value_of_method
from keygraph.model.node_shards import is_shard, node_of_shard, shard_keys, with_shards
from keygraph.model.record_keys import Texts
from keygraph.model.records import RecordType
from keygraph.resolve.derived import Copy, Tally, stored_value
from keygraph.tables.attributes import AttributeCounter, AttributeCounts
from keygraph.tables.backfill import Backfill
from keygraph.tables.bulk import SegmentPositions, gathered
from keygraph.tables.findings import IGNORED, Example, Finding, FindingKind, Problem, Report
from keygraph.tables.item_fields import ItemFields, item_fields
from keygraph.tables.repair import Repairs, named_nodes, names_no_node
from keygraph.tables.totals import computed, is_late, tallies_of
from keygraph.writing.marks import COPYING, is_left
from keygraph.writing.sending.idempotency import is_note

_WINDOW_ITEMS = 1000
"""The most items in a window; DynamoDB ends a page at 1 MB anyway."""
_WHOLE_ITEMS = 100
"""The most whole items read at once: at DynamoDB's 400 KB each, they are 40 MB."""
_TRIES = 10
_UNREADABLE = object()
LATE_SECONDS = 3.0
"""How far a global index of DynamoDB may be behind the table. It usually takes a fraction of a second."""


class LateTotals(Protocol):
    """Compares what no transaction keeps with lists, although it may be behind them: `keygraph.changes.totals`."""

    def fields_of(self, record: RecordType) -> Sequence[Field]:
        """Returns the fields of nodes of a type that it knows."""

    async def wrong(self, node: tuple[RecordType, Texts], *, fixes: bool) -> Mapping[Field, Value]:
        """Returns the right values of the fields of a node that are wrong."""


class VerifiedPage(NamedTuple):
    """What one page of the table has, and what is wrong with it."""

    types: Counter[str | None]
    attributes: AttributeCounts
    found: list[Finding]
    left: list[Finding]
    """What was found and not repaired."""
    late: list[Finding]
    """The values that the stream keeps and that are wrong."""
    last: Position | None


class Verification:
    """The verification of one table. It can be interrupted after any window, and resumed."""

    def __init__(
        self,
        graph: Graph,
        store: Store,
        *,
        segments: int = 4,
        examples: int = 5,
        repairs: Repairs | None = None,
        late_seconds: float = 0,
        late_totals: LateTotals | None = None,
    ) -> None:
        """`examples` is the number of items kept for each kind of finding. What `repairs` repair is not in the report.
        A global index may be `late_seconds` behind the table. `late_totals` knows the values that the stream keeps."""
        self._late_totals = late_totals
        self._late_seconds = late_seconds
        self._repairs = repairs
        self.report = Report(examples)
        self._store = store
        self._graph = graph
        self._reached = SegmentPositions(segments)
        self.verify_page = self.verified_page
        """Verifies a page. Another function may do it in another process."""

    async def run(self, advance: Callable[[int], None]) -> None:
        """Reads what was not read yet. `advance` is called after each page with the number of items read so far.

        Raises StoreError; the report then holds every page that was verified.
        """
        await gathered(
            (self._read(segment, advance) for segment in self._reached.left), self._reached.segments
        )

    async def _read(self, segment: int, advance: Callable[[int], None]) -> None:
        reached = self._reached
        while segment in reached.left:
            scan = Scan(segment, reached.segments, _WINDOW_ITEMS, reached.at[segment], consistent=True)
            page = await self.verify_page(scan)
            # No await between these: an interruption leaves the findings and the position in step.
            self.report.add(page.types, page.attributes, [*page.left, *page.late])
            if self._repairs is not None:
                self.report.add_repaired(page.found, page.left, self._repairs.written.counts)
            reached.advance(segment, page.last)
            advance(self.report.total)

    async def verified_page(self, scan: Scan) -> VerifiedPage:
        """Reads, verifies and repairs one page of the table. The report does not have it yet. Raises StoreError."""
        page = await self._store.send(scan)
        window = self._window([item for item in page.items if not is_note(item)])
        found = await window.findings(self._store)
        if window.undecided or (window.changed and self._repairs is not None):
            again = await self._verified(window.changed)
            found = [*(each for each in found if each.example.key not in window.changed), *again]
        left = found if self._repairs is None else await self._repairs.repair(found, self._verified)
        late = await self._late_findings(window)
        return VerifiedPage(window.types, window.attributes.counts, found, left, late, page.last)

    async def _late_findings(self, window: Window) -> list[Finding]:
        """Returns the values that the stream keeps and that are wrong."""
        totals = self._late_totals
        if totals is None:
            return []

        async def wrong(record: RecordType, identity: Texts, item: Item) -> list[Finding]:
            kinds = {
                field: FindingKind("miscounted", record.name, f"{field.name} does not match its list")
                for field in await totals.wrong((record, identity), fixes=False)
            }
            example = Example(self._graph.table.key_of(item), None)
            reason = None if self._repairs is None else "keygraph summarize corrects it"
            return [Finding(kind, example, item, field.name, None, reason) for field, kind in kinds.items()]

        types = [record for name, record in self._graph.types.items() if name in window.types]
        of_stream = {record for record in types if totals.fields_of(record)}
        nodes = [each for each in window.recognized if each[0] in of_stream] if of_stream else []
        return [each for several in await gathered(wrong(*node) for node in nodes) for each in several]

    async def repair_item(self, key: Key) -> list[Finding]:
        """Reads, verifies and repairs one item. Returns the findings that are left. Raises StoreError."""
        found = await self._verified([key])
        return found if self._repairs is None else await self._repairs.repair(found, self._verified)

    def _window(self, items: list[Item]) -> Window:
        if self._repairs is None:
            return Window(self._graph, items, late_seconds=self._late_seconds)
        return Window(self._graph, items, self._repairs.problems, self._late_seconds, self._repairs.backfill)

    async def _verified(self, keys: Collection[Key]) -> list[Finding]:
        """Reads and verifies items, and those again that change meanwhile. Counts and sums that did not match their lists
        each time, while others changed them, have that reason."""
        found: list[Finding] = []
        for number in range(1, _TRIES + 1):
            window = self._window([*(await _read(self._store, keys)).values()])
            now = await window.findings(self._store)
            is_last, keys = number == _TRIES or not window.changed, window.changed
            found += [each for each in now if is_last or each.example.key not in keys]
            if is_last:
                return [*found, *window.undecided]
        return found

    # --- Saved between two runs -----------------------------------------------------------------------

    def to_json(self) -> dict[str, Any]:
        """Returns the progress as JSON, except that keys may hold bytes, which are to be written in base64."""
        return {**self._reached.to_json(), "report": self.report.to_json()}

    def resume(self, kept: Mapping[str, Any]) -> None:
        """Continues another verification that was interrupted, with the same number of segments and examples.

        Raises KeyError, TypeError or ValueError, and changes nothing, if `kept` is malformed.
        """
        report = Report.from_json(kept["report"], self.report.most_examples)
        self._reached.resume(kept)
        self.report = report


# --- One window ---------------------------------------------------------------------------------------


class _Checks(NamedTuple):
    """What items of a type are compared with, worked out once for all of them."""

    fields: ItemFields
    tallies: Mapping[Field, list[Tally]]
    copies: Sequence[Copy]
    has_ends: bool


def _checks(graph: Graph) -> dict[str, _Checks]:
    """Returns them by the name of the type, for `Graph.made`."""
    return {
        name: _Checks(
            fields,
            tallies_of(graph, graph.types[name]),
            graph.copies.get(name, ()),
            bool(graph.types[name].ends or graph.types[name].list_ends),
        )
        for name, fields in graph.made(item_fields).items()
    }


class _Leading(NamedTuple):
    """An item, with the possible keys of an item that it leads to."""

    item: Item
    record: RecordType
    keys: list[Key]
    copy: Copy | None = None


class Window:
    """Some items, and the nodes and counterparts that they point to, each read once."""

    def __init__(
        self,
        graph: Graph,
        items: Sequence[Item],
        also: frozenset[Problem] = frozenset(),
        late_seconds: float = 0,
        backfill: Backfill | None = None,
    ) -> None:
        """`also` may have problems that are only looked for on request: "outdated" copies that do not follow their source,
        nodes of which copying was "interrupted", and as "miscounted" also missing counts and sums. With a backfill, nothing but what items lack is looked for."""
        self._also = also
        self._backfill = backfill
        self._late_seconds = late_seconds
        self._graph = graph
        self._checks = graph.made(_checks)
        self._items = items
        self._keys = tuple([(key.name,) for key in graph.table.keys])
        self.types: Counter[str | None] = Counter()
        self.recognized: list[tuple[RecordType, Texts, Item]] = []
        self.attributes = AttributeCounter(graph)
        self.changed: set[Key] = set()
        """The items that have changed since they were read, of those of which that was to be known."""
        self.undecided: list[Finding] = []
        """Counts and sums of such items, which need not be wrong."""
        self._found: list[Finding] = []
        self._doubtful: list[Finding] = []
        """Findings that are reported only if the item has not changed since it was read."""
        self._nodes: dict[tuple[str, tuple[str, ...]], list[tuple[Item, RecordType, str]]] = {}
        self._counterparts: list[_Leading] = []
        self._sharded: list[_Leading] = []
        """Items, each with the keys at which no other item may have its identity."""
        self._counting: list[tuple[Item, RecordType]] = []
        """Nodes with counts and sums."""
        self._shards: dict[Key, tuple[tuple[Key, Item | None], ...]] = {}
        """Those of these nodes over which such numbers are spread, as they were read before the lists."""
        self._copying: list[_Leading] = []
        """Items with a copy, each with the possible keys of its node."""

    def own_findings(self) -> list[Finding]:
        """Returns what is wrong with these items by themselves, without reading others."""
        for item in self._items:
            self._look_at(item)
        return self._found

    async def findings(self, store: Store) -> list[Finding]:
        """Returns everything that is wrong with these items. Raises StoreError."""
        self.own_findings()
        here = {self._key(item): item for item in self._items}
        await self._look_for_nodes(store, here)
        await self._look_for_counterparts(store, here)
        await self._look_in_other_shards(store, here)
        await self._look_at_totals(store)
        await self._look_at_copies(store)
        return [*self._found, *await self._certain(store)]

    def _key(self, item: Item) -> Key:
        return self._graph.table.key_of(item)

    def _add(
        self, problem: Problem, record: RecordType | None, what: str, item: Item, name: str | None = None
    ) -> None:
        kind = FindingKind(problem, record.name if record else None, what)
        self._found.append(Finding(kind, Example(self._key(item), None), item, name))

    def _doubt(
        self,
        problem: Problem,
        record: RecordType,
        what: str,
        item: Item,
        other: Key,
        name: str | None = None,
        right: Value = None,
    ) -> None:
        kind, key = FindingKind(problem, record.name, what), self._key(item)
        shards = self._shards.get(key, ())
        self._doubtful.append(Finding(kind, Example(key, other), item, name, right, shards=shards))

    # --- One item -------------------------------------------------------------------------------------

    def _look_at_shard(self, item: Item) -> None:
        found = node_of_shard(self._graph.types, self._graph.table, item)
        if found is None:
            self._add("unknown", None, "a shard of a type that does not have it", item)
            return
        node, key = found
        identity = node.read_identity(self._graph.table.attributes_of(key))
        if identity is not None:
            self._nodes.setdefault((node.name, identity), []).append((item, node, ""))

    def _look_at(self, item: Item) -> None:
        if is_shard(item):
            if self._backfill is None:
                self._look_at_shard(item)
            return
        match = self._graph.identified(item)
        if match is None:
            self._look_at_unknown(item)
            return
        record, identity = match
        self.types[record.name] += 1
        self.recognized.append((record, identity, item))
        self.attributes.add(record, item)
        try:
            self._look_at_one_of(record, identity, item)
        except Exception as error:
            # Formats, nested dataclasses and methods are the model's own code. If they fail on an item, the
            # verification of the others must continue.
            self._add("unfit", record, f"it cannot be checked: {type(error).__name__}", item)

    def _look_at_unknown(self, item: Item) -> None:
        if self._graph.ignores(item):
            self.types[IGNORED] += 1
            return
        self.types[None] += 1
        if self._backfill is None:
            self._add("unknown", None, self._graph.why_refused(item), item)

    def _look_at_one_of(self, record: RecordType, identity: Texts, item: Item) -> None:
        if self._backfill is not None:
            self._look_for_gaps(self._backfill, record, item)
            return
        checks = self._checks[record.name]
        are_right = checks.fields.keys.are_certainly_right(item, identity)
        for name, what in checks.fields.of_fields(item, are_keys_right=are_right):
            self._add("unfit", record, what, item, name)
        for what in self._failing(record, item) if checks.fields.keys.methods else ():
            self._add("unfit", record, what, item)
        for what in () if are_right else checks.fields.keys.problems(item):
            self._add("key", record, what, item)
        if record.table_keys.shards:
            # Of two items, the first one looks for the other.
            own = self._key(item)
            later = [key for key in self._graph.table_keys(record, identity) if key > own]
            self._sharded.append(_Leading(item, record, later))
        if "interrupted" in self._also and COPYING in item and is_left(item):
            self._add(
                "interrupted", record, "a change was interrupted before all copies of it were written", item
            )
        if checks.tallies:
            self._counting.append((item, record))
        named = [*named_nodes(record, item, identity)] if checks.has_ends else []
        if len(named) != len(record.ends) or record.list_ends:
            for _, what in checks.fields.of_ends(item):
                self._add("unfit", record, what, item)
        if checks.copies:
            copies = [each for each in checks.copies if each.field.follows or "outdated" in self._also]
            self._look_for_copies(record, item, copies, named)
        for end, node, own in named:
            # If the keys of several types are alike, a node of any of them will do.
            self._nodes.setdefault((node.name, own), []).append((item, record, end))
        if record.name not in self._graph.correspondences:
            return
        try:
            counterpart = self._counterpart(record, item)
        except BadUserInput:
            self._add("one-sided", record, f"its {self._noun(record)} cannot have a key", item)
            return
        if counterpart is not None:
            keys = self._graph.table_keys(counterpart.record, counterpart.identity)
            self._counterparts.append(_Leading(item, record, keys))

    def _look_for_copies(
        self,
        record: RecordType,
        item: Item,
        copies: Sequence[Copy],
        named: Iterable[tuple[str, RecordType, Texts]],
    ) -> None:
        for end, node, own in named:
            keys = self._graph.table_keys(node, own)
            self._copying += [_Leading(item, record, keys, each) for each in copies if each.end.name == end]
        for copy in copies:
            if (
                names_no_node(record, item, copy.end)
                and record.readable_value(item, copy.field, object()) is not None
            ):
                what = f"{copy.field.name} has a value, and {copy.end.name} names no node"
                kind = FindingKind(_problem_of(copy), record.name, what)
                self._found.append(Finding(kind, Example(self._key(item), None), item, copy.field.name))

    def _look_for_gaps(self, backfill: Backfill, record: RecordType, item: Item) -> None:
        if self._graph.is_expired(item, now()):
            return
        for field, what, value in backfill.gaps(record, item):
            kind = FindingKind("missing", record.name, what)
            self._found.append(Finding(kind, Example(self._key(item), None), item, field.name, value))
        checks = self._checks[record.name]
        for what in backfill.keys(record, checks.fields.keys.problems(item)):
            self._add("key", record, what, item)
        if any(map(backfill.has_field, checks.tallies)):
            self._counting.append((item, record))
        copies = backfill.copies(checks.copies, item)
        if copies:
            self._look_for_copies(record, item, copies, named_nodes(record, item))

    def _failing(self, record: RecordType, item: Item) -> Iterator[str]:
        """Yields the methods in keys that fail."""
        for name in self._checks[record.name].fields.keys.methods:
            try:
                value_of_method(record, name, item)
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
        there = await _read(store, (key for keys in possible.values() for key in keys), self._keys)
        for (name, identity), keys in possible.items():
            if there.keys().isdisjoint(keys):
                for item, record, end in self._nodes[name, identity]:
                    what = f"{end} points to a missing {name}" if end else f"a shard of a missing {name}"
                    self._doubt("dangling", record, what, item, keys[0], end)

    async def _stored(
        self, store: Store, here: Mapping[Key, Item], several: Sequence[_Leading]
    ) -> AsyncIterator[tuple[_Leading, dict[Key, Item]]]:
        """Yields each with the items that it leads to."""
        for start in range(0, len(several), _WHOLE_ITEMS):
            some = several[start : start + _WHOLE_ITEMS]
            read = await _read(store, (key for each in some for key in each.keys if key not in here))
            for each in some:
                found = {key: here.get(key) or read.get(key) for key in each.keys}
                yield each, {key: item for key, item in found.items() if item is not None}

    async def _look_for_counterparts(self, store: Store, here: Mapping[Key, Item]) -> None:
        async for (item, record, keys, _), found in self._stored(store, here, self._counterparts):
            self._compare(item, record, keys, [*found.values()])

    async def _look_in_other_shards(self, store: Store, here: Mapping[Key, Item]) -> None:
        # Almost none is there, so their keys are asked for first.
        there = await _read(store, (key for each in self._sharded for key in each.keys), self._keys)
        sharded = [each for each in self._sharded if not there.keys().isdisjoint(each.keys)]
        async for (item, record, _, _), found in self._stored(store, here, sharded):
            for key, other in found.items():
                if self._graph.recognise(other) is record:
                    self._doubt("unfit", record, "an item in another shard has its key", item, key)

    async def _look_at_copies(self, store: Store) -> None:
        # The nodes are read after the copies: both change in one transaction, or the node has a mark.
        async for (item, record, _, copy), found in self._stored(store, {}, self._copying):
            for key, node in found.items():
                if copy is None or (wanted := self._source_value(copy, node)) is _UNREADABLE:
                    continue
                if record.readable_value(item, copy.field, object()) == wanted:
                    continue
                name, right = copy.field.name, None
                if copy.field.follows and COPYING in node and not is_left(node):
                    continue  # it is about to be written
                what = f"{name} is not what the node has now"
                problem = _problem_of(copy)
                if self._backfill is not None:
                    what, problem = f"{name} is missing: {copy.field.kept_of} can be written", "uncopied"
                    if not copy.field.follows:
                        # It may differ from its node later, so it is written like another value.
                        problem, right = "missing", encode(copy.field.type, wanted)
                self._doubt(problem, record, what, item, key, name, right)

    def _source_value(self, copy: Copy, node: Item) -> object:
        """Returns what a node has for a copy, whatever attributes or keys hold it."""
        of = self._graph.recognise(node)
        source = None if of is None else copy.sources.get(of)
        return _UNREADABLE if of is None or source is None else of.readable_value(node, source, _UNREADABLE)

    async def _look_at_totals(self, store: Store) -> None:
        wrong = [each async for each in self._wrong_totals(store)]
        if self._late_seconds and any(is_late(each) for *_, tallies in wrong for each in tallies):
            # If the node has not changed until then, its lists have not either, and the index has what they had.
            await asyncio.sleep(self._late_seconds)
            wrong = [each async for each in self._wrong_totals(store)]
        for item, record, field, right, _ in wrong:
            what = "is missing" if stored_value(field, item) is None else "does not match its list"
            self._doubt(
                "miscounted", record, f"{field.name} {what}", item, self._key(item), field.name, right
            )

    async def _wrong_totals(
        self, store: Store
    ) -> AsyncIterator[tuple[Item, RecordType, Field, Value, list[Tally]]]:
        for item, record in self._counting:
            identity = record.read_identity(item)
            fields = {
                field: tallies
                for field, tallies in self._checks[record.name].tallies.items()
                if self._backfill is None or self._backfill.has_field(field)
                if stored_value(field, item) is not None or "miscounted" in self._also
            }
            if identity is None:
                continue
            whole = await self._with_shards(store, item, record) if record.shard_count else item
            for field, right in (await computed(self._graph, store, identity, fields)).items():
                if stored_value(field, whole) != right:
                    yield item, record, field, right, fields[field]

    async def _with_shards(self, store: Store, item: Item, record: RecordType) -> Item:
        """Returns the item of a node with its numbers in shards added up."""
        keys = shard_keys(record, self._key(item))
        there = await _read(store, keys)
        self._shards[self._key(item)] = tuple([(key, there.get(key)) for key in keys])
        return with_shards(record, item, there.values())

    def _compare(self, item: Item, record: RecordType, keys: list[Key], found: list[Item]) -> None:
        noun, wanted = self._noun(record), self._graph.correspondences[record.name].other
        there = next((each for each in found if self._graph.recognise(each) is wanted), None)
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
        items = {each.example.key: each.item for each in self._doubtful}
        if "miscounted" in self._also:
            # A number that was wrong may equal a list that has changed since it was read.
            items |= {self._key(item): item for item, _ in self._counting}
        keys = [*items]
        for start in range(0, len(keys), _WHOLE_ITEMS):
            some = keys[start : start + _WHOLE_ITEMS]
            now = await _read(store, some)
            self.changed.update(key for key in some if now.get(key) != items[key])
            shards = [pair for key in some for pair in self._shards.get(key, ())]
            there = await _read(store, [shard for shard, _ in shards])
            changed = {shard for shard, item in shards if there.get(shard) != item}
            self.changed.update(
                key for key in some if not changed.isdisjoint(shard for shard, _ in self._shards.get(key, ()))
            )
        doubted = [each for each in self._doubtful if each.example.key in self.changed]
        self.undecided = [
            each._replace(reason="others change it all the time")
            for each in doubted
            if each.kind.problem == "miscounted"
        ]
        return [each for each in self._doubtful if each.example.key not in self.changed]


def _problem_of(copy: Copy) -> Problem:
    """Returns the problem of a copy that differs from its source."""
    return "stale" if copy.field.follows else "outdated"


async def _read(
    store: Store, keys: Iterable[Key], projection: tuple[Path, ...] | None = None
) -> dict[Key, Item]:
    wanted = tuple(dict.fromkeys(keys))
    if not wanted:
        return {}
    batch = await store.send(BatchGet(wanted, projection, consistent=True))
    return {key: item for key, item in zip(wanted, batch.items, strict=True) if item is not None}
