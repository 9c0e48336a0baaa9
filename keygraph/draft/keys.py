"""Reads the keys of an unknown table: which parts of their text are fixed words, and which parts vary.

It first finds the table's separators, and the words that keys begin with. Then it splits each text at the separators. A
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
    """A part that differs between the keys of one pattern; a shard's number if the word before it says so."""

    shard: bool = False


VARYING = VaryingPart()
Pattern: TypeAlias = tuple[str | VaryingPart, ...]


class KeyReading(NamedTuple):
    """A key's pattern, and the texts of its varying parts."""

    pattern: Pattern
    texts: tuple[str, ...]


_Row: TypeAlias = "tuple[Sequence[str], Form]"
"""The values of a key between its separators, and the form of its item."""
_Place: TypeAlias = "tuple[str, str, int, int]"
"""A key attribute, the word that its keys begin with, how many values they have, and the number of one of them."""
_FIRM = "#|"
"""These separate parts wherever they are."""
_STRONG = "#|/:~$^;,\\!&"
"""These separate parts anywhere in a key."""
_WEAK = "_-. "
"""These separate a first word from the rest, if no stronger separator does."""
_UUID = r"[0-9A-Fa-f]{8}-(?:[0-9A-Fa-f]{4}-){3}[0-9A-Fa-f]{12}"
SLASHED_DATE = r"[0-9]{4}/[01][0-9]/[0-3][0-9]"
_WHOLE = re.compile(rf"(?<![0-9A-Za-z])(?:{ISO_DATETIME}|{_UUID}|{SLASHED_DATE})(?![0-9A-Za-z])", re.ASCII)
"""A single part, whatever separators it holds."""
_NOTHING = r"^\s\S"
"""Inside a character class: no character."""
MAIN = frozenset(
    ["metadata", "meta", "profile", "info", "details", "detail", "root", "self", "data", "main", "base"]
)
"""Words in the sort key of an entity's own item, if the entity has several items."""
_WORD = re.compile(r"[A-Za-z][A-Za-z_-]{0,39}")
_NUMBERED = re.compile(r"([A-Z][A-Z_-]{1,38}[A-Z])(0|[1-9][0-9]*)", re.ASCII)
"""A word with a number, which no separator parts."""
_ORDERED = re.compile(rf"(?:[0-9.+-]+|{ISO_DATETIME}|{SLASHED_DATE})$", re.ASCII)
"""Numbers and times: keys with another value after them sort by these."""
_SHARD = re.compile(r"(.*(?:shard|bucket|partition|slice)[-_.]?)([0-9]{1,4})", re.IGNORECASE)
_LEAD = re.compile(r"([A-Za-z]+[-_.])([^#|/:]+)([#|/:])(?=([A-Za-z]+)[-_.])", re.ASCII)
"""What may begin the keys of all types, before the word of one: `T-acme#` in `T-acme#C-7`."""
_MOST_WORDS = 20
"""With more different words than this in one place, they are values."""
_FEW_TEXTS = 3
_LISTED = 5
_LENGTHS = 3
"""Keys with one beginning and at least this many different lengths are one pattern."""
_ALIKE = 0.75
"""The share of attributes that the items of two words must have in common to be alike."""
_MANY_ALIKE, _FEW_ITEMS = 4, 3
"""This many words with similar items are values, if each has on average fewer items than this."""

Form: TypeAlias = frozenset[str]
"""The names of an item's non-key attributes: items of one type have mostly the same."""


def is_word(text: str) -> bool:
    """Returns whether the text can be a word that names the subject of a key."""
    return _WORD.fullmatch(text) is not None


def is_mark(text: str) -> bool:
    """Returns whether the text stands for nothing by itself: `-`, or a word in quotes."""
    return re.fullmatch(r"\W{1,3}|([\"'])[A-Za-z_-]{1,40}\1", text) is not None


