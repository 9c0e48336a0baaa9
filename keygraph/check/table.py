"""Checks that DynamoDB would accept a table and its indexes."""

from __future__ import annotations

import re
from collections.abc import Iterator

from keygraph.dynamo.limits import KEY_NAME_BYTES, LOCAL_INDEXES, PROJECTED_ATTRIBUTES
from keygraph.dynamo.table import Index, KeyAttribute, Table
from keygraph.errors import Mistake

_NAME = re.compile(r"[a-zA-Z0-9_.-]{3,255}", re.ASCII)
_KEY_TYPES = ("S", "N", "B")


def table_mistakes(table: Table) -> Iterator[Mistake]:
    """Yields everything in the definition that DynamoDB refuses."""
    names = [index.name for index in table.indexes]
    for name in sorted({name for name in names if names.count(name) > 1}):
        yield Mistake("index-twice", table.name, f"two of its indexes are called {name}.", "Rename one.")
    keyeds: list[Table | Index] = [table, *table.indexes]
    for keyed in keyeds:
        yield from _names_refused(keyed)
        if keyed.sort is not None and keyed.sort.name == keyed.partition.name:
            problem = f"{keyed.partition.name} is both its partition key and its sort key."
            yield Mistake("one-key-attribute", keyed.name, problem, "Use another attribute for one of them.")
    first: dict[str, tuple[KeyAttribute, str]] = {}
    for keyed, key in ((each, key) for each in keyeds for key in each.keys):
        other, where = first.setdefault(key.name, (key, keyed.name))
        if other.type != key.type:
            problem = (
                f"the attribute {key.name} is of type {key.type} here and of type {other.type} in {where}."
            )
            fix = "Give it one type: an attribute has the same type in all keys."
            yield Mistake("key-type", keyed.name, problem, fix)
    for index in table.indexes:
        yield from _local_mistakes(table, index)
        yield from _projection_mistakes(index)
    local = [index.name for index in table.indexes if index.local]
    if len(local) > LOCAL_INDEXES:
        problem = f"it has {len(local)} local indexes, but DynamoDB allows {LOCAL_INDEXES}."
        yield Mistake("local-index", table.name, problem, "Make some of them global: remove local=True.")
    projected = sum(len(index.projection) for index in table.indexes if isinstance(index.projection, tuple))
    if projected > PROJECTED_ATTRIBUTES:
        problem = (
            f"its indexes name {projected} attributes to project, but DynamoDB allows {PROJECTED_ATTRIBUTES}."
        )
        yield Mistake("projection", table.name, problem, 'Project "ALL" in some of them.')


def ttl_mistakes(table: Table, attribute: str) -> Iterator[Mistake]:
    """Checks that the attribute by which DynamoDB deletes expired items can hold a time."""
    keys = [*table.keys, *(key for key in table.key_attributes() if key.type != "N")]
    if not attribute or attribute in {key.name for key in keys}:
        problem = f"ttl_attribute={attribute!r} is not the name of an attribute that can hold a number."
        yield Mistake("ttl-attribute", "the graph", problem, 'Name another one: ttl_attribute="expiresAt".')


def _names_refused(keyed: Table | Index) -> Iterator[Mistake]:
    what = "a table" if isinstance(keyed, Table) else "an index"
    if not _NAME.fullmatch(keyed.name):
        problem = f"{keyed.name!r} is not a name for {what}."
        fix = "Use 3 to 255 of the characters a-z, A-Z, 0-9, _, . and -."
        yield Mistake("bad-name", keyed.name or what, problem, fix)
    for key in keyed.keys:
        if not 1 <= len(key.name.encode(errors="replace")) <= KEY_NAME_BYTES:
            problem = f"{key.name!r} is not a key attribute's name."
            yield Mistake("bad-name", keyed.name, problem, f"It has 1 to {KEY_NAME_BYTES} bytes.")
        if key.type not in _KEY_TYPES:
            problem = f"{key.type!r} is not a key type ({key.name})."
            fix = 'Use "S" for text, "N" for a number or "B" for bytes.'
            yield Mistake("key-type", keyed.name, problem, fix)


def _local_mistakes(table: Table, index: Index) -> Iterator[Mistake]:
    if not index.local:
        return
    if index.partition != table.partition:
        problem = f"a local index has the table's partition key, {table.partition.name}."
        yield Mistake("local-index", index.name, problem, "Use that one, or remove local=True.")
    fix = "Name one, or remove local=True."
    if index.sort is None:
        yield Mistake("local-index", index.name, "a local index has a sort key.", fix)
    if table.sort is None:
        yield Mistake("local-index", table.name, "a table with a local index has a sort key.", fix)


def _projection_mistakes(index: Index) -> Iterator[Mistake]:
    if isinstance(index.projection, str):
        if index.projection not in ("ALL", "KEYS_ONLY"):
            fix = 'Use "ALL", "KEYS_ONLY", or a list of the attributes besides the keys.'
            yield Mistake("projection", index.name, f"projection={index.projection!r} is none.", fix)
        return
    if not index.projection:
        problem = "its projection names no attribute."
        yield Mistake("projection", index.name, problem, 'Use projection="KEYS_ONLY".')
    names = index.projection
    for name in dict.fromkeys(name for name in names if not name or names.count(name) > 1):
        problem = "has an attribute without a name" if not name else f"names {name} twice"
        yield Mistake("projection", index.name, f"its projection {problem}.", "Name each attribute once.")
