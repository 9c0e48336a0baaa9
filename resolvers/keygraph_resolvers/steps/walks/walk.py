"""Drives walks: reads what a walk requests through the scheduler, round by round, and passes it to the walk.

The requests of one round are in flight at the same time, and a part that the operation has read before is not read
again. Nodes that the viewer may not see are withheld from the walk, so nothing beyond them is found through them.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, Generic, NamedTuple, TypeVar

from keygraph.access.grants import Decision
from keygraph.dynamo.items import Item
from keygraph.errors import BadUserInput, CorruptItem
from keygraph.lists.listing import Located, NeighbourList
from keygraph.lists.reading import Extent, Found
from keygraph.model.paths import AccessPath
from keygraph.model.permissions import restricted_name
from keygraph.model.records import RecordType
from keygraph.walks.walk import Hop, Part, Vertex, Walk, Wanted
from keygraph_resolvers.read.access import forbidden, is_readable, learned
from keygraph_resolvers.read.connection import Connection, ListArguments
from keygraph_resolvers.read.loaders import PageOf
from keygraph_resolvers.read.meter import Read
from keygraph_resolvers.read.objects import Object, end_reader
from keygraph_resolvers.read.run import Run
from keygraph_resolvers.read.walked import ViaEdge
from keygraph_resolvers.steps.get import by_type, keep_items, look_up, see
from keygraph_resolvers.steps.lists import look_all_up
from keygraph_resolvers.steps.partial_page import whole_edges
from keygraph_resolvers.steps.selection import SelectedField
from keygraph_resolvers.steps.step import AT_ONCE, Step, later, union

ResultT = TypeVar("ResultT")
Answers = list[Part | Exception]

AHEAD = 64
"""How many round trips ahead a walk may request keys, because its length is unknown."""
_IN_A_TURN = 200
"""The number of lists begun in one turn of the event loop, about 10 milliseconds."""


class ReadEdge(NamedTuple):
    """An edge that a walk followed, as it was read in its list."""

    connection: Connection
    located: Located

    def object(self) -> ViaEdge:
        """The edge as an object of an answer."""
        return ViaEdge(self.connection, self.located)

    def object_in(self, connection: Connection, end: Vertex) -> ViaEdge:
        """The same edge in the list that leads to this end, if it was read from there in another list."""
        item, identity, record = self.located
        path = connection.neighbours.path
        if record.is_mirrored and path.far_end is not None:
            far = record.ends[path.far_end].identity_of(*end)
            texts = path.edge_texts(connection.owner, far)
            own = zip(record.identity, identity, strict=True)
            identity = tuple(texts.get(slot.name, text) or "" for slot, text in own)
        return ViaEdge(connection, Located(item, identity, record), is_read_elsewhere=True)


@dataclass(frozen=True, slots=True)
class EdgesStep:
    """Continues from edges that walks followed, by their lists."""

    selected: SelectedField
    steps: Mapping[AccessPath, Step]
    partial: frozenset[AccessPath]
    """The lists read from an index that lacks a selected field."""

    @property
    def later(self) -> frozenset[int]:
        """The next round trips in which keys may be requested."""
        own = union(each.later for each in self.steps.values())
        return own | AT_ONCE | later(own) if self.partial else own

    def start(self, run: Run, edges: Sequence[ViaEdge], place: str, round_trip: int) -> None:
        by_path = dict[AccessPath, list[ViaEdge]]()
        for each in edges:
            by_path.setdefault(each.connection.neighbours.path, []).append(each)
        for path, group in by_path.items():
            step, keys_of = self.steps[path], run.graph.table_keys
            unread = [each for each in group if each.is_read_elsewhere or path in self.partial]
            read = [each for each in group if each not in unread]
            if read:
                step.start(run, read, round_trip, place)
            wanted = [(each, key) for each in unread for key in keys_of(each.record, each.identity)]
            then = partial(self._items_came, run, step, unread, place)
            if unread:
                look_all_up(run, place, round_trip, step.later, wanted, then)

    @staticmethod
    def _items_came(
        run: Run,
        step: Step,
        edges: Sequence[ViaEdge],
        place: str,
        came: list[tuple[Any, Any]],
        round_trip: int,
    ) -> None:
        # An edge that may be in any of several shards has an item under at most one key.
        answers: dict[ViaEdge, Any] = {}
        for each, answer in came:
            answers[each] = answers.get(each) or answer
        for each in edges:
            if (
                answers[each] is not None
                and each.is_read_elsewhere
                and not isinstance(answers[each], Exception)
            ):
                each.listed = answers[each]
        there = {*whole_edges(run, edges, [*answers.items()])}
        for each in edges:
            each.is_missing = each not in there
        sound = [each for each in edges if each in there and each.error is None]
        step.start(run, sound, round_trip, place)


class WalkedLists:
    """The lists that the walks of one run read, and which of them the viewer may read for each node."""

    def __init__(self, run: Run, paths: Iterable[AccessPath], against: Iterable[AccessPath] = ()) -> None:
        """`against` are read as well, but are not followed from nodes. Raises BadUserInput if a list has required
        arguments."""
        self.run = run
        self.is_shared = True
        """Whether anything else may request the same parts."""
        own = dict.fromkeys(paths)
        self._arguments = {path: ListArguments(run, path, {}, frozenset()) for path in (*own, *against)}
        self._ends = {path: _far_reader(path) for path in self._arguments}
        self._by_owner: dict[RecordType, tuple[AccessPath, ...]] = {}
        for path in own:
            if path.owner is not None:
                self._by_owner[path.owner] = (*self._by_owner.get(path.owner, ()), path)
        self._connections: dict[tuple[AccessPath, tuple[str, ...]], Connection] = {}
        self._allowed: dict[Vertex, tuple[AccessPath, ...] | None] = {}
        """For nodes with undecided rules: the lists that may be read; None if the viewer does not see the node."""

    def of(self, owner: Vertex) -> Sequence[AccessPath]:
        """The lists that are followed from a node."""
        allowed = self._allowed.get(owner, ())
        return allowed or (() if owner in self._allowed else self.of_type(owner.record))

    def any_shown(self, path: AccessPath) -> NeighbourList:
        """A list of an arbitrary owner, with placeholders."""
        return self._arguments[path].any_shown

    def of_type(self, record: RecordType) -> Sequence[AccessPath]:
        """The lists of nodes of a type."""
        return self._by_owner.get(record, ())

    def is_refused(self, owner: Vertex) -> bool:
        """Whether the viewer sees a node but may read none of its lists."""
        return self._allowed.get(owner) == () and bool(self.of_type(owner.record))

    def is_closed(self, wanted: Wanted) -> bool:
        """Whether it is known that the viewer may not read a list of a node."""
        allowed = self._allowed.get(wanted.owner, ())
        own = wanted.owner in self._allowed and wanted.path in self.of_type(wanted.owner.record)
        return own and wanted.path not in (allowed or ())

    def connection(self, wanted: Wanted) -> Connection:
        """The list of an owner. Raises errors of its arguments or rules."""
        key = wanted.path, wanted.owner.identity
        found = self._connections.get(key)
        if found is None:
            owner = Object(wanted.owner.record, wanted.owner.identity)
            found = self._connections[key] = self._arguments[wanted.path].of(self.run, owner)
        return found

    def forget(self, wanted: Wanted) -> None:
        """Forgets the list of an owner, so that it is made again on the next request."""
        self._connections.pop((wanted.path, wanted.owner.identity), None)

    def extent(self, wanted: Wanted) -> Extent:
        """The part of the list to read."""
        arguments, path = self._arguments[wanted.path], wanted.path
        count = 1 if path.is_one else max(1, wanted.most // len(path.keys.shard_texts))
        return Extent(
            count, wanted.forward, wanted.after, budget=count, attributes=arguments.extent.attributes
        )

    def part(self, connection: Connection, extent: Extent, found: Found) -> Part:
        """Returns the part for the walk from a page that was read."""
        neighbours, read_far = connection.neighbours, self._ends[connection.neighbours.path]
        hops = []
        for located in found.items:
            node = read_far(located)
            if node is not None:
                hops.append(Hop(node, ReadEdge(connection, located), neighbours.place_of(located.item)))
        after = found.resume
        if after is None and len(found.items) >= extent.count and not neighbours.path.is_one:
            after = neighbours.place_of(found.items[-1].item)
        return Part(hops[:1] if neighbours.path.is_one else hops, after, found.looked_at)

    # --- What the viewer may see --------------------------------------------------------------------------

    def undecided(self, nodes: Iterable[Vertex]) -> list[Object]:
        """The nodes whose keys alone do not decide whether the viewer sees them and may read their lists."""
        access, found = self.run.access, list[Object]()
        if access is None:
            return found
        for node in dict.fromkeys(nodes):
            if node in self._allowed:
                continue
            decision = access.of_key(*node)
            told = {path: self._may_read(node, path) for path in self.of_type(node.record)}
            is_told = decision is True and all(isinstance(each, bool) for each in told.values())
            if decision is False:
                self._allowed[node] = None
            elif not is_told:
                found.append(Object(*node))
            elif not all(told.values()):
                self._allowed[node] = tuple(path for path, is_allowed in told.items() if is_allowed)
        return found

    def _may_read(self, node: Vertex, path: AccessPath) -> Decision:
        """Whether the viewer may read a list of a node, as far as its key decides."""
        access, name = self.run.access, restricted_name(node.record, path.name)
        return access is None or name is None or access.of_key(*node, "read", name)

    def needs_item(self, node: Object) -> bool:
        """Whether only the node's item, not its key or other items, says which of its lists the viewer may read."""
        vertex, access = Vertex(node.record, node.identity), self.run.access
        left = [self._may_read(vertex, path) for path in self.of_type(node.record)]
        return access is not None and any(
            not isinstance(each, bool) and not access.is_linked(node.record, each) for each in left
        )

    def decide(self, node: Object) -> None:
        """Records whether the viewer sees a node and may read its lists. Raises the error of reading it."""
        if node.error is not None:
            raise node.error
        vertex, access = Vertex(node.record, node.identity), self.run.access
        if node.is_missing or access is None:
            self._allowed[vertex] = None
            return
        named = [(path, restricted_name(node.record, path.name)) for path in self.of_type(node.record)]
        self._allowed[vertex] = tuple(
            path for path, name in named if name is None or is_readable(access, node, name)
        )

    def is_hidden(self, node: Vertex) -> bool:
        """Whether the viewer does not see a node."""
        return self._allowed.get(node, ()) is None


