"""The mistakes of one type: its fields, its ends, its key templates. Each says the type, the field and the mend."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import date, datetime

import pytest

from keygraph import (
    ID,
    Graph,
    Index,
    Many,
    ModelError,
    Table,
    edge,
    field,
    fields,
    many,
    node,
    record,
    stored,
)
from keygraph.declaration import IndexKey
from tests.keygraph.checked import TABLE, by_date, by_state, inverted, mistakes


@node("USER#{user_id}")
class User:
    user_id: ID
    name: str


@node("REPO#{owner}", "NAME#{name}")
class Repository:
    owner: str
    name: str


# --- Types --------------------------------------------------------------------------------------------


def test_a_right_graph_has_none() -> None:
    """A graph without mistakes could not be served."""
    assert mistakes(User, Repository) == []


def test_a_class_that_was_not_decorated() -> None:
    """Its items would be passed over without a word."""

    class Plain:
        user_id: ID

    @fields
    class Base:
        name: str

    assert mistakes(Plain, Base) == [
        "Plain: it is no node, edge or record. Decorate it, or leave it out of the graph.",
        "Base: it is no node, edge or record. Decorate it, or leave it out of the graph.",
    ]


def test_a_duplicate_type() -> None:
    """One of two types would be served as the other."""

    def another() -> type:
        @node("OTHER#{user_id}")
        class User:
            user_id: ID

        return User

    told = ["User: two types have this name. Rename one of them."]
    assert mistakes(User, another()) == told
    assert mistakes(User, User) == told


# --- Fields -------------------------------------------------------------------------------------------


def test_a_name_in_an_annotation_that_nobody_knows() -> None:
    """A misspelt type would be a traceback without the field's name."""

    @node("POST#{post_id}")
    class Post:
        post_id: ID
        author: Usr  # type: ignore[name-defined]  # noqa: F821  (the mistake)

    assert mistakes(Post) == [
        "Post.author: its annotation cannot be read: name 'Usr' is not defined. "
        "Import the name, or list the type in the graph."
    ]


def test_an_unknown_end() -> None:
    """An end that leads nowhere would be found by the first query."""

    @record("POST#{post_id}", "{written_at}")
    class Note:
        post_id: ID
        written_at: datetime

    @node("POST#{post_id}")
    class Post:
        post_id: ID
        author: User
        note: Note

    assert mistakes(Post, Note) == [
        "Post.author: User is not listed in the graph. An end is a node that the graph lists.",
        "Post.note: Note is no node. An end is a node that the graph lists.",
    ]


def test_an_annotation_that_is_no_type_of_a_field() -> None:
    """A field that cannot be read would be found by the first item."""

    @dataclass
    class Tree:
        branches: list[Tree]

    @node("POST#{post_id}")
    class Post:
        post_id: ID
        size: complex
        parts: dict[str, str]
        tree: Tree

    mend = "Use a type of DESIGN's section on attributes, or list the type in the graph."
    told = mistakes(Post)
    assert told[:2] == [
        f"Post.size: complex is no type of a field. {mend}",
        f"Post.parts: dict is no type of a field. {mend}",
    ]
    assert told[2].startswith("Post.tree: Tree ")


def test_a_field_called_id() -> None:
    """`id` would be the item's attribute on one type and the global id on another."""

    @node("POST#{id}")
    class Post:
        id: ID

    assert mistakes(Post) == [
        'Post.id: `id` is the global id of a node. Name the field otherwise: post_id: ID = stored("id").'
    ]


def test_an_end_a_list_or_a_method_called_id() -> None:
    """The schema would have two fields of one name, and the global id would be lost."""

    @node("POST#{post_id}")
    class Post:
        post_id: ID
        id: User

    @node("TAG#{tag_id}")
    class Tag:
        tag_id: ID

        @field(needs=("tag_id",))
        def id(self) -> str:
            return self.tag_id

    assert any(told.startswith("Post.id: `id` is the global id of a node.") for told in mistakes(Post, User))
    assert any(told.startswith("Tag.id: `id` is the global id of a node.") for told in mistakes(Tag))


