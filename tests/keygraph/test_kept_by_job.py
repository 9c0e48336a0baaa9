"""What only the job keeps: mutations leave it as it is, clients cannot write it, and its age is a field beside it."""

from __future__ import annotations

from datetime import datetime
from decimal import Decimal
from typing import Any

import pytest
from graphql import GraphQLInputObjectType, GraphQLObjectType, build_schema

from keygraph import (
    ID,
    Graph,
    Index,
    Many,
    Table,
    copy,
    counts,
    minimum,
    node,
    read,
    record,
    rule,
    sums,
    ttl,
)
from keygraph.dynamo.actions import SetTo, UpdateItem
from keygraph.dynamo.items import Item
from keygraph.dynamo.store import Write
from keygraph.writing.requests import Change, Create, Delete, Put
from tests.conftest import ENGINES, MakeStore
from tests.keygraph.league import graph, member, player, team
from tests.keygraph.written import Written
from tests.schemas import schema_of

_TIME = "2026-01-02T03:04:05Z"
_COUNTED: Item = {"member_count": Decimal(7), "member_count_as_of": _TIME}
_SUMMED: Item = {"points": Decimal(70), "points_as_of": _TIME}


class League(Written):
    async def change(self, key: tuple[str, str], item: Item) -> None:
        changes = tuple(SetTo((name,), value) for name, value in item.items())
        await self.store.send(Write(UpdateItem(key, changes)))


@pytest.fixture
async def league(make_store: MakeStore) -> League:
    league = League(graph, await make_store(graph.table))
    await league.write(Create(team, {"team_id": "a", "name": "Ants"}))
    await league.write(Create(team, {"team_id": "b", "name": "Bees"}))
    await league.write(Create(player, {"player_id": "1"}))
    return league


def joins(of: str = "a", score: int | None = 5) -> Put:
    return Put(member, {"team": (of,), "player": ("1",), "score": score and Decimal(score)})


@pytest.mark.parametrize("engine", ENGINES)
async def test_mutations_leave_it_as_it_is(league: League) -> None:
    await league.write(joins())
    item = await league.item("TEAM#a", "TEAM#a")
    assert item is not None
    assert item["size"] == 1
    assert item.keys().isdisjoint({"member_count", "member_count_as_of", "stats"})
    await league.change(("TEAM#a", "TEAM#a"), {**_COUNTED, "stats": _SUMMED})
    await league.write(Change(team, ("a",), {"name": "Antlers"}))
    await league.write(Delete(member, ("a", "1")))
    item = await league.item("TEAM#a", "TEAM#a")
    assert item is not None
    assert (item["size"], item["name"], item["stats"]) == (0, "Antlers", _SUMMED)
    assert {name: item[name] for name in _COUNTED} == _COUNTED


@pytest.mark.parametrize("engine", ENGINES)
async def test_a_record_that_replaces_another_one_keeps_it(league: League) -> None:
    key = ("TEAM#a", "MEMBER#1")
    await league.write(joins())
    item = await league.item(*key)
    assert item is not None
    assert item.keys().isdisjoint({"team_name", "team_name_as_of"})
    await league.change(key, {"team_name": "Ants", "team_name_as_of": _TIME})
    await league.write(joins(score=9))
    item = await league.item(*key)
    assert item is not None
    assert (item["team_name"], item["team_name_as_of"]) == ("Ants", _TIME)
    assert (item["score"], item["revision"]) == (9, 2)


@pytest.mark.parametrize("engine", ENGINES)
async def test_an_old_value_is_no_problem_and_one_of_another_type_is(league: League) -> None:
    await league.write(joins())
    await league.change(("TEAM#a", "TEAM#a"), {**_COUNTED, "stats": _SUMMED})
    assert await league.wrong() == []
    await league.change(("TEAM#a", "TEAM#a"), {"member_count": "seven", "member_count_as_of": "today"})
    assert [line.partition(":")[0] for line in await league.wrong()] == ["unfit Team"] * 2


def test_its_age_is_a_field_beside_it() -> None:
    schema = build_schema(schema_of(graph).as_str())
    made = schema.type_map["Team"]
    assert isinstance(made, GraphQLObjectType)
    assert [each for each in made.fields if each != "members"] == [
        "id",
        "teamId",
        "name",
        "size",
        "memberCount",
        "memberCountAsOf",
        "mean",
        "meanAsOf",
        "points",
        "pointsAsOf",
    ]
    assert {name: str(each.type) for name, each in made.fields.items() if "ount" in name} == {
        "memberCount": "Int",
        "memberCountAsOf": "DateTime",
    }
    assert (
        made.fields["memberCount"].description == "The number of `members`, as it was at `memberCountAsOf`."
    )
    assert made.fields["memberCountAsOf"].description == (
        "When `memberCount` was right; null if it was never computed."
    )
    assert graph.types["Team"].fields["points_as_of"].attribute == ("stats", "points_as_of")
    inputs = [each for each in schema.type_map.values() if isinstance(each, GraphQLInputObjectType)]
    written = [each for each in inputs if each.name.endswith("Input")]
    names = {"memberCount", "memberCountAsOf", "points", "pointsAsOf", "teamName", "teamNameAsOf"}
    assert written
    assert not any(names & each.fields.keys() for each in written)


