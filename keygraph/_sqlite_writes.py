"""BatchWrite on a SQLite connection: the table and its indexes kept in step, at DynamoDB's price."""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence
from dataclasses import dataclass, field
from operator import itemgetter
from typing import TypeAlias

import orjson

from keygraph._rules import (
    BATCH_WRITE_ITEMS,
    LOCAL_ENTRY_BYTES,
    refuse_index_keys,
    refuse_large,
    refuse_unstorable,
)
from keygraph._sqlite_items import content_of, is_same, stored_item, whole
from keygraph._sqlite_layout import Keyed, Layout, Row, StoredKey
from keygraph.capacity import write_units
from keygraph.errors import BadUserInput
from keygraph.items import Item, item_size
from keygraph.store import BatchWrite, Cost, Written

_IndexRows: TypeAlias = Sequence[Row | None]
"""An item's row in each index, in the order of the layout; None where it is not in it."""


def batch_write(connection: sqlite3.Connection, layout: Layout, request: BatchWrite) -> Written:
    """Puts and deletes everything. To be called inside a transaction that writes.

    Raises BadUserInput for an item that DynamoDB refuses; nothing has been written then.
    """
    wanted: dict[StoredKey, tuple[Row, _IndexRows] | None] = {}
    for item in request.puts:
        in_table, in_indexes = _rows(layout, item)
        # Taken out first, since a dict keeps the place of a key that is set again.
        wanted.pop(in_table.key, None)
        wanted[in_table.key] = (in_table, in_indexes)
    for key in request.deletes:
        wanted[layout.items.stored_position(key)] = None
    changes = [_Changes(keyed) for keyed in (layout.items, *layout.indexes.values())]
    units = sum(_change_item(connection, layout, changes, key, rows) for key, rows in wanted.items())
    for each in changes:
        each.make(connection)
    return Written(Cost(requests=-(-len(wanted) // BATCH_WRITE_ITEMS), write_units=float(units)))


def _rows(layout: Layout, item: Item) -> tuple[Row, _IndexRows]:
    """What is kept of a new item. Raises BadUserInput where DynamoDB would refuse it."""
    refuse_unstorable(item)
    try:
        key = layout.items.stored_position(tuple(item[key.name] for key in layout.items.attributes))
        for keyed in layout.indexes.values():
            # Where it has all of them, they are checked as they are stored.
            if keyed.index is not None and any(each.name not in item for each in keyed.index.keys):
                refuse_index_keys(item, keyed.index)
        # The content first: writing it finds values that have no size.
        content = content_of(item)
        in_table = Row(key, item_size(item), content)
        in_indexes = _index_rows(layout, item, in_table)
    except KeyError as error:
        raise BadUserInput(f"The item lacks the key {error.args[0]}.") from None
    except orjson.JSONEncodeError:
        raise BadUserInput("The item holds text that is no valid Unicode.") from None
    except ValueError as error:
        raise BadUserInput(f"The item holds {error}.") from None
    refuse_large(item, in_table.size, layout.table)
    return in_table, in_indexes


def _index_rows(layout: Layout, item: Item, in_table: Row) -> _IndexRows:
    return [keyed.row(item, in_table) for keyed in layout.indexes.values()]


@dataclass(slots=True)
class _Changes:
    """What becomes of one SQLite table. No two changes of a batch are of one row, but an item's own."""

    keyed: Keyed
    deleted: list[StoredKey] = field(default_factory=list)
    put: list[tuple[object, ...]] = field(default_factory=list)

    def put_row(self, row: Row) -> None:
        self.put.append((*row.key, row.size, row.content))

    def make(self, connection: sqlite3.Connection) -> None:
        if self.deleted:
            connection.executemany(self.keyed.delete, self.deleted)
        if self.put:
            # In the order of the keys, so that neighbours are written together.
            self.put.sort(key=itemgetter(slice(len(self.keyed.columns))))
            connection.executemany(self.keyed.insert, self.put)


def _change_item(
    connection: sqlite3.Connection,
    layout: Layout,
    changes: Sequence[_Changes],
    key: StoredKey,
    wanted: tuple[Row, _IndexRows] | None,
) -> int:
    """Notes how the item comes to these rows, or goes for None. Returns what that costs in write units."""
    old = connection.execute(layout.items.get, key).fetchone()
    before: _IndexRows = [None] * len(layout.indexes)
    if old is not None and layout.indexes:
        row = Row(key, *old)
        before = _index_rows(layout, whole(stored_item(row.content)), row)
    size = 0 if old is None else old[0]
    in_table, *in_indexes = changes
    if wanted is None:
        after: _IndexRows = [None] * len(layout.indexes)
        in_table.deleted.append(key)
    else:
        new, after = wanted
        size = max(size, new.size)
        in_table.put_row(new)
    return write_units(size) + sum(map(_change_index, in_indexes, before, after))


def _change_index(changes: _Changes, before: Row | None, after: Row | None) -> int:
    """Notes how one index comes from one row to the other.

    It costs nothing where they are equal, one write where only other attributes change, two where a key does.
    """
    overhead = 0 if changes.keyed.is_global else LOCAL_ENTRY_BYTES
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
