"""Items that are checked for a table before they are written."""

from __future__ import annotations

from decimal import Decimal

import pytest

from keygraph.dynamo.items import Item
from keygraph.dynamo.rules import WriteRules
from keygraph.dynamo.table import Index, Table
from keygraph.errors import BadUserInput

KINDS = Index("Kinds", "Kind", ("Price", "N"))
PLAIN = Table("Things", partition_key="PK", sort_key="SK")
SHOP = Table("Things", partition_key="PK", sort_key="SK", indexes=[KINDS])
ITEM: Item = {"PK": "p", "SK": "s", "Kind": "Ü", "Price": Decimal("-12.5"), "tags": ["a", True, None]}


def test_the_keys_and_the_size_are_found() -> None:
    """An engine would write other keys or another size than it has."""
    size = WriteRules(SHOP).check(ITEM)
    assert WriteRules(SHOP).keys_of(ITEM) == {
        "PK": b"p",
        "SK": b"s",
        "Kind": "Ü".encode(),
        "Price": bytes([0x40, 124, 100 - 12, 100 - 50, 0xFF]),
    }
    # PK p, SK s, Kind Ü, Price (three digits are two pairs, one more, and the sign), tags: 3 + (1 + 1) + (1 + 1) + (1 + 1)
    assert size == 3 + 3 + 6 + (5 + 4) + (4 + 9)


def test_the_keys_of_an_index_are_checked_without_each_other() -> None:
    """DynamoDB would refuse a whole batch for an index key of another type, though the item is not in the index."""
    item: Item = {"PK": "p", "SK": "s", "Kind": Decimal(1)}
    assert WriteRules(PLAIN).check(item) == 3 + 3 + 4 + 2
    assert WriteRules(PLAIN).keys_of(item) == {"PK": b"p", "SK": b"s"}
    with pytest.raises(BadUserInput, match=r"The key Kind is of type S\."):
        WriteRules(SHOP).check(item)


def test_an_attribute_that_is_two_keys_has_the_smaller_limit() -> None:
    """DynamoDB would refuse an item whose partition key is too long for the index in which it is the sort key."""
    table = Table("Things", partition_key="PK", indexes=[Index("Reverse", "Kind", "PK")])
    WriteRules(table).check({"PK": "x" * 1024})
    with pytest.raises(BadUserInput, match=r"The key PK has more than 1,024 bytes\."):
        WriteRules(table).check({"PK": "x" * 1025})
