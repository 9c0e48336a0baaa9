"""Mistakes of a graph whose types are sound by themselves: paths, types not told apart, names in the schema."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import date, datetime
from enum import Enum

from keygraph import ID, Index, Many, One, Table, edge, field, many, node, one, record, stored
from tests.keygraph.checked import TABLE, by_date, inverted, mistakes


@node("USER#{user_id}")
class User:
    user_id: ID
    name: str


# --- Paths --------------------------------------------------------------------------------------------


def test_no_path() -> None:
    """A list would be in the schema that nothing can answer but a scan."""

    @node("POST#{post_id}")
    class Post:
        post_id: ID
        author: Writer

    @node("WRITER#{writer_id}")
    class Writer:
        writer_id: ID
        posts: Many[Post] = many()
        users: Many[User] = many()

    assert mistakes(User, Post, Writer) == [
        "Writer.posts: there is no path to Post: no key of Post has author in its partition. "
        "Give Post an index whose partition template holds that end.",
        "Writer.users: there is no path to User: User has no end that is a Writer. "
        "Give User an index whose partition template holds that end.",
    ]


def test_a_choice_of_what_is_not_there() -> None:
    """Whoever misspells an end would be sent to look for a missing index."""

    @node("FOLDER#{folder_id}")
    class Folder:
        folder_id: ID
        children: Many[Inside] = many(at="parnet")
        others: Many[Inside] = many(index=by_date)

    @edge("{parent}", "CHILD#{child.folder_id}")
    class Inside:
        parent: Folder
        child: Folder

    told = mistakes(Folder, Inside)
    assert [said.split(":")[0] for said in told] == ["Folder.children", "Folder.others"]
    assert "parnet" in told[0]
    assert "ByDate" in told[1]


def test_several_paths() -> None:
    """One of two lists would be served, and which one would be chance."""
    table = Table("Things", partition_key="PK", sort_key="SK", indexes=[inverted])

    @node("FOLDER#{folder_id}")
    class Folder:
        folder_id: ID
        children: Many[Inside] = many()

    @edge("{parent}", "CHILD#{child.folder_id}")
    class Inside:
        parent: Folder
        child: Folder

    @edge("{one}", "{other}")
    class Beside:
        one: Folder
        other: Folder

    assert mistakes(Folder, Inside, table=table) == []

    two = Table("Things", partition_key="PK", sort_key="SK", indexes=[by_date, inverted])
    by_name = Index("ByName", "NamePK")
    three = Table("Things", partition_key="PK", sort_key="SK", indexes=[by_date, by_name])

    @node("DESK#{desk_id}")
    class Desk:
        desk_id: ID
        papers: Many[Paper] = many()

    @node("PAPER#{paper_id}", by_date("{desk}", "{written}"), by_name("{desk}"))
    class Paper:
        paper_id: ID
        desk: Desk
        written: date

    @node("PLACE#{place_id}")
    class Place:
        place_id: ID
        roads: Many[Road] = many()

    @edge("{start}", "{end}", by_date("{end}", "{start}"))
    class Road:
        start: Place
        end: Place

    assert mistakes(Place, Road, table=two) == []
    assert mistakes(Desk, Paper, table=three) == [
        "Desk.papers: several paths lead to Paper: desk on ByDate (DESK#{desk.desk_id} / {written}); "
        "desk on ByName (DESK#{desk.desk_id}). Choose one: many(index=ByDate) or many(index=ByName)."
    ]


def test_several_paths_from_two_ends() -> None:
    """A message that does not say how to choose leaves one guessing."""

    @node("PERSON#{person_id}")
    class Person:
        person_id: ID
        letters: Many[Letter] = many()

    @node(
        "LETTER#{letter_id}",
        by_date("{sender}", "{sent}"),
        Index("ByReceiver", "RPK", "RSK")("{receiver}", "{sent}"),
    )
    class Letter:
        letter_id: ID
        sender: Person
        receiver: Person
        sent: date

    table = Table(
        "T", partition_key="PK", sort_key="SK", indexes=[by_date, Index("ByReceiver", "RPK", "RSK")]
    )
    [told] = mistakes(Person, Letter, table=table)
    assert told.startswith("Person.letters: several paths lead to Letter: sender on ByDate (")
    assert 'at="sender"' in told
    assert 'at="receiver"' in told


# --- Types that cannot be told apart ------------------------------------------------------------------


def test_two_types_that_cannot_be_told_apart() -> None:
    """An item would be of the type that happens to be listed first."""

    @node("A#{a_id}", "{kind}#A", type=None)
    class A:
        a_id: ID
        kind: str

    @node("{b_id}", "B#{kind}", type=None)
    class B:
        b_id: ID
        kind: str

    @record("{user}", "X#{x}", type="Same")
    class X:
        user: User
        x: str

    @record("{user}", "X#{y}", type="Same")
    class Y:
        user: User
        y: str

    mend = "Give one of them a type value or a literal prefix of its own."
    assert mistakes(User, A, B, X, Y) == [
        "A: its items cannot be told from those of B: they say no type, and a key can be of both "
        f"(A#{{a_id}} / {{kind}}#A and {{b_id}} / B#{{kind}}). {mend}",
        "X: its items cannot be told from those of Y: they say the same type, and a key can be of both "
        f"(USER#{{user.user_id}} / X#{{x}} and USER#{{user.user_id}} / X#{{y}}). {mend}",
    ]
    assert mistakes(X, Y, User, type_attribute=None) == [
        "X: its items cannot be told from those of Y: they say no type, and a key can be of both "
        f"(USER#{{user.user_id}} / X#{{x}} and USER#{{user.user_id}} / X#{{y}}). {mend}",
    ]


def test_types_that_are_told_apart() -> None:
    """A right model would be refused."""

    @record("USER#{user_id}", "{at}", type=None)
    class Activity:
        user_id: ID
        at: datetime

    @record("USER#{user_id}", "{text}", type=None)
    class Note:
        user_id: ID
        text: str

    @record("USER#{user_id}", "{text}", type="Remark")
    class Remark:
        user_id: ID
        text: str

    assert mistakes(Activity, Note, Remark) == []


def test_an_index_without_the_type_attribute() -> None:
    """Items of a sibling would be in a list, or each would have to be read."""
    by_kind = Index("ByKind", "KindPK", "KindSK", projection="KEYS_ONLY")
    table = Table("Things", partition_key="PK", sort_key="SK", indexes=[by_kind])

    @node("THING#{thing_id}", by_kind("ALL", "{thing_id}"))
    class Car:
        thing_id: ID

    @node("THING#{thing_id}", by_kind("ALL", "{thing_id}", lists=False))
    class Boat:
        thing_id: ID

    assert mistakes(Car, Boat, table=table) == [
        "the root.cars: ByKind does not project Type, which tells Car from Boat. Project Type too."
    ]


# --- Names --------------------------------------------------------------------------------------------


def test_two_generated_names_that_are_one() -> None:
    """The schema could not be built, and say so in words that are not the model's."""

    @node("ORDER#{order_id}")
    class Order:
        order_id: ID
        lines: Many[Line] = many()

    @record("{order}", "LINE#{number}")
    class Line:
        order: Order
        number: int

    @node("ORDERS", "{order_lines_id}")
    class OrderLines:
        order_lines_id: ID

    told = mistakes(Order, Line, OrderLines)
    assert (
        "the root's lists of OrderLines: the schema's name OrderLinesConnection is that of Order.lines too. Rename one."
        in told
    )
    assert (
        "the root's lists of OrderLines: the schema's name OrderLinesEdge is that of Order.lines too. Rename one."
        in told
    )


