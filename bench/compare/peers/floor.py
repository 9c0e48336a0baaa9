"""The floor: hand-written code for exactly these queries, with aiohttp on both sides, signing by hand and orjson.

`python -m bench.compare.peers.floor plain` reads level after level, as one would write it first; `merged` starts what
depends only on a key at once, so it takes the fewest round trips. It parses no GraphQL: it answers by the query's name.
"""

from __future__ import annotations

import asyncio
import hmac
import os
import sys
import time
import uuid
from collections.abc import Awaitable, Callable, Iterable
from hashlib import sha256
from typing import Any

import aiohttp
import orjson
from aiohttp import web
from yarl import URL

_TABLE = "EcommerceData"
_SIGNED = "content-type;host;x-amz-date;x-amz-target"
_JSON = "application/x-amz-json-1.0"
_BATCH = 100
_FILTER_PAGE = 60
_Typed = dict[str, Any]


class Dynamo:
    """Sends requests to DynamoDB."""

    def __init__(self, url: str) -> None:
        self._url = URL(url)
        self._host = f"{self._url.host}:{self._url.port}"
        self._access = os.environ["AWS_ACCESS_KEY_ID"]
        self._secret = os.environ["AWS_SECRET_ACCESS_KEY"]
        self._region = os.environ["AWS_REGION"]
        self._day = ""
        self._key = b""
        self._session = aiohttp.ClientSession(
            connector=aiohttp.TCPConnector(limit=256, ssl=False),
            skip_auto_headers=("Accept", "Accept-Encoding", "User-Agent"),
            cookie_jar=aiohttp.DummyCookieJar(),
            auto_decompress=False,
        )

    async def send(self, target: str, body: bytes) -> Any:
        """Returns the answer in DynamoDB's format."""
        stamp = time.strftime("%Y%m%dT%H%M%SZ", time.gmtime())
        day, target = stamp[:8], f"DynamoDB_20120810.{target}"
        if day != self._day:
            key = f"AWS4{self._secret}".encode()
            for step in (day, self._region, "dynamodb", "aws4_request"):
                key = hmac.digest(key, step.encode(), "sha256")
            self._day, self._key = day, key
        canonical = (
            f"POST\n/\n\ncontent-type:{_JSON}\nhost:{self._host}\nx-amz-date:{stamp}\nx-amz-target:{target}\n\n"
            f"{_SIGNED}\n{sha256(body).hexdigest()}"
        )
        scope = f"{day}/{self._region}/dynamodb/aws4_request"
        text = f"AWS4-HMAC-SHA256\n{stamp}\n{scope}\n{sha256(canonical.encode()).hexdigest()}"
        signature = hmac.digest(self._key, text.encode(), "sha256").hex()
        headers = {
            "Content-Type": _JSON,
            "Host": self._host,
            "X-Amz-Date": stamp,
            "X-Amz-Target": target,
            "Authorization": f"AWS4-HMAC-SHA256 Credential={self._access}/{scope}, SignedHeaders={_SIGNED}, "
            f"Signature={signature}",
        }
        async with self._session.post(self._url, data=body, headers=headers) as answer:
            content = await answer.read()
        if answer.status != 200:
            raise RuntimeError(content)
        return orjson.loads(content)

    async def get(self, key: str, attributes: str) -> _Typed:
        """Returns a node's item."""
        asked = {"TableName": _TABLE, "Key": _node_key(key), **_projection(attributes)}
        item: _Typed = (await self.send("GetItem", orjson.dumps(asked)))["Item"]
        return item

    async def batch(self, keys: Iterable[str], attributes: str) -> dict[str, _Typed]:
        """Returns the items of nodes by their key, a hundred per request."""
        distinct = list(dict.fromkeys(keys))
        more = _projection(f"PK,{attributes}")

        async def some(start: int) -> list[_Typed]:
            wanted = [_node_key(key) for key in distinct[start : start + _BATCH]]
            body = orjson.dumps({"RequestItems": {_TABLE: {"Keys": wanted, **more}}})
            answer = await self.send("BatchGetItem", body)
            if answer["UnprocessedKeys"]:
                raise RuntimeError("not all of a batch was processed")
            items: list[_Typed] = answer["Responses"][_TABLE]
            return items

        answers = await asyncio.gather(*map(some, range(0, len(distinct), _BATCH)))
        return {item["PK"]["S"]: item for items in answers for item in items}

    async def query(
        self, partition: str, attributes: str, *, prefix: str = "", index: str = "", limit: int = 0
    ) -> list[_Typed]:
        """Returns the items of a partition whose sort key begins with the prefix."""
        items: list[_Typed] = []
        more: _Typed = {}
        while True:
            answer = await self.send("Query", _query(partition, attributes, prefix, index, limit, **more))
            items += answer["Items"]
            start = answer.get("LastEvaluatedKey")
            limit -= len(answer["Items"])
            if not start or limit <= 0:
                return items
            more = {"ExclusiveStartKey": start}

    async def count(self, partition: str, prefix: str, index: str) -> int:
        """Returns the number of items."""
        body = _query(partition, "", prefix, index, 0, Select="COUNT")
        return int((await self.send("Query", body))["Count"])


