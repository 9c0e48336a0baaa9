"""The other item of an edge: a mirror or a counterpart that is put, changed and deleted with it.

A mirror has all the same values, so one item determines the other. A counterpart may have rules, its own fields, also
in its keys, be counted, or have a key with a changing field. Such a pair is loose: both items are read before a write.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass

from keygraph.dynamo.items import Item
from keygraph.dynamo.table import Key
from keygraph.errors import InputPath, KeygraphError
from keygraph.graph import Graph
from keygraph.model.counterparts import Counterpart
from keygraph.model.records import RecordType
from keygraph.writing.items import ItemMaker, Refusals, Replaced
from keygraph.writing.requests import Move, WriteRequest


@dataclass(frozen=True, slots=True)
class Partner:
    """The other type of a pair of edges."""

    record: RecordType
    moving: frozenset[str]
    """The fields of the edge that are in the other item's table key but not in its own."""
    own: frozenset[str]
    """The fields and ends that only the other type has."""
    shared: frozenset[str]
    """The fields and ends that both have."""
    is_loose: bool
    """Whether the other item has to be known before it is written."""


class Partners:
    """The other items of a graph's edges."""

    def __init__(self, graph: Graph, maker: Callable[[RecordType], ItemMaker]) -> None:
        self._graph = graph
        self._maker = maker
        self._found = {name: self._partner(name) for name in graph.correspondences}

    def of(self, record: RecordType) -> Partner | None:
        """Returns the other type; None for a type without one."""
        return self._found.get(record.name)

    def _partner(self, name: str) -> Partner:
        told = self._graph.correspondences[name]
        one, other = told.one, told.other
        makers = self._maker(one), self._maker(other)
        mine, theirs = (maker.sources([maker.record.table_keys]) for maker in makers)
        shared = frozenset({*told.fields, *told.ends})
        own = frozenset({*other.fields, *other.ends}) - shared
        in_keys = makers[1].sources(other.keys.values())
        is_loose = not told.is_mirror and (
            mine != theirs
            or bool(own & in_keys)
            or bool(other.table_keys.shards)
            or bool(other.rules)
            or other.name in self._graph.tallies
        )
        return Partner(other, frozenset(theirs - mine), own, shared, is_loose)

    # --- The other item -----------------------------------------------------------------------------------

    def item(self, record: RecordType, item: Item, where: InputPath, refusals: Refusals) -> Item | None:
        """Returns the other item of an edge, with the values that this one determines; None without one or on a
        problem."""
        other = self._told(record, item, where, refusals)
        if other is None:
            return None
        made, _ = self._maker(other.record).with_rendered(other.attributes, other.texts, where, refusals)
        return None if refusals.found else made

    def _told(
        self, record: RecordType, item: Item, where: InputPath, refusals: Refusals
    ) -> Counterpart | None:
        try:
            return self._graph.counterpart(record, item)
        except (ValueError, KeygraphError) as error:
            refusals.add(where, f"The other item of this {record.name} cannot be made: {error}.")
            return None

    def is_read(self, request: WriteRequest) -> bool:
        """Returns whether a request needs an edge's other item: a move keeps the fields that only that item has."""
        partner = self.of(request.record)
        return partner is not None and (partner.is_loose or (isinstance(request, Move) and bool(partner.own)))

    def keys(self, record: RecordType, items: Iterable[Item | None]) -> list[Key]:
        """Returns the possible keys of the other item of an edge that is one of these items."""
        told = [self._told(record, item, (), Refusals()) for item in items if item is not None]
        return [key for each in told if each for key in self._graph.table_keys(each.record, each.identity)]

    def there(self, record: RecordType, item: Item, stored: Mapping[Key, Item | None]) -> Item | None:
        """Returns the other item of an edge among those that were read."""
        read = (stored.get(key) for key in self.keys(record, [item]))
        other = self._found[record.name].record
        return next(
            (each for each in read if each is not None and self._graph.recognise(each) is other), None
        )

    def changed(
        self, record: RecordType, there: Item, after: Item, where: InputPath, refusals: Refusals
    ) -> Item:
        """Returns the stored other item with the edge's new values, keeping the fields that only it has."""
        partner = self._found[record.name]
        maker = self._maker(partner.record)
        shared = {path[0] for path in maker.paths(partner.shared)}
        kept = {name: value for name, value in maker.without_own_keys(there).items() if name not in shared}
        told = maker.without_own_keys(after)
        replaced = Replaced(there, partner.shared)
        made, _ = maker.with_keys(kept | told, where, refusals, replaced=replaced)
        return made
