"""Compression of responses: whether the client accepts gzip, and the compression itself."""

from __future__ import annotations

import zlib

from starlette.middleware.gzip import GZipResponder, IdentityResponder
from starlette.types import ASGIApp, Receive, Scope, Send

from keygraph_resolvers.worker_thread import WorkerThread
from keygraph_server.http.requests import parse_media_type, quality, remembered, request_headers

LEVEL = 1
"""The fastest level removes seven eighths of a JSON response. The best halves the rest in ten times the time."""
_GZIP = 31
"""The size of zlib's window, and gzip's format."""
_THREAD_ABOVE = 1024 * 1024
"""Larger bodies are compressed in a thread, because the event loop would be blocked for milliseconds."""


@remembered
def takes_gzip(accept_encoding: bytes) -> bool:
    """Whether an Accept-Encoding accepts gzip and does not prefer no compression (RFC 9110, 12.5.3)."""
    weights: dict[str, float] = {}
    for part in accept_encoding.decode("latin-1").split(","):
        name, parameters = parse_media_type(part)
        if name:
            weights["gzip" if name == "x-gzip" else name] = quality(parameters)
    anything = weights.get("*", 0.0)
    gzip = weights.get("gzip", anything)
    return gzip > 0 and gzip >= weights.get("identity", 0.0)


async def compressed(body: bytes, thread: WorkerThread) -> bytes:
    """The body, compressed with gzip."""
    if len(body) > _THREAD_ABOVE:
        return await thread.run(zlib.compress, body, LEVEL, _GZIP)
    return zlib.compress(body, LEVEL, _GZIP)


class CompressedFiles:
    """ASGI middleware that compresses responses piece by piece, for clients that accept gzip.

    Starlette's own middleware also compresses for clients that refuse gzip (`gzip;q=0`).
    """

    def __init__(self, app: ASGIApp, above: int) -> None:
        """Responses of fewer bytes than `above` are not compressed; with 0, none is."""
        self.app = app
        self._above = above

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if self._above == 0:
            await self.app(scope, receive, send)
        elif takes_gzip(request_headers(scope).fields.get(b"accept-encoding", b"")):
            await GZipResponder(self.app, self._above, LEVEL)(scope, receive, send)
        else:
            # Adds `Vary: Accept-Encoding` to responses that it would have compressed.
            await IdentityResponder(self.app, self._above)(scope, receive, send)
