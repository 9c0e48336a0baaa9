"""Patterns: the subset of regular expressions that describes the texts of a placeholder.

Characters, classes (`[A-Z]`, `[^#]`, `\\d`, `\\w`, `.`), groups with alternatives (`(?:a|b)`), and repetitions: `?`,
`*`, `+`, `{4}`, `{2,6}`. A pattern describes the whole text. Letters and digits are those of ASCII.
"""

from __future__ import annotations

import re
import string
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import chain, count, product
from typing import TypeAlias


@dataclass(frozen=True, slots=True)
class AllBut:
    """Every character except these."""

    chars: frozenset[str] = frozenset()

    def __contains__(self, char: object) -> bool:
        return char not in self.chars


Chars: TypeAlias = "frozenset[str] | AllBut"
"""The characters that are allowed at one place of a text."""
CharStep: TypeAlias = "tuple[Chars, bool, bool]"
"""Characters, whether they may be absent, whether they may repeat."""
CharSteps: TypeAlias = "Sequence[Sequence[CharStep]]"
"""The ways to write texts, character by character."""

ANY = AllBut()
DIGITS = frozenset(string.digits)
_ESCAPES = {
    "d": DIGITS,
    "w": frozenset(string.ascii_letters + string.digits + "_"),
    "s": frozenset(" \t\n\r\f\v"),
}
_SPECIAL = frozenset("()[]{}?*+|^$.")
_COUNT = re.compile(r"\{(\d+)(?:(,)(\d*))?\}", re.ASCII)
_MOST_WAYS = 16
"""A pattern with more ways is not written out: its characters are then allowed in any order."""
_MOST_TIMES = 200


_LIKELY = "1a" + string.digits + string.ascii_letters


def common_char(one: Chars, other: Chars) -> str | None:
    """Returns a character that is in both, if possible a digit or a letter; None if there is none."""
    if isinstance(one, AllBut):
        if not isinstance(other, AllBut):
            return common_char(other, one)
        return next(char for char in chain(_LIKELY, map(chr, count(33))) if char in one and char in other)
    found = one - other.chars if isinstance(other, AllBut) else one & other
    return next((char for char in _LIKELY if char in found), min(found)) if found else None


@dataclass(frozen=True, slots=True)
class TextPattern:
    """What a pattern says about texts."""

    source: str
    """A regular expression that can be embedded in another one."""
    char_steps: CharSteps
    is_exact: bool
    """Whether the steps allow no other text than the pattern does."""

    @property
    def has_own_end(self) -> bool:
        """Whether all texts have one length."""
        lengths = {len(steps) for steps in self.char_steps}
        return len(lengths) == 1 and not any(
            absent or more for way in self.char_steps for _, absent, more in way
        )

    @property
    def is_one_text(self) -> bool:
        """Whether it is only literal text."""
        [steps, *others] = self.char_steps
        return not others and all(
            isinstance(chars, frozenset) and len(chars) == 1 and not absent and not more
            for chars, absent, more in steps
        )


def read_pattern(source: str) -> TextPattern:
    """Returns what the pattern says. Raises ValueError if it is invalid."""
    reader = _Reader(source)
    ways = reader.alternatives()
    if reader.rest:
        raise ValueError(f"it has {reader.rest[0]} without the opening one")
    compiled = f"(?as:{source})"
    try:
        re.compile(compiled)
    except re.error as error:
        raise ValueError(str(error)) from None
    return TextPattern(compiled, tuple(map(tuple, ways)), reader.is_exact)


_Ways: TypeAlias = "list[list[CharStep]]"


