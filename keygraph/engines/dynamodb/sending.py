"""Sends calls of DynamoDB's API until they succeed: retries, unprocessed parts of batches, and consumed capacity."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass

from botocore.parsers import ResponseParserError

from keygraph.dynamo.store import Cost
from keygraph.engines.dynamodb.errors import failure_of
from keygraph.engines.dynamodb.gate import Gate
from keygraph.engines.dynamodb.requests import Wire
from keygraph.engines.dynamodb.retrying import Attempts, Backoff, Quota
from keygraph.engines.dynamodb.transport import Body, Transport
from keygraph.errors import KeygraphError, StoreError, Throttled, TimedOut, TransactionCanceled, Unavailable

_SENT_ONCE = {"PutItem", "UpdateItem", "DeleteItem"}
"""Calls that may have been carried out although no answer came: a second time their condition could fail."""
_NO_FIELDS: frozenset[str] = frozenset()
_WITHOUT_ITEM = frozenset({"ConsumedCapacity", "ResponseMetadata"})
"""The fields of a GetItem answer without an item."""
_REQUIRED = {
    "Query": frozenset({"Count", "ScannedCount"}),
    "Scan": frozenset({"Count", "ScannedCount"}),
    "BatchGetItem": frozenset({"Responses"}),
}
"""The fields that every answer has."""
_BATCHES = {"BatchGetItem", "BatchWriteItem"}
"""Calls that may leave a part unprocessed."""
_WRITES = _SENT_ONCE | {"BatchWriteItem", "TransactWriteItems"}


@dataclass
class Sender:
    """Sends calls through one transport, within a deadline, with retries paid from one quota."""

    transport: Transport
    table: str
    endpoint: str
    deadline: float
    backoff: Backoff
    quota: Quota
    gate: Gate
    tries: int | None
    """The most times that a call is sent; None leaves that to the deadline and the quota."""

    def __post_init__(self) -> None:
        self.late = f"DynamoDB at {self.endpoint} did not answer within {self.deadline:g} seconds"

    async def call(self, wire: Wire) -> Body:
        """Sends one call about tables and returns its answer: it is sent in an outage too, and does not end one."""
        async with Sending(self, is_free=True) as sending:
            return await sending.call(wire)


class Sending(Attempts):
    """The calls of one answer, which share the deadline; `cost` counts every attempt."""

    def __init__(self, sender: Sender, *, is_free: bool = False) -> None:
        """With `is_free`, the calls do not go through the gate."""
        super().__init__(sender.deadline, sender.backoff, sender.late)
        self._sender = sender
        self._is_free = is_free
        self._requests = 0
        self._read_units = 0.0
        self._write_units = 0.0

    @property
    def cost(self) -> Cost:
        """The cost of the calls so far."""
        return Cost(self._requests, self._read_units, self._write_units)

    async def call(self, wire: Wire) -> Body:
        """Returns the answer of one call, which is sent again while a retry may help.

        Raises StoreError or BadUserInput; botocore's own error for a fault of Keygraph.
        """
        sender = self._sender
        attempt = 0
        paid: int | None = None
        lost: KeygraphError | None = None
        while True:
            try:
                passage = None if self._is_free else await sender.gate.enter(wire.operation)
            except StoreError as outage:
                raise lost or outage from None
            self._requests += 1
            try:
                answer: Body = await sender.transport.call(wire)
                if not _is_answer(wire, answer):
                    raise ResponseParserError("an answer without what DynamoDB says")
            except Exception as error:
                known = failure_of(error, sender.table, sender.endpoint)
                if passage is not None:
                    passage.leave(None if known is None else known.error)
                if known is None:
                    raise
                is_unsure = wire.operation in _SENT_ONCE and isinstance(known.error, TimedOut | Unavailable)
                if is_unsure or not known.is_passing:
                    raise known.error from error
                failure = known.error
                if wire.operation in _WRITES and isinstance(failure, TimedOut | Unavailable):
                    lost = failure
                elif lost is not None and isinstance(failure, TransactionCanceled):
                    # The conflict may be with the transaction whose answer was lost.
                    failure = lost
            except asyncio.CancelledError:
                if passage is not None:
                    passage.give_up(TimedOut(sender.late))
                raise
            else:
                if passage is not None:
                    passage.leave(self._left_over(wire, answer))
                sender.quota.give_back(paid)
                self._count(wire, answer)
                return answer
            attempt += 1
            if sender.tries is not None and attempt >= sender.tries:
                raise failure
            paid = sender.quota.pay(failure)
            sender.gate.traffic.retried += 1
            await self.wait(attempt - 1, failure)

    def _left_over(self, wire: Wire, answer: Body) -> Throttled | None:
        """Returns the failure of an answer that processed nothing."""
        rest = remaining(wire, answer) if wire.operation in _BATCHES else None
        if rest is None or _length(rest) < _length(wire):
            return None
        return Throttled(f"DynamoDB throttles batches for the table {self._sender.table}")

    def _count(self, wire: Wire, answer: Body) -> None:
        consumed = answer.get("ConsumedCapacity") or ()
        if type(consumed) is dict:
            units = consumed.get("CapacityUnits", 0.0)
        else:
            units = sum([each.get("CapacityUnits", 0.0) for each in consumed])
        if wire.operation in _WRITES:
            self._write_units += units
        else:
            self._read_units += units

    async def all(self, calls: Sequence[Wire]) -> list[Body]:
        """Returns the answers of calls that are sent at the same time, each until nothing is left unprocessed."""
        if len(calls) == 1:
            [call] = calls
            return (
                await self._until_processed(call) if call.operation in _BATCHES else [await self.call(call)]
            )
        try:
            # The first failure cancels the other calls, and is raised when they have ended.
            async with asyncio.TaskGroup() as group:
                tasks = [group.create_task(self._until_processed(call)) for call in calls]
        except ExceptionGroup as failed:
            raise failed.exceptions[0] from None
        return [answer for task in tasks for answer in task.result()]

    async def _until_processed(self, wire: Wire) -> list[Body]:
        """Returns the answers of a batch, which is sent until nothing is left unprocessed."""
        answers = []
        attempt = 0
        rest: Wire | None = wire
        while rest is not None:
            answer = await self.call(rest)
            answers.append(answer)
            before, rest = rest, remaining(rest, answer)
            if rest is not None:
                # If only the size of the answer left a part over, and not load, pauses need not grow.
                attempt = attempt + 1 if _length(rest) == _length(before) else 0
                problem = f"DynamoDB throttles batches for the table {self._sender.table}"
                await self.wait(attempt, Throttled(problem))
        return answers


def _is_answer(wire: Wire, answer: Body) -> bool:
    """Returns whether the answer has the fields of such a call, so that nothing unread is taken for missing."""
    if wire.operation == "GetItem":
        return isinstance(answer.get("Item"), dict) or answer.keys() <= _WITHOUT_ITEM
    return _REQUIRED.get(wire.operation, _NO_FIELDS) <= answer.keys()


def remaining(wire: Wire, answer: Body) -> Wire | None:
    """Returns the batch of what the answer left unprocessed; None if nothing."""
    left: Body = answer.get("UnprocessedKeys") or answer.get("UnprocessedItems") or {}
    if not left:
        return None
    body = wire.body
    asked: Body = body["RequestItems"]
    rest: Body = {}
    for table, part in left.items():
        if wire.operation == "BatchWriteItem":
            rest[table] = part
        else:
            # The projection comes from the request: not every server with this API returns it.
            rest[table] = {**asked[table], "Keys": part["Keys"]}
    return Wire(wire.operation, {**body, "RequestItems": rest})


def _length(wire: Wire) -> int:
    parts = wire.body["RequestItems"].values()
    return sum(len(part if isinstance(part, list) else part["Keys"]) for part in parts)
