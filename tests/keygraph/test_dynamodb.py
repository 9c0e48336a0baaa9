"""The DynamoDB engine over the wire, against moto, DynamoDB Local, and what is no DynamoDB at all."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager
from dataclasses import replace
from decimal import Decimal
from functools import partial
from typing import TypeAlias

import pytest

from keygraph.dynamo.conditions import And, Between, Condition, Eq, Exists, In, Ne, Not, Or, holds
from keygraph.dynamo.items import Item
from keygraph.dynamo.store import (
    BatchGet,
    BatchWrite,
    Count,
    Counted,
    CreateTable,
    DeleteTable,
    DescribeTable,
    Prefix,
    Query,
    Scan,
    Within,
    pages,
)
from keygraph.dynamo.table import Index, Table
from keygraph.engines.dynamodb.engine import DynamoDBStore, described_table, open_dynamodb
from keygraph.engines.dynamodb.transport import TransportName
from keygraph.errors import TableMissing, TimedOut, Unavailable
from tests.conftest import LOCAL

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


@pytest.fixture(params=TransportName, ids=lambda name: name.value)
def opening(request: pytest.FixtureRequest) -> Opening:
    """Opens a table through each transport in turn."""
    return partial(open_dynamodb, transport=request.param)


@pytest.fixture
async def store(endpoint: str, opening: Opening) -> AsyncIterator[DynamoDBStore]:
    """The empty table on the server."""
    async with opening(table, endpoint) as opened:
        await opened.send(CreateTable())
        yield opened
        await opened.send(DeleteTable())


async def test_the_table_comes_and_goes(endpoint: str, opening: Opening) -> None:
    """`keygraph table create` would make another table than the model's, or fail where it exists already."""
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
    """A simple table of somebody else's could not be shown."""
    described = {
        "TableName": "Days",
        "AttributeDefinitions": [{"AttributeName": "day", "AttributeType": "N"}],
        "KeySchema": [{"AttributeName": "day", "KeyType": "HASH"}],
    }
    assert described_table(described) == Table("Days", partition_key=("day", "N"))


async def test_every_value_comes_back_as_it_was(store: DynamoDBStore) -> None:
    """A price would be off by a cent, or a set come back as a list."""
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


async def test_pages_follow_one_another(store: DynamoDBStore) -> None:
    """A list would end early, or show an item twice, at the edge of a page; an index with equal keys most easily."""
    items = [_item(number) for number in range(10)]
    await store.send(BatchWrite(puts=tuple(items)))
    for request in (
        Query("A", limit=3),
        Query("same", index="by-name", limit=3),
        Query("A", index="by-digest", limit=3, projection=tuple((name,) for name in items[0])),
        Scan(limit=3),
    ):
        found = [page async for page in pages(store, request)]
        assert [len(page.items) for page in found] == [3, 3, 3, 1]
        listed = [item["SK"] for page in found for item in page.items]
        # In which order items of equal index keys come is not said, but it is the same for every page.
        is_equal = isinstance(request, Query) and request.index == "by-name"
        assert (sorted(map(str, listed)) if is_equal else listed) == [item["SK"] for item in items]
        if isinstance(request, Query):
            assert found[0].last == table.position_of(items[int(str(listed[2]))], request.index)
            backward = [page async for page in pages(store, replace(request, forward=False, limit=4))]
            assert [item["SK"] for page in backward for item in page.items] == listed[::-1]


async def test_a_page_goes_on_after_an_item_that_is_gone(store: DynamoDBStore) -> None:
    """A cursor would stop working when the item that it points at is deleted, or an item would be passed over."""
    items = [_item(number) for number in range(6)]
    for request in (Query("A", limit=3), Query("same", index="by-name", limit=3)):
        await store.send(BatchWrite(puts=tuple(items)))
        first = await store.send(request)
        await store.send(BatchWrite(deletes=(table.key_of(first.items[-1]),)))
        second = await store.send(replace(request, start=first.last))
        listed = [str(item["SK"]) for item in (*first.items, *second.items)]
        assert sorted(listed) == [item["SK"] for item in items]


@pytest.mark.parametrize(
    ("request_", "expected"),
    [
        (Query("A", start=("A", "03x")), ["04", "05"]),
        (Query("A", start=("A", "03x"), forward=False), ["03", "02", "01", "00"]),
        (Query("same", index="by-name", start=("same", Decimal("6.5"), "A", "03")), ["00", "01", "02", "03", "04", "05"]),
        (Query("same", index="by-name", start=("same", Decimal("7.5"), "A", "03")), []),
        (Query("A", range=Within("02", "04"), start=("A", "02x")), ["03", "04"]),
    ],
)  # fmt: skip
async def test_a_page_may_start_where_no_item_stands(
    store: DynamoDBStore, request_: Query, expected: list[str]
) -> None:
    """A list that is read from a moment on would begin elsewhere."""
    await store.send(BatchWrite(puts=tuple(_item(number) for number in range(6))))
    found = [str(item["SK"]) for item in (await store.send(request_)).items]
    assert (sorted(found) if request_.index else found) == expected


