"""A connection with limits whose requests are parsed by h11. `uvicorn_internals` says what it depends on."""

from __future__ import annotations

import re
from typing import Any
from weakref import proxy

import h11
from uvicorn.protocols.http.h11_impl import H11Protocol

from keygraph.errors import without_frames
from keygraph_server.connections import refusals
from keygraph_server.connections.guarded import BODY, DISCARDED, HEAD, NOTHING, GuardedConnection

_PLAIN = bytes({*range(256)} - {*range(0x20), 0x7F} | {*b"\t"})

_LAST_CHUNK = re.compile(rb"[\r\n]*0+(?![0-9a-f])", re.IGNORECASE)
"""The size of the chunk before the trailers, after the end of another chunk."""


class H11Connection(GuardedConnection, H11Protocol):  # type: ignore[misc]  # `cycle` is Any in the first
    """A connection with limits on h11."""

    def __init__(self, **given: Any) -> None:
        super().__init__(**given)
        self.conn = _Events(self)
        self.read_at_once = 0
        """The number of requests in the last bytes."""
        self._unparsed = 0
        """How many bytes of requests are counted that wait."""

    def feed(self, data: bytes) -> None:
        self.read_at_once = 0
        self.conn.receive_data(data)
        self.handle_events()

    def handle_events(self) -> None:
        super().handle_events()
        # Requests that wait are not parsed yet.
        waiting = len(self.conn.trailing_data[0]) if self.has_requests_waiting() else 0
        before, self._unparsed = self._unparsed, waiting
        if waiting != before:
            self.gate.hold(self, self.held + waiting - before)
            if self.reading is not DISCARDED and self.gate.is_full:
                self.refuse(refusals.TOO_MANY_WAITING)

    def has_requests_waiting(self) -> bool:
        return self.reading is not BODY and bool(self.bodies) and bool(self.conn.trailing_data[0])

    def _should_upgrade(self) -> bool:
        return self.wants_websocket(self.scope["http_version"], 1)

    def handle_websocket_upgrade(self, event: h11.Request) -> None:
        """Hands the connection over."""
        self.become_websocket(event.method + b" " + event.target + b" HTTP/1.1", self.conn.trailing_data[0])


class _Events(h11.Connection):
    """Reports parsed events to the connection, and ends it at requests that exceed the limits."""

    def __init__(self, connection: H11Connection) -> None:
        self._settings = connection.gate.settings
        super().__init__(h11.SERVER, self._settings.max_head_bytes)
        self._connection = proxy(connection)
        self._half_end = b""
        """The first half of a line end whose second half has not come: h11 takes it."""

    def next_event(self) -> Any:
        connection = self._connection
        if connection.reading is DISCARDED and not connection.bodies:
            return h11.NEED_DATA
        before = self.trailing_data[0]
        most = self._settings.max_head_fields
        if self._fields_ahead(before) > most:
            return self._refuse(refusals.too_many_fields(most))
        try:
            event = super().next_event()
        except h11.RemoteProtocolError as error:
            without_frames(error)  # one of them references the error
            match error.error_status_hint:
                case 431:
                    return self._refuse(refusals.head_too_large(self._settings.max_head_bytes))
                case 501:
                    return self._refuse(refusals.NO_SUCH_CODING)
            return self._refuse(refusals.NOT_HTTP)
        # A head, the sizes of chunks, or trailers.
        count = len(before) - len(self.trailing_data[0])
        if isinstance(event, h11.Data):
            connection.body_received(len(event.data))
            count -= len(event.data)
        lines = self._half_end + before[:count]
        if count and _are_odd(lines):
            return self._refuse(refusals.NOT_HTTP)
        self._half_end = b"\r" if lines.endswith(b"\r") else b""
        if isinstance(event, h11.EndOfMessage):
            connection.message_complete()
        elif isinstance(event, h11.Request):
            connection.read_at_once += 1
            version, waiting = event.http_version.decode("ascii"), connection.read_at_once - 1
            refusal = connection.head_problem(event.method, event.target, version, [*event.headers], waiting)
            if refusal is not None:
                return self._refuse(refusal)
            if b"://" in event.target.partition(b"?")[0]:
                # A whole URL, of this host (RFC 9112, 3.2.2).
                object.__setattr__(event, "target", b"/" + event.target.split(b"/", 3)[3])
            connection.head_complete(len(event.headers))
        elif connection.reading is NOTHING and event is h11.NEED_DATA and self.trailing_data[0]:
            connection.begin(HEAD)
        return event

    def _fields_ahead(self, data: bytes) -> int:
        """How many fields the head or the trailers have with which these bytes begin: h11 parses them at once, each in two
        microseconds."""
        start, first_line = 0, 0
        if self._connection.reading is BODY:
            reader: Any = self._reader
            first_line = getattr(reader, "_reading_trailer", False)  # that of the last chunk, which was read
            if not first_line:
                last = None if getattr(reader, "_bytes_in_chunk", 1) else _LAST_CHUNK.match(data)
                if last is None:
                    return 0
                start = last.end()
        end = data.find(b"\r\n\r\n", start)
        return first_line + data.count(b"\n", start, data.rfind(b"\n") if end < 0 else end)

    def _refuse(self, refusal: refusals.ConnectionRefusal) -> Any:
        self._connection.refuse(refusal)
        return h11.NEED_DATA


def _are_odd(lines: bytes) -> bool:
    """Whether there are line ends of one character, lines that continue others, or control characters: h11 takes them, and
    others do not."""
    others = lines.removesuffix(b"\r").replace(b"\r\n", b"").translate(None, _PLAIN)
    return bool(others) or b"\n " in lines or b"\n\t" in lines
