"""The words in which a graph is declared: `node`, `edge`, `record`, `fields`, `stored`, `many`, `one`, `reach`, `field`, `ref`.

They write down what was said and decide nothing: a decorated class is a keyword-only dataclass that carries its
`Declaration`, and a graph makes record types of the declarations that it lists.
"""

from __future__ import annotations

import dataclasses
import inspect
import sys
from collections.abc import Callable, Mapping, Sequence
from copy import copy
from dataclasses import MISSING, dataclass, replace
from datetime import timedelta
from functools import partial
from types import FrameType
from typing import Any, Generic, Literal, TypeAlias, TypeVar, cast, dataclass_transform, get_origin, overload

from keygraph.access.language import AccessRule
from keygraph.dynamo.table import Index, IndexKey, Shards
from keygraph.keys.formats import Epoch, Format

T = TypeVar("T")
Function = TypeVar("Function", bound=Callable[..., Any])

TypeValue: TypeAlias = str | Mapping[str, str | None] | None
"""What `type=` takes: the value of the type attribute, or the values of several attributes."""
Kept: TypeAlias = Literal["created", "updated", "version", "id"]
"""What the server keeps in a field: when its record was created or last written, how often it was, a new id."""
WriteName: TypeAlias = Literal["create", "put", "update", "upsert", "move", "delete"]
"""What a mutation does to a record."""
WRITES_OF_NODES: tuple[WriteName, ...] = ("create", "update", "upsert", "move", "delete")
WRITES_OF_OTHERS: tuple[WriteName, ...] = ("put", "update", "move", "delete")
Writes: TypeAlias = bool | Sequence[WriteName]
"""What `writes=` takes: whether there are mutations of a type, or which."""
RecordKind: TypeAlias = Literal["node", "edge", "record", "fields"]


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


@dataclass(frozen=True, slots=True)
class StoredAs:
    """Where a field stands in the item: a path of names, or for an end one name for each key field."""

    path: tuple[str, ...]
    attributes: Mapping[str, str]
    format: Format | None = None
    """How its values are written, where that is not as others of its type."""
    kept: Kept | None = None
    """What the server keeps in it."""
    in_key: bool = False
    """Whether no attribute holds it, but a key."""
    is_expiry: bool = False
    """Whether it is when the item expires."""
    access: Sequence[AccessRule] = ()
    """Who may read and write it."""


@dataclass(frozen=True, slots=True)
class ListOptions:
    """How a list chooses among the paths that there are."""

    at: str | None
    index: Index | None
    """The index that is read; None is the table."""
    any_index: bool
    """Whether nothing was said of the index."""
    access: Sequence[AccessRule] = ()
    """Who may read it."""
    of: object = None
    """The types of which it lists items, of a list at the root: that of a node says it by its annotation."""


@dataclass(frozen=True, slots=True)
class WalkOptions:
    """What a walk follows, and how far."""

    lists: tuple[str, ...]
    budget: int | None
    """How many items it may look at; None: as many as the server allows."""
    access: Sequence[AccessRule]
    """Who may read it."""
    depth: int | None = None
    """How many edges away a node may be; None for a ranking, which follows each list once."""
    weight: str | None = None
    """The field of the last list's items by which a way counts."""
    decay: tuple[str, timedelta] | None = None
    """The field of the last list's items that says when a way began, and in what time it counts half as much."""
    include_first: bool = False
    """Whether the nodes of the first list are ranked too."""


@dataclass(frozen=True, slots=True)
class Notes:
    """What clients are told of a type, a field or a list besides its description."""

    deprecated: str | None = None
    """Why it should not be used any more, and what to use; None where it may be."""
    shareable: bool = False
    """Whether other servers of the same supergraph may have it too."""
    external: bool = False
    """Whether another server of the supergraph has it, and this one only names it."""


NO_NOTES = Notes()


@dataclass(frozen=True, slots=True)
class Rule:
    """What must hold of a record after every write, and what a client is told where it would not."""

    where: Mapping[str, Any]
    message: str


