"""Calls methods of the model and an application's fields of the root, and continues from the nodes that they return."""

from __future__ import annotations

import inspect
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from typing import Any, cast

from graphql import (
    DocumentNode,
    ExecutionResult,
    FieldNode,
    GraphQLField,
    GraphQLObjectType,
    GraphQLScalarType,
    GraphQLSchema,
    OperationDefinitionNode,
    OperationType,
    SelectionSetNode,
    execute,
)
from graphql.execution import Executor
from graphql.execution.values import get_argument_values

from keygraph.access.claims import Viewer
from keygraph.model.permissions import restricted_name
from keygraph.model.records import RecordType
from keygraph_resolvers.engine.engine import read
from keygraph_resolvers.engine.requests import Await, Beside, Reads, Start
from keygraph_resolvers.engine.worst import QueryRequests, StepStart, Worst
from keygraph_resolvers.errors import as_value
from keygraph_resolvers.read.access import without_refused
from keygraph_resolvers.read.objects import Object, object_of_instance
from keygraph_resolvers.read.run import Run
from keygraph_resolvers.schema.field_kinds import Called, OwnNode
from keygraph_resolvers.schema.strawberry_internals import executor_class
from keygraph_resolvers.steps.selection import SelectedField
from keygraph_resolvers.steps.step import Step


@dataclass(eq=False)
class _Call(Step):
    """Calls a function for each object. Its own reads are not in the plan."""

    _selected: SelectedField
    _key: str
    """What the function gives, in words."""
    _records: Sequence[RecordType]
    """The types of the nodes that it returns."""
    _nodes: Step | None
    """Continues from them; None if it returns other values."""
    _is_list: bool
    _restricted: str | None = None

    def __post_init__(self) -> None:
        self.suffix = f".{self._selected.key}"

    def _caller(self, run: Run) -> Callable[[Object], Any]:
        """Returns a function that calls it for an object. Raises errors of the arguments."""
        raise NotImplementedError

    def run(self, op: Run, objects: Sequence[Object]) -> Reads[None]:
        try:
            call = self._caller(op)
        except Exception as error:
            failure = as_value(error)
            for each in objects:
                op.fail(each.found, self._selected, failure)
            return
        if self._restricted is not None:
            objects = without_refused(op, objects, self._selected, self._restricted)
        for each in objects:
            try:
                answer = call(each)
            except Exception as error:
                answer = as_value(error)
            if inspect.isawaitable(answer):
                yield Beside(self._awaited(op, each, answer))
            else:
                yield from self._keep(op, each, answer)

    def _awaited(self, op: Run, owner: Object, answer: Awaitable[Any]) -> Reads[None]:
        yield from self._keep(op, owner, (yield Await(answer)))

    def _keep(self, op: Run, owner: Object, answer: Any) -> Reads[None]:
        """Keeps the returned value, or the error; a node of the model is looked up."""
        found = owner.found
        if self._nodes is None or answer is None or isinstance(answer, Exception):
            found[self._selected] = answer
            return
        try:
            nodes = self._returned(op, answer)
        except Exception as error:
            op.fail(found, self._selected, error)
            return
        found[self._selected] = nodes if self._is_list else nodes[0]
        yield Start(self._nodes, [each for each in nodes if each is not None])

    def _returned(self, op: Run, answer: Any) -> list[Object | None]:
        """Returns the returned nodes. Raises errors of what was returned."""
        given, most = [*answer] if self._is_list else [answer], op.limits.max_page_size
        if len(given) > most:
            raise ValueError(f"{self._key}: {len(given)} nodes, and a list may have {most}")
        return [each and object_of_instance(op.graph, self._records, each) for each in given]

    def worst(self, run: Run) -> Worst:
        if self._nodes is not None:
            # It is not known when a node is returned: it is in a batch of its own.
            if self._is_list:
                yield QueryRequests(0, is_open=True)
            most = run.limits.max_page_size if self._is_list else 1
            yield StepStart(self._nodes, most, key=self._key)


class CallMethod(_Call):
    """Calls a method of the model on each object."""

    def __init__(
        self, selected: SelectedField, record: RecordType, called: Called, nodes: Step | None
    ) -> None:
        method, what = called.method, f"what the method {record.name}.{selected.name} gives"
        restricted = restricted_name(record, method.name)
        super().__init__(selected, what, method.nodes, nodes, method.is_list, restricted)
        self._called = called

    def _caller(self, run: Run) -> Callable[[Object], Any]:
        method, names = self._called.method, self._called.parameters
        values = {names[name]: value for name, value in self._selected.arguments(run).items()}
        for name, annotation in method.injected.items():
            values[name] = run.viewer if annotation is Viewer else run.resolvers_context
        return lambda each: method.function(each.instance(method), **values)


class CallOwn(_Call):
    """Calls the resolver of a field that an application added to the root and that returns a node of the model.

    graphql-core calls it, in a schema in which the node is a value without fields, so that Strawberry's extensions and
    permissions apply, and `info` is the same as for every resolver.
    """

    def __init__(self, selected: SelectedField, nodes: Step) -> None:
        kind, what = cast(OwnNode, selected.kind), f"what the resolver of {selected.name} gives"
        super().__init__(selected, what, kind.records, nodes, kind.is_list)
        self.suffix = selected.key
        definition = cast(GraphQLField, selected.definition)
        self._resolve = cast(Callable[..., Any], definition.resolve)
        # The resolver and the arguments are the root value: this schema lacks the types of the field's arguments.
        alone = GraphQLField(_VALUE, resolve=lambda root, info: root[0](None, info, **root[1]))
        self._schema = GraphQLSchema(GraphQLObjectType(selected.owner.name, {selected.name: alone}))
        node = selected.nodes[0]
        field = FieldNode(name=node.name, alias=node.alias, arguments=node.arguments, directives=())
        operation = OperationDefinitionNode(
            operation=OperationType.QUERY,
            variable_definitions=(),
            directives=(),
            selection_set=SelectionSetNode(selections=(field,)),
        )
        self._document = DocumentNode(definitions=(operation,))

    async def carry_out(self, run: Run, root: Object) -> None:
        """Calls the resolver of a mutation, and reads the selected fields of its nodes."""
        round_trip = run.meter.last_round_trip + 1
        await read(run, self, root, round_trip)

    def _caller(self, run: Run) -> Callable[[Object], Any]:
        definition, [node, *_] = cast(GraphQLField, self._selected.definition), self._selected.nodes
        values = get_argument_values(definition, node, run.variables)
        resolve = (
            self._resolve if run.middleware is None else run.middleware.get_field_resolver(self._resolve)
        )

        def call(root: Object) -> Any:
            answer = execute(
                self._schema,
                self._document,
                (resolve, values),
                run.resolvers_context,
                executor_class=_EXECUTOR,
            )
            return self._returned_by(answer) if isinstance(answer, ExecutionResult) else self._later(answer)

        return call

    async def _later(self, answer: Awaitable[ExecutionResult]) -> Any:
        return self._returned_by(await answer)

    def _returned_by(self, answer: ExecutionResult) -> Any:
        """Returns what the resolver returned. Raises what it raised."""
        for error in answer.errors or ():
            raise error.original_error or error
        return (answer.data or {}).get(self._selected.key)


_EXECUTOR = executor_class(Executor)
_VALUE = GraphQLScalarType("Value", serialize=lambda value: value)
"""The value of a resolver, unchanged."""
