"""Connections: one list of one owner as a client requests it, and its page in Relay's form.

If the cursors cross (`after` is at or after `before`), the page is empty; that is not an error.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from types import MappingProxyType
from typing import Any, NamedTuple, TypeAlias, cast

from keygraph.access.grants import Decision, all_of
from keygraph.dynamo.conditions import And, Condition, paths_of
from keygraph.dynamo.items import Item
from keygraph.dynamo.store import Page, Query, Store
from keygraph.dynamo.table import Key
from keygraph.errors import BadUserInput
from keygraph.graph import Graph
from keygraph.lists.listing import ListForm, Located, NeighbourList, Place, form_of
from keygraph.lists.named_edges import edge_keys
from keygraph.lists.reading import Extent, Found
from keygraph.model.links import LinkName
from keygraph.model.paths import AccessPath
from keygraph.model.permissions import Permissions, Rule, Seen
from keygraph_resolvers.naming.global_ids import at_most, read_id_or_key
from keygraph_resolvers.read.access import forbidden
from keygraph_resolvers.read.cursors import ListCursors
from keygraph_resolvers.read.loaders import EdgesTo, PageOf
from keygraph_resolvers.read.objects import Object
from keygraph_resolvers.read.run import Limits, Run
from keygraph_resolvers.schema.inputs import (
    DEFAULT_PAGE_SIZE,
    SortDirection,
    conditions,
    narrowings,
    required_texts,
)

_CURSORS = frozenset({"startCursor", "endCursor"})
"""The fields of pageInfo that need the places of a page's ends."""


class Edge(Object):
    """An item of a list, as an object of its record type, and its place there."""

    __slots__ = ("connection", "listed")

    def __init__(self, connection: Connection, located: Located) -> None:
        item, self.identity, self.record = located
        self.item = item
        self.others = ()
        self.is_missing = False
        self.error = None
        self.found = {}
        self.connection = connection
        self.listed = item
        """The item as read in the list, which is a part of the item if the index has no more."""

    @property
    def place(self) -> Place:
        return self.connection.neighbours.place_of(self.listed)

    @property
    def cursor(self) -> str:
        return self.connection.cursor(self.place)


_EVERYTHING: Seen = MappingProxyType({})


class SeenItems(NamedTuple):
    """What the viewer sees of a list."""

    seen: Seen
    is_closed: bool
    """Whether it is nothing."""
    is_whole: bool
    """Whether it is everything."""


class Sight:
    """What the viewer sees of lists with the same arguments, and what is left to decide for one, by what it fixes."""

    def __init__(self, access: Permissions, of_all: Seen) -> None:
        """`of_all` are the decisions for the items of all these lists."""
        self.of_all = of_all
        self._access = access
        self._is_linked = any(access.links(path.record, decision) for path, decision in of_all.items())
        self._rules = {
            path: Rule(path, decision) for path, decision in of_all.items() if not isinstance(decision, bool)
        }
        self._found: dict[tuple[tuple[str | None, ...], ...], SeenItems] = {}
        """For most lists of an operation the same is left."""

    def of(self, neighbours: NeighbourList, owner: tuple[str, ...] | None) -> SeenItems:
        """Returns what the viewer sees of an owner's list."""
        parts = neighbours.parts
        texts = tuple(
            [
                rule.texts_of(dict((parts[path.record] if parts else neighbours).values))
                for path, rule in self._rules.items()
            ]
        )
        found = self._found.get(texts)
        if found is None:
            left = {
                path: rule.left(each) for (path, rule), each in zip(self._rules.items(), texts, strict=True)
            }
            if self._is_linked and owner is not None:
                # More is known about other items with each read.
                left = {
                    path: self._access.with_links_of_list(path, each, owner) for path, each in left.items()
                }
            found = _seen_items({**self.of_all, **left})
            if not self._is_linked:
                self._found[texts] = found
        return found

    def of_anyone(self) -> SeenItems:
        """Returns what the viewer may see of any owner's list."""
        told = {path: True for path, rule in self._rules.items() if rule.is_told}
        return _seen_items({**self.of_all, **told})


