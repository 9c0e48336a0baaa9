"""Conditions, key ranges and updates as the text of DynamoDB's expressions.

Names and values are always placeholders (`#n0` for a name, `:v0` for a value), so reserved words and punctuation need
no care. The grammar: "Expressions" in the DynamoDB developer guide.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Any

from keygraph.dynamo import actions, conditions
from keygraph.dynamo.items import TypedValue, Value, to_typed
from keygraph.dynamo.limits import EXPRESSION_BYTES, EXPRESSION_OPERATORS, IN_VALUES
from keygraph.dynamo.rules import (
    refuse_crossed_bounds,
    refuse_deep_path,
    refuse_prefix,
    refuse_unordered,
)
from keygraph.dynamo.store import Above, AtLeast, AtMost, Below, Count, Equals, Prefix, Query, Within
from keygraph.dynamo.table import Index, Table
from keygraph.errors import BadUserInput

_OPERATORS: dict[type, str] = {
    conditions.Eq: "=",
    conditions.Ne: "<>",
    conditions.Lt: "<",
    conditions.Le: "<=",
    conditions.Gt: ">",
    conditions.Ge: ">=",
}
_OF_RANGES: dict[type, Callable[[conditions.Path, Any], conditions.Comparison]] = {
    Equals: conditions.Eq,
    Below: conditions.Lt,
    AtMost: conditions.Le,
    Above: conditions.Gt,
    AtLeast: conditions.Ge,
    Prefix: conditions.BeginsWith,
}


@dataclass(slots=True)
class Placeholders:
    """The placeholders of one request: one for each name, and one for each use of a value."""

    names: dict[str, str] = field(default_factory=dict)
    values: dict[str, TypedValue] = field(default_factory=dict)

    def path(self, path: conditions.Path) -> str:
        """Returns the path in an expression: `#n0.#n1`. Raises BadUserInput for one that is too deep for DynamoDB."""
        refuse_deep_path(path)
        return ".".join(self.names.setdefault(name, f"#n{len(self.names)}") for name in path)

    def value(self, value: Value) -> str:
        """Returns the placeholder of the value. Raises ValueError for a value that DynamoDB cannot hold."""
        placeholder = f":v{len(self.values)}"
        self.values[placeholder] = to_typed(value)
        return placeholder

    def attributes(self) -> dict[str, Any]:
        """Returns the parts of the request that define the placeholders; DynamoDB refuses empty ones."""
        attributes: dict[str, Any] = {}
        if self.names:
            attributes["ExpressionAttributeNames"] = {short: name for name, short in self.names.items()}
        if self.values:
            attributes["ExpressionAttributeValues"] = self.values
        return attributes


# --- Conditions ---------------------------------------------------------------------------------------


def simplified(condition: conditions.Condition) -> conditions.Condition | bool:
    """Returns the condition without the parts that are always true or always false; a bool if nothing else is left.

    DynamoDB has no constants and refuses an empty AND, OR or IN. Raises BadUserInput for bounds that are crossed or
    have two types, and for an operand that has no order or cannot be a prefix.
    """
    match condition:
        case conditions.And(several):
            return _joined(several, conditions.And)
        case conditions.Or(several):
            return _joined(several, conditions.Or)
        case conditions.Not(inner):
            plain = simplified(inner)
            return not plain if isinstance(plain, bool) else conditions.Not(plain)
        case conditions.In(_, values) if not values:
            return False
        case conditions.In(path, values) if len(values) > IN_VALUES:
            return conditions.Or(
                tuple(
                    conditions.In(path, values[i : i + IN_VALUES]) for i in range(0, len(values), IN_VALUES)
                )
            )
        case conditions.Between(_, low, high):
            refuse_unordered(low)
            refuse_unordered(high)
            refuse_crossed_bounds(low, high)
        case (
            conditions.Lt(_, value)
            | conditions.Le(_, value)
            | conditions.Gt(_, value)
            | conditions.Ge(_, value)
        ):
            refuse_unordered(value)
        case conditions.BeginsWith(_, prefix):
            refuse_prefix(prefix)
    return condition


def _joined(
    several: Iterable[conditions.Condition], join: type[conditions.And] | type[conditions.Or]
) -> conditions.Condition | bool:
    neutral = join is conditions.And
    parts: list[conditions.Condition] = []
    for part in map(simplified, several):
        if isinstance(part, bool):
            if part is not neutral:
                return part
        elif isinstance(part, join):
            parts.extend(part.conditions)
        else:
            parts.append(part)
    if not parts:
        return neutral
    return parts[0] if len(parts) == 1 else join(tuple(parts))


def filter_text(condition: conditions.Condition, placeholders: Placeholders, name: str = "filter") -> str:
    """Returns the expression of a simplified condition that is a filter, or what `name` says.

    Raises BadUserInput for one that is too long for DynamoDB, or compares with a value that DynamoDB cannot hold.
    """
    try:
        text = condition_text(condition, placeholders)
    except ValueError as error:
        raise BadUserInput(f"The {name} compares with {error}.") from None
    if len(text) > EXPRESSION_BYTES or _operations(condition) > EXPRESSION_OPERATORS:
        raise BadUserInput(f"The {name} has too many conditions or values for one request to DynamoDB.")
    return text


def condition_parameters(condition: conditions.Condition) -> Mapping[str, Any] | bool:
    """Returns the parameters of a write with only this condition; a bool if it always or never holds.

    They are made once and kept with the condition. Raises as `filter_text` does.
    """
    try:
        return condition.expression
    except AttributeError:
        plain = simplified(condition)
    if isinstance(plain, bool):
        return plain
    placeholders = Placeholders()
    made = conditional(filter_text(plain, placeholders, "condition")) | placeholders.attributes()
    object.__setattr__(condition, "expression", made)
    return made


def conditional(text: str) -> dict[str, Any]:
    """Returns the parameters of a write's condition. If it does not hold, the answer contains the existing item."""
    return {"ConditionExpression": text, "ReturnValuesOnConditionCheckFailure": "ALL_OLD"}


