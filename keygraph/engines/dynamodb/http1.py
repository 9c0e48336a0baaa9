"""A pool of HTTP/1.1 connections to one endpoint, for requests with small heads and whole bodies.

It supports the parts of RFC 9112 that DynamoDB needs: POST, and answers with a length, in chunks, or until the
connection closes, which are read as they arrive. It takes about half the processor time of a general client
(docs/performance.md). Failures are botocore's exceptions.
"""

from __future__ import annotations

import asyncio
import re
import ssl
import time
from collections import deque
from typing import NamedTuple
from urllib.parse import urlsplit

from botocore import exceptions as boto

_IDLE_SECONDS = 30.0
"""The longest time that a connection may be idle and be reused; DynamoDB itself closes it after a minute or so."""
_CLOSE_SECONDS = 1.0
_BUFFER_BYTES = 64 * 1024
_LOOKS = 16
"""How many times within `read_seconds` the pool checks for silent connections."""
_HEAD_BYTES = 64 * 1024
_STATUS = re.compile(rb"HTTP/1\.([01]) ([1-9][0-9][0-9])(?: .*)?")
_OK = b"HTTP/1.1 200 OK\r\n"
_LOOKED_AT = re.compile(rb"\r\n(content-length|transfer-encoding|connection|x-amz-crc32):([^\r\n]*)")
"""The headers, in lower case, that are read in every answer."""
_CHUNK = re.compile(rb"([0-9A-Fa-f]{1,8})[ \t]*(?:;.*)?")
_LENGTH = re.compile(rb"[ \t]*([0-9]{1,12})[ \t]*")


# --- Answers ------------------------------------------------------------------------------------------


class Reply(NamedTuple):
    """An answer."""

    status: int
    body: bytes
    checksum: bytes | None
    """The CRC32 of the body, as DynamoDB gives it."""
    head: bytes
    """The status line and the headers."""

    @property
    def headers(self) -> dict[str, str]:
        """The headers; their names are in lower case."""
        lines = self.head.decode("latin-1").split("\r\n")[1:]
        return {name.lower(): value.strip() for name, _, value in (line.partition(":") for line in lines)}


class Malformed(Exception):
    """The bytes received are not an answer of HTTP/1.1."""


class AnswerReader:
    """Reads one answer as it arrives: call `feed` until it returns the answer."""

    # Most answers come in one piece, and set none of these.
    _received = b""
    _parts: list[bytes] | None = None
    _missing = 0
    _chunked: _Chunks | None = None
    _until_end = False
    _status = 0
    _head: bytes | None = None
    _checksum: bytes | None = None
    may_go_on = False
    """Whether another answer can follow on the connection."""
    has_begun = False

    def feed(self, data: bytes) -> Reply | None:
        """Returns the answer if this is the last of it. Raises Malformed."""
        self.has_begun = True
        while self._head is None:
            data = self._received + data if self._received else data
            end = data.find(b"\r\n\r\n")
            if end < 0:
                if len(data) > _HEAD_BYTES:
                    raise Malformed("headers that do not end")
                self._received = data
                return None
            self._received = b""
            self._read_head(data[:end])
            data = data[end + 4 :]
        return self._feed_body(data)

    def end(self) -> Reply | None:
        """Returns the answer if the end of the connection completes it."""
        return self._whole(b"".join(self._parts or ())) if self._until_end else None

    def _read_head(self, head: bytes) -> None:
        if head.startswith(_OK):
            self._status, is_kept = 200, True
        else:
            told_status = _STATUS.fullmatch(head.partition(b"\r\n")[0])
            if told_status is None:
                raise Malformed("no status line")
            self._status, is_kept = int(told_status[2]), told_status[1] == b"1"
            if self._status < 200:
                # An interim answer comes before the answer itself.
                return
        self._head = head
        told = dict(_LOOKED_AT.findall(head.lower()))
        checksum = told.get(b"x-amz-crc32")
        if checksum is not None:
            self._checksum = checksum.strip()
        options = told.get(b"connection")
        if options is not None:
            is_kept = b"close" not in options and (is_kept or b"keep-alive" in options)
        self.may_go_on = is_kept
        encoding = told.get(b"transfer-encoding")
        length = told.get(b"content-length")
        if encoding is not None:
            if encoding.strip() != b"chunked":
                raise Malformed("an unknown transfer encoding")
            self._chunked = _Chunks()
        elif length is not None:
            number = _LENGTH.fullmatch(length)
            if number is None:
                raise Malformed("a length that is not a number")
            self._missing = int(number[1])
        else:
            if any(b":" not in line for line in head.split(b"\r\n")[1:]):
                raise Malformed("a header without a colon")
            self._until_end, self.may_go_on = True, False

    def _feed_body(self, data: bytes) -> Reply | None:
        if self._chunked is not None:
            body = self._chunked.feed(data)
            if body is None:
                return None
            self.may_go_on = self.may_go_on and not self._chunked.rest
            return self._whole(body)
        self._missing -= len(data)
        if self._until_end or self._missing > 0:
            self._parts = self._parts or []
            self._parts.append(data)
            return None
        if self._missing < 0:
            # No request was sent that the rest could answer.
            data = data[: self._missing]
            self.may_go_on = False
        return self._whole(b"".join([*self._parts, data]) if self._parts is not None else data)

    def _whole(self, body: bytes) -> Reply:
        return Reply(self._status, body, self._checksum, self._head or b"")


