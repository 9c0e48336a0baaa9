"""Sending what one write needs, and reading what the store says where it refuses.

What a transaction refuses is told as the conditions that failed mean it; where somebody else was faster, or where more has to
be known first, the write is tried again.
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, cast

from uuid_utils import uuid4

from keygraph.codes import Code
from keygraph.dynamo.actions import Action, CheckItem, UpdateItem, key_of
from keygraph.dynamo.items import Item
from keygraph.dynamo.store import Answer, BatchGet, Cost, Request, Store, Transaction, Write
from keygraph.dynamo.table import Key
from keygraph.errors import (
    ConditionFailed,
    ItemTooLarge,
    Reason,
    Refusal,
    TransactionCanceled,
    TransactionTooLarge,
    WriteRefused,
)
from keygraph.graph import Graph
from keygraph.model.expiry import now
from keygraph.writing.ground import Stored
from keygraph.writing.marks import is_marked, removal_of_old
from keygraph.writing.requests import Done, WriteRequest
from keygraph.writing.sending.idempotency import IdempotencyKey, done_before, note_key, note_step
from keygraph.writing.step import TransactionStep
from keygraph.writing.steps import StepMaker

_TRIES = 10
_PAUSE = 0.005
"""The longest pause before the second try, in seconds; it doubles with each one."""

_PASSING = {"TransactionConflict", "ProvisionedThroughputExceeded", "ThrottlingError"}
"""What another try may not meet."""


class TransactionSender:
    """Sends what one write needs, and knows what that costs."""

    def __init__(
        self,
        graph: Graph,
        store: Store,
        steps: StepMaker,
        requests: Sequence[WriteRequest],
        idempotency_key: IdempotencyKey | None = None,
    ) -> None:
        self.graph = graph
        self.steps = steps
        self.requests = requests
        self.cost = Cost()
        self.written: dict[Key, Action] = {}
        """What its transactions have done to items."""
        self._store = store
        self._key = idempotency_key
        self._note = () if idempotency_key is None else (note_key(graph, idempotency_key),)
        self._is_noted = False
        self._is_whole = False
        self._are_nodes_read = False
        self._tries = 0

    @property
    def own_actions(self) -> int:
        """How many actions of the last transaction are none of the requests'."""
        return len(self._note)

    async def send(self, request: Request[Answer]) -> Answer:
        """What the store answers."""
        answer = await self._store.send(request)
        self.cost += cast(Any, answer).cost
        return answer

    async def write_if(self, action: UpdateItem) -> bool:
        """Changes one item; whether its condition held, and no transaction of somebody else was at it."""
        try:
            await self.send(Write(action))
        except (ConditionFailed, TransactionCanceled):
            self.cost += Cost(requests=1)
            return False
        return True

    # --- What must be known -------------------------------------------------------------------------------

    def needed(self, requests: Sequence[WriteRequest], stored: Stored | None = None) -> tuple[Key, ...]:
        """The keys of what must be known before anything is written, as far as what is known tells."""
        found: dict[Key, None] = {}
        there = stored or {}
        for request in requests:
            keys = self.steps.needed(request, there, is_whole=self._is_whole, with_nodes=self._are_nodes_read)
            if keys:
                found.update(dict.fromkeys(keys))
        return tuple([key for key in found if key not in there])

    async def read(self, *, is_noted: bool) -> tuple[Stored, tuple[Done, ...] | None]:
        """What must be known, and what was done before under the idempotency key.

        `is_noted` asks for the latter even where nothing else has to be read.
        """
        keys = self.needed(self.requests)
        also = self._note if keys or is_noted or self._is_noted else ()
        stored = await self._got((*keys, *also), {})
        if keys:
            stored = await self.stored(self.requests, stored)
        known = [done_before(self.graph, self._key, stored.get(note)) for note in self._note if self._key]
        return stored, known[0] if known else None

    def read_whole(self) -> None:
        """The next try reads what is changed: a rule of who may write may be about what a key of an index alone says."""
        self._is_whole = self._is_whole or self.steps.access is not None

    async def stored(self, requests: Sequence[WriteRequest], known: Stored) -> Stored:
        """What must be known for requests of which some is known."""
        while keys := self.needed(requests, known):
            known = await self._got(keys, known)
        return known

    async def _got(self, keys: tuple[Key, ...], known: Stored) -> Stored:
        if not keys:
            return known
        batch = await self.send(BatchGet(keys, consistent=True))
        return {**known, **dict(zip(keys, self.live(batch.items), strict=True))}

    def live(self, items: Iterable[Item | None]) -> Iterator[Item | None]:
        """The items, without those that have expired."""
        at, is_expired = now(), self.graph.is_expired
        return (None if item is None or is_expired(item, at) else item for item in items)

    # --- Transactions -------------------------------------------------------------------------------------

    async def finish(self, steps: Sequence[TransactionStep], done: Sequence[Done]) -> bool:
        """Whether the last steps were done, with the note of the idempotency key; else as `transact`."""
        notes = [note_step(self.graph, self._key, done)] if self._key is not None else []
        return await self.transact([*steps, *notes])

    async def transact(self, steps: Sequence[TransactionStep]) -> bool:
        """Whether the steps were done; False where another try may succeed.

        Raises WriteRefused with what failed conditions mean, and what the store raises.
        """
        try:
            await self.send(Transaction(tuple([step.action for step in steps]), uuid4().hex))
        except TransactionTooLarge as error:
            at = self.requests[0].where[:1]
            raise WriteRefused([Refusal(error.code, error.parts, at, error.details)]) from error
        except ItemTooLarge:
            if self._is_whole:
                raise
            # How large an update makes an item is known where the item is.
            self._is_whole = True
        except TransactionCanceled as canceled:
            self.cost += Cost(requests=1)
            await self._read_reasons(steps, canceled)
        else:
            self._tries = 0
            if self.steps.access is not None:
                actions = (step.action for step in steps if not isinstance(step.action, CheckItem))
                self.written |= {key_of(action, self.graph.table): action for action in actions}
            return True
        return False

    async def _read_reasons(self, steps: Sequence[TransactionStep], canceled: TransactionCanceled) -> None:
        """Raises WriteRefused, or makes the next try know more."""
        failed: list[tuple[TransactionStep, Reason]] = []
        for step, reason in zip(steps, canceled.reasons, strict=True):
            if reason is None or reason.code in _PASSING:
                continue
            if reason.code != "ConditionalCheckFailed":
                raise canceled
            failed.append((step, reason))
        if any(self._key_of(step) in self._note for step, _ in failed):
            self._is_noted = True
            return
        # Where the edge is not as it was read, its other item need not be either.
        told = [each for each in failed if not each[0].is_partner] or failed
        found = [refusal for step, reason in told if (refusal := step.refusal(reason.item)) is not None]
        if found:
            raise WriteRefused(found) from canceled
        self.read_whole()
        self._are_nodes_read = self._are_nodes_read or any(step.is_added_to for step, _ in failed)
        for step, reason in failed:
            # A mark that nobody respects any more is taken away.
            if reason.item is not None and is_marked(reason.item):
                removal = removal_of_old(self._key_of(step), reason.item)
                if removal is not None:
                    await self.write_if(removal)

    def _key_of(self, step: TransactionStep) -> Key:
        return key_of(step.action, self.graph.table)

    async def pause(self) -> None:
        """Waits before another try. Raises WriteRefused where there were enough."""
        self._tries += 1
        if self._tries == _TRIES:
            told = ("Others change the same items all the time. Try again.",)
            raise WriteRefused([Refusal(Code.CONFLICT, told, self.requests[0].where)])
        await asyncio.sleep(random.uniform(0, _PAUSE * 2**self._tries))
