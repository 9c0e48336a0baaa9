"""The DynamoDB engine over the wire, against moto, DynamoDB Local, and what is no DynamoDB at all."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager
from decimal import Decimal
from functools import partial
from typing import TypeAlias, get_args

import pytest

from keygraph.dynamo.conditions import In, Or
from keygraph.dynamo.items import Item
from keygraph.dynamo.store import (
    BatchGet,
    BatchWrite,
    Count,
    CreateTable,
    DeleteTable,
    DescribeTable,
    Query,
    Scan,
)
from keygraph.dynamo.table import Index, Table
from keygraph.engines.dynamodb.answers import described_table
from keygraph.engines.dynamodb.engine import DynamoDBStore, open_dynamodb
from keygraph.engines.dynamodb.transport import TransportName
from keygraph.errors import TableMissing, TimedOut, Unavailable
from tests.conftest import LOCAL
from tests.listening import answering, listening

by_name = Index("by-name", "name", ("rank", "N"))
by_state = Index("by-state", "state", projection=["rank"])
by_digest = Index("by-digest", "PK", ("digest", "B"), projection="KEYS_ONLY", local=True)
table = Table("Shop", partition_key="PK", sort_key="SK", indexes=[by_name, by_state, by_digest])


Opening: TypeAlias = Callable[..., AbstractAsyncContextManager[DynamoDBStore]]


def _item(number: int, **more: object) -> Item:
    base: Item = {
        "PK": "A",
        "SK": f"{number:02}",
        "name": "same",
        "rank": Decimal(7),
        "digest": bytes([number]),
    }
    return base | more  # type: ignore[return-value]  # the tests give values of an item


@pytest.fixture(params=["moto", LOCAL])
def endpoint(request: pytest.FixtureRequest) -> str:
    """The URL of a server that speaks DynamoDB's API: each in turn."""
    return str(request.getfixturevalue(f"{request.param}_endpoint"))


@pytest.fixture(params=get_args(TransportName))
def opening(request: pytest.FixtureRequest) -> Opening:
    return partial(open_dynamodb, transport=request.param)


@pytest.fixture
async def store(endpoint: str, opening: Opening) -> AsyncIterator[DynamoDBStore]:
    async with opening(table, endpoint) as opened:
        await opened.send(CreateTable())
        yield opened
        await opened.send(DeleteTable())


async def test_the_table_comes_and_goes(endpoint: str, opening: Opening) -> None:
    async with opening(table, endpoint) as store:
        assert await store.send(DescribeTable()) is None
        await store.send(CreateTable())
        await store.send(CreateTable())
        described = await store.send(DescribeTable())
        assert described == Table(
            "Shop", partition_key="PK", sort_key="SK", indexes=[by_digest, by_name, by_state]
        )
        await store.send(DeleteTable())
        await store.send(DeleteTable())
        assert await store.send(DescribeTable()) is None


def test_a_table_without_sort_key_or_indexes_is_described() -> None:
    described = {
        "TableName": "Days",
        "AttributeDefinitions": [{"AttributeName": "day", "AttributeType": "N"}],
        "KeySchema": [{"AttributeName": "day", "KeyType": "HASH"}],
    }
    assert described_table(described) == Table("Days", partition_key=("day", "N"))


async def test_every_value_comes_back_as_it_was(store: DynamoDBStore) -> None:
    item = _item(
        1,
        price=Decimal("199.99"),
        digits=Decimal(12345678901234567890123456789012345678),
        tiny=Decimal("-1E-130"),
        huge=Decimal("9.9E+125"),
        empty="",
        none=None,
        yes=True,
        binary=b"\x00\xff",
        names=frozenset({"a", "ü"}),
        numbers=frozenset({Decimal("1.5"), Decimal(2)}),
        blobs=frozenset({b"x", b"\xff"}),
        nested={"version": Decimal(1), "list": [Decimal("0.1"), "a", {"deep": b""}, []]},
    )
    await store.send(BatchWrite(puts=(item,)))
    assert (await store.send(Query("A"))).items == [item]
    assert (await store.send(BatchGet((("A", "01"),)))).items == [item]
    assert str((await store.send(Query("A"))).items[0]["price"]) == "199.99"