class _Chunks:
    """A body in chunks; trailers are skipped."""

    def __init__(self) -> None:
        self.rest = bytearray()
        self._parts: list[bytes] = []
        self._in_trailers = False

    def feed(self, data: bytes) -> bytes | None:
        """Returns the body if this is the last of it. Raises Malformed."""
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
            # While a match refers to the bytes, they cannot change size.
            size = None
            if length == 0:
                self._in_trailers = True
                del rest[: end + 2]
                continue
            if len(rest) < after + 2:
                return None
            if rest[after : after + 2] != b"\r\n":
                raise Malformed("a chunk of the wrong size")
            self._parts.append(bytes(rest[end + 2 : after]))
            del rest[: after + 2]
        if len(rest) > _HEAD_BYTES and not self._in_trailers:
            raise Malformed("a chunk without a size")
        return None


# --- Connections --------------------------------------------------------------------------------------


class _HttpConnection(asyncio.BufferedProtocol):
    """One connection, with at most one request on it.

    It has its own buffer. Without one, asyncio allocates 256 KB for each read, which costs more than the read.
    """

    def __init__(self) -> None:
        self._loop = asyncio.get_running_loop()
        self.transport: asyncio.Transport
        self._buffer = memoryview(bytearray(_BUFFER_BYTES))
        self._answer: AnswerReader | None = None
        self._whole: asyncio.Future[Reply] | None = None
        self.lost = self._loop.create_future()
        """Done when the connection has ended."""
        self.heard = 0.0
        """When something was last sent or received, by the loop's time."""
        self.idle_since = 0.0
        """By the wall clock, which continues while the process is frozen, as on AWS Lambda."""
        self.may_go_on = True
        """Whether another request may be sent: no answer is due, and the last one was complete."""

    def ask(self, request: bytes) -> asyncio.Future[Reply]:
        """Sends a request; its answer fails with ConnectionError, TimeoutError, SSLError or Malformed.

        Raises ConnectionError if the connection has ended. `settle` must follow.
        """
        if self.lost.done():
            raise ConnectionResetError("the connection has ended")
        self._answer = AnswerReader()
        whole = self._whole = self._loop.create_future()
        self.heard = self._loop.time()
        self.may_go_on = False
        self.transport.write(request)
        return whole

    def settle(self) -> None:
        """Called when nobody waits for the last request's answer any more."""
        whole = self._whole
        self._answer = self._whole = None
        if not self.may_go_on and whole is not None and whole.done() and not whole.cancelled():
            # The waiting task may have been cancelled meanwhile; asyncio would log an exception never retrieved.
            whole.exception()

    @property
    def is_answered(self) -> bool:
        """Whether anything has come back for the last request."""
        return self._answer is not None and self._answer.has_begun

    def is_waiting(self, silent_since: float) -> bool:
        """Returns whether an answer is due. Fails the request if nothing has been received since then."""
        if self._whole is None:
            return False
        if self.heard <= silent_since:
            self._fail(TimeoutError())
        return True

    def _fail(self, error: Exception) -> None:
        if self._whole is not None and not self._whole.done():
            self._whole.set_exception(error)

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport = transport  # type: ignore[assignment]  # a stream's, for a connection of TCP

    def get_buffer(self, sizehint: int) -> memoryview:
        return self._buffer

    def buffer_updated(self, nbytes: int) -> None:
        data = bytes(self._buffer[:nbytes])
        answer, whole = self._answer, self._whole
        if answer is None or whole is None or whole.done():
            # Data without a request.
            self.transport.abort()
            return
        self.heard = self._loop.time()
        try:
            reply = answer.feed(data)
        except Malformed as error:
            self._fail(error)
            return
        if reply is not None:
            self.may_go_on = answer.may_go_on
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


