"""Compression of answers: whether the client takes it, and doing it."""

from __future__ import annotations

import asyncio
import zlib
from functools import lru_cache

from starlette.middleware.gzip import GZipResponder, IdentityResponder
from starlette.types import ASGIApp, Receive, Scope, Send

from keygraph_server.header_values import header_fields, parse_media_type, quality

LEVEL = 1
"""The fastest takes seven eighths of a JSON answer away, the best takes ten times as long for the half of the rest."""
_THREAD_ABOVE = 1024 * 1024
"""More bytes are compressed in a thread: it would take milliseconds in which nothing else is answered."""


@lru_cache(maxsize=256)
def takes_gzip(accept_encoding: bytes) -> bool:
    """Whether a client takes gzip, by its Accept-Encoding, and likes it no less than nothing (RFC 9110, 12.5.3)."""
    weights: dict[str, float] = {}
    for part in accept_encoding.decode("latin-1").split(","):
        name, parameters = parse_media_type(part)
        if name:
            weights["gzip" if name == "x-gzip" else name] = quality(parameters)
    anything = weights.get("*", 0.0)
    gzip = weights.get("gzip", anything)
    return gzip > 0 and gzip >= weights.get("identity", 0.0)


async def compressed(body: bytes) -> bytes:
    """The body, compressed with gzip."""
    if len(body) > _THREAD_ABOVE:
        return await asyncio.to_thread(_gzip, body)
    return _gzip(body)


def _gzip(body: bytes) -> bytes:
    return zlib.compress(body, LEVEL, wbits=31)


class CompressedFiles:
    """ASGI middleware that compresses what an endpoint sends, piece by piece, where the client takes that.

    Starlette's own middleware compresses also for who refuses gzip (`gzip;q=0`).
    """

    def __init__(self, app: ASGIApp, above: int) -> None:
        """Answers of fewer bytes than `above` stay as they are; 0 is all of them."""
        self.app = app
        self._above = above

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if self._above == 0:
            await self.app(scope, receive, send)
        elif takes_gzip(header_fields(scope).get(b"accept-encoding", b"")):
            await GZipResponder(self.app, self._above, LEVEL)(scope, receive, send)
        else:
            # It says `Vary: Accept-Encoding` of what it would have compressed.
            await IdentityResponder(self.app, self._above)(scope, receive, send)
