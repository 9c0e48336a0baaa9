"""Hostile clients: what they send, and what another client notices of it."""

from __future__ import annotations

import asyncio
import random
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from contextlib import asynccontextmanager
from functools import partial
from itertools import islice, repeat
from multiprocessing import get_context

import orjson

from bench.compare.load import http_post
from bench.reliability import crowd
from bench.reliability.clients import Asked, Client, Seen, asked_of, processor_waits
from bench.reliability.scenarios import (
    MOST_MEGABYTES,
    TYPENAME,
    Outcome,
    Outcomes,
    answered,
    for_seconds,
    megabytes,
    recovered,
    until_right,
)
from bench.reliability.upstream import Mode, Upstream
from keygraph import open_store
from keygraph.dynamo.store import BatchGet
from keygraph_examples.social import graph

P99_SECONDS = 0.1
_HEALTH = b"GET /healthz HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n"
_MEGABYTE = 1_000_000
_UNFINISHED = b'[{"query":"'.ljust(_MEGABYTE, b"x")
"""JSON that does not end."""
_WIDE = ('{"' + "x" * 900_000 + "\N{GRINNING FACE}").encode()
"""The same, in whose text one character makes all of them four bytes wide."""
_SMALL_VALUES = b'{"query":"{ __typename }","variables":{"a":[' + b"[]," * 333_000 + b"[]]}}"
_READ = orjson.dumps({"query": '{ user(userId: "large") { name } }'})
_LARGE_USER = (
    'mutation ($name: String!) { createUser(input: { userId: "large", name: $name, email: "e", userType: CUSTOMER, '
    'createdAt: "2024-01-01T00:00:00Z" }) { user { userId } } }'
)


async def attacks(port: int, pid: int, seconds: float) -> Outcomes:
    """Hostile clients attack; another client asks as usual."""
    plain = await asked_of(port, [TYPENAME])
    hostile = [partial(again, attack, port) for attack in _ATTACKS for _ in range(2)]
    return await under_attack(port, pid, seconds, f"{seconds:.0f} s of attacks", hostile, plain)


async def crowds(port: int, pid: int, seconds: float, store_url: str) -> Outcomes:
    """Hundreds of clients of one address send operations that take long; a client of another address asks as usual.

    What DynamoDB Local takes meanwhile to read the item that the client asks for is not the server's time: all clients
    wait for one process, which shares the processors with everything else.
    """
    outcomes: Outcomes = []
    store = None if store_url.startswith("sqlite:") else store_url
    usual = [*await asked_of(port, [crowd.SMALL]), *await without_store(port)]
    for name, body_of in crowd.ATTACKS.items():
        requests = [http_post(port, "/graphql", body_of(number)) for number in range(crowd.CLIENTS)]
        attacks = [
            partial(_resets, request) if name == crowd.RESETS else partial(_asks, [request])
            for request in requests
        ]
        hostile = [partial(again, attack, port) for attack in attacks]
        what = f"{seconds:.0f} s of {crowd.CLIENTS} clients with {name}"
        outcomes += await under_attack(port, pid, seconds, what, hostile, usual, store)
    return outcomes


async def bodies(port: int, pid: int, share: float) -> Outcomes:
    """Large bodies that are refused, one after the other on one connection; then bodies of many small values."""
    outcomes: Outcomes = []
    for name, body, most in (
        ("1 MB of unfinished JSON", _UNFINISHED, 1_500),
        ("900 KB of JSON with an emoji in a key", _WIDE, 200),
    ):
        count, client, refused = max(100, int(most * share)), Client(port), 0
        async with _highest_memory(pid) as highest:
            for _ in range(count):
                refused += (await client.answer(http_post(port, "/graphql", body)))[0] == 400
        client.close()
        what = f"{count:,} bodies of {name}"
        outcomes += [
            Outcome(what, "refused", f"{refused:,} of {count:,}", refused == count),
            _memory(max(highest)),
        ]
    seconds = max(5.0, 10.0 * share)
    hostile = [partial(again, partial(_asks, [http_post(port, "/graphql", _SMALL_VALUES)]), port)] * 8
    what = f"{seconds:.0f} s of 8 clients with 1 MB of small values"
    return outcomes + await under_attack(port, pid, seconds, what, hostile, await without_store(port))


