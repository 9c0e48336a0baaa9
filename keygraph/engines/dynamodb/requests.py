"""Renders requests for DynamoDB as values that can be compared, printed and explained.

A `Wire` is one call of boto's client: `client.query(**wire.body)`. Rendering reads and sends nothing.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple, TypeVar

from keygraph.dynamo import expressions, rules, store
from keygraph.dynamo.actions import Action, CheckItem, DeleteItem, PutItem, UpdateItem, refuse_changes
from keygraph.dynamo.conditions import And, Condition, Exists, Not, Or, Path, outermost, paths_of
from keygraph.dynamo.items import TypedValue, to_typed, typed_item
from keygraph.dynamo.limits import BATCH_GET_KEYS, BATCH_WRITE_ITEMS, PARTITION_KEY_BYTES, SORT_KEY_BYTES
from keygraph.dynamo.streams import EnableStream, ShardPosition
from keygraph.dynamo.table import Index, Key, KeyAttribute, KeyValue, Position, Table

STREAM_OPERATIONS = {"DescribeStream", "GetShardIterator", "GetRecords"}
"""The operations of DynamoDB Streams, which is an API of its own."""
SEQUENCE_DIGITS = 40
"""The most digits of a sequence number. Positions are as long, so that they are in the order of the numbers."""
IMAGES_OF_STREAM = "NEW_AND_OLD_IMAGES"
_CAPACITY = {"ReturnConsumedCapacity": "TOTAL"}
_ACTIONS = {PutItem: "Put", UpdateItem: "Update", DeleteItem: "Delete", CheckItem: "ConditionCheck"}
"""DynamoDB's names of actions."""
_FORMS = 512
"""The number of cached forms of reads. A server has as many as its clients have different lists."""
_Member = TypeVar("_Member")


class Wire(NamedTuple):
    """One call of DynamoDB's API: the operation's name, and its parameters as boto's client takes them."""

    operation: str
    body: dict[str, Any]


class _QueryForm(NamedTuple):
    """The common part of Queries that differ only in their keys, limit and start."""

    filter: Condition | None
    """The filter that it was made for. It is compared by identity: an equal one may differ, since 1 == True."""
    body: dict[str, Any]
    values: dict[str, TypedValue]
    """The values of the filter."""
    partition: KeyAttribute
    sort: KeyAttribute | None
    """None if the request has no range."""


def render(request: store.Request[Any], table: Table) -> tuple[Wire, ...]:
    """Returns what is sent to DynamoDB for one request, as `Renderer.render` does."""
    return Renderer(table).render(request)


