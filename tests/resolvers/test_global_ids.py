"""Global ids: they name a node of any type, and nothing else is taken for one."""

from __future__ import annotations

import base64
import json
from typing import Any

from keygraph import ID, Graph, Index, Many, Table, node, record
from keygraph_examples.commerce import graph as commerce
from keygraph_resolvers.naming.global_ids import global_id
from tests.conftest import MakeStore, in_one_world
from tests.resolvers.worlds import World, world

NODE = "query ($id: ID!) { node(id: $id) { __typename id ... on User { name } ... on Product { name } } }"


def made(content: Any) -> str:
    """The id that says this."""
    return base64.urlsafe_b64encode(json.dumps(content, separators=(",", ":")).encode()).decode().rstrip("=")


async def test_no_node_is_read_twice(shop: World) -> None:
    user = global_id(commerce.types["User"], ("12345",))
    await shop.ask("query ($ids: [ID!]!) { nodes(ids: $ids) { id } }", ids=[user] * 5)
    assert shop.operations == {"GetItem": 1}


UNUSABLE = [
    "",
    "x",
    "12345",
    "é",
    "\ud800",
    "VXNlcjoxMjM0NQ",
    made("User"),
    made(["User"]),
    made(["User", "1", "2"]),
    made(["User", 12345]),
    made(["User", None]),
    made(["User", ""]),
    made(["User", "\ud800"]),
    made(["User", "x" * 3000]),
    made(["Nobody", "1"]),
    made([["User"], "1"]),
    made({"User": "1"}),
    made([]),
    made(None),
    made(["Price", "ABC123"]),
    made(["Price", "ABC123", "yesterday"]),
    made(["OrderItem", "ORD001"]),
    made(["User", "12345#SHARD3"]),
    base64.urlsafe_b64encode(b"[" * 100_000).decode(),
    base64.urlsafe_b64encode(b'["User", "12345"]').decode().rstrip("="),
    made(["User", "12345"]) + "=",
    made(["User", "12345"]) + "\n",
    base64.urlsafe_b64encode(b"\xff\xfe").decode(),
]


@in_one_world("text", UNUSABLE)
async def test_what_is_no_id(shop: World, text: str) -> None:
    shop.forget()
    assert await shop.codes(NODE, id=text) == ["BAD_USER_INPUT"]
    assert await shop.codes("query ($ids: [ID!]!) { nodes(ids: $ids) { id } }", ids=[text]) == [
        "BAD_USER_INPUT"
    ]
    assert shop.operations == {}


async def test_records_and_edges_have_ids(shop: World) -> None:
    found = await shop.ask(
        """{ product(productId: "ABC123") { prices(first: 1) { nodes { id price } } }
             user(userId: "12345") { activities(first: 1) { nodes { id action } } } }"""
    )
    [price], [activity] = found["product"]["prices"]["nodes"], found["user"]["activities"]["nodes"]
    item = global_id(commerce.types["OrderItem"], ("ORD001", "ABC123"))
    document = """query ($ids: [ID!]!) { nodes(ids: $ids) { __typename id ... on Price { price }
      ... on UserActivity { action } ... on OrderItem { quantity product { name } } } }"""
    assert (await shop.ask(document, ids=[price["id"], item, activity["id"]]))["nodes"] == [
        {"__typename": "Price", **price},
        {"__typename": "OrderItem", "id": item, "quantity": 1, "product": {"name": "Wireless Headphones"}},
        {"__typename": "UserActivity", **activity},
    ]
    gone = global_id(commerce.types["OrderItem"], ("ORD001", "none"))
    assert (await shop.ask(document, ids=[gone, gone]))["nodes"] == [None, None]
    shop.forget()
    assert await shop.ask(
        "query ($id: ID!) { node(id: $id) { ... on OrderItem { order { orderId } } } }", id=item
    )
    assert shop.operations == {"GetItem": 1}


USER = global_id(commerce.types["User"], ("12345",))
A_KEY = "expected a key, and this is the `id` of the User with the key '12345'"


async def test_a_key_where_an_id_is_due(shop: World) -> None:
    told = "id: '12345' is not a global id. Pass the value of an `id` field, or look the node up by its key."
    assert await shop.errors(NODE, id="12345") == [("BAD_USER_INPUT", told)]


