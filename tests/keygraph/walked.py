"""Graphs in dicts, from which walks are answered without a store."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, TypeVar, cast

from keygraph.model.paths import AccessPath
from keygraph.model.records import RecordType
from keygraph.walks.walk import Hop, Part, Vertex, Walk, Wanted

ResultT = TypeVar("ResultT")


class _Named:
    """Stands for a record type: a walk asks for its name alone."""

    name = "Node"


NODE = cast(RecordType, _Named())


def node(name: object) -> Vertex:
    return Vertex(NODE, (str(name),))


class Drawn:
    """A graph as lists of neighbors; it keeps what was asked of it, by rounds."""

    def __init__(self, *lists: Mapping[Any, Sequence[Any]]) -> None:
        self.paths = [cast(AccessPath, f"list {number}") for number in range(len(lists))]
        self._lists = dict(zip(self.paths, lists, strict=True))
        self.rounds: list[list[Wanted]] = []

    def lists_of(self, owner: Vertex) -> Sequence[AccessPath]:
        return self.paths

    def run(self, walk: Walk[ResultT]) -> ResultT:
        try:
            wanted = next(walk)
            while True:
                self.rounds += [[*wanted]] if wanted else []  # an empty one lets others work
                wanted = walk.send([self.part(each) for each in wanted])
        except StopIteration as end:
            return cast(ResultT, end.value)

    def part(self, wanted: Wanted) -> Part:
        neighbors = [str(each) for each in self._lists[wanted.path].get(wanted.owner.identity[0], ())]
        places = [*range(len(neighbors))] if wanted.forward else [*reversed(range(len(neighbors)))]
        start = 0 if wanted.after is None else places.index(wanted.after) + 1
        here = places[start : start + wanted.most]
        hops = [
            Hop(node(neighbors[place]), (wanted.owner.identity[0], neighbors[place]), place) for place in here
        ]
        return Part(hops, here[-1] if start + wanted.most < len(places) else None, len(here))

    @property
    def looked_at(self) -> int:
        """The most items that it was asked for in one round."""
        return max((sum(each.most for each in wanted) for wanted in self.rounds), default=0)
