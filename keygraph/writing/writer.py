"""Carries out writes: reads what must be known, sends one transaction, and says what its failure means.

Where somebody else changed what was read in the meantime, it is read again, after a pause, until the deadline.
"""

from __future__ import annotations

import uuid
from collections.abc import Sequence
from dataclasses import dataclass, replace

from keygraph.dynamo.items import Item
from keygraph.dynamo.store import BatchGet, Cost, Store, Transaction
from keygraph.dynamo.table import Key
from keygraph.errors import (
    ItemTooLarge,
    Reason,
    Refusal,
    TransactionCanceled,
    TransactionTooLarge,
    WriteRefused,
)
from keygraph.graph import Graph
from keygraph.writing.idempotency import IdempotencyKey, done_before, note_key, note_step
from keygraph.writing.items import Refusals
from keygraph.writing.requests import WriteAnswer, WriteRequest
from keygraph.writing.steps import Step, StepMaker, Stored

_TRIES = 10
_PASSING = {"TransactionConflict", "ProvisionedThroughputExceeded", "ThrottlingError"}
"""What another try may not meet."""


class Writer:
    """Writes to one graph in one store."""

    def __init__(self, graph: Graph, store: Store) -> None:
        self._graph = graph
        self._store = store
        self._steps = StepMaker(graph)

    async def write(
        self, requests: Sequence[WriteRequest], idempotency_key: IdempotencyKey | None = None
    ) -> WriteAnswer:
        """Carries out all requests or none. Raises WriteRefused, and what the store raises.

        Under an idempotency key that is known, nothing is written, and the answer is what was done the first time.
        """
        note = () if idempotency_key is None else (note_key(self._graph, idempotency_key),)
        reads = _Reads(also=note if self.needed(requests) else ())
        cost = Cost()
        for _ in range(_TRIES):
            stored, read = await self._read(requests, reads)
            cost += read
            if idempotency_key is not None:
                known = done_before(self._graph, idempotency_key, stored.get(*note))
                if known is not None:
                    return WriteAnswer(known, cost)
            refusals = Refusals()
            steps, done = self._steps.steps(requests, stored, refusals)
            refusals.stop()
            if idempotency_key is not None:
                steps.append(note_step(self._graph, idempotency_key, done))
            try:
                written = await self._store.send(
                    Transaction(tuple(step.action for step in steps), uuid.uuid4().hex)
                )
            except TransactionTooLarge as error:
                at = requests[0].where[:1]
                raise WriteRefused([Refusal(error.code, error.parts, at, error.details)]) from error
            except ItemTooLarge:
                if reads.is_whole:
                    raise
                # How large an update makes an item is known where the item is.
                reads = _Reads(note, is_whole=True)
            except TransactionCanceled as canceled:
                cost += Cost(requests=1)
                if note and _is_failed(canceled.reasons[-1]):
                    reads = replace(reads, also=note)
                    continue
                found = _refusals(steps, canceled)
                if found:
                    raise WriteRefused(found) from canceled
            else:
                return WriteAnswer(tuple(done), cost + written.cost)
        told = ("Others change the same items all the time. Try again.",)
        raise WriteRefused([Refusal("CONFLICT", told, requests[0].where)])

    def needed(
        self, requests: Sequence[WriteRequest], stored: Stored | None = None, *, is_whole: bool = False
    ) -> tuple[Key, ...]:
        """The keys of what must be known before anything is written, as far as what is known tells.

        `is_whole` asks for all items that are changed.
        """
        keys = (
            key
            for request in requests
            for key in self._steps.needed(request, stored or {}, is_whole=is_whole)
        )
        return tuple(key for key in dict.fromkeys(keys) if stored is None or key not in stored)

    async def _read(self, requests: Sequence[WriteRequest], reads: _Reads) -> tuple[Stored, Cost]:
        stored: dict[Key, Item | None] = {}
        cost = Cost()
        keys = (*self.needed(requests, is_whole=reads.is_whole), *reads.also)
        while keys:
            batch = await self._store.send(BatchGet(keys, consistent=True))
            stored |= zip(keys, batch.items, strict=True)
            cost += batch.cost
            keys = self.needed(requests, stored, is_whole=reads.is_whole)
        return stored, cost


@dataclass(frozen=True, slots=True)
class _Reads:
    """What is read before a write, beside what its requests need."""

    also: tuple[Key, ...]
    is_whole: bool = False
    """Whether all items that are changed are read."""


def _refusals(steps: Sequence[Step], canceled: TransactionCanceled) -> list[Refusal]:
    """What the failed conditions mean; nothing where another try may succeed. Raises what is no condition's."""
    failed: list[tuple[Step, Item | None]] = []
    for step, reason in zip(steps, canceled.reasons, strict=True):
        if reason is None or reason.code in _PASSING:
            continue
        if not _is_failed(reason):
            raise canceled
        failed.append((step, reason.item))
    # Where the edge is not as it was read, its other item need not be either.
    told = [each for each in failed if not each[0].is_partner] or failed
    return [refusal for step, item in told if (refusal := step.refusal(item)) is not None]


def _is_failed(reason: Reason | None) -> bool:
    """Whether it is a condition that has failed."""
    return reason is not None and reason.code == "ConditionalCheckFailed"
