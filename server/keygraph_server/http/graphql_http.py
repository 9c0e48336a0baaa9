"""GraphQL over HTTP: reads and checks requests, and sends answers.

Follows the GraphQL over HTTP specification (https://graphql.github.io/graphql-over-http/draft/).
"""

from __future__ import annotations

import asyncio
import json
import re
from collections import Counter
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field, replace
from inspect import isawaitable
from time import perf_counter
from typing import Any, Protocol, TypeAlias, TypeVar
from urllib.parse import parse_qsl

import orjson
from starlette.requests import ClientDisconnect, HTTPConnection
from starlette.types import Receive, Scope, Send

from keygraph.codes import Code
from keygraph.dynamo.items import ExactFloat
from keygraph_resolvers import Observed
from keygraph_resolvers.errors import NotAQuery, answer_limit_error
from keygraph_resolvers.read.meter import Holding, Memory
from keygraph_server.connections import BEGAN
from keygraph_server.documents.known import EVERY_DOCUMENT, KnownDocuments
from keygraph_server.documents.manifest import PREFIX
from keygraph_server.errors import RequestRefusedError
from keygraph_server.http.compression import compressed, takes_gzip
from keygraph_server.http.exposure import Exposure
from keygraph_server.http.header_values import (
    GRAPHQL_RESPONSE,
    JSON,
    OFFERED,
    HeaderFields,
    RequestHeaders,
    header_text,
    request_headers,
)
from keygraph_server.http.origins import Origins, is_forgeable
from keygraph_server.http.request_ids import with_request_id

_T = TypeVar("_T")

COST_HEADER = "x-keygraph-cost"
"""A client that sends this header as `true` gets `extensions.cost`."""
_COST_FIELD = COST_HEADER.encode()
IDEMPOTENCY_HEADER = "idempotency-key"
"""Mutations that are sent again with the same value are carried out once."""
_KEY_FIELD = IDEMPOTENCY_HEADER.encode()
_ALIKE = bytes.maketrans(b".123456789E", b"0000000000e")
_LONG_NUMBER, _SMALL_NUMBER = b"0" * 16, re.compile(b"e-000")
"""One of these, written with `_ALIKE`, is in every number that orjson may change: those of 16 digits, and those nearer to
zero than a float can be. For 1 MB, this takes about 2 ms; one regular expression for both, 10 to 20."""
_UNWATCHED_SECONDS = 0.02
"""How long an operation runs before a disconnect is watched for, which costs as much as a small operation."""

_CONTENT_TYPES = {offered: f"{offered}; charset=utf-8".encode() for offered in OFFERED}
# A cache must not give one form of an answer to a client that asked for another.
_VARY = (b"vary", b"accept, accept-encoding")
_VARY_OF_GET = (b"vary", b"accept, accept-encoding, origin")
_NOT_KEPT = (b"cache-control", b"no-store")
_FORGEABLE = (
    "a page of another site may have sent this request: send it as POST, or with the header "
    "Apollo-Require-Preflight: true, or add the page's origin to KEYGRAPH_CORS_ORIGINS"
)
NO_WEBSOCKETS = "this server has no WebSockets and no subscriptions: send queries and mutations as HTTP POST"
_NO_STREAMS = ", and nothing is streamed: there are no subscriptions, send queries and mutations"
_STREAMS = (b"text/event-stream", b"multipart/mixed")
_RETRY_AFTER = (b"retry-after", b"1")
"""In seconds: a server that is overloaded now may have time then."""


Viewer: TypeAlias = Mapping[str, Any]
"""What is known about the client."""
ViewerOf: TypeAlias = Callable[[HTTPConnection], Viewer | Awaitable[Viewer]]
"""Finds the viewer of a request. Raises UnauthenticatedError if the request is not authenticated."""


ContextOf: TypeAlias = Callable[[HTTPConnection, Viewer], Any]
"""Returns the `info.context` of resolvers, or an awaitable of it, for a request and its viewer."""


