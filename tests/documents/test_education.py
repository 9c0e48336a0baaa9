"""The article on students and courses: its key query patterns, each as one GraphQL query.

`article` has the article's own items alone, `sample` has them among what makes them one.
"""

from __future__ import annotations

import pytest

from keygraph_examples.education import graph
from tests.conftest import MakeStore
from tests.documents.samples import files_of, read_as_json, serve, types_of
from tests.documents.served import Served

STUDENT = "GetItem STUDENT#S1 / METADATA"
COURSES = "Query: PK = STUDENT#S1 AND begins_with(SK, COURSE#)"

DOCUMENT = [
    {
        "PK": "STUDENT#S1",
        "SK": "METADATA",
        "EntityType": "STUDENT",
        "Name": "John Doe",
        "Email": "john@example.com",
        "YearLevel": 3,
    },
    {
        "PK": "STUDENT#S2",
        "SK": "METADATA",
        "EntityType": "STUDENT",
        "Name": "Jane Smith",
        "Email": "jane@example.com",
        "YearLevel": 2,
    },
    {
        "PK": "COURSE#C1",
        "SK": "METADATA",
        "EntityType": "COURSE",
        "Name": "Advanced Mathematics",
        "Professor": "Dr. Smith",
        "Credits": 3,
    },
    {
        "PK": "COURSE#C2",
        "SK": "METADATA",
        "EntityType": "COURSE",
        "Name": "Physics 101",
        "Professor": "Dr. Johnson",
        "Credits": 4,
    },
    {
        "PK": "STUDENT#S1",
        "SK": "COURSE#C1",
        "GSI1-PK": "COURSE#C1",
        "GSI1-SK": "STUDENT#S1",
        "EntityType": "ENROLLMENT",
        "EnrollmentDate": "2024-03-31T10:00:00",
        "Grade": "A",
    },
    {
        "PK": "STUDENT#S1",
        "SK": "COURSE#C2",
        "GSI1-PK": "COURSE#C2",
        "GSI1-SK": "STUDENT#S1",
        "EntityType": "ENROLLMENT",
        "EnrollmentDate": "2024-03-31T11:00:00",
        "Grade": "B+",
    },
    {
        "PK": "STUDENT#S2",
        "SK": "COURSE#C1",
        "GSI1-PK": "COURSE#C1",
        "GSI1-SK": "STUDENT#S2",
        "EntityType": "ENROLLMENT",
        "EnrollmentDate": "2024-03-31T09:00:00",
        "Grade": "A-",
    },
]


@pytest.fixture
async def article(make_store: MakeStore) -> Served:
    return await serve(graph, make_store, "education.jsonl")


@pytest.fixture
async def sample(make_store: MakeStore) -> Served:
    return await serve(graph, make_store, *files_of("education"))


def test_the_items_are_the_articles() -> None:
    assert read_as_json("education.jsonl") == DOCUMENT


def test_every_item_is_of_a_declared_type() -> None:
    assert types_of(graph, "education.jsonl") == {"Student": 2, "Course": 2, "Enrollment": 3}
    assert types_of(graph, "education.described.jsonl") == {"Student": 1, "Course": 1, "Enrollment": 3}


class TestKeyQueryPatterns:
    async def test_1_get_student_details(self, article: Served) -> None:
        assert await article.ask(
            '{ student(studentId: "S1") { __typename studentId name email yearLevel } }'
        ) == {
            "student": {
                "__typename": "Student",
                "studentId": "S1",
                "name": "John Doe",
                "email": "john@example.com",
                "yearLevel": 3,
            }
        }
        assert article.sent == [STUDENT]

    async def test_2_get_all_courses_for_student(self, article: Served) -> None:
        assert await article.ask("""{ student(studentId: "S1") { courses { totalCount edges {
          grade enrollmentDate node { courseId name professor credits }
        } } } }""") == {
            "student": {
                "courses": {
                    "totalCount": 2,
                    "edges": [
                        {
                            "grade": "A",
                            "enrollmentDate": "2024-03-31T10:00:00",
                            "node": {
                                "courseId": "C1",
                                "name": "Advanced Mathematics",
                                "professor": "Dr. Smith",
                                "credits": 3,
                            },
                        },
                        {
                            "grade": "B+",
                            "enrollmentDate": "2024-03-31T11:00:00",
                            "node": {
                                "courseId": "C2",
                                "name": "Physics 101",
                                "professor": "Dr. Johnson",
                                "credits": 4,
                            },
                        },
                    ],
                }
            }
        }
        assert article.sent == [
            "BatchGetItem COURSE#C1 / METADATA, COURSE#C2 / METADATA",
            f"{COURSES.replace('Query', 'Count')}, of these EntityType = ENROLLMENT",
            STUDENT,
            COURSES,
        ]

    async def test_3_get_all_students_in_course(self, article: Served) -> None:
        assert await article.ask("""{ course(courseId: "C1") { name students { edges {
          grade enrollmentDate node { studentId name }
        } } } }""") == {
            "course": {
                "name": "Advanced Mathematics",
                "students": {
                    "edges": [
                        {
                            "grade": "A",
                            "enrollmentDate": "2024-03-31T10:00:00",
                            "node": {"studentId": "S1", "name": "John Doe"},
                        },
                        {
                            "grade": "A-",
                            "enrollmentDate": "2024-03-31T09:00:00",
                            "node": {"studentId": "S2", "name": "Jane Smith"},
                        },
                    ]
                },
            }
        }
        assert article.sent == [
            "BatchGetItem STUDENT#S1 / METADATA, STUDENT#S2 / METADATA",
            "GetItem COURSE#C1 / METADATA",
            "Query GSI1: GSI1-PK = COURSE#C1 AND begins_with(GSI1-SK, STUDENT#)",
        ]