def test_an_attribute_stored_twice() -> None:
    """A write of one field would change another."""

    @node("POST#{post_id}")
    class Post:
        post_id: ID
        title: str
        heading: str = stored("title")
        first: str = stored("data", "version")
        second: str = stored("data", "version")

    assert mistakes(Post) == [
        "Post.heading: the attribute title is stored by title already. "
        'Give one of them another: stored("name").',
        "Post.second: the attribute data.version is stored by first already. "
        'Give one of them another: stored("name").',
    ]


def test_attributes_of_what_is_no_end() -> None:
    """What was said about the attribute would be passed over."""

    @node("POST#{post_id}")
    class Post:
        post_id: ID
        title: str = stored(name="Title")

    assert mistakes(Post) == [
        "Post.title: stored() names one attribute for each key field, but this is no end. "
        'Write stored("name").'
    ]


def test_attributes_of_an_end_that_its_node_does_not_have() -> None:
    """The end would be read from an attribute that nobody named."""

    @node("ISSUE#{issue_id}")
    class Issue:
        issue_id: ID
        repository: Repository = stored(owner="RepoOwner", nam="RepoName")

    @node("PULL#{pull_id}")
    class Pull:
        pull_id: ID
        repository: Repository = stored("Repository")

    mend = "Repository has the key fields owner, name. Name one attribute for each: stored(owner=…, name=…)."
    assert mistakes(Repository, Issue, Pull) == [f"Issue.repository: {mend}", f"Pull.repository: {mend}"]


def test_many_beside_a_plain_annotation() -> None:
    """A field would be lost."""

    @node("POST#{post_id}")
    class Post:
        post_id: ID
        tags: list[str] = many()

    assert mistakes(Post) == [
        "Post.tags: many() and one() stand on the right of Many[…] and One[…]. Annotate it so."
    ]


def test_a_list_on_no_node() -> None:
    """A list would be declared that no query can ask for."""

    @record("{user}", "NOTE#{written_at}")
    class Note:
        user: User
        written_at: datetime
        users: Many[User] = many()

    assert mistakes(User, Note) == [
        "Note.users: only a node has lists. Move it to the node at one of the ends."
    ]


def test_a_list_of_a_type_that_is_not_listed() -> None:
    """A list would be missing from the schema without a word."""

    @node("POST#{post_id}")
    class Post:
        post_id: ID
        users: Many[User] = many()
        names: Many[str] = many()

    assert mistakes(Post) == [
        "Post.users: User is not listed in the graph. List it in the graph.",
        "Post.names: str is not listed in the graph. List it in the graph.",
    ]


def test_methods() -> None:
    """A method that cannot be a field would fail in the first query."""

    @node("POST#{post_id}")
    class Post:
        post_id: ID

        @field(needs=("titel",))
        def title(self) -> str:
            return ""

        @field()
        def heading(self):  # type: ignore[no-untyped-def]
            return ""

        @field()
        def author(self) -> Usr:  # type: ignore[name-defined]  # noqa: F821  (the mistake)
            return ""

    assert mistakes(Post) == [
        "Post.title: it needs titel, which Post does not have. Name stored fields of the type.",
        "Post.heading: it does not say what it returns. Annotate it.",
        "Post.author: its annotations cannot be read: name 'Usr' is not defined. Import the name.",
    ]


def test_a_field_of_a_node_without_items() -> None:
    """A field would be null for every node, or an error."""

    @node("TAG#{tag_name}", item=False)
    class Tag:
        tag_name: ID
        colour: str
        owner: User

    mend = "no item holds it, and the key does not tell it. Put it into the key template, or leave it out."
    assert mistakes(Tag, User) == [f"Tag.colour: {mend}", f"Tag.owner: {mend}"]


# --- Key templates ------------------------------------------------------------------------------------


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

    return mistakes(Post, User, Repository, table=Table("T", partition_key="PK", sort_key="SK"))


