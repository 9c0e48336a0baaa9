"""DynamoDB's limits, to the byte: what is just outside of one is taken by no engine.

What we refuse is never sent, so DynamoDB Local is asked here with requests written out by hand whether it would
refuse them too. A limit that we knew too narrow would refuse users what they may have; one too wide is an error that
only production shows.
"""

from __future__ import annotations

from decimal import Decimal
from typing import Any, cast

import pytest
from botocore.exceptions import ClientError, ParamValidationError

from keygraph.dynamo.conditions import And, BeginsWith, Between, Eq, Exists, Ge, Gt, In, Lt, Not
from keygraph.dynamo.store import (
    AtLeast,
    AtMost,
    BatchGet,
    BatchWrite,
    Count,
    Equals,
    Prefix,
    Query,
    Request,
    Scan,
    Store,
    Within,
)
from keygraph.errors import BadUserInput
from tests.conftest import LOCAL, MakeStore, in_one_world, on_exact_engines
from tests.keygraph.limits import (
    KB,
    KEY,
    TABLE,
    Body,
    any_of,
    client_of,
    nested,
    put,
    raw_nested,
    raw_put,
    raw_query,
    sized,
)

REFUSED: dict[str, tuple[Request[Any], Body]] = {
    "no key": (BatchWrite(puts=({"PK": "p"},)), {"Item": {"PK": {"S": "p"}}}),
    "an empty partition key": (
        BatchWrite(puts=({"PK": "", "SK": "s"},)),
        {"Item": {"PK": {"S": ""}, "SK": {"S": "s"}}},
    ),
    "a key of another type": (
        BatchWrite(puts=({"PK": "p", "SK": Decimal(1)},)),
        {"Item": {"PK": {"S": "p"}, "SK": {"N": "1"}}},
    ),
    "a partition key of 2,049 bytes": (
        BatchWrite(puts=({"PK": "x" * 2049, "SK": "s"},)),
        {"Item": {"PK": {"S": "x" * 2049}, "SK": {"S": "s"}}},
    ),
    "a sort key of 1,025 bytes": (
        BatchWrite(puts=({"PK": "p", "SK": "x" * 1025},)),
        {"Item": {"PK": {"S": "p"}, "SK": {"S": "x" * 1025}}},
    ),
    "an index key of another type": (put(kind=Decimal(1)), raw_put(kind={"N": "1"})),
    "an index sort key of another type, without its partition": (put(mark="1"), raw_put(mark={"S": "1"})),
    "an index key that is null": (put(kind=None), raw_put(kind={"NULL": True})),
    "an empty index key": (put(kind=""), raw_put(kind={"S": ""})),
    "an empty index sort key, without its partition": (put(town=""), raw_put(town={"S": ""})),
    "an index partition key of 2,049 bytes": (put(kind="x" * 2049), raw_put(kind={"S": "x" * 2049})),
    "an index sort key of 1,025 bytes": (put(town="x" * 1025), raw_put(town={"S": "x" * 1025})),
    "39 digits": (put(a=Decimal("1" * 39)), raw_put(a={"N": "1" * 39})),
    "a number of 1E+126": (put(a=Decimal("1E+126")), raw_put(a={"N": "1E+126"})),
    "a number of 1E-131": (put(a=Decimal("1E-131")), raw_put(a={"N": "1E-131"})),
    "no number": (put(a=Decimal("NaN")), raw_put(a={"N": "NaN"})),
    "an infinite number": (put(a=Decimal("Infinity")), raw_put(a={"N": "Infinity"})),
    "an empty set": (put(a=frozenset()), raw_put(a={"SS": []})),
    "32 lists and maps in one another": (put(a=nested(32)), raw_put(a=raw_nested(32))),
    "a value without a name": (put(**{"": "a"}), raw_put(**{"": {"S": "a"}})),
    "a value without a name in a map": (put(a={"": "a"}), raw_put(a={"M": {"": {"S": "a"}}})),
    "a name of 65,536 bytes": (put(**{"é" * 32768: "a"}), raw_put(**{"é" * 32768: {"S": "a"}})),
    "an item of 400 KB and a byte": (
        BatchWrite(puts=(sized(400 * KB + 1),)),
        raw_put(big={"S": "x" * (400 * KB + 1 - 9)}),
    ),
    "an item that has 400 KB and a byte with its entry in a local index": (
        # Of the entry the keys of the index count, and what it projects.
        BatchWrite(puts=(sized(400 * KB + 1 - (3 + 4 + 5), day="d", name="n"),)),
        raw_put(day={"S": "d"}, name={"S": "n"}, big={"S": "x" * (400 * KB + 1 - 12 - 18)}),
    ),
    "an empty partition": (Query(""), raw_query(p="")),
    "an empty prefix": (Query("p", range=Prefix("")), raw_query("PK = :p AND begins_with(SK, :s)", s="")),
    "an empty bound": (Query("p", range=AtLeast("")), raw_query("PK = :p AND SK >= :s", s="")),
    "a bound of 1,025 bytes": (
        Query("p", range=AtMost("x" * 1025)),
        raw_query("PK = :p AND SK <= :s", s="x" * 1025),
    ),
    "a bound of another type": (
        Query("p", range=Equals(Decimal(1))),
        raw_query("PK = :p AND SK = :s", s={"N": "1"}),
    ),
    "crossed bounds": (
        Query("p", range=Within("b", "a")),
        raw_query("PK = :p AND SK BETWEEN :s AND :e", s="b", e="a"),
    ),
    "a prefix of a number": (
        Query("p", index="by-kind", range=Prefix("1")),
        raw_query("kind = :p AND begins_with(mark, :s)", s={"N": "1"}, IndexName="by-kind"),
    ),
    "an index that there is not": (Query("p", index="none"), raw_query(IndexName="none")),
    "a consistent read of a global index": (
        Query("p", index="by-kind", consistent=True),
        raw_query("kind = :p", IndexName="by-kind", ConsistentRead=True),
    ),
    "a filter on a key of the table": (
        Query("p", filter=Exists(("SK",))),
        raw_query(filter_="attribute_exists(SK)"),
    ),
    "a filter on a key of an index": (
        Query("p", index="by-kind", filter=Not(Exists(("mark",)))),
        raw_query("kind = :p", "NOT attribute_exists(mark)", IndexName="by-kind"),
    ),
    "a filter on what a global index does not project": (
        Query("p", index="by-place", filter=Exists(("kind",))),
        raw_query("place = :p", "attribute_exists(kind)", IndexName="by-place"),
    ),
    "a filter on what a local index does not project": (
        Query("p", index="local", filter=Exists(("kind",))),
        raw_query(filter_="attribute_exists(kind)", IndexName="local"),
    ),
    "a count by what an index does not project": (
        Count("p", index="local", filter=Exists(("kind",))),
        raw_query(filter_="attribute_exists(kind)", IndexName="local", Select="COUNT"),
    ),
    "a projection of what a global index does not project": (
        Query("p", index="by-place", projection=(("kind",),)),
        raw_query("place = :p", IndexName="by-place", ProjectionExpression="kind"),
    ),
    "crossed bounds in a filter": (
        Query("p", filter=Between(("a",), "b", "a")),
        raw_query(filter_="a BETWEEN :s AND :e", s="b", e="a"),
    ),
    "bounds of two types in a filter": (
        Query("p", filter=Between(("a",), "b", Decimal(1))),
        raw_query(filter_="a BETWEEN :s AND :e", s="b", e={"N": "1"}),
    ),
    "a filter with a number of 39 digits": (
        Query("p", filter=Eq(("a",), Decimal("1" * 39))),
        raw_query(filter_="a = :s", s={"N": "1" * 39}),
    ),
    "a filter with 301 operators": (
        Query("p", filter=any_of(151)),
        raw_query(filter_=" OR ".join(["a = :p"] * 151)),
    ),
    "a filter with 301 operators, some of them NOT": (
        Query("p", filter=And((Not(Exists(("b",))), any_of(148), Not(BeginsWith(("c",), "p"))))),
        raw_query(
            filter_="NOT attribute_exists(b) AND ("
            + " OR ".join(["a = :p"] * 148)
            + ") AND NOT begins_with(c, :p)"
        ),
    ),
    "a filter of more than 4,096 bytes": (
        Query("p", filter=In(("a",), tuple(map(Decimal, range(600))))),
        raw_query(filter_=f"a = {' ' * 4091}:p"),
    ),
    "a start in another partition": (
        Query("p", start=("q", "s")),
        raw_query(ExclusiveStartKey={"PK": {"S": "q"}, "SK": {"S": "s"}}),
    ),
    "a start below the range": (
        Query("p", range=AtLeast("t"), start=("p", "s")),
        raw_query("PK = :p AND SK >= :s", s="t", ExclusiveStartKey=KEY),
    ),
    "a start above the range, backward": (
        Query("p", range=AtMost("r"), forward=False, start=("p", "s")),
        raw_query("PK = :p AND SK <= :s", s="r", ExclusiveStartKey=KEY, ScanIndexForward=False),
    ),
    "a start without a sort key": (
        Query("p", start=("p",)),
        raw_query(ExclusiveStartKey={"PK": {"S": "p"}}),
    ),
    "a start without the table's keys": (
        Query("p", index="by-kind", start=("p", Decimal(1))),
        raw_query(
            "kind = :p", IndexName="by-kind", ExclusiveStartKey={"kind": {"S": "p"}, "mark": {"N": "1"}}
        ),
    ),
    "a start in another partition of an index": (
        Query("p", index="by-kind", start=("q", Decimal(1), "p", "s")),
        raw_query(
            "kind = :p",
            IndexName="by-kind",
            ExclusiveStartKey={**KEY, "kind": {"S": "q"}, "mark": {"N": "1"}},
        ),
    ),
    "a start with more than the keys": (
        Query("p", start=("p", "s", "d")),
        raw_query(ExclusiveStartKey={**KEY, "day": {"S": "d"}}),
    ),
    "a start of another type": (
        Query("p", start=("p", Decimal(1))),
        raw_query(ExclusiveStartKey={"PK": {"S": "p"}, "SK": {"N": "1"}}),
    ),
    "an empty start": (
        Query("p", start=("p", "")),
        raw_query(ExclusiveStartKey={"PK": {"S": "p"}, "SK": {"S": ""}}),
    ),
    "a start of a scan without a sort key": (Scan(start=("p",)), {"ExclusiveStartKey": {"PK": {"S": "p"}}}),
    "a partition of another type": (Query(Decimal(1)), raw_query(p={"N": "1"})),
    "crossed bounds of numbers": (
        Query("p", index="by-kind", range=Within(Decimal(10), Decimal(2))),
        raw_query("kind = :p AND mark BETWEEN :s AND :e", s={"N": "10"}, e={"N": "2"}, IndexName="by-kind"),
    ),
    "a filter inside of a key": (
        Query("p", filter=Exists(("SK", "x"))),
        raw_query(filter_="attribute_exists(SK.x)"),
    ),
    "a filter with an empty set": (
        Query("p", filter=Eq(("a",), frozenset())),
        raw_query(filter_="a = :s", s={"SS": []}),
    ),
    "a filter with no number": (
        Query("p", filter=Eq(("a",), Decimal("NaN"))),
        raw_query(filter_="a = :s", s={"N": "NaN"}),
    ),
    "an order of truth values": (
        Query("p", filter=Lt(("a",), cast(Any, True))),
        raw_query(filter_="a < :s", s={"BOOL": True}),
    ),
    "an order of lists": (
        Query("p", filter=Ge(("a",), cast(Any, []))),
        raw_query(filter_="a >= :s", s={"L": []}),
    ),
    "an order of what is null": (
        Query("p", filter=Gt(("a",), cast(Any, None))),
        raw_query(filter_="a > :s", s={"NULL": True}),
    ),
    "bounds that are truth values": (
        Query("p", filter=Between(("a",), cast(Any, False), cast(Any, True))),
        raw_query(filter_="a BETWEEN :s AND :e", s={"BOOL": False}, e={"BOOL": True}),
    ),
    "a number as a prefix in a filter": (
        Query("p", filter=BeginsWith(("a",), cast(Any, Decimal(1)))),
        raw_query(filter_="begins_with(a, :s)", s={"N": "1"}),
    ),
    "a filter 33 levels deep": (
        Query("p", filter=Exists(("a",) * 33)),
        raw_query(filter_=f"attribute_exists({'.'.join('a' * 33)})"),
    ),
    "a projection 33 levels deep": (
        Query("p", projection=(("a",) * 33,)),
        raw_query(ProjectionExpression=".".join("a" * 33)),
    ),
    "no limit": (Query("p", limit=0), raw_query(Limit=0)),
    "no limit of a scan": (Scan(limit=0), {"Limit": 0}),
    "an empty key of a batch": (
        BatchGet((("p", ""),)),
        {"RequestItems": {"Limits": {"Keys": [{"PK": {"S": "p"}, "SK": {"S": ""}}]}}},
    ),
    "a key of a batch without its sort key": (
        BatchGet((("p",),)),
        {"RequestItems": {"Limits": {"Keys": [{"PK": {"S": "p"}}]}}},
    ),
    "a key of a batch of another type": (
        BatchGet((("p", Decimal(1)),)),
        {"RequestItems": {"Limits": {"Keys": [{"PK": {"S": "p"}, "SK": {"N": "1"}}]}}},
    ),
    "a key of a batch of 1,025 bytes": (
        BatchGet((("p", "x" * 1025),)),
        {"RequestItems": {"Limits": {"Keys": [{"PK": {"S": "p"}, "SK": {"S": "x" * 1025}}]}}},
    ),
    "1,000,001 segments": (Scan(segment=0, segments=1_000_001), {"Segment": 0, "TotalSegments": 1_000_001}),
    "a segment that there is not": (Scan(segment=2, segments=2), {"Segment": 2, "TotalSegments": 2}),
}


