"""Mistakes of ends of several types: members and their keys."""

from __future__ import annotations

from datetime import date

import pytest

from keygraph import ID, node, record, stored
from keygraph.dynamo.table import IndexKey
from tests.keygraph.checked import mistakes
from tests.keygraph.union_members import Company, Organization, Person, User


def test_members_that_cannot_be() -> None:
    @record("{user}", "LOG#{day}")
    class Log:
        user: User
        day: date

    @node("POST#{post_id}")
    class Post:
        post_id: ID
        a: User | Log
        b: User | str
        c: User | Person

    assert mistakes(Post, User, Organization, Log) == [
        "Post.a: Log is not a node. Each member of a union is a node that the graph lists.",
        "Post.b: str is not a node. Each member of a union is a node that the graph lists.",
        "Post.c: Person is not listed in the graph. Each member of a union is a node that the graph lists.",
    ]


def template_mistakes(member: type, *keys: str | IndexKey) -> list[str]:
    """What `check` says of a node with an end that is a user or another type."""
    annotations = {"post_id": ID, "owner": User | member}
    cls = type("Post", (), {"__annotations__": annotations, "__module__": __name__})
    return mistakes(node(*keys)(cls), User, member)


def _member(*keys: str, **options: bool) -> type:
    @node(*keys, **options)  # type: ignore[arg-type]
    class Club:
        club_id: ID
        user_id: ID
        number: int

    return Club


@pytest.mark.parametrize(
    ("keys", "said"),
    [
        (
            ("USER#{club_id}",),
            "Post.owner: the keys of User and Club are the same, but their fields have different names. "
            "Give the key fields the same names, or give the keys different literal text.",
        ),
        (
            ("USER#{user_id}", "CLUB#{user_id}"),
            "Post.owner: a partition key can be of User and Club: USER#{user_id} and USER#{user_id}. "
            "Give each its own literal prefix, or make the keys the same.",
        ),
        (
            ("{club_id}#X",),
            "Post.owner: a partition key can be of User and Club: USER#{user_id} and {club_id}#X. "
            "Give each its own literal prefix, or make the keys the same.",
        ),
        (
            ("CLUB#{club_id}", "{number}"),
            "Post.owner: the partition key of Club does not identify it, so it does not show which node it is. "
            "Put all its key fields into its partition template.",
        ),
    ],
)
def test_members_that_are_not_told_apart(keys: tuple[str, ...], said: str) -> None:
    assert said in template_mistakes(_member(*keys), "POST#{post_id}")


@pytest.mark.parametrize(
    ("key", "said"),
    [
        ("{owner.club_id}", "{owner.club_id} is not a field of User. Its fields are user_id."),
        (
            "{owner.user_id}",
            "{owner.user_id} names no key field of Club. A template can name club_id.",
        ),
    ],
)
def test_a_field_that_not_all_members_have(key: str, said: str) -> None:
    assert template_mistakes(_member("CLUB#{club_id}"), f"POST#{key}#{{post_id}}") == [
        f'Post: the template "POST#{key}#{{post_id}}": {said}'
    ]


def test_a_field_that_is_written_differently() -> None:
    @node("SEAT#{number:03d}")
    class Seat:
        number: int

    @node("DESK#{number:04d}")
    class Desk:
        number: int

    @record("AT#{place.number}", "{day}")
    class Booking:
        place: Seat | Desk
        day: date

    assert mistakes(Seat, Desk, Booking) == []

    @node("ROOM#{number}")
    class Room:
        number: ID

    @record("AT#{place.number}", "{day}")
    class Meeting:
        place: Seat | Room
        day: date

    assert mistakes(Seat, Room, Meeting) == [
        'Meeting: the template "AT#{place.number}": {place.number} is written differently in the keys of '
        "Seat and Room. Give it one type and one format in all of them."
    ]


def test_alike_keys_need_a_type() -> None:
    @record("{owner}", "SITE#{site_id}")
    class Site:
        site_id: ID
        owner: Person | Company

    assert mistakes(Person, Company, Site, type_attribute=None) == [
        "Person: its items cannot be distinguished from those of Company: they have no type value, and "
        "a key such as ACCOUNT#a / ACCOUNT#a can belong to both (ACCOUNT#{login} / ACCOUNT#{login} and ACCOUNT#{login} / ACCOUNT#{login}). "
        "Give one of them its own type value or literal prefix."
    ]

    @node("ACCOUNT#{login}", item=False)
    class Ghost:
        login: ID

    @record("{owner}", "SITE#{site_id}")
    class Haunt:
        site_id: ID
        owner: Person | Ghost

    assert mistakes(Person, Ghost, Haunt) == [
        "Haunt.owner: the keys of Person and Ghost are alike, and there is no item of Ghost that tells its type. "
        "Give Ghost a key of its own."
    ]


def test_one_attribute_holds_the_key() -> None:
    @node("POST#{post_id}")
    class Post:
        post_id: ID
        owner: User | Organization = stored(user_id="UserId", number="OrgNumber")

    assert mistakes(Post, User, Organization) == [
        "Post.owner: one attribute holds the key of a User or Organization, which tells the type. "
        'Write stored("name").'
    ]


def test_all_mistakes_are_told_at_once() -> None:
    @node("POST#{owner}#{post_id}")
    class Post:
        post_id: ID
        owner: User | Member
        editor: User | Member
        reader: User | Person

    @node("USER#{member_id}")
    class Member:
        member_id: ID

    found = mistakes(Post, User, Member, Person)
    assert [mistake.partition(":")[0] for mistake in found] == ["Post.owner", "Post.editor"]
