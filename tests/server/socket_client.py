"""A client of graphql-transport-ws that can also do wrong, on wsproto."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from typing import Any

from wsproto import ConnectionType, WSConnection
from wsproto.events import (
    AcceptConnection,
    CloseConnection,
    Event,
    Ping,
    Pong,
    RejectConnection,
    Request,
    TextMessage,
)

SECONDS = 20.0


class Closed(Exception):
    """The server has closed the connection."""

    def __init__(self, code: int, reason: str) -> None:
        self.code, self.reason = code, reason
        super().__init__(code, reason)


class SocketClient:
    """One connection."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.reader, self.writer = reader, writer
        self.connection = WSConnection(ConnectionType.CLIENT)
        self.events: list[Event] = []
        self.pongs = 0

    async def open(
        self, protocols: Sequence[str], headers: Sequence[tuple[bytes, bytes]], host: str
    ) -> Event:
        request = Request(host=host, target="/graphql", subprotocols=[*protocols], extra_headers=[*headers])
        self.writer.write(self.connection.send(request))
        return await self._event()

    async def _event(self) -> Event:
        async with asyncio.timeout(SECONDS):
            while not self.events:
                data = await self.reader.read(65_536)
                self.connection.receive_data(data or None)
                self.events += self.connection.events()
        return self.events.pop(0)

    async def send(self, message: Any) -> None:
        text = message if isinstance(message, str) else json.dumps(message)
        self.writer.write(self.connection.send(TextMessage(data=text)))
        await self.writer.drain()

    async def ping(self) -> None:
        self.writer.write(self.connection.send(Ping(payload=b"x")))
        await self.writer.drain()

    async def read(self) -> Any:
        """The next message. Raises Closed."""
        text = ""
        while True:
            match await self._event():
                case TextMessage(data=data, message_finished=finished):
                    text += data
                    if finished:
                        return json.loads(text)
                case CloseConnection(code=code, reason=reason):
                    raise Closed(code, reason or "")
                case Pong():
                    self.pongs += 1
                case Ping() as ping:
                    self.writer.write(self.connection.send(ping.response()))

    async def begin(self, payload: Any = None) -> None:
        await self.send({"type": "connection_init", **({} if payload is None else {"payload": payload})})
        assert await self.read() == {"type": "connection_ack"}

    async def subscribe(self, key: str, query: str, **more: Any) -> None:
        await self.send({"id": key, "type": "subscribe", "payload": {"query": query, **more}})

    async def closing(self) -> Closed:
        """How the server closes the connection, after whatever else it sends."""
        try:
            while True:
                await self.read()
        except Closed as closed:
            return closed


@asynccontextmanager
async def socket_to(
    port: int,
    *,
    protocols: Sequence[str] = ("graphql-transport-ws",),
    headers: Sequence[tuple[bytes, bytes]] = (),
    host: str = "localhost",
) -> AsyncIterator[SocketClient]:
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    client = SocketClient(reader, writer)
    try:
        opened = await client.open(protocols, headers, host)
        assert isinstance(opened, AcceptConnection), opened
        yield client
    finally:
        writer.transport.abort()


async def refused(port: int, **given: Any) -> RejectConnection:
    """How the server refuses to open a connection."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    client = SocketClient(reader, writer)
    try:
        given = {"protocols": ("graphql-transport-ws",), "headers": (), "host": "localhost"} | given
        opened = await client.open(**given)
        assert isinstance(opened, RejectConnection), opened
        return opened
    finally:
        writer.transport.abort()
