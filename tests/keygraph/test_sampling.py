"""A sample of a table, on each engine."""

from __future__ import annotations

import pytest

from keygraph.dynamo.store import BatchWrite, Scan
from keygraph.dynamo.table import Table
from keygraph.tables.sample import parts, sample
from tests.conftest import MakeStore
from tests.tracing import TracingStore

TABLE = Table("Sampled", partition_key="PK", sort_key="SK")


async def filled(make_store: MakeStore, partitions: int, each: int) -> TracingStore:
    store = await make_store(TABLE)
    for partition in range(partitions):
        items = [{"PK": f"P{partition}", "SK": f"S{n}"} for n in range(each)]
        await store.send(BatchWrite(tuple(items)))
    return TracingStore(store)


@pytest.mark.parametrize("count", [1, 7, 40, 200])
async def test_it_is_as_large_as_was_asked_for(count: int, make_store: MakeStore) -> None:
    store = await filled(make_store, 20, 5)
    found = await sample(store, count)
    assert len(found) == min(count, 100)
    assert len({(item["PK"], item["SK"]) for item in found}) == len(found)
    scans = [request for request in store.requests if isinstance(request, Scan)]
    assert len(scans) == len(store.requests)
    assert all(scan.limit is not None and scan.limit <= count for scan in scans)


async def test_a_large_partition_is_not_all_of_it(make_store: MakeStore) -> None:
    store = await filled(make_store, 1, 300)
    small = [{"PK": f"Q{n}", "SK": "S"} for n in range(30)]
    await store.send(BatchWrite(tuple(small)))
    found = await sample(store, 160)
    assert len({item["PK"] for item in found}) > 15


async def test_an_empty_table_has_an_empty_sample(make_store: MakeStore) -> None:
    assert await sample(await make_store(TABLE), 100) == []


@pytest.mark.parametrize("size", [7, 40, 200])
async def test_parts_are_the_table(size: int, make_store: MakeStore) -> None:
    store = await filled(make_store, 20, 5)
    found = [items async for items, _ in parts(store, size)]
    assert all(len(items) <= size for items in found)
    keys = [(item["PK"], item["SK"]) for items in found for item in items]
    assert len(keys) == len(set(keys)) == 100


@pytest.mark.long
async def test_whole_parts_are_whole_partitions(make_store: MakeStore) -> None:
    store = await filled(make_store, 40, 5)
    [first, *_] = [{item["PK"] for item in items} async for items, is_whole in parts(store, 30) if is_whole]
    assert 0 < len(first) <= 6
