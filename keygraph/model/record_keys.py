"""The keys of a record type, in the table or in an index: written from its fields, and read back."""

from __future__ import annotations

import zlib
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from operator import itemgetter
from types import MappingProxyType
from typing import Any, Literal, NamedTuple, TypeAlias, cast

from keygraph.dynamo.conditions import Path, at_path
from keygraph.dynamo.items import Value
from keygraph.dynamo.table import Index, Key, KeyAttribute
from keygraph.keys.shards import Shard
from keygraph.keys.template import FieldPath, KeyTexts, Maybe, Slot, Template
from keygraph.keys.types import FieldType, decode, decoder
from keygraph.keys.union import NodeText
from keygraph.model.fields import ValueReader

Texts: TypeAlias = tuple[str, ...]
"""The texts of an identity; an absent one is empty."""
TextReader: TypeAlias = Callable[[Mapping[str, Value]], str | None]
"""Reads the text of a slot from an item."""

IdentityReader: TypeAlias = Callable[[Mapping[str, Value]], Texts | None]
_NOTHING: Mapping[str, Value | None] = MappingProxyType({"": None})
"""What every item fulfills: none has an attribute without a name."""


class Mismatch(NamedTuple):
    """How far the keys of an item match those of a type. The largest mismatch is the nearest type."""

    key: int
    """Which key attribute it is: 0 for the partition key."""
    tokens: int
    """How many tokens of its template fit."""
    why: str


