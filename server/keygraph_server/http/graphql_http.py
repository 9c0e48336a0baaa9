"""GraphQL over HTTP: reads and checks requests, and sends answers.

Follows the GraphQL over HTTP specification (https://graphql.github.io/graphql-over-http/draft/).
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from hashlib import sha256
from inspect import isawaitable
from time import perf_counter
from typing import TYPE_CHECKING, Any, Protocol, TypeAlias, TypeVar, cast

import orjson
from graphql import OperationType
from starlette.requests import ClientDisconnect, HTTPConnection
from starlette.types import Receive, Scope, Send

from keygraph.admission import Admission, Overloaded
from keygraph.codes import Code
from keygraph.deadlines import Deadlines, Wait
from keygraph.errors import KeygraphError, without_frames
from keygraph_resolvers import Limits, Observation, OperationRequest, Service
from keygraph_resolvers.engine.engine import rounds
from keygraph_resolvers.errors import NotAQuery, answer_limit_error
from keygraph_resolvers.read.meter import Holding, Sent
from keygraph_resolvers.schema.json_numbers import as_long_json, exact_number
from keygraph_resolvers.worker_thread import WorkerThread
from keygraph_server.connections import BEGAN, STREAMS
from keygraph_server.connections.gate import network_of
from keygraph_server.documents.known import EVERY_DOCUMENT, KnownDocuments
from keygraph_server.errors import RequestRefusedError
from keygraph_server.http.compression import compressed, takes_gzip
from keygraph_server.http.event_streams import EVENTS, only_event, send_answers, takes_events
from keygraph_server.http.origins import Origins, is_foreign, is_forgeable
from keygraph_server.http.requests import (
    GRAPHQL_RESPONSE,
    JSON,
    OFFERED,
    READ_HEADERS,
    WAITS_SINCE,
    GraphQLRequest,
    RequestHeaders,
    header_text,
    parse_body,
    parse_url,
    request_headers,
    with_request_id,
)

if TYPE_CHECKING:
    from keygraph_resolvers.live import LiveQueries

_T = TypeVar("_T")

COST_HEADER = "x-keygraph-cost"
"""A client that sends this header as `true` gets `extensions.cost`."""
_COST_FIELD = COST_HEADER.encode()
IDEMPOTENCY_HEADER = "idempotency-key"
"""Mutations that are sent again with the same value are carried out once."""
_KEY_FIELD = IDEMPOTENCY_HEADER.encode()
LARGE_BODY = 4 * 1024
"""Only larger bodies wait for their turn to be read."""
_LONGEST_NAME = 100
"""Names are cut after this many characters for observers: GraphQL does not limit them."""
_UNWATCHED_SECONDS = 0.02
"""How long an operation runs before a disconnect is watched for, which costs as much as a small operation."""

_CONTENT_TYPES = {offered: f"{offered}; charset=utf-8".encode() for offered in (*OFFERED, EVENTS)}
# A cache must not give one form of an answer to a client that asked for another.
_VARY = (b"vary", b"accept, accept-encoding")
_VARY_OF_GET = (b"vary", b"accept, accept-encoding, origin")
_FORGEABLE = (
    "a page of another site may have sent this request: send it as POST, or with the header "
    "Apollo-Require-Preflight: true, or add the page's origin to KEYGRAPH_CORS_ORIGINS"
)
FOREIGN = (
    "pages of this origin may not send requests: add it to KEYGRAPH_CORS_ORIGINS, also if it is this server's own and "
    "a proxy replaces the Host header"
)
NO_WEBSOCKETS = (
    "this server has no WebSockets and no subscriptions until KEYGRAPH_LIVE is set: send HTTP POST"
)
_NO_STREAMS = ", and nothing is streamed: there are no subscriptions until KEYGRAPH_LIVE is set"
_STREAMS = (b"text/event-stream", b"multipart/mixed")
_RETRY_AFTER = (b"retry-after", b"1")
"""In seconds: a server that is overloaded now may have time then."""
_TOO_EXPENSIVE = "The operation may cost more than the server allows: ask for smaller pages or fewer fields."
_OF_THE_STORE: Mapping[str, str] = {
    Code.UNAVAILABLE: "The data cannot be read or written at the moment.",
    Code.TIMEOUT: "The data could not be read or written in time.",
    Code.THROTTLED: "There are too many requests for this data at the moment.",
}


Viewer: TypeAlias = Mapping[str, Any]
"""What is known about the client."""
ViewerOf: TypeAlias = Callable[[HTTPConnection], Viewer | Awaitable[Viewer]]
"""Finds the viewer of a request. Raises UnauthenticatedError if the request is not authenticated."""


ContextOf: TypeAlias = Callable[[HTTPConnection, Viewer], Any]
"""Returns the `info.context` of resolvers, or an awaitable of it, for a request and its viewer."""


@dataclass(slots=True, eq=False, kw_only=True)
class HTTPObservation(Observation):
    """One request over HTTP and its outcome."""

    headers: RequestHeaders
    is_get: bool = False
    began: float = field(default_factory=perf_counter)
    requested: GraphQLRequest | None = None
    """None if the request is not valid."""
    answer: dict[str, Any] | None = None
    """None if the client has disconnected, or if the endpoint has failed."""
    status: int | None = None
    """The status of the answer; None if the client has disconnected."""
    trace_id: str | None = None
    """The trace that it is part of, if it is traced."""
    trace: Any = None
    """What the observer keeps of the trace."""

    answered_at: float | None = None
    """When the first of several answers was there; None for an operation with one."""

    # These are known when it has ended.
    name: str | None = None
    type: str | None = None
    """`query` or `mutation`; None if the document could not be executed."""
    codes: Sequence[str] = ()
    """The codes of its errors, each once, in the order of the answer."""
    seconds: float = 0.0
    sent: Sequence[Sent] = ()
    """Its requests to the store that were answered."""
    requests: int = 0
    read_units: float = 0.0
    write_units: float = 0.0

    @property
    def is_subscription(self) -> bool:
        return self.operation is not None and self.operation.operation is OperationType.SUBSCRIPTION

    def shares(self, request: OperationRequest) -> None:
        """Keeps the document and the variables that a subscription shares with all others of its kind."""
        if self.requested is not None:
            variables = None if request.variables is None else cast("dict[str, Any]", request.variables)
            self.requested = self.requested._replace(query=request.document, variables=variables)

    def answered(self) -> None:
        """Notes the time of the first answer to a subscription: it may go on for hours."""
        if self.answered_at is None:
            self.answered_at = perf_counter()

    def end(self) -> None:
        """Notes what is known in the end."""
        self.seconds = (self.answered_at or perf_counter()) - self.began
        operation = self.operation
        if operation is not None:
            self.name = operation.name.value if operation.name is not None else None
            self.type = operation.operation.value
        elif self.requested is not None:
            self.name = self.requested.operation_name
        if self.name is not None and len(self.name) > _LONGEST_NAME:
            self.name = f"{self.name[:_LONGEST_NAME]}…"
        if self.status == 500 and not self.answer:
            self.codes = [Code.INTERNAL]
        elif self.answer and self.answer.get("errors"):
            codes = [error.get("extensions", {}).get("code", "") for error in self.answer["errors"]]
            self.codes = [*dict.fromkeys(codes)]
        if self.meter is not None:
            self.sent = self.meter.sent
            for sent in self.sent:
                self.requests += sent.cost.requests
                self.read_units += sent.cost.read_units
                self.write_units += sent.cost.write_units

    @property
    def most_read_units(self) -> float | None:
        """The most read units that the operation costs; None if it was not planned."""
        return None if self.bound is None else self.bound.total.read_units

    @property
    def document_hash(self) -> str | None:
        """The SHA-256 of the document; None if the request has none."""
        if self.digest:
            return self.digest.hex()
        text = None if self.requested is None else self.requested.query
        return None if text is None else sha256(text.encode("utf-8", "replace")).hexdigest()


class Observer(Protocol):
    """Sees every request, before and after."""

    def begin(self, observation: HTTPObservation, /) -> None:
        """Called when the head of a request has come, in the task that answers it."""

    def end(self, observation: HTTPObservation, /) -> None:
        """Called when the answer has been sent, or there is none, in the same task."""


@dataclass(frozen=True, slots=True)
class EndpointOptions:
    """How the endpoint takes requests and answers them."""

    documents: KnownDocuments = EVERY_DOCUMENT
    """The documents that clients may send or name."""
    viewer_of: ViewerOf | None = None
    """Without it, everybody is anonymous."""
    context_of: ContextOf | None = None
    """Returns the `info.context` of resolvers; without it, that is an object with the viewer."""
    origins: Origins = field(default_factory=lambda: Origins.of("none"))
    """The origins whose pages may use GET."""
    cache_control: str = "no-store"
    """The Cache-Control header of answers to GET."""
    limits: Limits = field(default_factory=Limits)
    compress_above: int = 0
    """Larger answers, in bytes, are compressed if the client accepts gzip; with 0, none is."""
    cost_details: bool = True
    """Whether clients may see costs."""
    endpoint_names: bool = True
    """Whether they may see the names of the store's parts."""
    outage_ok: bool = False
    """Whether the status is also 200 if the store could not answer anything."""
    observer: Observer | None = None
    tokens_in_messages: bool = False
    """Whether the first message of a WebSocket may have the `Authorization` that its request lacks. Not where a gateway
    sets headers."""
    streams: Admission = field(default_factory=lambda: Admission(1_000, 0))
    """The places of streams of server-sent events, and of WebSockets that are not closed when there are too many
    connections."""

    def document_of(self, requested: GraphQLRequest) -> str:
        """Returns the document of a request. Raises RequestRefusedError if it is not known or not accepted."""
        document, documents = requested.query, self.documents
        if document is None or requested.automatic_hash is not None or not documents.is_open:
            return documents.document_of(document, requested.document_id, requested.automatic_hash)
        return document

    async def written(self, response: dict[str, Any]) -> tuple[dict[str, Any], bytes]:
        """Returns an answer, or an error in its place if it is too large, and its JSON."""
        text = await written(response)
        if len(text) > self.limits.answer_limit:
            response = {"data": None, "errors": [answer_limit_error(self.limits.answer_limit)]}
            with_request_id(response["errors"])
            text = orjson.dumps(response)
        return response, text

    async def live_text(self, response: dict[str, Any]) -> bytes:
        """Returns an answer to a subscription as JSON."""
        if "errors" in response:
            self.conceal(response["errors"])
        return (await self.written(response))[1]

    def refusal(self, refused: KeygraphError) -> dict[str, Any]:
        """Returns the answer to a subscription that cannot begin."""
        message = str(refused) if self.endpoint_names else _OF_THE_STORE.get(refused.code, str(refused))
        return {"errors": [{"message": message, "extensions": {"code": refused.code}}]}

    def conceal(self, errors: list[dict[str, Any]]) -> None:
        """Removes from errors what clients may not see."""
        for error in errors:
            code = error.get("extensions", {}).get("code")
            if not self.cost_details and code == Code.COST_LIMIT:
                error |= {"message": _TOO_EXPENSIVE, "extensions": {"code": code}}
            # An error without a path did not come from the store: the server itself is busy or stopping.
            if not self.endpoint_names and "path" in error and code in _OF_THE_STORE:
                error["message"] = _OF_THE_STORE[code]


