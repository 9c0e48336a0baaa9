"""Streams: every change of an item in its order, on every engine."""

from __future__ import annotations

import asyncio
import random
import sqlite3
import ssl
import time
from collections.abc import AsyncIterator
from contextlib import closing, suppress
from copy import deepcopy
from decimal import Decimal
from itertools import count
from pathlib import Path
from typing import Any

import pytest
from botocore.credentials import ReadOnlyCredentials

from keygraph.changes.stream import StreamReader, ancestors, readable
from keygraph.dynamo.actions import AddNumber, CheckItem, DeleteItem, PutItem, Remove, SetTo, UpdateItem
from keygraph.dynamo.conditions import Exists, Not
from keygraph.dynamo.items import Item
from keygraph.dynamo.store import BatchWrite, CreateTable, DeleteTable, Scan, Store, Transaction, Write, pages
from keygraph.dynamo.streams import (
    DescribeStream,
    EnableStream,
    LatestPosition,
    ReadRecords,
    ShardPosition,
    StreamRecord,
    StreamShard,
    in_order,
)
from keygraph.dynamo.table import Index, Key, Table
from keygraph.engines.dynamodb.direct import direct_transport
from keygraph.engines.dynamodb.engine import DynamoDBStore, open_dynamodb
from keygraph.engines.dynamodb.errors import refusal
from keygraph.engines.dynamodb.requests import Wire
from keygraph.engines.dynamodb.transport import Received
from keygraph.engines.sqlite import changes
from keygraph.engines.sqlite.engine import open_sqlite
from keygraph.errors import ConditionFailed, StreamTrimmed, TableMissing, TransactionCanceled, Unavailable
from tests.conftest import MakeStore, on_exact_engines

TABLE = Table("Streamed", partition_key="PK", sort_key=("SK", "N"), indexes=[Index("by-kind", "Kind", "PK")])


async def streaming(make_store: MakeStore, table: Table = TABLE) -> Store:
    store = await make_store(table)
    await store.send(EnableStream())
    return store


async def read_all(reader: StreamReader) -> list[tuple[str, StreamRecord]]:
    """What comes until nothing more does."""
    found: list[tuple[str, StreamRecord]] = []
    while True:
        finished = sum(each is None for each in reader.positions.values())
        several = await reader.read()
        found += several
        if not several and finished == sum(each is None for each in reader.positions.values()):
            return found


@pytest.fixture
async def store(tmp_path: Path) -> AsyncIterator[Store]:
    """A file of the embedded engine, with a stream."""
    async with open_sqlite(tmp_path / "a.db", TABLE) as store:
        await store.send(CreateTable())
        await store.send(EnableStream())
        yield store


class Writer:
    """Writes at random: singly, conditionally, in batches and in transactions."""

    def __init__(self, store: Store, seed: int) -> None:
        self.store, self.random = store, random.Random(seed)

    def key(self) -> Key:
        return f"p{self.random.randrange(4)}", Decimal(self.random.randrange(3))

    def item(self) -> Item:
        partition, sort = self.key()
        more: Item = {
            "n": Decimal(self.random.randrange(3)),
            "b": bytes([self.random.randrange(3)]),
            "set": frozenset({"x"}),
            "map": {"list": [None, True, Decimal("1.5")]},
        }
        chosen = {name: value for name, value in more.items() if self.random.random() < 0.6}
        return {"PK": partition, "SK": sort, "Kind": self.random.choice("uvw"), **chosen}

    def action(self) -> PutItem | UpdateItem | DeleteItem:
        changes = (SetTo(("n",), Decimal(1)), Remove(("b",)), AddNumber(("m",), Decimal(2)))
        chosen = tuple(each for each in changes if self.random.random() < 0.5)
        condition = self.random.choice([None, None, Exists(("n",)), Not(Exists(("PK",)))])
        return self.random.choice(
            [
                PutItem(self.item(), condition),
                UpdateItem(self.key(), chosen or changes[:1], condition),
                DeleteItem(self.key(), condition),
            ]
        )

    async def write(self) -> None:
        match self.random.randrange(3):
            case 0:
                with suppress(ConditionFailed):
                    await self.store.send(Write(self.action()))
            case 1:
                items = {TABLE.key_of(each): each for each in (self.item() for _ in range(5))}
                deleted = {self.key() for _ in range(2)} - items.keys()
                await self.store.send(BatchWrite(tuple(items.values()), tuple(deleted)))
            case _:
                actions = {}
                for _ in range(3):
                    action = self.action()
                    key = TABLE.key_of(action.item) if isinstance(action, PutItem) else action.key
                    actions[key] = action
                check = CheckItem(("p9", Decimal(9)), Not(Exists(("PK",))))
                with suppress(TransactionCanceled):
                    token = f"{self.random.getrandbits(64):x}"
                    await self.store.send(Transaction((*actions.values(), check), token))


