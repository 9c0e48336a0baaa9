"""The cost of the embedded engine, beside moto, and whether it grows with the table: `python -m bench.embedded`.

Processor time alone. Each table is measured in a separate process, which opens a file that another one has filled, so
its memory is only that of reading; the processes take turns. moto runs in the process that calls it. Needs the extra
`bench`.
"""

from __future__ import annotations

import asyncio
import json
import platform
import resource
import sqlite3
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from dataclasses import asdict, dataclass
from decimal import Decimal
from pathlib import Path
from typing import Any

from bench.measuring import filled_store
from bench.pictures.plots import lines_plot
from keygraph.dynamo.conditions import Eq
from keygraph.dynamo.items import Item
from keygraph.dynamo.store import BatchGet, Count, CreateTable, Prefix, Query, Request, Store
from keygraph.engines.sqlite.engine import open_sqlite
from keygraph.tables.bulk import write_batches
from keygraph.tables.interchange import Interchange
from keygraph_examples import commerce

GRAPH = commerce.graph
INDEX = GRAPH.table.indexes[0].name
SIZES = (1_000, 10_000, 100_000, 1_000_000)
MOTO_SIZE = 10_000
LOADED = 100_000
TURNS = 5
SECONDS = 0.2
"""The least length of a turn of one request."""
TOGETHER = 16
PLOT = Path("docs/images/embedded-growth.svg")

# --- The table ----------------------------------------------------------------------------------------


def order_items(size: int) -> Iterator[Item]:
    """Returns items of orders, 20 an order; every tenth item belongs to one large order instead."""
    for number in range(size):
        order = "LARGE" if number % 10 == 9 else f"{number // 20:07}"
        product = f"{number * 7919 % size // 5:07}"
        partition, sort = f"ORDER#{order}", f"PRODUCT#{number:07}"
        yield {
            "PK": partition,
            "SK": sort,
            "GSI1PK": f"PRODUCT#{product}",
            "GSI1SK": f"{partition}#{number:07}",
            "Type": "OrderItem",
            "orderId": order,
            "productId": product,
            "quantity": Decimal(number % 7 + 1),
            "unitPrice": Decimal(number % 1000 + 1) / 4,
            "currency": "EUR",
            "note": "as it stands in the catalogue",
        }


SELECTED = tuple((name,) for name in ("PK", "SK", "Type", "productId", "quantity", "unitPrice"))
IN_ORDERS = Prefix("PRODUCT#")
KEYS = tuple((item["PK"], item["SK"]) for item in order_items(400) if item["PK"] != "ORDER#LARGE")[:100]
REQUESTS: dict[str, Request[Any]] = {
    "GetItem": BatchGet(KEYS[:1], SELECTED),  # type: ignore[arg-type]  # the keys are texts
    "Query, the 18 items of an order": Query("ORDER#0000003", range=IN_ORDERS, projection=SELECTED),
    "Query, 20 items of a tenth of the table": Query(
        "ORDER#LARGE", range=IN_ORDERS, projection=SELECTED, limit=20
    ),
    "Query, an index, 5 items": Query("PRODUCT#0000000", index=INDEX, projection=SELECTED),
    "Query, 100 items with a filter": Query(
        "ORDER#LARGE",
        range=IN_ORDERS,
        projection=SELECTED,
        limit=100,
        filter=Eq(("quantity",), Decimal(3)),
    ),
    "Count, an order": Count("ORDER#0000003", range=IN_ORDERS),
    "BatchGetItem, 100 items": BatchGet(KEYS, SELECTED),  # type: ignore[arg-type]  # the keys are texts
}


_BATCH_ITEMS = 10_000


async def fill(path: Path, size: int) -> None:
    """Creates the file with a table of this many items."""
    async with open_sqlite(path, GRAPH.table) as store:
        await store.send(CreateTable())
        await write_batches(store, _batches(size), lambda _: None, in_flight=1)


def _batches(size: int) -> Iterator[tuple[list[Item], None]]:
    batch: list[Item] = []
    for item in order_items(size):
        batch.append(item)
        if len(batch) == _BATCH_ITEMS:
            yield batch, None
            batch = []
    if batch:
        yield batch, None


# --- One turn, in a process of its own ----------------------------------------------------------------


@dataclass(frozen=True)
class Turn:
    """The measurements of one process for one table."""

    opening: float
    """Processor milliseconds."""
    alone: dict[str, float]
    """Processor milliseconds of each request, one after the other."""
    together: dict[str, float]
    """The same with several requests in flight."""
    requests: dict[str, int]
    units: dict[str, float]
    memory: float
    """Peak MB of the process."""


async def turn(engine: str, where: str) -> Turn:
    """Measures every request on an open store."""
    began = time.process_time()
    async with _opened(engine, where) as store:
        opening = time.process_time() - began
        costs = {name: (await store.send(request)).cost for name, request in REQUESTS.items()}
        alone = {name: await _measured(store, request, 1) for name, request in REQUESTS.items()}
        together = {name: await _measured(store, request, TOGETHER) for name, request in REQUESTS.items()}
    return Turn(
        opening * 1000,
        alone,
        together,
        {name: cost.requests for name, cost in costs.items()},
        {name: cost.read_units for name, cost in costs.items()},
        _peak_memory(),
    )


def _peak_memory() -> float:
    """Returns this process's peak memory in MB. On Linux, `getrusage` of a new process includes its parent's."""
    status = Path("/proc/self/status")
    if status.exists():
        peak = next(line for line in status.read_text().splitlines() if line.startswith("VmHWM"))
        return int(peak.split()[1]) / 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


