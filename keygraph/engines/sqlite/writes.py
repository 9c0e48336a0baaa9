"""Writes on a SQLite connection: the table and its indexes change together, at DynamoDB's price."""

from __future__ import annotations

import sqlite3
import sys
import time
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any, TypeAlias

from keygraph.dynamo import store
from keygraph.dynamo.actions import CheckItem, PutItem, UpdateItem, fingerprint, key_of, outcome
from keygraph.dynamo.items import Item, item_size
from keygraph.dynamo.limits import BATCH_WRITE_ITEMS, TOKEN_SECONDS
from keygraph.dynamo.rules import WriteRules, refuse_transaction, refuse_transaction_size
from keygraph.engines.sqlite.changes import Replaced, log_changes
from keygraph.engines.sqlite.layout import (
    Keyed,
    Layout,
    Row,
    StoredKey,
    content_of,
    is_same,
)
from keygraph.engines.sqlite.reads import Allowance, TooMuch, item_reader, rows_of
from keygraph.errors import BadUserInput, ConditionFailed, Reason, TokenReused, TransactionCanceled

_IndexRows: TypeAlias = Sequence[Row | None]
"""An item's row in each index, in the order of the layout; None if it is not in the index."""
_Wanted: TypeAlias = dict[StoredKey, tuple[Row, _IndexRows] | None]
"""The rows to be stored, by key; None for a key without an item."""


class WritePlan:
    """What a write changes, and the rows from which that was found out."""

    def __init__(
        self,
        connection: sqlite3.Connection,
        layout: Layout,
        allowed: Allowance,
        keys: Collection[StoredKey],
        earlier: WritePlan | None,
    ) -> None:
        """`keys` are those of the rows that it looks at. What follows from rows that are the same is taken from an earlier
        plan of the write."""
        self.answer: store.Written | store.Changed = store.Written(store.Cost(requests=1))
        self.token: tuple[str, bytes] | None = None
        """The token of a transaction, and the fingerprint of its actions."""
        self.found = _stored_rows(connection, layout, keys, sys.maxsize if earlier else allowed.bytes)
        self._keys = keys
        self._layout = layout
        self._read = item_reader(allowed)
        self._tables: list[_Changes] = []
        self._replaced: list[Replaced] = []
        self.wanted: _Wanted = {}
        self._before: dict[StoredKey, _IndexRows] = {}
        """The rows of the found items in the indexes."""
        self.same: Collection[StoredKey] = ()
        """The keys whose rows an earlier plan found too."""
        if earlier is not None and earlier._layout is layout:
            self.same = {key for key in keys if self.found.get(key) == earlier.found.get(key)}
            self.wanted = {key: rows for key, rows in earlier.wanted.items() if key in self.same}
            self._before = {key: rows for key, rows in earlier._before.items() if key in self.same}

    def item(self, key: StoredKey) -> Item | None:
        """Returns the item that is stored under a key."""
        row = self.found.get(key)
        if row is None:
            return None
        item = self._read(row.content) or {}
        self._layout.refuse_other(item, key)
        return item

    def replace(self) -> int:
        """Plans to replace the rows by the wanted ones, in the table and its indexes. Returns the write units."""
        layout = self._layout
        in_table, *in_indexes = self._tables = [
            _Changes(keyed) for keyed in (layout.items, *layout.indexes.values())
        ]
        nowhere: _IndexRows = [None] * len(in_indexes)
        units = 0
        for key, rows in self.wanted.items():
            old = self.found.get(key)
            if in_indexes and old is not None and key not in self._before:
                self._before[key] = self._index_rows(old)
            before = self._before.get(key, nowhere)
            size = 0 if old is None else old.size
            if rows is None:
                after = nowhere
                in_table.deleted.append(key)
            else:
                new, after = rows
                size = max(size, new.size)
                in_table.put_row(new)
            units += store.write_units(size) + sum(map(_change_index, in_indexes, before, after))
        if layout.log is not None:
            self._replaced = [*_replaced(self.wanted, self.found)]
        return units

    def _index_rows(self, in_table: Row) -> _IndexRows:
        """Returns the rows that an item has in the indexes, given its row in the table."""
        item = self._read(in_table.content) or {}
        keys = self._layout.rules.keys_of(item)
        return [keyed.row(item, keys, in_table) for keyed in self._layout.indexes.values()]

    def is_current(self, connection: sqlite3.Connection, layout: Layout) -> bool:
        """Returns whether everything is still as it was found."""
        return (
            layout is self._layout
            and (self.token is None or _known_token(connection, self.token[0]) is None)
            and _stored_rows(connection, layout, self._keys) == self.found
        )

    def carry_out(self, connection: sqlite3.Connection) -> store.Written | store.Changed:
        """Makes the changes, and returns the answer. Call it inside a transaction that writes, while the plan is current.

        After an error from SQLite, which may leave a part written, the transaction must be rolled back.
        """
        for changes in self._tables:
            changes.make(connection)
        if self._replaced and self._layout.log is not None:
            log_changes(connection, self._layout.log, self._replaced)
        if self.token is not None:
            now = time.time()
            connection.execute("DELETE FROM keygraph_tokens WHERE at <= ?", (now - TOKEN_SECONDS,))
            connection.execute("INSERT INTO keygraph_tokens VALUES (?, ?, ?)", (*self.token, now))
        return self.answer


