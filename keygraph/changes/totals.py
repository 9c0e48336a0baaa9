"""Compares the values that the stream keeps with their lists, and corrects them, while the table is written to.

A ledger contains some changes of a node's lists, and the lists all of them, so they differ by what is under way in the stream.
The comparison is exact nevertheless: it reads the ledger, then the lists, then the changes that were made since a position that
`keygraph follow` has handled. Of an item that changed, the ledger knows the state after the last change that it contains, or
else the state before the first one. What all items added in these states is the ledger's right value, and it is written
on the condition that the ledger is as it was read.
"""

from __future__ import annotations

import asyncio
import time
from collections import defaultdict
from collections.abc import Mapping, Sequence
from itertools import count
from typing import TypeAlias

from keygraph.changes.counting import Added, NodeValues, StreamTallies
from keygraph.changes.kept_walks import StreamWalks
from keygraph.changes.leases import read_leases
from keygraph.changes.ledger import Ledger, Lineage, Node, replace_ledger
from keygraph.changes.stream import StreamReader
from keygraph.dynamo.items import Item, Value
from keygraph.dynamo.store import Store
from keygraph.dynamo.streams import DescribeStream, StreamRecord
from keygraph.dynamo.table import Key
from keygraph.graph import Graph
from keygraph.model.fields import Field
from keygraph.model.records import RecordType
from keygraph.resolve.derived import combined, stored_value
from keygraph.tables.totals import computed, listed
from keygraph.walks.walk import Vertex

_TRIES = 20
_READS = 10
"""If so many reads of the stream have all found changes, they end at those that are made after them, not at a read without
any: there may always be changes."""
_Change: TypeAlias = "tuple[str, str, Added, Added]"
"""A shard, a position in it, and what an item added to a node before and after."""


class StreamTotals:
    """Compares and corrects what the stream keeps in a table."""

    def __init__(self, graph: Graph, store: Store, late_seconds: float = 0) -> None:
        """The stream, and global indexes, may be `late_seconds` behind the table."""
        self._graph = graph
        self._store = store
        self._late_seconds = late_seconds
        self._tallies = graph.made(StreamTallies)
        self._values = NodeValues(graph, store)
        self._walks = StreamWalks(graph, store)
        self._recent = _RecentChanges(graph, store, self._walks)

    def fields_of(self, record: RecordType) -> Sequence[Field]:
        """Returns what the stream keeps in nodes of a type."""
        return (*self._tallies.of.get(record, ()), *self._walks.fields_of(record))

    async def wrong(self, node: Node, *, fixes: bool) -> dict[Field, Value]:
        """Returns the right value of each field that is wrong, of those that were computed before. With `fixes`, also of
        the others, and all of them are corrected, but for walks. Raises StoreError."""
        totals = await self._wrong_totals(node, fixes=fixes) if node[0] in self._tallies.of else {}
        return totals if fixes else {**totals, **await self._wrong_walks(Vertex(*node))}

    async def _wrong_walks(self, node: Vertex) -> dict[Field, Value]:
        """Returns what walks find, unless a change of their lists may be under way."""
        if not await self._walks.wrong(node):
            return {}
        await self._recent.start()
        await asyncio.sleep(self._late_seconds)
        await self._recent.read_on()
        return await self._walks.wrong(node, self._recent.touched.get(node, 0))

    async def _wrong_totals(self, node: Node, *, fixes: bool) -> dict[Field, Value]:
        fields = self._tallies.of[node[0]]
        if not fixes and await self._is_plainly_right(node):
            return {}
        await self._recent.start()
        found: dict[Field, Value] = {}
        for _ in range(_TRIES):
            ledger, item = await self._there(node)
            right = await self._right(node, ledger)
            stored = {each: None if item is None else stored_value(each, item) for each in fields}
            known = {each for each in fields if fixes or stored[each] is not None}
            is_outdated = item is not None and any(stored[each] != ledger.value_of(each) for each in known)
            found = {
                each: right[each]
                for each in known
                if ledger.value_of(each) != right[each] or (item is not None and stored[each] != right[each])
            }
            if not found and not is_outdated:
                return {}
            if fixes:
                if await self._corrected(node, ledger, right, item):
                    return found
            else:
                # Between its two writes, a worker has changed the ledger and not yet the node.
                await asyncio.sleep(self._late_seconds)
                if await self._there(node) == (ledger, item):
                    return found
        return {} if not fixes else found

    async def has(self, node: Node, right: Mapping[Field, Value]) -> bool:
        """Returns whether a node and its ledger have these values. Raises StoreError."""
        ledger, item = await self._there(node)
        return ledger.version > 0 and all(
            ledger.value_of(each) == value and (item is None or stored_value(each, item) == value)
            for each, value in right.items()
        )

    async def _there(self, node: Node) -> tuple[Ledger, Item | None]:
        note, item = (await self._values.read([node]))[node]
        return Ledger.of(note), item

    async def _is_plainly_right(self, node: Node) -> bool:
        """Returns whether the node, its ledger and its lists agree without regard to what is under way."""
        ledger, item = await self._there(node)
        totals = await computed(self._graph, self._store, node[1], self._tallies.of[node[0]])
        return all(
            value == ledger.value_of(each) and (item is None or stored_value(each, item) in (None, value))
            for each, value in totals.items()
        )

    async def _right(self, node: Node, ledger: Ledger) -> dict[Field, Value]:
        fields, states = self._tallies.of[node[0]], defaultdict[Key, Added](dict)
        async for page in listed(self._graph, self._store, node[1], fields):
            for key, of, value in page:
                states[key][of] = value
        await asyncio.sleep(self._late_seconds)
        await self._recent.read_on()
        lineage = self._recent.lineage
        await lineage.know(ledger.read)
        for key, changes in self._recent.of(node).items():
            contained = [each for each in changes if lineage.contains(ledger.read, *each[:2])]
            states[key] = contained[-1][3] if contained else changes[0][2]
        return {
            each: combined(each, [added[each] for added in states.values() if each in added])
            for each in fields
        }

    async def _corrected(
        self, node: Node, ledger: Ledger, right: dict[Field, Value], item: Item | None
    ) -> bool:
        """Returns whether the values were written: not if the ledger has changed since it was read."""
        values = {each.name: value for each, value in right.items()}
        step = self._values.step_of(node[0])
        new = ledger.next(values, ledger.read, 0, step)
        if not ledger.version:
            new = ledger.next(values, ledger.read, self._recent.began, step)
        if await replace_ledger(self._graph, self._store, node, ledger, new) is not None:
            return False
        await self._values.copy(node, new, item, is_new=True)
        return True


