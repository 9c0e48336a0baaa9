"""What reading an answer's bytes costs, by `keygraph.engines.dynamodb.http1` and by httptools, which must be installed: `python -m bench.parsing`."""

from __future__ import annotations

import importlib
import time
from collections.abc import Callable
from typing import Any

from bench.stub import head
from keygraph.engines.dynamodb.http1 import AnswerReader

TURNS = 9
ANSWERS = 5000
"""How many are read in a turn."""
SIZES = (450, 30_000)


class _Told:
    """An answer as httptools tells of it, with all that the transport needs to know."""

    def __init__(self) -> None:
        self.headers: dict[str, str] = {}
        self.parts: list[bytes] = []
        self.is_whole = False

    def on_header(self, name: bytes, value: bytes) -> None:
        self.headers[name.decode("latin-1").lower()] = value.decode("latin-1")

    def on_body(self, part: bytes) -> None:
        self.parts.append(part)

    def on_message_complete(self) -> None:
        self.is_whole = True


def _by_httptools(parser: Any, sent: bytes) -> bytes:
    told = _Told()
    reading = parser(told)
    reading.feed_data(sent)
    reading.should_keep_alive()
    if not told.is_whole or reading.get_status_code() != 200:
        raise ValueError("no whole answer")
    return b"".join(told.parts)


def _by_ours(sent: bytes) -> bytes:
    reply = AnswerReader().feed(sent)
    if reply is None or reply.status != 200:
        raise ValueError("no whole answer")
    return reply.body


def _taken(read: Callable[[bytes], bytes], sent: bytes) -> float:
    """Microseconds of processor time for an answer."""
    began = time.process_time()
    for _ in range(ANSWERS):
        read(sent)
    return (time.process_time() - began) / ANSWERS * 1e6


def main() -> None:
    """Prints the best turn of each."""
    parser: Any = importlib.import_module("httptools").HttpResponseParser
    ways: dict[str, Callable[[bytes], bytes]] = {
        "http1": _by_ours,
        "httptools": lambda sent: _by_httptools(parser, sent),
    }
    for size in SIZES:
        body = b"x" * size
        sent = head(body) + body
        assert all(read(sent) == body for read in ways.values())
        found = {name: min(_taken(read, sent) for _ in range(TURNS)) for name, read in ways.items()}
        print(f"{size:,} bytes: " + ", ".join(f"{name} {taken:.1f} µs" for name, taken in found.items()))


if __name__ == "__main__":
    main()
