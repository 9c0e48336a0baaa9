"""Items told apart by the beginning of an attribute, such as an index key, or by whether they have it.

A table of a shop: its keys are plain ids, so that customers and orders differ in the head of an index key alone, and
orders that are closed in having an attribute.
"""

from __future__ import annotations

from decimal import Decimal
from typing import Any

import pytest

from keygraph import ID, Graph, Index, Many, Table, node, record, stored
from keygraph.dynamo.items import Item
from keygraph.dynamo.store import Count
from tests.conftest import MakeStore
from tests.keygraph.checked import mistakes
from tests.resolvers.worlds import World, filled, world
from tests.verified import verified

by_kind = Index("by-kind", "Kind", "KindSort", projection=["total", "closedAt"])
IS_ORDER = {"beginsWith": "ORDER#"}


@node("{customer_id}", by_kind("CUSTOMER", "{name}", lists="customers"), type={"Kind": "CUSTOMER"})
class Customer:
    customer_id: ID
    name: str
    orders: Many[Order]
    closed_orders: Many[ClosedOrder]


@node("{order_id}", by_kind("ORDER#{customer}", "{order_id}"), type={"Kind": IS_ORDER, "closedAt": None})
class Order:
    order_id: ID
    customer: Customer
    total: int
    labels: Many[Label]


@node(
    "{order_id}",
    by_kind("ORDER#{customer}", "{order_id}"),
    type={"Kind": IS_ORDER, "closedAt": {"exists": True}},
)
class ClosedOrder:
    order_id: ID
    customer: Customer
    total: int
    closed_at: str = stored("closedAt")


@record("{order}", "LABEL#{number}", type={"code": {"beginsWith": "L-"}})
class Label:
    order: Order
    number: int
    code: str


TABLE = Table("Kinds", partition_key="PK", sort_key="SK", indexes=[by_kind])
graph = Graph(TABLE, Customer, Order, ClosedOrder, Label, separator="#", writes=True)


def row(key: str, kind: str, **values: Any) -> Item:
    return {"PK": key, "SK": key, "Kind": kind, "KindSort": key, **values}


ORDER_OF_C1 = {"customer_id": "c1"}
ITEMS: list[Item] = [
    {**row("c1", "CUSTOMER", name="Ada"), "KindSort": "Ada"},
    row("o1", "ORDER#c1", total=Decimal(1), **ORDER_OF_C1),
    row("o2", "ORDER#c1", total=Decimal(2), closedAt="2024", **ORDER_OF_C1),
    row("o3", "ORDER#c1", total=Decimal(3), closedAt=None, **ORDER_OF_C1),
    row("x1", "PARCEL#1"),
    {"PK": "o1", "SK": "LABEL#1", "code": "L-7"},
    {"PK": "o1", "SK": "LABEL#2", "code": "X-7"},
]

shop = filled(graph, ITEMS)


@pytest.mark.parametrize(
    ("asked", "wanted"),
    [
        ('customer(customerId: "c1") { name orders { totalCount nodes { orderId total } } closedOrders { nodes { closedAt } } }',
            {"customer": {"name": "Ada", "closedOrders": {"nodes": [{"closedAt": "2024"}]},
             "orders": {"totalCount": 2, "nodes": [{"orderId": "o1", "total": 1}, {"orderId": "o3", "total": 3}]}}}),
        ('order(orderId: "o2") { total } other: order(orderId: "c1") { total } closedOrder(orderId: "o2") { customer { name } }',
            {"order": None, "other": None, "closedOrder": {"customer": {"name": "Ada"}}}),
        ('customers { totalCount nodes { customerId } } order(orderId: "o1") { labels { totalCount nodes { code } } }',
            {"customers": {"totalCount": 1, "nodes": [{"customerId": "c1"}]},
             "order": {"labels": {"totalCount": 1, "nodes": [{"code": "L-7"}]}}}),
    ],
)  # fmt: skip
async def test_reads(shop: World, asked: str, wanted: dict[str, Any]) -> None:
    assert await shop.ask(f"{{ {asked} }}") == wanted


