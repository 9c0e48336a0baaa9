"""Every request as the exact parameters that DynamoDB is given."""

from __future__ import annotations

import json
from decimal import Decimal
from typing import Any

import pytest

from keygraph.dynamo.conditions import (
    And,
    BeginsWith,
    Between,
    Condition,
    Contains,
    Eq,
    Exists,
    Ge,
    Gt,
    In,
    Le,
    Lt,
    Ne,
    Not,
    Or,
)
from keygraph.dynamo.store import (
    BatchGet,
    BatchWrite,
    Count,
    CreateTable,
    DeleteIndex,
    DeleteTable,
    DescribeTable,
    EnableTimeToLive,
    Equals,
    ListTables,
    Prefix,
    Query,
    Request,
    Scan,
    Within,
)
from keygraph.dynamo.table import Index, Table
from keygraph.engines.dynamodb.requests import Wire, cloudformation, render
from keygraph.errors import BadUserInput
from tests.keygraph.rendered import shop

_PARTITION = {
    "TableName": "Shop",
    "KeyConditionExpression": "#n0 = :v0",
    "ExpressionAttributeNames": {"#n0": "PK"},
    "ExpressionAttributeValues": {":v0": {"S": "USER#1"}},
    "ReturnConsumedCapacity": "TOTAL",
}


def _key(number: int) -> dict[str, Any]:
    return {"PK": {"S": f"USER#{number}"}, "SK": {"S": "A"}}


