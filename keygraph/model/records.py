"""A record type: a declared kind of item, with its keys, and how its fields and ends are read from items.

`keygraph.resolve` makes record types with their ends, lists and methods, which never change afterwards. What is read
from many items (`read_identity`, `reader`, `end_reader`) is a function that is prepared once.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from dataclasses import field as dataclass_field
from functools import cached_property, partial
from typing import Any, Literal, NamedTuple

from keygraph.access.claims import Viewer
from keygraph.access.grants import TypeAccess
from keygraph.declare import declaration
from keygraph.declare.decorators import Context
from keygraph.dynamo.conditions import Condition, Path, at_path, put_at_path
from keygraph.dynamo.items import Item, Value
from keygraph.dynamo.table import Key, Table
from keygraph.errors import CorruptItem
from keygraph.keys.formats import Format
from keygraph.keys.template import FieldPath, Slot
from keygraph.keys.types import FieldType, encode, written_as
from keygraph.keys.union import NodeText
from keygraph.model import record_keys
from keygraph.model.comparisons import WriteRule, of_either, with_empty_text
from keygraph.model.fields import (
    STORED_AS_READ,
    Field,
    ValueReader,
    field_reader,
    in_either,
    in_present_attributes,
    without_empty_text,
)
from keygraph.names import end_names, plural, singular, snake


class Place(NamedTuple):
    """Where an item has a field or a part of an end, unless only a key has it."""

    path: FieldPath
    attribute: Path
    type: FieldType


@dataclass(eq=False)
class RecordType:
    """A declared kind of item. Compared by identity; a graph has one of each name."""

    name: str
    cls: type
    kind: Literal["node", "edge", "record"]
    type_value: declaration.TypeValue
    """The value of the type attribute in its items, or the values of several attributes; None if they have none."""
    is_virtual: bool
    description: str | None
    table: Table
    item_bytes: int
    """The size of an item, in bytes, for the cost bound of an operation."""
    notes: declaration.Notes = declaration.NO_NOTES
    own_notes: dict[str, declaration.Notes] = dataclass_field(default_factory=dict)
    """The notes on its fields, ends, lists and methods."""
    is_mirrored: bool = False
    """Whether the same edge with its ends exchanged is an item too."""
    counterpart: str | None = None
    """The other edge type that has an item for each edge too, as declared."""
    gathers: bool = False
    """Whether a node's partition is small, so that the node is read together with its lists there."""
    declared_writes: tuple[declaration.WriteKind, ...] = ()
    """The mutations that were declared for its records, and whether they have plurals."""
    rules: tuple[WriteRule, ...] = ()
    """Conditions on its records after every write."""
    access: TypeAccess | None = None
    """Who may see and change its records; None if the graph has no rules."""
    fields: dict[str, Field] = dataclass_field(default_factory=dict)
    ends: dict[str, End] = dataclass_field(default_factory=dict)
    list_ends: dict[str, End] = dataclass_field(default_factory=dict)
    """The ends of the fields that are lists or sets of nodes: each member is what the attribute of an end is."""
    lists: dict[str, DeclaredList] = dataclass_field(default_factory=dict)
    walks: dict[str, DeclaredWalk] = dataclass_field(default_factory=dict)
    methods: dict[str, Method] = dataclass_field(default_factory=dict)
    order: list[str] = dataclass_field(default_factory=list)
    """The names of fields, ends, lists, walks and methods in the order of their declaration."""
    keys: dict[str | None, record_keys.Keys] = dataclass_field(default_factory=dict)
    """Its keys in the table (None) and in each index that it is in."""
    _readers: dict[Field, ValueReader] = dataclass_field(default_factory=dict, init=False, repr=False)

    def __repr__(self) -> str:
        return f"<{self.kind} {self.name}>"

    def deprecated(self, name: str) -> str | None:
        """Returns why clients should not use a field, end, list or method: its own reason, or its only node type's."""
        own = self.own_notes.get(name, declaration.NO_NOTES).deprecated
        end = self.ends.get(name)
        if own is not None or end is None or len(end.members) > 1:
            return own
        return end.members[0].notes.deprecated

    @cached_property
    def is_node(self) -> bool:
        return self.kind == "node"

    @property
    def table_keys(self) -> record_keys.Keys:
        return self.keys[None]

    @cached_property
    def writes(self) -> tuple[declaration.WriteName, ...]:
        """The mutations of its records: none moves a record whose key has no field in it."""
        has_own_key = any(slot.path[0] in self.fields or slot.path[0] in self.ends for slot in self.identity)
        return tuple(
            name for name in self.declared_writes if name != "bulk" and (name != "move" or has_own_key)
        )

    @property
    def has_bulk_writes(self) -> bool:
        """Whether each of its mutations has a plural, which takes several inputs."""
        return "bulk" in self.declared_writes

    @cached_property
    def version(self) -> Field | None:
        """The field that counts how often a record was written."""
        return next((field for field in self.fields.values() if field.kept == "version"), None)

    @cached_property
    def expiry(self) -> Field | None:
        """The field that says when a record expires."""
        return next((field for field in self.fields.values() if field.is_expiry), None)

    @cached_property
    def slots(self) -> dict[str, Slot]:
        """Every slot of its keys, by name."""
        return {slot.name: slot for keys in self.keys.values() for slot in keys.slots}

    @cached_property
    def identity(self) -> tuple[Slot, ...]:
        """The slots of the table key, without the shard: a node is identified by their texts."""
        return tuple(slot for slot in self.table_keys.slots if not slot.is_shard)

    @property
    def every_end(self) -> tuple[End, ...]:
        """The ends, and those of lists and sets of nodes."""
        return (*self.ends.values(), *self.list_ends.values())

    @cached_property
    def key_ends(self) -> tuple[str, ...]:
        """The ends in the table key, in order; an edge has two."""
        return tuple({slot.path[0]: None for slot in self.identity if slot.path[0] in self.ends})

    @cached_property
    def key_fields(self) -> frozenset[str]:
        """The fields and ends that the table key alone determines, so that a node is not read for them."""
        certain = {slot.path for slot in self.identity if not slot.lossy or self._is_rendered_text(slot)}
        return frozenset(path[0] for path in certain if len(path) == 1).union(
            end.name
            for end in self.ends.values()
            if all(self.source(slot.under(end.name), self.identity) for slot in end.identity)
        )

    def _is_rendered_text(self, slot: Slot) -> bool:
        """Returns whether the field is the text in a key: a virtual node has no item that could hold more."""
        return self.is_virtual and slot.text.lossy and slot.text.type.is_text

    def leaf_name(self, path: FieldPath) -> str:
        """Returns the snake-case name of a field or of an end's key field, as in arguments and attributes.

        `end_names` makes an end's; the key of a node of one of several types is `<end>_id`.
        """
        name, *inner = path
        return self.ends[name].leaf_name(tuple(inner)) if name in self.ends else name

    def attribute_of(self, path: FieldPath) -> Path | None:
        """Returns the attribute that holds the field of a placeholder; None if no attribute does."""
        name, *inner = path
        if name in self.fields:
            return self.fields[name].attribute
        return self.ends[name].attributes.get(tuple(inner)) if name in self.ends else None

    def names_at(self, attribute: Path) -> tuple[str, ...]:
        """Returns the fields and ends that are stored in an attribute."""
        return tuple(dict.fromkeys(place.path[0] for place in self.places if place.attribute == attribute))

    def attribute_type(self, slot: Slot) -> FieldType:
        """Returns the type of the attribute that holds the field of a placeholder."""
        end = self.ends.get(slot.path[0])
        return slot.text.type if end is None else end.attribute_type(slot)

    def is_same(self, one: FieldPath, other: FieldPath) -> bool:
        """Returns whether two placeholders name one field, or two that are stored in one attribute in the same form."""
        attribute = self.attribute_of(one)
        if one == other or attribute is None:
            return one == other
        forms = [self.ends[path[0]].written if path[0] in self.ends else None for path in (one, other)]
        return attribute == self.attribute_of(other) and forms[0] == forms[1]

    def source(self, wanted: Slot, slots: Iterable[Slot]) -> Slot | None:
        """Returns the slot that determines the text of another, as it is or rewritten; None if none does."""
        found = [slot for slot in slots if self.is_same(slot.path, wanted.path)]
        usable = [slot for slot in found if slot.text == wanted.text and slot.computed == wanted.computed]
        if not wanted.computed:
            usable += [slot for slot in found if not slot.lossy]
        return usable[0] if usable else None

    def texts(self, identity: Iterable[str]) -> dict[str, str | None]:
        """Returns the texts of an identity by slot; an absent optional text is empty there, and None here."""
        return {name: text or None for name, text in zip(self._identity_names, identity, strict=True)}

    def partition_text(self, identity: Iterable[str]) -> str:
        """Returns the partition key of the node with this identity."""
        return self.table_keys.partition.render(self.texts(identity)) or ""

    def needs_of(self, slot: Slot) -> tuple[str, ...]:
        """Returns the fields and ends that determine the value of a slot of its keys."""
        return (
            self.methods[slot.path[0]].needs or () if slot.computed and len(slot.path) == 1 else slot.path[:1]
        )

    # --- Numbers that are spread over shards ------------------------------------------------------------

    @cached_property
    def spread(self) -> tuple[Field, ...]:
        """The counts, sums and averages that are spread over shards: parts of them are in items of their own."""
        return tuple(field for field in self.fields.values() if field.shards)

    @cached_property
    def shard_count(self) -> int:
        """The number of these items (`keygraph.model.node_shards`), in addition to the node's own; 0 if nothing is spread."""
        return max((field.shards for field in self.spread), default=0)

    # --- Identities -----------------------------------------------------------------------------------

    @cached_property
    def _identity_names(self) -> record_keys.Texts:
        return tuple(slot.name for slot in self.identity)

    @cached_property
    def read_identity(self) -> record_keys.IdentityReader:
        """A function that reads the texts that identify an item; None if its table key is not of this type."""
        return self._read_own_identity if any(self._own_texts) else self._read_key

    def identity_reader(self, required: Mapping[str, Value]) -> record_keys.IdentityReader:
        """Returns `read_identity` for items with these attributes; it returns None for others."""
        if not any(self._own_texts):
            return self.table_keys.reader(self._identity_names, required)
        read, of_type = self.read_identity, required.items()
        return lambda item: read(item) if of_type <= item.items() else None

    @cached_property
    def _read_key(self) -> record_keys.IdentityReader:
        return self.table_keys.reader(self._identity_names)

    @cached_property
    def write_keys(self) -> list[Callable[[record_keys.Texts], Key]]:
        """The functions that make the table keys of an identity, one for each shard; none if that takes more than inserting
        its texts."""
        return self.table_keys.writers(self._identity_names)

    @cached_property
    def write_key(self) -> Callable[[record_keys.Texts], Key] | None:
        """The only one of them."""
        return self.write_keys[0] if len(self.write_keys) == 1 else None

    @cached_property
    def places_in_identity(self) -> dict[str, tuple[int, Callable[[str], Any]]]:
        """For each field that the key determines, the index of its text in an identity and a function for its value.

        The value is None for an optional field that is absent.
        """
        found: dict[str, tuple[int, Callable[[str], Any]]] = {}
        for number, slot in enumerate(self.identity):
            [name, *inner] = slot.path
            if inner or name in found:
                continue
            if self._is_rendered_text(slot) or (slot.text.is_plain_text and not slot.lossy):
                found[name] = number, record_keys.text_itself
            elif not slot.lossy:
                found[name] = number, partial(record_keys.optional_value, slot.text.value)
        return found

    @cached_property
    def end_readers(self) -> dict[str, Callable[[record_keys.Texts], record_keys.Texts | None]]:
        """For each end in the key, a function from an identity's texts to the identity of the node there, or None."""
        numbers = {slot: number for number, slot in enumerate(self.identity)}
        found = {}
        for name in self.key_fields & self.ends.keys():
            wanted = [slot.under(name) for slot in self.ends[name].identity]
            sources = [(source, own) for own in wanted if (source := self.source(own, self.identity))]
            found[name] = record_keys.texts_reader(
                [(numbers[source], source.rewriter(own)) for source, own in sources]
            )
        return found

    # --- Texts that a key alone does not determine --------------------------------------------------------

    def text_reader(self, slot: Slot) -> record_keys.TextReader | None:
        """Returns a function that reads a slot's text from its field's attribute; it returns None if no text fits.

        None if only a key holds it.
        """
        attribute = self.attribute_of(slot.path)
        # A key holds more than the field, unless it is the field.
        parts = [part for keys in self.keys.values() for part in keys.parts if len(part[1].tokens) > 1]
        if attribute is None or attribute[0] in {key.name for key, _ in parts} or slot.computed:
            return None
        return record_keys.lenient_reader(attribute, slot, self.attribute_type(slot))

    @cached_property
    def attributes_of_identity(self) -> frozenset[str]:
        """The attributes that decide the parts of the identity that the table's key leaves ambiguous."""
        return frozenset(
            attribute[0]
            for slot, read in zip(self.identity, self._own_texts, strict=True)
            if read and (attribute := self.attribute_of(slot.path))
        )

    @cached_property
    def _own_texts(self) -> list[record_keys.TextReader | None]:
        uncertain = {name for template in self.table_keys.templates for name in template.uncertain}
        return [self.text_reader(slot) if slot.name in uncertain else None for slot in self.identity]

    def _read_own_identity(self, item: Mapping[str, Value]) -> record_keys.Texts | None:
        """Returns the identity in the table's key, with the attributes' values if they make the same key."""
        texts = self._read_key(item)
        if texts is None:
            return None
        own = tuple(
            [(read and read(item)) or text for read, text in zip(self._own_texts, texts, strict=True)]
        )
        if own == texts:
            return texts
        known = self.texts(own)
        if not any(slot.computed for slot in self.identity):
            rendered = {**(self.table_keys.parse(item) or {}), **known}
            return own if self.table_keys.rendered(rendered) == self.table.key_of(item) else texts
        # The text of a method is what the attributes' values leave of the key.
        known = {slot.name: known[slot.name] for slot in self.identity if not slot.computed}
        for template, key in zip(self.table_keys.templates, self.table.key_of(item), strict=False):
            left = template.with_texts(known).parse(str(key))
            if left is None:
                return texts
            known |= left
        return tuple([known[slot.name] or "" for slot in self.identity])

    # --- Fields of items ------------------------------------------------------------------------------

    def reader(self, field: Field) -> ValueReader:
        """Returns a function that reads a field's value from items: from its attribute, else from a key, else its
        default. It returns None if there is no value, and raises CorruptItem if the value does not fit, or if a field
        that is not optional has none."""
        found = self._readers.get(field)
        if found is None:
            found = self._readers[field] = field_reader(
                field,
                self.name,
                self._key_readers.get((field.name,), lambda item: None),
                is_key=field.name in self._read_from_keys,
            )
            if field.former is not None:
                found = self._readers[field] = in_either(found, field)
            if field.attribute in self.empty_is_missing:
                found = self._readers[field] = without_empty_text(found, field.attribute)
        return found

    def readable_value(self, item: Item, field: Field, otherwise: object = None) -> Any:
        """Returns a field's value in an item; `otherwise` if it cannot be read, which is reported elsewhere."""
        try:
            return self.reader(field)(item)
        except CorruptItem:
            return otherwise

    def plain_attribute(self, field: Field) -> tuple[str, type] | None:
        """Returns the attribute that holds the field's value, with its Python type; None if there is none."""
        expected, name = STORED_AS_READ.get(field.type.kind), self.first_attribute(field)
        is_other = field.type.written or field.attribute in self.empty_is_missing
        return None if expected is None or name is None or is_other else (name, expected)

    def first_attribute(self, field: Field) -> str | None:
        """Returns the attribute that holds the field's value if it is present; None if a key or a map comes first."""
        is_alone = len(field.attribute) == 1 and field.name not in self._read_from_keys
        return field.attribute[0] if is_alone else None

    @cached_property
    def empty_is_missing(self) -> frozenset[Path]:
        """The attributes in which an empty text is no value: those of a part of a key that may be absent, or of an end."""
        parts = [slot for keys in self.keys.values() for slot in keys.slots if slot.name in keys.optional]
        ends = [end for end in self.ends.values() if end.optional]
        parts += [slot.under(end.name) for end in ends for slot in end.identity]
        own = {(name,) for name in self.key_attributes}
        attributes = (self.attribute_of(slot.path) for slot in parts if self.attribute_type(slot).is_text)
        return frozenset(each for each in attributes if each is not None and each not in own)

    def as_read(self, condition: Condition, attribute: Path) -> Condition:
        """Returns the condition on one attribute, as values are read from it."""
        if attribute in self.empty_is_missing:
            condition = with_empty_text(condition, attribute)
        former = self.former.get(attribute)
        return condition if former is None else of_either(condition, attribute, former)

    @cached_property
    def former(self) -> Mapping[Path, Path]:
        """The former attributes of fields, by their present ones."""
        return {each.attribute: each.former for each in self.fields.values() if each.former is not None}

    def current(self, item: Item) -> Item:
        """Returns the item with all values in the present attributes of their fields."""
        return dict(in_present_attributes(item, self.fields.values())) if self.former else item

    def attributes_read(self, field: Field) -> tuple[str, ...]:
        """Returns the attributes that decide what `reader` returns for a field."""
        attributes = [
            attribute.name
            for keys in self.keys.values()
            if any(self.is_same(slot.path, (field.name,)) for slot in keys.slots)
            for attribute in keys.attributes
        ]
        is_read = (field.name,) in self._key_readers
        own = [path[0] for path in field.attributes]
        return (*dict.fromkeys((*own, *(attributes if is_read else ()))),)

    @cached_property
    def keyed_names(self) -> frozenset[str]:
        """The fields and ends that keys of an item can hold, and whose attributes are not keys themselves."""
        keys, readers = self.key_attributes, self._key_readers
        unsaid = {
            place.path[0] for place in self.places if place.path not in readers or place.attribute[0] in keys
        }
        return frozenset((*self.fields, *self.ends)) - unsaid

    @cached_property
    def key_attributes(self) -> frozenset[str]:
        """The attributes that are its keys, in the table and in every index that it is in."""
        return frozenset[str]().union(*(keys.names for keys in self.keys.values()))

    @cached_property
    def places(self) -> Sequence[Place]:
        """Where items have each field, and each part of an end."""
        found = [
            Place((field.name,), attribute, field.type)
            for field in self.fields.values()
            for attribute in field.attributes
        ]
        for end in self.ends.values():
            for slot in end.identity:
                attribute, type_ = end.attributes[slot.path], end.attribute_type(slot)
                found.append(Place((end.name, *slot.path), attribute, type_))
        return found

    @cached_property
    def _key_readers(self) -> dict[FieldPath, ValueReader]:
        """For each path that keys hold so that it can be read back, a function that reads its value, or None."""
        slots = [(keys, slot) for keys in self.keys.values() for slot in keys.slots]
        sources = [
            (path, self.attribute_of(path), keys, slot)
            for keys, slot in slots
            if not slot.lossy and not slot.is_shard
            for path in dict.fromkeys(
                (slot.path, *(each.path for each in self.places if self.is_same(slot.path, each.path)))
            )
            if self.reads_from(keys, path)
        ]
        return record_keys.value_readers(sources)

    def reads_from(self, keys: record_keys.Keys, path: FieldPath) -> bool:
        """Returns whether the field of a placeholder is read from these keys if an item has no attribute for it.

        An optional field with an attribute of its own has no value then, whatever is left in the key of an index.
        """
        declared = self.fields.get(path[0]) or self.ends.get(path[0])
        if keys.index is None or declared is None or not declared.optional or declared.in_key:
            return True
        return keys.attribute_for(self.attribute_of(path)) is not None

    @cached_property
    def _read_from_keys(self) -> frozenset[str]:
        """The fields whose attribute is a key: its text holds more than the field, or holds it as text."""
        return frozenset(
            name
            for name, field in self.fields.items()
            if field.attribute in self._keys and (name,) in self._key_readers
        )

    @cached_property
    def _keys(self) -> frozenset[Path]:
        return frozenset((name,) for name in self.key_attributes)

    # --- Ends of items --------------------------------------------------------------------------------

    def end_identity(self, item: Mapping[str, Value], end: End) -> record_keys.Texts | None:
        """Returns the identity of the node at that end, from the item's keys or attributes; None for none.

        The table's key comes first, unless ambiguous, then attributes, then the indexes' keys. A part that is optional
        in the node's key may be absent.
        """
        texts: list[str] = []
        for slot, own, read_key, read_attribute in self._slots_of_ends[end.name]:
            text = (read_key and read_key(item)) or read_attribute(item)
            if not text:
                read_value = self._key_readers.get(own.path)
                value = read_value(item) if read_value else None
                if value is None and slot.name not in end.optional_parts:
                    return None
                text = "" if value is None else own.text.render(value)
            texts.append(text)
        return tuple(texts) if any(texts) else None

    def readable_end(self, item: Item, end: End) -> record_keys.Texts | None:
        """Returns the same; None also for an end that cannot be read, which is reported elsewhere."""
        try:
            return self.end_identity(item, end)
        except CorruptItem:
            return None

    @cached_property
    def _slots_of_ends(
        self,
    ) -> dict[str, list[tuple[Slot, Slot, record_keys.TextReader | None, record_keys.TextReader]]]:
        """For each end the slots of its identity, as seen from the node's type and from this one, with the functions
        that read them from the table's key and from attributes."""
        return {name: [self._slot_of(end, slot) for slot in end.identity] for name, end in self.ends.items()}

    def _slot_of(
        self, end: End, slot: Slot
    ) -> tuple[Slot, Slot, record_keys.TextReader | None, record_keys.TextReader]:
        own, problem = slot.under(end.name), partial(self.no_key, end)
        attribute, read_key = end.attributes[slot.path], self._text_reader(own)
        read = record_keys.attribute_reader(attribute, slot, end.attribute_type(slot), problem)
        read_value = self._key_readers.get(own.path)
        if read_key is None and read_value and attribute in self._keys and not slot.text.is_plain_text:
            # The attribute of a key of type S holds a number as its text.
            read_key = partial(_rendered, read_value, own)
        return slot, own, read_key, read

    def _text_reader(self, wanted: Slot) -> record_keys.TextReader | None:
        """Returns a function that reads a slot's text from the table's key; None if the key does not hold it."""
        source = self.source(wanted, self.identity)
        if source is None:
            return None
        place, read = self.identity.index(source), self.read_identity
        if self._own_texts[place] is None:
            place, read = 0, self.table_keys.reader((source.name,))
        return record_keys.text_reader(read, place, source.rewriter(wanted))

    # --- Whole items ----------------------------------------------------------------------------------

    def completed(self, item: Item) -> Item:
        """Returns the item with the attributes that only its keys hold, so that a condition can be decided."""
        whole = dict(item)
        for path, attribute, type_ in self._stored_in_keys:
            is_missing = attribute in self._keys or at_path(item, attribute) is None
            value = self._key_readers[path](item) if is_missing else None
            if value is not None:
                put_at_path(whole, attribute, encode(type_, value))
        return whole

    @cached_property
    def _stored_in_keys(self) -> list[Place]:
        """The places of fields and ends that an item may have in a key alone."""
        former = {*self.former.values()}
        return [
            place
            for place in self.places
            if place.path in self._key_readers and place.attribute not in former
        ]

    @cached_property
    def index_keys_with(self) -> Mapping[Path, frozenset[Path]]:
        """For each such attribute, the keys of indexes that may hold its value."""
        return {
            attribute: frozenset(
                (key.name,)
                for keys in self.keys.values()
                if keys.index and any(self.is_same(slot.path, path) for slot in keys.slots)
                for key in keys.attributes
            )
            for path, attribute, _ in self._stored_in_keys
        }

    @cached_property
    def attributes_in_keys(self) -> frozenset[str]:
        """The attributes of fields and ends that an item may have in a key alone."""
        return frozenset(place.attribute[0] for place in self._stored_in_keys)

    def member_identities(
        self, item: Mapping[str, Value], end: End, part: slice = slice(None)
    ) -> list[record_keys.Texts | CorruptItem] | None:
        """Returns the identities of a part of the nodes that a list or set names, a set's sorted; None if there is none.

        In place of a member that is no key of a node, its error.
        """
        values = self.reader(self.fields[end.name])(item)
        if values is None:
            return None
        [slot], found = end.identity, list[record_keys.Texts | CorruptItem]()
        for value in values if isinstance(values, set) else values[part]:
            try:
                found.append((slot.text.render(value),))
            except ValueError:
                found.append(self.no_key(end))
        return sorted(found, key=str)[part] if isinstance(values, set) else found

    def readable_members(self, item: Item, end: End) -> Iterator[tuple[int, record_keys.Texts]]:
        """Yields the identities that can be read of the nodes that a list or set names, with their numbers in it."""
        with suppress(CorruptItem):
            for number, each in enumerate(self.member_identities(item, end) or ()):
                if not isinstance(each, CorruptItem):
                    yield number, each

    def no_key(self, end: End) -> CorruptItem:
        """Returns the error of an item whose end names no node."""
        return CorruptItem(f"{self.name}.{end.name} of an item is not a key of {end.type_name}")


