"""The embedded engine: a store in a SQLite file, which answers as DynamoDB would.

A small read is answered at once, on the event loop: that takes less time than handing it to a thread. A read that needs
more than `_AT_ONCE` starts again on a thread, so that the loop is never blocked for long; there it pauses regularly,
and ends when nobody waits for it. Every read is one transaction, and each reading thread has its own connection. One
thread writes, and puts all waiting writes into one transaction. A write is acknowledged when it is on disk (write-ahead
log, `synchronous=FULL`).
"""

from __future__ import annotations

import asyncio
import queue
import sqlite3
from collections import deque
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path
from typing import Any, cast

from keygraph.dynamo.store import (
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
    Transaction,
    Write,
)
from keygraph.dynamo.table import Table
from keygraph.engines.sqlite.catalogue import Catalogue, prepare_file
from keygraph.engines.sqlite.layout import Layout
from keygraph.engines.sqlite.reads import (
    Allowance,
    TooMuch,
    batch_get,
    count,
    query,
    scan,
    segment_hash,
)
from keygraph.engines.sqlite.turns import INSTRUCTIONS, Turns
from keygraph.engines.sqlite.writes import batch_write, transaction, write
from keygraph.errors import TimedOut, Unavailable

_READERS = 4
_READS: dict[type[object], Callable[[sqlite3.Connection, Layout, Any, Allowance], object]] = {
    Query: query,
    Count: count,
    BatchGet: batch_get,
    Scan: scan,
}
_WRITES: dict[type[object], Callable[[sqlite3.Connection, Layout, Any], object]] = {
    BatchWrite: batch_write,
    Write: write,
    Transaction: transaction,
}
_LOCKED_SECONDS = 5.0
_AT_ONCE = Allowance(items=256, sizes=2048, bytes=256 * 1024)
"""About half a millisecond, which is enough for lists of 100 items."""
_READ_SECONDS = 10.0
"""How long a read may take: by default the same as a request to DynamoDB."""
_STATEMENTS = 512
"""How many prepared statements a connection keeps: each index and form of a range has a few."""
_WRITES_TOGETHER = 64
_WRITER_CACHE_KB = 32 * 1024
_CHECKPOINT_PAGES = 4000
"""16 MB: with fewer checkpoints, a page that changes often is written less often."""


@asynccontextmanager
async def open_sqlite(
    path: str | Path,
    table: Table,
    *,
    readers: int = _READERS,
    locked_seconds: float = _LOCKED_SECONDS,
    read_seconds: float = _READ_SECONDS,
) -> AsyncIterator[SQLiteStore]:
    """Opens the store of one table in the file, and creates the file and its folders if they do not exist.

    `readers` is the most reads that run at once; `locked_seconds` is how long to wait while another process locks the
    file, `read_seconds` how long a read may take. Raises Unavailable if the file cannot be used.
    """
    store = SQLiteStore(
        path, table, readers=readers, locked_seconds=locked_seconds, read_seconds=read_seconds
    )
    try:
        await store.open()
        yield store
    finally:
        await store.close()


