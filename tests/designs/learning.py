"""Courses in modules and lessons, learners' progress, ranks and certificates: types by index keys, reversed points, shards.

After a learning platform's access patterns: enrollment in both directions, what comes next, and a certificate by its code.
"""

from __future__ import annotations

from datetime import date, datetime
from decimal import Decimal

from keygraph import (
    ID,
    JSON,
    ULID,
    Format,
    Graph,
    Index,
    Many,
    Table,
    copy,
    counts,
    created,
    edge,
    field,
    many,
    node,
    record,
    stored,
)

gsi1 = Index("GSI1", "GSI1PK", "GSI1SK")
ranks = Index("Ranks", "RankPK", "RankSK", projection=["points"])
by_code = Index("ByCode", "code")


@node("U#{user_id:06d}", "U", type={"et": "user"})
class User:
    user_id: int
    name: str
    enrollments: Many[Enrollment] = many(index=None)
    by_title: Many[Enrollment] = many(index=gsi1)
    certificates: Many[Certificate]
    progress: Many[Progress]


@node(
    "C#{slug:[a-z-]+}",
    "C",
    gsi1("SUBJECT#{subject}", "{level?}#{slug}", lists="courses_in"),
    type={"et": "course"},
)
class Course:
    slug: ID
    title: str
    subject: str
    level: int | None
    modules: Many[Module]
    lessons: Many[Lesson]
    learners: Many[Enrollment] = many(index=ranks)
    learners_count: int = counts("learners")


@node("{course}", "M#{number:02d}", type={"et": "module"})
class Module:
    course: Course
    number: int
    title: str
    lessons: Many[Lesson]


@node("{module.course}", "L#{module.number:02d}.{number:02d}", type={"et": "lesson"})
class Lesson:
    module: Module = stored(course_slug="course", number="module")
    course: Course = stored("course")
    number: int
    video: JSON | None = stored("content", "video", default=None)
    minutes: int = stored("content", "min", default=5)


@edge(
    "{user}",
    "E#{course.slug}",
    ranks("{course}", "{points:most}#{user.user_id:06d}"),
    gsi1("{user}", "{course_title}#{course.slug}"),
    type={"et": "enrollment"},
)
class Enrollment:
    user: User
    course: Course
    course_title: str = copy("course.title")
    points: int = 0
    since: datetime = created()
    done: set[str] | None = stored("done", default=None)


@record(
    "{user}",
    "P#{lesson.module.course.slug}#{lesson.module.number:02d}.{lesson.number:02d}",
    type={"et": "progress"},
)
class Progress:
    user: User
    lesson: Lesson = stored(module_course_slug="course", module_number="module", number="lesson")
    percent: int = 0


@node(
    "{cert_id}",
    "CERT",
    gsi1("{user}", "CERT#{issued}"),
    by_code(finds="certificate_by_code"),
    type={"et": "cert"},
)
class Certificate:
    cert_id: ULID
    user: User = stored("holder", whole_key=True)
    course: Course = stored("for", whole_key=True)
    issued: date
    code: str | None
    grade: Decimal | None

    @field(needs=("cert_id",))
    def at(self) -> datetime:
        return self.cert_id.time


@record("SEEN#{day}#{shard}", "{at}#{user.user_id:06d}", shards=3, lists="seen_on", type={"et": "seen"})
class Seen:
    day: date
    at: datetime
    user: User


graph = Graph(
    Table("Learning", partition_key="PK", sort_key="SK", indexes=[gsi1, ranks, by_code]),
    User,
    Course,
    Module,
    Lesson,
    Enrollment,
    Progress,
    Certificate,
    Seen,
    formats={"most": Format.reversed(99_999)},
    writes=True,
)

