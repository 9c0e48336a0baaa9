"""Operations over a WebSocket, by the protocol `graphql-transport-ws` of npm graphql-ws: subscriptions, and also queries
and mutations.

https://github.com/enisdenjo/graphql-ws/blob/master/PROTOCOL.md
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from inspect import isawaitable
from typing import TYPE_CHECKING, Any, cast

import orjson
from starlette.requests import HTTPConnection
from starlette.types import Message, Receive, Scope, Send

from keygraph.admission import Overloaded, Place
from keygraph.errors import KeygraphError, StoreError
from keygraph_resolvers import OperationRequest, Service
from keygraph_resolvers.codes import OperationCode
from keygraph_resolvers.engine.engine import rounds
from keygraph_resolvers.errors import internal_error
from keygraph_resolvers.read.meter import Holding
from keygraph_server.connections import KEPT
from keygraph_server.connections.gate import network_of
from keygraph_server.errors import RequestRefusedError, UnauthenticatedError
from keygraph_server.http.graphql_http import (
    FOREIGN,
    LARGE_BODY,
    EndpointOptions,
    HTTPObservation,
    Viewer,
    turn_to_read,
)
from keygraph_server.http.origins import is_foreign
from keygraph_server.http.requests import (
    GraphQLRequest,
    RequestHeaders,
    parse_operation,
    read_json,
    request_headers,
    with_request_id,
)

if TYPE_CHECKING:
    from keygraph_resolvers.live import LiveQueries

PROTOCOL = "graphql-transport-ws"
_LONGEST_ID = 128
"""In characters. The protocol's reference client sends UUIDs."""
_LONGEST_REASON = 120
"""In bytes: a close frame has 125, with its code (RFC 6455, 5.5)."""
_INIT_SECONDS = 10.0

_NORMAL, _GOING_AWAY, _TOO_LARGE, _TRY_LATER = 1000, 1001, 1009, 1013
_INVALID, _UNAUTHORIZED, _FORBIDDEN, _NOT_SPOKEN = 4400, 4401, 4403, 4406
_INIT_TIMEOUT, _TWICE, _TOO_MANY_INITS, _INTERNAL = 4408, 4409, 4429, 4500


class _Closed(Exception):
    """The connection is to be closed with this code and reason."""

    def __init__(self, code: int, reason: str) -> None:
        self.code = code
        super().__init__(reason)


async def serve_socket(
    scope: Scope, receive: Receive, send: Send, options: EndpointOptions, most_bytes: int
) -> None:
    """Serves a WebSocket until one of both sides closes it. Messages may have `most_bytes`."""
    await receive()
    headers = request_headers(scope)
    if is_foreign(scope, options.origins):
        await _refuse(scope, send, RequestRefusedError(FOREIGN, 403))
        return
    offered = scope.get("subprotocols") or []
    if PROTOCOL not in offered:
        # It is opened first, because browsers show no other answer.
        await send({"type": "websocket.accept", "subprotocol": offered[0] if offered else None})
        await send(
            {"type": "websocket.close", "code": _NOT_SPOKEN, "reason": f"this server speaks {PROTOCOL}"}
        )
        return
    await send({"type": "websocket.accept", "subprotocol": PROTOCOL})
    await _Socket(scope, receive, send, options, headers, most_bytes).serve()


async def _refuse(scope: Scope, send: Send, refused: RequestRefusedError) -> None:
    """Answers the request as HTTP, if the server can."""
    if "websocket.http.response" not in scope.get("extensions", {}):
        await send({"type": "websocket.close", "code": _FORBIDDEN})
        return
    errors = refused.response["errors"]
    with_request_id(errors)
    body = orjson.dumps({"errors": errors})
    headers = [
        (b"content-type", b"application/json; charset=utf-8"),
        (b"content-length", b"%d" % len(body)),
        (b"connection", b"close"),
    ]
    await send({"type": "websocket.http.response.start", "status": refused.status, "headers": headers})
    await send({"type": "websocket.http.response.body", "body": body})


