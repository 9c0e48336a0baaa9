"""Runs a server under stress and checks it: faults, cancellations, kills, outages and attacks."""

from __future__ import annotations

import asyncio
import os
import random
import signal
import time
from collections.abc import Awaitable, Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from multiprocessing import get_context
from pathlib import Path

import orjson

from bench.compare.load import http_post
from bench.reliability.clients import Asked, Client, Seen, asked_of, many
from bench.reliability.upstream import Mode, Upstream

MOST_MEGABYTES = 300.0
MOST_GROWTH = 60.0
"""The most that the memory may grow under faults and cancellations, in MB."""
RECOVERS_SECONDS = 8.0
"""The circuit breaker tries DynamoDB again every few seconds."""
P99_SECONDS = 0.1
CLIENTS = 64
_LARGE_USER = (
    'mutation ($name: String!) { createUser(input: { userId: "large", name: $name, email: "e", userType: CUSTOMER, '
    'createdAt: "2024-01-01T00:00:00Z" }) { user { userId } } }'
)
_TYPENAME = orjson.dumps({"query": "{ __typename }"})


@dataclass(frozen=True)
class Outcome:
    """One line of the report."""

    what: str
    wanted: str
    found: str
    holds: bool


Outcomes = list[Outcome]


def processes_of(pid: int) -> list[int]:
    """Returns the process and those that it has started."""
    children = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
    return [pid, *(each for child in children for each in processes_of(int(child)))]


def megabytes(pid: int) -> float:
    """Returns the memory of the largest process of a server."""
    found = []
    for each in processes_of(pid):
        for line in Path(f"/proc/{each}/status").read_text().splitlines():
            if line.startswith("VmRSS:"):
                found.append(int(line.split()[1]) / 1024)
    return max(found)


async def faults(port: int, pid: int, asked: Sequence[Asked], upstream: Upstream, seconds: float) -> Outcomes:
    """Three requests to DynamoDB of ten fail while many clients ask."""
    before = megabytes(pid)
    await upstream.become(Mode.FAULTS)
    seen = await _for(seconds, lambda until: many(port, asked, CLIENTS, until))
    await upstream.become(Mode.WELL)
    recovery = await _until_right(port, asked)
    grown = megabytes(pid) - before
    return [
        _answers(f"{seconds:.0f} s of 30 % faults, {CLIENTS} clients", seen),
        Outcome(
            "memory after them",
            f"grows by at most {MOST_GROWTH:.0f} MB",
            f"{grown:+.0f} MB",
            grown <= MOST_GROWTH,
        ),
        _recovered("recovery after them", recovery),
    ]


async def outages(port: int, asked: Sequence[Asked], upstream: Upstream, seconds: float) -> Outcomes:
    """DynamoDB hangs, is unreachable, and comes back."""
    found = []
    for mode, name in ((Mode.HUNG, "hangs"), (Mode.GONE, "is gone")):
        await upstream.become(mode)
        seen = await _for(seconds, lambda until: many(port, asked, CLIENTS, until))
        await upstream.become(Mode.WELL)
        found += [
            _answers(f"DynamoDB {name} for {seconds:.0f} s, {CLIENTS} clients", seen),
            _recovered(f"recovery after it {name}", await _until_right(port, asked)),
        ]
    return found


async def cancellations(port: int, pid: int, asked: Sequence[Asked], count: int) -> Outcomes:
    """Clients ask and disconnect, each after a different time."""
    choose, left = random.Random(1), count
    before = megabytes(pid)

    async def leaving() -> None:
        nonlocal left
        while left > 0:
            left -= 1
            _reader, writer = await asyncio.open_connection("127.0.0.1", port)
            writer.write(choose.choice(asked).request)
            await asyncio.sleep(choose.random() * 0.02)
            writer.transport.abort()

    await asyncio.gather(*(leaving() for _ in range(32)))
    recovery = await _until_right(port, asked)
    grown = megabytes(pid) - before
    what = f"{count:,} clients that ask and go"
    return [
        _recovered(what, recovery),
        Outcome(
            "memory after them",
            f"grows by at most {MOST_GROWTH:.0f} MB",
            f"{grown:+.0f} MB",
            grown <= MOST_GROWTH,
        ),
    ]


