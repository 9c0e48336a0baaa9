"""How the value of one placeholder is written in a key: as text, in a format, and back.

Each kind of text has a class; `key_text` picks the one for a field's type and the placeholder's format.
"""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from dataclasses import field as attribute
from datetime import UTC, date, datetime
from decimal import Decimal, InvalidOperation
from functools import cached_property
from typing import Any, cast

from keygraph.dynamo.items import number, number_text
from keygraph.dynamo.limits import NUMBER_DIGITS
from keygraph.keys import types
from keygraph.keys.formats import Format
from keygraph.keys.pattern import (
    ANY,
    DIGITS,
    CharStep,
    CharSteps,
    TextPattern,
    common_char,
    read_pattern,
    strftime_pattern,
)

ANY_TEXT: CharSteps = (((ANY, False, True),),)
"""The steps of a text without restrictions."""
_DIGIT: CharStep = (DIGITS, False, False)
_DASH: CharStep = (frozenset("-"), False, False)
_DATE_STEPS: list[CharStep] = [*[_DIGIT] * 4, _DASH, _DIGIT, _DIGIT, _DASH, _DIGIT, _DIGIT]

_FRACTION_STEPS: list[list[CharStep]] = [
    [(frozenset("-0123456789"), False, False), (frozenset("0123456789.eE+-"), True, True)]
]

_NUMBER = r"-?[0-9][0-9.]*(?:E[+-]?[0-9]+)?"


class UnusableFormat(Exception):
    """The type cannot be part of a key, or not in that format; the message says why."""


def key_text(
    type_: types.FieldType,
    format_: str = "",
    declared: Format | None = None,
    *,
    alphabet: str = "",
    is_number: bool = False,
) -> KeyText:
    """Returns the texts of a placeholder of that type, in a format if it has one.

    `declared` is the format that the graph declares for it, `alphabet` the pattern of free text without a format.
    `is_number`: the key itself is a number. Raises UnusableFormat.
    """
    if is_number:
        return NumberKey(type_, format_, declared)
    if declared is not None:
        return DeclaredText(type_, format_, declared)
    made = _CLASSES.get(type_.kind)
    if made is None:
        raise UnusableFormat(f"a field of type {type_.name} cannot be part of a key")
    if made in (IsoDatetime, IsoDate) and format_:
        return FormattedTime(type_, format_)
    return made(type_, format_, alphabet=alphabet if made is FreeText and not format_ else "")


