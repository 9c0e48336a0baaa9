"""The items of a table for the bound; nothing is requested here."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import cast

from keygraph.dynamo.items import Item
from keygraph.dynamo.table import Key, KeyValue, Table
from keygraph.lists.query import ListQuery
from keygraph.lists.ranges import Span
from tests.engine_order import order_among_equals


class Items:
    """The items of a table: by their keys, and by the partitions of the table and of its indexes."""

    def __init__(self, table: Table, items: Iterable[Item]) -> None:
        self.table = table
        self._by_key = {table.key_of(item): item for item in items}
        self._partitions: dict[tuple[str | None, KeyValue], list[Item]] = {}
        for item in self._by_key.values():
            for index in (None, *(index.name for index in table.indexes)):
                keys = table.keyed(index)
                names = [key.name for key in keys.keys]
                if all(name in item for name in names):
                    partition = cast(KeyValue, item[names[0]])
                    self._partitions.setdefault((index, partition), []).append(item)

    def __iter__(self) -> Iterator[Item]:
        return iter(self._by_key.values())

    def get(self, key: Key) -> Item | None:
        return self._by_key.get(key)

    def keys_beside(self, key: Key) -> list[Key]:
        """The keys of the items in the same partition as this key."""
        return [self.table.key_of(item) for item in self._partitions.get((None, key[0]), ())]

    def in_range(self, neighbours: ListQuery, partition: KeyValue) -> list[Item]:
        """The items in the range of a list in one of its partitions, in the list's order."""
        found = self._partitions.get((neighbours.path.keys.index_name, partition), ())
        read = [item for item in found if neighbours.reads(neighbours.sort_of(item))]
        return sorted(read, key=lambda item: (neighbours.sort_of(item), *self._among_equals(item)))

    def in_span(self, index: str | None, partition: KeyValue, span: Span) -> list[Item]:
        """The items in a span of a partition of the table or of an index."""
        keys = self.table.keyed(index).keys
        found = self._partitions.get((index, partition), ())
        return [item for item in found if len(keys) == 1 or span.contains(cast(KeyValue, item[keys[1].name]))]

    def of(self, neighbours: ListQuery) -> list[Item]:
        """The items of a list in the order of its sort key."""
        found = [
            item
            for partition in neighbours.partitions
            for item in self._partitions.get((neighbours.path.keys.index_name, partition), ())
            if neighbours.covers(item)
        ]

        def order(item: Item) -> tuple[object, ...]:
            return *neighbours.order_of(neighbours.place_of(item)), *self._among_equals(item)

        return sorted(found, key=order)

    def _among_equals(self, item: Item) -> tuple[bytes, ...]:
        return order_among_equals(self.table.key_of(item))
