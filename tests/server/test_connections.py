"""Connections: what each may send, keep and take time for, with both HTTP parsers, at the limits and one beyond."""

from __future__ import annotations

import asyncio
import gc
import logging
import mmap
import platform
import socket
import sys
import time
import tracemalloc
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any, cast
from weakref import ref

import pytest
from uvicorn.protocols.http import h11_impl, httptools_impl

from keygraph_resolvers.engine.engine import rounds
from keygraph_server.app import create_app
from keygraph_server.connections import BEGINS, LET_THROUGH, gate
from keygraph_server.connections.gate import network_of
from keygraph_server.connections.guarded import GuardedConnection
from keygraph_server.connections.h11_protocol import H11Connection
from keygraph_server.connections.httptools_protocol import HttpToolsConnection
from keygraph_server.listening import listen
from tests.clocks import MovedClock, until
from tests.server.library import library_settings, make_table
from tests.server.raw_http import RESETS_AT_ONCE, Client, Running, connected, padded, request, running

Protocol = type[GuardedConnection]
BOTH = pytest.mark.parametrize(
    "protocol",
    [
        pytest.param(HttpToolsConnection, id="httptools"),
        pytest.param(H11Connection, id="h11", marks=pytest.mark.long),
    ],
)


@pytest.fixture
async def clock(monkeypatch: pytest.MonkeyPatch) -> MovedClock:
    return MovedClock(monkeypatch)


def resident_memory() -> int:
    """The memory of this process, in bytes."""
    return int(Path("/proc/self/statm").read_text("ascii").split()[1]) * mmap.PAGESIZE


async def busy(server: Running) -> list[Client]:
    """Clients that wait for answers: more than a few."""
    clients = [await server.connect() for _ in range(17)]
    for client in clients:
        await client.send(request("/wait", b"{}"))
    await until(lambda: len(server.app.asked) == len(clients))
    return clients


