"""The DynamoDB engine: the only one that talks to AWS.

A process has one transport, which `open_dynamodb` makes and closes. `keygraph.engines.dynamodb.requests` renders
requests, `keygraph.engines.dynamodb.sending` sends them, and this module combines their answers.
"""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import replace
from typing import Any
from urllib.parse import urlsplit

from botocore.exceptions import BotoCoreError

from keygraph.dynamo import store, streams
from keygraph.dynamo.items import Item
from keygraph.dynamo.rules import can_go_on
from keygraph.dynamo.table import Key, Position, Table
from keygraph.dynamo.traffic import Traffic
from keygraph.engines.dynamodb import environment, requests
from keygraph.engines.dynamodb.answers import Answered
from keygraph.engines.dynamodb.errors import IteratorExpired, TableInUse, failure_of
from keygraph.engines.dynamodb.gate import Gate
from keygraph.engines.dynamodb.retrying import Attempts, Backoff, Deadline, Quota
from keygraph.engines.dynamodb.sending import Sender
from keygraph.engines.dynamodb.transport import Transport, TransportName
from keygraph.errors import StreamTrimmed, TableMissing, TimedOut, Unavailable

_TABLE_SECONDS = 300.0
"""The longest time that a table may take to become active, or to be deleted."""
_MOST_PAGES = 10_000
"""More pages than a list of 100 tables, or shards of a stream, a page can have."""
_MOST_SHARDS = 50_000
"""More shards than a stream of 24 hours has: those of a partition take turns every few hours."""


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
        self._endpoint = endpoint
        self.table = table
        self._render = requests.Renderer(table).render
        self._backoff = backoff or Backoff()
        self.traffic = Traffic()
        gate = Gate(concurrency, endpoint, self.traffic)
        limit = Deadline(deadline, f"DynamoDB at {endpoint} did not answer within {deadline:g} seconds")
        self._sender = Sender(transport, table, endpoint, limit, self._backoff, quota or Quota(), gate, tries)
        self._shard_places = asyncio.Semaphore(concurrency)
        self._answers: dict[type[object], Callable[[Any, Sequence[Answered], store.Cost], Any]] = {
            store.Query: self._page,
            store.Scan: self._page,
            store.Count: self._counted,
            store.BatchGet: self._batch,
            store.BatchWrite: lambda _, __, cost: store.Written(cost),
            store.Write: lambda _, answers, cost: store.Changed(next(iter(answers[0].items), None), cost),
            store.Transaction: lambda _, __, cost: store.Written(cost),
        }

    async def close(self) -> None:
        """Closes the transport and its connections."""
        await self._transport.close()

    async def send(self, request: store.Request[store.Answer], /) -> store.Answer:
        """Returns the answer, after as many retries as the deadline allows. Creating and deleting a table wait up to 5
        minutes.

        Raises Throttled, TimedOut, Unavailable or TableMissing; for writes ConditionFailed, TransactionCanceled and
        TokenReused; and BadUserInput if a key or item is too large. A request that DynamoDB calls invalid is a fault of
        Keygraph, raised as botocore's error.
        """
        # The request's class determines the type of the answer.
        answer = self._answers.get(type(request))
        if answer is None:
            return await self._managed(request)  # type: ignore[no-any-return]  # as below
        calls = self._render(request)
        sender = self._sender
        with Attempts(sender.deadline, sender.backoff) as attempts:
            answers = await (
                sender.call(attempts, calls[0]) if len(calls) == 1 else sender.all(attempts, calls)
            )
        cost = store.Cost(attempts.requests, attempts.read_units, attempts.write_units)
        return answer(request, answers, cost)  # type: ignore[no-any-return]  # it is the request's

    async def _managed(self, request: store.Request[Any]) -> Any:
        """Returns the answer to a request about tables and their streams."""
        match request:
            case store.CreateIndex() | store.DeleteIndex():
                return await self._change_index(request)
            case streams.DescribeStream():
                return await self._described_stream()
            case streams.LatestPosition(stream, shard):
                wire = requests.iterator_call(stream, shard, None)
                async with self._shard_places:
                    answer = await self._sender.call_about_tables(wire)
                return streams.ShardPosition(iterator=answer.iterator, is_latest=True)
            case streams.ReadRecords():
                async with self._shard_places:
                    return await self._records(request)
        [wire] = self._render(request)
        match request:
            case store.CreateTable():
                await self._until(wire, self._is_created, "active")
            case store.DeleteTable():
                await self._until(wire, self._is_deleted, "deleted")
            case streams.EnableStream():
                await self._until(wire, self._is_streaming, "streaming its changes")
            case store.ListTables():
                answers = self._listed(wire.operation, wire.body, "ExclusiveStartTableName")
                return tuple(dict.fromkeys([name async for each in answers for name in each.names]))
            case store.DescribeTable() if (described := await self._description()) is not None:
                return described.table
            case store.DescribeTimeToLive() | store.EnableTimeToLive():
                return (await self._sender.call_about_tables(wire)).ttl_attribute
        return None

    # --- Answers --------------------------------------------------------------------------------------

    def _page(
        self, request: store.Query | store.Scan, answers: Sequence[Answered], cost: store.Cost
    ) -> store.Page:
        [answer] = answers or (Answered(),)  # nothing had to be sent
        items = answer.items
        if isinstance(request, store.Query) and request.projection is not None:
            told = requests.told_partition(request, self.table.keyed(request.index))
            if request.projection in ((), ((told,),)):
                # A projection cannot be empty, so the table's keys were requested.
                for item in items:
                    for key in self.table.keys:
                        item.pop(key.name, None)
            if told is not None:
                for item in items:
                    item[told] = request.partition
        return store.Page(items, answer.scanned, self._last(answer, request), cost, answer.nested)

    def _counted(self, request: store.Count, answers: Sequence[Answered], cost: store.Cost) -> store.Counted:
        [answer] = answers or (Answered(),)  # nothing had to be sent
        return store.Counted(answer.count, answer.scanned, self._last(answer, request), cost)

    def _last(self, answer: Answered, request: store.Query | store.Count | store.Scan) -> Position | None:
        """Returns the start of the next page; None if nothing can follow, even if DynamoDB reached its limit."""
        last = answer.last
        if last is not None and last == request.start:
            raise self._foreign  # the page would be followed by itself
        return last if last is None or isinstance(request, store.Scan) or can_go_on(request, last) else None

    def _batch(self, request: store.BatchGet, answers: Sequence[Answered], cost: store.Cost) -> store.Batch:
        found: dict[Key, Item] = {}
        for answer in answers:
            if answer.by_key is not None:
                found |= answer.by_key
            elif answer.items:
                # A GetItem with a projection does not say its key.
                [item] = answer.items
                pairs = zip(self.table.keys, request.keys[0], strict=False)
                answered: Any = tuple([item.get(key.name, value) for key, value in pairs])
                found[answered] = item
        if not found.keys() <= {*request.keys}:
            raise self._foreign  # nobody requested that item
        if request.projection is not None:
            requested = {path[0] for path in request.projection}
            # These keys were only requested to identify the items.
            for name in [key.name for key in self.table.keys if key.name not in requested]:
                for item in found.values():
                    item.pop(name, None)
        return store.Batch(
            [found.get(key) for key in request.keys], cost, sum(each.nested for each in answers)
        )

    @property
    def _foreign(self) -> Unavailable:
        return Unavailable(f"the server at {self._endpoint} is not DynamoDB")

    # --- Tables ---------------------------------------------------------------------------------------

    async def _until(
        self,
        wire: requests.Wire,
        is_done: Callable[[requests.Wire, Answered | None], Awaitable[bool]],
        state: str,
    ) -> None:
        """Asks again until the table's description shows that state."""
        late = f"the table {self.table.name} is not {state} yet: try again in a few minutes"
        with Attempts(Deadline(_TABLE_SECONDS, late), self._backoff) as waiting:
            for attempt in itertools.count():
                if await is_done(wire, await self._description()):
                    return
                await waiting.wait(attempt, TimedOut(late))

    async def _is_created(self, wire: requests.Wire, described: Answered | None) -> bool:
        if described is None:
            described = await self._changed(wire)
        return described is not None and described.status not in {"CREATING", "DELETING"}

    async def _is_deleted(self, wire: requests.Wire, described: Answered | None) -> bool:
        if described is not None and described.status != "DELETING":
            with suppress(TableMissing):
                await self._changed(wire)
        return described is None

    async def _is_streaming(self, wire: requests.Wire, described: Answered | None) -> bool:
        if described is None:
            raise TableMissing(f"there is no table {self.table.name}")
        if described.stream is None and described.status == "ACTIVE":
            described = await self._changed(wire) or described
        return described.stream is not None and described.status == "ACTIVE"

    async def _changed(self, wire: requests.Wire) -> Answered | None:
        """Returns the answer; None while the table is being deleted, or created by somebody else."""
        with suppress(TableInUse):
            return await self._sender.call_about_tables(wire)
        return None

    async def _change_index(self, request: store.CreateIndex | store.DeleteIndex) -> int | None:
        """Asks for the change unless it is under way. Returns None when it is done, otherwise 0."""
        described = await self._description()
        if described is None or described.table is None:
            raise TableMissing(f"there is no table {self.table.name}")
        is_creating = isinstance(request, store.CreateIndex)
        status = described.indexes.get(
            request.index.name if isinstance(request, store.CreateIndex) else request.name
        )
        if status == ("ACTIVE" if is_creating else None):
            return None
        # DynamoDB changes one index at a time.
        if described.status == "ACTIVE" and status == (None if is_creating else "ACTIVE"):
            [wire] = requests.render(request, described.table)
            if is_creating and described.throughput:
                [update] = wire.body["GlobalSecondaryIndexUpdates"]
                update["Create"]["ProvisionedThroughput"] = described.throughput
            await self._changed(wire)
        return 0

    # --- Streams --------------------------------------------------------------------------------------

    async def _described_stream(self) -> streams.Stream | None:
        described = await self._description()
        if described is None:
            raise TableMissing(f"there is no table {self.table.name}")
        if described.stream is None:
            return None
        name, images = described.stream
        if images != requests.IMAGES_OF_STREAM:
            problem = f"the stream of the table {self.table.name} has {images}: turn it off, and on with {requests.IMAGES_OF_STREAM}"
            raise Unavailable(problem)
        return streams.Stream(name, streams.in_order(await self._shards(name)))

    async def _shards(self, stream: str) -> list[streams.StreamShard]:
        found: list[streams.StreamShard] = []
        async for answer in self._listed("DescribeStream", {"StreamArn": stream}, "ExclusiveStartShardId"):
            found += answer.shards
            if len(found) > _MOST_SHARDS:
                raise self._foreign
        return found

    async def _records(self, request: streams.ReadRecords) -> streams.RecordPage:
        position = request.position
        try:
            if position.iterator is not None:
                return await self._record_page(request, position.iterator)
        except IteratorExpired:
            if position.is_latest:
                raise StreamTrimmed(
                    f"the stream of the table {self.table.name} was not read for 15 minutes"
                ) from None
        call = requests.iterator_call(request.stream, request.shard, position)
        iterator = (await self._sender.call_about_tables(call)).iterator or ""
        return await self._record_page(request, iterator)

    async def _record_page(self, request: streams.ReadRecords, iterator: str) -> streams.RecordPage:
        # 1,000 at most, or 1 MB.
        wire = requests.Wire("GetRecords", {"ShardIterator": iterator})
        answer = await self._sender.call_about_tables(wire)
        # Something else than DynamoDB may answer with the same ones again, in any order, or leave out where they go on.
        after = request.position.after
        found = {each.position: each for each in answer.records if each.position > after}
        records = tuple([found[position] for position in sorted(found)])
        if answer.iterator is None:
            shards = await self._shards(request.stream)
            if any(each.name == request.shard and not each.is_closed for each in shards):
                raise Unavailable(f"an open shard of the stream of the table {self.table.name} has ended")
            return streams.RecordPage(records, None)
        if records:
            following = streams.ShardPosition(records[-1].position, answer.iterator)
        else:
            following = replace(request.position, iterator=answer.iterator)
        return streams.RecordPage(records, following)

    async def _listed(self, operation: str, body: dict[str, Any], start: str) -> AsyncIterator[Answered]:
        """Yields the answers with all names, of tables or shards. `start` names the field for the last one before."""
        before = set[str]()
        last: str | None = None
        while len(before) < _MOST_PAGES:
            further = {} if last is None else {start: last}
            answer = await self._sender.call_about_tables(requests.Wire(operation, body | further))
            yield answer
            last = answer.last_name
            # A page that was there before would be followed by itself.
            if last is None or last in before:
                return
            before.add(last)
        raise self._foreign  # its list has no end

    async def _description(self) -> Answered | None:
        """Returns DynamoDB's description of the table; None if there is none."""
        [wire] = self._render(store.DescribeTable())
        try:
            return await self._sender.call_about_tables(wire)
        except TableMissing:
            return None


