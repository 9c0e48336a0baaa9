"""The differences between a store's table and the declared one that keep a graph from being served, and what changes of
its indexes remove them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from keygraph.dynamo.table import Index, KeyAttribute, Table


def table_differences(declared: Table, found: Table) -> list[str]:
    """Returns the reasons why a graph that declares one table cannot be served from the other; empty if it can.

    The store's table may have more indexes, and its indexes may project more attributes.
    """
    differences: list[str] = []
    if declared.keys != found.keys:
        differences.append(f"its keys are {_key_difference(found.keys, declared.keys)}")
    indexes = {index.name: index for index in found.indexes}
    for index in declared.indexes:
        theirs = indexes.get(index.name)
        if theirs is None:
            differences.append(f"it lacks the index {index.name}")
        else:
            differences += _index_differences(declared, index, theirs)
    return differences


def _index_differences(declared: Table, index: Index, theirs: Index) -> Iterator[str]:
    if index.keys != theirs.keys:
        yield f"the keys of its index {index.name} are {_key_difference(theirs.keys, index.keys)}"
    if index.local != theirs.local:
        kinds = ("global", "local")
        yield f"its index {index.name} is {kinds[theirs.local]}, but the model declares a {kinds[index.local]} one"
    # Keys are always projected.
    missing = index.named.difference(theirs.named, [key.name for key in (*declared.keys, *index.keys)])
    if theirs.projection != "ALL" and (index.projection == "ALL" or missing):
        yield f"its index {index.name} projects {_projection(theirs)}, declared is {_projection(index)}"


class IndexChanges(NamedTuple):
    """What makes the indexes of a store's table those of the declared one."""

    missing: list[Index]
    """Declared indexes to create."""
    differing: list[Index]
    """Declared indexes whose namesake is to be deleted first: it has other keys, or projects less."""
    undeclared: list[Index]
    """The store's indexes that are not declared, which the graph does not read."""
    impossible: list[str]
    """What no change of indexes can do, with the reason."""


def index_changes(declared: Table, found: Table, *, removes: bool) -> IndexChanges:
    """Returns the changes of indexes that the differences between two tables need. `removes`: indexes may be deleted."""
    theirs = {index.name: index for index in found.indexes}
    names = {index.name for index in declared.indexes}
    missing = [index for index in declared.indexes if index.name not in theirs]
    differing = [
        index
        for index in declared.indexes
        if index.name in theirs and [*_index_differences(declared, index, theirs[index.name])]
    ]
    undeclared = [index for index in found.indexes if index.name not in names and not index.local]
    impossible = []
    if declared.keys != found.keys:
        keys = _key_difference(found.keys, declared.keys)
        impossible.append(f"its keys are {keys}: the keys of a table cannot be changed")
    for index in (*missing, *differing):
        if index.local or (index.name in theirs and theirs[index.name].local):
            impossible.append(f"{index.name} is a local index, which only a new table can have")
    stays = {key.name: key.type for index in undeclared if not removes for key in index.keys}
    for key in declared.key_attributes():
        if stays.get(key.name, key.type) != key.type:
            types = (
                f"{key.type}, but an index of the table has it as {stays[key.name]}: remove that index first"
            )
            impossible.append(f"{key.name} is declared as {types}")
    return IndexChanges(missing, differing, undeclared, impossible)


def _key_difference(found: tuple[KeyAttribute, ...], declared: tuple[KeyAttribute, ...]) -> str:
    theirs, ours = (" and ".join(f"{key.name} ({key.type})" for key in keys) for keys in (found, declared))
    return f"{theirs}, but the model declares {ours}"


def _projection(index: Index) -> str:
    if isinstance(index.projection, str):
        return "ALL" if index.projection == "ALL" else "keys alone (KEYS_ONLY)"
    return ", ".join(index.projection)
