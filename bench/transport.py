"""What a request to DynamoDB costs the process that sends it, by transport: `python -m bench.transport`.

Processor time of this process alone: the server is a stub in another one. The transports take turns, and each number is the
median of its turns, so that what else the machine does falls on all of them alike.
"""

from __future__ import annotations

import asyncio
import platform
import statistics
import time
from collections.abc import Awaitable, Callable
from contextlib import AsyncExitStack
from typing import Any

from botocore.credentials import ReadOnlyCredentials

from bench.aiohttp_pool import AiohttpPool
from bench.stub import stub
from keygraph.direct import DirectTransport
from keygraph.dynamodb import DynamoDBStore, open_dynamodb
from keygraph.signing import Signer
from keygraph.store import BatchGet, Query, Request, Store
from keygraph.table import Key, Table
from keygraph.transports import ClientTransport, TransportName

TABLE = Table("Shop", partition_key="PK", sort_key="SK")
CLIENTS = 16
TURNS = 7
ON_AIOHTTP = "direct, on aiohttp"
SECONDS = 0.5
"""How long a turn takes at least."""


def _key(number: int) -> Key:
    return (f"ORDER#{number:04}", f"PRODUCT#{number:04}")


def _typed_item(number: int) -> dict[str, object]:
    partition, sort = _key(number)
    return {
        "PK": {"S": partition},
        "SK": {"S": sort},
        "GSI1PK": {"S": sort},
        "GSI1SK": {"S": partition},
        "orderId": {"S": f"{number:04}"},
        "productId": {"S": f"{number:04}"},
        "quantity": {"N": str(number % 7 + 1)},
        "unitPrice": {"N": f"{number}.99"},
        "createdAt": {"S": "2026-11-21T12:00:00Z"},
        "gift": {"BOOL": number % 2 == 0},
        "Type": {"S": "OrderItem"},
    }


ANSWERS: dict[str, object] = {
    "Query": {
        "Items": [_typed_item(number) for number in range(20)],
        "Count": 20,
        "ScannedCount": 20,
        "ConsumedCapacity": {"TableName": "Shop", "CapacityUnits": 0.5},
    },
    "BatchGetItem": {
        "Responses": {"Shop": [_typed_item(number) for number in range(100)]},
        "UnprocessedKeys": {},
        "ConsumedCapacity": [{"TableName": "Shop", "CapacityUnits": 50.0}],
    },
    "GetItem": {"Item": _typed_item(1), "ConsumedCapacity": {"TableName": "Shop", "CapacityUnits": 0.5}},
}
REQUESTS: dict[str, Request[object]] = {
    "Query, 20 items": Query("ORDER#0001"),
    "BatchGetItem, 100 items": BatchGet(tuple(map(_key, range(100)))),
    "GetItem": BatchGet((_key(1),)),
}


def on_aiohttp(url: str) -> Store:
    """The direct transport, but with aiohttp for its connections."""

    async def credentials() -> Any:
        return ReadOnlyCredentials("local", "local", None)

    pool = AiohttpPool(url, None, connections=256, connect_seconds=2.5, read_seconds=5.0)
    return DynamoDBStore(DirectTransport(pool, Signer(url, "us-east-1"), credentials, pool_only()), TABLE)


def pool_only() -> ClientTransport:
    """Stands where other calls would go; there are none."""

    class Nobody:
        async def close(self) -> None:
            """Nothing is open."""

    return ClientTransport(Nobody())


async def measured(send: Callable[[], Awaitable[object]]) -> float:
    """Processor milliseconds per call, with some calls under way at once."""
    count, until = 0, time.perf_counter() + SECONDS

    async def client() -> None:
        nonlocal count
        while time.perf_counter() < until:
            await send()
            count += 1

    before = time.process_time()
    await asyncio.gather(*(client() for _ in range(CLIENTS)))
    return (time.process_time() - before) * 1000 / count


async def compare(url: str) -> dict[tuple[str, str], float]:
    """The median by request and transport."""
    async with AsyncExitStack() as opened:
        stores: dict[str, Store] = {
            name.value: await opened.enter_async_context(open_dynamodb(TABLE, url, transport=name))
            for name in TransportName
        }
        stores[ON_AIOHTTP] = on_aiohttp(url)
        opened.push_async_callback(stores[ON_AIOHTTP].close)
        for request in REQUESTS.values():
            first, *others = [await store.send(request) for store in stores.values()]
            assert all(answer == first for answer in others)
        found: dict[tuple[str, str], list[float]] = {}
        for _ in range(TURNS):
            for told, request in REQUESTS.items():
                for name, store in stores.items():
                    taken = await measured(lambda store=store, request=request: store.send(request))  # type: ignore[misc]  # mypy cannot infer a lambda with defaults
                    found.setdefault((told, name), []).append(taken)
        return {key: statistics.median(taken) for key, taken in found.items()}


def main() -> None:
    """Prints the table of `docs/performance.md`."""
    with stub(ANSWERS) as url:
        found = asyncio.run(compare(url))
    names = ["aioboto3", ON_AIOHTTP, "direct"]
    print(f"Python {platform.python_version()}, {CLIENTS} clients; processor ms per request\n")
    print(f"| request | {' | '.join(names)} | direct / aioboto3 |")
    print(f"| --- | {' | '.join('---:' for _ in names)} | ---: |")
    for told in REQUESTS:
        each = [found[told, name] for name in names]
        ratio = found[told, "direct"] / found[told, "aioboto3"]
        print(f"| {told} | {' | '.join(f'{taken:.3f}' for taken in each)} | {ratio:.2f} |")


if __name__ == "__main__":
    main()
