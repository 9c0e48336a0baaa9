"""Nodes that somebody's own code names by their keys: methods of the model, and fields that are added to the root."""

from __future__ import annotations

from typing import Any

import pytest
import strawberry
from strawberry.permission import BasePermission

from keygraph import ID, Context, Graph, Many, Table, field, node, record, ref
from keygraph.dynamo.items import Item
from keygraph.errors import BadUserInput, FieldName
from keygraph_resolvers import OperationRequest, Service, build_schema
from tests.conftest import MakeStore
from tests.resolvers.schema_text import part
from tests.resolvers.worlds import within_bound
from tests.tracing import TracingStore


@node("USER#{user_id}")
class User:
    user_id: ID
    name: str
    best: str | None
    posts: Many[Post]

    @field(needs=("best",))
    def best_post(self) -> Post | None:
        return ref(Post, author=ref(User, user_id="ada"), post_id=self.best) if self.best else None

    @field(needs=("best",))
    def top_posts(self, more: bool = False) -> list[Post]:
        ids = [self.best or "1", "1", "9"] * (40 if more else 1)
        return [ref(Post, author=ref(User, user_id="ada"), post_id=post_id) for post_id in ids]

    @field(needs=("name",))
    async def translated(self, context: Context, loud: bool = False) -> str:
        greeting = f"{context['hello']} {self.name}"
        return greeting.upper() if loud else greeting


@node("{author}", "POST#{post_id}")
class Post:
    author: User
    post_id: ID
    title: str
    likes: Many[Like]


@record("{post.author}", "LIKE#{post.post_id}#{day}")
class Like:
    post: Post
    day: str


class IsAllowed(BasePermission):
    message = "not for you"
    error_extensions = {"code": "FORBIDDEN"}  # noqa: RUF012  # Strawberry's own way

    def has_permission(self, source: Any, info: strawberry.Info, **given: Any) -> bool:
        return given.get("key") != "secret"


@strawberry.type
class Query:
    @strawberry.field(description="Who came first.")
    def first_user(self) -> User:
        return ref(User, user_id="ada")

    @strawberry.field(permission_classes=[IsAllowed])
    async def found(self, info: strawberry.Info, key: str | None, times: int = 1) -> User | Post | None:
        assert info.field_name == "found"
        if key == "broken":
            raise RuntimeError("a secret of ours")
        if key is None:
            return None
        return (
            ref(Post, author=ref(User, user_id="ada"), post_id=key) if times > 1 else ref(User, user_id=key)
        )

    @strawberry.field
    def half(self) -> Post | None:
        return ref(Post, post_id="1")

    @strawberry.field
    def number(self) -> int:
        return 7

    @strawberry.field
    async def several(self, empty: bool = False) -> list[User | Post | None] | None:
        one = ref(User, user_id="ada")
        return None if empty else [one, None, ref(Post, author=one, post_id="2"), ref(User, user_id="bob")]


@strawberry.type
class Mutation:
    @strawberry.mutation(description="Makes nobody younger.")
    async def greet(self, info: strawberry.Info, user_id: str) -> User:
        assert info.field_name == "greet"
        greeted.append(user_id)
        return ref(User, user_id=user_id)

    @strawberry.mutation
    def greet_all(self) -> list[User]:
        greeted.append("all")
        return [ref(User, user_id="ada")]


greeted: list[str] = []


ITEMS: list[Item] = [
    {"PK": "USER#ada", "SK": "USER#ada", "name": "Ada", "best": "2"},
    {"PK": "USER#ada", "SK": "POST#1", "title": "One"},
    {"PK": "USER#ada", "SK": "POST#2", "title": "Two"},
    {"PK": "USER#ada", "SK": "LIKE#2#mon"},
]
TABLE = Table("Blog", partition_key="PK", sort_key="SK")
SCHEMA = build_schema(Graph(TABLE, User, Post, Like).check(), query=Query, mutation=Mutation)


@pytest.fixture
async def blog(make_store: MakeStore) -> Service:
    store = await make_store(TABLE, *ITEMS)
    return Service(SCHEMA, TracingStore(store), secret=b"secret of the tests")


async def data(service: Service, document: str, **variables: Any) -> Any:
    answer = await service.execute(document, variables)
    assert "errors" not in answer, answer["errors"]
    return answer["data"]


def test_the_fields_are_those_of_the_graph() -> None:
    schema = SCHEMA.as_str()
    assert '  """Who came first."""\n  firstUser: User\n' in schema
    assert "  found(key: String, times: Int! = 1): PostOrUser\n" in schema


async def test_a_method_is_given_the_context(blog: Service) -> None:
    assert "context" not in SCHEMA.as_str()
    asked = "{ firstUser { translated(loud: true) } }"
    for hello in ("Hello", "Salut"):
        answer = await blog.execute(OperationRequest(asked, context={"hello": hello}))
        assert answer == {"data": {"firstUser": {"translated": f"{hello} Ada".upper()}}}


async def test_a_field_of_the_root_goes_on_to_the_node(blog: Service) -> None:
    asked = "{ number firstUser { name posts(first: 1) { nodes { title } } bestPost { title author { name } likes { nodes { day } } } } }"
    assert await data(blog, asked) == {
        "number": 7,
        "firstUser": {
            "name": "Ada",
            "posts": {"nodes": [{"title": "One"}]},
            "bestPost": {"title": "Two", "author": {"name": "Ada"}, "likes": {"nodes": [{"day": "mon"}]}},
        },
    }