class SQLiteStore:
    """One table in a SQLite file. Open it with `open_sqlite`."""

    def __init__(
        self, path: str | Path, table: Table, *, readers: int, locked_seconds: float, read_seconds: float
    ) -> None:
        self._path = Path(path)
        self.table = table
        self._locked_seconds = locked_seconds
        self._read_seconds = read_seconds
        self._catalogue = Catalogue(table)
        self._writing = _Threads("sqlite-writer", 1)
        self._reading = _Threads("sqlite-reader", readers)
        self._at_once: sqlite3.Connection | None = None
        """The connection of the event loop."""
        self._asking = 0
        """How many reads are about to use that connection."""
        self._writes: deque[tuple[Request[object], Future[object]]] = deque()
        self._is_closed = False

    async def open(self) -> None:
        """Opens the file. Raises Unavailable if it cannot be used."""
        await self._writing.run(self._connect)

    async def send(self, request: Request[Answer], /) -> Answer:
        """Returns the answer.

        Raises TableMissing, TimedOut, Unavailable, and BadUserInput for requests that DynamoDB would refuse, including
        a start outside the range. A write may still happen after its caller is canceled, but only as a whole.
        """
        if self._is_closed:
            raise Unavailable("the store is closed")
        answer: object = None
        match request:
            case BatchWrite() | Write() | Transaction() | CreateTable() | DeleteTable():
                return cast(Answer, await self._write(request))
            case Query() | Count() | BatchGet():
                answer = await self._read_at_once(request)
        if answer is None:
            turns = Turns(self._read_seconds)
            try:
                answer = await self._reading.run(self._read_in_thread, request, turns)
            except asyncio.CancelledError:
                turns.give_up()
                raise
        return cast(Answer, answer)

    async def close(self) -> None:
        """Waits for running requests, then closes the connections and ends the threads."""
        self._is_closed = True
        # Shielded: the connections must be closed even if the caller is canceled.
        await asyncio.shield(self._close())

    async def _close(self) -> None:
        while self._asking:  # noqa: ASYNC110  # each ends when the loop runs it next
            await asyncio.sleep(0)
        await asyncio.get_running_loop().run_in_executor(None, self._let_go)

    def _let_go(self) -> None:
        self._reading.close()
        if self._at_once is not None:
            self._at_once.close()
        # The writer is closed last: SQLite removes the write-ahead log with the last connection, which must write.
        self._writing.close()

    # --- Connections ------------------------------------------------------------------------------------

    def _connect(self) -> None:
        """Opens every connection. Runs on the writer's thread."""
        try:
            self._path.parent.mkdir(parents=True, exist_ok=True)
            writer = self._writing.add(self._connection(self._locked_seconds))
            prepare_file(writer)
            writer.execute(f"PRAGMA cache_size = -{_WRITER_CACHE_KB}")
            writer.execute(f"PRAGMA wal_autocheckpoint = {_CHECKPOINT_PAGES}")
            for _ in range(self._reading.size):
                reader = self._reading.add(self._connection(self._locked_seconds))
                reader.create_function("segment_hash", 1, segment_hash, deterministic=True)
            self._at_once = self._connection(0)
        except (OSError, sqlite3.Error, Unavailable) as error:
            raise Unavailable(f"the file {self._path} cannot be used: {_reason(error)}") from error

    def _connection(self, locked_seconds: float) -> sqlite3.Connection:
        connection = sqlite3.connect(
            self._path,
            timeout=locked_seconds,
            isolation_level=None,
            check_same_thread=False,
            cached_statements=_STATEMENTS,
        )
        connection.execute("PRAGMA synchronous = FULL")
        return connection

    # --- Reads ------------------------------------------------------------------------------------------

    async def _read_at_once(self, request: Query | Count | BatchGet) -> object:
        """Returns the answer to a small read; None for a large one, and if the file is locked."""
        self._asking += 1
        try:
            # As with every store, other tasks run first, so that requests made at the same time are sent together.
            await asyncio.sleep(0)
            if self._at_once is None:
                return None
            with _transaction(self._at_once, "BEGIN"):
                return self._read(self._at_once, request, _AT_ONCE)
        except TooMuch:
            return None
        except sqlite3.Error as error:
            # A thread can wait for the lock.
            if error.sqlite_errorcode == sqlite3.SQLITE_BUSY:
                return None
            raise _unusable(error) from error
        finally:
            self._asking -= 1

    def _read_in_thread(self, request: Request[object], turns: Turns) -> object:
        try:
            with self._reading.connection() as connection, _transaction(connection, "BEGIN"):
                connection.set_progress_handler(turns.is_over, INSTRUCTIONS)
                try:
                    return self._read(connection, request, Allowance.in_turns(turns))
                finally:
                    connection.set_progress_handler(None, 0)
        except (sqlite3.Error, TimeoutError) as error:
            if isinstance(error, TimeoutError) or turns.is_over():
                told = f"a read of the table's file took more than {self._read_seconds:g} seconds"
                raise TimedOut(told) from error
            raise _unusable(error) from error

    def _read(self, connection: sqlite3.Connection, request: Request[object], allowed: Allowance) -> object:
        match request:
            case ListTables():
                return self._catalogue.names(connection)
            case DescribeTable():
                layout = self._catalogue.find(connection)
                return None if layout is None else layout.table
        read = _READS.get(type(request))
        if read is None:
            raise TypeError(f"{type(request).__name__} is not a request to a store")
        known = self._catalogue.known
        if known is not None:
            try:
                return read(connection, known, request, allowed)
            except sqlite3.OperationalError as error:
                if not str(error).startswith("no such table"):
                    raise
        return read(connection, self._catalogue.layout(connection), request, allowed)

    # --- Writes -----------------------------------------------------------------------------------------

    async def _write(self, request: Request[object]) -> object:
        done: Future[object] = Future()
        self._writes.append((request, done))
        self._writing.executor.submit(self._write_waiting)
        return await asyncio.wrap_future(done)

    def _write_waiting(self) -> None:
        """Writes all waiting requests in one transaction. Runs on the writer's thread, once for each request."""
        waiting: list[tuple[Request[object], Future[object]]] = []
        while self._writes and len(waiting) < _WRITES_TOGETHER:
            request, done = self._writes.popleft()
            if done.set_running_or_notify_cancel():
                waiting.append((request, done))
        if not waiting:
            return
        outcomes: list[object] = []
        try:
            with self._writing.connection() as connection, _transaction(connection, "BEGIN IMMEDIATE"):
                outcomes.extend(self._written(connection, request) for request, _ in waiting)
        except BaseException as error:
            failure = _unusable(error) if isinstance(error, sqlite3.Error) else error
            outcomes = [failure for _ in waiting]
        for (_, done), outcome in zip(waiting, outcomes, strict=True):
            if isinstance(outcome, BaseException):
                done.set_exception(outcome)
            else:
                done.set_result(outcome)

    def _written(self, connection: sqlite3.Connection, request: Request[object]) -> object:
        """Returns the answer to one write, or the error that refused it; then nothing of it was written.

        It needs no savepoint, for which SQLite would copy every page: a write is refused before its first change.
        """
        try:
            write_ = _WRITES.get(type(request))
            if write_ is not None:
                return write_(connection, self._catalogue.layout(connection), request)
            is_created = isinstance(request, CreateTable)
            change = self._catalogue.create if is_created else self._catalogue.delete
            change(connection)
            return None
        except sqlite3.Error:
            raise
        except Exception as error:
            return error


class _Threads:
    """Threads, and as many connections. A connection is used by one thread at a time."""

    def __init__(self, name: str, size: int) -> None:
        self.size = size
        self.executor = ThreadPoolExecutor(size, thread_name_prefix=name)
        self._idle: queue.LifoQueue[sqlite3.Connection] = queue.LifoQueue()

    def add(self, connection: sqlite3.Connection) -> sqlite3.Connection:
        self._idle.put(connection)
        return connection

    def run(self, function: Callable[..., object], *arguments: object) -> Awaitable[object]:
        return asyncio.get_running_loop().run_in_executor(self.executor, function, *arguments)

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


def _unusable(error: sqlite3.Error) -> Unavailable:
    return Unavailable(f"the table's file cannot be used: {_reason(error)}")


def _reason(error: Exception) -> str:
    """Returns what is wrong, for the person who runs the server."""
    match error:
        case sqlite3.Error(sqlite_errorcode=sqlite3.SQLITE_BUSY):
            return "another process has locked it"
        case sqlite3.Error(sqlite_errorcode=sqlite3.SQLITE_NOTADB):
            return "it is not a SQLite file"
        case OSError(strerror=str(strerror)):
            return strerror.lower()
        case _:
            return str(error)
