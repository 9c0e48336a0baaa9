"""What is wrong with counts and sums is told before anything runs: lists that are none, items that expire, keys made of them."""

from __future__ import annotations

from datetime import datetime
from decimal import Decimal
from typing import Any

import pytest

from keygraph import (
    ID,
    Graph,
    Index,
    Many,
    Table,
    counts,
    many,
    node,
    read,
    record,
    rule,
    stored,
    sums,
    ttl,
    viewer,
)
from keygraph.errors import ModelError


def mistakes(number: Any, annotation: Any = int, end: Any = ID, **options: Any) -> list[str]:
    """What is wrong with what a box keeps of its things."""

    @node("BOX#{box_id}", **options)
    class Box:
        box_id: ID
        things: Many[Thing]
        colored: Many[Colored]
        kept: annotation = number  # type: ignore[valid-type]

    @record("{box}", "THING#{thing_id}")
    class Thing:
        box: Box
        thing_id: ID
        weight: Decimal
        name: str
        until: end | None = ttl("until") if end is datetime else None  # type: ignore[valid-type]

    @record("{box}#{color}", "COLORED#{number}")
    class Colored:
        box: Box
        color: str
        number: int

    Box.__annotations__["kept"] = annotation.__name__
    Thing.__annotations__["until"] = f"{end.__name__} | None"
    with pytest.raises(ModelError) as wrong:
        Graph(Table("Boxes", partition_key="PK", sort_key="SK"), Box, Thing, Colored).check()
    return [f"{each.problem} {each.mend}" for each in wrong.value.mistakes]


def test_mistakes() -> None:
    """A model would promise a number that nobody keeps."""
    assert mistakes(counts("thing")) == [
        "'thing' is no list; its lists: things, colored. Write counts(\"things\")."
    ]
    assert mistakes(sums("things")) == [
        "'things' is no field of the items of a list; its lists: things, colored. Write sums(\"things.a_field\")."
    ]
    assert mistakes(counts("colored")) == [
        "colored needs the argument color: it is many lists. Name a list without such arguments."
    ]
    assert mistakes(sums("things.name")) == [
        "Thing has no field name that is stored as a number. Name a field of the items of things."
    ]
    assert mistakes(sums("things.weight")) == [
        "Thing.weight is of type decimal, and this of type int. Annotate it as a decimal."
    ]
    assert mistakes(counts("things"), Decimal) == [
        "counts() keeps an int or a Long, and it is of type decimal. Change its annotation."
    ]
    assert mistakes(counts("things"), end=datetime) == [
        "items of Thing expire, and nothing is written then. Remove it: read the list's totalCount or aggregate."
    ]
    assert mistakes(counts("things"), check=[rule({"kept": {"lte": 3}}, "Full.")]) == [
        "a rule in check= is about it, and writes of other items change it. Remove the rule."
    ]


def test_a_key_that_is_made_of_a_count() -> None:
    """Every item would move its node in the index."""
    by_size = Index("by-size", "gp", "gs")

    @node("BOX#{box_id}", by_size("BOXES", "SIZE#{kept}"))
    class Box:
        box_id: ID
        things: Many[Thing]
        kept: int = counts("things")

    @record("{box}", "THING#{thing_id}")
    class Thing:
        box: Box
        thing_id: ID

    graph = Graph(Table("Boxes", partition_key="PK", sort_key="SK", indexes=[by_size]), Box, Thing)
    assert [each.problem for each in graph.mistakes] == [
        "the key gs of Box is made of it, and would change with every item."
    ]


def test_a_key_that_two_types_have() -> None:
    """An item would be counted at a node of the other type."""

    @node("B#{box_id}")
    class Box:
        box_id: ID
        things: Many[Thing]
        kept: int = counts("things")

    @node("B#{box_id}")
    class Bag:
        box_id: ID

    @record("{owner}", "THING#{thing_id}")
    class Thing:
        owner: Box | Bag
        thing_id: ID

    graph = Graph(Table("Boxes", partition_key="PK", sort_key="SK"), Box, Bag, Thing, type_attribute="kind")
    assert [each.problem for each in graph.mistakes] == [
        "the key at Thing.owner does not show whether it belongs to Box."
    ]


def test_a_number_of_what_is_hidden() -> None:
    """Whoever sees none of a user's orders would see how many there are, and what they add up to."""

    def wrong(of_things: Any, of_graph: Any = (), **own: Any) -> list[str]:
        @node("B#{tenant}#{box_id}", access=[read()])
        class Box:
            tenant: str
            box_id: ID
            things: Many[Thing] = many(access=own.get("listed", ()))
            things_count: int = counts("things", access=own.get("count", ()))
            worth: int = sums("things.worth", access=own.get("sum", ()))

        @record("{box}", "THING#{number}", access=of_things)
        class Thing:
            box: Box
            number: int
            worth: int = stored(access=own.get("worth", ()))

        table = Table("Boxes", partition_key="PK", sort_key="SK")
        return [each.where for each in Graph(table, Box, Thing, access=of_graph).mistakes]

    both = ["Box.things_count", "Box.worth"]
    assert wrong([read()]) == []
    assert wrong([read(role="clerk")]) == both
    assert wrong([read(role="clerk")], count=[read()]) == ["Box.worth"]
    assert wrong([read(role="clerk")], count=[read()], sum=[read(role="clerk")]) == []
    assert wrong([read()], worth=[read(role="clerk")]) == ["Box.worth"]
    assert wrong([read()], listed=[read(role="clerk")]) == both
    # Whoever sees the box is behind the wall, as its things are.
    wall = [read(where={"tenant": viewer("tenant")})]
    assert wrong([read()], wall) == []
    assert wrong((), wall) == []
    assert wrong([read(where={"number": 1})], wall) == both
