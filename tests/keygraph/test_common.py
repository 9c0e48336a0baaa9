"""Common neighbours: the walks alone, answered from lists in memory, beside the intersection of sets."""

from __future__ import annotations

from random import Random

import pytest

from keygraph.walks.common import (
    FIRST_OF_ALL,
    ITEMS_OF_A_KEY,
    Begin,
    Common,
    Entry,
    KeysWanted,
    LookUp,
    Merge,
    PageWanted,
    WalkAnswer,
    Wanted,
)


class Lists:
    """Some lists in memory, and what was asked of them."""

    def __init__(self, *lists: list[int], forward: bool = True, page: int = 10_000) -> None:
        self.lists = [sorted(each, reverse=not forward) for each in lists]
        self.forward = forward
        self.page = page
        self.looked_at = 0
        self.keys = 0
        self.rounds = 0
        self.requests = 0

    def run(self, walk: Common) -> list[int]:
        steps = walk.walk()
        try:
            wanted = next(steps)
            while True:
                self.rounds += 1
                wanted = steps.send([self.answer(each) for each in wanted])
        except StopIteration:
            return [entry.key for entry in walk.found]

    def answer(self, wanted: Wanted) -> WalkAnswer:
        there = self.lists[wanted.side]
        self.requests += 1
        if isinstance(wanted, KeysWanted):
            self.keys += len(wanted.entries)
            keys = set(there)
            return WalkAnswer([Entry(entry.key, entry.key) for entry in wanted.entries if entry.key in keys])
        behind = [key for key in there if wanted.begin is None or self.is_behind(key, wanted.begin)]
        found = behind[: min(wanted.count, self.page)]
        self.looked_at += len(found)
        return WalkAnswer([Entry(key, key) for key in found], len(found), len(found) == len(behind))

    def is_behind(self, key: int, begin: Begin) -> bool:
        there = begin.key.key if isinstance(begin.key, Entry) else begin.key
        return begin.is_included if key == there else (key > there) is self.forward


