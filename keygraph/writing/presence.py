"""Conditions on stored items: a record of a type, no record, a node that may be named, an unchanged item, a version."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from decimal import Decimal
from functools import cache
from typing import Any, cast

from keygraph.codes import Code
from keygraph.dynamo.actions import AddMembers, AttributeChange, Remove, RemoveMembers, SetTo, changed
from keygraph.dynamo.conditions import And, Condition, Eq, Exists, Ne, Not, Or, Path, at_path, put_at_path
from keygraph.dynamo.items import Item, Value
from keygraph.errors import FieldName, InputPath, Refusal
from keygraph.graph import Graph
from keygraph.kept import kept
from keygraph.keys.types import encode
from keygraph.model.expiry import has_expired, is_live, now
from keygraph.model.record_keys import Texts
from keygraph.model.records import End, RecordType
from keygraph.writing.marks import UNMARKED

_MISSING: Any = object()
_KEPT = 1024
"""The number of conditions on types that are cached."""


class Presence:
    """The conditions that something is in the table of a graph."""

    def __init__(self, graph: Graph) -> None:
        self._graph = graph
        self.there: Condition = Exists((graph.table.partition.name,))
        self._absent: Condition = Not(self.there)
        self.nothing: Condition = And((self.there, self._absent))
        """A condition that nothing meets."""
        self._of_type = cache(graph.type_values.condition_under_own_key)
        self.is_replaceable = cache(self._is_replaceable)
        # Conditions that depend only on the types, and on the current second if they expire, are made once.
        self._there_at = kept("conditions", _KEPT, 2_000)(self._there_since)
        self._open_at = kept("conditions", _KEPT, 2_000)(self._open_since)

    def is_there(self, record: RecordType) -> Condition:
        """Returns the condition that an item of the type exists, under a key that may be another type's."""
        return self._there_at(record, None if record.expiry is None else now())

    def _there_since(self, record: RecordType, at: Decimal | None) -> Condition:
        of_type = self._of_type(record)
        live = [] if record.expiry is None or at is None else [is_live(record.expiry, at)]
        further = [*([] if of_type is None else [of_type]), *live]
        return And((self.there, *further)) if further else self.there

    def is_free(self, record: RecordType) -> Condition:
        """Returns the condition that there is no item, or an expired one of the type."""
        expired = None if record.expiry is None else self._expired(record)
        return self._absent if expired is None else Or((self._absent, expired))

    def _is_replaceable(self, record: RecordType) -> tuple[Condition, ...]:
        """Returns the condition that no item of another type is under the record's key; none where none can be."""
        is_shared = self._graph.type_values.share_keys(record)
        return (Or((self._absent, self._of_type(record) or self.there)),) if is_shared else ()

    def _expired(self, record: RecordType) -> Condition | None:
        """Returns the condition that an expired item of the type exists; None for a type that does not expire."""
        if record.expiry is None:
            return None
        of_type = self._of_type(record)
        expired = has_expired(record.expiry, now())
        return expired if of_type is None else And((of_type, expired))

    def is_as_read(self, record: RecordType, paths: Iterable[Path], there: Item | None) -> list[Condition]:
        """Returns the conditions that attributes of an item are as read. A missing item may be an expired one."""
        same = are_as_read(record, paths, there or {})
        expired = self._expired(record) if same and there is None else None
        return same if expired is None else [Or((And(tuple(same)), expired))]

    def is_open(self, members: tuple[RecordType, ...]) -> Condition:
        """Returns the condition that a node of one of these types exists and that new records may name it."""
        if self._graph.expires and any(member.expiry for member in members):
            return self._open_at(members, now())
        return self._open_at(members, None)

    def _open_since(self, members: tuple[RecordType, ...], at: Decimal | None) -> Condition:
        there = tuple(self._there_at(member, at) for member in members)
        return And((there[0] if len(there) == 1 else Or(there), UNMARKED))


