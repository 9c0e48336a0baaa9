"""The fan-out: changes go through a stream of a real Valkey or Redis server, and nothing is missed without being noticed."""

from __future__ import annotations

import asyncio
import logging
import threading
from collections.abc import AsyncIterator, Iterator
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from keygraph import Table
from keygraph.changes import fan_out
from keygraph.changes.fan_out import ChangePublisher, PublishedChanges, check_fan_out, fan_out_client
from keygraph.dynamo.streams import StreamRecord
from keygraph.errors import StreamTrimmed, Unavailable
from tests.certificates import write_certificate
from tests.listening import listening
from tests.valkey import ValkeyServer, needs_valkey, valkey_server

pytestmark = needs_valkey

TABLE = Table("Shop", partition_key="pk", sort_key=("sk", "N"))
KEY = "keygraph:changes:Shop"


def change(number: int, **attributes: Any) -> StreamRecord:
    new = {"pk": f"p{number}", "sk": Decimal(number), **attributes}
    return StreamRecord((f"p{number}", Decimal(number)), None, new, f"{number:09d}", float(number))


@pytest.fixture(scope="module")
def shared_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ValkeyServer]:
    with valkey_server(tmp_path_factory.mktemp("valkey")) as server:
        yield server


@pytest.fixture
async def client(shared_server: ValkeyServer) -> AsyncIterator[Any]:
    async with fan_out_client(shared_server.address) as client:
        await client.flushall()
        yield client


@pytest.fixture
def publisher(client: Any) -> ChangePublisher:
    return ChangePublisher(client, TABLE)


@pytest.fixture
def reader(client: Any) -> PublishedChanges:
    return PublishedChanges(client, TABLE)


async def missed(publisher: ChangePublisher, reader: PublishedChanges) -> None:
    """Holds that a reader says that something may be missing, and then begins anew."""
    with pytest.raises(StreamTrimmed):
        await reader.read()
    await reader.start_at_latest()
    await publisher.publish("s", [change(9)])
    assert await reader.read() == [("s", change(9))]


async def test_changes_arrive_as_they_were_published(
    publisher: ChangePublisher, reader: PublishedChanges
) -> None:
    await publisher.begin()
    await publisher.publish("s", [change(1)])
    await reader.start_at_latest()
    every = [
        change(2, n=Decimal("1.50E-20"), b=b"\x00\xff", s=frozenset(["a", "b"]), m={"l": [None, True]}),
        StreamRecord(("p3", Decimal(3)), {"pk": "p3", "sk": Decimal(3)}, None, "000000003", 3.0),
        # More than an entry, and than two.
        *(change(number, text="x" * 50_000) for number in range(4, 8)),
    ]
    await publisher.publish("s", every)
    assert await reader.read() == [("s", each) for each in every]


async def test_what_two_workers_have_published_is_read_once(
    publisher: ChangePublisher, reader: PublishedChanges
) -> None:
    await publisher.begin()
    await reader.start_at_latest()
    for numbers in ((1, 2, 3), (2, 3, 4), (1, 2)):
        await publisher.publish("s", [change(number) for number in numbers])
    await publisher.publish("other", [change(1)])
    # Of a file that was made again: its positions begin again.
    await publisher.publish("s", [StreamRecord(("p1", Decimal(1)), None, change(1).new, "000000001", 9.0)])
    found = [(shard, each.position[-1]) for shard, each in await reader.read()]
    assert found == [("s", "1"), ("s", "2"), ("s", "3"), ("s", "4"), ("other", "1"), ("s", "1")]


async def test_a_reader_notices_that_entries_were_deleted(
    client: Any, publisher: ChangePublisher, reader: PublishedChanges
) -> None:
    await publisher.begin()
    await reader.start_at_latest()
    await publisher.publish("s", [change(1)])
    await publisher.publish("s", [change(2)])
    await client.xtrim(KEY, maxlen=1, approximate=False)
    await missed(publisher, reader)
    # Ids are milliseconds: within the same one, the new entry has the id of the old.
    [(number, entry)] = await client.xrevrange(KEY, count=1)
    await client.flushall()
    await client.xadd(KEY, {**entry, "name": "another"}, id=number)
    with pytest.raises(StreamTrimmed):
        await reader.read()


