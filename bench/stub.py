"""A server that answers DynamoDB's requests with prepared answers, so that only the client is measured."""

from __future__ import annotations

import asyncio
import multiprocessing
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from multiprocessing.connection import Connection

import orjson


class _Answering(asyncio.Protocol):
    """One connection; requests differ only by their target."""

    def __init__(self, answers: dict[bytes, bytes]) -> None:
        self._answers = answers
        self._received = b""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport

    def data_received(self, data: bytes) -> None:
        self._received += data
        while (end := self._received.find(b"\r\n\r\n")) >= 0:
            fields = dict(line.split(b": ", 1) for line in self._received[:end].lower().split(b"\r\n")[1:])
            length = end + 4 + int(fields[b"content-length"])
            if len(self._received) < length:
                return
            self._received = self._received[length:]
            self._transport.write(self._answers[fields[b"x-amz-target"].rpartition(b".")[2]])


def head(body: bytes) -> bytes:
    """Returns the head of an answer with this body, with the headers that DynamoDB sends."""
    return (
        "HTTP/1.1 200 OK\r\nServer: Server\r\nDate: Sat, 21 Nov 2026 12:00:00 GMT\r\n"
        f"Content-Type: application/x-amz-json-1.0\r\nContent-Length: {len(body)}\r\nConnection: keep-alive\r\n"
        "x-amzn-RequestId: 0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789ABCDEF\r\n"
        f"x-amz-crc32: {zlib.crc32(body)}\r\n\r\n"
    ).encode()


def _serve(answers: dict[str, bytes], port: Connection) -> None:
    async def run() -> None:
        whole = {name.lower().encode(): head(body) + body for name, body in answers.items()}
        server = await asyncio.get_running_loop().create_server(lambda: _Answering(whole), "127.0.0.1", 0)
        port.send(server.sockets[0].getsockname()[1])
        await server.serve_forever()

    asyncio.run(run())


@contextmanager
def stub(answers: dict[str, object]) -> Iterator[str]:
    """Yields the URL of a server in a separate process that gives each operation its one answer."""
    context = multiprocessing.get_context("spawn")
    receiving, sending = context.Pipe(duplex=False)
    encoded = {name: orjson.dumps(answer) for name, answer in answers.items()}
    process = context.Process(target=_serve, args=(encoded, sending), daemon=True)
    process.start()
    try:
        yield f"http://127.0.0.1:{receiving.recv()}"
    finally:
        process.terminate()
        process.join()
