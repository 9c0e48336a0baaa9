"""The bound of an operation: the most that it can cost, computed from its document, its variables and the page sizes.

Nothing is learned and nothing is read: the same operation with the same page sizes always has the same bound. The bound
is the sum of what the steps request at most (`Step.worst`). A step that several places share is counted once for all of
them, so the work is proportional to the size of the document.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import cached_property
from graphlib import TopologicalSorter
from typing import Any, cast

from keygraph.dynamo.limits import BATCH_GET_KEYS
from keygraph.errors import KeygraphError
from keygraph_resolvers.engine.worst import (
    MOST_ROUND_TRIPS,
    Bounded,
    KeyTrips,
    Starts,
    StepCost,
    StepStart,
    Transactions,
    WorstRequest,
    cost_of,
    key_trips,
)
from keygraph_resolvers.plan.plan import Plan
from keygraph_resolvers.read.access import access_key
from keygraph_resolvers.read.run import Run

MOST_PLACES = 1000
"""The most places that a bound lists separately: through fragments a short document can have any number of them."""
_KEPT = 16
"""The number of bounds that one plan caches, each for other page sizes."""
_ONCE = Starts(1, frozenset({1}))


@dataclass(frozen=True, slots=True)
class Figures:
    """The most that an operation, or one place in it, takes."""

    requests: int = 0
    round_trips: int = 0
    items: int = 0
    read_units: float = 0.0
    counted: int = 0
    """The items that the store only counts."""

    @property
    def as_dict(self) -> dict[str, float]:
        return {
            "requests": self.requests,
            "roundTrips": self.round_trips,
            "items": self.items,
            "readUnits": self.read_units,
        }

    def __add__(self, other: Figures) -> Figures:
        return Figures(
            self.requests + other.requests,
            self.round_trips + other.round_trips,
            self.items + other.items,
            round(self.read_units + other.read_units, 1),
            self.counted + other.counted,
        )


@dataclass(slots=True)
class _Known:
    """What a plan knows of one bound, so that operations that come again are also refused without computing it."""

    total: Figures
    key_trips: Mapping[object, KeyTrips]
    most_expensive: tuple[str, float] | None = None


class Bound:
    """The most that one run of a plan takes."""

    def __init__(self, plan: Plan, run: Run, known: _Known | None = None) -> None:
        self._plan = plan
        self._run = run
        self._worst: dict[Bounded, tuple[WorstRequest, ...]] = {}
        self._price = 2 if plan.reads_consistently else 1
        """The price of a read relative to an eventually consistent one."""
        self._key_of_run = self._key() if known is None else None
        self.known: _Known | None = known or plan.bounds.get(self._key_of_run)
        """What the plan knows of it; None if it is not computed."""
        if self.known is not None:
            self.total, run.key_trips = self.known.total, self.known.key_trips

    @cached_property
    def total(self) -> Figures:
        """The most that the whole operation takes. The run is told with it when its steps request keys."""
        kept = self._plan.bounds
        # Another client may have sent it meanwhile.
        known = self.known = self.known or kept.get(self._key_of_run)
        if known is None:
            known = self.known = _Known(self._total(), self._key_trips())
            _keep(kept, self._key_of_run, known)
        self._run.key_trips = known.key_trips
        return known.total

    def keep_refused(self, given: bytes) -> None:
        """Keeps it for when a mutation comes again with what was given, by a hash of that."""
        _keep(self._plan.refused, given, self.known)

    def _key(self) -> Hashable:
        """Returns the values that decide the bound; none is a client's text."""
        plan, run = self._plan, self._run
        access = None if run.access is None else access_key(run.access, plan.needed)
        if not plan.operation.variable_definitions:
            return access, *map(self._worst_of, plan.writes)
        gathered = [
            (*gather.worst(run, is_wanted=True), *gather.worst(run, is_wanted=False))
            for gather in plan.varying_gathers
        ]
        return access, *gathered, *map(self._worst_of, plan.varying)

    def _worst_of(self, step: Bounded) -> tuple[WorstRequest, ...]:
        found = self._worst.get(step)
        if found is None:
            found = self._worst[step] = tuple(step.worst(self._run))
        return found

    def _key_trips(self) -> Mapping[object, KeyTrips]:
        """Returns in which round trips each step requests keys after each of its waits."""
        keys, waits = dict[Bounded, int](), dict[object, KeyTrips]()
        # Lists that are read with their nodes are started by none of the others.
        for step in reversed(self._in_order([*self._plan.roots, *self._plan.lists])):
            keys[step], waits[step] = key_trips(self._worst_of(step), keys.__getitem__)
        return waits

    def _total(self) -> Figures:
        roots, total = self._plan.roots, Figures()
        # Mutations run one after the other, and share nothing.
        for some in [[root] for root in roots] if self._plan.is_mutation else [roots]:
            cost = self._cost(some)
            total += self._figures(cost, cost.requests)
        return total

    def _cost(self, roots: Sequence[Bounded]) -> StepCost:
        cost = StepCost()
        for _, own, _ in self._each_step(roots):
            cost.add(own)
        return cost

    def _figures(self, cost: StepCost, requests: int) -> Figures:
        units = round(self._price * cost.read_units, 1)
        return Figures(requests, cost.round_trips, cost.items, units, cost.counted)

    def _each_step(
        self, roots: Sequence[Bounded]
    ) -> Iterator[tuple[Bounded, StepCost, Sequence[tuple[Bounded, Starts]]]]:
        """The steps in order, each with the cost of all its starts together, and the steps that it starts."""
        starts: dict[Bounded, Starts] = dict.fromkeys(roots, _ONCE)
        for step in self._in_order(roots):
            own, below = cost_of(self._worst_of(step), starts[step])
            yield step, own, below
            for each, more in below:
                starts[each] = starts[each] + more if each in starts else more

    def _in_order(self, roots: Sequence[Bounded]) -> list[Bounded]:
        """Returns every step once, after all steps that start it."""
        below: dict[Bounded, list[Bounded]] = {}
        waiting = [*roots]
        while waiting:
            step = waiting.pop()
            if step not in below:
                below[step] = [each.step for each in self._worst_of(step) if isinstance(each, StepStart)]
                waiting += below[step]
        return [*TopologicalSorter(below).static_order()][::-1]

    @cached_property
    def by_place(self) -> Mapping[str, Figures]:
        """The most that each place in the query takes, for up to `MOST_PLACES` places.

        A BatchGetItem that several places share counts at each of them. If a round trip has several, the keys of a place
        may begin in one and end in the next.
        """
        total = self._cost(self._plan.roots)
        found = {}
        for place, cost in self._by_place.items():
            requests = cost.requests
            if total.keys > BATCH_GET_KEYS and cost.keys:
                batches = cost.keys // BATCH_GET_KEYS + 2 * len(cost.batches)
                requests = cost.unbatched + min(cost.keys, batches, total.requests - total.unbatched)
            found[place] = self._figures(cost, requests)
        return found

    @cached_property
    def write_units(self) -> Mapping[str, int | None]:
        """The most write units of each mutation, by its place; None if what it finds decides. Mutations that are refused
        have none."""
        found: dict[str, int | None] = {}
        for step in self._plan.roots:
            for each in self._worst_of(step):
                if isinstance(each, Transactions):
                    with suppress(KeygraphError):
                        units = [written.write_units for _, _, written in each.described(self._run)]
                        found[step.suffix] = None if None in units else sum(filter(None, units))
        return found

    @cached_property
    def open_places(self) -> list[str]:
        """The places where a limit of the server decides the bound, not the page sizes."""
        return [place for place, cost in self._by_place.items() if cost.is_open]

    @property
    def most_expensive(self) -> tuple[str, float]:
        """The place in the query that costs most, and its read units.

        Places with the same selection through a fragment count as one.
        """
        _, known = self.total, cast(_Known, self.known)
        if known.most_expensive is not None:
            return known.most_expensive
        places: dict[Bounded, str] = {step: step.suffix for step in self._plan.roots}
        units: dict[str, float] = {}
        for step, own, below in self._each_step(self._plan.roots):
            place = places[step]
            units[place] = units.get(place, 0.0) + self._price * own.read_units
            for each, _ in below:
                places.setdefault(each, place + each.suffix)
        found = max(units, key=lambda each: units[each], default="")
        known.most_expensive = found, units.get(found, 0.0)
        return known.most_expensive

    @cached_property
    def _by_place(self) -> dict[str, StepCost]:
        places: dict[str, StepCost] = {}
        roots = self._starts_of_roots()
        waiting: list[tuple[Bounded, Starts, str]] = [(step, roots[step], "") for step in reversed(roots)]
        while waiting:
            step, starts, outer = waiting.pop()
            place = outer + step.suffix
            if place not in places and len(places) >= MOST_PLACES:
                continue
            own, below = cost_of(self._worst_of(step), starts)
            if own.round_trips:
                places.setdefault(place, StepCost()).add(own)
                for name in own.shared_with:
                    shared = replace(own, batches=set(own.batches), shared_with=())
                    places.setdefault(place + name, StepCost()).add(shared)
            waiting += [(each, more, place) for each, more in reversed(below)]
        return places

    def _starts_of_roots(self) -> dict[Bounded, Starts]:
        """Returns the round trip in which each step of the root starts: mutations run one after the other."""
        first, found = 1, dict[Bounded, Starts]()
        for step in self._plan.roots:
            found[step] = Starts(1, frozenset({first}))
            if self._plan.is_mutation:
                first = min(MOST_ROUND_TRIPS, first + self._cost([step]).round_trips)
        return found


def _keep(bounds: dict[Any, Any], key: Hashable, known: _Known | None) -> None:
    if len(bounds) >= _KEPT:
        bounds.pop(next(iter(bounds)), None)
    bounds[key] = known
