"""Reading lists: pages are filled across shards, pieces of a range, and items that are left out.

It reads no more than the page needs: each shard is a stream that fetches only what is needed, and the streams are
merged by sort key.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

from keygraph.dynamo.order import EXTENSIBLE_BYTES
from keygraph.dynamo.store import Equals, Page, Query, Store
from keygraph.dynamo.table import KeyValue
from keygraph.errors import BadUserInput
from keygraph.lists.listing import Located, NeighbourList, Place
from keygraph.lists.ranges import Span
from keygraph.turns import AT_ONCE, in_turns

_FILTERED_LIMIT = 32
LARGEST_LIMIT = 1024
"""With a filter, a request examines `_FILTERED_LIMIT` items at first, and twice as many each time up to this limit."""
_SEARCHED = 3
"""With a condition of a client or a rule, the first request examines so many times the wanted items: another request
costs more than examining some items that do not match."""


@dataclass(frozen=True, slots=True)
class Extent:
    """The wanted part of a list.

    `forward` is along the sort key. Reading begins after `after` and ends before `until`, both in the direction of
    reading; it stops at `count` items, and `look_ahead` asks whether there is one more. `budget` is how many items the
    store may examine. If `after` is at or after `until`, nothing is between them.
    """

    count: int
    forward: bool = True
    after: Place | None = None
    until: Place | None = None
    look_ahead: bool = False
    budget: int = 10_000
    attributes: frozenset[str] | None = None
    """The attributes that are wanted from the items in addition to those that the list itself needs; None for all."""


class Found(NamedTuple):
    """A part of a list, in the direction of reading.

    `more`: there is another item, or the budget ended the reading. In the latter case `resume` is the place to continue
    after; else it is None. `looked_at` is how many items the store examined for it, unless it ended at `until`.
    """

    items: list[Located]
    more: bool
    resume: Place | None
    looked_at: int = 0


@dataclass(slots=True)
class _Stream:
    """One shard of a list: the items fetched and not taken yet, and where to continue."""

    query: Query
    shard: int
    later: deque[Query] = field(default_factory=deque)
    """The pieces of the range after the one that is being read."""
    waiting: deque[Located] = field(default_factory=deque)
    frontier: Place | None = None
    """The last known place that the store examined: nothing of the list is between it and what is read next."""
    is_fresh: bool = True
    """Whether nothing of its piece has been read."""
    ended: bool = False
    skipped_sort: KeyValue | None = None
    """A sort key whose items were read before, by a cursor of another shard."""


class _Part(NamedTuple):
    """The part that was read of a list, in the direction of reading."""

    items: list[Located]
    is_open: bool = False
    """Whether the budget ended the reading."""
    resume: Place | None = None
    is_whole: bool = False
    """Whether the item before which the reading ends was itself read."""
    looked_at: int = 0


async def read(store: Store, neighbours: NeighbourList, extent: Extent) -> Found:
    """Returns the wanted part of the list. Raises a StoreError, and BadUserInput if only more than the budget shows
    whether items are before the end."""
    wanted = extent.count + extent.look_ahead
    if not wanted or (extent.until is not None and extent.after == extent.until):
        return Found([], False, None)
    part = await _read(store, neighbours, extent, wanted)
    if extent.until is not None and part.items and not part.is_whole:
        last = neighbours.place_of(part.items[-1].item)
        if neighbours.order_of(last) == neighbours.order_of(extent.until):
            part = await _before(store, neighbours, extent, extent.until, part)
    more = part.is_open or len(part.items) > extent.count
    return Found(part.items[: extent.count], more, part.resume, part.looked_at)


async def _read(store: Store, neighbours: NeighbourList, extent: Extent, wanted: int) -> _Part:
    """Returns `wanted` items of the list, up to the sort key of the place before which it ends."""
    streams = [
        stream
        for shard in range(len(neighbours.partitions))
        if (stream := _stream(neighbours, extent, shard, wanted)) is not None
    ]
    least = 1 if neighbours.is_filtered else wanted
    taken: list[Located] = []
    looked_at = 0
    if len(streams) == 1 and extent.until is None:
        # Most lists are one page, which is taken whole.
        [stream] = streams
        page = await send_page(store, neighbours, _asked(stream, max(least, extent.budget)))
        found = await _included(neighbours, stream, page)
        if len(found) >= wanted or (page.last is None and not stream.later):
            return _Part(found, looked_at=page.scanned)
        looked_at = _took(neighbours, stream, page, found)
    while len(taken) < wanted:
        starved = [stream for stream in streams if not stream.waiting and not stream.ended]
        if starved:
            if looked_at >= extent.budget:
                # A new piece is started anyway, so that continuing after a short page makes progress.
                fresh = [stream for stream in starved if stream.is_fresh]
                if not fresh:
                    part = _out_of_budget(neighbours, extent, streams, starved, taken)
                    return part._replace(looked_at=looked_at)
                starved = fresh
            share = max(least, (extent.budget - looked_at) // len(starved))
            if len(starved) == 1:
                looked_at += await _fetch(store, neighbours, starved[0], share)
            else:
                fetching = (_fetch(store, neighbours, stream, share) for stream in starved)
                looked_at += sum(await asyncio.gather(*fetching))
            continue
        heads = [stream for stream in streams if stream.waiting]
        if not heads:
            break
        ended = _take(neighbours, extent, _nearest(neighbours, extent, heads), taken)
        if ended is not None:
            return ended
    return _Part(taken, looked_at=looked_at)


async def send_page(store: Store, neighbours: NeighbourList, query: Query) -> Page:
    """Returns a page of the list's range, with what was found out about its items."""
    send = neighbours.form.send
    return await (store.send(query) if send is None else send(store, query))


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


