"""The article on a social network: what a partition of its table answers, and what it does not.

`ARTICLE` is asked of the article's own items alone, `SAMPLE` of them among what makes them one.
"""

from __future__ import annotations

import pytest

from keygraph import ID, Graph, Many, Table, edge, many, node
from keygraph_examples import social
from keygraph_examples.social import graph
from tests.conftest import MakeStore, in_one_world
from tests.documents.samples import files_of, read_as_json, serve
from tests.documents.served import Pattern, Served, patterns

ARTICLE = """
Alice's friends, with since when
{ user(userId: "Alice") { name friends { totalCount edges { friendshipSince node { userId name } } } } }
{"user": {"name": "Alice Wonderland", "friends": {"totalCount": 2,
  "edges": [{"friendshipSince": "2023-01-15", "node": {"userId": "Bob", "name": "Bob The Builder"}},
  {"friendshipSince": "2023-02-20", "node": {"userId": "Charlie", "name": "Charlie Chaplin"}}]}}}
BatchGetItem USER#Bob / PROFILE, USER#Charlie / PROFILE
Count: PK = USER#Alice AND SK BETWEEN FRIEND#\0 AND FRIEND#\U0010ffff
GetItem USER#Alice / PROFILE
Query: PK = USER#Alice AND begins_with(SK, FRIEND#)

Is Alice a friend of Bob?
{ user(userId: "Alice") { friends(to: ["WyJVc2VyIiwiQm9iIl0"]) { edges { friendshipSince node { userId } } } }
  charlie: user(userId: "Charlie") { friends(to: ["WyJVc2VyIiwiQm9iIl0"]) { edges { friendshipSince } } } }
{"user": {"friends": {"edges": [{"friendshipSince": "2023-01-15", "node": {"userId": "Bob"}}]}},
  "charlie": {"friends": {"edges": []}}}
BatchGetItem USER#Alice / FRIEND#Bob, USER#Alice / PROFILE, USER#Charlie / FRIEND#Bob, USER#Charlie / PROFILE

A friend who has no profile
{ user(userId: "Bob") { friends { totalCount
  edges { friendshipSince node { name } } nodes { userId name } } } }
{"user": {"friends": {"totalCount": 2, "edges": [{"friendshipSince": "2023-01-15",
  "node": {"name": "Alice Wonderland"}}, {"friendshipSince": "2023-03-10", "node": null}],
  "nodes": [{"userId": "Alice", "name": "Alice Wonderland"}]}}}

Bob's friends' friends
{ user(userId: "Bob") { friends { nodes {
  userId friends { edges { friendshipSince node { userId name } } } } } } }
{"user": {"friends": {"nodes": [{"userId": "Alice", "friends": {"edges": [
  {"friendshipSince": "2023-01-15", "node": {"userId": "Bob", "name": "Bob The Builder"}},
  {"friendshipSince": "2023-02-20", "node": {"userId": "Charlie", "name": "Charlie Chaplin"}}]}},
  {"userId": "David", "friends": {"edges": []}}]}}}
GetItem USER#Bob / PROFILE
GetItem USER#Charlie / PROFILE
Query: PK = USER#Alice AND begins_with(SK, FRIEND#)
Query: PK = USER#Bob AND begins_with(SK, FRIEND#)
Query: PK = USER#David AND begins_with(SK, FRIEND#)

Everything that Alice's partition says
{ user(userId: "Alice") { relationships { totalCount nodes {
  __typename ... on Friendship { friend { userId } } ... on Like { post { postId } timestamp } } } } }
{"user": {"relationships": {"totalCount": 3, "nodes": [
  {"__typename": "Friendship", "friend": {"userId": "Bob"}},
  {"__typename": "Friendship", "friend": {"userId": "Charlie"}},
  {"__typename": "Like", "post": {"postId": "12345"}, "timestamp": "2023-04-01T10:00:00Z"}]}}}
GetItem USER#Alice / PROFILE
Query: PK = USER#Alice AND SK BETWEEN FOLLOWS#USER# AND LIKES#POST#\U0010ffff
Query: PK = USER#Alice AND SK BETWEEN FOLLOWS#USER# AND LIKES#POST#\U0010ffff

What Alice likes
{ user(userId: "Alice") { likes { totalCount edges { timestamp node { __typename postId } } } } }
{"user": {"likes": {"totalCount": 1, "edges": [{"timestamp": "2023-04-01T10:00:00Z",
  "node": {"__typename": "Post", "postId": "12345"}}]}}}
Count: PK = USER#Alice AND SK BETWEEN LIKES#POST#\0 AND LIKES#POST#\U0010ffff
GetItem USER#Alice / PROFILE
Query: PK = USER#Alice AND begins_with(SK, LIKES#POST#)

Whom Bob follows
{ user(userId: "Bob") { follows { edges { timestamp node { userId name } } } } }
{"user": {"follows": {"edges": [{"timestamp": "2023-04-02T11:30:00Z",
  "node": {"userId": "Charlie", "name": "Charlie Chaplin"}}]}}}
GetItem USER#Bob / PROFILE
GetItem USER#Charlie / PROFILE
Query: PK = USER#Bob AND begins_with(SK, FOLLOWS#USER#)
"""

