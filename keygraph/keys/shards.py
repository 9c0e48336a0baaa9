"""Shards: the values of the placeholder `{shard}` in a partition template."""

from __future__ import annotations

from collections.abc import Sequence
from enum import Enum
from functools import cache
from typing import Any, TypeAlias, cast

from keygraph.dynamo.table import Shards
from keygraph.keys.types import FieldType

Shard: TypeAlias = int | Enum
"""One shard: its number, or its name as the only value of an enum's member."""


def are_shards(given: object) -> bool:
    """Returns whether `shards=` takes it: at least one shard, without duplicates."""
    match given:
        case bool():
            return False
        case int():
            return given > 0
        case range():
            return len(given) > 0 and min(given) >= 0
        case list() | tuple():
            names = {each for each in given if isinstance(each, str) and each}
            return len(names) == len(given) > 0
    return False


def shards_of(given: Shards | None) -> tuple[Shard, ...]:
    """Returns the declared shards; none if the declaration is invalid."""
    match given:
        case None:
            return ()
        case _ if not are_shards(given):
            return ()
        case int():
            return tuple(range(given))
        case range():
            return tuple(given)
    return _named(tuple(given))


def shard_type(given: Shards | None) -> FieldType:
    """Returns the type of a placeholder for these shards."""
    named = next((each for each in shards_of(given) if isinstance(each, Enum)), None)
    return FieldType("int") if named is None else FieldType("enum", python=type(named))


@cache
def _named(names: tuple[str, ...]) -> tuple[Enum, ...]:
    # Equal shards share one enum, so that templates with them are equal.
    return tuple(cast(Any, Enum)("shard", {f"shard_{number}": name for number, name in enumerate(names)}))


def shards_in_words(shards: Sequence[Shard]) -> str:
    """Returns the shards in words: `0 to 3`, or their names."""
    names = [str(each.value if isinstance(each, Enum) else each) for each in shards]
    first, last = shards[0], shards[-1]
    is_run = isinstance(first, int) and isinstance(last, int) and last - first == len(shards) - 1 > 0
    return f"{names[0]} to {names[-1]}" if is_run else ", ".join(names)
