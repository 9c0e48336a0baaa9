"""Counts and sums that nodes keep: every write of an item that is counted changes them in its own transaction."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

import pytest

from keygraph import ID, Graph, Index, Many, Table, counts, edge, many, node, record, sums
from keygraph.dynamo.actions import DeleteItem, Remove, SetTo, UpdateItem
from keygraph.dynamo.store import BatchGet, Query, Write
from keygraph.tables.totals import recount
from keygraph.tables.verify import Verification
from keygraph.writing.requests import (
    Change,
    Create,
    Delete,
    Move,
    OnEdges,
    Put,
    Upsert,
)
from tests.conftest import ENGINES, MakeStore
from tests.keygraph.verified_net import told
from tests.keygraph.written import Written

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
    type_attribute="kind",
).check()
user, order, note, product, line, friend, team = graph.types.values()
ANN, BOB = ("Ann",), ("Bob",)


class Shop(Written):
    """A store with a writer, and what nodes keep."""

    async def kept(self, key: str, *names: str) -> list[Any]:
        """What a node keeps; nothing may be wrong with the table besides."""
        item = await self.item(key, key)
        assert item is not None
        return [item.get(name) for name in names]

    async def wrong(self) -> list[str]:
        verification = Verification(graph, self.store, segments=1)
        await verification.run(lambda _: None)
        return told(verification.report)

    async def change(self, key: str, change: Any) -> None:
        """Changes an item as nobody but a program without Keygraph does."""
        await self.store.send(Write(UpdateItem((key, key), (change,))))


@pytest.fixture
async def shop(make_store: MakeStore) -> Shop:
    """Ann and Bob, and two products."""
    shop = Shop(graph, await make_store(graph.table))
    await shop.write(*(Create(user, {"name": name}) for name in ("Ann", "Bob")))
    await shop.write(*(Create(product, {"sku": sku}) for sku in ("bell", "lock")))
    return shop


def new_order(order_id: str, total: Any = None, customer: tuple[str] = ANN) -> Create:
    values = {"order_id": order_id, "customer": customer, "total": total and Decimal(total)}
    return Create(order, values)


async def test_a_new_node_counts_nothing(shop: Shop) -> None:
    """A number that is not there would be unknown for ever."""
    assert await shop.kept("USER#Ann", "orders_count", "totals", "friends_count", "feed_size") == [0, 0, 0, 0]


async def test_creates_changes_and_deletes_are_counted(shop: Shop) -> None:
    """A customer's orders would be more than their count, or their sum less than they are."""
    names = ("orders_count", "totals", "feed_size")
    await shop.write(new_order("1", "2.50"))
    await shop.write(
        new_order("2", "4"), new_order("3"), Create(note, {"note_id": "n", "author": ("USER#Ann",)})
    )
    assert await shop.kept("USER#Ann", *names) == [3, Decimal("6.5"), 4]
    await shop.write(Change(order, ("1",), {"total": Decimal(3)}))
    await shop.write(Change(order, ("1",), {}, {"total": Decimal("0.25")}))
    assert await shop.kept("USER#Ann", *names) == [3, Decimal("7.25"), 4]
    await shop.write(Change(order, ("2",), {"customer": BOB}))
    assert await shop.kept("USER#Ann", *names) == [2, Decimal("3.25"), 3]
    assert await shop.kept("USER#Bob", *names) == [1, 4, 1]
    await shop.write(Upsert(order, {"order_id": "2", "customer": BOB, "total": None}))
    await shop.write(Upsert(order, {"order_id": "4", "customer": BOB, "total": Decimal(1)}))
    assert await shop.kept("USER#Bob", *names) == [2, 1, 2]
    await shop.write(Delete(order, ("1",)), Delete(order, ("3",)), Delete(order, ("4",)))
    assert await shop.kept("USER#Ann", *names) == [0, 0, 1]
    assert await shop.kept("USER#Bob", *names) == [1, 0, 1]
    assert await shop.wrong() == []


async def test_an_item_that_leaves_a_list_is_not_counted(shop: Shop) -> None:
    """An order that is paid would be due for ever: what is in no index is in no list."""
    values = {"order_id": "1", "customer": ANN, "due_on": "2026-01-02"}
    await shop.write(Create(order, values), new_order("2"))
    assert await shop.kept("USER#Ann", "orders_count", "due_count") == [2, 1]
    await shop.write(Change(order, ("1",), {"due_on": None}))
    assert await shop.kept("USER#Ann", "orders_count", "due_count") == [2, 0]
    await shop.write(Change(order, ("2",), {"due_on": "2026-01-03"}))
    assert await shop.kept("USER#Ann", "orders_count", "due_count") == [2, 1]
    assert await shop.wrong() == []


