"""Mutations of the shop explained: what is shown is what is then sent."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from keygraph.dynamo.actions import Action, CheckItem, PutItem, key_of
from keygraph.dynamo.store import BatchGet, Query, Transaction
from keygraph.names import public_path
from keygraph.writing.sending.describe import DescribedAction
from keygraph_resolvers import OperationRequest
from keygraph_resolvers.plan.explained import Explained
from tests.documents.served import Served

ORDER = """mutation { createOrder(input: {orderId: "N1", customerId: "12345", total: "20", status: PENDING,
  orderDate: "2024-05-01T00:00:00Z", items: [
    {productId: "ABC123", quantity: 1, unitPrice: "15", totalPrice: "15"},
    {productId: "DEF456", quantity: 1, unitPrice: "5", totalPrice: "5"}]}) {
  order { total items { nodes { name } } customer { name } } } }"""
ACTIVITY = """mutation { putUserActivity(input: {userId: "12345", timestamp: "7", action: "view", productId: "ABC123",
  createdAt: "2024-05-01T00:00:00Z"}) { userActivity { action } } }"""
NEW = 'mutation { upsertCategory(input: {categoryId: "new", name: "N", description: "D"}) { category { name } } }'
CATEGORY = (
    'mutation { upsertCategory(input: {categoryId: "headphones", name: "N", description: "D"}) { category { name parents { '
    "nodes { name } } } } }"
)
SHIPPED = 'mutation { updateOrder(input: {orderId: "ORD001", status: DELIVERED}) { order { status } } }'
DATED = 'mutation { updateOrder(input: {orderId: "ORD001", orderDate: "2024-05-01T00:00:00Z"}) { order { total } } }'
DELETED = 'mutation { deleteOrderItem(input: {orderId: "ORD001", productId: "ABC123"}) { order { total } } }'


def _write(served: Served, document: str) -> tuple[Explained | None, Explained, bool]:
    """What is read first, the write, and whether copies of what it changes are searched for."""
    *first, write = served.service.explain(document).steps
    kinds = [step.kind for step in first]
    is_copied = kinds == ["read first", "mark", "find what names"]
    assert write.kind == "write"
    assert is_copied or kinds in ([], ["read first"])
    return (first[0] if first else None), write, is_copied


def _shown(served: Served, action: Action) -> tuple[str, str]:
    partition, sort = key_of(action, served.graph.table)
    name = "ConditionCheck" if isinstance(action, CheckItem) else type(action).__name__.removesuffix("Item")
    return name, f"PK = {partition} AND SK = {sort}"


@pytest.mark.parametrize("document", [ORDER, ACTIVITY, NEW, CATEGORY, SHIPPED, DATED, DELETED])
async def test_what_is_shown_is_sent(shop: Served, document: str) -> None:
    first, write, is_copied = _write(shop, document)
    assert write.problem is None
    shop.tracer.requests.clear()
    answer = await shop.service.execute(OperationRequest(document, with_cost=True))
    assert "errors" not in answer
    sent = list(shop.tracer.requests)
    [transaction] = [request for request in sent if isinstance(request, Transaction)]
    assert (first is not None) == isinstance(sent[0], BatchGet)
    cases = [[(action.operation, action.keys) for action in each.actions] for each in write.transactions]
    actual = [_shown(shop, action) for action in transaction.actions]
    # The copies that are found come after what is shown.
    [described] = [
        each for each, case in zip(write.transactions, cases, strict=True) if actual[: len(case)] == case
    ]
    copies = actual[len(described.actions) :]
    assert copies == (
        [("Update", "PK = CATEGORY#electronics AND SK = CHILD#headphones")] if document == CATEGORY else []
    )
    for action, shown in zip(transaction.actions, described.actions, strict=bool(not copies)):
        assert (action.condition is None) == (shown.condition is None)
        assert (shown.attributes is None) != isinstance(action, PutItem)
        if isinstance(action, PutItem):
            texts = [f"{name} = " for name in action.item if name not in ("PK", "SK")]
            assert all(text in (shown.attributes or "") for text in texts)
    asked = {each["roundTrip"] for each in answer["extensions"]["cost"]["requests"]}
    assert write.where.round_trip == (2 if first else 1) + 3 * is_copied
    # What an upsert creates is not read again.
    assert asked <= {*range(1, write.where.round_trip + 1), *_round_trips(write)}


def _round_trips(step: Explained) -> Iterator[int]:
    """The round trips below a step."""
    for each in step.steps:
        yield each.where.round_trip
        yield from _round_trips(each)


def _failures(action: DescribedAction) -> list[tuple[str, str, list[str | int]]]:
    return [(each.code, each.message, [*public_path(each.path)]) for each in action.failures]


async def test_each_condition_says_what_a_client_is_told(shop: Served) -> None:
    [transaction] = _write(shop, ORDER)[1].transactions
    found = {action.keys.split(" ")[2]: _failures(action) for action in transaction.actions}
    assert [(action.operation, [*public_path(action.path)]) for action in transaction.actions] == [
        ("Put", ["input"]),
        ("ConditionCheck", ["input", "customerId"]),
        ("Put", ["input", "items", 0]),
        ("ConditionCheck", ["input", "items", 0, "productId"]),
        ("Put", ["input", "items", 1]),
        ("ConditionCheck", ["input", "items", 1, "productId"]),
    ]
    assert found["USER#12345"] == [
        ("NOT_FOUND", "customer_id: there is no User with this key.", ["input", "customerId"])
    ]
    assert found["PRODUCT#DEF456"] == [
        (
            "NOT_FOUND",
            "product_id: there is no Product with this key.",
            ["input", "items", 1, "productId"],
        )
    ]
    refused = _write(shop, ORDER.replace('"DEF456"', '""'))[1]
    assert refused.problem == (
        "BAD_USER_INPUT at input.items[1].productId: productId of Product is empty, and part of its key"
    )
    assert refused.transactions == ()


async def test_what_depends_on_what_is_read(shop: Served) -> None:
    first, write, _ = _write(shop, DATED)
    assert first is not None
    assert [request.keys for request in first.requests] == ["PK = ORDER#ORD001 AND SK = ORDER#ORD001"]
    [transaction] = write.transactions
    assert transaction.notes == (
        "GSI1PK and GSI1SK: rendered from the item that is read first.",
        "Also a condition: customerId and orderDate as read. If not, the write is tried again.",
    )
    [absent, present] = _write(shop, NEW)[1].transactions
    assert (absent.case, present.case) == ("if it is not there", "if it is there")
    assert [action.operation for action in (*absent.actions, *present.actions)] == ["Put", "Update"]
    assert (absent.actions[0].failures, present.actions[0].failures) == ((), ())


async def test_a_delete_shows_how_what_names_the_node_is_found(shop: Served) -> None:
    document = 'mutation { deleteCategory(input: {categoryId: "headphones"}) { deletedId } }'
    mark, search, write = shop.service.explain(document).steps
    assert [each.kind for each in (mark, search, write)] == ["mark", "find what names", "write"]
    assert [(request.target, request.keys) for request in (*mark.requests, *search.requests)] == [
        ("UpdateItem", "PK = CATEGORY#headphones AND SK = CATEGORY#headphones"),
        ("Query GSI1", "GSI1PK = CATEGORY#headphones AND begins_with(GSI1SK, PRODUCT#)"),
        ("Query", "PK = CATEGORY#headphones AND begins_with(SK, CHILD#)"),
        ("Query GSI1", "GSI1PK = CATEGORY#headphones AND begins_with(GSI1SK, PARENT#)"),
    ]
    assert write.transactions[0].notes[0] == (
        "If anything is found, the Category stays, and the client gets `CONFLICT`."
    )
    shop.tracer.requests.clear()
    answer = await shop.service.execute(OperationRequest(document, with_cost=True))
    assert answer["errors"][0]["extensions"]["code"] == "CONFLICT"
    queries = [request for request in shop.tracer.requests if isinstance(request, Query)]
    assert len(queries) == len(search.requests)
    cost = answer["extensions"]["cost"]
    assert cost["actual"]["requests"] <= cost["bound"]["requests"]
    assert cost["actual"]["readUnits"] <= cost["bound"]["readUnits"]


MOVED = """mutation { moveOrderItem(input: {orderId: "ORD001", productId: "ABC123", to: {productId: "GHI789"}}) {
  orderItem { quantity } } }"""


async def test_a_move_shows_its_transaction(shop: Served) -> None:
    first, write, _ = _write(shop, MOVED)
    assert first is not None
    [transaction] = write.transactions
    assert transaction.notes[0].startswith("The item is put under its new key if none is there.")
    assert [(action.operation, action.attributes) for action in transaction.actions] == [
        ("Put", "productId = GHI789, GSI1PK = PRODUCT#GHI789, GSI1SK = ORDER#ORD001"),
        ("Delete", None),
        ("ConditionCheck", None),
        ("ConditionCheck", None),
    ]
    shop.tracer.requests.clear()
    assert "errors" not in await shop.service.execute(MOVED)
    [sent] = [request for request in shop.tracer.requests if isinstance(request, Transaction)]
    shown = [(action.operation, action.keys) for action in transaction.actions]
    assert [_shown(shop, action) for action in sent.actions] == shown
