"""What keys of a template look like: one shape is a special case of another, or no key can be of both."""

from __future__ import annotations

from datetime import date, datetime
from decimal import Decimal
from enum import Enum

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from keygraph.keys.shapes import are_disjoint, is_special_case, key_intervals, shape
from keygraph.keys.template import Maybe, Reference, Slot, Template, Token, read_source
from keygraph.keys.text import key_text
from keygraph.keys.types import ID, AttributeStyle, Long, field_type
from tests.keygraph.made_templates import KEYS, templates
from tests.keygraph.made_templates import texts as key_texts


class Status(Enum):
    OPEN = "OPEN"
    DONE = "DONE"


TYPES: dict[str, object] = {
    "id": ID,
    "other": str,
    "number": int,
    "long": Long,
    "price": Decimal,
    "factor": float,
    "flag": bool,
    "day": date,
    "at": datetime,
    "status": Status,
}


def template(source: str) -> Template:
    """A template whose placeholders begin with the name of a type above: `{id}`, `{id2}`."""
    tokens: list[Token] = []
    for part in read_source(source):
        if isinstance(part, Reference):
            [name] = part.path
            type_ = TYPES[name.rstrip("23")]
            slot = Slot(part.path, key_text(field_type(type_, AttributeStyle("snake")), part.format))
            tokens.append(Maybe((slot,)) if part.optional else slot)
        else:
            tokens.append(part)
    return Template(tuple(tokens))


def is_special(one: str, other: str) -> bool:
    return is_special_case(shape(template(one)), shape(template(other)))


@pytest.mark.parametrize(
    ("special", "general"),
    [
        ("USER#{id}#SHARD{number}", "USER#{id}"),
        ("USER#1", "USER#{id}"),
        ("{id}#{id}", "{id}#{id2}"),
        ("A{number}", "A{id}"),
        ("A{number}", "A{price}"),
        ("A{day}", "A{at}"),
        ("A2024-01-01", "A{day}"),
        ("A{status}", "A{other}"),
        ("AOPEN", "A{status}"),
        ("A{number:05d}", "A{id}"),
        ("A{day:%Y-%m}", "A{id}"),
        ("A{id}", "A{id?}"),
        ("A#{id}", "{id}"),
    ],
)
def test_the_special_one_is_known(special: str, general: str) -> None:
    assert is_special(special, general)
    assert not is_special(general, special)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("USER#{id}", "ORDER#{id}"),
        ("{id}#A", "A#{id}"),
        ("{id}#{id2}", "{id}#{id}"),
        ("A{id}", "A{number}"),
        ("A{at}", "A{day}"),
        ("A{number:05d}", "A{number}"),
        ("A{number}", "A{number:05d}"),
        ("A{number}", "A{status}"),
        ("A07", "A{number}"),
        ("ACLOSED", "A{status}"),
        ("A{id}{id2?}", "A{id}B"),
        ("A{factor}", "A{number}"),
        ("A{number}", "A{factor}"),
    ],
)
def test_what_is_not_special_is_known(one: str, other: str) -> None:
    assert not is_special(one, other)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("USER#{id}", "ORDER#{id}"),
        ("{id}#A", "{id}#B"),
        ("A{number}", "A{status}"),
        ("A{number}", "A{day}"),
        ("A{flag}", "A{number}"),
        ("A{status}", "AX{id}"),
        ("A{number:05d}", "A123"),
        ("A{price}", "A#{id}"),
        ("A{day}", "A{day}#{id}"),
        ("A{number}B", "A{number}"),
    ],
)
def test_disjoint_shapes_are_known(one: str, other: str) -> None:
    assert are_disjoint(shape(template(one)), shape(template(other)))
    assert are_disjoint(shape(template(other)), shape(template(one)))


@pytest.mark.parametrize(
    ("one", "other", "both"),
    [
        ("A{id}", "{id}B", "AxB"),
        ("A{id}", "A{number}", "A1"),
        ("A{price}", "A{factor}", "A1.5"),
        ("A{number}", "A{price}", "A1"),
        ("A{number}", "A-{id}", "A-1"),
        ("A{status}", "A{id}", "AOPEN"),
        ("A{day}", "A{at}", "A2024-01-01"),
        ("A{at}", "A{id}Z", "A2024-01-01T00:00:00Z"),
        ("A{number:03d}", "A{number}", "A100"),
        ("A{id?}", "A", "A"),
        ("A{flag}", "A{id}e", "Atrue"),
    ],
)
def test_shapes_that_meet_are_known(one: str, other: str, both: str) -> None:
    assert template(one).parse(both) is not None
    assert template(other).parse(both) is not None
    assert not are_disjoint(shape(template(one)), shape(template(other)))