@pytest.mark.parametrize(
    ("source", "said"),
    [
        ("POST#{post_id", "expected '}' before end of string. Write it as \"ORDER#{order_id}\"."),
        ("", 'it is empty. Write it as "ORDER#{order_id}".'),
        ("{0}", '{0} is no name of a field. Write it as "ORDER#{order_id}".'),
        (
            "POST#{post}",
            "{post} is no field of Post. Its fields are post_id, title, number, day, data, user, repository.",
        ),
        (
            "{author.user_id}",
            "{author.user_id} is no field of Post. "
            "Its fields are post_id, title, number, day, data, user, repository.",
        ),
        ("{user.id}", "{user.id} is no field of User. Its fields are user_id, name."),
        ("{user.name}", "{user.name} names no key field of User. A template can name user_id."),
        (
            "{repository}",
            "{repository} stands for the partition key of Repository, which does not identify it. "
            "Write its key fields: {repository.owner}, {repository.name}.",
        ),
        (
            "{data}",
            "{data}: a field of type list of string cannot stand in a key. Use another field or format.",
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
            "{day:d}: {:d} is no format for date, it has no %. Use another field or format.",
        ),
        (
            "{post_id}{title}",
            "it cannot be parsed back: nothing stands between {post_id} and {title}. "
            "Put literal text between them.",
        ),
        (
            "{title?}{post_id}",
            "it cannot be parsed back: nothing stands between {title} and {post_id}. "
            "Put literal text between them.",
        ),
        *(
            (
                "{" + method + "}",
                f"{method} cannot stand in a key. "
                "It may be neither async nor take arguments, and says the fields it needs.",
            )
            for method in ("slow", "whole", "cut")
        ),
    ],
)
def test_a_template_that_cannot_be_used(source: str, said: str) -> None:
    """Nothing would be found under such a key, or the wrong things."""
    assert template_mistakes(source, "A") == [f'Post: the template "{source}": {said}']


def test_an_optional_part_between_two_values() -> None:
    """Where the part is absent nobody could tell where the first value ends."""

    @node("STAFF#{staff_id}#")
    class Staff:
        staff_id: ID

    @record("{first}{manager?}{second}", "A")
    class Desk:
        first: str
        second: str
        manager: Staff | None

    assert mistakes(Staff, Desk) == [
        'Desk: the template "{first}{manager?}{second}": it cannot be parsed back: '
        "nothing stands between {first} and {second}. Put literal text between them."
    ]


def test_a_node_is_told_its_mistake_once() -> None:
    """The same line twice makes one look for two mistakes."""

    @node("{post_id}{title}")
    class Post:
        post_id: ID
        title: str

    assert mistakes(Post) == [
        'Post: the template "{post_id}{title}": it cannot be parsed back: '
        "nothing stands between {post_id} and {title}. Put literal text between them."
    ]


def test_templates_for_another_number_of_keys() -> None:
    """A key would be rendered without its sort key."""

    @record("POST#{post_id}")
    class Post:
        post_id: ID

    @node("A#{a_id}", "B", "C")
    class A:
        a_id: ID

    @node()
    class B:
        b_id: ID

    mend = "Give one for each of PK and SK."
    assert mistakes(Post, A, B) == [
        f"Post: it has 1 template for the table's key. {mend}",
        f"A: it has 3 templates for the table's key. {mend}",
        f"B: it has no template for the table's key. {mend}",
    ]


def test_a_key_that_is_made_of_itself() -> None:
    """The mistake would be an endless recursion."""

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
        "Folder: its key is made of itself, through an end. Write out the key's fields."
    ]
    assert mistakes(A, B) == ["A: its key is made of itself, through an end. Write out the key's fields."]


def test_a_node_without_key_fields() -> None:
    """All nodes of the type would have one key."""

    @node("SETTINGS")
    class Settings:
        theme: str

    assert mistakes(Settings) == [
        "Settings: its key has no placeholder, so that there could be one of it alone. "
        "Put a field into its key template."
    ]


def test_an_edge_of_another_number_of_ends() -> None:
    """An edge would have no far end."""

    @edge("{user}", "NOTE#{note_id}")
    class Note:
        user: User
        note_id: ID

    assert mistakes(User, Note) == [
        "Note: an edge has two ends in its table key; this one has 1 (user). "
        "Put two ends into it, or declare a record."
    ]


