"""What an operation has cost, and how that is told beside what was estimated: the `cost` of an answer's extensions."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from keygraph.dynamo.store import BatchGet, Count, Query, Request
from keygraph_resolvers.plan.cost import CostEstimate, Estimate
from keygraph_resolvers.read.meter import Sent


@dataclass(slots=True)
class Spent:
    """What was spent, by an operation or at one place in it."""

    requests: int = 0
    items: float = 0.0
    read_units: float = 0.0
    round_trips: set[int] = field(default_factory=set)
    times: list[tuple[float, float]] = field(default_factory=list)

    def add(self, sent: Sent, share: float = 1.0) -> None:
        """Counts a request, of which a share of the items and units is meant."""
        self.requests += sent.cost.requests
        self.items += sent.items * share
        self.read_units += sent.cost.read_units * share
        self.times.append((sent.began, sent.ended))
        if sent.cost.requests:
            self.round_trips.add(sent.round_trip)

    @property
    def waited(self) -> float:
        """For how many milliseconds at least one request was under way."""
        total, until = 0.0, 0.0
        for began, ended in sorted(self.times):
            total += max(0.0, ended - max(began, until))
            until = max(until, ended)
        return total * 1000

    @property
    def shown(self) -> dict[str, Any]:
        return {
            "requests": self.requests,
            "roundTrips": len(self.round_trips),
            "items": round(self.items, 1),
            "readUnits": round(self.read_units, 1),
            "waitedMs": round(self.waited, 3),
        }


def spent(sent: Iterable[Sent]) -> Spent:
    """What these requests have cost."""
    total = Spent()
    for each in sent:
        total.add(each)
    return total


def spent_by_place(sent: Iterable[Sent]) -> dict[str, Spent]:
    """What each place in the query has cost.

    A BatchGet is a request of every place whose keys are in it; its items and read units are shared out by keys, and a
    key that several places wait for is the first one's.
    """
    found: dict[str, Spent] = {}
    for each in sent:
        keys: dict[str, int] = {}
        for (place, _), count in (each.origin.keys if each.origin else {}).items():
            keys[place] = keys.get(place, 0) + count
        if not keys:
            keys = dict.fromkeys(each.places, 1)
        for place, count in keys.items():
            found.setdefault(place, Spent()).add(each, count / sum(keys.values()))
    return found


def cost_report(
    estimate: CostEstimate | None, sent: Sequence[Sent], elsewhere: Iterable[str]
) -> dict[str, Any]:
    """The `cost` of an answer: estimated and actual, in total and by place, and every request in its order.

    `elsewhere` are the root's fields that graphql-core's own execution answers; an operation of which it answers all
    has no estimate.
    """
    places: dict[str, dict[str, Any]] = {}
    for place, expected in estimate.by_place().items() if estimate else ():
        places[place] = {"estimate": shown_estimate(expected), "actual": None}
    for place, actual in spent_by_place(sent).items():
        places.setdefault(place, {"estimate": None})["actual"] = actual.shown
    return {
        "estimate": shown_estimate(estimate.total) if estimate else None,
        "actual": spent(sent).shown,
        "byPath": places,
        "requests": [_shown_request(each) for each in sorted(sent, key=_order)],
        "elsewhere": list(elsewhere),
    }


def shown_estimate(estimate: Estimate) -> Mapping[str, Any]:
    """An estimate as a client sees it."""
    return {
        "requests": estimate.requests,
        "roundTrips": estimate.round_trips,
        "likelyRequests": estimate.likely_requests,
        "likelyRoundTrips": estimate.likely_round_trips,
        "items": estimate.items,
        "readUnits": estimate.read_units,
    }


def _order(sent: Sent) -> tuple[int, tuple[str, ...]]:
    """Round trips in their order; in one of them, in which all are sent at once, by place."""
    return sent.round_trip, sent.places


def _shown_request(sent: Sent) -> dict[str, Any]:
    return {
        "operation": operation_name(sent.request),
        "index": sent.request.index if isinstance(sent.request, Query | Count) else None,
        "counts": isinstance(sent.request, Count),
        "paths": list(sent.places),
        "roundTrip": sent.round_trip,
        "beganMs": round(sent.began * 1000, 3),
        "endedMs": round(sent.ended * 1000, 3),
        "requests": sent.cost.requests,
        "items": sent.items,
        "readUnits": sent.cost.read_units,
    }


def operation_name(request: Request[object]) -> str:
    """What DynamoDB calls the operation."""
    if isinstance(request, BatchGet):
        return "GetItem" if len(request.keys) == 1 else "BatchGetItem"
    return "Query" if isinstance(request, Query | Count) else type(request).__name__
