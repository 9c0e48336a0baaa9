"""Ranks the nodes at the end of some lists, followed one after the other, by the weights of the paths that lead there.

A path is a sequence of edges, one of each list, that does not return to its first node. A node's score is the sum of
its paths' weights, given by their last edges. The ranking says whether it is exact, which means that everything was
read.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, NamedTuple

from keygraph.model.paths import AccessPath
from keygraph.walks.levels import OpenList, Width, read_level
from keygraph.walks.walk import Budget, Hop, Vertex, Walk


class RankedNode(NamedTuple):
    """A node, its score, and the number of paths that lead to it."""

    node: Vertex
    score: Any
    ways: int


@dataclass(frozen=True, slots=True)
class Ranking:
    """The result of a walk, the highest scores first; equal ones by their keys."""

    nodes: Sequence[RankedNode]
    is_complete: bool
    """Whether everything was read, so that all scores are right."""


def rank(
    start: Vertex,
    levels: int,
    lists_of: Callable[[Vertex, int], Sequence[AccessPath]],
    budget: Budget,
    weigh: Callable[[Hop], Any],
    *,
    include_first: bool = False,
) -> Walk[Ranking]:
    """Ranks the nodes after this many levels of lists. `lists_of` gives the lists to follow from a node at a level."""
    ways: dict[Vertex, int] = {start: 1}
    scores: dict[Vertex, Any] = {}

    def take(
        lists: Sequence[OpenList], before: Mapping[Vertex, int], found: dict[Vertex, int], level: int
    ) -> bool:
        """Counts what was read and drops it."""
        for each in lists:
            count = before[each.owner]
            for hop in each.hops:
                if hop.node != start:
                    found[hop.node] = found.get(hop.node, 0) + count
                    if level == levels - 1:
                        scores[hop.node] = scores.get(hop.node, 0) + count * weigh(hop)
            each.hops = []
        return False

    first: Mapping[Vertex, int] = {}
    is_complete, width = True, Width(None)
    for level in range(levels):
        lists = [OpenList(path, owner) for owner in ways for path in lists_of(owner, level)]
        found: dict[Vertex, int] = {}
        yield from read_level(lists, budget, width, partial(take, lists, ways, found, level))
        is_complete = is_complete and all(each.is_ended for each in lists)
        ways, first = found, first or found
    left_out: Mapping[Vertex, int] = {} if include_first or levels == 1 else first
    ranked = [RankedNode(node, scores[node], count) for node, count in ways.items() if node not in left_out]
    ranked.sort(key=order)
    return Ranking(ranked, is_complete)


def order(ranked: RankedNode) -> tuple[Any, str, tuple[str, ...]]:
    """Returns the sort key of ranked nodes."""
    return -ranked.score, ranked.node.record.name, ranked.node.identity
