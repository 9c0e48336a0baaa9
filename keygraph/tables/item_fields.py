"""Checks of one item: that it has the fields and ends that its type requires, with values that can be read, and that it
keeps the rules of its type (`check=`), alone or combined with the stored item."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress

from keygraph.dynamo.actions import SetTo
from keygraph.dynamo.conditions import Condition, Exists, Not, Or, holds
from keygraph.dynamo.expressions import simplified
from keygraph.dynamo.foreseen import NEVER, before
from keygraph.dynamo.items import Item
from keygraph.errors import ConditionFailed, CorruptItem
from keygraph.graph import Graph
from keygraph.model.fields import missing
from keygraph.model.records import RecordType
from keygraph.tables.attributes import AttributeCounter, unmatched
from keygraph.tables.item_keys import ItemKeys


class ItemFields:
    """The fields, ends and keys of a type's items."""

    def __init__(self, graph: Graph, record: RecordType) -> None:
        self.keys = keys = ItemKeys(record)
        self._graph = graph
        self._record = record
        self._readers = [
            (field.name, record.reader(field), *(record.plain_attribute(field) or (None, None)))
            for field in record.fields.values()
        ]
        """Each field with its reader and, if its value is that of an attribute, the attribute and its type."""
        self._unread = [each for each in self._readers if each[0] not in keys.stored_fields]
        """Those of which certainly right keys say nothing."""
        in_key = {slot.name for slot in record.identity if not slot.lossy}
        # A value in the table's key is never missing.
        self._ends = [
            end
            for end in record.ends.values()
            if any(slot.under(end.name).name not in in_key for slot in end.identity)
        ]
        self._needed = {
            end.name for end in self._ends if not end.optional and end.name not in keys.optional_ends
        }

    def problems(self, item: Item) -> Iterator[tuple[str, str]]:
        """Yields each field or end that the item lacks, or that cannot be read, with the problem."""
        yield from self.of_fields(item)
        yield from self.of_ends(item)

    def of_fields(self, item: Item, *, are_keys_right: bool = False) -> Iterator[tuple[str, str]]:
        """Yields the problems of fields."""
        for name, read, attribute, type_ in self._unread if are_keys_right else self._readers:
            if attribute is not None and type(item.get(attribute)) is type_:
                continue
            try:
                read(item)
            except CorruptItem as error:
                yield name, str(error)

    def of_ends(self, item: Item) -> Iterator[tuple[str, str]]:
        """Yields the problems of ends."""
        for end in self._ends:
            try:
                is_missing = self._record.end_identity(item, end) is None and end.name in self._needed
            except CorruptItem as error:
                yield end.name, str(error)
                continue
            if is_missing:
                yield end.name, missing(self._record.name, end.name, end.attributes.values())
        for end in self._record.list_ends.values():
            with suppress(CorruptItem):  # reported of the field
                for each in self._record.member_identities(item, end) or ():
                    if isinstance(each, CorruptItem):
                        yield end.name, str(each)

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


def item_fields(graph: Graph) -> dict[str, ItemFields]:
    """Returns the `ItemFields` of each type that has items, by its name, for `Graph.made`."""
    return {name: ItemFields(graph, record) for name, record in graph.types.items() if not record.is_virtual}


class ItemRules:
    """The rules of a graph's types, checked for items that are put into the table."""

    def __init__(self, graph: Graph, *, is_merged: bool) -> None:
        """`is_merged`: an item in the table keeps the attributes that a new one lacks."""
        self._graph = graph
        self._is_merged = is_merged
        self._is_new = Not(Exists((graph.table.partition.name,)))

    def refusal(self, item: Item) -> str | None:
        """Returns the rule that the item breaks whatever the table holds; None if there is none."""
        return next((message for condition, message in self._broken_unless(item) if condition == NEVER), None)

    def conditions(self, item: Item) -> list[Condition]:
        """Conditions on the item in the table."""
        return [condition for condition, _ in self._broken_unless(item)]

    def broken(self, item: Item, failed: ConditionFailed) -> str:
        """Returns the rule that the item would break, combined with the stored one."""
        there = failed.item or {}
        return next(
            (message for condition, message in self._broken_unless(item) if not holds(condition, there)),
            str(failed),
        )

    def _broken_unless(self, item: Item) -> Iterator[tuple[Condition, str]]:
        """Yields the conditions on the stored item, each with how the item breaks a rule if it is not met."""
        record = self._graph.recognise(item)
        if record is None or not record.rules:
            return
        whole = record.completed(item)
        changes = [SetTo((name,), value) for name, value in whole.items()]
        for rule in record.rules:
            message = f"it breaks a rule of {record.name}: {rule.message}"
            is_kept = holds(rule.condition, whole)
            if not self._is_merged:
                if not is_kept:
                    yield NEVER, message
                continue
            condition = simplified(before(rule.condition, changes))
            if condition is False:
                yield NEVER, message
            elif not isinstance(condition, bool):
                yield (Or((self._is_new, condition)) if is_kept else condition), message
