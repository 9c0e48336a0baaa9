"""The mutations that stand beside the commerce example, which its playground offers."""

from __future__ import annotations

from typing import Any

from keygraph_resolvers import OperationRequest
from tests.documents.served import EXAMPLES, Served

DOCUMENT = (EXAMPLES / "commerce.graphql").read_text("utf-8")


def nodes(connection: dict[str, Any], *names: str) -> list[tuple[Any, ...]]:
    """The named fields of a list's nodes."""
    return [tuple(node[name] for name in names) for node in connection["nodes"]]


async def test_an_order_is_placed_paid_and_cancelled(shop: Served) -> None:
    await shop.ask(DOCUMENT, "NewCustomer")
    order = (await shop.ask(DOCUMENT, "PlaceOrder"))["createOrder"]["order"]
    assert (order["status"], order["total"], order["customer"]["name"]) == ("PENDING", "84.93", "Grace Lee")
    assert [(edge["quantity"], edge["node"]["name"]) for edge in order["items"]["edges"]] == [
        (1, "Bluetooth Speaker"),
        (2, "USB-C Cable"),
    ]
    await shop.ask(DOCUMENT, "PayOrder")
    orders = '{ user(userId: "55501") { orders { nodes { orderId status updatedAt } } } }'
    found = (await shop.ask(orders))["user"]["orders"]
    assert nodes(found, "orderId", "status", "updatedAt") == [
        ("ORD100", "PROCESSING", "2024-04-01T09:06:00Z")
    ]
    await shop.ask(DOCUMENT, "CancelOrder")
    found = (await shop.ask(orders))["user"]["orders"]
    assert nodes(found, "status", "updatedAt") == [("CANCELLED", "2024-04-01T10:00:00Z")]
    again = await shop.service.execute(OperationRequest(DOCUMENT, operation_name="NewCustomer"))
    assert [error["extensions"]["code"] for error in again["errors"]] == ["ALREADY_EXISTS"]
