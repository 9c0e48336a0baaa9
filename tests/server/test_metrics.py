"""Metrics: what is counted of operations, that it stays bounded, and how it is told to Prometheus."""

from __future__ import annotations

import asyncio
import json
import os
import re
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest
from graphql import OperationDefinitionNode, parse
from prometheus_client.parser import text_string_to_metric_families

from keygraph.dynamo.traffic import Traffic
from keygraph_resolvers import Observed
from keygraph_resolvers.admission import Admission
from keygraph_resolvers.read.meter import Memory
from keygraph_server.connections.gate import Gate
from keygraph_server.http.graphql_http import Exchange
from keygraph_server.http.header_values import RequestHeaders
from keygraph_server.settings.connections import ConnectionSettings
from keygraph_server.telemetry.exposition import SILENT, serve_metrics
from keygraph_server.telemetry.metrics import OTHER, REFUSED, Family, Metrics
from keygraph_server.telemetry.operations import EndedOperation, Watching
from keygraph_server.telemetry.process import watch_connections, watch_process, watch_traffic
from keygraph_server.telemetry.snapshots import FOLDER_VARIABLE, Snapshots

PAGE = Path(__file__).parents[2] / "docs/operations.md"


def ended(document: str | None, *codes: str) -> EndedOperation:
    """An operation with these errors; None if its document was refused."""
    exchange = Exchange(RequestHeaders({}, None, None), is_get=False, observed=Observed())
    assert exchange.observed is not None
    if document is not None:
        [operation] = parse(document).definitions
        assert isinstance(operation, OperationDefinitionNode)
        exchange.observed.operation = operation
    exchange.answer = (
        {"errors": [{"extensions": {"code": code}} for code in codes]} if codes else {"data": {}}
    )
    exchange.status = 200
    return EndedOperation(exchange)


def files(folder: Path) -> list[Path]:
    return list(folder.iterdir())


def samples(metrics: Metrics, name: str) -> dict[tuple[str, ...], Any]:
    [family] = [each for each in metrics.families() if each.name == name]
    return dict(family.samples)


class TestCounting:
    def test_operations_are_counted_by_name_and_code(self) -> None:
        """Nobody could see which operation fails, and how."""
        metrics = Metrics(10)
        for codes in ((), (), ("NOT_FOUND",), ("NOT_FOUND", "INTERNAL", "TIMEOUT")):
            metrics.report(ended("query Shelf { a }", *codes))
        metrics.report(ended("{ a }"))
        metrics.report(ended(None, "GRAPHQL_PARSE_FAILED"))
        assert samples(metrics, "keygraph_operations_total") == {
            ("Shelf", "OK"): 2,
            ("Shelf", "NOT_FOUND"): 1,
            ("Shelf", "INTERNAL"): 1,
            ("(anonymous)", "OK"): 1,
            (REFUSED, "GRAPHQL_PARSE_FAILED"): 1,
        }

    def test_names_and_codes_are_bounded(self) -> None:
        """A client that makes up names would fill the memory of the server and of Prometheus."""
        metrics = Metrics(3)
        for number in range(1000):
            metrics.report(ended(f"query Q{number} {{ a }}", f"OWN_{number}"))
            metrics.report(ended(f"query Q{number} {{ a }}"))
        found = samples(metrics, "keygraph_operations_total")
        assert {name for name, _ in found} == {"Q0", "Q1", "Q2", OTHER}
        assert len({code for _, code in found}) == 62
        assert found[OTHER, "OK"] == 997

    def test_a_time_is_in_the_bucket_that_holds_it(self) -> None:
        """Percentiles would be wrong by a bucket."""
        metrics = Metrics(3)
        for seconds in (0.0005, 0.001, 0.0011, 99.0):
            operation = ended("{ a }")
            operation.seconds = seconds
            metrics.report(operation)
        counts, total = samples(metrics, "keygraph_operation_seconds")["(anonymous)",]
        assert (counts[:2], counts[-1], sum(counts)) == ([2, 1], 1, 4)
        assert total == pytest.approx(99.0026)

    def test_what_a_store_sends_is_read_from_its_own_counts(self) -> None:
        """Throttling and outages would be seen by nobody who watches the metrics."""
        metrics, traffic = Metrics(3), Traffic()
        watch_traffic(metrics, traffic)
        traffic.sent.update({"Query": 3, "GetItem": 1})
        traffic.retried, traffic.throttled, traffic.failed, traffic.refused = 1, 2, 3, 4
        traffic.under_way, traffic.waiting, traffic.outages, traffic.outage = 5, 6, 7, "gone"
        found = {each.name: dict(each.samples) for each in metrics.families() if "dynamodb" in each.name}
        assert found.pop("keygraph_dynamodb_requests_total") == {("Query",): 3, ("GetItem",): 1}
        assert {name: value[()] for name, value in found.items()} == {
            "keygraph_dynamodb_retried_total": 1,
            "keygraph_dynamodb_throttled_total": 2,
            "keygraph_dynamodb_failed_total": 3,
            "keygraph_dynamodb_refused_total": 4,
            "keygraph_dynamodb_requests_in_flight": 5,
            "keygraph_dynamodb_requests_waiting": 6,
            "keygraph_dynamodb_outages_total": 7,
            "keygraph_dynamodb_outage": True,
        }


