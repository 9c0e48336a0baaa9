"""What nodes reach and rank: right by NetworkX, page by page, within the budget, and not more than what it may cost."""

from __future__ import annotations

import random
from typing import Any

import networkx as nx
import pytest

from keygraph_resolvers.steps.explained import steps_text
from tests.conftest import MakeStore
from tests.resolvers.walk_worlds import below, box, follows, friends, person, topic, walks
from tests.resolvers.worlds import World, world


@pytest.fixture
async def empty(make_store: MakeStore) -> World:
    return world(walks, await make_store(walks.table))


@pytest.fixture
async def tree(empty: World) -> World:
    """A tree of topics, in which `d` lies below two, and one is its own child."""
    edges = ["ab", "ac", "bd", "cd", "ce", "dd", "df"]
    await empty.put(*map(topic, "abcdef"), *(below(*each) for each in edges))
    return empty


DESCENDANTS = """
query ($topic: ID!, $first: Int, $after: String, $most: Int) {
  topic(topicId: $topic) {
    descendants(first: $first, after: $after, maxDistance: $most) {
      edges { distance node { topicId name } via { note node { topicId } } cursor }
      pageInfo { hasNextPage hasPreviousPage startCursor endCursor }
    }
  }
}
"""


async def test_everything_below(tree: World) -> None:
    """What lies below a node would be missing, twice, or not the nearest first."""
    found = (await tree.ask(DESCENDANTS, topic="a"))["topic"]["descendants"]
    assert [(each["node"]["name"], each["distance"], each["via"]["note"]) for each in found["edges"]] == [
        ("the b", 1, "a to b"),
        ("the c", 1, "a to c"),
        ("the d", 2, "b to d"),
        ("the e", 2, "c to e"),
        ("the f", 3, "d to f"),
    ]
    assert [each["via"]["node"] for each in found["edges"]] == [{"topicId": name} for name in "bcdef"]
    assert found["pageInfo"] == {
        "hasNextPage": False,
        "hasPreviousPage": False,
        "startCursor": found["edges"][0]["cursor"],
        "endCursor": found["edges"][-1]["cursor"],
    }
    nearer = (await tree.ask(DESCENDANTS, topic="a", most=2))["topic"]["descendants"]
    assert [each["node"]["topicId"] for each in nearer["edges"]] == [*"bcde"]


async def test_a_level_is_a_round_trip_and_nodes_are_read_once(tree: World) -> None:
    """A tree would take a request for each of its nodes, one after the other."""
    tree.forget()
    await tree.ask(DESCENDANTS, topic="a")
    # The lists of a, b, c, d, e, f; then one batch with the five nodes.
    assert tree.operations == {"GetItem": 1, "Query": 6, "BatchGetItem": 1}
    tree.forget()
    await tree.ask('{ topic(topicId: "a") { descendants { nodes { topicId } totalCount } } }')
    assert tree.operations == {"Query": 6, "GetItem": 1}


async def test_upward_by_an_index(tree: World) -> None:
    """A reach by the other end's list would not be found."""
    found = await tree.ask(
        '{ topic(topicId: "f") { ancestors { nodes { topicId } totalCount edges { distance } } } }'
    )
    assert found["topic"]["ancestors"]["nodes"] == [{"topicId": name} for name in "dbca"]
    assert found["topic"]["ancestors"]["totalCount"] == 4
    assert [each["distance"] for each in found["topic"]["ancestors"]["edges"]] == [1, 2, 2, 3]


async def paged(world: World, document: str, name: str, size: int, **variables: Any) -> list[Any]:
    """All edges, page by page."""
    found: list[Any] = []
    after = None
    for _ in range(500):
        answer = await world.ask(document, first=size, after=after, **variables)
        [owner] = answer.values()
        page = owner[name]
        found += page["edges"]
        after = page["pageInfo"]["endCursor"]
        if not page["pageInfo"]["hasNextPage"]:
            return found
    raise AssertionError("it does not end")


async def test_pages(tree: World) -> None:
    """A page would have an edge of the one before, or lack one."""
    whole = (await tree.ask(DESCENDANTS, topic="a"))["topic"]["descendants"]["edges"]
    for size in (1, 2, 3):
        pages = await paged(tree, DESCENDANTS, "descendants", size, topic="a")
        assert [each["node"] for each in pages] == [each["node"] for each in whole]
        assert [each["distance"] for each in pages] == [each["distance"] for each in whole]


