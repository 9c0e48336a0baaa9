"""Counts the cost of partitions and fields: read and write units per second, over about the last ten minutes.

Costs count half as much after each `HALF_LIFE`. Old sums are not multiplied for that: later costs are added with a
larger weight, and weights start over before they grow too large.

A batch of keys counts for one of them, chosen at random, and so do the requests of an operation with very many for some
of them: the sum of a partition is right on average, and no operation takes long to count.
"""

from __future__ import annotations

import hashlib
import math
import random
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from typing import Any, NamedTuple
from weakref import WeakKeyDictionary

from keygraph.dynamo.actions import key_of
from keygraph.dynamo.conditions import Path
from keygraph.dynamo.store import BatchGet, Count, Query, Request, Transaction, Write
from keygraph.dynamo.table import KeyValue, Table
from keygraph_resolvers.plan.cost import operation_name
from keygraph_resolvers.plan.plan import Plan, field_at
from keygraph_server.http.graphql_http import HTTPObservation
from keygraph_server.telemetry.sketch import Sketch

HALF_LIFE = 300.0
_PARTITIONS_KEPT = 500
_REPORTED = 50
"""The number of reported partitions."""
_MOST_FIELDS = 2_000
_MOST_COUNTED = 500
"""The number of requests that are counted of one operation: two milliseconds."""
_PLACES_KEPT = 64
"""The number of places of a plan that are remembered."""
_LONGEST_KEY = 200
_LARGEST_WEIGHT = 2.0**40
_ELSEWHERE = "(elsewhere)"
"""Reads without a field in the plan: a method of the model uses the store itself."""


class Partition(NamedTuple):
    """A partition of the table or an index, as one field reads or writes it."""

    field: str
    of_index: str | None
    key: str
    writes: bool


@dataclass(slots=True)
class FieldUnits:
    """The cost of a field by one kind of request."""

    units: float = 0.0
    requests: float = 0.0
    attributes: set[str] = field(default_factory=set)
    """The attributes that were requested of nodes read by key."""
    projection: tuple[Path, ...] | None = None
    """The last that were requested."""


class HotSpots:
    """Counts the costs of operations. A reporter of one process."""

    def __init__(
        self, table: Table, secret: bytes, *, shows_keys: bool, clock: Callable[[], float] = time.monotonic
    ) -> None:
        """Without `shows_keys`, keys are reported as hashes that can only be made with the secret."""
        self._table = table
        self._hash_key = hashlib.sha256(b"keygraph hot" + secret).digest()
        self._shows_keys = shows_keys
        self._clock = clock
        self._began = self._weighed_from = clock()
        self._partitions: Sketch[Partition] = Sketch(_PARTITIONS_KEPT)
        self._fields: dict[tuple[str, str], FieldUnits] = {}
        self._choose = random.Random()
        self._known: WeakKeyDictionary[Plan, dict[str, str]] = WeakKeyDictionary()
        """The fields at the places of plans."""

    def report(self, operation: HTTPObservation, /) -> None:
        """Counts the requests of an operation."""
        plan = operation.plan
        if plan is None or not operation.sent:
            return
        weight, sent_requests = self._weight(), operation.sent
        if len(sent_requests) > _MOST_COUNTED:
            weight *= len(sent_requests) / _MOST_COUNTED
            sent_requests = self._choose.sample(sent_requests, _MOST_COUNTED)
        known = self._known.get(plan)
        if known is None:
            known = self._known[plan] = {}
        for sent in sent_requests:
            places = sent.places or ("",)
            # A batch that several places share counts for each by its number of keys.
            shares = sent.keys if len(places) > 1 and sent.keys else {places[0]: 1}
            total, cost, first = sum(shares.values()), sent.cost, ""
            units = (cost.read_units + cost.write_units) * weight
            for place, keys in shares.items():
                name = known.get(place) or _found(known, plan, place)
                first = first or name
                self._add(name, sent.request, units * keys / total, weight * cost.requests * keys / total)
            partition = self._partition(sent.request)
            if partition is not None:
                self._partitions.add(Partition(first, *partition, cost.write_units > 0), units)

    def _add(self, name: str, request: Request[object], units: float, requests: float) -> None:
        # `Count` is a Query to DynamoDB; here it is the cost of a `totalCount`.
        kind = "Count" if isinstance(request, Count) else operation_name(request)
        spent = self._fields.get((name, kind))
        if spent is None:
            if len(self._fields) >= _MOST_FIELDS:
                return
            spent = self._fields[name, kind] = FieldUnits()
        spent.units += units
        spent.requests += requests
        if isinstance(request, BatchGet) and request.projection is not spent.projection:
            spent.projection = request.projection
            spent.attributes.update(path[0] for path in request.projection or ())

    def _partition(self, request: Request[object]) -> tuple[str | None, str] | None:
        """The index and the partition key of a request; for several keys, one of them."""
        value: KeyValue
        match request:
            case Query() | Count():
                return request.index, _text(request.partition)
            case BatchGet(keys=keys) if keys:
                value = self._choose.choice(keys)[0]
            case Write(action=action):
                value = key_of(action, self._table)[0]
            case Transaction(actions=actions) if actions:
                value = key_of(self._choose.choice(actions), self._table)[0]
            case _:
                return None
        return None, _text(value)

    def _weight(self) -> float:
        weight: float = 2.0 ** ((self._clock() - self._weighed_from) / HALF_LIFE)
        if weight > _LARGEST_WEIGHT:
            self._weighed_from = self._clock()
            self._partitions.scale(1 / weight)
            for spent in self._fields.values():
                spent.units /= weight
                spent.requests /= weight
            return 1.0
        return weight

    def as_json(self) -> dict[str, Any]:
        """The most expensive partitions and fields, as JSON: units and requests per second."""
        age = max(1.0, self._clock() - self._began)
        # A cost at a steady rate adds up to this many seconds of it.
        seconds = HALF_LIFE / math.log(2) * (1 - 2.0 ** (-age / HALF_LIFE))
        per_second = 1 / (self._weight() * seconds)
        hashed = partial(hashlib.blake2b, digest_size=6, key=self._hash_key)
        return {
            "seconds": round(age, 1),
            "fields": [
                {
                    "field": name,
                    "kind": kind,
                    "units": spent.units * per_second,
                    "requests": spent.requests * per_second,
                    "attributes": sorted(spent.attributes),
                }
                for (name, kind), spent in self._fields.items()
            ],
            "partitions": [
                {
                    "field": each.field,
                    "index": each.of_index,
                    "key": each.key if self._shows_keys else hashed(each.key.encode()).hexdigest(),
                    "writes": each.writes,
                    "units": units * per_second,
                }
                for each, units in self._partitions.largest(_REPORTED)
            ],
        }


def _found(known: dict[str, str], plan: Plan, place: str) -> str:
    name = field_at(plan, place) or _ELSEWHERE
    if len(known) < _PLACES_KEPT:
        known[place] = name
    return name


def _text(value: KeyValue) -> str:
    text = value if isinstance(value, str) else repr(value) if isinstance(value, bytes) else str(value)
    if not text.isascii():
        # A client may ask for a key that is not valid Unicode, which JSON cannot contain.
        text = text.encode("utf-8", "replace").decode()
    return text if len(text) <= _LONGEST_KEY else f"{text[:_LONGEST_KEY]}…"
