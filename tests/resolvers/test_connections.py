"""Pages of a list: first, after, last, before, direction, what pageInfo says, totalCount, filled pages, the budget."""

from __future__ import annotations

from typing import Any

import pytest

from keygraph.dynamo.store import Query
from tests.conftest import in_one_world
from tests.resolvers.worlds import (
    World,
    book_item,
    copy_item,
    loan_item,
    member_ids,
    member_item,
    reservation_item,
)

MEMBERS = ["ann", "bob", "cyd", "dan", "eve", "fay", "gus"]
DAYS = [f"2024-01-0{day}" for day in range(1, 8)]
PAGE = """
query ($first: Int, $after: String, $last: Int, $before: String, $direction: SortDirection) {
  book(bookId: "b") {
    loans(first: $first, after: $after, last: $last, before: $before, direction: $direction) {
      edges { cursor node { memberId } }
      pageInfo { hasNextPage hasPreviousPage startCursor endCursor }
    }
  }
}
"""


@pytest.fixture
async def lent(books: World) -> World:
    """A book that seven members had, one on each day, and that others have reserved in between."""
    await books.put(book_item("b"), *(member_item(member) for member in MEMBERS))
    await books.put(*(loan_item(member, "b", day) for member, day in zip(MEMBERS, DAYS, strict=True)))
    await books.put(*(reservation_item(f"r{day}", "b", day) for day in DAYS))
    return books


async def page(world: World, **arguments: Any) -> dict[str, Any]:
    """A page of the book's loans: `members`, `cursors`, and pageInfo's fields."""
    found = (await world.ask(PAGE, **arguments))["book"]["loans"]
    return {
        "members": member_ids(found),
        "cursors": [edge["cursor"] for edge in found["edges"]],
        **found["pageInfo"],
    }


async def cursors(world: World) -> dict[str, str]:
    whole = await page(world)
    return dict(zip(whole["members"], whole["cursors"], strict=True))


async def shown(world: World, **arguments: Any) -> tuple[list[str], bool, bool]:
    found = await page(world, **arguments)
    return found["members"], found["hasPreviousPage"], found["hasNextPage"]


async def test_cursors_with_nothing_between(lent: World) -> None:
    at = await cursors(lent)
    assert await shown(lent, first=3, after=at["ann"], before=at["ann"]) == ([], True, False)
    assert await shown(lent, first=3, after=at["fay"], before=at["ann"]) == ([], True, False)
    assert await shown(lent, last=3, after=at["gus"], before=at["gus"]) == ([], False, True)
    down = {"direction": "DESC"}
    assert await shown(lent, first=3, after=at["gus"], before=at["gus"], **down) == ([], True, False)
    assert await shown(lent, last=3, after=at["ann"], before=at["gus"], **down) == ([], False, True)


async def test_direction_that_is_null(lent: World) -> None:
    assert (await shown(lent, first=2, direction=None))[0] == ["ann", "bob"]


async def test_twenty_unless_said(books: World) -> None:
    await books.put(*(loan_item(f"m{number:02d}", "b", "2024-01-01") for number in range(25)))
    document = '{ book(bookId: "b") { loans { nodes { memberId } } } }'
    assert await books.ask(document) == {"book": None}
    await books.put(book_item("b"))
    assert len((await books.ask(document))["book"]["loans"]["nodes"]) == 20


@in_one_world(
    ("arguments", "message"),
    [
        ({"first": 101}, "first must be between 0 and 100"),
        ({"last": 101}, "last must be between 0 and 100"),
        ({"first": -1}, "first must be between 0 and 100"),
        ({"last": -1}, "last must be between 0 and 100"),
        ({"first": 1, "last": 1}, "use first or last, not both"),
    ],
)
async def test_sizes_that_cannot_be(lent: World, arguments: dict[str, int], message: str) -> None:
    assert await lent.errors(PAGE, **arguments) == [("BAD_USER_INPUT", message)]
    assert "Query" not in lent.operations


async def test_the_largest_page_is_a_setting(lent: World) -> None:
    small = lent.served(max_page_size=3)
    assert await small.errors(PAGE, first=4) == [("BAD_USER_INPUT", "first must be between 0 and 3")]
    assert (await shown(small))[0] == ["ann", "bob", "cyd"]