@pytest.fixture
async def limits(make_store: MakeStore) -> Store:
    return await make_store(TABLE)


@on_exact_engines
@in_one_world(("request_", "body"), REFUSED.values())
async def test_what_dynamodb_refuses_is_refused(limits: Store, request_: Request[Any], body: Body) -> None:
    with pytest.raises(BadUserInput):
        await limits.send(request_)
    assert (await limits.send(Scan())).items == []


_OPERATIONS = {BatchWrite: "put_item", BatchGet: "batch_get_item", Scan: "scan"}
RAW = {name: (_OPERATIONS.get(type(request_), "query"), body) for name, (request_, body) in REFUSED.items()}
"""The operation and its body."""


async def why_refused(client: Any, operation: str, body: Body) -> str | None:
    """What DynamoDB's client or server has against the request; None where it is taken."""
    table = {} if "RequestItems" in body else {"TableName": "Limits"}
    try:
        await getattr(client, operation)(**table, **body)
    except (ClientError, ParamValidationError) as error:
        return str(error)
    return None


@pytest.mark.parametrize("engine", [LOCAL])
@pytest.mark.parametrize(("operation", "body"), RAW.values(), ids=RAW)
async def test_what_is_refused_is_refused_by_dynamodb(
    make_store: MakeStore, local_endpoint: str, operation: str, body: Body
) -> None:
    await make_store(TABLE)
    async with client_of(local_endpoint) as client:
        why = await why_refused(client, operation, body)
    assert why is not None
    assert "ValidationException" in why or "Parameter validation failed" in why
    # Not for the way in which it is written here.
    assert "reserved keyword" not in why
