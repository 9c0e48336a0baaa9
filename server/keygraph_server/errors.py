"""Errors that the user of a command can fix, with the one line that says how, and those of a client.

CommandError                a problem and its fix
├── SettingsError           a setting that cannot be used
└── ModelNotLoadedError     an import string that does not lead to a model
RequestRefusedError         a request that is not executed, with the code and the HTTP status
└── UnauthenticatedError    its token is not valid
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum
from typing import Any

from keygraph import KeygraphError, ModelError
from keygraph.codes import Code

INTERRUPTED = 130
"""The exit code of a command that Ctrl-C has stopped."""


class RequestCode(StrEnum):
    """The codes of a request's errors, in addition to the codes of operations.

    The string under a code becomes its page in `docs/errors/`: the meaning, what to do, and whether a retry helps.
    """

    DOCUMENT_NOT_TRUSTED = "DOCUMENT_NOT_TRUSTED"
    """The server executes only the documents in its manifest, and this one is not in it.

    Add the document to the manifest with `keygraph trust`, and restart the server.

    A retry gives the same error.
    """
    PERSISTED_QUERY_NOT_FOUND = "PERSISTED_QUERY_NOT_FOUND"
    """The server does not know a document with this hash.

    Send the hash and the document's text together once. Client libraries do this automatically.

    A retry gives the same error.
    """
    PERSISTED_QUERY_NOT_SUPPORTED = "PERSISTED_QUERY_NOT_SUPPORTED"
    """The server does not accept automatic persisted queries.

    Send the document's text, or the id of a trusted document.

    A retry gives the same error.
    """
    UNAUTHENTICATED = "UNAUTHENTICATED"
    """The request's token is not valid, or the request has no token and this server needs one.

    Get a new token, and send it in the `Authorization` header.

    A retry gives the same error.
    """


class CommandError(Exception):
    """Something that the user can fix: one line with the problem and the fix."""

    def __init__(self, problem: str, fix: str) -> None:
        """`problem` and `fix` are sentences, with or without their period."""
        self.problem = problem
        self.fix = fix
        super().__init__(f"{_sentence(problem)} {_sentence(fix)}")


def _sentence(text: str) -> str:
    return text if text.endswith((".", "?", "!")) else f"{text}."


class SettingsError(CommandError):
    """A setting that cannot be used."""


class ModelNotLoadedError(CommandError):
    """An import string that does not lead to a model."""


class RequestRefusedError(Exception):
    """A request that the server does not execute. The message goes to the client."""

    def __init__(self, message: str, status: int | None = None, code: str = Code.BAD_USER_INPUT) -> None:
        """Without a `status`, it gets that of an operation that could not be executed."""
        self.status = status
        self.code = code
        super().__init__(message)

    @property
    def response(self) -> dict[str, Any]:
        """The GraphQL response."""
        return {"errors": [{"message": str(self), "extensions": {"code": self.code}}]}


class UnauthenticatedError(RequestRefusedError):
    """A request whose token is not valid."""

    def __init__(self, message: str) -> None:
        super().__init__(message, 401, RequestCode.UNAUTHENTICATED)


_VALUE_PROBLEMS = {
    "int_parsing": "{input!r} is not a whole number",
    "float_parsing": "{input!r} is not a number",
    "bool_parsing": "{input!r} is neither true nor false",
    "enum": "{input!r} is not {expected}",
    "less_than_equal": "{input} is more than {le}",
    "greater_than_equal": "{input} is less than {ge}",
    "greater_than": "{input} is not more than {gt:g}",
    # pydantic counts the items of a secret
    "too_short": "it needs at least {min_length} characters, and has {actual_length}",
    "value_error": "{error}",
}
"""The problem with a value, by the type of pydantic's error."""


def value_problem(details: Mapping[str, Any]) -> str:
    """What is wrong with a value that pydantic refuses, without the value where that is a secret."""
    text = _VALUE_PROBLEMS.get(details["type"])
    if text is None:
        message = str(details["msg"])
        return f"{message[:1].lower()}{message[1:]}"
    return text.format(input=details["input"], **details.get("ctx", {}))


def expected_message(error: Exception) -> str | None:
    """The message for the user; None for an unexpected error.

    It is one line, except that the mistakes of a model are listed one per line.
    """
    if isinstance(error, CommandError | KeygraphError | ModelError):
        return str(error)
    return None
