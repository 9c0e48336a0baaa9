"""Connections: a page of a list, in the shape that Relay gives it.

A connection is resolved without reading anything; its fields ask for the page, or for the count, and equal requests
are one. Between two cursors that are crossed, `after` at or behind `before`, there is nothing: an empty page, no error.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import Enum
from functools import partial
from typing import Any

from keygraph.dynamo.conditions import Condition
from keygraph.dynamo.items import Item
from keygraph.dynamo.table import Key
from keygraph.errors import BadUserInput
from keygraph.lists.listing import ListForm, Located, NeighbourList, Place
from keygraph.lists.named_edges import edge_keys
from keygraph.lists.ranges import Narrowing
from keygraph.lists.reading import Extent, Found
from keygraph.model.paths import AccessPath
from keygraph_resolvers.plan.plan import NeighbourNeeds
from keygraph_resolvers.read.context import RequestContext
from keygraph_resolvers.read.cursors import cursor, read_cursor
from keygraph_resolvers.read.loaders import EdgesTo, PageOf
from keygraph_resolvers.read.meter import ListKind
from keygraph_resolvers.read.sources import Source
from keygraph_resolvers.schema.global_ids import read_global_id
from keygraph_resolvers.schema.inputs import condition, narrowings, required_texts

DEFAULT_PAGE_SIZE = 20
_CURSORS = frozenset({"startCursor", "endCursor"})
"""What of pageInfo asks for the places of a page's ends."""
MOST_IDS = 100
"""How many nodes `to` may name."""


class SortDirection(Enum):
    """Along the sort key, or against it."""

    ASC = "ASC"
    DESC = "DESC"


class Edge(Source):
    """An item of a list, as a record type's, and where it stands there."""

    __slots__ = ("connection", "error", "listed")

    def __init__(self, connection: Connection, item: Item, identity: tuple[str, ...]) -> None:
        self.record = connection.neighbours.path.record
        self.identity = identity
        self.item = item
        self.others = ()
        self.connection = connection
        self.listed = item
        """What was read in the list, which is a part of the item where the index has no more."""
        self.error: Exception | None = None
        """What reading the whole item gave instead."""

    @property
    def place(self) -> Place:
        return self.connection.neighbours.place_of(self.listed)

    @property
    def cursor(self) -> str:
        return cursor(self.connection.context.secret, self.connection.neighbours, self.place)


