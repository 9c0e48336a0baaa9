"""What tests of the embedded engine share: a store with an empty table."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from keygraph.dynamo.store import CreateTable
from keygraph.engines.sqlite.engine import SQLiteStore, open_sqlite
from tests.keygraph.shop import SHOP


@pytest.fixture
async def shop(tmp_path: Path) -> AsyncIterator[SQLiteStore]:
    """An open store with the table of `tests.keygraph.shop`, which is empty."""
    async with open_sqlite(tmp_path / "shop.db", SHOP) as store:
        await store.send(CreateTable())
        yield store
