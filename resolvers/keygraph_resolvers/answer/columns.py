"""Columns: the fields of objects, each written for all objects of one selection at once.

Below an object or a list, the objects of all of them are one column again. So the work for each value is a turn of a
loop, and an answer is written in as many steps as its document has fields.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
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
from keygraph.model.readers import plain_attribute
from keygraph_resolvers.answer.completion import (
    FAILED,
    Complete,
    Completion,
    Path,
    PathOf,
    Position,
    Read,
    Step,
    among,
    below_field,
    composites,
    leaves,
    lists,
)
from keygraph_resolvers.plan.field_plans import Below, FieldPlan
from keygraph_resolvers.plan.plan import ObjectPlan
from keygraph_resolvers.read.visits import ListVisit, Visit
from keygraph_resolvers.schema.meanings import (
    Attribute,
    Cursor,
    Edges,
    GlobalId,
    Nodes,
    PageInfo,
    Stored,
    TotalCount,
)

Column: TypeAlias = Callable[[Completion, Sequence[Any], Sequence[Any], PathOf], Sequence[Any]]
"""Writes one field of objects. It takes the objects, their items where any field is in them, and the objects' paths."""


class Columns(NamedTuple):
    """How objects of one selection are written."""

    keys: tuple[str, ...]
    columns: tuple[Column, ...]
    has_items: bool


def write_data(run: Completion, plan: ObjectPlan, root: Visit) -> dict[str, Any] | None:
    """The data of the answer; None where a null went up to the root. What is to be told besides is left in the run."""
    [data] = rows(plan, run, [root], root_path)
    return None if data is FAILED else data


def root_path(number: int) -> Path:
    """The path of the root, with which all others begin."""
    return ()


def rows(plan: ObjectPlan, run: Completion, objects: Sequence[Any], path_of: PathOf) -> list[Any]:
    """What was selected of objects; FAILED for those of which a field is null that may not be."""
    if not objects:
        return []
    found = run.columns.get(plan)
    if found is None:
        found = run.columns[plan] = _columns(plan)
    keys, columns, has_items = found
    if not keys:
        return [{} for _ in objects]
    items = [each.source.item for each in objects] if has_items else ()
    made = [column(run, objects, items, path_of) for column in columns]
    written = [dict(zip(keys, row, strict=True)) for row in zip(*made, strict=True)]
    if run.reports:
        return [FAILED if any(each is FAILED for each in row.values()) else row for row in written]
    return written


def _columns(plan: ObjectPlan) -> Columns:
    """How the fields are written, in the order of the answer."""
    return Columns(
        tuple(field.key for field in plan.fields),
        tuple(_column(plan, field, number) for number, field in enumerate(plan.fields)),
        any(_is_stored_leaf(field) for field in plan.fields),
    )


def _column(plan: ObjectPlan, field: FieldPlan, number: int) -> Column:
    if field.definition is None:
        name = plan.of.name
        return lambda run, objects, items, path_of: [name] * len(objects)
    key = field.key
    if field.meaning is None:
        return lambda run, objects, items, path_of: [run.foreign[key]] * len(objects)
    step = Step(key, number, field.is_nullable)
    if _is_stored_leaf(field):
        return _stored_column(plan, field, step)
    if isinstance(field.meaning, TotalCount):
        return _total_column(field, step)
    read = _reader(field)
    complete = _completer(field, field.type, read)
    if read is not None:
        return lambda run, objects, items, path_of: complete(run, objects, below_field(path_of, step))
    unread = LookupError(f"{field.name} was not read")
    return lambda run, objects, items, path_of: complete(
        run, [each.found.get(field, unread) for each in objects], below_field(path_of, step)
    )


def _is_stored_leaf(field: FieldPlan) -> bool:
    """Whether the field is one value that is stored."""
    return isinstance(field.meaning, Stored) and is_leaf_type(field.nullable_type)


# --- Stored scalars and enums -------------------------------------------------------------------------

_WRITTEN_AS_READ: Mapping[Kind, object] = {
    "id": GraphQLID,
    "string": GraphQLString,
    "int": GraphQLInt,
    "boolean": GraphQLBoolean,
}
"""The kinds of fields whose values, once read, are what the scalar writes."""


