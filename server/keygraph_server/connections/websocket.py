"""A WebSocket with limits: uvicorn's, on wsproto. `uvicorn_internals` says what it depends on.

A connection that asked for a WebSocket becomes one after its head was read and checked. It stays with the gate: it counts
among the connections, and as one that waits for its client, so it may be closed when there are too many. Messages have
the size of bodies at most, are not compressed, and wait in the client while others wait here.
"""

from __future__ import annotations

import asyncio
from typing import Any

from uvicorn.protocols.websockets.wsproto_impl import WSProtocol
from wsproto import events

from keygraph_server.connections.gate import ConnectionGate, unmapped
from keygraph_server.connections.system import Unsent

_MOST_QUEUED = 16
"""So many messages wait for the application. Others are not parsed until then."""
_QUEUED_BYTES = 1_000
"""What a message takes beside its text."""
_STOP_SECONDS = 2.0
"""How long it stays open after the server is told to stop, for the application to end it."""


class WebSocketConnection(WSProtocol):
    """A WebSocket with limits."""

    def __init__(self, gate: ConnectionGate, address: str, **given_by_uvicorn: Any) -> None:
        super().__init__(**given_by_uvicorn)
        self.gate = gate
        self.address = address
        self.held = 0
        self._unsent = Unsent()
        self._has_more = False
        """Whether messages were not parsed yet."""

    # Called by asyncio.

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        super().connection_made(transport)  # type: ignore[arg-type]  # uvicorn names its subclass
        if self.client:
            self.client = unmapped(self.client[0]), self.client[1]
        if not self.gate.admit(self, self.loop):
            self.transport.close()

    def connection_lost(self, exc: Exception | None) -> None:
        super().connection_lost(exc)
        self.gate.leave(self)

    def data_received(self, data: bytes) -> None:
        super().data_received(data)
        self._count()

    def pause_writing(self) -> None:
        super().pause_writing()
        # It would answer pings that nobody reads.
        self.transport.pause_reading()
        self._count()

    def resume_writing(self) -> None:
        super().resume_writing()
        self._read_on()
        self._count()

    # Called by uvicorn.

    def handle_events(self) -> None:
        """Handles what has come, as far as the application can take it."""
        for event in self.conn.events():
            match event:
                case events.CloseConnection():
                    self.handle_close(event)
                case _ if self.close_sent:
                    pass
                case events.Request():
                    self.handle_connect(event)
                case events.TextMessage() | events.BytesMessage():
                    self.handle_message(event)
                case events.Ping():
                    self.handle_ping(event)
                case events.Pong():
                    self.handle_pong(event)
            if self.queue.qsize() >= _MOST_QUEUED:
                self._has_more = True
                return
        self._has_more = False

    async def receive(self) -> Any:
        message = await super().receive()
        if not self.writable.is_set():
            self.transport.pause_reading()
        if self._has_more and self.queue.empty() and not self.disconnected:
            self.handle_events()
        self._count()
        return message

    def shutdown(self) -> None:
        """The server stops: the application says goodbye, or this does a while later."""
        self.stop_keepalive()
        self.loop.call_later(_STOP_SECONDS, self._end)

    def _end(self) -> None:
        if not self.transport.is_closing():
            super().shutdown()

    def _read_on(self) -> None:
        if not self.read_paused and not self.transport.is_closing():
            self.transport.resume_reading()

    def _count(self) -> None:
        waiting = self.buffer.length + _QUEUED_BYTES * self.queue.qsize()
        self.gate.hold(self, waiting + self.transport.get_write_buffer_size())

    # Called by the gate.

    def check(self, now: float) -> None:
        """Closes the connection if its client takes no answers."""
        if self._unsent.is_stuck(self.transport, now, self.gate.settings.write_timeout):
            self.gate.closed["answer not taken"] += 1
            self.transport.abort()

    def close_now(self) -> None:
        """Closes the connection, whatever it is doing."""
        self.transport.abort()
