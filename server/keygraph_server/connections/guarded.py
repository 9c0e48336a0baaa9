"""One connection with its limits, for any HTTP parser: a base class for uvicorn's two protocol classes.

`uvicorn_internals` says what it depends on.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Sequence
from enum import Enum, auto
from typing import TYPE_CHECKING, Any

from keygraph.chunks import is_mostly_framing
from keygraph_resolvers.engine.engine import rounds
from keygraph_server.connections import BEGAN, BEGINS, LET_THROUGH, STREAMS, refusals
from keygraph_server.connections.gate import ConnectionGate, network_of
from keygraph_server.connections.heads import written_head
from keygraph_server.connections.system import ENDING_BYTES, PROGRESS, Unsent, has_ended, is_gone, write_now
from keygraph_server.uvicorn_internals import FlowControl

_UNSENT_BYTES = 16 * 1024
"""With more unsent bytes, a connection waits for its client to read before it reads and answers the next request."""
_SMALL = 8 * 1024
"""Bodies up to this size are not counted: counting would cost more than they take. Those of requests that wait are."""
_WAITING_BYTES, _FIELD_BYTES = 2_000, 200
"""What a request that waits takes beside its body, and each of its fields."""
_FIRST_PART = 1_024
"""The bytes that are read at once until a body is larger than that."""
_OFFERS, _LONGEST_OFFER = (b"sec-websocket-protocol", b"sec-websocket-extensions"), 512
"""A longer one counts as a missing one: it would be read name by name, 16 KB of them in a millisecond."""
_ENDING_SECONDS = 2.0
"""How long the rest of a client's bytes is discarded after its last answer. Closing at once would reset the connection,
and the client would lose that answer (RFC 9112, 9.6)."""
_STOP_SECONDS = 0.5
"""How long an idle connection stays open after the server is told to stop, for requests in transit."""
_PROBE_SECONDS = (0.1, 1.0)
"""The first delay before a half-closed client is probed, and the longest delay between two probes."""
_PROBE = b"HTTP/1.1 100 Continue\r\n\r\n"
_FEW = 16
"""While more requests run, the server is busy."""


class ReadingPart(Enum):
    """The part of a request that the next bytes of the client belong to."""

    NOTHING = auto()
    HEAD = auto()
    BODY = auto()
    DISCARDED = auto()
    """The connection is ending."""


NOTHING, HEAD, BODY, DISCARDED = ReadingPart
"""Looking up a member of an enum takes several times as long, and each request needs a dozen."""


class _Flow(FlowControl):
    """Resumes reading only if the connection may hold more. Applications resume it to notice a disconnect."""

    def __init__(self, transport: asyncio.Transport, connection: GuardedConnection) -> None:
        super().__init__(transport)
        self.connection: GuardedConnection | None = connection
        """None once the connection is lost: a connection that references itself would wait for the garbage collector."""

    def resume_reading(self) -> None:
        if self.read_paused and self.connection is not None and self.connection.may_read():
            super().resume_reading()


class GuardedConnection(asyncio.Protocol):
    """Limits the memory and time of a connection, and lets half-closed clients receive their answers."""

    # Attributes of uvicorn's classes.
    cycle: Any
    scope: Any
    headers: list[tuple[bytes, bytes]]
    flow: _Flow
    transport: asyncio.Transport
    loop: asyncio.AbstractEventLoop
    app: Any
    app_state: dict[str, Any]
    tasks: set[asyncio.Task[None]]
    client: tuple[str, int] | None
    connections: set[Any]
    config: Any
    server_state: Any
    if TYPE_CHECKING:

        def _get_upgrade(self) -> bytes | None:
            """Returns the protocol that the request asks for."""

        def _unset_keepalive_if_required(self) -> None:
            """Stops the timer of idle connections."""

        # Of the two classes.
        def feed(self, data: bytes) -> None:
            """Passes bytes to the parser."""

        def has_requests_waiting(self) -> bool:
            """Whether requests that were read wait for earlier answers."""

    def __init__(self, gate: ConnectionGate, **given_by_uvicorn: Any) -> None:
        super().__init__(**given_by_uvicorn)
        self.gate = gate
        # Each request gets a copy.
        self.app_state = {**self.app_state}
        self.address = ""
        """The client's network; empty if there is none."""
        self._reads_for = ""
        """Whose turns those of reading are: each connection of a trusted proxy has its own, because many clients share them."""
        self.held = 0
        """The bytes that the process keeps for it."""
        self.reading = HEAD
        self.received = 0
        """The bytes received of the current head or body."""
        self._chunks = 0
        """The pieces of the current body, without one for each time that bytes came."""
        self.bodies: deque[int] = deque()
        """The body bytes of each unanswered request, the oldest first."""
        self._counted: deque[int] = deque()
        """How many bytes are counted for each of them."""
        self._beside = 0
        """What the newest takes beside its body, if it waits."""
        self._rest = b""
        """The bytes that came with requests that wait, or in a round of the event loop that was over, and are read later."""
        self._turn: asyncio.Future[bool] | None = None
        """Awaited for the round in which they are read."""
        self._since = self.loop.time()
        self._received_then = 0
        self._unsent = Unsent()
        self._blocked = 0
        self._is_waiting = True
        self._is_completion_due = False
        self._is_cut_off = False
        self._is_half_closed = False
        self._is_stopping = False
        self._refusal: refusals.ConnectionRefusal | None = None
        self._is_first = True
        """Whether no request has been read yet."""

    def wants_websocket(self, version: str, counted: int) -> bool:
        """Whether the request that was read asks for a WebSocket, and may have one: it waits for no other. `counted` is 1
        if it is counted already. HTTP/1.0 has none (RFC 9110, 7.8)."""
        may_have = self.gate.has_websockets and version != "1.0" and len(self.bodies) == counted
        return may_have and self._get_upgrade() == b"websocket"

    def become_websocket(self, line: bytes, rest: bytes) -> None:
        """Hands the connection over to a WebSocket, which answers the request with this first line. `rest` came after it."""
        from keygraph_server.connections.websocket import WebSocketConnection  # only if they are served

        self._unset_keepalive_if_required()
        self.connections.discard(self)
        self.gate.leave(self)
        self.reading, self.flow.connection = DISCARDED, None
        given = {"config": self.config, "server_state": self.server_state, "app_state": self.app_state}
        websocket = WebSocketConnection(self.gate, self.address, self._reads_for, **given)
        self.transport.set_protocol(websocket)
        websocket.connection_made(self.transport)
        read = [each for each in self.headers if len(each[1]) <= _LONGEST_OFFER or each[0] not in _OFFERS]
        websocket.data_received(written_head(line, read) + rest)

    def drop_newest(self) -> bool:
        """Drops the newest request if it waits for its turn. Returns False if it is already in the application."""
        return False

    def running(self) -> Any:
        """The cycle of the request in the application; None if there is none."""
        return self.cycle

    def forget_request(self) -> None:
        """Forgets the last request, which was answered: a connection may stay idle for long. The next one may have begun:
        what was read of its head stays."""
        self.cycle = self.scope = None
        if self.reading is NOTHING:
            self.headers = []

    # Called by asyncio.

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        super().connection_made(transport)
        self.flow = _Flow(self.transport, self)
        self._rounds = rounds()
        self.transport.set_write_buffer_limits(high=_UNSENT_BYTES)
        if not self.client:  # which has reset the connection already
            self.transport.abort()
            return
        self._reads_for = self.address = network_of(self.client[0])
        if self.client[0] in getattr(self.app, "trusted_hosts", ()):
            self._reads_for = "{}\n{}".format(*self.client)
        if not self.gate.admit(self, self.loop):
            self.reading = DISCARDED
            self.transport.write(self.gate.refusal(refusals.TOO_MANY_CONNECTIONS))
            self.transport.close()

    def connection_lost(self, error: Exception | None) -> None:
        running = self.running()
        super().connection_lost(error)
        if self._turn is not None:
            self._turn.cancel()
        self._give_up(running)
        self.gate.leave(self)
        self._unset_keepalive_if_required()
        self.flow.connection = None

    def data_received(self, data: bytes) -> None:
        self._unset_keepalive_if_required()
        self._rounds.count_bytes(self._reads_for, len(data))
        if self.reading is NOTHING:
            self.begin(HEAD)
        elif self.reading is HEAD and not self.received and not self._rest:
            self.app_state[BEGAN] = self.loop.time()
        is_read_later = self.reading is not DISCARDED and self._waits_for_turn()
        if self._rest or is_read_later:
            data = self._rest + data
            self._keep_rest(data if is_read_later else b"")
        if not is_read_later:
            self._read(data)

    def _waits_for_turn(self) -> bool:
        """Whether what has come waits for a round of the event loop: hundreds of connections may have sent something."""
        shared = self._rounds
        if self._turn is None and shared.may_be_over() and shared.has_to_wait(self._reads_for):
            self._turn = shared.enter(self._reads_for)
            self._turn.add_done_callback(self._take_turn)
            self.flow.pause_reading()
            self.settle()
        return self._turn is not None

    def _take_turn(self, turn: asyncio.Future[bool]) -> None:
        self._turn = None
        if turn.cancelled() or self.transport.is_closing():
            return
        self.app_state[LET_THROUGH] = self._rounds.number, self._reads_for
        if self._is_half_closed:
            if not self._end_reading():
                self.transport.close()
        else:
            self.flow.resume_reading()
            self._read_rest()
        self.settle()

    def _keep_rest(self, rest: bytes) -> None:
        """Keeps bytes for later: requests that wait would take more time and memory if they were read."""
        before, self._rest = self._rest, rest
        self.gate.hold(self, self.held + len(rest) - len(before))
        if rest and self.gate.is_full:
            self._keep_rest(b"")
            self.refuse(refusals.TOO_MANY_WAITING)

    def _read_rest(self, *, is_last: bool = False) -> None:
        rest = self._rest
        if rest:
            self._keep_rest(b"")
            self._read(rest, is_last=is_last)

    def _read(self, data: bytes, *, is_last: bool = False) -> None:
        """Passes bytes to the parser; unless they are the last, no more than one part while requests wait."""
        if self.reading is NOTHING:
            self.begin(HEAD)
        start = 0
        while start < len(data):
            if self.reading is DISCARDED:
                self.received += len(data) - start
                if self.received > ENDING_BYTES:
                    self.transport.abort()
                return
            if start and not is_last and self.has_requests_waiting():
                self._keep_rest(data[start:])
                return
            # The chunks of a part are all read before they are counted.
            size = PROGRESS if self.reading is BODY and self.bodies[-1] > _SMALL else _FIRST_PART
            part = data if start == 0 and len(data) <= size else data[start : start + size]
            start += size
            self.received += len(part)
            self._chunks -= 1
            self.feed(part)
            self._check_size()

    def _check_size(self) -> None:
        limit = self.gate.settings.max_head_bytes
        if self.reading is HEAD and self.received > limit:
            self.refuse(refusals.head_too_large(limit))
        elif self.reading is BODY:
            body = self.bodies[-1]
            if is_mostly_framing(body, self._chunks, self.received - body, limit):
                self.refuse(refusals.NOT_HTTP)

    def eof_received(self) -> bool:
        """Keeps the connection open while answers are due: the client may have closed only its own direction."""
        self._is_half_closed = True
        return (bool(self._rest) and self._waits_for_turn()) or self._end_reading()

    def _end_reading(self) -> bool:
        self._read_rest(is_last=True)
        if self.reading is BODY:
            if not self.drop_newest():
                return False
            self.reading = DISCARDED
            self._forget(-1)
        running = self.running()
        if not self.bodies or (running is not None and running.scope["state"].get(STREAMS)):
            return False
        if self._is_busy():
            self._probe()
        else:
            self.loop.call_later(_PROBE_SECONDS[0], self._probe)
        return True

    def pause_writing(self) -> None:
        super().pause_writing()
        self._note_blocked(self.transport.get_write_buffer_size())

    def resume_writing(self) -> None:
        super().resume_writing()
        self._note_blocked(0)
        if self._is_completion_due:
            self._is_completion_due = False
            self._complete()
        elif self.bodies and not self.transport.is_closing():
            self.flow.resume_reading()

    # Called by uvicorn.

    def shutdown(self) -> None:
        """Answers all requests that were received, and ends, because the server stops."""
        self._is_stopping = True
        self._read_rest(is_last=True)
        if self.bodies:
            super().shutdown()  # type: ignore[misc]  # uvicorn's classes have it
        else:
            self.loop.call_later(_STOP_SECONDS, self._close_if_idle)

    def on_response_complete(self) -> None:
        """Handles a complete answer. The next request has its turn when the client has taken it."""
        if self.bodies:
            self._forget(0)
        if self.reading is BODY and not self.bodies:
            # The answer did not need the rest of the body.
            self.reading = DISCARDED
            self._is_cut_off = True
        if self.flow.write_paused:
            self._is_completion_due = True
            self.flow.pause_reading()
        else:
            self._complete()
        self.settle()

    # Called by the parsers.

    def head_problem(
        self, method: bytes, target: bytes, version: str, fields: Sequence[tuple[bytes, bytes]], waiting: int
    ) -> refusals.ConnectionRefusal | None:
        """Why a request is refused before its body; None if it is not. `waiting` requests of the connection wait."""
        settings = self.gate.settings
        # For most requests, the bytes since the head began are fewer than the limit. Of others behind one, none count.
        if not 0 < self.received <= settings.max_head_bytes:
            size = len(method) + len(target) + len("  HTTP/1.1\r\n\r\n")
            size += sum(len(name) + len(value) + len(": \r\n") for name, value in fields)
            if size > settings.max_head_bytes:
                return refusals.head_too_large(settings.max_head_bytes)
        if method == b"CONNECT":
            return refusals.NO_TUNNEL
        is_too_many = waiting > settings.max_pipelined or (waiting and self.gate.is_full)
        return self.gate.heads.problem(target, version, fields) or (
            refusals.TOO_MANY_WAITING if is_too_many else None
        )

    def may_read(self) -> bool:
        """Whether more bytes of the client may be read."""
        if self.reading is DISCARDED:
            return not self.bodies
        return self._turn is None and not self.flow.write_paused and not self.has_requests_waiting()

    def begin(self, reading: ReadingPart) -> None:
        """Notes that a head or a body begins, or an end."""
        self.reading = reading
        self.received = self._received_then = self._chunks = 0
        self._since = self.loop.time()
        if reading is HEAD:
            self.app_state[BEGAN] = self._since

    def head_complete(self, fields: int) -> None:
        """The head of a request has been read, with so many fields."""
        self.begin(BODY)
        self.bodies.append(0)
        self._counted.append(0)
        self._beside = 0 if len(self.bodies) == 1 else _WAITING_BYTES + fields * _FIELD_BYTES
        if self._beside:
            self._count(self._beside)

    def body_received(self, count: int) -> None:
        """Bytes of a body have been read."""
        self.bodies[-1] = size = self.bodies[-1] + count
        self._chunks += 1
        if size > _SMALL or self._beside:
            self._count(self._beside + size)

    def _count(self, size: int) -> None:
        """Counts so many bytes for the newest request."""
        before, self._counted[-1] = self._counted[-1], size
        self.gate.hold(self, self.held + size - before)

    def _forget(self, place: int) -> None:
        """Forgets an unanswered request."""
        size = self._counted[place]
        del self.bodies[place], self._counted[place]
        if size:
            self.gate.hold(self, self.held - size)

    def message_complete(self) -> None:
        """A request has been read."""
        self.reading = NOTHING
        if self._is_stopping:
            self.cycle.keep_alive = False
        if self._is_first:
            # The client asked and disconnected while its connection waited to be accepted.
            self._is_first = False
            if self._is_busy() and has_ended(self.transport):
                self._ask_whether_gone()
        self.settle()

    def refuse(self, refusal: refusals.ConnectionRefusal) -> None:
        """Refuses the request that is being read, after the answers that are due, and ends the connection."""
        self.gate.closed[f"answered {refusal.status.value}"] += 1
        if self.reading is BODY:
            self._forget(-1)
            if not self.drop_newest():
                if self.cycle.response_started:
                    self.transport.abort()
                    return
                self.cycle.disconnected = True
                self.cycle.message_event.set()
        if self.bodies:
            self._refusal = refusal
            self.reading = DISCARDED
            self.flow.pause_reading()
        else:
            self._end(self.gate.refusal(refusal))

    # Called by the gate.

    def close_now(self) -> None:
        """Closes the connection, whatever it is doing."""
        if self.bodies or self.transport.get_write_buffer_size():
            self.transport.abort()
        else:
            self.transport.close()

    def check(self, now: float) -> None:
        """Closes the connection if its client has taken too long."""
        if self._unsent.is_stuck(self.transport, now, self.gate.settings.write_timeout):
            self.gate.closed["answer not taken"] += 1
            self.transport.abort()
            return
        if self.flow.read_paused:
            self._since = now
            if is_gone(self.transport):  # which is not noticed while nothing is read
                self.transport.abort()
        elif self.reading is not NOTHING and not self._is_half_closed:
            self._check_reading(now - self._since, now)

    def _check_reading(self, seconds: float, now: float) -> None:
        settings = self.gate.settings
        if self.reading is HEAD:
            if seconds <= settings.head_timeout:
                return
            if self.received or self.bodies:
                self.refuse(refusals.TOO_SLOW)
            else:
                # A browser that connects in advance would take an answer for that to its first request.
                self.transport.close()
        elif self.reading is BODY:
            if self.received - self._received_then >= PROGRESS:
                self._received_then, self._since = self.received, now
            elif seconds > settings.body_timeout:
                self.refuse(refusals.TOO_SLOW)
        elif not self.bodies and not self._unsent.count and seconds > _ENDING_SECONDS:
            self.transport.close()

    def _is_busy(self) -> bool:
        """Whether disconnected clients take time from others: each half-closed one is probed at once."""
        return len(self.tasks) > _FEW or bool(self._rounds.waiting)

    def _probe(self, pause: float = _PROBE_SECONDS[0]) -> None:
        """Probes a half-closed client again and again while an answer is due."""
        if self.bodies and not self.transport.is_closing():
            self._ask_whether_gone()
            self.loop.call_later(pause, self._probe, min(2 * pause, _PROBE_SECONDS[1]))

    def _ask_whether_gone(self) -> None:
        """Finds out whether a half-closed client is gone, which cannot be seen otherwise.

        A client that is there ignores the interim answer (RFC 9110, 15.2). The system of one that is gone resets the
        connection, on the same machine at once.
        """
        running = self.running()
        if running is not None and not running.response_started and running.scope["http_version"] == "1.1":
            write_now(self.transport, _PROBE)
        if is_gone(self.transport):
            self._give_up(running)
            self.transport.abort()

    def _give_up(self, running: Any) -> None:
        """Tells the application that nobody waits for the answer."""
        if running is not None and not running.response_complete:
            running.disconnected = True
            running.message_event.set()
            begins = running.scope.get(BEGINS)
            if begins is not None and not begins.done():
                begins.set_result(False)

    def _complete(self) -> None:
        if self.transport.is_closing():
            return
        if self._is_cut_off:
            self._end()
            return
        super().on_response_complete()  # type: ignore[misc]  # uvicorn's classes have it
        if self._turn is None and not self.has_requests_waiting() and not self.transport.is_closing():
            self._read_rest()
        if not self.bodies:
            if self._refusal is not None:
                self._end(self.gate.refusal(self._refusal))
            elif (self._is_half_closed and self._turn is None) or self._is_stopping:
                self.transport.close()
            else:
                self.forget_request()

    def _end(self, last: bytes = b"") -> None:
        """Writes the last bytes, and closes the connection when the client has closed it, or after a while."""
        self._unset_keepalive_if_required()
        self.begin(DISCARDED)
        if last:
            self.transport.write(last)
        if self._is_half_closed:
            self.transport.close()
        else:
            self.transport.write_eof()
            self.flow.resume_reading()
        self.settle()

    def _close_if_idle(self) -> None:
        if not self.bodies and self._turn is None:
            self.transport.close()

    def _note_blocked(self, blocked: int) -> None:
        before, self._blocked = self._blocked, blocked
        self.settle()
        self.gate.hold(self, self.held + blocked - before)

    def settle(self) -> None:
        """Tells the gate whether the connection waits for its client."""
        is_reading = self.reading is BODY and len(self.bodies) == 1
        is_waiting = self._turn is None and (not self.bodies or is_reading or self.flow.write_paused)
        if is_waiting is not self._is_waiting:
            self._is_waiting = is_waiting
            self.gate.wait(self, is_waiting=is_waiting)
