"""The kinds of fields of a derived schema: which part of the graph answers each.

A kind is a value on the schema's field. The plan is made of kinds alone, so nothing else has to know how a field is
called or where it stands.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TypeAlias

from keygraph.model.fields import Field
from keygraph.model.paths import AccessPath
from keygraph.model.records import End, Method, RecordType


@dataclass(frozen=True, slots=True)
class GlobalId:
    """The global id of a node."""


@dataclass(frozen=True, slots=True)
class Stored:
    """A field of a record type."""

    field: Field


@dataclass(frozen=True, slots=True)
class NodeAt:
    """The node at an end of a record type."""

    end: End


@dataclass(frozen=True, slots=True)
class Called:
    """What a method of the model gives: a value, or a node."""

    method: Method
    parameters: Mapping[str, str] = field(compare=False)
    """The method's parameters by the names of the arguments."""


@dataclass(frozen=True, slots=True)
class ListOf:
    """A connection; on a node its own, at the root one without an owner."""

    path: AccessPath


@dataclass(frozen=True, slots=True)
class OnlyOf:
    """The first neighbour on a path."""

    path: AccessPath


@dataclass(frozen=True, slots=True)
class Edges:
    """The edges of a connection's page."""


@dataclass(frozen=True, slots=True)
class Nodes:
    """The nodes of a connection's page."""


@dataclass(frozen=True, slots=True)
class PageInfo:
    """Where a connection's page stands."""


@dataclass(frozen=True, slots=True)
class TotalCount:
    """How many edges a connection has."""


@dataclass(frozen=True, slots=True)
class Cursor:
    """Where an edge stands in its list."""


@dataclass(frozen=True, slots=True)
class FarNode:
    """The node of an edge of this path: at the far end, or the item itself."""

    path: AccessPath


@dataclass(frozen=True, slots=True)
class Attribute:
    """An attribute of a Python object: of a nested dataclass, of a page's info."""

    name: str


@dataclass(frozen=True, slots=True)
class NodeByKey:
    """A node by its key fields, at the root."""

    record: RecordType


@dataclass(frozen=True, slots=True)
class NodeById:
    """A node by its global id, at the root."""


@dataclass(frozen=True, slots=True)
class NodesByIds:
    """Nodes by their global ids, at the root."""


FieldKind: TypeAlias = (
    GlobalId
    | Stored
    | NodeAt
    | Called
    | ListOf
    | OnlyOf
    | Edges
    | Nodes
    | PageInfo
    | TotalCount
    | Cursor
    | FarNode
    | Attribute
    | NodeByKey
    | NodeById
    | NodesByIds
)
