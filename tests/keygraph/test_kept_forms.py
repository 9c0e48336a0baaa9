"""Forms of reads that are kept: a request is rendered as if it were the first, however many others went before."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

import orjson
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from keygraph.dynamo.actions import CheckItem, PutItem
from keygraph.dynamo.conditions import And, Eq, Gt, In
from keygraph.dynamo.store import BatchGet, Count, Equals, Prefix, Query, Transaction, Within
from keygraph.dynamo.table import Index, Table
from keygraph.engines.dynamodb import requests
from keygraph.engines.dynamodb.direct import encoded
from keygraph.engines.dynamodb.requests import Renderer
from keygraph.errors import BadUserInput
from tests.keygraph.made_requests import TEXTS, queries, tables

BROKEN: list[Any] = [
    "",
    "\ud800",
    "é" * 1025,
    "x" * 1025,
    "x" * 2049,
    Decimal(1),
    Decimal("1" * 39),
    b"",
    b"x",
    None,
]
"""Keys that one key or another cannot have."""


def sent(renderer: Renderer, request: Query | Count | BatchGet) -> object:
    try:
        return [(wire.operation, orjson.loads(encoded(wire.body))) for wire in renderer.render(request)]
    except BadUserInput as refused:
        return str(refused)


def rendered(table: Table, request: Query | Count | BatchGet) -> object:
    """The same by a renderer that has kept nothing."""
    return sent(Renderer(table), request)


@pytest.mark.long
@settings(max_examples=150, deadline=None)
@given(data=st.data())
def test_a_kept_form_says_what_a_new_one_says(data: st.DataObject) -> None:
    table = data.draw(tables())
    renderer = Renderer(table)
    for query in data.draw(st.lists(queries(table, exact=True), min_size=1, max_size=4)):
        keys = st.sampled_from([query.partition, *TEXTS, *BROKEN])
        for _ in range(3):
            count = Count(data.draw(keys), query.index, query.range, query.filter, query.limit, query.start)
            again = Query(
                data.draw(keys),
                query.index,
                data.draw(
                    st.sampled_from([query.range, None])
                    | st.builds(Prefix, keys)
                    | st.builds(Within, keys, keys)
                ),
                query.filter,
                query.projection,
                query.forward,
                data.draw(st.none() | st.integers(0, 3)),
                data.draw(st.sampled_from([query.start, None, (), ("A",)])),
                query.consistent,
            )
            for request in (query, count, again):
                assert sent(renderer, request) == rendered(table, request)
        key = st.tuples(*(keys for _ in table.keys)) | st.just(("A",))
        batch = BatchGet(tuple(data.draw(st.lists(key, max_size=3))), query.projection, query.consistent)
        assert sent(renderer, batch) == rendered(table, batch)


table = Table("Shop", partition_key="PK", sort_key="SK", indexes=[Index("by-day", "GSI1PK", ("day", "N"))])


def test_filters_that_are_equal_to_python_alone() -> None:
    renderer = Renderer(table)
    for value in (True, Decimal(1), True):
        [wire] = renderer.render(Query("A", filter=Eq(("gift",), value)))
        expected = {"BOOL": True} if value is True else {"N": "1"}
        assert wire.body["ExpressionAttributeValues"] == {":v0": {"S": "A"}, ":v1": expected}


def test_conditions_that_are_equal_to_python_alone() -> None:
    gift, one = Eq(("gift",), True), Eq(("gift",), Decimal(1))
    actions = [CheckItem(("A", str(number)), each) for number, each in enumerate((gift, one, gift))]
    actions.append(CheckItem(("A", "3"), And(())))
    put = PutItem({"PK": "A", "SK": "4"}, And(()))
    for _ in range(2):
        [wire] = Renderer(table).render(Transaction((*actions, put), "token"))
        *checks, last = wire.body["TransactItems"]
        values = [each["ConditionCheck"].get("ExpressionAttributeValues") for each in checks]
        assert values == [{":v0": {"BOOL": True}}, {":v0": {"N": "1"}}, {":v0": {"BOOL": True}}, None]
        texts = [each["ConditionCheck"]["ConditionExpression"] for each in checks]
        assert texts == [*["#n0 = :v0"] * 3, "attribute_exists(#n0) OR (NOT attribute_exists(#n0))"]
        assert "ConditionExpression" not in last["Put"]


def test_a_filter_that_can_find_nothing_sends_nothing() -> None:
    renderer = Renderer(table)
    assert renderer.render(Query("A", filter=In(("x",), ()))) == ()
    assert renderer.render(Query("A", filter=In(("x",), ("y",)))) != ()


def test_forms_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(requests, "_FORMS", 5)
    renderer = Renderer(table)
    for number in range(20):
        query = Query("A", filter=Gt(("n",), Decimal(number)), projection=((f"a{number}",),))
        batch = BatchGet((("A", "B"),), projection=((f"a{number}",),))
        for request in (query, batch):
            assert sent(renderer, request) == rendered(table, request)
        assert len(renderer._queries) <= 5
        assert len(renderer._projections) <= 5


def test_what_is_sent_to_the_letter() -> None:
    renderer = Renderer(table)
    for partition in ("A", "Zoë 🦊"):
        [wire] = renderer.render(Query(partition, range=Equals("x"), limit=7))
        assert wire.operation == "Query"
        assert encoded(wire.body) == (
            b'{"TableName":"Shop","KeyConditionExpression":"#n0 = :v0 AND #n1 = :v1",'
            b'"ExpressionAttributeNames":{"#n0":"PK","#n1":"SK"},"ExpressionAttributeValues":'
            b'{":v0":{"S":"%b"},":v1":{"S":"x"}},"ReturnConsumedCapacity":"TOTAL","Limit":7}'
            % partition.encode()
        )
    [wire] = renderer.render(BatchGet((("A", "B"), ("C", "D")), consistent=True))
    assert encoded(wire.body) == (
        b'{"RequestItems":{"Shop":{"Keys":[{"PK":{"S":"A"},"SK":{"S":"B"}},{"PK":{"S":"C"},"SK":{"S":"D"}}],'
        b'"ConsistentRead":true}},"ReturnConsumedCapacity":"TOTAL"}'
    )
