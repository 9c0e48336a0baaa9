"""A run: equal answers first, then counting, then turns."""

from __future__ import annotations

import difflib
import json
import subprocess
import sys
import time
from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass

import orjson

from bench.compare import data
from bench.compare.figures import Counted, Figures, Found, Turns
from bench.compare.load import Clients, Connection, WrongAnswerError, http_post
from bench.compare.processes import peak_memory_megabytes, processor_seconds
from bench.compare.queries import Query
from bench.compare.servers import ROOT, Running, Server, running
from bench.measuring import filled_store
from keygraph.dynamo.items import Item
from keygraph_examples.commerce import graph

_FEWEST = 3
"""The least number of operations in a turn, however long they take."""


@dataclass(frozen=True)
class Plan:
    """The measurements of a run, and their length."""

    servers: Sequence[Server]
    queries: Sequence[Query]
    clients: Sequence[int]
    rounds: int
    seconds: float


class DifferentAnswersError(Exception):
    """Two servers answer one query differently; the message shows how."""


def say(text: str) -> None:
    """Reports progress, separate from the result."""
    print(text, file=sys.stderr, flush=True)


async def measure(plan: Plan, store_url: str) -> Found:
    """Loads the table, starts the servers, and measures."""
    async with serving(plan.servers, tuple(data.items()), store_url) as (servers, proxy_port):
        await compare_answers(plan.queries, servers)
        say(f"{', '.join(each.server.name for each in servers)}: their answers are equal")
        counted = {
            (each.server.name, query.name): await count(query, each, proxy_port)
            for query in plan.queries
            for each in _of(query, servers)
        }
        turns = await take_turns(plan, servers)
        return Found(
            [
                Figures.of(server, query, clients, each, counted[server, query])
                for (server, query, clients), each in turns.items()
            ],
            {each.server.name: peak_memory_megabytes(each.pid) for each in servers},
        )


@asynccontextmanager
async def serving(
    servers: Sequence[Server], items: Sequence[Item], store_url: str
) -> AsyncIterator[tuple[list[Running], int]]:
    """Yields the servers on a table of these items, and the port of the proxy in front of the store."""
    async with filled_store(store_url, graph, items):
        with (
            _slow_store(store_url) as proxy_port,
            running(servers, f"http://127.0.0.1:{proxy_port}") as started,
        ):
            yield started, proxy_port


@contextmanager
def _slow_store(store_url: str) -> Iterator[int]:
    """Yields the port of a proxy in front of the store; it ends with the block."""
    command = [sys.executable, "-m", "bench.compare.proxy", store_url]
    proxy = subprocess.Popen(command, cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    assert proxy.stdin is not None
    assert proxy.stdout is not None
    with proxy.stdout as told:
        try:
            yield int(told.readline())
        finally:
            proxy.stdin.close()
            proxy.wait()


async def compare_answers(queries: Sequence[Query], servers: Sequence[Running]) -> None:
    """Raises DifferentAnswersError if a server's data differ from the first one's, except in the order of keys."""
    for query in queries:
        for body in query.bodies()[:2]:
            asked = _of(query, servers)
            shown = [await _shown(query, body, each) for each in asked]
            for each, lines in zip(asked, shown, strict=True):
                if lines != shown[0]:
                    names = (asked[0].server.name, each.server.name)
                    difference = difflib.unified_diff(shown[0], lines, *names, lineterm="", n=1)
                    text = "\n".join(list(difference)[:40])
                    raise DifferentAnswersError(f"{query.name}: {names[0]} and {names[1]} differ\n{text}")


def _of(query: Query, servers: Sequence[Running]) -> list[Running]:
    """The servers that answer a query."""
    return [each for each in servers if query.is_of(each.server.name)]


async def _shown(query: Query, body: bytes, each: Running) -> list[str]:
    connection = Connection(each.port)
    try:
        answer = await connection.ask(http_post(each.port, each.server.path, body))
    except WrongAnswerError as error:
        raise DifferentAnswersError(f"{query.name}: {each.server.name} answers {error}") from error
    finally:
        connection.close()
    return json.dumps(orjson.loads(answer)["data"], indent=1, sort_keys=True).splitlines()


async def count(query: Query, each: Running, proxy_port: int) -> Counted:
    """Counts the requests and round trips of one operation: what waits for what, regardless of the server's speed."""
    control, client = Connection(proxy_port), Connection(each.port)
    try:
        await control.ask(b"GET /-/reset?hold HTTP/1.1\r\n\r\n")
        await client.ask(http_post(each.port, each.server.path, query.bodies()[0]))
        told = orjson.loads(await control.ask(b"GET /-/counters HTTP/1.1\r\n\r\n"))
        await control.ask(b"GET /-/reset HTTP/1.1\r\n\r\n")
    finally:
        control.close()
        client.close()
    return Counted(**told)


async def take_turns(plan: Plan, servers: Sequence[Running]) -> dict[tuple[str, str, int], Turns]:
    """Returns turns by server, query and clients. All take turns in each round; each warms up before the first."""
    began, found = time.monotonic(), dict[tuple[str, str, int], Turns]()
    for query in plan.queries:
        for each in _of(query, servers):
            await take_turn(query, each, plan.clients[-1], plan.seconds * each.server.warm_up)
    say(f"warm after {time.monotonic() - began:.0f} s")
    for number in range(plan.rounds):
        for query in plan.queries:
            for clients in plan.clients:
                for each in _of(query, servers):
                    turns = found.setdefault((each.server.name, query.name, clients), Turns())
                    turns.add(*await take_turn(query, each, clients, plan.seconds))
        say(f"round {number + 1} of {plan.rounds} done after {time.monotonic() - began:.0f} s")
    return found


async def take_turn(
    query: Query, each: Running, clients: int, seconds: float, fewest: int = _FEWEST
) -> tuple[float, float, list[float]]:
    """Returns the server's processor time, the duration, and each operation's latency, all in seconds."""
    requests = [http_post(each.port, each.server.path, body) for body in query.bodies()]
    load = Clients(each.port, clients)
    try:
        before = processor_seconds(each.pid)
        turn = await load.turn(requests, seconds, at_least=max(fewest, clients))
        return processor_seconds(each.pid) - before, turn.seconds, turn.latencies
    except WrongAnswerError as error:
        raise WrongAnswerError(f"{query.name}: {each.server.name}: {error}") from error
    finally:
        load.close()
