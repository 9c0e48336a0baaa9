"""Writes of single items as values: put, update, delete and check, each with the condition that it needs.

An action can be written as DynamoDB's expressions (`keygraph.dynamo.expressions`) or applied here (`outcome`), with the
same effect. The rules: "Update expressions" and "TransactWriteItems" in the DynamoDB developer guide and API reference.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Any, NoReturn, TypeAlias, cast

import orjson

from keygraph.dynamo.conditions import Condition, Path, at_path, holds
from keygraph.dynamo.items import Item, Scalar, Value, exact_sum, number, number_text
from keygraph.dynamo.limits import NUMBER_DIGITS
from keygraph.dynamo.table import Key, Table
from keygraph.dynamo.value import value
from keygraph.errors import BadUserInput, ConditionFailed

_MISSING = object()
UNFIT_SUM = f"The sum has more than {NUMBER_DIGITS} digits, or is outside the range of DynamoDB's numbers."

# --- Changes ------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class SetTo:
    """Gives the attribute this value. Inside a map, the map must be there."""

    path: Path
    value: Value


@dataclass(frozen=True, slots=True)
class Remove:
    """Removes the attribute, if it is there."""

    path: Path


@dataclass(frozen=True, slots=True)
class AddNumber:
    """Adds to a number; a missing one is 0."""

    path: Path
    amount: Decimal


@dataclass(frozen=True, slots=True)
class AddMembers:
    """Adds members to a set; a missing one is empty. It cannot change a set inside a map."""

    path: Path
    members: frozenset[Scalar]


@dataclass(frozen=True, slots=True)
class RemoveMembers:
    """Removes members from a set; a set without members is removed. It cannot change a set inside a map."""

    path: Path
    members: frozenset[Scalar]


@dataclass(frozen=True, slots=True)
class Append:
    """Appends to a list; a missing one is empty."""

    path: Path
    values: tuple[Value, ...]


AttributeChange: TypeAlias = SetTo | Remove | AddNumber | AddMembers | RemoveMembers | Append

# --- Actions ------------------------------------------------------------------------------------------


@value(frozen=True, slots=True)
class PutItem:
    """Writes a whole item, replacing one with the same key."""

    item: Item
    condition: Condition | None = None
    size: int | None = field(default=None, compare=False, kw_only=True)
    """The item's size, if `WriteRules.check` found nothing wrong with it."""


@value(frozen=True, slots=True)
class UpdateItem:
    """Changes some attributes of an item; creates it if there is none. No two changes may have the same path."""

    key: Key
    changes: tuple[AttributeChange, ...]
    condition: Condition | None = None


@value(frozen=True, slots=True)
class DeleteItem:
    """Deletes an item. Does nothing if there is none."""

    key: Key
    condition: Condition | None = None


@value(frozen=True, slots=True)
class CheckItem:
    """Changes nothing: the transaction is canceled unless the condition holds."""

    key: Key
    condition: Condition


Action: TypeAlias = PutItem | UpdateItem | DeleteItem | CheckItem


def key_of(action: Action, table: Table) -> Key:
    """Returns the table key of the action's item. Raises BadUserInput for an item that lacks one."""
    if not isinstance(action, PutItem):
        return action.key
    try:
        return table.key_of(action.item)
    except KeyError as error:
        raise BadUserInput(f"The item lacks the key {error.args[0]}.") from None


# --- What an action does --------------------------------------------------------------------------------


def outcome(action: Action, old: Item | None, table: Table) -> Item | None:
    """Returns the item after an action on the existing item; None for none.

    Raises ConditionFailed, and BadUserInput for a change that does not fit the item.
    """
    if action.condition is not None and not holds(action.condition, old or {}):
        raise ConditionFailed(old)
    match action:
        case PutItem(item):
            return item
        case DeleteItem():
            return None
        case CheckItem():
            return old
        case UpdateItem(key, changes):
            own = table.attributes_of(key)
            refuse_changes(changes, [*own])
            return changed(old or own, changes)


