"""Items as lines of JSON."""

from __future__ import annotations

import json
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from keygraph import ID, JSON, Graph, Table, node, stored
from keygraph.dynamo.items import Item, Value, number, typed_item
from keygraph.tables.interchange import Interchange
from keygraph_examples.commerce import graph as commerce

DIGITS = Decimal(12345678901234567890123456789012345678)


@dataclass
class Photo:
    image: bytes
    labels: set[str] | None


@node("DOC#{doc_id}")
class Document:
    doc_id: ID
    title: str | None
    tags: set[str] | None
    sizes: set[int] | None
    blobs: set[bytes] | None
    image: bytes | None
    photos: list[Photo] | None
    thumb: bytes | None = stored("data", "thumb")
    words: set[str] | None = stored("data", "words")
    other: JSON | None = stored("other")


graph = Graph(Table("Documents", partition_key="PK", sort_key="SK"), Document, type_attribute="Type").check()
interchange = Interchange(graph)
shop = Interchange(commerce)


def document(**attributes: Value) -> Item:
    return {"PK": "DOC#1", "SK": "DOC#1", "Type": "Document", **attributes}


def line(**attributes: Any) -> str:
    return json.dumps({"PK": "DOC#1", "SK": "DOC#1", "Type": "Document", **attributes})


def is_same(one: Item, other: Item) -> bool:
    """Equal in every type too: Python says that True is 1."""
    return typed_item(one) == typed_item(other)


# --- Laws ---------------------------------------------------------------------------------------------

texts = st.text(max_size=8)
numbers = st.builds(
    lambda digits, exponent: number(Decimal(digits).scaleb(exponent)),
    st.integers(-(10**38) + 1, 10**38 - 1),
    st.integers(-80, 80),
)
blobs = st.binary(max_size=8)
sets = st.one_of(*(st.frozensets(members, min_size=1, max_size=4) for members in (texts, numbers, blobs)))
values: st.SearchStrategy[Any] = st.recursive(
    st.one_of(st.none(), st.booleans(), texts, numbers, blobs, sets),
    lambda inner: st.one_of(
        st.lists(inner, max_size=3),
        st.dictionaries(
            st.one_of(texts, st.sampled_from(["image", "labels", "thumb", "words"])), inner, max_size=3
        ),
    ),
    max_leaves=6,
)
names = st.one_of(
    st.sampled_from(["title", "tags", "sizes", "blobs", "image", "photos", "data", "other"]),
    texts.filter(bool),
)
photos = st.fixed_dictionaries(
    {"image": blobs}, optional={"labels": st.frozensets(texts, min_size=1, max_size=3)}
)
declared = st.fixed_dictionaries(
    {"PK": st.just("DOC#1"), "SK": st.just("DOC#1"), "Type": st.just("Document")},
    optional={
        "title": st.one_of(texts, st.none()),
        "tags": st.frozensets(texts, min_size=1, max_size=4),
        "sizes": st.frozensets(numbers, min_size=1, max_size=4),
        "blobs": st.frozensets(blobs, min_size=1, max_size=4),
        "image": blobs,
        "photos": st.lists(photos, max_size=3),
        "data": st.fixed_dictionaries(
            {"thumb": blobs, "words": st.frozensets(texts, min_size=1, max_size=3)}
        ),
        "other": st.one_of(numbers, texts, st.lists(numbers, max_size=3), st.none(), st.booleans()),
    },
)


@st.composite
def any_items(draw: st.DrawFn) -> Item:
    """Items of the declared type and of none, with any value anywhere but in the keys."""
    item: Item = draw(st.dictionaries(names, values, max_size=5))
    key = draw(st.sampled_from(["DOC#1", "X"]))
    item |= {"PK": key, "SK": key}
    if draw(st.booleans()):
        item["Type"] = "Document"
    return item


@given(any_items())
@pytest.mark.long
def test_typed_lines_say_every_item(item: Item) -> None:
    written = interchange.write(item, "typed")
    assert is_same(interchange.read(written), item)
    assert is_same(interchange.read(written, "typed"), item)
    assert b"\n" not in written


@given(any_items())
@pytest.mark.long
def test_plain_lines_say_an_item_or_refuse_it(item: Item) -> None:
    written, refusal = None, ""
    try:
        written = interchange.write(item)
    except ValueError as error:
        refusal = str(error)
    if written is None:
        assert "which the model does not declare" in refusal
    else:
        assert is_same(interchange.read(written), item)
        assert is_same(interchange.read(written, "plain"), item)
        assert b"\n" not in written


@given(declared)
def test_plain_lines_say_what_the_model_declares(item: Item) -> None:
    assert is_same(interchange.read(interchange.write(item)), item)


# --- Reading ------------------------------------------------------------------------------------------


def test_numbers_keep_every_digit() -> None:
    read = shop.read('{"PK": "PRODUCT#1", "SK": "PRODUCT#1", "Type": "Product", "price": 199.99}')
    assert read["price"] == Decimal("199.99")
    assert interchange.read(line(title="x")[:-1] + f', "n": {DIGITS}}}')["n"] == DIGITS
    assert b'"price": 199.99' in shop.write(read)
    assert str(DIGITS).encode() in interchange.write(document(n=DIGITS))


