"""Drives walks: requests what a walk wants, round by round, and passes it to the walk.

The requests of one round are in flight at the same time, and a part that the operation has read before is not read
again. Nodes that the viewer may not see are withheld from the walk, so nothing beyond them is found through them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from itertools import chain
from typing import Any, Generic, NamedTuple, TypeVar, cast

from keygraph.errors import BadUserInput, CorruptItem
from keygraph.lists.extent import Extent, Located, Place
from keygraph.lists.query import ListQuery
from keygraph.lists.reading import Found
from keygraph.model.paths import AccessPath, ListOfIds, WalkedPath, with_edges
from keygraph.model.permissions import Permissions, restricted_name
from keygraph.model.records import RecordType
from keygraph.walks.walk import Budget, Hop, Part, Vertex, Walk, Wanted
from keygraph_resolvers.engine.requests import All, Begun, Beside, GetItems, Load, Pause, Reads, Start
from keygraph_resolvers.engine.worst import Described, KeyLookups, NodeEnd, StepStart, Wait, Worst
from keygraph_resolvers.errors import as_value
from keygraph_resolvers.read.access import forbidden
from keygraph_resolvers.read.connection import Connection, ListArguments
from keygraph_resolvers.read.objects import Object, check_key, end_reader, members_of
from keygraph_resolvers.read.run import Run
from keygraph_resolvers.read.walked import ViaEdge
from keygraph_resolvers.steps.get import by_type, filter_visible, keep_items, look_up, visible_so_far
from keygraph_resolvers.steps.lists import decided_lists
from keygraph_resolvers.steps.partial_page import whole_edges
from keygraph_resolvers.steps.selection import SelectedField
from keygraph_resolvers.steps.step import Step

ResultT = TypeVar("ResultT")


class ReadEdge(NamedTuple):
    """An edge that a walk followed, as it was read in its list."""

    connection: Connection
    located: Located

    def object(self) -> ViaEdge:
        return ViaEdge(self.connection.cursors, self.located)

    def object_in(self, connection: Connection, end: Vertex) -> ViaEdge:
        """The same edge in the list that leads to this end, if it was read from there in another list."""
        item, identity, record = self.located
        path = connection.query.path
        if record.is_mirrored and path.far_end is not None:
            far = record.ends[path.far_end].identity_of(*end)
            texts = path.edge_texts(connection.query.owner or (), far)
            own = zip(record.identity, identity, strict=True)
            identity = tuple(texts.get(slot.name, text) or "" for slot, text in own)
        return ViaEdge(connection.cursors, Located(item, identity, record), is_read_elsewhere=True)


@dataclass(frozen=True, slots=True)
class EdgesStep:
    """Continues from edges that walks followed, by their lists."""

    selected: SelectedField
    steps: Mapping[AccessPath, Step]
    partial: frozenset[AccessPath]
    """The lists read from an index that lacks a selected field."""

    def run(self, op: Run, edges: Sequence[ViaEdge]) -> Reads[None]:
        """Continues from edges, which are read first if their list has less than is selected."""
        by_path = dict[AccessPath, list[ViaEdge]]()
        for each in edges:
            by_path.setdefault(each.cursors.query.path, []).append(each)
        for path, group in by_path.items():
            unread = [each for each in group if each.is_read_elsewhere or path in self.partial]
            read = [each for each in group if each not in unread]
            if read:
                yield Start(self.steps[path], read)
            if unread:
                yield Beside(self._run_unread(op, self.steps[path], unread))

    def _run_unread(self, op: Run, step: Step, edges: Sequence[ViaEdge]) -> Reads[None]:
        wanted = [(each, key) for each in edges for key in op.graph.table_keys(each.record, each.identity)]
        # An edge that may be in any of several shards has an item under at most one key.
        answers: dict[ViaEdge, Any] = {}
        for each, answer in (yield GetItems(wanted, "edges")):
            answers[each] = answers.get(each) or answer
        for each in edges:
            if each.is_read_elsewhere and isinstance(answers[each], dict):
                each.listed = answers[each]
        there = {*whole_edges(op, edges, [*answers.items()])}
        for each in edges:
            each.is_missing = each not in there
        yield Start(step, [each for each in edges if each in there and each.error is None])


def continue_edges(
    op: Run,
    edges: Sequence[Object],
    ends: Iterable[Vertex],
    nodes: Iterable[tuple[SelectedField, Step]],
    lists: Iterable[tuple[EdgesStep, Sequence[ViaEdge | None]]],
) -> Begun:
    """Returns what continues from edges of an answer: from the nodes at their ends, and from the edges of lists that
    led there; None for an id."""
    begun: Begun = []
    for selected, step in nodes:
        objects = [Object(*each) for each in ends]
        for edge, node in zip(edges, objects, strict=True):
            edge.found[selected] = node
        begun.append(Start(step, objects))
    for edges_step, of_lists in lists:
        for edge, of_list in zip(edges, of_lists, strict=True):
            edge.found[edges_step.selected] = of_list
        begun.append(Beside(edges_step.run(op, [each for each in of_lists if each is not None])))
    return begun


@dataclass(frozen=True, slots=True)
class WalkPage:
    """The fields that show edges and nodes of a walk, with the steps that continue from them."""

    edges: Sequence[tuple[SelectedField, Sequence[tuple[SelectedField, Step]], Sequence[EdgesStep]]]
    """Each with the fields of an edge that show its node, and the steps of the edge that led to it."""
    nodes: Sequence[tuple[SelectedField, Step]]

    @property
    def vias(self) -> list[EdgesStep]:
        return [via for _, _, vias in self.edges for via in vias]

    def worst(self, keys: tuple[str, str], unread: tuple[RecordType, ...] = ()) -> Worst:
        """Yields what continues from an edge. `keys` says where the keys of its node and of the edge itself are from;
        `unread` are edges that may have been read in another list."""
        of_nodes, of_edges = keys
        for _, step in (*(each for _, nodes, _ in self.edges for each in nodes), *self.nodes):
            yield StepStart(step, key=of_nodes)
        vias = self.vias
        lookups = [unread] * len(vias) if unread else []
        lookups += [tuple(path.records) for each in vias for path in each.partial]
        if lookups:
            yield Described(kind="get node", records=tuple(dict.fromkeys(chain(*lookups))), key=of_edges)
            for records in lookups:
                yield KeyLookups(records)
            yield NodeEnd()
        if vias:
            yield Wait("edges", 1, 0, usual=min(1, len(lookups)))
        for via in vias:
            for step in dict.fromkeys(via.steps.values()):
                yield StepStart(step, key=of_edges)


class WalkedLists:
    """The lists that the walks of one run read, and which of them the viewer may read for each node."""

    def __init__(self, run: Run, paths: Iterable[WalkedPath], against: Iterable[AccessPath] = ()) -> None:
        """`against` are read as well, but are not followed from nodes. Raises BadUserInput if a list has required
        arguments."""
        self.run = run
        self.is_shared = False
        """Whether anything else may request the same parts."""
        self._parts: dict[ListQuery, Part] = {}
        """The shared parts that were read."""
        own = dict.fromkeys(paths)
        self._against = frozenset(against)
        read = (*with_edges(own), *self._against)
        self._arguments = {path: ListArguments(run, path, {}, frozenset()) for path in read}
        self._ends = {path: _far_reader(path) for path in self._arguments}
        self._by_owner: dict[RecordType, tuple[WalkedPath, ...]] = {}
        for path in own:
            if path.owner is not None:
                self._by_owner[path.owner] = (*self._by_owner.get(path.owner, ()), path)
        restricted = {
            record: [path.name for path in paths if restricted_name(record, path.name)]
            for record, paths in self._by_owner.items()
        }
        self.restricted = {record: names for record, names in restricted.items() if names}
        """The lists that not everybody may read who sees a node of the type."""
        self._connections: dict[tuple[AccessPath, tuple[str, ...]], Connection] = {}
        self._allowed: dict[Vertex, tuple[WalkedPath, ...] | None] = {}
        """For nodes with undecided rules: the lists that may be read; None if the viewer does not see the node."""

    @classmethod
    def shared(
        cls, run: Run, paths: Iterable[WalkedPath], against: Iterable[AccessPath] = (), *, is_alone: bool
    ) -> WalkedLists:
        """Returns the lists, which all walks of the run along the same paths have in common.

        `is_alone`: nothing else in the operation reads them.
        """
        key = WalkedLists, tuple(paths), tuple(against)
        found: WalkedLists = run.walked.get(key) or run.walked.setdefault(key, cls(run, *key[1:]))
        found.is_shared = found.is_shared or not is_alone
        return found

    def of(self, owner: Vertex) -> Sequence[WalkedPath]:
        """The lists that are followed from a node."""
        allowed = self._allowed.get(owner, ())
        return allowed or (() if owner in self._allowed else self.of_type(owner.record))

    def any_described(self, path: AccessPath) -> ListQuery:
        """A list of an arbitrary owner, with placeholders."""
        return self._arguments[path].any_described

    def of_type(self, record: RecordType) -> Sequence[WalkedPath]:
        return self._by_owner.get(record, ())

    def is_refused(self, owner: Vertex) -> bool:
        """Whether the viewer sees a node but may read none of its lists."""
        return self._allowed.get(owner) == () and bool(self.of_type(owner.record))

    def is_closed(self, wanted: Wanted) -> bool:
        """Whether it is known that the viewer may not read a list of a node. A list that is read against its direction
        is not the node's: it is followed from the nodes that it finds."""
        own = () if wanted.path in self._against else self.of_type(wanted.owner.record)
        return wanted.path in own and wanted.path not in (self._allowed.get(wanted.owner, own) or ())

    def connection(self, path: AccessPath, owner: Vertex) -> Connection:
        """The list of an owner. Raises errors of its arguments or rules."""
        key = path, owner.identity
        found = self._connections.get(key)
        if found is None:
            found = self._arguments[path].of(self.run, Object(*owner))
            if not found.unknown:
                self._connections[key] = found
        return found

    def forget(self, path: AccessPath, owner: Vertex) -> None:
        """Forgets the list of an owner, so that it is made again on the next request."""
        self._connections.pop((path, owner.identity), None)

    def extent(self, path: AccessPath, wanted: Wanted) -> Extent:
        arguments = self._arguments[path]
        count = 1 if path.is_one else max(1, wanted.most // len(path.keys.shard_texts))
        return Extent(
            count, wanted.forward, wanted.after, budget=count, attributes=arguments.extent.attributes
        )

    def part_of_item(self, path: ListOfIds, wanted: Wanted, node: Object | None) -> Part:
        """Returns the part of a list of ids from the node's item, which was read; None if it has no list. Raises the
        error of reading it, and the refusal if that takes too much memory."""
        if node is None or node.is_missing:
            return Part(())
        if node.error is not None:
            raise node.error
        start = 0 if wanted.after is None else int(wanted.after.position[0])
        try:
            part = slice(start, start + wanted.most + 1)
            found = members_of(self.run.graph, node.record, path.end, node, part) or []
        except CorruptItem:
            return Part(())
        ids = enumerate(found[: wanted.most], start + 1)
        places = [(each, Place(0, (Decimal(number),))) for number, each in ids]
        hops = [
            Hop(Vertex(each.record, each.identity), None, place)
            for each, place in places
            if isinstance(each, Object)
        ]
        return Part(hops, places[-1][1] if len(found) > len(places) else None, len(places))

    def part(self, path: AccessPath, wanted: Wanted, request: ListQuery, found: Found) -> tuple[Part, int]:
        """Returns the part for the walk from a page that was read, and the bytes that are counted for it. Raises the
        refusal if that takes too much memory."""
        part, taken = self._parts.get(request), 0
        if part is None:
            part = self._made_part(self.connection(path, wanted.owner), request.extent, found)
            if self.run.meter.holding is not None:
                taken = self.run.meter.holding.take_walked(len(part.hops), 0)
            if self.is_shared:
                self._parts[request] = part
        return part, taken

    def _made_part(self, connection: Connection, extent: Extent, found: Found) -> Part:
        query, read_far = connection.query, self._ends[connection.query.path]
        hops = []
        for located in found.items:
            node = read_far(located)
            if node is not None:
                hops.append(Hop(node, ReadEdge(connection, located), query.place_of(located.item)))
        after = found.resume
        if after is None and len(found.items) >= extent.count and not query.path.is_one:
            after = query.place_of(found.items[-1].item)
        return Part(hops[:1] if query.path.is_one else hops, after, found.looked_at)

    # --- What the viewer may see --------------------------------------------------------------------------

    def decide(self, access: Permissions, node: Object, *, is_kept: bool) -> None:
        """Records whether the viewer sees a node and which of its lists they may read; `is_kept`: even if it is all."""
        vertex, names = Vertex(node.record, node.identity), self.restricted.get(node.record, ())
        if node.is_missing:
            self._allowed[vertex] = None
            return
        refused = {name for name in names if not access.allows(node, "read", name)}
        if refused or is_kept:
            paths = self.of_type(node.record)
            self._allowed[vertex] = tuple(path for path in paths if path.name not in refused)

    def is_decided(self, access: Permissions, node: Vertex) -> bool:
        """Whether it is known whether the viewer sees a node and may read its lists."""
        is_open = access.rule(node.record) is True and node.record not in self.restricted
        return is_open or node in self._allowed

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


@dataclass(eq=False)
class Walking(Generic[ResultT]):
    """A walk in progress."""

    _lists: WalkedLists
    _walk: Walk[ResultT]
    _budget: Budget
    _remembered: int = 0
    """How many of its nodes are counted."""
    _unreleased: int = 0
    """The bytes of pages that nothing but the walk keeps, until it has taken them."""
    _known: frozenset[Vertex] = frozenset()

    def run(self, start: Vertex, *others: Vertex, known: Iterable[Vertex] = ()) -> Reads[ResultT | Exception]:
        """Returns the walk's result, or its error. It begins with a node and others that the walk knows, after rules have
        decided on them. Nodes that a cursor holds are decided when the walk continues from them."""
        self._known = frozenset(known)
        answers: Any = None
        try:
            yield from self._decide([start, *others])
            if self._lists.is_refused(start):
                path, *_ = self._lists.of_type(start.record)
                raise forbidden(start.record, path.name)
            while True:
                wanted = self._walk.send(answers)
                self._count_memory()
                if wanted:
                    answers = yield from self._parts(wanted)
                else:
                    yield Pause()
                    answers = ()
        except StopIteration as end:
            self._count_memory()
            return cast(ResultT, end.value)
        except Exception as error:
            return as_value(error)

    def _count_memory(self) -> None:
        """Counts what the walk remembers now, and no longer what it has taken. Raises the refusal if that is too much."""
        holding, new = self._lists.run.meter.holding, self._budget.remembered - self._remembered
        if holding is not None:
            holding.give_back(self._unreleased)
            holding.take_walked(0, new)
        self._unreleased, self._remembered = 0, self._budget.remembered

    def _parts(self, wanted: Sequence[Wanted]) -> Reads[Sequence[Part]]:
        """Returns parts of lists. The items that hold lists of ids are read together."""
        ids = [(each.path, each) for each in wanted if isinstance(each.path, ListOfIds)]
        reads = [self._part(each.path, each) for each in wanted if isinstance(each.path, AccessPath)]
        of_ids = [self._parts_of_items(ids)] if ids else []
        answers = yield All([_or_error(each) for each in (*of_ids, *reads)])
        for error in answers:
            if isinstance(error, Exception):
                raise error
        if not ids:
            return cast(Sequence[Part], answers)
        both = iter(answers[0]), iter(answers[1:])
        return [next(both[isinstance(each.path, AccessPath)]) for each in wanted]

    def _parts_of_items(self, ids: Sequence[tuple[ListOfIds, Wanted]]) -> Reads[list[Part]]:
        """Returns parts of lists of ids, as far as the viewer sees them."""
        lists, holding = self._lists, self._lists.run.meter.holding
        yield from self._decide([each.owner for _, each in ids if each.owner in self._known])
        nodes: dict[Vertex, Object] = {}
        for path, each in ids:
            owner = Object(*each.owner)
            try:
                check_key(self._lists.run.graph, owner, path.owner, path.name)
            except CorruptItem:
                continue  # an item names a node that cannot exist
            if not lists.is_closed(each):
                nodes[each.owner] = owner
        groups = [look_up(self._lists.run, *each, "walk") for each in by_type(nodes.values())]
        for answers in (yield All(groups)):
            keep_items(self._lists.run, answers)
        parts = [lists.part_of_item(path, each, nodes.get(each.owner)) for path, each in ids]
        if holding is not None:
            self._unreleased += sum(holding.take_walked(len(part.hops), 0) for part in parts)
        yield from self._decide([hop.node for each in parts for hop in each.hops])
        return [self._without_hidden(each) for each in parts]

    def _part(self, path: AccessPath, wanted: Wanted) -> Reads[Part]:
        """Returns a part of a list, as far as the viewer sees it."""
        lists = self._lists
        if wanted.owner in self._known:
            yield from self._decide([wanted.owner])
        if lists.is_closed(wanted):
            return Part(())

        def make() -> list[Connection]:
            return [lists.connection(path, wanted.owner)]

        try:
            [connection] = yield from decided_lists(self._lists.run, make(), make, "walk")
        except BadUserInput:
            return Part(())  # the item holds an invalid key for this node, which has no lists
        if connection.is_closed:
            return Part(())
        request = connection.query.part(lists.extent(path, wanted))
        answer, held = yield Load(request, "walk", goes_on=True, with_size=True)
        if isinstance(answer, Exception):
            raise answer
        part, taken = lists.part(path, wanted, request, answer)
        if not lists.is_shared:
            self._lists.run.neighbours.forget(request)
            self._unreleased += held + taken
            if part.after is None:
                lists.forget(path, wanted.owner)
        yield from self._decide([hop.node for hop in part.hops])
        return self._without_hidden(part)

    def _without_hidden(self, part: Part) -> Part:
        """Returns a part without the nodes that the viewer does not see."""
        visible = [hop for hop in part.hops if not self._lists.is_hidden(hop.node)]
        return part._replace(hops=visible) if len(visible) < len(part.hops) else part

    def _decide(self, nodes: Iterable[Vertex]) -> Reads[None]:
        """Decides which of these nodes the viewer sees. Raises an error of reading what decides it."""
        op, lists, access = self._lists.run, self._lists, self._lists.run.access
        if access is None:
            return
        new = [Object(*each) for each in dict.fromkeys(nodes) if not lists.is_decided(access, each)]
        gates, kept = list[Reads[list[Object]]](), set[Object]()
        for record, objects in by_type(new):
            names = lists.restricted.get(record, ())
            _, undecided = visible_so_far(access, record, objects, names)
            if undecided:
                gates.append(filter_visible(op, record, undecided, "walk", names=names))
                kept |= {*undecided}
        if gates:
            yield All(gates)
        for node in new:
            if node.error is not None:
                raise node.error
            lists.decide(access, node, is_kept=node in kept)


def _or_error(reads: Reads[ResultT]) -> Reads[ResultT | Exception]:
    """Returns what a generator returns, or the error that it raises."""
    try:
        return (yield from reads)
    except Exception as error:
        return as_value(error)
