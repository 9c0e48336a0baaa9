"""Errors as a client sees them: each with its code, none with what is internal."""

from __future__ import annotations

import logging
from collections.abc import Callable
from decimal import Decimal
from typing import Any

import pytest

from keygraph import ID, Graph, Index, Table, field, node
from keygraph.dynamo.store import BatchGet, Query, Request
from keygraph.errors import StoreError, TableMissing, Throttled, TimedOut, Unavailable
from keygraph_resolvers import OperationRequest
from tests.conftest import MakeStore, in_one_world
from tests.resolvers.worlds import World, world
from tests.tracing import HeldStore


def failing(shop: World, fails: Callable[[Request[Any]], Exception | None]) -> World:
    async def before(request: Request[Any]) -> None:
        if (error := fails(request)) is not None:
            raise error

    return world(shop.graph, HeldStore(shop.tracer.store, before))


@in_one_world("document", ["", "{", "{ user(userId: ) }", '{ user(userId: "1") { name }', "\0"])
async def test_documents_that_cannot_be_read(shop: World, document: str) -> None:
    answer = await shop.service.execute(document)
    assert [error["extensions"]["code"] for error in answer["errors"]] == ["GRAPHQL_PARSE_FAILED"]
    assert "data" not in answer


@in_one_world(
    ("document", "message"),
    [
        ("{ usr { name } }", "Cannot query field 'usr' on type 'Query'. Did you mean 'user' or 'users'?"),
        (
            "{ user { name } }",
            "Argument 'Query.user(userId:)' of type 'ID!' is required, but it was not provided.",
        ),
        ('{ user(userId: "1") { ...F } }', "Unknown fragment 'F'."),
        ('{ user(userId: "1") }', "Field 'user' of type 'User' must have a selection of subfields."),
    ],
)
async def test_documents_that_are_not_valid(shop: World, document: str, message: str) -> None:
    answer = await shop.service.execute(document)
    [error] = answer["errors"]
    assert error["extensions"]["code"] == "GRAPHQL_VALIDATION_FAILED"
    assert error["message"].startswith(message.partition(" of type")[0].partition(" Did you")[0])
    assert error["locations"][0]["line"] == 1
    assert "data" not in answer


async def test_all_mistakes_of_a_document_at_once(shop: World) -> None:
    assert await shop.codes("{ a b c }") == ["GRAPHQL_VALIDATION_FAILED"] * 3


@in_one_world(
    "variables", [{}, {"user": None}, {"user": ["x"]}, {"user": {"a": 1}}, {"user": 1.5}, {"user": True}]
)
async def test_variables_that_do_not_fit(shop: World, variables: dict[str, Any]) -> None:
    answer = await shop.service.execute("query ($user: ID!) { user(userId: $user) { name } }", variables)
    assert [error["extensions"]["code"] for error in answer["errors"]] == ["BAD_USER_INPUT"]
    assert "data" not in answer
    assert shop.operations == {}


@in_one_world(
    ("document", "variables", "begins", "ends"),
    [
        (
            "query ($n: Int) { users(first: $n) { nodes { name } } }",
            {"n": "x" * 500_000},
            "Variable '$n'",
            "'",
        ),
        ("{ users(first: LONG) { nodes { name } } }", {}, "Int cannot represent", "LONG"),
        ("{ LONG }", {}, "Cannot query field 'LONG", "on type 'Query'."),
        ("{ user(userId: 1) { ...LONG } }", {}, "Unknown fragment", "'."),
    ],
)
async def test_a_message_cuts_what_it_quotes(
    shop: World, document: str, variables: dict[str, Any], begins: str, ends: str
) -> None:
    answer = await shop.service.execute(document.replace("LONG", "LONG" * 20_000), variables)
    [error] = answer["errors"]
    assert len(str(answer)) < 1_000
    assert error["message"].startswith(begins)
    assert ends in error["message"][-len(ends) - 200 :]


