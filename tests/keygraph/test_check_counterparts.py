"""Mistakes of `mirror=` and `counterpart=`. Each says the type and the fix."""

from __future__ import annotations

from datetime import date, datetime
from typing import Any

from keygraph import ID, Format, Many, Table, edge, many, node, record, stored
from tests.keygraph.checked import by_date, mistakes


@node("USER#{user_id}")
class User:
    user_id: ID
    joined: date


@node("CLUB#{club_id}")
class Club:
    club_id: ID


@edge("{user}", "CLUB#{club.club_id}", counterpart="Member")
class Membership:
    user: User
    club: Club
    since: date


@edge("{club}", "USER#{user.user_id}")
class Member:
    user: User
    club: Club
    since: date
    badge: str | None


@edge("{user}", "TAUGHT#{club.club_id}", counterpart="Teacher", writes=True)
class Taught:
    user: User
    club: Club


@edge("{club}", "TEACHER#{user.user_id}")
class Teacher:
    user: User
    club: Club
    subject: str
    hours: int = 0
    room: str | None


@edge("{user}", "TAUGHT#{club.club_id}", counterpart="Teacher", type="Taught", writes=["update", "delete"])
class TaughtByTeacher:
    user: User
    club: Club


# --- Mirrors ------------------------------------------------------------------------------------------


def test_what_is_no_edge_has_neither() -> None:
    untyped: Any = node
    untyped_record: Any = record

    @untyped("TEAM#{team_id}", mirror=True)
    class Team:
        team_id: ID

    @untyped_record("{user}", "NOTE#{written}", counterpart="Member")
    class Note:
        user: User
        written: date

    assert mistakes(Team, User, Note) == [
        "Team: a node has no mirror. Only edges can have one: remove it, or declare an edge.",
        "Note: a record has no counterpart. Only edges can have one: remove it, or declare an edge.",
    ]


def test_a_mirror_between_two_types_of_nodes() -> None:
    @edge("{user}", "CLUB#{club.club_id}", mirror=True)
    class Fan:
        user: User
        club: Club

    assert mistakes(User, Club, Fan) == [
        "Fan: its ends are a User and a Club, which cannot be swapped. A mirror joins two nodes of one type; "
        'name another edge type: counterpart="…".'
    ]


def test_a_mirror_whose_ends_are_one_attribute() -> None:
    @edge("{user}", "FRIEND#{friend.user_id}", mirror=True)
    class Friend:
        user: User = stored("who")
        friend: User = stored("who")

    assert mistakes(User, Friend) == [
        "Friend: user and friend are stored in the same attributes, so its key is the same in both orders. "
        "Give each end its own attributes with stored()."
    ]


def test_a_mirror_whose_exchanged_key_loses_something() -> None:
    @node("DAY#{at:minute}")
    class Minute:
        at: datetime

    @edge("DAY#{first.at:minute}", "NEXT#{second.at:%Y-%m}", mirror=True)
    class Next:
        first: Minute
        second: Minute

    formats = {"minute": Format(lambda value: value.strftime("%H%M"))}
    assert (
        "Next: with its ends exchanged its key cannot be rendered: of second it tells less than the key holds. "
        "Use the same lossless format for both ends." in mistakes(Minute, Next, formats=formats)
    )


def test_a_mirror_with_a_counterpart() -> None:
    @edge("{user}", "FRIEND#{friend.user_id}", mirror=True, counterpart="Membership")
    class Friend:
        user: User
        friend: User

    @edge("{club}", "USER#{user.user_id}", counterpart="Friend")
    class Seat:
        user: User
        club: Club

    assert mistakes(User, Club, Membership, Member, Friend, Seat) == [
        "Friend: it is mirrored, and Membership is its counterpart. An edge can have only one of the two: remove one.",
        "Seat: its counterpart Friend is mirrored. An edge can have only one of the two: remove one.",
    ]


def test_two_lists_of_a_mirror_that_are_one() -> None:
    @node("PERSON#{person_id}")
    class Person:
        person_id: ID
        friends: Many[Friend] = many()
        friend_of: Many[Friend] = many(at="friend")

    @edge("{person}", "FRIEND#{friend.person_id}", mirror=True)
    class Friend:
        person: Person
        friend: Person

    assert mistakes(Person, Friend) == [
        "Person.friend_of: it is the list friends once more: Friend is mirrored, the same from both ends. "
        "Remove one of them."
    ]