@dataclass(frozen=True, slots=True)
class PageInfo:
    """Where a page stands. Its cursors are made when somebody asks for them."""

    connection: Connection
    has_next_page: bool
    has_previous_page: bool
    start: Place | None
    end: Place | None

    @property
    def start_cursor(self) -> str | None:
        return self._cursor(self.start)

    @property
    def end_cursor(self) -> str | None:
        return self._cursor(self.end)

    def _cursor(self, place: Place | None) -> str | None:
        if place is None:
            return None
        return cursor(self.connection.context.secret, self.connection.neighbours, place)


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
    request: PageOf
    """The part of the list that is read for the page: a longer one where several pages are asked for at once."""

    @property
    def is_one_read(self) -> bool:
        """Whether the page is what one read gives, whatever that is."""
        return self.to is None and not self._looks_back

    @property
    def _looks_back(self) -> bool:
        """Whether it is asked for what stands on the side from which the page is read, and that is not the list's end."""
        window = self.window
        looks_back = ("hasNextPage" if window.from_end else "hasPreviousPage") in self.looks
        return looks_back and window.start is not None

    async def page(self) -> tuple[list[Edge], PageInfo]:
        """The edges in the client's order, and what is known around them."""
        if self.to is not None:
            return self.page_among(await self.context.neighbours.edges_to(self.to))
        found = self._own_part(await self.context.neighbours.page(self.request))
        return self._shown(found, self._looks_back and await self._is_any_behind(found))

    def page_of(self, found: Found) -> tuple[list[Edge], PageInfo]:
        """The page of what was read, where it is one read."""
        return self._shown(self._own_part(found))

    def _own_part(self, found: Found) -> Found:
        """What the page has of a longer part that was read."""
        if len(found.items) <= self.window.size:
            return found
        return Found(found.items[: self.window.size], True, None)

    async def _is_any_behind(self, found: Found) -> bool:
        """Whether the list has anything on the side from which the page was read."""
        if self.window.size == 0 or self._is_crossed():
            return True  # the cursor's own item
        first = self.neighbours.place_of(found.items[0].item) if found.items else None
        nearest = first or found.resume or self.window.end
        extent = Extent(
            0,
            forward=not self.window.forward,
            after=nearest,
            look_ahead=True,
            budget=self.context.limits.read_budget,
            attributes=frozenset(),
        )
        return (await self.context.neighbours.page(PageOf(self.neighbours, extent))).more

    def _is_crossed(self) -> bool:
        """Whether nothing can lie between the two cursors."""
        start, end = self.window.start, self.window.end
        if start is None or end is None:
            return False
        here, there = self.neighbours.order_of(start), self.neighbours.order_of(end)
        return start == end or (here > there if self.window.forward else here < there)

    def _shown(self, found: Found, is_behind: bool = False) -> tuple[list[Edge], PageInfo]:
        """The page that was found."""
        edges = [Edge(self, item, identity) for item, identity in found.items]
        path, context = self.neighbours.path, self.context
        if path.tells_all and path.record in context.looked_for:
            # A whole node is not read again.
            for edge in edges:
                context.nodes.prime(context.graph.table.key_of(edge.listed), edge.listed)
        first = last = None
        if self.looks & _CURSORS:
            first = edges[0].place if edges else None
            last = found.resume or (edges[-1].place if edges else None)
        if self.window.from_end:
            edges.reverse()
            return edges, PageInfo(self, is_behind, found.more, last, first)
        return edges, PageInfo(self, found.more, is_behind, first, last)

    @property
    def edge_keys(self) -> list[Key] | None:
        """The table keys of the edges that `to` names; None where these are not got by key, or where a filter needs
        more of them than the operation reads."""
        neighbours = self.neighbours
        if self.to is None or not neighbours.path.finds_by_node:
            return None
        is_filtered = neighbours.filter is not None or neighbours.condition is not None
        if is_filtered or not self.context.is_needed(neighbours.path.record):
            return None
        return edge_keys(neighbours, self.to.owner, self.to.nodes)

    def page_among(self, found: list[Located]) -> tuple[list[Edge], PageInfo]:
        """The page of the edges that `to` names, which all were found."""
        window = self.window
        found = found if window.forward else [*reversed(found)]
        places = [self.neighbours.place_of(each.item) for each in found]
        start = _index_behind(self.neighbours, places, window.start, window.forward)
        end = _index_before(self.neighbours, places, window.end, window.forward)
        page = found[start:end][: window.size]
        more = start + window.size < end
        return self._shown(Found(page, more, None), start > 0)

    async def total(self) -> int | None:
        """How many edges the list has, whatever the page; None where counting them costs more than it may."""
        if self.to is not None:
            return len(await self.context.neighbours.edges_to(self.to))
        return await self.context.neighbours.count(self.neighbours, self.context.limits.count_pages)


def far_source(path: AccessPath, source: Source) -> Source | None:
    """The node at the path's far end, or the source itself where the path ends there."""
    if path.far_end is None:
        return source
    return source.end(path.record.ends[path.far_end])


def far_reader(path: AccessPath) -> Callable[[Source], Source | None]:
    """What gives the node at the far end of the path's edges, as `far_source` does."""
    end = None if path.far_end is None else path.record.ends[path.far_end]
    if end is None or end.text is not None or end.name not in path.record.key_fields:
        return partial(far_source, path)
    read, (first, *more) = path.record.end_reader(end), end.members
    others = tuple(more)

    def far_of(source: Source) -> Source | None:
        identity = read(source.identity)
        return None if identity is None else Source(first, identity, None, others)

    return far_of


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


def share_reads(connections: Sequence[Connection]) -> None:
    """Sees to it that of pages of one list, which begin at one place, only the longest is read."""
    alike: dict[Hashable, list[Connection]] = {}
    for each in connections:
        window = each.window
        if each.to is None:
            alike.setdefault((each.neighbours, window.forward, window.start, window.end), []).append(each)
    for group in alike.values():
        extents = [each.request.extent for each in group]
        longest = replace(
            max(extents, key=lambda extent: extent.count),
            look_ahead=any(extent.look_ahead for extent in extents),
        )
        for each in group if len(set(extents)) > 1 else ():
            each.request = PageOf(each.neighbours, longest)


