"""The walks that nodes declare: reach and ranking. They walk by keys; nodes are read only if they are shown."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence, Set
from dataclasses import KW_ONLY, InitVar, dataclass
from functools import cache, partial
from typing import Any
from weakref import ref

from keygraph.errors import again
from keygraph.model.paths import AccessPath, ListOfIds, WalkedPath, with_edges
from keygraph.model.permissions import restricted_name
from keygraph.model.records import RecordType
from keygraph.resolve.walks import NodeWalk
from keygraph.walks.keeping import KeptNodes, read_kept
from keygraph.walks.ranking import Ranking, Weights, rank
from keygraph.walks.reach import Reach, Requested, from_node, reach
from keygraph.walks.walk import Budget, Hop, Vertex
from keygraph_resolvers.engine.requests import All, Beside, Pause, Reads, Start, Work
from keygraph_resolvers.engine.worst import (
    KEY_OF,
    Described,
    KeyLookups,
    NodeEnd,
    StepStart,
    Times,
    Worst,
    weakly,
)
from keygraph_resolvers.errors import as_value
from keygraph_resolvers.read.access import forbidden, without_refused
from keygraph_resolvers.read.aggregates import RequestedAggregate
from keygraph_resolvers.read.objects import ListObject, Object
from keygraph_resolvers.read.run import Run
from keygraph_resolvers.read.walked import Behind, WalkArguments, WalkCount, WalkCursors, WalkEdge, WalkEnds
from keygraph_resolvers.steps.get import by_type, filter_visible, keep_items, look_up, worst_of_visible
from keygraph_resolvers.steps.lists import why_not_consistent
from keygraph_resolvers.steps.selection import SelectedField
from keygraph_resolvers.steps.step import Step
from keygraph_resolvers.steps.walks.walk import WalkedLists, Walking, WalkPage, continue_edges
from keygraph_resolvers.steps.walks.worst import WalkedList, WalkMost, needed_of

_KEYS = (f"{KEY_OF}the node found", f"{KEY_OF}the edge found")


@dataclass(eq=False)
class NodeWalkStep(Step):
    """Walks from some nodes."""

    selected: SelectedField
    walk: NodeWalk
    page: WalkPage | None
    _: KW_ONLY
    has_total: bool
    looks_ahead: bool
    """Whether the client asks for `hasNextPage`."""
    is_consistent: InitVar[bool]
    """Whether it asks for consistent reads."""
    aggregates: Sequence[RequestedAggregate] = ()
    is_alone: bool = False
    """Whether it starts from at most one node, and nothing else in the operation reads its lists."""

    def __post_init__(self, is_consistent: bool) -> None:
        selected, walk = self.selected, self.walk
        self.suffix = f".{selected.key}"
        self._restricted = restricted_name(walk.owner, walk.name)
        self._refusal = (
            next(filter(None, map(why_not_consistent, self.reads)), None) if is_consistent else None
        )
        self.weights = Weights(walk.options)
        self._node = Described(
            kind="walk",
            records=tuple(walk.nodes),
            step=ref(self),
            field=selected,
            page=weakly(self._page_text),
            arguments=weakly(self.arguments),
            lists=weakly(self._levels),
            key=f"{KEY_OF}{walk.owner.name}",
        )

    @property
    def reads(self) -> Iterable[WalkedPath]:
        return self.walk.paths

    @property
    def needed(self) -> Iterator[tuple[RecordType, frozenset[str]]]:
        """The fields that it needs of its lists' items, and of nodes with access rules."""
        yield from needed_of(self.walk.paths)
        for path in with_edges(self.walk.levels[-1]):
            yield path.record, self.walk.options.weighing
        for aggregate in self.aggregates:
            yield aggregate.record, aggregate.needed
        for record in self._nodes:
            if record.access is not None:
                names = [each.name for each in self.walk.paths if each.owner is record]
                yield record, frozenset(name for each in names for name in record.access.names("read", each))

    @property
    def looked_for(self) -> Iterator[RecordType]:
        """The types of nodes that it may read by key for lists of ids, access rules or aggregates."""
        read = {aggregate.record for aggregate in self.aggregates}
        read |= {path.owner for path in self.walk.paths if isinstance(path, ListOfIds)}
        return (record for record in self._nodes if record.access is not None or record in read)

    @property
    def _nodes(self) -> tuple[RecordType, ...]:
        found = (node for path in self.walk.paths for node in path.nodes)
        return tuple(dict.fromkeys((self.walk.owner, *found)))

    @property
    def looked_for_edges(self) -> Sequence[AccessPath]:
        """The lists whose edges it may read by key."""
        return () if self.page is None else [path for via in self.page.vias for path in via.partial]

    def arguments(self, run: Run) -> WalkArguments:
        """The arguments, which all owners share. Raises BadUserInput, or GraphQLError."""
        if self._refusal is not None:
            raise again(self._refusal)
        return self.selected.cached(run, lambda given: WalkArguments(run, self.walk, given))

    @property
    def walks_all(self) -> bool:
        """Whether a selected field needs the walk to reach its end."""
        return self.has_total or bool(self.aggregates)

    def lists(self, run: Run) -> WalkedLists:
        is_alone = self.is_alone and not self.walk.may_read_again
        return WalkedLists.shared(run, self.walk.paths, is_alone=is_alone)

    # --- Running ------------------------------------------------------------------------------------------

    def run(self, op: Run, objects: Sequence[Object]) -> Reads[None]:
        if self._restricted is not None:
            objects = without_refused(op, objects, self.selected, self._restricted)
        for owner in objects:
            try:
                one = _OneWalk(self, op, self.arguments(op), owner)
            except Exception as error:
                op.fail(owner.found, self.selected, error)
                continue
            owner.found[self.selected] = one.found
            if self.page is not None or self.walks_all:
                yield Beside(one.read())

    # --- What it costs ------------------------------------------------------------------------------------

    def worst(self, run: Run) -> Worst:
        if self.page is not None or self.walks_all:
            yield self._node
        try:
            arguments = self.arguments(run)
        except Exception:
            return  # nothing is read; the answer says why
        page, size = self.page, arguments.size
        # A ranking is computed whichever of its pages is shown.
        shows = page is not None and (size + self.looks_ahead > 0 or not self.walk.is_reach)
        if not self.walks_all and not shows:
            return
        levels = arguments.depth if self.walk.is_reach else len(self.walk.levels)
        paths = self.walk.paths
        most = WalkMost(WalkedLists(run, paths), paths, self._nodes, arguments.budget, levels)
        # A page that continues from a cursor does not count what is before it.
        walks = 1 + (self.walk.is_reach and self.walks_all and arguments.after is not None)
        # A walk that continues does not know its start.
        keys = (most.items * (walks if arguments.after is None else walks + 1)) + 1
        yield from most.requests(walks, keys, levels)
        for aggregate in self.aggregates:
            if not aggregate.counts_only:
                node = Described(kind="get node", records=(aggregate.record,), key=_KEYS[0])
                yield node
                yield KeyLookups(node.records, most.items)
                yield NodeEnd()
        if page is not None and size:
            yield Times(size)
            yield from page.worst(_KEYS)

    # --- How it is explained --------------------------------------------------------------------------------

    def _page_text(self, _: Run, text: str) -> str:
        return text if self.page is not None else ""

    def _levels(self, run: Run) -> Iterator[StepStart]:
        """Yields the lists of the first levels; the third one stands for all that follow."""
        arguments, walk = self.arguments(run), self.walk
        levels = walk.levels[:1] * arguments.depth if walk.is_reach else walk.levels
        most = 1
        for number, level in enumerate(levels[:3], 1):
            has_more = number == 3 < len(levels)
            numbers = f"levels {number} to {len(levels)}" if has_more else f"level {number}"
            for path in level:
                if number > 1 or path.owner is walk.owner:
                    lists = f"{most:,} list{'s' * (most > 1)}"
                    page = f"{numbers}: at most {lists}, {arguments.budget:,} items in all"
                    walked, later = WalkedList(path, arguments.budget, page), number - 1
                    yield StepStart(walked, number, (later, later), KEY_OF)
            most = arguments.budget


