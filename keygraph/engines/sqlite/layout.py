"""How a table is stored in a SQLite file: one SQLite table for the table itself, and one for each of its indexes.

Each is `WITHOUT ROWID`, so its rows are in the order of their key columns, which are those of `Table.position`. A row has its
keys as ordered bytes (`keygraph.dynamo.order`), the size of the item by DynamoDB's rules, and the projected item in JSON
(`keygraph.engines.sqlite.rows`). The size comes before the item, so that a count does not read items.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

from keygraph.dynamo.items import Item, item_size
from keygraph.dynamo.limits import LOCAL_ENTRY_BYTES, PARTITION_KEY_BYTES, SORT_KEY_BYTES
from keygraph.dynamo.order import key_value
from keygraph.dynamo.read_rules import refuse_position
from keygraph.dynamo.table import Index, KeyAttribute, Position, Table
from keygraph.dynamo.write_rules import WriteRules, checked_key_bytes
from keygraph.engines.sqlite.rows import content_of

StoredKey = tuple[bytes, ...]
SEVERAL = 50
"""How many keys one statement looks up."""


class Row(NamedTuple):
    """An item as the table or one index stores it."""

    key: StoredKey
    size: int
    content: bytes


@dataclass(frozen=True)
class Keyed:
    """The SQLite table of the table itself or of one of its indexes."""

    name: str
    """The name of the SQLite table."""
    attributes: tuple[KeyAttribute, ...]
    """The attributes that its rows are ordered by; each is a column."""
    own: int
    """How many of them are its own keys: a partition key alone (1), or a sort key too (2)."""
    index: Index | None
    projected: frozenset[str] | None
    """The attributes that its rows have; None for all."""

    @cached_property
    def columns(self) -> tuple[str, ...]:
        return tuple(f"k{at}" for at in range(len(self.attributes)))

    @cached_property
    def overhead(self) -> int:
        """The bytes that a row takes beside its attributes when it is written."""
        return LOCAL_ENTRY_BYTES if self.index is not None and self.index.local else 0

    def stored(self, at: int, value: object) -> bytes:
        """The value of one column. Raises BadUserInput for a value that cannot be a key there."""
        is_sort_key = at == 1 and self.own == 2
        return checked_key_bytes(
            self.attributes[at], value, SORT_KEY_BYTES if is_sort_key else PARTITION_KEY_BYTES
        )

    def stored_position(self, position: Position) -> StoredKey:
        """The columns of a position. Raises BadUserInput where it does not fit the keys."""
        refuse_position(position, self.attributes)
        return tuple(self.stored(at, value) for at, value in enumerate(position))

    def position(self, key: StoredKey) -> Position:
        """The values of the columns."""
        return tuple(
            key_value(stored, attribute) for stored, attribute in zip(key, self.attributes, strict=True)
        )

    def row(self, item: Item, keys: Mapping[str, bytes], whole: Row) -> Row | None:
        """The item's row in this index, or None where it lacks a key of it: the index is sparse.

        `keys` are its keys as ordered bytes, by name; `whole` is its row in the table.
        """
        for name in self.own_names:
            if name not in keys:
                return None
        key = tuple([keys[name] for name in self.names])
        if self.projected is None:
            return Row(key, whole.size, whole.content)
        part = {name: value for name, value in item.items() if name in self.projected}
        return Row(key, item_size(part), content_of(part))

    @cached_property
    def names(self) -> tuple[str, ...]:
        """The names of `attributes`."""
        return tuple(attribute.name for attribute in self.attributes)

    @cached_property
    def own_names(self) -> tuple[str, ...]:
        """The names of its own keys."""
        return self.names[: self.own]

    @cached_property
    def insert(self) -> str:
        marks = ", ".join("?" for _ in self.columns)
        return f"INSERT OR REPLACE INTO {self.name} VALUES ({marks}, ?, ?)"

    @cached_property
    def delete(self) -> str:
        return f"DELETE FROM {self.name} WHERE {self._is_key}"

    @cached_property
    def get(self) -> str:
        return f"SELECT size, item FROM {self.name} WHERE {self._is_key}"

    @cached_property
    def get_several(self) -> str:
        """Finds the rows of `SEVERAL` keys."""
        marks = ", ".join([f"({', '.join('?' for _ in self.columns)})"] * SEVERAL)
        # CROSS JOIN keeps the order of the two: each key is looked up once.
        joined = " AND ".join(f"{column} = column{at}" for at, column in enumerate(self.columns, 1))
        return f"SELECT {', '.join(self.columns)}, size, item FROM (VALUES {marks}) CROSS JOIN {self.name} ON {joined}"

    @cached_property
    def create(self) -> str:
        keys = ", ".join(f"{column} BLOB NOT NULL" for column in self.columns)
        return (
            f"CREATE TABLE {self.name} ({keys}, size INTEGER NOT NULL, item BLOB NOT NULL,"
            f" PRIMARY KEY ({', '.join(self.columns)})) WITHOUT ROWID"
        )

    @cached_property
    def _is_key(self) -> str:
        return " AND ".join(f"{column} = ?" for column in self.columns)


@dataclass(frozen=True)
class Layout:
    """One table of the file, with its indexes."""

    table: Table
    items: Keyed
    indexes: Mapping[str, Keyed]

    @cached_property
    def rules(self) -> WriteRules:
        """The rules for its items."""
        return WriteRules(self.table)

    def keyed(self, index: str | None) -> Keyed:
        """What a read with that index name reads; KeyError where the table lacks it."""
        return self.items if index is None else self.indexes[index]


def layout_of(table: Table, number: int) -> Layout:
    """The SQLite tables of the table, which are named by its number in the catalogue."""
    items = Keyed(f"table_{number}", table.keys, len(table.keys), None, None)
    indexes = {
        index.name: Keyed(
            f"table_{number}_index_{at}",
            table.position(index.name),
            len(index.keys),
            index,
            _projected(table, index),
        )
        for at, index in enumerate(table.indexes)
    }
    return Layout(table, items, indexes)


def _projected(table: Table, index: Index) -> frozenset[str] | None:
    if index.projection == "ALL":
        return None
    named = () if index.projection == "KEYS_ONLY" else index.projection
    return frozenset(named) | {key.name for key in table.position(index.name)}
