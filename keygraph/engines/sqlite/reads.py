"""Query, Count, Scan and BatchGet on a SQLite connection, answered as DynamoDB would.

Every function is called inside a transaction, so that all its statements see one state of the file. `SQLiteStore.send` says
what they raise.
"""

from __future__ import annotations

import sqlite3
import zlib
from collections.abc import Callable
from contextlib import closing
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from keygraph.dynamo.conditions import Condition, holds, paths_of
from keygraph.dynamo.expressions import Placeholders, filter_text, key_text, simplified
from keygraph.dynamo.items import Item
from keygraph.dynamo.limits import BATCH_GET_BYTES, BATCH_GET_KEYS, PAGE_BYTES
from keygraph.dynamo.order import after_prefix
from keygraph.dynamo.prices import read_units
from keygraph.dynamo.read_rules import (
    can_go_on,
    read_from,
    refuse_crossed_bounds,
    refuse_filtered,
    refuse_limit,
    refuse_segment,
    sort_key_of,
)
from keygraph.dynamo.store import (
    Above,
    AtLeast,
    AtMost,
    Batch,
    BatchGet,
    Below,
    Cost,
    Count,
    Counted,
    Equals,
    Page,
    Prefix,
    Query,
    Range,
    Scan,
    Within,
)
from keygraph.dynamo.table import Index, KeyValue, Position, Table
from keygraph.engines.sqlite.layout import Keyed, Layout, StoredKey
from keygraph.engines.sqlite.rows import Stored, decoder, stored_item, whole
from keygraph.errors import BadUserInput

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
        """Leaves out the rows up to the key, whose first `fixed` columns all rows share."""
        columns = self.keyed.columns[fixed:]
        if not columns:
            self.add("FALSE")
            return
        marks = ", ".join("?" for _ in columns)
        comparison = ">" if self.forward else "<"
        self.add(f"({', '.join(columns)}) {comparison} ({marks})", *key[fixed:])

    def rows(self, connection: sqlite3.Connection, limit: int | None, with_items: bool) -> sqlite3.Cursor:
        """The rows as key columns, size and, if asked for, item. The cursor reads them one by one."""
        keyed = self.keyed
        sql = _select(keyed.name, keyed.columns, tuple(self.conditions), self.forward, with_items)
        return connection.execute(sql, (*self.values, -1 if limit is None else limit))


@lru_cache(maxsize=1024)
def _select(
    name: str, columns: tuple[str, ...], conditions: tuple[str, ...], forward: bool, with_items: bool
) -> str:
    """The statement. The same text finds SQLite's prepared statement again."""
    order = ", ".join(column if forward else f"{column} DESC" for column in columns)
    return (
        f"SELECT {', '.join(columns)}, size{', item' if with_items else ''} FROM {name}"
        f"{' WHERE ' if conditions else ''}{' AND '.join(conditions)} ORDER BY {order} LIMIT ?"
    )


def _partition_rows(keyed: Keyed, read: Table | Index, request: Query | Count, forward: bool) -> _RowRange:
    """The rows of a Query or a Count, from its start on.

    DynamoDB refuses a start outside the range, so this does too.
    """
    partition = keyed.stored(0, request.partition)
    span = _RowRange(keyed, forward, ["k0 = ?"], [partition])
    low, high = (None, None) if request.range is None else _bounds(keyed, request.range, read)
    start = None if request.start is None else keyed.stored_position(request.start)
    if start is not None:
        if start[0] != partition:
            raise BadUserInput("The start is in another partition.")
        if (low and not low.is_met_by(start[1])) or (high and not high.is_met_by(start[1])):
            raise BadUserInput("The start is outside the range.")
        span.go_on_after(start, 1)
    # A start is within the bounds, so it replaces the bound before it: SQLite seeks by one lower bound only.
    if low and not (start and forward):
        span.add(f"k1 {low.comparison} ?", low.value)
    if high and not (start and not forward):
        span.add(f"k1 {high.comparison} ?", high.value)
    return span


@dataclass(frozen=True, slots=True)
class _Bound:
    comparison: str
    value: bytes

    def is_met_by(self, stored: bytes) -> bool:
        match self.comparison:
            case ">=":
                return stored >= self.value
            case ">":
                return stored > self.value
            case "<=":
                return stored <= self.value
            case _:
                return stored < self.value


