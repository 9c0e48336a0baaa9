"""Lists limited to the items that other nodes have too: `alsoOf`.

The lists of the owner and of the others are walked together (`keygraph.walks.common`). Other arguments of the list,
except those of its partition, apply only to the owner's own edges.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any, cast

from keygraph.access.grants import Decision
from keygraph.dynamo.items import Item
from keygraph.dynamo.table import Key
from keygraph.errors import CorruptItem
from keygraph.graph import Graph
from keygraph.lists.describe import described_requests
from keygraph.lists.listing import Located, NeighbourList, Place
from keygraph.lists.named_edges import Ranks, edge_keys, in_list
from keygraph.lists.reading import Extent, Found, page_requests
from keygraph.model.links import LinkName
from keygraph.model.paths import AccessPath
from keygraph.model.permissions import Permissions, is_told_by_key, restricted_name
from keygraph.model.records import RecordType
from keygraph.names import camel
from keygraph.walks.common import (
    FIRST,
    FIRST_OF_ALL,
    WEIGHT_OF_A_KEY,
    WEIGHT_OF_A_QUERY,
    Begin,
    Came,
    Common,
    Entry,
    KeysWanted,
    LookUp,
    Merge,
    PageWanted,
    Wanted,
)
from keygraph_resolvers.naming.global_ids import at_most, read_id_or_key
from keygraph_resolvers.naming.names import ALSO_OF
from keygraph_resolvers.read.access import forbidden, is_readable
from keygraph_resolvers.read.connection import ListArguments, ShownPage
from keygraph_resolvers.read.loaders import EdgesTo, PageOf
from keygraph_resolvers.read.meter import Read
from keygraph_resolvers.read.objects import Object
from keygraph_resolvers.read.run import Run
from keygraph_resolvers.steps.explained import Explained, View, Where
from keygraph_resolvers.steps.get import keep_items, look_up
from keygraph_resolvers.steps.lists import BoundList, ListStep, look_all_up, when_all
from keygraph_resolvers.steps.questions.common_cost import CommonCost
from keygraph_resolvers.steps.step import MOST_ROUND_TRIPS, Below, Starts, StepCost

MOST_IDS = 10
_LATER = frozenset(range(MOST_ROUND_TRIPS))
"""Keys may be looked up in any of the next round trips."""


class CommonArguments(ListArguments):
    """The arguments of a list with `alsoOf`."""

    is_read_apart = True

    def __init__(self, run: Run, path: AccessPath, given: Mapping[str, Any], looks: frozenset[str]) -> None:
        super().__init__(run, path, given, looks)
        self.also = _identities(run.graph, path, given.get(ALSO_OF) or ())
        self.is_merged = path.is_by_node
        # If only the node follows the prefix in the key, a range leaves the same nodes out of all lists.
        narrowed = path.ranged if self.is_merged else ()
        kept = {camel(argument.name) for argument in (*path.required, *narrowed)}
        said = {name: value for name, value in given.items() if name in kept}
        self.theirs = ListArguments(run, path, said, frozenset())
        """The arguments for the lists of the others."""


def _identities(graph: Graph, path: AccessPath, ids: Sequence[str]) -> tuple[tuple[str, ...], ...]:
    """The identities of the others, each once."""
    owners = () if path.owner is None else (path.owner,)
    named = (read_id_or_key(graph, ALSO_OF, owners, text) for text in at_most(ALSO_OF, ids, MOST_IDS))
    return tuple(dict.fromkeys(identity for _, identity in named))


class CommonStep(ListStep):
    """Reads the part of lists that the lists of other nodes have as well."""

    _arguments = CommonArguments

    def __init__(self, *given: Any, **options: Any) -> None:
        super().__init__(*given, **options)
        self.later = _LATER

    @property
    def may_look_up(self) -> bool:
        return self.path.finds_by_node

    @property
    def names_edges(self) -> bool:
        return True

    def arguments(self, run: Run) -> CommonArguments:
        return cast(CommonArguments, super().arguments(run))

    @property
    def walks_all(self) -> bool:
        """Whether a selected field needs the walk to reach its end."""
        return self.has_total or bool(self.aggregates)

    def read(self, run: Run, bound: BoundList, round_trip: int) -> None:
        connection = bound.connection
        others = [each for each in self.arguments(run).also if each != connection.owner]
        if not others or (self.has_links and connection.unknown and self.is_read(bound)):
            super().read(run, bound, round_trip)
        else:
            _Reading(self, run, bound, others).start(round_trip)

    # --- What it costs ------------------------------------------------------------------------------------

    def cost(self, run: Run, starts: Starts) -> tuple[StepCost, Below]:
        try:
            arguments, most = self.arguments(run), self.most(run)
            is_unseen = arguments.is_unseen(run)
        except Exception:
            return StepCost(), ()  # nothing is read; the answer says why
        if not arguments.also:
            return super().cost(run, starts)
        others, is_merged = len(arguments.also), arguments.is_merged
        cost = CommonCost(most, self.path, others, is_merged=is_merged, is_unseen=is_unseen)
        return cost.of(run, starts, is_asked_for=run.access is not None and self._is_untold())

    def _is_untold(self) -> bool:
        """Whether only an owner's item can decide that the viewer sees it, or its list."""
        owner = self.path.owner
        if owner is None:
            return False
        name = restricted_name(owner, self.path.name)
        return not is_told_by_key(owner) or (name is not None and not is_told_by_key(owner, name))

    def bound_key(self, run: Run) -> Hashable:
        try:
            return self.most(run), len(self.arguments(run).also)
        except Exception:
            return None

    # --- How it is explained --------------------------------------------------------------------------------

    def explained(self, view: View, where: Where) -> Iterator[Explained]:
        for shown in super().explained(view, where):
            arguments = None if shown.problem else self.arguments(view.run)
            if arguments is None or not arguments.also or not shown.requests:
                yield shown
            else:
                # The walk is the same for the page, the count and the aggregates.
                self._explain_walk(view, shown, arguments)
                yield shown
                return

    def _explain_walk(self, view: View, shown: Explained, arguments: CommonArguments) -> None:
        graph, count = view.run.graph, len(arguments.also)
        way = "merged" if arguments.is_merged else "looked up"
        others = "1 other" if count == 1 else f"{count} others"
        shown.page = f"{shown.page or 'all'} in common with {others}, {way}"
        extent = replace(arguments.extent, count=FIRST_OF_ALL if self.walks_all else FIRST)
        if not arguments.is_key_lookup and arguments.to is None:
            shown.requests = (described_requests(graph, page_requests(arguments.any_shown, extent)),)
        elif self.path.finds_by_node:
            return
        theirs = described_requests(graph, page_requests(arguments.theirs.any_shown, extent))
        shown.requests += (
            replace(theirs, keys=f"{theirs.keys}, {'once' if count == 1 else f'{count} times'}"),
        )


