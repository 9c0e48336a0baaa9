"""The article on students and courses: its key query patterns, each as one GraphQL query.

`ARTICLE` is asked of the article's own items alone, `SAMPLE` of them among what makes them one.
"""

from __future__ import annotations

from keygraph_examples.education import graph
from tests.conftest import MakeStore, in_one_world
from tests.documents.samples import files_of, serve
from tests.documents.served import Pattern, patterns

ARTICLE = """
1. Get student details
{ student(studentId: "S1") { __typename studentId name email yearLevel } }
{"student": {"__typename": "Student", "studentId": "S1", "name": "John Doe", "email": "john@example.com",
  "yearLevel": 3}}
GetItem STUDENT#S1 / METADATA

2. Get all courses for student
{ student(studentId: "S1") { courses { totalCount edges {
  grade enrollmentDate node { courseId name professor credits } } } } }
{"student": {"courses": {"totalCount": 2, "edges": [{"grade": "A", "enrollmentDate": "2024-03-31T10:00:00",
  "node": {"courseId": "C1", "name": "Advanced Mathematics", "professor": "Dr. Smith", "credits": 3}},
  {"grade": "B+", "enrollmentDate": "2024-03-31T11:00:00", "node": {"courseId": "C2", "name": "Physics 101",
  "professor": "Dr. Johnson", "credits": 4}}]}}}
BatchGetItem COURSE#C1 / METADATA, COURSE#C2 / METADATA
Count: PK = STUDENT#S1 AND begins_with(SK, COURSE#), of these EntityType = ENROLLMENT
GetItem STUDENT#S1 / METADATA
Query: PK = STUDENT#S1 AND begins_with(SK, COURSE#)

3. Get all students in course
{ course(courseId: "C1") { name students { edges { grade enrollmentDate node { studentId name email yearLevel } } } } }
{"course": {"name": "Advanced Mathematics", "students": {"edges": [
  {"grade": "A", "enrollmentDate": "2024-03-31T10:00:00",
  "node": {"studentId": "S1", "name": "John Doe", "email": "john@example.com", "yearLevel": 3}},
  {"grade": "A-", "enrollmentDate": "2024-03-31T09:00:00",
  "node": {"studentId": "S2", "name": "Jane Smith", "email": "jane@example.com", "yearLevel": 2}}]}}}
BatchGetItem STUDENT#S1 / METADATA, STUDENT#S2 / METADATA
GetItem COURSE#C1 / METADATA
Query GSI1: GSI1-PK = COURSE#C1 AND begins_with(GSI1-SK, STUDENT#)

Courses with their students
{ student(studentId: "S1") { name courses { edges { grade node {
  name students { edges { grade node { studentId name } } } } } } } }
{"student": {"name": "John Doe", "courses": {"edges": [{"grade": "A",
  "node": {"name": "Advanced Mathematics", "students": {"edges": [
  {"grade": "A", "node": {"studentId": "S1", "name": "John Doe"}},
  {"grade": "A-", "node": {"studentId": "S2", "name": "Jane Smith"}}]}}},
  {"grade": "B+", "node": {"name": "Physics 101", "students": {"edges": [
  {"grade": "B+", "node": {"studentId": "S1", "name": "John Doe"}}]}}}]}}}
BatchGetItem COURSE#C1 / METADATA, COURSE#C2 / METADATA
GetItem STUDENT#S1 / METADATA
GetItem STUDENT#S2 / METADATA
Query GSI1: GSI1-PK = COURSE#C1 AND begins_with(GSI1-SK, STUDENT#)
Query GSI1: GSI1-PK = COURSE#C2 AND begins_with(GSI1-SK, STUDENT#)
Query: PK = STUDENT#S1 AND begins_with(SK, COURSE#)

An enrollment between two is found by its key
{ course(courseId: "C1") { students(to: ["WyJTdHVkZW50IiwiUzIiXQ"]) { edges { grade node { studentId } } } }
  student(studentId: "S2") { courses(to: ["WyJDb3Vyc2UiLCJDMiJd"]) { edges { grade } } } }
{"course": {"students": {"edges": [{"grade": "A-", "node": {"studentId": "S2"}}]}},
  "student": {"courses": {"edges": []}}}
BatchGetItem COURSE#C1 / METADATA, STUDENT#S2 / COURSE#C1, STUDENT#S2 / COURSE#C2, STUDENT#S2 / METADATA

An id that no student has
{ student(studentId: "C1") { name } course(courseId: "S1") { name } }
{"student": null, "course": null}
"""

SAMPLE = """
A student who has no grade yet
{ student(studentId: "S3") { courses { edges { grade enrollmentDate node { courseId } } } } }
{"student": {"courses": {"edges": [{"grade": "B-", "enrollmentDate": "2024-04-02T08:30:00",
  "node": {"courseId": "C1"}}, {"grade": null, "enrollmentDate": "2024-04-02T08:31:00",
  "node": {"courseId": "C3"}}]}}}

Students by grade
{ course(courseId: "C1") {
  students(where: {grade: {beginsWith: "A"}}) { totalCount edges { grade node { studentId } } } } }
{"course": {"students": {"totalCount": 2, "edges": [{"grade": "A", "node": {"studentId": "S1"}},
  {"grade": "A-", "node": {"studentId": "S2"}}]}}}
"""


@in_one_world("pattern", patterns(ARTICLE))
async def test_each_pattern_is_answered_from_the_article(make_store: MakeStore, pattern: Pattern) -> None:
    await (await serve(graph, make_store, "education.jsonl")).answers(pattern)


@in_one_world("pattern", patterns(SAMPLE))
async def test_each_pattern_is_answered_from_the_sample(make_store: MakeStore, pattern: Pattern) -> None:
    await (await serve(graph, make_store, *files_of("education"))).answers(pattern)
