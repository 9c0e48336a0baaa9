"""Fields that are methods of the model: their types from their annotations, their calls."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

from strawberry.types.arguments import StrawberryArgument
from strawberry.types.field import StrawberryField

from keygraph.declaration import declaration_of
from keygraph.graph import Graph
from keygraph.names import camel
from keygraph.records import Method, RecordType
from keygraph.types import Writing, field_type, is_optional
from resolvers.definitions import OutputType, ServedField, argument, nullable
from resolvers.meanings import Called


class MethodFields:
    """Makes fields of the methods of record types."""

    def __init__(
        self,
        graph: Graph,
        output: Callable[[Any], OutputType],
        object_of: Callable[[RecordType], type],
    ) -> None:
        """`output` gives the GraphQL type of a field's type, `object_of` that of a record type."""
        self._graph = graph
        self._output = output
        self._object_of = object_of

    def field(self, method: Method) -> StrawberryField:
        """The field of a method."""
        record = self._record(is_optional(method.hints["return"])[0])
        return ServedField(
            camel(method.name),
            self._type(method.hints["return"]),
            Called(method, record),
            self._shown_arguments(method),
            method.description,
        )

    def _record(self, annotation: object) -> RecordType | None:
        if not inspect.isclass(annotation) or declaration_of(annotation) is None:
            return None
        return next((record for record in self._graph.nodes if record.cls is annotation), None)

    def _type(self, annotation: object) -> OutputType:
        annotation, optional = is_optional(annotation)
        record = self._record(annotation)
        if record is not None:
            # Whether a node exists is known only when it is read.
            return nullable(self._object_of(record))
        type_ = self._output(field_type(annotation, Writing()))
        return nullable(type_) if optional else type_

    def _shown_arguments(self, method: Method) -> list[StrawberryArgument]:
        shown = []
        for graphql_name, name in method.parameters.items():
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
