"""How a table is stored in a SQLite file: one SQLite table for the table itself, and one for each of its indexes.

Each is `WITHOUT ROWID`, so its rows are in the order of their key columns, which are those of `Table.position`. DynamoDB
does not specify the order of items with equal index keys, so an index has one more column between its own keys and the
table's: a hash of the table's key. A model that relies on another order fails here too.

A row has its keys as ordered bytes (`keygraph.dynamo.order`), the size of the item by DynamoDB's rules, and the
projected item. The size comes before the item, so that a count does not read items.

An item is a JSON object. Text, whole numbers of up to 18 digits, true, false and null are stored as JSON values; every
other value is in DynamoDB's typed form, which is an object with one name. Only the requested parts of an item are decoded.
"""

from __future__ import annotations

import zlib
from collections.abc import Callable, Collection, Iterable, Mapping
from decimal import Decimal
from types import NoneType
from typing import Any, NamedTuple, TypeAlias

import orjson

from keygraph.dynamo import items
from keygraph.dynamo.conditions import Path, outermost
from keygraph.dynamo.items import Item, Value
from keygraph.dynamo.limits import LOCAL_ENTRY_BYTES
from keygraph.dynamo.order import key_reader
from keygraph.dynamo.rules import ReadRules, WriteRules, no_such_index, refuse_deep_path
from keygraph.dynamo.table import Index, Position, Table
from keygraph.errors import Unavailable
from keygraph.kept import kept

StoredKey = tuple[bytes, ...]
SEVERAL = 50
"""How many keys one statement looks up."""
_WHOLE_DIGITS = 18
"""Numbers with so many digits fit an integer of 64 bits in every JSON reader."""

Stored: TypeAlias = dict[str, Any]
"""An item as JSON."""
Decoder: TypeAlias = Callable[[Stored], Item]

# --- Rows ---------------------------------------------------------------------------------------------


class Row(NamedTuple):
    """An item as stored in the table or in one index."""

    key: StoredKey
    size: int
    content: bytes


def key_hash(*key: bytes) -> bytes:
    """Returns the hash of a table key. It must not change: rows of indexes contain it."""
    return zlib.crc32(b"\0".join(key)).to_bytes(4)


class Keyed:
    """The SQLite table of the table itself or of one of its indexes, and the statements for its rows."""

    def __init__(self, name: str, table: Table, index: Index | None) -> None:
        """`name` is the name of the SQLite table, `index` the index whose rows it has; None for the table itself."""
        self.name = name
        self.rules = ReadRules(table, None if index is None else index.name)
        attributes = tuple(self.rules.limits)
        self.names = tuple([attribute.name for attribute in attributes])
        """The attributes of a position in it."""
        self._own_names = [key.name for key in (index or table).keys]
        self._own = len(self._own_names)
        self._is_hashed = len(attributes) > self._own
        """Whether its rows have a hash, after its own keys: several may have equal keys."""
        self._table_key = [attributes.index(key) for key in table.keys]
        places = [at + (self._is_hashed and at >= self._own) for at in range(len(attributes))]
        self.table_key = [places[at] for at in self._table_key]
        """The places of the table's own key among its columns."""
        self.key_readers = [
            (key_reader(attribute), at) for attribute, at in zip(attributes, places, strict=True)
        ]
        """The functions that read a position from a row, with the places of its columns."""
        self.projected = None if index is None else table.projected(index)
        """The attributes that its rows have; None for all."""
        self.overhead = LOCAL_ENTRY_BYTES if index is not None and index.local else 0
        """The bytes that a row takes in a write in addition to its attributes."""
        given = [f"k{at}" for at in range(len(attributes))]
        hashed = ["hash"] if self._is_hashed else []
        self.columns = (*given[: self._own], *hashed, *given[self._own :])
        """The columns that order its rows."""
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
        """The statement that finds the rows of `SEVERAL` keys."""
        stored_keys = ", ".join(f"{column} BLOB NOT NULL" for column in self.columns)
        self.create = (
            f"CREATE TABLE {name} ({stored_keys}, size INTEGER NOT NULL, item BLOB NOT NULL,"
            f" PRIMARY KEY ({columns})) WITHOUT ROWID"
        )

    def row(self, item: Item, keys: Mapping[str, bytes], whole: Row) -> Row | None:
        """Returns the item's row in this index, or None if it lacks a key of the index, which is sparse.

        `keys` are its keys as ordered bytes, by name; `whole` is its row in the table.
        """
        for name in self._own_names:
            if name not in keys:
                return None
        key = self._stored_key(tuple([keys[name] for name in self.names]))
        if self.projected is None:
            return Row(key, whole.size, whole.content)
        part = {name: value for name, value in item.items() if name in self.projected}
        return Row(key, items.item_size(part), content_of(part))

    def stored_key(self, position: Position) -> StoredKey:
        """Returns the key columns of a position. Raises BadUserInput for one that does not fit."""
        return self._stored_key(self.rules.position_bytes(position))

    def _stored_key(self, position: StoredKey) -> StoredKey:
        if not self._is_hashed:
            return position
        own, rest = position[: self._own], position[self._own :]
        return *own, key_hash(*[position[at] for at in self._table_key]), *rest


class _ReadFrom(dict[str | None, Keyed]):
    """The SQLite table for an index's name, or None for the table. Raises BadUserInput for a missing index."""

    def __init__(self, table: Table, of_index: Iterable[tuple[str | None, Keyed]]) -> None:
        super().__init__(of_index)
        self._table = table

    def __missing__(self, index: str | None) -> Keyed:
        raise no_such_index(self._table, index)


