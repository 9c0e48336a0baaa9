"""A shop in one table: `EcommerceData` of an article on the adjacency-list pattern in DynamoDB.

Every item has `PK`, `SK` and `Type`. A node's two keys are equal (`USER#12345`); an edge has one end in each of
them (`ORDER#ORD001`, `PRODUCT#ABC123`), and the same two the other way round in the index `GSI1`, so that it is
found from both ends. `GSI1` also lists the users and the products by the time they came, and the orders of a
user by date; `GSI2` lists the products by how many reviews they have. The keys above the classes are the whole of
it: each `Many` finds its items through them.

The article's own items are in `commerce.jsonl`, what it only describes is in `commerce.described.jsonl`, and
`sample` makes a shop of any size. A field may be None where an item of the article lacks it.
"""

from __future__ import annotations

from datetime import datetime
from decimal import Decimal
from enum import Enum

from keygraph import (
    ID,
    Graph,
    Index,
    Long,
    Many,
    Ranked,
    Reach,
    Table,
    average,
    copy,
    counts,
    edge,
    fields,
    many,
    node,
    ranked,
    reach,
    record,
    stored,
)
from keygraph_examples.commerce_sample import sample as sample

gsi1 = Index("GSI1", "GSI1PK", "GSI1SK")
gsi2 = Index("GSI2", "GSI2PK", "GSI2SK")


class UserType(Enum):
    """What somebody does in the shop."""

    CUSTOMER = "customer"
    """Buys, and writes reviews."""
    SELLER = "seller"
    """Offers products."""


class OrderStatus(Enum):
    """How far an order has come."""

    PENDING = "pending"
    """Placed, not yet paid."""
    PROCESSING = "processing"
    """Paid, and being packed."""
    SHIPPED = "shipped"
    """On its way to the customer."""
    DELIVERED = "delivered"
    """With the customer."""
    CANCELLED = "cancelled"
    """Called off before it was shipped."""


@fields
class Created:
    """What says when it was made."""

    created_at: datetime = stored("CreatedAt")
    """When it was made."""


@fields
class Updated(Created):
    """What says when it was made and last changed."""

    updated_at: datetime | None = stored("UpdatedAt")
    """When it last changed, if it ever did."""


@fields
class MaybeCreated:
    """The same of types whose items need not say it."""

    created_at: datetime | None = stored("CreatedAt")
    """When it was made, if that is known."""


@fields
class MaybeUpdated(MaybeCreated):
    """The same of types whose items need not say when they were made, nor when they last changed."""

    updated_at: datetime | None = stored("UpdatedAt")
    """When it last changed, if it ever did."""


@fields
class Listed(Updated):
    """The same of what is listed by the time when it was made, which only the key of that list says."""

    created_at: datetime = stored("CreatedAt", in_key=True)
    """When it was made."""


@node("USER#{user_id}", gsi1("USER", "{created_at}"))
class User(Listed):
    """Somebody who buys or sells."""

    user_id: ID
    name: str
    """A person's full name, or a seller's trade name."""
    email: str
    user_type: UserType

    orders: Many[Order]
    """What the user has ordered, by the date of the order."""
    customer_orders: Many[CustomerOrder]
    """The same orders by their ids."""
    # From the user's own partition.
    reviews: Many[UserReview]
    """What the user has written about products."""
    activities: Many[UserActivity]
    """What the user did in the shop, by time."""


@node(
    "PRODUCT#{product_id}",
    gsi1("PRODUCT", "{created_at}"),
    gsi2("PRODUCT", "{review_count:010d}#{product_id}", lists="most_reviewed_products"),
)
class Product(Listed):
    """Something that is for sale."""

    product_id: ID
    name: str
    price: Decimal
    """What it costs now; `prices` has what it cost before."""
    description: str
    seller: User
    """Who offers it."""

    categories: Many[ProductCategory]
    """Where it stands in the shop."""
    tags: Many[ProductTag]
    """The words it is found by."""
    reviews: Many[ProductReview]
    """What customers say about it, by the review's id; ids ascend, so the most recent are last."""
    # None in the article's items, until `keygraph verify --repair --only counts` counts them.
    review_count: int | None = counts("reviews")
    """How many reviews it has."""
    average_rating: float | None = average("reviews.rating")
    """The average of their ratings."""
    prices: Many[Price]
    """What it has cost, by time."""
    orders: Many[OrderItem]
    """The orders that contain it, each with how many and at what price."""
    bought_together: Ranked[Product] = ranked("orders", "items", weight="quantity", budget=2_000)
    """What else stands in these orders, by how many of it were bought."""


