"""How an operation reads: when its requests leave, and what becomes of those that fail, hang or were for nothing."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from keygraph.dynamo.store import BatchGet, Count, Query, Request
from keygraph.errors import Throttled, Unavailable
from keygraph_resolvers.naming.global_ids import global_id
from tests.conftest import in_one_world
from tests.resolvers.test_request_counts import line_item, order_item, product_item, user_item
from tests.resolvers.worlds import World, world
from tests.tracing import Before, HeldStore

pytestmark = pytest.mark.parametrize("engine", ["sqlite"])  # what is asked, not how it is answered


def held(shop: World, before: Before) -> World:
    """The same shop; what is asked of it is remembered when it is asked."""
    return world(shop.graph, HeldStore(shop.tracer.store, before))


async def answer(shop: World, document: str) -> dict[str, Any]:
    """The answer; a test that waits longer hangs."""
    return await asyncio.wait_for(shop.service.execute(document), 10)


def codes(found: dict[str, Any]) -> list[tuple[list[Any], str]]:
    return [(error["path"], error["extensions"]["code"]) for error in found.get("errors", [])]


@pytest.fixture
async def shop(empty_shop: World) -> World:
    """Two users with two orders each, of two products; every product is there but p3."""
    for user in ("u0", "u1"):
        await empty_shop.put(user_item(user))
        for order in (0, 1):
            name = f"{user}o{order}"
            lines = [line_item(name, f"p{2 * order + line}") for line in (0, 1)]
            await empty_shop.put(order_item(name, user, order), *lines)
    await empty_shop.put(*(product_item(f"p{number}") for number in (0, 1, 2)))
    return empty_shop


# --- When requests leave --------------------------------------------------------------------------------


async def test_a_node_and_its_lists_are_one_round_trip(shop: World) -> None:
    together = asyncio.Event()
    waiting: list[Request[Any]] = []

    async def before(request: Request[Any]) -> None:
        waiting.append(request)
        if len(waiting) == 3:
            together.set()
        await together.wait()

    document = '{ user(userId: "u0") { name orders { totalCount nodes { orderId } } } }'
    found = await answer(held(shop, before), document)
    orders = {"totalCount": 2, "nodes": [{"orderId": "u0o0"}, {"orderId": "u0o1"}]}
    assert found == {"data": {"user": {"name": "Name of u0", "orders": orders}}}
    assert {type(request) for request in waiting} == {BatchGet, Query, Count}


async def test_a_slow_list_that_leads_to_no_node_is_not_waited_for(shop: World) -> None:
    seen = asyncio.Event()

    async def before(request: Request[Any]) -> None:
        if isinstance(request, Query):
            await seen.wait()
        elif isinstance(request, BatchGet) and request.keys[0][0] == "USER#u0":
            seen.set()

    document = """{ user(userId: "u1") { orders { nodes { orderId total } } }
                    product(productId: "p0") { seller { name } } }"""
    found = await answer(held(shop, before), document)
    assert found["data"]["product"] == {"seller": {"name": "Name of u0"}}
    assert [order["orderId"] for order in found["data"]["user"]["orders"]["nodes"]] == ["u1o0", "u1o1"]


async def test_what_was_read_ahead_under_a_missing_node(shop: World) -> None:
    corrupt = {**order_item("x", "ghost", 1), "total": "much"}
    await shop.put(order_item("y", "ghost", 0), corrupt)
    shop.forget()
    document = """{ user(userId: "ghost") { name orders { totalCount nodes { total items { nodes { name } } } } }
                    product(productId: "p3") { productId } }"""
    assert await answer(shop, document) == {"data": {"user": None, "product": None}}
    assert shop.operations["Query"] >= 1


# --- What fails -----------------------------------------------------------------------------------------

WIDE = """{ users { nodes { name orders { totalCount nodes { total customer { email } items { nodes { name } } } } } }
            product(productId: "p0") { name seller { name } } }"""
FAILURES = [Throttled("much"), Unavailable("off"), RuntimeError("secret"), asyncio.CancelledError()]


@pytest.mark.parametrize("failure", FAILURES, ids=lambda failure: type(failure).__name__)
@in_one_world("number", range(12))
async def test_one_request_that_fails(shop: World, failure: BaseException, number: int) -> None:
    left = number

    async def before(request: Request[Any]) -> None:
        nonlocal left
        left -= 1
        if left == -1:
            raise failure

    whole = (await answer(shop, WIDE))["data"]
    found = await answer(held(shop, before), WIDE)
    allowed = {
        "Throttled": {"THROTTLED"},
        "Unavailable": {"UNAVAILABLE"},
        "RuntimeError": {"INTERNAL"},
        "CancelledError": {"TIMEOUT"},
    }[type(failure).__name__]
    assert {code for _, code in codes(found)} <= allowed
    assert "secret" not in str(found)
    if found["data"] is not None:
        paths = {path[0] for path, _ in codes(found)}
        assert {key: found["data"][key] for key in whole if key not in paths} == {
            key: whole[key] for key in whole if key not in paths
        }
    assert ("errors" in found) or found["data"] == whole


async def test_what_was_given_up_is_asked_for_again(shop: World) -> None:
    is_first = True

    async def before(request: Request[Any]) -> None:
        nonlocal is_first
        if is_first and isinstance(request, BatchGet):
            is_first = False
            raise asyncio.CancelledError

    document = """{ product(productId: "p0") { name }
                    user(userId: "u0") { orders { nodes { items { edges { node { name } } } } } } }"""
    found = await answer(held(shop, before), document)
    assert codes(found) == [(["product"], "TIMEOUT"), (["user"], "TIMEOUT")]
    document = """{ product(productId: "p0") { name }
                    users { nodes { orders { nodes { items { nodes { name } } } } } } }"""
    is_first = True
    found = await answer(held(shop, before), document)
    assert codes(found) == [(["product"], "TIMEOUT")]
    orders = found["data"]["users"]["nodes"][0]["orders"]["nodes"]
    assert [[node["name"] for node in order["items"]["nodes"]] for order in orders] == [
        ["Name of p0", "Name of p1"],
        ["Name of p2"],
    ]


async def test_an_operation_that_is_cancelled(shop: World) -> None:
    started, released = asyncio.Event(), asyncio.Event()

    async def before(request: Request[Any]) -> None:
        started.set()
        await released.wait()

    others = asyncio.all_tasks()
    slow = held(shop, before)
    operation = asyncio.ensure_future(slow.service.execute(WIDE))
    await started.wait()
    for _ in range(5):
        await asyncio.sleep(0)
    asked = len(slow.tracer.requests)
    operation.cancel()
    with pytest.raises(asyncio.CancelledError):
        await operation
    released.set()
    await asyncio.wait_for(asyncio.gather(*(asyncio.all_tasks() - others)), 5)
    assert len(slow.tracer.requests) == asked == 2


async def test_nodes_that_cannot_be_read(shop: World) -> None:
    async def before(request: Request[Any]) -> None:
        if isinstance(request, BatchGet) and request.keys[0][0].startswith("PRODUCT"):
            raise Throttled("much")

    document = '{ order(orderId: "u0o0") { items { nodes { name } } } }'
    found = await answer(held(shop, before), document)
    assert found["data"] == {"order": {"items": None}}
    assert codes(found) == [(["order", "items", "nodes", 0], "THROTTLED")]


async def test_edges_that_cannot_be_got_are_not_said_to_be_too_many(shop: World) -> None:
    async def before(request: Request[Any]) -> None:
        if isinstance(request, BatchGet) and any(key[1] == "PRODUCT#p0" for key in request.keys):
            raise Unavailable("gone")

    wanted = global_id(shop.graph.types["Product"], ("p0",))
    document = '{ order(orderId: "u0o0") { orderId items(to: ["ID"]) { totalCount nodes { productId } } } }'
    found = await answer(held(shop, before), document.replace("ID", wanted))
    assert found["data"] == {"order": None}
    assert [error["extensions"]["code"] for error in found["errors"]] == ["UNAVAILABLE"]
    alone = '{ order(orderId: "u0o0") { items(to: ["ID"]) { totalCount } } }'
    found = await answer(held(shop, before), alone.replace("ID", wanted))
    assert found["errors"][0]["extensions"]["code"] == "UNAVAILABLE"
    assert "extensions" not in found