@dataclass(unsafe_hash=True)
class KeyText(ABC):
    """The texts of one placeholder. Equal ones write a value alike. They never change after they are made."""

    type: types.FieldType
    format: str = ""
    declared: Format | None = None
    """The format that renders and parses instead, if the graph declares one."""
    alphabet: str = ""
    """The pattern of all free text, if the graph declares one."""

    pattern = r"(?s:.+?)"
    """A regular expression for the texts; `accepts` decides the rest."""
    lossy = False
    """Whether the text loses a part of the value (`{day:%Y-%m}`), so that it cannot be read back."""
    ordered = False
    """Whether the order of the texts is that of the values."""
    choices = tuple[str, ...]()
    """All possible texts; empty if they cannot be listed."""
    is_plain_text = False
    """Whether the text in the key is the value."""
    has_prefixes = False
    """Whether the text of a value's beginning is the beginning of the value's text."""
    has_own_end = False
    """Whether a text ends by itself, so that another placeholder can follow without literal text between."""
    char_steps: CharSteps = attribute(default=ANY_TEXT, init=False, compare=False)
    """The ways to write the texts, character by character."""
    is_exact = False
    """Whether every text that is written so is valid for this placeholder; else `accepts` decides."""
    takes_any_text = False
    """Whether every text except the empty one is valid for this placeholder."""
    width: int | None = attribute(default=None, init=False, compare=False)
    """The number of characters to which numbers are padded; None if they are not."""

    def __post_init__(self) -> None:
        if self.format:
            raise UnusableFormat(f"a format cannot be used with a field of type {self.type.name}")

    @abstractmethod
    def render(self, value: Any) -> str:
        """Returns the text of a value. Raises ValueError, TypeError or AttributeError for one not of the type."""

    @abstractmethod
    def value(self, text: str) -> Any:
        """Returns the value of the text. Raises ValueError if it has none. Not for lossy texts."""

    @property
    def is_open(self) -> bool:
        """Whether its texts have no restrictions, so that any other text is a special case of them."""
        return self.takes_any_text or (self.type.is_text and self.char_steps is ANY_TEXT)

    def is_stored_in(self, type_: types.FieldType) -> bool:
        """Returns whether attributes of a type hold the text itself."""
        return self.is_plain_text and type_.written is None

    def _take_form(self, form: TextPattern) -> None:
        self.pattern, self.char_steps = form.source, form.char_steps
        self.is_exact, self.has_own_end = form.is_exact, form.has_own_end

    def can_hold(self, char: str) -> bool:
        """Returns whether its texts may contain the character."""
        return any(char in chars for steps in self.char_steps for chars, _, _ in steps)

    @property
    def shortest(self) -> list[str]:
        """The shortest text of each way to write texts."""
        alternatives = [[step for step in steps if not step[1]] or steps[:1] for steps in self.char_steps]
        return ["".join(common_char(chars, ANY) or "" for chars, _, _ in steps) for steps in alternatives]

    @property
    def is_descending(self) -> bool:
        """Whether the order of the texts is the opposite of that of the values."""
        return self.declared is not None and self.declared.is_descending

    def prefix(self, beginning: Any) -> str:
        """Returns the beginning of the texts of values with that beginning."""
        is_written = self.declared is None or self.declared.prefixes
        return self.render(beginning) if is_written else str(beginning)

    @property
    def time_bound(self) -> Callable[[datetime, bool], str] | None:
        """The first text of a time (True) or the last one; None if texts do not begin with a time."""
        return None if self.declared is None else self.declared.time_bound

    def bound(self, text: str, *, is_low: bool) -> str:
        """Returns the text of a range's first or last value, so that it is in order among those of keys."""
        return text

    def decides(self, low: Any, high: Any) -> bool:
        """Returns whether the texts from one value to another, of which one may be None, are exactly their texts."""
        return not self.lossy and not self.width

    def is_wider(self, text: str) -> bool:
        """Returns whether a number has more digits than its padding, so that it is out of order."""
        return self.width is not None and len(text.rstrip("\0")) > self.width

    @property
    def may_be_wider(self) -> bool:
        """Whether numbers with more digits than the padding are expected: times have 10, or 13, until the year 2286."""
        return self.width is not None and self.width < _AMPLE_WIDTH

    def is_continued_by(self, following: str) -> bool:
        """Returns whether a choice, with the first character of what follows it in the key, begins another choice.

        Then a range of the first choice's keys contains the other's too.
        """
        return bool(following) and any(
            other.startswith(choice + following[0]) for choice in self.choices for other in self.choices
        )

    def covers(self, other: KeyText) -> bool:
        """Returns whether every text of the other is also valid here, as far as their types show."""
        if other == self or self.is_open:
            return True
        if other.choices:
            return all(self.accepts(choice) for choice in other.choices)
        is_formatted = any(text.format or text.declared for text in (self, other))
        return not is_formatted and (other.type.kind, self.type.kind) in _COVERED_KINDS

    def difference(self, text: str, value: Any) -> int:
        """Returns whether the text of a value means that value (0), a smaller one (-1) or a larger one (1).

        A format that keeps two decimals, or seconds, rounds a value that has more.
        """
        if not (self.format or self.declared):
            return 0
        meant = self.value(text)
        if isinstance(value, datetime) and isinstance(meant, datetime):
            meant, value = types.in_utc(meant), types.in_utc(value)
        return 0 if meant == value else -1 if meant < value else 1

    @cached_property
    def _regex(self) -> re.Pattern[str]:
        return re.compile(self.pattern)

    def accepts(self, text: str) -> bool:
        """Returns whether the text is valid for this placeholder: it is exactly as a value renders."""
        if not text or not self._regex.fullmatch(text):
            return False
        if self.lossy:
            return True
        try:
            return self.render(self.value(text)) == text
        except (ValueError, OverflowError):
            return False


