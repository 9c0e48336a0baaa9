"""The types of the results of walks and of paths between nodes, and the fields that return them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

from strawberry.types.arguments import StrawberryArgument
from strawberry.types.field import StrawberryField

from keygraph.graph import Graph
from keygraph.model.paths import AccessPath, WalkedPath, with_edges
from keygraph.model.records import RecordType
from keygraph.names import camel, constant, pascal, snake
from keygraph.resolve.walks import FollowedList, NodeWalk
from keygraph_resolvers.naming.descriptions import OF_SEVERAL, in_words
from keygraph_resolvers.schema import field_kinds as kinds
from keygraph_resolvers.schema.aggregate_types import aggregate_of_nodes
from keygraph_resolvers.schema.definitions import (
    ID_TYPE,
    OutputType,
    SchemaTypes,
    ServedField,
    UnionType,
    argument,
    list_of,
    nullable,
)
from keygraph_resolvers.schema.inputs import DEFAULT_PAGE_SIZE

_COUNTED = "The number of nodes; null with a warning if the walk did not finish."
_DISTANCE = "How many edges away the node is."
_VIA = "The edge by which the node was found first."
_OR_ID = " Null for an id in a list of ids."
_SCORE = "How much the ways count that lead to the node; null if not everything was read."
_LEADING = "How many ways lead to the node; null if not everything was read."
_COMPLETE = (
    "For a ranking, whether everything was read: if not, the order may be wrong, and scores are null. For other walks, false "
    "if the pages end before all nodes were found, because there are more than a cursor can hold."
)
_ENDS = {
    "hasNextPage": "Whether edges follow the page: `endCursor` is then where to continue.",
    "hasPreviousPage": "Whether edges precede the page: those up to `after`.",
}
"""Descriptions that differ from those of lists, which can also be read from their end."""
USUAL_LENGTH, MOST_LENGTH = 6, 20
USUAL_PATHS = 10
_PATH = "A shortest path from one node to another, along these lists; null if there is none."
_PATHS = "The shortest paths from one node to another, along these lists, if there are several."
_EDGE = "The same edge in that list, with the list's fields."
_NODES = "The nodes from one end to the other; null for one that does not exist."
_MOST = f"The most edges that it may have: {MOST_LENGTH} at most."
_PAGE_INFO: Sequence[tuple[str, OutputType, str]] = (
    (
        "hasNextPage",
        bool,
        "Whether edges follow the page: with `first`, edges before the cursor `before`. Also true if the server "
        "stopped looking for matching edges; `endCursor` is then where to continue.",
    ),
    (
        "hasPreviousPage",
        bool,
        "Whether edges precede the page: with `last`, edges after the cursor `after`. Also true if the server "
        "stopped looking for matching edges; with `last`, `startCursor` is then where to continue.",
    ),
    ("startCursor", nullable(str), "The cursor of the first edge."),
    ("endCursor", nullable(str), "The cursor of the last edge. Pass it as `after` to get the next page."),
)
"""The name, the type and the description of each field of a page's position."""


