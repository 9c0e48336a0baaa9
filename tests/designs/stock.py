"""What is in which warehouse, and what moved. A usual design for inventories: an inverted index, and moves in order."""

from __future__ import annotations

from datetime import datetime

from keygraph import ID, Graph, Index, Many, Table, edge, node, record

inverted = Index("inverted", "SK", "PK")


@node("WAREHOUSE#{warehouse_id}")
class Warehouse:
    warehouse_id: ID
    city: str
    stock: Many[Stock]


@node("SKU#{sku}")
class Product:
    sku: ID
    title: str
    stock: Many[Stock]
    moves: Many[Move]


@edge("{warehouse}", "{product}")
class Stock:
    warehouse: Warehouse
    product: Product
    amount: int


@record("{product}", "MOVE#{at}")
class Move:
    product: Product
    at: datetime
    source: Warehouse | None
    target: Warehouse
    amount: int


graph = Graph(
    Table("Inventory", partition_key="PK", sort_key="SK", indexes=[inverted]), Warehouse, Product, Stock, Move
)

ITEMS = """
{"PK": "WAREHOUSE#w1", "SK": "WAREHOUSE#w1", "city": "Bonn"}
{"PK": "WAREHOUSE#w2", "SK": "WAREHOUSE#w2", "city": "Kiel"}
{"PK": "SKU#kettle", "SK": "SKU#kettle", "title": "Kettle"}
{"PK": "SKU#pan", "SK": "SKU#pan", "title": "Pan"}
{"PK": "WAREHOUSE#w1", "SK": "SKU#kettle", "amount": 10}
{"PK": "WAREHOUSE#w1", "SK": "SKU#pan", "amount": 4}
{"PK": "WAREHOUSE#w2", "SK": "SKU#pan", "amount": 1}
{"PK": "SKU#pan", "SK": "MOVE#2024-05-01T10:00:00Z", "source_id": "w1", "target_id": "w2", "amount": 1}
{"PK": "SKU#pan", "SK": "MOVE#2024-04-01T10:00:00Z", "target_id": "w1", "amount": 5}
"""

ASKED = """
Where a product is, and what moved
{ product(sku: "pan") { stock { edges { amount node { city } } } moves(last: 1) { nodes { source { city } target { city } } } } }
{"product": {"stock": {"edges": [{"amount": 4, "node": {"city": "Bonn"}}, {"amount": 1, "node": {"city": "Kiel"}}]}, "moves": {"nodes": [{"source": {"city": "Bonn"}, "target": {"city": "Kiel"}}]}}}
"""
