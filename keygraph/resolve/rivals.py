"""Rivals: the record types whose keys a key could be mistaken for.

A text is refused as a part of a key if the key would be read back as another type's.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cache

from keygraph.dynamo.limits import KEY_BYTES
from keygraph.keys.shapes import are_disjoint, is_special_case, shape
from keygraph.keys.template import Template
from keygraph.keys.union import NodeText, in_use
from keygraph.model.record_keys import Keys
from keygraph.model.records import RecordType


class Rivals:
    """The rivals of every key of a graph's types; each is computed once."""

    def __init__(self, types: Mapping[str, RecordType]) -> None:
        self._types = types
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
        is_plain = takes_any and not _names_unions(keys) and not self.templates(keys, number, {})
        return KEY_BYTES[number] if is_plain else 0

    def templates(self, keys: Keys, number: int, texts: Mapping[str, str | None]) -> tuple[Template, ...]:
        """Returns the other templates of the key attribute that this one is not a special case of."""
        found = self._templates_at(keys, number)
        if found is not None:
            return found
        return self._templates_of(keys.attributes[number].name, in_use(keys.templates[: number + 1], texts))

    def _find_templates_at(self, keys: Keys, number: int) -> tuple[Template, ...] | None:
        """Returns the ones that apply to every key; None if the key's texts decide."""
        if _names_unions(keys):
            return None
        return self._templates_of(keys.attributes[number].name, keys.templates[: number + 1])

    def _find_templates(self, attribute: str, templates: tuple[Template, ...]) -> tuple[Template, ...]:
        own, own_partition = shape(templates[-1]), shape(templates[0])
        rivals: dict[Template, None] = {}
        for other in self._types.values():
            for others in () if other.is_virtual else other.keys.values():
                for key, template in others.parts:
                    if key.name != attribute or is_special_case(own, shape(template)):
                        continue
                    is_elsewhere = len(templates) == 2 and are_disjoint(
                        own_partition, shape(others.partition)
                    )
                    if not is_elsewhere and not are_disjoint(own, shape(template)):
                        rivals[template] = None
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
        own = shape(*templates)
        return [
            other
            for other in self._types.values()
            if other is not record and not other.is_virtual and not record.is_virtual
            for theirs in [shape(*other.table_keys.templates)]
            if not is_special_case(own, theirs) and not are_disjoint(own, theirs)
        ]


def _names_unions(keys: Keys) -> bool:
    """Returns whether a text in the keys may be the key of a node of one of several types."""
    return any(isinstance(slot.text, NodeText) for slot in keys.slots)
