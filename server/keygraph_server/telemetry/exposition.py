"""The port with the metrics: `/metrics` for Prometheus, and `/hot` for `keygraph hot`.

A thread of the process of `keygraph serve` serves it, from the snapshots of all server processes.
"""

from __future__ import annotations

import os
import socket
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from itertools import accumulate
from pathlib import Path
from typing import Any, cast

import orjson
from prometheus_client.core import (
    CounterMetricFamily,
    GaugeMetricFamily,
    HistogramMetricFamily,
    Metric,
)
from prometheus_client.exposition import choose_encoder
from prometheus_client.registry import Collector, CollectorRegistry

from keygraph_server.errors import CommandError
from keygraph_server.listening import address_of
from keygraph_server.telemetry.metrics import Family
from keygraph_server.telemetry.snapshots import FOLDER_VARIABLE, read_snapshots

_CLIENT_SECONDS = 10.0
"""How long a client may take to send its request."""


SILENT = Family(
    "keygraph_worker_silent_seconds",
    "gauge",
    "How long ago a server process last reported its counts. It reports them every second.",
    (),
    [],
)


class Workers(Collector):
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
    made = {
        "counter": CounterMetricFamily,
        "gauge": GaugeMetricFamily,
        "histogram": HistogramMetricFamily,
    }[family.kind]
    metric: Metric = made(family.name, family.help, labels=[*family.labels, "worker"])
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


class _Server(ThreadingHTTPServer):
    daemon_threads = True

    def __init__(self, address: tuple[str, int], folder: Path) -> None:
        if ":" in address[0]:
            self.address_family = socket.AF_INET6
        self.folder = folder
        self.registry = CollectorRegistry()
        self.registry.register(Workers(folder))
        super().__init__(address, _Handler)


class _Handler(BaseHTTPRequestHandler):
    timeout = _CLIENT_SECONDS
    server: _Server

    def do_GET(self) -> None:  # the name that http.server calls
        match self.path.partition("?")[0]:
            case "/metrics":
                encode, content_type = choose_encoder(self.headers.get("accept", ""))
                self._answer(200, content_type, encode(self.server.registry))
            case "/hot":
                told = [snapshot["hot"] for snapshot in read_snapshots(self.server.folder)]
                self._answer(200, "application/json", orjson.dumps(told))
            case _:
                self._answer(404, "text/plain; charset=utf-8", b"/metrics and /hot are served here\n")

    def _answer(self, status: int, content_type: str, body: bytes) -> None:
        self.send_response(status)
        self.send_header("Content-Type", content_type)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: Any) -> None:
        """Does nothing: requests for metrics are not logged."""


@contextmanager
def serve_metrics(host: str, port: int) -> Iterator[str]:
    """Serves the metrics of this process and of those that it starts. Yields the address with the actual port.

    Raises CommandError if the port cannot be used.
    """
    with tempfile.TemporaryDirectory(prefix="keygraph-") as folder:
        try:
            server = _Server((host, port), Path(folder))
        except OSError as error:
            problem = f"metrics cannot be served on {host}:{port}: {error.strerror or error}"
            raise CommandError(problem, "Set KEYGRAPH_METRICS_PORT to another port") from None
        os.environ[FOLDER_VARIABLE] = folder
        threading.Thread(target=server.serve_forever, name="metrics", daemon=True).start()
        try:
            yield address_of(server.socket, host)
        finally:
            server.shutdown()
            server.server_close()
            del os.environ[FOLDER_VARIABLE]