@pytest.mark.parametrize(("case", "attribute"), [("snake", "kept_as_of"), ("camel", "keptAsOf")])
def test_the_attribute_of_its_age_follows_the_case(case: str, attribute: str) -> None:
    assert checked(counts("things", kept="job"), attribute_case=case).types["Box"].fields[
        "kept_as_of"
    ].attribute == (attribute,)


# --- Mistakes ---------------------------------------------------------------------------------------------


def checked(number: Any, annotation: str = "int | None", other: Any = None, **options: Any) -> Graph:
    index = Index("by-size", "gp", "gs")

    @node("BOX#{box_id}", *options.pop("keys", ()), check=options.pop("rules", ()))
    class Box:
        box_id: ID
        things: Many[Thing]
        kept: int | None = number

    @record("{box}", "THING#{thing_id}")
    class Thing:
        box: Box
        thing_id: ID
        weight: int = 1
        kept: str | None = other
        until: datetime | None = ttl("until")

    Box.__annotations__["kept"] = annotation
    table = Table("Boxes", partition_key="PK", sort_key="SK", indexes=[index])
    return Graph(table, Box, Thing, **options)


def mistakes(*args: Any, **options: Any) -> list[str]:
    return [f"{each.where}: {each.problem} {each.fix}" for each in checked(*args, **options).mistakes]


by_size = Index("by-size", "gp", "gs")


def test_mistakes() -> None:
    assert mistakes(counts("things", kept="job")) == []
    assert mistakes(minimum("things.weight", kept="stream"))[0] == (
        'Box.kept: the stream keeps counts, sums and averages. Write kept="transaction" or kept="job".'
    )
    assert mistakes(sums("things.weight", kept="stream"), "int") == [
        "Box.kept: it is null until keygraph follow has computed it. Annotate it with | None.",
        "Box.kept: items of Thing expire, and nothing is written then. Remove it: read the list's totalCount or aggregate.",
    ]
    assert mistakes(counts("things", kept="nightly"))[0] == (  # type: ignore[arg-type]  # no such word
        'Box.kept: kept=\'nightly\' is unknown. Write kept="transaction", kept="job" or kept="stream".'
    )
    assert mistakes(counts("things", kept="job"), "int") == [
        "Box.kept: it is null until the job has run. Annotate it with | None."
    ]
    assert mistakes(counts("things", kept="job"), rules=[rule({"kept": {"lte": 3}}, "Full.")]) == [
        "Box.kept: a rule in check= is about it, and writes of other items change it. Remove the rule."
    ]
    assert mistakes(counts("things", kept="job"), keys=[by_size("BOXES", "SIZE#{kept}")]) == [
        "Box.kept: the key of Box in by-size is made of it, and would change with every item. "
        'Store it in the key of an index as a number: Index("…", "…", ("kept", "N")).'
    ]
    keyed = {"other": copy("thing_id", kept="job")}
    assert mistakes(counts("things", kept="job"), **keyed) == [
        "Thing.kept: 'thing_id' is no field of the node at an end; its ends: box. Write copy(\"an_end.a_field\")."
    ]


def test_a_field_with_the_name_of_its_age() -> None:
    @node("BOX#{box_id}")
    class Box:
        box_id: ID
        things: Many[Thing]
        kept: int | None = counts("things", kept="job")
        kept_as_of: str | None = None

    @record("{box}", "THING#{thing_id}")
    class Thing:
        box: Box
        thing_id: ID

    graph = Graph(Table("Boxes", partition_key="PK", sort_key="SK"), Box, Thing)
    assert [f"{each.where}: {each.problem} {each.fix}" for each in graph.mistakes] == [
        "Box.kept_as_of: the time of kept is stored in it. Rename one of them."
    ]


def test_who_may_not_read_it_may_not_read_its_age() -> None:
    @node("BOX#{box_id}", access=[read()])
    class Box:
        box_id: ID
        things: Many[Thing]
        kept: int | None = counts("things", kept="job", access=[read(role="staff")])

    @record("{box}", "THING#{thing_id}", access=[read(role="staff")])
    class Thing:
        box: Box
        thing_id: ID

    graph = Graph(Table("Boxes", partition_key="PK", sort_key="SK"), Box, Thing).check()
    access = graph.types["Box"].access
    assert access is not None
    assert access.is_restricted("kept_as_of")
    rules = [[grant.rule for grant in group] for group in access.grants("read", "kept_as_of")]
    assert rules == [[read(role="staff")]]


def test_what_it_would_tell_of_hidden_items_is_refused() -> None:
    @node("BOX#{box_id}", access=[read()])
    class Box:
        box_id: ID
        secret: str | None = None
        things: Many[Thing]
        kept: int | None = counts("things", kept="job")

    @record("{box}", "THING#{thing_id}", access=[read(role="staff")])
    class Thing:
        box: Box
        thing_id: ID

    graph = Graph(Table("Boxes", partition_key="PK", sort_key="SK"), Box, Thing)
    assert [each.problem for each in graph.mistakes] == [
        "it counts all of things, also what access rules hide from a viewer, and has no rules itself."
    ]
