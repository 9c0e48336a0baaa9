"""What the turns of a server have measured, together."""

from __future__ import annotations

import math
import statistics
from collections.abc import Sequence
from dataclasses import dataclass, field


@dataclass
class Figures:
    """One server, one query, so many clients: a value of each turn, and every latency."""

    processor_ms: list[float] = field(default_factory=list)
    """Of the server's process, an operation."""
    per_second: list[float] = field(default_factory=list)
    latencies: list[float] = field(default_factory=list)
    """Seconds."""

    def add(self, processor_seconds: float, seconds: float, latencies: Sequence[float]) -> None:
        """Adds a turn."""
        self.processor_ms.append(processor_seconds * 1000 / len(latencies))
        self.per_second.append(len(latencies) / seconds)
        self.latencies.extend(latencies)

    def summary(self) -> Summary:
        """The median turn, and percentiles of all operations."""
        return Summary(
            statistics.median(self.processor_ms),
            statistics.median(self.per_second),
            percentile(self.latencies, 50) * 1000,
            percentile(self.latencies, 95) * 1000,
        )


@dataclass(frozen=True)
class Summary:
    """Figures as they are shown."""

    processor_ms: float
    per_second: float
    p50_ms: float
    p95_ms: float


def percentile(values: Sequence[float], percent: float) -> float:
    """The least of the values that at least so many percent do not exceed."""
    ordered = sorted(values)
    return ordered[max(0, math.ceil(percent / 100 * len(ordered)) - 1)]