@dataclass(frozen=True, slots=True)
class Declaration:
    """What a decorator was told about a class."""

    kind: RecordKind
    keys: tuple[str | IndexKey, ...] = ()
    type_value: TypeValue = None
    is_virtual: bool = False
    shards: Shards | None = None
    lists: str | Literal[False] | None = None
    mirror: bool = False
    counterpart: str | None = None
    item_bytes: int | None = None
    writes: Writes = True
    gather: bool = False
    rules: Sequence[Rule] = ()
    access: Sequence[AccessRule] = ()
    docstring: str | None = None
    own: Mapping[str, StoredAs | ListOptions | WalkOptions] = dataclasses.field(default_factory=dict)
    """What stands on the right of the class's own fields."""
    notes: Notes = NO_NOTES
    own_notes: Mapping[str, Notes] = dataclasses.field(default_factory=dict)
    """Those of the class's own fields and lists."""
    namespace: Mapping[str, Any] = dataclasses.field(default_factory=dict)
    """The names that the class could see where it was declared, when that is not a module."""


_DECLARATION = "__keygraph__"
_NEEDS = "__keygraph_needs__"
_ACCESS = "__keygraph_access__"
_NOTES = "__keygraph_notes__"


def declaration_of(cls: object) -> Declaration | None:
    """What the class's own decorator was told; None where it has none, or is no class."""
    return cls.__dict__.get(_DECLARATION) if isinstance(cls, type) else None


def needs_of(function: object) -> tuple[str, ...] | Literal[False] | None:
    """What a method that is a field reads, None is the whole item; False where it is no field."""
    return cast("tuple[str, ...] | Literal[False] | None", getattr(function, _NEEDS, False))


def own_notes_of(cls: type) -> dict[str, Notes]:
    """The notes on a class's own fields, lists and methods."""
    declaration = declaration_of(cls)
    own = {} if declaration is None else dict(declaration.own_notes)
    return own | {
        name: each.__dict__[_NOTES] for name, each in vars(cls).items() if needs_of(each) is not False
    }


def access_of(cls: type) -> tuple[Sequence[AccessRule], dict[str, Sequence[AccessRule]]]:
    """The rules that a class's own decorator was told, and those of its own fields, lists and methods."""
    declaration = declaration_of(cls)
    own = {} if declaration is None else {name: each.access for name, each in declaration.own.items()}
    own |= {name: each.__dict__[_ACCESS] for name, each in vars(cls).items() if needs_of(each) is not False}
    return () if declaration is None else declaration.access, own


# --- On the right of a field --------------------------------------------------------------------------


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
    return _Specifier(meaning, default, Notes(deprecated, shareable, external))


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
    return _Specifier(
        StoredAs(path, {}, Epoch("s"), is_expiry=True, access=access), default, Notes(deprecated)
    )


def _kept(
    kept: Kept,
    path: tuple[str, ...],
    format: Format | None = None,
    in_key: bool = False,
    access: Sequence[AccessRule] = (),
    deprecated: str | None = None,
) -> _Specifier:
    return _Specifier(StoredAs(path, {}, format, kept, in_key, access=access), None, Notes(deprecated))


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
) -> _Specifier:
    is_any = index is _ANY_INDEX
    return _Specifier(ListOptions(at, None if is_any else index, is_any, access, of), None, notes)


def options_of(given: object) -> ListOptions | None:
    """What `many(…)` was told; None for anything else."""
    meaning = given.meaning if isinstance(given, _Specifier) else None
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
    return _Specifier(WalkOptions(lists, budget, access, depth), None, Notes(deprecated))


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
    return _Specifier(options, None, Notes(deprecated))


@dataclass(frozen=True, slots=True)
class _Specifier:
    meaning: StoredAs | ListOptions | WalkOptions
    default: Any
    notes: Notes = NO_NOTES


def rule(where: Mapping[str, Any], message: str) -> Rule:
    """What must hold of a record after every write: `check=[rule({"total": {"gte": 0}}, "A total is not negative.")]`.

    `where` is written as the filter of a list, with the names of fields as the model has them, and the model's values.
    A write after which it does not hold is refused with the message. Only the rules of fields that a write changes are looked at.
    """
    return Rule(where, message)


def field(
    *,
    needs: Sequence[str] | None = None,
    access: Sequence[AccessRule] = (),
    deprecated: str | None = None,
    shareable: bool = False,
) -> Callable[[Function], Function]:
    """Makes a method a field. `self` has the attributes that `needs` names; without it, all of them.

    Who may not read one of these may not read the method either, unless it has rules of its own in `access`.
    """

    def mark(function: Function) -> Function:
        setattr(function, _NEEDS, None if needs is None else tuple(needs))
        setattr(function, _ACCESS, access)
        setattr(function, _NOTES, Notes(deprecated, shareable))
        return function

    return mark