class KeyReader:
    """Reads the texts of a table's keys by what they have in common."""

    def __init__(self, sample: Mapping[str, Sequence[tuple[str, Form]]], partitions: Collection[str]) -> None:
        """`sample` has the texts of each key attribute with the forms of their items, `partitions` the names of the
        partition keys."""
        self._partitions = partitions
        self._known: dict[tuple[str, str], KeyReading] = {}
        self.lead = next(
            (
                lead
                for name in sorted(partitions)
                if (lead := _common_lead([text for text, _ in sample.get(name, ())]))
            ),
            None,
        )
        """What begins the keys of all types around a value, which is a part of its own."""
        sample = {
            name: [(self._without_lead(text)[1], form) for text, form in column]
            for name, column in sample.items()
        }
        columns = {name: [text for text, _ in column] for name, column in sample.items()}
        texts = [text for column in columns.values() for text in column]
        strong = _strong_separators(texts)
        partition_keys = [text for name in partitions for text in columns.get(name, ())]
        self._numbered = set() if strong else _numbered_words(partition_keys)
        self._weak = None if strong or self._numbered else _weak_heads(texts)
        inside = "".join(map(re.escape, sorted(strong))) or _NOTHING
        self._separators = re.compile(rf"{_WHOLE.pattern}|(?P<separator>[{inside}]+)", re.ASCII)
        self._runs: Counter[str] = Counter()
        """How often each separator is in the texts."""
        self._runs = Counter(separator for text in texts for separator in self._split(text)[1::2])
        split = {
            name: [(self._split(text)[::2], form) for text, form in column] for name, column in sample.items()
        }
        self._values: dict[str, None] = {}
        """The words that may name kinds of items, but are taken as values."""
        self._named_alike = _named_alike(filter(is_word, partition_keys))
        self._heads = self._heads_of([row for column in split.values() for row in column])
        self._ids = {
            values[number]
            for column in split.values()
            for values, _ in column
            for number in range(1, len(values))
            if values[number - 1] in self._heads
        }
        """The texts that follow a first word in some key: what stands alone elsewhere is the same value."""
        self._constants = {name: self._constants_of(name, column) for name, column in split.items()}
        self._literals = self._literals_behind(split)
        self._optional = self._optional_places(split)
        self._joined = self._joined_ends(columns)
        self._collapsed = {name: self._long_tails(name, column) for name, column in columns.items()}

    @property
    def doubts(self) -> list[str]:
        """The uncertain points about the patterns, as texts."""
        found = []
        if self._values:
            examples = ", ".join([*self._values][:_LISTED])
            more = f" and {len(self._values) - _LISTED:,} more" if len(self._values) > _LISTED else ""
            found.append(
                f"{examples}{more} are taken for values, because their items have the same attributes"
            )
        for attribute, pattern in sorted(self._joined, key=str):
            found.append(f'in {attribute}, "{pattern[-2]}" is taken for a part of the last value')
        return found

    def read(self, key: KeyAttribute, item: Item) -> KeyReading | None:
        """Returns the pattern and the varying texts of an item's key; None if the item has no such key."""
        value = item.get(key.name)
        text = key.text(value)
        if text is None or not isinstance(value, str):
            return None if text is None else KeyReading((VARYING,), (text,))
        known = self._known.get((key.name, text))
        if known is None:
            known = self._known[key.name, text] = self._found(key.name, text)
        return known

    def _without_lead(self, text: str) -> tuple[KeyReading, str]:
        """Returns what begins the keys of all types, if the text has it, and the rest."""
        lead = _LEAD.match(text)
        if lead is None or self.lead != (lead[1], lead[3]):
            return KeyReading((), ()), text
        return KeyReading((lead[1], VARYING, lead[3]), (lead[2],)), text[lead.end() :]

    def _found(self, attribute: str, text: str) -> KeyReading:
        lead, text = self._without_lead(text)
        pattern, texts = self._read(attribute, text)
        if (attribute, pattern) in self._joined:
            # The last two parts are one value: `us-east-1:7f3a`.
            texts = (*texts[:-2], f"{texts[-2]}{pattern[-2]}{texts[-1]}")
            pattern = (*pattern[:-3], VARYING)
        head = _beginning(pattern)
        rest = text[len("".join(head)) :] if head in self._collapsed.get(attribute, ()) else ""
        if rest:
            pattern, texts = (*head, VARYING), (rest,)
        return KeyReading((*lead.pattern, *pattern), (*lead.texts, *texts))

    def _joined_ends(self, columns: Mapping[str, Iterable[str]]) -> set[tuple[str, Pattern]]:
        """Returns the patterns whose last two parts are one value, which contains the separator of other keys.

        They are two values if the first is a number or a time, or is a value elsewhere too.
        """
        readings = [(name, self._read(name, text)) for name, column in columns.items() for text in column]
        alone = {reading.texts[0] for _, reading in readings if len(reading.texts) == 1}
        firsts: dict[tuple[str, Pattern], list[str]] = {}
        for name, (pattern, texts) in readings:
            if pattern[-1:] == pattern[-3:-2] == (VARYING,) and str(pattern[-2]) not in _FIRM:
                before = [part for part in pattern[:-3] if part == VARYING or is_word(str(part))]
                if before[-1:] != [VARYING]:
                    firsts.setdefault((name, pattern), []).append(texts[-2])
        return {
            place
            for place, found in firsts.items()
            if not any(text in alone or _ORDERED.match(text) for text in found)
        }

    def _read(self, attribute: str, text: str) -> KeyReading:
        parts = self._split(text)
        values, seps = parts[::2], parts[1::2]
        pattern: list[str | VaryingPart] = []
        texts: list[str] = []
        for number, value in enumerate(values):
            shard = _SHARD.fullmatch(value) if attribute in self._partitions else None
            if not value:
                if (attribute, _head_of(values, self._heads), len(values), number) in self._optional:
                    pattern.append(VARYING)
                    texts.append("")
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
        place = (attribute, _head_of(values, self._heads), len(values), number)
        is_head = number < len(values) - 1 and value in self._heads and value.isupper()
        return is_head or value in self._literals.get(place, ())

    # --- Splitting ------------------------------------------------------------------------------------

    def _split(self, text: str) -> list[str]:
        """Splits into values and separators in turn; the first and the last are values, which may be empty."""
        if self._weak:
            separator, heads = self._weak
            head, _, rest = text.partition(separator)
            return [head, separator, rest] if rest and head in heads else [text]
        if (numbered := _NUMBERED.fullmatch(text)) and numbered[1] in self._numbered:
            return [numbered[1], "", numbered[2]]
        parts: list[str] = []
        start = 0
        for found in self._separators.finditer(text):
            if run := found["separator"]:
                # A separator twice has an absent value in it, if it is usually there once.
                one = next(
                    (one for one in self._runs if run == one * 2 and self._runs[one] > self._runs[run]), run
                )
                parts += [text[start : found.start()], one, *([] if one == run else ["", one])]
                start = found.end()
        return [*parts, text[start:]]

    # --- Fixed words ------------------------------------------------------------------------------------

    def _heads_of(self, rows: Collection[_Row]) -> frozenset[str]:
        """Returns the words that begin keys."""
        forms: dict[str, list[Form]] = {}
        for values, form in rows:
            first = next((number for number, value in enumerate(values) if value), None)
            if first is not None and first < len(values) - 1 and is_word(values[first]):
                forms.setdefault(values[first], []).append(form)
        found = self._without_values(forms, most=_MANY_ALIKE - 1)
        upper = {word for word in found if word.isupper()}
        others = found - upper - self._named_alike
        if len(upper) > _MOST_WORDS * 3:
            upper = set()
        repeated = sum(len(forms[word]) for word in others) >= 2 * len(others) or len(rows) <= _FEW_TEXTS
        return frozenset(upper | (others if repeated and len(others) <= _MOST_WORDS else set()))

    def _without_values(self, forms: Mapping[str, Sequence[Form]], *, most: int) -> set[str]:
        """Returns the words of one place except values: more than `most` words with few items each, all alike."""
        found: set[str] = set()
        for words in _alike(forms):
            items = sum(len(forms[word]) for word in words)
            if len(words) <= most or items >= _FEW_ITEMS * len(words):
                found.update(words)
            else:
                self._values |= dict.fromkeys(word for word in words if word.isupper())
        return found

    def _constants_of(self, attribute: str, column: Sequence[_Row]) -> set[str]:
        """Returns the words that are a whole key, apart from separators around them."""
        forms: dict[str, list[Form]] = {}
        for values, form in column:
            given = [value for value in values if value]
            if len(given) == 1:
                forms.setdefault(given[0], []).append(form)
        total = sum(map(len, forms.values()))
        is_partition = attribute in self._partitions
        marks = {value for value in forms if is_mark(value)} - self._ids
        others = {value: each for value, each in forms.items() if not is_word(value) and value not in marks}
        forms = {word: each for word, each in forms.items() if is_word(word)}
        found = self._without_values(forms, most=1 if is_partition else _MANY_ALIKE - 1)
        upper = {word for word in found if word.isupper()}
        if is_partition:
            found -= self._named_alike
            chosen = {word for word in found if len(forms[word]) >= (2 if word in upper else 3)}
            is_few = len(chosen) * 2 <= total and len(chosen) <= _MOST_WORDS
            return marks | (chosen if is_few else set())
        chosen = upper if len(upper) <= _MOST_WORDS else set()
        unlike = {words[0] for words in _alike(forms) if len(words) == 1} | MAIN
        lower = {word for word in (found - upper - self._ids) & unlike if len(forms[word]) > 1}
        chosen |= lower if len(lower) <= _MOST_WORDS // 2 else set()
        return chosen | _unlike_others(others) | marks

    def _literals_behind(self, split: Mapping[str, Iterable[_Row]]) -> dict[_Place, set[str]]:
        """Returns the literal text after the first value of keys, by its place."""
        found: dict[_Place, dict[str, list[tuple[str, Form]]]] = {}
        for attribute, column in split.items():
            for values, form in column:
                head = _head_of(values, self._heads)
                for number in range(1, len(values)):
                    texts = found.setdefault((attribute, head, len(values), number), {})
                    texts.setdefault(values[number], []).append((values[number - 1], form))
        others = {text for texts in found.values() if len(texts) > 1 for text in texts}
        return {
            place: self._words_at_the_end(place, texts)
            if place[3] == place[2] - 1
            else self._words_inside(texts) - others
            for place, texts in found.items()
        }

    def _optional_places(self, split: Mapping[str, Iterable[_Row]]) -> set[_Place]:
        """Returns the places behind the first word of sort keys where some have a value, and others have none."""
        found: dict[_Place, set[bool]] = {}
        for attribute, column in split.items():
            for values, _ in column:
                head = _head_of(values, self._heads)
                for number in range(1, len(values) if head and attribute not in self._partitions else 0):
                    found.setdefault((attribute, head, len(values), number), set()).add(bool(values[number]))
        return {place for place, are_there in found.items() if len(are_there) > 1}

    def _words_inside(self, texts: Collection[str]) -> set[str]:
        """Returns the word that is the same in all keys of a kind."""
        are_words = all(is_word(text) and (text.isupper() or text in self._heads) for text in texts)
        return set(texts) if len(texts) == 1 and are_words else set()

    def _words_at_the_end(self, place: _Place, texts: Mapping[str, Sequence[tuple[str, Form]]]) -> set[str]:
        """Returns the last words of keys, after values, whose items each have a form of their own (`USER#17#PROFILE`),
        and values whose items alone have another form (`v#0`)."""
        attribute, head, length, _ = place
        rows = {text: each for text, each in texts.items() if text}
        forms = {text: [form for _, form in each] for text, each in rows.items()}
        if not head:
            return set()
        named, ordered = set(filter(is_word, forms)), set(filter(_ORDERED.match, forms))
        if ordered and len(named) in range(1, _FEW_TEXTS) and len(ordered | named) == len(forms):
            return named  # the latest of all versions
        named -= self._ids
        is_part = attribute in self._partitions
        if not all(is_word(text) and text.isupper() for text in forms):
            befores = {before for each in rows.values() for before, _ in each}
            is_of_ids = is_part and length > 2 and befores <= self._ids and len(named) == len(forms)
            if is_of_ids and len(forms) > 1:
                others = {text: each for text, each in forms.items() if any(each)}
                return named if self._without_values(others, most=1) == others.keys() else set()
            return set() if is_part else _unlike_others(forms)
        is_behind_values = length > 2 and all(
            len({before for before, _ in each}) > 1 for each in rows.values()
        )
        return set(forms) if is_behind_values and all(len(words) == 1 for words in _alike(forms)) else set()

    def _long_tails(self, attribute: str, column: Iterable[str]) -> set[tuple[str, ...]]:
        """Returns the beginnings of keys that any number of parts follows."""
        tails: dict[tuple[str, ...], set[Pattern]] = {}
        for text in column:
            pattern = self._read(attribute, text).pattern
            head = _beginning(pattern)
            rest = pattern[len(head) :]
            if all(isinstance(part, VaryingPart) or not is_word(part) for part in rest):
                tails.setdefault(head, set()).add(rest)
        return {head for head, rests in tails.items() if len(rests) >= _LENGTHS}


