"""Keys of nodes in `to`, `alsoOf`, `from` and `to` of `path`: the values that the field of the node takes."""

from __future__ import annotations

from datetime import date, datetime
from enum import Enum
from typing import Any

import pytest

from keygraph import ID, Format, Graph, Many, Table, edge, node
from keygraph_resolvers import check
from keygraph_resolvers.naming.global_ids import global_id
from tests.conftest import MakeStore
from tests.resolvers.worlds import World, world


class Color(Enum):
    RED = "r"
    BLUE = "b"


@node("PAGE#{number:b36}")
class Page:
    number: int

    links: Many[Link]
    days: Many[OnDay]
    times: Many[AtTime]
    colors: Many[InColor]
    authors: Many[By]
    drafts: Many[Draft]


@node("DAY#{day:%Y%m%d}", item=False)
class Day:
    day: date


@node("TIME#{at}", item=False)
class Time:
    at: datetime


@node("COLOR#{color}", item=False)
class Paint:
    color: Color


@node("AUTHOR#{name:lower}", "AUTHOR")
class Author:
    name: ID


@node("CHAPTER#{book}#{number}", item=False)
class Chapter:
    book: ID
    number: int


@edge("{source}", "TO#{target.number:b36}", mirror=True)
class Link:
    source: Page
    target: Page


@edge("{page}", "{day}")
class OnDay:
    page: Page
    day: Day


@edge("{page}", "{time}")
class AtTime:
    page: Page
    time: Time


@edge("{page}", "{paint}")
class InColor:
    page: Page
    paint: Paint


@edge("{page}", "BY#{author.name:lower}")
class By:
    page: Page
    author: Author


@edge("{page}", "{chapter}")
class Draft:
    page: Page
    chapter: Chapter


graph = check(
    Graph(
        Table("Book", partition_key="PK", sort_key="SK"),
        *(Page, Day, Time, Paint, Author, Chapter, Link, OnDay, AtTime, InColor, By, Draft),
        formats={"b36": Format.base(36, width=4), "lower": Format(str.lower)},
        paths=True,
    )
)


@pytest.fixture
async def book(make_store: MakeStore) -> World:
    """The pages 5, 100 and 46656, which is `1000` in base 36: the one in the middle has links to the others."""
    made = world(graph, await make_store(graph.table))
    pages = " ".join(
        f"p{each}: createPage(input: {{ number: {each} }}) {{ page {{ number }} }}"
        for each in (5, 100, 46656)
    )
    await made.ask(
        f"""mutation {{ {pages}
          createAuthor(input: {{ name: "Ann" }}) {{ author {{ name }} }}
          a: putLink(input: {{ sourceNumber: 5, targetNumber: 100 }}) {{ link {{ __typename }} }}
          b: putLink(input: {{ sourceNumber: 100, targetNumber: 46656 }}) {{ link {{ __typename }} }}
          putOnDay(input: {{ pageNumber: 5, day: "2024-05-01" }}) {{ onDay {{ __typename }} }}
          putAtTime(input: {{ pageNumber: 5, timeAt: "2024-05-01T10:00:00Z" }}) {{ atTime {{ __typename }} }}
          putInColor(input: {{ pageNumber: 5, paintColor: BLUE }}) {{ inColor {{ __typename }} }}
          putBy(input: {{ pageNumber: 5, authorName: "ANN" }}) {{ by {{ __typename }} }}
        }}"""
    )
    return made


async def test_to_and_also_of_take_numbers(book: World) -> None:
    asked = "query ($of: [ID!]) { page(number: %d) { links(%s: $of) { nodes { number } } } }"

    async def found(page: int, argument: str, *of: Any) -> list[int]:
        answer = await book.ask(asked % (page, argument), of=[*of])
        return [each["number"] for each in answer["page"]["links"]["nodes"]]

    assert await found(100, "to", "5", "46656") == [5, 46656]
    assert await found(100, "to", 46656) == [46656]
    assert await found(100, "to", "1000") == []
    assert await found(100, "to", global_id(graph.types["Page"], ("1000",))) == [46656]
    assert await found(5, "alsoOf", "46656") == [100]
    assert await found(5, "alsoOf", "1000") == []


async def test_a_path_is_between_numbers(book: World) -> None:
    asked = 'query ($to: ID!) { path(from: "5", to: $to, via: [PAGE_LINKS]) { length nodes { ... on Page { number } } } }'
    wanted = {"length": 2, "nodes": [{"number": 5}, {"number": 100}, {"number": 46656}]}
    assert (await book.ask(asked, to="46656"))["path"] == wanted
    assert (await book.ask(asked, to=global_id(graph.types["Page"], ("1000",))))["path"] == wanted
    assert (await book.ask(asked, to="1000"))["path"] is None


@pytest.mark.parametrize(
    ("list_", "key", "stored"),
    [
        ("days", "2024-05-01", "20240501"),
        ("times", "2024-05-01T10:00:00Z", "2024-05-01T10:00"),
        ("colors", "BLUE", "b"),
        ("authors", "aNN", None),
    ],
)
async def test_to_takes_what_the_field_of_the_node_takes(
    book: World, list_: str, key: str, stored: str | None
) -> None:
    asked = f"query ($to: [ID!]) {{ page(number: 5) {{ {list_}(to: $to) {{ totalCount }} }} }}"
    assert (await book.ask(asked, to=[key]))["page"][list_] == {"totalCount": 1}
    if stored is not None:
        answer = await book.service.execute(asked, {"to": [stored]})
        assert answer["data"]["page"] is None or answer["data"]["page"][list_] in (None, {"totalCount": 0})


async def test_keys_that_are_no_values(book: World) -> None:
    asked = "query ($to: [ID!]) { page(number: 5) { %s(to: $to) { totalCount } } }"
    for list_, key, told in (
        ("links", "00zz", "to: '00zz' is no Page's `id` or key"),
        ("links", "9999999999", "to: '9999999999' is no Page's `id` or key"),
        (
            "links",
            "-1",
            "number of Page has a value that its key cannot hold: its text must fit "
            "[0123456789abcdefghijklmnopqrstuvwxyz]{4}",
        ),
        ("days", "20240501", "to: '20240501' is no Day's `id` or key"),
        ("colors", "b", "to: 'b' is no Paint's `id` or key"),
        ("authors", "", "name of Author is empty, and part of its key"),
        (
            "times",
            "2024-05-01T12:00:00+02:00",
            "to: a time that keys are found by is in UTC, with T: write 2024-05-01T10:00:00Z",
        ),
    ):
        assert await book.errors(asked % list_, to=[key]) == [("BAD_USER_INPUT", told)]
