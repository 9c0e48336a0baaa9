"""How each field of a plan is written into the answer: functions that are chosen once, when the plan is first written.

A writer takes the run (`keygraph_resolvers.answer.completion`), the object that the field is selected of and its path, and gives the
completed value. It raises what reading gave instead; NullError where that has been reported.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias, cast

from graphql import (
    GraphQLBoolean,
    GraphQLID,
    GraphQLInt,
    GraphQLOutputType,
    GraphQLString,
    is_enum_type,
    is_leaf_type,
    is_list_type,
    is_non_null_type,
)

from keygraph.keys.types import Kind
from keygraph.model.fields import Field
from keygraph_resolvers.plan.field_plans import Below, FieldPlan
from keygraph_resolvers.plan.plan import ObjectPlan
from keygraph_resolvers.read.visits import ListVisit, Visit
from keygraph_resolvers.schema.meanings import (
    Attribute,
    Cursor,
    Edges,
    FarNode,
    GlobalId,
    ListOf,
    NodeAt,
    NodeById,
    NodeByKey,
    Nodes,
    OnlyOf,
    PageInfo,
    Stored,
    TotalCount,
)

if TYPE_CHECKING:
    from keygraph_resolvers.answer.completion import Completion

Path: TypeAlias = "tuple[Path | None, str | int]"
"""Where a value stands: where its parent stands, and its key or number there."""
Write: TypeAlias = "Callable[[Completion, Any, Path | None], Any]"
Complete: TypeAlias = "Callable[[Completion, Any, Path], Any]"
"""What completes a value that stands at a path."""


class NullError(Exception):
    """A null where none may be. Its error has been reported."""


class FieldWriter(NamedTuple):
    """How one field is written."""

    key: str
    write: Write
    field: FieldPlan


def writers(plan: ObjectPlan) -> tuple[FieldWriter, ...]:
    """How the fields of an object are written, in the order of the answer."""
    return tuple(FieldWriter(field.key, writer(plan, field), field) for field in plan.fields)


def path_list(path: Path | None) -> list[str | int]:
    """The path from the root."""
    keys: list[str | int] = []
    while path is not None:
        parent, key = path
        keys.append(key)
        path = parent
    return keys[::-1]


def writer(plan: ObjectPlan, field: FieldPlan) -> Write:
    """What writes a field of one object."""
    if field.definition is None:
        name = plan.of.name
        return lambda run, source, path: name
    key = field.key
    if field.meaning is None:
        return lambda run, source, path: run.foreign(key)
    if is_leaf(field):
        return _leaf_writer(plan, field, cast(Stored, field.meaning).field)
    value_of, complete = _value_of(field), _completer(field, field.type)
    if isinstance(field.meaning, LEADS_ON):
        return _object_writer(field, complete)
    return lambda run, source, path: complete(run, value_of(source), (path, key))


LEADS_ON = (NodeAt, FarNode, ListOf, OnlyOf, NodeByKey, NodeById)
"""What gives one object."""


def _object_writer(field: FieldPlan, complete: Complete) -> Write:
    """What writes an object that a field gives: mostly one that was found."""
    key = field.key
    plan = field.below.only if field.below and len(field.below.types) == 1 else None

    def write(run: Completion, visit: Visit, path: Path | None) -> Any:
        value = visit.found[field]
        if type(value) is Visit and value.error is None and not value.is_missing:
            return run.object(value.plan, value, (path, key))
        if type(value) is ListVisit and plan is not None:
            return run.object(plan, value, (path, key))
        return complete(run, _or_raise(value), (path, key))

    return write


# --- Leaves -------------------------------------------------------------------------------------------

_WRITTEN_AS_READ: Mapping[Kind, object] = {
    "id": GraphQLID,
    "string": GraphQLString,
    "int": GraphQLInt,
    "boolean": GraphQLBoolean,
}
"""The kinds of fields whose values, once read, are what the scalar writes."""


def is_leaf(field: FieldPlan) -> bool:
    """Whether the field is one value that is stored."""
    return isinstance(field.meaning, Stored) and is_leaf_type(field.nullable_type)


def is_written_as_read(field: Field, type_: Any) -> bool:
    """Whether the field's values, once read, are what its type writes."""
    return _WRITTEN_AS_READ.get(field.type.kind) is type_


def _leaf_writer(plan: ObjectPlan, field: FieldPlan, stored: Field) -> Write:
    """What writes a stored field that is one value: with as few steps as there can be, for there are most of these."""
    record, name, type_ = plan.record, stored.name, field.nullable_type
    if record is None:
        raise LookupError(f"{plan.of.name} has no items")
    missing = None if field.is_nullable else _null_message(field)
    serialize = None if is_written_as_read(stored, type_) else serializer(type_)
    if name in record.key_fields:
        number, value_of = record.place_in_identity(name)

        def write_of_key(run: Completion, visit: Visit, path: Path | None) -> Any:
            value = value_of(visit.source.identity[number])
            if value is None and missing is not None:
                raise TypeError(missing)
            return value if serialize is None or value is None else serialize(value)

        return write_of_key
    read = record.reader(stored)

    def write(run: Completion, visit: Visit, path: Path | None) -> Any:
        item = visit.source.item
        if item is None:
            raise LookupError(f"{record.name}.{name} is resolved before the item was read")
        value = read(item)
        if value is None:
            if missing is not None:
                raise TypeError(missing)
            return None
        return value if serialize is None else serialize(value)

    attribute = record.plain_attribute(stored)
    return write if attribute is None or serialize is not None else _plain_writer(*attribute, write)


