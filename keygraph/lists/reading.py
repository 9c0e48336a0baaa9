"""Reading lists: `read` and `count` are generators that answer a `ListQuery`. They yield the requests that are in flight
at the same time, and are sent their pages: `send_reads` does that with a store.

A page is filled across shards, pieces of a range, and items that are left out. It reads no more than it needs: most pages
are one request (`_requests_of`), taken whole. Else each shard is a stream that fetches only what is needed (`_Shard`),
and the streams are merged by sort key (`_PageReading`).

The store counts if its answer is right for the list; otherwise the keys are read and recognized here.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Generator, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple, TypeAlias, TypeVar

from keygraph.dynamo.conditions import Condition, conjunction, disjunction
from keygraph.dynamo.order import EXTENSIBLE_BYTES
from keygraph.dynamo.store import Count, Counted, Equals, Query, Store
from keygraph.dynamo.table import KeyValue, Position
from keygraph.errors import BadUserInput
from keygraph.graph import Graph
from keygraph.lists.checks import literal
from keygraph.lists.extent import NO_PAGE, Located, Place
from keygraph.lists.query import ListQuery
from keygraph.lists.ranges import Span
from keygraph.lists.siblings import filled
from keygraph.model.paths import AccessPath
from keygraph.turns import AT_ONCE, in_turns, operation_budget

_FILTERED_LIMIT = 32
LARGEST_LIMIT = 1024
"""With a filter, a request examines `_FILTERED_LIMIT` items at first, and twice as many each time up to this limit."""
_MANY = 16
"""More requests than this are sent in a turn of their own: each takes some of it."""
_SEARCHED = 3
"""With a condition of a client or a rule, the first request examines so many times the wanted items: another request
costs more than examining some items that do not match."""


class Found(NamedTuple):
    """A part of a list, in the direction of reading.

    `more`: there is another item, or the budget ended the reading. In the latter case `resume` is the place to continue
    after; else it is None. `looked_at` is how many items the store examined for it, unless it ended at `until`.
    """

    items: list[Located]
    more: bool
    resume: Place | None
    looked_at: int = 0


class ListedPage(NamedTuple):
    """A page of a list's range: the items that are in the list, where the store ended, and how many it examined."""

    items: list[Located]
    last: Position | None
    scanned: int


ReturnedT = TypeVar("ReturnedT")
ListReads: TypeAlias = Generator[Sequence[Query | Count], Sequence[Any], ReturnedT]
"""Yields requests that are in flight at the same time, and is sent their answers: for a Query, a `ListedPage`."""


async def send_reads(store: Store, query: ListQuery, reads: ListReads[ReturnedT]) -> ReturnedT:
    """Returns what a generator returns that reads a list, with the answers of a store. Raises a StoreError."""
    send = query.form.send
    answers: Any = None
    while True:
        try:
            requests = reads.send(answers)
        except StopIteration as end:
            returned: ReturnedT = end.value
            return returned
        if len(requests) > _MANY:
            await operation_budget().wait_if_over()
        sent: Any = [
            store.send(each) if send is None or isinstance(each, Count) else send(store, each)
            for each in requests
        ]
        pages = [await sent[0]] if len(sent) == 1 else await asyncio.gather(*sent)
        answers = [
            page
            if type(page) is Counted
            else ListedPage(query.included(page.items), page.last, page.scanned)
            if len(page.items) <= AT_ONCE
            else ListedPage(await in_turns(query.included, page.items), page.last, page.scanned)
            for page in pages
        ]


