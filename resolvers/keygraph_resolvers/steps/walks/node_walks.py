"""The walks that nodes declare: reach and ranking. They walk by keys; nodes are read only if they are shown."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cache, partial
from typing import Any

from keygraph.model.paths import AccessPath
from keygraph.model.permissions import restricted_name
from keygraph.model.records import RecordType
from keygraph.resolve.walks import NodeWalk
from keygraph.walks.ranking import Ranking, rank
from keygraph.walks.reach import Reach, from_node, reach
from keygraph.walks.walk import Budget, Hop, Vertex
from keygraph.walks.weights import Weights
from keygraph_resolvers.errors import message_of
from keygraph_resolvers.read.access import forbidden, is_readable, without_refused
from keygraph_resolvers.read.aggregates import AskedAggregate
from keygraph_resolvers.read.objects import ListObject, Object
from keygraph_resolvers.read.run import Run
from keygraph_resolvers.read.walked import Behind, Counted, WalkArguments, WalkCursors, WalkEdge, WalkEnds
from keygraph_resolvers.steps.explained import (
    KEY_OF,
    Explained,
    View,
    Where,
    arguments_text,
    joined,
    page_text,
)
from keygraph_resolvers.steps.get import keep_items, look_up
from keygraph_resolvers.steps.list_cost import keys_cost
from keygraph_resolvers.steps.list_requests import walked_request
from keygraph_resolvers.steps.lists import why_not_consistent
from keygraph_resolvers.steps.selection import SelectedField
from keygraph_resolvers.steps.step import NEVER, Below, Starts, Step, StepCost, union
from keygraph_resolvers.steps.walks.cost import WalkMost, undecided
from keygraph_resolvers.steps.walks.walk import AHEAD, EdgesStep, WalkedLists, Walking


@dataclass(frozen=True, slots=True)
class WalkPage:
    """The page of a walk: the fields that show its edges and nodes, with the steps that continue from them."""

    edges: Sequence[tuple[SelectedField, Sequence[tuple[SelectedField, Step]], Sequence[EdgesStep]]]
    """Each with the fields of an edge that show its node, and the steps of the edge that led to it."""
    nodes: Sequence[tuple[SelectedField, Step]]

    @property
    def children(self) -> list[Step]:
        """The steps that continue from nodes."""
        return [*(step for _, nodes, _ in self.edges for _, step in nodes), *(step for _, step in self.nodes)]

    @property
    def vias(self) -> list[EdgesStep]:
        return [via for _, _, vias in self.edges for via in vias]


class NodeWalkStep(Step):
    """Walks from some nodes."""

    def __init__(
        self,
        selected: SelectedField,
        walk: NodeWalk,
        page: WalkPage | None,
        *,
        has_total: bool,
        looks_ahead: bool,
        is_consistent: bool,
    ) -> None:
        """`looks_ahead`: the client asks for `hasNextPage`. `is_consistent`: it asks for consistent reads."""
        self.suffix = f".{selected.key}"
        self.selected = selected
        self.walk = walk
        self.page = page
        self.aggregates: Sequence[AskedAggregate] = ()
        self.is_alone = False
        """Whether it starts from at most one node, and nothing else in the operation reads its lists."""
        self.has_total = has_total
        self.looks_ahead = looks_ahead
        self._restricted = restricted_name(walk.owner, walk.name)
        self._refusal = (
            next(filter(None, map(why_not_consistent, walk.paths)), None) if is_consistent else None
        )
        children = [] if page is None else page.children
        vias = [] if page is None else page.vias
        after = union(each.later for each in children)
        for via in vias:
            after |= via.later
        self.after = after
        self.later = after and frozenset(range(min(after), AHEAD))
        self.weights = Weights(walk.options)

    @property
    def reads(self) -> Iterable[AccessPath]:
        """The lists that it reads."""
        return self.walk.paths

    @property
    def needed(self) -> Iterator[tuple[RecordType, frozenset[str]]]:
        """The fields that it needs of its lists' items, and of nodes with access rules."""
        for path in self.walk.paths:
            yield path.record, path.ends_needed()
        for path in self.walk.levels[-1]:
            yield path.record, self.weights.names
        for asked in self.aggregates:
            yield asked.record, asked.needed
        for record in self._nodes:
            if record.access is not None:
                names = [each.name for each in self.walk.paths if each.owner is record]
                yield record, frozenset(name for each in names for name in record.access.names("read", each))

    @property
    def looked_for(self) -> Iterator[RecordType]:
        """The types of nodes that it may read by key for access rules or aggregates."""
        aggregated = {asked.record for asked in self.aggregates}
        return (record for record in self._nodes if record.access is not None or record in aggregated)

    @property
    def _nodes(self) -> tuple[RecordType, ...]:
        """The types of the nodes that it visits."""
        found = (node for path in self.walk.paths for node in path.nodes)
        return tuple(dict.fromkeys((self.walk.owner, *found)))

    @property
    def looked_for_edges(self) -> Sequence[AccessPath]:
        """The lists whose edges it may read by key."""
        return () if self.page is None else [path for via in self.page.vias for path in via.partial]

    def arguments(self, run: Run) -> WalkArguments:
        """The arguments, which all owners share. Raises BadUserInput, or GraphQLError."""
        if self._refusal is not None:
            raise self._refusal
        return self.selected.told(run, lambda given: WalkArguments(run, self.walk, given))

    @property
    def walks_all(self) -> bool:
        """Whether a selected field needs the walk to reach its end."""
        return self.has_total or bool(self.aggregates)

    def counts_apart(self, arguments: WalkArguments) -> bool:
        """Whether counting needs a separate walk, because the page continues from a cursor."""
        return self.walk.is_reach and self.walks_all and arguments.after is not None

    def lists(self, run: Run) -> WalkedLists:
        found: WalkedLists | None = run.told.get(self)
        if found is None:
            found = run.told[self] = WalkedLists(run, self.walk.paths)
            found.is_shared = not self.is_alone or self.walk.may_read_again
        return found

    # --- Running ------------------------------------------------------------------------------------------

    def start(self, run: Run, objects: Sequence[Object], round_trip: int, place: str) -> None:
        if self._restricted is not None:
            objects = without_refused(run.access, objects, self.selected, self._restricted)
        for owner in objects:
            try:
                one = _OneWalk(self, run, self.arguments(run), owner, place + self.suffix)
            except Exception as error:
                owner.found[self.selected] = error
                continue
            owner.found[self.selected] = one.found
            if self.page is not None or self.walks_all:
                one.start(round_trip)

    # --- What it costs ------------------------------------------------------------------------------------

    def cost(self, run: Run, starts: Starts) -> tuple[StepCost, Below]:
        try:
            arguments = self.arguments(run)
        except Exception:
            return StepCost(), ()  # nothing is read; the answer says why
        page, size = self.page, arguments.size
        # A ranking is computed whichever of its pages is shown.
        shows = page is not None and (size + self.looks_ahead > 0 or not self.walk.is_reach)
        if not self.walks_all and not shows:
            return StepCost(), ()
        most = self.most(run, arguments)
        chain, walks = most.round_trips, 1 + self.counts_apart(arguments)
        cost = StepCost(
            starts.times(most.requests * walks).count,
            0,
            set(),
            max(starts.round_trips) + chain - 1,
            starts.times(most.items * walks).count,
            starts.count * most.read_units * walks,
            is_open=True,
        )
        for record in undecided(run, self.walk.paths, self._nodes):
            # Some are read apart, in the middle of a round. A walk that continues does not know its start.
            keys = (most.items * (walks if arguments.after is None else walks + 1)) + 1
            cost.add(replace(keys_cost([record], starts.after(chain, at_least=0), keys), apart=keys))
        after = starts.after(chain, at_least=0)
        for asked in self.aggregates:
            if not asked.counts_only:
                cost.add(keys_cost([asked.record], after, most.items))
        if page is None:
            return cost, ()
        for via in page.vias:
            for path in via.partial:
                cost.add(keys_cost(path.records, after, size))
        found = after.times(size)
        below = [(step, found) for step in page.children]
        below += [
            (step, found.after(1, at_least=0))
            for via in page.vias
            for step in dict.fromkeys(via.steps.values())
        ]
        return cost, below if size else ()

    def most(self, run: Run, arguments: WalkArguments) -> WalkMost:
        """The most that one walk takes."""
        levels = arguments.depth if self.walk.is_reach else len(self.walk.levels)
        is_decided = not undecided(run, self.walk.paths, self._nodes)
        return WalkMost.of(
            run, self.lists(run), self.walk.paths, arguments.budget, levels, is_decided=is_decided
        )

    def bound_key(self, run: Run) -> Hashable:
        """The values that decide its cost."""
        try:
            arguments = self.arguments(run)
        except Exception:
            return None
        return arguments.size, arguments.depth, arguments.after is None

    # --- How it is explained --------------------------------------------------------------------------------

    def explained(self, view: View, where: Where) -> Iterator[Explained]:
        if not view.may_go_on() or (self.page is None and not self.walks_all):
            return
        [node, *_], walk = self.selected.nodes, self.walk
        place = where.place + self.suffix
        here = replace(where, place=place)
        shown = Explained(
            "walk", here, tuple(each.name for each in walk.nodes), arguments=arguments_text(node), source=self
        )
        shown.page = page_text(node) if self.page is not None else ""
        yield shown
        try:
            arguments = self.arguments(view.run)
        except Exception as error:
            shown.problem = message_of(error)
            return
        levels = walk.levels[:1] * arguments.depth if walk.is_reach else walk.levels
        most = 1
        for number, level in enumerate(levels[:3], 1):
            has_more = number == 3 < len(levels)
            said = f"levels {number} to {len(levels)}" if has_more else f"level {number}"
            for path in level:
                if number == 1 and path.owner is not walk.owner:
                    continue
                step = Explained(
                    "read list",
                    Where(
                        place,
                        f"{KEY_OF}{path.owner.name if path.owner else ''}",
                        where.round_trip + number - 1,
                        number > 1,
                    ),
                    (path.record.name,),
                    attributes=view.attributes(path.record),
                    path=path,
                    page=f"{said}: at most {most:,} list{'s' * (most > 1)}, {arguments.budget:,} items in all",
                    source=self,
                )
                step.requests = (walked_request(view, path, arguments.budget),)
                shown.steps.append(step)
            most = arguments.budget
        after = Where(place, f"{KEY_OF}node found", where.round_trip + len(levels), is_many=True)
        for asked in self.aggregates:
            if not asked.counts_only:
                shown.steps.append(view.get(asked.record, after))
        if self.page is not None:
            for child in self.page.children:
                shown.steps += child.explained(view, after)
            for via in self.page.vias:
                if via.partial:
                    edges = dict.fromkeys(path.record for path in via.partial)
                    shown.steps.append(joined([view.get(each, after) for each in edges]))
                for child in dict.fromkeys(via.steps.values()):
                    shown.steps += child.explained(view, after)


