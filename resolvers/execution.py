"""Execution, the reading half: everything that a plan needs, read breadth-first and as early as keys allow.

What depends on a key alone starts when the key is known, before the node that the key belongs to was read: its lists
and the node itself are one round trip. A page that has arrived starts what its items tell, whatever its siblings
still do; nodes are gathered into batches (`resolvers.gathering`). Nothing is decided here about what the answer
shows: what was read, or the error that reading it gave, is left on the objects, and `resolvers.completion` writes
them out. So what was read ahead under a node that turns out not to exist is dropped there.
"""

from __future__ import annotations

import asyncio
import inspect
from collections import Counter
from collections.abc import Awaitable, Callable, Coroutine, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any, cast

from keygraph.items import Item
from keygraph.names import camel
from keygraph.records import RecordType
from keygraph.table import Key
from resolvers.arguments import Arguments
from resolvers.connections import (
    Connection,
    Edge,
    ListArguments,
    PageInfo,
    connect,
    far_source,
    list_arguments,
    list_kind,
)
from resolvers.context import RequestContext
from resolvers.gathering import Gathering
from resolvers.global_ids import read_global_id
from resolvers.meanings import (
    Called,
    FarNode,
    ListOf,
    NodeAt,
    NodeById,
    NodeByKey,
    NodesByIds,
    OnlyOf,
)
from resolvers.metering import ORIGIN, Origin
from resolvers.plan import Below, FieldPlan, NeighbourNeeds, ObjectPlan, Plan, neighbour_needs
from resolvers.sources import Source, checked, identity_of_instance


@dataclass(slots=True, eq=False)
class Visit:
    """One object of the answer: its plan, its source, and what was found for the fields that lead on."""

    plan: ObjectPlan
    source: Source
    edge: Edge | None = None
    """Where it stands in a list, if it is an edge."""
    is_missing: bool = False
    """Whether it is a node that was looked for and does not exist."""
    error: Exception | None = None
    """What looking for it gave instead."""
    found: dict[FieldPlan, Any] = field(default_factory=dict)
    """A `Visit`, a `ListVisit`, a list of visits, a value, None; or the exception that there was instead."""


@dataclass(slots=True, eq=False)
class ListVisit:
    """One connection of the answer."""

    page: list[Edge] | Exception | None = None
    info: PageInfo | None = None
    total: int | Exception | None = None
    found: dict[FieldPlan, list[Visit]] = field(default_factory=dict)
    """The edges, or nodes, for each field that shows them."""


@dataclass(slots=True, eq=False)
class _Wanted:
    """An item that is looked for under some keys, and what goes on with it."""

    subject: Visit | Edge
    record: RecordType | None
    """The type that the item must be of; None where the key was read from an item of it."""
    keys: Sequence[Key]
    place: str
    round_trip: int
    """The round trip in which the item is read; when it is there, that after it."""
    forecast: int
    then: Callable[[list[_Wanted]], None]
    left: int = 0
    """How many of the keys have not been read yet."""
    item: Item | None = None
    error: Exception | None = None


