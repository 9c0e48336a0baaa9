"""What is done with every item of an operation, prepared once for each record type: its identity is read, its fields
are, and keys are made of identities.

What is prepared is a function that knows where to look and what it expects there. Most keys are one text, and most
values what the field is: these are found out without a detour. Everything else goes the general way, which also says
what is wrong.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from decimal import Decimal
from typing import TYPE_CHECKING, Any, TypeAlias, cast

from keygraph.dynamo.items import Value
from keygraph.dynamo.table import Key
from keygraph.keys.template import Slot
from keygraph.keys.types import Kind, decoder, encode

if TYPE_CHECKING:
    from keygraph.model.members import Field
    from keygraph.model.records import Keys, RecordType

Texts: TypeAlias = "tuple[str, ...]"
IdentityReader: TypeAlias = "Callable[[Mapping[str, Value]], Texts | None]"


def identity_reader(keys: Keys, names: Texts) -> IdentityReader:
    """What reads the texts of these slots, by name, from the keys of an item; None where it has others."""
    general = _general(keys, names)
    if len(keys.parts) != 2 or any(attribute.type != "S" for attribute in keys.attributes):
        return general
    (partition, own), (sort, other) = ((attribute.name, template) for attribute, template in keys.parts)
    read, read_sort = own.read, other.read
    if own.has_optional or other.has_optional:
        return general

    if own == other and names == tuple(slot.name for slot in own.slots):

        def read_same(item: Mapping[str, Value]) -> Texts | None:
            text = item.get(partition)
            if type(text) is not str or item.get(sort) != text:
                return None
            return cast("Texts | None", read(text))

        return read_same
    if names != tuple(slot.name for template in keys.templates for slot in template.slots):
        return general

    def read_both(item: Mapping[str, Value]) -> Texts | None:
        text, sort_text = item.get(partition), item.get(sort)
        if type(text) is not str or type(sort_text) is not str:
            return None
        found, more = read(text), read_sort(sort_text)
        return None if found is None or more is None else cast("Texts", found + more)

    return read_both


def _general(keys: Keys, names: Texts) -> IdentityReader:
    def read(item: Mapping[str, Value]) -> Texts | None:
        texts = keys.parse(item)
        return None if texts is None else tuple([texts.get(name, "") for name in names])

    return read


def slot_reader(keys: Keys, name: str) -> Callable[[Mapping[str, Value]], str | None]:
    """What reads the text of one slot from the keys of an item; None where it has others, or none there."""
    names = [slot.name for template in keys.templates for slot in template.slots]
    is_plain = all(attribute.type == "S" for attribute in keys.attributes) and len(set(names)) == len(names)
    if not is_plain or any(template.has_optional for template in keys.templates):
        return lambda item: (keys.parse(item) or {}).get(name)
    if len(keys.parts) == 2 and len(names) == 1:
        return _beside_literal(keys)
    parts = [(attribute.name, template.read) for attribute, template in keys.parts]
    place = names.index(name)

    def read(item: Mapping[str, Value]) -> str | None:
        found: tuple[str | None, ...] = ()
        for attribute, read_part in parts:
            text = item.get(attribute)
            texts = read_part(text) if type(text) is str else None
            if texts is None:
                return None
            found += texts
        return found[place]

    return read


def _beside_literal(keys: Keys) -> Callable[[Mapping[str, Value]], str | None]:
    """What reads the only slot of two keys, of which the other is one text."""
    (one, template), (other, other_template) = ((each.name, template) for each, template in keys.parts)
    if not template.slots:
        one, template, other, other_template = other, other_template, one, template
    read_slot, literal = template.read, other_template.render({})

    def read(item: Mapping[str, Value]) -> str | None:
        text = item.get(one)
        if type(text) is not str or item.get(other) != literal:
            return None
        texts = read_slot(text)
        return None if texts is None else texts[0]

    return read


def end_reader(sources: Sequence[tuple[int, Callable[[str], str] | None]]) -> Callable[[Texts], Texts | None]:
    """What makes an end's identity of the texts in a key; None for none.

    Each part is the text at a number, written anew where there is something that does so.
    """
    if len(sources) == 1 and sources[0][1] is None:
        only = sources[0][0]
        return lambda texts: (texts[only],) if texts[only] else None

    def read(texts: Texts) -> Texts | None:
        found = [
            texts[number] if rewritten is None or not texts[number] else rewritten(texts[number])
            for number, rewritten in sources
        ]
        return tuple(found) if any(found) else None

    return read


def key_writer(keys: Keys, names: Texts) -> Callable[[Texts], Key] | None:
    """What makes the key of an identity, which has texts of these names; None where that takes more than to put the
    texts in their places."""
    if keys.shards or any(attribute.type != "S" for attribute in keys.attributes):
        return None
    if len(keys.parts) < len(keys.attributes) or any(template.has_optional for template in keys.templates):
        return None
    made = []
    for template in keys.templates:
        places = [
            names.index(token.name) if isinstance(token, Slot) else str(token) for token in template.tokens
        ]
        made.append(_text_writer(places))
    if len(made) == 1:
        [write_only] = made
        return lambda identity: (write_only(identity),)
    write, write_sort = made
    if keys.partition == keys.sort:

        def write_same(identity: Texts) -> Key:
            text = write(identity)
            return text, text

        return write_same
    return lambda identity: (write(identity), write_sort(identity))


def _text_writer(places: list[str | int]) -> Callable[[Texts], str]:
    """What joins literal texts, and those of an identity that stand at these numbers."""
    match places:
        case [int(number)]:
            return lambda identity: identity[number]
        case [str(before), int(number)]:
            return lambda identity: before + identity[number]
    return lambda identity: "".join(
        [place if isinstance(place, str) else identity[place] for place in places]
    )


_AS_THEY_ARE: Mapping[Kind, type] = {
    "id": str,
    "string": str,
    "boolean": bool,
    "decimal": Decimal,
    "bytes": bytes,
}
"""The kinds of fields whose values are what an attribute holds."""


def plain_attribute(record: RecordType, field: Field) -> tuple[str, type] | None:
    """The attribute whose value is the field's, where it is of this Python type; None where there is none."""
    expected = _AS_THEY_ARE.get(field.type.kind)
    if expected is None or field.type.written is not None or len(field.attribute) != 1:
        return None
    return None if record.reads_from_key(field) else (field.attribute[0], expected)


