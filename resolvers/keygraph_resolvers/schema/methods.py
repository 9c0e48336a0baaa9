"""Fields that are methods of the model: their types from their annotations, their calls."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from strawberry.types.arguments import StrawberryArgument
from strawberry.types.field import StrawberryField

from keygraph.graph import Graph
from keygraph.keys.types import AttributeStyle, field_type, is_optional
from keygraph.model.records import Method, RecordType
from keygraph.names import camel
from keygraph_resolvers.schema.definitions import OutputType, ServedField, argument, nullable
from keygraph_resolvers.schema.field_kinds import Called


class MethodFields:
    """Makes fields of the methods of record types."""

    def __init__(
        self,
        graph: Graph,
        output: Callable[[Any], OutputType],
        node: Callable[[Sequence[RecordType]], OutputType],
    ) -> None:
        """`output` gives the GraphQL type of a field's type, `node` that of a node of one of some types."""
        self._graph = graph
        self._output = output
        self._node = node

    def field(self, method: Method) -> StrawberryField:
        """The field of a method."""
        parameters = {camel(name): name for name in method.parameters}
        return ServedField(
            camel(method.name),
            # Whether a node exists is known only when it is read.
            nullable(self._node(method.nodes)) if method.nodes else self._type(method.hints["return"]),
            Called(method, parameters),
            self._shown_arguments(method, parameters),
            method.description,
        )

    def _type(self, annotation: object) -> OutputType:
        annotation, optional = is_optional(annotation)
        type_ = self._output(field_type(annotation, AttributeStyle()))
        return nullable(type_) if optional else type_

    def _shown_arguments(self, method: Method, parameters: Mapping[str, str]) -> list[StrawberryArgument]:
        shown = []
        for graphql_name, name in parameters.items():
            default = method.signature.parameters[name].default
            hint = method.hints[name]
            type_ = self._type(hint)
            if default is inspect.Parameter.empty:
                shown.append(argument(graphql_name, type_))
            elif isinstance(default, bool | int | float | str):
                shown.append(argument(graphql_name, type_, default=default))
            else:
                shown.append(argument(graphql_name, type_ if is_optional(hint)[1] else nullable(type_)))
        return shown
