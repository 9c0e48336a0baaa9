"""A connection with limits whose requests are parsed by h11. `uvicorn_internals` says what it depends on."""

from __future__ import annotations

from typing import Any

import h11
from uvicorn.protocols.http.h11_impl import H11Protocol

from keygraph_server.connections.guarded import BODY, DISCARDED, HEAD, NOTHING, GuardedConnection
from keygraph_server.connections.refusals import (
    NO_TUNNEL,
    NOT_HTTP,
    TOO_MANY_WAITING,
    Refusal,
    head_too_large,
    too_many_fields,
)

_TWO_LENGTHS = {b"content-length", b"transfer-encoding"}
"""h11 uses the second, a proxy in front may use the first: two views of where a request ends (RFC 9112, 6.1)."""


class H11Connection(GuardedConnection, H11Protocol):  # type: ignore[misc]  # `cycle` is Any in the first
    """A connection with limits on h11."""

    def __init__(self, **given: Any) -> None:
        super().__init__(**given)
        self.conn = _Events(self)
        self.read_at_once = 0
        """The number of requests in the last bytes."""

    def feed(self, data: bytes) -> None:
        self.read_at_once = 0
        self.conn.receive_data(data)
        self.handle_events()

    def has_requests_waiting(self) -> bool:
        return self.reading is not BODY and bool(self.bodies) and bool(self.conn.trailing_data[0])

    def drop_newest(self) -> bool:
        return False

    def running(self) -> Any:
        return self.cycle

    def _should_upgrade(self) -> bool:
        return False


class _Events(h11.Connection):
    """Reports parsed events to the connection, and ends it at requests that exceed the limits."""

    def __init__(self, connection: H11Connection) -> None:
        self._settings = connection.gate.settings
        super().__init__(h11.SERVER, self._settings.max_head_bytes)
        self._connection = connection

    def next_event(self) -> Any:
        connection = self._connection
        if connection.reading is DISCARDED and not connection.bodies:
            return h11.NEED_DATA
        try:
            event = super().next_event()
        except h11.RemoteProtocolError as error:
            is_large = error.error_status_hint == 431
            return self._refuse(head_too_large(self._settings.max_head_bytes) if is_large else NOT_HTTP)
        if isinstance(event, h11.Data):
            connection.body_received(len(event.data))
        elif isinstance(event, h11.EndOfMessage):
            connection.message_complete()
        elif isinstance(event, h11.Request):
            refusal = self._problem_of(event)
            if refusal is not None:
                return self._refuse(refusal)
            connection.head_complete()
        elif connection.reading is NOTHING and event is h11.NEED_DATA and self.trailing_data[0]:
            connection.begin(HEAD)
        return event

    def _problem_of(self, request: h11.Request) -> Refusal | None:
        settings, connection = self._settings, self._connection
        connection.read_at_once += 1
        if len(request.headers) > settings.max_head_fields:
            return too_many_fields(settings.max_head_fields)
        line = len(request.method) + len(request.target) + len("  HTTP/1.1\r\n\r\n")
        size = line + sum(len(name) + len(value) + len(": \r\n") for name, value in request.headers)
        if size > settings.max_head_bytes:
            return head_too_large(settings.max_head_bytes)
        if request.method == b"CONNECT":
            return NO_TUNNEL
        if {name for name, _ in request.headers} >= _TWO_LENGTHS:
            return NOT_HTTP
        if connection.read_at_once > settings.max_pipelined + 1:
            return TOO_MANY_WAITING
        return None

    def _refuse(self, refusal: Refusal) -> Any:
        self._connection.refuse(refusal)
        return h11.NEED_DATA
