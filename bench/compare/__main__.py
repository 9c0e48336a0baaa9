"""Keygraph beside Apollo, Strawberry by hand and the floor, in one interleaved run: `make bench`.

    make bench                                       everything, into docs/performance.md; about 15 minutes
    make bench ARGS="--queries nested --rounds 1"    a look, in less than a minute; writes no page
    make bench ARGS="--queries nested,wide --servers keygraph,floor-plain --seconds 2"

DynamoDB Local stands behind a proxy that adds 4 ms to each request. First every server must give equal data for every
query, then requests and round trips are counted, then the servers take turns: round by round, query by query, at each
number of clients. Servers: keygraph, apollo, strawberry, floor-plain, floor-merged.
"""

from __future__ import annotations

import argparse
import asyncio
import difflib
import json
import os
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field

import orjson

from bench.compare import data
from bench.compare.figures import Figures
from bench.compare.load import Clients, Connection, WrongAnswerError, http_post
from bench.compare.processes import DidNotStartError, peak_memory_megabytes
from bench.compare.processes import processor_seconds as processor
from bench.compare.queries import Query, queries
from bench.compare.servers import AWS, ROOT, SERVERS, Running, Server, missing, running
from bench.measuring import filled_store
from examples.commerce import graph
from tests import dynamodb_local

CLIENTS = (1, 16)


@dataclass(frozen=True)
class Counted:
    """What one operation asked of the store."""

    requests: int
    round_trips: int


@dataclass
class Run:
    """What a run has found, by server, query and clients."""

    servers: list[Server]
    queries: list[Query]
    figures: dict[tuple[str, str, int], Figures] = field(default_factory=dict)
    counted: dict[tuple[str, str], Counted] = field(default_factory=dict)
    memory: dict[str, float] = field(default_factory=dict)


class DifferentAnswersError(Exception):
    """Two servers answer one query differently; the message shows how."""


