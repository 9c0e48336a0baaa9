"""Mutations: the writes, and the client's selections from the written records.

A write is sent before its payload is read. Created records are then known, and are not read again; changed records are
read consistently.
"""

from __future__ import annotations

import asyncio
from collections.abc import Hashable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any, NamedTuple, TypeAlias, cast

from keygraph.dynamo.limits import BATCH_GET_KEYS
from keygraph.dynamo.store import Query, read_units
from keygraph.errors import KeygraphError
from keygraph.writing.requests import WriteRequest
from keygraph.writing.sending.describe import describe_write
from keygraph.writing.sending.idempotency import IdempotencyKey
from keygraph.writing.sending.writer import Writer
from keygraph_resolvers.naming.mutation_names import IDEMPOTENCY_KEY, MUTATION_ID
from keygraph_resolvers.read.meter import READ, Read
from keygraph_resolvers.read.objects import Object
from keygraph_resolvers.read.run import Run
from keygraph_resolvers.schema.field_kinds import ResultList, Writes, WritesEach, WritesTogether
from keygraph_resolvers.schema.mutations import Input, Told, idempotency_key, told_of, write_requests
from keygraph_resolvers.steps.explained import Explained, View, Where, problem_text
from keygraph_resolvers.steps.payload import Payload, PayloadStep, Results
from keygraph_resolvers.steps.selection import SelectedField
from keygraph_resolvers.steps.step import Below, Starts, Step, StepCost

_AT_ONCE = 8
"""How many transactions of one mutation are sent at once: more of them would often conflict at the same nodes."""
_OF_A_SEARCH = 2
"""The round trips of finding what names the marked nodes: by indexes, then in the table."""

_Outcome: TypeAlias = Payload | Exception


class _Asked(NamedTuple):
    """The requests of one transaction."""

    inputs: Sequence[Input]
    requests: list[list[WriteRequest]]
    """The requests of each input."""
    key: IdempotencyKey | None

    @property
    def all_requests(self) -> list[WriteRequest]:
        return [request for requests in self.requests for request in requests]


