"""What nodes keep of the first and last items of their lists: the smallest, the largest, the last value."""

from __future__ import annotations

import asyncio
from decimal import Decimal
from typing import Any

import pytest

from keygraph import ID, Graph, Index, Many, Table, edge, latest, maximum, minimum, node, record, sums
from keygraph.dynamo.actions import Remove, SetTo, UpdateItem
from keygraph.dynamo.store import BatchGet, Query, Transaction, Write
from keygraph.tables.repair import Repairs
from keygraph.writing.requests import Change, Create, Delete, Move, OnEdges, Put
from keygraph.writing.sending.describe import describe_write
from keygraph.writing.sending.writer import write
from tests.conftest import ENGINES, MakeStore
from tests.keygraph.written import Written
from tests.tracing import HeldStore, TracingStore
from tests.verified import verified

pytestmark = pytest.mark.parametrize("engine", ENGINES)

by_low = Index("by-low", "lp", "ls")


@node("SHOP#{name}", by_low("SHOPS", "{cheapest:06d}"))
class Shop:
    name: ID

    offers: Many[Offer]
    quotes: Many[Quote]
    cheapest: int | None = minimum("offers.price")
    dearest: int | None = maximum("offers.price")
    last_quote: Decimal | None = latest("quotes.amount")
    quoted: Decimal = sums("quotes.amount")


@node("THING#{thing_id}")
class Thing:
    thing_id: ID


@edge("{shop}", "OFFER#{price:06d}#{thing.thing_id}")
class Offer:
    shop: Shop
    thing: Thing
    price: int


@record("{shop}", "QUOTE#{day:03d}")
class Quote:
    shop: Shop
    day: int
    amount: Decimal | None = None


graph = Graph(
    Table("Shops", partition_key="pk", sort_key="sk", indexes=[by_low]),
    Shop,
    Thing,
    Offer,
    Quote,
    writes=True,
).check()
shop, thing, offer, quote = graph.types.values()
A = ("a",)


class Market(Written):
    async def kept(self, name: str = "a") -> list[Any]:
        item = await self.item(f"SHOP#{name}", f"SHOP#{name}")
        assert item is not None
        names = ("cheapest", "dearest", "last_quote")
        return [*(shop.reader(shop.fields[each])(item) for each in names), item.get("ls")]


@pytest.fixture
async def market(make_store: MakeStore) -> Market:
    market = Market(graph, await make_store(graph.table))
    await market.write(*(Create(shop, {"name": name}) for name in "ab"))
    await market.write(*(Create(thing, {"thing_id": str(number)}) for number in range(4)))
    return market


def offered(number: int, price: int, owner: str = "a") -> Create:
    return Create(offer, {"shop": (owner,), "thing": (str(number),), "price": price})


def quoted(day: int, amount: Any, owner: str = "a") -> Put:
    return Put(quote, {"shop": (owner,), "day": day, "amount": amount and Decimal(amount)})


@pytest.mark.parametrize("odd", [Decimal(5), {}, ["x"]])
async def test_an_end_that_cannot_be_compared_blocks_no_write(market: Market, odd: Any) -> None:
    """Another program has stored it. It stays until it is repaired."""
    await market.write(offered(1, 50), quoted(1, 3))
    changes = tuple(SetTo((name, "at"), odd) for name in ("cheapest", "last_quote"))
    await market.store.send(Write(UpdateItem(("SHOP#a", "SHOP#a"), changes)))
    await market.write(offered(2, 20), quoted(2, 4))
    await market.write(Delete(offer, ("a", "000020", "2")))
    assert len(await market.wrong()) == 2


async def test_the_ends_follow_the_list(market: Market) -> None:
    async def after(*requests: Any) -> list[Any]:
        await market.write(*requests)
        assert await market.wrong() == []
        return await market.kept()

    assert await market.kept() == [None, None, None, None]
    assert await after(offered(1, 50)) == [50, 50, None, "000050"]
    assert await after(offered(2, 70), offered(3, 20)) == [20, 70, None, "000020"]
    assert await after(Delete(offer, ("a", "000020", "3"))) == [50, 70, None, "000050"]
    assert await after(Delete(offer, ("a", "000070", "2")), offered(0, 60)) == [50, 60, None, "000050"]
    assert await after(Move(offer, ("a", "000050", "1"), {"price": 90})) == [60, 90, None, "000060"]
    gone = [Delete(offer, ("a", "000060", "0")), Delete(offer, ("a", "000090", "1"))]
    assert await after(*gone) == [None, None, None, None]
    assert (await after(quoted(2, 5), quoted(1, 9)))[2] == 5
    assert (await after(quoted(2, 6)))[2] == 6
    assert (await after(Change(quote, ("a", "001"), {"amount": Decimal(8)})))[2] == 6
    assert (await after(Change(quote, ("a", "002"), {"amount": None})))[2] is None
    assert (await after(Delete(quote, ("a", "002"))))[2] == 8
    assert (await after(Delete(quote, ("a", "001")), quoted(3, 4)))[2] == 4


