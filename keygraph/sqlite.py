"""The embedded engine: a store in a SQLite file, which answers as DynamoDB would.

Answers come from threads: several readers, each with a connection of its own, and one writer. Every request is one
transaction. A write is acknowledged when it is on the disk (write-ahead log, `synchronous=FULL`).
"""

from __future__ import annotations

import asyncio
import queue
import sqlite3
from collections.abc import AsyncIterator, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path
from typing import cast

from keygraph._sqlite_catalogue import Catalogue, prepare_file
from keygraph._sqlite_reads import batch_get, count, query, scan, segment_hash
from keygraph._sqlite_writes import batch_write
from keygraph.errors import Unavailable
from keygraph.store import (
    Answer,
    BatchGet,
    BatchWrite,
    Count,
    CreateTable,
    DeleteTable,
    DescribeTable,
    ListTables,
    Query,
    Request,
    Scan,
)
from keygraph.table import Table

_READERS = 4
_LOCKED_SECONDS = 5.0


@asynccontextmanager
async def open_sqlite(
    path: str | Path, table: Table, *, readers: int = _READERS, locked_seconds: float = _LOCKED_SECONDS
) -> AsyncIterator[SQLiteStore]:
    """The store of one table in the file, which is made, with its folders, where there is none.

    `readers` is how many reads run at once; `locked_seconds` is how long to wait for another process that has
    locked the file. Raises Unavailable where the file cannot be used.
    """
    store = SQLiteStore(path, table, readers=readers, locked_seconds=locked_seconds)
    try:
        await store.open()
        yield store
    finally:
        await store.close()


class SQLiteStore:
    """One table in a SQLite file. To be opened by `open_sqlite`."""

    def __init__(self, path: str | Path, table: Table, *, readers: int, locked_seconds: float) -> None:
        self._path = Path(path)
        self._table = table
        self._locked_seconds = locked_seconds
        self._catalogue = Catalogue(table)
        self._writing = _Threads("sqlite-writer", 1)
        self._reading = _Threads("sqlite-reader", readers)
        self._is_closed = False

    @property
    def table(self) -> Table:
        return self._table

    async def open(self) -> None:
        """Opens the file. Raises Unavailable where that cannot be done."""
        await asyncio.get_running_loop().run_in_executor(self._writing.executor, self._connect)

    async def send(self, request: Request[Answer], /) -> Answer:
        """The answer.

        Raises TableMissing, Unavailable, and BadUserInput for what DynamoDB would refuse: a key that is of another
        type, empty or too large, an item above 400 KB, crossed bounds, a start outside the range, a consistent
        read of a global index, a filter that is too long, or on a key of what is read or on what the index does not
        project, an attribute that the global index does not project, an index that there is not.

        A write whose caller is cancelled may happen all the same, but then as a whole.
        """
        if self._is_closed:
            raise Unavailable("the store is closed")
        writes = isinstance(request, BatchWrite | CreateTable | DeleteTable)
        threads = self._writing if writes else self._reading
        answer = await asyncio.get_running_loop().run_in_executor(
            threads.executor, self._answer, threads, "BEGIN IMMEDIATE" if writes else "BEGIN", request
        )
        return cast(Answer, answer)

    async def close(self) -> None:
        """Waits for what is under way, then lets the connections, the file and the threads go."""
        self._is_closed = True
        # Shielded, since the connections must go even when whoever closes the store is cancelled meanwhile.
        await asyncio.shield(asyncio.get_running_loop().run_in_executor(None, self._close))

    def _close(self) -> None:
        self._reading.close()
        # The writer goes last: SQLite removes the write-ahead log with the last connection, which may write.
        self._writing.close()

    def _connect(self) -> None:
        """Opens every connection. Runs on the writer's thread."""
        try:
            self._path.parent.mkdir(parents=True, exist_ok=True)
            writer = self._writing.add(self._connection())
            prepare_file(writer)
            for _ in range(self._reading.size):
                reader = self._reading.add(self._connection())
                reader.create_function("segment_hash", 1, segment_hash, deterministic=True)
        except (OSError, sqlite3.Error, Unavailable) as error:
            raise Unavailable(f"the file {self._path} cannot be used: {_reason(error)}") from error

    def _connection(self) -> sqlite3.Connection:
        connection = sqlite3.connect(
            self._path, timeout=self._locked_seconds, isolation_level=None, check_same_thread=False
        )
        connection.execute("PRAGMA synchronous = FULL")
        return connection

    def _answer(self, threads: _Threads, begin: str, request: Request[object]) -> object:
        """Runs on one of the threads."""
        try:
            with threads.connection() as connection, _transaction(connection, begin):
                return self._answered(connection, request)
        except sqlite3.Error as error:
            raise Unavailable(f"the table's file cannot be used: {_reason(error)}") from error

    def _answered(self, connection: sqlite3.Connection, request: Request[object]) -> object:
        match request:
            case Query():
                return query(connection, self._catalogue.layout(connection), request)
            case BatchGet():
                return batch_get(connection, self._catalogue.layout(connection), request)
            case Count():
                return count(connection, self._catalogue.layout(connection), request)
            case Scan():
                return scan(connection, self._catalogue.layout(connection), request)
            case BatchWrite():
                return batch_write(connection, self._catalogue.layout(connection), request)
            case ListTables():
                return self._catalogue.names(connection)
            case DescribeTable():
                layout = self._catalogue.find(connection)
                return None if layout is None else layout.table
            case CreateTable():
                self._catalogue.create(connection)
                return None
            case DeleteTable():
                self._catalogue.delete(connection)
                return None
            case _:
                raise TypeError(f"{type(request).__name__} is no request to a store")


class _Threads:
    """Threads, and as many connections, each used by one thread at a time."""

    def __init__(self, name: str, size: int) -> None:
        self.size = size
        self.executor = ThreadPoolExecutor(size, thread_name_prefix=name)
        self._idle: queue.LifoQueue[sqlite3.Connection] = queue.LifoQueue()

    def add(self, connection: sqlite3.Connection) -> sqlite3.Connection:
        self._idle.put(connection)
        return connection

    @contextmanager
    def connection(self) -> Iterator[sqlite3.Connection]:
        connection = self._idle.get_nowait()
        try:
            yield connection
        finally:
            self._idle.put(connection)

    def close(self) -> None:
        """Waits for the threads, then closes the connections."""
        self.executor.shutdown()
        while not self._idle.empty():
            self._idle.get_nowait().close()


@contextmanager
def _transaction(connection: sqlite3.Connection, begin: str) -> Iterator[None]:
    connection.execute(begin)
    try:
        yield
        connection.execute("COMMIT")
    finally:
        if connection.in_transaction:
            connection.execute("ROLLBACK")


def _reason(error: Exception) -> str:
    """What is wrong, in words for whoever runs the server."""
    match error:
        case sqlite3.Error(sqlite_errorcode=sqlite3.SQLITE_BUSY):
            return "another process has locked it"
        case sqlite3.Error(sqlite_errorcode=sqlite3.SQLITE_NOTADB):
            return "it is no SQLite file"
        case OSError(strerror=str(strerror)):
            return strerror.lower()
        case _:
            return str(error)
