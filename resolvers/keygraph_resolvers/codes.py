"""The codes of errors of operations and their documents.

The string under a code becomes its page in `docs/errors/`: the meaning, what to do, and whether a retry helps.
"""

from __future__ import annotations

from enum import StrEnum


class OperationCode(StrEnum):
    """The codes of an operation's errors, in addition to the codes of the graph."""

    ANSWER_LIMIT = "ANSWER_LIMIT"
    """The answer, or the data read for it, is larger than the server allows.

    Ask for smaller pages (`first`) or fewer fields, or split the operation.

    A retry gives the same error.
    """
    COUNT_LIMIT = "COUNT_LIMIT"
    """A warning in `extensions.warnings`: `totalCount` or `aggregate` is null because computing it would read too much.

    Leave the field out, or narrow the list.

    A retry gives the same error.
    """
    DEPTH_LIMIT = "DEPTH_LIMIT"
    """The document is nested too deeply.

    Split it into several operations.

    A retry gives the same error.
    """
    DOCUMENT_LIMIT = "DOCUMENT_LIMIT"
    """The document has more tokens, aliases, fields or values than the server allows.

    Split it into several operations, and pass long values as variables.

    A retry gives the same error.
    """
    EVENTS_LOST = "EVENTS_LOST"
    """Changes did not reach this subscription to changes: the client reads too slowly, or the server could not keep up.

    Subscribe again, and ask by a query for what is there now. If it comes again, narrow the subscription by its arguments.

    Subscribe again at once.
    """
    GRAPHQL_PARSE_FAILED = "GRAPHQL_PARSE_FAILED"
    """The document is not valid GraphQL. `locations` says where the syntax error is.

    Fix the document.

    A retry gives the same error.
    """
    GRAPHQL_VALIDATION_FAILED = "GRAPHQL_VALIDATION_FAILED"
    """The document does not match the schema: a field, an argument or a type does not exist, or is used wrongly.

    Fix the document, or regenerate the client's types if the schema has changed.

    A retry gives the same error.
    """
    LIVE_LIMIT = "LIVE_LIMIT"
    """The server, or this connection, serves as many subscriptions as it may. Queries and mutations still work.

    End subscriptions that you no longer need, or ask by queries until there is room.

    Retry after a short wait, and wait longer each time.
    """
