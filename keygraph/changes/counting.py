"""Keeps counts, sums and averages by the stream: what each change adds to the lists of which nodes.

What an item adds follows from the item alone. A change adds what the new item adds, and takes what the old one did, so that
all changes make what the items that are left add, whatever the order in which items change each other's nodes. The ledger
of a node says which changes are in its values (`keygraph.changes.ledger`); they are copied from there to the node, with
the time of the last change, which orders the copies. Both writes are conditional, and made again until they hold.

A node gets its values when it is created while this runs, or from `keygraph summarize`. Before, it has none: how many
items its lists had before is not known.
"""

from __future__ import annotations

import logging
from collections import defaultdict
from collections.abc import Callable, Container, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from typing import TypeAlias, cast

import orjson

from keygraph.changes.ledger import Ledger, Lineage, Node, ledger_name, replace_ledger
from keygraph.dynamo.actions import AttributeChange, Remove, SetTo, UpdateItem
from keygraph.dynamo.conditions import And
from keygraph.dynamo.items import Item, Value, base64_text
from keygraph.dynamo.store import BatchGet, Store, Write
from keygraph.dynamo.streams import StreamRecord
from keygraph.errors import BadUserInput, ConditionFailed, StreamTrimmed
from keygraph.graph import Graph
from keygraph.keys.types import decode, encode
from keygraph.model.expiry import now
from keygraph.model.fields import Field
from keygraph.model.records import RecordType
from keygraph.resolve.derived import Tally, age_of, combined, is_unfit, stored_age, stored_value
from keygraph.tables.bulk import gathered
from keygraph.tables.findings import key_to_json
from keygraph.tables.totals import is_listed
from keygraph.writing.presence import Presence, is_unchanged, within_maps
from keygraph.writing.sending.idempotency import is_note, note_key

_log = logging.getLogger(__name__)
_NODES = 25
"""How many nodes are read at once, and written at the same time."""
Added: TypeAlias = "dict[Field, Value]"
"""What an item adds to the fields of a node."""


class StreamTallies:
    """What the stream keeps. `graph.made(StreamTallies)` is shared."""

    def __init__(self, graph: Graph) -> None:
        self._graph = graph
        self._by_item: dict[RecordType, list[Tally]] = defaultdict(list)
        self.of: dict[RecordType, dict[Field, list[Tally]]] = defaultdict(dict)
        """The fields of each type of node, with the tallies of the items that add to them."""
        for tally in (each for several in graph.every_tally.values() for each in several):
            if tally.field.is_kept_by_stream:
                self._by_item[tally.record].append(tally)
                self.of[tally.owner].setdefault(tally.field, []).append(tally)

    def added(
        self, item: Item | None, failed: Callable[[Exception], None] | None = None
    ) -> dict[Node, Added]:
        """Returns what an item adds, and to which nodes; nothing if a method or a format of the model fails on it, which
        `failed` is called with. It does for the same item each time, so that what is not added is not taken later."""
        found: dict[Node, Added] = defaultdict(dict)
        if item is None or is_note(item):
            return found
        try:
            record = self._graph.recognise(item)
            for tally in self._by_item.get(record, ()) if record is not None else ():
                added = tally.of(item)
                if added is not None and is_listed(self._graph, tally, item):
                    found[tally.owner, added[0]][tally.field] = added[1]
        except Exception as error:
            if failed is not None:
                failed(error)
            return {}
        return found


@dataclass
class _Touched:
    """What the changes of a shard mean to a node."""

    changes: list[tuple[str, Added, Added]] = field(default_factory=list)
    """The positions of those that change its lists, with what the item added before and after."""
    at: float = 0.0
    is_new: bool = False
    """Whether the node was created, or its values were changed by somebody else."""


