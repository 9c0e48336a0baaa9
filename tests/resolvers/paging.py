"""Reads a list page by page, as a client does."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any

from tests.resolvers.worlds import World

BOOK_LOANS = """
query ($owner: ID!, $first: Int, $after: String, $last: Int, $before: String, $direction: SortDirection,
       $day: DateRange, $where: LoanWhere) {
  book(bookId: $owner) {
    loans(first: $first, after: $after, last: $last, before: $before, direction: $direction,
          day: $day, where: $where) {
      edges { cursor node { memberId } }
      pageInfo { hasNextPage hasPreviousPage startCursor endCursor }
    }
  }
}
"""
BRANCH_LOANS = """
query ($owner: String!, $first: Int, $after: String, $last: Int, $before: String, $direction: SortDirection,
       $day: DateRange, $where: LoanWhere) {
  loans(branch: $owner, first: $first, after: $after, last: $last, before: $before, direction: $direction,
        day: $day, where: $where) {
    edges { cursor node { member { memberId } } }
    pageInfo { hasNextPage hasPreviousPage startCursor endCursor }
  }
}
"""


async def page(world: World, document: str, **arguments: Any) -> dict[str, Any]:
    """A page: `ids` of the members, `cursors`, and pageInfo's fields."""
    found = await world.ask(document, **arguments)
    loans = (found.get("book") or found)["loans"]
    nodes = [edge["node"] for edge in loans["edges"]]
    return {
        "ids": [node["member"]["memberId"] if "member" in node else node["memberId"] for node in nodes],
        "cursors": [edge["cursor"] for edge in loans["edges"]],
        **loans["pageInfo"],
    }


async def paged(
    world: World,
    document: str,
    size: int,
    *,
    backward: bool = False,
    between: Callable[[dict[str, Any]], Awaitable[None]] | None = None,
    **arguments: Any,
) -> list[list[str]]:
    """The pages in the list's order, read from its beginning or backward from its end.

    What pageInfo says is checked on the way; `between` is called after each page.
    """
    pages: list[list[str]] = []
    cursor = None
    while True:
        window = {"last": size, "before": cursor} if backward else {"first": size, "after": cursor}
        found = await page(world, document, **window, **arguments)
        pages.append(found["ids"])
        more, behind = found["hasNextPage"], found["hasPreviousPage"]
        if backward:
            more, behind = behind, more
        if between is None:
            assert behind is (cursor is not None)
        if not more:
            return pages[::-1] if backward else pages
        after = found["startCursor" if backward else "endCursor"]
        assert after is not None
        assert after != cursor
        cursor = after
        if between is not None:
            await between(found)