class Pool:
    """Connections to one endpoint, kept open and reused: as many as there are requests at one time."""

    def __init__(
        self,
        endpoint_url: str,
        host_header: str,
        tls: ssl.SSLContext | None,
        *,
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
            raise ValueError(f"{path!r} cannot be the path of a request")
        self._connect_seconds = connect_seconds
        self._read_seconds = read_seconds
        self._looking: asyncio.TimerHandle | None = None
        self._idle: deque[_HttpConnection] = deque()
        self._open: set[_HttpConnection] = set()
        self._is_closed = False

    async def post(self, lines: str, body: bytes) -> Reply:
        """Returns the whole answer. Raises botocore's exceptions of connections and timeouts."""
        request = f"{self._head}{lines}Content-Length: {len(body)}\r\n\r\n".encode() + body
        while True:
            connection = self._used_before()
            is_new = connection is None
            if connection is None:
                connection = await self._connected()
            if self._looking is None:
                self._look_later()
            try:
                return await connection.ask(request)
            except OSError as error:
                # An idle connection may have ended without notice; a new one has not.
                is_stale = not is_new and not connection.is_answered
                if isinstance(error, ConnectionError) and is_stale:
                    continue
                raise self._told(error) from error
            except Malformed as error:
                raise boto.HTTPClientError(error=error) from error
            finally:
                self._leave(connection)

    async def close(self) -> None:
        """Closes every connection; requests that still wait for an answer fail."""
        self._is_closed = True
        if self._looking is not None:
            self._looking.cancel()
        ending = list(self._open)
        for connection in ending:
            connection.transport.close()
        if ending:
            _, left = await asyncio.wait([each.lost for each in ending], timeout=_CLOSE_SECONDS)
            if left:
                for connection in ending:
                    connection.transport.abort()
                await asyncio.wait(left, timeout=_CLOSE_SECONDS)

    def _look_later(self) -> None:
        loop = asyncio.get_running_loop()
        self._looking = loop.call_later(self._read_seconds / _LOOKS, self._look)

    def _look(self) -> None:
        """Fails the requests whose connections have been silent for too long: one timer serves all."""
        silent_since = asyncio.get_running_loop().time() - self._read_seconds
        waiting = [each for each in list(self._open) if each.is_waiting(silent_since)]
        self._looking = None
        if waiting and not self._is_closed:
            self._look_later()

    def _told(
        self,
        error: OSError,
        late: type[boto.ReadTimeoutError | boto.ConnectTimeoutError] = boto.ReadTimeoutError,
        closed: type[boto.ConnectionClosedError | boto.EndpointConnectionError] = boto.ConnectionClosedError,
    ) -> Exception:
        if isinstance(error, TimeoutError):
            return late(endpoint_url=self._endpoint_url, error=error)
        if isinstance(error, ssl.SSLError):
            return boto.SSLError(endpoint_url=self._endpoint_url, error=error)
        return closed(endpoint_url=self._endpoint_url, error=error)

    def _used_before(self) -> _HttpConnection | None:
        """Returns the connection that was used last, so that excess connections stay idle and are closed."""
        idle = self._idle
        too_old = time.time() - _IDLE_SECONDS
        while idle and (idle[0].lost.done() or idle[0].idle_since < too_old):
            idle.popleft().transport.close()
        while idle:
            connection = idle.pop()
            if not connection.lost.done():
                return connection
        return None

    def _leave(self, connection: _HttpConnection) -> None:
        connection.settle()
        if connection.may_go_on and not self._is_closed and not connection.lost.done():
            connection.idle_since = time.time()
            self._idle.append(connection)
        else:
            # Data that still arrives on it would be taken for the next answer.
            connection.transport.abort()

    async def _connected(self) -> _HttpConnection:
        if self._is_closed:
            raise RuntimeError("the store is closed")
        try:
            async with asyncio.timeout(self._connect_seconds):
                # One address after the other: asyncio's race of addresses loses sockets if it is cancelled.
                _, connection = await asyncio.get_running_loop().create_connection(
                    _HttpConnection,
                    self._host,
                    self._port,
                    ssl=self._tls,
                    server_hostname=self._host if self._tls else None,
                )
        except OSError as error:
            raise self._told(error, boto.ConnectTimeoutError, boto.EndpointConnectionError) from error
        self._open.add(connection)
        connection.lost.add_done_callback(lambda _: self._open.discard(connection))
        return connection
