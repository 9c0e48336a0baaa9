"""Customers, orders and their lines, the tenant before each id: all keys begin with a part that is no type's word."""

from __future__ import annotations

from datetime import datetime

from keygraph import ID, Graph, Index, Many, Table, node, record, stored

by_customer = Index("gsi1", "gsi1pk", "gsi1sk")


@node("T-{tenant_id}/C-{customer_id}")
class Customer:
    tenant_id: ID
    customer_id: ID
    full_name: str
    orders: Many[Order]


@node("T-{tenant_id}/O-{order_id}", by_customer("{customer}", "{placed_at}"))
class Order:
    tenant_id: ID
    order_id: ID
    customer: Customer = stored(tenant_id="tenant_id", customer_id="customer_id")
    placed_at: datetime
    total: int
    lines: Many[Line]


@record("{order}", "L-{line_no}")
class Line:
    order: Order = stored(tenant_id="tenant_id", order_id="order_id")
    line_no: int
    sku: str


graph = Graph(
    Table("orders", partition_key="pk", sort_key="sk", indexes=[by_customer]),
    Customer,
    Order,
    Line,
    separator="/",
)

ITEMS = """
{"pk": "T-acme/C-7", "sk": "T-acme/C-7", "tenant_id": "acme", "customer_id": "7", "full_name": "Ada"}
{"pk": "T-acme/C-8", "sk": "T-acme/C-8", "tenant_id": "acme", "customer_id": "8", "full_name": "Ben"}
{"pk": "T-globex/C-7", "sk": "T-globex/C-7", "tenant_id": "globex", "customer_id": "7", "full_name": "Cleo"}
{"pk": "T-acme/O-12", "sk": "T-acme/O-12", "gsi1pk": "T-acme/C-7", "gsi1sk": "2024-05-01T10:00:00Z", "tenant_id": "acme", "order_id": "12", "customer_id": "7", "placed_at": "2024-05-01T10:00:00Z", "total": 30}
{"pk": "T-acme/O-13", "sk": "T-acme/O-13", "gsi1pk": "T-acme/C-8", "gsi1sk": "2024-05-02T10:00:00Z", "tenant_id": "acme", "order_id": "13", "customer_id": "8", "placed_at": "2024-05-02T10:00:00Z", "total": 15}
{"pk": "T-globex/O-12", "sk": "T-globex/O-12", "gsi1pk": "T-globex/C-7", "gsi1sk": "2024-05-03T10:00:00Z", "tenant_id": "globex", "order_id": "12", "customer_id": "7", "placed_at": "2024-05-03T10:00:00Z", "total": 8}
{"pk": "T-acme/O-12", "sk": "L-1", "tenant_id": "acme", "order_id": "12", "line_no": 1, "sku": "S1"}
{"pk": "T-acme/O-12", "sk": "L-2", "tenant_id": "acme", "order_id": "12", "line_no": 2, "sku": "S4"}
{"pk": "T-acme/O-13", "sk": "L-1", "tenant_id": "acme", "order_id": "13", "line_no": 1, "sku": "S4"}
{"pk": "T-globex/O-12", "sk": "L-1", "tenant_id": "globex", "order_id": "12", "line_no": 1, "sku": "S9"}
"""

ASKED = """
A tenant's customer with the orders and their lines, and another tenant's of the same id
{ customer(tenantId: "acme", customerId: "7") { fullName orders { nodes { total lines { nodes { sku } } } } } other: customer(tenantId: "globex", customerId: "7") { orders { nodes { customer { fullName } } } } }
{"customer": {"fullName": "Ada", "orders": {"nodes": [{"total": 30, "lines": {"nodes": [{"sku": "S1"}, {"sku": "S4"}]}}]}}, "other": {"orders": {"nodes": [{"customer": {"fullName": "Cleo"}}]}}}
"""
