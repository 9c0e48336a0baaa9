"""The kinds of fields of a derived schema: the part of the graph that answers each.

A kind is a value on the schema's field. The plan is made of kinds alone, so no other code depends on a field's name or
its type.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import dataclass_transform

from keygraph.declare.declaration import WriteName
from keygraph.lists.aggregating import AggregateField
from keygraph.model.fields import Field
from keygraph.model.paths import AccessPath
from keygraph.model.records import End, Method, RecordType
from keygraph.resolve.walks import NodeWalk


@dataclass_transform(frozen_default=True)
class FieldKind:
    """Says what answers a field. Its subclasses are frozen dataclasses."""

    def __init_subclass__(cls, *, eq: bool = True) -> None:
        dataclass(frozen=True, eq=eq)(cls)


class GlobalId(FieldKind):
    """The global id of a node."""


class Stored(FieldKind):
    """A field of a record type."""

    field: Field


class NodeAt(FieldKind):
    """The node at an end of a record type."""

    end: End


class NodesAt(NodeAt):
    """The nodes that a list or set of a record type names."""


class Called(FieldKind):
    """The result of a method of the model: a value, or a node."""

    method: Method
    parameters: Mapping[str, str] = field(compare=False)
    """The method's parameters by the names of the arguments."""


class ListOf(FieldKind):
    """A connection, or the first neighbor on a path that leads to at most one; at the root, one without an owner."""

    path: AccessPath


class WalkOf(FieldKind):
    """A connection of the nodes that a walk finds."""

    walk: NodeWalk


class WalkedNode(FieldKind):
    """The node of an edge of a walk's connection."""


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


class Aggregate(FieldKind, eq=False):
    """The aggregate over all items of a list, or over all nodes that a walk finds."""

    record: RecordType
    fields: Mapping[str, AggregateField]
    """The fields that can be aggregated, by the names of the arguments' values."""
    budget: int | None = None
    """The most items that may be read, if that is less than the server allows."""


class AggregateValue(FieldKind):
    """One value of an aggregate: count, sum, avg, min, max, groupBy, and a group's key."""

    function: str


class WalkedCount(TotalCount):
    """The number of nodes that a walk finds."""

    budget: int | None
    """The most items that it may read, if that is less than the server allows."""
    is_kept: bool
    """Whether its node keeps what it finds."""


class Cursor(FieldKind):
    """The position of an edge in its list."""


class FarNode(FieldKind):
    """The node of an edge of this path: at the far end, or the item itself."""

    path: AccessPath


class Attribute(FieldKind):
    """An attribute of a Python object: of a nested dataclass, of a page's info."""

    name: str


class NodeByKey(FieldKind):
    """A node by its key fields, at the root."""

    record: RecordType


class NodeById(FieldKind):
    """A node by its global id, at the root."""


class NodesByIds(FieldKind):
    """Nodes by their global ids, at the root."""


class Entities(NodesByIds):
    """Nodes by their representations in a supergraph, at the root."""


class OwnNode(FieldKind):
    """A node, or a list of nodes, returned by a field that a user added to the root."""

    records: tuple[RecordType, ...]
    """The types that it can have."""
    is_list: bool


class PathsBetween(FieldKind):
    """The shortest path from one node to another, or several of them, at the root."""

    is_list: bool


class PathNodes(FieldKind):
    """The nodes on a path."""


class PathEdges(FieldKind):
    """The edges of a path."""


class PathEdgeNode(FieldKind):
    """The node that an edge of a path leads to."""


class ChangesOf(FieldKind):
    """The changes of a type's records, at the root of subscriptions."""

    record: RecordType


class ChangedRecord(FieldKind):
    """The record before or after a change."""

    record: RecordType
    is_old: bool


# --- Mutations ------------------------------------------------------------------------------------------


class Writes(FieldKind):
    """A mutation of the graph's own: one write of one record type."""

    action: WriteName
    record: RecordType


class WritesEach(FieldKind):
    """A mutation that makes the same write for several records of one type."""

    action: WriteName
    record: RecordType


class WritesActions(FieldKind):
    """The mutation that makes any of the other writes in one transaction."""


CREATED = "is_new"
"""The attribute of a payload that says whether there was no record before."""
MUTATIONS = (Writes, WritesEach, WritesActions)


class ResultList(FieldKind):
    """The results of several writes, in the payload of their mutation."""


class WrittenRecord(FieldKind):
    """The record that a mutation wrote, in its payload."""

    record: RecordType


# --- Inputs ---------------------------------------------------------------------------------------------


class ComparedField(FieldKind):
    """A field of a filter."""

    record: RecordType
    names: tuple[str, ...]
    """The fields and ends that are stored in the compared attribute."""


class WrittenField(FieldKind):
    """A field of a mutation's input that is not a part of the key; with the name None, the input of a new record."""

    record: RecordType
    action: WriteName
    name: str | None
    is_read: bool = False
    """Whether only those may write it so who may read it."""
