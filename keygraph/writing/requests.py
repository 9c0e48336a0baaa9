"""The write requests, to create, put, change, upsert, delete and move records, and the answer. All are values.

The values of a record are keyed by the names of its fields and ends. An end's value is the identity of the node there,
as `Graph.identity` makes it. `where` is the place of a request in the client's input, for messages.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from decimal import Decimal
from enum import Enum
from typing import Any, TypeAlias

from uuid_utils import uuid7

from keygraph.codes import Code
from keygraph.dynamo.items import Item, exact_sum
from keygraph.dynamo.value import value
from keygraph.errors import InputPath, Refusal
from keygraph.model.fields import Field
from keygraph.model.record_keys import Texts
from keygraph.model.records import RecordType


@value(frozen=True, slots=True)
class Create:
    """A new record. Refused if there is one with the same key."""

    record: RecordType
    values: Mapping[str, Any]
    where: InputPath = ()


@value(frozen=True, slots=True)
class Put:
    """A record that replaces one with the same key, if there is one."""

    record: RecordType
    values: Mapping[str, Any]
    where: InputPath = ()
    is_read: bool = False
    """Whether the answer says if there was one, which has to be read for it."""


@dataclass(frozen=True, slots=True)
class Change:
    """A change of some fields of an existing record. None in `values` removes the field."""

    record: RecordType
    identity: Texts
    values: Mapping[str, Any]
    added: Mapping[str, Any] = field(default_factory=dict)
    """Numbers to add, members to add to sets, values to append to lists."""
    taken: Mapping[str, Any] = field(default_factory=dict)
    """Members to take from sets."""
    version: int | None = None
    """The version that the record must have."""
    where: InputPath = ()

    @property
    def names(self) -> set[str]:
        return {*self.values, *self.added, *self.taken}


@dataclass(frozen=True, slots=True)
class Upsert:
    """A record to create, or to change if it exists. Values that are not given stay as they are."""

    record: RecordType
    values: Mapping[str, Any]
    where: InputPath = ()
    added: Mapping[str, Any] = field(default_factory=dict)
    """What is added to values, as in a change; in a new record to their defaults."""
    taken: Mapping[str, Any] = field(default_factory=dict)
    """Members to take from sets that are there."""
    version: int | None = None
    """The version that the record must have, so it must exist."""

    @property
    def values_of_new(self) -> Mapping[str, Any]:
        if not self.added:
            return self.values
        fields = self.record.fields
        return {**self.values, **{name: _with(fields[name], each) for name, each in self.added.items()}}

    def as_change(self, identity: Texts) -> Change:
        """Returns the change that it is if its record exists."""
        in_key = in_own_key(self.record)
        values = {name: value for name, value in self.values.items() if name not in in_key}
        return Change(self.record, identity, values, self.added, self.taken, self.version, self.where)


def in_own_key(record: RecordType) -> set[str]:
    """Returns the fields and ends that stand in the table's key themselves."""
    return {slot.path[0] for slot in record.identity if not (slot.computed and len(slot.path) == 1)}


def _with(of: Field, added: Any) -> Any:
    """Returns the default of a field with what is added to it: an amount, members of a set, elements of a list."""
    default = of.default if of.has_default else None
    if not default:
        return added
    if of.type.kind in ("set", "list"):
        return [*default, *added]
    return exact_sum((default, added)) if isinstance(added, Decimal) else default + added


class OnEdges(Enum):
    """What happens to the edges of a node that is deleted."""

    REFUSE = "refuse"
    DETACH = "detach"


@dataclass(frozen=True, slots=True)
class Delete:
    """The deletion of an existing record. For a node, `on_edges` says what happens to the records that name it."""

    record: RecordType
    identity: Texts
    version: int | None = None
    where: InputPath = ()
    on_edges: OnEdges = OnEdges.REFUSE


@dataclass(frozen=True, slots=True)
class Move:
    """New values for fields of a record's key: a new item replaces the old one. A node that is named is not moved."""

    record: RecordType
    identity: Texts
    values: Mapping[str, Any]
    version: int | None = None
    where: InputPath = ()
    to: InputPath = ()
    """The place of the values in the client's input."""

    @property
    def as_change(self) -> Change:
        return Change(self.record, self.identity, self.values, where=self.to)


NewRequest: TypeAlias = Create | Put | Upsert
WriteRequest: TypeAlias = NewRequest | Change | Delete | Move


def missing(request: WriteRequest) -> Refusal:
    return Refusal(Code.NOT_FOUND, (f"There is no {request.record.name} with this key.",), request.where)


def place_of(request: WriteRequest, name: str | None = None) -> InputPath:
    """Returns the place in the client's input of a request's values, or of those among which this field is."""
    match request:
        case Move():
            return request.to
        case Change(added=added) if name in added:
            return (*request.where, "add")
        case Change(taken=taken) if name in taken:
            return (*request.where, "remove")
    return request.where


def decided_by_stored(request: Change) -> list[str]:
    """Returns the fields whose stored value decides about a change: required sets from which it removes several members,
    of which one must be left, and what it adds to or takes from in an attribute that may be the former one."""
    fields = request.record.fields
    emptied = [name for name, taken in request.taken.items() if len(taken) > 1 and fields[name].is_required]
    return [*emptied, *(name for name in (*request.added, *request.taken) if fields[name].former)]


@value(frozen=True, slots=True)
class Done:
    """The result of a request."""

    record: RecordType
    identity: Texts
    item: Item | None
    """The item as it is stored now. None if the record was deleted, or if it has to be read."""
    detached: int = 0
    """How many records no longer name the deleted node: most of them were deleted too."""
    is_new: bool | None = False
    """Whether there was no record with its key; None for a put if that was not read."""


def new_id() -> str:
    """Returns a new id, which sorts after all earlier ones."""
    return str(uuid7())


def with_ids(record: RecordType, values: Mapping[str, Any]) -> dict[str, Any]:
    """Returns the values of a new record, with an id for each field that gets one and has none."""
    made = {
        field.name: new_id()
        for field in record.fields.values()
        if field.kept == "id" and values.get(field.name) is None
    }
    return {**values, **made}
