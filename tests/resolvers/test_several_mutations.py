"""Mutations of several records: all or nothing, or each on its own; and several mutations in one transaction."""

from __future__ import annotations

from typing import Any

import pytest

from keygraph import ID, Graph, Index, Many, Table, edge, new_id, node
from keygraph.dynamo.store import Scan
from keygraph.writing.sending.idempotency import is_note
from keygraph_resolvers import OperationRequest, Service
from keygraph_resolvers.schema import mutations
from tests.conftest import MakeStore, on_exact_engines
from tests.resolvers.worlds import World, within_bound, world

by_customer = Index("by-customer", "gp", "gs")


@node("CUSTOMER#{customer_id}")
class Customer:
    customer_id: ID = new_id()
    name: str

    orders: Many[Order]


@node("ORDER#{order_id}", by_customer("{customer}", "ORDER#{order_id}"))
class Order:
    order_id: ID = new_id()
    customer: Customer
    total: int = 0

    items: Many[OrderItem]


@node("PRODUCT#{sku}")
class Product:
    sku: ID
    stock: int


@edge("{order}", "{product}")
class OrderItem:
    order: Order
    product: Product
    quantity: int


graph = Graph(
    Table("Shop", partition_key="pk", sort_key="sk", indexes=[by_customer]),
    Customer,
    Order,
    Product,
    OrderItem,
    type_attribute="type",
    writes=True,
).check()


@pytest.fixture
async def shop(make_store: MakeStore) -> World:
    shop = world(graph, await make_store(graph.table))
    await shop.ask(
        """mutation { write(input: {actions: [
          {createCustomer: {customerId: "c", name: "Ann"}}
          {createOrder: {orderId: "o", customerId: "c"}}
          {createProduct: {sku: "a", stock: 5}}
          {createProduct: {sku: "b", stock: 5}}
        ]}) { results { __typename } } }"""
    )
    shop.forget()
    return shop


async def answer(shop: World, document: str, key: str | None = None, **variables: Any) -> Any:
    return await Service(shop.service.schema, shop.tracer, secret=b"secret" * 8).execute(
        OperationRequest(document, variables, idempotency_key=key, with_cost=True)
    )


def told(answered: Any) -> list[Any]:
    """Each error: where it is in the answer, its code, its message and its place in the input."""
    return [
        (each["path"], each["extensions"]["code"], each["message"], each["extensions"].get("path"))
        for each in answered["errors"]
    ]


async def count(shop: World) -> int:
    found = await shop.tracer.store.send(Scan(consistent=True))
    return sum(not is_note(item) for item in found.items)


ITEMS = """mutation ($inputs: [PutOrderItemInput!]!, $atomic: Boolean! = true, $key: String) {
  putOrderItems(input: {inputs: $inputs, atomic: $atomic, idempotencyKey: $key}) {
    results { clientMutationId orderItem { quantity product { stock } } } } }"""


def item(sku: str, quantity: int, **more: Any) -> dict[str, Any]:
    return {"orderId": "o", "productSku": sku, "quantity": quantity, **more}


async def test_several_records_are_one_transaction(shop: World) -> None:
    given = [item("a", 1, clientMutationId="x"), item("b", 2)]
    data = await shop.ask(ITEMS, inputs=given)
    assert data["putOrderItems"]["results"] == [
        {"clientMutationId": "x", "orderItem": {"quantity": 1, "product": {"stock": 5}}},
        {"clientMutationId": None, "orderItem": {"quantity": 2, "product": {"stock": 5}}},
    ]
    assert shop.operations == {"TransactWriteItems": 1, "BatchGetItem": 1}
    found = await answer(shop, ITEMS, inputs=[item("a", 3), item("nothing", 1), item("neither", 1)])
    assert found["data"] == {"putOrderItems": None}
    missing = "productSku: there is no Product with this key."
    assert told(found) == [
        (["putOrderItems"], "NOT_FOUND", missing, ["input", "inputs", 1, "productSku"]),
        (["putOrderItems"], "NOT_FOUND", missing, ["input", "inputs", 2, "productSku"]),
    ]
    order = await shop.ask('{ order(orderId: "o") { items { nodes { sku } edges { quantity } } } }')
    assert order["order"]["items"]["edges"] == [{"quantity": 1}, {"quantity": 2}]


# --- Several records of one type ------------------------------------------------------------------------


@on_exact_engines  # moto undoes what others write at the same time when a transaction fails
async def test_each_on_its_own_tells_what_became_of_it(shop: World) -> None:
    given = [item("a", 1), item("nothing", 1), item("b", 2), item("", 1)]
    found = await answer(shop, ITEMS, inputs=given, atomic=False)
    results = found["data"]["putOrderItems"]["results"]
    assert [each and each["orderItem"]["quantity"] for each in results] == [1, None, 2, None]
    at = ["putOrderItems", "results"]
    missing = "productSku: there is no Product with this key."
    assert told(found) == [
        ([*at, 1], "NOT_FOUND", missing, ["input", "inputs", 1, "productSku"]),
        (
            [*at, 3],
            "BAD_USER_INPUT",
            "sku of Product is empty, and part of its key",
            ["input", "inputs", 3, "productSku"],
        ),
    ]
    assert await count(shop) == 6


