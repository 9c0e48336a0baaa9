"""Mutations: one write, and what the client wants to know of the record afterwards.

A write is sent before its payload is read. What it made is known then, and is not read again; what it only changed is read
consistently.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple, cast

from keygraph.dynamo.items import Item
from keygraph.dynamo.limits import BATCH_GET_KEYS
from keygraph.dynamo.store import Query, read_units
from keygraph.errors import KeygraphError
from keygraph.writing.describe import describe_write
from keygraph.writing.idempotency import IdempotencyKey
from keygraph.writing.requests import WriteRequest
from keygraph.writing.writer import Writer
from keygraph_resolvers.plan.explained import Explained, View, Where, problem_text
from keygraph_resolvers.plan.get import Get
from keygraph_resolvers.plan.selection import SelectedField
from keygraph_resolvers.plan.step import Below, Starts, Step, StepCost
from keygraph_resolvers.read.meter import READ, Read
from keygraph_resolvers.read.objects import Object
from keygraph_resolvers.read.run import Run
from keygraph_resolvers.schema.field_kinds import Writes, WrittenRecord
from keygraph_resolvers.schema.mutation_names import IDEMPOTENCY_KEY, MUTATION_ID
from keygraph_resolvers.schema.mutations import Input, idempotency_key, write_requests

_OF_A_SEARCH = 3
"""The round trips in which a node is marked and what names it is looked for: by indexes, then in the table."""


class Payload:
    """What a mutation answers: the record that it wrote, or the key of one that is no more."""

    item: Item | None = None
    error: None = None
    is_missing = False

    def __init__(self, record: Object, detached: int, client_mutation_id: str | None) -> None:
        self.record = record
        self.detached = detached
        self.client_mutation_id = client_mutation_id
        self.found = record.found

    @property
    def id(self) -> str:
        """The global id of the node."""
        return self.record.id


class _Asked(NamedTuple):
    """What a mutation is asked for."""

    given: Input
    requests: list[WriteRequest]
    key: IdempotencyKey | None


class WriteStep(Step):
    """One mutation of the graph's own."""

    def __init__(
        self, selected: SelectedField, position: int, steps: Sequence[tuple[SelectedField, Step]]
    ) -> None:
        """`steps` are what reads the fields of the payload that lead on."""
        self.name = selected.key
        self._position = position
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
        asked = self._asked(run)
        answer = await Writer(run.graph, run.meter).write(asked.requests, asked.key)
        done = answer.done[0]
        key = asked.given.values.get(MUTATION_ID)
        return Payload(Object(done.record, done.identity, done.item), done.detached, key)

    def _asked(self, run: Run) -> _Asked:
        """What the client asks for, made once for a run, since new records get new ids. Raises WriteRefused."""
        found = run.told.get(self)
        if found is None:
            try:
                found = self._made(run)
            except Exception as error:
                found = error
            run.told[self] = found
        if isinstance(found, Exception):
            raise found
        return cast(_Asked, found)

    def _made(self, run: Run) -> _Asked:
        values = self._selected.told(run, lambda arguments: arguments["input"])
        given = Input(self._kind.action, self._kind.record, values, ("input",))
        [requests] = write_requests(run.graph, [given])
        own = values.get(IDEMPOTENCY_KEY)
        if own is not None:
            return _Asked(given, requests, idempotency_key([given], (own,), (*given.where, IDEMPOTENCY_KEY)))
        if run.idempotency_key is not None:
            name = (run.idempotency_key, self._position)
            return _Asked(given, requests, idempotency_key([given], name, ()))
        return _Asked(given, requests, None)

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
            asked = self._asked(run)
            writer = Writer(run.graph, run.meter)
            count, searched = len(writer.needed(asked.requests)), writer.searched(asked.requests)
        except Exception:
            return StepCost(), ()  # nothing is written; the answer says why
        # What must be known is read first, and what was done under the key.
        count += asked.key is not None
        round_trips = 2 if count else 1
        size = self._kind.record.item_bytes
        cost = StepCost(
            apart=1 + -(-count // BATCH_GET_KEYS),
            round_trips=max(starts.round_trips, default=0) + round_trips - 1,
            items=count,
            read_units=count * read_units(size, consistent=False),
        )
        if searched:
            self._add_search(cost, searched)
            round_trips += _OF_A_SEARCH
        is_known = self._is_known and asked.key is None
        after = starts.after(round_trips)
        return cost, [(self._going_on(step, is_known=is_known), after) for _, step in self._steps]

    @property
    def _is_known(self) -> bool:
        """Whether the item that is written is known, because all of it is written."""
        return self._kind.action in ("create", "put", "move")

    def _going_on(self, step: Step, *, is_known: bool) -> Step:
        """What goes on from the record: without reading it, where its item is known."""
        return step.items if is_known and isinstance(step, Get) else step

    def _add_search(self, cost: StepCost, searched: Sequence[Query]) -> None:
        """Adds what it takes to find what names a node: its first pages; and the mark, set and taken away."""
        size = self._kind.record.item_bytes
        cost.apart += 2
        cost.round_trips += _OF_A_SEARCH
        cost.is_open = True
        for query in searched:
            count = query.limit or 1
            cost.apart += 1
            cost.items += count
            cost.read_units += read_units(count * size, query.consistent)
            if query.index is not None:
                # Each item that an index leads to is read from the table.
                cost.apart += 1
                cost.items += count
                cost.read_units += count * read_units(size, consistent=True)

    def explained(self, view: View, where: Where) -> Iterator[Explained]:
        place, names = self.below(where.place), (self._kind.record.name,)
        here = Where(place, where.key, where.round_trip)
        shown = Explained("write", here, names)
        try:
            asked = self._asked(view.run)
            described = describe_write(view.run.graph, asked.requests, asked.key)
        except KeygraphError as error:
            shown.problem = problem_text(error)
            yield shown
            return
        if described.read is not None:
            yield Explained("read first", here, names, requests=(described.read,))
            shown.where = here = here.later()
        if described.marks:
            yield Explained("mark", here, names, requests=described.marks)
            yield Explained("find what names", here.later(), names, requests=described.searches)
            for _ in range(_OF_A_SEARCH):
                shown.where = here = here.later()
        shown.transactions = described.transactions
        for field, step in self._steps:
            identity = described.identity if isinstance(field.kind, WrittenRecord) else None
            place, key = self._place(where.place, field), "the key of what was written"
            going_on = self._going_on(step, is_known=self._is_known)
            shown.steps += going_on.explained(view, here.later(place=place, key=key, identity=identity))
        yield shown