async def test_a_cursor_of_something_else(tree: World) -> None:
    """A cursor of another node's walk would go on somewhere."""
    found = (await tree.ask(DESCENDANTS, topic="a"))["topic"]["descendants"]
    cursor = found["pageInfo"]["endCursor"]
    for topic_id, after in (("b", cursor), ("a", "AAAA"), ("a", cursor[:-2])):
        [(code, message)] = await tree.errors(DESCENDANTS, topic=topic_id, after=after)
        assert (code, message) == ("BAD_USER_INPUT", "after: it is not a cursor of this list")
    assert await tree.codes(DESCENDANTS, topic="a", most=7) == ["BAD_USER_INPUT"]
    assert await tree.codes(DESCENDANTS, topic="a", first=-1) == ["BAD_USER_INPUT"]


async def test_a_small_budget(tree: World) -> None:
    """A walk over a large graph would read without an end, or say that there is no more."""
    document = (
        DESCENDANTS.replace("descendants(", "few(")
        .replace(", $most: Int", "")
        .replace(", maxDistance: $most", "")
    )
    found = await paged(tree, document, "few", 10, topic="a")
    assert [each["node"]["topicId"] for each in found] == [*"bcdef"]
    answer = await tree.service.execute('{ topic(topicId: "a") { few { totalCount } } }')
    assert answer["data"] == {"topic": {"few": {"totalCount": None}}}
    [warning] = answer["extensions"]["warnings"]
    assert warning == {
        "code": "COUNT_LIMIT",
        "message": "totalCount is null: the walk looks at no more than 5 items. Ask for a smaller distance, or page through it.",
        "path": ["topic", "few", "totalCount"],
    }


async def test_an_aggregate_names_the_budget_of_its_walk(tree: World) -> None:
    """A warning would name the server's budget, where the walk has a smaller one."""
    answer = await tree.service.execute('{ topic(topicId: "a") { few { aggregate { count } } } }')
    assert answer["data"] == {"topic": {"few": {"aggregate": None}}}
    assert [each["message"] for each in answer["extensions"]["warnings"]] == [
        "aggregate is null: there are more than 5 items to look at. Aggregate fewer of them."
    ]


async def test_missing_nodes(tree: World) -> None:
    """A node without an item would end the walk, or be shown as if it were there."""
    await tree.put(below("f", "gone"), below("gone", "b"), below("gone", "h"), topic("h"))
    document = '{ topic(topicId: "d") { descendants { edges { node { name } distance } nodes { name } totalCount } } }'
    found = (await tree.ask(document))["topic"]["descendants"]
    assert [each["node"] and each["node"]["name"] for each in found["edges"]] == [
        "the f",
        None,
        "the b",
        "the h",
    ]
    assert [each["name"] for each in found["nodes"]] == ["the f", "the b", "the h"]
    assert found["totalCount"] == 4


async def test_lists_of_nodes(empty: World) -> None:
    """What contains itself by an index of nodes would not be walked, or read twice."""
    await empty.put(box("a", None), box("b", "a"), box("c", "a"), box("d", "c"), box("e", "d"))
    empty.forget()
    document = (
        '{ box(boxId: "a") { contents { nodes { label } edges { distance via { node { boxId } } } } } }'
    )
    found = (await empty.ask(document))["box"]["contents"]
    assert [each["label"] for each in found["nodes"]] == ["box b", "box c", "box d", "box e"]
    assert [each["distance"] for each in found["edges"]] == [1, 1, 2, 3]
    assert [each["via"]["node"]["boxId"] for each in found["edges"]] == [*"bcde"]
    assert empty.operations == {"GetItem": 1, "Query": 5}


async def test_several_lists(empty: World) -> None:
    """Who is reached by one list and goes on by another would be missing."""
    await empty.put(*map(person, "abcd"), *friends("a", "b"), follows("b", "c"), *friends("c", "d"))
    document = """{ person(personId: "a") { anybody { edges {
      distance node { name }
      via { __typename ... on PersonFriendsEdge { trust } ... on PersonFollowsEdge { node { personId } } }
    } } } }"""
    found = (await empty.ask(document))["person"]["anybody"]["edges"]
    assert [(each["node"]["name"], each["distance"], each["via"]) for each in found] == [
        ("the b", 1, {"__typename": "PersonFriendsEdge", "trust": "1"}),
        ("the c", 2, {"__typename": "PersonFollowsEdge", "node": {"personId": "c"}}),
        ("the d", 3, {"__typename": "PersonFriendsEdge", "trust": "1"}),
    ]


