"""Calls methods of the model and an application's fields of the root, and continues from the nodes that they return."""

from __future__ import annotations

import inspect
from collections.abc import Awaitable, Callable, Iterator, Sequence
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
from graphql.execution.values import get_argument_values

from keygraph.model.permissions import restricted_name
from keygraph.model.records import RecordType
from keygraph_resolvers.read.access import without_refused
from keygraph_resolvers.read.objects import Object, object_of_instance
from keygraph_resolvers.read.run import Run
from keygraph_resolvers.schema.field_kinds import Called, OwnNode
from keygraph_resolvers.steps.explained import Explained, View, Where
from keygraph_resolvers.steps.selection import SelectedField
from keygraph_resolvers.steps.step import Below, Starts, Step, StepCost


class _Call(Step):
    """Calls a function for each object. Its own reads are not in the plan."""

    def __init__(
        self,
        selected: SelectedField,
        what: str,
        records: Sequence[RecordType],
        nodes: Step | None,
        *,
        is_list: bool,
    ) -> None:
        """`what` names the called function. It returns a node of these types, or a list, from which `nodes` continues;
        None if it returns other values."""
        self.suffix = f".{selected.key}"
        self._selected = selected
        self._key = f"what {what} gives"
        self._records = records
        self._nodes = nodes
        self._is_list = is_list
        self._restricted: str | None = None
        if nodes is not None:
            self.later = nodes.later

    def _caller(self, run: Run) -> Callable[[Object], Any]:
        """Returns a function that calls it for an object. Raises errors of the arguments."""
        raise NotImplementedError

    def start(self, run: Run, objects: Sequence[Object], round_trip: int, place: str) -> None:
        below = place + self.suffix
        try:
            call = self._caller(run)
        except Exception as error:
            for each in objects:
                each.found[self._selected] = error
            return
        if self._restricted is not None:
            objects = without_refused(run.access, objects, self._selected, self._restricted)
        for each in objects:
            try:
                answer = call(each)
                if inspect.isawaitable(answer):
                    run.scheduler.spawn(self._awaited(run, each, answer, round_trip, below))
                else:
                    self._came(run, each, answer, round_trip, below)
            except Exception as error:
                each.found[self._selected] = error

    async def _awaited(
        self, run: Run, owner: Object, answer: Awaitable[Any], round_trip: int, place: str
    ) -> None:
        try:
            self._came(run, owner, await answer, round_trip, place)
        except Exception as error:
            owner.found[self._selected] = error

    def _came(self, run: Run, owner: Object, answer: Any, round_trip: int, place: str) -> None:
        """Keeps the returned value; a node of the model is looked up."""
        if self._nodes is not None and answer is not None:
            given, most = [*answer] if self._is_list else [answer], run.limits.max_page_size
            if len(given) > most:
                raise ValueError(f"{self._key}: {len(given)} nodes, and a list may have {most}")
            found = [each and object_of_instance(run.graph, self._records, each) for each in given]
            self._nodes.start(run, [each for each in found if each is not None], round_trip, place)
            answer = found if self._is_list else found[0]
        owner.found[self._selected] = answer

    def cost(self, run: Run, starts: Starts) -> tuple[StepCost, Below]:
        if self._nodes is None:
            return StepCost(), ()
        # It is not known when a node is returned: it is in a batch of its own.
        if not self._is_list:
            return StepCost(), [(self._nodes, starts)]
        cost = StepCost(round_trips=max(starts.round_trips, default=0), is_open=True)
        return cost, [(self._nodes, starts.times(run.limits.max_page_size))]

    def explained(self, view: View, where: Where) -> Iterator[Explained]:
        if self._nodes is not None:
            place = where.place + self.suffix
            is_many = where.is_many or self._is_list
            yield from self._nodes.explained(view, Where(place, self._key, where.round_trip, is_many))


class CallMethod(_Call):
    """Calls a method of the model on each object."""

    def __init__(
        self, selected: SelectedField, record: RecordType, called: Called, nodes: Step | None
    ) -> None:
        method, what = called.method, f"the method {record.name}.{selected.name}"
        super().__init__(selected, what, method.nodes, nodes, is_list=method.is_list)
        self._called = called
        self._restricted = restricted_name(record, called.method.name)

    def _caller(self, run: Run) -> Callable[[Object], Any]:
        method, names = self._called.method, self._called.parameters
        values = {names[name]: value for name, value in self._selected.arguments(run).items()}
        values |= dict.fromkeys(method.of_viewer, run.viewer)
        values |= dict.fromkeys(method.of_context, run.resolvers_context)
        return lambda each: method.function(each.instance(method), **values)


class CallOwn(_Call):
    """Calls the resolver of a field that an application added to the root and that returns a node of the model.

    graphql-core calls it, in a schema in which the node is a value without fields, so that Strawberry's extensions and
    permissions apply, and `info` is the same as for every resolver.
    """

    def __init__(self, selected: SelectedField, nodes: Step) -> None:
        kind, what = cast(OwnNode, selected.kind), f"the resolver of {selected.name}"
        super().__init__(selected, what, kind.records, nodes, is_list=kind.is_list)
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
        await run.read(lambda run, _, __, ___, place: self.start(run, [root], round_trip, place))

    def _caller(self, run: Run) -> Callable[[Object], Any]:
        definition, [node, *_] = cast(GraphQLField, self._selected.definition), self._selected.nodes
        values = get_argument_values(definition, node, run.variables)
        resolve = (
            self._resolve if run.middleware is None else run.middleware.get_field_resolver(self._resolve)
        )

        def call(root: Object) -> Any:
            answer = execute(self._schema, self._document, (resolve, values), run.resolvers_context)
            return self._told(answer) if isinstance(answer, ExecutionResult) else self._later(answer)

        return call

    async def _later(self, answer: Awaitable[ExecutionResult]) -> Any:
        return self._told(await answer)

    def _told(self, answer: ExecutionResult) -> Any:
        """Returns what the resolver returned. Raises what it raised."""
        for error in answer.errors or ():
            raise error.original_error or error
        return (answer.data or {}).get(self._selected.key)


_VALUE = GraphQLScalarType("Value", serialize=lambda value: value)
"""The value of a resolver, unchanged."""
