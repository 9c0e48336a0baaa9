"""The combined measurements of a run's turns."""

from __future__ import annotations

import math
import statistics
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field


@dataclass
class Turns:
    """One server, one query and one number of clients: a value for each turn, and every latency."""

    processor_ms: list[float] = field(default_factory=list)
    """Of the server's process, per operation."""
    per_second: list[float] = field(default_factory=list)
    latencies: list[float] = field(default_factory=list)
    """Seconds."""

    def add(self, processor_seconds: float, seconds: float, latencies: Sequence[float]) -> None:
        """Adds a turn."""
        self.processor_ms.append(processor_seconds * 1000 / len(latencies))
        self.per_second.append(len(latencies) / seconds)
        self.latencies.extend(latencies)


@dataclass(frozen=True)
class Counted:
    """The requests of one operation to the store."""

    requests: int
    round_trips: int


@dataclass(frozen=True)
class Figures:
    """One server, one query and one number of clients: the median turn, and percentiles of all operations."""

    server: str
    query: str
    clients: int
    processor_ms: float
    per_second: float
    p50_ms: float
    p95_ms: float
    requests: int
    round_trips: int

    @staticmethod
    def of(server: str, query: str, clients: int, turns: Turns, counted: Counted) -> Figures:
        """Returns the figures of the turns."""
        return Figures(
            server,
            query,
            clients,
            statistics.median(turns.processor_ms),
            statistics.median(turns.per_second),
            percentile(turns.latencies, 50) * 1000,
            percentile(turns.latencies, 95) * 1000,
            counted.requests,
            counted.round_trips,
        )


@dataclass(frozen=True)
class Found:
    """Everything that a run has found."""

    figures: Sequence[Figures]
    memory_mb: dict[str, float]
    """Each server's peak memory."""

    def get(self, server: str, query: str, clients: int) -> Figures | None:
        """The figures; None if they were not measured."""
        for each in self.figures:
            if (each.server, each.query, each.clients) == (server, query, clients):
                return each
        return None

    def ratio(self, of: str, to: str, query: str, clients: int) -> float | None:
        """The processor time of one server divided by another's; None if one was not measured."""
        one, other = self.get(of, query, clients), self.get(to, query, clients)
        return None if one is None or other is None else one.processor_ms / other.processor_ms

    @property
    def servers(self) -> list[str]:
        return _distinct(each.server for each in self.figures)

    @property
    def queries(self) -> list[str]:
        return _distinct(each.query for each in self.figures)

    @property
    def clients(self) -> list[int]:
        return sorted({each.clients for each in self.figures})

    def rows(self) -> Iterator[Figures]:
        """Returns the figures in the order of queries, then clients, then servers."""
        for query in self.queries:
            for clients in self.clients:
                for server in self.servers:
                    if (found := self.get(server, query, clients)) is not None:
                        yield found


def percentile(values: Sequence[float], percent: float) -> float:
    """Returns the smallest of the values that is at least as large as this percentage of them."""
    ordered = sorted(values)
    return ordered[max(0, math.ceil(percent / 100 * len(ordered)) - 1)]


def _distinct(names: Iterable[str]) -> list[str]:
    return list(dict.fromkeys(names))


@dataclass(frozen=True)
class Point:
    """One server in the measurements of growth, at one value of the varied quantity."""

    series: str
    at: int
    server: str
    processor_ms: float
    p50_ms: float
    per_second: float
    memory_mb: float
    """The server's peak memory during this step."""
    requests: int
    round_trips: int
