"""Ranks the nodes at the end of some lists, followed one after the other, by the weights of the paths that lead there.

A path is a sequence of edges, one of each list, that does not return to its first node. A node's score is the sum of
its paths' weights: each is that of the last edge, and lower the older that edge is. The ranking says whether it is
exact, which means that everything was read.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime, time
from functools import partial
from typing import Any, NamedTuple

from keygraph.declare.declaration import WalkOptions
from keygraph.dynamo.items import Item
from keygraph.model.paths import WalkedPath
from keygraph.model.records import RecordType
from keygraph.walks.levels import OpenList, Width, read_level
from keygraph.walks.walk import HOPS_AT_ONCE, Budget, Hop, Vertex, Walk


class RankedNode(NamedTuple):
    """A node, its score, and the number of paths that lead to it."""

    node: Vertex
    score: Any
    paths: int


@dataclass(frozen=True, slots=True)
class Ranking:
    """The result of a walk, the highest scores first; equal ones by their keys."""

    nodes: Sequence[RankedNode]
    is_complete: bool
    """Whether everything was read, so that all scores are right."""


def rank(
    start: Vertex,
    levels: int,
    lists_of: Callable[[Vertex, int], Sequence[WalkedPath]],
    budget: Budget,
    weigh: Callable[[Hop], Any],
    *,
    include_first: bool = False,
) -> Walk[Ranking]:
    """Ranks the nodes after this many levels of lists. `lists_of` gives the lists to follow from a node at a level."""
    paths: dict[Vertex, int] = {start: 1}
    scores: dict[Vertex, Any] = {}

    def take(
        lists: Sequence[OpenList], before: Mapping[Vertex, int], found: dict[Vertex, int], level: int
    ) -> Walk[bool]:
        """Counts what was read and drops it."""
        taken = 0
        for each in lists:
            taken += len(each.hops)
            if taken > HOPS_AT_ONCE:
                taken = 0
                yield ()
            count = before[each.owner]
            for hop in each.hops:
                if hop.node != start:
                    found[hop.node] = found.get(hop.node, 0) + count
                    if level == levels - 1:
                        scores[hop.node] = scores.get(hop.node, 0) + count * weigh(hop)
            each.hops = []
        budget.remembered = len(before) + len(found) + len(scores)
        return False

    first: Mapping[Vertex, int] = {}
    is_complete, width = True, Width(None)
    for level in range(levels):
        lists = [OpenList(path, owner) for owner in paths for path in lists_of(owner, level)]
        found: dict[Vertex, int] = {}
        yield from read_level(lists, budget, width, partial(take, lists, paths, found, level))
        is_complete = is_complete and all(each.is_ended for each in lists)
        paths, first = found, first or found
    left_out: Mapping[Vertex, int] = {} if include_first or levels == 1 else first
    ranked = [RankedNode(node, scores[node], count) for node, count in paths.items() if node not in left_out]
    ranked.sort(key=order)
    return Ranking(ranked, is_complete)


def order(ranked: RankedNode) -> tuple[Any, str, tuple[str, ...]]:
    """Returns the sort key of ranked nodes."""
    return -ranked.score, ranked.node.record.name, ranked.node.identity


class Weights:
    """The weights of items, as a ranking declares them."""

    def __init__(self, options: WalkOptions) -> None:
        self._weight = options.weight
        self._decay = options.decay

    def of(self, record: RecordType, item: Item, now: float) -> Any:
        """Returns the weight of an item at a time, in seconds since 1970: 1 if none is declared, 0 if it has no value.

        Raises CorruptItem if a value does not fit.
        """
        weight: Any = 1 if self._weight is None else record.reader(record.fields[self._weight])(item) or 0
        if self._decay is None:
            return weight
        name, half = self._decay
        began = record.reader(record.fields[name])(item)
        if began is None:
            return 0
        age = max(0.0, now - _seconds(began))
        return float(weight) * 0.5 ** (age / half.total_seconds())


def _seconds(moment: datetime | date) -> float:
    """Returns a time in seconds since 1970; without a zone it is UTC."""
    if not isinstance(moment, datetime):
        moment = datetime.combine(moment, time.min)
    return (moment if moment.tzinfo else moment.replace(tzinfo=UTC)).timestamp()
