"""How much of an HTTP body in chunks may be framing, of a client as of DynamoDB."""

from __future__ import annotations

_CHUNKS, _CHUNK = 128, 1_024


def is_mostly_framing(body: int, chunks: int, framing: int, most: int) -> bool:
    """Returns whether a body of so many bytes came in too many chunks, or with too many bytes beside it.

    It may have 128 chunks, and one more for each KB: each takes about a microsecond, as long as reading hundreds of bytes
    takes. Sizes, extensions and trailers may take `most` bytes, and a quarter of the body's.
    """
    return chunks > _CHUNKS + body // _CHUNK or framing > most + body // 4
