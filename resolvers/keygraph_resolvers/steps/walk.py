"""Driving walks: reads what a walk wants through the scheduler, round by round, and gives it to the walk.

What is wanted in one round is under way at the same time, and a part that was read before in the operation is not read again.
A node that the viewer may not see is left out of what the walk is given, so that nothing behind it is found through it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from typing import Any, Generic, NamedTuple, TypeVar

from keygraph.dynamo.items import Item
from keygraph.lists.listing import Located
from keygraph.lists.reading import Extent, Found
from keygraph.model.paths import AccessPath
from keygraph.model.permissions import restricted_name
from keygraph.model.records import RecordType
from keygraph.walks.walk import Hop, Part, Vertex, Walk, Wanted
from keygraph_resolvers.read.access import is_readable
from keygraph_resolvers.read.connection import Connection, Edge, ListArguments
from keygraph_resolvers.read.loaders import PageOf
from keygraph_resolvers.read.meter import Read
from keygraph_resolvers.read.objects import Object, end_reader
from keygraph_resolvers.read.run import Run
from keygraph_resolvers.steps.get import keep_items, look_up

ResultT = TypeVar("ResultT")
Answers = list[Part | Exception]


class ReadEdge(NamedTuple):
    """An edge that a walk has come over, as it was read in its list."""

    connection: Connection
    located: Located

    def object(self) -> Edge:
        return Edge(self.connection, *self.located)


class WalkedLists:
    """The lists that walks of one run read, and which of them the viewer may read of a node."""

    def __init__(self, run: Run, paths: Iterable[AccessPath]) -> None:
        """Raises BadUserInput where a list cannot be read without arguments."""
        self.run = run
        self._arguments = {path: ListArguments(run, path, {}, frozenset()) for path in paths}
        self._ends = {path: _far_reader(path) for path in self._arguments}
        self._by_owner: dict[RecordType, tuple[AccessPath, ...]] = {}
        for path in self._arguments:
            if path.owner is not None:
                self._by_owner[path.owner] = (*self._by_owner.get(path.owner, ()), path)
        self._connections: dict[tuple[AccessPath, tuple[str, ...]], Connection] = {}
        self._allowed: dict[Vertex, tuple[AccessPath, ...] | None] = {}
        """For the nodes of which rules decide: their lists that may be read, None where the viewer does not see them."""

    def of(self, owner: Vertex) -> Sequence[AccessPath]:
        """The lists that are followed from a node."""
        allowed = self._allowed.get(owner, ())
        return allowed or (() if owner in self._allowed else self._by_owner.get(owner.record, ()))

    def connection(self, wanted: Wanted) -> Connection:
        """The list of an owner. Raises what using the arguments or the rules gives."""
        key = wanted.path, wanted.owner.identity
        found = self._connections.get(key)
        if found is None:
            owner = Object(wanted.owner.record, wanted.owner.identity)
            found = self._connections[key] = self._arguments[wanted.path].of(self.run, owner)
        return found

    def extent(self, wanted: Wanted) -> Extent:
        """The part of the list that is read."""
        arguments, path = self._arguments[wanted.path], wanted.path
        count = 1 if path.is_one else max(1, wanted.most // len(path.keys.shard_texts))
        return Extent(
            count, wanted.forward, wanted.after, budget=count, attributes=arguments.extent.attributes
        )

    def part(self, connection: Connection, extent: Extent, found: Found) -> Part:
        """What a walk is given of a part that was read. Raises CorruptItem where an item names no node."""
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
        """The nodes of which only their items tell whether the viewer sees them, and their lists."""
        access, found = self.run.access, []
        for node in dict.fromkeys(nodes) if access is not None else ():
            if access is None or node in self._allowed:
                continue
            record, identity = node
            decisions = [access.of_key(record, identity)]
            paths = self._by_owner.get(record, ())
            named = [(path, restricted_name(record, path.name)) for path in paths]
            told = {
                path: name is None or access.of_key(record, identity, "read", name) for path, name in named
            }
            if decisions[0] is False:
                self._allowed[node] = None
            elif all(isinstance(each, bool) for each in (*decisions, *told.values())):
                if not all(told.values()):
                    self._allowed[node] = tuple(path for path in paths if told[path])
            else:
                found.append(Object(record, identity))
        return found

    def decide(self, nodes: Iterable[tuple[Object, Item | Exception | None]]) -> None:
        """Decides of nodes that were read. Raises what reading one gave."""
        access = self.run.access
        came = [*nodes]
        there = {*keep_items(self.run, came)}
        for each, _ in came:
            if each.error is not None:
                raise each.error
            node, paths = Vertex(each.record, each.identity), self._by_owner.get(each.record, ())
            if access is None or each not in there or not access.of_item(*node, each.item or {}):
                self._allowed[node] = None
                continue
            named = [(path, restricted_name(each.record, path.name)) for path in paths]
            self._allowed[node] = tuple(
                path for path, name in named if name is None or is_readable(access, each, name)
            )

    def is_hidden(self, node: Vertex) -> bool:
        """Whether the viewer does not see a node."""
        return self._allowed.get(node, ()) is None


def _far_reader(path: AccessPath) -> Callable[[Located], Vertex | None]:
    """What gives the node to which an item of a list leads; None where there is none."""
    record = path.record
    if path.far_end is None:
        return lambda located: Vertex(record, located.identity)
    read_end = end_reader(record, record.ends[path.far_end])

    def read(located: Located) -> Vertex | None:
        found = read_end(Object(record, located.identity, located.item))
        return None if found is None else Vertex(found.record, found.identity)

    return read


class Walking(Generic[ResultT]):
    """One walk under way."""

    def __init__(
        self,
        lists: WalkedLists,
        walk: Walk[ResultT],
        place: str,
        later: frozenset[int],
        then: Callable[[ResultT | Exception, int], None],
    ) -> None:
        """`later` says in which of the next round trips keys are asked for when it is done. `then` is called with what the
        walk returns, or raises, and the round trip that is next."""
        self._lists = lists
        self._walk = walk
        self._place = place
        self._later = later
        self._then = then

    def start(self, start: Vertex, round_trip: int) -> None:
        """Begins with a node of which rules may decide which lists of it are followed."""
        self._when_decided([start], round_trip, self._go_on)

    def _go_on(self, answers: Answers | None, round_trip: int) -> None:
        """Gives the walk what it wanted (None: it has not begun), until it is done, or waits for something."""
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
            for number, each in enumerate(wanted):
                self._load(each, partial(self._came, now, number), round_trip)
            if now.left:
                now.is_waiting = True
                return
            # Everything was known already.
            answers, round_trip = now.answers, now.round_trip

    def _given(self, answers: Answers) -> Sequence[Wanted]:
        parts: list[Part] = []
        for each in answers:
            if isinstance(each, Exception):
                return self._walk.throw(each)
            parts.append(each)
        return self._walk.send(parts)

    def _load(self, wanted: Wanted, then: Callable[[Part | Exception, int], None], round_trip: int) -> None:
        lists = self._lists
        try:
            connection = lists.connection(wanted)
        except Exception as error:
            then(error, round_trip)
            return
        if connection.is_closed:
            then(Part(()), round_trip)
            return
        extent = lists.extent(wanted)
        read = Read((self._place,), round_trip, self._later, goes_on=True)
        request = PageOf(connection.neighbours, extent)
        lists.run.scheduler.load(request, read, partial(self._page_came, connection, extent, then))

    def _page_came(
        self,
        connection: Connection,
        extent: Extent,
        then: Callable[[Part | Exception, int], None],
        answer: Found | Exception,
        round_trip: int,
    ) -> None:
        if isinstance(answer, Exception):
            then(answer, round_trip)
            return
        try:
            part = self._lists.part(connection, extent, answer)
        except Exception as error:
            then(error, round_trip)
            return

        def decided(failed: Answers | None, arrived: int) -> None:
            if failed:
                then(failed[0], arrived)
                return
            hidden = self._lists.is_hidden
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
        """Goes on when it is known what of these nodes the viewer sees."""
        untold = self._lists.undecided(nodes)
        left, latest, failed = len(untold), round_trip, Answers()

        def came(some: list[tuple[Any, Item | Exception | None]], arrived: int) -> None:
            nonlocal left, latest
            try:
                self._lists.decide(some)
            except Exception as error:
                failed.append(error)
            left, latest = left - len(some), max(latest, arrived)
            if not left:
                then(failed or None, latest)

        if not untold:
            then(None, round_trip)
        for record, group in _by_type(untold).items():
            look_up(self._lists.run, record, group, self._place, round_trip, self._later, came)


class _Round:
    """What a walk wants at the same time, as far as it has come."""

    def __init__(self, count: int, round_trip: int) -> None:
        self.left = count
        self.answers: Answers = [Part(())] * count
        self.round_trip = round_trip
        self.is_waiting = False

    def take(self, number: int, answer: Part | Exception, round_trip: int) -> None:
        self.left -= 1
        self.answers[number] = answer
        self.round_trip = max(self.round_trip, round_trip)


def _by_type(objects: Iterable[Object]) -> Mapping[RecordType, list[Object]]:
    found: dict[RecordType, list[Object]] = {}
    for each in objects:
        found.setdefault(each.record, []).append(each)
    return found
