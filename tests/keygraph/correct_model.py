"""A model in which no name is misspelled; `test_misspellings` changes one line at a time."""

from __future__ import annotations

from datetime import datetime
from decimal import Decimal
from enum import Enum

from keygraph import ID, Graph, Index, Many, One, Table, edge, field, fields, many, node, record, stored

by_date = Index("ByDate", "DatePK", "DateSK")


class Status(Enum):
    OPEN = "open"
    CLOSED = "closed"


@fields
class Timed:
    created_at: datetime = stored("CreatedAt")


@node("SHOP#{shop_id}", by_date("SHOP", "{created_at}"))
class Shop(Timed):
    shop_id: ID
    name: str

    orders: Many[Order] = many()

    @field(needs=("name",))
    def title(self) -> str:
        return self.name.title()


@node("ORDER#{order_id}", by_date("{shop}", "ORDER#{created_at}"))
class Order(Timed):
    order_id: ID
    shop: Shop
    total: Decimal
    status: Status = stored(default=Status.OPEN)

    lines: Many[Line] = many(index=None)
    first_line: One[Line]


@edge("{order}", "{shop}")
class Line:
    order: Order
    shop: Shop
    quantity: int


@record("{shop}", "NOTE#{written_at}", shards=None, lists=False)
class Note:
    shop: Shop
    written_at: datetime


graph = Graph(
    Table("Shops", partition_key="PK", sort_key="SK", indexes=[by_date]),
    Shop,
    Order,
    Line,
    Note,
    attribute_case="camel",
    type_attribute="Type",
)

opened = datetime.fromisoformat("2024-05-01T10:00:00Z")
a_shop = Shop(shop_id=ID("1"), name="Corner", created_at=opened)
