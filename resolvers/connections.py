"""Connections: a page of a list, in the shape that Relay gives it.

A connection is resolved without reading anything; its fields ask for the page, or for the count, and equal requests
are one.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from typing import Any

from strawberry.types.info import Info

from keygraph.errors import BadUserInput
from keygraph.items import Item
from keygraph.listing import NeighbourList, Place, bind
from keygraph.names import camel
from keygraph.paths import AccessPath
from keygraph.reading import Extent, Found
from keygraph.records import RecordType
from resolvers.context import RequestContext, context_of
from resolvers.cursors import cursor, read_cursor
from resolvers.global_ids import read_global_id
from resolvers.inputs import condition, narrowings, required_texts
from resolvers.loaders import EdgesTo
from resolvers.selection import selected_paths
from resolvers.sources import Source, needs_item, read_source

DEFAULT_PAGE_SIZE = 20
MOST_IDS = 100
"""How many nodes `to` may name."""


class SortDirection(Enum):
    """Along the sort key, or against it."""

    ASC = "ASC"
    DESC = "DESC"


@dataclass(slots=True)
class Edge:
    """An item of a list, and where it stands there."""

    connection: Connection
    place: Place
    item: Item
    source: Source
    """The item as a record type's."""

    @property
    def cursor(self) -> str:
        return cursor(self.connection.context.secret, self.connection.neighbours, self.place)

    @property
    def node(self) -> Source | None:
        """What stands at the far end, or the item itself; its item may not have been read."""
        return far_source(self.connection.neighbours.path, self.source)


@dataclass(frozen=True, slots=True)
class PageInfo:
    has_next_page: bool
    has_previous_page: bool
    start_cursor: str | None
    end_cursor: str | None


@dataclass(slots=True)
class _Window:
    """What of a list a client asked for, in the client's words."""

    size: int
    from_end: bool
    after: Place | None
    before: Place | None
    descending: bool

    @property
    def forward(self) -> bool:
        """Whether it is read along the sort key."""
        return self.from_end == self.descending

    @property
    def start(self) -> Place | None:
        """Behind what reading begins."""
        return self.before if self.from_end else self.after

    @property
    def end(self) -> Place | None:
        """Before what reading ends."""
        return self.after if self.from_end else self.before


@dataclass(slots=True)
class Connection:
    """A list with its arguments."""

    context: RequestContext
    neighbours: NeighbourList
    window: _Window
    to: EdgesTo | None
    looks: frozenset[str]
    """What is selected of pageInfo."""
    wants_whole: bool
    """Whether something is selected that the index which is read lacks."""

    async def page(self) -> tuple[list[Edge], PageInfo]:
        """The edges in the client's order, and what is known around them."""
        if self.to is not None:
            return await self._page_to(self.to)
        window = self.window
        looks_on = ("hasPreviousPage" if window.from_end else "hasNextPage") in self.looks
        looks_back = ("hasNextPage" if window.from_end else "hasPreviousPage") in self.looks
        extent = Extent(
            window.size,
            forward=window.forward,
            after=window.start,
            until=window.end,
            look_ahead=looks_on,
            budget=self.context.limits.read_budget,
        )
        found = await self.context.neighbours.page(self.neighbours, extent)
        is_behind = looks_back and window.start is not None and await self._is_any_behind(found)
        return await self._shown(found, is_behind)

    async def _is_any_behind(self, found: Found) -> bool:
        """Whether the list has anything on the side from which the page was read."""
        if self.window.size == 0:
            return True  # the cursor's own item
        nearest = found.items[0][0] if found.items else found.resume or self.window.end
        extent = Extent(
            0,
            forward=not self.window.forward,
            after=nearest,
            look_ahead=True,
            budget=self.context.limits.read_budget,
        )
        return (await self.context.neighbours.page(self.neighbours, extent)).more

    async def _shown(self, found: Found, is_behind: bool) -> tuple[list[Edge], PageInfo]:
        items = await whole_items(self.context, found.items) if self.wants_whole else found.items
        edges = [self._edge(place, item) for place, item in items]
        first = edges[0].cursor if edges else None
        last = edges[-1].cursor if edges else None
        if found.resume is not None:
            last = cursor(self.context.secret, self.neighbours, found.resume)
        if self.window.from_end:
            edges.reverse()
            return edges, PageInfo(is_behind, found.more, last, first)
        return edges, PageInfo(found.more, is_behind, first, last)

    async def _page_to(self, edges: EdgesTo) -> tuple[list[Edge], PageInfo]:
        window = self.window
        found = await self.context.neighbours.edges_to(edges)
        if not window.forward:
            found = found[::-1]
        places = [place for place, _ in found]
        start = _index_behind(self.neighbours, places, window.start, window.forward)
        end = _index_before(self.neighbours, places, window.end, window.forward)
        page = found[start:end][: window.size]
        more = start + window.size < end
        return await self._shown(Found(page, more, None), start > 0)

    async def total(self) -> int:
        """How many edges the list has, whatever the page."""
        if self.to is not None:
            return len(await self.context.neighbours.edges_to(self.to))
        return await self.context.neighbours.count(self.neighbours)

    def _edge(self, place: Place, item: Item) -> Edge:
        record = self.neighbours.path.record
        return Edge(self, place, item, item_source(self.context, self.neighbours, record, item))


