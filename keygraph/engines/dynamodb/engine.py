"""The DynamoDB engine: the only one that talks to AWS.

A process has one transport, which `open_dynamodb` makes and closes. `keygraph.engines.dynamodb.requests` renders
requests, `keygraph.engines.dynamodb.sending` sends them, and this module combines their answers.
"""

from __future__ import annotations

import itertools
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Mapping, Sequence
from contextlib import asynccontextmanager, suppress
from typing import Any, cast
from urllib.parse import urlsplit

from botocore.exceptions import BotoCoreError, ClientError

from keygraph.dynamo.items import Item, answered_items, untyped_item
from keygraph.dynamo.rules import can_go_on
from keygraph.dynamo.store import (
    Answer,
    Batch,
    BatchGet,
    BatchWrite,
    Changed,
    Cost,
    Count,
    Counted,
    CreateTable,
    DeleteTable,
    DescribeTable,
    ListTables,
    Page,
    Query,
    Request,
    Scan,
    Transaction,
    Write,
    Written,
)
from keygraph.dynamo.table import Index, Key, KeyAttribute, KeyDeclaration, Position, Table
from keygraph.dynamo.traffic import Traffic
from keygraph.engines.dynamodb.errors import code_of, failure_of
from keygraph.engines.dynamodb.gate import Gate
from keygraph.engines.dynamodb.requests import Renderer, Wire, told_partition
from keygraph.engines.dynamodb.retrying import Attempts, Backoff, Quota
from keygraph.engines.dynamodb.sending import Sender, Sending
from keygraph.engines.dynamodb.settings import open_transport
from keygraph.engines.dynamodb.transport import Body, Transport, TransportName
from keygraph.errors import TableMissing, TimedOut, Unavailable

_NOTHING: Body = {"Items": (), "Count": 0, "ScannedCount": 0}
"""The answer if nothing had to be sent."""
_TABLE_SECONDS = 300.0
"""The longest time that a table may take to become active, or to be deleted."""


