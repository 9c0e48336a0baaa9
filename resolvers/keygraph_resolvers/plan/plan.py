"""The plan of an operation: everything that it reads, known before the first request.

What it says never changes; runs leave what they have prepared on it for the next ones. A selection that several places share, through fragments, is one object of it: what is computed
of a plan is computed once for each object.

Plans are made by `keygraph_resolvers.plan.compile`. Arguments stay as they were written: a run binds variables to them (`keygraph_resolvers.plan.arguments`), reads
(`keygraph_resolvers.read.execution`), and writes the answer out (`keygraph_resolvers.answer.completion`).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, cast

from graphql import FragmentDefinitionNode, GraphQLObjectType, OperationDefinitionNode

from keygraph.graph import Graph
from keygraph.lists.projection import Attributes
from keygraph.model.paths import AccessPath
from keygraph.model.records import RecordType
from keygraph_resolvers.plan.field_plans import FieldPlan
from keygraph_resolvers.schema.meanings import (
    Called,
    Edges,
    FarNode,
    ListOf,
    NodeAt,
    NodeById,
    NodeByKey,
    Nodes,
    NodesByIds,
    OnlyOf,
    PageInfo,
    Stored,
    TotalCount,
)


@dataclass(eq=False)
class ObjectPlan:
    """What is selected of an object of one type."""

    of: GraphQLObjectType
    record: RecordType | None
    """The record type that the object is of, or whose edge it is."""
    fields: tuple[FieldPlan, ...]

    def having(self, *meanings: type[Any]) -> tuple[FieldPlan, ...]:
        """The fields that mean one of these."""
        return tuple(each for each in self.fields if isinstance(each.meaning, meanings))

    @cached_property
    def lists(self) -> tuple[FieldPlan, ...]:
        """What is read by the object's key."""
        return self.having(ListOf, OnlyOf)

    @cached_property
    def key_ends(self) -> tuple[FieldPlan, ...]:
        """The nodes whose keys the object's own key tells."""
        return tuple(
            each
            for each in self.having(NodeAt, FarNode)
            if isinstance(each.meaning, FarNode) or self._is_told(cast(NodeAt, each.meaning).end.name)
        )

    @cached_property
    def item_ends(self) -> tuple[FieldPlan, ...]:
        """The nodes whose keys stand in the item."""
        told = set(self.key_ends)
        return tuple(each for each in self.having(NodeAt, FarNode) if each not in told)

    @cached_property
    def methods(self) -> tuple[FieldPlan, ...]:
        return self.having(Called)

    @cached_property
    def gathers(self) -> bool:
        """Whether the object may be read together with its lists."""
        return self.record is not None and self.record.gathers and bool(self.lists)

    @cached_property
    def needs_item(self) -> bool:
        """Whether something is selected that the object's key does not tell."""
        if self.record is None or self.record.is_virtual:
            return False
        return any(not self._is_answered_by_key(each) for each in self.fields)

    def _is_answered_by_key(self, selected: FieldPlan) -> bool:
        match selected.meaning:
            case Stored(stored):
                return self._is_told(stored.name)
            case NodeAt(end):
                return self._is_told(end.name)
            case Called(method):
                return method.needs is not None and all(map(self._is_told, method.needs))
        return True

    def _is_told(self, name: str) -> bool:
        return self.record is not None and name in self.record.key_fields

    @cached_property
    def named(self) -> frozenset[str]:
        """The fields, ends and methods of the record type that are selected."""
        names = set()
        for each in self.fields:
            match each.meaning:
                case Stored(stored):
                    names.add(stored.name)
                case NodeAt(end):
                    names.add(end.name)
                case Called(method):
                    names.add(method.name)
        return frozenset(names)

    # --- When nodes are asked for ---------------------------------------------------------------------
    #
    # Sets of round trips as bits: bit 0 is the moment at which the object is known, bit 1 one round trip later.

    @cached_property
    def gets_unread(self) -> int:
        """When nodes are got by key for an object whose item was not read."""
        return self.gets_by_key | (1 | self.gets_by_item << 1 if self.needs_item else self.gets_by_item)

    @cached_property
    def gets_read(self) -> int:
        """When nodes are got by key for an object whose item is there."""
        return self.gets_by_key | self.gets_by_item

    @cached_property
    def gets_by_key(self) -> int:
        """When nodes are got for what the object's key tells: counted from when the key is known."""
        found = 0
        for each in self.lists:
            found |= neighbour_needs(each).gets << 1
        for each in self.key_ends:
            found |= _gets_of_nodes(each)
        return found

    @cached_property
    def gets_by_item(self) -> int:
        """When nodes are got for what the object's item tells: counted from when the item is there."""
        found = 0
        for each in (*self.item_ends, *self.methods):
            found |= _gets_of_nodes(each)
        return found


