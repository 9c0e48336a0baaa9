"""Mirrors and counterparts: the other item of an edge, and its contents.

A mirrored edge (`mirror=True`) has a second item of the same type with its ends exchanged. A counterpart is an edge of
another type between the same two nodes, with the fields that both declare. A `Correspondence` matches the ends and
fields of the two types; it then makes the other item of any item.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from functools import cached_property
from typing import cast

from keygraph.dynamo.conditions import Path, at_path, put_at_path
from keygraph.dynamo.items import Item, Value
from keygraph.errors import KeygraphError
from keygraph.keys.template import Slot
from keygraph.keys.types import encode
from keygraph.model.instances import value_of_method
from keygraph.model.records import End, RecordType


@dataclass(frozen=True)
class Counterpart:
    """The other item of an edge: its type, its key, and its other contents."""

    record: RecordType
    identity: tuple[str, ...]
    """The texts of its table key, as `Graph.table_keys` takes them."""
    texts: Mapping[str, str]
    """The texts, by slot, of all its keys, including those of indexes; no shards."""
    attributes: Item
    """Without keys, unless a field is stored in one."""


@dataclass(frozen=True, eq=False)
class Correspondence:
    """How items of one edge type determine those of another, or of the same type if it is mirrored."""

    one: RecordType
    other: RecordType
    ends: Mapping[str, str]
    """For each end of the other type, the end of this one that is the same node."""
    fields: tuple[str, ...]

    @property
    def is_mirror(self) -> bool:
        return self.one is self.other

    # --- What cannot be determined ------------------------------------------------------------------------

    @property
    def undetermined(self) -> list[str]:
        """The names that an item of this type may not determine: shared fields that the other type requires, and the
        contents of the other's table key. Its other fields are its own."""
        pairs = [(name, self.one.fields[name], self.other.fields[name]) for name in self.fields]
        undetermined = [
            name
            for name, mine, theirs in pairs
            if mine.optional and not (mine.has_default or theirs.optional or theirs.has_default)
        ]
        undetermined += [slot.path[0] for slot in self.other.identity if not self._determines(slot)]
        return list(dict.fromkeys(undetermined))

    @cached_property
    def needed(self) -> list[str]:
        """The fields and ends that every item of the other type needs and that no item of this one has."""
        fields = [name for name, own in self.other.fields.items() if not own.optional and not own.has_default]
        ends = [name for name, end in self.other.ends.items() if not end.optional and name not in self.ends]
        return [*(name for name in fields if name not in self.one.fields), *ends]

    def _determines(self, slot: Slot) -> bool:
        name, *inner = slot.path
        if inner:
            return name in self.ends and self._source(slot) is not None
        if name in self.other.methods:
            return {*(self.other.methods[name].needs or ())} <= {*self.fields, *self.ends}
        return name in self.fields

    def _source(self, slot: Slot) -> tuple[int, Slot] | None:
        """Returns the slot of the node's identity that can be rewritten as this slot of an end, and its index there."""
        end, *inner = slot.path
        own = self.one.ends[self.ends[end]].identity
        found = [(number, each) for number, each in enumerate(own) if each.path == tuple(inner)]
        same = [(number, each) for number, each in found if each.text == slot.text]
        usable = same or [(number, each) for number, each in found if not each.lossy and not slot.computed]
        return usable[0] if usable else None

    # --- The other item -------------------------------------------------------------------------------

    def counterpart(self, item: Item, type_values: Mapping[str, Value]) -> Counterpart:
        """Returns the other item of an edge.

        Raises CorruptItem if the item does not fit its declaration, and ValueError if a value has no text.
        """
        nodes = self._nodes(item)
        attributes = self._kept(item) if self.is_mirror else self._shared(item, type_values)
        known = dict(attributes)
        for path, value in self._end_values(item, nodes):
            put_at_path(known, path, value)
            # A mirror stores the same attributes: a node that only a key holds is only in the keys of both.
            if not self.is_mirror or at_path(item, path) is not None:
                put_at_path(attributes, path, value)
        slots = [slot for slot in self.other.slots.values() if not slot.is_shard]
        texts = self._texts(item, nodes, known, slots)
        identity = tuple(texts.get(slot.name, "") for slot in self.other.identity)
        return Counterpart(self.other, identity, texts, attributes)

    def known_identity(self, item: Item) -> dict[str, str]:
        """Returns the texts, by slot, of the other item's table key that a possibly incomplete item determines."""
        found: dict[str, str] = {}
        for slot in self.other.identity:
            with suppress(KeygraphError, ValueError):
                found |= self._texts(item, self._nodes(item), item, [] if slot.computed else [slot])
        return found

    def _nodes(self, item: Item) -> dict[str, tuple[str, ...]]:
        """Returns the nodes at the other item's ends."""
        found = ((name, self.one.end_identity(item, self.one.ends[own])) for name, own in self.ends.items())
        return {name: identity for name, identity in found if identity is not None}

    @cached_property
    def _declared(self) -> frozenset[str]:
        """The attributes that store the other type's fields and ends."""
        return frozenset(place.attribute[0] for place in self.other.places)

    def _kept(self, item: Item) -> Item:
        """Returns what a mirror shares: everything but keys."""
        left_out = {key.name for key in self.other.table.key_attributes()} - self._declared
        return {name: value for name, value in item.items() if name not in left_out}

    def _shared(self, item: Item, type_values: Mapping[str, Value]) -> Item:
        """Returns what a counterpart shares with this item, and its own type."""
        shared: Item = {}
        for name in self.fields:
            field = self.one.fields[name]
            stored = cast(Value, at_path(item, field.attribute))
            if stored is None and (value := self.one.reader(field)(item)) is not None:
                stored = encode(field.type, value)
            if stored is not None:
                put_at_path(shared, self.other.fields[name].attribute, stored)
        return {**shared, **type_values}

    def _end_values(self, item: Item, nodes: Mapping[str, tuple[str, ...]]) -> Iterator[tuple[Path, Value]]:
        """Yields the key fields of the nodes at the other item's ends: the attribute and its value."""
        for name, identity in nodes.items():
            end, own = self.other.ends[name], self.one.ends[self.ends[name]]
            for slot, text in zip(own.identity, identity, strict=True):
                is_alike = own.written == end.written
                stored = cast(Value, at_path(item, own.attributes[slot.path])) if is_alike else None
                if stored is None and not slot.lossy:
                    stored = encode(end.attribute_type(slot), slot.text.value(text))
                if stored is not None and slot.path in end.attributes:
                    yield end.attributes[slot.path], stored

    def _texts(
        self, item: Item, nodes: Mapping[str, tuple[str, ...]], known: Item, slots: Iterable[Slot]
    ) -> dict[str, str]:
        """Returns the texts, by slot, that an item determines of the other one's keys."""
        own = self._own_texts(item)

        def text_of(slot: Slot) -> str | None:
            name, *inner = slot.path
            if inner:
                source = self._source(slot) if name in nodes else None
                return source[1].rewritten(nodes[name][source[0]], slot) if source else None
            if slot.computed:
                if not self._determines(slot):
                    return None
                made = value_of_method(self.other, name, known)
                return made if isinstance(made, str) else None
            if name not in self.fields or slot in own:
                return own.get(slot)
            value = self.one.reader(self.one.fields[name])(item)
            return None if value is None else slot.text.render(value)

        return {slot.name: text for slot in slots if (text := text_of(slot))}

    def _own_texts(self, item: Item) -> dict[Slot, str]:
        """Returns the texts in the item's own keys, the table's first."""
        found: dict[Slot, str] = {}
        for keys in self.one.keys.values():
            texts = keys.parse(item) or {}
            found = {slot: texts[slot.name] for slot in keys.slots if slot.name in texts} | found
        return found

    # --- Comparing two items ------------------------------------------------------------------------------

    def differences(self, item: Item, found: Item) -> Iterator[str]:
        """Yields the fields and ends in which the other item is not as this one requires; `""` for undeclared ones.

        The contents of the other's table key are not compared: the item was found by this key.
        """
        in_key = {slot.path[0] for slot in self.other.identity if not slot.lossy}
        for name in self.fields:
            if name in in_key:
                continue
            mine, theirs = self.one.fields[name], self.other.fields[name]
            stored = (at_path(item, mine.attribute), at_path(found, theirs.attribute))
            if stored[0] != stored[1] and (
                None not in stored or self.one.reader(mine)(item) != self.other.reader(theirs)(found)
            ):
                yield name
        for name, own in self.ends.items():
            if name not in self.other.key_ends:
                expected = self.one.end_identity(item, self.one.ends[own])
                if self.other.end_identity(found, self.other.ends[name]) != expected:
                    yield name
        if self.is_mirror:
            rest = [
                {k: v for k, v in self._kept(each).items() if k not in self._declared}
                for each in (item, found)
            ]
            if rest[0] != rest[1]:
                yield ""


