"""Mistakes of fields whose attribute has a new name: `stored(was=…)`."""

from __future__ import annotations

from typing import Any

import pytest

from keygraph import ID, Index, Ref, Table, node, read, record, stored
from tests.keygraph.checked import TABLE, User, by_date, mistakes


@pytest.mark.parametrize(
    ("was", "problem"),
    [
        ("other", "was= names other, and other is stored there."),
        ("author_id", "was= names author_id, and author is stored there."),
        ("name", "was= names name, and the field itself is stored there."),
        ("DatePK", "was= names DatePK, and a key, or the type of the item, is stored there."),
        ("Type", "was= names Type, and a key, or the type of the item, is stored there."),
    ],
)
def test_a_former_attribute_holds_nothing_else(was: str, problem: str) -> None:
    @record("{author}", "NOTE#{number}")
    class Note:
        author: User
        number: int
        other: str
        name: str = stored("name", was=was)

    assert mistakes(User, Note) == [f"Note.name: {problem} Name the attribute that older items have."]


@pytest.mark.parametrize("was", [("map", "name"), 5])
def test_a_former_attribute_is_a_name(was: Any) -> None:
    @node("THING#{thing_id}")
    class Thing:
        thing_id: ID
        name: str = stored("title", was=was)
        path: str = stored(was)

    fix = 'is not an attribute name. Write stored("name").'
    assert mistakes(Thing) == [f"Thing.{name}: {was!r} {fix}" for name in ("name", "path")]


def test_what_a_key_holds_has_one_name() -> None:
    @node("THING#{thing_id}", by_date("{day}", "-"))
    class Thing:
        thing_id: ID = stored("id", was="number")
        day: str = stored("DatePK", was="date")

    fix = "a key holds it, so its attribute has no other name. Remove was=."
    assert mistakes(Thing) == [f"Thing.thing_id: {fix}", f"Thing.day: {fix}"]


def test_ends_and_what_only_a_key_holds_have_one_name() -> None:
    @node("THING#{thing_id}", by_date("{day}", "-"))
    class Thing:
        thing_id: ID
        users: list[Ref[User]] = stored("userIds", was="ids", default=[])
        day: str = stored(in_key=True, was="date")

    problem = "was= is for a field that clients write, and that no node's id is in."
    fix = "Remove was=, or copy the attribute in all items first."
    assert mistakes(User, Thing) == [f"Thing.{name}: {problem} {fix}" for name in ("users", "day")]


@pytest.mark.parametrize(
    ("projection", "wanted"),
    [
        (["state", "status"], []),
        (
            ["state"],
            [
                "the root.things: ByDate does not project status, which decides who may read Thing. Project status too."
            ],
        ),
    ],
)
def test_an_index_projects_both_for_a_rule(projection: list[str], wanted: list[str]) -> None:
    index = Index("ByDate", "DatePK", "DateSK", projection=["Type", *projection])

    @node(
        "THING#{thing_id}",
        index("THINGS", "{thing_id}", lists="things"),
        access=[read(where={"state": {"ne": "hidden"}})],
    )
    class Thing:
        thing_id: ID
        state: str | None = stored("state", was="status", default=None)

    table = Table("Things", partition_key="PK", sort_key="SK", indexes=[index])
    assert mistakes(Thing, table=table) == wanted


def test_a_correct_one_has_no_mistakes() -> None:
    options: dict[str, Any] = {"was": "name"}

    @node("THING#{thing_id}", by_date("{title}", "{thing_id}"))
    class Thing:
        thing_id: ID
        title: str = stored("data", "title", **options)

    assert mistakes(Thing, table=TABLE) == []


def test_what_tells_types_apart_has_one_name() -> None:
    @node("THING#{thing_id}", type={"closedAt": {"exists": True}})
    class Thing:
        thing_id: ID
        closed_at: str = stored("closedAt", was="closed")

    assert mistakes(Thing, type_attribute=None) == [
        "Thing.closed_at: closedAt tells the types of items apart, and older items lack it. "
        "Write the attribute into all items first, and remove was=."
    ]
