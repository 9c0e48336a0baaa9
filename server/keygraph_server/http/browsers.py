"""What browsers may do with an answer: headers that keep them from more than to read it, and which pages may read it (CORS)."""

from __future__ import annotations

from starlette.middleware.cors import CORSMiddleware
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from keygraph_server.http.origins import Origins
from keygraph_server.secure_headers import NO_CONTENT_POLICY, SECURE_HEADERS

_READ_BY_PAGES = ("retry-after", "x-request-id")
_PREFLIGHT_SECONDS = 7_200
"""How long a browser remembers what it may send. Chrome remembers no longer."""

_HTTPS_ONLY = (b"strict-transport-security", b"max-age=31536000")
"""Browsers ignore it in an answer that did not come by HTTPS."""


class BrowserHeaders(CORSMiddleware):
    """ASGI middleware that adds the headers to every answer. CORS is Starlette's, for the requests that have an origin."""

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
            expose_headers=_READ_BY_PAGES,
            max_age=_PREFLIGHT_SECONDS,
        )
        self._always = (*SECURE_HEADERS, _HTTPS_ONLY) if https_only else SECURE_HEADERS

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        async def sending(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = message.get("headers", ())
                has_policy = any(name == NO_CONTENT_POLICY[0] for name, _ in headers)
                message["headers"] = [*headers, *self._always, *(() if has_policy else (NO_CONTENT_POLICY,))]
            await send(message)

        # Requests of programs and of this server's own pages have no origin, and Starlette would make objects for them.
        if scope["type"] == "http" and any(name == b"origin" for name, _ in scope["headers"]):
            await super().__call__(scope, receive, sending)
        else:
            await self.app(scope, receive, sending)
