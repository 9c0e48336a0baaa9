"""The requests of the bound's naive reader: what it has to ask for in each round trip, and what has come.

Nothing is asked for twice. All of a round trip is there before what waits for it goes on.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from functools import partial
from itertools import pairwise
from typing import TypeAlias

from bench.bound.items import Items
from keygraph.dynamo.items import Item
from keygraph.dynamo.table import Key, KeyValue
from keygraph.graph import Graph
from keygraph.lists.listing import NeighbourList
from keygraph.lists.ranges import Span

BATCH_KEYS = 100
"""DynamoDB's limit on the keys of a BatchGetItem."""


@dataclass(frozen=True, slots=True)
class RoundTrip:
    """What has to be asked for at the same time."""

    ranges: int
    counts: int
    keys: int

    @property
    def requests(self) -> int:
        return self.ranges + self.counts + -(-self.keys // BATCH_KEYS)


GoOn: TypeAlias = Callable[[], None]
"""What is done when something has come."""


@dataclass(frozen=True, slots=True)
class _Range:
    """What one Query reads."""

    index: str | None
    partition: KeyValue
    span: Span
    forward: bool


@dataclass(slots=True)
class _Level:
    """What is asked for in one round trip, and what goes on when it has come."""

    keys: dict[Key, None] = field(default_factory=dict)
    ranges: dict[_Range, int] = field(default_factory=dict)
    """With how many items are wanted of each."""
    counts: int = 0
    together: dict[Key, dict[Key | _Range, set[Key]]] = field(default_factory=dict)
    """By the keys of nodes that are gathered: what is read of their partitions, and the items that are wanted of it."""
    whole: list[tuple[NeighbourList, Span]] = field(default_factory=list)
    """The lists that are read to their end."""
    items: dict[Key, Item] = field(default_factory=dict)
    """The items that the ranges give, as far as they are shown."""
    later: list[GoOn] = field(default_factory=list)


class Requests:
    """What is asked for while an operation is walked, a round trip at a time."""

    def __init__(self, graph: Graph, items: Items) -> None:
        self._graph = graph
        self._items = items
        self._at_hand: dict[Key, Item | None] = {}
        """What has come: items, and keys under which there is none."""
        self._ranges: dict[_Range, int] = {}
        """How many items of each range have come."""
        self._read_whole: list[tuple[NeighbourList, Span]] = []
        """The lists of which all has come."""
        self._counted: set[tuple[_Range, object]] = set()
        self._level = _Level()

    def round_trips(self, start: GoOn) -> tuple[RoundTrip, ...]:
        """The round trips in which something is asked for, from what starts to the last that goes on."""
        levels = []
        now = [start]
        while now:
            level = self._level = _Level()
            for go_on in now:
                go_on()
            made = self._asked(level)
            if made.requests:
                levels.append(made)
            # Nothing of this round trip is at hand before all of it was asked for.
            self._at_hand |= {key: self._items.get(key) for key in level.keys}
            self._at_hand |= level.items
            self._ranges |= level.ranges
            self._read_whole += level.whole
            now = level.later
        return tuple(levels)

    def has_come(self, keys: Sequence[Key]) -> bool:
        """Whether it is known of each key what stands there."""
        return all(key in self._at_hand for key in keys)

    def get(self, keys: Sequence[Key], go_on: GoOn) -> None:
        """Gets items by their keys; what has come already is not got again."""
        missing = [key for key in keys if key not in self._at_hand]
        if not missing:
            go_on()
            return
        self._level.keys |= dict.fromkeys(missing)
        self._level.later.append(go_on)

    def get_with_lists(self, keys: Sequence[Key], go_on: GoOn) -> None:
        """Gets the item of a node that the model gathers: one Query may read it together with the node's lists."""
        self.get(keys, go_on)
        there = {key for key in keys if self._items.get(key) is not None}
        self._level.together.setdefault(keys[0], {})[keys[0]] = there

    def page(
        self,
        neighbours: NeighbourList,
        size: int,
        forward: bool,
        owner: tuple[str, ...] | None,
        go_on: Callable[[list[Item]], None],
    ) -> None:
        """Reads a page; what has come already is not read again."""
        ranges = [
            _Range(neighbours.index_name, partition, neighbours.span, forward)
            for partition in neighbours.partitions
        ]
        items = self._items.of(neighbours)
        page = (items if forward else items[::-1])[:size]
        missing = [each for each in ranges if self._ranges.get(each, 0) < size]
        if not missing or self._is_whole(neighbours):
            go_on(page)
            return
        arriving = {self._items.table.key_of(item): item for item in page}
        gathering = neighbours.path.owner
        for each in missing:
            self._level.ranges[each] = max(size, self._level.ranges.get(each, 0))
            if gathering is not None and gathering.gathers and forward and owner and each.index is None:
                [node] = self._graph.table_keys(gathering, owner)
                if node[0] == each.partition:
                    parts = self._level.together.setdefault(node, {})
                    parts.setdefault(each, set()).update(arriving)
        if len(items) < size and neighbours.filter is None and neighbours.condition is None:
            self._level.whole.append((neighbours, neighbours.span))
        self._level.items |= arriving
        self._level.later.append(partial(go_on, page))

    def count(self, neighbours: NeighbourList) -> None:
        """Counts a list, unless it has come whole or was counted before."""
        if self._is_whole(neighbours):
            return
        for partition in neighbours.partitions:
            counted = _Range(neighbours.index_name, partition, neighbours.span, True)
            wanted = (counted, (neighbours.filter, neighbours.condition))
            if wanted not in self._counted:
                self._counted.add(wanted)
                self._level.counts += 1

    def _is_whole(self, neighbours: NeighbourList) -> bool:
        """Whether a list has come of which this one is a part."""
        return any(
            (whole.index_name, whole.partitions) == (neighbours.index_name, neighbours.partitions)
            and neighbours.span.within(span) == neighbours.span
            for whole, span in self._read_whole
        )

    def _asked(self, level: _Level) -> RoundTrip:
        """What a round trip asks for, with that as one which stands side by side in a gathered node's partition."""
        ranges, keys = len(level.ranges), len(level.keys)
        for node, parts in level.together.items():
            lists = [wanted for part, wanted in parts.items() if isinstance(part, _Range)]
            if not lists:
                continue
            alone, with_node = self._runs(node, lists), self._runs(node, parts.values())
            ranges += alone - len(lists)
            # A node that does not stand beside its lists costs least in the batch of the others.
            keys -= node in parts and with_node == alone
        return RoundTrip(ranges, level.counts, keys)

    def _runs(self, node: Key, parts: Iterable[set[Key]]) -> int:
        """How many Queries read these items of a node's partition without any other."""
        wanted = set[Key]().union(*parts)
        beside = [key in wanted for key in self._items.keys_beside(node)]
        return max(1, sum(now and not before for before, now in pairwise([False, *beside])))
