"""Mistakes of a graph whose types are sound by themselves: paths, and types not told apart."""

from __future__ import annotations

from datetime import date, datetime

from keygraph import ID, Index, Many, Table, created, edge, field, many, node, record
from tests.keygraph.checked import User, by_date, inverted, mistakes

# --- Paths --------------------------------------------------------------------------------------------


def test_no_path() -> None:
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
        "Writer.posts: there is no path to Post: no partition key of Post contains {author}. "
        "Give Post an index whose partition template contains that end.",
        "Writer.users: there is no path to User: User has no end that is a Writer. "
        "Give User an index whose partition template contains that end.",
    ]


def test_no_path_from_the_end_that_is_named() -> None:
    @node("TEAM#{team_id}")
    class Team:
        team_id: ID
        at_home: Many[Match] = many(at="home")
        away: Many[Match] = many(at="guest")

    @record("{home}", "MATCH#{day}")
    class Match:
        home: Team
        guest: Team
        day: date

    assert mistakes(Team, Match) == [
        "Team.away: there is no path to Match: no partition key of Match contains {guest}. "
        "Give Match an index whose partition template contains that end.",
    ]


def test_the_server_sets_no_part_of_the_tables_key() -> None:
    @node("TEAM#{team_id}")
    class Team:
        team_id: ID

    @record("{team}", "EVENT#{day}")
    class Event:
        team: Team
        made: datetime = created()

        @field(needs=("made",))
        def day(self) -> str:
            return f"{self.made:%Y-%m-%d}"

    assert mistakes(Team, Event) == [
        "Event.made: created() in the table's key: a write that is tried again would make another item. "
        "Let clients give it, or use new_id(), whose ids are in the order of creation."
    ]


def test_a_list_in_the_partition_of_another_node_has_to_be_meant() -> None:
    @node("BOOK#{isbn}")
    class Book:
        isbn: ID
        loans: Many[Loan] = many()
        meant: Many[Loan] = many(needs=("member_id",))
        other: Many[Loan] = many(needs=("isbn",))
        copies: Many[Copy] = many(index=None)
        by_hall: Many[Copy] = many(index=by_date, needs=("hall",))

    @node("MEMBER#{member_id}")
    class Member:
        member_id: ID
        loans: Many[Loan] = many()

    @edge("{member}", "LOAN#{book}")
    class Loan:
        member: Member
        book: Book

    # The partition is the book's own in part, or no node's: an argument that a reader of the key expects.
    @record("{book}#{hall}", "COPY#{number}", by_date("{hall}", "{book}"))
    class Copy:
        book: Book
        hall: str
        number: int

    assert mistakes(Book, Member, Loan, Copy) == [
        "Book.loans: it reads the partition of another node (MEMBER#{member.member_id} / LOAN#BOOK#{book.isbn}), so a client "
        "has to name member_id too. Give Loan an index whose partition template contains {book}, or say that it is meant: "
        'many(needs=("member_id",)).',
        "Book.other: needs= names isbn, and its required arguments are member_id. "
        'Write many(needs=("member_id",)).',
    ]


def test_a_path_that_lacks_a_part_of_the_owner() -> None:
    @node("OWNER#{owner}#TREE#{tree}")
    class Tree:
        owner: ID
        tree: ID
        people: Many[Person] = many()
        leaves: Many[Leaf] = many()

    @node("TREE#{tree.tree}", "PERSON#{person_id}", by_date("{born}", "{tree.tree}"))
    class Person:
        tree: Tree
        person_id: ID
        born: date

    @record("LEAVES", "{day}#{tree}")
    class Leaf:
        tree: Tree
        day: date

    assert mistakes(Tree, Person, Leaf) == [
        "Tree.people: there is no path to Person: its table key (TREE#{tree.tree} / PERSON#{person_id}) lacks "
        "{tree.owner}, so all of Tree that differ only there would have the same list. "
        "Put {tree.owner} into the partition template, or at the beginning of the sort template.",
        "Tree.leaves: there is no path to Leaf: in its table key (LEAVES / {day}#OWNER#{tree.owner}#TREE#{tree.tree}), "
        "{tree.owner} and {tree.tree} comes after {day}, which is not known. "
        "Put it before that, or give Leaf an index whose partition template contains {tree}.",
    ]


def test_the_table_is_no_path() -> None:
    @node("FLEET#{fleet_id}")
    class Fleet:
        fleet_id: ID
        devices: Many[Device] = many(index=None)

    @record("DEVICE#{serial}", "A", by_date("{fleet}", "{serial}"))
    class Device:
        fleet: Fleet
        serial: str

    assert mistakes(Fleet, Device) == [
        "Fleet.devices: there is no path to Device: the table's partition key of Device does not contain {fleet}. "
        "Choose an index: many(index=ByDate)."
    ]