def _stored_column(plan: ObjectPlan, field: FieldPlan, step: Step) -> Column:
    record, stored, type_ = plan.record, cast(Stored, field.meaning).field, field.nullable_type
    if record is None:
        raise LookupError(f"{plan.of.name} has no items")
    serialize = None if _WRITTEN_AS_READ.get(stored.type.kind) is type_ else _serializer(type_)
    position = Position(field, field.is_nullable)
    if stored.name in record.key_fields:
        number, value_of_text = record.place_in_identity(stored.name)
        of_texts = leaves(position, value_of_text, serialize)
        return lambda run, objects, items, path_of: of_texts(
            run, [each.source.identity[number] for each in objects], below_field(path_of, step)
        )
    of_items = leaves(position, record.reader(stored), serialize)
    attribute = plain_attribute(record, stored)
    if attribute is None or serialize is not None:
        return lambda run, objects, items, path_of: of_items(run, items, below_field(path_of, step))
    name, expected = attribute
    only = {expected}

    def write_plain(
        run: Completion, objects: Sequence[Any], items: Sequence[Any], path_of: PathOf
    ) -> Sequence[Any]:
        # Most attributes are all there, and what the scalar writes.
        values = [item.get(name) for item in items]
        return values if set(map(type, values)) == only else of_items(run, items, below_field(path_of, step))

    return write_plain


def _serializer(type_: Any) -> Read:
    """What writes a value of the type; a member of an enum is looked up by Strawberry once."""
    serialize: Read = type_.serialize
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


# --- Counts -------------------------------------------------------------------------------------------


def _total_column(field: FieldPlan, step: Step) -> Column:
    complete = leaves(Position(field, field.is_nullable), _found, None)

    def write(
        run: Completion, objects: Sequence[ListVisit], items: Sequence[Any], path_of: PathOf
    ) -> Sequence[Any]:
        totals = [each.total for each in objects]
        path_of_total = below_field(path_of, step)
        for number, total in enumerate(totals):
            if total is None:
                run.report(path_of_total(number), field, None)
        return complete(run, totals, path_of_total)

    return write


# --- Everything else, by its type ---------------------------------------------------------------------


def _reader(field: FieldPlan) -> Read | None:
    """What reads a field of an object; None where it is among what was found for the object."""
    match field.meaning:
        case Stored(stored):
            return lambda visit: visit.source.shown(stored)
        case GlobalId():
            return lambda visit: visit.source.id
        case Cursor():
            return lambda visit: visit.source.cursor
        case Attribute(name):
            return attrgetter(name)
        case Edges():
            return lambda connection: _of_page(connection, field)
        case Nodes():
            # Those that do not exist are left out.
            return lambda connection: [node for node in _of_page(connection, field) if not node.is_missing]
        case PageInfo():
            return _page_info
    return None


def _completer(field: FieldPlan, type_: GraphQLOutputType, read: Read | None) -> Complete:
    """What completes values of the type, which are read from their sources; without `read`, as they were found."""
    is_nullable = not is_non_null_type(type_)
    position = Position(field, is_nullable)
    own: Any = type_ if is_nullable else cast(Any, type_).of_type
    if is_list_type(own):
        elements = _completer(field, own.of_type, None)
        return lists(position, read or _found, elements, has_nullable=not is_non_null_type(own.of_type))
    if is_leaf_type(own):
        return leaves(position, read or _found, own.serialize)
    below = cast(Below, field.below)
    write = partial(rows, below.only) if len(below.types) == 1 else partial(_rows_by_type, below)
    return composites(position, read or _found, write, None if read else _are_found)


def _rows_by_type(below: Below, run: Completion, visits: Sequence[Visit], path_of: PathOf) -> Sequence[Any]:
    """What was selected of objects of several types, in their order."""
    by_type: dict[str, list[int]] = {}
    for number, visit in enumerate(visits):
        by_type.setdefault(visit.source.record.name, []).append(number)
    if len(by_type) == 1:
        return rows(below.of(*by_type), run, visits, path_of)
    written: list[Any] = [None] * len(visits)
    for name, numbers in by_type.items():
        own = rows(below.of(name), run, [visits[number] for number in numbers], among(path_of, numbers))
        for number, row in zip(numbers, own, strict=True):
            written[number] = row
    return written


# --- What was read ------------------------------------------------------------------------------------


def _found(value: Any) -> Any:
    """What was found; None for a node that does not exist. Raises what reading gave instead."""
    if isinstance(value, Visit):
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


def _of_page(connection: ListVisit, field: FieldPlan) -> list[Visit]:
    _found(connection.page)
    return connection.found[field]


def _page_info(connection: ListVisit) -> Any:
    _found(connection.page)
    return connection.info