async def test_operations_by_name(shop: World) -> None:
    document = 'query A { user(userId: "12345") { name } } query B { users { totalCount } }'
    answer = await shop.service.execute(OperationRequest(document, None, "A"))
    assert answer == {"data": {"user": {"name": "John Doe"}}}
    for name in ("C", None, ""):
        refused = await shop.service.execute(OperationRequest(document, None, name))
        assert [error["extensions"]["code"] for error in refused["errors"]] == ["BAD_USER_INPUT"]
        assert "data" not in refused
    for document in ("mutation { x }", "subscription { x }", "fragment F on User { name }"):
        [code] = await shop.codes(document)
        assert code in ("BAD_USER_INPUT", "GRAPHQL_VALIDATION_FAILED")
    [[code, told]] = await shop.errors("subscription { userChanged { name } }")
    assert (code, told) == (
        "GRAPHQL_VALIDATION_FAILED",
        "Live queries are off here, so there are no subscriptions: query again for what may have changed.",
    )


async def test_bad_input_where_it_was_given(shop: World) -> None:
    document = """{
      a: user(userId: "12345") { name }
      b: user(userId: "") { name }
      c: user(userId: "12345") { orders(first: -1) { totalCount } } }"""
    answer = await shop.service.execute(document)
    assert answer["data"] == {"a": {"name": "John Doe"}, "b": None, "c": {"orders": None}}
    errors = {tuple(error["path"]): error for error in answer["errors"]}
    assert set(errors) == {("b",), ("c", "orders")}
    assert errors["b",]["extensions"] == {"code": "BAD_USER_INPUT"}
    assert errors["c", "orders"]["message"] == "first must be between 0 and 100"
    assert errors["c", "orders"]["locations"] == [{"line": 4, "column": 34}]


def user(user_id: str, **fields: Any) -> dict[str, Any]:
    key = f"USER#{user_id}"
    whole = {"name": "N", "email": "e", "userType": "seller", "CreatedAt": "2024-01-01T00:00:00Z"}
    return {"PK": key, "SK": key, "Type": "User", "userId": user_id, **whole, **fields}


SECRET_VALUE = "s3cret-value"


@pytest.mark.parametrize(
    ("field_", "attribute", "value"),
    [
        ("userType", "userType", SECRET_VALUE),
        ("createdAt", "CreatedAt", SECRET_VALUE),
        ("name", "name", Decimal(5)),
        ("name", "name", frozenset({SECRET_VALUE})),
        ("email", "email", [SECRET_VALUE]),
        ("createdAt", "CreatedAt", "2024-02-30T00:00:00Z"),
        ("updatedAt", "UpdatedAt", SECRET_VALUE),
    ],
)
async def test_corrupt_items(shop: World, field_: str, attribute: str, value: Any) -> None:
    await shop.put(user("odd", **{attribute: value}))
    document = '{ user(userId: "odd") { userId FIELD } }'
    answer = await shop.service.execute(document.replace("FIELD", field_))
    [error] = answer["errors"]
    assert error["extensions"] == {"code": "CORRUPT_ITEM"}
    assert error["path"] == ["user", field_]
    assert error["message"].startswith("User.")
    name = {"userType": "user_type", "createdAt": "created_at", "updatedAt": "updated_at"}.get(field_, field_)
    assert f"User.{name}" in error["message"]
    assert SECRET_VALUE not in str(answer)
    assert answer["data"] == {"user": {"userId": "odd", field_: None} if field_ == "updatedAt" else None}
    assert await shop.ask('{ user(userId: "odd") { userId } }') == {"user": {"userId": "odd"}}


async def test_a_corrupt_edge_harms_no_other(shop: World) -> None:
    line = {"PK": "ORDER#ORD001", "Type": "OrderItem", "orderId": "ORD001", "totalPrice": Decimal(1)}
    await shop.put(
        {**line, "SK": "PRODUCT#ZZ1", "productId": "ZZ1", "quantity": SECRET_VALUE, "unitPrice": Decimal(1)},
        {**line, "SK": "PRODUCT#ZZ2", "productId": "ZZ2", "quantity": Decimal(1), "unitPrice": Decimal(1)},
    )
    document = '{ order(orderId: "ORD001") { items { totalCount edges { quantity node { productId } } } } }'
    answer = await shop.service.execute(document)
    edges = answer["data"]["order"]["items"]["edges"]
    at = edges.index(None)
    assert edges[at + 1 :] == [{"quantity": 1, "node": {"productId": "ZZ2"}}]
    assert edges.count(None) == 1
    assert answer["data"]["order"]["items"]["totalCount"] == len(edges)
    [error] = answer["errors"]
    assert error["path"] == ["order", "items", "edges", at, "quantity"]
    assert error["message"] == "OrderItem.quantity of an item is not of type int: it is a str"
    assert error["extensions"] == {"code": "CORRUPT_ITEM"}


