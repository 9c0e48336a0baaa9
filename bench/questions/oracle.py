"""The right answers from memory, by sets, and by NetworkX for paths; and the reads of the naive way, list by list."""

from __future__ import annotations

from collections import Counter
from itertools import pairwise
from math import ceil

import networkx

from bench.questions.network import Network, children

PAGE_ITEMS = 1024 * 1024 // 40
"""How many friends fit in a page of 1 MB: an item has about 40 bytes."""


class Oracle:
    """Knows the network."""

    def __init__(self, network: Network) -> None:
        self._network = network
        self._friends = network.friends
        self._drawn = networkx.Graph()
        for name, friends in network.friends.items():
            self._drawn.add_edges_from((name, friend) for friend in friends if name < friend)

    def mutual(self, one: str, other: str) -> list[str]:
        return sorted(self._friends[one] & self._friends[other])

    def mutual_edges(self, one: str, other: str) -> int:
        """The number of friends of the two; those in common count twice."""
        return len(self._friends[one]) + len(self._friends[other])

    def distance(self, one: str, other: str) -> int | None:
        try:
            return int(networkx.shortest_path_length(self._drawn, one, other))
        except networkx.NetworkXNoPath:
            return None

    def is_way(self, names: list[str]) -> bool:
        return all(other in self._friends[one] for one, other in pairwise(names))

    def may_know(self, name: str) -> Counter[str]:
        """The number of friends in common with each other person, except friends."""
        ways = Counter(other for friend in self._friends[name] for other in self._friends[friend])
        return Counter(
            {each: n for each, n in ways.items() if each != name and each not in self._friends[name]}
        )

    def network(self, name: str, depth: int) -> dict[str, int]:
        """The distance of everybody within a depth."""
        found = networkx.single_source_shortest_path_length(self._drawn, name, cutoff=depth)
        return {each: int(distance) for each, distance in found.items() if each != name}

    def descendants(self, number: int) -> int:
        total, level = 0, [number]
        while level:
            level = [child for each in level for child in children(each, self._network.categories)]
            total += len(level)
        return total

    # --- The naive way ----------------------------------------------------------------------------------

    def pages(self, name: str) -> int:
        """The number of requests that read all friends of a person."""
        return max(1, ceil(len(self._friends[name]) / PAGE_ITEMS))

    def one_sided(self, one: str, other: str) -> tuple[int, int]:
        """The edges that a search from one end reads, in whole lists, until it finds the other; and its requests."""
        edges = requests = 0
        level, seen = [one], {one}
        while level:
            following: list[str] = []
            for name in level:
                edges += len(self._friends[name])
                requests += self.pages(name)
                following += [each for each in self._friends[name] if each not in seen]
                seen.update(self._friends[name])
            if other in seen:
                break
            level = [*dict.fromkeys(following)]
        return edges, requests
