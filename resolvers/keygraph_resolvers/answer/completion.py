"""Writes the answer, field by field, each for all objects of one selection at once.

The objects below all objects or lists of a column form one column again, so each value costs one turn of a loop. A
value that cannot be written is reported. Its position in the answer becomes null, or `FAILED` if it is not nullable;
then whatever contains it fails too, up to the nearest nullable position (GraphQL specification 6.4.3 and 6.4.4).

Written bytes are counted, a column at a time, and writing ends when the answer is too large. Texts and values of `JSON`
are counted as they are in the answer, and other values with the least number of bytes that they can have: the sender
knows the exact number.

Paths are made only for reports. Functions that write values get a `PathOf`, which makes the path of the value with a
given number.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache, partial
from itertools import accumulate, chain
from operator import attrgetter, itemgetter
from typing import Any, Final, TypeAlias, cast

import orjson
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

from keygraph.errors import BadUserInput
from keygraph.kept import kept
from keygraph.keys.types import FieldType, Kind, decoder
from keygraph.model.fields import Field
from keygraph.model.permissions import Permissions
from keygraph.model.records import RecordType
from keygraph_resolvers.answer.reports import FieldReport, Path, PathStep
from keygraph_resolvers.errors import as_value
from keygraph_resolvers.read.access import forbidden
from keygraph_resolvers.read.objects import ListObject, Object
from keygraph_resolvers.schema import field_kinds as kinds
from keygraph_resolvers.schema.json_numbers import exact_number
from keygraph_resolvers.steps.selection import SelectedField, Selection

FAILED: Final = object()
"""The place of a null in a non-nullable position; its error has been reported."""

PathOf: TypeAlias = Callable[[int], Path]
"""Makes the path of the value with this number."""


def root_path(number: int) -> Path:
    """The path of the root, the beginning of all others."""
    return ()


def path_below(path_of: PathOf, step: PathStep, number: int) -> Path:
    """The path of the field of a value."""
    return (*path_of(number), step)


def in_lists(path_of: PathOf, ends: Sequence[int], *, is_nullable: bool) -> PathOf:
    """The paths of the elements of lists, numbered across all lists. `ends` has the number after each list's last."""

    def path_of_element(number: int) -> Path:
        place = bisect_right(ends, number)
        index = number - (ends[place - 1] if place else 0)
        return (*path_of(place), PathStep(index, index, is_nullable))

    return path_of_element


def among(path_of: PathOf, numbers: Sequence[int]) -> PathOf:
    """The paths of some of the values."""
    return lambda number: path_of(numbers[number])


# --- Sizes --------------------------------------------------------------------------------------------


class AnswerTooLarge(Exception):
    """The answer has more bytes than an answer may have."""


Measure: TypeAlias = Callable[[Sequence[Any]], int]
"""Returns the least number of bytes that written values can have."""

_SHORTEST = {"Int": 1, "Long": 1, "Float": 3, "Decimal": 3, "Boolean": 4, "Date": 4, "DateTime": 4}
"""The least number of bytes of scalars whose values are never much longer, and may be null."""
_REPORT_BYTES = 250
"""The bytes of an error or a warning, without the names in its path, as they usually are."""


def _measure_of(type_: GraphQLOutputType) -> Measure:
    """Returns a function that measures values of a scalar or an enum."""
    each = 3 if is_enum_type(type_) else _SHORTEST.get(cast(Any, type_).name)
    if each is not None:
        return lambda values: each * len(values)
    return _size_of_texts if cast(Any, type_).name in {"ID", "String", "Base64"} else _size_of_any


def _size_of_texts(values: Sequence[Any]) -> int:
    try:
        # An object or a list counts the commas. A control character has six bytes.
        return len(orjson.dumps(values)) - len(values) - 1
    except TypeError:  # whoever sends the answer says what is wrong
        return len(values)


def _size_of_any(values: Sequence[Any]) -> int:
    """Measures values of a scalar that may be objects and lists."""
    try:
        return len(orjson.dumps(values, default=exact_number)) - len(values) - 1
    except TypeError:
        return _size_of_all(values)


def _size_of_all(values: Iterable[Any]) -> int:
    return sum(map(_size_of, values))


def _size_of(value: Any) -> int:
    if isinstance(value, str):
        return len(value) + 2
    if isinstance(value, Mapping):
        return _size_of_all(value) + _size_of_all(value.values()) + 2 * len(value)
    return _size_of_all(value) + len(value) if isinstance(value, list) else 1


