"""The types of aggregates: one for each type of items, with enums of the fields that can be aggregated."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from decimal import Decimal

from strawberry.scalars import JSON
from strawberry.types.arguments import StrawberryArgument
from strawberry.types.field import StrawberryField

from keygraph.lists.aggregating import AggregateField, aggregate_fields
from keygraph.model.paths import AccessPath
from keygraph.model.records import RecordType
from keygraph.names import camel, constant
from keygraph_resolvers.naming.descriptions import a, in_words
from keygraph_resolvers.naming.names import field_name, list_in_words, shared_name
from keygraph_resolvers.schema.definitions import (
    OutputType,
    SchemaTypes,
    ServedField,
    argument,
    list_of,
    nullable,
)
from keygraph_resolvers.schema.field_kinds import Aggregate, AggregateValue

_DESCRIBED = (
    "Values for the whole list, whatever page is selected; null with a warning if that is too much to read."
)
_MOST_GROUPS = "Maximum number of groups. The default and the maximum are the number of edges."


def aggregate_of_list(types: SchemaTypes, path: AccessPath) -> Iterator[StrawberryField]:
    """The field of a list's connection, if there is something to aggregate; for several types, with a field for each."""
    if not path.members:
        yield from _of_path(types, "aggregate", path, _DESCRIBED)
        return
    named = [(field_name(each.record), each) for each in path.members]
    fields = [
        field
        for name, each in named
        if name != "count"
        for field in _of_path(types, name, each, f"Of each {in_words(each.record.name)}.")
    ]
    if fields:
        use = f"the aggregate of {list_in_words(path)}"
        described = "Aggregates of several types, one for each type."
        made = types.object(shared_name(path, "Aggregate"), use, described, lambda: [_count(), *fields])
        yield ServedField("aggregate", nullable(made), Aggregate(path.record, {}), _DESCRIBED)


def aggregate_of_nodes(
    types: SchemaTypes, record: RecordType, budget: int | None
) -> Iterator[StrawberryField]:
    """The field of a connection of the nodes that a walk finds within its budget."""
    kind = Aggregate(record, _by_name(aggregate_fields(record, (*record.fields, *record.ends))), budget)
    if _is_useful(kind):
        made = _aggregate(types, f"{record.name}Aggregate", f"the aggregate of {record.name}", kind)
        yield ServedField("aggregate", nullable(made), kind, _DESCRIBED)


def _of_path(types: SchemaTypes, field: str, path: AccessPath, described: str) -> Iterator[StrawberryField]:
    first = next(iter(path.rest.slots), None)
    kind = Aggregate(path.record, _by_name(aggregate_fields(path.record, path.projected, first)))
    use = f"the aggregate of {path.record.name if path.keys.reads_whole_items else list_in_words(path)}"
    if _is_useful(kind):
        made = _aggregate(types, shared_name(path, "Aggregate"), use, kind)
        yield ServedField(field, nullable(made), kind, described)


def _is_useful(kind: Aggregate) -> bool:
    """Whether there is more to aggregate than what identifies each item: `totalCount` is their number."""
    record = kind.record
    of_one = {slot.path[0] for slot in record.identity} if len(record.identity) == 1 else {*record.key_ends}
    return any(each.source not in of_one for each in kind.fields.values())


def _by_name(fields: Iterable[AggregateField]) -> dict[str, AggregateField]:
    return {constant(each.name): each for each in fields}


def _count() -> StrawberryField:
    return ServedField("count", nullable(int), AggregateValue("count"), "How many there are.")


def _aggregate(types: SchemaTypes, name: str, use: str, kind: Aggregate) -> type:
    record, fields = kind.record, kind.fields.values()

    def enum(part: str, of: Sequence[AggregateField]) -> OutputType:
        members = {member: f"`{camel(each.name)}`." for member, each in _by_name(of).items()}
        return types.names(f"{name}{part}", use, "What can be aggregated.", members)

    def values() -> Iterator[StrawberryField]:
        yield _count()
        if numbers := [each for each in fields if each.is_number]:
            of = [argument("field", enum("Number", numbers), "The field to sum or average.")]
            average = "The average of the numbers; missing values are ignored. Null if there are none."
            yield _value("sum", Decimal, of, "The sum of the numbers; missing values are ignored.")
            yield _value("avg", Decimal, of, average)
        if ordered := [each for each in fields if each.is_ordered]:
            of = [argument("field", enum("Value", ordered), "The field to compare.")]
            yield _value("min", JSON, of, "The least value; null if there is none.")
            yield _value("max", JSON, of, "The greatest value; null if there is none.")

    def members() -> Iterator[StrawberryField]:
        yield from values()
        grouped = [each for each in fields if each.is_grouped]
        if not grouped:
            return
        described = f"Those with the same value in a field of {a(record.name)}."
        key = ServedField("key", nullable(JSON), AggregateValue("key"), "The value of the group.")
        group = types.object(f"{name}Group", use, described, lambda: [key, *values()])
        groups = nullable(list_of(group))
        arguments = [
            argument("field", enum("Key", grouped), "The field to group by."),
            argument("first", nullable(int), _MOST_GROUPS),
        ]
        described = "Groups by a value, the largest first."
        yield ServedField("groupBy", groups, AggregateValue("groupBy"), described, arguments)

    described = f"Counts, sums and other aggregates of several {in_words(record.name)} values."
    return types.object(name, use, described, members)


def _value(
    function: str, type_: OutputType, arguments: list[StrawberryArgument], described: str
) -> StrawberryField:
    return ServedField(function, nullable(type_), AggregateValue(function), described, arguments)
