"""Keygraph beside Apollo, Strawberry by hand and the floor, in one interleaved run.

    make bench                                       everything, into docs/performance.md; about 15 minutes
    make bench ARGS="--queries nested --rounds 1"    a look, in less than a minute; writes no page
    make bench ARGS="--queries nested,wide --servers keygraph,floor-plain --clients 16 --seconds 2"
    make bench-quick                                 Keygraph and the floor, against the last figures; two minutes

DynamoDB Local stands behind a proxy that adds 4 ms to each request. First every server must give equal data for every
query, then requests and round trips are counted, then the servers take turns: round by round, query by query, at each
number of clients. Processor time is that of the server's process and its children.

Servers: keygraph, apollo, strawberry, floor-plain, floor-merged. The settings of Keygraph are the environment's
(`KEYGRAPH_TRANSPORT=aioboto3 make bench …`), otherwise their defaults but for the deadline: with 16 clients, DynamoDB Local
can take longer than that.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import sys
from collections.abc import Sequence
from importlib import import_module
from pathlib import Path

import orjson

from bench.compare.figures import Found
from bench.compare.load import WrongAnswerError
from bench.compare.machine import told
from bench.compare.processes import DidNotStartError
from bench.compare.queries import queries
from bench.compare.report import page_part, quick_ratios, quick_table, terminal_table
from bench.compare.servers import AWS, KEYGRAPH, PLAIN, ROOT, SERVERS, Server, missing
from bench.compare.turns import DifferentAnswersError, Plan, measure, say
from bench.pages import with_part
from tests import dynamodb_local

PAGE = ROOT / "docs" / "performance.md"
PLOT = ROOT / "docs" / "performance-servers.svg"
LAST = ROOT / ".bench" / "quick.json"
"""The ratios of the last quick run. Ignored by git, because they are this machine's."""
_NAMES = {server.name: server.shown_name for server in SERVERS}


def present(names: Sequence[str] | None) -> list[Server]:
    """Returns the servers of these names that can run here; prints why each other one cannot. Raises ValueError for an
    unknown name."""
    known = {server.name: server for server in SERVERS}
    unknown = [name for name in names or () if name not in known]
    if unknown:
        raise ValueError(f"there is no server {', '.join(unknown)}: choose from {', '.join(known)}")
    found = []
    for name in names or known:
        reason = missing(known[name])
        if reason:
            say(f"without {name}: {reason}")
        else:
            found.append(known[name])
    return found


def write_page(found: Found) -> None:
    """Writes this run's part of the page, and the plot."""
    # Imported here, so that everything else works without the `bench` extra.
    from bench.compare.plot import write_plot

    about = [(query.name, query.about) for query in queries()]
    text = page_part(found, _NAMES, about, told(found.servers), PLOT.name)
    PAGE.write_text(with_part(PAGE.read_text("utf-8"), "servers", text), "utf-8")
    write_plot(found, _NAMES, PLOT)
    say(f"written: {PAGE.relative_to(ROOT)}, {PLOT.relative_to(ROOT)}")


def compare_with_last(found: Found, file: Path) -> str:
    """Returns the table of a quick run, and saves its ratios for the next one."""
    last: dict[str, float] = orjson.loads(file.read_bytes()) if file.exists() else {}
    file.parent.mkdir(exist_ok=True)
    file.write_bytes(orjson.dumps(last | quick_ratios(found)))
    return quick_table(found, last)


def _words(text: str) -> list[str]:
    return text.split(",")


def _numbers(text: str) -> list[int]:
    return sorted(map(int, _words(text)))


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        "make bench", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--queries", type=_words, help="some of them, by name, with commas")
    parser.add_argument("--servers", type=_words, help="some of them, by name, with commas")
    parser.add_argument("--clients", type=_numbers, help="how many at once (1,16)")
    parser.add_argument("--rounds", type=int, help="how often all take turns (4)")
    parser.add_argument("--seconds", type=float, help="how long a turn takes at least (1)")
    parser.add_argument("--quick", action="store_true", help="what `make bench-quick` does")
    arguments = parser.parse_args()
    chosen = vars(arguments)
    # A run with chosen parts is a quick look, not the run that the page shows.
    arguments.is_whole = not any(chosen.values())
    quick = {"servers": [KEYGRAPH.name, PLAIN.name], "clients": [16], "rounds": 2, "seconds": 0.7}
    usual = {"servers": None, "clients": [1, 16], "rounds": 4, "seconds": 1.0}
    for name, value in (quick if arguments.quick else usual).items():
        if chosen[name] is None:
            setattr(arguments, name, value)
    return arguments


def main() -> int:
    """Measures, prints, and writes the page after a complete run. Returns the exit status: 1 if it failed."""
    arguments = _arguments()
    os.environ.update(AWS)
    if arguments.is_whole:
        # The plots need the `bench` extra. If it is missing, fail before everything is measured.
        import_module("bench.compare.plot")
    try:
        plan = Plan(
            present(arguments.servers),
            queries(arguments.queries),
            arguments.clients,
            arguments.rounds,
            arguments.seconds,
        )
        reason = dynamodb_local.missing()
        if reason:
            say(f"there is nothing to measure without DynamoDB Local: {reason}")
            return 1
        with dynamodb_local.running() as store_url:
            found = asyncio.run(measure(plan, store_url))
    except (DifferentAnswersError, DidNotStartError, ValueError, WrongAnswerError) as error:
        say(str(error))
        return 1
    print(compare_with_last(found, LAST) if arguments.quick else terminal_table(found), end="")
    if arguments.is_whole:
        write_page(found)
    return 0


if __name__ == "__main__":
    sys.exit(main())
