"""What is wrong with walks is told before anything runs: lists that are none, ends that do not fit, numbers out of range."""

from __future__ import annotations

from datetime import date, timedelta
from typing import Any, cast

import pytest

from keygraph import ID, Graph, Index, Many, Ranked, Reach, Table, edge, many, node, ranked, reach, record
from tests.resolvers.walk_worlds import walks

by_lower = Index("by_lower", "LowerPK", "LowerSK")
ANNOTATIONS = {"Reach": Reach, "Ranked": Ranked}
"""The names in the annotations of the tests."""


def mistakes(options: Any, annotation: str = "Reach[Thing]") -> list[str]:
    """What is wrong with a walk of things that lie below each other, and have owners and notes."""
    other_annotation = annotation

    @node("THING#{thing_id}")
    class Thing:
        thing_id: ID
        below: Many[Lies] = many(at="upper")
        above: Many[Lies] = many(at="lower")
        owners: Many[Owns] = many(at="thing")
        notes: Many[Note]
        any_notes: Many[Sorted]
        walk: other_annotation = options  # type: ignore[valid-type]

    @node("OWNER#{owner_id}")
    class Owner:
        owner_id: ID

    @edge("{upper}", "LIES#{lower.thing_id}", by_lower("{lower}", "{upper}"))
    class Lies:
        upper: Thing
        lower: Thing
        weight: int
        name: str
        since: date

    @edge("{thing}", "OWNER#{owner.owner_id}")
    class Owns:
        thing: Thing
        owner: Owner

    @record("{thing}", "NOTE#{number}")
    class Note:
        thing: Thing
        number: int

    @record("SORTED#{sort}#{thing.thing_id}", "{number}")
    class Sorted:
        thing: Thing
        sort: str
        number: int

    Thing.__annotations__["walk"] = annotation
    table = Table("Things", partition_key="PK", sort_key="SK", indexes=[by_lower])
    graph = Graph(table, Thing, Owner, Lies, Owns, Note, Sorted)
    return [f"{each.where}: {each.problem}" for each in graph.mistakes]


@pytest.mark.parametrize(
    ("options", "annotation", "problem"),
    [
        (
            reach("blow", depth=3),
            "Reach[Thing]",
            "none of the nodes that it reaches has a list called blow.",
        ),
        (
            reach("notes", depth=3),
            "Reach[Thing]",
            "it cannot follow Thing.notes: Note leads to no other node.",
        ),
        (
            reach("any_notes", depth=3),
            "Reach[Thing]",
            "it cannot follow Thing.any_notes: it needs the argument sort.",
        ),
        (reach("below", depth=0), "Reach[Thing]", "depth=0 is not a number from 1 to 100."),
        (reach("below", depth=101), "Reach[Thing]", "depth=101 is not a number from 1 to 100."),
        (
            reach("below", depth=2, budget=0),
            "Reach[Thing]",
            "budget=0 is not a number from 1 to 2,147,483,648.",
        ),
        (reach(depth=2), "Reach[Thing]", "reach() names no list."),
        (reach("below", depth=2), "Reach[Owner]", "its lists lead to no Owner, but to Thing."),
        (reach("below", depth=2), "Ranked[Thing]", "it does not say ranked(…)."),
        (many(), "Reach[Thing]", "it does not say reach(…)."),
        (reach("below", depth=2), "Reach[Note]", "Note is not a node that the graph lists."),
        (
            ranked("owners", "below"),
            "Ranked[Thing]",
            "none of the nodes that it reaches has a list called below.",
        ),
        (ranked("blow"), "Ranked[Thing]", "Thing has no list called blow."),
        (
            ranked("below", weight="name"),
            "Ranked[Thing]",
            "weight: Lies has no field name that is a number.",
        ),
        (
            ranked("below", decay=("weight", timedelta(1))),
            "Ranked[Thing]",
            "decay: Lies has no field weight that is a time.",
        ),
        (
            ranked("below", decay=("since", timedelta(0))),
            "Ranked[Thing]",
            "decay=('since', datetime.timedelta(0)) is not a field and a positive time.",
        ),
        (ranked("below", kept="job", keep=0), "Ranked[Thing]", "keep=0 is no number from 1 to 100."),
        (
            reach("below", depth=9, kept="job", keep=101),
            "Reach[Thing]",
            "keep=101 is no number from 1 to 100.",
        ),
        (
            ranked("below", "below", kept="stream"),
            "Ranked[Thing]",
            "one edge may change what nodes several lists away keep, and the stream changes the nodes of one list.",
        ),
        (
            reach("below", depth=2, kept="stream"),
            "Reach[Thing]",
            "one edge may change what nodes several lists away keep, and the stream changes the nodes of one list.",
        ),
        (
            ranked("above", kept="stream"),
            "Ranked[Thing]",
            "above reads by_lower, which is written later than the table.",
        ),
        (reach("below", depth=9, kept=cast(Any, "day")), "Reach[Thing]", "kept='day' is unknown."),
    ],
)
def test_mistakes(options: Any, annotation: str, problem: str) -> None:
    assert mistakes(options, annotation) == [f"Thing.walk: {problem}"]


@pytest.mark.parametrize(
    ("options", "annotation"),
    [
        (reach("below", "owners", depth=100, budget=1), "Reach[Thing | Owner]"),
        (ranked("below", "owners"), "Ranked[Owner]"),
        (reach("below", "owners", depth=9, kept="job", keep=100), "Reach[Thing | Owner]"),
        (reach("below", "owners", depth=1, kept="stream"), "Reach[Thing | Owner]"),
        (ranked("below", weight="weight", decay=("since", timedelta(days=3))), "Ranked[Thing]"),
    ],
)
def test_sound_walks(options: Any, annotation: str) -> None:
    assert mistakes(options, annotation) == []


def test_what_is_followed() -> None:
    assert walks.mistakes == []
    found = {name: [path.name for path in walk.paths] for (_, name), walk in walks.walks.items()}
    assert found["anybody"] == ["friends", "follows"]
    assert found["may_know"] == ["friends"]
