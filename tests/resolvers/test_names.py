"""Mistakes of names: those of the schema that are one, that it needs itself, or that are none of GraphQL."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import date, datetime
from enum import Enum
from typing import Any

import pytest

from keygraph import (
    ID,
    Graph,
    Index,
    Many,
    ModelError,
    One,
    Reach,
    Table,
    edge,
    field,
    many,
    node,
    one,
    reach,
    record,
    stored,
)
from keygraph.draft.names import TAKEN_FIELDS
from keygraph.names import RESERVED_TYPES, snake
from keygraph_resolvers import check
from keygraph_resolvers.naming.names import (
    EDGE_FIELDS,
    LIST_ARGUMENTS,
    connection_prefix,
    shared_name,
)
from keygraph_resolvers.naming.scalar_values import SCALARS
from tests.keygraph.checked import TABLE, User, by_date
from tests.keygraph.checked import mistakes as mistakes_of
from tests.keygraph.union_members import Company, Organization, Person


def mistakes(*types: type, **options: Any) -> list[str]:
    """Every mistake of a graph of those types, those of names included."""
    return mistakes_of(*types, check=check, writes=True, **options)


def test_two_generated_names_that_are_one() -> None:
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

    table = Table("Tests", partition_key="PK", sort_key="SK", indexes=[by_date, Index("ByName", "NPK")])
    assert mistakes(Post) == [
        "Post: two of its fields, line_1 and line1, are called line1 in the schema. Rename one."
    ]
    assert mistakes(Person, People, table=table) == [
        "the root: 3 fields are called people in the schema: the People by its key, "
        "the list of Person in the index ByDate, the list of Person in the index ByName. "
        'Rename all but one: lists="…" names a list, and lists=False removes it.',
        "People: its mutation createPeople has the name of one of Person. Rename one, or use writes=False.",
    ]


def test_the_names_of_ids_that_are_one_in_the_schema() -> None:
    @node("POST#{post_id}")
    class Post:
        post_id: ID
        ID: str

    assert [told.split(":")[0] for told in mistakes(Post)] == ["Post.ID"]


def test_reserved_names() -> None:
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

    fix = "Rename it."
    assert mistakes(PageInfo, TrainConnection) == [
        f"PageInfo: PageInfo is a reserved name of the schema. {fix}",
        f"TrainConnection: TrainConnection is a reserved name of the schema. {fix}",
    ]
    assert mistakes(User, PageInfo, Visit)[1:] == [
        f"Visit.{name}: `{name}` is a field that every edge of a connection has. "
        "Rename the field, and name its attribute with stored()."
        for name in ("cursor", "node")
    ]


def test_fields_with_the_names_of_fields_that_every_input_has() -> None:
    @node("P#{payment_id}")
    class Payment:
        payment_id: ID
        idempotency_key: str

    @node("P#{payment_id}", writes=False)
    class ReadPayment:
        payment_id: ID
        idempotency_key: str

    assert mistakes(Payment) == [
        "Payment.idempotencyKey: `idempotencyKey` is a field of every mutation's input. "
        "Rename the field, and name its attribute with stored()."
    ]
    assert mistakes(ReadPayment) == []


def test_a_class_with_the_name_of_a_generated_input() -> None:
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
        "Post.size: Größe is not a valid GraphQL name. Rename it.",
        "Post.größe: it is not a valid GraphQL name. Rename it.",
        "Post.answer: Answer.true is not a valid GraphQL name. Rename it.",
    ]


def test_colliding_arguments() -> None:
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

    fix = "Rename the key template's field, and name its attribute with stored()."
    assert mistakes(User, Match, Goal) == [
        "the filter of Goal: two of its fields are called userId in the schema. Rename one.",
        f"Match.goals: two of its arguments are called first. {fix}",
        f"Match.goals: two of its arguments are called userId. {fix}",
        f"Match.goals: two of its arguments are called direction. {fix}",
    ]


def test_a_field_that_stands_in_a_key_in_two_formats() -> None:
    @node("TENANT#{tenant_id}")
    class Tenant:
        tenant_id: ID
        entries: Many[Entry] = many()

    @record("{tenant}#{at:%Y-%m-%d}", "{at}")
    class Entry:
        tenant: Tenant
        at: datetime

    assert mistakes(Tenant, Entry) == [
        "Tenant.entries: two of its arguments are called at, because one field is there in two formats, "
        '{at:%Y-%m-%d} and {at}. Replace one with a method: @field(needs=("at",)), with a name of its own.'
    ]


def test_a_method_with_the_name_of_a_field_in_the_schema() -> None:
    @node("POST#{post_id}")
    class Post:
        post_id: ID
        fullTitle: str  # noqa: N815

        @field(needs=("post_id",))
        def full_title(self) -> str:
            return ""

    assert mistakes(Post, table=TABLE) == [
        "Post: two of its fields, fullTitle and full_title, are called fullTitle in the schema. Rename one."
    ]


def test_a_field_called_id() -> None:
    @node("POST#{id}")
    class Post:
        id: ID

    assert mistakes(Post) == [
        'Post.id: `id` is the global id of every record. Rename the field: post_id: ID = stored("id").'
    ]


def test_an_end_a_list_or_a_method_called_id() -> None:
    @node("POST#{post_id}")
    class Post:
        post_id: ID
        id: User

    @node("TAG#{tag_id}")
    class Tag:
        tag_id: ID

        @field(needs=("tag_id",))
        def id(self) -> str:
            return self.tag_id

    assert any(
        told.startswith("Post.id: `id` is the global id of every record.") for told in mistakes(Post, User)
    )
    assert any(told.startswith("Tag.id: `id` is the global id of every record.") for told in mistakes(Tag))


def test_names_that_collide() -> None:
    @node("UO#{user_id}")
    class UserOrOrganization:
        user_id: ID
        a: User | Organization
        b: User | PersonOrCompany
        c: User | Person | Company
        a_id: str | None

    @node("PC#{user_id}")
    class PersonOrCompany:
        user_id: ID

    found = mistakes(UserOrOrganization, PersonOrCompany, User, Organization, Person, Company)
    assert found == [
        "the union of User and Organization: the schema's name UserOrOrganization is that of UserOrOrganization too. "
        "Rename one.",
        "the union of User and Person and Company: the schema's name UserOrPersonOrCompany is that of the union of "
        "User and PersonOrCompany too. Rename one.",
    ]


def test_a_list_whose_name_is_none() -> None:
    @node("T#{thing_id}", by_date("D", "{number}", lists="1st"))
    class Thing:
        thing_id: ID
        number: int

    assert mistakes(Thing) == [
        "the root: '1st', a list or finder of Thing, is not a valid GraphQL name. Rename it."
    ]


def test_arguments_of_a_method_and_fields_of_a_nested_class_that_are_one() -> None:
    @dataclass
    class Size:
        max_width: int
        maxWidth: int  # noqa: N815  # the mistake

    @node("T#{thing_id}")
    class Thing:
        thing_id: ID
        size: Size

        @field(needs=("thing_id",))
        def name(self, with_size: bool, withSize: bool) -> str:  # noqa: N803  # the mistake
            return self.thing_id

    assert mistakes(Thing) == [
        "Thing.size: two of its fields, max_width and maxWidth, are called maxWidth in the schema. Rename one.",
        "Thing.name: two of its arguments, with_size and withSize, are called withSize in the schema. Rename one.",
    ]


def test_mistakes_of_names_are_told_with_all_others() -> None:
    @node("POST#{post_id}")
    class Post:
        post_id: ID
        id: str
        title: str
        heading: str = stored("title")

    @node("A#{a_id}", "X")
    class Query:
        a_id: ID
        users: Many[User] = many()

    graph = Graph(TABLE, Post, Query, User)
    with pytest.raises(ModelError) as error:
        check(graph)
    assert [(mistake.kind, mistake.where) for mistake in error.value.mistakes] == [
        ("attribute-twice", "Post.heading"),
        ("no-path", "Query.users"),
        ("reserved-name", "Query"),
        ("field-called-id", "Post.id"),
    ]


def test_a_draft_takes_no_name_that_the_schema_needs() -> None:
    assert {scalar.name for scalar in SCALARS.values()} <= RESERVED_TYPES
    assert {*map(snake, LIST_ARGUMENTS), *EDGE_FIELDS, "id"} <= TAKEN_FIELDS


def test_names_of_lists_have_the_owner_once() -> None:
    by_checksum = Index("by-checksum", "checksum", "PK", projection="KEYS_ONLY")
    by_user = Index("by-user", "UserKey", "PK")

    @node("USER#{user_id}")
    class User:
        user_id: ID
        posts: Many[Post] = many(index=by_user)
        user_posts: Many[Post] = many(index=by_user)
        user_drafts: Many[Post] = many(index=by_user)
        users_pages: Many[Post] = many(index=by_user)
        users: Many[Post] = many(index=by_user)

    @node("POST#{post_id}", by_user("{user}"), by_checksum(lists="posts_with_checksum"))
    class Post:
        post_id: ID
        user: User
        checksum: str

    table = Table("Posts", partition_key="PK", sort_key="SK", indexes=[by_checksum, by_user])
    made = check(Graph(table, User, Post))
    prefixes = {path.name: connection_prefix(path) for path in made.paths if path.owner is not None}
    assert prefixes == {
        "posts": "UserPosts",
        # UserPosts is that of `posts`.
        "user_posts": "UserUserPosts",
        "user_drafts": "UserDrafts",
        "users_pages": "UsersPages",
        # No more than the type: `Users` beside the root's `User` would be hard to tell from it.
        "users": "UserUsers",
    }
    assert [shared_name(path, "Where") for path in made.root_lists] == ["PostsWithChecksumWhere"]


def test_names_that_mutations_need() -> None:
    @node("USER#{user_id}")
    class User:
        user_id: ID

    @record("{user}", "TO#{number}")
    class UserTo:
        user: User
        number: int

    @record("{user}", "EDGE#{number}")
    class OnEdges:
        user: User
        number: int

    assert mistakes(User, UserTo) == [
        "the input of moveUserTo: the schema's name MoveUserToInput is that of the new key of moveUser too. Rename one."
    ]
    assert mistakes(User, OnEdges) == [
        "what becomes of a deleted node's edges: the schema's name OnEdges is that of OnEdges too. Rename one."
    ]


def test_clashes_of_generated_names_are_found_beside_other_mistakes() -> None:
    @node("FAN#{fan_id}")
    class Fan:
        fan_id: ID
        fans: Many[Fan]
        friends: Reach[Fan] = reach("fans", depth=2)

        @field(needs=("fan_id",))
        def broken(self) -> Broken:
            raise NotImplementedError

    @record("{fan}", "TO#{number}")
    class FanTo:
        fan: Fan
        number: int

    @node("BROKEN#{nothing}")
    class Broken:
        broken_id: ID

    assert mistakes(Fan, FanTo, Broken) == [
        'Broken: the template "BROKEN#{nothing}": {nothing} is not a field of Broken. Its fields are broken_id.',
        "Fan.fans: there is no path to Fan: Fan has no end that is a Fan. "
        "Give Fan an index whose partition template contains that end.",
        "the input of moveFanTo: the schema's name MoveFanToInput is that of the new key of moveFan too. Rename one.",
    ]
