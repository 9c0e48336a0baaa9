"""Five more tables as they are designed elsewhere: prices, days, regions, slugs and tokens in their keys."""

from __future__ import annotations

from datetime import datetime
from decimal import Decimal
from enum import Enum

from keygraph import (
    ID,
    JSON,
    Format,
    Graph,
    Index,
    Long,
    Many,
    One,
    Table,
    edge,
    field,
    many,
    node,
    one,
    record,
    stored,
)

gsi1 = Index("GSI1", "GSI1PK", "GSI1SK")
gsi2 = Index("GSI2", "GSI2PK", "GSI2SK")


# a shop with carts, and stock at warehouses
class CartState(Enum):
    ACTIVE = "ACTIVE"
    SAVED = "SAVED"


@node("c#{customer_id}")
class Customer:
    customer_id: ID
    email: str
    cart: Many[CartLine] = many()
    orders: Many[Order] = many()


@node("p#{product_id}", gsi1("CATEGORY#{category}", "{price:012.2f}", lists="products_in"))
class Product:
    product_id: ID
    name: str
    category: str
    price: Decimal
    stock: Many[Stock] = many()


@node("w#{warehouse_id}")
class Warehouse:
    warehouse_id: ID
    address: str
    stock: Many[Stock] = many()


@edge("{product}", "{warehouse}", gsi1("{warehouse}", "{product}"))
class Stock:
    product: Product
    warehouse: Warehouse
    quantity: int


@edge("{customer}", "cart#{status}#{product}")
class CartLine:
    customer: Customer
    product: Product
    status: CartState
    quantity: int


@node("o#{order_id}", gsi1("{customer}", "o#{placed}"))
class Order:
    order_id: ID
    customer: Customer
    placed: datetime
    shipments: Many[Shipment] = many()
    invoice: One[Invoice] = one()


@node("{order}", "sh#{shipment_id}", gsi2("{warehouse}", "sh#{shipment_id}", lists=False))
class Shipment:
    order: Order
    shipment_id: ID
    warehouse: Warehouse
    items: Many[ShipmentItem] = many()


@record("sh#{shipment.order.order_id}#{shipment.shipment_id}", "{product}")
class ShipmentItem:
    shipment: Shipment
    product: Product
    quantity: int


@node("{order}", "i#{invoice_id}")
class Invoice:
    order: Order
    invoice_id: ID
    amount: Decimal


carts = Graph(
    Table("Shop", partition_key="PK", sort_key="SK", indexes=[gsi1, gsi2]),
    Customer,
    Product,
    Warehouse,
    Stock,
    CartLine,
    Order,
    Shipment,
    ShipmentItem,
    Invoice,
    attribute_case="camel",
    type_attribute="EntityType",
)

# sessions, by token
users = Index("UserIndex", "Username", projection="KEYS_ONLY")


@node("{token}", users(lists="sessions_of"))
class Session:
    token: ID = stored("SessionToken")
    username: str
    created_at: datetime
    expires: Long = stored("TTL")


sessions = Graph(
    Table("SessionStore", partition_key="SessionToken", indexes=[users]), Session, attribute_case="pascal"
)


# a wiki, with revisions and what links here
back = Index("Backlinks", "LinkTo", "PK")


@node("PAGE#{title:slug}", "CURRENT")
class Page:
    title: str
    body: str
    revisions: Many[Revision] = many()
    links: Many[Link] = many()
    backlinks: Many[Link] = many(index=back)


@record("{page}", "REV#{number:06d}")
class Revision:
    page: Page
    number: int
    body: str


@edge("{page}", "LINK#{target.title:slug}", back("{target}"))
class Link:
    page: Page
    target: Page


wiki = Graph(
    Table("Wiki", partition_key="PK", sort_key="SK", indexes=[back]),
    Page,
    Revision,
    Link,
    formats={"slug": Format(lambda title: title.lower().replace(" ", "_"))},
)


# an audit log by tenant and day, each day spread over shards
@node("TENANT#{tenant_id}", "TENANT")
class Tenant:
    tenant_id: ID
    entries: Many[Entry] = many()
    of_actor: Many[Entry] = many(index=gsi1)


@record(
    "AUDIT#{tenant.tenant_id}#{day}#{shard}",
    "{at}#{entry_id}",
    gsi1("{tenant}#ACTOR#{actor}", "{at}"),
    shards=4,
)
class Entry:
    tenant: Tenant
    at: datetime
    entry_id: ID
    actor: str

    @field(needs=("at",))
    def day(self) -> str:
        return self.at.date().isoformat()


audit = Graph(Table("Audit", partition_key="PK", sort_key="SK", indexes=[gsi1]), Tenant, Entry)


# a fleet of devices in several regions
class Status(Enum):
    ONLINE = "online"
    OFFLINE = "offline"


@node("ORG#{org_id}", "ORG")
class Org:
    org_id: ID
    devices: Many[Device] = many()
    in_region: Many[Device] = many(index=None)


@node("ORG#{org.org_id}#{region}", "DEV#{serial}", gsi1("{org}", "{status}#{last_seen?}#{region}"))
class Device:
    org: Org
    region: str
    serial: ID
    status: Status
    last_seen: datetime | None
    shadow: JSON


fleet = Graph(Table("Fleet", partition_key="PK", sort_key="SK", indexes=[gsi1]), Org, Device)