def test_a_choice_of_what_is_not_there() -> None:
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
        "desk on ByName (DESK#{desk.desk_id}). Choose one: many(index=ByDate or index=ByName)."
    ]


def test_several_paths_from_two_ends() -> None:

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
        "Tests", partition_key="PK", sort_key="SK", indexes=[by_date, Index("ByReceiver", "RPK", "RSK")]
    )
    [told] = mistakes(Person, Letter, table=table)
    assert told.startswith("Person.letters: several paths lead to Letter: sender on ByDate (")
    assert 'at="sender"' in told
    assert 'at="receiver"' in told


# --- Types that cannot be told apart ------------------------------------------------------------------


def test_two_types_that_cannot_be_told_apart() -> None:
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

    fix = "Give one of them its own type value or literal prefix."
    assert mistakes(User, A, B, X, Y) == [
        "A: its items cannot be distinguished from those of B: they have no type value, and "
        f"a key such as A#1 / B#A can belong to both (A#{{a_id}} / {{kind}}#A and {{b_id}} / B#{{kind}}). {fix}",
        "X: its items cannot be distinguished from those of Y: they have the same type value, and "
        f"a key such as USER#a / X#a can belong to both (USER#{{user.user_id}} / X#{{x}} and USER#{{user.user_id}} / X#{{y}}). {fix}",
    ]
    assert mistakes(X, Y, User, type_attribute=None) == [
        "X: its items cannot be distinguished from those of Y: they have no type value, and "
        f"a key such as USER#a / X#a can belong to both (USER#{{user.user_id}} / X#{{x}} and USER#{{user.user_id}} / X#{{y}}). {fix}",
    ]


def test_types_that_meet_where_placeholders_repeat() -> None:
    """What both accept is found only with one certain text in several places."""

    @record("{n}0{x}", "{x}", type=None)
    class A:
        n: int
        x: str

    @record("{x}0{x}", "0", type=None)
    class B:
        x: str

    [told] = mistakes(A, B)
    assert "a key such as 000 / 0 can belong to both" in told


def test_types_that_meet_where_no_sample_shows_it() -> None:
    """The key is 000 / 000-0-00-0: `x` is 0 in both, and `y` is "-0-00" in one and "-0" in the other."""

    @record("0{x}0", "0{x}0{y}-{n}", type=None)
    class A:
        x: ID
        y: str
        n: int

    @record("0{x}0", "000{y}-{x}0{y}", type=None)
    class B:
        x: ID
        y: str

    [problem] = mistakes(A, B)
    assert "can belong to both (0{x}0 / 0{x}0{y}-{n} and 0{x}0 / 000{y}-{x}0{y})" in problem


def test_types_that_few_keys_could_belong_to() -> None:
    """Only 20241300 to 20241399, which are no days, have both forms."""

    @record("{day:%Y%m%d}", "A", type=None)
    class A:
        day: date

    @record("202413{x:[0-9]{2}}", "A", type=None)
    class B:
        x: str

    assert mistakes(A, B) == []


def test_an_index_without_the_type_attribute() -> None:
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


# --- Items of others ----------------------------------------------------------------------------------


def test_a_pattern_of_ignored_items_fits_no_key_of_a_type() -> None:
    @node("SHOP#{shop_id}")
    class Shop:
        shop_id: ID

    @record("{shop}", "VISIT#{number}")
    class Visit:
        shop: Shop
        number: int

    patterns = ["SHOP#* / LOCK#*", "SHOP*", "SHOP#1 / VISIT#*", "SESSION#*"]
    problem = (
        "the graph: ignore= has {}, which keys of {} can fit ({}). Write a pattern that no key of {} fits."
    )
    shop, visit = "SHOP#{shop_id} / SHOP#{shop_id}", "SHOP#{shop.shop_id} / VISIT#{number}"
    assert mistakes(Shop, Visit, type_attribute=None, ignore=patterns) == [
        problem.format("SHOP*", "Shop", shop, "Shop"),
        problem.format("SHOP*", "Visit", visit, "Visit"),
        problem.format("SHOP#1 / VISIT#*", "Visit", visit, "Visit"),
    ]
    # A type attribute tells which items are theirs.
    assert mistakes(Shop, Visit, ignore=patterns) == []
    for wrong in ("SESSION#*", [""], [7]):
        [mistake] = mistakes(Shop, Visit, ignore=wrong)
        assert mistake.startswith(f"the graph: ignore={wrong!r} is not a list of keys with wildcards.")
