"""Lists limited to the items that other nodes have too: `alsoOf`.

The lists of the owner and of the others are walked together (`keygraph.walks.common`). Other arguments of the list,
except those of its partition, apply only to the owner's own edges.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import cached_property
from math import ceil, log
from typing import Any, cast

from keygraph.dynamo.limits import READ_UNIT_BYTES
from keygraph.errors import CorruptItem
from keygraph.lists.describe import DescribedRequest, described_requests
from keygraph.lists.extent import Extent, Located, Place
from keygraph.lists.named_edges import Ranks, in_list
from keygraph.lists.query import ListQuery
from keygraph.lists.reading import LARGEST_LIMIT, Found, page_requests
from keygraph.model.paths import AccessPath
from keygraph.model.permissions import is_decided_by_key, restricted_name
from keygraph.model.records import RecordType
from keygraph.names import camel
from keygraph.walks.common import (
    FIRST,
    FIRST_OF_ALL,
    GROWTH,
    MOST_KEYS,
    WEIGHT_OF_A_KEY,
    WEIGHT_OF_A_QUERY,
    Common,
    Entry,
    KeysWanted,
    LookUp,
    Merge,
    PageWanted,
    WalkAnswer,
    Wanted,
)
from keygraph_resolvers.engine.requests import All, Begun, Beside, Load, Reads
from keygraph_resolvers.engine.worst import (
    MOST_ROUND_TRIPS,
    Described,
    KeyLookups,
    QueryRequests,
    Times,
    Wait,
    Worst,
    weakly,
)
from keygraph_resolvers.naming.global_ids import at_most, read_id_or_key
from keygraph_resolvers.naming.names import ALSO_OF
from keygraph_resolvers.read.access import forbidden
from keygraph_resolvers.read.connection import Connection, ListArguments
from keygraph_resolvers.read.objects import Object
from keygraph_resolvers.read.run import Run
from keygraph_resolvers.steps.get import filter_visible, worst_of_visible
from keygraph_resolvers.steps.list_worst import Count, ListWorst
from keygraph_resolvers.steps.lists import ListStep, decided_lists, look_up_items

MOST_IDS = 10
_WAIT = "common"


class CommonArguments(ListArguments):
    """The arguments of a list with `alsoOf`."""

    is_read_alone = True

    def __init__(self, run: Run, path: AccessPath, given: Mapping[str, Any], looks: frozenset[str]) -> None:
        super().__init__(run, path, given, looks)
        owners = () if path.owner is None else (path.owner,)
        named = at_most(ALSO_OF, given.get(ALSO_OF) or (), MOST_IDS)
        ids = (read_id_or_key(run.graph, ALSO_OF, owners, text)[1] for text in named)
        self.also = tuple(dict.fromkeys(ids))
        """The identities of the others, each once."""
        self.is_merged = path.is_by_node
        # If only the node follows the prefix in the key, a range leaves the same nodes out of all lists.
        narrowed = path.ranged if self.is_merged else ()
        kept = {camel(argument.name) for argument in (*path.required, *narrowed)}
        common = {name: value for name, value in given.items() if name in kept}
        self.theirs = ListArguments(run, path, common, frozenset())
        """The arguments for the lists of the others."""


class CommonStep(ListStep):
    """Reads the part of lists that the lists of other nodes have as well."""

    _arguments = CommonArguments

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

    @property
    def weight(self) -> int:
        """The share of the budget, in items, that looking up an edge between two nodes takes."""
        return WEIGHT_OF_A_KEY if self.path.finds_by_node else WEIGHT_OF_A_QUERY

    def read_decided(self, op: Run, connections: Sequence[Connection]) -> Begun:
        begun: Begun = []
        for each in connections:
            others = [other for other in self.arguments(op).also if other != each.query.owner]
            if others:
                begun.append(Beside(_CommonReading(self, op, each, others).read()))
            else:
                begun += super().read_decided(op, [each])
        return begun

    # --- What it costs ------------------------------------------------------------------------------------

    def worst(self, run: Run) -> Worst:
        others = 0
        with suppress(Exception):  # nothing is read; the answer says why
            arguments, most = self.arguments(run), self.most(run)
            is_hidden = arguments.is_hidden(run)
            others = len(arguments.also)
        if not others:
            yield from super().worst(run)
            return
        yield self._common_node
        if run.access is not None and self.path.owner is not None and self._is_decided_by_item():
            # The others are read first, to know whether the viewer sees them.
            yield from worst_of_visible(run, (self.path.owner,), others, _WAIT)
        if self.is_read and not is_hidden:
            yield from _CommonWorst(self, most, others, arguments.is_merged).requests(run)

    def _is_decided_by_item(self) -> bool:
        """Whether only an owner's item can decide that the viewer sees it, or its list."""
        owner = self.path.owner
        if owner is None:
            return False
        name = restricted_name(owner, self.path.name)
        return not is_decided_by_key(owner) or (name is not None and not is_decided_by_key(owner, name))

    # --- How it is explained --------------------------------------------------------------------------------

    @cached_property
    def _common_node(self) -> Described:
        """The walk is the same for the page, the count and the aggregates."""
        return replace(
            self.node or self.page_node, page=weakly(self._common_text), reads=weakly(self._common_reads)
        )

    def _common_text(self, run: Run, text: str) -> str:
        arguments = self.arguments(run)
        others = "1 other" if len(arguments.also) == 1 else f"{len(arguments.also)} others"
        method = "merged" if arguments.is_merged else "looked up"
        text = (self.node or self.page_node).page(run, text)
        return f"{text or 'all'} in common with {others}, {method}"

    def _common_reads(self, run: Run, owner: tuple[str, ...] | None) -> Iterator[DescribedRequest]:
        arguments, count = self.arguments(run), len(self.arguments(run).also)
        extent = replace(arguments.extent, count=FIRST_OF_ALL if self.walks_all else FIRST)
        if arguments.to is not None:
            yield from self._described("page", run, owner)
        elif not arguments.is_key_lookup:
            yield described_requests(run.graph, page_requests(arguments.any_described.part(extent)))
        elif self.path.finds_by_node:
            return
        theirs = described_requests(run.graph, page_requests(arguments.theirs.any_described.part(extent)))
        yield replace(theirs, keys=f"{theirs.keys}, {'once' if count == 1 else f'{count} times'}")


