"""How much the embedded engine does for an answer: what is small is not made large by what stands beside it.

Counted, not timed: attributes decoded, rows read, statements prepared, threads taken.
"""

from __future__ import annotations

import asyncio
import sqlite3
import threading
from contextlib import closing
from decimal import Decimal
from pathlib import Path

import orjson
import pytest

from keygraph.dynamo.conditions import Eq
from keygraph.dynamo.items import Item, typed_item
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


# --- Files of earlier layouts -----------------------------------------------------------------------

OLD: Item = {
    "PK": "p",
    "SK": "s",
    "Kind": "k",
    "Price": Decimal("19.99"),
    "n": Decimal(50),
    "true": True,
    "null": None,
    "set": frozenset({"a", "b"}),
    "map": {"x": Decimal(1)},
}


def _make_older(connection: sqlite3.Connection, version: int) -> None:
    """Makes a file one of an earlier layout: without hashes in indexes, and in layout 1 with all values typed."""
    for (name,) in connection.execute("SELECT name FROM sqlite_schema WHERE name LIKE 'table%'").fetchall():
        columns = [row[1] for row in connection.execute(f"PRAGMA table_info({name})") if row[1] != "hash"]
        keys, *_ = ", ".join(columns).split(", size")
        connection.execute(f"ALTER TABLE {name} RENAME TO newer")
        connection.execute(f"CREATE TABLE {name} ({', '.join(columns)}, PRIMARY KEY ({keys})) WITHOUT ROWID")
        connection.execute(f"INSERT INTO {name} SELECT {', '.join(columns)} FROM newer")
        connection.execute("DROP TABLE newer")
        if version == 1:
            connection.create_function(
                "typed", 1, lambda content: orjson.dumps(typed_item(layout.whole(orjson.loads(content))))
            )
            connection.execute(f"UPDATE {name} SET item = typed(item)")
    connection.execute(f"PRAGMA user_version = {version}")
    connection.commit()


@pytest.mark.parametrize("version", [1, 2])
async def test_a_file_of_an_earlier_layout_is_read_and_written(tmp_path: Path, version: int) -> None:
    path = tmp_path / "shop.db"
    others = [{**OLD, "SK": f"{number:02}", "Price": Decimal(7)} for number in range(20)]
    async with open_sqlite(path, SHOP) as store:
        await store.send(CreateTable())
        await put(store, OLD, *others)
        queries = [Query("k", index="by-price"), Query("k", index="named"), Query("s", index="keys-only")]
        before = [await store.send(query) for query in queries]
    with closing(sqlite3.connect(path)) as connection:
        _make_older(connection, version)
    async with open_sqlite(path, SHOP) as store, open_sqlite(path, SHOP):
        assert [await store.send(query) for query in queries] == before
        assert (await store.send(Query("p"))).items == [*others, OLD]
        narrow = await store.send(
            Query("p", projection=(("n",), ("map", "x"), ("Kind",)), limit=1, forward=False)
        )
        assert narrow.items == [{"n": Decimal(50), "map": {"x": Decimal(1)}, "Kind": "k"}]
        # The same item again changes nothing in an index, whichever layout its row is of.
        assert (await put(store, OLD)).cost.write_units == 1
        await put(store, {**OLD, "Price": Decimal(3)})
        found = await store.send(Query("k", index="by-price", limit=1))
        assert [item["Price"] for item in found.items] == [Decimal(3)]
    with closing(sqlite3.connect(path)) as connection:
        assert connection.execute("PRAGMA user_version").fetchone() == (5,)


@pytest.mark.parametrize(
    "text", ["0", "-0", "7", "-7", "50", "-1200", "1E+17", "999999999999999999", "1E+18"]
)
async def test_whole_numbers_come_back_as_dynamodb_writes_them(shop: SQLiteStore, text: str) -> None:
    await put(shop, {"PK": "p", "SK": "s", "n": Decimal(text), "in": [Decimal(text)]})
    [item] = (await shop.send(Query("p"))).items
    assert isinstance(item["in"], list)
    assert (str(item["n"]), item["n"]) == (str(item["in"][0]), Decimal(text))