RANKED = """
query ($person: ID!, $first: Int, $after: String) {
  person(personId: $person) {
    LIST(first: $first, after: $after) {
      totalCount
      edges { score paths node { personId name } cursor }
      pageInfo { hasNextPage hasPreviousPage isComplete endCursor }
    }
  }
}
"""


async def ranking(world: World, name: str, **variables: Any) -> Any:
    return (await world.ask(RANKED.replace("LIST", name), **variables))["person"][name]


async def test_ranking(empty: World) -> None:
    """People whom most friends know would not come first, or oneself and one's friends would."""
    pairs = ["ab", "ac", "ad", "be", "ce", "de", "bf", "cf", "cd", "bg"]
    await empty.put(*map(person, "abcdefg"), *(item for pair in pairs for item in friends(*pair)))
    empty.forget()
    found = await ranking(empty, "mayKnow", person="a")
    assert [(each["node"]["name"], each["score"], each["paths"]) for each in found["edges"]] == [
        ("the e", 3.0, 3),
        ("the f", 2.0, 2),
        ("the g", 1.0, 1),
    ]
    assert found["totalCount"] == 3
    assert found["pageInfo"]["isComplete"] is True
    assert empty.operations == {"GetItem": 1, "Query": 4, "BatchGetItem": 1}
    pages = await paged(empty, RANKED.replace("LIST", "mayKnow"), "mayKnow", 2, person="a")
    assert [each["node"] for each in pages] == [each["node"] for each in found["edges"]]
    with_first = await ranking(empty, "close", person="a")
    assert [each["node"]["personId"] for each in with_first["edges"]] == [*"efcdg"]


async def test_weights_and_decay(empty: World) -> None:
    """A ranking would count what is old, or not trusted, as much as the rest."""
    await empty.put(
        *friends("a", "b"), *friends("b", "c", trust=5, since="1990-01-01"), *friends("b", "d", trust=-2)
    )
    await empty.put(*map(person, "acde"), *friends("b", "e", trust=1, since="2099-01-01"))
    close = await ranking(empty, "close", person="a")
    assert [(each["node"]["personId"], each["score"]) for each in close["edges"]] == [
        ("c", 5.0),
        ("e", 1.0),
        ("d", -2.0),
    ]
    recent = await ranking(empty, "recent", person="a")
    assert [each["node"]["personId"] for each in recent["edges"]] == [*"edc"]
    assert recent["edges"][0]["score"] == 1.0
    assert 0 <= recent["edges"][2]["score"] < 1e-6


async def test_an_incomplete_ranking_says_so(empty: World) -> None:
    """A wrong score would be taken for a right one."""
    await empty.put(
        person("a"), *(item for pair in ["ab", "ac", "bd", "cd", "ce", "be"] for item in friends(*pair))
    )
    answer = await empty.service.execute(RANKED.replace("LIST", "few"), {"person": "a"})
    found = answer["data"]["person"]["few"]
    assert found["pageInfo"]["isComplete"] is False
    assert found["totalCount"] is None
    assert all(each["score"] is None and each["paths"] is None for each in found["edges"])


