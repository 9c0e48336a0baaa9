"""Mutations: the writes, and the client's selections from the written records.

A write is sent before its payload is read. Created records are then known, and are not read again; changed records are
read consistently.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import InitVar, dataclass
from typing import Any, NamedTuple, TypeAlias, cast

from keygraph.dynamo.items import Item
from keygraph.dynamo.limits import BATCH_GET_KEYS
from keygraph.dynamo.store import read_units
from keygraph.errors import InputPath, KeygraphError, again
from keygraph.writing.context import WriteContext
from keygraph.writing.requests import Done, Move, WriteRequest
from keygraph.writing.sending.describe import DescribedWrite, describe_write
from keygraph.writing.sending.idempotency import IdempotencyKey
from keygraph.writing.sending.sender import Outline
from keygraph.writing.sending.writer import write
from keygraph_resolvers.engine import engine
from keygraph_resolvers.engine.requests import Begun, Start
from keygraph_resolvers.engine.worst import QueryRequests, StepCost, StepStart, Transactions, Wait, Worst
from keygraph_resolvers.errors import as_value
from keygraph_resolvers.naming.global_ids import global_id
from keygraph_resolvers.naming.mutation_names import IDEMPOTENCY_KEY, MUTATION_ID
from keygraph_resolvers.read.meter import READ, Read
from keygraph_resolvers.read.objects import Object
from keygraph_resolvers.read.run import Run
from keygraph_resolvers.schema.field_kinds import ResultList, Writes, WritesActions, WritesEach
from keygraph_resolvers.schema.mutations import (
    Input,
    MutationArguments,
    idempotency_key,
    mutation_arguments,
    write_requests,
)
from keygraph_resolvers.steps.get import Get
from keygraph_resolvers.steps.selection import SelectedField
from keygraph_resolvers.steps.step import Step

_AT_ONCE = 8
"""How many transactions of one mutation are sent at once: more of them would often conflict at the same nodes."""
SEARCH_ROUND_TRIPS = 2
"""The round trips of finding what names the marked nodes: by indexes, then in the table."""


class Payload:
    """The payload of a mutation: the record that it wrote, or the key of a deleted one."""

    item: Item | None = None
    error: None = None
    is_missing = False

    def __init__(
        self, kind: Writes, request: WriteRequest, done: Done, client_mutation_id: str | None
    ) -> None:
        self.kind = kind
        self._request = request
        self.record = Object(done.record, done.identity, done.item)
        self.detached = done.detached
        self.is_new = done.is_new
        self.client_mutation_id = client_mutation_id
        self.found = self.record.found

    @property
    def payloads(self) -> tuple[Payload]:
        """The payloads of the mutation, as `Results` has them."""
        return (self,)

    @property
    def id(self) -> str:
        return self.record.id

    @property
    def previous_id(self) -> str:
        """The global id of the record before it was moved."""
        return global_id(self.kind.record, cast(Move, self._request).identity)


@dataclass(eq=False)
class Results:
    """The results of several writes, or of one of them: what was found for its fields."""

    found: dict[Any, Any]
    payloads: Sequence[Payload] = ()
    """Those of the writes that were carried out."""
    client_mutation_id: str | None = None
    item: Item | None = None
    error: None = None
    is_missing: bool = False


_Outcome: TypeAlias = Payload | Exception


class _Transaction(NamedTuple):
    """The requests of one transaction."""

    inputs: Sequence[Input]
    requests: list[list[WriteRequest]]
    all_requests: list[WriteRequest]
    key: IdempotencyKey | None
    outline: Outline


class _Prepared(NamedTuple):
    """What a mutation writes."""

    transactions: list[_Transaction | Exception]
    """Each transaction, or its error if there are several."""
    cost: StepCost
    """The cost of all of them. Its `round_trips` is their number."""
    counts: Counter[Writes]
    """The number of payloads of each kind."""
    error: Exception | None = None
    """Why nothing is written."""


class WriteStep(Step):
    """One mutation of the graph itself."""

    def __init__(self, selected: SelectedField, position: int) -> None:
        """`position` is its number among the operation's mutations."""
        self.suffix = selected.key
        self._position = position
        self._selected = selected
        self._kind = cast("Writes | WritesEach | WritesActions", selected.kind)
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
            root.found[self._selected] = as_value(error)
            return
        root.found[self._selected] = (
            outcomes[0]
            if isinstance(self._kind, Writes)
            else self._results(outcomes, self._arguments(run).client_mutation_id)
        )
        if any(step.leads_on(run, records) for step, records in self._written_records(root)):
            await engine.read(run, self, root, read.round_trip)

    def run(self, op: Run, objects: Sequence[Object]) -> Begun:
        """Reads what is selected from the payloads."""
        return [Start(step, records) for root in objects for step, records in self._written_records(root)]

    def _written_records(self, root: Object) -> list[tuple[PayloadStep, list[Object]]]:
        """Returns the steps for the payloads, each with the records of its kind."""
        payloads: Sequence[Payload] = root.found[self._selected].payloads
        return [
            (step, [each.record for each in payloads if each.kind == step.kind]) for step in self.payloads
        ]

    async def _write(self, run: Run, read: Read) -> list[_Outcome]:
        """Returns the outcome of each input, in order. Raises errors that keep all of them from being written."""
        transactions = self._transactions(run)
        if self._arguments(run).is_atomic:
            return await self._written(run, transactions, read)
        outcomes: list[_Outcome] = []
        for first in range(0, len(transactions), _AT_ONCE):
            at_once = transactions[first : first + _AT_ONCE]
            some = [(each, Read(read.places, read.round_trip)) for each in at_once]
            for found in await asyncio.gather(*(self._tried(run, each, own) for each, own in some)):
                outcomes += found
            read.round_trip = max(own.round_trip for _, own in some)
        return outcomes

    async def _tried(self, run: Run, transaction: _Transaction | Exception, read: Read) -> list[_Outcome]:
        try:
            return await self._written(run, [transaction], read)
        except Exception as error:
            return [as_value(error)]

    async def _written(
        self, run: Run, transactions: Sequence[_Transaction | Exception], read: Read
    ) -> list[_Outcome]:
        """Returns the outcomes of the inputs of one transaction, which is the only one, or none."""
        payloads: list[_Outcome] = []
        for each in transactions:
            if isinstance(each, Exception):
                raise again(each)
            token = READ.set(read)
            try:
                # What was written before may decide what a viewer sees.
                outline = each.outline if run.access is None else None
                done = await write(run.graph, run.meter, each.all_requests, each.key, run.access, outline)
            finally:
                READ.reset(token)
            number = 0
            for given, requests in zip(each.inputs, each.requests, strict=True):
                # The first request of an input is for its own record.
                kind, mutation_id = Writes(given.action, given.record), given.values.get(MUTATION_ID)
                payloads.append(Payload(kind, requests[0], done[number], mutation_id))
                number += len(requests)
        return payloads

    def _results(self, outcomes: Sequence[_Outcome], mutation_id: str | None) -> Results:
        """Returns the payload of a mutation with several inputs."""
        payloads = [each for each in outcomes if isinstance(each, Payload)]
        found: dict[Any, Any] = {}
        for field in self._selected.only.having(ResultList):
            if isinstance(self._kind, WritesActions):
                below = field.only.having(Writes)
                found[field] = [
                    Results({each: payload if payload.kind == each.kind else None for each in below})
                    for payload in payloads
                ]
            else:
                found[field] = outcomes
        return Results(found, payloads, mutation_id)

    # --- What is requested --------------------------------------------------------------------------------

    def _arguments(self, run: Run) -> MutationArguments:
        return self._selected.cached(run, lambda given: mutation_arguments(run.graph, self._kind, given))

    def preparing(self, run: Run) -> Iterator[None]:
        """Makes its transactions, and adds up their cost, a part of one in each step. Later calls do nothing."""
        if self in run.cached:
            return
        prepared = _Prepared([], StepCost(), Counter())
        try:
            yield from self._prepare(run, prepared)
        except Exception as error:
            prepared = _Prepared([], StepCost(), Counter(), as_value(error))
        run.cached[self] = prepared

    def _prepare(self, run: Run, prepared: _Prepared) -> Iterator[None]:
        arguments, context = self._arguments(run), run.graph.made(WriteContext).of(run.access)
        inputs = [arguments.inputs] * bool(arguments.inputs)
        for number, some in enumerate(
            inputs if arguments.is_atomic else [[each] for each in arguments.inputs]
        ):
            yield
            try:
                own = () if arguments.is_atomic else (number,)
                transaction = self._transaction(run, context, arguments.idempotency_key, some, own)
            except KeygraphError as error:
                if arguments.is_atomic:
                    raise
                prepared.transactions.append(as_value(error))
                continue
            prepared.transactions.append(transaction)
            yield
            prepared.cost.add(_cost_of(transaction))
            prepared.counts.update(Writes(each.action, each.record) for each in some)
        sent = sum(isinstance(each, _Transaction) for each in prepared.transactions)
        prepared.cost.round_trips *= -(-sent // _AT_ONCE)

    def _prepared(self, run: Run) -> _Prepared:
        """Returns what it writes, made once for a run, because new records get new ids."""
        for _ in self.preparing(run):
            """All at once, unless it was prepared before."""
        return cast(_Prepared, run.cached[self])

    def _transactions(self, run: Run) -> Sequence[_Transaction | Exception]:
        """Returns each transaction, or its error if there are several. Raises an error that affects all."""
        prepared = self._prepared(run)
        if prepared.error is not None:
            raise again(prepared.error)
        return prepared.transactions

    def _transaction(
        self,
        run: Run,
        context: WriteContext,
        common_key: str | None,
        inputs: Sequence[Input],
        number: tuple[int, ...],
    ) -> _Transaction:
        """Returns the requests of one transaction; `number` is its number among the mutation's transactions."""
        requests = write_requests(run.graph, inputs, self.read_before)
        own, key = inputs[0].values.get(IDEMPOTENCY_KEY), None
        given: tuple[Any, ...] = (own,)
        where: InputPath = (*inputs[0].where, IDEMPOTENCY_KEY)
        if own is None and common_key is not None:
            given, where = (common_key, *number), ("input", IDEMPOTENCY_KEY)
        elif own is None:
            given, where = (run.idempotency_key, self._position, *number), ()
        if given[0] is not None:
            # A viewer's idempotency key has no meaning for other viewers.
            key = idempotency_key(inputs, (*given, run.viewer.identity), where)
        every = [request for several in requests for request in several]
        return _Transaction(inputs, requests, every, key, Outline(context, every, key))

    def is_noted(self, run: Run) -> bool:
        """Returns whether something may have been written before, under an idempotency key."""
        return any(
            isinstance(each, _Transaction) and each.key is not None for each in self._transactions(run)
        )

    # --- What it costs ------------------------------------------------------------------------------------

    def worst(self, run: Run) -> Worst:
        # If nothing is written, the answer says why.
        _, cost, counts, _ = self._prepared(run)
        yield Transactions(self._described)
        if counts:
            yield QueryRequests(
                cost.unbatched, cost.items, cost.read_units, chain=cost.round_trips, is_open=cost.is_open
            )
            yield Wait("write", cost.round_trips, cost.round_trips, usual=0)
            for step in self.payloads:
                if counts[step.kind]:
                    key, identities = "the key of what was written", self._identities
                    yield StepStart(step, counts[step.kind], key=key, identities=identities)

    # --- How it is explained --------------------------------------------------------------------------------

    def _described(self, run: Run) -> Iterator[tuple[int, tuple[str, ...], DescribedWrite]]:
        for number, transaction in enumerate(self._transactions(run)):
            if isinstance(transaction, Exception):
                raise again(transaction)
            names = tuple(dict.fromkeys(given.record.name for given in transaction.inputs))
            described = describe_write(run.graph, transaction.all_requests, transaction.key, run.access)
            yield number // _AT_ONCE, names, described

    def _identities(self, run: Run) -> list[tuple[str, ...]]:
        """Returns the identity of the written record, if the mutation writes one and the input has it."""
        written = [each.identity for _, _, each in self._described(run)]
        return [each for each in written if each] if isinstance(self._kind, Writes) else []


def _cost_of(transaction: _Transaction) -> StepCost:
    """Returns the cost of one transaction, with its reads. Its `round_trips` is their number."""
    outline = transaction.outline
    size = max([request.record.item_bytes for request in transaction.all_requests])
    cost = StepCost(unbatched=1, round_trips=1)
    for count in filter(None, (len(outline.keys), *outline.later)):
        cost.unbatched += -(-count // BATCH_GET_KEYS)
        cost.round_trips += 1
        cost.items += count
        cost.read_units += count * read_units(size, consistent=True)
    if outline.list_ends:
        # One more item than may be removed from each list.
        count = outline.list_ends * (len(transaction.all_requests) + 1)
        cost.unbatched += outline.list_ends
        cost.round_trips += 1
        cost.items += count
        cost.read_units += outline.list_ends * read_units(count * size, consistent=True)
    if outline.spread:
        count = outline.spread + len(outline.keys)
        cost.unbatched += 1 + 2 * -(-count // BATCH_GET_KEYS)
        cost.round_trips += 3
        cost.items += count
        cost.read_units += count * read_units(size, consistent=True)
    if outline.nodes:
        # The marks of nodes are set one after the other, those of a node's shards at once, and all are removed at once if
        # something names a node and nothing is written.
        several = [shards for _, shards in outline.marked]
        cost.unbatched += 2 * (len(several) + sum(map(len, several)))
        cost.round_trips += len(several) + sum(map(bool, several)) + SEARCH_ROUND_TRIPS
        cost.is_open = True
    for query in (each.query for each in outline.searches):
        count = query.limit or 1
        cost.unbatched += 1
        cost.items += count
        cost.read_units += read_units(count * size, query.consistent)
        if query.index is not None:
            # Each item that an index leads to is read from the table.
            cost.unbatched += 1
            cost.items += count
            cost.read_units += count * read_units(size, consistent=True)
    return cost


# --- What is read of what was written -----------------------------------------------------------------


@dataclass(eq=False)
class PayloadStep(Step):
    """Continues from the payloads of one kind of write."""

    name: InitVar[str]
    kind: Writes
    records: InitVar[Sequence[tuple[SelectedField, Get]]]
    """The fields with the written record."""
    ends: Sequence[Step]
    """They continue from the records' ends."""
    is_noted: Callable[[Run], bool]
    """Returns whether a write may have been carried out before, so that the record has to be read."""

    def __post_init__(self, name: str, records: Sequence[tuple[SelectedField, Get]]) -> None:
        self.suffix = f".{name}" if name else ""
        self._records = [_RecordStep(each, get, self._is_known) for each, get in records]
        self._steps: list[Step] = [*self._records, *self.ends]

    def _is_known(self, run: Run) -> bool:
        """Returns whether the written item is known, because all of it is written."""
        return self.kind.action in ("create", "put", "move") and not self.is_noted(run)

    def leads_on(self, op: Run, objects: Sequence[Object]) -> bool:
        """Returns whether anything is read, or decided by rules, for what is selected of the written records."""
        if op.access is None and all(each.item is not None for each in objects):
            return bool(self.ends) or any(each.leads_on for each in self._records)
        return bool(self._steps)

    def run(self, op: Run, objects: Sequence[Object]) -> Begun:
        """Starts from `objects`, the written records."""
        return [Start(step, objects) for step in self._steps]

    def worst(self, run: Run) -> Worst:
        for step in self._steps:
            yield StepStart(step)


class _RecordStep(Step):
    """Continues from the record in a payload: without reading it, if its item is known."""

    def __init__(self, selected: SelectedField, get: Get, is_known: Callable[[Run], bool]) -> None:
        self.suffix = f".{selected.key}"
        self._get = get
        self._is_known = is_known
        self.leads_on = not get.fields.is_end
        """Whether something continues from records that are known."""

    def run(self, op: Run, objects: Sequence[Object]) -> Begun:
        return [Start(self._get, objects)]

    def worst(self, run: Run) -> Worst:
        yield StepStart(self._get.fields if self._is_known(run) else self._get)
