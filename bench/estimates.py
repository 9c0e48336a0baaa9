"""What operations were estimated to cost, and what they then cost: the second table of `docs/plan.md`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from statistics import median
from typing import Any

from bench.operations import OPERATIONS, Operation
from bench.worlds import World
from keygraph.dynamo.store import Store
from keygraph_resolvers import Service, build_schema

WANTED = 1.5
"""Read units are to be estimated within this factor, up or down."""


@dataclass(frozen=True)
class Estimated:
    """An operation with `extensions.cost` of its answer."""

    operation: Operation
    cost: Any

    @property
    def is_above(self) -> bool:
        """Whether it cost more requests or round trips than it was estimated to at most."""
        return any(
            self.cost["actual"][name] > self.cost["estimate"][name] for name in ("requests", "roundTrips")
        )

    @property
    def ratio(self) -> float:
        """The read units of the estimate for each that was paid."""
        return float(self.cost["estimate"]["readUnits"] / self.cost["actual"]["readUnits"])

    @property
    def error(self) -> float:
        """By which factor the read units differ."""
        return max(self.ratio, 1 / self.ratio)

    @property
    def cells(self) -> tuple[str, ...]:
        """The row as the page shows it."""
        estimate, actual = self.cost["estimate"], self.cost["actual"]
        counts = (f"{told[name]:,}" for name in ("requests", "roundTrips") for told in (actual, estimate))
        units = (f"{told['readUnits']:,.1f}" for told in (actual, estimate))
        return (self.operation.name, *counts, *units, f"{self.ratio:.2f}")


async def estimated(store: Store, world: World) -> list[Estimated]:
    """The operations of a world, each asked twice of one service: the first time is what its statistics learn from."""
    service = Service(build_schema(world.graph.check()), store, secret=b"of a measurement")
    operations = [each for each in OPERATIONS if each.world == world.name]
    for each in operations:
        await service.execute(each.document, each.variables)
    found = []
    for each in operations:
        answer = await service.execute(each.document, each.variables, with_cost=True)
        found.append(Estimated(each, answer["extensions"]["cost"]))
    return found


def wrong(rows: Sequence[Estimated]) -> list[str]:
    """What cost more than was estimated at most, and what is far off without a note why."""
    return [
        f"{row.operation.name}: {' | '.join(row.cells[1:])}"
        for row in rows
        if row.is_above or (row.error > WANTED and not row.operation.estimate_note)
    ]


def table_text(rows: Sequence[Estimated]) -> str:
    """The rows as a table, with the outliers and why they are some."""
    far = [row for row in rows if row.error > WANTED]
    lines = [
        "| operation | requests | at most | round trips | at most | read units | estimate | ratio |",
        "| --- | ---: | ---: | ---: | ---: | ---: | ---: | ---: |",
        *(f"| {' | '.join(row.cells)} |" for row in rows),
        "",
        f"None of {len(rows)} operations took more requests or round trips than estimated. The median factor between "
        f"estimated and actual read units is {median(row.error for row in rows):.2f}; {len(far)} are further off "
        f"than {WANTED}:",
        "",
        *(f"- *{row.operation.name}* ({row.ratio:.2f}): {row.operation.estimate_note}" for row in far),
    ]
    return "".join(f"{line}\n" for line in lines)
