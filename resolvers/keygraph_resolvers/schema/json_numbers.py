"""Numbers in the JSON of an answer that orjson does not write."""

from __future__ import annotations

from operator import is_
from typing import Any

import orjson

from keygraph.dynamo.items import ExactFloat


def as_long_json(value: Any) -> bytes:
    """Returns the JSON of values with integers of more than 64 bits, which a table can hold, and orjson refuses. It copies
    what they are in, and takes several times as long."""
    return orjson.dumps(_with_long_integers(value), default=exact_number)


def exact_number(value: object) -> orjson.Fragment:
    """Returns a number as JSON, with all its digits: the `default` of orjson. Raises TypeError for anything else."""
    if isinstance(value, ExactFloat):
        return orjson.Fragment(repr(value))
    raise TypeError(f"a value of type {type(value).__name__}")


def _with_long_integers(value: Any) -> Any:
    match value:
        case dict():
            written: Any = dict(zip(value, map(_with_long_integers, value.values()), strict=True))
            return value if all(map(is_, written.values(), value.values())) else written
        case list():
            written = [*map(_with_long_integers, value)]
            return value if all(map(is_, written, value)) else written
        case int() if value.bit_length() > 63:
            return orjson.Fragment(str(value))
    return value