def test_many_enums_in_a_key_are_compared_without_writing_every_key() -> None:
    many = "#".join(["{status}"] * 24)
    assert are_disjoint(shape(template(many)), shape(template(many + "!")))
    assert not are_disjoint(shape(template(many)), shape(template(many + "{id?}")))


def test_no_placeholder_reaches_from_the_partition_key_into_the_sort_key() -> None:
    one = shape(template("A{id}"), template("B{other}"))
    assert are_disjoint(one, shape(template("A{id}"), template("C{other}")))
    assert is_special_case(shape(template("A1"), template("B2")), one)
    assert not is_special_case(shape(template("A1B2"), None), one)
    assert not is_special_case(one, shape(template("A{id}"), None))


def test_a_placeholder_that_repeats_in_the_sort_key_is_special() -> None:
    own = shape(template("USER#{id}"), template("USER#{id}"))
    friend = shape(template("USER#{id}"), template("USER#{id2}"))
    assert is_special_case(own, friend)
    assert not is_special_case(friend, own)
    assert not are_disjoint(own, friend)


def test_optional_parts_with_one_placeholder_are_there_together() -> None:
    twice = shape(template("A{id?}-{id?}"))
    assert not is_special_case(shape(template("A1-")), twice)
    assert are_disjoint(shape(template("A-1")), twice)
    assert is_special_case(shape(template("A1-1")), twice)
    assert is_special_case(shape(template("A-")), twice)


def test_an_integer_ends_where_it_must_for_the_rest_to_be_read() -> None:
    assert template("{number}0{id}").parse("00001") == {"number": "0", "id": "001"}
    assert template("{number}0{id}").parse("1001") == {"number": "10", "id": "1"}


@settings(max_examples=150)
@given(templates(), templates())
def test_shapes_agree_with_every_short_key(one: Template, other: Template) -> None:
    keys = {key for key in KEYS if one.parse(key) is not None}
    others = {key for key in KEYS if other.parse(key) is not None}
    if are_disjoint(shape(one), shape(other)):
        assert keys & others == set()
    if is_special_case(shape(one), shape(other)):
        assert keys <= others


@settings(max_examples=150)
@given(templates(), templates(), templates())
def test_special_cases_are_an_order(one: Template, other: Template, third: Template) -> None:
    shapes = [shape(one), shape(other), shape(third)]
    assert all(is_special_case(same, same) for same in shapes)
    if is_special_case(shapes[0], shapes[1]) and is_special_case(shapes[1], shapes[2]):
        assert is_special_case(shapes[0], shapes[2])
    if is_special_case(shapes[0], shapes[1]):
        assert not are_disjoint(shapes[0], shapes[1])


@settings(max_examples=150)
@given(templates(), templates())
@pytest.mark.long
def test_a_common_key_can_be_found(one: Template, other: Template) -> None:
    if not {key for key in KEYS if one.parse(key)} & {key for key in KEYS if other.parse(key)}:
        return
    assert not are_disjoint(shape(one), shape(other))
    assert not are_disjoint(shape(other), shape(one))


@given(templates(optional=False), st.just("") | key_texts)
@settings(max_examples=150, deadline=None)
def test_keys_stand_in_the_stretches_of_their_shape(made: Template, beginning: str) -> None:
    found = key_intervals(shape(made), beginning)
    for key in KEYS:
        inside = [each for each in found if each.low <= key and (each.end is None or key < each.end)]
        if key.startswith(beginning) and made.parse(key) is not None:
            assert inside
        assert all(key.startswith(each.text) for each in inside)
        if any(each.is_filled for each in inside):
            assert made.parse(key) is not None


@pytest.mark.parametrize(
    ("source", "beginning", "wanted"),
    [
        ("ORDER#{id}", "", [("ORDER#\0", "ORDER$", True)]),
        ("ORDER#{id}", "ORDER#7", [("ORDER#7", "ORDER#8", True)]),
        ("ORDER#{id}", "PROFILE", []),
        ("PROFILE", "", [("PROFILE", "PROFILE\0", True)]),
        ("{day}", "", [("0", ":", False)]),
        ("{day}#{id}", "2024-01", [("2024-01-0", "2024-01-:", False)]),
        ("A#{id}#B", "", [("A#\0", "A$", False)]),
        ("{status}/{id}", "", [("OPEN/\0", "OPEN0", False), ("DONE/\0", "DONE0", False)]),
        ("{number}", "", [("0", ":", False), ("-0", "-:", False)]),
        ("{id}", "", [("\0", None, True)]),
    ],
)
def test_where_keys_stand(source: str, beginning: str, wanted: list[tuple[str, str | None, bool]]) -> None:
    found = key_intervals(shape(template(source)), beginning)
    assert [(each.low, each.end, each.is_filled) for each in found] == wanted
