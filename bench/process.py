"""What the server's process costs beside the operations themselves: `python -m bench.process`.

Processor time of the processes that serve, from the system's own account; those compared take turns, and each number is
the least of its turns, since other work on the machine can only add to it.
"""

from __future__ import annotations

import asyncio
import gc
import json
import os
import platform
import re
import socket
import subprocess
import sys
import tempfile
import time
import zlib
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from importlib.metadata import version
from pathlib import Path
from typing import Any

import orjson

from bench.worlds import shape_name, worlds
from keygraph.dynamo.store import CreateTable, Store
from keygraph.engines.open import open_store
from keygraph.tables.bulk import BATCH_ITEMS, write_batches
from keygraph_resolvers import Service, build_schema

TURNS = 5
CONNECTIONS = 16
SHAPE, LARGE = (10, 5, 3), (40, 5, 3)
NESTED = """query ($user: ID!) {
  user(userId: $user) { name email orders(first: 50) { nodes { orderId total orderDate items(first: 20) { edges {
    quantity unitPrice node { productId name price categories(first: 10) { nodes { categoryId name } } }
  } } } } }
}"""
TYPENAME = "{ __typename }"
USER = f'{{ user(userId: "{shape_name(SHAPE)}") {{ name }} }}'

PYTHONS_OWN = "Python's own"
COLLECTIONS: Mapping[str, tuple[int, int, int] | None] = {
    PYTHONS_OWN: None,
    "frozen, 700, 10, 10": (700, 10, 10),
    "frozen, 5,000, 10, 10": (5_000, 10, 10),
    "frozen, 10,000, 10, 10": (10_000, 10, 10),
    "frozen, 50,000, 10, 10": (50_000, 10, 10),
}
"""What happens when the process has started: the thresholds of the three generations."""

# To import a module that is None here fails as if it was not installed.
_WITHOUT_EXTRA = "import sys; sys.modules['uvloop'] = sys.modules['httptools'] = None; "
_SERVERS = {
    "a bare application": "from uvicorn.main import main; main(['bench.bare:app', '--no-access-log', "
    "'--log-level=warning', '--no-server-header', '--port={port}'])",
    "Keygraph": "from keygraph_server.cli import main; import sys; sys.argv[1:] = ['serve', '--port={port}']; main()",
}