@on_exact_engines
@pytest.mark.parametrize("seed", range(3))
async def test_applying_every_change_to_an_empty_table_gives_the_table(
    make_store: MakeStore, seed: int
) -> None:
    """Moto's images of updates are wrong."""
    store = await streaming(make_store)
    writer, applied, reader = Writer(store, seed), dict[Key, Item](), StreamReader(store)
    for _ in range(3):
        for _ in range(20):
            await writer.write()
        last = dict[str, str]()
        for shard, record in await read_all(reader):
            assert record.position > last.get(shard, "")
            last[shard] = record.position
            assert record.old == applied.get(record.key)
            assert record.old != record.new
            if record.new is None:
                del applied[record.key]
            else:
                assert TABLE.key_of(record.new) == record.key
                applied[record.key] = record.new
        there = [item async for page in pages(store, Scan(consistent=True)) for item in page.items]
        assert applied == {TABLE.key_of(item): item for item in there}


async def test_a_table_without_a_stream_has_none(make_store: MakeStore) -> None:
    store = await make_store(TABLE)
    assert await store.send(DescribeStream()) is None
    with pytest.raises(Unavailable, match=r"is off: turn it on with `keygraph table update --stream`"):
        await StreamReader(store).read()
    await store.send(DeleteTable())
    for request in (EnableStream(), DescribeStream()):
        with pytest.raises(TableMissing):
            await store.send(request)


async def test_it_is_read_on_after_any_change(make_store: MakeStore) -> None:
    store = await streaming(make_store)
    await store.send(EnableStream())
    for number in range(5):
        await store.send(BatchWrite(({"PK": "p", "SK": Decimal(number)},)))
    stream = await store.send(DescribeStream())
    assert stream is not None
    [shard] = [each.name for each in stream.shards if not each.is_closed]
    page = await store.send(ReadRecords(stream.name, shard))
    assert [record.key[1] for record in page.records] == [*range(5)]
    assert all(record.old is None for record in page.records)
    middle = ShardPosition(page.records[2].position)
    later = await store.send(ReadRecords(stream.name, shard, middle))
    assert later.records == page.records[3:]
    assert page.position is not None
    assert (await store.send(ReadRecords(stream.name, shard, page.position))).records == ()


async def test_who_starts_at_the_latest_position_sees_what_is_written_from_then_on(
    make_store: MakeStore,
) -> None:
    store = await streaming(make_store)
    await store.send(BatchWrite(({"PK": "p", "SK": Decimal(1)},)))
    reader = StreamReader(store)
    await reader.start_at_latest()
    await store.send(BatchWrite(({"PK": "p", "SK": Decimal(2)},)))
    assert [record.key for _, record in await read_all(reader)] == [("p", Decimal(2))]


# --- The embedded engine --------------------------------------------------------------------------------


