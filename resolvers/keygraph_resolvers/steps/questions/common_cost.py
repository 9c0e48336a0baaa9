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
from keygraph_resolvers.read.access import links_of
from keygraph_resolvers.read.run import Run
from keygraph_resolvers.steps.list_cost import ListCost, add_links, keys_cost
from keygraph_resolvers.steps.step import MOST, MOST_ROUND_TRIPS, Below, Starts, StepCost


@dataclass(frozen=True)
class CommonCost:
    """The most that one list of each owner takes, with the lists of `others` other nodes."""

    most: ListCost
    """The most that the owner's list alone takes."""
    path: AccessPath
    others: int
    is_merged: bool
    is_unseen: bool
    """Whether nothing is read of it, because the viewer sees nothing of its lists."""

    def of(self, run: Run, starts: Starts, *, is_asked_for: bool) -> tuple[StepCost, Below]:
        """`is_asked_for`: the others are read first, to know whether the viewer sees them."""
        most, cost = self.most, StepCost()
        walks_all = most.has_total or most.has_aggregate
        if is_asked_for and self.path.owner is not None:
            cost = keys_cost([self.path.owner], starts, self.others)
            owner_links = links_of(run, self.path.owner)
            for each in owner_links:
                cost.add(keys_cost([each.record], starts.after(), self.others))
            starts = starts.after(2 if owner_links else 1, at_least=0)
        if self.is_unseen or not (most.shown or walks_all):
            return cost, ()
        for link in most.own_links:
            cost.add(keys_cost([link.record], starts, 1 + self.others))
        starts = starts.after(at_least=0) if most.own_links else starts
        if most.is_key_lookup or most.named is not None:
            own, after, size = most.looked_up(starts)
            cost.add(own)
            cost.add(self._tests(after, size * self.others, 1))
            after, size = after.after(most.trips, at_least=0), min(size, most.size)
        else:
            walks = walks_all + (most.shown is not None) * (1 + most.looks_back)
            chain = 0
            for _ in range(walks):
                walk, more = self._walk(starts.after(chain) if chain else starts)
                cost.add(walk)
                chain += more
            if most.shown is not None and not self.is_merged and self.path.keys.index is not None:
                cost.add(self._ranks(starts.after(chain, at_least=0)))
                chain += 3
            after, size = starts.after(chain, at_least=0), most.size
        cost.is_open = True
        if most.shown is None:
            return cost, ()
        more_cost, below = most.shown.cost(run, after.times(size))
        cost.add(more_cost)
        return cost, below if size else ()

    def _walk(self, starts: Starts) -> tuple[StepCost, int]:
        """Returns the cost of one walk, and its number of round trips."""
        most, budget, lists = self.most, self.most.limits.read_budget, 1 + self.others
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
        cost = self._queries(starts, requests, items, chain)
        cost.add(self._tests(starts, tests, chain))
        add_links(cost, most.links, starts, requests, items)
        return cost, chain

    def _ranks(self, starts: Starts) -> StepCost:
        """Returns the cost of reading items with equal sort keys of an index, which decide the order of a page; what they
        leave of the budget is for a walk in the list's order."""
        lists, orders = 1 + self.others, self.most.size // 2 + 2
        items = lists * FIRST + orders
        requests = (lists + orders) * self.most.shards
        cost = self._queries(starts, requests, items, 3)
        add_links(cost, self.most.links, starts, requests, items)
        return cost

    @property
    def _weight(self) -> int:
        return WEIGHT_OF_A_KEY if self.path.finds_by_node else WEIGHT_OF_A_QUERY

    def _tests(self, starts: Starts, tests: int, chain: int) -> StepCost:
        """The cost of looking up `tests` edges between two nodes, in `chain` round trips."""
        spread = starts.after(chain - 1, at_least=0) if chain > 1 else starts
        last = max(starts.round_trips) + chain - 1
        if self.path.finds_by_node:
            cost = keys_cost(self.path.records, starts, tests)
            for each in self.most.links:
                cost.add(keys_cost([each.record], starts, tests))
            cost.batches = {*spread.round_trips, *spread.after(self.most.trips - 1).round_trips}
            cost.round_trips = last
            return cost
        between = self.path.keys_of_both_ends
        requests = tests * (len(between.shard_texts) if between else 1)
        return self._queries(starts, requests, requests * self.most.per_page, chain)

    def _queries(self, starts: Starts, requests: int, items: int, chain: int) -> StepCost:
        """Returns the cost of so many Queries for each list, which find so many items, in `chain` round trips."""
        units = requests / 2 + items * self.path.record.item_bytes / (2 * READ_UNIT_BYTES)
        return StepCost(
            starts.times(requests).count,
            round_trips=max(starts.round_trips) + chain - 1,
            items=starts.times(items).count,
            read_units=min(float(MOST), starts.count * units),
        )
