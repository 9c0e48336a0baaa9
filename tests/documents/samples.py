"""The items that stand beside a model: read, and held against what the model says of them."""

from __future__ import annotations

import json
from decimal import Decimal
from importlib import import_module
from typing import Any, cast

from keygraph import Graph
from keygraph.dynamo.conditions import at_path
from keygraph.dynamo.items import Item, Value
from keygraph.keys.types import decode
from keygraph.model.records import RecordType
from keygraph.resolve.derived import COUNTED, keys_of_numbers
from keygraph.tables.interchange import Interchange
from keygraph.writing.marks import ADDED
from tests.conftest import MakeStore
from tests.documents.served import EXAMPLES, Served, lines_of

NAMES = ("billing", "cargo", "commerce", "education", "social", "talent")


def graph_of(name: str) -> Graph:
    """The graph of an example."""
    graph: Graph = import_module(f"keygraph_examples.{name}").graph
    return graph.check()


def files_of(name: str) -> list[str]:
    """The files with a model's items: the document's own first, then what it only describes."""
    names = [f"{name}.jsonl", f"{name}.described.jsonl"]
    return [file for file in names if (EXAMPLES / file).exists()]


def sample_of(name: str) -> list[Item]:
    """The items of an example's files."""
    return [*map(Interchange(graph_of(name)).read, lines_of(*files_of(name)))]


def read_as_json(file: str) -> list[dict[str, Any]]:
    """A file's items as they are written, numbers with all their digits."""
    return [json.loads(line, parse_float=Decimal) for line in lines_of(file)]


async def serve(graph: Graph, make_store: MakeStore, *files: str) -> Served:
    """The graph over a new table with the items of these files."""
    served = Served(graph, await make_store(graph.table))
    await served.load(*lines_of(*files))
    return served


def _check(record: RecordType, item: Item) -> None:
    """The item has all that its type declares, and its keys, its indexes' too, say what its attributes say."""
    texts: dict[str, str] = {}
    for keys in record.keys.values():
        parsed = keys.parse(item)
        assert parsed is not None, f"{item} has no keys of {record.name} in {keys.index_name or 'the table'}"
        shards = {slot.name for slot in keys.slots if slot.is_shard}
        said = {name: text for name, text in parsed.items() if name not in shards}
        assert said == {name: texts.get(name, text) for name, text in said.items()}, (
            f"keys disagree in {item}"
        )
        texts |= said
        if keys.shards:
            assert {name: parsed[name] for name in shards} in keys.shard_texts, item
    slots = {slot.name: slot for keys in record.keys.values() for slot in keys.slots if not slot.is_shard}
    identity = record.read_identity(item) or ()
    for field in record.fields.values():
        is_told = field.name in record.key_fields
        if is_told:
            number, value_of = record.places_in_identity[field.name]
            value = value_of(identity[number])
        else:
            value = record.reader(field)(item)
        for name, slot in slots.items():
            if slot.path == (field.name,):
                assert slot.text.render(value) == texts[name], f"{field.name} disagrees with a key in {item}"
    for end in record.ends.values():
        for slot in end.identity:
            own = slot.under(end.name)
            stored = cast(Value, at_path(item, end.attributes[slot.path]))
            if stored is not None and own.name in texts:
                text = slot.text.render(decode(slot.text.type, stored))
                assert text == texts[own.name], f"{end.name} disagrees with a key in {item}"


def without_counted(record: RecordType, item: Item) -> Item:
    """The item without what is computed over its lists, and without the keys that hold it: other items say it."""
    fields = [field for field in record.fields.values() if field.kept in COUNTED]
    names = {ADDED, *(field.attribute[0] for field in fields)}
    names |= {key.name for keys in keys_of_numbers(record, fields) for key in keys.attributes}
    return {name: value for name, value in item.items() if name not in names}


def in_any_shard(record: RecordType, item: Item) -> Item:
    """The item in the first shard of each of its keys: the documents have chosen others."""
    moved = dict(item)
    for keys in record.keys.values():
        texts = keys.parse(item)
        if keys.shards and texts is not None:
            for (attribute, _), value in zip(
                keys.parts, keys.rendered({**texts, **keys.shard_texts[0]}), strict=True
            ):
                moved[attribute.name] = value
    return moved
