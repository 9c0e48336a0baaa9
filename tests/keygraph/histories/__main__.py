"""Runs histories and says what is wrong with what they leave: `python -m tests.keygraph.histories 2000 --seed 1`."""

from __future__ import annotations

import argparse
import asyncio
import gc
import logging
import sys
import tempfile
from collections import Counter
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path

from moto.server import ThreadedMotoServer

from tests import dynamodb_local
from tests.keygraph.histories.history import Event
from tests.keygraph.histories.running import Faults, after_kills, in_between, while_followed, with_faults


@contextmanager
def _server(engine: str) -> Iterator[str | None]:
    """The URL of the engine's server; None for the embedded engine."""
    if engine == "sqlite":
        yield None
    elif engine == "local":
        with dynamodb_local.running() as url:
            yield url
    else:
        logging.getLogger("werkzeug").setLevel(logging.ERROR)
        server = ThreadedMotoServer("127.0.0.1", port=0, verbose=False)
        server.start()
        yield "http://{}:{}".format(*server.get_host_and_port())
        server.stop()


def _say(text: str) -> None:
    sys.stdout.write(f"{text}\n")
    sys.stdout.flush()


def main() -> int:
    """As the command line says; 1 where anything is wrong."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("histories", type=int, nargs="?", default=100)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--engine", choices=["sqlite", "moto", "local"], default="sqlite")
    parser.add_argument("--writers", type=int, default=32)
    parser.add_argument("--each", type=int, default=4, help="What each writer does, in transactions.")
    parser.add_argument("--faults", choices=[each.name.lower() for each in Faults], default="none")
    parser.add_argument(
        "--kills", type=int, default=0, help="Kill so many processes in each history instead."
    )
    parser.add_argument(
        "--between", type=int, default=0, help="Write between the requests of so many transactions instead."
    )
    parser.add_argument(
        "--jobs", action="store_true", help="Run repairs, backfills and summaries of an old table meanwhile."
    )
    parser.add_argument(
        "--stream",
        action="store_true",
        help="Follow a table with values that the stream keeps, with so many --kills, at least one.",
    )
    parser.add_argument(
        "--at-once", type=int, default=1, help="How many histories run at once, on the embedded engine."
    )
    given = parser.parse_args()
    # What was imported stays; with the usual threshold, a history takes a fifth more of a processor.
    gc.freeze()
    gc.set_threshold(100_000, 20, 20)
    told: Counter[str] = Counter()
    wrong, done = 0, 0
    with _server(given.engine) as server:
        for happened, seed, found in _histories(given, server):
            told.update(happened)
            wrong, done = wrong + bool(found), done + 1
            for problem in found:
                _say(f"{seed}: {problem}")
            if not done % 50:
                _say(f"{done} histories, {wrong} wrong: {dict(told)}")
    _say(f"{given.histories} histories, {wrong} wrong: {dict(told)}")
    return bool(wrong)


def _histories(
    given: argparse.Namespace, server: str | None
) -> Iterator[tuple[Counter[str], int, list[str]]]:
    """Yields what has happened in each history, its seed, and what is wrong."""

    async def one(seed: int) -> tuple[Counter[str], int, list[str]]:
        with tempfile.TemporaryDirectory() as folder:
            place, faults = (server, Path(folder), str(seed)), Faults[given.faults.upper()]
            if given.stream:
                happened, found = await while_followed(*place, max(1, given.kills), faults)
                return happened, seed, found
            if given.kills:
                events, found = await after_kills(*place, given.kills, given.each, jobs=given.jobs)
            elif given.between:
                events, found = await in_between(*place, given.between, jobs=given.jobs)
            else:
                options = {"one_by_one": given.engine == "moto", "jobs": given.jobs}
                of_all = (faults, given.writers, given.each)
                events, found = await with_faults(*place, *of_all, **options)
        return Counter(map(_told, events)), seed, found

    async def several(seeds: Iterable[int]) -> list[tuple[Counter[str], int, list[str]]]:
        return await asyncio.gather(*map(one, seeds))

    # A server has one table, a wrong clock is that of the process, and what runs between requests waits for nothing.
    at_once = 1 if server is not None or given.between or given.stream else given.at_once
    end = given.seed + given.histories
    for start in range(given.seed, end, at_once):
        yield from asyncio.run(several(range(start, min(start + at_once, end))))


def _told(event: Event) -> str:
    if event.name is not None:
        return "read"
    return "unknown" if event.codes is None else ", ".join(sorted(event.codes)) or "done"


if __name__ == "__main__":
    sys.exit(main())