class _CommonReading:
    """The reading of one list."""

    def __init__(
        self, step: CommonStep, run: Run, connection: Connection, others: Sequence[tuple[str, ...]]
    ) -> None:
        self._step = step
        self._op = run
        self._connection = connection
        self._path = step.path
        self._arguments = step.arguments(run)
        self._owner = cast(RecordType, step.path.owner)
        self._others = [Object(self._owner, identity) for identity in others]
        self._connections = [connection]
        """The owner's list, and those of the others."""
        self._read_key = _mark if self._arguments.is_merged else _far_reader(step.path)
        self._resumed: dict[Any, Place] = {}
        """The positions at which pages of the owner's list reached their item limit, by the walk's key."""

    def read(self) -> Reads[None]:
        """Reads the list, if the viewer sees the others and their lists."""
        try:
            if (yield from self._is_visible()):
                yield from self._read_visible()
        except Exception as error:
            self._step.fail(self._connection, error)

    def _is_visible(self) -> Reads[bool]:
        """Returns whether the viewer sees the others and something of all lists. If not, the list has its answer."""
        op, access, owner, others = self._op, self._op.access, self._owner, self._others
        name = restricted_name(owner, self._path.name)
        is_visible = access is None or all(access.decide(each) is not False for each in others)
        if access is not None and is_visible:
            names = [] if name is None else [name]
            visible = yield from filter_visible(op, owner, others, _WAIT, names=names)
            for error in filter(None, (each.error for each in others)):
                raise error
            is_visible = len(visible) == len(others)
            if (
                is_visible
                and name is not None
                and not all(access.allows(each, "read", name) for each in others)
            ):
                self._connection.owner.found[self._step.selected] = forbidden(owner, name)
                return False

        def make() -> list[Connection]:
            return [self._arguments.theirs.of(op, each) for each in others]

        if is_visible:
            self._connections += yield from decided_lists(op, make(), make, _WAIT)
        if not is_visible or any(each.is_closed for each in self._connections):
            yield self._step.take_all(op, self._connection, ())
            return False
        return True

    # --- The walks of a list ------------------------------------------------------------------------------

    def _read_visible(self) -> Reads[None]:
        if self._arguments.is_key_lookup or self._arguments.to is not None:
            yield from self._look_up()
        elif not self._step.is_read:
            return
        elif self._step.walks_all:
            yield from self._read_all()
        else:
            yield from self._read_page()

    def _walk(
        self, wanted: int | None, extent: Extent, *, is_ordered: bool = False, left: int | None = None
    ) -> Common:
        """The walk for a part of the list, or for all of it; with `is_ordered`, in its order. `left` is its budget if
        another walk has used a part."""
        sides, budget = len(self._connections), self._op.limits.read_budget if left is None else left
        if not self._arguments.is_merged:
            return LookUp(sides, wanted, budget, weight=self._step.weight, is_ordered=is_ordered)
        if wanted is None:
            return Merge(sides, wanted, budget)
        begin = None if extent.after is None else self._connection.query.mark(extent.after)[1]
        return Merge(sides, wanted, budget, forward=extent.forward, begin=begin)

    def _look_up(self) -> Reads[None]:
        """Looks up all items of the owner's list."""
        query, nodes, sides = self._connection.query, self._arguments.to, len(self._connections)
        items = yield from look_up_items(self._op, self._connection, nodes, _WAIT)
        if isinstance(items, Exception):
            raise items
        self._read_key = _far_reader(self._path)
        known = self._entries(query, in_list(query, items, nodes))
        walk = LookUp(sides, None, self._op.limits.read_budget, weight=self._step.weight, known=known)
        yield from self._run_walk(walk, Extent(0))
        yield self._step.take_all(self._op, self._connection, [entry.item for entry in walk.found])

    def _take_found(self, walk: Common) -> Reads[None]:
        """Continues when all common items are known: reads what shows their order on the page."""
        found = [entry.item for entry in walk.found]
        ranks = Ranks(self._connection.query, found, is_ordered=not walk.is_unordered)
        unknown = {} if self._step.page is None else ranks.unknown(self._arguments.size, walk.left)
        parts = _sound((yield All([_load(part) for part in unknown.values()])))
        if ranks.decide([*zip(unknown, parts, strict=True)]):
            yield self._step.take_all(self._op, self._connection, found, ranks.order)
            return
        yield self._step.count_found(self._op, self._connection, found)
        left = walk.left - sum(part.looked_at for part in parts)
        yield from self._read_page(is_ordered=True, left=None if self._step.walks_all else left)

    def _read_all(self) -> Reads[None]:
        walk = self._walk(None, self._connection.query.extent)
        yield from self._run_walk(walk, Extent(0))
        if not walk.is_open:
            yield from self._take_found(walk)
            return
        answer = self._connection.answer
        if answer is not None:
            answer.total = None
            answer.found |= {each.selected: None for each in self._step.aggregates}
        yield from self._read_page()

    def _read_page(self, *, is_ordered: bool = False, left: int | None = None) -> Reads[None]:
        connection, size, page = self._connection, self._arguments.size, self._step.page
        extent = connection.query.extent
        wanted = extent.count + extent.look_ahead
        if page is None:
            return
        walk = self._walk(wanted, extent, is_ordered=is_ordered, left=left)
        if wanted:
            yield from self._run_walk(walk, extent)
        if walk.is_unordered:
            yield from self._take_found(walk)
            return
        more, resume = walk.is_open or len(walk.found) > size, None
        if walk.is_open and walk.last is not None and len(walk.found) < size:
            resume = self._place(connection.query, walk.last)
        found = Found([each.item for each in walk.found[:size]], more, resume)
        behind = connection.arguments.may_look_back and connection.part_behind(found)
        if isinstance(behind, ListQuery):
            before = self._walk(1, behind.extent, is_ordered=True)
            yield from self._run_walk(before, behind.extent)
            behind = before.is_open or bool(before.found)
        yield page.take_pages(self._op, [(connection, connection.page(found, is_behind=behind))])

    # --- Running a walk -------------------------------------------------------------------------------------

    def _run_walk(self, walk: Common, extent: Extent) -> Reads[None]:
        """Answers a walk. `extent` is the walked part of the owner's list. Raises the error of reading something."""
        steps, answers = walk.walk(), None
        with suppress(StopIteration):
            while True:
                wanted = steps.send(cast(Any, answers))
                answers = _sound((yield All([self._part(each, extent) for each in wanted])))

    def _part(self, wanted: Wanted, extent: Extent) -> Reads[WalkAnswer | Exception]:
        return self._page_part(wanted, extent) if isinstance(wanted, PageWanted) else self._keys_part(wanted)

    def _page_part(self, wanted: PageWanted, extent: Extent) -> Reads[WalkAnswer | Exception]:
        query, is_own, begin = self._connections[wanted.side].query, wanted.side == 0, wanted.begin
        after = extent.after if is_own else None
        if begin is not None and isinstance(begin.key, Entry):
            after = self._place(query, begin.key)
        elif begin is not None:
            sort = query.sort_key(begin.key)
            after = query.place_at(sort, forward=extent.forward, is_included=begin.is_included)
        attributes = self._connection.query.extent.attributes
        forward = extent.forward or not (is_own or self._arguments.is_merged)
        until, count = extent.until if is_own else None, wanted.count
        part = Extent(count, forward, after, until, budget=wanted.budget, attributes=attributes)
        answer = yield _load(query.part(part))
        if isinstance(answer, Exception):
            return answer
        entries, resume = self._entries(query, answer.items), None
        if answer.resume is not None:
            key = query.mark(answer.resume)[1] if self._arguments.is_merged else answer.resume
            resume = Entry(key)
            self._resumed[key] = answer.resume
        elif answer.items and not entries:
            # None of its items leads to a node; continue reading after it.
            place = query.place_of(answer.items[-1].item)
            resume = Entry(place)
            self._resumed[place] = place
        is_ended = answer.resume is None and not answer.more and len(answer.items) < part.count
        return WalkAnswer(entries, answer.looked_at, is_ended, resume)

    def _place(self, query: ListQuery, entry: Entry) -> Place:
        return self._resumed[entry.key] if entry.item is None else query.place_of(entry.item.item)

    def _keys_part(self, wanted: KeysWanted) -> Reads[WalkAnswer | Exception]:
        connection, read_far = self._connections[wanted.side], _far_reader(self._path)
        nodes = {
            entry.key: entry.key if entry.item is None else read_far(connection.query, entry.item)
            for entry in wanted.entries
        }
        items = yield from look_up_items(self._op, connection, nodes.values(), _WAIT)
        if isinstance(items, Exception):
            return items
        entries = self._entries(connection.query, in_list(connection.query, items))
        there = [entry for entry in entries if entry.key in nodes]
        if self._arguments.is_merged:
            by_key = {entry.key: entry for entry in there}
            there = [by_key[entry.key] for entry in wanted.entries if entry.key in by_key]
        return WalkAnswer(there)

    def _entries(self, query: ListQuery, items: Sequence[Located]) -> list[Entry]:
        """Returns items as walks know them, without those that lead to no node."""
        entries = []
        for each in items:
            with suppress(CorruptItem):
                key = self._read_key(query, each)
                entries += [] if key is None else [Entry(key, each)]
        return entries


