"""Query, Count, Scan and BatchGet on a SQLite connection, answered as DynamoDB would.

Call every function inside a transaction, so that all its statements see one state of the file. `SQLiteStore.send` says
what they raise.
"""

from __future__ import annotations

import sqlite3
import sys
import zlib
from collections.abc import Callable, Iterable, Iterator
from contextlib import closing
from dataclasses import dataclass, field, replace
from itertools import chain
from threading import Lock
from typing import Any

from keygraph.dynamo.conditions import Condition, holds, paths_of
from keygraph.dynamo.expressions import Placeholders, filter_text, key_text, simplified
from keygraph.dynamo.items import CONTAINERS, Item, is_large, nested_values, parsed_in_turns
from keygraph.dynamo.limits import BATCH_GET_BYTES, BATCH_GET_KEYS, ITEM_BYTES, PAGE_BYTES
from keygraph.dynamo.rules import (
    KeyBounds,
    can_go_on,
    refuse_filtered,
    refuse_limit,
    refuse_segment,
)
from keygraph.dynamo.store import Batch, BatchGet, Cost, Count, Counted, Page, Query, Scan
from keygraph.dynamo.table import Index, Position, Table
from keygraph.engines.sqlite.layout import (
    FAULTS,
    SEVERAL,
    Decoder,
    Keyed,
    Layout,
    Stored,
    StoredKey,
    damaged,
    decoder,
    stored_item,
    whole,
)
from keygraph.engines.sqlite.turns import Turns
from keygraph.errors import BadUserInput
from keygraph.kept import kept

segment_hash = zlib.crc32
"""The hash of a stored partition key, registered with SQLite by this name. It must not change, so that a scan can be resumed."""

# --- The rows of a request ----------------------------------------------------------------------------


@dataclass(slots=True)
class _RowRange:
    """Consecutive rows of a SQLite table: their conditions, and the direction in which they are read."""

    keyed: Keyed
    forward: bool
    conditions: list[str]
    values: list[object]

    def add(self, condition: str, *values: object) -> None:
        self.conditions.append(condition)
        self.values.extend(values)

    def go_on_after(self, key: StoredKey, fixed: int) -> None:
        """Excludes the rows up to the key, whose first `fixed` columns are the same in all rows."""
        columns = self.keyed.columns[fixed:]
        if not columns:
            self.add("FALSE")
            return
        places = ", ".join("?" for _ in columns)
        comparison = ">" if self.forward else "<"
        self.add(f"({', '.join(columns)}) {comparison} ({places})", *key[fixed:])


@kept("statements", 1024, 2_000)
def _select(
    name: str, columns: tuple[str, ...], conditions: tuple[str, ...], forward: bool, with_items: bool
) -> str:
    """Returns the statement. Equal texts find SQLite's prepared statement again."""
    order = ", ".join(column if forward else f"{column} DESC" for column in columns)
    return (
        f"SELECT {', '.join(columns)}, size{', item' if with_items else ''} FROM {name}"
        f"{' WHERE ' if conditions else ''}{' AND '.join(conditions)} ORDER BY {order} LIMIT ?"
    )


def _partition_rows(keyed: Keyed, request: Query | Count, bounds: KeyBounds) -> _RowRange:
    """Returns the rows of a Query or a Count, from its start on.

    Refuses a start outside the range, as DynamoDB does.
    """
    partition, low, end = bounds
    forward = request.forward if isinstance(request, Query) else True
    span = _RowRange(keyed, forward, ["k0 = ?"], [partition])
    start = None if request.start is None else keyed.stored_key(request.start)
    if start is not None:
        if start[0] != partition:
            raise BadUserInput("The start is in another partition.")
        if (low is not None and start[1] < low) or (end is not None and start[1] >= end):
            raise BadUserInput("The start is outside the range.")
        span.go_on_after(start, 1)
    # A start is within the bounds, so it replaces the bound before it: SQLite seeks by one lower bound only.
    if low is not None and not (start and forward):
        span.add("k1 >= ?", low)
    if end is not None and not (start and not forward):
        span.add("k1 < ?", end)
    return span


# --- The items of rows --------------------------------------------------------------------------------


def _filter(
    condition: Condition, table: Table, read: Table | Index, request: Query | Count
) -> Callable[[Stored], bool]:
    """Returns a function that checks whether an item passes the condition, and decodes only what the condition uses."""
    paths = tuple(paths_of(condition))
    refuse_filtered(paths, read, table)
    # The expression is written only to measure it as DynamoDB would, with the keys first.
    placeholders = Placeholders()
    key_text(request, read, placeholders)
    filter_text(condition, placeholders)
    decoded = decoder(paths)
    return lambda stored: holds(condition, decoded(stored))


_LARGE_ROW = 4_000
"""The bytes of a stored item from which it takes long to parse."""
_PARSING = Lock()
"""Held by the thread that reads a large item: what is parsed of one takes up to 80 times as much memory as in the table. Of
several threads, each may go before the event loop."""


