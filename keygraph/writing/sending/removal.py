"""Writes nodes that other records may name: deletes and moves them, and changes fields that copies follow.

It marks each node (`keygraph.writing.marks`), searches for the records that name the node, and then writes the node if
it still has the mark, in one transaction with the other writes. Nothing can start to name the node in between. If a
delete includes more edges than one transaction holds, it deletes them first, page by page: after a crash, the node
still exists, and can be deleted again. More copies than one transaction holds are written after the node
(`keygraph.writing.sending.copying`).
"""

from __future__ import annotations

import asyncio
import time
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from dataclasses import replace
from decimal import Decimal
from functools import partial

from keygraph import errors
from keygraph.codes import Code
from keygraph.dynamo.actions import CheckItem, DeleteItem, PutItem, UpdateItem, key_of, outcome
from keygraph.dynamo.conditions import And, Condition
from keygraph.dynamo.items import Item
from keygraph.dynamo.limits import TRANSACTION_ACTIONS
from keygraph.dynamo.store import Write
from keygraph.dynamo.table import Key
from keygraph.model.node_shards import shard_keys
from keygraph.model.permissions import KnownRecord
from keygraph.model.record_keys import Texts
from keygraph.names import plural
from keygraph.writing import marks, records, rules
from keygraph.writing.context import WriteContext
from keygraph.writing.requests import Delete, Done, Move
from keygraph.writing.sending import edges
from keygraph.writing.sending.copying import CopySource, changed_sources, copy_to_rest, copying_records
from keygraph.writing.sending.sender import TransactionSender
from keygraph.writing.step import TransactionStep, again, merged
from keygraph.writing.steps import detaching_steps, may_hide_reference, revealed_by, sees_reference
from keygraph.writing.tallies import read_list_ends, with_rendered_keys

_LOOKED_AT = 10_000
"""How many records are looked at before the first ones are deleted."""


