"""A pool of HTTP/1.1 connections to one endpoint, for requests with small heads and whole bodies.

It supports the parts of RFC 9112 that DynamoDB needs: POST, and answers with a length, in chunks, or until the
connection closes, which are read as they arrive. It takes about half the processor time of a general client
(docs/performance.md). Failures are botocore's exceptions.
"""

from __future__ import annotations

import asyncio
import re
import socket
import ssl
import time
import weakref
from collections import Counter, deque
from contextlib import suppress
from contextvars import Context
from ipaddress import ip_address
from urllib.parse import urlsplit

from botocore import exceptions as boto

from keygraph.admission import Overloaded
from keygraph.chunks import is_mostly_framing
from keygraph.daemon_thread import in_daemon_thread
from keygraph.dynamo.limits import BATCH_GET_BYTES, TRANSACTION_BYTES
from keygraph.engines.dynamodb.transport import ANSWERED, LARGE_ANSWER
from keygraph.errors import without_frames
from keygraph.turns import ClientsInTurn, leave_place, operation_client

CONNECT_SHARE, READ_SHARE = 4, 2
"""The shares of a deadline that connecting and a silence may take: a lost connection leaves time for another attempt."""
_IDLE_SECONDS = 30.0
"""The longest time that a connection may be idle and be reused; DynamoDB itself closes it after a minute or so."""
_CLOSE_SECONDS = 1.0
_BUFFER_BYTES = 64 * 1024
_LOOKS = 16
"""How many times within `read_seconds` the pool checks for silent connections."""
_HEAD_BYTES = 16 * 1024
_LARGE_IN_ALL, _LARGE_WAITING = 8 * 1024 * 1024, 128 * 1024 * 1024
"""The rest of an answer of more than `LARGE_ANSWER` is read when all of these together have fewer bytes: it takes up to 30
times as much memory when it is decoded, one after the other. So many bytes wait for that, up to half of one client."""
_INTERIM_ANSWERS = 16
"""How many may come before an answer. DynamoDB sends none, and each takes as long as an answer."""
ANSWER_BYTES = 4 * BATCH_GET_BYTES
"""The largest body: DynamoDB's largest answer in JSON, which takes about two to four times as many bytes."""
REFUSAL_BYTES = TRANSACTION_BYTES
"""The largest body of any status but 200: a refusal contains the items of a transaction at most."""
_STATUS = re.compile(rb"HTTP/1\.([01]) ([1-9][0-9][0-9])(?: .*)?")
_OK = b"HTTP/1.1 200 OK\r\n"
_CHUNK = re.compile(rb"([0-9A-Fa-f]{1,8})[ \t]*(?:;.*)?")
_LENGTH_DIGITS = 12


# --- Answers ------------------------------------------------------------------------------------------


class Malformed(Exception):
    """The bytes received are not an answer of HTTP/1.1."""


class AnswerTooLarge(Malformed):
    """An answer is larger than any of DynamoDB's."""


