"""The objects of an answer while it is read: nodes, edges and records, each with the values of fields that lead on."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from enum import Enum
from typing import Any, TypeAlias, cast

from keygraph.dynamo.conditions import at_path, put_at_path
from keygraph.dynamo.items import Item, Value
from keygraph.errors import BadUserInput, CorruptItem, without_frames
from keygraph.graph import Graph
from keygraph.keys.types import encode
from keygraph.keys.union import NodeText
from keygraph.model.fields import Field
from keygraph.model.instances import bare_instance, instance_for
from keygraph.model.node_shards import with_shards
from keygraph.model.records import End, Method, RecordType
from keygraph.resolve.derived import Copy
from keygraph_resolvers.naming.global_ids import global_id

SHARDS = "shards"
"""The place in `Object.found` of the items over which a node's numbers are spread."""
NodeReader: TypeAlias = "Callable[[Object], Object | None]"
"""Returns the node at an end of an object; None if there is none."""


class Object:
    """A node, an edge or a record: its type, the texts of its key, and its item if it was read."""

    __slots__ = ("error", "found", "identity", "is_missing", "item", "others", "record")

    def __init__(
        self,
        record: RecordType,
        identity: tuple[str, ...],
        item: Item | None = None,
        others: tuple[RecordType, ...] = (),
    ) -> None:
        self.record = record
        self.identity = identity
        self.item = item
        self.others = others
        """The other types that a node with this key can have, until it is read."""
        self.is_missing = False
        """Whether it is a node that was looked up and does not exist."""
        self.error: Exception | None = None
        """The error of reading it."""
        self.found: dict[Any, Any] = {}
        """The values of fields that lead on: an object, connection, list of objects, value or None; or an exception."""

    @property
    def type_name(self) -> str:
        """Its type in the schema, if it can have several."""
        return self.record.name

    @property
    def id(self) -> str:
        return global_id(self.record, self.identity)

    def value(self, field: Field) -> Any:
        """Returns the value of a field: from the key if that contains it, else from the item."""
        if field.name in self.record.key_fields:
            number, value_of = self.record.places_in_identity[field.name]
            return value_of(self.identity[number])
        item = self.read_item(field.name)
        return self.record.reader(field)(self._with_shards(item) if field.shards else item)

    def _with_shards(self, item: Item) -> Item:
        """Returns the item with the numbers that are spread over shards added up. Raises the error of reading one."""
        for answer in self.found[SHARDS]:
            if isinstance(answer, Exception):
                raise answer
        return with_shards(self.record, item, self.found[SHARDS])

    def shown(self, field: Field) -> Any:
        """Returns the value of a field as in the answer: a set is sorted, because it has no order."""
        value = self.value(field)
        if isinstance(value, set):
            return sorted(value, key=lambda each: each.value if isinstance(each, Enum) else each)
        return value

    def instance(self, method: Method) -> Any:
        """Returns the object of the model's class on which a method is called."""
        if method.needs is not None and self.record.key_fields.issuperset(method.needs):
            return bare_instance(self.record, self.identity)
        return instance_for(self.record, self.read_item(method.name), method)

    def read_item(self, name: str) -> Item:
        """Returns the item, for a field of that name. Raises LookupError if it was not read."""
        if self.item is None:
            raise LookupError(f"{self.record.name}.{name} is resolved before the item was read")
        return self.item


class Entity(Object):
    """A node that the router of a supergraph names, with the fields of other servers that it sends."""

    __slots__ = ("sent",)

    def __init__(self, record: RecordType, identity: tuple[str, ...], sent: Item) -> None:
        super().__init__(record, identity)
        self.sent = sent

    def read_item(self, name: str) -> Item:
        return {**super().read_item(name), **self.sent}


class ListObject:
    """One list of the answer, with its results."""

    __slots__ = ("found", "info", "page", "total")

    error: None = None
    is_missing = False

    def __init__(self) -> None:
        self.page: Sequence[Object] | Exception | None = None
        """Its edges, in the client's order."""
        self.info: Any = None
        self.total: int | Exception | None = None
        self.found: dict[Any, Any] = {}
        """The edges, or nodes, for each field that shows them; aggregates; or an exception."""


