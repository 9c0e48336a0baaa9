"""Reads as the JSON that is sent: made once for requests of one shape, so that each of them only adds its keys.

Requests that a list sends for its parents differ in their keys alone. The shape is what `keygraph.engines.dynamodb.requests` makes of the
first of them, less what is its own; so a text always says what the rendered request says.
"""

from __future__ import annotations

import base64
import json
from collections.abc import Sequence
from typing import Any, NamedTuple, TypeAlias, cast

import orjson

from keygraph.dynamo.items import TypedValue, to_typed
from keygraph.dynamo.limits import (
    BATCH_GET_KEYS,
    PARTITION_KEY_BYTES,
    SORT_KEY_BYTES,
    can_go_on,
    checked_key_bytes,
    refuse_crossed_bounds,
)
from keygraph.dynamo.store import BatchGet, Count, Query, Within
from keygraph.dynamo.table import Key, KeyAttribute, KeyValue, Table
from keygraph.engines.dynamodb.requests import Wire, render, typed_key
from keygraph.errors import BadUserInput

_SHAPES = 512
"""How many shapes are kept. A server has as many as its clients have different lists; filters make new ones."""


class Text(NamedTuple):
    """One call of DynamoDB's API, as `Wire` is, but with its parameters written."""

    operation: str
    content: bytes

    @property
    def body(self) -> dict[str, Any]:
        """The parameters; binary values are base64."""
        body: dict[str, Any] = orjson.loads(self.content)
        return body


Call: TypeAlias = Wire | Text


def encoded(body: object) -> bytes:
    """The JSON of parameters; binary values are base64."""
    try:
        return orjson.dumps(body, default=_base64)
    except TypeError:
        # Text that is no valid Unicode goes escaped, as aioboto3 sends it, so that DynamoDB says what it thinks.
        return json.dumps(body, default=_base64).encode()


def _base64(value: object) -> str:
    if isinstance(value, bytes):
        return base64.b64encode(value).decode()
    raise ValueError(f"a value of type {type(value).__name__} in a request")


class _QueryShape(NamedTuple):
    """A Query up to its key values, and what it is made for."""

    head: bytes
    partition: KeyAttribute
    sort: KeyAttribute | None
    filter: object
    """Held, so that no other filter is taken for this one."""


