"""A graph as a subgraph of Apollo Federation 2: its directives, and what it answers to a router."""

from __future__ import annotations

import re
import threading
from collections.abc import Callable
from dataclasses import replace
from datetime import date
from enum import Enum
from typing import Any, cast

import pytest

from keygraph import ID, JSON, Graph, Many, Table, field, node, stored
from keygraph_resolvers import Service, build_schema
from keygraph_resolvers.naming.global_ids import global_id
from keygraph_resolvers.schema.types import GraphSchema
from tests.conftest import MakeStore, in_one_world
from tests.resolvers.worlds import SECRET, World, world


class Rank(Enum):
    LOW = 1


@node("USER#{user_id}", shareable=True)
class User:
    user_id: ID
    name: str
    points: int = stored(external=True)
    ranks: list[str] | None = stored("kept", "ranks", external=True)
    rank: Rank | None = stored(external=True)
    gaps: list[Rank | None] | None = stored(external=True)
    weight: float | None = stored(external=True)
    notes: JSON | None = stored(external=True)

    posts: Many[Post]

    @field(needs=("name", "points", "ranks"))
    def greeting(self) -> str:
        return f"{self.name} has {self.points} points: {self.ranks}"


@node("{author}", "POST#{day}#{number:04d}")
class Post:
    """Its key has an end, a day and a number."""

    author: User
    day: date
    number: int
    title: str = stored(shareable=True)

    @field(needs=("title",), shareable=True)
    def loud(self) -> str:
        return self.title.upper()


@node("TEAM#{team_id}")
class Team:
    team_id: ID


@node("BADGE#{owner}", "BADGE")
class Badge:
    """Its key is that of a node of one of two types."""

    owner: User | Team
    colour: str


@node("WORD#{word}", item=False)
class Word:
    word: ID


graph = Graph(
    Table("Federated", partition_key="pk", sort_key="sk"),
    User,
    Post,
    Team,
    Badge,
    Word,
    type_attribute="type",
    writes=True,
)
ITEMS: list[dict[str, Any]] = [
    {"pk": "USER#ann", "sk": "USER#ann", "type": "User", "user_id": "ann", "name": "Ann"},
    {"pk": "USER#bob", "sk": "USER#bob", "type": "User", "user_id": "bob", "name": "Bob"},
    {"pk": "USER#ann", "sk": "POST#2024-01-02#0007", "type": "Post", "title": "Hello"},
    {"pk": "BADGE#USER#ann", "sk": "BADGE", "type": "Badge", "colour": "green"},
]
schema = build_schema(graph, federation=True)
ASKED = """query ($given: [_Any!]!) { _entities(representations: $given) { __typename
    ... on User { name posts { nodes { title } } } ... on Post { title author { name } } ... on Badge { colour }
    ... on Word { word } } }"""
ANN = {"__typename": "User", "userId": "ann"}


@pytest.fixture
async def served(make_store: MakeStore) -> World:
    made = world(graph, await make_store(graph.table, *ITEMS))
    return replace(made, service=Service(schema, made.tracer, secret=SECRET))


def test_the_directives() -> None:
    sdl = schema.as_str()
    for line in (
        'type User implements Node @key(fields: "userId", resolvable: true) @key(fields: "id", resolvable: true) @shareable {',
        'type Post implements Node @key(fields: "author { userId } day number", resolvable: true) @key(fields: "id", resolvable: true) {',
        'type Badge implements Node @key(fields: "id", resolvable: true) {',
        "  title: String! @shareable",
        "  points: Int! @external",
        "  ranks: [String!] @external",
        '  greeting: String! @requires(fields: "points ranks")',
        "  loud: String! @shareable",
        "type PageInfo @shareable {",
        "union _Entity = User | Post | Team | Badge | Word",
    ):
        assert f"{line}\n" in sdl
    assert "federation/v2.3" in sdl
    assert "@key" not in build_schema(graph).as_str()
    assert "_entities" not in build_schema(graph).as_str()


async def test_the_service_tells_its_schema(served: World) -> None:
    assert await served.ask("{ _service { sdl } }") == {"_service": {"sdl": schema.as_str()}}
    assert served.operations == {}


async def test_the_schema_is_printed_once_and_beside_others(monkeypatch: pytest.MonkeyPatch) -> None:
    threads = list[int]()

    def printed(self: Any, as_it_is: Callable[[Any], str] = GraphSchema.as_str) -> str:
        threads.append(threading.get_ident())
        return as_it_is(self)

    monkeypatch.setattr(GraphSchema, "as_str", printed)
    asked = Service(build_schema(graph, federation=True), cast(Any, None), secret=SECRET)
    for _ in range(2):
        answer = await asked.execute("{ a: _service { sdl again: sdl } b: _service { sdl } }")
        assert answer["data"]["a"] == {"sdl": answer["data"]["b"]["sdl"], "again": answer["data"]["b"]["sdl"]}
    [thread] = threads
    assert thread != threading.get_ident()


