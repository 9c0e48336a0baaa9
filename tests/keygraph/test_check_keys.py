"""Mistakes of key templates and of the keys in indexes."""

from __future__ import annotations

from datetime import date

import pytest

from keygraph import ID, Index, Many, Ranked, Table, edge, field, many, node, ranked, record, stored
from keygraph.dynamo.table import IndexKey
from tests.keygraph.checked import Repository, User, by_date, by_state, inverted, mistakes


def template_mistakes(*keys: str | IndexKey) -> list[str]:
    """What `check` says of a record with these keys."""

    @record(*keys)
    class Post:
        post_id: ID
        title: str
        number: int
        day: date
        data: list[str]
        user: User
        repository: Repository

        @field(needs=("title",))
        async def slow(self) -> str:
            return self.title

        @field()
        def whole(self) -> str:
            return self.title

        @field(needs=("title",))
        def cut(self, length: int) -> str:
            return self.title[:length]

        @field(needs=("title",))
        def size(self) -> int:
            return len(self.title)

        @field(needs=("user",))
        def owner(self) -> User:
            return self.user

        @field(needs=("title",))
        def initial(self) -> str | None:
            return self.title[:1] or None

    return mistakes(Post, User, Repository, table=Table("Tests", partition_key="PK", sort_key="SK"))


@pytest.mark.parametrize(
    ("source", "said"),
    [
        ("POST#{post_id", "expected '}' before end of string. Write it as \"ORDER#{order_id}\"."),
        ("", 'it is empty. Write it as "ORDER#{order_id}".'),
        ("{0}", '{0} is not a field name. Write it as "ORDER#{order_id}".'),
        (
            "POST#{post}",
            "{post} is not a field of Post. Its fields are post_id, title, number, day, data, user, repository.",
        ),
        (
            "{author.user_id}",
            "{author.user_id} is not a field of Post. "
            "Its fields are post_id, title, number, day, data, user, repository.",
        ),
        ("{user.id}", "{user.id} is not a field of User. Its fields are user_id, name."),
        ("{user.name}", "{user.name} names no key field of User. A template can name user_id."),
        (
            "{repository}",
            "{repository} stands for the partition key of Repository, which does not identify it. "
            "Write its key fields: {repository.owner}, {repository.name}.",
        ),
        (
            "{data}",
            "{data}: a field of type list of string cannot be part of a key. Use another field or format.",
        ),
        (
            "{title:>10}",
            "{title:>10}: a format cannot be used with a field of type string. Use another field or format.",
        ),
        (
            "{number:+d}",
            "{number:+d}: {:+d} writes integers that cannot be read back. Use another field or format.",
        ),
        (
            "{day:d}",
            "{day:d}: {:d} is not a format for date: it has no %. "
            'Use another field or format, or declare it on the graph: formats={"d": Format(…)}.',
        ),
        (
            "{post_id}{title}",
            "it cannot be parsed: there is no text between {post_id} and {title}. "
            "Put literal text between them.",
        ),
        (
            "{title?}{post_id}",
            "it cannot be parsed: there is no text between {title} and {post_id}. "
            "Put literal text between them.",
        ),
        *(
            (
                "{" + method + "}",
                f"{method} cannot be part of a key. "
                "It must not be async or take arguments, and must name the fields it needs.",
            )
            for method in ("slow", "whole", "cut")
        ),
        *(
            (
                f"{{{method}:08d}}",
                f"{method} returns no text. Annotate it as -> str, and return the text as the key has it.",
            )
            for method in ("size", "owner")
        ),
        (
            "{initial:.1}",
            "{initial:.1} has a format, and initial writes its text itself. "
            "Write {initial}, and let the method return the text as the key has it.",
        ),
    ],
)
def test_a_template_that_cannot_be_used(source: str, said: str) -> None:
    assert template_mistakes(source, "A") == [f'Post: the template "{source}": {said}']


