"""Long reads of the embedded engine: they take turns with everything else, and end."""

from __future__ import annotations

import asyncio
import time
from decimal import Decimal
from pathlib import Path
from threading import Event, current_thread, main_thread
from typing import Any, cast
from weakref import WeakSet

import pytest

from keygraph.dynamo.actions import AddNumber, DeleteItem, PutItem, UpdateItem
from keygraph.dynamo.conditions import Eq, Exists, Not, Or
from keygraph.dynamo.items import Value
from keygraph.dynamo.store import BatchGet, BatchWrite, Query, Transaction, Write
from keygraph.dynamo.streams import EnableStream
from keygraph.engines.open import open_store
from keygraph.engines.sqlite import reads, turns
from keygraph.engines.sqlite.engine import SQLiteStore, open_sqlite
from keygraph.engines.sqlite.layout import Stored, stored_item
from keygraph.engines.sqlite.turns import Turns
from keygraph.errors import TimedOut, TransactionCanceled
from keygraph.turns import BUDGET, ClientsInTurn, WorkBudget
from tests.clocks import slowness
from tests.keygraph.shop import SHOP, opened

LONG = Query("p", filter=Or(tuple(Eq(("note",), f"{number}") for number in range(145))))
"""A condition of 145 terms on all items of a partition."""


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "shop.sqlite"


async def fill(file: Path, count: int) -> None:
    async with opened(file) as store:
        puts = tuple({"PK": "p", "SK": f"{number:06d}", "note": "x" * 40} for number in range(count))
        await store.send(BatchWrite(puts=puts))


async def test_a_read_ends_when_its_time_is_over(file: Path) -> None:
    """Commands that read a whole table have more of it than a server."""
    await fill(file, 8_000)
    async with open_store(f"sqlite:{file}", SHOP, deadline=0.05) as store:
        began = time.process_time()
        with pytest.raises(TimedOut, match=r"took more than 0\.05 seconds"):
            await store.send(LONG)
        assert (time.process_time() - began) / slowness() < 0.5
        assert (await store.send(Query("p", limit=1))).scanned == 1


async def test_a_read_ends_when_nobody_waits_for_it(file: Path) -> None:
    await fill(file, 8_000)
    async with open_sqlite(file, SHOP, readers=1) as store:
        asked = asyncio.create_task(store.send(LONG))
        await asyncio.sleep(0.05)
        asked.cancel()
        with pytest.raises(asyncio.CancelledError):
            await asked
        began = time.process_time()
        # It needs the only thread.
        assert (await store.send(Query("p", limit=300))).scanned == 300
        assert (time.process_time() - began) / slowness() < 0.3


@pytest.mark.long
async def test_the_event_loop_goes_on_meanwhile(file: Path) -> None:
    await fill(file, 1_000)
    async with open_sqlite(file, SHOP) as store:
        tries = [await lag(store) for _ in range(3)]
    assert min(tries) < 0.008