class RequestTexts:
    """The texts of the reads of one table."""

    def __init__(self, table: Table) -> None:
        self._table = table
        self._queries: dict[object, _QueryShape] = {}
        self._batches: dict[object, bytes] = {}

    def calls(self, request: Query | Count | BatchGet) -> tuple[Text, ...]:
        """What is sent for the request, and what `render` raises for it."""
        if isinstance(request, BatchGet):
            return self._batch(request)
        shape = self._shape(request)
        if shape is None:
            return ()
        start, limit, range_, sort = request.start, request.limit, request.range, shape.sort
        content = shape.head + _typed_text(shape.partition, request.partition, PARTITION_KEY_BYTES)
        if range_ is not None and sort is not None:
            if isinstance(range_, Within):
                low = _typed_text(sort, range_.low, SORT_KEY_BYTES)
                content += b',":v1":%b,":v2":%b' % (low, _typed_text(sort, range_.high, SORT_KEY_BYTES))
                refuse_crossed_bounds(range_.low, range_.high)
            else:
                content += b',":v1":' + _typed_text(sort, range_.value, SORT_KEY_BYTES)
        if limit is None:
            content += b"}"
        elif limit < 1:
            raise BadUserInput("The limit of a page is at least 1.")
        else:
            content += b'},"Limit":%d' % limit
        if start is not None:
            content += b',"ExclusiveStartKey":' + encoded(typed_key(self._table, request.index, start))
            if not can_go_on(request, start):
                return ()
        return (Text("Query", content + b"}"),)

    def _shape(self, request: Query | Count) -> _QueryShape | None:
        """The shape of the request; None where nothing can pass its filter."""
        # A filter is told by its identity: equal ones may differ, as 1 and True do.
        told: tuple[object, ...]
        index, filter_, consistent = request.index, id(request.filter), request.consistent
        if isinstance(request, Query):
            told = (
                index,
                type(request.range),
                filter_,
                consistent,
                request.projection,
                request.forward,
            )
        else:
            told = (index, type(request.range), filter_, consistent)
        shape = self._queries.get(told)
        if shape is None:
            # Where to begin is of no shape, and may leave nothing to send.
            wires = render(_from_the_beginning(request), self._table)
            if not wires:
                return None
            body = dict(wires[0].body)
            body.pop("Limit", None)
            values = body.pop("ExpressionAttributeValues")
            own = 1 if request.range is None else 3 if isinstance(request.range, Within) else 2
            kept = dict(list(values.items())[own:])
            head = encoded(body)[:-1] + b',"ExpressionAttributeValues":'
            head += (encoded(kept)[:-1] + b"," if kept else b"{") + b'":v0":'
            keyed = self._table.keyed(request.index)
            shape = _QueryShape(head, keyed.partition, keyed.sort, request.filter)
            _keep(self._queries, told, shape)
        return shape

    def _batch(self, request: BatchGet) -> tuple[Text, ...]:
        keys = request.keys
        if len(keys) > 1:
            keys = tuple(dict.fromkeys(keys))
        if not keys:
            return ()
        is_single = len(keys) == 1
        typed = self._typed_keys(keys)
        told = (is_single, request.projection, request.consistent)
        head = self._batches.get(told)
        if head is None:
            head = self._batch_head(BatchGet(keys[:2], request.projection, request.consistent))
            _keep(self._batches, told, head)
        if is_single:
            return (Text("GetItem", b'%b"Key":%b}' % (head, encoded(typed[0]))),)
        return tuple(
            [
                Text("BatchGetItem", b'%b"Keys":%b}}}' % (head, encoded(typed[at : at + BATCH_GET_KEYS])))
                for at in range(0, len(typed), BATCH_GET_KEYS)
            ]
        )

    def _batch_head(self, request: BatchGet) -> bytes:
        """What is sent up to the keys; what holds them comes last."""
        [wire] = render(request, self._table)
        body = dict(wire.body)
        if wire.operation == "GetItem":
            del body["Key"]
            return encoded(body)[:-1] + b","
        options = dict(body.pop("RequestItems")[self._table.name])
        del options["Keys"]
        inner = encoded({self._table.name: options})[:-2]
        return encoded(body)[:-1] + b',"RequestItems":' + inner + (b"," if options else b"")

    def _typed_keys(self, keys: Sequence[Key]) -> list[dict[str, TypedValue]]:
        partition, sort = self._table.partition, self._table.sort
        if set(map(len, keys)) != {len(self._table.keys)}:
            return [typed_key(self._table, None, key) for key in keys]
        columns = list(zip(*keys, strict=True))
        if not _are_plain(partition, columns[0], PARTITION_KEY_BYTES) or (
            sort is not None and not _are_plain(sort, columns[1], SORT_KEY_BYTES)
        ):
            return [typed_key(self._table, None, key) for key in keys]
        first = partition.name
        if sort is None:
            return [{first: {"S": value}} for value in columns[0]]
        second = sort.name
        return [{first: {"S": one}, second: {"S": other}} for one, other in keys]


def _from_the_beginning(request: Query | Count) -> Query | Count:
    if isinstance(request, Count):
        return Count(
            request.partition, request.index, request.range, request.filter, consistent=request.consistent
        )
    return Query(
        request.partition,
        request.index,
        request.range,
        request.filter,
        request.projection,
        request.forward,
        consistent=request.consistent,
    )


def _typed_text(key: KeyAttribute, value: KeyValue, limit: int) -> bytes:
    """The key's value in DynamoDB's typed form. Raises BadUserInput as `checked_key_bytes` does."""
    # Most keys are short plain text, in which a character is a byte.
    if type(value) is str and key.type == "S" and 0 < len(value) <= limit and value.isascii():
        return b'{"S":%b}' % orjson.dumps(value)
    checked_key_bytes(key, value, limit)
    return encoded(to_typed(value))


def _are_plain(key: KeyAttribute, values: Sequence[KeyValue], limit: int) -> bool:
    """Whether all are short plain texts, which need no further look."""
    if key.type != "S" or set(map(type, values)) != {str}:
        return False
    texts = cast("Sequence[str]", values)
    return all(texts) and len(max(texts, key=len)) <= limit and "".join(texts).isascii()


def _keep(shapes: dict[Any, Any], told: object, shape: object) -> None:
    if len(shapes) >= _SHAPES:
        shapes.clear()
    shapes[told] = shape
