"""A connection with limits whose requests are parsed by httptools. `uvicorn_internals` says what it depends on."""

from __future__ import annotations

import asyncio
import re
from typing import Any
from urllib.parse import unquote

import httptools
from uvicorn.protocols.http.httptools_impl import STATUS_LINE, HttpToolsProtocol, RequestResponseCycle

from keygraph_server.connections.guarded import HEAD, NOTHING, GuardedConnection
from keygraph_server.connections.heads import written_head
from keygraph_server.connections.refusals import NOT_HTTP, ConnectionRefusal, too_many_fields
from keygraph_server.uvicorn_internals import ProxyHeadersMiddleware

_LONGEST_KEPT = 512
"""The longest target of which an idle connection remembers the parts."""
_FRAMING = frozenset({b"connection", b"transfer-encoding"})
_CONTROL = re.compile(rb"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f]")
_FORWARDED = frozenset({b"x-forwarded-for", b"x-forwarded-proto"})
"""The fields that uvicorn's middleware takes from trusted proxies."""


class _RefusedError(Exception):
    """Ends the parser: the connection is refused."""


class _Cycle(RequestResponseCycle):
    """A request and its answer. The head waits for the body, and both are one write: a second one would be a system
    call, and often a packet."""

    _start: Any = None
    """The message with the head, until the body comes."""

    async def send(self, message: Any) -> None:
        if message["type"] == "http.response.start" and not self.response_started:
            self._start = message
            return
        start, self._start = self._start, None
        if start is not None:
            if self.flow.write_paused and not self.disconnected:
                await self.flow.drain()
            whole = None if message.get("more_body") or self.access_log else self._whole(start, message)
            if whole is not None:
                if not self.disconnected:
                    self.response_started = self.response_complete = True
                    self.transport.write(whole)
                    self.message_event.set()
                    self.on_response()
                return
            await super().send(start)
        await super().send(message)

    def _whole(self, start: Any, message: Any) -> bytes | None:
        """The bytes of an answer that keeps the connection and says its length; None for any other."""
        body: bytes = message.get("body", b"")
        headers = [*self.default_headers, *start.get("headers", ())]
        fields = dict(headers)
        is_framed = fields.get(b"content-length") != b"%d" % len(body) or not _FRAMING.isdisjoint(fields)
        if is_framed or not self.keep_alive or self.scope["method"] == "HEAD":
            return None
        head = STATUS_LINE[start["status"]] + b"".join([b"%b: %b\r\n" % field for field in headers])
        is_plain = head.count(b"\n") == head.count(b"\r") == len(headers) + 1 and not _CONTROL.search(head)
        return b"%b\r\n%b" % (head, body) if is_plain else None


