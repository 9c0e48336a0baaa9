"""Indexes of a table in use: created, while others write, and deleted."""

from __future__ import annotations

import asyncio
import random
from decimal import Decimal
from pathlib import Path

import pytest

from keygraph.dynamo.actions import DeleteItem, PutItem, SetTo, UpdateItem
from keygraph.dynamo.differences import index_changes
from keygraph.dynamo.items import Item
from keygraph.dynamo.store import (
    BatchWrite,
    CreateIndex,
    CreateTable,
    DeleteIndex,
    DeleteTable,
    DescribeTable,
    DescribeTimeToLive,
    EnableTimeToLive,
    Query,
    Scan,
    Store,
    Write,
    pages,
)
from keygraph.dynamo.table import Index, Table
from keygraph.engines.open import open_store
from keygraph.engines.sqlite import catalogue
from keygraph.errors import BadUserInput, TableMissing, Unavailable
from tests.conftest import MakeStore

BY_STATE = Index("ByState", "state", ("rank", "N"))
BY_CITY = Index("ByCity", "city", "PK", projection=["name"])
PLAIN = Table("People", partition_key="PK")
INDEXED = PLAIN.with_indexes([BY_STATE])


def person(number: int, state: str | None = "on") -> Item:
    item: Item = {"PK": f"P{number:04d}", "rank": Decimal(number), "city": "Bern", "name": f"n{number}"}
    return item if state is None else {**item, "state": state}


async def finish(store: Store, request: CreateIndex | DeleteIndex) -> int:
    """Sends the request until it is done; returns how often it was not."""
    for times in range(10_000):
        if await store.send(request) is None:
            return times
        await asyncio.sleep(0.002)
    raise AssertionError("it is never done")


async def in_index(store: Store, index: Index, partition: str) -> list[Item]:
    query = Query(partition, index.name)
    return [item async for page in pages(store, query) for item in page.items]


def opened_again(engine: str, request: pytest.FixtureRequest, tmp_path: Path, table: Table) -> object:
    endpoint = f"sqlite:{tmp_path / '0.db'}" if engine == "sqlite" else None
    return open_store(endpoint or str(request.getfixturevalue(f"{engine}_endpoint")), table)


async def test_an_index_is_created_from_the_items_and_deleted(
    make_store: MakeStore, engine: str, request: pytest.FixtureRequest, tmp_path: Path
) -> None:
    sparse = person(3, None)
    other_type = {**person(4), "rank": "four"}
    plain = await make_store(PLAIN, person(1), person(2, "off"), sparse, other_type)
    for index in (BY_STATE, BY_CITY):
        await finish(plain, CreateIndex(index))
        assert await plain.send(CreateIndex(index)) is None
    found = await plain.send(DescribeTable())
    assert found is not None
    assert found.keys == PLAIN.keys
    assert {index.name: index for index in found.indexes} == {"ByState": BY_STATE, "ByCity": BY_CITY}
    both = PLAIN.with_indexes([BY_CITY, BY_STATE])
    async with opened_again(engine, request, tmp_path, both) as store:  # type: ignore[attr-defined]
        if (
            engine == "sqlite"
        ):  # the others also list an item with a key of another type, which DynamoDB leaves out
            assert await in_index(store, BY_STATE, "on") == [person(1)]
        assert await in_index(store, BY_STATE, "off") == [person(2, "off")]
        assert [item["name"] for item in await in_index(store, BY_CITY, "Bern")] == ["n1", "n2", "n3", "n4"]
        await store.send(Write(UpdateItem(("P0001",), (SetTo(("state",), "off"),))))
        assert [item["name"] for item in await in_index(store, BY_STATE, "off")] == ["n1", "n2"]
        await finish(store, DeleteIndex("ByState"))
        assert await store.send(DeleteIndex("ByState")) is None
    found = await plain.send(DescribeTable())
    assert found is not None
    assert found.indexes == (BY_CITY,)


async def test_there_is_no_index_without_a_table(make_store: MakeStore) -> None:
    store = await make_store(PLAIN)
    await store.send(DeleteTable())
    for request in (CreateIndex(BY_STATE), DeleteIndex("ByState")):
        with pytest.raises(TableMissing, match="there is no table People"):
            await store.send(request)
    await store.send(CreateTable())


async def test_the_time_to_live(make_store: MakeStore, engine: str) -> None:
    store = await make_store(PLAIN)
    assert await store.send(DescribeTimeToLive()) is None
    if engine != "sqlite":
        await store.send(EnableTimeToLive("until"))
        assert await store.send(DescribeTimeToLive()) == "until"


# --- The embedded engine ------------------------------------------------------------------------------


