"""Ranges, conditions and projections as the text and the values that DynamoDB is given."""

from __future__ import annotations

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
    Above,
    AtLeast,
    AtMost,
    BatchGet,
    BatchWrite,
    Below,
    Count,
    Equals,
    Prefix,
    Query,
    Range,
    Within,
)
from keygraph.engines.dynamodb.requests import render
from tests.keygraph.rendered import shop


@pytest.mark.parametrize(
    ("range_", "text", "values"),
    [
        (Equals("a"), "#n1 = :v1", ["a"]),
        (Prefix("ORDER#"), "begins_with(#n1, :v1)", ["ORDER#"]),
        (Within("a", "b"), "#n1 BETWEEN :v1 AND :v2", ["a", "b"]),
        (AtLeast("a"), "#n1 >= :v1", ["a"]),
        (AtMost("a"), "#n1 <= :v1", ["a"]),
        (Above("a"), "#n1 > :v1", ["a"]),
        (Below("a"), "#n1 < :v1", ["a"]),
    ],
)
def test_every_range(range_: Range, text: str, values: list[str]) -> None:
    """A list would begin or end at the wrong item."""
    [wire] = render(Query("USER#1", range=range_), shop)
    assert wire.body["KeyConditionExpression"] == f"#n0 = :v0 AND {text}"
    assert wire.body["ExpressionAttributeNames"] == {"#n0": "PK", "#n1": "SK"}
    assert [each["S"] for each in wire.body["ExpressionAttributeValues"].values()] == ["USER#1", *values]


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
    """A `where` would find the wrong items, or be refused for a spare parenthesis or an empty list."""
    [wire] = render(Query("USER#1", filter=condition), shop)
    assert wire.body.get("FilterExpression") == text


@pytest.mark.parametrize("never", [Or(()), In(("a",), ()), And((_A, Or(()))), Not(And(()))])
def test_nothing_is_sent_for_what_can_find_nothing(never: Condition) -> None:
    """An empty `in: []` would be an error, or would read a whole partition to find nothing."""
    assert render(Query("USER#1", filter=never), shop) == ()
    assert render(Count("USER#1", filter=never), shop) == ()
    assert render(BatchGet(()), shop) == ()
    assert render(BatchWrite(), shop) == ()


def test_a_long_in_is_several() -> None:
    """A `where` with more than 100 values would be refused by DynamoDB."""
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
    """A selection of a map and of a part of it would be refused: "Two document paths overlap"."""
    [wire] = render(Query("USER#1", projection=projection), shop)
    assert wire.body["ProjectionExpression"] == text
    assert list(wire.body["ExpressionAttributeNames"].values()) == names


def test_a_filter_on_an_index_may_look_at_the_tables_keys() -> None:
    """Siblings in an index could not be left out by their table key."""
    [wire] = render(Query("A", index="by-day", filter=BeginsWith(("SK",), "ORDER#")), shop)
    assert wire.body["FilterExpression"] == "begins_with(#n1, :v1)"
