"""Sends calls of DynamoDB's API until they succeed: retries, unprocessed parts of batches, and consumed capacity."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass

from keygraph import errors
from keygraph.dynamo.table import Table
from keygraph.engines.dynamodb.answers import Answered, batch_length, decoded
from keygraph.engines.dynamodb.errors import failure_of
from keygraph.engines.dynamodb.gate import Gate, Passage
from keygraph.engines.dynamodb.requests import Wire
from keygraph.engines.dynamodb.retrying import Attempts, Backoff, Deadline, Quota
from keygraph.engines.dynamodb.transport import ANSWERED, Transport, in_thread
from keygraph.turns import BUDGET

_SENT_ONCE = {"PutItem", "UpdateItem", "DeleteItem"}
"""Calls that may have been carried out although no answer came: a second time their condition could fail."""
_WRITES = _SENT_ONCE | {"BatchWriteItem", "TransactWriteItems"}


@dataclass
class Sender:
    """Sends calls through one transport, within a deadline, with retries paid from one quota."""

    transport: Transport
    table: Table
    endpoint: str
    deadline: Deadline
    backoff: Backoff
    quota: Quota
    gate: Gate
    tries: int | None
    """The most times that a call is sent; None leaves that to the deadline and the quota."""

    async def call_about_tables(self, wire: Wire) -> Answered:
        """Sends one call about tables and returns its answer: it is sent in an outage too, and does not end one."""
        with Attempts(self.deadline, self.backoff) as attempts:
            return (await self.call(attempts, wire, is_free=True))[0]

    async def call(self, attempts: Attempts, wire: Wire, *, is_free: bool = False) -> list[Answered]:
        """Returns the answers of one call: sent again while a retry may help, and until nothing of a batch is left.

        With `is_free`, it does not go through the gate. Raises StoreError or BadUserInput; botocore's own error for a
        fault of Keygraph.
        """
        answers: list[Answered] = []
        attempt = left_over = 0
        paid: int | None = None
        lost: errors.KeygraphError | None = None
        while True:
            try:
                passage = None if is_free else await self.gate.enter(wire.operation)
            except errors.StoreError as outage:
                raise (errors.again(lost) if lost else outage) from None
            attempts.requests += 1
            try:
                answer = await self._answer(wire, passage)
            except Exception as error:
                actions = len(wire.body.get("TransactItems", ()))
                known = failure_of(error, self.table, self.endpoint, actions)
                if passage is not None:
                    passage.leave(None if known is None else known.error)
                if known is None:
                    raise
                is_unsure = wire.operation in _SENT_ONCE and isinstance(
                    known.error, errors.TimedOut | errors.Unavailable
                )
                if is_unsure or not known.is_passing:
                    raise errors.again(known.error) from error
                failure = known.error
                if wire.operation in _WRITES and isinstance(failure, errors.TimedOut | errors.Unavailable):
                    lost = failure
                elif lost is not None and isinstance(failure, errors.TransactionCanceled):
                    # The conflict may be with the transaction whose answer was lost.
                    failure = lost
            except asyncio.CancelledError:
                if passage is not None:
                    passage.give_up(errors.TimedOut(self.deadline.late))
                raise
            else:
                rest = answer.rest
                is_done = rest is None or batch_length(rest) < batch_length(wire)
                if passage is not None:
                    passage.leave(None if is_done else self._throttled())
                self.quota.give_back(paid)
                if wire.operation in _WRITES:
                    attempts.write_units += answer.units
                else:
                    attempts.read_units += answer.units
                answers.append(answer)
                if rest is None:
                    return answers
                # If only the size of the answer left a part over, and not load, pauses need not grow.
                left_over = 0 if is_done else left_over + 1
                attempt, paid, lost, wire = 0, None, None, rest
                await attempts.wait(left_over, self._throttled())
                continue
            attempt += 1
            if self.tries is not None and attempt >= self.tries:
                raise errors.again(failure)
            paid = self.quota.pay(failure)
            self.gate.traffic.retried += 1
            await attempts.wait(attempt - 1, failure)

    async def _answer(self, wire: Wire, passage: Passage | None) -> Answered:
        """Returns the content of the answer to a call, as soon as there is time for it. What was received is not referenced
        any more then: a large answer counts for that long, and the next one may wait for it."""
        ANSWERED.set((lambda: None) if passage is None else passage.answered)
        received = await self.transport.call(wire)
        ANSWERED.get()()

        def content() -> Answered:
            return decoded(wire, received.body(), self.table)

        if received.size:
            return await in_thread(content, received.size)
        budget = BUDGET.get()
        if budget is not None and budget.is_round_over and not budget.was_let_through():
            # Hundreds of answers may have come at the same time.
            await budget.wait_for_request()
        return content()

    def _throttled(self) -> errors.Throttled:
        return errors.Throttled(f"DynamoDB throttles batches for the table {self.table.name}")

    async def all(self, attempts: Attempts, calls: Sequence[Wire]) -> list[Answered]:
        """Returns the answers of several calls, which are sent at the same time."""
        try:
            # The first failure cancels the other calls, and is raised when they have ended.
            async with asyncio.TaskGroup() as group:
                tasks = [group.create_task(self.call(attempts, call)) for call in calls]
        except ExceptionGroup as failed:
            failed.__traceback__ = None  # the group's frame references it
            for other in failed.exceptions[1:]:
                errors.without_frames(other)
            raise failed.exceptions[0] from None
        return [answer for task in tasks for answer in task.result()]