class MarkedNodes:
    """The nodes that a write deletes or moves, or of which it changes fields that copies follow."""

    def __init__(self, sender: TransactionSender) -> None:
        self._sender = sender
        self._graph = sender.graph
        self._context = sender.context
        self.nodes = edges.named_nodes(sender.graph, sender.requests)
        """The requests that delete or move nodes that others may name."""
        self._copied = edges.copied_nodes(sender.context, sender.requests)
        """The changes of fields that copies follow."""
        self._sources: set[Key] = set()
        """The nodes that were marked for them."""
        self._tokens: dict[Key, str] = {}
        """The marks that are set."""
        self._written: dict[Key, PutItem | UpdateItem | DeleteItem] = {}
        """The actions of the requests themselves."""
        self._detached = Counter[tuple[str, Texts]]()
        self._nodes = dict[Key, Item | None]()
        """The nodes whose keys hold what records add to them, as they were read, or are after these transactions."""

    @property
    def are_any(self) -> bool:
        return bool(self.nodes or self._copied)

    async def carry_out(
        self, context: WriteContext, steps: Sequence[TransactionStep], done: Sequence[Done]
    ) -> Sequence[Done] | None:
        """Carries out the steps of all requests. Returns the results; None if another try may succeed."""
        for request in self.nodes:
            key, old = context.place(request)
            guarded = rules.guard(context, request, old)
            context.refusals.stop()
            required = rules.conditions_on_record(context, request, guarded)
            refusal = partial(rules.not_as_required, context, request, guarded)
            if not await self._mark(key, required, refusal):
                return None
            shards = shard_keys(request.record, key)
            if not all(await asyncio.gather(*(self._mark_shard(each, key) for each in shards))):
                return None
        self._written = {
            self._sender.key_of(step): step.action for step in steps if not isinstance(step.action, CheckItem)
        }
        self._nodes = dict(context.stored)
        sources = {each.key: each for each in changed_sources(context, self._copied, self._written)}
        keyed = [(self._sender.key_of(step), step) for step in steps]
        keyed = [(key, sources[key].guarded(step) if key in sources else step) for key, step in keyed]
        copies: list[TransactionStep] | None = None
        if not self.nodes and not any(each.is_marked for each in sources.values()):
            for key, step in keyed:
                if key in sources:
                    self._sources.add(key)
                    own = step.action.condition
                    required = [own] if own else []
                    if not await self._mark(key, required, step.refusal, marks.SECONDS_OF_CHANGE):
                        return None
            copies = await self._copies([*sources.values()], len(steps))
        mark = marks.CopyingMark(marks.new_token()).renewed if copies is None else None
        steps = [
            sources[key].changing(step, self._tokens.get(key), mark) if key in sources else step
            for key, step in keyed
        ]
        steps += copies or []
        finished: Sequence[Done] | None = done
        if self.nodes:
            finished = await self._remove_named(context, steps, done)
        elif not await self._sender.finish(await self._merged(steps) if copies else steps, done):
            finished = None
            # Another try marks them again: it may require of a node that something else names that it has no mark.
            await self._release(self._sources)
        if finished is not None:
            await self._release(self._sources - sources.keys())  # another write made the same changes
            for each in sources.values() if copies is None else ():
                # What is left after an error is written by whoever reads the mark.
                with suppress(errors.KeygraphError):
                    await copy_to_rest(self._sender, each.change.record, each.change.identity)
        return finished

    async def _copies(self, sources: Sequence[CopySource], own: int) -> list[TransactionStep] | None:
        """Returns the steps of all copies of nodes; None if they do not fit in one transaction with `own` steps."""
        found, rest = await self._sender.look(
            edges.searches(self._context, [each.change for each in sources])
        )
        nodes = {(each.change.record.name, each.change.identity): each.node for each in sources}
        records = (
            None if rest else await copying_records(self._sender, found, nodes, self._nodes, self._written)
        )
        if records is None or not records:
            return None if records is None else []
        first, *more = edges.batches(records, TRANSACTION_ACTIONS)
        count = own + len(first.keys) + self._sender.own_actions
        return None if more or count > TRANSACTION_ACTIONS else first.steps

    async def _remove_named(
        self, context: WriteContext, steps: Sequence[TransactionStep], done: Sequence[Done]
    ) -> list[Done] | None:
        """Carries out the steps if nothing forbids to delete or move the nodes."""
        found, rest = await self._sender.look(edges.searches(self._context, self.nodes))
        for request in self.nodes:
            refusal = await self._refusal_of_named(request, found, rest)
            context.refusals.found += [] if refusal is None else [refusal]
        context.refusals.stop()
        found = [each for each in found if not each.of.is_blocking]
        rest = [each for each in rest if not each.is_blocking]
        return await self._remove([*map(self._guarded, steps)], done, found, rest)

    async def release(self) -> None:
        """Removes all marks."""
        await self._release(self._tokens)

    async def _release(self, keys: Iterable[Key]) -> None:
        marked = [marks.removal(key, self._tokens[key]) for key in keys if key in self._tokens]
        await asyncio.gather(*map(self._sender.write_if, marked))

    # --- Marks --------------------------------------------------------------------------------------------

    async def _mark(
        self,
        key: Key,
        required: Sequence[Condition],
        refusal_of: Callable[[Item | None], errors.Refusal | None],
        seconds: int = marks.SECONDS,
    ) -> bool:
        """Marks the node if it is as required; False if another try may succeed. Raises WriteRefused if `refusal_of` has
        a refusal for it."""
        token, condition = marks.new_token(), marks.UNMARKED
        for _ in range(2):
            try:
                marked = UpdateItem(key, (marks.set_mark(token, seconds),), And((*required, condition)))
                await self._sender.send(Write(marked))
            except errors.TransactionCanceled:
                return False  # a concurrent transaction holds the item
            except errors.ConditionFailed as failed:
                refusal = refusal_of(failed.item)
                if refusal is not None:
                    raise errors.WriteRefused([refusal]) from failed
                self._sender.read_whole()
                if failed.item is None or not marks.is_marked(failed.item):
                    return False
                # Another delete is working on it, or crashed: both continue under one mark.
                token, condition = marks.continued(failed.item)
            else:
                self._tokens[key] = token
                return True
        return False

    async def _mark_shard(self, shard: Key, node: Key) -> bool:
        """Marks a shard like its node, if it is there: no new one is made. False if another try may succeed."""
        try:
            marked = UpdateItem(shard, (marks.set_mark(self._tokens[node]),), self._context.presence.there)
            await self._sender.send(Write(marked))
        except errors.TransactionCanceled:
            return False  # a concurrent transaction holds the item
        except errors.ConditionFailed:
            return True
        self._tokens[shard] = self._tokens[node]
        return True

    def _guarded(self, step: TransactionStep) -> TransactionStep:
        """Returns the step, with the condition that the mark is there if it deletes a node."""
        token = self._tokens.get(self._sender.key_of(step))
        is_delete = token is not None and isinstance(step.action, DeleteItem)
        return step.on_condition(marks.has_mark(token or "")) if is_delete else step

    # --- What names a node ----------------------------------------------------------------------------------

    def _is_left(self, named: edges.NamingRecord) -> bool:
        """Returns whether the record still names the node after the requests' own actions."""
        action = self._written.get(self._graph.table.key_of(named.item))
        if action is None:
            return True
        after = outcome(replace(action, condition=None), named.item, self._graph.table)
        return after is not None and named.of.reference.names(after, named.of.request.identity)

    async def _refusal_of_named(
        self, request: Delete | Move, first: Iterable[edges.NamingRecord], rest: Iterable[edges.Search]
    ) -> errors.Refusal | None:
        """Returns the refusal to remove a node that is named; None if nothing blocks it.

        `first` are the first of all records that were found, `rest` what is left to read.
        """
        found = [each for each in first if each.of.request is request and each.of.is_blocking]
        wanted = [each for each in rest if each.request is request and each.is_blocking]
        visible, more, is_named = list[edges.NamingRecord](), list[edges.Search](), False
        while True:
            now = Decimal(int(time.time()))
            left = [
                named
                for named in found
                if self._is_left(named) and not self._graph.is_expired(named.item, now)
            ]
            visible += [each for each in left if sees_reference(self._context, each.of.reference, each.item)]
            is_named = is_named or bool(left)
            seen = {each.of.reference for each in visible}
            more += [each for each in wanted if each.reference in seen]
            wanted = [each for each in wanted if each.reference not in seen]
            # Which references are named must not depend on how many hidden records come before a visible one.
            if not wanted or (visible and not self._context.is_guarded):
                break
            found, wanted = await self._sender.look(wanted)
        if visible:
            return self._refusal(request, visible, more)
        if not is_named:
            return None
        what = "deleted" if isinstance(request, Delete) else "moved"
        problem = f"This {request.record.name} cannot be {what}: something names it."
        return errors.Refusal(Code.CONFLICT, (problem,), request.where, is_by_hidden=True)

    def _refusal(
        self, request: Delete | Move, left: Iterable[edges.NamingRecord], rest: Iterable[edges.Search]
    ) -> errors.Refusal:
        counts, write = Counter(named.of.reference for named in left), self._context
        node = KnownRecord(request.record, request.identity)
        more = {each.reference for each in rest}
        what = "deleted" if isinstance(request, Delete) else "moved"
        parts = [f"This {request.record.name} cannot be {what}. It is named by"]
        details = []
        # In this order, which is found first does not tell how many hidden ones came before it.
        references = (each for each in write.graph.references[request.record.name] if each in counts)
        for number, reference in enumerate(references):
            record, name = reference.record, errors.FieldName(reference.end.name)
            # How many of them were found depends on how many hidden ones were read with them.
            may_hide = may_hide_reference(write, reference)
            count = 1 if may_hide else counts[reference]
            least = "at least " * (may_hide or reference in more)
            named = record.name if count == 1 else plural(record.name)
            parts += [f"{',' * (number > 0)} {least}{count:,} {named} (", name, ")"]
            lists = [
                errors.FieldName(list_name)
                for (owner, list_name), path in self._graph.node_lists.items()
                if owner == request.record.name
                and not (write.is_guarded and write.permissions.decide(node, "read", list_name) is False)
                and any((each.record, each.end) == (record, reference.end.name) for each in path.each)
            ]
            details.append({"type": record.name, "field": name, "atLeast": count, "lists": lists})
        return errors.Refusal(Code.CONFLICT, (*parts, "."), request.where, {"namedBy": details})

    # --- Taking it away -------------------------------------------------------------------------------------

    async def _remove(
        self,
        steps: Sequence[TransactionStep],
        done: Sequence[Done],
        found: Sequence[edges.NamingRecord],
        rest: Sequence[edges.Search],
    ) -> list[Done] | None:
        """Detaches the records that name the nodes, and carries out the steps; None if another try may succeed.

        `found` are the first of these records, `rest` what is left to read.
        """
        requests, is_first = self._sender.requests, True
        while True:
            several = await self._batches(found, is_all=not rest)
            last = several[0] if several else edges.RecordBatch()
            count = len(steps) + len(last.keys) + self._sender.own_actions
            if is_first and not rest and len(several) <= 1 and count <= TRANSACTION_ACTIONS:
                counts = self._detached + _named_in(last)
                finished = [replace(each, detached=counts[each.record.name, each.identity]) for each in done]
                is_done = await self._sender.finish(await self._merged([*steps, *last.steps]), finished)
                return finished if is_done else None
            if is_first:
                await self._look_ahead(rest)
            if len(requests) > 1:
                problem = "A node has more edges than one transaction holds. Delete it in a separate mutation: then its edges are deleted first."
                raise errors.WriteRefused(
                    [errors.Refusal(errors.TransactionTooLarge.code, (problem,), requests[0].where[:1])]
                )
            for batch in several:
                renewed = [
                    TransactionStep(UpdateItem(key, (marks.set_mark(token),), marks.has_mark(token)), again)
                    for key, token in self._tokens.items()
                ]
                sent = await self._merged([*renewed, *batch.steps])
                if not await self._sender.transact(sent):
                    return None
                for action in (step.action for step in sent):
                    key = key_of(action, self._graph.table)
                    if key in self._nodes and not isinstance(action, CheckItem):
                        free = replace(action, condition=None)
                        self._nodes[key] = outcome(free, self._nodes[key], self._graph.table)
                self._detached += _named_in(batch)
            is_first = not rest
            wanted = rest or [
                each for each in edges.searches(self._context, self.nodes) if not each.is_blocking
            ]
            found, rest = await self._sender.look(wanted)

    async def _look_ahead(self, rest: Sequence[edges.Search]) -> None:
        """Raises WriteRefused if the viewer may not detach one of the next records, before any is deleted."""
        count = 0
        while count < _LOOKED_AT and (rest := [*filter(self._has_rules, rest)]):
            found, rest = await self._sender.look(rest)
            await self._detaching(found)
            count += len(found)

    def _has_rules(self, search: edges.Search) -> bool:
        """Returns whether the viewer may detach some of the records that a search finds, and others not."""
        reference, decision = search.reference, self._context.permissions.decision
        record, end = reference.record, reference.end.name
        required = [decision(record, "read", name) for name in (None, *revealed_by(reference))]
        required += [decision(record, "update", name) for name in (None, end)]
        every = (*required, decision(record, "delete"))
        return self._context.is_guarded and (
            not all(isinstance(each, bool) for each in every) or rules.is_other_guarded(self._context, record)
        )

    async def _merged(self, steps: Iterable[TransactionStep]) -> list[TransactionStep]:
        context, where = self._context.knowing(self._nodes), self._sender.requests[0].where
        joined = merged([(where, step) for step in steps], self._graph.table, context.refusals)
        context.list_ends.clear()  # earlier transactions may have changed the lists
        made = [with_rendered_keys(context, step) for step in joined]
        if await read_list_ends(context, self._sender.send):
            made = [with_rendered_keys(context, step) for step in joined]
        context.refusals.stop()
        return made

    async def _batches(self, found: Iterable[edges.NamingRecord], *, is_all: bool) -> list[edges.RecordBatch]:
        """Returns what detaches these records, in as few transactions as possible.

        A record that decides whether the viewer may detach others goes last. If these are not all records (`is_all`),
        it stays for now.
        """
        most = TRANSACTION_ACTIONS - len(self._tokens)
        made = await self._detaching(found)
        deciding = {key for each in made for key in each.decided_by - each.written}
        free = [each for each in made if deciding.isdisjoint(each.written)]
        held = [each for each in made if not deciding.isdisjoint(each.written)]
        return edges.batches(free if free and not is_all else [*free, *held], most)

    async def _detaching(self, found: Iterable[edges.NamingRecord]) -> list[edges.RecordSteps]:
        """Returns what detaches these records, each of them once."""
        grouped: dict[Key, list[edges.NamingRecord]] = {}
        for named in found:
            if self._is_left(named):
                grouped.setdefault(self._graph.table.key_of(named.item), []).append(named)
        several = [([each.of.reference for each in same], same) for same in grouped.values()]
        requests = [
            records.detaching(self._context, references, same[0].item) for references, same in several
        ]
        # The items that must be known of these records and their other items.
        known: dict[Key, Item | None] = {
            key: None
            for request in requests
            for key in self._graph.table_keys(request.record, request.identity)
        }
        known |= {key: same[0].item for key, same in grouped.items()}
        stored = await self._sender.stored(requests, known)
        self._nodes |= {key: item for key, item in stored.items() if key not in grouped}
        context = self._context.knowing(stored)
        context.sent = ()  # nothing is created, so the nodes themselves are added to
        made, before = list[edges.RecordSteps](), set[Key]()
        for references, same in several:
            steps = detaching_steps(context, references, same[0].item)
            context.refusals.stop()
            written = frozenset([self._sender.key_of(step) for step in steps if not step.is_rule])
            if not before.isdisjoint(written):
                continue  # its other item was found before
            before |= written
            decided_by = frozenset([self._sender.key_of(step) for step in steps if step.is_rule])
            made.append(edges.RecordSteps(steps, same, written, decided_by))
        return made


def _named_in(batch: edges.RecordBatch) -> Counter[tuple[str, Texts]]:
    """Returns how many records each node loses in a transaction, by its type's name and its identity."""
    several = (
        {(named.of.request.record.name, named.of.request.identity) for named in each.same}
        for each in batch.records
    )
    return Counter(node for nodes in several for node in nodes)