@on_exact_engines  # moto fails now and then at writes at the same time, and what is sent again counts
async def test_many_on_their_own_are_sent_a_few_at_once(shop: World) -> None:
    given = [{"sku": f"p{number}", "stock": number} for number in range(20)]
    document = """mutation ($inputs: [CreateProductInput!]!) {
      createProducts(input: {inputs: $inputs, atomic: false}) { results { product { stock } } } }"""
    found = await answer(shop, document, inputs=given)
    assert [each["product"]["stock"] for each in found["data"]["createProducts"]["results"]] == [*range(20)]
    cost = found["extensions"]["cost"]
    assert [cost[name]["requests"] for name in ("bound", "actual")] == [20, 20]
    assert [cost[name]["roundTrips"] for name in ("bound", "actual")] == [3, 3]


@pytest.mark.parametrize("atomic", [True, False])
async def test_the_bound_covers_what_several_take(shop: World, atomic: bool) -> None:
    for number in (1, 2):
        given = [item("a", 1), item("b", 1)][:number]
        for key in (None, f"k{number}", f"k{number}"):
            found = await answer(shop, ITEMS, inputs=given, atomic=atomic, key=key)
            within_bound(found)


async def test_nothing_and_too_much(shop: World) -> None:
    for atomic in (True, False):
        assert await shop.ask(ITEMS, inputs=[], atomic=atomic) == {"putOrderItems": {"results": []}}
    assert shop.operations == {}
    found = await answer(shop, ITEMS, inputs=[item("a", 1)] * 1001, atomic=False)
    [error] = found["errors"]
    assert error["message"] == "This mutation has 1,001 inputs, and the limit is 1,000."
    assert error["extensions"] == {
        "code": "BAD_USER_INPUT",
        "path": ["input", "inputs"],
        "count": 1001,
        "limit": 1000,
    }
    document = """mutation ($inputs: [CreateProductInput!]!) { createProducts(input: {inputs: $inputs}) { results { __typename } } }"""
    found = await answer(shop, document, inputs=[{"sku": str(n), "stock": 1} for n in range(101)])
    [error] = found["errors"]
    assert error["extensions"] == {
        "code": "TRANSACTION_TOO_LARGE",
        "path": ["input"],
        "count": 101,
        "limit": 100,
    }


