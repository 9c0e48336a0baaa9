"""Lists of several types: the partition that all of them have, and the mistakes of those that have none."""

from __future__ import annotations

from datetime import date
from typing import Any

from keygraph import ID, Graph, Index, Many, One, Table, edge, many, node, one, read, record, viewer
from keygraph_resolvers import check
from tests.keygraph.checked import mistakes

by_owner = Index("ByOwner", "OwnerPK", "OwnerSK")
by_day = Index("ByDay", "DayPK", "DaySK", projection=["word"])
TABLE = Table("Mixed", partition_key="PK", sort_key="SK", indexes=[by_owner, by_day])


@node("USER#{user_id}")
class User:
    user_id: ID


@node("POST#{post_id}", by_owner("{author}", "{day}#POST"), by_day("DAY#{day}", "{post_id}", lists=False))
class Post:
    post_id: ID
    author: User
    day: date


@node("PHOTO#{photo_id}", by_owner("{taker}", "{day}#PHOTO"), by_day("DAY#{day}", "{photo_id}", lists=False))
class Photo:
    photo_id: ID
    taker: User
    day: date


@record("{user}", "NOTE#{day}")
class Note:
    user: User
    day: date


def wrong(*types: type, **options: Any) -> list[str]:
    return mistakes(*types, table=TABLE, **options)


def test_no_partition_has_all_types() -> None:
    @node("OWNER#{owner_id}")
    class Owner:
        owner_id: ID
        mixed: Many[Thing | Other] = many()
        lone: Many[Thing | User] = many()
        only: One[Thing | Other] = one()
        chosen: Many[Thing | Other] = many(index=by_owner)

    @record("{owner}", "THING#{day}")
    class Thing:
        owner: Owner
        day: date

    @record("OTHER#{day}", "OTHER", by_owner("{keeper}", "{day}"))
    class Other:
        keeper: Owner
        day: date

    assert mistakes(User, Owner, Thing, Other, table=TABLE) == [
        "Owner.only: an only neighbor is of one record type, not of Thing or Other. "
        "Declare a list, Many[…], or One[…] of each type.",
        "Owner.mixed: no partition has items of all of Thing and Other: Thing.owner on the table "
        "(OWNER#{owner.owner_id} / THING#{day}); Other.keeper on ByOwner (OWNER#{keeper.owner_id} / {day}). "
        "Give them one index with the same partition template, or declare a list of each.",
        "Owner.lone: there is no path to User: User has no end that is a Owner. "
        "Give User an index whose partition template contains that end.",
        "Owner.chosen: Thing has no keys in ByOwner. Call ByOwner with its templates on Thing.",
    ]


def test_one_template_with_two_types_is_no_common_partition() -> None:
    @node("LIFT#{lift_id}", "A#{day}")
    class Lift:
        lift_id: ID
        day: date

    @record("LIFT#{lift_id}", "B#{day}")
    class LiftDay:
        lift_id: str
        day: date

    [told] = wrong(Lift, LiftDay, lists={"lifts": many(Lift | LiftDay)})
    assert told.endswith("Declare {lift_id} with one type: it is ID in Lift and str in LiftDay.")


def test_lists_at_the_root_are_checked() -> None:
    types = User, Post, Photo, Note
    assert wrong(*types, lists={"feed": many(Post | Photo, index=by_day)}) == []
    assert wrong(*types, lists={"feed": Post, "more": many()}) == [
        "the root's list feed: <class 'tests.keygraph.test_several_types.Post'> does not say which types it lists. "
        "Write many(Post | Photo), or many(Post, index=by_time).",
    ] + [each.replace("feed", "more") for each in wrong(*types, lists={"feed": many()})]
    assert wrong(User, Post, lists={"feed": many(Post | Photo)}) == [
        "the root's list feed: Photo is not listed in the graph. List it in the graph."
    ]
    assert wrong(*types, lists={"feed": many(Post, index=by_owner, at="author")}) == [
        "the root's list feed: at= and access= are for the lists of nodes. "
        "Remove them: the rules of its types apply to it."
    ]
    assert wrong(*types, lists={"feed": many(Post | Note)}) == [
        "the root's list feed: no partition has items of all of Post and Note: Post on the table (POST#{post_id} / "
        "POST#{post_id}); Post on ByOwner (USER#{author.user_id} / {day}#POST); Post on ByDay (DAY#{day} / {post_id}); "
        "Note on the table (USER#{user.user_id} / NOTE#{day}). "
        "Give them one index with the same partition template, or declare a list of each."
    ]


def test_an_index_must_tell_the_types() -> None:
    @node("THING#{thing_id}", by_day("ALL", "{thing_id}", lists=False))
    class Car:
        thing_id: ID

    @node("THING#{thing_id}", by_day("ALL", "{thing_id}", lists=False))
    class Boat:
        thing_id: ID

    assert wrong(Car, Boat, lists={"both": many(Car | Boat, index=by_day)}) == [
        "the root.both: ByDay does not project Type, which tells Car from Boat. Project Type too."
    ]


def test_names_are_checked() -> None:
    @node("OWNER#{owner_id}")
    class Owner:
        owner_id: ID
        neighbours: Many[Thing] = many()

    @record("{owner}", "THING#{types}")
    class Thing:
        owner: Owner
        types: str

    @edge("{owner}", "{user}")
    class OwnerNeighbour:
        owner: Owner
        user: User

    found = wrong(User, Owner, Thing, OwnerNeighbour, check=check, explore=True)
    assert "Owner: two of its fields are called neighbours in the schema. Rename one." in found
    union = "the nodes of Owner.neighbours: the schema's name OwnerNeighbour is that of OwnerNeighbour too. Rename one."
    assert union in found


def test_lists_with_rules_are_not_shown_by_another_way() -> None:
    @node("OWNER#{owner_id}")
    class Owner:
        owner_id: ID
        secrets: Many[Secret] = many(access=[read(where={"owner_id": viewer("sub")})])
        notes: Many[Plain] = many()

    @record("{owner}", "SECRET#{day}", access=[read()])
    class Secret:
        owner: Owner
        day: date

    @record("{owner}", "PLAIN#{day}", access=[read()])
    class Plain:
        owner: Owner
        day: date

    graph = Graph(TABLE, Owner, Secret, Plain, type_attribute="Type", explore=True, access=[read()]).check()
    assert [record.name for record in graph.neighbours["Owner"].records] == ["Plain"]
