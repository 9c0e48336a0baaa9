"""Lower-case beginnings and ids that are UUIDs. From WooodHead/dynamo-single-table-application on GitHub."""

from __future__ import annotations

from keygraph import ID, Graph, Index, Many, Table, edge, node

gsi1 = Index("gsi1", "gsi1pk", "gsi1sk")


@node("c#{customer_id}")
class Customer:
    customer_id: ID
    name: str
    email: str
    orders: Many[Order]


@node("o#{order_id}", gsi1("{customer}", "o#{order_id}"))
class Order:
    order_id: ID
    customer: Customer
    status: str
    lines: Many[Line]


@node("p#{product_id}")
class Product:
    product_id: ID
    title: str


@edge("{order}", "{product}")
class Line:
    order: Order
    product: Product
    quantity: int


graph = Graph(
    Table("ecommerce", partition_key="pk", sort_key="sk", indexes=[gsi1]),
    Customer,
    Order,
    Product,
    Line,
    attribute_case="camel",
    type_attribute="entityType",
)

ITEMS = """
{"pk": "c#0d7c881e-2f3a-4cac-b88d-b85c6e3730f1", "sk": "c#0d7c881e-2f3a-4cac-b88d-b85c6e3730f1", "name": "Ada", "email": "ada@x.org", "entityType": "Customer"}
{"pk": "c#1d7c881e-2f3a-4cac-b88d-b85c6e3730f2", "sk": "c#1d7c881e-2f3a-4cac-b88d-b85c6e3730f2", "name": "Ben", "email": "ben@x.org", "entityType": "Customer"}
{"pk": "p#2a7c881e-2f3a-4cac-b88d-b85c6e3730f3", "sk": "p#2a7c881e-2f3a-4cac-b88d-b85c6e3730f3", "title": "Kettle", "entityType": "Product"}
{"pk": "o#3b7c881e-2f3a-4cac-b88d-b85c6e3730f4", "sk": "o#3b7c881e-2f3a-4cac-b88d-b85c6e3730f4", "gsi1pk": "c#0d7c881e-2f3a-4cac-b88d-b85c6e3730f1", "gsi1sk": "o#3b7c881e-2f3a-4cac-b88d-b85c6e3730f4", "customerId": "0d7c881e-2f3a-4cac-b88d-b85c6e3730f1", "status": "paid", "entityType": "Order"}
{"pk": "o#3b7c881e-2f3a-4cac-b88d-b85c6e3730f4", "sk": "p#2a7c881e-2f3a-4cac-b88d-b85c6e3730f3", "quantity": 2, "entityType": "Line"}
"""

ASKED = """
A customer's orders with their products
{ customer(customerId: "0d7c881e-2f3a-4cac-b88d-b85c6e3730f1") { orders { nodes { status lines { edges { quantity node { title } } } } } } }
{"customer": {"orders": {"nodes": [{"status": "paid", "lines": {"edges": [{"quantity": 2, "node": {"title": "Kettle"}}]}}]}}}
"""