async def test_an_end_that_is_no_key(shop: World) -> None:
    key = {"PK": "ORDER#odd", "SK": "ORDER#odd", "Type": "Order", "orderId": "odd", "total": Decimal(1)}
    for customer in ("12345#SHARD3", "", "x" * 3000, Decimal(7), [SECRET_VALUE]):
        await shop.put({**key, "customerId": customer})
        answer = await shop.service.execute('{ order(orderId: "odd") { total customer { name } } }')
        codes = [error["extensions"]["code"] for error in answer.get("errors", [])]
        assert answer["data"]["order"] == {"total": "1", "customer": None}
        assert codes == ([] if customer == Decimal(7) or customer == "" else ["CORRUPT_ITEM"])
        assert SECRET_VALUE not in str(answer)


ERRORS: list[tuple[StoreError, str]] = [
    (Throttled("the table is too busy"), "THROTTLED"),
    (TimedOut("no answer in time"), "TIMEOUT"),
    (Unavailable("no connection"), "UNAVAILABLE"),
    (TableMissing("there is no table"), "UNAVAILABLE"),
]


@pytest.mark.parametrize(("error", "code"), ERRORS)
async def test_a_store_that_fails(shop: World, error: StoreError, code: str) -> None:
    broken = failing(shop, lambda request: error)
    answer = await broken.service.execute('{ user(userId: "12345") { name } users { totalCount } }')
    assert {found["extensions"]["code"] for found in answer["errors"]} == {code}
    assert {found["message"] for found in answer["errors"]} == {str(error)}
    assert answer["data"] == {"user": None, "users": {"totalCount": None}}


@pytest.mark.parametrize(("error", "code"), ERRORS)
async def test_a_store_that_fails_in_part(shop: World, error: StoreError, code: str) -> None:
    broken = failing(shop, lambda request: error if isinstance(request, Query) else None)
    document = (
        '{ user(userId: "12345") { name } product(productId: "ABC123") { prices { nodes { price } } } }'
    )
    answer = await broken.service.execute(document)
    assert answer["data"] == {"user": {"name": "John Doe"}, "product": {"prices": None}}
    assert [found["extensions"] for found in answer["errors"]] == [{"code": code}]
    assert answer["errors"][0]["path"] == ["product", "prices", "nodes"]


@pytest.mark.parametrize("kind", [Query, BatchGet])
async def test_what_nobody_expected(
    shop: World, kind: type[Request[Any]], caplog: pytest.LogCaptureFixture
) -> None:
    broken = failing(shop, lambda request: KeyError(SECRET_VALUE) if isinstance(request, kind) else None)
    with caplog.at_level(logging.ERROR, "keygraph"):
        answer = await broken.service.execute(
            '{ user(userId: "12345") { name orders { nodes { orderId } } } }'
        )
    assert {error["extensions"]["code"] for error in answer["errors"]} == {"INTERNAL"}
    assert SECRET_VALUE not in str(answer)
    assert "KeyError" not in str(answer)
    for error in answer["errors"]:
        error_id = error["extensions"]["id"]
        assert error_id in error["message"]
        [record] = [record for record in caplog.records if error_id in record.getMessage()]
        assert record.exc_info is not None
        assert isinstance(record.exc_info[1], KeyError)
        assert record.exc_info[1].args == (SECRET_VALUE,)


@node("THING#{thing_id}")
class Thing:
    thing_id: ID
    name: str | None

    @field(needs=("thing_id",))
    def broken(self) -> str | None:
        raise RuntimeError(f"{SECRET_VALUE} of {self.thing_id}")

    @field(needs=("name",))
    async def later(self) -> str:
        raise LookupError(SECRET_VALUE)


