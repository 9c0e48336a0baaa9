"""Execution, the reading half: everything that a plan needs, read breadth-first and as early as keys allow.

What depends on a key alone starts when the key is known, before the node that the key belongs to was read: its lists
and the node itself are one round trip. A page that has arrived starts what its items tell, whatever its siblings
still do; nodes are gathered into batches (`keygraph_resolvers.read.gathering`). Nothing is decided here about what the answer
shows: what was read, or the error that reading it gave, is left on the objects, and `keygraph_resolvers.answer.completion` writes
them out. So what was read ahead under a node that turns out not to exist is dropped there.
"""

from __future__ import annotations

import inspect
from collections.abc import Awaitable, Callable, Mapping, Sequence
from functools import partial
from typing import Any, cast

from keygraph_resolvers.plan.arguments import Arguments
from keygraph_resolvers.plan.field_plans import Below, FieldPlan
from keygraph_resolvers.plan.plan import ObjectPlan, Plan
from keygraph_resolvers.read.connection import (
    Edge,
    far_reader,
)
from keygraph_resolvers.read.context import RequestContext
from keygraph_resolvers.read.items_by_key import ItemsByKey, Wanted
from keygraph_resolvers.read.list_reads import ListReads
from keygraph_resolvers.read.roots import named_at_root
from keygraph_resolvers.read.sources import Source, checked, source_of_instance
from keygraph_resolvers.read.together import ReadsTogether
from keygraph_resolvers.read.visits import BegunList, ListVisit, Visit, place_below
from keygraph_resolvers.read.work import Work
from keygraph_resolvers.schema.meanings import (
    Called,
    FarNode,
    NodeAt,
    NodeById,
    NodeByKey,
    NodesByIds,
)


