"""Leases on the shards of a stream: notes in the table, which say who reads a shard, and how far it was read.

Several workers share the shards of a table: each shard has one reader, who renews its lease as it goes on. A lease is taken
over when its counter did not change for some seconds, by the clock of whoever watches it, so that no clocks are compared.
Who has lost a lease notices when it renews it; until then two may read the shard, which does no harm: what they write is
conditional (`keygraph.changes.ledger`). A worker that has fewer shards than its share takes one from a worker with more.
"""

from __future__ import annotations

import time
from collections.abc import AsyncIterator, Iterable
from dataclasses import dataclass, field, replace
from decimal import Decimal

from keygraph.changes.ledger import is_position, is_unwritten, is_whole
from keygraph.changes.stream import readable
from keygraph.dynamo.actions import PutItem
from keygraph.dynamo.conditions import And, Eq
from keygraph.dynamo.items import Item
from keygraph.dynamo.store import BatchGet, Store, Write
from keygraph.dynamo.streams import ShardPosition, Stream
from keygraph.errors import ConditionFailed
from keygraph.graph import Graph
from keygraph.names import NOTE
from keygraph.writing.sending.idempotency import new_note, note_key


@dataclass(frozen=True)
class ShardLease:
    """The contents of a shard's note."""

    shard: str
    owner: str = ""
    """The worker that reads the shard; empty if it is free."""
    counter: int = 0
    """How often it was written; 0 if there is no note."""
    after: str = ""
    """The position of the last change that was handled."""
    is_finished: bool = False
    """Whether the shard was read to its end."""
    foreign: Item | None = None
    """The item of another program in the note's place: as good as no note, and replaced by one."""

    @property
    def position(self) -> ShardPosition | None:
        """Where the shard is read on; None if it was read to its end."""
        return None if self.is_finished else ShardPosition(self.after)


def _name(stream: Stream, shard: str) -> tuple[str | int, ...]:
    return 0, "lease", stream.name, shard


async def read_leases(graph: Graph, store: Store, stream: Stream) -> dict[str, ShardLease]:
    """Returns the lease of each shard. One that is described as open is not finished. Raises StoreError."""
    keys = tuple(note_key(graph, _name(stream, each.name)) for each in stream.shards)
    notes = (await store.send(BatchGet(keys, consistent=True))).items
    leases = ((shard, _lease(shard.name, note)) for shard, note in zip(stream.shards, notes, strict=True))
    return {
        shard.name: replace(each, is_finished=each.is_finished and shard.is_closed) for shard, each in leases
    }


def _lease(shard: str, note: Item | None) -> ShardLease:
    if note is None:
        return ShardLease(shard)
    match note.get(NOTE):
        case {
            "owner": str(owner),
            "counter": Decimal() as counter,
            "after": str(after),
            "finished": bool(is_finished),
        } if is_whole(counter) and (not after or is_position(after)):
            return ShardLease(shard, owner, int(counter), after, is_finished)
    return ShardLease(shard, foreign=note)


@dataclass
class Leases:
    """The leases that one worker has, and those of others as it sees them."""

    graph: Graph
    store: Store
    owner: str
    seconds: float
    """How long a lease lasts that is not renewed."""
    held: dict[str, ShardLease] = field(default_factory=dict)
    """Its own, by shard."""
    _watched: dict[str, tuple[ShardLease, float]] = field(default_factory=dict)
    """The leases of others, and since when they are unchanged."""

    async def take(self, stream: Stream) -> AsyncIterator[ShardLease]:
        """Takes what is free, abandoned, or too much for another worker, one shard of that at a time. Yields what is new, so
        that it is read even if the next one cannot be taken. Raises StoreError."""
        now, leases = time.monotonic(), await read_leases(self.graph, self.store, stream)
        for name in self._watched.keys() - leases.keys():
            del self._watched[name]
        for name, lease in leases.items():
            before = self._watched.get(name)
            if before is None or before[0] != lease:
                self._watched[name] = lease, now
        finished = {name for name, each in leases.items() if each.is_finished}
        open_ = [leases[each.name] for each in readable(stream.shards, finished)]
        free = [each for each in open_ if self._is_free(each, now)]
        chosen = free or self._too_many_of_another(open_)
        for each in chosen:
            new = ShardLease(each.shard, self.owner, each.counter + 1, each.after)
            if await self._write(stream, each, new) is not None:
                yield new

    def _is_free(self, lease: ShardLease, now: float) -> bool:
        if lease.shard in self.held:
            return False
        return lease.owner in ("", self.owner) or now - self._watched[lease.shard][1] >= self.seconds

    def _too_many_of_another(self, leases: Iterable[ShardLease]) -> list[ShardLease]:
        """Returns one shard of the worker that has the most, if that has two more than this one."""
        by_owner: dict[str, list[ShardLease]] = {}
        for each in leases:
            by_owner.setdefault(each.owner, []).append(each)
        most = max(by_owner.values(), key=len, default=[])
        return most[:1] if len(most) >= len(self.held) + 2 and most[0].owner != self.owner else []

    async def renew(self, stream: Stream, shard: str, position: ShardPosition | None) -> bool:
        """Saves how far a shard was handled; None for its end. Returns False if somebody else has taken it.
        Raises StoreError."""
        lease = self.held.get(shard)
        if lease is None:
            return False
        after = lease.after if position is None else position.after
        new = ShardLease(shard, self.owner, lease.counter + 1, after, position is None)
        return await self._write(stream, lease, new) is not None

    async def give_back(self, stream: Stream, shard: str) -> None:
        """Lets another worker take a shard at once. Raises StoreError."""
        lease = self.held.get(shard)
        if lease is not None:
            await self._write(
                stream, lease, ShardLease(shard, "", lease.counter + 1, lease.after, lease.is_finished)
            )

    async def _write(self, stream: Stream, old: ShardLease, new: ShardLease) -> ShardLease | None:
        content = {
            "shard": new.shard,
            "owner": new.owner,
            "counter": Decimal(new.counter),
            "after": new.after,
            "finished": new.is_finished,
        }
        note = new_note(self.graph, _name(stream, new.shard), content)
        same = is_unwritten(self.graph, old.foreign)
        if old.counter:
            same = And((Eq((NOTE, "counter"), Decimal(old.counter)), Eq((NOTE, "owner"), old.owner)))
        try:
            await self.store.send(Write(PutItem(note, same)))
        except ConditionFailed as failed:
            there = None if failed.item is None else _lease(new.shard, failed.item)
            if there is not None and (there.owner, there.counter) == (new.owner, new.counter) and new.owner:
                pass  # it was written, and only its answer was lost
            else:
                self.held.pop(new.shard, None)
                return None
        self.held.pop(new.shard, None)
        if new.owner == self.owner and not new.is_finished:
            self.held[new.shard] = new
        return new
