"""What Keygraph does when things go wrong.

    make reliability                                  everything, into docs/reliability.md; about half an hour
    make reliability ARGS="--share 0.1"               a tenth of the time; writes no page
    make reliability ARGS="--only attacks --share 0.1"

On the embedded engine, and on DynamoDB Local behind something that fails as it is told to. The exit status is 1 where
something does not hold.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import sys
import tempfile
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path

from bench.compare.data import items
from bench.compare.machine import told
from bench.compare.queries import queries
from bench.compare.servers import AWS, KEYGRAPH, ROOT, Running, running
from bench.measuring import filled_store
from bench.pages import with_part
from bench.reliability import scenarios
from bench.reliability.clients import asked_of
from bench.reliability.scenarios import Outcome
from bench.reliability.upstream import Upstream
from keygraph_examples.commerce import graph
from tests import dynamodb_local

PAGE = ROOT / "docs" / "reliability.md"
_NAMES = ("faults", "outages", "cancellations", "kills", "attacks")
_FAULT_SECONDS, _OUTAGE_SECONDS, _KILL_SECONDS, _ATTACK_SECONDS = 300.0, 30.0, 60.0, 600.0
_CANCELLATIONS = 10_000


@asynccontextmanager
async def _served(store_url: str, **settings: str) -> AsyncIterator[Running]:
    server = replace(KEYGRAPH, environment={**KEYGRAPH.environment, "KEYGRAPH_DEADLINE": "10", **settings})
    with running([server], store_url) as [found]:
        yield found


async def _on(
    name: str, store_url: str, upstream: Upstream | None, only: list[str], share: float
) -> list[Outcome]:
    """Runs all scenarios that are possible on a store."""
    outcomes: list[Outcome] = []
    bodies = [body for query in queries(["shallow", "nested", "list"]) for body in query.bodies()[:4]]
    kills = {"KEYGRAPH_WORKERS": "2"}
    for scenario in only:
        print(f"{name}: {scenario}", file=sys.stderr)
        async with _served(store_url, **(kills if scenario == "kills" else {})) as server:
            port, pid = server.port, server.pid
            asked = await asked_of(port, bodies)
            match scenario:
                case "faults" if upstream is not None:
                    outcomes += await scenarios.faults(port, pid, asked, upstream, _FAULT_SECONDS * share)
                case "outages" if upstream is not None:
                    outcomes += await scenarios.outages(port, asked, upstream, _OUTAGE_SECONDS * share)
                case "cancellations":
                    outcomes += await scenarios.cancellations(port, pid, asked, int(_CANCELLATIONS * share))
                case "kills":
                    outcomes += await scenarios.kills(port, pid, asked, max(10.0, _KILL_SECONDS * share))
                case "attacks":
                    outcomes += await scenarios.attacks(port, pid, _ATTACK_SECONDS * share)
    return outcomes


async def _all(only: list[str], share: float) -> dict[str, list[Outcome]]:
    found: dict[str, list[Outcome]] = {}
    data = list(items())
    with tempfile.TemporaryDirectory() as folder:
        url = f"sqlite:{Path(folder) / 'shop.sqlite'}"
        async with filled_store(url, graph, data):
            found["the embedded engine"] = await _on("the embedded engine", url, None, only, share)
    reason = dynamodb_local.missing()
    if reason:
        print(f"without DynamoDB Local: {reason}", file=sys.stderr)
        return found
    with dynamodb_local.running() as store_url:
        async with filled_store(store_url, graph, data), Upstream(store_url) as upstream:
            found["DynamoDB Local"] = await _on("DynamoDB Local", upstream.url, upstream, only, share)
    return found


def _table(found: dict[str, list[Outcome]]) -> str:
    lines = []
    for store, outcomes in found.items():
        lines += [
            f"### On {store}",
            "",
            "| what happens | wanted | found | holds |",
            "| --- | --- | --- | --- |",
        ]
        lines += [
            f"| {each.what} | {each.wanted} | {each.found} | {'yes' if each.holds else '**no**'} |"
            for each in outcomes
        ]
        lines.append("")
    return "\n".join(lines)


def main() -> int:
    parser = argparse.ArgumentParser(
        "make reliability", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--only", choices=_NAMES, action="append", help="some of them")
    parser.add_argument("--share", type=float, default=1.0, help="how much of the time (1.0)")
    parser.add_argument("--write", action="store_true", help="write the page, whatever is chosen")
    chosen = parser.parse_args()
    os.environ.update(AWS)
    found = asyncio.run(_all(list(chosen.only or _NAMES), chosen.share))
    text = _table(found)
    print(text)
    if chosen.write or (chosen.only is None and chosen.share == 1.0):
        part = f"{told(['keygraph'])}\n\n{text}"
        PAGE.write_text(with_part(PAGE.read_text("utf-8"), "reliability", part), "utf-8")
        print(f"written: {PAGE.relative_to(ROOT)}", file=sys.stderr)
    return 0 if all(each.holds for outcomes in found.values() for each in outcomes) else 1


if __name__ == "__main__":
    sys.exit(main())
