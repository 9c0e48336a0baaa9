"""The decorators for the classes and methods of a model: `node`, `edge`, `record`, `fields`, `field`; also `rule` and
`ref`.

They only record: a decorated class is a keyword-only dataclass with a `Declaration`. Graphs make record types of them.
"""

from __future__ import annotations

import dataclasses
import inspect
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import MISSING, replace
from types import FrameType
from typing import Any, Literal, TypeVar, cast, dataclass_transform, get_origin, overload

from keygraph.access.language import AccessRule
from keygraph.declare.declaration import (
    Declaration,
    ListOptions,
    Notes,
    Rule,
    SharedDefault,
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
    copy,
    counts,
    created,
    is_mutable,
    many,
    new_id,
    one,
    ranked,
    reach,
    specifier_of,
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

# Type checkers accept only literal tuples of field specifiers, so each decorator repeats them.


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
    """An entity. Its key: a partition template, a sort template if it differs, then indexes.

    `type` is the value of the type attribute (None if its items have none), or a mapping of attributes to values, or to
    comparisons: `{"GSI1PK": {"beginsWith": "ORDER#"}}` or `{"closedAt": {"exists": True}}`.
    `item=False` says that the table holds no item for it. `shards` spreads its table key over several partitions (a
    count, a range or names). `lists` names the root list of the table's own key (False for none). `gather=True` says
    that its partition is small, so that one Query reads the node and its lists there. `mirror` and `counterpart` are
    only for edges. `item_bytes` is the item size for the cost bound of an operation. `writes` says which mutations
    exist: all (True), none (False), or a list such as `["create", "update"]`. `check` are rules that every write must
    keep. `access` says who may see and change its records. `deprecated` tells clients what to use instead. In a
    supergraph, other servers may have the fields of a `shareable` type too.
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
    """An edge between two nodes, the two ends in its table key. It takes the options of `node` and two more.

    `mirror=True`, for ends of one type, stores each edge as two items, the second with the ends exchanged.
    `counterpart="Other"` names another edge type between the same two nodes, which gets an item for each edge too; it
    is enough if one of the two names the other.
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
    """An item that belongs to a node but is not a node itself. It takes the options of `node`."""
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
    """A base class that gives its fields to every type that inherits it, and its `access` to those that have none of
    their own."""
    told = Declaration("fields", access=access)
    if cls is not None:
        return _declare(cls, told, sys._getframe(1))
    return lambda decorated: _declare(decorated, told, sys._getframe(1))


def _decorator(told: Declaration) -> Callable[[_Class], _Class]:
    bare: Any = told.keys[0] if len(told.keys) == 1 else None
    if inspect.isclass(bare):
        # `@node` without parentheses: the missing templates are reported with all other mistakes.
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
        specifier = specifier_of(given)
        if specifier is not None:
            own[name], notes[name] = specifier.meaning, specifier.notes
            # A specifier may be assigned to several fields.
            setattr(cls, name, specifier.as_field())
        elif given is not MISSING and not isinstance(given, dataclasses.Field) and is_mutable(given):
            setattr(cls, name, dataclasses.field(default_factory=SharedDefault(given)))
    declaration = replace(
        told,
        docstring=cls.__dict__.get("__doc__"),
        own=own,
        own_notes=notes,
        # A class in a function may use that function's names in its annotations.
        namespace={} if frame.f_locals is frame.f_globals else dict(frame.f_locals),
    )
    made: type = dataclasses.dataclass(kw_only=True)(cls)
    declare(made, declaration)
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


def rule(where: Mapping[str, Any], message: str) -> Rule:
    """Conditions on a record after every write: `check=[rule({"total": {"gte": 0}}, "A total is not negative.")]`.

    `where` is written like the filter of a list, with the model's field names and values. A write that would break the
    rule is refused with the message. A write checks only the rules of the fields that it changes.
    """
    return Rule(where, message)


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

    def mark(function: Function) -> Function:
        declare_method(
            function, None if needs is None else tuple(needs), access, Notes(deprecated, shareable)
        )
        return function

    return mark


def ref(node: type[T], **key: Any) -> T:
    """Refers to a node by its key fields, as the result of a method or a root field: `ref(User, user_id="7")`.

    An end in the key is a node too: `ref(Post, author=ref(User, user_id="7"), post_id="1")`. The server reads the other
    fields on request. Raises TypeError if the class is not a node or has no field of that name.
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