def _gets_of_nodes(selected: FieldPlan) -> int:
    found = 0
    for plan in selected.below.plans if selected.below else ():
        found |= plan.gets_unread
        if is_type_unknown(selected):
            found |= 1 | plan.gets_read << 1
    return found


def is_type_unknown(selected: FieldPlan) -> bool:
    """Whether the key of a node that the field gives may not tell its type."""
    match selected.meaning:
        case NodeAt(end):
            return end.is_ambiguous
        case FarNode(path) | ListOf(path) if path.far_end is not None:
            return path.record.ends[path.far_end].is_ambiguous
        case Called(method):
            return len(method.nodes) > 1
        case Nodes():
            return selected.below is not None and len(selected.below.types) > 1
    return False


@dataclass(eq=False)
class NeighbourNeeds:
    """What is selected of a list, or of the only neighbour on a path."""

    path: AccessPath
    edges: tuple[FieldPlan, ...]
    nodes: tuple[FieldPlan, ...]
    looks: frozenset[str]
    """What is selected of pageInfo."""
    has_page: bool
    has_total: bool
    items: tuple[ObjectPlan, ...]
    """What is selected of the items that are read: of edges, or of nodes that are the items."""

    @cached_property
    def wants_whole(self) -> bool:
        """Whether something is selected that the index which is read lacks."""
        return not self.path.tells_all and any(not plan.named <= self.path.told for plan in self.items)

    @cached_property
    def gets(self) -> int:
        """When nodes are got by key, as bits, counted from when the items are there."""
        found = 0
        for plan in self.items:
            found |= plan.gets_read
        if self.path.far_end is not None:
            for each in self.nodes:
                found |= _gets_of_nodes(each)
        return 1 | found << 1 if self.wants_whole else found


def neighbour_needs(selected: FieldPlan) -> NeighbourNeeds:
    """What is selected below a field that reads neighbours."""
    below = selected.below
    if below is None or not isinstance(selected.meaning, ListOf | OnlyOf):
        raise LookupError(f"{selected.name} reads no neighbours")
    plan = below.only
    if plan not in below.planner.needs:
        below.planner.needs[plan] = _needs(selected.meaning.path, plan)
    return below.planner.needs[plan]


def _needs(path: AccessPath, plan: ObjectPlan) -> NeighbourNeeds:
    if path.is_one:
        return NeighbourNeeds(path, (), (), frozenset(), True, False, (plan,))
    edges, nodes, infos = plan.having(Edges), plan.having(Nodes), plan.having(PageInfo)
    edge_plans = [each.below.only for each in edges if each.below]
    items = list(edge_plans)
    if path.far_end is None:
        node_fields = [each for edge_plan in edge_plans for each in edge_plan.having(FarNode)]
        items += [each.below.only for each in (*nodes, *node_fields) if each.below]
    looks = {
        look.name
        for info in infos
        if info.below
        for look in info.below.only.fields
        if look.meaning is not None
    }
    return NeighbourNeeds(
        path,
        edges,
        nodes,
        frozenset(looks),
        bool(edges or nodes or infos),
        bool(plan.having(TotalCount)),
        tuple(items),
    )


