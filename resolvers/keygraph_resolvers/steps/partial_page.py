"""Pages of lists that are read from an index that lacks something that is selected: it is looked up in the table.

What the keys in the index determine starts at the same time: the nodes at the far ends of edges, and the lists of nodes.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any, TypeAlias

from keygraph.dynamo.items import Item
from keygraph.model.paths import AccessPath
from keygraph.model.permissions import is_told_by_key
from keygraph_resolvers.read.access import seen_by_item
from keygraph_resolvers.read.connection import Edge
from keygraph_resolvers.read.objects import Object
from keygraph_resolvers.read.run import Run
from keygraph_resolvers.steps.explained import Explained, View, Where, joined
from keygraph_resolvers.steps.list_cost import keys_cost
from keygraph_resolvers.steps.lists import BoundList, PageStep, look_all_up
from keygraph_resolvers.steps.selection import SelectedField
from keygraph_resolvers.steps.step import (
    AT_ONCE,
    Below,
    ItemStep,
    Priced,
    RoundTrips,
    Starts,
    Step,
    StepCost,
    later,
    union,
)

_FarNodes: TypeAlias = Mapping[SelectedField, Mapping[Edge, Sequence[Object]]]
"""For each field that shows nodes: the node at the far end of each edge, if it has one."""


class PartialPage(PageStep):
    """A page whose items are completed from the table before anything continues from them."""

    def __init__(
        self,
        name: str,
        path: AccessPath,
        edges: Sequence[tuple[SelectedField, ItemStep]],
        nodes: Sequence[tuple[SelectedField, Step]],
        only: ItemStep | None,
    ) -> None:
        super().__init__(name, path, edges, nodes, only)
        record = path.record
        of_nodes = [step for _, step in nodes]
        own = [each for each in self.children if path.far_end is None or each not in of_nodes]
        far = [each for each in of_nodes if path.far_end is not None]
        # Nothing below an item is read before it is known that the viewer sees it, or which item it is.
        is_early = not path.members and is_told_by_key(record) and not record.attributes_of_identity
        is_far_early = is_early and path.far_end in record.key_fields
        self._by_key = [each for each in own if is_early and isinstance(each, ItemStep)]
        """The steps that begin by the keys of edges, and go on by their items."""
        self._by_item = [each for each in own if each not in self._by_key]
        """The steps that begin by the items."""
        self._far_by_key = far if is_far_early else []
        """The steps of nodes at the far ends that begin by the keys."""
        self._far_by_item = [] if is_far_early else far
        now = (*(each.by_key_later for each in self._by_key), *(each.later for each in self._far_by_key))
        then = [each.by_item_later for each in self._by_key]
        then += [each.later for each in (*self._by_item, *self._far_by_item)]
        self._whole_after: RoundTrips = union(then)
        """The round trips in which keys are requested after the items have come."""
        self.after = AT_ONCE | union(now) | later(self._whole_after)

    def spread(self, run: Run, bound: BoundList, edges: Sequence[Edge], round_trip: int) -> None:
        """Looks up the items of edges, and starts what their keys determine."""
        edges = edges[:1] if bound.found is None else edges
        for step in self._by_key:
            step.start_by_key(run, edges, (), round_trip, bound.place)
        begun: dict[SelectedField, Mapping[Edge, Sequence[Object]]] = {}
        for selected, nodes_step in self.nodes:
            if nodes_step in self._far_by_key:
                nodes = begun[selected] = {edge: self.nodes_of([edge]) for edge in edges}
                _start(nodes_step, run, [each for some in nodes.values() for each in some], round_trip, bound)
        key_of = run.graph.table.key_of
        wanted = [(edge, key_of(edge.listed)) for edge in edges]
        then = partial(self._whole_came, run, bound, edges, begun)
        look_all_up(run, bound.place, round_trip, self._whole_after, wanted, then)

    def _whole_came(
        self,
        run: Run,
        bound: BoundList,
        edges: Sequence[Edge],
        begun: _FarNodes,
        came: list[tuple[Any, Item | Exception | None]],
        round_trip: int,
    ) -> None:
        """Shows the edges whose items are there, and continues from the items."""
        found, there = bound.found, whole_edges(run, edges, came)
        if found is None:
            bound.owner.found[bound.step.selected] = there[0] if there else None
        else:
            found.page = there
            for selected, _ in self.edges:
                found.found[selected] = there
            for selected, nodes_step in self.nodes:
                nodes = found.found[selected] = self._nodes_there(there, begun.get(selected))
                if nodes_step in self._far_by_item:
                    _start(nodes_step, run, nodes, round_trip, bound)
        sound = [edge for edge in there if edge.error is None]
        for step in self._by_key:
            step.go_on(run, sound, round_trip, bound.place)
        for item_step in self._by_item:
            item_step.start(run, sound, round_trip, bound.place)

    def _nodes_there(
        self, edges: Sequence[Edge], begun: Mapping[Edge, Sequence[Object]] | None
    ) -> Sequence[Object]:
        """Returns the nodes of edges, which may be known before; an edge that could not be read has its error."""
        if begun is None:
            return self.nodes_of(edges)
        known = [begun[edge] if edge.error is None else self.nodes_of([edge]) for edge in edges]
        return [node for some in known for node in some]

    def cost(self, run: Run, starts: Starts) -> tuple[StepCost, Below]:
        """Returns the cost of completing so many edges, and the steps that continue from them."""
        cost, after = keys_cost(self.path.records, starts), starts.after()
        below: list[tuple[Priced, Starts]] = [(step, starts) for step in self._far_by_key]
        below += [(step, after) for step in (*self._by_item, *self._far_by_item)]
        for step in self._by_key:
            own, below_keys = step.cost_by_key(run, starts, is_wanted=False)
            cost.add(own)
            cost.shared_with += own.shared_with
            below += [*below_keys, *step.below_items(after)]
        return cost, below

    def explained(self, view: View, where: Where) -> Iterator[Explained]:
        at = replace(where, key=f"the table key in {self.path.keys.index_name}")
        shown = joined(view.get(record, at) for record in self.path.records)
        key = f"the end {self.path.record.name}.{self.path.far_end}"
        after = where.later(key=key)
        for step in self._by_key:
            shown.steps += step.explained_below(view, where, after, None)
        for far_step in self._far_by_key:
            shown.steps += far_step.explained(view, replace(where, key=key))
        for item_step in (*self._by_item, *self._far_by_item):
            shown.steps += item_step.explained(view, after)
        yield shown


def _start(step: Step, run: Run, nodes: Sequence[Object], round_trip: int, bound: BoundList) -> None:
    step.start(run, [node for node in nodes if node.error is None], round_trip, bound.place)


def whole_edges(
    run: Run, edges: Sequence[Edge], came: list[tuple[Any, Item | Exception | None]]
) -> list[Edge]:
    """Returns the edges with the whole items from the table; edges are left out that the table no longer has, or has as
    items of another type, which the index does not show."""
    is_of = run.graph.is_of
    for edge, answer in came:
        if isinstance(answer, Exception):
            edge.item, edge.error = None, answer
        else:
            edge.item = answer if answer is not None and is_of(answer, (edge.record,)) else None
    there = [edge for edge in edges if edge.item is not None or edge.error is not None]
    if run.access is not None:
        # The index may have values that the item no longer has.
        whole = {*seen_by_item(run.access, [edge for edge in there if edge.error is None])}
        there = [edge for edge in there if edge.error is not None or edge in whole]
    return there
