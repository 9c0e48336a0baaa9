"""Sources: what stands behind an object of the answer while it is resolved.

A source knows its record type, its key, and its item once that was read. What the key tells is answered without
the item.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum
from typing import Any

from keygraph.dynamo.items import Item
from keygraph.errors import BadUserInput, CorruptItem
from keygraph.graph import Graph
from keygraph.keys.union import NodeText
from keygraph.model.fields import Field
from keygraph.model.records import End, Method, RecordType
from keygraph_resolvers.read.context import RequestContext
from keygraph_resolvers.schema.global_ids import global_id


@dataclass(slots=True)
class Source:
    """A node, an edge or a record: its type, the texts of its key, and its item where it was read."""

    record: RecordType
    identity: tuple[str, ...]
    item: Item | None = None
    others: tuple[RecordType, ...] = ()
    """Of which other types a node with this key can be, as long as it was not read."""

    @property
    def id(self) -> str:
        """The global id of a node."""
        return global_id(self.record, self.identity)

    def value(self, field: Field) -> Any:
        """The value of a field: of its key where that tells it, else of the item."""
        if field.name in self.record.key_fields:
            number, value_of = self.record.place_in_identity(field.name)
            return value_of(self.identity[number])
        return self.record.reader(field)(self._read_item(field.name))

    def shown(self, field: Field) -> Any:
        """The value of a field as it is answered: a set in order, which has none of its own."""
        value = self.value(field)
        return sorted(value, key=_plain_value) if isinstance(value, set) else value

    def end(self, end: End) -> Source | None:
        """The node at an end; None where there is none. Raises CorruptItem where what stands there is no key."""
        if end.name in self.record.key_fields:
            identity = self.record.end_reader(end)(self.identity)
        else:
            identity = self.record.end_identity(self._read_item(end.name), end)
        if identity is None:
            return None
        try:
            members, own = end.nodes(identity)
        except ValueError:
            raise CorruptItem(
                f"{self.record.name}.{end.name} of an item is no key of {end.type_name}"
            ) from None
        return Source(members[0], own, None, members[1:])

    def instance(self, method: Method) -> Any:
        """What a method of the model is called on."""
        if method.needs is not None and self.record.key_fields.issuperset(method.needs):
            return self.record.bare_instance(self.identity)
        return self.record.instance(self._read_item(method.name), method.needs)

    def _read_item(self, name: str) -> Item:
        if self.item is None:
            raise LookupError(f"{self.record.name}.{name} is resolved before the item was read")
        return self.item


def source_of_instance(graph: Graph, records: Sequence[RecordType], instance: Any) -> Source:
    """What an object of the model's class stands for; one that has a key alone can be of several types.

    Raises BadUserInput where it can have no key.
    """
    own = [record for record in records if isinstance(instance, record.cls)]
    if not own:
        fitting = [record for record in records if _has_key(record, instance)]
        alike = fitting[0].table_keys.templates if fitting else ()
        own = [record for record in fitting if record.table_keys.templates == alike] or list(records)
    return Source(own[0], _identity_of_instance(graph, own[0], instance), others=tuple(own[1:]))


def _identity_of_instance(graph: Graph, record: RecordType, instance: Any) -> tuple[str, ...]:
    values = {}
    for slot in record.identity:
        value = instance
        for name in slot.path:
            value = getattr(value, name)
        if isinstance(slot.text, NodeText):
            members = [graph.types[name] for each in slot.text.variants for name in each.members]
            source = source_of_instance(graph, members, value)
            value = source.record.partition_text(source.identity)
        values[record.leaf_name(slot.path)] = value
    return graph.identity(record, values)


def _has_key(record: RecordType, instance: Any) -> bool:
    return all(hasattr(instance, slot.path[0]) for slot in record.identity)


def checked(context: RequestContext, source: Source, owner: RecordType, field: str) -> Source:
    """The source, whose key was read from an attribute. Raises CorruptItem where it can be no key of its type."""
    try:
        context.graph.check_identity(source.record, source.identity)
    except BadUserInput:
        raise CorruptItem(f"{owner.name}.{field} of an item is no key of {source.record.name}") from None
    return source


def _plain_value(member: Any) -> Any:
    return member.value if isinstance(member, Enum) else member
