"""The draft of each known table: its sample has no problem by it, and each type of the hand-written model is found."""

from __future__ import annotations

import pytest

from tests.designs.drafts import NAMES, measured, sample_of

WANTED = {
    "relational": "nothing but the shape of a name or a quarter tells three types of sort keys apart",
    "streams": "two domains in lower case look like the words of two types",
    "threads": "only an attribute tells messages from notices",
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
