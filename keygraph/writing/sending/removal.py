"""Deletes and moves nodes that other records may name.

It marks each node (`keygraph.writing.marks`), searches for the records that name the node, and then deletes the node if
it still has the mark, in one transaction with the other writes. Nothing can start to name the node in between. If a
delete includes more edges than one transaction holds, it deletes them first, page by page: after a crash, the node
still exists, and can be deleted again.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import AsyncIterator, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from decimal import Decimal
from typing import TypeAlias

from keygraph.codes import Code
from keygraph.dynamo.actions import CheckItem, DeleteItem, PutItem, UpdateItem, key_of, outcome
from keygraph.dynamo.conditions import And, Condition
from keygraph.dynamo.items import Item, item_size
from keygraph.dynamo.limits import TRANSACTION_ACTIONS, TRANSACTION_BYTES
from keygraph.dynamo.store import Query, Write
from keygraph.dynamo.table import Key
from keygraph.errors import (
    ConditionFailed,
    FieldName,
    Refusal,
    TransactionCanceled,
    TransactionTooLarge,
    WriteRefused,
)
from keygraph.graph import Graph
from keygraph.model.record_keys import Texts
from keygraph.model.references import EndReference
from keygraph.names import plural
from keygraph.writing.ground import Stored
from keygraph.writing.items import Refusals
from keygraph.writing.marks import UNMARKED, has_mark, is_marked, new_token, removal, set_mark, token_of
from keygraph.writing.requests import Delete, Done, Move, OnEdges, WriteRequest
from keygraph.writing.rules import Guard
from keygraph.writing.sending.edges import NamingRecord, Range, look, ranges
from keygraph.writing.sending.sender import TransactionSender
from keygraph.writing.step import TransactionStep, merged

_OF_NODES_THERE = (Delete, Move)
"""The requests for existing records, whose keys they take."""
_Node: TypeAlias = tuple[str, Texts]
"""A node, by its type's name and its identity."""


@dataclass(slots=True)
class _Batch:
    """The records that are detached in one transaction."""

    steps: list[TransactionStep] = field(default_factory=list)
    size: int = 0
    nodes: Counter[_Node] = field(default_factory=Counter)
    """How many records each node loses."""
    keys: set[Key] = field(default_factory=set)
    """The items that it writes, adds to and checks."""

    @property
    def actions(self) -> int:
        """The most actions that it takes."""
        return len(self.keys)


@dataclass(frozen=True, slots=True)
class _Detaching:
    """The steps that stop one record from naming deleted nodes."""

    steps: Sequence[TransactionStep]
    same: Sequence[NamingRecord]
    """The record, once for each end that names such a node."""
    written: frozenset[Key]
    """The record's items."""
    keys: frozenset[Key]
    """The same and the items that are added to and checked."""
    decided_by: frozenset[Key]
    """The other items that decide whether the viewer may detach it."""


def named_nodes(graph: Graph, requests: Iterable[WriteRequest]) -> list[Delete | Move]:
    """Returns the requests that delete or move nodes whose naming records can be searched for.

    If no keys lead to the records that name a node, a mark would protect no search, so the node needs none.
    """
    return [
        request
        for request in requests
        if isinstance(request, _OF_NODES_THERE)
        and any(each.path is not None for each in graph.references.get(request.record.name, ()))
    ]


def first_pages(graph: Graph, requests: Iterable[WriteRequest]) -> list[Query]:
    """Returns the first pages of the search for records that name the deleted or moved nodes."""
    found = [
        each
        for request in named_nodes(graph, requests)
        for each in ranges(graph, graph.references[request.record.name], request.identity)
    ]
    return [each.query for each in found]