@BOTH
class TestHeads:
    @pytest.mark.parametrize("pieces", [1, 2, 50], ids=["at once", "in two", "in fifty"])
    async def test_the_size_is_limited(self, protocol: Protocol, pieces: int) -> None:
        async with running(protocol, max_head_bytes=1000) as server:
            for size, status in ((1000, 200), (1001, 431)):
                client = await server.connect()
                head = padded(size)
                step = -(-len(head) // pieces)
                for start in range(0, len(head), step):
                    await client.send(head[start : start + step])
                    await asyncio.sleep(0.002)
                answer = await client.read()
                assert answer.status == status
            assert answer.code == "BAD_USER_INPUT"
            assert answer.fields["content-type"] == "application/json; charset=utf-8"
            assert b"limited to 1,000 bytes" in answer.body
            assert await client.rest() == b""
            assert len(server.app.asked) == 1

    @pytest.mark.parametrize("part", ["GET /", "GET / HTTP/1.1\r\nX: ", "GET / HTTP/1.1\r\nX", "\r\n"])
    async def test_one_without_an_end_is_refused_at_the_limit(self, protocol: Protocol, part: str) -> None:
        async with connected(protocol, max_head_bytes=1000) as (_, client):
            await client.send(part.encode())
            for _ in range(12):
                await client.send((b"\r\n" if part == "\r\n" else b"xx") * 50)
                await asyncio.sleep(0.005)
            assert (await client.read()).status in ({400, 431} if part == "\r\n" else {431})

    async def test_the_number_of_fields_is_limited(self, protocol: Protocol) -> None:
        async with connected(protocol, max_head_fields=10) as (_, client):
            # Host is one.
            assert (await client.ask("/", **{f"f{number}": "" for number in range(9)})).status == 200
            answer = await client.ask("/", **{f"f{number}": "" for number in range(10)})
            assert (answer.status, answer.code) == (431, "BAD_USER_INPUT")

    async def test_fields_beyond_the_limit_are_not_parsed(self, protocol: Protocol) -> None:
        """Not even if all fit into the bytes of a head, and have come: thousands would take a megabyte, and milliseconds."""
        chunked = b"POST /a HTTP/1.1\r\nHost: k\r\nTransfer-Encoding: chunked\r\n\r\n1\r\nx\r\n0\r\n"
        async with running(protocol, max_head_fields=100) as server:
            for begun, had in ((b"GET / HTTP/1.1\r\nHost: k\r\n", 1), (chunked, 0)):
                client = await server.connect()
                await client.send(begun + b"a:\r\n" * (100 - had) + b"\r\n")
                assert (await client.read()).status == 200
                for end in (b"", b"\r\n"):
                    client = await server.connect()
                    await client.send(begun + b"a:\r\n" * 200 + end)
                    answer = await client.read()
                    assert (answer.status, b"100 header fields" in answer.body) == (431, True)
            client = await server.connect()
            for each in (chunked, b"a:\r\n" * 101, b"\r\n"):
                await client.send(each)
            assert (await client.read()).status == 431

    async def test_a_long_path_is_not_decoded(self, protocol: Protocol) -> None:
        async with connected(protocol) as (_, client):
            assert (await client.ask("/" + "%41" * 341)).body == b"GET /" + b"A" * 341 + b" 0"
            assert (await client.ask("/a?" + "%41" * 5000)).status == 200
            assert (await client.ask("/" + "%41" * 342)).status == 414

    async def test_the_limit_is_for_each_head_not_for_all_bytes(self, protocol: Protocol) -> None:
        async with connected(protocol, max_head_bytes=1000) as (_, client):
            await client.send(request("/a", b"b" * 5000) + padded(1000) + request("/c", b"d" * 3000))
            assert [(await client.read()).body for _ in range(3)] == [
                b"POST /a 5000",
                b"GET /padded 0",
                b"POST /c 3000",
            ]

    async def test_what_is_no_http_is_answered_in_json(self, protocol: Protocol) -> None:
        async with connected(protocol, https_only=True) as (_, client):
            await client.send(b"\x16\x03\x01\x02\x00\x01\x00\r\n\r\n")
            answer = await client.read()
            assert (answer.status, answer.code) == (400, "BAD_USER_INPUT")
            assert answer.fields["strict-transport-security"] == "max-age=31536000"
            assert await client.rest() == b""

    async def test_a_wrong_request_does_not_take_the_place_of_an_answer(self, protocol: Protocol) -> None:
        async with connected(protocol) as (server, client):
            await client.send(request("/wait", b"{}") + b"\x16\x03 no request\r\n\r\n")
            await until(lambda: server.app.asked == ["/wait"])
            server.app.is_open.set()
            assert (await client.read()).body == b"waited"
            assert (await client.read()).status == 400

    @pytest.mark.parametrize(
        ("version", "hosts", "status"),
        [
            ("1.1", 0, 400),
            ("1.1", 1, 200),
            ("1.1", 2, 400),
            ("1.0", 0, 200),
            ("0.9", 1, 400),
            ("2.0", 1, 400),
        ],
    )
    async def test_a_request_says_its_host_once(
        self, protocol: Protocol, version: str, hosts: int, status: int
    ) -> None:
        async with connected(protocol) as (_, client):
            await client.send(f"GET / HTTP/{version}\r\n".encode() + b"Host: k\r\n" * hosts + b"\r\n")
            assert (await client.read()).status == status

    async def test_a_host_is_a_host(self, protocol: Protocol) -> None:
        hosts = [
            *("", "a b", "a/b", "a?b", "a#b", "a@b", "a,b", "a:b", "a:99999", "a:1:2", 'a"b', "a\\b", "<a>")
        ]
        async with running(protocol) as server:
            for host in (*hosts, "http://a", "[::1", "[x]", "\xe9", "a" * 256):
                client = await server.connect()
                await client.send(f"GET / HTTP/1.1\r\nHost: {host}\r\n\r\n".encode("latin-1"))
                answer = await client.read()
                assert (host, answer.status, answer.code) == (host, 400, "BAD_USER_INPUT")
            assert server.app.asked == []

    async def test_only_listed_hosts_are_answered(self, protocol: Protocol) -> None:
        async with running(protocol, hosts=["localhost", "[::1]", "shop.test", "*.apps.test"]) as server:
            for host, status in {
                "localhost": 200,
                "LOCALHOST:8000": 200,
                "localhost.": 200,
                "[::1]:80": 200,
                "shop.test:": 200,
                "a.b.apps.test": 200,
                "evil.example": 421,
                "evil.example:8000": 421,
                "localhost.evil.example": 421,
                "apps.test": 421,
                "evilapps.test": 421,
                "shop.test.evil.example": 421,
                "shop-test": 421,
                "127.0.0.1": 421,
            }.items():
                client = await server.connect()
                await client.send(f"GET / HTTP/1.1\r\nHost: {host}\r\n\r\n".encode())
                answer = await client.read()
                assert answer.status == status, host
            assert b"does not answer requests to 127.0.0.1: if that name should lead here" in answer.body
            assert b"KEYGRAPH_ALLOWED_HOSTS" in answer.body
            # The last accepted host is remembered, and no other one with it.
            client = await server.connect()
            await client.send(b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n" * 2)
            assert [(await client.read()).status for _ in range(2)] == [200, 200]
            await client.send(b"GET / HTTP/1.1\r\nHost: evil.example\r\n\r\n")
            assert (await client.read()).status == 421
            assert await client.rest() == b""

    async def test_what_others_read_differently_is_refused(self, protocol: Protocol) -> None:
        post, get = "POST / HTTP/1.1\r\nHost: k\r\n", "GET / HTTP/1.1\r\nHost: k\r\n"
        chunked = f"{post}Transfer-Encoding: chunked"
        # httptools refuses these itself.
        coding = 400 if protocol is HttpToolsConnection else 501
        # It ignores line ends before a request.
        before = 200 if protocol is HttpToolsConnection else 400
        async with running(protocol) as server:
            for head, status in {
                f"{post}Transfer-Encoding: gzip, chunked": 501,
                f"{post}Transfer-Encoding: gzip\r\nTransfer-Encoding: chunked": 501,
                f"{post}Transfer-Encoding: gzip": 501,
                f"{chunked}, chunked": coding,
                f"{chunked}\r\nTransfer-Encoding: chunked": coding,
                f"{post}Transfer-Encoding: identity, chunked": 501,
                f"{chunked}\r\nContent-Length: 5": 400,
                "POST / HTTP/1.0\r\nHost: k\r\nTransfer-Encoding: chunked": 400,
                f"{post}Transfer-Encoding: Chunked": 200,
                f"{get}Expect: x": 417,
                f"{get}Expect: 100-continue, x": 417,
                f"{get}Expect: 100-Continue": 200,
                "GET http://other/ HTTP/1.1\r\nHost: k": 400,
                "GET http://k@other/ HTTP/1.1\r\nHost: k": 400,
                "GET http://k/ HTTP/1.1\r\nHost: k": 200,
                "OPTIONS * HTTP/1.1\r\nHost: k": 200,
                "GET elsewhere HTTP/1.1\r\nHost: k": 400,
                "CONNECT elsewhere:443 HTTP/1.1\r\nHost: elsewhere:443": 501,
                "GET  / HTTP/1.1\r\nHost: k": 400,
                "GET /  HTTP/1.1\r\nHost: k": 400,
                "GET / RTSP/1.0\r\nHost: k": 400,
                f"{get}\r\nGET /  HTTP/1.1\r\nHost: k": 400,
                f"{get}Content-Length: 14\r\n\r\nGET / HTTP/1.1GET / RTSP/1.1\r\nHost: k": 400,
                "GET  / HTTP/1.1\r\nX: GET / HTTP/1.1\r\nHost: k": 400,
                f"{chunked}\r\n\r\n10;a=b\r\nGET / HTTP/1.1\r\n\r\n0\r\n\r\nGET  / HTTP/1.1\r\nHost: k": 400,
                f"{chunked}\r\n\r\n1\r\nx\r\n0\r\nX: GET / HTTP/1.1\r\n\r\nGET  / HTTP/1.1\r\nHost: k": 400,
                f"{get}X: a\n": 400,
                f"{get}X: a\r\n b": 400,
                f"{get}X: a\r\n\tb": 400,
                f"{get}X: a\x01": 400,
                "GET / HTTP/1.1\nHost: k\n": 400,
                f"\n\r\n{get}X: a": before,
                f"{chunked}\r\n\r\n3;a\rb\r\nx": 400,
            }.items():
                client = await server.connect()
                await client.send(f"{head}\r\n\r\n0\r\n\r\n".encode())
                answer = await client.read()
                if head.count("HTTP/1.1\r\nHost") + head.count("RTSP") > 1:
                    assert answer.status == 200
                    answer = await client.read()
                assert (head, answer.status) == (head, status)

    async def test_a_line_may_end_in_two_parts(self, protocol: Protocol) -> None:
        async with connected(protocol) as (_, client):
            post = b"POST / HTTP/1.1\r\nHost: k\r\nTransfer-Encoding: chunked\r\n\r\n"
            for part in (post, b"1\r", b"\nx\r", b"\n0\r\n\r\n"):
                await client.send(part)
                await asyncio.sleep(0.001)
            assert (await client.read()).body == b"POST / 1"

    async def test_a_whole_url_of_this_host_is_its_path(self, protocol: Protocol) -> None:
        async with connected(protocol) as (_, client):
            await client.send(b"GET http://k/a/b?c=http://d HTTP/1.1\r\nHost: k\r\n\r\n")
            assert (await client.read()).body == b"GET /a/b 0"

    async def test_a_trusted_proxy_names_the_client(self, protocol: Protocol) -> None:
        async with running(protocol) as server:
            client, other = await server.connect(), await server.connect("127.0.0.2")
            for each in (client, other, client):
                await each.ask("/", X_Forwarded_For="192.0.2.1")
            await client.ask("/")
        assert server.app.addresses == ["192.0.2.1", "127.0.0.2", "192.0.2.1", "127.0.0.1"]

    async def test_connections_of_a_trusted_proxy_are_not_read_behind_each_other(
        self, protocol: Protocol
    ) -> None:
        async with running(protocol) as server:
            clients = [await server.connect(host) for host in ("127.0.0.1", "127.0.0.2") for _ in range(3)]
            await until(lambda: server.gate.count == 6)
            shared, connections = rounds(), cast("list[Any]", [*server.gate._open])
            for method, given in (("data_received", (request("/a"),)), ("become_websocket", (b"GET /", b""))):
                shared.count(0.0)
                shared.ends = 1e-9  # this round is over
                for connection in connections:
                    getattr(connection, method)(*given)
                assert len({client for *_, (client, _), _ in shared.waiting}) == 4
                assert {(await each.read()).status for each in clients} <= {200, 400}


@BOTH
class TestUpgrade:
    async def test_an_offer_to_change_the_protocol_is_ignored(self, protocol: Protocol) -> None:
        fields = {"Connection": "Upgrade, HTTP2-Settings", "Upgrade": "h2c", "HTTP2_Settings": "AAMAAABkAAQ"}
        async with connected(protocol) as (server, client):
            whole = request("/a", b"b" * 5000, **fields)
            for data in (whole, whole[:300] + b"", whole[300:], request("/c", **fields) + whole):
                await client.send(data)
                await asyncio.sleep(0.02)
            assert [(await client.read()).body for _ in range(4)] == [
                b"POST /a 5000",
                b"POST /a 5000",
                b"GET /c 0",
                b"POST /a 5000",
            ]
            assert server.app.fields[0]["connection"] == "Upgrade, HTTP2-Settings"
            assert server.app.fields[0]["upgrade"] == "h2c"
            assert (await client.ask("/d", Connection="Upgrade", Upgrade="websocket")).body == b"GET /d 0"
            chunked = request("/e", **fields, Transfer_Encoding="chunked").replace(b"GET", b"POST")
            await client.send(chunked + b"3\r\nabc\r\n2\r\nde\r\n0\r\n\r\n")
            assert (await client.read()).body == b"POST /e 5"


async def test_the_head_and_the_body_of_an_answer_are_one_write(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where requests are not logged: uvicorn's log looks at the head alone."""
    monkeypatch.setattr(logging.getLogger("uvicorn.access"), "propagate", False)
    written: list[bytes] = []
    transport: Any = asyncio.selector_events._SelectorSocketTransport  # type: ignore[attr-defined]  # tests run on it
    write, loop = transport.write, asyncio.get_running_loop()

    def record(own: Any, data: bytes) -> None:
        # Threads of other tests have connections of their own.
        if own._loop is loop:
            written.append(data)
        write(own, data)

    monkeypatch.setattr(transport, "write", record)
    async with running(HttpToolsConnection) as server:
        await (await server.connect()).ask("/")
    assert [data[:4] for data in written] == [b"GET ", b"HTTP"]


@BOTH
class TestBodies:
    async def test_an_answer_before_the_end_of_the_body_arrives(self, protocol: Protocol) -> None:
        async with connected(protocol) as (_, client):
            await client.send(b"POST /unread HTTP/1.1\r\nHost: k\r\nContent-Length: 3000000\r\n\r\n")
            for _ in range(30):
                await client.send(b"x" * 65536)
                await asyncio.sleep(0.002)
            assert (await client.read()).body == b"too large"
            assert await client.rest() == b""

    async def test_trailers_are_no_fields_and_extensions_have_an_end_too(self, protocol: Protocol) -> None:
        async with connected(protocol, max_head_bytes=1000) as (server, client):
            head = b"POST /a HTTP/1.1\r\nHost: k\r\nTransfer-Encoding: chunked\r\n\r\n1"
            chunked = head + b"\r\nx\r\n0\r\n"
            await client.send(chunked + b"Authorization: mine\r\n\r\n" + request("/b"))
            assert [(await client.read()).body for _ in range(2)] == [b"POST /a 1", b"GET /b 0"]
            assert not any("authorization" in fields for fields in server.app.fields)
            for begun, more in ((chunked, b"Field: %s\r\n" % (b"x" * 90)), (head, b";" + b"x" * 100)):
                client = await server.connect()
                await client.send(begun)
                for _ in range(40):
                    await client.send(more)
                    await asyncio.sleep(0.001)
                assert (await client.read()).status in {400, 431}

    async def test_chunks_of_a_few_bytes_have_an_end(
        self, protocol: Protocol, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        read, received = list[int](), protocol.body_received
        monkeypatch.setattr(protocol, "body_received", lambda *to: read.append(to[1]) or received(*to))
        chunked = b"POST /a HTTP/1.1\r\nHost: k\r\nTransfer-Encoding: chunked\r\n\r\n"
        async with running(protocol) as server:
            for chunk in (b"%x\r\n%s\r\n" % (size, b"x" * size) for size in (1, 6, 24, 255)):
                read.clear()
                client = await server.connect()
                await client.send(chunked + chunk * (3_000_000 // len(chunk)) + b"0\r\n\r\n")
                assert (await client.read()).status == 400
                assert 0 < len(read) < 700
            client = await server.connect()
            await client.send(chunked + b"40\r\n%s\r\n" % (b"x" * 64) * 120 + b"0\r\n\r\n")
            assert (await client.read()).body == b"POST /a 7680"
            await client.send(chunked + b"400\r\n%s\r\n" % (b"x" * 1024) * 6_000 + b"0\r\n\r\n")
            assert (await client.read()).body == b"POST /a 6144000"
            # Trailers that come at once, as those that come one by one.
            client = await server.connect()
            await client.send(chunked + b"1\r\nx\r\n0\r\n" + b"A: x\r\n" * 10_000 + b"\r\n")
            assert (await client.read()).status in {400, 431}


@BOTH
class TestPipelining:
    async def test_the_requests_that_wait_are_limited(self, protocol: Protocol) -> None:
        async with connected(protocol, max_pipelined=3) as (_, client):
            await client.send(b"".join(request(f"/{number}") for number in range(4)))
            assert [(await client.read()).body for _ in range(4)] == [b"GET /%d 0" % n for n in range(4)]
            await client.send(b"".join(request(f"/{number}") for number in range(9)))
            assert [(await client.read()).body for _ in range(4)] == [b"GET /%d 0" % n for n in range(4)]
            answer = await client.read()
            assert (answer.status, answer.code) == (503, "UNAVAILABLE")
            assert answer.fields["retry-after"] == "1"
            assert await client.rest() == b""

    async def test_what_came_with_requests_that_wait_is_read_later(
        self, protocol: Protocol, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """Hundreds of connections that send many requests at once would keep others waiting."""
        parts = list[int]()
        feed = protocol.feed
        monkeypatch.setattr(protocol, "feed", lambda self, data: parts.append(len(data)) or feed(self, data))
        async with connected(protocol) as (server, client):
            await client.send(request("/wait") + request("/a", b"a" * 400) * 12)
            await until(lambda: server.app.asked == ["/wait"])
            await asyncio.sleep(0.05)
            assert (len(parts), server.gate.held > 2_000) == (1, True)
            server.app.is_open.set()
            assert (await client.read()).body == b"waited"
            assert [(await client.read()).body for _ in range(12)] == [b"POST /a 400"] * 12
            assert server.gate.held == 0
            # Also what came before the client has closed its direction.
            server.app.is_open.clear()
            await client.send(request("/wait") + request("/a", b"a" * 400) * 12)
            client.writer.write_eof()
            await asyncio.sleep(0.05)
            server.app.is_open.set()
            assert [(await client.read()).body for _ in range(13)] == [b"waited", *[b"POST /a 400"] * 12]

    async def test_reading_takes_turns(self, protocol: Protocol, monkeypatch: pytest.MonkeyPatch) -> None:
        """Hundreds of connections that send something at once, and end, would keep others waiting."""
        parts = list[int]()
        feed = protocol.feed
        monkeypatch.setattr(protocol, "feed", lambda self, data: parts.append(len(data)) or feed(self, data))
        async with running(protocol) as server:
            clients = [await server.connect() for _ in range(40)]
            await until(lambda: server.gate.count == 40)
            rounds().count(0.0)
            rounds().ends = 1e-9  # this round is over
            connections: list[Any] = [*server.gate._open]
            for connection in connections:
                connection.data_received(request("/a") * 2)
                assert connection.eof_received()
            assert (parts, server.gate.held) == ([], 80 * len(request("/a")))
            for _ in range(3):
                await asyncio.sleep(0)
            assert 0 < len(parts) < 40
            for client in clients:
                assert [(await client.read()).body for _ in range(2)] == [b"GET /a 0"] * 2
                assert await client.reader.read() == b""
            assert server.gate.held == 0
            assert all(LET_THROUGH in connection.app_state for connection in connections)

    async def test_who_sends_little_passes_those_who_send_much(self, protocol: Protocol) -> None:
        async with connected(protocol) as (server, _):
            await until(lambda: server.gate.count == 1)
            connection: Any = next(iter(server.gate._open))
            rounds().enter("somebody")
            connection.data_received(request("/a", b"a" * 400_000)[:-1])
            *_, last = map(rounds().enter, [*["127.0.0.2"] * 10, connection.address])
            assert max(rounds()._seldom)[-1] is last

    async def test_a_client_that_leaves_before_its_turn_takes_no_connection(
        self, protocol: Protocol, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """Some dozens that connect, send something and leave all the time would take all."""
        turn = asyncio.get_running_loop().create_future()
        for name, answer in (("may_be_over", True), ("has_to_wait", True), ("enter", turn)):
            monkeypatch.setattr(type(rounds()), name, lambda *_, answer=answer: answer)
        async with running(protocol, head_timeout=0.4) as server:
            client = await server.connect()
            await client.send(request("/a"))
            await until(lambda: any(each.flow.read_paused for each in server.gate._open))
            client.writer.get_extra_info("socket").setsockopt(*RESETS_AT_ONCE)
            client.writer.close()
            await until(lambda: server.gate.count == 0)
        assert server.app.asked == []

    async def test_a_head_that_has_begun_stays_whole_when_an_answer_ends(self, protocol: Protocol) -> None:
        """The fields that came before the end of the last answer are not lost."""
        async with connected(protocol) as (server, client):
            head = request("/next", b"body", x_first="1", x_last="2")
            for size in range(1, len(head), 20):
                server.app.is_open.clear()
                await client.send(request("/wait") + head[:size])
                await until(lambda: bool(server.app.asked) and server.app.asked[-1] == "/wait")
                server.app.is_open.set()
                assert (await client.read()).body == b"waited"
                await client.send(head[size:])
                assert (await client.read()).body == b"POST /next 4"
                assert server.app.fields[-1].items() >= {"x-first": "1", "x-last": "2"}.items()

    async def test_who_never_reads_is_not_read_from(self, protocol: Protocol) -> None:
        async with running(protocol) as server:
            client = await server.connect(receives=4096)
            client.writer.transport.set_write_buffer_limits(high=0)
            many = request("/big/200000") * 8
            with pytest.raises(TimeoutError):
                await asyncio.wait_for(client.send(many * (20_000_000 // len(many))), 2)
            assert len(server.app.asked) < 100
            assert server.gate.held < 1_000_000
            assert (await (await server.connect()).ask("/")).status == 200


@BOTH
class TestTimes:
    @pytest.mark.long
    async def test_a_head_has_its_time(self, protocol: Protocol, clock: MovedClock) -> None:
        async with connected(protocol, head_timeout=100) as (server, client):
            await client.send(b"GET / HTTP/1.1\r\n")
            await clock.move(40)
            await client.send(b"Host: k\r\n\r\n")
            assert (await client.read()).status == 200
            # Idle is not slow.
            await clock.move(150)
            for byte in b"GET / HTTP/1.1\r\nX: aa":
                await client.send(bytes([byte]))
                await clock.move(4)
            assert not server.gate.closed
            await clock.move(20)
            answer = await client.read()
            assert (answer.status, answer.code) == (408, "TIMEOUT")
            assert await client.rest() == b""

    async def test_who_sends_nothing_is_left_without_a_word(self, protocol: Protocol) -> None:
        async with running(protocol, head_timeout=0.2) as server:
            begun = time.monotonic()
            client = await server.connect()
            assert await client.rest() == b""
            assert time.monotonic() - begun > 0.2

    @pytest.mark.long
    async def test_a_body_has_its_time_and_may_be_slow(self, protocol: Protocol, clock: MovedClock) -> None:
        async with connected(protocol, body_timeout=80) as (server, client):
            await client.send(b"POST /a HTTP/1.1\r\nHost: k\r\nContent-Length: 163840\r\n\r\n")
            for _ in range(10):
                await clock.move(15)
                await client.send(b"x" * 16_384)
            assert (await client.read()).body == b"POST /a 163840"
            await client.send(b"POST /b HTTP/1.1\r\nHost: k\r\nContent-Length: 50\r\n\r\n")
            for _ in range(14):
                await client.send(b"x")
                await clock.move(5)
            assert not server.gate.closed
            await clock.move(20)
            answer = await client.read()
            assert (answer.status, answer.code) == (408, "TIMEOUT")

    async def test_an_operation_is_not_a_slow_client(self, protocol: Protocol) -> None:
        async with connected(protocol, head_timeout=0.1, body_timeout=0.1, write_timeout=0.1) as (
            server,
            client,
        ):
            await client.send(request("/wait", b"{}") + request("/next") + b"GET /par")
            await asyncio.sleep(0.6)
            server.app.is_open.set()
            assert (await client.read()).body == b"waited"
            assert (await client.read()).body == b"GET /next 0"

    async def test_an_answer_must_be_taken(self, protocol: Protocol) -> None:
        async with running(protocol, write_timeout=30) as server:
            slow, never = await server.connect(receives=50_000), await server.connect(receives=4096)
            for client in (slow, never):
                await client.send(request("/big/9000000", Connection="close"))
            await until(lambda: server.gate.held > 1_000_000)
            now, received = asyncio.get_running_loop().time(), 0
            for step in range(8):  # 70 seconds of the gate's clock
                goal = 1_000_000 * (step + 1)
                while received < goal:
                    received += len(await slow.reader.read(65536))
                for connection in [*server.gate._open]:
                    connection.check(now + 10 * step)
            assert received + len(await slow.rest() or b"") > 9_000_000
            assert server.gate.closed == {"answer not taken": 1}
            assert len(await never.rest() or b"") < 9_000_000


@BOTH
class TestNumbers:
    async def test_one_more_takes_the_place_of_the_longest_idle(self, protocol: Protocol) -> None:
        async with running(protocol, max_connections=3, max_connections_by_address=0) as server:
            busy = await server.connect()
            await busy.send(request("/wait", b"{}"))
            half, idle = await server.connect(), await server.connect()
            await half.send(b"GET /")
            assert (await idle.ask("/")).status == 200
            await until(lambda: server.gate.count == 3)
            with socket.create_connection(("127.0.0.1", server.port)) as gone:
                gone.setsockopt(*RESETS_AT_ONCE)  # takes no place
            new = await server.connect()
            assert (await new.ask("/")).status == 200
            assert await half.rest() in {b"", None}
            assert (await idle.ask("/")).status == 200
            assert server.gate.closed == {"too many connections": 1}
            server.app.is_open.set()
            assert (await busy.read()).body == b"waited"

    async def test_if_all_are_busy_the_new_one_is_told(self, protocol: Protocol) -> None:
        async with running(protocol, max_connections=2, max_connections_by_address=0) as server:
            busy = [await server.connect() for _ in range(2)]
            for client in busy:
                await client.send(request("/wait", b"{}"))
            await until(lambda: len(server.app.asked) == 2)
            new = await server.connect()
            answer = await new.read()
            assert (answer.status, answer.code) == (503, "UNAVAILABLE")
            assert answer.fields["retry-after"] == "1"
            listening = listen("127.0.0.1", 0)
            with listening, socket.create_connection(listening.getsockname()) as other:
                assert not server._connections.takes(listening.accept()[0])  # nothing was made of it
                assert b"503" in other.recv(12)
            server.app.is_open.set()
            assert [(await client.read()).body for client in busy] == [b"waited"] * 2

    @pytest.mark.parametrize("limits", [{"max_connections_by_address": 2}, {"max_connections": 4}])
    async def test_an_address_takes_places_from_itself_alone(
        self, protocol: Protocol, limits: dict[str, int]
    ) -> None:
        """Where three quarters are open, also one that has an equal share."""
        async with running(protocol, **limits) as server:
            other = await server.connect("127.0.0.2")
            assert (await other.ask("/")).status == 200
            many = [await server.connect() for _ in range(3)]
            assert await many[0].rest() in {b"", None}
            for client in (other, *many[1:]):
                assert (await client.ask("/")).status == 200
            assert server.gate.count == 3

    async def test_what_is_closed_makes_room(self, protocol: Protocol) -> None:
        async with running(protocol, max_connections=2, max_connections_by_address=1) as server:
            for _ in range(5):
                client = await server.connect()
                assert (await client.ask("/")).status == 200
                await client.close()
                await until(lambda: server.gate.count == 0)
            assert server.gate.closed == {}
            assert server.gate._by_address == {}


class _Itself:
    """What references itself."""

    itself: _Itself


def is_gone(left: Callable[[], object]) -> bool:
    return left() is None


ENDED: list[list[bytes]] = [
    [],  # nothing
    [request("/a", b"x" * 100_000)],  # an answer
    [request("/a", b"x" * 9_000) * 3],  # answers
    [b"GET / HTTP/1.1"],  # half a head
    [request("/", a="x" * 1_000)],  # a refused head
    [b"\x16\x03\x01\r\n\r\n"],  # no HTTP
    [request("/a", b"x" * 100_000)[:-9]],  # half a body
    [request("/unread", b"x" * 60_000)[:-9], b"x" * 60_000],  # a body that is not read
    [request("/wait", b"x" * 100_000)],  # a client that leaves before its answer
    [request("/wait", b"{}") + request("/a", b"x" * 9_000) * 3],  # requests that wait
    [request("/big/5000000")],  # an answer that is not taken
]
"""What clients send on connections that are then closed."""


@BOTH
class TestMemory:
    async def test_garbage_is_collected_by_the_bytes_of_bodies(
        self, protocol: Protocol, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(gate, "_COLLECTED_BYTES", 1_000_000)
        async with connected(protocol) as (_, client):
            gc.disable()
            try:
                garbage = _Itself()
                garbage.itself, left = garbage, ref(garbage)
                del garbage
                for size in (5_000, 400_000, 400_000):
                    await client.ask("/a", b"x" * size)
                    assert left() is not None
                await client.ask("/a", b"x" * 400_000)
                assert left() is None
            finally:
                gc.enable()

    @pytest.mark.long
    @pytest.mark.skipif(
        platform.libc_ver()[0] != "glibc", reason="other C libraries return memory as they do"
    )
    async def test_what_bodies_leave_free_between_used_blocks_is_returned(
        self, protocol: Protocol, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(gate, "_COLLECTED_BYTES", 100_000)
        async with connected(protocol, write_timeout=0.4) as (_, client):
            blocks = [b"x" * (5_000 + number % 100) for number in range(8_000)]
            blocks = blocks[::20]
            before = resident_memory()
            await client.ask("/a", b"x" * 200_000)
            await until(lambda: resident_memory() < before - 20_000_000)
            assert len(blocks) == 400

    async def test_a_connection_that_has_ended_leaves_no_garbage(self, protocol: Protocol) -> None:
        async with running(protocol, max_head_bytes=1000) as server:
            gc.disable()
            try:
                for requests in ENDED:
                    client = await server.connect()
                    await until(lambda: bool(server.gate._open))
                    [left] = map(ref, server.gate._open)
                    for each in requests:
                        await client.send(each)
                        await asyncio.sleep(0.01)
                    await client.close()
                    server.clients.clear()
                    server.app.is_open.set()
                    await until(partial(is_gone, left), 2)
                    server.app.is_open.clear()
            finally:
                gc.enable()

    async def test_an_idle_connection_keeps_no_long_head(self, protocol: Protocol) -> None:
        async with running(protocol) as server:
            heads = [
                request(f"/a?{'a' * 14_000}"),
                request("/a", **{f"f{each}": "x" * 140 for each in range(90)}),
            ]
            clients = [await server.connect() for _ in range(20)]
            for client in clients:
                await client.send(request("/a"))
                await client.read()
            tracemalloc.start()
            try:
                for head in heads:
                    for client in clients:
                        await client.send(head)
                        assert (await client.read()).status == 200
                server.app.fields.clear()
                gc.collect()
                kept, _ = tracemalloc.get_traced_memory()
            finally:
                tracemalloc.stop()
            assert kept < 20 * 8_000

    async def test_half_bodies_are_limited_together(self, protocol: Protocol) -> None:
        async with running(protocol, connection_memory=300_000) as server:
            clients: list[Client] = []
            for _ in range(3):
                clients.append(await server.connect())
                await clients[-1].send(
                    b"POST /a HTTP/1.1\r\nHost: k\r\nContent-Length: 100001\r\n\r\n" + b"x" * 100_000
                )
                await until(lambda: server.gate.held == 100_000 * len(clients))
            await clients[2].send(b"x")
            assert (await clients[2].read()).body == b"POST /a 100001"
            await until(lambda: server.gate.held == 100_000)
            assert server.gate.closed == {"too much memory": 1}
            assert await clients[0].rest() in {b"", None}
            await clients[1].send(b"x")
            assert (await clients[1].read()).body == b"POST /a 100001"
            await until(lambda: server.gate.held == 0)

    async def test_requests_that_wait_are_limited_together(self, protocol: Protocol) -> None:
        """Each has a small body and many fields, and nobody waits for a client."""
        fields = {f"f{number}": "" for number in range(90)}
        first, others = request("/wait", b"{}"), request("/small", b"x" * 8_000, **fields) * 12
        async with running(protocol, connection_memory=500_000) as server:
            clients = [await server.connect() for _ in range(16)]
            for number, client in enumerate(clients):
                await client.send(first)
                await until(lambda number=number: len(server.app.asked) == number + 1)
                await client.send(others)
            await until(lambda: server.gate.closed["answered 503"] > 3)
            assert 200_000 < server.gate.held < 700_000
            server.app.is_open.set()
            assert [(await client.read()).status for client in clients] == [200] * 16
            await until(lambda: server.gate.held == 0)

    @pytest.mark.skipif(not hasattr(socket, "TCP_NOTSENT_LOWAT"), reason="the system has no such option")
    async def test_an_answer_that_is_not_taken_is_counted_whole(self, protocol: Protocol) -> None:
        async with running(protocol) as server:
            await (await server.connect()).send(request("/big/9000000"))
            await until(lambda: server.gate.held > 8_000_000)

    async def test_answers_that_are_not_taken_are_limited_together(self, protocol: Protocol) -> None:
        async with running(protocol, connection_memory=20_000_000) as server:
            clients = [await server.connect(receives=4096) for _ in range(6)]
            for client in clients:
                await client.send(request("/big/9000000"))
                await asyncio.sleep(0.1)
            assert server.gate.held <= 20_000_000
            assert 0 < server.gate.closed["too much memory"] < 6
            assert (await (await server.connect()).ask("/")).status == 200


@BOTH
class TestHalfClosed:
    @pytest.mark.parametrize("count", [1, 3])
    async def test_they_get_their_answers(self, protocol: Protocol, count: int) -> None:
        async with connected(protocol) as (server, client):
            await client.send(request("/wait", b"{}") * count)
            client.writer.write_eof()
            await until(lambda: len(server.app.asked) == 1)
            await asyncio.sleep(1.5)
            server.app.is_open.set()
            assert [(await client.read()).body for _ in range(count)] == [b"waited"] * count
            assert await client.rest() == b""

    async def test_a_quick_answer_is_the_only_one(self, protocol: Protocol) -> None:
        async with connected(protocol) as (_, client):
            await client.send(request("/quick"))
            client.writer.write_eof()
            assert (await client.rest() or b"").startswith(b"HTTP/1.1 200 ")

    @pytest.mark.skipif(sys.platform != "linux", reason="only Linux tells it before everything is read")
    @pytest.mark.parametrize("running_before", [17, 0])
    async def test_who_is_gone_takes_no_time_of_a_busy_server(
        self, protocol: Protocol, running_before: int
    ) -> None:
        async with running(protocol) as server:
            if running_before:
                await busy(server)
            else:
                _ = [rounds().queue(0, "others", is_turn=True) for _ in range(200)]
            for _ in range(20):
                # All before the server has its turn.
                with socket.create_connection(("127.0.0.1", server.port)) as client:
                    client.sendall(request("/wait", b"{}"))
            assert (await (await server.connect()).ask("/last")).status == 200
            await until(lambda: server.gate.count == running_before + 1)
            assert server.app.asked.count("/wait") == running_before + 20
            assert server.app.gone_at_once == 20

    async def test_who_is_gone_is_noticed(self, protocol: Protocol) -> None:
        async with connected(protocol) as (server, client):
            await client.send(request("/wait", b"{}"))
            await until(lambda: server.app.asked == ["/wait"])
            server.app.scope[BEGINS] = begins = asyncio.get_running_loop().create_future()
            client.writer.close()
            await until(server.app.is_gone.is_set)
            await until(lambda: server.gate.count == 0)
            assert begins.result() is False

    async def test_who_goes_from_a_busy_server_is_noticed_at_once(self, protocol: Protocol) -> None:
        async with running(protocol) as server:
            client, *_ = await busy(server)
            client.writer.close()
            noticed = time.monotonic()
            await until(server.app.is_gone.is_set)
            assert time.monotonic() - noticed < 0.7

    async def test_a_half_request_is_dropped(self, protocol: Protocol) -> None:
        async with running(protocol) as server:
            for part in (b"GET / HT", b"POST /a HTTP/1.1\r\nHost: k\r\nContent-Length: 9\r\n\r\nabc"):
                client = await server.connect()
                await client.send(part)
                client.writer.write_eof()
                assert await client.rest() in {b"", None}
            client = await server.connect()
            await client.send(
                request("/wait", b"{}") + b"POST /a HTTP/1.1\r\nHost: k\r\nContent-Length: 9\r\n\r\nabc"
            )
            client.writer.write_eof()
            await until(lambda: "/wait" in server.app.asked)
            server.app.is_open.set()
            assert (await client.read()).body == b"waited"
            assert await client.rest() in {b"", None}


@BOTH
async def test_a_stop_answers_what_is_asked_and_what_is_on_its_way(protocol: Protocol) -> None:
    async with running(protocol) as server:
        idle, busy = await server.connect(), await server.connect()
        assert (await idle.ask("/")).status == 200
        await busy.send(request("/wait", b"{}"))
        await until(lambda: "/wait" in server.app.asked)
        server.server.should_exit = True
        await asyncio.sleep(0.3)
        assert (await idle.ask("/late")).body == b"GET /late 0"
        assert await idle.rest() == b""
        server.app.is_open.set()
        assert (await busy.read()).body == b"waited"
        assert await busy.rest() == b""


@BOTH
@pytest.mark.long
async def test_the_time_of_an_operation_begins_with_its_first_byte(
    protocol: Protocol, folder: Path, clock: MovedClock
) -> None:
    settings = library_settings(folder, operation_timeout=100, log_operations=False)
    await make_table(settings)
    app = create_app(settings)
    query = b'{"query": "{ book(isbn: \\"1\\") { title } }"}'
    asked = request("/graphql", query, Content_Type="application/json")
    async with connected(protocol, served=app, head_timeout=1_000, body_timeout=1_000) as (_, client):
        # The time that a connection is idle does not count.
        await clock.move(110)
        for part in (10, len(asked) - 10):
            await client.send(asked)
            assert b'"errors"' not in (await client.read()).body
            await client.send(asked[:part])
            await clock.move(110)
            await client.send(asked[part:])
            assert (await client.read()).code == "TIMEOUT"


@pytest.mark.parametrize(
    ("host", "network"),
    [
        ("192.0.2.7", "192.0.2.7"),
        ("::ffff:192.0.2.7", "192.0.2.7"),
        ("0:0:0:0:0:FFFF:C000:207", "192.0.2.7"),
        ("2001:db8:1:2:3:4:5:6", "2001:db8:1:2::"),
        ("fe80::1%eth0", "fe80::"),
        ("testclient", "testclient"),
    ],
)
def test_an_address_is_the_network_that_one_client_has(host: str, network: str) -> None:
    assert network_of(host) == network


@pytest.mark.parametrize("peer", ["127.0.0.1", "::ffff:127.0.0.1"])
@BOTH
async def test_a_proxy_is_trusted_by_its_address_of_ipv4(
    protocol: Protocol, peer: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A server on `::` is told another form of it, and all clients of the proxy would count as one."""
    for module in (httptools_impl, h11_impl):
        monkeypatch.setattr(module, "get_remote_addr", lambda transport: (peer, 7))
    async with connected(protocol) as (server, client):
        for proxies in ("", ", 127.0.0.1", ", ::ffff:127.0.0.1", ",[::FFFF:7f00:1]:80"):
            await client.ask("/", **{"X-Forwarded-For": f"9.9.9.9{proxies}"})
        assert server.app.addresses == ["9.9.9.9"] * 4
