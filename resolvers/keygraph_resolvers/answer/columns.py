"""Columns: the fields of objects, each written for all objects of one selection at once.

Below an object or a list, the objects of all of them are one column again. So the work for each value is a turn of a
loop, and an answer is written in as many steps as its document has fields.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import cache, partial
from operator import attrgetter
from typing import Any, NamedTuple, TypeAlias, cast

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
from keygraph_resolvers.answer.completion import (
    FAILED,
    Complete,
    Completion,
    PathOf,
    Position,
    Read,
    Step,
    among,
    below_field,
    composites,
    leaves,
    lists,
    root_path,
)
from keygraph_resolvers.plan.selection import SelectedField, Selection
from keygraph_resolvers.read.objects import ListObject, Object
from keygraph_resolvers.schema.field_kinds import (
    Attribute,
    Cursor,
    Edges,
    FarNode,
    GlobalId,
    Nodes,
    PageInfo,
    Stored,
    TotalCount,
)

Take: TypeAlias = Callable[[Sequence[Any], Sequence[Any]], Sequence[Any]]
"""Gives the sources of a field's values, of objects and of their items."""


class Column(NamedTuple):
    """How one field of objects is written."""

    step: Step
    take: Take
    complete: Complete


class Columns(NamedTuple):
    """How objects of one selection are written."""

    keys: tuple[str, ...]
    columns: tuple[Column, ...]
    has_items: bool
    """Whether any of the fields is read from the objects' items."""


def write_data(run: Completion, selection: Selection, root: Object) -> dict[str, Any] | None:
    """The data of the answer; None where a null went up to the root. The rest of the answer is left in `run`."""
    [data] = rows(selection, run, [root], root_path)
    return None if data is FAILED else data


def rows(selection: Selection, run: Completion, objects: Sequence[Any], path_of: PathOf) -> list[Any]:
    """What was selected of objects; FAILED for those of which a field is null that may not be."""
    if not objects:
        return []
    found = run.columns.get(selection)
    if found is None:
        found = run.columns[selection] = _columns(selection)
    keys, columns, has_items = found
    if not keys:
        return [{} for _ in objects]
    items = [each.item for each in objects] if has_items else ()
    made = [
        complete(run, take(objects, items), below_field(path_of, step)) for step, take, complete in columns
    ]
    written = [dict(zip(keys, row, strict=True)) for row in zip(*made, strict=True)]
    if run.reports:
        return [FAILED if any(each is FAILED for each in row.values()) else row for row in written]
    return written


def _rows_by_type(
    below: Mapping[str, Selection], run: Completion, objects: Sequence[Object], path_of: PathOf
) -> Sequence[Any]:
    """What was selected of objects of several types, in their order."""
    by_type: dict[str, list[int]] = {}
    for number, each in enumerate(objects):
        by_type.setdefault(each.record.name, []).append(number)
    written: list[Any] = [None] * len(objects)
    for name, numbers in by_type.items():
        own = rows(below[name], run, [objects[number] for number in numbers], among(path_of, numbers))
        for number, row in zip(numbers, own, strict=True):
            written[number] = row
    return written


def _columns(selection: Selection) -> Columns:
    """How the fields are written, in the order of the answer."""
    made = [_column(selection, field) for field in selection.fields]
    return Columns(
        tuple(field.key for field in selection.fields),
        tuple(
            Column(Step(field.key, order, field.is_nullable), *each)
            for order, (field, each) in enumerate(zip(selection.fields, made, strict=True))
        ),
        any(take is _items for take, _ in made),
    )


def _column(selection: Selection, field: SelectedField) -> tuple[Take, Complete]:
    key = field.key
    if field.definition is None:
        name = selection.of.name
        return _objects, lambda run, objects, path_of: [name] * len(objects)
    match field.kind:
        case None:
            return _objects, lambda run, objects, path_of: [run.foreign[key]] * len(objects)
        case Stored() if is_leaf_type(field.nullable_type):
            return _stored_column(selection, field, field.kind)
    read = _reader(field)
    complete = _completer(field, field.type, read)
    is_itself = isinstance(field.kind, FarNode) and field.kind.path.far_end is None
    if read is not None or is_itself:
        return _objects, complete
    unread = LookupError(f"{field.name} was not read")
    return lambda objects, items: [each.found.get(field, unread) for each in objects], complete