async def floods(port: int, pid: int, seconds: float) -> Outcomes:
    """New documents, each another one; and many addresses, each with one request at a time."""
    outcomes: Outcomes = []
    most = 1_000_000
    numbers = [range(most * each, most * (each + 1)) for each in range(40)]
    documents = [partial(_asks, map(partial(_new_document, port), each)) for each in numbers]
    request = http_post(port, "/graphql", TYPENAME)
    addresses = [partial(_asks, repeat(request), address=f"127.0.1.{each}") for each in range(1, 101)]
    for name, attacks in (
        ("40 clients with new documents of 2 KB", documents),
        ("100 addresses with one request at a time", addresses),
    ):
        hostile = [partial(again, attack, port) for attack in attacks]
        what = f"{seconds:.0f} s of {name}"
        outcomes += await under_attack(port, pid, seconds, what, hostile, await without_store(port))
    return outcomes


def _new_document(port: int, number: int) -> bytes:
    fields = "orderId total items(first: 3) { edges { quantity node { name price } } }"
    orders = " ".join(f"n{each}: orders(first: {each + 1}) {{ nodes {{ {fields} }} }}" for each in range(14))
    query = f'query Q{number} {{ user(userId: "U0001") {{ name email {orders} }} }} #{"x" * 500}'
    return http_post(port, "/graphql", orjson.dumps({"query": query}))


async def large_answers(port: int, pid: int, upstream: Upstream, share: float) -> Outcomes:
    """DynamoDB answers with 2 GB."""
    usual, right = await without_store(port), await asked_of(port, [_READ])
    seconds = max(5.0, 10.0 * share)
    hostile = [partial(again, partial(_asks, [http_post(port, "/graphql", _READ)]), port)] * 8
    before = upstream.requests
    await upstream.become(Mode.LARGE)
    what = f"{seconds:.0f} s of answers of 2 GB from DynamoDB"
    outcomes = await under_attack(port, pid, seconds, what, hostile, usual)
    await upstream.become(Mode.WELL)
    count = upstream.requests - before
    return [*outcomes, recovered(f"recovery after {count:,} of them", await until_right(port, right))]


async def without_store(port: int) -> list[Asked]:
    """Requests that read nothing, with their right answers."""
    health = Client(port)
    asked = Asked(_HEALTH, (await health.answer(_HEALTH))[1])
    health.close()
    return [*await asked_of(port, [TYPENAME]), asked]


@asynccontextmanager
async def _highest_memory(pid: int) -> AsyncIterator[list[float]]:
    """Yields a list to which the memory of the server is added five times a second."""
    found = [megabytes(pid)]

    async def watch() -> None:
        while True:
            await asyncio.sleep(0.2)
            found.append(megabytes(pid))

    watching = asyncio.create_task(watch())
    try:
        yield found
    finally:
        watching.cancel()


def _memory(highest: float) -> Outcome:
    return Outcome(
        "memory of a worker meanwhile",
        f"under {MOST_MEGABYTES:.0f} MB",
        f"{highest:.0f} MB at most",
        highest < MOST_MEGABYTES,
    )


async def _asks(requests: Iterable[bytes], port: int, address: str = "127.0.0.1") -> None:
    """Sends up to 20 of the requests on a connection, each when the last one is answered."""
    client = Client(port, address)
    try:
        for request in islice(requests, 20):
            await client.answer(request)
    finally:
        client.close()


async def _resets(request: bytes, port: int) -> None:
    """Sends a request from one of two addresses, and resets the connection within 0.9 s."""
    own = f"127.0.0.{random.choice('13')}", 0
    _, writer = await asyncio.open_connection("127.0.0.1", port, local_addr=own)
    writer.write(request)
    await asyncio.sleep(random.random() * 0.9)
    writer.transport.abort()


async def under_attack(
    port: int,
    pid: int,
    seconds: float,
    what: str,
    hostile: Sequence[Callable[[asyncio.Event], Awaitable[None]]],
    usual: Sequence[Asked],
    store_url: str | None = None,
) -> Outcomes:
    """Hostile clients attack, while a client of another address sends each of the usual requests. The first of them reads
    from the store at the address, if there is one."""
    until, loop = asyncio.Event(), asyncio.get_running_loop()
    attacking = [asyncio.ensure_future(each(until)) for each in hostile]
    # In separate processes: here they would wait for the attackers, not for the server.
    with ProcessPoolExecutor(len(usual) + 1, get_context("spawn")) as beside:
        async with _highest_memory(pid) as highest:
            asking = [loop.run_in_executor(beside, _asking, port, pid, each, seconds) for each in usual]
            if store_url is not None:
                asking.append(loop.run_in_executor(beside, _reading, store_url, seconds))
            found = await asyncio.gather(*asking)
    of_store = 0.0 if store_url is None else found.pop().slowest("own_seconds")
    until.set()
    await asyncio.wait(attacking, timeout=5)
    for task in attacking:
        task.cancel()
    await asyncio.gather(*attacking, return_exceptions=True)
    seen = Seen()
    for each in found:
        seen.add(each)
    first, *others = (each.slowest("own_seconds") for each in found)
    own, with_waits = max([first - of_store, *others]), max(each.slowest() for each in found)
    beside_store = f", of which up to {of_store * 1000:.0f} ms are the store's" if of_store else ""
    return [
        answered(f"another client during {what}", seen),
        Outcome(
            "its slowest answers (p99)",
            f"under {P99_SECONDS * 1000:.0f} ms",
            f"{own * 1000:.0f} ms, and {with_waits * 1000:.0f} ms with waits for a processor{beside_store}",
            own < P99_SECONDS,
        ),
        _memory(max(highest)),
    ]


