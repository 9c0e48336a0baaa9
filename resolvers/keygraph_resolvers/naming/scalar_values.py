"""Reads the values of scalars and enums as clients write them. A reader raises an exception for any other value.

The key of a node in a list of ids is a text, also if its field is a number: `value_of_text` reads it.
"""

from __future__ import annotations

import base64
import re
from collections.abc import Callable, Mapping
from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Any, cast

from graphql import GraphQLError, GraphQLFloat, GraphQLInt

from keygraph.dynamo.items import number
from keygraph.kept import kept
from keygraph.keys.types import ISO_DATE, FieldType, Kind, Moment, moment_text

_LONG = re.compile(r"-?[0-9]{1,38}")
_DATE = re.compile(ISO_DATE, re.ASCII)
_NUMBERS = (str, int, float, Decimal)
_SHORT = 40
"""The longest text of a number that is cached, in characters: 38 digits, a sign and a point."""


def read_long(value: object) -> int:
    """Returns the integer in a value of `Long`."""
    if isinstance(value, str) and _LONG.fullmatch(value):
        return int(value)
    if isinstance(value, float) and abs(value) < 2**53 and not (exact := Decimal(repr(value))) % 1:
        return int(exact)
    if not isinstance(value, int) or isinstance(value, bool):
        raise TypeError
    return value


def read_decimal(value: object) -> Decimal:
    """Returns the number in a value of `Decimal`."""
    if isinstance(value, str) and len(value) <= _SHORT:
        return _short_decimal(value)
    if not isinstance(value, _NUMBERS) or isinstance(value, bool):
        raise TypeError
    return number(repr(value) if isinstance(value, float) else value)


@kept("numbers", 4096, 700)
def _short_decimal(text: str) -> Decimal:
    """The number of a short text, cached because quantities and prices repeat."""
    return number(text)


def read_datetime(value: object) -> datetime:
    """Returns the time in a value of `DateTime`."""
    text = _text(value)
    if _DATE.fullmatch(text):
        raise ValueError
    moment = Moment.of_text(text)
    # A time with an offset is converted to UTC; others are compared as written.
    if moment.tzinfo is None or text.endswith("Z"):
        return moment
    in_utc = moment_text(datetime.fromisoformat(text).astimezone(UTC))
    moment = Moment.fromisoformat(in_utc)
    moment.text, moment.said = in_utc, text
    return moment


def read_date(value: object) -> date:
    """Returns the date in a value of `Date`."""
    if not _DATE.fullmatch(_text(value)):
        raise ValueError
    return date.fromisoformat(_text(value))


def read_bytes(value: object) -> bytes:
    """Returns the bytes in a value of `Base64`."""
    return base64.b64decode(_text(value), validate=True)


def _text(value: object) -> str:
    if not isinstance(value, str):
        raise TypeError
    return value


_OF_TEXT: Mapping[Kind, Callable[[str], Any]] = {
    "int": lambda text: GraphQLInt.parse_value(read_long(text)),
    "long": read_long,
    "float": lambda text: GraphQLFloat.parse_value(float(read_decimal(text))),
    "boolean": {"true": True, "false": False}.__getitem__,
    "decimal": read_decimal,
    "datetime": read_datetime,
    "date": read_date,
    "bytes": read_bytes,
}
"""Functions that read the text of a value; text is its own value."""


def value_of_text(type_: FieldType, text: str) -> Any:
    """Returns the value of a field that a client wrote as a text: `100` for an integer, an enum's member by its name.

    Raises ValueError if it is none.
    """
    try:
        if type_.kind == "enum":
            return cast(Any, type_.python)[text]
        return _OF_TEXT.get(type_.kind, str)(text)
    except (ValueError, TypeError, ArithmeticError, KeyError, GraphQLError):
        raise ValueError(f"not a value of type {type_.name}") from None