# --- Reports ------------------------------------------------------------------------------------------


@dataclass(slots=True, eq=False)
class Completion:
    """The shared state of writing one answer: values from elsewhere, how to write objects, and the reports."""

    columns: dict[Selection, Any]
    """How the plan writes its objects."""
    left: int
    """How many bytes are left; below zero, writing ends."""
    foreign: Mapping[str, Any] = field(default_factory=dict)
    """The values of root fields that the graph does not answer."""
    access: Permissions | None = None
    """Says which fields may be read."""
    after: Mapping[SelectedField, Permissions | None] = field(default_factory=dict)
    """The same for each mutation's payload."""
    more_for_any: int = 0
    """How often a byte of an object or list of a scalar, such as `JSON`, counts once more: it may be one of thousands of
    values, which takes longer than a text."""
    reports: list[FieldReport] = field(default_factory=list, init=False)

    def report(self, path: Path, field: SelectedField, error: Exception | None) -> None:
        """Records an error, or a warning if `error` is None, for a position. Raises AnswerTooLarge."""
        self.left -= _REPORT_BYTES + _size_of_all(step.key for step in path)
        if self.left < 0:
            raise AnswerTooLarge
        self.reports.append(FieldReport(path, field, None if error is None else as_value(error)))


# --- Values -------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Position:
    """The position of values: a field, or the lists of a field."""

    field: SelectedField
    is_nullable: bool
    warns: bool = False
    """Whether a warning says why a value is null."""

    @property
    def failed(self) -> object:
        """The value of the position after a failure."""
        return None if self.is_nullable else FAILED

    def fail(self, run: Completion, path: Path, error: Exception) -> object:
        """Reports an error, and returns the value to write instead."""
        run.report(path, self.field, error)
        return self.failed

    def null(self, run: Completion, path_of: PathOf, number: int) -> object:
        """Returns the value to write for a null."""
        if not self.is_nullable:
            kind, name = self.field.kind, f"{self.field.owner.name}.{self.field.name}"
            if isinstance(kind, kinds.Stored) and kind.field.is_external:
                problem = BadUserInput(f"{name}: another server has this field")
                return self.fail(run, path_of(number), problem)
            message = f"Cannot return null for non-nullable field {name}."
            return self.fail(run, path_of(number), TypeError(message))
        if self.warns:
            run.report(path_of(number), self.field, None)
        return None


ReadValue: TypeAlias = Callable[[Any], Any]
"""Returns the value of a source, such as an object or an item; None for null. Raises the error to report."""
Complete: TypeAlias = Callable[[Completion, Sequence[Any], PathOf], Sequence[Any]]
"""Returns the written value of each of these sources. It takes the paths of the values."""


def leaves(position: Position, read: ReadValue, serialize: ReadValue | None, measure: Measure) -> Complete:
    """Returns a function that completes scalars and enums; without `serialize`, values are written as they are read."""

    def complete(run: Completion, sources: Sequence[Any], path_of: PathOf) -> list[Any]:
        written: list[Any] = []
        add = written.append
        for source in sources:
            try:
                value = read(source)
                if value is None:
                    value = position.null(run, path_of, len(written))
                elif serialize is not None:
                    value = serialize(value)
            except Exception as error:
                value = position.fail(run, path_of(len(written)), error)
            add(value)
        run.left -= measure(written)
        return written

    def complete_any(run: Completion, sources: Sequence[Any], path_of: PathOf) -> list[Any]:
        written: list[Any] = []
        for number, source in enumerate(sources):
            left = run.left
            written += complete(run, [source], among(path_of, [number]))
            run.left -= (left - run.left) * run.more_for_any
            if run.left < 0:
                raise AnswerTooLarge
        return written

    return complete_any if measure is _size_of_any else complete


def composites(position: Position, read: ReadValue, write: Complete) -> Complete:
    """Returns a function that completes objects and lists. `write` gets existing values; it may return FAILED for some."""

    def complete(run: Completion, sources: Sequence[Any], path_of: PathOf) -> Sequence[Any]:
        written = write_those_there(run, sources, path_of)
        if run.reports:
            written = [position.failed if each is FAILED else each for each in written]
        return written

    def write_those_there(run: Completion, sources: Sequence[Any], path_of: PathOf) -> Sequence[Any]:
        written: list[Any] = []
        values, numbers = [], []
        for number, source in enumerate(sources):
            try:
                value = read(source)
            except Exception as error:
                written.append(position.fail(run, path_of(number), error))
                continue
            if value is None:
                written.append(position.null(run, path_of, number))
            else:
                if type(value) is list:
                    run.left -= len(value)  # a comma each
                    if run.left < 0:
                        raise AnswerTooLarge
                written.append(None)
                values.append(value)
                numbers.append(number)
        if len(values) == len(sources):
            return write(run, values, path_of)
        for number, each in zip(numbers, write(run, values, among(path_of, numbers)), strict=True):
            written[number] = each
        return written

    return complete


