"""The draft of each known table: its sample has no problem by it, and each type of the hand-written model is found."""

from __future__ import annotations

import pytest

from tests.designs.drafts import NAMES, measured, sample_of

WANTED = {
    "relational": "numbers are glued to words (HR-EMPLOYEE1), and seven types have keys of one shape",
    "streams": "two domains in lower case look like the words of two types",
    "threads": "only an attribute tells messages from notices",
    "talent": "a type is named by the word of its key, which is one of Python's: DateItem",
    "published_sessions": "the partition key's attribute has a word more: SessionToken",
}
"""What a draft does not find yet, and why."""


@pytest.mark.parametrize(
    "name",
    [
        pytest.param(
            name, marks=pytest.mark.xfail(strict=True, reason=WANTED[name]) if name in WANTED else ()
        )
        for name in NAMES
    ],
)
@pytest.mark.long
async def test_a_draft_has_what_is_declared_by_hand(name: str) -> None:
    graph, items = sample_of(name)
    assert (await measured(graph, items)).faults == []
