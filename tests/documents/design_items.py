"""Items of declared designs that have no sample: a few of each type, whose ends are among the nodes."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from decimal import Decimal
from typing import Any

from keygraph import Graph
from keygraph.dynamo.items import Item
from keygraph.keys.types import encode, plain
from keygraph.model.fields import Field
from keygraph.model.records import RecordType

_NODES, _OTHERS = 4, 12
_START = datetime(2024, 1, 1, 12, tzinfo=UTC)


def items_of(graph: Graph) -> list[Item]:
    """Items of every type, by their keys each once."""
    found = {}
    for record in graph.types.values():
        for number in range(0 if record.is_virtual else _NODES if record.is_node else _OTHERS):
            item = _item(graph, record, _instance(record, number))
            assert graph.recognise(item) is record, f"{item}: {graph.why_refused(item)}"
            found[graph.table.key_of(item)] = item
    return list(found.values())


def _item(graph: Graph, record: RecordType, instance: Any) -> Item:
    item: dict[str, Any] = {}
    if graph.type_attribute is not None and record.type_value is not None:
        item[graph.type_attribute] = record.type_value
    for field in record.fields.values():
        item[field.attribute[0]] = encode(field.type, getattr(instance, field.name))
    for end in record.ends.values():
        node = getattr(instance, end.name)
        for slot in end.identity:
            # At an end of several types, the attribute is the whole key.
            value = encode(slot.text.type, _at(node, slot.path)) if slot.path else _key(graph, node)
            item[end.attributes[slot.path][0]] = value
    for keys in record.keys.values():
        texts = {}
        for slot in keys.slots:
            value = _at(instance, slot.path)
            value = value() if slot.computed else value
            value = _key(graph, value) if type(value).__name__ in graph.types else value
            texts[slot.name] = slot.text.render(keys.shards[0] if slot.is_shard and keys.shards else value)
        for attribute, template in keys.parts:
            item[attribute.name] = attribute.value(template.render(texts) or "")
    return {name: plain(value) for name, value in item.items()}


def _key(graph: Graph, node: Any) -> str:
    """The partition key of a node."""
    partition = graph.types[type(node).__name__].table_keys.partition
    return (
        partition.render({slot.name: slot.text.render(_at(node, slot.path)) for slot in partition.slots})
        or ""
    )


def _at(instance: Any, path: tuple[str, ...]) -> Any:
    for name in path:
        instance = getattr(instance, name, None)
    return instance


def _instance(record: RecordType, number: int) -> Any:
    """The object of a number: equal numbers have equal fields."""
    made = object.__new__(record.cls)
    for field in record.fields.values():
        setattr(made, field.name, _value(record, field, number))
    for place, end in enumerate(record.ends.values()):
        setattr(made, end.name, _instance(end.members[0], (number * (place + 2) + place) % _NODES))
    return made


def _value(record: RecordType, field: Field, number: int) -> Any:
    match field.type.kind:
        case "int" | "long":
            return number + 1
        case "decimal":
            return number + Decimal("0.5")
        case "datetime":
            return _START + timedelta(hours=number)
        case "date":
            return (_START + timedelta(days=number)).date()
        case "enum":
            members: list[Any] = list(field.type.cls)
            return members[number % len(members)]
        case "json":
            return {"a": "b"}
    return f"{field.name[:3]}{record.name[:2].lower()}{number}x"