@dataclass(frozen=True, eq=False)
class Keys:
    """The keys that a record type has in the table (`index` is None) or in an index."""

    index: Index | None
    attributes: tuple[KeyAttribute, ...]
    partition: Template
    sort: Template | None
    """None if there is no sort key, or no template is declared for it."""
    shards: tuple[Shard, ...]
    """The values of `{shard}` in its partition; empty if it has none."""
    lists: str | Literal[False] | None
    finds: str | None

    @cached_property
    def index_name(self) -> str | None:
        return self.index.name if self.index else None

    @cached_property
    def text_names(self) -> tuple[str, ...]:
        """The names of its attributes if all of them are texts; else empty."""
        names = tuple([each.name for each in self.attributes])
        return names if all(each.type == "S" for each in self.attributes) else ()

    @cached_property
    def names(self) -> frozenset[str]:
        return frozenset(attribute.name for attribute in self.attributes)

    def attribute_for(self, attribute: Path | None) -> str | None:
        """Returns the key attribute that equals this attribute; None if none does."""
        return (
            attribute[0] if attribute is not None and attribute in {(name,) for name in self.names} else None
        )

    @property
    def reads_whole_items(self) -> bool:
        return self.index is None or self.index.projection == "ALL"

    def __str__(self) -> str:
        return " / ".join(str(template) for template in self.templates)

    @cached_property
    def templates(self) -> tuple[Template, ...]:
        return (self.partition,) if self.sort is None else (self.partition, self.sort)

    @cached_property
    def shard_texts(self) -> tuple[dict[str, str], ...]:
        """The texts of `{shard}`, by slot, for each partition that a list reads: a single empty one if it has none."""
        slots = [slot for slot in self.partition.slots if slot.is_shard]
        if not self.shards:
            return ({},)
        return tuple({slot.name: slot.text.render(shard) for slot in slots} for shard in self.shards)

    def shard_in(self, item: Mapping[str, Value]) -> Mapping[str, str] | None:
        """Returns the text of the shard that an item is in; None if it is in none of these."""
        partition = self.attributes[0]
        texts = self.partition.read(partition.text(item.get(partition.name)) or "")
        return (
            None if texts is None else self._known_shards.get(tuple([texts[at] for at in self._shard_places]))
        )

    @cached_property
    def _shard_places(self) -> list[int]:
        return [at for at, slot in enumerate(self.partition.slots) if slot.is_shard]

    @cached_property
    def _known_shards(self) -> dict[KeyTexts, Mapping[str, str]]:
        return {tuple(shard.values()): shard for shard in self.shard_texts}

    def shard_of(self, identity: Texts) -> Mapping[str, str]:
        """Returns the text of the shard that a record with this identity is written to; empty without shards."""
        return self.shard_texts[zlib.crc32("\0".join(identity).encode()) % len(self.shard_texts)]

    @cached_property
    def slots(self) -> tuple[Slot, ...]:
        """Every slot of the two templates once."""
        return tuple({slot.name: slot for template in self.templates for slot in template.slots}.values())

    @cached_property
    def names_unions(self) -> bool:
        """Whether a text in the keys may be the key of a node of one of several types."""
        return any(isinstance(slot.text, NodeText) for slot in self.slots)

    @cached_property
    def optional(self) -> frozenset[str]:
        """The names of the slots that may be absent: they are only in optional parts."""
        certain = {token.name for each in self.templates for token in each.tokens if isinstance(token, Slot)}
        return frozenset(slot.name for slot in self.slots) - certain

    def rendered(self, texts: Mapping[str, str | None]) -> Key:
        """Returns the key's values with those texts, by slot name."""
        pairs = ((attribute, template.render(texts)) for attribute, template in self.parts)
        return tuple([attribute.value(text) for attribute, text in pairs if text is not None])

    @cached_property
    def parts(self) -> tuple[tuple[KeyAttribute, Template], ...]:
        return tuple(zip(self.attributes, self.templates, strict=False))

    def parse(self, item: Mapping[str, Value]) -> dict[str, str] | None:
        """Returns the texts in the item's keys here; None if it has none of these keys, or others."""
        texts: dict[str, str] = {}
        for attribute, template in self.parts:
            text = attribute.text(item.get(attribute.name))
            found = None if text is None else template.parse(text)
            if found is None or any(texts.get(name, text) != text for name, text in found.items()):
                return None
            texts.update(found)
        return texts

    def mismatch(self, item: Mapping[str, Value]) -> Mismatch:
        """Returns how far the item's keys, which are not its own, match these."""
        texts: dict[str, str] = {}
        for number, (attribute, template) in enumerate(self.parts):
            text = attribute.text(item.get(attribute.name)) or ""
            found = template.parse(text)
            if found is None:
                return Mismatch(number, *template.mismatch(text))
            other = next((name for name, text in found.items() if texts.get(name, text) != text), None)
            if other is not None:
                return Mismatch(number, len(template.tokens), f"{{{other}}} differs between the keys")
            texts.update(found)
        return Mismatch(len(self.parts), 0, "it cannot be read back")

    @cached_property
    def _are_plain(self) -> bool:
        """Whether each key attribute is a text whose slots are always present."""
        are_texts = all(attribute.type == "S" for attribute in self.attributes)
        tokens = [token for template in self.templates for token in template.tokens]
        return are_texts and not any(isinstance(token, Maybe) for token in tokens)

    def reader(self, names: Texts, required: Mapping[str, Value | None] = _NOTHING) -> IdentityReader:
        """Returns a function that reads the texts of these slots, by name, from an item's keys; None for other keys, and
        for items without the required attributes."""
        [(of, value), *others] = required.items()
        if others:
            read_one = self.reader(names, {of: value})
            return lambda item: (
                read_one(item) if all(item.get(more) == each for more, each in others) else None
            )
        templates = self.templates
        if len(templates) == 2 and self.partition == self.sort:
            templates = templates[:1]
        own = tuple(slot.name for template in templates for slot in template.slots)
        if not self._are_plain or len(self.parts) != 2 or len(set(own)) < len(own):
            return lambda item: self._parsed(names, item) if item.get(of) == value else None
        read_all = self._read_same(of, value) if len(templates) == 1 else self._read_both(of, value)
        if names == own:
            return read_all
        places = [own.index(name) for name in names]
        return lambda item: None if (texts := read_all(item)) is None else tuple([texts[n] for n in places])

    def _parsed(self, names: Texts, item: Mapping[str, Value]) -> Texts | None:
        texts = self.parse(item)
        return None if texts is None else tuple([texts.get(name, "") for name in names])

    # Most keys are literal text followed by any text, which is sliced in one call for all of an item.

    def _read_same(self, of: str, value: Value | None) -> IdentityReader:
        (partition, template), (sort, _) = ((attribute.name, each) for attribute, each in self.parts)
        before, read_text = template.beginning, template.read

        def read(item: Mapping[str, Value]) -> Texts | None:
            text = item.get(partition)
            if type(text) is not str or item.get(sort) != text or item.get(of) != value:
                return None
            if not before:
                return read_text(text)  # type: ignore[return-value]  # no slot is optional
            behind = text.removeprefix(before)
            return (behind,) if behind and behind is not text else None

        return read

    def _read_both(self, of: str, value: Value | None) -> IdentityReader:
        (partition, own), (sort, other) = ((attribute.name, each) for attribute, each in self.parts)
        before, read_partition, before_sort, read_sort = own.beginning, own.read, other.beginning, other.read

        def read(item: Mapping[str, Value]) -> Texts | None:
            text, sort_text = item.get(partition), item.get(sort)
            if type(text) is not str or type(sort_text) is not str or item.get(of) != value:
                return None
            if before and before_sort:
                behind, more = text.removeprefix(before), sort_text.removeprefix(before_sort)
                are_there = behind and more and behind is not text and more is not sort_text
                return (behind, more) if are_there else None
            found, sorted_by = read_partition(text), read_sort(sort_text)
            return None if found is None or sorted_by is None else found + sorted_by  # type: ignore[return-value]  # both are tuples

        return read

    def writers(self, names: Texts) -> list[Callable[[Texts], Key]]:
        """Returns a function for each shard that makes the key of texts with these names: one if there are no shards, none
        if inserting them is not enough."""
        if not self._are_plain or len(self.parts) < len(self.attributes):
            return []
        places = {name: place for place, name in enumerate(names)}
        return [self._writer(places, shard) for shard in self.shard_texts]

    def _writer(self, places: Mapping[str, int], shard: Mapping[str, str]) -> Callable[[Texts], Key]:
        made = [text_writer(template.with_texts(shard), places) for template in self.templates]
        if len(made) == 1:
            [write_only] = made
            return lambda texts: (write_only(texts),)
        write, write_sort = made
        if self.partition == self.sort:
            return lambda texts: (text := write(texts), text)
        return lambda texts: (write(texts), write_sort(texts))


