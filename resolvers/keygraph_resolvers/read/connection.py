"""Connections: one list of one owner as a client requests it, and its page in Relay's form.

If the cursors cross (`after` is at or after `before`), the page is empty; that is not an error.
"""

from __future__ import annotations

from collections.abc import Callable, Container, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from types import MappingProxyType
from typing import Any, NamedTuple, TypeAlias, cast
from weakref import ref

from keygraph.access.grants import Decision, all_of
from keygraph.dynamo.conditions import And, Condition, paths_of
from keygraph.dynamo.store import Page, Query, Store
from keygraph.dynamo.table import Key
from keygraph.errors import BadUserInput
from keygraph.graph import Graph
from keygraph.limits import Limits
from keygraph.lists.extent import Extent, Located, Place
from keygraph.lists.query import ListForm, ListQuery
from keygraph.lists.ranges import KeyArguments
from keygraph.lists.reading import Found
from keygraph.model.paths import AccessPath
from keygraph.model.permissions import ListConditions, ListOwner, Permissions, names_by_order
from keygraph_resolvers.naming.global_ids import at_most, read_id_or_key
from keygraph_resolvers.read.access import VisibleLists, forbidden
from keygraph_resolvers.read.cursors import Cursors, Seal
from keygraph_resolvers.read.objects import ListObject, Object
from keygraph_resolvers.read.run import Run
from keygraph_resolvers.schema.inputs import (
    DEFAULT_PAGE_SIZE,
    SortDirection,
    conditions,
    narrowings,
    required_texts,
)

_CURSORS = frozenset({"startCursor", "endCursor"})
"""The fields of pageInfo that need the places of a page's ends."""


class ListCursors:
    """Makes the cursors of a list. Its edges have it, and not the connection: that has the edges, and nobody would free
    what references itself."""

    __slots__ = ("_cursors", "_seal", "query")

    def __init__(self, cursors: Cursors, query: ListQuery) -> None:
        self._cursors = cursors
        self._seal: Seal | None = None
        self.query = query

    def of(self, place: Place, *, is_hidden: bool = False) -> str:
        if self._seal is None:
            self._seal = self._cursors.of(self.query)
        return self._seal.cursor(self.query, place, is_hidden=is_hidden)


class Edge(Object):
    """An item of a list, as an object of its record type, and its place there."""

    __slots__ = ("cursors", "listed")

    def __init__(self, cursors: ListCursors, located: Located) -> None:
        item, self.identity, self.record = located
        self.item = item
        self.others = ()
        self.is_missing = False
        self.error = None
        self.found = {}
        self.cursors = cursors
        self.listed = item
        """The item as read in the list, which is a part of the item if the index has no more."""

    @property
    def place(self) -> Place:
        return self.cursors.query.place_of(self.listed)

    @property
    def cursor(self) -> str:
        return self.cursors.of(self.place)


_EVERYTHING: ListConditions = MappingProxyType({})


class PageEnds(NamedTuple):
    """The place of a page. Its cursors are made when they are requested."""

    cursors: ListCursors
    has_next_page: bool
    has_previous_page: bool
    start: Place | None
    end: Place | None
    resume: Place | None
    """The one of them at which reading has stopped: the viewer need not see the item there."""

    @property
    def start_cursor(self) -> str | None:
        return self._cursor(self.start)

    @property
    def end_cursor(self) -> str | None:
        return self._cursor(self.end)

    def _cursor(self, place: Place | None) -> str | None:
        return None if place is None else self.cursors.of(place, is_hidden=place is self.resume)


ConnectionPage: TypeAlias = "tuple[list[Edge], PageEnds]"
"""The edges of a page in the client's order, and what is known before and after them."""


