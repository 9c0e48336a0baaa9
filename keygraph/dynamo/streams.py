"""The stream of a table: every change of an item, with the item before and after it, for 24 hours.

"Change data capture for DynamoDB Streams" in the DynamoDB developer guide. A stream has shards. The changes of one item
are in one shard in their order, and go on in a child of it when the shard is closed: whoever reads a child before its
parents are read to the end sees changes of one item in the wrong order.
"""

from __future__ import annotations

from collections.abc import Iterable

from keygraph.dynamo.items import Item
from keygraph.dynamo.store import Request
from keygraph.dynamo.table import Key
from keygraph.dynamo.value import value
from keygraph.errors import Unavailable


@value(frozen=True, slots=True)
class StreamRecord:
    """A change of one item. A write that changes nothing makes none."""

    key: Key
    """Of the table."""
    old: Item | None
    """The item before; None if there was none."""
    new: Item | None
    """The item after; None if it was deleted."""
    position: str
    """Its position in the shard: as texts, positions are in the order of the changes, and as long as each other."""
    at: float
    """When it was made, in seconds since 1970. DynamoDB's is approximate."""


@value(frozen=True, slots=True)
class StreamShard:
    """A part of a stream."""

    name: str
    parent: str | None = None
    """The shard whose changes come before; None if there is none, or if all of them were deleted."""
    is_closed: bool = False
    """Whether nothing more comes."""


@value(frozen=True, slots=True)
class Stream:
    """A stream of a table, with its shards: parents come before their children."""

    name: str
    """Another one after the stream was turned off and on again."""
    shards: tuple[StreamShard, ...]


@value(frozen=True, slots=True)
class ShardPosition:
    """Where a shard is read. `ShardPosition()` is its beginning: the oldest change that is still there."""

    after: str = ""
    """The position of the last change before it; empty for none."""
    iterator: str | None = None
    """The store's own name for it, with which it reads on without looking it up. It is valid for some minutes."""
    is_latest: bool = False
    """Whether `after` is empty although changes came before: only the iterator knows where it is."""


@value(frozen=True, slots=True)
class RecordPage:
    """Some changes of a shard, and where it is read on."""

    records: tuple[StreamRecord, ...]
    """May be none although more will come."""
    position: ShardPosition | None
    """None at the end of a closed shard."""


@value(frozen=True, slots=True)
class EnableStream(Request[None]):
    """Turns the stream on, with old and new images, and waits until it is. Does nothing if it is on."""


@value(frozen=True, slots=True)
class DescribeStream(Request["Stream | None"]):
    """The stream with its shards; None if it is off. Raises Unavailable if it lacks old or new images."""


@value(frozen=True, slots=True)
class LatestPosition(Request[ShardPosition]):
    """The position after every change that was made so far, as far as the stream knows them."""

    stream: str
    shard: str


@value(frozen=True, slots=True)
class ReadRecords(Request[RecordPage]):
    """The next changes after a position: about a megabyte, 1,000 at most. Does not wait for any.

    Raises StreamTrimmed if changes after the position are no longer there.
    """

    stream: str
    shard: str
    position: ShardPosition = ShardPosition()


def in_order(shards: Iterable[StreamShard]) -> tuple[StreamShard, ...]:
    """Returns the shards with parents before their children. Raises Unavailable if one comes before itself."""
    by_name = {each.name: each for each in shards}
    ordered: dict[str, StreamShard] = {}
    for each in by_name.values():
        line, name = dict[str, StreamShard](), each.name
        while name in by_name and name not in ordered and name not in line:
            line[name] = by_name[name]
            name = by_name[name].parent or ""
        if name in line:
            raise Unavailable("the shards of the stream are not those of DynamoDB")
        ordered.update(reversed(line.items()))
    return tuple(ordered.values())
