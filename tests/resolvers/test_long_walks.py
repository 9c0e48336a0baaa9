"""Paging through all that a node reaches: to its end, each node once, whatever the budget, and whatever is counted beside it."""

from __future__ import annotations

import random
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import networkx as nx
import pytest

from keygraph.dynamo.items import Item
from keygraph.dynamo.store import BatchWrite, CreateTable, Query
from keygraph.engines.open import open_store
from keygraph_resolvers import OperationRequest
from keygraph_resolvers.read import walked
from tests.conftest import MakeStore
from tests.resolvers.test_access import Shop
from tests.resolvers.test_walk_access import door, house, room
from tests.resolvers.walk_worlds import below, topic, walks
from tests.resolvers.worlds import World, within_bound, world

COUNTED = "totalCount aggregate { count }"
PAGE = """
query ($first: Int, $after: String) {
  topic(topicId: "0") {
    FIELD(first: $first, after: $after) {
      edges { distance node { topicId } cursor }
      pageInfo { hasNextPage endCursor isComplete }
      COUNTED
    }
  }
}
"""


async def pages(world: World, size: int, counted: str = "", field: str = "descendants") -> list[Any]:
    """The answers of all pages, as long as there is a next one."""
    found: list[Any] = []
    after = None
    document = PAGE.replace("FIELD(", field if "(" in field else f"{field}(").replace("COUNTED", counted)
    for _ in range(500):
        answer = await world.service.execute(document, {"first": size, "after": after})
        assert "errors" not in answer, answer["errors"]
        found.append(answer)
        [found_below] = answer["data"]["topic"].values()
        info = found_below["pageInfo"]
        if not info["hasNextPage"]:
            return found
        after = info["endCursor"]
    raise AssertionError("it does not end")


def edges(answers: list[Any]) -> list[Any]:
    return [edge for each in answers for edge in each["data"]["topic"]["descendants"]["edges"]]


def ids(answers: list[Any]) -> list[str]:
    return [each["node"]["topicId"] for each in edges(answers)]


def nearest_first(graph: nx.DiGraph[int], depth: int) -> dict[str, int]:
    """What is reached from 0, in order: by distance, in it by who leads there first, and then by name."""
    found, level = {"0": 0}, ["0"]
    for distance in range(1, depth + 1):
        ahead = [str(each) for one in level for each in sorted(map(str, graph[int(one)]))]
        level = [each for each in dict.fromkeys(ahead) if each not in found]
        found |= dict.fromkeys(level, distance)
    return {name: far for name, far in found.items() if far}


@pytest.mark.parametrize("seed", range(3))
async def test_every_page_of_random_graphs(make_store: MakeStore, seed: int) -> None:
    made = random.Random(seed)
    count = made.choice([12, 20])
    graph = nx.gnp_random_graph(count, made.choice([0.08, 0.15]), seed=seed, directed=True)
    graph.add_edges_from((0, each) for each in (0, 1, 2))
    whole = world(walks, await make_store(walks.table, topic(0), *(below(*each) for each in graph.edges)))
    right = nearest_first(graph, 6)
    needed = sum(max(1, len(graph[int(each)])) for each in ("0", *right))
    for budget in (1, 7, 40, 10_000):
        for size, counted in ((2, COUNTED), (3, ""), (100, COUNTED)):
            answers = await pages(whole.served(read_budget=budget), size, counted)
            assert [(each["node"]["topicId"], each["distance"]) for each in edges(answers)] == [
                *right.items()
            ]
            infos = [each["data"]["topic"]["descendants"] for each in answers]
            assert all(each["pageInfo"]["isComplete"] for each in infos)
            if not counted:
                continue
            # A walk that reads six levels needs less than what all lists have.
            if budget > needed:
                assert {each["totalCount"] for each in infos} == {len(right)}
                assert {each["aggregate"]["count"] for each in infos} == {len(right)}
            totals = {each["totalCount"] for each in infos}
            assert len(totals) == 1
            assert totals <= {None, len(right)}
            warnings = [len(each.get("extensions", {}).get("warnings", ())) for each in answers]
            assert warnings == [2 if None in totals else 0] * len(answers)


async def test_a_count_is_made_once(make_store: MakeStore) -> None:
    tree = world(walks, await make_store(walks.table))
    await tree.put(
        topic(0), *(below(0, one) for one in range(1, 10)), *(below(1, one) for one in range(20, 60))
    )
    for budget, total in ((10_000, 49), (30, None)):
        asked = tree.served(read_budget=budget)
        sent = []
        for counted in ("", COUNTED):
            answers = await pages(asked, 5, counted)
            first, second, *_ = answers
            after = first["data"]["topic"]["descendants"]["pageInfo"]["endCursor"]
            asked.forget()
            document = PAGE.replace("FIELD", "descendants").replace("COUNTED", counted)
            again = await asked.service.execute(document, {"first": 5, "after": after})
            assert again["data"] == second["data"]
            sent.append(asked.operations)
        assert sent[0] == sent[1]
        assert second["data"]["topic"]["descendants"]["totalCount"] == total
    # Who did not ask at first, or asks for another distance, is told as well.
    [first, *_] = await pages(tree, 5)
    after = first["data"]["topic"]["descendants"]["pageInfo"]["endCursor"]
    document = '{ topic(topicId: "0") { descendants(first: 5, after: "AFTER"MOST) { totalCount aggregate { count sum(field: SIZE) } } } }'
    for most, count in (("", 49), (", maxDistance: 1", 9)):
        asked = await tree.ask(document.replace("AFTER", after).replace("MOST", most))
        assert asked["topic"]["descendants"]["totalCount"] == count
        assert asked["topic"]["descendants"]["aggregate"]["count"] == count


