"""Record types: the values of an item's fields from attributes, keys and defaults, and its ends."""

from __future__ import annotations

from datetime import date, datetime
from decimal import Decimal
from enum import Enum

import pytest

from keygraph import ID, CorruptItem, Graph, Index, Table, edge, field, node, record, stored
from keygraph.dynamo.items import Item
from keygraph.model.instances import bare_instance, instance
from keygraph.model.records import RecordType

gsi1 = Index("GSI1", "GSI1PK", "GSI1SK")


class Grade(Enum):
    GOOD = "good"
    BAD = "bad"


@node("STUDENT#{student_id}", "METADATA", gsi1("STUDENTS", "{created_at}"))
class Student:
    student_id: ID
    name: str
    nickname: str | None
    grade: Grade = Grade.GOOD
    created_at: datetime
    version: int = stored("data", "version", default=1)

    @field(needs=("name", "version"))
    def label(self) -> str:
        return f"{self.name} {self.version}"


@node("COURSE#{faculty}#{number:04d}")
class Course:
    faculty: str
    number: int
    title: str


@edge("{student}", "{course}", gsi1("{course.faculty}", "{course.number}#{since}"))
class Enrolment:
    student: Student
    course: Course
    since: date
    tutor: Student | None


@record("{student}", "MARK#{course.number}#{given:%Y-%m}", gsi1("MARKS", "{given}"))
class Mark:
    student: Student
    course: Course = stored(faculty="Faculty", number="Number")
    given: date
    value: Decimal


@node("MONTH#{day:%Y-%m}", "DAY#{day}")
class Day:
    day: date


graph = Graph(
    Table("School", partition_key="PK", sort_key="SK", indexes=[gsi1]),
    Student,
    Course,
    Enrolment,
    Mark,
    Day,
    attribute_case="camel",
).check()
student, course = graph.types["Student"], graph.types["Course"]
enrolment, mark, day = graph.types["Enrolment"], graph.types["Mark"], graph.types["Day"]

ANN: Item = {
    "PK": "STUDENT#7",
    "SK": "METADATA",
    "GSI1PK": "STUDENTS",
    "GSI1SK": "2024-02-01T10:00:00Z",
    "name": "Ann",
}


def value(record: RecordType, item: Item, name: str) -> object:
    return record.reader(record.fields[name])(item)


# --- Fields -------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("item", "name", "said"),
    [
        ({"PK": "STUDENT#7", "SK": "METADATA"}, "name", "Student.name is missing in an item"),
        (
            {**ANN, "name": Decimal(1)},
            "name",
            "Student.name of an item is not of type string: it is a Decimal",
        ),
        (
            {**ANN, "grade": "so"},
            "grade",
            "Student.grade of an item is not of type Grade: it is none of the enum's values",
        ),
        (
            {**ANN, "GSI1SK": "then"},
            "created_at",
            "Student.created_at is missing in an item (attribute createdAt)",
        ),
    ],
)
def test_a_corrupt_item_is_named_without_its_value(item: Item, name: str, said: str) -> None:
    with pytest.raises(CorruptItem) as error:
        value(student, item, name)
    assert str(error.value) == said


def test_a_field_is_not_read_from_a_text_that_loses_a_part() -> None:
    item: Item = {"PK": "STUDENT#7", "SK": "MARK#12#2024-02", "value": Decimal(8)}
    with pytest.raises(CorruptItem, match=r"Mark\.given is missing"):
        value(mark, item, "given")
    assert value(mark, {**item, "GSI1PK": "MARKS", "GSI1SK": "2024-02-29"}, "given") == date(2024, 2, 29)
    assert value(mark, {**item, "given": "2024-02-28"}, "given") == date(2024, 2, 28)


def test_an_item_with_what_stands_in_keys() -> None:
    assert student.completed(ANN) == {**ANN, "studentId": "7", "createdAt": "2024-02-01T10:00:00Z"}
    item: Item = {"PK": "STUDENT#7", "SK": "COURSE#math#0012", "GSI1PK": "math", "GSI1SK": "12#2024-01-01"}
    assert enrolment.completed(item) == {
        **item,
        "studentId": "7",
        "courseFaculty": "math",
        "courseNumber": Decimal(12),
        "since": "2024-01-01",
    }


def test_an_end_comes_from_the_key_then_attributes_then_indexes() -> None:
    item: Item = {"PK": "STUDENT#7", "SK": "COURSE#math#0012", "studentId": "9", "tutorId": "8"}
    assert enrolment.end_identity(item, enrolment.ends["student"]) == ("7",)
    assert enrolment.end_identity(item, enrolment.ends["course"]) == ("math", "0012")
    assert enrolment.end_identity(item, enrolment.ends["tutor"]) == ("8",)
    assert enrolment.end_identity({**item, "tutorId": None}, enrolment.ends["tutor"]) is None
    graded: Item = {"PK": "STUDENT#7", "SK": "MARK#12#2024-02", "Faculty": "math"}
    assert mark.end_identity(graded, mark.ends["course"]) == ("math", "0012"), "in the node's own format"
    with pytest.raises(CorruptItem, match=r"Mark\.course of an item is not a key of Course"):
        mark.end_identity({**graded, "Faculty": True}, mark.ends["course"])
    assert mark.end_identity({**graded, "Number": "twelve"}, mark.ends["course"]) == ("math", "0012"), (
        "the key"
    )


def test_what_a_key_tells() -> None:
    assert student.key_fields == {"student_id"}
    assert course.key_fields == {"faculty", "number"}
    assert enrolment.key_fields == {"student", "course"}
    assert mark.key_fields == {"student"}, "the course's faculty stands nowhere in the key"
    assert day.key_fields == {"day"}


def test_the_value_of_a_key_field_from_an_identity() -> None:
    place, value_of = course.places_in_identity["number"]
    assert (place, value_of("0012"), value_of("")) == (1, 12, None)
    place, value_of = day.places_in_identity["day"]
    assert (place, value_of("2024-02-29")) == (1, date(2024, 2, 29))
    with pytest.raises(KeyError):
        student.places_in_identity["name"]


def test_a_method_sees_the_named_attributes() -> None:
    made = instance(student, {**ANN, "data": {"version": Decimal(2)}}, ("name", "version"))
    assert isinstance(made, Student)
    assert made.label() == "Ann 2"
    assert not hasattr(made, "student_id")


# --- Objects for methods ------------------------------------------------------------------------------


def test_a_method_without_needs_sees_the_whole_item() -> None:
    item: Item = {"PK": "STUDENT#7", "SK": "COURSE#math#0012", "since": "2024-01-01"}
    made = instance(enrolment, item)
    assert (made.student.student_id, made.course.faculty, made.course.number) == ("7", "math", 12)
    assert (made.since, made.tutor) == (date(2024, 1, 1), None)


def test_an_object_of_a_key_alone() -> None:
    made = bare_instance(enrolment, ("7", "math", "0012"))
    assert (made.student.student_id, made.course.number) == ("7", 12)
    assert bare_instance(mark, ("7", "12", "2024-02")).student.student_id == "7"
    assert bare_instance(day, ("2024-02", "2024-02-29")).day == date(2024, 2, 29)