def correspondences(types: Mapping[str, RecordType]) -> dict[str, Correspondence]:
    """Returns the correspondence of each edge type that has a mirror or a counterpart, by its name.

    It is enough if one of two types names the other; an invalid declaration has none.
    """
    found = {}
    for record in types.values():
        other = partner(record, types)
        if other is not None and (matched := matched_ends(record, other)) is not None:
            shared = tuple(name for name in record.fields if name in other.fields)
            found[record.name] = Correspondence(record, other, matched, shared)
    return found


def partner(record: RecordType, types: Mapping[str, RecordType]) -> RecordType | None:
    """Returns the type of an edge's other item; None if it has none, or if its declaration is invalid."""
    if record.kind != "edge":
        return None
    if record.is_mirrored:
        return record
    naming = [other for other in types.values() if other.counterpart == record.name]
    other = types.get(record.counterpart) if record.counterpart else naming[0] if len(naming) == 1 else None
    return other if other is not None and other.kind == "edge" and other is not record else None


def matched_ends(one: RecordType, other: RecordType) -> dict[str, str] | None:
    """Returns, for each end of the other type, the end of this one that is the same node; None if the nodes differ.

    A mirror exchanges the two ends in its key. Those of counterparts match by name, else by the type of their node.
    """
    mine, theirs = one.key_ends, other.key_ends
    if one is other:
        pairs = {mine[0]: mine[1], mine[1]: mine[0]}
        if not _is_same(one.ends[mine[0]], one.ends[mine[1]]):
            return None
    elif {*mine} == {*theirs}:
        pairs = {name: name for name in theirs}
    else:
        pairs = {name: own for name in theirs for own in mine if _is_same(one.ends[own], other.ends[name])}
        if _is_same(*(one.ends[own] for own in mine)) or len(pairs) < len(theirs):
            return None
    if not all(_is_same(one.ends[own], other.ends[name]) for name, own in pairs.items()):
        return None
    further = {
        name: name
        for name, end in other.ends.items()
        if name not in pairs and name in one.ends and _is_same(one.ends[name], end)
    }
    return pairs | {name: own for name, own in further.items() if own not in pairs.values()}


def _is_same(one: End, other: End) -> bool:
    """Returns whether the nodes at two ends are of the same types."""
    return {*one.members} == {*other.members}
