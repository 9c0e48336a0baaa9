"""Key templates: what is written is read, keys are rendered and parsed, prefixes end where a value is unknown."""

from __future__ import annotations

from datetime import date

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from keygraph.keys.template import Maybe, Reference, Slot, Template, TemplateError, read_source
from keygraph.keys.text import key_text
from keygraph.keys.types import AttributeStyle, FieldType, field_type
from tests.keygraph.made_templates import templates, texts


def slot(*path: str, type_: object = str, format_: str = "", computed: bool = False) -> Slot:
    return Slot(path, key_text(field_type(type_, AttributeStyle("snake")), format_), computed)


USER = slot("user_id")


# --- The source ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("source", "parts"),
    [
        ("USER#{user_id}", ("USER#", Reference(("user_id",)))),
        ("{post.author.user_id}", (Reference(("post", "author", "user_id")),)),
        ("{score:010d}|", (Reference(("score",), "010d"), "|")),
        ("{day:%Y-%m-%dT%H:%M}", (Reference(("day",), "%Y-%m-%dT%H:%M"),)),
        ("{manager?}", (Reference(("manager",), "", optional=True),)),
        ("{manager.employee_id?:05d}", (Reference(("manager", "employee_id"), "05d", optional=True),)),
        ("METADATA", ("METADATA",)),
        ("größe#{größe}", ("größe#", Reference(("größe",)))),
    ],
)
def test_a_source_has_its_parts(source: str, parts: tuple[str | Reference, ...]) -> None:
    assert read_source(source) == parts


def test_braces_can_be_literal() -> None:
    text = "".join(part if isinstance(part, str) else str(part) for part in read_source("{{A}}{user_id}"))
    assert text == "{A}{user_id}"


@pytest.mark.parametrize(
    ("source", "said"),
    [
        ("", "it is empty"),
        ("A{", "Single '{' encountered in format string"),
        ("A}", "Single '}' encountered in format string"),
        ("{}", "{} is not a field name"),
        ("{0}", "{0} is not a field name"),
        ("{a.}", "{a.} is not a field name"),
        ("{a[0]}", "{a[0]} is not a field name"),
        ("{a b}", "{a b} is not a field name"),
        ("{a!r}", "{a} is not a field name"),
        ("{a??}", "{a??} is not a field name"),
        ("{user_id", "expected '}' before end of string"),
    ],
)
def test_what_is_no_template_is_refused(source: str, said: str) -> None:
    with pytest.raises(TemplateError) as refused:
        read_source(source)
    assert str(refused.value) == said


def test_a_template_is_shown_as_it_is_written() -> None:
    shown = Template(("A{#", slot("n", type_=int, format_="05d"), Maybe(("#", slot("manager", "n")))))
    assert str(shown) == "A{{#{n:05d}#{manager.n?}"
    assert str(Template((Maybe((slot("n", type_=int, format_="05d"),)),))) == "{n?:05d}"


ORDERS = Template(("USER#", USER, "#ORDER#", slot("order_id")))
STAFF = Template(("STAFF", Maybe(("#MANAGER#", slot("manager", "user_id")))))
NUMBERED = Template((slot("name"), "#", slot("number", type_=int)))
DAY = field_type(date, AttributeStyle("snake"))


@pytest.mark.parametrize(
    ("template", "key", "parsed"),
    [
        *((ORDERS, key, None) for key in ("", "USER#", "USER#1", "user#1#ORDER#2", "USER#1#ORDER#", " USER#1#ORDER#2")),
        (ORDERS, "USER##ORDER#2", None),
        (Template(("A.B|(", USER, ")*$")), "A.B|(x)*$", {"user_id": "x"}),
        (Template(("A.B|(", USER, ")*$")), "AxB|(x)*$", None),
        (Template(("USER#", USER)), "USER#a\nb\n", {"user_id": "a\nb\n"}),
        (Template((USER, "#A")), "x#A\n", None),
        (Template((USER, "#", USER)), "1#1", {"user_id": "1"}),
        (Template((USER, "#", USER)), "1#2", None),
        (Template((USER, "#", USER)), "a#a#a#a", {"user_id": "a#a"}),
        (Template((Slot(("day",), key_text(DAY, "%Y-%m")), "#", Slot(("day",), key_text(DAY)))), "2024-02#2024-02-29", {"day:%Y-%m": "2024-02", "day": "2024-02-29"}),
        (STAFF, "STAFF", {}),
        (STAFF, "STAFF#MANAGER#7", {"manager.user_id": "7"}),
        (NUMBERED, "a#1#2", {"name": "a#1", "number": "2"}),
        (NUMBERED, "a#x", None),
        (NUMBERED, "a#07", None),
    ],
)  # fmt: skip
def test_a_key_says_its_values_or_has_another_form(
    template: Template, key: str, parsed: dict[str, str] | None
) -> None:
    assert template.parse(key) == parsed