def _node_key(key: str) -> _Typed:
    return {"PK": {"S": key}, "SK": {"S": key}}


def _projection(attributes: str) -> _Typed:
    if not attributes:
        return {}
    names = {f"#{name}": name for name in attributes.split(",")}
    return {"ProjectionExpression": ",".join(names), "ExpressionAttributeNames": names}


def _query(partition: str, attributes: str, prefix: str, index: str, limit: int, **more: Any) -> bytes:
    asked: _Typed = {"TableName": _TABLE, **_projection(attributes), **more}
    start = index or ""
    condition, values = f"{start}PK=:p", {":p": {"S": partition}}
    if prefix:
        condition += f" AND begins_with({start}SK,:s)"
        values[":s"] = {"S": prefix}
    asked["KeyConditionExpression"] = condition
    asked["ExpressionAttributeValues"] = values | asked.get("ExpressionAttributeValues", {})
    if index:
        asked["IndexName"] = index
    if limit:
        asked["Limit"] = limit
    return orjson.dumps(asked)


_Answer = Callable[["Dynamo", dict[str, Any], bool], Awaitable[dict[str, Any]]]


async def _orders(dynamo: Dynamo, user: str, attributes: str) -> list[_Typed]:
    return await dynamo.query(f"USER#{user}", attributes, prefix="ORDER#", index="GSI1", limit=10)


async def _items(dynamo: Dynamo, orders: Iterable[_Typed]) -> list[list[_Typed]]:
    return await asyncio.gather(
        *(dynamo.query(order["PK"]["S"], "SK,quantity", prefix="PRODUCT#", limit=5) for order in orders)
    )


async def _shallow(dynamo: Dynamo, variables: dict[str, Any], is_merged: bool) -> dict[str, Any]:
    key, orders_of = variables["user"], "orderId,orderDate,total,status"
    if is_merged:
        user, orders = await asyncio.gather(
            dynamo.get(f"USER#{key}", "userId,name,email"), _orders(dynamo, key, orders_of)
        )
    else:
        user = await dynamo.get(f"USER#{key}", "userId,name,email")
        orders = await _orders(dynamo, key, orders_of)
    nodes = [
        {
            "orderId": order["orderId"]["S"],
            "orderDate": order["orderDate"]["S"],
            "total": order["total"]["N"],
            "status": order["status"]["S"].upper(),
        }
        for order in orders
    ]
    return {
        "user": {
            "userId": user["userId"]["S"],
            "name": user["name"]["S"],
            "email": user["email"]["S"],
            "orders": {"nodes": nodes},
        }
    }


async def _nested(dynamo: Dynamo, variables: dict[str, Any], is_merged: bool) -> dict[str, Any]:
    key, orders_of = variables["user"], "PK,orderId,orderDate,status"
    products_of, shelves_of = "productId,name,price", "SK"

    async def shelves(keys: list[str]) -> dict[str, list[_Typed]]:
        found = await asyncio.gather(
            *(dynamo.query(product, shelves_of, prefix="CATEGORY#", limit=5) for product in keys)
        )
        return dict(zip(keys, found, strict=True))

    if is_merged:
        user, orders = await asyncio.gather(
            dynamo.get(f"USER#{key}", "name"), _orders(dynamo, key, orders_of)
        )
    else:
        user = await dynamo.get(f"USER#{key}", "name")
        orders = await _orders(dynamo, key, orders_of)
    items = await _items(dynamo, orders)
    keys = list(dict.fromkeys(item["SK"]["S"] for each in items for item in each))
    if is_merged:
        products, stands_in = await asyncio.gather(dynamo.batch(keys, products_of), shelves(keys))
    else:
        products = await dynamo.batch(keys, products_of)
        stands_in = await shelves(keys)
    categories = await dynamo.batch(
        (shelf["SK"]["S"] for each in stands_in.values() for shelf in each), "categoryId,name"
    )

    def product(key: str) -> dict[str, Any]:
        item = products[key]
        shown = [categories[shelf["SK"]["S"]] for shelf in stands_in[key]]
        return {
            "productId": item["productId"]["S"],
            "name": item["name"]["S"],
            "price": item["price"]["N"],
            "categories": {
                "nodes": [
                    {"categoryId": each["categoryId"]["S"], "name": each["name"]["S"]} for each in shown
                ]
            },
        }

    nodes = [
        {
            "orderId": order["orderId"]["S"],
            "orderDate": order["orderDate"]["S"],
            "status": order["status"]["S"].upper(),
            "items": {
                "edges": [
                    {"quantity": int(item["quantity"]["N"]), "node": product(item["SK"]["S"])}
                    for item in inside
                ]
            },
        }
        for order, inside in zip(orders, items, strict=True)
    ]
    return {"user": {"name": user["name"]["S"], "orders": {"nodes": nodes}}}


