"""What a naive reader finds by walks, and what it adds up: breadth first, one list after the other, over all items of a table."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import Any, cast

from keygraph.dynamo.items import Item
from keygraph.errors import BadUserInput, CorruptItem, Forbidden
from keygraph.graph import Graph
from keygraph.lists.aggregating import Aggregated
from keygraph.lists.listing import Located
from keygraph.model.paths import AccessPath
from keygraph.resolve.walks import NodeWalk
from keygraph.walks.reach import Reach, Reached, Standing
from keygraph.walks.walk import Hop, Vertex
from keygraph_resolvers.naming.names import connection_prefix
from keygraph_resolvers.read.cursors import Cursors
from keygraph_resolvers.read.walked import Behind, Counted, WalkCursors
from tests.resolvers.naive_lists import Entry, Info, NaiveLists, Thing, size_of


@dataclass(eq=False)
class ViaEntry(Entry):
    """An edge of a list that a walk has come over."""

    type_name: str


@dataclass(eq=False)
class Step:
    """A node that a walk comes to, by an edge of a list."""

    node: Vertex
    path: AccessPath
    owner: Vertex
    entry: Entry
    place: Any


@dataclass(eq=False)
class WalkEntry:
    """An edge of what a walk finds."""

    thing: Thing
    cursor: str
    via: Entry | None = None
    distance: int | None = None
    score: float | None = None
    paths: int | None = None


@dataclass(eq=False)
class Walked:
    """What a walk finds: all of it, and the page."""

    whole: Sequence[Vertex]
    page: list[WalkEntry]
    info: Any


class Refused:
    """What would be found by a walk that fails: each field that is asked of it says so."""

    def __init__(self, error: Exception) -> None:
        self._error = error

    def _refuse(self) -> Any:
        raise self._error

    whole = page = info = property(_refuse)


class _Run:
    """What cursors know of a run."""

    def __init__(self, graph: Graph, cursors: Cursors) -> None:
        self.graph, self.cursors = graph, cursors


class NaiveWalks:
    def __init__(self, graph: Graph, lists: NaiveLists, secret: bytes) -> None:
        self._lists = lists
        self._run = cast(Any, _Run(graph, Cursors(secret)))

    def found(
        self, walk: NodeWalk, owner: Thing, given: Mapping[str, Any], *, is_counted: bool
    ) -> Walked | Refused:
        if given.get("last") is not None:
            raise BadUserInput("last")
        size, _ = size_of(given)
        cursors = WalkCursors(self._run, walk, owner.identity)
        start = Vertex(owner.record, owner.identity)
        try:
            if walk.is_reach:
                return self._reached(walk, start, given, size, cursors, is_counted=is_counted)
            return self._ranked(walk, start, given, size, cursors)
        except (CorruptItem, Forbidden) as error:
            return Refused(error)

    def _steps(self, owner: Vertex, paths: Iterable[AccessPath]) -> Iterator[Step]:
        for path in paths:
            if path.owner is not owner.record:
                continue
            try:
                found = self._lists.list_of(path, Thing(*owner), {"first": 0} if not path.is_one else {})
            except BadUserInput:
                continue  # no such key
            whole = found.whole[:1] if path.is_one else found.whole
            for _, item, record in whole:
                identity = record.read_identity(item) or ()
                node = _far(path, identity, item)
                if node is not None:
                    cursor = self._run.cursors.of(found.neighbours).cursor(found.neighbours.place_of(item))
                    entry = ViaEntry(Thing(record, identity, item), cursor, f"{connection_prefix(path)}Edge")
                    yield Step(node, path, owner, entry, found.neighbours.place_of(item))

    def ways(
        self, start: Vertex, end: Vertex, paths: Sequence[AccessPath], most: int
    ) -> list[tuple[Step, ...]]:
        """Every shortest way of so many edges, along these lists."""
        if start == end:
            return [()]
        known, level = {start}, {start: [tuple[Step, ...]()]}
        for _ in range(most):
            found: dict[Vertex, list[tuple[Step, ...]]] = {}
            for node, ways in level.items():
                for step in self._steps(node, paths):
                    if step.node not in known:
                        found.setdefault(step.node, []).extend((*way, step) for way in ways)
            if end in found:
                return found[end]
            known |= {*found}
            level = found
        return []

    def _reached(
        self,
        walk: NodeWalk,
        start: Vertex,
        given: Mapping[str, Any],
        size: int,
        cursors: WalkCursors,
        *,
        is_counted: bool,
    ) -> Walked:
        depth = walk.options.depth or 0
        most = given.get("maxDistance") or depth
        if given.get("maxDistance") is not None and not 1 <= given["maxDistance"] <= depth:
            raise BadUserInput("maxDistance")
        before, counted = 0, None
        if given.get("after") is not None:
            before, _, _, counted = cursors.behind(given["after"])
        levels, known, found = [[start]], {start}, list[tuple[int, Step, int]]()
        while levels[-1] and len(levels) <= most:
            level: list[Vertex] = []
            for owner in levels[-1]:
                for step in self._steps(owner, walk.paths):
                    if step.node not in known:
                        known.add(step.node)
                        if step.node.record in walk.nodes:
                            found.append((len(levels), step, len(level)))
                        level.append(step.node)
            levels.append(level)
        whole = Reach(
            Standing(1, [start]),
            lambda each: [p for p in walk.paths if p.owner is each.record],
            depth,
            levels=levels,
        )
        if counted is None or counted.depth != most:
            counted = Counted(most, len(found)) if is_counted else None
        if self._run.graph.has_access_rules:
            counted = None

        def cursor(number: int) -> str:
            distance, step, place = found[number]
            hop = Hop(step.node, None, step.place)
            reached = Reached(step.node, distance, step.path, step.owner, hop, place)
            return cursors.of(Behind(number + 1, whole.behind(reached), 0, counted))

        page = [
            WalkEntry(Thing(*step.node), cursor(before + number), step.entry, distance)
            for number, (distance, step, _) in enumerate(found[before : before + size])
        ]
        return _walked([step.node for _, step, _ in found], page, before, size, given)

    def _ranked(
        self, walk: NodeWalk, start: Vertex, given: Mapping[str, Any], size: int, cursors: WalkCursors
    ) -> Walked:
        last = None if given.get("after") is None else cursors.node(given["after"])
        ways: list[tuple[Vertex, Any]] = [(start, 1)]
        first: set[Vertex] = set()
        for number, level in enumerate(walk.levels):
            steps = [step for owner, _ in ways for step in self._steps(owner, level) if step.node != start]
            weigh = self._weigher(walk) if number == len(walk.levels) - 1 else lambda step: 1
            ways = [(step.node, weigh(step)) for step in steps]
            first = first or {node for node, _ in ways}
        counted = Counter(node for node, _ in ways)
        scores: dict[Vertex, Any] = {}
        for node, weight in ways:
            scores[node] = scores.get(node, 0) + weight
        left_out = set() if walk.options.include_first or len(walk.levels) == 1 else first
        order = sorted(
            (node for node in counted if node not in left_out),
            key=lambda node: (-scores[node], node.record.name, node.identity),
        )
        before = 0
        if last is not None:
            before = order.index(last[1]) + 1 if last[1] in order else last[0]
        page = [
            WalkEntry(
                Thing(*node),
                cursors.of_node(node, before + number),
                None,
                None,
                float(scores[node]),
                counted[node],
            )
            for number, node in enumerate(order[before : before + size])
        ]
        return _walked(order, page, before, size, given, is_ranked=True)

    def _weigher(self, walk: NodeWalk) -> Callable[[Step], Any]:
        name = walk.options.weight

        def weigh(step: Step) -> Any:
            return 1 if name is None else self._value(step.entry.thing, name) or Decimal(0)

        return weigh

    def _value(self, thing: Thing, name: str) -> Any:
        return thing.record.reader(thing.record.fields[name])(cast(Item, thing.item))


@dataclass(eq=False)
class RankedInfo(Info):
    is_complete: bool = True


def _walked(
    whole: Sequence[Vertex],
    page: list[WalkEntry],
    before: int,
    size: int,
    given: Mapping[str, Any],
    *,
    is_ranked: bool = False,
) -> Walked:
    ends = (page[0].cursor, page[-1].cursor) if page else (None, None)
    has_before = before > 0 if is_ranked else given.get("after") is not None
    return Walked(whole, page, RankedInfo(len(whole) > before + size, has_before, *ends))


def _far(path: AccessPath, identity: tuple[str, ...], item: Item) -> Vertex | None:
    """The node to which an item leads; None where it holds no key of one."""
    record = path.record
    if path.far_end is None:
        return Vertex(record, identity)
    end = record.ends[path.far_end]
    try:
        told = (
            record.end_readers[end.name](identity)
            if end.name in record.key_fields
            else record.end_identity(item, end)
        )
        if told is None:
            return None
        (node, *_), own = end.nodes(told)
    except (CorruptItem, ValueError):
        return None
    return Vertex(node, own)


# --- Aggregates -----------------------------------------------------------------------------------------


@dataclass(eq=False)
class Sums:
    """An aggregate, or a group with its key."""

    of: Aggregated
    fields: Mapping[str, Any]
    key: Any = None
    located: Sequence[Located] = ()
    """The items of a list of several types."""


def summed(found: Sums, function: str, given: Mapping[str, Any]) -> Any:
    """A value of an aggregate."""
    if function in ("count", "key"):
        return found.of.count if function == "count" else found.key
    field = found.fields[given["field"].value]
    if function != "groupBy":
        return getattr(found.of, function)(field)
    first = given.get("first")
    if first is not None and not 0 <= first <= 100:
        raise BadUserInput("first")
    return [
        Sums(group, found.fields, key)
        for key, group in found.of.groups(field)[: 100 if first is None else first]
    ]
