"""The embedded engine's file and threads: it blocks nobody, loses nothing and lets everything go."""

from __future__ import annotations

import asyncio
import signal
import sqlite3
import subprocess
import sys
import textwrap
import threading
import time
from collections.abc import Callable
from contextlib import closing
from decimal import Decimal
from pathlib import Path

import pytest

from keygraph.dynamo.store import (
    BatchGet,
    Count,
    CreateTable,
    DeleteTable,
    DescribeTable,
    Query,
    Scan,
    pages,
)
from keygraph.dynamo.table import Index, Table
from keygraph.engines.sqlite.engine import SQLiteStore, open_sqlite
from keygraph.errors import Unavailable
from tests.keygraph.shop import SHOP, put


def _names(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


async def test_the_event_loop_is_not_blocked(shop: SQLiteStore) -> None:
    """One large read would hold up every other request of the server."""
    await put(shop, *({"PK": "p", "SK": f"{n:05}", "text": "x" * 60} for n in range(10_000)))
    threads: set[str] = set()
    longest = 0.0

    async def ticks() -> None:
        nonlocal longest
        while True:
            before = time.perf_counter()
            await asyncio.sleep(0)
            longest = max(longest, time.perf_counter() - before)
            threads.update(thread.name for thread in threading.enumerate())
            await asyncio.sleep(0.001)

    ticking = asyncio.create_task(ticks())
    began = time.perf_counter()
    found = await asyncio.gather(*(shop.send(Query("p")) for _ in range(4)))
    took = time.perf_counter() - began
    ticking.cancel()
    assert [page.scanned for page in found] == [10_000] * 4
    # The interpreter's lock passes between threads every 5 ms, so a wait is a small part of the whole.
    assert longest < took / 2
    assert len([name for name in threads if name.startswith("sqlite-reader")]) == 4


async def test_readers_see_whole_writes_while_one_writes(shop: SQLiteStore) -> None:
    """Readers would fail beside a writer, or see half of a batch."""
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
    """A client that hangs up would break the connection for the next one."""
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
    """Files and threads would pile up with every reload of the server."""
    async with open_sqlite(tmp_path / "shop.db", SHOP) as store:
        await store.send(CreateTable())
        await asyncio.gather(*(store.send(Scan()) for _ in range(8)))
    assert _names(tmp_path) == ["shop.db"]
    assert not [thread for thread in threading.enumerate() if thread.name.startswith("sqlite-")]
    with pytest.raises(Unavailable, match="closed"):
        await store.send(Scan())
    await store.close()


async def test_what_was_asked_before_closing_is_answered(tmp_path: Path) -> None:
    """A write that is under way when the server stops would be lost without an error."""
    async with open_sqlite(tmp_path / "shop.db", SHOP) as store:
        await store.send(CreateTable())
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


def _make_newer(path: Path) -> None:
    with closing(sqlite3.connect(path)) as connection:
        connection.execute(f"PRAGMA application_id = {0x4B657967}")
        connection.execute("PRAGMA user_version = 99")


@pytest.mark.parametrize(
    ("make", "problem"),
    [
        (_make_folder, "unable to open database file"),
        (_make_text, "it is not a SQLite file"),
        (_make_foreign, "it is another program's SQLite file"),
        (_make_newer, "it was written by a newer version of Keygraph"),
    ],
)
async def test_a_file_that_cannot_be_used_is_one_clear_line(
    tmp_path: Path, make: Callable[[Path], None], problem: str
) -> None:
    """A wrong path would end in a traceback, or somebody else's file would be changed."""
    path = tmp_path / "wrong"
    make(path)
    before = path.read_bytes() if path.is_file() else b""
    with pytest.raises(Unavailable) as caught:
        async with open_sqlite(path, SHOP):
            pass
    assert str(caught.value) == f"the file {path} cannot be used: {problem}"
    assert (path.read_bytes() if path.is_file() else b"") == before


async def test_folders_are_made(tmp_path: Path) -> None:
    """The first start, whose folder is not there yet, would fail; one below a file cannot be helped."""
    async with open_sqlite(tmp_path / "a" / "b" / "shop.db", SHOP) as store:
        assert await store.send(DescribeTable()) is None
    with pytest.raises(Unavailable, match=r"cannot be used: (not a directory|file exists)"):
        async with open_sqlite(tmp_path / "a" / "b" / "shop.db" / "c.db", SHOP):
            pass


async def test_a_file_locked_by_another_process_is_waited_for(tmp_path: Path) -> None:
    """A lock of another process would hang the server, or surface as an internal error."""
    path = tmp_path / "shop.db"
    async with open_sqlite(path, SHOP, locked_seconds=0.2) as store:
        await store.send(CreateTable())
        with closing(sqlite3.connect(path, isolation_level=None)) as other:
            other.execute("BEGIN IMMEDIATE")
            with pytest.raises(Unavailable, match="another process has locked it"):
                await put(store, {"PK": "p", "SK": "s"})
            # Reading goes on beside a writer.
            assert (await store.send(Scan())).items == []
            other.execute("ROLLBACK")
        await put(store, {"PK": "p", "SK": "s"})
        assert (await store.send(Scan())).scanned == 1


async def test_two_processes_share_a_file(tmp_path: Path) -> None:
    """With several workers one would not see what the other wrote."""
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
    """A crash would lose writes that a client was told are done, or leave an index out of step."""
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
