"""The telemetry of one server process: the reports of its operations, with their lines in the log, and its watched numbers."""

from __future__ import annotations

import logging
import os
from collections import Counter
from collections.abc import AsyncIterator, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from keygraph.dynamo.store import Store
from keygraph.dynamo.table import Table
from keygraph.dynamo.traffic import Traffic, traffic_of
from keygraph_resolvers import Service
from keygraph_server.connections.gate import GATES
from keygraph_server.errors import OWN_FAULTS, STORE_FAULTS
from keygraph_server.http.graphql_http import HTTPObservation
from keygraph_server.logs import DirectLogger
from keygraph_server.processes.streams import dropped_lines
from keygraph_server.settings import Settings
from keygraph_server.telemetry.hot_spots import HotSpots
from keygraph_server.telemetry.metrics import Gauge, Metrics
from keygraph_server.telemetry.snapshots import FOLDER_VARIABLE, Snapshots
from keygraph_server.telemetry.tracing import configured_tracing

if TYPE_CHECKING:
    from keygraph.changes.following import Progress
    from keygraph_resolvers.live import LiveQueries

_log = logging.getLogger(__name__)

_MEMORY = Path("/proc/self/statm")
"""The file in which Linux reports a process's memory, in pages."""


class Telemetry:
    """Observes requests, as the settings ask for. An error is logged, and does not reach the client."""

    def __init__(self, settings: Settings, table: Table) -> None:
        self._settings = settings
        self._lines = DirectLogger("keygraph_server.operations", settings)
        self.in_flight = 0
        """The number of requests that have begun and not ended."""
        self._reports: list[Callable[[HTTPObservation], None]] = []
        if settings.log_operations:
            self._reports.append(self._log_operation)
        folder = os.environ.get(FOLDER_VARIABLE)
        self._folder = Path(folder) if folder else None
        self._metrics = Metrics(settings.metrics_names)
        secret = settings.secret.get_secret_value() if settings.secret else ""
        self._hot = HotSpots(table, secret.encode(), shows_keys=settings.hot_keys)
        if self._folder is not None:
            self._reports += [self._metrics.report, self._hot.report]
        self._tracing = configured_tracing()
        if self._tracing is not None:
            self._reports.append(self._tracing.end)
        self.is_needed = bool(self._reports)

    def begin(self, observation: HTTPObservation, /) -> None:
        """Counts a request, and begins its trace."""
        self.in_flight += 1
        if self._tracing is not None:
            self._tracing.begin(observation)

    def end(self, observation: HTTPObservation, /) -> None:
        """Reports a request."""
        self.in_flight -= 1
        try:
            observation.end()
            for report in self._reports:
                report(observation)
        except Exception:
            _log.exception("An operation could not be reported")

    def _log_operation(self, operation: HTTPObservation) -> None:
        """Logs an operation: as an error if the server or an item is at fault, as a warning if the store has failed.

        Variables are included only if that is set: they can contain personal data.
        """
        codes = operation.codes
        level, event = logging.INFO, "operation"
        if operation.status is None:
            event = "operation without its client"
        if codes:
            if any(code in OWN_FAULTS for code in codes):
                level = logging.ERROR
            elif any(code in STORE_FAULTS for code in codes):
                level = logging.WARNING
        # In an outage all operations fail alike, or clients do not wait for them.
        is_ordinary = level == logging.INFO and operation.status is not None
        more: dict[str, Any] = {}
        if self._settings.log_variables and operation.requested is not None:
            more["variables"] = operation.requested.variables
        if operation.trace_id is not None:
            more["trace_id"] = operation.trace_id
        self._lines.log(
            level,
            event,
            None if is_ordinary else (event, *codes),
            name=operation.name,
            type=operation.type,
            hash=operation.document_hash,
            status=operation.status,
            codes=codes,
            duration_ms=round(operation.seconds * 1000, 3),
            bound=operation.most_read_units,
            read_units=operation.read_units,
            write_units=operation.write_units,
            requests=operation.requests,
            **more,
        )

    @asynccontextmanager
    async def running(
        self, service: Service, store: Store, caches: Gauge, live: LiveQueries | None = None
    ) -> AsyncIterator[None]:
        """Publishes the counts of the process, if `keygraph serve` has named a folder. Sends the last traces.

        `caches` returns the bytes that each cache holds.
        """
        async with AsyncExitStack() as ended:
            if self._tracing is not None:
                ended.push_async_callback(self._tracing.close)
            if self._folder is not None:
                watch_process(self._metrics, lambda: self.in_flight, service, caches)
                traffic = traffic_of(store)
                if traffic is not None:
                    watch_traffic(self._metrics, traffic)
                watch_connections(self._metrics)
                if live is not None:
                    watch_live(self._metrics, live)
                await ended.enter_async_context(Snapshots(self._folder, self._metrics, self._hot.as_json))
            yield


