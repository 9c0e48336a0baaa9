"""Writes the other items of loaded edges: mirrors and counterparts that the source lacks.

An edge whose other item is in the source needs nothing. The keys of all others are kept until the source ends. Then
both items are read, and the other one is put with this one's values and its own other fields.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from keygraph.dynamo.items import Item
from keygraph.dynamo.store import BatchGet, BatchWrite, Store
from keygraph.dynamo.table import Key
from keygraph.errors import KeygraphError
from keygraph.graph import Graph
from keygraph.model.records import RecordType
from keygraph.writing import partners, rules
from keygraph.writing.context import WriteContext

_AT_ONCE = 100


class Pairs:
    """The edges of one load whose other items have not come."""

    def __init__(self, graph: Graph, *, asks_rules: bool = True) -> None:
        self._graph = graph
        self._asks_rules = asks_rules
        self._alone: dict[Key, tuple[Key, ...]] = {}
        """The keys of edges, with the possible keys of their other items."""
        self.is_needed = bool(graph.correspondences)

    def add(self, record: RecordType, item: Item) -> None:
        """Adds an item of the source. Raises BadUserInput or ValueError if its other item cannot be made."""
        if record.name not in self._graph.correspondences:
            return
        other = self._graph.counterpart(record, item)
        if other is None:
            return
        keys = tuple(self._graph.table_keys(other.record, other.identity))
        if not any(self._alone.pop(key, None) for key in keys):
            self._alone[self._graph.table.key_of(item)] = keys

    async def complete(self, store: Store) -> int:
        """Puts the other items that are missing or differ, and returns how many. Raises KeygraphError."""
        count = 0
        alone = [*self._alone.items()]
        for start in range(0, len(alone), _AT_ONCE):
            some = dict(alone[start : start + _AT_ONCE])
            wanted = tuple(dict.fromkeys([*some, *(key for keys in some.values() for key in keys)]))
            batch = await store.send(BatchGet(wanted, consistent=True))
            stored = dict(zip(wanted, batch.items, strict=True))
            made = [*self._made(some, stored)]
            if made:
                await store.send(BatchWrite(tuple(made)))
            count += len(made)
        return count

    def _made(self, some: Mapping[Key, tuple[Key, ...]], stored: Mapping[Key, Item | None]) -> Iterator[Item]:
        for key, others in some.items():
            item = stored.get(key)
            record = None if item is None else self._graph.recognise(item)
            if item is None or record is None:
                continue
            write = self._graph.made(WriteContext).separate()
            there = next((found for each in others if (found := stored.get(each)) is not None), None)
            made = partners.other(write, record, item, ())
            pair = self._graph.correspondences[record.name]
            if there is not None and self._graph.recognise(there) is not pair.other:
                continue
            if there is not None and made is not None and not pair.is_mirror:
                made = partners.changed(write, record, there, made, ())
                made |= {each.name: there[each.name] for each in self._graph.table.keys}
            if made is not None and self._asks_rules:
                rules.check(write, pair.other, made, ())
            if there is None and pair.needed:
                problem = f"Load the {pair.other.name} of each {record.name} too: it needs {', '.join(pair.needed)}."
                raise KeygraphError(problem)
            if write.refusals.found:
                raise KeygraphError(write.refusals.found[0].message)
            if made is not None and made != there:
                yield made
