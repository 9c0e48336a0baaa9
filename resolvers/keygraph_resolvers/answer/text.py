"""Numbers in the JSON of an answer that orjson does not write."""

from __future__ import annotations

from typing import Any

import orjson

from keygraph.dynamo.items import ExactFloat


def as_long_json(value: Any) -> bytes:
    """Returns the JSON of values with integers of more than 64 bits, which a table can hold, and orjson refuses. It copies
    the values, and takes ten times as long."""
    return orjson.dumps(_with_long_integers(value), default=exact_number)


def exact_number(value: object) -> orjson.Fragment:
    """Returns a number as JSON, with all its digits: the `default` of orjson. Raises TypeError for anything else."""
    if isinstance(value, ExactFloat):
        return orjson.Fragment(repr(value))
    raise TypeError(f"a value of type {type(value).__name__}")


def _with_long_integers(value: Any) -> Any:
    match value:
        case dict():
            return {name: _with_long_integers(inner) for name, inner in value.items()}
        case list():
            return [_with_long_integers(inner) for inner in value]
        case int() if not isinstance(value, bool):
            return orjson.Fragment(str(value))
    return value
