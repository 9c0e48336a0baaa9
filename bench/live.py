"""Live queries of one process: `python -m bench.live [LISTENERS] [CHANGES A SECOND] [SECONDS]`.

Each listener follows one user of a SQLite file, and another process writes to the file: one change in a hundred is of a
user that somebody follows. Measured are the processor time of a change, the time from the write to the answer, the
memory of a listener, and the processor time of a change that touches nobody, with few listeners and with many. The same
queries once a second are what clients without subscriptions would send.
"""

from __future__ import annotations

import asyncio
import gc
import statistics
import subprocess
import sys
import tempfile
import time
import tracemalloc
from collections.abc import Sequence
from pathlib import Path
from random import Random
from typing import Any, NamedTuple

import orjson

from keygraph.changes.stream import StreamReader
from keygraph.dynamo.items import Item
from keygraph.dynamo.store import BatchWrite, CreateTable
from keygraph.dynamo.streams import EnableStream, StreamRecord
from keygraph.engines.sqlite.engine import open_sqlite
from keygraph.limits import LiveLimits
from keygraph.tables.bulk import write_batches
from keygraph_examples.commerce import graph
from keygraph_resolvers import OperationRequest, Service, build_schema
from keygraph_resolvers.live import Listener, LiveQueries

QUERY = "subscription ($id: ID!) { user(userId: $id) { userId name email } }"
SHARE = 100
"""One change in so many touches somebody."""
FEW = 10
ALONE = 20_000
"""How many changes that touch nobody are handled to measure one."""
BATCH = 10


def user(number: int, name: str) -> Item:
    key = f"USER#{number}"
    return {
        "PK": key,
        "SK": key,
        "userId": str(number),
        "name": name,
        "email": f"{number}@example.com",
        "Type": "User",
    }


async def written(response: dict[str, Any]) -> bytes:
    return orjson.dumps(response)


class Figures(NamedTuple):
    """What was measured, with times in seconds."""

    listeners: int
    changes: int
    messages: int
    a_change: float
    p50: float
    p99: float
    listener_bytes: float
    alone: dict[int, float]
    a_query: float
    load: float
    """The processor time of a second."""


async def _listening(
    queries: LiveQueries, numbers: Sequence[int], late: list[float]
) -> list[asyncio.Task[None]]:
    """Lets somebody follow each of these users, and waits for the first answers."""
    begun = 0
    all_there = asyncio.Event()

    async def follow(listener: Listener) -> None:
        nonlocal begun
        is_first = True
        while (answer := await listener.next()) is not None:
            name = orjson.loads(answer.text)["data"]["user"]["name"]
            del answer  # as the transports do
            if not is_first:
                late.append(time.time() - float(name))
            else:
                begun += 1
                is_first = False
                if begun == len(numbers):
                    all_there.set()

    tasks = []
    for number in numbers:
        request = OperationRequest(QUERY, {"id": str(number)})
        tasks.append(asyncio.create_task(follow(await queries.listen(request))))
    await all_there.wait()
    return tasks


