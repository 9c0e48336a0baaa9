"""The kinds of fields of a derived schema: which part of the graph answers each.

A kind is a value on the schema's field. The plan is made of kinds alone, so nothing else has to know how a field is
called or where it stands.
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
    """What answers a field."""

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
    """What a method of the model gives: a value, or a node."""

    method: Method
    parameters: Mapping[str, str] = field(compare=False)
    """The method's parameters by the names of the arguments."""


@dataclass(frozen=True, slots=True)
class ListOf(FieldKind):
    """A connection, or the first neighbour on a path that leads to one; at the root one without an owner."""

    path: AccessPath


@dataclass(frozen=True, slots=True)
class WalkOf(FieldKind):
    """A connection with what a walk finds."""

    walk: NodeWalk


class WalkedNode(FieldKind):
    """The node of an edge of what a walk finds."""


@dataclass(frozen=True, slots=True)
class Via(FieldKind):
    """The edge of a list that a walk has come over."""

    paths: tuple[AccessPath, ...]
    """The lists, of which each has a type of edges of its own."""


class Edges(FieldKind):
    """The edges of a connection's page."""


class Nodes(FieldKind):
    """The nodes of a connection's page."""


class PageInfo(FieldKind):
    """Where a connection's page stands."""


class TotalCount(FieldKind):
    """How many edges a connection has."""


@dataclass(frozen=True, slots=True, eq=False)
class Aggregate(FieldKind):
    """What is aggregated of all items of a list, or of all nodes that a walk finds."""

    record: RecordType
    fields: Mapping[str, AggregateField]
    """What can be aggregated, by the names of the arguments' values."""
    budget: int | None = None
    """How many items may be looked at, if it is less than the server allows."""


@dataclass(frozen=True, slots=True)
class AggregateValue(FieldKind):
    """One value of an aggregate: count, sum, avg, min, max, groupBy, and a group's key."""

    function: str


@dataclass(frozen=True, slots=True)
class WalkedCount(TotalCount):
    """How many nodes a walk finds."""

    budget: int | None
    """How many items it may look at, if it is less than the server allows."""


class Cursor(FieldKind):
    """Where an edge stands in its list."""


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
    """A node, or a list of nodes, that a field gives which somebody added to the root."""

    records: tuple[RecordType, ...]
    """The types that it can be of."""
    is_list: bool


@dataclass(frozen=True, slots=True)
class WaysBetween(FieldKind):
    """The shortest way from one node to another, or several of them, at the root."""

    is_list: bool


class WayNodes(FieldKind):
    """The nodes on a way."""


class WayEdges(FieldKind):
    """The edges of a way."""


class WayNode(FieldKind):
    """The node to which an edge of a way leads."""


# --- Mutations ------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Writes(FieldKind):
    """A mutation of the graph's own: one write of one record type."""

    action: WriteName
    record: RecordType


@dataclass(frozen=True, slots=True)
class WritesEach(FieldKind):
    """A mutation that does the same to several records of one type."""

    action: WriteName
    record: RecordType


class WritesTogether(FieldKind):
    """The mutation that does any of the others in one transaction."""


MUTATIONS = (Writes, WritesEach, WritesTogether)


class ResultList(FieldKind):
    """What each of several writes answers, in the payload of the mutation that did them."""


@dataclass(frozen=True, slots=True)
class WrittenRecord(FieldKind):
    """The record that a mutation has written, in its payload."""

    record: RecordType
