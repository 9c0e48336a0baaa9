"""The annotations of lists, and the specifiers that are assigned to fields, such as `stored`, `created` and `many`."""

from __future__ import annotations

import copy as copying
import dataclasses
from collections.abc import Sequence
from dataclasses import MISSING, dataclass
from datetime import timedelta
from functools import partial
from typing import Annotated, Any, Generic, Literal, TypeAlias, TypeVar

from keygraph.access.language import AccessRule
from keygraph.declare.declaration import NO_NOTES, Kept, ListOptions, Notes, StoredAs, WalkOptions
from keygraph.dynamo.table import Index
from keygraph.keys.formats import Epoch, Format
from keygraph.keys.types import IN_MAP

_SPECIFIER = "keygraph.specifier"
"""The key of a specifier in the metadata of a field."""
T = TypeVar("T")


class Many(Generic[T]):
    """The annotation of a list: the neighbors of a node, page by page.

    `orders: Many[Order]` alone is enough, and the constructor takes no such field. A type checker does not know that:
    in code that constructs the node, mypy and pyright ask for the list unless the field says `= many()`.
    """


class One(Generic[T]):
    """The annotation of a path with at most one neighbor."""


class Reach(Generic[T]):
    """The annotation of all nodes that lists lead to: `descendants: Reach[Category] = reach("children", depth=10)`."""


class Ranked(Generic[T]):
    """The annotation of nodes ranked by paths to them: `you_may_know: Ranked[User] = ranked("friends", "friends")`."""


Context: TypeAlias = Annotated[Any, "the context of the operation"]
"""The annotation of a method's parameter that gets `info.context`: `def mine(self, context: Context)`."""


@dataclass(frozen=True, slots=True)
class Specifier:
    """What is assigned to a field, in the metadata of a field of a dataclass."""

    meaning: StoredAs | ListOptions | WalkOptions
    default: Any
    notes: Notes = NO_NOTES

    def as_field(self) -> Any:
        """Returns the field of a dataclass. In one that is no record type, it may only have a name and a default."""
        meaning, default = self.meaning, self.default
        if not isinstance(meaning, StoredAs) or meaning.kept not in (None, "id"):
            notes: dict[str, Any] = {_SPECIFIER: self, IN_MAP: None}
            return dataclasses.field(init=False, default=None, repr=False, compare=False, metadata=notes)
        is_name = meaning == StoredAs(meaning.path[:1], {}) and self.notes == NO_NOTES
        notes = {_SPECIFIER: self, IN_MAP: "".join(meaning.path) if is_name else None}
        if is_mutable(default):
            return dataclasses.field(default_factory=partial(copying.deepcopy, default), metadata=notes)
        return dataclasses.field(default=default, metadata=notes)


def specifier_of(given: object) -> Specifier | None:
    """Returns the specifier that is assigned to a field; None for anything else."""
    return given.metadata.get(_SPECIFIER) if isinstance(given, dataclasses.Field) else None


def is_mutable(default: object) -> bool:
    """Returns whether records cannot share a default."""
    return type(default).__hash__ is None


def stored(
    *path: str,
    default: Any = MISSING,
    format: Format | str | None = None,
    in_key: bool = False,
    whole_key: bool = False,
    access: Sequence[AccessRule] | str = (),
    deprecated: str | None = None,
    shareable: bool = False,
    external: bool = False,
    **attributes: str,
) -> Any:
    """The attribute that holds the field: `stored("agentID")`, or a path into a map: `stored("data", "version")`.
    In the dataclass of a map, it takes only a name and a default.

    `format=Epoch("ms")` sets the format of its values there, and in keys whose placeholder has no format.

    An end with several key fields has one attribute for each: `stored(owner="RepoOwner", name="RepoName")`. With
    `whole_key=True`, one attribute holds the node's whole partition key (`USER#7`), as it does for a union end whose
    types have different keys (`User | Organization`). `in_key=True` says that only a key of the item holds the field, so writes leave the attribute out. Without it,
    an optional field is null if its attribute is absent, whatever an index's keys say. `access` are the field's own
    rules: who may read it on a record that they see, and who may write it. `deprecated` tells clients what to use
    instead. In a supergraph, other servers may have a `shareable` field too, and own an `external` one.
    """
    # Key fields of an end may be named `format` or `access`; these are their attributes.
    named = {name: each for name, each in (("format", format), ("access", access)) if isinstance(each, str)}
    written = None if isinstance(format, str) else format
    rules = () if isinstance(access, str) else access
    meaning = StoredAs(
        path, {**attributes, **named}, written, in_key=in_key, whole_key=whole_key, access=rules
    )
    return Specifier(meaning, default, Notes(deprecated, shareable, external)).as_field()


def created(
    *path: str,
    format: Format | None = None,
    in_key: bool = False,
    access: Sequence[AccessRule] = (),
    deprecated: str | None = None,
    init: Literal[False] = False,
) -> Any:
    """When the record was created: a datetime that the server sets. It takes some options of `stored`."""
    return _kept("created", path, format, in_key, access, deprecated)


def updated(
    *path: str,
    format: Format | None = None,
    access: Sequence[AccessRule] = (),
    deprecated: str | None = None,
    init: Literal[False] = False,
) -> Any:
    """When the record was last written: a datetime that the server sets."""
    return _kept("updated", path, format, access=access, deprecated=deprecated)


def version(*path: str, init: Literal[False] = False) -> Any:
    """How often the record was written: an integer that the server counts from 1, compared with `expectedVersion`."""
    return _kept("version", path)


