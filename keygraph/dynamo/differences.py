"""The differences between a store's table and the declared one that keep a graph from being served."""

from __future__ import annotations

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
            continue
        if index.keys != theirs.keys:
            keys = _key_difference(theirs.keys, index.keys)
            differences.append(f"the keys of its index {index.name} are {keys}")
        if index.local != theirs.local:
            kinds = ("global", "local")
            differences.append(
                f"its index {index.name} is {kinds[theirs.local]}, but the model declares a {kinds[index.local]} one"
            )
        # Keys are always projected.
        missing = index.named.difference(theirs.named, [key.name for key in (*declared.keys, *index.keys)])
        if theirs.projection != "ALL" and (index.projection == "ALL" or missing):
            differences.append(
                f"its index {index.name} projects {_projection(theirs)}, declared is {_projection(index)}"
            )
    return differences


def _key_difference(found: tuple[KeyAttribute, ...], declared: tuple[KeyAttribute, ...]) -> str:
    theirs, ours = (" and ".join(f"{key.name} ({key.type})" for key in keys) for keys in (found, declared))
    return f"{theirs}, but the model declares {ours}"


def _projection(index: Index) -> str:
    if isinstance(index.projection, str):
        return "ALL" if index.projection == "ALL" else "keys alone (KEYS_ONLY)"
    return ", ".join(index.projection)
