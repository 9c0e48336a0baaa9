"""The headers of a request, read once, and the parameters and weights of their values."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import wraps
from typing import TypeAlias, TypeVar, cast

from starlette.types import Scope

from keygraph.kept import kept

HeaderFields: TypeAlias = Mapping[bytes, bytes]
_T = TypeVar("_T")

JSON = "application/json"
GRAPHQL_RESPONSE = "application/graphql-response+json"
OFFERED = (GRAPHQL_RESPONSE, JSON)
"""The media types of answers. JSON is for clients that do not name the other, which are older than it."""

_IN_SCOPE = "keygraph.headers"
"""The key of the headers in the scope of a request once they are read."""
_VALUES_KEPT = 256
"""Clients send the same few values with every request."""
_LONGEST_KEPT = 256
"""In bytes. A longer value is read each time, so that clients cannot fill the memory."""


@dataclass(slots=True, eq=False)
class RequestHeaders:
    """The headers of a request, and their meaning for GraphQL over HTTP."""

    fields: HeaderFields
    """By lower-case name."""
    answer_type: str | None
    """The media type of the answer; None if the client accepts none of those offered."""
    body_problem: str | None
    """Why the body cannot be JSON in UTF-8; None if it can."""


def request_headers(scope: Scope) -> RequestHeaders:
    """Returns the headers of a request, read on first use. Fields of one name are joined (RFC 9110, 5.3)."""
    if _IN_SCOPE in scope:
        return cast(RequestHeaders, scope[_IN_SCOPE])
    fields: dict[bytes, bytes] = {}
    for name, value in scope["headers"]:
        fields[name] = fields[name] + b", " + value if name in fields else value
    problem = _problem_of_type(fields.get(b"content-type", b""))
    if problem is None and fields.get(b"content-encoding", b"identity").lower() != b"identity":
        problem = "requests with a Content-Encoding are not supported"
    found = scope[_IN_SCOPE] = RequestHeaders(fields, _answer_type(fields.get(b"accept", b"")), problem)
    return found


def header_text(value: bytes) -> str:
    """Returns the text of a header field's value: UTF-8, or Latin-1 if it is not that."""
    trimmed = value.strip(b" \t")
    try:
        return trimmed.decode()
    except UnicodeDecodeError:
        return trimmed.decode("latin-1")


def remembered(read: Callable[[bytes], _T]) -> Callable[[bytes], _T]:
    """Caches the results for the last short values of a header field."""
    known = kept("headers", _VALUES_KEPT, 10 * _LONGEST_KEPT)(read)

    @wraps(read)
    def look_up(value: bytes) -> _T:
        return known(value) if len(value) <= _LONGEST_KEPT else read(value)

    return look_up


@remembered
def _answer_type(accept: bytes) -> str | None:
    """Returns the media type of the answer for an Accept header; None if the client accepts none of those offered."""
    ranges = [parse_media_type(part) for part in accept.decode("latin-1").split(",") if part.strip()]
    weights = {offered: _weight(offered, ranges or [("*/*", {})]) for offered in OFFERED}
    is_named = any(name == GRAPHQL_RESPONSE for name, _ in ranges)
    if weights[JSON] > 0 and (weights[JSON] > weights[GRAPHQL_RESPONSE] or not is_named):
        return JSON
    return GRAPHQL_RESPONSE if weights[GRAPHQL_RESPONSE] > 0 else None


@remembered
def _problem_of_type(content_type: bytes) -> str | None:
    """Returns what is wrong with the Content-Type of a request; None if it is valid."""
    media_type, parameters = parse_media_type(content_type.decode("latin-1"))
    if media_type != JSON:
        return f"the Content-Type of a request must be {JSON}"
    if parameters.get("charset", "utf-8").lower() not in {"utf-8", "utf8"}:
        return "the charset of a request must be utf-8"
    return None


def parse_media_type(text: str) -> tuple[str, dict[str, str]]:
    """Returns a media type, a range or a coding, in lower case, with its parameters."""
    name, *parts = text.split(";")
    parameters = {}
    for part in parts:
        key, _, value = part.partition("=")
        parameters[key.strip().lower()] = value.strip().strip('"')
    return name.strip().lower(), parameters


def _weight(offered: str, ranges: list[tuple[str, dict[str, str]]]) -> float:
    """Returns the weight of a media type: that of the most specific range that matches (RFC 9110, 12.5.1)."""
    for wanted in (offered, f"{offered.partition('/')[0]}/*", "*/*"):
        weights = [quality(parameters) for name, parameters in ranges if name == wanted]
        if weights:
            return max(weights)
    return 0.0


def quality(parameters: dict[str, str]) -> float:
    """Returns the weight among the parameters (RFC 9110, 12.4.2): 1 if there is none, 0 if it is not a number."""
    try:
        return float(parameters.get("q", "1"))
    except ValueError:
        return 0.0
