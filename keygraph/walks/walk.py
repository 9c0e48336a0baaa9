"""The interface of walks: a walk requests parts of lists, receives the results, and requests the next parts.

A walk is a generator. It yields the parts that may be read at the same time, and receives the results of each, in the
same order. When it returns, its question is answered. An error of a list is thrown into it; a walk that does not catch
it ends with it. Nothing here knows a store: a few lines that answer from a dict can drive a walk too.
"""

from __future__ import annotations

from collections.abc import Generator, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, TypeAlias, TypeVar

from keygraph.model.paths import WalkedPath
from keygraph.model.records import RecordType

ResultT = TypeVar("ResultT")


class Vertex(NamedTuple):
    """A node, by its type and the texts of its key."""

    record: RecordType
    identity: tuple[str, ...]


class Wanted(NamedTuple):
    """A part of a list that a walk wants."""

    path: WalkedPath
    owner: Vertex
    most: int
    """The most items to examine."""
    after: Any = None
    """Where to continue: the `place` of an edge, or the `after` of a part of the same list."""
    forward: bool = True


class Hop(NamedTuple):
    """An edge of a list, and the node it leads to."""

    node: Vertex
    edge: Any
    """What was read of it: `keygraph.lists.extent.Located` if a store was asked."""
    place: Any
    """Its position in its list."""


class Part(NamedTuple):
    """What was read of a list, in the direction of reading."""

    hops: Sequence[Hop]
    after: Any = None
    """Where the list continues; None if it has ended."""
    looked_at: int = 0
    """How many items the store examined."""


Walk: TypeAlias = Generator[Sequence[Wanted], Sequence[Part], ResultT]
"""A walk, with its result. It yields an empty sequence to let others work before it continues."""
HOPS_AT_ONCE = 500
"""How many edges a walk handles before it lets others work: about a millisecond."""


@dataclass(slots=True)
class Budget:
    """How many items a walk may still examine. A list without items counts as one: it is a request too."""

    left: int
    remembered: int = 0
    """How many nodes the walk keeps in memory."""

    def take(self, part: Part) -> None:
        self.left -= max(1, part.looked_at)
