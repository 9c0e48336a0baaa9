"""Finds every node that lists lead to from one node, nearest first, each once; cycles are harmless.

The nodes at a distance are in the order of the lists that lead to them: by the owners' own order, then in the list's
order. A walk can continue after any node that it has found, without starting again, and stops once it found enough.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from hashlib import blake2b
from math import ceil
from typing import Any, NamedTuple, TypeAlias

from keygraph.model.paths import WalkedPath
from keygraph.walks.levels import FIRST_LISTS, FIRST_PART, OpenList, Width, read_level
from keygraph.walks.walk import HOPS_AT_ONCE, Budget, Hop, Vertex, Walk

ListsOf: TypeAlias = Callable[[Vertex], Sequence[WalkedPath]]
"""The lists that are followed from a node; none for a node where the walk ends."""


class Reached(NamedTuple):
    """A node that was found, with the edge that found it first."""

    node: Vertex
    distance: int
    path: WalkedPath
    owner: Vertex
    hop: Hop
    number: int
    """How many nodes at its distance were found before it, including unrequested ones."""


@dataclass(frozen=True, slots=True)
class Standing:
    """The state that a walk needs to continue."""

    distance: int
    """The distance of the nodes that are found next."""
    owners: Sequence[Vertex]
    """The nodes whose lists lead to these, beginning with the one whose list is being read."""
    found: Sequence[Vertex] = ()
    """The nodes found at that distance that may lead further."""
    digests: frozenset[bytes] = frozenset()
    """The digests of the nodes that were found before."""
    path: int = 0
    """The index of the list being read among the first owner's lists."""
    after: Any = None
    """The position in that list."""


def from_node(start: Vertex) -> Standing:
    """Returns the state of a walk that begins at a node."""
    return Standing(1, [start])


def mark(node: Vertex) -> bytes:
    """Returns eight bytes that identify a node."""
    return blake2b("\0".join((node.record.name, *node.identity)).encode(), digest_size=8).digest()


@dataclass(slots=True)
class Reach:
    """The result of a walk."""

    began: Standing
    lists_of: ListsOf
    deepest: int
    """The distance at which every continuation ends, whatever its own depth."""
    nodes: list[Reached] = field(default_factory=list)
    """The first requested nodes, as many as are wanted."""
    others: list[Vertex] = field(default_factory=list)
    """The requested nodes after those."""
    is_complete: bool = False
    """Whether there are no others within the depth."""
    standing: Standing | None = None
    """Where to continue if the budget ended the walk."""
    levels: list[list[Vertex]] = field(default_factory=list)
    """The nodes at each distance, requested or not, beginning with those where the walk began."""

    def behind(self, reached: Reached) -> Standing:
        """Returns the state of a walk after a node that this one found."""
        return self.at(reached.distance, reached.number + 1, reached.owner, reached.path, reached.hop.place)

    def at(self, distance: int, found: int, owner: Vertex, path: WalkedPath, after: Any) -> Standing:
        """Returns the state at a position in a list, when `found` nodes of the distance were found."""
        level = distance - self.began.distance
        owners, now = self.levels[level], self.levels[level + 1][:found]
        here = owners.index(owner)
        known, now = (now, []) if distance == self.deepest else ([], now)
        passed = (*self.levels[:level], owners[:here], known)
        digests = self.began.digests.union(mark(each) for nodes in passed for each in nodes)
        number = [*self.lists_of(owner)].index(path)
        return Standing(distance, owners[here:], now, digests, number, after)


class Requested(NamedTuple):
    """The nodes that a walk is to find: all of them, or at least a number. `is_whole` finds all others too."""

    number: int | None = None
    is_whole: bool = False
    includes: Callable[[Vertex], bool] = lambda node: True


_ALL = Requested()


def reach(
    began: Standing,
    lists_of: ListsOf,
    depth: int,
    budget: Budget,
    requested: Requested = _ALL,
    *,
    deepest: int | None = None,
) -> Walk[Reach]:
    """Finds the requested nodes up to a distance. Only the nodes and the edges to wanted ones are kept of a list that has
    ended. `deepest` is the distance at which a walk that continues this one ends, if that is farther."""
    wanted, is_whole, _ = requested
    result = Reach(began, lists_of, deepest or depth, levels=[[*began.owners]])
    known = {*began.owners, *began.found}
    if wanted == 0 and not is_whole:
        return result
    width = Width(FIRST_LISTS if wanted else None, FIRST_PART)
    distance, found, lists_before = began.distance, [*began.found], 0
    while distance <= depth and result.levels[-1]:
        lists = [OpenList(path, owner) for owner in result.levels[-1] for path in lists_of(owner)]
        if distance == began.distance:
            del lists[: began.path]
            for first in lists[:1]:
                first.after = began.after
        if wanted:
            # The lists are expected to be as long as those of the level before.
            width.expect(ceil((wanted - len(result.nodes)) * lists_before / max(1, len(result.levels[-1]))))
        lists_before = len(lists)
        result.levels.append(found)
        level = _Level(result, lists, distance, known, wanted, requested.includes)

        def take(level: _Level = level) -> Walk[bool]:
            is_enough = yield from level.take()
            budget.remembered = len(known)
            if is_enough and is_whole:
                width.widen()
            return is_enough and not is_whole

        yield from read_level(lists, budget, width, take)
        if level.is_enough and not is_whole:
            return result
        if level.unread is not None:
            result.standing = result.at(distance, len(found), *level.unread)
            return result
        distance, found = distance + 1, []
    result.is_complete = True
    return result


@dataclass(slots=True)
class _Level:
    """The nodes at one distance, while the lists that lead to them are read."""

    result: Reach
    lists: Sequence[OpenList]
    distance: int
    known: set[Vertex]
    wanted: int | None
    includes: Callable[[Vertex], bool]
    _list: int = 0
    """The first list that has not ended."""

    @property
    def is_enough(self) -> bool:
        return self.wanted is not None and len(self.result.nodes) + len(self.result.others) >= self.wanted

    @property
    def unread(self) -> tuple[Vertex, WalkedPath, Any] | None:
        """The first unfinished list, and where it continues."""
        if self._list == len(self.lists):
            return None
        first = self.lists[self._list]
        return first.owner, first.path, first.after

    def take(self) -> Walk[bool]:
        """Takes what was read in order, up to the first unfinished list. Returns whether that is enough."""
        result, found, taken = self.result, self.result.levels[-1], 0
        digests = result.began.digests
        while self._list < len(self.lists):
            now = self.lists[self._list]
            for hop in now.hops:
                node = hop.node
                if node in self.known or (digests and mark(node) in digests):
                    continue
                self.known.add(node)
                if self.includes(node):
                    if self.wanted is None or len(result.nodes) < self.wanted:
                        result.nodes.append(
                            Reached(node, self.distance, now.path, now.owner, hop, len(found))
                        )
                    else:
                        result.others.append(node)
                found.append(node)
            taken += len(now.hops)
            now.hops = []
            if taken > HOPS_AT_ONCE:
                taken = 0
                yield ()
            if not now.is_ended:
                break
            self._list += 1
        return self.is_enough