def common_pattern(patterns: Collection[Pattern]) -> Pattern | None:
    """Returns a pattern for all keys, with differing words as values: `OPEN#17` and `PAID#18`. None without one."""
    if len({len(pattern) for pattern in patterns}) > 1:
        return None
    made: list[str | VaryingPart] = []
    for parts in zip(*patterns, strict=True):
        kinds = set(parts)
        if len(kinds) > 1 and not all(part == VARYING or is_word(str(part)) for part in kinds):
            return None
        made.append(parts[0] if len(kinds) == 1 else VARYING)
    return tuple(made)


def texts_in(reading: KeyReading, pattern: Pattern) -> tuple[str, ...]:
    """Returns the texts of a key's varying parts, in a pattern that it shares with others."""
    texts = iter(reading.texts)
    whole = [(part, next(texts) if isinstance(part, VaryingPart) else part) for part in reading.pattern]
    return tuple(
        text for (_, text), part in zip(whole, pattern, strict=True) if isinstance(part, VaryingPart)
    )


def _beginning(pattern: Pattern) -> tuple[str, ...]:
    """Returns the parts before the first varying one."""
    return tuple(cast(str, part) for part in takewhile(lambda part: isinstance(part, str), pattern))


def _head_of(values: Sequence[str], heads: Collection[str]) -> str:
    first = next((value for value in values if value), "")
    return first if first in heads else ""


