"""What executing a query takes, by Keygraph and by graphql-core's own execution: `python -m bench.executor`.

One document, one answer, and items that stand in memory. Measured is what comes after parsing, validating and planning,
which all have behind them, and before the answer's bytes. For Keygraph that is all of `Service.execute`: the requests to a
store in memory, the check of each item against its keys and its type, and the writing of the answer, which is shown
alone, too. For graphql-core (`bench.executor_peers`) it is `execute`, with resolvers that make an object of an item.
"""

from __future__ import annotations

import asyncio
import gc
import platform
import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from decimal import Decimal
from enum import Enum
from importlib.metadata import version
from typing import Any, cast
from unittest.mock import patch

from bench.executor_peers import LoadedQuery, asked_of
from bench.executor_peers import Query as SyncQuery
from keygraph import ID, Graph, Index, Many, Table, edge, many, node, record
from keygraph.dynamo.items import Item
from keygraph.dynamo.store import Answer, Batch, BatchGet, Cost, Page, Query, Request
from keygraph_resolvers import Service, build_schema, service
from keygraph_resolvers.answer.columns import write_data

TURNS = 7
OBJECTS = 10_000
LISTS = 100
ONE_LIST, MANY_LISTS, MANY_NODES = (
    f"one list of {OBJECTS:,}",
    f"{LISTS} lists of {OBJECTS // LISTS}",
    f"{LISTS} lists of {OBJECTS // LISTS}, each to a node that is got by its key",
)
KEYGRAPH, WRITING = "Keygraph", "of it, writing"
PEERS: Mapping[str, tuple[type, bool]] = {
    "Strawberry, sync": (SyncQuery, False),
    "Strawberry, async": (LoadedQuery, False),
    "bare, sync": (SyncQuery, True),
    "bare, async": (LoadedQuery, True),
}
"""By the kind of their resolvers: the root type, and whether Strawberry's part is left away."""
WANTED: Mapping[str, int] = {"Strawberry, async": 10, "Strawberry, sync": 5}
"""How many times as long each should take."""
LEAVES = "code title size weight isNew colour"
DOCUMENTS: Mapping[str, str] = {
    ONE_LIST: f'{{ shelf(shelfId: "all") {{ things(first: {OBJECTS}) {{ edges {{ node {{ {LEAVES} }} }} }} }} }}',
    MANY_LISTS: f"{{ shelves(first: {LISTS}) {{ nodes {{ things(first: {LISTS}) {{ edges {{ node {{ {LEAVES} }} }} }} }} }} }}",
    MANY_NODES: f"{{ shelves(first: {LISTS}) {{ nodes {{ parts(first: {LISTS}) {{ edges {{ node {{ {LEAVES} }} }} }} }} }} }}",
}

gsi1 = Index("GSI1", "GSI1PK", "GSI1SK")


class Colour(Enum):
    RED = "red"
    BLUE = "blue"


@node("SHELF#{shelf_id}", gsi1("SHELVES", "{shelf_id}", lists="shelves"))
class Shelf:
    shelf_id: ID

    things: Many[Thing] = many()
    parts: Many[ShelfPart] = many()


@record("{shelf}", "THING#{code}")
class Thing:
    """What stands in the list itself."""

    shelf: Shelf
    code: ID
    title: str
    size: int
    weight: Decimal
    is_new: bool
    colour: Colour


@node("PART#{code}")
class Part:
    """What an edge of the list leads to."""

    code: ID
    title: str
    size: int
    weight: Decimal
    is_new: bool
    colour: Colour


@edge("{shelf}", "{part}")
class ShelfPart:
    shelf: Shelf
    part: Part


graph = Graph(
    Table("Shelves", partition_key="PK", sort_key="SK", indexes=[gsi1]),
    Shelf,
    Thing,
    Part,
    ShelfPart,
    attribute_case="camel",
    type_attribute="kind",
)


