"""Items: what comes over the wire as values, quickly and exactly."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from keygraph.dynamo.items import Value, from_typed, number, untyped_item

plain = st.from_regex(r"-?[0-9]{1,25}(\.[0-9]{1,25})?", fullmatch=True)
odd = st.text("0123456789.-+eE_ \u0661\u00b2NaInfity", max_size=12)


def _read(text: str) -> str:
    try:
        return repr(number(text))
    except ValueError:
        return "refused"


@given(text=plain | odd | st.decimals(allow_nan=True, allow_infinity=True).map(str))
@example("0.0")
@example("-0")
@example("-00.10")
@example("100")
@example("1.")
@example(".5")
@example("\u0661")
@example("1E+2")
@example("")
@example("0" * 201)
@pytest.mark.long
def test_a_number_is_read_exactly(text: str) -> None:
    try:
        found = repr(from_typed({"N": text}))
    except ValueError:
        found = "refused"
    assert found == _read(text)


def test_an_item_of_every_type() -> None:
    typed = {
        "s": {"S": ""},
        "n": {"N": "1.50"},
        "b": {"B": "/w=="},
        "raw": {"B": b"\xff"},
        "bool": {"BOOL": False},
        "null": {"NULL": True},
        "m": {"M": {"S": {"S": "x"}}},
        "l": {"L": [{"N": "1"}, {"L": []}]},
        "ss": {"SS": ["a", "b"]},
        "ns": {"NS": ["1", "2.0"]},
        "bs": {"BS": ["/w==", b"x"]},
    }
    expected: dict[str, Value] = {
        "s": "",
        "n": Decimal("1.5"),
        "b": b"\xff",
        "raw": b"\xff",
        "bool": False,
        "null": None,
        "m": {"S": "x"},
        "l": [Decimal(1), []],
        "ss": frozenset({"a", "b"}),
        "ns": frozenset({Decimal(1), Decimal(2)}),
        "bs": frozenset({b"\xff", b"x"}),
    }
    assert untyped_item(typed) == expected


@pytest.mark.parametrize("levels", [31, 32])
def test_levels_that_an_item_has(levels: int) -> None:
    """The item itself is one of DynamoDB's 32."""
    typed: dict[str, Any] = {"S": "x"}
    for level in range(levels):
        typed = {"L": [typed]} if level % 2 else {"M": {"a": typed}}
    if levels == 31:
        assert isinstance(untyped_item({"a": typed})["a"], dict)
    else:
        with pytest.raises(ValueError, match="more than 32 levels"):
            untyped_item({"a": typed})


@pytest.mark.parametrize("typed", [{}, {"S": "a", "N": "1"}, {"X": "a"}])
def test_what_is_no_value(typed: dict[str, str]) -> None:
    with pytest.raises(ValueError, match="type"):
        untyped_item({"a": typed})
