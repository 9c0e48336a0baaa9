"""Reads the whole stream of a table in one process: every shard, and parents before their children.

A `StreamReader` remembers in memory how far it has read. `start_at_latest` skips what was before: whoever reads the table
after it misses nothing. What must survive the process, or is shared with others, is `keygraph.changes.following`'s.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Iterator, Mapping, Set

from keygraph.dynamo import streams
from keygraph.dynamo.store import Store
from keygraph.errors import Unavailable


async def describe_stream(store: Store) -> streams.Stream:
    """Returns the stream of a table. Raises Unavailable if it is off."""
    stream = await store.send(streams.DescribeStream())
    if stream is None:
        raise Unavailable(
            f"the stream of the table {store.table.name} is off: turn it on with `keygraph table update --stream`"
        )
    return stream


def ancestors(shards: Mapping[str, streams.StreamShard], name: str) -> Iterator[str]:
    """Yields the names of the shards whose changes come before those of a shard, the nearest first."""
    parent = shards[name].parent if name in shards else None
    while parent is not None and parent in shards:
        yield parent
        parent = shards[parent].parent


class StreamReader:
    """Reads all shards of one stream."""

    def __init__(
        self, store: Store, positions: Mapping[str, streams.ShardPosition | None] | None = None
    ) -> None:
        """`positions` are those after which shards are read, by name; None for one that was read to its end. Any other
        shard is read from its beginning."""
        self._store = store
        self.positions: dict[str, streams.ShardPosition | None] = dict(positions or {})
        self._stream: streams.Stream | None = None
        self._failure: BaseException | None = None
        """Why a shard could not be read while others were."""

    async def start_at_latest(self) -> None:
        """Skips everything that was changed so far. Raises Unavailable if the stream is off."""
        stream = self._stream = await describe_stream(self._store)
        # What is written while this asks is read, or not: each change is in one shard.
        open_ = [each.name for each in stream.shards if not each.is_closed]
        latest = await asyncio.gather(
            *(self._store.send(streams.LatestPosition(stream.name, name)) for name in open_)
        )
        self.positions = {each.name: None for each in stream.shards} | dict(zip(open_, latest, strict=True))

    async def read(self) -> list[tuple[str, streams.StreamRecord]]:
        """Returns the next changes of every shard that can be read, with its name; none if there are none yet.

        Raises StreamTrimmed if changes were deleted before they were read: it is to start at the latest again.
        """
        failure, self._failure = self._failure, None
        if failure is not None:
            raise failure
        stream = self._stream
        if stream is None:
            stream = self._stream = await describe_stream(self._store)
        ready = [*readable(stream.shards, self.finished)]
        if not ready:
            self._stream = None  # its open shards were not described yet
        positions = [(each.name, self.positions.get(each.name) or streams.ShardPosition()) for each in ready]
        requests = [streams.ReadRecords(stream.name, *each) for each in positions]
        pages = await asyncio.gather(*map(self._store.send, requests), return_exceptions=True)
        found: list[tuple[str, streams.StreamRecord]] = []
        for shard, page in zip(ready, pages, strict=True):
            if isinstance(page, BaseException):
                failure = page
                continue
            found += [(shard.name, record) for record in page.records]
            self.positions[shard.name] = page.position
            if page.position is None:
                self._stream = None  # it may have children
        if failure is not None and not found:
            raise failure
        self._failure = failure
        return found

    @property
    def finished(self) -> Set[str]:
        """The shards that were read to their end."""
        return {name for name, position in self.positions.items() if position is None}


def readable(shards: Iterable[streams.StreamShard], finished: Set[str]) -> Iterator[streams.StreamShard]:
    """Yields the shards that can be read: they are not finished, and their parents are, or are gone."""
    names = {each.name for each in shards}
    for each in shards:
        is_next = each.parent is None or each.parent not in names or each.parent in finished
        if each.name not in finished and is_next:
            yield each
