"""The queries that stand beside the commerce example, which its playground offers: each answers on the sample."""

from __future__ import annotations

from typing import Any

from keygraph_resolvers import OperationRequest
from tests.documents.served import EXAMPLES, Served

DOCUMENT = (EXAMPLES / "commerce.graphql").read_text("utf-8")


def nodes(connection: dict[str, Any], *names: str) -> list[tuple[Any, ...]]:
    """The named fields of a list's nodes."""
    return [tuple(node[name] for name in names) for node in connection["nodes"]]


async def test_customer_with_orders(shop: Served) -> None:
    user = (await shop.ask(DOCUMENT, "CustomerWithOrders"))["user"]
    assert (user["name"], user["email"]) == ("John Doe", "john@example.com")
    orders = user["orders"]
    assert orders["totalCount"] == 3
    assert nodes(orders, "orderId", "orderDate", "status", "total") == [
        ("ORD006", "2024-03-20T08:15:00Z", "DELIVERED", "149.94"),
        ("ORD003", "2024-02-14T18:45:00Z", "DELIVERED", "204.97"),
        ("ORD001", "2024-01-20T12:00:00Z", "SHIPPED", "199.99"),
    ]
    headphones = ("ABC123", "Wireless Headphones", "TechStore Inc")
    assert [
        [
            (
                item["quantity"],
                item["unitPrice"],
                product["productId"],
                product["name"],
                product["seller"]["name"],
            )
            for item in order["items"]["edges"]
            for product in [item["node"]]
        ]
        for order in orders["nodes"]
    ] == [
        [
            (1, "89.99", "DEF456", "Studio Headphones", "TechStore Inc"),
            (1, "59.95", "GHI789", "Bluetooth Speaker", "Harbour Audio"),
        ],
        [(1, "179.99", *headphones), (2, "12.49", "JKL012", "USB-C Cable", "Harbour Audio")],
        [(1, "199.99", *headphones)],
    ]


async def test_the_requests_of_customer_with_orders(shop: Served) -> None:
    await shop.ask(DOCUMENT, "CustomerWithOrders")
    # What no order date of the range can follow: the template has nothing behind it, and the prefix is the bound.
    since = "GSI1PK = USER#12345 AND GSI1SK BETWEEN ORDER#2024-01-01 AND ORDER#\U0010ffff"
    assert shop.sent == [
        "BatchGetItem PRODUCT#ABC123 / PRODUCT#ABC123, PRODUCT#DEF456 / PRODUCT#DEF456,"
        " PRODUCT#GHI789 / PRODUCT#GHI789, PRODUCT#JKL012 / PRODUCT#JKL012",
        "BatchGetItem USER#67890 / USER#67890, USER#98765 / USER#98765",
        f"Count GSI1: {since}, of these Type = Order AND begins_with(PK, ORDER#) AND begins_with(SK, ORDER#)",
        "GetItem USER#12345 / USER#12345",
        f"Query GSI1: {since}, backward",
        "Query: PK = ORDER#ORD001 AND begins_with(SK, PRODUCT#)",
        "Query: PK = ORDER#ORD003 AND begins_with(SK, PRODUCT#)",
        "Query: PK = ORDER#ORD006 AND begins_with(SK, PRODUCT#)",
    ]


async def test_product_page(shop: Served) -> None:
    product = (await shop.ask(DOCUMENT, "ProductPage"))["product"]
    assert (product["name"], product["description"], product["price"]) == (
        "Wireless Headphones",
        "Premium wireless headphones",
        "199.99",
    )
    assert nodes(product["categories"], "categoryId", "name") == [
        ("electronics", "Electronics"),
        ("headphones", "Headphones"),
        ("wireless-headphones", "Wireless headphones"),
    ]
    assert nodes(product["tags"], "tagName") == [("bluetooth",), ("noise-cancelling",), ("wireless",)]
    assert [
        (edge["rating"], edge["createdAt"], edge["node"]["comment"], edge["node"]["customer"]["name"])
        for edge in product["reviews"]["edges"]
    ] == [
        (3, "2024-03-12T19:45:00Z", "Good sound, but the left side rattles.", "Aisha Khan"),
        (4, "2024-02-20T17:00:00Z", "Comfortable, though the case is bulky.", "Maria Garcia"),
        (5, "2024-01-25T09:30:00Z", "Excellent sound quality!", "John Doe"),
    ]


def shelves(category: dict[str, Any]) -> Any:
    """The tree below a category: the products that stand there, and each child by its name."""
    children = category.get("children", {"edges": []})["edges"]
    return (
        [name for name, _ in nodes(category["products"], "name", "price")],
        {edge["childName"]: shelves(edge["node"]) for edge in children},
    )


async def test_category_tree(shop: Served) -> None:
    category = (await shop.ask(DOCUMENT, "CategoryTree"))["category"]
    assert category["name"] == "Electronics"
    assert nodes(category["products"], "name", "price") == [
        ("Wireless Headphones", "199.99"),
        ("Studio Headphones", "89.99"),
        ("Bluetooth Speaker", "59.95"),
    ]
    assert shelves(category) == (
        ["Wireless Headphones", "Studio Headphones", "Bluetooth Speaker"],
        {
            "Accessories": (["USB-C Cable"], {"Cables": (["USB-C Cable"], {})}),
            "Headphones": (
                ["Wireless Headphones", "Studio Headphones"],
                {
                    "Studio headphones": (["Studio Headphones"], {}),
                    "Wireless headphones": (["Wireless Headphones"], {}),
                },
            ),
            "Speakers": (["Bluetooth Speaker"], {}),
        },
    )


async def test_prices_and_activities(shop: Served) -> None:
    data = await shop.ask(DOCUMENT, "PricesAndActivities")
    assert data["product"]["name"] == "Wireless Headphones"
    assert nodes(data["product"]["prices"], "timestamp", "price") == [
        ("2024-01-16T14:20:00Z", "229.99"),
        ("2024-01-20T10:00:00Z", "199.99"),
        ("2024-02-10T00:00:00Z", "179.99"),
        ("2024-03-01T00:00:00Z", "199.99"),
    ]
    headphones = {"name": "Wireless Headphones"}
    assert nodes(data["user"]["activities"], "timestamp", "action", "product") == [
        (1705750867250, "login", None),
        (1705750950118, "view", headphones),
        (1705751275902, "view", {"name": "Bluetooth Speaker"}),
        (1705751712044, "add_to_cart", headphones),
        (1705752000000, "purchase", headphones),
    ]


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