def counts(
    of: str,
    /,
    *path: str,
    access: Sequence[AccessRule] = (),
    deprecated: str | None = None,
    init: Literal[False] = False,
) -> Any:
    """The number of items in a list of this node: `orders_count: int = counts("orders")`.

    A mutation that adds an item to the list, or removes one, changes the number in the same transaction.
    """
    return _kept("count", path, access=access, deprecated=deprecated, of=of)


def sums(
    of: str,
    /,
    *path: str,
    access: Sequence[AccessRule] = (),
    deprecated: str | None = None,
    init: Literal[False] = False,
) -> Any:
    """The sum of a field over a list of this node: `spent: Decimal = sums("orders.total")`. Kept like `counts`."""
    return _kept("sum", path, access=access, deprecated=deprecated, of=of)


def copy(
    of: str,
    /,
    *path: str,
    format: Format | None = None,
    in_key: bool = False,
    access: Sequence[AccessRule] = (),
    deprecated: str | None = None,
    init: Literal[False] = False,
) -> Any:
    """A field of the node at an end, copied when the end is written: `rating: int = copy("review.rating")`.

    Later changes of the node do not change the copy.
    """
    return _kept("copy", path, format, in_key, access, deprecated, of)


def new_id(*path: str, default: Any = None) -> Any:
    """An id that the server makes if a client gives none: a UUID of version 7, which sorts by time."""
    return _kept("id", path)


def ttl(
    attribute: str | None = None,
    *,
    default: Any = MISSING,
    access: Sequence[AccessRule] = (),
    deprecated: str | None = None,
) -> Any:
    """When the record expires: a datetime stored in whole seconds since 1970, as DynamoDB's TTL requires.

    DynamoDB deletes expired items up to days late; until then they are hidden everywhere. A record whose field is None
    does not expire.
    """
    path = () if attribute is None else (attribute,)
    meaning = StoredAs(path, {}, Epoch("s"), is_expiry=True, access=access)
    return Specifier(meaning, default, Notes(deprecated)).as_field()


def _kept(
    kept: Kept,
    path: tuple[str, ...],
    format: Format | None = None,
    in_key: bool = False,
    access: Sequence[AccessRule] = (),
    deprecated: str | None = None,
    of: str = "",
) -> Any:
    meaning = StoredAs(path, {}, format, kept, of, in_key, access=access)
    return Specifier(meaning, None, Notes(deprecated)).as_field()


_ANY_INDEX: Any = object()


def many(
    of: object = None,
    /,
    *,
    at: str | None = None,
    index: Index | None = _ANY_INDEX,
    access: Sequence[AccessRule] = (),
    deprecated: str | None = None,
    shareable: bool = False,
    init: Literal[False] = False,
) -> Any:
    """A list with options. `at` names the neighbor's end at this node, `index` the index to read (None: the table).

    `access` says who may read the list, by conditions on this node. `of`, only for `Graph(lists={…})`, is the type to
    list, or several: `many(Post | Photo, index=gsi1)`."""
    return _chosen(at, index, access, Notes(deprecated, shareable), of)


def one(
    *,
    at: str | None = None,
    index: Index | None = _ANY_INDEX,
    access: Sequence[AccessRule] = (),
    deprecated: str | None = None,
    shareable: bool = False,
    init: Literal[False] = False,
) -> Any:
    """The only neighbor on a path, with the options of `many`."""
    return _chosen(at, index, access, Notes(deprecated, shareable))


def _chosen(
    at: str | None, index: Index | None, access: Sequence[AccessRule], notes: Notes, of: object = None
) -> Any:
    is_any = index is _ANY_INDEX
    return Specifier(ListOptions(at, None if is_any else index, is_any, access, of), None, notes).as_field()


def options_of(given: object) -> ListOptions | None:
    """Returns the options of `many(…)` or `one(…)`; None for anything else."""
    specifier = specifier_of(given)
    meaning = None if specifier is None else specifier.meaning
    return meaning if isinstance(meaning, ListOptions) else None


def reach(
    *lists: str,
    depth: int,
    budget: int | None = None,
    access: Sequence[AccessRule] = (),
    deprecated: str | None = None,
    init: Literal[False] = False,
) -> Any:
    """All nodes that these lists lead to, nearest first, each once. From each node, the walk follows the lists its type
    has.

    `depth` is the most edges between a node and the start, `budget` the most items that one page may examine, if less
    than the server's limit. `access` says who may read it, by conditions on this node.
    """
    return Specifier(WalkOptions(lists, budget, access, depth), None, Notes(deprecated)).as_field()


def ranked(
    *lists: str,
    weight: str | None = None,
    decay: tuple[str, timedelta] | None = None,
    include_first: bool = False,
    budget: int | None = None,
    access: Sequence[AccessRule] = (),
    deprecated: str | None = None,
    init: Literal[False] = False,
) -> Any:
    """The nodes at the end of these lists, followed one after the other, those that most paths lead to first.

    `weight` is a field of the last list's items: the weight of a path, 1 without it. `decay=("since",
    timedelta(days=30))` names a field with their time, and how long it takes to halve a path's weight. The node itself
    is left out, and the first list's nodes too unless `include_first`. `budget` is the most items it may examine.
    """
    options = WalkOptions(lists, budget, access, None, weight, decay, include_first)
    return Specifier(options, None, Notes(deprecated)).as_field()
