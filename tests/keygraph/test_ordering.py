"""The bytes of keys: their order is the keys' order, and they come back."""

from __future__ import annotations

from decimal import Decimal
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from keygraph.dynamo.items import number
from keygraph.dynamo.order import after_prefix, key_bytes, key_reader, number_bytes, number_of
from keygraph.dynamo.table import KeyAttribute

ASCENDING = [
    "-9.9999999999999999999999999999999999999E+125",
    "-1E+125",
    "-100",
    "-12.01",
    "-12",
    "-1.2",
    "-1",
    "-0.5",
    "-1E-130",
    "0",
    "1E-130",
    "1.1E-130",
    "0.05",
    "0.5",
    "1",
    "1.2",
    "1.2000000000000000000000000000000000001",
    "9",
    "10",
    "12",
    "12.01",
    "99",
    "100",
    "199.99",
    "1E+125",
    "9.9999999999999999999999999999999999999E+125",
]

numbers = st.builds(
    lambda digits, exponent: number(Decimal(f"{digits}E{exponent}")),
    st.integers(min_value=-(10**38) + 1, max_value=10**38 - 1),
    st.integers(min_value=-130, max_value=125 - 37),
)
"""Numbers of up to 38 digits in all of DynamoDB's range."""


def test_numbers_stand_in_their_order() -> None:
    rendered = [number_bytes(Decimal(text)) for text in ASCENDING]
    assert all(one < other for one, other in pairwise(rendered))


@pytest.mark.parametrize("text", ASCENDING)
def test_a_number_comes_back(text: str) -> None:
    assert number_of(number_bytes(Decimal(text))) == Decimal(text)


@given(numbers, numbers)
def test_order_of_bytes_is_order_of_numbers(one: Decimal, other: Decimal) -> None:
    assert (number_bytes(one) < number_bytes(other)) == (one < other)
    assert (number_bytes(one) == number_bytes(other)) == (one == other)


@given(numbers)
def test_every_number_comes_back_whole(value: Decimal) -> None:
    stored = number_bytes(value)
    assert number_of(stored).as_tuple() == value.as_tuple()
    assert len(stored) <= 22


@given(numbers, st.integers(min_value=1, max_value=5))
def test_trailing_zeros_make_no_other_key(value: Decimal, zeros: int) -> None:
    sign, digits, exponent = value.as_tuple()
    padded = Decimal((sign, digits + (0,) * zeros, int(exponent) - zeros))
    assert number_bytes(padded) == number_bytes(value)


@pytest.mark.parametrize("text", ["1E+126", "1E-131", "NaN", "Infinity", "1" * 39])
def test_what_dynamodb_does_not_hold_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="number"):
        number_bytes(Decimal(text))


@given(st.text(), st.text())
def test_order_of_texts_is_that_of_utf8(one: str, other: str) -> None:
    assert (key_bytes(one) < key_bytes(other)) == (one.encode() < other.encode())
    assert key_reader(KeyAttribute("K"))(key_bytes(one)) == one


def test_binary_is_itself() -> None:
    assert key_bytes(b"\x00\xff") == b"\x00\xff"
    assert key_reader(KeyAttribute("K", "B"))(b"\x00\xff") == b"\x00\xff"


@given(st.binary(max_size=3), st.binary(max_size=4))
def test_a_prefix_ends_where_others_begin(prefix: bytes, value: bytes) -> None:
    end = after_prefix(prefix)
    is_within = value >= prefix and (end is None or value < end)
    assert is_within == value.startswith(prefix)