class Layout:
    """One table of the file, with its indexes."""

    def __init__(
        self,
        table: Table,
        number: int,
        places: Mapping[str, int],
        unfinished: Collection[str],
        log: str | None,
        schema: str,
    ) -> None:
        """`number` is the table's number in the catalogue, which names the SQLite tables, with the number of each index in
        `places`. The `unfinished` indexes are written, but not read yet. `log` is the SQLite table with its changes, if it
        has a stream. `schema` is the table as the catalogue has it."""
        self.index = table.index
        self.number = number
        self.log = log
        self.schema = schema
        self.rules = WriteRules(table)
        self.items = Keyed(f"table_{number}", table, None)
        self.indexes = {
            index.name: Keyed(f"table_{number}_index_{places[index.name]}", table, index)
            for index in table.indexes
        }
        ready = [index for index in table.indexes if index.name not in unfinished]
        self.table = table.with_indexes(ready) if unfinished else table
        """The table with the indexes that can be read."""
        self.read_from: Mapping[str | None, Keyed] = _ReadFrom(
            self.table, [(None, self.items), *((index.name, self.indexes[index.name]) for index in ready)]
        )

    def refuse_other(self, item: Item, key: StoredKey) -> None:
        """Raises Unavailable for an item of another key than its row in the table: it would be written elsewhere."""
        if tuple(map(self.rules.keys_of(item).get, self.items.names)) != key:
            raise damaged()


# --- Items are written --------------------------------------------------------------------------------


def content_of(item: Item) -> bytes:
    """Returns the item's bytes.

    Raises ValueError for a value that DynamoDB cannot hold, orjson.JSONEncodeError for invalid Unicode.
    """
    stored = {name: value if type(value) is str else _stored(value) for name, value in item.items()}
    return orjson.dumps(stored, default=items.base64_text)


def _stored(value: Value) -> object:
    if type(value) is Decimal:
        return _stored_number(str(value))
    return value if value is None or value is True or value is False else items.to_typed(value)


@kept("numbers", 4096, 700)
def _stored_number(text: str) -> object:
    """Returns the JSON of a number. It is cached and must not be changed: quantities, prices and versions repeat."""
    if len(text) <= _WHOLE_DIGITS and text.removeprefix("-").isdecimal():
        return int(text)
    return items.to_typed(Decimal(text))


# --- Items are read -----------------------------------------------------------------------------------

stored_item: Callable[[bytes], Stored] = orjson.loads
"""Reads what `content_of` wrote, and decodes no value."""
FAULTS = (ValueError, TypeError, KeyError, AttributeError, RecursionError)
"""What reading an item raises that another program has written."""


def damaged() -> Unavailable:
    """Returns what is raised for a row that this engine would not write."""
    return Unavailable("the table's file cannot be used: an item in it is damaged")


def value_of(stored: object) -> Value:
    """Returns the value of its JSON, for all types except text."""
    if isinstance(stored, dict):
        return items.from_typed(stored)
    if type(stored) is int:
        # DynamoDB's numbers have no trailing zeros: 50 is 5E+1.
        return Decimal(stored) if stored % 10 or not stored else items.number(stored)
    if type(stored) in (str, bool, NoneType):
        return stored  # type: ignore[return-value]  # one of these
    raise TypeError("not a value of a stored item")


def whole(stored: Stored) -> Item:
    """Returns every attribute of the item."""
    return {name: value if type(value) is str else value_of(value) for name, value in stored.items()}


def is_same(one: bytes, other: bytes) -> bool:
    """Returns whether two rows have the same item, regardless of the order in which its attributes were written."""
    return one == other or _ordered(one) == _ordered(other)


def _ordered(content: bytes) -> bytes:
    try:
        # Compared as bytes, because true and 1 are equal in Python.
        return orjson.dumps(
            orjson.loads(content_of(whole(stored_item(content)))), option=orjson.OPT_SORT_KEYS
        )
    except FAULTS as error:
        raise damaged() from error


@kept("projections", 256, 16_000)
def decoder(paths: tuple[Path, ...] | None) -> Decoder:
    """Returns a function that decodes only these paths of a stored item; the whole item for None.

    Raises BadUserInput for a path that is too deep.
    """
    if paths is None:
        return whole
    for path in paths:
        refuse_deep_path(path)
    tree = _tree(paths)
    if any(tree.values()):
        return lambda stored: _part(stored, tree)
    names = tuple(tree)
    return lambda stored: {
        name: value if type(value := stored[name]) is str else value_of(value)
        for name in names
        if name in stored
    }


_Tree: TypeAlias = "dict[str, _Tree]"
"""Paths by their first names; an empty one stands for the whole value."""


def _tree(paths: Iterable[Path]) -> _Tree:
    tree: _Tree = {}
    for path in outermost(paths):
        level = tree
        for name in path:
            level = level.setdefault(name, {})
    return tree


def _part(stored: Mapping[str, Any], tree: _Tree) -> Item:
    found: Item = {}
    for name, inner in tree.items():
        if name not in stored:
            continue
        value: items.TypedValue | str | int | None = stored[name]
        if not inner:
            found[name] = value if isinstance(value, str) else value_of(value)
        elif isinstance(value, dict) and "M" in value and (part := _part(value["M"], inner)):
            found[name] = part
    return found
