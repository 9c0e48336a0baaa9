"""Middleware around every endpoint: it reads the headers of a request once, limits its body, and answers a failure
of the endpoint with an error that reveals no internals. Every answer has the id of its request, headers that let
browsers do nothing but read it, and headers that say which pages may read it (CORS)."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Awaitable
from functools import partial
from random import getrandbits
from time import perf_counter
from typing import Any

import orjson
from starlette.middleware.cors import CORSMiddleware
from starlette.responses import Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from keygraph.codes import Code
from keygraph_resolvers.engine.engine import ROUNDS, rounds
from keygraph_resolvers.errors import internal_error
from keygraph_server.connections import BEGINS, LET_THROUGH
from keygraph_server.connections.gate import network_of
from keygraph_server.errors import RequestRefusedError
from keygraph_server.http.graphql_http import FOREIGN, NO_WEBSOCKETS, EndpointOptions
from keygraph_server.http.origins import Origins, is_foreign
from keygraph_server.http.requests import (
    REQUEST_ID,
    REQUEST_ID_HEADER,
    WAITS_SINCE,
    HeaderFields,
    remembered,
    request_headers,
    with_request_id,
)
from keygraph_server.http.sockets import serve_socket
from keygraph_server.secure_headers import HTTPS_ONLY, NO_CONTENT_POLICY, NO_STORE, SECURE_HEADERS

GRAPHQL_PATH = "/graphql"
GRAPHQL_METHODS = ("POST", "GET")

_ID_FIELD = REQUEST_ID_HEADER.encode()
_PLAIN_ID = re.compile(rb"[A-Za-z0-9._:-]{1,64}")
_READ_BY_PAGES = (b"access-control-expose-headers", b"retry-after, x-request-id")
_VARY = (b"vary", b"origin")
_ASKS_FIRST = b"access-control-request-method"
_BAD_REQUEST = 4400
"""The code of a close after which clients of graphql-transport-ws do not try again."""
_UNCLOCKED = 16
"""So many requests begin without the clock of a round of the event loop, which takes longer than to look at it."""
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
        self,
        app: ASGIApp,
        origins: Origins,
        max_body_bytes: int,
        *,
        https_only: bool = False,
        graphql: ASGIApp | None = None,
        sockets: EndpointOptions | None = None,
    ) -> None:
        """Pages of `origins` may read answers; browsers show them to no others.

        With `https_only`, a browser that has used HTTPS once uses nothing else for a year. `graphql` gets its requests
        without a router, which would take as long as reading them. `sockets` are the options of WebSockets.
        """
        self.app = app
        self._graphql = graphql or app
        self._preflights = CORSMiddleware(
            app,
            allow_origins=() if origins.pattern else ("*",),
            allow_origin_regex=origins.pattern.pattern if origins.pattern else None,
            allow_methods=("GET", "POST"),
            allow_headers=("*",),
            max_age=_PREFLIGHT_SECONDS,
        )
        self._origins = origins
        self._most = max_body_bytes
        self._sockets = sockets
        self._begun = 0
        https = (HTTPS_ONLY,) if https_only else ()
        self._added = (*SECURE_HEADERS, *https, NO_CONTENT_POLICY, NO_STORE)
        self._of_origin = remembered(partial(_headers_for, origins))

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "websocket":
            await self._serve_websocket(scope, receive, send)
            return
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        self._begun += 1
        if self._begun % _UNCLOCKED == 0:
            rounds().count(0.0)
        shared = ROUNDS.get(asyncio.get_running_loop())
        if shared is not None and shared.ends and (shared.waiting or perf_counter() > shared.ends):
            client = network_of((scope.get("client") or ("",))[0])
            round_read, of_client = scope.get("state", {}).get(LET_THROUGH, (-2, ""))
            was_let_through = of_client == client and shared.number <= round_read + 1
            if not was_let_through and shared.has_to_wait(client):
                # Hundreds of requests that come at once do not begin at once, whatever they ask for.
                scope[WAITS_SINCE] = perf_counter()
                scope[BEGINS] = begins = shared.enter(client)
                if not await begins:
                    return  # nobody waits for the answer
        path, root = scope["path"], scope.get("root_path", "")
        if path.endswith("/") and path.removeprefix(root) not in ("", "/"):
            # Starlette would redirect it, to the host that the client names.
            scope = {**scope, "path": path[:-1]}
        fields = request_headers(scope).fields
        request_id = _id_of(fields)
        REQUEST_ID.set(request_id)
        is_graphql = scope["method"] in GRAPHQL_METHODS and scope["path"] == root + GRAPHQL_PATH
        app = self._graphql if is_graphql else self.app
        of_request = [(_ID_FIELD, request_id.encode())]
        origin = fields.get(b"origin")
        if origin is not None:
            if scope["method"] == "OPTIONS" and _ASKS_FIRST in fields:
                app = self._preflights
            else:
                of_request = [*self._of_origin(origin), *of_request]
        is_started = False

        def sending(message: Message) -> Awaitable[None]:
            nonlocal is_started
            is_started = True
            if message["type"] == "http.response.start":
                headers = message.get("headers", ())
                own = {name for name, _ in headers}
                if b"etag" in own:
                    own.add(NO_STORE[0])  # a file, which browsers keep while it is the same
                added = [field for field in self._added if field[0] not in own]
                message["headers"] = [*headers, *added, *of_request]
            return send(message)

        try:
            # The endpoint of GraphQL refuses them itself, and observes that.
            if scope["method"] == "POST" and not is_graphql and is_foreign(scope, self._origins):
                raise RequestRefusedError(FOREIGN, 403)
            await app(scope, self._limited(fields, receive), sending)
            return
        except asyncio.CancelledError:
            if is_started:
                return
            # The server stops and has waited long enough. Who is left can ask another one.
            stopped = RequestRefusedError(
                "the server is shutting down; retry the request", 503, Code.UNAVAILABLE
            )
            answer = _answer(stopped.response["errors"], 503, {"retry-after": "1", "connection": "close"})
        except RequestRefusedError as refused:
            answer = _answer(refused.response["errors"], refused.status or 400)
        except Exception as error:
            # A partly sent answer cannot be taken back, so the connection is closed.
            if is_started:
                raise
            answer = _answer([internal_error(error)], 500)
        await answer(scope, receive, sending)

    async def _serve_websocket(self, scope: Scope, receive: Receive, send: Send) -> None:
        path = scope["path"].removeprefix(scope.get("root_path", ""))
        if (
            self._sockets is None
            or getattr(scope["app"].state, "live", None) is None
            or path.rstrip("/") != GRAPHQL_PATH
        ):
            await _refuse_websocket(scope, receive, send)
            return
        request_id = _id_of(request_headers(scope).fields)
        REQUEST_ID.set(request_id)

        def sending(message: Message) -> Awaitable[None]:
            if message["type"] == "websocket.http.response.start":
                message["headers"] += [*self._added, (_ID_FIELD, request_id.encode())]
            return send(message)

        await serve_socket(scope, receive, sending, self._sockets, self._most)

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
    return f"{getrandbits(128):032x}"  # the system's own random bytes take a system call


def _headers_for(origins: Origins, origin: bytes) -> tuple[tuple[bytes, bytes], ...]:
    """Returns the headers that allow or forbid pages of an origin to read an answer."""
    if not origins.allow(origin.decode("latin-1")):
        return (_VARY,)
    return ((b"access-control-allow-origin", origin if origins.pattern else b"*"), _READ_BY_PAGES, _VARY)


def _answer(errors: list[dict[str, Any]], status: int, headers: dict[str, str] | None = None) -> Response:
    with_request_id(errors)
    return Response(orjson.dumps({"errors": errors}), status, headers, media_type="application/json")
