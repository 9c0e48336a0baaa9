"""How time, memory and requests grow with what is asked: `make bench-growth`.

Three measurements, of which each varies one thing: the edges of a list (1 to 10,000, with the node behind each), the
levels of a query (1 to 6, ten nodes on each), and how many clients ask at once (1 to 256, the nested query). They are
written into docs/performance.md, as a plot and a table. The store is as slow as in `make bench`.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import statistics
import sys
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from bench.compare import data
from bench.compare.figures import Point, percentile
from bench.compare.load import WrongAnswerError
from bench.compare.processes import DidNotStartError, forget_peak_memory, peak_memory_megabytes
from bench.compare.queries import Query, queries
from bench.compare.servers import AWS, KEYGRAPH, PLAIN, ROOT, SERVERS, Running, Server, missing
from bench.compare.turns import DifferentAnswersError, compare_answers, count, say, serving, take_turn
from bench.pages import with_part
from keygraph.dynamo.items import Item
from tests import dynamodb_local

PAGE = ROOT / "docs" / "performance.md"
PLOT = ROOT / "docs" / "performance-growth.svg"
EDGES = (1, 10, 100, 1_000, 10_000)
LEVELS = (1, 2, 3, 4, 5, 6)
CLIENTS = (1, 4, 16, 64, 256)
WIDTH = 10
_LONG = 64
"""From this number of clients on, one turn is long enough."""
SERIES = {"edges": "edges of a list", "levels": "levels of a query", "clients": "clients at once"}
_NAMES = {server.name: server.shown_name for server in SERVERS}


@dataclass(frozen=True)
class Step:
    """The query at one value of the varied quantity."""

    series: str
    at: int
    query: Query
    clients: int
    seconds: float


def items() -> Iterator[Item]:
    """The table of the comparison with categories of many products, and with ten lines of categories."""
    yield from data.items()
    yield from data.products(data.PRODUCTS, max(EDGES))
    for edges in EDGES:
        yield from data.category_of(f"fan{edges}", edges)
    yield from data.lines("line", WIDTH, max(LEVELS))


def fan_out(edges: int) -> Query:
    """Returns a query for the products of a category that has this many."""
    return Query(
        "fan_out",
        SERIES["edges"],
        """query fan_out($category: ID!, $first: Int!) {
  category(categoryId: $category) { name products(first: $first) { nodes { name price } } }
}""",
        ({"category": f"fan{edges}", "first": edges},),
    )


def depth(levels: int) -> Query:
    """Returns a query for categories this many levels down, ten on each."""
    selected = "name"
    for level in range(levels, 0, -1):
        selected = f"name children(first: {WIDTH if level == 1 else 1}) {{ nodes {{ {selected} }} }}"
    name = f"depth{levels}"
    return Query(name, SERIES["levels"], f'query {name} {{ category(categoryId: "line") {{ {selected} }} }}')


def steps(series: Sequence[str], seconds: float) -> list[Step]:
    """Returns all steps, in order."""
    [nested] = queries(["nested"])
    every = [
        *(Step("edges", edges, fan_out(edges), 1, seconds) for edges in EDGES),
        *(Step("levels", levels, depth(levels), 1, seconds) for levels in LEVELS),
        *(Step("clients", clients, nested, clients, seconds) for clients in CLIENTS),
    ]
    return [step for step in every if step.series in series]


async def measure(
    servers: Sequence[Server], asked: Sequence[Step], rounds: int, store_url: str
) -> list[Point]:
    """Loads the table, starts the servers, and measures step by step, the servers in turn."""
    found = []
    async with serving(servers, tuple(items()), store_url) as (running, proxy_port):
        for step in asked:
            began = time.monotonic()
            await compare_answers([step.query], running)
            for each in running:
                # Warms up, so that pools have opened their connections.
                warm_up = step.seconds * each.server.warm_up
                await take_turn(step.query, each, min(step.clients, 16), warm_up, fewest=1)
                forget_peak_memory(each.pid)
            turns: dict[str, list[tuple[float, float, list[float]]]] = {}
            for _ in range(1 if step.clients >= _LONG else rounds):
                for each in running:
                    turn = await take_turn(step.query, each, step.clients, step.seconds, fewest=1)
                    turns.setdefault(each.server.name, []).append(turn)
            for each in running:
                found.append(await _point(step, each, turns[each.server.name], proxy_port))
            say(f"{step.at} {SERIES[step.series]}: {time.monotonic() - began:.0f} s")
    return found


async def _point(
    step: Step, each: Running, turns: Sequence[tuple[float, float, list[float]]], proxy_port: int
) -> Point:
    memory = peak_memory_megabytes(each.pid)
    counted = await count(step.query, each, proxy_port)
    return Point(
        step.series,
        step.at,
        each.server.name,
        statistics.median(spent * 1000 / len(latencies) for spent, _, latencies in turns),
        percentile([value for _, _, latencies in turns for value in latencies], 50) * 1000,
        statistics.median(len(latencies) / seconds for _, seconds, latencies in turns),
        memory,
        counted.requests,
        counted.round_trips,
    )


def growth_text(points: Sequence[Point], plot: str) -> str:
    """Returns the text between the page's markers: the plot, and a table of every point."""
    lines = [f"![Time, memory and requests against what is asked]({plot})", ""]
    for series, about in SERIES.items():
        shown = [point for point in points if point.series == series]
        if not shown:
            continue
        heads = ("processor ms", "p50 ms", "ops/s", "peak MB", "requests", "round trips")
        lines += [f"| {about} | server | {' | '.join(heads)} |", f"| ---: | --- |{' ---: |' * len(heads)}"]
        lines += [
            f"| {point.at:,} | {_NAMES[point.server]} | {point.processor_ms:,.2f} | {point.p50_ms:,.1f} | "
            f"{point.per_second:,.1f} | {point.memory_mb:,.0f} | {point.requests} | {point.round_trips} |"
            for point in shown
        ]
        lines.append("")
    told = kept_at_most_clients(points)
    if told is not None:
        lines += [
            f"With the most clients Keygraph answers {told:.0%} of the operations a second that it answers at best.",
            "",
        ]
    return "\n".join(lines)


