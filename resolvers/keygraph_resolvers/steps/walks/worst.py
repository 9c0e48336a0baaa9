"""The bound of a walk, what it needs of items, and how its lists are described."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from math import ceil
from weakref import ref

from keygraph.dynamo.limits import BATCH_GET_KEYS, PAGE_BYTES
from keygraph.dynamo.store import read_units
from keygraph.lists.describe import described_requests
from keygraph.lists.reading import most_requests, page_requests
from keygraph.model.paths import ListOfIds, WalkedPath, with_edges
from keygraph.model.permissions import restricted_name
from keygraph.model.records import RecordType
from keygraph.walks.levels import LARGEST_PART, most_rounds
from keygraph_resolvers.engine.worst import (
    KEY_OF,
    Described,
    KeyLookups,
    QueryRequests,
    Starts,
    Wait,
    Worst,
    cost_of,
)
from keygraph_resolvers.read.access import links_of
from keygraph_resolvers.read.connection import ListArguments
from keygraph_resolvers.read.run import Run
from keygraph_resolvers.steps.walks.walk import WalkedLists


def undecided(run: Run, paths: Sequence[WalkedPath], nodes: Sequence[RecordType]) -> list[RecordType]:
    """The types of the items that decide whether the viewer sees a walk's nodes and edges and may read its lists: at
    most one of each for an edge."""
    access = run.access
    if access is None:
        return []
    found: list[RecordType] = []
    for path in with_edges(paths):
        names_of_links = access.links(path.record, access.decision(path.record))
        found += [name.link.record for name in names_of_links]
    for record in nodes:
        found += [each.record for each in links_of(run, record)]
        names = {restricted_name(record, path.name) for path in paths if path.owner is record} | {None}
        if not all(
            access.is_decided_by_key(record, name)
            or access.is_linked(record, access.decision(record, "read", name))
            for name in names
        ):
            found.append(record)
    return found


def needed_of(paths: Iterable[WalkedPath]) -> Iterator[tuple[RecordType, frozenset[str]]]:
    """The fields that a walk needs of the items with its edges, and of those with its lists of ids."""
    for path in paths:
        if isinstance(path, ListOfIds):
            yield path.owner, frozenset({path.name})
        else:
            yield path.record, path.ends_needed()


@dataclass(eq=False)
class WalkedList:
    """How a list that a walk follows is read: explain starts it, and nothing else."""

    _path: WalkedPath
    _budget: int
    _page: str
    """How much of it is read."""
    suffix: str = ""

    def worst(self, run: Run) -> Worst:
        path, node = self._path, partial(Described, step=ref(self), page=lambda *_: self._page)
        if isinstance(path, ListOfIds):
            ids = node(kind="get node", records=(path.owner,), key=f"{KEY_OF}{path.owner.name}")
            yield ids
            yield KeyLookups(ids.records)
            return
        arguments = ListArguments(run, path, {}, frozenset())
        part = replace(arguments.extent, count=min(LARGEST_PART, self._budget))
        requests = page_requests(arguments.any_described.part(part))
        described = described_requests(run.graph, requests, len(path.keys.shard_texts))
        yield node(kind="read list", records=(path.record,), path=path, reads=lambda *_: [described])
        yield QueryRequests(1)


class WalkMost:
    """The most that one walk takes, by its budget.

    Each request uses up the budget by the items that it reads, and by at least one. A list that is read in several parts
    at once takes one request for each part. A round reads the items that hold lists of ids in as few requests as
    possible, for each shard that may have them.
    """

    def __init__(
        self,
        lists: WalkedLists,
        paths: Sequence[WalkedPath],
        nodes: Sequence[RecordType],
        budget: int,
        levels: int,
    ) -> None:
        """It visits nodes of these types, and follows so many lists one after the other."""
        run = lists.run
        parts, chain, read = 1, 1, with_edges(paths)
        holders = {path.owner for path in paths if isinstance(path, ListOfIds)}
        for path in read:
            query = lists.any_described(path)
            per_page = max(1, PAGE_BYTES // path.record.item_bytes)
            pieces = max(1, len(query.reading.pieces)) + query.is_filtered
            parts = max(parts, len(path.keys.shard_texts) * pieces)
            if (
                query.is_filtered
                or path.is_uncertain
                or path.record.expiry is not None
                or run.access is not None
            ):
                parts *= 2
                one = most_requests(
                    LARGEST_PART, 1, pieces, LARGEST_PART, per_page, is_filtered=True, is_searched=True
                )
            else:
                one = pieces * ceil(LARGEST_PART / per_page)
            chain = max(chain, one)
        rounds = most_rounds(levels, budget)
        if holders:
            parts = max(parts, *(len(each.table_keys.shard_texts) for each in holders))
        item_bytes = max(each.item_bytes for each in (*holders, *(path.record for path in read)))
        self.items = requests = budget * parts
        if not read:
            keys, _ = cost_of([KeyLookups(tuple(holders), budget)], Starts(1, frozenset({0})))
            requests = min(self.items, rounds + keys.keys // BATCH_GET_KEYS + keys.unbatched)
        self._requests = requests
        self._read_units = self.items * read_units(item_bytes, consistent=False)
        self._undecided = undecided(run, paths, nodes)
        self._round_trips = rounds * chain + any(each.gathers for each in holders)
        self._round_trips += 4 * (rounds + 1) if self._undecided else 0
        self._looks_up = bool(holders)

    def requests(self, walks: int, keys: int, usual: int = 1) -> Worst:
        """Yields so many walks, which may look up so many items of each type that decides what the viewer sees. What
        continues from them may begin after `usual` round trips."""
        items, units, trips = self.items * walks, self._read_units * walks, self._round_trips
        yield QueryRequests(self._requests * walks, items, units, trips, is_open=True)
        for record in self._undecided:
            # Some are read apart, in the middle of a round.
            yield KeyLookups((record,), keys, keys, (0, trips), is_batched_too=True)
        yield Wait("walk", trips, 0, self._looks_up, usual)
