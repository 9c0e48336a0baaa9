"""GraphQL over HTTP: what a request must be, and how an answer is sent.

The rules are those of the GraphQL over HTTP specification (https://graphql.github.io/graphql-over-http/draft/).
"""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any, Protocol, TypeVar

import orjson
from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response

_T = TypeVar("_T")

JSON = "application/json"
GRAPHQL_RESPONSE = "application/graphql-response+json"
COST_HEADER = "x-keygraph-cost"
"""By this header, as `true`, a client asks what its operation costs."""
_LONG_INTEGER = re.compile(rb"[0-9]{19}")
"""What an integer of more than 64 bits has at least."""
_OFFERED = (GRAPHQL_RESPONSE, JSON)
"""What answers are written as, the preferred one first."""

_CLIENT_HAS_GONE = 499
"""Nobody reads it; servers commonly log a request whose client has gone under this status."""


class Executes(Protocol):
    """What answers a GraphQL request."""

    async def execute(
        self,
        document: str,
        variables: dict[str, Any] | None,
        operation_name: str | None,
        *,
        with_cost: bool,
    ) -> dict[str, Any]:
        """The GraphQL response; one without `data` is a request error. `with_cost` asks for `extensions.cost`."""


@dataclass(frozen=True, slots=True)
class GraphQLRequest:
    """The parameters of one request."""

    query: str
    variables: dict[str, Any] | None
    operation_name: str | None


class RequestRefusedError(Exception):
    """A request that is no GraphQL request: the HTTP status and what is wrong."""

    def __init__(self, status: int, message: str) -> None:
        self.status = status
        super().__init__(message)


def graphql_endpoint(max_body_bytes: int) -> Callable[[Request], Awaitable[Response]]:
    """The endpoint, which asks the application's `state.service`."""

    async def answer(request: Request) -> Response:
        # An answer that nobody accepts is JSON.
        media_type = JSON
        try:
            media_type = negotiated(request.headers.getlist("accept"))
            check_headers(request)
            asked = parse_request(await read_body(request, max_body_bytes))
        except RequestRefusedError as refused:
            error = {"message": str(refused), "extensions": {"code": "BAD_USER_INPUT"}}
            return write_response({"errors": [error]}, media_type, refused.status)
        except ClientDisconnect:
            return Response(status_code=_CLIENT_HAS_GONE)
        service: Executes = request.app.state.service
        with_cost = request.headers.get(COST_HEADER, "").strip().lower() == "true"
        response = await _unless_gone(
            request,
            service.execute(asked.query, asked.variables, asked.operation_name, with_cost=with_cost),
        )
        if response is None:
            return Response(status_code=_CLIENT_HAS_GONE)
        return write_response(response, media_type, status_of(response, media_type))

    return answer


def check_headers(request: Request) -> None:
    """Raises RequestRefusedError unless the body is said to be JSON in UTF-8."""
    media_type, parameters = _parse_media_type(request.headers.get("content-type", ""))
    if media_type != JSON:
        raise RequestRefusedError(415, f"the Content-Type of a request must be {JSON}")
    if parameters.get("charset", "utf-8").lower() not in {"utf-8", "utf8"}:
        raise RequestRefusedError(415, "the charset of a request must be utf-8")
    if request.headers.get("content-encoding", "identity").lower() != "identity":
        raise RequestRefusedError(415, "a request with a Content-Encoding is not understood")


async def read_body(request: Request, limit: int) -> bytes:
    """The body. Raises RequestRefusedError as soon as it is known to have more bytes than the limit."""
    too_large = RequestRefusedError(413, f"the body of a request may have at most {limit} bytes")
    length = request.headers.get("content-length", "")
    if length.isdecimal() and int(length) > limit:
        raise too_large
    body = bytearray()
    async for chunk in request.stream():
        body += chunk
        if len(body) > limit:
            raise too_large
    return bytes(body)