class Reply:
    """An answer, read as it arrives: call `feed` until it returns the answer."""

    # Most answers come in one piece, and set few of these.
    status = 0
    body = b""
    checksum: bytes | None = None
    """The CRC32 of the body, as DynamoDB gives it."""
    head: bytes | None = None
    """The status line and the headers."""
    may_go_on = False
    """Whether another answer can follow on the connection."""
    _received = b""
    _missing = 0
    """How many bytes of the body are missing."""
    _is_until_end = False
    """Whether the body ends with the connection. Then the missing bytes are those that make it too large."""
    _chunked: _Chunks | None = None
    _interim = 0
    """How many interim answers have come."""

    def __init__(self, most: int = ANSWER_BYTES) -> None:
        """`most` is the size of the largest body, in bytes."""
        self._most = most
        self.size = most
        """The length of its body, or of the largest if that is not known."""
        self._parts: list[bytes] = []

    @property
    def headers(self) -> dict[str, str]:
        """The headers; their names are in lower case."""
        lines = (self.head or b"").decode("latin-1").split("\r\n")[1:]
        return {name.lower(): value.strip() for name, _, value in (line.partition(":") for line in lines)}

    def feed(self, data: bytes) -> Reply | None:
        """Returns the answer if this is the last of it. Raises Malformed."""
        while self.head is None:
            if self._received:
                data = self._received + data
            end = data.find(b"\r\n\r\n")
            if end < 0:
                if len(data) > _HEAD_BYTES:
                    raise Malformed("headers that do not end")
                self._received = data
                return None
            self._received = b""
            self._read_head(data[:end])
            data = data[end + 4 :]
        if self._chunked is not None:
            body = self._chunked.feed(data)
            if body is None:
                return None
            self.may_go_on = self.may_go_on and not self._chunked.rest
            self.body = body
            return self
        missing = self._missing - len(data)
        if missing > 0:
            self._missing = missing
            self._parts.append(data)
            return None
        if self._is_until_end:
            raise AnswerTooLarge
        if missing < 0:
            # No request was sent that the rest could answer.
            self.may_go_on = False
            data = data[:missing]
        self.body = b"".join([*self._parts, data]) if self._parts else data
        return self

    def end(self) -> Reply | None:
        """Returns the answer if the end of the connection completes it."""
        if not self._is_until_end:
            return None
        self.body = b"".join(self._parts)
        return self

    def _read_head(self, head: bytes) -> None:
        if head.startswith(_OK):
            self.status, is_kept = 200, True
        else:
            status = _STATUS.fullmatch(head.partition(b"\r\n")[0])
            if status is None:
                raise Malformed("no status line")
            self.status, is_kept = int(status[2]), status[1] == b"1"
            if self.status < 200:
                # An interim answer comes before the answer itself.
                self._interim += 1
                if self._interim > _INTERIM_ANSWERS:
                    raise Malformed("interim answers without an end")
                return
            if self.status != 200:
                self._most = min(self._most, REFUSAL_BYTES)
        self.head = head
        lines = head.lower()
        self.checksum = _value(lines, b"\r\nx-amz-crc32:")
        options = _value(lines, b"\r\nconnection:")
        if options is not None:
            is_kept = b"close" not in options and (is_kept or b"keep-alive" in options)
        encoding = _value(lines, b"\r\ntransfer-encoding:")
        if encoding is not None:
            if encoding != b"chunked":
                raise Malformed("an unknown transfer encoding")
            self._chunked = _Chunks(self._most)
        elif (length := _value(lines, b"\r\ncontent-length:")) is not None:
            if not length.isdigit() or len(length) > _LENGTH_DIGITS:
                raise Malformed("a length that is not a number")
            self._missing = self.size = int(length)
            if self._missing > self._most:
                raise AnswerTooLarge
        else:
            if any(b":" not in line for line in head.split(b"\r\n")[1:]):
                raise Malformed("a header without a colon")
            self._is_until_end, self._missing, is_kept = True, self._most + 1, False
        self.may_go_on = is_kept


def _value(lines: bytes, name: bytes) -> bytes | None:
    """Returns the value of a header, if there is one. `name` includes what is around it."""
    start = lines.find(name)
    if start < 0:
        return None
    start += len(name)
    end = lines.find(b"\r", start)
    return (lines[start:] if end < 0 else lines[start:end]).strip(b" \t")


class _Chunks:
    """A body in chunks; trailers are skipped."""

    def __init__(self, most: int) -> None:
        self._most = most
        self.rest = bytearray()
        self._parts: list[bytes] = []
        self._in_trailers = False
        self._body = 0
        """How many bytes of the body have come."""
        self._lines = 0
        """Its chunks and trailers, without one for each time that bytes came."""
        self._framing = 0
        """The bytes of their lines."""

    def feed(self, data: bytes) -> bytes | None:
        """Returns the body if this is the last of it. Raises Malformed."""
        rest = self.rest
        rest += data
        self._lines -= 1
        while (end := rest.find(b"\r\n")) >= 0:
            self._lines += 1
            if is_mostly_framing(self._body, self._lines, self._framing, _HEAD_BYTES):
                raise Malformed("more framing than body")
            if self._in_trailers:
                del rest[: end + 2]
                self._framing += end + 2
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
            if length > self._most - self._body:
                raise AnswerTooLarge
            if len(rest) < after + 2:
                return None
            if rest[after : after + 2] != b"\r\n":
                raise Malformed("a chunk of the wrong size")
            self._parts.append(bytes(rest[end + 2 : after]))
            self._body += length
            self._framing += end + 4
            del rest[: after + 2]
        if len(rest) > _HEAD_BYTES:
            raise Malformed("a line that does not end")
        return None


# --- Connections --------------------------------------------------------------------------------------


