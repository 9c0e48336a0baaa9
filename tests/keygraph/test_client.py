"""The private names of aiobotocore that the client transport overrides."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from threading import current_thread, main_thread
from types import SimpleNamespace
from typing import Any

import pytest
from aiobotocore.httpsession import AIOHTTPSession
from botocore.awsrequest import AWSRequest
from botocore.exceptions import EndpointConnectionError
from botocore.parsers import JSONParser

from keygraph.dynamo.items import parsed_in_turns
from keygraph.dynamo.store import Query
from keygraph.dynamo.table import Table
from keygraph.engines.dynamodb import client
from keygraph.engines.dynamodb.client import ClientTransport, VerifyingSession
from keygraph.engines.dynamodb.engine import open_dynamodb
from keygraph.engines.dynamodb.http1 import Malformed
from keygraph.engines.dynamodb.requests import Wire
from tests.keygraph.faulty import FaultyDynamoDB


def test_a_host_is_checked_only_by_ours() -> None:
    """Where the first line fails, aiobotocore checks hosts by itself, and `VerifyingSession` can go."""
    assert not AIOHTTPSession()._get_ssl_context().check_hostname  # type: ignore[attr-defined]  # not in its stubs
    assert VerifyingSession()._get_ssl_context().check_hostname


async def test_a_large_answer_is_parsed_beside_others(monkeypatch: pytest.MonkeyPatch) -> None:
    """aiobotocore itself parses every answer in the event loop."""
    beside: list[bool] = []
    parse = JSONParser._handle_json_body  # type: ignore[attr-defined]  # not in its stubs

    def noted(parser: JSONParser, body: Any, shape: Any) -> Any:
        beside.append(current_thread() is not main_thread())
        return parse(parser, body, shape)

    monkeypatch.setattr(JSONParser, "_handle_json_body", noted)
    faulty, table = FaultyDynamoDB(), Table("Shop", partition_key="PK", sort_key="SK")
    async with faulty.running() as url, open_dynamodb(table, url, transport="aioboto3") as store:
        for size in (10, 100_000):
            faulty.items["A", "B"] = {"PK": {"S": "A"}, "SK": {"S": "B"}, "text": {"S": "x" * size}}
            assert (await store.send(Query("A"))).items == [{"PK": "A", "SK": "B", "text": "x" * size}]
    assert beside == [False, True]


async def test_escapes_in_a_large_answer_are_checked_beside_others(monkeypatch: pytest.MonkeyPatch) -> None:
    """orjson would keep all threads waiting."""
    beside: list[bool] = []

    def noted(body: bytes) -> Any:
        beside.append(current_thread() is not main_thread())
        return parsed_in_turns(body)

    async def read(escape: bytes) -> bytes:
        async def parts() -> AsyncIterator[bytes]:
            yield b'{"Items":[%s{}],"a":"%s"}' % (b'{"S":{"S":"x"}},' * 5_000, escape)

        answer: Any = SimpleNamespace(status=200, content=SimpleNamespace(iter_any=parts), close=lambda: None)
        return await client._Response(answer, len(escape) + 2**20).read()

    monkeypatch.setattr(client, "parsed_in_turns", noted)
    assert (await read(b"\\ud83d\\ude00")).endswith(b'\\ude00"}')
    with pytest.raises(Malformed):
        await read(b"\\ud83d")
    assert beside == [True, True]


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


async def test_clients_are_closed_although_closing_is_canceled() -> None:
    closed = list[str]()

    def client_of(name: str) -> Any:
        async def close() -> None:
            closed.append(name)

        async def describe_stream() -> dict[str, Any]:
            return {}

        return SimpleNamespace(close=close, describe_stream=describe_stream)

    async def open_streams() -> Any:
        return client_of("streams")

    transport = ClientTransport(client_of("data"), open_streams, asyncio.Event().wait)  # type: ignore[arg-type]  # it never returns
    await transport.call(Wire("DescribeStream", {}))
    closing = asyncio.create_task(transport.close())
    await asyncio.sleep(0)
    closing.cancel()
    with pytest.raises(asyncio.CancelledError):
        await closing
    assert closed == ["streams", "data"]
