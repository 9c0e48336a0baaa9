"""Cursors: only what was given out for a list is taken back there, and it stays where it was."""

from __future__ import annotations

import base64
import json
import secrets
from typing import Any

import pytest

from keygraph import ID, Graph, Index, Many, Reach, Table, many, node, reach, read
from keygraph_resolvers import Service
from keygraph_resolvers.read.cursors import Cursors
from tests.conftest import MakeStore, in_one_world
from tests.resolvers.paging import BOOK_LOANS, page
from tests.resolvers.worlds import (
    SECRET,
    World,
    book_item,
    loan_item,
    member_item,
    reservation_item,
    visit_item,
    world,
)

MEMBERS = ["ann", "bob", "cyd", "dan", "eve"]


@pytest.fixture
async def lent(books: World) -> World:
    """Books b and c, which the same five members had on one day; ann and bob visited two rooms."""
    for book in "bc":
        await books.put(book_item(book))
        await books.put(
            *(loan_item(m, book, "2024-01-02", n % 3, branch=f"of-{book}") for n, m in enumerate(MEMBERS))
        )
    for member in ("ann", "bob"):
        await books.put(member_item(member), reservation_item(member, "b", "2024-01-02"))
        await books.put(*(visit_item(member, room, "2024-01-01", 5) for room in "xy"))
    return books


LISTS = {
    "book b": '{ book(bookId: "b") { list: loans%s { edges { cursor } } } }',
    "book c": '{ book(bookId: "c") { list: loans%s { edges { cursor } } } }',
    "reservations": '{ book(bookId: "b") { list: reservations%s { edges { cursor } } } }',
    "branch b": "{ list: loans%s { edges { cursor } } }",
    "branch c": "{ list: loans%s { edges { cursor } } }",
    "ann": '{ member(memberId: "ann") { list: loans%s { edges { cursor } } } }',
    "ann in x": '{ member(memberId: "ann") { list: visits%s { edges { cursor } } } }',
    "ann in y": '{ member(memberId: "ann") { list: visits%s { edges { cursor } } } }',
    "bob in x": '{ member(memberId: "bob") { list: visits%s { edges { cursor } } } }',
    "members": "{ list: members%s { edges { cursor } } }",
}
REQUIRED = {
    "branch b": 'branch: "of-b"',
    "branch c": 'branch: "of-c"',
    "ann in x": 'room: "x"',
    "ann in y": 'room: "y"',
    "bob in x": 'room: "x"',
}


def document(name: str, **arguments: Any) -> str:
    given = [f"{key}: {json.dumps(value)}" for key, value in arguments.items()]
    said = ", ".join([REQUIRED[name], *given] if name in REQUIRED else given)
    return LISTS[name] % (f"({said})" if said else "")


async def cursors_of(world: World, name: str) -> list[str]:
    found = await world.ask(document(name))
    found = found.get("book") or found.get("member") or found
    return [edge["cursor"] for edge in found["list"]["edges"]]


def reads(world: World) -> set[str]:
    """The operations that read lists."""
    return {"Query", "Count", "BatchGetItem"} & world.operations.keys()


@in_one_world("name", LISTS)
async def test_a_cursor_of_another_list(lent: World, name: str) -> None:
    cursors = {other: await cursors_of(lent, other) for other in LISTS}
    assert all(cursors[other] for other in LISTS if other != "members")
    for other in LISTS:
        lent.forget()
        for cursor in cursors[other][:1]:
            for argument in ("after", "before"):
                codes = await lent.codes(document(name, **{argument: cursor}))
                assert codes == ([] if other == name else ["BAD_USER_INPUT"])
        if other != name:
            assert not reads(lent)


def altered(cursor: str) -> list[str]:
    """The cursor cut, longer, changed in one place, and what is none at all."""
    raw = base64.urlsafe_b64decode(cursor + "=" * (-len(cursor) % 4))
    flipped = [raw[:at] + bytes([raw[at] ^ 1]) + raw[at + 1 :] for at in range(len(raw))]
    texts = [base64.urlsafe_b64encode(each).decode().rstrip("=") for each in flipped]
    cut = [cursor[:length] for length in range(0, len(cursor), 5)]
    others = [
        "x",
        "=",
        "====",
        "é",
        "\ud800",
        "\0",
        " " + cursor,
        cursor + "\n",
        cursor + "=",
        cursor + "A",
        "0",
        "-1",
    ]
    others += [cursor.replace("A", "+", 1), cursor * 2, "A" * 10_000, "null", "MTA", "eyJhIjoxfQ"]
    return [text for text in {*texts, *cut, *others} if text != cursor]


@pytest.mark.parametrize("name", ["book b", "branch b", "ann in x"])
async def test_what_is_no_cursor(lent: World, name: str) -> None:
    [cursor, *_] = await cursors_of(lent, name)
    asked = document(name)
    asked = asked.replace("list: loans", "list: loans()").replace("list: visits", "list: visits()")
    asked = (
        asked.replace("()(", "(")
        .replace("()", "(after: $after)")
        .replace('"of-b")', '"of-b", after: $after)')
    )
    asked = "query ($after: String) " + asked.replace('room: "x")', 'room: "x", after: $after)')
    lent.forget()
    for text in altered(cursor):
        assert await lent.errors(asked, after=text) == [
            ("BAD_USER_INPUT", "after: it is not a cursor of this list")
        ]
    assert not reads(lent)
    assert await lent.codes(asked, after=cursor) == []


