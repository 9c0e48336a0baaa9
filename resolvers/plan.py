"""The plan of an operation: everything that it reads, known before the first request.

A plan is made of a validated document once for each combination of the variables that `@skip` and `@include` ask,
and never changes. Fields that the specification merges are one field here; a selection that several places share,
through fragments, is one object of the plan, so that planning takes time in proportion to the document.

Arguments stay as they were written: a run binds variables to them (`resolvers.arguments`), reads
(`resolvers.execution`), and writes the answer out (`resolvers.completion`).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, TypeVar, cast

from graphql import (
    FieldNode,
    FragmentDefinitionNode,
    FragmentSpreadNode,
    GraphQLField,
    GraphQLObjectType,
    GraphQLOutputType,
    GraphQLSchema,
    InlineFragmentNode,
    OperationDefinitionNode,
    SelectionNode,
    VariableNode,
    get_named_type,
    is_abstract_type,
    is_composite_type,
    is_non_null_type,
    is_object_type,
)
from strawberry.schema.schema_converter import GraphQLCoreConverter

from keygraph.graph import Graph
from keygraph.paths import AccessPath
from keygraph.records import RecordType
from resolvers.definitions import ServedField
from resolvers.meanings import (
    Called,
    Edges,
    FarNode,
    ListOf,
    Meaning,
    NodeAt,
    Nodes,
    OnlyOf,
    PageInfo,
    Stored,
    TotalCount,
)

_MeaningT = TypeVar("_MeaningT")


@dataclass(eq=False, slots=True)
class FieldPlan:
    """One field of the answer."""

    key: str
    """Its name in the answer."""
    nodes: tuple[FieldNode, ...]
    """Where it is asked for; several are merged."""
    owner: GraphQLObjectType
    definition: GraphQLField | None
    """None for `__typename`."""
    meaning: Meaning | None
    """None for what the graph does not answer: `__typename`, and fields that somebody added to the root."""
    below: Below | None
    """What is selected of the objects that it gives."""

    @property
    def name(self) -> str:
        return self.nodes[0].name.value

    @property
    def type(self) -> GraphQLOutputType:
        if self.definition is None:
            raise LookupError("__typename has no definition")
        return self.definition.type

    @property
    def is_nullable(self) -> bool:
        return self.definition is not None and not is_non_null_type(self.definition.type)


@dataclass(eq=False)
class Below:
    """What is selected of the objects of a field, by their types."""

    planner: _Planner
    nodes: tuple[FieldNode, ...]
    types: tuple[GraphQLObjectType, ...]
    """What the objects can be."""
    made: dict[str, ObjectPlan] = field(default_factory=dict)

    def of(self, type_name: str) -> ObjectPlan:
        """What is selected of an object of that type."""
        found = self.made.get(type_name)
        if found is None:
            found = self.made[type_name] = self.planner.object(type_name, self.nodes)
        return found

    @property
    def only(self) -> ObjectPlan:
        """What is selected, where the objects are of one type."""
        [type_] = self.types
        return self.of(type_.name)

    @property
    def any(self) -> ObjectPlan:
        """What is selected of the first of the types."""
        return self.of(self.types[0].name)

    @property
    def plans(self) -> Iterator[ObjectPlan]:
        """What is selected of each of the types."""
        return (self.of(type_.name) for type_ in self.types)


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
    """What an operation reads and answers."""

    operation: OperationDefinitionNode
    root: ObjectPlan
    fragments: Mapping[str, FragmentDefinitionNode]

    @cached_property
    def foreign(self) -> tuple[FieldPlan, ...]:
        """The root's fields that are not the graph's: introspection, and what somebody added."""
        return tuple(
            each for each in self.root.fields if each.meaning is None and each.definition is not None
        )

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
            if plan.record is None:
                continue
            names: frozenset[str] | None = plan.named
            for method in (plan.record.methods[name] for name in plan.named & plan.record.methods.keys()):
                names = None if names is None or method.needs is None else names | set(method.needs)
            before = found.get(plan.record, frozenset())
            found[plan.record] = None if names is None or before is None else before | names
        return found


class _Planner:
    """Makes the objects of one plan, each once."""

    def __init__(
        self,
        schema: GraphQLSchema,
        graph: Graph,
        fragments: Mapping[str, FragmentDefinitionNode],
        booleans: Mapping[str, bool],
    ) -> None:
        self._schema = schema
        self._graph = graph
        self._fragments = fragments
        self._booleans = booleans
        self._objects: dict[tuple[Any, ...], ObjectPlan] = {}
        self.needs: dict[ObjectPlan, NeighbourNeeds] = {}

    def object(self, type_name: str, nodes: Sequence[FieldNode]) -> ObjectPlan:
        """What the selection sets of these fields select of an object of the type."""
        return self.selected(type_name, [node.selection_set for node in nodes if node.selection_set])

    def selected(self, type_name: str, selection_sets: Sequence[Any]) -> ObjectPlan:
        """What the selection sets select of an object of the type."""
        type_ = cast(GraphQLObjectType, self._schema.get_type(type_name))
        grouped = self._collected(type_, selection_sets)
        # What is collected decides the object, whatever fragments it came through.
        key = (type_name, *(tuple(map(id, nodes)) for nodes in grouped.values()))
        if key not in self._objects:
            fields = tuple(self._field(type_, key, tuple(nodes)) for key, nodes in grouped.items())
            self._objects[key] = ObjectPlan(type_, self._record_of(type_, fields), fields)
        return self._objects[key]

    def _collected(
        self, type_: GraphQLObjectType, selection_sets: Sequence[Any]
    ) -> dict[str, list[FieldNode]]:
        """The fields by their keys in the answer, as the specification collects them (6.3.2)."""
        grouped: dict[str, list[FieldNode]] = {}
        seen: set[str] = set()

        def collect(selections: Sequence[SelectionNode]) -> None:
            for selection in selections:
                if not self._is_included(selection):
                    continue
                match selection:
                    case FieldNode():
                        name = selection.alias.value if selection.alias else selection.name.value
                        grouped.setdefault(name, []).append(selection)
                    case InlineFragmentNode():
                        condition = selection.type_condition
                        if condition is None or self._applies(condition.name.value, type_):
                            collect(selection.selection_set.selections)
                    case FragmentSpreadNode():
                        name = selection.name.value
                        fragment = self._fragments.get(name)
                        if fragment is None or name in seen:
                            continue
                        seen.add(name)
                        if self._applies(fragment.type_condition.name.value, type_):
                            collect(fragment.selection_set.selections)

        for selection_set in selection_sets:
            collect(selection_set.selections)
        return grouped

    def _applies(self, condition: str, type_: GraphQLObjectType) -> bool:
        if condition == type_.name:
            return True
        wanted = self._schema.get_type(condition)
        return is_abstract_type(wanted) and self._schema.is_sub_type(cast(Any, wanted), type_)

    def _is_included(self, selection: SelectionNode) -> bool:
        for directive in selection.directives or ():
            if directive.name.value not in ("skip", "include"):
                continue
            [condition] = directive.arguments or ()
            value: Any = condition.value
            says = self._booleans[value.name.value] if isinstance(value, VariableNode) else value.value
            if bool(says) == (directive.name.value == "skip"):
                return False
        return True

    def _field(self, owner: GraphQLObjectType, key: str, nodes: tuple[FieldNode, ...]) -> FieldPlan:
        name = nodes[0].name.value
        definition = None if name == "__typename" else self._schema.get_field(owner, name)
        if definition is None:
            return FieldPlan(key, nodes, owner, None, None, None)
        served = definition.extensions.get(GraphQLCoreConverter.DEFINITION_BACKREF)
        meaning = served.meaning if isinstance(served, ServedField) else None
        named = get_named_type(definition.type)
        below = None
        if meaning is not None and is_composite_type(named):
            types = (named,) if is_object_type(named) else self._schema.get_possible_types(cast(Any, named))
            below = Below(self, nodes, tuple(cast("Sequence[GraphQLObjectType]", types)))
        return FieldPlan(key, nodes, owner, definition, meaning, below)

    def _record_of(self, type_: GraphQLObjectType, fields: Sequence[FieldPlan]) -> RecordType | None:
        """The record type of an object, or of the item behind an edge."""
        record = self._graph.types.get(type_.name)
        if record is not None:
            return record
        return served_record(type_)


def served_record(type_: GraphQLObjectType) -> RecordType | None:
    """The record type whose items stand behind the edges of a connection."""
    for definition in type_.fields.values():
        served = definition.extensions.get(GraphQLCoreConverter.DEFINITION_BACKREF)
        if isinstance(served, ServedField) and isinstance(served.meaning, FarNode):
            return served.meaning.path.record
    return None


def make_plan(
    schema: GraphQLSchema,
    graph: Graph,
    operation: OperationDefinitionNode,
    fragments: Mapping[str, FragmentDefinitionNode],
    booleans: Mapping[str, bool],
) -> Plan:
    """The plan of a query of a validated document, where the variables of its directives have these values."""
    planner = _Planner(schema, graph, fragments, booleans)
    root = planner.selected(cast(Any, schema.query_type).name, [operation.selection_set])
    return Plan(operation, root, fragments)