class Executes(Protocol):
    """Executes a GraphQL request."""

    async def execute(
        self,
        document: str,
        variables: dict[str, Any] | None,
        operation_name: str | None,
        *,
        with_cost: bool,
        idempotency_key: str | None,
        observed: Observed | None,
        only_queries: bool,
        viewer: Viewer | None,
        context: Any,
        holding: Holding | None,
        began: float | None,
    ) -> dict[str, Any]:
        """Returns the GraphQL response. Without `data` it is a request error. `with_cost` adds `extensions.cost`.

        Mutations with a known idempotency key are not carried out again. `observed` receives what can be seen of the
        operation, `holding` counts what it reads; resolvers get the `context`. Its time counts from `began`, by the
        event loop's clock. Raises NotAQuery for an operation of another kind if `only_queries` are allowed.
        """


@dataclass(frozen=True, slots=True)
class GraphQLRequest:
    """The parameters of one request."""

    query: str | None
    """None if the request names its document by an id."""
    variables: dict[str, Any] | None
    operation_name: str | None
    document_id: str | None = None
    automatic_hash: str | None = None
    """The SHA-256 of its document, by Apollo's protocol for automatic persisted queries."""


@dataclass(slots=True, eq=False)
class Exchange:
    """One request and its outcome, for watchers."""

    headers: RequestHeaders
    is_get: bool
    began: float = field(default_factory=perf_counter)
    asked: GraphQLRequest | None = None
    """None if the request is not valid."""
    observed: Observed | None = None
    """None if nobody watches."""
    holding: Holding | None = None
    """The memory that its operation holds."""
    answer: dict[str, Any] | None = None
    """None if the client has disconnected, or if the endpoint has failed."""
    status: int | None = None
    """The status of the answer; None if the client has disconnected."""
    trace_id: str | None = None
    """The trace that it is part of, if it is traced."""
    trace: Any = None
    """What the watcher keeps of the trace."""


class Watcher(Protocol):
    """Sees every exchange, before and after."""

    def begin(self, exchange: Exchange, /) -> None:
        """Called when the head of a request has come, in the task that answers it."""

    def end(self, exchange: Exchange, /) -> None:
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
    answer_limit: int = 0
    """Larger answers, in bytes, are not sent; with 0, all are."""
    compress_above: int = 0
    """Larger answers, in bytes, are compressed if the client accepts gzip; with 0, none is."""
    exposure: Exposure = field(default_factory=Exposure)
    """What clients may see."""
    memory: Memory = field(default_factory=lambda: Memory(48_000_000))
    """The memory that all operations hold, until their answers are sent."""
    watcher: Watcher | None = None
    timeout: float = 15.0
    """How many seconds an operation may take; here, the limit for finding its viewer and context."""


