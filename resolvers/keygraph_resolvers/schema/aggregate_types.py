"""The types of aggregates: one for each type of items, with enums of the fields that can be aggregated."""

from __future__ import annotations

from collections.abc import Sequence
from decimal import Decimal
from enum import Enum

from strawberry.scalars import JSON
from strawberry.types.arguments import StrawberryArgument
from strawberry.types.enum import StrawberryEnumDefinition
from strawberry.types.field import StrawberryField

from keygraph.lists.aggregating import AggregateField, aggregate_fields
from keygraph.model.paths import AccessPath
from keygraph.model.records import RecordType
from keygraph.names import camel, constant
from keygraph_resolvers.naming.descriptions import a, in_words
from keygraph_resolvers.naming.names import aggregate_name, aggregate_name_of, field_name
from keygraph_resolvers.schema.definitions import (
    OutputType,
    ServedField,
    add_fields,
    argument,
    enum_type,
    list_of,
    nullable,
    object_type,
)
from keygraph_resolvers.schema.field_kinds import Aggregate, AggregateValue

_DESCRIBED = (
    "Values for the whole list, whatever page is selected; null with a warning if that is too much to read."
)
_MOST_GROUPS = "Maximum number of groups. The default and the maximum are the number of edges."


class AggregateTypes:
    """Makes the fields of aggregates and their types, each once."""

    def __init__(self) -> None:
        self._types: dict[str, type] = {}

    def of_list(self, path: AccessPath) -> StrawberryField:
        """The field of a list's connection."""
        return self._of_several(path) if path.members else self._of_path("aggregate", path, _DESCRIBED)

    def of_nodes(self, record: RecordType, budget: int | None) -> StrawberryField:
        """The field of a connection of the nodes that a walk finds within its budget."""
        fields = [*aggregate_fields(record, (*record.fields, *record.ends))]
        return self._field("aggregate", aggregate_name_of(record), record, fields, _DESCRIBED, budget)

    def _of_several(self, path: AccessPath) -> StrawberryField:
        """The field of a list of several types, with a field for each of them."""
        name, count = aggregate_name(path), _count()
        if name not in self._types:
            made = self._types[name] = object_type(name, "Aggregates of several types, one for each type.")
            members = {field_name(each.record): each for each in path.members}
            of_each = [
                self._of_path(field, each, f"Of each {in_words(each.record.name)}.")
                for field, each in members.items()
                if field != count.name
            ]
            add_fields(made, [count, *of_each])
        kind = Aggregate(path.record, {})
        return ServedField("aggregate", nullable(self._types[name]), kind, description=_DESCRIBED)

    def _of_path(self, field: str, path: AccessPath, described: str) -> StrawberryField:
        fields = [*aggregate_fields(path.record, path.told, next(iter(path.rest.slots), None))]
        return self._field(field, aggregate_name(path), path.record, fields, described)

    def _field(
        self,
        field: str,
        name: str,
        record: RecordType,
        fields: Sequence[AggregateField],
        described: str,
        budget: int | None = None,
    ) -> StrawberryField:
        if name not in self._types:
            self._types[name] = _aggregate(name, record, fields)
        kind = Aggregate(record, {constant(each.name): each for each in fields}, budget)
        return ServedField(field, nullable(self._types[name]), kind, description=described)


def _count() -> StrawberryField:
    return ServedField("count", nullable(int), AggregateValue("count"), description="How many there are.")


def _aggregate(name: str, record: RecordType, fields: Sequence[AggregateField]) -> type:
    made = object_type(name, f"Counts, sums and other aggregates of several {in_words(record.name)} values.")
    values = [*_values(name, fields)]
    add_fields(made, values)
    grouped = [each for each in fields if each.is_grouped]
    if grouped:
        group = object_type(f"{name}Group", f"Those with the same value in a field of {a(record.name)}.")
        key = ServedField("key", nullable(JSON), AggregateValue("key"), description="The value of the group.")
        add_fields(group, [key, *values])
        arguments = [
            argument("field", _enum(f"{name}Key", grouped), "The field to group by."),
            argument("first", nullable(int), _MOST_GROUPS),
        ]
        described = "Groups by a value, the largest first."
        groups = nullable(list_of(group))
        add_fields(made, [ServedField("groupBy", groups, AggregateValue("groupBy"), arguments, described)])
    return made


def _values(name: str, fields: Sequence[AggregateField]) -> list[StrawberryField]:
    found: list[StrawberryField] = [_count()]
    numbers = [each for each in fields if each.is_number]
    ordered = [each for each in fields if each.is_ordered]
    if numbers:
        of = [argument("field", _enum(f"{name}Number", numbers), "The field to sum or average.")]
        found += [
            _value("sum", Decimal, of, "The sum of the numbers; missing values are ignored."),
            _value(
                "avg",
                Decimal,
                of,
                "The average of the numbers; missing values are ignored. Null if there are none.",
            ),
        ]
    if ordered:
        of = [argument("field", _enum(f"{name}Value", ordered), "The field to compare.")]
        found += [
            _value("min", JSON, of, "The least value; null if there is none."),
            _value("max", JSON, of, "The greatest value; null if there is none."),
        ]
    return found


def _value(
    function: str, type_: OutputType, arguments: list[StrawberryArgument], described: str
) -> StrawberryField:
    return ServedField(function, nullable(type_), AggregateValue(function), arguments, described)


def _enum(name: str, fields: Sequence[AggregateField]) -> StrawberryEnumDefinition:
    described = {constant(each.name): f"`{camel(each.name)}`." for each in fields}
    made = Enum(name, {member: member for member in described})  # type: ignore[misc]  # they are those of the model
    return enum_type(made, "What can be aggregated.", described)
