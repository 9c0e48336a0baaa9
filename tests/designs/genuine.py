"""Products of brands with their codes, scans and threats. From techfordev, the table of GenuProof."""

from __future__ import annotations

from datetime import datetime

from keygraph import ID, Graph, Index, Many, One, Table, node, one, record

gsi1 = Index("GSI1", "GSI1PK", "GSI1SK")


@node("BRAND#{brand_id}", "PROFILE", gsi1("BRANDS", "{name}", lists="brands"))
class Brand:
    brand_id: ID
    name: str
    stats: One[Stats] = one()
    products: Many[Product]


@record("{brand}", "STATS")
class Stats:
    brand: Brand
    scans: int


@node("PRODUCT#{product_id}", "META", gsi1("{brand}", "PRODUCT#{product_id}"))
class Product:
    product_id: ID
    brand: Brand
    title: str
    scans: Many[Scan]


@node("CODE#{code}")
class Code:
    code: ID
    product: Product


@record("{product}", "SCAN#{at}#{scan_id}")
class Scan:
    product: Product
    at: datetime
    scan_id: ID
    country: str


graph = Graph(
    Table("genuproof", partition_key="PK", sort_key="SK", indexes=[gsi1]),
    Brand,
    Stats,
    Product,
    Code,
    Scan,
    attribute_case="camel",
)

ITEMS = """
{"PK": "BRAND#b1", "SK": "PROFILE", "GSI1PK": "BRANDS", "GSI1SK": "Anvil", "name": "Anvil"}
{"PK": "BRAND#b2", "SK": "PROFILE", "GSI1PK": "BRANDS", "GSI1SK": "Bolt", "name": "Bolt"}
{"PK": "BRAND#b1", "SK": "STATS", "scans": 2}
{"PK": "PRODUCT#p10", "SK": "META", "GSI1PK": "BRAND#b1", "GSI1SK": "PRODUCT#p10", "brandId": "b1", "title": "Bag"}
{"PK": "PRODUCT#p11", "SK": "META", "GSI1PK": "BRAND#b1", "GSI1SK": "PRODUCT#p11", "brandId": "b1", "title": "Belt"}
{"PK": "CODE#X7Y8", "SK": "CODE#X7Y8", "productId": "p10"}
{"PK": "CODE#Z1Z2", "SK": "CODE#Z1Z2", "productId": "p11"}
{"PK": "PRODUCT#p10", "SK": "SCAN#2024-05-01T10:00:00Z#s1", "country": "DE"}
{"PK": "PRODUCT#p10", "SK": "SCAN#2024-05-02T10:00:00Z#s2", "country": "FR"}
"""

ASKED = """
Verify a product by its code
{ code(code: "X7Y8") { product { title brand { name stats { scans } } scans { nodes { country } } } } }
{"code": {"product": {"title": "Bag", "brand": {"name": "Anvil", "stats": {"scans": 2}}, "scans": {"nodes": [{"country": "DE"}, {"country": "FR"}]}}}}

All brands
{ brands { nodes { name products { totalCount } } } }
{"brands": {"nodes": [{"name": "Anvil", "products": {"totalCount": 2}}, {"name": "Bolt", "products": {"totalCount": 0}}]}}
"""
