"""Requests as text: what is sent is what `render` says, however many others of the shape went before."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

import orjson
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from keygraph.dynamo.conditions import Eq, Gt, In
from keygraph.dynamo.store import BatchGet, Count, Equals, Prefix, Query, Within
from keygraph.dynamo.table import Index, Table
from keygraph.engines.dynamodb import request_texts
from keygraph.engines.dynamodb.request_texts import RequestTexts, Text, encoded
from keygraph.engines.dynamodb.requests import render
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


def sent(texts: RequestTexts, request: Query | Count | BatchGet) -> object:
    """The calls of the request, or why there are none."""
    try:
        return [(text.operation, text.body) for text in texts.calls(request)]
    except BadUserInput as refused:
        return str(refused)


def rendered(table: Table, request: Query | Count | BatchGet) -> object:
    """The same by `render`."""
    try:
        return [(wire.operation, orjson.loads(encoded(wire.body))) for wire in render(request, table)]
    except BadUserInput as refused:
        return str(refused)


@settings(max_examples=150, deadline=None)
@given(data=st.data())
def test_a_text_says_what_the_rendered_request_says(data: st.DataObject) -> None:
    """A list would be read with another list's filter, attributes or range, or a bad key be sent."""
    table = data.draw(tables())
    texts = RequestTexts(table)
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
                assert sent(texts, request) == rendered(table, request)
        key = st.tuples(*(keys for _ in table.keys)) | st.just(("A",))
        batch = BatchGet(tuple(data.draw(st.lists(key, max_size=3))), query.projection, query.consistent)
        assert sent(texts, batch) == rendered(table, batch)


table = Table("Shop", partition_key="PK", sort_key="SK", indexes=[Index("by-day", "GSI1PK", ("day", "N"))])


def test_filters_that_are_equal_to_python_alone() -> None:
    """Who asks for what is true would be given what is 1."""
    texts = RequestTexts(table)
    for value in (True, Decimal(1), True):
        [text] = texts.calls(Query("A", filter=Eq(("gift",), value)))
        expected = {"BOOL": True} if value is True else {"N": "1"}
        assert text.body["ExpressionAttributeValues"] == {":v0": {"S": "A"}, ":v1": expected}


def test_a_filter_that_can_find_nothing_sends_nothing() -> None:
    """A request would be paid for whose answer is known."""
    texts = RequestTexts(table)
    assert texts.calls(Query("A", filter=In(("x",), ()))) == ()
    assert texts.calls(Query("A", filter=In(("x",), ("y",)))) != ()


def test_shapes_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    """A client that asks for other things each time would fill the memory."""
    monkeypatch.setattr(request_texts, "_SHAPES", 5)
    texts = RequestTexts(table)
    for number in range(20):
        query = Query("A", filter=Gt(("n",), Decimal(number)))
        batch = BatchGet((("A", "B"),), projection=((f"a{number}",),))
        for request in (query, batch):
            assert sent(texts, request) == rendered(table, request)
        assert len(texts._queries) <= 5
        assert len(texts._batches) <= 5


def test_what_is_sent_to_the_letter() -> None:
    """DynamoDB would refuse what is no JSON, which only this shows where all else reads it back."""
    texts = RequestTexts(table)
    for partition in ("A", "Zoë 🦊"):
        [text] = texts.calls(Query(partition, range=Equals("x"), limit=7))
        assert text == Text(
            "Query",
            b'{"TableName":"Shop","KeyConditionExpression":"#n0 = :v0 AND #n1 = :v1",'
            b'"ExpressionAttributeNames":{"#n0":"PK","#n1":"SK"},"ReturnConsumedCapacity":"TOTAL",'
            b'"ExpressionAttributeValues":{":v0":{"S":"%b"},":v1":{"S":"x"}},"Limit":7}' % partition.encode(),
        )
    [text] = texts.calls(BatchGet((("A", "B"), ("C", "D")), consistent=True))
    assert text.content == (
        b'{"ReturnConsumedCapacity":"TOTAL","RequestItems":{"Shop":{"ConsistentRead":true,"Keys":'
        b'[{"PK":{"S":"A"},"SK":{"S":"B"}},{"PK":{"S":"C"},"SK":{"S":"D"}}]}}}'
    )
