"""Paths by what an index is: one without templates of its own, and the lists and finders at the root."""

from __future__ import annotations

from datetime import date, datetime

from keygraph import ID, Index, Many, Table, edge, field, many, node, record
from keygraph.lists.query import ListForm
from keygraph.lists.ranges import KeyArguments
from tests.keygraph.shown_paths import by_day, graph, gsi1, shown_list

# --- Indexes without templates ------------------------------------------------------------------------


def test_half_an_inverted_index_is_called_with_the_other_half() -> None:
    half = Index("Half", "SK", "HalfSK")
    table = Table("Tests", partition_key="PK", sort_key="SK", indexes=[half])

    @node("USER#{user_id}")
    class User:
        user_id: ID

    @node("POST#{post_id}")
    class Post:
        post_id: ID
        likes: Many[Like] = many()

    @edge("{user}", "LIKES#{post}", half("{liked_at}"))
    class Like:
        user: User
        post: Post
        liked_at: datetime

    made = graph(User, Post, Like, table=table)
    assert shown_list(made, "Post", "likes") == "Half post: LIKES#POST#{post.post_id} /  + {liked_at}"


def test_an_edge_from_a_third_end_is_a_record() -> None:
    @node("USER#{user_id}")
    class User:
        user_id: ID
        granted: Many[Grant] = many(at="granter")

    @node("ROOM#{room_id}")
    class Room:
        room_id: ID

    @edge("{user}", "{room}", gsi1("GRANTER#{granter.user_id}", "{room}"))
    class Grant:
        user: User
        room: Room
        granter: User

    made = graph(User, Room, Grant)
    path = made.node_lists["User", "granted"]
    assert (path.far_end, path.nodes) == (None, (path.record,))


# --- The root -----------------------------------------------------------------------------------------


def test_lists_at_the_root() -> None:
    @node("USER#{user_id}", gsi1("USER", "{created_at}"), by_day("{day}", "{user_id}", lists="users_of_day"))
    class User:
        user_id: ID
        created_at: datetime
        day: date

    @node("STUDENTS", "{student_id}")
    class Student:
        student_id: ID

    @node("COURSES", "{course_id}", lists=False)
    class Course:
        course_id: ID

    @record("{user}", "NOTE#{note_id}", gsi1("NOTES#{year:04d}", "{note_id}", lists=False))
    class Note:
        user: User
        note_id: ID
        year: int

    @record("{user}", "MARK#{mark_id}", gsi1("MARK#{user.user_id}", "{mark_id}", lists="marks"))
    class Mark:
        user: User
        mark_id: ID

    made = graph(User, Student, Course, Note, Mark)
    assert [
        (path.name, path.record.name, [argument.name for argument in path.required])
        for path in made.root_lists
    ] == [
        ("users", "User", []),
        ("users_of_day", "User", ["day"]),
        ("students", "Student", []),
        ("marks", "Mark", ["user_id"]),
    ]


def test_a_list_by_an_optional_end() -> None:
    @node("STAFF#{staff_id}", gsi1("TEAM#{manager?}", "{name}", lists="team"))
    class Staff:
        staff_id: ID
        name: str
        manager: Staff | None

    made = graph(Staff)
    [path] = made.root_lists
    assert [(argument.name, argument.optional) for argument in path.required] == [("manager_id", True)]
    assert ListForm(made, path, KeyArguments({"manager_id": "7"})).of(None).partitions == ("TEAM#STAFF#7",)
    assert ListForm(made, path, KeyArguments({})).of(None).partitions == ("TEAM#",)


def test_a_list_by_a_methods_text() -> None:
    @node("ISSUE#{issue_id}", gsi1("{state_key}", "{issue_id}", lists="issues_by_state"))
    class Issue:
        issue_id: ID
        is_open: bool

        @field(needs=("is_open",))
        def state_key(self) -> str:
            return "OPEN" if self.is_open else "CLOSED"

    made = graph(Issue)
    [path] = made.root_lists
    [argument] = path.required
    assert (argument.name, argument.is_text) == ("state_key", True)
    assert ListForm(made, path, KeyArguments({"state_key": "OPEN"})).of(None).partitions == ("OPEN",)
