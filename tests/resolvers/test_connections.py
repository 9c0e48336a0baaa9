"""Pages of a list: first, after, last, before, direction, what pageInfo says, totalCount, filled pages, the budget."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

import pytest

from keygraph.dynamo.store import Query
from tests.resolvers.worlds import (
    World,
    book_item,
    copy_item,
    far_ids,
    loan_item,
    member_item,
    reservation_item,
    visit_item,
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
        "members": far_ids(found, "memberId"),
        "cursors": [edge["cursor"] for edge in found["edges"]],
        **found["pageInfo"],
    }


async def cursors(world: World) -> dict[str, str]:
    """The cursor of each member's edge."""
    whole = await page(world)
    return dict(zip(whole["members"], whole["cursors"], strict=True))


async def shown(world: World, **arguments: Any) -> tuple[list[str], bool, bool]:
    """The members of a page, hasPreviousPage and hasNextPage."""
    found = await page(world, **arguments)
    return found["members"], found["hasPreviousPage"], found["hasNextPage"]


async def test_the_whole_list(lent: World) -> None:
    """A short list would be cut or claim to go on."""
    found = await page(lent)
    assert found["members"] == MEMBERS
    assert (found["hasPreviousPage"], found["hasNextPage"]) == (False, False)
    assert (found["startCursor"], found["endCursor"]) == (found["cursors"][0], found["cursors"][-1])


async def test_first_and_after(lent: World) -> None:
    """Going on after a page would repeat an edge or skip one."""
    at = await cursors(lent)
    assert await shown(lent, first=3) == (["ann", "bob", "cyd"], False, True)
    assert await shown(lent, first=3, after=at["cyd"]) == (["dan", "eve", "fay"], True, True)
    assert await shown(lent, first=3, after=at["fay"]) == (["gus"], True, False)
    assert await shown(lent, first=4, after=at["cyd"]) == (["dan", "eve", "fay", "gus"], True, False)
    assert await shown(lent, first=3, after=at["gus"]) == ([], True, False)


async def test_last_and_before(lent: World) -> None:
    """Going backward would turn the edges round, or lose the ones beside the cursor."""
    at = await cursors(lent)
    assert await shown(lent, last=3) == (["eve", "fay", "gus"], True, False)
    assert await shown(lent, last=3, before=at["eve"]) == (["bob", "cyd", "dan"], True, True)
    assert await shown(lent, last=3, before=at["bob"]) == (["ann"], False, True)
    assert await shown(lent, last=3, before=at["ann"]) == ([], False, True)


async def test_first_before_and_last_after(lent: World) -> None:
    """A cursor on the side to which the page is read would not end it."""
    at = await cursors(lent)
    assert (await shown(lent, first=9, before=at["cyd"]))[0] == ["ann", "bob"]
    assert (await shown(lent, first=1, before=at["cyd"]))[0] == ["ann"]
    assert (await shown(lent, last=9, after=at["eve"]))[0] == ["fay", "gus"]
    assert (await shown(lent, last=1, after=at["eve"]))[0] == ["gus"]


async def test_both_cursors(lent: World) -> None:
    """Only what lies between two cursors would not be what is given."""
    at = await cursors(lent)
    between = {"after": at["bob"], "before": at["fay"]}
    assert await shown(lent, first=9, **between) == (["cyd", "dan", "eve"], True, False)
    assert await shown(lent, last=9, **between) == (["cyd", "dan", "eve"], False, True)
    assert await shown(lent, first=2, **between) == (["cyd", "dan"], True, True)
    assert await shown(lent, last=2, **between) == (["dan", "eve"], True, True)
    assert (await shown(lent, after=at["bob"], before=at["cyd"]))[0] == []
    assert (await shown(lent, after=at["dan"], before=at["dan"]))[0] == []
    assert (await shown(lent, after=at["fay"], before=at["bob"]))[0] == []
    assert (await shown(lent, last=3, after=at["fay"], before=at["bob"]))[0] == []


async def test_cursors_with_nothing_between(lent: World) -> None:
    """A page between a cursor and itself, or one further back, would deny the edges that precede it."""
    at = await cursors(lent)
    assert await shown(lent, first=3, after=at["ann"], before=at["ann"]) == ([], True, False)
    assert await shown(lent, first=3, after=at["fay"], before=at["ann"]) == ([], True, False)
    assert await shown(lent, last=3, after=at["gus"], before=at["gus"]) == ([], False, True)
    down = {"direction": "DESC"}
    assert await shown(lent, first=3, after=at["gus"], before=at["gus"], **down) == ([], True, False)
    assert await shown(lent, last=3, after=at["ann"], before=at["gus"], **down) == ([], False, True)