@pytest.mark.parametrize(
    ("request_", "operation", "body"),
    [
        pytest.param(Query("USER#1"), "Query", _PARTITION, id="partition"),
        pytest.param(
            Query("USER#1", forward=False, limit=20, consistent=True, start=("USER#1", "ORDER#7")),
            "Query",
            {
                **_PARTITION,
                "ScanIndexForward": False,
                "Limit": 20,
                "ConsistentRead": True,
                "ExclusiveStartKey": {"PK": {"S": "USER#1"}, "SK": {"S": "ORDER#7"}},
            },
            id="backward-page",
        ),
        pytest.param(
            Query(
                "DAYS",
                index="by-day",
                range=Within(Decimal(1), Decimal("2.50")),
                filter=Gt(("total",), Decimal("199.99")),
                projection=(("total",), ("data", "version")),
                start=("DAYS", Decimal(2), "USER#1", "ORDER#7"),
            ),
            "Query",
            {
                "TableName": "Shop",
                "IndexName": "by-day",
                "KeyConditionExpression": "#n0 = :v0 AND #n1 BETWEEN :v1 AND :v2",
                "FilterExpression": "#n2 > :v3",
                "ProjectionExpression": "#n2, #n3.#n4",
                "ExpressionAttributeNames": {
                    "#n0": "GSI1PK",
                    "#n1": "day",
                    "#n2": "total",
                    "#n3": "data",
                    "#n4": "version",
                },
                "ExpressionAttributeValues": {
                    ":v0": {"S": "DAYS"},
                    ":v1": {"N": "1"},
                    ":v2": {"N": "2.5"},
                    ":v3": {"N": "199.99"},
                },
                "ExclusiveStartKey": {
                    "GSI1PK": {"S": "DAYS"},
                    "day": {"N": "2"},
                    "PK": {"S": "USER#1"},
                    "SK": {"S": "ORDER#7"},
                },
                "ReturnConsumedCapacity": "TOTAL",
            },
            id="index-with-everything",
        ),
        pytest.param(
            Query("USER#1", index="by-digest", range=Prefix(b"\x00"), consistent=True, projection=(("x",),)),
            "Query",
            {
                "TableName": "Shop",
                "IndexName": "by-digest",
                "KeyConditionExpression": "#n0 = :v0 AND begins_with(#n1, :v1)",
                "ProjectionExpression": "#n2",
                "ExpressionAttributeNames": {"#n0": "PK", "#n1": "digest", "#n2": "x"},
                "ExpressionAttributeValues": {":v0": {"S": "USER#1"}, ":v1": {"B": b"\x00"}},
                "ConsistentRead": True,
                "ReturnConsumedCapacity": "TOTAL",
            },
            id="local-index",
        ),
        pytest.param(
            Query("USER#1", projection=(("PK",), ("name",))),
            "Query",
            {
                **_PARTITION,
                "ProjectionExpression": "#n1",
                "ExpressionAttributeNames": {"#n0": "PK", "#n1": "name"},
            },
            id="partition-key-is-known",
        ),
        pytest.param(
            Count("USER#1", filter=Exists(("email",)), limit=5),
            "Query",
            {
                **_PARTITION,
                "FilterExpression": "attribute_exists(#n1)",
                "Select": "COUNT",
                "ExpressionAttributeNames": {"#n0": "PK", "#n1": "email"},
                "Limit": 5,
            },
            id="count",
        ),
        pytest.param(
            BatchGet((("USER#1", "A"), ("USER#1", "A")), projection=(("name",), ("PK",)), consistent=True),
            "GetItem",
            {
                "TableName": "Shop",
                "Key": _key(1),
                "ProjectionExpression": "#n0, #n1",
                "ExpressionAttributeNames": {"#n0": "name", "#n1": "PK"},
                "ConsistentRead": True,
                "ReturnConsumedCapacity": "TOTAL",
            },
            id="one-key",
        ),
        pytest.param(
            BatchGet((("USER#2", "A"), ("USER#1", "A"), ("USER#2", "A")), projection=(("name",), ("SK",))),
            "BatchGetItem",
            {
                "RequestItems": {
                    "Shop": {
                        "Keys": [_key(2), _key(1)],
                        "ProjectionExpression": "#n0, #n1, #n2",
                        "ExpressionAttributeNames": {"#n0": "name", "#n1": "SK", "#n2": "PK"},
                    }
                },
                "ReturnConsumedCapacity": "TOTAL",
            },
            id="several-keys",
        ),
        pytest.param(
            BatchGet((("USER#2", "A"), ("USER#1", "A")), consistent=True),
            "BatchGetItem",
            {
                "RequestItems": {"Shop": {"Keys": [_key(2), _key(1)], "ConsistentRead": True}},
                "ReturnConsumedCapacity": "TOTAL",
            },
            id="several-keys-whole",
        ),
        pytest.param(Scan(), "Scan", {"TableName": "Shop", "ReturnConsumedCapacity": "TOTAL"}, id="scan"),
        pytest.param(
            Scan(segment=0, segments=4, limit=7, start=("USER#1", "A"), consistent=True),
            "Scan",
            {
                "TableName": "Shop",
                "Segment": 0,
                "TotalSegments": 4,
                "Limit": 7,
                "ExclusiveStartKey": _key(1),
                "ConsistentRead": True,
                "ReturnConsumedCapacity": "TOTAL",
            },
            id="segment",
        ),
        pytest.param(
            BatchWrite(
                puts=(
                    {"PK": "USER#1", "SK": "A", "n": Decimal(1)},
                    {"PK": "USER#1", "SK": "A", "n": Decimal(2)},
                ),
                deletes=(("USER#2", "A"),),
            ),
            "BatchWriteItem",
            {
                "RequestItems": {
                    "Shop": [
                        {"PutRequest": {"Item": {**_key(1), "n": {"N": "2"}}}},
                        {"DeleteRequest": {"Key": _key(2)}},
                    ]
                },
                "ReturnConsumedCapacity": "TOTAL",
            },
            id="write",
        ),
        pytest.param(
            BatchWrite(puts=({"PK": "USER#1", "SK": "A"},), deletes=(("USER#1", "A"),)),
            "BatchWriteItem",
            {
                "RequestItems": {"Shop": [{"DeleteRequest": {"Key": _key(1)}}]},
                "ReturnConsumedCapacity": "TOTAL",
            },
            id="put-and-delete-of-one-key",
        ),
        pytest.param(ListTables(), "ListTables", {}, id="list"),
        pytest.param(DescribeTable(), "DescribeTable", {"TableName": "Shop"}, id="describe"),
        pytest.param(DeleteTable(), "DeleteTable", {"TableName": "Shop"}, id="delete"),
        pytest.param(
            DeleteIndex("ByDay"),
            "UpdateTable",
            {"TableName": "Shop", "GlobalSecondaryIndexUpdates": [{"Delete": {"IndexName": "ByDay"}}]},
            id="delete-index",
        ),
        pytest.param(
            EnableTimeToLive("until"),
            "UpdateTimeToLive",
            {"TableName": "Shop", "TimeToLiveSpecification": {"AttributeName": "until", "Enabled": True}},
            id="enable-time-to-live",
        ),
        pytest.param(
            CreateTable(),
            "CreateTable",
            {
                "TableName": "Shop",
                "AttributeDefinitions": [
                    {"AttributeName": "PK", "AttributeType": "S"},
                    {"AttributeName": "SK", "AttributeType": "S"},
                    {"AttributeName": "GSI1PK", "AttributeType": "S"},
                    {"AttributeName": "day", "AttributeType": "N"},
                    {"AttributeName": "state", "AttributeType": "S"},
                    {"AttributeName": "digest", "AttributeType": "B"},
                ],
                "KeySchema": [
                    {"AttributeName": "PK", "KeyType": "HASH"},
                    {"AttributeName": "SK", "KeyType": "RANGE"},
                ],
                "BillingMode": "PAY_PER_REQUEST",
                "GlobalSecondaryIndexes": [
                    {
                        "IndexName": "by-day",
                        "KeySchema": [
                            {"AttributeName": "GSI1PK", "KeyType": "HASH"},
                            {"AttributeName": "day", "KeyType": "RANGE"},
                        ],
                        "Projection": {"ProjectionType": "ALL"},
                    },
                    {
                        "IndexName": "by-state",
                        "KeySchema": [{"AttributeName": "state", "KeyType": "HASH"}],
                        "Projection": {"ProjectionType": "INCLUDE", "NonKeyAttributes": ["name"]},
                    },
                ],
                "LocalSecondaryIndexes": [
                    {
                        "IndexName": "by-digest",
                        "KeySchema": [
                            {"AttributeName": "PK", "KeyType": "HASH"},
                            {"AttributeName": "digest", "KeyType": "RANGE"},
                        ],
                        "Projection": {"ProjectionType": "KEYS_ONLY"},
                    }
                ],
            },
            id="create",
        ),
    ],
)
def test_one_call(request_: Request[Any], operation: str, body: dict[str, Any]) -> None:
    assert render(request_, shop) == (Wire(operation, body),)