def page_requests(neighbours: NeighbourList, extent: Extent) -> list[Query]:
    """Returns the requests for the page in one shard, as far as they are known before anything is read.

    One for each piece of the range; all but the first are sent only if the page reaches them.
    """
    wanted = extent.count + extent.look_ahead
    stream = _stream(neighbours, extent, 0, wanted) if wanted else None
    return [] if stream is None else [stream.query, *stream.later]


def requests_of_all(neighbours: NeighbourList, limit: int | None = None) -> list[Query]:
    """Returns the requests for all of a list, in pages of `limit` items, as the last write left it.

    A global index is written later than the table: only the table's keys of its items are requested.
    """
    index = neighbours.path.keys.index
    is_late = index is not None and not index.local
    keys = None if index is None else tuple((key.name,) for key in neighbours.graph.table.keys)
    return [
        Query(
            partition,
            neighbours.index_name,
            piece.range,
            neighbours.store_filter,
            keys,
            limit=limit,
            consistent=not is_late,
        )
        for partition in neighbours.partitions
        for piece in neighbours.reading.pieces
    ]


# --- Streams ------------------------------------------------------------------------------------------


def _stream(neighbours: NeighbourList, extent: Extent, shard: int, wanted: int) -> _Stream | None:
    """Returns the stream of a shard; None if nothing of it is wanted."""
    reading = neighbours.reading
    limit = looked_at_first(
        wanted + len(reading.singles),
        is_filtered=neighbours.is_filtered,
        is_searched=neighbours.is_searched,
    )
    partition, index, forward = neighbours.partitions[shard], neighbours.index_name, extent.forward
    filter_, projection = neighbours.store_filter, neighbours.form.projection(extent.attributes)
    behind, before, start, skipped = None, None, None, None
    if extent.after is not None:
        is_passed = shard != extent.after.shard and (shard < extent.after.shard) == forward
        start = extent.after.position if shard == extent.after.shard else None
        if neighbours.has_sort_key:
            sort = neighbours.sort_value(extent.after)
            behind = Span(low=sort) if forward else Span(high=sort)
            if is_passed:
                skipped, behind = sort, behind.within(_beyond(sort, forward=forward))
        elif is_passed:
            return None
    if extent.until is not None and neighbours.has_sort_key:
        # What is after the end is not examined either.
        end = neighbours.sort_value(extent.until)
        before = Span(high=end) if forward else Span(low=end)
    queries: deque[Query] = deque()
    pieces = reading.pieces
    for piece in pieces if forward else pieces[::-1]:
        part = piece if before is None else piece.within(before)
        rest = part if behind is None else part.within(behind)
        if rest is not piece and rest.is_empty:
            continue
        # DynamoDB refuses to start outside the range; a start inside needs no narrower range.
        has_start = start is not None and (not neighbours.has_sort_key or part.contains(start[1]))
        range_, at = (part.range, start) if has_start else (rest.range, None)
        queries.append(Query(partition, index, range_, filter_, projection, forward, limit, at))
    return _Stream(queries.popleft(), shard, queries, skipped_sort=skipped) if queries else None