class GraphQLEndpoint:
    """The endpoint: an ASGI application that passes operations to the `state.service` of the main application.

    A POST has its request in its body. A GET has it in its URL, and may only be a query.
    It reads and writes plain ASGI messages, because request and response objects cost more than everything else here.
    """

    def __init__(self, options: EndpointOptions | None = None) -> None:
        self._options = options = options or EndpointOptions()
        self._cache_control = (b"cache-control", options.cache_control.encode())

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        exchange = Exchange(request_headers(scope), is_get=scope["method"] != "POST")
        # What an operation has read is kept until its answer is sent.
        with self._options.memory.holding() as exchange.holding:
            if self._options.watcher is None:
                await self._exchange(exchange, scope, receive, send)
            else:
                await self._watched(self._options.watcher, exchange, scope, receive, send)

    async def _watched(
        self, watcher: Watcher, exchange: Exchange, scope: Scope, receive: Receive, send: Send
    ) -> None:
        exchange.observed = Observed()
        watcher.begin(exchange)
        try:
            await self._exchange(exchange, scope, receive, send)
        except Exception:
            exchange.status = 500
            raise
        finally:
            watcher.end(exchange)

    async def _exchange(self, exchange: Exchange, scope: Scope, receive: Receive, send: Send) -> None:
        headers, options = exchange.headers.fields, self._options
        # Servers that do not set it have just read the head.
        began = scope.get("state", {}).get(BEGAN) or asyncio.get_running_loop().time()
        # If the client accepts no offered type, the error is sent as JSON.
        media_type = JSON
        try:
            media_type = _accepted_type(exchange.headers)
            viewer = None if options.viewer_of is None else options.viewer_of(HTTPConnection(scope))
            if isawaitable(viewer):
                viewer = await self._in_time(viewer, began)
            if exchange.is_get:
                asked = self._asked_by_get(scope, headers)
            else:
                check_body_type(exchange.headers)
                asked = parse_body(await read_body(receive))
            exchange.asked = asked
            document = options.documents.document_of(asked)
            if asked.query is None:
                exchange.asked = replace(asked, query=document)
            context = (
                None
                if options.context_of is None
                else options.context_of(HTTPConnection(scope), viewer or {})
            )
            if isawaitable(context):
                context = await self._in_time(context, began)
            service: Executes = scope["app"].state.service
            with_cost = (
                options.exposure.cost_details and headers.get(_COST_FIELD, b"").strip().lower() == b"true"
            )
            response = await unless_gone(
                receive,
                service.execute(
                    document,
                    asked.variables,
                    asked.operation_name,
                    with_cost=with_cost,
                    idempotency_key=idempotency_key(headers),
                    observed=exchange.observed,
                    only_queries=exchange.is_get,
                    viewer=viewer,
                    context=context,
                    holding=exchange.holding,
                    began=began,
                ),
            )
        except (RequestRefusedError, NotAQuery) as error:
            refused = (
                error if isinstance(error, RequestRefusedError) else RequestRefusedError(str(error), 405)
            )
            answer = refused.response
            status = refused.status or status_of(answer, media_type)
            await self._answer(exchange, send, answer, media_type, status)
            return
        except ClientDisconnect:
            return
        if response is not None:
            if asked.automatic_hash is not None and "data" in response:
                options.documents.keep(asked)
            if "errors" in response:
                options.exposure.conceal(response["errors"])
            await self._answer(exchange, send, response, media_type, status_of(response, media_type))

    async def _in_time(self, found: Awaitable[_T], began: float) -> _T:
        """Returns what the application finds out about a request. Raises RequestRefusedError if it takes too long."""
        seconds = self._options.timeout
        time = asyncio.timeout_at(began + seconds)
        try:
            async with time:
                return await found
        except TimeoutError:
            if not time.expired():
                raise
        message = f"The operation took more than {seconds:g} seconds. Nothing of it was executed."
        raise RequestRefusedError(message, 503, Code.TIMEOUT)

    def _asked_by_get(self, scope: Scope, headers: HeaderFields) -> GraphQLRequest:
        """Returns the request in the URL. Raises RequestRefusedError if it may come from a foreign page."""
        if is_forgeable(headers, self._options.origins):
            raise RequestRefusedError(_FORGEABLE, 403)
        return parse_url(scope["query_string"])

    async def _answer(
        self, exchange: Exchange, send: Send, response: dict[str, Any], media_type: str, status: int
    ) -> None:
        options = self._options
        if "errors" in response:
            with_request_id(response["errors"])
        body = written(response)
        if 0 < options.answer_limit < len(body):
            response = {"data": None, "errors": [answer_limit_error(options.answer_limit)]}
            with_request_id(response["errors"])
            body = written(response)
        exchange.answer, exchange.status, asked = response, status, exchange.headers.fields
        # An answer for one viewer is not for the next one.
        is_open = options.viewer_of is None and options.context_of is None
        is_kept = exchange.is_get and "errors" not in response and is_open
        headers = [
            (b"content-type", _CONTENT_TYPES[media_type]),
            _VARY_OF_GET if exchange.is_get else _VARY,
            self._cache_control if is_kept else _NOT_KEPT,
        ]
        if status == 405:
            headers.append((b"allow", b"POST"))
        if status == 401:
            headers.append((b"www-authenticate", b'Bearer error="invalid_token"'))
        if 0 < options.compress_above < len(body) and takes_gzip(asked.get(b"accept-encoding", b"")):
            body = await compressed(body)
            headers.append((b"content-encoding", b"gzip"))
        if status == 503:
            headers.append(_RETRY_AFTER)
        headers.append((b"content-length", b"%d" % len(body)))
        if exchange.holding is not None and exchange.holding.has_turn:
            exchange.holding.answers()
        await send({"type": "http.response.start", "status": status, "headers": headers})
        await send({"type": "http.response.body", "body": body})


