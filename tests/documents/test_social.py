"""The article on a social network: what a partition of its table answers, and what it does not.

`article` has the article's own items alone, `sample` has them among what makes them one.
"""

from __future__ import annotations

import pytest

from keygraph import ID, Graph, Many, Table, edge, many, node
from keygraph_examples import social
from keygraph_examples.social import graph
from tests.conftest import MakeStore
from tests.documents.samples import files_of, read_as_json, serve, types_of
from tests.documents.served import Served, counted

ALICE, BOB = "GetItem USER#Alice / PROFILE", "GetItem USER#Bob / PROFILE"
FRIENDS = "Query: PK = USER#{} AND begins_with(SK, FRIEND#)"

DOCUMENT = [
    {"PK": "USER#Alice", "SK": "PROFILE", "name": "Alice Wonderland"},
    {"PK": "USER#Alice", "SK": "FRIEND#Bob", "friendship_since": "2023-01-15"},
    {"PK": "USER#Alice", "SK": "FRIEND#Charlie", "friendship_since": "2023-02-20"},
    {"PK": "USER#Bob", "SK": "PROFILE", "name": "Bob The Builder"},
    {"PK": "USER#Bob", "SK": "FRIEND#Alice", "friendship_since": "2023-01-15"},
    {"PK": "USER#Bob", "SK": "FRIEND#David", "friendship_since": "2023-03-10"},
    {"PK": "USER#Charlie", "SK": "PROFILE", "name": "Charlie Chaplin"},
    {"PK": "USER#Charlie", "SK": "FRIEND#Alice", "friendship_since": "2023-02-20"},
    {"PK": "USER#Alice", "SK": "LIKES#POST#12345", "timestamp": "2023-04-01T10:00:00Z"},
    {"PK": "USER#Bob", "SK": "FOLLOWS#USER#Charlie", "timestamp": "2023-04-02T11:30:00Z"},
]


@pytest.fixture
async def article(make_store: MakeStore) -> Served:
    return await serve(graph, make_store, "social.jsonl")


@pytest.fixture
async def sample(make_store: MakeStore) -> Served:
    return await serve(graph, make_store, *files_of("social"))


def test_the_items_are_the_articles() -> None:
    assert read_as_json("social.jsonl") == DOCUMENT


def test_every_item_is_of_a_declared_type() -> None:
    assert types_of(graph, "social.jsonl") == {"User": 3, "Friendship": 5, "Like": 1, "Follow": 1}
    assert types_of(graph, "social.described.jsonl") == {"User": 2, "Friendship": 5, "Like": 2, "Follow": 1}


def test_every_friendship_of_the_sample_is_there_twice() -> None:
    items = [item for file in files_of("social") for item in read_as_json(file)]
    since = {
        (item["PK"].removeprefix("USER#"), item["SK"].removeprefix("FRIEND#")): item["friendship_since"]
        for item in items
        if item["SK"].startswith("FRIEND#")
    }
    assert since == {(friend, user): day for (user, friend), day in since.items()}


