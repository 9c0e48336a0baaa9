"""The differences between a store's table and the declared one that keep a graph from being served."""

from __future__ import annotations

from keygraph.dynamo.table import Index, KeyAttribute, Table


def table_differences(declared: Table, found: Table) -> list[str]:
    """Why a graph that declares one table cannot be served from the other; empty where it can.

    The store's table may have more indexes, and its indexes may project more attributes.
    """
    differences: list[str] = []
    if declared.keys != found.keys:
        differences.append(
            f"its keys are {_shown(found.keys)}, but the model declares {_shown(declared.keys)}"
        )
    indexes = {index.name: index for index in found.indexes}
    for index in declared.indexes:
        if index.name not in indexes:
            differences.append(f"it lacks the index {index.name}")
        else:
            differences += _index_differences(declared, index, indexes[index.name])
    return differences


def _index_differences(table: Table, declared: Index, found: Index) -> list[str]:
    differences: list[str] = []
    if declared.keys != found.keys:
        differences.append(
            f"the keys of its index {declared.name} are {_shown(found.keys)}, but the model declares {_shown(declared.keys)}"
        )
    if declared.local != found.local:
        kinds = ("global", "local")
        differences.append(
            f"its index {declared.name} is {kinds[found.local]}, but the model declares a {kinds[declared.local]} one"
        )
    keys = {key.name for key in (*table.keys, *declared.keys)}
    if not _projects(found, declared, keys):
        differences.append(
            f"its index {declared.name} projects {_shown_projection(found)}, "
            f"declared is {_shown_projection(declared)}"
        )
    return differences


def _projects(found: Index, declared: Index, keys: set[str]) -> bool:
    """Whether the found index has every attribute that the declared one projects; keys are always there."""
    if found.projection == "ALL" or declared.projection == "ALL":
        return found.projection == "ALL"
    return _listed(declared) - keys <= _listed(found)


def _listed(index: Index) -> set[str]:
    """The attributes that an index projects by name."""
    return set() if isinstance(index.projection, str) else set(index.projection)


def _shown_projection(index: Index) -> str:
    match index.projection:
        case "ALL":
            return "ALL"
        case "KEYS_ONLY":
            return "keys alone (KEYS_ONLY)"
    return ", ".join(index.projection)


def _shown(keys: tuple[KeyAttribute, ...]) -> str:
    return " and ".join(f"{key.name} ({key.type})" for key in keys)