@pytest.mark.parametrize(
    "condition",
    [
        And(()),
        Eq(("price",), Decimal("2.0")),
        Ne(("missing",), "x"),
        Not(Or((Eq(("price",), Decimal(1)), Not(Exists(("data", "version")))))),
        And((Or((Eq(("price",), Decimal(1)), Eq(("price",), Decimal(2)))), Between(("price",), Decimal(2), Decimal(9)))),
        In(("price",), tuple(map(Decimal, range(2, 250)))),
        Eq(("data",), {"version": Decimal(2)}),
    ],
)  # fmt: skip
async def test_a_filter_finds_what_holds(store: DynamoDBStore, condition: Condition) -> None:
    """A `where` would mean one thing on AWS and another in the embedded engine."""
    items = [_item(n, price=Decimal(n), data={"version": Decimal(n)} if n % 2 else {}) for n in range(6)]
    await store.send(BatchWrite(puts=tuple(items)))
    page = await store.send(Query("A", filter=condition))
    assert page.items == [item for item in items if holds(condition, item)]
    assert page.scanned == 6
    counted = await store.send(Count("A", filter=condition))
    assert counted == Counted(len(page.items), 6, None, counted.cost)


async def test_nothing_is_sent_for_nothing(store: DynamoDBStore) -> None:
    """An empty list of values would cost a read of a whole partition."""
    await store.send(BatchWrite(puts=(_item(1),)))
    page = await store.send(Query("A", filter=In(("price",), ())))
    assert (page.items, page.scanned, page.last, page.cost.requests) == ([], 0, None, 0)
    counted = await store.send(Count("A", filter=Or(())))
    assert (counted.count, counted.scanned, counted.last, counted.cost.requests) == (0, 0, None, 0)
    assert (await store.send(BatchGet(()))).items == []
    assert (await store.send(BatchWrite())).cost.requests == 0


async def test_a_batch_keeps_its_order(store: DynamoDBStore) -> None:
    """Order items would show each other's products."""
    await store.send(BatchWrite(puts=tuple(_item(number) for number in range(0, 100, 2))))
    asked = [*range(99, -1, -1), 4, 5, *range(100, 130)]
    batch = await store.send(BatchGet(tuple(("A", f"{number:02}") for number in asked)))
    assert batch.items == [_item(n) if n < 100 and n % 2 == 0 else None for n in asked]
    assert batch.cost.requests == 2


async def test_a_projection_gives_what_was_asked_for(store: DynamoDBStore) -> None:
    """Items would carry keys that nobody asked for on one engine and not on another."""
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


async def test_binary_and_number_keys(endpoint: str, opening: Opening) -> None:
    """A table whose keys are numbers or bytes could not be read, or in the wrong order."""
    readings = Table("Readings", partition_key=("sensor", "B"), sort_key=("at", "N"))
    times = [Decimal(-5), Decimal("-0.001"), Decimal(0), Decimal("1.5"), Decimal(10), Decimal("1E+100")]
    async with opening(readings, endpoint) as store:
        await store.send(CreateTable())
        await store.send(BatchWrite(puts=tuple({"sensor": b"\x00\xfb", "at": at} for at in reversed(times))))
        found = [page async for page in pages(store, Query(b"\x00\xfb", limit=4))]
        assert [item["at"] for page in found for item in page.items] == times
        assert found[0].last == (b"\x00\xfb", Decimal("1.5"))
        batch = await store.send(BatchGet(tuple((b"\x00\xfb", at) for at in times)))
        assert [item and item["at"] for item in batch.items] == times
        await store.send(DeleteTable())


async def test_a_missing_table_says_how_to_create_it(endpoint: str, opening: Opening) -> None:
    """The first error that a newcomer meets would not say what to do."""
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


async def test_a_prefix_of_the_sort_key(store: DynamoDBStore) -> None:
    """A list would hold its siblings too."""
    await store.send(BatchWrite(puts=tuple(_item(number) for number in (1, 10, 11, 20))))
    assert [item["SK"] for item in (await store.send(Query("A", range=Prefix("1")))).items] == ["10", "11"]


# --- What is no DynamoDB ------------------------------------------------------------------------------


async def test_nobody_is_there(opening: Opening) -> None:
    """A wrong port would end in a traceback."""
    server = await asyncio.start_server(lambda reader, writer: None, "127.0.0.1", 0)
    port = server.sockets[0].getsockname()[1]
    server.close()
    await server.wait_closed()
    async with opening(table, f"http://user:secret@127.0.0.1:{port}", deadline=0.3) as store:
        with pytest.raises(Unavailable) as unavailable:
            await store.send(Query("A"))
    assert str(unavailable.value) == f"no connection to DynamoDB at 127.0.0.1:{port}: is it running?"


async def test_something_else_is_there(opening: Opening) -> None:
    """Whoever gives the address of a web server would read about a parser."""

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(b"HTTP/1.1 404 Not Found\r\nContent-Length: 8\r\nConnection: close\r\n\r\n<p>?</p>")
        writer.close()

    async with await asyncio.start_server(answer, "127.0.0.1", 0) as server:
        port = server.sockets[0].getsockname()[1]
        async with opening(table, f"http://127.0.0.1:{port}") as store:
            with pytest.raises(Unavailable) as unavailable:
                await store.send(Query("A"))
    assert str(unavailable.value) == f"the server at 127.0.0.1:{port} is not DynamoDB"


async def test_something_that_never_answers(opening: Opening) -> None:
    """A query would wait for ever."""
    quiet = asyncio.Event()

    async def wait(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await quiet.wait()
        writer.close()

    async with await asyncio.start_server(wait, "127.0.0.1", 0) as server:
        port = server.sockets[0].getsockname()[1]
        started = asyncio.get_running_loop().time()
        async with opening(table, f"http://127.0.0.1:{port}", deadline=0.3) as store:
            with pytest.raises(TimedOut):
                await store.send(Query("A"))
        assert asyncio.get_running_loop().time() - started < 2
        quiet.set()


async def test_settings_of_aws_that_are_missing(opening: Opening, monkeypatch: pytest.MonkeyPatch) -> None:
    """`--store aws` on a machine without settings would end in a traceback."""
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
