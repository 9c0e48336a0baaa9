"""How much the embedded engine does for an answer: what is small is not made large by what stands beside it.

Counted, not timed: attributes decoded, rows read, statements prepared, threads taken.
"""

from __future__ import annotations

import asyncio
import sqlite3
import threading
from decimal import Decimal
from pathlib import Path

import pytest

from keygraph.dynamo.conditions import Eq
from keygraph.dynamo.items import Item
from keygraph.dynamo.store import BatchGet, Count, CreateTable, DeleteTable, Prefix, Query, Scan
from keygraph.engines.sqlite import layout, reads
from keygraph.engines.sqlite.engine import SQLiteStore, open_sqlite
from keygraph.errors import TableMissing
from tests.keygraph.shop import SHOP, put, sort_keys


class Work:
    """What was decoded since it was last asked."""

    def __init__(self, patch: pytest.MonkeyPatch) -> None:
        self.items = self.values = 0
        item, value = reads.stored_item, layout.value_of

        def stored_item(content: bytes) -> dict[str, object]:
            self.items += 1
            return item(content)

        def value_of(stored: object) -> object:
            self.values += 1
            return value(stored)

        patch.setattr(reads, "stored_item", stored_item)
        patch.setattr(layout, "value_of", value_of)

    def done(self) -> tuple[int, int]:
        """Items that were parsed, and values in them that were decoded: all that are no text."""
        found = self.items, self.values
        self.items = self.values = 0
        return found


@pytest.fixture
def work(monkeypatch: pytest.MonkeyPatch) -> Work:
    return Work(monkeypatch)


async def test_only_what_is_asked_for_is_decoded(shop: SQLiteStore, work: Work) -> None:
    await put(
        shop,
        *(
            {"PK": "p", "SK": f"{n:04}", "n": Decimal(n), "half": Decimal("0.5"), "map": {"a": Decimal(1)}}
            for n in range(500)
        ),
    )
    work.done()
    projection = (("SK",), ("n",))
    page = await shop.send(Query("p", range=Prefix("0"), projection=projection, limit=20))
    assert page.items == [{"SK": f"{n:04}", "n": Decimal(n)} for n in range(20)]
    assert work.done() == (20, 20)
    await shop.send(Query("p", projection=(("SK",),), limit=20))
    assert work.done() == (20, 0)
    await shop.send(Query("p", limit=20))
    assert work.done() == (20, 60)
    await shop.send(Count("p"))
    assert work.done() == (0, 0)
    await shop.send(BatchGet((("p", "0001"), ("p", "0002"), ("p", "none")), projection))
    assert work.done() == (2, 2)
    # The filter decodes what it looks at of every item, the answer what is asked for of those that pass.
    page = await shop.send(Query("p", projection=projection, filter=Eq(("n",), Decimal(3)), limit=20))
    assert sort_keys(page) == ["0003"]
    assert work.done() == (20, 21)


async def test_a_small_read_takes_no_thread_and_a_large_one_does(shop: SQLiteStore) -> None:
    await put(shop, *({"PK": "p", "SK": f"{n:04}"} for n in range(1000)))

    def readers() -> int:
        return sum(thread.name.startswith("sqlite-reader") for thread in threading.enumerate())

    small = (Query("p", limit=100), Query("q"), BatchGet((("p", "0001"),)), Count("p"))
    await asyncio.gather(*(shop.send(request) for request in small))
    assert readers() == 0
    assert (await shop.send(Query("p"))).scanned == 1000
    assert readers() == 1


async def test_a_table_that_another_process_made_anew_is_found(tmp_path: Path) -> None:
    path = tmp_path / "shop.db"
    async with open_sqlite(path, SHOP) as one, open_sqlite(path, SHOP) as other:
        await one.send(CreateTable())
        await put(one, {"PK": "p", "SK": "old"})
        assert sort_keys(await one.send(Query("p"))) == ["old"]
        await other.send(DeleteTable())
        for request in (Query("p"), Count("p"), BatchGet((("p", "old"),)), Scan()):
            with pytest.raises(TableMissing):
                await one.send(request)
        await other.send(CreateTable())
        await put(other, {"PK": "p", "SK": "new"})
        assert sort_keys(await one.send(Query("p"))) == ["new"]


class _Locked:
    """A connection to a file that another process has locked for readers too, as while it recovers it."""

    def execute(self, sql: str) -> None:
        error = sqlite3.OperationalError("database is locked")
        error.sqlite_errorcode = sqlite3.SQLITE_BUSY
        raise error

    def close(self) -> None:
        """Nothing is open."""


async def test_a_file_locked_for_readers_is_waited_for(
    shop: SQLiteStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    await put(shop, {"PK": "p", "SK": "s"})
    with monkeypatch.context() as patch:
        patch.setattr(shop, "_at_once", _Locked())
        assert sort_keys(await shop.send(Query("p"))) == ["s"]
    assert sort_keys(await shop.send(Query("p"))) == ["s"]


# --- Writes that wait for each other ------------------------------------------------------------------


async def test_writes_that_wait_are_one_transaction_but_refused_alone(shop: SQLiteStore) -> None:
    good = [put(shop, {"PK": "p", "SK": f"{n}"}) for n in range(20)]
    bad = put(shop, {"PK": "p", "SK": "x"}, {"PK": "p", "SK": ""})
    outcomes = await asyncio.gather(*good[:10], bad, *good[10:], return_exceptions=True)
    assert [str(each) for each in outcomes if isinstance(each, Exception)] == ["The key SK is empty."]
    assert (await shop.send(Count("p"))).count == 20


async def test_an_index_follows_a_change_from_true_to_one(shop: SQLiteStore) -> None:
    item: Item = {"PK": "p", "SK": "s", "Kind": "k", "Price": Decimal(1), "flag": True}
    await put(shop, item)
    await put(shop, {**item, "flag": Decimal(1)})
    [found] = (await shop.send(Query("k", index="by-price"))).items
    assert type(found["flag"]) is Decimal


@pytest.mark.parametrize(
    "text", ["0", "-0", "7", "-7", "50", "-1200", "1E+17", "999999999999999999", "1E+18"]
)
async def test_whole_numbers_come_back_as_dynamodb_writes_them(shop: SQLiteStore, text: str) -> None:
    await put(shop, {"PK": "p", "SK": "s", "n": Decimal(text), "in": [Decimal(text)]})
    [item] = (await shop.send(Query("p"))).items
    assert isinstance(item["in"], list)
    assert (str(item["n"]), item["n"]) == (str(item["in"][0]), Decimal(text))
