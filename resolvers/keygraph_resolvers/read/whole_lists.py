"""Lists that an operation has read whole: a part of one that is asked for later is not read again."""

from __future__ import annotations

from collections.abc import Hashable

from keygraph.lists.listing import Located, NeighbourList
from keygraph.lists.ranges import Span
from keygraph.lists.reading import Extent, Found


class WholeLists:
    """What one operation has read from end to end."""

    def __init__(self) -> None:
        self._found: dict[Hashable, list[tuple[Span, Extent, list[Located]]]] = {}

    def add(self, neighbours: NeighbourList, extent: Extent, found: Found) -> None:
        """Takes note of a page, if it is all that there is of its list."""
        is_open = extent.after is not None or extent.until is not None or found.resume is not None
        is_ended = len(found.items) < extent.count or (extent.look_ahead and not found.more)
        if is_open or not is_ended or neighbours.narrowed:
            return
        items = found.items if extent.forward else found.items[::-1]
        self._found.setdefault(_of(neighbours), []).append((neighbours.span, extent, items))

    def page(self, neighbours: NeighbourList, extent: Extent) -> Found | None:
        """The page, where it is a part of a list that was read whole."""
        if not self._found or extent.after is not None or extent.until is not None:
            return None
        items = self._items(neighbours, extent.attributes)
        if items is None:
            return None
        if not extent.forward:
            items.reverse()
        return Found(items[: extent.count], extent.look_ahead and len(items) > extent.count, None)

    def count(self, neighbours: NeighbourList) -> int | None:
        """How many items the list has, where that is known."""
        items = self._items(neighbours, frozenset())
        return None if items is None else len(items)

    def _items(self, neighbours: NeighbourList, attributes: frozenset[str] | None) -> list[Located] | None:
        for span, extent, items in self._found.get(_of(neighbours), ()):
            has_all = extent.attributes is None or (
                attributes is not None and attributes <= extent.attributes
            )
            if has_all and neighbours.span.within(span) == neighbours.span:
                # What its filter is about need not be among the attributes: all of these have passed it.
                return [
                    each
                    for each in items
                    if neighbours.reads(neighbours.sort_of(each.item))
                    and neighbours.identified(each.item) is not None
                ]
        return None


def _of(neighbours: NeighbourList) -> Hashable:
    """What lists have in common of which one can be a part of the other."""
    return neighbours.path, neighbours.partitions, neighbours.filter, neighbours.condition
