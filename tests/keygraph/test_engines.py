"""Addresses of stores."""

from __future__ import annotations

from pathlib import Path

import pytest

from keygraph.dynamo.store import BatchWrite, DescribeTable, Query
from keygraph.dynamo.table import Table
from keygraph.engines.dynamodb.engine import DynamoDBStore
from keygraph.engines.open import open_store
from keygraph.engines.sqlite.engine import SQLiteStore
from tests.conftest import MakeStore

table = Table("Shop", partition_key="PK", sort_key="SK")


async def test_each_engine_by_its_address(
    tmp_path: Path, moto_endpoint: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with open_store(f"sqlite:{tmp_path / 'shop.db'}", table) as store:
        assert isinstance(store, SQLiteStore)
        assert store.table is table
    async with open_store(moto_endpoint, table, concurrency=2, deadline=5) as store:
        assert isinstance(store, DynamoDBStore)
        assert await store.send(DescribeTable()) is None
    monkeypatch.setenv("AWS_REGION", "eu-central-1")
    async with open_store("aws", table) as store:
        assert isinstance(store, DynamoDBStore)


@pytest.mark.parametrize(
    ("url", "shown"),
    [
        ("", "''"),
        ("shop.db", "'shop.db'"),
        ("sqlite:", "'sqlite:'"),
        ("aws:eu", "'aws:eu'"),
        ("http://", "'http://'"),
        ("http://host:port", "'http://host:port'"),
        ("ftp://me:secret@host", "'ftp://…@host'"),
        ("http:me:secret@host", "'http://…@host'"),
    ],
)
def test_what_is_no_address(url: str, shown: str) -> None:
    with pytest.raises(ValueError, match="is not a store") as refused:
        open_store(url, table)
    assert str(refused.value) == f"{shown} is not a store: use sqlite:PATH, aws, or http://HOST:PORT"


async def test_every_engine_starts_empty(make_store: MakeStore) -> None:
    for _ in range(2):
        store = await make_store(table)
        assert (await store.send(Query("A"))).items == []
        await store.send(BatchWrite(puts=({"PK": "A", "SK": "B"},)))
        assert (await store.send(Query("A"))).items == [{"PK": "A", "SK": "B"}]
