"""The selections of an operation: what its document selects of each type of object.

Fields that the specification merges are one field; a selection that several places share, through fragments, is one
object. The number of fields with all fragments spread was limited before (`keygraph_resolvers.plan.document_limits`); a
field of an interface is one for each type, so the selections have a limit too.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, cast

from graphql import (
    FieldNode,
    FragmentDefinitionNode,
    FragmentSpreadNode,
    GraphQLObjectType,
    GraphQLSchema,
    InlineFragmentNode,
    SelectionNode,
    VariableNode,
    get_named_type,
    is_abstract_type,
    is_composite_type,
    is_object_type,
)

from keygraph.graph import Graph
from keygraph.model.records import RecordType
from keygraph_resolvers.plan.document_limits import DocumentLimit
from keygraph_resolvers.schema import field_kinds as kinds
from keygraph_resolvers.schema.definitions import kind_of
from keygraph_resolvers.steps.questions.numbers import numbers_of
from keygraph_resolvers.steps.selection import SelectedField, Selection

MOST_FIELDS = 3_000
"""The most fields of an operation, each counted in every selection that contains it."""


@dataclass(eq=False)
class Selections:
    """Makes the selections of one plan, each once."""

    _schema: GraphQLSchema
    _graph: Graph
    _fragments: Mapping[str, FragmentDefinitionNode]
    _booleans: Mapping[str, bool]
    made: list[Selection] = field(default_factory=list)
    """The selections made so far, inner ones first."""
    _by_nodes: dict[tuple[Any, ...], Selection] = field(default_factory=dict)
    _fields: int = 0

    def of(self, type_name: str, selection_sets: Sequence[Any]) -> Selection:
        """Returns the selection of these sets on an object type. Raises DocumentLimit if there are too many fields."""
        type_ = cast(GraphQLObjectType, self._schema.get_type(type_name))
        grouped, entered = dict[str, list[FieldNode]](), set[str]()
        for selection_set in selection_sets:
            for node in self._included_fields(type_, selection_set.selections, entered):
                grouped.setdefault((node.alias or node.name).value, []).append(node)
        # The collected fields decide the selection, whichever fragments contain them.
        key = (type_name, *(tuple(map(_place_in_text, nodes)) for nodes in grouped.values()))
        found = self._by_nodes.get(key)
        if found is None:
            self._fields += len(grouped)
            if self._fields > MOST_FIELDS:
                problem = (
                    f"This operation selects more than {MOST_FIELDS:,} fields of the types that it may find"
                )
                raise DocumentLimit(f"{problem}: ask for it in several operations.")
            fields = tuple(self._field(type_, name, tuple(nodes)) for name, nodes in grouped.items())
            found = self._by_nodes[key] = Selection(type_, self._record_of(type_), fields)
            self.made.append(found)
        return found

    def _included_fields(
        self, type_: GraphQLObjectType, selections: Sequence[SelectionNode], entered: set[str]
    ) -> Iterator[FieldNode]:
        """Yields the fields of an object of that type, as the specification collects them (6.3.2); `entered` are the
        fragments whose fields it has."""
        for selection in filter(self._is_included, selections):
            match selection:
                case FieldNode():
                    yield selection
                case InlineFragmentNode():
                    condition = selection.type_condition
                    if condition is None or self._applies(condition.name.value, type_):
                        yield from self._included_fields(type_, selection.selection_set.selections, entered)
                case FragmentSpreadNode():
                    name = selection.name.value
                    fragment = self._fragments.get(name)
                    if fragment is None or name in entered:
                        continue
                    entered.add(name)
                    if self._applies(fragment.type_condition.name.value, type_):
                        yield from self._included_fields(type_, fragment.selection_set.selections, entered)

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
            is_true = self._booleans[value.name.value] if isinstance(value, VariableNode) else value.value
            if bool(is_true) == (directive.name.value == "skip"):
                return False
        return True

    def _field(self, owner: GraphQLObjectType, key: str, nodes: tuple[FieldNode, ...]) -> SelectedField:
        name = nodes[0].name.value
        definition = None if name == "__typename" else self._schema.get_field(owner, name)
        if definition is None:
            return SelectedField(key, nodes, owner, None, None, {})
        kind = kind_of(definition)
        named = get_named_type(definition.type)
        below: dict[str, Selection] = {}
        if kind is not None and is_composite_type(named):
            types = [named] if is_object_type(named) else self._schema.get_possible_types(cast(Any, named))
            sets = [node.selection_set for node in nodes if node.selection_set]
            below = {type_.name: self.of(type_.name, sets) for type_ in types}
        made = SelectedField(key, nodes, owner, definition, kind, below)
        if isinstance(kind, kinds.ListOf) and len(below) == 1 and not kind.path.is_one:
            made.numbers = numbers_of(kind.path, nodes, made.only)
        return made

    def _record_of(self, type_: GraphQLObjectType) -> RecordType | None:
        """The record type of an object, or of the item behind an edge."""
        record = self._graph.types.get(type_.name)
        if record is not None:
            return record
        for definition in type_.fields.values():
            kind = kind_of(definition)
            if isinstance(kind, kinds.FarNode) and not kind.path.members:
                return kind.path.record
        return None


def _place_in_text(node: FieldNode) -> int:
    """The position of a field in the document, which identifies it."""
    if node.loc is None:
        raise LookupError("the document was parsed without locations")
    return node.loc.start
