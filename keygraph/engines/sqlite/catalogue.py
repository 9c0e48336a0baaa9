"""The catalogue of a SQLite file: its tables, with their keys and indexes.

Tables are found by name; their SQLite tables are named by number, because SQLite treats `Shop` and `shop` as the same
name. A number is never reused, so cached facts about it stay true. The same holds for the indexes of a table.

An index that is created later is unfinished until it has every item. Its progress is in the catalogue; writes of all
processes keep it up to date meanwhile, because each of them looks up the catalogue.
"""

from __future__ import annotations

import os
import sqlite3
from typing import Any

import orjson

from keygraph.dynamo.differences import table_differences
from keygraph.dynamo.streams import Stream, StreamShard
from keygraph.dynamo.table import Index, KeyAttribute, Table
from keygraph.engines.sqlite.changes import create_log
from keygraph.engines.sqlite.layout import FAULTS, Layout
from keygraph.engines.sqlite.writes import fill_index
from keygraph.errors import TableMissing, Unavailable

_APPLICATION_ID = 0x4B657967
"""`Keyg`, in the header of the file."""
_LAYOUT_VERSION = 1
_STEP_ITEMS = 1000
"""How many items one step of creating an index looks at. Other writes wait meanwhile, about 30 ms."""


def prepare_file(connection: sqlite3.Connection) -> None:
    """Makes a new file one of Keygraph's. Raises Unavailable for another program's file, or one with another layout."""
    application, version, objects = (
        connection.execute(sql).fetchone()[0]
        for sql in ("PRAGMA application_id", "PRAGMA user_version", "SELECT count(*) FROM sqlite_schema")
    )
    is_ours = application == _APPLICATION_ID
    if is_ours and version != _LAYOUT_VERSION:
        raise Unavailable("it was written by another version of Keygraph")
    if not is_ours and (application or objects):
        raise Unavailable("it is another program's SQLite file")
    connection.execute("PRAGMA journal_mode = WAL")
    # A connection that changes the mode, of a copy that SQLite made, has the log open only when it reads.
    connection.execute("SELECT count(*) FROM sqlite_schema").fetchone()
    if is_ours:
        return  # also on a full disk, and while another process writes
    connection.execute("BEGIN IMMEDIATE")
    connection.execute(f"PRAGMA application_id = {_APPLICATION_ID}")
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
    connection.execute("COMMIT")


