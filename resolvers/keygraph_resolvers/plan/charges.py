"""Charges: what a part of an operation costs, and how those of parts make that of the whole.

Charges are added, multiplied by how often a part is read, and put one after the other; so the charge of a selection that
many places share is worked out once. Numbers stay below a bound, since a document of a few lines can ask for more than
anybody can count.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import reduce
from typing import TypeAlias

from keygraph.dynamo.limits import BATCH_GET_KEYS

MOST = 2**53 - 1
"""Where numbers end: the largest integer that JSON's readers agree on."""

Trail: TypeAlias = "tuple[str, Trail] | None"
"""A place in the query from the outside in, one name after the other."""


@dataclass(frozen=True, slots=True)
class Traffic:
    """Requests, and the round trips that they take."""

    alone: float = 0
    """The requests that are no BatchGets of nodes, or that no other place's keys can join."""
    keys: float = 0
    """The keys of nodes that are got together with those of other places."""
    moments: int = 0
    """When these leave, as bits: bit 0 is the first round trip."""
    round_trips: int = 0

    @property
    def requests(self) -> float:
        """The requests, BatchGets included."""
        if not self.keys:
            return self.alone
        batches = min(self.keys, max(1, self.moments.bit_count()))
        # Of each moment all but one are full.
        return min(MOST, self.alone + (self.keys - batches) // BATCH_GET_KEYS + batches)

    def __add__(self, other: Traffic) -> Traffic:
        """Both, from the same moment on."""
        return Traffic(
            min(MOST, self.alone + other.alone),
            min(MOST, self.keys + other.keys),
            self.moments | other.moments,
            max(self.round_trips, other.round_trips),
        )

    def either(self, other: Traffic) -> Traffic:
        return Traffic(
            max(self.alone, other.alone),
            max(self.keys, other.keys),
            self.moments | other.moments,
            max(self.round_trips, other.round_trips),
        )

    def times(self, count: float) -> Traffic:
        return Traffic(
            min(MOST, self.alone * count), min(MOST, self.keys * count), self.moments, self.round_trips
        )

    def after(self, round_trips: int) -> Traffic:
        later = self.round_trips + round_trips if self.round_trips else 0
        return Traffic(self.alone, self.keys, self.moments << round_trips, later)

    def or_later(self) -> Traffic:
        """The same, or one round trip later."""
        later = self.round_trips + 1 if self.round_trips else 0
        return Traffic(self.alone, self.keys, self.moments | self.moments << 1, later)

    def apart(self) -> Traffic:
        return Traffic(self.requests, 0, 0, self.round_trips)


NO_TRAFFIC = Traffic()


@dataclass(frozen=True, slots=True)
class Charge:
    """What something costs."""

    most: Traffic = NO_TRAFFIC
    """What there can be."""
    likely: Traffic = NO_TRAFFIC
    items: float = 0.0
    read_units: float = 0.0
    dearest: float = 0.0
    """The read units of the place that costs most."""
    trail: Trail = None
    """Where that place is."""

    def __add__(self, other: Charge) -> Charge:
        """Both, from the same moment on."""
        if self is NOTHING:
            return other
        if other is NOTHING:
            return self
        dearest = self if self.dearest >= other.dearest else other
        return Charge(
            self.most + other.most,
            self.likely + other.likely,
            min(MOST, self.items + other.items),
            min(MOST, self.read_units + other.read_units),
            dearest.dearest,
            dearest.trail,
        )

    def either(self, other: Charge) -> Charge:
        """One or the other: nobody knows which."""
        dearest = self if self.dearest >= other.dearest else other
        return Charge(
            self.most.either(other.most),
            self.likely.either(other.likely),
            max(self.items, other.items),
            max(self.read_units, other.read_units),
            dearest.dearest,
            dearest.trail,
        )

    def times(self, most: int, likely: float) -> Charge:
        """As often as that, at the same time."""
        if self is NOTHING or not most:
            return NOTHING
        return Charge(
            self.most.times(most),
            self.likely.times(likely) if likely else NO_TRAFFIC,
            min(MOST, self.items * likely),
            min(MOST, self.read_units * likely),
            min(MOST, self.dearest * likely),
            self.trail,
        )

    def after(self, most: int, likely: int) -> Charge:
        """The same, so many round trips later."""
        if self is NOTHING or not most:
            return self
        return Charge(
            self.most.after(most),
            self.likely.after(likely),
            self.items,
            self.read_units,
            self.dearest,
            self.trail,
        )

    def or_later(self) -> Charge:
        """The same, if it may be one round trip later."""
        if self is NOTHING:
            return self
        return Charge(
            self.most.or_later(), self.likely, self.items, self.read_units, self.dearest, self.trail
        )

    def or_sooner(self) -> Charge:
        """The same, if it may be one round trip sooner: its keys may leave in one batch more."""
        most = self.most
        if not most.keys:
            return self
        sooner = Traffic(most.alone, most.keys, most.moments | most.moments >> 1, most.round_trips)
        return Charge(sooner, self.likely, self.items, self.read_units, self.dearest, self.trail)

    def apart(self) -> Charge:
        """The same, if nobody knows when it happens, so that its keys may be got without those of other places."""
        return Charge(self.most.apart(), self.likely, self.items, self.read_units, self.dearest, self.trail)

    def under(self, name: str) -> Charge:
        """The same, one place further in; an edge's node has no place of its own."""
        if not self.dearest or not name:
            return self
        return Charge(self.most, self.likely, self.items, self.read_units, self.dearest, (name, self.trail))

    def then(self, later: Charge) -> Charge:
        """At one place, one after the other."""
        both = self + later.after(self.most.round_trips, self.likely.round_trips)
        return Charge(both.most, both.likely, both.items, both.read_units, both.read_units)


NOTHING = Charge()


def requests_charge(most: int, chain: int, likely: int, items: float, read_units: float) -> Charge:
    """The charge of Queries and counts, at most and likely so many; `chain` are the most round trips of them."""
    traffic = Traffic(min(MOST, most), 0, 0, chain)
    return Charge(traffic, Traffic(likely, 0, 0, 1), items, read_units, read_units)


def keys_charge(most: int, likely: float, items: float, read_units: float) -> Charge:
    """The charge of nodes that are got by key."""
    expected = Traffic(0, likely, 1, 1) if likely else NO_TRAFFIC
    return Charge(Traffic(0, most, 1, 1), expected, items, read_units, read_units)


def total(charges: Iterable[Charge]) -> Charge:
    """All of these, from the same moment on."""
    return reduce(Charge.__add__, charges, NOTHING)


def written(trail: Trail) -> str:
    """A place in the query, as `user.orders.items`."""
    names = []
    while trail is not None:
        name, trail = trail
        names.append(name)
    return ".".join(names)
