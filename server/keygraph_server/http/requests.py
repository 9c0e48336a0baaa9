"""Reads requests of GraphQL over HTTP: their headers, once, and the operations in bodies and URLs."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from contextvars import ContextVar
from dataclasses import dataclass
from functools import wraps
from typing import Any, NamedTuple, TypeAlias, TypeVar, cast
from urllib.parse import parse_qsl

import orjson
from starlette.types import Scope

from keygraph.dynamo.items import ExactFloat
from keygraph.kept import kept
from keygraph.limits import Limits
from keygraph_server.documents.manifest import PREFIX
from keygraph_server.errors import RequestRefusedError

HeaderFields: TypeAlias = Mapping[bytes, bytes]
_T = TypeVar("_T")

JSON = "application/json"
GRAPHQL_RESPONSE = "application/graphql-response+json"
OFFERED = (GRAPHQL_RESPONSE, JSON)
"""The media types of answers. JSON is for clients that do not name the other, which are older than it."""

READ_HEADERS = "keygraph.headers"
"""The key of the headers in the scope of a request once they are read."""
WAITS_SINCE = "keygraph.waits-since"
"""The key, in the same scope, of the time since which a request waited to begin, by `time.perf_counter`."""
_VALUES_KEPT = 256
"""Clients send the same few values with every request."""
_LONGEST_KEPT = 256
"""In bytes. A longer value is read each time, so that clients cannot fill the memory."""
LONGEST_READ = 512
"""A still longer one is taken for a missing one: reading 16 KB of commas takes 7 ms, and 8 KB of spaces, in those fields
that OpenTelemetry reads, 100."""

_ALIKE = bytes.maketrans(b".123456789E", b"0000000000e")
_LONG_NUMBER, _SMALL_NUMBER = b"0" * 16, re.compile(b"e-000")
"""One of these, written with `_ALIKE`, is in every number that orjson may change: those of 16 digits, and those nearer to
zero than a float can be. For 1 MB, this takes about 2 ms; one regular expression for both, 10 to 20."""
_SMALL_TEXT = 16 * 1024
"""A shorter text is parsed within a millisecond, whatever it holds. orjson takes 50 ms for 1 MB of empty lists, in which
no thread runs; to count them takes 1 to 3."""
_VALUES = Limits().max_variable_values
_DEEPEST = 254
"""The levels of lists and objects that orjson writes. It reads 1,024, of which Python makes no text of an error."""
_BESIDE_VARIABLES = 1_000
"""The values that a request may have outside of its variables."""

REQUEST_ID: ContextVar[str | None] = ContextVar("keygraph-request-id", default=None)
"""The id of the request that the running task answers."""

REQUEST_ID_HEADER = "x-request-id"


def with_request_id(errors: Iterable[dict[str, Any]]) -> None:
    """Puts the id of the running request into the extensions of these errors."""
    request_id = REQUEST_ID.get()
    if request_id is not None:
        for error in errors:
            error.setdefault("extensions", {})["requestId"] = request_id


# --- Headers ------------------------------------------------------------------------------------------


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
    if READ_HEADERS in scope:
        return cast(RequestHeaders, scope[READ_HEADERS])
    fields: dict[bytes, bytes] = {}
    for name, value in scope["headers"]:
        fields[name] = fields[name] + b", " + value if name in fields else value
    problem = _problem_of_type(fields.get(b"content-type", b""))
    if problem is None and fields.get(b"content-encoding", b"identity").lower() != b"identity":
        problem = "requests with a Content-Encoding are not supported"
    found = scope[READ_HEADERS] = RequestHeaders(fields, _answer_type(fields.get(b"accept", b"")), problem)
    return found


def header_text(value: bytes) -> str:
    """Returns the text of a header field's value: UTF-8, or Latin-1 if it is not that."""
    trimmed = value.strip(b" \t")
    try:
        return trimmed.decode()
    except UnicodeDecodeError:
        return trimmed.decode("latin-1")


def remembered(read: Callable[[bytes], _T]) -> Callable[[bytes], _T]:
    """Caches the results for the last short values of a header field, and does not read values of many parts."""
    known = kept("headers", _VALUES_KEPT, 10 * _LONGEST_KEPT)(read)

    @wraps(read)
    def look_up(value: bytes) -> _T:
        if len(value) <= _LONGEST_KEPT:
            return known(value)
        return read(value) if len(value) <= LONGEST_READ else known(b"")

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


# --- Operations ---------------------------------------------------------------------------------------


class GraphQLRequest(NamedTuple):
    """The parameters of one request."""

    query: str | None
    """None if the request names its document by an id."""
    variables: dict[str, Any] | None
    operation_name: str | None
    document_id: str | None = None
    automatic_hash: str | None = None
    """The SHA-256 of its document, by Apollo's protocol for automatic persisted queries."""


