"""Keeps walks of one level by the stream: a node whose own lists a change touches walks again.

The lists are read after the node, as the last write left them. What the walk finds is written on the condition that the
node has what it had when it was read, by a mark that is another one with each write. So what is written last was read
after every change that was handled before; that a change is handled twice, or late, does not matter.

A node gets its value when it is created while this runs, or from `keygraph summarize`.
"""

from __future__ import annotations

import logging
from bisect import bisect_right
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime
from decimal import Decimal
from typing import Any
from uuid import uuid4

from keygraph.changes.counting import overwritten, read_node
from keygraph.dynamo.actions import AttributeChange, SetTo, UpdateItem
from keygraph.dynamo.conditions import And, at_path
from keygraph.dynamo.items import Item, Value
from keygraph.dynamo.store import Store, Write, pages
from keygraph.dynamo.streams import StreamRecord
from keygraph.errors import BadUserInput, ConditionFailed, CorruptItem
from keygraph.graph import Graph
from keygraph.keys.types import encode
from keygraph.lists.reading import requests_of_all
from keygraph.model.fields import Field
from keygraph.model.records import RecordType
from keygraph.resolve.derived import age_of, stored_value
from keygraph.resolve.walks import NodeWalk
from keygraph.tables.bulk import gathered
from keygraph.tables.totals import list_form
from keygraph.tables.walked_edges import FollowedEdge, WalkedEdges, WalkSource
from keygraph.walks.keeping import KEPT_BUDGET, read_kept
from keygraph.walks.walk import Vertex
from keygraph.writing.presence import Presence, is_unchanged
from keygraph.writing.sending.idempotency import is_note

_log = logging.getLogger(__name__)
_MARK = "mark"
"""The member of the stored map that is another one with each write."""
_ROUNDED_SECONDS = 60
"""The times of changes are rounded down, on DynamoDB Local to a minute."""
_NODES = 25
"""How many nodes walk at the same time."""


def stream_walks(graph: Graph) -> list[NodeWalk]:
    """Returns the walks that the stream keeps."""
    return [walk for walk in graph.walks.values() if walk.options.keeper == "stream"]


def is_same_walk(walk: NodeWalk, one: Value, other: Value) -> bool:
    """Returns whether two values hold the same nodes. Raises CorruptItem."""
    return one is not None and other is not None and read_kept(walk, one) == read_kept(walk, other)


