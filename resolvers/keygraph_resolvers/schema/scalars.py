"""The scalars that GraphQL lacks: Long, Decimal, DateTime, Date, Base64, JSON.

Each loses nothing: a Decimal is a string with its exact digits, a DateTime is the text that is stored.
"""

from __future__ import annotations

import base64
import binascii
import re
from collections.abc import Callable
from datetime import UTC, date, datetime
from decimal import Decimal, InvalidOperation
from typing import Any

import strawberry
from graphql import (
    FloatValueNode,
    GraphQLError,
    GraphQLScalarType,
    IntValueNode,
    StringValueNode,
    ValueNode,
    value_from_ast_untyped,
)
from strawberry.scalars import JSON
from strawberry.types.scalar import ScalarDefinition

from keygraph.dynamo.items import number, number_text
from keygraph.keys.types import ISO_DATE, Kind, Long, Moment, moment_text

_LONG = re.compile(r"-?[0-9]{1,38}")
_DATE = re.compile(ISO_DATE, re.ASCII)


def _long(value: object) -> int:
    if isinstance(value, int) and not isinstance(value, bool):
        return value
    if isinstance(value, str) and _LONG.fullmatch(value):
        return int(value)
    if isinstance(value, float) and value.is_integer() and abs(value) < 2**53:
        return int(value)
    raise GraphQLError("Long: expected an integer")


def _decimal(value: object) -> Decimal:
    if isinstance(value, str | int | float | Decimal) and not isinstance(value, bool):
        try:
            return number(Decimal(repr(value) if isinstance(value, float) else value))
        except (ValueError, InvalidOperation):
            pass
    raise GraphQLError('Decimal: expected a number of at most 38 digits, preferably as a string ("199.99")')


def _datetime(value: object) -> datetime:
    if isinstance(value, str):
        try:
            moment = Moment.of_text(value)
            # An offset becomes UTC; without one, and in UTC, it is compared as it was written.
            if moment.tzinfo is None or value.endswith("Z"):
                return moment
            return Moment.of_text(moment_text(datetime.fromisoformat(value).astimezone(UTC)))
        except (ValueError, OverflowError):
            pass
    raise GraphQLError('DateTime: expected an ISO 8601 date and time, such as "2024-01-20T12:00:00Z"')


def _date(value: object) -> date:
    if isinstance(value, str) and _DATE.fullmatch(value):
        try:
            return date.fromisoformat(value)
        except ValueError:
            pass
    raise GraphQLError('Date: expected an ISO 8601 date, such as "2024-01-20"')


def _bytes(value: object) -> bytes:
    if isinstance(value, str):
        try:
            return base64.b64decode(value, validate=True)
        except (binascii.Error, ValueError):
            pass
    raise GraphQLError("Base64: expected base64 text")


def _base64_text(value: bytes) -> str:
    return base64.b64encode(value).decode()


def _json(value: Any) -> Any:
    """An attribute's value as JSON: whole numbers as integers, others as numbers, bytes in base64."""
    match value:
        case Decimal():
            return int(value) if value == value.to_integral_value() else float(value)
        case bytes():
            return _base64_text(value)
        case dict():
            return {name: _json(inner) for name, inner in value.items()}
        case list():
            return [_json(inner) for inner in value]
        case frozenset():
            return [_json(inner) for inner in sorted(value)]
    return value


def _literal(parse: Callable[[object], Any]) -> Callable[..., Any]:
    def parse_literal(node: ValueNode, variables: dict[str, Any] | None = None) -> Any:
        if isinstance(node, StringValueNode):
            return parse(node.value)
        if isinstance(node, IntValueNode):
            return parse(int(node.value))
        if isinstance(node, FloatValueNode):
            return parse(Decimal(node.value))
        raise GraphQLError("expected a string or a number")

    return parse_literal


def _as_given(value: Any) -> Any:
    return value


def _scalar(
    name: str,
    description: str,
    serialize: Callable[[Any], Any],
    parse: Callable[[object], Any],
    parse_literal: Callable[..., Any] | None = None,
) -> ScalarDefinition:
    literal = parse_literal or _literal(parse)
    implementation = GraphQLScalarType(
        name, serialize=serialize, parse_value=parse, parse_literal=literal, description=description
    )
    return ScalarDefinition(name, description, None, serialize, parse, None, implementation=implementation)


SCALAR_MAP: dict[object, ScalarDefinition] = {
    Long: _scalar("Long", "An integer of any size that the table can hold.", int, _long),
    Decimal: _scalar(
        "Decimal", 'A number with its exact digits, as a string: `"199.99"`.', number_text, _decimal
    ),
    datetime: _scalar(
        "DateTime",
        "An ISO 8601 date and time, in UTC unless it was stored otherwise.",
        moment_text,
        _datetime,
    ),
    date: _scalar("Date", "An ISO 8601 date.", date.isoformat, _date),
    bytes: _scalar("Base64", "Bytes as base64.", _base64_text, _bytes),
    JSON: _scalar("JSON", "Any JSON value.", _json, _as_given, value_from_ast_untyped),
}
"""What Strawberry makes of each Python type, in derived fields and in a model's own."""

SCALARS: dict[Kind, Any] = {
    "id": strawberry.ID,
    "string": str,
    "int": int,
    "long": Long,
    "float": float,
    "boolean": bool,
    "decimal": Decimal,
    "datetime": datetime,
    "date": date,
    "bytes": bytes,
    "json": JSON,
}
"""The type that Strawberry knows each kind of field by."""