@dataclass(frozen=True)
class WalkTypes:
    """Makes the fields of walks, and of paths between nodes, with their types."""

    _types: SchemaTypes
    _node: Callable[[Sequence[RecordType]], OutputType]
    _edge: Callable[[AccessPath], type]

    def field(self, walk: NodeWalk) -> StrawberryField:
        """The field of a walk: a connection."""
        prefix, use = walk.owner.name + pascal(walk.name), f"{walk.owner.name}.{walk.name}"
        node = self._node(walk.nodes)
        what = f"the {in_words(walk.name)} of {in_words(walk.owner.name)}"
        edge_fields: list[StrawberryField] = [
            ServedField("cursor", str, kinds.Cursor(), "The position of the edge, for `after`."),
            ServedField("node", nullable(node), kinds.WalkedNode(), "The node that was found."),
        ]
        if walk.is_reach:
            edge_fields.append(ServedField("distance", int, kinds.Attribute("distance"), _DISTANCE))
            followed = () if walk.options.is_kept else walk.paths
            edge_fields += self._via("via", f"{prefix}Via", use, followed, _VIA)
        else:
            edge_fields.append(ServedField("score", nullable(float), kinds.Attribute("score"), _SCORE))
            edge_fields.append(ServedField("paths", nullable(int), kinds.Attribute("paths"), _LEADING))
        described = f"One of {what}, with how it was found."
        edge = self._types.object(f"{prefix}Edge", use, described, lambda: edge_fields)
        complete = ServedField("isComplete", bool, kinds.Attribute("is_complete"), _COMPLETE)
        page_info = self._types.object(
            "WalkPageInfo",
            "the position of a page of a walk",
            "The position of a page in the results of a walk.",
            lambda: [*page_info_fields(_ENDS), complete],
        )
        nodes = "The nodes of the edges, without those that do not exist."
        count = kinds.WalkedCount(walk.options.budget, walk.options.is_kept)
        fields: list[StrawberryField] = [
            ServedField("edges", list_of(nullable(edge)), kinds.Edges(), "The edges of the page."),
            ServedField("nodes", list_of(node), kinds.Nodes(), nodes),
            ServedField("pageInfo", page_info, kinds.PageInfo(), "The position of the page."),
            ServedField("totalCount", nullable(int), count, _COUNTED),
        ]
        if len(walk.nodes) == 1 and not walk.options.is_kept:
            fields += aggregate_of_nodes(self._types, walk.nodes[0], walk.options.budget)
        made = self._types.object(f"{prefix}Connection", use, f"A page of {what}.", lambda: fields)
        order = "the nearest first" if walk.is_reach else "those first to which most ways lead"
        described = f"The {in_words(walk.name)} of the {in_words(walk.owner.name)}, {order}."
        if walk.options.is_kept:
            described += (
                f" At most {walk.options.keep}, as they were at `{camel(walk.name)}AsOf`; null before."
            )
        reason, kind = walk.owner.deprecated(walk.name), kinds.WalkOf(walk)
        return ServedField(
            camel(walk.name), nullable(made), kind, walk.description or described, _arguments(walk), reason
        )

    def _via(
        self, field: str, type_: str, use: str, followed: Sequence[WalkedPath], described: str
    ) -> list[StrawberryField]:
        """The field of the edge that a walk followed; none if all its lists are lists of ids."""
        paths = with_edges(followed)
        if not paths:
            return []
        described += _OR_ID * (len(paths) < len(followed))
        return [ServedField(field, nullable(self._edges(type_, use, paths)), kinds.Via(paths), described)]

    def _edges(self, name: str, use: str, paths: Sequence[AccessPath]) -> OutputType:
        """The type of the edges of some lists: a union with that name if there are several."""
        edges = [self._edge(path) for path in paths]
        if len(edges) == 1:
            return edges[0]
        return self._types.once(
            name, use, lambda: UnionType(name, edges, lambda source, *_: source.type_name, OF_SEVERAL)
        )

    def path_fields(self, graph: Graph, node: type) -> list[StrawberryField]:
        """The root fields of paths from node to node. `node` is the interface of all nodes."""
        if not graph.followed:
            return []
        paths = tuple(each.path for each in graph.followed)
        use = "a type of `path`"
        lists = lists_by_name(graph)
        described = {name: each.path.description or f"`{each.path.place}`" for name, each in lists.items()}
        names = self._types.names("ListName", use, "A list of nodes.", described)
        edges = self._via("edge", "PathListEdge", use, paths, _EDGE)
        edge = self._types.object(
            "PathEdge",
            use,
            "An edge of a path.",
            lambda: [
                ServedField("via", names, kinds.Attribute("via"), "The list that it belongs to."),
                ServedField("node", nullable(node), kinds.PathEdgeNode(), "The node to which it leads."),
                *edges,
            ],
        )
        path_type = self._types.object(
            "Path",
            use,
            "How one node is connected to another.",
            lambda: [
                ServedField("length", int, kinds.Attribute("length"), "The number of its edges."),
                ServedField("nodes", list_of(nullable(node)), kinds.PathNodes(), _NODES),
                ServedField("edges", list_of(edge), kinds.PathEdges(), "The edges in their order."),
            ],
        )
        begins = "The node where it begins, by `id`, or by its key if the lists tell its type."
        arguments = [
            argument("from", ID_TYPE, begins),
            argument("to", ID_TYPE, "The node where it ends, in the same way."),
            argument("via", list_of(names), "The lists that it may go along, in their direction."),
            argument("maxLength", int, _MOST, USUAL_LENGTH),
        ]
        first = argument("first", nullable(int), f"How many of them: {USUAL_PATHS} by default.")
        every = nullable(list_of(path_type))
        return [
            ServedField("path", nullable(path_type), kinds.PathsBetween(is_list=False), _PATH, arguments),
            ServedField("paths", every, kinds.PathsBetween(is_list=True), _PATHS, [*arguments, first]),
        ]


def page_info_fields(described: Mapping[str, str] = MappingProxyType({})) -> list[StrawberryField]:
    """The fields of a page's position, with some descriptions replaced."""
    return [
        ServedField(name, type_, kinds.Attribute(snake(name)), described.get(name, usual))
        for name, type_, usual in _PAGE_INFO
    ]


def _arguments(walk: NodeWalk) -> list[StrawberryArgument]:
    first = f"The number of edges from the start: {DEFAULT_PAGE_SIZE} by default."
    arguments = [
        argument("first", nullable(int), first),
        argument("after", nullable(str), "Only edges after this cursor."),
    ]
    most = walk.options.depth
    if most is not None:
        farthest = f"Only nodes that are at most so many edges away: {most} by default, which is the most."
        arguments.append(argument("maxDistance", nullable(int), farthest))
    return arguments


def list_name(path: WalkedPath) -> str:
    """The name of a list among all: `USER_FRIENDS`."""
    owner = path.owner.name if path.owner else ""
    return f"{constant(owner)}_{constant(path.name)}"


def lists_by_name(graph: Graph) -> Mapping[str, FollowedList]:
    """The lists that can be followed, by name."""
    return {list_name(each.path): each for each in graph.followed}


def named_lists(graph: Graph, named: Sequence[Any]) -> list[FollowedList]:
    """The lists that a client names, each once."""
    lists = lists_by_name(graph)
    return [lists[name] for name in dict.fromkeys(getattr(each, "value", each) for each in named)]
