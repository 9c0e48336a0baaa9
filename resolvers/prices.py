"""Prices: what a part of an operation costs, and how prices of parts make the price of the whole.

Requests and round trips are the most that there can be, items and read units what is likely. Prices are added,
multiplied by how often a part is read, and put one after the other; so the price of a selection that many places share
is worked out once. Numbers stay below a bound, since a document of a few lines can ask for more than anybody can count.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from functools import reduce
from typing import TypeAlias

from resolvers.gathering import BATCH_KEYS

MOST = 2**53 - 1
"""Where numbers end: the largest integer that JSON's readers agree on."""

Trail: TypeAlias = "tuple[str | None, Trail] | None"
"""A place in the query from the outside in, one name after the other; None names add nothing to it."""


@dataclass(frozen=True, slots=True)
class Price:
    """What something costs."""

    requests: int = 0
    """The requests that are no BatchGets of nodes, or that no other place's keys can join."""
    keys: int = 0
    """The keys of nodes that are got together with those of other places."""
    moments: int = 0
    """When these leave, as bits: bit 0 is the first round trip."""
    round_trips: int = 0
    items: float = 0.0
    read_units: float = 0.0
    dearest: float = 0.0
    """The read units of the place that costs most."""
    trail: Trail = None
    """Where that place is."""

    @property
    def most_requests(self) -> int:
        """The requests, BatchGets included."""
        return self.requests + most_batches(self.keys, self.moments.bit_count())

    def __add__(self, other: Price) -> Price:
        """Both, from the same moment on."""
        if self is NOTHING:
            return other
        if other is NOTHING:
            return self
        dearest = self if self.dearest >= other.dearest else other
        return Price(
            min(MOST, self.requests + other.requests),
            min(MOST, self.keys + other.keys),
            self.moments | other.moments,
            max(self.round_trips, other.round_trips),
            min(MOST, self.items + other.items),
            min(MOST, self.read_units + other.read_units),
            dearest.dearest,
            dearest.trail,
        )

    def either(self, other: Price) -> Price:
        """One or the other: nobody knows which."""
        dearest = self if self.dearest >= other.dearest else other
        return Price(
            max(self.requests, other.requests),
            max(self.keys, other.keys),
            self.moments | other.moments,
            max(self.round_trips, other.round_trips),
            max(self.items, other.items),
            max(self.read_units, other.read_units),
            dearest.dearest,
            dearest.trail,
        )

    def times(self, most: int, likely: float) -> Price:
        """As often as that, at the same time."""
        if not most:
            return NOTHING
        return replace(
            self,
            requests=min(MOST, self.requests * most),
            keys=min(MOST, self.keys * most),
            items=min(MOST, self.items * likely),
            read_units=min(MOST, self.read_units * likely),
            dearest=min(MOST, self.dearest * likely),
        )

    def after(self, round_trips: int) -> Price:
        """The same, so many round trips later."""
        if not round_trips or self is NOTHING:
            return self
        later = self.round_trips + round_trips if self.round_trips else 0
        return replace(self, moments=self.moments << round_trips, round_trips=later)

    def apart(self) -> Price:
        """The same, if nobody knows when it happens, so that its keys may be got without those of other places."""
        return replace(self, requests=min(MOST, self.most_requests), keys=0, moments=0)

    def under(self, name: str | None) -> Price:
        """The same, one place further in."""
        return replace(self, trail=(name, self.trail)) if name is not None and self.dearest else self


NOTHING = Price()


def own_price(
    requests: int, round_trips: int, items: float, read_units: float, keys: int = 0, moments: int = 0
) -> Price:
    """The price of what is read at one place."""
    return Price(
        min(MOST, requests), min(MOST, keys), moments, round_trips, items, read_units, read_units, None
    )


def total(prices: Iterable[Price]) -> Price:
    """All of these, from the same moment on."""
    return reduce(Price.__add__, prices, NOTHING)


def most_batches(keys: int, moments: int) -> int:
    """How many BatchGets take so many keys, which leave at so many moments."""
    if not keys:
        return 0
    moments = max(1, min(moments, keys))
    # Of each moment all but one are full.
    return (keys - moments) // BATCH_KEYS + moments


def written(trail: Trail) -> str:
    """A place in the query, as `user.orders.items`."""
    names = []
    while trail is not None:
        name, trail = trail
        if name is not None:
            names.append(name)
    return ".".join(names)
