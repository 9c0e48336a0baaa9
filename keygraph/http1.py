"""A pool of HTTP/1.1 connections to one endpoint, for requests with small heads and whole bodies.

RFC 9112, of which it needs little: POST, answers with a length, in chunks or until the connection closes. It costs
about half the processor time of a general client (docs/performance.md). What fails is told by botocore's exceptions.
"""

from __future__ import annotations

import asyncio
import re
import ssl
from collections import deque
from collections.abc import Mapping
from typing import NamedTuple
from urllib.parse import urlsplit

from botocore import exceptions as boto

from keygraph.turns import Turns

_IDLE_SECONDS = 30.0
"""How long a connection may be idle and be used again; DynamoDB itself closes it after a minute or so."""
_CLOSE_SECONDS = 1.0
_HEAD_BYTES = 64 * 1024
_BUFFER_BYTES = 64 * 1024
_LOOKS = 16
"""How often a silence is looked for in the time after which it is one."""
_STATUS = re.compile(r"HTTP/1\.([01]) ([1-9][0-9][0-9])(?: .*)?")
_OK = "HTTP/1.1 200 OK"
_CHUNK = re.compile(rb"([0-9A-Fa-f]{1,8})[ \t]*(?:;.*)?")
_LENGTH = re.compile(r"[0-9]{1,12}")


class Reply(NamedTuple):
    """An answer; header names are in small letters."""

    status: int
    headers: Mapping[str, str]
    body: bytes


class Malformed(Exception):
    """What was received is no answer of HTTP/1.1."""


class Answer:
    """One answer as it arrives: `feed` it until it gives the whole."""

    def __init__(self) -> None:
        self._received = b""
        self._parts: list[bytes] = []
        self._missing = 0
        self._chunked: _Chunks | None = None
        self._until_end = False
        self._status = 0
        self._headers: dict[str, str] | None = None
        self.may_go_on = False
        """Whether another answer can follow on the connection."""
        self.has_begun = False

    def feed(self, data: bytes) -> Reply | None:
        """The answer where this is the last of it. Raises Malformed."""
        self.has_begun = True
        while self._headers is None:
            data = self._received + data if self._received else data
            end = data.find(b"\r\n\r\n")
            if end < 0:
                if len(data) > _HEAD_BYTES:
                    raise Malformed("a head that does not end")
                self._received = data
                return None
            self._received = b""
            self._read_head(data[:end])
            data = data[end + 4 :]
        return self._feed_body(data)

    def end(self) -> Reply | None:
        """The answer where it is whole now that the connection has ended."""
        return self._whole() if self._headers is not None and self._until_end else None

    def _read_head(self, head: bytes) -> None:
        line, *lines = head.decode("latin-1").split("\r\n")
        self._status, is_kept = (200, True) if line == _OK else _read_status(line)
        if self._status < 200:
            # What comes before the answer itself.
            return
        headers: dict[str, str] = {}
        for each in lines:
            name, colon, value = each.partition(":")
            if not colon:
                raise Malformed("a header without a colon")
            headers[name.lower()] = value.strip()
        self._headers = headers
        if "connection" in headers:
            options = headers["connection"].lower()
            is_kept = "close" not in options and (is_kept or "keep-alive" in options)
        self.may_go_on = is_kept
        if "transfer-encoding" in headers:
            if headers["transfer-encoding"].lower() != "chunked":
                raise Malformed("an unknown transfer encoding")
            self._chunked = _Chunks()
        elif "content-length" in headers:
            if not _LENGTH.fullmatch(headers["content-length"]):
                raise Malformed("a length that is no number")
            self._missing = int(headers["content-length"])
        else:
            self._until_end, self.may_go_on = True, False

    def _feed_body(self, data: bytes) -> Reply | None:
        if self._chunked is not None:
            body = self._chunked.feed(data)
            if body is None:
                return None
            self._parts = [body]
            self.may_go_on = self.may_go_on and not self._chunked.rest
            return self._whole()
        self._parts.append(data)
        if self._until_end:
            return None
        self._missing -= len(data)
        if self._missing > 0:
            return None
        if self._missing < 0:
            # Nothing was asked for that this could answer.
            self._parts[-1] = data[: self._missing]
            self.may_go_on = False
        return self._whole()

    def _whole(self) -> Reply:
        body = self._parts[0] if len(self._parts) == 1 else b"".join(self._parts)
        return Reply(self._status, self._headers or {}, body)


def _read_status(line: str) -> tuple[int, bool]:
    """The status, and whether the connection is kept where nothing else is said. Raises Malformed."""
    told = _STATUS.fullmatch(line)
    if told is None:
        raise Malformed("no status line")
    return int(told[2]), told[1] == "1"