class Renderer:
    """Renders the requests to one table for DynamoDB.

    The requests that a list sends for its parents differ only in their keys, so the expressions of a read are made once
    and cached by its form. That takes a quarter of a small Query's processor time off (0.118 ms to 0.088, the request
    of 5 items of 6 attributes in `python -m bench.transport`).
    """

    def __init__(self, table: Table) -> None:
        self._table = table
        self._rules = rules.WriteRules(table)
        indexes = [None, *(index.name for index in table.indexes)]
        self._reads = {index: rules.ReadRules(table, index) for index in indexes}
        self._queries: dict[object, _QueryForm] = {}
        self._projections: dict[object, dict[str, Any]] = {}
        there = Exists((table.partition.name,))
        self._never: Condition = And((there, Not(there)))
        self._always: Condition = Or((there, Not(there)))

    def render(self, request: store.Request[Any]) -> tuple[Wire, ...]:
        """Returns what is sent to DynamoDB for the request; nothing if the answer is known without asking.

        That is a `Query` or `Count` whose filter nothing can pass or whose start nothing can follow, and an empty
        batch. Raises BadUserInput for a request that DynamoDB would refuse.
        """
        match request:
            case store.Query() | store.Count():
                return self._query(request)
            case store.BatchGet():
                return self._batch_get(request)
            case store.Scan():
                return (self._scan(request),)
            case store.BatchWrite():
                return self._batch_write(request)
            case store.Write(action):
                return (self._write(action),)
            case store.Transaction():
                return (self._transaction(request),)
            case store.CreateTable():
                return (Wire("CreateTable", {"TableName": self._table.name, **_declaration(self._table)}),)
            case EnableStream():
                specification = {"StreamEnabled": True, "StreamViewType": IMAGES_OF_STREAM}
                body = {"TableName": self._table.name, "StreamSpecification": specification}
                return (Wire("UpdateTable", body),)
            case store.DescribeTable() | store.DeleteTable() | store.DescribeTimeToLive():
                return (Wire(type(request).__name__, {"TableName": self._table.name}),)
            case store.CreateIndex(index):
                table = self._table.with_indexes([*self._table.indexes, index])
                definitions = _declaration(table)["AttributeDefinitions"]
                return (
                    self._index_update({"Create": _index(index, table)}, AttributeDefinitions=definitions),
                )
            case store.DeleteIndex(name):
                return (self._index_update({"Delete": {"IndexName": name}}),)
            case store.EnableTimeToLive(attribute):
                expiry = {"AttributeName": attribute, "Enabled": True}
                body = {"TableName": self._table.name, "TimeToLiveSpecification": expiry}
                return (Wire("UpdateTimeToLive", body),)
            case store.ListTables():
                return (Wire("ListTables", {}),)
        raise TypeError(f"{type(request).__name__} is not a request to a store")

    def _index_update(self, update: dict[str, Any], **more: Any) -> Wire:
        body = {"TableName": self._table.name, **more, "GlobalSecondaryIndexUpdates": [update]}
        return Wire("UpdateTable", body)

    # --- Reads ----------------------------------------------------------------------------------------

    def _query(self, request: store.Query | store.Count) -> tuple[Wire, ...]:
        form_key: tuple[object, ...] = (request.index, type(request.range), request.consistent)
        if isinstance(request, store.Query):
            form_key += (request.projection, request.forward)
        form = self._queries.get(form_key)
        if form is None or form.filter is not request.filter:
            form = self._query_form(request)
            if form is None:
                return ()
            _keep(self._queries, form_key, form)
        body = form.body.copy()
        body["ExpressionAttributeValues"] = _key_values(request, form.partition, form.sort) | form.values
        self._add_paging(body, request, request.index)
        if request.start is not None and not rules.can_go_on(request, request.start):
            return ()
        return (Wire("Query", body),)

    def _query_form(self, request: store.Query | store.Count) -> _QueryForm | None:
        """Returns the form of the request; None if nothing can pass its filter."""
        table = self._table
        of_index = self._reads.get(request.index)
        if of_index is None:
            raise rules.no_such_index(table, request.index)
        of_index.check(request)
        keyed = of_index.keyed
        sort = None if request.range is None else keyed.sort
        keys = _key_values(request, keyed.partition, sort)
        filter_ = True if request.filter is None else expressions.simplified(request.filter)
        if filter_ is False:
            return None
        placeholders = expressions.Placeholders()
        body: dict[str, Any] = {"TableName": table.name}
        if request.index is not None:
            body["IndexName"] = request.index
        body["KeyConditionExpression"] = expressions.key_text(request, keyed, placeholders)
        if not isinstance(filter_, bool):
            rules.refuse_filtered(paths_of(filter_), keyed, table)
            body["FilterExpression"] = expressions.filter_text(filter_, placeholders)
        if isinstance(request, store.Count):
            body["Select"] = "COUNT"
        else:
            if request.projection is not None:
                told = told_partition(request, keyed)
                asked = [path for path in request.projection if path != (told,)]
                body["ProjectionExpression"] = self._projection(asked, (), placeholders)
            if not request.forward:
                body["ScanIndexForward"] = False
        body |= placeholders.attributes() | _CAPACITY
        values = {name: value for name, value in placeholders.values.items() if name not in keys}
        return _QueryForm(request.filter, body, values, keyed.partition, sort)

    def _scan(self, request: store.Scan) -> Wire:
        rules.refuse_segment(request)
        body: dict[str, Any] = {"TableName": self._table.name}
        if request.segments > 1:
            body |= {"Segment": request.segment, "TotalSegments": request.segments}
        self._add_paging(body, request, None)
        return Wire("Scan", body | _CAPACITY)

    def _add_paging(
        self, body: dict[str, Any], request: store.Query | store.Count | store.Scan, index: str | None
    ) -> None:
        if request.limit is not None:
            rules.refuse_limit(request)
            body["Limit"] = request.limit
        if request.start is not None:
            [body["ExclusiveStartKey"]] = self._typed_keys([request.start], index)
        if request.consistent:
            body["ConsistentRead"] = True

    def _batch_get(self, request: store.BatchGet) -> tuple[Wire, ...]:
        table = self._table
        keys = list(dict.fromkeys(request.keys))
        typed = self._typed_keys(keys, None)
        form_key = (len(keys) > 1, request.projection)
        options = self._projections.get(form_key)
        if options is None:
            options = {}
            if request.projection is not None:
                # DynamoDB answers a batch in no order, so the keys must come back to identify the items.
                needed = table.keys if len(keys) > 1 else ()
                placeholders = expressions.Placeholders()
                options["ProjectionExpression"] = self._projection(request.projection, needed, placeholders)
                options |= placeholders.attributes()
            _keep(self._projections, form_key, options)
        if request.consistent:
            options = {**options, "ConsistentRead": True}
        if len(typed) == 1:
            return (Wire("GetItem", {"TableName": table.name, "Key": typed[0], **options, **_CAPACITY}),)
        return tuple(
            Wire("BatchGetItem", {"RequestItems": {table.name: {"Keys": chunk, **options}}, **_CAPACITY})
            for chunk in _chunks(typed, BATCH_GET_KEYS)
        )

    def _projection(
        self, asked: Iterable[Path], needed: Iterable[KeyAttribute], placeholders: expressions.Placeholders
    ) -> str:
        """Returns the projection of both. DynamoDB has no empty projection, so the partition key replaces one."""
        paths = [*asked, *((key.name,) for key in needed)]
        # DynamoDB refuses a path inside another one.
        return ", ".join(map(placeholders.path, outermost(paths or [(self._table.partition.name,)])))

    # --- Writes ---------------------------------------------------------------------------------------

    def _batch_write(self, request: store.BatchWrite) -> tuple[Wire, ...]:
        """Returns the calls of a batch. Deletes come after puts, so a key in both is deleted."""
        actions: dict[Key, dict[str, Any]] = {}
        for item in request.puts:
            # Every item is checked before any part of the batch is written.
            self._rules.check(item)
            actions[self._table.key_of(item)] = {"PutRequest": {"Item": typed_item(item)}}
        for key, typed in zip(request.deletes, self._typed_keys(request.deletes, None), strict=True):
            actions[key] = {"DeleteRequest": {"Key": typed}}
        return tuple(
            Wire("BatchWriteItem", {"RequestItems": {self._table.name: chunk}, **_CAPACITY})
            for chunk in _chunks(list(actions.values()), BATCH_WRITE_ITEMS)
        )

    def _write(self, action: PutItem | UpdateItem | DeleteItem) -> Wire:
        [(kind, body)], _ = self._actions([action])
        returned = "ALL_NEW" if isinstance(action, UpdateItem) else "ALL_OLD"
        return Wire(f"{kind}Item", {**body, "ReturnValues": returned, **_CAPACITY})

    def _transaction(self, request: store.Transaction) -> Wire:
        rules.refuse_transaction(request, self._table)
        actions, size = self._actions(request.actions)
        rules.refuse_transaction_size(size)
        typed = [{kind: body} for kind, body in actions]
        return Wire(
            "TransactWriteItems", {"TransactItems": typed, "ClientRequestToken": request.token, **_CAPACITY}
        )

    def _actions(self, actions: Sequence[Action]) -> tuple[list[tuple[str, dict[str, Any]]], int]:
        """Returns DynamoDB's name of each action with its parameters, and the size of the items that are put."""
        keys = iter(self._typed_keys([each.key for each in actions if not isinstance(each, PutItem)], None))
        found, size, name = [], 0, self._table.name
        for action in actions:
            if isinstance(action, PutItem):
                size += self._rules.check(action.item) if action.size is None else action.size
                body: dict[str, Any] = {"TableName": name, "Item": typed_item(action.item)}
            else:
                body = {"TableName": name, "Key": next(keys)}
            if isinstance(action, UpdateItem):
                body.update(self._update(action))
            elif action.condition is not None:
                body.update(self._condition(action, action.condition))
            found.append((_ACTIONS[type(action)], body))
        return found, size

    def _update(self, action: UpdateItem) -> dict[str, Any]:
        body: dict[str, Any] = {}
        placeholders = expressions.Placeholders()
        refuse_changes(action.changes, [key.name for key in self._table.keys])
        if text := expressions.changes_text(action.changes, placeholders):
            body["UpdateExpression"] = text
        condition = None if action.condition is None else expressions.simplified(action.condition)
        if isinstance(condition, bool):
            condition = self._constant(action, holds=condition)
        if condition is not None:
            body |= expressions.conditional(expressions.filter_text(condition, placeholders, "condition"))
        return body | placeholders.attributes()

    def _condition(self, action: PutItem | DeleteItem | CheckItem, condition: Condition) -> Mapping[str, Any]:
        """Returns the condition of an action that has no other expression."""
        found = expressions.condition_parameters(condition)
        if isinstance(found, bool):
            constant = self._constant(action, holds=found)
            found = constant is not None and expressions.condition_parameters(constant)
        return {} if isinstance(found, bool) else found

    def _constant(self, action: Action, *, holds: bool) -> Condition | None:
        """Returns a condition that always holds, or never: DynamoDB has no constants, and a check needs a condition."""
        if not holds:
            return self._never
        return self._always if isinstance(action, CheckItem) else None

    # --- Keys -----------------------------------------------------------------------------------------

    def _typed_keys(self, positions: Sequence[Position], index: str | None) -> list[dict[str, TypedValue]]:
        """Returns positions in DynamoDB's typed form. Raises BadUserInput for values that cannot be these keys."""
        limits = self._reads[index].limits
        rules.refuse_positions(positions, limits)
        typed: list[dict[str, TypedValue]] = [{} for _ in positions]
        for (key, limit), values in zip(limits.items(), zip(*positions, strict=True), strict=False):
            rules.check_keys(key, values, limit)
            name, is_text = key.name, key.type == "S"
            for each, value in zip(typed, values, strict=True):
                each[name] = {"S": value} if is_text else to_typed(value)
        return typed