def kept_at_most_clients(points: Sequence[Point], server: str = KEYGRAPH.name) -> float | None:
    """The share of its best throughput that a server keeps with the most clients; None if that was not measured."""
    rates = {
        point.at: point.per_second for point in points if (point.series, point.server) == ("clients", server)
    }
    return rates[max(rates)] / max(rates.values()) if rates else None


def _words(text: str) -> list[str]:
    return text.split(",")


def main() -> int:
    """Measures, prints, and writes the page after a complete run. Returns the exit status: 1 if it failed."""
    parser = argparse.ArgumentParser(
        "make bench-growth", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--series", type=_words, help=f"some of {', '.join(SERIES)}, with commas")
    parser.add_argument("--servers", type=_words, help="some of them, by name, with commas")
    parser.add_argument("--rounds", type=int, default=2)
    parser.add_argument("--seconds", type=float, default=0.5, help="how long a turn takes at least")
    arguments = parser.parse_args()
    os.environ.update(AWS)
    reason = dynamodb_local.missing()
    if reason:
        say(f"there is nothing to measure without DynamoDB Local: {reason}")
        return 1
    # Pages of 10,000 and their cost exceed a server's default limits.
    limits = {"KEYGRAPH_MAX_PAGE_SIZE": str(max(EDGES)), "KEYGRAPH_COST_LIMIT": "0"}
    compared = [
        replace(KEYGRAPH, environment={**KEYGRAPH.environment, **limits}),
        *(server for server in SERVERS if server not in (KEYGRAPH, PLAIN)),
    ]
    servers = []
    for server in compared:
        if arguments.servers is None or server.name in arguments.servers:
            if (why := missing(server)) is not None:
                say(f"without {server.name}: {why}")
            else:
                servers.append(server)
    asked = steps(arguments.series or list(SERIES), arguments.seconds)
    try:
        with dynamodb_local.running() as store_url:
            points = asyncio.run(measure(servers, asked, arguments.rounds, store_url))
    except (DifferentAnswersError, DidNotStartError, WrongAnswerError) as error:
        say(str(error))
        return 1
    text = growth_text(points, PLOT.name)
    print(text)
    if arguments.series is None and arguments.servers is None:
        # Imported here, so that everything else works without the `bench` extra.
        from bench.compare.plot import write_growth

        PAGE.write_text(with_part(PAGE.read_text("utf-8"), "growth", text), "utf-8")
        write_growth(points, SERIES, _NAMES, PLOT)
        say(f"written: {PAGE.relative_to(ROOT)}, {PLOT.relative_to(ROOT)}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
