"""Conditions that the order of the keys cannot express: filters for the store, and checks of the items that were read.

A check returns whether an item meets an argument on its sort key. A placeholder's text is the text in the item's key,
or, if that cannot be read back, the rendered text.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from functools import partial
from typing import Any, TypeAlias

from keygraph.dynamo import conditions
from keygraph.dynamo.items import Item
from keygraph.errors import CorruptItem
from keygraph.graph import Graph
from keygraph.keys.template import Slot, Template
from keygraph.keys.types import decode
from keygraph.lists.ranges import Narrowing
from keygraph.model.fields import missing
from keygraph.model.instances import value_of_method
from keygraph.model.links import LinkName
from keygraph.model.paths import AccessPath
from keygraph.model.records import RecordType

Check: TypeAlias = Callable[[Item, Mapping[str, str]], bool]
"""Returns whether an item, with these texts in its keys, is in the list."""


def checks_of(path: AccessPath, narrowed: Sequence[tuple[str, Narrowing]]) -> tuple[Check, ...]:
    """Returns the checks for these narrowings of slots, given by name."""
    slots = {slot.name: slot for slot in path.rest.slots}
    return tuple(_check(path, slots[name], narrowing) for name, narrowing in narrowed)


def checked_names(path: AccessPath, narrowed: Sequence[tuple[str, Narrowing]]) -> frozenset[str]:
    """Returns the fields and ends of an item that decide these, in addition to its key."""
    slots = {slot.name: slot for slot in path.rest.slots}
    lossy = [slots[name] for name, _ in narrowed if not _is_read_from_key(path, slots[name])]
    return frozenset(name for slot in lossy for name in path.record.needs_of(slot))


def _is_read_from_key(path: AccessPath, slot: Slot) -> bool:
    """Returns whether a check reads the text in the key: also a method's, if the items lack what the method needs."""
    return not slot.lossy or (slot.computed and not path.projected.issuperset(path.record.needs_of(slot)))


def _check(path: AccessPath, slot: Slot, narrowing: Narrowing) -> Check:
    if narrowing.is_absent:
        return lambda item, texts: slot.name not in texts
    if _is_read_from_key(path, slot):
        text, value_of = slot.name, slot.text.value

        def check_text(item: Item, texts: Mapping[str, str]) -> bool:
            found = texts.get(text)
            if found is None or not narrowing.contains(found):
                return False
            return narrowing.values is None or narrowing.values.contains(value_of(found))

        return check_text
    value_in = value_reader(path.record, slot)

    def check_value(item: Item, texts: Mapping[str, str]) -> bool:
        # A method is the model's own code, which may raise anything; an item that it fails on has no such text.
        with suppress(Exception):
            value = value_in(item)
            if value is not None and narrowing.contains(slot.text.render(value)):
                return narrowing.values is None or narrowing.values.contains(value)
        return False

    return check_value


def value_reader(record: RecordType, slot: Slot) -> Callable[[Item], Any]:
    """Returns a function that reads the value of a slot from the item's attributes, or computes it from them. It may raise
    anything."""
    [name, *inner] = slot.path
    if slot.computed and not inner:
        return partial(value_of_method, record, name)
    if not inner:
        return record.reader(record.fields[name])
    attribute, type_ = record.attribute_of(slot.path), record.attribute_type(slot)

    def read_end(item: Item) -> Any:
        value = None if attribute is None else conditions.at_path(item, attribute)
        if value is None:
            raise CorruptItem(missing(record.name, name, [attribute or (name,)]))
        return decode(type_, value)  # type: ignore[arg-type]  # an attribute's value

    return read_end


# --- Conditions ---------------------------------------------------------------------------------------


def split_condition(
    where: conditions.Condition | None, path: AccessPath, graph: Graph
) -> tuple[conditions.Condition | None, conditions.Condition | None]:
    """Returns the part of a condition that the store can decide, and the part that is decided here.

    DynamoDB's filter may not name a key of the table or index, and does not see values that are only in a key.
    """
    if where is None:
        return None, None
    undecidable = path.record.attributes_in_keys | path.keys.names
    parts = where.conditions if isinstance(where, conditions.And) else (where,)

    def is_decidable(part: conditions.Condition) -> bool:
        return all(
            not isinstance(name, LinkName)
            and name not in undecidable
            and graph.table.has(path.keys.index_name, name)
            for name, *_ in conditions.paths_of(part)
        )

    return (
        conditions.conjunction(*(part for part in parts if is_decidable(part))),
        conditions.conjunction(*(part for part in parts if not is_decidable(part))),
    )


def literal(name: str, template: Template) -> list[conditions.Condition]:
    """Returns the conditions that a key begins with its template's literal text, or is it, and contains the rest."""
    path, [head, *others] = (name,), template.tokens
    begins = head if isinstance(head, str) else ""
    found: list[conditions.Condition] = (
        [conditions.BeginsWith(path, begins) if others else conditions.Eq(path, begins)] if begins else []
    )
    inside = dict.fromkeys(each for each in others if isinstance(each, str))
    return [*found, *(conditions.Contains(path, each) for each in inside if each not in begins)]
