"""Servers that answer what a test says, and servers whose answers have no end."""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress

Handler = Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]]


@asynccontextmanager
async def listening(handler: Handler, tls: ssl.SSLContext | None = None) -> AsyncIterator[str]:
    """The host and port of a server that does this with each connection."""
    async with await asyncio.start_server(handler, "127.0.0.1", 0, ssl=tls) as server:
        yield f"127.0.0.1:{server.sockets[0].getsockname()[1]}"


@asynccontextmanager
async def answering(answer: bytes) -> AsyncIterator[str]:
    """The host and port of a server that answers anything with these bytes."""

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(answer)
        await writer.drain()
        writer.close()

    async with listening(serve) as host:
        yield host


class Endless:
    """Answers with a head, and then with a part again and again until the client goes, or 128 MB are written."""

    def __init__(self, head: bytes, part: bytes = b" " * 2**16) -> None:
        self.head, self.part = head, part
        self.written = list[int]()
        """How many bytes of parts each connection was sent."""

    async def __call__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.written.append(0)
        await reader.read(2**16)
        writer.write(self.head)
        with suppress(ConnectionError):
            while self.written[-1] < 2**27:
                writer.write(self.part)
                self.written[-1] += len(self.part)
                await writer.drain()
        writer.close()