def lists(position: Position, read: ReadValue, elements: Complete, *, has_nullable: bool) -> Complete:
    """Returns a function that completes lists. `has_nullable` says whether their elements may be null."""
    field = position.field

    def read_list(source: Any) -> list[Any] | None:
        value = read(source)
        if value is None or type(value) is list:
            return value
        if isinstance(value, str | bytes | Mapping):
            raise TypeError(f"{field.owner.name}.{field.name} is a list, and {type(value).__name__} is none.")
        return list(value)

    def write(run: Completion, values: Sequence[list[Any]], path_of: PathOf) -> Sequence[Any]:
        ends = [*accumulate(map(len, values))]
        flat = [*chain.from_iterable(values)]
        written = elements(run, flat, in_lists(path_of, ends, is_nullable=has_nullable)) if flat else []
        each_list = [written[start:end] for start, end in zip([0, *ends], ends, strict=False)]
        if run.reports:
            return [FAILED if any(each is FAILED for each in one) else one for one in each_list]
        return each_list

    return composites(position, read_list, write)


# --- Objects ------------------------------------------------------------------------------------------

Take: TypeAlias = Callable[[Sequence[Any], Sequence[Any]], Sequence[Any]]
"""Returns the sources of a field's values, given objects and their items."""


def write_data(run: Completion, selection: Selection, root: Object) -> dict[str, Any] | None:
    """Returns the answer's data; None if a null reached the root. Reports are left in `run`. Raises AnswerTooLarge."""
    [data] = rows(selection, run, [root], root_path)
    if run.left < 0:
        raise AnswerTooLarge
    return None if data is FAILED else data


def rows(selection: Selection, run: Completion, objects: Sequence[Any], path_of: PathOf) -> Sequence[Any]:
    """Writes the selected fields of objects; FAILED for an object with a null in a non-nullable field."""
    if not objects:
        return []
    write = run.columns.get(selection)
    if write is None:
        write = run.columns[selection] = _row_writer(selection)
    return write(run, objects, path_of)


def _row_writer(selection: Selection) -> Complete:
    """Returns a function that writes the fields in the order of the answer."""
    columns = [
        (PathStep(field.key, order, field.is_nullable), *_column(selection, field))
        for order, field in enumerate(selection.fields)
    ]
    has_items = any(take is _items for _, take, _ in columns)
    size = sum(len(field.key) + 4 for field in selection.fields) + 1
    """The bytes of an object without its values."""

    def write(run: Completion, objects: Sequence[Any], path_of: PathOf) -> list[Any]:
        run.left -= size * len(objects)
        items = [each.item for each in objects] if has_items else ()
        written: list[Any] = [{} for _ in objects]
        for step, take, complete in columns:
            if run.left < 0:
                raise AnswerTooLarge
            key = step.key
            values = complete(run, take(objects, items), partial(path_below, path_of, step))
            for row, value in zip(written, values, strict=True):
                row[key] = value
        if run.reports:
            return [FAILED if any(each is FAILED for each in row.values()) else row for row in written]
        return written

    return write


def _rows_by_type(
    below: Mapping[str, Selection], run: Completion, objects: Sequence[Object], path_of: PathOf
) -> Sequence[Any]:
    """Writes the selected fields of objects of several types, in their order."""
    by_type: dict[str, list[int]] = {}
    for number, each in enumerate(objects):
        by_type.setdefault(each.type_name, []).append(number)
    written: list[Any] = [None] * len(objects)
    for name, numbers in by_type.items():
        own = rows(below[name], run, [objects[number] for number in numbers], among(path_of, numbers))
        for number, row in zip(numbers, own, strict=True):
            written[number] = row
    return written


