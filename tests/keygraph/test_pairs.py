"""The other items of loaded edges."""

from __future__ import annotations

from decimal import Decimal

import pytest

from keygraph import ID, Graph, Table, edge, node
from keygraph.dynamo.items import Item
from keygraph.dynamo.store import BatchWrite
from keygraph.errors import KeygraphError
from keygraph.tables.bulk import whole_table
from keygraph.tables.pairs import Pairs
from tests.conftest import MakeStore


@node("FIRM#{firm_id}")
class Firm:
    firm_id: ID


@node("BILL#{bill_id}")
class Bill:
    bill_id: ID


@edge("{firm}", "{bill}", counterpart="BillFirm")
class FirmBill:
    firm: Firm
    bill: Bill
    amount: int


@edge("{bill}", "{firm}", counterpart="FirmBill")
class BillFirm:
    bill: Bill
    firm: Firm
    amount: int
    note: str | None = None
    """What a FirmBill does not have."""


def _graph(*, store_key_fields: bool) -> Graph:
    return Graph(
        Table("Bills", partition_key="pk", sort_key="sk"),
        Firm,
        Bill,
        FirmBill,
        BillFirm,
        store_key_fields=store_key_fields,
    ).check()


def _items(amount: int, *, store_key_fields: bool, **own: str) -> tuple[Item, Item]:
    ends: Item = {"firm_id": "1", "bill_id": "2"} if store_key_fields else {}
    one: Item = {"pk": "FIRM#1", "sk": "BILL#2", "amount": Decimal(amount), **ends}
    return one, {"pk": "BILL#2", "sk": "FIRM#1", "amount": Decimal(amount), **ends, **own}


@pytest.mark.parametrize("store_key_fields", [True, False])
async def test_a_counterpart_is_made_and_keeps_its_own(make_store: MakeStore, store_key_fields: bool) -> None:
    graph = _graph(store_key_fields=store_key_fields)
    store = await make_store(graph.table)
    for amount, own in ((1, {}), (2, {"note": "mine"})):
        one, other = _items(amount, store_key_fields=store_key_fields, **own)
        stale = [_items(0, store_key_fields=store_key_fields, **own)[1]] if own else []
        await store.send(BatchWrite((one, *stale)))
        pairs = Pairs(graph)
        pairs.add(graph.types["FirmBill"], one)
        assert await pairs.complete(store) == 1
        found = sorted([item async for item in whole_table(store)], key=lambda item: str(item["pk"]))
        assert found == [other, one]
        assert await pairs.complete(store) == 0


async def test_both_sides_of_a_source_are_left_alone(make_store: MakeStore) -> None:
    graph = _graph(store_key_fields=True)
    store = await make_store(graph.table)
    one, other = _items(1, store_key_fields=True, note="mine")
    for first, second in ((one, other), (other, one)):
        pairs = Pairs(graph)
        for item in (first, second):
            record = graph.recognise(item)
            assert record is not None
            pairs.add(record, item)
        assert await pairs.complete(store) == 0
    assert [item async for item in whole_table(store)] == []


async def test_a_counterpart_that_needs_more_is_not_made(make_store: MakeStore) -> None:
    @edge("{firm}", "PAID#{bill.bill_id}", counterpart="Paid", writes=False)
    class Payer:
        firm: Firm
        bill: Bill

    @edge("{bill}", "PAID#{firm.firm_id}")
    class Paid:
        bill: Bill
        firm: Firm
        amount: int

    graph = Graph(Table("Bills", partition_key="pk", sort_key="sk"), Firm, Bill, Payer, Paid).check()
    item: Item = {"pk": "FIRM#1", "sk": "PAID#2"}
    store = await make_store(graph.table, item)
    pairs = Pairs(graph)
    pairs.add(graph.types["Payer"], item)
    with pytest.raises(KeygraphError, match="Load the Paid of each Payer too: it needs amount"):
        await pairs.complete(store)
    assert [each async for each in whole_table(store)] == [item]