def text_writer(template: Template, places: Mapping[str, int]) -> Callable[[Texts], str]:
    """Returns a function that joins a template's literal texts with an identity's texts, whose places are `places`."""
    parts = [places[token.name] if isinstance(token, Slot) else str(token) for token in template.tokens]
    numbers = [part for part in parts if isinstance(part, int)]
    filled = "".join(["%s" if isinstance(part, int) else part.replace("%", "%%") for part in parts]).__mod__
    if not numbers:
        return lambda texts: filled(())
    own = itemgetter(*numbers)
    return lambda texts: filled(own(texts))


# --- What reads values and ends from keys ---------------------------------------------------------------


def text_itself(text: str) -> str | None:
    """Returns the text as the value; None for an absent optional one, which is empty."""
    return text or None


def optional_value(value_of: Callable[[str], Any], text: str) -> Any:
    """Returns the value of a text; None for an absent optional one, which is empty."""
    return value_of(text) if text else None


def _slot_reader(keys: Keys, slot: Slot, own: str | None) -> IdentityReader:
    """Returns a function that reads the text of a slot from an item's keys here. If the item has only one of the two
    keys of an index, or if one, `own`, is the attribute of the value, that one is enough."""
    read_both = keys.reader((slot.name,))
    if keys.index is None or len(keys.parts) == 1:
        return read_both
    halves = [(key, template) for key, template in keys.parts if slot in template.slots]
    own_half = [(key, template) for key, template in halves if key.name == own]

    def read_half(item: Mapping[str, Value]) -> Texts | None:
        for key, template in own_half or halves:
            if own_half or all(key.name == name or item.get(name) is None for name in keys.names):
                text = key.text(item.get(key.name))
                found = None if text is None else (template.parse(text) or {}).get(slot.name)
                if found is not None:
                    return (found,)
        return None

    def read(item: Mapping[str, Value]) -> Texts | None:
        texts = read_both(item)
        return read_half(item) if texts is None else texts

    return read_half if own_half else read