def _bounds(keyed: Keyed, range_: Range, read: Table | Index) -> tuple[_Bound | None, _Bound | None]:
    """The lower and the upper bound of the sort key."""
    sort_key_of(range_, read)

    def bound(comparison: str, value: KeyValue) -> _Bound:
        return _Bound(comparison, keyed.stored(1, value))

    match range_:
        case Equals(value):
            return bound(">=", value), bound("<=", value)
        case Within(low, high):
            refuse_crossed_bounds(low, high)
            return bound(">=", low), bound("<=", high)
        case AtLeast(value):
            return bound(">=", value), None
        case AtMost(value):
            return None, bound("<=", value)
        case Above(value):
            return bound(">", value), None
        case Below(value):
            return None, bound("<", value)
        case Prefix(value):
            low_ = bound(">=", value)
            end = after_prefix(low_.value)
            return low_, None if end is None else _Bound("<", end)


# --- The items of rows --------------------------------------------------------------------------------


class _Filter:
    """Tells whether an item passes a filter, and decodes nothing but what the filter uses."""

    def __init__(
        self, condition: Condition, table: Table, read: Table | Index, request: Query | Count
    ) -> None:
        self._condition = condition
        paths = tuple(paths_of(condition))
        refuse_filtered({path[0] for path in paths}, read, table)
        # The expression is written only to measure it as DynamoDB would, keys first.
        placeholders = Placeholders()
        key_text(request, read, placeholders)
        filter_text(condition, placeholders)
        self._decoded = decoder(paths)

    def passes(self, stored: Stored) -> bool:
        return holds(self._condition, self._decoded(stored))


class _Items:
    """The items of the rows of a read, and the cost of fetching them beside the rows.

    A local index fetches from the table what is selected and not projected; a global index cannot.
    """

    def __init__(
        self, connection: sqlite3.Connection, layout: Layout, keyed: Keyed, request: Query | Count
    ) -> None:
        projection = request.projection if isinstance(request, Query) else None
        self._connection = connection
        self._get = layout.items.get
        self._consistent = request.consistent
        self._at: tuple[int, ...] | None = None
        self.units = 0.0
        if keyed.projected is None or keyed.index is None:
            return
        # In a global index none is missing: `read_from` refuses that.
        if {path[0] for path in projection or ()} - keyed.projected:
            self._at = tuple(keyed.attributes.index(key) for key in layout.items.attributes)

    def stored(self, row: tuple[Any, ...]) -> Stored:
        """The item of the row, read from the table if the row lacks an attribute."""
        if self._at is None:
            return stored_item(row[-1])
        size, content = self._connection.execute(self._get, [row[at] for at in self._at]).fetchone()
        self.units += read_units(size, self._consistent)
        return stored_item(content)


# --- Requests -----------------------------------------------------------------------------------------


class TooMuch(Exception):
    """The read needs more than it is allowed."""


@dataclass(frozen=True, slots=True)
class Allowance:
    """How much a read may take before it raises TooMuch."""

    items: int
    sizes: int
    """Rows of which only the size is read."""
    bytes: int


@dataclass(slots=True)
class _Pager:
    """Counts the rows of a page, which ends at the limit, or with the row that reaches 1 MB."""

    limit: int | None
    most: int | None
    """The number of rows that is too much."""
    most_bytes: int
    scanned: int = 0
    size: int = 0

    def ends_with(self, size: int) -> bool:
        self.scanned += 1
        self.size += size
        if self.scanned == self.limit or self.size >= PAGE_BYTES:
            return True
        if self.scanned == self.most or self.size > self.most_bytes:
            raise TooMuch
        return False


def _pager(request: Query | Count | Scan, allowed: Allowance | None, with_items: bool) -> _Pager:
    refuse_limit(request)
    if allowed is None:
        return _Pager(request.limit, None, PAGE_BYTES)
    return _Pager(request.limit, allowed.items if with_items else allowed.sizes, allowed.bytes)


def query(
    connection: sqlite3.Connection, layout: Layout, request: Query, allowed: Allowance | None = None
) -> Page:
    """One page of a partition."""
    items: list[Item] = []
    decoded = decoder(request.projection)
    pager, last, cost = _read_partition(
        connection, layout, request, request.forward, lambda stored: items.append(decoded(stored)), allowed
    )
    return Page(items, pager.scanned, last, cost)