def told_partition(request: store.Query, keyed: Table | Index) -> str | None:
    """Returns the partition key if it is requested of each item: the request already has its value."""
    name = keyed.partition.name
    is_wanted = request.projection is not None and (name,) in request.projection
    return name if is_wanted and isinstance(request.partition, str) else None


def _key_values(
    request: store.Query | store.Count, partition: KeyAttribute, sort: KeyAttribute | None
) -> dict[str, TypedValue]:
    """Returns the values of the condition on the keys, by the placeholders that `key_text` gives them."""
    values = {":v0": _typed_key(partition, request.partition, PARTITION_KEY_BYTES)}
    range_ = request.range
    if range_ is not None and sort is not None:
        if isinstance(range_, store.Within):
            values[":v1"] = _typed_key(sort, range_.low, SORT_KEY_BYTES)
            values[":v2"] = _typed_key(sort, range_.high, SORT_KEY_BYTES)
            rules.refuse_crossed_bounds(range_.low, range_.high)
        else:
            values[":v1"] = _typed_key(sort, range_.value, SORT_KEY_BYTES)
    return values


def _typed_key(key: KeyAttribute, value: KeyValue, limit: int) -> TypedValue:
    """Returns the key's value in DynamoDB's typed form. Raises BadUserInput for a value that cannot be the key."""
    # Most keys are plain text.
    if key.type == "S" and type(value) is str and value.isascii() and 0 < len(value) <= limit:
        return {"S": value}
    rules.checked_key_bytes(key, value, limit)
    return to_typed(value)