def _beyond(sort: KeyValue, *, forward: bool) -> Span:
    """Returns the sort keys after one in the direction of reading, without that one if a bound can express it."""
    if not isinstance(sort, str) or not sort or len(sort.encode()) > EXTENSIBLE_BYTES:
        return Span()
    return Span(low=sort + "\0") if forward else Span(high=sort, below=True)


async def _fetch(store: Store, neighbours: NeighbourList, stream: _Stream, most: int) -> int:
    """Fetches one page of at most `most` items into the stream; returns how many items the store examined."""
    page = await send_page(store, neighbours, _asked(stream, most))
    return _took(neighbours, stream, page, await _included(neighbours, stream, page))


def _asked(stream: _Stream, most: int) -> Query:
    """Returns the request for the stream's next page."""
    query = stream.query
    return query if (query.limit or 1) <= most else replace(query, limit=most)


async def _included(neighbours: NeighbourList, stream: _Stream, page: Page) -> list[Located]:
    """Returns the items of a page that are in the list and were not read before."""
    items = page.items
    is_short = len(items) <= AT_ONCE
    found = neighbours.included(items) if is_short else await in_turns(neighbours.included, items)
    if stream.skipped_sort is None:
        return found
    return [each for each in found if neighbours.sort_of(each.item) != stream.skipped_sort]


def _took(neighbours: NeighbourList, stream: _Stream, page: Page, found: Sequence[Located]) -> int:
    """Adds the items found on a page to the stream; returns how many items the store examined."""
    limit = stream.query.limit or 1
    stream.waiting.extend(found)
    stream.is_fresh = page.last is None
    if page.last is not None:
        stream.frontier = Place(stream.shard, page.last)
        if len(found) == page.scanned < limit:
            limit -= page.scanned  # it ended with its size, and all of it was wanted
        else:
            limit = max(limit, min(limit * 2, LARGEST_LIMIT))
        stream.query = replace(stream.query, start=page.last, limit=limit)
    elif stream.later:
        if stream.waiting:
            stream.frontier = neighbours.place_of(stream.waiting[-1].item)
        stream.query = stream.later.popleft()
    else:
        stream.ended = True
    return page.scanned


def _nearest(neighbours: NeighbourList, extent: Extent, heads: list[_Stream]) -> _Stream:
    if len(heads) == 1:
        return heads[0]
    choose = min if extent.forward else max
    return choose(heads, key=lambda stream: _order_of_first(neighbours, stream))


def _order_of_first(neighbours: NeighbourList, stream: _Stream) -> tuple[Any, int]:
    return neighbours.order_of(neighbours.place_of(stream.waiting[0].item))


