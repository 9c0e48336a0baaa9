"""Traces by OpenTelemetry: a span for each operation, its steps, and its requests to the store.

Names and attributes follow OpenTelemetry's semantic conventions for GraphQL servers, database clients and DynamoDB.
Names that these lack begin with `keygraph.`. The spans of steps and requests are made when the operation has ended,
from its meter: while it runs, a trace costs nothing.

OpenTelemetry is imported only if spans are exported: its own variables say where to (`OTEL_EXPORTER_OTLP_ENDPOINT`), or
`opentelemetry-instrument` has set up a tracer provider.
"""

from __future__ import annotations

import asyncio
import logging
import os
import sys
import time
from collections.abc import Mapping
from io import BytesIO
from typing import TYPE_CHECKING, Any

import orjson

from keygraph.daemon_thread import in_daemon_thread
from keygraph.dynamo.store import BatchGet, Count, Query, Scan
from keygraph_resolvers.plan.cost import operation_name
from keygraph_resolvers.read.meter import Failed, MeteredStore, Sent
from keygraph_server.errors import FAULTS
from keygraph_server.http.graphql_http import HTTPObservation
from keygraph_server.http.requests import LONGEST_READ

if TYPE_CHECKING:
    from opentelemetry.sdk.trace import TracerProvider as SdkProvider
    from opentelemetry.trace import Span, Tracer, TracerProvider

_log = logging.getLogger(__name__)

_ENDPOINTS = ("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", "OTEL_EXPORTER_OTLP_ENDPOINT")
_PARENT_FIELDS = (b"traceparent", b"tracestate", b"baggage")
"""The header fields that name the parent span (W3C Trace Context and Baggage)."""
_LAST_SECONDS = 2.0
"""How long a server that stops waits for the collector."""
_ANSWER_BYTES = 64 * 1024


class Tracing:
    """Makes spans. One for each server process."""

    def __init__(self, provider: TracerProvider, own: SdkProvider | None = None) -> None:
        """`own` is the provider if it is to be shut down with the server."""
        self._tracer: Tracer = provider.get_tracer("keygraph")
        self._own = own

    @property
    def service(self) -> str | None:
        """The name under which the spans are sent; None if they are sent by another provider."""
        return None if self._own is None else str(self._own.resource.attributes["service.name"])

    async def close(self) -> None:
        """Sends the remaining spans, if the collector takes them soon."""
        if self._own is not None:
            try:
                async with asyncio.timeout(_LAST_SECONDS):
                    await in_daemon_thread(self._own.shutdown)
            except TimeoutError:
                _log.warning("The last traces are lost: the collector does not take them")

    def begin(self, operation: HTTPObservation, /) -> None:
        """Begins the operation's span, as a child of the client's. It is the current one until `end`."""
        from opentelemetry import context, propagate, trace

        headers = operation.headers.fields
        carrier = {
            name.decode(): headers[name].decode("latin-1")
            for name in _PARENT_FIELDS
            if name in headers and len(headers[name]) <= LONGEST_READ
        }
        parent = propagate.extract(carrier) if carrier else None
        span = self._tracer.start_span("GraphQL Operation", parent, trace.SpanKind.SERVER)
        operation.trace = (span, context.attach(trace.set_span_in_context(span, parent)))
        operation.trace_id = trace.format_trace_id(span.get_span_context().trace_id)

    def end(self, operation: HTTPObservation, /) -> None:
        """Ends the operation's span, and makes those of its steps and requests."""
        from opentelemetry import context, trace

        span, token = operation.trace
        context.detach(token)
        if span.is_recording():
            if operation.meter is not None:
                self._add_steps(trace.set_span_in_context(span), operation.meter)
            _describe(span, operation)
        span.end()

    def _add_steps(self, parent: Any, meter: MeteredStore) -> None:
        from opentelemetry.trace import set_span_in_context

        # The meter's clock has no date.
        zero = time.time_ns() - int((time.perf_counter() - meter.began) * 1e9)
        kept: list[Sent | Failed] = [*meter.sent, *meter.failed]
        steps: dict[str, list[Sent | Failed]] = {}
        for sent in kept:
            steps.setdefault(sent.places[0] if sent.places else "", []).append(sent)
        for place, requests in steps.items():
            began = zero + int(min(each.began for each in requests) * 1e9)
            step = self._tracer.start_span(
                "step", parent, attributes={"keygraph.path": place}, start_time=began
            )
            within = set_span_in_context(step)
            for sent in requests:
                self._add_request(within, meter, sent, zero)
            step.end(zero + int(max(each.ended for each in requests) * 1e9))

    def _add_request(self, step: Any, meter: MeteredStore, sent: Sent | Failed, zero: int) -> None:
        from opentelemetry.trace import SpanKind, StatusCode

        kind, table = operation_name(sent.request), meter.table.name
        span = self._tracer.start_span(
            f"{kind} {table}",
            step,
            SpanKind.CLIENT,
            attributes={
                "db.system.name": "aws.dynamodb",
                "db.operation.name": kind,
                "db.collection.name": table,
                "rpc.system.name": "aws-api",
                "rpc.method": f"DynamoDB/{kind}",
                "aws.dynamodb.table_names": (table,),
                "keygraph.paths": sent.places,
                **_of_request(sent.request),
            },
            start_time=zero + int(sent.began * 1e9),
        )
        if isinstance(sent, Failed):
            span.set_attribute("error.type", sent.code)
            span.set_status(StatusCode.ERROR, sent.message)
        else:
            span.set_attribute("aws.dynamodb.scanned_count", sent.items)
            units = sent.cost.read_units + sent.cost.write_units
            capacity = orjson.dumps({"TableName": table, "CapacityUnits": units}).decode()
            span.set_attribute("aws.dynamodb.consumed_capacity", (capacity,))
            span.set_attribute("keygraph.round_trip", sent.round_trip)
            span.set_attribute("keygraph.attempts", sent.cost.requests)
        span.end(zero + int(sent.ended * 1e9))


