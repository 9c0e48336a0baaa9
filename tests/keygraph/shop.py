"""A table with indexes of every kind, in which the tests of the embedded engine keep things."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

from keygraph.dynamo.items import Item
from keygraph.dynamo.store import BatchWrite, CreateTable, Page, Store, Written
from keygraph.dynamo.table import Index, Table
from keygraph.engines.sqlite.engine import SQLiteStore, open_sqlite

# Its indexes are in no order of their names, as a model's need not be.
SHOP = Table(
    "Shop",
    partition_key="PK",
    sort_key="SK",
    indexes=[
        Index("keys-only", "SK", "PK", projection="KEYS_ONLY"),
        Index("named", "Kind", projection=["Name"]),
        Index("local", "PK", "Name", projection="KEYS_ONLY", local=True),
        Index("by-price", "Kind", ("Price", "N")),
    ],
)


@asynccontextmanager
async def opened(
    path: Path, *items: Item, table: Table = SHOP, locked_seconds: float = 5.0
) -> AsyncIterator[SQLiteStore]:
    """Opens a file in which the table has been created, with these items."""
    async with open_sqlite(path, table, locked_seconds=locked_seconds) as store:
        await store.send(CreateTable())
        await put(store, *items)
        yield store


async def put(store: Store, *items: Item) -> Written:
    return await store.send(BatchWrite(puts=items))


def sort_keys(page: Page) -> list[object]:
    return [item["SK"] for item in page.items]