async def test_too_much_below_a_node_is_refused_before_it_is_interpreted(
    shop: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delattr(mutations, "_Meaning")  # 1,000 records took it 0.2 seconds, in one turn
    items = [{"productSku": "a", "quantity": number} for number in range(1_000)]
    document = 'mutation ($orders: [CustomerOrdersInput!]) { createCustomer(input: {name: "c", orders: $orders}) { clientMutationId } }'
    found = await answer(shop, document, orders=[{"items": items}, {}])
    [error] = found["errors"]
    assert error["extensions"] == {
        "code": "TRANSACTION_TOO_LARGE",
        "path": ["input"],
        "count": 1003,
        "limit": 100,
    }


@on_exact_engines
async def test_retries_of_several(shop: World) -> None:
    add = """mutation ($inputs: [UpdateProductInput!]!, $atomic: Boolean! = true, $key: String) {
      updateProducts(input: {inputs: $inputs, atomic: $atomic, idempotencyKey: $key}) { results { product { stock } } } }"""

    def stocks(found: Any) -> list[Any]:
        return [each and each["product"]["stock"] for each in found["data"]["updateProducts"]["results"]]

    given = [{"sku": sku, "add": {"stock": 1}} for sku in ("a", "b")]
    for _ in range(2):
        assert stocks(await answer(shop, add, inputs=given, key="k")) == [6, 6]
    given.append({"sku": "c", "add": {"stock": 1}})
    for _ in range(2):
        found = await answer(shop, add, "header", inputs=given, atomic=False)
        assert stocks(found) == [7, 7, None]
    await shop.ask('mutation { createProduct(input: {sku: "c", stock: 0}) { clientMutationId } }')
    assert stocks(await answer(shop, add, "header", inputs=given, atomic=False)) == [7, 7, 1]
    for each in given:
        each["idempotencyKey"] = each["sku"]
    for _ in range(2):
        assert stocks(await answer(shop, add, inputs=given, atomic=False)) == [8, 8, 2]
    problem = "All of this is one write: give the idempotency key in the mutation's own input."
    assert told(await answer(shop, add, inputs=given)) == [
        (["updateProducts"], "BAD_USER_INPUT", problem, ["input", "inputs", n, "idempotencyKey"])
        for n in range(3)
    ]


# --- Several mutations in one transaction ---------------------------------------------------------------

PLACE = """mutation ($key: String, $stock: Int! = -2) { write(input: {idempotencyKey: $key, actions: [
  {createCustomer: {customerId: "_:me", name: "Bob"}}
  {createOrder: {orderId: "_:mine", customerId: "_:me", items: [{productSku: "b", quantity: 1}]}}
  {putOrderItem: {orderId: "_:mine", productSku: "a", quantity: 2}}
  {updateProduct: {sku: "a", add: {stock: $stock}}}
  {deleteOrder: {orderId: "o"}}
]}) { results {
  createCustomer { customer { customerId name } }
  createOrder { order { orderId customer { customerId name } items { edges { quantity } } } }
  putOrderItem { orderItem { quantity order { orderId } } }
  updateProduct { product { stock } }
  deleteOrder { deletedId }
} } }"""


async def test_several_mutations_in_one_transaction(shop: World) -> None:
    data = await shop.ask(PLACE)
    results = [{name: each for name, each in result.items() if each} for result in data["write"]["results"]]
    bob = results[0]["createCustomer"]["customer"]
    order = results[1]["createOrder"]["order"]
    assert bob["name"] == "Bob"
    assert not bob["customerId"].startswith("_:")
    assert order["customer"] == bob
    assert order["items"]["edges"] == [{"quantity": 2}, {"quantity": 1}]
    assert results[2:4] == [
        {"putOrderItem": {"orderItem": {"quantity": 2, "order": {"orderId": order["orderId"]}}}},
        {"updateProduct": {"product": {"stock": 3}}},
    ]
    assert [*results[4]] == ["deleteOrder"]
    orders = await shop.ask('{ customer(customerId: "c") { orders { nodes { orderId } } } }')
    assert orders["customer"]["orders"]["nodes"] == []


async def test_one_that_fails_takes_all_others_with_it(shop: World) -> None:
    before = await count(shop)
    document = """mutation { write(input: {actions: [
      {createCustomer: {customerId: "c", name: "Again"}}
      {createProduct: {sku: "new", stock: 1}}
      {updateProduct: {sku: "none", stock: 1}}
    ]}) { results { createProduct { product { stock } } } } }"""
    found = await answer(shop, document)
    assert found["data"] == {"write": None}
    assert told(found) == [
        (
            ["write"],
            "ALREADY_EXISTS",
            "There is already a Customer with this key.",
            ["input", "actions", 0, "createCustomer"],
        ),
        (
            ["write"],
            "NOT_FOUND",
            "There is no Product with this key.",
            ["input", "actions", 2, "updateProduct"],
        ),
    ]
    assert await count(shop) == before


async def test_names_of_nothing(shop: World) -> None:
    document = """mutation { write(input: {actions: [
      {createProduct: {sku: "_:p", stock: 1}}
      {createOrder: {customerId: "_:who"}}
      {updateOrder: {orderId: "_:which", total: 1}}
    ]}) { results { __typename } } }"""
    assert told(await answer(shop, document)) == [
        (
            ["write"],
            "BAD_USER_INPUT",
            "_:who names no Customer that this mutation creates.",
            ["input", "actions", 1, "createOrder", "customerId"],
        ),
        (
            ["write"],
            "BAD_USER_INPUT",
            "_:which names no Order that this mutation creates.",
            ["input", "actions", 2, "updateOrder", "orderId"],
        ),
    ]


@pytest.mark.parametrize(
    "action",
    ["{}", '{createProduct: {sku: "x", stock: 1}, deleteProduct: {sku: "a"}}', "{deleteProduct: null}"],
)
async def test_an_action_is_exactly_one(shop: World, action: str) -> None:
    document = f"mutation {{ write(input: {{actions: [{action}]}}) {{ results {{ __typename }} }} }}"
    assert set(await shop.codes(document)) == {"GRAPHQL_VALIDATION_FAILED"}


async def test_an_action_in_a_variable_is_exactly_one(shop: World) -> None:
    document = "mutation ($actions: [WriteAction!]!) { write(input: {actions: $actions}) { results { __typename } } }"
    both = {"createProduct": {"sku": "x", "stock": 1}, "deleteProduct": {"sku": "a"}}
    for action in ({}, both):
        assert await shop.codes(document, actions=[action]) == ["BAD_USER_INPUT"]
    one = {"createProduct": {"sku": "x", "stock": 1}}
    assert await shop.ask(document, actions=[one]) == {"write": {"results": [{"__typename": "WriteResult"}]}}


async def test_retries_of_several_mutations(shop: World) -> None:
    first = await answer(shop, PLACE, key="k")
    assert (await answer(shop, PLACE, key="k"))["data"] == first["data"]
    assert await count(shop) == 7
    document = """mutation ($mine: String, $stock: Int!) { write(input: {idempotencyKey: $mine, actions: [
      {updateProduct: {sku: "a", add: {stock: $stock}}}]}) { results { updateProduct { product { stock } } } } }"""
    for _ in range(2):
        data = await shop.ask(document, mine="m", stock=1)
        assert data["write"]["results"] == [{"updateProduct": {"product": {"stock": 4}}}]
    [(path, code, _, place)] = told(await answer(shop, document, mine="m", stock=2))
    assert (path, code, place) == (["write"], "CONFLICT", ["input", "idempotencyKey"])
