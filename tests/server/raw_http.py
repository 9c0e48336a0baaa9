"""A server for tests of connections, in this process, and clients that write their bytes themselves."""

from __future__ import annotations

import asyncio
import json
import socket
import struct
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from functools import partial
from typing import Any

import uvicorn

from keygraph_server.connections.factory import Connections
from keygraph_server.connections.gate import ConnectionGate
from keygraph_server.connections.guarded import GuardedConnection
from keygraph_server.connections.settings import ConnectionSettings
from keygraph_server.listening import listen
from keygraph_server.processes.server import Server


class App:
    """Answers by the path, and keeps what has been asked."""

    def __init__(self) -> None:
        self.asked: list[str] = []
        self.addresses: list[str] = []
        self.fields: list[dict[str, str]] = []
        self.scope: Any = None
        """The last one."""
        self.is_gone = asyncio.Event()
        self.gone_at_once = 0
        """How many clients were gone before their requests were read."""
        self.is_open = asyncio.Event()

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        self.scope, path = scope, scope["path"]
        self.asked.append(path)
        self.addresses.append(scope["client"][0])
        match path.strip("/").partition("/"):
            case "unread", _, _:
                await self._answer(send, 413, b"too large")
            case "wait", _, _:
                self.gone_at_once += not await _body(receive)
                waiting = asyncio.create_task(receive())
                opened = asyncio.create_task(self.is_open.wait())
                done, rest = await asyncio.wait([waiting, opened], return_when=asyncio.FIRST_COMPLETED)
                for task in rest:
                    task.cancel()
                if waiting in done:
                    self.is_gone.set()
                await self._answer(send, 200, b"waited")
            case "big", _, size:
                await self._answer(send, 200, b"x" * int(size))
            case _:
                body = await _body(receive)
                fields = {name.decode("latin-1"): value.decode("latin-1") for name, value in scope["headers"]}
                self.fields.append(fields)
                text = b"%s %s %d" % (scope["method"].encode(), path.encode(), len(body))
                await self._answer(send, 200, text)

    async def _answer(self, send: Any, status: int, body: bytes) -> None:
        headers = [(b"content-length", b"%d" % len(body))]
        await send({"type": "http.response.start", "status": status, "headers": headers})
        await send({"type": "http.response.body", "body": body})


async def _body(receive: Any) -> bytes:
    body = b""
    while True:
        message = await receive()
        if message["type"] == "http.disconnect":
            return body
        body += message["body"]
        if not message["more_body"]:
            return body


class Answer:
    """The status, header fields and body of one answer."""

    def __init__(self, head: bytes, body: bytes) -> None:
        first, *lines = head.decode("latin-1").split("\r\n")
        self.status = int(first.split(" ")[1])
        self.fields = {line.partition(":")[0].lower(): line.partition(":")[2].strip() for line in lines}
        self.body = body

    @property
    def code(self) -> str:
        (error,) = json.loads(self.body)["errors"]
        return str(error["extensions"]["code"])


class Client:
    """A client's connection."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.reader, self.writer = reader, writer

    async def send(self, data: bytes) -> None:
        """Sends bytes. What the server wrote before it closed the connection can be read afterwards."""
        self.writer.write(data)
        with suppress(ConnectionError):
            await self.writer.drain()

    async def read(self) -> Answer:
        while True:
            head = (await asyncio.wait_for(self.reader.readuntil(b"\r\n\r\n"), 20))[:-4]
            answer = Answer(head, b"")
            if answer.status != 100:
                answer.body = await self.reader.readexactly(int(answer.fields["content-length"]))
                return answer

    async def rest(self) -> bytes | None:
        """What else is sent until the connection is closed; None if it is reset."""
        try:
            return await asyncio.wait_for(self.reader.read(), 20)
        except ConnectionError:
            return None

    async def ask(self, path: str, body: bytes = b"", **fields: str) -> Answer:
        await self.send(request(path, body, **fields))
        return await self.read()

    def is_open(self) -> bool:
        return not self.reader.at_eof() and self.reader.exception() is None

    async def close(self) -> None:
        self.writer.transport.abort()


RESETS_AT_ONCE = (socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
"""The option of a socket that resets its connection when it is closed."""


class Running:
    """A server that runs, its application, and its clients."""

    def __init__(self, app: App, server: uvicorn.Server, port: int, connections: Connections) -> None:
        self.app, self.server, self.port = app, server, port
        self.clients: list[Client] = []
        self._connections = connections

    @property
    def gate(self) -> Any:
        return self._connections._gate

    async def connect(self, address: str = "127.0.0.1", receives: int | None = None) -> Client:
        """A new connection from an address; `receives` is the size of its system's buffer."""
        own = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
        if receives is not None:
            own.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, receives)
        own.bind((address, 0))
        own.setblocking(False)
        await asyncio.get_running_loop().sock_connect(own, ("127.0.0.1", self.port))
        reader, writer = await asyncio.open_connection(sock=own)
        self.clients.append(Client(reader, writer))
        return self.clients[-1]


@asynccontextmanager
async def running(
    protocol: type[GuardedConnection],
    *,
    https_only: bool = False,
    hosts: list[str] | None = None,
    served: Any = None,
    **settings: Any,
) -> AsyncIterator[Running]:
    """A server whose connections are bounded by these settings. It serves another application than App if that is given."""
    listening = listen("127.0.0.1", 0)
    limits = ConnectionSettings(**settings)
    app = App()
    gate = partial(
        ConnectionGate, limits, https_only=https_only, hosts=hosts, has_websockets=served is not None
    )
    connections = Connections(gate, protocol)
    config = uvicorn.Config(
        served or app,
        http=connections,  # type: ignore[arg-type]  # uvicorn calls it, as it calls a class
        ws="none",
        lifespan="on" if served else "off",
        log_config=None,
        timeout_graceful_shutdown=20,
        timeout_keep_alive=1_000,
    )
    server = Server(config)
    serving = asyncio.create_task(server.serve([listening]))
    while not server.started:  # noqa: ASYNC110  # uvicorn has no event for it
        await asyncio.sleep(0.01)
    found = Running(app, server, listening.getsockname()[1], connections)
    try:
        yield found
    finally:
        for client in found.clients:
            await client.close()
        server.should_exit = True
        await serving


def request(path: str, body: bytes = b"", **fields: str) -> bytes:
    """A request, whose fields are written with `_` for `-`."""
    lines = [f"{'POST' if body else 'GET'} {path} HTTP/1.1", "Host: keygraph"]
    if body:
        lines.append(f"Content-Length: {len(body)}")
    lines += [f"{name.replace('_', '-')}: {value}" for name, value in fields.items()]
    return "\r\n".join([*lines, "", ""]).encode("latin-1") + body


def padded(size: int, **fields: str) -> bytes:
    """A request without a body whose head has so many bytes."""
    shortest = len(request("/padded", Padding="", **fields))
    return request("/padded", Padding="x" * (size - shortest), **fields)


@asynccontextmanager
async def connected(
    protocol: type[GuardedConnection], **settings: Any
) -> AsyncIterator[tuple[Running, Client]]:
    """A server as `running`, with a client."""
    async with running(protocol, **settings) as server:
        yield server, await server.connect()