class StreamCounter:
    """Adds the changes of a table to the values that the stream keeps."""

    def __init__(self, graph: Graph, store: Store) -> None:
        self._graph = graph
        self._store = store
        self._tallies = graph.made(StreamTallies)
        self._lineage = Lineage(store)
        self._values = NodeValues(graph, store)

    async def apply(self, shard: str, records: Sequence[StreamRecord]) -> None:
        """Adds changes, of which some may have been added before. They are the next ones of their shard, or begin earlier.

        Raises StoreError: then some are added, and all of them are to be applied again.
        """
        touched: dict[Node, _Touched] = defaultdict(_Touched)
        for record in records:
            self._look_at(record, touched)
        nodes = [*touched]
        for start in range(0, len(nodes), _NODES):
            some = nodes[start : start + _NODES]
            read = await self._values.read(some)
            there = {node: (Ledger.of(note), item) for node, (note, item) in read.items()}
            await self._lineage.know({shard}.union(*(ledger.read for ledger, _ in there.values())))
            await gathered(
                (self._apply(shard, node, touched[node], *there[node]) for node in some), at_once=_NODES
            )

    def _look_at(self, record: StreamRecord, touched: dict[Node, _Touched]) -> None:
        new = record.new
        if new is not None and not is_note(new) and self._graph.recognise(new) is None:
            self._skip(record, self._graph.why_refused(new))
        before, after = (
            self._tallies.added(
                item, lambda error: self._skip(record, f"the model fails with {type(error).__name__}")
            )
            for item in (record.old, new)
        )
        for node in {**before, **after}:
            if before.get(node) != after.get(node):
                touched[node].changes.append((record.position, before.get(node, {}), after.get(node, {})))
                touched[node].at = record.at
        own = self._overwritten(record)
        if own is not None:
            touched[own].is_new = True
            touched[own].at = record.at

    def _skip(self, record: StreamRecord, why: str) -> None:
        key = orjson.dumps(key_to_json(record.key), default=base64_text).decode()
        _log.warning("The item %s is skipped: %s", key, why)

    def _overwritten(self, record: StreamRecord) -> Node | None:
        """Returns the node whose item this is, if it is new, or has other values than this has written."""

        def is_foreign(of: RecordType, old: Item, new: Item) -> bool:
            for each in self._tallies.of[of]:
                before, after = stored_age(of, each, old), stored_age(of, each, new)
                is_changed = before != after or stored_value(each, old) != stored_value(each, new)
                if is_changed and (after is None or (before is not None and after <= before)):
                    return True
            return False

        return overwritten(self._graph, record, self._tallies.of, is_foreign)

    async def _apply(
        self, shard: str, node: Node, touched: _Touched, ledger: Ledger, item: Item | None
    ) -> None:
        while True:
            if ledger.foreign is not None:
                _log.error(
                    "The note of a %s was replaced by another program: its values are wrong until `keygraph summarize`"
                    " was run",
                    node[0].name,
                )
                return
            await self._lineage.know([shard, *ledger.read])
            if shard not in self._lineage.shards:
                # Ledgers forget shards that are gone, so it is not known what is in them.
                raise StreamTrimmed(f"the shard {shard} is gone from the stream")
            changes = [
                each for each in touched.changes if not self._lineage.contains(ledger.read, shard, each[0])
            ]
            if not changes and (ledger.version or not touched.is_new):
                break
            values, read = self._summed(node, ledger, changes), dict(ledger.read)
            if changes:
                read = self._lineage.with_read(ledger.read, shard, changes[-1][0])
            new = ledger.next(values, read, touched.at, self._values.step_of(node[0]))
            there = await replace_ledger(self._graph, self._store, node, ledger, new)
            if there is None:
                ledger = new
                break
            ledger = there
        if ledger.version:
            await self._values.copy(node, ledger, item, is_new=touched.is_new)

    def _summed(
        self, node: Node, ledger: Ledger, changes: Iterable[tuple[str, Added, Added]]
    ) -> dict[str, Value]:
        values = dict(ledger.values)
        for each in self._tallies.of[node[0]]:
            several = [ledger.value_of(each)]
            for _, before, after in changes:
                several += [negated(before[each])] if each in before else []
                several += [after[each]] if each in after else []
            if len(several) > 1:
                values[each.name] = combined(each, several)
        return values


def overwritten(
    graph: Graph,
    record: StreamRecord,
    types: Container[RecordType],
    is_foreign: Callable[[RecordType, Item, Item], bool],
) -> Node | None:
    """Returns the node of one of these types whose item was written, if it is new, or `is_foreign` says of it as it was
    before and after that somebody else has changed its values."""
    new, old = record.new, record.old
    of = None if new is None or is_note(new) else graph.recognise(new)
    if new is None or of is None or of not in types or (identity := of.read_identity(new)) is None:
        return None
    is_new = old is None or graph.recognise(old) is not of
    return (of, identity) if is_new or is_foreign(of, old or {}, new) else None


def negated(value: Value) -> Value:
    """Returns what takes away what an item has added."""
    if isinstance(value, dict):
        return {name: cast(Decimal, each).copy_negate() for name, each in value.items()}
    return cast(Decimal, value).copy_negate()