def _common_lead(texts: Iterable[str]) -> tuple[str, str] | None:
    """Returns the texts before and after the value that begins all keys, if the same words follow several values of it."""
    found = [_LEAD.match(text) for text in texts]
    around = {lead and (lead[1], lead[3]) for lead in found}
    values: dict[str, set[str]] = {}
    for lead in filter(None, found):
        values.setdefault(lead[4], set()).add(lead[2])
    is_common = len(around) == 1 and len(values) > 1 and any(len(each) > 1 for each in values.values())
    return around.pop() if is_common else None


def _strong_separators(texts: Sequence[str]) -> frozenset[str]:
    """Returns the characters that follow a first word, or begin a text, in a certain share of the texts."""
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
    """Returns the separator after a first word, and these words; None if there is none."""
    best: tuple[int, str, set[str]] = (0, "", set())
    for separator in _WEAK:
        rests: dict[str, set[str]] = {}
        counted: Counter[str] = Counter()
        for text in texts:
            head, found, rest = text.partition(separator)
            if found and rest and re.fullmatch("[A-Za-z]+", head):
                rests.setdefault(head, set()).add(rest)
                counted[head] += 1
        heads = {
            head
            for head, each in rests.items()
            if len(each) > 1 or head.isupper() or (counted[head] > 1 and separator != " ")
        }
        covered = sum(counted[head] for head in heads)
        if heads and len(heads) <= _MOST_WORDS and len(heads) * 2 <= covered and covered > best[0]:
            best = (covered, separator, heads)
    covered, separator, heads = best
    return (separator, heads) if heads and covered * 4 >= len(texts) else None


