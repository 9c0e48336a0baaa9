"""Continues from objects that may each have one of several types."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import partial

from keygraph.dynamo.items import Item
from keygraph_resolvers.read.objects import Object
from keygraph_resolvers.read.run import Run
from keygraph_resolvers.steps.explained import Explained, View, Where, joined
from keygraph_resolvers.steps.get import Get, by_type, go_on_with, keep_items, look_up, see, seen_after
from keygraph_resolvers.steps.list_cost import keys_cost
from keygraph_resolvers.steps.step import AT_ONCE, Below, Starts, Step, StepCost, later, union


class ByType(Step):
    """Continues from objects that each have one of several types."""

    def __init__(self, steps: Mapping[str, Step]) -> None:
        """`steps` are the steps for each type, by its name."""
        self._steps = steps
        self.later = union(each.later for each in steps.values())

    def start(self, run: Run, objects: Sequence[Object], round_trip: int, place: str) -> None:
        if not objects:
            return
        first = objects[0].record
        if all(each.record is first for each in objects):
            self._steps[first.name].start(run, objects, round_trip, place)
            return
        for record, group in by_type(objects):
            self._steps[record.name].start(run, group, round_trip, place)

    def cost(self, run: Run, starts: Starts) -> tuple[StepCost, Below]:
        return StepCost(), [(step, starts) for step in self._steps.values()]

    def explained(self, view: View, where: Where) -> Iterator[Explained]:
        found: list[Explained] = []
        for step in self._steps.values():
            for each in step.explained(view, where):
                same = next((other for other in found if _is_alike(other, each)), None)
                if same is None:
                    found.append(each)
                else:
                    joined([same, each])
        yield from found


class UntoldNodes(ByType):
    """Nodes whose key may not determine the type: it is known after the node is read."""

    def __init__(self, gets: Mapping[str, Get]) -> None:
        super().__init__(gets)
        self._gets = gets
        self._untold_after = union(
            seen_after(each.record, each.items.later, is_item_there=True) for each in gets.values()
        )
        self.later |= AT_ONCE | later(self._untold_after)

    def start(self, run: Run, objects: Sequence[Object], round_trip: int, place: str) -> None:
        untold = [each for each in objects if each.others and each.item is None]
        told = [each for each in objects if not each.others or each.item is not None] if untold else objects
        super().start(run, told, round_trip, place)
        for record, group in by_type(untold):
            then = partial(self._types_came, run, place)
            look_up(run, record, group, place, round_trip, self._untold_after, then)

    def _types_came(
        self, run: Run, place: str, came: list[tuple[Object, Item | Exception | None]], round_trip: int
    ) -> None:
        there = keep_items(run, came)
        for each in there:
            if each.item is not None and (record := run.graph.recognise(each.item)) is not None:
                each.record, each.others = record, ()
        for record, group in by_type(there):
            items = self._gets[record.name].items
            then = partial(go_on_with, run, items, place)
            see(run, record, group, place, round_trip, items.later, then)

    def cost(self, run: Run, starts: Starts) -> tuple[StepCost, Below]:
        gets = self._gets.values()
        # Each node is read once. The key of some determines the type, so that what is below them starts at once.
        after = starts.after(at_least=0)
        return keys_cost([get.record for get in gets], starts), [(get.items, after) for get in gets]

    def explained(self, view: View, where: Where) -> Iterator[Explained]:
        if view.may_go_on():
            yield self._untold(view, where)

    def _untold(self, view: View, where: Where) -> Explained:
        """Returns nodes whose types are known only after reading, so that nothing below them starts earlier."""
        shown = Explained("get node", where, (), (), problem=where.problem)
        after = where.later()
        for get in self._gets.values():
            joined([shown, view.get(get.record, where)])
            shown.steps += get.items.explained_below(view, after, after, None)
        return shown


def _is_alike(one: Explained, other: Explained) -> bool:
    """Returns whether two steps differ only in their types."""
    return not one.steps and not other.steps and one.is_read == other.is_read
