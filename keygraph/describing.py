"""The DynamoDB request that each access path becomes, with placeholders where values will be.

A path's range is made as a list's is (`keygraph.siblings`) and rendered as it is sent (`keygraph.rendering`); only the
values are the placeholders of the templates: `PK = USER#{user_id} AND begins_with(SK, ORDER#)`.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass

from keygraph.graph import Graph
from keygraph.paths import AccessPath
from keygraph.ranges import Span, beginning_with
from keygraph.records import RecordType
from keygraph.rendering import Wire, render
from keygraph.siblings import without_siblings
from keygraph.store import BatchGet, Query
from keygraph.table import Index, Table
from keygraph.templates import Slot, Template

_PLACEHOLDER = re.compile(r"[#:][nv]\d+")


@dataclass(frozen=True, slots=True)
class DescribedRequest:
    """A request as text."""

    operation: str
    index: str | None
    """None for the table itself."""
    keys: str
    """The condition on the keys; where the range is split around siblings, one for each piece."""
    filter: str | None = None
    """What the store leaves out of the range."""
    times: int = 1
    """How many requests are sent at once: one for each shard."""


def key_request(graph: Graph, record: RecordType) -> DescribedRequest:
    """How one item is read by its key: GetItem, or BatchGetItem of all the shards where it can stand."""
    keys = record.table_keys
    texts = {slot.name: _placeholder(record.leaf_name(slot.path)) for slot in keys.slots}
    key = tuple(_text(template, texts) for template in keys.templates)
    [wire] = render(BatchGet((key,)), _as_texts(graph.table))
    names = zip(keys.attributes, wire.body["Key"].values(), strict=True)
    shown = " AND ".join(f"{attribute.name} = {_value(typed)}" for attribute, typed in names)
    if keys.shards:
        return DescribedRequest("BatchGetItem", None, f"{shown}, shard 0 to {keys.shards - 1}")
    return DescribedRequest(wire.operation, None, shown)


def path_request(graph: Graph, path: AccessPath) -> DescribedRequest:
    """How the path is read where nothing narrows its range: a Query for each shard."""
    texts = {slot.name: _label(path, slot) for slot in path.keys.slots}
    known = {slot.name for slot in (*path.keys.partition.slots, *path.prefix.slots)}
    prefix, partition = _text(path.prefix, texts), _text(path.keys.partition, texts)
    is_whole = path.keys.sort is not None and not path.rest.tokens
    span = Span(prefix, prefix) if is_whole else beginning_with(prefix)
    fixed = {name: text for name, text in texts.items() if name in known}
    reading = without_siblings(graph, path, partition, span, fixed, is_shown=True)
    filter_ = graph.type_condition(path) if reading.others else None
    queries = [Query(partition, path.keys.index_name, piece.range, filter_) for piece in reading.pieces]
    wires = [wire for query in queries for wire in render(query, _as_texts(graph.table))]
    return DescribedRequest(
        wires[0].operation,
        path.keys.index_name,
        ", then ".join(_expression(wire, "KeyConditionExpression") or "" for wire in wires),
        _expression(wires[0], "FilterExpression"),
        path.keys.shards or 1,
    )


def required_arguments(path: AccessPath) -> list[str]:
    """What a reader of the path says besides its owner."""
    return [argument.name for argument in path.required]


def narrowing_arguments(path: AccessPath) -> list[str]:
    """By what a reader can narrow the range along the sort key, from left to right."""
    return [argument.name for argument in path.ranged]


def _as_texts(table: Table) -> Table:
    """The table as if all its keys were texts, so that they can be shown as placeholders."""

    def keys(keyed: Table | Index) -> list[str]:
        return [key.name for key in keyed.keys]

    indexes = [
        Index(index.name, *keys(index), projection=index.projection, local=index.local)
        for index in table.indexes
    ]
    partition, *sort = keys(table)
    return Table(table.name, partition_key=partition, sort_key=sort[0] if sort else None, indexes=indexes)


def _label(path: AccessPath, slot: Slot) -> str:
    """What a slot is called in a path: the owner's own key field, else the argument."""
    source = path.known.get(slot.name)
    owner = path.owner
    if source is not None and owner is not None:
        if not source.path:  # the whole key of the owner, which is one of several types
            texts = {each.name: _placeholder(owner.leaf_name(each.path)) for each in owner.identity}
            return _text(owner.table_keys.partition, texts)
        return _placeholder(owner.leaf_name(source.path))
    return _placeholder(path.record.leaf_name(slot.path))


def _placeholder(name: str) -> str:
    return "{" + name + "}"


def _text(template: Template, texts: Mapping[str, str]) -> str:
    return template.render(texts) or ""


def _expression(wire: Wire, name: str) -> str | None:
    """An expression of the request with its names and values written out."""
    text = wire.body.get(name)
    if text is None:
        return None
    names = wire.body.get("ExpressionAttributeNames", {})
    values = wire.body.get("ExpressionAttributeValues", {})

    def written(found: re.Match[str]) -> str:
        placeholder = found[0]
        return str(names[placeholder]) if placeholder in names else _value(values[placeholder])

    return _PLACEHOLDER.sub(written, text)


def _value(typed: Mapping[str, object]) -> str:
    [content] = typed.values()
    return str(content)