def batch_write(
    connection: sqlite3.Connection,
    layout: Layout,
    request: store.BatchWrite,
    allowed: Allowance,
    earlier: WritePlan | None = None,
) -> WritePlan:
    """Plans to put and delete. Raises BadUserInput for an item that DynamoDB refuses.

    Every function that plans is called inside a transaction, and raises TooMuch where the items that are there are more
    than it may read; where there is an `earlier` plan, those that others have written since.
    """
    wanted: _Wanted = {}
    for item in request.puts:
        new, after = _rows(layout, item)
        # Removed first, because a dict keeps the place of a key that is set again.
        wanted.pop(new.key, None)
        wanted[new.key] = (new, after)
    for key in request.deletes:
        wanted[layout.items.rules.position_bytes(key)] = None
    plan = WritePlan(connection, layout, allowed, wanted, earlier)
    plan.wanted = wanted
    requests, units = -(-len(wanted) // BATCH_WRITE_ITEMS), plan.replace()
    plan.answer = store.Written(store.Cost(requests=requests, write_units=float(units)))
    return plan


def write(
    connection: sqlite3.Connection,
    layout: Layout,
    request: store.Write,
    allowed: Allowance,
    earlier: WritePlan | None = None,
) -> WritePlan:
    """Plans one conditional write. Raises ConditionFailed."""
    action = request.action
    key = layout.items.rules.position_bytes(key_of(action, layout.table))
    plan = WritePlan(connection, layout, allowed, [key], earlier)
    old = plan.item(key)
    new = outcome(action, old, layout.table)
    plan.wanted = {key: None if new is None else _rows(layout, new)}
    cost = store.Cost(requests=1, write_units=float(plan.replace()))
    plan.answer = store.Changed(new if isinstance(action, UpdateItem) else old, cost)
    return plan


def transaction(
    connection: sqlite3.Connection,
    layout: Layout,
    request: store.Transaction,
    allowed: Allowance,
    earlier: WritePlan | None = None,
) -> WritePlan:
    """Plans all actions or none. Raises TransactionCanceled with the reason of each action, and TokenReused."""
    refuse_transaction(request, layout.table)
    puts = [each for each in request.actions if isinstance(each, PutItem)]
    refuse_transaction_size(sum([item_size(put.item) if put.size is None else put.size for put in puts]))
    own = fingerprint(request.actions)
    known = _known_token(connection, request.token)
    if known is not None:
        if known != own:
            raise TokenReused("the token of a transaction was used for another one")
        return WritePlan(connection, layout, allowed, (), None)
    keys = layout.items.rules.positions_bytes([key_of(action, layout.table) for action in request.actions])
    plan = WritePlan(connection, layout, allowed, keys, earlier)
    reasons: list[Reason | None] = [None] * len(keys)
    checked = 0
    for at, (action, key) in enumerate(zip(request.actions, keys, strict=True)):
        if isinstance(action, CheckItem):
            checked += store.write_units(plan.found[key].size if key in plan.found else 0)
        if key in plan.same:
            continue
        try:
            new = outcome(action, plan.item(key), layout.table)
        except ConditionFailed as failed:
            reasons[at] = Reason("ConditionalCheckFailed", failed.item)
            continue
        if not isinstance(action, CheckItem):
            size = action.size if isinstance(action, PutItem) else None
            plan.wanted[key] = None if new is None else _rows(layout, new, size)
    if any(reasons):
        raise TransactionCanceled(reasons)
    units = store.TRANSACTION_UNITS * (plan.replace() + checked)
    plan.token = request.token, own
    plan.answer = store.Written(store.Cost(requests=1, write_units=float(units)))
    return plan


def fill_index(
    connection: sqlite3.Connection, layout: Layout, name: str, after: StoredKey | None, items: int
) -> tuple[int, StoredKey]:
    """Writes the rows that the next items have in an index, after the item with that key. Returns how many items it has
    looked at, and the key of the last one. Items with keys that DynamoDB refuses are left out, as DynamoDB does."""
    columns = ", ".join(layout.items.columns)
    values = ", ".join("?" for _ in layout.items.columns)
    where = "" if after is None else f" WHERE ({columns}) > ({values})"
    sql = f"SELECT {columns}, size, item FROM {layout.items.name}{where} ORDER BY {columns} LIMIT ?"
    found = connection.execute(sql, (*(after or ()), items)).fetchall()
    changes, key = _Changes(layout.indexes[name]), after or ()
    read, alone = (
        item_reader(Allowance.in_turns(None)),
        WriteRules(layout.table.with_indexes([layout.index(name)])),
    )
    for *key_, size, content in found:
        key = tuple(key_)
        item = read(content) or {}
        with suppress(BadUserInput):
            alone.check(item)
            row = changes.keyed.row(item, alone.keys_of(item), Row(key, size, content))
            if row is not None:
                changes.put_row(row)
    changes.make(connection)
    return len(found), key


def _replaced(wanted: _Wanted, found: Mapping[StoredKey, Row]) -> Iterator[Replaced]:
    """Yields the rows of the items that change."""
    for key, rows in wanted.items():
        old, new = found.get(key), None if rows is None else rows[0]
        is_other = (old is None) != (new is None)
        if is_other or (old is not None and new is not None and not is_same(old.content, new.content)):
            yield old, new


def _known_token(connection: sqlite3.Connection, token: str) -> bytes | None:
    """Returns the fingerprint of the request under the token in the last ten minutes; None for none."""
    row = connection.execute(
        "SELECT CAST(asked AS BLOB) FROM keygraph_tokens WHERE token = ? AND at > ?",
        (token, time.time() - TOKEN_SECONDS),
    ).fetchone()
    return None if row is None else row[0]


def _rows(layout: Layout, item: Item, size: int | None = None) -> tuple[Row, _IndexRows]:
    """Returns the rows of a new item, whose size is known if it was checked. Raises BadUserInput for an item that
    DynamoDB refuses."""
    size, keys = layout.rules.check(item) if size is None else size, layout.rules.keys_of(item)
    in_table = Row(tuple([keys[name] for name in layout.items.names]), size, content_of(item))
    return in_table, [keyed.row(item, keys, in_table) for keyed in layout.indexes.values()]


def _stored_rows(
    connection: sqlite3.Connection, layout: Layout, keys: Iterable[StoredKey], most: int = sys.maxsize
) -> dict[StoredKey, Row]:
    """Returns the rows of those keys that have one. Raises TooMuch if their sizes are more together."""
    found, size = dict[StoredKey, Row](), 0
    for row in rows_of(connection, layout.items, keys):
        found[row[0]] = Row(*row)
        size += row[1]
        if size > most:
            raise TooMuch
    return found


@dataclass(slots=True)
class _Changes:
    """The changes of one SQLite table. No two of a batch are for the same row, except one item's delete and put."""

    keyed: Keyed
    deleted: list[StoredKey] = field(default_factory=list)
    put: list[tuple[Any, ...]] = field(default_factory=list)

    def put_row(self, row: Row) -> None:
        self.put.append((*row.key, row.size, row.content))

    def make(self, connection: sqlite3.Connection) -> None:
        if self.deleted:
            connection.executemany(self.keyed.delete, self.deleted)
        if self.put:
            # In the order of the keys, which are all different, so that neighbors are written together.
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
        return store.write_units(max(before.size, after.size) + overhead)
    units = 0
    if before is not None:
        changes.deleted.append(before.key)
        units += store.write_units(before.size + overhead)
    if after is not None:
        changes.put_row(after)
        units += store.write_units(after.size + overhead)
    return units