def _column(selection: Selection, field: SelectedField) -> tuple[Take, Complete]:
    if field.definition is None:
        return _objects, partial(_type_names, selection.of.name)
    if field.kind is None:
        return _objects, lambda run, objects, path_of: [run.foreign[field.key]] * len(objects)
    take, complete = _open_column(selection, field)
    if isinstance(field.kind, kinds.Stored) and field in selection.restricted:
        return _restricted_column(field, selection.restricted[field], take, complete)
    return take, _after(field, complete) if isinstance(field.kind, kinds.MUTATIONS) else complete


def _open_column(selection: Selection, field: SelectedField) -> tuple[Take, Complete]:
    """Returns functions that complete a field of the graph without access rules."""
    stored = field.kind.field if isinstance(field.kind, kinds.Stored) else None
    if stored is not None and is_leaf_type(field.nullable_type) and not stored.shards:
        return _stored_column(selection, field, stored)
    read = _reader(field)
    complete = _completer(field, field.type, read or _found)
    is_itself = isinstance(field.kind, kinds.FarNode) and field.kind.path.far_end is None
    if read is not None or is_itself:
        return _objects, complete
    unread = LookupError(f"{field.name} was not read")
    return lambda objects, items: [each.found.get(field, unread) for each in objects], complete


def _type_names(name: str, run: Completion, objects: Sequence[Any], path_of: PathOf) -> list[str]:
    run.left -= (len(name) + 2) * len(objects)
    return [name] * len(objects)


def _objects(objects: Sequence[Any], items: Sequence[Any]) -> Sequence[Any]:
    return objects


def _items(objects: Sequence[Any], items: Sequence[Any]) -> Sequence[Any]:
    return items


def _after(field: SelectedField, complete: Complete) -> Complete:
    """Returns a function that completes a mutation: later mutations do not change the fields that its payload shows."""

    def complete_after(run: Completion, objects: Sequence[Any], path_of: PathOf) -> Sequence[Any]:
        run.access = run.after.get(field, run.access)  # of several in one, that of the whole holds
        return complete(run, objects, path_of)

    return complete_after


def _restricted_column(
    field: SelectedField, name: str, take: Take, complete: Complete
) -> tuple[Take, Complete]:
    """Returns functions that complete a field that the viewer may not read on every object."""
    position = Position(field, field.is_nullable)

    def complete_readable(run: Completion, objects: Sequence[Any], path_of: PathOf) -> Sequence[Any]:
        access = run.access
        numbers = [n for n, each in enumerate(objects) if access is None or access.allows(each, "read", name)]
        shown = [objects[number] for number in numbers]
        values = complete(run, take(shown, [each.item for each in shown]), among(path_of, numbers))
        written = dict(zip(numbers, values, strict=True))
        return [
            written[number]
            if number in written
            else position.fail(run, path_of(number), forbidden(each.record, name))
            for number, each in enumerate(objects)
        ]

    return _objects, complete_readable


# --- Stored scalars and enums -------------------------------------------------------------------------

_WRITTEN_AS_READ: Mapping[Kind, object] = {
    "id": GraphQLID,
    "string": GraphQLString,
    "int": GraphQLInt,
    "boolean": GraphQLBoolean,
}
"""The kinds of fields whose values, once read, need no serialization."""
_SHORT = frozenset[Kind]({"int", "long", "float", "decimal", "datetime", "date", "enum", "boolean"})
"""The kinds of fields whose written values may be cached, because none takes much memory."""
_LONGEST_KEPT = 200
"""The longest attributes whose written value is cached."""


def _stored_column(selection: Selection, field: SelectedField, stored: Field) -> tuple[Take, Complete]:
    record, type_ = selection.record, field.nullable_type
    if record is None:
        raise LookupError(f"{selection.of.name} has no items")
    serialize = None if _WRITTEN_AS_READ.get(stored.type.kind) is type_ else type_.serialize
    if is_enum_type(type_):
        serialize = cache(type_.serialize)
    position, measure = Position(field, field.is_nullable), _measure_of(type_)
    if stored.name in record.key_fields:
        number, value_of_text = record.places_in_identity[stored.name]
        of_texts = leaves(position, value_of_text, serialize, measure)
        return lambda objects, items: [each.identity[number] for each in objects], of_texts
    of_items = leaves(position, record.reader(stored), serialize, measure)
    attribute = record.plain_attribute(stored)
    if attribute is None or serialize is not None:
        if stored.type.kind not in _SHORT or len(stored.attribute) > 1:
            return _items, of_items
        names = record.attributes_read(stored)
        write = None if serialize is None else type_.serialize
        is_plain = names == (record.first_attribute(stored),)
        written = _writer(stored.type, write) if is_plain else _field_writer(record, stored, write)
        return _items, _written_column(names, written, measure, of_items)
    name, expected = attribute
    value_of, only = itemgetter(name), {expected}

    def complete(run: Completion, items: Sequence[Any], path_of: PathOf) -> Sequence[Any]:
        # Usually every item has the attribute, in the form that the scalar writes. `of_items` handles all others.
        try:
            values = [*map(value_of, items)]
        except (KeyError, TypeError):  # an attribute is missing, or an item was not read
            values = []
        if set(map(type, values)) != only:
            return of_items(run, items, path_of)
        run.left -= measure(values)
        return values

    return _items, complete