def check_body_type(headers: RequestHeaders) -> None:
    """Raises RequestRefusedError unless the headers declare a JSON body in UTF-8."""
    if headers.body_problem is not None:
        raise RequestRefusedError(headers.body_problem, 415)


def parse_body(body: bytes, most_values: int = _VALUES) -> GraphQLRequest:
    """Returns the request in a body, whose variables may have `most_values`. Raises RequestRefusedError if it is none."""
    content = read_json(body, "the body", most_values)
    if isinstance(content, list):
        raise RequestRefusedError("batches are not supported: send one request at a time", 400)
    if not isinstance(content, dict):
        raise RequestRefusedError("the body must be a JSON object", 400)
    return parse_operation(content)


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
    return parse_operation(content)


_OPTIONAL: tuple[tuple[str, type, str], ...] = (
    ("variables", dict, "an object"),
    ("operationName", str, "a string"),
    ("extensions", dict, "an object"),
)
"""The parameters that may be left out or null, with their types."""


def parse_operation(content: dict[str, Any]) -> GraphQLRequest:
    """Returns the request with these parameters. Raises RequestRefusedError if they are none."""
    # Relay's own name for the id of a document is `doc_id`.
    id_name = "documentId" if "documentId" in content else "doc_id"
    for name, kind, what in (*_OPTIONAL, (id_name, str, "a string")):
        value = content.get(name)
        if value is not None and not isinstance(value, kind):
            raise RequestRefusedError(f"{name} must be {what} or null", 400)
    query, extensions, automatic_hash = content.get("query"), content.get("extensions"), None
    document_id = content.get(id_name)
    if document_id is not None:
        document_id = document_id.removeprefix(PREFIX)
    if extensions is not None and "persistedQuery" in extensions:
        automatic_hash = _automatic_hash(extensions["persistedQuery"])
    if not query and (document_id or automatic_hash):
        query = None
    elif not isinstance(query, str):
        raise RequestRefusedError("query must be a string that contains a GraphQL document", 400)
    elif document_id is not None:
        raise RequestRefusedError("a request has a query or a documentId, not both", 400)
    return GraphQLRequest(
        query, content.get("variables"), content.get("operationName"), document_id, automatic_hash
    )


def _automatic_hash(persisted: Any) -> str:
    """Returns the hash in `extensions.persistedQuery`."""
    found = persisted.get("sha256Hash") if isinstance(persisted, dict) else None
    if not isinstance(found, str) or persisted.get("version") != 1:
        raise RequestRefusedError("persistedQuery must have the version 1 and a sha256Hash", 400)
    return found


def read_json(text: bytes, what: str, most_values: int = _VALUES) -> Any:
    """Returns the content of a JSON text, which messages call `what`. Raises RequestRefusedError, without parsing the
    text if it has many more values than `most_values`, which the variables of a request may have."""
    # Each value may be a list, which counts twice.
    allowed = 2 * most_values + _BESIDE_VARIABLES
    if len(text) > _SMALL_TEXT and _separators(text) > allowed and values_in(text, allowed) > allowed:
        # Imported here, because the settings of every command import this module.
        from keygraph_resolvers.codes import OperationCode

        problem = f"{what} has too many values: the variables of a request may have {most_values:,}"
        raise RequestRefusedError(problem, code=OperationCode.DOCUMENT_LIMIT)
    verb = "are" if what.endswith("s") else "is"
    try:
        content = orjson.loads(text)
        if text.count(b"[") + text.count(b"{") > _DEEPEST:
            orjson.dumps(content)
        # orjson reads fractions, and integers of more than 64 bits, as floats, which are different numbers.
        alike = text.translate(_ALIKE)
        if _LONG_NUMBER in alike or _SMALL_NUMBER.search(alike):
            return json.loads(text, parse_float=ExactFloat)
        return content
    except orjson.JSONDecodeError as error:
        raise RequestRefusedError(f"{what} {verb} not valid JSON: {_json_problem(error)}", 400) from None
    except orjson.JSONEncodeError:
        raise RequestRefusedError(f"{what} {verb} nested too deeply", 400) from None


def values_in(text: bytes, most: int) -> int:
    """Returns the number of commas, lists and objects in a JSON text, without those in its strings; if there are more
    strings than `most` values can have, a greater number."""
    if b"\\" in text:
        text = text.replace(rb"\\", b"").replace(rb"\"", b"")
    quotes = text.count(b'"')
    return quotes if quotes > 4 * (most + 1) else _separators(b"".join(text.split(b'"')[::2]))


def _separators(text: bytes) -> int:
    return text.count(b",") + text.count(b"[") + text.count(b"{")


def _json_problem(error: orjson.JSONDecodeError) -> str:
    """Returns orjson's message, without its words for characters of UTF-16."""
    if error.msg.startswith("str is not valid UTF-8"):
        return "its text is not UTF-8"
    if "surrogate" in error.msg:
        return f"\\ud800 to \\udfff are halves of characters and come in pairs (character {error.pos})"
    return f"{error.msg} (character {error.pos})"
