"""Reading a node together with its lists: one Query for items side by side in a partition.

The rule: for a node whose model says that its partition is small, one Query reads the node's item, the pages of its
lists there and the neighbors at a known key, if their ranges follow each other and no other type's items can be between
them. Nothing is read after a list with less than a full page requested: the rest of that list would be read too. The
Query examines no more items than the pages have, one to see whether more follow, and the node. Parts that it does not
reach are read separately. Items at known keys without a list beside them are not read by a Query: all nodes of a round
trip share a BatchGetItem.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, cast

from keygraph.dynamo.conditions import Path
from keygraph.dynamo.items import Item
from keygraph.dynamo.store import Query, Store
from keygraph.dynamo.table import Key, KeyValue
from keygraph.graph import Graph
from keygraph.lists.query import ListQuery
from keygraph.lists.ranges import Span
from keygraph.lists.reading import Found
from keygraph.lists.siblings import is_between

FULL_PAGE = 20
"""A page of so many neighbors is assumed to be all of them, if the partition is declared small."""


@dataclass(frozen=True, eq=False)
class GatheredPart:
    """A part of a joint read: a page of a list, or the item at one key, of a node or an only neighbor (`query` is None)."""

    span: Span
    most: int
    """The most items of it to read."""
    query: ListQuery | None = None
    subject: Any = None
    """The object that it is read for."""


@dataclass(eq=False)
class CombinedQuery:
    """The parts that one Query reads. Of pages of one list, the one that takes most comes last."""

    parts: list[GatheredPart]

    @property
    def most(self) -> dict[Span, int]:
        """The most items of each range to read."""
        return {part.span: part.most for part in self.parts}

    def is_behind_list(self, part: GatheredPart) -> bool:
        """Returns whether a list comes before a part: a longer list than its page ends the Query before that part."""
        before = self.parts[: self.parts.index(part)]
        return any(each.query is not None for each in before)

    def request(self, key: Key, projection: tuple[Path, ...] | None) -> Query:
        """Returns the Query that reads them, in the partition of a node."""
        span = self.parts[0].span.hull(self.parts[-1].span)
        most = sum(self.most.values())
        return Query(key[0], range=span.range, projection=projection, limit=most)


def item_part(key: Key, subject: Any) -> GatheredPart:
    return GatheredPart(Span(key[1], key[1]), 1, subject=subject)


def neighbour_part(query: ListQuery, key: Key, subject: Any = None) -> GatheredPart | None:
    """Returns the part for an only neighbor with a known key (also the default subject), in the partition of a node."""
    keys = query.whole_keys or []
    if len(keys) != 1 or keys[0][:1] != key[:1] or len(key) < 2:
        return None
    return item_part(keys[0], keys[0] if subject is None else subject)


def list_part(query: ListQuery, key: Key, subject: Any = None) -> GatheredPart | None:
    """Returns the part for a page of a list (also the default subject) in the partition of a node; None if it has to be
    read separately: if a cursor or a filter is given, or siblings are in its range.

    A list that is read backward needs a full page, and one item to see that it ends there: its last items are known when
    all of it was read.
    """
    extent, reading, decided = query.extent, query.reading, query.decided
    if query.path.keys.index is not None or query.partitions != key[:1] or len(key) < 2:
        return None
    if extent.after is not None or extent.until is not None:
        return None
    is_searched = decided.condition is not None or decided.filter is not None or query.form.checked
    if is_searched or reading.others or len(reading.pieces) != 1 or extent.count == 0:
        return None
    most = extent.count + extent.look_ahead if extent.forward else max(extent.count, FULL_PAGE) + 1
    return GatheredPart(reading.pieces[0], most + len(reading.singles), query, subject or query)


def adjacent(
    graph: Graph, key: Key, parts: Sequence[GatheredPart], *, is_described: bool = False
) -> list[CombinedQuery]:
    """Returns the parts in the partition of a node that a Query reads together: a list, and what is beside it.

    `is_described`: the node's key is not a real one, but contains placeholders.
    """
    found: list[CombinedQuery] = []
    for part in sorted(parts, key=lambda part: (part.span.low or "", part.most)):
        before = found[-1].parts[-1] if found else None
        if before is not None and (
            (part.span == before.span and _is_of_same_list(part, before))
            or (
                _is_whole(before)
                and not _is_separate(graph, key, before.span, part.span, is_described=is_described)
            )
        ):
            found[-1].parts.append(part)
        else:
            found.append(CombinedQuery([part]))
    return [
        each for each in found if len(each.parts) > 1 and any(part.query is not None for part in each.parts)
    ]


def _is_whole(part: GatheredPart) -> bool:
    """Returns whether what is read of a part is probably all of it."""
    extent = None if part.query is None else part.query.extent
    return extent is None or not extent.forward or extent.count >= FULL_PAGE


def _is_of_same_list(part: GatheredPart, other: GatheredPart) -> bool:
    if part.query is None or other.query is None:
        return part.query is other.query
    return part.query.is_list_of(other.query)


def _is_separate(graph: Graph, key: Key, before: Span, after: Span, *, is_described: bool) -> bool:
    """Returns whether other items may be between two ranges, or whether they overlap."""
    if before.high is None or after.low is None or not isinstance(before.high, str):
        return True
    gap = Span(before.high if before.below else before.high + "\0", after.low, below=True)
    if before.high > after.low or (before.high == after.low and not before.below):
        return True
    return not gap.is_empty and is_between(graph, key[0], gap, is_described=is_described)


async def read_combined(
    store: Store, key: Key, combined: CombinedQuery, projection: tuple[Path, ...] | None
) -> dict[GatheredPart, Found | Item | None]:
    """Returns what one Query finds of the parts: pages of lists, the node's item, without parts that it did not reach.

    Raises a StoreError.
    """
    sort_key = store.table.keys[1].name
    page = await store.send(combined.request(key, projection))
    found: dict[GatheredPart, Found | Item | None] = {}
    for part in combined.parts:
        items = [item for item in page.items if part.span.contains(cast(KeyValue, item[sort_key]))]
        # Whether it was read to its end, which is at the last place that was examined, or before it.
        is_whole = page.last is None or (part.span.high is not None and bool(page.last[1] >= part.span.high))
        if part.query is None:
            if items or is_whole:
                found[part] = items[0] if items else None
            continue
        extent, own = part.query.extent, part.query.included(items)
        if not extent.forward:
            own.reverse()
        if is_whole or (extent.forward and len(own) >= extent.count + extent.look_ahead):
            found[part] = Found(own[: extent.count], extent.look_ahead and len(own) > extent.count, None)
    return found