@kept("written values", 64, 1_000)
def _writer(type_: FieldType, serialize: ReadValue | None) -> ReadValue:
    """Returns a function that writes a value of a type. All plans and fields share it, because it caches values."""
    decoded = decoder(type_)

    # Also by type: 1 and True are equal.
    @kept("written values", 4096, 700, typed=True)
    def written(value: Any) -> Any:
        found = decoded(value)
        return found if serialize is None else serialize(found)

    return written


@kept("written values", 64, 1_000)
def _field_writer(record: RecordType, field: Field, serialize: ReadValue | None) -> ReadValue:
    """Returns a function that writes a field from its attributes, if keys hold it too."""
    names, read = record.attributes_read(field), record.reader(field)

    @kept("written values", 4096, 700, typed=True)
    def written(*values: Any) -> Any:
        item = {name: value for name, value in zip(names, values, strict=True) if value is not None}
        if _size_of_all(item.values()) > _LONGEST_KEPT:
            raise ValueError("too long to be kept")
        found = read(item)
        return found if serialize is None or found is None else serialize(found)

    return written


def _written_column(
    names: Sequence[str], written: Callable[..., Any], measure: Measure, of_items: Complete
) -> Complete:
    """Returns a function that writes a column whose values are mostly the same few: numbers, enums, times."""

    def complete(run: Completion, items: Sequence[Any], path_of: PathOf) -> Sequence[Any]:
        try:
            values = [*map(written, *[[item.get(name) for item in items] for name in names])]
        except Exception:  # `of_items` says of which item, and what stands in its place
            return of_items(run, items, path_of)
        run.left -= measure(values)
        return values

    return complete


# --- Everything else, by its type ---------------------------------------------------------------------


def _completer(field: SelectedField, type_: GraphQLOutputType, read: ReadValue) -> Complete:
    """Returns a function that completes values of the type, read from sources."""
    is_nullable = not is_non_null_type(type_)
    position = Position(field, is_nullable, warns=isinstance(field.kind, kinds.TotalCount | kinds.Aggregate))
    own: Any = type_ if is_nullable else cast(Any, type_).of_type
    if is_list_type(own):
        elements = _completer(field, own.of_type, _found)
        return lists(position, read, elements, has_nullable=not is_non_null_type(own.of_type))
    if is_leaf_type(own):
        return leaves(position, read, own.serialize, _measure_of(own))
    below = field.below
    write = partial(rows, field.only) if len(below) == 1 else partial(_rows_by_type, below)
    return composites(position, read, write)


def _reader(field: SelectedField) -> ReadValue | None:
    """Returns a function that reads a field of an object; None if the field is in the object's `found`."""
    match field.kind:
        case kinds.Stored(stored):
            return lambda each: each.shown(stored)
        case kinds.GlobalId():
            return lambda each: each.id
        case kinds.Cursor():
            return lambda each: each.cursor
        case kinds.Attribute(name):
            return attrgetter(name)
        case kinds.TotalCount():
            return lambda connection: _found(connection.total)
        case kinds.PageInfo():
            return lambda connection: _with_page(connection).info
        case kinds.WrittenRecord():
            return lambda payload: _found(payload.record)
        case kinds.Edges():
            return lambda connection: _with_page(connection).found[field]
        case kinds.Nodes():
            # Nodes that do not exist are left out.
            return lambda connection: [
                node for node in _with_page(connection).found[field] if not node.is_missing
            ]
    return None


def _with_page(connection: ListObject) -> ListObject:
    """Returns the connection. Raises the error of its page, if any."""
    _found(connection.page)
    return connection


def _found(value: Any) -> Any:
    """Returns what was found; None for a node that does not exist. Raises the error, if any."""
    if isinstance(value, Object):
        if value.error is not None:
            raise value.error
        return None if value.is_missing else value
    if isinstance(value, Exception):
        raise value
    return value
