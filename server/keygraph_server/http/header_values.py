"""The header fields of a request, and the parameters and weights of their values."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import wraps
from typing import TypeAlias, TypeVar

from starlette.types import Scope

from keygraph.kept import kept

HeaderFields: TypeAlias = Mapping[bytes, bytes]
_T = TypeVar("_T")

_VALUES_KEPT = 256
"""Clients send the same few values with every request."""
_LONGEST_KEPT = 256
"""In bytes. A longer value is read each time, so that what clients send cannot fill the memory."""


def remembered(read: Callable[[bytes], _T]) -> Callable[[bytes], _T]:
    """Remembers what was read from the last short values of a header field."""
    known = kept("headers", _VALUES_KEPT, 10 * _LONGEST_KEPT)(read)

    @wraps(read)
    def look_up(value: bytes) -> _T:
        return known(value) if len(value) <= _LONGEST_KEPT else read(value)

    return look_up


def header_fields(scope: Scope) -> HeaderFields:
    """The header fields of a request by lower-case name. Fields of one name are joined (RFC 9110, 5.3)."""
    found: dict[bytes, bytes] = {}
    for name, value in scope["headers"]:
        found[name] = found[name] + b", " + value if name in found else value
    return found


def parse_media_type(text: str) -> tuple[str, dict[str, str]]:
    """A media type, a range or a coding, in lower case, with its parameters."""
    name, *parts = text.split(";")
    parameters = {}
    for part in parts:
        key, _, value = part.partition("=")
        parameters[key.strip().lower()] = value.strip().strip('"')
    return name.strip().lower(), parameters


def quality(parameters: dict[str, str]) -> float:
    """The weight among the parameters (RFC 9110, 12.4.2): 1 if there is none, 0 if it is not a number."""
    try:
        return float(parameters.get("q", "1"))
    except ValueError:
        return 0.0