def parse_request(body: bytes) -> GraphQLRequest:
    """The request in the body. Raises RequestRefusedError where there is none."""
    try:
        content = _read_json(body)
    except (ValueError, RecursionError):
        raise RequestRefusedError(400, "the body is no JSON") from None
    if isinstance(content, list):
        raise RequestRefusedError(400, "batches are not supported: send one request at a time")
    if not isinstance(content, dict):
        raise RequestRefusedError(400, "the body must be a JSON object")
    query = content.get("query")
    if not isinstance(query, str):
        raise RequestRefusedError(400, "query must be a string with a GraphQL document")
    variables = _optional(content, "variables", dict, "an object")
    operation_name = _optional(content, "operationName", str, "a string")
    _optional(content, "extensions", dict, "an object")
    return GraphQLRequest(query, variables, operation_name)


def _read_json(body: bytes) -> Any:
    content = orjson.loads(body)
    # orjson reads an integer of more than 64 bits as a float, which would be another number.
    return json.loads(body) if _LONG_INTEGER.search(body) else content


def _optional(content: dict[str, Any], name: str, kind: type[_T], what: str) -> _T | None:
    value = content.get(name)
    if value is not None and not isinstance(value, kind):
        raise RequestRefusedError(400, f"{name} must be {what}, or null")
    return value


def negotiated(accept: list[str]) -> str:
    """The media type of the answer, by the request's Accept headers.

    Raises RequestRefusedError where the client accepts none that there is.
    """
    ranges = [_parse_media_type(part) for header in accept for part in header.split(",") if part.strip()]
    if not ranges:
        return _OFFERED[0]
    # The greatest weight wins; of equal ones the first that is offered, which is what `max` takes.
    best = max(_OFFERED, key=lambda offered: _weight(offered, ranges))
    if _weight(best, ranges) <= 0:
        raise RequestRefusedError(406, f"answers are {GRAPHQL_RESPONSE} or {JSON}")
    return best


def _weight(offered: str, ranges: list[tuple[str, dict[str, str]]]) -> float:
    """The weight that a client gives a media type: that of the most specific range (RFC 9110, 12.5.1)."""
    for wanted in (offered, f"{offered.partition('/')[0]}/*", "*/*"):
        weights = [_quality(parameters) for name, parameters in ranges if name == wanted]
        if weights:
            return max(weights)
    return 0.0


def _quality(parameters: dict[str, str]) -> float:
    try:
        return float(parameters.get("q", "1"))
    except ValueError:
        return 0.0


def _parse_media_type(text: str) -> tuple[str, dict[str, str]]:
    """A media type or range, in lower case, with its parameters."""
    name, *parts = text.split(";")
    parameters = {}
    for part in parts:
        key, _, value = part.partition("=")
        parameters[key.strip().lower()] = value.strip().strip('"')
    return name.strip().lower(), parameters


def status_of(response: dict[str, Any], media_type: str) -> int:
    """The HTTP status of a GraphQL response.

    A request error is 400, except that as `application/json` every well-formed request is answered 200, since a
    client of that media type takes any other status for an intermediary's.
    """
    if "data" in response:
        return 200
    codes = {error.get("extensions", {}).get("code") for error in response.get("errors", ())}
    if "INTERNAL" in codes:
        return 500
    return 200 if media_type == JSON else 400


def write_response(response: dict[str, Any], media_type: str, status: int) -> Response:
    """The GraphQL response as an HTTP response."""
    try:
        body = orjson.dumps(response)
    except orjson.JSONEncodeError:
        # orjson refuses integers of more than 64 bits, of which a table can hold longer ones.
        body = json.dumps(response, ensure_ascii=False, separators=(",", ":")).encode()
    return Response(
        body,
        status,
        # A cache between client and server must not give one media type to who asked for the other.
        {"content-type": f"{media_type}; charset=utf-8", "vary": "accept"},
    )


async def _unless_gone(request: Request, answering: Awaitable[_T]) -> _T | None:
    """The answer; None, and the work is cancelled, where the client goes before there is one."""
    work = asyncio.ensure_future(answering)
    gone = asyncio.create_task(_disconnected(request))
    try:
        await asyncio.wait((work, gone), return_when=asyncio.FIRST_COMPLETED)
        return work.result() if work.done() else None
    finally:
        work.cancel()
        gone.cancel()
        # Waits until what was cancelled has let its resources go.
        await asyncio.gather(work, gone, return_exceptions=True)


async def _disconnected(request: Request) -> None:
    while (await request.receive())["type"] != "http.disconnect":
        pass
