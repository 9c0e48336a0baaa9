"""Runs a server under stress and checks it: faults, cancellations, kills, outages, and output that nobody reads."""

from __future__ import annotations

import asyncio
import os
import random
import signal
import time
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import orjson

from bench.reliability.clients import Asked, Client, Seen, asked_of, many
from bench.reliability.upstream import Mode, Upstream

MOST_MEGABYTES = 300.0
MOST_GROWTH = 60.0
"""The most that the memory may grow under faults and cancellations, in MB."""
RECOVERS_SECONDS = 8.0
"""The circuit breaker tries DynamoDB again every few seconds."""
MOST_LINES = 100
MOST_THREADS = 16
ENDS_SECONDS = 5.0
CLIENTS = 64
_LOGGED = 1_000
"""The operations whose log lines nobody reads: a pipe takes those of about 200."""
TYPENAME = orjson.dumps({"query": "{ __typename }"})


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
    seen = await for_seconds(seconds, lambda until: many(port, asked, CLIENTS, until))
    await upstream.become(Mode.WELL)
    recovery = await until_right(port, asked)
    return [
        answered(f"{seconds:.0f} s of 30 % faults, {CLIENTS} clients", seen),
        _grown(pid, before),
        recovered("recovery after them", recovery),
    ]


async def outages(
    port: int, pid: int, asked: Sequence[Asked], upstream: Upstream, seconds: float
) -> Outcomes:
    """DynamoDB hangs, is unreachable, answers what it never does, and comes back."""
    found = []
    before = _troubles_in_log(pid)
    for mode, name in ((Mode.HUNG, "hangs"), (Mode.GONE, "is gone"), (Mode.ODD, "answers anything")):
        await upstream.become(mode)
        seen = await for_seconds(seconds, lambda until: many(port, asked, CLIENTS, until))
        await upstream.become(Mode.WELL)
        found += [
            answered(f"DynamoDB {name} for {seconds:.0f} s, {CLIENTS} clients", seen),
            recovered(f"recovery after it {name}", await until_right(port, asked)),
        ]
    lines = _troubles_in_log(pid) - before
    return [
        *found,
        Outcome(
            "warnings and errors in the log meanwhile",
            f"at most {MOST_LINES}",
            f"{lines}",
            0 < lines <= MOST_LINES,
        ),
    ]


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
    recovery = await until_right(port, asked)
    what = f"{count:,} clients that ask and go"
    return [
        recovered(what, recovery),
        _grown(pid, before),
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
        seen, _ = await asyncio.gather(many(port, asked, 16, until), killing(until))
        return seen

    seen = await for_seconds(seconds, both)
    lost = seen.lost / max(1, killed)
    return [
        answered(f"{killed} workers killed in {seconds:.0f} s, 16 clients", seen),
        Outcome(
            "requests lost for each of them", "at most those of its clients (16)", f"{lost:.1f}", lost <= 16
        ),
        recovered("recovery after them", await until_right(port, asked)),
    ]


async def output(port: int, metrics_port: int, pid: int, asked: Sequence[Asked]) -> Outcomes:
    """Nobody reads what the server writes, and its metrics port gets half requests."""
    await asked_of(port, [TYPENAME])  # the metrics port listens too when it answers
    half = [(await asyncio.open_connection("127.0.0.1", metrics_port))[1] for _ in range(150)]
    for writer in half:
        writer.write(b"GET /metrics HTTP/1.1\r\nHost: x")
    seen, client = Seen(), Client(port)
    for number in range(_LOGGED):
        await client.ask(asked[number % len(asked)], seen)
    client.close()
    status, _ = await Client(metrics_port).answer(b"GET /metrics HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n")
    threads = max(map(_threads, processes_of(pid)))
    seconds = await asyncio.to_thread(_ended_within, pid)
    for writer in half:
        writer.transport.abort()
    return [
        answered(f"{_LOGGED:,} operations, whose log nobody reads", seen),
        Outcome(
            "threads of a process, with 150 half requests",
            f"at most {MOST_THREADS}",
            f"{threads}",
            threads <= MOST_THREADS,
        ),
        Outcome("the metrics beside them", "200", f"{status}", status == 200),
        within("its end after SIGTERM", seconds, ENDS_SECONDS),
    ]


# --- What is common -------------------------------------------------------------------------------------


async def for_seconds(seconds: float, work: Callable[[asyncio.Event], Awaitable[Seen]]) -> Seen:
    """Runs the work, and stops it after some seconds."""
    until = asyncio.Event()
    asyncio.get_running_loop().call_later(seconds, until.set)
    return await work(until)


async def until_right(port: int, asked: Sequence[Asked]) -> float:
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


def _threads(pid: int) -> int:
    return len(list(Path(f"/proc/{pid}/task").iterdir()))


def _ended_within(pid: int) -> float:
    """Returns the seconds from SIGTERM until a child process has ended; at most a minute."""
    began = time.perf_counter()
    os.kill(pid, signal.SIGTERM)
    while time.perf_counter() - began < 60:
        if os.waitid(os.P_PID, pid, os.WEXITED | os.WNOWAIT | os.WNOHANG) is not None:
            break
        time.sleep(0.02)
    return time.perf_counter() - began


def _troubles_in_log(pid: int) -> int:
    """Returns the number of warnings and errors in the server's log."""
    lines = Path(f"/proc/{pid}/fd/2").read_text(errors="replace").splitlines()
    return sum(" WARNING " in line or " ERROR " in line for line in lines)


def _serves(pid: int) -> bool:
    """Whether a process is a worker, not one that keeps track of what workers share."""
    try:
        return b"resource_tracker" not in Path(f"/proc/{pid}/cmdline").read_bytes()
    except OSError:
        return False


def _grown(pid: int, before: float) -> Outcome:
    grown = megabytes(pid) - before
    wanted = f"grows by at most {MOST_GROWTH:.0f} MB"
    return Outcome("memory after them", wanted, f"{grown:+.0f} MB", grown <= MOST_GROWTH)


def answered(what: str, seen: Seen) -> Outcome:
    told = ", ".join(f"{count:,} {code}" for code, count in sorted(seen.told.items()))
    parts = [f"{seen.right:,} right", *([told] if told else []), f"{len(seen.wrong):,} wrong"]
    if seen.lost:
        parts.insert(-1, f"{seen.lost:,} without an answer")
    found = ", ".join(parts) + (f" ({seen.wrong[0]})" if seen.wrong else "")
    return Outcome(
        what, "each answer is right, or says what is wrong", found, seen.answers > 0 and not seen.wrong
    )


def recovered(what: str, seconds: float) -> Outcome:
    return within(what, seconds, RECOVERS_SECONDS, "right answers ")


def within(what: str, seconds: float, most: float, wanted: str = "") -> Outcome:
    return Outcome(what, f"{wanted}within {most:.0f} s", f"{seconds:.1f} s", seconds <= most)
