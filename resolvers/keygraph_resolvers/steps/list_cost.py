"""The bound of lists: their pages and counts, and the items that are looked up by key."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from math import ceil

from keygraph.dynamo.limits import BATCH_GET_BYTES, BATCH_GET_KEYS, ITEM_BYTES, PAGE_BYTES
from keygraph.dynamo.store import read_units
from keygraph.lists.counting import count_requests
from keygraph.lists.reading import LARGEST_LIMIT, most_requests
from keygraph.model.links import Link
from keygraph.model.paths import AccessPath
from keygraph.model.records import RecordType
from keygraph_resolvers.read.connection import ListArguments
from keygraph_resolvers.read.run import Limits, Run
from keygraph_resolvers.steps.step import MOST, Below, Priced, Starts, StepCost


def add_links(cost: StepCost, links: Sequence[Link], starts: Starts, requests: int, items: int) -> None:
    """Adds the cost of looking up the other items that decide about `items` items of lists from `requests` requests."""
    for each in links:
        found = keys_cost([each.record], starts, items)
        found.apart, found.keys = starts.times(requests + items // BATCH_GET_KEYS).count + found.apart, 0
        cost.add(found)


def keys_cost(records: Sequence[RecordType], starts: Starts, keys: int = 1) -> StepCost:
    """Returns the cost of looking up `keys` items for each start, each of one of the types.

    Several shards may have an item with the key.
    """
    shards = max(len(record.table_keys.shard_texts) for record in records)
    item_bytes = max(record.item_bytes for record in records)
    items = starts.times(keys * shards).count
    units = items * read_units(item_bytes, consistent=False)
    is_large = item_bytes * BATCH_GET_KEYS > BATCH_GET_BYTES
    left_over = items * item_bytes // (BATCH_GET_BYTES - ITEM_BYTES) if is_large else 0
    return StepCost(left_over, items, set(starts.round_trips), max(starts.round_trips), items, units)


@dataclass(frozen=True, slots=True)
class ListCost:
    """The most that a list costs per owner, by its arguments and the size of its items. Equal ones cost the same."""

    path: AccessPath
    shown: Priced | None
    """The page, if one is selected."""
    has_total: bool
    may_be_known: bool
    """Whether the list may have been read for another place."""
    limits: Limits
    size: int
    looks_ahead: bool
    forward: bool
    begins_behind: bool
    looks_back: bool
    """Whether what is before the cursor at which the page begins has to be read."""
    ends_among_equals: bool
    named: int | None
    """How many nodes the client names."""
    is_key_lookup: bool
    pieces: int
    singles: int
    """How many items of other types are examined with the list's."""
    is_searched: bool
    is_filtered: bool
    looks_on: bool
    """Whether a page may take another request of a shard."""
    counts: int
    """How many requests count it at once."""
    links: tuple[Link, ...] = ()
    """The other items that decide for each of its items whether the viewer sees it."""
    own_links: tuple[Link, ...] = ()
    """The other items that decide for all of its items."""
    has_aggregate: bool = False
    """Whether all of it is aggregated."""

    @classmethod
    def of(
        cls,
        path: AccessPath,
        shown: Priced | None,
        arguments: ListArguments,
        run: Run,
        *,
        has_total: bool,
        may_be_known: bool,
        has_aggregate: bool = False,
    ) -> ListCost:
        """Returns the cost of a list with these arguments."""
        neighbours = arguments.shown(run) or arguments.any_shown
        reading, begins_behind = neighbours.reading, arguments.begins_behind
        access, seen = run.access, arguments.seen(run)
        by_type: dict[AccessPath, dict[Link, None]] = {}
        if access is not None:
            for each, decision in seen.items():
                by_type[each] = dict.fromkeys(name.link for name in access.links(each.record, decision))
        links = dict.fromkeys(link for found in by_type.values() for link in found)
        own_links = tuple(
            link
            for each, found in by_type.items()
            for link in found
            if link.end is not None and link.end.name == each.end
        )
        return cls(
            path,
            shown,
            has_total,
            may_be_known,
            run.limits,
            arguments.size,
            arguments.looks_ahead,
            arguments.extent.forward,
            begins_behind,
            arguments.may_look_back and begins_behind,
            arguments.may_end_among_equals,
            None if arguments.to is None else len(arguments.to),
            arguments.is_key_lookup,
            max(1, len(reading.pieces)),
            len(reading.singles),
            neighbours.is_searched,
            neighbours.is_filtered,
            neighbours.looks_on or arguments.skips,
            len(count_requests(neighbours)) if has_total else 0,
            tuple(each for each in links if each not in own_links),
            own_links,
            has_aggregate,
        )

    @property
    def shards(self) -> int:
        return len(self.path.keys.shard_texts)

    @property
    def trips(self) -> int:
        """How many round trips a request takes, with the other items that decide about its items."""
        return 2 if self.links else 1

    @property
    def per_page(self) -> int:
        return max(1, PAGE_BYTES // self.path.item_bytes)

    def page(self, run: Run, starts: Starts) -> tuple[StepCost, Below]:
        """Returns the cost of each owner's page."""
        decided, starts = self.decided(starts)
        cost, below = self._page(run, starts)
        cost.add(decided)
        return cost, below

    def decided(self, starts: Starts) -> tuple[StepCost, Starts]:
        """Returns the cost of deciding whether the viewer sees anything of it, and when the list is then read."""
        cost = StepCost()
        for each in self.own_links:
            cost.add(keys_cost([each.record], starts))
        return cost, starts.after(at_least=0) if self.own_links else starts

    def _page(self, run: Run, starts: Starts) -> tuple[StepCost, Below]:
        page = self.shown
        if self.is_key_lookup or self.named is not None:
            cost, after, size = self.looked_up(starts)
        elif page is None or not self.size + self.looks_ahead:
            return StepCost(), ()
        else:
            cost, after, size = self._pages(starts)
        if page is None or not size:
            return cost, ()
        more, below = page.cost(run, after.times(min(size, self.size)))
        cost.add(more)
        return cost, below if self.size else ()

    def looked_up(self, starts: Starts) -> tuple[StepCost, Starts, int]:
        """Returns the reads if items are looked up by their keys, or by the nodes that the client names, when they are
        there, and how many edges there may be."""
        path, named = self.path, self.named
        if self.is_key_lookup:
            number = 1 if named is None else named
            if not number or not (self.shown or self.has_total or self.has_aggregate):
                return StepCost(), starts, 0
            cost, after = keys_cost(path.records, starts, number), starts.after()
            for each in self.links:
                cost.add(keys_cost([each.record], after, number))
            return cost, after.after(at_least=0) if self.links else after, number
        between = path.keys_of_both_ends
        requests = (named or 0) * (len(between.shard_texts) if between else 1)
        # There may be any number of edges between two nodes, distinguished by a later part of their keys.
        size = requests * self.per_page
        cost = self._requests(starts, requests, 1, size)
        cost.is_open = True
        return cost, starts.after(self.trips, at_least=1), size

    def _pages(self, starts: Starts) -> tuple[StepCost, Starts, int]:
        """Returns what is read for the page, when it is there, and how many edges it has."""
        budget = self.limits.read_budget
        requests, looked_at = self._needed(self.size + self.looks_ahead + self.singles)
        chain = self.trips * (1 + requests - self.shards)
        cost = self._requests(starts, requests, chain, looked_at)
        if self.looks_back:
            more, looked_at = self._needed(1 + self.singles)
            cost.add(
                self._requests(starts.after(chain), more, self.trips * (1 + more - self.shards), looked_at)
            )
            chain += self.trips * (1 + more - self.shards)
        if self.ends_among_equals:
            # What follows the end is looked up, and then, between two cursors, whether it follows the page.
            for is_long in [self.looks_on, True] if self.begins_behind else [self.looks_on]:
                more, looked_at = (self._searched(), budget) if is_long else (1, 1)
                cost.add(self._requests(starts.after(chain), more, self.trips * more, looked_at))
                cost.is_open = cost.is_open or is_long
                chain += self.trips * more
        cost.is_open = cost.is_open or self.looks_on
        is_one_read = not self.looks_on and chain == 1
        least = 0 if self.may_be_known else chain if is_one_read else 1
        return cost, starts.after(chain, at_least=least), self.size

    def _needed(self, wanted: int) -> tuple[int, int]:
        """Returns how many requests a page takes, and how many items they examine."""
        if not self.looks_on:
            return self.shards * (ceil(wanted / self.per_page) + self.pieces - 1), self.shards * wanted
        budget = self.limits.read_budget
        requests = most_requests(
            wanted,
            self.shards,
            self.pieces,
            budget,
            self.per_page,
            is_filtered=self.is_filtered,
            is_searched=self.is_searched,
        )
        # A piece that was not read yet is started even if the budget is used up.
        return requests, budget + self.shards * self.pieces * min(LARGEST_LIMIT, self.per_page)

    def _searched(self) -> int:
        """Returns how many requests it takes to search for one item within the budget, one after the other."""
        budget, is_searched = self.limits.read_budget, self.is_searched
        return most_requests(
            1, 1, 1, budget, self.per_page, is_filtered=self.is_filtered, is_searched=is_searched
        )

    def all(self, starts: Starts) -> tuple[StepCost, Starts]:
        """Returns the cost of all of each owner's list that is aggregated, within the budget, and when the rest is read:
        what the budget does not show of it."""
        if not self.has_aggregate or self.named is not None or self.is_key_lookup:
            return StepCost(), starts  # included in what the page reads
        whole = replace(
            self,
            size=self.limits.read_budget,
            looks_ahead=False,
            begins_behind=False,
            looks_back=False,
            ends_among_equals=False,
        )
        _, decided = self.decided(starts)
        cost, after, _ = whole._pages(decided)
        cost.is_open = True
        return cost, replace(starts, round_trips=starts.round_trips | after.round_trips)

    def count(self, starts: Starts) -> StepCost:
        """Returns the cost of counting each owner's list: as many pages as it may read."""
        if not self.has_total or self.named is not None or self.is_key_lookup:
            return StepCost()
        at_once = self.shards * max(1, self.counts)
        pages = max(at_once, self.limits.count_pages)
        _, starts = self.decided(starts)
        chain = self.trips * (1 + pages - at_once)
        cost = self._requests(starts, pages, chain, pages * self.per_page)
        cost.is_open = True
        return cost

    def _requests(self, starts: Starts, requests: int, chain: int, items: int) -> StepCost:
        """Returns the cost of `requests` requests for each start, `chain` of them one after the other."""
        if not requests:
            return StepCost()
        units = read_units(ceil(items / requests) * self.path.item_bytes, consistent=False) * requests
        cost = StepCost(
            starts.times(requests).count,
            0,
            set(),
            max(starts.round_trips) + chain - 1,
            starts.times(items).count,
            min(float(MOST), starts.count * units),
        )
        add_links(cost, self.links, starts, requests, items)
        return cost