def watch_process(metrics: Metrics, in_flight: Gauge, service: Service, caches: Gauge) -> None:
    """Adds the numbers of this process to the metrics."""
    admission, memory, watch = service.admission, service.memory, metrics.watch
    watch("cache_bytes", "The bytes that caches hold.", caches, "cache")
    watched: tuple[tuple[str, str, Gauge], ...] = (
        ("in_flight", "Operations that have begun and not ended.", in_flight),
        ("waiting", "Operations that wait until others have ended.", lambda: admission.waiting),
        ("refused_total", _REFUSED, lambda: admission.refusals.count),
        ("held_bytes", _HELD, lambda: memory.held),
        ("given_up_total", _GIVEN_UP, lambda: memory.refusals.count),
    )
    for name, text, gauge in watched:
        watch(f"operations_{name}", text, gauge)
    watch("output_lines_dropped_total", _DROPPED, dropped_lines)
    if _MEMORY.exists():
        page = os.sysconf("SC_PAGE_SIZE")
        text = "The memory of the process."
        watch("resident_memory_bytes", text, lambda: int(_MEMORY.read_text("ascii").split()[1]) * page)


_REFUSED = "Operations that were refused because too many waited already."
_HELD = "The bytes of items that operations hold until their answers are sent."
_GIVEN_UP = "Operations that were given up because all held too many bytes."
_DROPPED = "Lines of the log and of other output that were dropped, because nobody read them."


def watch_connections(metrics: Metrics) -> None:
    """Adds the number of open connections to the metrics, and of those that the server has closed, by reason."""
    text = "Connections of clients that are open."
    metrics.watch("connections", text, lambda: sum(gate.count for gate in GATES))
    text = "Connections that the server has closed, by reason."
    closed = lambda: sum((gate.closed for gate in GATES), Counter[str]())  # noqa: E731
    metrics.watch("connections_closed_total", text, closed, "reason")


def watch_live(metrics: Metrics, live: LiveQueries) -> None:
    """Adds the numbers of subscriptions to the metrics."""
    metrics.watch("live_subscriptions", "Subscriptions that are open.", lambda: live.listeners)
    for name, text in (
        ("changes", "Changes that were read while somebody subscribed."),
        ("touched", "How often a change has touched an operation that clients subscribe to."),
        ("runs", "How often such an operation has run."),
        ("unchanged", "Runs whose answer was the same as before."),
        ("refused", "Subscriptions that were refused because of a limit."),
        ("failures", "How often the changes could not be read."),
        ("lost", "Subscriptions to changes that were ended because changes did not reach them."),
    ):
        metrics.watch(f"live_{name}_total", text, partial(getattr, live.counts, name))


def watch_following(metrics: Metrics, progress: Progress) -> None:
    """Adds what a worker of `keygraph follow` has done to the metrics."""
    for name, attribute, text in (
        ("lag_seconds", "lag", "How long ago the changes were made that are handled now; 0 if all are."),
        ("changes_total", "changes", "Changes that were read from the stream."),
        ("lost_total", "lost", "How often changes were deleted from the stream before they were read."),
        (
            "failures_total",
            "failures",
            "How often changes could not be read or handled, and were to be again.",
        ),
    ):
        metrics.watch(f"follow_{name}", text, partial(getattr, progress, attribute))


def watch_traffic(metrics: Metrics, traffic: Traffic) -> None:
    """Adds a store's counts of its requests to DynamoDB to the metrics."""
    text = "Requests sent to DynamoDB by operation of its API, retries included."
    metrics.watch("dynamodb_requests_total", text, lambda: traffic.sent, "operation")
    for name, attribute, text in (
        ("retried_total", "retried", "Requests to DynamoDB that were sent again."),
        ("throttled_total", "throttled", "Requests that DynamoDB has throttled."),
        ("failed_total", "failed", "Requests without an answer, or with a server error."),
        ("refused_total", "refused", "Requests that were not sent because of an outage."),
        ("outages_total", "outages", "Outages of DynamoDB."),
        ("requests_in_flight", "under_way", "Requests to DynamoDB that are sent and not answered."),
        ("requests_waiting", "waiting", "Requests to DynamoDB that wait until others are answered."),
    ):
        metrics.watch(f"dynamodb_{name}", text, partial(getattr, traffic, attribute))
    text = "1 while requests are held back because DynamoDB does not answer."
    metrics.watch("dynamodb_outage", text, lambda: traffic.outage is not None)