class Reading:
    """One run of a plan's reads."""

    def __init__(self, plan: Plan, context: RequestContext, arguments: Arguments) -> None:
        self._plan = plan
        self._context = context
        self._arguments = arguments
        self._gathering = Gathering(self._leave)
        self._waiting: dict[Key, list[_Wanted]] = {}
        self._sent: set[Key] = set()
        self._lists: dict[FieldPlan, ListArguments | Exception] = {}
        self._after: dict[ObjectPlan, Callable[[list[_Wanted]], None]] = {}
        self._tasks: asyncio.TaskGroup

    async def read(self) -> Visit:
        """The root, with everything that was found below it."""
        root = Visit(self._plan.root, cast(Source, None))
        async with asyncio.TaskGroup() as self._tasks:
            for each in self._plan.root.fields:
                self._start_root(each, root)
            self._gathering.depart()
        return root

    # --- The root -------------------------------------------------------------------------------------

    def _start_root(self, selected: FieldPlan, root: Visit) -> None:
        match selected.meaning:
            case NodeByKey() | NodeById() | NodesByIds():
                try:
                    sources = self._named_at_root(selected)
                except Exception as error:
                    root.found[selected] = error
                    return
                visits = [self._visit(selected, source) for source in sources]
                root.found[selected] = visits if isinstance(selected.meaning, NodesByIds) else visits[0]
                self._start_mixed(visits, 1, selected.key, must_exist=True)
            case ListOf() | OnlyOf():
                self._start_list(selected, root, None, 1, "")

    def _named_at_root(self, selected: FieldPlan) -> list[Source]:
        given, graph = self._arguments.of(selected), self._context.graph
        match selected.meaning:
            case NodeByKey(record):
                names = {camel(record.leaf_name(slot.path)): slot for slot in record.identity}
                values = {record.leaf_name(slot.path): given.get(name) for name, slot in names.items()}
                return [Source(record, graph.identity(record, values))]
            case NodeById():
                return [Source(*read_global_id(graph, given["id"]))]
        return [Source(*read_global_id(graph, text)) for text in given["ids"]]

    # --- Objects --------------------------------------------------------------------------------------

    def _visit(self, selected: FieldPlan, source: Source) -> Visit:
        return Visit(cast(Below, selected.below).of(source.record.name), source)

    def _start_mixed(
        self, visits: Sequence[Visit], round_trip: int, place: str, *, must_exist: bool = False
    ) -> None:
        """Starts nodes of any types."""
        by_plan: dict[ObjectPlan, list[Visit]] = {}
        for visit in visits:
            by_plan.setdefault(visit.plan, []).append(visit)
        for plan, group in by_plan.items():
            self._start(plan, group, round_trip, place, must_exist=must_exist)

    def _start(
        self,
        plan: ObjectPlan,
        visits: Sequence[Visit],
        round_trip: int,
        place: str,
        *,
        must_exist: bool = False,
    ) -> None:
        """Starts what the keys of these objects tell, and what their items tell as soon as those are there."""
        for each in plan.lists:
            for visit in visits:
                self._start_list(each, visit, visit.source, round_trip, place)
        self._start_ends(plan.key_ends, visits, round_trip, place)
        unread: Sequence[Visit] = ()
        if plan.needs_item or (must_exist and plan.record is not None and not plan.record.is_virtual):
            unread = [visit for visit in visits if visit.source.item is None]
        if not unread:
            self._go_on(plan, visits, round_trip, place)
            return
        if len(unread) < len(visits):
            self._go_on(plan, [v for v in visits if v.source.item is not None], round_trip, place)
        forecast = plan.gets_by_item << (round_trip + 1)
        then = self._after.setdefault(plan, partial(self._arrived, plan))
        graph = self._context.graph
        self._want(
            [
                _Wanted(
                    visit,
                    visit.source.record,
                    graph.table_keys(visit.source.record, visit.source.identity),
                    place,
                    round_trip,
                    forecast,
                    then,
                )
                for visit in unread
            ]
        )

    def _arrived(self, plan: ObjectPlan, wanted: list[_Wanted]) -> None:
        """Goes on with the nodes of a plan that have been looked for."""
        existing: dict[tuple[int, str], list[Visit]] = {}
        for each in wanted:
            visit = cast(Visit, each.subject)
            visit.error, visit.source.item = each.error, each.item
            visit.is_missing = each.item is None
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
            for visit in visits:
                try:
                    source = self._end(each, visit)
                except Exception as error:
                    visit.found[each] = error
                    continue
                found = visit.found[each] = None if source is None else self._visit(each, source)
                if found is not None:
                    started.append(found)
            self._start_mixed(started, round_trip, _below(place, each))

    def _end(self, selected: FieldPlan, visit: Visit) -> Source | None:
        match selected.meaning:
            case FarNode(path):
                return far_source(path, visit.source)
            case NodeAt(end):
                found = visit.source.end(end)
                if found is None:
                    return None
                return checked(self._context, found, visit.source.record, end.name)
        raise LookupError(f"{selected.name} is no end")

    # --- Methods --------------------------------------------------------------------------------------

    def _call(self, selected: FieldPlan, visit: Visit, round_trip: int, place: str) -> None:
        meaning = cast(Called, selected.meaning)
        try:
            names, given = meaning.method.parameters, self._arguments.of(selected)
            instance = visit.source.instance(meaning.method)
            answer = meaning.method.function(instance, **{names[name]: given[name] for name in given})
        except Exception as error:
            visit.found[selected] = error
            return
        if inspect.isawaitable(answer):
            self._tasks.create_task(self._awaited(selected, visit, answer, round_trip, place))
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
        self._gathering.depart()

    def _called(self, selected: FieldPlan, visit: Visit, answer: Any, round_trip: int, place: str) -> None:
        """Keeps what a method gave; a node of the model's is looked up."""
        record = cast(Called, selected.meaning).record
        if record is None or answer is None:
            visit.found[selected] = answer
            return
        try:
            identity = identity_of_instance(self._context.graph, record, answer)
        except Exception as error:
            visit.found[selected] = error
            return
        found = visit.found[selected] = self._visit(selected, Source(record, identity))
        self._start_mixed([found], round_trip, _below(place, selected))

    # --- Lists ----------------------------------------------------------------------------------------

    def _start_list(
        self, selected: FieldPlan, visit: Visit, owner: Source | None, round_trip: int, place: str
    ) -> None:
        needs = neighbour_needs(selected)
        try:
            said = self._list_arguments(selected, needs)
            connection = connect(self._context, needs, said, owner)
        except Exception as error:
            visit.found[selected] = error
            return
        origin = partial(Origin, (_below(place, selected),), round_trip, list_kind(needs.path, said))
        place = _below(place, selected)
        if needs.path.is_one:
            self._read(self._read_one(selected, needs, connection, visit, place), needs, origin())
            return
        found = visit.found[selected] = ListVisit()
        if needs.has_page:
            self._read(self._read_page(needs, connection, found, place), needs, origin())
        if needs.has_total:
            self._read(self._read_total(connection, found), None, origin())

    def _list_arguments(self, selected: FieldPlan, needs: NeighbourNeeds) -> ListArguments:
        """What the arguments of a list say, which is the same for all its owners."""
        found = self._lists.get(selected)
        if found is None:
            try:
                found = list_arguments(self._context, needs.path, self._arguments.of(selected))
            except Exception as error:
                found = error
            self._lists[selected] = found
        if isinstance(found, Exception):
            raise found
        return found

    def _read(
        self,
        reading: Coroutine[Any, Any, Callable[[int], None] | None],
        needs: NeighbourNeeds | None,
        origin: Origin,
    ) -> None:
        """Reads in a task of its own; what it gives is what goes on then, called with the round trip."""
        round_trip = origin.round_trip
        forecast = needs.gets << (round_trip + 1) if needs else 0
        self._gathering.expect(forecast)

        async def run() -> None:
            ORIGIN.set(origin)
            go_on = await reading
            self._gathering.arrived(forecast)
            if go_on is not None:
                # What an equal read has found has come with that one.
                go_on(max(origin.round_trip, round_trip + 1))
            self._gathering.depart()

        self._tasks.create_task(run())

    async def _read_page(
        self, needs: NeighbourNeeds, connection: Connection, found: ListVisit, place: str
    ) -> Callable[[int], None] | None:
        try:
            edges, found.info = await connection.page()
        except Exception as error:
            found.page = error
            return None
        found.page = edges

        def go_on(round_trip: int) -> None:
            if needs.wants_whole:
                self._complete(needs, edges, round_trip, place, partial(self._spread, needs, found, place))
            else:
                self._spread(needs, found, place, edges, round_trip)

        return go_on

    async def _read_total(self, connection: Connection, found: ListVisit) -> None:
        try:
            found.total = await connection.total()
        except Exception as error:
            found.total = error

    async def _read_one(
        self,
        selected: FieldPlan,
        needs: NeighbourNeeds,
        connection: Connection,
        visit: Visit,
        place: str,
    ) -> Callable[[int], None] | None:
        try:
            edge = await connection.first()
        except Exception as error:
            visit.found[selected] = error
            return None
        if edge is None:
            visit.found[selected] = None
            return None

        def show(edges: list[Edge], round_trip: int) -> None:
            if not edges:
                visit.found[selected] = None
                return
            [only] = edges
            found = visit.found[selected] = Visit(needs.items[0], only.source, only)
            self._start(found.plan, [found], round_trip, place)

        def go_on(round_trip: int) -> None:
            if needs.wants_whole:
                self._complete(needs, [edge], round_trip, place, show)
            else:
                show([edge], round_trip)

        return go_on

    def _complete(
        self,
        needs: NeighbourNeeds,
        edges: list[Edge],
        round_trip: int,
        place: str,
        then: Callable[[list[Edge], int], None],
    ) -> None:
        """Reads the whole items behind an index's; those that the table no longer has are left out."""
        if not edges:
            then([], round_trip)
            return
        left = len(edges)
        latest = round_trip

        def arrived(wanted: list[_Wanted]) -> None:
            nonlocal left, latest
            left -= len(wanted)
            for each in wanted:
                cast(Edge, each.subject).source.item = each.item
                cast(Edge, each.subject).error = each.error
                latest = max(latest, each.round_trip)
            if not left:
                then([edge for edge in edges if edge.source.item or edge.error], latest)

        key_of = self._context.graph.table.key_of
        forecast = (needs.gets >> 1) << (round_trip + 1)
        self._want(
            [_Wanted(edge, None, [key_of(edge.item)], place, round_trip, forecast, arrived) for edge in edges]
        )

    def _spread(
        self, needs: NeighbourNeeds, found: ListVisit, place: str, edges: list[Edge], round_trip: int
    ) -> None:
        """Starts the objects behind the edges of a page."""
        found.page = edges
        for each in needs.edges:
            plan = cast(Below, each.below).only
            visits = found.found[each] = [Visit(plan, edge.source, edge) for edge in edges]
            self._start(plan, visits, round_trip, place)
        for each in needs.nodes:
            visits = found.found[each] = []
            for edge in edges:
                source = edge.node
                if source is not None:
                    visits.append(self._visit(each, source))
            self._start_mixed(visits, round_trip, place)

    # --- Items by key ---------------------------------------------------------------------------------

    def _want(self, wanted: Sequence[_Wanted]) -> None:
        """Looks for items: what was read goes on at once, what is on its way with that, the rest is gathered."""
        nodes, ready = self._context.nodes, []
        if wanted:
            # They are of one type: those of one plan, or the items of one list.
            self._context.meter.wanted[wanted[0].subject.source.record] += len(wanted)
        for each in wanted:
            for key in each.keys:
                if key not in self._waiting and nodes.is_read(key):
                    continue
                each.left += 1
                self._waiting.setdefault(key, []).append(each)
                if key not in self._sent:
                    self._gathering.add(each.round_trip, key)
            if each.left:
                self._gathering.expect(each.forecast)
            else:
                ready.append(each)
        self._finish(ready)

    def _leave(self, round_trip: int, keys: list[Key]) -> None:
        self._sent.update(keys)
        self._tasks.create_task(self._get(round_trip, keys))

    async def _get(self, round_trip: int, keys: list[Key]) -> None:
        waiting = [self._waiting[key] for key in keys]
        places = {each.place: None for group in waiting for each in group}
        # What several places wait for counts at the first.
        counted = Counter((group[0].place, group[0].subject.source.record) for group in waiting)
        origin = Origin(tuple(places), round_trip, keys=counted)
        ORIGIN.set(origin)
        await asyncio.wait(self._context.nodes.load_together(keys))
        ready = []
        for key in keys:
            for each in self._waiting.pop(key):
                each.left -= 1
                if not each.left:
                    each.round_trip = max(each.round_trip + 1, origin.round_trip)
                    self._gathering.arrived(each.forecast)
                    ready.append(each)
        self._finish(ready)
        self._gathering.depart()

    def _finish(self, ready: Sequence[_Wanted]) -> None:
        """Goes on with what has been looked for."""
        groups: dict[Callable[[list[_Wanted]], None], list[_Wanted]] = {}
        for each in ready:
            for key in each.keys:
                found = self._context.nodes.answer(key)
                if isinstance(found, Exception):
                    each.error = found
                elif found is not None and self._is_of(found, each.record):
                    each.item = found
            groups.setdefault(each.then, []).append(each)
        for then, group in groups.items():
            then(group)

    def _is_of(self, item: Item, record: RecordType | None) -> bool:
        return record is None or self._context.graph.recognise(item) is record


def _below(place: str, selected: FieldPlan) -> str:
    return f"{place}.{selected.key}" if place else selected.key
