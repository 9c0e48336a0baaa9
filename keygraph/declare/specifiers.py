"""What a field is declared with: its annotation where it is a list, and what stands on its right, such as `stored`, `created`, `many`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import MISSING, dataclass
from datetime import timedelta
from typing import Annotated, Any, Generic, Literal, TypeAlias, TypeVar

from keygraph.access.language import AccessRule
from keygraph.declare.declaration import NO_NOTES, Kept, ListOptions, Notes, StoredAs, WalkOptions
from keygraph.dynamo.table import Index
from keygraph.keys.formats import Epoch, Format

T = TypeVar("T")


class Many(Generic[T]):
    """The annotation of a list: what one node reaches, page by page.

    `orders: Many[Order]` alone is enough, and the constructor takes no such field. A type checker does not know that:
    in code that makes the node itself, mypy and pyright ask for the list unless the field says `= many()`.
    """


class One(Generic[T]):
    """The annotation of a path on which there is at most one neighbour."""


class Reach(Generic[T]):
    """The annotation of everything that lists lead to, level by level: `descendants: Reach[Category] = reach("children", depth=10)`."""


class Ranked(Generic[T]):
    """The annotation of the nodes to which most ways lead: `you_may_know: Ranked[User] = ranked("friends", "friends")`."""


Context: TypeAlias = Annotated[Any, "the context of the operation"]
"""The annotation of a method's parameter that is given what resolvers get as `info.context`: `def mine(self, context: Context)`."""


@dataclass(frozen=True, slots=True)
class Specifier:
    meaning: StoredAs | ListOptions | WalkOptions
    default: Any
    notes: Notes = NO_NOTES


def stored(
    *path: str,
    default: Any = MISSING,
    format: Format | str | None = None,
    in_key: bool = False,
    access: Sequence[AccessRule] | str = (),
    deprecated: str | None = None,
    shareable: bool = False,
    external: bool = False,
    **attributes: str,
) -> Any:
    """The attribute that holds the field: `stored("agentID")`, a path into a map `stored("data", "version")`.

    `format=Epoch("ms")` says how its values are written there, and in keys where its placeholder has no format.

    For an end of several key fields, one attribute each: `stored(owner="RepoOwner", name="RepoName")`. An end that is
    of one of several types whose keys differ (`User | Organization`) is one attribute, which holds that node's whole
    partition key. `in_key=True` says that it stands in a key of the item and is no attribute, so that writes leave the attribute
    out. An optional field without it is null where its attribute is absent, whatever an index's keys say.
    `access` are rules of its own: who may read it of a record that they see, and who may write it. `deprecated` tells
    clients what to use instead. In a supergraph, other servers may have a `shareable` field too, and an `external` one is theirs.
    """
    # The attributes of an end's key fields that are called so.
    named = {name: each for name, each in (("format", format), ("access", access)) if isinstance(each, str)}
    written = None if isinstance(format, str) else format
    rules = () if isinstance(access, str) else access
    meaning = StoredAs(path, {**attributes, **named}, written, in_key=in_key, access=rules)
    return Specifier(meaning, default, Notes(deprecated, shareable, external))


def created(
    *path: str,
    format: Format | None = None,
    in_key: bool = False,
    access: Sequence[AccessRule] = (),
    deprecated: str | None = None,
    init: Literal[False] = False,
) -> Any:
    """When the record was created: a datetime that the server sets. The options are those of `stored`."""
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
    """How often the record was written: an integer that the server counts from 1, and `expectedVersion` is compared with."""
    return _kept("version", path)


def counts(
    of: str,
    /,
    *path: str,
    access: Sequence[AccessRule] = (),
    deprecated: str | None = None,
    init: Literal[False] = False,
) -> Any:
    """How many items a list of this node has: `orders_count: int = counts("orders")`.

    Every mutation that adds an item to the list, or takes one from it, changes the number in the same transaction.
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
    """The sum of a number over the items of a list of this node: `spent: Decimal = sums("orders.total")`. Kept as counts are."""
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
    """A field of the node at an end, as it is when the item is written with that end: `rating: int = copy("review.rating")`.

    What becomes of the node later does not change the copy.
    """
    return _kept("copy", path, format, in_key, access, deprecated, of)


def new_id(*path: str, default: Any = None) -> Any:
    """An id that the server makes where a client gives none: a UUID of version 7, which sorts by time."""
    return _kept("id", path)


def ttl(
    attribute: str | None = None,
    *,
    default: Any = MISSING,
    access: Sequence[AccessRule] = (),
    deprecated: str | None = None,
) -> Any:
    """When the record expires: a datetime that is stored in whole seconds since 1970, as DynamoDB's TTL wants it.

    DynamoDB deletes an expired item up to days late; until then it is left out everywhere, as if it were not there. Where
    the field is None the record does not expire.
    """
    path = () if attribute is None else (attribute,)
    return Specifier(
        StoredAs(path, {}, Epoch("s"), is_expiry=True, access=access), default, Notes(deprecated)
    )


def _kept(
    kept: Kept,
    path: tuple[str, ...],
    format: Format | None = None,
    in_key: bool = False,
    access: Sequence[AccessRule] = (),
    deprecated: str | None = None,
    of: str = "",
) -> Specifier:
    meaning = StoredAs(path, {}, format, kept, of, in_key, access=access)
    return Specifier(meaning, None, Notes(deprecated))


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
    """A list that says more than its annotation. `at` names the end of the neighbour that is this node, `index` the index that is read: None is the table.

    `access` says who may read the list, by conditions on this node. `of` is for the lists of `Graph(lists={…})` alone: the type
    that they list, or several, `many(Post | Photo, index=gsi1)`."""
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
    """The only neighbour on a path, chosen as `many` chooses."""
    return _chosen(at, index, access, Notes(deprecated, shareable))


def _chosen(
    at: str | None, index: Index | None, access: Sequence[AccessRule], notes: Notes, of: object = None
) -> Specifier:
    is_any = index is _ANY_INDEX
    return Specifier(ListOptions(at, None if is_any else index, is_any, access, of), None, notes)


def options_of(given: object) -> ListOptions | None:
    """What `many(…)` was told; None for anything else."""
    meaning = given.meaning if isinstance(given, Specifier) else None
    return meaning if isinstance(meaning, ListOptions) else None


def reach(
    *lists: str,
    depth: int,
    budget: int | None = None,
    access: Sequence[AccessRule] = (),
    deprecated: str | None = None,
    init: Literal[False] = False,
) -> Any:
    """All nodes to which these lists lead, the nearest first, each once. From each node those lists are followed that its
    type has.

    `depth` says how many edges away a node may be, and `budget` how many items one page may look at, if that is less than the
    server allows. `access` says who may read it, by conditions on this node.
    """
    return Specifier(WalkOptions(lists, budget, access, depth), None, Notes(deprecated))


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
    """The nodes at the end of these lists, followed one after the other, those first to which most ways lead.

    `weight` is a field of the last list's items: a way counts as much as it says, else 1. `decay=("since", timedelta(days=30))` says
    by which of their times, and in which time, a way counts half as much. The node itself is left out, and so are those of
    the first list, unless `include_first` says otherwise. `budget` is how many items it may look at.
    """
    options = WalkOptions(lists, budget, access, None, weight, decay, include_first)
    return Specifier(options, None, Notes(deprecated))