class _Reading:
    """The reading of one list."""

    def __init__(
        self, step: CommonStep, run: Run, bound: BoundList, others: Sequence[tuple[str, ...]]
    ) -> None:
        self._step = step
        self._run = run
        self._bound = bound
        self._path = step.path
        self._arguments = step.arguments(run)
        self._owners = [bound.connection.owner, *others]
        self._connections = [bound.connection]
        self._lists: list[NeighbourList] = [bound.connection.neighbours]
        self._read_key = _mark if self._arguments.is_merged else _far_reader(step.path)
        self._resumed: dict[Any, Place] = {}
        """The positions at which pages of the owner's list reached their item limit, by the walk's key."""

    # --- What the viewer may see of the others ----------------------------------------------------------

    def start(self, round_trip: int) -> None:
        access, owner = self._run.access, self._owner
        others = [Object(owner, identity) for identity in self._owners[1:]]
        untold = []
        if access is not None:
            name = restricted_name(owner, self._path.name)
            for each in others:
                decisions = [access.of_key(owner, each.identity)]
                decisions += [] if name is None else [access.of_key(owner, each.identity, "read", name)]
                if decisions[0] is False:
                    self._nothing(round_trip)
                    return
                if any(not isinstance(one, bool) and not access.is_linked(owner, one) for one in decisions):
                    untold.append(each)
        came = when_all(len(untold), round_trip, partial(self._items_came, others))
        if untold:
            look_up(self._run, owner, untold, self._bound.place, round_trip, _LATER, came)

    @property
    def _owner(self) -> RecordType:
        return cast(RecordType, self._path.owner)

    def _items_came(
        self, others: Sequence[Object], came: list[tuple[Object, Item | Exception | None]], round_trip: int
    ) -> None:
        """Continues when the items of those others have arrived whose visibility their keys do not decide."""
        keep_items(self._run, came)
        access, wanted = self._run.access, dict[Key, LinkName]()
        for each in others if access is not None else ():
            if each.error is not None:
                self._fail(each.error)
                return
            if access is not None and not each.is_missing:
                decision = self._decision(access, each)
                wanted |= access.unknown(self._owner, decision, each.identity, each.item)
        self._learn(wanted, round_trip, partial(self._links_came, others))

    def _links_came(self, others: Sequence[Object], round_trip: int) -> None:
        access, name = self._run.access, restricted_name(self._owner, self._path.name)
        if access is not None:
            if any(each.is_missing or self._decision(access, each) is not True for each in others):
                self._nothing(round_trip)
                return
            if name is not None and not all(is_readable(access, each, name) for each in others):
                self._bound.fail(forbidden(self._owner, name), is_whole=True)
                return
        self._bind(others, round_trip)

    def _decision(self, access: Permissions, other: Object) -> Decision:
        """Whether the viewer sees another node, as far as is known."""
        if other.item is None:
            return access.of_key(self._owner, other.identity)
        return access.of_whole(self._owner, other.identity, other.item)

    def _bind(self, others: Sequence[Object], round_trip: int) -> None:
        try:
            theirs = [self._arguments.theirs.of(self._run, each) for each in others]
        except Exception as error:
            self._fail(error)
            return
        unknown = dict.fromkeys(key for each in theirs for key in each.unknown)
        if unknown:
            self._learn(unknown, round_trip, partial(self._bind, others))
        elif any(each.is_closed for each in theirs):
            self._nothing(round_trip)
        else:
            self._connections += theirs
            self._lists += [each.neighbours for each in theirs]
            self._begin(round_trip)

    def _learn(self, wanted: Iterable[Key], round_trip: int, then: Callable[[int], None]) -> None:
        """Continues when the values of other items that rules need are known."""

        def came(answers: list[tuple[Any, Any]], arrived: int) -> None:
            if self._bound.learns(self._run, answers):
                then(arrived)

        self._look_up([(key, key) for key in wanted], round_trip, came)

    def _seen_items(
        self, side: int, items: Sequence[Item], round_trip: int, then: Callable[[Sequence[Item], int], None]
    ) -> None:
        """Continues with items of a list that were looked up, when the other items that rules need are known."""
        connection = self._connections[side]
        self._learn(
            connection.unknown_of(items), round_trip, lambda arrived: then(connection.given(items), arrived)
        )

    def _nothing(self, round_trip: int) -> None:
        self._step.show_found(self._run, self._bound, (), round_trip)

    def _fail(self, error: Exception) -> None:
        self._bound.fail(error, is_counted=True)

    # --- The walks of a list ------------------------------------------------------------------------------

    def _begin(self, round_trip: int) -> None:
        connection = self._bound.connection
        if connection.is_closed:
            self._nothing(round_trip)
        elif not self._step.is_read(self._bound):
            return
        elif self._arguments.is_key_lookup:
            wanted = [(None, key) for key in connection.keys]
            self._look_up(wanted, round_trip, self._own_came)
        elif self._arguments.to is not None:
            came = when_all(len(connection.edges_to), round_trip, self._own_came)
            for request in connection.edges_to:
                self._load(request, round_trip, lambda answer, arrived: came([(None, answer)], arrived))
        elif self._step.walks_all:
            walk = self._walk(None, connection.request.extent)
            self._run_walk(walk, Extent(0), round_trip, partial(self._total_came, walk))
        else:
            self._page(round_trip)

    def _walk(
        self, wanted: int | None, extent: Extent, *, is_ordered: bool = False, left: int | None = None
    ) -> Common:
        """The walk for a part of the list, or for all of it; with `is_ordered`, in its order. `left` is its budget if
        another walk has used a part."""
        sides, budget = len(self._lists), self._run.limits.read_budget if left is None else left
        if not self._arguments.is_merged:
            return LookUp(sides, wanted, budget, weight=self._weight, is_ordered=is_ordered)
        if wanted is None:
            return Merge(sides, wanted, budget)
        begin = None if extent.after is None else self._lists[0].mark(extent.after)[1]
        return Merge(sides, wanted, budget, forward=extent.forward, begin=begin)

    @property
    def _weight(self) -> int:
        return WEIGHT_OF_A_KEY if self._path.finds_by_node else WEIGHT_OF_A_QUERY

    def _own_came(self, came: list[tuple[Any, Any]], round_trip: int) -> None:
        """Continues with all items of the owner's list, which were looked up."""
        items: list[Item] = []
        for _, answer in came:
            if isinstance(answer, Exception):
                self._fail(answer)
                return
            items += answer if isinstance(answer, list) else [answer] if answer is not None else []
        self._seen_items(0, items, round_trip, self._own_seen)

    def _own_seen(self, items: Sequence[Item], round_trip: int) -> None:
        read_key = _far_reader(self._path)
        found = in_list(self._lists[0], items, self._arguments.to)
        known = [entry for entry in (_entry(read_key, self._lists[0], each) for each in found) if entry]
        walk = LookUp(len(self._lists), None, self._run.limits.read_budget, weight=self._weight, known=known)
        self._read_key = read_key
        self._run_walk(walk, Extent(0), round_trip, partial(self._known_came, walk))

    def _known_came(self, walk: Common, round_trip: int) -> None:
        self._step.show_found(self._run, self._bound, [entry.item for entry in walk.found], round_trip)

    def _all_came(self, walk: Common, round_trip: int) -> None:
        """Continues when all common items are known: reads what shows their order on the page."""
        extent, size = self._bound.connection.request.extent, self._arguments.size
        found = [entry.item for entry in walk.found]
        ranks = Ranks(self._lists[0], found, extent, is_ordered=not walk.is_unordered)
        unknown = {} if self._step.page is None else ranks.unknown(size, walk.left)

        def came(parts: list[tuple[Any, Any]], arrived: int) -> None:
            failed = next((part for _, part in parts if isinstance(part, Exception)), None)
            if failed is not None:
                self._fail(failed)
            elif ranks.decide(parts):
                self._step.show_found(self._run, self._bound, found, arrived, ranks.order)
            else:
                self._step.count_found(self._run, self._bound, found)
                left = walk.left - sum(part.looked_at for _, part in parts)
                self._page(arrived, is_ordered=True, left=None if self._step.walks_all else left)

        all_came = when_all(len(unknown), round_trip, came)
        for order, part in unknown.items():

            def part_came(answer: Any, arrived: int, order: Any = order) -> None:
                all_came([(order, answer)], arrived)

            self._load(PageOf(self._lists[0], part), round_trip, part_came)

    def _total_came(self, walk: Common, round_trip: int) -> None:
        if not walk.is_open:
            self._all_came(walk, round_trip)
            return
        if self._bound.found is not None:
            self._bound.found.total = None
            self._bound.found.found |= {each.selected: None for each in self._bound.aggregates}
        self._page(round_trip)

    def _page(self, round_trip: int, *, is_ordered: bool = False, left: int | None = None) -> None:
        extent = self._bound.connection.request.extent
        wanted = extent.count + extent.look_ahead
        if self._step.page is None:
            return
        walk = self._walk(wanted, extent, is_ordered=is_ordered, left=left)
        if wanted:
            self._run_walk(walk, extent, round_trip, partial(self._page_came, walk))
        else:
            self._page_came(walk, round_trip)

    def _page_came(self, walk: Common, round_trip: int) -> None:
        if walk.is_unordered:
            self._all_came(walk, round_trip)
            return
        connection, size = self._bound.connection, self._arguments.size
        more, resume = walk.is_open or len(walk.found) > size, None
        if walk.is_open and walk.last is not None and len(walk.found) < size:
            resume = self._place(self._lists[0], walk.last)
        found = Found([each.item for each in walk.found[:size]], more, resume)
        shown = connection.page_of(found)
        if not isinstance(shown, PageOf):
            self._show(shown, round_trip)
            return
        before = self._walk(1, shown.extent, is_ordered=True)
        came = partial(self._behind_came, found, before, shown.extent)
        self._run_walk(before, shown.extent, round_trip, came)

    def _behind_came(self, found: Found, walk: Common, extent: Extent, round_trip: int) -> None:
        is_behind = walk.is_open or bool(walk.found)
        self._show(self._bound.connection.page(found, is_behind=is_behind), round_trip)

    def _show(self, shown: ShownPage, round_trip: int) -> None:
        if self._step.page is not None:
            self._step.page.show(self._run, self._bound, shown, round_trip)

    # --- Running a walk -------------------------------------------------------------------------------------

    def _run_walk(self, walk: Common, extent: Extent, round_trip: int, then: Callable[[int], None]) -> None:
        """`extent` is the walked part of the owner's list."""
        self._go_on(walk.walk(), None, extent, then, round_trip)

    def _go_on(
        self,
        steps: Generator[Sequence[Wanted], Sequence[Came], None],
        answers: Sequence[Came] | None,
        extent: Extent,
        then: Callable[[int], None],
        round_trip: int,
    ) -> None:
        try:
            wanted = next(steps) if answers is None else steps.send(answers)
        except StopIteration:
            then(round_trip)
            return

        def all_came(came: list[tuple[int, Any]], arrived: int) -> None:
            failed = next((answer for _, answer in came if isinstance(answer, Exception)), None)
            if failed is not None:
                self._fail(failed)
                return
            there = [answer for _, answer in sorted(came, key=lambda each: each[0])]
            self._go_on(steps, there, extent, then, arrived)

        came = when_all(len(wanted), round_trip, all_came)
        for number, each in enumerate(wanted):

            def one_came(answer: Any, arrived: int, number: int = number) -> None:
                came([(number, answer)], arrived)

            if isinstance(each, PageWanted):
                self._load_page(each, extent, round_trip, one_came)
            else:
                self._load_keys(each, round_trip, one_came)

    def _load_page(
        self, wanted: PageWanted, extent: Extent, round_trip: int, then: Callable[[Any, int], None]
    ) -> None:
        neighbours, is_own, begin = self._lists[wanted.side], wanted.side == 0, wanted.begin
        after = extent.after if is_own else None
        if begin is not None:
            after = self._begin_place(neighbours, begin, forward=extent.forward)
        attributes = self._bound.connection.request.extent.attributes
        forward = extent.forward or not (is_own or self._arguments.is_merged)
        until, count = extent.until if is_own else None, wanted.count
        part = Extent(count, forward, after, until, budget=wanted.budget, attributes=attributes)
        read = partial(self._page_read, wanted, neighbours, part, then)
        self._load(PageOf(neighbours, part), round_trip, read)

    def _page_read(
        self,
        wanted: PageWanted,
        neighbours: NeighbourList,
        extent: Extent,
        then: Callable[[Any, int], None],
        answer: Found | Exception,
        round_trip: int,
    ) -> None:
        if isinstance(answer, Exception):
            then(answer, round_trip)
            return
        entries = [each for each in (_entry(self._read_key, neighbours, one) for one in answer.items) if each]
        resume = None
        if answer.resume is not None:
            key = neighbours.mark(answer.resume)[1] if self._arguments.is_merged else answer.resume
            resume = Entry(key)
            self._resumed[key] = answer.resume
        elif answer.items and not entries:
            # None of its items leads to a node; continue reading after it.
            place = neighbours.place_of(answer.items[-1].item)
            resume = Entry(place)
            self._resumed[place] = place
        is_ended = answer.resume is None and not answer.more and len(answer.items) < extent.count
        then(Came(entries, answer.looked_at, is_ended, resume), round_trip)

    def _begin_place(self, neighbours: NeighbourList, begin: Begin, *, forward: bool) -> Place:
        key = begin.key
        if isinstance(key, Entry):
            return self._place(neighbours, key)
        sort = neighbours.prefix + key if isinstance(key, str) else key
        return neighbours.place_at(sort, forward=forward, is_included=begin.is_included)

    def _place(self, neighbours: NeighbourList, entry: Entry) -> Place:
        return self._resumed[entry.key] if entry.item is None else neighbours.place_of(entry.item.item)

    def _load_keys(self, wanted: KeysWanted, round_trip: int, then: Callable[[Any, int], None]) -> None:
        neighbours, owner = self._lists[wanted.side], self._owners[wanted.side]
        read_far = _far_reader(self._path)
        nodes = {
            entry.key: entry.key if entry.item is None else read_far(neighbours, entry.item)
            for entry in wanted.entries
        }

        def came(answers: list[tuple[Any, Any]], arrived: int) -> None:
            items: list[Item] = []
            for _, answer in answers:
                if isinstance(answer, Exception):
                    then(answer, arrived)
                    return
                items += answer if isinstance(answer, list) else [answer] if answer is not None else []
            self._seen_items(wanted.side, items, arrived, seen)

        def seen(items: Sequence[Item], arrived: int) -> None:
            there = [
                entry
                for entry in (_entry(self._read_key, neighbours, each) for each in in_list(neighbours, items))
                if entry is not None and entry.key in nodes
            ]
            if self._arguments.is_merged:
                by_key = {entry.key: entry for entry in there}
                there = [by_key[entry.key] for entry in wanted.entries if entry.key in by_key]
            then(Came(there), arrived)

        if self._path.finds_by_node:
            keys = edge_keys(neighbours, owner, [*nodes.values()])
            self._look_up([(None, key) for key in keys], round_trip, came)
            return
        requests = [EdgesTo(neighbours, owner, node) for node in nodes.values()]
        all_came = when_all(len(requests), round_trip, came)
        for request in requests:
            self._load(request, round_trip, lambda answer, arrived: all_came([(None, answer)], arrived))

    def _look_up(
        self, wanted: Sequence[tuple[Any, Any]], round_trip: int, then: Callable[[list[Any], int], None]
    ) -> None:
        look_all_up(self._run, self._bound.place, round_trip, _LATER, wanted, then)

    def _load(self, request: PageOf | EdgesTo, round_trip: int, then: Callable[[Any, int], None]) -> None:
        read = Read((self._bound.place,), round_trip, _LATER, goes_on=True)
        self._run.scheduler.load(request, read, then)


def _mark(neighbours: NeighbourList, located: Located) -> Any:
    """The position of an edge after the common prefix of its list's sort keys."""
    return neighbours.mark(neighbours.place_of(located.item))[1]


def _far_reader(path: AccessPath) -> Callable[[NeighbourList, Located], Any]:
    """Returns a function that reads the identity of the node to which an edge of the path leads."""
    record, end = path.record, path.record.ends[path.far_end or ""]
    return lambda _, located: record.end_identity(located.item, end)


def _entry(
    read_key: Callable[[NeighbourList, Located], Any], neighbours: NeighbourList, located: Located
) -> Entry | None:
    """An item as walks know it; None if it leads to no node."""
    try:
        key = read_key(neighbours, located)
    except CorruptItem:
        return None
    return None if key is None else Entry(key, located)
