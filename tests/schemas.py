"""The schemas of the graphs that many tests serve, each built once: a schema keeps nothing of what it answers."""

from __future__ import annotations

from functools import lru_cache

from keygraph import Graph
from keygraph_resolvers import build_schema
from keygraph_resolvers.schema.types import GraphSchema


def with_all_writes(graph: Graph) -> Graph:
    """The same graph with every mutation of the types that do not choose theirs."""
    return Graph(graph.table, *graph.classes, **{**graph.options, "writes": True})


# A few, for the graphs that are made at random would all stay.
@lru_cache(maxsize=16)
def schema_of(graph: Graph) -> GraphSchema:
    """The graph's schema, without fields of others."""
    return build_schema(graph)
