"""The private names of aiobotocore that the client transport overrides."""

from __future__ import annotations

import asyncio
from threading import Event, current_thread, main_thread
from types import SimpleNamespace
from typing import Any

import pytest
from aiobotocore.httpsession import AIOHTTPSession
from botocore.awsrequest import AWSRequest
from botocore.exceptions import EndpointConnectionError
from botocore.session import get_session

from keygraph.dynamo.actions import PutItem
from keygraph.dynamo.items import parsed_in_turns
from keygraph.dynamo.store import BatchGet, Query, Transaction, Write
from keygraph.dynamo.table import Table
from keygraph.engines.dynamodb import gate, http1, sending, transport
from keygraph.engines.dynamodb.answers import decoded
from keygraph.engines.dynamodb.client import ClientTransport, ResponseParsers, VerifyingSession
from keygraph.engines.dynamodb.engine import open_dynamodb
from keygraph.engines.dynamodb.http1 import LargeReplies
from keygraph.engines.dynamodb.requests import Wire
from keygraph.engines.dynamodb.transport import TransportName
from keygraph.errors import Unavailable
from tests.keygraph.faulty import FaultyDynamoDB


def test_a_host_is_checked_only_by_ours() -> None:
    """Where the first line fails, aiobotocore checks hosts by itself, and `VerifyingSession` can go."""
    assert not AIOHTTPSession()._get_ssl_context().check_hostname  # type: ignore[attr-defined]  # not in its stubs
    assert VerifyingSession()._get_ssl_context().check_hostname


async def test_a_large_answer_is_parsed_beside_others(monkeypatch: pytest.MonkeyPatch) -> None:
    """aiobotocore itself parses every answer in the event loop, and accepts half of a surrogate pair."""
    beside: list[bool] = []

    def noted(text: bytes) -> Any:
        beside.append(current_thread() is not main_thread())
        return parsed_in_turns(text)

    async def done(*_: object) -> tuple[int, bytes]:
        return 200, b'{"Items":[],"text":"%s\\ud83d"}' % (b"x" * 100_000)

    monkeypatch.setattr(transport, "parsed_in_turns", noted)
    faulty, table = FaultyDynamoDB(), Table("Shop", partition_key="PK", sort_key="SK")
    async with faulty.running() as url, open_dynamodb(table, url, transport="aioboto3") as store:
        for text in ("\\ud83d", "x" * 100_000, "\\ud83d\\ude00" * 10_000):
            faulty.items["A", "B"] = {"PK": {"S": "A"}, "SK": {"S": "B"}, "text": {"S": text}}
            assert (await store.send(Query("A"))).items == [{"PK": "A", "SK": "B", "text": text}]
        monkeypatch.setattr(faulty, "done", done)
        with pytest.raises(Unavailable):
            await store.send(Query("A"))
    assert beside == [True] * 3


async def test_what_is_no_json_is_no_empty_answer(monkeypatch: pytest.MonkeyPatch) -> None:
    """To aiobotocore it is an item that does not exist, or a write that was made."""

    async def done(*_: object) -> tuple[int, bytes]:
        return 200, b"<html></html>"

    faulty, table = FaultyDynamoDB(), Table("Shop", partition_key="PK", sort_key="SK")
    async with faulty.running() as url, open_dynamodb(table, url, transport="aioboto3") as store:
        monkeypatch.setattr(faulty, "done", done)
        put = PutItem({"PK": "A", "SK": "B"})
        for request in (BatchGet((("A", "B"),)), Write(put), Transaction((put,), "token")):
            with pytest.raises(Unavailable):
                await store.send(request)


async def test_botocore_reads_the_endpoints_that_it_discovers() -> None:
    shape = get_session().get_service_model("dynamodb").operation_model("DescribeEndpoints").output_shape
    answer = {"status_code": 200, "headers": {}, "body": b'{"Endpoints":[]}'}
    assert (await ResponseParsers().create_parser("json").parse(answer, shape))["Endpoints"] == []


