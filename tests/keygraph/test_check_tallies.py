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
    Long,
    Many,
    Table,
    average,
    copy,
    counts,
    field,
    latest,
    many,
    maximum,
    minimum,
    node,
    rank,
    read,
    record,
    rule,
    sums,
    ttl,
    viewer,
)

by_town = Index("by-town", "gp", "gs")


def mistakes(number: Any, annotation: Any = int, end: Any = ID, **options: Any) -> list[str]:
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
    graph = Graph(Table("Boxes", partition_key="PK", sort_key="SK"), Box, Thing, Colored)
    return [f"{each.problem} {each.fix}" for each in graph.mistakes]


def test_mistakes() -> None:
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


def test_mistakes_of_averages() -> None:
    assert mistakes(average("things.weight"), float) == [
        "it is null while the list is empty. Annotate it with | None."
    ]
    assert mistakes(average("things.weight"), Decimal)[0] == (
        "average() keeps a float, and it is of type decimal. Change its annotation."
    )
    assert mistakes(average("things"), float) == [
        "'things' is no field of the items of a list; its lists: things, colored. Write average(\"things.a_field\")."
    ]
    assert mistakes(average("things.name"), float)[1:] == [
        "Thing has no field name that is stored as a number. Name a field of the items of things."
    ]


def test_a_condition_that_cannot_be_used() -> None:
    def wrong(where: Any) -> str:
        [mistake] = mistakes(counts("things", where=where))
        problem, _, fix = mistake.partition(". ")
        assert fix == 'Write it as a filter: where={"status": {"ne": "cancelled"}}.'
        return problem.removeprefix("where= cannot be used: ")

    assert (
        mistakes(counts("things", where={"name": "a", "box": {"in": ["1", "2"]}, "weight": {"gt": 1}})) == []
    )
    assert wrong({"color": "red"}) == "Thing has no field color"
    assert wrong({}) == "where={} is not a mapping of fields to comparisons"
    assert wrong({"weight": {"beginsWith": "1"}}).startswith("weight has no beginsWith; it has eq, ne, in")
    assert wrong({"weight": "heavy"}) == "weight.eq='heavy' is not a value of type decimal"
    assert (
        wrong({"name": viewer("sub")})
        == "it is the same for all viewers, so nothing is compared with a viewer's claims"
    )
    assert wrong({"name": "a", "not": {"name": "a"}}) == "no item meets it"


def test_a_key_that_is_made_of_a_count() -> None:
    by_size = Index("by-size", "gp", "gs")

    @node("BOX#{box_id}#{kept}", by_size("BOXES", "SIZE#{kept}#{late}"))
    class Box:
        box_id: ID
        things: Many[Thing]
        kept: int = counts("things")
        late: int | None = counts("things", kept="job")

    @record("{box}", "THING#{thing_id}")
    class Thing:
        box: Box
        thing_id: ID

    graph = Graph(Table("Boxes", partition_key="PK", sort_key="SK", indexes=[by_size]), Box, Thing)
    assert [each.problem for each in graph.mistakes] == [
        "the key of Box in the table is made of it, and would change with every item.",
        "the key of Box in by-size is made of it, and would change with every item.",
    ]


def test_a_key_that_two_types_have() -> None:
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


def test_mistakes_of_first_and_last_values() -> None:
    def wrong(value: Any, annotation: Any = "Decimal | None") -> list[str]:
        by_weight = Index("by-weight", "gp", "gs")

        @node("BOX#{box_id}")
        class Box:
            box_id: ID
            things: Many[Thing]
            light: Many[Thing] = many(index=by_weight)
            goods: Many[Good]
            heap: Many[Heaped]
            kept: annotation = value  # type: ignore[valid-type]

        @record("{box}", "THING#{weight:08.2f}#{name}", by_weight("{box}", "{weight:08.2f}"))
        class Thing:
            box: Box
            name: str
            weight: Decimal

        @record("{box}", "GOOD#{name}")
        class Good:
            box: Box
            name: str
            weight: Decimal

        @record("{box}#{shard}", "HEAPED#{weight:08.2f}", shards=2)
        class Heaped:
            box: Box
            weight: Decimal

        Box.__annotations__["kept"] = annotation
        table = Table("Boxes", partition_key="PK", sort_key="SK", indexes=[by_weight])
        return [f"{each.problem} {each.fix}" for each in Graph(table, Box, Thing, Good, Heaped).mistakes]

    fix = "Name a list in the table's own keys, of one type, "
    ordered = f"{fix}whose sort key begins with weight."
    unread = "when its item is removed, one consistent read cannot find the next one in this list. "
    assert wrong(maximum("things.weight")) == wrong(latest("goods.weight")) == []
    assert wrong(minimum("goods.weight")) == [
        f"goods is not ordered by weight, so the next value could not be found by one read. {ordered}"
    ]
    assert wrong(minimum("light.weight")) == wrong(maximum("heap.weight")) == [unread + ordered]
    assert wrong(latest("light.weight")) == [f"{unread}{fix}in one partition."]
    assert wrong(latest("goods.weight"), "Decimal") == [
        "it is null while the list is empty. Annotate it with | None."
    ]
    assert wrong(latest("goods.name")) == [
        "Good.name is of type string, and this of type decimal. Give both one type."
    ]
    assert wrong(latest("goods.color"))[0] == "Good has no field color. Name a field of the items of goods."
    assert wrong(latest("goods.weight", where={"name": "a"})) == [
        'it is kept of all items. Leave where= out, or write kept="job".'
    ]