class NamedEnd:
    """An end of a record type, at which a write names a node."""

    def __init__(self, end: End, field_name: FieldName, place: InputPath | None = None) -> None:
        """`field_name` is its name in an input, `place` its place there."""
        self.end = end
        self.name = end.name
        self._field_name = field_name
        self._place = place or (field_name,)
        self._members = _with_items(end.members)

    def nodes(self, identity: Texts) -> tuple[tuple[RecordType, ...], Texts]:
        """Returns the possible types of the node with this identity, like `End.nodes`; none for a virtual one."""
        if self.end.text is None:
            return self._members, identity
        members, own = self.end.nodes(identity)
        return _with_items(members), own

    def missing(self, where: InputPath) -> Refusal:
        problem = f": there is no {self.end.type_name} with this key."
        return Refusal(Code.NOT_FOUND, (self._field_name, problem), (*where, *self._place))


def _with_items(members: Iterable[RecordType]) -> tuple[RecordType, ...]:
    return tuple([member for member in members if not member.is_virtual])


def has_version(record: RecordType, version: int | None) -> list[Condition]:
    """Returns the condition that a record has a version; none if no version is required."""
    if record.version is None or version is None:
        return []
    return [Eq(record.version.attribute, encode(record.version.type, version))]


def is_unchanged(path: Path, old: Item) -> Condition:
    """Returns the condition that an attribute is as it was read."""
    value = at_path(old, path, _MISSING)
    return Not(Exists(path)) if value is _MISSING else Eq(path, cast(Value, value))


def are_as_read(record: RecordType, paths: Iterable[Path], old: Item) -> list[Condition]:
    """Returns the conditions that attributes are as they were read, and if one is missing, the index keys that may hold
    its value."""
    found = dict.fromkeys(paths)
    missing = [path for path in found if path in record.index_keys_with and at_path(old, path) is None]
    held = {key for path in missing for key in record.index_keys_with[path]}
    return [is_unchanged(path, old) for path in dict.fromkeys((*found, *sorted(held)))]


def within_maps(
    changes: Sequence[AttributeChange], old: Item | None
) -> tuple[list[AttributeChange], list[Condition]]:
    """Returns changes of which the nearest missing map on each path is written whole, and the conditions that maps are
    there and missing as in the stored item; without it, all must be there."""
    fitting = list[AttributeChange]()
    conditions = dict[Condition, None]()
    made = dict[Path, Item]()
    for change in changes:
        path = change.path
        above = [] if old is None else [path[:size] for size in range(1, len(path))]
        missing = next((each for each in above if at_path(old or {}, each) is None), None)
        unfit = next((each for each in above if not isinstance(at_path(old or {}, each), dict)), None)
        if unfit is not None and missing is None and isinstance(change, Remove):
            # Nothing is removed from a value that is no map.
            conditions[is_unchanged(unfit, old or {})] = None
            continue
        holder = (missing or path)[:-1]
        if holder:
            conditions[And((Exists(holder), Ne(holder, None)))] = None
        if missing is None:
            if old is not None and len(path) > 1 and isinstance(change, AddMembers | RemoveMembers):
                # DynamoDB can only replace a set inside a map.
                conditions[is_unchanged(path, old)] = None
                members = at_path(changed(old, [change]), path)
                change = Remove(path) if members is None else SetTo(path, cast(Value, members))
            fitting.append(change)
            continue
        conditions[is_unchanged(missing, old or {})] = None
        for name, stored in changed({}, [replace(change, path=path[-1:])]).items():
            put_at_path(made.setdefault(missing, {}), (*path[:-1], name), stored)
    fitting += [SetTo(path, cast(Value, at_path(whole, path))) for path, whole in made.items()]
    return fitting, [*conditions]


def after_changes(item: Item, changes: Sequence[AttributeChange]) -> Item:
    """Returns a copy of the item with the changes made, also in maps that it lacks."""
    return changed(item, within_maps(changes, item)[0])
