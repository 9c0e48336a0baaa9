"""What a naive reader finds by walks, and what it adds up: breadth first, one list after the other, over all items of a table."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from decimal import Context, Decimal
from functools import reduce
from typing import Any, cast

from keygraph.dynamo.items import Item
from keygraph.errors import BadUserInput, CorruptItem, Forbidden
from keygraph.graph import Graph
from keygraph.keys.types import in_utc, moment_text
from keygraph.lists.aggregating import AggregateField, plain
from keygraph.lists.extent import Located, Place
from keygraph.model.paths import AccessPath, ListOfIds, WalkedPath
from keygraph.model.records import RecordType
from keygraph.resolve.walks import NodeWalk
from keygraph.walks.reach import Reach, Reached, Standing
from keygraph.walks.walk import Hop, Vertex
from keygraph_resolvers.naming.names import connection_prefix
from keygraph_resolvers.read.cursors import Cursors
from keygraph_resolvers.read.walked import Behind, WalkCount, WalkCursors
from tests.resolvers.naive_lists import Entry, Info, NaiveLists, Thing, size_of


@dataclass(eq=False)
class ViaEntry(Entry):
    """An edge of a list that a walk has come over."""

    type_name: str


@dataclass(eq=False)
class Step:
    """A node that a walk comes to, by an edge of a list."""

    node: Vertex
    path: WalkedPath
    owner: Vertex
    entry: Entry | None
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

    rights: str | None = None

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

    def _steps(self, owner: Vertex, paths: Iterable[WalkedPath]) -> Iterator[Step]:
        for path in paths:
            if path.owner is not owner.record:
                continue
            if isinstance(path, ListOfIds):
                yield from self._ids(owner, path)
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
                    cursor = self._run.cursors.of(found.neighbours).cursor(
                        found.neighbours, found.neighbours.place_of(item)
                    )
                    entry = ViaEntry(Thing(record, identity, item), cursor, f"{connection_prefix(path)}Edge")
                    yield Step(node, path, owner, entry, found.neighbours.place_of(item))

    def _ids(self, owner: Vertex, path: ListOfIds) -> Iterator[Step]:
        item = self._lists.item_of(*owner)
        try:
            ids = None if item is None else owner.record.member_identities(item, path.end)
        except CorruptItem:
            return
        for number, identity in enumerate(ids or (), 1):
            if not isinstance(identity, CorruptItem):
                try:
                    (node, *_), own = path.end.nodes(identity)
                except ValueError:
                    continue
                yield Step(Vertex(node, own), path, owner, None, Place(0, (Decimal(number),)))

    def ways(
        self, start: Vertex, end: Vertex, paths: Sequence[WalkedPath], most: int
    ) -> list[tuple[Step, ...]]:
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
            counted = WalkCount(most, len(found)) if is_counted else None
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
            if name is None or step.entry is None:
                return 1
            return self._value(step.entry.thing, name) or Decimal(0)

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

    record: RecordType
    items: Sequence[Located]
    fields: Mapping[str, AggregateField]
    count: int
    """Of the items, also of those that are not there."""
    located: Sequence[Located]
    """The items of the whole list, of which all must be readable."""
    key: Any = None

    def values(self, field: AggregateField) -> list[Any]:
        return [value for each in self.items if (value := _aggregated_value(each, field)) is not None]


def _aggregated_value(located: Located, field: AggregateField) -> Any:
    """A field as a model sees it, or a part of the key of the node at an end."""
    record, name, number = located.record, field.source, field.number
    try:
        if number is None and name in record.key_fields:
            place, value_of = record.places_in_identity[name]
            return value_of(located.identity[place])
        if number is None:
            return record.reader(record.fields[name])(located.item)
        end, in_key = record.ends[name], name in record.key_fields
        texts = (
            record.end_readers[name](located.identity) if in_key else record.end_identity(located.item, end)
        )
        return end.identity[number].text.value(texts[number]) if texts and texts[number] else None
    except (ValueError, TypeError):
        raise CorruptItem("a value that does not fit") from None


def summed(found: Sums, function: str, given: Mapping[str, Any]) -> Any:
    if function in ("count", "key"):
        return found.count if function == "count" else found.key
    field = found.fields[given["field"].value]
    if function == "groupBy":
        return _groups(found, field, given.get("first"))
    values = found.values(field)
    if function in ("min", "max"):
        # Keys are in the order of their texts, in which a part of a second is before the whole one.
        moment = moment_text if field.is_first else in_utc
        order = moment if field.type.kind == "datetime" else None
        return plain((max if function == "max" else min)(values, key=order, default=None))
    total = reduce(Context(prec=1000).add, (Decimal(str(value)) for value in values), Decimal(0))
    if function == "avg":
        return Context(prec=38).divide(total, Decimal(len(values))) if values else None
    if field.type.kind == "float":
        return Context(prec=38).plus(total)
    if len(total.normalize(Context(prec=1000)).as_tuple().digits) > 38:
        raise BadUserInput("too many digits")
    return total


def _groups(found: Sums, field: Any, first: int | None) -> list[Sums]:
    if first is not None and not 0 <= first <= 100:
        raise BadUserInput("first")
    groups: dict[Any, list[Located]] = {}
    for each in found.items:
        groups.setdefault(plain(_aggregated_value(each, field)), []).append(each)
    order = sorted(groups.items(), key=lambda group: (-len(group[1]), group[0] is None, str(group[0])))
    return [
        Sums(found.record, items, found.fields, len(items), found.located, key)
        for key, items in order[: 100 if first is None else first]
    ]
