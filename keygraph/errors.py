"""The exceptions of the package.

    KeygraphError                 everything that a client can cause or has to handle; has a `code`
    ├── BadUserInput              an argument that cannot be used
    │   ├── ItemTooLarge          an item above DynamoDB's limit
    │   └── TransactionTooLarge   a transaction above DynamoDB's limits
    ├── ConditionFailed           a write whose condition does not hold
    ├── TransactionCanceled       a transaction with an action that failed
    ├── TokenReused               another transaction was sent with the same token
    ├── WriteRefused              a write with all its mistakes
    ├── CorruptItem               an item that does not match its declaration
    └── StoreError                the store could not answer
        ├── Throttled             DynamoDB throttled the request, and all retries of it
        ├── TimedOut              the deadline passed
        ├── TooMuchWork           an operation that needs too much processor time (`keygraph.turns`)
        ├── Unavailable           no connection, a server error, no credentials
        ├── StreamTrimmed         changes were deleted from a table's stream before they were read
        └── TableMissing          there is no such table
    ModelError                    a graph that cannot be served: every mistake of its declaration

GraphQL clients see the codes in `extensions.code`; `keygraph.codes` explains each.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from traceback import format_exception
from typing import Any, TypeAlias, TypeVar

from keygraph.codes import Code

ErrorT = TypeVar("ErrorT", bound=BaseException)


def without_frames(error: ErrorT) -> ErrorT:
    """Returns an error as it may be kept: without its frames, and without the errors that it followed, nor theirs.

    Frames hold all that was read for a request, and often the error itself: only the garbage collector would free them.
    """
    left: list[BaseException | None] = [error]
    while left:
        each = left.pop()
        if each is not None:
            left += each.__context__, each.__cause__, *getattr(each, "exceptions", ())
            each.__traceback__ = each.__context__ = each.__cause__ = None
    return error


def with_noted_frames(error: ErrorT) -> ErrorT:
    """Returns an error as it may be kept, until it is raised elsewhere: the log has the frames of a fault as text."""
    if not isinstance(error, KeygraphError):
        error.add_note("".join(format_exception(error)))
    return without_frames(error)


def again(error: ErrorT) -> ErrorT:
    """Returns a copy of a kept error, to be raised: an error gets frames, and more of them each time it is raised."""
    kind = type(error)
    made = kind.__new__(kind, *error.args)
    made.__dict__.update(error.__dict__)
    return made


class KeygraphError(Exception):
    """An error with a code that a client may see; its message holds nothing internal."""

    code: str = Code.INTERNAL


class FieldName(str):
    """The name of a field in a message, as it is in the model. A server may show it in its own case."""

    __slots__ = ()


class BadUserInput(KeygraphError):
    """An argument is invalid.

    The message consists of parts, and some of them may be names of fields."""

    code: str = Code.BAD_USER_INPUT

    def __init__(self, *parts: str) -> None:
        self.parts = parts
        super().__init__("".join(parts))

    def rendered(self, name_of: Callable[[str], str]) -> str:
        """Returns the message, with the names of fields as `name_of` writes them.

        It is not called `message`, because graphql-core would take an attribute with that name as the text."""
        return "".join(name_of(part) if isinstance(part, FieldName) else part for part in self.parts)


class Forbidden(BadUserInput):
    """The viewer may not do this, or may not read this field."""

    code = Code.FORBIDDEN


class ItemTooLarge(BadUserInput):
    """An item, or all items of a partition key, are larger than DynamoDB allows."""

    code = Code.ITEM_TOO_LARGE


class TransactionTooLarge(BadUserInput):
    """A transaction is larger, or has more actions, than DynamoDB allows."""

    code = Code.TRANSACTION_TOO_LARGE

    def __init__(self, message: str, **details: int) -> None:
        """`details` are the numbers that the client sees next to the message: its own number and the limit."""
        self.details = details
        super().__init__(message)


class ConditionFailed(KeygraphError):
    """The condition of a write does not hold. Nothing was written."""

    code = Code.CONFLICT

    def __init__(self, item: dict[str, Any] | None) -> None:
        """`item` is the existing item; None if there is none."""
        self.item = item
        super().__init__("the condition of a write does not hold")


@dataclass(frozen=True, slots=True)
class Reason:
    """Why one action canceled its transaction."""

    code: str
    """DynamoDB's name for the reason, for example `ConditionalCheckFailed`."""
    item: dict[str, Any] | None = None
    """The existing item if a condition failed; None if there is none."""
    message: str = ""


