"""Shortest ways: the walk alone, over graphs in dicts, beside NetworkX."""

from __future__ import annotations

from random import Random
from typing import Any

import networkx
import pytest

from keygraph.walks.shortest import Directions, Followed, ShortestPaths, shortest
from keygraph.walks.walk import Budget, Vertex
from tests.keygraph.walked import Drawn, node


def made(random: Random) -> tuple[Any, Any]:
    """A random graph of one or two kinds of edges, with edges from nodes to themselves, and the same for NetworkX."""
    size = random.choice([2, 8, 30, 120])
    edges = size * random.choice([1, 2, 4])
    pairs = [(random.randrange(size), random.randrange(size)) for _ in range(edges)]
    lists: list[dict[str, list[int]]] = [{}, {}]
    back: list[dict[str, list[int]]] = [{}, {}]
    drawn = networkx.DiGraph()
    drawn.add_nodes_from(map(str, range(size)))
    for one, other in dict.fromkeys(pairs):
        kind = random.randrange(2)
        lists[kind].setdefault(str(one), []).append(other)
        back[kind].setdefault(str(other), []).append(one)
        drawn.add_edge(str(one), str(other))
    return Drawn(*lists, *back), drawn


def searched(
    drawn: Drawn,
    start: Vertex,
    end: Vertex,
    *,
    most: int = 6,
    budget: int = 10**6,
    wanted: int = 1,
    both: bool = True,
) -> ShortestPaths:
    half = len(drawn.paths) // 2
    followed = [Followed(path, path) for path in drawn.paths[:half]]
    back = [Followed(drawn.paths[half + number], path) for number, path in enumerate(drawn.paths[:half])]
    directions = Directions(lambda _: followed, (lambda _: back) if both else None)
    return drawn.run(shortest(start, end, directions, most, Budget(budget), wanted))


def told(ways: ShortestPaths) -> list[list[str]]:
    return [[way[0].start.identity[0], *(edge.end.identity[0] for edge in way)] for way in ways.found if way]


@pytest.mark.parametrize("seed", range(150))
def test_the_ways_are_those_of_networkx(seed: int) -> None:
    random = Random(seed)
    drawn, oracle = made(random)
    names = [*oracle.nodes]
    for _ in range(5):
        start, end, both = random.choice(names), random.choice(names), random.random() < 0.7
        most = random.choice([1, 3, 6, 20])
        try:
            expected = sorted(networkx.all_shortest_paths(oracle, start, end))
        except networkx.NetworkXNoPath:
            expected = []
        if expected and len(expected[0]) - 1 > most:
            expected = []
        found = searched(drawn, node(start), node(end), most=most, wanted=1000, both=both)
        assert found.is_complete
        assert found.length == (len(expected[0]) - 1 if expected else None)
        if start != end:
            assert sorted(told(found)) == expected
        one = searched(drawn, node(start), node(end), most=most, both=both)
        assert one.length == found.length
        if start != end:
            assert told(one) == [] if not expected else told(one)[0] in expected


def test_each_list_is_read_once_and_from_both_ends() -> None:
    tree = networkx.balanced_tree(8, 4)
    lists = {str(one): [*map(int, tree[one])] for one in tree}
    drawn = Drawn(lists, lists)
    leaves = [one for one in tree if tree.degree(one) == 1]
    found = searched(drawn, node(leaves[0]), node(leaves[-1]), most=20)
    assert found.length == 8
    asked = [(each.path, each.owner, each.after) for wanted in drawn.rounds for each in wanted]
    assert len(asked) == len({*asked})
    assert len(asked) < 200


def test_it_looks_at_a_tenth_of_the_edges_of_a_naive_search() -> None:
    network = networkx.barabasi_albert_graph(10_000, 5, seed=1)
    lists = {str(one): [*map(int, sorted(network[one]))] for one in network}
    far = networkx.single_source_shortest_path_length(network, 9_999)
    # A client reads all lists of a distance whole, and then those of the next.
    naive = sum(network.degree(one) for one, distance in far.items() if distance < 4)
    ends = [one for one, distance in far.items() if distance == 4][::500]
    assert len(ends) > 5
    for end in ends:
        drawn = Drawn(lists, lists)
        assert searched(drawn, node(9_999), node(end)).length == 4
        looked_at = sum(len(drawn.part(each).hops) for wanted in drawn.rounds for each in wanted)
        assert looked_at <= naive / 10


@pytest.mark.parametrize("budget", [1, 3, 10, 60])
def test_a_budget_that_does_not_suffice_is_told(budget: int) -> None:
    wheel = {str(one): [(one + 1) % 400, (one - 1) % 400] for one in range(400)}
    drawn = Drawn(wheel, wheel)
    found = searched(drawn, node(0), node(40), most=100, budget=budget)
    assert not found.is_complete
    assert found.length is None
    assert searched(drawn, node(0), node(1), budget=budget).length == 1


def test_a_node_is_no_way_from_itself() -> None:
    drawn = Drawn({"0": [0, 1]}, {"0": [0], "1": [0]})
    assert searched(drawn, node(0), node(0)) == ShortestPaths(0, [()])