# --- From arguments -----------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class ListArguments:
    """What a client says of a list, which is the same for all its owners."""

    required: Mapping[str, str | None]
    ranged: Mapping[str, Narrowing]
    where: Condition | None
    size: int
    from_end: bool
    descending: bool
    after: str | None
    before: str | None
    to: tuple[tuple[str, ...], ...] | None
    """The identities of the nodes to which edges are asked for."""


def list_arguments(context: RequestContext, path: AccessPath, given: Mapping[str, Any]) -> ListArguments:
    """The arguments of a list or of an only neighbour. Raises BadUserInput."""
    required = required_texts(context.graph, path, given)
    ranged = narrowings(context.graph, path, given)
    where = condition(context.graph, path, given.get("where"))
    if path.is_one:
        return ListArguments(required, ranged, where, 1, False, False, None, None, None)
    size, from_end = _size(context, given)
    return ListArguments(
        required,
        ranged,
        where,
        size,
        from_end,
        given.get("direction") is SortDirection.DESC,
        given.get("after"),
        given.get("before"),
        _named(context, path, given.get("to")),
    )


def list_kind(path: AccessPath, said: ListArguments) -> ListKind:
    """The lists that this one is like."""
    return ListKind(path, bool(said.ranged), said.where is not None)


class AskedList:
    """A list without its owner: what its arguments and what is selected of it say. Nothing of it belongs to a run."""

    def __init__(self, context: RequestContext, needs: NeighbourNeeds, given: Mapping[str, Any]) -> None:
        """`given` are its arguments, `context` that of any run of the plan. Raises BadUserInput."""
        self.said = list_arguments(context, needs.path, given)
        self.kind = list_kind(needs.path, self.said)
        self.needs = needs
        said = self.said
        self._form = ListForm(context.graph, needs.path, said.required, said.ranged, said.where)
        self._window = _Window(said.size, said.from_end, None, None, said.descending)
        self._extent = page_extent(context, needs, said)

    def of(self, context: RequestContext, owner: Source | None) -> Connection:
        """The list of an owner (None: the root) in a run. Raises BadUserInput; reads nothing."""
        said, window, extent = self.said, self._window, self._extent
        identity = owner.identity if owner else None
        neighbours = self._form.of(identity)
        if said.after is not None or said.before is not None:
            places = {
                name: read_cursor(context.secret, neighbours, name, text)
                for name, text in (("after", said.after), ("before", said.before))
                if text is not None
            }
            window = replace(window, after=places.get("after"), before=places.get("before"))
            extent = replace(extent, after=window.start, until=window.end)
        to = None if said.to is None else EdgesTo(neighbours, identity or (), said.to)
        return Connection(context, neighbours, window, to, self.needs.looks, PageOf(neighbours, extent))


def page_extent(context: RequestContext, needs: NeighbourNeeds, said: ListArguments) -> Extent:
    """The part of a list that its page shows, as if no cursor were given."""
    return Extent(
        said.size,
        forward=said.from_end == said.descending,
        look_ahead=("hasPreviousPage" if said.from_end else "hasNextPage") in needs.looks,
        budget=context.limits.read_budget,
        attributes=context.attributes_of(needs.path.record),
    )


def _size(context: RequestContext, given: Mapping[str, Any]) -> tuple[int, bool]:
    """How many edges are asked for, and whether from the end."""
    first, last = given.get("first"), given.get("last")
    if first is not None and last is not None:
        raise BadUserInput("say first or last, not both")
    name, size = ("last", last) if last is not None else ("first", first)
    most = context.limits.max_page_size
    size = min(DEFAULT_PAGE_SIZE, most) if size is None else size
    if not 0 <= size <= most:
        raise BadUserInput(f"{name}: from 0 to {most}")
    return size, name == "last"


def _named(
    context: RequestContext, path: AccessPath, ids: Sequence[str] | None
) -> tuple[tuple[str, ...], ...] | None:
    """The identities of the named nodes, each once."""
    if ids is None:
        return None
    if len(ids) > MOST_IDS:
        raise BadUserInput(f"to: at most {MOST_IDS} ids")
    found: dict[tuple[str, ...], None] = {}
    for text in ids:
        record, identity = read_global_id(context.graph, text)
        if record not in path.nodes:
            raise BadUserInput(f"to: ids of {' or '.join(node.name for node in path.nodes)} are wanted")
        end = path.record.ends[path.far_end] if path.far_end else None
        found[identity if end is None else end.identity_of(record, identity)] = None
    return tuple(found)
