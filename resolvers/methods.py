"""Fields that are methods of the model: their types from their annotations, their calls."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

from strawberry.types.arguments import StrawberryArgument
from strawberry.types.field import StrawberryField
from strawberry.types.info import Info

from keygraph.declaration import declaration_of
from keygraph.graph import Graph
from keygraph.names import camel
from keygraph.records import Method, RecordType
from keygraph.types import Writing, field_type, is_optional
from resolvers.context import context_of
from resolvers.definitions import Arguments, OutputType, ServedField, argument, nullable
from resolvers.sources import Source, needs_item, read_source


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

    def field(self, method: Method, source_of: Callable[[Any], Source]) -> StrawberryField:
        """The field of a method, on objects of which `source_of` gives the source."""
        record = self._record(is_optional(method.hints["return"])[0])
        arguments = self._arguments(method)
        names = {name: python for python, name in arguments.items()}

        def call(source: Any, info: Info, given: Arguments) -> Any:
            instance = source_of(source).instance(method)
            return method.function(instance, **{names[name]: value for name, value in given.items()})

        async def resolve_node(source: Any, info: Info, given: Arguments) -> Source | None:
            answer = call(source, info, given)
            if inspect.isawaitable(answer):
                answer = await answer
            if answer is None or record is None:
                return None
            found = Source(record, self._identity_of(record, answer))
            return await read_source(context_of(info), found) if needs_item(info, record) else found

        return ServedField(
            camel(method.name),
            self._type(method.hints["return"]),
            resolve_node if record is not None else call,
            self._shown_arguments(method),
            method.description,
        )

    def _record(self, annotation: object) -> RecordType | None:
        if not inspect.isclass(annotation) or declaration_of(annotation) is None:
            return None
        return next((record for record in self._graph.nodes if record.cls is annotation), None)

    def _identity_of(self, record: RecordType, instance: Any) -> tuple[str, ...]:
        """The identity of an object of the model's class."""
        values = {}
        for slot in record.identity:
            value = instance
            for name in slot.path:
                value = getattr(value, name)
            values[record.leaf_name(slot.path)] = value
        return self._graph.identity(record, values)

    def _type(self, annotation: object) -> OutputType:
        annotation, optional = is_optional(annotation)
        record = self._record(annotation)
        if record is not None:
            # Whether a node exists is known only when it is read.
            return nullable(self._object_of(record))
        type_ = self._output(field_type(annotation, Writing()))
        return nullable(type_) if optional else type_

    def _arguments(self, method: Method) -> dict[str, str]:
        """The GraphQL name of each parameter but `self`."""
        _, *parameters = method.signature.parameters
        return {name: camel(name) for name in parameters}

    def _shown_arguments(self, method: Method) -> list[StrawberryArgument]:
        shown = []
        for name, graphql_name in self._arguments(method).items():
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
