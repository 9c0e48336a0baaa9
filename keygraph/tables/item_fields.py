"""Checks that an item has the fields and ends that its type requires, with values that can be read."""

from __future__ import annotations

from collections.abc import Iterator

from keygraph.dynamo.items import Item
from keygraph.errors import CorruptItem
from keygraph.graph import Graph
from keygraph.model.fields import missing
from keygraph.model.records import RecordType
from keygraph.tables.attributes import AttributeCounter, unmatched
from keygraph.tables.item_keys import ItemKeys


class ItemFields:
    """The fields and ends of a type's items."""

    def __init__(self, graph: Graph, record: RecordType, keys: ItemKeys) -> None:
        self._graph = graph
        self._record = record
        self._readers = [(field.name, record.reader(field)) for field in record.fields.values()]
        told = {slot.name for slot in record.identity if not slot.lossy}
        # A value in the table's key is never missing.
        self._ends = [
            end
            for end in record.ends.values()
            if any(slot.under(end.name).name not in told for slot in end.identity)
        ]
        self._needed = {
            end.name for end in self._ends if not end.optional and end.name not in keys.optional_ends
        }

    def problems(self, item: Item) -> Iterator[tuple[str, str]]:
        """Yields each field or end that the item lacks, or that cannot be read, with the problem."""
        for name, read in self._readers:
            try:
                read(item)
            except CorruptItem as error:
                yield name, str(error)
        for end in self._ends:
            try:
                is_missing = self._record.end_identity(item, end) is None and end.name in self._needed
            except CorruptItem as error:
                yield end.name, str(error)
                continue
            if is_missing:
                yield end.name, missing(self._record.name, end.name, end.attributes.values())

    def refusal(self, item: Item) -> str | None:
        """Returns why the item is refused, with the attribute that was probably meant; None if nothing is wrong."""
        found = next(self.problems(item), None)
        if found is None:
            return None
        name, problem = found
        counter = AttributeCounter(self._graph)
        counter.add(self._record, item)
        for each in unmatched(self._graph, counter.counts):
            if each.field == name and each.meant is not None:
                return f"{problem}: it has {each.meant}, and {each.path} was probably meant"
        return problem