ITEMS = """
{"PK": "U#000007", "SK": "U", "et": "user", "name": "Ada"}
{"PK": "U#000008", "SK": "U", "et": "user", "name": "Ben"}
{"PK": "C#sql", "SK": "C", "GSI1PK": "SUBJECT#data", "GSI1SK": "1#sql", "et": "course", "title": "SQL", "subject": "data", "level": 1, "learners_count": 2}
{"PK": "C#keys", "SK": "C", "GSI1PK": "SUBJECT#data", "GSI1SK": "#keys", "et": "course", "title": "Keys", "subject": "data", "learners_count": 1}
{"PK": "C#sql", "SK": "M#01", "et": "module", "title": "Tables"}
{"PK": "C#sql", "SK": "M#02", "et": "module", "title": "Joins"}
{"PK": "C#sql", "SK": "L#01.01", "et": "lesson", "content": {"video": {"url": "v/1", "sizes": [360, 720.5]}, "min": 12}}
{"PK": "C#sql", "SK": "L#01.02", "et": "lesson", "content": {}}
{"PK": "C#sql", "SK": "L#02.01", "et": "lesson"}
{"PK": "U#000007", "SK": "E#sql", "RankPK": "C#sql", "RankSK": "99949#000007", "GSI1PK": "U#000007", "GSI1SK": "SQL#sql", "et": "enrollment", "course_title": "SQL", "points": 50, "since": "2024-01-01T00:00:00Z", "done": ["01.01"]}
{"PK": "U#000007", "SK": "E#keys", "RankPK": "C#keys", "RankSK": "99999#000007", "GSI1PK": "U#000007", "GSI1SK": "Keys#keys", "et": "enrollment", "course_title": "Keys", "since": "2024-02-01T00:00:00Z"}
{"PK": "U#000008", "SK": "E#sql", "RankPK": "C#sql", "RankSK": "99899#000008", "GSI1PK": "U#000008", "GSI1SK": "SQL#sql", "et": "enrollment", "course_title": "SQL", "points": 100, "since": "2024-01-02T00:00:00Z"}
{"PK": "U#000007", "SK": "P#sql#01.01", "et": "progress", "percent": 100}
{"PK": "U#000007", "SK": "P#sql#01.02", "et": "progress", "percent": 40}
{"PK": "01HWRQ6W00J3ZM8QK6Y0W5T2AB", "SK": "CERT", "GSI1PK": "U#000008", "GSI1SK": "CERT#2024-05-01", "et": "cert", "holder": "U#000008", "for": "C#sql", "issued": "2024-05-01", "code": "X-1", "grade": 1.3}
{"PK": "SEEN#2024-05-01#0", "SK": "2024-05-01T08:00:00Z#000007", "et": "seen", "day": "2024-05-01"}
{"PK": "SEEN#2024-05-01#2", "SK": "2024-05-01T07:00:00Z#000008", "et": "seen", "day": "2024-05-01"}
"""