@pytest.mark.parametrize(
    "asked",
    [
        'order(orderId: "o1") { labels { totalCount } }',
        'customer(customerId: "c1") { orders { totalCount } }',
    ],
)
async def test_the_store_counts(shop: World, asked: str) -> None:
    shop.forget()
    await shop.ask(f"{{ {asked} }}")
    assert any(isinstance(request, Count) for request in shop.tracer.requests)


@pytest.mark.parametrize(
    ("asked", "wanted"),
    [
        ('createOrder(input: {orderId: "o9", customerId: "c1", total: 9}) { order { total customer { name } } }',
            {"createOrder": {"order": {"total": 9, "customer": {"name": "Ada"}}}}),
        ('createClosedOrder(input: {orderId: "o9", customerId: "c1", total: 9, closedAt: "now"}) { closedOrder { total } }',
            {"createClosedOrder": {"closedOrder": {"total": 9}}}),
        ('createOrder(input: {orderId: "o9", customerId: "o1", total: 9}) { order { total } }', "NOT_FOUND"),
        ('updateOrder(input: {orderId: "o2", total: 9}) { order { total } }', "NOT_FOUND"),
        ('deleteOrder(input: {orderId: "c1"}) { clientMutationId }', "NOT_FOUND"),
        ('createOrder(input: {orderId: "o2", customerId: "c1", total: 9}) { order { total } }', "ALREADY_EXISTS"),
        ('updateClosedOrder(input: {orderId: "o2", total: 9}) { closedOrder { total closedAt } }',
            {"updateClosedOrder": {"closedOrder": {"total": 9, "closedAt": "2024"}}}),
        ('updateClosedOrder(input: {orderId: "o2", closedAt: null}) { closedOrder { total } }', "BAD_USER_INPUT"),
        ('putLabel(input: {orderId: "o1", number: 1, code: "X"}) { label { code } }', "BAD_USER_INPUT"),
        ('updateLabel(input: {orderId: "o1", number: 1, code: "X"}) { label { code } }', "BAD_USER_INPUT"),
        ('updateLabel(input: {orderId: "o1", number: 1, code: "L-8"}) { label { code } }', {"updateLabel": {"label": {"code": "L-8"}}}),
    ],
)  # fmt: skip
async def test_writes(shop: World, asked: str, wanted: Any) -> None:
    document = f"mutation {{ {asked} }}"
    assert (await (shop.codes if isinstance(wanted, str) else shop.ask)(document)) in (wanted, [wanted])


async def test_verify(shop: World) -> None:
    report = await verified(graph, shop.tracer.store)
    declared = "the declared ones: CUSTOMER, L-…, ORDER#…, ORDER#… and any closedAt"
    assert [kind.what for kind, _ in report.ordered()] == [
        f"no declared type has its Kind and closedAt and code ({declared})"
    ]


def test_types_that_writes_would_not_keep() -> None:
    """What a type says of its items must be so after every write."""

    @node("HEAD#{key}", by_kind("H#{key}", "{key}"), type={"Kind": {"beginsWith": "HEAD#"}})
    class OtherHead:
        key: ID

    @node("PART#{key}", by_kind("P#{key}", "{part}"), type={"Kind": {"exists": True}})
    class MayLack:
        key: ID
        part: str | None

    @node("DONE#{key}", type={"done": {"exists": True}})
    class MayBeNull:
        key: ID
        done: str | None

    @node("NONE#{key}", type={"other": {"beginsWith": "x"}})
    class Unwritten:
        key: ID

    @node("FREE#{key}", type={"done": {"exists": False}})
    class Both:
        key: ID
        done: str | None

    @node("READ#{key}", type={"other": {"beginsWith": "x"}}, writes=["update", "delete"])
    class ReadAlone:
        key: ID

    @node("LATE#{key}", type={"done": {"exists": True}}, writes=["update"])
    class Changed:
        key: ID
        done: str | None

    @node("WORD#{key}", by_kind("H#{key}", "{key}"), type={"Kind": "WORD"})
    class OtherWord:
        key: ID

    @node("COIN#{key}", type={"done": "gold"})
    class OtherDefault:
        key: ID
        done: str = "iron"

    @node("END#{key}", type={"of": "END#1"}, writes=["update"])
    class AtEnd:
        key: ID
        of: Both = stored("of")

    said = "type= says that its"
    types = (
        OtherHead,
        MayLack,
        MayBeNull,
        Unwritten,
        Both,
        ReadAlone,
        Changed,
        OtherWord,
        OtherDefault,
        AtEnd,
    )
    assert mistakes(*types, table=TABLE) == [
        f"OtherHead: {said} Kind begins with HEAD#, and its template is H#{{key}}. Begin the template with that text.",
        f"MayLack: {said} items have Kind, and part may be absent. Remove | None from part.",
        f"MayBeNull: {said} items have done, and done may be absent. Remove | None from done.",
        f"Unwritten: {said} other begins with x, and nothing writes that. "
        "Store a text field in other, give it a template, or declare writes=False.",
        f"Both: {said} items have no done, and done is stored there. Store it elsewhere, or change type=.",
        f"Changed: {said} items have done, and done may be absent. Remove | None from done.",
        f"OtherWord: {said} Kind is WORD, and its template is H#{{key}}. Make that text the template.",
        "OtherDefault: the default of done, which type= is about, would make an item of another type. Change the default.",
        f"AtEnd: {said} of is END#1, and of is stored there. Store it elsewhere, or change type=.",
    ]