@node("CATEGORY#{category_id}")
class Category(MaybeUpdated):
    """A shelf of the shop: products, and narrower categories."""

    category_id: ID
    name: str
    description: str

    products: Many[ProductCategory]
    """The products that stand in it."""
    children: Many[CategoryChild] = many(at="parent")
    """The narrower categories below it."""
    parents: Many[CategoryChild] = many(at="child")
    """The wider categories above it; none at the top."""
    descendants: Reach[Category] = reach("children", depth=10)
    """All categories below it, on every level."""


@edge("{product}", "{category}", gsi1("{category}", "{product}"))
class ProductCategory:
    """A product stands in a category."""

    product: Product
    category: Category


@edge("{parent}", "CHILD#{child.category_id}", gsi1("{child}", "PARENT#{parent.category_id}"))
class CategoryChild(Created):
    """A category lies below another."""

    parent: Category = stored("parentCategoryId")
    """The wider one."""
    child: Category = stored("childCategoryId")
    """The narrower one."""
    child_name: str = copy("child.name", follows=True)
    """The narrower one's name, kept here so that a menu needs no further read."""


@node("ORDER#{order_id}", gsi1("{customer}", "ORDER#{order_date}"), gather=True)
class Order(MaybeUpdated):
    """What a customer bought at one time."""

    order_id: ID
    customer: User
    """Who placed it."""
    total: Decimal
    """The sum of its items' total prices."""
    status: OrderStatus
    order_date: datetime
    """When it was placed."""

    items: Many[OrderItem]
    """The products that it contains."""


@edge(
    "{order}",
    "{product}",
    gsi1("{product}", "{order}"),
    writes=["put", "update", "move", "delete", "bulk"],
)
class OrderItem:
    """A product in an order."""

    order: Order
    product: Product
    quantity: int
    """How many of it."""
    unit_price: Decimal
    """What one of it cost when the order was placed."""
    total_price: Decimal
    """What all of them cost together."""


@edge("{customer}", "{order}", gsi1("{order}", "{customer}"))
class CustomerOrder(MaybeCreated):
    """An order is a customer's. The article names the relationship but shows no item, so only its ends are sure."""

    customer: User
    order: Order
    order_date: datetime | None
    """When the order was placed."""
    total: Decimal | None
    """What the order cost."""


@node("REVIEW#{review_id}")
class Review(Updated):
    """What a customer says about a product."""

    review_id: ID
    customer: User
    """Who wrote it."""
    product: Product
    """What it is about."""
    rating: int
    """From 1, the worst, to 5."""
    comment: str
    review_date: datetime
    """When the customer wrote it."""


@edge("{customer}", "{review}", gsi1("{review}", "{customer}"))
class UserReview(Created):
    """A user has written a review."""

    customer: User
    review: Review


@edge("{product}", "{review}", gsi1("{review}", "{product}"))
class ProductReview(Created):
    """A product has been reviewed."""

    product: Product
    review: Review
    rating: int = copy("review.rating", follows=True)
    """The review's rating, kept here so that stars need no further read."""


@node("TAG#{tag_name}", item=False)
class Tag:
    """A word that products are found by."""

    # The table holds no item for a tag, only its edges.

    tag_name: ID

    products: Many[ProductTag]
    """The products that carry it."""


@edge("{product}", "{tag}", gsi1("{tag}", "{product}"))
class ProductTag(Created):
    """A product carries a tag."""

    product: Product
    tag: Tag = stored("tagName")


@record("{product}", "PRICE#{timestamp}", type="PriceHistory")
class Price:
    """What a product has cost from a time on."""

    product: Product
    timestamp: datetime
    """Since when."""
    price: Decimal


@record("{user}#SHARD{shard}", "ACTIVITY#{timestamp:013d}", shards=5)
class UserActivity(Created):
    """Something that a user did."""

    # A user's activities are spread over five partitions, so that none runs hot.

    user: User
    timestamp: Long
    """When, in milliseconds since 1970."""
    action: str
    """What: `login`, `view`, `add_to_cart`, `purchase`, `review`."""
    product: Product | None
    """The product it was done to, if any."""


graph = Graph(
    Table("EcommerceData", partition_key="PK", sort_key="SK", indexes=[gsi1, gsi2]),
    User,
    Product,
    Category,
    ProductCategory,
    CategoryChild,
    Order,
    OrderItem,
    CustomerOrder,
    Review,
    UserReview,
    ProductReview,
    Tag,
    ProductTag,
    Price,
    UserActivity,
    attribute_case="camel",
    type_attribute="Type",
)
