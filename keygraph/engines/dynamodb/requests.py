"""Requests as DynamoDB's own: what will be sent is a value that can be compared, printed and explained.

A `Wire` is one call of boto's client: `client.query(**wire.body)`. Rendering reads and sends nothing.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

from keygraph.dynamo.checked_items import write_rules
from keygraph.dynamo.conditions import Path
from keygraph.dynamo.expressions import (
    Placeholders,
    attribute_names,
    filter_text,
    key_text,
    projection_text,
    simplified,
)
from keygraph.dynamo.items import TypedValue, to_typed, typed_item
from keygraph.dynamo.limits import (
    BATCH_GET_KEYS,
    BATCH_WRITE_ITEMS,
    PARTITION_KEY_BYTES,
    SORT_KEY_BYTES,
    can_go_on,
    checked_key_bytes,
    refuse_crossed_bounds,
    refuse_filtered,
    refuse_segment,
)
from keygraph.dynamo.store import (
    BatchGet,
    BatchWrite,
    Count,
    CreateTable,
    DeleteTable,
    DescribeTable,
    ListTables,
    Prefix,
    Query,
    Range,
    Request,
    Scan,
    Within,
)
from keygraph.dynamo.table import Index, Key, KeyAttribute, Position, Table
from keygraph.errors import BadUserInput

_CAPACITY = {"ReturnConsumedCapacity": "TOTAL"}
_Member = TypeVar("_Member")


@dataclass(frozen=True, slots=True)
class Wire:
    """One call of DynamoDB's API: the operation's name, and its parameters as boto's client takes them."""

    operation: str
    body: dict[str, Any]


def render(request: Request[Any], table: Table) -> tuple[Wire, ...]:
    """What is sent to DynamoDB for the request; nothing where it needs no answer from there.

    A `Query` or `Count` needs none if nothing can pass its filter or stand behind its start, a batch if it is empty.
    Raises BadUserInput for what DynamoDB would refuse: a key that is of another type, empty or too large, an item
    that is too large, crossed bounds, a consistent read of a global index, a filter that is too long, or looks at a
    key of what is read, an attribute that the index does not project, an index that there is not.
    """
    match request:
        case Query() | Count():
            return _query(request, table)
        case BatchGet():
            return _batch_get(request, table)
        case Scan():
            return (_scan(request, table),)
        case BatchWrite():
            return _batch_write(request, table)
        case CreateTable():
            return (Wire("CreateTable", {"TableName": table.name, **_declaration(table)}),)
        case DescribeTable():
            return (Wire("DescribeTable", {"TableName": table.name}),)
        case ListTables():
            return (Wire("ListTables", {}),)
        case DeleteTable():
            return (Wire("DeleteTable", {"TableName": table.name}),)
    raise TypeError(f"{type(request).__name__} is no request to a store")


# --- Reads --------------------------------------------------------------------------------------------


def _query(request: Query | Count, table: Table) -> tuple[Wire, ...]:
    keyed = _keyed(table, request.index)
    if request.consistent and isinstance(keyed, Index) and not keyed.local:
        raise BadUserInput(f"The global index {keyed.name} cannot be read consistently.")
    checked_key_bytes(keyed.partition, request.partition, PARTITION_KEY_BYTES)
    filter_ = True if request.filter is None else simplified(request.filter)
    if filter_ is False:
        return ()
    if request.range is not None:
        _refuse_range(request.range, keyed)

    placeholders = Placeholders()
    body: dict[str, Any] = {"TableName": table.name}
    if request.index is not None:
        body["IndexName"] = request.index
    body["KeyConditionExpression"] = key_text(request, keyed, placeholders)
    if not isinstance(filter_, bool):
        refuse_filtered(attribute_names(filter_), keyed, table)
        body["FilterExpression"] = filter_text(filter_, placeholders)
    if isinstance(request, Count):
        body["Select"] = "COUNT"
    else:
        if request.projection is not None:
            _refuse_unprojected(request.projection, keyed, table)
            body["ProjectionExpression"] = _projection(request.projection, (), table, placeholders)
        if not request.forward:
            body["ScanIndexForward"] = False
    body |= placeholders.attributes() | _paging(request, table, request.index) | _CAPACITY
    if request.start is not None and not can_go_on(request, request.start):
        return ()
    return (Wire("Query", body),)


def _scan(request: Scan, table: Table) -> Wire:
    refuse_segment(request.segment, request.segments)
    body: dict[str, Any] = {"TableName": table.name}
    if request.segments > 1:
        body |= {"Segment": request.segment, "TotalSegments": request.segments}
    return Wire("Scan", body | _paging(request, table, None) | _CAPACITY)


def _paging(request: Query | Count | Scan, table: Table, index: str | None) -> dict[str, Any]:
    paging: dict[str, Any] = {}
    if request.limit is not None:
        if request.limit < 1:
            raise BadUserInput("The limit of a page is at least 1.")
        paging["Limit"] = request.limit
    if request.start is not None:
        paging["ExclusiveStartKey"] = typed_key(table, index, request.start)
    if request.consistent:
        paging["ConsistentRead"] = True
    return paging


def _batch_get(request: BatchGet, table: Table) -> tuple[Wire, ...]:
    keys = list(dict.fromkeys(request.keys))
    placeholders = Placeholders()
    options: dict[str, Any] = {}
    if request.projection is not None:
        # DynamoDB answers a batch in no order, so the keys must come back to tell the items apart.
        needed = table.keys if len(keys) > 1 else ()
        options["ProjectionExpression"] = _projection(request.projection, needed, table, placeholders)
        options |= placeholders.attributes()
    if request.consistent:
        options["ConsistentRead"] = True
    typed = [typed_key(table, None, key) for key in keys]
    if len(typed) == 1:
        return (Wire("GetItem", {"TableName": table.name, "Key": typed[0], **options, **_CAPACITY}),)
    return tuple(
        Wire("BatchGetItem", {"RequestItems": {table.name: {"Keys": chunk, **options}}, **_CAPACITY})
        for chunk in _chunks(typed, BATCH_GET_KEYS)
    )


