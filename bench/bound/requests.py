"""The requests of the bound's naive reader: what it has to request in each round trip, and what has arrived.

Nothing is requested twice. Everything in a round trip arrives before what waits for it continues.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from functools import partial
from itertools import groupby
from typing import TypeAlias

from bench.bound.items import Items
from keygraph.dynamo.conditions import Condition
from keygraph.dynamo.items import Item
from keygraph.dynamo.table import Key, KeyValue
from keygraph.graph import Graph
from keygraph.lists.query import ListQuery
from keygraph.lists.ranges import Span

BATCH_KEYS = 100
"""DynamoDB's limit on the keys of a BatchGetItem."""
SEARCH_LIMITS = (32, 1_024)
"""The least and the most items that one request of a filtered list looks at. The first looks at three for each that is
wanted, each later one at twice as many as the one before."""
_ALL = sys.maxsize
"""The number of wanted items for a range that is read to its end."""


@dataclass(frozen=True, slots=True)
class RoundTrip:
    """The requests that must be sent at the same time."""

    ranges: int
    """Includes the further pages of filtered lists."""
    counts: int
    keys: int

    @property
    def requests(self) -> int:
        return self.ranges + self.counts + -(-self.keys // BATCH_KEYS)


GoOn: TypeAlias = Callable[[], None]
"""Called when something has arrived."""
GoOnWith: TypeAlias = Callable[[list[Item]], None]
"""Called with the items of a page."""


@dataclass(frozen=True, slots=True)
class _Range:
    """The range that one Query reads."""

    index: str | None
    partition: KeyValue
    span: Span
    forward: bool
    conditions: tuple[Condition | None, Condition | None] = (None, None)


@dataclass(slots=True)
class _Part:
    """A node's item, or a page of a list, in the partition of a node that the model gathers."""

    keys: set[Key]
    """The keys of the items that it shows; for an empty list, the key at which its range begins."""
    forward: bool = True
    is_cut: bool = False
    """Whether the list has more items than the page: where they begin is known only by reading up to there."""


@dataclass(slots=True)
class _Level:
    """The requests of one round trip, and what continues when they have been answered."""

    keys: dict[Key, None] = field(default_factory=dict)
    ranges: dict[_Range, int] = field(default_factory=dict)
    """The number of wanted items of each range."""
    searches: int = 0
    """The number of requests for filtered lists."""
    counts: int = 0
    gathered: dict[Key, dict[Key | _Range, _Part]] = field(default_factory=dict)
    """The parts that are read of the partitions of gathered nodes, by the nodes' keys."""
    whole: list[tuple[ListQuery, Span]] = field(default_factory=list)
    """The lists that are read to their end."""
    items: dict[Key, Item] = field(default_factory=dict)
    """The items of the ranges that are shown."""
    later: list[GoOn] = field(default_factory=list)


@dataclass(slots=True)
class _Search:
    """A filtered list that is being read."""

    size: int
    requests: int
    """The number of requests still to be sent."""
    items: list[Item]
    waiting: list[GoOnWith]


class Requests:
    """The requests while an operation is walked, round trip by round trip."""

    def __init__(self, graph: Graph, items: Items) -> None:
        self._graph = graph
        self._items = items
        self._at_hand: dict[Key, Item | None] = {}
        """The items that have arrived, and the keys that are known to have none."""
        self._ranges: dict[_Range, int] = {}
        """The number of items of each range that have arrived."""
        self._read_whole: list[tuple[ListQuery, Span]] = []
        """The lists that have arrived completely."""
        self._searches: dict[_Range, _Search] = {}
        """The filtered lists that have not arrived completely."""
        self._counted: set[_Range] = set()
        self._level = _Level()

    def round_trips(self, start: GoOn) -> tuple[RoundTrip, ...]:
        """Returns the round trips that request something, from those of `start` to the last that continues."""
        levels = []
        now = [start]
        while now:
            level = self._level = _Level()
            for go_on in now:
                go_on()
            made = self._asked(level)
            if made.requests:
                levels.append(made)
            # Nothing of this round trip is known before all of it was requested.
            self._at_hand |= {key: self._items.get(key) for key in level.keys}
            self._at_hand |= level.items
            self._ranges |= level.ranges
            self._read_whole += level.whole
            now = level.later
        return tuple(levels)

    # --- Items by their keys --------------------------------------------------------------------------

    def has_come(self, keys: Sequence[Key]) -> bool:
        """Whether the item of each key is known, or known to be missing."""
        return all(key in self._at_hand for key in keys)

    def get(self, keys: Sequence[Key], go_on: GoOn) -> None:
        """Fetches items by their keys, except those that have arrived already."""
        missing = [key for key in keys if key not in self._at_hand]
        if not missing:
            go_on()
            return
        self._level.keys |= dict.fromkeys(missing)
        self._level.later.append(go_on)

    def get_with_lists(self, keys: Sequence[Key], go_on: GoOn) -> None:
        """Fetches the item of a node that the model gathers: one Query may read it together with the node's lists."""
        self.get(keys, go_on)
        self._gather(keys[0], keys[0], _Part({key for key in keys if self._items.get(key) is not None}))

    def edges(self, neighbours: ListQuery, keys: Sequence[Key], go_on: GoOn) -> None:
        """Fetches the items of a list with these keys."""
        if self._is_whole(neighbours):
            go_on()
        else:
            self.get(keys, go_on)

    def edges_between(
        self,
        neighbours: ListQuery,
        ranges: Iterable[tuple[str | None, KeyValue, Span]],
        go_on: GoOnWith,
    ) -> None:
        """Reads the items of a list in some ranges: an index, a partition and a span each."""
        found, is_waiting = [], False
        is_whole = self._is_whole(neighbours)
        for index, partition, span in ranges:
            items = [item for item in self._items.in_span(index, partition, span) if neighbours.covers(item)]
            found += items
            wanted = _Range(index, partition, span, True)
            if not is_whole and wanted not in self._ranges:
                is_waiting = True
                self._level.ranges[wanted] = _ALL
                self._level.items |= {self._items.table.key_of(item): item for item in items}
        if is_waiting:
            self._level.later.append(partial(go_on, found))
        else:
            go_on(found)

    # --- Lists ----------------------------------------------------------------------------------------

    def page(
        self,
        neighbours: ListQuery,
        size: int,
        forward: bool,
        owner: tuple[str, ...] | None,
        go_on: GoOnWith,
    ) -> None:
        """Reads a page, except what has arrived already."""
        ranges = [
            _Range(
                neighbours.path.keys.index_name,
                partition,
                neighbours.reading.span,
                forward,
                _conditions(neighbours),
            )
            for partition in neighbours.partitions
        ]
        items = self._items.of(neighbours)
        page = (items if forward else items[::-1])[:size]
        missing = [each for each in ranges if self._ranges.get(each, 0) < size]
        if not missing or neighbours.reading.span.is_empty or self._is_whole(neighbours):
            go_on(page)
            return
        gathering = self._gathering(neighbours, owner)
        keys = keys_of(neighbours)
        if keys is not None:
            if gathering is not None and not self.has_come(keys):
                self._gather(gathering, keys[0], _Part({key for key in keys if self._items.get(key)}))
            self.get(keys, partial(go_on, page))
            return
        if neighbours.form.is_searched:
            self._search(neighbours, ranges, size, page, go_on)
            return
        arriving = {self._items.table.key_of(item): item for item in page}
        for each in missing:
            self._level.ranges[each] = max(size, self._level.ranges.get(each, 0))
            if gathering is not None:
                shown = set(arriving) or {(each.partition, each.span.low or "")}
                self._gather(gathering, each, _Part(shown, forward, is_cut=len(items) > size))
        if len(items) < size:
            self._level.whole.append((neighbours, neighbours.reading.span))
        self._level.items |= arriving
        self._level.later.append(partial(go_on, page))

    def count(self, neighbours: ListQuery) -> None:
        """Counts a list, unless it has arrived completely or was counted before."""
        if neighbours.reading.span.is_empty or self._is_whole(neighbours):
            return
        keys = keys_of(neighbours)
        if keys is not None:
            self.get(keys, lambda: None)
            return
        for partition in neighbours.partitions:
            counted = _Range(
                neighbours.path.keys.index_name,
                partition,
                neighbours.reading.span,
                True,
                _conditions(neighbours),
            )
            if counted not in self._counted:
                self._counted.add(counted)
                self._level.counts += 1

    def _is_whole(self, neighbours: ListQuery) -> bool:
        """Whether a list has arrived that contains this one."""
        return any(
            (whole.path.keys.index_name, whole.partitions)
            == (neighbours.path.keys.index_name, neighbours.partitions)
            and whole.path.records == neighbours.path.records
            and neighbours.reading.span.within(span) == neighbours.reading.span
            for whole, span in self._read_whole
        )

    # --- Filtered lists -------------------------------------------------------------------------------

    def _search(
        self,
        neighbours: ListQuery,
        ranges: Sequence[_Range],
        size: int,
        page: list[Item],
        go_on: GoOnWith,
    ) -> None:
        """Reads a filtered page: one request per round trip, until it is filled or the range ends."""
        if len(ranges) > 1:
            raise ValueError("the bound knows filtered lists of one partition alone")
        [searched] = ranges
        search = self._searches.get(searched)
        if search is not None and search.size >= size:
            search.waiting.append(lambda items: go_on(items[:size]))
            return
        requests = self._searches_for(neighbours, searched, size)
        search = self._searches[searched] = _Search(size, requests, page, [go_on])
        self._go_on_searching(searched, search)

    def _go_on_searching(self, searched: _Range, search: _Search) -> None:
        if search.requests:
            search.requests -= 1
            self._level.searches += 1
            self._level.later.append(partial(self._go_on_searching, searched, search))
            return
        self._ranges[searched] = max(search.size, self._ranges.get(searched, 0))
        self._at_hand |= {self._items.table.key_of(item): item for item in search.items}
        if self._searches.get(searched) is search:
            del self._searches[searched]
        for go_on in search.waiting:
            go_on(search.items)

    def _searches_for(self, neighbours: ListQuery, searched: _Range, size: int) -> int:
        """Returns the number of requests that find this many items that pass the filter."""
        looked_at = self._items.in_range(neighbours, searched.partition)
        if not searched.forward:
            looked_at.reverse()
        least, most = SEARCH_LIMITS
        limit, wanted, requests = max(least, min(3 * size, most)), size, 0
        while True:
            requests += 1
            wanted -= sum(neighbours.covers(item) for item in looked_at[:limit])
            # A request whose limit ends exactly at the last item does not know that it is the last one.
            if wanted <= 0 or len(looked_at) < limit:
                return requests
            looked_at = looked_at[limit:]
            limit = min(2 * limit, most)

    # --- Nodes with their lists -----------------------------------------------------------------------

    def _gathering(self, neighbours: ListQuery, owner: tuple[str, ...] | None) -> Key | None:
        """The key of the node with which a list may be read; None if it has to be read separately."""
        record = neighbours.path.owner
        if record is None or not record.gathers or not owner or neighbours.path.keys.index_name is not None:
            return None
        [node] = self._graph.table_keys(record, owner)
        return node if neighbours.partitions == node[:1] and not neighbours.form.is_searched else None

    def _gather(self, node: Key, wanted: Key | _Range, part: _Part) -> None:
        parts = self._level.gathered.setdefault(node, {})
        found = parts.get(wanted)
        if found is not None:
            part = _Part(found.keys | part.keys, part.forward, found.is_cut and part.is_cut)
        parts[wanted] = part

    def _asked(self, level: _Level) -> RoundTrip:
        """Returns the requests of a round trip, with one request for adjacent items in a gathered node's partition."""
        ranges, keys = len(level.ranges) + level.searches, len(level.keys)
        for node, parts in level.gathered.items():
            read = [part for wanted, part in parts.items() if isinstance(wanted, _Range)]
            if not read:
                continue
            ranges -= len(read)
            alone = [part for wanted, part in parts.items() if not isinstance(wanted, _Range)]
            # Items that are not adjacent to the lists cost least in the batch of the others.
            while beside := [
                each for each in alone if self._runs(node, [*read, each]) <= self._runs(node, read)
            ]:
                read.append(beside[0])
                alone.remove(beside[0])
                keys -= 1
            ranges += self._runs(node, read)
        return RoundTrip(ranges, level.counts, keys)

    def _runs(self, node: Key, parts: Sequence[_Part]) -> int:
        """Returns the number of Queries that read these parts of a node's partition without any other item.

        One reads forward or backward, so at most one page is cut at each of its ends.
        """
        wanted = set[Key]().union(*(part.keys for part in parts))
        beside = sorted(wanted.union(self._items.keys_beside(node)))
        queries = 0
        for is_wanted, run in groupby(beside, lambda key: key in wanted):
            if is_wanted:
                keys = set(run)
                queries += max(1, len({part.forward for part in parts if part.is_cut and part.keys & keys}))
        return queries


def keys_of(neighbours: ListQuery) -> list[Key] | None:
    """The keys of all items that a list can have; None if a partition can have more than one, or they are not known."""
    span = neighbours.reading.span
    if neighbours.path.keys.index_name is not None or neighbours.form.is_searched:
        return None
    if not neighbours.form.has_sort_key:
        return [(partition,) for partition in neighbours.partitions]
    if span.low is None or span.low != span.high or span.below:
        return None
    return [(partition, span.low) for partition in neighbours.partitions]


def _conditions(neighbours: ListQuery) -> tuple[Condition | None, Condition | None]:
    return neighbours.decided.filter, neighbours.decided.condition