class _RecentChanges:
    """The changes of nodes' lists since the first use."""

    def __init__(self, graph: Graph, store: Store, walks: StreamWalks) -> None:
        self._graph = graph
        self._walks = walks
        self.touched = dict[Vertex, float]()
        """The nodes with walks whose lists were changed, and when last."""
        self._store = store
        self._tallies = graph.made(StreamTallies)
        self._reader: StreamReader | None = None
        self._changes: dict[Node, dict[Key, list[_Change]]] = defaultdict(lambda: defaultdict(list))
        self._starting, self._reading = asyncio.Lock(), asyncio.Lock()
        self._started = self._finished = 0
        """The number of the last reading that was started, and of the last that is finished."""
        self.lineage = Lineage(store)
        self.began = 0.0

    async def start(self) -> None:
        """Finds where to begin: what was changed before is in the ledgers. Raises StoreError."""
        async with self._starting:
            stream = None if self.began else await self._store.send(DescribeStream())
            if stream is not None:
                leases = await read_leases(self._graph, self._store, stream)
                self._reader = StreamReader(
                    self._store, {name: each.position for name, each in leases.items()}
                )
            self.began = self.began or time.time()

    async def read_on(self) -> None:
        """Reads what was changed before this was called. Raises StoreError."""
        ticket = self._started
        async with self._reading:
            if self._finished > ticket or self._reader is None:
                return  # another one has, after this was called
            self._started += 1
            later, first_later = StreamReader(self._store), dict[str, str]()
            for number in count():
                if number == _READS:
                    await later.start_at_latest()
                elif number > _READS:
                    for shard, record in await later.read():
                        first_later.setdefault(shard, record.position)
                finished = self._reader.finished
                records = await self._reader.read()
                for shard, record in records:
                    self._add(shard, record)
                is_later = all(
                    shard in first_later and each.position >= first_later[shard] for shard, each in records
                )
                if is_later and finished == self._reader.finished:
                    break
            self._finished = self._started

    def _add(self, shard: str, record: StreamRecord) -> None:
        self.touched |= dict.fromkeys(self._walks.touched(record), record.at)
        before, after = (self._tallies.added(item) for item in (record.old, record.new))
        for node in {**before, **after}:
            added = before.get(node, {}), after.get(node, {})
            if added[0] != added[1]:
                self._changes[node][record.key].append((shard, record.position, *added))

    def of(self, node: Node) -> dict[Key, list[_Change]]:
        """Returns the changes of a node's lists, by the key of the item."""
        return self._changes.get(node, {})
