"""Rivals: the record types whose keys a key could be mistaken for.

A text is refused as a part of a key if the key would be read back as another type's.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cache

from keygraph.dynamo.limits import KEY_BYTES
from keygraph.keys.shapes import Shape, are_disjoint, is_special_case, shape
from keygraph.keys.template import Template
from keygraph.keys.union import NodeText, in_use
from keygraph.model.record_keys import Keys
from keygraph.model.records import RecordType


class Rivals:
    """The rivals of every key of a graph's types; each is computed once."""

    def __init__(
        self, types: Mapping[str, RecordType], may_look_alike: Callable[[RecordType, RecordType, Keys], bool]
    ) -> None:
        """`may_look_alike` tells whether keys of one type may look like those of another."""
        self._types = types
        self._may_look_alike = may_look_alike
        self.plain_lengths: Callable[[Keys], tuple[int, ...]] = cache(self._find_plain_lengths)
        """The number of ASCII characters up to which each of these keys parses back and fits no other shape; 0 if that
        must be checked."""
        self.plain_identities: Callable[[RecordType], tuple[int, ...]] = cache(self._find_plain_identities)
        """The same for the table keys of a type, if its identity alone determines them and no other type's can be
        equal; empty if that must be checked."""
        self._templates_of = cache(self._find_templates)
        self._templates_at = cache(self._find_templates_at)
        self._records_of = cache(self._find_records)
        self._records_of_type = cache(self._find_records_of_type)

    def _find_plain_identities(self, record: RecordType) -> tuple[int, ...]:
        is_alone = record.write_key is not None and self._records_of_type(record) == []
        return self.plain_lengths(record.table_keys) if is_alone else ()

    def _find_plain_lengths(self, keys: Keys) -> tuple[int, ...]:
        return tuple(self._find_plain_length(keys, number) for number in range(len(keys.templates)))

    def _find_plain_length(self, keys: Keys, number: int) -> int:
        template = keys.templates[number]
        takes_any = template.says_any_text or not template.slots
        is_plain = takes_any and not _names_unions(keys) and not self._templates(keys, number, {})
        return KEY_BYTES[number] if is_plain else 0

    def template(self, keys: Keys, number: int, texts: Mapping[str, str | None], key: str) -> Template | None:
        """Returns another type's template that the partition key (0) or the sort key (1) with those texts fits.

        A sort key is compared together with its partition key: in another partition it cannot be mistaken.
        """
        rivals = self._templates(keys, number, texts)
        whole = (*(each.render(texts) for each in keys.templates[:number]), key) if rivals else ()
        return next((rival[-1] for rival in rivals if _fits(rival, whole)), None)

    def _templates(
        self, keys: Keys, number: int, texts: Mapping[str, str | None]
    ) -> tuple[tuple[Template, ...], ...]:
        """Returns other types' templates of the key attributes up to this one, if this one is not a special case."""
        found = self._templates_at(keys, number)
        if found is not None:
            return found
        return self._templates_of(keys, in_use(keys.templates[: number + 1], texts))

    def _find_templates_at(self, keys: Keys, number: int) -> tuple[tuple[Template, ...], ...] | None:
        """Returns the ones that apply to every key; None if the key's texts decide."""
        if _names_unions(keys):
            return None
        return self._templates_of(keys, keys.templates[: number + 1])

    def _find_templates(
        self, keys: Keys, templates: tuple[Template, ...]
    ) -> tuple[tuple[Template, ...], ...]:
        attributes = keys.attributes[: len(templates)]
        owners = [each for each in self._types.values() if keys in each.keys.values()]
        rivals: dict[tuple[Template, ...], None] = {}
        for other in self._types.values():
            parts = () if other.is_virtual else [part for each in other.keys.values() for part in each.parts]
            named = {key.name: template for key, template in parts}
            if any(each.name not in named for each in attributes):
                continue
            if all(self._may_look_alike(each, other, keys) for each in owners):
                continue
            theirs = tuple(named[each.name] for each in attributes)
            is_special = is_special_case(shape(templates[-1]), shape(theirs[-1]))
            is_apart = len(templates) == 2 and _is_refused_in(shape(templates[0]), shape(theirs[0]))
            if not is_special and not is_apart and not are_disjoint(shape(*templates), shape(*theirs)):
                rivals[theirs] = None
        return tuple(rivals)

    def may_have(self, record: RecordType) -> bool:
        """Returns whether a whole key of the type can be another type's."""
        return self._records_of_type(record) != []

    def records(self, record: RecordType, texts: Mapping[str, str | None]) -> list[RecordType]:
        """Returns the types whose key a whole key of this one can be: an edge from a node to itself has the node's."""
        found = self._records_of_type(record)
        return (
            self._records_of(record, in_use(record.table_keys.templates, texts)) if found is None else found
        )

    def _find_records_of_type(self, record: RecordType) -> list[RecordType] | None:
        """Returns the ones that apply to every key of the type; None if the key's texts decide."""
        keys = record.table_keys
        return None if _names_unions(keys) else self._find_records(record, keys.templates)

    def _find_records(self, record: RecordType, templates: tuple[Template, ...]) -> list[RecordType]:
        own, own_partition = shape(*templates), shape(templates[0])
        return [
            other
            for other in self._types.values()
            if other is not record and not other.is_virtual and not record.is_virtual
            if not self._may_look_alike(record, other, record.table_keys)
            for theirs in [shape(*other.table_keys.templates)]
            if not is_special_case(own, theirs) and not are_disjoint(own, theirs)
            if not _is_refused_in(own_partition, shape(other.table_keys.partition))
        ]


def _is_refused_in(partition: Shape, other: Shape) -> bool:
    """Returns whether every key of the other shape that is also one of this partition is refused as the other's."""
    return all(
        are_disjoint((wide,), (narrow,)) or not is_special_case((wide,), partition)
        for wide in other
        for narrow in partition
    )


def _fits(templates: tuple[Template, ...], key: tuple[str | None, ...]) -> bool:
    """Returns whether the texts of a key, a partition key alone or with a sort key, can be read by these templates."""
    texts: dict[str, str] = {}
    for template, text in zip(templates, key, strict=True):
        found = None if text is None else template.parse(text)
        if found is None or any(texts.get(name, each) != each for name, each in found.items()):
            return False
        texts |= found
    return True


def _names_unions(keys: Keys) -> bool:
    """Returns whether a text in the keys may be the key of a node of one of several types."""
    return any(isinstance(slot.text, NodeText) for slot in keys.slots)
