"""Errors that the user of a command can fix, with the one line that says how, and those of a client.

CommandError                a problem and its fix
├── SettingsError           a setting that cannot be used
└── ModelNotLoadedError     an import string that does not lead to a model
RequestRefusedError         a request that is not executed, with the code and the HTTP status
└── UnauthenticatedError    its token is not valid
"""

from __future__ import annotations

import json
import re
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


OWN_FAULTS = (Code.INTERNAL, Code.CORRUPT_ITEM)
"""Error codes for which the server or an item is at fault."""
STORE_FAULTS = (Code.UNAVAILABLE, Code.TIMEOUT, Code.THROTTLED)
"""Error codes for which the store is at fault."""
FAULTS = (*OWN_FAULTS, *STORE_FAULTS)
"""Error codes for which no client is at fault, the worst first."""


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
        super().__init__(message, 401, Code.UNAUTHENTICATED)


_LONG_WORD = re.compile(r"(\S{100})\S{200,}(\S{50})")
_VALUE_PROBLEMS = {
    "int_parsing": "{input!r} is not a whole number",
    "float_parsing": "{input!r} is not a number",
    "bool_parsing": "{input!r} is neither true nor false",
    "enum": "{input!r} is not {expected}",
    "literal_error": "{input!r} is not {expected}",
    "less_than_equal": "{input} is more than {le:.0f}",
    "greater_than_equal": "{input} is less than {ge}",
    "greater_than": "{input} is not more than {gt:g}",
    # pydantic counts the items of a secret
    "too_short": "it needs at least {min_length} characters, and has {actual_length}",
    "string_pattern_mismatch": "{input!r} has characters that it may not have, or not in this order",
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

    It is one line, except that the mistakes of a model are listed one per line. Very long values are shortened.
    """
    if isinstance(error, OSError) and error.filename is not None:
        error = CommandError(f"{error.filename} cannot be used ({error.strerror})", "Name another file")
    elif isinstance(error, OSError) and error.errno is not None:
        # Of the output, which may be full, or of the process, which may open no more files.
        error = CommandError(
            f"it cannot read or write ({error.strerror})",
            "Check the output, the disk and the limits of the process",
        )
    if isinstance(error, CommandError | KeygraphError | ModelError):
        lines = [str(error)] if isinstance(error, CommandError) else str(error).split("\n")
        return _LONG_WORD.sub(r"\1…\2", "\n".join(map(printable, lines)))
    return None


_UNSEEN = re.compile(
    "[\u034f\u115f\u1160\u17b4\u17b5\u180b-\u180f\u2800\u3164\ufe00-\ufe0f\uffa0\U00016fe4\U0001d159\U000e0100-\U000e01ef]"
)
"""What Python calls printable though it is not displayed: Unicode's `Default_Ignorable_Code_Point`, and empty Braille."""


def printable(text: str) -> str:
    """The text with escapes for control characters, for those that change the direction of text, and for invisible ones."""
    if text.isprintable() and not _UNSEEN.search(text):
        return text
    return "".join(
        [char if char.isprintable() and not _UNSEEN.match(char) else json.dumps(char)[1:-1] for char in text]
    )
