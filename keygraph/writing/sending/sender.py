"""Sends the requests of one write, and interprets the store's reasons for a refusal.

The failed conditions of a refused transaction become its errors. If another write was faster, or if more items must be
read first, the write is tried again.
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
    WriteRefused,
)
from keygraph.graph import Graph
from keygraph.model.expiry import now
from keygraph.writing.ground import Stored
from keygraph.writing.marks import SECONDS, is_marked, removal_of_old
from keygraph.writing.requests import Done, WriteRequest
from keygraph.writing.sending.idempotency import (
    IdempotencyKey,
    done_before,
    note_check,
    note_key,
    note_step,
)
from keygraph.writing.step import TransactionStep
from keygraph.writing.steps import StepMaker

_TRIES = 10
_PAUSE = 0.005
"""The longest pause before the second try, in seconds; it doubles with each try."""

_BUSY = "Others change the same items all the time. Try again."
_MARKED = f"A node that this writes or names is being deleted or moved. Try again in {SECONDS} seconds."

_PASSING = {"TransactionConflict", "ProvisionedThroughputExceeded", "ThrottlingError"}
"""The codes that another try may not meet."""


class TransactionSender:
    """Sends what one write needs, and adds up its cost."""

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
        """The actions of its transactions, by item."""
        self._store = store
        self._key = idempotency_key
        self._note = () if idempotency_key is None else (note_key(graph, idempotency_key),)
        self._known: tuple[Done, ...] | None = None
        """What was done before under the idempotency key."""
        self._is_note_known = False
        """Whether it is certain what the note says, or that there is none."""
        self._is_whole = False
        self._are_nodes_read = False
        self._tries = 0
        self._is_marked = False
        """Whether the last try failed because a node is being deleted or moved."""

    @property
    def own_actions(self) -> int:
        """The number of actions of the last transaction that do not come from the requests."""
        return len(self._note)

    async def send(self, request: Request[Answer]) -> Answer:
        """Returns the store's answer."""
        answer = await self._store.send(request)
        self.cost += cast(Any, answer).cost
        return answer

    async def write_if(self, action: UpdateItem) -> bool:
        """Changes one item. Returns whether its condition held and no other transaction held the item."""
        try:
            await self.send(Write(action))
        except (ConditionFailed, TransactionCanceled):
            self.cost += Cost(requests=1)
            return False
        return True

    # --- What must be known -------------------------------------------------------------------------------

    def needed(self, requests: Sequence[WriteRequest], stored: Stored | None = None) -> tuple[Key, ...]:
        """Returns the keys of items that must be known before a write and follow from the known ones."""
        found: dict[Key, None] = {}
        there = stored or {}
        for request in requests:
            keys = self.steps.needed(request, there, is_whole=self._is_whole, with_nodes=self._are_nodes_read)
            if keys:
                found.update(dict.fromkeys(keys))
        return tuple([key for key in found if key not in there])

    async def read(self, *, is_noted: bool) -> tuple[Stored, tuple[Done, ...] | None]:
        """Returns the items that must be known, and what was done before under the idempotency key.

        `is_noted` asks for the latter even if nothing else has to be read.
        """
        if self._known is not None:
            return {}, self._known
        keys = self.needed(self.requests)
        also = self._note if keys or is_noted else ()
        stored = await self._got((*keys, *also), {})
        if keys:
            stored = await self.stored(self.requests, stored)
        for note in self._note:
            self._learn(stored.get(note))
        return stored, self._known

    async def done_meanwhile(self) -> tuple[Done, ...] | None:
        """Returns what another write with the same idempotency key did while this one was refused.

        A transaction looks at the note: a read could miss the note of one that has already written the other items. If
        nothing was sent, or the refused transaction had the note, there is nothing to look for.
        """
        self._tries = 0
        while self._key is not None and self._known is None and self.cost.requests:
            if self._is_note_known or await self.transact([note_check(self.graph, self._key)]):
                return None
            if self._known is None:
                await self.pause()
        return self._known

    def _learn(self, note: Item | None) -> None:
        """Learns what was done before under the idempotency key. Raises WriteRefused if it was another write."""
        if self._key is not None:
            self._is_note_known = note is not None
            self._known = done_before(self.graph, self._key, note)

    def read_whole(self) -> None:
        """Makes the next try read changed items: an access rule may use values that only an index's key holds."""
        self._is_whole = self._is_whole or self.steps.access is not None

    async def stored(self, requests: Sequence[WriteRequest], known: Stored) -> Stored:
        """Returns the items that must be known for requests, given some of them."""
        while keys := self.needed(requests, known):
            known = await self._got(keys, known)
        return known

    async def _got(self, keys: tuple[Key, ...], known: Stored) -> Stored:
        if not keys:
            return known
        batch = await self.send(BatchGet(keys, consistent=True))
        return {**known, **dict(zip(keys, self.live(batch.items), strict=True))}

    def live(self, items: Iterable[Item | None]) -> Iterator[Item | None]:
        """Returns the items, with None for expired ones."""
        at, is_expired = now(), self.graph.is_expired
        return (None if item is None or is_expired(item, at) else item for item in items)

    # --- Transactions -------------------------------------------------------------------------------------

    async def finish(self, steps: Sequence[TransactionStep], done: Sequence[Done]) -> bool:
        """Sends the last steps, with the note of the idempotency key. Returns the same as `transact`."""
        notes = [note_step(self.graph, self._key, done)] if self._key is not None else []
        return await self.transact([*steps, *notes])

    async def transact(self, steps: Sequence[TransactionStep]) -> bool:
        """Sends the steps. Returns whether they were done; False if another try may succeed.

        Raises WriteRefused with the meaning of the failed conditions, and the store's errors.
        """
        try:
            await self.send(Transaction(tuple([step.action for step in steps]), uuid4().hex))
        except ItemTooLarge:
            if self._is_whole:
                raise
            # The size of the updated item depends on the stored one.
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
        """Raises WriteRefused, or makes the next try read more."""
        failed: list[tuple[TransactionStep, Reason]] = []
        for step, reason in zip(steps, canceled.reasons, strict=True):
            if reason is None or reason.code in _PASSING:
                continue
            if reason.code != "ConditionalCheckFailed":
                raise canceled
            failed.append((step, reason))
        notes = {self._key_of(step): reason for step, reason in zip(steps, canceled.reasons, strict=True)}
        note = next((notes[key] for key in self._note if key in notes), None)
        if note is not None:
            # Another write with the same key was faster, or is about to be.
            self._learn(None if note.code in _PASSING else note.item)
            return
        # If the edge is not as it was read, its other item need not be either.
        told = [each for each in failed if not each[0].is_partner] or failed
        found = [refusal for step, reason in told if (refusal := step.refusal(reason.item)) is not None]
        if found:
            self._is_note_known = not notes.keys().isdisjoint(self._note)
            raise WriteRefused(found) from canceled
        # A changed item may lack a map, or have values that only an index's key holds.
        self._is_whole = self._is_whole or bool(failed)
        self._are_nodes_read = self._are_nodes_read or any(step.is_added_to for step, _ in failed)
        self._is_marked = any(is_marked(reason.item) for _, reason in failed)
        for step, reason in failed:
            # An expired mark is removed.
            if reason.item is not None and is_marked(reason.item):
                removal = removal_of_old(self._key_of(step), reason.item)
                if removal is not None:
                    await self.write_if(removal)

    def _key_of(self, step: TransactionStep) -> Key:
        return key_of(step.action, self.graph.table)

    async def pause(self) -> None:
        """Waits before another try. Raises WriteRefused after too many."""
        self._tries += 1
        if self._tries == _TRIES:
            told = (_MARKED if self._is_marked else _BUSY,)
            raise WriteRefused([Refusal(Code.CONFLICT, told, self.requests[0].where)])
        await asyncio.sleep(random.uniform(0, _PAUSE * 2**self._tries))