async def test_first_zero(lent: World) -> None:
    at = await cursors(lent)
    lent.forget()
    assert await shown(lent, first=0) == ([], False, True)
    assert await shown(lent, last=0) == ([], True, False)
    assert await shown(lent, first=0, after=at["gus"]) == ([], True, False)
    lent.forget()
    await lent.ask('{ book(bookId: "b") { loans(first: 0) { nodes { memberId } } } }')
    assert "Query" not in lent.operations


async def test_a_page_before_what_another_list_reads(lent: World) -> None:
    at = await cursors(lent)
    document = """query ($dan: String, $cyd: String) { book(bookId: "b") {
      page: loans(last: 2, before: $dan) { nodes { memberId } pageInfo { hasNextPage } }
      rest: loans(after: $cyd) { nodes { memberId } } } }"""
    found = (await lent.ask(document, dan=at["dan"], cyd=at["cyd"]))["book"]
    assert found["page"] == {
        "nodes": [{"memberId": "bob"}, {"memberId": "cyd"}],
        "pageInfo": {"hasNextPage": True},
    }
    assert found["rest"]["nodes"][0] == {"memberId": "dan"}


async def test_empty_lists(books: World) -> None:
    await books.put(book_item("b"))
    found = await page(books)
    assert found == {
        "members": [],
        "cursors": [],
        "hasNextPage": False,
        "hasPreviousPage": False,
        "startCursor": None,
        "endCursor": None,
    }


async def test_total_count_over_shards(books: World) -> None:
    await books.put(*(loan_item(f"m{number}", "b", "2024-01-01", shard=number % 3) for number in range(10)))
    assert await books.ask('{ loans(branch: "main") { totalCount } }') == {"loans": {"totalCount": 10}}
    assert books.operations == {"Count": 3}


FILTERED = """
query ($first: Int, $after: String, $last: Int, $before: String) {
  book(bookId: "b") {
    loans(first: $first, after: $after, last: $last, before: $before, where: {note: {eq: "torn"}}) {
      edges { cursor node { memberId } }
      pageInfo { hasNextPage hasPreviousPage startCursor endCursor }
    }
  }
}
"""


@pytest.fixture
async def sparse(books: World) -> World:
    """A book of which every 50th of 300 loans is torn."""
    torn = {"note": "torn"}
    await books.put(
        book_item("b"),
        *(
            loan_item(f"m{number:03d}", "b", f"{2000 + number}-01-01", **(torn if number % 50 == 49 else {}))
            for number in range(300)
        ),
    )
    return books


TORN = ["m049", "m099", "m149", "m199", "m249", "m299"]


def looked_at(world: World) -> int:
    return sum(request.limit or 0 for request in world.tracer.requests if isinstance(request, Query))


async def test_no_more_than_the_budget_is_looked_at(sparse: World) -> None:
    small = sparse.served(read_budget=50)
    small.forget()
    await small.ask('{ book(bookId: "b") { loans(where: {note: {eq: "none"}}) { nodes { memberId } } } }')
    assert looked_at(small) == 50


async def test_a_page_without_a_filter_is_not_cut_by_the_budget(sparse: World) -> None:
    document = '{ book(bookId: "b") { copies(first: 5) { pageInfo { hasNextPage } nodes { floor } } } }'
    await sparse.put(*(copy_item("b", floor, "x") for floor in range(5)))
    found = (await sparse.served(read_budget=2).ask(document))["book"]["copies"]
    assert [node["floor"] for node in found["nodes"]] == [0, 1, 2, 3, 4]


async def test_nothing_behind_the_cursor_that_ends_the_page_is_read(sparse: World) -> None:
    found = (await sparse.ask(PAGE, first=60))["book"]["loans"]
    third, near = found["edges"][2]["cursor"], found["edges"][51]["cursor"]
    sparse.forget()
    empty = (await sparse.served(read_budget=40).ask(FILTERED, first=5, before=third))["book"]["loans"]
    assert (empty["edges"], empty["pageInfo"]["hasNextPage"], empty["pageInfo"]["endCursor"]) == (
        [],
        False,
        None,
    )
    assert sparse.operations["Query"] == 1
    torn = (await sparse.ask(FILTERED, last=5, after=third, before=near))["book"]["loans"]
    assert member_ids(torn) == TORN[:1]
