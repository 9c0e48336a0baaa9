"""The base of all requests' steps: stored items, the viewer's rights, and the fields that the server sets."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from copy import copy
from datetime import UTC, datetime
from functools import cache
from typing import Any, Self, TypeAlias

from keygraph.access.language import WRITES
from keygraph.codes import Code
from keygraph.declare.declaration import Kept
from keygraph.dynamo.conditions import Condition, Path
from keygraph.dynamo.items import Item
from keygraph.dynamo.table import Key
from keygraph.errors import InputPath, Refusal
from keygraph.graph import Graph
from keygraph.model.expiry import now
from keygraph.model.fields import Field
from keygraph.model.permissions import Permissions
from keygraph.model.record_keys import Texts
from keygraph.model.records import RecordType
from keygraph.writing.items import ItemMaker, Refusals
from keygraph.writing.partners import Partners
from keygraph.writing.presence import Presence, has_version
from keygraph.writing.requests import Change, Delete, Done, Move, WriteRequest
from keygraph.writing.rules import (
    UNGUARDED,
    Guard,
    WriteAccess,
    exists_already,
    missing,
)
from keygraph.writing.step import TransactionStep
from keygraph.writing.tallies import Tallies

Stored: TypeAlias = Mapping[Key, Item | None]
"""The items that were read for a transaction, by key."""
LASTING: tuple[Kept, ...] = ("created", "version", "count", "sum")
"""The fields that the server keeps even if another record replaces this one."""
Made: TypeAlias = "tuple[list[TransactionStep], Done]"
"""The steps of a request, and the resulting record."""


class StepGround:
    """A graph, with what one viewer may write."""

    def __init__(self, graph: Graph) -> None:
        self._graph = graph
        self._makers: dict[str, ItemMaker] = {}
        self._partners = Partners(graph, self.maker)
        self._presence = Presence(graph)
        self._tallies = Tallies(graph, self.maker, self._presence)
        self._kept_fields = cache(_kept_fields)
        self._kept_by_all = cache(lambda record: _kept_fields(record, ("updated",)))
        self._kept_of_new = cache(lambda record: _kept_fields(record, ("updated", *LASTING)))
        self._key_of = graph.table.key_of
        self.access: WriteAccess | None = None
        """The viewer's rights to write; None if the graph has no rules."""

    def of(self, permissions: Permissions | None) -> Self:
        """Returns a copy for a viewer, with what was made so far."""
        if permissions is None:
            return self
        made = copy(self)
        made.access = WriteAccess(permissions)
        return made

    def refuse(self, requests: Iterable[WriteRequest], refusals: Refusals) -> None:
        """Refuses writes that are known to be forbidden before anything is read."""
        if self.access is not None:
            for request in requests:
                self.access.refuse(self.maker(request.record), request, refusals)

    def maker(self, record: RecordType) -> ItemMaker:
        """Returns the maker of a type's items."""
        found = self._makers.get(record.name)
        if found is None:
            found = self._makers[record.name] = ItemMaker(self._graph, record)
        return found

    # --- Stored items -------------------------------------------------------------------------------------

    def place(
        self, request: Change | Delete | Move, stored: Stored, refusals: Refusals
    ) -> tuple[Key, Item | None]:
        """Returns the key of the record, and its stored item if that was read. Refuses a missing one."""
        keys = self._graph.table_keys(request.record, request.identity)
        if keys[0] not in stored:
            return keys[0], None
        found = self._found(request.record, request.identity, stored, request.where, refusals)
        if found is None:
            refusals.found.append(missing(request))
            return keys[0], None
        return self._key_of(found), found

    def _found(
        self, record: RecordType, identity: Texts, stored: Stored, where: InputPath, refusals: Refusals
    ) -> Item | None:
        """Returns the record's item among those read, if the viewer sees it. Refuses one that is in two shards."""
        found = self._read(record, identity, stored)
        if self.access is not None:
            found = [item for item in found if self.access.sees(record, identity, item)]
        if len(found) > 1:
            problem = f"There are two items of this {record.name}, in two shards: delete one of them first."
            refusals.add(where, problem, code=Code.CONFLICT)
        return found[0] if found else None

    def _read(self, record: RecordType, identity: Texts, stored: Stored) -> list[Item]:
        """Returns the record's items among those that were read, whoever sees them."""
        if not stored:
            return []
        read = [stored.get(key) for key in self._graph.table_keys(record, identity)]
        return [item for item in read if item is not None and self._graph.recognise(item) is record]

    def conditions(self, request: Change | Delete | Move, guard: Guard | None = None) -> list[Condition]:
        """Returns the conditions that the record exists as the request requires, and that the viewer may write it."""
        guard = self.guard(request) if guard is None else guard
        version = has_version(request.record, request.version)
        return [self._presence.is_there(request.record), *version, *guard.conditions]

    def guard(
        self, request: Change | Delete | Move, old: Item | None = None, refusals: Refusals | None = None
    ) -> Guard:
        """Returns what the access rules for writing require of the stored item."""
        if self.access is None:
            return UNGUARDED
        return self.access.guard(self.maker(request.record), request, old, refusals or Refusals())

    def _taken(self, record: RecordType, where: InputPath) -> Callable[[Item | None], Refusal]:
        """Returns the refusal for a new record whose key is taken."""

        def refusal(item: Item | None) -> Refusal:
            stored = self._graph.recognise(item or {})
            hidden = self.access and self.access.hidden(record, where, item or {}, stored)
            return hidden or exists_already(record if item is None else stored, where)

        return refusal

    def _again(self, record: RecordType, where: InputPath) -> Callable[[Item | None], Refusal | None]:
        """Returns the refusal for a record that exists after all; None if another try can find it."""

        def refusal(item: Item | None) -> Refusal | None:
            if item is not None and self._graph.recognise(item) is not record:
                return self._taken(record, where)(item)
            return None if self.access is None else self.access.hidden(record, where, item, record)

        return refusal

    def _holds_partner(self, record: RecordType) -> bool:
        """Returns whether the viewer may not do everything with the counterparts of edges of the type."""
        told = self._graph.correspondences.get(record.name)
        if self.access is None or told is None or told.is_mirror:
            return False
        decision = self.access.permissions.decision
        return any(decision(told.other, action) is not True for action in WRITES)

    def _held_partner(
        self, request: WriteRequest, before: Item | None, after: Item | None, refusals: Refusals
    ) -> list[Condition]:
        """Refuses what the viewer may not do to an edge's counterpart, which has its own rules. Returns the rules'
        conditions. A mirror is the same edge from its other end."""
        told = self._graph.correspondences.get(request.record.name)
        if self.access is None or told is None or told.is_mirror:
            return []
        return self.access.held_partner(told.other, before, after, request.where, refusals)

    def refused(
        self, request: Change | Delete | Move, guard: Guard | None = None
    ) -> Callable[[Item | None], Refusal | None]:
        """Returns the refusal for a record that is not as required."""
        version, wanted = request.record.version, request.version
        guard = self.guard(request) if guard is None else guard

        def refusal(item: Item | None) -> Refusal | None:
            is_gone = item is None or self._graph.recognise(item) is not request.record
            if item is None or is_gone or self._graph.is_expired(item, now()):
                return missing(request)
            broken = guard.refusal(item)
            if broken is not None:
                return broken
            if version is not None and wanted is not None:
                current = request.record.reader(version)(item)
                if current != wanted:
                    told = (f"This {request.record.name} has changed: its version is {current}.",)
                    return Refusal(Code.CONFLICT, told, request.where, {"currentVersion": current})
            return None

        return refusal

    # --- Values in keys, and fields that the server keeps -------------------------------------------------

    def _changed_attributes(self, request: Change | Move) -> set[Path]:
        """Returns the attributes that a change or a move writes. A change cannot change those in the table's key."""
        shared = self.maker(request.record).shared
        if isinstance(request, Move):
            return shared.changed(request.values)
        return shared.changed(request.values, {*request.added, *request.taken}) - shared.paths_in_key

    def changed_names(self, request: Change | Move) -> set[str]:
        """Returns the fields and ends that a request changes: all that are stored in an attribute that it writes."""
        names = named_in(request) if isinstance(request, Change) else {*request.values}
        shared = self.maker(request.record).shared
        return names | shared.names_at(self._changed_attributes(request)) if shared.ends else names

    def _told_by_key(self, record: RecordType) -> set[str]:
        """Returns the fields and ends in the table's key."""
        return self.maker(record).sources([record.table_keys])

    def _kept(
        self, record: RecordType, *, is_new: bool = False, before: Item | None = None
    ) -> dict[str, Any]:
        """Returns the values of fields kept by every write, or by a new record, which may replace `before`."""
        fields = self._kept_of_new(record) if is_new else self._kept_by_all(record)
        if not fields:
            return {}
        at = datetime.now(UTC)
        values: dict[str | None, Any] = {"updated": at, "created": at, "version": 1, "count": 0, "sum": 0}
        kept = {field.name: values[field.kept] for field in fields}
        for field in fields if before is not None else ():
            value = None if field.kept == "updated" else record.reader(field)(before or {})
            if value is not None:
                kept[field.name] = value + 1 if field.kept == "version" else value
        return kept


def named_in(request: Change) -> set[str]:
    """Returns the fields and ends that a change names."""
    return {*request.values, *request.added, *request.taken}


def _kept_fields(record: RecordType, kept: tuple[Kept, ...]) -> list[Field]:
    """Returns the fields of a type in which the server keeps one of these."""
    return [field for field in record.fields.values() if field.kept in kept]
