"""Groups a sample into kinds: items with one type value whose keys have one pattern."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from decimal import Decimal
from itertools import combinations, takewhile
from typing import TypeAlias

from keygraph.draft.keys import KeyReader, KeyReading, Pattern, VaryingPart, is_word
from keygraph.dynamo.items import Item, Value
from keygraph.dynamo.table import KeyAttribute, Table
from keygraph.names import words

_TYPE_WORDS = frozenset(["type", "kind", "entity", "typename", "discriminator", "et", "edb"])
_BESIDE_TYPE_WORDS = _TYPE_WORDS.union(
    ["item", "record", "object", "name", "document", "row", "class", "model", "e"]
)
_MOST_TYPES = 60
_CERTAIN_PARTITIONS = 3
"""With this many partitions, one common sort key is not a coincidence."""
_CERTAIN_TEXT = 4
"""With this many characters, two equal parts of one key are not a coincidence."""


Texts: TypeAlias = "tuple[str | None, ...]"
"""A value, as text, in each item of a type."""


@dataclass(frozen=True, eq=False)
class Column:
    """A varying part of a kind's keys: its text in each of the items."""

    texts: Texts
    shard: bool = False

    @property
    def given(self) -> list[str]:
        """Its text in each of the items that have the key."""
        return [text for text in self.texts if text is not None]

    @property
    def is_certain(self) -> bool:
        """Whether it is not a coincidence that another column has the same texts. One short text may be one."""
        return len(self.texts) > 1 or len(self.given[0]) >= _CERTAIN_TEXT

    def equals(self, texts: Texts) -> bool:
        """Whether these texts are the same in all items that have the key."""
        return bool(texts) and all(
            own is None or own == other for own, other in zip(self.texts, texts, strict=True)
        )


Part = str | Column
"""A part of a kind's key: a fixed text, or a column. A column that is repeated is the same object."""


@dataclass(eq=False)
class ItemKind:
    """Items that look like one record type."""

    items: list[Item]
    type_value: str | None
    partition: tuple[Part, ...]
    sort: tuple[Part, ...]
    """Empty if the table has no sort key."""
    has_equal_keys: bool = False
    """Whether the sort key is the partition key."""

    @property
    def type_word(self) -> str:
        """The type value if it can name the type, and is no single letter; else empty."""
        value = self.type_value or ""
        return value if len(value) > 1 else ""

    @property
    def partition_columns(self) -> list[Column]:
        """The varying parts of the partition key, without shards."""
        return [part for part in columns_of(self.partition) if not part.shard]

    @property
    def own_columns(self) -> list[Column]:
        """The varying parts of the sort key that are not in the partition key."""
        return [part for part in dict.fromkeys(columns_of(self.sort)) if part not in self.partition]


def words_of(parts: Iterable[Part]) -> list[str]:
    """The words of a key, without quotes around them."""
    return [word for part in parts if isinstance(part, str) and is_word(word := part.strip("\"'"))]


def signature_of(parts: Iterable[Part]) -> tuple[str | None, ...]:
    """The words of a key, with None for each varying part."""
    return tuple(None if isinstance(part, Column) else part for part in parts)


def columns_of(parts: Iterable[Part]) -> list[Column]:
    """The varying parts of a key."""
    return [part for part in parts if isinstance(part, Column)]


def rows_of(parts: Iterable[Part]) -> frozenset[tuple[str, ...]]:
    """The texts of the varying parts, together for each item that has the key."""
    rows = zip(*(column.texts for column in columns_of(parts)), strict=True)
    return frozenset(row for row in rows if None not in row)


