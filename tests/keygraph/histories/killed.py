"""Writers in processes that are killed at any moment, and what they noted until then."""

from __future__ import annotations

import asyncio
import json
import multiprocessing
import os
import random
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from keygraph.dynamo.store import Store
from keygraph.engines.open import open_store
from tests.keygraph.histories.declared import graph
from tests.keygraph.histories.history import Event, carry_out, event_of
from tests.keygraph.histories.jobs import do_until

_TASKS, _PROCESSES = 8, 2


def events_of_killed(
    url: str, notes: Path, seed: str, kills: int, each: int, *, jobs: bool = False
) -> list[Event]:
    """What processes did to the store at the address, of which one after the other is killed.

    Each of the tasks of a process does so many transactions at most, however fast the machine is. With `jobs`, each
    process also does one job after the other.
    """
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(
        [__name__, "keygraph.engines.sqlite.engine", "keygraph.engines.dynamodb.engine"]
    )
    dice = random.Random(seed)
    running: list[tuple[Any, Path]] = []
    written: list[Path] = []
    died: dict[Path, float] = {}
    for number in range(kills):
        while len(running) < _PROCESSES:
            place = min({*range(_PROCESSES)} - {int(path.name[-1]) for _, path in running})
            path = notes / f"{number}-{place}"
            written.append(path)
            process = context.Process(
                target=_work, args=(url, path, f"{seed}-{path.name}", each, jobs), daemon=True
            )
            process.start()
            running.append((process, path))
        process, path = running.pop(dice.randrange(len(running)))
        _until_noted(process, path, dice.randint(1, 2 * _TASKS * each))
        time.sleep(dice.uniform(0, 0.005))  # which is about how long a write takes
        died[path] = _killed(process)
    died |= {path: _killed(process) for process, path in running}
    # What a process has sent to a server can be carried out a little later.
    later = 0.0 if url.startswith("sqlite:") else 5.0
    return [
        event
        for path in written
        if path.exists()
        for event in _noted(path, f"{seed}-{path.name}", died[path] + later)
    ]


def _until_noted(process: Any, path: Path, lines: int) -> None:
    while not path.exists() or path.read_bytes().count(b"\n") < lines:
        assert not process.exitcode, "a writer has failed"
        time.sleep(0.001)


def _killed(process: Any) -> float:
    process.kill()
    process.join()
    return time.monotonic()


def _noted(path: Path, seed: str, until: float) -> Iterator[Event]:
    """The events of one process. What the last ones were told is not known; nothing of it was done after some time."""
    events: dict[str, Event] = {}
    for line in path.read_text().splitlines():
        try:
            number, at, codes = json.loads(line)
        except ValueError:
            continue  # it was killed in the middle of it
        if number not in events:
            transaction, _, _ = number.rpartition("-")
            events[number] = event_of(f"{seed}-{transaction}", at)
            events[number].until = until
        elif codes is not None:
            events[number].end, events[number].codes = at, frozenset(codes)
    yield from events.values()


def _work(url: str, path: Path, seed: str, each: int, jobs: bool) -> None:
    asyncio.run(_write_on(url, path, seed, each, jobs))


async def _write_on(url: str, path: Path, seed: str, each: int, jobs: bool) -> None:
    """Writes until it is killed, or has done all, and notes each transaction before it is sent and after it was answered."""
    notes = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND)

    def note(number: str, codes: frozenset[str] | None = None) -> None:
        told = None if codes is None else sorted(codes)
        os.write(notes, f"{json.dumps([number, time.monotonic(), told])}\n".encode())

    async def sends(transaction: str, time: int, store: Store) -> None:
        event = event_of(f"{seed}-{transaction}", 0)
        note(f"{transaction}-{time}")
        await carry_out(store, event, has_lasting_marks=True)
        note(f"{transaction}-{time}", event.codes)

    async def works(task: int, store: Store) -> None:
        for turn in range(each):
            # Each once: what several unanswered sends have done could not be decided in time.
            await sends(f"{task}-{turn}", 0, store)

    done = asyncio.Event()
    async with open_store(url, graph.table) as store, asyncio.TaskGroup() as group:
        if jobs:
            # One that was killed before may have left its work in the same folder.
            group.create_task(do_until(done, store, path.with_name(f"jobs {path.name[-1]}"), seed))
        await asyncio.gather(*(works(task, store) for task in range(_TASKS)))
        done.set()