def test_what_is_absent_is_not_rendered() -> None:
    assert STAFF.render({"manager.user_id": None}) == "STAFF"
    assert STAFF.render({"manager.user_id": "7"}) == "STAFF#MANAGER#7"
    assert Template(("USER#", USER)).render({}) is None


# --- Rendering and parsing ----------------------------------------------------------------------------


@settings(max_examples=200)
@given(st.data())
def test_what_is_rendered_is_parsed_alike_or_differs(data: st.DataObject) -> None:
    """Whatever is put into a key, what is read from the key must make the same key again."""
    template = data.draw(templates())
    given_texts = {slot.name: data.draw(texts | st.none()) for slot in template.slots}
    key = template.render(given_texts)
    if key is None:
        return
    found = template.parse(key)
    if found is not None:
        assert template.render(found) == key


anything = st.text(st.characters(categories=None), max_size=8) | st.sampled_from(
    ["#", "##", "", "A#B", "\udc00"]
)


@settings(max_examples=300)
@given(anything, anything, anything)
def test_values_without_separators_come_back(one: str, other: str, third: str) -> None:
    template = Template(("A#", slot("one"), "#", slot("other"), "#B#", slot("third")))
    key = template.render({"one": one, "other": other, "third": third})
    assert key == f"A#{one}#{other}#B#{third}"
    found = template.parse(key)
    values = {"one": one, "other": other, "third": third}
    if all(value and "#" not in value for value in values.values()):
        assert found == values
    elif found is not None:
        assert template.render(found) == key


def test_a_prefix_ends_before_the_first_unknown_value() -> None:
    template = Template(("PLACE|", slot("place"), "|ROOM|", slot("room"), "|X"))
    prefix, rest = template.head({"place"})
    assert str(prefix) == "PLACE|{place}|ROOM|"
    assert str(rest) == "{room}|X"
    assert [str(part) for part in template.head({"place", "room"})] == ["PLACE|{place}|ROOM|{room}|X", ""]
    assert [str(part) for part in template.head(())] == ["PLACE|", "{place}|ROOM|{room}|X"]


def test_a_slot_has_its_own_name_form_and_loss() -> None:
    plain, padded = slot("n", type_=int), slot("n", type_=int, format_="05d")
    assert (USER.under("friend").name, padded.under("a").under("b").name) == ("friend.user_id", "b.a.n:05d")
    assert (plain.rewritten("42", padded), padded.rewritten("00042", plain)) == ("00042", "42")
    assert slot("n").rewritten("abc", slot("n")) == "abc"
    method = Slot(("state_key",), key_text(FieldType("string")), computed=True)
    assert [each.lossy for each in (method, slot("state"), slot("day", type_=date, format_="%Y"))] == [
        True,
        False,
        True,
    ]


# --- Prefixes -----------------------------------------------------------------------------------------


def test_an_optional_part_whose_placeholder_stands_elsewhere_is_there() -> None:
    level = Slot(("level",), key_text(FieldType("int")))
    name = Slot(("name",), key_text(FieldType("string")))
    certain = Template((level, "#", Maybe(("/", level)), "#"))
    assert certain.parse("7#/7#") == {"level": "7"}
    assert certain.parse("7##") is None
    twice = Template((Maybe(("a", name)), "#", Maybe(("b", name))))
    assert twice.parse("ax#bx") == {"name": "x"}
    assert twice.parse("#") == {}
    assert twice.parse("ax#") is None
