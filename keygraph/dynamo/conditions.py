"""Conditions on an item: DynamoDB's comparisons and functions as values, joined by And, Or and Not.

A condition can be written as DynamoDB's expression (`keygraph.dynamo.expressions`) or evaluated here, with the same
result. A comparison between different types is false. A comparison with a missing attribute is false too, except that a
missing attribute is unequal to everything.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import Any, TypeAlias

from keygraph.dynamo.items import Scalar, Value

Path: TypeAlias = tuple[str, ...]
"""The names from an attribute inward through maps: `("data", "version")`."""


class _SentValue:
    """A condition that may be sent many times: most conditions of writes are made once for a type."""

    __slots__ = ("expression",)
    expression: Mapping[str, Any]
    """The result of `keygraph.dynamo.expressions`, once it is made."""


@dataclass(frozen=True, slots=True)
class _Compared(_SentValue):
    path: Path
    value: Value

    def __hash__(self) -> int:
        try:
            return hash((self.path, self.value))
        except TypeError:
            # A list or a map. Equal ones may be in another order.
            return hash(self.path)


class Eq(_Compared): ...


class Ne(_Compared): ...


class Lt(_Compared): ...


class Le(_Compared): ...


class Gt(_Compared): ...


class Ge(_Compared): ...


@dataclass(frozen=True, slots=True)
class Between(_SentValue):
    """Both bounds are included."""

    path: Path
    low: Scalar
    high: Scalar


@dataclass(frozen=True, slots=True)
class In(_SentValue):
    """DynamoDB allows 100 values; a longer list is written as several INs joined by OR."""

    path: Path
    values: tuple[Value, ...]


@dataclass(frozen=True, slots=True)
class BeginsWith(_SentValue):
    path: Path
    prefix: str | bytes


class Contains(_Compared):
    """A substring of text or bytes, or a member of a list or set."""


@dataclass(frozen=True, slots=True)
class Exists(_SentValue):
    path: Path


@dataclass(frozen=True, slots=True)
class And(_SentValue):
    conditions: tuple[Condition, ...]


@dataclass(frozen=True, slots=True)
class Or(_SentValue):
    conditions: tuple[Condition, ...]


@dataclass(frozen=True, slots=True)
class Not(_SentValue):
    condition: Condition


Comparison: TypeAlias = Eq | Ne | Lt | Le | Gt | Ge | Between | In | BeginsWith | Contains | Exists
Condition: TypeAlias = Comparison | And | Or | Not

_MISSING = object()
_ORDERS: dict[type, Callable[[Any, Any], bool]] = {
    Lt: operator.lt,
    Le: operator.le,
    Gt: operator.gt,
    Ge: operator.ge,
}


def at_path(item: Mapping[str, Value], path: Path, missing: object = None) -> object:
    """Returns the value at the path, or `missing` if the item has none."""
    if len(path) == 1:
        # Called for every attribute that is written, most of which are not inside a map.
        return item.get(path[0], missing)
    value: object = item
    for name in path:
        if not isinstance(value, Mapping) or name not in value:
            return missing
        value = value[name]
    return value


def put_at_path(item: dict[str, Value], path: Path, value: Value) -> None:
    """Puts a value at the path. Maps on the way are copied: they may be another item's."""
    name = path[0]
    if len(path) == 1:
        item[name] = value
        return
    there = item.get(name)
    below = dict(there) if isinstance(there, dict) else {}
    put_at_path(below, path[1:], value)
    item[name] = below


def item_with(path: Path, value: Value) -> dict[str, Value]:
    """Returns an item that has only this value."""
    item: dict[str, Value] = {}
    put_at_path(item, path, value)
    return item


def with_comparisons(condition: Condition, replaced: Callable[[Comparison], Condition]) -> Condition:
    """Returns the condition with each of its comparisons replaced."""
    match condition:
        case And(conditions):
            return And(tuple(with_comparisons(each, replaced) for each in conditions))
        case Or(conditions):
            return Or(tuple(with_comparisons(each, replaced) for each in conditions))
        case Not(inner):
            return Not(with_comparisons(inner, replaced))
    return replaced(condition)


def paths_of(condition: Condition) -> list[Path]:
    """Returns the paths that the condition uses."""
    match condition:
        case And(conditions) | Or(conditions):
            return [path for inner in conditions for path in paths_of(inner)]
        case Not(inner):
            return paths_of(inner)
    return [condition.path]


def outermost(paths: Iterable[Path]) -> list[Path]:
    """Returns the paths without duplicates and without those inside another one."""
    asked = dict.fromkeys(paths)
    return [path for path in asked if not any(path[:i] in asked for i in range(1, len(path)))]


def holds(condition: Condition, item: Mapping[str, Value]) -> bool:
    """Returns whether the condition is true for the item, as DynamoDB would decide it."""
    match condition:
        case And(conditions):
            return all(holds(inner, item) for inner in conditions)
        case Or(conditions):
            return any(holds(inner, item) for inner in conditions)
        case Not(inner):
            return not holds(inner, item)
    value = at_path(item, condition.path, _MISSING)
    match condition:
        case Exists():
            return value is not _MISSING
        case Ne(_, other):
            return not _equal(value, other)
        case Eq(_, other):
            return _equal(value, other)
        case In(_, values):
            return any(_equal(value, other) for other in values)
        case Lt(_, other) | Le(_, other) | Gt(_, other) | Ge(_, other):
            return _ordered(value, other) and _ORDERS[type(condition)](value, other)
        case Between(_, low, high):
            return _ordered(value, low) and low <= value <= high  # type: ignore[operator]  # one ordered type
        case BeginsWith(_, prefix):
            return _equal(value[: len(prefix)], prefix) if isinstance(value, str | bytes) else False
        case Contains(_, other):
            return _contains(value, other)


def conjunction(*conditions: Condition | None) -> Condition | None:
    """Returns the condition that all given conditions hold; None if there are none."""
    return _joined(And, conditions)


def disjunction(*conditions: Condition | None) -> Condition | None:
    """Returns the condition that one of the given conditions holds; None if there are none."""
    return _joined(Or, conditions)


def _joined(join: type[And] | type[Or], conditions: Sequence[Condition | None]) -> Condition | None:
    parts = tuple(part for part in conditions if part is not None)
    return join(parts) if len(parts) > 1 else parts[0] if parts else None


def _equal(value: object, other: object) -> bool:
    return type(value) is type(other) and value == other


def _ordered(value: object, other: object) -> bool:
    return type(value) is type(other) and isinstance(value, str | Decimal | bytes)


def _contains(value: object, other: object) -> bool:
    match value:
        case str() | bytes():
            return type(value) is type(other) and other in value  # type: ignore[operator]  # one type
        case list() | frozenset():
            return any(_equal(member, other) for member in value)
    return False
