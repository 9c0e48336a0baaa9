"""Planning: the plan of an operation from its document.

A plan is made of a validated document once for each combination of the variables that `@skip` and `@include` ask.
Fields that the specification merges are one field of it; a selection that several places share, through fragments, is
one object, so that planning takes time in proportion to the document.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, cast

from graphql import (
    FieldNode,
    FragmentDefinitionNode,
    FragmentSpreadNode,
    GraphQLObjectType,
    GraphQLSchema,
    InlineFragmentNode,
    OperationDefinitionNode,
    SelectionNode,
    VariableNode,
    get_named_type,
    is_abstract_type,
    is_composite_type,
    is_object_type,
)
from strawberry.schema.schema_converter import GraphQLCoreConverter

from keygraph.graph import Graph
from keygraph.model.records import RecordType
from keygraph_resolvers.plan.field_plans import Below, FieldPlan
from keygraph_resolvers.plan.plan import NeighbourNeeds, ObjectPlan, Plan
from keygraph_resolvers.schema.definitions import ServedField
from keygraph_resolvers.schema.meanings import FarNode


class Planner:
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
    planner = Planner(schema, graph, fragments, booleans)
    root = planner.selected(cast(Any, schema.query_type).name, [operation.selection_set])
    return Plan(operation, root, fragments, graph)
