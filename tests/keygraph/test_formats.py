"""Declared formats: rendering, lossy ones, and datetimes that a table writes in its own way."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from keygraph import ID, BadUserInput, Format, Graph, Index, Many, Table, many, node, record, stored
from keygraph.store import BatchWrite, TracingStore
from resolvers import Service, build_schema
from tests.conftest import MakeStore

by_name = Index("ByName", "NamePK", "NameSK")


def written_compactly(value: datetime) -> str:
    return value.astimezone(UTC).strftime("%Y%m%d%H%M%S")


def read_compactly(text: str) -> datetime:
    return datetime.strptime(text, "%Y%m%d%H%M%S").replace(tzinfo=UTC)


@node("MEMBER#{email:lower}", by_name("MEMBERS", "{name:lower}"))
class Member:
    email: str
    name: str


@node("POST#{post_id}")
class Post:
    post_id: ID
    author: Member | None
    readers: Many[Reading] = many()


@record("{post}", "READ#{at}")
class Reading:
    post: Post
    at: datetime
    seen: datetime | None = stored("lastSeen")


@node("TOPIC#{title:lower}", item=False)
class Topic:
    title: str


graph = Graph(
    Table("Forum", partition_key="PK", sort_key="SK", indexes=[by_name]),
    Member,
    Post,
    Reading,
    Topic,
    formats={
        "lower": Format(str.lower),
        datetime: Format(written_compactly, read_compactly, ordered=True),
    },
)


async def serve(make_store: MakeStore, *items: dict[str, object]) -> tuple[Service, TracingStore]:
    store = TracingStore(await make_store(graph.table))
    await store.send(BatchWrite(items))  # type: ignore[arg-type]  # plain texts
    store.requests.clear()
    return Service(build_schema(graph), store, secret=b"a secret"), store


POST = {"PK": "POST#1", "SK": "POST#1", "post_id": "1", "author_id": "Ada@X.org"}
ADA = {
    "PK": "MEMBER#ada@x.org",
    "SK": "MEMBER#ada@x.org",
    "email": "Ada@x.org",
    "name": "Ada",
    "NamePK": "MEMBERS",
    "NameSK": "ada",
}


async def test_values_that_render_alike_are_one(make_store: MakeStore) -> None:
    """Somebody who writes an address in capitals would not be found, or would be two members."""
    service, store = await serve(make_store, ADA)
    answer = await service.execute(
        '{ a: member(email: "ADA@X.ORG") { id email } b: member(email: "ada@x.org") { id } }'
    )
    assert answer["data"]["a"]["email"] == "Ada@x.org"
    assert answer["data"]["a"]["id"] == answer["data"]["b"]["id"]
    assert len(store.requests) == 1


async def test_a_lossy_key_field_is_read_from_the_item(make_store: MakeStore) -> None:
    """The end would say the address as the post has it, or as the key does, and not as the member wrote it."""
    service, _ = await serve(make_store, POST, ADA)
    answer = await service.execute('{ post(postId: "1") { author { email } } }')
    assert answer == {"data": {"post": {"author": {"email": "Ada@x.org"}}}}


def test_a_lossy_argument_takes_eq_alone() -> None:
    """A range over lower case would leave out what is in capitals."""
    schema = build_schema(graph).as_str()
    assert "name: StringEquals" in schema
    assert "input StringEquals {\n  eq: String\n}" in schema


async def test_a_list_by_a_lossy_field(make_store: MakeStore) -> None:
    """Whoever asks for ADA would not find Ada."""
    service, _ = await serve(make_store, ADA)
    answer = await service.execute('{ members(name: {eq: "ADA"}) { nodes { name } } }')
    assert answer == {"data": {"members": {"nodes": [{"name": "Ada"}]}}}


async def test_a_virtual_node_is_called_what_its_key_says(make_store: MakeStore) -> None:
    """There is no item that could say how the topic is written."""
    service, store = await serve(make_store)
    assert await service.execute('{ topic(title: "DynamoDB") { title } }') == {
        "data": {"topic": {"title": "dynamodb"}}
    }
    assert store.requests == []


async def test_datetimes_in_the_tables_own_way(make_store: MakeStore) -> None:
    """A table that writes its times otherwise could not be served, or its ranges would find nothing."""
    first = {"PK": "POST#1", "SK": "READ#20240102030405", "lastSeen": "20240103000000"}
    second = {"PK": "POST#1", "SK": "READ#20240301000000"}
    service, _ = await serve(make_store, POST, first, second)
    answer = await service.execute(
        '{ post(postId: "1") { readers(at: {from: "2024-01-01T00:00:00Z", to: "2024-01-31T23:00:00-01:00"}) '
        "{ nodes { at seen } } "
        'late: readers(where: {seen: {lt: "2024-02-01T00:00:00Z"}}) { nodes { at } } } }'
    )
    january = {"at": "2024-01-02T03:04:05Z", "seen": "2024-01-03T00:00:00Z"}
    assert answer == {
        "data": {"post": {"readers": {"nodes": [january]}, "late": {"nodes": [{"at": january["at"]}]}}}
    }


@pytest.mark.parametrize(
    "broken",
    [Format(lambda value: 1 / 0), Format(lambda value: None)],  # type: ignore[arg-type,return-value]
)
def test_a_format_that_fails_is_the_callers_problem(broken: Format) -> None:
    """A mistake in a format would be an internal error at every request."""

    @node("A#{name:broken}")
    class A:
        name: str

    failing = Graph(Table("Tests", partition_key="PK", sort_key="SK"), A, formats={"broken": broken}).check()
    with pytest.raises(BadUserInput) as refused:
        failing.identity(failing.types["A"], {"name": "x"})
    assert str(refused.value) == "name cannot stand in a key of A"
