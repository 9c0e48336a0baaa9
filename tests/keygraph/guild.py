"""A guild whose summaries only a job can compute: degrees, tops, ranks, and sums over two levels."""

from __future__ import annotations

from decimal import Decimal

from keygraph import (
    ID,
    Graph,
    Index,
    Many,
    Table,
    average,
    counts,
    degree,
    edge,
    latest,
    many,
    maximum,
    minimum,
    node,
    rank,
    record,
    sums,
    top,
)

by_person = Index("by-person", "gp", "gs")


@node("PERSON#{person_id}")
class Person:
    person_id: ID
    town: str | None = None
    score: int | None = None

    follows: Many[Follow] = many(at="follower")
    followers: Many[Follow] = many(at="followed")
    projects: Many[Assignment]
    skills: Many[Skill]

    degree: int | None = degree("follows", "followers")
    hours: Decimal | None = sums("projects.tasks.hours", kept="job")
    task_count: int | None = counts("projects.tasks", kept="job")
    task_average: float | None = average("projects.tasks.hours", kept="job")
    place: int | None = rank("score", within="town")
    place_by_hours: int | None = rank("hours")


@node("PROJECT#{project_id}")
class Project:
    project_id: ID

    people: Many[Assignment]
    tasks: Many[Task]
    best: list[ID] | None = top("people.share", 2)
    shares: list[int] | None = top("people.share", 2)
    most: int | None = maximum("people.share", kept="job")
    least: int | None = minimum("people.share", kept="job", where={"share": {"gt": 1}})
    last_hours: Decimal | None = latest("tasks.hours", kept="job")


@edge("{follower}", "FOLLOWS#{followed.person_id}", by_person("{followed}", "FOLLOWER#{follower.person_id}"))
class Follow:
    follower: Person
    followed: Person


@edge("{person}", "ON#{project.project_id}", by_person("{project}", "PERSON#{person.person_id}"))
class Assignment:
    person: Person
    project: Project
    share: int | None = None


@record("{project}", "TASK#{number:04d}")
class Task:
    project: Project
    number: int
    hours: Decimal | None = None


@record("{person}", "SKILL#{name}")
class Skill:
    person: Person
    name: str
    level: int
    place: int | None = rank("level", within="name")
    place_of_person: int | None = rank("level", within="person")


graph = Graph(
    Table("Guild", partition_key="pk", sort_key="sk", indexes=[by_person]),
    Person,
    Project,
    Follow,
    Assignment,
    Task,
    Skill,
    writes=True,
)
