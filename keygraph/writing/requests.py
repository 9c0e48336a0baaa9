"""What can be asked for: records that are created, put, changed and deleted, and the answer. All are values.

The values of a record are by the names of its fields and ends. An end's value is the identity of the node there, as
`Graph.identity` makes it. `where` is the place of a request in what the client sent, for messages.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum
from typing import Any, TypeAlias

from keygraph.dynamo.items import Item
from keygraph.dynamo.store import Cost
from keygraph.dynamo.value import value
from keygraph.errors import InputPath
from keygraph.model.record_keys import Texts
from keygraph.model.records import RecordType


@value(frozen=True, slots=True)
class Create:
    """A new record. Refused where there is one of the same key."""

    record: RecordType
    values: Mapping[str, Any]
    where: InputPath = ()


@value(frozen=True, slots=True)
class Put:
    """A record, in the place of one of the same key."""

    record: RecordType
    values: Mapping[str, Any]
    where: InputPath = ()


@dataclass(frozen=True, slots=True)
class Change:
    """Some fields of a record that is there. None in `values` removes the field."""

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


@dataclass(frozen=True, slots=True)
class Upsert:
    """A record that is created, or changed where it is there. Values that are not given stay as they are."""

    record: RecordType
    values: Mapping[str, Any]
    where: InputPath = ()


class OnEdges(Enum):
    """What happens to the edges of a node that is deleted."""

    REFUSE = "refuse"
    """The mutation fails with `CONFLICT` while an edge, a record or another node names the node."""
    DETACH = "detach"
    """Edges and records that name the node are deleted with it. Where their end is optional it is removed instead, also
    of other nodes; another node that cannot do without it makes the mutation fail with `CONFLICT`."""


@dataclass(frozen=True, slots=True)
class Delete:
    """The end of a record that is there. Of a node, `on_edges` says what becomes of what names it."""

    record: RecordType
    identity: Texts
    version: int | None = None
    where: InputPath = ()
    on_edges: OnEdges = OnEdges.REFUSE


@dataclass(frozen=True, slots=True)
class Move:
    """Other values for fields of a record's key: a new item in the place of the old one. A node that is named stays."""

    record: RecordType
    identity: Texts
    values: Mapping[str, Any]
    version: int | None = None
    where: InputPath = ()
    to: InputPath = ()
    """The place of the values in what the client sent."""


WriteRequest: TypeAlias = Create | Put | Change | Upsert | Delete | Move


@value(frozen=True, slots=True)
class Done:
    """What became of a request."""

    record: RecordType
    identity: Texts
    item: Item | None
    """The item as it is stored now. None where the record was deleted, and where it has to be read."""
    detached: int = 0
    """How many records no longer name the node that was deleted: most of them were deleted too."""


@dataclass(frozen=True, slots=True)
class WriteAnswer:
    """What became of the requests of one transaction, in their order."""

    done: tuple[Done, ...]
    cost: Cost