def all_families() -> list[Family]:
    """Every metric that there is."""
    metrics = Metrics(1)
    watch_process(metrics, Watching([]), Admission(1, 1), Memory(1), lambda: {"documents": 1.0})
    watch_traffic(metrics, Traffic())
    watch_connections(metrics)
    return [*metrics.families(), SILENT]


def test_the_page_has_every_metric() -> None:
    """A metric could not be found, or a name on the page would be that of none."""
    rows = [line for line in PAGE.read_text("utf-8").splitlines() if line.startswith("| `keygraph_")]
    told = {name for row in rows for name in re.findall(r"`(keygraph_\w+)`", row)}
    assert told == {each.name for each in all_families()}


def test_connections_are_read_from_their_gates() -> None:
    """An attack by connections would be seen by nobody who watches the metrics."""
    metrics, gate = Metrics(1), Gate(ConnectionSettings())
    watch_connections(metrics)
    before = samples(metrics, "keygraph_connections_closed_total").get(("answered 408",), 0)
    gate.closed["answered 408"] += 2
    assert samples(metrics, "keygraph_connections_closed_total")["answered 408",] == before + 2
    assert samples(metrics, "keygraph_connections")[()] >= 0


class TestExposition:
    @pytest.fixture
    def address(self) -> Iterator[str]:
        with serve_metrics("127.0.0.1", 0) as address:
            yield address

    def write(self, worker: str, written: float, **families: Any) -> Path:
        """A snapshot as another process would have written it."""
        file = Path(os.environ[FOLDER_VARIABLE]) / f"{worker}.json"
        told = [
            {"name": name, "kind": "counter", "help": "", "labels": ["code"], "samples": value, "bounds": []}
            for name, value in families.items()
        ]
        content = {"worker": worker, "time": written, "families": told, "hot": {"worker": worker}}
        file.write_text(json.dumps(content))
        return file

    def test_workers_are_told_apart(self, address: str) -> None:
        """Counts that go back when a worker is replaced would look like traffic."""
        now = time.time()
        self.write("1", now, made_total=[[["OK"], 3]])
        self.write("2", now, made_total=[[["OK"], 4], [["BAD"], 1]])
        lost = self.write("3", now - 61, made_total=[[["OK"], 100]])
        text = httpx.get(f"{address}/metrics").text
        found = {
            (sample.name, *sample.labels.values()): sample.value
            for family in text_string_to_metric_families(text)
            for sample in family.samples
        }
        assert found.pop(("keygraph_worker_silent_seconds", "1")) < 30
        assert found.pop(("keygraph_worker_silent_seconds", "2")) < 30
        assert found == {
            ("made_total", "OK", "1"): 3,
            ("made_total", "OK", "2"): 4,
            ("made_total", "BAD", "2"): 1,
        }
        assert not lost.exists()

    def test_half_a_file_is_left_out(self, address: str) -> None:
        """One process that was killed while it wrote would take the metrics of all."""
        (Path(os.environ[FOLDER_VARIABLE]) / "1.json").write_text('{"wor')
        assert httpx.get(f"{address}/metrics").status_code == 200

    def test_what_is_hot_is_told_for_each_worker(self, address: str) -> None:
        """`keygraph hot` would have nothing to show."""
        self.write("1", time.time())
        self.write("2", time.time())
        assert httpx.get(f"{address}/hot").json() == [{"worker": "1"}, {"worker": "2"}]

    def test_nothing_else_is_there(self, address: str) -> None:
        """The port would show the files of the machine."""
        assert httpx.get(f"{address}/../../etc/passwd").status_code == 404

    async def test_a_process_writes_and_takes_away_its_file(self, tmp_path: Path) -> None:
        """Counts would be as they were at the start, or stay when the process has ended."""
        metrics = Metrics(3)
        async with Snapshots(tmp_path, metrics, lambda: "hot"):
            [file] = files(tmp_path)
            first = json.loads(file.read_bytes())
            while json.loads(file.read_bytes())["time"] == first["time"]:
                time.sleep(0.3)  # noqa: ASYNC251  # the loop is to be late
                await asyncio.sleep(0.05)
        assert files(tmp_path) == []
        assert first["hot"] == "hot"
        assert metrics.lag.sum > 0.3
