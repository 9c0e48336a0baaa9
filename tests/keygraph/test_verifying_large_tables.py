"""Verifying large tables: the memory and the requests that it takes, and that it can be interrupted."""

from __future__ import annotations

import json
import tracemalloc
from collections import Counter
from decimal import Decimal
from typing import Any

import pytest

from keygraph.dynamo.items import Item
from keygraph.errors import Unavailable
from keygraph.tables.findings import Example, Finding, FindingKind, Report
from keygraph.tables.verify import Verification
from tests.keygraph.verified_net import Pages, friend, graph, told


async def peak(pages: int) -> int:
    """The most memory that the verification of so many pages takes."""
    verification = Verification(graph.check(), Pages(graph.table, pages, 100), segments=2)
    tracemalloc.start()
    try:
        await verification.run(lambda items: None)
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


@pytest.mark.long
async def test_memory_does_not_grow_with_the_table() -> None:
    await peak(1)
    assert await peak(12) < 1.5 * await peak(2)


async def test_only_so_many_requests_are_under_way_as_there_are_segments() -> None:
    store = Pages(graph.table, 3, 20)
    verification = Verification(graph.check(), store, segments=3)
    await verification.run(lambda items: None)
    assert store.most_under_way == 3
    assert verification.report.total == 3 * 3 * 20


@pytest.mark.parametrize("after", [1, 4, 5])
async def test_an_interrupted_one_goes_on_and_reports_the_same(after: int) -> None:
    class Odd(Pages):
        def item(self, number: int) -> Item:
            # In each page something is wrong.
            return super().item(number) if number % 7 else friend(f"a{number:06}", "nobody", mood="odd")

        def found(self, key: Any) -> Item | None:
            return None if "nobody" in key[0] else super().found(key)

    whole = Verification(graph.check(), Odd(graph.table, 4, 10), segments=2)
    await whole.run(lambda items: None)

    store = Odd(graph.table, 4, 10)
    store.fails_after = after
    first = Verification(graph.check(), store, segments=2)
    with pytest.raises(Unavailable):
        await first.run(lambda items: None)
    kept = json.loads(json.dumps(first.to_json()))
    store.fails_after = None
    second = Verification(graph.check(), store, segments=2)
    second.resume(kept)
    assert second.report.total == first.report.total < whole.report.total
    await second.run(lambda items: None)
    assert second.report.items == whole.report.items
    assert told(second.report) == told(whole.report)


@pytest.mark.parametrize("kept", [{}, {"reached": []}, {"reached": [None], "ended": [], "report": {}}, []])
def test_what_was_not_kept_by_it_is_refused(kept: Any) -> None:
    verification = Verification(graph.check(), Pages(graph.table, 1, 1), segments=1)
    with pytest.raises((KeyError, TypeError, ValueError)):
        verification.resume(kept)
    assert verification.to_json() == Verification(graph, Pages(graph.table, 1, 1), segments=1).to_json()


def test_keys_of_every_kind_are_kept() -> None:
    report = Report(5)
    kind = FindingKind("dangling", "Friend", "friend points to a missing User")
    report.add(
        {"Friend": 1, None: 2},
        Counter({("Friend", ("data", "x")): 1}),
        [Finding(kind, Example((Decimal("1.5"), "a"), (Decimal(2), "b")), {})],
    )
    again = Report.from_json(json.loads(json.dumps(report.to_json())), 5)
    assert again.items == report.items
    assert again.found == report.found
    assert again.attributes == report.attributes
    assert again.found[kind].examples == [Example((Decimal("1.5"), "a"), (Decimal(2), "b"))]
