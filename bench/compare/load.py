"""Clients that send one query again and again, each on a connection that stays open."""

from __future__ import annotations

import asyncio
import itertools
import time
from collections.abc import Sequence
from dataclasses import dataclass, field

ANSWER_SECONDS = 60.0
FRESH = "@@@@@@@@@@@@"
"""A placeholder in a request, replaced by a text of this length that no other request has."""
_NUMBERS = itertools.count()


class WrongAnswerError(Exception):
    """A server did not answer, or its answer has errors or another status than 200."""


@dataclass
class Turn:
    """The measurements of a turn: the seconds of each operation, and of the whole turn."""

    seconds: float = 0.0
    latencies: list[float] = field(default_factory=list)


def http_post(port: int, path: str, body: bytes) -> bytes:
    """Returns a GraphQL request as it is sent over the wire."""
    head = (
        f"POST {path} HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\nContent-Type: application/json\r\n"
        f"Accept: application/json\r\nContent-Length: {len(body)}\r\n\r\n"
    )
    return head.encode() + body


class Connection:
    """A connection to a server, which stays open."""

    def __init__(self, port: int) -> None:
        self._port = port
        self._streams: tuple[asyncio.StreamReader, asyncio.StreamWriter] | None = None

    async def ask(self, request: bytes) -> bytes:
        """Returns the body of the answer. Raises WrongAnswerError if its status is not 200 or it has errors."""
        if self._streams is None:
            self._streams = await asyncio.open_connection("127.0.0.1", self._port, limit=2**24)
        reader, writer = self._streams
        writer.write(request.replace(FRESH.encode(), b"%012d" % next(_NUMBERS)))
        try:
            async with asyncio.timeout(ANSWER_SECONDS):
                head = (await reader.readuntil(b"\r\n\r\n")).lower()
                body = await _body(reader, head)
        except (TimeoutError, EOFError, OSError) as error:
            raise WrongAnswerError(f"no answer: {error!r}") from error
        if not head.startswith(b"http/1.1 200") or b'"errors"' in body[:2000]:
            status = head.split(b"\r\n", 1)[0].decode()
            raise WrongAnswerError(f"{status}: {body[:500].decode()}")
        return body

    def close(self) -> None:
        """Closes the connection."""
        if self._streams is not None:
            self._streams[1].close()


async def _body(reader: asyncio.StreamReader, head: bytes) -> bytes:
    length = head.find(b"content-length:")
    if length >= 0:
        return await reader.readexactly(int(head[length + 15 :].split(b"\r\n", 1)[0]))
    parts: list[bytes] = []
    while size := int(await reader.readuntil(b"\r\n"), 16):
        parts.append(await reader.readexactly(size))
        await reader.readexactly(2)
    await reader.readexactly(2)
    return b"".join(parts)


class Clients:
    """Some clients of one server."""

    def __init__(self, port: int, count: int) -> None:
        self._connections = [Connection(port) for _ in range(count)]

    async def turn(self, requests: Sequence[bytes], seconds: float, at_least: int = 1) -> Turn:
        """Each client sends requests until the time is over and the clients together have sent `at_least` of them."""
        turn, began = Turn(), time.perf_counter()
        asked = 0

        async def client(connection: Connection) -> None:
            nonlocal asked
            while asked < at_least or time.perf_counter() - began < seconds:
                request = requests[asked % len(requests)]
                asked += 1
                before = time.perf_counter()
                await connection.ask(request)
                turn.latencies.append(time.perf_counter() - before)

        await asyncio.gather(*map(client, self._connections))
        turn.seconds = time.perf_counter() - began
        return turn

    def close(self) -> None:
        """Closes every connection."""
        for connection in self._connections:
            connection.close()
