"""What nodes reach and rank: page by page, within the budget, and not more than what it may cost."""

from __future__ import annotations

from typing import Any

import pytest

from keygraph_resolvers import OperationRequest
from keygraph_resolvers.plan.explained import steps_text
from tests.resolvers.walk_worlds import below, box, follows, friends, person, topic, walks
from tests.resolvers.worlds import World, filled

empty = filled(walks)


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


async def test_a_level_is_a_round_trip_and_nodes_are_read_once(tree: World) -> None:
    tree.forget()
    await tree.ask(DESCENDANTS, topic="a")
    # The lists of a, b, c, d, e, f; then one batch with the five nodes.
    assert tree.operations == {"GetItem": 1, "Query": 6, "BatchGetItem": 1}
    tree.forget()
    await tree.ask('{ topic(topicId: "a") { descendants { nodes { topicId } totalCount } } }')
    assert tree.operations == {"Query": 6, "GetItem": 1}


async def paged(world: World, document: str, name: str, size: int, **variables: Any) -> list[Any]:
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


async def test_a_cursor_of_something_else(tree: World) -> None:
    found = (await tree.ask(DESCENDANTS, topic="a"))["topic"]["descendants"]
    cursor = found["pageInfo"]["endCursor"]
    for topic_id, after in (("b", cursor), ("a", "AAAA"), ("a", cursor[:-2])):
        [(code, message)] = await tree.errors(DESCENDANTS, topic=topic_id, after=after)
        assert (code, message) == ("BAD_USER_INPUT", "after: it is not a cursor of this list")
    assert await tree.codes(DESCENDANTS, topic="a", most=7) == ["BAD_USER_INPUT"]
    assert await tree.codes(DESCENDANTS, topic="a", first=-1) == ["BAD_USER_INPUT"]


async def test_a_small_budget(tree: World) -> None:
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
    answer = await tree.service.execute('{ topic(topicId: "a") { few { aggregate { count } } } }')
    assert answer["data"] == {"topic": {"few": {"aggregate": None}}}
    assert [each["message"] for each in answer["extensions"]["warnings"]] == [
        "aggregate is null: there are more than 5 items to look at. Aggregate fewer of them."
    ]


async def test_lists_of_nodes(empty: World) -> None:
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
    await empty.put(
        person("a"), *(item for pair in ["ab", "ac", "bd", "cd", "ce", "be"] for item in friends(*pair))
    )
    answer = await empty.service.execute(RANKED.replace("LIST", "few"), {"person": "a"})
    found = answer["data"]["person"]["few"]
    assert found["pageInfo"]["isComplete"] is False
    assert found["totalCount"] is None
    assert all(each["score"] is None and each["paths"] is None for each in found["edges"])


async def test_a_budget_is_the_bound(tree: World) -> None:
    document = '{ topic(topicId: "a") { few { nodes { topicId } } } }'
    answer = await tree.service.execute(OperationRequest(document, {}, with_cost=True))
    bound = answer["extensions"]["cost"]["bound"]
    # The topic itself, the walk's five items, and the page's nodes, whose ids their keys tell.
    assert (bound["requests"], bound["items"]) == (6, 6)


async def test_a_distance_beyond_the_depth_of_the_walk(tree: World) -> None:
    document = '{ topic(topicId: "a") { descendants(maxDistance: 0) { nodes { name } } } }'
    [(code, message)] = await tree.errors(document)
    assert (code, message.partition(" and ")[0]) == ("BAD_USER_INPUT", "maxDistance must be between 1")


async def test_explained(tree: World) -> None:
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
