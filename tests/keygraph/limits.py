"""What the tests of DynamoDB's limits share: a table, and requests and items of a size."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from decimal import Decimal
from typing import Any

from aiobotocore.config import AioConfig
from aiobotocore.session import get_session

from keygraph.dynamo.conditions import Condition, Eq, Or
from keygraph.dynamo.items import Item, Value, item_size
from keygraph.dynamo.store import (
    BatchWrite,
)
from keygraph.dynamo.table import Index, Table

# No index has a key alone of which another one would be the sort key, which has the smaller limit.
TABLE = Table(
    "Limits",
    partition_key="PK",
    sort_key="SK",
    indexes=[
        Index("by-kind", "kind", ("mark", "N")),
        Index("by-place", "place", "town", projection=("name",)),
        Index("local", "PK", "day", local=True, projection=("name",)),
    ],
)
KB = 1024
KEY = {"PK": {"S": "p"}, "SK": {"S": "s"}}
Body = dict[str, Any]


@asynccontextmanager
async def client_of(endpoint: str) -> AsyncIterator[Any]:
    """A client that sends whatever it is given."""
    async with get_session().create_client(
        "dynamodb",
        endpoint_url=endpoint,
        region_name="us-east-1",
        aws_access_key_id="local",
        aws_secret_access_key="local",
        verify=False,
        # Moto fails at some with an error of its own, which would be asked again with longer and longer pauses.
        config=AioConfig(retries={"total_max_attempts": 1}),
    ) as client:
        yield client


def put(**attributes: Value) -> BatchWrite:
    return BatchWrite(puts=({"PK": "p", "SK": "s", **attributes},))


def raw_put(**attributes: Any) -> Body:
    return {"Item": {**KEY, **attributes}}


def raw_query(expression: str = "PK = :p", /, filter_: str | None = None, **options: Any) -> Body:
    """A Query with these expressions; what is no option of it is the value of a placeholder."""
    body = {name: options.pop(name) for name in tuple(options) if name[0].isupper()}
    body["KeyConditionExpression"] = expression
    if filter_ is not None:
        body["FilterExpression"] = filter_
    text = {"p": "p", **options}
    used = [name for name in text if f":{name}" in f"{expression} {filter_}"]
    body["ExpressionAttributeValues"] = {
        f":{name}": {"S": text[name]} if isinstance(text[name], str) else text[name] for name in used
    }
    return body


def nested(levels: int, inner: Value = "x") -> Value:
    value = inner
    for level in range(levels):
        value = [value] if level % 2 else {"m": value}
    return value


def raw_nested(levels: int) -> Body:
    value: Body = {"S": "x"}
    for level in range(levels):
        value = {"L": [value]} if level % 2 else {"M": {"m": value}}
    return value


def sized(size: int, **attributes: Value) -> Item:
    """An item of exactly so many bytes, filled up by its `big`."""
    item: Item = {"PK": "p", "SK": "s", **attributes, "big": ""}
    item["big"] = "x" * (size - item_size(item))
    assert item_size(item) == size
    return item


def any_of(count: int) -> Condition:
    """So many comparisons, which are twice as many operators, less one, with the ORs between them."""
    return Or(tuple(Eq(("a",), Decimal(number)) for number in range(count)))