def ref(node: type[T], **key: Any) -> T:
    """The node of a type with these key fields, for a method or a root field that returns one: `ref(User, user_id="7")`.

    An end in the key is a node too: `ref(Post, author=ref(User, user_id="7"), post_id="1")`. The object has no other
    fields; the server reads what is asked for. Raises TypeError where the class is no node, or has no such field.
    """
    declaration = declaration_of(node)
    if declaration is None or declaration.kind != "node":
        raise TypeError(f"{getattr(node, '__name__', node)} is not a node")
    known = {each.name for each in dataclasses.fields(cast(Any, node)) if each.init}
    for name in key.keys() - known:
        raise TypeError(f"{node.__name__} has no field {name}")
    made = object.__new__(node)
    vars(made).update(key)
    return made


# --- Decorators ---------------------------------------------------------------------------------------

_Class = TypeVar("_Class", bound=type)
_OWN_NAME: Any = object()
"""The default of `type=`: the class's name."""


@dataclass_transform(
    kw_only_default=True,
    field_specifiers=(stored, created, updated, version, new_id, ttl, many, one, reach, ranked),
)
def node(
    *keys: str | IndexKey,
    type: TypeValue = _OWN_NAME,
    item: bool = True,
    shards: Shards | None = None,
    lists: str | Literal[False] | None = None,
    gather: bool = False,
    mirror: Literal[False] = False,
    counterpart: None = None,
    item_bytes: int | None = None,
    writes: Writes = True,
    check: Sequence[Rule] = (),
    access: Sequence[AccessRule] = (),
    deprecated: str | None = None,
    shareable: bool = False,
) -> Callable[[_Class], _Class]:
    """An entity. Its key: a partition template, a sort template where it differs, then indexes.

    `type` is the value of the type attribute (None: its items have none), or a mapping of attributes to their values, `item=False` says that the table
    holds no item for it, `shards` over which partitions its table key is spread (a count, a range or names), `lists` how the list of the
    table's own key at the root is called (False: none). `gather=True` says that its partition is small, so that the
    node and its lists there are read by one Query. `mirror` and `counterpart` are an edge's alone. `item_bytes` is the
    item size that the cost bound of an operation is computed with. `writes` says which mutations there are: all (True), none
    (False), or a list such as `["create", "update"]`. `check` are rules that every write keeps, `access` says who may see
    and change its records. `deprecated` tells clients what to use instead; in a supergraph, other servers may have the
    fields of a `shareable` type too.
    """
    return _decorator(
        Declaration(
            "node",
            keys,
            type,
            not item,
            shards,
            lists,
            mirror,
            counterpart,
            item_bytes,
            writes,
            gather,
            check,
            access,
            notes=Notes(deprecated, shareable),
        )
    )


@dataclass_transform(
    kw_only_default=True,
    field_specifiers=(stored, created, updated, version, new_id, ttl, many, one, reach, ranked),
)
def edge(
    *keys: str | IndexKey,
    type: TypeValue = _OWN_NAME,
    shards: Shards | None = None,
    lists: str | Literal[False] | None = None,
    mirror: bool = False,
    counterpart: str | None = None,
    item_bytes: int | None = None,
    writes: Writes = True,
    check: Sequence[Rule] = (),
    access: Sequence[AccessRule] = (),
    deprecated: str | None = None,
    shareable: bool = False,
) -> Callable[[_Class], _Class]:
    """What joins two nodes, which are the two ends in its table key. The options are those of `node`, and two more.

    `mirror=True`, where the two are of one type, says that each edge has two items: the same with its ends exchanged
    is the other. `counterpart="Other"` names another edge type with the same two nodes, of which each edge has an item
    too; it is enough that one of the two names the other.
    """
    return _decorator(
        Declaration(
            "edge",
            keys,
            type,
            False,
            shards,
            lists,
            mirror,
            counterpart,
            item_bytes,
            writes,
            rules=check,
            access=access,
            notes=Notes(deprecated, shareable),
        )
    )


