"""What is known of a node's values that the stream keeps: a note in the table, beside the node.

It has the values and, for each shard of the stream, the position of the last change that they contain. Whoever adds a change
writes both at once, on the condition that nobody else has: so each change is added once, however often it is read. The
changes of a shard are added in their order, and those of its parents before, so a change is contained if the note has its
shard with its position or a later one, or has a child of its shard.

A note does not need its node: one that is created after its items finds their values here, and one that somebody replaces
gets them again. It is read by this module alone, and no client sees it.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterable, Mapping, Set
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from typing import TypeAlias, cast

from keygraph.changes.stream import ancestors
from keygraph.dynamo.actions import PutItem
from keygraph.dynamo.conditions import Condition, Eq, Exists, Not
from keygraph.dynamo.items import Item, Value
from keygraph.dynamo.store import Store, Write
from keygraph.dynamo.streams import DescribeStream, StreamShard
from keygraph.errors import ConditionFailed
from keygraph.graph import Graph
from keygraph.model.fields import Field
from keygraph.model.record_keys import Texts
from keygraph.model.records import RecordType
from keygraph.names import NOTE
from keygraph.resolve.derived import combined, is_storable
from keygraph.writing.sending.idempotency import new_note

Node: TypeAlias = "tuple[RecordType, Texts]"
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_DESCRIBED_SECONDS = 60.0
"""How long a description of the stream is used, unless it lacks a shard."""
_MOST = 25 * 10**16
"""More than a note can have been written. In microseconds since 1970, the year 9892."""
_MOST_DIGITS = 1000
"""More than a sum of all items of a table can have."""


@dataclass(frozen=True)
class Ledger:
    """The contents of a node's note."""

    version: int = 0
    """How often it was written; 0 if there is no note."""
    values: Mapping[str, Value] = field(default_factory=dict)
    """As nodes store them, by the name of the field. One that is missing is that of an empty list."""
    read: Mapping[str, str] = field(default_factory=dict)
    """The position of the last change that the values contain, by shard."""
    microseconds: int = 0
    """When the last change was made, since 1970. It grows with each version, so it orders them."""
    foreign: Item | None = None
    """The item of another program in the note's place."""

    @classmethod
    def of(cls, note: Item | None) -> Ledger:
        if note is None:
            return cls()
        match note.get(NOTE):
            case {
                "version": Decimal() as version,
                "values": dict(values),
                "read": dict(read),
                "microseconds": Decimal() as microseconds,
            } if is_whole(version) and is_whole(microseconds) and all(map(is_position, read.values())):
                with suppress(ArithmeticError, ValueError):  # a text that is no number
                    exact = {name: _exact(each) for name, each in values.items()}
                    return cls(int(version), exact, cast(Mapping[str, str], read), int(microseconds))
        return cls(foreign=note)

    def value_of(self, field: Field) -> Value:
        """Returns the value of a field: that of an empty list if there is none, or one that such a field does not have."""
        nothing = combined(field, ())
        value = self.values.get(field.name, nothing)
        is_map = isinstance(value, dict) and isinstance(nothing, dict) and value.keys() == nothing.keys()
        return value if is_map or type(value) is type(nothing) is Decimal else nothing

    @property
    def at(self) -> datetime:
        return _EPOCH + timedelta(microseconds=self.microseconds)

    def next(self, values: Mapping[str, Value], read: Mapping[str, str], at: float, step: int) -> Ledger:
        """Returns the next version. `at` is when its last change was made, in seconds since 1970; times are `step`
        microseconds apart."""
        steps = max(int(at * 1_000_000) // step, self.microseconds // step + 1)
        return Ledger(self.version + 1, values, read, steps * step)


def is_whole(number: Decimal) -> bool:
    """Returns whether a number counts writes or microseconds: that of another program need not."""
    return 0 < number < _MOST and number % 1 == 0


def is_position(value: Value) -> bool:
    """Returns whether a value is a position in a shard."""
    return isinstance(value, str) and value.isascii() and value.isdigit()


def _as_kept(value: Value) -> Value:
    """Returns a value as a note has it: a number that DynamoDB cannot hold as text, so that later changes find it."""
    if isinstance(value, dict):
        return {name: _as_kept(each) for name, each in value.items()}
    return value if is_storable(value) else str(value)


def _exact(value: Value) -> Value:
    if isinstance(value, dict):
        return {name: _exact_number(each) for name, each in value.items()}
    return _exact_number(value)


def _exact_number(value: Value) -> Decimal:
    exact = Decimal(value) if isinstance(value, str) else value
    if not isinstance(exact, Decimal) or not exact.is_finite() or abs(exact.adjusted()) > _MOST_DIGITS:
        raise ValueError("not a number that a sum can be")
    return exact


def ledger_name(node: Node) -> tuple[str | int, ...]:
    """Returns the name of a node's note."""
    record, identity = node
    return 0, "ledger", record.name, *identity


def is_unwritten(graph: Graph, foreign: Item | None) -> Condition:
    """Returns the condition that there is no note, or still what another program has put in its place."""
    if foreign is None:
        return Not(Exists((graph.table.partition.name,)))
    return Eq((NOTE,), foreign[NOTE]) if NOTE in foreign else Not(Exists((NOTE,)))


async def replace_ledger(graph: Graph, store: Store, node: Node, old: Ledger, new: Ledger) -> Ledger | None:
    """Writes a ledger, if the old one is still there. Returns None, or the one that is there instead.

    Raises BadUserInput for one that is too large, and StoreError.
    """
    content = {
        "node": [node[0].name, *node[1]],
        "version": Decimal(new.version),
        "values": {name: _as_kept(each) for name, each in new.values.items()},
        "read": dict(new.read),
        "microseconds": Decimal(new.microseconds),
    }
    same = is_unwritten(graph, old.foreign)
    if old.version:
        same = Eq((NOTE, "version"), Decimal(old.version))
    try:
        await store.send(Write(PutItem(new_note(graph, ledger_name(node), content), same)))
    except ConditionFailed as failed:
        return Ledger.of(failed.item)
    return None


@dataclass
class Lineage:
    """The shards of a stream, and which come before which."""

    store: Store
    shards: Mapping[str, StreamShard] = field(default_factory=dict)
    _gone: Set[str] = field(default_factory=frozenset)
    """Those that the last description lacks, though a node's note has them. DynamoDB describes a stream ten times a second
    at most."""
    _described: float = 0.0
    _describing: asyncio.Lock = field(default_factory=asyncio.Lock)

    async def know(self, names: Iterable[str]) -> None:
        """Makes sure that each of these shards is known, or is gone. Raises StoreError."""
        wanted, now = {*names}, time.time()  # by a clock that goes on while the machine sleeps

        def is_known() -> bool:
            is_recent = abs(now - self._described) < _DESCRIBED_SECONDS
            return is_recent and wanted <= self.shards.keys() | self._gone

        if is_known():
            return
        async with self._describing:
            if is_known():
                return
            stream = await self.store.send(DescribeStream())
            shards = () if stream is None else stream.shards
            self.shards, self._described = {each.name: each for each in shards}, now
            self._gone = (self._gone | wanted) - self.shards.keys()

    def contains(self, read: Mapping[str, str], shard: str, position: str) -> bool:
        """Returns whether a change is among those up to these positions."""
        if position <= read.get(shard, ""):
            return True
        return any(shard in ancestors(self.shards, other) for other in read if other != shard)

    def with_read(self, read: Mapping[str, str], shard: str, position: str) -> dict[str, str]:
        """Returns the positions with that of another change, without shards that say nothing any more: those before it,
        and those that are gone."""
        before = {*ancestors(self.shards, shard)}
        left = {name: each for name, each in read.items() if name in self.shards and name not in before}
        return {**left, shard: position}
