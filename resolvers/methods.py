"""Fields that are methods of the model: their types from their annotations, their calls."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from typing import Any

from strawberry.types.arguments import StrawberryArgument
from strawberry.types.field import StrawberryField
from strawberry.types.info import Info

from keygraph.graph import Graph
from keygraph.names import camel
from keygraph.records import Method, RecordType, partition_text
from keygraph.types import Writing, field_type, is_optional
from keygraph.unions import NodeText
from resolvers.context import context_of
from resolvers.definitions import Arguments, OutputType, ServedField, argument, nullable
from resolvers.sources import Source, needs_item, read_source


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

    def field(self, method: Method, source_of: Callable[[Any], Source]) -> StrawberryField:
        """The field of a method, on objects of which `source_of` gives the source."""
        arguments = self._arguments(method)
        names = {name: python for python, name in arguments.items()}

        def call(source: Any, info: Info, given: Arguments) -> Any:
            instance = source_of(source).instance(method)
            return method.function(instance, **{names[name]: value for name, value in given.items()})

        async def resolve_node(source: Any, info: Info, given: Arguments) -> Source | None:
            answer = call(source, info, given)
            if inspect.isawaitable(answer):
                answer = await answer
            if answer is None:
                return None
            found = self._source_of(method.nodes, answer)
            return await read_source(context_of(info), found) if needs_item(info, found) else found

        return ServedField(
            camel(method.name),
            # Whether a node exists is known only when it is read.
            nullable(self._node(method.nodes)) if method.nodes else self._type(method.hints["return"]),
            resolve_node if method.nodes else call,
            self._shown_arguments(method),
            method.description,
        )

    def _source_of(self, records: Sequence[RecordType], instance: Any) -> Source:
        """What an object of the model's class stands for; one that has a key alone can be of several types."""
        own = [record for record in records if isinstance(instance, record.cls)]
        if not own:
            fitting = [record for record in records if _has_key(record, instance)]
            alike = fitting[0].table_keys.templates if fitting else ()
            own = [record for record in fitting if record.table_keys.templates == alike] or list(records)
        return Source(own[0], self._identity_of(own[0], instance), others=tuple(own[1:]))

    def _identity_of(self, record: RecordType, instance: Any) -> tuple[str, ...]:
        """The identity of an object of the model's class."""
        values = {}
        for slot in record.identity:
            value = instance
            for name in slot.path:
                value = getattr(value, name)
            if isinstance(slot.text, NodeText):
                members = [self._graph.types[name] for each in slot.text.variants for name in each.members]
                source = self._source_of(members, value)
                value = partition_text(source.record, source.identity)
            values[record.leaf_name(slot.path)] = value
        return self._graph.identity(record, values)

    def _type(self, annotation: object) -> OutputType:
        annotation, optional = is_optional(annotation)
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


def _has_key(record: RecordType, instance: Any) -> bool:
    return all(hasattr(instance, slot.path[0]) for slot in record.identity)
