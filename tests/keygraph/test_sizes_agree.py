"""Sizes and costs by DynamoDB's rules, to the byte, on every engine that has them."""

from __future__ import annotations

from decimal import Decimal

import pytest

from keygraph.dynamo.items import Item, item_size
from keygraph.dynamo.store import (
    BatchWrite,
    Cost,
)
from tests.conftest import MakeStore, on_exact_engines
from tests.keygraph.limits import (
    KB,
    TABLE,
    put,
)

# By the rule that pairs of digits are counted from the point, and no number has more than 21 bytes.
NUMBERS = {
    "0": 1,
    "1": 2,
    "-1": 3,
    "10": 2,
    "11": 2,
    "100": 2,
    "110": 3,
    "1.1": 3,
    "0.11": 2,
    "0.011": 3,
    "12345": 4,
    "-199.99": 5,
    "1E+125": 2,
    "9" * 38: 20,
    "1." + "2" * 37: 21,
    "-1." + "2" * 37: 21,
    "-" + "9" * 38: 21,
}


@on_exact_engines
@pytest.mark.parametrize(("number", "size"), NUMBERS.items())
async def test_the_size_of_a_number(make_store: MakeStore, number: str, size: int) -> None:
    store = await make_store(TABLE)
    rest = KB - (3 + 3 + 1 + 1) - size
    for length, units in ((rest, 1), (rest + 1, 2)):
        written = await store.send(put(n=Decimal(number), a="x" * length))
        assert written.cost == Cost(1, write_units=units)


@on_exact_engines
async def test_an_entry_of_a_local_index_costs_100_bytes_more(make_store: MakeStore) -> None:
    store = await make_store(TABLE)
    # The entry has PK, SK, day and name; the item nothing else.
    item: Item = {"PK": "p", "SK": "s", "day": "d", "name": "x" * (KB - 100 - 14)}
    assert item_size(item) == KB - 100
    assert (await store.send(BatchWrite(puts=(item,)))).cost.write_units == 2
    item["name"] = f"{item['name']}x"
    assert (await store.send(BatchWrite(puts=(item,)))).cost.write_units == 1 + 2
