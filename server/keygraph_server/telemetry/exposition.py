"""The port with the metrics: `/metrics` for Prometheus, and `/hot` for `keygraph hot`.

A thread of the process of `keygraph serve` serves it, from the snapshots of all server processes. Its connections have
the limits of all others.
"""

from __future__ import annotations

import os
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from itertools import accumulate
from pathlib import Path
from typing import cast

import orjson
import uvicorn
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, HistogramMetricFamily, Metric
from prometheus_client.exposition import choose_encoder
from prometheus_client.registry import Collector, CollectorRegistry
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from keygraph_server.connections.factory import Connections
from keygraph_server.connections.gate import ConnectionGate
from keygraph_server.connections.settings import ConnectionSettings
from keygraph_server.errors import CommandError
from keygraph_server.listening import address_of, answered_hosts, listen
from keygraph_server.telemetry.metrics import Family
from keygraph_server.telemetry.snapshots import FOLDER_VARIABLE, read_snapshots

_CONNECTIONS = ConnectionSettings(max_connections=32, max_connections_by_address=0)
"""With more, a new connection closes the one that has waited longest for its client, such as for the rest of a request."""

_OPEN_METRICS = "application/openmetrics-text; version=1.0.0"
_RECENT_SECONDS = 1.0
"""Workers report their counts as often."""

_SILENT = "How long ago a server process last reported its counts. It reports them every second."
SILENT = Family("keygraph_worker_silent_seconds", "gauge", _SILENT, (), [])


class WorkerCounts(Collector):
    """The metrics of all server processes, with the label `worker`."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def collect(self) -> Iterator[Metric]:
        """Reads the latest snapshots."""
        silent = _metric(SILENT)
        found: dict[str, Metric] = {}
        now = time.time()
        for snapshot in read_snapshots(self._folder):
            worker = snapshot["worker"]
            _add(silent, replace(SILENT, samples=[((), max(0.0, now - snapshot["time"]))]), worker)
            for family in (Family(**each) for each in snapshot["families"]):
                metric = found.get(family.name)
                if metric is None:
                    metric = found[family.name] = _metric(family)
                _add(metric, family, worker)
        yield silent
        yield from found.values()


def _metric(family: Family) -> Metric:
    kinds = {"counter": CounterMetricFamily, "gauge": GaugeMetricFamily, "histogram": HistogramMetricFamily}
    metric: Metric = kinds[family.kind](family.name, family.help, labels=[*family.labels, "worker"])
    return metric


def _add(metric: Metric, family: Family, worker: str) -> None:
    for labels, value in family.samples:
        values = [*labels, worker]
        if isinstance(metric, HistogramMetricFamily):
            counts, total = value
            bounds = [*map(str, family.bounds), "+Inf"]
            metric.add_metric(values, list(zip(bounds, accumulate(counts), strict=True)), total)
        else:
            cast(GaugeMetricFamily | CounterMetricFamily, metric).add_metric(values, value)


def _application(folder: Path) -> Starlette:
    registry = CollectorRegistry()
    registry.register(WorkerCounts(folder))
    made: dict[str, tuple[float, bytes]] = {}

    def recent(name: str, make: Callable[[], bytes]) -> bytes:
        """What was made in the last second: requests in a row take the time of one from the server in this process."""
        made_at, text = made.get(name, (float("-inf"), b""))
        if time.monotonic() - made_at >= _RECENT_SECONDS:
            text = make()
            made[name] = (time.monotonic(), text)
        return text

    async def answer_metrics(request: Request) -> Response:
        # Prometheus's library raises errors for some values of the header.
        is_open = _OPEN_METRICS.partition(";")[0] in request.headers.get("accept", "")
        encode, content_type = choose_encoder(_OPEN_METRICS if is_open else "")
        return Response(
            recent(content_type, lambda: encode(registry)), headers={"content-type": content_type}
        )

    async def answer_hot(request: Request) -> Response:
        text = recent("hot", lambda: orjson.dumps([each["hot"] for each in read_snapshots(folder)]))
        return Response(text, media_type="application/json")

    return Starlette(routes=[Route("/metrics", answer_metrics), Route("/hot", answer_hot)])


@contextmanager
def serve_metrics(host: str, port: int) -> Iterator[str]:
    """Serves the metrics of this process and of those that it starts. Yields the address with the actual port.

    Raises CommandError if the port cannot be used.
    """
    try:
        listening = listen(host, port)
    except CommandError as error:
        problem = f"metrics cannot be served on {host}:{port}: {error.problem}"
        raise CommandError(problem, "Set KEYGRAPH_METRICS_PORT to another port") from None
    with listening, tempfile.TemporaryDirectory(prefix="keygraph-") as folder:
        hosts = answered_hosts(listening, host, None)
        config = uvicorn.Config(
            _application(Path(folder)),
            http=Connections(partial(ConnectionGate, _CONNECTIONS, hosts=hosts, is_counted=False)),  # type: ignore[arg-type]  # uvicorn calls it, as it calls a class
            ws="none",
            lifespan="off",
            log_config=None,
            server_header=False,
            timeout_graceful_shutdown=1,
        )
        server = uvicorn.Server(config)
        thread = threading.Thread(target=server.run, args=([listening],), name="metrics", daemon=True)
        os.environ[FOLDER_VARIABLE] = folder
        thread.start()
        try:
            yield address_of(listening, host)
        finally:
            server.should_exit = True
            thread.join()
            del os.environ[FOLDER_VARIABLE]
