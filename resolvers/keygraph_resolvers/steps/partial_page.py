"""Pages of lists that are read from an index that lacks something that is selected: it is looked up in the table.

What the keys in the index determine starts at the same time: the nodes at the far ends of edges, and the lists of nodes.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from keygraph.dynamo.items import Item
from keygraph.model.permissions import is_decided_by_key
from keygraph_resolvers.engine.requests import Begun, Beside, GetItems, Reads, Start
from keygraph_resolvers.engine.worst import Described, KeyLookups, StepStart, Wait, Worst
from keygraph_resolvers.read.connection import Connection, Edge
from keygraph_resolvers.read.objects import Object
from keygraph_resolvers.read.run import Run
from keygraph_resolvers.steps.lists import PageStep
from keygraph_resolvers.steps.selection import SelectedField
from keygraph_resolvers.steps.step import ItemStep, Step


class PartialPage(PageStep):
    """A page whose items are completed from the table before anything continues from them."""

    def __post_init__(self) -> None:
        super().__post_init__()
        path, record = self.path, self.path.record
        of_nodes = [step for _, step in self.nodes]
        own = [each for each in self.children if path.far_end is None or each not in of_nodes]
        far = [each for each in of_nodes if path.far_end is not None]
        # Nothing below an item is read before it is known that the viewer sees it, or which item it is.
        is_early = not path.members and is_decided_by_key(record) and not record.attributes_of_identity
        is_far_early = is_early and path.far_end in record.key_fields
        self._by_key = [each for each in own if is_early and isinstance(each, ItemStep)]
        """The steps that begin by the keys of edges, and go on by their items."""
        self._by_item = [each for each in own if each not in self._by_key]
        """The steps that begin by the items."""
        self._far_by_key = far if is_far_early else []
        """The steps of nodes at the far ends that begin by the keys."""
        key = f"the table key in {path.keys.index_name}"
        self._node = Described(kind="get node", records=tuple(path.records), key=key)
        self._far_by_item = [] if is_far_early else far

    def spread(self, op: Run, pages: Sequence[tuple[Connection, list[Edge]]]) -> Begun:
        return [Beside(self._complete(op, connection, edges)) for connection, edges in pages]

    def _complete(self, op: Run, connection: Connection, edges: Sequence[Edge]) -> Reads[None]:
        """Looks up the items of edges, and starts what their keys determine."""
        edges = edges[:1] if connection.answer is None else edges
        for step in self._by_key:
            yield step.run_by_key(op, edges)
        begun: dict[SelectedField, Mapping[Edge, Sequence[Object]]] = {}
        for selected, nodes_step in self.nodes:
            if nodes_step in self._far_by_key:
                nodes = begun[selected] = {edge: self.nodes_of(selected, [edge]) for edge in edges}
                yield _start(nodes_step, [each for some in nodes.values() for each in some])
        key_of = op.graph.table.key_of
        answers = yield GetItems([(edge, key_of(edge.listed)) for edge in edges], "whole")
        answer, there = connection.answer, whole_edges(op, edges, answers)
        if answer is None:
            connection.owner.found[self.selected] = there[0] if there else None
        else:
            answer.page = there
            for selected, _ in self.edges:
                answer.found[selected] = there
            for selected, nodes_step in self.nodes:
                existing = answer.found[selected] = self._nodes_there(selected, there, begun.get(selected))
                if nodes_step in self._far_by_item:
                    yield _start(nodes_step, existing)
        sound = [edge for edge in there if edge.error is None]
        for step in self._by_key:
            yield step.run_by_item(op, sound)
        for item_step in self._by_item:
            yield Start(item_step, sound)

    def _nodes_there(
        self, selected: SelectedField, edges: Sequence[Edge], begun: Mapping[Edge, Sequence[Object]] | None
    ) -> Sequence[Object]:
        """Returns the nodes of edges, which may be known before; an edge that could not be read has its error."""
        if begun is None:
            return self.nodes_of(selected, edges)
        known = [begun[edge] if edge.error is None else self.nodes_of(selected, [edge]) for edge in edges]
        return [node for some in known for node in some]

    def worst(self, run: Run) -> Worst:
        """Yields the completion of an edge, and the steps that continue from it."""
        yield self._node
        for far_step in self._far_by_key:
            yield StepStart(far_step, key=self.end_key)
        for step in self._by_key:
            yield from step.worst_by_key(run, is_wanted=False)
        yield KeyLookups(self._node.records)
        yield Wait("whole")
        for item_step in (*self._by_item, *self._far_by_item):
            yield StepStart(item_step, key=self.end_key)
        for step in self._by_key:
            yield from step.worst_by_item(run)


def _start(step: Step, nodes: Sequence[Object]) -> Start:
    return Start(step, [node for node in nodes if node.error is None])


def whole_edges(
    run: Run, edges: Sequence[Edge], answers: list[tuple[Any, Item | Exception | None]]
) -> list[Edge]:
    """Returns the edges with the whole items from the table; edges are left out that the table no longer has, or has as
    items of another type, which the index does not show."""
    is_of = run.graph.is_of
    for edge, answer in answers:
        if isinstance(answer, Exception):
            edge.item, edge.error = None, answer
        else:
            edge.item = answer if answer is not None and is_of(answer, (edge.record,)) else None
    there = [edge for edge in edges if edge.item is not None or edge.error is not None]
    # The index may have values that the item no longer has.
    access = run.access
    return [edge for edge in there if access is None or edge.error is not None or access.allows(edge)]