@in_one_world(
    ("document", "where"),
    [
        ("query ($id: ID!) { user(userId: $id) { name } }", "userId"),
        ("query ($id: ID!) { products(first: 1, where: {sellerId: {eq: $id}}) { totalCount } }", "where.sellerId.eq"),
        ("query ($id: ID!) { products(first: 1, where: {sellerId: {in: [$id]}}) { totalCount } }", "where.sellerId.in"),
        ('query ($id: ID!) { product(productId: "ABC123") { orders(orderId: {eq: $id}) { totalCount } } }', "orderId"),
        ('mutation ($id: ID!) { updateUser(input: {userId: $id, name: "x"}) { user { name } } }', "userId"),
        ("mutation ($id: ID!) { deleteUser(input: {userId: $id}) { deletedId } }", "userId"),
        (
            """mutation ($id: ID!) { createUser(input: {userId: $id, name: "x", email: "x", userType: CUSTOMER,
               createdAt: "2024-01-01T00:00:00Z"}) { user { name } } }""",
            "userId",
        ),
        (
            """mutation ($id: ID!) { createOrder(input: {orderId: "o", customerId: $id, total: "1", status: PENDING,
               orderDate: "2024-01-01T00:00:00Z"}) { order { total } } }""",
            "userId",
        ),
    ],
)  # fmt: skip
async def test_an_id_where_a_key_is_due(shop: World, document: str, where: str) -> None:
    shop.forget()
    assert await shop.errors(document, id=USER) == [("BAD_USER_INPUT", f"{where}: {A_KEY}")]
    assert shop.operations in ({}, {"GetItem": 1})  # the product whose list it is


@node("NOTE#{note_id}", Index("by-about", "aboutKey", "note_id")("ABOUT#{about}", lists="notes_about"))
class Note:
    note_id: ID
    about: ID
    """The `id` of anything."""

    marks: Many[Mark]


@record("{note}", "MARK#{of}")
class Mark:
    note: Note
    of: ID
    """The `id` of anything."""


noted = Graph(
    Table("Noted", partition_key="pk", sort_key="sk", indexes=[Index("by-about", "aboutKey", "note_id")]),
    *(Note, Mark),
    type_attribute="type",
)


async def test_fields_that_hold_ids(make_store: MakeStore) -> None:
    notes = world(noted, await make_store(noted.table))
    about = global_id(noted.types["Note"], ("n0",))
    write = """mutation ($about: ID!) {
      createNote(input: {noteId: "n1", about: $about, marks: [{of: $about}]}) { note { about } } }"""
    assert await notes.ask(write, about=about) == {"createNote": {"note": {"about": about}}}
    document = """query ($about: ID!) { notesAbout(about: $about, where: {about: {eq: $about}}) {
      nodes { noteId marks(of: {eq: $about}, where: {of: {in: [$about]}}) { nodes { of } } } } }"""
    found = await notes.ask(document, about=about)
    assert found["notesAbout"]["nodes"] == [{"noteId": "n1", "marks": {"nodes": [{"of": about}]}}]


async def test_to_takes_either(shop: World) -> None:
    document = 'query ($to: [ID!]) { order(orderId: "ORD001") { items(to: $to) { nodes { productId } } } }'
    product = global_id(commerce.types["Product"], ("ABC123",))
    for to in ([product], ["ABC123"], ["ABC123", product], ["ABC123", "none"]):
        found = await shop.ask(document, to=to)
        assert found["order"]["items"]["nodes"] == [{"productId": "ABC123"}]
    assert await shop.errors(document, to=[USER]) == [
        ("BAD_USER_INPUT", "to: expected ids of Product, and this is one of User")
    ]
    assert await shop.codes(document, to=["x" * 3000]) == ["BAD_USER_INPUT"]


async def test_as_many_ids_as_are_allowed(shop: World) -> None:
    document = "query ($ids: [ID!]!) { nodes(ids: $ids) { id } }"
    [user] = [made(["User", "12345"])]
    shop.forget()
    assert await shop.errors(document, ids=[user] * 101) == [("BAD_USER_INPUT", "ids: at most 100 ids")]
    assert shop.operations == {}
    assert await shop.codes(document, ids=[user] * 100) == []
    small = shop.served(max_ids=1)
    assert await small.codes(document, ids=[user]) == []
    assert await small.errors(document, ids=[user] * 2) == [("BAD_USER_INPUT", "ids: at most 1 ids")]


@in_one_world("user", ["", "12345#SHARD3", "x" * 2044, "é" * 1022, "\ud800"])
async def test_keys_that_cannot_be(shop: World, user: str) -> None:
    document = "query ($user: ID!) { user(userId: $user) { name } }"
    assert await shop.codes(document, user=user) == ["BAD_USER_INPUT"]
    assert shop.operations == {}


@in_one_world("user", ["x" * 1019, "a#b", "USER#x", "#", " ", "日本", "a\0b", '"', "{user_id}"])
async def test_keys_that_can_be(shop: World, user: str) -> None:
    key = f"USER#{user}"
    await shop.put({"PK": key, "SK": key, "Type": "User", "userId": user, "name": "found"})
    document = "query ($user: ID!) { user(userId: $user) { id userId name } }"
    found = (await shop.ask(document, user=user))["user"]
    assert (found["userId"], found["name"]) == (user, "found")
    assert (await shop.ask(NODE, id=found["id"]))["node"]["name"] == "found"
