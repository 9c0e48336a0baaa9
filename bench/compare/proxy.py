"""A proxy in front of DynamoDB that is as slow as a network, and counts: `python -m bench.compare.proxy UPSTREAM`.

Each request waits for some milliseconds before it is forwarded. Each client connection has its own connection to the
store, so nothing is queued here. The proxy prints the port that it listens on.

A request's depth is one more than the greatest depth of the answers that were sent before it came in; the greatest
depth of an operation is its round trips. With `hold`, answers are sent together when every request has been answered
and no new one has come for a while. Then the depth shows which requests wait for which in the client's code, however
slow the client is at sending many requests. It is for counting, not for measuring time.

The measuring program calls `GET /-/reset`, `GET /-/reset?hold` and `GET /-/counters`.
"""

from __future__ import annotations

import asyncio
import os
import sys
from collections.abc import Callable
from urllib.parse import urlsplit

import orjson

DELAY_SECONDS = 0.004
QUIET_SECONDS = 0.06
"""How long no request may come before held answers are sent. Long, for a client that shares its core."""
_LENGTH = b"content-length:"


class Counters:
    """Counts of the requests since the last reset."""

    def __init__(self, quiet_seconds: float = QUIET_SECONDS) -> None:
        self.quiet_seconds = quiet_seconds
        self.reset(hold=False)

    def reset(self, *, hold: bool) -> None:
        """Starts over. With `hold`, answers are sent together."""
        self.requests = 0
        self.round_trips = 0
        self.hold = hold
        self._answered = 0
        self._under_way = 0
        self._held: list[tuple[int, Callable[[], None]]] = []
        self._timer: asyncio.TimerHandle | None = None

    def came_in(self) -> int:
        """Counts a request. Returns its depth."""
        self.requests += 1
        self._under_way += 1
        depth = self._answered + 1
        self.round_trips = max(self.round_trips, depth)
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        return depth

    def answered(self, depth: int, send: Callable[[], None]) -> None:
        """Takes an answer and sends it, now or together with the others."""
        self._under_way -= 1
        if not self.hold:
            self._answered = max(self._answered, depth)
            send()
            return
        self._held.append((depth, send))
        if not self._under_way:
            self._timer = asyncio.get_running_loop().call_later(self.quiet_seconds, self._release)

    def _release(self) -> None:
        self._timer = None
        held, self._held = self._held, []
        self._answered = max(depth for depth, _ in held)
        for _, send in held:
            send()


class _Messages:
    """Finds the end of an HTTP message without looking at more of it than necessary."""

    def __init__(self) -> None:
        self._parts: list[bytes] = []
        self._missing: int | None = None
        """The bytes of the body that are missing; None if the head is incomplete or the body is chunked."""
        self._is_chunked = False
        self._tail = b""

    def feed(self, data: bytes) -> bytes | None:
        """Returns the whole message if these bytes end it. No message follows before the answer to this one."""
        self._parts.append(data)
        if self._missing is not None:
            self._missing -= len(data)
        elif self._is_chunked:
            self._tail = (self._tail + data)[-7:]
        else:
            data = b"".join(self._parts)
            end = data.find(b"\r\n\r\n")
            if end < 0:
                self._parts = [data]
                return None
            head = data[:end].lower()
            at = head.find(_LENGTH)
            if at >= 0:
                length = int(head[at + len(_LENGTH) :].split(b"\r\n", 1)[0])
                self._missing = length - (len(data) - end - 4)
            elif b"transfer-encoding: chunked" in head:
                self._is_chunked = True
                self._tail = data[end + 2 :][-7:]
            else:
                self._missing = 0
        # In JSON, no line ends with both of these characters; only the sender's chunks do.
        if self._missing == 0 or (self._is_chunked and self._tail.endswith(b"\r\n0\r\n\r\n")):
            message = self._parts[0] if len(self._parts) == 1 else b"".join(self._parts)
            self.__init__()  # type: ignore[misc]  # as new, for the next message
            return message
        return None


class _Upstream(asyncio.Protocol):
    """The connection to the store that belongs to one client connection."""

    def __init__(self, client: _Client) -> None:
        self._client = client
        self._messages = _Messages()

    def data_received(self, data: bytes) -> None:
        message = self._messages.feed(data)
        if message is not None:
            self._client.answered(message)

    def connection_lost(self, error: Exception | None) -> None:
        self._client.upstream_lost()


class _Client(asyncio.Protocol):
    """A connection of a client."""

    def __init__(self, proxy: Proxy) -> None:
        self._proxy = proxy
        self._messages = _Messages()
        self._transport: asyncio.Transport | None = None
        self._upstream: asyncio.Transport | None = None
        self._depth = 0

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport

    def data_received(self, data: bytes) -> None:
        message = self._messages.feed(data)
        if message is None:
            return
        if message.startswith(b"GET /-/"):
            self._control(message)
            return
        self._depth = self._proxy.counters.came_in()
        loop = asyncio.get_running_loop()
        loop.call_later(self._proxy.delay_seconds, self._forward, message)

    def _control(self, message: bytes) -> None:
        counters, path = self._proxy.counters, message.split(b" ", 2)[1]
        if path.startswith(b"/-/reset"):
            counters.reset(hold=path.endswith(b"?hold"))
        body = orjson.dumps({"requests": counters.requests, "round_trips": counters.round_trips})
        self._send(b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n%b" % (len(body), body))

    def _forward(self, message: bytes) -> None:
        if self._upstream is not None:
            self._upstream.write(message)
        else:
            task = asyncio.ensure_future(self._connect(message))
            self._proxy.tasks.add(task)
            task.add_done_callback(self._proxy.tasks.discard)

    async def _connect(self, message: bytes) -> None:
        loop = asyncio.get_running_loop()
        self._upstream, _ = await loop.create_connection(lambda: _Upstream(self), *self._proxy.upstream)
        self._upstream.write(message)

    def answered(self, message: bytes) -> None:
        """Takes the store's answer to the request of this connection."""
        self._proxy.counters.answered(self._depth, lambda: self._send(message))

    def _send(self, message: bytes) -> None:
        if self._transport is not None:
            self._transport.write(message)

    def upstream_lost(self) -> None:
        """Closes the connection, because the store has closed its own: a direct client would see the same."""
        self._upstream = None
        if self._transport is not None:
            self._transport.close()

    def connection_lost(self, error: Exception | None) -> None:
        self._transport = None
        if self._upstream is not None:
            self._upstream.close()


class Proxy:
    """Listens, and forwards to the store at this address."""

    def __init__(self, host: str, port: int, delay_seconds: float = DELAY_SECONDS) -> None:
        self.upstream = (host, port)
        self.delay_seconds = delay_seconds
        self.counters = Counters()
        self.tasks: set[asyncio.Task[None]] = set()

    async def listen(self) -> asyncio.Server:
        """Returns a server on a free port of this machine."""
        return await asyncio.get_running_loop().create_server(
            lambda: _Client(self), "127.0.0.1", 0, backlog=2048
        )


async def _serve(upstream: str) -> None:
    parts = urlsplit(upstream)
    assert parts.hostname
    assert parts.port
    server = await Proxy(parts.hostname, parts.port).listen()
    print(server.sockets[0].getsockname()[1], flush=True)
    # The proxy ends with its parent, which closes its end of standard input.
    await asyncio.to_thread(os.read, 0, 1)
    server.close()


if __name__ == "__main__":
    asyncio.run(_serve(sys.argv[1]))
