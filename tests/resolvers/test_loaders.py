"""The loaders of a request: batches of a level, and waiters that cannot harm each other."""

from __future__ import annotations

import asyncio
import gc
from collections import deque
from collections.abc import Awaitable, Callable, Sequence
from typing import Any

import pytest

from keygraph import ID, Graph, Many, node, record
from keygraph.dynamo.items import Item
from keygraph.dynamo.store import Answer, Batch, BatchGet, Cost, Page, Query, Request
from keygraph.dynamo.table import Key, Table
from keygraph.errors import BadUserInput, Unavailable
from keygraph.lists.extent import Extent
from keygraph.lists.query import ListForm, ListQuery
from keygraph_examples.commerce import graph as commerce
from keygraph_resolvers import Service, build_schema
from keygraph_resolvers.errors import UnexpectedError
from keygraph_resolvers.read.loaders import Arrived, NeighbourLoader, NodeLoader
from tests.resolvers.worlds import SECRET, shop_items

Handler = Callable[[Request[Any]], Awaitable[Any]]


class HandledStore:
    """A store whose answers are a function's; it remembers what was asked."""

    def __init__(self, answer: Handler) -> None:
        self.answer = answer
        self.requests: list[Request[Any]] = []

    @property
    def table(self) -> Table:
        return commerce.table

    async def send(self, request: Request[Answer], /) -> Answer:
        self.requests.append(request)
        answer: Answer = await self.answer(request)
        return answer

    async def close(self) -> None:
        pass


def key(name: str) -> Key:
    return (f"USER#{name}", f"USER#{name}")


def item(of: Key) -> Item:
    return {"PK": of[0], "SK": of[1]}


async def found(request: Request[Any]) -> Any:
    """Every item that is asked for, after a while."""
    await asyncio.sleep(0.01)
    assert isinstance(request, BatchGet)
    return Batch([item(each) for each in request.keys], Cost())


def keys_of(store: HandledStore) -> list[Sequence[Key]]:
    return [request.keys for request in store.requests if isinstance(request, BatchGet)]


async def get(nodes: NodeLoader, *names: str) -> list[Any]:
    """The items of these nodes, or what getting them gave, as an execution waits for them."""
    futures = nodes.load_batch([key(name) for name in names])
    await asyncio.wait(futures)
    return [future.exception() or future.result() for future in futures]


async def test_keys_that_are_loaded_together_are_one_batch() -> None:
    store = HandledStore(found)
    names = ["a", "b", "a", "c", "b"]
    assert await get(NodeLoader(store), *names) == [item(key(name)) for name in names]
    assert keys_of(store) == [(key("a"), key("b"), key("c"))]


@pytest.mark.parametrize("rounds", range(8))
async def test_a_cancelled_waiter_leaves_the_others(rounds: int) -> None:
    store = HandledStore(found)
    nodes = NodeLoader(store)
    waiters = [asyncio.ensure_future(get(nodes, "a")) for _ in range(3)]
    for _ in range(rounds):
        await asyncio.sleep(0)
    waiters[0].cancel()
    answers = await asyncio.wait_for(asyncio.gather(*waiters, return_exceptions=True), 5)
    assert isinstance(answers[0], asyncio.CancelledError)
    assert answers[1:] == [[item(key("a"))]] * 2
    assert await get(nodes, "a") == [item(key("a"))]
    assert keys_of(store) == [(key("a"),)]


async def test_a_failing_key_fails_alone() -> None:
    async def refuses(request: Request[Any]) -> Any:
        assert isinstance(request, BatchGet)
        if key("bad") in request.keys:
            raise BadUserInput("a bad key")
        return await found(request)

    store = HandledStore(refuses)
    names = [str(number) for number in range(99)]
    answers = await get(NodeLoader(store), *names[:70], "bad", *names[70:])
    assert isinstance(answers.pop(70), BadUserInput)
    assert answers == [item(key(name)) for name in names]
    # Halves of halves, until the key is alone.
    assert len(store.requests) <= 1 + 2 * 7


@pytest.mark.parametrize(
    ("error", "kept"),
    [(Unavailable("gone"), Unavailable), (ZeroDivisionError("a fault of ours"), UnexpectedError)],
)
async def test_a_failing_store_fails_once(error: Exception, kept: type[Exception]) -> None:
    async def fails(request: Request[Any]) -> Any:
        raise error

    store = HandledStore(fails)
    nodes = NodeLoader(store)
    answers = await get(nodes, *"abc")
    assert answers == [answers[0]] * 3
    assert (type(answers[0]), answers[0].__traceback__) == (kept, None)
    assert len(store.requests) == 1


@node("SENSOR#{sensor_id}")
class Sensor:
    sensor_id: ID
    readings: Many[Reading]


@record("READINGS#{sensor}#{shard}", "{day}", shards=4)
class Reading:
    sensor: Sensor
    day: ID


