"""How the value of one placeholder stands in a key: as text, in a format, and back.

A `KeyText` is made of the field's type and the placeholder's format. It knows what its texts look like (a regular
expression), whether their order is that of the values, and whether the text loses a part of the value
(`{day:%Y-%m}`): then it renders and never parses.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import UTC, date, datetime
from decimal import Decimal, InvalidOperation
from functools import cached_property
from typing import Any, cast

from keygraph.dynamo.items import number, number_text
from keygraph.keys.formats import Format
from keygraph.keys.types import (
    ISO_DATE,
    ISO_DATETIME,
    FieldType,
    Moment,
    encode,
    is_moment,
    moment_of,
    moment_text,
)

_TEXT = r"(?s:.+?)"
_PATTERNS: dict[str, str] = {
    "id": _TEXT,
    "string": _TEXT,
    "int": r"-?[0-9]+",
    "long": r"-?[0-9]+",
    "decimal": r"-?[0-9][0-9.]*(?:E[+-]?[0-9]+)?",
    "float": r"-?[0-9][0-9.]*(?:e[+-]?[0-9]+)?",
    "boolean": r"true|false",
    "bytes": _TEXT,
    "datetime": ISO_DATETIME.replace(r"\d", "[0-9]"),
    "date": ISO_DATE.replace(r"\d", "[0-9]"),
}

_NUMBERS = ("int", "long", "decimal", "float")
_NUMBER = r"-?[0-9][0-9.]*(?:E[+-]?[0-9]+)?"
_ORDERED_UNFORMATTED = ("id", "string", "datetime", "date")
_PADDED = re.compile(r"0[1-9][0-9]*d?")
_DECIMALS = re.compile(r"(0[1-9][0-9]*)?\.([1-9][0-9]?)f")

_A_MOMENT = datetime(2019, 11, 28, 13, 47, 59, tzinfo=UTC)
"""A moment in which every part differs from every default, to find out what a format loses."""
_ANOTHER_MOMENT = datetime(2002, 5, 6, 4, 35, 26, 700_000, tzinfo=UTC)
"""One that differs from it in every part."""


class UnusableFormat(Exception):
    """The type cannot stand in a key, or not in that format; the message says why."""


def _parsed(text: str, time_format: str) -> datetime:
    """The time that the text says in a format of strftime, in UTC unless it says another zone."""
    parsed = datetime.strptime(text, time_format)  # noqa: DTZ007  # the next line gives it one
    return parsed if parsed.tzinfo else parsed.replace(tzinfo=UTC)


def _is_from_large_to_small(time_format: str) -> bool:
    """Whether a format of strftime writes year, month, day and so on in this order, so that its texts sort."""
    directives = re.sub(r"%.", lambda found: found[0] if found[0] != "%%" else "", time_format)
    parts = "".join(re.findall("%(.)", directives))
    return bool(parts) and "YmdHMSf".startswith(parts)


@dataclass(frozen=True)
class KeyText:
    """The texts of one placeholder. Equal ones write a value alike."""

    type: FieldType
    format: str = ""
    declared: Format | None = None
    """What renders and parses instead, where the graph declares the format."""
    is_number: bool = False
    """Whether the key itself is a number, in which every value has one text and the order is that of numbers."""
    pattern: str = field(init=False, compare=False)
    lossy: bool = field(init=False, compare=False)
    ordered: bool = field(init=False, compare=False)
    """Whether the order of the texts is that of the values."""

    def __post_init__(self) -> None:
        set_ = object.__setattr__
        kind = self.type.kind
        if self.declared is not None:
            set_(self, "pattern", _TEXT)
        elif kind == "enum":
            set_(self, "pattern", "|".join(sorted(map(re.escape, self.choices), key=len, reverse=True)))
        elif kind not in _PATTERNS:
            raise UnusableFormat(f"a field of type {self.type.name} cannot stand in a key")
        elif kind in ("datetime", "date") and self.format:
            set_(self, "pattern", _TEXT)
        else:
            set_(self, "pattern", _PATTERNS[kind])
        set_(self, "lossy", self.declared is not None and self.declared.parse is None)
        is_usual = not self.format and kind in _ORDERED_UNFORMATTED
        set_(self, "ordered", is_usual if self.declared is None else self.declared.ordered)
        if self.format and self.declared is None:
            self._try_format()
        if self.is_number:
            if self.format or (self.declared is None and kind not in _NUMBERS):
                raise UnusableFormat(f"a key that is a number cannot hold a field of type {self.type.name}")
            set_(self, "pattern", _NUMBER)
            set_(self, "ordered", self.declared is None or self.declared.ordered)

    def _try_format(self) -> None:
        set_ = object.__setattr__
        kind = self.type.kind
        sample = {"datetime": _A_MOMENT, "date": _A_MOMENT.date()}.get(kind)
        another = _ANOTHER_MOMENT if kind == "datetime" else _ANOTHER_MOMENT.date()
        if sample is not None:
            if "%" not in self.format:
                raise UnusableFormat(f"{{:{self.format}}} is no format for {self.type.name}, it has no %")
            if self.render(sample) == self.render(another):
                raise UnusableFormat(f"{{:{self.format}}} writes every {self.type.name} alike")
            set_(self, "lossy", not self._returns(sample))
            set_(self, "ordered", not self.lossy and _is_from_large_to_small(self.format))
        elif kind in ("int", "long"):
            numbers = (0, 7, 1_234_567)
            if not all(self._returns(number) and self.accepts(self.render(number)) for number in numbers):
                raise UnusableFormat(f"{{:{self.format}}} writes integers that cannot be read back")
            set_(self, "ordered", bool(_PADDED.fullmatch(self.format)))
        elif kind == "decimal" and (decimals := _DECIMALS.fullmatch(self.format)):
            set_(self, "pattern", rf"-?[0-9]+\.[0-9]{{{decimals[2]}}}")
            set_(self, "ordered", decimals[1] is not None)
        elif kind == "decimal":
            raise UnusableFormat(
                f"{{:{self.format}}} is no format for decimals; {{:.2f}} and {{:012.2f}} are"
            )
        else:
            raise UnusableFormat(f"a format cannot be used with a field of type {self.type.name}")

    def _returns(self, value: Any) -> bool:
        try:
            return bool(self.value(self.render(value)) == value)
        except (ValueError, TypeError) as error:
            if isinstance(value, date):
                return False
            raise UnusableFormat(f"{{:{self.format}}} is no format for {self.type.name}: {error}") from None

    @property
    def choices(self) -> tuple[str, ...]:
        """The texts of an enum; nothing for other types."""
        if self.type.kind != "enum" or self.declared is not None:
            return ()
        return tuple(str(member.value) for member in cast(Any, self.type.python))

    def is_continued_by(self, following: str) -> bool:
        """Whether a choice, with the first character of what follows it in the key, begins another choice.

        Then a range of the first one's keys holds those of the other too.
        """
        return bool(following) and any(
            other.startswith(choice + following[0]) for choice in self.choices for other in self.choices
        )

    @property
    def is_plain_text(self) -> bool:
        """Whether the text in the key is the value."""
        return self.type.is_text and self.declared is None and not self.is_number

    @cached_property
    def takes_any_text(self) -> bool:
        """Whether every text but the empty one is one of this placeholder's."""
        return (self.lossy and not self.is_number) or self.is_plain_text

    @property
    def _width(self) -> int | None:
        """To how many characters numbers are padded; None where they are not."""
        decimals = _DECIMALS.fullmatch(self.format)
        is_padded = _PADDED.fullmatch(self.format) or (decimals and decimals[1])
        found = re.search("[1-9][0-9]*", self.format) if is_padded and self.declared is None else None
        return None if found is None else int(found[0])

    def is_wider(self, text: str) -> bool:
        """Whether a number has more digits than its padding, so that it does not stand in order."""
        return self._width is not None and len(text.rstrip("\0")) > self._width

    def has_order(self, text: str) -> bool:
        """Whether the text stands in order among the others: of padded numbers the negative ones do not."""
        return self._width is None or not text.startswith("-")

    def difference(self, text: str, value: Any) -> int:
        """Whether the text of a value says that value (0), a smaller one (-1) or a larger one (1).

        A format that keeps two decimals, or seconds, rounds what has more.
        """
        if self.is_number or not (self.format or self.declared):
            return 0
        said = self.value(text)
        if isinstance(value, datetime) and isinstance(said, datetime):
            said, value = (each if each.tzinfo else each.replace(tzinfo=UTC) for each in (said, value))
        return 0 if said == value else -1 if said < value else 1

    def render(self, value: Any) -> str:
        """The text of a value. Raises ValueError where the value is none of the type's."""
        kind = self.type.kind
        if value is None:
            raise ValueError("None has no text")
        if self.is_number:
            text = self.declared.text(value) if self.declared else value
            return number_text(number(repr(text) if isinstance(text, float) else text))
        if self.declared is not None:
            return self.declared.text(value)
        if self.format:
            if kind == "datetime" and value.tzinfo is not None:
                value = value.astimezone(UTC)
            return format(value, self.format)
        match kind:
            case "enum":
                return str(value.value)
            case "boolean":
                return "true" if value else "false"
            case "datetime":
                return moment_text(value)
            case "date":
                return cast(date, value).isoformat()
            case "decimal":
                return str(value)
            case "float":
                return repr(value)
            case "bytes":
                return cast(bytes, value).decode("latin-1")
        return str(value)

    def value(self, text: str) -> Any:
        """The value that the text says. Raises ValueError where it says none; only for what is not lossy."""
        if self.declared is not None:
            return self.declared.value(text)
        kind = self.type.kind
        match kind:
            case "id" | "string":
                return text
            case "int" | "long":
                return int(text)
            case "boolean":
                if text not in ("true", "false"):
                    raise ValueError("neither true nor false")
                return text == "true"
            case "decimal":
                try:
                    return Decimal(text)
                except InvalidOperation:
                    raise ValueError("not a number") from None
            case "float":
                return float(text)
            case "bytes":
                return text.encode("latin-1")
            case "enum":
                return self._member(text)
            case "datetime":
                return self._moment(text)
        if self.format:
            return _parsed(text, self.format).date()
        return date.fromisoformat(text)

    @cached_property
    def reader(self) -> Callable[[str], Any]:
        """What gives the value of a text, as `value` does."""
        return moment_of if self._is_moment else self.value

    def _member(self, text: str) -> Any:
        for member in cast(Any, self.type.python):
            if str(member.value) == text:
                return member
        raise ValueError("none of the enum's values")

    def _moment(self, text: str) -> datetime:
        if not self.format:
            return Moment.of_text(text)
        return _parsed(text, self.format)

    @cached_property
    def _is_moment(self) -> bool:
        """Whether it is a time as it is usually written."""
        is_usual = not self.format and self.declared is None and not self.is_number
        return self.type.kind == "datetime" and is_usual

    @cached_property
    def _regex(self) -> re.Pattern[str]:
        return re.compile(self.pattern)

    @cached_property
    def acceptor(self) -> Callable[[str], bool]:
        """What says whether a text can be one of this placeholder's, as `accepts` does."""
        if self.takes_any_text:
            return bool
        # A moment keeps the text that it is made of.
        return is_moment if self._is_moment else self._accepts

    def accepts(self, text: str) -> bool:
        """Whether the text can be one of this placeholder's: it is exactly as a value renders."""
        return self.acceptor(text)

    def _accepts(self, text: str) -> bool:
        if not text or not self._regex.fullmatch(text):
            return False
        if self.lossy:
            return True
        try:
            value = self.value(text)
            if self.type.kind in ("int", "long", "enum"):
                encode(self.type, value)
            return self.render(value) == text
        except (ValueError, OverflowError):
            return False
