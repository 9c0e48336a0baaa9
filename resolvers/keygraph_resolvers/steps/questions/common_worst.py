"""The bound for finding what several lists have in common: the walks of `keygraph.walks.common`, in figures.

Each round of pages reads more items of each list than the one before it (`GROWTH`), until the budget is used up. A list
that ends early takes one more round. Between two rounds of pages there is at most one of keys per hundred keys.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import ceil, log

from keygraph.dynamo.limits import READ_UNIT_BYTES
from keygraph.lists.reading import LARGEST_LIMIT
from keygraph.model.paths import AccessPath
from keygraph.walks.common import FIRST, GROWTH, MOST_KEYS, WEIGHT_OF_A_KEY, WEIGHT_OF_A_QUERY
from keygraph_resolvers.engine.worst import MOST_ROUND_TRIPS, KeyLookups, QueryRequests, Times, Wait, Worst
from keygraph_resolvers.read.run import Run
from keygraph_resolvers.steps.get import worst_of_visible
from keygraph_resolvers.steps.list_worst import Count, ListWorst


@dataclass(frozen=True)
class CommonWorst:
    """The most that one list takes, with the lists of `others` other nodes."""

    most: ListWorst
    """The most that the owner's list alone takes."""
    path: AccessPath
    others: int
    is_merged: bool
    is_hidden: bool
    """Whether nothing is read of it, because the viewer sees nothing of its lists."""

    def requests(self, run: Run, *, are_decided_by_items: bool) -> Worst:
        """`are_decided_by_items`: the others are read first, to know whether the viewer sees them."""
        most = self.most
        walks_all = most.has_total or most.has_aggregate
        if are_decided_by_items and self.path.owner is not None:
            yield from worst_of_visible(run, (self.path.owner,), self.others, "common")
        if self.is_hidden or not (most.step.page or walks_all):
            return
        for link in most.own_links:
            yield KeyLookups((link.record,), 1 + self.others)
        if most.own_links:
            yield Wait("common", 1, 0)
        if most.is_key_lookup or most.named is not None:
            size = yield from most.looked_up()
            yield QueryRequests(0, is_open=True)
            yield from self._tests(size * self.others, 0, 1)
            yield Wait("common", most.trips, 0, repeats=True)
            size = min(size, most.size)
        else:
            chain = 0
            for _ in range(walks_all + (most.step.page is not None) * (1 + most.looks_back)):
                chain += yield from self._walk(chain)
            if most.step.page is not None and not self.is_merged and self.path.keys.index is not None:
                yield from self._ranks(chain)
                chain += 3
            yield Wait("common", chain, 0, repeats=True)
            size = most.size
        if most.step.page is not None and size:
            yield Times(size)
            yield from most.step.page.worst(run)

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
        tests = (budget // self._weight) + 2 * FIRST * lists
        test_rounds = rounds + budget // (self._weight * MOST_KEYS) + 2
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

    @property
    def _weight(self) -> int:
        return WEIGHT_OF_A_KEY if self.path.finds_by_node else WEIGHT_OF_A_QUERY

    def _tests(self, tests: int, begins: int, chain: int) -> Worst:
        """Yields the lookups of `tests` edges between two nodes, in `chain` round trips."""
        if self.path.finds_by_node:
            within = (begins, begins + chain + self.most.trips - 2)
            yield KeyLookups(tuple(self.path.records), tests, within=within, is_usual=False)
            for each in self.most.links:
                yield KeyLookups((each.record,), tests, within=within, is_usual=False)
            return
        between = self.path.keys_of_both_ends
        requests = tests * (len(between.shard_texts) if between else 1)
        yield self._queries(requests, requests * self.most.per_page, chain, begins)

    def _queries(self, requests: int, items: int, chain: int, begins: int) -> QueryRequests:
        """Returns so many Queries, which find so many items, in `chain` round trips."""
        units = requests / 2 + items * self.path.record.item_bytes / (2 * READ_UNIT_BYTES)
        return QueryRequests(requests, items, units, chain, begins, is_open=True)
