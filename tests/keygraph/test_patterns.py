"""Patterns: what a placeholder's texts look like, so that keys are told apart by them."""

from __future__ import annotations

import re
from datetime import date, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from keygraph import ID, Format, Graph, Table, node, record
from keygraph.dynamo.items import Item
from keygraph.errors import BadUserInput
from keygraph.keys.ambiguity import common_key
from keygraph.keys.pattern import read_pattern

TABLE = Table("Tests", partition_key="PK", sort_key="SK")

PATTERNS = [
    "[^#]+",
    "[0-9]{4}",
    r"\d{2,3}-[A-Z]?",
    "(?:ab|c)x?",
    "(?:ab)+c",
    "[]a]x*",
    r"[a\-z]{0,2}!",
    "(?:a|b|c){2}",
    "(?:a|b|){3}",
    r"\w+\.\s?",
    "a{2,}|.b",
    "(?:[0-9]{2}:)?x",
]


def is_written(text: str, source: str) -> bool:
    for way in read_pattern(source).char_steps:
        reached = {0}
        for char in [*text, None]:
            for place, (_, is_optional, _) in enumerate(way):
                if place in reached and is_optional:
                    reached.add(place + 1)
            if char is None:
                break
            found = set()
            for place, (chars, _, repeats) in enumerate(way):
                if place in reached and char in chars:
                    found |= {place, place + 1} if repeats else {place + 1}
            reached = found
        if len(way) in reached:
            return True
    return False


@pytest.mark.parametrize("source", PATTERNS)
@given(data=st.data())
def test_the_steps_allow_what_the_pattern_does(source: str, data: st.DataObject) -> None:
    text = data.draw(
        st.from_regex(read_pattern(source).source, fullmatch=True) | st.text("abcx#1:-A!. ", max_size=6)
    )
    is_of = re.fullmatch(read_pattern(source).source, text) is not None
    assert is_written(text, source) >= is_of
    if read_pattern(source).is_exact:
        assert is_written(text, source) == is_of


@pytest.mark.parametrize(
    ("source", "problem"),
    [
        ("(a)", r"( cannot stand here; a group is (?:…), and the character itself \("),
        ("^a", r"^ cannot stand here; a group is (?:…), and the character itself \^"),
        ("a++", "+ cannot follow another count"),
        ("a{3", r"{ cannot stand here; a group is (?:…), and the character itself \{"),
        ("a{3,1}", "a count goes from 0 to 200"),
        ("a{1000}", "a count goes from 0 to 200"),
        ("[z-a]", "a range of characters must be ascending"),
        ("[a", "it ends too early"),
        ("a)", "it has ) without the opening one"),
        ("(?:a", "it has ( without the closing one"),
        (r"\bword", r"\b cannot be used"),
    ],
)
def test_what_is_no_pattern(source: str, problem: str) -> None:
    with pytest.raises(ValueError, match=f"^{re.escape(problem)}$"):
        read_pattern(source)


# --- In templates -------------------------------------------------------------------------------------


def compact(moment: datetime) -> str:
    return moment.strftime("%Y%m%d%H%M%S")


def read_compact(text: str) -> datetime:
    return datetime.strptime(f"{text}+0000", "%Y%m%d%H%M%S%z")


def kinds(first: str, second: str, **options: object) -> Graph:
    @node("USER#{user_id}", "PROFILE")
    class User:
        user_id: ID

    @record("{user}", first)
    class First:
        user: User
        at: datetime
        day: date
        room: str

    @record("{user}", second)
    class Second:
        user: User
        at: datetime
        day: date
        room: str

    return Graph(TABLE, User, First, Second, **options)  # type: ignore[arg-type]


def kind_of(graph: Graph, sort: str) -> str | None:
    item: Item = {"PK": "USER#1", "SK": sort}
    found = graph.check().recognise(item)
    return found and found.name


TIME = Format(compact, read_compact)