async def _alone(queries: LiveQueries, users: int) -> float:
    """Returns the processor time of a change that touches nobody."""
    changes = [
        StreamRecord((), user(users + number, "a"), user(users + number, "b"), "", 0.0)
        for number in range(1_000)
    ]
    touched, began = queries.counts.touched, time.process_time()
    for _ in range(ALONE // len(changes)):
        await queries.changed(changes)
    seconds = time.process_time() - began
    if queries.counts.touched != touched:
        raise RuntimeError("somebody was touched")
    return seconds / ALONE


async def measured(file: Path, listeners: int, rate: int, seconds: float) -> Figures:
    users = listeners * 2
    async with open_sqlite(file, graph.table) as store:
        await store.send(CreateTable())
        await store.send(EnableStream())
        items = [user(number, "0") for number in range(users)]
        await write_batches(store, [(items, None)], lambda mark: None)
        service = Service(build_schema(graph, live=True), store, secret=b"x" * 32)
        limits = LiveLimits(live_operations=2 * listeners + FEW)
        late: list[float] = []
        queries = LiveQueries(service, StreamReader(store), written, limits=limits)
        few = await _listening(queries, range(FEW), late)
        alone = {FEW: await _alone(queries, users)}
        gc.collect()
        tracemalloc.start()
        before = tracemalloc.get_traced_memory()[0]
        many = await _listening(queries, range(FEW, listeners), late)
        gc.collect()
        memory = (tracemalloc.get_traced_memory()[0] - before) / max(1, listeners - FEW)
        tracemalloc.stop()
        alone[listeners] = await _alone(queries, users)
        # As a client without subscriptions would ask.
        began = time.process_time()
        for number in range(500):
            await service.execute(QUERY.replace("subscription", "query"), {"id": str(number % listeners)})
        a_query = (time.process_time() - began) / 500
        counts, late[:] = queries.counts, []
        changes_before, cpu = counts.changes, time.process_time()
        writer = await asyncio.create_subprocess_exec(
            *(
                sys.executable,
                "-m",
                "bench.live",
                "--write",
                str(file),
                str(listeners),
                str(rate),
                str(seconds),
            ),
            stdout=subprocess.DEVNULL,
        )
        await writer.wait()
        await asyncio.sleep(1.0)
        spent = time.process_time() - cpu
        changes = counts.changes - changes_before
        queries.close()
        await asyncio.gather(*few, *many)
    late.sort()
    return Figures(
        listeners,
        changes,
        len(late),
        spent / max(1, changes),
        statistics.median(late),
        late[int(0.99 * (len(late) - 1))],
        memory,
        alone,
        a_query,
        spent / seconds,
    )


async def write(file: Path, listeners: int, rate: int, seconds: float) -> None:
    """Changes users at a rate, one in a hundred of those that somebody follows."""
    random, sent, began = Random(7), 0, time.monotonic()
    async with open_sqlite(file, graph.table) as store:
        while (now := time.monotonic()) < began + seconds:
            due = int((now - began) * rate) - sent
            if due < BATCH:
                await asyncio.sleep(BATCH / rate)
                continue
            numbers = [
                random.randrange(listeners)
                if (sent + each) % SHARE == 0
                else listeners + random.randrange(listeners)
                for each in range(due)
            ]
            stamp = repr(time.time())
            await store.send(BatchWrite(puts=tuple(user(number, stamp) for number in dict.fromkeys(numbers))))
            sent += due


def report(found: Figures) -> str:
    polled = found.listeners * found.a_query
    lines = [
        f"{found.listeners:,} live queries, {found.changes:,} changes, {found.messages:,} answers sent",
        f"processor time a change: {found.a_change * 1e6:.0f} µs ({found.load:.0%} of a core)",
        f"from the write to the answer: p50 {found.p50 * 1e3:.0f} ms, p99 {found.p99 * 1e3:.0f} ms",
        f"memory a listener: {found.listener_bytes:,.0f} bytes",
        *(
            f"a change that touches nobody, with {count:,} listeners: {seconds * 1e6:.1f} µs"
            for count, seconds in found.alone.items()
        ),
        f"a query: {found.a_query * 1e6:.0f} µs, so all of them once a second: {polled:.1f} cores",
        f"live to polling once a second: {found.load / polled:.3f} of the processor time",
    ]
    return "\n".join(lines)


def main(words: Sequence[str]) -> None:
    if words[:1] == ["--write"]:
        file, listeners, rate, seconds = words[1:]
        asyncio.run(write(Path(file), int(listeners), int(rate), float(seconds)))
        return
    listeners, rate, seconds = [*words, *("10000", "1000", "20")[len(words) :]]
    with tempfile.TemporaryDirectory() as folder:
        found = asyncio.run(measured(Path(folder) / "live.sqlite", int(listeners), int(rate), float(seconds)))
    sys.stdout.write(report(found) + "\n")


if __name__ == "__main__":
    main(sys.argv[1:])
