"""Reports the actual cost of an operation next to its bound, and the errors of operations that are too large."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

from graphql import GraphQLError

from keygraph.dynamo.store import BatchGet, Count, Query, Request, Transaction, Write
from keygraph.dynamo.table import Table
from keygraph.lists.describe import sent_request
from keygraph_resolvers.engine.worst import MOST
from keygraph_resolvers.errors import public_error
from keygraph_resolvers.plan.bound import Bound
from keygraph_resolvers.read.meter import CostExceeded, Sent


@dataclass(slots=True)
class Spent:
    """The actual cost of an operation, or of one place in it."""

    requests: int = 0
    items: float = 0.0
    read_units: float = 0.0
    write_units: float = 0.0
    round_trips: set[int] = field(default_factory=set)
    times: list[tuple[float, float]] = field(default_factory=list)

    def add(self, sent: Sent, share: float = 1.0) -> None:
        """Counts a request, with a share of its items and units."""
        self.requests += sent.cost.requests
        self.items += sent.items * share
        self.read_units += sent.cost.read_units * share
        self.write_units += sent.cost.write_units * share
        self.times.append((sent.began, sent.ended))
        if sent.cost.requests:
            self.round_trips.add(sent.round_trip)

    @property
    def waited(self) -> float:
        """The milliseconds during which at least one request was in flight."""
        total, until = 0.0, 0.0
        for began, ended in sorted(self.times):
            total += max(0.0, ended - max(began, until))
            until = max(until, ended)
        return total * 1000

    @property
    def as_dict(self) -> dict[str, Any]:
        return {
            "requests": self.requests,
            "roundTrips": len(self.round_trips),
            "items": round(self.items, 1),
            "readUnits": round(self.read_units, 1),
            **_written(self.write_units),
            "waitedMs": round(self.waited, 3),
        }


def _written(units: float) -> dict[str, float]:
    """The figures for writes; empty if there are none."""
    return {"writeUnits": round(units, 1)} if units else {}


def spent(sent: Iterable[Sent]) -> Spent:
    """Returns the cost of these requests."""
    total = Spent()
    for each in sent:
        total.add(each)
    return total


def spent_by_place(sent: Iterable[Sent]) -> dict[str, Spent]:
    """Returns the cost of each place in the query.

    A BatchGet counts as a request of every place whose keys are in it; its items and read units are divided by keys,
    and a key that several places wait for counts for the first.
    """
    found: dict[str, Spent] = {}
    for each in sent:
        keys = each.keys or dict.fromkeys(each.places, 1)
        for place, count in keys.items():
            found.setdefault(place, Spent()).add(each, count / sum(keys.values()))
    return found


def cost_report(
    bound: Bound | None, sent: Sequence[Sent] | None, elsewhere: Iterable[str], table: Table
) -> dict[str, Any]:
    """Returns the `cost` of an answer: bound and actual, in total and by place, and every request in its order.

    At a place, round trips are counted up to the latest in which something is read there. `elsewhere` are the root
    fields that graphql-core executes itself; an operation with only such fields has no bound. `sent` is None if the
    client may not know what was read.
    """
    places: dict[str, dict[str, Any]] = {}
    writes = bound.write_units if bound else {}
    for place, most in bound.by_place.items() if bound else ():
        places[place] = {"bound": {**most.as_dict, **_written(writes.get(place) or 0)}, "actual": None}
    for place, actual in spent_by_place(sent or ()).items():
        latest = max(actual.round_trips, default=0)
        places.setdefault(place, {"bound": None})["actual"] = {**actual.as_dict, "roundTrips": latest}
    all_writes = 0 if None in writes.values() else sum(filter(None, writes.values()))
    return {
        "bound": {**bound.total.as_dict, **_written(all_writes)} if bound else None,
        "actual": None if sent is None else spent(sent).as_dict,
        "byPath": places,
        "open": bound.open_places if bound else [],
        "requests": [_request_json(each, table) for each in sorted(sent or (), key=_order)],
        "elsewhere": list(elsewhere),
    }


def _order(sent: Sent) -> tuple[int, tuple[str, ...]]:
    """Sorts by round trip, and within one, whose requests are sent at once, by place."""
    return sent.round_trip, sent.places


def _request_json(sent: Sent, table: Table) -> dict[str, Any]:
    return {
        "operation": operation_name(sent.request),
        "index": sent.request.index if isinstance(sent.request, Query | Count) else None,
        "counts": isinstance(sent.request, Count),
        **sent_request(sent.request, table),
        "paths": list(sent.places),
        "roundTrip": sent.round_trip,
        "beganMs": round(sent.began * 1000, 3),
        "endedMs": round(sent.ended * 1000, 3),
        "requests": sent.cost.requests,
        "items": sent.items,
        "readUnits": sent.cost.read_units,
        **_written(sent.cost.write_units),
    }


def operation_name(request: Request[object]) -> str:
    if isinstance(request, BatchGet):
        return "GetItem" if len(request.keys) == 1 else "BatchGetItem"
    if isinstance(request, Transaction):
        return "TransactWriteItems"
    if isinstance(request, Write):
        return type(request.action).__name__
    return "Query" if isinstance(request, Query | Count) else type(request).__name__


# --- Operations that are too large ----------------------------------------------------------------------


def refused_error(bound: Bound, limit: float) -> dict[str, Any]:
    """The error of an operation whose bound is above the limit; nothing was read for it."""
    units = _number(bound.total.read_units)
    message = f"This operation may cost {units} read units, and the limit is {_number(limit)}. Most of it, {{}}, is for {{}}"
    return _limit_error(message, {"bound": bound.total.as_dict}, bound.most_expensive, limit)


def exceeded_error(sent: Sequence[Sent] | None, limit: float) -> dict[str, Any]:
    """The error of an operation that exceeded the limit while it ran. `sent` is None if the client may not see it."""
    if sent is None:
        message = f"This operation has cost more than the limit, {_number(limit)} read units: it was stopped. Ask for smaller pages."
        return public_error(GraphQLError(message, extensions={"limit": limit}), code=CostExceeded.code)
    actual = spent(sent).as_dict
    places = {place: each.read_units for place, each in spent_by_place(sent).items()}
    place = max(places, key=lambda each: places[each], default="")
    message = (
        f"This operation has cost {_number(actual['readUnits'])} read units, and the limit is {_number(limit)}: "
        "it was stopped. Most of it, {}, was for {}"
    )
    return _limit_error(message, {"actual": actual}, (place, places.get(place, 0.0)), limit)


def _limit_error(
    message: str, figures: dict[str, Any], most: tuple[str, float], limit: float
) -> dict[str, Any]:
    """`most` is the most expensive place with its read units, which the message names."""
    place, units = most
    message = f"{message.format(_number(units), place)}. Ask for less there or around it: smaller pages, or fewer lists and counts."
    numbers = {**figures, "limit": limit, "mostExpensive": {"path": place, "readUnits": round(units, 1)}}
    return public_error(GraphQLError(message, extensions=numbers), code=CostExceeded.code)


def _number(value: float) -> str:
    if value >= MOST:
        return f"more than {MOST:,}"
    return f"{value:,.1f}".removesuffix(".0")
