"""Patterns: the subset of regular expressions that describes the texts of a placeholder.

Characters, classes (`[A-Z]`, `[^#]`, `\\d`, `\\w`, `.`), groups with alternatives (`(?:a|b)`), and repetitions: `?`,
`*`, `+`, `{4}`, `{2,6}`. A pattern describes the whole text. Letters and digits are those of ASCII.
"""

from __future__ import annotations

import calendar
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
_MOST_ALTERNATIVES = 16
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
            absent or more for steps in self.char_steps for _, absent, more in steps
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
    alternatives = reader.alternatives()
    if reader.rest:
        raise ValueError(f"it has {reader.rest[0]} without the opening one")
    compiled = f"(?as:{source})"
    try:
        re.compile(compiled)
    except re.error as error:
        raise ValueError(str(error)) from None
    return TextPattern(compiled, tuple(map(tuple, alternatives)), reader.is_exact)


_Alternatives: TypeAlias = "list[list[CharStep]]"


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

    def alternatives(self) -> _Alternatives:
        """Returns the ways up to the end, or to a closing parenthesis."""
        alternatives = self._sequence()
        while self._take("|"):
            alternatives += self._sequence()
        return self._few(alternatives)

    def _sequence(self) -> _Alternatives:
        alternatives: _Alternatives = [[]]
        while self.rest and self.rest[0] not in "|)":
            alternatives = self._joined(alternatives, self._repeated(self._atom()))
        return alternatives

    def _atom(self) -> _Alternatives:
        if self._take("(?:"):
            alternatives = self.alternatives()
            if not self._take(")"):
                raise ValueError("it has ( without the closing one")
            return alternatives
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

    def _repeated(self, alternatives: _Alternatives) -> _Alternatives:
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
            return alternatives
        if self.rest[:1] in ("?", "*", "+", "{"):
            raise ValueError(f"{self.rest[0]} cannot follow another count")
        if max(least, most or 0) > _MOST_TIMES or (most is not None and most < least):
            raise ValueError(f"a count goes from 0 to {_MOST_TIMES}")
        return self._times(alternatives, least, most)

    def _times(self, alternatives: _Alternatives, least: int, most: int | None) -> _Alternatives:
        match alternatives:
            case [[(chars, False, False)]] if most is None:
                return [[*[(chars, False, False)] * max(0, least - 1), (chars, not least, True)]]
            case [[(chars, False, False)]]:
                return [[*[(chars, False, False)] * least, *[(chars, True, False)] * ((most or 0) - least)]]
        if most is None:
            return self._any_order([*alternatives, []] if not least else alternatives)
        found: _Alternatives = [[]] if not least else []
        so_often: _Alternatives = [[]]
        for times in range(1, most + 1):
            so_often = self._joined(so_often, alternatives)
            found += so_often if times >= least else []
        return self._few(found)

    def _joined(self, alternatives: _Alternatives, following: _Alternatives) -> _Alternatives:
        if len(alternatives) * len(following) > _MOST_ALTERNATIVES:
            following = self._any_order(following)
        return [[*before, *behind] for before, behind in product(alternatives, following)]

    def _few(self, alternatives: _Alternatives) -> _Alternatives:
        return alternatives if len(alternatives) <= _MOST_ALTERNATIVES else self._any_order(alternatives)

    def _any_order(self, alternatives: _Alternatives) -> _Alternatives:
        """Returns the characters of these ways in any order, which allows more than they do."""
        self.is_exact = False
        may_be_absent = any(all(absent for _, absent, _ in steps) for steps in alternatives)
        return [[(_union(chars for steps in alternatives for chars, _, _ in steps), may_be_absent, True)]]


def _union(classes: Iterable[Chars]) -> Chars:
    known, without = frozenset[str](), None
    for chars in classes:
        if isinstance(chars, frozenset):
            known |= chars
        else:
            without = chars.chars if without is None else without & chars.chars
    return known if without is None else AllBut(without - known)


# --- The texts of strftime ------------------------------------------------------------------------------

_DIGITS_OF = (
    dict.fromkeys("mdHIMSyUWVg", 2) | dict.fromkeys("uw", 1) | dict.fromkeys("YG", 4) | {"j": 3, "f": 6}
)
"""How many digits a strftime directive writes; with a `-` before it, leading zeros are left out."""
_NAMES = {
    "a": [*calendar.day_abbr],
    "A": [*calendar.day_name],
    "b": [*calendar.month_abbr][1:],
    "B": [*calendar.month_name][1:],
    "p": ["AM", "PM"],
}
_PATTERNS = {
    "%": "%",
    "F": r"\d{4}-\d{2}-\d{2}",
    "T": r"\d{2}:\d{2}:\d{2}",
    "R": r"\d{2}:\d{2}",
    "D": r"\d{2}/\d{2}/\d{2}",
    "z": r"(?:\+0000)?",
    "Z": "(?:UTC)?",
}


def strftime_pattern(source: str) -> str | None:
    """Returns the pattern of the texts of a strftime format; None if it has an unknown directive."""
    parts = []
    for directive, literal in re.findall("%(-?.)|([^%]+)", source, re.DOTALL):
        digits = _DIGITS_OF.get(directive[-1:])
        if literal:
            parts.append(re.escape(literal))
        elif directive in _NAMES:
            parts.append(f"(?:{'|'.join(map(re.escape, _NAMES[directive]))})")
        elif digits is not None:
            parts.append(rf"\d{{1,{digits}}}" if directive[0] == "-" else rf"\d{{{digits}}}")
        elif directive in _PATTERNS:
            parts.append(_PATTERNS[directive])
        else:
            return None
    return "".join(parts)
