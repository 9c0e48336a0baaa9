"""The bound of an operation: the most that it can cost, computed from its document, its variables and the page sizes.

Nothing is learned and nothing is read: the same operation with the same page sizes always has the same bound. The bound
is the sum of the costs of the steps (`Step.cost`). A step that several places share is counted once for all of them, so
the work is proportional to the size of the document.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

from keygraph.dynamo.limits import BATCH_GET_KEYS
from keygraph_resolvers.plan.plan import Plan
from keygraph_resolvers.read.access import access_key
from keygraph_resolvers.read.run import Run
from keygraph_resolvers.steps.step import MOST_ROUND_TRIPS, Below, Priced, Starts, StepCost

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

    def __add__(self, other: Figures) -> Figures:
        return Figures(
            self.requests + other.requests,
            self.round_trips + other.round_trips,
            self.items + other.items,
            round(self.read_units + other.read_units, 1),
        )


class Bound:
    """The most that one run of a plan takes."""

    def __init__(self, plan: Plan, run: Run) -> None:
        self._plan = plan
        self._run = run
        self._price = 2 if plan.is_consistent or plan.is_mutation else 1
        """The price of a read relative to an eventually consistent one: payloads are read consistently."""

    @cached_property
    def total(self) -> Figures:
        key = _key(self._plan, self._run)
        kept: dict[Hashable, Figures] = self._plan.bounds
        found = kept.get(key)
        if found is None:
            if len(kept) >= _KEPT:
                kept.pop(next(iter(kept)))
            found = kept[key] = self._total()
        return found

    def _total(self) -> Figures:
        if not self._plan.is_mutation:
            return self._sum(self._plan.roots)
        # Mutations run one after the other, and share nothing.
        total = Figures()
        for root in self._plan.roots:
            total += self._sum([root])
        return total

    def _sum(self, roots: Sequence[Priced]) -> Figures:
        cost = self._cost(roots)
        return self._figures(cost, cost.requests)

    def _cost(self, roots: Sequence[Priced]) -> StepCost:
        cost = StepCost()
        for _, own, _ in self._each_step(roots):
            cost.add(own)
        return cost

    def _figures(self, cost: StepCost, requests: int) -> Figures:
        return Figures(requests, cost.round_trips, cost.items, round(self._price * cost.read_units, 1))

    def _each_step(self, roots: Sequence[Priced]) -> Iterator[tuple[Priced, StepCost, Below]]:
        """The steps in order, each with the cost of all its starts together, and the steps that it starts."""
        starts: dict[Priced, Starts] = dict.fromkeys(roots, _ONCE)
        for step in self._in_order(roots):
            own, below = step.cost(self._run, starts[step])
            yield step, own, below
            for each, more in below:
                starts[each] = starts[each] + more if each in starts else more

    def _in_order(self, roots: Sequence[Priced]) -> list[Priced]:
        """Returns every step once, after all steps that start it."""
        order: dict[Priced, None] = {}
        waiting: list[tuple[Priced, bool]] = [(step, False) for step in roots]
        while waiting:
            step, is_done = waiting.pop()
            if is_done:
                order[step] = None
            elif step not in order:
                waiting.append((step, True))
                _, below = step.cost(self._run, _ONCE)
                waiting += [(each, False) for each, _ in below if each not in order]
        return [*reversed(order)]

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
                requests = cost.apart + min(cost.keys, batches, total.requests - total.apart)
            found[place] = self._figures(cost, requests)
        return found

    @cached_property
    def open_places(self) -> list[str]:
        """The places where a limit of the server decides the bound, not the page sizes."""
        return [place for place, cost in self._by_place.items() if cost.is_open]

    @cached_property
    def most_expensive(self) -> tuple[str, float]:
        """The place in the query that costs most, and its read units.

        Places with the same selection through a fragment count as one.
        """
        places: dict[Priced, str] = {step: step.suffix for step in self._plan.roots}
        units: dict[str, float] = {}
        for step, own, below in self._each_step(self._plan.roots):
            place = places[step]
            units[place] = units.get(place, 0.0) + self._price * own.read_units
            for each, _ in below:
                places.setdefault(each, place + each.suffix)
        found = max(units, key=lambda each: units[each], default="")
        return found, units.get(found, 0.0)

    @cached_property
    def _by_place(self) -> dict[str, StepCost]:
        places: dict[str, StepCost] = {}
        roots = self._starts_of_roots()
        waiting: list[tuple[Priced, Starts, str]] = [(step, roots[step], "") for step in reversed(roots)]
        while waiting:
            step, starts, outer = waiting.pop()
            place = outer + step.suffix
            if place not in places and len(places) >= MOST_PLACES:
                continue
            own, below = step.cost(self._run, starts)
            if own.round_trips:
                places.setdefault(place, StepCost()).add(own)
                for name in own.shared_with:
                    shared = replace(own, batches=set(own.batches), shared_with=())
                    places.setdefault(place + name, StepCost()).add(shared)
            waiting += [(each, more, place) for each, more in reversed(below)]
        return places

    def _starts_of_roots(self) -> dict[Priced, Starts]:
        """Returns the round trip in which each step of the root starts: mutations run one after the other."""
        first, found = 1, dict[Priced, Starts]()
        for step in self._plan.roots:
            found[step] = Starts(1, frozenset({first}))
            if self._plan.is_mutation:
                first = min(MOST_ROUND_TRIPS, first + self._cost([step]).round_trips)
        return found


def _key(plan: Plan, run: Run) -> Hashable:
    """Returns the values that decide the bound of a run; none is a client's text."""
    access = None if run.access is None else access_key(run.access, plan.needed)
    writes = access, *(step.bound_key(run) for step in plan.writes)
    if not plan.operation.variable_definitions:
        return writes
    return (
        writes,
        tuple(step.bound_key(run) for step in plan.lists if step.selected.variables),
        tuple(step.bound_key(run) for step in plan.walks if step.selected.variables),
        tuple(step.bound_key(run) for step in plan.named),
        tuple(gather.bound_key(run) for gather in plan.gathers),
    )
