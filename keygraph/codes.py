"""The codes of errors: what a client can cause, or must act on, in reads and writes.

The string under a code is its page in `docs/errors/`: what it means, what to do, and whether to try again.
"""

from __future__ import annotations

from enum import StrEnum


class Code(StrEnum):
    """What `KeygraphError.code` may be."""

    ALREADY_EXISTS = "ALREADY_EXISTS"
    """A create, or a move, found a record with the key that it was to give.

    Choose another key, or use `upsert…` or `update…` if the record may be there.

    The same again gives the same error.
    """
    BAD_USER_INPUT = "BAD_USER_INPUT"
    """An argument or a variable cannot be used. The message says which, and why.

    Correct the value. For writes, `extensions.path` is its place in the input.

    The same again gives the same error.
    """
    CONFLICT = "CONFLICT"
    """Somebody else has changed what a write was about, or a record is still named by others.

    Read the record again, and decide anew. With `expectedVersion`, take the version that is there now.

    The same again may succeed if nothing was expected of the record.
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
    """A rule of the model does not let the viewer read this field, or do this.

    Ask as somebody who may, or do without. The field is null, and everything beside it is answered.

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
    """What a write is about, or names, does not exist, or the viewer may not see it.

    Create it first, or in the same mutation. `extensions.path` is its place in the input.

    The same again gives the same error.
    """
    THROTTLED = "THROTTLED"
    """The store refuses requests because there are too many, after all retries.

    Send less at the same time.

    Send the same again after a short time, and wait longer each time.
    """
    TIMEOUT = "TIMEOUT"
    """The operation, or a request to the store, took too long. What a mutation writes may have been written.

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