def test_mistakes_of_numbers_over_shards() -> None:
    def wrong(number: Any = None, annotation: Any = "Long", of_node: Any = (), **further: Any) -> list[str]:
        by_kept = Index("by-kept", "kind", ("kept", "N"))

        @node("BOX#{box_id}", *of_node)
        class Box:
            box_id: ID
            things: Many[Thing]
            kept: annotation = number or counts("things", shards=3)  # type: ignore[valid-type]
            more: Long | None = further.get("more")
            rank: int | None = further.get("rank")

            @field(needs=further.get("needs", ()))
            def told(self) -> str:
                return ""

        @record("{box}", "THING#{thing_id}")
        class Thing:
            box: Box
            thing_id: ID
            weight: int = 1
            kept: Long | None = further.get("copied")

        Box.__annotations__["kept"] = annotation
        table = Table("Boxes", partition_key="PK", sort_key="SK", indexes=[by_kept])
        return [f"{each.where}: {each.problem} {each.fix}" for each in Graph(table, Box, Thing).mistakes]

    of_sum = sums("things.weight", shards=3)
    assert wrong() == wrong(average("things.weight", shards=50), "float | None") == wrong(of_sum) == []
    for number in (1, 51, True, 2.5, -3):
        found = wrong(counts("things", shards=number))
        assert (
            f"Box.kept: shards={number!r} is no number from 2 to 50. Write shards=10, for example." in found
        )
    assert wrong(counts("things", shards=3, kept="job"), "Long | None") == [
        "Box.kept: the job writes the node alone. Leave out shards=."
    ]
    assert wrong(of_sum, "int") == [
        "Box.kept: no item has the whole number, to refuse one of more than 32 bits. Annotate it as Long."
    ]
    assert wrong(more=sums("things.weight", shards=4)) == [
        "Box.kept: the numbers of Box are spread over 4 shards. Give all one number."
    ]
    assert wrong(more=sums("things.weight")) == [
        "Box.kept: more counts the same list, and every item would still change the node. "
        'Give more shards= too, or kept="job".'
    ]
    assert wrong(more=sums("things.weight", kept="job")) == []
    assert wrong(copied=copy("box.more")) == [
        "Box.kept: Thing.kept is copied from the node, which every write would still check. "
        'Give the copy kept="job", or leave out shards=.'
    ]
    assert wrong(copied=copy("box.kept", kept="job")) == [
        "Thing.kept: Box.kept is spread over shards. Name a field that items of Box have alone."
    ]
    fix = "Name what the method needs with @field(needs=…), without this field."
    for needs in (None, ("kept",)):
        assert wrong(needs=needs) == [
            f"Box.kept: the method told is called with what the node's item has of it. {fix}"
        ]
    assert wrong(rank=rank("kept")) == ["Box.rank: kept is spread over shards. Name another field."]
    of_index = Index("by-kept", "kind", ("kept", "N"))("BOX")
    assert wrong(of_node=[of_index]) == [
        "Box.kept: it stands in a key, and no item has the whole number. Take it out of the key, or leave out shards=."
    ]
    with pytest.raises(TypeError, match="a field has no option shards"):
        minimum("things.weight", shards=3)  # type: ignore[call-arg]


def test_mistakes_of_numbers_over_shards_that_others_use() -> None:
    """No condition, sum or rule is about a number that no item has."""

    @node("TOWN#{name}")
    class Town:
        name: ID
        boxes: Many[Box]
        kept_of_all: Long = sums("boxes.kept")
        full: int = counts("boxes", where={"kept": {"gte": 3}})

    @node(
        "BOX#{box_id}",
        by_town("{town}", "BOX#{box_id}"),
        access=[read(where={"kept": {"lt": 5}}), read(role="all")],
    )
    class Box:
        box_id: ID
        town: Town | None = None
        things: Many[Thing]
        kept: Long = counts("things", shards=3, access=[read()])

    @record("{box}", "THING#{thing_id}")
    class Thing:
        box: Box
        thing_id: ID

    made = Graph(Table("Boxes", partition_key="PK", sort_key="SK", indexes=[by_town]), Town, Box, Thing)
    problems = [f"{each.where}: {each.problem}" for each in made.mistakes]
    assert "Town.kept_of_all: Box.kept is spread over shards." in problems
    spread = "kept is spread over shards, and no item has the whole number"
    assert f"Town.full: where= cannot be used: {spread}." in problems
    assert any(spread in each and each.startswith("Box") for each in problems)