class _OneWalk:
    """One walk from one node, and its results."""

    def __init__(
        self, step: NodeWalkStep, run: Run, arguments: WalkArguments, owner: Object, place: str
    ) -> None:
        """Raises BadUserInput if the cursor belongs to another walk."""
        self.found = ListObject()
        self._step = step
        self._walk = step.walk
        self._run = run
        self._arguments = arguments
        self._place = place
        self._start = Vertex(owner.record, owner.identity)
        self._cursors = WalkCursors(run, step.walk, owner.identity)
        self._behind = Behind(0)
        self._counted: Counted | None = None
        self._last: tuple[int, Vertex] | None = None
        if arguments.after is not None and step.walk.is_reach:
            self._behind = self._cursors.behind(arguments.after)
            counted = self._behind.counted
            if run.access is None and counted is not None and counted.depth == arguments.depth:
                self._counted = counted
        elif arguments.after is not None:
            self._last = self._cursors.node(arguments.after)

    def start(self, round_trip: int) -> None:
        if self._walk.is_reach:
            self._start_reach(round_trip)
            return
        lists = self._step.lists(self._run)
        levels = [{*level} for level in self._walk.levels]

        def lists_of(owner: Vertex, level: int) -> list[AccessPath]:
            return [path for path in lists.of(owner) if path in levels[level]]

        include_first, budget = self._walk.options.include_first, Budget(self._arguments.budget)
        walk = rank(self._start, len(levels), lists_of, budget, self._weigh, include_first=include_first)
        Walking(lists, walk, self._place, self._step.after, self._ranked).start(self._start, round_trip)

    def _failed(self, error: Exception) -> None:
        self.found.page = error
        self._uncounted(error)

    # --- Reached nodes --------------------------------------------------------------------------------------

    def _start_reach(self, round_trip: int) -> None:
        """Walks for the page and the count: in one walk without a cursor. A count in the cursor is used again."""
        step, size = self._step, self._arguments.size
        is_told = self._counted is not None and self._tell(self._counted.total)
        counts = step.walks_all and not is_told
        if self._arguments.after is None:
            wanted = size + step.looks_ahead if step.page is not None else 0
            self._reach(round_trip, self._begun, Behind(0), wanted, is_whole=counts)
            return
        if step.page is not None and counts:
            step.lists(self._run).is_shared = True
        if step.page is not None:
            behind = self._behind
            wanted = size + step.looks_ahead
            self._reach(round_trip, self._reached, behind, wanted and wanted + behind.skipped)
        if counts:
            self._reach(round_trip, self._counted_all, Behind(0), 0, is_whole=True)

    def _reach(
        self,
        round_trip: int,
        then: Callable[[Reach | Exception, int], None],
        behind: Behind,
        wanted: int,
        *,
        is_whole: bool = False,
    ) -> None:
        lists, arguments, nodes = self._step.lists(self._run), self._arguments, self._walk.nodes
        began = behind.standing or from_node(self._start)
        walk = reach(
            began,
            lambda node: lists.of_type(node.record),
            arguments.depth,
            Budget(arguments.budget),
            wanted=wanted,
            is_whole=is_whole,
            deepest=self._walk.options.depth,
            is_asked_for=lambda node: node.record in nodes,
        )
        walking = Walking(lists, walk, self._place, self._step.after, then)
        walking.start(
            self._start, round_trip, told=() if behind.standing is None else (*began.owners, *began.found)
        )

    def _begun(self, result: Reach | Exception, round_trip: int) -> None:
        """Takes the result of a walk for both the page and the count, from the first node."""
        if self._step.walks_all:
            self._counted_all(result, round_trip)
        if self._step.page is not None:
            self._reached(result, round_trip)

    def _reached(self, result: Reach | Exception, round_trip: int) -> None:
        if isinstance(result, Exception):
            self.found.page = result
            return
        number, _, skipped, _ = self._behind
        size, nodes = self._arguments.size, result.nodes[skipped:]
        page = nodes[:size]

        @cache
        def cursor(place: int) -> str:
            behind = Behind(number + place + 1, result.behind(page[place]), 0, self._counted)
            return self._cursors.of(behind, is_last=place == len(page) - 1)

        def stopped() -> str:
            left = max(0, skipped - len(result.nodes))
            return self._cursors.of(Behind(number + len(page), result.standing, left, self._counted))

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
        self._show(edges, [each.node for each in page], hops, round_trip)

    # --- What is counted and aggregated -----------------------------------------------------------------------

    def _counted_all(self, result: Reach | Exception, round_trip: int) -> None:
        """Takes the result of a walk for the count."""
        if isinstance(result, Exception):
            self._uncounted(result)
            return
        nodes = [*(each.node for each in result.nodes), *result.others]
        if self._run.access is None:  # else a cursor would tell another viewer how many this one sees
            self._counted = Counted(self._arguments.depth, len(nodes) if result.is_complete else None)
        self._aggregate(nodes, result.is_complete, round_trip)

    def _uncounted(self, error: Exception) -> None:
        self.found.total = error
        self.found.found |= {each.selected: error for each in self._step.aggregates}

    def _tell(self, total: int | None) -> bool:
        """Sets the count, None if it exceeds the budget. Returns whether nothing else needs the nodes."""
        self.found.total = total
        for asked in self._step.aggregates:
            if asked.counts_only or total is None:
                self.found.found[asked.selected] = None if total is None else asked.of_count(total)
        return total is None or all(asked.counts_only for asked in self._step.aggregates)

    def _aggregate(self, found: Sequence[Vertex], is_complete: bool, round_trip: int) -> None:
        """Sets the count, and reads the nodes to aggregate; sets null if the walk did not reach its end."""
        if self._tell(len(found) if is_complete else None):
            return
        for asked in self._step.aggregates:
            if asked.counts_only:
                continue
            nodes = [Object(*each) for each in found]
            came = partial(self._items_came, asked, nodes, [])
            if nodes:
                look_up(self._run, asked.record, nodes, self._place, round_trip, NEVER, came)
            else:
                came([], round_trip)

    def _items_came(
        self,
        asked: AskedAggregate,
        nodes: Sequence[Object],
        before: list[Object],
        came: list[tuple[Object, Any]],
        round_trip: int,
    ) -> None:
        """Aggregates the nodes that exist, when all have arrived."""
        keep_items(self._run, came)
        before += [each for each, _ in came]
        if len(before) == len(nodes):
            failed = next((each.error for each in nodes if each.error), None)
            there = [each for each in nodes if not each.is_missing]
            if failed:
                self.found.found[asked.selected] = failed
            else:
                self._run.scheduler.spawn(asked.add_to(self.found.found, self._run, there, len(nodes)))

    # --- Ranked nodes ---------------------------------------------------------------------------------------

    def _weigh(self, hop: Hop) -> Any:
        """The weight of a path. Raises Forbidden if the viewer may not read the fields that decide it."""
        edge, access = hop.edge.object(), self._run.access
        if access is not None:
            for name in self._step.weights.names:
                if not is_readable(access, edge, name):
                    raise forbidden(edge.record, name)
        return self._step.weights.of(edge.record, edge.item, float(self._run.now))

    def _ranked(self, result: Ranking | Exception, round_trip: int) -> None:
        if isinstance(result, Exception):
            self._failed(result)
            return
        nodes, size = result.nodes, self._arguments.size
        self._aggregate([each.node for each in nodes], result.is_complete, round_trip)
        start = 0
        if self._last is not None:
            number, last = self._last
            places = {each.node: place for place, each in enumerate(nodes)}
            # If that node is no longer ranked, continue from the position in the cursor.
            start = places[last] + 1 if last in places else number
        page = nodes[start : start + size]

        def cursor(number: int) -> str:
            return self._cursors.of_node(page[number].node, start + number)

        edges = []
        for number, each in enumerate(page):
            # Parts that were not read may lead there too.
            score, ways = (float(each.score), each.ways) if result.is_complete else (None, None)
            edges.append(WalkEdge(partial(cursor, number), None, score, ways))
        first, last_one = (partial(cursor, 0), partial(cursor, len(page) - 1)) if page else (None, None)
        self.found.info = WalkEnds(
            start + size < len(nodes), start > 0, first, last_one, is_whole=result.is_complete
        )
        self._show(edges, [each.node for each in page], [], round_trip)

    # --- What goes on from them -----------------------------------------------------------------------------

    def _show(
        self, edges: list[WalkEdge], vertices: Sequence[Vertex], hops: Sequence[Hop], round_trip: int
    ) -> None:
        """Sets the page, and starts the steps that continue from its edges and nodes."""
        run, found, page = self._run, self.found, self._step.page
        found.page = edges
        if page is None:
            return
        if not self._step.lists(run).is_shared:
            run.hold([hop.edge.located.item for hop in hops])
        prime, key_of = run.nodes.prime, run.graph.table.key_of
        for hop in hops:
            located, arguments = hop.edge.located, hop.edge.connection.arguments
            if arguments.path.far_end is None and hop.node.record in arguments.primed:
                # A whole item is not read again.
                prime(key_of(located.item), located.item)
        for selected, of_nodes, vias in page.edges:
            found.found[selected] = edges
            for field, step in of_nodes:
                nodes = [Object(*each) for each in vertices]
                for edge, node in zip(edges, nodes, strict=True):
                    edge.found[field] = node
                step.start(run, nodes, round_trip, self._place)
            for via in vias:
                found_by = [hop.edge.object() for hop in hops]
                for edge, by in zip(edges, found_by, strict=True):
                    edge.found[via.selected] = by
                via.start(run, found_by, self._place, round_trip)
        for field, step in page.nodes:
            nodes = [Object(*each) for each in vertices]
            found.found[field] = nodes
            step.start(run, nodes, round_trip, self._place)
