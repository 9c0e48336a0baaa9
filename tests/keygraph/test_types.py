"""The types of fields: what an annotation means, and its values in attributes and back."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta, timezone
from decimal import Decimal
from enum import Enum, IntEnum
from typing import Annotated, Any, Literal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from keygraph import stored, version
from keygraph.dynamo.items import Item
from keygraph.keys.types import (
    ID,
    JSON,
    AttributeStyle,
    FieldType,
    Long,
    Moment,
    UnknownType,
    decode,
    encode,
    field_type,
    is_optional,
    moment_text,
    plain,
)


class Colour(Enum):
    RED = "red"
    BLUE = "blue"


class Level(IntEnum):
    LOW = 1
    HIGH = 2


class Shade(Enum):
    HALF = 0.5


@dataclass(kw_only=True)
class Address:
    street_name: str
    house_number: int | None
    country: str = "NL"


@dataclass(kw_only=True)
class Person:
    home: Address
    others: list[Address]


@dataclass
class Comment:
    text: str
    replies: list[Comment]


@dataclass
class Misspelt:
    text: Adress  # type: ignore[name-defined]  # noqa: F821  (what is tested)


@dataclass
class Plot:
    owner: str = stored("Owner#")
    size: int | None = stored("m2", default=None)
    crops: list[str] = stored(default=[])  # noqa: RUF009  (each has its own)
    place: Address | None = None


@dataclass
class Twice:
    one: str = stored("same")
    other: str = stored("same")


@dataclass
class Counted:
    number: int = version()


def typed(annotation: object) -> FieldType:
    return field_type(annotation, AttributeStyle("camel"))


# --- Annotations --------------------------------------------------------------------------------------


def test_elements_may_be_optional() -> None:
    with_gaps = typed(list[int | None])
    assert decode(with_gaps, [Decimal(1), None]) == [1, None]
    assert encode(with_gaps, [1, None]) == [Decimal(1), None]
    with pytest.raises(ValueError, match="a NoneType"):
        decode(typed(list[int]), [Decimal(1), None])


@pytest.mark.parametrize(
    ("annotation", "said"),
    [
        (complex, "complex is not a field type"),
        (dict[str, int], "dict is not a field type"),
        (list, "list is not a field type"),
        (tuple[int, str], "tuple is not a field type"),
        (Literal["a"], "Literal is not a field type"),
        (str | int, "str | int is not a field type"),
        (Shade, "the values of Shade are neither text nor integers"),
        (Comment, "Comment contains itself"),
        (list[Comment], "Comment contains itself"),
        (Twice, "Twice.other is in the attribute of one"),
        (Counted, "Counted.number is in a map"),
        (Misspelt, "Misspelt cannot be read: name 'Adress' is not defined"),
        (Annotated[str, {"not": "hashable"}], "Annotated is not a field type"),
        (set[Address], "a set cannot hold values of type Address"),
        (set[bool], "a set cannot hold values of type boolean"),
        (set[list[int]], "a set cannot hold values of type list of int"),
        (set[str | None], "a set cannot hold values of type string or None"),
    ],
)
def test_what_is_no_type_is_refused_in_words(annotation: object, said: str) -> None:
    with pytest.raises(UnknownType) as refused:
        typed(annotation)
    assert str(refused.value).startswith(said)


def test_optional_in_every_spelling() -> None:
    assert is_optional(str | None) == (str, True)
    assert is_optional(None | str) == (str, True)
    assert is_optional(str) == (str, False)
    assert is_optional(str | int | None) == (str | int, True)


# --- Values -------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("annotation", "attribute", "value"),
    [
        (ID, "12345", ID("12345")),
        (str, "", ""),
        (int, Decimal("5E+1"), 50),
        (int, Decimal(2**31 - 1), 2**31 - 1),
        (int, Decimal(-(2**31)), -(2**31)),
        (Long, Decimal(12345678901234567890123456789012345678), 12345678901234567890123456789012345678),
        (float, Decimal("0.1"), 0.1),
        (bool, False, False),
        (Decimal, Decimal("199.99"), Decimal("199.99")),
        (date, "2024-02-29", date(2024, 2, 29)),
        (bytes, b"\x00\xff", b"\x00\xff"),
        (JSON, {"a": [Decimal(1), None, {"b": True}]}, {"a": [Decimal(1), None, {"b": True}]}),
        (Any, ["a", Decimal(1)], ["a", Decimal(1)]),
        (set[int], frozenset({Decimal(1)}), {1}),
        (frozenset[bytes], frozenset({b"a"}), {b"a"}),
        (list[list[Decimal]], [[Decimal(1)], []], [[Decimal(1)], []]),
        (Colour, "blue", Colour.BLUE),
        (Level, Decimal(2), Level.HIGH),
        (list[Colour], ["red", "blue"], [Colour.RED, Colour.BLUE]),
        (
            Person,
            {"home": {"streetName": "A", "houseNumber": Decimal(3), "country": "BE"}, "others": []},
            Person(home=Address(street_name="A", house_number=3, country="BE"), others=[]),
        ),
    ],
)
def test_a_value_is_read_and_written_back(annotation: object, attribute: Any, value: object) -> None:
    decoded = decode(typed(annotation), attribute)
    assert decoded == value
    assert type(decoded) is type(value)
    assert encode(typed(annotation), value) == attribute


@pytest.mark.parametrize(
    ("annotation", "attribute"),
    [
        (str, Decimal(5)),
        (str, True),
        (int, "5"),
        (int, Decimal("1.5")),
        (int, True),
        (int, Decimal(2**31)),
        (Long, Decimal("0.1")),
        (bool, Decimal(1)),
        (bool, "true"),
        (Decimal, "1"),
        (datetime, "yesterday"),
        (datetime, "2024-02-30T00:00:00Z"),
        (datetime, "2024-01-01T25:00:00Z"),
        (datetime, "20240101T000000Z"),
        (datetime, Decimal(1)),
        (date, "2024-1-1"),
        (date, "2024-01-01T00:00:00Z"),
        (date, "2024-W01-1"),
        (bytes, "AA=="),
        (Colour, "green"),
        (Colour, "RED"),
        (Level, "1"),
        (Level, Decimal("1.5")),
        (Level, True),
        (list[str], "abc"),
        (list[str], ["a", Decimal(1)]),
        (set[str], frozenset({Decimal(1)})),
        (Address, []),
        (Address, {"houseNumber": Decimal(3)}),
        (Address, {"streetName": Decimal(3)}),
    ],
)
def test_what_does_not_fit_is_refused(annotation: object, attribute: Any) -> None:
    type_ = typed(annotation)
    with pytest.raises(ValueError, match=r"\w"):
        decode(type_, attribute)


def test_an_id_that_is_stored_as_a_number_is_text() -> None:
    assert decode(typed(ID), Decimal(12345)) == "12345"


def test_a_list_may_be_stored_as_a_set() -> None:
    assert decode(typed(list[str]), frozenset({"b", "a"})) == ["a", "b"]
    assert decode(typed(set[int]), [Decimal(2), Decimal(1)]) == {1, 2}
    assert encode(typed(set[int]), [1, 2]) == frozenset({Decimal(1), Decimal(2)})


def test_a_nested_dataclass_has_its_defaults() -> None:
    decoded = decode(typed(Address), {"streetName": "A"})
    assert decoded == Address(street_name="A", house_number=None, country="NL")


def test_what_is_none_is_left_out_of_a_map() -> None:
    address = Address(street_name="A", house_number=None, country="NL")
    assert encode(typed(Address), address) == {"streetName": "A", "country": "NL"}


def test_nested_dataclasses_are_stored_in_the_graphs_case() -> None:
    assert decode(field_type(Address, AttributeStyle("snake")), {"street_name": "A"}).street_name == "A"
    assert decode(field_type(Address, AttributeStyle("pascal")), {"StreetName": "A"}).street_name == "A"


def test_the_fields_of_a_nested_dataclass_can_be_stored_under_other_names() -> None:
    plot = Plot(owner="Ann")
    assert encode(typed(Plot), plot) == {"Owner#": "Ann", "crops": []}
    plot.crops.append("rye")
    assert decode(typed(Plot), {"Owner#": "Ann", "m2": Decimal(7)}) == Plot(owner="Ann", size=7, crops=[])
    with pytest.raises(TypeError, match="owner"):
        Plot()


@pytest.mark.parametrize(
    ("stored_map", "said"),
    [
        ({"owner": "Ann"}, "a map without Owner#"),
        ({"Owner#": "Ann", "m2": "7"}, "a map whose m2 is a str"),
        ({"Owner#": "Ann", "place": {"street_name": "A"}}, "a map whose place is a map without streetName"),
    ],
)
def test_what_is_wrong_in_a_map_names_the_attribute(stored_map: Item, said: str) -> None:
    with pytest.raises(ValueError, match=f"^{said}$"):
        decode(typed(Plot), stored_map)


@pytest.mark.parametrize("value", [float("inf"), float("nan"), 1e-200])
def test_a_number_that_dynamodb_does_not_hold_is_refused(value: float) -> None:
    with pytest.raises(ValueError, match="number"):
        encode(typed(float), value)


@pytest.mark.parametrize(
    "text",
    [
        "2024-02-01T12:30:00Z",
        "2024-02-01T12:30:00.5Z",
        "2024-02-01T12:30:00.123456789Z",
        "2024-02-01T12:30:00+02:00",
        "2024-02-01T12:30:00-0330",
        "2024-02-01T12:30",
        "2024-02-01 12:30:00",
        "2024-02-01",
    ],
)
def test_a_datetime_keeps_its_text(text: str) -> None:
    moment = decode(typed(datetime), text)
    assert moment_text(moment) == text
    assert encode(typed(datetime), moment) == text


def test_a_moment_is_a_datetime() -> None:
    moment = Moment.of_text("2024-02-01T12:30:00+02:00")
    assert moment == datetime(2024, 2, 1, 10, 30, tzinfo=UTC)
    assert moment_text(moment + timedelta(hours=1)) == "2024-02-01T11:30:00Z"
    assert moment_text(moment.replace(hour=13)) == "2024-02-01T11:30:00Z"


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (datetime(2024, 2, 1, 12, 30, tzinfo=UTC), "2024-02-01T12:30:00Z"),
        (datetime(2024, 2, 1, 1, 30, tzinfo=timezone(timedelta(hours=2))), "2024-01-31T23:30:00Z"),
        (datetime(987, 2, 1, tzinfo=UTC), "0987-02-01T00:00:00Z"),
    ],
)
def test_a_new_datetime_is_written_in_utc_with_seconds(value: datetime, text: str) -> None:
    assert moment_text(value) == text


# --- Moments ------------------------------------------------------------------------------------------


@given(st.datetimes(timezones=st.just(UTC)))
def test_every_datetime_comes_back(value: datetime) -> None:
    assert decode(typed(datetime), encode(typed(datetime), value)) == value


# --- JSON ---------------------------------------------------------------------------------------------


@given(
    st.recursive(
        st.none() | st.booleans() | st.text() | st.integers(-(10**30), 10**30),
        lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
        max_leaves=10,
    )
)
def test_json_is_kept_as_it_is(value: Any) -> None:
    assert decode(typed(JSON), encode(typed(JSON), value)) == value


@pytest.mark.parametrize("make", [object, lambda: {1, 2}, lambda: [float("nan")], lambda: 10**40 + 1])
def test_what_no_attribute_can_hold_is_refused(make: Callable[[], object]) -> None:
    with pytest.raises(ValueError, match=r"a value of type|number"):
        plain(make())


@pytest.mark.parametrize(
    ("number", "text"), [("30", "30"), ("3E+1", "30"), ("1E+20", "1" + "0" * 20), ("-0.50", "-0.5")]
)
def test_a_number_that_is_an_id(number: str, text: str) -> None:
    assert decode(FieldType("id"), Decimal(number)) == text


def test_json_that_is_nested_too_deeply() -> None:
    """It is a value that cannot be stored, not a recursion without an end."""
    value: object = []
    for _ in range(5_000):
        value = [value]
    with pytest.raises(ValueError, match="lists and maps in more than 32 levels"):
        plain(value)