def _asking(port: int, pid: int, asked: Asked, seconds: float) -> Seen:
    """Returns the results of a client that asks again and again for some seconds."""

    async def ask(until: asyncio.Event) -> Seen:
        seen, client = Seen(), Client(port, "127.0.0.2", pid)
        while not until.is_set():
            await client.ask(asked, seen)
            await asyncio.sleep(0.02)
        client.close()
        return seen

    return asyncio.run(for_seconds(seconds, ask))


def _reading(store_url: str, seconds: float) -> Seen:
    """Returns the times of reading the item of the small query from the store itself, again and again."""

    async def read(until: asyncio.Event) -> Seen:
        seen = Seen()
        async with open_store(store_url, graph.table) as store:
            while not until.is_set():
                waited, began = processor_waits(), time.perf_counter()
                await store.send(BatchGet((crowd.SMALL_KEY,)))
                seen.seconds.append(time.perf_counter() - began)
                seen.own_seconds.append(seen.seconds[-1] - (processor_waits() - waited))
                await asyncio.sleep(0.02)
        return seen

    return asyncio.run(for_seconds(seconds, read))


# --- Attacks --------------------------------------------------------------------------------------------


@asynccontextmanager
async def _opened(
    port: int, count: int = 1, limit: int = 65_536
) -> AsyncIterator[list[asyncio.StreamWriter]]:
    """Yields so many connections, whose answers are not read beyond the limit; they are reset at the end."""
    writers: list[asyncio.StreamWriter] = []
    try:
        for _ in range(count):
            writers.append((await asyncio.open_connection("127.0.0.1", port, limit=limit))[1])
        yield writers
    finally:
        for writer in writers:
            writer.transport.abort()


async def _writes_on(port: int, data: bytes) -> None:
    """Sends the same bytes again and again, and reads nothing."""
    async with _opened(port, limit=1) as [writer], asyncio.timeout(3):
        while not writer.is_closing():
            writer.write(data)
            await writer.drain()


async def _never_reads(port: int) -> None:
    """Sends requests and reads no answer."""
    await _writes_on(port, http_post(port, "/graphql", TYPENAME) * 100)


async def _large_and_never_read(port: int) -> None:
    """Requests answers of 7 MB on many connections, and reads none."""
    name = "n" * 380_000
    created = orjson.dumps({"query": _LARGE_USER, "variables": {"name": name}})
    client = Client(port)
    await client.answer(http_post(port, "/graphql", created))  # the second time it is there already
    client.close()
    names = " ".join(f'a{number}: user(userId: "large") {{ name again: name }}' for number in range(9))
    request = http_post(port, "/graphql", orjson.dumps({"query": f"{{ {names} }}"}))
    async with _opened(port, 32, limit=1) as writers:
        for writer in writers:
            writer.write(request)
        await asyncio.sleep(2)


async def _half_heads(port: int) -> None:
    """Opens connections that never send a complete head."""
    async with _opened(port, 50) as writers:
        for writer in writers:
            writer.write(b"POST /graphql HTTP/1.1\r\nHost: x\r\n")
        await asyncio.sleep(2)


async def _long_head(port: int) -> None:
    await _writes_on(port, b"X-Long: " + b"x" * 60_000 + b"\r\n")


async def _half_bodies(port: int) -> None:
    head = b"POST /graphql HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nContent-Length: 1000000\r\n\r\n"
    async with _opened(port, 20) as writers:
        for writer in writers:
            writer.write(head + b" " * 900_000)
        await asyncio.sleep(2)


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


async def again(attack: Callable[[int], Awaitable[None]], port: int, until: asyncio.Event) -> None:
    while not until.is_set():
        try:
            await attack(port)
        except (OSError, EOFError, TimeoutError, ValueError):
            await asyncio.sleep(0.05)