_AMPLE_WIDTH = 10
"""To how many digits numbers are padded if nobody expects larger ones."""

_COVERED_KINDS = {
    ("int", "long"),
    ("long", "int"),
    ("int", "decimal"),
    ("long", "decimal"),
    ("date", "datetime"),
}
"""Pairs of kinds: every text of the first, without a format, is a text of the second."""


def _given(value: Any) -> Any:
    if value is None:
        raise ValueError("None has no text")
    return value


class FreeText(KeyText):
    """Any non-empty text, or the texts of a pattern: `{id:[^#]+}`."""

    ordered = True
    is_plain_text = True
    has_prefixes = True

    def __post_init__(self) -> None:
        source = self.format or self.alphabet
        self.takes_any_text = self.is_exact = not source
        if not source:
            return
        if not self.format.isidentifier():
            try:
                form = read_pattern(source)
            except ValueError as error:
                raise UnusableFormat(f"{{:{self.format}}} is not a pattern: {error}") from None
            if not form.is_one_text:
                self._take_form(form)
                return
        super().__post_init__()

    def render(self, value: Any) -> str:
        return str(_given(value))

    def value(self, text: str) -> str:
        return text

    def accepts(self, text: str) -> bool:
        return bool(text) and (self.takes_any_text or self._regex.fullmatch(text) is not None)


class _PaddedNumber(KeyText):
    """A number, optionally in a format that pads it with zeros, so that the texts sort as the numbers do."""

    def _pad(self, width: str | None) -> None:
        self.width = int(width) if width else None
        self.ordered = self.width is not None

    def render(self, value: Any) -> str:
        return format(_given(value), self.format)


class WholeNumber(_PaddedNumber):
    """An integer, optionally padded: `{number:07d}`."""

    pattern = r"-?[0-9]+"

    def __post_init__(self) -> None:
        padded = re.fullmatch(r"0([1-9][0-9]*)d?", self.format)
        self._pad(padded and padded[1])
        first, more = [_DIGIT] * (self.width or 1), (DIGITS, True, True)
        self.char_steps = [[*first, more], [_DASH, *(first[1:] or first), more]]
        if not self.format:
            # Only the form in which integers render: if digits follow, a key would be cut at the wrong one.
            self.pattern = r"(?:0|-?[1-9][0-9]*)"
            return
        try:
            texts = {number: self.render(number) for number in (0, 7, 1_234_567)}
            is_read_back = all(self.value(text) == number for number, text in texts.items())
        except (ValueError, TypeError) as error:
            raise UnusableFormat(
                f"{{:{self.format}}} is not a format for {self.type.name}: {error}"
            ) from None
        if not is_read_back or not all(map(self.accepts, texts.values())):
            raise UnusableFormat(f"{{:{self.format}}} writes integers that cannot be read back")

    def value(self, text: str) -> int:
        return int(text)

    def accepts(self, text: str) -> bool:
        if not super().accepts(text):
            return False
        if len(text) <= NUMBER_DIGITS:
            return True
        try:
            # No attribute can hold a number of more digits.
            number(int(text))
        except ValueError:
            return False
        return True


class DecimalText(_PaddedNumber):
    """A decimal with its exact digits, or with a fixed number of them: `{price:012.2f}`."""

    def __post_init__(self) -> None:
        fixed = re.fullmatch(r"(?:0([1-9][0-9]*))?\.([1-9][0-9]?)f", self.format)
        if self.format and not fixed:
            raise UnusableFormat(
                f"{{:{self.format}}} is not a format for decimals; {{:.2f}} and {{:012.2f}} are"
            )
        self._pad(fixed and fixed[1])
        self.char_steps = _FRACTION_STEPS
        self.pattern = rf"-?[0-9]+\.[0-9]{{{fixed[2]}}}" if fixed else _NUMBER

    def value(self, text: str) -> Decimal:
        try:
            return Decimal(text)
        except InvalidOperation:
            raise ValueError("not a number") from None


