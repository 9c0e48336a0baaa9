"""What a model file writes: the decorators of classes and methods, `node`, `edge`, `record`, `fields` and `field`; the
annotations of lists; the specifiers that are assigned to fields, such as `stored`, `created` and `many`; `rule` and `ref`.

They only record: a decorated class is a keyword-only dataclass with a `Declaration`. Graphs make record types of them.
"""

from __future__ import annotations

import copy as copying
import dataclasses
import inspect
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import MISSING, dataclass, replace
from datetime import timedelta
from functools import partial
from types import FrameType
from typing import (
    Annotated,
    Any,
    Generic,
    Literal,
    TypeAlias,
    TypedDict,
    TypeVar,
    Unpack,
    cast,
    dataclass_transform,
    get_origin,
    overload,
)

from keygraph.access.language import AccessRule
from keygraph.declare import declaration
from keygraph.dynamo.table import Index, IndexKey
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


REFERENCE = "a node that the item names"
Ref: TypeAlias = Annotated[T, REFERENCE]
"""The annotation of a node in a list or a set whose attribute holds the nodes' ids: `threads: list[Ref[Thread]]`."""

Context: TypeAlias = Annotated[Any, "the context of the operation"]
"""The annotation of a method's parameter that gets `info.context`: `def mine(self, context: Context)`."""


Meaning: TypeAlias = declaration.StoredAs | declaration.ListOptions | declaration.WalkOptions


