"""Calls of DynamoDB's API until they have succeeded: retries, what was left unprocessed, and what it cost."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

from keygraph.dynamodb_errors import meaning
from keygraph.errors import Throttled, TimedOut
from keygraph.rendering import Wire
from keygraph.retrying import Attempts, Backoff, Quota, attempts
from keygraph.store import Cost
from keygraph.transports import Body, Transport


@dataclass(frozen=True, slots=True)
class Sender:
    """How calls are sent: by which transport, for which table, in how many seconds, with how many retries."""

    transport: Transport
    table: str
    endpoint: str
    deadline: float
    backoff: Backoff
    quota: Quota

    @asynccontextmanager
    async def sending(self) -> AsyncIterator[Sending]:
        """The calls of one answer, together within the deadline. Raises Throttled or TimedOut past it."""
        late = TimedOut(f"DynamoDB at {self.endpoint} did not answer within {self.deadline:g} seconds")
        async with attempts(self.deadline, self.backoff, late) as running:
            yield Sending(self, running)

    async def call(self, wire: Wire) -> Body:
        """The answer of one call that has the deadline to itself."""
        async with self.sending() as sending:
            return await sending.call(wire)


@dataclass(slots=True)
class Sending:
    """The calls of one answer; `cost` counts every attempt."""

    sender: Sender
    attempts: Attempts
    cost: Cost = field(default_factory=Cost)

    async def call(self, wire: Wire) -> Body:
        """The answer of one call, sent again as long as what fails may pass.

        Raises the StoreError or BadUserInput that the failure means; botocore's own error where it means none.
        """
        sender = self.sender
        attempt = 0
        paid: int | None = None
        while True:
            self.cost += Cost(requests=1)
            try:
                answer: Body = await sender.transport.call(wire)
            except Exception as error:
                meant = meaning(error, sender.table, sender.endpoint)
                if meant is None:
                    raise
                if not meant.passes:
                    raise meant.error from error
                failure = meant.error
            else:
                sender.quota.give_back(paid)
                self.cost += _capacity(wire, answer)
                return answer
            paid = sender.quota.pay(failure)
            await self.attempts.wait(attempt, failure)
            attempt += 1

    async def until_processed(self, wire: Wire) -> list[Body]:
        """The answers of a batch until nothing of it is left unprocessed."""
        answers = []
        attempt = 0
        rest: Wire | None = wire
        while rest is not None:
            answer = await self.call(rest)
            answers.append(answer)
            before, rest = rest, remaining(rest, answer)
            if rest is not None:
                # What is left over by the size of an answer, not for load, needs no longer and longer pauses.
                attempt = attempt + 1 if _length(rest) == _length(before) else 0
                problem = (
                    f"DynamoDB leaves a part of a batch for the table {self.sender.table} undone, for load"
                )
                await self.attempts.wait(attempt, Throttled(problem))
        return answers


def remaining(wire: Wire, answer: Body) -> Wire | None:
    """The batch with what the answer says was left unprocessed; None where nothing was."""
    left: Body = answer.get("UnprocessedKeys") or answer.get("UnprocessedItems") or {}
    asked: Body = wire.body["RequestItems"]
    rest: Body = {}
    for table, part in left.items():
        if wire.operation == "BatchWriteItem":
            rest[table] = part
        else:
            # The projection is taken from what was asked: not everything that speaks this API returns it.
            rest[table] = {**asked[table], "Keys": part["Keys"]}
    return Wire(wire.operation, {**wire.body, "RequestItems": rest}) if rest else None


def _length(wire: Wire) -> int:
    parts = wire.body["RequestItems"].values()
    return sum(len(part if isinstance(part, list) else part["Keys"]) for part in parts)


def _capacity(wire: Wire, answer: Body) -> Cost:
    consumed = answer.get("ConsumedCapacity") or []
    units = sum(
        float(each.get("CapacityUnits", 0))
        for each in (consumed if isinstance(consumed, list) else [consumed])
    )
    return Cost(write_units=units) if wire.operation == "BatchWriteItem" else Cost(read_units=units)
