"""Metrics: what is counted of operations, that it stays bounded, and how it is told to Prometheus."""

from __future__ import annotations

import asyncio
import json
import os
import re
import socket
import threading
import time
from collections.abc import Iterator
from contextlib import ExitStack, suppress
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import httpx
import pytest
from graphql import OperationDefinitionNode, parse
from prometheus_client.parser import text_string_to_metric_families

from keygraph.admission import Admission
from keygraph.changes.following import Progress
from keygraph.dynamo.traffic import Traffic
from keygraph_resolvers import Service
from keygraph_resolvers.live import LiveQueries
from keygraph_resolvers.live.listeners import LiveCounts
from keygraph_resolvers.read.meter import Memory
from keygraph_server.connections.gate import ConnectionGate
from keygraph_server.connections.settings import ConnectionSettings
from keygraph_server.http.graphql_http import HTTPObservation
from keygraph_server.http.requests import RequestHeaders
from keygraph_server.telemetry import exposition
from keygraph_server.telemetry.exposition import SILENT, serve_metrics
from keygraph_server.telemetry.metrics import OTHER, REFUSED, Family, Metrics
from keygraph_server.telemetry.process import (
    watch_connections,
    watch_following,
    watch_live,
    watch_process,
    watch_traffic,
)
from keygraph_server.telemetry.snapshots import FOLDER_VARIABLE, Snapshots

PAGE = Path(__file__).parents[2] / "docs/operations.md"


def ended(document: str | None, *codes: str) -> HTTPObservation:
    """An operation with these errors; None if its document was refused."""
    observation = HTTPObservation(headers=RequestHeaders({}, None, None))
    if document is not None:
        [operation] = parse(document).definitions
        assert isinstance(operation, OperationDefinitionNode)
        observation.operation = operation
    observation.answer = (
        {"errors": [{"extensions": {"code": code}} for code in codes]} if codes else {"data": {}}
    )
    observation.status = 200
    observation.end()
    return observation


def files(folder: Path) -> list[Path]:
    return list(folder.iterdir())


def samples(metrics: Metrics, name: str) -> dict[tuple[str, ...], Any]:
    [family] = [each for each in metrics.families() if each.name == name]
    return dict(family.samples)


class TestCounting:
    def test_operations_are_counted_by_name_and_code(self) -> None:
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
        metrics = Metrics(3)
        for number in range(1000):
            metrics.report(ended(f"query Q{number} {{ a }}", f"OWN_{number}"))
            metrics.report(ended(f"query Q{number} {{ a }}"))
        found = samples(metrics, "keygraph_operations_total")
        assert {name for name, _ in found} == {"Q0", "Q1", "Q2", OTHER}
        assert len({code for _, code in found}) == 62
        assert found[OTHER, "OK"] == 997

    def test_a_time_is_in_the_bucket_that_holds_it(self) -> None:
        metrics = Metrics(3)
        for seconds in (0.0005, 0.001, 0.0011, 99.0):
            operation = ended("{ a }")
            operation.seconds = seconds
            metrics.report(operation)
        counts, total = samples(metrics, "keygraph_operation_seconds")["(anonymous)",]
        assert (counts[:2], counts[-1], sum(counts)) == ([2, 1], 1, 4)
        assert total == pytest.approx(99.0026)

    def test_what_a_store_sends_is_read_from_its_own_counts(self) -> None:
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
    served = cast(Service, SimpleNamespace(admission=Admission(1, 1), memory=Memory(1)))
    watch_process(metrics, lambda: 0, served, lambda: {"documents": 1.0})
    watch_traffic(metrics, Traffic())
    watch_connections(metrics)
    watch_live(metrics, cast(LiveQueries, SimpleNamespace(listeners=0, counts=LiveCounts())))
    watch_following(metrics, Progress())
    return [*metrics.families(), SILENT]


def test_the_page_has_every_metric() -> None:
    rows = [line for line in PAGE.read_text("utf-8").splitlines() if line.startswith("| `keygraph_")]
    told = {name for row in rows for name in re.findall(r"`(keygraph_\w+)`", row)}
    assert told == {each.name for each in all_families()}


