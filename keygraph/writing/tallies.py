"""Updates the counts and sums of nodes in the transaction that writes their items.

An item adds to the node whose list contains it (`keygraph.resolve.derived`), and what it added before is subtracted. So
a write that replaces, changes or deletes such an item needs the stored item, on condition that it is as it was read. A
number that a node does not have is unknown: nothing is added to it.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import replace
from decimal import Decimal
from functools import cache
from typing import TypeAlias

from keygraph.dynamo.actions import CheckItem, PutItem, UpdateItem, changed
from keygraph.dynamo.conditions import And, Condition, Path, at_path
from keygraph.dynamo.items import Item, exact_sum
from keygraph.dynamo.table import Key
from keygraph.graph import Graph
from keygraph.model.record_keys import Texts
from keygraph.model.records import RecordType
from keygraph.resolve.derived import Tally
from keygraph.writing.items import ItemMaker
from keygraph.writing.presence import Presence, is_unchanged
from keygraph.writing.step import Addition, TransactionStep

_Stored: TypeAlias = Mapping[Key, Item | None]


class Tallies:
    """The amounts that items of a graph add to nodes."""

    def __init__(self, graph: Graph, maker: Callable[[RecordType], ItemMaker], presence: Presence) -> None:
        self._graph = graph
        self._maker = maker
        self._presence = presence
        self._paths = cache(self._find_paths)

    def has(self, record: RecordType, names: Iterable[str] | None = None) -> bool:
        """Returns whether items of a type add to any node; only through these fields and ends, if some are given."""
        tallies = self._graph.tallies.get(record.name, ())
        return any(
            names is None or each.names is None or not each.names.isdisjoint(names) for each in tallies
        )

    def nodes(self, record: RecordType, items: Iterable[Item]) -> Iterator[tuple[RecordType, Texts]]:
        """Yields the nodes that items of a type add to."""
        for item in items:
            for tally in self._graph.tallies.get(record.name, ()):
                told = tally.of(item)
                if told is not None:
                    yield tally.owner, told[0]

    def places(self, record: RecordType) -> int:
        """Returns the number of possible places of the nodes that an item adds to, if they have several."""
        owners = {each.owner for each in self._graph.tallies.get(record.name, ())}
        return sum(len(each.table_keys.shard_texts) for each in owners if each.table_keys.shards)

    def counted(self, step: TransactionStep, stored: _Stored) -> TransactionStep:
        """Returns the step with what it adds to nodes, on condition that the item is as it was read."""
        before, action = step.before, step.action
        if (
            not self._graph.tallies
            or step.additions
            or isinstance(action, CheckItem)
            or (before is None and not isinstance(action, PutItem))
        ):
            return step
        after = (
            action.item
            if isinstance(action, PutItem)
            else changed(before or {}, action.changes)
            if isinstance(action, UpdateItem)
            else None
        )
        record = self._graph.recognise(after or before or {})
        tallies = () if record is None else self._graph.tallies.get(record.name, ())
        if record is None or not tallies:
            return step
        additions = [*self._additions(tallies, before, after, stored)]
        if isinstance(action, UpdateItem):
            names = {change.path[0] for change in action.changes}
            if not additions and names.isdisjoint(path[0] for path in self._paths(record)):
                return step
        conditions: list[Condition] = [self._presence.is_free(record)]
        if before is not None:
            same = (is_unchanged(path, before) for path in self._paths(record))
            conditions = [self._presence.is_there(record), *same]
        asked = action.condition
        there = asked.conditions if isinstance(asked, And) else (asked,)
        conditions = [each for each in conditions if each not in there]
        made = step.on_condition(*conditions) if conditions else step
        return replace(made, additions=tuple(additions))

    def _additions(
        self, tallies: Iterable[Tally], before: Item | None, after: Item | None, stored: _Stored
    ) -> Iterator[Addition]:
        for tally in tallies:
            amounts: defaultdict[Texts, list[Decimal]] = defaultdict(list)
            for item, is_after in ((before, False), (after, True)):
                told = None if item is None else tally.of(item)
                if told is not None:
                    amounts[told[0]].append(told[1] if is_after else told[1].copy_negate())
            for identity, several in amounts.items():
                if amount := exact_sum(several):
                    yield self._addition(tally, identity, amount, stored)

    def unread(self, record: RecordType, item: Item, amount: Decimal) -> tuple[Addition, ...]:
        """Returns what an item that was not completely read adds to nodes: `amount` to each sum."""
        found = []
        for tally in self._graph.tallies.get(record.name, ()):
            node = tally.node(item)
            if node is not None:
                added = amount if tally.summed else Decimal(1).copy_sign(amount)
                found.append(self._addition(tally, node, added, {}))
        return tuple(found)

    def _addition(self, tally: Tally, identity: Texts, amount: Decimal, stored: _Stored) -> Addition:
        keys, path = tuple(self._graph.table_keys(tally.owner, identity)), tally.field.attribute
        there, is_unknown = self._presence.is_there(tally.owner), False
        if all(key in stored for key in keys):
            items = {key: item for key in keys if (item := stored[key]) is not None}
            found = [key for key, item in items.items() if self._graph.recognise(item) is tally.owner]
            keys = tuple(found[:1]) or keys
            is_unknown = not found or at_path(items[found[0]], path) is None
        return Addition(keys, tally.field, amount, there, is_unknown)

    def _find_paths(self, record: RecordType) -> list[Path]:
        """Returns the attributes that determine what an item of a type adds."""
        maker, found = self._maker(record), set[str]()
        for tally in self._graph.tallies.get(record.name, ()):
            found |= {*record.fields, *record.ends} if tally.names is None else tally.names
        indexed = {
            (key.name,)
            for tally in self._graph.tallies.get(record.name, ())
            if tally.path.keys.index is not None
            for key in tally.path.keys.attributes
        }
        own = {(key.name,) for key in self._graph.table.keys}
        return sorted({*maker.paths(sorted(found)), *indexed} - own)
