"""What is learnt of a table: how large items are, and how long lists."""

from __future__ import annotations

import pytest

from keygraph.dynamo.store import BatchGet, Cost, Count, Query
from keygraph_resolvers.plan.statistics import Mean, Statistics
from keygraph_resolvers.read.meter import ListKind, Origin, Sent
from tests.resolvers.worlds import library

MEMBER, BOOK, LOAN = (library.types[name] for name in ("Member", "Book", "Loan"))
[LOANS] = [path for path in library.paths if path.owner is MEMBER and path.name == "loans"]
KIND = ListKind(LOANS, is_ranged=False, is_filtered=False)


def read(items: int, units: float, *, is_last: bool, passed: int | None = None, counts: bool = False) -> Sent:
    """A page of the loans of a member, that looked at so many items and cost so much."""
    request = (Count if counts else Query)("MEMBER#ann")
    origin = Origin(("member.loans",), 1, KIND)
    return Sent(
        request,
        origin,
        origin.places,
        1,
        0.0,
        0.1,
        Cost(1, units),
        items,
        items if passed is None else passed,
        is_last,
    )


def got(units: float, found: int, **keys: int) -> Sent:
    """A BatchGet of so many keys of each type, of which so many items were there."""
    origin = Origin(("a",), 1, keys={("a", library.types[name]): count for name, count in keys.items()})
    wanted = tuple((f"K#{number}", "K") for number in range(sum(keys.values())))
    return Sent(BatchGet(wanted), origin, ("a",), 1, 0.0, 0.1, Cost(1, units), found, found, True)


def test_before_anything_was_seen() -> None:
    """The first operations would be priced by nothing."""
    known = Statistics()
    assert (known.item_bytes(LOAN, None), known.units_of_get(BOOK)) == (1024, 0.5)
    assert (known.length(KIND), known.looked_at(KIND), known.counted(KIND)) == (None, None, 100)


def test_a_page_corrects_a_size_only_where_it_contradicts_it() -> None:
    """Half a unit for one item would teach that items have 4 KB, and every page be priced at ten times its cost."""
    known = Statistics()
    known.learn([read(1, 0.5, is_last=True), read(20, 2.5, is_last=True)], {})
    assert known.item_bytes(LOAN, None) == 1024
    # 40 items in half a unit: 4 KB at most, so about 51 bytes each.
    known.learn([read(40, 0.5, is_last=True)], {})
    assert known.item_bytes(LOAN, None) == pytest.approx(51.2)


def test_sizes_are_found_again_when_they_change() -> None:
    """A table whose items have grown would be priced by what they once were."""
    known = Statistics()
    for size in (100, 3000):
        for items in (3, 20, 40, 7) * 20:
            steps = max(1, -(-items * size // 4096))
            known.learn([read(items, steps / 2, is_last=True)], {})
        assert size / 1.3 < known.item_bytes(LOAN, None) < size * 1.3


def test_lists_that_end_are_as_long_as_they_are() -> None:
    """A list of three would be priced as a full page for ever."""
    known = Statistics()
    known.learn([read(3, 0.5, is_last=True)], {})
    known.learn([read(5, 0.5, is_last=True)], {})
    assert known.length(KIND) == 4


def test_lists_that_are_cut_say_that_they_are_longer() -> None:
    """Pages of one would teach that lists have one item."""
    known = Statistics()
    known.learn([read(20, 0.5, is_last=False)], {})
    assert known.length(KIND) is None
    known.learn([read(3, 0.5, is_last=True), read(20, 0.5, is_last=False)], {})
    assert known.length(KIND) == (3 + 40) / 2


def test_what_a_filter_leaves_and_what_it_looks_at() -> None:
    """A filter that finds one of thirty would be priced as a page of one."""
    known = Statistics()
    known.learn([read(30, 0.5, passed=1, is_last=True)], {})
    assert (known.length(KIND), known.looked_at(KIND), known.counted(KIND)) == (1, 30, 30)


def test_a_count_says_how_long_a_list_is_and_not_what_a_page_looks_at() -> None:
    """A page of a list that was counted would be priced as all of it."""
    known = Statistics()
    known.learn([read(900, 10, is_last=True, counts=True)], {})
    assert (known.length(KIND), known.looked_at(KIND), known.counted(KIND)) == (900, None, 900)


def test_what_getting_an_item_costs() -> None:
    """Keys without an item, half a unit each, would teach that items are small; or the items of others too."""
    known = Statistics()
    known.learn([got(20 + 40, 10, Book=50)], {})
    assert known.units_of_get(BOOK) == pytest.approx(4.0)
    # 10 books and 10 members: what is more than the books' is shared out as it was expected.
    for _ in range(100):
        known.learn([got(2.0 * 10, 10, Book=10), got(10 * 2.0 + 10 * 0.5, 20, Book=10, Member=10)], {})
    assert known.units_of_get(BOOK) == pytest.approx(2.0, rel=0.1)
    assert known.units_of_get(MEMBER) == pytest.approx(0.5, rel=0.2)


def test_nodes_that_are_met_again_and_again() -> None:
    """An operation over many places would be priced as if each had nodes of its own."""
    known = Statistics()
    known.learn([got(5.0, 10, Book=10)], {BOOK: 40, MEMBER: 3})
    assert (known.distinct(BOOK), known.distinct(MEMBER), known.distinct(LOAN)) == (0.25, 1.0, 1.0)


def test_memory_is_bounded_by_the_model() -> None:
    """A server would grow with every user that it answers."""
    known = Statistics()
    for _ in range(1000):
        known.learn([read(3, 0.5, is_last=True), got(1, 1, Book=1)], {})
    held = [value for value in vars(known).values() if isinstance(value, dict)]
    assert sum(map(len, held)) <= 6


def test_a_mean_follows_what_was_seen_last() -> None:
    """What was true a year ago would weigh as much as what is true today."""
    mean = Mean(0.0)
    for value in (4.0, 8.0):
        mean.learn(value)
    assert mean.value == 6
    for _ in range(200):
        mean.learn(100.0)
    assert mean.value == pytest.approx(100, rel=0.001)