class Catalogue:
    """Finds one table in the file, for any connection to it. Use it inside a transaction."""

    def __init__(self, table: Table) -> None:
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
        is_known = known is not None and known.number == number and known.schema == schema
        return known if is_known else _layout(number, schema)

    def layout(self, connection: sqlite3.Connection) -> Layout:
        """Returns the table's layout. Raises TableMissing, and Unavailable if the declared table differs."""
        layout = self.find(connection)
        if layout is None:
            raise TableMissing(
                f"there is no table {self._declared.name}: create it with `keygraph table create`"
            )
        is_checked = layout is self.known or layout.table == self._declared
        differing = () if is_checked else table_differences(self._declared, layout.table)
        if differing:
            raise Unavailable(
                f"the file's table {self._declared.name} does not match the model: {differing[0]}: "
                "run `keygraph table update`, or use another file"
            )
        self.known = layout
        return layout

    def create(self, connection: sqlite3.Connection) -> None:
        """Creates the declared table, unless a table of that name exists."""
        if self.find(connection) is not None:
            return
        row = (self._declared.name, _text(_schema(self._declared)))
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
        if layout.log is not None:
            connection.execute(f"DROP TABLE {layout.log}")
        connection.execute("DELETE FROM keygraph_tables WHERE name = ?", (self._declared.name,))

    def stream(self, connection: sqlite3.Connection) -> Stream | None:
        """Returns the table's stream; None if it is off. Raises TableMissing."""
        log = self.layout(connection).log
        return None if log is None else Stream(log, (StreamShard(log),))

    def enable_stream(self, connection: sqlite3.Connection) -> None:
        """Turns the table's stream on, if it is off. Raises TableMissing."""
        layout, schema = self._changeable(connection)
        if layout.log is None:
            # Notes that are copied with a table name the stream of which they know.
            schema["log"] = log = f"table_{layout.number}_changes_{os.urandom(8).hex()}"
            create_log(connection, log)
            self._change(connection, schema)

    # --- Indexes of an existing table -----------------------------------------------------------------

    def create_index(self, connection: sqlite3.Connection, index: Index) -> int | None:
        """Does one step of creating an index. Returns None if it is finished, otherwise how many items it has looked at.

        Raises TableMissing.
        """
        layout, schema = self._changeable(connection)
        described = _index_schema(index)
        entry = next((each for each in schema["indexes"] if each["name"] == index.name), None)
        if entry is not None and "looked_at" in entry and not described.items() <= entry.items():
            # An interrupted change wanted another index.
            self.delete_index(connection, index.name)
            layout, schema = self._changeable(connection)
            entry = None
        if entry is None:
            entry = {**_created(schema, index), "looked_at": 0, "last": None}
            schema["indexes"].append(entry)
            layout = self._change(connection, schema)
            connection.execute(layout.indexes[index.name].create)
        if "looked_at" not in entry:
            return None
        after = None if entry["last"] is None else tuple(map(bytes.fromhex, entry["last"]))
        looked_at, last = fill_index(connection, layout, index.name, after, _STEP_ITEMS)
        if looked_at < _STEP_ITEMS:
            del entry["looked_at"], entry["last"]
        else:
            entry["looked_at"] += looked_at
            entry["last"] = [part.hex() for part in last]
        self._change(connection, schema)
        return entry.get("looked_at")

    def delete_index(self, connection: sqlite3.Connection, name: str) -> None:
        """Deletes the index, if there is one of that name. Raises TableMissing."""
        layout, schema = self._changeable(connection)
        if name in layout.indexes:
            connection.execute(f"DROP TABLE {layout.indexes[name].name}")
            schema["indexes"] = [each for each in schema["indexes"] if each["name"] != name]
            self._change(connection, schema)

    def _changeable(self, connection: sqlite3.Connection) -> tuple[Layout, dict[str, Any]]:
        """Returns the table's layout and schema."""
        layout = self.find(connection)
        if layout is None:
            raise TableMissing(f"there is no table {self._declared.name}")
        return layout, orjson.loads(layout.schema)

    def _change(self, connection: sqlite3.Connection, schema: dict[str, Any]) -> Layout:
        row = _text(schema), self._declared.name
        connection.execute("UPDATE keygraph_tables SET schema = ? WHERE name = ?", row)
        [number] = connection.execute("SELECT number FROM keygraph_tables WHERE name = ?", row[1:]).fetchone()
        return _layout(number, row[0])


# --- Schemas as JSON ----------------------------------------------------------------------------------


def _text(schema: dict[str, Any]) -> str:
    return orjson.dumps(schema).decode()


def _layout(number: int, text: str) -> Layout:
    try:
        schema: dict[str, Any] = orjson.loads(text)
        entries = schema["indexes"]
        places = {entry["name"]: entry["at"] for entry in entries}
        unfinished = {entry["name"] for entry in entries if "looked_at" in entry}
        return Layout(_table(schema), number, places, unfinished, schema.get("log"), text)
    except FAULTS as error:
        raise Unavailable("the table's file cannot be used: its list of tables is damaged") from error


def _schema(table: Table) -> dict[str, Any]:
    schema = {**_key_schema(table), "indexes": [], "created": 0}
    schema["indexes"] = [
        _created(schema, index) for index in sorted(table.indexes, key=lambda index: index.name)
    ]
    return schema


def _created(schema: dict[str, Any], index: Index) -> dict[str, Any]:
    """Returns the entry of a new index, with a number that no index of the table has had."""
    schema["created"] += 1
    return {**_index_schema(index), "at": schema["created"]}


def _index_schema(index: Index) -> dict[str, Any]:
    projection = index.projection if isinstance(index.projection, str) else sorted(index.named)
    return {**_key_schema(index), "projection": projection, "local": index.local}


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