@asynccontextmanager
async def open_dynamodb(
    table: Table,
    endpoint_url: str | None = None,
    region: str | None = None,
    *,
    concurrency: int = 256,
    deadline: float = 10.0,
    transport: TransportName = "direct",
) -> AsyncIterator[DynamoDBStore]:
    """Opens the table on AWS, or on a server with DynamoDB's API at `endpoint_url`.

    Credentials and region come from AWS's usual sources; an `http:` endpoint (DynamoDB Local) needs none. `concurrency`
    is the most requests that are sent at once, `deadline` the seconds that one `send` may take. AWS's own
    `max_attempts`, if set, limits how often a call is sent. Settings that the direct transport does not support (a
    proxy, for example) send all requests through aioboto3. Raises Unavailable if AWS's settings are missing or wrong.
    """
    endpoint = "AWS" if endpoint_url is None else urlsplit(endpoint_url).netloc.rpartition("@")[2]

    async def with_library(name: TransportName) -> tuple[Transport, int | None]:
        from keygraph.engines.dynamodb.settings import open_transport  # imports AWS's library

        return await open_transport(
            endpoint_url, region, transport=name, connections=concurrency, deadline=deadline
        )

    async def client() -> Transport:
        return (await with_library("aioboto3"))[0]

    known_settings = environment.settings(endpoint_url, region) if transport == "direct" else None
    opened: Transport
    try:
        if known_settings is not None:
            opened, tries = known_settings.transport(client, deadline), None
        else:
            opened, tries = await with_library(transport)
    except BotoCoreError as error:
        known = failure_of(error, table, endpoint)
        raise known.error if known else Unavailable(f"AWS's settings cannot be used: {error}") from error
    quota = Quota.of_connections(concurrency)
    dynamodb = DynamoDBStore(
        opened,
        table,
        deadline=deadline,
        quota=quota,
        tries=tries,
        endpoint=endpoint,
        concurrency=concurrency,
    )
    try:
        yield dynamodb
    finally:
        await dynamodb.close()