def _plain_writer(name: str, expected: type, otherwise: Write) -> Write:
    """What writes an attribute that the scalar takes as it is."""

    def write_plain(run: Completion, visit: Visit, path: Path | None) -> Any:
        item = visit.source.item
        if item is not None:
            value = item.get(name)
            if type(value) is expected:
                return value
        return otherwise(run, visit, path)

    return write_plain


def serializer(type_: Any) -> Callable[[Any], Any]:
    """What writes a value of the type; a member of an enum is written once."""
    serialize: Callable[[Any], Any] = type_.serialize
    if not is_enum_type(type_):
        return serialize
    written: dict[str, Any] = {}

    def write_member(value: Any) -> Any:
        name = value._name_
        found = written.get(name)
        if found is None:
            found = written[name] = serialize(value)
        return found

    return write_member


def _null_message(field: FieldPlan) -> str:
    return f"Cannot return null for non-nullable field {field.owner.name}.{field.name}."


# --- Values -------------------------------------------------------------------------------------------


def _completer(field: FieldPlan, type_: GraphQLOutputType) -> Complete:
    """What completes the values of a type; it raises for null where none may be."""
    if is_non_null_type(type_):
        inner = _completer(field, type_.of_type)
        message = _null_message(field)

        def complete_some(run: Completion, value: Any, path: Path) -> Any:
            completed = inner(run, value, path)
            if completed is None:
                raise TypeError(message)
            return completed

        return complete_some
    if is_list_type(type_):
        return _list_completer(field, type_.of_type)
    if isinstance(field.meaning, TotalCount):
        return _total
    if is_leaf_type(type_):
        serialize = type_.serialize
        return lambda run, value, path: None if value is None else serialize(value)
    return _object_completer(field)


def _total(run: Completion, value: int | None, path: Path) -> int | None:
    """A list's count; null where it was given up."""
    if value is None:
        run.count_given_up(path)
    return value


def _list_completer(field: FieldPlan, element: GraphQLOutputType) -> Complete:
    complete = _completer(field, element)
    is_nullable = not is_non_null_type(element)
    owner, name = field.owner.name, field.name

    def complete_list(run: Completion, values: Any, path: Path) -> list[Any] | None:
        if values is None:
            return None
        if type(values) is not list and isinstance(values, str | bytes | Mapping):
            raise TypeError(f"{owner}.{name} is a list, and {type(values).__name__} is none.")
        answer: list[Any] = []
        for number, value in enumerate(values):
            here = (path, number)
            try:
                if type(value) is Visit and value.error is None and not value.is_missing:
                    answer.append(run.object(value.plan, value, here))
                else:
                    answer.append(complete(run, value, here))
            except NullError:
                if not is_nullable:
                    raise
                answer.append(None)
            except Exception as error:
                run.report(error, field, here)
                if not is_nullable:
                    raise NullError from None
                answer.append(None)
        return answer

    return complete_list


def _object_completer(field: FieldPlan) -> Complete:
    below = cast(Below, field.below)
    plan = below.only if len(below.types) == 1 else None

    def complete_object(run: Completion, value: Any, path: Path) -> dict[str, Any] | None:
        if type(value) is Visit:
            if value.error is not None:
                raise value.error
            return None if value.is_missing else run.object(value.plan, value, path)
        return None if value is None else run.object(cast(ObjectPlan, plan), value, path)

    return complete_object


# --- What a field's value is --------------------------------------------------------------------------


def _value_of(field: FieldPlan) -> Callable[[Any], Any]:
    """What gives the value of a field, of the object that it is selected of. It raises what reading gave."""
    match field.meaning:
        case Stored(stored):
            return lambda visit: visit.source.shown(stored)
        case GlobalId():
            return lambda visit: visit.source.id
        case Cursor():
            return lambda visit: visit.source.cursor
        case Attribute(name):
            return lambda value: getattr(value, name)
        case Edges():
            return lambda visit: _edges(visit, field)
        case Nodes():
            return lambda visit: _nodes(visit, field)
        case PageInfo():
            return _info
        case TotalCount():
            return lambda visit: _or_raise(visit.total)
    return lambda visit: _or_raise(visit.found[field])


def _or_raise(value: Any) -> Any:
    if isinstance(value, Exception):
        raise value
    return value


def _edges(visit: ListVisit, field: FieldPlan) -> Sequence[Any]:
    _or_raise(visit.page)
    return visit.found[field]


def _nodes(visit: ListVisit, field: FieldPlan) -> Sequence[Visit]:
    """The nodes of the page; those that do not exist are left out where they were looked for."""
    _or_raise(visit.page)
    return [node for node in visit.found[field] if not node.is_missing]


def _info(visit: ListVisit) -> Any:
    _or_raise(visit.page)
    return visit.info
