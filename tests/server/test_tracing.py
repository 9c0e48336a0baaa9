"""Traces: what an operation, its steps and its requests are called, what is told of them, and what is not."""

from __future__ import annotations

import subprocess
import sys
from asyncio import to_thread
from collections.abc import Iterator
from pathlib import Path
from threading import Event, Thread, current_thread
from typing import Any

import pytest
from opentelemetry import propagate, trace
from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from opentelemetry.trace import SpanKind, StatusCode

from keygraph_server.app import create_app
from keygraph_server.settings import Settings
from keygraph_server.telemetry import process, tracing
from keygraph_server.telemetry.tracing import Tracing, configured_tracing
from tests.asgi import running
from tests.listening import Endless, listening
from tests.server.library import library_settings, make_table, serving
from tests.server.test_operation_log import ask

QUERY = "query Shelf($isbn: ID!) { one: book(isbn: $isbn) { title } books(first: 3) { nodes { title } } }"
TRACE = "0af7651916cd43dd8448eb211c80319c"


@pytest.fixture
def exporter(monkeypatch: pytest.MonkeyPatch) -> Iterator[InMemorySpanExporter]:
    exporter, provider = InMemorySpanExporter(), TracerProvider()
    provider.add_span_processor(SimpleSpanProcessor(exporter))
    monkeypatch.setattr(process, "configured_tracing", lambda: Tracing(provider))
    yield exporter
    provider.shutdown()


@pytest.fixture
async def settings(folder: Path) -> Settings:
    settings = library_settings(folder)
    await make_table(settings)
    return settings


def attributes(span: ReadableSpan) -> dict[str, Any]:
    return dict(span.attributes or {})


def parent_of(span: ReadableSpan, spans: list[ReadableSpan]) -> ReadableSpan:
    [parent] = [
        each for each in spans if span.parent and each.context and each.context.span_id == span.parent.span_id
    ]
    return parent


async def test_a_stop_does_not_wait_for_a_collector_that_hangs(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(tracing, "_LAST_SECONDS", 0.05)
    has_answered, threads = Event(), list[Thread]()

    class Hanging(TracerProvider):
        def shutdown(self) -> None:
            threads.append(current_thread())
            has_answered.wait()

    provider = Hanging(shutdown_on_exit=False)
    await Tracing(provider, provider).close()
    has_answered.set()
    threads[0].join()
    assert caplog.messages == ["The last traces are lost: the collector does not take them"]
    assert threads[0].daemon  # for which the process does not wait


@pytest.mark.parametrize("status", [200, 307, 400])
async def test_of_a_collectors_answer_little_is_read(status: int) -> None:
    server = Endless(f"HTTP/1.1 {status} It\r\nLocation: /elsewhere\r\n\r\n".encode())
    async with listening(server) as host:
        with tracing._limited_session() as session:
            answer = await to_thread(session.post, f"http://{host}/v1/traces", b"", timeout=10)
    assert (answer.status_code, len(answer.content)) == (status, tracing._ANSWER_BYTES)
    [written] = server.written
    assert written < 2**26


async def test_an_operation_its_steps_and_its_requests_are_one_trace(
    settings: Settings, exporter: InMemorySpanExporter, capsys: pytest.CaptureFixture[str]
) -> None:
    async with serving(settings) as client:
        await client.post(
            "/graphql",
            json={"query": QUERY, "variables": {"isbn": "978-secret"}},
            headers={"traceparent": f"00-{TRACE}-b7ad6b7169203331-01"},
        )
    spans = list(exporter.get_finished_spans())
    assert {each.context.trace_id for each in spans if each.context} == {int(TRACE, 16)}
    assert "978-secret" not in "".join(each.to_json() for each in spans)
    [operation] = [each for each in spans if each.kind is SpanKind.SERVER]
    assert operation.name == "query"
    assert operation.parent is not None
    assert operation.parent.span_id == 0xB7AD6B7169203331
    told = attributes(operation)
    assert (told["graphql.operation.type"], told["graphql.operation.name"]) == ("query", "Shelf")
    assert (told["http.response.status_code"], told["keygraph.read_units"]) == (200, 1.0)
    assert operation.status.status_code is StatusCode.UNSET
    steps = {attributes(each)["keygraph.path"]: each for each in spans if each.name == "step"}
    assert set(steps) == {"one", "books"}
    requests = {each.name: each for each in spans if each.kind is SpanKind.CLIENT}
    assert set(requests) == {"GetItem Library", "Query Library"}
    assert parent_of(requests["GetItem Library"], spans) is steps["one"]
    assert parent_of(requests["Query Library"], spans) is steps["books"]
    assert {parent_of(each, spans).name for each in steps.values()} == {"query"}
    told = attributes(requests["Query Library"])
    assert told["db.system.name"] == "aws.dynamodb"
    assert (told["db.operation.name"], told["db.collection.name"]) == ("Query", "Library")
    assert told["aws.dynamodb.table_names"] == ("Library",)
    assert told["aws.dynamodb.consumed_capacity"] == ('{"TableName":"Library","CapacityUnits":0.5}',)
    for inner in (*steps.values(), *requests.values()):
        outer = parent_of(inner, spans)
        assert outer.start_time is not None
        assert inner.start_time is not None
        assert inner.end_time is not None
        assert outer.end_time is not None
        # The two clocks may differ by a little.
        assert outer.start_time - 1e6 <= inner.start_time <= inner.end_time <= outer.end_time + 1e6
    assert f"trace_id={TRACE}" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("query", "status", "kind"),
    [("{ nothing }", StatusCode.UNSET, None), ("{ books { totalCount } }", StatusCode.ERROR, "UNAVAILABLE")],
)
async def test_a_failure_is_the_servers_or_none(
    settings: Settings, exporter: InMemorySpanExporter, query: str, status: StatusCode, kind: str | None
) -> None:
    gone = settings.model_copy(update={"store": "http://127.0.0.1:1", "deadline": 0.2})
    async with running(create_app(gone)) as client:
        await ask(client, query)
    [operation] = [each for each in exporter.get_finished_spans() if each.kind is SpanKind.SERVER]
    assert operation.status.status_code is status
    assert attributes(operation).get("error.type") == kind
    failed = [each for each in exporter.get_finished_spans() if each.kind is SpanKind.CLIENT]
    assert [attributes(each)["error.type"] for each in failed] == ([kind] if kind else [])


