"""Items that stand for a popular node, in partitions of their own (`counts("reviews", shards=10)`).

Everything that adds to a node, or requires that it is there, would be a write or a check of one item, and transactions
about one item wait for each other. So a write takes one shard of each such node: one that follows from the key of what it
writes, and after a conflict the next one. It adds to the shard instead of the node, and that the shard is there, and
is not marked, implies the same of the node:

- A shard is made in a transaction that checks that the node is there and has no mark: by a write that finds the shard
  missing. That write does everything else with the node itself. If others write the node at the same moment, the next
  try makes all shards.
- Whoever deletes or moves a node marks it first, so that no new shard is made, then its shards, and searches for what
  names it only after that. The shards are deleted together with the node.

What a number is does not depend on which of these items has which part: the node's own number and those of its shards
are added up. So any write may use any of them.
"""

from __future__ import annotations

import zlib
from collections.abc import Sequence

from keygraph.dynamo.actions import CheckItem, PutItem
from keygraph.dynamo.conditions import And, Not
from keygraph.dynamo.table import Key
from keygraph.model.node_shards import new_shard, shard_keys
from keygraph.model.record_keys import Texts
from keygraph.model.records import End, RecordType
from keygraph.writing.context import WriteContext
from keygraph.writing.marks import UNMARKED
from keygraph.writing.requests import NewRequest, WriteRequest, in_own_key
from keygraph.writing.step import TransactionStep, again


def shard_key(write: WriteContext, node: RecordType, identity: Texts) -> Key | None:
    """Returns the key of the shard that a write takes of a node; None if the node has none, or none may stand for it."""
    if not write.sent or not node.shard_count:
        return None
    [key] = write.graph.table_keys(node, identity)
    number = _number(write.sent[0]) + write.conflicts
    return None if key in write.unspread else shard_keys(node, key)[number % node.shard_count]


def _number(request: WriteRequest) -> int:
    """Returns a number that follows from the key of a request's record, so that explain names the same shards."""
    key: object = getattr(request, "identity", None)
    if isinstance(request, NewRequest):
        key = [request.values.get(name) for name in sorted(in_own_key(request.record))]
    return zlib.crc32(repr((request.record.name, key)).encode())


def keys_to_read(write: WriteContext, node: RecordType, identity: Texts) -> list[Key]:
    """Returns the keys of the shards of a node that a write reads, to make those that are missing: the one that it takes,
    and all if others write the node at the same moment."""
    key = shard_key(write, node, identity)
    if key is None or not write.conflicts:
        return [] if key is None else [key]
    return shard_keys(node, write.graph.table_keys(node, identity)[0])


def standing_for(write: WriteContext, node: RecordType, identity: Texts) -> Key | None:
    """Returns the key of the shard that stands for a node; None if the node itself is written and checked: as long as
    nobody has read that the shard is missing, it is taken to be there."""
    key = shard_key(write, node, identity)
    return None if key is None or write.stored.get(key, key) is None else key


def check(
    write: WriteContext, record: RecordType, end: End, nodes: Sequence[RecordType], identity: Texts
) -> TransactionStep | None:
    """Returns the check of the shard that stands for the node that a record names at an end, of one of these types; None
    if the node itself is to be checked. Then a shard that is missing is made."""
    [node, *others] = nodes
    key = None if others or _uses_item(write, record, end, node) else shard_key(write, node, identity)
    if key is None:
        return None
    if standing_for(write, node, identity) is None:
        for each in keys_to_read(write, node, identity):
            if write.stored.get(each, each) is None:
                put = PutItem(new_shard(write.graph.table, node, each), Not(write.presence.there))
                write.new_shards[each] = TransactionStep(put, again, is_added_to=True)
        return None
    is_open = CheckItem(key, And((write.presence.there, UNMARKED)))
    return TransactionStep(is_open, again, is_check=True, is_added_to=True)


def _uses_item(write: WriteContext, record: RecordType, end: End, node: RecordType) -> bool:
    """Returns whether writes of records of a type use the item of the node at an end in any case: to copy from it, which
    a mark on it prevents, or to add to numbers that are not spread."""
    graph, name = write.graph, record.name
    return any(each.end is end for each in graph.copies.get(name, ())) or any(
        each.owner is node and each.path.end == end.name and not each.field.shards
        for each in graph.tallies.get(name, ())
    )
