"""The scalars that GraphQL lacks: Long, Decimal, DateTime, Date, Base64, JSON.

None loses information: a Decimal is a string with its exact digits, a DateTime is the text that is stored.
"""

from __future__ import annotations

import base64
from collections.abc import Callable
from datetime import date, datetime
from decimal import Decimal
from typing import Any, cast

import graphql
from strawberry.scalars import JSON
from strawberry.types.scalar import ScalarDefinition

from keygraph.dynamo.items import ExactFloat, number_text
from keygraph.errors import BadUserInput
from keygraph.keys.types import FieldType, Long, moment_text
from keygraph_resolvers.naming.scalar_values import (
    SCALARS,
    read_bytes,
    read_date,
    read_datetime,
    read_decimal,
    read_long,
)
from keygraph_resolvers.schema.json_numbers import as_long_json

_FLOAT_LENGTH = 16
"""The longest text of a fraction that a float holds for certain: 15 digits and a point."""


def _base64_text(value: bytes) -> str:
    return base64.b64encode(value).decode()


def _json(value: Any) -> Any:
    """An attribute's value as JSON: whole numbers as integers, others as numbers, bytes in base64."""
    match value:
        case Decimal():
            if value == value.to_integral_value():
                return int(value)
            text = number_text(value)
            return float(text) if len(text) <= _FLOAT_LENGTH else ExactFloat(text)
        case bytes():
            return _base64_text(value)
        case dict():
            return {name: _json(inner) for name, inner in value.items()}
        case list():
            return [_json(inner) for inner in value]
        case frozenset():
            return [_json(inner) for inner in sorted(value)]
    return value


def _read_literal(node: graphql.ValueNode) -> object:
    match node:
        case graphql.IntValueNode(value=text):
            return int(text)
        case graphql.FloatValueNode(value=text):
            return Decimal(text)
        case graphql.StringValueNode(value=text):
            return text
    raise graphql.GraphQLError("expected a string or a number")


def _json_of_literal(node: graphql.ValueNode, variables: dict[str, Any] | None = None) -> Any:
    match node:
        case graphql.FloatValueNode(value=text):
            return ExactFloat(text)
        case graphql.ListValueNode(values=nodes):
            return [_json_of_literal(each, variables) for each in nodes]
        case graphql.ObjectValueNode(fields=fields):
            return {each.name.value: _json_of_literal(each.value, variables) for each in fields}
    return graphql.value_from_ast_untyped(node, variables)


def _scalar(
    name: str,
    description: str,
    serialize: Callable[[Any], Any],
    read: Callable[[object], Any],
    expected: str,
    url: str,
    *,
    explains: bool = False,
) -> ScalarDefinition:
    """`read` raises if a value is not what is `expected`; `explains`: the ValueError says what it is instead. `url` is
    that of the specification of its text."""

    def parse(value: object) -> Any:
        try:
            return read(_read_literal(value) if isinstance(value, graphql.ValueNode) else value)
        except (ValueError, TypeError, ArithmeticError) as error:
            node = value if isinstance(value, graphql.ValueNode) else None
            why = f", and this is {error}" if explains and isinstance(error, ValueError) else ""
            raise graphql.GraphQLError(f"{name}: expected {expected}{why}", node) from None

    def parse_literal(node: graphql.ValueNode, variables: object = None) -> Any:
        return parse(node)

    return _definition(name, description, serialize, parse, parse_literal, url)


def _definition(
    name: str,
    description: str,
    serialize: Callable[[Any], Any],
    parse: Callable[[Any], Any],
    parse_literal: Callable[..., Any],
    url: str,
) -> ScalarDefinition:
    implementation = graphql.GraphQLScalarType(
        name,
        serialize=serialize,
        parse_value=parse,
        parse_literal=parse_literal,
        description=description,
        specified_by_url=url,
    )
    return ScalarDefinition(name, description, url, serialize, parse, None, implementation=implementation)


SCALAR_MAP: dict[object, ScalarDefinition] = {
    Long: _scalar(
        "Long",
        "An integer of at most 38 digits.",
        int,
        read_long,
        "an integer",
        "https://www.w3.org/TR/xmlschema11-2/#integer",
    ),
    Decimal: _scalar(
        "Decimal",
        'A number with its exact digits, as a string: `"199.99"`.',
        number_text,
        read_decimal,
        'a number of at most 38 digits, preferably as a string ("199.99")',
        "https://www.w3.org/TR/xsd-precisionDecimal/",
        explains=True,
    ),
    datetime: _scalar(
        "DateTime",
        "An ISO 8601 date and time, in UTC unless it was stored otherwise.",
        moment_text,
        read_datetime,
        'an ISO 8601 date and time, such as "2024-01-20T12:00:00Z"',
        "https://www.iso.org/iso-8601-date-and-time-format.html",
    ),
    date: _scalar(
        "Date",
        "An ISO 8601 date.",
        date.isoformat,
        read_date,
        'an ISO 8601 date, such as "2024-01-20"',
        "https://scalars.graphql.org/andimarek/local-date",
    ),
    bytes: _scalar(
        "Base64",
        "Bytes as base64.",
        _base64_text,
        read_bytes,
        "base64 text",
        "https://www.rfc-editor.org/rfc/rfc4648#section-4",
    ),
    JSON: _definition(
        "JSON",
        "Any JSON value.",
        _json,
        lambda value: value,
        _json_of_literal,
        "https://www.rfc-editor.org/rfc/rfc8259",
    ),
}
"""Strawberry's scalar for each Python type, in derived fields and in those of the model."""


def value_of_json(type_: FieldType, value: Any, where: str) -> Any:
    """Returns the Python value of a scalar or an enum in JSON. Raises BadUserInput; `where` is its place."""
    if type_.of is not None and isinstance(value, list):
        return [
            None if each is None and type_.of_optional else value_of_json(type_.of, each, where)
            for each in value
        ]
    try:
        if type_.kind == "enum":
            return cast(Any, type_.python)[value]
        return _scalar_of(type_).parse_value(value)
    except (graphql.GraphQLError, KeyError, TypeError):  # what is not hashable has no name
        raise BadUserInput(f"{where}: expected a value of type {type_.name}") from None


def value_in_answer(type_: FieldType, value: Any, *, is_optional: bool) -> Any:
    """Returns what an answer says of a value that a method returns. It may raise anything for what none can hold."""
    if value is None and is_optional:
        return None
    if type_.of is not None:
        if not graphql.pyutils.is_iterable(value):
            raise TypeError
        of, of_optional = type_.of, type_.of_optional
        values = (value_in_answer(of, each, is_optional=of_optional) for each in value)
        return (set if type_.kind == "set" else list)(values)
    if type_.kind == "object":
        members = ((each, getattr(value, each.name)) for each in type_.members)
        return [value_in_answer(each.type, own, is_optional=each.optional) for each, own in members]
    if value is None:
        raise TypeError
    if type_.kind == "enum":
        return type_.cls(value)
    written = _scalar_of(type_).serialize(value)
    # In JSON, no two NaN are equal, and what is no list may be written as one.
    return as_long_json(written) if type_.kind == "json" else written


def _scalar_of(type_: FieldType) -> Any:
    scalar = SCALARS[type_.kind]
    return SCALAR_MAP.get(scalar.python) or graphql.specified_scalar_types[scalar.name]
