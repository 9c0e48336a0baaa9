"""The worker that follows a table: reads its share of the stream's shards, and hands each change on at least once.

A shard is handled in its order, and a child after its parents. How far it was handled is in its lease
(`keygraph.changes.leases`), so that another worker goes on from there. While the store does not answer, it waits longer
each time. `Progress` says what it has done, and how far it is behind.
"""

from __future__ import annotations

import asyncio
import logging
import random
import time
from collections.abc import Callable, Coroutine, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any, TypeAlias

from keygraph.changes.leases import Leases, ShardLease
from keygraph.changes.stream import describe_stream
from keygraph.dynamo.store import Store
from keygraph.dynamo.streams import ReadRecords, ShardPosition, Stream, StreamRecord
from keygraph.errors import StoreError, StreamTrimmed, TableMissing
from keygraph.graph import Graph
from keygraph.incidents import Incident
from keygraph.writing.sending.idempotency import is_note

_log = logging.getLogger(__name__)
_PAUSE, _LONGEST_PAUSE = 0.1, 30.0

Handle: TypeAlias = "Callable[[str, Sequence[StreamRecord]], Coroutine[Any, Any, None]]"
"""Handles the next changes of a shard. Raises StoreError if they are to be handled again."""


@dataclass
class Progress:
    """What a worker has done since it was started."""

    changes: int = 0
    lost: int = 0
    """How often changes were deleted from the stream before they were read."""
    failures: int = 0
    """How often changes could not be read or handled, and were to be again."""
    _behind: dict[str, float] = field(default_factory=dict)
    """When the last change was made that was read, by shard; only of shards with more."""

    def read(self, shard: str, records: Sequence[StreamRecord]) -> None:
        self.changes += len(records)
        if records:
            self._behind[shard] = records[-1].at
        else:
            self._behind.pop(shard, None)

    def left(self, shard: str) -> None:
        self._behind.pop(shard, None)

    @property
    def lag(self) -> float:
        """How many seconds ago the changes were made that are handled now; 0 if all are handled."""
        return max(0.0, time.time() - min(self._behind.values())) if self._behind else 0.0

    @property
    def shards(self) -> int:
        """How many shards have changes that were not handled when it last looked."""
        return len(self._behind)


@dataclass(frozen=True)
class FollowOptions:
    """How a worker follows a table."""

    lease_seconds: float = 20.0
    """After how many seconds without a sign of life another worker takes a shard over."""
    poll_seconds: float = 0.25
    """How long it waits when there were no changes. DynamoDB allows five reads of a shard in a second, of all readers."""


class StreamWorker:
    """One worker. `run` ends when it is stopped, or raises TableMissing, or Unavailable for a table without a stream."""

    def __init__(
        self, graph: Graph, store: Store, handle: Handle, owner: str, options: FollowOptions | None = None
    ) -> None:
        """`owner` is the worker's name, which no other has."""
        self._store = store
        self._handle = handle
        self._options = options or FollowOptions()
        self._leases = Leases(graph, store, owner, self._options.lease_seconds)
        self._stop = asyncio.Event()
        self._look = asyncio.Event()
        """Set when shards may have appeared."""
        self.progress = Progress()
        self._trouble = Incident(_log)

    def stop(self) -> None:
        """Lets `run` end as soon as the changes that were read are handled."""
        self._stop.set()
        self._look.set()

    @property
    def held(self) -> int:
        """How many shards it reads."""
        return len(self._leases.held)

    async def run(self) -> None:
        tasks: dict[str, asyncio.Task[None]] = {}
        stream, failures = await describe_stream(self._store), 0
        try:
            while not self._stop.is_set():
                try:
                    stream = await describe_stream(self._store)
                    async for lease in self._leases.take(stream):
                        if lease.shard in tasks:
                            await tasks[lease.shard]
                        tasks[lease.shard] = asyncio.create_task(self._read(stream, lease))
                    failures = 0
                except TableMissing:
                    raise
                except StoreError as error:
                    failures += 1
                    self._trouble.happened(f"The stream cannot be followed: {error}")
                for shard in [name for name, task in tasks.items() if task.done()]:
                    tasks.pop(shard).result()
                await self._wait(self._look, max(self._options.lease_seconds / 4, _pause(failures)))
                self._look.clear()
        finally:
            self.stop()
            await asyncio.gather(*tasks.values(), return_exceptions=True)
            with suppress(StoreError):
                for shard in [*self._leases.held]:
                    await self._leases.give_back(stream, shard)

    async def _wait(self, event: asyncio.Event, seconds: float) -> None:
        # Python 3.11's wait_for forgets that it was canceled if the event comes at the same time.
        with suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                await event.wait()

    async def _read(self, stream: Stream, lease: ShardLease) -> None:
        """Reads a shard until it ends, is taken by another worker, or this one stops."""
        shard, failures = lease.shard, 0
        position: ShardPosition | None = lease.position
        renewed, saved = time.monotonic(), position
        while not self._stop.is_set() and position is not None:
            try:
                page = await self._store.send(ReadRecords(stream.name, shard, position))
                # Its own notes are changes too, and would be followed by the next ones.
                records = [each for each in page.records if not is_note(each.new or each.old or {})]
                self.progress.read(shard, records)
                if records:
                    await self._handled(stream, shard, records, position)
                position = page.position
                is_due = time.monotonic() - renewed >= self._options.lease_seconds / 4
                if records or position is None or is_due:
                    if not await self._leases.renew(stream, shard, position):
                        break
                    renewed, saved = time.monotonic(), position
                failures = 0
                if not records and position is not None:
                    await self._wait(self._stop, self._options.poll_seconds)
            except StreamTrimmed as error:
                self.progress.lost += 1
                _log.error(
                    "Changes are lost, and values that the stream keeps are wrong until `keygraph summarize` was run: %s",
                    error,
                )
                if position == ShardPosition():
                    self._leases.held.pop(shard, None)  # nothing of it is left
                    await self._wait(self._stop, self._options.poll_seconds)
                    break
                position = saved = ShardPosition()
            except StoreError as error:
                failures += 1
                self.progress.failures += 1
                self._trouble.happened(f"The shard {shard} cannot be followed: {error}")
                position = saved
                await self._wait(self._stop, _pause(failures))
        self.progress.left(shard)
        self._look.set()

    async def _handled(
        self, stream: Stream, shard: str, records: Sequence[StreamRecord], before: ShardPosition
    ) -> None:
        """Handles changes, and renews the lease meanwhile: two workers would take it from each other, and never get on."""
        handling = asyncio.create_task(self._handle(shard, records))
        while not (await asyncio.wait([handling], timeout=self._options.lease_seconds / 4))[0]:
            with suppress(StoreError):
                await self._leases.renew(stream, shard, before)
        await handling


def _pause(failures: int) -> float:
    """Returns the seconds to wait after so many failures."""
    return (
        random.uniform(0.5, 1) * min(_LONGEST_PAUSE, _PAUSE * 2.0 ** min(failures, 20)) if failures else 0.0
    )