class Shelves:
    """A store in memory: shelves, of things or of edges to parts."""

    def __init__(self) -> None:
        self.table = graph.table
        self.by_key: dict[Any, Item] = {}
        self.lists: dict[tuple[str | None, Any], list[Item]] = {}
        for shelf in ("all", *(f"{number:03d}" for number in range(LISTS))):
            key = f"SHELF#{shelf}"
            own = {} if shelf == "all" else {"GSI1PK": "SHELVES", "GSI1SK": shelf}
            self._add({"PK": key, "SK": key, "kind": "Shelf", "shelfId": shelf, **own})
        for number in range(OBJECTS):
            name, part = f"{number:05d}", f"PART#{number:05d}"
            told: Item = {
                "code": name,
                "title": f"Number {number}",
                "size": Decimal(number % 40),
                "weight": Decimal(number) / 8,
                "isNew": number % 3 == 0,
                "colour": ("red", "blue")[number % 2],
            }
            self._add({"PK": part, "SK": part, "kind": "Part", **told})
            for shelf in ("all", f"{number % LISTS:03d}"):
                self._add({"PK": f"SHELF#{shelf}", "SK": f"THING#{name}", "kind": "Thing", **told})
            edge_key = {"PK": f"SHELF#{number % LISTS:03d}", "SK": part}
            self._add({**edge_key, "kind": "ShelfPart", "partCode": name})

    def _add(self, item: Item) -> None:
        self.by_key[graph.table.key_of(item)] = item
        prefix = cast(str, item["SK"]).partition("#")[0]
        self.lists.setdefault((None, (item["PK"], prefix)), []).append(item)
        if "GSI1PK" in item:
            self.lists.setdefault(("GSI1", (item["GSI1PK"], "")), []).append(item)

    async def send(self, request: Request[Answer], /) -> Answer:
        asked: Any = request
        answer: Any
        match asked:
            case Query(partition, index, range=span, limit=limit):
                prefix = "" if index else str(cast(Any, span).value).partition("#")[0]
                found = self.lists[index, (partition, prefix)]
                page = found[:limit]
                last = None if len(page) == len(found) else graph.table.position_of(page[-1], index)
                answer = Page(page, len(page), last, Cost(1, 1.0))
            case BatchGet(keys):
                answer = Batch([self.by_key.get(key) for key in keys], Cost(1, 1.0))
            case _:
                raise LookupError(f"{type(asked).__name__} is not asked here")
        return cast(Answer, answer)

    async def close(self) -> None:
        """Nothing is open."""


# --- Measured -----------------------------------------------------------------------------------------


class Writing:
    """Keygraph's service, which notes what the writing half of each execution takes."""

    def __init__(self, store: Shelves) -> None:
        self._service = Service(build_schema(graph), store, secret=b"of a measurement", max_page_size=OBJECTS)
        self.milliseconds = 0.0

    async def ask(self, document: str) -> Any:
        def timed(*given: Any) -> Any:
            before = time.process_time()
            try:
                return write_data(*given)
            finally:
                self.milliseconds = (time.process_time() - before) * 1000

        with patch.object(service, "write_data", timed):
            return await self._service.execute(document)


async def measured(turns: int = TURNS) -> dict[str, dict[str, float]]:
    """The least processor milliseconds of each way by document. They take turns, and their answers are equal."""
    store = Shelves()
    keygraph = Writing(store)
    asked: dict[str, Callable[[str], Awaitable[Any]]] = {
        KEYGRAPH: keygraph.ask,
        **{
            name: asked_of(store, query, DOCUMENTS.values(), is_bare=is_bare)
            for name, (query, is_bare) in PEERS.items()
        },
    }
    found: dict[str, dict[str, float]] = {}
    for name, document in DOCUMENTS.items():
        answers = [await ask(document) for ask in asked.values()]
        assert "errors" not in answers[0], answers[0]["errors"][:1]
        assert all(answer == answers[0] for answer in answers), f"{name}: the answers differ"
        del answers
        taken: dict[str, list[float]] = {}
        for _ in range(turns):
            for way, ask in asked.items():
                gc.collect()
                before = time.process_time()
                await ask(document)
                taken.setdefault(way, []).append((time.process_time() - before) * 1000)
            taken.setdefault(WRITING, []).append(keygraph.milliseconds)
        found[name] = {way: min(each) for way, each in taken.items()}
    return found


def table_text(found: Mapping[str, Mapping[str, float]]) -> str:
    """The figures as two tables: milliseconds, and how many times as long the peers take."""
    ways = (KEYGRAPH, WRITING, *PEERS)
    times = [(name, *(f"{each[way]:.0f}" for way in ways)) for name, each in found.items()]
    ratios = [
        (f"{name}, {own}", *(f"{each[way] / each[own]:.1f}" for way in PEERS))
        for name, each in found.items()
        for own in (KEYGRAPH, WRITING)
    ]
    wanted = [
        (
            f"{name}, {own}: at most 1/{least} of {way}",
            f"1/{each[way] / each[own]:.1f}",
            "yes" if each[way] >= least * each[own] else "**no**",
        )
        for name, each in found.items()
        for way, least in WANTED.items()
        for own in (KEYGRAPH, WRITING)
    ]
    title = f"{OBJECTS:,} objects of {len(LEAVES.split())} leaves"
    tables = (
        _table((title, *ways), times),
        _table(("times as long as", *PEERS), ratios),
        _table(("wanted", "found", "reached"), wanted),
    )
    return "\n\n".join(tables)


def _table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    lines = [f"| {' | '.join(head)} |", f"| --- |{' ---: |' * (len(head) - 1)}"]
    return "\n".join([*lines, *(f"| {' | '.join(row)} |" for row in rows)])


def main() -> None:
    """Prints the tables of `docs/performance.md`."""
    # As the server has them, for all.
    gc.set_threshold(50_000, 10, 10)
    print(table_text(asyncio.run(measured())))
    names = ("graphql-core", "strawberry-graphql", "aiodataloader")
    print(f"\nPython {platform.python_version()}, {', '.join(f'{name} {version(name)}' for name in names)}")


if __name__ == "__main__":
    main()