ASKED = """
A course with its modules and their lessons
{ course(slug: "sql") { title learnersCount modules { nodes { title lessons { nodes { number minutes video } } } } lessons { totalCount } } }
{"course": {"title": "SQL", "learnersCount": 2, "modules": {"nodes": [{"title": "Tables", "lessons": {"nodes": [{"number": 1, "minutes": 12, "video": {"url": "v/1", "sizes": [360, 720.5]}}, {"number": 2, "minutes": 5, "video": null}]}}, {"title": "Joins", "lessons": {"nodes": [{"number": 1, "minutes": 5, "video": null}]}}]}, "lessons": {"totalCount": 3}}}

Courses of a subject by level, and those of no level
{ coursesIn(subject: "data") { nodes { slug level } } none: coursesIn(subject: "data", level: null) { nodes { slug } } one: coursesIn(subject: "data", level: {eq: 1}) { nodes { slug } } }
{"coursesIn": {"nodes": [{"slug": "keys", "level": null}, {"slug": "sql", "level": 1}]}, "none": {"nodes": [{"slug": "keys"}]}, "one": {"nodes": [{"slug": "sql"}]}}

A learner's courses, by title
{ user(userId: 7) { byTitle { edges { points node { slug } } } k: byTitle(courseTitle: {beginsWith: "K"}) { nodes { title } } } }
{"user": {"byTitle": {"edges": [{"points": 0, "node": {"slug": "keys"}}, {"points": 50, "node": {"slug": "sql"}}]}, "k": {"nodes": [{"title": "Keys"}]}}}

Is a learner in a course
{ user(userId: 7) { enrollments(to: ["sql"]) { edges { since done } } } }
{"user": {"enrollments": {"edges": [{"since": "2024-01-01T00:00:00Z", "done": ["01.01"]}]}}}

The best of a course, and those with 60 points or more
{ course(slug: "sql") { learners { edges { points node { name } } } good: learners(points: {from: 60}) { nodes { userId } } } }
{"course": {"learners": {"edges": [{"points": 100, "node": {"name": "Ben"}}, {"points": 50, "node": {"name": "Ada"}}]}, "good": {"nodes": [{"userId": 8}]}}}

How far a learner is in a course
{ user(userId: 7) { progress(lessonModuleCourseSlug: {eq: "sql"}, lessonModuleNumber: {eq: 1}) { nodes { percent lesson { number minutes module { title } } } } } }
{"user": {"progress": {"nodes": [{"percent": 100, "lesson": {"number": 1, "minutes": 12, "module": {"title": "Tables"}}}, {"percent": 40, "lesson": {"number": 2, "minutes": 5, "module": {"title": "Tables"}}}]}}}

A learner's certificates in a year, and one by its code
{ user(userId: 8) { certificates(issued: {from: "2024-01-01", to: "2024-12-31"}) { nodes { grade at course { title } } } } certificateByCode(code: "X-1") { issued user { name } } }
{"user": {"certificates": {"nodes": [{"grade": "1.3", "at": "2024-05-01T00:00:00Z", "course": {"title": "SQL"}}]}}, "certificateByCode": {"issued": "2024-05-01", "user": {"name": "Ben"}}}

Who was there on a day, over all shards
{ seenOn(day: "2024-05-01", at: {from: "2024-05-01T07:30:00Z"}) { nodes { at user { name } } } all: seenOn(day: "2024-05-01") { nodes { user { userId } } } }
{"seenOn": {"nodes": [{"at": "2024-05-01T08:00:00Z", "user": {"name": "Ada"}}]}, "all": {"nodes": [{"user": {"userId": 8}}, {"user": {"userId": 7}}]}}

Who has finished a lesson
{ lesson(moduleCourseSlug: "sql", moduleNumber: 1, number: 1) { finished { nodes { name } } } }
Progress is in the partitions of the learners, and in no index.
"""

