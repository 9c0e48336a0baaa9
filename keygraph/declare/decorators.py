"""What a class or a method of a model is declared with: `node`, `edge`, `record`, `fields`, `field`, `rule`; and `ref`.

They decide nothing: a decorated class is a keyword-only dataclass that carries its `Declaration`, and a graph makes record
types of the declarations that it lists.
"""

from __future__ import annotations

import copy as copying
import dataclasses
import inspect
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import MISSING, replace
from functools import partial
from types import FrameType
from typing import Any, Literal, TypeVar, cast, dataclass_transform, get_origin, overload

from keygraph.access.language import AccessRule
from keygraph.declare.declaration import (
    Declaration,
    ListOptions,
    Notes,
    Rule,
    StoredAs,
    TypeValue,
    WalkOptions,
    Writes,
    declaration_of,
    declare,
    declare_method,
)
from keygraph.declare.specifiers import (
    Many,
    One,
    Specifier,
    copy,
    counts,
    created,
    many,
    new_id,
    one,
    ranked,
    reach,
    stored,
    sums,
    ttl,
    updated,
    version,
)
from keygraph.dynamo.table import IndexKey, Shards

T = TypeVar("T")
Function = TypeVar("Function", bound=Callable[..., Any])


_Class = TypeVar("_Class", bound=type)
_OWN_NAME: Any = object()
"""The default of `type=`: the class's name."""

# Type checkers take literal tuples of field specifiers alone, so each decorator repeats them.


@dataclass_transform(
    kw_only_default=True,
    field_specifiers=(stored, created, updated, version, counts, sums, copy, new_id, ttl, many, one, reach, ranked),
)  # fmt: skip
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
    field_specifiers=(stored, created, updated, version, counts, sums, copy, new_id, ttl, many, one, reach, ranked),
)  # fmt: skip
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
    field_specifiers=(stored, created, updated, version, counts, sums, copy, new_id, ttl, many, one, reach, ranked),
)  # fmt: skip
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
    field_specifiers=(stored, created, updated, version, counts, sums, copy, new_id, ttl, many, one, reach, ranked),
)  # fmt: skip
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
        if not isinstance(given, Specifier):
            continue
        own[name], notes[name] = given.meaning, given.notes
        is_made = isinstance(given.meaning, StoredAs) and given.meaning.kept not in (None, "id")
        if is_made or isinstance(given.meaning, ListOptions | WalkOptions):
            setattr(cls, name, dataclasses.field(init=False, default=None, repr=False, compare=False))
        elif given.default is MISSING:
            delattr(cls, name)
        elif isinstance(given.default, list | dict | set):
            setattr(cls, name, dataclasses.field(default_factory=partial(copying.copy, given.default)))
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
    declare(made, declaration)
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


# --- Besides ------------------------------------------------------------------------------------------


def rule(where: Mapping[str, Any], message: str) -> Rule:
    """Conditions on a record after every write: `check=[rule({"total": {"gte": 0}}, "A total is not negative.")]`.

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
        declare_method(
            function, None if needs is None else tuple(needs), access, Notes(deprecated, shareable)
        )
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