def idempotency_key(headers: HeaderFields) -> str | None:
    """Returns the value of the Idempotency-Key header, a text with or without quotes; None if there is none."""
    value = headers.get(_KEY_FIELD)
    return None if value is None else header_text(value).strip('"')


def _accepted_type(headers: RequestHeaders) -> str:
    """Returns the media type of the answer. Raises RequestRefusedError for a client that accepts none of those offered,
    or asks for a WebSocket."""
    if headers.fields.get(b"upgrade", b"").lower() == b"websocket":
        raise RequestRefusedError(NO_WEBSOCKETS, 400)
    if headers.answer_type is None:
        is_stream = any(each in headers.fields[b"accept"].lower() for each in _STREAMS)
        told = f"answers are {GRAPHQL_RESPONSE} or {JSON}{_NO_STREAMS if is_stream else ''}"
        raise RequestRefusedError(told, 406)
    return headers.answer_type


def check_body_type(headers: RequestHeaders) -> None:
    """Raises RequestRefusedError unless the headers declare a JSON body in UTF-8."""
    if headers.body_problem is not None:
        raise RequestRefusedError(headers.body_problem, 415)


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


def parse_body(body: bytes) -> GraphQLRequest:
    """Returns the request in a body. Raises RequestRefusedError if the body is not a request."""
    content = read_json(body, "the body")
    if isinstance(content, list):
        raise RequestRefusedError("batches are not supported: send one request at a time", 400)
    if not isinstance(content, dict):
        raise RequestRefusedError("the body must be a JSON object", 400)
    return _request(content)


def parse_url(query_string: bytes) -> GraphQLRequest:
    """Returns the request in a URL after its question mark. Raises RequestRefusedError if it is not a request."""
    try:
        pairs = parse_qsl(query_string.decode("ascii"), errors="strict", max_num_fields=50)
    except ValueError:
        raise RequestRefusedError("the URL is not valid: its parameters must be UTF-8", 400) from None
    content: dict[str, Any] = dict(pairs)
    for name, count in Counter(name for name, _ in pairs).items():
        if count > 1:
            raise RequestRefusedError(f"the URL has {name[:40]} more than once", 400)
    for name in ("variables", "extensions"):
        if name in content:
            content[name] = read_json(content[name].encode(), name)
    return _request(content)


def _request(content: dict[str, Any]) -> GraphQLRequest:
    variables = _optional(content, "variables", dict, "an object")
    operation_name = _optional(content, "operationName", str, "a string")
    extensions = _optional(content, "extensions", dict, "an object")
    query, document_id, automatic_hash = content.get("query"), _document_id(content), None
    if extensions is not None and "persistedQuery" in extensions:
        automatic_hash = _automatic_hash(extensions["persistedQuery"])
    if not query and (document_id or automatic_hash):
        query = None
    elif not isinstance(query, str):
        raise RequestRefusedError("query must be a string that contains a GraphQL document", 400)
    elif document_id is not None:
        raise RequestRefusedError("a request has a query or a documentId, not both", 400)
    return GraphQLRequest(query, variables, operation_name, document_id, automatic_hash)


def _document_id(content: dict[str, Any]) -> str | None:
    """Returns the id of the document. Relay's own name for it is `doc_id`."""
    name = "documentId" if "documentId" in content else "doc_id"
    found = _optional(content, name, str, "a string")
    return None if found is None else found.removeprefix(PREFIX)


def _automatic_hash(persisted: Any) -> str:
    """Returns the hash in `extensions.persistedQuery`."""
    found = persisted.get("sha256Hash") if isinstance(persisted, dict) else None
    if not isinstance(found, str) or persisted.get("version") != 1:
        raise RequestRefusedError("persistedQuery must have the version 1 and a sha256Hash", 400)
    return found