class TestFriends:
    async def test_alices_friends_with_since_when(self, article: Served) -> None:
        assert await article.ask("""{ user(userId: "Alice") { name friends { totalCount edges {
          friendshipSince node { userId name }
        } } } }""") == {
            "user": {
                "name": "Alice Wonderland",
                "friends": {
                    "totalCount": 2,
                    "edges": [
                        {
                            "friendshipSince": "2023-01-15",
                            "node": {"userId": "Bob", "name": "Bob The Builder"},
                        },
                        {
                            "friendshipSince": "2023-02-20",
                            "node": {"userId": "Charlie", "name": "Charlie Chaplin"},
                        },
                    ],
                },
            }
        }
        assert article.sent == [
            "BatchGetItem USER#Bob / PROFILE, USER#Charlie / PROFILE",
            counted(FRIENDS.format("Alice")),
            ALICE,
            FRIENDS.format("Alice"),
        ]

    async def test_is_alice_a_friend_of_bob(self, article: Served) -> None:
        bob = await id_of(article, "Bob")
        asked = f'friends(to: ["{bob}"]) {{ edges {{ friendshipSince node {{ userId }} }} }}'
        assert await article.ask(f"""{{
          user(userId: "Alice") {{ {asked} }} charlie: user(userId: "Charlie") {{ {asked} }}
        }}""") == {
            "user": {"friends": {"edges": [{"friendshipSince": "2023-01-15", "node": {"userId": "Bob"}}]}},
            "charlie": {"friends": {"edges": []}},
        }
        assert article.sent == [
            "BatchGetItem USER#Alice / FRIEND#Bob, USER#Alice / PROFILE, "
            "USER#Charlie / FRIEND#Bob, USER#Charlie / PROFILE",
        ]

    async def test_a_friend_who_has_no_profile(self, article: Served) -> None:
        assert await article.ask("""{ user(userId: "Bob") { friends { totalCount
          edges { friendshipSince node { name } } nodes { userId name }
        } } }""") == {
            "user": {
                "friends": {
                    "totalCount": 2,
                    "edges": [
                        {"friendshipSince": "2023-01-15", "node": {"name": "Alice Wonderland"}},
                        {"friendshipSince": "2023-03-10", "node": None},
                    ],
                    "nodes": [{"userId": "Alice", "name": "Alice Wonderland"}],
                }
            }
        }

    async def test_bobs_friends_friends(self, article: Served) -> None:
        assert await article.ask("""{ user(userId: "Bob") { friends { nodes {
          userId friends { edges { friendshipSince node { userId name } } }
        } } } }""") == {
            "user": {
                "friends": {
                    "nodes": [
                        {
                            "userId": "Alice",
                            "friends": {
                                "edges": [
                                    {
                                        "friendshipSince": "2023-01-15",
                                        "node": {"userId": "Bob", "name": "Bob The Builder"},
                                    },
                                    {
                                        "friendshipSince": "2023-02-20",
                                        "node": {"userId": "Charlie", "name": "Charlie Chaplin"},
                                    },
                                ]
                            },
                        },
                        {"userId": "David", "friends": {"edges": []}},
                    ]
                }
            }
        }
        assert article.sent == [
            BOB,
            "GetItem USER#Charlie / PROFILE",
            FRIENDS.format("Alice"),
            FRIENDS.format("Bob"),
            FRIENDS.format("David"),
        ]

    async def test_mutual_friends(self, sample: Served) -> None:
        answer = await sample.ask("""{
          user(userId: "Alice") { friends(alsoOf: ["Bob"]) { nodes { userId } } }
        }""")
        assert answer == {"user": {"friends": {"nodes": [{"userId": "Eve"}]}}}
        assert sample.sent == [ALICE, FRIENDS.format("Alice"), FRIENDS.format("Bob")]

    async def test_the_friends_of_two(self, sample: Served) -> None:
        answer = await sample.ask("""{
          alice: user(userId: "Alice") { friends { nodes { userId } } }
          bob: user(userId: "Bob") { friends { nodes { userId } } }
        }""")
        assert answer == {
            "alice": {"friends": {"nodes": [{"userId": "Bob"}, {"userId": "Charlie"}, {"userId": "Eve"}]}},
            "bob": {"friends": {"nodes": [{"userId": "Alice"}, {"userId": "David"}, {"userId": "Eve"}]}},
        }
        alices, bobs = ({user["userId"] for user in answer[one]["friends"]["nodes"]} for one in answer)
        assert alices & bobs == {"Eve"}
        assert sample.sent == [
            "BatchGetItem USER#Alice / PROFILE, USER#Bob / PROFILE",
            FRIENDS.format("Alice"),
            FRIENDS.format("Bob"),
        ]


