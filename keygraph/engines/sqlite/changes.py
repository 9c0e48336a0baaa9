"""The stream of a table: a log of its changes in the same file, written in the transaction of each change.

It is one shard that never closes. A table without a stream has no log, and its writes cost nothing more. What is older than
DynamoDB would keep, or beyond a size, is deleted a few changes at a time as others are written.
"""

from __future__ import annotations

import sqlite3
import time
from collections.abc import Iterable
from contextlib import closing

from keygraph.dynamo.streams import LatestPosition, ReadRecords, RecordPage, ShardPosition, StreamRecord
from keygraph.engines.sqlite.layout import FAULTS, Layout, Row, damaged
from keygraph.engines.sqlite.reads import Allowance, item_reader
from keygraph.errors import StreamTrimmed, TableMissing

_KEPT_SECONDS = 24 * 60 * 60
_KEPT_BYTES = 512 * 1024 * 1024
_TRIMMED_AT_ONCE = 2
"""How many old changes are deleted for one that is written."""
_PAGE_RECORDS, _PAGE_BYTES = 1000, 1024 * 1024
_DIGITS = 20

Replaced = tuple[Row | None, Row | None]
"""An item's row in the table before and after a change."""


def create_log(connection: sqlite3.Connection, log: str) -> None:
    """Creates a table's log. Its numbers grow, also when the oldest changes are deleted."""
    connection.execute(
        f"CREATE TABLE {log} (number INTEGER PRIMARY KEY AUTOINCREMENT, at REAL NOT NULL,"
        " bytes INTEGER NOT NULL, old BLOB, new BLOB)"
    )


def log_changes(connection: sqlite3.Connection, log: str, changes: Iterable[Replaced]) -> None:
    """Writes changes to a log. Call it in their transaction."""
    now = time.time()
    last = connection.execute(
        f"SELECT min(CAST(bytes AS INTEGER), 1 << 62) FROM {log} ORDER BY number DESC LIMIT 1"
    ).fetchone()
    total: int = last[0] if last else 0  # of all changes up to one, so that a log's size is a difference
    rows = list[tuple[float, int, bytes | None, bytes | None]]()
    for before, after in changes:
        old, new = (None if row is None else row.content for row in (before, after))
        total += len(old or b"") + len(new or b"")
        rows.append((now, total, old, new))
    if not rows:
        return
    connection.executemany(f"INSERT INTO {log} (at, bytes, old, new) VALUES (?, ?, ?, ?)", rows)
    oldest = connection.execute(
        f"SELECT number, CAST(at AS REAL), CAST(bytes AS INTEGER) FROM {log} ORDER BY number LIMIT ?",
        (_TRIMMED_AT_ONCE * len(rows),),
    )
    too_old, too_far = now - _KEPT_SECONDS, total - _KEPT_BYTES
    trimmed = [(number,) for number, at, bytes_ in oldest if at < too_old or bytes_ < too_far]
    if trimmed:
        connection.execute(f"DELETE FROM {log} WHERE number <= ?", trimmed[-1])


def latest_position(connection: sqlite3.Connection, layout: Layout, request: LatestPosition) -> ShardPosition:
    """Returns the position after all changes."""
    return ShardPosition(_text(_last_number(connection, _log(layout, request.stream))))


def read_records(
    connection: sqlite3.Connection, layout: Layout, request: ReadRecords, allowed: Allowance
) -> RecordPage:
    """Returns the next changes. Raises StreamTrimmed."""
    read = item_reader(allowed)
    log, text = _log(layout, request.stream), request.position.after
    if len(text) > _DIGITS or text > _text(_last_number(connection, log)):
        raise _trimmed()  # another program has made it
    after = int(text or 0)
    cursor = connection.execute(
        f"SELECT number, CAST(at AS REAL), old, new FROM {log} WHERE number > ? ORDER BY number LIMIT ?",
        (after, _PAGE_RECORDS),
    )
    records, size = list[StreamRecord](), 0
    # A statement that is not read to its end, and that an error keeps, would keep what the connection sees.
    with closing(cursor):
        for number, at, old, new in cursor:
            if not records and text and number > after + 1:
                raise _trimmed()
            before, item = (None if content is None else read(content) for content in (old, new))
            try:
                key = layout.table.key_of(before or item or {})
            except FAULTS as error:
                raise damaged() from error
            records.append(StreamRecord(key, before, item, _text(number), at))
            size += len(old or b"") + len(new or b"")
            if size >= _PAGE_BYTES:
                break
    if not records and text and _last_number(connection, log) != after:
        raise _trimmed()
    position = ShardPosition(records[-1].position) if records else request.position
    return RecordPage(tuple(records), position)


def _log(layout: Layout, stream: str) -> str:
    """Returns the log of a stream. Raises TableMissing."""
    if layout.log is None or layout.log != stream:
        raise TableMissing(f"there is no stream {stream} of the table {layout.table.name}")
    return layout.log


def _last_number(connection: sqlite3.Connection, log: str) -> int:
    """Returns the number of the last change, which may have been deleted; 0 if there was none."""
    row = connection.execute(
        "SELECT CAST(seq AS INTEGER) FROM sqlite_sequence WHERE name = ?", (log,)
    ).fetchone()
    return 0 if row is None else row[0] or 0


def _text(number: int) -> str:
    return str(number).zfill(_DIGITS)


def _trimmed() -> StreamTrimmed:
    return StreamTrimmed("changes were deleted from the table's stream before they were read")
