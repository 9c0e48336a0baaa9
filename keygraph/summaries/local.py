"""The job on this machine: reads the table in parallel segments, and sorts on disk.

Everything that must be remembered is in one SQLite file, the work file: the rows of `keygraph.summaries.work`, how far
each segment was read, and how far the results were written. A page's rows and its position are saved in one transaction,
so the job can be interrupted at any point, and nothing is counted twice when it goes on. Memory holds one page per
segment and SQLite's sorter, however large the table is.
"""

from __future__ import annotations

import asyncio
import os
import sqlite3
from collections.abc import AsyncIterator, Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager, suppress
from datetime import UTC, datetime
from decimal import Decimal
from itertools import chain, groupby, islice
from pathlib import Path
from typing import Any, TypeAlias, TypeVar

import orjson

from keygraph.dynamo.items import base64_text
from keygraph.dynamo.store import Scan, Store, pages
from keygraph.engines.sqlite.files import check_files
from keygraph.summaries.work import EDGES, IMAGES, LINKS, WRITES, GroupRow, Summaries
from keygraph.summaries.writing import SummaryWriter
from keygraph.tables.bulk import gathered
from keygraph.tables.findings import key_from_json, key_to_json
from keygraph.tables.walked_edges import WalkSource

_PAGE_ITEMS = 1000
_BATCH_ROWS = 5000
_BATCH_WRITES = 1000
_APPLICATION = 0x4B677366
"""The number by which a work file is known (https://www.sqlite.org/fileformat2.html#application_id)."""
_LAYOUT = f"""
    PRAGMA locking_mode = EXCLUSIVE;
    PRAGMA application_id = {_APPLICATION};
    PRAGMA journal_mode = WAL;
    PRAGMA synchronous = NORMAL;
    PRAGMA cache_size = -32000;
    PRAGMA temp_store = FILE;
    CREATE TABLE IF NOT EXISTS rows (
        stage INTEGER, summary INTEGER, key TEXT, place BLOB, content BLOB
    );
    CREATE TABLE IF NOT EXISTS results (
        number INTEGER PRIMARY KEY, stage INTEGER, summary INTEGER, key TEXT, place BLOB, content BLOB
    );
    CREATE TABLE IF NOT EXISTS progress (name TEXT PRIMARY KEY, value TEXT) WITHOUT ROWID;
"""
_EMPTY = "DROP TABLE rows; DROP TABLE results; DROP TABLE progress;"
_STAGES = range(LINKS, WRITES)
"""The stages that are reduced, one after the other."""

Part: TypeAlias = "Callable[[Any], AsyncIterator[tuple[Iterable[GroupRow], int, Any]]]"
"""A part of what the job reads: yields the rows of some items, their number, and the position after them; None at the
end. It goes on after a position."""


class UnusableWorkFile(ValueError):
    """A file that is no work file, is used by a running job, or belongs to another one."""

    def __init__(self, problem: str, fix: str) -> None:
        self.fix = fix
        super().__init__(problem)