def test_an_optional_part_between_two_values() -> None:
    @node("STAFF#{staff_id}#")
    class Staff:
        staff_id: ID

    @record("{first}{manager?}{second}", "A")
    class Desk:
        first: str
        second: str
        manager: Staff | None

    assert mistakes(Staff, Desk) == [
        'Desk: the template "{first}{manager?}{second}": it cannot be parsed: '
        "there is no text between {first} and {second}. Put literal text between them."
    ]


def test_a_node_is_told_its_mistake_once() -> None:

    @node("{post_id}{title}")
    class Post:
        post_id: ID
        title: str

    assert mistakes(Post) == [
        'Post: the template "{post_id}{title}": it cannot be parsed: '
        "there is no text between {post_id} and {title}. Put literal text between them."
    ]


def test_templates_for_another_number_of_keys() -> None:
    @record("POST#{post_id}")
    class Post:
        post_id: ID

    @node("A#{a_id}", "B", "C")
    class A:
        a_id: ID

    @node()
    class B:
        b_id: ID

    fix = "Give one for each of PK and SK."
    assert mistakes(Post, A, B) == [
        f"Post: it has 1 template for the table's key. {fix}",
        f"A: it has 3 templates for the table's key. {fix}",
        f"B: it has no template for the table's key. {fix}",
    ]


def test_a_key_that_is_made_of_itself() -> None:
    @node("{parent}")
    class Folder:
        folder_id: ID
        parent: Folder

    @node("A#{b}")
    class A:
        b: B

    @node("B#{a}")
    class B:
        a: A

    assert mistakes(Folder) == [
        "Folder: its key refers to itself through an end. Write out the key's fields."
    ]
    assert [told.split(".")[0] for told in mistakes(A, B)] == ["A: its key refers to itself through an end"]


def test_a_node_without_key_fields() -> None:
    @node("SETTINGS")
    class Settings:
        theme: str

    assert mistakes(Settings) == [
        "Settings: its key has no placeholder, so there could be only one such node. "
        "Add a field to its key template."
    ]


def test_an_edge_of_another_number_of_ends() -> None:
    @edge("{user}", "NOTE#{note_id}")
    class Note:
        user: User
        note_id: ID

    assert mistakes(User, Note) == [
        "Note: an edge has two ends in its table key; this one has 1 (user). "
        "Put two ends into it, or declare a record."
    ]


def test_shards() -> None:
    @record("{user}#{shard}", "A")
    class Unnumbered:
        user: User

    @record("{user}#N{shard}", "A", shards=0)
    class Zero:
        user: User

    @record("{user}", "B", shards=5)
    class Unspread:
        user: User

    @record("{user}", "C", by_date("D", "{shard}", shards=2))
    class Astray:
        user: User

    @node("E#{shard_id}", "{shard}")
    class InSortKey:
        shard_id: ID

    use = 'Use shards=5, shards=range(1, 6) or shards=["north", "south"].'
    none = f"its partition has {{shard}} and no shards=. {use}"
    lost = "it has shards= but no {shard} in its partition. Put {shard} into it."
    assert mistakes(User, Unnumbered, Zero, Unspread, Astray) == [
        f"Zero: shards=0 is not a number of shards, a range or a list of names. {use}",
        f"Unnumbered: {none}",
        f"Unspread: {lost}",
        f"Astray in ByDate: {lost}",
    ]
    assert [told.split(":")[0] for told in mistakes(InSortKey)] == ["InSortKey"]


def test_a_field_or_an_end_called_shard() -> None:
    @node("POST#{post_id}")
    class Post:
        post_id: ID
        shard: str

    @node("NOTE#{note_id}")
    class Note:
        note_id: ID
        shard: User

    said = "`shard` is the placeholder of a shard. Rename the field."
    assert mistakes(Post, User) == [f"Post.shard: {said}"]
    assert mistakes(Note, User) == [f"Note.shard: {said}"]


# --- Indexes ------------------------------------------------------------------------------------------