async def test_a_reader_of_a_stream_that_was_empty_knows_not_what_came_before(
    publisher: ChangePublisher, reader: PublishedChanges, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(fan_out, "_WAITED_SECONDS", 0.01)
    await reader.start_at_latest()
    assert await reader.read() == []
    await publisher.publish("s", [change(1)])
    await missed(publisher, reader)


async def test_the_stream_is_bounded(
    client: Any, publisher: ChangePublisher, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(fan_out, "_KEPT_ENTRIES", 100)
    monkeypatch.setattr(fan_out, "_ENTRY_BYTES", 1)
    await publisher.publish("s", [change(number) for number in range(1_000)])
    assert 100 <= await client.xlen(KEY) <= 300


async def test_what_is_no_change_is_named_in_the_log_and_skipped(
    client: Any, publisher: ChangePublisher, reader: PublishedChanges, caplog: pytest.LogCaptureFixture
) -> None:
    await publisher.begin()
    await reader.start_at_latest()
    for changes in (
        "[" * 100_000,
        "[",
        "[[1, 2]]",
        '[["1", 1, null, {"pk": {"N": "1"}}]]',
        '[["1", 1, null, null]]',
        '[["1", 1e300, null, {"pk": {"S": "1"}, "sk": {"N": "1"}}]]',
    ):
        await client.xadd(KEY, {"shard": "s", "changes": changes})
    await client.xadd(KEY, {"secret": "1"})
    await publisher.publish("s", [change(1)])
    with caplog.at_level(logging.WARNING):
        assert await reader.read() == [("s", change(1))]
    assert f"of {KEY} is skipped" in caplog.text
    assert reader._skipped.count == 7


async def test_entries_of_many_values_are_read_few_at_a_time_and_beside_others(
    publisher: ChangePublisher, reader: PublishedChanges, monkeypatch: pytest.MonkeyPatch
) -> None:
    await publisher.begin()
    await reader.start_at_latest()
    monkeypatch.setattr(fan_out, "_AT_ONCE_BYTES", 100_000)
    changes = [change(number, values=[[]] * 4_900) for number in range(1, 8)]
    await publisher.publish("s", changes)
    threads, untyped = set[int](), fan_out.untyped_item

    def noticed(item: Any) -> Any:
        threads.add(threading.get_ident())
        return untyped(item)

    monkeypatch.setattr(fan_out, "untyped_item", noticed)
    pages = [await reader.read() for _ in range(3)]
    assert [each for page in pages for each in page] == [("s", each) for each in changes]
    assert [len(page) for page in pages] == [3, 3, 1]
    assert threading.get_ident() not in threads


async def test_after_an_outage_a_reader_says_that_something_may_be_missing(tmp_path: Path) -> None:
    with valkey_server(tmp_path, "--requirepass", "s3cret") as server:
        address = server.address.replace("//", "//:s3cret@")
        async with fan_out_client(address) as client:
            publisher, reader = ChangePublisher(client, TABLE), PublishedChanges(client, TABLE)
            await publisher.begin()
            await reader.start_at_latest()
            server.kill()
            for call in (reader.read(), reader.start_at_latest(), publisher.publish("s", [change(1)])):
                with pytest.raises(Unavailable) as caught:
                    await call
                assert "s3cret" not in str(caught.value)
            server.start()
            await publisher.publish("s", [change(1)])
            await missed(publisher, reader)


@pytest.mark.parametrize(
    "answer",
    [
        b"*1\r\n" * 5_000 + b":1\r\n",
        b":" + b"9" * 5_000 + b"\r\n",
        b"*1\r\n*2\r\n$1\r\na\r\n*1\r\n:1\r\n",
        b"*1\r\n*2\r\n$1\r\na\r\n*1\r\n*2\r\n:1\r\n*-1\r\n",
        b"*1\r\n*2\r\n$1\r\na\r\n*-1\r\n",
        b"*1\r\n*2\r\n$1\r\na\r\n*1\r\n*2\r\n$1\r\na\r\n*2\r\n$7\r\nchanges\r\n:1\r\n",
    ],
)
async def test_what_no_valkey_server_answers_is_an_outage(
    answer: bytes, client: Any, publisher: ChangePublisher, reader: PublishedChanges
) -> None:
    async def spoil(requests: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while await requests.read(65536):
            writer.write(answer)
        writer.close()

    await publisher.begin()
    await reader.start_at_latest()
    async with listening(spoil) as host, fan_out_client(f"valkey://{host}") as odd:
        reader._client = odd
        with pytest.raises(Unavailable):
            await ChangePublisher(odd, TABLE).publish("s", [change(1)])
        with pytest.raises(Unavailable):
            await reader.read()
    reader._client = client
    await missed(publisher, reader)


async def test_it_goes_over_tls_with_a_password(tmp_path: Path) -> None:
    write_certificate(tmp_path, "127.0.0.1")
    files = ("--tls-cert-file", "cert.pem", "--tls-key-file", "key.pem", "--tls-ca-cert-file", "cert.pem")
    options = ("--port", "0", "--tls-port", "PORT", "--tls-auth-clients", "no", *files)
    with valkey_server(tmp_path, *options, "--requirepass", "s3cret") as server:
        address = server.address.replace("valkey://", "valkeys://:s3cret@")
        trusted = f"{address}?ssl_ca_certs={tmp_path / 'cert.pem'}"
        async with fan_out_client(trusted) as right, fan_out_client(address) as unknown:
            await ChangePublisher(right, TABLE).begin()
            with pytest.raises(Unavailable):
                await ChangePublisher(unknown, TABLE).begin()


@pytest.mark.parametrize(
    "address",
    ["localhost", "http://localhost", "valkey://", "valkey://:s3cret@host:0", "valkey://:s3cret@host:x"],
)
def test_addresses_that_are_refused(address: str) -> None:
    with pytest.raises(ValueError, match="no address") as caught:
        check_fan_out(address)
    assert "s3cret" not in str(caught.value)


async def test_an_unknown_option_is_refused() -> None:
    with pytest.raises(ValueError, match="ssl_certs"):
        fan_out_client("valkeys://:s3cret@localhost?ssl_certs=1")