async def test_an_item_of_a_node_of_another_type_is_not_counted(shop: Shop) -> None:
    """A team's notes would be those of a user with the same name."""
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
    """What is added would be the difference from a total that is no longer there."""
    await shop.write(new_order("1", "2"))
    busy: Any = Busy(shop, BatchGet, [Change(order, ("1",), {"total": Decimal(5)})])
    await Shop(graph, busy).write(Change(order, ("1",), {"total": Decimal(6)}))
    assert await shop.kept("USER#Ann", "totals") == [6]
    assert await shop.wrong() == []


async def test_what_is_put_takes_the_place_of_what_was_there(shop: Shop) -> None:
    """An edge that is put twice would be counted twice."""
    await shop.write(new_order("1"), Put(line, {"order": ("1",), "product": ("bell",), "quantity": 2}))
    for quantity, expected in ((2, 2), (5, 5), (1, 1)):
        await shop.write(Put(line, {"order": ("1",), "product": ("bell",), "quantity": quantity}))
        assert await shop.kept("ORDER#1", "pieces") == [expected]
    await shop.write(Move(line, ("1", "bell"), {"product": ("lock",)}))
    assert await shop.kept("ORDER#1", "pieces") == [1]
    assert await shop.wrong() == []


async def test_nodes_in_shards_are_found(shop: Shop) -> None:
    """What is added would make an item of its own, in another shard."""
    await shop.write(new_order("1"), new_order("2"))
    for order_id in ("1", "2"):
        await shop.write(Put(line, {"order": (order_id,), "product": ("bell",), "quantity": 4}))
    await shop.write(Delete(line, ("1", "bell")))
    keys = tuple(graph.table_keys(product, ("bell",)))
    items = (await shop.store.send(BatchGet(keys, consistent=True))).items
    assert [item["sold"] for item in items if item is not None] == [4]
    assert await shop.wrong() == []


async def test_both_ends_of_a_mirrored_edge_count_it(shop: Shop) -> None:
    """One of two friends would have none."""
    await shop.write(Put(friend, {"one": ANN, "other": BOB}), Create(user, {"name": "Cy"}))
    await shop.write(Put(friend, {"one": ("Cy",), "other": BOB}))
    assert await shop.kept("USER#Ann", "friends_count") == [1]
    assert await shop.kept("USER#Bob", "friends_count") == [2]
    await shop.write(Delete(friend, ("Bob", "Ann")))
    assert await shop.kept("USER#Ann", "friends_count") == [0]
    assert await shop.kept("USER#Bob", "friends_count") == [1]


async def test_what_is_created_together_is_counted_together(shop: Shop) -> None:
    """A node and its items would be two transactions, or the payload show a count of before."""
    lines = [Put(line, {"order": ("1",), "product": (sku,), "quantity": 3}) for sku in ("bell", "lock")]
    answer = await shop.write(new_order("1", "9"), Change(user, ANN, {"town": "Ulm"}), *lines)
    made = answer.done[0].item
    assert made is not None
    assert made["pieces"] == 6
    assert made == await shop.item("ORDER#1", "ORDER#1")
    assert await shop.kept("USER#Ann", "town", "orders_count", "totals") == ["Ulm", 1, 9]


async def test_a_create_that_is_counted_is_one_request(shop: Shop) -> None:
    """Every order would read its customer first."""
    assert (await shop.write(new_order("1", "2"))).cost.requests == 1
    assert (await shop.write(Change(order, ("1",), {"total": Decimal(1)}))).cost.requests == 2
    assert (await shop.write(Create(note, {"note_id": "n", "author": ("USER#Ann",)}))).cost.requests == 1
    assert (await shop.write(Delete(note, ("n",)))).cost.requests == 2


async def test_a_deleted_node_takes_its_edges_from_the_counts_of_others(shop: Shop) -> None:
    """Friends of somebody who left would count them for ever; here in more than one transaction."""
    names = [f"U{number}" for number in range(45)]
    await shop.write(*(Create(user, {"name": name}) for name in names))
    for some in (names[:20], names[20:40], names[40:]):
        await shop.write(*(Put(friend, {"one": ANN, "other": (name,)}) for name in some))
    assert await shop.kept("USER#Ann", "friends_count") == [45]
    [done] = (await shop.write(Delete(user, ANN, on_edges=OnEdges.DETACH))).done
    assert done.detached == 45
    assert [await shop.kept(f"USER#{name}", "friends_count") for name in names] == [[0]] * 45
    assert await shop.wrong() == []


