"""Declared formats: rendering, lossy ones, and datetimes that a table writes in its own way."""

from __future__ import annotations

import re
from datetime import UTC, date, datetime
from decimal import Decimal

import pytest

from keygraph import ID, BadUserInput, Format, Graph, Index, Many, Table, many, node, record, stored
from keygraph.dynamo.items import Item
from keygraph.dynamo.store import BatchWrite
from keygraph_resolvers import Service, build_schema
from tests.conftest import MakeStore
from tests.tracing import TracingStore
from tests.verified import verified

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


TABLE = Table("Forum", partition_key="PK", sort_key="SK", indexes=[by_name])

graph = Graph(
    TABLE,
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


POST = {"PK": "POST#1", "SK": "POST#1", "post_id": "1", "author_email": "Ada@X.org"}

ADA = {
    "PK": "MEMBER#ada@x.org",
    "SK": "MEMBER#ada@x.org",
    "email": "Ada@x.org",
    "name": "Ada",
    "NamePK": "MEMBERS",
    "NameSK": "ada",
}


async def test_values_that_render_alike_are_one(make_store: MakeStore) -> None:
    service, store = await serve(make_store, ADA)
    answer = await service.execute(
        '{ a: member(email: "ADA@X.ORG") { id email } b: member(email: "ada@x.org") { id } }'
    )
    assert answer["data"]["a"]["email"] == "Ada@x.org"
    assert answer["data"]["a"]["id"] == answer["data"]["b"]["id"]
    assert len(store.requests) == 1


async def test_a_lossy_key_field_is_read_from_the_item(make_store: MakeStore) -> None:
    service, _ = await serve(make_store, POST, ADA)
    answer = await service.execute('{ post(postId: "1") { author { email } } }')
    assert answer == {"data": {"post": {"author": {"email": "Ada@x.org"}}}}


def test_a_lossy_argument_takes_eq_alone() -> None:
    schema = build_schema(graph).as_str()
    assert "name: StringEquals" in schema
    [fields] = re.findall(r"^input StringEquals \{(.*?)^\}", schema, re.MULTILINE | re.DOTALL)
    assert re.findall(r"^  (\w+): (\w+)$", fields, re.MULTILINE) == [("eq", "String")]


async def test_a_virtual_node_is_called_what_its_key_says(make_store: MakeStore) -> None:
    service, store = await serve(make_store)
    assert await service.execute('{ topic(title: "DynamoDB") { title } }') == {
        "data": {"topic": {"title": "dynamodb"}}
    }
    assert store.requests == []


@pytest.mark.parametrize(
    "broken",
    [Format(lambda value: 1 / 0), Format(lambda value: None)],  # type: ignore[arg-type,return-value]
)
def test_a_format_that_fails_is_the_callers_problem(broken: Format) -> None:
    @node("A#{name:broken}")
    class A:
        name: str

    failing = Graph(Table("Tests", partition_key="PK", sort_key="SK"), A, formats={"broken": broken}).check()
    with pytest.raises(BadUserInput) as refused:
        failing.identity(failing.types["A"], {"name": "x"})
    assert str(refused.value) == "name cannot be part of a key of A"


# --- What a key cannot say exactly --------------------------------------------------------------------


@node("SHELF#{shelf_id}")
class Shelf:
    shelf_id: ID
    goods: Many[Good] = many()
    moves: Many[Move] = many()
    depths: Many[Depth] = many()


@record("{shelf}", "PRICE#{price:09.2f}#{name}")
class Good:
    shelf: Shelf
    price: Decimal
    name: str


@record("{shelf}", "MOVE#{at:%Y%m%dT%H%M%S}")
class Move:
    shelf: Shelf
    at: datetime


@record("{shelf}", "DEPTH#{depth:04d}")
class Depth:
    shelf: Shelf
    depth: int


shelves = Graph(Table("Shelves", partition_key="PK", sort_key="SK"), Shelf, Good, Move, Depth)
SHELF = [
    {"PK": "SHELF#1", "SK": sort}
    for sort in (
        "SHELF#1",
        "PRICE#000002.50#pen",
        "PRICE#000010.00#ink",
        "PRICE#000010.01#pad",
        "MOVE#20240101T000000",
        "MOVE#20240101T000001",
        "DEPTH#-003",
        "DEPTH#0000",
        "DEPTH#0012",
    )
]
MIDNIGHT = "2024-01-01T00:00:00"


@pytest.mark.parametrize(
    ("asked", "wanted"),
    [
        ("goods { nodes { said: price } }", ["2.5", "10", "10.01"]),
        ('goods(price: {eq: "2.5"}) { nodes { said: price } }', ["2.5"]),
        ('goods(price: {from: "2.504"}) { nodes { said: price } }', ["10", "10.01"]),
        ('goods(price: {from: "2.496"}) { nodes { said: price } }', ["2.5", "10", "10.01"]),
        ('goods(price: {to: "10.004"}) { nodes { said: price } }', ["2.5", "10"]),
        ('goods(price: {from: "3", to: 10}) { nodes { said: price } }', ["10"]),
        (f'moves(at: {{from: "{MIDNIGHT}.5Z"}}) {{ nodes {{ said: at }} }}', ["2024-01-01T00:00:01Z"]),
        (f'moves(at: {{to: "{MIDNIGHT}.5Z"}}) {{ nodes {{ said: at }} }}', [f"{MIDNIGHT}Z"]),
        (f'moves(at: {{eq: "{MIDNIGHT}.000Z"}}) {{ nodes {{ said: at }} }}', [f"{MIDNIGHT}Z"]),
        ("depths(depth: {from: 0}) { nodes { said: depth } }", [0, 12]),
        ("depths(depth: {eq: -3}) { nodes { said: depth } }", [-3]),
    ],
)
@pytest.mark.long
async def test_a_range_is_that_of_the_values(make_store: MakeStore, asked: str, wanted: list[object]) -> None:
    store = await make_store(shelves.check().table)
    await store.send(BatchWrite(tuple(SHELF)))  # type: ignore[arg-type]  # plain texts
    service = Service(build_schema(shelves), store, secret=b"a secret")
    answer = await service.execute(f'{{ shelf(shelfId: "1") {{ asked: {asked} }} }}')
    assert "errors" not in answer, answer
    assert [node["said"] for node in answer["data"]["shelf"]["asked"]["nodes"]] == wanted


@pytest.mark.parametrize(
    ("asked", "said"),
    [
        ('goods(price: {eq: "2.504"})', "price of Good would have another value in its key"),
        (
            'goods(price: {to: "2.496"})',
            "price of Good has more digits than its key can hold; remove the last digits",
        ),
        (f'moves(at: {{eq: "{MIDNIGHT}.5Z"}})', "at of Move would have another value in its key"),
        (
            "depths(depth: {from: -5})",
            "depth of Depth cannot be negative here: its key does not sort negative numbers",
        ),
        (
            "depths(depth: {to: -2})",
            "depth of Depth cannot be negative here: its key does not sort negative numbers",
        ),
    ],
)
async def test_what_a_key_cannot_say(make_store: MakeStore, asked: str, said: str) -> None:
    store = await make_store(shelves.check().table)
    await store.send(BatchWrite(tuple(SHELF)))  # type: ignore[arg-type]  # plain texts
    service = Service(build_schema(shelves), store, secret=b"a secret")
    answer = await service.execute(f'{{ shelf(shelfId: "1") {{ {asked} {{ totalCount }} }} }}')
    assert [(e["message"], e["extensions"]["code"]) for e in answer["errors"]] == [(said, "BAD_USER_INPUT")]


async def test_an_index_on_the_attribute_of_an_end(make_store: MakeStore) -> None:
    @node("DAY#{day:%Y%m%d}")
    class Day:
        day: date
        visits: Many[Visit] = many()

    @node("PAGE#{number:04d}")
    class Page:
        number: int
        visits: Many[Visit] = many()

    @node("VISIT#{visit_id}")
    class Visit:
        visit_id: ID
        day: Day = stored("Day")
        page: Page = stored("Page")

    indexes = [Index("ByDay", "Day", "PK"), Index("ByPage", ("Page", "N"), "PK")]
    own = Graph(Table("Visits", partition_key="PK", sort_key="SK", indexes=indexes), Day, Page, Visit).check()
    items: tuple[Item, ...] = (
        {"PK": "DAY#20210703", "SK": "DAY#20210703"},
        {"PK": "PAGE#0007", "SK": "PAGE#0007"},
        {"PK": "VISIT#1", "SK": "VISIT#1", "Day": "2021-07-03", "Page": Decimal(7)},
    )
    store = await make_store(own.table, *items)
    answer = await Service(build_schema(own), store, secret=b"0123456789abcdef").execute(
        '{ day(day: "2021-07-03") { visits { nodes { page { number } } } }'
        " page(number: 7) { visits { nodes { day { day } } } } }"
    )
    assert answer == {
        "data": {
            "day": {"visits": {"nodes": [{"page": {"number": 7}}]}},
            "page": {"visits": {"nodes": [{"day": {"day": "2021-07-03"}}]}},
        }
    }
    assert (await verified(own, store)).ordered() == []


def test_a_placeholder_behind_one_in_a_format_of_its_own() -> None:
    @node("DAY#{day}{name}")
    class Entry:
        day: date
        name: str

    assert not Graph(TABLE, Entry).mistakes
    formats = {date: Format(date.isoformat, date.fromisoformat)}
    [mistake] = Graph(TABLE, Entry, formats=formats).mistakes
    assert "there is no text between {day} and {name}" in mistake.problem
