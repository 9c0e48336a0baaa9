"""Reads the values of scalars and enums as clients write them. A reader raises an exception for any other value.

The key of a node in a list of ids is a text, also if its field is a number: `value_of_text` reads it.
"""

from __future__ import annotations

import base64
import re
from collections.abc import Callable, Mapping
from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Any, NamedTuple, cast

import strawberry
from graphql import GraphQLError, GraphQLFloat, GraphQLInt
from strawberry.scalars import JSON

from keygraph.dynamo.items import known_number, number
from keygraph.dynamo.limits import NUMBER_DIGITS
from keygraph.keys.types import ISO_DATE, FieldType, Kind, Long, Moment, moment_text

_LONG = re.compile(r"-?[0-9]{1,38}")
_DATE = re.compile(ISO_DATE, re.ASCII)
_NUMBERS = (str, int, float, Decimal)


def read_long(value: object) -> int:
    if isinstance(value, str) and _LONG.fullmatch(value):
        return int(value)
    if isinstance(value, float) and abs(value) < 2**53 and not (exact := Decimal(repr(value))) % 1:
        return int(exact)
    if not isinstance(value, int) or isinstance(value, bool):
        raise TypeError
    return value


def read_decimal(value: object) -> Decimal:
    if not isinstance(value, _NUMBERS) or isinstance(value, bool):
        raise TypeError
    if type(value) is str and len(value) <= NUMBER_DIGITS:
        return known_number(value)  # quantities and prices repeat
    return number(repr(value) if isinstance(value, float) else value)


def read_datetime(value: object) -> datetime:
    text = _text(value)
    if _DATE.fullmatch(text):
        raise ValueError
    moment = Moment.of_text(text)
    # A time with an offset is converted to UTC, and a space to T; others are compared as written.
    has_offset = moment.tzinfo is not None and not text.endswith("Z")
    if not has_offset and " " not in text:
        return moment
    usual = (
        moment_text(datetime.fromisoformat(text).astimezone(UTC)) if has_offset else text.replace(" ", "T")
    )
    moment = Moment.fromisoformat(usual)
    moment.text, moment.original = usual, text
    return moment


def read_date(value: object) -> date:
    if not _DATE.fullmatch(_text(value)):
        raise ValueError
    return date.fromisoformat(_text(value))


def read_bytes(value: object) -> bytes:
    return base64.b64decode(_text(value), validate=True)


def _text(value: object) -> str:
    if not isinstance(value, str):
        raise TypeError
    return value


class Scalar(NamedTuple):
    """The scalar of a kind of field."""

    name: str
    """Its name in GraphQL."""
    python: Any
    """The type by which Strawberry knows it."""
    read_text: Callable[[str], Any] = str
    """Reads a value that is written as a text."""


SCALARS: Mapping[Kind, Scalar] = {
    "id": Scalar("ID", strawberry.ID),
    "string": Scalar("String", str),
    "int": Scalar("Int", int, lambda text: GraphQLInt.parse_value(read_long(text))),
    "long": Scalar("Long", Long, read_long),
    "float": Scalar("Float", float, lambda text: GraphQLFloat.parse_value(float(read_decimal(text)))),
    "boolean": Scalar("Boolean", bool, {"true": True, "false": False}.__getitem__),
    "decimal": Scalar("Decimal", Decimal, read_decimal),
    "datetime": Scalar("DateTime", datetime, read_datetime),
    "date": Scalar("Date", date, read_date),
    "bytes": Scalar("Base64", bytes, read_bytes),
    "json": Scalar("JSON", JSON),
    "average": Scalar("Float", float),
}


def value_of_text(type_: FieldType, text: str) -> Any:
    """Returns the value of a field that a client wrote as a text: `100` for an integer, an enum's member by its name.

    Raises ValueError if it is none.
    """
    try:
        if type_.kind == "enum":
            return cast(Any, type_.python)[text]
        return SCALARS[type_.kind].read_text(text)
    except (ValueError, TypeError, ArithmeticError, KeyError, GraphQLError):
        raise ValueError(f"not a value of type {type_.name}") from None