async def lag(store: SQLiteStore) -> float:
    """The processor time of one of the loop's turns while four long reads run, in nine of ten turns."""
    asked = [asyncio.create_task(store.send(LONG)) for _ in range(4)]
    lags = []
    while not all(each.done() for each in asked):
        began = time.process_time()
        await asyncio.sleep(0.001)
        lags.append(time.process_time() - began)
    assert [each.result().items for each in asked] == [[]] * 4
    return sorted(lags)[len(lags) * 9 // 10]


class Parsed(dict[str, Any]):
    """What was parsed of an item, as long as it is in memory."""

    __hash__ = object.__hash__  # type: ignore[assignment]  # of this object


@pytest.mark.parametrize("is_batch", [False, True])
async def test_one_thread_parses_a_large_item_at_a_time(
    file: Path, monkeypatch: pytest.MonkeyPatch, is_batch: bool
) -> None:
    """Four threads would each go before the event loop. What is parsed of an item is forgotten before the next one."""
    parsed, most = WeakSet[Parsed](), 0

    def parse(content: bytes) -> Stored:
        nonlocal most
        made = Parsed(stored_item(content))
        if current_thread() is not main_thread():  # there is the beginning, which is not long
            parsed.add(made)
            time.sleep(0.001)  # other threads run meanwhile
            most = max(most, len(parsed))
        return made

    async with opened(file) as store:
        puts = tuple({"PK": "p", "SK": f"{number:06d}", "list": ["x" * 10] * 900} for number in range(40))
        await store.send(BatchWrite(puts=puts))
        monkeypatch.setattr(reads, "stored_item", parse)
        keys = tuple(SHOP.key_of(item) for item in puts)
        request = BatchGet(keys) if is_batch else Query("p")
        answers = await asyncio.gather(*(store.send(request) for _ in range(4)))
    assert [len(each.items) for each in answers] == [40] * 4
    assert most == 1


def test_a_read_that_is_over_gives_no_more_rows() -> None:
    read = Turns(60)
    rows = read.take(iter(range(1_000_000)))
    assert (next(rows), read.is_over()) == (0, False)
    read.give_up()
    assert read.is_over()
    with pytest.raises(TimeoutError):
        sum(1 for _ in rows)


async def test_writes_of_one_client_keep_no_other_waiting(
    file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """However many of one client wait, another's is in the next transaction, which ends after some milliseconds."""
    monkeypatch.setattr(turns, "_TRANSACTION_SECONDS", 0.0, raising=False)
    answered: list[str] = []

    async def written(store: SQLiteStore, client: str, key: str) -> None:
        BUDGET.set(budget := WorkBudget())
        budget.client = client
        await store.send(Write(PutItem({"PK": client, "SK": key})))
        answered.append(client)

    async with opened(file) as store:
        held = Event()
        busy = asyncio.ensure_future(store._writing.run(held.wait))
        writes = [asyncio.create_task(written(store, "many", f"{number}")) for number in range(40)]
        await asyncio.sleep(0)
        writes.append(asyncio.create_task(written(store, "another", "1")))
        await asyncio.sleep(0)
        held.set()
        await asyncio.gather(busy, *writes)
    assert "another" in answered[:2]


def test_who_has_had_little_goes_before_a_hundred_and_these_before_ever_new_ones() -> None:
    waiting, taken = ClientsInTurn[str, None](), list[str]()

    def take() -> None:
        found = waiting.take()
        assert found is not None
        taken.append(found[0])
        waiting.count(found[0], 0.025 if found[0].startswith("crowd") else 0.001)

    for number in range(200):
        waiting.add(f"crowd {number % 100}", None)
    for _ in range(100):
        take()
    for _ in range(5):
        waiting.add("seldom", None)
        take()
        take()
    assert taken[100:].count("seldom") == 5
    for number in range(100):
        waiting.add(f"new {number}", None)
        take()
    assert sum(each.startswith("crowd") for each in taken[110:]) > 40


async def test_writes_of_large_items_are_planned_beside_other_writes(
    file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The thread that writes for all parses none of them. What others write meanwhile is not lost."""
    parsed_by, parse = set[str](), reads.parsed_in_turns

    def noted(content: bytes) -> Stored:
        parsed_by.add(current_thread().name.rpartition("_")[0])
        return cast(Stored, parse(content))

    monkeypatch.setattr(reads, "parsed_in_turns", noted)
    many: list[Value] = [True] * 5_000
    keys = [("p", f"{number}") for number in range(4)]
    async with opened(file) as store:
        await store.send(EnableStream())
        await store.send(BatchWrite(tuple({"PK": p, "SK": s, "GSI1PK": "a", "many": many} for p, s in keys)))
        add = UpdateItem(keys[0], (AddNumber(("count",), Decimal(1)),))
        changes = [store.send(Write(add)) for _ in range(2)]
        changes += [store.send(Transaction((add,), f"{number}")) for number in range(2)]
        await asyncio.gather(*changes)
        [item] = (await store.send(BatchGet((keys[0],)))).items
        deletes = tuple(DeleteItem(key, Not(Exists(("other",)))) for key in keys)
        written = await store.send(Transaction(deletes, "all"))
        again = await store.send(Transaction(deletes, "all"))
        assert (await store.send(Query("p"))).scanned == 0
    assert item is not None
    assert (item["count"], item["many"]) == (4, many)
    assert (written.cost.write_units > 16, again.cost.write_units) == (True, 0)
    assert parsed_by == {"sqlite-reader"}


async def test_a_large_item_is_planned_once_however_often_others_write_what_is_written_with_it(
    file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What is done to the small item is planned anew when it is written: with its condition, and as a part of the whole."""
    planned, plan = 0, SQLiteStore._read_beside
    large, small = ("p", "large"), ("p", "small")
    add = (AddNumber(("count",), Decimal(1)),)

    async def others_write_meanwhile(self: SQLiteStore, request: Transaction) -> object:
        nonlocal planned
        made, planned = await plan(self, request), planned + 1
        if planned < 5:
            await self.send(Write(UpdateItem(small, add)))
        return made

    monkeypatch.setattr(SQLiteStore, "_read_beside", others_write_meanwhile)
    async with opened(file) as store:
        await store.send(EnableStream())
        await store.send(Write(PutItem({"PK": "p", "SK": "large", "GSI1PK": "a", "text": "x" * 70_000})))
        actions = UpdateItem(large, add), UpdateItem(small, add, Not(Eq(("count",), Decimal(3))))
        await store.send(Transaction(actions, "first"))
        assert planned == 1
        with pytest.raises(TransactionCanceled) as canceled:
            await store.send(Transaction(actions, "second"))
        await store.send(Transaction(actions, "first"))
        [of_large, of_small] = (await store.send(BatchGet((large, small)))).items
    assert [reason and reason.code for reason in canceled.value.reasons] == [None, "ConditionalCheckFailed"]
    assert of_large is not None
    assert of_small is not None
    assert (of_large["count"], of_large["text"], of_small["count"]) == (1, "x" * 70_000, 3)


async def test_long_reads_of_one_client_leave_threads_to_others(
    file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One client's reads hold its half of the threads, and all its others wait."""
    await fill(file, 300)
    held, read = Event(), SQLiteStore._read_in_thread

    def hold(self: SQLiteStore, request: Query, turns: Turns) -> object:
        if request.limit is None:
            held.wait()
        return read(self, request, turns)

    async def page(store: SQLiteStore, client: str, limit: int | None) -> int:
        BUDGET.set(budget := WorkBudget())
        budget.client = client
        return (await store.send(Query("p", limit=limit))).scanned

    monkeypatch.setattr(SQLiteStore, "_read_in_thread", hold)
    async with open_sqlite(file, SHOP) as store:
        many = [asyncio.create_task(page(store, "many", None)) for _ in range(8)]
        for _ in range(10):
            await asyncio.sleep(0)  # until they are in threads, or wait for one
        try:
            async with asyncio.timeout(10):
                assert await page(store, "another", 299) == 299
        finally:
            held.set()
        assert await asyncio.gather(*many) == [300] * 8
