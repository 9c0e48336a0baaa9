"""The types of the results of walks: connections by distance or by score, and their edges."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import cached_property

from strawberry.types.arguments import StrawberryArgument
from strawberry.types.field import StrawberryField

from keygraph.model.paths import AccessPath
from keygraph.model.records import RecordType
from keygraph.names import camel
from keygraph.resolve.walks import NodeWalk
from keygraph_resolvers.naming.descriptions import in_words, of_several
from keygraph_resolvers.naming.names import walk_prefix
from keygraph_resolvers.schema.aggregate_types import AggregateTypes
from keygraph_resolvers.schema.definitions import (
    OutputType,
    ServedField,
    UnionType,
    add_fields,
    argument,
    definition_of,
    list_of,
    nullable,
    object_type,
)
from keygraph_resolvers.schema.field_kinds import (
    Attribute,
    Cursor,
    Edges,
    Nodes,
    PageInfo,
    Via,
    WalkedCount,
    WalkedNode,
    WalkOf,
)
from keygraph_resolvers.schema.inputs import DEFAULT_PAGE_SIZE

_COUNTED = "The number of nodes; null with a warning if the walk did not finish."
_DISTANCE = "How many edges away the node is."
_VIA = "The edge by which the node was found first."
_SCORE = "How much the ways count that lead to the node; null if not everything was read."
_PATHS = "How many ways lead to the node; null if not everything was read."
_COMPLETE = (
    "For a ranking, whether everything was read: if not, the order may be wrong, and scores are null. For other walks, false "
    "if the pages end before all nodes were found, because there are more than a cursor can hold."
)
_ENDS = {
    "hasNextPage": "Whether edges follow the page: `endCursor` is then where to continue.",
    "hasPreviousPage": "Whether edges precede the page: those up to `after`.",
}
"""Descriptions that differ from those of lists, which can also be read from their end."""


class WalkTypes:
    """Makes the fields of walks and their types."""

    def __init__(
        self,
        page_info: Callable[[Mapping[str, str]], list[StrawberryField]],
        node: Callable[[Sequence[RecordType]], OutputType],
        edge: Callable[[AccessPath], type],
        aggregates: AggregateTypes,
    ) -> None:
        """`page_info` makes the fields of a list's page info with other descriptions; `node` and `edge` make the types
        of nodes and of list edges."""
        self._aggregates = aggregates
        self._page_info = page_info
        self._node = node
        self._edge = edge

    def field(self, walk: NodeWalk) -> StrawberryField:
        """The field of a walk: a connection."""
        connection = nullable(self._connection(walk))
        arguments = _arguments(walk)
        described, reason = _described(walk), walk.owner.deprecated(walk.name)
        return ServedField(camel(walk.name), connection, WalkOf(walk), arguments, described, reason)

    def _connection(self, walk: NodeWalk) -> type:
        prefix, node = walk_prefix(walk), self._node(walk.nodes)
        what = f"the {in_words(walk.name)} of {in_words(walk.owner.name)}"
        made = object_type(f"{prefix}Connection", f"A page of {what}.")
        edge = object_type(f"{prefix}Edge", f"One of {what}, with how it was found.")
        own = self._reached(walk) if walk.is_reach else _ranked()
        cursor = "The position of the edge, for `after`."
        fields: list[StrawberryField] = [
            ServedField("cursor", str, Cursor(), description=cursor),
            ServedField("node", nullable(node), WalkedNode(), description="The node that was found."),
        ]
        add_fields(edge, [*fields, *own])
        nodes = "The nodes of the edges, without those that do not exist."
        add_fields(
            made,
            [
                ServedField("edges", list_of(nullable(edge)), Edges(), description="The edges of the page."),
                ServedField("nodes", list_of(node), Nodes(), description=nodes),
                ServedField(
                    "pageInfo", self._walk_page_info, PageInfo(), description="The position of the page."
                ),
                ServedField(
                    "totalCount", nullable(int), WalkedCount(walk.options.budget), description=_COUNTED
                ),
                *self._aggregate(walk),
            ],
        )
        return made

    def _aggregate(self, walk: NodeWalk) -> list[StrawberryField]:
        """The aggregate of all nodes, if they have one type."""
        if len(walk.nodes) != 1:
            return []
        return [self._aggregates.of_nodes(walk.nodes[0], walk.options.budget)]

    def _reached(self, walk: NodeWalk) -> list[StrawberryField]:
        return [
            ServedField("distance", int, Attribute("distance"), description=_DISTANCE),
            ServedField(
                "via",
                nullable(self.edges(f"{walk_prefix(walk)}Via", walk.paths)),
                Via(walk.paths),
                description=_VIA,
            ),
        ]

    def edges(self, name: str, paths: Sequence[AccessPath]) -> OutputType:
        """The type of the edges of some lists: a union with that name if there are several."""
        edges = [self._edge(path) for path in paths]
        if len(edges) == 1:
            return edges[0]
        described = of_several(definition_of(each).name for each in edges)
        return UnionType(name, edges, lambda source, info, abstract: source.type_name, described)

    @cached_property
    def _walk_page_info(self) -> type:
        made = object_type("WalkPageInfo", "The position of a page in the results of a walk.")
        complete = ServedField("isComplete", bool, Attribute("is_complete"), description=_COMPLETE)
        add_fields(made, [*self._page_info(_ENDS), complete])
        return made


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


def _described(walk: NodeWalk) -> str:
    if walk.description is not None:
        return walk.description
    order = "the nearest first" if walk.is_reach else "those first to which most ways lead"
    return f"The {in_words(walk.name)} of the {in_words(walk.owner.name)}, {order}."


def _ranked() -> list[StrawberryField]:
    return [
        ServedField("score", nullable(float), Attribute("score"), description=_SCORE),
        ServedField("paths", nullable(int), Attribute("paths"), description=_PATHS),
    ]
