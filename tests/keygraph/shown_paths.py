"""What the tests of paths share: a table with two indexes, graphs over it, and paths in words."""

from __future__ import annotations

from keygraph import Graph, Index, Table
from keygraph.model.paths import AccessPath

gsi1 = Index("GSI1", "GSI1PK", "GSI1SK")
by_day = Index("ByDay", "DayPK", "DaySK")
TABLE = Table("Tests", partition_key="PK", sort_key="SK", indexes=[gsi1, by_day])


def graph(*types: type, table: Table = TABLE, type_attribute: str | None = "Type") -> Graph:
    """A graph of those types, which has no mistakes."""
    return Graph(table, *types, type_attribute=type_attribute).check()


def shown(path: AccessPath) -> str:
    """The path as: index, end, partition, prefix and rest of the sort key."""
    return f"{path.keys.index_name} {path.end}: {path.keys.partition} / {path.prefix} + {path.rest}"


def shown_list(graph: Graph, owner: str, name: str) -> str:
    return shown(graph.node_lists[owner, name])
