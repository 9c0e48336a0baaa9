"""The DynamoDB request for each access path, with placeholders for the values.

A path's range is made as for a list (`keygraph.lists.siblings`), and rendered as it is sent
(`keygraph.engines.dynamodb.requests`), but with placeholders: `PK = USER#{user_id} AND begins_with(SK, ORDER#)`.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from keygraph.dynamo.conditions import Condition, Path
from keygraph.dynamo.expressions import condition_parameters
from keygraph.dynamo.items import base64_text
from keygraph.dynamo.limits import SORT_KEY_BYTES
from keygraph.dynamo.order import LAST_BYTE
from keygraph.dynamo.store import BatchGet, Count, Query, Request, Within
from keygraph.dynamo.table import Index, KeyDeclaration, Table, key_type
from keygraph.engines.dynamodb.requests import render
from keygraph.graph import Graph
from keygraph.keys.shards import shards_in_words
from keygraph.lists.placeholders import placeholder_key
from keygraph.lists.query import ListForm
from keygraph.model.paths import AccessPath
from keygraph.model.records import RecordType

_PLACEHOLDER = re.compile(r"[#:][nv]\d+")
_UNSEEN = re.compile("[\\0-\x1f\x7f\U0010ffff]")
"""The invisible characters of bounds: they are written as \\u{10FFFF}."""

_MOST_KEYS = 3
"""How many keys of a batch are written."""


@dataclass(frozen=True, slots=True)
class DescribedRequest:
    """A request as text."""

    operation: str
    index: str | None
    """None for the table itself."""
    keys: str
    """The condition on the keys; if the range is split around siblings, one for each piece."""
    filter: str | None = None
    """The filter in the store."""
    times: int = 1
    """How many requests are sent at once: one for each shard."""
    projection: str | None = None
    """The attributes that are sent; None for all of them."""
    limit: int | None = None
    """How many items are examined."""
    is_backward: bool = False
    counts: bool = False
    """Whether only the number of items is sent."""

    @property
    def target(self) -> str:
        """The operation, its table or index, and how often it is sent: `Query GSI1 × 5 shards`."""
        where = f" {self.index}" if self.index else ""
        return f"{self.operation}{where}" + (f" × {self.times} shards" if self.times > 1 else "")

    @property
    def line(self) -> str:
        """The target of the request, and the condition on the keys: `Query GSI1: GSI1PK = USER`."""
        return f"{self.target}: {self.keys}"


def key_request(
    graph: Graph,
    record: RecordType,
    identity: tuple[str, ...] | None = None,
    projection: tuple[Path, ...] | None = None,
    *,
    is_many: bool = False,
) -> DescribedRequest:
    """Returns how an item is read by its key: GetItem, or BatchGetItem for several items or for all possible shards."""
    keys = record.table_keys
    request = BatchGet((placeholder_key(record, identity),), projection)
    [wire] = render(request, _as_held(graph.table, request))
    names = zip(keys.attributes, wire.body["Key"].values(), strict=True)
    text = " AND ".join(f"{attribute.name} = {value_text(typed)}" for attribute, typed in names)
    if keys.shards:
        text = f"{text}, shard {shards_in_words(keys.shards)}"
    operation = "BatchGetItem" if keys.shards or is_many else wire.operation
    return DescribedRequest(
        operation, None, text, projection=expression_text(wire.body, "ProjectionExpression")
    )


def path_request(graph: Graph, path: AccessPath) -> DescribedRequest:
    """Returns how the path is read if nothing narrows its range: a Query for each shard."""
    query = ListForm(graph, path).described()
    index, filter_ = path.keys.index_name, query.store_filter
    queries = [Query(query.partitions[0], index, piece.range, filter_) for piece in query.reading.pieces]
    return described_requests(graph, queries, len(path.keys.shard_texts))


def described_requests(graph: Graph, requests: Sequence[Query | Count], times: int = 1) -> DescribedRequest:
    """Returns the requests for the pieces of one range as one, whose keys may be placeholders."""
    wires = [wire for request in requests for wire in render(request, _as_held(graph.table, request))]
    if not wires:
        return DescribedRequest(
            "Query", requests[0].index if requests else None, "nothing: no item can match"
        )
    first = wires[0]
    return DescribedRequest(
        first.operation,
        requests[0].index,
        ", then ".join(expression_text(wire.body, "KeyConditionExpression") or "" for wire in wires),
        expression_text(first.body, "FilterExpression"),
        times,
        expression_text(first.body, "ProjectionExpression"),
        first.body.get("Limit"),
        first.body.get("ScanIndexForward") is False,
        first.body.get("Select") == "COUNT",
    )


def sent_request(request: Request[Any], table: Table) -> dict[str, Any]:
    """Returns the parameters of a read: the condition on the keys, and the filter. Empty for other requests."""
    if isinstance(request, BatchGet):
        text = [
            " AND ".join(
                f"{key.name} = {_bytes_text(value) if isinstance(value, bytes) else value}"
                for key, value in zip(table.keys, each, strict=True)
            )
            for each in request.keys[:_MOST_KEYS]
        ]
        more = len(request.keys) - len(text)
        return {"keys": ", ".join(text) + (f", and {more} more" if more else ""), "filter": None}
    wires = render(request, table) if isinstance(request, Query | Count) else ()
    if not wires:
        return {"keys": None, "filter": None}
    body = wires[0].body
    return {
        "keys": expression_text(body, "KeyConditionExpression"),
        "filter": expression_text(body, "FilterExpression"),
    }


def _bytes_text(value: bytes) -> str:
    """Returns bytes as base64; of a bound up to the last possible key, what is before the last bytes."""
    is_last = len(value) == SORT_KEY_BYTES and value.endswith(LAST_BYTE)
    return f"{base64_text(value.rstrip(LAST_BYTE))}\\xFF…" if is_last else base64_text(value)


def described_condition(condition: Condition) -> str:
    """Returns a condition with its names and values written out."""
    parameters = condition_parameters(condition)
    if isinstance(parameters, bool):
        return str(parameters).lower()
    body = {**parameters, "ExpressionAttributeValues": parameters.get("ExpressionAttributeValues", {})}
    return expression_text(body, "ConditionExpression") or ""


def _as_held(table: Table, request: Query | Count | BatchGet) -> Table:
    """Returns the table as if its keys had the types of the request's values: placeholders are texts in any key."""
    range_ = None if isinstance(request, BatchGet) else request.range
    bound = range_.low if isinstance(range_, Within) else "" if range_ is None else range_.value
    types = ("S" if isinstance(request, BatchGet) else key_type(request.partition), key_type(bound))

    def keys(keyed: Table | Index) -> list[KeyDeclaration]:
        return [(key.name, type_) for key, type_ in zip(keyed.keys, types, strict=False)]

    indexes = [
        Index(index.name, *keys(index), projection=index.projection, local=index.local)
        for index in table.indexes
    ]
    partition, *sort = keys(table)
    return Table(table.name, partition_key=partition, sort_key=sort[0] if sort else None, indexes=indexes)


