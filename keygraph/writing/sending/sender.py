"""Sends the requests of one write, and interprets the store's reasons for a refusal.

The failed conditions of a refused transaction become its errors. If another write was faster, or if more items must be
read first, the write is tried again.
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace

from uuid_utils import uuid4

from keygraph import errors
from keygraph.codes import Code
from keygraph.dynamo.actions import UpdateItem, key_of
from keygraph.dynamo.items import Item
from keygraph.dynamo.store import Answer, BatchGet, Request, Store, Transaction, Write
from keygraph.dynamo.table import Key
from keygraph.model.expiry import now
from keygraph.model.node_shards import shard_keys
from keygraph.writing.context import Stored, WriteContext
from keygraph.writing.ends import most_copied_by_move
from keygraph.writing.marks import SECONDS, is_marked, removal_of_old
from keygraph.writing.reads import lists_of_ends, most_read_later, needed_by_all
from keygraph.writing.requests import Change, Done, WriteRequest
from keygraph.writing.sending import idempotency
from keygraph.writing.sending.edges import NamingRecord, Search, copied_nodes, named_nodes, searches
from keygraph.writing.step import TransactionStep
from keygraph.writing.tallies import adds, counted_types

_TRIES = 10
_PAUSE = 0.005
"""The longest pause before the second try, in seconds; it doubles with each try."""

_BUSY = "Others change the same items all the time. Try again."
_MARKED = f"A node that this writes or names is being deleted or moved. Try again in {SECONDS} seconds."

_PASSING = {"TransactionConflict", "ProvisionedThroughputExceeded", "ThrottlingError"}
"""The codes that another try may not meet."""


class Outline:
    """What a write sends before its transaction, as far as its input determines it."""

    def __init__(
        self,
        context: WriteContext,
        requests: Sequence[WriteRequest],
        key: idempotency.IdempotencyKey | None = None,
    ) -> None:
        self._context = context
        self._requests = requests
        self.nodes = [*named_nodes(context.graph, requests), *copied_nodes(context, requests)]
        """The requests for nodes that others may name, or copy from: each node is marked."""
        self.keys = needed_by_all(context, requests)
        """The items that are read first. If none must be, the transaction tells if there is a note of the key."""
        if key is not None and (self.keys or self.nodes):
            self.keys = (*self.keys, idempotency.note_key(context.graph, key.name))

    @property
    def later(self) -> Sequence[int]:
        """How many further items may have to be read once those are known, in each round trip."""
        write, others = self._context, self._context.graph.correspondences
        several = [
            most_read_later(write, each)
            for each in self._requests
            if write.is_guarded
            or each.record.name in others
            or write.fact(adds, each.record)
            or most_copied_by_move(write, each)
        ]
        return [sum(counts) for counts in zip(*several, strict=True)]

    @property
    def list_ends(self) -> int:
        """How many lists may have to be read for their first or last items."""
        write = self._context
        return sum(lists_of_ends(write, each) for each in self._requests if write.fact(adds, each.record))

    @property
    def spread(self) -> int:
        """How many items may have to be read before a second try, which makes the shards that the first one finds missing."""
        types = (record for each in self._requests for record in counted_types(self._context, each.record))
        nodes = (node for record in types for end in record.every_end for node in end.members)
        # A node and its shard, before and after the write.
        return 4 * sum(bool(node.shard_count) for node in nodes)

    @property
    def marked(self) -> list[tuple[Key, Sequence[Key]]]:
        """The nodes that are marked, each with its shards, which are marked after it if it is deleted or moved."""
        keys = [(each, self._context.graph.table_keys(each.record, each.identity)[0]) for each in self.nodes]
        return [(key, () if isinstance(each, Change) else shard_keys(each.record, key)) for each, key in keys]

    @property
    def searches(self) -> list[Search]:
        """What is read to find the records that name the marked nodes. Further pages may follow."""
        return searches(self._context, self.nodes)


class TransactionSender:
    """Sends what one write needs."""

    def __init__(
        self,
        context: WriteContext,
        store: Store,
        requests: Sequence[WriteRequest],
        idempotency_key: idempotency.IdempotencyKey | None = None,
        outline: Outline | None = None,
    ) -> None:
        """`outline` is that of these requests, if it is known."""
        self.graph = graph = context.graph
        self.context = context.separate()
        self.context.list_ends, self.context.new_shards, self.context.sent = {}, {}, requests
        self.requests = requests
        self._outline = outline
        self._store = store
        self._has_sent = False
        self._key = idempotency_key
        self._note = () if idempotency_key is None else (idempotency.note_key(graph, idempotency_key.name),)
        self._known: tuple[Done, ...] | None = None
        """What was done before under the idempotency key."""
        self._is_note_known = False
        """Whether it is certain what the note says, or that there is none."""
        self._tries = 0
        self._is_marked = False
        """Whether the last try failed because a node is being deleted or moved."""

    @property
    def own_actions(self) -> int:
        """The number of actions of the last transaction that do not come from the requests."""
        return len(self._note)

    async def send(self, request: Request[Answer]) -> Answer:
        self._has_sent = True
        return await self._store.send(request)

    async def write_if(self, action: UpdateItem) -> bool:
        """Changes one item. Returns whether its condition held and no other transaction held the item."""
        try:
            await self.send(Write(action))
        except (errors.ConditionFailed, errors.TransactionCanceled):
            return False
        return True

    # --- What must be known -------------------------------------------------------------------------------

    async def read(self) -> tuple[Stored, tuple[Done, ...] | None]:
        """Returns the items that must be known, and what was done before under the idempotency key."""
        if self._known is not None:
            return {}, self._known
        self.context.list_ends.clear()
        # Another try may have to read more.
        outline, self._outline = self._outline or Outline(self.context, self.requests, self._key), None
        stored = await self._got(outline.keys, {})
        if stored:
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
        while self._key is not None and self._known is None and self._has_sent:
            if self._is_note_known or await self.transact([idempotency.note_check(self.graph, self._key)]):
                return None
            if self._known is None:
                await self.pause()
        return self._known

    def _learn(self, note: Item | None) -> None:
        """Learns what was done before under the idempotency key. Raises WriteRefused if it was another write."""
        if self._key is not None:
            self._is_note_known = note is not None
            self._known = idempotency.done_before(self.graph, self._key, note, self.requests)

    def read_whole(self) -> None:
        """Makes the next try read changed items: an access rule may use values that only an index's key holds."""
        self.context.is_whole = self.context.is_whole or self.context.is_guarded

    async def stored(
        self, requests: Sequence[WriteRequest], known: Stored, context: WriteContext | None = None
    ) -> Stored:
        """Returns the items that must be known for requests, given some of them. `context` is the sender's own unless
        given."""
        context = context or self.context
        while keys := needed_by_all(context.knowing(known), requests):
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

    async def look(self, wanted: Sequence[Search]) -> tuple[list[NamingRecord], list[Search]]:
        """Returns the records in the next page of each search, and what is left to read.

        The pages are read at once, and then all items to which indexes lead.
        """
        key_of_item = self.graph.table.key_of
        pages = [*zip(wanted, await asyncio.gather(*(self.send(each.query) for each in wanted)), strict=True)]
        led = dict.fromkeys(
            key_of_item(item)
            for each, page in pages
            if each.query.projection is not None
            for item in page.items
        )
        whole = (await self.send(BatchGet(tuple(led), consistent=True))).items if led else ()
        there = dict(zip(led, whole, strict=True))
        found: list[NamingRecord] = []
        for each, page in pages:
            items: Iterable[Item | None] = page.items
            if each.query.projection is not None:
                items = [there[key_of_item(item)] for item in page.items]
            found += [
                NamingRecord(each, item)
                for item in self.live(items)
                if item is not None
                and self.graph.recognise(item) is each.reference.record
                and each.reference.names(item, each.request.identity)
            ]
        rest = [(each, page.last) for each, page in pages if page.last is not None]
        return found, [replace(each, query=replace(each.query, start=last)) for each, last in rest]

    # --- Transactions -------------------------------------------------------------------------------------

    async def finish(self, steps: Sequence[TransactionStep], done: Sequence[Done]) -> bool:
        """Sends the last steps, with the note of the idempotency key. Returns the same as `transact`."""
        notes = [idempotency.note_step(self.graph, self._key, done)] if self._key is not None else []
        return await self.transact([*steps, *notes])

    async def transact(self, steps: Sequence[TransactionStep]) -> bool:
        """Sends the steps. Returns whether they were done; False if another try may succeed.

        Raises WriteRefused with the meaning of the failed conditions, and the store's errors.
        """
        try:
            await self.send(Transaction(tuple([step.action for step in steps]), uuid4().hex))
        except errors.BadUserInput:
            is_change = any(isinstance(step.action, UpdateItem) for step in steps)
            if self.context.is_whole or not is_change:
                raise
            # The size of the updated item depends on the stored one, and what does not fit is known of that alone.
            self.context.is_whole = True
        except errors.TransactionCanceled as canceled:
            await self._read_reasons(steps, canceled)
        else:
            self._tries = 0
            if self.context.is_guarded:
                self.context.permissions.learn_written([step.action for step in steps], self.graph.table)
            return True
        return False

    async def _read_reasons(
        self, steps: Sequence[TransactionStep], canceled: errors.TransactionCanceled
    ) -> None:
        """Raises WriteRefused, or makes the next try read more."""
        failed: list[tuple[TransactionStep, errors.Reason]] = []
        for step, reason in zip(steps, canceled.reasons, strict=True):
            if reason is None or reason.code in _PASSING:
                self.context.conflicts += reason is not None
                continue
            if reason.code != "ConditionalCheckFailed":
                raise errors.again(canceled)
            failed.append((step, reason))
        notes = {self.key_of(step): reason for step, reason in zip(steps, canceled.reasons, strict=True)}
        note = next((notes[key] for key in self._note if key in notes), None)
        if note is not None:
            # Another write with the same key was faster, or is about to be.
            self._learn(None if note.code in _PASSING else note.item)
            return
        # If the edge is not as it was read, its other item need not be either.
        own = [each for each in failed if not each[0].is_partner] or failed
        found = [refusal for step, reason in own if (refusal := step.refusal(reason.item)) is not None]
        if found:
            self._is_note_known = not notes.keys().isdisjoint(self._note)
            raise errors.WriteRefused(found) from canceled
        # A changed item may lack a map, or have values that only an index's key holds.
        self.context.is_whole = self.context.is_whole or bool(failed)
        self.context.are_others_read = self.context.are_others_read or any(
            step.is_added_to or step.is_partner for step, _ in failed
        )
        self._is_marked = any(is_marked(reason.item) for _, reason in failed)
        for step, reason in failed:
            # An expired mark is removed.
            if reason.item is not None and is_marked(reason.item):
                removal = removal_of_old(self.key_of(step), reason.item)
                if removal is not None:
                    await self.write_if(removal)

    def key_of(self, step: TransactionStep) -> Key:
        return key_of(step.action, self.graph.table)

    async def pause(self) -> None:
        """Waits before another try. Raises WriteRefused after too many."""
        self._tries += 1
        if self._tries == _TRIES:
            problem = _MARKED if self._is_marked else _BUSY
            raise errors.WriteRefused([errors.Refusal(Code.CONFLICT, (problem,), self.requests[0].where)])
        await asyncio.sleep(random.uniform(0, _PAUSE * 2**self._tries))
