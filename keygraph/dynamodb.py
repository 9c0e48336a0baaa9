"""The DynamoDB engine: the only one that talks to AWS.

One transport serves a whole process; `open_dynamodb` makes it and closes it. Requests are rendered by
`keygraph.rendering`, sent by `keygraph.sending`, and their answers put together here.
"""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import AsyncIterator, Coroutine, Iterable, Mapping, Sequence
from contextlib import asynccontextmanager
from typing import Any, TypeVar, cast
from urllib.parse import urlsplit

from botocore.exceptions import BotoCoreError, ClientError

from keygraph._rules import can_go_on
from keygraph.aws import open_transport
from keygraph.dynamodb_errors import code_of, meaning
from keygraph.errors import TableMissing, TimedOut
from keygraph.items import Item, answered_item, untyped_item
from keygraph.rendering import Wire, render
from keygraph.request_texts import Call, RequestTexts
from keygraph.retrying import Attempts, Backoff, Deadlines, Quota
from keygraph.sending import Sender, Sending
from keygraph.store import (
    Answer,
    Batch,
    BatchGet,
    BatchWrite,
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
    Written,
)
from keygraph.table import Index, KeyAttribute, KeyDeclaration, Position, Table
from keygraph.transports import Body, Transport, TransportName

_Result = TypeVar("_Result")

_TABLE_SECONDS = 300.0
"""How long a table may take to become active, or to go."""


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
        endpoint: str = "AWS",
    ) -> None:
        """`deadline` is in seconds and holds for each `send`; `endpoint` is how messages call DynamoDB's place."""
        self._transport = transport
        self._table = table
        self._texts = RequestTexts(table) if transport.takes_texts else None
        self._backoff = backoff or Backoff()
        self._sender = Sender(transport, table.name, endpoint, deadline, self._backoff, quota or Quota())

    @property
    def table(self) -> Table:
        """The table that the requests are for."""
        return self._table

    async def close(self) -> None:
        """Closes the transport and its connections."""
        await self._transport.close()

    async def send(self, request: Request[Answer], /) -> Answer:
        """The answer, after as many retries as the deadline allows. Creating and deleting wait up to 5 minutes.

        Raises Throttled, TimedOut, Unavailable, TableMissing, or BadUserInput where a key or an item is too
        large for DynamoDB; whatever else it refuses is an error of ours and surfaces as botocore's.
        """
        # What is answered is of the type that the request's class says.
        match request:
            case Query() | Scan() | Count() | BatchGet() | BatchWrite():
                calls = self._calls(request)
                with self._sender.sending() as sending:
                    return cast(Answer, await self._data(request, calls, sending))
            case CreateTable():
                await self._create_table(render(request, self._table)[0])
                return cast(Answer, None)
            case DeleteTable():
                await self._delete_table(render(request, self._table)[0])
                return cast(Answer, None)
            case DescribeTable():
                described = await self._description()
                return cast(Answer, None if described is None else described_table(described))
            case ListTables():
                return cast(Answer, await self._names(render(request, self._table)[0]))
        raise TypeError(f"{type(request).__name__} is no request to a store")

    def _calls(self, request: Query | Scan | Count | BatchGet | BatchWrite) -> Sequence[Call]:
        if self._texts is not None and isinstance(request, Query | Count | BatchGet):
            return self._texts.calls(request)
        return render(request, self._table)

    def _data(
        self, request: Query | Scan | Count | BatchGet | BatchWrite, calls: Sequence[Call], sending: Sending
    ) -> Coroutine[Any, Any, object]:
        match request:
            case Query() | Scan():
                return self._page(request, calls, sending)
            case Count():
                return self._counted(request, calls, sending)
            case BatchGet():
                return self._batch(request, calls, sending)
        return self._written(calls, sending)

    # --- Reads ----------------------------------------------------------------------------------------

    async def _page(self, request: Query | Scan, calls: Sequence[Call], sending: Sending) -> Page:
        if not calls:
            return Page([], 0, None, sending.cost)
        answer = await sending.call(calls[0])
        items = [answered_item(typed) for typed in answer["Items"]]
        if isinstance(request, Query) and request.projection == ():
            items = [_without(item, self._table.keys) for item in items]
        last = self._last(answer, request)
        return Page(items, answer["ScannedCount"], last, sending.cost)

    async def _counted(self, request: Count, calls: Sequence[Call], sending: Sending) -> Counted:
        if not calls:
            return Counted(0, 0, None, sending.cost)
        answer = await sending.call(calls[0])
        last = self._last(answer, request)
        return Counted(answer["Count"], answer["ScannedCount"], last, sending.cost)

    def _last(self, answer: Body, request: Query | Count | Scan) -> Position | None:
        """Where to go on; None where nothing can follow, even if DynamoDB has stopped there for its limit."""
        typed = answer.get("LastEvaluatedKey")
        if not typed:
            return None
        if isinstance(request, Scan):
            return self._table.position_of(untyped_item(typed), None)
        last = self._table.position_of(untyped_item(typed), request.index)
        return last if can_go_on(request, last) else None

    async def _batch(self, request: BatchGet, calls: Sequence[Call], sending: Sending) -> Batch:
        asked = None if request.projection is None else {path[0] for path in request.projection}
        # The keys that were asked for only to tell the items apart.
        surplus = [] if asked is None else [key for key in self._table.keys if key.name not in asked]
        if calls and calls[0].operation == "GetItem":
            typed = (await sending.call(calls[0])).get("Item")
            item = None if typed is None else _without(answered_item(typed), surplus)
            return Batch([item] * len(request.keys), sending.cost)
        found = {}
        for answers in await _together([sending.until_processed(call) for call in calls]):
            for answer in answers:
                for typed in answer["Responses"].get(self._table.name, ()):
                    item = answered_item(typed)
                    key = self._table.key_of(item)
                    found[key] = _without(item, surplus)
        return Batch([found.get(key) for key in request.keys], sending.cost)

    async def _written(self, calls: Sequence[Call], sending: Sending) -> Written:
        await _together([sending.until_processed(call) for call in calls])
        return Written(sending.cost)

    # --- Tables ---------------------------------------------------------------------------------------

    async def _create_table(self, wire: Wire) -> None:
        late = f"the table {self._table.name} is not active yet: look at it again in some minutes"
        with Attempts(Deadlines(_TABLE_SECONDS), self._backoff, late) as waiting:
            for attempt in itertools.count():
                described = await self._description()
                status = await self._created(wire) if described is None else described["TableStatus"]
                if status not in {"CREATING", "DELETING"}:
                    return
                await waiting.wait(attempt, TimedOut(late))

    async def _created(self, wire: Wire) -> object:
        """The new table's status."""
        try:
            answer = await self._sender.call(wire)
        except ClientError as error:
            # Somebody else creates it at the same time.
            if code_of(error) == "ResourceInUseException":
                return "CREATING"
            raise
        return answer["TableDescription"]["TableStatus"]

    async def _delete_table(self, wire: Wire) -> None:
        late = f"the table {self._table.name} is not deleted yet: look at it again in some minutes"
        with Attempts(Deadlines(_TABLE_SECONDS), self._backoff, late) as waiting:
            for attempt in itertools.count():
                described = await self._description()
                if described is None:
                    return
                if described["TableStatus"] == "DELETING" or not await self._deleted(wire):
                    await waiting.wait(attempt, TimedOut(late))

    async def _deleted(self, wire: Wire) -> bool:
        """Whether the table goes; not while it is still being created."""
        try:
            await self._sender.call(wire)
        except TableMissing:
            return True
        except ClientError as error:
            if code_of(error) == "ResourceInUseException":
                return False
            raise
        return True

    async def _names(self, wire: Wire) -> tuple[str, ...]:
        """The names of all tables, of which an answer has 100."""
        answer = await self._sender.call(wire)
        names = list(answer["TableNames"])
        while (last := answer.get("LastEvaluatedTableName")) is not None:
            answer = await self._sender.call(Wire(wire.operation, {"ExclusiveStartTableName": last}))
            names += answer["TableNames"]
        return tuple(names)

    async def _description(self) -> Body | None:
        """What DynamoDB says of the table; None where there is none."""
        [wire] = render(DescribeTable(), self._table)
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