class Reading:
    """One run of a plan's reads."""

    def __init__(self, plan: Plan, context: RequestContext, arguments: Arguments) -> None:
        self._plan = plan
        self._context = context
        self._arguments = arguments
        self._work = Work()
        self._items = ItemsByKey(context, self._work)
        self._lists = ListReads(context, arguments, self._items, self._work, plan.lists, self._spread)
        self._together = ReadsTogether(context, self._items, self._work)
        self._after: dict[ObjectPlan, Callable[[list[Wanted]], None]] = {}
        self._ends: dict[FieldPlan, Callable[[Source], Source | None]] = {}

    async def read(self) -> Visit:
        """The root, with everything that was found below it. To be called once."""
        root = Visit(self._plan.root, cast(Source, None))
        try:
            async with self._work:
                for each in self._plan.root.fields:
                    self._start_root(each, root)
                self._lists.read_all(self._lists.begin_all(self._plan.root.lists, [root], ""), 1)
                self._items.gathering.depart()
        finally:
            self._context.give_up()
            self._take_apart()
        return root

    def _take_apart(self) -> None:
        """Parts that know each other go at once when the run is over, not when the garbage collector comes by."""
        del self._items.gathering
        del self._items, self._lists, self._together, self._after, self._ends, self._work

    # --- The root -------------------------------------------------------------------------------------

    def _start_root(self, selected: FieldPlan, root: Visit) -> None:
        match selected.meaning:
            case NodeByKey() | NodeById() | NodesByIds():
                try:
                    sources = named_at_root(self._context.graph, selected, self._arguments)
                except Exception as error:
                    root.found[selected] = error
                    return
                visits = [self._visit(selected, source) for source in sources]
                root.found[selected] = visits if isinstance(selected.meaning, NodesByIds) else visits[0]
                self._start_mixed(selected, visits, 1, selected.key, must_exist=True)

    # --- Objects --------------------------------------------------------------------------------------

    def _visit(self, selected: FieldPlan, source: Source) -> Visit:
        return Visit(cast(Below, selected.below).of(source.record.name), source)

    def _start_mixed(
        self,
        selected: FieldPlan,
        visits: Sequence[Visit],
        round_trip: int,
        place: str,
        *,
        must_exist: bool = False,
    ) -> None:
        """Starts the nodes that a field gives, of any types."""
        if not visits:
            return
        first = visits[0].plan
        for visit in visits:
            if visit.plan is not first or visit.source.others:
                break
        else:
            self._start(first, visits, round_trip, place, must_exist=must_exist)
            return
        by_plan: dict[ObjectPlan, list[Visit]] = {}
        unknown = []
        for visit in visits:
            if visit.source.others and visit.source.item is None:
                unknown.append(visit)
            else:
                by_plan.setdefault(visit.plan, []).append(visit)
        for plan, group in by_plan.items():
            self._start(plan, group, round_trip, place, must_exist=must_exist)
        if unknown:
            self._tell_types(selected, unknown, round_trip, place)

    def _tell_types(self, selected: FieldPlan, visits: Sequence[Visit], round_trip: int, place: str) -> None:
        """Reads nodes of which the key does not tell the type; nothing below them can start before."""
        below = cast(Below, selected.below)
        forecast = 0
        for plan in below.plans:
            forecast |= plan.gets_read << (round_trip + 1)

        def arrived(wanted: list[Wanted]) -> None:
            for each in wanted:
                visit, item = cast(Visit, each.subject), each.item
                visit.error, visit.is_missing = each.error, item is None and each.error is None
                record = None if item is None else self._context.graph.recognise(item)
                if record is not None:
                    visit.source = Source(record, visit.source.identity, item)
                    visit.plan = below.of(record.name)
                    self._start(visit.plan, [visit], each.round_trip, place)

        self._items.want([self._wanted_node(visit, round_trip, place, forecast, arrived) for visit in visits])

    def _wanted_node(
        self,
        visit: Visit,
        round_trip: int,
        place: str,
        forecast: int,
        then: Callable[[list[Wanted]], None],
    ) -> Wanted:
        source = visit.source
        write = source.record.write_key
        if write is not None:
            keys = [write(source.identity)]
        else:
            keys = self._context.graph.table_keys(source.record, source.identity)
        records = (source.record, *source.others)
        return Wanted(visit, source.record, records, keys, place, round_trip, forecast, then)

    def _start(
        self,
        plan: ObjectPlan,
        visits: Sequence[Visit],
        round_trip: int,
        place: str,
        *,
        must_exist: bool = False,
    ) -> None:
        """Starts what the keys of these objects tell, and what their items tell as soon as those are there.

        Every object comes by here before anything below it is read.
        """
        if self._context.refusal is not None:
            for visit in visits:
                visit.error = visit.error or self._context.refusal(visit.source)
            visits = [visit for visit in visits if visit.error is None]
        unread: Sequence[Visit] = ()
        if plan.needs_item or (must_exist and plan.record is not None and not plan.record.is_virtual):
            unread = [visit for visit in visits if visit.source.item is None]
        if plan.lists:
            lists = self._lists.begin_all(plan.lists, visits, place)
            if plan.gathers:
                self._read_with_lists(visits, unread, lists, round_trip, place)
            self._lists.read_all(lists, round_trip)
        self._start_ends(plan.key_ends, visits, round_trip, place)
        if not unread:
            self._go_on(plan, visits, round_trip, place)
            return
        if len(unread) < len(visits):
            self._go_on(plan, [v for v in visits if v.source.item is not None], round_trip, place)
        forecast = plan.gets_by_item << (round_trip + 1)
        then = self._after.setdefault(plan, partial(self._arrived, plan))
        self._items.want([self._wanted_node(visit, round_trip, place, forecast, then) for visit in unread])

    def _read_with_lists(
        self,
        visits: Sequence[Visit],
        unread: Sequence[Visit],
        lists: Mapping[Visit, Sequence[BegunList]],
        round_trip: int,
        place: str,
    ) -> None:
        """Sees to it that nodes are read together with their lists."""
        wanted = set(unread)
        for visit in visits:
            [key] = self._context.graph.table_keys(visit.source.record, visit.source.identity)
            self._together.promise(key, lists.get(visit, ()), round_trip, place, is_wanted=visit in wanted)

    def _arrived(self, plan: ObjectPlan, wanted: list[Wanted]) -> None:
        """Goes on with the nodes of a plan that have been looked for."""
        existing: dict[tuple[int, str], list[Visit]] = {}
        for each in wanted:
            visit = cast(Visit, each.subject)
            visit.error, visit.source.item = each.error, each.item
            visit.is_missing = each.item is None and each.error is None
            if each.item is not None:
                existing.setdefault((each.round_trip, each.place), []).append(visit)
        for (round_trip, place), visits in existing.items():
            self._go_on(plan, visits, round_trip, place)

    def _go_on(self, plan: ObjectPlan, visits: Sequence[Visit], round_trip: int, place: str) -> None:
        """Starts what the items of these objects tell."""
        self._start_ends(plan.item_ends, visits, round_trip, place)
        for each in plan.methods:
            for visit in visits:
                self._call(each, visit, round_trip, place)

    def _start_ends(
        self, ends: Sequence[FieldPlan], visits: Sequence[Visit], round_trip: int, place: str
    ) -> None:
        for each in ends:
            started = []
            end_of = self._ends.get(each)
            if end_of is None:
                end_of = self._ends[each] = self._end_of(each)
            below = cast(Below, each.below)
            for visit in visits:
                try:
                    source = end_of(visit.source)
                except Exception as error:
                    visit.found[each] = error
                    continue
                if source is None:
                    visit.found[each] = None
                else:
                    found = visit.found[each] = Visit(below.of(source.record.name), source)
                    started.append(found)
            self._start_mixed(each, started, round_trip, place_below(place, each))

    def _end_of(self, selected: FieldPlan) -> Callable[[Source], Source | None]:
        """What gives the node at an end of an object."""
        match selected.meaning:
            case FarNode(path):
                return far_reader(path)
            case NodeAt(end):

                def checked_end(source: Source) -> Source | None:
                    found = source.end(end)
                    return None if found is None else checked(self._context, found, source.record, end.name)

                return checked_end
        raise LookupError(f"{selected.name} is no end")

    # --- Methods --------------------------------------------------------------------------------------

    def _call(self, selected: FieldPlan, visit: Visit, round_trip: int, place: str) -> None:
        meaning = cast(Called, selected.meaning)
        try:
            names, given = meaning.parameters, self._arguments.of(selected)
            instance = visit.source.instance(meaning.method)
            answer = meaning.method.function(instance, **{names[name]: given[name] for name in given})
        except Exception as error:
            visit.found[selected] = error
            return
        if inspect.isawaitable(answer):
            self._work.spawn(self._awaited(selected, visit, answer, round_trip, place))
        else:
            self._called(selected, visit, answer, round_trip, place)

    async def _awaited(
        self, selected: FieldPlan, visit: Visit, answer: Awaitable[Any], round_trip: int, place: str
    ) -> None:
        try:
            value = await answer
        except Exception as error:
            visit.found[selected] = error
            return
        self._called(selected, visit, value, round_trip, place)
        self._items.gathering.depart()

    def _called(self, selected: FieldPlan, visit: Visit, answer: Any, round_trip: int, place: str) -> None:
        """Keeps what a method gave; a node of the model's is looked up."""
        nodes = cast(Called, selected.meaning).method.nodes
        if not nodes or answer is None:
            visit.found[selected] = answer
            return
        try:
            source = source_of_instance(self._context.graph, nodes, answer)
        except Exception as error:
            visit.found[selected] = error
            return
        found = visit.found[selected] = self._visit(selected, source)
        self._start_mixed(selected, [found], round_trip, place_below(place, selected))

    def _spread(self, begun: BegunList, edges: list[Edge], round_trip: int) -> None:
        """Starts the objects behind the edges of a page."""
        needs, found, place = begun.needs, begun.found, begun.place
        if found is None:
            plan = needs.items[0]
            visits = [Visit(plan, edge, error=edge.error) for edge in edges]
            begun.visit.found[begun.selected] = visits[0] if visits else None
            self._start(plan, [visit for visit in visits if visit.error is None], round_trip, place)
            return
        found.page = edges
        sound = [edge for edge in edges if edge.error is None]
        for each in needs.edges:
            plan = cast(Below, each.below).only
            visits = found.found[each] = [Visit(plan, edge, error=edge.error) for edge in edges]
            self._start(plan, [visit for visit in visits if visit.error is None], round_trip, place)
        if needs.nodes:
            self._spread_nodes(begun, found, sound, round_trip)

    def _spread_nodes(self, begun: BegunList, found: ListVisit, edges: list[Edge], round_trip: int) -> None:
        """Starts the nodes behind the edges of a page."""
        path = begun.needs.path
        if path.far_end is None:
            for each in begun.needs.nodes:
                plan = cast(Below, each.below).of(path.record.name)
                visits = found.found[each] = [Visit(plan, edge) for edge in edges]
                self._start(plan, visits, round_trip, begun.place)
            return
        far_of = far_reader(path)
        for each in begun.needs.nodes:
            visits = found.found[each] = []
            below, is_sound = cast(Below, each.below), True
            for edge in edges:
                try:
                    source = far_of(edge)
                except Exception as error:
                    is_sound = False
                    visits.append(Visit(below.any, edge, error=error))
                    continue
                if source is not None:
                    visits.append(Visit(below.of(source.record.name), source))
            sound_visits = visits if is_sound else [visit for visit in visits if visit.error is None]
            self._start_mixed(each, sound_visits, round_trip, begun.place)