WRITES = """
A learner enrolls: the title is copied, and the course counts
mutation { createEnrollment(input: {userId: 8, courseSlug: "keys"}) { enrollment { points } } }
{ course(slug: "keys") { learnersCount learners { totalCount nodes { name } } } user(userId: 8) { byTitle { nodes { title } } } }
{"course": {"learnersCount": 2, "learners": {"totalCount": 2, "nodes": [{"name": "Ada"}, {"name": "Ben"}]}}, "user": {"byTitle": {"nodes": [{"title": "Keys"}, {"title": "SQL"}]}}}

Twice
mutation { createEnrollment(input: {userId: 8, courseSlug: "keys", points: 5}) { enrollment { points } } }
There is already an Enrollment with this key.

Points are won, and a lesson is done for the first time
mutation { updateEnrollment(input: {userId: 7, courseSlug: "keys", add: {points: 70, done: ["01.01", "01.02"]}}) { enrollment { points } } }
{ course(slug: "keys") { learners(first: 1) { edges { points done node { name } } } } }
{"course": {"learners": {"edges": [{"points": 70, "done": ["01.01", "01.02"], "node": {"name": "Ada"}}]}}}

More points than the ranks have room for
mutation { updateEnrollment(input: {userId: 7, courseSlug: "keys", points: 100000}) { enrollment { points } } }
points of Enrollment has a value that its key cannot hold: its text must fit \\d{5}

A course changes its level and subject, and loses its level
mutation { one: updateCourse(input: {slug: "keys", subject: "db", level: 3}) { course { level } } two: updateCourse(input: {slug: "sql", level: null}) { course { level } } }
{ coursesIn(subject: "data") { nodes { slug level } } db: coursesIn(subject: "db", level: {eq: 3}) { nodes { slug learnersCount } } }
{"coursesIn": {"nodes": [{"slug": "sql", "level": null}]}, "db": {"nodes": [{"slug": "keys", "learnersCount": 2}]}}

A course with a module and its lesson in one input
mutation { createCourse(input: {slug: "no-sql", title: "NoSQL", subject: "data", modules: [{number: 1, title: "Keys", lessons: [{courseSlug: "no-sql", number: 1, minutes: 9}]}]}) { course { learnersCount } } }
{ course(slug: "no-sql") { learnersCount modules { nodes { title lessons { nodes { minutes video } } } } } }
{"course": {"learnersCount": 0, "modules": {"nodes": [{"title": "Keys", "lessons": {"nodes": [{"minutes": 9, "video": null}]}}]}}}

A course whose name the keys do not take
mutation { createCourse(input: {slug: "SQL 2", title: "x", subject: "data"}) { course { slug } } }
slug of Course has a value that its key cannot hold: its text must fit [a-z-]+

The length of a lesson without a map
mutation { updateLesson(input: {module: {courseSlug: "sql", number: 2}, number: 1, minutes: 33, video: {url: "v/2", n: 12345678901234567890.5}}) { lesson { minutes } } }
{ course(slug: "sql") { lessons(moduleNumber: {eq: 2}) { nodes { minutes video } } } }
{"course": {"lessons": {"nodes": [{"minutes": 33, "video": {"url": "v/2", "n": 12345678901234567890.5}}]}}}

Progress in a lesson
mutation { one: putProgress(input: {userId: 8, lesson: {moduleCourseSlug: "sql", moduleNumber: 2, number: 1}, percent: 10}) { created } two: upsertProgress(input: {userId: 8, lesson: {moduleCourseSlug: "sql", moduleNumber: 2, number: 1}, add: {percent: 15}}) { created progress { percent } } }
{ user(userId: 8) { progress { nodes { percent lesson { minutes } } } } }
{"user": {"progress": {"nodes": [{"percent": 25, "lesson": {"minutes": 33}}]}}}

In a lesson that is not there
mutation { putProgress(input: {userId: 8, lesson: {moduleCourseSlug: "sql", moduleNumber: 9, number: 1}, percent: 10}) { created } }
lesson: there is no Lesson with this key.

A certificate, without a code until it is paid
mutation { one: createCertificate(input: {certId: "01HZ8V3K00J3ZM8QK6Y0W5T2AB", userId: 7, courseSlug: "keys", issued: "2024-06-01"}) { certificate { course { title } } } two: updateCertificate(input: {certId: "01HZ8V3K00J3ZM8QK6Y0W5T2AB", code: "X-2"}) { certificate { code } } three: updateCertificate(input: {certId: "01HWRQ6W00J3ZM8QK6Y0W5T2AB", code: null, userId: 7}) { certificate { code } } }
{ user(userId: 7) { certificates { nodes { issued code } } } certificateByCode(code: "X-1") { issued } new: certificateByCode(code: "X-2") { user { name } } }
{"user": {"certificates": {"nodes": [{"issued": "2024-05-01", "code": null}, {"issued": "2024-06-01", "code": "X-2"}]}}, "certificateByCode": null, "new": {"user": {"name": "Ada"}}}

An id that is no ULID
mutation { createCertificate(input: {certId: "x", userId: 7, courseSlug: "keys", issued: "2024-06-01"}) { certificate { code } } }
certId cannot be stored: it is not written in its format, [0-7][0-9A-HJKMNP-TV-Z]{25}.

A learner is seen
mutation { putSeen(input: {day: "2024-05-01", at: "2024-05-01T07:15:00Z", userId: 7}) { created } }
{ seenOn(day: "2024-05-01") { nodes { at user { userId } } } }
{"seenOn": {"nodes": [{"at": "2024-05-01T07:00:00Z", "user": {"userId": 8}}, {"at": "2024-05-01T07:15:00Z", "user": {"userId": 7}}, {"at": "2024-05-01T08:00:00Z", "user": {"userId": 7}}]}}

A learner leaves a course
mutation { deleteEnrollment(input: {userId: 7, courseSlug: "keys"}) { clientMutationId } }
{ course(slug: "keys") { learnersCount learners { nodes { userId } } } }
{"course": {"learnersCount": 1, "learners": {"nodes": [{"userId": 8}]}}}

A course with learners
mutation { deleteCourse(input: {slug: "keys"}) { clientMutationId } }
This Course cannot be deleted. It is named by 1 Enrollment (course).
"""
