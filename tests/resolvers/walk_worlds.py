"""Models whose nodes declare walks: a tree with several roots, people who are friends, and what lies in what."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import date, timedelta
from decimal import Decimal

from keygraph import (
    ID,
    Graph,
    Index,
    Many,
    One,
    Ranked,
    Reach,
    Ref,
    Table,
    edge,
    many,
    node,
    ranked,
    reach,
    stored,
)
from keygraph.dynamo.items import Item

inverted = Index("inverted", "SK", "PK")
gsi1 = Index("GSI1", "GSI1PK", "GSI1SK")


@node("TOPIC#{topic_id}")
class Topic:
    topic_id: ID
    name: str
    size: int

    children: Many[Below] = many(at="parent")
    parents: Many[Below] = many(at="child")
    descendants: Reach[Topic] = reach("children", depth=6)
    """Everything below it."""
    ancestors: Reach[Topic] = reach("parents", depth=6)
    few: Reach[Topic] = reach("children", depth=6, budget=5)
    see_also: list[Ref[Topic]] = stored(default=[])
    experts: set[Ref[Person | Topic]] | None = stored(whole_key=True)
    related: Reach[Topic] = reach("see_also", depth=5)
    around: Reach[Topic] = reach("children", "see_also", "experts", depth=4)
    who: Reach[Person] = reach("see_also", "experts", "friends", depth=4)
    suggested: Ranked[Topic] = ranked("see_also", "see_also")
    advised: Ranked[Person] = ranked("children", "experts", include_first=True)


@edge("{parent}", "CHILD#{child.topic_id}", gsi1("{child}", "PARENT#{parent.topic_id}"))
class Below:
    parent: Topic
    child: Topic
    note: str | None


@node("PERSON#{person_id}")
class Person:
    person_id: ID
    name: str

    friends: Many[Friend]
    follows: Many[Follow] = many(at="follower")
    network: Reach[Person] = reach("friends", depth=3)
    anybody: Reach[Person] = reach("friends", "follows", depth=3)
    may_know: Ranked[Person] = ranked("friends", "friends")
    """Whom the most friends know."""
    close: Ranked[Person] = ranked("friends", "friends", weight="trust", include_first=True)
    recent: Ranked[Person] = ranked("friends", "friends", decay=("since", timedelta(days=10)))
    few: Ranked[Person] = ranked("friends", "friends", budget=4)


@edge("{one}", "FRIEND#{other.person_id}", mirror=True)
class Friend:
    one: Person
    other: Person
    trust: Decimal | None
    since: date | None


@edge("{follower}", "FOLLOWS#{followed.person_id}")
class Follow:
    follower: Person
    followed: Person


@node("BOX#{box_id}", gsi1("{inside?}", "BOX#{box_id}"))
class Box:
    box_id: ID
    label: str
    inside: Box | None

    boxes: Many[Box]
    outer: One[Inside]
    contents: Reach[Box] = reach("boxes", depth=4)


@edge("{box}", "INSIDE#{around.box_id}")
class Inside:
    box: Box
    around: Box


walks = Graph(
    Table("Walks", partition_key="PK", sort_key="SK", indexes=[gsi1]),
    Topic,
    Below,
    Person,
    Friend,
    Follow,
    Box,
    Inside,
    type_attribute="type",
    paths=True,
)


# --- Items --------------------------------------------------------------------------------------------


def topic(name: object, size: int = 1, see_also: str = "", experts: Sequence[str] = ()) -> Item:
    key = f"TOPIC#{name}"
    return {
        **({"see_also_ids": [*see_also]} if see_also else {}),
        **({"expert_ids": frozenset(experts)} if experts else {}),
        "PK": key,
        "SK": key,
        "type": "Topic",
        "topic_id": str(name),
        "name": f"the {name}",
        "size": Decimal(size),
    }


def below(parent: object, child: object) -> Item:
    keys = {"PK": f"TOPIC#{parent}", "SK": f"CHILD#{child}"}
    index = {"GSI1PK": f"TOPIC#{child}", "GSI1SK": f"PARENT#{parent}"}
    return {**keys, **index, "type": "Below", "note": f"{parent} to {child}"}


def person(name: object) -> Item:
    key = f"PERSON#{name}"
    return {"PK": key, "SK": key, "type": "Person", "person_id": str(name), "name": f"the {name}"}


def friends(one: object, other: object, trust: int = 1, since: str = "2024-01-01") -> list[Item]:
    return [
        {"PK": f"PERSON#{a}", "SK": f"FRIEND#{b}", "type": "Friend", "trust": Decimal(trust), "since": since}
        for a, b in ((one, other), (other, one))
    ]


def follows(one: object, other: object) -> Item:
    return {"PK": f"PERSON#{one}", "SK": f"FOLLOWS#{other}", "type": "Follow"}


def box(name: str, inside: str | None) -> Item:
    key, around = (
        f"BOX#{name}",
        {} if inside is None else {"inside": inside, "GSI1PK": f"BOX#{inside}", "GSI1SK": f"BOX#{name}"},
    )
    return {"PK": key, "SK": key, "type": "Box", "box_id": name, "label": f"box {name}", **around}


def walk_items() -> tuple[Item, ...]:
    """A bit of everything, with cycles, and edges that lead to nothing."""
    return (
        *map(topic, "abcdef", range(6), ("bcb", "dx", "", "ea", "b", "")),
        topic("g", 6, "aagf", ("PERSON#a", "TOPIC#c", "PERSON#x")),
        topic("h", 7, "", ("PERSON#g", "TOPIC#g", "BOX#a")),
        *(below(*each) for each in ("ab", "ac", "bd", "cd", "ce", "dd", "df", "fa", "fx", "xb")),
        *map(person, "abcdefg"),
        *(
            item
            for pair in ("ab", "ac", "bd", "cd", "ce", "ef", "fg", "bx")
            for item in friends(*pair, trust=ord(pair[1]) - 98)
        ),
        *(follows(*each) for each in ("ae", "eg", "gx")),
        *(box(*each) for each in (("a", None), ("b", "a"), ("c", "a"), ("d", "c"), ("e", "d"))),
    )
