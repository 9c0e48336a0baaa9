"""Mistakes of names: those of the schema that are one, that it needs itself, or that are none of GraphQL."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import date, datetime
from enum import Enum

from keygraph import ID, Index, Many, One, Table, edge, field, many, node, one, record, stored
from tests.keygraph.checked import TABLE, User, by_date, mistakes


def test_two_generated_names_that_are_one() -> None:
    """The schema could not be built, and say so in words that are not the model's."""

    @node("ORDER#{order_id}")
    class Order:
        order_id: ID
        lines: Many[Line] = many()

    @record("{order}", "LINE#{number}")
    class Line:
        order: Order
        number: int

    @node("ORDERS", "{order_lines_id}")
    class OrderLines:
        order_lines_id: ID

    told = mistakes(Order, Line, OrderLines)
    assert (
        "the root's lists of OrderLines: the schema's name OrderLinesConnection is that of Order.lines too. Rename one."
        in told
    )
    assert (
        "the root's lists of OrderLines: the schema's name OrderLinesEdge is that of Order.lines too. Rename one."
        in told
    )


def test_a_class_with_the_name_of_another() -> None:
    """An enum would be taken for a type."""

    def user_enum() -> type:
        class User(Enum):
            A = "a"

        return User

    kind = user_enum()

    @node("POST#{post_id}")
    class Post:
        post_id: ID
        user: kind  # type: ignore[valid-type]

    assert mistakes(User, Post) == ["Post.user: two types are called User. Rename one."]


def test_fields_that_are_one_in_the_schema() -> None:
    """One of the two fields would be lost."""

    @node("POST#{post_id}")
    class Post:
        post_id: ID
        line_1: str
        line1: str

    @node("Users#{person_id}", by_date("USERS", "{person_id}"), Index("ByName", "NPK")("NAMES"))
    class Person:
        person_id: ID

    @node("USERS#{users_id}")
    class People:
        users_id: ID

    mend = "Rename one; a list is named by lists=, or left out by lists=False."
    table = Table("Tests", partition_key="PK", sort_key="SK", indexes=[by_date, Index("ByName", "NPK")])
    assert mistakes(Post) == [f"Post: two of its fields are called line1 in the schema. {mend}"]
    assert (
        mistakes(Person, People, table=table)
        == [f"the root: two of its fields are called people in the schema. {mend}"] * 2
    )


def test_the_names_of_ids_that_are_one_in_the_schema() -> None:
    """A field `ID` would be the global id's name."""

    @node("POST#{post_id}")
    class Post:
        post_id: ID
        ID: str

    assert [told.split(":")[0] for told in mistakes(Post)] == ["Post.ID"]


def test_reserved_names() -> None:
    """The schema could not be built."""

    @node("PAGE#{page_id}")
    class PageInfo:
        page_id: ID

    @node("C#{connection_id}")
    class TrainConnection:
        connection_id: ID

    @edge("{user}", "{page}")
    class Visit:
        user: User
        page: PageInfo
        node: str
        cursor: str

    mend = "Rename it."
    assert mistakes(PageInfo, TrainConnection) == [
        f"PageInfo: PageInfo is a name that the schema needs itself. {mend}",
        f"TrainConnection: TrainConnection is a name that the schema needs itself. {mend}",
    ]
    assert mistakes(User, PageInfo, Visit)[1:] == [
        f"Visit.{name}: `{name}` is a field that every edge of a connection has. "
        "Name the field otherwise, with stored() for its attribute."
        for name in ("cursor", "node")
    ]


def test_a_class_with_the_name_of_a_generated_input() -> None:
    """A nested class `DateRange` would be taken for the range of a date argument."""

    @dataclass
    class DateRange:
        start: date
        end: date

    @node("HOTEL", "{opened}#{hotel_id}")
    class Hotel:
        hotel_id: ID
        opened: date
        season: DateRange

    assert len(mistakes(Hotel)) == 1
    assert "DateRange" in mistakes(Hotel)[0]


def test_names_that_are_no_names_of_graphql() -> None:
    """The schema could not be built."""

    class Größe(Enum):
        KLEIN = "k"

    class Answer(Enum):
        true = "y"
        NO = "n"

    @node("POST#{post_id}")
    class Post:
        post_id: ID
        größe: str
        size: Größe
        answer: Answer

    assert mistakes(Post) == [
        "Post.size: Größe is no name of GraphQL. Rename it.",
        "Post.größe: it is no name of GraphQL. Rename it.",
        "Post.answer: Answer.true is no name of GraphQL. Rename it.",
    ]


def test_colliding_arguments() -> None:
    """A list would have two arguments of one name, of which one is lost."""

    @node("MATCH#{match_id}")
    class Match:
        match_id: ID
        goals: Many[Goal] = many()
        last_goal: One[Goal] = one()

    @record("{match}", "GOAL#{first}#{user_id}#{user.user_id}#{direction}")
    class Goal:
        match: Match
        first: int
        user_id: int = stored("player")
        user: User
        direction: str

    mend = "Name the field of the key template otherwise, with stored() for its attribute."
    assert mistakes(User, Match, Goal) == [
        "the filter of Goal: two of its fields are called userId in the schema. "
        "Rename one; a list is named by lists=, or left out by lists=False.",
        f"Match.goals: two of its arguments are called first. {mend}",
        f"Match.goals: two of its arguments are called userId. {mend}",
        f"Match.goals: two of its arguments are called direction. {mend}",
        f"Match.last_goal: two of its arguments are called userId. {mend}",
    ]


def test_a_field_that_stands_in_a_key_in_two_formats() -> None:
    """Whoever partitions by day would be told to rename a field that is there once."""

    @node("TENANT#{tenant_id}")
    class Tenant:
        tenant_id: ID
        entries: Many[Entry] = many()

    @record("{tenant}#{at:%Y-%m-%d}", "{at}")
    class Entry:
        tenant: Tenant
        at: datetime

    assert mistakes(Tenant, Entry) == [
        "Tenant.entries: two of its arguments are called at, since one field stands there in two formats, "
        '{at:%Y-%m-%d} and {at}. Put a method in the place of one: @field(needs=("at",)), with a name of its own.'
    ]


def test_a_method_with_the_name_of_a_field_in_the_schema() -> None:
    """The method's field would replace the stored one."""

    @node("POST#{post_id}")
    class Post:
        post_id: ID
        fullTitle: str  # noqa: N815

        @field(needs=("post_id",))
        def full_title(self) -> str:
            return ""

    assert mistakes(Post, table=TABLE) == [
        "Post: two of its fields are called fullTitle in the schema. "
        "Rename one; a list is named by lists=, or left out by lists=False."
    ]