async def _wide(dynamo: Dynamo, variables: dict[str, Any], is_merged: bool) -> dict[str, Any]:
    users = await dynamo.query("USER", "userId,name", index="GSI1", limit=20)
    orders = await asyncio.gather(
        *(_orders(dynamo, user["userId"]["S"], "PK,orderDate,total") for user in users)
    )
    items = await _items(dynamo, [order for each in orders for order in each])
    products = await dynamo.batch((item["SK"]["S"] for each in items for item in each), "name,price")
    inside = iter(items)

    def order_of(order: _Typed) -> dict[str, Any]:
        edges = []
        for item in next(inside):
            product = products[item["SK"]["S"]]
            node = {"name": product["name"]["S"], "price": product["price"]["N"]}
            edges.append({"quantity": int(item["quantity"]["N"]), "node": node})
        return {
            "orderDate": order["orderDate"]["S"],
            "total": order["total"]["N"],
            "items": {"edges": edges},
        }

    nodes = [
        {"name": user["name"]["S"], "orders": {"nodes": [order_of(order) for order in each]}}
        for user, each in zip(users, orders, strict=True)
    ]
    return {"users": {"nodes": nodes}}


async def _list(dynamo: Dynamo, variables: dict[str, Any], is_merged: bool) -> dict[str, Any]:
    users = await dynamo.query("USER", "userId,name,email,userType,GSI1SK", index="GSI1", limit=100)
    nodes = [
        {
            "userId": user["userId"]["S"],
            "name": user["name"]["S"],
            "email": user["email"]["S"],
            "userType": user["userType"]["S"].upper(),
            "createdAt": user["GSI1SK"]["S"],
        }
        for user in users
    ]
    return {"users": {"nodes": nodes}}


async def _fan_out(dynamo: Dynamo, variables: dict[str, Any], is_merged: bool) -> dict[str, Any]:
    key = f"CATEGORY#{variables['category']}"
    edges_of = dynamo.query(key, "PK", prefix="PRODUCT#", index="GSI1", limit=variables["first"])
    if is_merged:
        category, edges = await asyncio.gather(dynamo.get(key, "name"), edges_of)
    else:
        category = await dynamo.get(key, "name")
        edges = await edges_of
    keys = [edge["PK"]["S"] for edge in edges]
    products = await dynamo.batch(keys, "name,price")
    nodes = [{"name": products[each]["name"]["S"], "price": products[each]["price"]["N"]} for each in keys]
    return {"category": {"name": category["name"]["S"], "products": {"nodes": nodes}}}


async def _deep(dynamo: Dynamo, variables: dict[str, Any], is_merged: bool) -> dict[str, Any]:
    return await _down(dynamo, "menu", 4, is_merged)


def _line(levels: int) -> _Answer:
    return lambda dynamo, variables, is_merged: _down(dynamo, "line", levels, is_merged)


async def _down(dynamo: Dynamo, root: str, levels: int, is_merged: bool) -> dict[str, Any]:
    top = f"CATEGORY#{root}"
    names: dict[str, str] = {}
    below: dict[str, list[str]] = {}

    async def look(keys: list[str]) -> None:
        names.update((key, item["name"]["S"]) for key, item in (await dynamo.batch(keys, "name")).items())

    async def look_below(keys: list[str]) -> None:
        found = await asyncio.gather(
            *(dynamo.query(key, "childCategoryId", prefix="CHILD#", limit=10) for key in keys)
        )
        for key, edges in zip(keys, found, strict=True):
            below[key] = [f"CATEGORY#{edge['childCategoryId']['S']}" for edge in edges]

    level = [top]
    for depth in range(levels + 1):
        if depth == levels:
            await look(level)
        elif is_merged:
            await asyncio.gather(look(level), look_below(level))
        else:
            await look(level)
            await look_below(level)
        level = [child for key in level for child in below.get(key, ())]

    def category(key: str, depth: int) -> dict[str, Any]:
        if depth == levels:
            return {"name": names[key]}
        return {
            "name": names[key],
            "children": {"nodes": [category(child, depth + 1) for child in below[key]]},
        }

    return {"category": category(top, 0)}


