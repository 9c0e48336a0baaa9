"""Mistakes of types, fields and ends. Each says the type, the field and the fix; all are told together."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from datetime import datetime
from types import ModuleType

import pytest

from keygraph import ID, Graph, Many, ModelError, One, edge, field, fields, many, node, record, stored
from tests.keygraph.checked import TABLE, Repository, User, mistakes

# --- Types --------------------------------------------------------------------------------------------


def test_a_class_that_was_not_decorated() -> None:
    class Plain:
        user_id: ID

    @fields
    class Base:
        name: str

    assert mistakes(Plain, Base) == [
        "Plain: it is not a node, an edge or a record. Decorate it, or remove it from the graph.",
        "Base: it is not a node, an edge or a record. Decorate it, or remove it from the graph.",
    ]


def test_a_duplicate_type() -> None:
    def another() -> type:
        @node("OTHER#{user_id}")
        class User:
            user_id: ID

        return User

    told = ["User: two types have this name. Rename one of them."]
    assert mistakes(User, another()) == told
    assert mistakes(User, User) == ["User: it is listed twice. List it once."]


def test_a_module_that_gives_no_types() -> None:
    empty = ModuleType("empty")
    assert mistakes(User, models=[empty, "shop"]) == [
        "empty: this module has no node, edge or record. Declare one there, or leave the module out of models=[…].",
        "'shop': it is not a module. models=[…] takes modules.",
    ]


def test_a_type_that_is_listed_and_declared_in_a_listed_module() -> None:
    module = sys.modules[User.__module__]
    with pytest.raises(ModelError, match=r"User: it is listed twice\. List it once\."):
        Graph(TABLE, User, models=[module], type_attribute="Type").check()


# --- Fields -------------------------------------------------------------------------------------------


def test_a_name_in_an_annotation_that_nobody_knows() -> None:
    @node("POST#{post_id}")
    class Post:
        post_id: ID
        author: Whoever  # type: ignore[name-defined]  # noqa: F821  (the mistake)

    assert mistakes(Post) == [
        "Post.author: its annotation cannot be read: name 'Whoever' is not defined. "
        "Import the name, or list the type in the graph."
    ]


def test_an_unknown_name_is_reported_once() -> None:
    @edge("{author}", "{reader}")
    class Reading:
        author: User
        reader: Usr  # type: ignore[name-defined]  # noqa: F821  (the mistake)

        @field(needs=("reader",))
        def shown(self) -> str:
            return ""

    assert mistakes(User, Reading) == [
        "Reading.reader: its annotation cannot be read: name 'Usr' is not defined. Did you mean User?"
    ]


def test_an_unknown_end() -> None:
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
        "Post.note: Note is not a node. An end is a node that the graph lists.",
    ]


def test_an_annotation_that_is_no_type_of_a_field() -> None:
    @dataclass
    class Tree:
        branches: list[Tree]

    @node("POST#{post_id}")
    class Post:
        post_id: ID
        size: complex
        parts: dict[str, str]
        tree: Tree

    fix = "Use str, int, Long, float, bool, Decimal, datetime, date, bytes, an enum, a list, a set, a dataclass or JSON, or list the type in the graph."
    told = mistakes(Post)
    assert told[:2] == [
        f"Post.size: complex is not a field type. {fix}",
        f"Post.parts: dict is not a field type. {fix}",
    ]
    assert told[2].startswith("Post.tree: Tree ")


def test_an_attribute_stored_twice() -> None:
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
    @node("POST#{post_id}")
    class Post:
        post_id: ID
        title: str = stored(name="Title")

    assert mistakes(Post) == [
        "Post.title: stored() names one attribute for each key field, but this field is not an end. "
        'Write stored("name").'
    ]


def test_attributes_of_an_end_that_its_node_does_not_have() -> None:
    @node("ISSUE#{issue_id}")
    class Issue:
        issue_id: ID
        repository: Repository = stored(owner="RepoOwner", nam="RepoName")

    @node("PULL#{pull_id}")
    class Pull:
        pull_id: ID
        repository: Repository = stored("Repository")

    fix = "Repository has the key fields owner, name. Name one attribute for each: stored(owner=…, name=…)."
    assert mistakes(Repository, Issue, Pull) == [f"Issue.repository: {fix}", f"Pull.repository: {fix}"]


def test_many_beside_a_plain_annotation() -> None:
    @node("POST#{post_id}")
    class Post:
        post_id: ID
        tags: list[str] = many()

    assert mistakes(Post) == [
        "Post.tags: many() and one() are for fields annotated Many[…] and One[…]. Annotate the field that way."
    ]


def test_a_list_on_no_node() -> None:
    @record("{user}", "NOTE#{written_at}")
    class Note:
        user: User
        written_at: datetime
        users: Many[User] = many()

    assert mistakes(User, Note) == [
        "Note.users: only a node has lists. Move it to the node at one of the ends."
    ]


def test_a_list_of_a_type_that_is_not_listed() -> None:
    @node("POST#{post_id}")
    class Post:
        post_id: ID
        users: Many[User] = many()
        names: Many[str] = many()

    assert mistakes(Post) == [
        "Post.users: User is not listed in the graph. List it in the graph.",
        "Post.names: Many takes nodes, edges and records, and str is none of them. "
        "A list of str is list[str].",
    ]


def test_a_list_of_record_types_that_is_no_many() -> None:
    @node("POST#{post_id}")
    class Post:
        post_id: ID
        readers: list[User]
        likes: set[User | None] | None
        replies: list[Post | User]
        nothing: Many  # type: ignore[type-arg]  (the mistake)
        only: One[str]

    ids = "If the item stores their ids, write list[Ref[User]]."
    assert mistakes(Post, User) == [
        f"Post.readers: a list of nodes is written Many[User]. {ids}",
        f"Post.likes: a list of nodes is written Many[User]. {ids}",
        "Post.replies: a list of nodes is written Many[Post | User]. If the item stores their ids, write list[Ref[Post | User]].",
        "Post.nothing: Many needs a type: Many[User].",
        "Post.only: One takes nodes, edges and records, and str is none of them. Annotate the field as str.",
    ]


def test_methods() -> None:
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
        "Post.heading: its return type is missing. Annotate it.",
        "Post.author: its annotation cannot be read: name 'Usr' is not defined. Import the name, or list the type in the graph.",
    ]


def test_a_field_of_a_node_without_items() -> None:
    @node("TAG#{tag_name}", item=False)
    class Tag:
        tag_name: ID
        colour: str
        owner: User

    fix = "no item holds it, and it is not in the key. Add it to the key template, or remove it."
    assert mistakes(Tag, User) == [f"Tag.colour: {fix}", f"Tag.owner: {fix}"]


# --- All together -------------------------------------------------------------------------------------


def test_all_mistakes_are_told_together() -> None:
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
        ("attribute-twice", "Post.heading"),
        ("template", "Post"),
        ("attribute-case", "the graph"),
        ("no-path", "A.users"),
    ]
    assert str(error.value).startswith(
        "the graph has 6 mistakes:\n  - A: it is listed twice. List it once.\n"
    )
    assert (
        "  - the graph: attribute_case='camle' is not an attribute case. Use one of snake, camel, pascal.\n"
        in str(error.value)
    )


def test_one_mistake_is_told_once() -> None:
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
        'Post: the template "POST#{post}": {post} is not a field of Post. Its fields are post_id.'
    ]
