"""Writing and reading whole tables."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from typing import Any

import pytest

from keygraph.dynamo.items import Item
from keygraph.dynamo.store import Query
from keygraph.dynamo.table import Table
from keygraph.errors import Unavailable
from keygraph.tables.bulk import gathered, whole_table, write_batches
from tests.conftest import MakeStore
from tests.tracing import TracingStore

table = Table("Things", partition_key="PK", sort_key="SK")


def thing(number: int, value: str = "") -> Item:
    return {"PK": f"THING#{number}", "SK": "A", "value": value}


class SlowFirst:
    """Answers the first write last, and fails that of a certain item."""

    table = table

    def __init__(self, failing: str = "") -> None:
        self.failing = failing
        self.under_way = self.most_under_way = 0
        self.order: list[str] = []

    async def send(self, request: Any, /) -> Any:
        self.under_way += 1
        self.most_under_way = max(self.most_under_way, self.under_way)
        value = str(request.puts[0]["value"])
        await asyncio.sleep(0.03 if value == "first" else 0.005)
        self.under_way -= 1
        if value == self.failing:
            raise Unavailable("no more")
        self.order.append(value)

    async def close(self) -> None:
        pass


async def test_several_batches_are_under_way_and_no_more() -> None:
    store = SlowFirst()
    marks: list[int] = []
    batches = [([thing(n, "first" if n == 0 else str(n))], n) for n in range(6)]
    await write_batches(store, batches, marks.append, in_flight=3)
    assert store.most_under_way == 3
    assert store.order.index("first") > 0
    assert marks == [0, 1, 2, 3, 4, 5]


async def test_a_batch_may_be_written_before_the_next_is_read() -> None:
    store, marks = SlowFirst(), list[int]()
    seen: list[list[int]] = []

    def batches() -> Iterator[tuple[list[Item], int]]:
        for number in range(3):
            seen.append(list(marks))
            yield [thing(number, "first" if number == 0 else str(number))], number

    await write_batches(store, batches(), marks.append, in_flight=1)
    assert seen == [[], [0], [0, 1]]
    assert store.order == ["first", "1", "2"]


async def test_of_equal_keys_the_last_one_stays() -> None:
    store = SlowFirst()
    await write_batches(store, [([thing(1, "first")], 1), ([thing(1, "second")], 2)], lambda mark: None)
    assert store.order == ["first", "second"]


async def test_what_went_before_an_error_of_the_source_is_written() -> None:
    def batches() -> Iterator[tuple[list[Item], int]]:
        yield [thing(0, "first")], 0
        yield [thing(1, "second")], 1
        raise LookupError("a bad line")

    store, marks = SlowFirst(), list[int]()
    with pytest.raises(LookupError):
        await write_batches(store, batches(), marks.append)
    assert marks == [0, 1]
    assert sorted(store.order) == ["first", "second"]


async def test_no_mark_behind_what_failed() -> None:
    store, marks = SlowFirst(failing="b"), list[int]()
    batches = [([thing(n, value)], n) for n, value in enumerate("abcdefghijklmnop")]
    with pytest.raises(Unavailable):
        await write_batches(store, batches, marks.append, in_flight=2)
    assert marks == [0]
    assert "p" not in store.order


@pytest.mark.long
async def test_the_whole_table_in_one_order(make_store: MakeStore) -> None:
    items = [thing(number, "x" * 30_000) for number in range(120)]
    store = await make_store(table, *items)
    tracing = TracingStore(store)
    found = [item async for item in whole_table(tracing)]
    assert sorted(found, key=repr) == sorted(items, key=repr)
    assert found == [item async for item in whole_table(store)]
    assert len(tracing.requests) >= 4


async def test_reading_can_end_early(make_store: MakeStore) -> None:
    store = await make_store(table, *(thing(number) for number in range(20)))
    items = whole_table(store)
    first = await anext(items)
    await items.aclose()
    assert (await store.send(Query(str(first["PK"])))).items == [first]


async def test_no_more_is_under_way_than_allowed_and_none_is_begun_after_a_failure() -> None:
    begun, ended, most = list[int](), list[int](), 0

    async def work(number: int) -> int:
        nonlocal most
        begun.append(number)
        most = max(most, len(begun) - len(ended))
        await asyncio.sleep(0 if number % 2 else 0.001)
        if number == fails:
            raise Unavailable("gone")
        ended.append(number)
        return number

    fails = -1
    assert await gathered(map(work, range(20)), 3) == [*range(20)]
    assert (sorted(ended), most) == ([*range(20)], 3)
    begun.clear()
    fails = 5
    with pytest.raises(Unavailable):
        await gathered(map(work, range(20)), 3)
    assert len(begun) < 10