class FloatText(KeyText):
    """A float as Python writes it."""

    pattern = r"-?[0-9][0-9.]*(?:e[+-]?[0-9]+)?"
    char_steps = _FRACTION_STEPS

    def render(self, value: Any) -> str:
        return repr(_given(value))

    def value(self, text: str) -> float:
        return float(text)


class BytesText(KeyText):
    """Bytes, one character for each."""

    ordered = True
    has_prefixes = True

    def render(self, value: Any) -> str:
        return cast(bytes, _given(value)).decode("latin-1")

    def value(self, text: str) -> bytes:
        return text.encode("latin-1")


class EnumText(KeyText):
    """The value of an enum's member."""

    has_own_end = True
    is_exact = True

    def __post_init__(self) -> None:
        super().__post_init__()
        self._values: dict[str, Any] = {}
        for text, value in self._texts():
            # If two members have the same text, it is the first member's.
            self._values.setdefault(text, value)
        self.choices = tuple(self._values)
        self.pattern = "|".join(sorted(map(re.escape, self.choices), key=len, reverse=True))
        self.char_steps = [[(frozenset(char), False, False) for char in choice] for choice in self.choices]

    def _texts(self) -> list[tuple[str, Any]]:
        return [(str(member.value), member) for member in cast(Any, self.type.cls)]

    def render(self, value: Any) -> str:
        return str(_given(value).value)

    def value(self, text: str) -> Any:
        if text not in self._values:
            raise ValueError(f"none of {', '.join(self.choices)}")
        return self._values[text]


class BooleanText(EnumText):
    """`true` or `false`."""

    def _texts(self) -> list[tuple[str, Any]]:
        return [("true", True), ("false", False)]

    def render(self, value: Any) -> str:
        return "true" if _given(value) else "false"


class IsoDatetime(KeyText):
    """A time of ISO 8601, which keeps the text that it was written as."""

    pattern = types.ISO_DATETIME.replace(r"\d", "[0-9]")
    ordered = True
    char_steps = ([*_DATE_STEPS, (frozenset("0123456789T :.+-Z"), True, True)],)

    def render(self, value: Any) -> str:
        return types.moment_text(_given(value))

    def value(self, text: str) -> datetime:
        return types.Moment.of_text(text)

    def bound(self, text: str, *, is_low: bool) -> str:
        at = self.value(text)
        return types.first_text(at)[0] if is_low else types.last_text(at)

    def decides(self, low: datetime | None, high: datetime | None) -> bool:
        # Where the range begins or ends within a second, the texts of that second are in another order.
        return high is None and (low is None or not low.microsecond)

    def accepts(self, text: str) -> bool:
        try:
            types.Moment.of_text(text)
        except ValueError:
            return False
        return True


class IsoDate(KeyText):
    """An ISO 8601 date."""

    pattern = types.ISO_DATE.replace(r"\d", "[0-9]")
    ordered = True
    has_own_end = True
    char_steps = (_DATE_STEPS,)

    def render(self, value: Any) -> str:
        return cast(date, _given(value)).isoformat()

    def value(self, text: str) -> date:
        return date.fromisoformat(text)