class Server:
    """A server in another process, and clients of it that keep their connections."""

    def __init__(self, code: str, store: Path, **settings: str) -> None:
        with socket.create_server(("127.0.0.1", 0)) as found:
            self.port = found.getsockname()[1]
        environment = {
            **os.environ,
            "KEYGRAPH_STORE": f"sqlite:{store}",
            "KEYGRAPH_LOG_LEVEL": "warning",
            **settings,
        }
        words = [sys.executable, "-c", code.format(port=self.port)]
        self.process = subprocess.Popen(words, env=environment, stdout=subprocess.DEVNULL)

    @contextmanager
    def running(self) -> Iterator[Server]:
        """Waits until it serves, and ends it in the end."""
        try:
            while True:
                try:
                    self.ask(request(TYPENAME), 1, 1)
                    break
                except ConnectionRefusedError:
                    time.sleep(0.05)
            yield self
        finally:
            self.process.terminate()
            self.process.wait()

    def serving(self) -> list[int]:
        """The processes that serve: this one, or its workers."""
        file = Path(f"/proc/{self.process.pid}/task/{self.process.pid}/children")
        children = [int(number) for number in file.read_text().split()]
        workers = [
            child for child in children if b"spawn_main" in Path(f"/proc/{child}/cmdline").read_bytes()
        ]
        return workers or [self.process.pid]

    def processor_seconds(self) -> float:
        """What the processes that serve have used so far."""
        ticks = 0
        for number in self.serving():
            fields = Path(f"/proc/{number}/stat").read_text().rpartition(")")[2].split()
            ticks += int(fields[11]) + int(fields[12])
        return ticks / os.sysconf("SC_CLK_TCK")

    def memory(self) -> float:
        """The megabytes that one process that serves has for itself alone."""
        numbers = self.serving()
        kilobytes = sum(
            int(found[1])
            for number in numbers
            for found in re.finditer(
                r"^Private_\w+: +(\d+) kB", Path(f"/proc/{number}/smaps_rollup").read_text(), re.MULTILINE
            )
        )
        return kilobytes / 1024 / len(numbers)

    def ask(self, sent: bytes, count: int, connections: int = CONNECTIONS) -> bytes:
        """Sends a request so many times, one on each connection at a time; the last answer's body."""
        body = b""
        with ExitStack() as opened:
            sockets = [
                opened.enter_context(socket.create_connection(("127.0.0.1", self.port)))
                for _ in range(connections)
            ]
            for _ in range(max(1, count // connections)):
                for each in sockets:
                    each.sendall(sent)
                for each in sockets:
                    body = _answer(each)
        return body

    def microseconds(self, sent: bytes, count: int) -> float:
        """The processor time of one request."""
        before = self.processor_seconds()
        self.ask(sent, count)
        return (self.processor_seconds() - before) / count * 1e6


def request(query: str, variables: Mapping[str, Any] | None = None) -> bytes:
    """A request as a browser's client sends it."""
    body = json.dumps({"query": query, "variables": variables or {}}).encode()
    lines = (
        "POST /graphql HTTP/1.1",
        "Host: 127.0.0.1",
        "Accept: application/graphql-response+json, application/json;q=0.9",
        "Content-Type: application/json",
        f"Content-Length: {len(body)}",
    )
    return "\r\n".join([*lines, "", ""]).encode() + body


def _answer(connection: socket.socket) -> bytes:
    received = b""
    while b"\r\n\r\n" not in received:
        received += _some(connection)
    head, _, body = received.partition(b"\r\n\r\n")
    assert head.startswith(b"HTTP/1.1 200 "), head
    found = re.search(rb"(?i)\ncontent-length: (\d+)", head)
    assert found is not None
    while len(body) < int(found[1]):
        body += _some(connection)
    return body


def _some(connection: socket.socket) -> bytes:
    some = connection.recv(1 << 16)
    if not some:
        raise ConnectionResetError("the server has closed the connection")
    return some


def per_request(store: Path) -> None:
    """What one request costs, with and without the extra."""
    asked = {
        "a bare application": [TYPENAME],
        "Keygraph": [TYPENAME, USER],
    }
    least: dict[tuple[str, str, bool], float] = {}
    with ExitStack() as opened:
        servers = {
            (name, is_fast): opened.enter_context(
                Server(code if is_fast else _WITHOUT_EXTRA + code, store).running()
            )
            for name, code in _SERVERS.items()
            for is_fast in (False, True)
        }
        for _ in range(TURNS):
            for (name, is_fast), server in servers.items():
                for query in asked[name]:
                    taken = server.microseconds(request(query), 2000)
                    key = (name, query, is_fast)
                    least[key] = min(taken, least.get(key, taken))
    rows = [
        (
            f"{name}: `{query}`" if name == "Keygraph" else name,
            f"{least[name, query, False]:.0f}",
            f"{least[name, query, True]:.0f}",
        )
        for name in _SERVERS
        for query in asked[name]
    ]
    _print_table(("processor µs a request", "asyncio, h11", "uvloop, httptools"), rows)


async def collections(store: Store) -> None:
    """What collecting garbage costs a nested operation, by its settings."""
    service = Service(build_schema(worlds(())[0].graph), store, secret=b"of a measurement")
    variables = {"user": shape_name(SHAPE)}
    started, took = 0.0, list[float]()

    def note(phase: str, info: dict[str, int]) -> None:
        nonlocal started
        if phase == "start":
            started = time.process_time()
        else:
            took.append(time.process_time() - started)

    await service.execute(NESTED, variables)
    own = gc.get_threshold()
    gc.callbacks.append(note)
    found: dict[str, list[tuple[float, float, int, float]]] = {}
    count = 80
    for _ in range(2):
        for name, thresholds in COLLECTIONS.items():
            gc.unfreeze()
            gc.collect()
            if thresholds is not None:
                gc.freeze()
            gc.set_threshold(*(thresholds or own))
            took.clear()
            before = time.process_time()
            for _ in range(count // CONNECTIONS):
                await asyncio.gather(*(service.execute(NESTED, variables) for _ in range(CONNECTIONS)))
            whole = time.process_time() - before
            found.setdefault(name, []).append((whole, sum(took), len(took), max(took, default=0.0)))
    gc.callbacks.remove(note)
    rows = []
    for name, turns in found.items():
        whole, collecting, times, longest = (min(column) for column in zip(*turns, strict=True))
        rows.append(
            (
                name,
                f"{times / count:.2f}",
                f"{collecting / count * 1e3:.2f}",
                f"{longest * 1e3:.1f}",
                f"{whole / count * 1e3:.1f}",
            )
        )
    _print_table(("collection", "collections", "their ms", "the longest, ms", "ms an operation in all"), rows)


def workers(store: Path) -> None:
    """What several processes give and take: nested operations, as many at once as there are connections."""
    sent = request(NESTED, {"user": shape_name(SHAPE)})
    rates: dict[int, list[float]] = {}
    costs: dict[int, list[float]] = {}
    memory: dict[int, float] = {}
    count = 96
    with ExitStack() as opened:
        servers = {
            number: opened.enter_context(
                Server(_SERVERS["Keygraph"], store, KEYGRAPH_WORKERS=str(number)).running()
            )
            for number in (1, 2)
        }
        time.sleep(3)  # until the second worker is there too
        for _ in range(TURNS):
            for number, server in servers.items():
                before = time.perf_counter()
                costs.setdefault(number, []).append(server.microseconds(sent, count) / 1000)
                rates.setdefault(number, []).append(count / (time.perf_counter() - before))
        for number, server in servers.items():
            memory[number] = server.memory()
    rows = [
        (str(number), f"{max(rates[number]):.0f}", f"{min(costs[number]):.1f}", f"{memory[number]:.0f}")
        for number in servers
    ]
    _print_table(("workers", "operations a second", "processor ms an operation", "MB each"), rows)


async def compression(store: Store) -> None:
    """What gzip takes and saves, by its level."""
    service = Service(build_schema(worlds(())[0].graph), store, secret=b"of a measurement")
    answer = orjson.dumps(await service.execute(NESTED, {"user": shape_name(LARGE)}))
    rows = []
    for size in (1_400, 10_000, 100_000):
        body = (answer * (size // len(answer) + 1))[:size]
        for level in (1, 6, 9):
            small = b""
            count = 200_000 // size
            taken = []
            for _ in range(TURNS):
                before = time.process_time()
                for _ in range(count):
                    small = zlib.compress(body, level, wbits=31)
                taken.append((time.process_time() - before) / count * 1e6)
            rows.append((f"{size:,}", str(level), f"{len(small):,}", f"{min(taken):.0f}"))
    _print_table(("bytes", "level", "bytes compressed", "processor µs"), rows)


def _print_table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
    print(f"| {' | '.join(head)} |")
    print(f"| --- | {' | '.join('---:' for _ in head[1:])} |")
    for row in rows:
        print(f"| {' | '.join(row)} |")
    print(flush=True)


async def _fill(store: Path) -> None:
    world = worlds((SHAPE, LARGE))[0]
    async with open_store(f"sqlite:{store}", world.graph.table) as opened:
        await opened.send(CreateTable())
        batches = (
            (world.items[at : at + BATCH_ITEMS], None) for at in range(0, len(world.items), BATCH_ITEMS)
        )
        await write_batches(opened, batches, lambda _: None)


async def _in_process(store: Path) -> None:
    world = worlds(())[0]
    async with open_store(f"sqlite:{store}", world.graph.table) as opened:
        await collections(opened)
        await compression(opened)


def main() -> None:
    """Prints the tables of `docs/performance.md`."""
    names = ("uvicorn", "starlette", "uvloop", "httptools", "orjson")
    print(f"Python {platform.python_version()}, {', '.join(f'{name} {version(name)}' for name in names)}\n")
    with tempfile.TemporaryDirectory() as folder:
        store = Path(folder) / "shop.sqlite"
        asyncio.run(_fill(store))
        # `python -m bench.process in-process` leaves the servers away.
        if sys.argv[1:] != ["in-process"]:
            per_request(store)
            workers(store)
        asyncio.run(_in_process(store))


if __name__ == "__main__":
    main()