def test_lists_and_texts_become_what_the_model_says() -> None:
    read = interchange.read(
        line(
            tags=["b", "a"],
            sizes=[1, 2.5],
            blobs=["AQI="],
            image="AP8=",
            photos=[{"image": "aGk=", "labels": ["x"], "more": ["x"]}],
            data={"thumb": "aGk=", "words": ["w"], "rest": "aGk="},
            other=["a", {"image": "aGk="}],
        )
    )
    assert read == document(
        tags=frozenset({"a", "b"}),
        sizes=frozenset({Decimal(1), Decimal("2.5")}),
        blobs=frozenset({b"\x01\x02"}),
        image=b"\x00\xff",
        photos=[{"image": b"hi", "labels": frozenset({"x"}), "more": ["x"]}],
        data={"thumb": b"hi", "words": frozenset({"w"}), "rest": "aGk="},
        other=["a", {"image": "aGk="}],
    )


@pytest.mark.parametrize("wrap", [True, False])
def test_dynamodbs_typed_form_is_recognised(wrap: bool) -> None:
    typed = {
        "PK": {"S": "DOC#1"},
        "SK": {"S": "DOC#1"},
        "n": {"N": "199.99"},
        "undeclared": {"SS": ["a", "b"]},
        "map": {"M": {"b": {"B": "AQI="}, "l": {"L": [{"NULL": True}, {"BOOL": False}]}}},
    }
    assert interchange.read(json.dumps({"Item": typed} if wrap else typed)) == {
        "PK": "DOC#1",
        "SK": "DOC#1",
        "n": Decimal("199.99"),
        "undeclared": frozenset({"a", "b"}),
        "map": {"b": b"\x01\x02", "l": [None, False]},
    }


def test_an_attribute_called_item_is_no_export() -> None:
    assert interchange.read(line(Item={"a": "b"}))["Item"] == {"a": "b"}


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("", "it is not JSON: Expecting value at column 1"),
        ('{"PK": }', "it is not JSON: Expecting value at column 8"),
        ("[1]", "it is not a JSON object: each line must hold one item"),
        (b"\xff{}", "it is not valid Unicode"),
        (line(title="\ud800"), "it is not valid Unicode"),
        ('{"PK": NaN}', "NaN is not a number"),
        ('{"n": 1' + "0" * 38 + "1}", "a number of more than 38 digits"),
        ('{"a": 1, "b": 2, "a": 3}', "it has a twice"),
        ("[" * 100_000, "it is nested too deeply"),
        (line(image="not base64!"), "image is bytes, but is not valid base64"),
        (line(data={"thumb": "="}), "data.thumb is bytes, but is not valid base64"),
        (line(tags=["a", "a"]), "tags is a set with a repeated member"),
        (line(tags=["a", 1]), "tags is a set: its members must be all strings, all numbers or all bytes"),
        (line(tags=[{}]), "tags is a set: its members must be all strings, all numbers or all bytes"),
        (
            '{"PK": {"S": "a"}, "b": {"BOOL": "false"}}',
            'b is not a value in DynamoDB\'s typed form, such as {"S": "text"}',
        ),
        (
            '{"PK": {"S": "a"}, "b": {"M": {"c": {"X": 1}}}}',
            'b.c is not a value in DynamoDB\'s typed form, such as {"S": "text"}',
        ),
        ('{"PK": {"S": "a"}, "b": {"N": "x"}}', "b is not a number"),
        (
            '{"PK": {"S": "a"}, "b": {"SS": []}}',
            "b is a set: its members must be all strings, all numbers or all bytes",
        ),
        ('{"PK": {"S": "a"}, "b": {"NS": ["1", "1.0"]}}', "b is a set with a repeated member"),
    ],
)
def test_what_is_no_item_says_why(text: str | bytes, reason: str) -> None:
    with pytest.raises(ValueError) as refused:  # noqa: PT011  # the whole message is compared
        interchange.read(text)
    assert str(refused.value) == reason


def test_a_format_can_be_insisted_on() -> None:
    with pytest.raises(ValueError, match="it is not an item in DynamoDB's typed form"):
        interchange.read(line(), "typed")


# --- Writing ------------------------------------------------------------------------------------------


def test_lines_have_one_order() -> None:
    item = document(b=Decimal(1), a={"z": None, "y": True}, tags=frozenset({"b", "a"}))
    shuffled = dict(reversed(item.items())) | {"a": {"y": True, "z": None}}
    assert interchange.write(item).decode() == (
        '{"PK": "DOC#1", "SK": "DOC#1", "Type": "Document", '
        '"a": {"y": true, "z": null}, "b": 1, "tags": ["a", "b"]}'
    )
    assert interchange.write(shuffled) == interchange.write(item)
    assert interchange.write(shuffled, "typed") == interchange.write(item, "typed")


def test_typed_lines_are_those_of_an_export() -> None:
    item = document(image=b"hi", tags=frozenset({"b", "a"}), n=Decimal("1.50"))
    assert json.loads(interchange.write(item, "typed")) == {
        "Item": {
            "PK": {"S": "DOC#1"},
            "SK": {"S": "DOC#1"},
            "Type": {"S": "Document"},
            "image": {"B": "aGk="},
            "n": {"N": "1.5"},
            "tags": {"SS": ["a", "b"]},
        }
    }


@pytest.mark.parametrize(
    ("attributes", "reason"),
    [
        ({"other": frozenset({"a"})}, "other is a set, which the model does not declare"),
        ({"x": {"y": [b"hi"]}}, "x.y is bytes, which the model does not declare"),
        ({"tags": ["a"]}, "tags is a list, which the model does not declare"),
        ({"image": "aGk="}, "image is text, which the model does not declare"),
        ({"blobs": frozenset({"a"})}, "blobs is text, which the model does not declare"),
        ({"tags": frozenset({b"a"})}, "tags is bytes, which the model does not declare"),
    ],
)
def test_what_a_plain_line_cannot_say_is_refused(attributes: Item, reason: str) -> None:
    with pytest.raises(ValueError, match=reason):
        interchange.write(document(**attributes))
