"""The model with which the design shows how a declaration reads, and what that page leaves out of it.

What the page has stands here word for word, its list of types apart; below it stands what it leaves out.
"""

from __future__ import annotations

from datetime import datetime
from decimal import Decimal
from enum import Enum

from keygraph import ID, Graph, Index, Many, Table, edge, field, many, node, record, stored

gsi1 = Index("GSI1", "GSI1PK", "GSI1SK")


class UserType(Enum):
    CUSTOMER = "customer"
    SELLER = "seller"


@node("USER#{user_id}", gsi1("USER", "{created_at}"))
class User:
    """Somebody who buys or sells."""

    user_id: ID
    name: str
    email: str
    user_type: UserType
    created_at: datetime = stored("CreatedAt")

    orders: Many[Order] = many()
    reviews: Many[UserReview] = many()

    @field(needs=("name", "email"))
    def address_line(self) -> str:
        return f"{self.name} <{self.email}>"


@node("ORDER#{order_id}", gsi1("{customer}", "ORDER#{order_date}"))
class Order:
    order_id: ID
    customer: User
    """Who placed it."""
    total: Decimal
    status: OrderStatus
    order_date: datetime

    items: Many[OrderItem] = many()


@edge("{order}", "{product}", gsi1("{product}", "{order}"))
class OrderItem:
    order: Order
    product: Product
    quantity: int
    unit_price: Decimal


@edge("{parent}", "CHILD#{child.category_id}", gsi1("{child}", "PARENT#{parent.category_id}"))
class CategoryChild:
    parent: Category = stored("parentCategoryId")
    child: Category = stored("childCategoryId")
    child_name: str


@node("TAG#{tag_name}", item=False)
class Tag:
    """The table holds no item for a tag, only its edges."""

    tag_name: ID

    products: Many[ProductTag] = many()


@record("{product}", "PRICE#{timestamp}", type="PriceHistory")
class Price:
    product: Product
    timestamp: datetime
    price: Decimal


# --- What the page leaves out -------------------------------------------------------------------------


class OrderStatus(Enum):
    PENDING = "pending"
    SHIPPED = "shipped"


@node("PRODUCT#{product_id}")
class Product:
    product_id: ID
    name: str

    orders: Many[OrderItem] = many()
    tags: Many[ProductTag] = many()
    prices: Many[Price] = many()


@node("CATEGORY#{category_id}")
class Category:
    category_id: ID
    name: str

    children: Many[CategoryChild] = many(at="parent")
    parents: Many[CategoryChild] = many(at="child")


@edge("{product}", "{tag}", gsi1("{tag}", "{product}"))
class ProductTag:
    product: Product
    tag: Tag = stored("tagName")


@node("REVIEW#{review_id}")
class Review:
    review_id: ID
    comment: str


@edge("{customer}", "{review}", gsi1("{review}", "{customer}"))
class UserReview:
    customer: User
    review: Review


graph = Graph(
    Table("EcommerceData", partition_key="PK", sort_key="SK", indexes=[gsi1]),
    User,
    Order,
    OrderItem,
    Product,
    Category,
    CategoryChild,
    Tag,
    ProductTag,
    Price,
    Review,
    UserReview,
    attribute_case="camel",  # user_id is stored as userId
    type_attribute="Type",  # every item says its record type here
)