def _load(request: ListQuery) -> Load:
    return Load(request, _WAIT, goes_on=True)


def _sound(answers: Sequence[Any]) -> Sequence[Any]:
    """Returns answers if none is an error. Raises the first error."""
    for error in answers:
        if isinstance(error, Exception):
            raise error
    return answers


def _mark(query: ListQuery, located: Located) -> Any:
    """The position of an edge after the common prefix of its list's sort keys."""
    return query.mark(query.place_of(located.item))[1]


def _far_reader(path: AccessPath) -> Callable[[ListQuery, Located], Any]:
    """Returns a function that reads the identity of the node to which an edge of the path leads."""
    record, end = path.record, path.record.ends[path.far_end or ""]
    return lambda _, located: record.end_identity(located.item, end)


# --- What it costs ------------------------------------------------------------------------------------


@dataclass(frozen=True)
class _CommonWorst:
    """The most that one list takes, with the lists of `others` other nodes: the walks of `keygraph.walks.common`, in figures.

    Each round of pages reads more items of each list than the one before it (`GROWTH`), until the budget is used up. A
    list that ends early takes one more round. Between two rounds of pages there is at most one of keys per hundred keys.
    """

    step: CommonStep
    most: ListWorst
    """The most that the owner's list alone takes."""
    others: int
    is_merged: bool

    def requests(self, run: Run) -> Worst:
        step, most, page = self.step, self.most, self.step.page
        for link in most.own_links:
            yield KeyLookups((link.record,), 1 + self.others)
        if most.own_links:
            yield Wait(_WAIT, 1, 0)
        if most.is_key_lookup or most.named is not None:
            size = yield from most.looked_up()
            yield QueryRequests(0, is_open=True)
            yield from self._tests(size * self.others, 0, 1)
            yield Wait(_WAIT, most.trips, 0, repeats=True)
            size = min(size, most.size)
        else:
            chain = 0
            for _ in range(step.walks_all + (page is not None) * (1 + most.looks_back)):
                chain += yield from self._walk(chain)
            if page is not None and not self.is_merged and step.path.keys.index is not None:
                yield from self._ranks(chain)
                chain += 3
            yield Wait(_WAIT, chain, 0, repeats=True)
            size = most.size
        if page is not None and size:
            yield Times(size)
            yield from page.worst(run)

    def _walk(self, begins: int) -> Count:
        """Yields one walk, and returns its number of round trips."""
        most, budget, lists = self.most, self.most.budget, 1 + self.others
        shards, pieces, per_page = most.shards, most.pieces, most.per_page
        rounds = ceil(log(max(GROWTH, budget / FIRST), GROWTH)) + 3 + lists
        overshoot = 2 * lists * FIRST
        if most.looks_on:
            overshoot += lists * shards * pieces * min(LARGEST_LIMIT, per_page)
        items = budget * (1 if shards == 1 else 1 + shards) + overshoot * shards
        least = min(32, per_page) if most.looks_on else per_page
        reads = lists * rounds * shards * (3 if most.looks_on and shards > 1 else 1)
        requests = reads + ceil(items / least) + lists * shards * pieces
        tests = (budget // self.step.weight) + 2 * FIRST * lists
        test_rounds = rounds + budget // (self.step.weight * MOST_KEYS) + 2
        pages = requests if most.looks_on or shards > 1 else rounds + ceil(items / least) + pieces
        chain = min(most.trips * (pages + test_rounds), MOST_ROUND_TRIPS)
        yield self._queries(requests, items, chain, begins)
        yield from self._tests(tests, begins, chain)
        yield from most.links_of(requests, items, (begins, begins))
        return chain

    def _ranks(self, begins: int) -> Worst:
        """Yields the reads of items with equal sort keys of an index, which decide the order of a page; what they leave
        of the budget is for a walk in the list's order."""
        lists, orders = 1 + self.others, self.most.size // 2 + 2
        items = lists * FIRST + orders
        requests = (lists + orders) * self.most.shards
        yield self._queries(requests, items, 3, begins)
        yield from self.most.links_of(requests, items, (0, begins))

    def _tests(self, tests: int, begins: int, chain: int) -> Worst:
        """Yields the lookups of `tests` edges between two nodes, in `chain` round trips."""
        if self.step.path.finds_by_node:
            within = (begins, begins + chain + self.most.trips - 2)
            yield KeyLookups(tuple(self.step.path.records), tests, within=within, is_usual=False)
            for each in self.most.links:
                yield KeyLookups((each.record,), tests, within=within, is_usual=False)
            return
        between = self.step.path.keys_of_both_ends
        requests = tests * (len(between.shard_texts) if between else 1)
        yield self._queries(requests, requests * self.most.per_page, chain, begins)

    def _queries(self, requests: int, items: int, chain: int, begins: int) -> QueryRequests:
        """Returns so many Queries, which find so many items, in `chain` round trips."""
        units = requests / 2 + items * self.step.path.record.item_bytes / (2 * READ_UNIT_BYTES)
        return QueryRequests(requests, items, units, chain, begins, is_open=True)