@pytest.mark.parametrize("seed", range(6))
async def test_random_graphs(empty: World, seed: int) -> None:
    """Some graph would be walked wrongly: NetworkX says what is right."""
    made = random.Random(seed)
    size = made.choice([5, 12, 25])
    graph = nx.gnp_random_graph(size, made.choice([0.08, 0.2, 0.4]), seed=seed)
    await empty.put(*(item for one, other in graph.edges for item in friends(one, other)))
    directed = nx.gnp_random_graph(size, 0.1, seed=seed, directed=True)
    loops = [(each, each) for each in directed if made.random() < 0.2]
    directed.add_edges_from(loops)
    await empty.put(*(below(*each) for each in directed.edges))
    document = """query ($name: ID!) {
      topic(topicId: $name) { descendants(first: 100) { totalCount edges { distance node { topicId } } } }
      person(personId: $name) {
        network(first: 100) { edges { distance node { personId } } }
        mayKnow(first: 100) { edges { score node { personId } } }
      }
    }"""
    start = made.randrange(size)
    await empty.put(topic(start), person(start))
    answer = await empty.ask(document, name=str(start))
    right = nx.single_source_shortest_path_length(directed, start, cutoff=6)
    below_it = answer["topic"]["descendants"]
    assert {each["node"]["topicId"]: each["distance"] for each in below_it["edges"]} == {
        str(name): far for name, far in right.items() if far
    }
    assert below_it["totalCount"] == len(right) - 1
    near = nx.single_source_shortest_path_length(graph, start, cutoff=3)
    network = answer["person"]["network"]["edges"]
    assert {each["node"]["personId"]: each["distance"] for each in network} == {
        str(name): far for name, far in near.items() if far
    }
    common = {
        str(other): len([*nx.common_neighbors(graph, start, other)])
        for other in graph
        if other != start and other not in graph[start]
    }
    known = answer["person"]["mayKnow"]["edges"]
    assert {each["node"]["personId"]: each["score"] for each in known} == {
        k: v for k, v in common.items() if v
    }
    assert [each["score"] for each in known] == sorted((each["score"] for each in known), reverse=True)


async def test_the_bound_holds(tree: World) -> None:
    """An operation with a walk would cost more than it may."""
    await tree.put(*map(person, "abcd"), *friends("a", "b"), *friends("b", "c"), follows("c", "d"))
    ask = tree.service.execute
    documents = [
        '{ topic(topicId: "a") { descendants(first: 2) { nodes { name } } } }',
        '{ topic(topicId: "a") { few { totalCount edges { node { name } via { note } } } } }',
        '{ topics: topic(topicId: "f") { ancestors { edges { via { note } } } } }',
        '{ person(personId: "a") { anybody { totalCount nodes { name friends { totalCount } } } } }',
        '{ person(personId: "a") { few { edges { score node { name } } } mayKnow { nodes { name } } } }',
    ]
    for document in documents:
        answer = await ask(document, {}, with_cost=True)
        assert "errors" not in answer
        cost = answer["extensions"]["cost"]
        for name in ("requests", "roundTrips", "items", "readUnits"):
            assert cost["actual"][name] <= cost["bound"][name], (document, name)


async def test_a_budget_is_the_bound(tree: World) -> None:
    """A walk with a small budget would be refused as if it read everything."""
    document = '{ topic(topicId: "a") { few { nodes { topicId } } } }'
    answer = await tree.service.execute(document, {}, with_cost=True)
    bound = answer["extensions"]["cost"]["bound"]
    # The topic itself, the walk's five items, and the page's nodes, whose ids their keys tell.
    assert (bound["requests"], bound["items"]) == (6, 6)


async def test_a_distance_beyond_the_depth_of_the_walk(tree: World) -> None:
    """A client would not be told which distances it may ask for."""
    document = '{ topic(topicId: "a") { descendants(maxDistance: 0) { nodes { name } } } }'
    [(code, message)] = await tree.errors(document)
    assert (code, message.partition(" and ")[0]) == ("BAD_USER_INPUT", "maxDistance must be between 1")


async def test_explained(tree: World) -> None:
    """Nobody would see beforehand what a walk may read."""
    document = '{ topic(topicId: "a") { descendants(first: 3, maxDistance: 2) { nodes { name } } } }'
    [step] = tree.service.explain(document).steps
    assert steps_text(step.steps, 130).splitlines()[:2] == [
        "topic.descendants: walk Topic by the key of Topic – first 3 (maxDistance: 2) [round trip 1]",
        "├─ topic.descendants: read list Below by the key of Topic – level 1: at most 1 list, 10,000 items in all [round trip 1]",
    ]
    [walk] = step.steps
    assert [(each.page, each.where.round_trip) for each in walk.steps] == [
        ("level 1: at most 1 list, 10,000 items in all", 1),
        ("level 2: at most 10,000 lists, 10,000 items in all", 2),
        ("", 3),
    ]
    assert [each.requests[0].keys for each in walk.steps[:2]] == [
        "PK = TOPIC#{topic_id} AND begins_with(SK, CHILD#)"
    ] * 2
