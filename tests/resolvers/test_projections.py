"""What is asked of each item: only what an operation selects, and what tells where an item belongs."""

from __future__ import annotations

from typing import Any

from keygraph.engines.dynamodb.requests import render
from tests.resolvers.worlds import World, loan_item, member_item


def projected(world: World) -> list[set[str] | None]:
    """The attributes that each request asks for; None for whole items."""
    wires = [wire for request in world.tracer.requests for wire in render(request, world.graph.table)]
    return [_names(wire.body) for wire in wires]


def _names(body: dict[str, Any]) -> set[str] | None:
    [*tables] = body.get("RequestItems", {"": body}).values()
    expression = tables[0].get("ProjectionExpression")
    if expression is None:
        return None
    names = tables[0].get("ExpressionAttributeNames", {})
    return {names.get(name.strip(), name.strip()) for name in expression.split(",")}


KEYS = {"PK", "SK", "Type"}
INDEX_KEYS = {"GSI1PK", "GSI1SK"}


async def test_only_what_is_selected_is_sent(shop: World) -> None:
    await shop.ask("{ users { nodes { name } } }")
    # The partition key of what is read is known.
    assert projected(shop) == [KEYS | {"GSI1SK", "name"}]


async def test_keys_of_an_index_that_tell_nothing_are_not_sent(shop: World) -> None:
    await shop.ask(
        '{ order(orderId: "ORD001") { items { edges { quantity } } } user(userId: "12345") { name } }'
    )
    assert all(asked is not None and not asked & INDEX_KEYS for asked in projected(shop))


async def test_one_answer_for_all_places_of_a_type(shop: World) -> None:
    document = """{ a: user(userId: "12345") { name } b: user(userId: "12345") { email }
      order(orderId: "ORD001") { customer { userType } total } }"""
    found = await shop.ask(document)
    assert (found["a"]["name"], found["b"]["email"]) == ("John Doe", "john@example.com")
    [asked, *later] = projected(shop)
    assert later == []
    # The customer may stand in the index's key alone.
    assert asked == KEYS | INDEX_KEYS | {"name", "email", "userType", "total", "customerId"}


async def test_a_condition_that_is_decided_here_has_what_it_asks(books: World) -> None:
    await books.put(member_item("ann"), loan_item("ann", "b", "2024-01-02", note="torn"))
    document = '{ member(memberId: "ann") { loans(where: {day: {gte: "2024-01-01"}}) { edges { cursor } } } }'
    assert len((await books.ask(document))["member"]["loans"]["edges"]) == 1
    found = [asked for asked in projected(books) if asked is not None and "GSI2SK" in asked]
    assert len(found) == 1
    assert "note" not in found[0]
