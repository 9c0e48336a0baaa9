"""The lists of one run: begun with their arguments, read as early as may be, each page once.

What goes on behind the edges of a page is not decided here: it is told to whoever runs the plan.
"""

from __future__ import annotations

from collections.abc import Callable, Coroutine, Mapping, Sequence
from functools import partial
from typing import Any, cast

from keygraph.dynamo.table import Key
from keygraph.lists.named_edges import in_list
from keygraph_resolvers.plan.arguments import Arguments
from keygraph_resolvers.plan.field_plans import FieldPlan
from keygraph_resolvers.plan.plan import NeighbourNeeds, neighbour_needs
from keygraph_resolvers.read.connection import (
    AskedList,
    Connection,
    Edge,
    PageInfo,
    share_reads,
)
from keygraph_resolvers.read.context import RequestContext
from keygraph_resolvers.read.items_by_key import ItemsByKey, Wanted
from keygraph_resolvers.read.meter import ORIGIN, Origin
from keygraph_resolvers.read.sources import Source
from keygraph_resolvers.read.visits import BegunList, ListVisit, Visit, place_below
from keygraph_resolvers.read.work import Work


class ListReads:
    """The lists of one run of a plan."""

    def __init__(
        self,
        context: RequestContext,
        arguments: Arguments,
        items: ItemsByKey,
        work: Work,
        lists_of_plan: dict[FieldPlan, AskedList],
        spread: Callable[[BegunList, list[Edge], int], None],
    ) -> None:
        """`lists_of_plan` are those that are the same in every run; `spread` goes on with the edges of a page, in a
        round trip."""
        self._context = context
        self._arguments = arguments
        self._items = items
        self._work = work
        self._spread = spread
        self._lists_of_plan = lists_of_plan
        self._lists: dict[FieldPlan, AskedList | Exception] = {}

    def begin_all(
        self, lists: Sequence[FieldPlan], visits: Sequence[Visit], place: str
    ) -> dict[Visit, list[BegunList]]:
        """The lists of each object, of which nothing was read; pages of one list are read as one."""
        found: dict[Visit, list[BegunList]] = {}
        for visit in visits:
            all_begun = [self._begin_list(each, visit, visit.source, place) for each in lists]
            found[visit] = [begun for begun in all_begun if begun is not None]
            if len(found[visit]) > 1:
                share_reads([begun.connection for begun in found[visit] if begun.needs.has_page])
        return found

    def read_all(self, lists: Mapping[Visit, Sequence[BegunList]], round_trip: int) -> None:
        for all_begun in lists.values():
            for begun in all_begun:
                self._read_list(begun, round_trip)

    def _begin_list(
        self, selected: FieldPlan, visit: Visit, owner: Source | None, place: str
    ) -> BegunList | None:
        """The list of an owner, of which nothing was read; None where its arguments cannot be used."""
        needs = neighbour_needs(selected)
        try:
            asked = self._asked(selected, needs)
            connection = asked.of(self._context, owner)
        except Exception as error:
            visit.found[selected] = error
            return None
        found = None if needs.path.is_one else ListVisit()
        visit.found[selected] = found
        return BegunList(selected, needs, connection, visit, found, place_below(place, selected), asked.kind)

    def _read_list(self, begun: BegunList, round_trip: int) -> None:
        """Reads the page of a list, and counts it, each where it is asked for."""
        keys = begun.connection.edge_keys
        if keys is not None:
            self._get_edges(begun, keys, round_trip)
            return
        if begun.needs.has_page:
            read_in = self._read_in(begun.connection, round_trip)
            forecast, origin = begun.needs.gets << (read_in + 1), begun.origin(read_in)
            if begun.connection.is_one_read:
                self._items.gathering.expect(forecast)
                self._ask(begun, forecast, origin, read_in)
            else:
                self._read(self._read_page(begun), forecast, origin)
        self._count(begun, round_trip)

    def _get_edges(self, begun: BegunList, keys: Sequence[Key], round_trip: int) -> None:
        """Gets the edges of a list to some nodes, in the batch of the round trip."""
        neighbours = begun.connection.neighbours
        left = len(keys)

        def arrived(wanted: list[Wanted]) -> None:
            nonlocal left
            left -= len(wanted)
            all_wanted.extend(wanted)
            if left:
                return
            for each in all_wanted:
                if each.error is not None:
                    begun.fail(each.error)
                    if begun.found is not None:
                        begun.found.total = each.error
                    return
            found = in_list(neighbours, [each.item for each in all_wanted if each.item is not None])
            if begun.found is not None:
                begun.found.total = len(found)
                edges, begun.found.info = begun.connection.page_among(found)
                self._spread(begun, edges, max((each.round_trip for each in all_wanted), default=round_trip))

        all_wanted: list[Wanted] = []
        # The edges come whole, and go on as if they had been.
        gets = begun.needs.gets >> 1 if begun.needs.wants_whole else begun.needs.gets
        record = neighbours.path.record
        self._items.want(
            [
                Wanted(None, record, (), [key], begun.place, round_trip, gets << (round_trip + 1), arrived)
                for key in keys
            ]
        )
        if not keys:
            arrived([])

    def _read_in(self, connection: Connection, round_trip: int) -> int:
        """The round trip in which a page is read: what is there already was read in one before."""
        extent = connection.request.extent
        if connection.to is not None or extent.after is not None or extent.until is not None:
            return round_trip
        came = self._context.neighbours.came(connection.request)
        return round_trip if came is None else max(came, round_trip) - 1

    def _count(self, begun: BegunList, round_trip: int) -> None:
        if begun.found is not None and begun.needs.has_total:
            self._read(self._read_total(begun.connection, begun.found), 0, begun.origin(round_trip))

    def _asked(self, selected: FieldPlan, needs: NeighbourNeeds) -> AskedList:
        """What is the same for all the owners of a list; where no variable has a part in it, for all runs of the plan."""
        found = self._lists_of_plan.get(selected) or self._lists.get(selected)
        if found is None:
            try:
                found = AskedList(self._context, needs, self._arguments.of(selected))
            except Exception as error:
                found = error
            if not selected.variables and not isinstance(found, Exception):
                self._lists_of_plan[selected] = found
            else:
                self._lists[selected] = found
        if isinstance(found, Exception):
            raise found
        return found

    def _read(
        self,
        reading: Coroutine[Any, Any, Callable[[int], None] | None],
        forecast: int,
        origin: Origin,
    ) -> None:
        """Reads in a task of its own; what it gives is what goes on then, called with the round trip."""
        round_trip = origin.round_trip
        self._items.gathering.expect(forecast)

        async def run() -> None:
            ORIGIN.set(origin)
            go_on = await reading
            self._items.gathering.arrived(forecast)
            if go_on is not None:
                # What an equal read has found has come with that one.
                go_on(max(origin.round_trip, round_trip + 1))
            self._items.gathering.depart()

        self._work.spawn(run())

    def _ask(self, begun: BegunList, forecast: int, origin: Origin, sooner: int) -> None:
        """Asks for a page that is one read, and goes on when it comes; no task is needed for that."""
        neighbours, request = self._context.neighbours, begun.connection.request
        token = ORIGIN.set(origin)
        try:
            answer = neighbours.load(request)
        finally:
            ORIGIN.reset(token)

        def came() -> None:
            error = answer.exception()
            found = None if error is not None else answer.result()
            if error is None and found is None:
                # It was promised, and not come to.
                origin.round_trip += 1
                self._ask(begun, forecast, origin, sooner)
                return
            round_trip = max(origin.round_trip, sooner + 1)
            self._items.gathering.arrived(forecast)
            if found is None:
                begun.fail(cast(Exception, error))
            else:
                neighbours.came_in(request, round_trip)
                edges, info = begun.connection.page_of(found)
                self._page_arrived(begun, edges, info, round_trip)
            self._items.gathering.depart()

        self._work.when_done(answer, came)

    async def _read_page(self, begun: BegunList) -> Callable[[int], None] | None:
        try:
            edges, info = await begun.connection.page()
        except Exception as error:
            begun.fail(error)
            return None
        return partial(self._page_arrived, begun, edges, info)

    def _page_arrived(self, begun: BegunList, edges: list[Edge], info: PageInfo, round_trip: int) -> None:
        if begun.found is None:
            del edges[1:]
        else:
            begun.found.info = info
        if begun.needs.wants_whole:
            self._complete(begun, edges, round_trip)
        else:
            self._spread(begun, edges, round_trip)

    async def _read_total(self, connection: Connection, found: ListVisit) -> None:
        try:
            found.total = await connection.total()
        except Exception as error:
            found.total = error

    def _complete(self, begun: BegunList, edges: list[Edge], round_trip: int) -> None:
        """Reads the whole items behind an index's; those that the table no longer has are left out."""
        if not edges:
            self._spread(begun, edges, round_trip)
            return
        left = len(edges)
        latest = round_trip

        def arrived(wanted: list[Wanted]) -> None:
            nonlocal left, latest
            left -= len(wanted)
            for each in wanted:
                edge = cast(Edge, each.subject)
                edge.item, edge.error = each.item, each.error
                latest = max(latest, each.round_trip)
            if not left:
                self._spread(begun, [edge for edge in edges if edge.item or edge.error], latest)

        key_of = self._context.graph.table.key_of
        forecast = (begun.needs.gets >> 1) << (round_trip + 1)
        self._items.want(
            [
                Wanted(
                    edge, edge.record, (), [key_of(edge.listed)], begun.place, round_trip, forecast, arrived
                )
                for edge in edges
            ]
        )