class Kinds:
    """The kinds of a sample, whose keys one reader has read."""

    def __init__(self, table: Table, items: Sequence[Item]) -> None:
        self.table = table
        self.items = [item for item in items if all(key.holds(item.get(key.name)) for key in table.keys)]
        self.reader = _reader(table, self.items)
        self.doubts = self.reader.doubts
        """The uncertain points about the keys and the types, as texts."""
        self.type_attribute = self._find_type_attribute()
        self.head_key = None if self.type_attribute else self._find_head_key()
        """The key of an index whose first words tell the types of items with plain ids as keys."""
        self.found = self._cluster()

    # --- The type attribute ---------------------------------------------------------------------------

    def _find_type_attribute(self) -> str | None:
        keys = {key.name for key in self.table.key_attributes()}
        texts = (name for item in self.items for name, value in item.items() if isinstance(value, str))
        counted = Counter(name for name in texts if name not in keys)
        usable = [name for name, count in counted.items() if count * 2 >= len(self.items)]
        named = [
            name for name in usable if (own := {*words(name)}) & _TYPE_WORDS and own <= _BESIDE_TYPE_WORDS
        ]
        for name in sorted(named, key=lambda name: (-counted[name], name)):
            values = {item[name] for item in self.items if isinstance(item.get(name), str)}
            shapes = {self._shape(item) for item in self.items if isinstance(item.get(name), str)}
            is_few = len(values) * 2 <= counted[name] or len(values) <= max(3, len(shapes))
            are_types = len(values) <= _MOST_TYPES and all(_is_type_name(str(value)) for value in values)
            if is_few and are_types and self._separates(name):
                return name
            if is_few and are_types and len(values) > 1:
                self.doubts.append(f"{name} does not tell the shapes of keys apart, so it is a field")
        others = sorted(
            name for name in usable if counted[name] * 20 >= len(self.items) * 19 and name not in named
        )
        return next((name for name in others if self._separates_shapes(name)), None)

    def _separates(self, name: str) -> bool:
        """Returns whether most shapes of keys have one value of the attribute each, or several whose items differ.

        If not, its values are kinds within a type, such as the credits and debits of an account.
        """
        shapes: dict[object, dict[str, list[Item]]] = {}
        for item in self.items:
            value = item.get(name)
            if isinstance(value, str):
                shapes.setdefault(self._shape(item), {}).setdefault(value, []).append(item)
        separated = [len(by_value) == 1 or _differ(by_value.values()) for by_value in shapes.values()]
        return sum(separated) * 2 > len(separated)

    def _separates_shapes(self, name: str) -> bool:
        """Returns whether each value of the attribute has one shape of keys, and each shape one value. Items of other
        shapes may lack it."""
        if not all(isinstance(item.get(name, ""), str) for item in self.items):
            return False
        pairs = {(item.get(name), self._shape(item)) for item in self.items}
        values, shapes = ({pair[side] for pair in pairs if pair[0] is not None} for side in (0, 1))
        without = {shape for value, shape in pairs if value is None}
        is_one_to_one = len(pairs) - len(without) == len(values) == len(shapes) > 2
        return is_one_to_one and shapes.isdisjoint(without) and all(map(_is_type_name, map(str, values)))

    def _find_head_key(self) -> KeyAttribute | None:
        for key in dict.fromkeys(index.partition for index in self.table.indexes):
            heads: dict[object, list[str]] = {}
            for item in self.items:
                heads.setdefault(self._shape(item), []).append(self._head(item, key))
            if any(len({*each}) > 1 and "" not in each for each in heads.values()):
                return key
        return None

    def _head(self, item: Item, key: KeyAttribute) -> str:
        """Returns the first word in a key of an index, up to a value, if the table's keys have no words; else empty."""
        reading = self.reader.read(key, item)
        is_plain = not any(isinstance(part, str) for pattern in self._shape(item)[0] for part in pattern)
        if key in self.table.keys or reading is None or not is_plain:
            return ""
        head = "".join(map(str, takewhile(lambda part: isinstance(part, str), reading.pattern)))
        return head if head[:1].isalpha() else ""

    # --- Kinds ----------------------------------------------------------------------------------------

    def _read(self, item: Item, key: KeyAttribute) -> KeyReading:
        return self.reader.read(key, item) or KeyReading((), ())

    def _shape(self, item: Item) -> tuple[tuple[Pattern, ...], bool]:
        """Returns the patterns of the item's keys, and whether the keys are equal."""
        readings = [self._read(item, key) for key in self.table.keys]
        values = [item[key.name] for key in self.table.keys]
        if len(values) == 2 and values[0] == values[1]:
            return (readings[0].pattern, readings[0].pattern), True
        return tuple(reading.pattern for reading in readings), False

    def _cluster(self) -> list[ItemKind]:
        groups: dict[tuple[str, tuple[Pattern, ...], bool], list[Item]] = {}
        for item in self.items:
            value = item.get(self.type_attribute) if self.type_attribute else None
            patterns, is_equal = self._shape(item)
            label = (
                value if isinstance(value, str) else self._head(item, self.head_key) if self.head_key else ""
            )
            groups.setdefault((label, patterns, is_equal), []).append(item)
        for label, patterns, is_equal in list(groups):
            others = groups.get((label, patterns, False), [])
            if is_equal and _are_few_of(groups[label, patterns, True], others):
                # A key that is equal by chance: users may follow themselves.
                others += groups.pop((label, patterns, True))
        return [
            kind
            for (label, patterns, is_equal), items in groups.items()
            for kind in self._kinds(label or None, patterns, is_equal, items)
        ]

    def _kinds(
        self, value: str | None, patterns: tuple[Pattern, ...], is_equal: bool, items: list[Item]
    ) -> list[ItemKind]:
        partition = parts_of(patterns[0], [self._read(item, self.table.keys[0]).texts for item in items])
        partition = self._without_prefixes(partition, items)
        if is_equal or len(patterns) == 1:
            return [ItemKind(items, value, partition, partition if is_equal else (), is_equal)]
        texts = [self._read(item, self.table.keys[1]).texts for item in items]
        known = [each for each in columns_of(partition) if each.is_certain]
        sort = self._without_prefixes(parts_of(patterns[1], texts, known), items)
        kind = ItemKind(items, value, partition, _without_constants(sort, partition))
        return self._split_by_words(kind) or [kind]

    def _without_prefixes(self, parts: tuple[Part, ...], items: Sequence[Item]) -> tuple[Part, ...]:
        """Returns the parts, with a prefix as literal text if an attribute has the value without it: `v3` for 3."""
        keys = {key.name for key in self.table.key_attributes()}
        values = [{name: value for name, value in item.items() if name not in keys} for item in items]
        found: list[Part] = []
        for part in parts:
            prefix = _prefix(part.given, values) if isinstance(part, Column) and not part.shard else ""
            if prefix and isinstance(part, Column):
                found += [prefix, Column(tuple(text.removeprefix(prefix) for text in part.given))]
            else:
                found.append(part)
        return tuple(found)

    def _split_by_words(self, kind: ItemKind) -> list[ItemKind]:
        """Returns the kinds that a last word of the sort key distinguishes: `NAME|1|PERSON`."""
        repeated = [part for part in columns_of(kind.sort) if part in kind.partition]
        if kind.own_columns != [*kind.sort[-1:]] or not repeated:
            return []
        [column] = kind.own_columns
        chosen = dict.fromkeys(column.given)
        is_few = len(chosen) * 2 <= len(kind.items) + 1
        if not is_few or not all(is_word(word) and word.isupper() for word in chosen):
            return []

        def of_word(word: str) -> ItemKind:
            rows = [number for number, text in enumerate(column.texts) if text == word]

            narrowed = {
                part: replace(part, texts=tuple(part.texts[row] for row in rows))
                for part in columns_of((*kind.partition, *kind.sort))
            }

            def within(part: Part) -> Part:
                if isinstance(part, str):
                    return part
                return word if part is column else narrowed[part]

            items = [kind.items[row] for row in rows]
            partition, sort = (tuple(map(within, parts)) for parts in (kind.partition, kind.sort))
            return ItemKind(items, kind.type_value, partition, sort)

        return list(map(of_word, chosen))


