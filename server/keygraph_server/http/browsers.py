"""What browsers may do with an answer: headers that keep them from more than to read it, and which pages may read it (CORS)."""

from __future__ import annotations

from starlette.middleware.cors import CORSMiddleware
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from keygraph_server.http.origins import Origins

_READ_BY_PAGES = ("retry-after", "x-request-id")
_PREFLIGHT_SECONDS = 7_200
"""How long a browser remembers what it may send. Chrome remembers no longer."""

_POLICY = b"content-security-policy"
_NOTHING = (_POLICY, b"default-src 'none'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'")
"""For answers without a policy of their own, which are no pages."""
_ALWAYS = (
    (b"x-content-type-options", b"nosniff"),
    (b"x-frame-options", b"DENY"),
    (b"referrer-policy", b"no-referrer"),
    (b"cross-origin-resource-policy", b"same-origin"),
    (b"cross-origin-opener-policy", b"same-origin"),
)
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
        self._always = (*_ALWAYS, _HTTPS_ONLY) if https_only else _ALWAYS

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        async def sending(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = message.get("headers", ())
                has_policy = any(name == _POLICY for name, _ in headers)
                message["headers"] = [*headers, *self._always, *(() if has_policy else (_NOTHING,))]
            await send(message)

        # Requests of programs and of this server's own pages have no origin, and Starlette would make objects for them.
        if scope["type"] == "http" and any(name == b"origin" for name, _ in scope["headers"]):
            await super().__call__(scope, receive, sending)
        else:
            await self.app(scope, receive, sending)
