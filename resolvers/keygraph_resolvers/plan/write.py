"""Mutations: one write, and what the client wants to know of the record afterwards.

A write is sent before its payload is read. What it made is known then, and is not read again; what it only changed is read
consistently.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, cast

from keygraph.dynamo.items import Item
from keygraph.dynamo.limits import BATCH_GET_KEYS
from keygraph.dynamo.store import read_units
from keygraph.writing.requests import WriteRequest
from keygraph.writing.writer import Writer
from keygraph_resolvers.plan.explained import Explained, View, Where
from keygraph_resolvers.plan.selection import SelectedField
from keygraph_resolvers.plan.step import Below, Starts, Step, StepCost
from keygraph_resolvers.read.meter import READ, Read
from keygraph_resolvers.read.objects import Object
from keygraph_resolvers.read.run import Run
from keygraph_resolvers.schema.field_kinds import Writes, WrittenRecord
from keygraph_resolvers.schema.mutation_names import MUTATION_ID
from keygraph_resolvers.schema.mutations import write_requests


class Payload:
    """What a mutation answers: the record that it wrote, or the key of one that is no more."""

    item: Item | None = None
    error: None = None
    is_missing = False

    def __init__(self, record: Object, client_mutation_id: str | None) -> None:
        self.record = record
        self.client_mutation_id = client_mutation_id
        self.found = record.found

    @property
    def id(self) -> str:
        """The global id of the node."""
        return self.record.id


class WriteStep(Step):
    """One mutation of the graph's own."""

    def __init__(self, selected: SelectedField, steps: Sequence[tuple[SelectedField, Step]]) -> None:
        """`steps` are what reads the fields of the payload that lead on."""
        self.name = selected.key
        self._selected = selected
        self._kind = cast(Writes, selected.kind)
        self._steps = steps

    async def carry_out(self, run: Run, root: Object) -> None:
        """Writes, and reads what is selected of the payload. What goes wrong stands in the payload's place."""
        read = Read((self.name,), run.meter.last_round_trip + 1)
        token = READ.set(read)
        try:
            root.found[self._selected] = await self._write(run)
        except Exception as error:
            root.found[self._selected] = error
            return
        finally:
            READ.reset(token)
        await run.read(lambda run, _, __, ___, place: self.start(run, [root], read.round_trip, place))

    async def _write(self, run: Run) -> Payload:
        requests, mutation_id = self._told(run)
        answer = await Writer(run.graph, run.meter).write(requests)
        done = answer.done[0]
        return Payload(Object(done.record, done.identity, done.item), mutation_id)

    def _told(self, run: Run) -> tuple[list[WriteRequest], str | None]:
        """What the client asks for. Raises WriteRefused."""

        def tell(arguments: Mapping[str, Any]) -> tuple[list[WriteRequest], str | None]:
            given = arguments["input"]
            action, record = self._kind.action, self._kind.record
            return write_requests(run.graph, action, record, given), given.get(MUTATION_ID)

        return self._selected.told(run, tell)

    def start(self, run: Run, objects: Sequence[Object], round_trip: int, place: str) -> None:
        """Reads what is selected of the payload."""
        for root in objects:
            record: Object = root.found[self._selected].record
            for field, step in self._steps:
                if isinstance(field.kind, WrittenRecord):
                    record.found[field] = record
                step.start(run, [record], round_trip, self._place(place, field))

    def _place(self, place: str, field: SelectedField) -> str:
        """Where the record stands; a step of an end adds the end itself."""
        here = self.below(place)
        return f"{here}.{field.key}" if isinstance(field.kind, WrittenRecord) else here

    def cost(self, run: Run, starts: Starts) -> tuple[StepCost, Below]:
        try:
            requests, _ = self._told(run)
            keys = Writer(run.graph, run.meter).needed(requests)
        except Exception:
            return StepCost(), ()  # nothing is written; the answer says why
        # What must be known is read first.
        round_trips = 2 if keys else 1
        size = self._kind.record.item_bytes
        cost = StepCost(
            apart=1 + -(-len(keys) // BATCH_GET_KEYS),
            round_trips=max(starts.round_trips, default=0) + round_trips - 1,
            items=len(keys),
            read_units=len(keys) * read_units(size, consistent=False),
        )
        return cost, [(step, starts.after(round_trips)) for _, step in self._steps]

    def explained(self, view: View, where: Where) -> Iterator[Explained]:
        for field, step in self._steps:
            here = Where(self._place(where.place, field), "the key of what was written", where.round_trip)
            yield from step.explained(view, here)
