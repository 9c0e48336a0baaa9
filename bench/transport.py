"""What a DynamoDB request costs the process that sends it, by transport: `make bench-transport [ARGS=--uvloop]`.

Only the processor time of this process counts: the servers are stubs in others. The transports take turns, and each
number is the median of its turns, so other load on the machine affects all of them alike.
"""

from __future__ import annotations

import argparse
import asyncio
import importlib
import platform
import statistics
import time
from collections.abc import Awaitable, Callable
from contextlib import AsyncExitStack
from typing import Any, get_args

from bench.stub import stub
from keygraph.dynamo.store import BatchGet, Prefix, Query, Request, Store
from keygraph.dynamo.table import Key, Table
from keygraph.engines.dynamodb.engine import open_dynamodb
from keygraph.engines.dynamodb.transport import TransportName

TABLE = Table("Shop", partition_key="PK", sort_key="SK")
CLIENTS = 16
TURNS = 9
ON_UVLOOP = "direct, on uvloop"
SECONDS = 0.3
"""The least length of a turn."""


def _key(number: int) -> Key:
    return (f"ORDER#{number:04}", f"PRODUCT#{number:04}")


def _typed_item(number: int) -> dict[str, object]:
    partition, sort = _key(number)
    return {
        "PK": {"S": partition},
        "SK": {"S": sort},
        "orderId": {"S": f"{number:04}"},
        "productId": {"S": f"{number:04}"},
        "quantity": {"N": str(number % 7 + 1)},
        "unitPrice": {"N": f"{number}.99"},
    }


SELECTED = tuple((name,) for name in _typed_item(0))


def _whole_item(number: int) -> dict[str, object]:
    partition, sort = _key(number)
    return {
        **_typed_item(number),
        "GSI1PK": {"S": sort},
        "GSI1SK": {"S": partition},
        "createdAt": {"S": "2026-11-21T12:00:00Z"},
        "gift": {"BOOL": number % 2 == 0},
        "Type": {"S": "OrderItem"},
    }


def _queried(items: list[dict[str, object]]) -> object:
    capacity = {"TableName": "Shop", "CapacityUnits": 0.5}
    return {"Items": items, "Count": len(items), "ScannedCount": len(items), "ConsumedCapacity": capacity}


def _got(items: list[dict[str, object]]) -> object:
    return {
        "Responses": {"Shop": items},
        "UnprocessedKeys": {},
        "ConsumedCapacity": [{"TableName": "Shop", "CapacityUnits": len(items) / 2}],
    }


ANSWERS: tuple[dict[str, object], ...] = (
    {
        "Query": _queried([_typed_item(number) for number in range(5)]),
        "BatchGetItem": _got([_typed_item(number) for number in range(50)]),
        "GetItem": {
            "Item": _typed_item(1),
            "ConsumedCapacity": {"TableName": "Shop", "CapacityUnits": 0.5},
        },
    },
    {
        "Query": _queried([_whole_item(number) for number in range(20)]),
        "BatchGetItem": _got([_whole_item(number) for number in range(100)]),
        "GetItem": {
            "Item": _whole_item(1),
            "ConsumedCapacity": {"TableName": "Shop", "CapacityUnits": 0.5},
        },
    },
)
"""The answers: items with the selected attributes, and whole ones."""
REQUESTS: tuple[dict[str, Request[object]], ...] = (
    {
        "GetItem, 6 attributes": BatchGet((_key(1),), SELECTED),
        "Query, 5 items of 6 attributes": Query(
            "ORDER#0001", range=Prefix("PRODUCT#"), projection=SELECTED, limit=21
        ),
        "BatchGetItem, 50 items of 6 attributes": BatchGet(tuple(map(_key, range(50))), SELECTED),
    },
    {
        "GetItem": BatchGet((_key(1),)),
        "Query, 20 items": Query("ORDER#0001"),
        "BatchGetItem, 100 items": BatchGet(tuple(map(_key, range(100)))),
    },
)


async def measured(send: Callable[[], Awaitable[object]]) -> float:
    """Returns processor milliseconds per call, with several calls in flight."""
    count, until = 0, time.perf_counter() + SECONDS

    async def client() -> None:
        nonlocal count
        while time.perf_counter() < until:
            await send()
            count += 1

    before = time.process_time()
    await asyncio.gather(*(client() for _ in range(CLIENTS)))
    return (time.process_time() - before) * 1000 / count


Found = dict[tuple[str, str], list[float]]
"""The measurements, by request and transport."""


async def turn(url: str, requests: dict[str, Request[object]], found: Found) -> None:
    """Runs one turn of every transport with every request."""
    async with AsyncExitStack() as opened:
        stores: dict[str, Store] = {
            name: await opened.enter_async_context(open_dynamodb(TABLE, url, transport=name))
            for name in get_args(TransportName)
        }
        for told, request in requests.items():
            first, *others = [await store.send(request) for store in stores.values()]
            assert all(answer == first for answer in others)
            for name, store in stores.items():
                await _measure(told, name, store, request, found)


async def turn_on_uvloop(url: str, requests: dict[str, Request[object]], found: Found) -> None:
    """Runs one turn of the direct transport alone, labeled with the event loop it runs on."""
    async with open_dynamodb(TABLE, url) as store:
        for told, request in requests.items():
            await _measure(told, ON_UVLOOP, store, request, found)


async def _measure(told: str, name: str, store: Store, request: Request[object], found: Found) -> None:
    # Opens the connections beforehand.
    await asyncio.gather(*(store.send(request) for _ in range(CLIENTS)))
    found.setdefault((told, name), []).append(await measured(lambda: store.send(request)))


def main() -> None:
    """Prints the table of `docs/performance.md`."""
    parser = argparse.ArgumentParser(description="What a request to DynamoDB costs, by transport.")
    parser.add_argument("--uvloop", action="store_true", help="also on uvloop, which must be installed")
    # uvloop is not a dependency, so it is imported by name and has no type here.
    uvloop: Any = importlib.import_module("uvloop") if parser.parse_args().uvloop else None
    names = ["aioboto3", "direct", *([ON_UVLOOP] if uvloop else [])]
    found: Found = {}
    with stub(ANSWERS[0]) as small, stub(ANSWERS[1]) as large:
        for _ in range(TURNS):
            for url, requests in zip((small, large), REQUESTS, strict=True):
                asyncio.run(turn(url, requests, found))
                if uvloop:
                    uvloop.run(turn_on_uvloop(url, requests, found))
    print(f"Python {platform.python_version()}, {CLIENTS} clients; processor ms per request\n")
    print(f"| request | {' | '.join(names)} | direct / aioboto3 |")
    print(f"| --- | {' | '.join('---:' for _ in names)} | ---: |")
    for told in [*REQUESTS[0], *REQUESTS[1]]:
        each = {name: statistics.median(found[told, name]) for name in names}
        ratio = each["direct"] / each["aioboto3"]
        print(f"| {told} | {' | '.join(f'{taken:.3f}' for taken in each.values())} | {ratio:.2f} |")


if __name__ == "__main__":
    main()
