"""What is generated in `docs/graph-questions.md`: questions about a made social network, measured, with their answers checked.

    python -m bench.questions --people 100000 --write

`--local` asks on DynamoDB Local. A wrong answer ends it, and nothing is written. Most of the time goes into filling the table:
with `--kept /tmp/network.db` the next run asks at once.
"""

from __future__ import annotations

import argparse
import asyncio
import itertools
import statistics
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from random import Random
from typing import Any

from bench.pages import with_part
from bench.questions.network import FAMOUS, OTHER, SHY, graph, made
from bench.questions.oracle import Oracle
from keygraph.dynamo.items import Item
from keygraph.dynamo.store import CreateTable, DeleteTable, Store
from keygraph.engines.open import open_store
from keygraph.limits import NO_LIMITS
from keygraph.tables.bulk import BATCH_ITEMS, write_batches
from keygraph_resolvers import OperationRequest, Service, build_schema
from keygraph_resolvers.naming.global_ids import global_id
from tests import dynamodb_local

PAGE = Path(__file__).parents[2] / "docs" / "graph-questions.md"
TIMES = 7
PAIRS = 40
MUTUAL = """query ($one: ID!, $other: [ID!]) {
  person(name: $one) { friends(alsoOf: $other, first: 100) { nodes { name } } } }"""
PATH = """query ($one: ID!, $other: ID!) {
  path(from: $one, to: $other, via: [PERSON_FRIENDS], maxLength: 8) { nodes { ... on Person { name } } } }"""
MAY_KNOW = """query ($one: ID!) { person(name: $one) {
  peopleYouMayKnow(first: 20) { edges { score node { name } } pageInfo { isComplete } } } }"""
NETWORK = """query ($one: ID!) { person(name: $one) { network(first: 100) { edges { distance node { name } } } } }"""
DESCENDANTS = """query ($one: ID!) { category(number: $one) { descendants(first: 1) { totalCount } } }"""


class WrongAnswer(Exception):
    """An answer differs from the oracle's."""


@dataclass
class Row:
    """A question and its cost."""

    question: str
    naive: str
    requests: list[int] = field(default_factory=list)
    round_trips: list[int] = field(default_factory=list)
    items: list[float] = field(default_factory=list)
    read_units: list[float] = field(default_factory=list)
    milliseconds: list[float] = field(default_factory=list)
    processor: list[float] = field(default_factory=list)

    @property
    def text(self) -> str:
        numbers = (self.requests, self.round_trips, self.items, self.read_units)
        shown = [f"{statistics.median(each):,.1f}".removesuffix(".0") for each in numbers]
        times = [f"{statistics.median(each):,.1f}" for each in (self.milliseconds, self.processor)]
        return f"| {' | '.join([self.question, *shown, *times, self.naive])} |"


class Asker:
    """Asks questions and records their cost."""

    def __init__(self, service: Service) -> None:
        self._service = service

    async def ask(self, row: Row, document: str, variables: dict[str, Any], times: int = TIMES) -> Any:
        answer: dict[str, Any] = {}
        for _ in range(times):
            began, processor = time.perf_counter(), time.process_time()
            answer = await self._service.execute(OperationRequest(document, variables, with_cost=True))
            row.milliseconds.append((time.perf_counter() - began) * 1000)
            row.processor.append((time.process_time() - processor) * 1000)
        errors = [
            each for each in answer.get("errors", ()) if "no answer was found within" not in each["message"]
        ]
        if errors:
            raise WrongAnswer(errors)
        actual = answer["extensions"]["cost"]["actual"]
        row.requests.append(actual["requests"])
        row.round_trips.append(actual["roundTrips"])
        row.items.append(actual["items"])
        row.read_units.append(actual["readUnits"])
        return answer["data"]


def _agree(found: object, expected: object, question: str) -> None:
    if found != expected:
        raise WrongAnswer(f"{question}: {str(found)[:300]}, and not {str(expected)[:300]}")


