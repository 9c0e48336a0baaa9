"""The kinds of values: how each stands in an attribute, in a key, in JSON, and which one goes before another."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Any


@dataclass(frozen=True)
class Form:
    """A way to write values in a key."""

    spec: str
    """What stands behind the colon of its placeholder."""
    text: Callable[[Any], str]
    loses: bool = False
    """Whether several values have one text."""
    ordered: bool = True
    """Whether the texts go one before the other as the values do: such a form may begin a sort key."""


@dataclass(frozen=True)
class Kind:
    """A type of values."""

    annotation: str
    pool: tuple[Any, ...]
    """The values that items have. Few, so that many are equal."""
    forms: tuple[Form, ...] = ()
    attribute: Callable[[Any], Any] = lambda value: value
    shown: Callable[[Any], Any] = lambda value: value
    """The value in JSON."""
    order: Callable[[Any], Any] = lambda value: value
    """What values are compared by."""
    is_text: bool = False
    stored_as: str = ""
    """The format of the field alone, in Python."""

    def literal(self, value: Any) -> str:
        if value is None:
            return "null"
        if self.annotation == "Colour":
            return value.upper()
        shown = self.shown(value)
        return json.dumps(shown, ensure_ascii=False)


def _bytes(text: str) -> bytes:
    return text.encode()


def _in_base_36(value: int) -> str:
    digits = "0123456789abcdefghijklmnopqrstuvwxyz"
    return digits[value] if value < 36 else _in_base_36(value // 36) + digits[value % 36]


def _instant(value: datetime) -> str:
    return value.astimezone(UTC).isoformat().replace("+00:00", "Z")


def _moment(value: datetime) -> str:
    return value.strftime("%Y-%m-%dT%H:%M:%SZ")


PLAIN_TEXTS = ("a", "b", "ab", "a b", "abc", "B", "é", "日本", "10", "9", "a-b", "~", "a!", "zz", "😀x")
AWKWARD_TEXTS = ("a#b", "#", "a#", "#a", "b#a#c", "a##b")
"""Values that hold what separates the parts of a key."""


def text_kind(pool: tuple[str, ...], annotation: str = "str", forms: tuple[Form, ...] = ()) -> Kind:
    """Texts: their order is that of their UTF-8 bytes."""
    return Kind(annotation, pool, (Form("", str), *forms), order=_bytes, is_text=True)


LOWER = Form("lower", str.lower, loses=True, ordered=False)
SLUG = Form("slug", lambda value: value.replace(" ", "-").lower(), loses=True, ordered=False)

PADDED = Form("04d", lambda value: f"{value:04d}")
NUMBERS = Kind(
    "int",
    (0, 1, 2, 3, 9, 10, 11, 99, 100, 1200),
    (
        PADDED,
        Form("", str, ordered=False),
        Form("06d", lambda value: f"{value:06d}"),
        Form("newest", lambda value: f"{99999 - value:05d}"),
        Form("short", lambda value: _in_base_36(value).rjust(4, "0")),
        Form("tens", lambda value: f"{value // 10 * 10:05d}", loses=True),
    ),
    attribute=Decimal,
)
DECIMALS = Kind(
    "Decimal",
    tuple(map(Decimal, ("0", "0.5", "1", "9.99", "10", "100.25"))),
    (Form("08.2f", lambda value: f"{value:08.2f}"),),
    shown=str,
)
DAYS = tuple(
    date(year, month, day)
    for year in (2023, 2024)
    for month in (1, 2, 12)
    for day in (1, 2, 30 if month != 2 else 28)
)


def day_kind(written: Callable[[date], str] = date.isoformat) -> Kind:
    """Dates, written in attributes, and in keys without another form, so."""
    return Kind(
        "date",
        DAYS,
        (
            Form("", written),
            Form("%Y%m%d", lambda value: value.strftime("%Y%m%d")),
            Form("%Y-%m", lambda value: value.strftime("%Y-%m"), loses=True),
            Form("%d/%m/%Y", lambda value: value.strftime("%d/%m/%Y"), ordered=False),
            Form("%Y", lambda value: value.strftime("%Y"), loses=True),
        ),
        attribute=written,
        shown=date.isoformat,
    )


MOMENTS = Kind(
    "datetime",
    tuple(
        datetime(2024, month, day, hour, 30 * (hour % 2), tzinfo=UTC)
        for month in (1, 11)
        for day in (1, 2)
        for hour in (0, 9, 23)
    ),
    (
        Form("", _moment),
        Form("%Y-%m-%d", lambda value: value.strftime("%Y-%m-%d"), loses=True),
        Form("%Y%m%dT%H%M%S", lambda value: value.strftime("%Y%m%dT%H%M%S")),
    ),
    attribute=_moment,
    shown=_moment,
)
SECONDS = replace(
    MOMENTS,
    forms=(Form("", lambda value: str(int(value.timestamp()))),),
    attribute=lambda value: Decimal(int(value.timestamp())),
    stored_as="Epoch()",
)
"""Times that are stored as numbers."""
INSTANTS = replace(
    MOMENTS,
    pool=tuple(
        datetime(2024, 1, 1, 0, 0, second, parts, tzinfo=UTC)
        for second in (0, 1, 2)
        for parts in (0, 1000, 519139)
    ),
    forms=(
        Form("", _instant),
        Form("%Y-%m-%d", lambda value: value.strftime("%Y-%m-%d"), loses=True),
    ),
    attribute=_instant,
    shown=_instant,
)
"""Times that differ within a second: their texts are not in their order."""
COLOURS = Kind("Colour", ("red", "green", "blue"), (Form("", str, ordered=False),), shown=str.upper)
"""An enum, whose members are called as their values in capitals."""
FLAGS = Kind("bool", (True, False))
NUMBERED_IDS = Kind("ID", ("1", "2", "7", "8"), attribute=Decimal, order=_bytes)
"""Ids that are stored as numbers. Of one digit each, so that texts and numbers have one order."""
EXACT_DECIMALS = Kind(
    "Decimal",
    tuple(
        map(Decimal, ("0.30000000000000004", "-" + "9" * 38, "12345678901234567890.123456789012345678", "7"))
    ),
    shown=str,
)
"""Numbers with more digits than a float has."""