def refuse_changes(changes: Sequence[AttributeChange], keys: Sequence[str]) -> None:
    """Refuses changes of the table's keys, two with the same path or inside each other, and of a set inside a map."""
    paths = [change.path for change in changes]
    for number_, path in enumerate(paths):
        if path[0] in keys:
            raise BadUserInput(f"An update cannot change {path[0]}, which is a key of the table.")
        for other in paths[:number_]:
            shorter = min(len(path), len(other))
            if path[:shorter] == other[:shorter]:
                raise BadUserInput(f"An update changes {'.'.join(path)} twice.")
    for change in changes:
        if isinstance(change, AddMembers | RemoveMembers) and len(change.path) > 1:
            raise BadUserInput(f"An update cannot change the set {'.'.join(change.path)} inside a map.")


def changed(item: Item, changes: Sequence[AttributeChange]) -> Item:
    """Returns a copy of the item with the changes made; all of them see the item as it was.

    Raises BadUserInput where the existing value has another type.
    """
    new = dict(item)
    for change in changes:
        value = at_path(item, change.path, _MISSING)
        match change:
            case SetTo(path, set_to):
                _put(new, path, set_to)
            case Remove(path):
                _drop(new, path)
            case AddNumber(path, amount):
                _put(new, path, _sum(_expected(value, Decimal, path, Decimal(0)), amount))
            case AddMembers(path, members):
                _put(new, path, _members(value, path, members) | members)
            case RemoveMembers(path, members):
                left = _members(value, path, members) - members
                if left:
                    _put(new, path, left)
                else:
                    _drop(new, path)
            case Append(path, values):
                _put(new, path, [*_expected(value, list, path, []), *values])
    return new


def _sum(value: Decimal, amount: Decimal) -> Decimal:
    try:
        return number(exact_sum((value, amount)))
    except ValueError:
        raise BadUserInput(UNFIT_SUM) from None


def _members(value: object, path: Path, others: frozenset[Scalar]) -> frozenset[Scalar]:
    """Returns the members of a set, which must have the type of the others."""
    found: frozenset[Scalar] = _expected(value, frozenset, path, frozenset())
    if len({type(member) for member in found | others}) > 1:
        _refuse(path)
    return found


def _expected(value: object, type_: type, path: Path, missing: Any) -> Any:
    """Returns the value, which must have the type; `missing` if there is none."""
    if value is _MISSING:
        return missing
    if type(value) is not type_:
        _refuse(path)
    return value


def _put(item: Item, path: Path, value: Value) -> None:
    _parent(item, path)[path[-1]] = value


def _drop(item: Item, path: Path) -> None:
    _parent(item, path).pop(path[-1], None)


def _parent(item: Item, path: Path) -> dict[str, Value]:
    """Returns the map with the last name of the path; copies maps on the way. Raises BadUserInput if there is none."""
    holder: dict[str, Value] = item
    for name in path[:-1]:
        inner = holder.get(name)
        if not isinstance(inner, dict):
            _refuse(path)
        holder[name] = holder = dict(inner)
    return holder


def _refuse(path: Path) -> NoReturn:
    raise BadUserInput(f"An update cannot change {'.'.join(path)}: the existing value has another type.")


# --- Equal transactions ---------------------------------------------------------------------------------


def fingerprint(actions: Sequence[Action]) -> bytes:
    """Returns the same bytes for equal actions, in every process."""
    option = orjson.OPT_SORT_KEYS | orjson.OPT_PASSTHROUGH_DATACLASS
    return hashlib.sha256(orjson.dumps(actions, _plain, option)).digest()


def _plain(value: Any) -> object:
    """Returns a value for which JSON has no form, behind a name that is no JSON, so that it equals no other value."""
    match value:
        case Decimal():
            return orjson.Fragment(number_text(value))
        case bytes():
            return orjson.Fragment(repr(value))
        case frozenset():
            return [orjson.Fragment("set"), *sorted(cast(Any, value))]
    # The fields of a dataclass, without an item's size, which is no positional argument.
    return [orjson.Fragment(type(value).__name__), *[getattr(value, name) for name in value.__match_args__]]
