"""A DynamoDB that fails on demand: it forwards requests to a real one, or answers with a fault, or not at all."""

from __future__ import annotations

import asyncio
import random
from enum import Enum
from urllib.parse import urlsplit

HANGS_SECONDS = 3600.0
_FAULTS = (
    (500, "InternalServerError"),
    (400, "ProvisionedThroughputExceededException"),
    (400, "ThrottlingException"),
    (503, "ServiceUnavailable"),
)
_LARGE_BYTES = 2_000_000_000
_SPACES = b" " * 1_000_000
_REASONS = {200: "OK", 400: "Bad Request", 500: "Internal Server Error", 503: "Service Unavailable"}


class Mode(Enum):
    """How requests are treated."""

    WELL = "well"
    FAULTS = "faults"
    HUNG = "hung"
    GONE = "gone"
    ODD = "odd"
    LARGE = "large"


class Upstream:
    """Listens in front of a DynamoDB. `share` is the share of requests that fail in the mode FAULTS."""

    def __init__(self, store_url: str, share: float = 0.3, seed: int = 1) -> None:
        parts = urlsplit(store_url)
        self._place = (parts.hostname or "127.0.0.1", parts.port or 8000)
        self._share = share
        self._random = random.Random(seed)
        self._writers: set[asyncio.StreamWriter] = set()
        self._server: asyncio.Server | None = None
        self._port = 0
        self.mode = Mode.WELL
        self.requests = 0

    async def __aenter__(self) -> Upstream:
        await self._listen()
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._close()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self._port}"

    async def become(self, mode: Mode) -> None:
        """Changes how requests are treated from now on. Those that hang are released."""
        was, self.mode = self.mode, mode
        if mode is Mode.GONE:
            await self._close()
        elif was is Mode.GONE:
            await self._listen()
        elif was is Mode.HUNG:
            self._drop()

    async def _listen(self) -> None:
        self._server = await asyncio.start_server(self._serve, "127.0.0.1", self._port, limit=2**24)
        self._port = self._server.sockets[0].getsockname()[1]

    async def _close(self) -> None:
        if self._server is not None:
            self._server.close()
        self._drop()

    def _drop(self) -> None:
        for writer in self._writers:
            writer.transport.abort()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._writers.add(writer)
        behind: tuple[asyncio.StreamReader, asyncio.StreamWriter] | None = None
        try:
            while True:
                request = await _message(reader)
                self.requests += 1
                if self.mode is Mode.HUNG:
                    await asyncio.sleep(HANGS_SECONDS)
                if self.mode is Mode.FAULTS and self._random.random() < self._share:
                    status, name = self._random.choice(_FAULTS)
                    if self._random.random() < 0.25:
                        return
                    writer.write(_fault(status, name))
                    continue
                if self.mode is Mode.ODD:
                    writer.write(self._random.choice(_ODD))
                    continue
                if self.mode is Mode.LARGE:
                    writer.write(_answer(200, b"", _LARGE_BYTES))
                    for _ in range(_LARGE_BYTES // len(_SPACES)):
                        writer.write(_SPACES)
                        await writer.drain()
                    continue
                if behind is None:
                    behind = await asyncio.open_connection(*self._place, limit=2**24)
                behind[1].write(request)
                writer.write(await _message(behind[0]))
        except (OSError, EOFError, asyncio.CancelledError):
            return
        finally:
            self._writers.discard(writer)
            writer.close()
            if behind is not None:
                behind[1].close()


async def _message(reader: asyncio.StreamReader) -> bytes:
    """Reads a whole HTTP message, with a Content-Length or chunked."""
    head = await reader.readuntil(b"\r\n\r\n")
    known = head.lower()
    if b"transfer-encoding: chunked" in known:
        parts = [head]
        # The last chunk is empty.
        while len(parts) == 1 or parts[-1] != b"\r\n":
            size = await reader.readuntil(b"\r\n")
            parts += [size, await reader.readexactly(int(size, 16) + 2)]
        return b"".join(parts)
    at = known.find(b"content-length:")
    length = int(head[at + 15 :].split(b"\r\n", 1)[0]) if at >= 0 else 0
    return head + await reader.readexactly(length)


def _fault(status: int, name: str) -> bytes:
    return _answer(
        status, b'{"__type":"com.amazonaws.dynamodb.v20120810#%s","message":"made up"}' % name.encode()
    )


def _answer(status: int, body: bytes, length: int | None = None) -> bytes:
    head = (
        f"HTTP/1.1 {status} {_REASONS[status]}\r\nContent-Type: application/x-amz-json-1.0\r\n"
        f"Content-Length: {len(body) if length is None else length}\r\n\r\n"
    )
    return head.encode() + body


_ODD = (
    *(
        _fault(400, name)
        for name in (
            "KMSAccessDeniedException",
            "ResourceInUseException",
            "TransactionCanceledException",
            "X",
        )
    ),
    *(
        _answer(200, body)
        for body in (
            b"",
            b"[]",
            b'{"Items":[5],"Count":1,"ScannedCount":1}',
            b'{"Items":[{"PK":{"B":99999999999}}],"Count":1,"ScannedCount":1}',
            b'{"Items":{},"Count":"1","ScannedCount":1e308}',
            b'{"Item":{"PK":{"S":5}}}',
            b'{"Responses":[]}',
            b'{"Items":' + b'[{"L":' * 400 + b"1" + b"}]" * 400 + b',"Count":1,"ScannedCount":1}',
        )
    ),
    _answer(200, b" " * 100_000, _LARGE_BYTES),
)
"""Answers that DynamoDB does not give."""