def _named_alike(texts: Iterable[str]) -> set[str]:
    """Returns the texts with a beginning that another has too: `tenant-abc` and `tenant-xyz`, which are ids."""
    found: dict[str, set[str]] = {}
    for text in texts:
        if not text.isupper() and (beginning := re.match(r"\w+[_-](?=\w)", text)):
            found.setdefault(beginning[0], set()).add(text)
    return {text for each in found.values() if len(each) > 1 for text in each}


def _numbered_words(texts: Iterable[str]) -> set[str]:
    """Returns the words that numbers follow without a separator, if some are followed by several: `ORDER1`, `ITEM7`."""
    found = {match[0]: match[1] for text in texts if (match := _NUMBERED.fullmatch(text))}
    words = set(found.values())
    return words if 1 < len(words) <= len(found) * 2 // 3 else set()


def _unlike_others(forms: Mapping[str, Sequence[Form]]) -> set[str]:
    """Returns the values that several items have, unlike all others, which are alike: `v0` among versions."""
    groups = _alike(forms)
    alone = {values[0] for values in groups if len(values) == 1 and len(forms[values[0]]) > 1}
    return alone if len(groups) - len(alone) == 1 and len(forms) > len(groups) else set()


def _alike(forms: Mapping[str, Sequence[Form]]) -> list[list[str]]:
    """Groups the words so that the items of each group have mostly the same attributes."""
    groups: list[tuple[Form, list[str]]] = []
    for word, each in forms.items():
        whole = Form().union(*each)
        for own, words in groups:
            if len(own & whole) >= _ALIKE * len(own | whole):
                words.append(word)
                break
        else:
            groups.append((whole, [word]))
    return [words for _, words in groups]