@dataclass(eq=False)
class _Socket:
    """One WebSocket, with the operations on it."""

    _scope: Scope
    _receive: Receive
    _send: Send
    _options: EndpointOptions
    _headers: RequestHeaders
    _most_bytes: int
    _running: dict[str, asyncio.Task[None]] = field(default_factory=dict)
    _listening: set[Any] = field(default_factory=set)
    """The tasks of those that are subscriptions."""
    _viewer: Viewer | None = None
    _context: Any = None
    _is_known: bool = False
    """Whether the client has said who it is."""
    _place: Place | None = None
    """Its place among the streams, while it has an operation: then it stays open."""

    def __post_init__(self) -> None:
        state = self._scope["app"].state
        self._service: Service = state.service
        self._live: LiveQueries = state.live
        self._ends = asyncio.get_running_loop().time() + _INIT_SECONDS
        """When it is closed unless it has an operation."""
        address = (self._scope.get("client") or ("",))[0]
        self._address = network_of(address) if ":" in address else address

    async def serve(self) -> None:
        """Reads messages until the end."""
        time, idle = asyncio.get_running_loop().time, self._live.limits.live_idle
        stopped = asyncio.create_task(self._live.closed.wait())
        reading: asyncio.Task[Message] | None = None
        try:
            while True:
                reading = reading or asyncio.create_task(self._receive())  # type: ignore[arg-type]  # a coroutine
                seconds = idle if self._running else self._ends - time()
                await asyncio.wait(
                    (reading, stopped), timeout=max(0.0, seconds), return_when=asyncio.FIRST_COMPLETED
                )
                if stopped.done():
                    # Its subscriptions have ended, and say so.
                    await asyncio.gather(*self._running.values(), return_exceptions=True)
                    raise _Closed(_GOING_AWAY, "the server is shutting down")
                if reading.done():
                    message, reading = reading.result(), None
                    if message["type"] == "websocket.disconnect":
                        return
                    await rounds().begin(self._address)
                    await self._handle(message)
                    del message  # the next one may come much later
                if not self._running and time() >= self._ends:
                    # Whatever else it has sent meanwhile.
                    if not self._is_known:
                        raise _Closed(_INIT_TIMEOUT, "Connection initialisation timeout")
                    raise _Closed(_NORMAL, "no subscription for a while")
        except _Closed as closed:
            reason = str(closed).encode()[:_LONGEST_REASON].decode(errors="ignore")
            with suppress(OSError):
                await self._send({"type": "websocket.close", "code": closed.code, "reason": reason})
        finally:
            for task in (stopped, reading, *self._running.values()):
                if task is not None and task not in self._listening:
                    task.cancel()
            self._running.clear()
            self._settle()
            self._end_next()

    def _end_next(self, _: object = None) -> None:
        """Ends a subscription, and all others in turn: hundreds of connections may be closed at once."""
        if self._listening:
            self._listening.pop().cancel()
            rounds().enter(self._address).add_done_callback(self._end_next)

    async def _handle(self, message: Message) -> None:
        lease = self._service.memory.holding(self._address)
        try:
            content = await self._read(message, lease)
            match content:
                case {"type": "connection_init"}:
                    if self._is_known:
                        raise _Closed(_TOO_MANY_INITS, "Too many initialisation requests")
                    await self._identify(content.get("payload"))
                    self._is_known = True
                    self._settle()
                    await self._write({"type": "connection_ack"})
                case {"type": "ping"}:
                    await self._write({"type": "pong"})
                case {"type": "pong"}:
                    pass
                case {"type": "subscribe" | "complete", "id": str() as key} if 0 < len(key) <= _LONGEST_ID:
                    if not self._is_known:
                        raise _Closed(_UNAUTHORIZED, "Unauthorized")
                    running = self._running.get(key)
                    if content["type"] == "complete":
                        if running is not None:
                            running.cancel()
                            del self._running[key]
                            self._settle()
                    elif running is not None:
                        raise _Closed(_TWICE, f"Subscriber for {key} already exists")
                    elif await self._begin(key, content.get("payload"), lease):
                        return
                case _:
                    raise _Closed(_INVALID, "this is no message of graphql-transport-ws")
        except BaseException:
            lease.let_go()
            raise
        lease.let_go()

    async def _read(self, message: Message, lease: Holding) -> Any:
        """Returns the content of a message. A large one waits for its turn, which lasts until the lease forgets it."""
        if message.get("text") is None:
            raise _Closed(_INVALID, "messages are text")
        text = message["text"].encode()
        if len(text) > self._most_bytes:
            raise _Closed(_TOO_LARGE, f"a message is limited to {self._most_bytes:,} bytes")
        try:
            if len(text) > LARGE_BODY:
                await turn_to_read(lease, len(text))
            return read_json(text, "the message", self._options.limits.max_variable_values)
        except RequestRefusedError as refused:
            raise _Closed(_INVALID, str(refused)) from None
        except Overloaded as refused:
            raise _Closed(_TRY_LATER, str(refused)) from None

    def _settle(self) -> None:
        """Notes whether it has operations: it is not closed then for others, if there is a place among the streams."""
        if not self._running:
            self._ends = asyncio.get_running_loop().time() + self._live.limits.live_idle
        streams, place = self._options.streams, self._place
        if self._running and place is None:
            self._place = streams.enter_at_once((self._address,))
        elif not self._running and place is not None:
            streams.leave(place)
            self._place = None
        if self._place is not place and KEPT in self._scope["state"]:
            self._scope["state"][KEPT](self._place is not None)

    async def _identify(self, payload: Any) -> None:
        """Finds the viewer by the headers of the request, or by an `Authorization` in the client's first message: browsers
        cannot set headers."""
        if payload is not None and not isinstance(payload, Mapping):
            raise _Closed(_INVALID, "the payload must be an object")
        scope, options = self._scope, self._options
        try:
            if options.tokens_in_messages:
                scope = _with_authorization(scope, payload or {})
            async with asyncio.timeout(options.limits.operation_timeout):
                if options.viewer_of is not None:
                    found = options.viewer_of(HTTPConnection(scope))
                    self._viewer = await found if isawaitable(found) else found
                if options.context_of is not None:
                    context = options.context_of(HTTPConnection(scope), self._viewer or {})
                    self._context = await context if isawaitable(context) else context
        except UnauthenticatedError as refused:
            raise _Closed(_FORBIDDEN, f"Forbidden: {refused}") from None
        except (RequestRefusedError, StoreError, TimeoutError) as refused:
            raise _Closed(_INTERNAL, str(refused) or "it took too long to find out who asks") from None

    async def _begin(self, key: str, payload: Any, lease: Holding) -> bool:
        """Begins an operation. Returns whether it has taken the lease."""
        if self._live.is_expired(self._viewer):
            raise _Closed(_FORBIDDEN, "Forbidden: the token has expired")
        if not isinstance(payload, dict):
            raise _Closed(_INVALID, "the payload must be an object")
        most = self._live.limits.live_operations_by_connection
        if len(self._running) >= most:
            problem = f"a connection may have {most:,} operations at the same time"
            error = {"message": problem, "extensions": {"code": OperationCode.LIVE_LIMIT}}
            await self._write({"id": key, "type": "error", "payload": [error]})
            return False
        self._running[key] = asyncio.create_task(self._operate(key, payload, lease))
        self._running[key].add_done_callback(lambda _: lease.let_go())
        self._settle()
        return True

    async def _operate(self, key: str, payload: dict[str, Any] | None, lease: Holding) -> None:
        """Executes an operation, and sends its answers."""
        observation = HTTPObservation(headers=self._headers)
        observer = self._options.observer
        if observer is not None:
            observer.begin(observation)
        try:
            request: OperationRequest | None = None
            try:
                observation.requested = parse_operation(payload or {})
                payload = None  # the operation may go on for hours
                request = self._request(observation, lease)
                response = await self._service.execute(request)
            except RequestRefusedError as refused:
                response = refused.response
            except Exception as error:
                response = {"errors": [internal_error(error)]}
            with suppress(OSError):  # the client is gone
                if request is not None and observation.is_subscription:
                    lease.forget_body()
                    await self._follow(key, request, observation)
                else:
                    await self._answer(key, response, observation, lease)
        finally:
            if self._running.get(key) is asyncio.current_task():
                del self._running[key]
                self._settle()
            if observer is not None:
                observer.end(observation)

    def _request(self, observation: HTTPObservation, lease: Holding) -> OperationRequest:
        """Returns the request that a message makes. Raises RequestRefusedError."""
        requested = cast(GraphQLRequest, observation.requested)
        document = self._options.document_of(requested)
        observation.requested = requested._replace(query=document)
        return OperationRequest(
            document,
            requested.variables,
            requested.operation_name,
            viewer=self._viewer,
            context=self._context,
            holding=lease,
            observation=observation,
        )

    async def _answer(
        self, key: str, response: dict[str, Any], observation: HTTPObservation, lease: Holding
    ) -> None:
        """Sends the only answer of an operation."""
        options = self._options
        if "errors" in response:
            options.conceal(response["errors"])
            with_request_id(response["errors"])
        response, text = await options.written(response)
        observation.answer, observation.status = response, 200
        is_refused, errors = "data" not in response, response.get("errors")
        # A client that does not read it holds nothing of what others need.
        lease.answers()
        lease.let_go()
        del response
        if is_refused:
            await self._write({"id": key, "type": "error", "payload": errors})
        else:
            await self._write_text(key, text)
            await self._write({"id": key, "type": "complete"})

    async def _follow(self, key: str, request: OperationRequest, observation: HTTPObservation) -> None:
        """Sends the answers to a subscription until it ends."""
        try:
            listener = await self._live.listen(request, self._address)
        except KeygraphError as refused:
            response = self._options.refusal(refused)
            observation.answer, observation.status = response, 200
            await self._write({"id": key, "type": "error", "payload": response["errors"]})
            return
        observation.shares(request)
        self._listening.add(asyncio.current_task())
        try:
            while (answer := await listener.next()) is not None:
                observation.answered()
                if answer.is_refusal:
                    errors = orjson.dumps(orjson.loads(answer.text)["errors"])
                    await self._write_bytes(
                        b'{"id":%b,"type":"error","payload":%b}' % (orjson.dumps(key), errors)
                    )
                    return
                await self._write_text(key, answer.text)
                del answer  # it would be kept until the next one comes
            await self._write({"id": key, "type": "complete"})
        finally:
            self._listening.discard(asyncio.current_task())  # in no variable: it would be garbage
            listener.end()

    async def _write_text(self, key: str, text: bytes) -> None:
        await self._write_bytes(b'{"id":%b,"type":"next","payload":%b}' % (orjson.dumps(key), text))

    async def _write(self, message: dict[str, Any]) -> None:
        await self._write_bytes(orjson.dumps(message))

    async def _write_bytes(self, text: bytes) -> None:
        await self._send({"type": "websocket.send", "text": text.decode()})


def _with_authorization(scope: Scope, payload: Mapping[str, Any]) -> Scope:
    """Returns the scope of a connection with the `Authorization` of its first message. No other header comes from there:
    a gateway may have set them. Raises UnauthenticatedError for one that is no text, or for several."""
    given = [
        value for name, value in payload.items() if name.lower() == "authorization" and value is not None
    ]
    if not given:
        return scope
    if len(given) > 1 or not isinstance(given[0], str):
        raise UnauthenticatedError("Authorization must be one text")
    others = [(name, value) for name, value in scope["headers"] if name != b"authorization"]
    return {**scope, "headers": [*others, (b"authorization", given[0].encode())]}