class WriteStep(Step):
    """One mutation of the graph itself."""

    def __init__(self, selected: SelectedField, position: int) -> None:
        """`position` is its number among the operation's mutations."""
        self.suffix = selected.key
        self._position = position
        self._selected = selected
        self._kind = cast("Writes | WritesEach | WritesTogether", selected.kind)
        self.payloads: Sequence[PayloadStep] = ()
        """The steps for the fields of its payloads that lead on."""
        self.read_before: set[Writes] = set()
        """The writes of which a payload says whether there was a record before."""

    # --- Writing ------------------------------------------------------------------------------------------

    async def carry_out(self, run: Run, root: Object) -> None:
        """Writes, and reads what is selected from the payload. An error replaces the payload."""
        read = Read((self.suffix,), run.meter.last_round_trip + 1)
        try:
            outcomes = await self._write(run, read)
        except Exception as error:
            root.found[self._selected] = error
            return
        root.found[self._selected] = (
            outcomes[0]
            if isinstance(self._kind, Writes)
            else self._results(outcomes, self._told(run).client_mutation_id)
        )
        if any(step.leads_on(run) for step in self.payloads):
            await run.read(lambda run, _, __, ___, place: self.start(run, [root], read.round_trip, place))
        else:
            self.start(run, [root], read.round_trip, "")

    def start(self, run: Run, objects: Sequence[Object], round_trip: int, place: str) -> None:
        """Reads what is selected from the payloads."""
        for root in objects:
            payloads: Sequence[Payload] = root.found[self._selected].payloads
            for step in self.payloads:
                records = [each.record for each in payloads if each.kind == step.kind]
                step.start(run, records, round_trip, place + self.suffix)

    async def _write(self, run: Run, read: Read) -> list[_Outcome]:
        """Returns the outcome of each input, in order. Raises errors that keep all of them from being written."""
        asked = self._asked(run)
        if self._told(run).is_atomic:
            return await self._written(run, asked, read)
        outcomes: list[_Outcome] = []
        for start in range(0, len(asked), _AT_ONCE):
            some = [(each, Read(read.places, read.round_trip)) for each in asked[start : start + _AT_ONCE]]
            for came in await asyncio.gather(*(self._tried(run, each, own) for each, own in some)):
                outcomes += came
            read.round_trip = max(own.round_trip for _, own in some)
        return outcomes

    async def _tried(self, run: Run, asked: _Asked | Exception, read: Read) -> list[_Outcome]:
        try:
            return await self._written(run, [asked], read)
        except Exception as error:
            return [error]

    async def _written(self, run: Run, asked: Sequence[_Asked | Exception], read: Read) -> list[_Outcome]:
        """Returns the outcomes of the inputs of one transaction."""
        payloads: list[_Outcome] = []
        for each in asked:
            if isinstance(each, Exception):
                raise each
            token = READ.set(read)
            try:
                answer = await Writer(run.graph, run.meter, run.access).write(each.all_requests, each.key)
            finally:
                READ.reset(token)
            number = 0
            for given, requests in zip(each.inputs, each.requests, strict=True):
                # The first request of an input is for its own record.
                kind, mutation_id = Writes(given.action, given.record), given.values.get(MUTATION_ID)
                payloads.append(Payload(kind, requests[0], answer.done[number], mutation_id))
                number += len(requests)
        return payloads

    def _results(self, outcomes: Sequence[_Outcome], mutation_id: str | None) -> Results:
        """Returns the payload of a mutation with several inputs."""
        payloads = [each for each in outcomes if isinstance(each, Payload)]
        found: dict[Any, Any] = {}
        for field in self._selected.only.having(ResultList):
            if isinstance(self._kind, WritesTogether):
                below = field.only.having(Writes)
                found[field] = [
                    Results({each: payload if payload.kind == each.kind else None for each in below})
                    for payload in payloads
                ]
            else:
                found[field] = outcomes
        return Results(found, payloads, mutation_id)

    # --- What is requested --------------------------------------------------------------------------------

    def _told(self, run: Run) -> Told:
        return self._selected.told(run, lambda given: told_of(run.graph, self._kind, given))

    def _asked(self, run: Run) -> Sequence[_Asked | Exception]:
        """Returns each transaction, or its error if there are several. Raises an error that affects all.

        Made once for a run, because new records get new ids.
        """
        found = run.told.get(self)
        if found is None:
            try:
                found = self._made(run)
            except Exception as error:
                found = error
            run.told[self] = found
        if isinstance(found, Exception):
            raise found
        return cast("Sequence[_Asked | Exception]", found)

    def _made(self, run: Run) -> list[_Asked | Exception]:
        told = self._told(run)
        if told.is_atomic:
            return [self._transaction(run, told, told.inputs, ())] if told.inputs else []
        found: list[_Asked | Exception] = []
        for number, each in enumerate(told.inputs):
            try:
                found.append(self._transaction(run, told, [each], (number,)))
            except KeygraphError as error:
                found.append(error)
        return found

    def _transaction(self, run: Run, told: Told, inputs: Sequence[Input], number: tuple[int, ...]) -> _Asked:
        """Returns the requests of one transaction; `number` is its number among the mutation's transactions."""
        requests = write_requests(run.graph, inputs, self.read_before)
        key: IdempotencyKey | None = None
        # A viewer's idempotency key has no meaning for other viewers.
        asker = run.viewer.identity
        own = inputs[0].values.get(IDEMPOTENCY_KEY)
        if own is not None:
            key = idempotency_key(inputs, (own, asker), (*inputs[0].where, IDEMPOTENCY_KEY))
        elif told.idempotency_key is not None:
            key = idempotency_key(inputs, (told.idempotency_key, *number, asker), ("input", IDEMPOTENCY_KEY))
        elif run.idempotency_key is not None:
            key = idempotency_key(inputs, (run.idempotency_key, self._position, *number, asker), ())
        return _Asked(inputs, requests, key)

    def is_noted(self, run: Run) -> bool:
        """Returns whether something may have been written before, under an idempotency key."""
        return any(isinstance(each, _Asked) and each.key is not None for each in self._asked(run))

    # --- What it costs ------------------------------------------------------------------------------------

    def cost(self, run: Run, starts: Starts) -> tuple[StepCost, Below]:
        cost, counts = self._costs(run)
        if not counts:
            return StepCost(), ()
        after = starts.after(cost.round_trips)
        own = replace(cost, round_trips=max(starts.round_trips, default=0) + cost.round_trips - 1)
        below = [(step, counts.get(step.kind, 0)) for step in self.payloads]
        return own, [(step, after.times(count)) for step, count in below if count]

    def _costs(self, run: Run) -> tuple[StepCost, Mapping[Writes, int]]:
        """Returns the cost of all transactions, and the number of payloads of each kind. `round_trips` is a count."""
        found = run.told.get((self, "cost"))
        if found is None:
            found = run.told[self, "cost"] = self._summed(run)
        return cast("tuple[StepCost, Mapping[Writes, int]]", found)

    def _summed(self, run: Run) -> tuple[StepCost, Mapping[Writes, int]]:
        try:
            asked = [each for each in self._asked(run) if isinstance(each, _Asked)]
        except Exception:
            asked = []  # nothing is written; the answer says why
        writer, cost = Writer(run.graph, run.meter, run.access), StepCost()
        for each in asked:
            cost.add(_cost_of(writer, each))
        cost.round_trips *= -(-len(asked) // _AT_ONCE)
        counts: dict[Writes, int] = {}
        for given in (given for each in asked for given in each.inputs):
            kind = Writes(given.action, given.record)
            counts[kind] = counts.get(kind, 0) + 1
        return cost, counts

    def bound_key(self, run: Run) -> Hashable:
        """Returns what decides its cost."""
        cost, counts = self._costs(run)
        figures = (cost.requests, cost.round_trips, cost.items, cost.read_units)
        return figures, tuple(counts.items()), bool(counts) and self.is_noted(run)

    # --- How it is explained --------------------------------------------------------------------------------

    def explained(self, view: View, where: Where) -> Iterator[Explained]:
        place, graph = where.place + self.suffix, view.run.graph
        here = Where(place, where.key, where.round_trip)
        try:
            for asked in self._asked(view.run):
                if isinstance(asked, Exception):
                    raise asked
                if not view.may_go_on():
                    break
                names = tuple(dict.fromkeys(given.record.name for given in asked.inputs))
                described = describe_write(graph, asked.all_requests, asked.key, view.run.access)
                at = here
                if described.read is not None:
                    yield Explained("read first", at, names, requests=(described.read,))
                    at = at.later()
                if described.read_later:
                    yield Explained("read first", at, names, requests=described.read_later)
                    at = at.later()
                if described.marks:
                    yield Explained("mark", at, names, requests=described.marks)
                    for _ in described.marks:
                        at = at.later()
                    yield Explained("find what names", at, names, requests=described.searches)
                    for _ in range(_OF_A_SEARCH):
                        at = at.later()
                shown = Explained("write", at, names, transactions=described.transactions)
                if isinstance(self._kind, Writes):
                    at = at.later(key="the key of what was written", identity=described.identity)
                else:
                    at = at.later(key="the key of what was written", is_many=True)
                if asked is self._asked(view.run)[-1]:
                    shown.steps = [each for step in self.payloads for each in step.explained(view, at)]
                yield shown
        except KeygraphError as error:
            yield Explained("write", here, (), problem=problem_text(error))


def _cost_of(writer: Writer, asked: _Asked) -> StepCost:
    """Returns the cost of one transaction, with its reads. Its `round_trips` is their number."""
    requests = asked.all_requests
    first, marks = len(writer.needed(requests)), writer.marked(requests)
    # What was done under the key is read with what must be known; if nothing must be, the transaction tells it.
    is_noted = asked.key is not None and (first > 0 or marks > 0)
    reads = [first + is_noted, writer.needed_later(requests)]
    size = max([request.record.item_bytes for request in requests])
    cost = StepCost(apart=1, round_trips=1)
    for count in filter(None, reads):
        cost.apart += -(-count // BATCH_GET_KEYS)
        cost.round_trips += 1
        cost.items += count
        cost.read_units += count * read_units(size, consistent=True)
    searched = writer.searched(requests)
    if searched:
        _add_search(cost, searched, size)
        # The marks are set one after the other, and removed so if something names a node and nothing is written.
        cost.apart += 2 * marks
        cost.round_trips += 2 * marks - 1
    return cost


def _add_search(cost: StepCost, searched: Sequence[Query], size: int) -> None:
    """Adds the cost of finding what names the nodes: its first pages."""
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