def _take(neighbours: NeighbourList, extent: Extent, stream: _Stream, taken: list[Located]) -> _Part | None:
    """Takes a stream's first item; returns the part if that ends the reading."""
    located = stream.waiting.popleft()
    place = neighbours.place_of(located.item)
    if _is_reached(neighbours, extent, place):
        return _Part(taken, is_whole=place == extent.until)
    taken.append(located)
    return None


def _is_reached(neighbours: NeighbourList, extent: Extent, place: Place) -> bool:
    """Returns whether the reading has reached the place before which it ends, or is after it by the sort key."""
    if extent.until is None:
        return False
    if place == extent.until:
        return True
    here, there = neighbours.order_of(place), neighbours.order_of(extent.until)
    return here > there if extent.forward else here < there


def _out_of_budget(
    neighbours: NeighbourList,
    extent: Extent,
    streams: list[_Stream],
    starved: list[_Stream],
    taken: list[Located],
) -> _Part:
    """Returns what was found up to the place to which every shard has been read."""
    choose = min if extent.forward else max
    frontiers = [stream.frontier for stream in starved if stream.frontier is not None]
    resume = choose(frontiers, key=lambda place: neighbours.order_of(place))
    while len(taken) <= extent.count and (heads := [stream for stream in streams if stream.waiting]):
        nearest = _nearest(neighbours, extent, heads)
        here, end = _order_of_first(neighbours, nearest), neighbours.order_of(resume)
        if here > end if extent.forward else here < end:
            break
        ended = _take(neighbours, extent, nearest, taken)
        if ended is not None:
            return ended
        if nearest.frontier is not None and not (nearest.waiting or nearest.ended):
            resume = choose(resume, nearest.frontier, key=lambda place: neighbours.order_of(place))
    return _Part(taken, True, resume if len(taken) < extent.count else None)


# --- Where a list ends among equal sort keys ------------------------------------------------------------
#
# Items of an index may share a sort key. DynamoDB keeps them in an undocumented order, apparently by a hash. It returns
# what follows a place (`ExclusiveStartKey`), even if the place has no item anymore. So the first item of the list after
# the end is looked up, and what the reading took from that item on is left out.


async def _before(
    store: Store, neighbours: NeighbourList, extent: Extent, until: Place, part: _Part
) -> _Part:
    """Returns the items of a part, whose last items have the sort key of its end, that are before that end."""
    behind = await _following(store, neighbours, extent, until)
    if behind is None:
        return part
    places = [neighbours.place_of(each.item) for each in part.items]
    if behind in places:
        return _Part(part.items[: places.index(behind)])
    after = extent.after
    if after is None or neighbours.order_of(after) != neighbours.order_of(until):
        return part
    # Both cursors have this sort key: the reading started after the end, unless what follows the end is still to come.
    is_ahead = await _following(store, neighbours, extent, places[-1], behind)
    return part if is_ahead else _Part([])


async def _following(
    store: Store, neighbours: NeighbourList, extent: Extent, place: Place, wanted: Place | None = None
) -> Place | None:
    """Returns where the first item of the list, or the wanted one, is that follows a place at its sort key."""
    limit = looked_at_first(1, is_filtered=neighbours.is_filtered, is_searched=neighbours.is_searched)
    query = Query(
        place.position[0],
        neighbours.index_name,
        Equals(neighbours.sort_value(place)),
        neighbours.store_filter,
        neighbours.form.projection(frozenset()),
        extent.forward,
        limit,
        place.position,
    )
    stream, looked_at = _Stream(query, place.shard), 0
    while not stream.ended:
        if looked_at >= extent.budget:
            raise BadUserInput(
                f"more than {extent.budget:,} edges have the sort key of the cursor at which the list is to end; "
                "leave this cursor out"
            )
        looked_at += await _fetch(store, neighbours, stream, extent.budget - looked_at)
        for each in stream.waiting:
            found = neighbours.place_of(each.item)
            if wanted is None or found == wanted:
                return found
        stream.waiting.clear()
    return None