async def test_entities_are_read_in_one_batch(served: World) -> None:
    bob = global_id(graph.types["User"], ("bob",))
    badge = global_id(graph.types["Badge"], ("USER#ann",))
    post = {"__typename": "Post", "author": {"userId": "ann"}, "day": "2024-01-02", "number": 7}
    given = [
        ANN,
        post,
        {"__typename": "User", "id": bob},
        {"__typename": "User", "userId": "nobody"},
        {"__typename": "Badge", "id": badge},
        {"__typename": "Word", "word": "any"},
        ANN,
    ]
    served.forget()
    ann = {"__typename": "User", "name": "Ann", "posts": {"nodes": [{"title": "Hello"}]}}
    assert (await served.ask(ASKED, given=given))["_entities"] == [
        ann,
        {"__typename": "Post", "title": "Hello", "author": {"name": "Ann"}},
        {"__typename": "User", "name": "Bob", "posts": {"nodes": []}},
        None,
        {"__typename": "Badge", "colour": "green"},
        {"__typename": "Word", "word": "any"},
        ann,
    ]
    assert served.operations == {"BatchGetItem": 1, "Query": 3}
    served.forget()
    many_users = [{"__typename": "User", "userId": f"u{number}"} for number in range(250)]
    found = await served.ask(
        "query ($g: [_Any!]!) { _entities(representations: $g) { ... on User { name } } }", g=many_users
    )
    assert found["_entities"] == [None] * 250
    assert served.operations == {"BatchGetItem": 3}


async def test_fields_of_other_servers(served: World) -> None:
    given = [
        {**ANN, "points": 3, "ranks": ["gold"]},
        {**ANN, "points": 4},
        {"__typename": "User", "userId": "bob", "points": 5},
    ]
    document = "query ($g: [_Any!]!) { _entities(representations: $g) { ... on User { greeting } } }"
    served.forget()
    assert (await served.ask(document, g=given))["_entities"] == [
        {"greeting": "Ann has 3 points: ['gold']"},
        {"greeting": "Ann has 4 points: None"},
        {"greeting": "Bob has 5 points: None"},
    ]
    assert served.operations == {"BatchGetItem": 1}
    assert await served.codes(
        "query($g: [_Any!]!) { _entities(representations: $g) { ... on User { points } } }", g=[ANN]
    ) == ["BAD_USER_INPUT"]
    assert await served.errors(document, g=[{**ANN, "points": "many"}]) == [
        ("BAD_USER_INPUT", "representations.points: expected a value of type int")
    ]
    inputs = re.findall(r"input (?:Create|Update|Upsert)User\w* {[^}]*}", schema.as_str())
    assert len(inputs) > 2
    assert not [each for each in inputs if "points" in each or "ranks" in each]
    await served.ask('mutation { createUser(input: {userId: "cyd", name: "Cyd"}) { user { name } } }')


@in_one_world(
    ("given", "told"),
    [
        ("x", "representations: 'None' is not the __typename of an entity"),
        ({"__typename": "Nobody"}, "representations: 'Nobody' is not the __typename of an entity"),
        ({"__typename": ["User"]}, "representations: \"['User']\" is not the __typename of an entity"),
        ({"__typename": "User"}, "representations.userId: a representation has all fields of one key of User"),
        ({"__typename": "User", "userId": {}}, "representations.userId: expected a value of type id"),
        ({"__typename": "User", "userId": ""}, "userId of User is empty, and part of its key"),
        ({**ANN, "rank": {}}, "representations.rank: expected a value of type Rank"),
        ({**ANN, "rank": []}, "representations.rank: expected a value of type Rank"),
        ({**ANN, "rank": ["LOW", [[]]]}, "representations.rank: expected a value of type Rank"),
        ({**ANN, "gaps": ["LOW", None, []]}, "representations.gaps: expected a value of type Rank"),
        ({**ANN, "weight": 1e300}, "representations.weight: a number outside the range that DynamoDB holds (1E-130 up to 1E126)"),
        ({**ANN, "notes": [1e300]}, "representations.notes: a number outside the range that DynamoDB holds (1E-130 up to 1E126)"),
        ({"__typename": "Badge", "id": {}}, "representations.owner: a representation has all fields of one key of Badge"),
        ({"__typename": "User", "id": global_id(graph.types["Team"], ("a",))}, "representations.id: expected one of User"),
        (
            {"__typename": "Post", "author": "ann", "day": "2024-01-02", "number": 7},
            "representations.author.userId: a representation has all fields of one key of Post",
        ),
        (
            {"__typename": "Post", "author": {"userId": "ann"}, "day": "soon", "number": 7},
            "representations.day: expected a value of type date",
        ),
    ],
)  # fmt: skip
async def test_representations_that_cannot_be(served: World, given: Any, told: str) -> None:
    served.forget()
    assert await served.errors(ASKED, given=[given]) == [("BAD_USER_INPUT", told)]
    assert served.operations == {}


async def test_a_representation_that_cannot_be_fails_alone(served: World) -> None:
    many = [ANN, {"__typename": "Comet", "id": "1"}, {**ANN, "points": "many"}, {**ANN, "userId": "bob"}]
    literal = """{ _entities(representations: [{__typename: "Comet"}, {__typename: "User", userId: "bob"}]) {
        ... on User { name } } }"""
    answer = await served.service.execute(ASKED.replace("posts { nodes { title } }", ""), {"given": many})
    assert answer["data"]["_entities"] == [
        {"__typename": "User", "name": "Ann"},
        None,
        None,
        {"__typename": "User", "name": "Bob"},
    ]
    assert [(error["path"], error["message"]) for error in answer["errors"]] == [
        (["_entities", 1], "representations: 'Comet' is not the __typename of an entity"),
        (["_entities", 2], "representations.points: expected a value of type int"),
    ]
    for _ in range(2):
        answer = await served.service.execute(literal)
        assert answer["data"]["_entities"] == [None, {"name": "Bob"}]
        assert [error["path"] for error in answer["errors"]] == [["_entities", 0]]