def _far_reader(path: AccessPath) -> Callable[[Located], Vertex | None]:
    """Returns a function that gives the node that a list's item leads to; None if it holds no valid key of one."""
    record = path.record
    if path.far_end is None:
        return lambda located: Vertex(located.record, located.identity)
    read_end = end_reader(record, record.ends[path.far_end])

    def read(located: Located) -> Vertex | None:
        try:
            found = read_end(Object(record, located.identity, located.item))
        except CorruptItem:
            return None
        return None if found is None else Vertex(found.record, found.identity)

    return read


class Walking(Generic[ResultT]):
    """A walk in progress."""

    def __init__(
        self,
        lists: WalkedLists,
        walk: Walk[ResultT],
        place: str,
        later: frozenset[int],
        then: Callable[[ResultT | Exception, int], None],
    ) -> None:
        """`later` are the next round trips in which keys may be requested when it is done. `then` is called with the
        walk's result or error, and the number of the next round trip."""
        self._lists = lists
        self._walk = walk
        self._place = place
        self._places = (place,)
        self._later = later
        self._then = then
        self._told = frozenset[Vertex]()

    def start(self, start: Vertex, round_trip: int, *others: Vertex, told: Iterable[Vertex] = ()) -> None:
        """Begins with a node and others that the walk knows, after rules have decided on them. Nodes `told` by a cursor
        are decided when the walk continues from them."""
        self._told = frozenset(told)

        def begin(failed: Answers | None, arrived: int) -> None:
            if not failed and self._lists.is_refused(start):
                path, *_ = self._lists.of_type(start.record)
                failed = [forbidden(start.record, path.name)]
            self._go_on(failed, arrived)

        self._when_decided([start, *others], round_trip, begin)

    def _go_on(self, answers: Answers | None, round_trip: int) -> None:
        """Passes answers to the walk (None: it has not begun), until it is done or waits for something."""
        while True:
            try:
                wanted = next(self._walk) if answers is None else self._given(answers)
            except StopIteration as end:
                self._then(end.value, round_trip)
                return
            except Exception as error:
                self._then(error, round_trip)
                return
            now = _Round(len(wanted), round_trip)
            if len(wanted) > _IN_A_TURN:
                now.is_waiting = True
                self._lists.run.scheduler.spawn(self._load_in_turns(now, wanted, round_trip))
                return
            for number, each in enumerate(wanted):
                self._load(each, partial(self._came, now, number), round_trip)
            if now.left:
                now.is_waiting = True
                return
            # Everything was known already.
            answers, round_trip = now.answers, now.round_trip

    async def _load_in_turns(self, now: _Round, wanted: Sequence[Wanted], round_trip: int) -> None:
        """Begins to read many lists, in turns with other work of the event loop."""
        for number, each in enumerate(wanted):
            if number and number % _IN_A_TURN == 0:
                await asyncio.sleep(0)
            self._load(each, partial(self._came, now, number), round_trip)

    def _given(self, answers: Answers) -> Sequence[Wanted]:
        parts: list[Part] = []
        for each in answers:
            if isinstance(each, Exception):
                return self._walk.throw(each)
            parts.append(each)
        return self._walk.send(parts)

    def _load(self, wanted: Wanted, then: Callable[[Part | Exception, int], None], round_trip: int) -> None:
        lists = self._lists
        if self._told and wanted.owner in self._told and lists.undecided([wanted.owner]):

            def decided(failed: Answers | None, arrived: int) -> None:
                if failed:
                    then(failed[0], arrived)
                else:
                    self._load(wanted, then, arrived)

            self._when_decided([wanted.owner], round_trip, decided)
            return
        if lists.is_closed(wanted):
            then(Part(()), round_trip)
            return
        try:
            connection = lists.connection(wanted)
        except BadUserInput:
            # The item holds an invalid key for this node, which has no lists.
            then(Part(()), round_trip)
            return
        except Exception as error:
            then(error, round_trip)
            return
        if unknown := connection.unknown:
            keys = [(key, key) for key in unknown]
            came = partial(self._links_came, wanted, then)
            look_all_up(lists.run, self._place, round_trip, self._later, keys, came)
            return
        if connection.is_closed:
            then(Part(()), round_trip)
            return
        extent = lists.extent(wanted)
        read = Read(self._places, round_trip, self._later, goes_on=True)
        request = PageOf(connection.neighbours, extent)
        lists.run.scheduler.load(request, read, partial(self._page_came, wanted, request, read, then))

    def _links_came(
        self,
        wanted: Wanted,
        then: Callable[[Part | Exception, int], None],
        came: list[tuple[Any, Any]],
        round_trip: int,
    ) -> None:
        """Reads a list when the other items have arrived that decide whether the viewer sees any of it."""
        failure = learned(self._lists.run, came)
        if failure is not None:
            then(failure, round_trip)
            return
        self._lists.forget(wanted)
        self._load(wanted, then, round_trip)

    def _page_came(
        self,
        wanted: Wanted,
        request: PageOf,
        read: Read,
        then: Callable[[Part | Exception, int], None],
        answer: Found | Exception,
        round_trip: int,
    ) -> None:
        if isinstance(answer, Exception):
            then(answer, round_trip)
            return
        lists = self._lists
        try:
            part = lists.part(lists.connection(wanted), request.extent, answer)
        except Exception as error:
            then(error, round_trip)
            return
        if not lists.is_shared:
            lists.run.release(request, read)
            if part.after is None:
                lists.forget(wanted)

        def decided(failed: Answers | None, arrived: int) -> None:
            if failed:
                then(failed[0], arrived)
                return
            hidden = lists.is_hidden
            seen = [hop for hop in part.hops if not hidden(hop.node)]
            then(part._replace(hops=seen) if len(seen) < len(part.hops) else part, arrived)

        self._when_decided([hop.node for hop in part.hops], round_trip, decided)

    def _came(self, now: _Round, number: int, answer: Part | Exception, round_trip: int) -> None:
        now.take(number, answer, round_trip)
        if now.is_waiting and not now.left:
            self._go_on(now.answers, now.round_trip)

    def _when_decided(
        self, nodes: Sequence[Vertex], round_trip: int, then: Callable[[Answers | None, int], None]
    ) -> None:
        """Continues when it is known which of these nodes the viewer sees."""
        lists, run, place, later = self._lists, self._lists.run, self._place, self._later
        untold = lists.undecided(nodes)
        left, latest, failed = len(untold), round_trip, Answers()

        def decided(some: Sequence[Object], arrived: int) -> None:
            nonlocal left, latest
            for each in some:
                try:
                    lists.decide(each)
                except Exception as error:
                    failed.append(error)
            left, latest = left - len(some), max(latest, arrived)
            if not left:
                then(failed or None, latest)

        def came(some: list[tuple[Object, Item | Exception | None]], arrived: int) -> None:
            keep_items(run, some)
            gone = [each for each, _ in some if each.is_missing or each.error]
            there = [each for each, _ in some if not each.is_missing and not each.error]
            if gone:
                decided(gone, arrived)
            if there:
                see(run, there[0].record, there, place, arrived, later, decided)

        if not untold:
            then(None, round_trip)
        for record, group in by_type(untold):
            wanted = [each for each in group if lists.needs_item(each)]
            others = [each for each in group if each not in wanted]
            if wanted:
                look_up(run, record, wanted, place, round_trip, later, came)
            if others:
                see(run, record, others, place, round_trip, later, decided)


class _Round:
    """The requests of one round of a walk, and the answers so far."""

    def __init__(self, count: int, round_trip: int) -> None:
        self.left = count
        self.answers: Answers = [Part(())] * count
        self.round_trip = round_trip
        self.is_waiting = False

    def take(self, number: int, answer: Part | Exception, round_trip: int) -> None:
        self.left -= 1
        self.answers[number] = answer
        self.round_trip = max(self.round_trip, round_trip)