def test_batches_are_as_large_as_dynamodb_takes() -> None:
    keys = tuple((f"USER#{n}", "A") for n in range(201))
    gets = render(BatchGet(keys + keys), shop)
    asked = [wire.body["RequestItems"]["Shop"]["Keys"] for wire in gets]
    assert [wire.operation for wire in gets] == ["BatchGetItem"] * 3
    assert [len(part) for part in asked] == [100, 100, 1]
    assert [key for part in asked for key in part] == [_key(n) for n in range(201)]

    writes = render(BatchWrite(puts=tuple({"PK": key[0], "SK": "A"} for key in keys[:51])), shop)
    assert [len(wire.body["RequestItems"]["Shop"]) for wire in writes] == [25, 25, 1]


def test_equal_numbers_are_one_key() -> None:
    days = Table("Days", partition_key=("day", "N"))
    [wire] = render(BatchGet(((Decimal("1.0"),), (Decimal(1),))), days)
    assert wire == Wire(
        "GetItem", {"TableName": "Days", "Key": {"day": {"N": "1"}}, "ReturnConsumedCapacity": "TOTAL"}
    )


@pytest.mark.parametrize(
    ("request_", "problem"),
    [
        (Query("A", index="by-day", consistent=True), "The global index by-day cannot be read consistently."),
        (Query("A", index="by-year"), "The table Shop has no index by-year."),
        (Query("A", index="by-state", range=Equals("x")), "by-state has no sort key, so it has no ranges."),
        (Query("A", index="by-day", range=Prefix("x")), "A number has no prefix."),
        (Query("A", index="by-day", range=Equals("x")), "The key day is of type N."),
        (Query("A", range=Within("b", "a")), "The upper bound of a range is below its lower bound."),
        (Query("A", range=Prefix("")), "The key SK is empty."),
        (Query(""), "The key PK is empty."),
        (Query(Decimal(1)), "The key PK is of type S."),
        (Query("x" * 2049), "The key PK has more than 2,048 bytes."),
        (Query("A", limit=0), "The limit of a page is at least 1."),
        (Query("A", start=("A",)), "A position here has one value for each of PK, SK."),
        (Query("A", filter=Not(Eq(("SK",), "x"))), "A filter cannot use SK, which is a key of Shop."),
        (Query("A", index="by-state", filter=Eq(("x",), "x")), "A filter cannot use x, which the index by-state does not project."),
        (Query("A", filter=Eq(("n",), Decimal("1" * 39))), "The filter compares with a number of more than 38 digits."),
        (Query("A", filter=Or(tuple(Eq(("n",), str(n)) for n in range(151)))), "The filter has too many conditions or values for one request to DynamoDB."),
        (Query("A", filter=Between(("n",), "b", "a")), "The upper bound of a range is below its lower bound."),
        (Query("A", index="by-state", projection=(("x",),)), "The global index by-state does not project x."),
        (BatchGet((("A", "x" * 1025),)), "The key SK has more than 1,024 bytes."),
        (BatchWrite(puts=({"PK": "A"},)), "The item lacks the key SK."),
        (BatchWrite(puts=({"PK": "A", "SK": "B", "state": Decimal(1)},)), "The key state is of type S."),
        (BatchWrite(puts=({"PK": "A", "SK": "B", "state": ""},)), "The key state is empty."),
        (BatchWrite(puts=({"PK": "A", "SK": "B", "x": "x" * 409_600},)), "The item is larger than 400 KB."),
        (BatchWrite(puts=({"PK": "A", "SK": "B", "x": "\ud800"},)), "The item holds text that is not valid Unicode."),
        (BatchWrite(puts=({"PK": "A", "SK": "B", "": "x"},)), "The item holds a value without a name."),
        (Scan(segment=1), "Segments are numbered from 0 to one less than their count, which is at most 1,000,000."),
        (BatchWrite(puts=({"PK": "A", "SK": "B", "s": frozenset()},)), "The item holds a set that is empty or of more than one type."),
    ],
)  # fmt: skip
def test_what_dynamodb_refuses_is_not_sent(request_: Request[Any], problem: str) -> None:
    with pytest.raises(BadUserInput) as refused:
        render(request_, shop)
    assert str(refused.value) == problem


