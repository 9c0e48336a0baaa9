"""What a plan will read of nodes that are not known yet: their lists with placeholders, and what is read together.

Both the estimate and `keygraph explain` look at a plan through this.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from keygraph.lists.gather import Part, Together, list_part, node_part, side_by_side
from keygraph.lists.listing import NeighbourList
from keygraph.lists.placeholders import shown_key, shown_list
from keygraph.lists.reading import Extent
from keygraph_resolvers.plan.arguments import Arguments
from keygraph_resolvers.plan.field_plans import FieldPlan
from keygraph_resolvers.plan.plan import NeighbourNeeds, ObjectPlan, neighbour_needs
from keygraph_resolvers.read.connection import ListArguments, list_arguments, page_extent
from keygraph_resolvers.read.context import RequestContext


@dataclass(frozen=True, slots=True)
class ShownList:
    """A list of a plan, of an owner that may not be known."""

    needs: NeighbourNeeds
    said: ListArguments
    neighbours: NeighbourList
    extent: Extent
    """The page that is asked for, as if no cursor were given."""

    @property
    def begins_behind(self) -> bool:
        """Whether its page begins behind a cursor."""
        return (self.said.before if self.said.from_end else self.said.after) is not None


@dataclass(frozen=True, slots=True)
class ShownTogether:
    """What one Query will read of a node and its lists."""

    together: Together
    fields: tuple[FieldPlan | None, ...]
    """The lists, in the order of their keys; None for the node itself."""


class ShownLists:
    """The lists of one run of a plan."""

    def __init__(self, context: RequestContext, arguments: Arguments) -> None:
        self._context = context
        self._arguments = arguments
        self._found: dict[tuple[FieldPlan, tuple[str, ...] | None], ShownList | Exception] = {}

    def of(self, selected: FieldPlan, identity: tuple[str, ...] | None = None) -> ShownList:
        """A list of an owner. Raises BadUserInput or GraphQLError where its arguments cannot be used."""
        found = self._found.get((selected, identity))
        if found is None:
            try:
                found = self._shown(selected, identity)
            except Exception as error:
                found = error
            self._found[selected, identity] = found
        if isinstance(found, Exception):
            raise found
        return found

    def _shown(self, selected: FieldPlan, identity: tuple[str, ...] | None) -> ShownList:
        needs = neighbour_needs(selected)
        said = list_arguments(self._context, needs.path, self._arguments.of(selected))
        neighbours = shown_list(
            self._context.graph, needs.path, identity, said.required, said.ranged, said.where
        )
        return ShownList(needs, said, neighbours, page_extent(self._context, needs, said))

    def together(
        self, plan: ObjectPlan, identity: tuple[str, ...] | None = None, *, is_wanted: bool
    ) -> Sequence[ShownTogether]:
        """What is read together of an object of the plan, and its item if that is wanted."""
        record = plan.record
        if record is None or not plan.gathers:
            return ()
        key = shown_key(record, identity)
        parts: dict[Part, FieldPlan | None] = {node_part(key): None} if is_wanted else {}
        for selected in plan.lists:
            try:
                shown = self.of(selected, identity)
            except Exception:
                continue  # nothing is read; the answer says why
            if shown.needs.has_page and shown.said.to is None and not shown.begins_behind:
                part = list_part(shown.neighbours, shown.extent, key)
                if part is not None and shown.said.after is shown.said.before is None:
                    parts[part] = selected
        found = side_by_side(self._context.graph, key, list(parts), is_shown=True)
        return [
            ShownTogether(each, tuple(parts[part] for part in each.parts))
            for each in found
            if len(each.parts) > 1
        ]
