"""Record types: the values of an item's fields from attributes, keys and defaults, and its ends."""

from __future__ import annotations

from datetime import UTC, date, datetime
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


def test_a_field_comes_from_its_attribute() -> None:
    """A field would show what stands in a key, which nobody updates."""
    assert value(student, ANN, "name") == "Ann"
    assert value(student, {**ANN, "studentId": "8"}, "student_id") == "8"
    assert value(student, {**ANN, "data": {"version": Decimal(3)}}, "version") == 3
    assert value(student, {**ANN, "grade": "bad"}, "grade") is Grade.BAD


def test_a_field_without_attribute_comes_from_a_key() -> None:
    """Items that hold a field in a key alone would be corrupt."""
    assert value(student, ANN, "student_id") == "7"
    assert value(student, ANN, "created_at") == datetime(2024, 2, 1, 10, tzinfo=UTC)
    assert value(student, {**ANN, "studentId": None}, "student_id") == "7"


def test_a_field_without_both_has_its_default() -> None:
    """A field with a default would be an error where it is missing."""
    assert value(student, ANN, "version") == 1
    assert value(student, ANN, "grade") is Grade.GOOD
    assert value(student, {**ANN, "data": {}}, "version") == 1
    assert value(student, ANN, "nickname") is None
    assert value(student, {**ANN, "nickname": None}, "nickname") is None


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
    """An error would say nothing that helps, or show somebody's data."""
    with pytest.raises(CorruptItem) as error:
        value(student, item, name)
    assert str(error.value) == said


def test_a_field_is_not_read_from_a_text_that_loses_a_part() -> None:
    """A mark would have been given on the first of its month."""
    item: Item = {"PK": "STUDENT#7", "SK": "MARK#12#2024-02", "value": Decimal(8)}
    with pytest.raises(CorruptItem, match=r"Mark\.given is missing"):
        value(mark, item, "given")
    assert value(mark, {**item, "GSI1PK": "MARKS", "GSI1SK": "2024-02-29"}, "given") == date(2024, 2, 29)
    assert value(mark, {**item, "given": "2024-02-28"}, "given") == date(2024, 2, 28)


def test_an_item_with_what_stands_in_keys() -> None:
    """A condition on a field that stands in a key alone would find nothing."""
    assert student.completed(ANN) == {**ANN, "studentId": "7", "createdAt": "2024-02-01T10:00:00Z"}
    item: Item = {"PK": "STUDENT#7", "SK": "COURSE#math#0012", "GSI1PK": "math", "GSI1SK": "12#2024-01-01"}
    assert enrolment.completed(item) == {
        **item,
        "studentId": "7",
        "courseFaculty": "math",
        "courseNumber": Decimal(12),
        "since": "2024-01-01",
    }


# --- Keys and ends ------------------------------------------------------------------------------------


def test_an_item_is_accepted_by_its_key() -> None:
    """An item of another type would be read as this one."""
    assert student.read_identity(ANN) is not None
    assert student.read_identity({"PK": "STUDENT#7", "SK": "STUDENT#7"}) is None
    assert student.read_identity({"PK": "STUDENT#7"}) is None
    assert student.read_identity({"PK": Decimal(7), "SK": "METADATA"}) is None
    assert course.read_identity({"PK": "COURSE#a#0001", "SK": "COURSE#a#0001"}) is not None
    two_courses: Item = {"PK": "COURSE#a#0001", "SK": "COURSE#a#0002"}
    assert course.read_identity(two_courses) is None


def test_the_identity_of_an_item() -> None:
    """An item would be addressed by other texts than its key's."""
    assert student.read_identity(ANN) == ("7",)
    assert course.read_identity({"PK": "COURSE#a#b#0001", "SK": "COURSE#a#b#0001"}) == ("a#b", "0001")
    assert student.read_identity({"PK": "COURSE#a#0001", "SK": "X"}) is None


def test_an_end_comes_from_the_key_then_attributes_then_indexes() -> None:
    """An edge would lead to a node that is not the one in its key."""
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
    """A node would be read though the key says all, or not be read though the key says half."""
    assert student.key_fields == {"student_id"}
    assert course.key_fields == {"faculty", "number"}
    assert enrolment.key_fields == {"student", "course"}
    assert mark.key_fields == {"student"}, "the course's faculty stands nowhere in the key"
    assert day.key_fields == {"day"}


def test_the_value_of_a_key_field_from_an_identity() -> None:
    """A field that is answered from the key would have another value than the item's."""
    place, value_of = course.places_in_identity["number"]
    assert (place, value_of("0012"), value_of("")) == (1, 12, None)
    place, value_of = day.places_in_identity["day"]
    assert (place, value_of("2024-02-29")) == (1, date(2024, 2, 29))
    with pytest.raises(KeyError):
        student.places_in_identity["name"]


# --- Objects for methods ------------------------------------------------------------------------------


def test_a_method_sees_the_named_attributes() -> None:
    """A method of the model would fail, or calculate with raw attributes."""
    made = instance(student, {**ANN, "data": {"version": Decimal(2)}}, ("name", "version"))
    assert isinstance(made, Student)
    assert made.label() == "Ann 2"
    assert not hasattr(made, "student_id")


def test_a_method_without_needs_sees_the_whole_item() -> None:
    """`self` would lack what the class declares."""
    item: Item = {"PK": "STUDENT#7", "SK": "COURSE#math#0012", "since": "2024-01-01"}
    made = instance(enrolment, item)
    assert (made.student.student_id, made.course.faculty, made.course.number) == ("7", "math", 12)
    assert (made.since, made.tutor) == (date(2024, 1, 1), None)


def test_an_object_of_a_key_alone() -> None:
    """A method that asks an end for its id would cost a read, or fail."""
    made = bare_instance(enrolment, ("7", "math", "0012"))
    assert (made.student.student_id, made.course.number) == ("7", 12)
    assert bare_instance(mark, ("7", "12", "2024-02")).student.student_id == "7"
    assert bare_instance(day, ("2024-02", "2024-02-29")).day == date(2024, 2, 29)