class TestPaths:
    async def test_how_alice_and_david_are_connected(self, sample: Served) -> None:
        assert await sample.ask("""{
          path(from: "WyJVc2VyIiwiQWxpY2UiXQ", to: "WyJVc2VyIiwiRGF2aWQiXQ", via: [USER_FRIENDS]) {
            length nodes { ... on User { userId } } edges { via node { ... on User { userId } } }
          }
        }""") == {
            "path": {
                "length": 2,
                "nodes": [{"userId": "Alice"}, {"userId": "Bob"}, {"userId": "David"}],
                "edges": [
                    {"via": "USER_FRIENDS", "node": {"userId": "Bob"}},
                    {"via": "USER_FRIENDS", "node": {"userId": "David"}},
                ],
            }
        }
        assert sorted(sample.sent) == [FRIENDS.format("Alice"), FRIENDS.format("David")]


class TestRelationships:
    async def test_everything_that_alice_s_partition_says(self, article: Served) -> None:
        assert await article.ask("""{ user(userId: "Alice") { relationships { totalCount nodes {
          __typename ... on Friendship { friend { userId } } ... on Like { post { postId } timestamp }
        } } } }""") == {
            "user": {
                "relationships": {
                    "totalCount": 3,
                    "nodes": [
                        {"__typename": "Friendship", "friend": {"userId": "Bob"}},
                        {"__typename": "Friendship", "friend": {"userId": "Charlie"}},
                        {
                            "__typename": "Like",
                            "post": {"postId": "12345"},
                            "timestamp": "2023-04-01T10:00:00Z",
                        },
                    ],
                }
            }
        }
        everything = "PK = USER#Alice AND SK BETWEEN FOLLOWS#USER# AND LIKES#POST#"
        assert next(each for each in article.sent if each.startswith("Query")).startswith(
            f"Query: {everything}"
        )


class TestLikesAndFollows:
    async def test_what_alice_likes(self, article: Served) -> None:
        assert await article.ask("""{ user(userId: "Alice") { likes { totalCount edges {
          timestamp node { __typename postId }
        } } } }""") == {
            "user": {
                "likes": {
                    "totalCount": 1,
                    "edges": [
                        {
                            "timestamp": "2023-04-01T10:00:00Z",
                            "node": {"__typename": "Post", "postId": "12345"},
                        }
                    ],
                }
            }
        }
        likes = "PK = USER#Alice AND begins_with(SK, LIKES#POST#)"
        assert article.sent == [counted(f"Query: {likes}"), ALICE, f"Query: {likes}"]

    async def test_whom_bob_follows(self, article: Served) -> None:
        assert await article.ask("""{ user(userId: "Bob") { follows { edges {
          timestamp node { userId name }
        } } } }""") == {
            "user": {
                "follows": {
                    "edges": [
                        {
                            "timestamp": "2023-04-02T11:30:00Z",
                            "node": {"userId": "Charlie", "name": "Charlie Chaplin"},
                        }
                    ]
                }
            }
        }
        assert article.sent == [
            BOB,
            "GetItem USER#Charlie / PROFILE",
            "Query: PK = USER#Bob AND begins_with(SK, FOLLOWS#USER#)",
        ]


class TestWhatHasNoPath:
    @pytest.mark.parametrize(
        "query",
        [
            '{ post(postId: "12345") { likes { totalCount } } }',
            '{ post(postId: "12345") { likers { totalCount } } }',
            '{ user(userId: "Charlie") { followers { totalCount } } }',
            "{ users { totalCount } }",
        ],
    )
    async def test_is_not_in_the_schema(self, article: Served, query: str) -> None:
        answer = await article.service.execute(query)
        assert [error["extensions"]["code"] for error in answer["errors"]] == ["GRAPHQL_VALIDATION_FAILED"]
        assert "Cannot query field" in answer["errors"][0]["message"]
        assert article.tracer.requests == []

    def test_is_offered_for_one_user_at_most(self) -> None:
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

    def test_lists_are_those_that_begin_at_a_user(self) -> None:
        assert {(path.owner, path.name) for path in graph.paths} == {
            (graph.types[social.User.__name__], name)
            for name in ("friends", "likes", "follows", "relationships")
        }


async def id_of(served: Served, user: str) -> str:
    """The global id of a user."""
    return str((await served.ask(f'{{ user(userId: "{user}") {{ id }} }}'))["user"]["id"])