def test_a_class_with_the_name_of_another() -> None:
    """An enum would be taken for a type."""

    def user_enum() -> type:
        class User(Enum):
            A = "a"

        return User

    kind = user_enum()

    @node("POST#{post_id}")
    class Post:
        post_id: ID
        user: kind  # type: ignore[valid-type]

    assert mistakes(User, Post) == ["Post.user: two types are called User. Rename one."]


def test_fields_that_are_one_in_the_schema() -> None:
    """One of the two fields would be lost."""

    @node("POST#{post_id}")
    class Post:
        post_id: ID
        line_1: str
        line1: str

    @node("Users#{person_id}", by_date("USERS", "{person_id}"), Index("ByName", "NPK")("NAMES"))
    class Person:
        person_id: ID

    @node("USERS#{users_id}")
    class People:
        users_id: ID

    mend = "Rename one; a list is named by lists=, or left out by lists=False."
    table = Table("T", partition_key="PK", sort_key="SK", indexes=[by_date, Index("ByName", "NPK")])
    assert mistakes(Post) == [f"Post: two of its fields are called line1 in the schema. {mend}"]
    assert (
        mistakes(Person, People, table=table)
        == [f"the root: two of its fields are called people in the schema. {mend}"] * 2
    )


def test_the_names_of_ids_that_are_one_in_the_schema() -> None:
    """A field `ID` would be the global id's name."""

    @node("POST#{post_id}")
    class Post:
        post_id: ID
        ID: str

    assert [told.split(":")[0] for told in mistakes(Post)] == ["Post.ID"]