def field_reader(record: RecordType, field: Field) -> Callable[[Mapping[str, Value]], Any]:
    """What reads the value of a field from items, as `record.value` does."""
    general, plain = record.value, plain_attribute(record, field)
    if plain is not None:
        name, expected = plain

        def read(item: Mapping[str, Value]) -> Any:
            stored = item.get(name)
            return stored if type(stored) is expected else general(item, field)

        return read
    if len(field.attribute) != 1 or record.reads_from_key(field):
        return lambda item: general(item, field)
    [name] = field.attribute
    if field.type.kind == "enum" and field.type.written is None:
        return _enum_reader(field, name, general)
    decoded, in_keys = decoder(field.type), record.key_readers(field)

    def read_decoded(item: Mapping[str, Value]) -> Any:
        stored = item.get(name)
        if stored is None:
            for read_text, value in in_keys:
                text = read_text(item)
                if text is not None:
                    return value(text)
            return general(item, field)
        try:
            return decoded(stored)
        except ValueError:
            return general(item, field)  # it says what is wrong

    return read_decoded


def _enum_reader(
    field: Field, name: str, general: Callable[[Mapping[str, Value], Field], Any]
) -> Callable[[Mapping[str, Value]], Any]:
    members = {encode(field.type, member): member for member in field.type.cls}

    def read(item: Mapping[str, Value]) -> Any:
        stored = item.get(name)
        found = members.get(stored) if type(stored) in (str, Decimal) else None
        return general(item, field) if found is None else found

    return read


def text_reader(slot: Slot) -> Callable[[str], Any]:
    """What gives the value of a text that stands in a key; None for an optional one that is absent, which is empty."""
    if slot.text.is_plain_text:
        return lambda text: text or None
    value = slot.text.value
    return lambda text: value(text) if text else None