def item_source(context: RequestContext, neighbours: NeighbourList, record: RecordType, item: Item) -> Source:
    """The source of an item that a list has read; a whole node is not read again."""
    source = Source(record, record.identity_of(item), item)
    if record.is_node and neighbours.path.tells_all:
        context.nodes.prime(context.graph.table.key_of(item), item)
    return source


async def whole_items(
    context: RequestContext, items: Sequence[tuple[Place, Item]]
) -> list[tuple[Place, Item]]:
    """The items of an index with all their attributes; without those that the table no longer has."""
    keys = [context.graph.table.key_of(item) for _, item in items]
    read = await asyncio.gather(*(context.nodes.get(key) for key in keys))
    return [(place, item) for (place, _), item in zip(items, read, strict=True) if item is not None]


def _wants_more(path: AccessPath, selected: frozenset[str]) -> bool:
    """Whether fields of the path's type are selected that the items which it reads do not tell."""
    told = {"id", "__typename", "cursor", "node", *map(camel, (*path.told, *path.record.lists))}
    return not selected <= told


def far_source(path: AccessPath, source: Source) -> Source | None:
    """The node at the path's far end, or the source itself where the path ends there."""
    if path.far_end is None:
        return source
    return source.end(path.record.ends[path.far_end])


def _index_behind(
    neighbours: NeighbourList, places: Sequence[Place], place: Place | None, forward: bool
) -> int:
    if place is None:
        return 0
    if place in places:
        return places.index(place) + 1
    there = neighbours.order_of(place)
    heres = map(neighbours.order_of, places)
    return sum(here < there if forward else here > there for here in heres)


def _index_before(
    neighbours: NeighbourList, places: Sequence[Place], place: Place | None, forward: bool
) -> int:
    if place is None:
        return len(places)
    return places.index(place) if place in places else _index_behind(neighbours, places, place, forward)


# --- From arguments -----------------------------------------------------------------------------------


def connect(info: Info, path: AccessPath, owner: Source | None, given: Mapping[str, Any]) -> Connection:
    """The list of an owner (None: the root) with a client's arguments. Raises BadUserInput; reads nothing."""
    context = context_of(info)
    neighbours = _bound(context, path, owner, given)
    names = selected_paths(info)
    return Connection(
        context,
        neighbours,
        _window(context, neighbours, given),
        _named(context, neighbours, owner, given.get("to")),
        selected_paths(info, "pageInfo") if "pageInfo" in names else frozenset(),
        not path.tells_all and _wants_more(path, _selected_of_items(info, path)),
    )


def _selected_of_items(info: Info, path: AccessPath) -> frozenset[str]:
    """The fields that are selected of a connection's items: of its edges, or of nodes that are the items."""
    if path.far_end is not None:
        return selected_paths(info, "edges")
    return selected_paths(info, "edges", "node") | selected_paths(info, "nodes")