@asynccontextmanager
async def _opened(engine: str, where: str) -> AsyncIterator[Store]:
    if engine == "sqlite":
        async with open_sqlite(where, GRAPH.table) as embedded:
            yield embedded
        return
    # In the same process, as in tests.
    from moto.server import ThreadedMotoServer

    server = ThreadedMotoServer("127.0.0.1", port=0, verbose=False)
    server.start()
    try:
        host, port = server.get_host_and_port()
        async with filled_store(f"http://{host}:{port}", GRAPH, tuple(order_items(int(where)))) as store:
            yield store
    finally:
        server.stop()


async def _measured(store: Store, request: Request[Any], together: int) -> float:
    """Returns the processor milliseconds of one request, with several in flight."""
    sent, began, started = 0, time.process_time(), time.perf_counter()
    while time.perf_counter() - started < SECONDS or sent == 0:
        await asyncio.gather(*(store.send(request) for _ in range(together)))
        sent += together
    return (time.process_time() - began) / sent * 1000


def in_process(engine: str, where: str) -> Turn:
    """Runs a turn in another process, which has read nothing before."""
    command = [sys.executable, "-W", "ignore", "-m", "bench.embedded", engine, where]
    ended = subprocess.run(command, check=True, capture_output=True, text=True)
    return Turn(**json.loads(ended.stdout.splitlines()[-1]))


# --- The run ------------------------------------------------------------------------------------------


def load(folder: Path) -> tuple[float, float]:
    """Loads lines into a new file with `keygraph load`. Returns items per second of processor time and of wall time."""
    lines = folder / "items.jsonl"
    written = Interchange(GRAPH)
    with lines.open("wb") as file:
        file.writelines(written.write(item) + b"\n" for item in order_items(LOADED))
    keygraph = str(Path(sys.executable).with_name("keygraph"))
    options = ["--model", "keygraph_examples.commerce", "--store", f"sqlite:{folder / 'loaded.sqlite'}"]

    def took(*words: str) -> tuple[float, float]:
        before, began = resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter()
        subprocess.run([keygraph, *words, *options], check=True, capture_output=True)
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        processor = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
        return processor, time.perf_counter() - began

    took("table", "create")
    # Every command's startup time, which is not part of the items' time.
    started = took("table", "describe")
    loaded = took("load", str(lines))
    processor, clock = (of - without for of, without in zip(loaded, started, strict=True))
    return LOADED / processor, LOADED / clock


def _median(turns: list[Turn], name: str, together: bool = False) -> float:
    return statistics.median((turn.together if together else turn.alone)[name] for turn in turns)


def _row(*cells: object) -> str:
    return f"| {' | '.join(map(str, cells))} |"


def main() -> None:
    """Prints the tables of `docs/performance.md` and draws its plot."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        files = {size: folder / f"{size}.sqlite" for size in SIZES}
        filling = time.process_time()
        for size, file in files.items():
            asyncio.run(fill(file, size))
        per_second = sum(SIZES) / (time.process_time() - filling)
        turns: dict[int, list[Turn]] = {size: [] for size in SIZES}
        on_moto: list[Turn] = []
        for _ in range(TURNS):
            for size, file in files.items():
                turns[size].append(in_process("sqlite", str(file)))
            if len(on_moto) < 2:
                on_moto.append(in_process("moto", str(MOTO_SIZE)))
        loaded, loaded_by_clock = load(folder)

    smallest, largest = turns[MOTO_SIZE], turns[SIZES[-1]]
    print(f"Python {platform.python_version()}, SQLite {sqlite3.sqlite_version}\n")
    heads = (f"SQLite, {MOTO_SIZE:,}", f"SQLite, {SIZES[-1]:,}", f"the same, {TOGETHER} at once")
    print(_row("request", *heads, f"moto, {MOTO_SIZE:,}", "moto / SQLite"))
    print(_row("---", *["---:"] * 5))
    for request in REQUESTS:
        small, moto = _median(smallest, request), _median(on_moto, request)
        large, together = _median(largest, request), _median(largest, request, True)
        print(
            _row(
                request,
                f"{small:.3f}",
                f"{large:.3f}",
                f"{together:.3f}",
                f"{moto:.1f}",
                f"{moto / small:,.0f}",
            )
        )
    print(
        f"\n`keygraph load`: {loaded:,.0f} items a second of processor time, {loaded_by_clock:,.0f} by the clock;"
    )
    print(f"batches written by a program: {per_second:,.0f} items a second of processor time.\n")

    print(_row("", *(f"{size:,} items" for size in SIZES)))
    print(_row("---", *["---:"] * len(SIZES)))
    for request in REQUESTS:
        print(_row(f"{request}: ms", *(f"{_median(turns[size], request):.3f}" for size in SIZES)))
    for told, asked in (("requests", "requests"), ("read units", "units")):
        sums = (sum(getattr(turns[size][0], asked).values()) for size in SIZES)
        print(_row(f"all of them: {told}", *(f"{each:g}" for each in sums)))
    opening = (statistics.median(turn.opening for turn in turns[size]) for size in SIZES)
    print(_row("opening the file: ms", *(f"{each:.1f}" for each in opening)))
    memory = (statistics.median(turn.memory for turn in turns[size]) for size in SIZES)
    print(_row("peak memory: MB", *(f"{each:.0f}" for each in memory)))
    series = {request: [_median(turns[size], request) for size in SIZES] for request in REQUESTS}
    lines_plot(PLOT, "The embedded engine", ("items in the table", SIZES), "processor ms", series)


if __name__ == "__main__":
    if sys.argv[1:]:
        print(json.dumps(asdict(asyncio.run(turn(sys.argv[1], sys.argv[2])))))
    else:
        main()
