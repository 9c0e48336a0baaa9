"""`to`: the edges to some nodes alone."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

import pytest

from keygraph.dynamo.items import Item
from keygraph_resolvers.naming.global_ids import global_id
from tests.resolvers.worlds import World, book_item, library, loan_item, member_item, reservation_item

MEMBERS = ["ann", "bob", "cyd", "dan", "eve"]


def member_id(member: str) -> str:
    return global_id(library.types["Member"], (member,))


def book_id(book: str) -> str:
    return global_id(library.types["Book"], (book,))


@pytest.fixture
async def lent(books: World) -> World:
    """Two books that the members had, the later in the alphabet the earlier; one only reserved a third."""
    days = {member: f"2024-01-0{9 - number}" for number, member in enumerate(MEMBERS)}
    items: list[Item] = [
        loan_item(member, book, day, pages=Decimal(number))
        for book in "bc"
        for number, (member, day) in enumerate(days.items())
    ]
    await books.put(*items, *map(book_item, "bcd"), *map(member_item, MEMBERS))
    await books.put(reservation_item("ann", "d", "2024-01-01"))
    return books


DOCUMENT = """
query ($to: [ID!], $first: Int, $after: String, $last: Int, $before: String, $direction: SortDirection,
       $day: DateRange, $where: LoanWhere) {
  book(bookId: "b") {
    loans(to: $to, first: $first, after: $after, last: $last, before: $before, direction: $direction,
          day: $day, where: $where) {
      totalCount
      edges { cursor day node { memberId } }
      pageInfo { hasNextPage hasPreviousPage }
    }
  }
}
"""


async def page(lent: World, *members: str, **arguments: Any) -> tuple[list[str], bool, bool, int]:
    answer = await lent.ask(DOCUMENT, to=[member_id(member) for member in members], **arguments)
    loans = answer["book"]["loans"]
    info = loans["pageInfo"]
    ids = [edge["node"]["memberId"] for edge in loans["edges"]]
    return ids, info["hasPreviousPage"], info["hasNextPage"], loans["totalCount"]


async def test_one_batch_and_no_query(lent: World) -> None:
    lent.forget()
    await page(lent, *MEMBERS)
    assert "Query" not in lent.operations
    assert "Count" not in lent.operations
    assert lent.operations["BatchGetItem"] == 1


@pytest.mark.parametrize("where", [None, {"pages": {"gte": 3}}])
async def test_no_ids_ask_for_nothing(lent: World, where: Any) -> None:
    lent.forget()
    assert await page(lent, where=where) == ([], False, False, 0)
    assert lent.operations == {"GetItem": 1}  # the book


async def test_with_ranges_and_where(lent: World) -> None:
    assert await page(lent, *MEMBERS, day={"from": "2024-01-07", "to": "2024-01-08"}) == (
        ["cyd", "bob"],
        False,
        False,
        2,
    )
    assert await page(lent, "ann", day={"to": "2024-01-08"}) == ([], False, False, 0)
    assert await page(lent, *MEMBERS, where={"pages": {"gte": 3}}) == (["eve", "dan"], False, False, 2)
    assert await page(lent, *MEMBERS, where={"day": {"eq": "2024-01-09"}}) == (["ann"], False, False, 1)
    assert await page(lent, *MEMBERS, where={"memberId": {"eq": "bob"}}) == (["bob"], False, False, 1)


@pytest.mark.parametrize(
    ("ids", "message"),
    [
        ([book_id("b")], "to: expected ids of Member, and this is one of Book"),
        ([member_id("ann"), ""], "memberId of Member is empty, and part of its key"),
        ([member_id(f"m{number}") for number in range(101)], "to: at most 100 ids"),
    ],
)
async def test_ids_that_cannot_be(lent: World, ids: list[str], message: str) -> None:
    lent.forget()
    assert await lent.errors(DOCUMENT, to=ids) == [("BAD_USER_INPUT", message)]
    assert "BatchGetItem" not in lent.operations


async def test_a_hundred_ids(lent: World) -> None:
    some = [*(f"m{number}" for number in range(98)), "eve", "ann"]
    assert await page(lent, *some) == (["eve", "ann"], False, False, 2)
