"""The direct transport: what fails on the way is neither lost nor taken for an answer."""

from __future__ import annotations

import asyncio
import json
import logging
import re
import threading
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from decimal import Decimal
from hashlib import sha1
from pathlib import Path
from traceback import format_exception
from typing import Any, get_args

import orjson
import pytest
from botocore.credentials import ReadOnlyCredentials
from botocore.exceptions import ClientError

from keygraph.dynamo import items
from keygraph.dynamo.items import Item, _outside_strings, is_large, typed_item
from keygraph.dynamo.store import BatchGet, BatchWrite, Cost, DescribeTable, ListTables, Query
from keygraph.dynamo.table import Key, Table
from keygraph.engines.dynamodb import errors, http1, sending
from keygraph.engines.dynamodb.answers import decoded
from keygraph.engines.dynamodb.client import ClientTransport
from keygraph.engines.dynamodb.direct import DirectTransport, _answer, encoded
from keygraph.engines.dynamodb.engine import DynamoDBStore, open_dynamodb
from keygraph.engines.dynamodb.http1 import Pool, Reply
from keygraph.engines.dynamodb.requests import Wire
from keygraph.engines.dynamodb.retrying import Backoff, Quota
from keygraph.engines.dynamodb.signing import Signer
from keygraph.engines.dynamodb.transport import (
    LARGE_ANSWER,
    Received,
    TransportName,
    UnreadableAnswer,
    in_thread,
)
from keygraph.errors import KeygraphError, Throttled, TimedOut, Unavailable
from keygraph.turns import BUDGET, WorkBudget
from tests.certificates import context_of, write_certificate
from tests.keygraph.faulty import FAULTS, FaultyDynamoDB
from tests.listening import Endless, answering, listening

table = Table("Shop", partition_key="PK", sort_key="SK")
QUICK = Backoff(first=0.0001, longest=0.0005)


class NoOthers:
    """Stands where calls go that are not sent directly."""

    def __init__(self) -> None:
        self.calls: list[str] = []

    async def call(self, wire: Wire) -> Received:
        self.calls.append(wire.operation)
        return Received(lambda: {"TableNames": []})

    async def close(self) -> None:
        self.calls.append("close")


async def _credentials() -> ReadOnlyCredentials:
    return ReadOnlyCredentials("AKIDEXAMPLE", "secret", None)


@asynccontextmanager
async def opened(
    url: str, *, deadline: float = 30.0, read_seconds: float = 5.0, connections: int = 8, **more: Any
) -> AsyncIterator[DynamoDBStore]:
    signer = Signer(url, "us-east-1")
    pool = Pool(url, signer.host, None, connect_seconds=5.0, read_seconds=read_seconds)
    credentials, others = more.pop("credentials", _credentials), more.pop("others", NoOthers())
    transport = DirectTransport(pool, signer, credentials, others, more.pop("clock", time.time))
    store = DynamoDBStore(transport, table, deadline=deadline, backoff=QUICK, concurrency=connections, **more)
    try:
        yield store
    finally:
        await store.close()


def _key(number: int) -> Key:
    return (f"USER#{number % 10}", f"{number:03}")


def _item(number: int) -> Item:
    partition, sort = _key(number)
    return {
        "PK": partition,
        "SK": sort,
        "price": Decimal(f"{number}.25"),
        "photo": bytes([number % 256]) * number,
        "name": "Zoë 🦊",
    }


# --- Faults -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("seed", range(3))
async def test_nothing_is_lost_and_nothing_wrong_with_faults_in_a_third_of_the_requests(seed: int) -> None:
    server = FaultyDynamoDB(seed, failing=0.3)
    there = {number: _item(number) for number in range(200) if number % 3}
    async with server.running() as url, opened(url, read_seconds=0.1) as store:
        await store.send(BatchWrite(puts=tuple(map(_item, range(200)))))
        await store.send(BatchWrite(deletes=tuple(_key(number) for number in range(0, 200, 3))))

        async def query(digit: int) -> None:
            found = (await store.send(Query(f"USER#{digit}"))).items
            assert found == [item for number, item in there.items() if number % 10 == digit]

        async def get(number: int) -> None:
            assert (await store.send(BatchGet((_key(number),)))).items == [there.get(number)]

        async def batch(first: int) -> None:
            asked = [number % 200 for number in range(first, first + 150)]
            found = (await store.send(BatchGet(tuple(map(_key, asked))))).items
            assert found == [there.get(number) for number in asked]

        await asyncio.gather(
            *map(query, list(range(10)) * 4), *map(get, range(0, 200, 4)), *map(batch, range(0, 200, 20))
        )
    assert set(server.happened) >= set(FAULTS)
    assert 0.2 < 1 - server.happened["none"] / server.happened.total() < 0.4


