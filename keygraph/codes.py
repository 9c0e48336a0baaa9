"""The codes of errors that a client can cause, or must act on, in reads and writes.

The string under a code is its page in `docs/errors/`: what it means, what to do, and whether to try again.
"""

from __future__ import annotations

from enum import StrEnum


class Code(StrEnum):
    """The values of `KeygraphError.code`."""

    ALREADY_EXISTS = "ALREADY_EXISTS"
    """There is already a record with the key that a create or a move wants.

    Choose another key, or use `upsert…` or `update…` if the record may exist.

    The same again gives the same error.
    """
    BAD_USER_INPUT = "BAD_USER_INPUT"
    """An argument or a variable cannot be used. The message says which, and why.

    Correct the value. For writes, `extensions.path` is its place in the input.

    The same again gives the same error.
    """
    CONFLICT = "CONFLICT"
    """Somebody else has changed the record, or other records still refer to it.

    Read the record again and decide anew. With `expectedVersion`, send the current version.

    The same again may succeed, unless it has an `expectedVersion`.
    """
    CORRUPT_ITEM = "CORRUPT_ITEM"
    """What is stored does not fit the model: the message names the type and the field.

    Tell whoever runs the server: `keygraph verify` lists such data.

    The same again gives the same error.
    """
    COST_LIMIT = "COST_LIMIT"
    """The operation could cost more than the server allows, or has cost that much. In the first case nothing was
    read.

    Ask for smaller pages or fewer levels. `extensions` has the cost, the limit and the most expensive place, where
    the server tells them.

    The same again gives the same error.
    """
    FORBIDDEN = "FORBIDDEN"
    """The access rules of the model do not let this user read this field, or do this.

    Ask as a user who may, or leave the field out. The field is null; the rest of the answer is complete.

    The same again gives the same error.
    """
    INTERNAL = "INTERNAL"
    """Something went wrong on the server, and it is not the client's fault.

    Tell whoever runs the server the `id` in `extensions`: its log has the details under it.

    The same again may succeed.
    """
    ITEM_TOO_LARGE = "ITEM_TOO_LARGE"
    """A record would be larger than one may be.

    Store less in it, or spread it over several records.

    The same again gives the same error.
    """
    NOT_FOUND = "NOT_FOUND"
    """A record that a write is about, or refers to, does not exist, or this user may not see it.

    Create it first, or in the same mutation. `extensions.path` is its place in the input.

    The same again gives the same error.
    """
    THROTTLED = "THROTTLED"
    """The store refuses requests because there are too many. The server has retried.

    Send fewer requests at the same time.

    Send the same again after a short time, and wait longer each time.
    """
    TIMEOUT = "TIMEOUT"
    """The operation, or a request to the store, took too long. A mutation may have been carried out.

    Ask for less. Send a mutation again with the same `idempotencyKey`.

    Send the same again after a short time, and wait longer each time.
    """
    TRANSACTION_TOO_LARGE = "TRANSACTION_TOO_LARGE"
    """A mutation writes more than one transaction can hold.

    Write in several mutations, or with `atomic: false`.

    The same again gives the same error.
    """
    UNAVAILABLE = "UNAVAILABLE"
    """The store cannot be reached, or the server has too much to do.

    Wait as long as `Retry-After` says, if the answer has it.

    Send the same again after a short time, and wait longer each time.
    """