def test_reserved_names() -> None:
    """The schema could not be built."""

    @node("PAGE#{page_id}")
    class PageInfo:
        page_id: ID

    @node("C#{connection_id}")
    class TrainConnection:
        connection_id: ID

    @edge("{user}", "{page}")
    class Visit:
        user: User
        page: PageInfo
        node: str
        cursor: str

    mend = "Rename it."
    assert mistakes(PageInfo, TrainConnection) == [
        f"PageInfo: PageInfo is a name that the schema needs itself. {mend}",
        f"TrainConnection: TrainConnection is a name that the schema needs itself. {mend}",
    ]
    assert mistakes(User, PageInfo, Visit)[1:] == [
        f"Visit.{name}: `{name}` is a field that every edge of a connection has. "
        "Name the field otherwise, with stored() for its attribute."
        for name in ("cursor", "node")
    ]


def test_a_class_with_the_name_of_a_generated_input() -> None:
    """A nested class `DateRange` would be taken for the range of a date argument."""

    @dataclass
    class DateRange:
        start: date
        end: date

    @node("HOTEL", "{opened}#{hotel_id}")
    class Hotel:
        hotel_id: ID
        opened: date
        season: DateRange

    assert len(mistakes(Hotel)) == 1
    assert "DateRange" in mistakes(Hotel)[0]


def test_names_that_are_no_names_of_graphql() -> None:
    """The schema could not be built."""

    class Größe(Enum):
        KLEIN = "k"

    class Answer(Enum):
        true = "y"
        NO = "n"

    @node("POST#{post_id}")
    class Post:
        post_id: ID
        größe: str
        size: Größe
        answer: Answer

    assert mistakes(Post) == [
        "Post.size: Größe is no name of GraphQL. Rename it.",
        "Post.größe: it is no name of GraphQL. Rename it.",
        "Post.answer: Answer.true is no name of GraphQL. Rename it.",
    ]


def test_colliding_arguments() -> None:
    """A list would have two arguments of one name, of which one is lost."""

    @node("MATCH#{match_id}")
    class Match:
        match_id: ID
        goals: Many[Goal] = many()
        last_goal: One[Goal] = one()

    @record("{match}", "GOAL#{first}#{user_id}#{user.user_id}#{direction}")
    class Goal:
        match: Match
        first: int
        user_id: int = stored("player")
        user: User
        direction: str

    mend = "Name the field of the key template otherwise, with stored() for its attribute."
    assert mistakes(User, Match, Goal) == [
        f"Match.goals: two of its arguments are called first. {mend}",
        f"Match.goals: two of its arguments are called userId. {mend}",
        f"Match.goals: two of its arguments are called direction. {mend}",
        f"Match.last_goal: two of its arguments are called userId. {mend}",
    ]


def test_a_method_with_the_name_of_a_field_in_the_schema() -> None:
    """The method's field would replace the stored one."""

    @node("POST#{post_id}")
    class Post:
        post_id: ID
        fullTitle: str  # noqa: N815

        @field(needs=("post_id",))
        def full_title(self) -> str:
            return ""

    assert mistakes(Post, table=TABLE) == [
        "Post: two of its fields are called fullTitle in the schema. "
        "Rename one; a list is named by lists=, or left out by lists=False."
    ]
