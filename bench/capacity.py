"""Computes what the queries of `make bench` cost: DynamoDB's units and their price, and processor time.

    python -m bench.capacity           prints the tables
    python -m bench.capacity --write   writes them into docs/capacity.md

The units are those of one operation on the embedded engine, which counts by DynamoDB's rules, with the same items; the
processor time is that of the last `make bench`, from docs/performance.md. The prices are `keygraph_server.prices`.
"""

from __future__ import annotations

import argparse
import asyncio
import re
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import orjson

from bench.compare import data
from bench.compare.load import FRESH
from bench.compare.queries import QUERIES, Query
from bench.compare.servers import ROOT
from bench.pages import with_part
from keygraph.dynamo.store import CreateTable
from keygraph.engines.open import open_store
from keygraph.tables.bulk import write_batches
from keygraph_examples.commerce import graph
from keygraph_resolvers import OperationRequest, Service, build_schema
from keygraph_server.prices import DATE, ON_DEMAND

PAGE = ROOT / "docs" / "capacity.md"
_MEASURED = ROOT / "docs" / "performance.md"
_REGIONS = ("us-east-1", "eu-central-1")
_PEAK, _BUSY = 3, 0.6
"""How much more than the average comes at the busiest time, and the share of a processor that is used then."""
_DAY = 86_400
_GB_UNITS = 1e9 / 4096 / 2
"""The read units of a GB that is read with eventual consistency, in whole pages."""


@dataclass(frozen=True)
class Spent:
    """What one operation takes."""

    query: Query
    read_units: float
    write_units: float
    processor_ms: float

    def usd(self, region: str) -> float:
        """The price of a million of them at DynamoDB."""
        return ON_DEMAND[region].usd(self.read_units, self.write_units) * 1_000_000

    def row(self) -> str:
        """The operation as a row of the table."""
        prices = " | ".join(f"{self.usd(region):,.2f}" for region in _REGIONS)
        hours = self.processor_ms * 1_000_000 / 3_600_000
        cores = 1_000_000 / _DAY * _PEAK * self.processor_ms / 1_000 / _BUSY
        return (
            f"| {self.query.name} | {self.read_units:g} | {self.write_units:g} | {prices} "
            f"| {hours:.1f} | {_BUSY * 1_000 / self.processor_ms:,.0f} | {cores:.2f} |"
        )


def processor_ms(page: str) -> dict[str, float]:
    """Keygraph's processor time of one operation, by query, from the page of measurements."""
    table = page[page.index("Processor milliseconds of the server") :].split("\n\n")[1]
    return {name: float(ms) for name, ms in re.findall(r"^\| (\w+) \| ([\d.]+) \|", table, re.MULTILINE)}


async def spent() -> list[Spent]:
    """Runs each query once, on a table that only it changes."""
    measured, found = processor_ms(_MEASURED.read_text("utf-8")), []
    with tempfile.TemporaryDirectory() as folder:
        async with open_store(f"sqlite:{Path(folder) / 'shop.sqlite'}", graph.table) as store:
            await store.send(CreateTable())
            await write_batches(store, [(tuple(data.items()), None)], lambda _: None)
            service = Service(build_schema(graph), store, secret=b"of a measurement")
            for query in QUERIES:
                cost = await _cost(service, query)
                units = cost["readUnits"], cost.get("writeUnits", 0.0)
                found.append(Spent(query, *units, measured[query.name]))
    return found


async def _cost(service: Service, query: Query) -> Mapping[str, Any]:
    variables = orjson.loads(orjson.dumps(query.variables[0]).replace(FRESH.encode(), b"new"))
    answer = await service.execute(OperationRequest(query.document, variables, with_cost=True))
    if "errors" in answer:
        raise RuntimeError(f"{query.name}: {answer['errors']}")
    actual: Mapping[str, Any] = answer["extensions"]["cost"]["actual"]
    return actual


def tables(found: list[Spent]) -> str:
    """The tables as text."""
    priced = " | ".join(f"USD, {region}" for region in _REGIONS)
    head = (
        f"| a million of | read units of each | write units of each | {priced} "
        "| core-hours | a second, one core | cores for a million a day |"
    )
    nested = next(each for each in found if each.query.name == "nested")
    lines = [
        f"One million *nested* queries a day cost USD {nested.usd(_REGIONS[0]):,.2f} a day at DynamoDB in {_REGIONS[0]}, "
        f"on demand, and {nested.processor_ms * 1_000_000 / 3_600_000:.1f} hours of one core.",
        "",
        head,
        "| --- |" + " ---: |" * (head.count("|") - 2),
        *(each.row() for each in found),
        "",
        f"| on demand, {DATE} | USD a million read units | USD a million write units | USD a GB and month | USD to read a GB once |",
        "| --- | ---: | ---: | ---: | ---: |",
    ]
    for region, prices in ON_DEMAND.items():
        stored = "" if prices.storage is None else f"{prices.storage:g}"
        once = prices.usd(_GB_UNITS, 0)
        lines.append(f"| {region} | {prices.read:g} | {prices.write:g} | {stored} | {once:.3f} |")
    return "\n".join(lines) + "\n"


def main() -> None:
    """Prints the tables, and writes them into the page if asked to."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--write", action="store_true", help="write the tables into docs/capacity.md")
    arguments = parser.parse_args()
    text = tables(asyncio.run(spent()))
    print(text, end="")
    if arguments.write:
        PAGE.write_text(with_part(PAGE.read_text("utf-8"), "capacity", text), "utf-8")


if __name__ == "__main__":
    main()
