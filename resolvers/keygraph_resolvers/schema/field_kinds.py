"""The kinds of fields of a derived schema: the part of the graph that answers each.

A kind is a value on the schema's field. The plan is made of kinds alone, so no other code depends on a field's name or
its type.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from keygraph.declare.declaration import WriteName
from keygraph.lists.aggregating import AggregateField
from keygraph.model.fields import Field
from keygraph.model.paths import AccessPath
from keygraph.model.records import End, Method, RecordType
from keygraph.resolve.walks import NodeWalk


class FieldKind:
    """Says what answers a field."""

    __slots__ = ()


class GlobalId(FieldKind):
    """The global id of a node."""


@dataclass(frozen=True, slots=True)
class Stored(FieldKind):
    """A field of a record type."""

    field: Field


@dataclass(frozen=True, slots=True)
class NodeAt(FieldKind):
    """The node at an end of a record type."""

    end: End


@dataclass(frozen=True, slots=True)
class Called(FieldKind):
    """The result of a method of the model: a value, or a node."""

    method: Method
    parameters: Mapping[str, str] = field(compare=False)
    """The method's parameters by the names of the arguments."""


@dataclass(frozen=True, slots=True)
class ListOf(FieldKind):
    """A connection, or the first neighbor on a path that leads to at most one; at the root, one without an owner."""

    path: AccessPath


@dataclass(frozen=True, slots=True)
class WalkOf(FieldKind):
    """A connection of the nodes that a walk finds."""

    walk: NodeWalk


class WalkedNode(FieldKind):
    """The node of an edge of a walk's connection."""


@dataclass(frozen=True, slots=True)
class Via(FieldKind):
    """The list edge that a walk followed."""

    paths: tuple[AccessPath, ...]
    """The lists, each of which has its own edge type."""


class Edges(FieldKind):
    """The edges of a connection's page."""


class Nodes(FieldKind):
    """The nodes of a connection's page."""


class PageInfo(FieldKind):
    """The position of a connection's page."""


class TotalCount(FieldKind):
    """The number of edges of a connection."""


@dataclass(frozen=True, slots=True, eq=False)
class Aggregate(FieldKind):
    """The aggregate over all items of a list, or over all nodes that a walk finds."""

    record: RecordType
    fields: Mapping[str, AggregateField]
    """The fields that can be aggregated, by the names of the arguments' values."""
    budget: int | None = None
    """The most items that may be read, if that is less than the server allows."""


@dataclass(frozen=True, slots=True)
class AggregateValue(FieldKind):
    """One value of an aggregate: count, sum, avg, min, max, groupBy, and a group's key."""

    function: str


@dataclass(frozen=True, slots=True)
class WalkedCount(TotalCount):
    """The number of nodes that a walk finds."""

    budget: int | None
    """The most items that it may read, if that is less than the server allows."""


class Cursor(FieldKind):
    """The position of an edge in its list."""


@dataclass(frozen=True, slots=True)
class FarNode(FieldKind):
    """The node of an edge of this path: at the far end, or the item itself."""

    path: AccessPath


@dataclass(frozen=True, slots=True)
class Attribute(FieldKind):
    """An attribute of a Python object: of a nested dataclass, of a page's info."""

    name: str


@dataclass(frozen=True, slots=True)
class NodeByKey(FieldKind):
    """A node by its key fields, at the root."""

    record: RecordType


class NodeById(FieldKind):
    """A node by its global id, at the root."""


class NodesByIds(FieldKind):
    """Nodes by their global ids, at the root."""


class Entities(NodesByIds):
    """Nodes by their representations in a supergraph, at the root."""


@dataclass(frozen=True, slots=True)
class OwnNode(FieldKind):
    """A node, or a list of nodes, returned by a field that a user added to the root."""

    records: tuple[RecordType, ...]
    """The types that it can have."""
    is_list: bool


@dataclass(frozen=True, slots=True)
class WaysBetween(FieldKind):
    """The shortest path from one node to another, or several of them, at the root."""

    is_list: bool


class WayNodes(FieldKind):
    """The nodes on a path."""


class WayEdges(FieldKind):
    """The edges of a path."""


class WayNode(FieldKind):
    """The node that an edge of a path leads to."""


# --- Mutations ------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Writes(FieldKind):
    """A mutation of the graph's own: one write of one record type."""

    action: WriteName
    record: RecordType


@dataclass(frozen=True, slots=True)
class WritesEach(FieldKind):
    """A mutation that makes the same write for several records of one type."""

    action: WriteName
    record: RecordType


class WritesTogether(FieldKind):
    """The mutation that makes any of the other writes in one transaction."""


CREATED = "is_new"
"""The attribute of a payload that says whether there was no record before."""
MUTATIONS = (Writes, WritesEach, WritesTogether)


class ResultList(FieldKind):
    """The results of several writes, in the payload of their mutation."""


@dataclass(frozen=True, slots=True)
class WrittenRecord(FieldKind):
    """The record that a mutation wrote, in its payload."""

    record: RecordType