class GraphQLEndpoint:
    """The endpoint: an ASGI application that passes operations to the `state.service` of the main application.

    A POST has its request in its body. A GET has it in its URL, and may only be a query.
    It reads and writes plain ASGI messages, because request and response objects cost more than everything else here.
    """

    def __init__(self, options: EndpointOptions | None = None) -> None:
        self._options = options = options or EndpointOptions()
        self._cache_control = (b"cache-control", options.cache_control.encode())
        self._unwatched: Deadlines | None = None
        self._thread = WorkerThread()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        headers = scope.get(READ_HEADERS) or request_headers(scope)
        observation = HTTPObservation(headers=headers, is_get=scope["method"] != "POST")
        if WAITS_SINCE in scope:
            observation.began = scope[WAITS_SINCE]
        address = (scope.get("client") or ("",))[0]
        if ":" in address:
            address = network_of(address)
        # What an operation has read is kept until its answer is sent.
        service: Service = scope["app"].state.service
        lease = service.memory.holding(address)
        observer = self._options.observer
        try:
            if observer is not None:
                observer.begin(observation)
            try:
                await self._exchange(service, observation, lease, scope, receive, send)
            except Exception:
                observation.status = 500
                raise
            finally:
                if observer is not None:
                    observer.end(observation)
        finally:
            lease.let_go()

    async def _exchange(
        self,
        service: Service,
        observation: HTTPObservation,
        lease: Holding,
        scope: Scope,
        receive: Receive,
        send: Send,
    ) -> None:
        headers, options = observation.headers.fields, self._options
        # Servers that do not set it have just read the head.
        began = scope.get("state", {}).get(BEGAN) or asyncio.get_running_loop().time()
        # If the client accepts no offered type, the error is sent as JSON.
        media_type = JSON
        try:
            media_type = _accepted_type(observation.headers, scope)
            viewer = context = None
            if options.viewer_of is not None:
                found = options.viewer_of(HTTPConnection(scope))
                viewer = await self._in_time(found, began) if isawaitable(found) else found
            if observation.is_get:
                if is_forgeable(scope, options.origins):
                    raise RequestRefusedError(_FORGEABLE, 403)
                requested = parse_url(scope["query_string"])
            else:
                if observation.headers.body_problem is not None:
                    raise RequestRefusedError(observation.headers.body_problem, 415)
                is_of_page = b"origin" in headers or b"sec-fetch-site" in headers
                if is_of_page and is_foreign(scope, options.origins):
                    raise RequestRefusedError(FOREIGN, 403)
                body = await read_body(receive)
                # Many large bodies that come at once wait for their turn as they came: read, they are ten times as large.
                if len(body) > LARGE_BODY:
                    with self._unless_gone(receive) as watched:
                        await self._in_time(turn_to_read(lease, len(body)), began)
                    if watched.is_gone:
                        return
                requested = parse_body(body, options.limits.max_variable_values)
                del body
            observation.requested = requested
            document = options.document_of(requested)
            if document is not requested.query:
                observation.requested = requested._replace(query=document)
            if options.context_of is not None:
                context = options.context_of(HTTPConnection(scope), viewer or {})
                context = await self._in_time(context, began) if isawaitable(context) else context
            key = headers.get(_KEY_FIELD)
            request = OperationRequest(
                document,
                requested.variables,
                requested.operation_name,
                viewer=viewer,
                context=context,
                with_cost=options.cost_details and headers.get(_COST_FIELD, b"").strip().lower() == b"true",
                only_queries=observation.is_get,
                idempotency_key=None if key is None else header_text(key).strip('"'),
                began=began,
                holding=lease,
                observation=observation,
            )
            response: dict[str, Any] = {}
            with self._unless_gone(receive) as watched:
                response = await service.execute(request)
            if watched.is_gone:
                return
            if observation.is_subscription and _is_streamed(scope, observation.headers):
                lease.forget_body()
                del requested, document, response  # it may go on for hours
                await self._stream(request, observation, lease, scope, receive, send)
                return
            if requested.automatic_hash is not None and "data" in response:
                options.documents.keep(requested.automatic_hash, document)
            if "errors" in response:
                options.conceal(response["errors"])
            status = None
        except RequestRefusedError as refused:
            response, status = refused.response, refused.status
        except Overloaded as error:
            response, status = RequestRefusedError(str(error), 503, error.code).response, 503
        except NotAQuery as error:
            response, status = RequestRefusedError(str(error)).response, 405
        except ClientDisconnect:
            return
        if lease.body is not None:
            lease.forget_body()
        if status is None and "data" in response:
            is_refused = media_type == JSON and not options.outage_ok and is_outage(response)
            status = 503 if is_refused else 200
        status = status or status_of(response, media_type)
        await self._answer(observation, lease, send, response, status, media_type)

    async def _stream(
        self,
        request: OperationRequest,
        observation: HTTPObservation,
        lease: Holding,
        scope: Scope,
        receive: Receive,
        send: Send,
    ) -> None:
        """Streams the answers to a subscription."""
        live: LiveQueries = scope["app"].state.live
        observation.status = 200
        scope.get("state", {})[STREAMS] = True
        # Each keeps a connection busy.
        streams = self._options.streams
        place = streams.enter_at_once(lease.clients)
        try:
            if place is None:
                from keygraph_resolvers.live import LiveLimitReached  # few servers have subscriptions

                raise LiveLimitReached("there are as many streams as there may be, or as one client may have")
            listener = await live.listen(request, lease.address)
            observation.shares(request)
            await send_answers(listener, receive, send, observation.answered)
        except KeygraphError as refused:
            await self._answer(observation, lease, send, self._options.refusal(refused), 200, EVENTS)
        finally:
            if place is not None:
                streams.leave(place)

    def _unless_gone(self, receive: Receive) -> UnlessGone:
        if self._unwatched is None or self._unwatched.loop is not asyncio.get_running_loop():
            self._unwatched = Deadlines()
        until = self._unwatched.loop.time() + _UNWATCHED_SECONDS
        return UnlessGone(self._unwatched, until, receive)

    async def _in_time(self, found: Awaitable[_T], began: float) -> _T:
        """Returns what the application finds out about a request. Raises RequestRefusedError if it takes too long."""
        seconds = self._options.limits.operation_timeout
        time = asyncio.timeout_at(began + seconds)
        try:
            async with time:
                return await found
        except TimeoutError:
            if not time.expired():
                raise
        message = f"The operation took more than {seconds:g} seconds. Nothing of it was executed."
        raise RequestRefusedError(message, 503, Code.TIMEOUT)

    async def _answer(
        self,
        observation: HTTPObservation,
        lease: Holding,
        send: Send,
        response: dict[str, Any],
        status: int,
        media_type: str,
    ) -> None:
        options = self._options
        if "errors" in response:
            with_request_id(response["errors"])
        response, body = await options.written(response)
        observation.answer, observation.status = response, status
        # An answer for one viewer is not for the next one.
        is_open = options.viewer_of is None and options.context_of is None
        is_kept = observation.is_get and "errors" not in response and is_open
        if media_type == EVENTS:
            body = only_event(body)
        headers = [
            (b"content-type", _CONTENT_TYPES[media_type]),
            _VARY_OF_GET if observation.is_get else _VARY,
        ]
        if is_kept:
            headers.append(self._cache_control)
        if status == 405:
            headers.append((b"allow", b"POST"))
        if status == 401:
            headers.append((b"www-authenticate", b'Bearer error="invalid_token"'))
        if 0 < options.compress_above < len(body) and takes_gzip(
            observation.headers.fields.get(b"accept-encoding", b"")
        ):
            body = await compressed(body, self._thread)
            headers.append((b"content-encoding", b"gzip"))
        if status == 503:
            headers.append(_RETRY_AFTER)
        headers.append((b"content-length", b"%d" % len(body)))
        if lease.turn is not None:
            lease.answers()
        await send({"type": "http.response.start", "status": status, "headers": headers})
        await send({"type": "http.response.body", "body": body})


