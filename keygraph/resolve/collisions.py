"""Collisions: the record types whose keys a key could be mistaken for.

A text is refused as a part of a key if the key would be read back as another type's.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache

from keygraph.dynamo.limits import KEY_BYTES
from keygraph.keys.shapes import Shape, are_disjoint, is_narrower, is_special_case, shape
from keygraph.keys.template import Slot, Template
from keygraph.keys.text import key_text
from keygraph.keys.types import FieldType
from keygraph.keys.union import in_use
from keygraph.model.record_keys import Keys
from keygraph.model.records import RecordType
from keygraph.names import NOTE
from keygraph.resolve.record_types import RecordTypes

_ANY_TEXT = Template((Slot(("note",), key_text(FieldType("string"))),))
_NOTES = Template((f"{NOTE}#", *_ANY_TEXT.tokens))


class KeyCollisions:
    """The collisions of every key of a graph's types; each is computed once."""

    def __init__(self, graph: RecordTypes) -> None:
        self._graph = graph
        self.plain_lengths = cache(self._find_plain_lengths)
        """The number of ASCII characters up to which each of these keys parses back and fits no other shape; 0 if that
        must be checked."""
        self.plain_identities = cache(self._find_plain_identities)
        """The same for the table's whole key of a type, if its identity alone determines it and no other type's can be
        equal. It holds for texts without these characters."""
        self._templates_of = cache(self._find_templates)
        self._records_of = cache(self._find_records)

    def _find_plain_identities(self, record: RecordType) -> tuple[int, frozenset[str]]:
        if record.write_key is None or self.may_have(record):
            return 0, frozenset()
        keys, lengths, without = record.table_keys, [], set[str]()
        for number, most in enumerate(KEY_BYTES[: len(keys.templates)]):
            separators = [_more_often(keys, theirs) for theirs in self._templates(keys, number, {})]
            lengths.append(most if _is_plain(keys, number) and None not in separators else 0)
            without |= {*filter(None, separators)}
        return min(lengths), frozenset(without)

    def _find_plain_lengths(self, keys: Keys) -> tuple[int, ...]:
        lengths = enumerate(KEY_BYTES[: len(keys.templates)])
        return tuple(
            most if _is_plain(keys, number) and not self._templates(keys, number, {}) else 0
            for number, most in lengths
        )

    def template(self, keys: Keys, number: int, texts: Mapping[str, str | None], key: str) -> Template | None:
        """Returns another type's template that the partition key (0) or the sort key (1) with those texts fits.

        A sort key is compared together with its partition key: in another partition it cannot be mistaken.
        """
        others = self._templates(keys, number, texts)
        whole = (*(each.render(texts) for each in keys.templates[:number]), key) if others else ()
        return next((other[-1] for other in others if _fits(other, whole)), None)

    def _templates(
        self, keys: Keys, number: int, texts: Mapping[str, str | None]
    ) -> tuple[tuple[Template, ...], ...]:
        """Returns other types' templates of the key attributes up to this one, if this one is not a special case."""
        templates = keys.templates[: number + 1]
        return self._templates_of(keys, in_use(templates, texts) if keys.names_unions else templates)

    def _find_templates(
        self, keys: Keys, templates: tuple[Template, ...]
    ) -> tuple[tuple[Template, ...], ...]:
        attributes = keys.attributes[: len(templates)]
        owners = [each for each in self._graph.types.values() if keys in each.keys.values()]
        found: dict[tuple[Template, ...], None] = {}
        for other in self._graph.types.values():
            parts = () if other.is_virtual else [part for each in other.keys.values() for part in each.parts]
            named = {key.name: template for key, template in parts}
            if any(each.name not in named for each in attributes):
                continue
            if all(self._graph.may_look_alike(each, other, keys) for each in owners):
                continue
            theirs = tuple(named[each.name] for each in attributes)
            partition, other_partition = shape(templates[0]), shape(theirs[0])
            # A partition of the same values may be both types'; then the whole key is compared.
            is_shared = is_narrower(other_partition, partition) and not any(
                self._graph.share_an_end(each, other) for each in owners
            )
            if len(templates) < len(keys.templates):
                is_separate = is_shared
            else:
                is_separate = len(templates) == 2 and _is_refused_in(partition, other_partition)
            is_special = not is_shared and is_special_case(shape(templates[-1]), shape(theirs[-1]))
            if not is_special and not is_separate and not are_disjoint(shape(*templates), shape(*theirs)):
                found[theirs] = None
        is_text = keys.index is None and keys.attributes[0].type == "S"
        if is_text and not are_disjoint(shape(templates[0]), shape(_NOTES)):
            found[_NOTES, *[_ANY_TEXT for _ in templates[1:]]] = None
        return tuple(found)

    def may_have(self, record: RecordType) -> bool:
        """Returns whether a whole key of the type can be another type's."""
        return record.table_keys.names_unions or bool(self.records(record, {}))

    def records(self, record: RecordType, texts: Mapping[str, str | None]) -> list[RecordType]:
        """Returns the types whose key a whole key of this one can be: an edge from a node to itself has the node's."""
        keys = record.table_keys
        return self._records_of(
            record, in_use(keys.templates, texts) if keys.names_unions else keys.templates
        )

    def _find_records(self, record: RecordType, templates: tuple[Template, ...]) -> list[RecordType]:
        own, own_partition = shape(*templates), shape(templates[0])
        return [
            other
            for other in self._graph.types.values()
            if other is not record and not other.is_virtual and not record.is_virtual
            if not self._graph.may_look_alike(record, other, record.table_keys)
            for theirs in [shape(*other.table_keys.templates)]
            if not is_special_case(own, theirs) and not are_disjoint(own, theirs)
            if not _is_refused_in(own_partition, shape(other.table_keys.partition))
        ]


def _is_plain(keys: Keys, number: int) -> bool:
    """Returns whether every text parses back from the partition key (0) or the sort key (1)."""
    template = keys.templates[number]
    return not keys.names_unions and (template.takes_any_text or not template.slots)


def _fixed_text(template: Template) -> str:
    return "".join([token for token in template.tokens if isinstance(token, str)])


def _more_often(keys: Keys, theirs: tuple[Template, ...]) -> str | None:
    """Returns a character that another type's keys have more often than keys made of texts without it; None if there
    is none. What separates texts is preferred."""
    for number, other in enumerate(theirs):
        own, fixed = _fixed_text(keys.templates[number]), _fixed_text(other)
        chars: list[str] = sorted({*fixed}, key=lambda each: (each.isalnum(), each))
        for char in chars:
            if _is_plain(keys, number) and fixed.count(char) > own.count(char):
                return char
    return None


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