@pytest.mark.parametrize("seed", range(4))
async def test_writes_of_others_are_in_an_index_that_is_being_created(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, seed: int
) -> None:
    """Several stores, as several processes have them, write at random while steps are made and interrupted."""
    monkeypatch.setattr(catalogue, "_STEP_ITEMS", 7)
    made = random.Random(seed)
    url = f"sqlite:{tmp_path / 'people.db'}"
    async with open_store(url, PLAIN) as first:
        await first.send(CreateTable())
        await first.send(BatchWrite(tuple(person(2 * number) for number in range(60))))
        async with open_store(url, PLAIN) as other:
            await other.send(Scan())  # it knows the table without the index
            is_done = False
            while not is_done:
                for _ in range(made.randrange(12)):
                    number, store = made.randrange(120), made.choice((first, other))
                    change = made.choice(
                        (
                            PutItem(person(number, made.choice(("on", "off", None)))),
                            DeleteItem((f"P{number:04d}",)),
                            UpdateItem((f"P{number:04d}",), (SetTo(("state",), "on"),)),
                        )
                    )
                    await store.send(Write(change))
                if made.random() < 0.3:  # as after an interruption
                    async with open_store(url, PLAIN) as again:
                        is_done = await again.send(CreateIndex(BY_STATE)) is None
                else:
                    is_done = await first.send(CreateIndex(BY_STATE)) is None
                described = await other.send(DescribeTable())
                assert described is not None
                assert described.indexes == ((BY_STATE,) if is_done else ())
            items = [item async for page in pages(other, Scan()) for item in page.items]
    async with open_store(url, INDEXED) as store:
        for state in ("on", "off"):
            wanted = [item for item in items if item.get("state") == state and "rank" in item]
            assert await in_index(store, BY_STATE, state) == sorted(wanted, key=lambda item: str(item["PK"]))


async def test_an_unfinished_index_is_not_read_and_can_be_replaced(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(catalogue, "_STEP_ITEMS", 2)
    url = f"sqlite:{tmp_path / 'people.db'}"
    async with open_store(url, PLAIN) as store:
        await store.send(CreateTable())
        await store.send(BatchWrite(tuple(person(number) for number in range(5))))
        assert await store.send(CreateIndex(BY_STATE)) == 2
        with pytest.raises(BadUserInput, match="no index ByState"):
            await store.send(Query("on", "ByState"))
        async with open_store(url, INDEXED) as declared:
            with pytest.raises(Unavailable, match="it lacks the index ByState"):
                await declared.send(Query("on", "ByState"))
            other = Index("ByState", "state", "name")
            assert await store.send(CreateIndex(other)) == 2
            assert await finish(store, CreateIndex(other)) == 1
        described = await store.send(DescribeTable())
        assert described is not None
        assert described.indexes == (other,)


async def test_whoever_knows_a_deleted_index_does_not_read_the_one_that_replaced_it(tmp_path: Path) -> None:
    url = f"sqlite:{tmp_path / 'people.db'}"
    async with open_store(url, INDEXED) as store, open_store(url, INDEXED) as knowing:
        await store.send(CreateTable())
        await store.send(BatchWrite((person(1),)))
        assert await in_index(knowing, BY_STATE, "on") == [person(1)]
        await finish(store, DeleteIndex("ByState"))
        await finish(store, CreateIndex(Index("ByState", "state", "name")))
        for request in (Query("on", "ByState"), BatchWrite((person(2),))):
            with pytest.raises(Unavailable, match="the keys of its index ByState are state"):
                await knowing.send(request)


# --- What can be changed ------------------------------------------------------------------------------


def test_local_indexes_and_the_keys_of_a_table_cannot_be_changed() -> None:
    local = Index("Local", "PK", "name", local=True)
    sorted_ = Table("People", partition_key="PK", sort_key="SK")
    changes = index_changes(sorted_.with_indexes([local]), PLAIN, removes=True)
    assert changes.impossible == [
        "its keys are PK (S), but the model declares PK (S) and SK (S): the keys of a table cannot be changed",
        "Local is a local index, which only a new table can have",
    ]
    found = sorted_.with_indexes([local])
    assert index_changes(sorted_, found, removes=True) == ([], [], [], [])


def test_one_attribute_has_one_type() -> None:
    found = PLAIN.with_indexes([Index("ByRank", "rank")])
    kept, removed = (index_changes(INDEXED, found, removes=removes) for removes in (False, True))
    assert kept.impossible == [
        "rank is declared as N, but an index of the table has it as S: remove that index first"
    ]
    assert (removed.impossible, removed.missing) == ([], [BY_STATE])
