"""BatchWrite on a SQLite connection: the table and its indexes kept in step, at DynamoDB's price."""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence
from typing import TypeAlias

import orjson

from keygraph._rules import (
    BATCH_WRITE_ITEMS,
    LOCAL_ENTRY_BYTES,
    refuse_index_keys,
    refuse_large,
    refuse_unstorable,
)
from keygraph._sqlite_layout import Keyed, Layout, Row, StoredKey, content_of
from keygraph.capacity import write_units
from keygraph.errors import BadUserInput
from keygraph.items import Item, item_size, untyped_item
from keygraph.store import BatchWrite, Cost, Written

_IndexRows: TypeAlias = Sequence[Row | None]
"""An item's row in each index, in the order of the layout; None where it is not in it."""


def batch_write(connection: sqlite3.Connection, layout: Layout, request: BatchWrite) -> Written:
    """Puts and deletes everything. To be called inside a transaction that writes.

    Raises BadUserInput for an item that DynamoDB refuses; nothing has been written then.
    """
    wanted: dict[StoredKey, tuple[Row, _IndexRows] | None] = {}
    for item in request.puts:
        whole, index_rows = _rows(layout, item)
        # Taken out first, since a dict keeps the place of a key that is set again.
        wanted.pop(whole.key, None)
        wanted[whole.key] = (whole, index_rows)
    for key in request.deletes:
        wanted[layout.items.stored_position(key)] = None
    units = sum(_write(connection, layout, key, rows) for key, rows in wanted.items())
    return Written(Cost(requests=-(-len(wanted) // BATCH_WRITE_ITEMS), write_units=float(units)))


def _rows(layout: Layout, item: Item) -> tuple[Row, _IndexRows]:
    """What is kept of a new item. Raises BadUserInput where DynamoDB would refuse it."""
    refuse_unstorable(item)
    try:
        key = layout.items.stored_position(tuple(item[key.name] for key in layout.items.attributes))
        for index in layout.table.indexes:
            refuse_index_keys(item, index)
        # The content first: writing it finds values that have no size.
        content = content_of(item)
        whole = Row(key, item_size(item), content)
        rows = _index_rows(layout, item, whole)
    except KeyError as error:
        raise BadUserInput(f"The item lacks the key {error.args[0]}.") from None
    except orjson.JSONEncodeError:
        raise BadUserInput("The item holds text that is no valid Unicode.") from None
    except ValueError as error:
        raise BadUserInput(f"The item holds {error}.") from None
    refuse_large(item, whole.size, layout.table)
    return whole, rows


def _index_rows(layout: Layout, item: Item, whole: Row) -> _IndexRows:
    return [keyed.row(item, whole) for keyed in layout.indexes.values()]


def _write(
    connection: sqlite3.Connection, layout: Layout, key: StoredKey, wanted: tuple[Row, _IndexRows] | None
) -> int:
    """Puts the rows, or deletes what is there for None. Returns what it costs in write units."""
    old = connection.execute(layout.items.get, key).fetchone()
    before: _IndexRows = [None] * len(layout.indexes)
    if old is not None and layout.indexes:
        row = Row(key, *old)
        before = _index_rows(layout, untyped_item(orjson.loads(row.content)), row)
    size = 0 if old is None else old[0]
    if wanted is None:
        after: _IndexRows = [None] * len(layout.indexes)
        connection.execute(layout.items.delete, key)
    else:
        whole, after = wanted
        size = max(size, whole.size)
        connection.execute(layout.items.insert, (*key, whole.size, whole.content))
    changes = zip(layout.indexes.values(), before, after, strict=True)
    return write_units(size) + sum(_change(connection, *change) for change in changes)


def _change(connection: sqlite3.Connection, keyed: Keyed, before: Row | None, after: Row | None) -> int:
    """Brings one index from one row to the other.

    It costs nothing where they are equal, one write where only other attributes change, two where a key does.
    """
    overhead = 0 if keyed.is_global else LOCAL_ENTRY_BYTES
    if before is not None and after is not None and before.key == after.key:
        if before.content == after.content or orjson.loads(before.content) == orjson.loads(after.content):
            return 0
        connection.execute(keyed.insert, (*after.key, after.size, after.content))
        return write_units(max(before.size, after.size) + overhead)
    units = 0
    if before is not None:
        connection.execute(keyed.delete, before.key)
        units += write_units(before.size + overhead)
    if after is not None:
        connection.execute(keyed.insert, (*after.key, after.size, after.content))
        units += write_units(after.size + overhead)
    return units
