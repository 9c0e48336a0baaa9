"""The metrics port of a real process, with several workers behind it."""

from __future__ import annotations

import json
import re
import time
from collections.abc import Iterable

import httpx
import pytest
from prometheus_client.parser import text_string_to_metric_families
from prometheus_client.samples import Sample

from tests.end_to_end.processes import START_SECONDS, Process, Start, ask

pytestmark = pytest.mark.long

QUERY = 'query Profile { user(userId: "12345") { name } }'


def metrics_address(server: Process) -> str:
    found = re.search(r"metrics +(http://\S+)/metrics", server.text("stdout"))
    assert found is not None, server.text("stdout")
    return found[1]


def scrape(address: str) -> list[Sample]:
    text = httpx.get(f"{address}/metrics", timeout=START_SECONDS).text
    return [sample for family in text_string_to_metric_families(text) for sample in family.samples]


def total(samples: Iterable[Sample], metric: str, **labels: str) -> float:
    return sum(
        sample.value
        for sample in samples
        if sample.name == metric and labels.items() <= sample.labels.items()
    )


def test_one_port_has_the_counts_of_all_workers(start: Start) -> None:
    server = start("serve", "--port", "0", KEYGRAPH_WORKERS="2", KEYGRAPH_METRICS_PORT="0")
    address = server.address()
    metrics = metrics_address(server)
    for _ in range(20):
        ask(address, QUERY)
    ask(address, "{ __typename }")
    ended = time.monotonic() + START_SECONDS
    while total(samples := scrape(metrics), "keygraph_operations_total") < 21:
        assert time.monotonic() < ended, samples
        time.sleep(0.1)
    assert total(samples, "keygraph_operations_total", name="Profile", code="OK") == 20
    assert total(samples, "keygraph_operation_seconds_count", name="Profile") == 20
    assert total(samples, "keygraph_operation_read_units_total", name="Profile") == 10
    assert total(samples, "keygraph_store_request_seconds_count", kind="GetItem") == 20
    assert total(samples, "keygraph_event_loop_lag_seconds_count") > 0
    assert "keygraph_connections" in {sample.name for sample in samples}
    assert total(samples, "keygraph_resident_memory_bytes") > 50_000_000
    caches = {each.labels["cache"] for each in samples if each.name == "keygraph_cache_bytes"}
    assert caches >= {"documents", "persisted", "headers", "lists", "projections", "statements"}
    workers = {
        sample.labels["worker"] for sample in samples if sample.name == "keygraph_operations_in_flight"
    }
    assert len(workers) == 2
    counted = httpx.get(f"{metrics}/hot").json()
    assert len(counted) == 2
    assert {each["field"] for worker in counted for each in worker["fields"]} == {"Query.user"}
    hot = start("hot", "--url", metrics, "--json")
    assert hot.ended() == 0
    assert [each["field"] for each in json.loads(hot.text("stdout"))["fields"]] == ["Query.user"]
    assert "12345" not in hot.text("stdout")
    # The application's own port gives nothing away.
    assert httpx.get(f"{address}/metrics").status_code == 404
    assert server.stop() == 0


def test_without_its_setting_there_is_no_port(start: Start) -> None:
    server = start("serve", "--port", "0")
    server.address()
    assert "metrics" not in server.text("stdout")
    assert server.stop() == 0


def test_a_port_that_is_taken_is_one_line(start: Start) -> None:
    first = start("serve", "--port", "0", KEYGRAPH_METRICS_PORT="0")
    first.address()
    port = metrics_address(first).rpartition(":")[2]
    second = start("serve", "--port", "0", KEYGRAPH_METRICS_PORT=port)
    assert second.ended() == 1
    [line] = second.lines["stderr"]
    assert line.startswith(f"keygraph: metrics cannot be served on 127.0.0.1:{port}: ")
    assert line.endswith("Set KEYGRAPH_METRICS_PORT to another port.\n")
