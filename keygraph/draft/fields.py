"""Guess the types of attributes from their values."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from datetime import date
from decimal import Decimal

from keygraph.dynamo.items import Item, Value
from keygraph.keys.types import INT_MAX, INT_MIN, ISO_DATE, Moment

_FLOAT_DIGITS = 13
"""A number with so many decimals is no amount of money: somebody stored a binary fraction."""
_ENUM_VALUES = 6
_ENUM_ITEMS = 5


@dataclass(frozen=True)
class DraftField:
    """A field: its annotation, and the doubts about it. Without an attribute, only a key holds it."""

    annotation: str
    optional: bool = False
    doubts: tuple[str, ...] = ()
    attribute: str | None = None

    def __str__(self) -> str:
        return f"{self.annotation} | None" if self.optional else self.annotation


def guess(attribute: str, items: Sequence[Item]) -> DraftField:
    """The field of an attribute, by its values in the items."""
    values = [item.get(attribute) for item in items]
    given = [value for value in values if value is not None]
    annotation, doubts = _annotation(given)
    if annotation == "str":
        doubts += enum_doubts([str(value) for value in given])
    return DraftField(annotation, len(given) < len(items), tuple(doubts), attribute)


def text_annotation(texts: Iterable[str]) -> str:
    """The type of part of a key: a date or a time if all texts are, else text."""
    return _annotation(list(texts))[0]


def number_annotation(numbers: Sequence[Decimal]) -> str:
    """The type of exact numbers."""
    if any(number != number.to_integral_value() for number in numbers):
        return "Decimal"
    return "int" if all(INT_MIN <= number <= INT_MAX for number in numbers) else "Long"


_KINDS: dict[type, str] = {
    str: "text",
    Decimal: "number",
    bool: "bool",
    bytes: "bytes",
    list: "list",
    frozenset: "set",
    dict: "map",
}


def _annotation(values: Sequence[Value]) -> tuple[str, list[str]]:
    kinds = Counter(_KINDS[type(value)] for value in values)
    if not kinds:
        return "JSON", ["it is always null"]
    if len(kinds) > 1:
        shown = ", ".join(f"{kind} in {count}" for kind, count in kinds.most_common())
        return "JSON", [f"its values have several types ({shown})"]
    match next(iter(kinds)):
        case "text":
            return _text([str(value) for value in values]), []
        case "number":
            return _number([value for value in values if isinstance(value, Decimal)])
        case "list" | "set" as kind:
            return _members(kind, values)
        case "map":
            return "JSON", []
        case other:
            return other, []


def _text(texts: Sequence[str]) -> str:
    if all(re.fullmatch(ISO_DATE, text, re.ASCII) and _is(date.fromisoformat, text) for text in texts):
        return "date"
    return "datetime" if all("T" in text and _is(Moment.of_text, text) for text in texts) else "str"


def _is(read: Callable[[str], object], text: str) -> bool:
    try:
        return read(text) is not None
    except ValueError:
        return False


def _number(numbers: Sequence[Decimal]) -> tuple[str, list[str]]:
    annotation = number_annotation(numbers)
    exponents = [number.as_tuple().exponent for number in numbers]
    if annotation == "Decimal" and any(
        isinstance(exponent, int) and exponent <= -_FLOAT_DIGITS for exponent in exponents
    ):
        return "float", ["Decimal, if all digits matter?"]
    return annotation, []


def _members(kind: str, values: Sequence[Value]) -> tuple[str, list[str]]:
    members = [member for value in values if isinstance(value, list | frozenset) for member in value]
    if not members:
        return "JSON", ["the list is always empty"]
    annotation, _ = _annotation([member for member in members if member is not None])
    if annotation == "JSON" or (kind == "set" and annotation == "bool"):
        return "JSON", []
    return f"{kind}[{annotation}{' | None' if None in members else ''}]", []


def enum_doubts(values: Sequence[str]) -> tuple[str, ...]:
    """A doubt whether texts are the values of an enum, if there are few different ones."""
    found = Counter(values)
    is_short = all(re.fullmatch(r"[A-Za-z][\w -]{0,30}", value) for value in found)
    is_few = 1 < len(found) <= _ENUM_VALUES and len(found) * 2 <= len(values)
    if len(values) < _ENUM_ITEMS or not is_few or not is_short:
        return ()
    return (f"an enum? Its values are {', '.join(sorted(found))}",)
