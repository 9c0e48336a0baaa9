"""What items lack since the model has changed, and what to write: keys of indexes, defaults, results of methods, copies,
and fields that are still in their former attribute.

A verification looks for it instead of problems if it has a `Backfill`, and `keygraph.tables.repair` writes it as it makes
repairs: each item by itself, on the condition that it is as it was read.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import NamedTuple, cast

from keygraph.dynamo.conditions import at_path, put_at_path
from keygraph.dynamo.items import Item, Value
from keygraph.errors import CorruptItem
from keygraph.keys.types import encode
from keygraph.model.fields import Field
from keygraph.model.instances import instance
from keygraph.model.records import Method, RecordType
from keygraph.resolve.derived import Copy
from keygraph.tables.findings import Finding
from keygraph.tables.item_fields import item_fields
from keygraph.writing.context import WriteContext


class Gap(NamedTuple):
    """A field whose attribute an item lacks, and what to write there."""

    field: Field
    what: str
    value: Value


@dataclass(frozen=True)
class Backfill:
    """Everything that items lack; only that of one index, or of one field, if they are named."""

    index: str | None = None
    field: str | None = None
    method: str | None = None
    """The method whose result is written into the field; otherwise its default, or what it copies."""

    def keys(self, record: RecordType, problems: Iterable[str]) -> Iterator[str]:
        """Yields those of the problems with an item's keys that are about the indexes."""
        names = [name for name in record.keys if name is not None and self.index in (None, name)]
        wanted = tuple(f"{name}: " for name in names if self.index is not None or self.field is None)
        return (problem for problem in problems if problem.startswith(wanted))

    def copies(self, copies: Sequence[Copy], item: Item) -> list[Copy]:
        """Returns the copies that an item lacks."""
        return [
            each
            for each in copies
            if self.has_field(each.field) and at_path(item, each.field.attribute) is None
        ]

    def has_field(self, field: Field) -> bool:
        """Returns whether the field is to be written."""
        return field.name == self.field or (self.field is None and self.index is None)

    def gaps(self, record: RecordType, item: Item) -> Iterator[Gap]:
        """Yields the fields that an item lacks and whose values follow from the model and the item.

        Raises what a method raises.
        """
        whole = record.completed(item)
        for field in record.fields.values():
            if not self.has_field(field) or field.in_key or field.kept is not None:
                continue
            stored = at_path(whole, field.attribute)
            if field.former is not None and at_path(item, field.former) is not None:
                moved = cast(Value, at_path(record.current(item), field.attribute))
                yield Gap(field, f"{field.name} is stored in {field.former[0]}, its former attribute", moved)
                continue
            if stored is not None:
                continue
            method = record.methods.get(self.method or "")
            value = _result(record, method, field, item) if method else _default(field)
            if value is not None:
                source = f"the result of {method.name}" if method else "its default"
                yield Gap(field, f"{field.name} is missing: {source} can be written", value)


def _default(field: Field) -> Value:
    # DynamoDB stores no empty set.
    has_none = not field.has_default or field.default is None or field.is_external
    value = None if has_none else encode(field.type, field.default)
    return value or None if isinstance(value, frozenset) else value


def _result(record: RecordType, method: Method, field: Field, item: Item) -> Value:
    names = (
        (record.fields.keys() | record.ends.keys()) - {field.name} if method.needs is None else method.needs
    )
    with suppress(CorruptItem):
        made = method.function(instance(record, item, names))
        return None if made is None else encode(field.type, made)
    return None


def filled(write: WriteContext, record: RecordType, item: Item, findings: Iterable[Finding]) -> Item:
    """Returns the item with the missing attributes, and with the keys of indexes that hold their values, or that findings
    are about."""
    new, wrong = dict(item), set[str]()
    for each in findings:
        if each.kind.problem == "key":
            wrong.add(each.kind.what)
            continue
        field = record.fields[each.name or ""]
        put_at_path(new, field.attribute, each.right)
        if field.former is not None:
            new.pop(field.former[0], None)
    return write.graph.made(item_fields)[record.name].keys.following(item, new, wrong)
