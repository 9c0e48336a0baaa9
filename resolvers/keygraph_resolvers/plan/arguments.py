"""The arguments of a plan's fields, with the variables of one run bound to them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, cast

from graphql import GraphQLError
from graphql.execution.values import VariableValues, get_argument_values
from strawberry.schema.schema_converter import GraphQLCoreConverter

from keygraph.errors import BadUserInput
from keygraph_resolvers.plan.selection import SelectedField
from keygraph_resolvers.schema.definitions import ServedField, given_arguments
from keygraph_resolvers.schema.strawberry_internals import converted_arguments, strawberry_field


class Arguments:
    """The arguments of one run, each field's converted once whatever the number of its parents."""

    def __init__(self, converter: GraphQLCoreConverter, variables: VariableValues) -> None:
        self._converter = converter
        self._variables = variables
        self._given: dict[SelectedField, Mapping[str, Any] | Exception] = {}

    def of(self, field: SelectedField) -> Mapping[str, Any]:
        """The arguments by their GraphQL names. Raises BadUserInput where a variable does not fit."""
        given = self._given.get(field)
        if given is None:
            try:
                given = self._converted(field)
            except GraphQLError as error:
                given = BadUserInput(error.message)
            except Exception as error:
                given = error
            self._given[field] = given
        if isinstance(given, Exception):
            raise given
        return given

    def _converted(self, field: SelectedField) -> Mapping[str, Any]:
        definition = cast(Any, field.definition)
        if not definition.args:
            return {}
        values = get_argument_values(definition, field.nodes[0], self._variables)
        served = cast(ServedField, strawberry_field(definition))
        return given_arguments(converted_arguments(self._converter, served.arguments, values))