sensors = Graph(Table("Sensors", partition_key="PK", sort_key="SK"), Sensor, Reading)


def orders_of(user: str) -> ListQuery:
    orders = commerce.node_lists["User", "orders"]
    return ListForm(commerce, orders, extent=Extent(5)).of((user,))


def readings_of(sensor: str) -> ListQuery:
    return ListForm(sensors, sensors.node_lists["Sensor", "readings"], extent=Extent(5)).of((sensor,))


async def page(lists: NeighbourLoader, user: str) -> Any:
    """A page of a user's orders, as whoever may be cancelled alone waits for it."""
    found = lists.ask(orders_of(user))
    return found.answer if isinstance(found, Arrived) else (await asyncio.shield(found)).answer


@pytest.mark.parametrize("concurrency", [1, 64])
async def test_lists_fail_and_are_cancelled_alone(concurrency: int) -> None:
    async def answer(request: Request[Any]) -> Any:
        assert isinstance(request, Query)
        await asyncio.sleep(0.01)
        match request.partition:
            case "USER#bad":
                raise KeyError("unexpected")
            case "USER#gone":
                raise asyncio.CancelledError
        return Page([], 0, None, Cost())

    store = HandledStore(answer)
    lists = NeighbourLoader(store, concurrency)
    names = ["a", "bad", "gone", "b", "a"]
    waiters = [asyncio.ensure_future(page(lists, name)) for name in names]
    for _ in range(6):
        await asyncio.sleep(0)
    waiters[0].cancel()
    answers = await asyncio.wait_for(asyncio.gather(*waiters, return_exceptions=True), 5)
    assert [type(answer).__name__ for answer in answers] == [
        "CancelledError",
        "UnexpectedError",
        "TimedOut",
        "Found",
        "Found",
    ]
    assert len(store.requests) == 4


@pytest.mark.parametrize(("list_of", "concurrency"), [(orders_of, 1), (orders_of, 3), (readings_of, 8)])
async def test_no_more_lists_and_shards_at_once_than_allowed(
    list_of: Callable[[str], ListQuery], concurrency: int
) -> None:
    running, most = 0, 0

    async def answer(request: Request[Any]) -> Any:
        nonlocal running, most
        running += 1
        most = max(most, running)
        await asyncio.sleep(0.001)
        running -= 1
        return Page([], 0, None, Cost())

    lists = NeighbourLoader(HandledStore(answer), concurrency)
    await asyncio.gather(*(lists.load(list_of(str(n))) for n in range(12)))
    assert most == concurrency


# --- Through GraphQL, where what one field needs another one needs too ----------------------------------


def answers_from(items: list[Item], delay: float) -> Handler:
    by_key = {commerce.table.key_of(each): each for each in items}

    async def answer(request: Request[Any]) -> Any:
        await asyncio.sleep(delay)
        assert isinstance(request, BatchGet)
        return Batch([by_key.get(each) for each in request.keys], Cost())

    return answer


async def test_a_list_that_waits_for_a_longer_one_does_not_keep_that_waiting() -> None:
    async def answer(_: Request[Any]) -> Page:
        return Page([], 0, None, Cost())

    store = HandledStore(answer)
    lists = NeighbourLoader(store, 1)
    longer = [
        ListForm(commerce, commerce.node_lists["User", "orders"], extent=Extent(n)).of(("a",))
        for n in (1, 2, 3)
    ]
    async with asyncio.timeout(5):
        await asyncio.gather(*map(lists.load, [lists._keep_longest(each) for each in longer]))
    assert [request.limit for request in store.requests if isinstance(request, Query)] == [3]
    assert (lists._most, lists.tasks, lists._waiting) == (1, {}, deque())


@pytest.mark.long
async def test_a_failed_field_beside_a_shared_load() -> None:
    items = shop_items()
    broken = {
        **next(i for i in items if i["PK"] == "PRODUCT#ABC123" == i["SK"]),
        "PK": "PRODUCT#odd",
        "SK": "PRODUCT#odd",
    }
    broken["price"] = "none"
    store = HandledStore(answers_from([*items, broken], 0.01))
    service = Service(build_schema(commerce), store, secret=SECRET)
    document = """{
      a: product(productId: "odd") { seller { name } price }
      b: product(productId: "ABC123") { seller { name email } price }
      c: product(productId: "odd") { seller { email } price }
      d: user(userId: "67890") { name }
    }"""
    answer = await asyncio.wait_for(service.execute(document), 5)
    assert answer["data"] == {
        "a": None,
        "b": {"seller": {"name": "TechStore Inc", "email": "contact@techstore.com"}, "price": "199.99"},
        "c": None,
        "d": {"name": "TechStore Inc"},
    }
    assert [error["extensions"]["code"] for error in answer["errors"]] == ["CORRUPT_ITEM"] * 2
    await asyncio.sleep(0.03)
    gc.collect()
