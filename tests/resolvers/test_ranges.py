"""What cannot be said of a list's sort key, ranges over shards, and moments; the judge asks for all other ranges."""

from __future__ import annotations

import json
from decimal import Decimal
from typing import Any

import pytest

from keygraph.dynamo.items import Item
from keygraph_examples.commerce import graph as commerce
from tests.conftest import MakeStore, in_one_world
from tests.resolvers.worlds import World, book_item, member_item, world


@pytest.fixture
async def stacks(books: World) -> World:
    """A book of which there may be copies, and a member who may visit rooms."""
    await books.put(book_item("b"), member_item("ann"))
    return books


@in_one_world(
    ("arguments", "message"),
    [
        ('shelf: {eq: "a"}', "shelf: floor comes before it in the key: give it with eq"),
        ('floor: {eq: 3}, shelf: {eq: "a", from: "b"}', "shelf: use eq, or from and to, or beginsWith"),
        ('floor: {eq: 3}, shelf: {beginsWith: "a", to: "b"}', "shelf: use eq, or from and to, or beginsWith"),
        ('floor: {eq: 3}, shelf: {eq: ""}', "shelf is empty"),
        ('floor: {eq: 3}, shelf: {beginsWith: ""}', "shelf is empty"),
        ("floor: {eq: null}", "floor.eq cannot be null"),
    ],
)
async def test_what_cannot_be_said(stacks: World, arguments: str, message: str) -> None:
    document = '{ book(bookId: "b") { copies(GIVEN) { totalCount } } }'.replace("GIVEN", arguments)
    assert await stacks.errors(document) == [("BAD_USER_INPUT", message)]
    assert "Count" not in stacks.operations


async def test_only_the_last_one_may_be_a_range(stacks: World) -> None:
    document = """{ member(memberId: "ann") {
      visits(room: "x", day: {from: "2024-01-01"}, minute: {eq: 5}) { nodes { minute } } } }"""
    message = "minute: day comes before it in the key and must use eq"
    assert await stacks.errors(document) == [("BAD_USER_INPUT", message)]


async def test_unordered_fields_offer_equality_alone(stacks: World) -> None:
    document = '{ book(bookId: "b") { copies(floor: {from: 3}) { totalCount } } }'
    assert await stacks.codes(document) == ["GRAPHQL_VALIDATION_FAILED"]


@pytest.mark.parametrize("shelf", ["x" * 1025, "é" * 512, "\ud800"])
@in_one_world("operator", ["eq", "from", "to", "beginsWith"])
async def test_arguments_that_no_key_can_have(stacks: World, shelf: str, operator: str) -> None:
    document = """query ($shelf: StringRange) {
      book(bookId: "b") { copies(floor: {eq: 3}, shelf: $shelf) { nodes { floor } } } }"""
    stacks.forget()
    assert await stacks.codes(document, shelf={operator: shelf}) == ["BAD_USER_INPUT"]
    assert "Query" not in stacks.operations


@in_one_world("room", ["", "y#ROOM#z", "x" * 3000, "\ud800"])
async def test_required_arguments_that_make_no_key(stacks: World, room: str) -> None:
    document = """query ($room: String!) { member(memberId: "ann") { visits(room: $room) { totalCount } } }"""
    codes = await stacks.codes(document, room=room)
    assert codes in (["BAD_USER_INPUT"], []) if room == "y#ROOM#z" else codes == ["BAD_USER_INPUT"]


def event(timestamp: int, number: int) -> Item:
    return {
        "PK": f"USER#u#SHARD{number % 5}",
        "SK": f"ACTIVITY#{timestamp:013d}",
        "Type": "UserActivity",
        "userId": "u",
        "timestamp": Decimal(timestamp),
        "action": f"a{number}",
        "CreatedAt": "2024-01-01T00:00:00Z",
    }


async def test_ranges_over_shards(make_store: MakeStore) -> None:
    shop = world(commerce, await make_store(commerce.table))
    user = {
        "PK": "USER#u",
        "SK": "USER#u",
        "Type": "User",
        "userId": "u",
        "name": "U",
        "email": "u@example.com",
    }
    items: list[Item] = [event(1000 + 7 * number, number) for number in range(20)]
    await shop.put({**user, "userType": "seller", "CreatedAt": "2024-01-01T00:00:00Z"}, *items)
    document = """query ($range: LongRange, $direction: SortDirection) { user(userId: "u") {
      activities(timestamp: $range, direction: $direction) { totalCount nodes { timestamp } } } }"""

    async def found(direction: str, **range_: int | str) -> tuple[int, list[int]]:
        answer: Any = await shop.ask(document, range=range_, direction=direction)
        activities = answer["user"]["activities"]
        return activities["totalCount"], [node["timestamp"] for node in activities["nodes"]]

    stamps = [1000 + 7 * number for number in range(20)]
    assert await found("ASC", **{"from": 1014, "to": 1035}) == (4, stamps[2:6])
    assert await found("DESC", **{"from": "1014", "to": "1035"}) == (4, stamps[5:1:-1])
    assert await found("ASC", eq=1007) == (1, [1007])
    assert await found("ASC", to=999) == (0, [])
    assert await found("ASC", **{"from": 10**20}) == (0, [])


@in_one_world(
    ("said", "wanted"),
    [
        ({"eq": "2024-01-20T12:00:00Z"}, 1),
        ({"eq": "2024-01-20T13:00:00+01:00"}, 1),
        ({"eq": "2024-01-20T12:00:00"}, 0),
        ({"from": "2024-01-20T12:00:00Z", "to": "2024-01-20T12:00:00Z"}, 1),
        ({"from": "2024-01-20T12:00:01Z"}, 0),
        ({"from": "2024-01-21T01:00:00+14:00"}, 1),
    ],
)
async def test_moments(shop: World, said: dict[str, str], wanted: int) -> None:
    await shop.put(
        {
            "PK": "ORDER#only",
            "SK": "ORDER#only",
            "Type": "Order",
            "orderId": "only",
            "customerId": "solo",
            "total": Decimal(1),
            "status": "shipped",
            "orderDate": "2024-01-20T12:00:00Z",
            "GSI1PK": "USER#solo",
            "GSI1SK": "ORDER#2024-01-20T12:00:00Z",
        },
        {"PK": "USER#solo", "SK": "USER#solo", "Type": "User", "userId": "solo"},
    )
    document = """query ($date: DateTimeRange) {
      user(userId: "solo") { orders(orderDate: $date) { totalCount nodes { orderId } } } }"""
    orders = (await shop.ask(document, date=said))["user"]["orders"]
    assert (orders["totalCount"], [node["orderId"] for node in orders["nodes"]]) == (
        wanted,
        ["only"] * wanted,
    )


@in_one_world(
    "moment",
    [
        "0001-01-01T00:00:00+14:00",
        "9999-12-31T23:59:59-14:00",
        "2024-13-01",
        "now",
        "",
        "2024-02-30T00:00:00Z",
    ],
)
async def test_moments_that_are_none(shop: World, moment: str) -> None:
    document = """query ($date: DateTimeRange) { user(userId: "12345") {
      orders(orderDate: $date) { totalCount } } }"""
    assert await shop.codes(document, date={"eq": moment}) == ["BAD_USER_INPUT"]
    literal = document.replace("query ($date: DateTimeRange)", "").replace(
        "$date", "{eq: MOMENT}".replace("MOMENT", json.dumps(moment))
    )
    assert await shop.codes(literal) == ["GRAPHQL_VALIDATION_FAILED"]
