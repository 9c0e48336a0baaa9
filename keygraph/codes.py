"""The codes of the errors that a client can cause or has to handle, in reads and writes.

The string under a code becomes its page in `docs/errors/`: the meaning, what to do, and whether a retry helps.
"""

from __future__ import annotations

from enum import StrEnum


class Code(StrEnum):
    """The values of `KeygraphError.code`."""

    ALREADY_EXISTS = "ALREADY_EXISTS"
    """A create or a move needs a key that another record already has.

    Choose another key, or use `upsert…` or `update…` if the record may exist.

    A retry gives the same error.
    """
    BAD_USER_INPUT = "BAD_USER_INPUT"
    """An argument or a variable is invalid. The message says which one, and why.

    Fix the value. For writes, `extensions.path` is its place in the input.

    A retry gives the same error.
    """
    CONFLICT = "CONFLICT"
    """Somebody else changed the record, or other records still refer to it.

    Read the record again, then decide. With `expectedVersion`, send the current version.

    A retry may succeed if another write was faster. It gives the same error if the mutation has an `expectedVersion`,
    if its idempotency key belongs to another mutation, or if records still refer to what it deletes.
    """
    CORRUPT_ITEM = "CORRUPT_ITEM"
    """An item in the table does not match the model. The message names the type and the field.

    Report it to the operator of the server. `keygraph verify` lists all such items.

    A retry gives the same error.
    """
    COST_LIMIT = "COST_LIMIT"
    """The operation could cost more than the server allows, or it reached the limit while it ran. In the first case,
    nothing was read.

    Ask for smaller pages or fewer levels. If the server shows them, `extensions` has the cost, the limit and the most
    expensive place in the query.

    A retry gives the same error.
    """
    FORBIDDEN = "FORBIDDEN"
    """The model's access rules do not let this user read the field or make the change.

    Sign in as a user with access, or leave the field out. The field is null; the rest of the answer is complete.

    A retry gives the same error.
    """
    INTERNAL = "INTERNAL"
    """The server failed unexpectedly. The client did not cause the error.

    Report the `id` in `extensions` to the operator of the server, who can find the details in the log under this id.
    If DynamoDB calls a request of Keygraph invalid, for a reason that Keygraph does not know, that is such an error.

    A retry may succeed.
    """
    ITEM_TOO_LARGE = "ITEM_TOO_LARGE"
    """A record would be larger than DynamoDB allows, or everything under its partition key would be.

    Store less in it, or split it into several records. If the partition is full, only the operator can help: a table
    with a local index stores at most 10 GB for one partition key.

    A retry gives the same error.
    """
    NOT_FOUND = "NOT_FOUND"
    """A record that a write changes or refers to does not exist, or this user may not see it.

    Create it first, or in the same mutation. `extensions.path` is its place in the input.

    A retry gives the same error.
    """
    THROTTLED = "THROTTLED"
    """The store rejects requests because it gets too many. The server has already retried.

    Send fewer requests at the same time.

    Retry after a short wait, and wait longer each time.
    """
    TIMEOUT = "TIMEOUT"
    """The operation, or a request to the store, took too long. A mutation may still have taken effect.

    Ask for less. Retry a mutation with the same `idempotencyKey`.

    Retry after a short wait, and wait longer each time.
    """
    TRANSACTION_TOO_LARGE = "TRANSACTION_TOO_LARGE"
    """A mutation writes more than one transaction can hold.

    Split it into several mutations, or use `atomic: false`.

    A retry gives the same error.
    """
    UNAUTHENTICATED = "UNAUTHENTICATED"
    """The request's token is not valid or has expired, or the request has no token and this server needs one.

    Get a new token, and send it in the `Authorization` header.

    A retry gives the same error.
    """
    UNAVAILABLE = "UNAVAILABLE"
    """The store cannot be reached, AWS's credentials cannot be used, or the server is overloaded.

    If the response has a `Retry-After` header, wait at least that long.

    Retry after a short wait, and wait longer each time.
    """
