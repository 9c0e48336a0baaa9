"""Calling the model's methods that are fields, and going on from the nodes that they give."""

from __future__ import annotations

import inspect
from collections.abc import Awaitable, Iterator, Sequence
from typing import Any

from keygraph.model.records import RecordType
from keygraph_resolvers.plan.explained import Explained, View, Where
from keygraph_resolvers.plan.selection import SelectedField
from keygraph_resolvers.plan.step import Below, Starts, Step, StepCost
from keygraph_resolvers.read.objects import Object, object_of_instance
from keygraph_resolvers.read.run import Run
from keygraph_resolvers.schema.field_kinds import Called


class Call(Step):
    """Calls a method on each object. What it reads by itself is not foreseen."""

    def __init__(
        self, selected: SelectedField, record: RecordType, called: Called, nodes: Step | None
    ) -> None:
        """`nodes` goes on from the nodes that it gives; None where it gives other values."""
        self.name = selected.key
        self._selected = selected
        self._record = record
        self._method = called.method
        self._parameters = called.parameters
        self._nodes = nodes
        if nodes is not None:
            self.later = nodes.later

    def start(self, run: Run, objects: Sequence[Object], round_trip: int, place: str) -> None:
        method, names, below = self._method, self._parameters, self.below(place)
        try:
            values = {names[name]: value for name, value in self._selected.arguments(run).items()}
        except Exception as error:
            for each in objects:
                each.found[self._selected] = error
            return
        for each in objects:
            try:
                answer = method.function(each.instance(method), **values)
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
        """Keeps what the method gave; a node of the model is looked up."""
        if self._nodes is not None and answer is not None:
            answer = object_of_instance(run.graph, self._method.nodes, answer)
            self._nodes.start(run, [answer], round_trip, place)
        owner.found[self._selected] = answer

    def cost(self, run: Run, starts: Starts) -> tuple[StepCost, Below]:
        # Nobody knows when a method gives its node: it is in a batch of its own.
        return StepCost(), [] if self._nodes is None else [(self._nodes, starts)]

    def explained(self, view: View, where: Where) -> Iterator[Explained]:
        if self._nodes is not None:
            key = f"what the method {self._record.name}.{self._selected.name} gives"
            place = self.below(where.place)
            yield from self._nodes.explained(view, Where(place, key, where.round_trip, where.is_many))
