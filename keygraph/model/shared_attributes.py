"""The attributes of a type's fields and ends, which of them are shared, and how values are written into them.

A field may be stored in the same attribute as a part of an end, and ends may share parts. A write of an attribute by one
name changes all names that are stored in it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from typing import Any, TypeAlias

from keygraph.dynamo.conditions import Path
from keygraph.dynamo.items import Value
from keygraph.dynamo.rules import refuse_nesting
from keygraph.errors import CorruptItem
from keygraph.keys.template import Slot
from keygraph.keys.types import FieldType, encode, encoder
from keygraph.model.expiry import whole_second
from keygraph.model.fields import Field
from keygraph.model.record_keys import TextReader, Texts, attribute_reader
from keygraph.model.records import End, RecordType

AttributeWriters: TypeAlias = Sequence[tuple[Path, Callable[[Any], Value]]]
"""The functions that make the attributes from a value; None for an absent part."""


class SharedAttributes:
    """Which fields and ends of a type are stored in each attribute."""

    def __init__(self, record: RecordType) -> None:
        self._record = record
        self.paths: dict[str, tuple[Path, ...]] = {
            **{name: field.attributes for name, field in record.fields.items()},
            **{name: (*end.attributes.values(),) for name, end in record.ends.items()},
        }
        self._names: dict[Path, set[str]] = {}
        for name, paths in self.paths.items():
            for path in paths:
                self._names.setdefault(path, set()).add(name)
        shared = {path for path, names in self._names.items() if len(names) > 1}
        self.ends = [end for name, end in record.ends.items() if not shared.isdisjoint(self.paths[name])]
        in_key = {name for slot in record.identity for name in (slot.path[0], *record.needs_of(slot))}
        members: Mapping[str, Field | End] = {**record.fields, **record.ends}
        optional = {name for name, member in members.items() if member.optional}
        self._staying = (self.paths.keys() - optional) | (in_key & self.paths.keys())
        """The fields and ends that every record has, or that are in its key."""
        self._keys = {(key.name,) for key in record.table.keys}
        problem = partial(CorruptItem, f"The key of {record.name} does not match an attribute")
        self.in_key: list[tuple[Path, int, TextReader]] = [
            (own, number, attribute_reader(own, slot, record.attribute_type(slot), problem))
            for number, slot in enumerate(record.identity)
            if (own := record.attribute_of(slot.path)) is not None and own in shared
        ]
        """The shared attributes that the table's key determines: the index of the text in the identity, and a function
        that makes this text from the attribute."""
        self.paths_in_key = {path for path, _, _ in self.in_key}

    def names_at(self, paths: Iterable[Path]) -> set[str]:
        """Returns the fields and ends that are stored in these attributes."""
        return set[str]().union(*(self._names.get(path, ()) for path in paths))

    def others_at(self, name: str) -> list[str]:
        """Returns the fields and ends that share attributes with this one."""
        others = self.names_at(self.paths[name]) - {name}
        return [other for other in self.paths if other in others]

    def changed(self, values: Mapping[str, Any], further: Iterable[str] = ()) -> set[Path]:
        """Returns the attributes that are set or removed with new values, None for removed ones, and with changes of
        further fields."""
        found = {path for name in further for path in self.paths[name]}
        for name, value in values.items():
            found.update(self.paths[name] if value is not None else self.removed_with(name))
        return found

    def removed_with(self, name: str) -> tuple[Path, ...]:
        """Returns the attributes to remove so that a record loses an optional field or end; none if others need them.

        These are the attributes that it has alone if that is enough, else also those of fields and ends that are a
        part of it, else all that no required field or end, and no key, needs.
        """
        mine = self.paths[name]
        others = {path: self._names[path] - {name} for path in mine}
        free = [path for path in mine if path not in self._keys and others[path].isdisjoint(self._staying)]
        allowed: tuple[Callable[[Path], bool], ...] = (
            lambda path: not others[path],
            lambda path: all({*self.paths[other]} <= {*mine} for other in others[path]),
            lambda path: True,
        )
        for is_allowed in allowed:
            found = tuple(path for path in free if is_allowed(path))
            if self.is_lost(name, found):
                return found
        return ()

    def is_lost(self, name: str, removed: Iterable[Path]) -> bool:
        """Returns whether a record without these attributes lacks a field or an end."""
        gone, end = {*removed}, self._record.ends.get(name)
        if end is None:
            return not gone.isdisjoint(self.paths[name])
        parts = {end.attributes[slot.path]: slot.name in end.optional_parts for slot in end.identity}
        needed = [path for path, is_optional in parts.items() if not is_optional]
        return any(path in gone for path in needed) or parts.keys() <= gone


# --- What writes them -----------------------------------------------------------------------------------


def encoder_of(field: Field, end: End | None) -> Callable[[Any], Value]:
    """Returns a function that converts a field's value to the stored value. `end` is that of a list or set of nodes,
    whose value is their identities."""
    if end is not None:
        [slot] = end.identity
        stored = _stored_text(slot, end.attribute_type(slot)) or str
        made: Callable[[Iterable[Any]], Any] = list if field.type.kind == "list" else frozenset
        return lambda identities: made(stored(text) for [text] in identities)
    encoded, level = encoder(field.type), len(field.attribute)
    if field.is_expiry:
        return lambda value: encoded(whole_second(value))
    if not _holds_json(field.type):
        return encoded

    def fitting(value: Any) -> Value:
        made = encoded(value)
        try:
            refuse_nesting(made, level)
        except ValueError as error:
            raise ValueError(f"an object with {error}") from None
        return made

    return fitting


def _holds_json(type_: FieldType) -> bool:
    inside = [type_.of] if type_.of else [member.type for member in type_.members]
    return type_.kind == "json" or any(map(_holds_json, inside))


def field_writer(field: Field, encoded: Callable[[Any], Value]) -> AttributeWriters:
    """Returns the function for the attribute of a whole field: a set that is stored has a member."""

    def written(value: Any) -> Value:
        stored = encoded(value)
        if stored == frozenset():
            raise ValueError("an empty set")
        return stored

    return [(field.attribute, written if field.type.kind == "set" else encoded)]


def end_writer(end: End) -> AttributeWriters:
    """Returns the functions for the attributes of an end, from the identity of its node."""

    def part(number: int, stored: Callable[[str], Value] | None) -> Callable[[Texts], Value]:
        if stored is None:
            return lambda texts: texts[number] or None
        return lambda texts: stored(texts[number]) if texts[number] else None

    return [
        (path, part(number, _stored_text(slot, end.attribute_type(slot))))
        for number, slot in enumerate(end.identity)
        if (path := end.attributes.get(slot.path)) is not None
    ]


def _stored_text(slot: Slot, type_: FieldType) -> Callable[[str], Value] | None:
    """Returns a function that makes the attribute value of a text in a key; None if it is the text."""
    if slot.text.is_stored_in(type_) or (slot.lossy and type_.written is None):
        return None
    return lambda text: encode(type_, slot.text.value(text))