class _HttpConnection(asyncio.BufferedProtocol):
    """One connection, with at most one request on it.

    It has its own buffer. Without one, asyncio allocates 256 KB for each read, which costs more than the read.
    """

    def __init__(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._received = 0
        """The bytes of the answer that have come."""
        self.transport: asyncio.Transport
        self._buffer = memoryview(bytearray(_BUFFER_BYTES))
        self._reply: Reply | None = None
        self._whole: asyncio.Future[Reply] | None = None
        self.lost = self._loop.create_future()
        """Done when the connection has ended."""
        self.is_lost = False
        self.heard = 0.0
        """When something was last sent or received, by the loop's time."""
        self.used_at = 0.0
        """When its last request began, by the wall clock, which continues while the process is frozen, as on AWS Lambda."""
        self.may_go_on = True
        """Whether another request may be sent: no answer is due, and the last one was complete."""
        self.is_answered = self.is_whole = False
        """Whether anything has come back for the last request, and whether it is its whole answer."""

    def ask(self, request: bytes, most: int) -> asyncio.Future[Reply]:
        """Sends a request; its answer, with a body of at most `most` bytes, fails with ConnectionError, TimeoutError,
        SSLError or Malformed. Of a large one, it is the beginning: `go_on` reads the rest.

        Raises ConnectionError if the connection has ended. `settle` must follow.
        """
        if self.is_lost:
            raise ConnectionResetError("the connection has ended")
        self._reply = Reply(most)
        whole = self._whole = self._loop.create_future()
        self.heard = self._loop.time()
        self.may_go_on = self.is_answered = self.is_whole = False
        self._received = 0
        self.transport.write(request)
        return whole

    def settle(self) -> bool:
        """Called when nobody waits for the last request's answer any more. Returns whether another may be sent."""
        whole = self._whole
        self._reply = self._whole = None
        if self.may_go_on:
            return not self.is_lost
        if whole is not None and whole.done() and not whole.cancelled():
            # The waiting task may have been cancelled meanwhile; asyncio would log an exception never retrieved.
            whole.exception()
        return False

    def is_waiting(self, silent_since: float) -> bool:
        """Returns whether an answer is due. Fails the request if nothing has been received since then."""
        if self._whole is None:
            return False
        if self.heard <= silent_since and self.transport.is_reading():
            self._fail(TimeoutError())
        return True

    def _fail(self, error: Exception) -> None:
        if self._whole is not None and not self._whole.done():
            self._whole.set_exception(without_frames(error))

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport = transport  # type: ignore[assignment]  # a stream's, for a connection of TCP

    def get_buffer(self, sizehint: int) -> memoryview:
        return self._buffer

    def buffer_updated(self, nbytes: int) -> None:
        data = bytes(self._buffer[:nbytes])
        whole = self._whole
        if self._reply is None or whole is None or whole.done():
            # Data without a request.
            self.transport.abort()
            return
        self.heard = self._loop.time()
        self.is_answered = True
        before, self._received = self._received, self._received + nbytes
        try:
            reply = self._reply.feed(data)
        except Malformed as error:
            self._fail(error)
            return
        if reply is not None:
            self.may_go_on, self.is_whole = reply.may_go_on, True
            whole.set_result(reply)
        elif before <= LARGE_ANSWER < self._received:
            self.transport.pause_reading()
            whole.set_result(self._reply)

    def go_on(self) -> asyncio.Future[Reply]:
        """Reads the rest of a large answer."""
        if self.is_lost:
            raise ConnectionResetError("the connection was cut")
        whole = self._whole = self._loop.create_future()
        self.heard = self._loop.time()
        self.transport.resume_reading()
        return whole

    def connection_lost(self, error: Exception | None) -> None:
        self.is_lost = True
        if not self.lost.done():
            self.lost.set_result(None)
        if self._whole is None or self._whole.done() or self._reply is None:
            return
        reply = None if error is not None else self._reply.end()
        if reply is not None:
            self.is_whole = True
            self._whole.set_result(reply)
        elif isinstance(error, ssl.SSLError):
            self._fail(error)
        else:
            self._fail(ConnectionResetError("the connection was cut"))


class LargeReplies:
    """The large answers that are read, or not decoded yet. Others wait, unread, and their clients go in turn."""

    def __init__(self) -> None:
        self._bytes = 0
        self._waiting = ClientsInTurn[str, tuple[int, asyncio.Future[None]]]()
        self._waiting_bytes = Counter[str]()
        """Of each client, and of all."""

    async def take(self, reply: Reply) -> None:
        """Waits until the rest of an answer may be read. Counts it until nobody references it. Raises Overloaded if too
        many wait."""
        size = reply.size
        if self._bytes < _LARGE_IN_ALL:
            self._bytes += size
        else:
            await self._wait(operation_client(), size)
        loop = asyncio.get_running_loop()
        weakref.finalize(reply, self._end_from_any_thread, loop, size).atexit = False

    async def _wait(self, client: str, size: int) -> None:
        waiting, shares = self._waiting_bytes, {"all": _LARGE_WAITING, client: _LARGE_WAITING // 2}
        if client and any(waiting[each] and waiting[each] + size > most for each, most in shares.items()):
            raise Overloaded("the server has too much to do: try again in a second")
        leave_place()
        ANSWERED.get()()
        turn = asyncio.get_running_loop().create_future()
        self._waiting.add(client, (size, turn))
        waiting.update(dict.fromkeys(shares, size))
        try:
            await turn
        except asyncio.CancelledError:
            if not turn.cancelled():
                self._end(size)
            raise
        finally:
            waiting.subtract(dict.fromkeys(shares, size))
            if not waiting[client]:
                del waiting[client]

    def _end_from_any_thread(self, loop: asyncio.AbstractEventLoop, size: int) -> None:
        with suppress(RuntimeError):  # the loop may be closed by then
            loop.call_soon_threadsafe(self._end, size)

    def _end(self, size: int) -> None:
        self._bytes -= size
        while self._bytes < _LARGE_IN_ALL and (taken := self._waiting.take()) is not None:
            client, (size, turn) = taken
            if not turn.done():
                self._waiting.count(client, size)
                self._bytes += size
                turn.set_result(None)


def addresses_of(host: str, port: int, family: int = 0) -> list[str]:
    """Returns the addresses of a name, in the system's order. Raises OSError."""
    found = socket.getaddrinfo(host, port, family, socket.SOCK_STREAM)
    return [*dict.fromkeys(str(address[0]) for *_, address in found)]


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
        self._looking_up: asyncio.Future[list[str]] | None = None
        self._looking: asyncio.TimerHandle | None = None
        self._idle: deque[_HttpConnection] = deque()
        self._open: set[_HttpConnection] = set()
        self._is_closed = False
        self._large = LargeReplies()

    async def post(self, lines: str, body: bytes, most: int = ANSWER_BYTES) -> Reply:
        """Returns the whole answer, with a body of at most `most` bytes. Raises botocore's exceptions of connections and
        timeouts."""
        request = f"{self._head}{lines}Content-Length: {len(body)}\r\n\r\n".encode() + body
        while True:
            now = time.time()
            connection = self._used_before(now)
            is_new = connection is None
            if connection is None:
                connection = await self._connected()
            connection.used_at = now
            if self._looking is None:
                self._look_later()
            try:
                reply = await connection.ask(request, most)
                if not connection.is_whole:
                    await self._large.take(reply)
                    reply = await connection.go_on()
                return reply
            except OSError as error:
                # An idle connection may have ended without notice; a new one has not.
                is_stale = not is_new and not connection.is_answered
                if isinstance(error, ConnectionError) and is_stale:
                    continue
                raise self._told(error) from error
            except Malformed as error:
                raise boto.HTTPClientError(error=error) from error
            finally:
                if connection.settle() and not self._is_closed:
                    self._idle.append(connection)
                else:
                    # Data that still arrives on it would be taken for the next answer.
                    connection.transport.abort()

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
        self._looking = loop.call_later(self._read_seconds / _LOOKS, self._look, context=Context())

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

    def _used_before(self, now: float) -> _HttpConnection | None:
        """Returns the connection that was used last, so that excess connections stay idle and are closed."""
        idle = self._idle
        while idle and (idle[0].is_lost or idle[0].used_at < now - _IDLE_SECONDS):
            idle.popleft().transport.close()
        while idle:
            connection = idle.pop()
            if not connection.is_lost:
                return connection
        return None

    async def _connected(self) -> _HttpConnection:
        if self._is_closed:
            raise RuntimeError("the store is closed")
        try:
            async with asyncio.timeout(self._connect_seconds):
                # One address after the other: asyncio's race of addresses loses sockets if it is cancelled.
                *others, last = await self._addresses()
                for address in others:
                    try:
                        return await self._connected_to(address)
                    except ssl.SSLError:
                        raise
                    except OSError:
                        continue
                return await self._connected_to(last)
        except OSError as error:
            raise self._told(error, boto.ConnectTimeoutError, boto.EndpointConnectionError) from error

    async def _addresses(self) -> list[str]:
        """Returns the addresses of the endpoint. While no name server answers, which the system waits for, all wait for
        one lookup."""
        with suppress(ValueError):
            return [str(ip_address(self._host))]
        if self._looking_up is None:
            self._looking_up = in_daemon_thread(addresses_of, self._host, self._port)
            self._looking_up.add_done_callback(self._looked_up)
        return await asyncio.shield(self._looking_up)

    def _looked_up(self, _: object) -> None:
        self._looking_up = None

    async def _connected_to(self, address: str) -> _HttpConnection:
        _, connection = await asyncio.get_running_loop().create_connection(
            _HttpConnection,
            address,
            self._port,
            ssl=self._tls,
            server_hostname=self._host if self._tls else None,
        )
        self._open.add(connection)
        connection.lost.add_done_callback(lambda _: self._open.discard(connection))
        return connection
