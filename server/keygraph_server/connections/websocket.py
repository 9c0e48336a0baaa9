"""A WebSocket with limits: uvicorn's, on wsproto. `uvicorn_internals` says what it depends on.

A connection that asked for a WebSocket becomes one after its head was read and checked. It stays with the gate: it counts
among the connections, and as one that waits for its client, so it may be closed when there are too many, unless the
application keeps it (`KEPT`). Messages have the size of bodies at most, are not compressed, and wait in the client while
others wait here. Frames are parsed a few at a time, in the rounds of the event loop in which requests begin.
"""

from __future__ import annotations

import asyncio
import sys
from typing import Any
from weakref import proxy

from uvicorn.protocols.utils import ClientDisconnected
from uvicorn.protocols.websockets.wsproto_impl import WSProtocol
from wsproto import events
from wsproto.connection import ConnectionState
from wsproto.utilities import LocalProtocolError, RemoteProtocolError

from keygraph.chunks import is_mostly_framing
from keygraph_resolvers.engine.engine import rounds
from keygraph_server.connections import KEPT
from keygraph_server.connections.gate import ConnectionGate
from keygraph_server.connections.refusals import NOT_HTTP
from keygraph_server.connections.system import ENDING_BYTES, PROGRESS, Unsent

_FRAMES_AT_ONCE = 16
"""So many frames are parsed in a turn: in half a millisecond."""
_MOST_QUEUED = 16
"""So many messages wait for the application. Others are not parsed until then."""
_QUEUED_BYTES = 1_000
"""What a message takes beside its text."""
_UNSENT_BYTES = 64 * 1024
"""With more unsent bytes, it waits for its client."""
_STOP_SECONDS = 2.0
"""How long it stays open after the server is told to stop, for the application to end it."""
_POLICY, _TOO_LARGE = 1008, 1009
"""The codes of a close for what the server does not allow, and for a message beyond the limit (RFC 6455, 7.4.1)."""


