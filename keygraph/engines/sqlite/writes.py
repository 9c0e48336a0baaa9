"""BatchWrite on a SQLite connection: the table and its indexes kept in step, at DynamoDB's price."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from itertools import chain
from typing import Any, TypeAlias

from keygraph.dynamo.items import Item
from keygraph.dynamo.limits import BATCH_WRITE_ITEMS
from keygraph.dynamo.order import key_bytes
from keygraph.dynamo.store import BatchWrite, Cost, Written, write_units
from keygraph.engines.sqlite.layout import SEVERAL, Keyed, Layout, Row, StoredKey
from keygraph.engines.sqlite.rows import content_of, is_same, stored_item, whole

_IndexRows: TypeAlias = Sequence[Row | None]
"""An item's row in each index, in the order of the layout; None where it is not in it."""


def batch_write(connection: sqlite3.Connection, layout: Layout, request: BatchWrite) -> Written:
    """Puts and deletes. To be called inside a transaction that writes.

    Raises BadUserInput for an item that DynamoDB refuses; then nothing is written. After an error of SQLite's, which may leave
    a part written, the transaction must be rolled back.
    """
    wanted: dict[StoredKey, tuple[Row, _IndexRows] | None] = {}
    for item in request.puts:
        new, after = _rows(layout, item)
        # Removed first, since a dict keeps the place of a key that is set again.
        wanted.pop(new.key, None)
        wanted[new.key] = (new, after)
    for key in request.deletes:
        wanted[layout.items.stored_position(key)] = None
    in_table, *in_indexes = tables = [_Changes(keyed) for keyed in (layout.items, *layout.indexes.values())]
    found = _stored_rows(connection, layout.items, wanted)
    nowhere: _IndexRows = [None] * len(in_indexes)
    units = 0
    for key, rows in wanted.items():
        old = found.get(key)
        before = _index_rows_before(layout, old) if in_indexes and old is not None else nowhere
        size = 0 if old is None else old.size
        if rows is None:
            after = nowhere
            in_table.deleted.append(key)
        else:
            new, after = rows
            size = max(size, new.size)
            in_table.put_row(new)
        units += write_units(size) + sum(map(_change_index, in_indexes, before, after))
    for changes in tables:
        changes.make(connection)
    requests = -(-len(wanted) // BATCH_WRITE_ITEMS)
    return Written(Cost(requests=requests, write_units=float(units)))


def _rows(layout: Layout, item: Item) -> tuple[Row, _IndexRows]:
    """The rows of a new item. Raises BadUserInput for an item that DynamoDB refuses."""
    keys, size = layout.rules.check(item)
    in_table = Row(tuple([keys[name] for name in layout.items.names]), size, content_of(item))
    return in_table, [keyed.row(item, keys, in_table) for keyed in layout.indexes.values()]


def _index_rows_before(layout: Layout, in_table: Row) -> _IndexRows:
    """The rows that an item has in the indexes, by its row in the table."""
    item = whole(stored_item(in_table.content))
    keys = {
        name: key_bytes(item[name])  # type: ignore[arg-type]  # it was checked when it was written
        for keyed in layout.indexes.values()
        for name in keyed.names
        if name in item
    }
    return [keyed.row(item, keys, in_table) for keyed in layout.indexes.values()]


def _stored_rows(
    connection: sqlite3.Connection, keyed: Keyed, keys: Iterable[StoredKey]
) -> dict[StoredKey, Row]:
    """The rows of those keys that have one."""
    wanted = list(keys)
    found: dict[StoredKey, Row] = {}
    several = len(wanted) - len(wanted) % SEVERAL
    for at in range(0, several, SEVERAL):
        values = list(chain.from_iterable(wanted[at : at + SEVERAL]))
        for *key, size, content in connection.execute(keyed.get_several, values):
            found[tuple(key)] = Row(tuple(key), size, content)
    for one in wanted[several:]:
        row = connection.execute(keyed.get, one).fetchone()
        if row is not None:
            found[one] = Row(one, *row)
    return found


@dataclass(slots=True)
class _Changes:
    """The changes of one SQLite table. No two of a batch are of the same row, except one item's delete and put."""

    keyed: Keyed
    deleted: list[StoredKey] = field(default_factory=list)
    put: list[tuple[Any, ...]] = field(default_factory=list)

    def put_row(self, row: Row) -> None:
        self.put.append((*row.key, row.size, row.content))

    def make(self, connection: sqlite3.Connection) -> None:
        if self.deleted:
            connection.executemany(self.keyed.delete, self.deleted)
        if self.put:
            # In the order of the keys, of which no two are equal, so that neighbors are written together.
            self.put.sort()
            connection.executemany(self.keyed.insert, self.put)


def _change_index(changes: _Changes, before: Row | None, after: Row | None) -> int:
    """Notes how the item's row in one index changes. Returns the write units.

    An equal row costs nothing, a change of other attributes one write, a change of a key two.
    """
    overhead = changes.keyed.overhead
    if before is not None and after is not None and before.key == after.key:
        if is_same(before.content, after.content):
            return 0
        changes.put_row(after)
        return write_units(max(before.size, after.size) + overhead)
    units = 0
    if before is not None:
        changes.deleted.append(before.key)
        units += write_units(before.size + overhead)
    if after is not None:
        changes.put_row(after)
        units += write_units(after.size + overhead)
    return units
