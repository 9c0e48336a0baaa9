"""A step of a plan: one kind of read, for all the objects that it is started for.

Every step has the same three methods. `start` runs it, `cost` returns the most that it takes, `explained` describes it:
the steps that run are the ones that are priced and printed. A step is started once for each place in the query where
its selection is, with all objects that are known there.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import TypeAlias

from keygraph.dynamo.limits import BATCH_GET_KEYS
from keygraph_resolvers.read.objects import Object
from keygraph_resolvers.read.run import Run
from keygraph_resolvers.steps.explained import Explained, View, Where

RoundTrips: TypeAlias = frozenset[int]

NEVER: RoundTrips = frozenset()
AT_ONCE: RoundTrips = frozenset({0})
MOST = 2**53 - 1
"""The largest number: the largest integer that all JSON readers read exactly."""
MOST_ROUND_TRIPS = 500
"""The last round trip that is counted separately."""


def later(round_trips: RoundTrips, by: int = 1) -> RoundTrips:
    """Returns the same round trips, `by` later."""
    return frozenset([each + by for each in round_trips])


def union(several: Iterable[RoundTrips]) -> RoundTrips:
    return NEVER.union(*several)


@dataclass(frozen=True, slots=True)
class Starts:
    """The most objects that a step is started for, and in which round trips."""

    count: int
    round_trips: RoundTrips

    def __add__(self, other: Starts) -> Starts:
        return Starts(min(MOST, self.count + other.count), self.round_trips | other.round_trips)

    def times(self, count: int) -> Starts:
        return Starts(min(MOST, self.count * count), self.round_trips)

    def after(self, round_trips: int = 1, *, at_least: int | None = None) -> Starts:
        """Returns the starts after that many round trips; or after any number from the least on."""
        least = round_trips if at_least is None else at_least
        found = {
            now + passed
            for now in self.round_trips
            for passed in range(least, round_trips + 1)
            if now + passed <= MOST_ROUND_TRIPS
        }
        return Starts(self.count, frozenset(found) or frozenset({MOST_ROUND_TRIPS}))


@dataclass(slots=True)
class StepCost:
    """The most that some reads take."""

    apart: int = 0
    """The requests that cannot be joined with others."""
    keys: int = 0
    """The keys that are read together with those of other steps in their round trip."""
    batches: set[int] = field(default_factory=set)
    """The round trips in which keys may be read."""
    round_trips: int = 0
    items: int = 0
    read_units: float = 0.0
    is_open: bool = False
    """Whether a limit of the server decides it, and not the sizes of the pages."""
    shared_with: tuple[str, ...] = ()
    """The other reads of the same requests, by what they add to the place in the query."""

    def add(self, other: StepCost) -> None:
        self.apart = min(MOST, self.apart + other.apart)
        self.keys = min(MOST, self.keys + other.keys)
        self.batches |= other.batches
        self.round_trips = max(self.round_trips, other.round_trips)
        self.items = min(MOST, self.items + other.items)
        self.read_units = min(float(MOST), self.read_units + other.read_units)
        self.is_open = self.is_open or other.is_open

    @property
    def requests(self) -> int:
        """The number of requests. In each round trip all batches but one have a hundred keys."""
        batches = min(self.keys, len(self.batches))
        return min(MOST, self.apart + (self.keys - batches) // BATCH_GET_KEYS + batches)


Below: TypeAlias = "Sequence[tuple[Priced, Starts]]"
"""The steps below a step, and how often they are started."""


class Priced(ABC):
    """Something that has a cost, at a place in the query."""

    suffix = ""
    """What it adds to the place in the query: a field's name, after a dot unless it is a field of the root."""

    @abstractmethod
    def cost(self, run: Run, starts: Starts) -> tuple[StepCost, Below]:
        """Returns the most that it costs to be started so often, and how often that starts others."""


class Step(Priced):
    """A step of a plan, which can be started."""

    later: RoundTrips = NEVER
    """The round trips in which keys are requested after it is started: 0 is the one in which it starts."""

    @abstractmethod
    def start(self, run: Run, objects: Sequence[Object], round_trip: int, place: str) -> None:
        """Reads what the step reads for these objects, which are known in that round trip, and continues with it.

        `place` is the place of the objects in the query.
        """

    @abstractmethod
    def explained(self, view: View, where: Where) -> Iterator[Explained]:
        """Yields what it reads, as a tree; nothing is read."""


class ItemStep(Step):
    """Continues from objects in two parts: what their keys determine, and what only their items determine.

    The first part may start while the items are read.
    """

    by_key_later: RoundTrips = NEVER
    """The round trips in which keys are requested after `start_by_key`."""
    by_item_later: RoundTrips = NEVER
    """The round trips in which keys are requested after `go_on`."""

    @abstractmethod
    def start_by_key(
        self, run: Run, objects: Sequence[Object], unread: Sequence[Object], round_trip: int, place: str
    ) -> None:
        """Starts what the objects' keys determine; `unread` are the nodes whose item may be read with it."""

    @abstractmethod
    def go_on(self, run: Run, objects: Sequence[Object], round_trip: int, place: str) -> None:
        """Starts what the objects' items determine."""

    @abstractmethod
    def cost_by_key(self, run: Run, starts: Starts, *, is_wanted: bool) -> tuple[StepCost, Below]:
        """Returns the cost of what the keys determine; `is_wanted`: the item may be read with it."""

    @abstractmethod
    def below_items(self, starts: Starts) -> Below:
        """Returns the steps that the items determine, with their starts."""

    def cost(self, run: Run, starts: Starts) -> tuple[StepCost, Below]:
        cost, below = self.cost_by_key(run, starts, is_wanted=False)
        return cost, [*below, *self.below_items(starts)]

    def explained(self, view: View, where: Where) -> Iterator[Explained]:
        yield from self.explained_below(view, where, where, None)

    @abstractmethod
    def explained_below(
        self, view: View, where: Where, item_where: Where, own: Explained | None
    ) -> list[Explained]:
        """Returns what is below the objects: what their keys determine, and what their items determine, maybe later.

        `own` is the read of their items, if that may be read with it.
        """
