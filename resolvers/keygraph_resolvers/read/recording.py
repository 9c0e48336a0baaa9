"""The keys and key ranges that an operation reads, recorded while its requests pass.

A change of an item that lies in none of them cannot change the operation's answer: items are only found by their keys.
An item that was requested and is missing is recorded like any other. What a page did not reach is no part of what was
read, so a list of the newest five is not touched by a change of the sixth.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol, TypeAlias, cast

from keygraph.dynamo.conditions import Path, paths_of
from keygraph.dynamo.limits import SORT_KEY_BYTES
from keygraph.dynamo.order import LAST, LAST_BYTE
from keygraph.dynamo.store import (
    Above,
    Answer,
    AtLeast,
    AtMost,
    BatchGet,
    Below,
    Count,
    Equals,
    PassingStore,
    Prefix,
    Query,
    Range,
    Request,
    Within,
)
from keygraph.dynamo.table import Key, KeyValue, Position
from keygraph_resolvers.read.changes import WantedChanges

Names: TypeAlias = frozenset[str] | None
"""The attributes that were read; None for all."""


class KeyRange(NamedTuple):
    """A range of one partition of the table or of an index. Both bounds are included; None is no bound."""

    index_name: str | None
    partition: KeyValue
    low: KeyValue | None
    high: KeyValue | None


class Reads(Protocol):
    """Takes what an operation reads."""

    def add_key(self, key: Key, names: Names) -> None:
        """An item is read by its key."""

    def begin(self, read: KeyRange, names: Names) -> None:
        """A range is read."""

    def end(self, read: KeyRange, reached: KeyRange, names: Names) -> None:
        """The read has reached this part of its range."""

    def add_changes(self, wanted: WantedChanges) -> None:
        """The operation is to be run for these changes."""


@dataclass(slots=True)
class RecordingStore(PassingStore):
    """A store that records what is read from it.

    A range is recorded before it is requested, so that a change that is seen during the read touches the operation.
    """

    reads: Reads

    async def send(self, request: Request[Answer], /) -> Answer:
        if isinstance(request, BatchGet):
            names = _names_of(request.projection, ())
            for key in request.keys:
                self.reads.add_key(key, names)
        elif isinstance(request, Query | Count):
            compared = () if request.filter is None else paths_of(request.filter)
            projection = () if isinstance(request, Count) else request.projection
            read, names = _range_of(request), _names_of(projection, compared)
            self.reads.begin(read, names)
            page: Any = await self.store.send(request)
            self.reads.end(read, _reached(read, request, page.last), names)
            return cast("Answer", page)
        return await self.store.send(request)


def _names_of(projection: tuple[Path, ...] | None, compared: Iterable[Path]) -> Names:
    return None if projection is None else frozenset(path[0] for path in (*projection, *compared))


def _range_of(request: Query | Count) -> KeyRange:
    """Returns the range of a request. Where it begins after a position, only what comes from there on."""
    low, high = _bounds(request.range)
    read = KeyRange(request.index, request.partition, low, high)
    start = _sort_value(request.start)
    if start is None:
        return read
    return read._replace(low=start) if _is_forward(request) else read._replace(high=start)


def _reached(read: KeyRange, request: Query | Count, last: Position | None) -> KeyRange:
    """Returns the part of the range that a page has reached."""
    end = _sort_value(last)
    if end is None:
        return read
    return read._replace(high=end) if _is_forward(request) else read._replace(low=end)


def _is_forward(request: Query | Count) -> bool:
    return not isinstance(request, Query) or request.forward


def _sort_value(position: Position | None) -> KeyValue | None:
    """Returns the sort key of a position; None if there is none. Of an index without one, the next value is a part of the
    table's key: its ranges contain every key anyway."""
    return None if position is None or len(position) < 2 else position[1]


def _bounds(of: Range | None) -> tuple[KeyValue | None, KeyValue | None]:
    match of:
        case Equals(value):
            return value, value
        case Prefix(str() as prefix):
            return prefix, prefix + LAST
        case Prefix(bytes() as prefix):
            return prefix, prefix.ljust(SORT_KEY_BYTES, LAST_BYTE)
        case Within(low, high):
            return low, high
        case AtLeast(value) | Above(value):
            return value, None
        case AtMost(value) | Below(value):
            return None, value
    return None, None