class DynamoDBStore:
    """A store over one transport."""

    def __init__(
        self,
        transport: Transport,
        table: Table,
        *,
        deadline: float = 10.0,
        backoff: Backoff | None = None,
        quota: Quota | None = None,
        tries: int | None = None,
        endpoint: str = "AWS",
        concurrency: int = 256,
    ) -> None:
        """`deadline` is in seconds, for each `send`; `endpoint` is DynamoDB's name in messages, `concurrency` the most
        requests that are sent at once.

        `tries` is the most times that a call is sent; None leaves that to the deadline and the quota.
        """
        self._transport = transport
        self.table = table
        self._render = Renderer(table).render
        self._backoff = backoff or Backoff()
        self.traffic = Traffic()
        gate = Gate(concurrency, endpoint, self.traffic)
        self._sender = Sender(
            transport, table.name, endpoint, deadline, self._backoff, quota or Quota(), gate, tries
        )
        self._answers: dict[type[object], Callable[[Any, Sequence[Body], Cost], object]] = {
            Query: self._page,
            Scan: self._page,
            Count: self._counted,
            BatchGet: self._batch,
            BatchWrite: self._written,
            Write: self._changed_item,
            Transaction: self._written,
        }

    async def close(self) -> None:
        """Closes the transport and its connections."""
        await self._transport.close()

    async def send(self, request: Request[Answer], /) -> Answer:
        """Returns the answer, after as many retries as the deadline allows. Creating and deleting a table wait up to 5
        minutes.

        Raises Throttled, TimedOut, Unavailable or TableMissing; for writes ConditionFailed, TransactionCanceled and
        TokenReused; and BadUserInput if a key or item is too large. Any other refusal is a fault of Keygraph, raised as
        botocore's error.
        """
        # The request's class determines the type of the answer.
        answer = self._answers.get(type(request))
        if answer is None:
            return cast(Answer, await self._managed(request))
        calls = self._render(request)
        async with Sending(self._sender) as sending:
            answers = await sending.all(calls)
        return cast(Answer, answer(request, answers, sending.cost))

    async def _managed(self, request: Request[Any]) -> object:
        """Returns the answer to a request about tables."""
        [wire] = self._render(request)
        match request:
            case CreateTable():
                await self._until(wire, self._is_created, "active")
            case DeleteTable():
                await self._until(wire, self._is_deleted, "deleted")
            case ListTables():
                return await self._names(wire)
            case DescribeTable() if (described := await self._description()) is not None:
                return described_table(described)
        return None

    # --- Answers --------------------------------------------------------------------------------------

    def _page(self, request: Query | Scan, answers: Sequence[Body], cost: Cost) -> Page:
        [answer] = answers or (_NOTHING,)
        items = answered_items(answer["Items"])
        if isinstance(request, Query) and request.projection is not None:
            told = told_partition(request, self.table.keyed(request.index))
            if request.projection in ((), ((told,),)):
                # A projection cannot be empty, so the table's keys were requested.
                items = [_without(item, self.table.keys) for item in items]
            if told is not None:
                for item in items:
                    item[told] = request.partition
        return Page(items, answer["ScannedCount"], self._last(answer, request), cost)

    def _counted(self, request: Count, answers: Sequence[Body], cost: Cost) -> Counted:
        [answer] = answers or (_NOTHING,)
        return Counted(answer["Count"], answer["ScannedCount"], self._last(answer, request), cost)

    def _last(self, answer: Body, request: Query | Count | Scan) -> Position | None:
        """Returns the start of the next page; None if nothing can follow, even if DynamoDB reached its limit."""
        typed = answer.get("LastEvaluatedKey")
        if not typed:
            return None
        [keys] = answered_items((typed,))
        if isinstance(request, Scan):
            return self.table.position_of(keys, None)
        last = self.table.position_of(keys, request.index)
        return last if can_go_on(request, last) else None

    def _batch(self, request: BatchGet, answers: Sequence[Body], cost: Cost) -> Batch:
        found: dict[Key, Item] = {}
        key_of, name = self.table.key_of, self.table.name
        for answer in answers:
            if "Item" in answer:
                [item] = answered_items([answer["Item"]])
                found[request.keys[0]] = item
            else:
                items = answered_items(answer.get("Responses", {}).get(name, ()))
                found.update(zip(map(key_of, items), items, strict=True))
        if request.projection is not None:
            asked = {path[0] for path in request.projection}
            # These keys were only requested to identify the items.
            surplus = [key for key in self.table.keys if key.name not in asked]
            if surplus:
                for item in found.values():
                    _without(item, surplus)
        return Batch([found.get(key) for key in request.keys], cost)

    def _changed_item(self, request: Write, answers: Sequence[Body], cost: Cost) -> Changed:
        typed = answers[0].get("Attributes")
        return Changed(untyped_item(typed) if typed else None, cost)

    def _written(self, request: BatchWrite | Transaction, answers: Sequence[Body], cost: Cost) -> Written:
        return Written(cost)

    # --- Tables ---------------------------------------------------------------------------------------

    async def _until(
        self, wire: Wire, is_done: Callable[[Wire, Body | None], Awaitable[bool]], state: str
    ) -> None:
        """Asks again until the table's description shows that state."""
        late = f"the table {self.table.name} is not {state} yet: try again in a few minutes"
        async with Attempts(_TABLE_SECONDS, self._backoff, late) as waiting:
            for attempt in itertools.count():
                if await is_done(wire, await self._description()):
                    return
                await waiting.wait(attempt, TimedOut(late))

    async def _is_created(self, wire: Wire, described: Body | None) -> bool:
        if described is None:
            answer = await self._changed(wire)
            described = {"TableStatus": "CREATING"} if answer is None else answer["TableDescription"]
        return described["TableStatus"] not in {"CREATING", "DELETING"}

    async def _is_deleted(self, wire: Wire, described: Body | None) -> bool:
        if described is not None and described["TableStatus"] != "DELETING":
            with suppress(TableMissing):
                await self._changed(wire)
        return described is None

    async def _changed(self, wire: Wire) -> Body | None:
        """Returns the answer; None while the table is being deleted, or created by somebody else."""
        try:
            return await self._sender.call(wire)
        except ClientError as error:
            if code_of(error) == "ResourceInUseException":
                return None
            raise

    async def _names(self, wire: Wire) -> tuple[str, ...]:
        """Returns the names of all tables; one answer has at most 100 of them."""
        answer = await self._sender.call(wire)
        names = list(answer["TableNames"])
        while (last := answer.get("LastEvaluatedTableName")) is not None:
            answer = await self._sender.call(Wire(wire.operation, {"ExclusiveStartTableName": last}))
            names += answer["TableNames"]
        return tuple(names)

    async def _description(self) -> Body | None:
        """Returns DynamoDB's description of the table; None if there is none."""
        [wire] = self._render(DescribeTable())
        try:
            answer = await self._sender.call(wire)
        except TableMissing:
            return None
        described: Body = answer["Table"]
        return described


