"""The condition that an item must meet before changes, so that a given condition holds afterwards.

If the changes alone decide a part of the condition, that part is removed. This turns a condition on the future item
into one on the existing item, and no other write can come in between.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from decimal import Decimal
from typing import Any, cast

from keygraph.dynamo.actions import AddMembers, AddNumber, Append, AttributeChange, Remove, SetTo
from keygraph.dynamo.conditions import (
    And,
    Between,
    Comparison,
    Condition,
    Contains,
    Exists,
    In,
    Ne,
    Not,
    Or,
    Path,
    holds,
    item_with,
    with_comparisons,
)
from keygraph.dynamo.items import Value, exact_sum

ALWAYS: Condition = And(())
NEVER: Condition = Or(())


def before(condition: Condition, changes: Sequence[AttributeChange]) -> Condition:
    """Returns the condition that an item has to meet before the changes. Raises ValueError if no condition can express
    it: for a set to which members are added, or from which several are removed, only what it contains can be known."""
    by_name = dict[str, list[AttributeChange]]()
    for change in changes:
        by_name.setdefault(change.path[0], []).append(change)
    return with_comparisons(condition, lambda each: _of_comparison(each, by_name.get(each.path[0], ())))


def _of_comparison(condition: Comparison, changes: Sequence[AttributeChange]) -> Condition:
    for change in changes:
        size = len(change.path)
        if condition.path[:size] == change.path:
            return _before(condition, change)
        if change.path[: len(condition.path)] == condition.path and isinstance(change, SetTo):
            return _decided(isinstance(condition, Exists) or None, condition)
    return condition


def _decided(outcome: bool | None, otherwise: Condition) -> Condition:
    return otherwise if outcome is None else ALWAYS if outcome else NEVER


def _before(condition: Comparison, change: AttributeChange) -> Condition:
    match change:
        case SetTo(path, value):
            return _decided(_holds_of(condition, path, value), condition)
        case Remove():
            return _decided(holds(condition, {}), condition)
        case AddNumber(path, amount):
            if isinstance(condition, Exists):
                return ALWAYS
            new = _decided(_holds_of(condition, path, amount), condition)
            there = Exists(path)
            return Or((And((there, _shifted(condition, amount))), And((Not(there), new))))
        case Append(path, values):
            return _with_members(condition, path, list(values))
        case AddMembers(path, members):
            return _with_members(condition, path, cast(Value, members))
    if isinstance(condition, Exists) and len(change.members) == 1:
        return And((condition, Ne(change.path, change.members)))
    if not isinstance(condition, Contains):
        raise _untold(condition)
    is_removed = _holds_of(condition, change.path, cast(Value, change.members))
    return NEVER if is_removed else condition


def _with_members(condition: Comparison, path: Path, added: Value) -> Condition:
    """Returns the condition for a set or a list to which `added` is added."""
    if isinstance(condition, Contains):
        return ALWAYS if _holds_of(condition, path, added) else condition
    if isinstance(condition, Exists) or getattr(condition, "value", added) is None:
        return _decided(_holds_of(condition, path, added), condition)
    raise _untold(condition)


def _untold(condition: Comparison) -> ValueError:
    return ValueError(f"{type(condition).__name__} of {'.'.join(condition.path)}")


def _holds_of(condition: Condition, path: Path, value: Value) -> bool:
    return holds(condition, item_with(path, value))


def _shifted(condition: Comparison, amount: Decimal) -> Condition:
    """Returns the comparison for a number that is smaller by `amount`."""

    def less(value: Any) -> Any:
        return exact_sum((value, amount.copy_negate())) if isinstance(value, Decimal) else value

    match condition:
        case Between(path, low, high):
            return Between(path, less(low), less(high))
        case In(path, values):
            return In(path, tuple(map(less, values)))
        case Exists():
            return condition
    told: Any = condition
    return cast(Condition, replace(told, value=less(told.value))) if hasattr(told, "value") else condition
