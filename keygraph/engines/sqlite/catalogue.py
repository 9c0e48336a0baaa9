"""The catalogue of a SQLite file: its tables, with their keys and indexes.

Tables are found by name; their SQLite tables are named by number, because SQLite treats `Shop` and `shop` as the same
name. A number is never reused, so cached facts about it stay true.
"""

from __future__ import annotations

import sqlite3
from typing import Any

import orjson

from keygraph.dynamo.differences import table_differences
from keygraph.dynamo.table import Index, KeyAttribute, Table
from keygraph.engines.sqlite.layout import Layout, key_hash
from keygraph.errors import TableMissing, Unavailable

_APPLICATION_ID = 0x4B657967
"""`Keyg`, in the header of the file."""
_LAYOUT_VERSION = 3
"""Files of earlier layouts are changed when they are opened (`keygraph.engines.sqlite.layout`)."""


def prepare_file(connection: sqlite3.Connection) -> None:
    """Makes a new file one of Keygraph's. Raises Unavailable for another program's file, or one with a later layout."""
    application, version, objects = (
        connection.execute(sql).fetchone()[0]
        for sql in ("PRAGMA application_id", "PRAGMA user_version", "SELECT count(*) FROM sqlite_schema")
    )
    if application == _APPLICATION_ID and version > _LAYOUT_VERSION:
        raise Unavailable("it was written by a newer version of Keygraph")
    if application != _APPLICATION_ID and (application or objects):
        raise Unavailable("it is another program's SQLite file")
    connection.execute("PRAGMA journal_mode = WAL")
    connection.execute("BEGIN IMMEDIATE")
    connection.execute(f"PRAGMA application_id = {_APPLICATION_ID}")
    [version] = connection.execute("PRAGMA user_version").fetchone()
    connection.execute(f"PRAGMA user_version = {_LAYOUT_VERSION}")
    connection.execute(
        "CREATE TABLE IF NOT EXISTS keygraph_tables"
        " (number INTEGER PRIMARY KEY AUTOINCREMENT, name TEXT NOT NULL UNIQUE, schema TEXT NOT NULL)"
    )
    connection.execute(
        "CREATE TABLE IF NOT EXISTS keygraph_tokens"
        " (token TEXT PRIMARY KEY, asked BLOB NOT NULL, at REAL NOT NULL) WITHOUT ROWID"
    )
    connection.execute("CREATE INDEX IF NOT EXISTS keygraph_tokens_at ON keygraph_tokens (at)")
    if version < _LAYOUT_VERSION:
        _rebuild_indexes(connection)
    connection.execute("COMMIT")


def _rebuild_indexes(connection: sqlite3.Connection) -> None:
    """Adds the hashes to the indexes of all tables, unless the file is new and has none."""
    connection.create_function("key_hash", -1, key_hash, deterministic=True)
    for number, schema in connection.execute("SELECT number, schema FROM keygraph_tables").fetchall():
        for keyed in Layout(_table(orjson.loads(schema)), number).indexes.values():
            for statement in keyed.rebuild:
                connection.execute(statement)


class Catalogue:
    """Finds one table in the file, for any connection to it. Use it inside a transaction."""

    def __init__(self, table: Table) -> None:
        """`table` is the declared table."""
        self._declared = table
        self.known: Layout | None = None
        """The layout that was last returned. SQLite reports if its tables are gone, because names are not reused."""

    def names(self, connection: sqlite3.Connection) -> tuple[str, ...]:
        """Returns the names of all tables in the file, in order."""
        rows = connection.execute("SELECT name FROM keygraph_tables ORDER BY name")
        return tuple(str(name) for (name,) in rows)

    def find(self, connection: sqlite3.Connection) -> Layout | None:
        """Returns the table's layout, or None if the file has no such table."""
        row = connection.execute(
            "SELECT number, schema FROM keygraph_tables WHERE name = ?", (self._declared.name,)
        ).fetchone()
        if row is None:
            return None
        number, schema = row
        known = self.known
        is_known = known is not None and known.number == number
        return known if is_known else Layout(_table(orjson.loads(schema)), number)

    def layout(self, connection: sqlite3.Connection) -> Layout:
        """Returns the table's layout. Raises TableMissing, and Unavailable if the declared table differs."""
        layout = self.find(connection)
        if layout is None:
            raise TableMissing(
                f"there is no table {self._declared.name}: create it with `keygraph table create`"
            )
        differing = table_differences(self._declared, layout.table) if layout.table != self._declared else ()
        if differing:
            raise Unavailable(
                f"the file's table {self._declared.name} does not match the model: {differing[0]}: "
                "use another file, or export its items and load them into a new one"
            )
        self.known = layout
        return layout

    def create(self, connection: sqlite3.Connection) -> None:
        """Creates the declared table, unless a table of that name exists."""
        if self.find(connection) is not None:
            return
        row = (self._declared.name, orjson.dumps(_schema(self._declared)).decode())
        connection.execute("INSERT INTO keygraph_tables (name, schema) VALUES (?, ?)", row)
        layout = self.layout(connection)
        for keyed in (layout.items, *layout.indexes.values()):
            connection.execute(keyed.create)

    def delete(self, connection: sqlite3.Connection) -> None:
        """Deletes the table with its items, if a table of that name exists."""
        layout = self.find(connection)
        if layout is None:
            return
        for keyed in (layout.items, *layout.indexes.values()):
            connection.execute(f"DROP TABLE {keyed.name}")
        connection.execute("DELETE FROM keygraph_tables WHERE name = ?", (self._declared.name,))


# --- Schemas as JSON ----------------------------------------------------------------------------------


def _schema(table: Table) -> dict[str, Any]:
    indexes = sorted(table.indexes, key=lambda index: index.name)
    return {
        **_key_schema(table),
        "indexes": [
            {
                **_key_schema(index),
                "projection": index.projection if isinstance(index.projection, str) else sorted(index.named),
                "local": index.local,
            }
            for index in indexes
        ],
    }


def _key_schema(keyed: Table | Index) -> dict[str, Any]:
    return {"name": keyed.name, "keys": [list(key) for key in keyed.keys]}


def _table(schema: dict[str, Any]) -> Table:
    indexes = [
        Index(each["name"], *_keys(each), projection=each["projection"], local=each["local"])
        for each in schema["indexes"]
    ]
    partition, *sort = _keys(schema)
    return Table(schema["name"], partition_key=partition, sort_key=sort[0] if sort else None, indexes=indexes)


def _keys(schema: dict[str, Any]) -> list[KeyAttribute]:
    return [KeyAttribute(*key) for key in schema["keys"]]