def _keep(forms: dict[object, Any], form_key: object, form: object) -> None:
    if len(forms) >= _FORMS:
        forms.clear()
    forms[form_key] = form


def _chunks(members: Sequence[_Member], size: int) -> Iterable[list[_Member]]:
    return (list(members[start : start + size]) for start in range(0, len(members), size))


# --- Streams ------------------------------------------------------------------------------------------


def iterator_call(stream: str, shard: str, after: ShardPosition | None) -> Wire:
    """Returns the call for an iterator of a shard, which is valid for 15 minutes; None: behind all that there is."""
    body = {"StreamArn": stream, "ShardId": shard}
    if after is None:
        return Wire("GetShardIterator", {**body, "ShardIteratorType": "LATEST"})
    if not after.after:
        return Wire("GetShardIterator", {**body, "ShardIteratorType": "TRIM_HORIZON"})
    # They have at least 21 digits, and those of DynamoDB Local begin with zeros.
    body |= {
        "ShardIteratorType": "AFTER_SEQUENCE_NUMBER",
        "SequenceNumber": after.after.lstrip("0").zfill(21),
    }
    return Wire("GetShardIterator", body)


# --- Tables -------------------------------------------------------------------------------------------


def cloudformation(table: Table, ttl_attribute: str | None = None) -> dict[str, Any]:
    """Returns a CloudFormation template with the table as its only resource, which outlives the stack with its data.

    By the TTL attribute DynamoDB deletes expired items; None for a table whose items do not expire.
    """
    expiry = {"TimeToLiveSpecification": {"AttributeName": ttl_attribute, "Enabled": True}}
    resource = {
        "Type": "AWS::DynamoDB::Table",
        "DeletionPolicy": "Retain",
        "UpdateReplacePolicy": "Retain",
        "Properties": {"TableName": table.name, **_declaration(table), **(expiry if ttl_attribute else {})},
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
    projection: dict[str, Any] = {"ProjectionType": index.projection}
    if isinstance(index.projection, tuple):
        keys = {key.name for key in table.position(index.name)}
        others = [name for name in dict.fromkeys(index.projection) if name not in keys]
        projection = {"ProjectionType": "INCLUDE" if others else "KEYS_ONLY"}
        if others:
            projection["NonKeyAttributes"] = others
    return {"IndexName": index.name, "KeySchema": _key_schema(index), "Projection": projection}


def _key_schema(keyed: Table | Index) -> list[dict[str, str]]:
    return [
        {"AttributeName": key.name, "KeyType": kind}
        for key, kind in zip(keyed.keys, ("HASH", "RANGE"), strict=False)
    ]