# --- Counterparts -------------------------------------------------------------------------------------


def named(counterpart: str) -> type:
    @edge("{club}", "SEAT#{user.user_id}", counterpart=counterpart)
    class Seat:
        user: User
        club: Club

    return Seat


def test_a_counterpart_that_cannot_be_one() -> None:
    assert mistakes(User, Club, named("Chair")) == [
        "Seat: its counterpart Chair is not listed in the graph. List it, or name another one."
    ]
    assert mistakes(User, Club, named("Seat")) == [
        "Seat: it is named as its own counterpart. Use mirror=True if the ends are swapped, "
        "or name the other edge type."
    ]
    assert mistakes(User, Club, named("Club")) == ["Seat: its counterpart Club is a node. Name an edge type."]


def test_a_counterpart_that_names_a_third_or_is_named_twice() -> None:
    assert mistakes(User, Club, Membership, Member, named("Membership")) == [
        "Seat: its counterpart Membership has another one, Member. "
        "Counterparts come in pairs: let both name each other."
    ]
    assert mistakes(User, Club, Membership, Member, named("Member")) == [
        "Membership: Member is the counterpart of Seat too. Counterparts come in pairs: leave one out.",
        "Seat: Member is the counterpart of Membership too. Counterparts come in pairs: leave one out.",
    ]


def test_a_counterpart_between_other_nodes() -> None:
    @edge("{club}", "RIVAL#{rival.club_id}", counterpart="Membership")
    class Rivalry:
        club: Club
        rival: Club

    @edge("{user}", "FOLLOWS#{followed.user_id}", counterpart="FollowedBy")
    class Follow:
        user: User
        followed: User

    @edge("{user}", "FOLLOWED#{follower.user_id}")
    class FollowedBy:
        user: User
        follower: User

    assert mistakes(User, Club, Membership_without_counterpart(), Rivalry) == [
        "Rivalry: its ends are club: Club and rival: Club, those of Membership are user: User and club: Club. "
        "Counterparts join the same two nodes. If both are of one type, give the ends the same names."
    ]
    # Which of two users is which cannot be told by their type.
    assert mistakes(User, Follow, FollowedBy) == [
        "Follow: its ends are user: User and followed: User, those of FollowedBy are user: User and follower: User. "
        "Counterparts join the same two nodes. If both are of one type, give the ends the same names."
    ]


def Membership_without_counterpart() -> type:  # noqa: N802  # it stands for a class
    @edge("{user}", "CLUB#{club.club_id}")
    class Membership:
        user: User
        club: Club

    return Membership


def test_a_counterpart_that_cannot_be_rendered() -> None:
    @edge("{club}", "{seat}#{user.user_id}", by_date("{row}", "{since}"), counterpart="Visit")
    class Seat:
        user: User
        club: Club
        since: date
        seat: str
        row: str
        note: str

    @edge("{user}", "CLUB#{club.club_id}")
    class Visit:
        user: User
        club: Club
        since: str
        note: str | None

    told = mistakes(
        User, Club, Seat, Visit, table=Table("Tests", partition_key="PK", sort_key="SK", indexes=[by_date])
    )
    assert told == [
        "Visit: an item of its counterpart Seat cannot be rendered from one of it, which does not tell "
        "note, seat. "
        "Declare that here too, or make it optional there.",
        "Seat.since: it is of type date here and of type string in its counterpart Visit. "
        "Declare the same type in both, or rename one of them.",
    ]


def test_a_put_that_would_leave_a_counterpart_without_what_it_needs() -> None:
    assert mistakes(User, Club, Taught, Teacher) == [
        "Taught: createTaught would write a Teacher without subject, which every Teacher needs. Declare that here too, make it "
        "optional or give it a default there, or leave create, put, upsert out of writes= here."
    ]


def test_a_counterpart_that_only_its_own_put_writes_may_need_fields() -> None:
    @edge("{club}", "TEACHER#{user.user_id}", counterpart="TaughtByTeacher", type="Teacher")
    class Teacher:
        user: User
        club: Club
        subject: str

    assert mistakes(User, Club, TaughtByTeacher, Teacher) == []