def _rendered(read: ValueReader, slot: Slot, item: Item) -> str | None:
    value = read(item)
    return None if value is None else slot.text.render(value)


@dataclass(frozen=True, eq=False)
class End:
    """A field whose annotation is a node type or a union of node types: the item's reference to a node.

    An end's identity is the node's own if there is one type, or if the keys of all are alike. Else it is the text of
    the partition key, which determines the type.
    """

    name: str
    members: tuple[RecordType, ...]
    """The types that the node can be of, in the order of the annotation."""
    optional: bool
    attributes: Mapping[FieldPath, Path]
    """For each part of the end's identity, by its path in the node, the attribute that holds it."""
    description: str | None
    text: NodeText | None = None
    """The text of the node in a key if the keys of the members differ, or if an attribute holds several key fields."""
    written: Format | None = None
    """How its only attribute writes the node's only key field, if it holds the whole partition key."""
    stored: declaration.StoredAs | None = None
    """Where the item was declared to hold the node's key."""
    is_list: bool = False
    """Whether it is the end of each member of a list or set."""

    @property
    def in_key(self) -> bool:
        """Whether it is held by a key and by no attribute."""
        return self.stored is not None and self.stored.in_key

    def attribute_type(self, slot: Slot) -> FieldType:
        """Returns the type of the attribute that holds a part of its identity."""
        return slot.text.type if self.written is None else written_as(slot.text.type, self.written)

    @property
    def type_name(self) -> str:
        """The types in words, for messages."""
        return " or ".join(member.name for member in self.members)

    @property
    def alike(self) -> list[tuple[RecordType, ...]]:
        """The members in groups that have one key each."""
        if self.text is None:
            return [self.members]
        names = (variant.members for variant in self.text.variants)
        return [tuple(member for member in self.members if member.name in group) for group in names]

    def leaf_name(self, path: FieldPath) -> str:
        """Returns the name of a key field of the node in the type that has the end, in snake case."""
        if self._attribute_name is not None:
            return self._attribute_name
        one = singular(self.name) if self.is_list else self.name
        if self.text is not None and not path:
            found = f"{one}_id"
        else:
            leaf = self.members[0].leaf_name(path)
            found = self._leaf_names.get(leaf) or f"{one}_{leaf}"
        return plural(found) if self.is_list else found

    @cached_property
    def _attribute_name(self) -> str | None:
        """The name of its attribute in snake case, if that was named for the node's only key field:
        `stored(path="path")`. None if it is no name in GraphQL."""
        named = {} if self.stored is None or self.text is not None else self.stored.attributes
        if len(named) != 1 or len(self.members[0].identity) != 1:
            return None
        name = snake(*named.values())
        return name if name.isascii() and name.isidentifier() else None

    @cached_property
    def _leaf_names(self) -> Mapping[str, str]:
        """The names of the node's key fields here; with only one node type, without its name."""
        node = self.members[0]
        own_name = snake(node.name) if len(self.members) == 1 else ""
        one = singular(self.name) if self.is_list else self.name
        return end_names(one, own_name, [node.leaf_name(slot.path) for slot in node.identity])

    @cached_property
    def is_ambiguous(self) -> bool:
        """Whether members of several types can have the same key."""
        return any(len(members) > 1 for members in self.alike)

    @cached_property
    def identity(self) -> tuple[Slot, ...]:
        """The slots of the end's identity, as seen from the node's type; the node itself is at the empty path."""
        return self.members[0].identity if self.text is None else (Slot((), self.text),)

    @cached_property
    def optional_parts(self) -> frozenset[str]:
        """The slots of the identity that may be absent."""
        return self.members[0].table_keys.optional if self.text is None else frozenset()

    def identity_of(self, record: RecordType, identity: tuple[str, ...]) -> tuple[str, ...]:
        """Returns the end's identity for a node of a member type."""
        if self.text is None:
            return identity
        return (record.partition_text(identity),)

    def nodes(self, identity: tuple[str, ...]) -> tuple[tuple[RecordType, ...], tuple[str, ...]]:
        """Returns the types that the node with this identity of the end can be of, and its own identity.

        They are several if the keys of members are alike. Raises ValueError if it is not a key of a member.
        """
        if self.text is None:
            return self.members, identity
        variant, texts = self.text.read(*identity)
        members = tuple(member for member in self.members if member.name in variant.members)
        return members, tuple(texts.get(slot.name, "") for slot in members[0].identity)