SAMPLE = """
Mutual friends
{ user(userId: "Alice") { friends(alsoOf: ["Bob"]) { nodes { userId } } } }
{"user": {"friends": {"nodes": [{"userId": "Eve"}]}}}
GetItem USER#Alice / PROFILE
Query: PK = USER#Alice AND begins_with(SK, FRIEND#)
Query: PK = USER#Bob AND begins_with(SK, FRIEND#)

The friends of two
{ alice: user(userId: "Alice") { friends { nodes { userId } } }
  bob: user(userId: "Bob") { friends { nodes { userId } } } }
{"alice": {"friends": {"nodes": [{"userId": "Bob"}, {"userId": "Charlie"}, {"userId": "Eve"}]}},
  "bob": {"friends": {"nodes": [{"userId": "Alice"}, {"userId": "David"}, {"userId": "Eve"}]}}}
BatchGetItem USER#Alice / PROFILE, USER#Bob / PROFILE
Query: PK = USER#Alice AND begins_with(SK, FRIEND#)
Query: PK = USER#Bob AND begins_with(SK, FRIEND#)

How Alice and David are connected
{ path(from: "WyJVc2VyIiwiQWxpY2UiXQ", to: "WyJVc2VyIiwiRGF2aWQiXQ", via: [USER_FRIENDS]) {
  length nodes { ... on User { userId } } edges { via node { ... on User { userId } } } } }
{"path": {"length": 2, "nodes": [{"userId": "Alice"}, {"userId": "Bob"}, {"userId": "David"}],
  "edges": [{"via": "USER_FRIENDS", "node": {"userId": "Bob"}},
  {"via": "USER_FRIENDS", "node": {"userId": "David"}}]}}
Query: PK = USER#Alice AND begins_with(SK, FRIEND#)
Query: PK = USER#David AND begins_with(SK, FRIEND#)

People one may know
{ user(userId: "Bob") {
  peopleYouMayKnow { edges { score paths node { name } } }
  network { edges { distance node { userId } } } } }
{"user": {"peopleYouMayKnow": {"edges": [{"score": 1.0, "paths": 1, "node": {"name": "Charlie Chaplin"}}]},
  "network": {"edges": [{"distance": 1, "node": {"userId": "Alice"}},
  {"distance": 1, "node": {"userId": "David"}}, {"distance": 1, "node": {"userId": "Eve"}},
  {"distance": 2, "node": {"userId": "Charlie"}}]}}}
"""


@pytest.fixture
async def article(make_store: MakeStore) -> Served:
    return await serve(graph, make_store, "social.jsonl")


def test_every_friendship_of_the_sample_is_there_twice() -> None:
    items = [item for file in files_of("social") for item in read_as_json(file)]
    since = {
        (item["PK"].removeprefix("USER#"), item["SK"].removeprefix("FRIEND#")): item["friendship_since"]
        for item in items
        if item["SK"].startswith("FRIEND#")
    }
    assert since == {(friend, user): day for (user, friend), day in since.items()}


@in_one_world("pattern", patterns(ARTICLE))
async def test_each_question_is_answered_from_the_article(article: Served, pattern: Pattern) -> None:
    await article.answers(pattern)


@in_one_world("pattern", patterns(SAMPLE))
async def test_each_question_is_answered_from_the_sample(make_store: MakeStore, pattern: Pattern) -> None:
    await (await serve(graph, make_store, *files_of("social"))).answers(pattern)


@pytest.mark.parametrize(
    "query",
    [
        '{ post(postId: "12345") { likes { totalCount } } }',
        '{ post(postId: "12345") { likers { totalCount } } }',
        '{ user(userId: "Charlie") { followers { totalCount } } }',
        "{ users { totalCount } }",
    ],
)
async def test_what_has_no_path_is_not_in_the_schema(article: Served, query: str) -> None:
    answer = await article.service.execute(query)
    assert [error["extensions"]["code"] for error in answer["errors"]] == ["GRAPHQL_VALIDATION_FAILED"]
    assert "Cannot query field" in answer["errors"][0]["message"]
    assert article.tracer.requests == []


def test_likes_of_a_post_would_be_offered_for_one_user_at_most() -> None:
    @node("USER#{user_id}", "PROFILE")
    class User:
        user_id: ID

    @node("POST#{post_id}", item=False)
    class Post:
        post_id: ID
        likes: Many[Like] = many(needs=("user_id",))

    @edge("{user}", "LIKES#{post}")
    class Like:
        user: User
        post: Post

    graph = Graph(Table("Users", partition_key="PK", sort_key="SK"), User, Post, Like).check()
    [path] = graph.paths
    assert [(argument.name, argument.optional) for argument in path.required] == [("user_id", False)]


def test_lists_are_those_that_begin_at_a_user() -> None:
    assert {(path.owner, path.name) for path in graph.paths} == {
        (graph.types[social.User.__name__], name) for name in ("friends", "likes", "follows", "relationships")
    }