async def read_node(graph: Graph, store: Store, node: Node) -> Item | None:
    """Returns the item of a node; None if there is none, or if it has expired. Raises StoreError."""
    there = (await store.send(BatchGet(tuple(graph.table_keys(*node)), consistent=True))).items
    live = (each for each in there if each is not None and not graph.is_expired(each, now()))
    return next((each for each in live if graph.recognise(each) is node[0]), None)


class NodeValues:
    """The values that nodes have, and their ledgers."""

    def __init__(self, graph: Graph, store: Store) -> None:
        self._graph = graph
        self._store = store
        self._tallies = graph.made(StreamTallies)
        self._presence = Presence(graph)

    async def read(self, nodes: Iterable[Node]) -> Mapping[Node, tuple[Item | None, Item | None]]:
        """Returns the note and the item of each node; None for what is not there. Raises StoreError."""
        notes = {node: note_key(self._graph, ledger_name(node)) for node in nodes}
        keys = {node: (note, *self._graph.table_keys(*node)) for node, note in notes.items()}
        wanted = tuple(key for several in keys.values() for key in several)
        batch = await self._store.send(BatchGet(wanted, consistent=True))
        there = dict(zip(wanted, batch.items, strict=True))
        found: dict[Node, tuple[Item | None, Item | None]] = {}
        for node, (of_note, *own) in keys.items():
            items = (there[key] for key in own)
            found[node] = there[of_note], next((each for each in items if self.is_of(node, each)), None)
        return found

    def step_of(self, record: RecordType) -> int:
        """Returns how far apart times must be to be told apart when they are stored, in microseconds."""
        age = age_of(record, next(iter(self._tallies.of[record])))
        for step in (1, 1000):
            moment = datetime.fromtimestamp(0, UTC) + timedelta(microseconds=step)
            if decode(age.type, encode(age.type, moment)) == moment:
                return step
        return 1_000_000

    def is_of(self, node: Node, item: Item | None) -> bool:
        return item is not None and self._graph.recognise(item) is node[0]

    async def copy(self, node: Node, ledger: Ledger, item: Item | None, *, is_new: bool) -> None:
        """Writes the values of a ledger to its node, unless that has later ones. If it is not new, only those that it had
        before. `item` is the node as it was read. Raises StoreError.

        Whoever gives a new node its values, and whoever has changed the ledger and finds no values in the node, look again: one
        of them learns of the other.
        """
        while True:
            is_done = await self._copied(node, ledger, item, is_new=is_new)
            if is_done and not is_new:
                return
            before = ledger.version, None if is_new else item
            note, item = (await self.read([node]))[node]
            ledger = Ledger.of(note)
            if (ledger.version, None if is_new else item) == before:
                return

    async def _copied(self, node: Node, ledger: Ledger, item: Item | None, *, is_new: bool) -> bool:
        """Returns whether the node has values, and none that are older than the ledger."""
        record = node[0]
        while item is not None and self.is_of(node, item):
            changes = list[AttributeChange]()
            conditions = [self._presence.is_there(record)]
            for each in self._tallies.of[record]:
                value, age = ledger.value_of(each), age_of(record, each)
                stored, at = stored_value(each, item), stored_age(record, each, item)
                # One that was too large has its time.
                if (stored is None and at is None and not is_new) or (at is not None and at > ledger.at):
                    continue
                is_known = stored is None if is_unfit(each, value) else stored == value
                if is_known and at == ledger.at:
                    continue
                if is_unfit(each, value):
                    _log.error("%s.%s of a node is too large for its field", record.name, each.name)
                    changes.append(Remove(each.kept_attribute))
                else:
                    changes.append(SetTo(each.kept_attribute, value))
                changes.append(SetTo(age.attribute, encode(age.type, ledger.at)))
                conditions.append(is_unchanged(age.attribute, item))
            if not changes:
                return all(stored_age(record, each, item) for each in self._tallies.of[record])
            fitting, of_maps = within_maps(changes, item)
            action = UpdateItem(self._graph.table.key_of(item), tuple(fitting), And((*conditions, *of_maps)))
            try:
                await self._store.send(Write(action))
            except ConditionFailed as failed:
                item = failed.item
            except BadUserInput as error:
                _log.error("The values of a %s cannot be written: %s", record.name, error)
                return True
            else:
                return True
        return False