def test_cloudformation() -> None:
    template = cloudformation(Table("Days", partition_key=("day", "N"), indexes=[Index("by-name", "name")]))
    assert json.loads(json.dumps(template)) == {
        "AWSTemplateFormatVersion": "2010-09-09",
        "Resources": {
            "Table": {
                "Type": "AWS::DynamoDB::Table",
                "DeletionPolicy": "Retain",
                "UpdateReplacePolicy": "Retain",
                "Properties": {
                    "TableName": "Days",
                    "AttributeDefinitions": [
                        {"AttributeName": "day", "AttributeType": "N"},
                        {"AttributeName": "name", "AttributeType": "S"},
                    ],
                    "KeySchema": [{"AttributeName": "day", "KeyType": "HASH"}],
                    "BillingMode": "PAY_PER_REQUEST",
                    "GlobalSecondaryIndexes": [
                        {
                            "IndexName": "by-name",
                            "KeySchema": [{"AttributeName": "name", "KeyType": "HASH"}],
                            "Projection": {"ProjectionType": "ALL"},
                        }
                    ],
                },
            }
        },
    }


_A, _B, _C = Eq(("a",), "x"), Lt(("b",), Decimal(2)), Exists(("c",))


@pytest.mark.parametrize(
    ("condition", "text"),
    [
        (Eq(("a",), None), "#n1 = :v1"),
        (Ne(("a",), True), "#n1 <> :v1"),
        (Lt(("a",), Decimal(1)), "#n1 < :v1"),
        (Le(("a",), "x"), "#n1 <= :v1"),
        (Gt(("a",), b"x"), "#n1 > :v1"),
        (Ge(("a",), "x"), "#n1 >= :v1"),
        (Between(("a",), "x", "y"), "#n1 BETWEEN :v1 AND :v2"),
        (In(("a",), ("x", Decimal(1))), "#n1 IN (:v1, :v2)"),
        (BeginsWith(("a",), "x"), "begins_with(#n1, :v1)"),
        (Contains(("a",), "x"), "contains(#n1, :v1)"),
        (Exists(("a", "b.c", "a")), "attribute_exists(#n1.#n2.#n1)"),
        (Not(_C), "NOT attribute_exists(#n1)"),
        (And((_A, _B)), "#n1 = :v1 AND #n2 < :v2"),
        (And((_A, And((_B, _C)))), "#n1 = :v1 AND #n2 < :v2 AND attribute_exists(#n3)"),
        (And((_A, Or((_B, _C)))), "#n1 = :v1 AND (#n2 < :v2 OR attribute_exists(#n3))"),
        (Or((And((_A, _B)), Not(Or((_A, _C))))), "(#n1 = :v1 AND #n2 < :v2) OR (NOT (#n1 = :v3 OR attribute_exists(#n3)))"),
        (And((_A,)), "#n1 = :v1"),
        (Or((And(()), _A)), None),
        (And((And(()), Not(Or(())))), None),
        (Or((In(("b",), ()), _A)), "#n1 = :v1"),
    ],
)  # fmt: skip
def test_every_condition(condition: Condition, text: str | None) -> None:
    [wire] = render(Query("USER#1", filter=condition), shop)
    assert wire.body.get("FilterExpression") == text