class _Reader:
    """Reads a pattern from left to right."""

    def __init__(self, source: str) -> None:
        self.rest = source
        self.is_exact = True

    def _take(self, text: str) -> bool:
        if not self.rest.startswith(text):
            return False
        self.rest = self.rest[len(text) :]
        return True

    def _next(self) -> str:
        if not self.rest:
            raise ValueError("it ends too early")
        char, self.rest = self.rest[0], self.rest[1:]
        return char

    def alternatives(self) -> _Ways:
        """Returns the ways up to the end, or to a closing parenthesis."""
        ways = self._sequence()
        while self._take("|"):
            ways += self._sequence()
        return self._few(ways)

    def _sequence(self) -> _Ways:
        ways: _Ways = [[]]
        while self.rest and self.rest[0] not in "|)":
            ways = self._joined(ways, self._repeated(self._atom()))
        return ways

    def _atom(self) -> _Ways:
        if self._take("(?:"):
            ways = self.alternatives()
            if not self._take(")"):
                raise ValueError("it has ( without the closing one")
            return ways
        if self._take("["):
            return [[(self._class(), False, False)]]
        char = self._next()
        if char == ".":
            return [[(ANY, False, False)]]
        if char == "\\":
            return [[(self._escaped(), False, False)]]
        if char in _SPECIAL:
            raise ValueError(f"{char} cannot stand here; a group is (?:…), and the character itself \\{char}")
        return [[(frozenset(char), False, False)]]

    def _escaped(self) -> frozenset[str]:
        char = self._next()
        if char.isalnum() and char not in _ESCAPES:
            raise ValueError(f"\\{char} cannot be used")
        return _ESCAPES.get(char, frozenset(char))

    def _class(self) -> Chars:
        is_negated, chars = self._take("^"), frozenset[str]()
        while not chars or not self.rest.startswith("]"):
            low = self._member()
            if len(low) == 1 and self.rest[:1] == "-" and self.rest[1:2] not in ("", "]"):
                self._next()
                first, last = ord(min(low)), ord(max(self._member()))
                if last < first:
                    raise ValueError("a range of characters must be ascending")
                low = frozenset(map(chr, range(first, last + 1)))
            chars |= low
        self._next()
        return AllBut(chars) if is_negated else chars

    def _member(self) -> frozenset[str]:
        return self._escaped() if self._take("\\") else frozenset(self._next())

    def _repeated(self, ways: _Ways) -> _Ways:
        """Returns the ways, repeated as the pattern says after them."""
        if self._take("?"):
            least, most = 0, 1
        elif self._take("*"):
            least, most = 0, None
        elif self._take("+"):
            least, most = 1, None
        elif found := _COUNT.match(self.rest):
            self.rest = self.rest[found.end() :]
            least = int(found[1])
            most = (int(found[3]) if found[3] else None) if found[2] else least
        else:
            return ways
        if self.rest[:1] in ("?", "*", "+", "{"):
            raise ValueError(f"{self.rest[0]} cannot follow another count")
        if max(least, most or 0) > _MOST_TIMES or (most is not None and most < least):
            raise ValueError(f"a count goes from 0 to {_MOST_TIMES}")
        return self._times(ways, least, most)

    def _times(self, ways: _Ways, least: int, most: int | None) -> _Ways:
        match ways:
            case [[(chars, False, False)]] if most is None:
                return [[*[(chars, False, False)] * max(0, least - 1), (chars, not least, True)]]
            case [[(chars, False, False)]]:
                return [[*[(chars, False, False)] * least, *[(chars, True, False)] * ((most or 0) - least)]]
        if most is None:
            return self._any_order([*ways, []] if not least else ways)
        found: _Ways = [[]] if not least else []
        so_often: _Ways = [[]]
        for times in range(1, most + 1):
            so_often = self._joined(so_often, ways)
            found += so_often if times >= least else []
        return self._few(found)

    def _joined(self, ways: _Ways, following: _Ways) -> _Ways:
        if len(ways) * len(following) > _MOST_WAYS:
            following = self._any_order(following)
        return [[*before, *behind] for before, behind in product(ways, following)]

    def _few(self, ways: _Ways) -> _Ways:
        return ways if len(ways) <= _MOST_WAYS else self._any_order(ways)

    def _any_order(self, ways: _Ways) -> _Ways:
        """Returns the characters of these ways in any order, which allows more than they do."""
        self.is_exact = False
        may_be_absent = any(all(absent for _, absent, _ in way) for way in ways)
        return [[(_union(chars for way in ways for chars, _, _ in way), may_be_absent, True)]]


def _union(classes: Iterable[Chars]) -> Chars:
    known, without = frozenset[str](), None
    for chars in classes:
        if isinstance(chars, frozenset):
            known |= chars
        else:
            without = chars.chars if without is None else without & chars.chars
    return known if without is None else AllBut(without - known)
