"""Ids of several fields, ends within ends, several lists of one type, and lists whose partition asks for arguments.

A small table of a school: lessons by class, by teacher and by room, and marks that are two ends away.
"""

from __future__ import annotations

from enum import Enum
from typing import Any

import pytest

from keygraph import ID, Graph, Index, Many, Table, edge, many, node, record, stored
from keygraph.dynamo.items import Item
from keygraph_resolvers import check
from tests.conftest import in_one_world
from tests.keygraph.checked import by_date, mistakes
from tests.resolvers.worlds import World, filled

gsi1 = Index("GSI1", "GSI1PK", "GSI1SK")
gsi2 = Index("GSI2", "GSI2PK", "GSI2SK")
by_name = Index("ByName", "NamePK", "NameSK")
TWO = Table("Letters", partition_key="PK", sort_key="SK", indexes=[by_date, by_name])


class Day(Enum):
    MON = 1
    TUE = 2


@node("CLASS#{year}#{letter}", "CLASS")
class Form:
    year: int
    letter: ID
    lessons: Many[Lesson] = many()
    term_plans: Many[Plan] = many(index=None)
    all_plans: Many[Plan] = many()
    marks: Many[Mark] = many()


@node("TEACHER#{initials}", "TEACHER")
class Teacher:
    initials: ID
    lessons: Many[Lesson] = many(at="teacher")
    stood_in: Many[Lesson] = many(at="substitute")


@edge(
    "CLASS#{form.year}#{form.letter}",
    "LESSON#{day}#{period:02d}#{teacher.initials}",
    gsi1("{teacher}", "LESSON#{day}#{period:02d}"),
    gsi2("{substitute}", "LESSON#{day}#{period:02d}"),
)
class Lesson:
    form: Form
    teacher: Teacher
    day: Day
    period: int
    substitute: Teacher | None


@record(
    "PLAN#{form.year}#{form.letter}#{term}",
    "{day}",
    gsi1("PLANS#{form.year}#{form.letter}", "{term}#{day}"),
)
class Plan:
    form: Form = stored(year="Year", letter="Letter")
    term: str
    day: Day
    text: str


@node(
    "PUPIL#{form.year}#{form.letter}#{number}",
    "PUPIL",
    gsi2("{form.year}", "{number:03d}", lists="pupils_of"),
)
class Pupil:
    form: Form
    number: int
    name: str
    marks: Many[Mark] = many()


@record(
    "PUPIL#{pupil.form.year}#{pupil.form.letter}#{pupil.number}",
    "MARK#{mark_id}",
    gsi1("MARKS#{pupil.form.year}#{pupil.form.letter}", "{mark_id}", lists="marks_of"),
)
class Mark:
    pupil: Pupil = stored(form_year="Year", form_letter="Letter", number="Number")
    mark_id: ID
    form: Form = stored(year="Year", letter="Letter")


TABLE = Table("School", partition_key="PK", sort_key="SK", indexes=[gsi1, gsi2])


graph = Graph(TABLE, Form, Teacher, Lesson, Plan, Pupil, Mark)

ITEMS: list[Item] = [
    {"PK": "CLASS#7#b", "SK": "CLASS"},
    {"PK": "TEACHER#mm", "SK": "TEACHER"},
    {"PK": "CLASS#7#b", "SK": "LESSON#2#03#mm", "GSI1PK": "TEACHER#mm", "GSI1SK": "LESSON#2#03"},
    {
        "PK": "CLASS#7#b",
        "SK": "LESSON#1#10#mm",
        "GSI1PK": "TEACHER#mm",
        "GSI1SK": "LESSON#1#10",
        "GSI2PK": "TEACHER#zz",
        "GSI2SK": "LESSON#1#10",
        "substitute_id": "zz",
    },
    {"PK": "PLAN#7#b#autumn", "SK": "1", "text": "a", "GSI1PK": "PLANS#7#b", "GSI1SK": "autumn#1"},
    {"PK": "PLAN#7#b#spring", "SK": "2", "text": "s", "GSI1PK": "PLANS#7#b", "GSI1SK": "spring#2"},
    {"PK": "PUPIL#7#b#12", "SK": "PUPIL", "name": "Ada", "GSI2PK": "7", "GSI2SK": "012"},
    {"PK": "PUPIL#7#b#12", "SK": "MARK#m1", "GSI1PK": "MARKS#7#b", "GSI1SK": "m1"},
]

school = filled(graph, ITEMS)