def made(random: Random) -> tuple[list[list[int]], bool]:
    """Some lists, of which one is much longer than the others now and then."""
    size = random.choice([3, 40, 300, 3000])
    sizes = [random.choice([0, 1, size // 10, size, size]) for _ in range(random.choice([2, 2, 3, 4]))]
    space = random.choice([size, size * 3, size * 30])
    lists = [random.sample(range(space), min(each, space)) for each in sizes]
    if random.random() < 0.5:
        shared = random.sample(range(space), min(5, space))
        lists = [[*{*each, *shared}] for each in lists]
    return lists, random.random() < 0.6


@pytest.mark.parametrize("seed", range(120))
def test_they_find_what_all_lists_have(seed: int) -> None:
    random = Random(seed)
    lists, forward = made(random)
    common = sorted(set.intersection(*map(set, lists)), reverse=not forward)
    wanted = random.choice([None, 1, 3, 20])
    world = Lists(*lists, forward=forward, page=random.choice([7, 100, 10_000]))
    begin = random.choice([None, random.choice([*lists[0], 5])])
    merge = Merge(len(lists), wanted, 10**9, forward=forward, begin=begin)
    behind = [key for key in common if begin is None or (key != begin and (key > begin) is forward)]
    assert world.run(merge) == (behind if wanted is None else behind[:wanted])
    assert not merge.is_open
    tested = LookUp(len(lists), wanted, 10**9)
    found = world.run(tested)
    if tested.is_unordered or wanted is None:
        assert sorted(found, reverse=not forward) == common
    else:
        assert found == common[: len(found)]
        assert len(found) >= min(wanted, len(common))


@pytest.mark.parametrize("seed", range(25))
@pytest.mark.parametrize("kind", [Merge, LookUp])
def test_a_budget_ends_them_where_one_can_go_on(seed: int, kind: type[Common]) -> None:
    random = Random(seed)
    lists = [random.sample(range(30_000), 3000) for _ in range(2)]
    common = sorted(set.intersection(*map(set, lists)))
    budget = random.choice([1, 300, 2000])
    world = Lists(*lists)
    walk = kind(2, None, budget)
    found = world.run(walk)
    assert walk.is_open
    assert walk.last is not None
    assert found == [key for key in common if key <= walk.last.key]
    # A budget that is used up may be exceeded by one round.
    assert world.looked_at + 8 * world.keys <= budget + 4 * 128 + 8 * 128


def test_lists_of_like_length_are_read_side_by_side() -> None:
    world = Lists([*range(0, 10_000, 2)], [*range(1, 10_000, 2), 5000])
    assert world.run(Merge(2, None, 10_000)) == [5000]
    assert world.keys < 40
    assert world.rounds <= 6


@pytest.mark.long
def test_a_long_list_is_not_read_for_a_short_one() -> None:
    world = Lists([*range(0, 1_000_000, 50_000)], [*range(1_000_000)])
    assert len(world.run(Merge(2, 20, 10_000))) == 20
    assert world.looked_at <= 20 + 128
    assert world.keys <= 20
    world = Lists([*range(1_000_000)], [*range(0, 1_000_000, 2500)])
    assert len(world.run(Merge(2, None, 10**6))) == 400
    assert world.looked_at < 400 + 2000
    assert world.keys <= 400


@pytest.mark.parametrize("kind", ["mixed", "apart"])
@pytest.mark.parametrize("short", [8, 500, 2_500, 5_000])
def test_what_it_takes_at_most(short: int, kind: str) -> None:
    random, common = Random(short), [*range(0, 50_000, 2_501)]
    there = random.sample(range(50_000), 5_000) if kind == "mixed" else range(20_000, 25_000)
    fewer = random.sample(range(50_000), short) if kind == "mixed" else range(short)
    lists = [[*{*there, *common}], [*{*fewer, *common}]]
    for wanted in (None, len(common) + 1):
        for one, other in (lists, lists[::-1]):
            world = Lists(one, other)
            assert world.run(Merge(2, wanted, 10**6))[:20] == sorted({*one} & {*other})[:20]
            items = min(len(one), len(other))
            # Nobody knows which is shorter until a first page of each was read.
            assert (
                world.looked_at + ITEMS_OF_A_KEY * world.keys <= (1 + ITEMS_OF_A_KEY) * items + FIRST_OF_ALL
            )
            assert world.requests <= 12


def test_a_list_is_not_read_where_another_has_nothing() -> None:
    world = Lists([*range(5000), 9_000_000], [*range(8_000_000, 8_004_000), 9_000_000])
    assert world.run(Merge(2, 20, 10_000)) == [9_000_000]
    assert world.looked_at < 1000


def test_a_short_list_is_looked_up_in_one_that_is_in_another_order() -> None:
    world = Lists([*range(100_000)], [99_999, 70_000])
    walk = LookUp(2, 20, 10_000)
    assert sorted(world.run(walk)) == [70_000, 99_999]
    assert walk.is_unordered
    assert world.keys == 2
    known = LookUp(2, None, 10_000, known=[Entry(key, key) for key in (5, 70_000)])
    assert world.run(known) == [70_000]


def test_the_rest_of_a_filtered_page_is_decided_by_where_it_ended() -> None:
    def answer(wanted: Wanted) -> WalkAnswer:
        assert isinstance(wanted, PageWanted)
        if wanted.side:
            return WalkAnswer([Entry(7, 7)], 1)
        return WalkAnswer([], 500, is_ended=False, resume=Entry(5))

    walk = Merge(2, 20, 100)
    steps = walk.walk()
    wanted = next(steps)
    with pytest.raises(StopIteration):
        steps.send([answer(each) for each in wanted])
    assert walk.is_open
    assert walk.last == Entry(5)
