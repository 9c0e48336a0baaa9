"""Random tables: the items of a model's sample and others like them, some of them missing, foreign or corrupt."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from decimal import Decimal
from random import Random
from typing import Any

from keygraph.dynamo.items import Item
from keygraph.dynamo.table import Key
from keygraph.graph import Graph

WRONG: tuple[Any, ...] = ("", "?", Decimal("1.5"), Decimal(7), True, None, [], ["x"], {"a": "b"}, b"\xff")


def made_items(graph: Graph, sample: Sequence[Item], random: Random, *, awkward: bool) -> list[Item]:
    """A table's items, by its keys each once. Without `awkward` none is missing, foreign or corrupt."""
    keys = {key.name for key in graph.table.key_attributes()}
    found = {graph.table.key_of(item): item for item in sample}
    for item in crossed(graph, sample, random, count=len(sample) // 2):
        found.setdefault(graph.table.key_of(item), item)
    if awkward:
        for key in random.sample(sorted(found, key=repr), len(found) // 8):
            del found[key]
        for key in random.sample(sorted(found, key=repr), len(found) // 4):
            found[key] = spoilt(graph, found[key], keys, random)
        for key in random.sample(sorted(found, key=repr), len(found) // 12):
            stranger = foreign(graph, found[key], random)
            found.setdefault(graph.table.key_of(stranger), stranger)
    halves = {key for key, item in found.items() if graph.has_paths and not _has_mirror(graph, item, found)}
    return [item for key, item in found.items() if key not in halves]


def _has_mirror(graph: Graph, item: Item, found: Mapping[Key, Item]) -> bool:
    """Whether an edge that is mirrored is there twice: from which end a path comes over half of one is not fixed."""
    record = graph.recognise(item)
    if record is None or not record.is_mirrored:
        return True
    other = graph.counterpart(record, item)
    there = () if other is None else graph.table_keys(record, other.identity)
    return other is None or any(key in found and graph.recognise(found[key]) is record for key in there)


def crossed(graph: Graph, sample: Sequence[Item], random: Random, *, count: int) -> list[Item]:
    """Items whose keys take their parts from two others of their type: other neighbours, equal sort keys."""
    by_record: dict[Any, list[Item]] = {}
    for item in sample:
        record = graph.recognise(item)
        if record is not None:
            by_record.setdefault(record, []).append(item)
    made = []
    for _ in range(count):
        record, items = random.choice(sorted(by_record.items(), key=lambda pair: pair[0].name))
        one, other = random.choice(items), random.choice(items)
        texts: dict[str, str] = {}
        sources: dict[str, Item] = {}
        for keys in record.keys.values():
            for slot in keys.slots:
                # What stands in several keys, in one format or another, or in one attribute, is one value.
                place = record.attribute_of(slot.path) or slot.path
                source = sources.setdefault(repr(place), random.choice((one, other)))
                text = (keys.parse(source) or {}).get(slot.name)
                if text is not None:
                    texts.setdefault(slot.name, text)
        item = dict(one)
        for keys in record.keys.values():
            for attribute, template in zip(keys.attributes, keys.templates, strict=False):
                text = template.render(texts)
                if text is not None and attribute.name in one:
                    item[attribute.name] = attribute.value(text)
        for end in record.ends.values():
            for attribute in end.attributes.values():
                if len(attribute) == 1 and attribute[0] in item and attribute[0] not in _keys(graph):
                    source = sources.get(repr(attribute), one)
                    item[attribute[0]] = source.get(attribute[0], item[attribute[0]])
        # An item that says of a field what one of its keys does not is a fault of whoever wrote it.
        in_keys = {slot.path[0] for keys in record.keys.values() for slot in keys.slots}
        for name in in_keys & record.fields.keys():
            attribute_name = record.fields[name].attribute[0]
            if attribute_name in item and attribute_name not in _keys(graph):
                source = sources.get(repr(record.fields[name].attribute), one)
                item[attribute_name] = source.get(attribute_name, item[attribute_name])
        for each in record.fields.values():
            number = item.get(each.attribute[0]) if each.name not in in_keys else None
            if isinstance(number, Decimal) and abs(number) < 1_000 and random.randrange(2):
                item[each.attribute[0]] = 10 * number + random.randrange(-99, 100)  # of another length
        if graph.recognise(item) is record:
            made.append(item)
    return made


def spoilt(graph: Graph, item: Item, keys: set[str], random: Random) -> Item:
    """The item with one attribute missing, of another type, or without an index."""
    changed = dict(item)
    # Behind an index that lacks its type an item of another one is left out as soon as it is read: the judge knows when.
    hidden = {name for index in graph.table.indexes for name in graph.type_values.hidden(index.name)}
    others = sorted(name for name in item if name not in keys | hidden)
    kind = random.randrange(10)
    if kind == 0:
        # Which side of a path reads the index is not fixed.
        for index in () if graph.has_paths else graph.table.indexes[:1]:
            for key in index.keys:
                if key.name not in {own.name for own in graph.table.keys}:
                    changed.pop(key.name, None)
    elif kind == 1 and graph.type_attribute and graph.type_attribute in others:
        changed[graph.type_attribute] = "Stranger"
    elif kind <= 5 and others:
        del changed[random.choice(others)]
    elif others := [name for name in others if name not in told_elsewhere(graph, item)]:
        changed[random.choice(others)] = random.choice(WRONG)
    return changed


def told_elsewhere(graph: Graph, item: Item) -> set[str]:
    """The attributes that an index tells by its keys and does not project: what they say there counts."""
    record = graph.recognise(item)
    return {
        attribute[0]
        for keys in (record.keys.values() if record else ())
        for slot in keys.slots
        if (attribute := record.attribute_of(slot.path))
        and not graph.table.has(keys.index_name, attribute[0])
    }


def foreign(graph: Graph, item: Item, random: Random) -> Item:
    partition, *sorts = graph.table.keys
    made: Item = {partition.name: item[partition.name], "about": "something else"}
    for sort in sorts:
        made[sort.name] = sort.value(str(random.randrange(100))) if sort.type == "N" else "~other"
    return made


def _keys(graph: Graph) -> set[str]:
    return {key.name for key in graph.table.key_attributes()}