async def kills(port: int, pid: int, asked: Sequence[Asked], seconds: float) -> Outcomes:
    """Workers are killed (SIGKILL) while clients ask. Requests in a killed worker are lost; no others are."""
    killed = 0

    async def killing(until: asyncio.Event) -> None:
        nonlocal killed
        while not until.is_set():
            await asyncio.sleep(3)
            workers = [each for each in processes_of(pid) if each != pid and _serves(each)]
            if len(workers) > 1:
                os.kill(workers[killed % len(workers)], signal.SIGKILL)
                killed += 1

    async def both(until: asyncio.Event) -> Seen:
        killer = asyncio.create_task(killing(until))
        seen = await many(port, asked, 16, until)
        await killer
        return seen

    seen = await _for(seconds, both)
    lost = seen.lost / max(1, killed)
    return [
        _answers(f"{killed} workers killed in {seconds:.0f} s, 16 clients", seen),
        Outcome(
            "requests lost for each of them", "at most those of its clients (16)", f"{lost:.1f}", lost <= 16
        ),
        _recovered("recovery after them", await _until_right(port, asked)),
    ]


async def attacks(port: int, pid: int, seconds: float) -> Outcomes:
    """Hostile clients attack; another client asks as usual."""
    highest = 0.0
    [plain] = await asked_of(port, [_TYPENAME])

    async def watching(until: asyncio.Event) -> None:
        nonlocal highest
        while not until.is_set():
            highest = max(highest, megabytes(pid))
            await asyncio.sleep(0.2)

    until = asyncio.Event()
    hostile = [asyncio.create_task(_again(attack, port, until)) for attack in _ATTACKS for _ in range(2)]
    hostile.append(asyncio.create_task(watching(until)))
    # In a separate process: here it would wait for the attackers, not for the server.
    with ProcessPoolExecutor(1, get_context("spawn")) as beside:
        seen = await asyncio.get_running_loop().run_in_executor(beside, _asking, port, plain, seconds)
    until.set()
    await asyncio.gather(*hostile)
    p99 = seen.slowest()
    return [
        _answers(f"another client during {seconds:.0f} s of attacks", seen),
        Outcome(
            "its slowest answers (p99)",
            f"under {P99_SECONDS * 1000:.0f} ms",
            f"{p99 * 1000:.0f} ms",
            p99 < P99_SECONDS,
        ),
        Outcome(
            "memory of a worker during the attacks",
            f"under {MOST_MEGABYTES:.0f} MB",
            f"{highest:.0f} MB at most",
            highest < MOST_MEGABYTES,
        ),
    ]


def _asking(port: int, asked: Asked, seconds: float) -> Seen:
    """Returns the results of a client that asks again and again for some seconds."""

    async def ask(until: asyncio.Event) -> Seen:
        seen, client = Seen(), Client(port)
        while not until.is_set():
            await client.ask(asked, seen)
            await asyncio.sleep(0.02)
        client.close()
        return seen

    return asyncio.run(_for(seconds, ask))


# --- Attacks --------------------------------------------------------------------------------------------


async def _never_reads(port: int) -> None:
    """Sends requests and reads no answer."""
    with _no_receiving(port) as writer_of:
        _, writer = await writer_of
        request = http_post(port, "/graphql", _TYPENAME) * 100
        async with asyncio.timeout(3):
            while not writer.is_closing():
                writer.write(request)
                await writer.drain()


async def _large_and_never_read(port: int) -> None:
    """Requests answers of 7 MB on many connections, and reads none."""
    name = "n" * 380_000
    created = orjson.dumps({"query": _LARGE_USER, "variables": {"name": name}})
    client = Client(port)
    await client.answer(http_post(port, "/graphql", created))  # the second time it is there already
    client.close()
    names = " ".join(f'a{number}: user(userId: "large") {{ name again: name }}' for number in range(9))
    request = http_post(port, "/graphql", orjson.dumps({"query": f"{{ {names} }}"}))
    with ExitStack() as opened:
        for _ in range(32):
            _, writer = await opened.enter_context(_no_receiving(port))
            writer.write(request)
        await asyncio.sleep(2)


async def _half_heads(port: int) -> None:
    """Opens connections that never send a complete head."""
    writers = [(await asyncio.open_connection("127.0.0.1", port))[1] for _ in range(50)]
    for writer in writers:
        writer.write(b"POST /graphql HTTP/1.1\r\nHost: x\r\n")
    await asyncio.sleep(2)
    for writer in writers:
        writer.transport.abort()


async def _long_head(port: int) -> None:
    _, writer = await asyncio.open_connection("127.0.0.1", port)
    async with asyncio.timeout(3):
        while not writer.is_closing():
            writer.write(b"X-Long: " + b"x" * 60_000 + b"\r\n")
            await writer.drain()


