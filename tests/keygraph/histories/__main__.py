"""Runs histories and says what is wrong with what they leave: `python -m tests.keygraph.histories 2000 --seed 1`."""

from __future__ import annotations

import argparse
import asyncio
import logging
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from moto.server import ThreadedMotoServer

from tests import dynamodb_local
from tests.keygraph.histories.history import Event
from tests.keygraph.histories.running import Faults, after_kills, in_between, with_faults


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
    given = parser.parse_args()
    told: Counter[str] = Counter()
    wrong = 0
    with _server(given.engine) as server:
        for seed in range(given.seed, given.seed + given.histories):
            with tempfile.TemporaryDirectory() as folder:
                if given.kills:
                    running = after_kills(
                        server, Path(folder), str(seed), given.kills, given.each, jobs=given.jobs
                    )
                elif given.between:
                    running = in_between(server, Path(folder), str(seed), given.between, jobs=given.jobs)
                else:
                    faults, one_by_one = Faults[given.faults.upper()], given.engine == "moto"
                    of_all = (given.writers, given.each)
                    running = with_faults(
                        server,
                        Path(folder),
                        str(seed),
                        faults,
                        *of_all,
                        one_by_one=one_by_one,
                        jobs=given.jobs,
                    )
                events, found = asyncio.run(running)
            told.update(map(_told, events))
            wrong += bool(found)
            for problem in found:
                _say(f"{seed}: {problem}")
            if not (seed - given.seed + 1) % 50:
                _say(f"{seed - given.seed + 1} histories, {wrong} wrong: {dict(told)}")
    _say(f"{given.histories} histories, {wrong} wrong: {dict(told)}")
    return bool(wrong)


def _told(event: Event) -> str:
    if event.name is not None:
        return "read"
    return "unknown" if event.codes is None else ", ".join(sorted(event.codes)) or "done"


if __name__ == "__main__":
    sys.exit(main())
