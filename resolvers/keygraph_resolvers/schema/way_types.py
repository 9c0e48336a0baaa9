"""The root fields that return how one node is connected to another, and their types."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from enum import Enum
from typing import Any, TypeAlias, cast

import strawberry
from strawberry.types.field import StrawberryField

from keygraph.graph import Graph
from keygraph.model.paths import AccessPath
from keygraph.names import constant
from keygraph.resolve.ways import FollowedList
from keygraph_resolvers.schema.definitions import (
    OutputType,
    ServedField,
    add_fields,
    argument,
    enum_type,
    list_of,
    nullable,
    object_type,
)
from keygraph_resolvers.schema.field_kinds import Attribute, Via, WayEdges, WayNode, WayNodes, WaysBetween

EdgesOf: TypeAlias = Callable[[str, Sequence[AccessPath]], OutputType]
"""Returns the type of the edges of some lists: a union with that name if there are several."""

USUAL_LENGTH, MOST_LENGTH = 6, 20
USUAL_WAYS = 10

_PATH = "A shortest path from one node to another, along these lists; null if there is none."
_PATHS = "The shortest paths from one node to another, along these lists, if there are several."
_EDGE = "The same edge in that list, with the list's fields."
_NODES = "The nodes from one end to the other; null for one that does not exist."
_MOST = f"The most edges that it may have: {MOST_LENGTH} at most."


def list_name(path: AccessPath) -> str:
    """The name of a list among all: `USER_FRIENDS`."""
    owner = path.owner.name if path.owner else ""
    return f"{constant(owner)}_{constant(path.name)}"


def lists_by_name(graph: Graph) -> Mapping[str, FollowedList]:
    """The lists that can be followed, by name."""
    return {list_name(each.path): each for each in graph.followed}


def way_fields(graph: Graph, node: type, edges: EdgesOf) -> list[StrawberryField]:
    """The root fields. `node` is the interface of all nodes, `edges` returns the type of list edges."""
    if not graph.followed:
        return []
    lists = lists_by_name(graph)
    described = {name: each.path.description or _described(each.path) for name, each in lists.items()}
    make: Callable[..., Any] = Enum
    names = enum_type(make("ListName", {name: name for name in lists}), "A list of nodes.", described)
    paths = tuple(each.path for each in graph.followed)
    edge = object_type("PathEdge", "An edge of a path.")
    add_fields(
        edge,
        [
            ServedField("via", names, Attribute("via"), description="The list that it belongs to."),
            ServedField("node", nullable(node), WayNode(), description="The node to which it leads."),
            ServedField("edge", nullable(edges("PathListEdge", paths)), Via(paths), description=_EDGE),
        ],
    )
    way = object_type("Path", "How one node is connected to another.")
    add_fields(
        way,
        [
            ServedField("length", int, Attribute("length"), description="The number of its edges."),
            ServedField("nodes", list_of(nullable(node)), WayNodes(), description=_NODES),
            ServedField("edges", list_of(edge), WayEdges(), description="The edges in their order."),
        ],
    )
    of_id = cast(type, strawberry.ID)
    arguments = [
        argument(
            "from", of_id, "The node where it begins, by `id`, or by its key if the lists tell its type."
        ),
        argument("to", of_id, "The node where it ends, in the same way."),
        argument("via", list_of(names), "The lists that it may go along, in their direction."),
        argument("maxLength", int, _MOST, USUAL_LENGTH),
    ]
    first = argument("first", nullable(int), f"How many of them: {USUAL_WAYS} by default.")
    return [
        ServedField("path", nullable(way), WaysBetween(is_list=False), arguments, _PATH),
        ServedField("paths", nullable(list_of(way)), WaysBetween(is_list=True), [*arguments, first], _PATHS),
    ]


def _described(path: AccessPath) -> str:
    owner = path.owner.name if path.owner else ""
    return f"`{owner}.{path.name}`"


def named_lists(graph: Graph, said: Sequence[Any]) -> list[FollowedList]:
    """The lists that a client names, each once."""
    lists = lists_by_name(graph)
    return [lists[name] for name in dict.fromkeys(getattr(each, "value", each) for each in said)]
