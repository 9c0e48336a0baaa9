"""The embedded engine: a store in a SQLite file, which answers as DynamoDB would.

A small read is answered at once, on the event loop: that takes less time than handing it to a thread. A read that needs
more than `_AT_ONCE` starts again on a thread, so that the loop is never blocked for long; there it pauses regularly,
and ends when nobody waits for it. Every read is one transaction, and each reading thread has its own connection. One
thread writes, and puts waiting writes of all clients into one transaction. A write is acknowledged when it is on disk (write-ahead
log, `synchronous=FULL`) and the file is still in its place. While it is not, everything is refused.
"""

from __future__ import annotations

import asyncio
import logging
import queue
import sqlite3
import sys
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import asynccontextmanager, contextmanager, suppress
from pathlib import Path
from time import perf_counter
from typing import cast

import orjson

from keygraph.admission import Admission
from keygraph.daemon_thread import in_daemon_thread
from keygraph.dynamo import store
from keygraph.dynamo.streams import DescribeStream, EnableStream, LatestPosition, ReadRecords
from keygraph.dynamo.table import Table
from keygraph.engines.sqlite import reads
from keygraph.engines.sqlite.catalogue import Catalogue, prepare_file
from keygraph.engines.sqlite.changes import latest_position, read_records
from keygraph.engines.sqlite.files import OpenFiles, check_files
from keygraph.engines.sqlite.turns import INSTRUCTIONS, Turns, WaitingWrite, transaction_writes
from keygraph.engines.sqlite.writes import WritePlan, batch_write, transaction, write
from keygraph.errors import TimedOut, Unavailable, again, with_noted_frames
from keygraph.turns import BUDGET, ClientsInTurn, operation_client

_log = logging.getLogger(__name__)