async def test_a_count_is_of_its_own_depth(make_store: MakeStore) -> None:
    chain = world(walks, await make_store(walks.table))
    await chain.put(topic(0), below(0, 1), below(0, 2), below(1, 3), below(2, 4))
    document = """query ($after: String, $depth: Int) { topic(topicId: "0") {
      descendants(first: 1, after: $after, maxDistance: $depth) { totalCount pageInfo { endCursor } } } }"""
    near = await chain.ask(document, depth=1)
    after = near["topic"]["descendants"]["pageInfo"]["endCursor"]
    counts = [(await chain.ask(document, after=after, depth=depth)) for depth in (1, None)]
    assert [each["topic"]["descendants"]["totalCount"] for each in (near, *counts)] == [2, 2, 4]


async def test_the_bound_of_a_page_holds(make_store: MakeStore) -> None:
    tree = world(walks, await make_store(walks.table))
    await tree.put(topic(0), *(below(each // 3, each) for each in range(1, 40)))
    document = PAGE.replace("FIELD", "few").replace(
        "COUNTED", COUNTED.replace("count }", "count sum(field: SIZE) }")
    )
    after = None
    for _ in range(8):
        answer = await tree.service.execute(
            OperationRequest(document, {"first": 4, "after": after}, with_cost=True)
        )
        within_bound(answer)
        after = answer["data"]["topic"]["few"]["pageInfo"]["endCursor"]


def large() -> Iterator[Item]:
    yield topic(0)
    for one in range(1, 43):
        yield below(0, f"{one:02}")
        yield from (below(f"{one:02}", f"{one:02}{leaf:03}") for leaf in range(100))


@pytest.mark.long
async def test_thousands_of_nodes(tmp_path: Path) -> None:
    async with open_store(f"sqlite:{tmp_path / 'large.db'}", walks.table) as store:
        await store.send(CreateTable())
        items = [*large()]
        for start in range(0, len(items), 1_000):
            await store.send(BatchWrite(puts=tuple(items[start : start + 1_000])))
        tree = world(walks, store, read_budget=3_000)
        answers = await pages(tree, 100, field="descendants(maxDistance: 2, ")
        right = [f"{one:02}" for one in range(1, 43)]
        right += [f"{one:02}{leaf:03}" for one in range(1, 43) for leaf in range(100)]
        assert ids(answers) == right
        read = [each.partition for each in tree.tracer.requests if isinstance(each, Query)]
        assert read.count("TOPIC#0") == 1
        # Within a page too, a cursor tells where to go on: it may walk again.
        cursor = edges(answers)[3_333]["cursor"]
        document = PAGE.replace("FIELD", "descendants").replace("COUNTED", "")
        for budget in (10_000, 2_000):
            found: list[str] = []
            after: str | None = cursor
            for _ in range(10):
                answer = await tree.served(read_budget=budget).ask(document, first=100, after=after)
                page = answer["topic"]["descendants"]
                found += [each["node"]["topicId"] for each in page["edges"]]
                after = page["pageInfo"]["endCursor"]
                if found:
                    break
            assert found == right[3_334 : 3_334 + len(found)]
            assert len(found) > 50


async def test_more_than_a_cursor_holds(make_store: MakeStore, monkeypatch: pytest.MonkeyPatch) -> None:
    tree = world(walks, await make_store(walks.table))
    await tree.put(topic(0), *(below(each // 2, each) for each in range(1, 60)))
    whole = await pages(tree, 5)
    longest = [len(each["data"]["topic"]["descendants"]["pageInfo"]["endCursor"]) for each in whole]
    monkeypatch.setattr(walked, "_LONGEST_CURSOR", longest[4])
    answers = await pages(tree, 5, COUNTED)
    assert 5 <= len(answers) < len(whole)
    assert ids(answers) == ids(whole)[: len(ids(answers))]
    said = [each["data"]["topic"]["descendants"]["pageInfo"]["isComplete"] for each in answers]
    assert said == [True] * (len(answers) - 1) + [False]


async def test_rules_hold_on_every_page(make_store: MakeStore) -> None:
    rooms = [room(name) for name in "acdeg"] + [room("b", open=False), room("f", doors_open=False)]
    doors = [door(*pair) for pair in ("ab", "ac", "bd", "cf", "fg")] + [door("c", "e", secret=True)]
    shop = Shop(world(house, await make_store(house.table, *rooms, *doors)))
    document = """query ($after: String) { room(roomId: "a") { rooms(first: 1, after: $after) {
      nodes { roomId } pageInfo { hasNextPage endCursor } } } }"""

    async def found(claims: Any, after: str | None = None) -> list[str]:
        names = []
        for _ in range(20):
            answer = await shop.world.service.execute(
                OperationRequest(document, {"after": after}, viewer=claims, with_cost=True)
            )
            page = answer["data"]["room"]["rooms"]
            names += [each["roomId"] for each in page["nodes"]]
            after = page["pageInfo"]["endCursor"]
            if not page["pageInfo"]["hasNextPage"]:
                return names
        raise AssertionError("it does not end")

    assert await found({"sub": "max"}) == ["c", "f"]
    staff = {"sub": "ann", "roles": ["staff"]}
    assert await found(staff) == ["b", "c", "d", "e", "f", "g"]
    # With a cursor of somebody else, who has come to b.
    first = await shop.world.service.execute(OperationRequest(document, {}, viewer=staff))
    after = first["data"]["room"]["rooms"]["pageInfo"]["endCursor"]
    assert await found({"sub": "max"}, after) == ["c", "f"]
