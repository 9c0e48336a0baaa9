"""Counts and sums that nodes keep: every write of an item that is counted changes them in its own transaction."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

import pytest

from keygraph import ID, Graph, Index, Many, Table, average, counts, edge, many, node, record, sums
from keygraph.dynamo.actions import DeleteItem, Remove, SetTo, UpdateItem
from keygraph.dynamo.store import BatchGet, Query, Write
from keygraph.tables.findings import Report
from keygraph.tables.repair import Repairs
from keygraph.writing.requests import (
    Change,
    Create,
    Delete,
    Move,
    OnEdges,
    Put,
)
from keygraph.writing.sending.writer import write
from tests.conftest import ENGINES, MakeStore
from tests.keygraph.verified_net import told
from tests.keygraph.written import Written
from tests.tracing import HeldStore, TracingStore
from tests.verified import verified

pytestmark = pytest.mark.parametrize("engine", ENGINES)

by_place = Index("by-place", "gp", "gs")
by_due = Index("by-due", "dp", "ds")


@node("USER#{name}")
class User:
    name: ID
    town: str | None = None

    orders: Many[Order] = many(index=by_place)
    due: Many[Order] = many(index=by_due)
    friends: Many[Friend]
    feed: Many[Order | Note]
    orders_count: int | None = counts("orders")
    due_count: int = counts("due")
    spent: Decimal = sums("orders.total", "totals")
    friends_count: int = counts("friends")
    feed_size: int = counts("feed")
    memos: Many[Memo] = many(index=by_due)
    large_count: int = counts("orders", where={"total": {"gte": Decimal(5)}, "not": {"due_on": "never"}})
    due_total: Decimal = sums("orders.total", where={"due_on": {"exists": True}})
    mean_total: float | None = average("orders.total")
    memos_count: int | None = counts("memos")
    pages: int | None = sums("memos.pages")


@node("ORDER#{order_id}", by_place("{customer}", "ORDER#{order_id}"), by_due("{customer}", "{due_on}"))
class Order:
    order_id: ID
    customer: User
    total: Decimal | None = None
    due_on: str | None = None

    lines: Many[Line]
    pieces: int = sums("lines.quantity")


@record("NOTE#{note_id}", "NOTE", by_place("{author}", "NOTE#{note_id}"))
class Note:
    note_id: ID
    author: User | Team


@record("MEMO#{memo_id}", "MEMO", by_due("{holder}", "MEMO#{memo_id}"))
class Memo:
    memo_id: ID
    holder: User | None = None
    pages: int = 1


@node("TEAM#{name}")
class Team:
    name: ID


@node("PRODUCT#{sku}#{shard}", "PRODUCT", shards=3)
class Product:
    sku: ID

    lines: Many[Line]
    sold: int = sums("lines.quantity")


@edge("{order}", "LINE#{product.sku}", by_place("SOLD#{product.sku}", "{order}"))
class Line:
    order: Order
    product: Product
    quantity: int = 1


@edge("{one}", "FRIEND#{other.name}", mirror=True)
class Friend:
    one: User
    other: User


graph = Graph(
    Table("Shop", partition_key="pk", sort_key="sk", indexes=[by_place, by_due]),
    User,
    Order,
    Note,
    Product,
    Line,
    Friend,
    Team,
    Memo,
    type_attribute="kind",
).check()
user, order, note, product, line, friend, team, memo = graph.types.values()
ANN, BOB = ("Ann",), ("Bob",)


class Shop(Written):
    """A store with a writer, and what nodes keep."""

    async def kept(self, key: str, *names: str) -> list[Any]:
        """What a node keeps; nothing may be wrong with the table besides."""
        item = await self.item(key, key)
        assert item is not None
        return [item.get(name) for name in names]

    async def recounted(self, store: Any, segments: int = 1) -> Report:
        repairs = Repairs(graph, store, ["counts"], lambda kind, changes: None)
        return await verified(graph, store, segments=segments, repairs=repairs)

    async def change(self, key: str, change: Any) -> None:
        """Changes an item as nobody but a program without Keygraph does."""
        await self.store.send(Write(UpdateItem((key, key), (change,))))


@pytest.fixture
async def shop(make_store: MakeStore) -> Shop:
    shop = Shop(graph, await make_store(graph.table))
    await shop.write(*(Create(user, {"name": name}) for name in ("Ann", "Bob")))
    await shop.write(*(Create(product, {"sku": sku}) for sku in ("bell", "lock")))
    return shop


def new_order(order_id: str, total: Any = None, customer: tuple[str] = ANN) -> Create:
    values = {"order_id": order_id, "customer": customer, "total": total and Decimal(total)}
    return Create(order, values)


async def test_an_item_that_leaves_a_list_is_not_counted(shop: Shop) -> None:
    values = {"order_id": "1", "customer": ANN, "due_on": "2026-01-02"}
    await shop.write(Create(order, values), new_order("2"))
    assert await shop.kept("USER#Ann", "orders_count", "due_count") == [2, 1]
    await shop.write(Change(order, ("1",), {"due_on": None}))
    assert await shop.kept("USER#Ann", "orders_count", "due_count") == [2, 0]
    await shop.write(Change(order, ("2",), {"due_on": "2026-01-03"}))
    assert await shop.kept("USER#Ann", "orders_count", "due_count") == [2, 1]
    assert await shop.wrong() == []


async def test_an_item_of_a_node_of_another_type_is_not_counted(shop: Shop) -> None:
    await shop.write(Create(team, {"name": "Ann"}))
    await shop.write(Create(note, {"note_id": "n", "author": ("TEAM#Ann",)}))
    assert await shop.kept("USER#Ann", "feed_size") == [0]


class Busy:
    """The store of a shop in which somebody else writes after each read of a kind, as long as there is something to write."""

    def __init__(self, shop: Shop, kind: type[Any], others: list[Any]) -> None:
        self.shop, self.kind, self.others = shop, kind, others

    async def send(self, request: Any) -> Any:
        answer = await self.shop.store.send(request)
        if isinstance(request, self.kind) and self.others:
            await self.shop.write(self.others.pop())
        return answer


async def test_a_change_meanwhile_is_counted_once(shop: Shop) -> None:
    await shop.write(new_order("1", "2"))
    busy: Any = Busy(shop, BatchGet, [Change(order, ("1",), {"total": Decimal(5)})])
    await Shop(graph, busy).write(Change(order, ("1",), {"total": Decimal(6)}))
    assert await shop.kept("USER#Ann", "totals") == [6]
    assert await shop.wrong() == []


async def test_what_is_put_takes_the_place_of_what_was_there(shop: Shop) -> None:
    await shop.write(new_order("1"), Put(line, {"order": ("1",), "product": ("bell",), "quantity": 2}))
    for quantity, expected in ((2, 2), (5, 5), (1, 1)):
        await shop.write(Put(line, {"order": ("1",), "product": ("bell",), "quantity": quantity}))
        assert await shop.kept("ORDER#1", "pieces") == [expected]
    await shop.write(Move(line, ("1", "bell"), {"product": ("lock",)}))
    assert await shop.kept("ORDER#1", "pieces") == [1]
    assert await shop.wrong() == []


async def test_nodes_in_shards_are_found(shop: Shop) -> None:
    await shop.write(new_order("1"), new_order("2"))
    for order_id in ("1", "2"):
        await shop.write(Put(line, {"order": (order_id,), "product": ("bell",), "quantity": 4}))
    await shop.write(Delete(line, ("1", "bell")))
    keys = tuple(graph.table_keys(product, ("bell",)))
    items = (await shop.store.send(BatchGet(keys, consistent=True))).items
    assert [item["sold"] for item in items if item is not None] == [4]
    assert await shop.wrong() == []


async def test_what_is_created_together_is_counted_together(shop: Shop) -> None:
    lines = [Put(line, {"order": ("1",), "product": (sku,), "quantity": 3}) for sku in ("bell", "lock")]
    [made, *_] = await shop.write(new_order("1", "9"), Change(user, ANN, {"town": "Ulm"}), *lines)
    assert made.item is not None
    assert made.item["pieces"] == 6
    assert made.item == await shop.item("ORDER#1", "ORDER#1")
    assert await shop.kept("USER#Ann", "town", "orders_count", "totals") == ["Ulm", 1, 9]


async def test_a_create_that_is_counted_is_one_request(shop: Shop) -> None:
    traced = TracingStore(shop.store)
    own_note = Create(note, {"note_id": "n", "author": ("USER#Ann",)})
    for request, count in (
        (new_order("1", "2"), 1),
        (Change(order, ("1",), {"total": Decimal(1)}), 2),
        (own_note, 1),
        (Delete(note, ("n",)), 2),
    ):
        traced.requests.clear()
        await write(graph, traced, [request])
        assert len(traced.requests) == count


async def test_a_deleted_node_takes_its_edges_from_the_counts_of_others(shop: Shop) -> None:
    names = [f"U{number}" for number in range(45)]
    await shop.write(*(Create(user, {"name": name}) for name in names))
    for some in (names[:20], names[20:40], names[40:]):
        await shop.write(*(Put(friend, {"one": ANN, "other": (name,)}) for name in some))
    assert await shop.kept("USER#Ann", "friends_count") == [45]
    [done] = await shop.write(Delete(user, ANN, on_edges=OnEdges.DETACH))
    assert done.detached == 45
    assert [await shop.kept(f"USER#{name}", "friends_count") for name in names] == [[0]] * 45
    assert await shop.wrong() == []


async def test_what_goes_and_what_comes_in_one_write_are_added_up(shop: Shop) -> None:
    await shop.write(Put(friend, {"one": ANN, "other": BOB}), Create(user, {"name": "Cy"}))
    await shop.write(Delete(user, ANN, on_edges=OnEdges.DETACH), Put(friend, {"one": ("Cy",), "other": BOB}))
    assert [await shop.kept(f"USER#{name}", "friends_count") for name in ("Bob", "Cy")] == [[1], [1]]
    assert await shop.wrong() == []


async def test_an_edge_whose_mirror_is_missing_can_be_deleted(shop: Shop) -> None:
    """Its mirror is in no list, so nothing is taken from the count there."""
    await shop.write(Put(friend, {"one": ANN, "other": BOB}))
    await shop.store.send(Write(DeleteItem(("USER#Bob", "FRIEND#Ann"))))
    await shop.write(Delete(friend, ("Ann", "Bob")))
    assert await shop.kept("USER#Ann", "friends_count") == [0]
    assert await shop.kept("USER#Bob", "friends_count") == [1]
    assert await shop.item("USER#Ann", "FRIEND#Bob") is None


async def test_an_unknown_number_stays_unknown(shop: Shop) -> None:
    await shop.write(new_order("1", "2"))
    await shop.change("USER#Ann", Remove(("orders_count",)))
    await shop.write(new_order("2", "3"))
    assert await shop.kept("USER#Ann", "orders_count", "totals") == [None, 5]
    await shop.write(Delete(order, ("1",)))
    assert await shop.kept("USER#Ann", "orders_count", "totals") == [None, 3]
    assert await shop.wrong() == []


@pytest.mark.parametrize("holder", [None, BOB])
@pytest.mark.parametrize("unknown", [("memos_count",), ("pages",), ("memos_count", "pages")])
async def test_an_item_that_joins_a_list_adds_nothing_to_an_unknown_number(
    shop: Shop, holder: tuple[str] | None, unknown: tuple[str, ...]
) -> None:
    await shop.write(Create(memo, {"memo_id": "m", "holder": holder, "pages": 3}))
    for name in unknown:
        await shop.change("USER#Ann", Remove((name,)))
    await shop.write(Change(memo, ("m",), {"holder": ANN}))
    expected = [None if name in unknown else number for name, number in (("memos_count", 1), ("pages", 3))]
    assert await shop.kept("USER#Ann", "memos_count", "pages") == expected
    assert await shop.kept("USER#Bob", "memos_count", "pages") == [0, 0]
    assert await shop.wrong() == []


async def test_an_item_of_a_missing_node_can_be_deleted(shop: Shop) -> None:
    await shop.write(new_order("1", "2"))
    await shop.store.send(Write(DeleteItem(("USER#Ann", "USER#Ann"))))
    await shop.write(Delete(order, ("1",)))
    assert await shop.item("ORDER#1", "ORDER#1") is None
    assert await shop.item("USER#Ann", "USER#Ann") is None


async def test_a_wrong_number_is_found(shop: Shop) -> None:
    await shop.write(new_order("1", "2"))
    await shop.change("USER#Ann", SetTo(("totals",), Decimal(7)))
    assert await shop.wrong() == [
        "miscounted User: spent does not match its list (1): USER#Ann/USER#Ann -> USER#Ann/USER#Ann"
    ]


async def test_a_list_is_read_once_for_all_that_is_computed_over_it(shop: Shop) -> None:
    await shop.write(new_order("1", "2"))
    traced = TracingStore(shop.store)
    await verified(graph, traced, segments=1)
    read = [
        each.partition for each in traced.requests if isinstance(each, Query) and each.index == "by-place"
    ]
    # The list of orders, and that of orders and notes, of which each type is read.
    assert read.count("USER#Ann") == 3


async def test_numbers_that_are_missing_or_wrong_are_set(shop: Shop) -> None:
    await shop.write(new_order("1", "2"), new_order("2", "3"), new_order("3", "3", BOB))
    await shop.change("USER#Ann", SetTo(("totals",), Decimal(7)))
    await shop.change("USER#Bob", Remove(("orders_count",)))
    report = await shop.recounted(shop.store)
    assert report.repaired.total() == 2
    assert told(report) == []
    assert await shop.kept("USER#Ann", "orders_count", "totals") == [2, 5]
    assert await shop.kept("USER#Bob", "orders_count", "totals") == [1, 3]
    await shop.write(new_order("4", "1", BOB))
    assert await shop.kept("USER#Bob", "orders_count", "totals") == [2, 4]


async def test_corrected_nodes_of_all_segments_are_counted(shop: Shop) -> None:
    people = [(f"P{number}",) for number in range(40)]
    await shop.write(*(Create(user, {"name": name}) for (name,) in people))
    for name in people:
        await shop.change(f"USER#{name[0]}", SetTo(("orders_count",), Decimal(7)))
    assert (await shop.recounted(shop.store, segments=4)).repaired.total() == 40


async def test_a_mutation_while_a_node_is_counted_is_counted_too(shop: Shop) -> None:
    await shop.write(new_order("1", "2"))
    await shop.change("USER#Ann", Remove(("orders_count",)))
    busy: Any = Busy(shop, Query, [new_order("2", "3"), new_order("3", "4")])
    assert told(await shop.recounted(busy)) == []
    assert await shop.kept("USER#Ann", "orders_count", "totals") == [3, 9]
    assert await shop.wrong() == []


async def test_a_wrong_number_that_equals_a_list_that_has_changed_is_set(shop: Shop) -> None:
    await shop.change("USER#Ann", SetTo(("friends_count",), Decimal(1)))
    others = [Put(friend, {"one": ANN, "other": BOB})]

    async def before(request: object) -> None:
        if isinstance(request, Query) and others:
            await shop.write(others.pop())

    assert told(await shop.recounted(HeldStore(shop.store, before))) == []
    assert await shop.kept("USER#Ann", "friends_count") == [1]
    assert await shop.wrong() == []
