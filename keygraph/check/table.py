"""Checks that DynamoDB would accept a table and its indexes."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

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
        what = "a table" if isinstance(keyed, Table) else "an index"
        yield from _names_refused(what, keyed)
        if keyed.sort is not None and keyed.sort.name == keyed.partition.name:
            yield Mistake(
                "one-key-attribute",
                keyed.name,
                f"{keyed.partition.name} is both its partition key and its sort key.",
                "Use another attribute for one of them.",
            )
    yield from _types_that_differ(keyeds)
    for index in table.indexes:
        yield from _local_mistakes(table, index)
        yield from _projection_mistakes(index)
    local = [index.name for index in table.indexes if index.local]
    if len(local) > LOCAL_INDEXES:
        yield Mistake(
            "local-index",
            table.name,
            f"it has {len(local)} local indexes, but DynamoDB allows {LOCAL_INDEXES}.",
            "Make some of them global: remove local=True.",
        )
    projected = sum(len(index.projection) for index in table.indexes if isinstance(index.projection, tuple))
    if projected > PROJECTED_ATTRIBUTES:
        yield Mistake(
            "projection",
            table.name,
            f"its indexes name {projected} attributes to project, but DynamoDB allows {PROJECTED_ATTRIBUTES}.",
            'Project "ALL" in some of them.',
        )


def ttl_mistakes(table: Table, attribute: str) -> Iterator[Mistake]:
    """Checks that the attribute by which DynamoDB deletes expired items can hold a time."""
    keys = [*table.keys, *(key for key in table.key_attributes() if key.type != "N")]
    if not attribute or attribute in {key.name for key in keys}:
        problem = f"ttl_attribute={attribute!r} is not the name of an attribute that can hold a number."
        yield Mistake("ttl-attribute", "the graph", problem, 'Name another one: ttl_attribute="expiresAt".')


def _names_refused(what: str, keyed: Table | Index) -> Iterator[Mistake]:
    if not _NAME.fullmatch(keyed.name):
        yield Mistake(
            "bad-name",
            keyed.name or what,
            f"{keyed.name!r} is not a name for {what}.",
            "Use 3 to 255 of the characters a-z, A-Z, 0-9, _, . and -.",
        )
    for key in keyed.keys:
        if not 1 <= len(key.name.encode(errors="replace")) <= KEY_NAME_BYTES:
            yield Mistake(
                "bad-name",
                keyed.name,
                f"{key.name!r} is not a key attribute's name.",
                f"It has 1 to {KEY_NAME_BYTES} bytes.",
            )
        if key.type not in _KEY_TYPES:
            yield Mistake(
                "key-type",
                keyed.name,
                f"{key.type!r} is not a key type ({key.name}).",
                'Use "S" for text, "N" for a number or "B" for bytes.',
            )


def _types_that_differ(keyeds: Iterable[Table | Index]) -> Iterator[Mistake]:
    seen: dict[str, tuple[KeyAttribute, str]] = {}
    for keyed in keyeds:
        for key in keyed.keys:
            other, where = seen.setdefault(key.name, (key, keyed.name))
            if other.type != key.type:
                yield Mistake(
                    "key-type",
                    keyed.name,
                    f"the attribute {key.name} is of type {key.type} here and of type {other.type} in {where}.",
                    "Give it one type: an attribute has the same type in all keys.",
                )


def _local_mistakes(table: Table, index: Index) -> Iterator[Mistake]:
    if not index.local:
        return
    if index.partition != table.partition:
        yield Mistake(
            "local-index",
            index.name,
            f"a local index has the table's partition key, {table.partition.name}.",
            "Use that one, or remove local=True.",
        )
    mend = "Name one, or remove local=True."
    if index.sort is None:
        yield Mistake("local-index", index.name, "a local index has a sort key.", mend)
    if table.sort is None:
        yield Mistake("local-index", table.name, "a table with a local index has a sort key.", mend)


def _projection_mistakes(index: Index) -> Iterator[Mistake]:
    if isinstance(index.projection, str):
        if index.projection not in ("ALL", "KEYS_ONLY"):
            yield Mistake(
                "projection",
                index.name,
                f"projection={index.projection!r} is none.",
                'Use "ALL", "KEYS_ONLY", or a list of the attributes besides the keys.',
            )
        return
    if not index.projection:
        yield Mistake(
            "projection", index.name, "its projection names no attribute.", 'Use projection="KEYS_ONLY".'
        )
    names = index.projection
    for name in dict.fromkeys(name for name in names if not name or names.count(name) > 1):
        problem = "has an attribute without a name" if not name else f"names {name} twice"
        yield Mistake("projection", index.name, f"its projection {problem}.", "Name each attribute once.")
