"""Aggregates of the items of a list: counts, sums, averages, minima and maxima, of all or of groups."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import date, datetime
from decimal import Context, Decimal
from enum import Enum
from typing import Any

from keygraph.dynamo.items import exact_sum, number, number_text
from keygraph.dynamo.limits import LOWEST_EXPONENT
from keygraph.errors import BadUserInput, CorruptItem
from keygraph.keys.template import Slot
from keygraph.keys.text import IsoDatetime
from keygraph.keys.types import NUMBERS, FieldType, Kind, in_utc, moment_text
from keygraph.lists.extent import Located
from keygraph.model.records import RecordType

_ORDERED = NUMBERS | frozenset[Kind]({"id", "string", "datetime", "date"})
_GROUPED = (_ORDERED | frozenset[Kind]({"boolean", "enum"})) - {"float"}
_DIGITS = Context(prec=38)


@dataclass(frozen=True)
class AggregateField:
    """A value of items that can be aggregated."""

    name: str
    """In the model's case."""
    source: str
    """The field or end that holds it."""
    type: FieldType
    number: int | None = None
    """The number of the part in the end's key; None for a field."""
    is_first: bool = False
    """Whether the list is in the order of its texts, since they come first in the keys."""

    @property
    def is_number(self) -> bool:
        return self.type.kind in NUMBERS

    @property
    def is_ordered(self) -> bool:
        return self.type.kind in _ORDERED

    @property
    def is_grouped(self) -> bool:
        return self.type.kind in _GROUPED

    def order(self, value: Any) -> Any:
        """Returns the sort key of a value: a time is in UTC without a zone, and in the order of the keys if the list
        has it too."""
        if not isinstance(value, datetime):
            return value
        return moment_text(value) if self.is_first else in_utc(value)


def aggregate_fields(
    record: RecordType, projected: Iterable[str], order: Slot | None = None
) -> Iterator[AggregateField]:
    """Yields what can be aggregated for items that contain these fields and ends. `order` is what lists of them are
    ordered by."""
    names = frozenset(projected)
    for field in record.fields.values():
        if field.name in names and field.type.kind in (_ORDERED | _GROUPED) and not field.shards:
            is_first = (
                order is not None and order.path == (field.name,) and isinstance(order.text, IsoDatetime)
            )
            yield AggregateField(field.name, field.name, field.type, is_first=is_first)
    for end in record.ends.values():
        if end.name in names and end.text is None:
            for number, slot in enumerate(end.identity):
                name = record.leaf_name((end.name, *slot.path))
                if slot.path not in {each.path for each in end.identity[:number]} and not slot.lossy:
                    yield AggregateField(name, end.name, slot.text.type, number)


def _reader(record: RecordType, field: AggregateField) -> Callable[[Located], Any]:
    """Returns a function that reads a value, from the key if possible. It raises CorruptItem or ValueError."""
    name, number = field.source, field.number
    if number is None:
        if name in record.places_in_identity and name in record.key_fields:
            place, value_of = record.places_in_identity[name]
            return lambda located: value_of(located.identity[place])
        read = record.reader(record.fields[name])
        return lambda located: read(located.item)
    end, in_key = record.ends[name], name in record.key_fields

    def read_end(located: Located) -> Any:
        if in_key:
            texts = record.end_readers[name](located.identity)
        else:
            texts = record.end_identity(located.item, end)
        return None if not texts or not texts[number] else end.identity[number].text.value(texts[number])

    return read_end


class Aggregated:
    """Items of one type whose values are aggregated."""

    def __init__(self, record: RecordType, items: Sequence[Located], count: int | None = None) -> None:
        """`count` is their number including those without an item."""
        self.count = len(items) if count is None else count
        self._record = record
        self._items = items

    def values(self, field: AggregateField) -> list[Any]:
        """Returns the values of a field, without absent ones. Raises CorruptItem if one does not fit."""
        return [value for value in self._all(field) if value is not None]

    def _all(self, field: AggregateField) -> Iterator[Any]:
        read = _reader(self._record, field)
        for located in self._items:
            try:
                yield read(located)
            except (ValueError, TypeError):
                problem = f"{self._record.name}.{field.name} of an item is not a {field.type.name}"
                raise CorruptItem(problem) from None

    def sum(self, field: AggregateField) -> Decimal:
        """Returns the sum. Raises BadUserInput for one that no number holds; digits that it lacks matter unless of floats."""
        total = self._sum(field)
        try:
            return number(_DIGITS.plus(total) if field.type.kind == "float" else total)
        except ValueError as error:
            raise BadUserInput(f"the sum of {field.name} is {error}") from None

    def _sum(self, field: AggregateField) -> Decimal:
        return exact_sum(
            value if isinstance(value, Decimal) else Decimal(str(value)) for value in self.values(field)
        )

    def avg(self, field: AggregateField) -> Decimal | None:
        """Returns the average, rounded to 38 digits, and to zero if it is below all numbers; None for no values."""
        values = self.values(field)
        average = _DIGITS.divide(self._sum(field), Decimal(len(values))) if values else None
        return average if average is None or average.adjusted() >= LOWEST_EXPONENT else Decimal(0)

    def min(self, field: AggregateField) -> Any:
        return plain(min(self.values(field), key=field.order, default=None))

    def max(self, field: AggregateField) -> Any:
        return plain(max(self.values(field), key=field.order, default=None))

    def groups(self, field: AggregateField) -> list[tuple[Any, Aggregated]]:
        """Returns the items by a field's value, the largest groups first; equal ones by the value, with None last."""
        found: dict[Any, list[Located]] = {}
        for value, item in zip(self._all(field), self._items, strict=True):
            found.setdefault(plain(value), []).append(item)

        def order(group: tuple[Any, list[Located]]) -> tuple[int, bool, str]:
            return -len(group[1]), group[0] is None, str(group[0])

        return [(key, Aggregated(self._record, items)) for key, items in sorted(found.items(), key=order)]


def plain(value: Any) -> Any:
    """Returns a value as JSON has it: a decimal and a time as their own scalars write them, an enum's by its name."""
    match value:
        case Decimal():
            return number_text(value)
        case datetime():
            return moment_text(value)
        case date():
            return value.isoformat()
        case Enum():
            return value.name
    return value


OF_FIELD: Mapping[str, Callable[[Aggregated, AggregateField], Any]] = {
    "sum": Aggregated.sum,
    "avg": Aggregated.avg,
    "min": Aggregated.min,
    "max": Aggregated.max,
}
"""The aggregates of one field, by their names in the schema."""