def _seen_items(seen: Seen) -> SeenItems:
    decisions = seen.values()
    is_closed, is_whole = (all(each is wanted for each in decisions) for wanted in (False, True))
    return SeenItems(seen, is_closed, is_whole)


class PageEnds(NamedTuple):
    """The place of a page. Its cursors are made when they are requested."""

    connection: Connection
    has_next_page: bool
    has_previous_page: bool
    start: Place | None
    end: Place | None

    @property
    def start_cursor(self) -> str | None:
        return None if self.start is None else self.connection.cursor(self.start)

    @property
    def end_cursor(self) -> str | None:
        return None if self.end is None else self.connection.cursor(self.end)


ShownPage: TypeAlias = "tuple[list[Edge], PageEnds]"
"""The edges of a page in the client's order, and what is known before and after them."""


class ListArguments:
    """A client's arguments of a list, and its selection: the same for all owners, and not part of a run."""

    is_read_apart = False
    """Whether its page is never part of what is read with its owner."""

    def __init__(
        self,
        run: Run,
        path: AccessPath,
        given: Mapping[str, Any],
        looks: frozenset[str],
    ) -> None:
        """`given` are the arguments by their GraphQL names, `looks` are the selected fields of pageInfo. Raises
        BadUserInput."""
        graph, limits = run.graph, run.limits
        self.path = path
        self.looks = looks
        self.wheres = conditions(graph, path, given, limits.where_terms)
        """The requested types, each by its path, with the condition on its items."""
        self.is_searched = any(where is not None for where in self.wheres.values())
        self.size, self.from_end = (1, False) if path.is_one else page_size(limits, given)
        descending = given.get("direction") is SortDirection.DESC
        self.after: str | None = given.get("after")
        self.before: str | None = given.get("before")
        self.to = _named(graph, path, given.get("to"), limits.max_ids)
        """The identities of the nodes to which edges are requested."""
        self.looks_ahead = ("hasPreviousPage" if self.from_end else "hasNextPage") in looks
        self.may_look_back = ("hasNextPage" if self.from_end else "hasPreviousPage") in looks
        self.extent = Extent(
            self.size,
            forward=self.from_end == descending,
            look_ahead=self.looks_ahead,
            budget=limits.read_budget,
            attributes=run.attributes.of_any(path.records),
        )
        """The part of the list that its page shows, as if no cursor were given."""
        self._said = required_texts(graph, path, given), narrowings(graph, path, given)
        self._form = form_of(graph, path, *self._said, self.wheres)
        self._used = {each: _restricted_fields(each, where) for each, where in self.wheres.items()}
        """The fields that the list is read, sorted or filtered by and that not everybody may read."""
        self.primed = run.looked_for.intersection(path.records) if path.tells_all else frozenset()
        """The types of its items that are whole and may be looked up by key too."""

    @property
    def has_cursor(self) -> bool:
        return self.after is not None or self.before is not None

    @property
    def begins_behind(self) -> bool:
        """Whether its page begins after a cursor."""
        return (self.before if self.from_end else self.after) is not None

    @property
    def skips(self) -> bool:
        """Whether something in its range may be before the cursor: shards before the cursor's shard skip items with its
        sort key."""
        return self.begins_behind and len(self.path.keys.shard_texts) > 1

    @property
    def may_end_among_equals(self) -> bool:
        """Whether its page ends at a cursor whose sort key other items may have too."""
        return (self.after if self.from_end else self.before) is not None and self.path.keys.index is not None

    def of(self, run: Run, owner: Object | None) -> Connection:
        """Returns the list of an owner (None: the root). Raises BadUserInput; reads nothing."""
        identity = owner.identity if owner else None
        at = run.now if self.path.expires else None
        neighbours = self._form.of(identity, at)
        extent = self.extent
        if self.after is not None or self.before is not None:
            places = {
                name: run.cursors.of(neighbours).place(name, text)
                for name, text in (("after", self.after), ("before", self.before))
                if text is not None
            }
            start, end = places.get("after"), places.get("before")
            if self.from_end:
                start, end = end, start
            extent = replace(extent, after=start, until=end)
        seen: Seen = _EVERYTHING
        is_closed, goes_on = False, self.goes_on
        if run.access is not None:
            seen, is_closed, is_whole = self._sight(run).of(neighbours, identity)
            if not is_closed and not is_whole:
                neighbours, goes_on = self._narrowed(run, seen).of(identity, at), True
        page = PageOf(neighbours, extent)
        return Connection(run, self, neighbours, identity or (), page, seen, is_closed, goes_on)

    def shown(self, run: Run, identity: tuple[str, ...] | None = None) -> NeighbourList | None:
        """Returns the list of an owner that may not be known, with placeholders; None if the viewer sees nothing of it.

        Raises BadUserInput, and Forbidden if they may not request the list.
        """
        shown = self._form.shown(identity)
        if run.access is None:
            return shown
        sight, is_anyone = self._sight(run), identity is None and self.path.owner is not None
        seen, is_closed, is_whole = sight.of_anyone() if is_anyone else sight.of(shown, identity)
        if is_closed or is_whole:
            return shown if is_whole else None
        return self._narrowed(run, seen).shown(identity)

    def seen(self, run: Run) -> Seen:
        """Returns which items of each type the viewer sees. Raises Forbidden if they may not request the lists."""
        return dict.fromkeys(self.wheres, True) if run.access is None else self._sight(run).of_all

    def _sight(self, run: Run) -> Sight:
        """Returns what the viewer sees of these lists. Raises as `seen` does."""
        found: Sight | None = run.told.get(self)
        if found is None:
            access = cast(Permissions, run.access)
            found = Sight(access, {each: self._seen_type(access, each) for each in self.wheres})
            run.told[self] = found
        return found

    def is_unseen(self, run: Run) -> bool:
        """Returns whether the viewer sees nothing of these lists. Raises as `seen` does."""
        return all(decision is False for decision in self.seen(run).values())

    def _seen_type(self, access: Permissions, path: AccessPath) -> Decision:
        record = path.record
        if access.decision(record) is False:
            return False  # nothing of the type is there, whatever is asked of it
        used = {name: access.decision(record, "read", name) for name in self._used[path]}
        for name, decision in used.items():
            if decision is False:
                raise forbidden(record, name)
        return all_of([access.decision(record), *used.values()])

    def _narrowed(self, run: Run, seen: Seen) -> ListForm:
        """Returns what is read of lists in which the viewer sees the items that meet these conditions."""
        key = self, *seen.values()
        found: ListForm | None = run.told.get(key)
        if found is None:
            wheres = {each: where for each, where in self.wheres.items() if seen[each] is not False}
            for each, where in wheres.items():
                decision = seen[each]
                if not isinstance(decision, bool):
                    wheres[each] = decision if where is None else And((where, decision))
            access, send = run.access, None
            if access is not None and any(access.links(each.record, seen[each]) for each in wheres):

                async def send(store: Store, query: Query) -> Page:
                    return await run.links.page(store, query, self.path, seen)

            found = run.told[key] = form_of(run.graph, self.path, *self._said, wheres, send)
        return found

    @cached_property
    def any_shown(self) -> NeighbourList:
        """The list of any owner and viewer, with placeholders."""
        return self._form.shown()

    @cached_property
    def is_key_lookup(self) -> bool:
        """Whether it reads items by their keys, for any owner."""
        if self.to is not None:
            return self.path.finds_by_node
        if self.has_cursor or not self.size:
            return False
        return self.any_shown.whole_keys is not None

    @cached_property
    def goes_on(self) -> bool:
        """Whether its page may take several requests, one after the other."""
        return (
            self.may_look_back
            or self.may_end_among_equals
            or self.skips
            or self.any_shown.looks_on
            or len(self.any_shown.reading.pieces) > 1
        )


