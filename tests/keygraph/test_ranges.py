"""Ranges of a sort key as bounds: what a span contains is what its condition finds."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from keygraph.dynamo.order import LAST, last_below, text_after_all
from keygraph.dynamo.store import Above, AtLeast, AtMost, Below, Equals, Prefix, Range, Within
from keygraph.lists.ranges import Span, beginning_with

TEXTS = st.text(st.sampled_from("ab#\ud7ff\ue000\0~"), min_size=1, max_size=3)
SPANS = st.builds(Span, st.none() | TEXTS, TEXTS, st.booleans()) | st.builds(Span, st.none() | TEXTS)


def finds(range_: Range | None, text: str) -> bool:
    match range_:
        case None:
            return True
        case Equals(value):
            return text == value
        case Prefix(value):
            return text.startswith(str(value))
        case Within(low, high):
            return str(low) <= text <= str(high)
        case AtLeast(value):
            return text >= str(value)
        case AtMost(value):
            return text <= str(value)
        case Above(value):
            return text > str(value)
        case Below(value):
            return text < str(value)


@given(SPANS, TEXTS)
def test_a_span_is_its_condition(span: Span, text: str) -> None:
    assert (not span.is_empty and finds(span.range, text)) == span.contains(text)


@given(SPANS, SPANS, TEXTS)
def test_within_is_both(one: Span, other: Span, text: str) -> None:
    assert one.within(other).contains(text) == (one.contains(text) and other.contains(text))


@given(TEXTS, TEXTS)
def test_what_stands_behind_a_prefix(prefix: str, text: str) -> None:
    end = text_after_all(prefix)
    assert end is not None
    assert (prefix <= text < end) == text.startswith(prefix) == beginning_with(prefix).contains(text)
    assert (text < prefix) == (text <= last_below(prefix))


def test_nothing_stands_behind_the_last_character() -> None:
    assert text_after_all(LAST) is None
    assert text_after_all("") is None
    assert text_after_all(f"a{LAST}") == "b"


@pytest.mark.parametrize(
    ("span", "wanted"),
    [
        (Span(), None),
        (Span("a"), AtLeast("a")),
        (Span("a\0"), Above("a")),
        (Span(None, "a"), AtMost("a")),
        (Span(None, "a", below=True), Below("a")),
        (Span("a", "a"), Equals("a")),
        (Span("a", "b"), Within("a", "b")),
        (Span("a", "b", below=True), Prefix("a")),
        (beginning_with("a#"), Prefix("a#")),
        (Span("a", "c", below=True), Within("a", f"b{LAST}")),
    ],
)
def test_the_plainest_condition(span: Span, wanted: Range | None) -> None:
    assert span.range == wanted
