"""Rivals: the record types whose keys a key could be mistaken for.

A text is refused as a part of a key where the key would be read back as another type's.
"""

from __future__ import annotations

from collections.abc import Mapping

from keygraph.keys.shapes import are_disjoint, is_special_case, shape
from keygraph.keys.template import Template
from keygraph.keys.union import NodeText, in_use
from keygraph.model.record_keys import Keys
from keygraph.model.records import RecordType


class Rivals:
    """The rivals of every key of a graph's types; each is looked for once."""

    def __init__(self, types: Mapping[str, RecordType]) -> None:
        self._types = types
        self._certain: dict[tuple[Keys, int], bool] = {}
        self._templates: dict[tuple[str | None, tuple[Template, ...]], tuple[Template, ...]] = {}
        self._records: dict[tuple[str, tuple[Template, ...]], list[RecordType]] = {}

    def has_none(self, keys: Keys, number: int) -> bool:
        """Whether every key there that is neither empty nor too long parses back, and is of no other shape.

        `number` is 0 for the partition key and 1 for the sort key.
        """
        found = self._certain.get((keys, number))
        if found is None:
            template = keys.templates[number]
            found = self._certain[keys, number] = (
                (template.says_any_text or not template.slots)
                and not any(isinstance(slot.text, NodeText) for slot in keys.slots)
                and not self.templates(keys, number, {})
            )
        return found

    def templates(self, keys: Keys, number: int, texts: Mapping[str, str | None]) -> tuple[Template, ...]:
        """The templates that the key attribute has elsewhere and of which this one is no special case."""
        own = in_use(keys.templates[: number + 1], texts)
        place = (keys.index_name, own)
        if place not in self._templates:
            self._templates[place] = self._find_templates(keys, own)
        return self._templates[place]

    def _find_templates(self, keys: Keys, templates: tuple[Template, ...]) -> tuple[Template, ...]:
        number = len(templates) - 1
        attribute = keys.attributes[number].name
        own, own_partition = shape(templates[number]), shape(templates[0])
        rivals: dict[Template, None] = {}
        for other in self._types.values():
            if other.is_virtual:
                continue
            for others in other.keys.values():
                for key, template in zip(others.attributes, others.templates, strict=False):
                    if key.name != attribute or is_special_case(own, shape(template)):
                        continue
                    is_elsewhere = number == 1 and are_disjoint(own_partition, shape(others.partition))
                    if not is_elsewhere and not are_disjoint(own, shape(template)):
                        rivals[template] = None
        return tuple(rivals)

    def records(self, record: RecordType, texts: Mapping[str, str | None]) -> list[RecordType]:
        """The types of which a whole key of this one can be, as the edge from a node to itself has the node's own."""
        templates = in_use(record.table_keys.templates, texts)
        place = (record.name, templates)
        if place not in self._records:
            own = shape(*templates)
            self._records[place] = [
                other
                for other in self._types.values()
                if other is not record and not other.is_virtual and not record.is_virtual
                for theirs in [shape(*other.table_keys.templates)]
                if not is_special_case(own, theirs) and not are_disjoint(own, theirs)
            ]
        return self._records[place]
