"""A record type: a declared kind of item, with its keys, and how its fields and ends are read from items.

Record types are made by `keygraph.resolve.records` and never change afterwards.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from dataclasses import field as dataclass_field
from functools import cached_property, partial
from types import SimpleNamespace
from typing import Any, Literal, cast

from keygraph.dynamo.conditions import at_path
from keygraph.dynamo.items import Item, Value
from keygraph.dynamo.table import Key, Table
from keygraph.errors import CorruptItem
from keygraph.keys.template import FieldPath, Slot
from keygraph.keys.types import decode, encode
from keygraph.model.members import DeclaredList, End, Field, Method
from keygraph.model.readers import (
    IdentityReader,
    end_reader,
    field_reader,
    identity_reader,
    key_writer,
    slot_reader,
    text_reader,
)
from keygraph.model.record_keys import Keys

__all__ = ["ITEM_BYTES", "Keys", "RecordType"]

ITEM_BYTES = 1024
"""The size that an item is taken to have, in bytes, where its type declares no `item_bytes`."""


@dataclass(eq=False)
class RecordType:
    """A declared kind of item. Compared by identity; a graph has one of each name."""

    name: str
    cls: type
    kind: Literal["node", "edge", "record"]
    type_value: str | None
    is_virtual: bool
    description: str | None
    table: Table
    is_mirrored: bool = False
    """Whether the same edge with its ends exchanged is an item too."""
    counterpart: str | None = None
    """The other edge type of which each edge has an item too, as it was declared."""
    gathers: bool = False
    """Whether a node's partition is small, so that the node is read together with its lists there."""
    item_bytes: int = ITEM_BYTES
    """The size of an item, in bytes, that the cost bound of an operation is computed with."""
    fields: dict[str, Field] = dataclass_field(default_factory=dict)
    ends: dict[str, End] = dataclass_field(default_factory=dict)
    lists: dict[str, DeclaredList] = dataclass_field(default_factory=dict)
    methods: dict[str, Method] = dataclass_field(default_factory=dict)
    order: list[str] = dataclass_field(default_factory=list)
    """The names of fields, ends, lists and methods as they were declared."""
    keys: dict[str | None, Keys] = dataclass_field(default_factory=dict)
    """Its keys in the table (None) and in each index that it is in."""

    def __repr__(self) -> str:
        return f"<{self.kind} {self.name}>"

    @property
    def is_node(self) -> bool:
        return self.kind == "node"

    @property
    def table_keys(self) -> Keys:
        return self.keys[None]

    @cached_property
    def identity(self) -> tuple[Slot, ...]:
        """The slots of the table key, without the shard: a node is identified by their texts."""
        return tuple(slot for slot in self.table_keys.slots if not slot.is_shard)

    @cached_property
    def key_ends(self) -> tuple[str, ...]:
        """The ends in the table key, in order; of an edge there are two."""
        return tuple({slot.path[0]: None for slot in self.identity if slot.path[0] in self.ends})

    @cached_property
    def key_fields(self) -> frozenset[str]:
        """The fields and ends that the table key alone tells, so that a node is not read for them."""
        told = {slot.path for slot in self.identity if not slot.lossy or self._is_rendered_text(slot)}
        return frozenset(path[0] for path in told if len(path) == 1).union(
            name
            for name in self.key_ends
            for own in [[slot.under(name) for slot in self.ends[name].identity]]
            if all(slot in self.identity or (slot.path in told and not slot.lossy) for slot in own)
        )

    def _is_rendered_text(self, slot: Slot) -> bool:
        """Whether the field is what a key says: no item of a virtual node could say more."""
        return self.is_virtual and slot.text.lossy and slot.text.type.is_text

    def leaf_name(self, path: FieldPath) -> str:
        """The snake-case name of a field or of an end's key field, as arguments and attributes are called.

        An end is `<end>_id`, or `<end>_<field>` where its node has several key fields, and so on inward.
        """
        name, *inner = path
        if name not in self.ends:
            return name
        end = self.ends[name]
        parts = {slot.path for slot in end.identity}
        if len(parts) == 1 and tuple(inner) in parts:
            return f"{name}_id"
        return f"{name}_{end.members[0].leaf_name(tuple(inner))}"

    def partition_text(self, identity: Iterable[str]) -> str:
        """The partition key of a node that it identifies."""
        texts = zip((slot.name for slot in self.identity), identity, strict=True)
        return self.table_keys.partition.render({name: text or None for name, text in texts}) or ""

    # --- Reading items --------------------------------------------------------------------------------

    def accepts(self, item: Mapping[str, Value]) -> bool:
        """Whether the item's table key is one of this type's."""
        return not self.is_virtual and self.read_identity(item) is not None

    def identity_of(self, item: Mapping[str, Value]) -> tuple[str, ...]:
        """The texts that identify the item. Raises CorruptItem where its key is none of this type's."""
        identity = self.read_identity(item)
        if identity is None:
            raise CorruptItem(f"an item of {self.name} has a key of another shape")
        return identity

    @cached_property
    def read_identity(self) -> IdentityReader:
        """What reads the texts that identify an item; None where its table key is none of this type's."""
        return identity_reader(self.table_keys, tuple(slot.name for slot in self.identity))

    @cached_property
    def write_key(self) -> Callable[[tuple[str, ...]], Key] | None:
        """What makes the table key of an identity; None where that takes more than to put its texts in place."""
        return key_writer(self.table_keys, tuple(slot.name for slot in self.identity))

    def end_identity(self, item: Mapping[str, Value], end: End) -> tuple[str, ...] | None:
        """The identity of the node at that end, from the item's keys or attributes; None for none.

        The table's key is believed first, then attributes, then the indexes' keys.
        """
        slots = self._slots_of_ends[end.name]
        is_in_key = any(is_told for _, _, is_told in slots)
        key_texts = (self.table_keys.parse(item) or {}) if is_in_key else {}
        texts = []
        for slot, own, _ in slots:
            text = key_texts.get(own.name) or self._end_attribute(item, end, slot)
            text = text or self._other_key_text(item, own)
            if text is None:
                return None
            texts.append(text)
        return tuple(texts)

    @cached_property
    def _slots_of_ends(self) -> dict[str, list[tuple[Slot, Slot, bool]]]:
        """For each end the slots of its identity, as the node's type and as this one sees them, and whether they
        stand in the table's key."""
        told = {slot.name for slot in self.table_keys.slots}
        return {
            end.name: [
                (slot, own, own.name in told) for slot in end.identity for own in [slot.under(end.name)]
            ]
            for end in self.ends.values()
        }

    def _end_attribute(self, item: Mapping[str, Value], end: End, slot: Slot) -> str | None:
        value = cast(Value, at_path(item, end.attributes[slot.path]))
        if value is None:
            return None
        if slot.computed:
            return value if isinstance(value, str) else None
        try:
            return slot.text.render(decode(slot.text.type, value))
        except ValueError:
            raise CorruptItem(f"{self.name}.{end.name} of an item is no key of {end.type_name}") from None

    def _other_key_text(self, item: Mapping[str, Value], wanted: Slot) -> str | None:
        """The slot's text from any key of the item, written in the wanted format."""
        for keys in self.keys.values():
            same = [slot for slot in keys.slots if slot.path == wanted.path and not slot.lossy]
            texts = keys.parse(item) if same else None
            for slot in same if texts else ():
                text = (texts or {}).get(slot.name)
                if text is not None:
                    return slot.rewritten(text, wanted)
        return None

    def value(self, item: Mapping[str, Value], field: Field) -> Any:
        """The field's Python value: from its attribute, else from a key that it stands in, else its default.

        None where there is none. Raises CorruptItem where what stands there does not fit, or where a field that
        is not optional has none.
        """
        if field.name in self._read_from_keys and (found := self.value_in_keys(item, field)) is not None:
            return found
        stored = cast(Value, at_path(item, field.attribute))
        try:
            if stored is not None:
                return decode(field.type, stored)
        except ValueError as error:
            raise CorruptItem(
                f"{self.name}.{field.name} of an item is no {field.type.name}: it is {error}"
            ) from None
        value = self.value_in_keys(item, field)
        if value is None and field.has_default:
            value = field.default
        if value is None and not field.optional:
            raise CorruptItem(f"{self.name}.{field.name} is missing in an item")
        return value

    def reader(self, field: Field) -> Callable[[Mapping[str, Value]], Any]:
        """What reads the value of a field from items, as `value` does."""
        found = self._readers.get(field)
        if found is None:
            found = self._readers[field] = field_reader(self, field)
        return found

    @cached_property
    def _readers(self) -> dict[Field, Callable[[Mapping[str, Value]], Any]]:
        return {}

    def reads_from_key(self, field: Field) -> bool:
        """Whether the field's attribute is a key, whose text says more than the field, or says it in text."""
        return field.name in self._read_from_keys

    def value_in_keys(self, item: Mapping[str, Value], field: Field) -> Any:
        """The value of a field from a key that it stands in; None where there is none."""
        for read, value in self.key_readers(field):
            text = read(item)
            if text is not None:
                return value(text)
        return None

    def key_readers(
        self, field: Field
    ) -> Sequence[tuple[Callable[[Mapping[str, Value]], str | None], Callable[[str], Any]]]:
        """For each key that the field stands in, what reads its text there, and what makes its value of that."""
        return self._key_readers.get(field.name, ())

    @cached_property
    def _key_readers(self) -> dict[str, list[tuple[Callable[[Mapping[str, Value]], str | None], Any]]]:
        """For each field that stands in keys, what reads its text there, and what makes its value of that."""
        return {
            name: [(slot_reader(keys, slot.name), slot.text.value) for keys, slot in places]
            for name, places in self._slots_of_fields.items()
        }

    @cached_property
    def _read_from_keys(self) -> frozenset[str]:
        """The fields whose attribute is a key: its text says more than the field, or says it in text."""
        keys = {attribute.name for keys in self.keys.values() for attribute in keys.attributes}
        return frozenset(
            name
            for name in self._slots_of_fields
            if len(self.fields[name].attribute) == 1 and self.fields[name].attribute[0] in keys
        )

    @cached_property
    def _slots_of_fields(self) -> dict[str, list[tuple[Keys, Slot]]]:
        """For each field that stands in a key in a way that can be read back, where."""
        found: dict[str, list[tuple[Keys, Slot]]] = {}
        for keys in self.keys.values():
            for slot in keys.slots:
                if len(slot.path) == 1 and slot.path[0] in self.fields and not slot.lossy:
                    found.setdefault(slot.path[0], []).append((keys, slot))
        return found

    def identity_value(self, identity: Sequence[str], field: str) -> Any:
        """The value of a key field, of an identity's texts; None for an optional one that is absent."""
        number, value_of = self._values_of_identity[field]
        return value_of(identity[number])

    def place_in_identity(self, field: str) -> tuple[int, Callable[[str], Any]]:
        """Which text of an identity tells a key field, and what makes its value of that."""
        return self._values_of_identity[field]

    @cached_property
    def _values_of_identity(self) -> dict[str, tuple[int, Callable[[str], Any]]]:
        """For each key field which text of the identity tells it, and what makes it of that."""
        found: dict[str, tuple[int, Callable[[str], Any]]] = {}
        for number, slot in enumerate(self.identity):
            [name, *inner] = slot.path
            if inner or name in found:
                continue
            if self._is_rendered_text(slot):
                found[name] = number, lambda text: text or None
            elif not slot.lossy:
                found[name] = number, text_reader(slot)
        return found

    def identity_end(self, identity: Iterable[str], end: End) -> tuple[str, ...] | None:
        """The identity of the node at an end that stands in the key, of an identity's texts; None for none."""
        return self.end_reader(end)(tuple(identity))

    def end_reader(self, end: End) -> Callable[[tuple[str, ...]], tuple[str, ...] | None]:
        """What gives the identity of the node at an end that stands in the key, as `identity_end` does."""
        return self._end_readers[end.name]

    @cached_property
    def _end_readers(self) -> dict[str, Callable[[tuple[str, ...]], tuple[str, ...] | None]]:
        """For each end that the key tells, what makes its identity of the key's texts."""
        return {name: end_reader(sources) for name, sources in self._sources_of_ends.items()}

    @cached_property
    def _sources_of_ends(self) -> dict[str, list[tuple[int, Callable[[str], str] | None]]]:
        """For each end that the key tells, where each part of its identity stands there, and what writes it as the end
        has it; None where it is written so."""
        numbers = {slot: number for number, slot in enumerate(self.identity)}
        by_path = {slot.path: slot for slot in self.identity if not slot.lossy}
        found: dict[str, list[tuple[int, Callable[[str], str] | None]]] = {}
        for name in self.key_fields & self.ends.keys():
            wanted = [slot.under(name) for slot in self.ends[name].identity]
            sources = [own if own in numbers else by_path[own.path] for own in wanted]
            found[name] = [
                (
                    numbers[source],
                    None if source.text == own.text else partial(source.rewritten, wanted=own),
                )
                for source, own in zip(sources, wanted, strict=True)
            ]
        return found

    def completed(self, item: Item) -> Item:
        """The item with the attributes that it has in keys alone, so that a condition can be decided."""
        whole = dict(item)
        for name in self._slots_of_fields:
            field = self.fields[name]
            is_missing = name in self._read_from_keys or at_path(item, field.attribute) is None
            if is_missing and len(field.attribute) == 1:
                value = self.value_in_keys(item, field)
                if value is not None:
                    whole[field.attribute[0]] = encode(field.type, value)
        for end in self.ends.values():
            for path, attribute in end.attributes.items():
                slot = next(slot for slot in end.identity if slot.path == path)
                if at_path(item, attribute) is None and len(attribute) == 1 and not slot.lossy:
                    text = self._other_key_text(item, slot.under(end.name))
                    if text is not None:
                        whole[attribute[0]] = encode(slot.text.type, slot.text.value(text))
        return whole

    @cached_property
    def attributes_in_keys(self) -> frozenset[str]:
        """The attributes of fields and ends that an item may have in a key alone."""
        fields = {self.fields[name].attribute[0] for name in self._slots_of_fields}
        in_keys = {slot.path for keys in self.keys.values() for slot in keys.slots}
        ends = {
            attribute[0]
            for end in self.ends.values()
            for path, attribute in end.attributes.items()
            if (end.name, *path) in in_keys
        }
        return frozenset(fields | ends)

    def instance(self, item: Mapping[str, Value], names: Iterable[str] | None = None) -> Any:
        """An object of the model's class that has the named fields (None: all) of the item.

        An end is an object of its node's class with the key fields alone; where only reading tells the class, it is
        of none of them.
        """
        made: Any = object.__new__(self.cls)
        for name in self.fields.keys() | self.ends.keys() if names is None else names:
            if name in self.fields:
                setattr(made, name, self.value(item, self.fields[name]))
            else:
                end = self.ends[name]
                identity = self.end_identity(item, end)
                setattr(made, name, self._bare_node(end, identity))
        return made

    def bare_instance(self, identity: Iterable[str]) -> Any:
        """An object of the model's class that has the key fields alone."""
        made: Any = object.__new__(self.cls)
        texts = tuple(identity)
        for name in self.key_fields:
            if name in self.ends:
                end = self.ends[name]
                setattr(made, name, self._bare_node(end, self.identity_end(texts, end)))
            else:
                setattr(made, name, self.identity_value(texts, name))
        return made

    def _bare_node(self, end: End, identity: tuple[str, ...] | None) -> Any:
        if identity is None:
            return None
        try:
            members, own = end.nodes(identity)
        except ValueError:
            raise CorruptItem(f"{self.name}.{end.name} of an item is no key of {end.type_name}") from None
        made = members[0].bare_instance(own)
        return made if len(members) == 1 else SimpleNamespace(**vars(made))