@dataclass_transform(
    kw_only_default=True,
    field_specifiers=(stored, created, updated, version, new_id, ttl, many, one, reach, ranked),
)
def record(
    *keys: str | IndexKey,
    type: TypeValue = _OWN_NAME,
    shards: Shards | None = None,
    lists: str | Literal[False] | None = None,
    mirror: Literal[False] = False,
    counterpart: None = None,
    item_bytes: int | None = None,
    writes: Writes = True,
    check: Sequence[Rule] = (),
    access: Sequence[AccessRule] = (),
    deprecated: str | None = None,
    shareable: bool = False,
) -> Callable[[_Class], _Class]:
    """An item that belongs to a node and is no node itself. The options are those of `node`."""
    return _decorator(
        Declaration(
            "record",
            keys,
            type,
            False,
            shards,
            lists,
            mirror,
            counterpart,
            item_bytes,
            writes,
            rules=check,
            access=access,
            notes=Notes(deprecated, shareable),
        )
    )


@overload
def fields(cls: _Class, /) -> _Class: ...


@overload
def fields(*, access: Sequence[AccessRule]) -> Callable[[_Class], _Class]: ...


@dataclass_transform(
    kw_only_default=True,
    field_specifiers=(stored, created, updated, version, new_id, ttl, many, one, reach, ranked),
)
def fields(cls: Any = None, /, *, access: Sequence[AccessRule] = ()) -> Any:
    """A base class whose fields are those of every type that inherits it, and so is its `access`, but where the type has its
    own."""
    told = Declaration("fields", access=access)
    if cls is not None:
        return _declare(cls, told, sys._getframe(1))
    return lambda decorated: _declare(decorated, told, sys._getframe(1))


def _decorator(told: Declaration) -> Callable[[_Class], _Class]:
    bare: Any = told.keys[0] if len(told.keys) == 1 else None
    if inspect.isclass(bare):
        # `@node` without parentheses: its mistake, that it has no templates, is told with all others.
        made = _declare(bare, replace(told, keys=(), type_value=bare.__name__), sys._getframe(2))
        return cast("Callable[[_Class], _Class]", made)

    def decorate(cls: _Class) -> _Class:
        value = cls.__name__ if told.type_value is _OWN_NAME else told.type_value
        return _declare(cls, replace(told, type_value=value), sys._getframe(1))

    return decorate


def _declare(cls: _Class, told: Declaration, frame: FrameType) -> _Class:
    own: dict[str, StoredAs | ListOptions | WalkOptions] = {}
    notes: dict[str, Notes] = {}
    for name, annotation in inspect.get_annotations(cls).items():
        given = cls.__dict__.get(name, MISSING)
        if given is MISSING and _is_list(annotation, frame):
            given = many()
        if not isinstance(given, _Specifier):
            continue
        own[name], notes[name] = given.meaning, given.notes
        is_made = isinstance(given.meaning, StoredAs) and given.meaning.kept not in (None, "id")
        if is_made or isinstance(given.meaning, ListOptions | WalkOptions):
            setattr(cls, name, dataclasses.field(init=False, default=None, repr=False, compare=False))
        elif given.default is MISSING:
            delattr(cls, name)
        elif isinstance(given.default, list | dict | set):
            setattr(cls, name, dataclasses.field(default_factory=partial(copy, given.default)))
        else:
            setattr(cls, name, given.default)
    declaration = replace(
        told,
        docstring=cls.__dict__.get("__doc__"),
        own=own,
        own_notes=notes,
        # A class in a function sees that function's names, which its annotations may use.
        namespace={} if frame.f_locals is frame.f_globals else dict(frame.f_locals),
    )
    made: type = dataclasses.dataclass(kw_only=True)(cls)
    setattr(made, _DECLARATION, declaration)
    return cast(_Class, made)


def _is_list(annotation: Any, frame: FrameType) -> bool:
    """Whether an annotation is `Many[…]` or `One[…]`.

    Only the name before the bracket is looked up: the type inside may be declared further down.
    """
    if isinstance(annotation, str):
        name, *attributes = annotation.strip("\"' ").partition("[")[0].split(".")
        annotation = frame.f_locals.get(name, frame.f_globals.get(name))
        for attribute in attributes:
            annotation = getattr(annotation, attribute, None)
    return (get_origin(annotation) or annotation) in (Many, One)
