"""Read keys of an unknown table: which parts of their text are fixed words, and which parts vary.

The table's separators, and the words that keys begin with, are found first. Then each text is split at them. Its
pattern has the words as they are, and `VARYING` for every other part: `ORDER#17` is ("ORDER", "#", VARYING) and "17".
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import takewhile
from typing import NamedTuple, TypeAlias, cast

from keygraph.dynamo.items import Item
from keygraph.dynamo.table import KeyAttribute
from keygraph.keys.types import ISO_DATETIME


@dataclass(frozen=True)
class VaryingPart:
    """A part in which the keys of one pattern differ. The word before it tells whether it is a shard's number."""

    shard: bool = False


VARYING = VaryingPart()
Pattern: TypeAlias = tuple[str | VaryingPart, ...]


class KeyReading(NamedTuple):
    """A key's text as it was read: its pattern, and the texts of its varying parts."""

    pattern: Pattern
    texts: tuple[str, ...]


_STRONG = "#|/:~$^;,\\!&"
"""These separate parts anywhere in a key."""
_WEAK = "_-. "
"""These separate a first word from the rest, if nothing stronger does."""
_UUID = r"[0-9A-Fa-f]{8}-(?:[0-9A-Fa-f]{4}-){3}[0-9A-Fa-f]{12}"
_WHOLE = re.compile(rf"(?<![0-9A-Za-z])(?:{ISO_DATETIME}|{_UUID})(?![0-9A-Za-z])", re.ASCII)
"""One part, whatever separators it holds."""
_NOTHING = r"^\s\S"
"""Inside of a character class: no character."""
_WORD = re.compile(r"[A-Za-z][A-Za-z_-]{0,39}")
_SHARD = re.compile(r"(.*(?:shard|bucket|partition|slice)[-_.]?)([0-9]{1,4})", re.IGNORECASE)
_MOST_WORDS = 20
"""With more different words than this in one place, they are values."""
_FEW_TEXTS = 3
_LENGTHS = 3
"""Keys with one beginning and at least so many different lengths are one pattern."""


def is_word(text: str) -> bool:
    """Whether the text can be a word that names what a key is of."""
    return _WORD.fullmatch(text) is not None


class KeyReader:
    """Reads the texts of a table's keys, by what they have in common."""

    def __init__(self, columns: Mapping[str, Sequence[str]], partitions: Collection[str]) -> None:
        """`columns` are the texts of each key attribute in the sample, `partitions` the names of the partition keys."""
        self._partitions = partitions
        self._known: dict[tuple[str, str], KeyReading] = {}
        texts = [text for column in columns.values() for text in column]
        strong = _strong_separators(texts)
        self._weak = None if strong else _weak_heads(texts)
        inside = "".join(map(re.escape, sorted(strong))) or _NOTHING
        self._separators = re.compile(rf"{_WHOLE.pattern}|(?P<separator>[{inside}]+)", re.ASCII)
        split = {name: [self._split(text) for text in column] for name, column in columns.items()}
        self._heads = _heads([parts for column in split.values() for parts in column])
        self._constants = {name: self._constants_of(name, column) for name, column in split.items()}
        self._words = self._words_inside(split)
        self._collapsed = {name: self._long_tails(name, column) for name, column in columns.items()}

    def read(self, key: KeyAttribute, item: Item) -> KeyReading | None:
        """The pattern and the varying texts of an item's key; None if it has no such key."""
        value = item.get(key.name)
        text = key.text(value)
        if text is None or not isinstance(value, str):
            return None if text is None else KeyReading((VARYING,), (text,))
        known = self._known.get((key.name, text))
        if known is None:
            known = self._known[key.name, text] = self._found(key.name, text)
        return known

    def _found(self, attribute: str, text: str) -> KeyReading:
        found = self._read(attribute, text)
        head = _beginning(found.pattern)
        if head not in self._collapsed.get(attribute, ()):
            return found
        rest = text[len("".join(part for part in head)) :]
        return KeyReading((*head, VARYING), (rest,)) if rest else found

    def _read(self, attribute: str, text: str) -> KeyReading:
        parts = self._split(text)
        values, seps = parts[::2], parts[1::2]
        pattern: list[str | VaryingPart] = []
        texts: list[str] = []
        for number, value in enumerate(values):
            shard = _SHARD.fullmatch(value) if attribute in self._partitions else None
            if not value:
                pass
            elif self._is_literal(attribute, values, seps, number):
                pattern.append(value)
            elif shard is not None:
                pattern += [shard[1], VaryingPart(shard=True)]
                texts.append(shard[2])
            else:
                pattern.append(VARYING)
                texts.append(value)
            if number < len(seps):
                pattern.append(seps[number])
        return KeyReading(tuple(pattern), tuple(texts))

    def _is_literal(self, attribute: str, values: Sequence[str], seps: Sequence[str], number: int) -> bool:
        value = values[number]
        given = [each for each in values if each]
        if len(given) == 1:
            return value in self._constants.get(attribute, ()) or (
                len(values) > 1 and number < len(values) - 1 and value in self._heads
            )
        if value is given[0] and number < len(values) - 1:
            return value in self._heads
        if number == len(values) - 1:
            return False
        place = (attribute, _head_of(values, self._heads), len(values), number)
        return is_word(value) and (
            (value in self._heads and value.isupper()) or value in self._words.get(place, ())
        )

    # --- Splitting ------------------------------------------------------------------------------------

    def _split(self, text: str) -> list[str]:
        """Values and separators in turn; the first and the last are values, which may be empty."""
        if self._weak:
            separator, heads = self._weak
            head, _, rest = text.partition(separator)
            return [head, separator, rest] if rest and head in heads else [text]
        parts: list[str] = []
        start = 0
        for found in self._separators.finditer(text):
            if found["separator"]:
                parts += [text[start : found.start()], found["separator"]]
                start = found.end()
        return [*parts, text[start:]]

    # --- Fixed words ------------------------------------------------------------------------------------

    def _constants_of(self, attribute: str, column: Iterable[Sequence[str]]) -> set[str]:
        """The words that are a whole key, apart from separators around them."""
        found = Counter(
            given[0] for parts in column for given in [[v for v in parts[::2] if v]] if len(given) == 1
        )
        total = sum(found.values())
        words = {word: count for word, count in found.items() if is_word(word)}
        upper = {word for word in words if word.isupper()}
        if attribute in self._partitions:
            chosen = {word for word, count in words.items() if count >= (2 if word in upper else 3)}
            return chosen if len(chosen) * 2 <= total and len(chosen) <= _MOST_WORDS else set()
        chosen = upper if len(upper) <= _MOST_WORDS else set()
        lower = {word for word, count in words.items() if count > 1 and word not in upper}
        return chosen | lower if len(lower) <= _MOST_WORDS // 2 else chosen

    def _words_inside(
        self, split: Mapping[str, Iterable[Sequence[str]]]
    ) -> dict[tuple[str, str, int, int], set[str]]:
        """The words between the first and the last part that are the same in all keys of a kind."""
        found: dict[tuple[str, str, int, int], set[str]] = {}
        for attribute, column in split.items():
            for parts in column:
                values = parts[::2]
                head = _head_of(values, self._heads)
                for number in range(1, len(values) - 1):
                    found.setdefault((attribute, head, len(values), number), set()).add(values[number])
        return {
            place: words
            for place, words in found.items()
            if len(words) == 1 and all(is_word(word) and word.isupper() for word in words)
        }

    def _long_tails(self, attribute: str, column: Iterable[str]) -> set[tuple[str, ...]]:
        """The beginnings of keys that any number of parts follows."""
        tails: dict[tuple[str, ...], set[Pattern]] = {}
        for text in column:
            pattern = self._read(attribute, text).pattern
            head = _beginning(pattern)
            rest = pattern[len(head) :]
            if all(isinstance(part, VaryingPart) or not is_word(part) for part in rest):
                tails.setdefault(head, set()).add(rest)
        return {head for head, rests in tails.items() if len(rests) >= _LENGTHS}