class TooMuch(Exception):
    """The read needs more than it may take."""


@dataclass(frozen=True, slots=True)
class Allowance:
    """How much a read may take before it raises TooMuch."""

    items: int
    sizes: int
    """Rows from which only the size is read."""
    bytes: int
    """The size of the rows, by DynamoDB's rules."""
    decoded: int
    """The bytes of JSON that is decoded."""
    turns: Turns | None = None
    """The turns of a read in a thread."""

    def under(self, condition: Condition) -> Allowance:
        """Returns the allowance if each item is checked against a condition."""
        terms = sum(1 for _ in paths_of(condition))
        return self if terms <= 1 else replace(self, items=max(1, self.items // terms))

    @classmethod
    def in_turns(cls, turns: Turns | None) -> Allowance:
        """Returns an allowance for any number of items, in turns if it is for a thread that reads."""
        return cls(sys.maxsize, sys.maxsize, sys.maxsize, sys.maxsize, turns)


def item_reader(
    allowed: Allowance, decoded: Decoder = whole, passes: Callable[[Stored], bool] | None = None
) -> Callable[[bytes], Item | None]:
    """Returns a function that returns the requested part of a stored item; None for one that does not pass.

    Nothing else of the item is kept. In a thread, only one large item is read at a time, and others run meanwhile. It
    raises TooMuch, TimeoutError when the read is over, and Unavailable for what `content_of` would not write.
    """
    turns, left = allowed.turns, allowed.decoded

    def read(content: bytes, parsed: Callable[[bytes], Stored] = stored_item) -> Item | None:
        try:
            stored = parsed(content)
            stored.keys()  # of a map
            return decoded(stored) if passes is None or passes(stored) else None
        except FAULTS as error:
            raise damaged() from error

    def read_beside(content: bytes) -> Item | None:
        nonlocal left
        if type(content) is not bytes:
            raise damaged()
        if turns is None:
            left -= len(content)
            if left < 0:
                raise TooMuch
        elif len(content) >= _LARGE_ROW:
            with _PARSING:
                turns.refuse_late()
                return read(content, parsed_in_turns if is_large(content) else stored_item)
        return read(content)

    return read_beside


@dataclass(slots=True)
class _Reading:
    """The part of a page read so far. A page ends at the limit, or with the row that reaches 1 MB."""

    request: Query | Count | Scan
    with_items: bool
    found: list[Item] = field(default_factory=list)
    """What is requested of the items that passed the filter."""
    scanned: int = 0
    size: int = 0
    fetched: list[int] = field(default_factory=list)
    """The sizes of the items of rows that were fetched from the table."""
    last: Position | None = None

    def read(
        self,
        connection: sqlite3.Connection,
        span: _RowRange,
        allowed: Allowance,
        read: Callable[[bytes], Item | None],
        fetched: Callable[[tuple[Any, ...]], bytes] | None = None,
        whole_of: Layout | None = None,
    ) -> None:
        """Reads the rows one by one, without their items if only the sizes are needed. With `whole_of`, they are whole items
        of this table."""
        keyed, limit = span.keyed, self.request.limit
        sql = _select(keyed.name, keyed.columns, tuple(span.conditions), span.forward, self.with_items)
        width = len(keyed.columns)
        most = allowed.items if self.with_items else allowed.sizes
        scanned, size, found = 0, 0, self.found
        with closing(connection.execute(sql, (*span.values, -1 if limit is None else limit))) as rows:
            for row in rows if allowed.turns is None else allowed.turns.take(rows):
                scanned += 1
                size += _checked(row[width])
                is_last = scanned == limit or size >= PAGE_BYTES
                if not is_last and (scanned == most or size > allowed.bytes):
                    raise TooMuch
                if self.with_items:
                    item = read(row[-1] if fetched is None else fetched(row))
                    if item is not None:
                        if whole_of is not None:
                            whole_of.refuse_other(item, row[:width])
                        found.append(item)
                if is_last:
                    try:
                        self.last = tuple([read_key(row[at]) for read_key, at in keyed.key_readers])
                    except FAULTS as error:
                        raise damaged() from error
                    break
        self.scanned, self.size = scanned, size


def _checked(size: object, content: object = b"") -> int:
    """Returns the size of an item, as its row has it. Raises Unavailable for a size or a content that none has."""
    if type(size) is int and 0 <= size <= ITEM_BYTES and type(content) is bytes:
        return size
    raise damaged()


def _nested(items: Iterable[Item | None]) -> int:
    """Returns how many values there are in the lists, maps and sets of items. Most have none of these."""
    values = chain.from_iterable(map(dict.values, filter(None, items)))
    return 0 if CONTAINERS.isdisjoint(map(type, values)) else nested_values(items)


# --- Requests -----------------------------------------------------------------------------------------


def query(connection: sqlite3.Connection, layout: Layout, request: Query, allowed: Allowance) -> Page:
    """Returns one page of a partition."""
    reading, cost = _read_partition(connection, layout, request, allowed)
    return Page(reading.found, reading.scanned, reading.last, cost, _nested(reading.found))


def count(connection: sqlite3.Connection, layout: Layout, request: Count, allowed: Allowance) -> Counted:
    """Returns how many items one page of a partition has."""
    reading, cost = _read_partition(connection, layout, request, allowed)
    counted = reading.scanned if request.filter is None else len(reading.found)
    return Counted(counted, reading.scanned, reading.last, cost)


def _read_partition(
    connection: sqlite3.Connection, layout: Layout, request: Query | Count, allowed: Allowance
) -> tuple[_Reading, Cost]:
    """Reads a page. A filter that nothing can pass costs no request; neither does a start that nothing can follow."""
    keyed = layout.read_from[request.index]
    bounds = keyed.rules.bounds(request)
    reading = _Reading(request, isinstance(request, Query) or request.filter is not None)
    condition = True if request.filter is None else simplified(request.filter)
    if condition is False:
        return reading, Cost()
    span = _partition_rows(keyed, request, bounds)
    passes = None
    if condition is not True:
        passes, allowed = (
            _filter(condition, layout.table, keyed.rules.keyed, request),
            allowed.under(condition),
        )
    if request.start is not None and not can_go_on(request, request.start):
        return reading, Cost()
    projection = request.projection if isinstance(request, Query) else ()
    requested = {path[0] for path in projection or ()}
    is_projected = keyed.projected is None or requested <= keyed.projected

    def from_table(row: tuple[Any, ...]) -> bytes:
        # This is a local index: `ReadRules` refuses a global one that lacks a selected attribute.
        key = [row[at] for at in keyed.table_key]
        found = connection.execute(layout.items.get, key).fetchone()
        if found is None:
            raise damaged()
        reading.fetched.append(_checked(found[0]))
        content: bytes = found[1]
        return content

    read = item_reader(allowed, decoder(projection), passes)
    reading.read(connection, span, allowed, read, None if is_projected else from_table)
    if reading.last is not None and not can_go_on(request, reading.last):
        reading.last = None
    return reading, Cost.of_reads(1, (reading.size, *reading.fetched), consistent=request.consistent)


def scan(connection: sqlite3.Connection, layout: Layout, request: Scan, allowed: Allowance) -> Page:
    """Returns one page of a segment of the table. Partitions are in the order of their keys."""
    keyed = layout.items
    refuse_segment(request)
    refuse_limit(request)
    span = _RowRange(keyed, True, [], [])
    if request.start is not None:
        start = keyed.stored_key(request.start)
        if segment_hash(start[0]) % request.segments != request.segment:
            raise BadUserInput("The start is in another segment.")
        span.go_on_after(start, 0)
    if request.segments > 1:
        span.add("segment_hash(k0) % ? = ?", request.segments, request.segment)
    reading = _Reading(request, True)
    reading.read(connection, span, allowed, item_reader(allowed), whole_of=layout)
    cost = Cost.of_reads(1, (reading.size,), consistent=request.consistent)
    return Page(reading.found, reading.scanned, reading.last, cost)


def rows_of(
    connection: sqlite3.Connection, keyed: Keyed, keys: Iterable[StoredKey]
) -> Iterator[tuple[StoredKey, int, bytes]]:
    """Yields those of the keys that have a row, with the size and the content of its item."""
    wanted = list(keys)
    several = len(wanted) - len(wanted) % SEVERAL
    for at in range(0, several, SEVERAL):
        values = list(chain.from_iterable(wanted[at : at + SEVERAL]))
        for found in connection.execute(keyed.get_several, values):
            yield found[:-2], _checked(*found[-2:]), found[-1]
    for one in wanted[several:]:
        found = connection.execute(keyed.get, one).fetchone()
        if found is not None:
            yield one, _checked(*found), found[1]


def batch_get(connection: sqlite3.Connection, layout: Layout, request: BatchGet, allowed: Allowance) -> Batch:
    """Returns the items with these keys."""
    if len(request.keys) > allowed.items:
        raise TooMuch
    read = item_reader(allowed, decoder(request.projection))
    requested = layout.items.rules.positions_bytes(request.keys)
    found: dict[StoredKey, Item | None] = dict.fromkeys(requested)
    size_of = dict.fromkeys(found, 0)
    for key, size, content in rows_of(connection, layout.items, found):
        found[key], size_of[key] = read(content), size
    requests, answered, sizes = 0, 0, list(size_of.values())
    for number, size in enumerate(sizes):
        answered += size
        if number % BATCH_GET_KEYS == 0 or answered > BATCH_GET_BYTES:
            requests, answered = requests + 1, size
    cost = Cost.of_reads(requests, sizes, consistent=request.consistent)
    return Batch([found[key] for key in requested], cost, _nested(found.values()))