_LONG_TEXTS = WorkerThread()
"""Writes what takes long."""


async def written(response: dict[str, Any]) -> bytes:
    """Returns an answer as JSON."""
    try:
        return orjson.dumps(response, default=exact_number)
    except TypeError:
        return await _LONG_TEXTS.run(as_long_json, response)


def _accepted_type(headers: RequestHeaders, scope: Scope) -> str:
    """Returns the media type of the answer. Raises RequestRefusedError for a client that accepts none of those offered,
    or asks for a WebSocket."""
    if headers.fields.get(b"upgrade", b"").lower() == b"websocket":
        raise RequestRefusedError(NO_WEBSOCKETS, 400)
    if headers.answer_type is None:
        if _is_streamed(scope, headers):
            return EVENTS
        is_stream = any(each in headers.fields[b"accept"].lower() for each in _STREAMS)
        problem = f"answers are {GRAPHQL_RESPONSE} or {JSON}{_NO_STREAMS if is_stream else ''}"
        raise RequestRefusedError(problem, 406)
    return headers.answer_type


def _is_streamed(scope: Scope, headers: RequestHeaders) -> bool:
    """Returns whether answers may be streamed: the client takes events."""
    is_live = getattr(scope["app"].state, "live", None) is not None
    return is_live and takes_events(headers.fields.get(b"accept", b""))


