"""What one list of one owner costs: its page, its count, and the edges to nodes that the client names."""

from __future__ import annotations

from dataclasses import dataclass
from math import ceil

from keygraph.dynamo.limits import BATCH_GET_KEYS, PAGE_BYTES
from keygraph.dynamo.prices import read_units
from keygraph.lists.counting import count_requests
from keygraph.lists.reading import LARGEST_LIMIT, looked_at_first, most_requests
from keygraph_resolvers.plan.charges import MOST, NOTHING, Charge, Traffic, requests_charge
from keygraph_resolvers.plan.shown import ShownList
from keygraph_resolvers.plan.statistics import Statistics
from keygraph_resolvers.read.connection import list_kind
from keygraph_resolvers.read.context import RequestContext


@dataclass(frozen=True, slots=True)
class Joint:
    """How a list, or a node, is read together with others."""

    is_carrier: bool
    """Whether what the request costs counts here."""
    is_late: bool
    """Whether the request may not come to it."""
    is_large: bool
    """Whether it may be more than one page."""
    bytes: float
    """The size of what is read with it, if the cost counts here."""


class ListCost:
    """What one list of one owner costs."""

    def __init__(
        self,
        context: RequestContext,
        statistics: Statistics,
        shown: ShownList,
        joint: Joint | None = None,
    ) -> None:
        needs, said, path, reading = shown.needs, shown.said, shown.needs.path, shown.neighbours.reading
        self._context = context
        self._shown = shown
        self._joint = joint
        self._statistics = statistics
        self._needs = needs
        self._said = said
        self._kind = list_kind(path, said)
        self._shards = path.keys.shards or 1
        self._bytes = statistics.item_bytes(path.record, path.keys.index_name)
        self._pieces = max(1, sum(not piece.is_empty for piece in reading.pieces))
        self._is_filtered = said.where is not None or bool(reading.others)
        # Of shards, those before the cursor's pass over what has its sort key.
        is_narrowed = bool(shown.neighbours.narrowed)
        passes_over = path.reads_others or is_narrowed or (shown.begins_behind and self._shards > 1)
        self._looks_on = self._is_filtered or passes_over
        ahead = "hasPreviousPage" if said.from_end else "hasNextPage"
        self._wanted = 1 if path.is_one else said.size + (ahead in needs.looks)
        behind = "hasNextPage" if said.from_end else "hasPreviousPage"
        self._looks_back = behind in needs.looks and shown.begins_behind and said.size > 0
        self._per_page = max(1, int(PAGE_BYTES / (2 * self._bytes)))

    @property
    def is_apart(self) -> bool:
        """Whether nobody knows in which round trip it ends."""
        if self._said.to is not None:
            return False
        return self._looks_back or self._requests(self._wanted) > self._shards

    @property
    def bytes(self) -> float:
        """The size of what its page is likely to look at in a shard."""
        return self._looked_at() * self._bytes

    @property
    def most_bytes(self) -> float:
        """The same at most."""
        return self._wanted * 2 * self._bytes

    @property
    def most(self) -> int:
        """How many edges it gives at most."""
        if self._said.to is not None and self._needs.path.finds_by_node:
            return min(self._said.size, len(self._said.to))
        return self._said.size

    @property
    def likely(self) -> float:
        if self._said.to is not None:
            return min(self._said.size, len(self._said.to))
        length = self._statistics.length(self._kind)
        return self.most if length is None else min(self.most, length * self._shards)

    def page(self) -> Charge:
        """The charge of its page."""
        if not self._needs.has_page or not self._wanted:
            return NOTHING
        requests = self._requests(self._wanted)
        looked_at = self._looked_at()
        if self._joint is not None:
            more, likely = requests + self._joint.is_large, int(self._joint.is_carrier)
            units = read_units(ceil(self._joint.bytes), consistent=False) if likely else 0
            return requests_charge(more, self._chain(requests), likely, looked_at, units)
        length = self._statistics.length(self._kind)
        # All pieces are read where there is less in them than the page holds.
        is_all = length is not None and length < self._wanted
        charge = self._charge(requests, looked_at, self._pieces if is_all else 1)
        if self._looks_back:
            more = self._requests(1)
            back = requests_charge(more, self._chain(more), self._shards, self._shards, self._shards / 2)
            charge = charge.then(back)
        if self._said.after is not None and self._said.before is not None:
            # Of two cursors at one sort key only reading tells which is the first.
            more = ceil(self._context.limits.read_budget / min(self._per_page, LARGEST_LIMIT)) + 1
            charge = Charge(Traffic(more, 0, 0, more)).then(charge)
        return charge

    def count(self) -> Charge:
        """The charge of counting it."""
        counted = self._statistics.counted(self._kind)
        pieces = max(1, len(count_requests(self._shown.neighbours)))
        pages = max(1, ceil(2 * counted * self._bytes / PAGE_BYTES)) + pieces - 1
        at_once = pieces * self._shards
        most = min(pages * self._shards, max(at_once, self._context.limits.count_pages))
        units = self._units(counted) + (pieces - 1) * self._shards / 2
        return requests_charge(most, 1 + most - at_once, at_once, counted * self._shards, units)

    def named(self) -> Charge:
        """The charge of the edges to the nodes that the client names."""
        path, count = self._needs.path, len(self._said.to or ())
        if path.finds_by_node:
            keys = count * (path.record.table_keys.shards or 1)
            units = count * self._statistics.units_of_get(path.record) + (keys - count) / 2
            batches = ceil(keys / BATCH_GET_KEYS)
            return requests_charge(batches, 1, batches, count, units) if count else NOTHING
        between = path.keys_of_both_ends
        requests = count * ((between.shards if between else None) or 1)
        return requests_charge(requests, 1, requests, count, requests / 2) if count else NOTHING

    def _charge(self, requests: int, looked_at: float, pieces: int) -> Charge:
        """The charge of requests that look at so many items in each shard, in so many pieces of the range."""
        units = self._units(looked_at) + (pieces - 1) * self._shards / 2
        most = Traffic(min(MOST, requests), 0, 0, self._chain(requests))
        likely = Traffic(self._shards * pieces, 0, 0, pieces)
        return Charge(most, likely, looked_at * self._shards, units, units)

    def _units(self, looked_at: float) -> float:
        return self._shards * read_units(ceil(looked_at * self._bytes), consistent=False)

    def _chain(self, requests: int) -> int:
        """In how many round trips so many requests are sent at most: the first of each shard go together."""
        return 1 + requests - self._shards

    def _requests(self, wanted: int) -> int:
        """The most requests that a page takes."""
        if not self._looks_on:
            return self._shards * (max(1, ceil(wanted / self._per_page)) + self._pieces - 1)
        return most_requests(
            wanted,
            self._shards,
            self._pieces,
            self._context.limits.read_budget,
            self._per_page,
            is_filtered=self._is_filtered,
            is_searched=self._said.where is not None,
        )

    def _looked_at(self) -> float:
        """How many items of each shard the page is likely to look at."""
        if self._looks_on:
            known = self._statistics.looked_at(self._kind)
            first = looked_at_first(
                self._wanted, is_filtered=self._is_filtered, is_searched=self._said.where is not None
            )
            return first if known is None else known
        length = self._statistics.length(self._kind)
        return self._wanted if length is None else min(self._wanted, length)
