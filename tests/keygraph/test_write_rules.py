"""Items that are checked for a table before they are written."""

from __future__ import annotations

from decimal import Decimal

import pytest

from keygraph.dynamo.items import Item
from keygraph.dynamo.table import Index, Table
from keygraph.dynamo.write_rules import CheckedItem, WriteRules
from keygraph.errors import BadUserInput

KINDS = Index("Kinds", "Kind", ("Price", "N"))
PLAIN = Table("Things", partition_key="PK", sort_key="SK")
SHOP = Table("Things", partition_key="PK", sort_key="SK", indexes=[KINDS])
ITEM: Item = {"PK": "p", "SK": "s", "Kind": "Ü", "Price": Decimal("-12.5"), "tags": ["a", True, None]}


def test_what_was_found_out_goes_with_the_item() -> None:
    """An engine that takes it as checked would write other keys or another size than it has."""
    item = WriteRules(SHOP).checked(ITEM)
    assert item == ITEM
    assert item.keys_stored == {
        "PK": b"p",
        "SK": b"s",
        "Kind": "Ü".encode(),
        "Price": bytes([0x40, 124, 100 - 12, 100 - 50, 0xFF]),
    }
    # PK p, SK s, Kind Ü, Price (three digits are two pairs, one more, and the sign), tags: 3 + (1 + 1) + (1 + 1) + (1 + 1)
    assert item.size == 3 + 3 + 6 + (5 + 4) + (4 + 9)


def test_an_item_is_checked_once_for_a_table_and_again_for_another() -> None:
    """A load would check each item twice, or an item of one table would pass into another one unchecked."""
    item = WriteRules(PLAIN).checked({"PK": "p", "SK": "s", "Kind": Decimal(1)})
    same = Table("Things", partition_key="PK", sort_key="SK")
    assert WriteRules(same).checked(item) is item
    with pytest.raises(BadUserInput, match=r"The key Kind is of type S\."):
        WriteRules(SHOP).checked(item)


def test_a_checked_item_is_not_changed() -> None:
    """What was checked would not be what is written."""
    item = CheckedItem(ITEM, WriteRules(SHOP))
    with pytest.raises(TypeError, match="cannot be changed"):
        item["Kind"] = Decimal(1)
    with pytest.raises(TypeError, match="cannot be changed"):
        item.update(Kind=None)
    assert item == ITEM