@dataclass(slots=True, eq=False)
class Connection:
    """One list of one owner with its arguments."""

    run: Run
    arguments: ListArguments
    neighbours: NeighbourList
    owner: tuple[str, ...]
    """The identity of its owner."""
    request: PageOf
    """The part of the list that is read for its page."""
    seen: Seen
    """The condition for the viewer to see an item of each type; empty if there are no rules."""
    is_closed: bool
    """Whether the viewer sees nothing of it, so that nothing is read."""
    goes_on: bool
    """Whether its page may take several requests, one after the other."""
    _cursors: ListCursors | None = field(default=None, init=False)
    """Made when a cursor is requested."""

    @property
    def unknown(self) -> dict[Key, LinkName]:
        """The keys of other items that decide whether the viewer sees anything of it, and that were not looked up."""
        access = self.run.access
        found: dict[Key, LinkName] = {}
        for each, decision in self.seen.items() if access is not None else ():
            if access is not None and not isinstance(decision, bool):
                found |= access.unknown_of_list(each, decision, self.owner)
        return found

    def unknown_of(self, items: Sequence[Item]) -> dict[Key, LinkName]:
        """Returns the same for some of its items."""
        if self.neighbours.form.send is None:
            return {}
        return self.run.links.unknown(self.arguments.path, items, self.seen)

    def given(self, items: Sequence[Item]) -> Sequence[Item]:
        """Returns the items with their links' values."""
        if self.neighbours.form.send is None:
            return items
        return self.run.links.given(self.arguments.path, items, self.seen)

    @property
    def keys(self) -> list[Key]:
        """The table keys of all that it can show, if it is read by them."""
        if self.arguments.to is not None:
            return edge_keys(self.neighbours, self.owner, self.arguments.to)
        return self.neighbours.whole_keys or []

    @property
    def edges_to(self) -> list[EdgesTo]:
        """The reads of a list whose nodes the client names."""
        return [EdgesTo(self.neighbours, self.owner, node) for node in self.arguments.to or ()]

    # --- The page ---------------------------------------------------------------------------------------

    def cursor(self, place: Place) -> str:
        if self._cursors is None:
            self._cursors = self.run.cursors.of(self.neighbours)
        return self._cursors.cursor(place)

    def page_of(self, found: Found) -> ShownPage | PageOf:
        """Returns the page of a part that was read, which may be a longer one; or another part to read first."""
        found = self._cut(found)
        behind = self._behind(found)
        return behind if isinstance(behind, PageOf) else self.page(found, is_behind=behind)

    def page_behind(self, found: Found, answer: Found) -> ShownPage:
        """Returns the page after the part requested by `page_of` was read."""
        found = self._cut(found)
        return self.page(found, is_behind=self._stands_behind(answer))

    def _cut(self, found: Found) -> Found:
        size = self.arguments.size
        return found if len(found.items) <= size else Found(found.items[:size], True, None)

    def _behind(self, found: Found) -> PageOf | bool:
        """Returns whether the list has anything on the side from which the page was read, or a part of it to read that
        shows this. It is False if that is not requested, or if the page begins at the list's end."""
        extent = self.request.extent
        if not self.arguments.may_look_back or extent.after is None:
            return False
        if self.arguments.size == 0 or (not found.items and found.resume is None and self._may_be_crossed()):
            if all(isinstance(decision, bool) for decision in self.seen.values()):
                return True  # the cursor's own item
            # The viewer need not see that item: the first of the list decides.
            return PageOf(
                self.neighbours,
                Extent(1, forward=extent.forward, budget=extent.budget, attributes=frozenset()),
            )
        first = self.neighbours.place_of(found.items[0].item) if found.items else None
        nearest = Extent(
            0,
            forward=not extent.forward,
            after=first or found.resume or extent.until,
            look_ahead=True,
            budget=extent.budget,
            attributes=frozenset(),
        )
        return PageOf(self.neighbours, nearest)

    def _stands_behind(self, found: Found) -> bool:
        """Returns whether the part requested by `page_of` has anything on the side from which the page was read."""
        start = self.request.extent.after
        if start is None or not found.items or self.arguments.size:
            # The answer may be a longer part, which another list of the operation reads from there.
            return found.more or bool(found.items)
        order = self.neighbours.order_of
        first, here = order(self.neighbours.place_of(found.items[0].item)), order(start)
        return first <= here if self.request.extent.forward else first >= here

    def _may_be_crossed(self) -> bool:
        """Returns whether there are two cursors of which the first may be at or after the second."""
        start, end = self.request.extent.after, self.request.extent.until
        if start is None or end is None:
            return False
        here, there = self.neighbours.order_of(start), self.neighbours.order_of(end)
        return here >= there if self.request.extent.forward else here <= there

    def page(self, found: Found, *, is_behind: bool = False) -> ShownPage:
        """Returns the edges in the client's order, and what is known before and after them."""
        edges = [Edge(self, located) for located in found.items]
        arguments = self.arguments
        if arguments.primed:
            # A whole item is not read again.
            prime, key_of = self.run.nodes.prime, self.run.graph.table.key_of
            for edge in edges:
                if edge.record in arguments.primed:
                    prime(key_of(edge.listed), edge.listed)
        first = last = None
        if arguments.looks & _CURSORS:
            first = edges[0].place if edges else None
            last = found.resume or (edges[-1].place if edges else None)
        if arguments.from_end:
            edges.reverse()
            return edges, PageEnds(self, is_behind, found.more, last, first)
        return edges, PageEnds(self, found.more, is_behind, first, last)

    def page_among(self, found: Sequence[Located], order: Callable[[Place], Any]) -> ShownPage:
        """Returns the page of a list of which all items were found, in that order along the sort key."""
        size, extent = self.arguments.size, self.request.extent
        found = sorted(
            found, key=lambda each: order(self.neighbours.place_of(each.item)), reverse=not extent.forward
        )
        here = [order(self.neighbours.place_of(each.item)) for each in found]
        start, end = 0, len(found)
        if extent.after is not None:
            after = order(extent.after)
            start = sum(each <= after if extent.forward else each >= after for each in here)
        if extent.until is not None:
            until = order(extent.until)
            end = sum(each < until if extent.forward else each > until for each in here)
        page = found[start:end][:size]
        return self.page(Found([*page], start + size < end, None), is_behind=start > 0)