async def test_nothing_is_sent_for_nothing(store: DynamoDBStore) -> None:
    await store.send(BatchWrite(puts=(_item(1),)))
    page = await store.send(Query("A", filter=In(("price",), ())))
    assert (page.items, page.scanned, page.last, page.cost.requests) == ([], 0, None, 0)
    counted = await store.send(Count("A", filter=Or(())))
    assert (counted.count, counted.scanned, counted.last, counted.cost.requests) == (0, 0, None, 0)
    assert (await store.send(BatchGet(()))).items == []
    assert (await store.send(BatchWrite())).cost.requests == 0


async def test_a_projection_gives_what_was_asked_for(store: DynamoDBStore) -> None:
    await store.send(BatchWrite(puts=(_item(1, data={"version": Decimal(1), "x": "y"}), _item(2))))
    paths = (("data", "version"), ("rank",))
    expected = [{"data": {"version": Decimal(1)}, "rank": Decimal(7)}, {"rank": Decimal(7)}]
    assert (await store.send(Query("A", projection=paths))).items == expected
    known = [{"PK": "A", **item} for item in expected]
    assert (await store.send(Query("A", projection=(*paths, ("PK",))))).items == known
    assert (await store.send(Query("A", projection=(("PK",),)))).items == [{"PK": "A"}] * 2
    both = BatchGet((("A", "01"), ("A", "02"), ("A", "03")), projection=paths)
    assert (await store.send(both)).items == [*expected, None]
    assert (await store.send(BatchGet((("A", "01"),), projection=paths))).items == expected[:1]
    await store.send(BatchWrite(puts=(_item(4, state="new"),)))
    of_index = Query("new", index="by-state", projection=(("state",),))
    assert (await store.send(of_index)).items == [{"state": "new"}]
    assert (await store.send(BatchGet((("A", "01"), ("A", "03")), projection=()))).items == [{}, None]


async def test_a_missing_table_says_how_to_create_it(endpoint: str, opening: Opening) -> None:
    async with opening(table, endpoint) as store:
        for request in (
            Query("A"),
            Scan(),
            BatchGet((("A", "1"), ("A", "2"))),
            BatchWrite(deletes=(("A", "1"),)),
        ):
            with pytest.raises(TableMissing) as missing:
                await store.send(request)
            assert str(missing.value) == "there is no table Shop: create it with `keygraph table create`"


# --- What is no DynamoDB ------------------------------------------------------------------------------


async def test_nobody_is_there(opening: Opening) -> None:
    async with answering(b"") as host:
        pass
    async with opening(table, f"http://user:secret@{host}", deadline=0.3) as store:
        with pytest.raises(Unavailable) as unavailable:
            await store.send(Query("A"))
    assert str(unavailable.value) == f"no connection to DynamoDB at {host}: is it running?"


async def test_something_else_is_there(opening: Opening) -> None:
    answer = b"HTTP/1.1 404 Not Found\r\nContent-Length: 8\r\nConnection: close\r\n\r\n<p>?</p>"
    async with answering(answer) as host, opening(table, f"http://{host}") as store:
        with pytest.raises(Unavailable) as unavailable:
            await store.send(Query("A"))
    assert str(unavailable.value) == f"the server at {host} is not DynamoDB"


async def test_something_that_never_answers(opening: Opening) -> None:
    quiet = asyncio.Event()

    async def wait(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await quiet.wait()
        writer.close()

    async with listening(wait) as host:
        async with opening(table, f"http://{host}", deadline=0.3) as store:
            with pytest.raises(TimedOut):
                await store.send(Query("A"))
        quiet.set()


async def test_settings_of_aws_that_are_missing(opening: Opening, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(Unavailable, match="no AWS region is set: set AWS_REGION"):
        async with opening(table):
            pass
    async with opening(table, region="eu-central-1") as store:
        with pytest.raises(Unavailable, match="no AWS credentials: set AWS_PROFILE"):
            await store.send(Query("A"))
    monkeypatch.setenv("AWS_PROFILE", "nobody")
    with pytest.raises(Unavailable, match="there is no AWS profile nobody"):
        async with opening(table, region="eu-central-1"):
            pass
