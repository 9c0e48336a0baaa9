"""Hostile clients of live queries: WebSockets that flood the server, listen by the thousand or never read, and streams of
events that are reset."""

from __future__ import annotations

import asyncio
import struct
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from functools import partial
from itertools import count

import orjson

from bench.compare.load import http_post
from bench.reliability.attacks import again, under_attack, without_store
from bench.reliability.clients import Client
from bench.reliability.scenarios import Outcomes

_SECONDS = 2.0
"""How long a hostile client keeps a connection."""
_TEXT, _PART, _PING = 1, 0, 9
_USER = 'subscription { user(userId: "U0001") { name } }'
_ORDERS = (
    '{ user(userId: "U0001") { orders(first: 10) { nodes { orderId total items { edges { quantity } } } } } }'
)
_numbers = count()

Attack = Callable[[int], Awaitable[None]]


def _frame(payload: bytes, kind: int = _TEXT, *, is_last: bool = True) -> bytes:
    """A frame of a client (RFC 6455, 5.2), whose mask is zero."""
    first, size = kind | (0x80 if is_last else 0), len(payload)
    if size < 126:
        head = struct.pack("!BB", first, 0x80 | size)
    elif size < 65_536:
        head = struct.pack("!BBH", first, 0xFE, size)
    else:
        head = struct.pack("!BBQ", first, 0xFF, size)
    return head + bytes(4) + payload


def _subscribe(query: str, **variables: object) -> bytes:
    key = str(next(_numbers))
    payload = {"query": query, "variables": variables}
    return _frame(orjson.dumps({"id": key, "type": "subscribe", "payload": payload}))


def _subscribe_and_complete() -> bytes:
    key = str(next(_numbers))
    begins = {"id": key, "type": "subscribe", "payload": {"query": _USER}}
    return _frame(orjson.dumps(begins)) + _frame(orjson.dumps({"id": key, "type": "complete"}))


def _upgrade(port: int) -> bytes:
    return (
        b"GET /graphql HTTP/1.1\r\nHost: 127.0.0.1:%d\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n"
        b"Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==\r\n"
        b"Sec-WebSocket-Protocol: graphql-transport-ws\r\n\r\n" % port
    )


async def _socket(
    messages: Callable[[], bytes], port: int, *, times: int | None = None, reads: bool = True
) -> None:
    """Opens a WebSocket and sends messages, again and again or so many times, until it is closed or has its time."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port, limit=2**20 if reads else 1_000)
    writer.write(_upgrade(port))
    await reader.readuntil(b"\r\n\r\n")
    writer.write(_frame(b'{"type":"connection_init"}'))

    async def send() -> None:
        for number in count():
            if times is not None and number >= times:
                return
            writer.write(messages())
            await writer.drain()
            await asyncio.sleep(0)

    sending = asyncio.create_task(send())
    try:
        async with asyncio.timeout(_SECONDS):
            while reads and await reader.read(65_536):
                pass
            await asyncio.sleep(_SECONDS)
    finally:
        sending.cancel()
        with suppress(asyncio.CancelledError, OSError):
            await sending
        writer.transport.abort()


async def _events(port: int) -> None:
    """Requests a stream of events and resets the connection."""
    _, writer = await asyncio.open_connection("127.0.0.1", port)
    request = http_post(port, "/graphql", orjson.dumps({"query": _USER}))
    writer.write(request.replace(b"Accept: application/json", b"Accept: text/event-stream"))
    await asyncio.sleep(0.1)
    writer.transport.abort()


async def _changes(port: int) -> None:
    """Changes the record that all follow."""
    query = f'mutation {{ updateUser(input: {{ userId: "U0001", name: "n{next(_numbers)}" }}) {{ user {{ name }} }} }}'
    client = Client(port, "127.0.0.3")
    try:
        await client.answer(http_post(port, "/graphql", orjson.dumps({"query": query})))
    finally:
        client.close()
    await asyncio.sleep(0.05)


def _same(message: bytes) -> Callable[[], bytes]:
    return lambda: message


_BEGINS = _frame(b"{", is_last=False)
_ATTACKS: dict[str, Sequence[Attack]] = {
    "20 clients with pings": [partial(_socket, _same(_frame(b"", _PING) * 5_000))] * 20,
    "20 clients with messages in frames of a byte": [
        partial(_socket, _same(_BEGINS + _frame(b" ", _PART, is_last=False) * 5_000))
    ]
    * 20,
    "20 clients with messages of 900 KB": [
        partial(_socket, _same(_frame(b'{"type":"ping","payload":{"a":"%s"}}' % (b"x" * 900_000))))
    ]
    * 20,
    "100 clients that subscribe and complete": [partial(_socket, _subscribe_and_complete)] * 100,
    "100 clients that ask and never read": [partial(_socket, lambda: _subscribe(_ORDERS), reads=False)] * 100,
    "50 clients that subscribe with variables of 90 KB": [
        partial(_socket, lambda: _subscribe(_USER, unused="x" * 90_000))
    ]
    * 50,
    "200 clients that reset their streams of events": [_events] * 200,
    "5,000 subscriptions to a record that changes": [
        *[partial(_socket, lambda: _subscribe(_USER), times=100)] * 50,
        _changes,
    ],
}


async def live(port: int, pid: int, seconds: float) -> Outcomes:
    """Hostile clients of one address, each kind in turn; another client asks as usual."""
    outcomes: Outcomes = []
    usual = await without_store(port)
    for name, attacks in _ATTACKS.items():
        hostile = [partial(again, attack, port) for attack in attacks]
        outcomes += await under_attack(port, pid, seconds, f"{seconds:.0f} s of {name}", hostile, usual)
    return outcomes