async def test_old_changes_are_deleted_by_age_and_by_size(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    now = 1000.0
    monkeypatch.setattr(changes.time, "time", lambda: now)
    monkeypatch.setattr(changes, "_KEPT_BYTES", 2000)
    numbers = count()
    stream = await store.send(DescribeStream())
    assert stream is not None
    [shard] = stream.shards

    async def kept() -> list[int]:
        page = await store.send(ReadRecords(stream.name, shard.name))
        return [int(str(record.key[1])) for record in page.records]

    async def put(items: int, text: str = "") -> None:
        puts = [{"PK": "p", "SK": Decimal(next(numbers)), "text": text} for _ in range(items)]
        await store.send(BatchWrite(tuple(puts)))

    await put(2)
    begin = await store.send(ReadRecords(stream.name, shard.name))
    now += 23 * 60 * 60
    await put(1)
    assert await kept() == [0, 1, 2]
    now += 2 * 60 * 60
    await put(1)
    assert await kept() == [2, 3]
    await put(4, "x" * 900)
    assert await kept() == [5, 6, 7]
    assert begin.position is not None
    with pytest.raises(StreamTrimmed):
        await store.send(ReadRecords(stream.name, shard.name, begin.position))
    for of_another_program in ("9" * 30, "0" * 5000):
        with pytest.raises(StreamTrimmed):
            await store.send(ReadRecords(stream.name, shard.name, ShardPosition(of_another_program)))
    reader = StreamReader(store, {shard.name: begin.position})
    with pytest.raises(StreamTrimmed):
        await reader.read()
    end = await store.send(LatestPosition(stream.name, shard.name))
    assert (await store.send(ReadRecords(stream.name, shard.name, end))).records == ()
    # Numbers go on where all changes were deleted.
    now += 48 * 60 * 60
    await put(1)
    await put(1)
    assert (await store.send(LatestPosition(stream.name, shard.name))).after > end.after


async def test_a_table_of_that_name_that_is_made_again_has_another_stream(tmp_path: Path) -> None:
    async with open_sqlite(tmp_path / "a.db", TABLE) as store:
        await store.send(CreateTable())
        await store.send(EnableStream())
        before = await store.send(DescribeStream())
        assert before is not None
        await store.send(DeleteTable())
        await store.send(CreateTable())
        assert await store.send(DescribeStream()) is None
        await store.send(EnableStream())
        after = await store.send(DescribeStream())
        assert after is not None
        assert after.name != before.name
        with pytest.raises(TableMissing):
            await store.send(ReadRecords(before.name, before.shards[0].name))
    with closing(sqlite3.connect(tmp_path / "a.db")) as connection:
        logs = connection.execute("SELECT name FROM sqlite_schema WHERE name LIKE '%changes%'").fetchall()
        assert len(logs) == 1


async def test_a_refused_write_logs_nothing(store: Store) -> None:
    item: Item = {"PK": "p", "SK": Decimal(1)}
    there = CheckItem(("q", Decimal(1)), Exists(("PK",)))
    with pytest.raises(TransactionCanceled):
        await store.send(Transaction((PutItem(item), there), "token"))
    with pytest.raises(ConditionFailed):
        await store.send(Write(PutItem(item, Exists(("PK",)))))
    await store.send(BatchWrite(deletes=(("p", Decimal(1)),)))
    assert await StreamReader(store).read() == []
    await store.send(Transaction((PutItem(item),), "token"))
    await store.send(Transaction((PutItem(item),), "token"))
    await store.send(Write(PutItem(item)))
    assert len(await StreamReader(store).read()) == 1


# --- Shards ---------------------------------------------------------------------------------------------


def test_shards_are_read_after_their_parents() -> None:
    shards = [
        StreamShard("c", "b"),
        StreamShard("d", "b"),
        StreamShard("b", "a", True),
        StreamShard("e", "z"),
    ]
    ordered = in_order(shards)
    assert [each.name for each in ordered] == ["b", "c", "d", "e"]
    assert [each.name for each in readable(ordered, set())] == ["b", "e"]
    assert [each.name for each in readable(ordered, {"b", "c"})] == ["d", "e"]
    by_name = {each.name: each for each in [*ordered, StreamShard("f", "c")]}
    assert [*ancestors(by_name, "f")] == ["c", "b"]
    assert [*ancestors(by_name, "e")] == []


class Splitting:
    """A stream as DynamoDB's, whose shards are closed and split by itself."""

    def __init__(self) -> None:
        self.shards: dict[str, tuple[str | None, list[int]]] = {"s0": (None, [])}
        self.closed: set[str] = set()
        self.calls: list[Wire] = []
        self.expired: set[str] = set()
        self.written = 0

    def write(self, shard: str, changes: int = 1) -> None:
        for _ in range(changes):
            self.written += 1
            self.shards[shard][1].append(self.written)

    def split(self, shard: str, *children: str) -> None:
        self.closed.add(shard)
        self.shards |= {each: (shard, []) for each in children}

    async def call(self, wire: Wire) -> Received:
        self.calls.append(wire)
        answer = getattr(self, wire.operation)(wire.body)
        await asyncio.sleep(0)
        return Received(lambda: answer)

    async def close(self) -> None:
        pass

    def DescribeTable(self, body: dict[str, object]) -> object:  # noqa: N802  # the operation's name
        specification = {"StreamEnabled": True, "StreamViewType": "NEW_AND_OLD_IMAGES"}
        return {
            "Table": {
                "TableStatus": "ACTIVE",
                "LatestStreamArn": "arn",
                "StreamSpecification": specification,
            }
        }

    def DescribeStream(self, body: dict[str, object]) -> object:  # noqa: N802  # the operation's name
        """One shard a page, the youngest first."""
        names = [*reversed(self.shards)]
        start = names.index(str(body["ExclusiveStartShardId"])) + 1 if "ExclusiveStartShardId" in body else 0
        name = names[start]
        ending = {"EndingSequenceNumber": "99"} if name in self.closed else {}
        shard = {"ShardId": name, "SequenceNumberRange": {"StartingSequenceNumber": "1", **ending}}
        parent = self.shards[name][0]
        if parent is not None:
            shard["ParentShardId"] = parent
        last = {"LastEvaluatedShardId": name} if start + 1 < len(names) else {}
        return {"StreamDescription": {"Shards": [shard], **last}}

    def GetShardIterator(self, body: dict[str, object]) -> object:  # noqa: N802  # the operation's name
        name, after = str(body["ShardId"]), int(str(body.get("SequenceNumber", 0)))
        if body["ShardIteratorType"] == "LATEST":
            after = self.written
        return {"ShardIterator": f"{name}/{after}"}

    def GetRecords(self, body: dict[str, object]) -> dict[str, object]:  # noqa: N802  # the operation's name
        iterator = str(body["ShardIterator"])
        if iterator in self.expired:
            self.expired.discard(iterator)
            raise refusal("GetRecords", "ExpiredIteratorException", "", {})
        name, _, after = iterator.partition("/")
        numbers = [number for number in self.shards[name][1] if number > int(after)][:2]
        records = [
            {
                "dynamodb": {
                    "SequenceNumber": str(number),
                    "ApproximateCreationDateTime": 1,
                    "Keys": {"PK": {"S": "p"}, "SK": {"N": str(number)}},
                    "NewImage": {"PK": {"S": "p"}, "SK": {"N": str(number)}},
                }
            }
            for number in numbers
        ]
        end = numbers[-1] if numbers else int(after)
        is_over = name in self.closed and all(number <= end for number in self.shards[name][1])
        return {"Records": records, **({} if is_over else {"NextShardIterator": f"{name}/{end}"})}


async def test_a_stream_is_read_through_splits_with_parents_before_children() -> None:
    stream = Splitting()
    store = DynamoDBStore(stream, TABLE)
    reader = StreamReader(store)
    stream.write("s0", 3)
    stream.split("s0", "s1", "s2")
    stream.write("s1")
    stream.write("s2", 3)
    stream.split("s2", "s3")
    stream.write("s3")
    stream.write("s1")
    found = await read_all(reader)
    order = [int(str(record.key[1])) for _, record in found]
    assert sorted(order) == [*range(1, 10)]
    for shard, parent in (("s1", "s0"), ("s2", "s0"), ("s3", "s2")):
        places = [place for place, (name, _) in enumerate(found) if name == shard]
        before = [place for place, (name, _) in enumerate(found) if name == parent]
        assert max(before) < min(places)
    assert {name for name, position in reader.positions.items() if position is None} == {"s0", "s2"}
    stream.split("s3", "s4")
    stream.write("s4")
    assert [shard for shard, _ in await read_all(reader)] == ["s4"]
    await store.close()


async def test_an_expired_iterator_is_replaced_unless_only_it_knew_the_position() -> None:
    stream = Splitting()
    store = DynamoDBStore(stream, TABLE)
    stream.write("s0", 3)
    page = await store.send(ReadRecords("arn", "s0"))
    assert page.position == ShardPosition("2".zfill(40), "s0/2")
    stream.expired.add("s0/2")
    later = await store.send(ReadRecords("arn", "s0", page.position))
    assert [record.position for record in later.records] == ["3".zfill(40)]
    latest = await store.send(LatestPosition("arn", "s0"))
    assert (await store.send(ReadRecords("arn", "s0", latest))).position == latest
    stream.expired.add(str(latest.iterator))
    with pytest.raises(StreamTrimmed, match="was not read for 15 minutes"):
        await store.send(ReadRecords("arn", "s0", latest))
    await store.close()


def test_shards_that_come_before_themselves_are_refused() -> None:
    for parents in ({"a": "a"}, {"a": "b", "b": "c", "c": "a"}):
        with pytest.raises(Unavailable, match="not those of DynamoDB"):
            in_order(StreamShard(*each) for each in parents.items())


async def test_of_very_many_shards_few_are_read_at_once() -> None:
    class Crowded(Splitting):
        pages, open, most = 1, 0, 0

        def DescribeStream(self, body: dict[str, object]) -> object:  # noqa: N802  # the operation's name
            page = int(str(body.get("ExclusiveStartShardId", 0))) + 1
            shards = [{"ShardId": f"{page}-{number}"} for number in range(501)]
            last = str(page) if page < self.pages else None
            return {"StreamDescription": {"Shards": shards, "LastEvaluatedShardId": last}}

        async def call(self, wire: Wire) -> Received:
            if wire.operation == "GetShardIterator":
                self.open += 1
                self.most = max(self.most, self.open)
                await asyncio.sleep(0)
                self.open -= 1
            return await super().call(wire)

    stream = Crowded()
    store = DynamoDBStore(stream, TABLE, concurrency=16)
    await StreamReader(store).start_at_latest()
    assert stream.most == 16
    stream.pages = 100
    with pytest.raises(Unavailable, match="is not DynamoDB"):
        await store.send(DescribeStream())
    await store.close()


@pytest.mark.long
def test_a_long_line_of_shards_is_put_in_order_at_once() -> None:
    began = time.thread_time()
    shards = in_order(StreamShard(str(number), str(number + 1)) for number in range(50_000))
    assert time.thread_time() - began < 2
    assert [each.name for each in shards[:2]] == ["49999", "49998"]


async def test_changes_and_shards_that_come_again_and_again_are_read_once() -> None:
    class Repeating(Splitting):
        def DescribeStream(self, body: dict[str, object]) -> object:  # noqa: N802  # the operation's name
            shard = "b" if body.get("ExclusiveStartShardId") == "a" else "a"
            return {"StreamDescription": {"Shards": [{"ShardId": shard}], "LastEvaluatedShardId": shard}}

        def GetRecords(self, body: dict[str, object]) -> object:  # noqa: N802  # the operation's name
            page: Any = super().GetRecords({"ShardIterator": "s0/0"})
            return {**page, "Records": [*reversed(page["Records"]), *deepcopy(page["Records"])]}

    stream = Repeating()
    store = DynamoDBStore(stream, TABLE)
    found = await store.send(DescribeStream())
    assert found is not None
    assert [each.name for each in found.shards] == ["a", "b"]
    stream.write("s0", 2)
    page = await store.send(ReadRecords("arn", "s0"))
    assert [int(each.position) for each in page.records] == [1, 2]
    assert page.position is not None
    assert not (await store.send(ReadRecords("arn", "s0", page.position))).records
    await store.close()


async def test_a_shard_has_an_end_only_where_it_is_described_as_closed() -> None:
    class LeavingOut(Splitting):
        is_cut = True

        def GetRecords(self, body: dict[str, object]) -> object:  # noqa: N802  # the operation's name
            answer = super().GetRecords(body)
            return {"Records": answer["Records"]} if self.is_cut else answer

    stream = LeavingOut()
    store = DynamoDBStore(stream, TABLE)
    reader = StreamReader(store)
    stream.write("s0", 3)
    with pytest.raises(Unavailable, match="an open shard of the stream of the table Streamed has ended"):
        await reader.read()
    stream.is_cut = False
    assert [record.key[1] for _, record in await read_all(reader)] == [1, 2, 3]
    await store.close()


async def test_a_position_that_its_server_refuses_is_replaced() -> None:
    class Refusing(Splitting):
        refused = ("GetRecords", "s0/2")

        async def call(self, wire: Wire) -> Received:
            position = str(wire.body.get("ShardIterator") or wire.body.get("SequenceNumber"))
            if (wire.operation, position.lstrip("0")) == self.refused:
                raise refusal(wire.operation, "ValidationException", "Invalid ShardIterator", {})
            return await super().call(wire)

    stream = Refusing()
    store = DynamoDBStore(stream, TABLE)
    reader = StreamReader(store)
    stream.write("s0", 2)
    assert len(await reader.read()) == 2
    stream.write("s0")
    # It stays refused: what it was made of is not.
    with pytest.raises(Unavailable):
        await reader.read()
    stream.refused = ("GetShardIterator", "2")
    reader.positions["s0"] = ShardPosition("2".zfill(40))
    with pytest.raises(StreamTrimmed):
        await reader.read()
    await reader.start_at_latest()
    stream.write("s0")
    assert [record.key[1] for _, record in await read_all(reader)] == [4]
    await store.close()


async def test_shards_that_were_not_described_are_looked_for_again() -> None:
    class Hiding(Splitting):
        is_hiding = True

        def DescribeStream(self, body: dict[str, object]) -> object:  # noqa: N802  # the operation's name
            return {"StreamDescription": {"Shards": []}} if self.is_hiding else super().DescribeStream(body)

    stream = Hiding()
    store = DynamoDBStore(stream, TABLE)
    reader = StreamReader(store)
    await reader.start_at_latest()
    stream.write("s0")
    assert await reader.read() == []
    stream.is_hiding = False
    assert [record.key[1] for _, record in await read_all(reader)] == [1]
    await store.close()


# --- Transports -----------------------------------------------------------------------------------------


async def test_aioboto3_reads_the_same(moto_endpoint: str) -> None:
    async with (
        open_dynamodb(TABLE, moto_endpoint) as direct,
        open_dynamodb(TABLE, moto_endpoint, transport="aioboto3") as store,
    ):
        await direct.send(DeleteTable())
        await direct.send(CreateTable())
        await store.send(EnableStream())
        await store.send(BatchWrite(({"PK": "p", "SK": Decimal(1), "b": b"\xff"},)))
        [(shard, record)] = await read_all(StreamReader(store))
        assert (record.key, record.old, record.new) == (
            ("p", Decimal(1)),
            None,
            {"PK": "p", "SK": Decimal(1), "b": b"\xff"},
        )
        [(other, same)] = await read_all(StreamReader(direct))
        assert (other, same.new, same.position) == (shard, record.new, record.position)
        assert abs(same.at - record.at) < 1
        await direct.send(DeleteTable())


@pytest.mark.parametrize(
    ("url", "host"),
    [
        ("https://dynamodb.eu-central-1.amazonaws.com", "streams.dynamodb.eu-central-1.amazonaws.com"),
        ("https://dynamodb.cn-north-1.amazonaws.com.cn/", "streams.dynamodb.cn-north-1.amazonaws.com.cn"),
        ("http://localhost:8000", "localhost:8000"),
        ("https://vpce-1.dynamodb.example.com", "vpce-1.dynamodb.example.com"),
    ],
)
async def test_streams_of_aws_have_an_endpoint_of_their_own(url: str, host: str) -> None:
    async def credentials() -> ReadOnlyCredentials:
        return ReadOnlyCredentials("AKIDEXAMPLE", "secret", None)

    tls = ssl.create_default_context() if url.startswith("https") else None
    transport = direct_transport(url, "eu-central-1", tls, credentials, Splitting(), 10)
    _, signer = transport._streams
    assert signer.host == host
    lines = signer.lines(await credentials(), "DynamoDBStreams_20120810.GetRecords", b"{}", 1)
    assert "/eu-central-1/dynamodb/aws4_request" in lines
    await transport.close()