async def test_direction(lent: World) -> None:
    """Newest first would mix up what follows and what precedes."""
    at = await cursors(lent)
    down = {"direction": "DESC"}
    assert await shown(lent, first=3, **down) == (["gus", "fay", "eve"], False, True)
    assert await shown(lent, first=3, after=at["eve"], **down) == (["dan", "cyd", "bob"], True, True)
    assert await shown(lent, last=2, **down) == (["bob", "ann"], True, False)
    assert await shown(lent, last=2, before=at["bob"], **down) == (["dan", "cyd"], True, True)
    both = {"after": at["fay"], "before": at["cyd"], **down}
    assert await shown(lent, first=9, **both) == (["eve", "dan"], True, False)


async def test_direction_that_is_null(lent: World) -> None:
    """A client whose variable is null would get the list turned round, or an error."""
    assert (await shown(lent, first=2, direction=None))[0] == ["ann", "bob"]


async def test_twenty_unless_said(books: World) -> None:
    """A list without `first` would be endless, or of another size than the documentation says."""
    await books.put(*(loan_item(f"m{number:02d}", "b", "2024-01-01") for number in range(25)))
    document = '{ book(bookId: "b") { loans { nodes { memberId } } } }'
    assert await books.ask(document) == {"book": None}
    await books.put(book_item("b"))
    assert len((await books.ask(document))["book"]["loans"]["nodes"]) == 20


