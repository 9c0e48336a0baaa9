"""Reaching all nodes below one: by distance, each once, in pages, within a budget; NetworkX says what is right."""

from __future__ import annotations

import networkx as nx
import pytest
from hypothesis import given
from hypothesis import strategies as st

from keygraph.walks.reach import Reach, Requested, Standing, from_node, reach
from keygraph.walks.walk import Budget
from tests.keygraph.walked import Drawn, node

GRAPHS = st.builds(
    lambda nodes, share, seed: nx.gnp_random_graph(nodes, share, seed=seed, directed=True),
    st.integers(1, 30),
    st.sampled_from([0.02, 0.1, 0.3]),
    st.integers(0, 10_000),
)


def drawn(graph: nx.DiGraph[int]) -> Drawn:
    return Drawn({str(one): [*map(str, sorted(graph[one]))] for one in graph})


def found(
    drawing: Drawn, began: Standing, depth: int, budget: int = 10_000, wanted: int | None = None
) -> Reach:
    return drawing.run(reach(began, drawing.lists_of, depth, Budget(budget), Requested(wanted)))


def distances(result: Reach) -> dict[str, int]:
    names = [each.node.identity[0] for each in result.nodes]
    assert len(names) == len({*names}), "a node is there twice"
    return {each.node.identity[0]: each.distance for each in result.nodes}


@given(GRAPHS, st.integers(1, 6))
def test_distances_are_those_of_networkx(graph: nx.DiGraph[int], depth: int) -> None:
    right = nx.single_source_shortest_path_length(graph, 0, cutoff=depth)
    result = found(drawn(graph), from_node(node(0)), depth)
    assert distances(result) == {str(each): far for each, far in right.items() if far}
    assert [each.distance for each in result.nodes] == sorted(each.distance for each in result.nodes)
    assert result.is_complete


@given(GRAPHS, st.integers(1, 6), st.integers(1, 7), st.integers(1, 40))
def test_pages_are_the_walk(graph: nx.DiGraph[int], depth: int, size: int, budget: int) -> None:
    drawing = drawn(graph)
    whole = [each.node for each in found(drawing, from_node(node(0)), depth).nodes]
    paged, began = [], from_node(node(0))
    for _ in range(2_000):
        result = found(drawing, began, depth, budget, size)
        page = result.nodes[:size]
        paged += [each.node for each in page]
        if len(page) < size and result.is_complete:
            break
        if len(page) < size and result.standing is not None:
            began = result.standing
        elif page:
            began = result.behind(page[-1])
    assert paged == whole


@given(GRAPHS, st.integers(1, 60))
def test_no_round_asks_for_more_than_is_left(graph: nx.DiGraph[int], budget: int) -> None:
    drawing = drawn(graph)
    found(drawing, from_node(node(0)), 6, budget)
    spent = 0
    for wanted in drawing.rounds:
        assert sum(each.most for each in wanted) <= budget - spent
        spent += sum(max(1, len(drawing.part(each).hops)) for each in wanted)
    assert spent <= budget


def test_each_list_is_read_once() -> None:
    drawing = Drawn({"a": ["b", "c"], "b": ["d"], "c": ["d"], "d": ["a", "d", "e"]})
    assert distances(found(drawing, from_node(node("a")), 10)) == {"b": 1, "c": 1, "d": 2, "e": 3}
    asked = [each.owner.identity[0] for wanted in drawing.rounds for each in wanted]
    assert asked == ["a", "b", "c", "d", "e"]
    assert len(drawing.rounds) == 4


def test_lists_of_a_level_are_read_together() -> None:
    wide = {"a": [f"b{number}" for number in range(100)]}
    drawing = Drawn(wide)
    result = found(drawing, from_node(node("a")), 2)
    assert len(result.nodes) == 100
    assert [len(wanted) for wanted in drawing.rounds] == [1, 100]


def test_a_full_page_reads_no_more() -> None:
    tree = nx.balanced_tree(10, 3, create_using=nx.DiGraph)
    drawing = drawn(tree)
    assert len(found(drawing, from_node(node(0)), 3, wanted=10).nodes) == 10
    assert len(drawing.rounds) == 1
    going_on = found(drawing, from_node(node(0)), 3, wanted=15)
    assert going_on.nodes[14].distance == 2
    assert sum(map(len, drawing.rounds)) <= 1 + 1 + 10


@pytest.mark.parametrize(("length", "most", "rounds"), [(50, 32, 1), (1, 60, 2)])
def test_a_page_asks_for_as_many_lists_as_will_do(length: int, most: int, rounds: int) -> None:
    lists = {"a": [f"b{number}" for number in range(60)]}
    lists |= {f"b{one}": [f"c{one}-{number}" for number in range(length)] for one in range(60)}
    drawing = Drawn(lists)
    assert len(found(drawing, from_node(node("a")), 2, wanted=101).nodes) == min(101, 60 + 60 * length)
    assert sum(map(len, drawing.rounds[1:])) <= most
    assert len(drawing.rounds[1:]) <= rounds


def test_going_on_does_not_start_again() -> None:
    tree = nx.balanced_tree(5, 3, create_using=nx.DiGraph)
    drawing = drawn(tree)
    first = found(drawing, from_node(node(0)), 3, wanted=20)
    began = first.behind(first.nodes[19])
    drawing.rounds.clear()
    assert [each.node for each in found(drawing, began, 3, wanted=5).nodes[:5]] == [
        node(n) for n in range(21, 26)
    ]
    asked = {each.owner.identity[0] for wanted in drawing.rounds for each in wanted}
    assert "0" not in asked
    assert "1" not in asked
