"""Tables that the commands of `keygraph` work on: made, and read."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable

from keygraph.dynamo.items import Item
from keygraph.dynamo.store import BatchWrite, CreateTable, DeleteTable
from keygraph.dynamo.table import Table
from keygraph.engines.open import open_store
from keygraph.tables.bulk import whole_table
from keygraph_examples.commerce import graph as commerce

FILE = "sqlite:table.db"
"""The store of tests that run on the embedded engine alone."""


def make_table(address: str, items: Iterable[Item] = (), table: Table = commerce.table) -> None:
    async def made() -> None:
        async with open_store(address, table) as store:
            await store.send(DeleteTable())
            await store.send(CreateTable())
            await store.send(BatchWrite(tuple(items)))

    asyncio.run(made())


def drop_table(address: str, table: Table = commerce.table) -> None:
    async def dropped() -> None:
        async with open_store(address, table) as store:
            await store.send(DeleteTable())

    asyncio.run(dropped())


def items_in(address: str, table: Table = commerce.table) -> list[Item]:
    async def read() -> list[Item]:
        async with open_store(address, table) as store:
            return [item async for item in whole_table(store)]

    return sorted(asyncio.run(read()), key=lambda item: [str(item[key.name]) for key in table.keys])
