"""Paths by what an index is: one without templates of its own, and the lists and finders at the root."""

from __future__ import annotations

from datetime import date, datetime

from keygraph import ID, Index, Many, Table, edge, field, many, node, record, stored
from keygraph.lists.listing import bind
from tests.keygraph.shown_paths import by_day, graph, gsi1, shown, shown_list

# --- Indexes without templates ------------------------------------------------------------------------


def test_an_inverted_index_needs_no_templates() -> None:
    """Every type would have to repeat its own keys."""
    inverted = Index("reverse-lookup-index", "relatedObjectId", "objectId")
    table = Table("Tests", partition_key="objectId", sort_key="relatedObjectId", indexes=[inverted])

    @node("AGENT#{agent_id}")
    class Agent:
        agent_id: ID
        calls: Many[Call] = many()

    @node("CUSTOMER#{customer_id}")
    class Customer:
        customer_id: ID
        calls: Many[Call] = many()

    @edge("{agent}", "{customer}")
    class Call:
        agent: Agent
        customer: Customer

    made = graph(Agent, Customer, Call, table=table)
    assert shown_list(made, "Agent", "calls").startswith("None agent: AGENT#")
    assert shown_list(made, "Customer", "calls") == (
        "reverse-lookup-index customer: CUSTOMER#{customer.customer_id} / AGENT# + {agent.agent_id}"
    )
    assert made.root_lists == ()


def test_an_inverted_index_offers_a_list_at_the_root_where_it_is_asked_for() -> None:
    """Clients would be offered a list by a value of the sort key that nobody has in mind."""
    inverted = Index("inverted", "SK", "PK")
    table = Table("Tests", partition_key="PK", sort_key="SK", indexes=[inverted])

    @node("BOOK#{book_id}", "BOOK")
    class Book:
        book_id: ID

    @node("READER#{reader_id}", "READER", inverted(lists="readers"))
    class Reader:
        reader_id: ID

    @record("{reader}", "{day}#{number}")
    class Visit:
        reader: Reader
        day: date
        number: int

    made = graph(Book, Reader, Visit, table=table)
    assert [(path.name, shown(path)) for path in made.root_lists] == [
        ("readers", "inverted None: READER / READER# + {reader_id}")
    ]


def test_half_an_inverted_index_is_called_with_the_other_half() -> None:
    """A template would have to be written twice, and could differ."""
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


def test_an_index_key_that_is_a_fields_attribute() -> None:
    """A list by state would need a second attribute with the same text."""
    by_state = Index("by-state", "State", "PK")
    by_room = Index("by-room", "roomId", "PK")
    table = Table("Tests", partition_key="PK", sort_key="SK", indexes=[by_state, by_room])

    @node("ROOM#{room_id}")
    class Room:
        room_id: ID
        devices: Many[Device] = many()

    @node("DEVICE#{device_id}", by_room(lists="devices_of_room"))
    class Device:
        device_id: ID
        state: str = stored("State")
        room: Room = stored("roomId")

    made = graph(Room, Device, table=table)
    assert shown_list(made, "Room", "devices") == "by-room room: {room.room_id} / DEVICE# + {device_id}"
    assert [(path.name, path.keys.index_name) for path in made.root_lists] == [
        ("devices", "by-state"),
        ("devices_of_room", "by-room"),
    ]
    assert [argument.name for argument in made.root_lists[1].required] == ["room_id"]


def test_an_edge_from_a_third_end_is_a_record() -> None:
    """The list would show one of two far nodes and hide the other."""

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
    path = made.path(made.types["User"], "granted")
    assert (path.far_end, path.nodes) == (None, (path.record,))


# --- The root -----------------------------------------------------------------------------------------


def test_lists_at_the_root() -> None:
    """A type could not be listed, or be listed where only one item can be."""

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


def test_a_finder() -> None:
    """A user could not be found by the e-mail address."""

    @node("USER#{user_id}", gsi1("EMAIL#{email}", finds="user_by_email"))
    class User:
        user_id: ID
        email: str

    one_key = Index("GSI1", "GSI1PK")
    table = Table("Tests", partition_key="PK", sort_key="SK", indexes=[gsi1])
    assert one_key != gsi1
    made = graph(User, table=table)
    [path] = made.finders
    assert made.root_lists == ()
    assert (path.name, path.is_one, [argument.name for argument in path.required]) == (
        "user_by_email",
        True,
        ["email"],
    )
    assert bind(made, path, None, {"email": "a@b"}).partitions == ("EMAIL#a@b",)


def test_a_list_by_an_optional_end() -> None:
    """Those without a manager could not be listed."""

    @node("STAFF#{staff_id}", gsi1("TEAM#{manager?}", "{name}", lists="team"))
    class Staff:
        staff_id: ID
        name: str
        manager: Staff | None

    made = graph(Staff)
    [path] = made.root_lists
    assert [(argument.name, argument.optional) for argument in path.required] == [("manager_id", True)]
    assert bind(made, path, None, {"manager_id": "7"}).partitions == ("TEAM#STAFF#7",)
    assert bind(made, path, None, {}).partitions == ("TEAM#",)


def test_a_list_by_a_methods_text() -> None:
    """Open issues could not be listed by a key that a method makes."""

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
    assert bind(made, path, None, {"state_key": "OPEN"}).partitions == ("OPEN",)