def _objects(objects: Sequence[Any], items: Sequence[Any]) -> Sequence[Any]:
    return objects


def _items(objects: Sequence[Any], items: Sequence[Any]) -> Sequence[Any]:
    return items


# --- Stored scalars and enums -------------------------------------------------------------------------

_WRITTEN_AS_READ: Mapping[Kind, object] = {
    "id": GraphQLID,
    "string": GraphQLString,
    "int": GraphQLInt,
    "boolean": GraphQLBoolean,
}
"""The kinds of fields whose values, once read, are what the scalar writes."""


def _stored_column(selection: Selection, field: SelectedField, kind: Stored) -> tuple[Take, Complete]:
    record, stored, type_ = selection.record, kind.field, field.nullable_type
    if record is None:
        raise LookupError(f"{selection.of.name} has no items")
    serialize = None if _WRITTEN_AS_READ.get(stored.type.kind) is type_ else type_.serialize
    if is_enum_type(type_):
        serialize = cache(type_.serialize)
    position = Position(field, field.is_nullable)
    if stored.name in record.key_fields:
        number, value_of_text = record.places_in_identity[stored.name]
        of_texts = leaves(position, value_of_text, serialize)
        return lambda objects, items: [each.identity[number] for each in objects], of_texts
    of_items = leaves(position, record.reader(stored), serialize)
    attribute = record.plain_attribute(stored)
    if attribute is None or serialize is not None:
        return _items, of_items
    name, expected = attribute
    only = {expected}

    def complete(run: Completion, items: Sequence[Any], path_of: PathOf) -> Sequence[Any]:
        # Mostly every item has the attribute, and the scalar writes it as it is. `of_items` does all others.
        try:
            values = [item.get(name) for item in items]
        except AttributeError:  # an item was not read
            values = []
        return values if set(map(type, values)) == only else of_items(run, items, path_of)

    return _items, complete


# --- Everything else, by its type ---------------------------------------------------------------------


def _completer(field: SelectedField, type_: GraphQLOutputType, read: Read | None) -> Complete:
    """What completes values of the type, which are read from their sources; without `read`, as they were found."""
    is_nullable = not is_non_null_type(type_)
    position = Position(field, is_nullable, warns=isinstance(field.kind, TotalCount))
    own: Any = type_ if is_nullable else cast(Any, type_).of_type
    if is_list_type(own):
        elements = _completer(field, own.of_type, None)
        return lists(position, read or _found, elements, has_nullable=not is_non_null_type(own.of_type))
    if is_leaf_type(own):
        return leaves(position, read or _found, own.serialize)
    below = field.below
    write = partial(rows, field.only) if len(below) == 1 else partial(_rows_by_type, below)
    return composites(position, read or _found, write, None if read else _are_found)


def _reader(field: SelectedField) -> Read | None:
    """What reads a field of an object; None where it is among what was found for the object."""
    match field.kind:
        case Stored(stored):
            return lambda each: each.shown(stored)
        case GlobalId():
            return lambda each: each.id
        case Cursor():
            return lambda each: each.cursor
        case Attribute(name):
            return attrgetter(name)
        case TotalCount():
            return lambda connection: _found(connection.total)
        case PageInfo():
            return lambda connection: _with_page(connection).info
        case Edges():
            return lambda connection: _with_page(connection).found[field]
        case Nodes():
            # Those that do not exist are left out.
            return lambda connection: [
                node for node in _with_page(connection).found[field] if not node.is_missing
            ]
    return None


def _with_page(connection: ListObject) -> ListObject:
    """The connection. Raises what reading gave instead of its page."""
    _found(connection.page)
    return connection


def _found(value: Any) -> Any:
    """What was found; None for a node that does not exist. Raises what reading gave instead."""
    if isinstance(value, Object):
        if value.error is not None:
            raise value.error
        return None if value.is_missing else value
    if isinstance(value, Exception):
        raise value
    return value


def _are_found(values: Sequence[Any]) -> bool:
    """Whether all are objects that exist; False for what is no such object, too."""
    try:
        for each in values:
            if each.error is not None or each.is_missing:
                return False
    except AttributeError:
        return False
    return True
