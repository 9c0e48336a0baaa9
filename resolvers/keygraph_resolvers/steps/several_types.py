"""Continues from objects that may each have one of several types."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from weakref import ref

from keygraph.model.records import RecordType
from keygraph_resolvers.engine.requests import Begun, Beside, Reads, Start
from keygraph_resolvers.engine.worst import Described, KeyLookups, StepStart, Wait, Worst
from keygraph_resolvers.read.objects import Object
from keygraph_resolvers.read.run import Run
from keygraph_resolvers.steps.get import Get, by_type, keep_items, look_up, run_visible
from keygraph_resolvers.steps.step import Step


class ByType(Step):
    """Continues from objects that each have one of several types."""

    def __init__(self, steps: Mapping[str, Step]) -> None:
        """`steps` are the steps for each type, by its name."""
        self._steps = steps

    def run(self, op: Run, objects: Sequence[Object]) -> Begun:
        if objects and all(each.record is objects[0].record for each in objects):
            return [Start(self._steps[objects[0].record.name], objects)]
        return [Start(self._steps[record.name], group) for record, group in by_type(objects)]

    def worst(self, run: Run) -> Worst:
        for step in self._steps.values():
            yield StepStart(step)


class NodesOfUnknownType(ByType):
    """Nodes whose key may not determine the type: it is known after the node is read."""

    def __init__(self, gets: Mapping[str, Get]) -> None:
        super().__init__(gets)
        self._gets = gets
        self._node = Described(
            kind="get node", records=tuple(get.record for get in gets.values()), step=ref(self)
        )

    def run(self, op: Run, objects: Sequence[Object]) -> Begun:
        undecided = [each for each in objects if each.others and each.item is None]
        known = (
            [each for each in objects if not each.others or each.item is not None] if undecided else objects
        )
        unread = [Beside(self._run_undecided(op, record, group)) for record, group in by_type(undecided)]
        return [*super().run(op, known), *unread]

    def _run_undecided(self, op: Run, record: RecordType, objects: Sequence[Object]) -> Reads[Begun]:
        there = keep_items(op, (yield from look_up(op, record, objects)))
        for each in there:
            if each.item is not None and (known := op.graph.recognise(each.item)) is not None:
                each.record, each.others = known, ()
        return [
            Beside(run_visible(op, own, group, self._gets[own.name].fields)) for own, group in by_type(there)
        ]

    def worst(self, run: Run) -> Worst:
        # Each node is read once. The key of some determines the type, so that what is below them starts at once.
        yield self._node
        yield KeyLookups(self._node.records)
        yield Wait("items", 1, 0)
        for get in self._gets.values():
            yield StepStart(get.fields)
