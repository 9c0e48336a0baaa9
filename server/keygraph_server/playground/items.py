"""Raw items: a page of one partition by Query, or of any partitions by one bounded page of Scan.

A request names a node or a record by its `id`, or an `index` (null for the table) with the text of a `partition` and perhaps a
condition on the sort key. Without a partition, one page of the table is scanned, and its items are grouped by partition.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Mapping, Set
from typing import Any

from keygraph.dynamo.items import Item, typed_item
from keygraph.dynamo.order import key_bytes
from keygraph.dynamo.store import (
    AtLeast,
    AtMost,
    Cost,
    Equals,
    Page,
    Prefix,
    Query,
    Range,
    Scan,
    Store,
    Within,
)
from keygraph.dynamo.table import Index, KeyAttribute, KeyValue, Position, Table, key_type
from keygraph.errors import BadUserInput
from keygraph.graph import Graph
from keygraph.lists.describe import sent_request
from keygraph.writing.sending.idempotency import is_note
from keygraph_resolvers.naming.global_ids import global_id, read_global_id

PAGE = 50
"""How many items one request reads."""


async def read_items(
    graph: Graph, with_ids: Set[str], store: Store, body: Mapping[str, Any]
) -> dict[str, Any]:
    """Returns a page of raw items, what was sent for it, and its cost. Raises BadUserInput for what cannot be read."""
    table = graph.table
    index = _text(body, "index")
    try:
        keyed = table.keyed(index)
    except KeyError:
        raise BadUserInput(f"index: the table has no index {index!r}.") from None
    start = _position(
        body.get("start"), table.position(index) if body.get("partition") else table.position(None)
    )
    queries = [
        Query(
            partition,
            index,
            _range(keyed, body.get("sort")),
            forward=body.get("descending") is not True,
            limit=PAGE,
            start=start,
        )
        for partition in _partitions(graph, keyed, body)
    ]
    requests: list[Query | Scan] = [*queries] or [Scan(limit=PAGE, start=start)]
    pages: list[Page] = await asyncio.gather(*(store.send(request) for request in requests))
    items = [item for page in pages for item in page.items if not is_note(item)]
    if not queries:
        items = _in_order(keyed, items)
    last = pages[0].last if len(pages) == 1 else None
    cost = sum((page.cost for page in pages), Cost())
    return {
        "keys": [key.name for key in keyed.keys],
        "request": _request_text(requests[0], len(requests), table),
        "cost": {"requests": cost.requests, "readUnits": cost.read_units},
        "read": sum(page.scanned for page in pages),
        "items": [_described_item(graph, with_ids, keyed.partition, item) for item in items],
        "next": None
        if last is None
        else [KeyAttribute("", key_type(value)).text(value) or "" for value in last],
        "hasMore": any(page.last is not None for page in pages),
    }


def _partitions(graph: Graph, keyed: Table | Index, body: Mapping[str, Any]) -> list[KeyValue]:
    """The partitions to query: those that a node may be in, the one that is named, or none."""
    if _text(body, "id") is not None:
        keys = graph.table_keys(*read_global_id(graph, str(body["id"])))
        return list(dict.fromkeys(key[0] for key in keys))
    text = _text(body, "partition")
    return [] if text is None else [_key(keyed.partition, text)]


def _range(keyed: Table | Index, body: Any) -> Range | None:
    """The condition on the sort key: `{"is": "between", "value": "A", "to": "B"}`. None without one."""
    if not isinstance(body, Mapping) or _text(body, "value") is None:
        return None
    if keyed.sort is None:
        raise BadUserInput("sort: there is no sort key.")
    value = _key(keyed.sort, str(body["value"]))
    match body.get("is"):
        case "equal":
            return Equals(value)
        case "begins" if isinstance(value, str | bytes):
            return Prefix(value)
        case "from":
            return AtLeast(value)
        case "to":
            return AtMost(value)
        case "between":
            return Within(value, _key(keyed.sort, _text(body, "to") or ""))
    raise BadUserInput(f"sort: a key of type {keyed.sort.type} has no condition {body.get('is')!r}.")


def _position(body: Any, keys: tuple[KeyAttribute, ...]) -> Position | None:
    if body is None:
        return None
    if not isinstance(body, list) or len(body) != len(keys):
        raise BadUserInput("start: it is the `next` of another page.")
    return tuple(_key(key, str(text)) for key, text in zip(keys, body, strict=True))


def _text(body: Mapping[str, Any], name: str) -> str | None:
    """A text that may be absent or empty: None."""
    text = body.get(name)
    if text is not None and not isinstance(text, str):
        raise BadUserInput(f"{name}: it is a text.")
    return text or None


def _key(key: KeyAttribute, text: str) -> KeyValue:
    try:
        return key.value(text)
    except (ValueError, ArithmeticError):
        raise BadUserInput(f"{key.name}: {text[:60]!r} is not a key of type {key.type}.") from None


def _in_order(keyed: Table | Index, items: Iterable[Item]) -> list[Item]:
    """The items that stand in the table or the index, partition by partition, as a Query would return them."""
    partitions: dict[Any, list[Item]] = {}
    for item in items:
        if all(key.holds(item.get(key.name)) for key in keyed.keys):
            partitions.setdefault(item[keyed.partition.name], []).append(item)
    for found in partitions.values():
        if keyed.sort is not None:
            name = keyed.sort.name
            found.sort(key=lambda item: key_bytes(item[name]))  # type: ignore[arg-type]  # a key's own type
    return [item for found in partitions.values() for item in found]


def _request_text(request: Query | Scan, count: int, table: Table) -> str:
    if isinstance(request, Scan):
        return f"Scan, limit {PAGE}"
    times = f" × {count} shards" if count > 1 else ""
    index = f" {request.index}" if request.index else ""
    return f"Query{index}{times}: {sent_request(request, table)['keys']}, limit {PAGE}"


def _described_item(graph: Graph, with_ids: Set[str], partition: KeyAttribute, item: Item) -> dict[str, Any]:
    """An item in DynamoDB's typed form, which keeps every digit, with its type and its `id` for clients."""
    identified = graph.identified(item)
    name = identified and identified[0].name
    return {
        "type": name,
        "id": global_id(*identified) if identified and name in with_ids else None,
        "partition": partition.text(item.get(partition.name)),
        "item": typed_item(item),
    }
