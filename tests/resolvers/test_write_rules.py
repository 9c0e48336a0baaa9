"""The rules of a model on what is written: no write breaks one, whoever else writes, and the client gets its message."""

from __future__ import annotations

import asyncio
from decimal import Decimal
from enum import Enum
from typing import Any

import pytest

from keygraph import ID, Graph, Index, Many, Table, node, record, rule
from tests.conftest import MakeStore, on_exact_engines
from tests.keygraph.checked import mistakes
from tests.resolvers.worlds import World, world

by_state = Index("by-state", "state_key", "state_order")


class State(Enum):
    OPEN = "open"
    PAID = "paid"


@node(
    "ORDER#{order_id}",
    by_state("STATE#{state}", "{order_id}"),
    check=[
        rule({"total": {"gte": 0}}, "A total is not negative."),
        rule(
            {"or": [{"state": {"ne": State.PAID}}, {"total": {"gt": 0}}]},
            "Nothing is paid that costs nothing.",
        ),
        rule({"not": {"marks": {"contains": "bad"}}}, "No order is marked as bad."),
    ],
)
class Order:
    order_id: ID
    total: Decimal
    state: State = State.OPEN
    marks: set[str] | None = None
    note: str | None = None

    lines: Many[Line]


@record(
    "{order}",
    "LINE#{number}",
    check=[rule({"count": {"between": {"from": 1, "to": 9}}}, "A line has 1 to 9.")],
)
class Line:
    order: Order
    number: int
    count: int


@node(
    "SHELF#{shelf_id}",
    check=[
        rule(
            {"or": [{"is_full": {"eq": False}}, {"is_locked": {"eq": False}}]}, "What is full is not locked."
        ),
        rule({"or": [{"height": {"ne": 1}}, {"is_locked": {"eq": False}}]}, "What is low is not locked."),
    ],
)
class Shelf:
    shelf_id: ID
    height: int = 1
    is_full: bool = False
    is_locked: bool = False


graph = Graph(
    Table("Orders", partition_key="pk", sort_key="sk", indexes=[by_state]),
    Order,
    Line,
    Shelf,
    store_key_fields=False,
    writes=True,
).check()
_, LOW = (each.message for each in graph.types["Shelf"].rules)
NEGATIVE, NOTHING, BAD = (each.message for each in graph.types["Order"].rules)


@pytest.fixture
async def orders(make_store: MakeStore) -> World:
    made = world(graph, await make_store(graph.table))
    await made.ask('mutation { createOrder(input: {orderId: "1", total: "10"}) { order { total } } }')
    return made


async def refused(orders: World, document: str) -> list[Any]:
    answer = await orders.service.execute(f"mutation {{ {document} }}")
    return [
        (error["extensions"]["code"], error["message"], error["extensions"]["path"])
        for error in answer.get("errors", [])
    ]


async def test_what_the_input_decides_is_refused_at_once(orders: World) -> None:
    order = '%sOrder(input: {orderId: "2", %s}) { order { total } }'
    assert await refused(orders, order % ("create", 'total: "-1"')) == [
        ("BAD_USER_INPUT", NEGATIVE, ["input", "total"])
    ]
    assert await refused(orders, order % ("upsert", 'total: "0", state: PAID')) == [
        ("BAD_USER_INPUT", NOTHING, ["input"])
    ]
    lines = 'total: "1", lines: [{number: 1, count: 1}, {number: 2, count: 10}]'
    assert await refused(orders, order % ("create", lines)) == [
        ("BAD_USER_INPUT", "A line has 1 to 9.", ["input", "lines", 1, "count"])
    ]
    update = 'updateOrder(input: {orderId: "1", total: "-1"}) { order { total } }'
    assert await refused(orders, update) == [("BAD_USER_INPUT", NEGATIVE, ["input", "total"])]
    assert (await orders.ask('{ order(orderId: "2") { total } }'))["order"] is None