def expression_text(body: Mapping[str, Any], name: str) -> str | None:
    """Returns an expression of a request, or of an action, with its names and values written out."""
    text = body.get(name)
    if text is None:
        return None
    names = body.get("ExpressionAttributeNames", {})
    values = body.get("ExpressionAttributeValues", {})

    def written(found: re.Match[str]) -> str:
        placeholder = found[0]
        return str(names[placeholder]) if placeholder in names else value_text(values[placeholder])

    return _PLACEHOLDER.sub(written, text)


def value_text(typed: Mapping[str, Any]) -> str:
    """Returns a value in DynamoDB's typed form as text: a map, a list or a set as JSON."""
    [(type_, content)] = typed.items()
    if type_ in ("NULL", "BOOL"):
        return "null" if type_ == "NULL" else str(content).lower()
    if type_ in ("B", "SS", "NS", "BS", "L", "M"):
        text = _plain(typed)
        content = text if isinstance(text, str) else json.dumps(text, ensure_ascii=False)
    return _UNSEEN.sub(lambda found: f"\\u{{{ord(found[0]):X}}}", str(content))


def _plain(typed: Mapping[str, Any]) -> Any:
    [(type_, content)] = typed.items()
    match type_:
        case "L":
            return [_plain(member) for member in content]
        case "M":
            return {name: _plain(member) for name, member in content.items()}
        case "SS" | "NS" | "BS":
            return [_plain({type_[0]: member}) for member in content]
        case "B":
            return _bytes_text(content)
    return None if type_ == "NULL" else content