@pytest.mark.parametrize("never", [Or(()), In(("a",), ()), And((_A, Or(()))), Not(And(()))])
def test_nothing_is_sent_for_what_can_find_nothing(never: Condition) -> None:
    assert render(Query("USER#1", filter=never), shop) == ()
    assert render(Count("USER#1", filter=never), shop) == ()
    assert render(BatchGet(()), shop) == ()
    assert render(BatchWrite(), shop) == ()


def test_a_long_in_is_several() -> None:
    [wire] = render(Query("USER#1", filter=And((_A, In(("b",), tuple(map(Decimal, range(250))))))), shop)
    joined = wire.body["FilterExpression"].removeprefix("#n1 = :v1 AND (").removesuffix(")")
    parts = [part.removeprefix("#n2 IN (").removesuffix(")").split(", ") for part in joined.split(" OR ")]
    assert [len(part) for part in parts] == [100, 100, 50]
    values = wire.body["ExpressionAttributeValues"]
    assert [values[name] for part in parts for name in part] == [{"N": str(n)} for n in range(250)]


@pytest.mark.parametrize(
    ("projection", "text", "names"),
    [
        ((("a",), ("a", "b"), ("a",), ("c", "b")), "#n1, #n2.#n3", ["PK", "a", "c", "b"]),
        ((("a", "b"), ("a", "c"), ("a", "b", "c")), "#n1.#n2, #n1.#n3", ["PK", "a", "b", "c"]),
        ((), "#n0", ["PK"]),
    ],
)
def test_a_projection_names_nothing_twice(projection: Any, text: str, names: list[str]) -> None:
    [wire] = render(Query("USER#1", projection=projection), shop)
    assert wire.body["ProjectionExpression"] == text
    assert list(wire.body["ExpressionAttributeNames"].values()) == names


def test_a_filter_on_an_index_may_look_at_the_tables_keys() -> None:
    [wire] = render(Query("A", index="by-day", filter=BeginsWith(("SK",), "ORDER#")), shop)
    assert wire.body["FilterExpression"] == "begins_with(#n1, :v1)"
