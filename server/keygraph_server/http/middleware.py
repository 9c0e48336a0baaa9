"""Middleware around every endpoint: it reads the headers of a request once, limits its body, and answers a failure
of the endpoint with an error that reveals no internals. Every answer has the id of its request, headers that let
browsers do nothing but read it, and headers that say which pages may read it (CORS)."""

from __future__ import annotations

import asyncio
import os
import re
from functools import partial
from typing import Any

import orjson
from starlette.middleware.cors import CORSMiddleware
from starlette.responses import Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from keygraph.codes import Code
from keygraph_resolvers.errors import internal_error
from keygraph_server.errors import RequestRefusedError
from keygraph_server.http.graphql_http import NO_WEBSOCKETS
from keygraph_server.http.header_values import HeaderFields, remembered, request_headers
from keygraph_server.http.origins import Origins
from keygraph_server.http.request_ids import REQUEST_ID, REQUEST_ID_HEADER, with_request_id
from keygraph_server.secure_headers import HTTPS_ONLY, NO_CONTENT_POLICY, SECURE_HEADERS

_ID_FIELD = REQUEST_ID_HEADER.encode()
_PLAIN_ID = re.compile(rb"[A-Za-z0-9._:-]{1,64}")
_READ_BY_PAGES = (b"access-control-expose-headers", b"retry-after, x-request-id")
_VARY = (b"vary", b"origin")
_ASKS_FIRST = b"access-control-request-method"
_BAD_REQUEST = 4400
"""The code of a close after which clients of graphql-transport-ws do not try again."""
_PREFLIGHT_SECONDS = 7_200
"""How long a browser remembers what it may send. Chrome remembers no longer."""


class AroundEndpoints:
    """ASGI middleware around every endpoint.

    It answers if an endpoint fails (500), is cut off by a stop (503), or gets a request whose body is too large (413).
    An unexpected error is logged with an id, and the client gets only that id. Starlette's middleware answers
    preflights; for other requests from pages it takes 13 µs, and this takes 2 (a loop over `__call__` and an app that
    does nothing).
    """

    def __init__(
        self, app: ASGIApp, origins: Origins, max_body_bytes: int, *, https_only: bool = False
    ) -> None:
        """Pages of `origins` may read answers; requests from others are answered, but browsers do not show the answer.

        With `https_only`, a browser that has used HTTPS once uses nothing else for a year.
        """
        self.app = app
        self._preflights = CORSMiddleware(
            app,
            allow_origins=() if origins.pattern else ("*",),
            allow_origin_regex=origins.pattern.pattern if origins.pattern else None,
            allow_methods=("GET", "POST"),
            allow_headers=("*",),
            max_age=_PREFLIGHT_SECONDS,
        )
        self._most = max_body_bytes
        self._pages = (*SECURE_HEADERS, HTTPS_ONLY) if https_only else SECURE_HEADERS
        self._all_else = (*self._pages, NO_CONTENT_POLICY)
        self._of_origin = remembered(partial(_headers_for, origins))

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "websocket":
            await _refuse_websocket(scope, receive, send)
            return
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        path: str = scope["path"]
        if path.endswith("/") and path.removeprefix(scope.get("root_path", "")) not in ("", "/"):
            # Starlette would redirect it, to the host that the client names.
            scope = {**scope, "path": path[:-1]}
        fields = request_headers(scope).fields
        request_id = _id_of(fields)
        REQUEST_ID.set(request_id)
        app, of_request = self.app, [(_ID_FIELD, request_id.encode())]
        origin = fields.get(b"origin")
        if origin is not None:
            if scope["method"] == "OPTIONS" and _ASKS_FIRST in fields:
                app = self._preflights
            else:
                of_request = [*self._of_origin(origin), *of_request]
        is_started = False

        async def sending(message: Message) -> None:
            nonlocal is_started
            is_started = True
            if message["type"] == "http.response.start":
                headers, added = message.get("headers", ()), self._all_else
                for name, _ in headers:
                    if name == NO_CONTENT_POLICY[0]:
                        added = self._pages
                message["headers"] = [*headers, *added, *of_request]
            await send(message)

        try:
            await app(scope, self._limited(fields, receive), sending)
        except asyncio.CancelledError:
            # The server stops and has waited long enough. Who is left can ask another one.
            if not is_started:
                stopped = RequestRefusedError(
                    "the server is shutting down; retry the request", 503, Code.UNAVAILABLE
                )
                headers = {"retry-after": "1", "connection": "close"}
                await _refusal(stopped, headers)(scope, receive, sending)
        except RequestRefusedError as refused:
            await _refusal(refused)(scope, receive, sending)
        except Exception as error:
            # A partly sent answer cannot be taken back, so the connection is closed.
            if is_started:
                raise
            await _answer([internal_error(error)], 500)(scope, receive, sending)

    def _limited(self, fields: HeaderFields, receive: Receive) -> Receive:
        """Returns a function that receives the body. It raises RequestRefusedError for more bytes than allowed."""
        most, length = self._most, fields.get(b"content-length", b"")
        count = int(length) if length.isdigit() else 0
        if length.isdigit() and count <= most:
            return receive  # the server takes no more than that from the connection

        async def receiving() -> Message:
            nonlocal count
            if count <= most:
                message = await receive()
                count += len(message.get("body", b""))
                if count <= most:
                    return message
            raise RequestRefusedError(f"the body of a request is limited to {most:,} bytes", 413)

        return receiving


async def _refuse_websocket(scope: Scope, receive: Receive, send: Send) -> None:
    """Closes a WebSocket with the reason. It is opened first, because browsers show no other answer."""
    await receive()
    offered = scope.get("subprotocols") or [None]
    await send({"type": "websocket.accept", "subprotocol": offered[0]})
    await send({"type": "websocket.close", "code": _BAD_REQUEST, "reason": NO_WEBSOCKETS})


def _id_of(fields: HeaderFields) -> str:
    """Returns the id that a proxy or the client gave to a request, if it is short and plain; else a unique one."""
    given = fields.get(_ID_FIELD)
    if given is not None and _PLAIN_ID.fullmatch(given):
        return given.decode()
    return os.urandom(16).hex()


def _headers_for(origins: Origins, origin: bytes) -> tuple[tuple[bytes, bytes], ...]:
    """Returns the headers that allow or forbid pages of an origin to read an answer."""
    if not origins.allow(origin.decode("latin-1")):
        return (_VARY,)
    return ((b"access-control-allow-origin", origin if origins.pattern else b"*"), _READ_BY_PAGES, _VARY)


def _refusal(refused: RequestRefusedError, headers: dict[str, str] | None = None) -> Response:
    return _answer(refused.response["errors"], refused.status or 400, headers)


def _answer(errors: list[dict[str, Any]], status: int, headers: dict[str, str] | None = None) -> Response:
    with_request_id(errors)
    return Response(orjson.dumps({"errors": errors}), status, headers, media_type="application/json")