def _describe(span: Span, operation: HTTPObservation) -> None:
    from opentelemetry.trace import StatusCode

    if operation.type is not None:
        span.update_name(operation.type)
    known = {
        "graphql.operation.type": operation.type,
        "graphql.operation.name": operation.name,
        "http.response.status_code": operation.status,
        "keygraph.document.hash": operation.document_hash,
        "keygraph.bound": operation.most_read_units,
        "keygraph.read_units": operation.read_units,
        "keygraph.write_units": operation.write_units,
        "keygraph.error.codes": operation.codes or None,
    }
    span.set_attributes({name: value for name, value in known.items() if value is not None})
    faults = [code for code in operation.codes if code in FAULTS]
    if faults:
        span.set_attribute("error.type", faults[0])
        span.set_status(StatusCode.ERROR)


def _of_request(request: object) -> Mapping[str, Any]:
    """The attributes of a request by the conventions. Keys and values are not included."""
    known: dict[str, Any] = {}
    if isinstance(request, Query | Count):
        known = {
            "aws.dynamodb.index_name": request.index,
            "aws.dynamodb.limit": request.limit,
            "aws.dynamodb.consistent_read": request.consistent,
            "aws.dynamodb.select": "COUNT" if isinstance(request, Count) else None,
            "aws.dynamodb.scan_forward": request.forward if isinstance(request, Query) else None,
        }
    elif isinstance(request, Scan):
        known = {"aws.dynamodb.segment": request.segment, "aws.dynamodb.total_segments": request.segments}
    elif isinstance(request, BatchGet):
        size = len(request.keys) if len(request.keys) > 1 else None
        known = {"db.operation.batch.size": size, "aws.dynamodb.consistent_read": request.consistent}
    return {name: value for name, value in known.items() if value is not None}


def configured_tracing() -> Tracing | None:
    """Returns the tracing, if OpenTelemetry's variables say where spans go, or a tracer provider is set up."""
    if os.environ.get("OTEL_SDK_DISABLED", "").lower() == "true":
        return None
    if "opentelemetry.sdk.trace" in sys.modules:
        from opentelemetry import trace
        from opentelemetry.sdk.trace import TracerProvider as Provider

        provider = trace.get_tracer_provider()
        if isinstance(provider, Provider):
            return Tracing(provider)
    named = next((name for name in _ENDPOINTS if os.environ.get(name)), None)
    if named is None or os.environ.get("OTEL_TRACES_EXPORTER", "otlp") != "otlp":
        return None
    try:
        return _exporting()
    except ImportError:
        _log.warning(
            "%s is set, but OpenTelemetry is not installed, so there are no traces. Install it with "
            "`pip install 'keygraph[tracing]'`",
            named,
        )
        return None


def _exporting() -> Tracing:
    """Returns tracing that exports to where OpenTelemetry's variables say."""
    from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
    from opentelemetry.sdk.resources import OTELResourceDetector, Resource
    from opentelemetry.sdk.trace import TracerProvider as Provider
    from opentelemetry.sdk.trace.export import BatchSpanProcessor

    resource = Resource({"service.name": "keygraph"}).merge(OTELResourceDetector().detect())
    provider = Provider(resource=Resource.create().merge(resource))
    # A credential provider makes a session of its own.
    has_session = any(name.endswith("_CREDENTIAL_PROVIDER") for name in os.environ)
    exporter = OTLPSpanExporter(session=None if has_session else _limited_session())
    provider.add_span_processor(BatchSpanProcessor(exporter))
    return Tracing(provider, provider)


def _limited_session() -> Any:
    """Returns a session that reads little of a collector's answer, in which nothing is needed, and follows no redirect."""
    from requests import Session

    class LimitedSession(Session):
        def get_redirect_target(self, resp: Any) -> None:
            return None

        def send(self, request: Any, **options: Any) -> Any:
            response = super().send(request, **{**options, "stream": True})
            raw, response.raw = response.raw, BytesIO(response.raw.read(_ANSWER_BYTES))
            raw.close()
            return response

    return LimitedSession()
