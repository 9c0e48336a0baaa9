"""Fields that no item has, and attributes that no field is stored in."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import date
from typing import Any

import pytest

from keygraph import ID, Graph, Index, Table, node, record, stored
from keygraph.dynamo.items import Item
from keygraph.tables.attributes import AttributeCounter, unmatched

by_day = Index("by-day", "Day", "PK")


@node("USER#{user_id}")
class User:
    user_id: ID
    name: str | None


@record("{author}", "POST#{post_id}")
class Post:
    author: User
    post_id: ID
    title: str
    likes: int | None
    editor: User | None
    version: int | None = stored("data", "version")
    day: date | None = stored("Day")


graph = Graph(
    Table("Posts", partition_key="PK", sort_key="SK", indexes=[by_day]),
    User,
    Post,
    attribute_case="camel",
    type_attribute="kind",
).check()


def post(**more: Any) -> Item:
    """An item with everything that a Post declares, apart from what is given."""
    item: dict[str, Any] = {
        "PK": "USER#1",
        "SK": "POST#2",
        "kind": "Post",
        "title": "t",
        "likes": 1,
        "editorId": "3",
        "data": {"version": 1},
        "Day": "2024-01-01",
        **more,
    }
    return {name: value for name, value in item.items() if value is not None}


def found(*items: Mapping[str, Any]) -> list[tuple[str | None, str, int, str | None]]:
    counter = AttributeCounter(graph)
    for item in items:
        known = graph.recognise(item)
        assert known is not None
        counter.add(known, dict(item))
    return [(each.field, each.path, each.count, each.meant) for each in unmatched(graph, counter.counts)]


def test_a_field_is_not_named_that_the_key_says_and_that_is_a_key_of_another_type() -> None:
    @record("{author}", "LIKE#{day}")
    class Like:
        author: User
        day: date = stored("Day")

    by_editor = Index("by-editor", "editorId", "Day")
    table = Table("Posts", partition_key="PK", sort_key="SK", indexes=[by_editor])
    other = Graph(table, User, Post, Like, attribute_case="camel", type_attribute="kind").check()
    counter = AttributeCounter(other)
    counter.add(other.types["Like"], {"PK": "USER#1", "SK": "LIKE#2024-01-01", "kind": "Like"})
    assert list(unmatched(other, counter.counts)) == []


def test_a_field_that_one_item_has_is_not_named() -> None:
    assert found(post(editorId=None), post()) == []


@pytest.mark.parametrize(
    ("more", "expected"),
    [
        ({"likes": None, "likesId": 4}, ("likes", "likes", 1, "likesId")),
        ({"likes": None, "like_count": 4, "Likes": 5}, ("likes", "likes", 1, "Likes")),
        ({"likes": None, "lieks": 4}, ("likes", "likes", 1, "lieks")),
        ({"editorId": None, "editor": "3"}, ("editor", "editorId", 1, "editor")),
        ({"editorId": None}, ("editor", "editorId", 0, None)),
        ({"data": {"x": 1}}, ("version", "data.version", 0, None)),
        ({"Day": None}, ("day", "Day", 0, None)),
        ({"views": 4}, (None, "views", 1, None)),
    ],
)
def test_what_does_not_match_is_named(more: dict[str, Any], expected: tuple[Any, ...]) -> None:
    assert found(post(**more))[0] == expected


def test_of_two_names_that_are_as_like_none_is_chosen() -> None:
    assert found(post(title=None, titleText="a", titleHtml="b")) == [
        ("title", "title", 0, None),
        (None, "titleHtml", 1, None),
        (None, "titleText", 1, None),
    ]


def test_in_words() -> None:
    counter = AttributeCounter(graph)
    counter.add(graph.types["Post"], post(likes=None, likesId=4, editorId=None, views=1))
    assert [str(each) for each in unmatched(graph, counter.counts)] == [
        "no item has the field likes; likesId was probably meant, in which no field is stored",
        "no item has the field editor, which is stored in editorId",
        "no field is stored in views",
    ]
