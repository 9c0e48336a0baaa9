"""Decodes the answers of DynamoDB: the one place that reads what its endpoint sends.

Something else may stand at the endpoint, or in between, so an answer may be any JSON. What leaves this module has the
types that it declares.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, TypeVar, cast

from keygraph.dynamo.items import Item, answered_items, nested_values, untyped_item
from keygraph.dynamo.limits import PAGE_BYTES
from keygraph.dynamo.streams import StreamRecord, StreamShard
from keygraph.dynamo.table import Index, Key, KeyAttribute, KeyDeclaration, Position, Table
from keygraph.engines.dynamodb.requests import SEQUENCE_DIGITS, Wire
from keygraph.engines.dynamodb.transport import Body, UnreadableAnswer

_WITHOUT_ITEM = frozenset({"ConsumedCapacity", "ResponseMetadata"})
"""The fields of a GetItem answer without an item."""
_OF_WRITE = _WITHOUT_ITEM | {"Attributes", "ItemCollectionMetrics"}
_MOST_UNITS = 1e9
"""More capacity units than any call consumes."""
_MOST_SECONDS = 1e11
"""A time that no change is made at, in seconds since 1970."""
_T = TypeVar("_T")


@dataclass(slots=True)
class Answered:
    """The content of one answer. An answer has the fields of its call; the others are empty."""

    items: list[Item] = field(default_factory=list)
    """Of a read; of a write the item that it returns, if any."""
    nested: int = 0
    """The values in their lists, maps and sets."""
    by_key: dict[Key, Item] | None = None
    count: int = 0
    scanned: int = 0
    last: Position | None = None
    """The position of the last item that was read; None at the end."""
    rest: Wire | None = None
    """The part of a batch that was left unprocessed."""
    units: float = 0.0
    """The consumed capacity units."""
    status: str = ""
    """The status of a table, such as `ACTIVE`."""
    table: Table | None = None
    """A described table, with the indexes that can be read; None if the description has no keys, because the table is
    being deleted."""
    indexes: Mapping[str, str] = field(default_factory=dict)
    """The status of each global index of a described table, such as `CREATING`."""
    throughput: Body = field(default_factory=dict)
    """The provisioned capacity of a described table; empty if it is paid for on demand."""
    ttl_attribute: str | None = None
    """The attribute by which items expire."""
    stream: tuple[str, str] | None = None
    """The name of the stream of a described table, and the images that it has; None if it is off."""
    shards: tuple[StreamShard, ...] = ()
    iterator: str | None = None
    """A position in a shard; None at its end."""
    records: tuple[StreamRecord, ...] = ()
    names: tuple[str, ...] = ()
    last_name: str | None = None
    """The name after which the next page of names or shards starts; None at the end."""


def decoded(wire: Wire, answer: Body, table: Table) -> Answered:
    """Returns the content of an answer. Raises UnreadableAnswer if DynamoDB would not give it."""
    try:
        found = _DECODERS.get(wire.operation, _of_write)(wire, answer, table)
        consumed = answer.get("ConsumedCapacity")
        if consumed is not None:
            found.units = _units(consumed) if type(consumed) is dict else sum(map(_units, consumed))
        found.nested = nested_values(found.items)
    except Exception as error:
        raise UnreadableAnswer(f"an answer to {wire.operation} that DynamoDB would not give") from error
    return found


def _of(type_: type[_T], value: object) -> _T:
    if not isinstance(value, type_) or isinstance(value, bool):
        raise TypeError(f"not a {type_.__name__}")
    return value


def _units(consumed: Any) -> float:
    units = consumed.get("CapacityUnits", 0.0)
    if type(units) not in (int, float) or not 0 <= units < _MOST_UNITS:
        raise ValueError("not a number of capacity units")
    return float(units)


# --- Reads and writes ---------------------------------------------------------------------------------


def _of_page(wire: Wire, answer: Body, table: Table) -> Answered:
    items = (
        [] if "Select" in wire.body else _items(answer["Items"], wire.body.get("Limit", PAGE_BYTES), table)
    )
    # Commands take every item by its keys; a list finds out itself.
    if wire.operation == "Scan" and not all(
        key.holds(item[key.name]) for key in table.keys for item in items
    ):
        raise TypeError("a key of another type")
    count, scanned, last = answer["Count"], answer["ScannedCount"], answer.get("LastEvaluatedKey")
    if not type(count) is type(scanned) is int or not 0 <= count <= scanned <= PAGE_BYTES:
        raise ValueError("numbers of items that no page has")
    return Answered(items, 0, None, count, scanned, _position(last, wire.body, table) if last else None)


def _items(typed: list[Any], most: int, table: Table) -> list[Item]:
    if len(typed) > most:
        raise ValueError("more items than were requested")
    return answered_items(typed, table.key_names)


def _position(last: Any, body: Body, table: Table) -> Position:
    [item], keys = answered_items([last], table.key_names), table.position(body.get("IndexName"))
    position = [item[key.name] for key in keys]
    if not all(map(KeyAttribute.holds, keys, position)):
        raise TypeError("a key of another type")
    return cast(Position, tuple(position))


def _of_item(wire: Wire, answer: Body, table: Table) -> Answered:
    if "Item" in answer:
        return Answered(answered_items([_of(dict, answer["Item"])], table.key_names))
    # Something else that answers with JSON would make the item look as if it did not exist.
    if not answer.keys() <= _WITHOUT_ITEM:
        raise KeyError("Item")
    return Answered()


def _of_batch_get(wire: Wire, answer: Body, table: Table) -> Answered:
    requested = wire.body["RequestItems"][table.name]
    items = _items(_of(dict, answer["Responses"]).get(table.name, []), len(requested["Keys"]), table)
    keys = _left(
        requested["Keys"], answer.get("UnprocessedKeys"), table, lambda part: part["Keys"], lambda key: key
    )
    rest = _batch(wire, table, {**requested, "Keys": keys}) if keys else None
    columns: Any = [[item[key.name] for item in items] for key in table.keys]
    by_key = dict(zip(zip(*columns, strict=True), items, strict=True))
    if len(by_key) < len(items):
        raise ValueError("an item twice")
    return Answered(items, 0, by_key, rest=rest)


def _of_batch_write(wire: Wire, answer: Body, table: Table) -> Answered:
    requested = wire.body["RequestItems"][table.name]
    actions = _left(requested, answer.get("UnprocessedItems"), table, lambda part: part, _written)
    return Answered(rest=_batch(wire, table, actions) if actions else None)


def _left(
    requested: list[Body],
    unprocessed: Any,
    table: Table,
    members: Callable[[Any], list[Body]],
    typed_key: Callable[[Body], Body],
) -> list[Body]:
    """Returns the members of a batch that an answer names as unprocessed. Raises an error if it names others."""
    if not unprocessed:
        return []
    [(name, part)] = unprocessed.items()
    if name != table.name:
        raise KeyError(name)
    by_key = {table.key_of(untyped_item(typed_key(each))): each for each in requested}
    return [by_key.pop(table.key_of(untyped_item(typed_key(each)))) for each in members(part)]


def _written(action: Body) -> Body:
    written: Body = action["PutRequest"]["Item"] if "PutRequest" in action else action["DeleteRequest"]["Key"]
    return written


def _batch(wire: Wire, table: Table, part: object) -> Wire:
    return Wire(wire.operation, {**wire.body, "RequestItems": {table.name: part}})


def batch_length(wire: Wire) -> int:
    """Returns the number of members of a batch."""
    [part] = wire.body["RequestItems"].values()
    return len(part if isinstance(part, list) else part["Keys"])


def _of_write(wire: Wire, answer: Body, table: Table) -> Answered:
    if not answer.keys() <= _OF_WRITE:  # something else would acknowledge what it has not written
        raise KeyError("Attributes")
    return Answered(
        answered_items([answer["Attributes"]], table.key_names) if answer.get("Attributes") else []
    )


# --- Tables -------------------------------------------------------------------------------------------


def _of_table(wire: Wire, answer: Body, table: Table) -> Answered:
    described = answer["Table" if wire.operation == "DescribeTable" else "TableDescription"]
    units = described.get("ProvisionedThroughput") or {}
    names = ("ReadCapacityUnits", "WriteCapacityUnits")
    return Answered(
        status=_of(str, described["TableStatus"]),
        table=described_table(described) if "KeySchema" in described else None,
        indexes={
            _of(str, each["IndexName"]): _of(str, each.get("IndexStatus", "ACTIVE"))
            for each in described.get("GlobalSecondaryIndexes") or ()
        },
        throughput={name: _of(int, units[name]) for name in names if units.get(name)},
        stream=_stream(described),
    )


def _stream(described: Body) -> tuple[str, str] | None:
    specification = described.get("StreamSpecification") or {}
    if not specification.get("StreamEnabled"):
        return None
    return _of(str, described["LatestStreamArn"]), _of(str, specification["StreamViewType"])


def _of_time_to_live(wire: Wire, answer: Body, table: Table) -> Answered:
    described = answer.get("TimeToLiveDescription") or {}
    is_on = described.get("TimeToLiveStatus") in ("ENABLED", "ENABLING")
    return Answered(ttl_attribute=_of(str, described["AttributeName"]) if is_on else None)


def _of_names(wire: Wire, answer: Body, table: Table) -> Answered:
    names, last = answer["TableNames"], answer.get("LastEvaluatedTableName")
    return Answered(
        names=tuple([_of(str, name) for name in names]), last_name=None if last is None else _of(str, last)
    )


# --- Streams ------------------------------------------------------------------------------------------


def _of_shards(wire: Wire, answer: Body, table: Table) -> Answered:
    described = answer["StreamDescription"]
    last = described.get("LastEvaluatedShardId")
    shards = [
        StreamShard(
            _of(str, each["ShardId"]),
            _of(str, each["ParentShardId"]) if each.get("ParentShardId") else None,
            "EndingSequenceNumber" in (each.get("SequenceNumberRange") or {}),
        )
        for each in described["Shards"]
    ]
    return Answered(shards=tuple(shards), last_name=None if last is None else _of(str, last))


def _of_records(wire: Wire, answer: Body, table: Table) -> Answered:
    following = answer.get("NextShardIterator")
    return Answered(
        records=tuple([stream_record(each["dynamodb"], table) for each in answer["Records"]]),
        iterator=None if following is None else _of(str, following),
    )


def stream_record(record: Body, table: Table) -> StreamRecord:
    """Returns the change in a record of DynamoDB Streams, which a Lambda function gets too. Raises an error for one that
    lacks images, or has keys of other types."""
    number_, made = _of(str, record["SequenceNumber"]), record["ApproximateCreationDateTime"]
    if not (number_.isascii() and number_.isdecimal() and len(number_) <= SEQUENCE_DIGITS):
        raise ValueError("not a sequence number")
    old, new = (
        answered_items([record[name]], table.key_names)[0] if name in record else None
        for name in ("OldImage", "NewImage")
    )
    [key] = answered_items([record["Keys"]], table.key_names)
    if (old is None and new is None) or not all(each.holds(key[each.name]) for each in table.keys):
        raise ValueError("not a record of this table with its images")
    at = made.timestamp() if isinstance(made, datetime) else float(made)
    if not 0 <= at < _MOST_SECONDS:
        raise ValueError("not a time of a change")
    return StreamRecord(table.key_of(key), old, new, number_.zfill(SEQUENCE_DIGITS), at)


def described_table(described: Mapping[str, Any]) -> Table:
    """Returns the table in a DescribeTable answer's `Table`; its indexes are sorted by name, without those that are being
    created or deleted, which cannot be read."""
    types = {each["AttributeName"]: each["AttributeType"] for each in described["AttributeDefinitions"]}

    def keys(schema: list[dict[str, str]]) -> tuple[KeyDeclaration, KeyDeclaration | None]:
        named = {each["KeyType"]: (each["AttributeName"], types[each["AttributeName"]]) for each in schema}
        return named["HASH"], named.get("RANGE")

    indexes = []
    for kind, local in (("GlobalSecondaryIndexes", False), ("LocalSecondaryIndexes", True)):
        for each in described.get(kind) or ():
            if each.get("IndexStatus") in ("CREATING", "DELETING"):
                continue
            projection = each["Projection"]
            projected = projection.get("NonKeyAttributes") or projection["ProjectionType"]
            partition, sort = keys(each["KeySchema"])
            indexes.append(Index(each["IndexName"], partition, sort, projection=projected, local=local))
    partition, sort = keys(described["KeySchema"])
    origin = described.get("TableArn"), described.get("CreationDateTime")
    found = Table(
        described["TableName"],
        partition_key=partition,
        sort_key=sort,
        indexes=sorted(indexes, key=lambda index: index.name),
        origin=None if None in origin else str(origin),
    )
    names = [found.name, *types, *(name for index in indexes for name in (index.name, *index.projection))]
    if not all(isinstance(name, str) for name in names) or not {*types.values()} <= {"S", "N", "B"}:
        raise TypeError("a table that DynamoDB does not have")
    return found


_DECODERS: Mapping[str, Callable[[Wire, Body, Table], Answered]] = {
    "Query": _of_page,
    "Scan": _of_page,
    "GetItem": _of_item,
    "BatchGetItem": _of_batch_get,
    "BatchWriteItem": _of_batch_write,
    "CreateTable": _of_table,
    "DeleteTable": _of_table,
    "DescribeTable": _of_table,
    "ListTables": _of_names,
    "UpdateTable": _of_table,
    "DescribeTimeToLive": _of_time_to_live,
    "UpdateTimeToLive": lambda *_: Answered(),
    "DescribeStream": _of_shards,
    "GetShardIterator": lambda wire, answer, table: Answered(iterator=_of(str, answer["ShardIterator"])),
    "GetRecords": _of_records,
}
"""How the answers to calls are read; other calls are writes."""
