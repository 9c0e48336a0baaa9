"""Reads what nodes store of their lists. Answers `totalCount` and aggregates of lists from counts and sums there.

This works if no access rule hides items of the list, the arguments leave none out, and every node has the number: a
nullable field may not have been counted yet.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from decimal import Decimal
from typing import Any, cast
from weakref import ref

from graphql import EnumValueNode

from keygraph.lists.aggregating import AggregateField
from keygraph.model.fields import Field
from keygraph.model.node_shards import shard_keys
from keygraph.model.paths import AccessPath
from keygraph.model.permissions import Permissions
from keygraph.model.records import RecordType
from keygraph_resolvers.engine.requests import Begun, GetItems, Reads
from keygraph_resolvers.engine.worst import Described, KeyLookups, Worst
from keygraph_resolvers.errors import as_value
from keygraph_resolvers.naming.names import PAGE_ARGUMENTS
from keygraph_resolvers.read.objects import SHARDS, ListObject, Object
from keygraph_resolvers.read.run import Run
from keygraph_resolvers.schema.field_kinds import Aggregate, AggregateValue, TotalCount
from keygraph_resolvers.steps.selection import SelectedField, Selection
from keygraph_resolvers.steps.step import Step


def numbers_of(path: AccessPath, selected: Sequence[Any], below: Selection) -> dict[SelectedField, Field]:
    """The selected values of a list that its owner's numbers answer."""
    given = {argument.name.value for node in selected for argument in node.arguments or ()}
    if (
        path.owner is None
        or path.is_one
        or not given <= {*PAGE_ARGUMENTS}
        or any(each.access for each in path.records)
    ):
        return {}
    kept = {field.kept_of: field for field in _kept(path)}
    found: dict[SelectedField, Field] = {}
    if path.name in kept:
        found |= dict.fromkeys(below.having(TotalCount), kept[path.name])
    for aggregate in below.having(Aggregate):
        kind = cast(Aggregate, aggregate.kind)
        values = [each for each in aggregate.only.fields if isinstance(each.kind, AggregateValue)]
        numbers = [kept.get(_number(path, each, kind)) for each in values]
        if None not in numbers:
            found |= {value: field for value, field in zip(values, numbers, strict=True) if field}
    return found


def _kept(path: AccessPath) -> Iterator[Field]:
    """The counts and sums that every owner of a list has."""
    fields = () if path.owner is None else path.owner.fields.values()
    return (
        each
        for each in fields
        if each.kept in ("count", "sum") and not (each.optional or each.shards or each.kept_where is not None)
    )


def _number(path: AccessPath, value: SelectedField, kind: Aggregate) -> str:
    """The name under which a number that answers a value is stored; empty if none can."""
    function = cast(AggregateValue, value.kind).function
    if function == "count":
        return path.name
    names = [kind.fields[name].source for name in aggregated_names(value, kind.fields)]
    return f"{path.name}.{names[0]}" if function == "sum" and len(names) == 1 else ""


def aggregated_names(selected: SelectedField, fields: Mapping[str, AggregateField]) -> Iterator[str]:
    """The names that a value of an aggregate may use: all of them if a variable gives the name."""
    for node in selected.nodes:
        for argument in node.arguments or ():
            if argument.name.value == "field":
                value = argument.value
                yield from [value.value] if isinstance(value, EnumValueNode) else fields
    for below in selected.below.values():
        for each in below.fields:
            yield from aggregated_names(each, fields)


class NumbersStep(Step):
    """Answers fields of lists from the items of their owners."""

    def __init__(self, selected: SelectedField) -> None:
        self._selected = selected
        self._totals = [
            field for each, field in selected.numbers.items() if isinstance(each.kind, TotalCount)
        ]
        self._aggregates: Mapping[SelectedField, Mapping[SelectedField, Field]] = {
            each: values
            for each in selected.only.having(Aggregate)
            if (
                values := {
                    value: selected.numbers[value] for value in each.only.fields if value in selected.numbers
                }
            )
        }

    def run(self, op: Run, objects: Sequence[Object]) -> Begun:
        for owner in objects:
            found = owner.found.get(self._selected)
            if isinstance(found, ListObject):
                for field in self._totals:
                    found.total = _value(owner, field)
                for aggregate, values in self._aggregates.items():
                    made = Object(owner.record, ())
                    made.found = {
                        value: _in_aggregate(value, _value(owner, field)) for value, field in values.items()
                    }
                    found.found[aggregate] = made
        return []

    def worst(self, run: Run) -> Worst:
        return iter(())


class ShardsStep(Step):
    """Reads the items over which numbers of nodes are spread, in addition to the nodes' own."""

    def __init__(self, record: RecordType, names: Sequence[str]) -> None:
        """`names` are the fields of nodes of the type that are selected and spread."""
        self._record = record
        self._names = names
        key = f"the shards of {' and '.join(names)}"
        self._node = Described(kind="get node", records=(record,), step=ref(self), key=key)

    def run(self, op: Run, objects: Sequence[Object]) -> Reads[None]:
        record, access = self._record, op.access
        if access is not None:
            objects = [each for each in objects if self._may_be_read(access, each)]
        keys = {each: op.graph.table_keys(record, each.identity)[0] for each in objects}
        shards: dict[Object, list[Any]] = {each: [] for each in objects}
        wanted = [(each, shard) for each, key in keys.items() for shard in shard_keys(record, key)]
        for each, answer in (yield GetItems(wanted, "shards")):
            shards[each].append(answer)
        for each, answers in shards.items():
            each.found[SHARDS] = answers

    def _may_be_read(self, access: Permissions, each: Object) -> bool:
        return any(access.decide(each, "read", name) is not False for name in self._names)

    def worst(self, run: Run) -> Worst:
        yield self._node
        yield KeyLookups(self._node.records, self._record.shard_count)


def _value(owner: Object, field: Field) -> Any:
    """The number of an owner, or the error of reading it."""
    try:
        return owner.value(field)
    except Exception as error:
        return as_value(error)


def _in_aggregate(value: SelectedField, number: Any) -> Any:
    is_sum = isinstance(value.kind, AggregateValue) and value.kind.function == "sum"
    return Decimal(str(number)) if is_sum and not isinstance(number, Exception) else number