def count(
    connection: sqlite3.Connection, layout: Layout, request: Count, allowed: Allowance | None = None
) -> Counted:
    """How many items one page of a partition has."""
    if request.filter is None:
        pager, last, cost = _read_partition(connection, layout, request, True, None, allowed)
        return Counted(pager.scanned, pager.scanned, last, cost)
    passed: list[None] = []
    pager, last, cost = _read_partition(
        connection, layout, request, True, lambda _: passed.append(None), allowed
    )
    return Counted(len(passed), pager.scanned, last, cost)


def _read_partition(
    connection: sqlite3.Connection,
    layout: Layout,
    request: Query | Count,
    forward: bool,
    take: Callable[[Stored], None] | None,
    allowed: Allowance | None,
) -> tuple[_Pager, Position | None, Cost]:
    """Passes each item that the filter accepts to `take`; without `take` only sizes are read.

    A filter that nothing can pass costs no request, nor does a start that nothing can follow.
    """
    read = read_from(request, layout.table)
    keyed = layout.keyed(request.index)
    pager = _pager(request, allowed, take is not None)
    condition = True if request.filter is None else simplified(request.filter)
    if condition is False:
        return pager, None, Cost()
    span = _partition_rows(keyed, read, request, forward)
    filter_ = None if condition is True else _Filter(condition, layout.table, read, request)
    items = _Items(connection, layout, keyed, request)
    if request.start is not None and not can_go_on(request, request.start):
        return pager, None, Cost()
    last = None
    width = len(keyed.columns)
    with closing(span.rows(connection, pager.limit, take is not None)) as rows:
        for row in rows:
            ends = pager.ends_with(row[width])
            if take is not None:
                stored = items.stored(row)
                if filter_ is None or filter_.passes(stored):
                    take(stored)
            if ends:
                last = keyed.position(row[:width])
                break
    if last is not None and not can_go_on(request, last):
        last = None
    return pager, last, Cost(1, read_units(pager.size, request.consistent) + items.units)


def scan(connection: sqlite3.Connection, layout: Layout, request: Scan) -> Page:
    """One page of a segment of the table. Partitions are in the order of their keys."""
    keyed = layout.items
    refuse_segment(request)
    pager = _pager(request, None, True)
    span = _RowRange(keyed, True, [], [])
    if request.start is not None:
        start = keyed.stored_position(request.start)
        if segment_hash(start[0]) % request.segments != request.segment:
            raise BadUserInput("The start is in another segment.")
        span.go_on_after(start, 0)
    if request.segments > 1:
        span.add("segment_hash(k0) % ? = ?", request.segments, request.segment)
    items: list[Item] = []
    last = None
    width = len(keyed.columns)
    with closing(span.rows(connection, pager.limit, with_items=True)) as rows:
        for row in rows:
            items.append(whole(stored_item(row[-1])))
            if pager.ends_with(row[width]):
                last = keyed.position(row[:width])
                break
    return Page(items, pager.scanned, last, Cost(1, read_units(pager.size, request.consistent)))


def batch_get(
    connection: sqlite3.Connection, layout: Layout, request: BatchGet, allowed: Allowance | None = None
) -> Batch:
    """The items with these keys."""
    if allowed is not None and len(request.keys) > allowed.items:
        raise TooMuch
    decoded = decoder(request.projection)
    found: dict[StoredKey, Item | None] = {}
    asked = [layout.items.stored_position(key) for key in request.keys]
    units, requests, answered, looked_at = 0.0, 0, 0, 0
    for key in asked:
        if key in found:
            continue
        row: tuple[int, Any] | None = connection.execute(layout.items.get, key).fetchone()
        size, content = row or (0, None)
        answered += size
        looked_at += size
        if allowed is not None and looked_at > allowed.bytes:
            raise TooMuch
        if len(found) % BATCH_GET_KEYS == 0 or answered > BATCH_GET_BYTES:
            requests, answered = requests + 1, size
        found[key] = None if content is None else decoded(stored_item(content))
        units += read_units(size, request.consistent)
    return Batch([found[key] for key in asked], Cost(requests, units))