@pytest.mark.parametrize("name", ["direct", "aioboto3"])
async def test_large_answers_wait_for_others_whatever_reads_them_and_that_is_no_outage(
    monkeypatch: pytest.MonkeyPatch, name: TransportName
) -> None:
    may_go_on, wait = Event(), LargeReplies._wait
    waiting = asyncio.Queue[asyncio.Task[Any] | None]()

    async def noted(large: LargeReplies, *arguments: Any) -> None:
        waiting.put_nowait(asyncio.current_task())
        await wait(large, *arguments)

    def held(*arguments: Any) -> Any:
        may_go_on.wait()
        return decoded(*arguments)

    monkeypatch.setattr(http1, "_LARGE_IN_ALL", 1)
    monkeypatch.setattr(LargeReplies, "_wait", noted)
    monkeypatch.setattr(sending, "decoded", held)
    monkeypatch.setattr(gate, "_OUTAGE_SECONDS", 0.0)
    faulty, table = FaultyDynamoDB(), Table("Shop", partition_key="PK", sort_key="SK")
    faulty.items["A", "B"] = {"PK": {"S": "A"}, "SK": {"S": "B"}, "text": {"S": "x" * 1_000_000}}
    monkeypatch.setattr(faulty.random, "random", lambda: 1.0)  # in one piece
    async with faulty.running() as url, open_dynamodb(table, url, transport=name) as store:
        reading = [asyncio.create_task(store.send(Query("A"))) for _ in range(3)]
        try:
            given_up = await waiting.get()
            assert given_up is not None
            given_up.cancel()
            await asyncio.wait([given_up])
            reading.remove(given_up)
        finally:
            may_go_on.set()
        assert [len((await each).items) for each in reading] == [1, 1]
        assert store.traffic.failed == 0


async def test_nothing_connects_once_a_session_has_ended() -> None:
    session = VerifyingSession()
    await session.close()
    with pytest.raises(EndpointConnectionError) as refused:
        await session.send(AWSRequest("POST", "http://127.0.0.1:1/").prepare())
    assert str(refused.value.kwargs["error"]) == "the store was closed"


@pytest.mark.long
async def test_an_answer_that_nobody_waits_for_keeps_no_connection() -> None:
    """Later requests would wait for the connections of an outage in which answers only began, for good."""
    is_over = False

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{" + b"}" * is_over)
        await reader.read()
        writer.close()

    session: Any = VerifyingSession(max_pool_connections=1)
    async with await asyncio.start_server(answer, "127.0.0.1", 0) as server:
        request = AWSRequest("GET", f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}/").prepare()
        kept = []
        for _ in range(2):
            try:
                async with asyncio.timeout(0.2 + 9 * is_over):
                    assert await (await session.send(request)).content == b"{}"
            except TimeoutError as error:
                kept.append(error)  # with all that its frames hold
            is_over = True
        assert len(kept) == 1
        await session.close()


async def test_a_client_that_was_not_opened_is_opened_again_and_closed_although_closing_is_canceled() -> None:
    closed, failures = list[str](), [ConnectionError()]

    def client_of(name: str) -> Any:
        async def close() -> None:
            closed.append(name)

        async def describe_stream() -> dict[str, Any]:
            return {}

        return SimpleNamespace(close=close, describe_stream=describe_stream)

    async def open_streams() -> Any:
        if failures:
            raise failures.pop()
        return client_of("streams")

    sends = ClientTransport(client_of("data"), open_streams, asyncio.Event().wait)  # type: ignore[arg-type]  # it never returns
    with pytest.raises(ConnectionError):
        await sends.call(Wire("DescribeStream", {}))
    await sends.call(Wire("DescribeStream", {}))
    closing = asyncio.create_task(sends.close())
    await asyncio.sleep(0)
    closing.cancel()
    with pytest.raises(asyncio.CancelledError):
        await closing
    assert closed == ["streams", "data"]
