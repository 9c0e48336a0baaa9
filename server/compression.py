"""Compression of answers: whether the client takes it, and doing it."""

from __future__ import annotations

import asyncio
import zlib
from functools import lru_cache

from server.header_values import parse_media_type, quality

LEVEL = 1
_THREAD_ABOVE = 256 * 1024
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