async def read_body(receive: Receive) -> bytes:
    """Returns the body. Raises ClientDisconnect if the client disconnects before its end."""
    parts: list[bytes] = []
    has_more = True
    while has_more:
        message = await receive()
        if message["type"] == "http.disconnect":
            raise ClientDisconnect
        parts.append(message.get("body", b""))
        has_more = message.get("more_body", False)
    return b"".join(parts)


async def turn_to_read(lease: Holding, size: int) -> None:
    """Waits for the turn to read a large body, and for a round of the event loop with time for it."""
    await lease.wait_to_read_body(size)
    await rounds().enter(lease.address)


@dataclass(eq=False)
class UnlessGone(Wait):
    """Cancels what runs in its block when the client disconnects. Nothing comes from there then, and `is_gone` is true."""

    receive: Receive
    is_gone: bool = field(default=False, init=False)
    _watching: asyncio.Task[bool] | None = field(default=None, init=False)

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: object) -> bool:
        watching, self._watching = self._watching, None
        if watching is None:
            self.deadlines.waits.pop(self, None)
            return False
        # A server that stops also cancels, and then the task must end.
        if isinstance(error, asyncio.CancelledError) and watching.done() and watching.result():
            self.is_gone = self._task.uncancel() == 0
            without_frames(error)
        watching.cancel()
        return self.is_gone

    def end(self) -> None:
        """Begins to watch for a disconnect."""
        self._watching = self.deadlines.loop.create_task(_watch(self.receive, self._task))


