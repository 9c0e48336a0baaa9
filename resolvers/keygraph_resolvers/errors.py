"""Errors as clients see them. Errors that clients can act on have a code; all others are masked and logged.

`GRAPHQL_PARSE_FAILED` and `GRAPHQL_VALIDATION_FAILED` are errors in the document. A `KeygraphError` has its own code. A
value that a scalar refuses is `BAD_USER_INPUT`. Anything else is `INTERNAL`: the answer has an id, and the log has the
details under this id.

If a requested value is missing without an error, the answer has a warning in `extensions.warnings`: `COUNT_LIMIT` means
that a `totalCount` is null because it would cost too much.
"""

from __future__ import annotations

import logging
import uuid
from collections.abc import Mapping
from typing import Any

from graphql import FieldNode, GraphQLError, GraphQLSyntaxError

from keygraph.codes import Code
from keygraph.errors import BadUserInput, FieldName, KeygraphError, Refusal
from keygraph.names import camel, public_path
from keygraph_resolvers.codes import OperationCode

_log = logging.getLogger("keygraph")

_SHOWN_BEGINNING, _SHOWN_END = 400, 160
"""How many characters of a long message are shown. Its own words are before and after the text that it quotes."""


def public_error(error: GraphQLError, *, code: str | None = None) -> dict[str, Any]:
    """Returns the error as a client sees it. `code` is the code of an error that graphql-core itself raised."""
    cause = error.original_error
    while isinstance(cause, GraphQLError) and cause.original_error is not None:
        cause = cause.original_error
    is_own = isinstance(cause, BadUserInput) and error.message == str(cause)
    shown = {"message": _shortened(message_of(cause) if is_own and cause is not None else error.message)}
    if isinstance(error, GraphQLSyntaxError):
        code = OperationCode.GRAPHQL_PARSE_FAILED
    elif isinstance(cause, KeygraphError):
        code = cause.code
    elif code is not None and isinstance(cause, ValueError):
        pass  # a value in the document that Python cannot read, such as an integer of 5,000 digits
    elif cause is not None and not isinstance(cause, GraphQLError):
        return {**internal_error(cause), **_where(error)}
    elif error.path is not None and not (error.extensions or {}).get("code") and not _is_of_argument(error):
        # A resolver returned a value that its field cannot have: that is no client's fault.
        return {**internal_error(cause or error), **_where(error)}
    extensions = {"code": BadUserInput.code, **(error.extensions or {}), **({"code": code} if code else {})}
    return {**shown, **_where(error), "extensions": extensions}


def _shortened(message: str) -> str:
    """Returns the message without the middle of the text that it quotes, which may be as long as a request."""
    if len(message) <= _SHOWN_BEGINNING + _SHOWN_END:
        return message
    return f"{message[:_SHOWN_BEGINNING]} … {message[-_SHOWN_END:]}"


class NotAQuery(Exception):
    """An operation that is not a query, where only queries are allowed."""

    def __init__(self, kind: str) -> None:
        super().__init__(f"a {kind} needs a POST request")


class RefusedPart(BadUserInput):
    """One part of a write is invalid. The error has its place in the input."""

    def __init__(self, refusal: Refusal) -> None:
        super().__init__(*refusal.parts)
        self.code = refusal.code
        path = [*public_path(refusal.path)]
        self.extensions = {**({"path": path} if path else {}), **_shown(refusal.details)}


def _shown(detail: Any) -> Any:
    """Returns a detail with fields named as in the schema."""
    match detail:
        case FieldName():
            return camel(detail)
        case list():
            return [_shown(each) for each in detail]
        case Mapping():
            return {name: _shown(each) for name, each in detail.items()}
    return detail


def message_of(error: Exception) -> str:
    """Returns the message of an error, with fields named as in the schema."""
    return error.told(camel) if isinstance(error, BadUserInput) else str(error)


def answer_limit_error(limit: int) -> dict[str, Any]:
    """Returns the error that a client sees for an answer that has more bytes than the limit."""
    return {
        "message": f"The answer is larger than {limit:,} bytes: ask for fewer fields, or for smaller pages. "
        "The changes of a mutation are not undone.",
        "extensions": {"code": OperationCode.ANSWER_LIMIT},
    }


def internal_error(cause: BaseException) -> dict[str, Any]:
    """Returns the error that a client sees for a failure of the server. The log has the details under the same id."""
    error_id = uuid.uuid4().hex
    _log.error("unexpected error %s", error_id, exc_info=cause)
    return {
        "message": f"Something went wrong on the server. Its log has the details under {error_id}.",
        "extensions": {"code": Code.INTERNAL, "id": error_id},
    }


def _is_of_argument(error: GraphQLError) -> bool:
    """Returns whether graphql-core reports the value that a variable gives to an argument, not a field."""
    return any(not isinstance(node, FieldNode) for node in error.nodes or ())


def _where(error: GraphQLError) -> dict[str, Any]:
    found: dict[str, Any] = {}
    if error.locations:
        found["locations"] = [{"line": place.line, "column": place.column} for place in error.locations]
    if error.path is not None:
        found["path"] = list(error.path)
    return found
