"""When a batch of nodes leaves: full at once, else when nothing that is on its way can add to it."""

from __future__ import annotations

from dataclasses import dataclass, field

import pytest

from keygraph.dynamo.limits import BATCH_GET_KEYS
from keygraph.dynamo.table import Key
from keygraph_resolvers.read.gathering import Gathering


@dataclass
class Departures:
    """A gathering, and the batches that have left it."""

    left: list[tuple[int, list[Key]]] = field(default_factory=list)
    gathering: Gathering = field(init=False)

    def __post_init__(self) -> None:
        self.gathering = Gathering(lambda round_trip, keys: self.left.append((round_trip, keys)))

    def add(self, round_trip: int, *names: str) -> None:
        for name in names:
            self.gathering.add(round_trip, (name,))

    def departed(self) -> list[tuple[int, str]]:
        """What leaves now: round trips, and the names in order."""
        self.left.clear()
        self.gathering.depart()
        return [(round_trip, " ".join(str(key[0]) for key in keys)) for round_trip, keys in self.left]


@pytest.fixture
def departures() -> Departures:
    return Departures()


def test_what_nothing_can_add_to_leaves(departures: Departures) -> None:
    """A node would be waited for although nothing is on its way."""
    departures.add(1, "a", "b")
    assert departures.departed() == [(1, "a b")]
    assert departures.departed() == []


def test_a_batch_waits_for_what_can_add_to_it(departures: Departures) -> None:
    """The nodes of two lists would be two batches, because one list is slower than the other."""
    in_second = 1 << 2
    departures.gathering.expect(in_second)
    departures.gathering.expect(in_second)
    departures.gathering.arrived(in_second)
    departures.add(2, "a")
    assert departures.departed() == []
    departures.gathering.arrived(in_second)
    departures.add(2, "b")
    assert departures.departed() == [(2, "a b")]


def test_what_leads_to_other_round_trips_is_not_waited_for(departures: Departures) -> None:
    """A batch would wait for a slow read that adds nothing to it, and everything below it too."""
    departures.gathering.expect(0)
    departures.gathering.expect(1 << 3 | 1 << 5)
    departures.add(2, "a")
    departures.add(3, "b")
    departures.add(4, "c")
    assert departures.departed() == [(2, "a"), (4, "c")]
    departures.gathering.arrived(1 << 3 | 1 << 5)
    assert departures.departed() == [(3, "b")]


def test_full_batches_leave_early(departures: Departures) -> None:
    """Hundreds of nodes would wait for the slowest list, although their batches cannot grow."""
    departures.gathering.expect(1 << 2)
    names = [f"n{number}" for number in range(2 * BATCH_GET_KEYS + 30)]
    departures.add(2, *names)
    full = [(2, " ".join(names[:BATCH_GET_KEYS])), (2, " ".join(names[BATCH_GET_KEYS : 2 * BATCH_GET_KEYS]))]
    assert departures.departed() == full
    assert departures.departed() == []
    departures.gathering.arrived(1 << 2)
    assert departures.departed() == [(2, " ".join(names[2 * BATCH_GET_KEYS :]))]


@pytest.mark.parametrize(
    "count", [1, BATCH_GET_KEYS - 1, BATCH_GET_KEYS, BATCH_GET_KEYS + 1, 3 * BATCH_GET_KEYS]
)
def test_no_batch_is_too_large_and_none_empty(departures: Departures, count: int) -> None:
    """DynamoDB would refuse a batch of more than a hundred keys, or one of none."""
    departures.add(1, *(f"n{number}" for number in range(count)))
    sizes = [len(names.split()) for _, names in departures.departed()]
    assert sum(sizes) == count
    assert len(sizes) == -(-count // BATCH_GET_KEYS)
    assert all(0 < size <= BATCH_GET_KEYS for size in sizes)


def test_a_key_is_got_as_early_as_anybody_asks(departures: Departures) -> None:
    """A node that two places ask for would be got twice, or as late as the later one asks."""
    departures.gathering.expect(1 << 2 | 1 << 3)
    departures.add(3, "a", "b")
    departures.add(2, "a")
    departures.add(2, "a")
    departures.add(3, "a")
    departures.gathering.arrived(1 << 2 | 1 << 3)
    assert departures.departed() == [(2, "a"), (3, "b")]


def test_equal_forecasts_are_counted(departures: Departures) -> None:
    """The first of two lists that has come would send the batch off without the other's nodes."""
    for _ in range(3):
        departures.gathering.expect(1 << 2)
    departures.add(2, "a")
    for left in (2, 1, 0):
        departures.gathering.arrived(1 << 2)
        assert bool(departures.departed()) is (left == 0)