async def test_several_that_go_at_once(market: Market) -> None:
    await market.write(*(quoted(day, day) for day in range(6)))
    await market.write(*(Delete(quote, ("a", f"{day:03d}")) for day in (5, 3, 4)))
    assert (await market.kept())[2] == 2
    new = [Create(shop, {"name": "c"}), quoted(1, 7, "c"), quoted(2, 3, "c"), offered(1, 5, "c")]
    await market.write(*new)
    assert await market.kept("c") == [5, 5, 3, "000005"]
    assert await market.wrong() == []


async def test_a_next_one_that_changes_meanwhile(market: Market) -> None:
    """What is read of the list counts only if nobody has written to it since the node was read."""
    await market.write(*(quoted(day, day) for day in (1, 2, 3)))
    # What changes another list, and the key with its value, comes last: nothing is tried again for it.
    others: list[Any] = [offered(1, 5), quoted(4, 4), Change(quote, ("a", "001"), {"amount": Decimal(9)})]
    others += [Delete(quote, ("a", "002"))]

    async def before(request: object) -> None:
        if isinstance(request, Transaction) and others:
            await market.write(others.pop())

    await write(graph, HeldStore(market.store, before), [Delete(quote, ("a", "003"))])
    assert others == []
    assert (await market.kept())[2] == 4
    assert await market.wrong() == []


async def test_a_value_that_others_change_and_change_back(market: Market) -> None:
    """What a write makes of the first or last item is written also where the node had just that when it was read."""

    async def written(request: Any, *others: Any) -> Any:
        """The node's value after a request, between whose own requests others are carried out: None for none."""
        left = [*others]

        async def before(_: object) -> None:
            if left and (other := left.pop(0)) is not None:
                await market.write(other)

        await write(graph, HeldStore(market.store, before), [request])
        assert left == []
        assert await market.wrong() == []
        return (await market.kept())[2]

    def change(amount: int) -> Change:
        return Change(quote, ("a", "001"), {"amount": Decimal(amount)})

    await market.write(quoted(1, 5))
    # Its item is read, then the node, then both are written.
    assert await written(change(9), None, change(9), change(5)) == 9
    assert await written(quoted(2, 9), None, change(5)) == 9


async def test_many_writers(market: Market) -> None:
    async def one(number: int) -> None:
        await market.write(quoted(number, number))
        if number % 2:
            await market.write(Delete(quote, ("a", f"{number:03d}")))

    await asyncio.gather(*map(one, range(8)))
    assert (await market.kept())[2] == 6
    assert await market.wrong() == []


async def test_what_is_read(market: Market) -> None:
    async def sent(request: Any) -> list[Any]:
        traced = TracingStore(market.store)
        await write(graph, traced, [request])
        return [type(each) for each in traced.requests]

    assert await sent(quoted(1, 1)) == [BatchGet, Transaction]
    assert await sent(quoted(2, 2)) == [BatchGet, Transaction]
    assert await sent(Delete(quote, ("a", "001"))) == [BatchGet, BatchGet, Transaction]
    assert await sent(Delete(quote, ("a", "002"))) == [BatchGet, BatchGet, Query, Transaction]
    explained = describe_write(graph, [Delete(quote, ("a", "002"))])
    assert [each.keys for each in explained.read_later] == ["pk = SHOP#a AND sk = SHOP#a"]
    [described] = explained.transactions
    assert described.notes[0] == (
        "If its item is the first or last of a list that a node keeps, the next one is read from the list."
    )


async def test_a_node_that_goes_with_its_list(market: Market) -> None:
    for start in range(0, 120, 40):
        await market.write(*(quoted(day, day) for day in range(start, start + 40)))
    await market.write(offered(1, 5))
    [done] = await market.write(Delete(shop, A, on_edges=OnEdges.DETACH))
    assert done.detached == 121
    assert await market.wrong() == []


async def test_verified_and_repaired(market: Market) -> None:
    async def repaired() -> None:
        repairs = Repairs(graph, market.store, ["counts"], lambda kind, changes: None)
        await verified(graph, market.store, segments=1, repairs=repairs)

    async def change(*changes: Any) -> None:
        await market.store.send(Write(UpdateItem(("SHOP#a", "SHOP#a"), changes)))

    await market.write(offered(1, 50), offered(2, 70), quoted(1, 3))
    await change(SetTo(("cheapest", "value"), Decimal(1)), Remove(("last_quote",)))
    found = await market.wrong()
    assert any(each.startswith("miscounted Shop: cheapest does not match its list (1)") for each in found)
    await market.write(quoted(2, 4))
    assert (await market.kept())[2] is None
    await repaired()
    assert await market.kept() == [50, 70, 4, "000050"]
    assert await market.wrong() == []
    await market.write(offered(3, 60), Delete(offer, ("a", "000050", "1")))
    assert await market.kept() == [60, 70, 4, "000060"]
