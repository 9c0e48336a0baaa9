"""Operations after their end: their facts, and the reporters that get them."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from dataclasses import dataclass, field
from hashlib import sha256
from time import perf_counter
from typing import Any, Protocol

from keygraph.codes import Code
from keygraph_resolvers import Observed
from keygraph_resolvers.plan.bound import Bound
from keygraph_resolvers.read.meter import Sent
from keygraph_server.http.graphql_http import Exchange

_log = logging.getLogger(__name__)

OWN_FAULTS = (Code.INTERNAL, Code.CORRUPT_ITEM)
"""Error codes for which the server or an item is at fault."""
STORE_FAULTS = (Code.UNAVAILABLE, Code.TIMEOUT, Code.THROTTLED)
"""Error codes for which the store is at fault."""
FAULTS = (*OWN_FAULTS, *STORE_FAULTS)
"""Error codes for which no client is at fault, the worst first."""
LONGEST_NAME = 100
"""Names are cut after this many characters: GraphQL does not limit them."""


@dataclass(slots=True, eq=False)
class EndedOperation:
    """The report of an operation, whether or not it was executed."""

    exchange: Exchange
    name: str | None = field(init=False)
    type: str | None = field(init=False)
    """`query` or `mutation`; None if the document could not be executed."""
    codes: list[str] = field(init=False)
    """The codes of its errors, each once, in the order of the answer."""
    seconds: float = field(init=False)
    sent: Sequence[Sent] = field(init=False, default=())
    """Its requests to the store that were answered."""
    requests: int = field(init=False, default=0)
    read_units: float = field(init=False, default=0.0)
    write_units: float = field(init=False, default=0.0)
    _bound: Bound | None = field(init=False)

    def __post_init__(self) -> None:
        exchange = self.exchange
        self.seconds = perf_counter() - exchange.began
        observed = exchange.observed or Observed()
        operation, meter = observed.operation, observed.meter
        self._bound = observed.bound
        if operation is None:
            self.name = exchange.asked.operation_name if exchange.asked is not None else None
            self.type = None
        else:
            self.name = operation.name.value if operation.name is not None else None
            self.type = operation.operation.value
        if self.name is not None and len(self.name) > LONGEST_NAME:
            self.name = f"{self.name[:LONGEST_NAME]}…"
        self.codes = _codes(exchange.answer) if exchange.status != 500 or exchange.answer else [Code.INTERNAL]
        if meter is not None:
            self.sent = meter.sent
            for sent in meter.sent:
                cost = sent.cost
                self.requests += cost.requests
                self.read_units += cost.read_units
                self.write_units += cost.write_units

    @property
    def bound(self) -> float | None:
        """The most read units that the operation costs; None if it was not planned."""
        return None if self._bound is None else self._bound.total.read_units

    @property
    def document_hash(self) -> str | None:
        """The SHA-256 of the document; None if the request has none."""
        asked, observed = self.exchange.asked, self.exchange.observed
        if observed is not None and observed.digest:
            return observed.digest.hex()
        return (
            None
            if asked is None or asked.query is None
            else sha256(asked.query.encode("utf-8", "replace")).hexdigest()
        )


def _codes(answer: dict[str, Any] | None) -> list[str]:
    errors = answer.get("errors") if answer is not None else None
    if not errors:
        return []
    return list(dict.fromkeys([error.get("extensions", {}).get("code", "") for error in errors]))


class Reporter(Protocol):
    """Reports operations."""

    def report(self, operation: EndedOperation, /) -> None:
        """Reports an operation that has ended."""


class Tracer(Protocol):
    """Traces operations."""

    def begin(self, exchange: Exchange, /) -> None:
        """Begins the trace of an operation."""

    def end(self, operation: EndedOperation, /) -> None:
        """Ends the trace of an operation."""


class Watching:
    """The watcher of the GraphQL endpoint. An error in a reporter is logged, and does not reach the client."""

    def __init__(self, reporters: Sequence[Reporter], tracing: Tracer | None = None) -> None:
        self._reporters = reporters
        self._tracing = tracing
        self.in_flight = 0
        """The number of exchanges that have begun and not ended."""

    def begin(self, exchange: Exchange, /) -> None:
        """Counts an exchange, and begins its trace."""
        self.in_flight += 1
        if self._tracing is not None:
            self._tracing.begin(exchange)

    def end(self, exchange: Exchange, /) -> None:
        """Tells every reporter."""
        self.in_flight -= 1
        try:
            operation = EndedOperation(exchange)
            for reporter in self._reporters:
                reporter.report(operation)
            if self._tracing is not None:
                self._tracing.end(operation)
        except Exception:
            _log.exception("An operation could not be reported")
