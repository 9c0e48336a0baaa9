"""A connection with limits whose requests are parsed by httptools. `uvicorn_internals` says what it depends on."""

from __future__ import annotations

from typing import Any

import httptools
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from keygraph_server.connections.guarded import BODY, HEAD, GuardedConnection
from keygraph_server.connections.refusals import (
    NO_TUNNEL,
    NOT_HTTP,
    TOO_MANY_WAITING,
    Refusal,
    head_too_large,
    too_many_fields,
)


class _RefusedError(Exception):
    """Ends the parser: the connection is refused."""


class HttpToolsConnection(GuardedConnection, HttpToolsProtocol):  # type: ignore[misc]  # `cycle` is Any in the first
    """A connection with limits on httptools."""

    def __init__(self, **given: Any) -> None:
        super().__init__(**given)
        self._running: Any = None
        self._is_upgrade = False
        self._offers: list[tuple[bytes, bytes]] = []
        self._cause: Refusal = NOT_HTTP

    def feed(self, data: bytes) -> None:
        limit = self.gate.settings.max_head_bytes
        while data:
            try:
                self.parser.feed_data(data)
            except httptools.HttpParserUpgrade as upgrade:
                # The parser treats the rest as another protocol, including the body. It is HTTP (RFC 9110, 7.8).
                data = self._head_without_upgrade() + data[upgrade.args[0] :]
            except httptools.HttpParserError:
                self.refuse(self._cause)
                return
            else:
                break
        if self.reading is HEAD and self.received > limit:
            self.refuse(head_too_large(limit))
        elif self.reading is BODY and self.received > limit + 2 * self.bodies[-1]:
            # Chunks of a few bytes, chunk extensions, or endless trailers.
            self.refuse(NOT_HTTP)

    def _head_without_upgrade(self) -> bytes:
        """The head that was read, for a new parser, without its offer to change the protocol."""
        self._is_upgrade = False
        method, version = self.parser.get_method(), self.parser.get_http_version().encode()
        fields = [(name, value) for name, value in self.headers if name != b"upgrade"]
        # The application reads it, to say what there is instead.
        self._offers = [(name, value) for name, value in self.headers if name == b"upgrade"]
        lines = [method + b" " + self.url + b" HTTP/" + version]
        lines += [name + b": " + value for name, value in fields]
        self.parser = httptools.HttpRequestParser(self)
        self.parser.set_dangerous_leniencies(lenient_data_after_close=True)
        return b"\r\n".join([*lines, b"", b""])

    def has_requests_waiting(self) -> bool:
        return bool(self.pipeline)

    def drop_newest(self) -> bool:
        if self.pipeline:
            self.pipeline.popleft()
            return True
        return False

    def running(self) -> Any:
        return self._running

    def _start_asgi_task(self, cycle: Any, app: Any) -> None:
        self._running = cycle
        super()._start_asgi_task(cycle, app)

    def on_message_begin(self) -> None:
        if self.reading is not HEAD:
            self.begin(HEAD)
        super().on_message_begin()

    def on_headers_complete(self) -> None:
        self._check_head()
        if self.parser.should_upgrade():
            self._is_upgrade = True
            return
        self.headers += self._offers
        self._offers = []
        super().on_headers_complete()
        # Trailers follow the body. They are not fields of the request, which has the other list.
        self.headers = []
        self.head_complete()

    def _check_head(self) -> None:
        settings = self.gate.settings
        if len(self.headers) > settings.max_head_fields:
            self._refuse(too_many_fields(settings.max_head_fields))
        # For most requests, all bytes since the head began are fewer than the limit.
        if self.received > settings.max_head_bytes and self._head_size() > settings.max_head_bytes:
            self._refuse(head_too_large(settings.max_head_bytes))
        if self.parser.get_method() == b"CONNECT":
            self._refuse(NO_TUNNEL)
        # RFC 9112, 3.2. h11 checks this itself.
        hosts = [name for name, _ in self.headers].count(b"host")
        if hosts > 1 or (hosts == 0 and self.parser.get_http_version() != "1.0"):
            self._refuse(NOT_HTTP)
        if len(self.bodies) > settings.max_pipelined:
            self._refuse(TOO_MANY_WAITING)

    def _head_size(self) -> int:
        line = len(self.parser.get_method()) + len(self.url) + len("  HTTP/1.1\r\n\r\n")
        return line + sum(len(name) + len(value) + len(": \r\n") for name, value in self.headers)

    def _refuse(self, refusal: Refusal) -> None:
        self._cause = refusal
        raise _RefusedError

    def on_body(self, body: bytes) -> None:
        self.body_received(len(body))
        super().on_body(body)

    def on_message_complete(self) -> None:
        if not self._is_upgrade:
            super().on_message_complete()
            self.message_complete()