@pytest.mark.parametrize(
    ("key", "times", "found"),
    [
        ("ada", 1, {"__typename": "User", "name": "Ada"}),
        ("2", 2, {"__typename": "Post", "title": "Two"}),
        ("nobody", 1, None),
        (None, 1, None),
    ],
)
async def test_a_resolver_has_its_arguments(blog: Service, key: str | None, times: int, found: Any) -> None:
    asked = """query ($key: String, $times: Int!, $yes: Boolean = true) {
      other: found(key: $key, times: $times) @include(if: $yes) {
        __typename ... on User { name } ... on Post { title } } }"""
    assert await data(blog, asked, key=key, times=times) == {"other": found}


@pytest.mark.parametrize(
    ("asked", "code", "message"),
    [
        ('{ found(key: "secret") { __typename } number }', "FORBIDDEN", "not for you"),
        ('{ found(key: "broken") { __typename } number }', "INTERNAL", None),
        ("{ found: half { title } number }", "INTERNAL", None),
    ],
)
async def test_a_resolver_that_fails(blog: Service, asked: str, code: str, message: str | None) -> None:
    answer = await blog.execute(asked)
    assert answer["data"] == {"found": None, "number": 7}
    [error] = answer["errors"]
    assert error["path"] == ["found"]
    assert message is None or error["message"] == message
    assert error["extensions"]["code"] == code
    assert "ours" not in str(error)


async def test_its_node_is_in_the_plan(blog: Service) -> None:
    asked = "{ firstUser { name posts(first: 3) { nodes { title } } } }"
    answer = await blog.execute(OperationRequest(asked, with_cost=True))
    assert answer["extensions"]["cost"]["bound"]["requests"] == 2
    shown = str(blog.explain(asked))
    assert "what the resolver of firstUser gives" in shown


async def test_lists_of_nodes_go_on(blog: Service) -> None:
    asked = """{ user(userId: "ada") { topPosts { title author { name } } }
      several { __typename ... on User { name } ... on Post { title } } none: several(empty: true) { __typename } }"""
    posts = [{"title": title, "author": {"name": "Ada"}} for title in ("Two", "One")]
    assert await data(blog, asked) == {
        "user": {"topPosts": [*posts, None]},
        "several": [
            {"__typename": "User", "name": "Ada"},
            None,
            {"__typename": "Post", "title": "Two"},
            None,
        ],
        "none": None,
    }
    answer = await blog.execute(OperationRequest(asked, with_cost=True))
    cost = answer["extensions"]["cost"]
    assert len(cost["requests"]) <= 3
    for name in ("requests", "roundTrips", "items", "readUnits"):
        assert cost["actual"][name] <= cost["bound"][name], name
    assert cost["open"] == ["user.topPosts", "several", "none"]
    schema = SCHEMA.as_str()
    assert "  topPosts(more: Boolean! = false): [Post]!" in part("User", schema)
    assert "  several(empty: Boolean! = false): [PostOrUser]\n" in schema
    answer = await blog.execute('{ user(userId: "ada") { name topPosts(more: true) { title } } }')
    assert answer["data"] == {"user": None}
    [error] = answer["errors"]
    assert (error["path"], error["extensions"]["code"]) == (["user", "topPosts"], "INTERNAL")


async def test_own_mutations_give_nodes(blog: Service) -> None:
    greeted.clear()
    asked = """mutation { a: greet(userId: "ada") { name bestPost { title } } b: greetAll { name }
      updateUser(input: {userId: "ada", name: "Ida"}) { user { name } } c: greet(userId: "ada") { name } }"""
    answer = await blog.execute(OperationRequest(asked, with_cost=True))
    assert answer["data"] == {
        "a": {"name": "Ada", "bestPost": {"title": "Two"}},
        "b": [{"name": "Ada"}],
        "updateUser": {"user": {"name": "Ida"}},
        "c": {"name": "Ida"},
    }
    assert greeted == ["ada", "all", "ada"]
    within_bound(answer)
    assert '"""Makes nobody younger."""\n  greet(userId: String!): User\n' in SCHEMA.as_str()


def test_a_key_that_is_misspelt() -> None:
    with pytest.raises(TypeError, match="User has no field user"):
        ref(User, user="ada")
    with pytest.raises(TypeError, match="Like is not a node"):
        ref(Like, day="mon")


async def test_a_resolver_that_refuses_its_input(make_store: MakeStore) -> None:
    @strawberry.type
    class Query:
        @strawberry.field
        def refused(self) -> str:
            raise BadUserInput(FieldName("user_id"), ": nobody is called so")

    schema = build_schema(Graph(TABLE, User, Post, Like).check(), query=Query)
    answer = await Service(schema, await make_store(TABLE), secret=b"secret of the tests").execute(
        "{ refused }"
    )
    [error] = answer["errors"]
    assert (error["message"], error["extensions"]["code"]) == (
        "userId: nobody is called so",
        "BAD_USER_INPUT",
    )
