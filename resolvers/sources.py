"""Sources: what stands behind an object of the answer while it is resolved.

A source knows its record type, its key, and its item once that was read. What the key tells is answered without
the item.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from strawberry.types.info import Info

from keygraph.errors import BadUserInput, CorruptItem
from keygraph.items import Item
from keygraph.names import camel
from keygraph.records import End, Field, Method, RecordType
from resolvers.context import RequestContext, context_of
from resolvers.global_ids import global_id
from resolvers.selection import selected_paths


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
            return self.record.identity_value(self.identity, field.name)
        return self.record.value(self._read_item(field.name), field)

    def end(self, end: End) -> Source | None:
        """The node at an end; None where there is none. Raises CorruptItem where what stands there is no key."""
        if end.name in self.record.key_fields:
            identity = self.record.identity_end(self.identity, end)
        else:
            identity = self.record.end_identity(self._read_item(end.name), end)
        if identity is None:
            return None
        try:
            (record, *others), own = end.nodes(identity)
        except ValueError:
            raise CorruptItem(
                f"{self.record.name}.{end.name} of an item is no key of {end.type_name}"
            ) from None
        return Source(record, own, others=tuple(others))

    def instance(self, method: Method) -> Any:
        """What a method of the model is called on."""
        if method.needs is not None and self.record.key_fields.issuperset(method.needs):
            return self.record.bare_instance(self.identity)
        return self.record.instance(self._read_item(method.name), method.needs)

    def _read_item(self, name: str) -> Item:
        if self.item is None:
            raise LookupError(f"{self.record.name}.{name} is resolved before the item was read")
        return self.item


def answered_by_key(record: RecordType) -> frozenset[str]:
    """The fields of a node, by their GraphQL names, that are answered without its item."""
    methods = {
        method.name
        for method in record.methods.values()
        if method.needs is not None and record.key_fields.issuperset(method.needs)
    }
    names = {*record.key_fields, *record.lists, *methods}
    return frozenset({"id", "__typename", *map(camel, names)})


def needs_item(info: Info, source: Source) -> bool:
    """Whether what is selected below the field cannot be answered by the node's key alone."""
    record = source.record
    if source.others:
        return True
    if record.is_virtual:
        return False
    context = context_of(info)
    key = (tuple(map(id, info._raw_info.field_nodes)), record.name)
    selected = context.selections.get(key)
    if selected is None:
        selected = context.selections[key] = selected_paths(info, of=record.name)
    return not selected <= answered_by_key(record)


async def read_source(context: RequestContext, source: Source) -> Source | None:
    """The source with its item; None where the node does not exist. A virtual node always does."""
    if source.item is None and not source.record.is_virtual:
        found = await context.item_of((source.record, *source.others), source.identity)
        if found is None:
            return None
        source.record, source.item = found
        source.others = ()
    return source


def checked(context: RequestContext, source: Source, owner: RecordType, field: str) -> Source:
    """The source, whose key was read from an attribute. Raises CorruptItem where it can be no key of its type."""
    try:
        context.graph.check_identity(source.record, source.identity)
    except BadUserInput:
        raise CorruptItem(f"{owner.name}.{field} of an item is no key of {source.record.name}") from None
    return source