class KeptWalkStep(NodeWalkStep):
    """Answers from what the items of some nodes keep of a walk."""

    reads = ()
    looked_for_edges = ()

    @property
    def needed(self) -> Iterator[tuple[RecordType, frozenset[str]]]:
        """What decides whether the viewer sees the nodes."""
        return ((each, each.access.names("read")) for each in self.walk.nodes if each.access is not None)

    @property
    def looked_for(self) -> Iterator[RecordType]:
        return (record for record in self.walk.nodes if record.access is not None)

    def run(self, op: Run, objects: Sequence[Object]) -> Reads[None]:
        selected, walk = self.selected, self.walk
        if self._restricted is not None:
            objects = without_refused(op, objects, selected, self._restricted)
        read = walk.owner.reader(walk.owner.fields[walk.name])
        for owner in objects:
            try:
                value = read(owner.read_item(walk.name))
                one = None if value is None else _OneWalk(self, op, self.arguments(op), owner)
                kept = None if one is None else read_kept(walk, value)
            except Exception as error:
                op.fail(owner.found, selected, error)
                continue
            owner.found[selected] = one and one.found
            if one is not None and kept is not None:
                yield Beside(one.take_kept(kept))

    def worst(self, run: Run) -> Worst:
        try:
            size = self.arguments(run).size
        except Exception:
            return  # nothing is read; the answer says why
        keep, access = self.walk.options.keep, run.access
        if access is not None:
            hidden = tuple(each for each in self.walk.nodes if not access.is_decided_by_key(each))
            if hidden:
                yield Described(kind="get node", records=hidden, key=_KEYS[0])
                yield from worst_of_visible(run, hidden, keep)
                yield NodeEnd()
        if self.page is not None and size:
            yield Times(min(size, keep))
            yield from self.page.worst(_KEYS)