async def _count(dynamo: Dynamo, variables: dict[str, Any], is_merged: bool) -> dict[str, Any]:
    key = f"USER#{variables['user']}"
    if is_merged:
        users, user, orders = await asyncio.gather(
            dynamo.count("USER", "", "GSI1"), dynamo.get(key, "name"), dynamo.count(key, "ORDER#", "GSI1")
        )
    else:
        users = await dynamo.count("USER", "", "GSI1")
        user = await dynamo.get(key, "name")
        orders = await dynamo.count(key, "ORDER#", "GSI1")
    return {
        "users": {"totalCount": users},
        "user": {"name": user["name"]["S"], "orders": {"totalCount": orders}},
    }


async def _filtered(dynamo: Dynamo, variables: dict[str, Any], is_merged: bool) -> dict[str, Any]:
    found: list[_Typed] = []
    start: Any = None
    while len(found) < 21:
        more = {
            "FilterExpression": "price >= :least",
            "ExpressionAttributeValues": {":least": {"N": "105"}},
            **({"ExclusiveStartKey": start} if start else {}),
        }
        body = _query("PRODUCT", "productId,name,price", "", "GSI1", _FILTER_PAGE, **more)
        answer = await dynamo.send("Query", body)
        found += answer["Items"]
        start = answer.get("LastEvaluatedKey")
        if not start:
            break
    nodes = [
        {"productId": item["productId"]["S"], "name": item["name"]["S"], "price": item["price"]["N"]}
        for item in found[:20]
    ]
    return {"products": {"nodes": nodes, "pageInfo": {"hasNextPage": len(found) > 20}}}


async def _order(dynamo: Dynamo, variables: dict[str, Any], is_merged: bool) -> dict[str, Any]:
    given = variables["input"]
    key, placed = f"ORDER#{given['orderId']}", given["orderDate"]
    customer = f"USER#{given['customerId']}"
    order = {
        "PK": {"S": key},
        "SK": {"S": key},
        "GSI1PK": {"S": customer},
        "GSI1SK": {"S": f"ORDER#{placed}"},
        "Type": {"S": "Order"},
        "orderId": {"S": given["orderId"]},
        "customerId": {"S": given["customerId"]},
        "total": {"N": given["total"]},
        "status": {"S": given["status"].lower()},
        "orderDate": {"S": placed},
    }
    actions: list[_Typed] = [
        {"Put": {"TableName": _TABLE, "Item": order, "ConditionExpression": "attribute_not_exists(PK)"}},
        _exists(customer),
    ]
    for item in given["items"]:
        product = f"PRODUCT#{item['productId']}"
        put = {
            "PK": {"S": key},
            "SK": {"S": product},
            "GSI1PK": {"S": product},
            "GSI1SK": {"S": key},
            "Type": {"S": "OrderItem"},
            "orderId": {"S": given["orderId"]},
            "productId": {"S": item["productId"]},
            "quantity": {"N": str(item["quantity"])},
            "unitPrice": {"N": item["unitPrice"]},
            "totalPrice": {"N": item["totalPrice"]},
        }
        actions += [{"Put": {"TableName": _TABLE, "Item": put}}, _exists(product)]
    body = {"TransactItems": actions, "ClientRequestToken": uuid.uuid4().hex}
    await dynamo.send("TransactWriteItems", orjson.dumps(body))
    shown = {"total": given["total"], "status": given["status"], "orderDate": placed}
    return {"createOrder": {"order": shown}}


def _exists(key: str) -> _Typed:
    check = {"TableName": _TABLE, "Key": _node_key(key), "ConditionExpression": "attribute_exists(PK)"}
    return {"ConditionCheck": check}


_ANSWERS: dict[str, _Answer] = {
    "shallow": _shallow,
    "nested": _nested,
    "wide": _wide,
    "list": _list,
    "deep": _deep,
    "count": _count,
    "filtered": _filtered,
    "order": _order,
    "fan_out": _fan_out,
    **{f"depth{levels}": _line(levels) for levels in range(1, 7)},
}


async def _serve(port: int, is_merged: bool) -> None:
    dynamo = Dynamo(os.environ["BENCH_STORE"])

    async def answer(request: web.BaseRequest) -> web.Response:
        asked = orjson.loads(await request.read())
        data = await _ANSWERS[asked["operationName"]](dynamo, asked["variables"], is_merged)
        return web.Response(body=orjson.dumps({"data": data}), content_type="application/json")

    runner = web.ServerRunner(web.Server(answer))
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", port).start()
    await asyncio.Event().wait()


if __name__ == "__main__":
    asyncio.run(_serve(int(os.environ["PORT"]), sys.argv[1] == "merged"))
