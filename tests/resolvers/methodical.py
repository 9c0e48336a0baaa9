"""A model whose fields are methods, of which many go wrong: the second family of the differential test."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from decimal import Decimal

import strawberry

from keygraph import ID, Graph, Index, Many, One, Table, edge, field, many, node, one, record
from keygraph.dynamo.items import Item
from keygraph.errors import BadUserInput, Throttled

gsi1 = Index("GSI1", "GSI1PK", "GSI1SK")
slim = Index("slim", "SlimPK", "SlimSK", projection=["weight"])


@dataclass
class Point:
    x: int
    y: int | None


@node("TEAM#{team_id}", gsi1("TEAMS", "{team_id}", lists="teams"))
class Team:
    team_id: ID
    motto: str
    rank: int | None

    members: Many[Membership] = many()
    matches: Many[Match] = many()

    @field(needs=("team_id",))
    def initial(self) -> str:
        """Told by the key alone."""
        if self.team_id.endswith("3"):
            raise BadUserInput("three")
        return self.team_id[:1]

    @field(needs=("motto",))
    def shouted(self) -> str:
        if "b" in self.motto:
            raise ValueError(self.motto)
        return self.motto.upper()

    @field(needs=("rank",))
    def certain_rank(self) -> int:
        """Null for some, where it may not be."""
        return self.rank  # type: ignore[return-value]  # that is the mistake

    @field(needs=("rank",))
    async def slow_rank(self, times: int = 1) -> int | None:
        await asyncio.sleep(0)
        if self.rank == 2:
            raise Throttled("two")
        return None if self.rank is None else self.rank * times

    @field()
    async def grid(self) -> list[list[int | None]]:
        """Lists of lists, with holes, some where none may be."""
        if self.rank == 4:
            return [[1], None]  # type: ignore[list-item]  # that is the mistake
        return [[1, None], [], [self.rank]]

    @field(needs=("rank",))
    def squares(self) -> list[int] | None:
        return [1, 4, None, "x"][: self.rank or 0]  # type: ignore[list-item]  # that is the mistake

    @field(needs=("rank",))
    def points(self) -> list[Point | None]:
        return [Point(1, self.rank), None, Point(None, 2) if self.rank == 1 else Point(3, 4)]  # type: ignore[arg-type]  # that is the mistake

    @field(needs=("rank",))
    def rival(self) -> Team | None:
        """A node that may not exist."""
        return _team(f"t{(self.rank or 0) * 3}") if self.rank != 3 else None

    @field(needs=("team_id",))
    async def slow_rival(self) -> Team | None:
        await asyncio.sleep(0)
        if self.team_id == "t4":
            raise RuntimeError("four")
        return _team("" if self.team_id == "t5" else "t1")


@node("PERSON#{person_id}")
class Person:
    person_id: ID
    name: str

    teams: Many[Membership] = many()
    first_team: One[Membership] = one()

    @field(needs=("name",))
    def greeting(self, word: str) -> str:
        if word == "no":
            raise BadUserInput(word)
        return f"{word} {self.name}"


@edge("{team}", "{person}", gsi1("{person}", "{team}"))
class Membership:
    team: Team
    person: Person
    since: int
    sponsor: Person | None

    @field(needs=("since",))
    def years(self) -> int:
        if self.since > 2010:
            raise ValueError(self.since)
        return 2024 - self.since

    @field(needs=("sponsor",))
    def patron(self) -> Person | None:
        return self.sponsor


@record("{team}", "MATCH#{number:03d}", slim("MATCHES#{hall}", "{number:03d}", lists="matches_in"))
class Match:
    team: Team
    number: int
    hall: str
    score: int
    weight: int | None

    @field(needs=("weight",))
    def heavy(self) -> bool:
        return self.weight > 2  # type: ignore[operator]  # that is the mistake

    @field()
    async def report(self) -> str:
        return f"{self.hall}: {self.score}"


def _team(team_id: str) -> Team:
    made = object.__new__(Team)
    made.team_id = team_id
    return made


methodical = Graph(
    Table("Methodical", partition_key="PK", sort_key="SK", indexes=[gsi1, slim]),
    Team,
    Person,
    Membership,
    Match,
    attribute_case="camel",
    type_attribute="kind",
)


@strawberry.type
class Extra:
    """What stands beside the graph at the root."""

    @strawberry.field
    def now(self, zone: str = "UTC") -> str:
        return f"now in {zone}"

    @strawberry.field
    async def later(self, info: strawberry.Info, number: int) -> int:
        await asyncio.sleep(0)
        return number * len(info.field_name)

    @strawberry.field
    def broken(self) -> int | None:
        raise BadUserInput("broken")

    @strawberry.field
    async def sometimes(self, number: int) -> int:
        if number % 3 == 0:
            raise ValueError(number)
        return None if number % 3 == 1 else number  # type: ignore[return-value]  # that is the mistake


def methodical_items() -> list[Item]:
    """Eight teams of five people, with matches."""
    items: list[Item] = []
    for number in range(8):
        key = f"TEAM#t{number}"
        team: Item = {
            "PK": key,
            "SK": key,
            "kind": "Team",
            "teamId": f"t{number}",
            "motto": "abc"[number % 3],
            "GSI1PK": "TEAMS",
            "GSI1SK": f"t{number}",
        }
        if number % 5:
            team["rank"] = Decimal(number % 5)
        items.append(team)
        for match in range(number % 4):
            name = f"{match:03d}"
            items.append(
                {
                    "PK": key,
                    "SK": f"MATCH#{name}",
                    "kind": "Match",
                    "hall": "ab"[match % 2],
                    "score": Decimal(number + match),
                    **({"weight": Decimal(match)} if number % 3 else {}),
                    "SlimPK": f"MATCHES#{'ab'[match % 2]}",
                    "SlimSK": name,
                }
            )
        for person in range(5):
            if (number * person) % 4 == 3:
                continue
            items.append(
                {
                    "PK": key,
                    "SK": f"PERSON#p{person}",
                    "kind": "Membership",
                    "since": Decimal(2000 + 3 * person),
                    "sponsorId": f"p{(person + number) % 6}",
                    "GSI1PK": f"PERSON#p{person}",
                    "GSI1SK": key,
                }
            )
    for person in range(5):
        key = f"PERSON#p{person}"
        items.append(
            {"PK": key, "SK": key, "kind": "Person", "personId": f"p{person}", "name": f"P {person}"}
        )
    return items