def read(query: ListQuery) -> ListReads[Found]:
    """Returns the wanted part of the list. Raises BadUserInput if only more than the budget shows whether items are
    before the end."""
    extent, until = query.extent, query.extent.until
    wanted, budget, looked_at = extent.count + extent.look_ahead, extent.budget, 0
    if not wanted or (until is not None and extent.after == until):
        return Found([], False, None)
    if query.form.leaves_some and not query.looks_on:
        few = looked_at_beside(wanted + len(query.reading.singles), len(query.partitions))
        budget = min(budget, few)
    by_shard = [_requests_of(query, shard, wanted) for shard in range(len(query.partitions))]
    least, page = 1 if query.is_filtered else wanted, None
    if len(by_shard) == 1 and by_shard[0] and until is None:
        [requests] = by_shard
        first, most = requests[0], max(least, budget)
        [page] = yield [first if (first.limit or 1) <= most else replace(first, limit=most)]
        if len(page.items) >= wanted or (page.last is None and len(requests) == 1):
            # Most lists are one page, which is taken whole.
            more = len(page.items) > extent.count
            return Found(page.items[: extent.count], more, None, page.scanned)
    shards = [_Shard(query, number, requests) for number, requests in enumerate(by_shard) if requests]
    if page is not None:
        looked_at = shards[0].take(page)
    reading = _PageReading(query, shards, wanted, budget, looked_at)
    yield from reading.run(least)
    if until is not None and reading.taken and not reading.is_end_there:
        last = query.place_of(reading.taken[-1].item)
        if query.order_of(last) == query.order_of(until):
            yield from reading.leave_out_from(until)
    items = reading.taken
    more = reading.is_open or len(items) > extent.count
    return Found(items[: extent.count], more, reading.resume, reading.looked_at)


# --- One shard ------------------------------------------------------------------------------------------


@dataclass(slots=True)
class _Shard:
    """One shard of a list: the items fetched and not taken yet, and where to continue."""

    query: ListQuery
    number: int
    requests: deque[Query]
    """The next request, and those for the pieces of the range after it; empty at the end of the shard."""
    waiting: deque[Located] = field(default_factory=deque)
    frontier: Place | None = None
    """The last known place that the store examined: nothing of the list is between it and what is read next."""
    is_fresh: bool = True
    """Whether nothing of its piece has been read."""

    def request(self, most: int) -> Query:
        """Returns the request for its next page, of at most `most` items."""
        query = self.requests[0]
        return query if (query.limit or 1) <= most else replace(query, limit=most)

    def take(self, page: ListedPage) -> int:
        """Adds the items of the page that was requested, without those that were read before. Returns how many items the
        store examined."""
        query, found, request = self.query, page.items, self.requests[0]
        if query.extent.after is not None and query.form.has_sort_key and _is_passed(query, self.number):
            # A cursor of another shard.
            passed = query.sort_value(query.extent.after)
            found = [each for each in found if query.sort_of(each.item) != passed]
        self.waiting.extend(found)
        self.is_fresh = page.last is None
        if page.last is not None:
            self.frontier = Place(self.number, page.last)
            limit = request.limit or 1
            if len(found) == page.scanned < limit:
                limit -= page.scanned  # it ended with its size, and all of it was wanted
            else:
                limit = max(limit, min(limit * 2, LARGEST_LIMIT))
            self.requests[0] = replace(request, start=page.last, limit=limit)
        else:
            self.requests.popleft()
            if self.requests and self.waiting:
                self.frontier = query.place_of(self.waiting[-1].item)
        return page.scanned

    @property
    def first_order(self) -> tuple[Any, int]:
        return self.query.order_of(self.query.place_of(self.waiting[0].item))


def _requests_of(query: ListQuery, shard: int, wanted: int) -> deque[Query]:
    """Returns the requests for the pieces of a shard, in the direction of reading."""
    extent, reading, has_sort_key = query.extent, query.reading, query.form.has_sort_key
    limit = looked_at_first(
        wanted + len(reading.singles), is_filtered=query.is_filtered, is_searched=query.form.is_searched
    )
    partition, index, forward = query.partitions[shard], query.path.keys.index_name, extent.forward
    filter_, is_own = query.store_filter, extent.attributes is query.form.extent.attributes
    projection = query.form.page_projection if is_own else query.form.projection(extent.attributes)
    behind, before, start = None, None, None
    pieces = reading.pieces if forward else reading.pieces[::-1]
    if extent.after is None and extent.until is None:
        ranges = [piece.range for piece in pieces]
        return deque([Query(partition, index, each, filter_, projection, forward, limit) for each in ranges])
    if extent.after is not None:
        start = extent.after.position if shard == extent.after.shard else None
        if has_sort_key:
            sort = query.sort_value(extent.after)
            behind = Span(low=sort) if forward else Span(high=sort)
            if _is_passed(query, shard):
                behind = behind.within(_beyond(sort, forward=forward))
        elif _is_passed(query, shard):
            return deque()
    if extent.until is not None and has_sort_key:
        # What is after the end is not examined either.
        end = query.sort_value(extent.until)
        before = Span(high=end) if forward else Span(low=end)
    queries: deque[Query] = deque()
    for piece in pieces:
        part = piece if before is None else piece.within(before)
        rest = part if behind is None else part.within(behind)
        if rest is not piece and rest.is_empty:
            continue
        # DynamoDB refuses to start outside the range; a start inside needs no narrower range.
        has_start = start is not None and (not has_sort_key or part.contains(start[1]))
        range_, at = (part.range, start) if has_start else (rest.range, None)
        queries.append(Query(partition, index, range_, filter_, projection, forward, limit, at))
    return queries