def test_connections_are_read_from_their_gates() -> None:
    metrics, gate = Metrics(1), ConnectionGate(ConnectionSettings())
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
        file = Path(os.environ[FOLDER_VARIABLE]) / f"{worker}.json"
        told = [
            {"name": name, "kind": "counter", "help": "", "labels": ["code"], "samples": value, "bounds": []}
            for name, value in families.items()
        ]
        content = {"worker": worker, "time": written, "families": told, "hot": {"worker": worker}}
        file.write_text(json.dumps(content))
        return file

    def test_workers_are_told_apart(self, address: str) -> None:
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
        (Path(os.environ[FOLDER_VARIABLE]) / "1.json").write_text('{"wor')
        assert httpx.get(f"{address}/metrics").status_code == 200

    @pytest.mark.parametrize(
        "accept",
        [
            b"application/openmetrics-text; version=new",
            b"application/openmetrics-text; version=1.0.\xff; escaping=x",
            b"text/plain; version=1.a, text/plain;=;version",
            b"application/openmetrics-text; version=" + b"9" * 5_000,
            b"application/openmetrics-text; version=2.0.0; escaping=allow-utf-8",
        ],
    )
    def test_any_accept_header_is_answered(
        self, address: str, accept: bytes, caplog: pytest.LogCaptureFixture
    ) -> None:
        self.write("1", time.time(), made_total=[[["OK"], 3]])
        response = httpx.get(f"{address}/metrics", headers=[(b"accept", accept)])
        assert response.status_code == 200
        assert 'made_total{code="OK",worker="1"} 3.0' in response.text
        assert caplog.records == []

    def test_requests_in_a_row_take_the_time_of_one(
        self, address: str, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(exposition, "_RECENT_SECONDS", 60.0)
        for place in ("metrics", "hot"):
            self.write("1", time.time())
            first = httpx.get(f"{address}/{place}").text
            self.write("2", time.time())
            assert httpx.get(f"{address}/{place}").text == first
            monkeypatch.setattr(exposition, "_RECENT_SECONDS", 0.0)
            assert httpx.get(f"{address}/{place}").text != first
            monkeypatch.setattr(exposition, "_RECENT_SECONDS", 60.0)
            (Path(os.environ[FOLDER_VARIABLE]) / "2.json").unlink()

    def test_half_requests_and_clients_that_leave_keep_no_scrape_waiting(
        self, address: str, caplog: pytest.LogCaptureFixture, capsys: pytest.CaptureFixture[str]
    ) -> None:
        self.write("1", time.time(), made_total=[[[str(number)], 3] for number in range(5_000)])
        threads, half = threading.active_count(), []
        host, _, port = address.removeprefix("http://").rpartition(":")
        with ExitStack() as opened:
            for number in range(150):
                client = opened.enter_context(socket.create_connection((host, int(port))))
                client.sendall(b"GET /metrics HTTP/1.1\r\nHost: x\r\n" + b"\r\n" * (number % 50 == 0))
                if number % 50 == 0:
                    # It leaves before its answer, which is larger than the system's buffers.
                    client.close()
                else:
                    half.append(client)
            assert httpx.get(f"{address}/hot").json() == [{"worker": "1"}]
            for client in half[:100]:
                client.settimeout(10)
                # Closed, which may be with a reset.
                with suppress(ConnectionResetError):
                    assert client.recv(1) == b""
            assert threading.active_count() == threads
        # Once a minute the log may say how many connections were closed.
        assert [record.exc_info for record in caplog.records] in ([], [None])
        assert capsys.readouterr().err == ""

    def test_what_is_hot_is_told_for_each_worker(self, address: str) -> None:
        self.write("1", time.time())
        self.write("2", time.time())
        assert httpx.get(f"{address}/hot").json() == [{"worker": "1"}, {"worker": "2"}]

    def test_nothing_else_is_there(self, address: str) -> None:
        assert httpx.get(f"{address}/../../etc/passwd").status_code == 404
        # A page that has pointed its name to this machine.
        assert httpx.get(f"{address}/metrics", headers={"host": "evil.example"}).status_code == 421

    async def test_a_process_writes_and_takes_away_its_file(self, tmp_path: Path) -> None:
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
        # A full disk, for example: no process needs the file.
        async with Snapshots(tmp_path / "not there", metrics, lambda: "hot"):
            pass