def end_reader(record: RecordType, end: End) -> NodeReader:
    """Returns a function that returns the node at an end of objects of a type: None if there is none.

    It raises CorruptItem if an item holds no key of the node.
    """
    read_key = record.end_readers[end.name] if end.name in record.key_fields else None
    if read_key is not None:

        def read(found: Object) -> tuple[str, ...] | None:
            return read_key(found.identity)
    else:

        def read(found: Object) -> tuple[str, ...] | None:
            return record.end_identity(found.read_item(end.name), end)

    if end.text is None:
        first, *more = end.members
        others = tuple(more)

        def of_one_key(found: Object) -> Object | None:
            identity = read(found) if read_key is None else read_key(found.identity)
            return None if identity is None else Object(first, identity, None, others)

        return of_one_key

    def of_several(found: Object) -> Object | None:
        identity = read(found)
        return None if identity is None else _node_at(record, end, identity)

    return of_several


def copying_reader(
    graph: Graph, record: RecordType, read: NodeReader, copies: Sequence[Copy], *, has_methods: bool
) -> NodeReader:
    """Returns a function that returns the node at an end of objects of a type as `read` does, with an item of the fields
    that the objects have copies of. It raises CorruptItem if an object lacks a copy that it must have.

    `has_methods`: methods of the node are called, which read key fields from the item too.
    """
    if not copies:
        return read
    names = [key.name for key in graph.table.keys]
    fields = [(copy, copy.field.attribute, record.reader(copy.field)) for copy in copies]

    def read_copies(found: Object) -> Object | None:
        node = read(found)
        if node is None:
            return None
        item = found.read_item(fields[0][0].field.name)
        key = graph.table_keys(node.record, node.identity)[0] if has_methods else ()
        node.item = dict(zip(names, key, strict=False))
        for copy, path, value_of in fields:
            stored = at_path(item, path)
            if stored is None and (value := value_of(item)) is not None:
                stored = encode(copy.field.type, value)
            if stored is not None:
                put_at_path(node.item, copy.sources[node.record].attribute, cast(Value, stored))
        return node

    return read_copies


def _node_at(record: RecordType, end: End, identity: tuple[str, ...]) -> Object:
    try:
        members, own = end.nodes(identity)
    except ValueError:
        raise record.no_key(end) from None
    return Object(members[0], own, None, members[1:])


def members_of(
    graph: Graph, record: RecordType, end: End, found: Object, part: slice
) -> list[Object | CorruptItem] | None:
    """Returns a part of the nodes that a list or set of an object names; in place of a member that is no key of a node,
    its error. None if the object has no list."""
    identities = record.member_identities(found.read_item(end.name), end, part)
    if identities is None:
        return None
    nodes: list[Object | CorruptItem] = []
    for identity in identities:
        try:
            if isinstance(identity, CorruptItem):
                raise identity
            node = _node_at(record, end, identity)
            check_key(graph, node, record, end.name)
        except CorruptItem as error:
            nodes.append(without_frames(error))
        else:
            nodes.append(node)
    return nodes


def object_of_instance(graph: Graph, records: Sequence[RecordType], instance: Any) -> Object:
    """Returns the node that an object of the model's class represents; one with only a key can have several types.

    Raises BadUserInput if it can have no key.
    """
    own = [record for record in records if isinstance(instance, record.cls)]
    if not own:
        fitting = [
            record for record in records if all(hasattr(instance, slot.path[0]) for slot in record.identity)
        ]
        alike = fitting[0].table_keys.templates if fitting else ()
        own = [record for record in fitting if record.table_keys.templates == alike] or list(records)
    return Object(own[0], _identity_of_instance(graph, own[0], instance), others=tuple(own[1:]))


def _identity_of_instance(graph: Graph, record: RecordType, instance: Any) -> tuple[str, ...]:
    values = {}
    for slot in record.identity:
        value = instance
        for name in slot.path:
            value = None if value is None else getattr(value, name)
        if isinstance(slot.text, NodeText):
            members = [graph.types[name] for each in slot.text.variants for name in each.members]
            found = object_of_instance(graph, members, value)
            value = found.record.partition_text(found.identity)
        values[record.leaf_name(slot.path)] = value
    return graph.identity(record, values)


def check_key(graph: Graph, found: Object, owner: RecordType, field: str) -> None:
    """Checks a node whose key was read from an attribute. Raises CorruptItem if it cannot be a key of its type."""
    try:
        graph.check_identity(found.record, found.identity)
    except BadUserInput:
        raise CorruptItem(f"{owner.name}.{field} of an item is not a key of {found.record.name}") from None
