"""The peer in Python: Strawberry, aiodataloader and aioboto3 on uvicorn, written as their documentation teaches.

`uvicorn bench.compare.peers.strawberry_by_hand:app`.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import Mapping
from contextlib import AsyncExitStack
from decimal import Decimal
from enum import Enum
from typing import Any, NewType

import aioboto3
import strawberry
from aiobotocore.config import AioConfig
from aiodataloader import DataLoader
from boto3.dynamodb.conditions import Attr, ConditionBase, Key
from strawberry.asgi import GraphQL
from strawberry.schema.config import StrawberryConfig

_TABLE = "EcommerceData"
_BATCH = 100
_FILTER_PAGE = 60
_CONFIG = AioConfig(max_pool_connections=256)

Item = Mapping[str, Any]
# Stored as ISO 8601 and passed on unchanged.
DateTime = NewType("DateTime", str)


@strawberry.enum
class UserType(Enum):
    CUSTOMER = "customer"
    SELLER = "seller"


@strawberry.enum
class OrderStatus(Enum):
    PENDING = "pending"
    PROCESSING = "processing"
    SHIPPED = "shipped"
    DELIVERED = "delivered"
    CANCELLED = "cancelled"


class Dynamo:
    """aioboto3's resource, opened by the first request and reused."""

    def __init__(self) -> None:
        self._opened = AsyncExitStack()
        self._lock = asyncio.Lock()
        self.resource: Any = None
        self.table: Any = None

    async def open(self) -> None:
        async with self._lock:
            if self.resource is None:
                session = aioboto3.Session(region_name=os.environ["AWS_REGION"])
                resource = session.resource(
                    "dynamodb", endpoint_url=os.environ["BENCH_STORE"], config=_CONFIG
                )
                self.resource = await self._opened.enter_async_context(resource)
                self.table = await self.resource.Table(_TABLE)

    async def query(self, condition: ConditionBase, first: int, **more: Any) -> list[Item]:
        items: list[Item] = []
        while True:
            answer = await self.table.query(
                KeyConditionExpression=condition, Limit=first - len(items), **more
            )
            items += answer["Items"]
            if "LastEvaluatedKey" not in answer or len(items) >= first:
                return items
            more["ExclusiveStartKey"] = answer["LastEvaluatedKey"]

    async def count(self, condition: ConditionBase, **more: Any) -> int:
        total: int = 0
        while True:
            answer = await self.table.query(KeyConditionExpression=condition, Select="COUNT", **more)
            total += answer["Count"]
            if "LastEvaluatedKey" not in answer:
                return total
            more["ExclusiveStartKey"] = answer["LastEvaluatedKey"]


dynamo = Dynamo()


class NodeLoader(DataLoader[str, Item | None]):
    """Loads nodes of one kind by their ids: the keys of one turn of the loop, a hundred per request."""

    def __init__(self, prefix: str) -> None:
        super().__init__()
        self._prefix = prefix

    async def batch_load_fn(self, keys: list[str]) -> list[Item | None]:
        chunks = [keys[start : start + _BATCH] for start in range(0, len(keys), _BATCH)]
        found: dict[Any, Item] = {}
        for items in await asyncio.gather(*map(self._read, chunks)):
            found.update((item["PK"], item) for item in items)
        return [found.get(self._prefix + key) for key in keys]

    async def _read(self, ids: list[str]) -> list[Item]:
        keys = [{"PK": self._prefix + each, "SK": self._prefix + each} for each in ids]
        items: list[Item] = []
        wanted: Any = {_TABLE: {"Keys": keys}}
        while wanted:
            answer = await dynamo.resource.batch_get_item(RequestItems=wanted)
            items += answer["Responses"][_TABLE]
            wanted = answer["UnprocessedKeys"]
        return items


class ListLoader(DataLoader[tuple[str, int], list[Item]]):
    """Loads lists of one kind by their partition and the number of wanted items.

    DynamoDB reads one partition per Query, so a batch takes one request for each list. They are answered together, so
    the nodes of all of these lists make one batch.
    """

    def __init__(self, prefix: str, index: str = "") -> None:
        super().__init__()
        self._prefix = prefix
        self._index = index

    async def batch_load_fn(self, keys: list[tuple[str, int]]) -> list[list[Item]]:
        more = {"IndexName": self._index} if self._index else {}
        return await asyncio.gather(
            *(
                dynamo.query(
                    Key(f"{self._index}PK").eq(partition) & Key(f"{self._index}SK").begins_with(self._prefix),
                    first,
                    **more,
                )
                for partition, first in keys
            )
        )


class Loaders:
    """The loaders of one request."""

    def __init__(self) -> None:
        self.users = NodeLoader("USER#")
        self.products = NodeLoader("PRODUCT#")
        self.categories = NodeLoader("CATEGORY#")
        self.orders = ListLoader("ORDER#", "GSI1")
        self.items = ListLoader("PRODUCT#")
        self.categories_of = ListLoader("CATEGORY#")
        self.children = ListLoader("CHILD#")
        self.products_of = ListLoader("PRODUCT#", "GSI1")


Info = strawberry.Info[Loaders, None]


@strawberry.type
class Category:
    category_id: strawberry.ID
    name: str

    @strawberry.field
    async def children(self, info: Info, first: int = 20) -> Categories:
        edges = await info.context.children.load((f"CATEGORY#{self.category_id}", first))
        return await categories_of([edge["childCategoryId"] for edge in edges], info)

    @strawberry.field
    async def products(self, info: Info, first: int = 20) -> ProductNodes:
        edges = await info.context.products_of.load((f"CATEGORY#{self.category_id}", first))
        items = await info.context.products.load_many([edge["productId"] for edge in edges])
        return ProductNodes(nodes=[to_product(item) for item in items if item])


