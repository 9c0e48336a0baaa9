"""The errors of operations that are too large, with the numbers that a client needs to make them smaller."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from graphql import GraphQLError

from keygraph_resolvers.errors import public_error
from keygraph_resolvers.plan.charges import MOST
from keygraph_resolvers.plan.cost import CostEstimate
from keygraph_resolvers.plan.cost_report import shown_estimate, spent, spent_by_place
from keygraph_resolvers.read.meter import CostExceeded, Sent


def refused_error(estimate: CostEstimate, limit: float) -> dict[str, Any]:
    """Of an operation whose estimate is above the limit, so that nothing was read for it."""
    path, units = estimate.dearest
    total = estimate.total
    message = (
        f"This operation is estimated to cost {_number(total.read_units)} read units, and the limit is {_number(limit)}. "
        f"Most of it, {_number(units)}, is for {path}: ask for smaller pages there or around it."
    )
    numbers = {
        "estimate": shown_estimate(total),
        "limit": limit,
        "dearest": {"path": path, "readUnits": round(units, 1)},
    }
    return public_error(GraphQLError(message, extensions=numbers), code=CostExceeded.code)


def exceeded_error(sent: Sequence[Sent], limit: float) -> dict[str, Any]:
    """Of an operation that has cost more than the limit while it ran."""
    actual = spent(sent).shown
    places = spent_by_place(sent)
    path = max(places, key=lambda place: places[place].read_units, default="")
    units = places[path].read_units if path in places else 0.0
    message = (
        f"This operation has cost {_number(actual['readUnits'])} read units, and the limit is {_number(limit)}: "
        f"it was stopped. Most of it, {_number(units)}, was for {path}: ask for smaller pages there or around it."
    )
    numbers = {
        "actual": actual,
        "limit": limit,
        "dearest": {"path": path, "readUnits": round(units, 1)},
    }
    return public_error(GraphQLError(message, extensions=numbers), code=CostExceeded.code)


def depth_error(depth: int, limit: int) -> dict[str, Any]:
    """Of an operation with too many fields one inside the other."""
    message = (
        f"This operation has {depth:,} fields one inside the other, and the limit is {limit:,}: "
        "ask for it in several operations."
    )
    return public_error(
        GraphQLError(message, extensions={"depth": depth, "limit": limit}), code="DEPTH_LIMIT"
    )


def _number(value: float) -> str:
    if value >= MOST:
        return f"more than {MOST:,}"
    return f"{value:,.1f}".removesuffix(".0")
