"""The document of an operation as the bound walks it: the selected fields with their arguments and kinds."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, cast

from graphql import (
    FieldNode,
    FragmentDefinitionNode,
    FragmentSpreadNode,
    GraphQLField,
    GraphQLIncludeDirective,
    GraphQLObjectType,
    GraphQLSchema,
    GraphQLSkipDirective,
    InlineFragmentNode,
    OperationDefinitionNode,
    SelectionSetNode,
    is_abstract_type,
    parse,
)
from graphql.execution.values import (
    VariableValues,
    get_argument_values,
    get_directive_values,
    get_variable_values,
)

from keygraph_resolvers.schema.definitions import ServedField
from keygraph_resolvers.schema.field_kinds import (
    FieldKind,
)
from keygraph_resolvers.schema.strawberry_internals import (
    core_schema,
    strawberry_field,
)
from keygraph_resolvers.schema.types import GraphSchema


class WalkedDocument:
    """The only operation of a document, with its variables. Raises ValueError if they do not fit."""

    def __init__(self, schema: GraphSchema, document: str, variables: Mapping[str, Any]) -> None:
        self._schema: GraphQLSchema = core_schema(schema)
        definitions = parse(document).definitions
        [self._operation] = (each for each in definitions if isinstance(each, OperationDefinitionNode))
        self._fragments = {
            each.name.value: each for each in definitions if isinstance(each, FragmentDefinitionNode)
        }
        values = get_variable_values(
            self._schema, self._operation.variable_definitions or (), dict(variables)
        )
        if not isinstance(values, VariableValues):
            raise ValueError(f"the variables do not fit: {values}")
        self._variables = values

    def root_fields(self) -> Iterator[tuple[FieldNode, GraphQLField, FieldKind]]:
        """The fields of the root."""
        root = cast(GraphQLObjectType, self._schema.query_type)
        yield from self.fields(root, self._operation.selection_set)

    def fields(
        self, type_: GraphQLObjectType, selected: SelectionSetNode | None
    ) -> Iterator[tuple[FieldNode, GraphQLField, FieldKind]]:
        """The selected fields of an object; equal ones appear several times, which costs nothing here."""
        for each in selected.selections if selected else ():
            skip = get_directive_values(GraphQLSkipDirective, each, self._variables)
            include = get_directive_values(GraphQLIncludeDirective, each, self._variables)
            if (skip and skip["if"]) or (include and not include["if"]):
                continue
            match each:
                case FieldNode():
                    definition = self._schema.get_field(type_, each.name.value)
                    kind = _field_kind(definition)
                    if definition is not None and kind is not None:
                        yield each, definition, kind
                case InlineFragmentNode():
                    condition = each.type_condition
                    if condition is None or self._applies(condition.name.value, type_):
                        yield from self.fields(type_, each.selection_set)
                case FragmentSpreadNode():
                    fragment = self._fragments[each.name.value]
                    if self._applies(fragment.type_condition.name.value, type_):
                        yield from self.fields(type_, fragment.selection_set)

    def _applies(self, name: str, type_: GraphQLObjectType) -> bool:
        wanted = self._schema.get_type(name)
        if is_abstract_type(wanted):
            return self._schema.is_sub_type(cast(Any, wanted), type_)
        return wanted is type_

    def given(self, node: FieldNode, definition: GraphQLField) -> Mapping[str, Any]:
        return get_argument_values(definition, node, self._variables)

    def type(self, name: str) -> GraphQLObjectType:
        return cast(GraphQLObjectType, self._schema.get_type(name))


def _field_kind(definition: GraphQLField | None) -> FieldKind | None:
    served = strawberry_field(definition) if definition else None
    return served.kind if isinstance(served, ServedField) else None