def read_json(text: bytes, what: str) -> Any:
    """Returns the content of a JSON text, which messages call `what`. Raises RequestRefusedError."""
    verb = "are" if what.endswith("s") else "is"
    try:
        content = orjson.loads(text)
        # orjson reads fractions, and integers of more than 64 bits, as floats, which are different numbers.
        alike = text.translate(_ALIKE)
        if _LONG_NUMBER in alike or _SMALL_NUMBER.search(alike):
            return json.loads(text, parse_float=ExactFloat)
        return content
    except orjson.JSONDecodeError as error:
        raise RequestRefusedError(f"{what} {verb} not valid JSON: {_json_problem(error)}", 400) from None
    except RecursionError:
        raise RequestRefusedError(f"{what} {verb} nested too deeply", 400) from None


def _json_problem(error: orjson.JSONDecodeError) -> str:
    """Returns orjson's message, without its words for characters of UTF-16."""
    if error.msg.startswith("str is not valid UTF-8"):
        return "its text is not UTF-8"
    if "surrogate" in error.msg:
        return f"\\ud800 to \\udfff are halves of characters and come in pairs (character {error.pos})"
    return f"{error.msg} (character {error.pos})"


def _optional(content: dict[str, Any], name: str, kind: type[_T], what: str) -> _T | None:
    value = content.get(name)
    if value is not None and not isinstance(value, kind):
        raise RequestRefusedError(f"{name} must be {what} or null", 400)
    return value


async def unless_gone(receive: Receive, answering: Awaitable[_T]) -> _T | None:
    """Returns the answer; None if the client disconnects first, and then the work is canceled."""
    task: asyncio.Task[Any] | None = asyncio.current_task()
    if task is None:
        return await answering
    departure = _Departure(receive, task)
    try:
        return await answering
    except asyncio.CancelledError:
        # A server that stops also cancels, and then the task must end.
        if departure.has_happened and task.uncancel() == 0:
            return None
        raise
    finally:
        departure.forget()


class _Departure:
    """Cancels a task when its client disconnects."""

    def __init__(self, receive: Receive, task: asyncio.Task[Any]) -> None:
        self.has_happened = False
        self._receive = receive
        self._task = task
        self._watching: asyncio.Task[None] | None = None
        self._begins = asyncio.get_running_loop().call_later(_UNWATCHED_SECONDS, self._begin)

    def _begin(self) -> None:
        self._watching = asyncio.create_task(self._watch())

    async def _watch(self) -> None:
        try:
            while (await self._receive())["type"] != "http.disconnect":
                pass
        except RequestRefusedError:
            return  # a GET with a body that is too large: it is not needed
        self.has_happened = True
        self._task.cancel()

    def forget(self) -> None:
        """Stops watching: the task is done."""
        self._begins.cancel()
        if self._watching is not None:
            self._watching.cancel()


def status_of(response: dict[str, Any], media_type: str) -> int:
    """Returns the HTTP status of a GraphQL response.

    A request error is 400, but 200 as `application/json`: clients of that media type assume that any other status comes
    from an intermediary. An operation that was not started because the server is overloaded is 503.
    """
    if "data" in response:
        return 200
    codes = {error.get("extensions", {}).get("code") for error in response.get("errors", ())}
    if Code.INTERNAL in codes:
        return 500
    if Code.UNAVAILABLE in codes:
        return 503
    return 200 if media_type == JSON else 400


def written(response: dict[str, Any]) -> bytes:
    """Returns the GraphQL response as JSON."""
    try:
        return orjson.dumps(response, default=_number)
    except orjson.JSONEncodeError:
        # orjson refuses integers of more than 64 bits, which a table can contain.
        return orjson.dumps(_with_long_integers(response), default=_number)


def _number(value: object) -> orjson.Fragment:
    """Returns a number as JSON, with all its digits."""
    if isinstance(value, ExactFloat):
        return orjson.Fragment(repr(value))
    raise TypeError(f"a value of type {type(value).__name__}")


def _with_long_integers(value: Any) -> Any:
    match value:
        case dict():
            return {name: _with_long_integers(inner) for name, inner in value.items()}
        case list():
            return [_with_long_integers(inner) for inner in value]
        case int() if not isinstance(value, bool):
            return orjson.Fragment(str(value))
    return value