@dataclass(frozen=True, eq=False)
class DeclaredList:
    """A field annotated `Many[X]` or `One[X]`."""

    name: str
    of: tuple[RecordType, ...]
    """The types of its items: usually one."""
    is_one: bool
    options: declaration.ListOptions
    description: str | None


@dataclass(frozen=True)
class DeclaredWalk:
    """A field annotated `Reach[X]` or `Ranked[X]`."""

    name: str
    of: tuple[RecordType, ...]
    options: declaration.WalkOptions
    description: str | None


@dataclass(frozen=True, eq=False)
class Method:
    """A method that is a field."""

    name: str
    function: Any
    needs: tuple[str, ...] | None
    signature: inspect.Signature
    hints: Mapping[str, Any]
    types: tuple[FieldType, ...]
    """The types of its result and arguments, if they are not nodes."""
    nodes: tuple[RecordType, ...]
    """The types of the node that it returns, or of the nodes in a list; none if it returns something else."""
    is_list: bool
    """Whether it returns a list of nodes."""
    description: str | None

    @cached_property
    def injected(self) -> Mapping[str, Any]:
        """The parameters that receive the viewer or the context of the operation, which are not arguments of the field,
        with their annotations."""
        names = [*self.signature.parameters][1:]
        return {name: self.hints[name] for name in names if self.hints[name] in (Viewer, Context)}

    @property
    def is_plain(self) -> bool:
        """Whether its value depends on the record alone, and is there at once."""
        return len(self.signature.parameters) == 1 and not inspect.iscoroutinefunction(self.function)

    @property
    def parameters(self) -> Sequence[str]:
        """Its other parameters, without `self`."""
        return [name for name in [*self.signature.parameters][1:] if name not in self.injected]