def _bound(
    context: RequestContext, path: AccessPath, owner: Source | None, given: Mapping[str, Any]
) -> NeighbourList:
    return bind(
        context.graph,
        path,
        owner.identity if owner else None,
        required_texts(context.graph, path, given),
        narrowings(context.graph, path, given),
        condition(context.graph, path, given.get("where")),
    )


async def only_neighbour(
    info: Info, path: AccessPath, owner: Source | None, given: Mapping[str, Any]
) -> Source | None:
    """The first item of a list, as a source; None where it is empty."""
    context = context_of(info)
    neighbours = _bound(context, path, owner, given)
    extent = Extent(1, budget=context.limits.read_budget)
    found = await context.neighbours.page(neighbours, extent)
    if not found.items:
        return None
    items = found.items
    if not path.tells_all and _wants_more(path, selected_paths(info)):
        items = await whole_items(context, items)
    if not items:
        return None
    [(_, item)] = items
    return item_source(context, neighbours, path.record, item)


def _window(context: RequestContext, neighbours: NeighbourList, given: Mapping[str, Any]) -> _Window:
    first, last = given.get("first"), given.get("last")
    if first is not None and last is not None:
        raise BadUserInput("say first or last, not both")
    name, size = ("last", last) if last is not None else ("first", first)
    most = context.limits.max_page_size
    size = min(DEFAULT_PAGE_SIZE, most) if size is None else size
    if not 0 <= size <= most:
        raise BadUserInput(f"{name}: from 0 to {most}")
    places = {
        name: read_cursor(context.secret, neighbours, name, text)
        for name in ("after", "before")
        if (text := given.get(name)) is not None
    }
    return _Window(
        size,
        name == "last",
        places.get("after"),
        places.get("before"),
        given.get("direction") is SortDirection.DESC,
    )


def _named(
    context: RequestContext, neighbours: NeighbourList, owner: Source | None, ids: Sequence[str] | None
) -> EdgesTo | None:
    """The edges to the named nodes alone."""
    if ids is None:
        return None
    path = neighbours.path
    if len(ids) > MOST_IDS:
        raise BadUserInput(f"to: at most {MOST_IDS} ids")
    found: dict[tuple[str, ...], None] = {}
    for text in ids:
        record, identity = read_global_id(context.graph, text)
        if record not in path.nodes:
            raise BadUserInput(f"to: ids of {' or '.join(node.name for node in path.nodes)} are wanted")
        end = path.record.ends[path.far_end] if path.far_end else None
        found[identity if end is None else end.identity_of(record, identity)] = None
    return EdgesTo(neighbours, owner.identity if owner else (), tuple(found))


# --- The fields of a connection -----------------------------------------------------------------------


async def resolve_edges(connection: Connection, info: Info, arguments: Mapping[str, Any]) -> list[Edge]:
    edges, _ = await connection.page()
    return edges


async def resolve_nodes(connection: Connection, info: Info, arguments: Mapping[str, Any]) -> list[Source]:
    """The nodes of the page; those that do not exist are left out where they are read."""
    edges, _ = await connection.page()
    nodes = [node for edge in edges if (node := edge.node) is not None]
    if not any(needs_item(info, node) for node in nodes):
        return nodes
    read = await asyncio.gather(*(_read_as_selected(connection.context, info, node) for node in nodes))
    return [node for node in read if node is not None]


async def _read_as_selected(context: RequestContext, info: Info, node: Source) -> Source | None:
    """The node, with its item where something is selected that its key does not tell."""
    return await read_source(context, node) if needs_item(info, node) else node


async def resolve_page_info(connection: Connection, info: Info, arguments: Mapping[str, Any]) -> PageInfo:
    _, page_info = await connection.page()
    return page_info


async def resolve_total(connection: Connection, info: Info, arguments: Mapping[str, Any]) -> int:
    return await connection.total()


async def resolve_node(edge: Edge, info: Info, arguments: Mapping[str, Any]) -> Source | None:
    """The edge's node; None where it is read and does not exist."""
    node = edge.node
    return None if node is None else await _read_as_selected(edge.connection.context, info, node)