async def test_what_goes_and_what_comes_in_one_write_are_added_up(shop: Shop) -> None:
    """Somebody who loses one friend and gets another would have one of the two counted, or the write be refused."""
    await shop.write(Put(friend, {"one": ANN, "other": BOB}), Create(user, {"name": "Cy"}))
    await shop.write(Delete(user, ANN, on_edges=OnEdges.DETACH), Put(friend, {"one": ("Cy",), "other": BOB}))
    assert [await shop.kept(f"USER#{name}", "friends_count") for name in ("Bob", "Cy")] == [[1], [1]]
    assert await shop.wrong() == []


async def test_an_unknown_number_stays_unknown(shop: Shop) -> None:
    """A count that began in the middle would be taken for that of the whole list."""
    await shop.write(new_order("1", "2"))
    await shop.change("USER#Ann", Remove(("orders_count",)))
    await shop.write(new_order("2", "3"))
    assert await shop.kept("USER#Ann", "orders_count", "totals") == [None, 5]
    await shop.write(Delete(order, ("1",)))
    assert await shop.kept("USER#Ann", "orders_count", "totals") == [None, 3]
    assert await shop.wrong() == []


async def test_an_item_of_a_missing_node_can_be_deleted(shop: Shop) -> None:
    """An edge that leads to nothing could not be taken away, or its node come back with a count alone."""
    await shop.write(new_order("1", "2"))
    await shop.store.send(Write(DeleteItem(("USER#Ann", "USER#Ann"))))
    await shop.write(Delete(order, ("1",)))
    assert await shop.item("ORDER#1", "ORDER#1") is None
    assert await shop.item("USER#Ann", "USER#Ann") is None


async def test_a_wrong_number_is_found(shop: Shop) -> None:
    """A program that writes without Keygraph would make counts wrong, and nobody know."""
    await shop.write(new_order("1", "2"))
    await shop.change("USER#Ann", SetTo(("totals",), Decimal(7)))
    assert await shop.wrong() == [
        "miscounted User: spent does not match its list (1): USER#Ann/USER#Ann -> USER#Ann/USER#Ann"
    ]


async def test_numbers_that_are_missing_or_wrong_are_set(shop: Shop) -> None:
    """A table that was there before its model counted could never be counted."""
    await shop.write(new_order("1", "2"), new_order("2", "3"), new_order("3", "3", BOB))
    await shop.change("USER#Ann", SetTo(("totals",), Decimal(7)))
    await shop.change("USER#Bob", Remove(("orders_count",)))
    verification = Verification(graph, shop.store, segments=1, is_counting=True)
    await verification.run(lambda _: None)
    assert verification.counted == 2
    assert told(verification.report) == []
    assert await shop.kept("USER#Ann", "orders_count", "totals") == [2, 5]
    assert await shop.kept("USER#Bob", "orders_count", "totals") == [1, 3]
    await shop.write(new_order("4", "1", BOB))
    assert await shop.kept("USER#Bob", "orders_count", "totals") == [2, 4]


async def test_corrected_nodes_of_all_segments_are_counted(shop: Shop) -> None:
    """An operator would be told a fourth of what was repaired."""
    people = [(f"P{number}",) for number in range(40)]
    await shop.write(*(Create(user, {"name": name}) for (name,) in people))
    for name in people:
        await shop.change(f"USER#{name[0]}", SetTo(("orders_count",), Decimal(7)))
    verification = Verification(graph, shop.store, segments=4, is_counting=True)
    await verification.run(lambda _: None)
    assert verification.counted == 40


async def test_a_mutation_while_a_node_is_counted_is_counted_too(shop: Shop) -> None:
    """The count would be that of a moment before, and stay so."""
    await shop.write(new_order("1", "2"))
    await shop.change("USER#Ann", Remove(("orders_count",)))
    busy: Any = Busy(shop, Query, [new_order("2", "3"), new_order("3", "4")])
    assert await recount(graph, busy, ("USER#Ann", "USER#Ann"))
    assert await shop.kept("USER#Ann", "orders_count", "totals") == [3, 9]
    assert await shop.wrong() == []
