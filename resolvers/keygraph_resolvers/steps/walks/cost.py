"""The bound of a walk."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import ceil

from keygraph.dynamo.limits import PAGE_BYTES
from keygraph.dynamo.store import read_units
from keygraph.lists.reading import most_requests
from keygraph.model.paths import AccessPath
from keygraph.model.permissions import restricted_name
from keygraph.model.records import RecordType
from keygraph.walks.levels import LARGEST_PART, most_rounds
from keygraph_resolvers.read.access import links_of
from keygraph_resolvers.read.run import Run
from keygraph_resolvers.steps.walks.walk import WalkedLists


def undecided(run: Run, paths: Sequence[AccessPath], nodes: Sequence[RecordType]) -> list[RecordType]:
    """The types of the items that decide whether the viewer sees a walk's nodes and edges and may read its lists: at
    most one of each for an edge."""
    access = run.access
    if access is None:
        return []
    found: list[RecordType] = []
    for path in paths:
        names_of_links = access.links(path.record, access.decision(path.record))
        found += [name.link.record for name in names_of_links]
    for record in nodes:
        found += [each.record for each in links_of(run, record)]
        names = [restricted_name(record, path.name) for path in paths if path.owner is record]
        if not all(access.is_told_without_item(record, name) for name in (None, *filter(None, names))):
            found.append(record)
    return found


@dataclass(frozen=True, slots=True)
class WalkMost:
    """The most that one walk takes, by its budget."""

    requests: int
    items: int
    read_units: float
    round_trips: int

    @classmethod
    def of(
        cls,
        run: Run,
        lists: WalkedLists,
        paths: Sequence[AccessPath],
        budget: int,
        levels: int,
        *,
        is_decided: bool,
    ) -> WalkMost:
        """Each request uses up the budget by the items that it reads, and by at least one. A list that is read in
        several parts at once takes one request for each part."""
        parts, chain = 1, 1
        for path in paths:
            neighbours = lists.any_shown(path)
            per_page = max(1, PAGE_BYTES // path.record.item_bytes)
            pieces = max(1, len(neighbours.reading.pieces)) + neighbours.is_filtered
            parts = max(parts, len(path.keys.shard_texts) * pieces)
            if (
                neighbours.is_filtered
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
        units = max(read_units(path.record.item_bytes, consistent=False) for path in paths)
        items = budget * parts
        return cls(items, items, items * units, rounds * chain + (0 if is_decided else 4 * (rounds + 1)))
