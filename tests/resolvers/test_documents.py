"""Documents: read once, kept within bounds."""

from __future__ import annotations

import pytest

from keygraph_examples.commerce import graph
from keygraph_resolvers import build_schema
from keygraph_resolvers.plan import documents
from keygraph_resolvers.plan.documents import LONGEST_KEPT, Documents


def made(kept: int) -> Documents:
    return Documents(build_schema(graph)._schema, graph, kept)


def test_a_text_is_read_once() -> None:
    """Every request would be parsed and validated again, which costs more than to answer it."""
    read = made(2)
    assert read.read("{ __typename }") is read.read("{ __typename }".replace("x", "y"))


def test_what_was_asked_last_is_kept() -> None:
    """The document that an application asks all the time would be forgotten for one that came once."""
    read = made(2)
    often, once = read.read("{ often: __typename }"), read.read("{ once: __typename }")
    assert read.read("{ often: __typename }") is often
    read.read("{ third: __typename }")
    assert read.read("{ often: __typename }") is often
    assert read.read("{ once: __typename }") is not once


def test_long_documents_do_not_fill_the_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    """A client that sends a thousand long documents would make the process run out of memory."""
    monkeypatch.setattr(documents, "CHARACTERS_KEPT", 150)
    read = made(1000)
    texts = [f"{{ a{number}: __typename }}".ljust(50) for number in range(4)]
    first, *others = [read.read(text) for text in texts]
    assert [read.read(text) for text in texts[1:]] == others
    assert read.read(texts[0]) is not first


def test_one_that_is_too_long_is_not_kept() -> None:
    """One client's document would drive those of all others out."""
    read = made(1000)
    short, long = read.read("{ __typename }"), "{ __typename }".ljust(LONGEST_KEPT + 1)
    assert read.read(long) is not read.read(long)
    assert read.read("{ __typename }") is short
