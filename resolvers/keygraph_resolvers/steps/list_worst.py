"""The most that lists request: their pages and counts, and the items that are looked up by key.

It is not found by running a step with the largest answers: what a page takes behind a filter is arithmetic. The parts are
those of `ListStep.read`, in its order: what decides about the list, all of it for aggregates, its count, and its page.
"""

from __future__ import annotations

from collections.abc import Generator
from math import ceil
from typing import Any, TypeAlias

from keygraph.dynamo.limits import BATCH_GET_KEYS, PAGE_BYTES
from keygraph.dynamo.store import Query, read_units
from keygraph.lists.reading import LARGEST_LIMIT, count_requests, looked_at_beside, most_requests
from keygraph.model.links import Link
from keygraph.model.paths import AccessPath
from keygraph_resolvers.engine.worst import (
    KeyLookups,
    QueryRequests,
    Times,
    Wait,
    Worst,
    WorstRequest,
)
from keygraph_resolvers.read.connection import ListArguments
from keygraph_resolvers.read.run import Run

Count: TypeAlias = Generator[WorstRequest, None, int]
"""Yields requests, and returns a number."""


class ListWorst:
    """The most that the list of one owner takes, by its arguments and the size of its items."""

    def __init__(self, step: Any, arguments: ListArguments, run: Run) -> None:
        """`step` is the `ListStep`, which has this."""
        query = arguments.described(run) or arguments.any_described
        self.step = step
        path: AccessPath = step.path
        self.path = path
        self.has_total = step.is_counted
        self.has_aggregate = step.aggregates_items
        self.size = arguments.size
        self.budget = run.limits.read_budget
        self.named = None if arguments.to is None else len(arguments.to)
        self.is_key_lookup = arguments.is_key_lookup
        self.looks_ahead = arguments.looks_ahead
        self.begins_behind = arguments.begins_behind
        self.looks_back = arguments.may_look_back and arguments.begins_behind
        """Whether what is before the cursor at which the page begins has to be read."""
        self.looks_on = query.looks_on or arguments.skips
        """Whether a page may take another request of a shard."""
        self.pieces = max(1, len(query.reading.pieces))
        self.shards = len(path.keys.shard_texts)
        self.per_page = max(1, PAGE_BYTES // path.item_bytes)
        self._run = run
        self._arguments = arguments
        self._query = query
        self._singles = len(query.reading.singles)
        """How many items of other types are examined with the list's."""
        by_type: dict[AccessPath, dict[Link, None]] = {}
        if run.access is not None:
            for each, decision in arguments.conditions(run).items():
                names = run.access.links(each.record, decision)
                by_type[each] = dict.fromkeys(name.link for name in names)
        self.own_links = [
            link
            for each, found in by_type.items()
            for link in found
            if link.end is not None and link.end.name == each.end
        ]
        """The other items that decide for all of its items whether the viewer sees them."""
        links = dict.fromkeys(link for found in by_type.values() for link in found)
        self.links = [each for each in links if each not in self.own_links]
        """The other items that decide for each of its items."""
        self.trips = 2 if self.links else 1
        """How many round trips a request takes, with the other items that decide about its items."""

    def requests(self) -> Worst:
        if (node := self.step.node) is not None:
            yield node
        if self.has_aggregate and self.named is None and not self.is_key_lookup:
            # The page and the count are a part of all of it, or are read then: what the budget does not show.
            yield self.step.whole_node
            begins = bool(self.own_links)
            chain = yield from self._read(self.budget, begins, is_open=True)
            yield Wait("all", begins + chain, 0, usual=0)
        if node is not None:
            yield node
        yield from self._decided()
        yield from self.count()
        yield from self._page()

    def page(self) -> Worst:
        yield from self._decided()
        yield from self._page()

    def _decided(self) -> Worst:
        """Yields what decides whether the viewer sees anything of it."""
        for each in self.own_links:
            yield KeyLookups((each.record,))
        if self.own_links:
            yield Wait("links", 1, 0)

    def _page(self) -> Worst:
        page = self.step.page
        if page is not None:
            yield self.step.page_node
        if self.is_key_lookup or self.named is not None:
            size = min(self.size, (yield from self.looked_up()))
        elif page is None or not self.size + self.looks_ahead:
            return
        else:
            yield from self._pages()
            size = self.size
        if page is not None and size:
            yield Times(size)
            yield from page.worst(self._run)

    def looked_up(self) -> Count:
        """Yields the reads if items are looked up by their keys, or by the nodes that the client names. Returns how many
        edges there may be."""
        path, named = self.path, self.named
        if self.is_key_lookup:
            number = 1 if named is None else named
            if not number or not (self.step.page or self.has_total or self.has_aggregate):
                return 0
            yield KeyLookups(self.step.page_node.records, number)
            yield Wait("items")
            for each in self.links:
                yield KeyLookups((each.record,), number)
            if self.links:
                yield Wait("items", 1, 0)
            return number
        between = path.keys_of_both_ends
        requests = (named or 0) * (len(between.shard_texts) if between else 1)
        # There may be any number of edges between two nodes, distinguished by a later part of their keys.
        size = requests * self.per_page
        yield from self._queries(requests, 1, size, is_open=True)
        yield Wait("items", self.trips, usual=self.trips)
        return size

    def _pages(self) -> Worst:
        """Yields what is read for the page."""
        chain = yield from self._read(self.size + self.looks_ahead, 0)
        if self.looks_back:
            chain += yield from self._read(1, chain)
        if self._arguments.may_end_among_equals:
            # What follows the end is looked up, and then, between two cursors, whether it follows the page.
            for is_long in [self.looks_on, True] if self.begins_behind else [self.looks_on]:
                requests, looked_at = (self._searched(), self.budget) if is_long else (1, 1)
                yield from self._queries(requests, self.trips * requests, looked_at, chain, is_open=is_long)
                chain += self.trips * requests
        yield Wait("page", chain, 0 if self.step.may_be_known else 1, usual=self.trips)

    def _read(self, wanted: int, begins: int, *, is_open: bool = False) -> Count:
        """Yields the requests for so many items of it; returns how many round trips they take."""
        requests, looked_at = self._needed(wanted + self._singles)
        chain = self.trips * (1 + requests - self.shards)
        yield from self._queries(requests, chain, looked_at, begins, is_open=is_open or self.looks_on)
        return chain

    def _needed(self, wanted: int) -> tuple[int, int]:
        """Returns how many requests a page takes, and how many items they examine."""
        query = self._query
        # A few items in its range may not be in it, for which a page may take another request.
        if not self.looks_on and not query.form.leaves_some:
            return self.shards * (ceil(wanted / self.per_page) + self.pieces - 1), self.shards * wanted
        budget = self.budget
        if not self.looks_on:
            budget = min(budget, looked_at_beside(wanted, self.shards))
        requests = most_requests(
            wanted,
            self.shards,
            self.pieces,
            budget,
            self.per_page,
            is_filtered=query.is_filtered,
            is_searched=query.form.is_searched,
        )
        # A piece that was not read yet is started even if the budget is used up.
        more = min(LARGEST_LIMIT if self.looks_on else wanted, self.per_page)
        return requests, budget + self.shards * self.pieces * more

    def _searched(self) -> int:
        """Returns how many requests it takes to search for one item within the budget, one after the other."""
        filtered, searched = self._query.is_filtered, self._query.form.is_searched
        return most_requests(1, 1, 1, self.budget, self.per_page, is_filtered=filtered, is_searched=searched)

    def count(self, begins: int = 0) -> Worst:
        """Yields the counting of it: as many pages as it may read."""
        if not self.has_total or self.named is not None or self.is_key_lookup:
            return
        if not self.has_aggregate:
            yield self.step.count_node
        first = count_requests(self._query)
        at_once = self.shards * max(1, len(first))
        pages = max(at_once, self._run.limits.count_pages)
        chain = self.trips * (1 + pages - at_once)
        is_counting = not any(isinstance(each, Query) for each in first)
        for each in self._queries(pages, chain, pages * self.per_page, begins, is_open=True):
            yield each._replace(is_counting=is_counting) if isinstance(each, QueryRequests) else each

    def _queries(
        self, requests: int, chain: int, items: int, begins: int = 0, *, is_open: bool = False
    ) -> Worst:
        """Yields so many requests, `chain` of them one after the other."""
        if requests:
            units = read_units(ceil(items / requests) * self.path.item_bytes, consistent=False) * requests
            yield QueryRequests(requests, items, units, chain, begins, is_open)
            yield from self.links_of(requests, items, (begins, begins))

    def links_of(self, requests: int, items: int, within: tuple[int, int]) -> Worst:
        """Yields the lookups of the other items that decide about so many items from so many requests."""
        for each in self.links:
            yield KeyLookups((each.record,), items, requests + items // BATCH_GET_KEYS, within)
