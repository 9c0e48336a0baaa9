"""The embedded engine's file and threads: it blocks nobody, loses nothing and lets everything go."""

from __future__ import annotations

import asyncio
import os
import shutil
import signal
import sqlite3
import subprocess
import sys
import textwrap
import threading
from collections.abc import Callable
from contextlib import closing, suppress
from dataclasses import replace
from decimal import Decimal
from itertools import count
from pathlib import Path
from typing import cast

import pytest

from keygraph.dynamo.actions import DeleteItem, SetTo, UpdateItem
from keygraph.dynamo.conditions import Exists
from keygraph.dynamo.store import (
    BatchGet,
    BatchWrite,
    Count,
    CreateTable,
    DeleteTable,
    DescribeTable,
    Query,
    Scan,
    Transaction,
    Write,
    pages,
)
from keygraph.dynamo.streams import DescribeStream, EnableStream, ReadRecords, Stream
from keygraph.dynamo.table import Index, Table
from keygraph.engines.sqlite import engine
from keygraph.engines.sqlite.engine import SQLiteStore, open_sqlite
from keygraph.errors import StreamTrimmed, TokenReused, Unavailable
from tests.keygraph.shop import SHOP, opened, put


@pytest.fixture(autouse=True)
def in_a_hurry(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(engine, "_WATCHED_SECONDS", 0.005)


def _names(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


async def test_readers_see_whole_writes_while_one_writes(shop: SQLiteStore) -> None:
    is_done = False

    async def write() -> None:
        nonlocal is_done
        for round_ in range(30):
            await put(shop, *({"PK": "p", "SK": f"{n}", "round": Decimal(round_)} for n in range(20)))
        is_done = True

    async def read() -> int:
        times = 0
        while not is_done:
            page = await shop.send(Query("p"))
            assert len(page.items) in {0, 20}
            assert len({item["round"] for item in page.items}) <= 1
            times += 1
        return times

    results = await asyncio.gather(write(), *(read() for _ in range(16)))
    assert all(times for times in results[1:] if times is not None)
    page = await shop.send(Query("p"))
    assert {item["round"] for item in page.items} == {Decimal(29)}


async def test_a_cancelled_request_harms_no_other(shop: SQLiteStore) -> None:
    await put(shop, *({"PK": "p", "SK": f"{n:04}", "text": "x" * 500} for n in range(2000)))
    for delay in (0.0, 0.0005, 0.002, 0.005):
        reads = [asyncio.create_task(shop.send(Query("p"))) for _ in range(12)]
        writes = [asyncio.create_task(put(shop, {"PK": "q", "SK": f"{n}"})) for n in range(4)]
        await asyncio.sleep(delay)
        for task in (*reads, *writes):
            task.cancel()
        await asyncio.gather(*reads, *writes, return_exceptions=True)
        answers = await asyncio.gather(*(shop.send(Query("p")) for _ in range(8)))
        assert [page.scanned for page in answers] == [answers[0].scanned] * 8
    await put(shop, {"PK": "q", "SK": "after"})
    assert (await shop.send(BatchGet((("q", "after"),)))).items == [{"PK": "q", "SK": "after"}]


async def test_a_closed_store_lets_everything_go(tmp_path: Path) -> None:
    async with opened(tmp_path / "shop.db") as store:
        await asyncio.gather(*(store.send(Scan()) for _ in range(8)))
    assert _names(tmp_path) == ["shop.db"]
    assert not [thread for thread in threading.enumerate() if thread.name.startswith("sqlite-")]
    with pytest.raises(Unavailable, match="closed"):
        await store.send(Scan())
    await store.close()


async def test_what_was_asked_before_closing_is_answered(tmp_path: Path) -> None:
    async with opened(tmp_path / "shop.db") as store:
        writing = asyncio.create_task(put(store, {"PK": "p", "SK": "s"}))
        await asyncio.sleep(0)
    assert (await writing).cost.write_units == 2
    async with open_sqlite(tmp_path / "shop.db", SHOP) as store:
        assert (await store.send(Scan())).items == [{"PK": "p", "SK": "s"}]


def _make_folder(path: Path) -> None:
    path.mkdir()


def _make_text(path: Path) -> None:
    path.write_text("This is a text, and by no means a database of any kind. " * 20)


def _make_foreign(path: Path) -> None:
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("CREATE TABLE theirs (id)")


def _make_of_another_version(path: Path) -> None:
    with closing(sqlite3.connect(path)) as connection:
        connection.execute(f"PRAGMA application_id = {0x4B657967}")
        connection.execute("PRAGMA user_version = 99")


@pytest.mark.parametrize(
    ("make", "problem"),
    [
        (_make_folder, "unable to open database file"),
        (_make_text, "it is not a SQLite file"),
        (_make_foreign, "it is another program's SQLite file"),
        (_make_of_another_version, "it was written by another version of Keygraph"),
    ],
)
async def test_a_file_that_cannot_be_used_is_one_clear_line(
    tmp_path: Path, make: Callable[[Path], None], problem: str
) -> None:
    path = tmp_path / "wrong"
    make(path)
    before = path.read_bytes() if path.is_file() else b""
    with pytest.raises(Unavailable) as caught:
        async with open_sqlite(path, SHOP):
            pass
    assert str(caught.value) == f"the file {path} cannot be used: {problem}"
    assert (path.read_bytes() if path.is_file() else b"") == before


_FOREIGN = '{"PK":"p","SK":"1","a":%s}'


@pytest.mark.parametrize(
    ("column", "value"),
    [
        *[("item", content) for content in (b"{nope", b"\xff\xfe", b"", b"[]", b"null", b'"x"', 5)],
        *[
            ("item", (_FOREIGN % value).encode())
            for value in ('{"Q":"x"}', '{"N":"x"}', '{"S":"x","N":"1"}', '{"SS":[{}]}', "{}", "[1]", "1.5")
        ],
        ("item", (_FOREIGN % ('{"L":[%s{"Q":1}]}' % ('{"N":"1"},' * 9_000))).encode()),
        ("size", "x"),
        ("size", -1),
    ],
)
async def test_a_damaged_item_is_one_clear_line(tmp_path: Path, column: str, value: object) -> None:
    path = tmp_path / "shop.db"
    async with open_sqlite(path, SHOP) as store:
        await store.send(CreateTable())
        await put(store, {"PK": "p", "SK": "1"})
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        find = "SELECT name FROM sqlite_schema WHERE type = 'table' AND sql LIKE '%item BLOB%'"
        for (name,) in connection.execute(find).fetchall():
            connection.execute(f'UPDATE "{name}" SET {column} = ?', (value,))
    there, delete = Exists(("a",)), DeleteItem(("p", "1"))
    async with open_sqlite(path, SHOP) as store:
        for request in (
            *(Scan(), Query("p"), Count("p", filter=there), BatchGet((("p", "1"),))),
            *(
                BatchWrite(deletes=(("p", "1"),)),
                Write(delete),
                Transaction((replace(delete, condition=there),), "t"),
            ),
        ):
            with pytest.raises(Unavailable, match=r"cannot be used: an item in it is damaged$"):
                await store.send(request)


@pytest.mark.parametrize(
    ("table", "column", "value"),
    [
        *[("keygraph_tables", "schema", text) for text in ("{nope", "[]", "{}")],
        *[("keygraph_tokens", "asked", value) for value in ("x", -1)],
        *[("sqlite_sequence", "seq", value) for value in ("x", None)],
        *[("%changes%", column, value) for column in ("at", "bytes") for value in ("x", 2**63 - 1)],
        ("table_1", "item", 5),
    ],
)
async def test_what_another_program_writes_beside_items_is_no_fault(
    tmp_path: Path, table: str, column: str, value: object
) -> None:
    add = Transaction((UpdateItem(("p", "1"), (SetTo(("a",), "b"),)),), "t")
    async with opened(tmp_path / "shop.db", table=SHOP.with_indexes([])) as shop:
        await shop.send(EnableStream())
        await shop.send(add)
        stream = cast(Stream, await shop.send(DescribeStream())).name
        with closing(sqlite3.connect(tmp_path / "shop.db", isolation_level=None)) as connection:
            find = "SELECT name FROM sqlite_schema WHERE type = 'table' AND name LIKE ?"
            [(name,)] = connection.execute(find, (table,)).fetchall()
            connection.execute(f'UPDATE "{name}" SET {column} = ?', (value,))
        deletes = BatchWrite(deletes=(("p", "1"),)), Write(DeleteItem(("p", "1")))
        for request in (DescribeTable(), add, *deletes, ReadRecords(stream, stream)):
            with suppress(TokenReused, StreamTrimmed, Unavailable):
                await shop.send(request)


async def test_an_item_of_another_key_than_its_row_is_damaged(tmp_path: Path) -> None:
    """A command would write it elsewhere, over another one."""
    async with opened(tmp_path / "shop.db", {"PK": "p", "SK": "1"}) as store:
        with closing(sqlite3.connect(tmp_path / "shop.db", isolation_level=None)) as connection:
            connection.execute("UPDATE table_1 SET item = ?", (b'{"PK":"p","SK":"2"}',))
        add = UpdateItem(("p", "1"), (SetTo(("a",), "b"),))
        for request in (Scan(), Write(add), Transaction((add,), "t")):
            with pytest.raises(Unavailable, match="damaged"):
                await store.send(request)


async def test_folders_are_made(tmp_path: Path) -> None:
    async with open_sqlite(tmp_path / "a" / "b" / "shop.db", SHOP) as store:
        assert await store.send(DescribeTable()) is None
    with pytest.raises(Unavailable, match=r"cannot be used: (not a directory|file exists)"):
        async with open_sqlite(tmp_path / "a" / "b" / "shop.db" / "c.db", SHOP):
            pass


async def test_a_file_locked_by_another_process_is_waited_for(tmp_path: Path) -> None:
    path = tmp_path / "shop.db"
    async with opened(path, locked_seconds=0.2) as store:
        with closing(sqlite3.connect(path, isolation_level=None)) as other:
            other.execute("BEGIN IMMEDIATE")
            with pytest.raises(Unavailable, match="another process has locked it"):
                await put(store, {"PK": "p", "SK": "s"})
            # Reading goes on beside a writer, and a worker that is replaced starts.
            async with open_sqlite(path, SHOP) as another:
                for each in (store, another):
                    assert (await each.send(Scan())).items == []
            other.execute("ROLLBACK")
        await put(store, {"PK": "p", "SK": "s"})
        assert (await store.send(Scan())).scanned == 1


async def test_a_full_disk_is_logged_once(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    async with opened(tmp_path / "shop.db") as shop:
        with shop._writing.connection() as writer:
            [[pages]] = writer.execute("PRAGMA page_count")
            writer.execute(f"PRAGMA max_page_count = {pages}")
        for _ in range(2):
            with pytest.raises(Unavailable, match="cannot be used: database or disk is full"):
                await put(shop, *({"PK": "p", "SK": f"{n}", "text": "x" * 9_000} for n in range(9)))
        assert (await shop.send(Scan())).items == []
        with shop._writing.connection() as writer:
            writer.execute("PRAGMA max_page_count = 100000")
        await put(shop, {"PK": "p", "SK": "s"})
        assert (await shop.send(Scan())).scanned == 1
    assert caplog.messages == [
        "Nothing is written to the table's file: database or disk is full",
        "Writes to the table's file succeed again",
    ]


async def test_two_processes_share_a_file(tmp_path: Path) -> None:
    path = tmp_path / "shop.db"
    async with open_sqlite(path, SHOP) as one, open_sqlite(path, SHOP) as other:
        await one.send(CreateTable())
        await asyncio.gather(
            *(put(s, {"PK": "p", "SK": f"{s is one}{n}"}) for n in range(20) for s in (one, other))
        )
        assert (await one.send(Count("p"))).count == (await other.send(Count("p"))).count == 40
        await other.send(DeleteTable())
        await other.send(CreateTable())
        assert (await one.send(Scan())).items == []


@pytest.mark.parametrize("is_checkpointed", [False, True])
async def test_a_file_that_somebody_else_writes_into_is_noticed(
    tmp_path: Path, is_checkpointed: bool
) -> None:
    path = tmp_path / "shop.db"
    async with opened(path) as store:
        for n in range(9):
            await put(store, {"PK": "p", "SK": f"{n}", "text": "x" * 9_000})
            # What SQLite does, in any process, is not mistaken for it.
            with closing(sqlite3.connect(path, isolation_level=None)) as other:
                if is_checkpointed or n == 0:
                    other.execute("PRAGMA wal_checkpoint(TRUNCATE)" if n % 2 else "VACUUM")
                    other.execute("PRAGMA wal_checkpoint")
            assert store.outage is None
        with path.open("r+b") as file:
            file.seek(5000)
            file.write(b"x")
        with pytest.raises(Unavailable, match="was replaced or overwritten while it was in use"):
            await put(store, {"PK": "p", "SK": "lost"})
        assert store.outage is not None


def _delete(path: Path) -> None:
    path.unlink()


def _move(path: Path) -> None:
    path.rename(path.with_name("moved.db"))


def _move_folder(path: Path) -> None:
    path.parent.rename(path.parent.with_name("moved"))


def _put_another(path: Path) -> None:
    with closing(sqlite3.connect(path.with_name("other.db"))) as other:
        other.execute("CREATE TABLE theirs (id)")
    path.with_name("other.db").rename(path)


def _empty(path: Path) -> None:
    path.write_bytes(b"")


def _delete_log(path: Path) -> None:
    path.with_name("shop.db-wal").unlink()


def _delete_index_of_log(path: Path) -> None:
    path.with_name("shop.db-shm").unlink()


def _empty_log(path: Path) -> None:
    path.with_name("shop.db-wal").write_bytes(b"")


def _cut_log(path: Path) -> None:
    log = path.with_name("shop.db-wal")
    os.truncate(log, log.stat().st_size // 2)


def _shorten_log(path: Path) -> None:
    log = path.with_name(f"{path.name}-wal")
    os.truncate(log, log.stat().st_size - 100)


@pytest.mark.parametrize("is_replaced", [False, True])
async def test_nothing_is_acknowledged_after_another_process_has_lost_the_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, is_replaced: bool
) -> None:
    """That one moves the log into the file, which would look like the only change to whoever looks later."""
    path, away = tmp_path / "shop.db", tmp_path / "away.db"
    monkeypatch.setattr(engine, "_WATCHED_SECONDS", 3600)
    async with opened(path) as one, open_sqlite(path, SHOP) as other:
        await put(other, {"PK": "p", "SK": "before"})
        assert one.outage is None
        if is_replaced:
            path.rename(away)
            path.write_text("another")
            assert one._files.problem()
            away.replace(path)
        else:
            os.utime(path)
        assert "shop.db was replaced" in _noticed(one)
        with pytest.raises(Unavailable):
            await put(other, {"PK": "p", "SK": "lost"})
    assert await _count(path) == 1


async def test_what_is_acknowledged_before_another_process_takes_the_log_away_is_kept(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path, loop = tmp_path / "shop.db", asyncio.get_running_loop()
    monkeypatch.setattr(engine, "_WATCHED_SECONDS", 3600)
    async with opened(path) as one, open_sqlite(path, SHOP) as other:
        await put(other, {"PK": "p", "SK": "before"})
        assert one.outage is None
        unlink_log = one._files.unlink_log

        def unlink_late() -> None:
            monkeypatch.undo()
            asyncio.run_coroutine_threadsafe(put(other, {"PK": "p", "SK": "late"}), loop).result()
            unlink_log()

        monkeypatch.setattr(one._files, "unlink_log", unlink_late)
        os.utime(path)
        assert "shop.db was replaced" in (one.outage or "")
        await one._writing.run(int)
        await one.close()
    assert await _count(path) == 2


async def _refused(shop: SQLiteStore) -> str:
    """Returns why a write is refused, and then a read as well."""
    with pytest.raises(Unavailable) as write:
        await put(shop, {"PK": "p", "SK": "lost"})
    problem, refused = str(write.value), ""
    while refused != problem:  # until the files are looked for again
        try:
            await shop.send(BatchGet((("p", "lost"),)))
        except Unavailable as read:
            refused = str(read)
    assert problem == _noticed(shop)
    return problem


def _noticed(shop: SQLiteStore) -> str:
    """Returns what the store finds of its files, when its writer has done what that needs."""
    found = shop.outage or ""
    shop._writing.executor.submit(int).result()
    return found


async def _count(path: Path) -> int:
    async with open_sqlite(path, SHOP) as shop:
        return (await shop.send(Count("p"))).count


@pytest.mark.parametrize(
    ("attack", "problem", "left"),
    [
        (_delete, "data/shop.db was moved or deleted", None),
        (_move, "data/shop.db was moved or deleted", "data/moved.db"),
        (_move_folder, "data/shop.db was moved or deleted", "moved/shop.db"),
        (_put_another, "data/shop.db was replaced", None),
        (_empty, "data/shop.db was replaced", None),
        (_empty_log, "data/shop.db-wal was replaced", None),
        (_cut_log, "data/shop.db-wal was replaced", None),
        (_delete_log, "data/shop.db-wal was moved or deleted", "data/shop.db"),
        (_delete_index_of_log, "data/shop.db-shm was moved or deleted", "data/shop.db"),
    ],
)
async def test_a_file_that_is_moved_or_deleted_is_noticed(
    tmp_path: Path,
    caplog: pytest.LogCaptureFixture,
    attack: Callable[[Path], None],
    problem: str,
    left: str | None,
) -> None:
    path = tmp_path / "data" / "shop.db"
    async with opened(path) as shop:
        acknowledged = [{"PK": "p", "SK": f"{number}"} for number in range(9)]
        for item in acknowledged:
            await put(shop, item)
        assert shop.outage is None
        attack(path)
        assert problem in await _refused(shop)
        assert [each.message for each in caplog.records] == [f"Nothing is read or written: {shop.outage}"]
        if left is not None:
            # They are in the file even if the process is killed now.
            shop._writing.executor.submit(int).result()
            shutil.copy(tmp_path / left, tmp_path / "copy.db")
    if left is not None:
        async with open_sqlite(tmp_path / "copy.db", SHOP) as shop:
            assert (await shop.send(Query("p"))).items == acknowledged


@pytest.mark.parametrize("moment", ["before a write", "BEGIN IMMEDIATE", "COMMIT"])
@pytest.mark.parametrize("cut", [_empty_log, _cut_log, _shorten_log])
async def test_a_log_that_was_cut_takes_nothing_else_along(
    tmp_path: Path, cut: Callable[[Path], None], moment: str
) -> None:
    """SQLite writes on behind the end of a log that was emptied, and would copy the hole over what is in the file."""
    path = tmp_path / "shop.db"
    older = [{"PK": "p", "SK": f"{number:02}"} for number in range(50)]
    async with opened(path) as shop:
        for item in older:
            await put(shop, item)
    async with open_sqlite(path, SHOP) as shop:
        for item in older:
            await put(shop, {**item, "SK": f"9{item['SK']}"})
        if moment == "before a write":
            cut(path)

        def cut_and_look(sql: str) -> None:
            if sql == moment:
                cut(path)
                shop._files.problem()  # as the event loop does at any time

        with shop._writing.connection() as writer:
            writer.set_trace_callback(cut_and_look)
        await _refused(shop)
        shutil.copytree(tmp_path, tmp_path / "copied", ignore=shutil.ignore_patterns("copied"))
    for each in (tmp_path / "copied" / "shop.db", path):
        async with open_sqlite(each, SHOP) as shop:
            found = (await shop.send(Query("p"))).items
            assert found[:50] == older
            assert len(found) >= 99 or cut is not _shorten_log


async def test_a_file_that_comes_back_is_used_again(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    path, away = tmp_path / "shop.db", tmp_path / "away.db"
    async with opened(path, {"PK": "p", "SK": "before"}) as shop:
        path.rename(away)
        await _refused(shop)
        # Whoever puts another file there does not find this one's writes in its log.
        assert path.with_name("shop.db-wal").stat().st_size == 0
        away.rename(path)
        assert shop.outage is None
        await put(shop, {"PK": "p", "SK": "after"})
        assert [item["SK"] for item in (await shop.send(Query("p"))).items] == ["after", "before"]
    assert caplog.messages[-1] == "The table's file is in its place again"


@pytest.mark.parametrize("ending", ["-wal", "-shm"])
async def test_a_file_that_came_back_after_another_one_was_there_is_not_used(
    tmp_path: Path, ending: str
) -> None:
    """Another process may have used that one with the same database, and neither has the other's writes."""
    path = tmp_path / "shop.db"
    async with opened(path, {"PK": "p", "SK": "before"}) as shop:
        log, away = path.with_name(f"shop.db{ending}"), tmp_path / "away"
        log.rename(away)
        log.touch()
        assert f"shop.db{ending} was replaced" in (shop.outage or "")
        away.rename(log)
        assert f"shop.db{ending} was replaced" in await _refused(shop)
    assert await _count(path) == 1


@pytest.mark.parametrize("ending", ["-wal", "-shm"])
async def test_nobody_makes_a_log_beside_a_file_that_another_process_uses(
    tmp_path: Path, ending: str
) -> None:
    """Two processes with two logs lose each other's writes."""
    path = tmp_path / "shop.db"
    async with opened(path, {"PK": "p", "SK": "before"}) as shop:
        path.with_name(f"shop.db{ending}").rename(tmp_path / "away")
        names = _names(tmp_path)
        code = textwrap.dedent(f"""
            import asyncio
            from keygraph.engines.sqlite import files
            from keygraph.engines.sqlite.engine import open_sqlite
            from tests.keygraph.shop import SHOP

            files._APPEARS_SECONDS = 0.05

            async def main():
                async with open_sqlite({str(path)!r}, SHOP):
                    pass

            asyncio.run(main())
        """)
        ended = await asyncio.to_thread(
            subprocess.run, [sys.executable, "-c", code], capture_output=True, text=True, check=False
        )
        assert f"another process uses it, but {path}{ending} is missing" in ended.stderr
        assert _names(tmp_path) == names
        (tmp_path / "away").rename(path.with_name(f"shop.db{ending}"))
        assert shop.outage is None
        await put(shop, {"PK": "p", "SK": "after"})
    assert await _count(path) == 2


@pytest.mark.parametrize("is_away_before", [False, True])
async def test_another_file_gets_a_log_of_its_own(tmp_path: Path, is_away_before: bool) -> None:
    """By the index of the replaced file's log, a larger one was malformed; and what was written into it was emptied."""
    path, away = tmp_path / "shop.db", tmp_path / "away.db"
    async with open_sqlite(tmp_path / "other.db", SHOP) as other:
        await other.send(CreateTable())
        await put(other, *({"PK": f"{n}", "SK": "s", "text": "x" * 3_000} for n in range(200)))
    async with open_sqlite(path, SHOP) as shop:
        await shop.send(CreateTable())
        await put(shop, {"PK": "p", "SK": "before"})
        path.rename(away)
        if is_away_before:
            await _refused(shop)
        (tmp_path / "other.db").rename(path)
        assert "shop.db was replaced" in _noticed(shop)
        assert not path.with_name("shop.db-wal").exists()
        async with open_sqlite(path, SHOP) as other:
            assert (await other.send(Count("199"))).count == 1
            for number in range(9):
                await put(other, {"PK": "p", "SK": f"{number}"})
            await shop.close()
            assert (await other.send(Count("p"))).count == 9
            await put(other, {"PK": "p", "SK": "9"})
    for each, found in ((path, 10), (away, 1)):
        async with open_sqlite(each, SHOP) as shop:
            assert (await shop.send(Count("p"))).count == found


async def test_a_file_that_is_replaced_right_before_a_stop_gets_no_log(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The next start read a backup with the log of the old file, which lacked the last writes."""
    monkeypatch.setattr(engine, "_WATCHED_SECONDS", 1000)
    path, away = tmp_path / "shop.db", tmp_path / "away.db"
    async with opened(path, {"PK": "p", "SK": "old"}) as shop:
        with (
            closing(sqlite3.connect(path)) as source,
            closing(sqlite3.connect(tmp_path / "other.db")) as made,
        ):
            source.backup(made)
        await put(shop, *({"PK": "p", "SK": f"{n}", "text": "x" * 3_000} for n in range(200)))
        path.rename(away)
        (tmp_path / "other.db").rename(path)
    assert _names(tmp_path) == ["away.db", "shop.db"]
    for each, found in ((path, 1), (away, 201)):
        async with open_sqlite(each, SHOP) as shop:
            assert (await shop.send(Count("p"))).count == found


@pytest.mark.parametrize("is_stopped", [False, True])
async def test_a_log_that_somebody_reads_is_left_later(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture, is_stopped: bool
) -> None:
    """It was given up after one try, and the next start read the new file with it."""
    monkeypatch.setattr(engine, "_WATCHED_SECONDS", 1000)
    path, away = tmp_path / "shop.db", tmp_path / "away.db"
    async with opened(path, {"PK": "p", "SK": "old"}, locked_seconds=0.01) as shop:
        reader = sqlite3.connect(path, isolation_level=None)
        reader.execute("BEGIN")
        assert reader.execute("SELECT count(*) FROM sqlite_schema").fetchone() > (0,)
        await put(shop, {"PK": "p", "SK": "new"})
        path.rename(away)
        _put_another(path)
        assert "shop.db was replaced" in _noticed(shop)
        if is_stopped:
            await shop.close()
            assert "keep both together" in caplog.messages[-1]
        assert path.with_name("shop.db-wal").exists()
        reader.close()
        if not is_stopped:
            assert "shop.db was replaced" in _noticed(shop)
            assert _names(tmp_path) == ["away.db", "shop.db"]
    if not is_stopped:
        async with open_sqlite(away, SHOP) as moved:
            assert (await moved.send(Count("p"))).count == 2


@pytest.mark.parametrize("moment", [1, 2], ids=["before COMMIT", "after COMMIT"])
async def test_a_log_that_is_cut_while_a_write_ends_is_noticed(tmp_path: Path, moment: int) -> None:
    """It was compared with its length before that write, and what was written later is read by nobody."""
    path = tmp_path / "shop.db"
    async with opened(path, {"PK": "p", "SK": "before"}) as shop:
        check, calls = shop._files.check, count()

        def cut_in_between() -> None:
            number = next(calls)
            if number == 2 == moment:
                _shorten_log(path)
            check()
            if number == 1 == moment:
                _shorten_log(path)

        shop._files.check = cut_in_between  # type: ignore[method-assign]
        assert "shop.db-wal was replaced" in await _refused(shop)


async def test_who_has_put_another_file_there_keeps_its_log(tmp_path: Path) -> None:
    """It may have got the log of this one, under the same name, before anybody noticed that another file is there."""
    path = tmp_path / "shop.db"
    async with opened(path, {"PK": "p", "SK": "old"}) as shop:
        path.unlink()
        await _refused(shop)
        _put_another(path)
        other = sqlite3.connect(path, isolation_level=None)
        other.execute("PRAGMA journal_mode = WAL")
        other.execute("CREATE TABLE mine AS SELECT 1")
        assert shop._files.log_file.seek(0, 2) > 0
    with closing(sqlite3.connect(path)) as reader:
        assert reader.execute("SELECT * FROM mine").fetchall() == [(1,)]
    other.close()


async def test_a_log_that_another_program_has_written_into_is_not_copied(tmp_path: Path) -> None:
    """Another file was there for a while, and SQLite keeps its log under the same name."""
    path, away = tmp_path / "shop.db", tmp_path / "away.db"
    async with opened(path, {"PK": "p", "SK": "before"}) as shop:
        shutil.copy(path, tmp_path / "other.db")
        path.rename(away)
        await _refused(shop)
        (tmp_path / "other.db").rename(path)
        with closing(sqlite3.connect(path, isolation_level=None)) as other:
            other.execute("PRAGMA journal_mode = WAL")
            other.execute(
                "CREATE TABLE foreign_rows AS WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n LIMIT 5000) SELECT i FROM n"
            )
            away.rename(path)
            assert shop._files.log_file.seek(0, 2) > 0
            path.rename(away)
            await _refused(shop)
    path.unlink(missing_ok=True)
    away.rename(path)
    assert await _count(path) == 1


async def test_who_stops_before_it_has_noticed_that_the_file_is_back_takes_no_writes_along(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path, away = tmp_path / "shop.db", tmp_path / "away.db"
    monkeypatch.setattr(engine, "_WATCHED_SECONDS", 3600)
    async with opened(path) as first, open_sqlite(path, SHOP) as late:
        path.rename(away)
        for shop in (first, late):
            assert "shop.db was moved" in _noticed(shop)
        away.rename(path)
        assert first.outage is None
        await put(first, {"PK": "p", "SK": "acknowledged"})
    assert await _count(path) == 1


_ANOTHER_PROGRAM = """
import sqlite3, sys
other = sqlite3.connect(sys.argv[1], isolation_level=None)
other.execute("CREATE TABLE foreign_rows (number)")
other.execute("PRAGMA journal_mode = WAL")
other.execute("INSERT INTO foreign_rows VALUES (1)")
other.close()
"""


async def test_a_log_is_not_copied_after_another_file_was_there(tmp_path: Path) -> None:
    """The server looks for its files again after its own one is back."""
    path, away = tmp_path / "shop.db", tmp_path / "away.db"
    async with opened(path, {"PK": "p", "SK": "before", "text": "x" * 300_000}) as shop:
        path.rename(away)
        await _refused(shop)
        command = [sys.executable, "-c", _ANOTHER_PROGRAM, path]
        await asyncio.to_thread(subprocess.run, command, check=True)
        assert "replaced" in _noticed(shop)
        path.unlink()
        away.rename(path)
        assert "replaced" in _noticed(shop)
    assert await _count(path) == 1


@pytest.mark.parametrize("is_emptied", [False, True])
async def test_no_new_file_gets_the_log_of_one_that_is_in_use(tmp_path: Path, is_emptied: bool) -> None:
    """What is written to the new one would be copied into the old one, when that comes back."""
    path, away = tmp_path / "shop.db", tmp_path / "away.db"
    async with opened(path, {"PK": "p", "SK": "before"}) as shop:
        path.rename(away)
        if is_emptied:
            path.touch()
        with pytest.raises(
            Unavailable, match=r"shop.db is missing or empty, but .*shop.db-wal is there: put the file"
        ):
            async with open_sqlite(path, SHOP):
                pass
        assert path.exists() == is_emptied
        # Whatever the server does about it is done before the file comes back.
        assert shop.outage is not None
        await asyncio.wrap_future(shop._writing.executor.submit(int))
        away.rename(path)
        assert shop.outage is None
        await put(shop, {"PK": "p", "SK": "after"})
        assert [item["SK"] for item in (await shop.send(Query("p"))).items] == ["after", "before"]


async def test_a_write_that_ends_in_a_lost_file_is_not_acknowledged(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The file may be moved after the write has begun."""
    path = tmp_path / "shop.db"
    async with opened(path) as shop:
        monkeypatch.setattr(shop, "_written", lambda *_: path.rename(tmp_path / "away.db"))
        with pytest.raises(Unavailable, match="was moved or deleted"):
            await put(shop, {"PK": "p", "SK": "s"})


WRITER = textwrap.dedent(
    """
    import asyncio, sys
    from keygraph.engines.sqlite.engine import open_sqlite
    from keygraph.dynamo.store import BatchWrite, CreateTable
    from keygraph.dynamo.table import Index, Table

    async def main():
        table = Table("Log", partition_key="PK", sort_key="SK", indexes=[Index("by-sk", "SK", "PK")])
        async with open_sqlite(sys.argv[1], table) as store:
            await store.send(CreateTable())
            for n in range(1_000_000):
                await store.send(BatchWrite(puts=({"PK": "p", "SK": f"{n:07}", "text": "x" * 500},)))
                print(f"{n:07}", flush=True)

    asyncio.run(main())
    """
)


def _written_until_killed(path: Path) -> list[str]:
    """The sort keys that a process had acknowledged when it was killed, in the middle of its writing."""
    command = [sys.executable, "-c", WRITER, str(path)]
    root = Path(__file__).parents[2]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, cwd=root) as process:
        if process.stdout is None:
            raise AssertionError("the output is piped")
        acknowledged = [process.stdout.readline().strip() for _ in range(200)]
        process.send_signal(signal.SIGKILL)
        acknowledged += [line.strip() for line in process.stdout if line.endswith("\n")]
    assert process.returncode == -signal.SIGKILL
    return acknowledged


async def test_a_killed_process_has_lost_no_acknowledged_write(tmp_path: Path) -> None:
    path = tmp_path / "log.db"
    acknowledged = _written_until_killed(path)
    assert _names(tmp_path) == ["log.db", "log.db-shm", "log.db-wal"]

    table = Table("Log", partition_key="PK", sort_key="SK", indexes=[Index("by-sk", "SK", "PK")])
    async with open_sqlite(path, table) as store:
        kept = [str(item["SK"]) async for page in pages(store, Query("p")) for item in page.items]
        # One more may have been written before it could be acknowledged.
        assert kept[: len(acknowledged)] == acknowledged
        assert len(kept) <= len(acknowledged) + 1
        for key in kept:
            assert (await store.send(Count(key, index="by-sk"))).count == 1


async def test_a_copy_that_sqlite_made_is_used_and_closed_like_the_file(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    async with opened(tmp_path / "shop.sqlite", {"PK": "p", "SK": "1"}):
        with closing(sqlite3.connect(tmp_path / "shop.sqlite")) as connection:
            connection.execute("VACUUM INTO ?", (str(tmp_path / "copy.sqlite"),))
    async with open_sqlite(tmp_path / "copy.sqlite", SHOP) as copy:
        assert (await copy.send(Scan())).items == [{"PK": "p", "SK": "1"}]
    assert (caplog.messages, _names(tmp_path)) == ([], ["copy.sqlite", "shop.sqlite"])