class Removal:
    """The nodes that a write deletes or moves."""

    def __init__(self, sender: TransactionSender) -> None:
        self._sender = sender
        self._graph = sender.graph
        self._requests = requests = sender.requests
        self.nodes = named_nodes(sender.graph, requests)
        """The requests for nodes that others may name."""
        self._tokens: dict[Key, str] = {}
        """The marks that are set."""
        self._written: Mapping[Key, PutItem | UpdateItem | DeleteItem] = {}
        """The actions of the requests themselves."""
        self._detached: Counter[_Node] = Counter()

    async def carry_out(
        self, steps: Sequence[TransactionStep], done: Sequence[Done], stored: Stored
    ) -> list[Done] | None:
        """Carries out the steps of all requests. Returns the results; None if another try may succeed."""
        refusals = Refusals()
        for request in self.nodes:
            key, old = self._sender.steps.place(request, stored, refusals)
            guard = self._sender.steps.guard(request, old, refusals)
            refusals.stop()
            if not await self._mark(request, key, guard):
                return None
        self._written = {
            self._key_of(step): step.action for step in steps if not isinstance(step.action, CheckItem)
        }
        blocking = [each for request in self.nodes for each in self._ranges(request, are_blocking=True)]
        found, rest = await look(self._sender, [*blocking, *self._detachable()])
        for request in self.nodes:
            refusal = await self._refusal_of_named(request, found, rest)
            refusals.found += [] if refusal is None else [refusal]
        refusals.stop()
        blocking_pairs = {(each.reference, each.identity) for each in blocking}
        found = [each for each in found if (each.reference, each.identity) not in blocking_pairs]
        rest = [each for each in rest if (each.reference, each.identity) not in blocking_pairs]
        return await self._remove([self._guarded(step) for step in steps], done, found, rest)

    async def release(self) -> None:
        """Removes the marks."""
        for key, token in self._tokens.items():
            await self._sender.write_if(removal(key, token))

    def _key_of(self, step: TransactionStep) -> Key:
        return key_of(step.action, self._graph.table)

    # --- Marks --------------------------------------------------------------------------------------------

    async def _mark(self, request: Delete | Move, key: Key, guard: Guard) -> bool:
        """Marks the node; False if another try may succeed. Raises WriteRefused if it is missing."""
        token, condition = new_token(), UNMARKED
        for _ in range(2):
            there = await self._set_mark(request, key, guard, token, condition)
            if there is None:
                self._tokens[key] = token
                return True
            if not is_marked(there):
                break
            # Another delete is working on it, or crashed: both continue under one mark.
            token = token_of(there)
            condition = has_mark(token)
        return False

    async def _set_mark(
        self, request: Delete | Move, key: Key, guard: Guard, token: str, condition: Condition
    ) -> Item | None:
        """Sets a mark if the condition holds; else returns the node as it is."""
        whole = And((*self._sender.steps.conditions(request, guard), condition))
        try:
            await self._sender.send(Write(UpdateItem(key, (set_mark(token),), whole)))
        except ConditionFailed as failed:
            refusal = self._sender.steps.refused(request, guard)(failed.item)
            if refusal is not None:
                raise WriteRefused([refusal]) from failed
            self._sender.read_whole()
            return failed.item
        except TransactionCanceled:
            return {}  # a concurrent transaction holds the item
        return None

    def _guarded(self, step: TransactionStep) -> TransactionStep:
        """Returns the step, with the condition that the mark is there if it deletes a node."""
        token = self._tokens.get(self._key_of(step))
        is_delete = token is not None and isinstance(step.action, DeleteItem)
        return step.on_condition(has_mark(token or "")) if is_delete else step

    # --- What names a node ----------------------------------------------------------------------------------

    def _references(self, request: Delete | Move, *, are_blocking: bool) -> list[EndReference]:
        """Returns the references that block the request, or those that do not."""
        is_refused = not isinstance(request, Delete) or request.on_edges is OnEdges.REFUSE
        return [
            each
            for each in self._graph.references[request.record.name]
            if (is_refused or (each.record.is_node and not each.is_removable)) is are_blocking
        ]

    def _is_left(self, named: NamingRecord) -> bool:
        """Returns whether the record still names the node after the requests' own actions."""
        action = self._written.get(self._graph.table.key_of(named.item))
        if action is None:
            return True
        after = outcome(replace(action, condition=None), named.item, self._graph.table)
        return after is not None and named.reference.names(after, named.identity)

    def _detachable(self) -> list[Range]:
        """Returns everything that must be read to find the records that may be detached."""
        return [each for request in self.nodes for each in self._ranges(request, are_blocking=False)]

    def _ranges(self, request: Delete | Move, *, are_blocking: bool) -> list[Range]:
        """Returns what must be read to find the records that block the request, or those that do not."""
        references = self._references(request, are_blocking=are_blocking)
        return ranges(self._graph, references, request.identity)

    async def _refusal_of_named(
        self, request: Delete | Move, first: Iterable[NamingRecord], rest: Iterable[Range]
    ) -> Refusal | None:
        """Returns the refusal to remove a node that is named; None if nothing blocks it.

        `first` are the first of all records that were found, `rest` what is left to read.
        """
        own = {(each, request.identity) for each in self._references(request, are_blocking=True)}
        found = [each for each in first if (each.reference, each.identity) in own]
        wanted = [each for each in rest if (each.reference, each.identity) in own]
        seen, is_named = list[NamingRecord](), False
        while True:
            now = Decimal(int(time.time()))
            left = [
                named
                for named in found
                if self._is_left(named) and not self._graph.is_expired(named.item, now)
            ]
            seen, is_named = [named for named in left if self._is_seen(named)], is_named or bool(left)
            if seen or not wanted:
                break
            found, wanted = await look(self._sender, wanted)
        if seen:
            return self._refusal(request, seen, wanted)
        if not is_named:
            return None
        what = "deleted" if isinstance(request, Delete) else "moved"
        told = f"This {request.record.name} cannot be {what}: something names it."
        return Refusal(Code.CONFLICT, (told,), request.where, is_by_hidden=True)

    def _is_seen(self, named: NamingRecord) -> bool:
        """Returns whether the viewer sees a record that names the node."""
        access, record, item = self._sender.steps.access, named.reference.record, named.item
        return access is None or access.sees(record, record.read_identity(item) or (), item)

    def _refusal(
        self, request: Delete | Move, left: Iterable[NamingRecord], rest: Iterable[Range]
    ) -> Refusal:
        counts = Counter(named.reference for named in left)
        more = {each.reference for each in rest}
        what = "deleted" if isinstance(request, Delete) else "moved"
        parts = [f"This {request.record.name} cannot be {what}. It is named by"]
        details = []
        for number, (reference, count) in enumerate(counts.items()):
            least = "at least " * (reference in more)
            parts += [
                f"{',' * (number > 0)} {least}{count:,} {reference.record.name if count == 1 else plural(reference.record.name)} (",
                FieldName(reference.end.name),
                ")",
            ]
            lists = [
                FieldName(name)
                for (owner, name), path in self._graph.node_lists.items()
                if owner == request.record.name
                and any(
                    (each.record, each.end) == (reference.record, reference.end.name) for each in path.each
                )
            ]
            told = {"type": reference.record.name, "field": FieldName(reference.end.name)}
            details.append({**told, "atLeast": count, "lists": lists})
        return Refusal(Code.CONFLICT, (*parts, "."), request.where, {"namedBy": details})

    # --- Taking it away -------------------------------------------------------------------------------------

    async def _remove(
        self,
        steps: Sequence[TransactionStep],
        done: Sequence[Done],
        found: Sequence[NamingRecord],
        rest: Sequence[Range],
    ) -> list[Done] | None:
        """Detaches the records that name the nodes, and carries out the steps; None if another try may succeed.

        `found` are the first of these records, `rest` what is left to read.
        """
        is_first = True
        while True:
            batches = [batch async for batch in self._batches(found, is_all=not rest)]
            last = batches[0] if batches else _Batch()
            count = len(steps) + last.actions + self._sender.own_actions
            if is_first and not rest and len(batches) <= 1 and count <= TRANSACTION_ACTIONS:
                counts = self._detached + last.nodes
                finished = [replace(each, detached=counts[each.record.name, each.identity]) for each in done]
                is_done = await self._sender.finish(self._merged(steps, last), finished)
                return finished if is_done else None
            if len(self._requests) > 1:
                told = "A node has more edges than one transaction holds. Delete it in a separate mutation: then its edges are deleted first."
                raise WriteRefused([Refusal(TransactionTooLarge.code, (told,), self._requests[0].where[:1])])
            for batch in batches:
                if not await self._sender.transact(self._merged([*self._renewed_marks()], batch)):
                    return None
                self._detached += batch.nodes
            is_first = not rest
            found, rest = await look(self._sender, rest or self._detachable())

    def _merged(self, steps: Sequence[TransactionStep], batch: _Batch) -> list[TransactionStep]:
        refusals = Refusals()
        where = self._requests[0].where
        made = merged([(where, step) for step in (*steps, *batch.steps)], self._graph.table, refusals)
        refusals.stop()
        return made

    def _renewed_marks(self) -> Iterator[TransactionStep]:
        for key, token in self._tokens.items():
            yield TransactionStep(UpdateItem(key, (set_mark(token),), has_mark(token)), lambda _: None)

    async def _batches(self, found: Iterable[NamingRecord], *, is_all: bool) -> AsyncIterator[_Batch]:
        """Yields what detaches these records, in as few transactions as possible.

        A record that decides whether the viewer may detach others goes last. If these are not all records (`is_all`),
        it stays for now.
        """
        most = TRANSACTION_ACTIONS - len(self._tokens)
        made = await self._detaching(found)
        deciding = {key for each in made for key in each.decided_by - each.written}
        free = [each for each in made if deciding.isdisjoint(each.written)]
        held = [each for each in made if not deciding.isdisjoint(each.written)]
        batch = _Batch()
        for each in free if free and not is_all else [*free, *held]:
            size = item_size(each.same[0].item) * len(each.steps)
            if batch.steps and (len(batch.keys | each.keys) > most or batch.size + size > TRANSACTION_BYTES):
                yield batch
                batch = _Batch()
            batch.steps += each.steps
            batch.size += size
            batch.keys |= each.keys
            batch.nodes.update({(named.reference.node.name, named.identity) for named in each.same})
        if batch.steps:
            yield batch

    async def _detaching(self, found: Iterable[NamingRecord]) -> list[_Detaching]:
        """Returns what detaches these records, each of them once."""
        grouped: dict[Key, list[NamingRecord]] = {}
        for named in found:
            if self._is_left(named):
                grouped.setdefault(self._graph.table.key_of(named.item), []).append(named)
        detaching = [([each.reference for each in same], same) for same in grouped.values()]
        stored = await self._stored(detaching)
        made, before, refusals = list[_Detaching](), set[Key](), Refusals()
        for references, same in detaching:
            steps = self._sender.steps.detached(references, same[0].item, stored, refusals)
            refusals.stop()
            written = frozenset([self._key_of(step) for step in steps if not step.is_rule])
            if not before.isdisjoint(written):
                continue  # its other item was found before
            before |= written
            decided_by = frozenset([self._key_of(step) for step in steps if step.is_rule])
            added_to = {key for step in steps for each in step.additions for key in each.keys[:1]}
            made.append(_Detaching(steps, same, written, written | decided_by | added_to, decided_by))
        return made

    async def _stored(self, detaching: Sequence[tuple[list[EndReference], list[NamingRecord]]]) -> Stored:
        """Returns the items that must be known of these records and their other items."""
        requests = [self._sender.steps.detaching(references, same[0].item) for references, same in detaching]
        known: dict[Key, Item | None] = {
            key: None
            for request in requests
            for key in self._graph.table_keys(request.record, request.identity)
        }
        known |= {self._graph.table.key_of(same[0].item): same[0].item for _, same in detaching}
        return await self._sender.stored(requests, known)
