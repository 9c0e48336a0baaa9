"""Operations over a WebSocket, by the protocol `graphql-transport-ws` of npm graphql-ws: subscriptions, and also queries
and mutations.

https://github.com/enisdenjo/graphql-ws/blob/master/PROTOCOL.md
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from contextlib import suppress
from inspect import isawaitable
from typing import TYPE_CHECKING, Any

import orjson
from starlette.requests import HTTPConnection
from starlette.types import Message, Receive, Scope, Send

from keygraph.admission import Overloaded
from keygraph.errors import KeygraphError, StoreError
from keygraph_resolvers import OperationRequest, Service
from keygraph_resolvers.codes import OperationCode
from keygraph_resolvers.errors import internal_error
from keygraph_server.connections.gate import network_of
from keygraph_server.errors import RequestRefusedError, UnauthenticatedError
from keygraph_server.http.graphql_http import (
    LARGE_BODY,
    EndpointOptions,
    HTTPObservation,
    Viewer,
    turn_to_read,
    written,
)
from keygraph_server.http.origins import is_foreign
from keygraph_server.http.requests import (
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
    if is_foreign(headers.fields, options.origins):
        await send({"type": "websocket.close", "code": _FORBIDDEN})  # answered as HTTP, with 403
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


class _Socket:
    """One WebSocket, with the operations on it."""

    def __init__(
        self,
        scope: Scope,
        receive: Receive,
        send: Send,
        options: EndpointOptions,
        headers: RequestHeaders,
        most_bytes: int,
    ) -> None:
        self._scope = scope
        self._receive = receive
        self._send = send
        self._options = options
        self._headers = headers
        self._most_bytes = most_bytes
        state = scope["app"].state
        self._service: Service = state.service
        self._live: LiveQueries = state.live
        self._running: dict[str, asyncio.Task[None]] = {}
        self._viewer: Viewer | None = None
        self._context: Any = None
        self._is_known = False
        """Whether the client has said who it is."""
        address = (scope.get("client") or ("",))[0]
        self._address = network_of(address) if ":" in address else address

    async def serve(self) -> None:
        """Reads messages until the end."""
        stopped = asyncio.create_task(self._live.closed.wait())
        reading: asyncio.Task[Message] | None = None
        try:
            while True:
                reading = reading or asyncio.create_task(self._receive())  # type: ignore[arg-type]  # a coroutine
                seconds = self._live.limits.live_idle if self._is_known else _INIT_SECONDS
                await asyncio.wait((reading, stopped), timeout=seconds, return_when=asyncio.FIRST_COMPLETED)
                if reading.done():
                    message, reading = reading.result(), None
                    if message["type"] == "websocket.disconnect":
                        return
                    await self._handle(message)
                elif stopped.done():
                    # Its subscriptions have ended, and say so.
                    await asyncio.gather(*self._running.values(), return_exceptions=True)
                    raise _Closed(_GOING_AWAY, "the server is shutting down")
                elif not self._is_known:
                    raise _Closed(_INIT_TIMEOUT, "Connection initialisation timeout")
                elif not self._running:
                    raise _Closed(_NORMAL, "no subscription for a while")
        except _Closed as closed:
            reason = str(closed).encode()[:_LONGEST_REASON].decode(errors="ignore")
            with suppress(OSError):
                await self._send({"type": "websocket.close", "code": closed.code, "reason": reason})
        finally:
            for task in (stopped, reading, *self._running.values()):
                if task is not None:
                    task.cancel()

    async def _handle(self, message: Message) -> None:
        content = await self._read(message)
        match content:
            case {"type": "connection_init"}:
                if self._is_known:
                    raise _Closed(_TOO_MANY_INITS, "Too many initialisation requests")
                await self._identify(content.get("payload"))
                self._is_known = True
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
                elif running is not None:
                    raise _Closed(_TWICE, f"Subscriber for {key} already exists")
                else:
                    await self._begin(key, content.get("payload"))
            case _:
                raise _Closed(_INVALID, "this is no message of graphql-transport-ws")

    async def _read(self, message: Message) -> Any:
        if message.get("text") is None:
            raise _Closed(_INVALID, "messages are text")
        text = message["text"].encode()
        if len(text) > self._most_bytes:
            raise _Closed(_TOO_LARGE, f"a message is limited to {self._most_bytes:,} bytes")
        try:
            with self._service.memory.holding(self._address) as lease:
                if len(text) > LARGE_BODY:
                    await turn_to_read(lease, len(text))
                return read_json(text, "the message", self._options.limits.max_variable_values)
        except RequestRefusedError as refused:
            raise _Closed(_INVALID, str(refused)) from None
        except Overloaded as refused:
            raise _Closed(_TRY_LATER, str(refused)) from None

    async def _identify(self, payload: Any) -> None:
        """Finds the viewer by the headers of the request, or by an `Authorization` in the client's first message: browsers
        cannot set headers."""
        if payload is not None and not isinstance(payload, Mapping):
            raise _Closed(_INVALID, "the payload must be an object")
        scope, options = self._scope, self._options
        if options.tokens_in_messages:
            scope = _with_authorization(scope, payload or {})
        try:
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

    async def _begin(self, key: str, payload: Any) -> None:
        if self._live.is_expired(self._viewer):
            raise _Closed(_FORBIDDEN, "Forbidden: the token has expired")
        if not isinstance(payload, dict):
            raise _Closed(_INVALID, "the payload must be an object")
        most = self._live.limits.live_operations_by_connection
        if len(self._running) >= most:
            problem = f"a connection may have {most:,} operations at the same time"
            error = {"message": problem, "extensions": {"code": OperationCode.LIVE_LIMIT}}
            await self._write({"id": key, "type": "error", "payload": [error]})
            return
        self._running[key] = asyncio.create_task(self._operate(key, payload))

    async def _operate(self, key: str, payload: dict[str, Any]) -> None:
        """Executes an operation, and sends its answers."""
        observation = HTTPObservation(headers=self._headers)
        observer = self._options.observer
        if observer is not None:
            observer.begin(observation)
        try:
            with suppress(OSError):  # the client is gone
                await self._answer(key, payload, observation)
        finally:
            if self._running.get(key) is asyncio.current_task():
                del self._running[key]
            if observer is not None:
                observer.end(observation)

    async def _answer(self, key: str, payload: dict[str, Any], observation: HTTPObservation) -> None:
        options = self._options
        request = None
        with self._service.memory.holding(self._address) as lease:
            try:
                observation.requested = requested = parse_operation(payload)
                document = options.document_of(requested)
                observation.requested = requested._replace(query=document)
                request = OperationRequest(
                    document,
                    requested.variables,
                    requested.operation_name,
                    viewer=self._viewer,
                    context=self._context,
                    holding=lease,
                    observation=observation,
                )
                response = await self._service.execute(request)
            except RequestRefusedError as refused:
                response = refused.response
            except Exception as error:
                response = {"errors": [internal_error(error)]}
            if not observation.is_subscription:
                if "errors" in response:
                    options.conceal(response["errors"])
                    with_request_id(response["errors"])
                observation.answer, observation.status = response, 200
                if "data" in response:
                    await self._write_text(key, await written(response))
                    await self._write({"id": key, "type": "complete"})
                else:
                    await self._write({"id": key, "type": "error", "payload": response["errors"]})
                return
        if request is not None:
            await self._follow(key, request, observation)

    async def _follow(self, key: str, request: OperationRequest, observation: HTTPObservation) -> None:
        """Sends the answers to a subscription until it ends."""
        try:
            listener = await self._live.listen(request, self._address)
        except KeygraphError as refused:
            error = {"message": str(refused), "extensions": {"code": refused.code}}
            observation.answer, observation.status = {"errors": [error]}, 200
            await self._write({"id": key, "type": "error", "payload": [error]})
            return
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
            listener.end()

    async def _write_text(self, key: str, text: bytes) -> None:
        await self._write_bytes(b'{"id":%b,"type":"next","payload":%b}' % (orjson.dumps(key), text))

    async def _write(self, message: dict[str, Any]) -> None:
        await self._write_bytes(orjson.dumps(message))

    async def _write_bytes(self, text: bytes) -> None:
        await self._send({"type": "websocket.send", "text": text.decode()})


def _with_authorization(scope: Scope, payload: Mapping[str, Any]) -> Scope:
    """Returns the scope of a connection with the `Authorization` of its first message. No other header comes from there:
    a gateway may have set them."""
    given = [value for name, value in payload.items() if name.lower() == "authorization"]
    if not given or not isinstance(given[0], str):
        return scope
    others = [(name, value) for name, value in scope["headers"] if name != b"authorization"]
    return {**scope, "headers": [*others, (b"authorization", given[0].encode())]}
