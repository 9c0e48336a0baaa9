"""Counts of one process, as plain numbers that cost little to update: operations, requests to the store, and its state.

`Metrics.families` returns them as families of Prometheus: `exposition` serves them. An operation takes 2 µs here, and the
counts of 100 names 0.1 ms each second; the objects of prometheus_client take 19 µs and 26 ms (timeit), and its files for
several processes add up the counts of all, while each sample here says its worker.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, TypeAlias

from keygraph_resolvers.plan.cost import operation_name
from keygraph_server.errors import FAULTS
from keygraph_server.http.graphql_http import HTTPObservation

Labels: TypeAlias = tuple[str, ...]

OPERATION_SECONDS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0)
STORE_SECONDS = (0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 5.0, 10.0)
LAG_SECONDS = (0.001, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 5.0)

_MOST_CODES = 60
"""Methods of a model may raise errors with codes of their own."""

ANONYMOUS, OTHER, REFUSED = "(anonymous)", "(other)", "(refused)"


@dataclass(frozen=True, slots=True)
class Family:
    """One metric: its samples by the values of its labels. A histogram's value is its counts by bucket, and the sum."""

    name: str
    kind: str
    """`counter`, `gauge` or `histogram`."""
    help: str
    labels: Labels
    samples: Sequence[tuple[Labels, Any]]
    bounds: tuple[float, ...] = ()
    """The upper bounds of a histogram's buckets, except the last, which has none."""


class Histogram:
    """The number of times in each bucket, and the sum of all."""

    __slots__ = ("_bounds", "counts", "sum")

    def __init__(self, bounds: tuple[float, ...]) -> None:
        self._bounds = bounds
        self.counts = [0] * (len(bounds) + 1)
        self.sum = 0.0

    def observe(self, seconds: float) -> None:
        """Counts one time."""
        self.counts[bisect_left(self._bounds, seconds)] += 1
        self.sum += seconds

    @property
    def sample(self) -> tuple[list[int], float]:
        """The value in a family."""
        return self.counts, self.sum


class Names:
    """Limits the number of a label's values. Later ones are `(other)`."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._known: set[str] = set()

    def __call__(self, name: str) -> str:
        if name in self._known:
            return name
        if len(self._known) >= self._most:
            return OTHER
        self._known.add(name)
        return name


@dataclass(slots=True)
class NamedOperation:
    """The operations of one name."""

    codes: dict[str, int] = field(default_factory=dict)
    seconds: Histogram = field(default_factory=lambda: Histogram(OPERATION_SECONDS))
    read_units: float = 0.0
    write_units: float = 0.0


Gauge: TypeAlias = Callable[[], float | Mapping[str, float]]
"""Returns a current number, or several by the value of the only label."""


class Metrics:
    """Counts operations as a reporter, and numbers added with `watch`."""

    def __init__(self, most_names: int) -> None:
        """Up to this many operations are counted by name."""
        self.lag = Histogram(LAG_SECONDS)
        self._name = Names(most_names)
        self._code = Names(_MOST_CODES)
        self._operations: dict[str, NamedOperation] = {}
        self._store: dict[str, Histogram] = {}
        self._watched: list[tuple[Family, Gauge]] = []

    def watch(self, name: str, text: str, gauge: Gauge, label: str = "") -> None:
        """Adds a number that is kept elsewhere: a counter if its name ends with `_total`."""
        kind = "counter" if name.endswith("_total") else "gauge"
        labels = (label,) if label else ()
        self._watched.append((Family(f"keygraph_{name}", kind, text, labels, []), gauge))

    def report(self, operation: HTTPObservation, /) -> None:
        """Counts an operation and its requests to the store."""
        name = self._name_of(operation)
        named = self._operations.get(name)
        if named is None:
            named = self._operations[name] = NamedOperation()
        code = self._code(_worst(operation.codes)) if operation.codes else "OK"
        named.codes[code] = named.codes.get(code, 0) + 1
        named.seconds.observe(operation.seconds)
        named.read_units += operation.read_units
        named.write_units += operation.write_units
        store = self._store
        for sent in operation.sent:
            kind = operation_name(sent.request)
            histogram = store.get(kind)
            if histogram is None:
                histogram = store[kind] = Histogram(STORE_SECONDS)
            histogram.observe(sent.ended - sent.began)

    def _name_of(self, operation: HTTPObservation) -> str:
        if operation.type is None:
            # Names from refused documents are not used, so their senders cannot fill the list of names.
            return REFUSED
        return ANONYMOUS if operation.name is None else self._name(operation.name)

    def families(self) -> list[Family]:
        """Returns all current counts."""
        named = [((name,), each) for name, each in self._operations.items()]
        stored = [((kind,), each.sample) for kind, each in self._store.items()]
        codes = [((*name, code), count) for name, each in named for code, count in each.codes.items()]
        seconds = [(name, each.seconds.sample) for name, each in named]
        read = [(name, each.read_units) for name, each in named]
        write = [(name, each.write_units) for name, each in named]
        of_name, lag = ("name",), [((), self.lag.sample)]
        families = [
            Family("keygraph_operations_total", "counter", _OPERATIONS, ("name", "code"), codes),
            Family("keygraph_operation_seconds", "histogram", _SECONDS, of_name, seconds, OPERATION_SECONDS),
            Family("keygraph_operation_read_units_total", "counter", _READ_UNITS, of_name, read),
            Family("keygraph_operation_write_units_total", "counter", _WRITE_UNITS, of_name, write),
            Family("keygraph_store_request_seconds", "histogram", _STORE, ("kind",), stored, STORE_SECONDS),
            Family("keygraph_event_loop_lag_seconds", "histogram", _LAG, (), lag, LAG_SECONDS),
        ]
        return families + [_read(family, gauge) for family, gauge in self._watched]


_OPERATIONS = "Operations by name and by their most severe error code, or OK."
_SECONDS = "From the head of a request until its answer is sent."
_READ_UNITS = "Read units by the name of the operation."
_WRITE_UNITS = "Write units by the name of the operation."
_STORE = "Requests to the store that were answered, with their retries."
_LAG = "How much later than planned the event loop came to its work."


def _worst(codes: Sequence[str]) -> str:
    return codes[0] if len(codes) == 1 else next((each for each in FAULTS if each in codes), codes[0])


def _read(family: Family, gauge: Gauge) -> Family:
    found = gauge()
    if isinstance(found, Mapping):
        samples: Sequence[tuple[Labels, Any]] = [((value,), number) for value, number in found.items()]
    else:
        samples = [((), found)]
    return replace(family, samples=samples)