async def test_a_method_that_fails(make_store: MakeStore, caplog: pytest.LogCaptureFixture) -> None:
    things = Graph(Table("Things", partition_key="PK", sort_key="SK"), Thing)
    made = world(things, await make_store(things.table))
    await made.put({"PK": "THING#1", "SK": "THING#1", "thing_id": "1", "name": "N"})
    answer = await made.service.execute('{ thing(thingId: "1") { name broken } }')
    assert answer["data"] == {"thing": {"name": "N", "broken": None}}
    assert answer["errors"][0]["extensions"]["code"] == "INTERNAL"
    answer = await made.service.execute('{ thing(thingId: "1") { name later } }')
    assert answer["data"] == {"thing": None}
    assert answer["errors"][0]["extensions"]["code"] == "INTERNAL"
    assert SECRET_VALUE not in str(answer)
    assert SECRET_VALUE in caplog.text


async def test_a_message_calls_a_key_field_as_the_schema_does(shop: World) -> None:
    document = '{ user(userId: "") { name } }'
    answer = await shop.service.execute(document)
    assert [error["message"] for error in answer["errors"]] == [
        "userId of User is empty, and part of its key"
    ]
    assert [step.problem for step in shop.service.explain(document).steps] == [
        "userId of User is empty, and part of its key"
    ]


by_kind = Index("by-kind", "GPK", "GSK", projection="KEYS_ONLY")


@node("CARD#{card_id}", by_kind("KIND#{kind}", "CARD#{card_id}"))
class Card:
    card_id: ID
    kind: str
    label: str


cards = Graph(Table("Cards", partition_key="PK", sort_key="SK", indexes=[by_kind]), Card)


async def test_nodes_behind_an_index_that_cannot_be_read(make_store: MakeStore) -> None:
    made = world(cards, await make_store(cards.table))
    for number in "12":
        key = {"PK": f"CARD#{number}", "SK": f"CARD#{number}", "GPK": "KIND#a", "GSK": f"CARD#{number}"}
        await made.put({**key, "Type": "Card", "card_id": number, "kind": "a", "label": f"card {number}"})
    down = failing(made, lambda asked: Unavailable("down") if isinstance(asked, BatchGet) else None)
    for selected in ("nodes { label }", "edges { node { label } }"):
        document = f'{{ cards(kind: "a") {{ {selected} }} }}'
        assert "errors" not in await made.service.execute(document)
        answer = await down.service.execute(document)
        assert {error["extensions"]["code"] for error in answer["errors"]} == {"UNAVAILABLE"}, answer


@in_one_world(
    ("document", "variables", "paths"),
    [
        ("query ($a: ID!) { node(id: $a) { id } }", {"a": {}}, [["id"]]),
        ("query ($a: ID!) { node(id: $a) { id } }", {}, [["id"]]),
        ("query ($a: [ID!]!) { nodes(ids: $a) { id } }", {"a": ["1", None, {}]}, [["ids", 1], ["ids", 2]]),
        ('query ($a: ID!) { nodes(ids: ["1", $a]) { id } }', {"a": []}, [["ids", 1]]),
        (
            "query ($a: UserType!) { ...F } fragment F on Query { users(where: {userType: {eq: $a}}) { totalCount } }",
            {"a": []},
            [["where", "userType", "eq"]],
        ),
        (
            "mutation ($a: CreateOrderInput!) { createOrder(input: $a) { order { orderId } } }",
            {"a": {"customerId": "1", "total": {}, "items": [{"quantity": "x", "unitPrice": "1"}], "²": 1, "9" * 5000: 1}},
            [["input", "total"], ["input", "items", 0, "quantity"], ["input", "items", 0, "productId"], ["input", "²"]],
        ),
    ],
)  # fmt: skip
async def test_values_of_variables_that_do_not_fit_have_their_place(
    shop: World, document: str, variables: dict[str, Any], paths: list[Any]
) -> None:
    answer = await shop.service.execute(document, variables)
    found = [error["extensions"] for error in answer["errors"]]
    assert {each["code"] for each in found} == {"BAD_USER_INPUT"}
    assert [path for path in paths if path not in [each["path"] for each in found]] == []