async def test_the_empty_cursor(lent: World) -> None:
    assert await lent.codes(document("book b", after="")) == ["BAD_USER_INPUT"]
    assert await lent.codes(document("book b", before="")) == ["BAD_USER_INPUT"]
    assert await lent.codes('{ book(bookId: "b") { loans(after: null, before: null) { totalCount } } }') == []


async def test_a_cursor_under_another_secret(lent: World) -> None:
    [cursor, *_] = await cursors_of(lent, "book b")
    lent.forget()
    other = World(lent.graph, lent.tracer, Service(lent.service.schema, lent.tracer, secret=b"another"))
    assert await other.codes(document("book b", after=cursor)) == ["BAD_USER_INPUT"]
    assert not reads(lent)
    same = lent.served()
    assert await same.codes(document("book b", after=cursor)) == []


@pytest.mark.parametrize("name", ["book b", "branch b", "ann"])
async def test_a_cursor_tells_no_key(lent: World, name: str) -> None:
    texts = (b"BRANCH#", b"of-b", b"BOOK#", b"MEMBER#", b"2024-01-02", *(each.encode() for each in MEMBERS))
    cursors = await cursors_of(lent, name)
    assert cursors
    for cursor in cursors:
        raw = base64.urlsafe_b64decode(cursor + "=" * (-len(cursor) % 4))
        assert not [text for text in texts if text in raw]
        assert len(raw) % 16 == 0


async def test_a_page_that_ends_early_does_not_tell_the_length_of_a_hidden_key(make_store: MakeStore) -> None:
    by_name = Index("by-name", "NamePK", "NameSK")

    @node("BOX#{box_id}", access=[read()])
    class Box:
        box_id: ID
        notes: Many[Note]
        named: Many[Note] = many(index=by_name)
        near: Reach[Note] = reach("notes", depth=1)

    @node("{box}", "NOTE#{name}", by_name("{box}", "{name}"), access=[read(where={"is_shown": True})])
    class Note:
        box: Box
        name: str
        is_shown: bool

    graph = Graph(Table("Boxes", partition_key="PK", sort_key="SK", indexes=[by_name]), Box, Note)
    made = world(graph, await make_store(graph.table), read_budget=5)
    lengths = set()
    for box, end in (("1", ""), ("2", "k" * 1000)):
        names = [f"{number}{end}" for number in range(9)]
        notes = [{"PK": f"BOX#{box}", "SK": f"NOTE#{name}", "is_shown": False} for name in names]
        keys = [{"NamePK": f"BOX#{box}", "NameSK": name} for name in names]
        await made.put({"PK": f"BOX#{box}", "SK": f"BOX#{box}"}, *map(dict.__or__, notes, keys))
        page = "{ nodes { name } pageInfo { hasNextPage endCursor } }"
        found = await made.ask(f'{{ box(boxId: "{box}") {{ notes {page} named {page} near {page} }} }}')
        pages = [found["box"][name] for name in ("notes", "named", "near")]
        assert [(each["nodes"], each["pageInfo"]["hasNextPage"]) for each in pages] == [([], True)] * 3
        lengths |= {(number // 2, len(each["pageInfo"]["endCursor"])) for number, each in enumerate(pages)}
    assert len(lengths) == 2
    # A walk's cursor has visible nodes too, which may be of any length.
    seal = Cursors(SECRET).seal("a walk")
    for visible in (["x"], [secrets.token_hex(4_000)], ["\1" * 2_000]):
        cursors = [seal.sealed(visible, [key]) for key in ("", "k" * 2_000, "\u20ac" * 1_000)]
        assert len({*map(len, cursors)}) == 1
        assert seal.opened("after", cursors[1]) == [*visible, "k" * 2_000]


async def test_the_same_list_with_other_ranges(lent: World) -> None:
    await lent.put(loan_item("zed", "b", "2024-01-05"))
    whole = await page(lent, BOOK_LOANS, owner="b")
    last, first = whole["cursors"][-1], whole["cursors"][0]
    assert (await page(lent, BOOK_LOANS, owner="b", after=first, day={"from": "2024-01-03"}))["ids"] == [
        "zed"
    ]
    assert (await page(lent, BOOK_LOANS, owner="b", after=last, day={"to": "2024-01-03"}))["ids"] == []
    assert (await page(lent, BOOK_LOANS, owner="b", before=first, last=5, day={"from": "2024-01-03"}))[
        "ids"
    ] == []
    backward = {"before": last, "last": 9, "day": {"to": "2024-01-03"}}
    assert (await page(lent, BOOK_LOANS, owner="b", **backward))["ids"] == whole["ids"][:-1]
    turned = await page(lent, BOOK_LOANS, owner="b", after=last, direction="DESC")
    assert turned["ids"] == whole["ids"][-2::-1]
