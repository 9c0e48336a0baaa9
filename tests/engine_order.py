"""The embedded engine's order of items with equal index keys, for oracles that know what a page shows.

DynamoDB does not specify it; `keygraph.engines.sqlite.layout` makes it another one than the order of the table's keys.
"""

from __future__ import annotations

from collections.abc import Iterable

from keygraph.dynamo.order import key_bytes
from keygraph.dynamo.table import KeyValue
from keygraph.engines.sqlite.layout import key_hash


def order_among_equals(table_key: Iterable[KeyValue]) -> tuple[bytes, ...]:
    """Returns the order of an item among those with equal index keys, from its table key."""
    key = [key_bytes(value) for value in table_key]
    return (key_hash(*key), *key)