class _Chunks:
    """A body in chunks; trailers are passed over."""

    def __init__(self) -> None:
        self.rest = bytearray()
        self._parts: list[bytes] = []
        self._in_trailers = False

    def feed(self, data: bytes) -> bytes | None:
        """The body where this is the last of it. Raises Malformed."""
        rest = self.rest
        rest += data
        while (end := rest.find(b"\r\n")) >= 0:
            if self._in_trailers:
                del rest[: end + 2]
                if end == 0:
                    return b"".join(self._parts)
                continue
            size = _CHUNK.fullmatch(rest, 0, end)
            if size is None:
                raise Malformed("a chunk without a size")
            length = int(size[1], 16)
            after = end + 2 + length
            # A match into the bytes keeps them from growing.
            size = None
            if length == 0:
                self._in_trailers = True
                del rest[: end + 2]
                continue
            if len(rest) < after + 2:
                return None
            if rest[after : after + 2] != b"\r\n":
                raise Malformed("a chunk of another size")
            self._parts.append(bytes(rest[end + 2 : after]))
            del rest[: after + 2]
        if len(rest) > _HEAD_BYTES and not self._in_trailers:
            raise Malformed("a chunk without a size")
        return None


class _Connection(asyncio.BufferedProtocol):
    """One connection, with at most one request on it.

    It has a buffer of its own: for each read that is to make its bytes itself, asyncio takes 256 KB from the system
    and gives them back, which costs more than the read.
    """

    def __init__(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._transport: asyncio.Transport
        self._buffer = memoryview(bytearray(_BUFFER_BYTES))
        self._answer: Answer | None = None
        self._whole: asyncio.Future[Reply] | None = None
        self._heard = 0.0
        self.lost = self._loop.create_future()
        """Done when the connection has ended."""
        self.idle_since = 0.0
        self.may_go_on = True
        self.was_answered = False
        """Whether anything has come back for the last request."""

    async def exchange(self, request: bytes) -> Reply:
        """The answer to a request. Raises ConnectionError, TimeoutError or Malformed."""
        if self.lost.done():
            raise ConnectionResetError("the connection has ended")
        answer = self._answer = Answer()
        whole = self._whole = self._loop.create_future()
        self._heard = self._loop.time()
        self._transport.write(request)
        self.may_go_on = False
        try:
            reply: Reply = await whole
            self.may_go_on = answer.may_go_on
            return reply
        except asyncio.CancelledError:
            if whole.done() and not whole.cancelled():
                # Failed in the same moment; asyncio would log that nobody has looked.
                whole.exception()
            raise
        finally:
            self._answer = self._whole = None
            self.was_answered = answer.has_begun

    def is_waiting(self, silent_since: float) -> bool:
        """Whether an answer is due; its request fails where nothing has been heard since then."""
        if self._whole is None:
            return False
        if self._heard <= silent_since:
            self._fail(TimeoutError())
        return True

    def _fail(self, error: Exception) -> None:
        if self._whole is not None and not self._whole.done():
            self._whole.set_exception(error)

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = transport  # type: ignore[assignment]  # a stream's, for a connection of TCP

    def get_buffer(self, sizehint: int) -> memoryview:
        return self._buffer

    def buffer_updated(self, nbytes: int) -> None:
        data = bytes(self._buffer[:nbytes])
        answer, whole = self._answer, self._whole
        if answer is None or whole is None or whole.done():
            # Nobody has asked for it.
            self.abort()
            return
        self._heard = self._loop.time()
        try:
            reply = answer.feed(data)
        except Malformed as error:
            self._fail(error)
            return
        if reply is not None:
            whole.set_result(reply)

    def connection_lost(self, error: Exception | None) -> None:
        if not self.lost.done():
            self.lost.set_result(None)
        if self._whole is None or self._whole.done() or self._answer is None:
            return
        reply = None if error is not None else self._answer.end()
        if reply is not None:
            self._whole.set_result(reply)
        elif isinstance(error, ssl.SSLError):
            self._fail(error)
        else:
            self._fail(ConnectionResetError("the connection was cut"))

    def close(self) -> None:
        """Ends the connection as it should be."""
        self._transport.close()

    def abort(self) -> None:
        """Ends the connection at once."""
        self._transport.abort()


class Pool:
    """Connections to one endpoint, kept open and used again."""

    def __init__(
        self,
        endpoint_url: str,
        host_header: str,
        tls: ssl.SSLContext | None,
        *,
        connections: int,
        connect_seconds: float,
        read_seconds: float,
    ) -> None:
        """`tls` is None for an `http:` endpoint; `read_seconds` is the longest silence within an answer."""
        parts = urlsplit(endpoint_url)
        self._endpoint_url = f"{parts.scheme}://{host_header}"
        self._host = parts.hostname or ""
        self._port = parts.port or (80 if tls is None else 443)
        self._tls = tls
        path = parts.path or "/"
        self._head = f"POST {path} HTTP/1.1\r\nAccept-Encoding: identity\r\nUser-Agent: keygraph\r\n"
        if not self._head.isascii() or self._head.count("\n") != 3 or path.split() != [path]:
            raise ValueError(f"{path!r} cannot stand in a request")
        self._connect_seconds = connect_seconds
        self._read_seconds = read_seconds
        self._looking: asyncio.TimerHandle | None = None
        self._turns = Turns(connections)
        self._idle: deque[_Connection] = deque()
        self._open: set[_Connection] = set()
        self._is_closed = False

    async def post(self, lines: str, body: bytes) -> Reply:
        """The answer, whole. Raises botocore's exceptions of connections and timeouts."""
        request = f"{self._head}{lines}Content-Length: {len(body)}\r\n\r\n".encode() + body
        async with self._turns:
            while True:
                connection = self._used_before()
                is_new = connection is None
                if connection is None:
                    connection = await self._connected()
                if self._looking is None:
                    self._look_later()
                try:
                    return await connection.exchange(request)
                except OSError as error:
                    # An idle connection may have ended without our hearing of it; a new one has not.
                    is_stale = not is_new and not connection.was_answered
                    if isinstance(error, ConnectionError) and is_stale:
                        continue
                    raise self._told(error) from error
                except Malformed as error:
                    raise boto.HTTPClientError(error=error) from error
                finally:
                    self._leave(connection)

    async def close(self) -> None:
        """Closes every connection; what is still under way on one fails."""
        self._is_closed = True
        if self._looking is not None:
            self._looking.cancel()
        ending = list(self._open)
        for connection in ending:
            connection.close()
        if ending:
            _, left = await asyncio.wait([each.lost for each in ending], timeout=_CLOSE_SECONDS)
            if left:
                for connection in ending:
                    connection.abort()
                await asyncio.wait(left, timeout=_CLOSE_SECONDS)

    def _look_later(self) -> None:
        loop = asyncio.get_running_loop()
        self._looking = loop.call_later(self._read_seconds / _LOOKS, self._look)

    def _look(self) -> None:
        """Fails the requests that have heard nothing for too long: one timer for all, not one for each."""
        silent_since = asyncio.get_running_loop().time() - self._read_seconds
        waiting = [each for each in list(self._open) if each.is_waiting(silent_since)]
        self._looking = None
        if waiting and not self._is_closed:
            self._look_later()

    def _told(self, error: OSError) -> Exception:
        if isinstance(error, TimeoutError):
            return boto.ReadTimeoutError(endpoint_url=self._endpoint_url, error=error)
        if isinstance(error, ssl.SSLError):
            return boto.SSLError(endpoint_url=self._endpoint_url, error=error)
        return boto.ConnectionClosedError(endpoint_url=self._endpoint_url, error=error)

    def _used_before(self) -> _Connection | None:
        """The connection that was used last, so that those not needed go unused and end."""
        too_old = asyncio.get_running_loop().time() - _IDLE_SECONDS
        while self._idle and (self._idle[0].lost.done() or self._idle[0].idle_since < too_old):
            self._idle.popleft().close()
        while self._idle:
            connection = self._idle.pop()
            if not connection.lost.done():
                return connection
        return None

    def _leave(self, connection: _Connection) -> None:
        if connection.may_go_on and not self._is_closed and not connection.lost.done():
            connection.idle_since = asyncio.get_running_loop().time()
            self._idle.append(connection)
        else:
            # Whatever is still to come on it would be taken for another answer.
            connection.abort()

    async def _connected(self) -> _Connection:
        if self._is_closed:
            raise RuntimeError("the store is closed")
        try:
            async with asyncio.timeout(self._connect_seconds):
                # One address after the other: asyncio's race of addresses loses sockets where it is cancelled.
                _, connection = await asyncio.get_running_loop().create_connection(
                    _Connection,
                    self._host,
                    self._port,
                    ssl=self._tls,
                    server_hostname=self._host if self._tls else None,
                )
        except TimeoutError as error:
            raise boto.ConnectTimeoutError(endpoint_url=self._endpoint_url, error=error) from error
        except ssl.SSLError as error:
            raise boto.SSLError(endpoint_url=self._endpoint_url, error=error) from error
        except OSError as error:
            raise boto.EndpointConnectionError(endpoint_url=self._endpoint_url, error=error) from error
        self._open.add(connection)
        connection.lost.add_done_callback(lambda _: self._open.discard(connection))
        return connection