class _OneWalk:
    """One walk from one node, and its results."""

    def __init__(self, step: NodeWalkStep, run: Run, arguments: WalkArguments, owner: Object) -> None:
        """Raises BadUserInput if the cursor belongs to another walk."""
        self.found = ListObject()
        self._step = step
        self._walk = step.walk
        self._run = run
        self._arguments = arguments
        self._start = Vertex(owner.record, owner.identity)
        self._cursors = WalkCursors(run, step.walk, owner.identity)
        self._behind = Behind(0)
        self._last: tuple[int, Vertex] | None = None
        is_by_walking = step.walk.is_reach and not step.walk.options.is_kept
        if arguments.after is not None and is_by_walking:
            self._behind = self._cursors.behind(arguments.after)
            counted = self._behind.counted
            if run.access is None and counted is not None and counted.depth == arguments.depth:
                self._cursors.counted = counted
        elif arguments.after is not None:
            self._last = self._cursors.node(arguments.after)

    def read(self) -> Reads[None]:
        """Walks, and shows what was found."""
        if self._walk.is_reach:
            yield from self._read_reach()
            return
        lists = self._step.lists(self._run)
        levels = [{*level} for level in self._walk.levels]

        def lists_of(owner: Vertex, level: int) -> list[WalkedPath]:
            return [path for path in lists.of(owner) if path in levels[level]]

        include_first, budget = self._walk.options.include_first, Budget(self._arguments.budget)
        walk = rank(self._start, len(levels), lists_of, budget, self._weigh, include_first=include_first)
        result = yield from Walking(lists, walk, budget).run(self._start)
        if isinstance(result, Exception):
            self.found.page = result
            self._uncounted(result)
            return
        yield from self._aggregate([each.node for each in result.nodes], result.is_complete)
        yield from self._continue_ranked(result)

    # --- Reached nodes --------------------------------------------------------------------------------------

    def _read_reach(self) -> Reads[None]:
        """Walks for the page and the count: in one walk without a cursor. A count in the cursor is used again."""
        step, size, counted = self._step, self._arguments.size, self._cursors.counted
        is_projected = counted is not None and self._tell(counted.total)
        counts = step.walks_all and not is_projected
        wanted = size + step.looks_ahead if step.page is not None else 0
        if self._arguments.after is None:
            result = yield from self._reach(Behind(0), wanted, is_whole=counts)
            if step.walks_all:
                yield from self._take_count(result)
            if step.page is not None:
                yield from self._continue_reached(result)
            return
        if step.page is not None and counts:
            step.lists(self._run).is_shared = True
        if step.page is not None:
            yield Beside(self._read_reached(wanted and wanted + self._behind.skipped))
        if counts:
            yield Beside(self._read_count())

    def _read_reached(self, wanted: int) -> Reads[None]:
        yield from self._continue_reached((yield from self._reach(self._behind, wanted)))

    def _read_count(self) -> Reads[None]:
        yield from self._take_count((yield from self._reach(Behind(0), 0, is_whole=True)))

    def _reach(self, behind: Behind, wanted: int, *, is_whole: bool = False) -> Reads[Reach | Exception]:
        lists, arguments, nodes = self._step.lists(self._run), self._arguments, self._walk.nodes
        began, budget = behind.standing or from_node(self._start), Budget(arguments.budget)
        walk = reach(
            began,
            lambda node: lists.of_type(node.record),
            arguments.depth,
            budget,
            Requested(wanted, is_whole, lambda node: node.record in nodes),
            deepest=self._walk.options.depth,
        )
        known = () if behind.standing is None else (*began.owners, *began.found)
        return (yield from Walking(lists, walk, budget).run(self._start, known=known))

    def _continue_reached(self, result: Reach | Exception) -> Reads[None]:
        if isinstance(result, Exception):
            self.found.page = result
            return
        number, _, skipped, _ = self._behind
        size, nodes = self._arguments.size, result.nodes[skipped:]
        page, cursors = nodes[:size], self._cursors

        # What the answer keeps must not reference this walk, which references the answer.
        @cache
        def cursor(place: int) -> str:
            behind = Behind(number + place + 1, result.behind(page[place]), 0, cursors.counted)
            return cursors.of(behind, is_last=place == len(page) - 1)

        def stopped() -> str:
            left = max(0, skipped - len(result.nodes))
            behind = Behind(number + len(page), result.standing, left, cursors.counted)
            return cursors.of(behind, is_hidden=True)

        end: Callable[[], str] | None = partial(cursor, len(page) - 1) if page else None
        has_more = len(nodes) > size or bool(result.others)
        if not has_more and result.standing is not None and size:
            end = stopped
        self.found.info = WalkEnds(
            has_more or not result.is_complete,
            self._arguments.after is not None,
            partial(cursor, 0) if page else None,
            end,
        )
        edges = [WalkEdge(partial(cursor, place), each.distance) for place, each in enumerate(page)]
        hops = [each.hop for each in page]
        yield from self._spread(edges, [each.node for each in page], hops)

    # --- What is counted and aggregated -----------------------------------------------------------------------

    def _take_count(self, result: Reach | Exception) -> Reads[None]:
        if isinstance(result, Exception):
            self._uncounted(result)
            return
        nodes = [*(each.node for each in result.nodes), *result.others]
        if self._run.access is None:  # else a cursor would tell another viewer how many this one sees
            self._cursors.counted = WalkCount(
                self._arguments.depth, len(nodes) if result.is_complete else None
            )
        yield from self._aggregate(nodes, result.is_complete)

    def _uncounted(self, error: Exception) -> None:
        self.found.total = as_value(error)
        self.found.found |= {each.selected: self.found.total for each in self._step.aggregates}

    def _tell(self, total: int | None) -> bool:
        """Sets the count, None if it exceeds the budget. Returns whether nothing else needs the nodes."""
        self.found.total = total
        for aggregate in self._step.aggregates:
            if aggregate.counts_only or total is None:
                self.found.found[aggregate.selected] = None if total is None else aggregate.of_count(total)
        return total is None or all(aggregate.counts_only for aggregate in self._step.aggregates)

    def _aggregate(self, found: Sequence[Vertex], is_complete: bool) -> Reads[None]:
        """Sets the count, and reads the nodes to aggregate; sets null if the walk did not reach its end."""
        if self._tell(len(found) if is_complete else None):
            return
        for aggregate in self._step.aggregates:
            if not aggregate.counts_only:
                yield Beside(self._aggregate_items(aggregate, [Object(*each) for each in found]))

    def _aggregate_items(self, aggregate: RequestedAggregate, nodes: Sequence[Object]) -> Reads[None]:
        there = keep_items(self._run, (yield from look_up(self._run, aggregate.record, nodes, "aggregate")))
        failed = next((each.error for each in nodes if each.error), None)
        if failed:
            self.found.found[aggregate.selected] = failed
        else:
            yield Work(aggregate.add_to(self.found.found, self._run, there, len(nodes)))

    # --- Ranked nodes ---------------------------------------------------------------------------------------

    def _weigh(self, hop: Hop) -> Any:
        """The weight of a path. Raises Forbidden if the viewer may not read the fields that decide it."""
        if hop.edge is None:
            return 1
        edge, access = hop.edge.object(), self._run.access
        if access is not None:
            for name in self._walk.options.weighing:
                if not access.allows(edge, "read", name):
                    raise forbidden(edge.record, name)
        return self._step.weights.of(edge.record, edge.item, float(self._run.time.now))

    def _continue_ranked(self, result: Ranking) -> Reads[None]:
        def edge(place: int, cursor: Callable[[], str]) -> WalkEdge:
            _, score, paths = result.nodes[place]
            # Parts that were not read may lead there too.
            known = (float(score), paths) if result.is_complete else (None, None)
            return WalkEdge(cursor, None, *known)

        yield from self._continue_at([each.node for each in result.nodes], edge, is_whole=result.is_complete)

    def take_kept(self, kept: KeptNodes) -> Reads[None]:
        """Shows what the node keeps, without the nodes that the viewer does not see."""
        walk, depth, total = self._walk, self._arguments.depth, kept.total
        found = [each for each in kept.nodes if each.distance is None or each.distance <= depth]
        is_whole = total is not None
        if walk.is_reach:
            # The nearest are kept first.
            is_whole = len(found) < len(kept.nodes) or (total is not None and total <= len(found))
            is_of_all = depth == walk.options.depth
            total = len(found) if is_whole else total if is_of_all else None
        self.found.total = total
        if self._step.page is None:
            return
        hidden = yield from self._hidden({each.node: Object(*each.node) for each in found})
        nodes = [each for each in found if each.node not in hidden]

        def edge(place: int, cursor: Callable[[], str]) -> WalkEdge:
            return WalkEdge(cursor, *nodes[place][1:])

        yield from self._continue_at([each.node for each in nodes], edge, is_whole=is_whole)

    def _hidden(self, nodes: Mapping[Vertex, Object]) -> Reads[Set[Vertex]]:
        """Returns those of some nodes that the viewer does not see."""
        if self._run.access is None:
            return frozenset()
        groups = yield All([filter_visible(self._run, *group) for group in by_type(nodes.values())])
        visible = {each for group in groups for each in group}
        return {node for node, each in nodes.items() if each not in visible and each.error is None}

    def _continue_at(
        self, nodes: Sequence[Vertex], edge: Callable[[int, Callable[[], str]], WalkEdge], *, is_whole: bool
    ) -> Reads[None]:
        """Shows a page of nodes whose order is known. `edge` makes the edge at a place, with its cursor."""
        size, start = self._arguments.size, 0
        if self._last is not None:
            number, last = self._last
            places = {each: place for place, each in enumerate(nodes)}
            # If that node is no longer there, continue from the position in the cursor.
            start = places[last] + 1 if last in places else number
        page, cursors = nodes[start : start + size], self._cursors

        def cursor(number: int) -> str:
            return cursors.of_node(page[number], start + number)

        edges = [edge(start + number, partial(cursor, number)) for number in range(len(page))]
        first, last_one = (partial(cursor, 0), partial(cursor, len(page) - 1)) if page else (None, None)
        self.found.info = WalkEnds(start + size < len(nodes), start > 0, first, last_one, is_whole)
        yield from self._spread(edges, page, [])

    # --- What goes on from them -----------------------------------------------------------------------------

    def _spread(self, edges: list[WalkEdge], vertices: Sequence[Vertex], hops: Sequence[Hop]) -> Reads[None]:
        """Sets the page, and starts the steps that continue from its edges and nodes."""
        run, found, page = self._run, self.found, self._step.page
        found.page = edges
        if page is None:
            return
        of_lists = [hop for hop in hops if hop.edge is not None]
        if not self._step.lists(run).is_shared:
            for hop in of_lists:
                if run.hold(hop.edge.located.item):
                    yield Pause()
        prime, key_of = run.nodes.prime, run.graph.table.key_of
        for hop in of_lists:
            located, arguments = hop.edge.located, hop.edge.connection.arguments
            if arguments.path.far_end is None and hop.node.record in arguments.primed:
                # A whole item is not read again.
                prime(key_of(located.item), located.item)
        for selected, of_nodes, vias in page.edges:
            found.found[selected] = edges
            lists = [(via, [hop.edge and hop.edge.object() for hop in hops]) for via in vias]
            yield continue_edges(run, edges, vertices, of_nodes, lists)
        for field, step in page.nodes:
            nodes = [Object(*each) for each in vertices]
            found.found[field] = nodes
            yield Start(step, nodes)