class WorkFile:
    """The file of a job, which no other job can use until it is closed.

    Its methods raise sqlite3.Error if it cannot be read or written.
    """

    def __init__(self, path: Path, what: Sequence[str], *, resume: bool) -> None:
        """`what` identifies the job. Without `resume`, what an older job has left is removed. Raises UnusableWorkFile,
        and OSError."""
        self._path = path
        self._reading = list[sqlite3.Cursor]()
        if path.is_symlink() or (path.exists() and not path.is_file()):
            raise UnusableWorkFile(f"{path} is not a file", "Name another file")
        path.parent.mkdir(parents=True, exist_ok=True)
        if not path.exists() or not path.stat().st_size:
            check_files(path)
        with suppress(FileExistsError):
            # It holds values of the table.
            os.close(os.open(path, os.O_CREAT | os.O_EXCL | os.O_RDWR, 0o600))
        before = path.stat()
        try:
            if before.st_size:
                self._refuse_other_content()
            self._database = sqlite3.connect(path.absolute(), isolation_level=None, timeout=0)
        except sqlite3.OperationalError as error:
            raise self._unusable(error) from None
        try:
            self._database.executescript(_LAYOUT)
            if not self._is(before):
                raise self._in_use
            if not resume:
                self._database.executescript(_EMPTY + _LAYOUT)
            self.is_resumed = self.get("what") is not None
            if self.get("what", [*what]) != [*what]:
                problem = f"{path} does not belong to a job of this table with this model and these options"
                raise UnusableWorkFile(problem, "Run it without --resume")
            self.put("what", [*what])
        except BaseException as error:
            self._database.close()
            if isinstance(error, sqlite3.OperationalError):
                raise self._unusable(error) from None
            raise

    def _refuse_other_content(self) -> None:
        """Raises UnusableWorkFile if something else than a work file is there: it would be changed, and deleted."""
        # SQLite reads it, because who closes a file that SQLite has open, such as the table, ends its locks.
        address = f"{self._path.absolute().as_uri()}?immutable=1"
        with closing(sqlite3.connect(address, uri=True)) as database:
            try:
                # Without that, a file that is shorter than it says is refused: the rest is in its log.
                database.execute("PRAGMA writable_schema = ON")
                [application] = database.execute("PRAGMA application_id").fetchone()
            except sqlite3.DatabaseError as error:
                if error.sqlite_errorcode != sqlite3.SQLITE_NOTADB:
                    raise
                application = 0
        if application != _APPLICATION:
            problem = f"{self._path} is there, and is not the work file of a job"
            raise UnusableWorkFile(problem, "Name another file")

    def _is(self, before: os.stat_result) -> bool:
        """Returns whether the file is still there that was."""
        try:
            return os.path.samestat(self._path.stat(), before)
        except FileNotFoundError:
            return False

    def _unusable(self, error: sqlite3.OperationalError) -> Exception:
        return self._in_use if error.sqlite_errorcode == sqlite3.SQLITE_BUSY else error

    @property
    def _in_use(self) -> UnusableWorkFile:
        return UnusableWorkFile(
            f"{self._path} is used by a job that is running", "Wait until it ends, or name another file"
        )

    def close(self) -> None:
        self._end_reading()
        self._database.close()

    def _end_reading(self) -> None:
        """Ends all statements: one that was not read to its end keeps the lock."""
        while self._reading:
            self._reading.pop().close()

    def _read(self, statement: str, values: tuple[int, ...]) -> sqlite3.Cursor:
        cursor = self._database.cursor()
        self._reading.append(cursor)
        return cursor.execute(statement, values)

    def delete(self) -> None:
        """Deletes the file, and closes it."""
        self._end_reading()
        # Without a log of its own, closing it deletes nothing that another job has made by then.
        self._database.execute("PRAGMA journal_mode = DELETE")
        try:
            self._path.unlink(missing_ok=True)
        except PermissionError:
            # Windows deletes no file that is open.
            self.close()
            self._path.unlink(missing_ok=True)
        self.close()

    def get(self, name: str, default: Any = None) -> Any:
        """Returns saved progress."""
        found = self._database.execute("SELECT value FROM progress WHERE name = ?", (name,)).fetchone()
        return default if found is None else orjson.loads(found[0])

    def put(self, name: str, value: Any) -> None:
        text = orjson.dumps(value, default=base64_text).decode()
        self._database.execute("INSERT OR REPLACE INTO progress VALUES (?, ?)", (name, text))

    @contextmanager
    def transaction(self) -> Iterator[None]:
        """Saves all that is put meanwhile, or nothing."""
        self._database.execute("BEGIN")
        try:
            yield
            self._database.execute("COMMIT")
        except BaseException:
            # SQLite has ended it already if, for example, the disk is full.
            if self._database.in_transaction:
                self._database.execute("ROLLBACK")
            raise

    def add(self, rows: Iterable[GroupRow]) -> None:
        self._database.executemany("INSERT INTO rows VALUES (?, ?, ?, ?, ?)", rows)

    def sorted(self, stage: int) -> Iterator[GroupRow]:
        """Yields the rows of a stage in their order, and of the last one by the key of the item."""
        order = "key, summary" if stage == WRITES else "summary, key, place"
        found = self._read(f"SELECT * FROM rows WHERE stage = ? ORDER BY {order}", (stage,))
        return map(GroupRow._make, found)

    def sort_edges(self) -> None:
        """Prepares `edges`."""
        self._database.execute(f"CREATE INDEX IF NOT EXISTS edges ON rows (key, place) WHERE stage = {EDGES}")

    def edges(self, key: str, after: bytes, most: int) -> list[tuple[bytes, bytes]]:
        """Returns the places and contents of the first edges of a list after a place, at most a number of them."""
        found = self._database.execute(
            f"SELECT place, content FROM rows WHERE stage = {EDGES} AND key = ? AND place > ? ORDER BY place LIMIT ?",
            (key, after, most),
        )
        return found.fetchall()

    def keep_results(self) -> None:
        """Keeps only the results, numbered in their order."""
        self._database.execute(
            "INSERT INTO results (stage, summary, key, place, content) SELECT stage, summary, key, place, content"
            " FROM rows WHERE stage = ? ORDER BY key, summary",
            (WRITES,),
        )
        self._database.execute("DELETE FROM rows")

    def results(self, after: int) -> Iterator[tuple[int, GroupRow]]:
        """Yields the results with their numbers."""
        found = self._read("SELECT * FROM results WHERE number > ? ORDER BY number", (after,))
        return ((number, GroupRow(*row)) for number, *row in found)

    @property
    def result_count(self) -> int:
        [count] = self._database.execute("SELECT max(number) FROM results").fetchone()
        return count or 0