async def test_an_operations_span_is_the_current_one_only_while_it_runs(
    settings: Settings, exporter: InMemorySpanExporter
) -> None:
    async with serving(settings) as client:
        await ask(client, "{ books { totalCount } }")
    assert trace.get_current_span() is trace.INVALID_SPAN


async def test_long_fields_of_a_client_are_not_read(
    settings: Settings, exporter: InMemorySpanExporter, monkeypatch: pytest.MonkeyPatch
) -> None:
    """OpenTelemetry takes 100 ms for 8 KB of spaces."""
    read: list[dict[str, str]] = []
    monkeypatch.setattr(propagate, "extract", read.append)
    parent = {"traceparent": f"00-{TRACE}-b7ad6b7169203331-01"}
    async with serving(settings) as client:
        for others in (
            {"baggage": "a=b"},
            {"baggage": f"a{8_000 * ' '}=b"},
            {"tracestate": f"a={600 * 'b'}"},
        ):
            answer = await client.post("/graphql", json={"query": "{ __typename }"}, headers=parent | others)
            assert answer.json() == {"data": {"__typename": "Query"}}
    assert [*map(sorted, read)] == [["baggage", "traceparent"], ["traceparent"], ["traceparent"]]


class TestConfiguration:
    @pytest.fixture(autouse=True)
    def no_variables(self, monkeypatch: pytest.MonkeyPatch) -> None:
        for name in ("OTEL_EXPORTER_OTLP_ENDPOINT", "OTEL_TRACES_EXPORTER", "OTEL_SDK_DISABLED"):
            monkeypatch.delenv(name, raising=False)

    def test_without_an_exporter_there_are_no_traces(self) -> None:
        assert configured_tracing() is None

    async def test_the_standards_variables_turn_them_on(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", "http://127.0.0.1:1")
        tracing = configured_tracing()
        assert tracing is not None
        assert tracing.service == "keygraph"
        await tracing.close()
        monkeypatch.setenv("OTEL_SERVICE_NAME", "shop")
        tracing = configured_tracing()
        assert tracing is not None
        assert tracing.service == "shop"
        await tracing.close()

    @pytest.mark.parametrize(
        ("name", "value"), [("OTEL_SDK_DISABLED", "true"), ("OTEL_TRACES_EXPORTER", "none")]
    )
    def test_and_off(self, monkeypatch: pytest.MonkeyPatch, name: str, value: str) -> None:
        monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", "http://127.0.0.1:1")
        monkeypatch.setenv(name, value)
        assert configured_tracing() is None

    def test_without_the_extra_the_server_starts(
        self, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
    ) -> None:
        monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", "http://127.0.0.1:1")
        monkeypatch.setitem(sys.modules, "opentelemetry.exporter.otlp.proto.http.trace_exporter", None)
        assert configured_tracing() is None
        assert "keygraph[tracing]" in caplog.text


def test_what_is_off_is_not_imported() -> None:
    code = "import sys, keygraph_server.app, keygraph_server.cli; print([each for each in sys.modules if each in sys.argv])"
    names = ["opentelemetry", "opentelemetry.sdk", "prometheus_client"]
    found = subprocess.run([sys.executable, "-c", code, *names], capture_output=True, text=True, check=True)
    assert found.stdout == "[]\n"
