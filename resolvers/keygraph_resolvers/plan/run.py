"""One run of a plan: the arguments with its variables bound to them, and what its steps share."""

from __future__ import annotations

from collections.abc import Callable, Mapping, MutableMapping, Sequence
from functools import cached_property
from typing import Any, cast

from graphql import GraphQLError
from graphql.execution.values import VariableValues, get_argument_values
from strawberry.schema.schema_converter import GraphQLCoreConverter

from keygraph.errors import BadUserInput
from keygraph.graph import Graph
from keygraph.model.paths import AccessPath
from keygraph.model.records import RecordType
from keygraph_resolvers.plan.selection import SelectedField
from keygraph_resolvers.read.connection import ListArguments
from keygraph_resolvers.read.context import RequestContext
from keygraph_resolvers.read.scheduler import Scheduler
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


class Run:
    """One run. Its scheduler is made when it is first used, inside an event loop."""

    def __init__(
        self,
        context: RequestContext,
        arguments: Arguments,
        lists: MutableMapping[SelectedField, ListArguments],
    ) -> None:
        """`lists` are those in whose arguments no variable stands: they are the same in every run of the plan."""
        self.context = context
        self.graph: Graph = context.graph
        self.arguments = arguments
        self._lists = lists
        self.named: dict[SelectedField, Sequence[tuple[RecordType, tuple[str, ...]]]] = {}
        """The nodes that fields of the root name, as far as somebody has asked."""
        self._own_lists: dict[SelectedField, ListArguments | Exception] = {}

    @cached_property
    def scheduler(self) -> Scheduler:
        return Scheduler(self.context.nodes, self.context.neighbours)

    def list_arguments(
        self, selected: SelectedField, path: AccessPath, looks: frozenset[str]
    ) -> ListArguments:
        """What is the same for all the owners of a list. Raises BadUserInput, or GraphQLError."""
        found = self._lists.get(selected) or self._own_lists.get(selected)
        if found is None:
            context = self.context
            try:
                found = ListArguments(
                    context.graph,
                    context.limits,
                    path,
                    self.arguments.of(selected),
                    looks,
                    context.attributes_of(path.record),
                )
            except Exception as error:
                found = error
            if selected.variables or isinstance(found, Exception):
                self._own_lists[selected] = found
            else:
                self._lists[selected] = found
        if isinstance(found, Exception):
            raise found
        return found

    async def read(self, start: Callable[[], None]) -> None:
        """Runs the steps. To be called once."""
        try:
            await self.scheduler.run(start)
        finally:
            self.context.give_up()
            # Parts that know each other go at once when the run is over, not when the garbage collector comes by.
            del self.scheduler
