"""The graph of the histories: nodes, a mirrored edge, counterparts, records in shards, and every kind of index key."""

from __future__ import annotations

from enum import Enum

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
    degree,
    edge,
    field,
    latest,
    minimum,
    node,
    rank,
    record,
    stored,
    sums,
    top,
    version,
)

by_place = Index("by-place", "gp", "gs")


class Mood(Enum):
    GOOD = "good"
    BAD = "bad"


@node("PERSON#{name}", by_place("TOWN#{town}#{mood}", "{wealth}"))
class Person:
    name: ID
    town: str | None = stored("home", was="town", default=None)
    mood: Mood = Mood.GOOD
    points: int | None = stored("stats", "all", "points", default=None)
    tags: set[str] | None = stored("stats", "tags", default=None)
    log: list[str] | None = None
    times: int | None = version()

    friends: Many[Friend]
    notes: Many[Note]
    deeds: Many[Deed]
    seats: Many[Seat]
    friends_count: int = counts("friends", shards=3)
    rounds_played: Long = sums("friends.rounds", shards=3)
    rounds_mean: float | None = average("friends.rounds", shards=3)
    noted_count: int = counts("friends", where={"note": {"exists": True}, "since": {"gte": 2}}, shards=3)
    notes_count: int = counts("notes")
    deeds_count: int = counts("deeds")
    rows: int = sums("seats.row")
    friends_then: int | None = counts("friends", kept="job")
    most_rounds: list[int] | None = top("friends.rounds", 3)
    ties: int | None = degree("friends", "seats")
    place: int | None = rank("points", within="mood")

    @field(needs=("points", "name"))
    def wealth(self) -> str:
        return f"{'RICH' if (self.points or 0) > 5 else 'POOR'}#{self.name}"


@node("CLUB#{club_id}", by_place("CLUBS", "{members_count:04d}#{title}"))
class Club:
    club_id: ID
    title: str | None = None

    members: Many[Member]
    members_count: int = counts("members")
    since_all: int = sums("members.since")
    last_since: int | None = latest("members.since")
    last_role: str | None = latest("members.role")
    first_since: int | None = minimum("members.since", kept="job")
    deeds_of_all: int | None = counts("members.deeds", kept="job")


@node("TAG#{tag}", item=False)
class Tag:
    tag: ID


@node("NOTE#{note_id}", by_place("{author}", "NOTE#{title}"))
class Note:
    note_id: ID
    title: str
    author: Person | None = None
    tag: Tag | None = None
    log: list[str] | None = stored("text", "log", default=None)
    town: str | None = copy("author.town", follows=True)
    town_then: str | None = copy("author.town", kept="job")


@node("NOTE#{note_id}")
class Rumor:
    """Told apart from a note with the same key by its type attribute alone."""

    note_id: ID
    title: str
    log: list[str] | None = stored("text", "log", default=None)


@edge("{one}", "FRIEND#{other.name}", by_place("FRIENDS#{note}", "{one}#{other}"), mirror=True)
class Friend:
    one: Person
    other: Person
    since: int
    note: str | None = stored("remark", was="note", default=None)
    rounds: int | None = None
    log: list[str] | None = None
    times: int | None = version()


@edge("{person}", "IN#{club.club_id}", counterpart="Member")
class Stay:
    person: Person
    club: Club
    since: int
    role: str | None = None
    log: list[str] | None = None


@edge("{club}", "MEMBER#{person.name}", by_place("ROLE#{role}", "{badge}"))
class Member:
    club: Club
    person: Person
    since: int
    role: str | None = None
    badge: str | None = stored(in_key=True, default=None)


@edge("{person}", "SEAT#{club.club_id}", counterpart="Seated")
class Seat:
    person: Person
    club: Club
    row: int
    color: str | None = None


@edge("{club}", "SEATED#{row:02d}#{person.name}")
class Seated:
    club: Club
    person: Person
    row: int
    color: str | None = None
    cushion: str | None = None


@record("{person}#{shard}", "DID#{at:03d}", by_place("DID#{what}", "{person}"), shards=4)
class Deed:
    person: Person
    at: int
    what: str | None = stored("did", was="what", default=None)
    log: list[str] | None = None
    town: str | None = copy("person.town", follows=True)


graph = Graph(
    Table("Held", partition_key="pk", sort_key="sk", indexes=[by_place]),
    Person,
    Club,
    Tag,
    Note,
    Friend,
    Stay,
    Member,
    Seat,
    Seated,
    Deed,
    Rumor,
    type_attribute="kind",
    writes=True,
)
