"""People, and what they have in common: the materialized graph of DynamoDB's guide to many-to-many relationships.

Every node has a number, and a partition under it (`NodeId`) with the items that define the node and its edges. The
sort key `TypeTarget` says an edge's type, the number of the node that it leads to, and what it is to the person:
`DATE|2|BIRTH`, `PLACE|3|HOME`, `SKILL|4|EXPERT`. A node's own item gives its name, and so has itself as its target:
`NAME|1|PERSON`, `NAME|3|PLACE`. Edges have their type and target in the attributes `Type` and `Target` too. `Data` is
what an item is about, a name, a date, a place or a skill; an edge repeats that of the node which it leads to, so that
it is shown without reading the node.

One index is on `Data`, and so finds people by four different things. Its partitions say which of these they hold;
each such set is spread over as many of them as it needs (`NAME|0`, `NAME|1`; `SKILL|0` to `SKILL|3`). The other index is
on `TypeTarget`: it finds everybody who shares a date, a place or a skill. Its partitions are numbers alone. A list asks
all partitions of its set at the same time, and merges what they have in order.

Rankings across peers, and who is related to whom, are summaries of the whole graph. The guide lets a scheduled process
compute them and store them in the graph: here, `keygraph summarize`.

The guide shows its table in figures, so no item of it is quoted here: `talent.described.jsonl` is made from its words.
"""

from __future__ import annotations

from datetime import date
from enum import Enum

from keygraph import Graph, Index, Many, Ranked, Table, counts, degree, edge, node, rank, ranked, stored

by_data = Index("by-data", "DataSet", "Data")
by_type_target = Index("by-type-target", "TargetSet", "TypeTarget")


class Occasion(Enum):
    """What a date is to a person."""

    BIRTH = "BIRTH"
    """The day on which they were born."""
    HIRED = "HIRED"
    """Their first day at work here."""


class Bond(Enum):
    """What a place is to a person."""

    BIRTH = "BIRTH"
    """They were born there."""
    HOME = "HOME"
    """They live there."""
    WORK = "WORK"
    """They work there."""


class Level(Enum):
    """How well a person can do something."""

    NOVICE = "NOVICE"
    """With help."""
    SKILLED = "SKILLED"
    """Without help."""
    EXPERT = "EXPERT"
    """Well enough to teach it."""


@node("{node_id}", "NAME|{node_id}|PERSON", by_data("NAME|{shard}", shards=2, lists="people"), type=None)
class Person:
    """Somebody who works here."""

    node_id: int
    """The person's number."""
    name: str = stored("Data")
    """First name, then last name."""

    dates: Many[PersonDate]
    """Dates of the person's life."""
    places: Many[PersonPlace]
    """Where the person comes from, lives and works."""
    skills: Many[PersonSkill]
    """What the person can do."""
    peers: Ranked[Person] = ranked("skills", "people")
    """Who else can do the same, those first who share the most skills."""
    same_places: Ranked[Person] = ranked("places", "people", kept="job", keep=10)
    """Who has been at the same places, those first who share the most. Of a city that is everybody in it, so
    `keygraph summarize` finds them, and each person keeps the first ten."""

    degree: int | None = degree("dates", "places", "skills")
    """How many edges lead from the person, counted by `keygraph summarize`."""
    skill_count: int | None = counts("skills", kept="job")
    place_among_peers: int | None = rank("skill_count")
    """The person's place among all people, by how much they can do: 1 is the first."""


@node("{node_id}", "NAME|{node_id}|DATE", type=None)
class Day:
    """A date on which something happened to people."""

    node_id: int
    """The date's number."""
    day: date = stored("Data")

    people: Many[PersonDate]
    """Everybody to whom something happened on it."""


@node("{node_id}", "NAME|{node_id}|PLACE", type=None)
class Place:
    """A city."""

    node_id: int
    """The place's number."""
    location: str = stored("Data")
    """Country, state and city: `USA|WA|Seattle`."""

    people: Many[PersonPlace]
    """Everybody who was born, lives or works there."""


@node("{node_id}", "NAME|{node_id}|SKILL", type=None)
class Skill:
    """Something that people can do."""

    node_id: int
    """The skill's number."""
    skill_name: str = stored("Data")

    people: Many[PersonSkill]
    """Everybody who can do it."""

    people_count: int | None = counts("people", kept="job")
    place: int | None = rank("people_count")
    """Its place among all skills, by how many can do it."""


@edge(
    "{person}",
    "DATE|{day.node_id}|{occasion}",
    by_data("DATE|{occasion}|{shard}", shards=3, lists="people_by_date"),
    by_type_target("{shard}", shards=4, lists=False),
    type="DATE",
)
class PersonDate:
    """Something happened to a person on a day."""

    person: Person = stored(in_key=True)
    day: Day = stored("Target")
    occasion: Occasion = stored(in_key=True)
    """What happened."""
    when: date = stored("Data")
    """The day itself."""


@edge(
    "{person}",
    "PLACE|{place.node_id}|{bond}",
    by_data("PLACE|{shard}", shards=2, lists="people_by_place"),
    by_type_target("{shard}", shards=4, lists=False),
    type="PLACE",
)
class PersonPlace:
    """A place is something to a person."""

    person: Person = stored(in_key=True)
    place: Place = stored("Target")
    bond: Bond = stored(in_key=True)
    """What it is to them."""
    location: str = stored("Data")
    """Country, state and city: `USA|WA|Seattle`."""


@edge(
    "{person}",
    "SKILL|{skill.node_id}|{level}",
    by_data("SKILL|{shard}", shards=4, lists="people_by_skill"),
    by_type_target("{shard}", shards=4, lists=False),
    type="SKILL",
)
class PersonSkill:
    """A person can do something."""

    person: Person = stored(in_key=True)
    skill: Skill = stored("Target")
    level: Level = stored(in_key=True)
    """How well."""
    skill_name: str = stored("Data")


graph = Graph(
    Table("Talent", partition_key="NodeId", sort_key="TypeTarget", indexes=[by_data, by_type_target]),
    Person,
    Day,
    Place,
    Skill,
    PersonDate,
    PersonPlace,
    PersonSkill,
    attribute_case="pascal",
    type_attribute="Type",
)