async def _half_bodies(port: int) -> None:
    writers = [(await asyncio.open_connection("127.0.0.1", port))[1] for _ in range(20)]
    for writer in writers:
        head = b"POST /graphql HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nContent-Length: 1000000\r\n\r\n"
        writer.write(head + b" " * 900_000)
    await asyncio.sleep(2)
    for writer in writers:
        writer.transport.abort()


def _documents() -> Iterator[bytes]:
    bomb = "".join(f"fragment F{n} on Query {{ ...F{n + 1} ...F{n + 1} }} " for n in range(30))
    yield b"{ ...F0 } " + bomb.encode() + b"fragment F30 on Query { __typename }"
    yield b"{ " + b" ".join(b"a%d: __typename" % n for n in range(20_000)) + b" }"
    yield b"{ " * 5_000 + b"}" * 5_000
    yield b"{ __schema { types { " + b"fields { type { " * 20 + b"name" + b" } }" * 20 + b" } } }"


async def _hostile_documents(port: int) -> None:
    client = Client(port)
    for document in _documents():
        await client.answer(http_post(port, "/graphql", orjson.dumps({"query": document.decode()})))
    # Each with different variables: nothing of them may be kept.
    for number in range(50):
        query = "query ($x: String) { __typename @include(if: true) }"
        body = orjson.dumps({"query": query, "variables": {"x": f"{number}" + "x" * 100_000}})
        await client.answer(http_post(port, "/graphql", body))
    client.close()


_ATTACKS: Sequence[Callable[[int], Awaitable[None]]] = (
    _never_reads,
    _large_and_never_read,
    _half_heads,
    _long_head,
    _half_bodies,
    _hostile_documents,
)


@contextmanager
def _no_receiving(port: int) -> Iterator[Awaitable[tuple[asyncio.StreamReader, asyncio.StreamWriter]]]:
    """Yields a connection whose answers are not read; it ends with the block."""
    opening = asyncio.ensure_future(asyncio.open_connection("127.0.0.1", port, limit=1))
    try:
        yield opening
    finally:
        if opening.done() and not opening.cancelled() and opening.exception() is None:
            opening.result()[1].transport.abort()


async def _again(attack: Callable[[int], Awaitable[None]], port: int, until: asyncio.Event) -> None:
    while not until.is_set():
        try:
            await attack(port)
        except (OSError, EOFError, TimeoutError, ValueError):
            await asyncio.sleep(0.05)


# --- What is common -------------------------------------------------------------------------------------


async def _for(seconds: float, work: Callable[[asyncio.Event], Awaitable[Seen]]) -> Seen:
    """Runs the work, and stops it after some seconds."""
    until = asyncio.Event()
    asyncio.get_running_loop().call_later(seconds, until.set)
    return await work(until)


async def _until_right(port: int, asked: Sequence[Asked]) -> float:
    """Returns the seconds until twenty answers in a row are right; infinity if that takes more than a minute."""
    began, client = time.perf_counter(), Client(port)
    while time.perf_counter() - began < 60:
        at, seen = time.perf_counter() - began, Seen()
        for number in range(20):
            await client.ask(asked[number % len(asked)], seen)
            if seen.right != number + 1:
                break
        else:
            client.close()
            return at
        await asyncio.sleep(0.05)
    return float("inf")


def _serves(pid: int) -> bool:
    """Whether a process is a worker, not one that keeps track of what workers share."""
    try:
        return b"resource_tracker" not in Path(f"/proc/{pid}/cmdline").read_bytes()
    except OSError:
        return False


def _answers(what: str, seen: Seen) -> Outcome:
    told = ", ".join(f"{count:,} {code}" for code, count in sorted(seen.told.items()))
    parts = [f"{seen.right:,} right", *([told] if told else []), f"{len(seen.wrong):,} wrong"]
    if seen.lost:
        parts.insert(-1, f"{seen.lost:,} without an answer")
    found = ", ".join(parts) + (f" ({seen.wrong[0]})" if seen.wrong else "")
    return Outcome(
        what, "each answer is right, or says what is wrong", found, seen.answers > 0 and not seen.wrong
    )


def _recovered(what: str, seconds: float) -> Outcome:
    return Outcome(
        what,
        f"right answers within {RECOVERS_SECONDS:.0f} s",
        f"{seconds:.1f} s",
        seconds <= RECOVERS_SECONDS,
    )