class ListArguments:
    """A client's arguments of a list, and its selection: the same for all owners, and not part of a run."""

    is_read_alone = False
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
        self.wheres = conditions(graph, path, given, limits.max_where_terms)
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
        self._keys = KeyArguments(required_texts(graph, path, given), narrowings(graph, path, given))
        self._form = ListForm(graph, path, self._keys, self.wheres, self.extent)
        self._used = {
            each: _restricted_fields(each, where, self._keys.ranged) for each, where in self.wheres.items()
        }
        """The fields that the list is read, sorted or filtered by and that not everybody may read."""
        self.primed = (
            run.looked_for.intersection(path.records) if path.keys.reads_whole_items else frozenset()
        )
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

    def of(self, run: Run, owner: Object) -> Connection:
        """Returns the list of an owner, which may be the root. Raises BadUserInput; reads nothing."""
        identity = None if self.path.owner is None else owner.identity
        at = run.time.now if self.path.expires else None
        query = self._form.of(identity, at)
        extent = self.extent
        if self.after is not None or self.before is not None:
            places = {
                name: run.cursors.of(query).place(query, name, text)
                for name, text in (("after", self.after), ("before", self.before))
                if text is not None
            }
            start, end = places.get("after"), places.get("before")
            if self.from_end:
                start, end = end, start
            extent = replace(extent, after=start, until=end)
        conditions = _EVERYTHING
        is_closed, goes_on = False, self.goes_on
        if run.access is not None:
            conditions, is_closed, is_whole = self._visible(run).of(query, identity)
            if not is_closed and not is_whole:
                query, goes_on = self._narrowed(run, conditions).of(identity, at), True
        if extent is not self.extent:
            query = query.part(extent)
        return Connection(run, self, query, owner, conditions, is_closed, goes_on)

    def described(self, run: Run, identity: tuple[str, ...] | None = None) -> ListQuery | None:
        """Returns the list of an owner that may not be known, with placeholders; None if the viewer sees nothing of it.

        Raises BadUserInput, and Forbidden if they may not request the list.
        """
        query = self._form.described(identity)
        if run.access is None:
            return query
        visible, is_anyone = self._visible(run), identity is None and self.path.owner is not None
        conditions, is_closed, is_whole = visible.of_anyone() if is_anyone else visible.of(query, identity)
        if is_closed or is_whole:
            return query if is_whole else None
        return self._narrowed(run, conditions).described(identity)

    def conditions(self, run: Run) -> ListConditions:
        """Returns which items of each type the viewer sees. Raises Forbidden if they may not request the lists."""
        return dict.fromkeys(self.wheres, True) if run.access is None else self._visible(run).conditions

    def _visible(self, run: Run) -> VisibleLists:
        """Returns what the viewer sees of these lists. Raises as `conditions` does."""
        found: VisibleLists | None = run.cached.get(self)
        if found is None:
            access = cast(Permissions, run.access)
            found = VisibleLists(access, {each: self._condition(access, each) for each in self.wheres})
            run.cached[self] = found
        return found

    def is_hidden(self, run: Run) -> bool:
        """Returns whether the viewer sees nothing of these lists. Raises as `conditions` does."""
        return all(decision is False for decision in self.conditions(run).values())

    def _condition(self, access: Permissions, path: AccessPath) -> Decision:
        record = path.record
        if access.decision(record) is False:
            return False  # nothing of the type is there, whatever is asked of it
        used = {name: access.decision(record, "read", name) for name in self._used[path]}
        for name, decision in used.items():
            if decision is False:
                raise forbidden(record, name)
        return all_of([access.decision(record), *used.values()])

    def _narrowed(self, run: Run, conditions: ListConditions) -> ListForm:
        """Returns what is read of lists in which the viewer sees the items that meet these conditions."""
        key = self, *conditions.values()
        found: ListForm | None = run.cached.get(key)
        if found is None:
            wheres = {each: where for each, where in self.wheres.items() if conditions[each] is not False}
            for each, where in wheres.items():
                decision = conditions[each]
                if not isinstance(decision, bool):
                    wheres[each] = decision if where is None else And((where, decision))
            access, send = run.access, None
            if access is not None and any(access.links(each.record, conditions[each]) for each in wheres):
                reads = ref(run)  # the run keeps this

                async def send(store: Store, query: Query) -> Page:
                    return await cast("Run", reads()).links.page(store, query, self.path, conditions)

            found = run.cached[key] = ListForm(run.graph, self.path, self._keys, wheres, self.extent, send)
        return found

    @cached_property
    def any_described(self) -> ListQuery:
        """The list of any owner and viewer, with placeholders."""
        return self._form.described()

    @cached_property
    def is_key_lookup(self) -> bool:
        """Whether it reads items by their keys, for any owner."""
        if self.to is not None:
            return self.path.finds_by_node
        if self.has_cursor or not self.size:
            return False
        return self.any_described.whole_keys is not None

    @cached_property
    def goes_on(self) -> bool:
        """Whether its page may take several requests, one after the other."""
        return (
            self.may_look_back
            or self.may_end_among_equals
            or self.skips
            or self.any_described.looks_on
            or self.any_described.form.leaves_some
            or len(self.any_described.reading.pieces) > 1
        )