@pytest.mark.parametrize(
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
    """A page of any size could be asked for, and would be paid for."""
    assert await lent.errors(PAGE, **arguments) == [("BAD_USER_INPUT", message)]
    assert "Query" not in lent.operations


async def test_the_largest_page_is_a_setting(lent: World) -> None:
    """Whoever runs the server could not bound what a client asks for."""
    small = lent.served(max_page_size=3)
    assert await small.errors(PAGE, first=4) == [("BAD_USER_INPUT", "first must be between 0 and 3")]
    assert (await shown(small))[0] == ["ann", "bob", "cyd"]


async def test_first_zero(lent: World) -> None:
    """Asking whether there is anything at all would fail, or read a page."""
    at = await cursors(lent)
    lent.forget()
    assert await shown(lent, first=0) == ([], False, True)
    assert await shown(lent, last=0) == ([], True, False)
    assert await shown(lent, first=0, after=at["gus"]) == ([], True, False)
    lent.forget()
    await lent.ask('{ book(bookId: "b") { loans(first: 0) { nodes { memberId } } } }')
    assert "Query" not in lent.operations


async def test_a_page_before_what_another_list_reads(lent: World) -> None:
    """A page would be told to be the last one because another one of the operation goes on from its end to the list's."""
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


async def test_has_next_page_counts_no_sibling(books: World) -> None:
    """A list would claim to go on where only items of another type follow."""
    await books.put(book_item("b"), loan_item("ann", "b", "2024-01-01"), loan_item("bob", "b", "2024-01-02"))
    await books.put(
        *(reservation_item(f"r{number}", "b", f"2024-02-{number:02d}") for number in range(1, 29))
    )
    await books.put(
        *(reservation_item(f"s{number}", "b", f"2023-02-{number:02d}") for number in range(1, 29))
    )
    assert await shown(books, first=2) == (["ann", "bob"], False, False)
    assert await shown(books, first=1) == (["ann"], False, True)
    assert await shown(books, last=2) == (["ann", "bob"], False, False)
    at = await cursors(books)
    assert await shown(books, first=2, after=at["ann"]) == (["bob"], True, False)
    assert await shown(books, last=2, before=at["bob"]) == (["ann"], False, True)


async def test_empty_lists(books: World) -> None:
    """A node without neighbours would be an error, or have cursors that lead nowhere."""
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


TOTALS = """
query ($where: LoanWhere, $day: DateRange, $to: [ID!]) {
  book(bookId: "b") {
    loans(first: 1, where: $where, day: $day, to: $to) { totalCount }
    reservations { totalCount }
  }
}
"""


async def total(world: World, **arguments: Any) -> int:
    return int((await world.ask(TOTALS, **arguments))["book"]["loans"]["totalCount"])


async def test_total_count(lent: World) -> None:
    """The number beside a list would count siblings, forget the filter, or be the page's."""
    await lent.put(loan_item("ann", "b", "2024-01-01", pages=Decimal(5), note="torn"))
    await lent.put(loan_item("bob", "b", "2024-01-02", pages=Decimal(7)))
    assert await total(lent) == 7
    assert await total(lent, day={"from": "2024-01-02", "to": "2024-01-04"}) == 3
    assert await total(lent, day={"eq": "2024-01-09"}) == 0
    assert await total(lent, where={"pages": {"gte": 5}}) == 2
    assert await total(lent, where={"pages": {"gte": 5}}, day={"from": "2024-01-02"}) == 1
    assert await total(lent, where={"memberId": {"eq": "cyd"}}) == 1  # an end
    assert await total(lent, where={"day": {"lt": "2024-01-03"}}) == 2  # in keys alone
    assert await total(lent, where={"day": {"lt": "2024-01-03"}, "note": {"exists": True}}) == 1
    assert (await lent.ask(TOTALS))["book"]["reservations"]["totalCount"] == 7


async def test_total_count_over_shards(books: World) -> None:
    """A list that is spread would be counted in one part alone."""
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


async def test_pages_are_filled(sparse: World) -> None:
    """With a filter, pages would be short or empty, and a client would stop at the first one."""
    found = (await sparse.ask(FILTERED, first=3))["book"]["loans"]
    assert far_ids(found, "memberId") == TORN[:3]
    assert found["pageInfo"]["hasNextPage"] is True
    found = (await sparse.ask(FILTERED, first=3, after=found["pageInfo"]["endCursor"]))["book"]["loans"]
    assert far_ids(found, "memberId") == TORN[3:]
    assert found["pageInfo"]["hasNextPage"] is False
    found = (await sparse.ask(FILTERED, last=2))["book"]["loans"]
    assert far_ids(found, "memberId") == TORN[-2:]


@pytest.mark.parametrize("budget", [7, 60])
@pytest.mark.parametrize("backward", [False, True])
async def test_the_read_budget(sparse: World, budget: int, backward: bool) -> None:
    """A filter that matches little would read a whole partition at once; or its client would never see the end."""
    small, seen, pages, cursor = sparse.served(read_budget=budget), [], 0, None
    while True:
        window = {"last": 5, "before": cursor} if backward else {"first": 5, "after": cursor}
        small.forget()
        found = (await small.ask(FILTERED, **window))["book"]["loans"]
        ids = far_ids(found, "memberId")
        seen = ids + seen if backward else seen + ids
        pages += 1
        info = found["pageInfo"]
        if not info["hasPreviousPage" if backward else "hasNextPage"]:
            break
        assert cursor != info["startCursor" if backward else "endCursor"]
        cursor = info["startCursor" if backward else "endCursor"]
    assert seen == TORN
    assert pages >= 300 // max(budget, 32) // 2


def looked_at(world: World) -> int:
    """How many items the lists' requests may have looked at."""
    return sum(request.limit or 0 for request in world.tracer.requests if isinstance(request, Query))


async def test_no_more_than_the_budget_is_looked_at(sparse: World) -> None:
    """The budget would be a hint and no bound."""
    small = sparse.served(read_budget=50)
    small.forget()
    await small.ask('{ book(bookId: "b") { loans(where: {note: {eq: "none"}}) { nodes { memberId } } } }')
    assert looked_at(small) == 50


async def test_a_page_without_a_filter_is_not_cut_by_the_budget(sparse: World) -> None:
    """A small budget would make every page short."""
    document = '{ book(bookId: "b") { copies(first: 5) { pageInfo { hasNextPage } nodes { floor } } } }'
    await sparse.put(*(copy_item("b", floor, "x") for floor in range(5)))
    found = (await sparse.served(read_budget=2).ask(document))["book"]["copies"]
    assert [node["floor"] for node in found["nodes"]] == [0, 1, 2, 3, 4]


async def test_nothing_behind_the_cursor_that_ends_the_page_is_read(sparse: World) -> None:
    """A page between two cursors would look at the rest of the list all the same, and it would be paid for."""
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
    assert far_ids(torn, "memberId") == TORN[:1]


async def test_visits_and_copies_stand_in_their_own_lists(books: World) -> None:
    """A list with a required argument would show what stands under another one."""
    await books.put(member_item("ann"), visit_item("ann", "a", "2024-01-01", 5))
    await books.put(visit_item("ann", "b", "2024-01-01", 7), copy_item("b", 1, "x"))
    document = """{ member(memberId: "ann") {
      a: visits(room: "a") { totalCount nodes { room minute } } c: visits(room: "c") { totalCount nodes { room } }
    } }"""
    assert await books.ask(document) == {
        "member": {
            "a": {"totalCount": 1, "nodes": [{"room": "a", "minute": 5}]},
            "c": {"totalCount": 0, "nodes": []},
        }
    }
