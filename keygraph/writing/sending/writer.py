"""Executes writes: reads the items that they depend on, sends one transaction, and explains its failure.

If another write changes these items meanwhile, they are read again after a pause, several times if needed.
"""

from __future__ import annotations

from collections.abc import Sequence

from keygraph.dynamo.store import Query, Store
from keygraph.dynamo.table import Key
from keygraph.errors import BadUserInput, FieldName, KeygraphError, Refusal, StoreError, WriteRefused
from keygraph.graph import Graph
from keygraph.model.permissions import Permissions
from keygraph.writing.items import Refusals
from keygraph.writing.requests import Change, Done, WriteAnswer, WriteRequest, place_of
from keygraph.writing.sending.idempotency import IdempotencyKey
from keygraph.writing.sending.removal import Removal, first_pages, named_nodes
from keygraph.writing.sending.sender import TransactionSender
from keygraph.writing.steps import StepMaker


class Writer:
    """Writes to one graph in one store."""

    def __init__(self, graph: Graph, store: Store, permissions: Permissions | None = None) -> None:
        """`permissions` are the writer's; None allows everything."""
        self._graph = graph
        self._store = store
        self._permissions = permissions
        self._steps = graph.made(StepMaker).of(permissions)

    async def write(
        self, requests: Sequence[WriteRequest], idempotency_key: IdempotencyKey | None = None
    ) -> WriteAnswer:
        """Carries out all requests or none. Raises WriteRefused, and the store's errors.

        Under a known idempotency key, nothing is written, and the answer is the first one. A node with more edges than
        one transaction holds loses them first. The permissions learn what was written, even if a later transaction
        fails.
        """
        refusals = Refusals()
        self._steps.refuse(requests, refusals)
        refusals.stop()
        sender, done = self._sender(requests, idempotency_key), tuple[Done, ...]()
        try:
            answer = await self._carry_out(requests, sender)
            done = answer.done
        finally:
            if self._permissions is not None:
                table_keys = self._graph.table_keys
                items = {key: each.item for each in done for key in table_keys(each.record, each.identity)}
                self._permissions.learn_written(sender.written, items)
        return answer

    async def _carry_out(self, requests: Sequence[WriteRequest], sender: TransactionSender) -> WriteAnswer:
        removal, known = Removal(sender), None
        try:
            while True:
                stored, known = await sender.read(is_noted=bool(removal.nodes))
                if known is not None:
                    break
                refusals = Refusals()
                steps, done = self._steps.steps(requests, stored, refusals)
                refusals.stop()
                if removal.nodes:
                    finished = await removal.carry_out(steps, done, stored)
                else:
                    finished = done if await sender.finish(steps, done) else None
                if finished is not None:
                    return WriteAnswer(tuple(finished), sender.cost)
                await sender.pause()
        except KeygraphError as error:
            if not isinstance(error, StoreError):
                await removal.release()
            known = await sender.done_meanwhile() if isinstance(error, WriteRefused) else None
            if known is None and isinstance(error, BadUserInput):
                raise WriteRefused([_refusal(error, requests)]) from error
            if known is None:
                raise
        else:
            await removal.release()
        return WriteAnswer(known, sender.cost)

    def needed(self, requests: Sequence[WriteRequest]) -> tuple[Key, ...]:
        """Returns the keys of items that must be known before anything is written."""
        return self._sender(requests).needed(requests)

    def needed_later(self, requests: Sequence[WriteRequest]) -> int:
        """Returns how many further items may have to be read once those are known."""
        return sum(map(self._steps.most_read_later, requests))

    def marked(self, requests: Sequence[WriteRequest]) -> int:
        """Returns how many nodes are marked before the search for records that name them."""
        return len(named_nodes(self._graph, requests))

    def searched(self, requests: Sequence[WriteRequest]) -> list[Query]:
        """Returns the first pages of the search for records that name deleted or moved nodes. Others may follow."""
        return first_pages(self._graph, requests)

    def _sender(
        self, requests: Sequence[WriteRequest], idempotency_key: IdempotencyKey | None = None
    ) -> TransactionSender:
        return TransactionSender(self._graph, self._store, self._steps, requests, idempotency_key)


def _refusal(error: BadUserInput, requests: Sequence[WriteRequest]) -> Refusal:
    """Returns why a write does not fit what is stored, at the only field that is added to, or at the whole input."""
    changes = [each for each in requests if isinstance(each, Change)]
    added = [(*place_of(each, name), FieldName(name)) for each in changes for name in each.added]
    at = added[0] if len(added) == 1 else requests[0].where[:1]
    return Refusal(error.code, error.parts, at, getattr(error, "details", {}))
