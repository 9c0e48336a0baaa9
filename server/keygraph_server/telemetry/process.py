"""The telemetry of one server process: the reporters of its operations, and its watched numbers."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path

from keygraph.dynamo.store import Store
from keygraph.dynamo.table import Table
from keygraph.dynamo.traffic import Traffic, traffic_of
from keygraph_resolvers import Service
from keygraph_resolvers.admission import Admission
from keygraph_resolvers.read.meter import Memory
from keygraph_server.connections.gate import GATES
from keygraph_server.logs import direct_logger
from keygraph_server.settings import Settings
from keygraph_server.telemetry.hot_spots import HotSpots
from keygraph_server.telemetry.log_lines import LogLines
from keygraph_server.telemetry.metrics import Gauge, Metrics
from keygraph_server.telemetry.operations import Reporter, Watching
from keygraph_server.telemetry.snapshots import FOLDER_VARIABLE, Snapshots
from keygraph_server.telemetry.tracing import configured_tracing

_MEMORY = Path("/proc/self/statm")
"""The file in which Linux reports a process's memory, in pages."""


class Telemetry:
    """The reporters that the settings ask for. `watcher` is None if there are none."""

    def __init__(self, settings: Settings, table: Table) -> None:
        reporters: list[Reporter] = []
        if settings.log_operations:
            log = direct_logger("keygraph_server.operations", settings)
            reporters.append(LogLines(log, with_variables=settings.log_variables))
        folder = os.environ.get(FOLDER_VARIABLE)
        self._folder = Path(folder) if folder else None
        self._metrics = Metrics(settings.metrics_names)
        secret = settings.secret.get_secret_value() if settings.secret else ""
        self._hot = HotSpots(table, secret.encode(), shows_keys=settings.hot_keys)
        if self._folder is not None:
            reporters += [self._metrics, self._hot]
        self._tracing = configured_tracing()
        is_watched = bool(reporters) or self._tracing is not None
        self.watcher = Watching(reporters, self._tracing) if is_watched else None

    @asynccontextmanager
    async def running(
        self, service: Service, store: Store, memory: Memory, caches: Gauge
    ) -> AsyncIterator[None]:
        """Publishes the counts of the process, if `keygraph serve` has named a folder. Sends the last traces.

        `memory` is what operations hold, and `caches` returns the bytes that each cache holds.
        """
        try:
            async with self._telling(service, store, memory, caches):
                yield
        finally:
            if self._tracing is not None:
                await self._tracing.close()

    @asynccontextmanager
    async def _telling(
        self, service: Service, store: Store, memory: Memory, caches: Gauge
    ) -> AsyncIterator[None]:
        if self._folder is None or self.watcher is None:
            yield
            return
        watch_process(self._metrics, self.watcher, service.admission, memory, caches)
        traffic = traffic_of(store)
        if traffic is not None:
            watch_traffic(self._metrics, traffic)
        watch_connections(self._metrics)
        async with Snapshots(self._folder, self._metrics, self._hot.told):
            yield


def watch_process(
    metrics: Metrics, watcher: Watching, admission: Admission, memory: Memory, caches: Gauge
) -> None:
    """Adds the numbers of this process to the metrics."""
    metrics.watch("keygraph_cache_bytes", "gauge", "The bytes that caches hold.", caches, label="cache")
    metrics.watch(
        "keygraph_operations_in_flight",
        "gauge",
        "Operations that have begun and not ended.",
        lambda: watcher.in_flight,
    )
    metrics.watch(
        "keygraph_operations_waiting",
        "gauge",
        "Operations that wait until others have ended.",
        lambda: admission.waiting,
    )
    metrics.watch(
        "keygraph_operations_refused_total",
        "counter",
        "Operations that were refused because too many waited already.",
        lambda: admission.refusals.count,
    )
    metrics.watch(
        "keygraph_operations_held_bytes",
        "gauge",
        "The bytes of items that operations hold until their answers are sent.",
        lambda: memory.held,
    )
    metrics.watch(
        "keygraph_operations_given_up_total",
        "counter",
        "Operations that were given up because all held too many bytes.",
        lambda: memory.refusals.count,
    )
    if _MEMORY.exists():
        metrics.watch(
            "keygraph_resident_memory_bytes", "gauge", "The memory of the process.", _resident_bytes
        )


def _resident_bytes() -> float:
    pages = int(_MEMORY.read_text("ascii").split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE")


def watch_connections(metrics: Metrics) -> None:
    """Adds the number of open connections to the metrics, and of those that the server has closed, by reason."""
    metrics.watch(
        "keygraph_connections",
        "gauge",
        "Connections of clients that are open.",
        lambda: sum(gate.count for gate in GATES),
    )
    metrics.watch(
        "keygraph_connections_closed_total",
        "counter",
        "Connections that the server has closed, by reason.",
        lambda: sum((gate.closed for gate in GATES), Counter[str]()),
        label="reason",
    )


def watch_traffic(metrics: Metrics, traffic: Traffic) -> None:
    """Adds a store's counts of its requests to DynamoDB to the metrics."""
    prefix = "keygraph_dynamodb"
    metrics.watch(
        f"{prefix}_requests_total",
        "counter",
        "Requests sent to DynamoDB by operation of its API, retries included.",
        lambda: traffic.sent,
        label="operation",
    )
    for name, text in {
        "retried": "Requests to DynamoDB that were sent again.",
        "throttled": "Requests that DynamoDB has throttled.",
        "failed": "Requests without an answer, or with a server error.",
        "refused": "Requests that were not sent because of an outage.",
        "outages": "Outages of DynamoDB.",
    }.items():
        metrics.watch(f"{prefix}_{name}_total", "counter", text, partial(getattr, traffic, name))
    metrics.watch(
        f"{prefix}_requests_in_flight",
        "gauge",
        "Requests to DynamoDB that are sent and not answered.",
        lambda: traffic.under_way,
    )
    metrics.watch(
        f"{prefix}_requests_waiting",
        "gauge",
        "Requests to DynamoDB that wait until others are answered.",
        lambda: traffic.waiting,
    )
    metrics.watch(
        f"{prefix}_outage",
        "gauge",
        "1 while requests are held back because DynamoDB does not answer.",
        lambda: traffic.outage is not None,
    )