def value_readers(
    sources: Iterable[tuple[FieldPath, Path | None, Keys, Slot]],
) -> dict[FieldPath, ValueReader]:
    """Returns a function for each path that reads its value from keys of an item; it returns None for none.

    Sources are paths with the attribute of the value, and a slot of the keys that contains it. The table's key is used
    first, then a key that is the attribute, then others.
    """
    readers: dict[FieldPath, list[tuple[bool, IdentityReader, Callable[[str], Any]]]] = {}
    for path, attribute, keys, slot in sources:
        own = keys.attribute_for(attribute)
        is_last = own is None and keys.index is not None
        readers.setdefault(path, []).append((is_last, _slot_reader(keys, slot, own), slot.text.value))
    return {
        path: _first_value_reader([each[1:] for each in sorted(several, key=itemgetter(0))])
        for path, several in readers.items()
    }


def _first_value_reader(readers: Sequence[tuple[IdentityReader, Callable[[str], Any]]]) -> ValueReader:
    """Returns a function that reads a value from the first key of an item that contains it; None if none does."""

    def read_value(item: Mapping[str, Value]) -> Any:
        for read, value_of in readers:
            texts = read(item)
            if texts and texts[0]:
                return value_of(texts[0])
        return None

    return read_value


def texts_reader(
    sources: Sequence[tuple[int, Callable[[str], str] | None]],
) -> Callable[[Texts], Texts | None]:
    """Returns a function that makes an end's identity from the texts in a key; it returns None for none.

    Each part is the text with a number, rewritten if there is a function for it.
    """

    def read(texts: Texts) -> Texts | None:
        found = [
            texts[number] if rewritten is None or not texts[number] else rewritten(texts[number])
            for number, rewritten in sources
        ]
        return tuple(found) if any(found) else None

    return read


def text_reader(read: IdentityReader, place: int, rewritten: Callable[[str], str] | None) -> TextReader:
    """Returns a function that reads one of the texts in a key, as it is or rewritten; None for an absent one."""

    def read_text(item: Mapping[str, Value]) -> str | None:
        texts = read(item)
        if not texts or not texts[place]:
            return None
        return texts[place] if rewritten is None else rewritten(texts[place])

    return read_text


def lenient_reader(attribute: Path, slot: Slot, type_: FieldType) -> TextReader:
    """Returns a function that reads the text of a slot from its value's attribute; None for one that does not fit, or
    is empty, which is an absent part."""

    def read(item: Mapping[str, Value]) -> str | None:
        value = cast(Value, at_path(item, attribute))
        try:
            return None if value is None else slot.text.render(decode(type_, value)) or None
        except (ValueError, TypeError, OverflowError):
            return None

    return read


def attribute_reader(
    attribute: Path, slot: Slot, type_: FieldType, problem: Callable[[], Exception]
) -> TextReader:
    """Returns the same function, except that it raises the problem if the attribute does not fit."""
    decoded, render = decoder(type_), slot.text.render
    is_text = slot.computed or slot.text.is_stored_in(type_)

    def read_text(item: Mapping[str, Value]) -> str | None:
        value: Any = at_path(item, attribute)
        if value is None or (is_text and type(value) is str):
            return value
        if slot.computed:
            return None
        try:
            return render(decoded(value))
        except ValueError:
            raise problem() from None

    return read_text