def _beginning(pattern: Pattern) -> tuple[str, ...]:
    """The parts before the first varying one."""
    return tuple(cast(str, part) for part in takewhile(lambda part: isinstance(part, str), pattern))


def _head_of(values: Sequence[str], heads: Collection[str]) -> str:
    first = next((value for value in values if value), "")
    return first if first in heads else ""


def _strong_separators(texts: Sequence[str]) -> frozenset[str]:
    """The characters that follow a first word, or begin a text, in some share of the texts."""
    found: Counter[str] = Counter()
    for text in texts:
        without = _WHOLE.sub("0", text)
        first = re.match(rf"([\w.-]+)([{re.escape(_STRONG)}])", without, re.ASCII)
        if first is not None:
            found[first[2]] += 1
        elif without[:1] in _STRONG:
            found[without[:1]] += 1
        for certain in "#|":
            found[certain] += certain in without
    least = max(1, len(texts) // 50)
    return frozenset(separator for separator, count in found.items() if count >= least)


def _weak_heads(texts: Sequence[str]) -> tuple[str, set[str]] | None:
    """The separator behind a first word, with these words; None if there is none."""
    best: tuple[int, str, set[str]] = (0, "", set())
    for separator in _WEAK:
        rests: dict[str, set[str]] = {}
        counted: Counter[str] = Counter()
        for text in texts:
            head, found, rest = text.partition(separator)
            if found and rest and re.fullmatch("[A-Za-z]+", head):
                rests.setdefault(head, set()).add(rest)
                counted[head] += 1
        heads = {head for head, each in rests.items() if len(each) > 1 or head.isupper() or counted[head] > 1}
        covered = sum(counted[head] for head in heads)
        if heads and len(heads) <= _MOST_WORDS and len(heads) * 2 <= covered and covered > best[0]:
            best = (covered, separator, heads)
    covered, separator, heads = best
    return (separator, heads) if heads and covered * 4 >= len(texts) else None


def _heads(column: Collection[Sequence[str]]) -> frozenset[str]:
    """The words that begin keys."""
    counted: Counter[str] = Counter()
    for parts in column:
        values = parts[::2]
        first = next((number for number, value in enumerate(values) if value), None)
        if first is not None and first < len(values) - 1 and is_word(values[first]):
            counted[values[first]] += 1
    upper = {word for word in counted if word.isupper()}
    others = counted.keys() - upper
    if len(upper) > _MOST_WORDS * 3:
        upper = set()
    repeated = sum(counted[word] for word in others) >= 2 * len(others) or len(column) <= _FEW_TEXTS
    return frozenset(upper | (set(others) if repeated and len(others) <= _MOST_WORDS else set()))
