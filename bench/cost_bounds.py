"""The bounds of operations and their actual costs: the second table of `docs/plan.md`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from bench.operations import OPERATIONS, Operation
from bench.worlds import World
from keygraph.dynamo.store import Store
from keygraph.limits import NO_LIMITS
from keygraph_resolvers import OperationRequest, Service, build_schema

_FIGURES = ("requests", "roundTrips", "items", "readUnits")


@dataclass(frozen=True)
class Priced:
    """An operation with the `extensions.cost` of its answer."""

    operation: Operation
    cost: Any

    @property
    def is_above(self) -> bool:
        """Whether it cost more than its bound."""
        return any(self.cost["actual"][name] > self.cost["bound"][name] for name in _FIGURES)

    @property
    def cells(self) -> tuple[str, ...]:
        """The row as the page shows it."""
        figures = (self.cost[told][name] for name in _FIGURES for told in ("actual", "bound"))
        return (self.operation.name, *(f"{figure:,.1f}".removesuffix(".0") for figure in figures))


async def priced(store: Store, world: World) -> list[Priced]:
    """The operations of a world with their cost."""
    service = Service(build_schema(world.graph), store, secret=b"of a measurement", limits=NO_LIMITS)
    found = []
    for each in OPERATIONS:
        if each.world == world.name:
            answer = await service.execute(OperationRequest(each.document, each.variables, with_cost=True))
            found.append(Priced(each, answer["extensions"]["cost"]))
    return found


def above(rows: Sequence[Priced]) -> list[str]:
    """Returns the operations that cost more than their bound."""
    return [f"{row.operation.name}: {' | '.join(row.cells[1:])}" for row in rows if row.is_above]


def table_text(rows: Sequence[Priced]) -> str:
    """The rows as a table."""
    heads = ("requests", "round trips", "items", "read units")
    titles = " | ".join(f"{head} | at most" for head in heads)
    lines = [f"| operation | {titles} |", f"| --- |{' ---: |' * 2 * len(heads)}"]
    lines += [f"| {' | '.join(row.cells)} |" for row in rows]
    return "".join(f"{line}\n" for line in lines)