@in_one_world(
    ("query", "wanted"),
    [
        # ids of several fields, the second of which is a node's
        (
            '{ pupil(formYear: 7, formLetter: "b", number: 12) { name form { year letter } marks { nodes { markId } } } }',
            {
                "pupil": {
                    "name": "Ada",
                    "form": {"year": 7, "letter": "b"},
                    "marks": {"nodes": [{"markId": "m1"}]},
                }
            },
        ),
        # an end within an end, from the node that is furthest away
        (
            '{ form(year: 7, letter: "b") { marks { nodes { markId pupil { name number form { letter } } } } } }',
            {
                "form": {
                    "marks": {
                        "nodes": [
                            {"markId": "m1", "pupil": {"name": "Ada", "number": 12, "form": {"letter": "b"}}}
                        ]
                    }
                }
            },
        ),
        (
            '{ marksOf(pupilFormYear: 7, pupilFormLetter: "b") { nodes { pupil { name } } } }',
            {"marksOf": {"nodes": [{"pupil": {"name": "Ada"}}]}},
        ),
        (
            "{ pupilsOf(formYear: 7, number: {from: 2, to: 12}) { nodes { name form { letter } } } }",
            {"pupilsOf": {"nodes": [{"name": "Ada", "form": {"letter": "b"}}]}},
        ),
        # two lists of one edge from one type of node, by its ends
        (
            '{ a: teacher(initials: "mm") { lessons { edges { day period node { letter } } } '
            'stoodIn { totalCount } } z: teacher(initials: "zz") { initials } }',
            {
                "a": {
                    "lessons": {
                        "edges": [
                            {"day": "MON", "period": 10, "node": {"letter": "b"}},
                            {"day": "TUE", "period": 3, "node": {"letter": "b"}},
                        ]
                    },
                    "stoodIn": {"totalCount": 0},
                },
                "z": None,
            },
        ),
        # several arguments of one sort key
        (
            '{ form(year: 7, letter: "b") { lessons(day: {eq: TUE}, period: {from: 1, to: 9}) '
            "{ totalCount edges { period node { initials } } } } }",
            {"form": {"lessons": {"totalCount": 1, "edges": [{"period": 3, "node": {"initials": "mm"}}]}}},
        ),
        # an argument of the partition, and the same records by another key without it
        (
            '{ form(year: 7, letter: "b") { termPlans(term: "spring") { nodes { text } } '
            'allPlans { totalCount } spring: allPlans(term: {beginsWith: "sp"}) { nodes { day } } } }',
            {
                "form": {
                    "termPlans": {"nodes": [{"text": "s"}]},
                    "allPlans": {"totalCount": 2},
                    "spring": {"nodes": [{"day": "TUE"}]},
                }
            },
        ),
    ],
)
async def test_what_is_asked_by_several_fields(school: World, query: str, wanted: Any) -> None:
    assert await school.ask(query) == wanted


@pytest.mark.parametrize("letter", ["", "b" * 2048, "\ud800"])
async def test_a_field_that_makes_no_key(school: World, letter: str) -> None:
    document = "query ($letter: ID!) { pupil(formYear: 7, formLetter: $letter, number: 2) { name } }"
    assert await school.codes(document, letter=letter) == ["BAD_USER_INPUT"]
    assert school.operations == {}


def test_mistakes_of_ids_and_nested_ends() -> None:
    @record("X#{pupil.name}", "C#{day}")
    class ByName:
        pupil: Pupil
        day: Day

    told = mistakes(Form, Teacher, Lesson, Plan, Pupil, Mark, ByName, table=TABLE)
    assert told == [
        'ByName: the template "X#{pupil.name}": {pupil.name} names no key field of Pupil. '
        "A template can name form.year, form.letter, number.",
    ]


def test_mistakes_of_several_lists() -> None:
    @node("USER#{user_id}")
    class User:
        user_id: ID
        letters: Many[Letter] = many()
        sent: Many[Letter] = many(at="sendr")

    @node("LETTER#{letter_id}", by_date("{sender}", "{receiver}"), by_name("{receiver}", "{letter_id}"))
    class Letter:
        letter_id: ID
        sender: User
        receiver: User

    @node("PAGE#{page_id}", by_date("PAGES", "{page_id}"), by_name("PAGES#{kind}", "{page_id}"))
    class Page:
        page_id: ID
        kind: str

    assert mistakes(User, Letter, Page, table=TWO, check=check) == [
        "User.letters: several paths lead to Letter: "
        "sender on ByDate (USER#{sender.user_id} / USER#{receiver.user_id}); "
        "receiver on ByName (USER#{receiver.user_id} / {letter_id}). "
        'Choose one: many(at="sender" or at="receiver").',
        "User.sent: Letter has no end called sendr that is a User. Its ends of that type: sender, receiver.",
        "the root: 2 fields are called pages in the schema: "
        "the list of Page in the index ByDate, the list of Page in the index ByName. "
        'Rename all but one: lists="…" names a list, and lists=False removes it.',
    ]
