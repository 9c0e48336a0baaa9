"""One run of a plan: what its steps share."""

from __future__ import annotations

from collections.abc import Callable, MutableMapping, Sequence
from functools import cached_property

from keygraph.graph import Graph
from keygraph.model.paths import AccessPath
from keygraph.model.records import RecordType
from keygraph_resolvers.plan.arguments import Arguments
from keygraph_resolvers.plan.selection import SelectedField
from keygraph_resolvers.read.connection import ListArguments
from keygraph_resolvers.read.context import RequestContext
from keygraph_resolvers.read.scheduler import Scheduler


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
        self.arguments = arguments
        self._lists = lists
        self.named: dict[SelectedField, Sequence[tuple[RecordType, tuple[str, ...]]]] = {}
        """The nodes that fields of the root name, as far as somebody has asked."""
        self._own_lists: dict[SelectedField, ListArguments | Exception] = {}

    @property
    def graph(self) -> Graph:
        return self.context.graph

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
