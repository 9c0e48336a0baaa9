"""Calling the model's methods that are fields, and going on from the nodes that they give."""

from __future__ import annotations

import inspect
from collections.abc import Awaitable, Iterator, Sequence
from typing import Any

from keygraph.model.records import RecordType
from keygraph_resolvers.plan.explained import Explained, View, Where
from keygraph_resolvers.plan.run import Run
from keygraph_resolvers.plan.selection import SelectedField
from keygraph_resolvers.plan.step import Below, Starts, Step, StepCost
from keygraph_resolvers.read.objects import Object, object_of_instance
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
        for each in objects:
            self._call(run, each, round_trip, place)

    def _call(self, run: Run, owner: Object, round_trip: int, place: str) -> None:
        method = self._method
        try:
            names, given = self._parameters, run.arguments.of(self._selected)
            answer = method.function(owner.instance(method), **{names[name]: given[name] for name in given})
        except Exception as error:
            owner.found[self._selected] = error
            return
        if inspect.isawaitable(answer):
            run.scheduler.spawn(self._awaited(run, owner, answer, round_trip, place))
        else:
            self._came(run, owner, answer, round_trip, place)

    async def _awaited(
        self, run: Run, owner: Object, answer: Awaitable[Any], round_trip: int, place: str
    ) -> None:
        try:
            value = await answer
        except Exception as error:
            owner.found[self._selected] = error
            return
        self._came(run, owner, value, round_trip, place)

    def _came(self, run: Run, owner: Object, answer: Any, round_trip: int, place: str) -> None:
        """Keeps what the method gave; a node of the model is looked up."""
        if self._nodes is None or answer is None:
            owner.found[self._selected] = answer
            return
        try:
            found = object_of_instance(run.graph, self._method.nodes, answer)
        except Exception as error:
            owner.found[self._selected] = error
            return
        owner.found[self._selected] = found
        self._nodes.start(run, [found], round_trip, self.below(place))

    def cost(self, run: Run, starts: Starts) -> tuple[StepCost, Below]:
        # Nobody knows when a method gives its node: it is in a batch of its own.
        return StepCost(), [] if self._nodes is None else [(self._nodes, starts)]

    def explained(self, view: View, where: Where) -> Iterator[Explained]:
        if self._nodes is not None:
            key = f"what the method {self._record.name}.{self._selected.name} gives"
            place = self.below(where.place)
            yield from self._nodes.explained(view, Where(place, key, where.round_trip, where.is_many))