class StreamWalks:
    """What walks find, kept by the stream."""

    def __init__(self, graph: Graph, store: Store) -> None:
        self._graph = graph
        self._store = store
        self._presence = Presence(graph)
        self._edges = WalkedEdges(graph, stream_walks(graph))
        self._walks: dict[RecordType, list[NodeWalk]] = {}
        for walk in self._edges.walks:
            self._walks.setdefault(walk.owner, []).append(walk)

    async def apply(self, records: Sequence[StreamRecord]) -> None:
        """Walks from every node whose lists these changes touch. Raises StoreError: then it is to be called again."""
        touched: dict[Vertex, bool] = {}
        for record in records if self._walks else ():
            for node in self.touched(record):
                touched.setdefault(node, False)
            own = overwritten(self._graph, record, self._walks, self._is_foreign)
            if own is not None:
                touched[Vertex(*own)] = True
        await gathered((self.keep(node, is_new=is_new) for node, is_new in touched.items()), at_once=_NODES)

    def touched(self, change: StreamRecord) -> set[Vertex]:
        """Returns the nodes whose lists a change touches, of those with walks."""
        old, new = ({*self._edges_of(item)} for item in (change.old, change.new))
        return {edge.owner for edge in old ^ new if edge.owner.record in self._walks}

    def fields_of(self, record: RecordType) -> Sequence[Field]:
        """Returns the fields of a type that hold walks."""
        return [record.fields[walk.name] for walk in self._walks.get(record, ())]

    async def wrong(self, node: Vertex, changed: float = 0) -> dict[Field, Value]:
        """Returns what walks from a node find, of those of which it keeps something else, at the time of what it keeps, unless
        that is older than a change. Raises StoreError."""
        item, wrong = await read_node(self._graph, self._store, node), dict[Field, Value]()
        for walk in self._walks.get(node.record, ()):
            field, age = _fields(walk)
            kept = None if item is None else stored_value(field, item)
            if item is None or kept is None:
                continue
            try:
                at = node.record.reader(age)(item)
                if changed > 0 and (at is None or changed + _ROUNDED_SECONDS >= at.timestamp()):
                    continue
                [found] = (await self._found(node, item, [walk], at or datetime.now(UTC))).values()
                if not is_same_walk(walk, kept, found):
                    wrong[field] = found
            except CorruptItem:
                continue  # reported for the node itself
        return wrong

    def _edges_of(self, item: Item | None) -> Iterable[FollowedEdge]:
        if item is None or is_note(item):
            return ()
        try:
            record = self._graph.recognise(item)
            return () if record is None else [*self._edges.of(record, item)]
        except Exception as error:
            # The model is somebody else's; it fails on the same item each time.
            _log.warning("An item is in no list: the model fails with %s", type(error).__name__)
            return ()

    def _is_foreign(self, of: RecordType, old: Item, new: Item) -> bool:
        """Returns whether a node has other values than this has written."""
        values = ((_stored(walk, old), _stored(walk, new)) for walk in self._walks[of])
        return any(
            before != after and (_mark(after) is None or _mark(after) == _mark(before))
            for before, after in values
        )

    async def keep(self, node: Vertex, *, is_new: bool) -> None:
        """Walks from a node, and writes what it finds; if the node is not new, only what it had before. Raises StoreError."""
        record = node.record
        while True:
            item = await read_node(self._graph, self._store, node)
            if item is None:
                return
            walks = [each for each in self._walks[record] if is_new or _stored(each, item) is not None]
            if not walks:
                return
            action = UpdateItem(self._graph.table.key_of(item), *await self._changes(node, item, walks))
            try:
                await self._store.send(Write(action))
            except ConditionFailed:
                continue
            except BadUserInput as error:
                _log.error("What walks found from a %s cannot be written: %s", record.name, error)
            return

    async def _changes(
        self, node: Vertex, item: Item, walks: Sequence[NodeWalk]
    ) -> tuple[tuple[AttributeChange, ...], And]:
        now = datetime.now(UTC).replace(microsecond=0)
        changes: list[AttributeChange] = []
        conditions = [self._presence.is_there(node.record)]
        for walk, found in (await self._found(node, item, walks, now)).items():
            field, age = _fields(walk)
            changes += [
                SetTo(field.attribute, {**found, _MARK: uuid4().hex}),
                SetTo(age.attribute, encode(age.type, now)),
            ]
            is_map = isinstance(at_path(item, field.attribute), dict)
            conditions.append(is_unchanged((*field.attribute, _MARK) if is_map else field.attribute, item))
        return tuple(changes), And(tuple(conditions))

    async def _found(
        self, node: Vertex, item: Item, walks: Sequence[NodeWalk], now: datetime
    ) -> dict[NodeWalk, Any]:
        """Returns what walks from a node find at a time, along its lists as they are."""
        at = Decimal(int(now.timestamp()))
        lists = await self._lists(node, item, at)

        def edges(name: str, after: bytes, most: int) -> list[tuple[bytes, bytes]]:
            found = lists.get(name, [])
            start = bisect_right(found, after, key=lambda each: each[0])
            return found[start : start + most]

        source = WalkSource(self._graph, edges, at)
        return {walk: source.found(walk, node) or {"total": None, "nodes": []} for walk in walks}

    async def _lists(self, node: Vertex, item: Item, at: Decimal) -> Mapping[str, list[tuple[bytes, bytes]]]:
        """Returns the edges of the node's lists in their order, by list: not more than a walk examines."""
        found = defaultdict[str, list[tuple[bytes, bytes]]](list)
        most = max(walk.options.budget or KEPT_BUDGET for walk in self._walks[node.record])
        self._add(found, node, [item], at)
        for tally in self._edges.tallies.get(node.record, ()):
            left = most + 1
            for query in requests_of_all(list_form(self._graph, tally).of(node.identity)):
                async for page in pages(self._store, query):
                    self._add(found, node, page.items, at)
                    left -= len(page.items)
                    if left < 0:
                        break
        for edges in found.values():
            edges.sort()
        return found

    def _add(
        self, found: dict[str, list[tuple[bytes, bytes]]], node: Vertex, items: Iterable[Item], at: Decimal
    ) -> None:
        for item in items:
            for edge in () if self._graph.is_expired(item, at) else self._edges_of(item):
                if edge.owner == node:
                    found[edge.list].append((edge.place, edge.content))


def _fields(walk: NodeWalk) -> tuple[Field, Field]:
    """Returns the field with what a walk found, and the one with its time."""
    field = walk.owner.fields[walk.name]
    return field, age_of(walk.owner, field)


def _stored(walk: NodeWalk, item: Item) -> Value:
    return stored_value(walk.owner.fields[walk.name], item)


def _mark(value: Value) -> object:
    return value.get(_MARK) if isinstance(value, dict) else None