class TestBothDirections:
    async def test_courses_with_their_students(self, article: Served) -> None:
        john = {"grade": "A", "node": {"studentId": "S1", "name": "John Doe"}}
        assert await article.ask("""{ student(studentId: "S1") { name courses { edges { grade node {
          name students { edges { grade node { studentId name } } }
        } } } } }""") == {
            "student": {
                "name": "John Doe",
                "courses": {
                    "edges": [
                        {
                            "grade": "A",
                            "node": {
                                "name": "Advanced Mathematics",
                                "students": {
                                    "edges": [
                                        john,
                                        {"grade": "A-", "node": {"studentId": "S2", "name": "Jane Smith"}},
                                    ]
                                },
                            },
                        },
                        {
                            "grade": "B+",
                            "node": {
                                "name": "Physics 101",
                                "students": {"edges": [{**john, "grade": "B+"}]},
                            },
                        },
                    ]
                },
            }
        }
        assert article.sent == [
            "BatchGetItem COURSE#C1 / METADATA, COURSE#C2 / METADATA",
            STUDENT,
            "GetItem STUDENT#S2 / METADATA",
            "Query GSI1: GSI1-PK = COURSE#C1 AND begins_with(GSI1-SK, STUDENT#)",
            "Query GSI1: GSI1-PK = COURSE#C2 AND begins_with(GSI1-SK, STUDENT#)",
            COURSES,
        ]

    async def test_an_enrollment_between_two_is_found_by_its_key(self, article: Served) -> None:
        ids = await article.ask('{ student(studentId: "S2") { id } course(courseId: "C2") { id } }')
        jane, physics = ids["student"]["id"], ids["course"]["id"]
        assert await article.ask(f"""{{
          course(courseId: "C1") {{ students(to: ["{jane}"]) {{ edges {{ grade node {{ studentId }} }} }} }}
          student(studentId: "S2") {{ courses(to: ["{physics}"]) {{ edges {{ grade }} }} }}
        }}""") == {
            "course": {"students": {"edges": [{"grade": "A-", "node": {"studentId": "S2"}}]}},
            "student": {"courses": {"edges": []}},
        }
        assert not any(line.startswith("Query") for line in article.sent)


class TestWhatIsNotThere:
    async def test_a_student_who_has_no_grade_yet(self, sample: Served) -> None:
        assert await sample.ask("""{ student(studentId: "S3") { courses { edges {
          grade enrollmentDate node { courseId }
        } } } }""") == {
            "student": {
                "courses": {
                    "edges": [
                        {
                            "grade": "B-",
                            "enrollmentDate": "2024-04-02T08:30:00",
                            "node": {"courseId": "C1"},
                        },
                        {
                            "grade": None,
                            "enrollmentDate": "2024-04-02T08:31:00",
                            "node": {"courseId": "C3"},
                        },
                    ]
                }
            }
        }

    async def test_students_by_grade(self, sample: Served) -> None:
        assert await sample.ask("""{ course(courseId: "C1") {
          students(where: {grade: {beginsWith: "A"}}) { totalCount edges { grade node { studentId } } }
        } }""") == {
            "course": {
                "students": {
                    "totalCount": 2,
                    "edges": [
                        {"grade": "A", "node": {"studentId": "S1"}},
                        {"grade": "A-", "node": {"studentId": "S2"}},
                    ],
                }
            }
        }

    async def test_an_id_that_no_student_has(self, article: Served) -> None:
        assert await article.ask('{ student(studentId: "C1") { name } course(courseId: "S1") { name } }') == {
            "student": None,
            "course": None,
        }
