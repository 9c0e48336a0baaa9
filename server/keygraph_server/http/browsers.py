"""What browsers may do with an answer: headers that keep them from more than to read it, and which pages may read it (CORS)."""

from __future__ import annotations

from functools import partial

from starlette.middleware.cors import CORSMiddleware
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from keygraph_server.http.header_values import remembered
from keygraph_server.http.origins import Origins
from keygraph_server.secure_headers import HTTPS_ONLY, NO_CONTENT_POLICY, SECURE_HEADERS

_READ_BY_PAGES = (b"access-control-expose-headers", b"retry-after, x-request-id")
_VARY = (b"vary", b"origin")
_PREFLIGHT_SECONDS = 7_200
"""How long a browser remembers what it may send. Chrome remembers no longer."""


class BrowserHeaders(CORSMiddleware):
    """ASGI middleware that adds the headers to every answer. Starlette's own answers preflights.

    For other requests of pages, Starlette takes 13 µs and this takes 2 (a loop over `__call__` and an app that does nothing).
    """

    def __init__(self, app: ASGIApp, origins: Origins, *, https_only: bool = False) -> None:
        """Pages of `origins` may read answers; requests of others are answered, but browsers do not show the answer.

        With `https_only`, a browser that has once used HTTPS asks by nothing else for a year.
        """
        super().__init__(
            app,
            allow_origins=() if origins.pattern else ("*",),
            allow_origin_regex=origins.pattern.pattern if origins.pattern else None,
            allow_methods=("GET", "POST"),
            allow_headers=("*",),
            max_age=_PREFLIGHT_SECONDS,
        )
        self._pages = (*SECURE_HEADERS, HTTPS_ONLY) if https_only else SECURE_HEADERS
        self._all_else = (*self._pages, NO_CONTENT_POLICY)
        self._of_origin = remembered(partial(_headers_for, origins))

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        origin = None
        for name, value in scope["headers"]:
            if name == b"origin":
                origin = value
        is_preflight = origin is not None and scope["method"] == "OPTIONS"
        of_origin = () if origin is None or is_preflight else self._of_origin(origin)

        async def sending(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers, added = message.get("headers", ()), self._all_else
                for name, _ in headers:
                    if name == NO_CONTENT_POLICY[0]:
                        added = self._pages
                message["headers"] = [*headers, *added, *of_origin]
            await send(message)

        await (super().__call__ if is_preflight else self.app)(scope, receive, sending)


def _headers_for(origins: Origins, origin: bytes) -> tuple[tuple[bytes, bytes], ...]:
    """The headers by which pages of an origin may read an answer, or may not."""
    if not origins.allow(origin.decode("latin-1")):
        return (_VARY,)
    return ((b"access-control-allow-origin", origin if origins.pattern else b"*"), _READ_BY_PAGES, _VARY)