def _reader(table: Table, items: Sequence[Item]) -> KeyReader:
    keys = {key.name for key in table.key_attributes()}
    forms = [(item, frozenset(item.keys() - keys)) for item in items]
    columns = {
        key.name: [
            (value, form) for item, form in forms if isinstance(value := item.get(key.name), str) and value
        ]
        for key in table.key_attributes()
        if key.type == "S"
    }
    partitions = {table.partition.name, *(index.partition.name for index in table.indexes)}
    return KeyReader(columns, partitions)


def _are_few_of(items: Sequence[Item], others: Sequence[Item]) -> bool:
    """Returns whether the items are few compared with the others, and have the same attributes."""
    own, whole = (set().union(*each) for each in (items, others))
    return len(items) * 3 <= len(others) and own <= whole


def _differ(groups: Iterable[Sequence[Item]]) -> bool:
    """Returns whether any two groups of items have attributes of their own, which all items of the other lack."""
    found = [(set(group[0]).intersection(*group), set().union(*group)) for group in groups]
    return all(
        bool(own - others) or bool(those - every) for (own, every), (those, others) in combinations(found, 2)
    )


def _is_type_name(value: str) -> bool:
    return re.fullmatch(r"[A-Za-z_][\w .:/#-]{0,59}", value, re.ASCII) is not None


def parts_of(pattern: Pattern, rows: Sequence[Texts], known: Iterable[Column] = ()) -> tuple[Part, ...]:
    """Returns the pattern with its columns. A column that equals a known one is that one."""
    columns = iter(zip(*rows, strict=True))
    by_texts = {column.texts: column for column in known}
    made: list[Part] = []
    for part in pattern:
        if isinstance(part, VaryingPart):
            texts = next(columns)
            made.append(by_texts.get(texts) or Column(tuple(text or None for text in texts), part.shard))
        elif made and isinstance(made[-1], str) and not (is_word(part) or is_word(made[-1])):
            made[-1] += part
        else:
            made.append(part)
    return tuple(made)


def _prefix(texts: Sequence[str], items: Sequence[Item]) -> str:
    match = re.match("[A-Za-z]+[_-]?(?=.)", texts[0])
    if match is None or len(set(texts)) < 2 or not all(len(text) > len(match[0]) for text in texts):
        return ""
    if not all(text.startswith(match[0]) for text in texts):
        return ""

    def is_stored(values: Sequence[str]) -> bool:
        return any(
            all(_is_value(item.get(name), text) for item, text in zip(items, values, strict=True))
            for name, first in items[0].items()
            if isinstance(first, str | Decimal)
        )

    rests = [text.removeprefix(match[0]) for text in texts]
    return match[0] if is_stored(rests) and not is_stored(texts) else ""


def _is_value(value: Value, text: str) -> bool:
    return value == text or (isinstance(value, Decimal) and text.isdecimal() and value == int(text))


def _without_constants(sort: tuple[Part, ...], partition: tuple[Part, ...]) -> tuple[Part, ...]:
    """Returns the sort key, with literal text for parts equal in many partitions, if nothing else varies."""
    own = [part for part in columns_of(sort) if part not in partition]
    is_same = any(len(set(first.texts)) >= _CERTAIN_PARTITIONS for first in columns_of(partition)[:1])
    if not is_same or not all(len(set(part.given)) == 1 and part.given[0][0].isalpha() for part in own):
        return sort
    return tuple(part.given[0] if isinstance(part, Column) and part in own else part for part in sort)
