"""Generates parts of `docs/plan.md`: operations compared with the least cost and with their bounds, and a printed plan.

    python -m bench.plan_tables

runs the operations of `bench.operations` on the embedded engine, and on DynamoDB Local if it was fetched, and writes
the results between the page's markers. It fails and writes nothing if an operation differs from the bound without a
note that says why, or has a note but costs exactly that, or if its meter counts other round trips than those on the
wire, or if it costs more than its own bound.
"""

from __future__ import annotations

import asyncio
import sys
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from bench.bound.bound import Bound, bound
from bench.bound.items import Items
from bench.cost_bounds import Priced, above, priced
from bench.cost_bounds import table_text as cost_text
from bench.measuring import Measured, filled_store, measured
from bench.operations import OPERATIONS, Operation
from bench.pages import with_part
from bench.worlds import World, worlds
from keygraph.dynamo.store import UnreadStore
from keygraph_resolvers import Service, build_schema
from keygraph_resolvers.plan.explained import steps_text
from tests import dynamodb_local
from tests.documents.round_trips import RoundTrips

PAGE = Path(__file__).parents[1] / "docs" / "plan.md"
COMMAND = "python -m bench.plan_tables"
SHOWN = OPERATIONS[1]
"""The operation whose plan the page prints."""


@dataclass(frozen=True)
class Row:
    """An operation, its cost on an engine, and the least that it can cost."""

    operation: Operation
    measured: Measured
    round_trips: int
    """As seen on the wire; the meter must count the same."""
    bound: Bound

    @property
    def is_exact(self) -> bool:
        return (self.measured.requests, self.round_trips) == (self.bound.requests, self.bound.round_trips)

    @property
    def cells(self) -> tuple[str, ...]:
        """The row as the page shows it."""
        pairs = (
            (self.measured.requests, self.bound.requests),
            (self.round_trips, self.bound.round_trips),
        )
        shown = [(f"{actual:,}", f"{least:,}", f"{actual / least:.2f}") for actual, least in pairs]
        return (self.operation.name, *shown[0], *shown[1])


@contextmanager
def engines() -> Iterator[dict[str, str]]:
    """Yields the addresses of the available engines, by their names on the page."""
    with tempfile.TemporaryDirectory() as folder:
        found = {"the embedded engine": f"sqlite:{folder}/plan.db"}
        reason = dynamodb_local.missing()
        if reason is not None:
            print(f"not on DynamoDB Local: {reason}", file=sys.stderr)
            yield found
            return
        with dynamodb_local.running() as url:
            yield {**found, "DynamoDB Local": url}


async def rows_of(url: str, world: World) -> tuple[list[Row], list[Priced]]:
    """Runs a world's operations on the engine at the address. Returns them with the least cost, and with bounds."""
    schema = build_schema(world.graph)
    items = Items(world.graph.table, world.items)
    found = []
    async with filled_store(url, world.graph, world.items) as store:
        for each in OPERATIONS:
            if each.world == world.name:
                wire = RoundTrips(store)
                actual = await measured(schema, wire, each.document, each.variables)
                least = bound(schema, items, each.document, each.variables)
                found.append(Row(each, actual, len(wire.rounds), least))
        return found, await priced(store, world)


def unexplained(rows: Sequence[Row]) -> list[str]:
    """Returns problems with the operations' notes, and with the meter's round trips."""
    found = [
        f"{row.operation.name}: {row.measured.round_trips} round trips by the meter, {row.round_trips} on the wire"
        for row in rows
        if row.measured.round_trips != row.round_trips
    ]
    return found + [
        f"{row.operation.name}: {' | '.join(row.cells[1:])}, and it has {'a' if row.is_exact else 'no'} note"
        for row in rows
        if row.is_exact == bool(row.operation.note)
    ]


def table_text(rows: Sequence[Row]) -> str:
    """Returns the rows as a table, with the reason for each that differs from the bound."""
    lines = [
        "| operation | requests | bound | ratio | round trips | bound | ratio |",
        "| --- | ---: | ---: | ---: | ---: | ---: | ---: |",
        *(f"| {' | '.join(row.cells)} |" for row in rows),
    ]
    exact = sum(row.is_exact for row in rows)
    lines += ["", f"{exact} of {len(rows)} operations cost exactly the bound."]
    noted = [row.operation for row in rows if row.operation.note]
    if noted:
        lines += ["", "Why the others do not:", ""]
        lines += [f"- *{each.name}*: {each.note}" for each in noted]
    return "".join(f"{line}\n" for line in lines)


def tables_text(by_engine: dict[str, list[Row]]) -> str:
    """Returns a table for the engines that agree, and one more for each that does not."""
    alike: dict[tuple[tuple[str, ...], ...], list[str]] = {}
    for engine, rows in by_engine.items():
        alike.setdefault(tuple(row.cells for row in rows), []).append(engine)
    parts = []
    for names in alike.values():
        said = f"On {' and on '.join(names)}{' alike' if len(names) > 1 else ''}, from `{COMMAND}`:"
        parts.append(f"{said}\n\n{table_text(by_engine[names[0]])}")
    return "\n".join(parts)


def plan_text() -> str:
    """Returns the shown operation and its plan, in the page's form."""
    [world] = (each for each in worlds() if each.name == SHOWN.world)
    service = Service(build_schema(world.graph), UnreadStore(world.graph.table), secret=b"nothing is read")
    shown = steps_text(service.explain(SHOWN.document).steps)
    return f"```graphql\n{SHOWN.document}\n```\n\n```text\n{shown}```\n"


async def main() -> int:
    """Writes the page. Returns the exit status: 1 if an operation's note does not match its cost."""
    by_engine: dict[str, list[Row]] = {}
    costs: dict[str, list[Priced]] = {}
    with engines() as found:
        for engine, url in found.items():
            found_rows = [await rows_of(url, world) for world in worlds()]
            by_engine[engine] = [row for rows, _ in found_rows for row in rows]
            costs[engine] = [row for _, rows in found_rows for row in rows]
    wrong = [f"{engine}: {line}" for engine, rows in by_engine.items() for line in unexplained(rows)]
    wrong += [f"{engine}: {line}" for engine, rows in costs.items() for line in above(rows)]
    if wrong:
        print("\n".join(wrong), file=sys.stderr)
        return 1
    page = PAGE.read_text("utf-8")
    page = with_part(page, "printed plan", plan_text())
    page = with_part(page, "bound", tables_text(by_engine))
    # The embedded engine, the first one, counts read units as DynamoDB does.
    PAGE.write_text(with_part(page, "cost", cost_text(next(iter(costs.values())))), "utf-8")
    print(f"{PAGE.name}: {len(OPERATIONS)} operations on {' and on '.join(by_engine)}")
    return 0


if __name__ == "__main__":
    sys.exit(asyncio.run(main()))