async def test_what_is_stored_decides_the_rest(orders: World) -> None:
    def update(said: str, name: str = "update") -> str:
        return f'{name}Order(input: {{orderId: "1", {said}}}) {{ order {{ total state }} }}'

    assert await refused(orders, update('add: {total: "-11"}')) == [
        ("CONFLICT", NEGATIVE, ["input", "add", "total"])
    ]
    assert await refused(orders, update('add: {total: "-10"}')) == []
    for name in ("update", "upsert"):
        needed = ', total: "0"' if name == "upsert" else ""
        [(code, message, path)] = await refused(orders, update(f"state: PAID{needed}", name))
        assert (message, path) == (NOTHING, ["input"])
        assert code == ("BAD_USER_INPUT" if needed else "CONFLICT")
    assert await refused(orders, update('total: "5"')) == []
    assert await refused(orders, update("state: PAID")) == []
    # The state stands in a key alone.
    assert await refused(orders, update('total: "0"')) == [("BAD_USER_INPUT", NOTHING, ["input"])]
    assert await refused(orders, update('add: {total: "-5"}')) == [("CONFLICT", NOTHING, ["input"])]
    assert await refused(orders, update('add: {marks: ["good", "bad"]}')) == [
        ("BAD_USER_INPUT", BAD, ["input", "add", "marks"])
    ]
    assert await refused(orders, update('add: {marks: ["good"]}')) == []


async def test_a_rule_that_is_broken_already_keeps_nobody_from_other_fields(orders: World) -> None:
    await orders.put(
        {
            "pk": "ORDER#3",
            "sk": "ORDER#3",
            "state_key": "STATE#open",
            "state_order": "3",
            "total": Decimal(-3),
        }
    )
    update = 'updateOrder(input: {orderId: "3", %s}) { order { total } }'
    assert await refused(orders, update % 'note: "x"') == []
    assert await refused(orders, update % 'total: "3"') == []


async def test_a_default_that_is_not_stored_counts(orders: World) -> None:
    await orders.put({"pk": "SHELF#1", "sk": "SHELF#1"})
    update = 'updateShelf(input: {shelfId: "1", %s}) { shelf { height isLocked } }'
    assert await refused(orders, update % "isFull: true") == []
    assert await refused(orders, update % "isLocked: true, isFull: false") == [("CONFLICT", LOW, ["input"])]
    assert await refused(orders, update % "height: 3") == []
    assert await refused(orders, update % "isLocked: true, isFull: false") == []


@on_exact_engines  # between moto's look at a condition and its write, another request can write
async def test_writers_at_the_same_time(orders: World) -> None:
    taken = 'updateOrder(input: {orderId: "1", add: {total: "-3"}}) { order { total } }'
    found = await asyncio.gather(*(refused(orders, taken) for _ in range(6)))
    left = (await orders.ask('{ order(orderId: "1") { total } }'))["order"]["total"]
    assert Decimal(left) == 10 - 3 * found.count([])
    assert Decimal(left) >= 0


def test_mistakes() -> None:
    good = rule({"name": {"ne": "x"}}, "No x.")

    @node(
        "A#{a_id}", check=[rule({"nam": {"eq": 1}}, "m"), rule({"name": {"eq": 1}}, "m"), rule({}, "m"), good]
    )
    class A:
        a_id: ID
        name: str
        tags: set[str]

    @node(
        "B#{b_id}",
        check=[
            rule({"tags": {"exists": True}}, "m"),
            rule({"name": "x"}, "m"),
            rule({"name": {"eq": "x"}}, ""),
        ],
    )
    class B:
        b_id: ID
        name: str
        tags: set[str] | None

    fix = 'Write it as a filter: rule({"total": {"gte": 0}}, "A total is not negative.").'
    assert mistakes(A, B) == [
        f"A: its rule 1 cannot be used: A has no field nam. {fix}",
        f"A: its rule 2 cannot be used: name.eq=1 is not a value of type string. {fix}",
        f"A: its rule 3 cannot be used: it says nothing, or has no message. {fix}",
        f"B: its rule 1 cannot be used: tags has no exists; it has contains. {fix}",
        f'B: its rule 2 cannot be used: name is not compared: write {{"name": {{"eq": …}}}}. {fix}',
        f"B: its rule 3 cannot be used: it says nothing, or has no message. {fix}",
    ]
