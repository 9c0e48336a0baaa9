"""Executes writes: reads the items that they depend on, sends one transaction, and explains its failure.

If another write changes these items meanwhile, they are read again after a pause, several times if needed.
"""

from __future__ import annotations

from collections.abc import Sequence

from keygraph.dynamo.store import Store
from keygraph.errors import BadUserInput, KeygraphError, Refusal, StoreError, WriteRefused
from keygraph.graph import Graph
from keygraph.model.permissions import Permissions
from keygraph.writing.context import WriteContext
from keygraph.writing.requests import Done, WriteRequest
from keygraph.writing.rules import refuse_forbidden
from keygraph.writing.sending.copying import resume
from keygraph.writing.sending.idempotency import IdempotencyKey
from keygraph.writing.sending.removal import MarkedNodes
from keygraph.writing.sending.sender import Outline, TransactionSender
from keygraph.writing.steps import transaction_steps
from keygraph.writing.tallies import read_list_ends


async def write(
    graph: Graph,
    store: Store,
    requests: Sequence[WriteRequest],
    idempotency_key: IdempotencyKey | None = None,
    permissions: Permissions | None = None,
    outline: Outline | None = None,
) -> Sequence[Done]:
    """Carries out all requests or none, and returns their results. Raises WriteRefused, and the store's errors.

    Under a known idempotency key, nothing is written, and the answer is the first one. A node with more edges than one
    transaction holds loses them first. `permissions` are the writer's, and learn what was written, even if a later
    transaction fails; None allows everything. `outline` is that of these requests, if it is known.
    """
    context = graph.made(WriteContext).of(permissions)
    refuse_forbidden(context, requests)
    sender = TransactionSender(context, store, requests, idempotency_key, outline)
    return await _carry_out(requests, sender)


async def _carry_out(requests: Sequence[WriteRequest], sender: TransactionSender) -> Sequence[Done]:
    marked, known = MarkedNodes(sender), None
    try:
        while True:
            stored, known = await sender.read()
            if known is not None:
                break
            context = sender.context.knowing(stored)
            steps, done = transaction_steps(context, requests)
            context.refusals.stop()
            if await read_list_ends(context, sender.send):
                steps, done = transaction_steps(context, requests)
                context.refusals.stop()
            if marked.are_any:
                finished = await marked.carry_out(context, steps, done)
            else:
                finished = done if await sender.finish(steps, done) else None
            if finished is not None:
                await resume(sender, stored)
                return finished
            await sender.pause()
    except KeygraphError as error:
        if not isinstance(error, StoreError):
            await marked.release()
        known = await sender.done_meanwhile() if isinstance(error, WriteRefused) else None
        if known is None and isinstance(error, BadUserInput):
            place, details = requests[0].where[:1], getattr(error, "details", {})
            raise WriteRefused([Refusal(error.code, error.parts, place, details)]) from error
        if known is None:
            raise
    else:
        await marked.release()
    sender.context.permissions.forget_links()  # that write may have changed them
    return known
