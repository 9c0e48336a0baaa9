"""Requests that are broken in every way: the real process answers each or closes, stays as it was, and logs no error.

Every seed gives the same requests. They are sent in pieces, sometimes slowly, to loopback alone.
"""

from __future__ import annotations

import asyncio
import random
import re

import pytest

from tests.end_to_end.processes import Start, ask

pytestmark = pytest.mark.long

FAST = pytest.mark.parametrize("is_fast", [True, False], ids=["as installed", "without the extra"])
SECRET = "hunter2"
BODY = b'{"query": "query Named($id: ID!) { user(userId: $id) { name } }", "variables": {"id": "12345"}}'
HEAD = (
    b"POST /graphql HTTP/1.1\r\nHost: keygraph\r\nContent-Type: application/json\r\n"
    b"Accept: application/json\r\nAccept-Encoding: gzip;q=0\r\nContent-Length: %d\r\n\r\n"
)
AT_ONCE = 16
IN_TOTAL_MB = 40


def whole(body: bytes = BODY) -> bytes:
    return HEAD % len(body) + body


class Maker:
    """Makes broken requests."""

    def __init__(self, seed: int) -> None:
        self._random = random.Random(seed)

    def make(self) -> bytes:
        """One to three requests of which some are broken."""
        count = self._random.choice([1, 1, 1, 2, 3])
        return b"".join(self._random.choice(self.WAYS)(self) for _ in range(count))

    def truncated(self) -> bytes:
        request = whole()
        return request[: self._random.randrange(len(request))]

    def flipped(self) -> bytes:
        request = bytearray(whole())
        for _ in range(self._random.randint(1, 6)):
            request[self._random.randrange(len(request))] = self._random.randrange(256)
        return bytes(request)

    def repeated(self) -> bytes:
        lines = whole().split(b"\r\n\r\n")[0].split(b"\r\n")
        lines += self._random.choices(lines[1:], k=self._random.randint(1, 5))
        return b"\r\n".join([*lines, b"", BODY])

    def contradicted(self) -> bytes:
        field = self._random.choice(
            [
                b"Content-Length: 3",
                b"Content-Length: -1",
                b"Content-Length: +95",
                b"Content-Length: 0x5f",
                b"Content-Length: 99999999999999999999999",
                b"Content-Length: 95, 95",
                b"Transfer-Encoding: chunked",
                b"Transfer-Encoding: identity",
                b"Transfer-Encoding: chunked, chunked",
                b"Transfer-Encoding: xchunked",
                b"Transfer-Encoding : chunked",
                b"Host: other",
                b"Content-Type: text/plain",
                b"Content-Encoding: gzip",
                b"Expect: 100-continue",
                b"Expect: something",
                b"Connection: close, upgrade",
                b"Upgrade: websocket\r\nConnection: upgrade\r\nSec-WebSocket-Key: x",
                b"Upgrade: h2c\r\nConnection: upgrade",
                b"Traceparent: 00-zz-zz-01",
                b"X-Forwarded-For: \xff\xfe, 1",
                b"Origin: null",
                b"Idempotency-Key: " + bytes(self._random.choices(range(32, 256), k=40)),
                b"X-Request-Id: " + bytes(self._random.choices(range(32, 256), k=40)),
                b"Accept: " + bytes(self._random.choices(range(32, 256), k=300)),
                b": nameless",
                b"Folded: a\r\n b",
                b"Bare: a\rb",
                b"Null: \x00",
            ]
        )
        lines = whole().split(b"\r\n\r\n")[0].split(b"\r\n")
        lines.insert(self._random.randint(1, len(lines)), field)
        return b"\r\n".join([*lines, b"", BODY])

    def encoded(self) -> bytes:
        text = BODY.decode()
        body = self._random.choice(
            [
                text.encode("utf-16"),
                text.encode("utf-32-be"),
                text.encode("utf-8-sig"),
                BODY[:20] + b"\xff\xfe" + BODY[20:],
                BODY[:20] + b"\xed\xa0\x80" + BODY[20:],
                BODY[:20] + b"\\ud800" + BODY[20:],
                BODY[:20] + b"\x00" + BODY[20:],
                b"\x1f\x8b\x08\x00" + BODY,
                b"[" * 100_000,
                b'{"query":' * 20_000,
                b"1" * 50_000,
                b"",
                b"null",
                bytes(self._random.choices(range(256), k=500)),
            ]
        )
        return whole(body)

    def chunked(self) -> bytes:
        head = (
            whole()
            .split(b"\r\n\r\n")[0]
            .replace(b"Content-Length: %d" % len(BODY), b"Transfer-Encoding: chunked")
        )
        size = b"%x" % len(BODY)
        body = self._random.choice(
            [
                size + b"\r\n" + BODY + b"\r\n0\r\n\r\n",
                size + b";a=b\r\n" + BODY + b"\r\n0\r\nTrailer: x\r\n\r\n",
                size + b"\n" + BODY + b"\n0\n\n",
                b"-5\r\n" + BODY,
                b"fffffffffffffffff\r\n" + BODY,
                b"zz\r\n" + BODY,
                size + b"\r\n" + BODY + b"xx0\r\n\r\n",
                size + b"\r\n" + BODY + b"\r\n",
                b"".join(b"1\r\n%c\r\n" % byte for byte in BODY) + b"0\r\n\r\n",
                b"0\r\n\r\n",
            ]
        )
        return head + b"\r\n\r\n" + body

    def aimed(self) -> bytes:
        line = self._random.choice(
            [
                b"GET / HTTP/1.1",
                b"GET /graphql?query={__typename} HTTP/1.1",
                b"GET /graphql?query=%7B__typename%7D&variables=%ff HTTP/1.1",
                b"GET /graphql?" + b"a=b&" * 2000 + b" HTTP/1.1",
                b"GET /%00%ff%2e%2e/%2e%2e/etc/passwd HTTP/1.1",
                b"GET /../../etc/passwd HTTP/1.1",
                b"GET //graphql HTTP/1.1",
                b"GET http://elsewhere/graphql HTTP/1.1",
                b"GET * HTTP/1.1",
                b"OPTIONS * HTTP/1.1",
                b"OPTIONS /graphql HTTP/1.1",
                b"DELETE /graphql HTTP/1.1",
                b"BREW /graphql HTTP/1.1",
                b"GET /graphql HTTP/1.0",
                b"GET /graphql HTTP/0.9",
                b"GET /graphql HTTP/2.0",
                b"GET /graphql HTTP/9.9",
                b"GET /graphql",
                b"get /graphql HTTP/1.1",
                b"GET  /graphql  HTTP/1.1",
                b"GET /\xff\xfe HTTP/1.1",
                b"GET /" + b"a" * 20_000 + b" HTTP/1.1",
                b"PRI * HTTP/2.0\r\n\r\nSM",
                b"CONNECT elsewhere:443 HTTP/1.1",
                b"TRACE /graphql HTTP/1.1",
                b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03",
            ]
        )
        return line + b"\r\nHost: keygraph\r\n\r\n"

    def excessive(self) -> bytes:
        lines = whole().split(b"\r\n\r\n")[0].split(b"\r\n")
        lines += [
            b"Field-%d: %s" % (number, b"x" * self._random.choice([0, 10, 200])) for number in range(150)
        ]
        return b"\r\n".join([*lines, b"", BODY])

    WAYS = (
        truncated,
        flipped,
        repeated,
        contradicted,
        encoded,
        chunked,
        aimed,
        excessive,
        lambda self: whole(),
    )