class WebSocketConnection(WSProtocol):
    """A WebSocket with limits."""

    def __init__(self, gate: ConnectionGate, address: str, reads_for: str, **given_by_uvicorn: Any) -> None:
        super().__init__(**given_by_uvicorn)
        self.gate = gate
        self.address = address
        self._reads_for = reads_for
        self.held = 0
        self._unsent = Unsent()
        self._unread = b""
        """What wsproto has not got yet: it parses the head of a handshake at once, which takes up to a millisecond."""
        self._unparsed = 0
        """The bytes that were not parsed yet."""
        self._queued = 0
        """The bytes of the messages that wait for the application."""
        self._frames = 0
        """The frames of the incomplete message."""
        self._since: float | None = None
        """When it began, or had another 16 KB; None if there is none."""
        self._length_then = 0
        self._turn: asyncio.Future[bool] | None = None
        """Awaited for the turn to parse more."""
        self._is_kept, self._is_waiting = False, True
        self._has_more = False
        """Whether there is more than was parsed in the last turn."""
        self._discarded: int | None = None
        """If it is being closed, the bytes of the client that were discarded since, and not parsed."""
        self.buffer.max_length = sys.maxsize  # uvicorn would close at once

    # Called by asyncio.

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        super().connection_made(transport)  # type: ignore[arg-type]  # uvicorn names its subclass
        connection = proxy(self)
        self.app_state = {**self.app_state, KEPT: lambda is_kept: connection.keep(is_kept=is_kept)}
        if not self.gate.admit(self, self.loop):
            self.transport.close()

    def connection_lost(self, exc: Exception | None) -> None:
        super().connection_lost(exc)
        self.gate.leave(self)
        if self._turn is not None:
            self._turn.cancel()

    def data_received(self, data: bytes) -> None:
        if self._discarded is not None:
            self._discarded += len(data)
            if self._discarded > ENDING_BYTES:
                self.transport.abort()
            return
        self._unparsed += len(data)
        self._unread += data
        rounds().count_bytes(self._reads_for, len(data))
        if self._turn is None:
            if rounds().has_to_wait(self._reads_for):
                self._wait(rounds().enter(self._reads_for))
            else:
                self.handle_events()

    def pause_writing(self) -> None:
        super().pause_writing()
        # It would answer pings that nobody reads.
        self._settle()

    def resume_writing(self) -> None:
        super().resume_writing()
        self._settle()

    # Called by uvicorn.

    def handle_events(self) -> None:
        """Handles some of what has come, as far as the application can take it."""
        unread, self._unread = self._unread, b""
        try:
            if unread:
                self.conn.receive_data(unread)
        except (LocalProtocolError, RemoteProtocolError, UnicodeDecodeError):
            if not self.handshake_complete:
                self.transport.write(self.gate.refusal(NOT_HTTP))
            self.transport.close()
            return
        left = _FRAMES_AT_ONCE
        for event in self.conn.events():
            left -= 1
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
            if self._discarded is not None:
                break
            self._has_more = not left or self.queue.qsize() >= _MOST_QUEUED
            if self._has_more:
                break
        else:
            self._has_more, self._unparsed = False, 0
        if self._has_more and self._turn is None and self.queue.qsize() < _MOST_QUEUED:
            self._wait(rounds().enter(self._reads_for))
        self._settle()

    def handle_message(self, event: events.TextMessage | events.BytesMessage) -> None:
        before = self.buffer.length
        super().handle_message(event)
        self._frames += event.frame_finished
        if event.message_finished:
            self._queued += before + len(event.data)
            self._frames, self._since = 0, None
        elif self.buffer.length > self.config.ws_max_size:
            self._close(f"a message is limited to {self.config.ws_max_size:,} bytes", _TOO_LARGE)
        elif is_mostly_framing(self.buffer.length, self._frames, 0, 0):
            self._close("a message may have 128 frames, and one more for each KB")
        elif self._since is None:
            self._since, self._length_then = self.loop.time(), 0

    def handle_close(self, event: events.CloseConnection) -> None:
        if self.conn.state is ConnectionState.OPEN and not self.close_sent:
            # The client has broken the protocol: it learns how.
            self.transport.write(self.conn.send(event))
        super().handle_close(event)

    async def receive(self) -> Any:
        message = await self.queue.get()
        if self.queue.empty():
            self.read_paused, self._queued = False, 0
            if self._has_more and self._turn is None and not self.disconnected:
                self._wait(rounds().enter(self._reads_for))
        self._settle()
        return message

    async def send(self, message: Any) -> None:
        if message["type"] != "websocket.send" or not self.handshake_complete:
            await super().send(message)
            return
        if self.disconnected or self.close_sent or self.transport.is_closing():
            raise ClientDisconnected
        # It does not wait before: whoever waits has its answer in memory, uncounted.
        self.transport.write(self.conn.send(events.Message(data=message["text"])))
        self._settle()
        await self.writable.wait()

    def shutdown(self) -> None:
        """The server stops: the application says goodbye, or this does a while later."""
        self.stop_keepalive()
        self.loop.call_later(_STOP_SECONDS, self._end)

    def _end(self) -> None:
        if not self.transport.is_closing():
            super().shutdown()

    def _wait(self, turn: asyncio.Future[bool]) -> None:
        """Parses more when its turn has come."""
        self._turn = turn
        turn.add_done_callback(self._parse)
        self._settle()

    def _parse(self, turn: asyncio.Future[bool]) -> None:
        self._turn = None
        if not turn.cancelled() and not self.transport.is_closing():
            self.handle_events()

    def _close(self, reason: str, code: int = _POLICY) -> None:
        """Ends the connection of a client that does what is not allowed. What it still sends is discarded for a while:
        closing at once would reset the connection, and the client would not learn why."""
        self.gate.closed[reason] += 1
        self.close_sent, self._discarded = True, 0
        self._has_more, self._unparsed = False, 0
        self.queue.put_nowait({"type": "websocket.disconnect", "code": code, "reason": reason})
        self.transport.write(self.conn.send(events.CloseConnection(code=code, reason=reason)))
        self.transport.write_eof()
        self.close_timer = self.loop.call_later(_STOP_SECONDS, self.transport.close)
        self.buffer.clear()
        self._since = None

    def _settle(self) -> None:
        """Reads if there is room for more, and counts what waits."""
        transport = self.transport
        if not transport.is_closing():
            is_busy = self.read_paused or self._has_more or self._turn is not None
            if self._discarded is not None or (not is_busy and self.writable.is_set()):
                transport.resume_reading()
            else:
                transport.pause_reading()
        waiting = self._unparsed + self.buffer.length + self._queued + _QUEUED_BYTES * self.queue.qsize()
        unsent = transport.get_write_buffer_size()
        is_waiting = not self._is_kept or unsent > _UNSENT_BYTES or not self.writable.is_set()
        if is_waiting is not self._is_waiting:
            self._is_waiting = is_waiting
            self.gate.wait(self, is_waiting=is_waiting)
        self.gate.hold(self, waiting + unsent)

    # Called by the application.

    def keep(self, *, is_kept: bool) -> None:
        """Keeps the connection open when there are too many, or no longer. One that does not take its answers is not."""
        self._is_kept = is_kept
        self._settle()

    # Called by the gate.

    def check(self, now: float) -> None:
        """Closes the connection if its client takes no answers, or sends a message too slowly."""
        if self._unsent.is_stuck(self.transport, now, self.gate.settings.write_timeout):
            self.gate.closed["answer not taken"] += 1
            self.transport.abort()
        elif self._since is not None:
            is_read = self._turn is None and self.writable.is_set()
            if not is_read or self.buffer.length - self._length_then >= PROGRESS:
                self._since, self._length_then = now, self.buffer.length
            elif now - self._since > self.gate.settings.body_timeout and not self.close_sent:
                self._close("a message took too long to arrive")
                self._settle()

    def close_now(self) -> None:
        """Closes the connection, whatever it is doing."""
        self.transport.abort()