def _restricted_fields(path: AccessPath, where: Condition | None) -> tuple[str, ...]:
    """Returns the fields that a list is read, sorted or filtered by and that not everybody may read."""
    record = path.record
    if record.access is None:
        return ()
    attributes = {*paths_of(where)} if where is not None else set()
    used = {slot.path[0] for slot in path.keys.slots if not slot.is_shard}
    used |= {name for name, each in record.fields.items() if each.attribute in attributes}
    used |= {name for name, end in record.ends.items() if attributes & {*end.attributes.values()}}
    return tuple(sorted(filter(record.access.is_restricted, used)))


def page_size(limits: Limits, given: Mapping[str, Any]) -> tuple[int, bool]:
    """Returns how many edges are requested, and whether from the end."""
    first, last = given.get("first"), given.get("last")
    if first is not None and last is not None:
        raise BadUserInput("use first or last, not both")
    name, size = ("last", last) if last is not None else ("first", first)
    most = limits.max_page_size
    size = min(DEFAULT_PAGE_SIZE, most) if size is None else size
    if not 0 <= size <= most:
        raise BadUserInput(f"{name} must be between 0 and {most:,}")
    return size, name == "last"


def _named(
    graph: Graph, path: AccessPath, ids: Sequence[str] | None, most: int
) -> tuple[tuple[str, ...], ...] | None:
    """Returns the identities of the named nodes, without duplicates."""
    if ids is None:
        return None
    found: dict[tuple[str, ...], None] = {}
    for text in at_most("to", ids, most):
        record, identity = read_id_or_key(graph, "to", path.nodes, text)
        end = path.record.ends[path.far_end] if path.far_end else None
        found[identity if end is None else end.identity_of(record, identity)] = None
    return tuple(found)