class FormattedTime(KeyText):
    """A time or a date in a strftime format, in UTC: `{day:%Y%m%d}`."""

    _SAMPLE = datetime(2019, 11, 28, 13, 47, 59, tzinfo=UTC)
    """A time in which every part differs from every default, to find out what a format loses."""
    _OTHER = datetime(2002, 5, 6, 4, 35, 26, 700_000, tzinfo=UTC)
    """A time that differs from it in every part."""

    def __post_init__(self) -> None:
        if "%" not in self.format:
            raise UnusableFormat(f"{{:{self.format}}} is not a format for {self.type.name}: it has no %")
        sample = self._of(self._SAMPLE)
        text = self.render(sample)
        if text == self.render(self._of(self._OTHER)):
            raise UnusableFormat(f"{{:{self.format}}} writes every {self.type.name} the same way")
        try:
            self.lossy = self.value(text) != sample
        except (ValueError, TypeError):
            self.lossy = True
        # Texts sort as the values do if year, month, day and so on are written in this order.
        parts = "".join(re.findall("%(.)", self.format.replace("%%", "")))
        self.ordered = bool(parts) and "YmdHMSf".startswith(parts)
        source = strftime_pattern(self.format)
        self.takes_any_text = self.lossy and source is None
        if source is not None:
            self._take_form(read_pattern(source))
            # Not every two digits are a month.
            self.is_exact = False

    def _of(self, moment: datetime) -> date:
        """Returns the part of a time that a field of the type holds."""
        return moment if self.type.kind == "datetime" else moment.date()

    def render(self, value: Any) -> str:
        _given(value)
        if self.type.kind == "datetime" and value.tzinfo is not None:
            value = value.astimezone(UTC)
        return format(value, self.format)

    def value(self, text: str) -> date:
        form = self.format
        if "%d" in form and not re.search("%[YyG]", form):
            # Python warns of a day without a year, which may be the 29th of February.
            text, form = f"2000 {text}", f"%Y {form}"
        parsed = datetime.strptime(text, form)  # noqa: DTZ007  # the next line gives it a zone
        return self._of(parsed if parsed.tzinfo else parsed.replace(tzinfo=UTC))


class DeclaredText(KeyText):
    """The texts of a format that the graph declares."""

    def __post_init__(self) -> None:
        self._format = cast(Format, self.declared)
        self.lossy = self._format.parse is None
        self.ordered = self._format.ordered
        refuse_kind(self._format, self.type)
        self.has_prefixes = self._format.prefixes
        if self.has_prefixes and not self.type.is_text and self.type.kind != "bytes":
            raise UnusableFormat(f"prefixes=True is for text, and a field of type {self.type.name} is none")
        source = self._format.pattern
        self.takes_any_text = self.is_exact = self.lossy and source is None
        if source is not None:
            try:
                self._take_form(read_pattern(source))
            except ValueError as error:
                raise UnusableFormat(f"{source} is not a pattern: {error}") from None
            self.is_exact = self.is_exact and self.lossy

    def render(self, value: Any) -> str:
        return self._format.text(_given(value))

    def value(self, text: str) -> Any:
        return types.written_value(self._format, text)

    def bound(self, text: str, *, is_low: bool) -> str:
        return self._format.bound(text)

    def difference(self, text: str, value: Any) -> int:
        # A text that equals the value means it, even if only a part of it can be read back.
        return 0 if text == value else super().difference(text, value)


def refuse_kind(format_: Format, type_: types.FieldType) -> None:
    """Raises UnusableFormat if the format cannot write values of the type."""
    if format_.kinds is not None and type_.kind not in format_.kinds:
        kinds = " or ".join(sorted(format_.kinds))
        raise UnusableFormat(f"its format is for {kinds} and cannot write a field of type {type_.name}")


class NumberKey(KeyText):
    """A key that is itself a number: every value has one text, and they sort as numbers."""

    pattern = _NUMBER
    takes_any_text = False

    def __post_init__(self) -> None:
        is_number = self.type.kind in ("int", "long", "decimal", "float")
        if self.declared is None and (self.format or not is_number):
            raise UnusableFormat(f"a key that is a number cannot hold a field of type {self.type.name}")
        # How the value would be written in a text.
        self._usual = key_text(self.type, declared=self.declared)
        self.lossy, self.char_steps = self._usual.lossy, self._usual.char_steps
        self.ordered = self.declared is None or self.declared.ordered

    def difference(self, text: str, value: Any) -> int:
        return 0

    def render(self, value: Any) -> str:
        written = self.declared.text(_given(value)) if self.declared else _given(value)
        return number_text(number(repr(written) if isinstance(written, float) else written))

    def value(self, text: str) -> Any:
        return self._usual.value(text)


_CLASSES: dict[str, type[KeyText]] = {
    "id": FreeText,
    "string": FreeText,
    "int": WholeNumber,
    "long": WholeNumber,
    "decimal": DecimalText,
    "float": FloatText,
    "boolean": BooleanText,
    "bytes": BytesText,
    "enum": EnumText,
    "datetime": IsoDatetime,
    "date": IsoDate,
}