async def asked(service: Service, oracle: Oracle, people: int, seed: int) -> list[Row]:
    """Asks every question and checks the answers."""
    asker, random, rows = Asker(service), Random(seed), list[Row]()
    names = [f"p{number:06}" for number in range(people)]
    usual = random.choice(names[people // 2 :])
    for title, one, other in (
        ("mutual friends, both famous", FAMOUS, OTHER),
        ("mutual friends, famous and shy", FAMOUS, SHY),
        ("mutual friends, two people", usual, random.choice([*oracle.network(usual, 1)])),
    ):
        pages = oracle.pages(one) + oracle.pages(other)
        row = Row(title, f"{pages} requests, {oracle.mutual_edges(one, other):,} friends")
        data = await asker.ask(row, MUTUAL, {"one": one, "other": [other]})
        nodes = data["person"]["friends"]["nodes"]
        _agree([each["name"] for each in nodes], oracle.mutual(one, other)[:100], title)
        rows.append(row)
    rows += await _paths(asker, oracle, names, random)
    row = Row("people you may know", _whole(oracle, usual, 2))
    data = (await asker.ask(row, MAY_KNOW, {"one": usual}))["person"]["peopleYouMayKnow"]
    if data["pageInfo"]["isComplete"]:
        known = oracle.may_know(usual)
        for each in data["edges"]:
            _agree(each["score"], float(known[each["node"]["name"]]), "people you may know")
        best = sorted(known.values(), reverse=True)[:20]
        _agree([int(each["score"]) for each in data["edges"]], best, "people you may know")
    rows.append(row)
    row = Row("network to 3, the first 100", _whole(oracle, usual, 3))
    data = (await asker.ask(row, NETWORK, {"one": usual}))["person"]["network"]["edges"]
    distances = oracle.network(usual, 3)
    _agree([each["distance"] for each in data], [distances[each["node"]["name"]] for each in data], "network")
    nearest = sorted(distances.values())[:100]
    _agree([each["distance"] for each in data], nearest, "network")
    rows.append(row)
    below = oracle.descendants(3)
    row = Row(f"descendants of a category ({below:,})", f"{below + 1:,} requests")
    data = await asker.ask(row, DESCENDANTS, {"one": "3"})
    _agree(data["category"]["descendants"]["totalCount"], below, "descendants")
    rows.append(row)
    return rows


def _whole(oracle: Oracle, name: str, depth: int) -> str:
    """Returns the cost of reading all friends' lists up to a distance."""
    lists = [name, *oracle.network(name, depth - 1)]
    return f"{sum(map(oracle.pages, lists)):,} requests, {depth} round trips"


async def _paths(asker: Asker, oracle: Oracle, names: Sequence[str], random: Random) -> list[Row]:
    """Asks for shortest paths between random people, by their distance."""
    found: dict[int, tuple[Row, list[int], list[int]]] = {}
    beyond: Counter[int] = Counter()
    for _ in range(PAIRS):
        one, other = random.sample(names, 2)
        distance = oracle.distance(one, other)
        if distance is None:
            continue
        row, naive_edges, naive_requests = found.setdefault(distance, (Row("", ""), [], []))
        naive = oracle.one_sided(one, other)
        naive_edges.append(naive[0])
        naive_requests.append(naive[1])
        ids = {
            "one": global_id(graph.types["Person"], (one,)),
            "other": global_id(graph.types["Person"], (other,)),
        }
        data = await asker.ask(row, PATH, ids, 3)
        if data["path"] is None:
            beyond[distance] += 1
            continue
        way = [each["name"] for each in data["path"]["nodes"]]
        _agree((way[0], way[-1], len(way) - 1), (one, other, distance), "path")
        if not oracle.is_way(way):
            raise WrongAnswer(f"path: {way}")
    rows = []
    for distance, (row, edges, requests) in sorted(found.items()):
        told = f", {beyond[distance]} of them not answered within the budget" if beyond[distance] else ""
        row.question = f"shortest path at distance {distance} ({len(edges)} pairs{told})"
        row.naive = (
            f"{statistics.median(requests):,.0f} requests, {statistics.median(edges):,.0f} friends, "
            f"{distance} round trips"
        )
        rows.append(row)
    return rows


def table_text(rows: Sequence[Row]) -> str:
    heads = (
        "question",
        "requests",
        "round trips",
        "items",
        "read units",
        "p50 ms",
        "processor ms",
        "lists read whole",
    )
    lines = [f"| {' | '.join(heads)} |", f"| --- | {' | '.join(['---:'] * 6)} | --- |"]
    return "\n".join([*lines, *(row.text for row in rows)]) + "\n"


async def fill(store: Store, items: Iterable[Item]) -> None:
    """Creates a new table with these items."""
    await store.send(DeleteTable())
    await store.send(CreateTable())
    iterator = iter(items)
    batches = iter(lambda: list(itertools.islice(iterator, BATCH_ITEMS)), [])
    await write_batches(store, ((batch, None) for batch in batches), lambda _: None)


async def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--people", type=int, default=10_000)
    parser.add_argument("--friends", type=int, default=10, help="how many friends each makes who joins")
    parser.add_argument("--categories", type=int, default=50_000)
    parser.add_argument("--seed", type=int, default=17)
    parser.add_argument("--local", action="store_true", help="ask on DynamoDB Local")
    parser.add_argument(
        "--kept",
        type=Path,
        help="a SQLite file that keeps the network: a run with the same numbers need not fill it",
    )
    parser.add_argument("--write", action="store_true", help="write the table into the page")
    given = parser.parse_args()
    network = made(given.people, given.friends, given.categories, given.seed)
    oracle = Oracle(network)
    edges = sum(map(len, network.friends.values()))
    sys.stdout.write(f"{len(network.friends):,} people, {edges:,} items of friends\n")
    with tempfile.TemporaryDirectory() as folder, ExitStack() as stack:
        file = given.kept or Path(folder) / "network.db"
        is_filled = not given.local and file.exists()
        url = stack.enter_context(dynamodb_local.running()) if given.local else f"sqlite:{file}"
        async with open_store(url, graph.table, deadline=300.0) as store:
            if not is_filled:
                await fill(store, network.items())
                sys.stdout.write("filled\n")
            service = Service(build_schema(graph), store, secret=b"graph questions", limits=NO_LIMITS)
            rows = await asked(service, oracle, given.people, given.seed)
            if given.local:
                await store.send(DeleteTable())
    text = table_text(rows)
    sys.stdout.write(text)
    if given.write:
        where = "on DynamoDB Local" if given.local else "on the embedded engine"
        head = f"{len(network.friends):,} people with {edges:,} items of friends, {where}:\n\n"
        name = "local" if given.local else "embedded"
        PAGE.write_text(with_part(PAGE.read_text("utf-8"), name, head + text), "utf-8")


if __name__ == "__main__":
    asyncio.run(main())