_READERS = 4
_HANDLERS: dict[type[object], Callable[..., object]] = {
    store.Query: reads.query,
    store.Count: reads.count,
    store.BatchGet: reads.batch_get,
    store.Scan: reads.scan,
    store.BatchWrite: batch_write,
    store.Write: write,
    store.Transaction: transaction,
}
"""What answers requests, and what plans writes."""
_LOCKED_SECONDS = 5.0
_AT_ONCE = reads.Allowance(items=256, sizes=2048, bytes=256 * 1024, decoded=64 * 1024)
"""About half a millisecond, which is enough for lists of 100 items. What is decoded has 7,000 values in lists and maps at
most, such as `{"L":[]},`: some milliseconds."""
_SHORT_SECONDS = 0.001
"""A read that takes longer counts in the round of the event loop."""
_READ_SECONDS = 10.0
"""How long a read may take: by default the same as a request to DynamoDB."""
_STATEMENTS = 512
"""How many prepared statements a connection keeps: each index and form of a range has a few."""
_WRITER_CACHE_KB = 32 * 1024
_CHECKPOINT_PAGES = 4000
"""16 MB: with fewer checkpoints, a page that changes often is written less often."""
_WATCHED_SECONDS = 0.5
"""How often the files are looked for. Every write looks for them itself."""


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
    opened = SQLiteStore(
        path, table, readers=readers, locked_seconds=locked_seconds, read_seconds=read_seconds
    )
    try:
        await opened.open()
        yield opened
    finally:
        await opened.close()


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
        # Those that wait have a place among the operations, which are limited.
        self._places = Admission(readers, sys.maxsize)
        """The places of those whom the threads read for."""
        self._at_once: sqlite3.Connection | None = None
        """The connection of the event loop."""
        self._asking = 0
        """How many reads are about to use that connection."""
        self._writes = ClientsInTurn[str, WaitingWrite]()
        self._files: OpenFiles
        self._outage: str | None = None
        """What had happened to a file when they were last looked for."""
        self._is_log_empty = False
        """Whether the log was emptied since then: all acknowledged writes are in the file."""
        self._last_log: bytes | None = None
        """The state of the log before that."""
        self._leaving: Future[None] | None = None
        self._commit_seconds = 0.0
        """How long it takes until a transaction is on disk, which only the writer's thread knows."""
        self._fault: str | None = None
        """Why the last write failed, which only the writer's thread knows."""
        self._next_look: asyncio.TimerHandle | None = None
        self._is_closed = False

    async def open(self) -> None:
        """Opens the file. Raises Unavailable if it cannot be used."""
        await self._writing.run(self._connect)
        self._watch()

    async def send(self, request: store.Request[store.Answer], /) -> store.Answer:
        """Returns the answer.

        Raises TableMissing, TimedOut, Unavailable, and BadUserInput for requests that DynamoDB would refuse, including
        a start outside the range. A write may still happen after its caller is canceled, but only as a whole.
        """
        if self._is_closed:
            raise Unavailable("the store is closed")
        if self._outage is not None:
            raise Unavailable(self._outage)
        answer: object = None
        match request:
            case store.BatchWrite() | store.Write() | store.Transaction():
                with suppress(reads.TooMuch):
                    return cast(store.Answer, await self._write(request))
                return cast(store.Answer, await self._write_planned(request))
            case (
                store.CreateTable()
                | store.DeleteTable()
                | store.CreateIndex()
                | store.DeleteIndex()
                | EnableStream()
            ):
                return cast(store.Answer, await self._write(request))
            case store.DescribeTimeToLive():
                return cast(store.Answer, None)
            case store.Query() | store.Count() | store.BatchGet():
                answer = await self._read_at_once(request)
        if answer is None:
            async with self._places.place():
                answer = await self._read_beside(request)
        return cast(store.Answer, answer)

    async def close(self) -> None:
        """Waits for running requests, then closes the connections and ends the threads."""
        self._is_closed = True
        if self._next_look is not None:
            self._next_look.cancel()
        # Shielded: the connections must be closed even if the caller is canceled.
        await asyncio.shield(self._close())

    async def _close(self) -> None:
        while self._asking:  # noqa: ASYNC110  # each ends when the loop runs it next
            await asyncio.sleep(0)
        await in_daemon_thread(self._let_go)

    def _let_go(self) -> None:
        self._reading.close()
        at_once, self._at_once = self._at_once, None
        if at_once is not None:
            at_once.close()
            # A file that is replaced right before a stop would be opened with this log. The writer does what the look finds.
            for task in () if self._is_log_empty else (self._look, int):
                self._writing.executor.submit(task).result()
            files, has_left = self._files, self._outage is not None and self._is_log_empty
            if has_left and files.problem() and not files.is_another_there:
                # What was written since then is not this file's. Others write into the log of one that is back.
                files.void_log()
            if self._outage is not None and not self._is_log_empty and self._files.is_log_whole:
                _log.error(
                    "The last writes are only in the -wal file, which another process reads: keep both together"
                )
        # The writer is closed last: SQLite removes the write-ahead log with the last connection, which must write.
        self._writing.close()
        if at_once is not None:
            self._files.close()

    # --- Connections ------------------------------------------------------------------------------------

    def _connect(self) -> None:
        """Opens every connection. Runs on the writer's thread."""
        try:
            self._path.parent.mkdir(parents=True, exist_ok=True)
            check_files(self._path)
            writer = self._writing.add(self._connection(self._locked_seconds))
            prepare_file(writer)
            writer.execute(f"PRAGMA cache_size = -{_WRITER_CACHE_KB}")
            writer.execute(f"PRAGMA wal_autocheckpoint = {_CHECKPOINT_PAGES}")
            for _ in range(self._reading.size):
                reader = self._reading.add(self._connection(self._locked_seconds))
                reader.create_function("segment_hash", 1, reads.segment_hash, deterministic=True)
            self._files = OpenFiles(self._path)
            self._at_once = self._connection(0)
        except (OSError, sqlite3.Error, Unavailable) as error:
            raise Unavailable(f"the file {self._path} cannot be used: {_reason(error)}") from error

    def _connection(self, locked_seconds: float) -> sqlite3.Connection:
        connection = sqlite3.connect(
            self._path.absolute(),  # the name of a relative path may be a URI of SQLite's
            timeout=locked_seconds,
            isolation_level=None,
            check_same_thread=False,
            cached_statements=_STATEMENTS,
        )
        try:
            connection.execute("PRAGMA synchronous = FULL")
        except BaseException:
            connection.close()
            raise
        return connection

    # --- Files ------------------------------------------------------------------------------------------

    @property
    def outage(self) -> str | None:
        """Why the file cannot be used at the moment; None if it can."""
        if not self._is_closed:
            self._look()
        return self._outage

    def _look(self) -> None:
        """Looks for the files, and has the writer leave a log whose database is not in its place."""
        outage = self._files.problem()
        if outage != self._outage:
            if outage is None or self._outage is None:
                self._is_log_empty, self._last_log = False, None
            self._outage = outage
            if outage is None:
                _log.warning("The table's file is in its place again")
            else:
                _log.error("Nothing is read or written: %s", outage)
        if outage is not None and (self._leaving is None or self._leaving.done()):
            self._leaving = self._writing.executor.submit(self._leave)

    def _watch(self) -> None:
        if not self._is_closed:
            self._look()
            self._next_look = asyncio.get_running_loop().call_later(_WATCHED_SECONDS, self._watch)

    def _leave(self) -> None:
        """Moves acknowledged writes from the log into the file that they belong to, wherever that is now.

        Without its log, a moved file lacks the last writes. Whoever opens another file in its place makes a log for that,
        and does not get this one. Nor do other processes write on into it: they could take what this one has just changed
        for all that has happened to the file.
        """
        if self._last_log is None:
            self._last_log = self._files.log_state
        # Later, others may have written into the log. While they read, it cannot be emptied.
        if not self._is_log_empty and self._files.is_log_whole and self._files.log_state == self._last_log:
            self._empty_log()
        if self._is_log_empty and self._files.lost:
            self._files.unlink_log()
            # Until then, other processes may have acknowledged writes, and those of another file written into the log.
            if not self._files.was_replaced:
                self._empty_log()

    def _empty_log(self) -> None:
        with suppress(sqlite3.Error), self._writing.connection() as connection:
            [is_busy, *_] = connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()
            self._is_log_empty = not is_busy

    # --- Reads ------------------------------------------------------------------------------------------

    async def _read_at_once(self, request: store.Query | store.Count | store.BatchGet) -> object:
        """Returns the answer to a small read; None for a large one, and if the file is locked."""
        self._asking += 1
        try:
            # As with every store, other tasks run first, so that requests made at the same time are sent together.
            await asyncio.sleep(0)
            budget, began = BUDGET.get(), perf_counter()
            try:
                return None if self._at_once is None else self._read(self._at_once, request, _AT_ONCE)
            finally:
                took = perf_counter() - began
                if took > _SHORT_SECONDS and budget is not None and budget.rounds is not None:
                    budget.rounds.count(took)
        except reads.TooMuch:
            return None
        except sqlite3.Error as error:
            # A thread can wait for the lock.
            if error.sqlite_errorcode == sqlite3.SQLITE_BUSY:
                return None
            raise _unusable(error) from error
        finally:
            self._asking -= 1

    async def _read_beside(self, request: store.Request[object]) -> object:
        """Returns the answer to a read, or the plan of a write, which a thread makes."""
        turns = Turns(self._read_seconds)
        try:
            return await self._reading.run(self._read_in_thread, request, turns)
        except asyncio.CancelledError:
            turns.give_up()
            raise

    def _read_in_thread(self, request: store.Request[object], turns: Turns) -> object:
        try:
            with self._reading.connection() as connection:
                connection.set_progress_handler(turns.is_over, INSTRUCTIONS)
                try:
                    return self._read(connection, request, reads.Allowance.in_turns(turns))
                finally:
                    connection.set_progress_handler(None, 0)
        except (sqlite3.Error, TimeoutError) as error:
            if isinstance(error, TimeoutError) or turns.is_over():
                late = f"a read of the table's file took more than {self._read_seconds:g} seconds"
                raise TimedOut(late) from error
            raise _unusable(error) from error

    def _read(
        self, connection: sqlite3.Connection, request: store.Request[object], allowed: reads.Allowance
    ) -> object:
        """Returns the answer to a read, which is one transaction."""
        connection.execute("BEGIN")
        try:
            return self._answer(connection, request, allowed)
        except (orjson.JSONDecodeError, UnicodeDecodeError) as error:
            raise Unavailable("the table's file cannot be used: an item in it is damaged") from error
        finally:
            if connection.in_transaction:
                connection.execute("COMMIT")

    def _answer(
        self, connection: sqlite3.Connection, request: store.Request[object], allowed: reads.Allowance
    ) -> object:
        match request:
            case store.ListTables():
                return self._catalogue.names(connection)
            case store.DescribeTable():
                layout = self._catalogue.find(connection)
                return None if layout is None else layout.table
            case DescribeStream():
                return self._catalogue.stream(connection)
            case ReadRecords():
                return read_records(connection, self._catalogue.layout(connection), request, allowed)
            case LatestPosition():
                return latest_position(connection, self._catalogue.layout(connection), request)
        read = _HANDLERS.get(type(request))
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

    async def _write_planned(self, request: store.Request[object]) -> object:
        """Returns the answer to a write of large items, which is planned while others write."""
        async with self._places.place():
            while True:
                plan = await self._read_beside(request)
                # Others may have written these items meanwhile.
                with suppress(reads.TooMuch):
                    return await self._write(request, cast(WritePlan, plan))

    def _write(self, request: object, plan: WritePlan | None = None) -> asyncio.Future[object]:
        """Writes what a request says, when its turn has come. Raises TooMuch where that has to be planned beside other
        writes, or again."""
        done: Future[object] = Future()
        self._writes.add(operation_client(), (request, plan, done))
        self._writing.executor.submit(self._write_waiting)
        return asyncio.wrap_future(done)

    def _write_waiting(self) -> None:
        """Writes waiting requests in one transaction. Runs on the writer's thread, once for each request."""
        if not self._writes:
            return  # they were written with earlier ones
        taken: list[Future[object]] = []
        outcomes = self._outcomes(taken)
        # The frames of an error reference this one, which must not reference the error.
        while taken:
            _finish(taken.pop(0), outcomes.pop(0))

    def _outcomes(self, taken: list[Future[object]]) -> list[object]:
        """Returns the answer to each write, or its error, in the order of the futures, which are added to `taken`."""
        answers: list[object] = []
        try:
            with self._writing.connection() as connection:
                with _transaction(connection):
                    # While this waited for others' writes, the log could be cut.
                    self._files.check()
                    for request, plan, done in transaction_writes(self._writes, self._commit_seconds):
                        taken.append(done)
                        answers.append(self._written(connection, request, plan))
                    self._files.check()
                    began = perf_counter()
                # A checkpoint, which takes long, is rare.
                self._commit_seconds = min(perf_counter() - began, 2 * self._commit_seconds + _SHORT_SECONDS)
                # What is in a file that nobody finds is not acknowledged.
                self._files.check()
        except BaseException as error:
            if not taken:  # it has not begun, and would fail again after the same time
                taken += [done for *_, done in transaction_writes(self._writes, 0.0)]
            if not isinstance(error, sqlite3.Error):
                return [again(error) for _ in taken]
            self._note(_reason(error))
            return [_unusable(error) for _ in taken]
        self._note(None)
        return answers

    def _note(self, fault: str | None) -> None:
        """Logs why no write succeeds, once, and when one does again."""
        if fault != self._fault:
            self._fault = fault
            if fault is None:
                _log.warning("Writes to the table's file succeed again")
            else:
                _log.error("Nothing is written to the table's file: %s", fault)

    def _written(self, connection: sqlite3.Connection, request: object, plan: WritePlan | None) -> object:
        """Returns the answer to one write, or the error that refused it; then nothing of it was written.

        It needs no savepoint, for which SQLite would copy every page: a write is refused before its first change.
        """
        try:
            match request:
                case store.BatchWrite() | store.Write() | store.Transaction():
                    layout = self._catalogue.layout(connection)
                    if plan is None or not plan.is_current(connection, layout):
                        plan = cast(
                            WritePlan, _HANDLERS[type(request)](connection, layout, request, _AT_ONCE, plan)
                        )
                    return plan.carry_out(connection)
                case store.CreateIndex(index):
                    return self._catalogue.create_index(connection, index)
                case store.DeleteIndex(name):
                    self._catalogue.delete_index(connection, name)
                case store.CreateTable():
                    self._catalogue.create(connection)
                case EnableStream():
                    self._catalogue.enable_stream(connection)
                case store.DeleteTable():
                    self._catalogue.delete(connection)
            return None
        except sqlite3.Error:
            raise
        except Exception as error:
            return with_noted_frames(error)


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


def _finish(done: Future[object], outcome: object) -> None:
    if isinstance(outcome, BaseException):
        done.set_exception(outcome)
    else:
        done.set_result(outcome)


@contextmanager
def _transaction(connection: sqlite3.Connection) -> Iterator[None]:
    connection.execute("BEGIN IMMEDIATE")
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
