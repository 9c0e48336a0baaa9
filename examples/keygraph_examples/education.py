"""Students and courses: the table `Education` of an article on many-to-many relationships in DynamoDB.

A student and a course each have a partition of their own, in which `METADATA` is the item that describes them. That a
student takes a course is an item in the student's partition, with the course in its sort key; the index `GSI1` has the
same two the other way round, so that a course finds its students. An item's `EntityType` says what it is, in capitals.
Ids stand in the keys alone: no item has an attribute for them.

The article's own items are in `education.jsonl`, what makes them a sample to look around in is in
`education.described.jsonl`.
"""

from __future__ import annotations

from datetime import datetime

from keygraph import ID, Graph, Index, Many, Table, edge, node

gsi1 = Index("GSI1", "GSI1-PK", "GSI1-SK")


@node("STUDENT#{student_id}", "METADATA", type="STUDENT")
class Student:
    """Somebody who takes courses."""

    student_id: ID
    name: str
    email: str
    year_level: int
    """Which year of studies it is, from 1."""

    courses: Many[Enrollment]
    """What the student takes, each with its grade."""


@node("COURSE#{course_id}", "METADATA", type="COURSE")
class Course:
    """What is taught."""

    course_id: ID
    name: str
    professor: str
    """Who teaches it."""
    credits: int
    """What it counts for."""

    students: Many[Enrollment]
    """Who takes it, each with their grade."""


@edge(
    "{student}",
    "{course}",
    gsi1("{course}", "{student}"),
    type="ENROLLMENT",
    writes=["put", "update", "delete"],
)
class Enrollment:
    """A student takes a course."""

    student: Student
    course: Course
    enrollment_date: datetime
    """When the student enrolled, in the school's own time: no offset is stored."""
    grade: str | None
    """`A`, `A-`, `B+` and so on; none before there is one."""


graph = Graph(
    Table("Education", partition_key="PK", sort_key="SK", indexes=[gsi1]),
    Student,
    Course,
    Enrollment,
    attribute_case="pascal",
    type_attribute="EntityType",
    store_key_fields=False,
)