def _is_passed(query: ListQuery, shard: int) -> bool:
    """Returns whether items of a shard with the sort key of the cursor come before the cursor of another shard."""
    after = query.extent.after
    return after is not None and shard != after.shard and (shard < after.shard) == query.extent.forward


def _beyond(sort: KeyValue, *, forward: bool) -> Span:
    """Returns the sort keys after one in the direction of reading, without that one if a bound can express it."""
    if not isinstance(sort, str) or not sort or len(sort.encode()) > EXTENSIBLE_BYTES:
        return Span()
    return Span(low=sort + "\0") if forward else Span(high=sort, below=True)


# --- All shards -----------------------------------------------------------------------------------------


class _PageReading:
    """Reads `wanted` items of a list, up to the sort key of the place before which it ends."""

    def __init__(
        self, query: ListQuery, shards: Sequence[_Shard], wanted: int, budget: int, looked_at: int
    ) -> None:
        self.query = query
        self.wanted = wanted
        self.budget = budget
        self.looked_at = looked_at
        self.taken: list[Located] = []
        """The items, in the direction of reading."""
        self.is_open = False
        """Whether the budget ended the reading."""
        self.resume: Place | None = None
        self.is_end_there = False
        """Whether the item before which the reading ends was itself read."""
        self._shards = shards

    def run(self, least: int) -> ListReads[None]:
        """Each request examines at least so many items, even if less is left of the budget."""
        while len(self.taken) < self.wanted:
            starved = [shard for shard in self._shards if not shard.waiting and shard.requests]
            if starved:
                if self.looked_at >= self.budget:
                    # A new piece is started anyway, so that continuing after a short page makes progress.
                    fresh = [shard for shard in starved if shard.is_fresh]
                    if not fresh:
                        self._end_open(starved)
                        return
                    starved = fresh
                share = max(least, (self.budget - self.looked_at) // len(starved))
                pages = yield [shard.request(share) for shard in starved]
                self.looked_at += sum(map(_Shard.take, starved, pages))
                continue
            heads = [shard for shard in self._shards if shard.waiting]
            if not heads or self._is_last(self._nearest(heads)):
                return

    def _nearest(self, heads: list[_Shard]) -> _Shard:
        if len(heads) == 1:
            return heads[0]
        choose = min if self.query.extent.forward else max
        return choose(heads, key=lambda shard: shard.first_order)

    def _is_last(self, shard: _Shard) -> bool:
        """Takes a shard's first item, unless that ends the reading."""
        query, until = self.query, self.query.extent.until
        located = shard.waiting.popleft()
        if until is not None:
            place = query.place_of(located.item)
            here, there = query.order_of(place), query.order_of(until)
            self.is_end_there = place == until
            if self.is_end_there or (here > there if query.extent.forward else here < there):
                self.looked_at = 0
                return True
        self.taken.append(located)
        return False

    def _end_open(self, starved: list[_Shard]) -> None:
        """Takes what was found up to the place to which every shard has been read, because the budget is used up."""
        order_of, extent = self.query.order_of, self.query.extent
        choose = min if extent.forward else max
        resume = choose((each.frontier for each in starved if each.frontier is not None), key=order_of)
        while len(self.taken) <= extent.count and (heads := [each for each in self._shards if each.waiting]):
            nearest = self._nearest(heads)
            here, end = nearest.first_order, order_of(resume)
            if here > end if extent.forward else here < end:
                break
            if self._is_last(nearest):
                return
            if nearest.frontier is not None and nearest.requests and not nearest.waiting:
                resume = choose(resume, nearest.frontier, key=order_of)
        self.is_open, self.resume = True, resume if len(self.taken) < extent.count else None

    # --- Where a list ends among equal sort keys ----------------------------------------------------------
    #
    # Items of an index may share a sort key. DynamoDB keeps them in an undocumented order, apparently by a hash. It
    # returns what follows a place (`ExclusiveStartKey`), even if the place has no item anymore. So the first item of the
    # list after the end is looked up, and what the reading took from that item on is left out.

    def leave_out_from(self, until: Place) -> ListReads[None]:
        """Leaves out the items from the end on, whose sort key the last items have."""
        query = self.query
        behind = yield from self._following(until)
        if behind is None:
            return
        places = [query.place_of(each.item) for each in self.taken]
        if behind in places:
            del self.taken[places.index(behind) :]
        else:
            after = query.extent.after
            if after is None or query.order_of(after) != query.order_of(until):
                return
            # Both cursors have this sort key: the reading started after the end, unless what follows the end is still
            # to come.
            if (yield from self._following(places[-1], behind)):
                return
            self.taken = []
        self.is_open, self.resume, self.looked_at = False, None, 0

    def _following(self, place: Place, wanted: Place | None = None) -> ListReads[Place | None]:
        """Returns where the first item of the list, or the wanted one, is that follows a place at its sort key."""
        query = self.query
        request = Query(
            place.position[0],
            query.path.keys.index_name,
            Equals(query.sort_value(place)),
            query.store_filter,
            query.form.projection(frozenset()),
            query.extent.forward,
            looked_at_first(1, is_filtered=query.is_filtered, is_searched=query.form.is_searched),
            place.position,
        )
        shard, looked_at = _Shard(query.part(NO_PAGE), place.shard, deque([request])), 0
        while shard.requests:
            if looked_at >= self.budget:
                raise BadUserInput(
                    f"more than {self.budget:,} edges have the sort key of the cursor at which the list is to end; "
                    "leave this cursor out"
                )
            [page] = yield [shard.request(self.budget - looked_at)]
            looked_at += shard.take(page)
            for each in shard.waiting:
                following = query.place_of(each.item)
                if wanted is None or following == wanted:
                    return following
            shard.waiting.clear()
        return None


# --- Counts -----------------------------------------------------------------------------------------------
#
# A count reads all items that it counts: DynamoDB charges for their sizes in any case. So it has a limit, in pages of at
# most 1 MB (128 read units). Above the limit, there is no count.
#
# A count equals the number of items that paging through the list finds: the items of its type, by type attribute and key,
# that meet its conditions. There are two exceptions, because recognizing every item here would make the store's own count
# useless. If items have a type attribute, the store counts items with the right one, under keys that begin as the type's
# and contain its templates' literals, even if other parts are not valid values (`RIDE#tomorrow` for a time);
# `may_count_unread` is for such lists, and their schema says so. An index without the type attribute counts by keys
# alone.


def count(query: ListQuery, most_pages: int) -> ListReads[int | None]:
    """Returns how many items the list has; None if more pages are needed to know it.

    At least one page of each shard, and of each piece of the range, is read, all of them at once.
    """
    total, requests = 0, list(count_requests(query))
    left = max(most_pages, len(requests))
    while requests and left:
        sent = requests[:left]
        answers = yield sent
        left -= len(sent)
        total += sum(each.count if isinstance(each, Counted) else len(each.items) for each in answers)
        rest = requests[len(sent) :]
        requests = [
            replace(request, start=answer.last)
            for request, answer in zip(sent, answers, strict=True)
            if answer.last is not None
        ]
        requests += rest
    return None if requests else total


def count_requests(query: ListQuery) -> Sequence[Count | Query]:
    """Returns the first requests to count the list: one for each shard and piece of the range, all at once.

    Counts, if the store's own is the list's; else Queries for keys that are recognized here.
    """
    index, by_store = query.path.keys.index_name, _counted_by_store(query)
    spans = query.reading.pieces if by_store is None else by_store
    parts = [(partition, span.range) for partition in query.partitions for span in spans]
    if by_store is not None:
        filter_ = _filter_of_store(query)
        return [Count(partition, index, range_, filter_) for partition, range_ in parts]
    filter_, projection = query.decided.filter_with_type, query.form.projection(frozenset())
    return [Query(partition, index, range_, filter_, projection=projection) for partition, range_ in parts]


def _counted_by_store(query: ListQuery) -> tuple[Span, ...] | None:
    """Returns the parts of the range for which the store's own count is the list's; None if items are recognized here.

    The store can count if items have a type attribute and siblings have another value in it, or if every key that is
    possible there is one of the list's. In an index with other keys than the table's, any item may have such a key.
    """
    form, path, reading = query.form, query.path, query.reading
    if query.decided.condition is not None or form.is_checked:
        return None
    own, siblings = [*query.parts] or [path.record], (*reading.singles, *reading.others)
    if not form.has_types:
        if not path.reads_table_keys or reading.split is None or query.parts:
            return None
        return filled(path, reading.split, dict((*query.values, *form.fixed)))
    excludes = form.graph.type_values.condition_excludes
    if all(excludes(each, sibling) for each in own for sibling in siblings):
        return reading.pieces
    return reading.split


def _filter_of_store(query: ListQuery) -> Condition | None:
    """Returns the filter for the store's count, whose items and keys are not seen here: the table's keys have the literal
    text of the type's keys, except those that are keys of the index that is read."""
    if query.parts:
        return disjunction(*(_filter_of_store(part) for part in query.parts.values()))
    begins = (
        each
        for key, template in query.path.record.table_keys.parts
        if key.name not in query.path.keys.names
        for each in literal(key.name, template)
    )
    return conjunction(query.decided.filter_with_type, conjunction(*begins))


def may_count_unread(graph: Graph, path: AccessPath) -> bool:
    """Returns whether items can be counted that are not in the list, because a part of their key is not valid."""
    if path.members:
        return any(may_count_unread(graph, member) for member in path.members)
    if graph.type_condition(path) is None:
        return False
    partition, *sort = (key.name for key in path.keys.attributes)
    return not all(
        (path.rest if key.name in sort else template).is_decided_by_beginning
        for key, template in path.record.table_keys.parts
        if key.name != partition
    )


# --- What is known before anything is read ------------------------------------------------------------------


def page_requests(query: ListQuery) -> list[Query]:
    """Returns the requests for the page in one shard, as far as they are known before anything is read.

    One for each piece of the range; all but the first are sent only if the page reaches them.
    """
    wanted = query.extent.count + query.extent.look_ahead
    return [*_requests_of(query, 0, wanted)] if wanted else []


def requests_of_all(query: ListQuery, limit: int | None = None) -> list[Query]:
    """Returns the requests for all of a list, in pages of `limit` items, as the last write left it.

    A global index is written later than the table: only the table's keys of its items are requested.
    """
    index, name = query.path.keys.index, query.path.keys.index_name
    is_late = index is not None and not index.local
    keys = None if index is None else tuple((key.name,) for key in query.form.graph.table.keys)
    return [
        Query(partition, name, piece.range, query.store_filter, keys, limit=limit, consistent=not is_late)
        for partition in query.partitions
        for piece in query.reading.pieces
    ]


def most_requests(
    wanted: int, shards: int, pieces: int, budget: int, per_page: int, *, is_filtered: bool, is_searched: bool
) -> int:
    """Returns the most requests that `read` can send for so many items, if not everything in the range is in the list.

    Every request of a shard examines twice as many items as the previous one, up to the largest limit and a page's
    size, until the budget is used up. That is slowest if all shards proceed alike; the last requests get the rest. Each
    piece of the range starts again with few items.
    """
    if not wanted:
        return 0
    first = looked_at_first(wanted, is_filtered=is_filtered, is_searched=is_searched)
    limit, looked_at, rounds, few = first, 0, 0, 1
    while looked_at < budget:
        looked_at += min(limit, per_page) * shards
        rounds += 1
        few += limit < min(per_page, LARGEST_LIMIT)
        limit = max(limit, min(limit * 2, LARGEST_LIMIT))
    return (rounds + (pieces - 1) * few) * shards + 2 * (shards - 1)


def looked_at_first(wanted: int, *, is_filtered: bool, is_searched: bool) -> int:
    """Returns how many items of a shard the first request for so many items of the list examines.

    `is_filtered`: not everything in the range is in the list. `is_searched`: because a client sets a condition.
    """
    if not wanted or not is_filtered:
        return wanted
    likely = min(wanted * _SEARCHED, LARGEST_LIMIT) if is_searched else wanted
    return max(wanted, likely, _FILTERED_LIMIT)


def looked_at_beside(wanted: int, shards: int) -> int:
    """Returns how many items may be examined for so many items of a range, of which some in its outer seconds are left
    out: then the page is short."""
    return 3 * shards * wanted