class Sender:
    """Sends requests to a server, and reads what it says until it closes."""

    def __init__(self, address: str, seed: int) -> None:
        host, _, port = address.removeprefix("http://").rpartition(":")
        self._place = (host, int(port))
        self._random = random.Random(seed)
        self._turns = asyncio.Semaphore(AT_ONCE)

    async def send(self, request: bytes) -> bytes:
        """What the server says to the request, sent in pieces, by a client that half-closes or waits."""
        pieces = self._random.choice([1, 1, 2, 5, 20])
        pause = self._random.choice([0.0, 0.0, 0.01, 0.05])
        is_half_closed = self._random.random() < 0.7
        step = max(1, -(-len(request) // pieces))
        async with self._turns:
            reader, writer = await asyncio.open_connection(*self._place)
            reading = asyncio.create_task(reader.read())
            try:
                for start in range(0, len(request), step):
                    writer.write(request[start : start + step])
                    await writer.drain()
                    await asyncio.sleep(pause)
                if is_half_closed:
                    writer.write_eof()
            except OSError:
                pass
            try:
                return await asyncio.wait_for(reading, 30)
            except ConnectionError:
                return b""
            finally:
                writer.close()


def answers(said: bytes) -> list[tuple[int, bytes]]:
    """The status and body of every answer. Fails if anything else is among them."""
    found: list[tuple[int, bytes]] = []
    while said:
        first = re.match(rb"HTTP/1\.1 (\d{3}) [^\r\n]*\r\n(?:[^\r\n]+\r\n)*\r\n", said)
        assert first is not None, said[:200]
        said = said[first.end() :]
        if first[1] == b"100":
            continue
        length = re.search(rb"(?i)\r\ncontent-length: (\d+)\r\n", first[0])
        assert length is not None, first[0]
        assert len(said) >= int(length[1])
        found.append((int(first[1]), said[: int(length[1])]))
        said = said[int(length[1]) :]
    return found


@FAST
@pytest.mark.parametrize("seed", [1, 2])
async def test_broken_requests(start: Start, seed: int, is_fast: bool) -> None:
    server = start(
        "serve",
        "--port",
        "0",
        is_fast=is_fast,
        KEYGRAPH_HEAD_TIMEOUT="1",
        KEYGRAPH_BODY_TIMEOUT="1",
        KEYGRAPH_KEEP_ALIVE="1",
        KEYGRAPH_SECRET=SECRET * 5,
    )
    address = await asyncio.to_thread(server.address)
    before = server.peak
    made, sender = Maker(seed), Sender(address, seed)
    requests = [made.make() for _ in range(300)]
    said = await asyncio.gather(*(sender.send(request) for request in requests))
    statuses = set()
    for request, one in zip(requests, said, strict=True):
        for status, body in answers(one):
            statuses.add(status)
            assert status < 500 or status == 501, (request, status, body)
            assert b"INTERNAL" not in body, request
            assert SECRET.encode() not in body, request
            assert b"Traceback" not in body, request
    assert {200, 400, 415, 431} <= statuses
    query = '{ user(userId: "12345") { name } }'
    assert await asyncio.to_thread(ask, address, query) == {"data": {"user": {"name": "John Doe"}}}
    assert server.peak - before < IN_TOTAL_MB
    assert await asyncio.to_thread(server.stop) == 0
    assert [line for line in server.warnings() if "Closed connections of clients" not in line] == []


@FAST
async def test_two_lengths_are_never_two_requests(start: Start, is_fast: bool) -> None:
    server = start("serve", "--port", "0", is_fast=is_fast)
    sender = Sender(await asyncio.to_thread(server.address), 0)
    hidden = b"GET /healthz HTTP/1.1\r\nHost: keygraph\r\n\r\n"
    for fields in (
        b"Content-Length: %d\r\nTransfer-Encoding: chunked" % len(hidden),
        b"Transfer-Encoding: chunked\r\nContent-Length: %d" % len(hidden),
        b"Content-Length: 0\r\nContent-Length: %d" % len(hidden),
        b"Transfer-Encoding: xchunked\r\nContent-Length: 0",
        b"Transfer-Encoding : chunked\r\nContent-Length: 0",
        b"Transfer-Encoding: chunked\r\nTransfer-Encoding: identity",
        b"Content-Length: 0\r\nTransfer-Encoding:\x0bchunked",
    ):
        head = b"POST /graphql HTTP/1.1\r\nHost: keygraph\r\nContent-Type: application/json\r\n" + fields
        said = await sender.send(head + b"\r\n\r\n0\r\n\r\n" + hidden)
        assert [status for status, _ in answers(said)] in ([400], [501]), fields