@contextmanager
def slow_store(store_url: str) -> Iterator[int]:
    """The port of a proxy before the store; it ends with the block."""
    command = [sys.executable, "-m", "bench.compare.proxy", store_url]
    proxy = subprocess.Popen(command, cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    try:
        assert proxy.stdout is not None
        yield int(proxy.stdout.readline())
    finally:
        assert proxy.stdin is not None
        proxy.stdin.close()
        proxy.wait()


async def compare_answers(asked: Sequence[Query], servers: Sequence[Running]) -> None:
    """Raises DifferentAnswersError where a server's data are not the first one's, the order of keys aside."""
    for query in asked:
        for body in query.bodies()[:2]:
            shown = []
            for each in servers:
                connection = Connection(each.port)
                try:
                    answer = await connection.ask(http_post(each.port, each.server.path, body))
                except WrongAnswerError as error:
                    raise DifferentAnswersError(
                        f"{query.name}: {each.server.name} answers {error}"
                    ) from error
                connection.close()
                shown.append(json.dumps(orjson.loads(answer)["data"], indent=1, sort_keys=True).splitlines())
            for each, lines in zip(servers, shown, strict=True):
                if lines != shown[0]:
                    names = (servers[0].server.name, each.server.name)
                    difference = difflib.unified_diff(shown[0], lines, *names, lineterm="", n=1)
                    text = "\n".join(list(difference)[:40])
                    raise DifferentAnswersError(f"{query.name}: {names[0]} and {names[1]} differ\n{text}")


async def count(query: Query, each: Running, proxy_port: int) -> Counted:
    """Requests and round trips of one operation, what waits for what decided without regard to speed."""
    control, client = Connection(proxy_port), Connection(each.port)
    await control.ask(b"GET /-/reset?hold HTTP/1.1\r\n\r\n")
    await client.ask(http_post(each.port, each.server.path, query.bodies()[0]))
    told = orjson.loads(await control.ask(b"GET /-/counters HTTP/1.1\r\n\r\n"))
    await control.ask(b"GET /-/reset HTTP/1.1\r\n\r\n")
    control.close()
    client.close()
    return Counted(**told)


async def take_turns(
    run: Run, servers: Sequence[Running], clients: Sequence[int], rounds: int, seconds: float
) -> None:
    """Every server, query and number of clients in turn, some rounds; the first round only warms up."""
    began = time.monotonic()
    for number in range(rounds + 1):
        for query in run.queries:
            bodies = query.bodies()
            for count_ in clients:
                for each in servers:
                    if not number and count_ != clients[-1]:
                        continue
                    load = Clients(each.port, count_)
                    requests = [http_post(each.port, each.server.path, body) for body in bodies]
                    before = processor(each.pid)
                    lasting = seconds if number else seconds * each.server.warm_up
                    turn = await load.turn(requests, lasting, at_least=max(3, count_))
                    spent = processor(each.pid) - before
                    load.close()
                    if number:
                        figures = run.figures.setdefault((each.server.name, query.name, count_), Figures())
                        figures.add(spent, turn.seconds, turn.latencies)
        say(f"round {number} of {rounds}, {time.monotonic() - began:.0f} s")


async def measure(run: Run, arguments: argparse.Namespace, store_url: str) -> None:
    """Loads the table, starts the servers, and measures."""
    async with filled_store(store_url, graph, tuple(data.items())):
        with (
            slow_store(store_url) as proxy_port,
            running(run.servers, f"http://127.0.0.1:{proxy_port}") as servers,
        ):
            say("all servers listen")
            await compare_answers(run.queries, servers)
            say("their answers are equal")
            for query in run.queries:
                for each in servers:
                    run.counted[each.server.name, query.name] = await count(query, each, proxy_port)
            say("requests are counted")
            await take_turns(run, servers, arguments.clients, arguments.rounds, arguments.seconds)
            run.memory = {each.server.name: peak_memory_megabytes(each.pid) for each in servers}


def say(text: str) -> None:
    """Tells how far it is, apart from the result."""
    print(text, file=sys.stderr, flush=True)


def present(names: Sequence[str] | None) -> list[Server]:
    """Those servers of these names that can run here; says of each other one why not."""
    unknown = set(names or ()) - {server.name for server in SERVERS}
    if unknown:
        raise ValueError(f"there is no server {', '.join(sorted(unknown))}")
    found = []
    for server in SERVERS:
        if names is not None and server.name not in names:
            continue
        reason = missing(server)
        if reason:
            say(f"without {server.name}: {reason}")
        else:
            found.append(server)
    return found


def table(run: Run, clients: Sequence[int]) -> str:
    """The figures as text."""
    lines = [
        f"{'query':9} {'server':13} {'clients':>7} {'cpu ms':>9} {'p50 ms':>8} {'p95 ms':>8} {'ops/s':>8} "
        f"{'requests':>8} {'trips':>5}"
    ]
    for query in run.queries:
        for count_ in clients:
            for server in run.servers:
                shown = run.figures[server.name, query.name, count_].summary()
                told = run.counted[server.name, query.name]
                lines.append(
                    f"{query.name:9} {server.name:13} {count_:7} {shown.processor_ms:9.2f} {shown.p50_ms:8.1f} "
                    f"{shown.p95_ms:8.1f} {shown.per_second:8.1f} {told.requests:8} {told.round_trips:5}"
                )
    lines += [f"peak memory of {name}: {megabytes:.0f} MB" for name, megabytes in run.memory.items()]
    return "\n".join(lines)


def _words(text: str) -> list[str]:
    return text.split(",")


def main() -> int:
    """Measures, and prints. The exit status is 1 where it could not."""
    parser = argparse.ArgumentParser(
        "make bench", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--queries", type=_words, help="some of them, by name, with commas")
    parser.add_argument("--servers", type=_words, help="some of them, by name, with commas")
    parser.add_argument("--clients", type=lambda text: [int(word) for word in _words(text)], default=CLIENTS)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--seconds", type=float, default=1.0, help="how long a turn takes")
    arguments = parser.parse_args()
    os.environ.update(AWS)
    reason = dynamodb_local.missing()
    if reason:
        say(f"there is nothing to measure without DynamoDB Local: {reason}")
        return 1
    try:
        run = Run(present(arguments.servers), queries(arguments.queries))
        with dynamodb_local.running() as store_url:
            asyncio.run(measure(run, arguments, store_url))
    except (DifferentAnswersError, WrongAnswerError, DidNotStartError, ValueError) as error:
        say(str(error))
        return 1
    print(table(run, arguments.clients))
    return 0


if __name__ == "__main__":
    sys.exit(main())