@pytest.mark.parametrize(
    ("first", "second", "options", "sort_keys"),
    [
        # What strftime writes.
        ("{day:%m/%d/%y}", "{room:[A-Z][a-z]+}", {}, ("07/03/21", "Hall")),
        ("{day:%m/%d/%y}", "{day:%Y-%m-%d}", {}, ("07/03/21", "2021-07-03")),
        ("{day:%d %b %Y}", "{day:%b %d %Y}", {}, ("03 Jul 2021", "Jul 03 2021")),
        # A declared format: its pattern, or what it refuses.
        ("{at:time}", "Join:{room}", {"formats": {"time": TIME}}, ("20240102030405", "Join:hall")),
        ("{at}", "Join:{room}", {"formats": {datetime: TIME}}, ("20240102030405", "Join:hall")),
        (
            "{room:slug}",
            "{room:shout}",
            {
                "formats": {
                    "slug": Format(str.lower, pattern="[a-z]+"),
                    "shout": Format(str.upper, pattern="[A-Z]+"),
                }
            },
            ("hall", "HALL"),
        ),
        # Text with an alphabet, of its own or the graph's.
        ("{room:[^#]+}", "{room:[^#]+}#{day}", {}, ("hall", "hall#2021-07-03")),
        ("{room}", "{room}#{day}", {"separator": "#"}, ("hall", "hall#2021-07-03")),
        ("{room}#A", "B#{room}#{day}", {"separator": "#"}, ("hall#A", "B#hall#2021-07-03")),
        ("{room:[A-Z]{2}}{day}", "{room:[a-z]+}", {}, ("XY2021-07-03", "hall")),
    ],
)
def test_types_told_apart_by_the_form_of_a_placeholder(
    first: str, second: str, options: dict[str, object], sort_keys: tuple[str, str]
) -> None:
    graph = kinds(first, second, **options)
    assert tuple(kind_of(graph, sort) for sort in sort_keys) == ("First", "Second")


def test_a_narrower_alphabet_is_a_special_case() -> None:
    graph = kinds("{room:[A-Z]+}", "{room:[A-Za-z]+}")
    assert kind_of(graph, "HALL") == "First"
    assert kind_of(graph, "Hall") == "Second"
    assert kind_of(graph, "Hall 1") is None


@pytest.mark.parametrize(
    ("first", "second", "options", "example"),
    [
        ("{room}#A", "A#{room}", {}, "A#A"),
        ("{at:time}", "{room:[0-9]+}x?", {"formats": {"time": TIME}}, None),
        ("{at:time}", "2024{room}", {"formats": {"time": TIME}}, "20240102030405"),
        ("{room:[a-f]+}", "{room:[d-z]+}", {}, "d"),
        ("{day:%Y%m%d}", "2024{room}", {}, "20240102"),
    ],
)
def test_ambiguity_is_told_by_an_example(
    first: str, second: str, options: dict[str, object], example: str | None
) -> None:
    graph = kinds(first, second, **options)
    told = [mistake.problem for mistake in graph.mistakes if mistake.kind == "not-told-apart"]
    if example is None:
        assert not told
        return
    [problem] = told
    templates = [graph.types[name].table_keys.templates for name in ("First", "Second")]
    key = common_key(templates[0], templates[1])
    assert key is not None
    assert key[1] == example
    assert f"a key such as {key[0]} / {example} can belong to both" in problem


@pytest.mark.parametrize(
    ("template", "options"),
    [("CITY#{name}", {"separator": "#"}), ("CITY#{name:[^#]+}", {})],
)
def test_a_value_that_holds_the_separator_is_refused(template: str, options: dict[str, object]) -> None:
    @node(template)
    class City:
        name: str

    graph = Graph(TABLE, City, **options).check()  # type: ignore[arg-type]
    assert graph.identity(graph.types["City"], {"name": "Dubai"}) == ("Dubai",)
    with pytest.raises(BadUserInput) as refused:
        graph.identity(graph.types["City"], {"name": "Dubai#Marina"})
    told = "name of City has a value that its key cannot hold: its text must fit [^#]+"
    assert str(refused.value).replace("\\", "") == told


@pytest.mark.parametrize(
    ("template", "options", "problem"),
    [
        ("A{name:[a}", {}, "{name:[a}: {:[a} is not a pattern: it ends too early."),
        ("A{name:lower}", {}, "{name:lower}: a format cannot be used with a field of type string."),
        ("A{name:>10}", {}, "{name:>10}: a format cannot be used with a field of type string."),
        ("A{name}", {"separator": "##"}, "separator='##' is not one character."),
        (
            "A{name}",
            {"formats": {"x": Format(str, pattern="(a)")}},
            "formats['x'] has a pattern that cannot be used: "
            r"( cannot stand here; a group is (?:…), and the character itself \(.",
        ),
    ],
)
def test_mistakes_in_patterns(template: str, options: dict[str, object], problem: str) -> None:
    @node(template)
    class Thing:
        name: str

    [mistake] = Graph(TABLE, Thing, **options).mistakes  # type: ignore[arg-type]
    assert mistake.problem.endswith(problem)