def _operations(condition: conditions.Condition) -> int:
    match condition:
        case conditions.And(several) | conditions.Or(several):
            return len(several) - 1 + sum(map(_operations, several))
        case conditions.Not(inner):
            return 1 + _operations(inner)
    return 1


def condition_text(condition: conditions.Condition, placeholders: Placeholders) -> str:
    """Returns the expression of a simplified condition, without redundant parentheses, which DynamoDB refuses."""
    match condition:
        case conditions.And(several):
            return " AND ".join(_part_text(part, placeholders) for part in several)
        case conditions.Or(several):
            return " OR ".join(_part_text(part, placeholders) for part in several)
        case conditions.Not(inner):
            return f"NOT {_part_text(inner, placeholders)}"
    return _comparison_text(condition, placeholders)


def _part_text(condition: conditions.Condition, placeholders: Placeholders) -> str:
    text = condition_text(condition, placeholders)
    return f"({text})" if isinstance(condition, conditions.And | conditions.Or | conditions.Not) else text


def _comparison_text(condition: conditions.Comparison, placeholders: Placeholders) -> str:
    path, value = placeholders.path(condition.path), placeholders.value
    match condition:
        case conditions.Between(_, low, high):
            return f"{path} BETWEEN {value(low)} AND {value(high)}"
        case conditions.In(_, values):
            return f"{path} IN ({', '.join(value(each) for each in values)})"
        case conditions.BeginsWith(_, prefix):
            return f"begins_with({path}, {value(prefix)})"
        case conditions.Contains(_, part):
            return f"contains({path}, {value(part)})"
        case conditions.Exists():
            return f"attribute_exists({path})"
        case _:
            return f"{path} {_OPERATORS[type(condition)]} {value(condition.value)}"


# --- Keys ---------------------------------------------------------------------------------------------


def key_text(request: Query | Count, keyed: Table | Index, placeholders: Placeholders) -> str:
    """Returns the condition on the keys of the table or index that is read."""
    text = f"{placeholders.path((keyed.partition.name,))} = {placeholders.value(request.partition)}"
    range_ = request.range
    if range_ is None or keyed.sort is None:
        return text
    path = (keyed.sort.name,)
    if isinstance(range_, Within):
        on_sort: conditions.Comparison = conditions.Between(path, range_.low, range_.high)
    else:
        on_sort = _OF_RANGES[type(range_)](path, range_.value)
    return f"{text} AND {_comparison_text(on_sort, placeholders)}"


# --- Changes ------------------------------------------------------------------------------------------


def changes_text(changes: Iterable[actions.AttributeChange], placeholders: Placeholders) -> str:
    """Returns the update expression of the changes. Raises BadUserInput for one that is too long for DynamoDB."""
    clauses: dict[str, list[str]] = {}
    for change in changes:
        clause, text = _change_text(change, placeholders)
        clauses.setdefault(clause, []).append(text)
    text = " ".join(f"{clause} {', '.join(parts)}" for clause, parts in clauses.items())
    if len(text) > EXPRESSION_BYTES:
        raise BadUserInput("The update has too many changes for one request to DynamoDB.")
    return text


def _change_text(change: actions.AttributeChange, placeholders: Placeholders) -> tuple[str, str]:
    """Returns the clause of the change, and its part of that clause."""
    path, value = placeholders.path(change.path), placeholders.value
    match change:
        case actions.SetTo(_, set_to):
            return "SET", f"{path} = {value(set_to)}"
        case actions.Remove():
            return "REMOVE", path
        case actions.AddNumber(_, amount):
            return "SET", f"{path} = if_not_exists({path}, {value(Decimal(0))}) + {value(amount)}"
        case actions.AddMembers(_, members):
            return "ADD", f"{path} {value(members)}"
        case actions.RemoveMembers(_, members):
            return "DELETE", f"{path} {value(members)}"
        case actions.Append(_, values):
            return "SET", f"{path} = list_append(if_not_exists({path}, {value([])}), {value(list(values))})"