@pytest.mark.parametrize("leaving", [0.0, 0.3, 0.9])
@pytest.mark.parametrize("failing", [0.0, 0.2, 0.6])
async def test_what_is_refused_or_left_undone_is_sent_again_and_counted(
    failing: float, leaving: float
) -> None:
    server = FaultyDynamoDB(failing=failing, faults=("throttled", "failed", "unavailable"))
    server.leaving = leaving
    async with server.running() as url, opened(url, quota=Quota(10**9)) as store:
        written = await store.send(BatchWrite(tuple(map(_item, range(0, 300, 2))), (_key(100_000),)))
        assert written.cost == Cost(requests=server.happened.total(), write_units=151.0)
        server.happened.clear()
        asked = [*range(300), *range(200, 250)]
        batch = await store.send(BatchGet(tuple(map(_key, asked))))
        assert batch.items == [None if number % 2 else _item(number) for number in asked]
        assert batch.cost == Cost(requests=server.happened.total(), read_units=150.0)


async def test_the_rest_of_a_large_batch_does_not_wait_for_its_first_answer(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(http1, "_LARGE_IN_ALL", 1)
    server = FaultyDynamoDB()
    server.leaving = 0.5
    numbers = range(150_000, 150_004)
    async with server.running() as url, opened(url, deadline=5.0) as store:
        await store.send(BatchWrite(tuple(map(_item, numbers))))
        batch = await store.send(BatchGet(tuple(map(_key, numbers))))
    assert batch.items == [*map(_item, numbers)]
    assert [operation for operation, _ in server.requests].count("BatchGetItem") > 1


async def test_a_key_is_asked_for_once() -> None:
    server = FaultyDynamoDB()
    async with server.running() as url, opened(url) as store:
        batch = await store.send(BatchGet((_key(1), _key(2), _key(1))))
    assert batch.items == [None, None, None]
    assert [len(body["RequestItems"]["Shop"]["Keys"]) for _, body in server.requests] == [2]


async def test_a_burst_of_failures_is_not_an_outage() -> None:
    server = FaultyDynamoDB(7, failing=0.3, faults=("throttled",))
    quota = Quota.of_connections(256)
    async with server.running() as url, opened(url, connections=256, quota=quota) as store:
        answers = await asyncio.gather(*(store.send(BatchGet((_key(number),))) for number in range(1000)))
    assert [answer.items for answer in answers] == [[None]] * 1000


@pytest.mark.parametrize(
    ("fault", "expected", "message"),
    [
        ("throttled", Throttled, "DynamoDB throttles requests to the table Shop"),
        ("failed", Unavailable, "DynamoDB at AWS failed with status 500"),
        ("unavailable", Unavailable, "DynamoDB at AWS failed with status 503"),
        ("cut before", Unavailable, "no connection to DynamoDB at AWS: is it running?"),
        ("cut after", Unavailable, "no connection to DynamoDB at AWS: is it running?"),
        ("half", Unavailable, "no connection to DynamoDB at AWS: is it running?"),
        ("garbled", Unavailable, "answers from DynamoDB at AWS arrive damaged"),
        ("slow", TimedOut, "DynamoDB at AWS did not answer in time"),
    ],
)
async def test_what_stays_broken_is_told(fault: str, expected: type[KeygraphError], message: str) -> None:
    server = FaultyDynamoDB(failing=1.0, faults=(fault,))
    async with server.running() as url, opened(url, read_seconds=0.05, quota=Quota(25)) as store:
        with pytest.raises(expected) as told:
            await store.send(Query("USER#1"))
    assert str(told.value) == message
    # The first try, and the retries that the quota pays: 5 each, 10 after a timeout.
    assert server.happened[fault] >= (3 if fault == "slow" else 6)


async def test_what_is_down_is_not_asked_again_and_again() -> None:
    server = FaultyDynamoDB(failing=1.0, faults=("throttled",))
    async with server.running() as url, opened(url) as store:
        for _ in range(100):
            with pytest.raises(Throttled):
                await store.send(Query("USER#1"))
        assert server.happened["throttled"] == 200
        server.failing = 0.0
        await store.send(Query("USER#1"))
        for _ in range(4):
            await store.send(Query("USER#1"))
        server.failing = 1.0
        with pytest.raises(Throttled):
            await store.send(Query("USER#1"))
    # Five successes have paid for one retry.
    assert server.happened["throttled"] == 202


@pytest.mark.parametrize("ahead", [-86_400.0, 3_600.0])
async def test_a_wrong_clock_is_set_right(ahead: float) -> None:
    server = FaultyDynamoDB()
    server.ahead = ahead
    async with server.running() as url, opened(url) as store:
        await asyncio.gather(*(store.send(Query("USER#1")) for _ in range(5)))
        assert server.happened == {"skewed": 5, "none": 5}
        await store.send(Query("USER#1"))
        assert server.happened == {"skewed": 5, "none": 6}


async def test_credentials_are_asked_for_every_second() -> None:
    given = iter(["first", "second"])
    asked: list[str] = []

    async def credentials() -> ReadOnlyCredentials:
        asked.append(next(given))
        return ReadOnlyCredentials(asked[-1], "secret", "token")

    server = FaultyDynamoDB()
    now = float(int(time.time()))
    moments = iter([now, now + 0.9, now + 1.1])
    async with (
        server.running() as url,
        opened(url, credentials=credentials, clock=lambda: next(moments)) as store,
    ):
        for expected in (["first"], ["first"], ["first", "second"]):
            await store.send(Query("A"))
            assert asked == expected


# --- Connections --------------------------------------------------------------------------------------


async def test_connections_are_used_again() -> None:
    server = FaultyDynamoDB()
    async with server.running() as url, opened(url, connections=3) as store:
        for _ in range(5):
            await store.send(Query("A"))
        assert server.connections == 1
        await asyncio.gather(*(store.send(Query("A")) for _ in range(40)))
        assert server.connections == 3


async def test_an_answer_of_16_mb() -> None:
    server = FaultyDynamoDB()
    items: list[Item] = [{"PK": "A", "SK": f"{n:02}", "blob": bytes([n]) * 400_000} for n in range(30)]
    for item in items:
        server.items["A", str(item["SK"])] = orjson.loads(encoded(typed_item(item)))
    async with server.running() as url, opened(url) as store:
        found = await store.send(BatchGet(tuple(("A", f"{n:02}") for n in range(30))))
    assert found.items == items


async def test_tables_are_managed_by_the_client() -> None:
    others = NoOthers()
    async with FaultyDynamoDB().running() as url, opened(url, others=others) as store:
        assert await store.send(ListTables()) == ()
    assert others.calls == ["ListTables", "close"]


@pytest.mark.parametrize(
    "operation", ["PutItem", "UpdateItem", "DeleteItem", "TransactWriteItems", "TransactGetItems"]
)
async def test_operations_that_only_write_or_come_in_transactions(operation: str) -> None:
    others = NoOthers()
    server = FaultyDynamoDB()
    setattr(server, operation, lambda body: {"Got": body})
    async with server.running() as url, opened(url, others=others) as store:
        body = {"TableName": "Shop", "Item": {"PK": {"B": b"\xff\x00"}}}
        answer = await store._transport.call(Wire(operation, body))
    assert answer.body() == {"Got": {"TableName": "Shop", "Item": {"PK": {"B": "/wA="}}}}
    assert others.calls == ["close"]


async def test_a_large_answer_is_decoded_beside_others(monkeypatch: pytest.MonkeyPatch) -> None:
    threads = list[int]()

    def noted(*arguments: Any) -> Any:
        threads.append(threading.get_ident())
        return decoded(*arguments)

    monkeypatch.setattr(sending, "decoded", noted)
    server = FaultyDynamoDB()
    items = [{"PK": "USER#1", "SK": str(number), "values": [[]] * 1_000} for number in range(2)]
    async with server.running() as url, opened(url) as store:
        await store.send(BatchWrite(puts=tuple(items)))
        threads.clear()
        for number in range(2):
            [found] = (await store.send(BatchGet((("USER#1", str(number)),)))).items
            assert found == items[number]
        assert (await store.send(Query("USER#1"))).items == items
    assert [each == threading.get_ident() for each in threads] == [True, True, False]


async def test_others_run_while_a_large_answer_is_read(monkeypatch: pytest.MonkeyPatch) -> None:
    """A thread can be interrupted where Python code runs."""
    item = {"PK": {"S": "USER#1"}, "data": {"L": [{"L": []}] * 5_000}}
    reply, threads = Reply(), list[int]()
    reply.body = orjson.dumps({"Items": [item] * 50})

    def interruptible(part: Any) -> Any:
        threads.append(threading.get_ident())
        return part

    monkeypatch.setattr(items, "_unchanged", interruptible)
    assert await in_thread(lambda: _answer(reply), len(reply.body)) == {"Items": [item] * 50}
    assert len(threads) > 50 * 5_000
    assert threading.get_ident() not in threads


async def test_whoever_needs_little_is_not_behind_those_who_need_much() -> None:
    """Neither behind one large answer nor behind many smaller ones."""
    may_go_on, read = threading.Event(), list[str]()

    async def answer(client: str, size: int) -> None:
        budget = WorkBudget()
        budget.client = client
        BUDGET.set(budget)
        await in_thread(lambda: read.append(client), size)

    blocking = [asyncio.create_task(in_thread(may_go_on.wait, size)) for size in (LARGE_ANSWER + 1, 1)]
    sent = [("a", 900), ("a", 900), ("b", 900), ("b", 900), ("c", 100), ("c", 100)]
    answering = [asyncio.create_task(answer(*each)) for each in sent]
    await asyncio.sleep(0)
    may_go_on.set()
    await asyncio.gather(*blocking, *answering)
    assert read == ["c", "c", "a", "b", "a", "b"]


@pytest.mark.parametrize(
    "text", ['a"b', "\\", '\\"', "[[,[[{", "\\ud83d", "\U0001f600 \u00e9", '","', "x" * 70_000], ids=ascii
)
def test_a_large_answer_is_read_as_a_small_one(text: str) -> None:
    item = {"PK": {"S": text}, f"{text}s": {"SS": [text, f"{text}{text}"]}}
    content = {"Items": [item] * (70_000 // len(text) + 1), "Count": 3}
    reply = Reply()
    for reply.body in (json.dumps(content).encode(), orjson.dumps(content)):
        assert is_large(reply.body)
        assert _answer(reply) == content


@pytest.mark.parametrize(
    "body",
    [
        b'{"Items":[' + b"[]," * 90_000 + b"[]]}",
        b'{"a":"' + b"[{" * 50_000 + b'","Items":[' + b"[]," * 90_000 + b"[]]}",
        b'{"Items":' + b'{"M":' * 50_000,
        b'{"Count":' + b"1" * 90_000 + b"}",
        b'{"Items":[{"S":"\\ud800"}],"a":"' + b"a" * 90_000 + b'"}',
        b'{"Items":[{"SS":["\\uD800"]}],"a":"' + b"a" * 90_000 + b'"}',
        b'{"Items":[{"S":"\xff"}],"a":"' + b"a" * 90_000 + b'"}',
        b'{"Items":[],"a":"' + b"a" * 90_000,
    ],
    ids=range(8),
)
def test_a_large_answer_that_dynamodb_would_not_give(body: bytes) -> None:
    reply = Reply()
    reply.body = body
    assert is_large(body)
    with pytest.raises(UnreadableAnswer):
        _answer(reply)


@pytest.mark.parametrize("size", [65_000, 1_000_000])
def test_what_is_outside_of_strings_is_found_however_long_these_are(size: int) -> None:
    for text in ("[", "\\", '"', '\\"[', "a[\\"):
        content = {"a": {"S": (text * size)[:size]}, "b": [[], []]}
        assert b"".join(_outside_strings(orjson.dumps(content))) == b"{:{:},:[[],[]]}"


@pytest.mark.parametrize("name", get_args(TransportName))
async def test_text_that_is_no_unicode(name: TransportName, moto_endpoint: str) -> None:
    async with open_dynamodb(table, moto_endpoint, transport=name) as store:
        body = {"PK": {"S": "\ud800"}}
        assert encoded(body) == b'{"PK": {"S": "\\ud800"}}'
        assert await store.send(DescribeTable()) is None


# --- TLS ----------------------------------------------------------------------------------------------


@pytest.fixture
def aws(monkeypatch: pytest.MonkeyPatch) -> pytest.MonkeyPatch:
    """Settings of AWS's that suffice."""
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "AKIDEXAMPLE")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "secret")
    monkeypatch.setenv("AWS_REGION", "eu-central-1")
    return monkeypatch


@pytest.mark.parametrize("name", get_args(TransportName))
@pytest.mark.parametrize(
    ("address", "is_known", "works"), [("127.0.0.1", True, True), ("127.0.0.1", False, False), ("127.0.0.2", True, False)]
)  # fmt: skip
async def test_certificates_are_verified(
    name: TransportName,
    address: str,
    is_known: bool,
    works: bool,
    aws: pytest.MonkeyPatch,
    tmp_path: Path,
) -> None:
    shown, private = write_certificate(tmp_path, address)
    if is_known:
        aws.setenv("AWS_CA_BUNDLE", str(shown))
    async with (
        FaultyDynamoDB().running(context_of(shown, private)) as url,
        open_dynamodb(table, url, transport=name, deadline=5) as store,
    ):
        if works:
            assert (await store.send(Query("A"))).items == []
        else:
            with pytest.raises(Unavailable, match=r"no secure connection to 127.0.0.1:\d+: check its cert"):
                await store.send(Query("A"))


@pytest.mark.parametrize("service", ["STS", "SSO"])
async def test_a_role_is_not_requested_of_a_server_with_another_name(
    service: str, aws: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """aiobotocore itself would send the token of the role to it."""
    shown, private = write_certificate(tmp_path, "127.0.0.2")
    heard: list[bytes] = []

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        heard.append(await reader.read(1))
        writer.close()

    (tmp_path / "token").write_text("hunter2")
    role = "role_arn = arn:aws:iam::123456789012:role/reader\nweb_identity_token_file = token"
    if service == "SSO":
        role = "sso_start_url = start\nsso_region = eu-central-1\nsso_account_id = 1\nsso_role_name = reader"
        aws.setattr("botocore.credentials.SSOProvider._SSO_TOKEN_CACHE_DIR", str(tmp_path))
        cached = {"accessToken": "hunter2", "expiresAt": "2099-01-01T00:00:00Z"}
        (tmp_path / f"{sha1(b'start').hexdigest()}.json").write_text(json.dumps(cached))
    (tmp_path / "config").write_text(f"[default]\n{role}\n")
    aws.chdir(tmp_path)
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
        aws.delenv(name)
    async with listening(answer, context_of(shown, private)) as host:
        for name, value in {
            "AWS_CA_BUNDLE": str(shown),
            "AWS_CONFIG_FILE": str(tmp_path / "config"),
            f"AWS_ENDPOINT_URL_{service}": f"https://{host}",
            "AWS_MAX_ATTEMPTS": "1",
        }.items():
            aws.setenv(name, value)
        with pytest.raises(Unavailable, match="SSL validation failed"):
            async with open_dynamodb(table, deadline=5) as store:
                await store.send(Query("A"))
    assert heard == []


# --- How often ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", get_args(TransportName))
@pytest.mark.parametrize("is_in_profile", [False, True])
@pytest.mark.parametrize("tries", [1, 3])
async def test_how_often_a_request_is_sent_is_what_awss_settings_say(
    name: TransportName, is_in_profile: bool, tries: int, aws: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    if is_in_profile:
        config = tmp_path / "config"
        config.write_text(f"[profile shop]\nmax_attempts = {tries}\n")
        aws.setenv("AWS_CONFIG_FILE", str(config))
        aws.setenv("AWS_PROFILE", "shop")
    else:
        aws.setenv("AWS_MAX_ATTEMPTS", str(tries))
    server = FaultyDynamoDB(failing=1.0, faults=("throttled",))
    async with server.running() as url, open_dynamodb(table, url, transport=name) as store:
        for _ in range(2):
            with pytest.raises(Throttled):
                await store.send(Query("A"))
        assert server.happened == {"throttled": 2 * tries}
        server.failing = 0.0
        await store.send(Query("A"))


@pytest.mark.parametrize("name", get_args(TransportName))
async def test_without_a_setting_the_deadline_and_the_quota_say_how_often(
    name: TransportName, aws: pytest.MonkeyPatch
) -> None:
    aws.setattr("keygraph.engines.dynamodb.engine.Backoff", lambda: QUICK)
    # On a busy machine, so many refusals take longer than those of an outage.
    aws.setattr("keygraph.engines.dynamodb.gate._OUTAGE_SECONDS", 60.0)
    server = FaultyDynamoDB(failing=1.0, faults=("throttled",))
    async with (
        server.running() as url,
        open_dynamodb(table, url, concurrency=50, deadline=100.0, transport=name) as store,
    ):
        with pytest.raises(Throttled):
            await store.send(Query("A"))
    # The first, and 100 retries for 5 each of the quota of 50 connections, which is 500.
    assert server.happened == {"throttled": 101}


async def test_a_number_that_is_none_is_told(aws: pytest.MonkeyPatch) -> None:
    aws.setenv("AWS_MAX_ATTEMPTS", "often")
    with pytest.raises(
        Unavailable, match="AWS_MAX_ATTEMPTS, or max_attempts of the AWS profile, is not a whole"
    ):
        async with open_dynamodb(table):
            pass


# --- What is no DynamoDB ------------------------------------------------------------------------------


@pytest.mark.parametrize("name", get_args(TransportName))
@pytest.mark.parametrize("framing", [b"Content-Length: 2000000000\r\n", b"Transfer-Encoding: chunked\r\n"])
async def test_an_answer_without_an_end_is_not_read(
    name: TransportName, framing: bytes, aws: pytest.MonkeyPatch
) -> None:
    aws.setattr("keygraph.engines.dynamodb.client.ANSWER_BYTES", 2**23)
    chunk = b"10000\r\n" + b" " * 2**16 + b"\r\n"
    server = Endless(b"HTTP/1.1 200 OK\r\n" + framing + b"\r\n", chunk)
    async with (
        listening(server) as host,
        open_dynamodb(table, f"http://{host}", transport=name) as store,
    ):
        with pytest.raises(Unavailable, match=f"an answer from {host} is larger than DynamoDB gives"):
            await store.send(Query("A"))
    # Once, and what the system holds back besides.
    [written] = server.written
    assert written < 2**23 + 2**24


@pytest.mark.parametrize("name", get_args(TransportName))
@pytest.mark.parametrize(
    ("told", "expected"),
    [
        ({"__type": "x#ValidationException", "message": "m" * 3_000_000}, ClientError),
        ({"__type": "x#ValidationException", "message": "Item size " * 5_000}, ClientError),
        ({"__type": "x#ValidationException", "message": "SPECIFIED INDEX\n\x1b" * 100_000}, ClientError),
        ({"__type": "x#" + "Y" * 3_000_000, "message": "m"}, Unavailable),
        ({"__type": "x#LimitExceededException", "message": "x" * 5_000_000}, Unavailable),
        (
            {
                "__type": "x#TransactionCanceledException",
                "CancellationReasons": [{"Code": "ValidationError", "Message": "Item size " * 5_000}] * 20,
            },
            Unavailable,
        ),
        (
            {"__type": "x#TransactionCanceledException", "CancellationReasons": [{"Code": "Y"}] * 10_000},
            Unavailable,
        ),
    ],
    ids=["long", "repeating", "escaped", "name", "too large", "reasons", "many reasons"],
)
async def test_of_a_long_refusal_little_is_read(
    name: TransportName, told: dict[str, Any], expected: type[Exception], aws: pytest.MonkeyPatch
) -> None:
    body, sizes = orjson.dumps(told), [0]

    class Sized:
        """Notes the length of each text that an expression looks through."""

        def __init__(self, pattern: re.Pattern[str]) -> None:
            self.pattern = pattern

        def __getattr__(self, method: str) -> Callable[[str], object]:
            def look(text: str) -> object:
                sizes.append(len(text))
                return getattr(self.pattern, method)(text)

            return look

    for place, pattern in vars(errors).copy().items():
        if isinstance(pattern, re.Pattern):
            aws.setattr(errors, place, Sized(pattern))
    refused = b"HTTP/1.1 400 Bad\r\nContent-Length: %d\r\n\r\n%b" % (len(body), body)

    async with answering(refused) as host, open_dynamodb(table, f"http://{host}", transport=name) as store:
        with pytest.raises(expected) as error:
            await store.send(Query("A"))
    assert len("".join(format_exception(error.value))) < 50_000
    assert max(sizes) <= 1_000
    assert ("larger than DynamoDB gives" in str(error.value)) == (len(body) > 2**22)


async def test_a_checksum_that_is_no_text_is_a_wrong_one(aws: pytest.MonkeyPatch) -> None:
    answer = b"HTTP/1.1 200 OK\r\nx-amz-crc32: \xff\r\nContent-Length: 2\r\n\r\n{}"
    async with answering(answer) as host, open_dynamodb(table, f"http://{host}", deadline=0.1) as store:
        with pytest.raises(Unavailable, match="arrive damaged"):
            await store.send(Query("A"))


@pytest.mark.parametrize("name", get_args(TransportName))
async def test_a_redirect_is_not_followed(name: TransportName, aws: pytest.MonkeyPatch) -> None:
    server = FaultyDynamoDB()
    async with server.running() as elsewhere:
        answer = f"HTTP/1.1 307 Go\r\nLocation: {elsewhere}/\r\nContent-Length: 2\r\n\r\n{{}}".encode()
        async with answering(answer) as host, open_dynamodb(table, f"http://{host}", transport=name) as store:
            for request in (Query("A"), DescribeTable()):
                with pytest.raises(Unavailable, match=f"the server at {host} is not DynamoDB"):
                    await store.send(request)
    assert server.requests == []


# --- Which transport ----------------------------------------------------------------------------------


async def test_the_transport_asked_for_is_used(aws: pytest.MonkeyPatch) -> None:
    aws.setenv("HTTP_PROXY", "http://proxy:3128")  # of plain HTTP alone
    aws.setenv("NO_PROXY", "example.com")
    async with open_dynamodb(table) as store:
        assert type(store._transport) is DirectTransport
    async with open_dynamodb(table, transport="aioboto3") as store:
        assert type(store._transport) is ClientTransport


@pytest.mark.parametrize(
    ("setting", "value", "told"),
    [
        ("HTTPS_PROXY", "http://proxy:3128", "a proxy is set"),
        ("AWS_USE_FIPS_ENDPOINT", "true", "use_fips_endpoint is set"),
        ("AWS_USE_DUALSTACK_ENDPOINT", "true", "use_dualstack_endpoint is set"),
        ("AWS_ENDPOINT_DISCOVERY_ENABLED", "true", "endpoint_discovery_enabled is set"),
        ("AWS_ACCOUNT_ID_ENDPOINT_MODE", "required", "endpoints must have the account in their name"),
        ("AWS_ENDPOINT_URL_DYNAMODB", "https://gate.example/?key=1", "the endpoint has a query, or characters beyond ASCII"),
    ],
)  # fmt: skip
async def test_what_direct_does_not_know_goes_through_aioboto3(
    setting: str, value: str, told: str, aws: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    aws.setenv(setting, value)
    with caplog.at_level(logging.INFO, "keygraph"):
        async with open_dynamodb(table) as store:
            assert type(store._transport) is ClientTransport
    assert caplog.messages == [
        f"Requests go through aioboto3, which uses more processor time, because {told}"
    ]