class HttpToolsConnection(GuardedConnection, HttpToolsProtocol):  # type: ignore[misc]  # `cycle` is Any in the first
    """A connection with limits on httptools."""

    def __init__(self, **given: Any) -> None:
        super().__init__(**given)
        self._running: Any = None
        self._direct: Any = self.app.app if isinstance(self.app, ProxyHeadersMiddleware) else self.app
        """The application, for requests that no proxy has forwarded."""
        self._is_upgrade = False
        self._target: bytes | None = None
        """The target of the last request."""
        self._scope: dict[str, Any] = {}
        """What the requests to it have in common."""
        self._offers: list[tuple[bytes, bytes]] = []
        self._cause: ConnectionRefusal = NOT_HTTP
        self._head = b""
        """The bytes that came and belong to no head, chunk or body that was read."""

    def connection_lost(self, error: Exception | None) -> None:
        super().connection_lost(error)
        # A request that has not begun references this connection.
        self.pipeline.clear()
        self.cycle = self._running

    def feed(self, data: bytes) -> None:
        self._head += data
        while data:
            try:
                self.parser.feed_data(data)
            except httptools.HttpParserUpgrade as upgrade:
                if self.wants_websocket(self.parser.get_http_version(), 0):
                    self.become_websocket(self._first_line(), data[upgrade.args[0] :])
                    return
                # The parser treats the rest as another protocol, including the body. It is HTTP (RFC 9110, 7.8).
                self._head = data = self._head_without_upgrade() + data[upgrade.args[0] :]
            except httptools.HttpParserError:
                self.refuse(self._cause)
                return
            else:
                break

    def _head_without_upgrade(self) -> bytes:
        """The head that was read, for a new parser, without its offer to change the protocol."""
        self._is_upgrade = False
        # The application reads it, to say what there is instead.
        self._offers = [(name, value) for name, value in self.headers if name == b"upgrade"]
        head = written_head(self._first_line(), [each for each in self.headers if each not in self._offers])
        self.parser = httptools.HttpRequestParser(self)
        self.parser.set_dangerous_leniencies(lenient_data_after_close=True)
        return head

    def _first_line(self) -> bytes:
        parser = self.parser
        return b"%b %b HTTP/%b" % (parser.get_method(), self.url, parser.get_http_version().encode())

    def has_requests_waiting(self) -> bool:
        return bool(self.pipeline)

    def drop_newest(self) -> bool:
        if self.pipeline:
            self.pipeline.popleft()
            return True
        return False

    def running(self) -> Any:
        return self._running

    def forget_request(self) -> None:
        super().forget_request()
        self._running = None
        if self.reading is NOTHING and len(self.url) > _LONGEST_KEPT:
            self.url, self._target, self._scope = b"", None, {}

    def _start_asgi_task(self, cycle: Any, app: Any) -> None:
        self._running = cycle
        super()._start_asgi_task(cycle, app)

    def on_message_begin(self) -> None:
        if self.reading is not HEAD:
            self.begin(HEAD)
        self.url = b""
        self.expect_100_continue = False
        self.headers = []

    def on_header(self, name: bytes, value: bytes) -> None:
        # Of a head, or of the trailers of a body: thousands would take a megabyte and a millisecond.
        most = self.gate.settings.max_head_fields
        if len(self.headers) == most:
            self._cause = too_many_fields(most)
            raise _RefusedError
        super().on_header(name, value)

    def on_headers_complete(self) -> None:
        parser = self.parser
        method, version = parser.get_method(), parser.get_http_version()
        names = [name for name, _ in self.headers]
        refusal = self.head_problem(method, self.url, version, self.headers, len(self.bodies))
        line, head = self._first_line(), self._head.lstrip(b"\r\n")
        if refusal is None and not head.startswith(line + b"\r\n"):
            refusal = NOT_HTTP  # the parser takes more spaces, and RTSP
        self._head = head[len(line) :].partition(b"\r\n\r\n")[2]
        if refusal is not None:
            self._cause = refusal
            raise _RefusedError
        if parser.should_upgrade():
            self._is_upgrade = True
            return
        self.headers += self._offers
        self._offers = []
        if self.url != self._target:
            self._read_target()
        self.scope = {
            **self._scope,
            "method": method.decode("ascii"),
            "http_version": version,
            "headers": self.headers,
            "state": self.app_state.copy(),
        }
        before = self.cycle
        self.cycle = _Cycle(
            scope=self.scope,
            transport=self.transport,
            flow=self.flow,
            logger=self.logger,
            access_logger=self.access_logger,
            access_log=self.access_log,
            default_headers=self.server_state.default_headers,
            message_event=asyncio.Event(),
            expect_100_continue=self.expect_100_continue and version != "1.0",
            keep_alive=version != "1.0" and parser.should_keep_alive(),
            on_response=self.on_response_complete,
        )
        app = self._direct if _FORWARDED.isdisjoint(names) else self.app
        if before is None or before.response_complete:
            self._start_asgi_task(self.cycle, app)
        else:
            self.flow.pause_reading()
            self.pipeline.appendleft((self.cycle, app))
        # Trailers follow the body. They are not fields of the request, which has the other list.
        self.headers = []
        self.head_complete(len(names))

    def _read_target(self) -> None:
        """Reads the path and the query of a request; the next one has usually the same."""
        parsed, root = httptools.parse_url(self.url), self.root_path
        path = parsed.path.decode("ascii")
        self._scope = {
            "type": "http",
            "asgi": {"version": self.asgi_version, "spec_version": "2.3"},
            "server": self.server,
            "client": self.client,
            "scheme": self.scheme,
            "root_path": root,
            "path": root + (unquote(path) if "%" in path else path),
            "raw_path": root.encode("ascii") + parsed.path,
            "query_string": parsed.query or b"",
        }
        self._target = self.url

    def on_chunk_header(self) -> None:
        self._head = self._head.partition(b"\r\n")[2]

    def on_body(self, body: bytes) -> None:
        self._head = self._head[len(body) :]
        self.body_received(len(body))
        super().on_body(body)

    def on_chunk_complete(self) -> None:
        head = self._head
        # Trailers follow the last chunk.
        self._head = head[2:] if head.startswith(b"\r\n") else head.partition(b"\r\n\r\n")[2]

    def on_message_complete(self) -> None:
        if not self._is_upgrade:
            super().on_message_complete()
            self.message_complete()