async def test_no_write_makes_an_item_of_a_special_type(make_store: MakeStore) -> None:
    """Who may write lines would make gifts otherwise."""

    @node("{key}", by_kind("{shelf}", "{key}"), type={"kind": "line"})
    class Line:
        key: ID
        wrap: str | None = None
        shelf: str | None = None

    @node("{key}", type={"kind": "line", "wrap": "gift"})
    class Gift:
        key: ID

    @node("{key}", by_kind("TOP#{rank}", "{key}"), type={"kind": "line", "Kind": {"beginsWith": "TOP#"}})
    class Top:
        key: ID
        rank: int

    for special, given in ((Gift, 'wrap: "gift"'), (Top, 'shelf: "TOP#1"')):
        shop = world(Graph(TABLE, Line, special, writes=True).check(), await make_store(TABLE))
        await shop.ask(
            'mutation { createLine(input: {key: "1", wrap: "box", shelf: "a"}) { line { wrap } } }'
        )
        for verb, key in (("create", 2), ("upsert", 1), ("upsert", 2), ("update", 1)):
            document = f'mutation {{ {verb}Line(input: {{key: "{key}", {given}}}) {{ line {{ wrap }} }} }}'
            assert await shop.errors(document) == [("BAD_USER_INPUT", "That would be no Line.")]
        await shop.ask('mutation { updateLine(input: {key: "1", wrap: null, shelf: "b"}) { line { wrap } } }')
        assert await shop.ask('{ line(key: "1") { wrap shelf } }') == {"line": {"wrap": None, "shelf": "b"}}


@pytest.mark.parametrize("attribute", [None, "kind"])
async def test_a_field_in_the_type_attribute(attribute: str | None, make_store: MakeStore) -> None:
    """No write makes an item of no type, or stores another value than it was given; nor does one that empties a key."""

    @node(
        "COIN#{coin_id}",
        by_kind("COIN", "{name}"),
        type={"Kind": "COIN", "kind": "gold"} if attribute is None else "gold",
    )
    class Coin:
        coin_id: ID
        kind: str = "gold"
        name: str | None = None

    shop = world(Graph(TABLE, Coin, type_attribute=attribute, writes=True), await make_store(TABLE))
    made = await shop.ask('mutation { createCoin(input: {coinId: "1", name: "a"}) { coin { kind name } } }')
    assert made == {"createCoin": {"coin": {"kind": "gold", "name": "a"}}}
    for refused, coin in (("create", 2), ("upsert", 1), ("upsert", 2), ("update", 1)):
        given = f'{{coinId: "{coin}", kind: "iron"}}'
        document = f"mutation {{ {refused}Coin(input: {given}) {{ coin {{ kind }} }} }}"
        assert await shop.codes(document) == ["BAD_USER_INPUT"]
    assert await shop.codes(
        'mutation { updateCoin(input: {coinId: "1", kind: null}) { coin { kind } } }'
    ) == ["BAD_USER_INPUT"]
    await shop.ask('mutation { updateCoin(input: {coinId: "1", name: null}) { coin { kind } } }')
    assert await shop.ask('{ coin(coinId: "1") { kind name } }') == {"coin": {"kind": "gold", "name": None}}