@dataclass(slots=True, eq=False)
class Connection:
    """One list of one owner with its arguments."""

    run: Run
    arguments: ListArguments
    query: ListQuery
    """The part of the list that is read for its page."""
    owner: Object
    conditions: ListConditions
    """The condition for the viewer to see an item of each type; empty if there are no rules."""
    is_closed: bool
    """Whether the viewer sees nothing of it, so that nothing is read."""
    goes_on: bool
    """Whether its page may take several requests, one after the other."""
    answer: ListObject | None = field(default=None, init=False)
    """What is found of it; None for an only neighbor, which is kept on the owner."""
    _cursors: ListCursors | None = field(default=None, init=False)

    @property
    def unknown(self) -> dict[Key, None]:
        """The keys of other items that decide whether the viewer sees anything of it, and that were not looked up."""
        found: dict[Key, None] = {}
        for path, decision in self.conditions.items():
            access = cast(Permissions, self.run.access)
            found |= access.unknown_keys(ListOwner(path, self.query.owner or ()), decision)
        return found

    # --- The page ---------------------------------------------------------------------------------------

    @property
    def cursors(self) -> ListCursors:
        if self._cursors is None:
            self._cursors = ListCursors(self.run.cursors, self.query)
        return self._cursors

    def part_behind(self, found: Found) -> ListQuery | bool:
        """Returns whether the list has anything on the side from which the page was read, or a part of it to read that
        shows this. It is False if the page begins at the list's end."""
        extent = self.query.extent
        if extent.after is None:
            return False
        if self.arguments.size == 0 or (not found.items and found.resume is None and self._may_be_crossed()):
            if all(isinstance(decision, bool) for decision in self.conditions.values()):
                return True  # the cursor's own item
            # The viewer need not see that item: the first of the list decides.
            return self.query.part(
                Extent(1, forward=extent.forward, budget=extent.budget, attributes=frozenset())
            )
        first = self.query.place_of(found.items[0].item) if found.items else None
        nearest = Extent(
            0,
            forward=not extent.forward,
            after=first or found.resume or extent.until,
            look_ahead=True,
            budget=extent.budget,
            attributes=frozenset(),
        )
        return self.query.part(nearest)

    def is_behind(self, found: Found) -> bool:
        """Returns whether the part that `part_behind` names has anything on the side from which the page was read."""
        start = self.query.extent.after
        if start is None or not found.items or self.arguments.size:
            # The answer may be a longer part, which another list of the operation reads from there.
            return found.more or bool(found.items)
        order = self.query.order_of
        first, here = order(self.query.place_of(found.items[0].item)), order(start)
        return first <= here if self.query.extent.forward else first >= here

    def _may_be_crossed(self) -> bool:
        """Returns whether there are two cursors of which the first may be at or after the second."""
        start, end = self.query.extent.after, self.query.extent.until
        if start is None or end is None:
            return False
        here, there = self.query.order_of(start), self.query.order_of(end)
        return here >= there if self.query.extent.forward else here <= there

    def page(self, found: Found, *, is_behind: bool) -> ConnectionPage:
        """Returns the edges of a part that was read, which may be a longer one, in the client's order, and what is known
        before and after them."""
        arguments = self.arguments
        if len(found.items) > arguments.size:
            found = Found(found.items[: arguments.size], True, None)
        cursors = self.cursors
        edges = [Edge(cursors, located) for located in found.items]
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
            return edges, PageEnds(cursors, is_behind, found.more, last, first, found.resume)
        return edges, PageEnds(cursors, found.more, is_behind, first, last, found.resume)

    def page_among(self, found: Sequence[Located], order: Callable[[Place], Any]) -> ConnectionPage:
        """Returns the page of a list of which all items were found, in that order along the sort key."""
        extent = self.query.extent
        found = sorted(
            found, key=lambda each: order(self.query.place_of(each.item)), reverse=not extent.forward
        )
        here = [order(self.query.place_of(each.item)) for each in found]
        start, end = 0, len(found)
        if extent.after is not None:
            after = order(extent.after)
            start = sum(each <= after if extent.forward else each >= after for each in here)
        if extent.until is not None:
            until = order(extent.until)
            end = sum(each < until if extent.forward else each > until for each in here)
        return self.page(Found(found[start:end], False, None), is_behind=start > 0)


def _restricted_fields(path: AccessPath, where: Condition | None, ranged: Container[str]) -> tuple[str, ...]:
    """Returns the fields that a list is read, sorted or filtered by and that not everybody may read. `ranged` are the
    names of the arguments that are given."""
    record = path.record
    if record.access is None:
        return ()
    attributes = {*paths_of(where)} if where is not None else set()
    used = names_by_order(path) | {argument.slot.path[0] for argument in path.required}
    used |= {argument.slot.path[0] for argument in path.ranged if argument.name in ranged}
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
    end = path.record.ends[path.far_end] if path.far_end else None
    named = [read_id_or_key(graph, "to", path.nodes, text) for text in at_most("to", ids, most)]
    return tuple(
        dict.fromkeys(
            identity if end is None else end.identity_of(record, identity) for record, identity in named
        )
    )