def test_shards() -> None:
    """Items would be written to one partition and looked for in others."""

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

    none = "its partition has {shard} and no number of shards. Say shards=5, or so."
    lost = "it has shards= but no {shard} in its partition. Put {shard} into it."
    assert mistakes(User, Unnumbered, Zero, Unspread, Astray) == [
        f"Unnumbered: {none}",
        f"Zero: {none}",
        f"Unspread: {lost}",
        f"Astray in ByDate: {lost}",
    ]
    assert [told.split(":")[0] for told in mistakes(InSortKey)] == ["InSortKey"]


def test_a_field_or_an_end_called_shard() -> None:
    """`{shard}` would be a number of nobody's."""

    @node("POST#{post_id}")
    class Post:
        post_id: ID
        shard: str

    @node("NOTE#{note_id}")
    class Note:
        note_id: ID
        shard: User

    said = "`shard` is the placeholder of a shard. Name the field otherwise."
    assert mistakes(Post, User) == [f"Post.shard: {said}"]
    assert mistakes(Note, User) == [f"Note.shard: {said}"]


# --- Indexes ------------------------------------------------------------------------------------------


def test_an_index_that_the_table_lacks() -> None:
    """A list would ask DynamoDB for an index that is not there."""
    missing = Index("Missing", "A", "B")

    @node("POST#{post_id}", missing("POST", "{post_id}"))
    class Post:
        post_id: ID

    assert mistakes(Post) == [
        "Post: the table Things has no index Missing. List it: Table('Things', …, indexes=[…])."
    ]


def test_an_index_that_is_called_wrongly() -> None:
    """Keys would be put into the wrong attributes."""

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
        "B: it is in ByDate twice. An item is there once.",
        'C: ByDate is called without a template for DatePK. Say bydate("…").',
    ]


def test_two_templates_for_one_attribute() -> None:
    """An item has one value under an attribute, so that one of two lists would be empty."""
    table = Table("T", partition_key="PK", sort_key="SK", indexes=[inverted, by_state])

    @node("A#{a_id}", "B", inverted("C", "A#{a_id}"))
    class A:
        a_id: ID

    @node("D#{d_id}", by_state("STATE#{state}"))
    class D:
        d_id: ID
        state: str = stored("State")

    assert mistakes(A, table=table) == [
        "A: the attribute SK has two templates: B and C. An attribute has one value."
    ]
    assert [told.split(":")[0] for told in mistakes(D, table=table)] == ["D"]


# --- All together -------------------------------------------------------------------------------------


def test_all_mistakes_are_told_together() -> None:
    """One would mend a model mistake by mistake, starting the server each time."""

    @node("POST#{post}")
    class Post:
        id: ID
        author: Usr  # type: ignore[name-defined]  # noqa: F821  (the mistake)
        title: str
        heading: str = stored("title")

    @node("A#{a_id}", "X")
    class A:
        a_id: ID
        users: Many[User] = many()

    graph = Graph(TABLE, Post, A, A, User, attribute_case="camle")
    with pytest.raises(ModelError) as error:
        graph.check()
    assert [(mistake.kind, mistake.where) for mistake in error.value.mistakes] == [
        ("duplicate-type", "A"),
        ("unknown-name", "Post.author"),
        ("field-called-id", "Post.id"),
        ("attribute-twice", "Post.heading"),
        ("template", "Post"),
        ("attribute-case", "the graph"),
        ("no-path", "A.users"),
    ]
    assert str(error.value).startswith(
        "the graph has 7 mistakes:\n  - A: two types have this name. Rename one of them.\n"
    )
    assert "  - the graph: attribute_case='camle' is none. It is one of snake, camel, pascal.\n" in str(
        error.value
    )


def test_one_mistake_is_told_once() -> None:
    """A mistake in one type would be told of every type that has an end to it."""

    @node("POST#{post}")
    class Post:
        post_id: ID
        comments: Many[Comment] = many()

    @record("{post}", "COMMENT#{comment_id}")
    class Comment:
        post: Post
        comment_id: ID

    @record("{post.post_id}", "LIKE#{at}")
    class Like:
        post: Post
        at: datetime

    assert mistakes(Post, Comment, Like) == [
        'Post: the template "POST#{post}": {post} is no field of Post. Its fields are post_id.'
    ]
