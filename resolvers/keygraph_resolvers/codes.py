"""The codes of errors of operations and their documents.

The string under a code is its page in `docs/errors/`: what it means, what to do, and whether to try again.
"""

from __future__ import annotations

from enum import StrEnum


class OperationCode(StrEnum):
    """The codes of an operation's errors, in addition to the codes of the graph."""

    ANSWER_LIMIT = "ANSWER_LIMIT"
    """The answer, or what is read for it, is larger than the server allows.

    Ask for smaller pages (`first`), for fewer fields, or in several operations.

    The same again gives the same error.
    """
    COUNT_LIMIT = "COUNT_LIMIT"
    """A warning in `extensions.warnings`: `totalCount` or `aggregate` is null because it would read too much.

    Leave it out, or narrow the list.

    The same again gives the same error.
    """
    DEPTH_LIMIT = "DEPTH_LIMIT"
    """The document is nested too deeply.

    Ask in several operations.

    The same again gives the same error.
    """
    DOCUMENT_LIMIT = "DOCUMENT_LIMIT"
    """The document has more tokens, aliases, fields or values than the server allows.

    Ask in several operations, and give long values as variables.

    The same again gives the same error.
    """
    GRAPHQL_PARSE_FAILED = "GRAPHQL_PARSE_FAILED"
    """The document is not valid GraphQL. `locations` says where the syntax error is.

    Correct the document.

    The same again gives the same error.
    """
    GRAPHQL_VALIDATION_FAILED = "GRAPHQL_VALIDATION_FAILED"
    """The document does not fit the schema: a field, an argument or a type does not exist, or is used wrongly.

    Correct the document, or generate the client's types again if the schema has changed.

    The same again gives the same error.
    """
