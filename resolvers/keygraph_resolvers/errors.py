"""Errors as clients see them. Errors that clients can act on have a code; all others are masked and logged.

`GRAPHQL_PARSE_FAILED` and `GRAPHQL_VALIDATION_FAILED` are errors in the document. A `KeygraphError` has its own code. A
value that a scalar refuses is `BAD_USER_INPUT`. Anything else is `INTERNAL`: the answer has an id, and the log has the
details under this id.

If a requested value is missing without an error, the answer has a warning in `extensions.warnings`: `COUNT_LIMIT` means
that a `totalCount` is null because it would cost too much.
"""

from __future__ import annotations

import logging
import re
import uuid
from collections.abc import Callable, Container, Mapping
from functools import partial
from typing import Any

from graphql import FieldNode, GraphQLError, GraphQLSyntaxError

from keygraph.codes import Code
from keygraph.errors import BadUserInput, FieldName, KeygraphError, Refusal, without_frames
from keygraph.names import camel
from keygraph_resolvers.codes import OperationCode

_log = logging.getLogger("keygraph")

_KEPT_BEGINNING, _KEPT_END = 400, 160
"""How many characters of a long message are shown. Its own words are before and after the text that it quotes."""


UNSENT = "…"
"""In place of a name that a client may not learn from an error."""
_WORD = re.compile(r"[A-Za-z_]\w*")
_LOOKED_THROUGH = 32_000
"""The characters in which names are looked for: in about a millisecond."""


def words_of(*sent: object) -> frozenset[str]:
    """Returns the words of what a client has sent: those that an error may name in any case."""
    return frozenset(_WORD.findall(" ".join([str(each)[:_LOOKED_THROUGH] for each in sent])))


def public_error(
    error: GraphQLError, *, code: str | None = None, sent: Container[str] | None = None
) -> dict[str, Any]:
    """Returns the error as a client sees it. `code` is the code of an error that graphql-core itself raised. With the words
    that the client has sent in `sent`, no other fields are named."""
    public = _error_for_clients(error, code, sent)
    bare(error)
    return public


def _error_for_clients(error: GraphQLError, code: str | None, sent: Container[str] | None) -> dict[str, Any]:
    cause = error.original_error
    while isinstance(cause, GraphQLError) and cause.original_error is not None:
        cause = cause.original_error
    is_own = isinstance(cause, BadUserInput) and error.message == str(cause)
    message = message_of(cause, sent) if is_own and cause is not None else error.message
    public = {"message": shortened(message)}
    if isinstance(error, GraphQLSyntaxError):
        code = OperationCode.GRAPHQL_PARSE_FAILED
    elif isinstance(cause, KeygraphError) and not isinstance(cause, UnexpectedError):
        code = cause.code
    elif code is not None and isinstance(cause, ValueError):
        pass  # a value in the document that Python cannot read, such as an integer of 5,000 digits
    elif cause is not None and not isinstance(cause, GraphQLError):
        return {**internal_error(cause), **_where(error)}
    elif error.path is not None and not (error.extensions or {}).get("code") and not _is_of_argument(error):
        # A resolver returned a value that its field cannot have: that is no client's fault.
        return {**internal_error(cause or error), **_where(error)}
    extensions = {"code": BadUserInput.code, **(error.extensions or {}), **({"code": code} if code else {})}
    if sent is not None and isinstance(cause, RefusedPart):
        extensions |= cause.details(partial(_name_of, sent))
    return {**public, **_where(error), "extensions": extensions}


def shortened(message: str) -> str:
    """Returns the message without the middle of the text that it quotes, which may be as long as a request."""
    if len(message) <= _KEPT_BEGINNING + _KEPT_END:
        return message
    return f"{message[:_KEPT_BEGINNING]} … {message[-_KEPT_END:]}"


class UnexpectedError(KeygraphError):
    """A failure of the server that was logged. The client sees the id of the log's record."""

    code = Code.INTERNAL

    def __init__(self) -> None:
        self.id = uuid.uuid4().hex
        super().__init__(f"Something went wrong on the server. Its log has the details under {self.id}.")


def as_value(error: Exception) -> Exception:
    """Returns what is kept of an error that was caught: no frames, which hold the request and what was read for it.

    A failure of the server is logged now, with its frames.
    """
    if isinstance(error, GraphQLError):
        original = error.original_error
        if original is None or isinstance(original, KeygraphError | GraphQLError):
            return bare(error)
        return as_value(original)
    is_expected = isinstance(error, KeygraphError) or error.__traceback__ is None
    return without_frames(error) if is_expected else _logged(error)


def bare(error: GraphQLError) -> GraphQLError:
    """Returns an error of graphql-core without its frames, and without those of the error that it stands for."""
    if error.original_error is not None:
        without_frames(error.original_error)
    return without_frames(error)


def _logged(error: BaseException) -> UnexpectedError:
    if isinstance(error, UnexpectedError):
        return without_frames(error)
    unexpected = UnexpectedError()
    _log.error("unexpected error %s", unexpected.id, exc_info=error)
    without_frames(error)
    return unexpected


class NotAQuery(Exception):
    """An operation that is not a query, where only queries are allowed."""

    def __init__(self, kind: str) -> None:
        super().__init__(f"a {kind} needs a POST request")


class RefusedPart(BadUserInput):
    """One part of a write is invalid. The error has its place in the input."""

    def __init__(self, refusal: Refusal) -> None:
        super().__init__(*refusal.parts)
        self.code = refusal.code
        self._refusal = refusal
        self.extensions = self.details(camel)

    def details(self, name_of: Callable[[str], str]) -> dict[str, Any]:
        """Returns the place and the details of the error, with the names of fields as `name_of` writes them."""
        path = {"path": self._refusal.path} if self._refusal.path else {}
        return {
            name: _detail_for_clients(each, name_of)
            for name, each in {**path, **self._refusal.details}.items()
        }


def _detail_for_clients(detail: Any, name_of: Callable[[str], str]) -> Any:
    """Returns a detail with fields named as `name_of` does."""
    match detail:
        case FieldName():
            return name_of(detail)
        case list() | tuple():
            return [_detail_for_clients(each, name_of) for each in detail]
        case Mapping():
            return {name: _detail_for_clients(each, name_of) for name, each in detail.items()}
    return detail


def message_of(error: Exception, sent: Container[str] | None = None) -> str:
    """Returns the message of an error, with fields named as in the schema: all, or those that the client has sent."""

    return error.rendered(partial(_name_of, sent)) if isinstance(error, BadUserInput) else str(error)


def _name_of(sent: Container[str] | None, field: str) -> str:
    name = camel(field)
    return name if sent is None or name in sent else UNSENT


def answer_limit_error(limit: int) -> dict[str, Any]:
    """Returns the error that a client sees for an answer that has more bytes than the limit."""
    return {
        "message": f"The answer is larger than {limit:,} bytes: ask for fewer fields, or for smaller pages. "
        "The changes of a mutation are not undone.",
        "extensions": {"code": OperationCode.ANSWER_LIMIT},
    }


def internal_error(cause: BaseException) -> dict[str, Any]:
    """Returns the error that a client sees for a failure of the server. The log has the details under the same id."""
    logged = _logged(cause)
    return {"message": str(logged), "extensions": {"code": Code.INTERNAL, "id": logged.id}}


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
