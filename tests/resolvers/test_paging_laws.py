"""A list read page by page equals the list: any page size, any direction, any filter, shards, equal sort keys."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Any

import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from keygraph.dynamo.items import Item
from keygraph.dynamo.store import BatchWrite
from tests.conftest import LOCAL
from tests.resolvers.paging import BOOK_LOANS, BRANCH_LOANS, page, paged
from tests.resolvers.worlds import World, book_item, loan_item, reservation_item

OWNERS = itertools.count()
"""Every example has a partition of its own, so that a store serves many."""

many_examples = settings(
    max_examples=60,
    derandomize=True,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
few_examples = settings(many_examples, max_examples=12, phases=[Phase.explicit, Phase.generate])
on_sqlite = pytest.mark.parametrize("engine", ["sqlite"])
on_dynamodb = pytest.mark.parametrize("engine", ["moto", LOCAL])


@dataclass(frozen=True)
class Filter:
    """A filter as it is asked, and as plain Python decides it of (number, day)."""

    arguments: dict[str, Any]
    holds: Callable[[int, str], bool] = field(repr=False)


FILTERS = [
    Filter({}, lambda number, day: True),
    Filter({"where": {"pages": {"lt": 4}}}, lambda number, day: number < 4),
    Filter({"where": {"memberId": {"gte": "m05"}}}, lambda number, day: number >= 5),
    Filter({"where": {"day": {"ne": "2024-01-02"}}}, lambda number, day: day != "2024-01-02"),
    Filter(
        {"where": {"not": {"pages": {"in": [0, 2, 4, 6]}}}}, lambda number, day: number not in (0, 2, 4, 6)
    ),
    Filter({"day": {"from": "2024-01-02"}}, lambda number, day: day >= "2024-01-02"),
    Filter({"day": {"eq": "2024-01-02"}}, lambda number, day: day == "2024-01-02"),
    Filter(
        {"day": {"to": "2024-01-02"}, "where": {"pages": {"gt": 2}}},
        lambda number, day: day <= "2024-01-02" and number > 2,
    ),
    Filter({"where": {"pages": {"gt": 1000}}}, lambda number, day: False),
]


@dataclass(frozen=True)
class Case:
    """A list and how it is read. Members are numbered in the order of this list."""

    loans: tuple[tuple[int, int], ...]
    """The day and the shard of each."""
    siblings: tuple[int, ...]
    size: int
    filter: Filter
    direction: str
    backward: bool
    budget: int
    spread: bool

    @property
    def document(self) -> str:
        return BRANCH_LOANS if self.spread else BOOK_LOANS

    @property
    def reading(self) -> dict[str, Any]:
        return {"direction": self.direction, **self.filter.arguments}

    def items(self, owner: str) -> list[Item]:
        book = f"{owner}-book"
        loans = [
            loan_item(f"m{number:02d}", owner, f"2024-01-0{day}", shard, branch=owner, pages=Decimal(number))
            for number, (day, shard) in enumerate(self.loans)
        ]
        siblings = [
            reservation_item(f"r{n}", owner, f"2024-01-0{day}") for n, day in enumerate(self.siblings)
        ]
        return [book_item(owner), book_item(book), *loans, *siblings]

    def wanted(self) -> list[tuple[str, str]]:
        """The days and the members of what matches, in the order of the days."""
        found = [
            (f"2024-01-0{day}", f"m{number:02d}")
            for number, (day, _) in enumerate(self.loans)
            if self.filter.holds(number, f"2024-01-0{day}")
        ]
        return sorted(found, key=lambda pair: pair[0], reverse=self.direction == "DESC")


cases = st.builds(
    Case,
    # Three days for up to 14 loans: most sort keys are equal.
    loans=st.lists(st.tuples(st.integers(1, 3), st.integers(0, 2)), max_size=14).map(tuple),
    siblings=st.lists(st.integers(1, 3), max_size=6).map(tuple),
    size=st.integers(1, 6),
    filter=st.sampled_from(FILTERS),
    direction=st.sampled_from(["ASC", "DESC"]),
    backward=st.booleans(),
    budget=st.sampled_from([1, 2, 5, 10_000]),
    spread=st.booleans(),
)


insertions = st.just([]) | st.lists(st.tuples(st.integers(1, 3), st.integers(0, 2)), min_size=1, max_size=8)


async def check_pages(books: World, case: Case, inserted: Sequence[tuple[int, int]]) -> None:
    """`inserted` are the days and shards of loans that are inserted after each page."""
    owner = f"o{next(OWNERS)}"
    await books.put(*case.items(owner))
    before = (await page(books, case.document, owner=owner, first=100, **case.reading))["ids"]
    waiting = list(enumerate(inserted))
    days = {f"m{number:02d}": day for number, (day, _) in enumerate(case.loans)}
    wanted = case.wanted()
    assert sorted(before) == sorted(member for _, member in wanted)
    assert [f"2024-01-0{days[member]}" for member in before] == [day for day, _ in wanted]
    is_ascending = (case.direction == "ASC") is not case.backward
    ahead: set[str] = set()

    async def insert(found: dict[str, Any]) -> None:
        edge = found["ids"][0 if case.backward else -1] if found["ids"] else None
        for number, (day, shard) in waiting[:2]:
            # Their names stand before, between and behind those of the others.
            name = f"{'amz'[number % 3]}{number:02d}x"
            days[name] = day
            is_ahead = edge is not None and (day > days[edge] if is_ascending else day < days[edge])
            if is_ahead and "memberId" not in str(case.filter.arguments):
                ahead.update([name] if case.filter.holds(number, f"2024-01-0{day}") else [])
            await books.put(
                loan_item(name, owner, f"2024-01-0{day}", shard, branch=owner, pages=Decimal(number))
            )
        del waiting[:2]

    # A small budget makes short pages, of which pageInfo may say less.
    are_full = not inserted and case.budget == 10_000
    pages = await paged(
        books.served(read_budget=case.budget),
        case.document,
        case.size,
        backward=case.backward,
        between=None if are_full else insert,
        owner=owner,
        **case.reading,
    )
    seen = list(itertools.chain(*pages))
    assert len(seen) == len(set(seen))
    assert [member for member in seen if member in before] == before
    assert ahead <= set(seen)
    if not inserted:
        assert seen == before
    if are_full:
        full = pages[1:] if case.backward else pages[:-1]
        assert all(len(each) == case.size for each in full)
        assert len(pages) == max(1, -(-len(before) // case.size))


@on_sqlite
@given(case=cases, inserted=insertions)
@settings(many_examples, max_examples=120)
async def test_pages_are_the_list(books: World, case: Case, inserted: list[tuple[int, int]]) -> None:
    await check_pages(books, case, inserted)


@on_dynamodb
@given(case=cases, inserted=insertions)
@settings(few_examples, max_examples=24)
async def test_pages_are_the_list_on_dynamodb(
    books: World, case: Case, inserted: list[tuple[int, int]]
) -> None:
    await check_pages(books, case, inserted)


@dataclass(frozen=True)
class Window:
    """What lies between two edges of the list without its filter; a number behind its end is no cursor."""

    start: int
    end: int
    size: int
    from_end: bool
    are_gone: bool
    """Whether the items of the two edges were deleted before it is asked for."""


windows = st.builds(
    Window, st.integers(0, 14), st.integers(0, 14), st.integers(1, 6), st.booleans(), st.booleans()
)


async def check_window(books: World, case: Case, window: Window) -> None:
    owner = f"o{next(OWNERS)}"
    await books.put(*case.items(owner))
    all_ = await page(books, case.document, owner=owner, first=100, direction=case.direction)
    ids, cursors = all_["ids"], all_["cursors"]
    arguments: dict[str, Any] = {"last" if window.from_end else "first": window.size}
    low, high = 0, len(ids)
    if window.start < len(ids):
        arguments["after"], low = cursors[window.start], window.start + 1
    if window.end < len(ids):
        arguments["before"], high = cursors[window.end], window.end
    gone = {ids[number] for number in (window.start, window.end) if number < len(ids)}
    if window.are_gone:
        deletes = tuple((f"MEMBER#{member}", f"BOOK#{owner}") for member in gone)
        await books.tracer.store.send(BatchWrite(deletes=deletes))

    def is_in(member: str) -> bool:
        number = int(member[1:])
        is_there = not (window.are_gone and member in gone)
        return is_there and case.filter.holds(number, f"2024-01-0{case.loans[number][0]}")

    inside = [member for member in ids[low:high] if is_in(member)]
    kept = inside[max(0, len(inside) - window.size) :] if window.from_end else inside[: window.size]
    found = await page(books, case.document, owner=owner, **arguments, **case.reading)
    assert found["ids"] == kept
    assert found["cursors"] == [cursors[ids.index(member)] for member in kept]
    more, behind = found["hasNextPage"], found["hasPreviousPage"]
    beyond = any(map(is_in, ids[:low]))
    if window.from_end:
        more, behind, beyond = behind, more, any(map(is_in, ids[high:]))
    assert more is (len(inside) > window.size)
    if low <= high:
        assert behind is (beyond and ("before" if window.from_end else "after") in arguments) or not inside


@on_sqlite
@given(case=cases, window=windows)
@settings(many_examples, max_examples=150)
async def test_any_window_is_a_slice(books: World, case: Case, window: Window) -> None:
    await check_window(books, case, window)


@on_dynamodb
@given(case=cases, window=windows)
@settings(few_examples, max_examples=40)
async def test_any_window_is_a_slice_on_dynamodb(books: World, case: Case, window: Window) -> None:
    await check_window(books, case, window)
