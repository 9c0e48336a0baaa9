"""Carries out writes: reads what must be known, sends one transaction, and says what its failure means.

Where somebody else changed what was read in the meantime, it is read again, after a pause, until the deadline.
"""

from __future__ import annotations

import uuid
from collections.abc import Sequence

from keygraph.dynamo.items import Item
from keygraph.dynamo.store import BatchGet, Cost, Store, Transaction
from keygraph.dynamo.table import Key
from keygraph.errors import Refusal, TransactionCanceled, WriteRefused
from keygraph.graph import Graph
from keygraph.writing.items import Refusals
from keygraph.writing.requests import WriteAnswer, WriteRequest
from keygraph.writing.steps import Step, StepMaker, Stored

_TRIES = 10


class Writer:
    """Writes to one graph in one store."""

    def __init__(self, graph: Graph, store: Store) -> None:
        self._graph = graph
        self._store = store
        self._steps = StepMaker(graph)

    async def write(self, requests: Sequence[WriteRequest]) -> WriteAnswer:
        """Carries out all requests or none. Raises WriteRefused, and what the store raises."""
        cost = Cost()
        for _ in range(_TRIES):
            stored, read = await self._read(requests)
            refusals = Refusals()
            steps, done = self._steps.steps(requests, stored, refusals)
            refusals.stop()
            cost += read
            try:
                written = await self._store.send(
                    Transaction(tuple(step.action for step in steps), uuid.uuid4().hex)
                )
            except TransactionCanceled as canceled:
                found = _refusals(steps, canceled)
                if found:
                    raise WriteRefused(found) from canceled
                cost += Cost(requests=1)
                continue
            return WriteAnswer(tuple(done), cost + written.cost)
        told = ("Others change the same items all the time. Try again.",)
        raise WriteRefused([Refusal("CONFLICT", told, requests[0].where)])

    def needed(self, requests: Sequence[WriteRequest], stored: Stored | None = None) -> tuple[Key, ...]:
        """The keys of what must be known before anything is written, as far as what is known tells."""
        keys = (key for request in requests for key in self._steps.needed(request, stored or {}))
        return tuple(key for key in dict.fromkeys(keys) if stored is None or key not in stored)

    async def _read(self, requests: Sequence[WriteRequest]) -> tuple[Stored, Cost]:
        stored: dict[Key, Item | None] = {}
        cost = Cost()
        keys = self.needed(requests)
        while keys:
            batch = await self._store.send(BatchGet(keys, consistent=True))
            stored |= zip(keys, batch.items, strict=True)
            cost += batch.cost
            keys = self.needed(requests, stored)
        return stored, cost


def _refusals(steps: Sequence[Step], canceled: TransactionCanceled) -> list[Refusal]:
    """What the failed conditions mean; nothing where another try may succeed. Raises what is no condition's."""
    found: list[Refusal] = []
    for step, reason in zip(steps, canceled.reasons, strict=True):
        if reason is None:
            continue
        if reason.code != "ConditionalCheckFailed":
            if reason.code == "TransactionConflict":
                continue
            raise canceled
        refusal = step.refusal(reason.item)
        if refusal is not None:
            found.append(refusal)
    return found
