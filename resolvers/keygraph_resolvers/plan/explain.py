"""Explains an operation before it runs: its steps with the request of each, and its bound.

Required variables without a value get stand-ins, so that a plan can be read without knowing a value.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from graphql import (
    GraphQLEnumType,
    GraphQLInputObjectType,
    GraphQLList,
    GraphQLNonNull,
    GraphQLScalarType,
    GraphQLSchema,
    OperationDefinitionNode,
    type_from_ast,
)

from keygraph_resolvers.plan.bound import Bound
from keygraph_resolvers.plan.plan import Plan
from keygraph_resolvers.read.run import Run
from keygraph_resolvers.steps.explained import Explained, View, Where


@dataclass(frozen=True)
class Explanation:
    """The reads and writes of an operation."""

    steps: Sequence[Explained]
    bound: Bound
    stand_ins: Mapping[str, Any]
    """The stand-ins for variables without a value."""
    elsewhere: Sequence[str]
    """The root fields that graphql-core executes itself: they have no steps, and no bound."""
    refusal: str | None = None
    """Why the service would refuse it."""


def explain_plan(plan: Plan, run: Run, stand_ins: Mapping[str, Any]) -> Explanation:
    """Explains the reads and writes of a run of a plan. Nothing is sent."""
    view = View(run, plan.needed, stand_ins.values())
    steps: list[Explained] = []
    for step in plan.roots:
        # Mutations run one after the other, each with its payload.
        start = 1 + _last_round_trip(steps) if plan.is_mutation else 1
        steps += step.explained(view, Where("", "", start))
    return Explanation(steps, Bound(plan, run), stand_ins, plan.elsewhere)


def _last_round_trip(steps: Sequence[Explained]) -> int:
    return max((max(each.where.round_trip, _last_round_trip(each.steps)) for each in steps), default=0)


_CANDIDATES = ("2024-01-01T00:00:00Z", "2024-01-01", "1", 1, True)
"""Values to try for a scalar that does not accept any text."""


def stand_ins(
    schema: GraphQLSchema, operation: OperationDefinitionNode, given: Mapping[str, Any]
) -> dict[str, Any]:
    """Returns a value for each required variable without one. A text is the variable's own name, such as `$user`."""
    found = {}
    for each in operation.variable_definitions or ():
        name, type_ = each.variable.name.value, type_from_ast(schema, each.type)
        is_needed = isinstance(type_, GraphQLNonNull) and each.default_value is None
        if is_needed and given.get(name) is None:
            found[name] = _value(type_, f"${name}")
    return found


def _value(type_: Any, name: str) -> Any:
    match type_:
        case GraphQLNonNull():
            return _value(type_.of_type, name)
        case GraphQLList():
            return [_value(type_.of_type, name)]
        case GraphQLEnumType():
            return next(iter(type_.values))
        case GraphQLInputObjectType():
            return {
                field_name: _value(field.type, f"{name}.{field_name}")
                for field_name, field in type_.fields.items()
                if isinstance(field.type, GraphQLNonNull)
            }
        case GraphQLScalarType(name="Int"):
            return 10
        case GraphQLScalarType():
            for candidate in (name, *_CANDIDATES):
                try:
                    type_.parse_value(candidate)
                except Exception:  # a scalar says no in its own way
                    continue
                return candidate
    return None