def _projection(
    asked: Iterable[Path], needed: Iterable[KeyAttribute], table: Table, placeholders: Placeholders
) -> str:
    """What is asked for and needed. DynamoDB knows no empty projection: the partition key stands for it."""
    paths = [*asked, *((key.name,) for key in needed)]
    return projection_text(paths or [(table.partition.name,)], placeholders)


def _keyed(table: Table, index: str | None) -> Table | Index:
    try:
        return table.keyed(index)
    except KeyError:
        raise BadUserInput(f"The table {table.name} has no index {index}.") from None


def _refuse_range(range_: Range, keyed: Table | Index) -> None:
    """Raises BadUserInput where the range does not fit the sort key."""
    if keyed.sort is None:
        raise BadUserInput(f"{keyed.name} has no sort key, so no range of it.")
    if isinstance(range_, Prefix) and keyed.sort.type == "N":
        raise BadUserInput("A number has no prefix.")
    bounds = (range_.low, range_.high) if isinstance(range_, Within) else (range_.value,)
    for bound in bounds:
        checked_key_bytes(keyed.sort, bound, SORT_KEY_BYTES)
    if isinstance(range_, Within):
        refuse_crossed_bounds(range_.low, range_.high)


def _refuse_unprojected(projection: Iterable[Path], keyed: Table | Index, table: Table) -> None:
    if isinstance(keyed, Table) or keyed.local:
        return
    missing = sorted({path[0] for path in projection if not table.has(keyed.name, path[0])})
    if missing:
        raise BadUserInput(f"The global index {keyed.name} does not project {', '.join(missing)}.")


# --- Writes -------------------------------------------------------------------------------------------


def _batch_write(request: BatchWrite, table: Table) -> tuple[Wire, ...]:
    """Deletes come after puts, so a key that is in both is deleted."""
    actions: dict[Key, dict[str, Any]] = {}
    rules = write_rules(table)
    for item in request.puts:
        # What is wrong with any of them is refused before a part of the batch is written.
        checked = rules.checked(item)
        actions[table.key_of(checked)] = {"PutRequest": {"Item": typed_item(checked)}}
    for key in request.deletes:
        actions[key] = {"DeleteRequest": {"Key": typed_key(table, None, key)}}
    return tuple(
        Wire("BatchWriteItem", {"RequestItems": {table.name: chunk}, **_CAPACITY})
        for chunk in _chunks(list(actions.values()), BATCH_WRITE_ITEMS)
    )


def typed_key(table: Table, index: str | None, values: Position) -> dict[str, TypedValue]:
    """A position in DynamoDB's typed form. Raises BadUserInput for what cannot stand in these keys."""
    attributes = table.position(index)
    if len(attributes) != len(values):
        raise BadUserInput(
            f"A position here has a value for each of {', '.join(key.name for key in attributes)}."
        )
    # No set: these hash slowly, and are mostly found by identity.
    sort_keys = (table.sort, table.keyed(index).sort)
    typed = {}
    for key, value in zip(attributes, values, strict=True):
        checked_key_bytes(key, value, SORT_KEY_BYTES if key in sort_keys else PARTITION_KEY_BYTES)
        typed[key.name] = to_typed(value)
    return typed


def _chunks(members: Sequence[_Member], size: int) -> Iterable[list[_Member]]:
    return (list(members[start : start + size]) for start in range(0, len(members), size))


# --- Tables -------------------------------------------------------------------------------------------


def cloudformation(table: Table) -> dict[str, Any]:
    """A CloudFormation template with the table as its one resource, kept with its data if the stack goes."""
    resource = {
        "Type": "AWS::DynamoDB::Table",
        "DeletionPolicy": "Retain",
        "UpdateReplacePolicy": "Retain",
        "Properties": {"TableName": table.name, **_declaration(table)},
    }
    return {"AWSTemplateFormatVersion": "2010-09-09", "Resources": {"Table": resource}}


def _declaration(table: Table) -> dict[str, Any]:
    declaration: dict[str, Any] = {
        "AttributeDefinitions": [
            {"AttributeName": key.name, "AttributeType": key.type} for key in table.key_attributes()
        ],
        "KeySchema": _key_schema(table),
        "BillingMode": "PAY_PER_REQUEST",
    }
    for kind, local in (("GlobalSecondaryIndexes", False), ("LocalSecondaryIndexes", True)):
        if declared := [_index(index, table) for index in table.indexes if index.local is local]:
            declaration[kind] = declared
    return declaration


def _index(index: Index, table: Table) -> dict[str, Any]:
    projection: Mapping[str, Any] = {"ProjectionType": index.projection}
    if isinstance(index.projection, tuple):
        keys = {key.name for key in table.position(index.name)}
        others = [name for name in dict.fromkeys(index.projection) if name not in keys]
        projection = (
            {"ProjectionType": "INCLUDE", "NonKeyAttributes": others}
            if others
            else {"ProjectionType": "KEYS_ONLY"}
        )
    return {"IndexName": index.name, "KeySchema": _key_schema(index), "Projection": projection}


def _key_schema(keyed: Table | Index) -> list[dict[str, str]]:
    return [
        {"AttributeName": key.name, "KeyType": kind}
        for key, kind in zip(keyed.keys, ("HASH", "RANGE"), strict=False)
    ]
