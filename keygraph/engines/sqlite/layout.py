"""How a table is stored in a SQLite file: one SQLite table for the table itself, and one for each of its indexes.

Each is `WITHOUT ROWID`, so its rows are in the order of their key columns, which are those of `Table.position`. A row has its
keys as ordered bytes (`keygraph.dynamo.order`), the size of the item by DynamoDB's rules, and the projected item in JSON
(`keygraph.engines.sqlite.rows`). The size comes before the item, so that a count does not read items.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from keygraph.dynamo.items import Item, item_size
from keygraph.dynamo.limits import LOCAL_ENTRY_BYTES
from keygraph.dynamo.rules import ReadRules, WriteRules, no_such_index
from keygraph.dynamo.table import Index, Table
from keygraph.engines.sqlite.rows import content_of

StoredKey = tuple[bytes, ...]
SEVERAL = 50
"""How many keys one statement looks up."""


class Row(NamedTuple):
    """An item as the table or one index stores it."""

    key: StoredKey
    size: int
    content: bytes


class Keyed:
    """The SQLite table of the table itself or of one of its indexes, and the statements for its rows."""

    def __init__(self, name: str, table: Table, index: Index | None) -> None:
        """`name` is that of the SQLite table, `index` the index whose rows it has; None for the table itself."""
        self.name = name
        self.rules = ReadRules(table, None if index is None else index.name)
        self.attributes = tuple(self.rules.limits)
        """The attributes that its rows are ordered by; each is a column."""
        self.names = tuple([attribute.name for attribute in self.attributes])
        self.table_key = [self.attributes.index(key) for key in table.keys]
        """Where the table's own key is among them."""
        self.projected = None if index is None else table.projected(index)
        """The attributes that its rows have; None for all."""
        self.overhead = LOCAL_ENTRY_BYTES if index is not None and index.local else 0
        """The bytes that a row takes beside its attributes when it is written."""
        self._own_names = [key.name for key in (index or table).keys]
        self.columns = tuple([f"k{at}" for at in range(len(self.attributes))])
        columns, marks = ", ".join(self.columns), ", ".join("?" for _ in self.columns)
        is_key = " AND ".join(f"{column} = ?" for column in self.columns)
        self.insert = f"INSERT OR REPLACE INTO {name} VALUES ({marks}, ?, ?)"
        self.delete = f"DELETE FROM {name} WHERE {is_key}"
        self.get = f"SELECT size, item FROM {name} WHERE {is_key}"
        # CROSS JOIN keeps the order of the two: each key is looked up once.
        joined = " AND ".join(f"{column} = column{at}" for at, column in enumerate(self.columns, 1))
        several = ", ".join([f"({marks})"] * SEVERAL)
        self.get_several = (
            f"SELECT {columns}, size, item FROM (VALUES {several}) CROSS JOIN {name} ON {joined}"
        )
        """Finds the rows of `SEVERAL` keys."""
        stored_keys = ", ".join(f"{column} BLOB NOT NULL" for column in self.columns)
        self.create = (
            f"CREATE TABLE {name} ({stored_keys}, size INTEGER NOT NULL, item BLOB NOT NULL,"
            f" PRIMARY KEY ({columns})) WITHOUT ROWID"
        )

    def row(self, item: Item, keys: Mapping[str, bytes], whole: Row) -> Row | None:
        """The item's row in this index, or None where it lacks a key of it: the index is sparse.

        `keys` are its keys as ordered bytes, by name; `whole` is its row in the table.
        """
        for name in self._own_names:
            if name not in keys:
                return None
        key = tuple([keys[name] for name in self.names])
        if self.projected is None:
            return Row(key, whole.size, whole.content)
        part = {name: value for name, value in item.items() if name in self.projected}
        return Row(key, item_size(part), content_of(part))


class Layout:
    """One table of the file, with its indexes."""

    def __init__(self, table: Table, number: int) -> None:
        """The SQLite tables are named by the table's number in the catalogue."""
        self.table = table
        self.number = number
        self.rules = WriteRules(table)
        self.items = Keyed(f"table_{number}", table, None)
        self.indexes = {
            index.name: Keyed(f"table_{number}_index_{at}", table, index)
            for at, index in enumerate(table.indexes)
        }

    def keyed(self, index: str | None) -> Keyed:
        """What a read with that index name reads. Raises BadUserInput where the table lacks it."""
        found = self.items if index is None else self.indexes.get(index)
        if found is None:
            raise no_such_index(self.table, index)
        return found
