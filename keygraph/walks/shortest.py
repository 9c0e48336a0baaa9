"""Shortest paths from one node to another along the lists that are followed: a search from both ends.

The side that found fewer nodes last is searched next, one distance at a time, until both meet. From the far end, lists
are followed against their direction, by the keys that find their edges from there; if a list has none, only the near
end is searched. Each list of a node is read once. The first meeting is on a shortest path: all shorter ones were tried.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple, TypeAlias

from keygraph.model.paths import WalkedPath
from keygraph.walks.levels import FIRST_LISTS, OpenList, Width, read_level
from keygraph.walks.walk import HOPS_AT_ONCE, Budget, Hop, Vertex, Walk


class Followed(NamedTuple):
    """A list that is followed from a node: how it is read there, and the list that the graph declares."""

    read: WalkedPath
    declared: WalkedPath


FollowedFrom: TypeAlias = Callable[[Vertex], Sequence[Followed]]


class Directions(NamedTuple):
    """The lists that a search follows."""

    forward: FollowedFrom
    back: FollowedFrom | None = None
    """Gives the lists that lead to a node, as they are read there; None if some cannot be."""
    may_go: Callable[[Vertex, WalkedPath], bool] = lambda node, declared: True
    """Says whether a list is followed from a node."""


class PathEdge(NamedTuple):
    """One edge of a path, in its direction."""

    start: Vertex
    declared: WalkedPath
    end: Vertex
    edge: Any
    """What was read of it; None unless edges are kept."""
    is_forward: bool
    """Whether it was read in the list itself, not from its end."""


NodePath: TypeAlias = Sequence[PathEdge]


@dataclass(slots=True)
class ShortestPaths:
    """The result of a search."""

    length: int | None = None
    """None if no path is short enough."""
    found: Sequence[NodePath] = ()
    """At most as many as were wanted, in the order in which they were found."""
    is_complete: bool = True
    """Whether the budget was enough to be sure."""


@dataclass(slots=True)
class _Side:
    """The nodes found from one end."""

    frontier: list[Vertex]
    followed: FollowedFrom | None
    """None: nothing can be followed from this end."""
    is_forward: bool
    distances: dict[Vertex, int]
    before: dict[Vertex, dict[Vertex, tuple[WalkedPath, Any]]] = field(default_factory=dict)
    """For each node the ones before it that found it, with the list and the edge."""
    depth: int = 0

    @classmethod
    def at(cls, end: Vertex, followed: FollowedFrom | None, *, is_forward: bool) -> _Side:
        return cls([end], followed, is_forward, {end: 0})

    def lists(self) -> list[tuple[Followed, OpenList]]:
        """Returns the lists of the nodes that were found last."""
        followed = self.followed
        return [
            (each, OpenList(each.read, node))
            for node in self.frontier
            for each in (followed(node) if followed is not None else ())
        ]


def shortest(
    start: Vertex,
    end: Vertex,
    directions: Directions,
    most: int,
    budget: Budget,
    wanted: int = 1,
    *,
    keeps_edges: bool = False,
) -> Walk[ShortestPaths]:
    """Finds up to `wanted` shortest paths of at most `most` edges. With `keeps_edges`, the paths have what was read
    of their edges."""
    if start == end:
        return ShortestPaths(0, [()])
    near = _Side.at(start, directions.forward, is_forward=True)
    far = _Side.at(end, directions.back, is_forward=False)
    while near.depth + far.depth < most and near.frontier and far.frontier:
        is_near = far.followed is None or len(near.frontier) <= len(far.frontier)
        side, other = (near, far) if is_near else (far, near)
        is_whole = yield from _next_distance(
            side, other, budget, directions.may_go, is_first_enough=wanted == 1, keeps_edges=keeps_edges
        )
        met = [node for node in side.frontier if node in other.distances]
        if met:
            paths = _joined(near, far, met, wanted)
            return ShortestPaths(near.depth + far.depth, paths, is_whole or len(paths) == wanted)
        if not is_whole:
            return ShortestPaths(is_complete=False)
    return ShortestPaths()


def _next_distance(
    side: _Side,
    other: _Side,
    budget: Budget,
    may_go: Callable[[Vertex, WalkedPath], bool],
    *,
    is_first_enough: bool,
    keeps_edges: bool,
) -> Walk[bool]:
    """Finds the nodes one edge further. Returns whether all were found, or the first one that the other side knows, if
    that is enough."""
    lists, found, has_met = side.lists(), dict[Vertex, None](), False
    side.depth += 1

    def take() -> Walk[bool]:
        nonlocal has_met
        taken = 0
        for followed, each in lists:
            taken += len(each.hops)
            if taken > HOPS_AT_ONCE:
                taken = 0
                yield ()
            for hop in each.hops:
                if not side.is_forward and not may_go(hop.node, followed.declared):
                    continue
                if side.distances.setdefault(hop.node, side.depth) != side.depth:
                    continue
                found[hop.node] = None
                found_by = followed.declared, hop.edge if keeps_edges else None
                side.before.setdefault(hop.node, {}).setdefault(each.owner, found_by)
                has_met = has_met or hop.node in other.distances
            each.hops = list[Hop]()
        budget.remembered = len(side.distances) + len(other.distances)
        return has_met and is_first_enough

    yield from read_level([each for _, each in lists], budget, Width(FIRST_LISTS), take)
    side.frontier = [*found]
    return (has_met and is_first_enough) or all(each.is_ended for _, each in lists)


def _joined(near: _Side, far: _Side, met: Sequence[Vertex], wanted: int) -> list[NodePath]:
    """Returns the paths through the nodes where both sides meet, at most `wanted`."""
    found: list[NodePath] = []
    for node in met:
        for head in _paths(near, node):
            for tail in _paths(far, node):
                found.append((*head[::-1], *tail))
                if len(found) == wanted:
                    return found
    return found


def _paths(side: _Side, node: Vertex) -> Iterator[tuple[PathEdge, ...]]:
    """Yields the paths from a node to the end of the side that found it."""
    if side.distances[node] == 0:
        yield ()
        return
    for before, (declared, edge) in side.before[node].items():
        start, end = (before, node) if side.is_forward else (node, before)
        first = PathEdge(start, declared, end, edge, side.is_forward)
        for rest in _paths(side, before):
            yield (first, *rest)
