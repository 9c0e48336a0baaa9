"""The shards of a node: items over which its counts, sums and averages are spread, so that many clients can add at once.

A shard is no part of the graph. It is kept in a partition of its own, and contains the type of its node.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from decimal import Decimal

from keygraph.dynamo.actions import SetTo, changed
from keygraph.dynamo.conditions import at_path
from keygraph.dynamo.items import Item, Value, exact_sum
from keygraph.dynamo.table import Key, Table
from keygraph.model.records import RecordType
from keygraph.names import NOTE

_SHARD_OF = "shard of"
"""The name in the contents of a shard that has the type of its node."""


def shard_keys(record: RecordType, key: Key) -> list[Key]:
    """Returns the keys of the shards of the node with a key, each in a partition of its own."""
    partition, sort = str(key[0]), key[1:]
    return [(f"{NOTE}#shard#{number}#{partition}", *sort) for number in range(record.shard_count)]


def with_shards(record: RecordType, item: Item, shards: Iterable[Item | None]) -> Item:
    """Returns a node's item with its spread numbers added up. One that the node does not have is unknown."""
    several = [each for each in shards if each is not None]
    own = {path: name for field in record.spread for path, name in field.shard_attributes.items()}

    def total(whole: Decimal, name: str) -> Decimal:
        # It may be more than a number of DynamoDB can be.
        parts = [each.get(name) for each in several]
        return exact_sum([whole, *(part for part in parts if isinstance(part, Decimal))])

    sums = [
        SetTo(path, total(whole, name))
        for path, name in own.items()
        if isinstance(whole := at_path(item, path), Decimal)
    ]
    return changed(item, sums)


def is_shard(item: Mapping[str, Value]) -> bool:
    """Returns whether an item is a shard of a node."""
    content = item.get(NOTE)
    return isinstance(content, dict) and _SHARD_OF in content


def node_of_shard(
    types: Mapping[str, RecordType], table: Table, item: Mapping[str, Value]
) -> tuple[RecordType, Key] | None:
    """Returns the type and the key of the node of a shard; None if nodes of that type do not have this shard."""
    content, key = item[NOTE], table.key_of(item)
    node = types.get(str(content[_SHARD_OF])) if isinstance(content, dict) else None
    own = (str(key[0]).split("#", 3)[-1], *key[1:])
    return None if node is None or key not in shard_keys(node, own) else (node, own)


def new_shard(table: Table, record: RecordType, key: Key) -> Item:
    """Returns a shard of a node of a type, to which nothing was added yet."""
    return {**table.attributes_of(key), NOTE: {_SHARD_OF: record.name}}
