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
ORDER = slot("order_id")


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
    """A template would mean another key than the one that is written."""
    assert read_source(source) == parts


def test_braces_can_be_literal() -> None:
    """A table whose keys hold braces could not be described."""
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
    """A mistyped template would be taken literally, and nothing be found under it."""
    with pytest.raises(TemplateError) as refused:
        read_source(source)
    assert str(refused.value) == said


def test_a_template_is_shown_as_it_is_written() -> None:
    """A message would show a template that its reader cannot find in the model."""
    shown = Template(("A{#", slot("n", type_=int, format_="05d"), Maybe(("#", slot("manager", "n")))))
    assert str(shown) == "A{{#{n:05d}#{manager.n?}"
    assert str(Template((Maybe((slot("n", type_=int, format_="05d"),)),))) == "{n?:05d}"


# --- Rendering and parsing ----------------------------------------------------------------------------


def test_a_key_is_rendered_and_parsed() -> None:
    """No item would be found."""
    template = Template(("USER#", USER, "#ORDER#", ORDER))
    assert template.render({"user_id": "1", "order_id": "2"}) == "USER#1#ORDER#2"
    assert template.parse("USER#1#ORDER#2") == {"user_id": "1", "order_id": "2"}


@pytest.mark.parametrize(
    "key", ["", "USER#", "USER#1", "user#1#ORDER#2", "USER#1#ORDER#", " USER#1#ORDER#2", "USER##ORDER#2"]
)
def test_a_key_of_another_form_is_not_parsed(key: str) -> None:
    """Items of other types would be read as this one."""
    assert Template(("USER#", USER, "#ORDER#", ORDER)).parse(key) is None


def test_special_characters_of_patterns_are_literal() -> None:
    """A template with a dot or a bar would take keys that have none."""
    template = Template(("A.B|(", USER, ")*$"))
    assert template.parse("A.B|(x)*$") == {"user_id": "x"}
    assert template.parse("AxB|(x)*$") is None


def test_a_value_may_hold_line_breaks() -> None:
    """An item whose id ends in a line break would be lost, or found under another id."""
    template = Template(("USER#", USER))
    assert template.parse("USER#a\nb\n") == {"user_id": "a\nb\n"}
    assert Template((USER, "#A")).parse("x#A\n") is None


def test_a_placeholder_that_repeats_is_one_value() -> None:
    """An edge from 1 to 2 would be read as the node 1."""
    template = Template((USER, "#", USER))
    assert template.parse("1#1") == {"user_id": "1"}
    assert template.parse("1#2") is None
    assert template.parse("a#a#a#a") == {"user_id": "a#a"}


def test_one_field_may_stand_in_two_formats() -> None:
    """A key with a month before the day could not be described."""
    day = field_type(date, AttributeStyle("snake"))
    template = Template((Slot(("day",), key_text(day, "%Y-%m")), "#", Slot(("day",), key_text(day))))
    assert template.parse("2024-02#2024-02-29") == {"day:%Y-%m": "2024-02", "day": "2024-02-29"}


def test_what_is_absent_is_not_rendered() -> None:
    """Whoever has no manager would stand under a manager without a name."""
    template = Template(("STAFF", Maybe(("#MANAGER#", slot("manager", "user_id")))))
    assert template.render({"manager.user_id": None}) == "STAFF"
    assert template.render({"manager.user_id": "7"}) == "STAFF#MANAGER#7"
    assert template.parse("STAFF") == {}
    assert template.parse("STAFF#MANAGER#7") == {"manager.user_id": "7"}
    assert Template(("USER#", USER)).render({}) is None


def test_a_number_is_found_beside_text() -> None:
    """A key whose number follows free text would be split at the wrong place."""
    template = Template((slot("name"), "#", slot("number", type_=int)))
    assert template.parse("a#1#2") == {"name": "a#1", "number": "2"}
    assert template.parse("a#x") is None
    assert template.parse("a#07") is None


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
    """An id in any script, with any character but the separator, could not be used."""
    template = Template(("A#", slot("one"), "#", slot("other"), "#B#", slot("third")))
    key = template.render({"one": one, "other": other, "third": third})
    assert key == f"A#{one}#{other}#B#{third}"
    found = template.parse(key)
    values = {"one": one, "other": other, "third": third}
    if all(value and "#" not in value for value in values.values()):
        assert found == values
    elif found is not None:
        assert template.render(found) == key


# --- Prefixes -----------------------------------------------------------------------------------------


def test_a_prefix_ends_before_the_first_unknown_value() -> None:
    """A list would begin too early and hold other nodes' items, or too late and hold too few."""
    template = Template(("PLACE|", slot("place"), "|ROOM|", slot("room"), "|X"))
    prefix, rest = template.head({"place"})
    assert str(prefix) == "PLACE|{place}|ROOM|"
    assert str(rest) == "{room}|X"
    assert [str(part) for part in template.head({"place", "room"})] == ["PLACE|{place}|ROOM|{room}|X", ""]
    assert [str(part) for part in template.head(())] == ["PLACE|", "{place}|ROOM|{room}|X"]


def test_a_slot_seen_through_an_end_is_another() -> None:
    """The ids of two ends of one type would be taken for one."""
    assert USER.under("friend").name == "friend.user_id"
    assert slot("n", type_=int, format_="05d").under("a").under("b").name == "b.a.n:05d"


def test_a_text_is_written_as_another_slot_writes_it() -> None:
    """A neighbour whose key has the number padded would not be found."""
    plain, padded = slot("n", type_=int), slot("n", type_=int, format_="05d")
    assert plain.rewritten("42", padded) == "00042"
    assert padded.rewritten("00042", plain) == "42"
    assert slot("n").rewritten("abc", slot("n")) == "abc"


def test_a_methods_text_is_never_read_back() -> None:
    """A field would be read from a text that only a method makes."""
    assert Slot(("state_key",), key_text(FieldType("string")), computed=True).lossy
    assert not slot("state").lossy
    assert slot("day", type_=date, format_="%Y").lossy


def test_an_optional_part_whose_placeholder_stands_elsewhere_is_there() -> None:
    """A key that nothing renders would be read as one of this type, and so be shown twice."""
    level = Slot(("level",), key_text(FieldType("int")))
    name = Slot(("name",), key_text(FieldType("string")))
    certain = Template((level, "#", Maybe(("/", level)), "#"))
    assert certain.parse("7#/7#") == {"level": "7"}
    assert certain.parse("7##") is None
    twice = Template((Maybe(("a", name)), "#", Maybe(("b", name))))
    assert twice.parse("ax#bx") == {"name": "x"}
    assert twice.parse("#") == {}
    assert twice.parse("ax#") is None