async def _together(running: Sequence[Coroutine[Any, Any, _Result]]) -> list[_Result]:
    """All results, in order. The first failure cancels the others, and is raised when they have ended."""
    if len(running) == 1:
        return [await running[0]]
    try:
        async with asyncio.TaskGroup() as group:
            tasks = [group.create_task(each) for each in running]
    except ExceptionGroup as failed:
        raise failed.exceptions[0] from None
    return [task.result() for task in tasks]


def described_table(described: Mapping[str, Any]) -> Table:
    """The table of a DescribeTable answer's `Table`; its indexes are in the order of their names."""
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
    """The table on AWS, or on whatever speaks DynamoDB's API at `endpoint_url`.

    Credentials and region are those that every AWS tool takes; an `http:` endpoint works without any, as
    DynamoDB Local does. `concurrency` is how many requests are on the wire at once, `deadline` how many
    seconds one `send` may take. What the direct transport does not know (a proxy, for one) goes through aioboto3. Raises Unavailable where AWS's own settings are missing or wrong.
    """
    endpoint = "AWS" if endpoint_url is None else urlsplit(endpoint_url).netloc.rpartition("@")[2]
    try:
        opened = await open_transport(
            endpoint_url, region, transport=transport, connections=concurrency, deadline=deadline
        )
    except BotoCoreError as error:
        meant = meaning(error, table.name, endpoint)
        if meant is None:
            raise
        raise meant.error from error
    store = DynamoDBStore(opened, table, deadline=deadline, endpoint=endpoint)
    try:
        yield store
    finally:
        await store.close()
