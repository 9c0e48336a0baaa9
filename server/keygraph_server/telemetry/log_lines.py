"""Logs one line for every operation."""

from __future__ import annotations

from typing import Any

from keygraph_server.logs import DirectLogger
from keygraph_server.telemetry.operations import OWN_FAULTS, STORE_FAULTS, EndedOperation


class LogLines:
    """Logs operations: as errors if the server or an item is at fault, as warnings if the store has failed."""

    def __init__(self, log: DirectLogger, *, with_variables: bool = False) -> None:
        self._log = log
        self._with_variables = with_variables

    def report(self, operation: EndedOperation, /) -> None:
        """Writes the line. Variables are included only if that was asked for: they can contain personal data."""
        exchange, codes = operation.exchange, operation.codes
        log = self._log.info
        if codes:
            if any(code in OWN_FAULTS for code in codes):
                log = self._log.error
            elif any(code in STORE_FAULTS for code in codes):
                log = self._log.warning
        asked = exchange.asked
        more: dict[str, Any] = {}
        if self._with_variables and asked is not None:
            more["variables"] = asked.variables
        if exchange.trace_id is not None:
            more["trace_id"] = exchange.trace_id
        log(
            "operation" if exchange.status is not None else "operation without its client",
            name=operation.name,
            type=operation.type,
            hash=operation.document_hash,
            status=exchange.status,
            codes=codes,
            duration_ms=round(operation.seconds * 1000, 3),
            bound=operation.bound,
            read_units=operation.read_units,
            write_units=operation.write_units,
            requests=operation.requests,
            **more,
        )
