"""Checks of what the order of the keys does not decide: whether an item has what a reader says of its sort key.

A placeholder's text is what stands in the item's key, or for one that cannot be read back, what renders there.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from typing import Any, TypeAlias

from keygraph.dynamo.conditions import at_path
from keygraph.dynamo.items import Item
from keygraph.errors import CorruptItem
from keygraph.keys.template import Slot
from keygraph.keys.types import decode
from keygraph.lists.ranges import Narrowing
from keygraph.model.paths import AccessPath
from keygraph.model.records import RecordType

Check: TypeAlias = Callable[[Item, Mapping[str, str]], bool]
"""Whether an item is in the list, which has these texts in its keys."""


def checks_of(path: AccessPath, narrowed: Sequence[tuple[str, Narrowing]]) -> tuple[Check, ...]:
    """What decides each of these, which are said of slots by their names."""
    slots = {slot.name: slot for slot in path.rest.slots}
    return tuple(_check(path.record, slots[name], narrowing) for name, narrowing in narrowed)


def checked_names(path: AccessPath, narrowed: Sequence[tuple[str, Narrowing]]) -> frozenset[str]:
    """The fields and ends of an item that are looked at to decide these, besides its key."""
    slots = {slot.name: slot for slot in path.rest.slots}
    lossy = [slots[name] for name, _ in narrowed if slots[name].lossy]
    return frozenset(name for slot in lossy for name in path.record.needs_of(slot))


def _check(record: RecordType, slot: Slot, narrowing: Narrowing) -> Check:
    if narrowing.is_absent:
        return lambda item, texts: slot.name not in texts
    if not slot.lossy:
        text, value_of = slot.name, slot.text.value

        def check_text(item: Item, texts: Mapping[str, str]) -> bool:
            found = texts.get(text)
            if found is None or not narrowing.contains(found):
                return False
            return narrowing.values is None or narrowing.values.contains(value_of(found))

        return check_text
    value_in = _reader(record, slot)

    def check_value(item: Item, texts: Mapping[str, str]) -> bool:
        # A method is the model's own code, which may raise anything; an item that it fails on has no such text.
        with suppress(Exception):
            value = value_in(item)
            if value is not None and narrowing.contains(slot.text.render(value)):
                return narrowing.values is None or narrowing.values.contains(value)
        return False

    return check_value


def _reader(record: RecordType, slot: Slot) -> Callable[[Item], Any]:
    """What gives the value of a slot that cannot be read back."""
    [name, *inner] = slot.path
    if slot.computed and not inner:
        method = record.methods[name]
        return lambda item: method.function(record.instance(item, method.needs))
    if not inner:
        return record.reader(record.fields[name])
    attribute, type_ = record.attribute_of(slot.path), slot.text.type

    def read_end(item: Item) -> Any:
        value = None if attribute is None else at_path(item, attribute)
        if value is None:
            raise CorruptItem(f"{record.name}.{name} is missing in an item")
        return decode(type_, value)  # type: ignore[arg-type]  # an attribute's value

    return read_end