@dataclass(frozen=True, slots=True)
class Specifier:
    """What is assigned to a field, in the metadata of a field of a dataclass."""

    meaning: Meaning
    default: Any
    notes: declaration.Notes = declaration.NO_NOTES

    def as_field(self) -> Any:
        """Returns the field of a dataclass. In one that is no record type, it may only have a name and a default."""
        meaning, default = self.meaning, self.default
        if not isinstance(meaning, declaration.StoredAs) or meaning.kept not in (None, "id"):
            notes: dict[str, Any] = {_SPECIFIER: self, IN_MAP: None}
            return dataclasses.field(init=False, default=None, repr=False, compare=False, metadata=notes)
        is_name = meaning == declaration.StoredAs(meaning.path[:1], {}) and self.notes == declaration.NO_NOTES
        notes = {_SPECIFIER: self, IN_MAP: next(iter(meaning.path), "") if is_name else None}
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
    was: str = "",
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
    an optional field is null if its attribute is absent, whatever an index's keys say. `was="name"` says that items may
    still hold the field in another attribute, which is read too, and removed when the field is written. `access` are the field's own
    rules: who may read it on a record that they see, and who may write it. `deprecated` tells clients what to use
    instead. In a supergraph, other servers may have a `shareable` field too, and own an `external` one.
    """
    # Key fields of an end may be named `format` or `access`; these are their attributes.
    named = {name: each for name, each in (("format", format), ("access", access)) if isinstance(each, str)}
    written = None if isinstance(format, str) else format
    rules = () if isinstance(access, str) else access
    meaning = declaration.StoredAs(
        path, {**attributes, **named}, written, in_key=in_key, whole_key=whole_key, access=rules, was=was
    )
    return Specifier(meaning, default, declaration.Notes(deprecated, shareable, external)).as_field()


class FieldOptions(TypedDict, total=False):
    """The options that the specifiers of fields, lists and walks share: who may read it, and what to use instead."""

    access: Sequence[AccessRule]
    deprecated: str | None


class ListKeywords(FieldOptions, total=False):
    shareable: bool
    needs: tuple[str, ...]


def _field(
    meaning: Meaning,
    default: Any = None,
    /,
    *,
    access: Sequence[AccessRule] = (),
    deprecated: str | None = None,
    shareable: bool = False,
    **unknown: object,
) -> Any:
    if unknown:
        raise TypeError(f"a field has no option {' or '.join(unknown)}")
    notes = declaration.Notes(deprecated, shareable)
    return Specifier(replace(meaning, access=access), default, notes).as_field()


class KeptOptions(FieldOptions, total=False):
    """The options of what a transaction or the job keeps."""

    kept: declaration.Keeper


class CountOptions(KeptOptions, total=False):
    """The options of what is counted over a list."""

    where: Mapping[str, Any]


class AddedOptions(CountOptions, total=False):
    """The options of numbers to which items add."""

    shards: int


def _kept(
    stored: declaration.StoredAs,
    where: Mapping[str, Any] | None = None,
    kept: declaration.Keeper = "transaction",
    shards: int = 0,
    **options: Unpack[FieldOptions],
) -> Any:
    if shards and stored.kept not in ("count", "sum", "average"):
        raise TypeError("a field has no option shards")
    return _field(replace(stored, kept_where=where, keeper=kept, shards=shards), **options)


def created(
    *path: str,
    format: Format | None = None,
    in_key: bool = False,
    init: Literal[False] = False,
    **options: Unpack[FieldOptions],
) -> Any:
    """When the record was created: a datetime that the server sets. It takes some options of `stored`."""
    return _kept(declaration.StoredAs(path, {}, format, "created", in_key=in_key), **options)


def updated(
    *path: str, format: Format | None = None, init: Literal[False] = False, **options: Unpack[FieldOptions]
) -> Any:
    """When the record was last written: a datetime that the server sets."""
    return _kept(declaration.StoredAs(path, {}, format, "updated"), **options)


def version(*path: str, init: Literal[False] = False) -> Any:
    """How often the record was written: an integer that the server counts from 1, compared with `expectedVersion`."""
    return _kept(declaration.StoredAs(path, {}, kept="version"))


def counts(of: str, /, *path: str, init: Literal[False] = False, **options: Unpack[AddedOptions]) -> Any:
    """The number of items in a list of this node: `orders_count: int = counts("orders")`.

    With `where={"status": OrderStatus.PENDING}`, only of those that meet the condition, which is written as in rules.
    A mutation that adds an item to the list, or removes one, changes the number in the same transaction.
    With `kept="job"`, only `keygraph summarize` computes it: it is null before, and the field `orders_count_as_of` has
    the time. With `kept="stream"`, `keygraph follow` changes it soon after each mutation. With `shards=10`, for a node to
    which many clients add at once, the number is the sum of the node's own and those of ten items more: each mutation
    adds to one of these and leaves the node's item alone.
    """
    return _kept(declaration.StoredAs(path, {}, None, "count", of), **options)


def sums(of: str, /, *path: str, init: Literal[False] = False, **options: Unpack[AddedOptions]) -> Any:
    """The sum of a field over a list of this node: `spent: Decimal = sums("orders.total")`. Kept like `counts`."""
    return _kept(declaration.StoredAs(path, {}, None, "sum", of), **options)


def average(of: str, /, *path: str, init: Literal[False] = False, **options: Unpack[AddedOptions]) -> Any:
    """The average of a field over a list of this node: `rating: float | None = average("reviews.rating")`.

    The node stores the exact sum and count, kept like `counts`. It is None if no item has a value.
    """
    return _kept(declaration.StoredAs(path, {}, None, "average", of), **options)


def minimum(of: str, /, *path: str, init: Literal[False] = False, **options: Unpack[CountOptions]) -> Any:
    """The smallest value of a field in a list of this node: `from_price: Decimal | None = minimum("offers.price")`.

    The list must be ordered by the field. It is None if the list is empty. Kept like `counts`.
    """
    return _kept(declaration.StoredAs(path, {}, None, "minimum", of), **options)


def maximum(of: str, /, *path: str, init: Literal[False] = False, **options: Unpack[CountOptions]) -> Any:
    """The largest value of a field in a list of this node, as `minimum` has the smallest one."""
    return _kept(declaration.StoredAs(path, {}, None, "maximum", of), **options)


def latest(of: str, /, *path: str, init: Literal[False] = False, **options: Unpack[CountOptions]) -> Any:
    """A field of the last item of a list of this node: `last_price: Decimal | None = latest("prices.price")`.

    It is None if the list is empty. Kept like `counts`.
    """
    return _kept(declaration.StoredAs(path, {}, None, "latest", of), **options)


def copy(
    of: str,
    /,
    *path: str,
    format: Format | None = None,
    in_key: bool = False,
    follows: bool = False,
    init: Literal[False] = False,
    **options: Unpack[KeptOptions],
) -> Any:
    """A field of the node at an end, copied when the end is written: `rating: int = copy("review.rating")`.

    Later changes of the node do not change the copy, unless it `follows` them. With `kept="job"`, only
    `keygraph summarize` copies it.
    """
    return _kept(
        declaration.StoredAs(path, {}, format, "copy", of, in_key=in_key, follows=follows), **options
    )


def degree(*lists: str, init: Literal[False] = False, **options: Unpack[FieldOptions]) -> Any:
    """The number of edges of this node in one or more lists: `degree: int | None = degree("follows", "followers")`.

    Only `keygraph summarize` computes it, like all that is `kept="job"`.
    """
    return _kept(declaration.StoredAs((), {}, None, "degree", " ".join(lists)), kept="job", **options)


def top(
    of: str, size: int, /, *path: str, init: Literal[False] = False, **options: Unpack[FieldOptions]
) -> Any:
    """The items of a list with the highest values of a field: `best: list[ID] | None = top("members.score", 10)`.

    A list of numbers holds these values, a list of ids the keys of their nodes, highest first. Only
    `keygraph summarize` computes it.
    """
    return _kept(declaration.StoredAs(path, {}, None, "top", of, size=size), kept="job", **options)


def rank(
    of: str,
    /,
    *path: str,
    within: str = "",
    init: Literal[False] = False,
    **options: Unpack[FieldOptions],
) -> Any:
    """The place of a record among those of its type: `place: int | None = rank("score", within="skill")`.

    The highest value of the field has rank 1, equal values have equal ranks. `within` names a field or an end: only
    records with the same value of it are ranked among each other. Only `keygraph summarize` computes it.
    """
    return _kept(declaration.StoredAs(path, {}, None, "rank", of, within=within), kept="job", **options)


def new_id(*path: str, default: Any = None) -> Any:
    """An id that the server makes if a client gives none: a UUID of version 7, which sorts by time."""
    return _kept(declaration.StoredAs(path, {}, kept="id"))


def ttl(attribute: str | None = None, *, default: Any = MISSING, **options: Unpack[FieldOptions]) -> Any:
    """When the record expires: a datetime stored in whole seconds since 1970, as DynamoDB's TTL requires.

    DynamoDB deletes expired items up to days late; until then they are hidden everywhere. A record whose field is None
    does not expire.
    """
    path = () if attribute is None else (attribute,)
    return _field(declaration.StoredAs(path, {}, Epoch("s"), is_expiry=True), default, **options)


_ANY_INDEX: Any = object()


def many(
    of: object = None,
    /,
    *,
    at: str | None = None,
    index: Index | None = _ANY_INDEX,
    init: Literal[False] = False,
    **options: Unpack[ListKeywords],
) -> Any:
    """A list with options. `at` names the neighbor's end at this node, `index` the index to read (None: the table).
    `needs` names its required arguments, where they are the key of another node.

    `access` says who may read the list, by conditions on this node. `of`, only for `Graph(lists={…})`, is the type to
    list, or several: `many(Post | Photo, index=gsi1)`."""
    is_any, needs = index is _ANY_INDEX, options.pop("needs", None)
    meaning = declaration.ListOptions(at, None if is_any else index, is_any, of=of, needs=needs)
    return _field(meaning, **options)


def one(
    *,
    at: str | None = None,
    index: Index | None = _ANY_INDEX,
    init: Literal[False] = False,
    **options: Unpack[ListKeywords],
) -> Any:
    """The only neighbor on a path, with the options of `many`."""
    return many(at=at, index=index, **options)


def options_of(given: object) -> declaration.ListOptions | None:
    """Returns the options of `many(…)` or `one(…)`; None for anything else."""
    specifier = specifier_of(given)
    meaning = None if specifier is None else specifier.meaning
    return meaning if isinstance(meaning, declaration.ListOptions) else None


class WalkKeywords(KeptOptions, total=False):
    """The options of walks."""

    keep: int


def _walk(
    walk: declaration.WalkOptions,
    kept: declaration.Keeper = "transaction",
    keep: int = 20,
    **options: Unpack[FieldOptions],
) -> Any:
    return _field(replace(walk, keeper=kept, keep=keep), **options)


def reach(
    *lists: str,
    depth: int,
    budget: int | None = None,
    init: Literal[False] = False,
    **options: Unpack[WalkKeywords],
) -> Any:
    """All nodes that these lists lead to, nearest first, each once. From each node, the walk follows the lists its type
    has.

    `depth` is the most edges between a node and the start, `budget` the most items that one page may examine, if less
    than the server's limit. `access` says who may read it, by conditions on this node.

    With `kept="job"`, `keygraph summarize` walks, and the node keeps the first `keep` nodes, 20 by default: a query then
    reads no list. It is null before, and the field `descendants_as_of` of `descendants` has the time.
    """
    return _walk(declaration.WalkOptions(lists, budget, (), depth), **options)


def ranked(
    *lists: str,
    weight: str | None = None,
    decay: tuple[str, timedelta] | None = None,
    include_first: bool = False,
    budget: int | None = None,
    init: Literal[False] = False,
    **options: Unpack[WalkKeywords],
) -> Any:
    """The nodes at the end of these lists, followed one after the other, those that most paths lead to first.

    `weight` is a field of the last list's items: the weight of a path, 1 without it. `decay=("since",
    timedelta(days=30))` names a field with their time, and how long it takes to halve a path's weight. The node itself
    is left out, and the first list's nodes too unless `include_first`. `budget` is the most items it may examine.
    `kept="job"` and `keep=20` are those of `reach`.
    """
    return _walk(declaration.WalkOptions(lists, budget, (), None, weight, decay, include_first), **options)


# --- Decorators -----------------------------------------------------------------------------------------

Function = TypeVar("Function", bound=Callable[..., Any])


_Class = TypeVar("_Class", bound=type)

# Type checkers accept only literal tuples of field specifiers, so each decorator repeats them.


@dataclass_transform(
    kw_only_default=True,
    field_specifiers=(stored, created, updated, version, counts, sums, copy, new_id, ttl, many, one, reach, ranked),
)  # fmt: skip
def node(*keys: str | IndexKey, **options: Unpack[declaration.NodeOptions]) -> Callable[[_Class], _Class]:
    """An entity. Its key: a partition template, a sort template if it differs, then indexes.

    `type` is the value of the type attribute (None if its items have none), or a mapping of attributes to values, or to
    comparisons: `{"GSI1PK": {"beginsWith": "ORDER#"}}` or `{"closedAt": {"exists": True}}`.
    `item=False` says that the table holds no item for it. `shards` spreads its table key over several partitions (a
    count, a range or names). `lists` names the root list of the table's own key (False for none). `gather=True` says
    that its partition is small, so that one Query reads the node and its lists there. `mirror` and `counterpart` are
    only for edges. `item_bytes` is the item size for the cost bound of an operation. `writes` says which mutations
    exist, if not the usual ones: all (True), none (False), or a list such as `["create", "upsert", "bulk"]`. `check` are rules that every write must
    keep. `access` says who may see and change its records. `deprecated` tells clients what to use instead. In a
    supergraph, other servers may have the fields of a `shareable` type too.
    """
    return _decorator("node", keys, options)


@dataclass_transform(
    kw_only_default=True,
    field_specifiers=(stored, created, updated, version, counts, sums, copy, new_id, ttl, many, one, reach, ranked),
)  # fmt: skip
def edge(*keys: str | IndexKey, **options: Unpack[declaration.EdgeOptions]) -> Callable[[_Class], _Class]:
    """An edge between two nodes, the two ends in its table key. It takes the options of `node` and two more.

    `mirror=True`, for ends of one type, stores each edge as two items, the second with the ends exchanged.
    `counterpart="Other"` names another edge type between the same two nodes, which gets an item for each edge too; it
    is enough if one of the two names the other.
    """
    return _decorator("edge", keys, options)


@dataclass_transform(
    kw_only_default=True,
    field_specifiers=(stored, created, updated, version, counts, sums, copy, new_id, ttl, many, one, reach, ranked),
)  # fmt: skip
def record(*keys: str | IndexKey, **options: Unpack[declaration.TypeOptions]) -> Callable[[_Class], _Class]:
    """An item that belongs to a node but is not a node itself. It takes the options of `node`."""
    return _decorator("record", keys, options)


@overload
def fields(cls: _Class, /) -> _Class: ...


@overload
def fields(*, access: Sequence[AccessRule]) -> Callable[[_Class], _Class]: ...


@dataclass_transform(
    kw_only_default=True,
    field_specifiers=(stored, created, updated, version, counts, sums, copy, new_id, ttl, many, one, reach, ranked),
)  # fmt: skip
def fields(cls: Any = None, /, *, access: Sequence[AccessRule] = ()) -> Any:
    """A base class that gives its fields to every type that inherits it, and its `access` to those that have none of
    their own."""
    declared = declaration.Declaration("fields", access=access)
    if cls is not None:
        return _declare(cls, declared, sys._getframe(1))
    return lambda decorated: _declare(decorated, declared, sys._getframe(1))


def _decorator(
    kind: declaration.RecordKind, keys: tuple[str | IndexKey, ...], options: Mapping[str, Any]
) -> Callable[[_Class], _Class]:
    for name in (
        options.keys()
        - (declaration.NodeOptions.__annotations__ | declaration.EdgeOptions.__annotations__).keys()
    ):
        raise TypeError(f"{kind}() got an unexpected keyword argument {name!r}")
    bare: Any = keys[0] if len(keys) == 1 else None
    if inspect.isclass(bare):
        # `@node` without parentheses: the missing templates are reported with all other mistakes.
        made = _declare(bare, declaration.Declaration(kind, type=bare.__name__), sys._getframe(2))
        return cast("Callable[[_Class], _Class]", made)

    def decorate(cls: _Class) -> _Class:
        own: dict[str, Any] = {"type": cls.__name__, **options}
        return _declare(cls, declaration.Declaration(kind, keys, **own), sys._getframe(1))

    return decorate


def _declare(cls: _Class, declared: declaration.Declaration, frame: FrameType) -> _Class:
    own: dict[str, Meaning] = {}
    notes: dict[str, declaration.Notes] = {}
    for name, annotation in inspect.get_annotations(cls).items():
        given = cls.__dict__.get(name, MISSING)
        if given is MISSING and _is_list(annotation, frame):
            given = many()
        specifier = specifier_of(given)
        if specifier is not None:
            own[name], notes[name] = specifier.meaning, specifier.notes
            # A specifier may be assigned to several fields.
            setattr(cls, name, specifier.as_field())
        elif given is not MISSING and not isinstance(given, dataclasses.Field) and is_mutable(given):
            setattr(cls, name, dataclasses.field(default_factory=declaration.SharedDefault(given)))
    declared = replace(
        declared,
        docstring=cls.__dict__.get("__doc__"),
        own=own,
        own_notes=notes,
        # A class in a function may use that function's names in its annotations.
        namespace={} if frame.f_locals is frame.f_globals else dict(frame.f_locals),
    )
    made: type = dataclasses.dataclass(kw_only=True)(cls)
    setattr(made, declaration.DECLARATION, declared)
    return cast(_Class, made)


def _is_list(annotation: Any, frame: FrameType) -> bool:
    """Returns whether an annotation is `Many[…]` or `One[…]`.

    Only the name before the bracket is looked up: the type inside may be declared further down.
    """
    if isinstance(annotation, str):
        name, *attributes = annotation.strip("\"' ").partition("[")[0].split(".")
        annotation = frame.f_locals.get(name, frame.f_globals.get(name))
        for attribute in attributes:
            annotation = getattr(annotation, attribute, None)
    return (get_origin(annotation) or annotation) in (Many, One)


# --- Rules, fields and references -----------------------------------------------------------------


def rule(where: Mapping[str, Any], message: str) -> declaration.CheckRule:
    """Conditions on a record after every write: `check=[rule({"total": {"gte": 0}}, "A total is not negative.")]`.

    `where` is written like the filter of a list, with the model's field names and values. A write that would break the
    rule is refused with the message. A write checks only the rules of the fields that it changes.
    """
    return declaration.CheckRule(where, message)


def field(
    *,
    needs: Sequence[str] | None = None,
    access: Sequence[AccessRule] = (),
    deprecated: str | None = None,
    shareable: bool = False,
) -> Callable[[Function], Function]:
    """Makes a method a field. `self` has the attributes that `needs` names, or all of them without it.

    A viewer who may not read one of these may not read the method either, unless `access` gives it rules of its own.
    """

    names = None if needs is None else tuple(needs)
    declared = declaration.MethodDeclaration(names, access, declaration.Notes(deprecated, shareable))

    def mark(function: Function) -> Function:
        setattr(function, declaration.METHOD, declared)
        return function

    return mark


def ref(node: type[T], **key: Any) -> T:
    """Refers to a node by its key fields, as the result of a method or a root field: `ref(User, user_id="7")`.

    An end in the key is a node too: `ref(Post, author=ref(User, user_id="7"), post_id="1")`. The server reads the other
    fields on request. Raises TypeError if the class is not a node or has no field of that name.
    """
    declared = declaration.declaration_of(node)
    if declared is None or declared.kind != "node":
        raise TypeError(f"{getattr(node, '__name__', node)} is not a node")
    known = {each.name for each in dataclasses.fields(cast(Any, node)) if each.init}
    for name in key.keys() - known:
        raise TypeError(f"{node.__name__} has no field {name}")
    made = object.__new__(node)
    vars(made).update(key)
    return made