async def _watch(receive: Receive, task: asyncio.Task[Any]) -> bool:
    """Cancels a task when its client disconnects; returns whether it has."""
    try:
        while (await receive())["type"] != "http.disconnect":
            pass
    except RequestRefusedError:
        return False  # a GET with a body that is too large: it is not needed
    task.cancel()
    return True


def is_outage(response: dict[str, Any]) -> bool:
    """Returns whether all root fields of an operation failed because the store could not be reached.

    As `application/graphql-response+json`, such an answer is 200, because it has data: the fields, which are null. The
    specification allows another status for `application/json`.
    """
    errors, data = response.get("errors"), response["data"]
    if not errors or any(error.get("extensions", {}).get("code") != Code.UNAVAILABLE for error in errors):
        return False
    return (
        data is None
        or {error["path"][0] for error in errors if "path" in error}
        == {name for name, value in data.items() if value is None}
        == data.keys()
    )


def status_of(response: dict[str, Any], media_type: str) -> int:
    """Returns the HTTP status of a GraphQL response without data.

    A request error is 400, but 200 as `application/json`: clients of that media type assume that any other status comes
    from an intermediary. An operation that was not started because the server is overloaded is 503.
    """
    codes = {error.get("extensions", {}).get("code") for error in response.get("errors", ())}
    if Code.INTERNAL in codes:
        return 500
    if Code.UNAVAILABLE in codes:
        return 503
    return 400 if media_type == GRAPHQL_RESPONSE else 200