class LocalJob:
    """One job on this machine."""

    def __init__(self, work: Summaries, file: WorkFile, as_of: datetime | None = None) -> None:
        """`as_of` is the time at which the table was as it is read; without it, the present."""
        self._work = work
        self._file = file
        now = (as_of or datetime.now(UTC)).replace(microsecond=0)
        self.as_of = datetime.fromisoformat(file.get("as_of") or now.isoformat())
        """The time at which the table is as the job knows it: when it began to read."""
        self.items: int = file.get("items", 0)
        """The number of items that were read."""

    @property
    def at(self) -> Decimal:
        """That time in seconds since 1970."""
        return Decimal(int(self.as_of.timestamp()))

    async def read(self, parts: Mapping[str, Part], advance: Callable[[int], None]) -> None:
        """Reads the parts that were not read yet, all at once. `advance` is called with the number of items so far.

        Raises StoreError.
        """
        self._file.put("as_of", self.as_of.isoformat())
        await gathered(self._read(name, part, advance) for name, part in parts.items())

    async def _read(self, name: str, part: Part, advance: Callable[[int], None]) -> None:
        reached = self._file.get(name, {"after": None})
        if reached is None:
            return
        async for rows, count, position in part(reached["after"]):
            # No await between these: the rows and the position are saved at once.
            with self._file.transaction():
                self._file.add(self._work.combined(rows))
                self._file.put(name, None if position is None else {"after": position})
                self._file.put("items", self.items + count)
            self.items += count
            advance(self.items)
            # Files are read without waiting; other parts, and an interruption, get their turn.
            await asyncio.sleep(0)

    async def combine(self) -> int:
        """Combines what was read. Returns the number of results."""
        if self._file.get("reached") is None:
            with self._file.transaction():
                for rows in _batches(self._work.newest(self._file.sorted(IMAGES), self.at), _BATCH_ROWS):
                    self._file.add(self._work.combined(rows))
                    await asyncio.sleep(0)
                if self._work.walked.walks:
                    self._file.sort_edges()
                walked = WalkSource(self._work.graph, self._file.edges, self.at)
                for stage in _STAGES:
                    for rows in _batches(self._work.reduced(self._file.sorted(stage), walked), _BATCH_ROWS):
                        self._file.add(rows)
                        await asyncio.sleep(0)
                self._file.keep_results()
                self._file.put("reached", 0)
        return self._file.result_count

    async def write(self, writer: SummaryWriter, advance: Callable[[int], None]) -> None:
        """Writes the results that were not written yet. `advance` is called with the number of results so far.

        Raises StoreError.
        """
        items = groupby(self._file.results(self._file.get("reached", 0)), key=lambda each: each[1].key)
        for several in _batches(([*own] for _, own in items), _BATCH_WRITES):
            await gathered(writer.write([self._work.result(row) for _, row in own]) for own in several)
            reached = several[-1][-1][0]
            self._file.put("reached", reached)
            advance(reached)


def scanned(work: Summaries, store: Store, at: Decimal, segments: int) -> dict[str, Part]:
    """Returns the segments of a table as parts."""

    def part(segment: int) -> Part:
        async def read(after: Any) -> AsyncIterator[tuple[Iterable[GroupRow], int, Any]]:
            start = after and key_from_json(after)
            async for page in pages(store, Scan(segment, segments, _PAGE_ITEMS, start, consistent=True)):
                rows = chain.from_iterable(work.rows(item, at) for item in page.items)
                yield rows, len(page.items), page.last and key_to_json(page.last)

        return read

    return {f"segment {segment}": part(segment) for segment in range(segments)}


_Each = TypeVar("_Each")


def _batches(several: Iterable[_Each], size: int) -> Iterator[list[_Each]]:
    iterator = iter(several)
    while batch := [*islice(iterator, size)]:
        yield batch