def test_an_index_that_the_table_lacks() -> None:
    missing = Index("Missing", "A", "B")

    @node("POST#{post_id}", missing("POST", "{post_id}"))
    class Post:
        post_id: ID

    assert mistakes(Post) == [
        "Post: the table Things has no index Missing. List it: Table('Things', …, indexes=[…])."
    ]


def test_a_list_by_an_index_that_the_table_lacks() -> None:
    missing = Index("Missing", "A", "B")

    @node("WRITER#{writer_id}")
    class Writer:
        writer_id: ID
        posts: Many[Post]
        readers: Ranked[Writer] = ranked("posts")

    @record("POST#{post_id}", "POST", missing("{writer}", "{post_id}"))
    class Post:
        post_id: ID
        writer: Writer

    assert mistakes(Writer, Post, lists={"feed": many(Post)}) == [
        "Post: the table Things has no index Missing. List it: Table('Things', …, indexes=[…])."
    ]


def test_a_key_that_may_be_absent() -> None:
    @node("POST#{post_id}", by_date("POST", "{written_on}"))
    class Post:
        post_id: ID | None
        written_on: str | None

    @record("NOTE#{note_id?}", "{user}")
    class Note:
        note_id: ID | None
        user: User | None

    fix = "Remove | None, or write"
    problem = "its annotation allows None, but without it an item has no key."
    assert mistakes(Post, Note, User) == [
        f"Post.post_id: {problem} {fix} {{post_id?}} in the key if it may be absent.",
        f"Note.user: {problem} {fix} {{user?}} in the key if it may be absent.",
    ]


def test_an_index_of_the_name_of_another() -> None:
    keys_alone = Index("ByState", "State", "PK", projection="KEYS_ONLY")
    other_keys = Index("ByState", "State", ("Number", "N"))
    listed = Index("ByState", "State", "PK")
    table = Table("Tests", partition_key="PK", sort_key="SK", indexes=[listed])

    @node("A#{a_id}", keys_alone("OPEN"))
    class A:
        a_id: ID

    @node("B#{b_id}", other_keys("OPEN", "{number}"))
    class B:
        b_id: ID
        number: int

    fix = "Declare the index once, and use it on the table and on the types."
    assert mistakes(A, B, table=table) == [
        f"A: the index ByState that it calls has the projection KEYS_ONLY, and the table's has ALL. {fix}",
        "B: the index ByState that it calls has the keys State (S) and Number (N), "
        f"and the table's has State (S) and PK (S). {fix}",
    ]


def test_an_index_that_is_called_wrongly() -> None:
    @node("A#{a_id}", by_date("A", "B", "C"))
    class A:
        a_id: ID

    @node("B#{b_id}", by_date("X", "Y"), by_date("Z", "Z"))
    class B:
        b_id: ID

    @node("C#{c_id}", by_date())
    class C:
        c_id: ID

    assert mistakes(A, B, C) == [
        "A: ByDate is called with 3 templates. It needs those of DatePK and DateSK.",
        "B: it is in ByDate twice. An item is in an index only once.",
        'C: ByDate is called without a template for DatePK. Say bydate("…").',
    ]


def test_two_templates_for_one_attribute() -> None:
    table = Table("Tests", partition_key="PK", sort_key="SK", indexes=[inverted, by_state])

    @node("A#{a_id}", "B", inverted("C", "A#{a_id}"))
    class A:
        a_id: ID

    @node("D#{d_id}", by_state("STATE#{state}", "D#{d_id}"))
    class D:
        d_id: ID
        state: str = stored("State")

    assert mistakes(A, table=table) == [
        "A: the attribute SK has two templates: B, and C in Inverted. "
        "An attribute has one value: give one template, and leave the other out."
    ]
    assert mistakes(D, table=table) == [
        'D: State is the attribute of {state}, but ByState gives it the template "STATE#{state}". '
        "Leave that template out, or store {state} in another attribute."
    ]