@dataclass(eq=False)
class Plan:
    """What an operation reads and answers, and what runs of it have prepared for the next ones."""

    operation: OperationDefinitionNode
    root: ObjectPlan
    fragments: Mapping[str, FragmentDefinitionNode]
    graph: Graph
    runs: int = 0
    """How often it has run."""
    writers: dict[ObjectPlan, Any] = field(default_factory=dict)
    """How the objects are written one by one, as `keygraph_resolvers.answer.writers` has prepared it so far."""
    lists: dict[FieldPlan, Any] = field(default_factory=dict)
    """Its lists in which no variable has a part, without their owners, as runs have asked for them so far."""
    columns: dict[ObjectPlan, Any] = field(default_factory=dict)
    """How they are written all at once, as `keygraph_resolvers.answer.columns` has."""

    @cached_property
    def foreign(self) -> tuple[FieldPlan, ...]:
        """The root's fields that are not the graph's: introspection, and what somebody added."""
        return tuple(
            each for each in self.root.fields if each.meaning is None and each.definition is not None
        )

    @property
    def elsewhere(self) -> tuple[str, ...]:
        """The keys of the root's fields that graphql-core's own execution answers."""
        return tuple(each.key for each in self.foreign)

    @cached_property
    def objects(self) -> tuple[ObjectPlan, ...]:
        """Every object of the plan once."""
        found: dict[ObjectPlan, None] = {}
        waiting = [self.root]
        while waiting:
            plan = waiting.pop()
            if plan in found:
                continue
            found[plan] = None
            waiting += [inner for each in plan.fields if each.below for inner in each.below.plans]
        return tuple(found)

    @cached_property
    def inner_first(self) -> tuple[ObjectPlan, ...]:
        """Every object of the plan once, each after those that are selected below it."""
        found: dict[ObjectPlan, None] = {}
        waiting = [(self.root, False)]
        while waiting:
            plan, is_done = waiting.pop()
            if is_done:
                found[plan] = None
            elif plan not in found:
                waiting.append((plan, True))
                waiting += [
                    (inner, False) for each in plan.fields if each.below for inner in each.below.plans
                ]
        return tuple(found)

    @cached_property
    def depth(self) -> int:
        """How many fields stand one inside the other; of the root's foreign fields only the first is counted."""
        depths: dict[ObjectPlan, int] = {}
        for plan in self.inner_first:
            inner = [depths[below] for each in plan.fields if each.below for below in each.below.plans]
            depths[plan] = 1 + max(inner, default=0)
        return depths[self.root]

    @cached_property
    def needed(self) -> Mapping[RecordType, frozenset[str] | None]:
        """The fields, ends and methods of each record type that the operation asks for anywhere; None for all.

        One answer for the whole operation, so that an item is read once for all the places that it stands in.
        """
        found: dict[RecordType, frozenset[str] | None] = {}
        for plan in self.objects:
            for each in plan.lists:
                # Of an item that only leads to a node, what it is and its keys.
                found.setdefault(neighbour_needs(each).path.record, frozenset())
            if plan.record is None:
                continue
            names: frozenset[str] | None = plan.named
            for method in (plan.record.methods[name] for name in plan.named & plan.record.methods.keys()):
                names = None if names is None or method.needs is None else names | set(method.needs)
            before = found.get(plan.record, frozenset())
            found[plan.record] = None if names is None or before is None else before | names
        return found

    @cached_property
    def attributes(self) -> Attributes:
        """The attributes of the items that it asks for."""
        named = (
            each.meaning.path
            for plan in self.objects
            for each in plan.having(ListOf)
            if isinstance(each.meaning, ListOf) and _says_to(each)
        )
        return Attributes.of(self.graph, self.needed, named)

    @cached_property
    def looked_for(self) -> frozenset[RecordType]:
        """The types of the nodes that are got by key anywhere."""
        fields = (
            each
            for plan in self.objects
            for each in plan.having(NodeAt, FarNode, Called, NodeByKey, NodeById, NodesByIds)
            if not isinstance(each.meaning, FarNode) or each.meaning.path.far_end is not None
        )
        return frozenset(
            below.record for each in fields if each.below for below in each.below.plans if below.record
        )


def _says_to(selected: FieldPlan) -> bool:
    """Whether the edges of a list to some nodes are asked for."""
    return any(argument.name.value == "to" for node in selected.nodes for argument in node.arguments or ())