@strawberry.type
class Categories:
    nodes: list[Category]


async def categories_of(ids: list[str], info: Info) -> Categories:
    items = await info.context.categories.load_many(ids)
    return Categories(nodes=[to_category(item) for item in items if item])


def to_category(item: Item) -> Category:
    return Category(category_id=item["categoryId"], name=item["name"])


@strawberry.type
class Product:
    product_id: strawberry.ID
    name: str
    price: Decimal
    description: str

    @strawberry.field
    async def categories(self, info: Info, first: int = 20) -> Categories:
        edges = await info.context.categories_of.load((f"PRODUCT#{self.product_id}", first))
        return await categories_of([edge["categoryId"] for edge in edges], info)


@strawberry.type
class ProductNodes:
    nodes: list[Product]


def to_product(item: Item) -> Product:
    return Product(
        product_id=item["productId"],
        name=item["name"],
        price=item["price"],
        description=item["description"],
    )


@strawberry.type
class OrderItem:
    product_id: strawberry.Private[str]
    quantity: int
    unit_price: Decimal

    @strawberry.field
    async def node(self, info: Info) -> Product | None:
        item = await info.context.products.load(self.product_id)
        return to_product(item) if item else None


@strawberry.type
class OrderItems:
    edges: list[OrderItem]


@strawberry.type
class Order:
    order_id: strawberry.ID
    order_date: DateTime
    total: Decimal
    status: OrderStatus

    @strawberry.field
    async def items(self, info: Info, first: int = 20) -> OrderItems:
        edges = await info.context.items.load((f"ORDER#{self.order_id}", first))
        return OrderItems(
            edges=[
                OrderItem(
                    product_id=edge["productId"],
                    quantity=int(edge["quantity"]),
                    unit_price=edge["unitPrice"],
                )
                for edge in edges
            ]
        )


@strawberry.type
class UserOrders:
    user_id: strawberry.Private[str]
    first: strawberry.Private[int]

    @strawberry.field
    async def nodes(self, info: Info) -> list[Order]:
        items = await info.context.orders.load((f"USER#{self.user_id}", self.first))
        return [
            Order(
                order_id=item["orderId"],
                order_date=item["orderDate"],
                total=item["total"],
                status=OrderStatus(item["status"]),
            )
            for item in items
        ]

    @strawberry.field
    async def total_count(self) -> int | None:
        condition = Key("GSI1PK").eq(f"USER#{self.user_id}") & Key("GSI1SK").begins_with("ORDER#")
        return await dynamo.count(condition, IndexName="GSI1")


@strawberry.type
class User:
    user_id: strawberry.ID
    name: str
    email: str
    user_type: UserType
    created_at: DateTime

    @strawberry.field
    def orders(self, first: int = 20) -> UserOrders:
        return UserOrders(user_id=self.user_id, first=first)


def to_user(item: Item) -> User:
    return User(
        user_id=item["userId"],
        name=item["name"],
        email=item["email"],
        user_type=UserType(item["userType"]),
        created_at=item["GSI1SK"],
    )


@strawberry.type
class Users:
    first: strawberry.Private[int]

    @strawberry.field
    async def nodes(self) -> list[User]:
        condition = Key("GSI1PK").eq("USER")
        return [to_user(item) for item in await dynamo.query(condition, self.first, IndexName="GSI1")]

    @strawberry.field
    async def total_count(self) -> int | None:
        return await dynamo.count(Key("GSI1PK").eq("USER"), IndexName="GSI1")


@strawberry.input
class DecimalCondition:
    gte: Decimal


@strawberry.input
class ProductWhere:
    price: DecimalCondition


@strawberry.type
class PageInfo:
    has_next_page: bool


@strawberry.type
class Products:
    nodes: list[Product]
    page_info: PageInfo


@strawberry.type
class Query:
    @strawberry.field
    async def user(self, info: Info, user_id: strawberry.ID) -> User | None:
        item = await info.context.users.load(user_id)
        return to_user(item) if item else None

    @strawberry.field
    async def category(self, info: Info, category_id: strawberry.ID) -> Category | None:
        item = await info.context.categories.load(category_id)
        return to_category(item) if item else None

    @strawberry.field
    def users(self, first: int = 20) -> Users:
        return Users(first=first)

    @strawberry.field
    async def products(self, first: int = 20, where: ProductWhere | None = None) -> Products:
        more: dict[str, Any] = {"IndexName": "GSI1", "Limit": _FILTER_PAGE if where else first + 1}
        if where:
            more["FilterExpression"] = Attr("price").gte(where.price.gte)
        items: list[Item] = []
        while len(items) <= first:
            answer = await dynamo.table.query(KeyConditionExpression=Key("GSI1PK").eq("PRODUCT"), **more)
            items += answer["Items"]
            if "LastEvaluatedKey" not in answer:
                break
            more["ExclusiveStartKey"] = answer["LastEvaluatedKey"]
        return Products(
            nodes=[to_product(item) for item in items[:first]],
            page_info=PageInfo(has_next_page=len(items) > first),
        )


class Server(GraphQL[Loaders, None]):
    """Makes new loaders for each request."""

    async def get_context(self, request: Any, response: Any) -> Loaders:
        await dynamo.open()
        return Loaders()


schema = strawberry.Schema(
    query=Query,
    config=StrawberryConfig(
        scalar_map={DateTime: strawberry.scalar(name="DateTime", serialize=str, parse_value=DateTime)}
    ),
)
app = Server(schema)