class TransactionCanceled(KeygraphError):
    """A transaction was canceled. Nothing was written."""

    code = Code.CONFLICT

    def __init__(self, reasons: Sequence[Reason | None]) -> None:
        """`reasons` are in the order of the actions; None for an action that canceled nothing."""
        self.reasons = tuple(reasons)
        codes = sorted({reason.code for reason in self.reasons if reason})
        super().__init__(f"the transaction was canceled: {', '.join(codes)}")


class TokenReused(KeygraphError):
    """A different transaction was sent with the same token in the last ten minutes."""

    code = Code.CONFLICT


InputPath: TypeAlias = "tuple[str | int, ...]"
"""A place in a client's input. Names of fields are `FieldName`s."""


@dataclass(frozen=True, slots=True)
class Refusal:
    """Why a part of a write is refused."""

    code: str
    parts: tuple[str, ...]
    """The message, in parts as in BadUserInput."""
    path: InputPath = ()
    details: Mapping[str, Any] = field(default_factory=dict)
    """Other details for the client, by name."""
    is_by_hidden: bool = False
    """Whether the reason is something that the viewer cannot see. It is reported only if there is no other reason."""

    @property
    def message(self) -> str:
        return "".join(self.parts)


class WriteRefused(KeygraphError):
    """A write is refused, and the error has every known reason. Nothing was written."""

    code = Code.BAD_USER_INPUT

    def __init__(self, refusals: Sequence[Refusal]) -> None:
        self.refusals = tuple(each for each in refusals if not each.is_by_hidden) or tuple(refusals)
        super().__init__("; ".join(refusal.message for refusal in self.refusals))


class CorruptItem(KeygraphError):
    """An item does not match its declaration. The message names the type and the field, never the value."""

    code = Code.CORRUPT_ITEM


class StoreError(KeygraphError):
    """The store could not answer."""

    code = Code.UNAVAILABLE


class Throttled(StoreError):
    """DynamoDB throttled the request, and all retries of it."""

    code = Code.THROTTLED


class TimedOut(StoreError):
    """The store did not answer before the deadline."""

    code = Code.TIMEOUT


class Unavailable(StoreError):
    """The store cannot be reached, or failed."""


class StreamTrimmed(StoreError):
    """Changes were deleted from a table's stream before they were read. It can be read from its oldest one."""


class TableMissing(StoreError):
    """The store has no table with this name."""


@dataclass(frozen=True, slots=True)
class Mistake:
    """One mistake in a declaration, its place, and how to fix it."""

    kind: str
    """A short stable name of the kind of mistake, for example `no-path`."""
    where: str
    """The type, or `Type.field`, or the name of the table or index with the mistake."""
    problem: str
    fix: str

    def __str__(self) -> str:
        return f"{self.where}: {self.problem} {self.fix}".strip()


class ModelError(Exception):
    """A graph with mistakes; `mistakes` has all of them."""

    def __init__(self, mistakes: Sequence[Mistake]) -> None:
        self.mistakes = tuple(mistakes)
        lines = "\n".join(f"  - {mistake}" for mistake in self.mistakes)
        count = f"{len(self.mistakes)} mistake" + ("s" if len(self.mistakes) != 1 else "")
        super().__init__(f"the graph has {count}:\n{lines}")