def _without(item: Item, keys: Iterable[KeyAttribute]) -> Item:
    for key in keys:
        item.pop(key.name, None)
    return item


def described_table(described: Mapping[str, Any]) -> Table:
    """Returns the table in a DescribeTable answer's `Table`; its indexes are sorted by name."""
    types = {each["AttributeName"]: each["AttributeType"] for each in described["AttributeDefinitions"]}

    def keys(schema: list[dict[str, str]]) -> tuple[KeyDeclaration, KeyDeclaration | None]:
        named = {each["KeyType"]: (each["AttributeName"], types[each["AttributeName"]]) for each in schema}
        return named["HASH"], named.get("RANGE")

    indexes = []
    for kind, local in (("GlobalSecondaryIndexes", False), ("LocalSecondaryIndexes", True)):
        for each in described.get(kind) or ():
            projection = each["Projection"]
            projected = projection.get("NonKeyAttributes") or projection["ProjectionType"]
            partition, sort = keys(each["KeySchema"])
            indexes.append(Index(each["IndexName"], partition, sort, projection=projected, local=local))
    partition, sort = keys(described["KeySchema"])
    return Table(
        described["TableName"],
        partition_key=partition,
        sort_key=sort,
        indexes=sorted(indexes, key=lambda index: index.name),
    )


@asynccontextmanager
async def open_dynamodb(
    table: Table,
    endpoint_url: str | None = None,
    region: str | None = None,
    *,
    concurrency: int = 256,
    deadline: float = 10.0,
    transport: TransportName = TransportName.DIRECT,
) -> AsyncIterator[DynamoDBStore]:
    """Opens the table on AWS, or on a server with DynamoDB's API at `endpoint_url`.

    Credentials and region come from AWS's usual sources; an `http:` endpoint (DynamoDB Local) needs none. `concurrency`
    is the most requests that are sent at once, `deadline` the seconds that one `send` may take. AWS's own
    `max_attempts`, if set, limits how often a call is sent. Settings that the direct transport does not support (a
    proxy, for example) send all requests through aioboto3. Raises Unavailable if AWS's settings are missing or wrong.
    """
    endpoint = "AWS" if endpoint_url is None else urlsplit(endpoint_url).netloc.rpartition("@")[2]
    try:
        opened, tries = await open_transport(
            endpoint_url, region, transport=transport, connections=concurrency, deadline=deadline
        )
    except BotoCoreError as error:
        known = failure_of(error, table.name, endpoint)
        raise known.error if known else Unavailable(f"AWS's settings cannot be used: {error}") from error
    quota = Quota.of_connections(concurrency)
    store = DynamoDBStore(
        opened,
        table,
        deadline=deadline,
        quota=quota,
        tries=tries,
        endpoint=endpoint,
        concurrency=concurrency,
    )
    try:
        yield store
    finally:
        await store.close()
